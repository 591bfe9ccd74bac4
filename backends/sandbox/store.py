"""The one SQLite file of the embedded cluster: its jobs, and the knobs for trouble."""

from __future__ import annotations

import json
import os
import sqlite3
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from backends.sandbox.place import Place

FIRST_JOB_ID = 101
NODES = 2
CPUS_PER_NODE = 8
ACCOUNT = "research"
QOS = "normal"
PARTITIONS = {"batch": 86400, "interactive": 3600}
"""Partitions with their time limit in seconds; the first is the default."""

MIN_JOB_AGE_S = 300
"""How long an ended job stays in the queue's memory, as Slurm's own default."""

ENDED = ("COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "NODE_FAIL")

_SCHEMA = """
CREATE TABLE IF NOT EXISTS jobs (
  id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT, comment TEXT, user TEXT, partition TEXT, account TEXT, qos TEXT,
  nodes INTEGER, cpus INTEGER, limit_s INTEGER, workdir TEXT, output TEXT, error TEXT, environment TEXT,
  arguments TEXT, dependency TEXT, kill_on_invalid_dep INTEGER, requeue INTEGER, hold INTEGER,
  state TEXT, reason TEXT, node_list TEXT, exit_code INTEGER, signal INTEGER, restarts INTEGER,
  submitted REAL, started REAL, ended REAL, visible REAL, eligible REAL, runner INTEGER, runner_born TEXT,
  cancelled_by INTEGER, again INTEGER
);
CREATE TABLE IF NOT EXISTS knobs (name TEXT PRIMARY KEY, value TEXT);
"""


@dataclass(slots=True)
class Job:
    """One job as the cluster keeps it. Times are seconds since the epoch, `None` where there is none yet.

    Attributes:
        id: Slurm's number.
        name: Job name.
        comment: Free text.
        user: Who submitted.
        partition: Where it runs.
        account: Account.
        qos: Quality of service.
        nodes: Nodes it takes; a node runs one job at a time.
        cpus: CPUs of a task.
        limit_s: Time limit, seconds.
        workdir: Folder it starts in.
        output: File of its standard output, with Slurm's % patterns.
        error: File of its standard error, empty for the same.
        environment: Its variables, JSON.
        arguments: Arguments of its script, JSON list.
        dependency: As submitted.
        kill_on_invalid_dep: 1 when it shall end if its dependency never can be met.
        requeue: 1 when it may be started again.
        hold: 1 while it is held.
        state: Slurm's state.
        reason: Slurm's reason.
        node_list: Nodes it runs on.
        exit_code: Exit status of the script.
        signal: Signal that ended it, or 0.
        restarts: How often it was started again.
        submitted: When.
        started: When.
        ended: When.
        visible: From when squeue shows it.
        eligible: From when it may start.
        runner: Process that runs it.
        runner_born: Start time of that process, so that a number used again is not taken for it.
        cancelled_by: User id of who cancelled it.
        again: 1 when it shall be queued again once its processes have ended.
    """

    id: int
    name: str
    comment: str
    user: str
    partition: str
    account: str
    qos: str
    nodes: int
    cpus: int
    limit_s: int
    workdir: str
    output: str
    error: str
    environment: str
    arguments: str
    dependency: str
    kill_on_invalid_dep: int
    requeue: int
    hold: int
    state: str
    reason: str
    node_list: str
    exit_code: int
    signal: int
    restarts: int
    submitted: float
    started: float | None
    ended: float | None
    visible: float
    eligible: float
    runner: int | None
    runner_born: str | None
    cancelled_by: int | None
    again: int

    def elapsed(self, now: float) -> int:
        """Seconds that it has run."""
        if self.started is None:
            return 0
        return max(0, int((self.ended if self.ended is not None else now) - self.started))


_COLUMNS = ", ".join(field.name for field in fields(Job))


class Store:
    """Jobs and knobs. Every method is one transaction, so any process may end at any point.

    Args:
        place: The cluster's folder.
    """

    def __init__(self, place: Place) -> None:
        self.place = place
        self._database = sqlite3.connect(place.database, timeout=30, isolation_level=None)
        self._database.row_factory = sqlite3.Row
        self._database.execute("PRAGMA journal_mode = WAL")
        self._database.execute("PRAGMA synchronous = NORMAL")
        self._database.executescript(_SCHEMA)

    def close(self) -> None:
        """Close the file."""
        self._database.close()

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        self._database.execute("BEGIN IMMEDIATE")
        try:
            yield self._database
        except BaseException:
            self._database.execute("ROLLBACK")
            raise
        self._database.execute("COMMIT")

    def add(self, values: Mapping[str, Any], script: bytes) -> int:
        """Accept a job: its row, its script, and a line of the independent record.

        Returns:
            Its id.
        """
        with self._transaction() as database:
            last = database.execute("SELECT max(id) FROM jobs").fetchone()[0]
            job_id = FIRST_JOB_ID if last is None else last + 1
            row = {"id": job_id, **values}
            names = ", ".join(row)
            marks = ", ".join("?" for _ in row)
            database.execute(f"INSERT INTO jobs ({names}) VALUES ({marks})", tuple(row.values()))
            spool = self.place.spool(job_id)
            spool.mkdir(parents=True)
            (spool / "script").write_bytes(script)
            record(self.place.accepted, {"job_id": job_id, "name": values["name"], "comment": values["comment"]})
        return int(job_id)

    def jobs(self, where: str = "1", arguments: tuple[Any, ...] = ()) -> list[Job]:
        """Jobs in order of their ids.

        Args:
            where: Condition in SQL, with ? for values.
            arguments: The values.
        """
        rows = self._database.execute(f"SELECT {_COLUMNS} FROM jobs WHERE {where} ORDER BY id", arguments)
        return [Job(*row) for row in rows]

    def job(self, job_id: int) -> Job | None:
        """One job."""
        found = self.jobs("id = ?", (job_id,))
        return found[0] if found else None

    def change(self, job_id: int, condition: str = "1", /, **values: Any) -> bool:
        """Change fields of a job, if it meets a condition at this moment.

        Returns:
            Whether it did.
        """
        names = ", ".join(f"{name} = ?" for name in values)
        with self._transaction() as database:
            found = database.execute(
                f"UPDATE jobs SET {names} WHERE id = ? AND ({condition})", (*values.values(), job_id)
            )
        return found.rowcount == 1

    def knobs(self) -> dict[str, Any]:
        """All knobs that are set."""
        rows = self._database.execute("SELECT name, value FROM knobs")
        return {row["name"]: json.loads(row["value"]) for row in rows}

    def turn(self, name: str, value: Any) -> None:
        """Set a knob; None takes it back."""
        with self._transaction() as database:
            if value is None:
                database.execute("DELETE FROM knobs WHERE name = ?", (name,))
            else:
                database.execute("INSERT OR REPLACE INTO knobs VALUES (?, ?)", (name, json.dumps(value)))

    def take_fault(self) -> dict[str, Any] | None:
        """The next fault of a submission, used up by this call; None when none is due."""
        with self._transaction() as database:
            row = database.execute("SELECT value FROM knobs WHERE name = 'submit'").fetchone()
            fault: dict[str, Any] | None = json.loads(row["value"]) if row else None
            if fault is None:
                return None
            left = int(fault.get("times", 1)) - 1
            if left > 0:
                value = json.dumps({**fault, "times": left})
                database.execute("UPDATE knobs SET value = ? WHERE name = 'submit'", (value,))
            else:
                database.execute("DELETE FROM knobs WHERE name = 'submit'")
        return fault


def record(path: Path, entry: Mapping[str, Any]) -> None:
    """Append one line to an independent record, on disk before this returns."""
    line = json.dumps({**entry, "at": time.time()}, sort_keys=True) + "\n"
    file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        os.write(file, line.encode())
        os.fsync(file)
    finally:
        os.close(file)


def read_record(path: Path) -> list[dict[str, Any]]:
    """The lines of an independent record."""
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return []
    return [json.loads(line) for line in text.splitlines()]


def new_job(now: float, **values: Any) -> dict[str, Any]:
    """The fields of a job that was just submitted; `values` are those that it says itself."""
    return {
        "comment": "",
        "user": "",
        "partition": next(iter(PARTITIONS)),
        "account": ACCOUNT,
        "qos": QOS,
        "nodes": 1,
        "cpus": 1,
        "error": "",
        "dependency": "",
        "kill_on_invalid_dep": 0,
        "requeue": 1,
        "hold": 0,
        "state": "PENDING",
        "reason": "None",
        "node_list": "",
        "exit_code": 0,
        "signal": 0,
        "restarts": 0,
        "submitted": now,
        "visible": now,
        "eligible": now,
        "again": 0,
        **values,
    }
