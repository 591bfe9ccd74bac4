"""gate target and gate data: refusals of the hub, incomplete copies, and whose fault each is."""

from __future__ import annotations

from typing import Any

import pytest

from gates.registry import run
from gates.verdict import FailureClass, Verdict
from tests.gates import passing
from tests.gates.passing import GONE, assert_fails, change, judge, stage_target, target_check, the

INVALID = FailureClass.MEASUREMENT_INVALID
CONFIG = FailureClass.USER_CONFIG_ERROR
TRANSIENT = FailureClass.INFRA_TRANSIENT
REGRESSION = FailureClass.TRAINING_REGRESSION


def staged(changes: dict[str, Any]) -> Verdict:
    return judge("target", {"stage_target": change(stage_target(), changes)})


def checked(changes: dict[str, Any]) -> Verdict:
    return judge("target", {"target_check": change(target_check(), changes)})


def found(changes: dict[str, Any]) -> Verdict:
    """A target that was on the cluster: there is no download, and no token."""
    document = {**change(target_check(), changes), "token": ""}
    return run("target", {"target_check": passing.encode(document)}, {"path": passing.TARGET, "revision": ""})


def test_a_download_and_a_copy_that_was_found_pass() -> None:
    assert judge("target").passed
    assert found({}).passed
    assert dict(found({}).facts)["vocab_size"] == 256


@pytest.mark.parametrize(
    ("status", "failure_class", "words"),
    [
        (401, CONFIG, "hf auth login"),
        (403, CONFIG, "request access to demo/tiny-target"),
        (404, CONFIG, "check name and revision"),
        (416, CONFIG, "refuses"),
        (429, TRANSIENT, "busy"),
        (500, TRANSIENT, "busy"),
        (503, TRANSIENT, "busy"),
    ],
)
def test_what_the_hub_answers_says_what_to_do(status: int, failure_class: FailureClass, words: str) -> None:
    failed = {**stage_target(), "status": "error", "http_status": status, "error": "gated repo", "files": []}
    verdict = judge("target", {"stage_target": failed, "target_check": None})
    assert_fails(verdict, failure_class, "hub_answer", "status")
    assert words in verdict.detail
    assert verdict.detail.index(words) < len(verdict.detail)
    assert dict(verdict.facts)["http_status"] == status
    assert words in str(dict(verdict.facts)["advice"])
    assert verdict.readable


def test_a_download_that_failed_without_an_answer_is_tried_again() -> None:
    failed = {**stage_target(), "status": "error", "http_status": None, "error": "connection reset", "files": []}
    verdict = judge("target", {"stage_target": failed, "target_check": None})
    assert_fails(verdict, TRANSIENT, "status")
    assert "connection reset" in verdict.detail


def test_after_a_download_there_must_be_a_check() -> None:
    verdict = judge("target", {"target_check": None})
    assert_fails(verdict, FailureClass.RESULT_MISSING, "readable")
    assert_fails(judge("target", {"stage_target": None}), FailureClass.RESULT_MISSING, "readable")


@pytest.mark.parametrize(
    ("changes", "failure_class", "checks"),
    [
        ({"revision": "b" * 40}, INVALID, {"revision"}),
        ({"target": "other/model"}, INVALID, {"target"}),
        ({"path": "/elsewhere"}, INVALID, {"path"}),
        ({"files[1].size": 1}, TRANSIENT, {"shard_as_downloaded", "shards_sound"}),
        ({"files": []}, INVALID, {"field"}),
    ],
)
def test_checks_of_a_download(changes: dict[str, Any], failure_class: FailureClass, checks: set[str]) -> None:
    assert_fails(staged(changes), failure_class, *checks)


@pytest.mark.parametrize(
    ("changes", "checks"),
    [
        ({"status": "error"}, {"status"}),
        ({"problems": ["model-00002-of-00002.safetensors is a Git LFS pointer"]}, {"problems"}),
        ({"shards[0].ok": False}, {"shard_ok", "shards_sound"}),
        ({"shards[0].size": 999}, {"shard_size", "shard_as_downloaded", "shards_sound"}),
        ({"shards[0].size": None}, {"field", "shards_sound"}),
        ({"shards[0].path": "../secret"}, {"path_inside", "shards_complete", "shards_sound"}),
        (
            {"shards[1].path": "model-00001-of-00002.safetensors"},
            {"shards_once", "shards_complete", "shard_as_downloaded"},
        ),
        ({"shards": [target_check()["shards"][0]]}, {"shards_complete"}),
        ({"shards": []}, {"field"}),
        ({"total_size": 0}, {"field"}),
        ({"config.vocab_size": GONE}, {"field"}),
        ({"config.architectures": []}, {"field"}),
        ({"config.rope_theta": 0}, {"rope_theta"}),
        ({"config": None}, {"field"}),
    ],
)
def test_an_incomplete_target_is_fetched_again_or_mended_by_its_owner(
    changes: dict[str, Any], checks: set[str]
) -> None:
    downloaded = checked(changes)
    assert passing.names(downloaded) - {"shards_sound"} == checks - {"shards_sound"}
    assert downloaded.failure_class is TRANSIENT
    assert_fails(found(changes), CONFIG, *checks - {"shard_as_downloaded"})


def test_the_check_of_another_folder_never_counts() -> None:
    assert_fails(checked({"path": "/elsewhere"}), INVALID, "path")


def test_missing_shards_are_named() -> None:
    shards = [{**target_check()["shards"][0], "path": f"model-{i:05d}-of-00009.safetensors"} for i in (2, 5)]
    verdict = found({"shards": shards})
    told = the(verdict, "shards_complete").measured
    assert isinstance(told, str)
    assert told.split(", ") == [f"model-{i:05d}-of-00009.safetensors" for i in (1, 3, 4, 6, 7)]


def test_a_target_in_one_file_needs_no_index() -> None:
    shards = [{"path": "model.safetensors", "size": 5, "expected_size": 5, "ok": True}]
    assert found({"shards": shards, "index_file": None}).passed


@pytest.mark.parametrize(
    ("changes", "failure_class", "checks"),
    [
        ({"token": "another"}, INVALID, {"token"}),
        ({"status": "error", "problems": ["no such data set"]}, REGRESSION, {"status", "problems"}),
        ({"status": "error", "http_status": 403, "problems": ["gated"]}, CONFIG, {"status", "problems", "hub_answer"}),
        ({"sequences": 0, "tokens": 0}, REGRESSION, {"sequences", "tokens"}),
        ({"tokens": 199}, REGRESSION, {"tokens"}),
        ({"sha256": "x"}, INVALID, {"field"}),
        ({"problems": GONE}, REGRESSION, {"field"}),
        ({"sequences": 200.0}, INVALID, {"field"}),
    ],
)
def test_checks_of_training_data(changes: dict[str, Any], failure_class: FailureClass, checks: set[str]) -> None:
    assert_fails(judge("data", {"data": change(passing.data(), changes)}), failure_class, *checks)


@pytest.mark.parametrize(("least", "passed"), [(200, True), (201, False)])
def test_a_least_number_of_sequences(least: int, passed: bool) -> None:
    assert judge("data", expected={"min_sequences": least}).passed is passed
