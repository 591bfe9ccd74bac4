"""The history: appended once by run id, never changed, read back exact, shown with shifts marked."""

from __future__ import annotations

import json
import sqlite3
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from console.cli import main
from console.release import history
from console.release.history import HistoryError, Measurement, Release
from console.release.history_adding import remember, summarize
from console.release.history_runs import read_runs
from console.release.history_view import lines, series_of
from console.release.state import GateRecord, ReleaseVerdict, RunState, Stage

MODEL = "Qwen/Qwen3-8B"
RATES = (0.6102, 0.6115, 0.6084, 0.6131, 0.3602, 0.3611)


def release(i: int, rate: float, **more: Any) -> Release:
    measured = (
        Measurement("bench", "acceptance_rate_c1", rate, "a" * 64),
        Measurement("bench", "acceptance_length_c1", 1 + 3 * rate, "a" * 64),
        Measurement("bench", "speedup_c1", 1.4 if rate > 0.5 else 1.1, "a" * 64),
        Measurement("accuracy", "accuracy", 0.95, "b" * 64),
    )
    made = Release(
        f"run-{i}",
        f"{i:064x}",
        MODEL,
        "dflash2",
        3,
        "c" * 64,
        "east",
        f"2026-07-0{i + 1}",
        "DRAFTER_READY",
        "every gate passed",
        measured,
    )
    return replace(made, **more)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "data" / "history.sqlite"
    for i, rate in enumerate(RATES):
        assert history.add(path, release(i, rate))
    return path


def test_what_was_added_is_read_back_exactly(file: Path) -> None:
    assert history.read(file) == [release(i, rate) for i, rate in enumerate(RATES)]
    assert history.read(file, "other") == []
    assert history.models(file) == [(MODEL, 6, "2026-07-06")]


def test_a_release_is_added_once_and_another_run_of_its_name_is_refused(file: Path) -> None:
    before = file.read_bytes()
    assert history.add(file, release(3, RATES[3])) is False
    with pytest.raises(HistoryError, match="holds another run run-3"):
        history.add(file, release(3, RATES[3], head="f" * 64))
    assert len(history.read(file)) == 6
    assert file.read_bytes() == before


def test_half_a_release_is_never_added(file: Path) -> None:
    twice = release(6, 0.6).measured[0]
    with pytest.raises(HistoryError):
        history.add(file, release(6, 0.6, measured=(twice, twice)))
    with pytest.raises(HistoryError, match="not finite"):
        history.add(file, release(7, 0.6, measured=(replace(twice, value=float("nan")),)))
    assert [one.run_id for one in history.read(file)] == [f"run-{i}" for i in range(6)]


