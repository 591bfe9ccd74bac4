"""The exact job: any change is another digest, and stored bytes are read back only as they were written."""

from __future__ import annotations

import itertools
import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from console.release.canonical import canonical
from console.release.job import ExactJob, JobError, UploadRef, build_script, changes, read_job, refuse_secrets, seconds
from tests.release.making import make_job

JOB = make_job()
words = st.text(st.characters(codec="utf-8"), max_size=30)
names = st.from_regex(r"[A-Za-z0-9][A-Za-z0-9._-]{0,20}", fullmatch=True)
hexes = st.text("0123456789abcdef", min_size=64, max_size=64)
pairs = st.lists(st.tuples(words, words), max_size=3).map(tuple)
variables = st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,10}", fullmatch=True)
sizes = st.integers(min_value=0, max_value=2**40)
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "run_id": names,
    "stage": names,
    "task": names,
    "attempt": st.integers(min_value=1, max_value=2**40),
    "summary": words,
    "cluster": words,
    "host": words,
    "port": st.integers(min_value=1, max_value=65535),
    "user": words,
    "token": st.text("0123456789abcdef", min_size=16, max_size=16),
    "job_name": names,
    "partition": words,
    "account": words,
    "qos": words,
    "nodes": st.integers(min_value=1, max_value=2**40),
    "gpus_per_node": sizes,
    "cpus_per_task": sizes,
    "mem": words,
    "time": st.from_regex(r"([0-9]-)?[0-9]{2}:[0-9]{2}:[0-9]{2}", fullmatch=True),
    "image": words,
    "extra_options": st.lists(words, max_size=3).map(tuple),
    "options": st.lists(words, max_size=3).map(tuple),
    "arguments": st.lists(words, max_size=3).map(tuple),
    "job_dir": words,
    "claim_dir": words,
    "environment": st.lists(st.tuples(variables, words), max_size=3).map(tuple),
    "script": words,
    "uploads": st.lists(
        st.builds(UploadRef, name=names, sha256=hexes, size=sizes, mode=st.integers(0, 0o777)), max_size=2
    ).map(tuple),
    "results": pairs,
    "evidence": pairs,
}
FIXED = {"schema_version", "kind"}


def with_changes(job: ExactJob, changed: dict[str, Any]) -> ExactJob:
    fields = {name: getattr(job, name) for name in ExactJob.model_fields}
    return ExactJob(**{**fields, **changed})


def test_every_field_of_a_job_is_varied_here() -> None:
    assert set(VALUES) | FIXED == set(ExactJob.model_fields)


@pytest.mark.parametrize("name", sorted(VALUES))
@given(data=st.data())
@settings(max_examples=25)
def test_a_change_of_any_single_field_changes_the_digest(name: str, data: st.DataObject) -> None:
    value = data.draw(VALUES[name])
    changed = with_changes(JOB, {name: value})
    assert (changed.digest == JOB.digest) == (value == getattr(JOB, name))


@given(st.fixed_dictionaries({}, optional=VALUES))
def test_a_stored_job_comes_back_as_it_was(fields: dict[str, Any]) -> None:
    job = with_changes(JOB, fields)
    assert read_job(job.to_bytes(), "job.json") == job


@given(st.fixed_dictionaries({}, optional=VALUES), st.fixed_dictionaries({}, optional=VALUES))
def test_two_jobs_have_the_same_digest_only_if_they_are_the_same(left: dict[str, Any], right: dict[str, Any]) -> None:
    one, two = with_changes(JOB, left), with_changes(JOB, right)
    assert (one.digest == two.digest) == (one == two)


def stored(**changed: Any) -> bytes:
    record = {**JOB.model_dump(mode="json"), **changed}
    return canonical({key: value for key, value in record.items() if value is not ...}, floats=True)


@pytest.mark.parametrize(
    ("data", "complaint"),
    [
        (b"", "job.json"),
        (b"{}", "job.json: run_id"),
        (b"[]", "job.json"),
        (b"[" * 100_000, "job.json"),
        (JOB.to_bytes() + b"\n", "canonical form"),
        (b" " + JOB.to_bytes(), "canonical form"),
        (json.dumps(JOB.model_dump(mode="json")).encode(), "canonical form"),
        (JOB.to_bytes()[:-1] + b',"user":"alice"}', "canonical form"),
        (JOB.to_bytes().replace(b"echo", b"\\u0065cho"), "canonical form"),
        (stored(more="x"), "more"),
        (stored(user=...), "user"),
        (stored(nodes="2"), "nodes"),
        (stored(nodes=2.0), "nodes"),
        (stored(nodes=True), "nodes"),
        (stored(nodes=0), "nodes"),
        (stored(schema_version=2), "schema_version"),
        (stored(kind="command"), "kind"),
        (stored(time="90"), "time"),
        (stored(time="०१:३०:००"), "time"),
        (stored(token="0123"), "token"),
        (stored(job_name="a b"), "job_name"),
        (stored(environment=[["A; rm -rf /", "x"]]), "environment"),
        (stored(environment=[["A\n", "x"]]), "environment"),
        (stored(uploads=[{"name": "../x", "sha256": "0" * 64, "size": 1, "mode": 0}]), "uploads.0.name"),
        (JOB.to_bytes().replace(b"echo", b"\\ud800echo"), "job.json"),
    ],
    ids=itertools.count(),
)
def test_bytes_that_are_not_exactly_a_job_are_refused_in_one_line(data: bytes, complaint: str) -> None:
    assert data != JOB.to_bytes()
    with pytest.raises(JobError) as fault:
        read_job(data, "job.json")
    assert complaint in str(fault.value)
    assert "\n" not in str(fault.value)


