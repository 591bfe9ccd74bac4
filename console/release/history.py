"""What finished releases measured, kept over releases in one SQLite file, so that a slow or sudden loss shows.

A release is added once, when it is closed: by its run id, with the hash of its log's last entry, so that adding it
again changes nothing and another run of the same name is refused. Nothing is ever changed or removed. The file lies in
the platform's data folder, or where `GONOGO_HISTORY` says.
"""

from __future__ import annotations

import math
import os
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from console.safe_text import safe

PLACE: Final = "GONOGO_HISTORY"
"""Environment variable that names another file."""

APPLICATION: Final = 0x676F6E6F
"""Says in the file's header whose it is ("gono")."""

VERSION: Final = 1
MAGIC: Final = b"SQLite format 3\0"
_PATIENCE_SECONDS: Final = 10.0

_TABLES: Final = """
CREATE TABLE releases (
    run_id TEXT PRIMARY KEY, head TEXT NOT NULL, model TEXT NOT NULL, drafter TEXT NOT NULL, draft_tokens INTEGER,
    manifest TEXT NOT NULL, cluster TEXT NOT NULL, day TEXT NOT NULL, verdict TEXT NOT NULL, why TEXT NOT NULL
);
CREATE TABLE measurements (
    run_id TEXT NOT NULL REFERENCES releases (run_id), gate TEXT NOT NULL, name TEXT NOT NULL, value REAL NOT NULL,
    sha256 TEXT NOT NULL, PRIMARY KEY (run_id, gate, name),
    CHECK (typeof(value) = 'real')
);
CREATE INDEX releases_by_model ON releases (model, day);
"""

_COLUMNS: Final = ("run_id", "head", "model", "drafter", "draft_tokens", "manifest", "cluster", "day", "verdict", "why")
"""Columns of `releases`, and the names of the same attributes of `Release`."""


class HistoryError(Exception):
    """The history cannot be read or written. One line: which file, what is wrong, what to do."""


@dataclass(frozen=True, slots=True)
class Measurement:
    """One number that a gate measured or reported.

    Attributes:
        gate: The gate ("bench").
        name: Its name among the gate's facts ("acceptance_rate_c1"): rates are fractions, lengths tokens per step.
        value: Finite.
        sha256: Digest of the result file it was read from.
    """

    gate: str
    name: str
    value: float
    sha256: str


@dataclass(frozen=True, slots=True)
class Release:
    """One finished release.

    Attributes:
        run_id: Name of the run.
        head: Hash of the last entry of its log.
        model: The target.
        drafter: The algorithm.
        draft_tokens: Draft tokens a step, None where no gate was told.
        manifest: Digest of the frozen drafter's manifest, empty where nothing was frozen.
        cluster: Where it ran.
        day: When it was closed, UTC ("2026-07-08").
        verdict: The verdict.
        why: The verdict's detail.
        measured: What its gates measured, by gate and name.
    """

    run_id: str
    head: str
    model: str
    drafter: str
    draft_tokens: int | None
    manifest: str
    cluster: str
    day: str
    verdict: str
    why: str
    measured: tuple[Measurement, ...]

    def value(self, *names: tuple[str, str]) -> Measurement | None:
        """The first of some measurements, each given as (gate, name), that there is."""
        known = {(one.gate, one.name): one for one in self.measured}
        return next((known[name] for name in names if name in known), None)


def default_path(environ: Mapping[str, str] = os.environ) -> Path:
    """Where the history lies unless an option says otherwise."""
    if named := environ.get(PLACE):
        return Path(named)
    from platformdirs import user_data_path

    return Path(user_data_path("gonogo")) / "history.sqlite"


