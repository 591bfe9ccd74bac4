"""Output is followed for whoever looks and for nobody else, kept in bounds, and gone on with where it was left."""

from __future__ import annotations

import asyncio
import dataclasses
import json
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, cast

import pytest

from backends.hosts.local import LocalHost
from backends.watcher.watcher import ResultWatcher
from console.release import leases, serving_outputs
from console.release.leases import Lease, Leases
from console.release.live import Live
from console.release.output_paths import UnknownPath, is_apart, path_of
from console.release.serving_outputs import Followed, serve_outputs
from console.release.spool import Kept, Segment, Spool, place, read_kept
from console.release.state import ASKED
from console.release.writer import RunWriter
from tests.release.making import RUN_ID, decide, make_job, new_run, propose, submit

NOW = "2026-08-12T09:30:00Z"


@pytest.fixture
async def watcher() -> AsyncIterator[ResultWatcher]:
    made = ResultWatcher(LocalHost(), interval=0.05, python=sys.executable)
    yield made
    await made.close()


def test_the_output_lies_where_the_exact_job_puts_it() -> None:
    job = make_job()
    assert path_of(job, "4711", "stdout") == f"{job.job_dir}/slurm-4711.out" == path_of(job, "4711", "stderr")
    assert not is_apart(job, "4711")
    apart = make_job(extra_options=("--error=logs/%x-%j.err", "-o", "/data/%u/%8j%%.out"))
    assert path_of(apart, "4711", "stdout") == "/data/alice/00004711%.out"
    assert path_of(apart, "4711", "stderr") == f"{job.job_dir}/logs/{job.job_name}-4711.err"
    assert is_apart(apart, "4711")
    asked = make_job(stage=ASKED, options=("--chdir=/scratch/x", "-ofirst", "--output", "last.%A"))
    assert path_of(asked, "12", "stdout") == "/scratch/x/last.12"
    kind, name = job.results[0]
    assert path_of(asked, "12", f"result-{kind}") == f"{job.job_dir}/{name}"


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--output=%N.out",), "%N, which only the job knows"),
        (("--output=\\%j.out",), "backslash"),
        (("--array=0-3",), "array"),
        (("--no-such-option",), "cannot be read"),
    ],
)
def test_where_it_cannot_be_told_nothing_is_guessed(options: tuple[str, ...], words: str) -> None:
    with pytest.raises(UnknownPath, match=words):
        path_of(make_job(extra_options=options), "1", "stdout")


def test_an_unknown_kind_of_result_is_refused() -> None:
    with pytest.raises(UnknownPath, match="no result of the kind secrets"):
        path_of(make_job(), "1", "result-secrets")


def test_somebody_looks_for_as_long_as_the_file_changes(tmp_path: Path) -> None:
    clock = [100.0]
    lease = Lease("001-train-1", "stdout")
    leases.write(tmp_path, lease, 1)
    found = Leases(tmp_path, lambda: clock[0])
    assert found.current() is None, "it may be left over from a console that is gone"
    leases.write(tmp_path, lease, 2)
    assert found.current() == lease
    clock[0] += leases.FRESH_SECONDS
    assert found.current() == lease
    clock[0] += 0.1
    assert found.current() is None, "nobody beats any more"
    leases.write(tmp_path, lease._replace(what="stderr"), 3)
    assert found.current() == lease._replace(what="stderr")
    leases.end(tmp_path)
    leases.end(tmp_path)
    assert found.current() is None
    for odd in (b"", b"[]", b"{}", b'{"id": 1, "what": "x"}', b'{"id": "../x", "what": "stdout"}', b"[" * 10_000):
        (tmp_path / leases.NAME).write_bytes(odd)
        assert found.current() is None


def test_a_spool_is_bounded_and_says_what_it_gave_up(tmp_path: Path) -> None:
    spool = Spool(tmp_path / "outputs" / "a", "stdout", "/out", most=1000)
    spool.add(NOW, b"", size=5000, inode=7, segment=Segment(0, 4000, "first look", 4000))
    for number in range(30):
        spool.add(NOW, b"%099d\n" % number, size=5000, inode=7, segment=None)
    kept = read_kept(tmp_path / "outputs" / "a", "stdout")
    assert kept is not None
    data = (tmp_path / "outputs" / "a" / kept.file).read_bytes()
    assert len(data) <= 1000
    assert data.endswith(b"%099d\n" % 29)
    assert kept.trimmed + len(data) == 3000
    assert kept.segments == (Segment(0, 4000 + kept.trimmed, "trimmed", kept.segments[0].skipped),)
    assert len(list((tmp_path / "outputs" / "a").glob("stdout.[0-9]*"))) == 1, "the older bytes are gone from disk"
    again = Spool(tmp_path / "outputs" / "a", "stdout", "/out", most=1000)
    assert again.known_end(10) == (7000, data[-10:])
    other = Spool(tmp_path / "outputs" / "a", "stdout", "/another")
    assert other.known_end(10) == (0, b"")


