"""Plots show the numbers of the result files, count what is missing, and never invent or interpret."""

from __future__ import annotations

import json
import math
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from textual.pilot import Pilot

from console.app import GonogoApp
from console.cli import main
from console.plot_reading import PlotReader
from console.release.curves import LINE, Point, plots_of
from console.session import open_session
from console.widgets.ink import cells, plain
from console.widgets.plot_rows import dots, rows, words
from tests.console.driving import Console
from tests.console.runs import Run
from tests.plots import results

NOW = datetime(2026, 8, 12, 12, 0, tzinfo=UTC)
NUMBERS = st.one_of(
    st.floats(), st.integers(), st.none(), st.booleans(), st.text(max_size=5), st.lists(st.integers(), max_size=2)
)


def test_a_training_is_drawn_with_its_gaps() -> None:
    log = results.training()
    log["log_history"][3]["loss"] = math.nan
    log["log_history"][4]["loss"] = "1.5"
    del log["log_history"][5]["loss"]
    loss, accuracy, norm = plots_of(json.dumps(log).encode())[0]
    assert (loss.title, loss.shape, loss.gaps) == ("Training loss", LINE, 3)
    assert (accuracy.gaps, norm.gaps) == (0, 0)
    assert loss.curves[0].points[0] == Point(5.0, 4.6 / (1 + 5 / 40))


def test_a_benchmark_is_drawn_as_it_stands_in_the_file() -> None:
    found = {plot.title: plot for plot in plots_of(json.dumps(results.benchmark()).encode())[0]}
    throughput = found["Throughput, A without and B with the drafter"]
    assert [(curve.name, [point.value for point in curve.points]) for curve in throughput.curves] == [
        ("A", [50.0, 400.0, 1600.0]),
        ("B", [90.0, 720.0, 2880.0]),
    ]
    positions = found["Acceptance by position"].curves[0]
    assert [point.value for point in positions.points] == [0.84, 0.65, 0.5, 0.39]
    assert [point.value for point in found["Speedup, B over A"].curves[0].points] == [1.8] * 3


def test_evaluations_and_summaries_are_no_gaps() -> None:
    log = results.training(4)
    log["log_history"] += [{"step": 20, "eval_loss": 1.0}, {"step": 20, "train_runtime": 3.0}]
    assert [plot.gaps for plot in plots_of(json.dumps(log).encode())[0]] == [0, 0, 0]


@pytest.mark.parametrize("data", [b"", b"{", b"[]", b'{"log_history": 3}', b'{"arms": {"A": [], "B": {"points": 1}}}'])
def test_what_cannot_be_read_draws_nothing(data: bytes) -> None:
    plots, problem = plots_of(data)
    assert plots == []
    assert bool(problem) is (not data.startswith(b"{") or data == b"{")


@settings(deadline=None)
@given(values=st.lists(st.dictionaries(st.sampled_from(["step", "loss", "accuracy"]), NUMBERS), max_size=30))
def test_no_log_breaks_a_plot(values: list[dict[str, Any]]) -> None:
    """Every entry with a key of the training is a value or a gap in each plot, whatever stands there."""
    plots, problem = plots_of(json.dumps({"log_history": values}).encode("utf-8", "surrogatepass"))
    own = [row for row in values if "loss" in row or "accuracy" in row]
    for plot in plots:
        assert not problem
        known = sum(len(curve.values) for curve in plot.curves)
        assert known + plot.gaps == len(own)


@settings(deadline=None)
@given(
    values=st.lists(st.one_of(st.none(), st.floats(allow_nan=False, allow_infinity=False)), max_size=40),
    width=st.integers(1, 60),
    height=st.integers(1, 12),
)
def test_the_canvas_holds_whatever_is_drawn(values: list[float | None], width: int, height: int) -> None:
    points = [Point(float(place), value) for place, value in enumerate(values)]
    drawn = dots(points, width, height)
    assert [len(row) for row in drawn] == [width] * height
    assert any(row.strip() for row in drawn) is any(value is not None for value in values)