def test_many_writers_at_once_lose_nothing(tmp_path: Path) -> None:
    path = tmp_path / "history.sqlite"
    added: list[bool] = []

    def write(i: int) -> None:
        added.append(history.add(path, release(i % 8, 0.6)))

    threads = [threading.Thread(target=write, args=(i,)) for i in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(added) == [False] * 8 + [True] * 8
    assert len(history.read(path)) == 8


def test_text_that_no_file_can_hold_is_written_out(file: Path) -> None:
    history.add(file, release(6, 0.6, why="half a pair: \ud800", day="2026-07-07"))
    assert history.read(file)[-1].why == "half a pair: \\ud800"


def test_other_files_are_refused_with_one_line(tmp_path: Path, file: Path) -> None:
    with pytest.raises(HistoryError, match="no history yet"):
        history.read(tmp_path / "none.sqlite")
    text = tmp_path / "text.sqlite"
    text.write_bytes(b"not a database, but long enough to be taken for one" * 20)
    other = tmp_path / "other.sqlite"
    with sqlite3.connect(other) as database:
        database.execute("CREATE TABLE x (y)")
    newer = tmp_path / "newer.sqlite"
    newer.write_bytes(file.read_bytes())
    with sqlite3.connect(newer) as database:
        database.execute("PRAGMA user_version = 2")
    for path in (text, other, newer):
        before = path.read_bytes()
        for use in (history.read, lambda path: history.add(path, release(0, 0.6))):
            with pytest.raises(HistoryError) as caught:
                use(path)
            assert str(path) in str(caught.value)
            assert "\n" not in str(caught.value)
        assert path.read_bytes() == before


def test_the_shift_is_marked_where_it_happened_and_only_there(file: Path) -> None:
    (series,) = series_of(history.read(file))
    for measure in ("acceptance_rate", "acceptance_length", "speedup"):
        assert [i for i, point in enumerate(series.points[measure]) if point.shift is not None] == [4], measure
    assert all(point.shift is None for point in series.points["accuracy"])
    shown = "\n".join(lines(MODEL, [series]))
    assert "SHIFT: acceptance rate fell from 61.1% to 36.0% (2026-07-05, run-4; bench: acceptance_rate_c1)" in shown
    assert "36.0% v" in shown
    assert "accuracy fell" not in shown
    plot = [line for line in shown.splitlines() if "|" in line][:5]
    assert plot[0].endswith("|   o") or "o" in plot[0]
    assert plot[-1].rstrip().endswith("vo")


def test_only_what_compares_is_compared(file: Path) -> None:
    history.add(file, release(6, 0.9, draft_tokens=1))
    history.add(file, release(7, 0.2, cluster="west"))
    made = series_of(history.read(file))
    assert [(one.draft_tokens, one.cluster, len(one.releases)) for one in made] == [
        (3, "east", 6),
        (1, "east", 1),
        (3, "west", 1),
    ]
    assert [point.shift for one in made[1:] for point in one.points["acceptance_rate"]] == [None, None]


def test_runs_of_a_history_leave_out_what_was_not_ready(file: Path) -> None:
    history.add(file, release(6, 0.59, verdict="ANOMALOUS", day="2026-07-07"))
    runs = read_runs(file)
    assert [run.healthy for run in runs] == [True] * 6 + [False]
    assert runs[6].why == "its verdict is ANOMALOUS"
    assert float(runs[0].values["acceptance_rate"]) == 0.6102


def test_the_command_prints_lists_and_proposes(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    at = ["--file", str(file)]
    assert main(["history", *at]) == 0
    assert f"{MODEL}  6 releases, the last on 2026-07-06" in capsys.readouterr().out
    assert main(["history", MODEL, *at]) == 0
    assert "SHIFT: speedup at concurrency 1 fell from 1.400 to 1.100" in capsys.readouterr().out
    assert main(["history", MODEL, *at, "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert [one["acceptance_rate"] for one in printed["releases"]] == list(RATES)
    assert [one["run_id"] for one in printed["shifts"]] == ["run-4"] * 3
    assert main(["history", "Qwen/Qwen3-8b", *at]) == 2
    assert f"did you mean {MODEL}?" in capsys.readouterr().err
    assert main(["history", MODEL, *at, "--cluster", "west"]) == 2
    assert main(["history", MODEL, "folder", *at]) == 2
    capsys.readouterr()
    assert main(["catalog", "propose", str(file)]) == 0
    assert "acceptance_rate: 0.593" in capsys.readouterr().out


def test_names_from_outside_act_on_no_terminal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "h.sqlite"
    hostile = "m\x1b[2J\u202e"
    for i in range(2):
        history.add(path, release(i, 0.6, model=hostile, cluster=hostile, run_id=f"{hostile}{i}", drafter=hostile))
    assert main(["history", hostile, "--file", str(path)]) == 0
    assert main(["history", "--file", str(path)]) == 0
    assert not set("\x1b\u202e") & set(capsys.readouterr().out)


def gate(name: str, **facts: Any) -> GateRecord:
    return GateRecord(name, f"{name}-1", True, None, "", "d" * 64, "2026-07-01T00:00:00.000000Z", facts=facts)


def test_a_release_is_summarized_by_the_last_word_of_each_gate() -> None:
    stages = (
        Stage(
            "train", gates=(gate("smoke", acceptance_rate=0.2), gate("smoke", acceptance_rate=0.5, producer="smoke.py"))
        ),
        Stage("bench", gates=(gate("bench", speedup_c1=1.4, drafted=True, odd=None),)),
    )
    state = RunState(
        run_id="r",
        inputs={"target": MODEL, "algorithm": "dflash2", "cluster": "east"},
        stages=stages,
        verdict=ReleaseVerdict.DRAFTER_READY,
        updated_at="2026-07-01T23:59:59.000000Z",
        head="e" * 64,
    )
    made = summarize(state, [], Path("r"))
    assert made.day == "2026-07-01"
    assert [(one.gate, one.name, one.value) for one in made.measured] == [
        ("smoke", "acceptance_rate", 0.5),
        ("bench", "speedup_c1", 1.4),
    ]
    with pytest.raises(HistoryError, match="no verdict yet"):
        summarize(replace(state, verdict=None), [], Path("r"))


def test_remembering_never_raises_and_says_what_became_of_it(tmp_path: Path) -> None:
    said = remember(tmp_path / "none", tmp_path / "h.sqlite")
    assert said.startswith("not added to the history: ")
    assert f"gonogo history add {tmp_path / 'none'}" in said
    assert not (tmp_path / "h.sqlite").exists()


def test_the_place_of_the_history() -> None:
    assert history.default_path({"GONOGO_HISTORY": "/x/h.sqlite"}) == Path("/x/h.sqlite")
    assert history.default_path({}).name == "history.sqlite"
