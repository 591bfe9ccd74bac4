"""`gonogo catalog` and the two gates on the command line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from console.cli import main
from console.commands import gate as gate_command
from gates.catalog.model import read_catalog, shipped
from gates.reading import ResultBytes
from tests.catalog.catalogs import MODEL, atom, bar, catalog, entry, score, server_info
from tests.catalog.test_atom_catalogs import PLAIN, atom_entry
from tests.catalog.test_gates import FP4

HOSTILE = "x\x1b[2J\u202e"


@pytest.fixture(autouse=True)
def _no_summary(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(gate_command.SUMMARY, raising=False)


def write(path: Path, value: Any) -> str:
    path.write_bytes(value if isinstance(value, bytes) else json.dumps(value).encode())
    return str(path)


def test_check_says_what_is_wrong_and_where(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    good = write(tmp_path / "good.json", shipped().data)
    assert main(["catalog", "check", good]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "good.json: 16 entries, 0 errors, 4 warnings"
    bad = catalog(entry(model=HOSTILE, bars={"acceptance_rate": bar(0.01)}), entry(model=HOSTILE)).data
    assert main(["catalog", "check", write(tmp_path / "bad.json", bad)]) == 1
    out = capsys.readouterr().out
    assert "ERROR: bad.json: entries[0].bars.acceptance_rate.bar" in out
    assert "ERROR: bad.json: entries[1] " in out
    assert not set("\x1b\u202e") & set(out)
    assert main(["catalog", "check", str(tmp_path / "bad.json"), "--json"]) == 1
    printed = json.loads(capsys.readouterr().out)
    assert printed["ok"] is False
    assert [one["level"] for one in printed["findings"]] == ["error", "error"]


@pytest.mark.parametrize("data", [b"", b"{", b"[]", b"[1]", b'[{"a": 1}]', b'{"schema_version": 1, "entries": [{}]}'])
def test_what_is_no_catalog_is_status_two_and_one_clear_line(
    tmp_path: Path, data: bytes, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["catalog", "check", write(tmp_path / "c.json", data)]) == 2
    error = capsys.readouterr().err
    assert error.startswith("gonogo: c.json: ")
    assert "expected" in error
    assert error.count("\n") == 1
    assert main(["catalog", "check", str(tmp_path / "none.json")]) == 2
    assert "No such file" in capsys.readouterr().err


def test_atoms_catalogs_are_checked_and_imported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = write(tmp_path / "models_accuracy.json", [atom_entry(), atom_entry(model_name="tiny", **PLAIN)])
    assert main(["catalog", "check", file]) == 0
    output = tmp_path / "ours.json"
    assert main(["catalog", "import", file, "--output", str(output), "--day", "2026-07-20"]) == 0
    made = read_catalog(ResultBytes("ours.json", output.read_bytes()))
    assert [one.model for one in made.entries] == ["tiny MTP", "tiny"]
    assert made.entries[0].bars["acceptance_rate"].date == "2026-07-20"
    assert main(["catalog", "check", str(output)]) == 0
    capsys.readouterr()
    assert main(["catalog", "import", file, "--output", str(output)]) == 2
    assert "a new file" in capsys.readouterr().err
    assert list(tmp_path.glob(".*")) == []
    unguarded = write(tmp_path / "bad.json", [atom_entry(mtp_accept_threshold=...)])
    assert main(["catalog", "import", unguarded, "--output", str(tmp_path / "other.json")]) == 1
    assert "holds no bar on acceptance" in capsys.readouterr().err
    assert main(["catalog", "import", unguarded, "--output", str(tmp_path / "no" / "x.json")]) == 2


def test_propose_from_a_file_of_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rates = [0.6102, 0.6084, 0.6115, 0.36, 0.361]
    runs = [
        {"run": f"n{i}", "day": f"2026-07-0{i + 1}", "model": FP4, "drafter": "mtp", "draft_tokens": 3}
        | {"acceptance_rate": rate}
        for i, rate in enumerate(rates)
    ]
    file = write(tmp_path / "runs.jsonl", "\n".join(map(json.dumps, runs)).encode())
    output = tmp_path / "catalog.json"
    assert main(["catalog", "propose", file, "--output", str(output), "--day", "2026-07-20"]) == 0
    out = capsys.readouterr().out
    assert "acceptance_rate: 0.593 (smallest of 3 healthy runs less 0.015; smallest 0.6084)" in out
    assert "n3 of 2026-07-04" in out
    assert "n4 of 2026-07-05" in out
    assert main(["catalog", "check", str(output)]) == 0
    assert (
        main(["gate", "acceptance", write(tmp_path / "r.json", atom(59.29)), "--catalog", str(output), "--model", FP4])
        == 1
    )
    capsys.readouterr()
    assert main(["catalog", "propose", file, "--least", "4", "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["catalog"] is None


def test_propose_from_atoms_dashboard(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rates = [61.02, 60.84, 61.15, 61.3, 36.02, 36.1]
    runs = [
        {
            "commit": {"id": f"{i:040x}"},
            "date": 1_780_000_000_000 + i,
            "benches": [
                {"name": f"{FP4} accuracy (GSM8K)", "unit": "score", "value": 0.9538},
                {"name": f"{FP4} MTP acceptance (%)", "unit": "%", "value": rate},
                {"name": f"{FP4} avg toks/fwd", "unit": "tok/fwd", "value": round(1 + 3 * rate / 100, 2)},
                {"name": "other accuracy (GSM8K)", "unit": "score", "value": 0.5},
            ],
        }
        for i, rate in enumerate(rates)
    ]
    document = json.dumps({"lastUpdate": 1, "repoUrl": "https://example.org", "entries": {"Benchmark": runs}})
    file = write(tmp_path / "data.js", f"window.BENCHMARK_DATA = {document}".encode())
    assert main(["catalog", "propose", file, "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    (entry,) = printed["catalog"]["entries"]
    assert entry["model"] == FP4
    assert entry["bars"]["acceptance_rate"]["bar"] == 0.593
    # Accuracy never noticed, so no run is left out for its sake.
    assert entry["bars"]["accuracy"]["bar"] == 0.924
    assert [(one["measure"], one["day"]) for one in printed["left_out"]] == [
        ("acceptance_rate", "CI run 000005"),
        ("acceptance_rate", "CI run 000006"),
    ]


@pytest.mark.parametrize(
    ("changed", "field"),
    [
        ({"acceptance_rate": 61.0}, "acceptance_rate"),
        ({"acceptance_rate": "0.61"}, "acceptance_rate"),
        ({"day": "8.7.2026"}, "day"),
        ({"run": ""}, "run"),
        ({"model": None}, "model"),
        ({"draft_tokens": 0}, "draft_tokens"),
        ({"healthy": "yes"}, "healthy"),
    ],
)
def test_runs_are_read_strictly(
    tmp_path: Path, changed: dict[str, Any], field: str, capsys: pytest.CaptureFixture[str]
) -> None:
    run = {"run": "n", "day": "2026-07-01", "model": "m", "drafter": "mtp", "acceptance_rate": 0.6}
    status = main(["catalog", "propose", write(tmp_path / "runs.json", [{**run, **changed}])])
    assert status == 2
    assert f"runs.json: [0].{field}: expected" in capsys.readouterr().err


def test_the_gates_take_a_catalog_in_yaml_and_a_servers_account(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    text = json.loads(catalog().data or b"")
    yaml = write(tmp_path / "mine.yaml", json.dumps(text).encode())
    measured = write(tmp_path / "2026.json", atom(59.99, None))
    arguments = ["gate", "acceptance", measured, "--catalog", yaml, "--model", MODEL, "--draft-tokens", "3"]
    assert main(arguments) == 1
    out = capsys.readouterr().out
    assert "0.5999 fraction 0-1" in out
    assert "2026.json: atom_ci_metadata.mtp_acceptance_rate" in out
    assert main([*arguments, "--json"]) == 1
    printed = json.loads(capsys.readouterr().out)
    assert printed["failure_class"] == "ACCEPTANCE_REGRESSION"
    (check,) = [one for one in printed["checks"] if not one["ok"]]
    assert (check["measured"], check["limit"], check["file"]) == (0.5999, ">= 0.6", "2026.json")
    info = write(tmp_path / "info.json", server_info(3))
    scored = write(tmp_path / "gsm8k.json", score(0.65))
    told = ["gate", "accuracy", scored, "--server-info", info, "--model", "gemma-4-E4B"]
    summary = tmp_path / "summary.md"
    monkeypatch.setenv(gate_command.SUMMARY, str(summary))
    assert main([*told, "--topk", "3"]) == 0
    assert main([*told, "--topk", "1"]) == 1
    assert "server_setting" in summary.read_text().replace("\\", "")
    assert main([*told[:3], "--topk", "3", "--server-info", str(tmp_path / "none.json"), *told[5:]]) == 2
    broken = write(tmp_path / "broken.yaml", b"entries: [")
    assert main([*arguments[:3], "--catalog", broken, "--model", MODEL]) == 2