def test_nothing_is_drawn_across_a_gap() -> None:
    """Left and right of the gap there are dots, and between them none."""
    points = [Point(0, 1.0), Point(1, 1.0), Point(5, None), Point(9, 1.0), Point(10, 1.0)]
    (row,) = dots(points, 20, 1)
    assert row[:2].strip()
    assert row[-2:].strip()
    assert not row[4:16].strip()


def _read(run: Run) -> list[Any]:
    return PlotReader(run.path).read(run.writer.state)


def test_words_say_what_the_picture_shows(tmp_path: Path) -> None:
    run = results.measured(tmp_path / "run")
    told = list(words(_read(run), NOW))
    text = "\n".join(told)
    assert "Training loss over optimizer step, from results/003-train-1/regression_check.json, SHA-256 " in text
    assert "39 values, 1 gap: missing or not finite; first 4.089 at 5, last" in text
    assert "Throughput, A without and B with the drafter B, concurrency 32: 2880 tokens/s" in text
    run.close()


@pytest.mark.parametrize("width", [60, 78, 120, 200])
def test_rows_fit(tmp_path: Path, width: int) -> None:
    run = results.measured(tmp_path / "run")
    assert all(cells(line) <= width for line in rows(_read(run), NOW, width, 8))
    run.close()


def test_other_bytes_than_those_of_the_log_are_not_drawn(tmp_path: Path) -> None:
    run = results.measured(tmp_path / "run")
    path = run.path / "results/003-train-1/regression_check.json"
    path.write_bytes(path.read_bytes().replace(b"2.0", b"0.1"))
    shown = "\n".join(plain(line) for line in rows(_read(run), NOW, 160, 8))
    assert "Training loss" not in shown
    assert "regression_check.json: holds other bytes than those that the log says were read" in shown
    assert "Speedup" in shown
    run.close()


def test_a_copy_outside_of_the_results_is_not_followed(tmp_path: Path) -> None:
    run = results.measured(tmp_path / "run")
    path = run.path / "results/003-train-1/regression_check.json"
    moved = tmp_path / "elsewhere.json"
    path.rename(moved)
    path.symlink_to(moved)
    assert any("leads out of results/" in drawn.problem for drawn in _read(run))
    run.close()


def test_the_command_prints_words_into_a_pipe(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = results.measured(tmp_path / "run")
    assert main(["plot", str(run.path)]) == 0
    assert "Speedup, B over A, concurrency 8: 1.8 times" in capsys.readouterr().out
    (run.path / "results/003-train-1/regression_check.json").unlink()
    assert main(["plot", str(run.path), "--plain"]) == 1
    assert "Not drawn: results/003-train-1/regression_check.json" in capsys.readouterr().out
    run.close()


SIZES = [(80, 24), (120, 36), (200, 60)]


@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]}x{size[1]}")
@pytest.mark.parametrize("theme", ["gonogo-dark", "gonogo-light", "no-colour"])
def test_picture(
    tmp_path: Path, snap_compare: Any, monkeypatch: pytest.MonkeyPatch, size: tuple[int, int], theme: str
) -> None:
    if theme == "no-colour":
        monkeypatch.setenv("NO_COLOR", "1")
    run = results.measured(tmp_path / "run")
    session = open_session(run.path, clock=run.time.clock)
    app = GonogoApp(session, theme="" if theme == "no-colour" else theme)
    app.animation_level = "none"

    async def settle(pilot: Pilot[int]) -> None:
        driven = Console(app, pilot, run)
        await driven.until(lambda: session.snapshot.log.read, "the log is read")
        await driven.until(lambda: len(app.screen.query("TooSmall")) == 1, "the board is complete")
        await driven.press("p")
        await driven.until(lambda: "Training loss" in driven.screen_text, "the plots are drawn")
        await driven.until(lambda: len(app.screen.query("TooSmall")) == 1, "the screen is complete")
        app.clear_notifications()
        await driven.still()

    try:
        assert snap_compare(app, terminal_size=size, run_before=settle)
    finally:
        session.close()
        run.close()
