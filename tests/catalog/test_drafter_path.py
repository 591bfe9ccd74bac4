"""`--drafter-path`: the drafter that was served, as the file or the server states it, is the one that was meant."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from console.cli import main
from gates.verdict import FailureClass
from tests.catalog.catalogs import MODEL, atom, bar, catalog, entry, failing, judge, score, server_info, vllm
from tests.gates import passing
from tests.results import foreign_files as foreign

NAME = "google/gemma-assistant"


def decoding(*servers: dict[str, Any]) -> dict[str, Any]:
    return {"prefill": [{}], "decode": list(servers)}


STATED: dict[str, tuple[Callable[[], Any], str, int, str, str]] = {
    "accuracy.json": (passing.accuracy, passing.DRAFTER, 3, "server.drafter", "server.drafter"),
    "smoke.json": (passing.smoke, passing.EXPORT, 4, "server.drafter", "server.drafter"),
    "bench.json": (passing.bench, passing.DRAFTER, 4, "arms.B.drafter", "arms.B.drafter"),
    "SGLang": (server_info, NAME, 5, "speculative_draft_model_path", "speculative_draft_model_path"),
    "SGLang, prefill apart": (
        lambda: decoding(server_info(), server_info()),
        NAME,
        5,
        "decode[1].speculative_draft_model_path",
        "speculative_draft_model_path",
    ),
    "SGLang's benchmark": (
        foreign.sglang_serving,
        "google/gemma-4-26b",
        5,
        "server_info.speculative_draft_model_path",
        "server_info.speculative_draft_model_path",
    ),
}


@pytest.mark.parametrize(("make", "path", "k", "where", "field"), STATED.values(), ids=STATED)
def test_the_stated_drafter_is_compared(make: Callable[[], Any], path: str, k: int, where: str, field: str) -> None:
    using = catalog(entry(draft_tokens=k, bars={"acceptance_length": bar(1.5)}))

    def verdict(document: Any, wanted: str) -> Any:
        return judge("acceptance", document, using=using, model=MODEL, drafter_path=wanted)

    assert verdict(make(), path).passed, verdict(make(), path).detail
    assert verdict(make(), f"{path}/.").passed
    other = verdict(make(), "/drafts/another")
    assert set(failing(other)) == {"drafter_path"}
    assert other.failure_class is FailureClass.MEASUREMENT_INVALID
    assert failing(other)["drafter_path"].field == field
    for spoilt in (passing.GONE, None, 5, [path]):
        changed = verdict(passing.change(make(), {where: spoilt}), path)
        assert not changed.passed, spoilt


@pytest.mark.parametrize("make", [atom, vllm], ids=["ATOM", "vllm bench serve"])
def test_a_file_that_states_no_drafter_does_not_pass(make: Callable[[], Any]) -> None:
    assert judge("acceptance", make(), using=catalog(), model=MODEL).passed
    verdict = judge("acceptance", make(), using=catalog(), model=MODEL, drafter_path=NAME)
    assert "never states the drafter" in failing(verdict)["drafter_path"].limit


def test_the_account_of_the_server_counts_for_an_accuracy() -> None:
    def verdict(**more: Any) -> Any:
        return judge("accuracy", score(0.8), model="gemma-4-31B", topk=3, drafter_path=NAME, **more)

    assert verdict(server=server_info(3)).passed
    wrong = verdict(server=server_info(3, speculative_draft_model_path="google/gemma"))
    assert failing(wrong)["drafter_path"].file == "server_info.json"
    assert not verdict().passed


def test_the_command_takes_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "accuracy.json"
    file.write_text(json.dumps(passing.accuracy()))
    for gate in ("acceptance", "accuracy"):
        command = ["gate", gate, str(file), "--model", passing.CATALOGUED]
        assert main([*command, "--drafter-path", passing.DRAFTER]) == 0
        assert main([*command, "--drafter-path", "/drafts/another"]) == 1
        assert "drafter_path" in capsys.readouterr().out