def test_a_job_cannot_be_changed_after_it_was_made() -> None:
    with pytest.raises(ValidationError):
        JOB.partition = "other"  # type: ignore[misc]
    with pytest.raises(ValidationError):
        JOB.uploads[0].size = 1  # type: ignore[misc]


def test_the_options_say_what_the_fields_say() -> None:
    options = make_job(qos="high", mem="10G", cpus_per_task=8, extra_options=("--exclusive",)).sbatch_options()
    assert options[:3] == ("--parsable", "--no-requeue", "--export=NONE")
    assert {"--partition=batch", "--account=research", "--qos=high", "--mem=10G", "--nodes=2"} <= set(options)
    assert {"--gpus-per-node=4", "--cpus-per-task=8", "--time=01:30:00"} <= set(options)
    assert options[-1] == "--exclusive"
    assert not any("qos" in option or "mem" in option for option in JOB.sbatch_options())


def test_the_comment_carries_token_and_digest() -> None:
    assert f"--comment=gonogo:{JOB.token}:{JOB.digest[:16]}" in JOB.sbatch_options()
    assert JOB.code == JOB.digest[:8]


@pytest.mark.parametrize(
    ("text", "wanted"), [("00:00:01", 1), ("01:30:00", 5400), ("1-00:00:00", 86400), ("2-03:04:05", 183845)]
)
def test_time_limits_in_seconds(text: str, wanted: int) -> None:
    assert seconds(text) == wanted


def test_cost_is_all_gpus_for_the_whole_limit() -> None:
    assert (JOB.gpus, JOB.limit_s, JOB.gpu_hours) == (8, 5400, 12.0)


@pytest.mark.parametrize("name", ["HF_TOKEN", "TOKEN", "AWS_SECRET_ACCESS_KEY", "DB_PASSWORD", "OPENAI_API_KEY"])
def test_a_secret_by_value_is_refused(name: str) -> None:
    with pytest.raises(JobError, match=name):
        refuse_secrets((("A", "1"), (name, "value")))
    refuse_secrets(((name, ""),))


@pytest.mark.parametrize("name", ["GONOGO_TOKEN", "TOKENIZERS_PARALLELISM", "MAX_TOKENS", "SERVER_TIMEOUT"])
def test_what_only_looks_like_a_secret_passes(name: str) -> None:
    refuse_secrets(((name, "value"),))


def test_nothing_differs_without_a_job_before() -> None:
    assert changes(None, JOB) == []
    assert changes(JOB, JOB) == []


def test_another_attempt_of_the_same_job_differs_in_nothing_worth_a_line() -> None:
    assert changes(JOB, make_job(attempt=2, token="f" * 16, environment=(("GONOGO_TOKEN", "f" * 16),
                                                                       ("SERVER_TIMEOUT", "60")))) == []  # fmt: skip


def test_risky_changes_come_first() -> None:
    after = make_job(attempt=2, token="f" * 16, summary="New", partition="big", image="other", time="02:00:00")
    assert [name for name, _, _ in changes(JOB, after)][:3] == ["image", "partition", "time"]
    assert ("partition", "batch", "big") in changes(JOB, after)


@pytest.mark.parametrize("name", sorted(set(VALUES) - {"attempt", "token"}))
def test_a_change_of_any_field_but_the_attempt_is_named(name: str) -> None:
    other: dict[str, Any] = {
        "attempt": 2, "port": 23, "nodes": 3, "gpus_per_node": 5, "cpus_per_task": 1, "time": "02:00:00",
        "options": ("--exclusive",), "arguments": ("a",), "extra_options": ("--exclusive",),
        "environment": (("A", "b"),), "uploads": (), "results": (), "evidence": (),
    }  # fmt: skip
    after = with_changes(JOB, {name: other.get(name, "elsewhere")})
    assert name in [row[0] for row in changes(JOB, after)]


def test_the_script_starts_once_and_exports_what_it_says(tmp_path: Path) -> None:
    claim, work = tmp_path / "claim's", tmp_path / "work"
    claim.mkdir()
    work.mkdir()
    environment = (("WORDS", "two words; $(touch forged) 'q'"), ("GONOGO_JOB_DIR", str(work)))
    script = build_script(
        '#!/bin/sh\nprintf "%s|%s\\n" "$WORDS" "$PWD" >> ran', claim_dir=str(claim), job_dir=str(work),
        environment=environment,
    )  # fmt: skip
    assert script.startswith("#!/bin/bash\n")
    assert script.endswith("\n")
    statuses = [subprocess.run(["bash", "-s"], input=script.encode(), timeout=60).returncode for _ in range(2)]
    assert statuses == [0, 97]
    assert (work / "ran").read_text() == f"{environment[0][1]}|{work}\n"
    assert not (work / "forged").exists()


def test_a_script_whose_claim_cannot_be_made_does_not_run(tmp_path: Path) -> None:
    script = build_script("touch ran\n", claim_dir=f"{tmp_path}/gone", job_dir=str(tmp_path), environment=())
    done = subprocess.run(["bash", "-s"], input=script.encode(), timeout=60, capture_output=True)
    assert done.returncode == 98
    assert not (tmp_path / "ran").exists()
