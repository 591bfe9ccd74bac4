"""Measuring gone wrong as it was reported in public: each file here looks like a measurement, and none may pass."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from typing import Any

import pytest

from gates.reading import ResultBytes
from gates.results.producers import BY_NAME
from gates.verdict import FailureClass, Verdict
from tests.catalog.catalogs import MODEL, bar, catalog, entry, failing, judge, server_info, vllm
from tests.gates import passing
from tests.results import foreign_files as foreign

INVALID = FailureClass.MEASUREMENT_INVALID
Change = Callable[[Any], Any]


def put(**values: Any) -> Change:
    """Fields of the outermost object that are replaced, or added."""
    return lambda document: {**document, **values}


def at(path: str, value: Any) -> Change:
    """One field, wherever it is."""
    return lambda document: passing.change(copy.deepcopy(document), {path: value})


def accepted(document: Any, draft_tokens: Any = 3, **more: Any) -> Verdict:
    """The acceptance gate with a bar that the unspoilt file holds easily."""
    using = catalog(entry(draft_tokens=draft_tokens, bars={"acceptance_length": bar(1.5)}))
    return judge("acceptance", json.dumps(document).encode(), using=using, model=MODEL, **more)


SETTINGS: dict[str, dict[str, Any]] = {
    "a rejection sampler that makes acceptance up": {"rejection_sample_method": "synthetic"},
    "a length to pretend": {"synthetic_acceptance_length": 2.5},
    "both inside the speculative configuration": {"speculative_config": {"rejection_sample_method": "synthetic"}},
    "the same as text": {"speculative_config": '{"method": "eagle3", "rejection_sample_method": "synthetic"}'},
    "a flag among the arguments": {"arguments": ["serve", "--spec-decode-acceptance-length", "3"]},
    "an environment variable": {"environment": {"SGLANG_SIMULATE_ACC_LEN": "3"}},
}


@pytest.mark.parametrize("settings", SETTINGS.values(), ids=SETTINGS)
def test_acceptance_that_the_engine_was_told_to_pretend_never_counts(settings: dict[str, Any]) -> None:
    bench = passing.bench()
    for arm in bench["arms"].values():
        arm["server_config"] |= settings
    assert "not_simulated" in passing.names(passing.judge("bench", {"bench": bench}))
    smoke = passing.smoke()
    smoke["server"] |= settings
    passing.assert_fails(passing.judge("smoke", {"smoke": smoke}), INVALID, "not_simulated")
    accuracy = passing.accuracy()
    accuracy["server"] |= settings
    for gate in ("accuracy", "acceptance"):
        passing.assert_fails(passing.judge(gate, {gate: accuracy}), INVALID, "not_simulated")
    assert "sound" in failing(accepted({**vllm(), **settings}))
    configuration = json.dumps({**foreign.specdec_configuration(), "runtime_params": settings}).encode()
    assert not BY_NAME["specdec-configuration"].read(ResultBytes("configuration.json", configuration)).usable


def test_settings_that_only_name_acceptance_are_welcome() -> None:
    settings = {"rejection_sample_method": "standard", "synthetic_acceptance_length": None, "note": "not synthetic"}
    bench = passing.bench()
    for arm in bench["arms"].values():
        arm["server_config"] |= settings
    assert passing.judge("bench", {"bench": bench}).passed
    assert accepted({**vllm(), **settings, "generated_texts": ["rejection_sample_method=synthetic"]}).passed
