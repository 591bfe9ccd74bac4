"""Which jobs a policy covers: properties over any jobs, and a table of what breaks each bound."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from console.release.policy import Policy, Used, cost, of_job, to_job, within
from tests.release.making import RUN_ID, make_job

SINCE = datetime(2026, 1, 2, tzinfo=UTC)
IMAGE = f"registry/image@sha256:{'0' * 64}"
TOKEN = "0123456789abcdef"


def policy(**changes: Any) -> Policy:
    fields: dict[str, Any] = {
        "run_id": RUN_ID, "cluster": "gpu", "host": "login.example.org", "port": 22, "user": "alice",
        "account": "research", "qos": "", "partition": "batch", "image": IMAGE, "stages": ("train", "bench"),
        "jobs": 4, "gpu_seconds": 40 * 3600, "days": 3,
    }  # fmt: skip
    return Policy(**{**fields, **changes})


def job(**changes: Any) -> Any:
    """8 GPUs for an hour and a half: 12 GPU hours."""
    return make_job(**{"image": IMAGE, **changes})


def said(bounds: Policy, one: Any, used: Used = Used(), now: datetime = SINCE) -> str:  # noqa: B008
    return within(bounds, used, one, since=SINCE, now=now)


def test_a_job_inside_every_bound_is_covered() -> None:
    assert said(policy(), job()) == ""
    assert cost(job()) == Used(1, 12 * 3600)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"stage": "freeze"}, "stage freeze is not among train, bench"),
        ({"stage": "asked"}, "no job of the flow"),
        ({"run_id": "another"}, "run_id"),
        ({"cluster": "other"}, "cluster"),
        ({"host": "other"}, "host"),
        ({"port": 23}, "port"),
        ({"user": "bob"}, "user"),
        ({"account": "other"}, "account"),
        ({"qos": "high"}, "qos"),
        ({"partition": "big"}, "partition"),
        ({"partition": ""}, "partition"),
        ({"image": f"registry/image@sha256:{'1' * 64}"}, "image"),
        ({"image": ""}, "image"),
        ({"time": ""}, "its cost is not known"),
        ({"time": "00:00:00"}, "its cost is not known"),
        ({"time": "2-00:00:00"}, "GPU hours to 384.00 of at most 40.00"),
        ({"nodes": 8}, "GPU hours to 48.00 of at most 40.00"),
        ({"extra_options": ("--array=0-3",)}, "GPU hours to 48.00"),
        ({"extra_options": ("--array=0-4",)}, "job 5 of at most 4"),
        ({"extra_options": ("--array=0-N",)}, "is not counted"),
        ({"extra_options": ("--gres=gpu:8",)}, "is not counted"),
        ({"extra_options": ("--array", "0-3")}, "is not counted"),
        ({"options": ("--time=1",)}, "is not counted"),
        ({"body": "  #SBATCH --array=0-999\n"}, "#SBATCH"),
    ],
)
def test_a_job_outside_a_bound_is_not_covered_and_the_bound_is_named(change: dict[str, Any], words: str) -> None:
    one = job(**change)
    text = said(policy(), one)
    assert words in text or (words == "is not counted" and "are not counted" in text)


def test_a_policy_holds_for_its_days_and_not_before_it_was_approved() -> None:
    assert said(policy(), job(), now=SINCE + timedelta(days=3, seconds=-1)) == ""
    assert "the policy holds from" in said(policy(), job(), now=SINCE + timedelta(days=3))
    assert "the policy holds from" in said(policy(), job(), now=SINCE - timedelta(seconds=1))


jobs = st.builds(
    lambda nodes, gpus, seconds, array: job(
        nodes=nodes, gpus_per_node=gpus, time=f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}",
        extra_options=(f"--array=0-{array - 1}",) if array else (),
    ),
    st.integers(1, 9), st.integers(0, 8), st.integers(0, 36000), st.integers(0, 5),
)  # fmt: skip


@given(st.lists(jobs, max_size=30), st.integers(1, 20), st.integers(0, 400_000))
def test_what_is_covered_in_any_order_never_takes_more_than_the_bounds(some: list[Any], most: int, gpus: int) -> None:
    bounds = policy(jobs=most, gpu_seconds=gpus)
    used = Used()
    for one in some:
        if said(bounds, one, used) == "":
            takes = cost(one)
            assert isinstance(takes, Used)
            assert takes.jobs >= 1
            used += takes
    assert used.jobs <= most
    assert used.gpu_seconds <= gpus


@given(jobs, st.integers(0, 10), st.integers(0, 400_000), st.integers(0, 5), st.integers(0, 100_000))
def test_using_more_never_lets_more_in(one: Any, count: int, seconds: int, more: int, longer: int) -> None:
    bounds = policy(jobs=10, gpu_seconds=400_000)
    if said(bounds, one, Used(count, seconds)):
        assert said(bounds, one, Used(count + more, seconds + longer)) != ""


@given(st.integers(0, 99), st.integers(0, 99), st.integers(1, 9), st.integers(1, 9))
def test_an_array_counts_each_of_its_jobs(first: int, more: int, step: int, limit: int) -> None:
    ids = range(first, first + more + 1, step)
    takes = cost(job(extra_options=(f"--array={first}-{first + more}:{step}%{limit}",)))
    assert takes == Used(len(ids), len(ids) * 12 * 3600)
    listed = cost(job(extra_options=(f"--array={','.join(map(str, ids))}",)))
    assert listed == takes


@given(st.text(max_size=12))
def test_an_array_that_is_not_understood_is_not_counted_as_one_job(text: str) -> None:
    takes = cost(job(extra_options=(f"--array={text}",)))
    if isinstance(takes, Used):
        assert text[:1].isdecimal()
        assert takes.jobs >= 1


def test_a_policy_lies_in_the_queue_as_itself_and_nothing_beside_it() -> None:
    made = to_job(policy(), 1, TOKEN)
    assert of_job(made) == policy()
    assert made.sbatch_options() == ()
    for change in ({"summary": "x"}, {"nodes": 2}, {"script": "echo\n"}, {"partition": "big"}, {"kind": "sbatch"},
                   {"environment": (("A", "b"),)}, {"script": made.script + " "}):  # fmt: skip
        assert of_job(made.model_copy(update=change)) is None


def test_any_changed_bound_is_another_digest() -> None:
    digests = {to_job(policy(**change), 1, TOKEN).digest for change in (
        {}, {"jobs": 5}, {"gpu_seconds": 1}, {"days": 4}, {"stages": ("train",)}, {"partition": "big"}, {"image": ""},
    )}  # fmt: skip
    assert len(digests) == 7
