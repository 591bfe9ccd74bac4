"""The report: from the log alone, the same bytes each time, and nothing in it that no gate recorded."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings

from console.cli import main
from console.release import folder, journal
from console.release.report import render_report
from console.release.state import RunState, fold
from console.release.writer import RunWriter
from tests.gates import passing
from tests.release.foreign import anything, visible
from tests.release.making import decide, make_job, new_run, propose, submit

Run = Callable[..., tuple[int, str, str]]
MANIFEST, DRAFT, RESULT = "a" * 64, "b" * 64, "c" * 64
FACTS = {
    "tokens_per_s_a_c1": 100.04,
    "tokens_per_s_b_c1": 181.06,
    "speedup_c1": 1.80987,
    "acceptance_length_c1": 2.75049,
    "acceptance_rate_c1": 0.4376,
    "tokens_per_s_a_c8": 420.0,
    "tokens_per_s_b_c8": 510.0,
    "acceptance_length_c8": 2.7,
}


def check(**changes: Any) -> dict[str, Any]:
    made = {
        "name": "failed", "ok": True, "measured": 0, "limit": "= 0", "unit": "requests", "file": "bench.json",
        "field": "arms.B.points[0].failed", "failure_class": None,
    }  # fmt: skip
    return {**made, **changes}


def gate(writer: RunWriter, name: str, proposal_id: str, **changes: Any) -> None:
    record: dict[str, Any] = {
        "id": proposal_id, "gate": name, "pass": True, "failure_class": None, "detail": "1 checks held",
        "files": [{"kind": "bench", "sha256": RESULT}], "sha256": RESULT, "checks": [check()], "facts": {},
    }  # fmt: skip
    writer.record("gate", f"Gate {name}", stage="bench", **{**record, **changes})


@pytest.fixture
def writer(tmp_path: Path) -> RunWriter:
    return new_run(tmp_path / "run")


@pytest.fixture
def closed(writer: RunWriter) -> RunWriter:
    """A release with one of everything, closed."""
    writer.record(
        "setup_done", "Answers", stage="setup", facts={"host": "alice@login", "gpus_per_node": 8, "problems": []}
    )
    first = propose(writer, "001-bench-1", make_job("bench", stage="bench"))
    decide(writer, first)
    submit(writer, first)
    kept = {"kind": "bench", "path": "/w/bench.json", "sha256": RESULT, "size": 99, "copy": "results/x/bench.json"}
    writer.record("result_read", "Read", stage="bench", id=first.id, **kept)
    writer.record("results_complete", "All", stage="bench", id=first.id)
    failed = check(ok=False, measured=3, name="failed")
    gate(writer, "bench", first.id, **{"pass": False, "failure_class": "MEASUREMENT_INVALID", "checks": [failed]})
    values = {
        "id": first.id,
        "failure_class": "MEASUREMENT_INVALID",
        "step": "retry",
        "detail": "once more",
        "values": {},
    }
    writer.record("triaged", "Once more", stage="bench", **values)
    second = propose(writer, "002-bench-2", make_job("bench", 2, "f" * 16, stage="bench"), "once more")
    decide(writer, second)
    submit(writer, second, "4712")
    writer.record("results_complete", "All", stage="bench", id=second.id)
    gate(writer, "bench", second.id, facts=FACTS)
    gate(writer, "correctness", second.id, facts={"exact_match": 0.96875, "control_exact_match": 1.0})
    files = [{"path": "model.safetensors", "size": 1234, "sha256": DRAFT}]
    known = {"destination": "/drafts/d", "manifest_sha256": MANIFEST, "bytes": 1234, "files": files}
    writer.record("freeze_known", "Frozen", stage="freeze", freeze=known)
    writer.record("note", "Moved to another partition | by hand", actor="operator:alice", human=True, stage="bench")
    writer.record(
        "verdict", "Ready", stage="closeout", verdict="DRAFTER_READY", detail="every gate passed", failure_class=""
    )
    return writer


def report(writer: RunWriter) -> str:
    return render_report(writer.state, writer.entries)


def cells(line: str) -> list[str]:
    return [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]


def test_the_verdict_comes_first_with_its_reason(closed: RunWriter) -> None:
    lines = report(closed).splitlines()
    assert lines[0] == "# tiny-20260102-030405-ab12: DRAFTER_READY"
    assert "this is not a decision to publish" in lines[2]
    assert lines[4] == "Reason: every gate passed"


def test_the_comparison_is_what_the_last_bench_gate_recorded(closed: RunWriter) -> None:
    lines = report(closed).splitlines()
    rows = [cells(line) for line in lines if re.match(r"\| (1|8) \|", line)]
    assert rows == [
        ["1", "100.0", "181.1", "1.810", "2.750", "0.438"],
        ["8", "420.0", "510.0", "not recorded", "2.700", "not recorded"],
    ]
    assert any(line.startswith("Greedy outputs identical with and without the drafter: 0.9688") for line in lines)


def test_everything_a_reviewer_needs_is_there(closed: RunWriter) -> None:
    text = report(closed)
    for wanted in (
        MANIFEST, DRAFT, RESULT, "/drafts/d", "model.safetensors", "results/x/bench.json", "4711", "4712",
        "operator:alice at 2026-01-02", "demo/tiny-target", "NO-GO (MEASUREMENT_INVALID)", "once more",
        "arms.B.points\\[0\\].failed", "Moved to another partition \\| by hand", closed.state.head,
        "24.00 GPU hours asked for, by 2 jobs",
    ):  # fmt: skip
        assert wanted in text, wanted
    for attempt in closed.state.attempts:
        assert attempt.digest in text
        assert attempt.decided_at in text


def test_every_check_stands_with_measured_limit_unit_file_and_field(closed: RunWriter) -> None:
    rows = [cells(line) for line in report(closed).splitlines() if line.startswith("| failed |")]
    place = ["= 0", "requests", "bench.json", "arms.B.points\\[0\\].failed"]
    assert rows == [["failed", "no", "3", *place], ["failed", "yes", "0", *place], ["failed", "yes", "0", *place]]


def test_a_check_that_measured_nothing_and_a_limit_of_zero_are_told_apart(writer: RunWriter) -> None:
    checks = [check(measured=None), check(measured=0), check(measured=False), check(measured=""), check(measured=0.0)]
    propose(writer, "001-bench-1", make_job("bench", stage="bench"))
    gate(writer, "bench", "001-bench-1", checks=checks)
    rows = [cells(line)[2] for line in report(writer).splitlines() if line.startswith("| failed |")]
    assert rows == ["nothing", "0", "no", "-", "0.0"]


def test_a_measurement_that_was_not_accepted_says_so_above_its_numbers(writer: RunWriter) -> None:
    propose(writer, "001-bench-1", make_job("bench", stage="bench"))
    invalid = {"pass": False, "failure_class": "MEASUREMENT_INVALID", "detail": "3 requests failed"}
    gate(writer, "bench", "001-bench-1", **invalid, facts=FACTS)
    text = report(writer)
    assert "**Not a valid measurement** (MEASUREMENT_INVALID): 3 requests failed" in text
    assert text.index("Not a valid") < text.index("| 1 |")


def test_the_columns_are_those_that_the_gates_record(writer: RunWriter) -> None:
    propose(writer, "001-bench-1", make_job("bench", stage="bench"))
    bench, correctness = passing.judge("bench"), passing.judge("correctness")
    for verdict in (bench, correctness):
        gate(
            writer, verdict.gate, "001-bench-1", **{key: verdict.to_json()[key] for key in ("pass", "checks", "facts")}
        )
    text = report(writer)
    facts = dict(bench.facts)
    rows = [cells(line) for line in text.splitlines() if re.match(r"\| \d+ \|", line)]
    assert [row[0] for row in rows] == ["1", "8", "32"]
    assert [row[3] for row in rows] == [f"{facts[f'speedup_c{level}']:.3f}" for level in (1, 8, 32)]
    section = text[text.index("## A | B") : text.index("## Stages")]
    assert "not recorded" not in section
    assert f"{dict(correctness.facts)['exact_match']:.4f} of the prompts" in section


def test_what_was_not_recorded_is_said_to_be_so(writer: RunWriter) -> None:
    text = report(writer)
    assert "no verdict yet" in text
    assert "No benchmark was judged." in text
    assert "No drafter was frozen." in text
    propose(writer, "001-bench-1", make_job("bench", stage="bench"))
    gate(writer, "bench", "001-bench-1")
    assert "By concurrency: not recorded." in report(writer)
    gate(writer, "bench", "001-bench-1", facts={"speedup_c1": "inf"})
    (row,) = [cells(line) for line in report(writer).splitlines() if line.startswith("| 1 |")]
    assert row == ["1", "not recorded", "not recorded", "inf", "not recorded", "not recorded"]


def test_the_same_log_gives_the_same_bytes(closed: RunWriter) -> None:
    again = journal.read_log(closed.run_dir)
    assert render_report(fold(again), again) == report(closed)


@given(text=anything)
@settings(max_examples=40)
def test_foreign_text_anywhere_is_inert(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    writer = new_run(tmp_path_factory.mktemp("foreign") / "run", target=text)
    writer.record("note", text, actor=text, human=True, stage="bench")
    writer.record(
        "freeze_known", text, freeze={"destination": text, "manifest_sha256": text, "files": [{"path": text}]}
    )
    values = {"gate": text, "id": text, "detail": text, "files": [{"kind": text}], "facts": {text: text}, "sha256": ""}
    checks = [check(name=text, measured=text, limit=text, field=text)]
    writer.record("gate", text, stage="bench", checks=checks, failure_class=text, **values, **{"pass": False})
    writer.record("stopped", text, detail=text)
    shown = report(writer)
    assert all(visible(line) for line in shown.split("\n"))
    assert "<" not in re.sub(r"\\<", "", shown)
    heads = [line for line in shown.split("\n") if line.startswith("#")]
    plain = report(new_run(tmp_path_factory.mktemp("plain") / "run"))
    assert len(heads) == len([line for line in plain.split("\n") if line.startswith("#")]) + 2


def test_an_empty_state_has_a_report_too() -> None:
    assert render_report(RunState(), []).startswith("# Release: no verdict yet\n")


@pytest.fixture
def gonogo(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Run:
    def run(*options: str) -> tuple[int, str, str]:
        status = main(["report", str(tmp_path / "run"), *options])
        captured = capsys.readouterr()
        return status, captured.out, captured.err

    return run


def test_the_command_prints_the_report_and_compares_it_with_the_file(gonogo: Run, closed: RunWriter) -> None:
    path = closed.run_dir / folder.REPORT_NAME
    text = report(closed)
    status, out, err = gonogo()
    assert (status, out) == (1, text)
    assert "is missing" in err
    path.write_text(text, encoding="utf-8")
    assert gonogo() == (0, text, "")
    path.write_text(text.replace("1.810", "2.810"), encoding="utf-8")
    status, out, err = gonogo()
    assert (status, out) == (1, text)
    assert "is different" in err


def test_an_open_release_needs_no_file(gonogo: Run, writer: RunWriter) -> None:
    assert gonogo() == (0, report(writer), "")


def test_for_programs(gonogo: Run, closed: RunWriter) -> None:
    status, out, _ = gonogo("--json")
    data = json.loads(out)
    assert (status, data["verdict"], data["on_disk"]) == (1, "DRAFTER_READY", "missing")
    assert data["log"] == {"entries": closed.state.entries, "head": closed.state.head}
    assert data["markdown"] == report(closed)


def test_no_report_follows_from_a_changed_log(gonogo: Run, closed: RunWriter) -> None:
    path = closed.run_dir / journal.LOG_NAME
    data = path.read_bytes()
    for changed in (data.replace(b"1.80987", b"2.80987"), data[: -len(journal.render(closed.entries[-1]))]):
        path.write_bytes(changed)
        status, out, err = gonogo()
        assert (status, out, len(err.splitlines())) == (2, "", 1)
