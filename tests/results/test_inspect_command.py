"""`gonogo inspect`: says what a file is, every number with unit and meaning, what is odd; or that it cannot tell."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from console.cli import main
from tests.results.every_producer import SAMPLES
from tests.results.foreign_files import put, specdec_acceptance, trainer_state, vllm_bench

HOSTILE = "x\x1b[2J\nUNUSABLE\u202e\ud800"


def inspect(path: Path, *options: str) -> int:
    return main(["inspect", str(path), *options])


def write(folder: Path, data: bytes | Any) -> Path:
    path = folder / "result.json"
    path.write_bytes(data if isinstance(data, bytes) else json.dumps(data).encode())
    return path


@pytest.mark.parametrize("name", sorted(SAMPLES))
def test_a_file_of_every_tool(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write(tmp_path, SAMPLES[name].data())
    assert inspect(path) == 0
    out = capsys.readouterr().out
    assert f"[{name}]" in out.splitlines()[0]
    assert "UNUSABLE" not in out
    assert out.endswith("usable, as far as the file alone can tell\n")
    assert inspect(path, "--json") == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed["producer"] == name
    assert printed["usable"] is True
    numbers = [state for state in printed["states"] if "unit" in state]
    assert numbers
    for state in numbers:
        assert set(state) >= {"name", "field", "unit", "meaning", "scope", "bonus_token", "formula"}


def test_units_and_meanings_are_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert inspect(write(tmp_path, vllm_bench())) == 0
    out = capsys.readouterr().out
    assert "spec_decode_acceptance_rate): 0.25 (written 25) fraction 0-1\n" in out
    assert "spec_decode_per_position_acceptance_rates): 0.5, 0.15, 0.1 fraction 0-1\n" in out
    assert "spec_decode_acceptance_length): 1.75 tokens per target step\n" in out
    assert "    acceptance length; with the bonus token; = 1 + accepted / drafts; over all traffic of the server" in out
    assert out.count("prompts to send; a setting, not a measurement") == 1


def test_what_speaks_against_a_file_makes_it_unusable(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write(tmp_path, specdec_acceptance() * 2)
    assert inspect(path) == 1
    out = capsys.readouterr().out
    assert "a JSON list of objects, 2 objects" in out
    assert "\nUNUSABLE  holds 2 runs, appended" in out
    assert out.endswith("NOT usable as a measurement\n")
    assert inspect(path, "--json") == 1
    printed = json.loads(capsys.readouterr().out)
    assert printed["usable"] is False
    assert printed["remarks"][0]["unusable"] is True


def test_a_field_that_is_refused_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write(tmp_path, put(vllm_bench(), ("spec_decode_num_drafts",), "600"))
    assert inspect(path) == 1
    out = capsys.readouterr().out
    assert "nothing of it can be used:\n  spec_decode_num_drafts: expected a whole number; found text '600'\n" in out
    assert inspect(path, "--json") == 1
    printed = json.loads(capsys.readouterr().out)
    assert printed["problems"] == [
        {"field": "spec_decode_num_drafts", "expected": "a whole number", "found": "text '600'"}
    ]
    assert "states" not in printed


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"{", "cannot be read: truncated"),
        (b"", "cannot be read: empty"),
        (b'{"a": 1, "a": 2}', "cannot be read: duplicate key: a is there twice"),
        (b"\xef\xbb\xbf{}", "cannot be read: byte-order mark"),
        (b'{"a": 1}', "is of no known tool (one JSON object)"),
        (b"<html>", "looks like HTML"),
    ],
)
def test_what_nobody_can_tell(data: bytes, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write(tmp_path, data)
    assert inspect(path) == 2
    shown = capsys.readouterr()
    assert said in shown.err
    assert shown.out == ""
    assert len(shown.err.splitlines()) == 1
    assert inspect(path, "--json") == 2
    assert said in json.loads(capsys.readouterr().out)["why"]


def test_a_file_that_is_not_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert inspect(tmp_path / "none.json") == 2
    assert "No such file" in capsys.readouterr().err
    assert inspect(tmp_path) == 2


def test_a_mixture_is_not_decided_but_can_be(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    mixture = {**SAMPLES["sglang-server"].make(), **SAMPLES["lm-eval"].make()}
    path = write(tmp_path, mixture)
    assert inspect(path) == 2
    assert "has the shapes of 2 tools: sglang-server, lm-eval; --as NAME" in capsys.readouterr().err
    assert inspect(path, "--json") == 2
    assert json.loads(capsys.readouterr().out)["candidates"] == ["sglang-server", "lm-eval"]
    assert inspect(path, "--as", "lm-eval") == 0
    assert inspect(path, "--as", "vllm-bench") == 1
    assert "model_id: expected text; found nothing" in capsys.readouterr().out
    assert inspect(path, "--as", "nobody") == 2


def test_many_entries_are_cut_for_people_only(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    document = trainer_state()
    entry = document["log_history"][0]
    document["log_history"] = [{**entry, "step": step, "loss": 9 - step / 100} for step in range(1, 61)]
    path = write(tmp_path, document)
    assert inspect(path) == 0
    out = capsys.readouterr().out
    assert "entries: 60 of them, 54 left out here\n" in out
    assert "entries[59].loss" in out
    assert "entries[30].loss" not in out
    assert inspect(path, "--json") == 0
    names = [state["name"] for state in json.loads(capsys.readouterr().out)["states"]]
    assert "entries[30].loss" in names


@pytest.mark.parametrize("place", [("model_id",), ("backend",), ("date",)])
def test_nothing_in_a_file_acts_on_a_terminal(
    place: tuple[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for value in (HOSTILE, {HOSTILE: HOSTILE}):
        document = {**put(vllm_bench(), place, value), f"spec_{HOSTILE}": HOSTILE, f"mean_ttft_ms{HOSTILE}": 1}
        path = write(tmp_path, document)
        for options in ((), ("--json",)):
            inspect(path, *options)
            shown = capsys.readouterr()
            text = (shown.out + shown.err).replace("\n", "")
            assert text.isprintable()
            assert "\u202e" not in text
    assert not any(line.startswith("UNUSABLE") for line in shown.out.splitlines())


def test_its_help_names_the_tools(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["inspect", "--help"]) == 0
    assert "gonogo inspect acceptance_rate.json" in capsys.readouterr().out
    assert main(["--help"]) == 0
    assert "inspect" in capsys.readouterr().out