def test_a_description_that_is_none_is_no_description(tmp_path: Path) -> None:
    spool = Spool(tmp_path / "a", "stdout", "/out")
    good = dataclasses.asdict(spool.kept)
    odd: list[Any] = [b"", b"[]", b"\xff", {**good, "file": "../../secret"}, {**good, "size": "1"}, {**good, "x": 1}]
    odd += [{**good, "segments": [{"at": -1, "offset": 0, "why": "", "skipped": 0}]}, {**good, "segments": 3}]
    for data in odd:
        text = data if isinstance(data, bytes) else json.dumps(data).encode()
        (tmp_path / "a" / "stdout.json").write_bytes(text)
        assert read_kept(tmp_path / "a", "stdout") is None


def whole(folder: Path, what: str) -> tuple[Kept, bytes]:
    kept = read_kept(folder, what)
    assert kept is not None
    return kept, (folder / kept.file).read_bytes()


async def test_what_is_followed_again_goes_on_where_it_was_left(watcher: ResultWatcher, tmp_path: Path) -> None:
    path, folder = tmp_path / "out", tmp_path / "outputs" / "a"
    first = Followed(watcher, folder, "stdout", str(path))
    await first.look(NOW)
    assert whole(folder, "stdout")[0].presence == "missing"
    path.write_bytes(b"one\n")
    await first.look(NOW)
    with path.open("ab") as file:
        file.write(b"two\n")
    await Followed(watcher, folder, "stdout", str(path)).look(NOW)
    kept, data = whole(folder, "stdout")
    assert (data, kept.size, kept.presence) == (b"one\ntwo\n", 8, "seen")
    assert [item.why for item in kept.segments] == ["first look"]
    path.write_bytes(b"anew\n")
    await Followed(watcher, folder, "stdout", str(path)).look(NOW)
    kept, data = whole(folder, "stdout")
    assert data == b"one\ntwo\nanew\n"
    assert kept.segments[-1] == Segment(8, 0, "replaced", 0)


@dataclasses.dataclass
class Conductor:
    """As much of a conductor as following needs."""

    writer: RunWriter
    watcher: ResultWatcher
    live: Live = dataclasses.field(default_factory=Live)
    clock: float = 0.0
    rounds: int = 0
    looks: int = 0

    @property
    def connection(self) -> Conductor:
        return self

    def monotonic(self) -> float:
        self.rounds += 1
        return self.clock

    def now(self) -> str:
        self.looks += 1
        return NOW


async def test_it_is_followed_while_somebody_looks_and_what_was_read_stays(
    watcher: ResultWatcher, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(serving_outputs, "LOOK_SECONDS", 0.005)
    writer = new_run(tmp_path / RUN_ID)
    job = make_job(job_dir=str(tmp_path / "job"))
    proposal = propose(writer, "001-train-1", job)
    decide(writer, proposal)
    submit(writer, proposal, "4711")
    (tmp_path / "job").mkdir()
    output = tmp_path / "job" / "slurm-4711.out"
    output.write_bytes(b"begin\n")
    conductor = Conductor(writer, watcher)
    folder = place(writer.run_dir, "001-train-1")
    serving = asyncio.create_task(serve_outputs(cast(Any, conductor)))
    try:
        await until(lambda: conductor.rounds > 5)
        assert not folder.exists(), "nobody looks"
        leases.write(writer.run_dir, Lease("no-such-attempt", "stdout"), 0)
        leases.write(writer.run_dir, Lease("001-train-1", "stdout"), 1)
        await until(lambda: folder.exists() and whole(folder, "stdout")[1] == b"begin\n")
        output.write_bytes(b"begin\nmore\n")
        await until(lambda: whole(folder, "stdout")[1] == b"begin\nmore\n")
        leases.write(writer.run_dir, Lease("001-train-1", "result-nothing"), 2)
        await until(lambda: (folder / "result-nothing.json").exists())
        kept = read_kept(folder, "result-nothing")
        assert kept is not None
        assert (kept.presence, kept.said) == ("unknown", "the job writes no result of the kind nothing")
        leases.write(writer.run_dir, Lease("001-train-1", "stdout"), 3)
        looks = conductor.looks
        await until(lambda: conductor.looks > looks + 3)
        conductor.clock += 100
        rounds = conductor.rounds
        await until(lambda: conductor.rounds > rounds + 2)
        output.write_bytes(b"begin\nmore\nunseen\n")
        before, rounds = whole(folder, "stdout"), conductor.rounds
        await until(lambda: conductor.rounds > rounds + 5)
        assert whole(folder, "stdout") == before, "nobody looks any more, and what was read stays"
        assert not serving.done()
        # A folder that cannot be written to is a complaint, and no end of the run.
        (folder / "stderr.json").mkdir()
        leases.write(writer.run_dir, Lease("001-train-1", "stderr"), 4)
        await until(lambda: bool(conductor.live.problems))
        assert "the output cannot be kept" in conductor.live.problems[0]
        assert not serving.done()
    finally:
        serving.cancel()
        await asyncio.gather(serving, return_exceptions=True)


async def until(holds: Any) -> None:
    """Wait until something holds; the test's own time limit ends a wait that is in vain."""
    while not holds():
        await asyncio.sleep(0.005)