def add(path: Path, release: Release) -> bool:
    """Append a release.

    Args:
        path: The history; made where it is not there.
        release: The release.

    Returns:
        False when it was there already, as it is.

    Raises:
        HistoryError: When another run of this name is there, or the file is no history or cannot be written.
    """
    if not all(math.isfinite(one.value) for one in release.measured):
        raise HistoryError(f"{release.run_id}: states a number that is not finite; nothing was added")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise HistoryError(f"{path}: its folder cannot be made ({error.strerror})") from None
    with _open(path, write=True) as database:
        found = database.execute("SELECT head FROM releases WHERE run_id = ?", (release.run_id,)).fetchone()
        if found is not None:
            if found[0] == release.head:
                return False
            raise HistoryError(f"{path}: holds another run {safe(release.run_id)} (its log ends differently)")
        columns = [_storable(getattr(release, name)) for name in _COLUMNS]
        database.execute(f"INSERT INTO releases VALUES ({','.join('?' * len(columns))})", columns)
        database.executemany(
            "INSERT INTO measurements VALUES (?,?,?,?,?)",
            [(release.run_id, one.gate, one.name, float(one.value), one.sha256) for one in release.measured],
        )
    return True


def _storable(value: str | int | None) -> str | int | None:
    """Text as SQLite takes it: half of a surrogate pair, which JSON may hold, is written out."""
    return value.encode("utf-8", "backslashreplace").decode() if isinstance(value, str) else value


def read(path: Path, model: str | None = None) -> list[Release]:
    """The releases of a model, or all, by day and then in the order in which they were added.

    Raises:
        HistoryError: When there is no history at this path, or it cannot be read.
    """
    with _open(path, write=False) as database:
        where, given = ("WHERE model = ?", (model,)) if model is not None else ("", ())
        rows = database.execute(
            f"SELECT {', '.join(_COLUMNS)} FROM releases {where} ORDER BY day, rowid", given
        ).fetchall()
        measured: dict[str, list[Measurement]] = {row[0]: [] for row in rows}
        for run_id, *one in database.execute(
            "SELECT run_id, gate, name, value, sha256 FROM measurements ORDER BY rowid"
        ):
            if run_id in measured:
                measured[run_id].append(Measurement(*one))
    return [Release(**dict(zip(_COLUMNS, row, strict=True)), measured=tuple(measured[row[0]])) for row in rows]


def models(path: Path) -> list[tuple[str, int, str]]:
    """Every model with its number of releases and the day of its last one.

    Raises:
        HistoryError: As `read`.
    """
    with _open(path, write=False) as database:
        found: Sequence[tuple[str, int, str]] = database.execute(
            "SELECT model, count(*), max(day) FROM releases GROUP BY model ORDER BY model"
        ).fetchall()
    return list(found)


@contextmanager
def _open(path: Path, *, write: bool) -> Iterator[sqlite3.Connection]:
    """The database within one transaction, which counts as a whole or not at all."""
    if not write and not path.is_file():
        raise HistoryError(f"{path}: there is no history yet; releases are added when they are closed")
    try:
        address = f"{path.absolute().as_uri()}?mode={'rwc' if write else 'ro'}"
        with closing(sqlite3.connect(address, timeout=_PATIENCE_SECONDS, uri=True, isolation_level=None)) as database:
            database.execute("BEGIN IMMEDIATE" if write else "BEGIN")
            try:
                _prepare(database, path, write)
                yield database
            except BaseException:
                database.execute("ROLLBACK")
                raise
            database.execute("COMMIT")
    except sqlite3.Error as error:
        raise HistoryError(f"{path}: {error}; is it a history of gonogo, and on a disk with space?") from None


def _prepare(database: sqlite3.Connection, path: Path, write: bool) -> None:
    """Make a new file into a history, and refuse any other."""
    (application,) = database.execute("PRAGMA application_id").fetchone()
    (version,) = database.execute("PRAGMA user_version").fetchone()
    (tables,) = database.execute("SELECT count(*) FROM sqlite_master").fetchone()
    if write and not application and not version and not tables:
        for statement in _TABLES.split(";"):
            if statement.strip():
                database.execute(statement)
        database.execute(f"PRAGMA application_id = {APPLICATION}")
        database.execute(f"PRAGMA user_version = {VERSION}")
        return
    if application != APPLICATION:
        raise HistoryError(f"{path}: is not a history of gonogo; name another file")
    if version != VERSION:
        raise HistoryError(f"{path}: is version {version} of the history; this gonogo reads version {VERSION}")
