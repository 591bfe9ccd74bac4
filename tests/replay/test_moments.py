"""Any moment of a log is the fold of its entries up to there, however the way there was shortened."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from console.release import journal
from console.release.events import apply
from console.release.state import RunState
from console.replay import history
from console.replay.history import fold_all
from console.replay.marks import KINDS
from console.replay.moment import READING, moment
from console.replay.player import Player
from console.replay.recording import OwnRecording, open_recording
from console.replay.session import ReplaySession
from tests.replay import logs


def _opened(place: Path) -> OwnRecording:
    recording = open_recording(place)
    assert isinstance(recording, OwnRecording)
    return recording


def _each_state(place: Path) -> list[RunState]:
    """The states of a log by the plain way: read strictly, folded entry by entry."""
    states = [RunState()]
    for entry in journal.read_log(place):
        states.append(apply(states[-1], entry))
    return states


@settings(max_examples=25, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    count=st.integers(1, 260),
    watching=st.sampled_from([0.0, 0.5, 0.9, 1.0]),
    step=st.sampled_from([1, 3, 17, 150]),
    order=st.randoms(use_true_random=False),
)
def test_a_jump_is_a_replay(
    tmp_path_factory: pytest.TempPathFactory, seed: int, count: int, watching: float, step: int, order: random.Random
) -> None:
    """In whatever order the moments are visited, and however far apart the checkpoints lie."""
    place = logs.write(tmp_path_factory.mktemp("log"), count, seed, watching=watching)
    wanted = _each_state(place)
    recording = _opened(place)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(history, "STEP", step)
        places = list(range(len(recording) + 1))
        order.shuffle(places)
        for place_ in places:
            assert recording.state(place_) == wanted[place_], place_
            if order.random() < 0.2:
                recording.prepare()
    assert fold_all(recording.entries) == wanted[-1]
    recording.close()


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10_000), count=st.integers(1, 150), chunk=st.integers(1, 5000))
def test_the_index_knows_what_the_log_says(
    tmp_path_factory: pytest.TempPathFactory, seed: int, count: int, chunk: int
) -> None:
    """However the file falls into chunks, entries, times, stages and marks are those of the strict reader."""
    place = logs.write(tmp_path_factory.mktemp("log"), count, seed)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("console.replay.index.CHUNK_BYTES", chunk)
        recording = _opened(place)
    entries = journal.read_log(place)
    assert list(recording.entries) == entries
    assert [recording.stage_of(position) for position in range(count)] == [entry.stage for entry in entries]
    assert [recording.index.event(position) for position in range(count)] == [e.data["event"] for e in entries]
    human = [position for position, entry in enumerate(entries) if entry.kind is journal.Kind.HUMAN_INTERVENTION]
    assert list(recording.marks.of("intervention")) == human
    approved = [position for position, entry in enumerate(entries) if entry.data.get("decision") == "approved"]
    assert list(recording.marks.of("approval")) == approved
    assert list(recording.times) == sorted(recording.times)
    assert not recording.problem
    recording.close()


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 1000), moves=st.lists(st.sampled_from([*KINDS]), max_size=30), forward=st.booleans())
def test_jumps_stop_at_what_they_name(
    tmp_path_factory: pytest.TempPathFactory, seed: int, moves: list[str], forward: bool
) -> None:
    """A jump to the next or previous mark of a kind comes to an entry of that kind, or moves nothing."""
    recording = _opened(logs.write(tmp_path_factory.mktemp("log"), 120, seed, watching=0.6))
    player = Player(recording)
    if not forward:
        player.to_end()
    for kind in moves:
        before = player.count
        if player.jump(kind, forward):
            assert (player.count > before) is forward
            assert player.count - 1 in recording.marks.of(kind)
        else:
            assert player.count == before
    recording.close()


def test_an_edit_is_found_after_the_first_frame(tmp_path: Path) -> None:
    """Until every byte was compared the chain is not called checked; what was changed is named then."""
    place = logs.write(tmp_path / "log", 400)
    path = place / journal.LOG_NAME
    data = path.read_bytes()
    # In the readable part: the index, which looks at records only, cannot see it.
    path.write_bytes(data.replace(b"Slurm says RUNNING", b"Slurm says running", 1))
    recording = _opened(place)
    assert not recording.checked
    assert not recording.problem
    while not recording.work():
        pass
    assert recording.checked
    assert "the readable part was changed" in recording.problem
    assert 0 < recording.sound < len(recording)
    recording.close()


def test_a_removed_entry_is_seen_at_once(tmp_path: Path) -> None:
    """The index compares the links of the chain on its way."""
    place = logs.write(tmp_path / "log", 60)
    path = place / journal.LOG_NAME
    head, *entries = path.read_bytes().split(b"## ")
    path.write_bytes(b"## ".join([head, *entries[:30], *entries[31:]]))
    recording = _opened(place)
    assert "entry 31: it does not follow the entry before it" in recording.problem
    assert recording.sound == 30
    recording.close()


def test_a_moment_that_is_not_reached_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Right after a long log was opened its end can be shown at once; the board follows, and never shows another."""
    monkeypatch.setattr(history, "STEP", 5)
    place = logs.write(tmp_path / "log", 300, watching=0.2)
    recording = _opened(place)
    session = ReplaySession(recording)
    session.player.to_end()
    session.show()
    assert set(session.snapshot.unrecorded.values()) == {READING}
    assert len(session.snapshot.log) == 300
    assert session.snapshot.run.run_id == "long"
    assert session.snapshot.run.attempts == ()
    assert not session.behind
    while not recording.prepare():
        pass
    assert session.behind
    session.show()
    assert not session.behind
    assert not session.snapshot.unrecorded
    assert session.snapshot.run == _each_state(place)[-1]
    assert moment(recording, 300).run == session.snapshot.run
    recording.close()


def test_what_is_added_later_is_no_part_of_a_replay(tmp_path: Path) -> None:
    """A replay is of the log as it was when it was opened; a torn end is told and not shown."""
    place = logs.write(tmp_path / "log", 20)
    path = place / journal.LOG_NAME
    whole = path.read_bytes()
    path.write_bytes(whole + b"## 21 \xc2\xb7 half")
    recording = _opened(place)
    path.write_bytes(whole + whole[:40])
    assert len(recording) == 20
    assert recording.torn
    assert recording.state(20) == _each_state(logs.write(tmp_path / "again", 20))[-1]
    recording.close()
