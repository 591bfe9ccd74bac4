"""A desk decides and asks; a session without one cannot."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from console.release import folder, queue, requests
from console.session import Desk, Session, open_session
from tests.console import runs


def attributes(thing: object, seen: set[int]) -> list[object]:
    """Everything that can be reached from an object of ours through attributes and containers."""
    if id(thing) in seen or isinstance(thing, type | str | bytes | int | float | Path) or thing is None:
        return []
    seen.add(id(thing))
    inner: list[object] = []
    if isinstance(thing, dict):
        inner = [*thing.keys(), *thing.values()]
    elif isinstance(thing, list | tuple | set | frozenset):
        inner = list(thing)
    elif type(thing).__module__.startswith("console"):
        names = [name for kind in type(thing).__mro__ for name in getattr(kind, "__slots__", ())]
        names += list(getattr(thing, "__dict__", {}))
        inner = [getattr(thing, name) for name in names if isinstance(name, str) and hasattr(thing, name)]
    return [thing, *(found for item in inner for found in attributes(item, seen))]


def test_a_read_only_session_holds_nothing_that_could_write(tmp_path: Path) -> None:
    run = runs.waiting(tmp_path / "run")
    session = open_session(run.path, read_only=True, clock=run.time.clock)
    session.snapshot = session.poll()
    reached = attributes(session, set())
    assert len(reached) > 50, "the walk sees the snapshot"
    assert not [item for item in reached if isinstance(item, Desk | folder.Lock)]
    assert session.desk is None
    assert session.read_only_because == "opened to look on"
    # The same walk finds the desk of a session that has one.
    with_desk = open_session(run.path, clock=run.time.clock)
    assert [item for item in attributes(with_desk, set()) if isinstance(item, Desk)]
    assert [item for item in attributes(with_desk, set()) if isinstance(item, folder.Lock)]
    with_desk.close()
    run.close()


HOLD = """
import sys
from pathlib import Path
from console.release import folder
lock = folder.Lock(Path(sys.argv[1]), "console")
print("held", flush=True)
sys.stdin.read()
"""


def test_the_second_console_looks_on_and_says_who_has_the_first(tmp_path: Path) -> None:
    run = runs.waiting(tmp_path / "run")
    command = [sys.executable, "-c", HOLD, str(run.path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdin is not None
        assert other.stdout is not None
        assert other.stdout.readline() == "held\n"
        session = open_session(run.path, clock=run.time.clock)
        assert session.desk is None
        assert f"process {other.pid} has the console" in session.read_only_because
        other.stdin.close()
    later = open_session(run.path, clock=run.time.clock)
    assert later.desk is not None
    later.close()
    run.close()


def test_a_folder_that_cannot_be_written_to_is_looked_at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = runs.waiting(tmp_path / "run")
    run.close()

    def refuse(*args: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(folder, "Lock", refuse)
    session = open_session(run.path)
    assert session.desk is None
    assert "cannot be written to (Permission denied)" in session.read_only_because


def test_a_desk_writes_who_decided_what_on_which_bytes_and_after_seeing_what(tmp_path: Path) -> None:
    run = runs.waiting(tmp_path / "run")
    desk = Desk(run.path, run.time.clock)
    proposal = queue.load(run.path, "003-train-1")
    desk.approve("003-train-1", proposal.digest, shown_s=12)
    decision = queue.decision_of(proposal)
    assert decision is not None
    assert (decision.decision, decision.digest, decision.operator) == ("approved", proposal.digest, folder.account())
    assert (decision.shown_s, decision.seen_to_end) == (12, True)
    assert os.uname().nodename in decision.terminal
    with pytest.raises(queue.AlreadyDecided):
        desk.reject("003-train-1", proposal.digest, "too late", shown_s=1, seen_to_end=False)
    desk.close()
    run.close()


def test_a_desk_refuses_other_bytes_than_those_that_were_shown(tmp_path: Path) -> None:
    run = runs.waiting(tmp_path / "run")
    desk = Desk(run.path, run.time.clock)
    with pytest.raises(queue.QueueError, match="not the one that was shown"):
        desk.approve("003-train-1", "0" * 64, shown_s=12)
    desk.close()
    run.close()


def test_a_desk_asks(tmp_path: Path) -> None:
    run = runs.running(tmp_path / "run")
    desk = Desk(run.path, run.time.clock)
    desk.ask("cancel", "wrong queue", "003-train-1")
    waiting, odd = requests.pending(run.path)
    assert odd == []
    assert [(item.verb, item.id, item.text, item.operator) for item in waiting] == [
        ("cancel", "003-train-1", "wrong queue", folder.account())
    ]
    desk.close()
    run.close()


def test_a_session_without_a_desk_says_why(tmp_path: Path) -> None:
    run = runs.fresh(tmp_path / "run")
    assert Session(run.path, None).read_only_because
