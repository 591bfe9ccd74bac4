"""What an operator reads before deciding: all of the job, nothing hidden, no two jobs alike."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from console.release import queue
from console.release.job import ExactJob
from console.release.job_view import (
    FOLD_BLANKS,
    FOLD_SPACES,
    Background,
    attention,
    changed_lines,
    job_sections,
    job_text,
    line_text,
    numbered,
    previous_approved,
)
from tests.release.foreign import HOSTILE, anything, visible
from tests.release.making import UPLOADS, decide, make_job, new_run, propose

words = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=40) | st.sampled_from(
    [hostile for hostile in HOSTILE if hostile.isprintable() or "\ud800" not in hostile]
)
FIELDS: dict[str, st.SearchStrategy[Any]] = {
    **dict.fromkeys(("summary", "cluster", "host", "user", "partition", "account", "qos", "mem", "image"), words),
    **dict.fromkeys(("job_dir", "claim_dir", "script"), words),
    "nodes": st.integers(1, 1000),
    "gpus_per_node": st.integers(0, 16),
    "cpus_per_task": st.integers(0, 64),
    "port": st.integers(1, 65535),
    "attempt": st.integers(1, 99),
    "extra_options": st.lists(words, max_size=2).map(tuple),
    "environment": st.lists(st.tuples(st.sampled_from(["A", "B"]), words), max_size=3).map(tuple),
    "results": st.lists(st.tuples(words, words), max_size=2).map(tuple),
    "evidence": st.lists(st.tuples(words, words), max_size=2).map(tuple),
    "uploads": st.sampled_from([(), make_job().uploads]),
}


def shown(job: ExactJob) -> str:
    """Everything that is shown of a job but for what is made from its digest."""
    text = job_text(job_sections(job))
    return text.replace(job.digest, "DIGEST").replace(job.digest[:16], "DIGEST").replace(job.code, "CODE")


@pytest.mark.parametrize("name", sorted(FIELDS))
@given(data=st.data())
@settings(max_examples=20)
def test_a_job_that_differs_in_one_field_looks_different(name: str, data: st.DataObject) -> None:
    one, two = (make_job(**{name: data.draw(FIELDS[name])}) for _ in range(2))
    assert (shown(one) == shown(two)) == (one == two)


@given(st.fixed_dictionaries({}, optional=FIELDS), st.fixed_dictionaries({}, optional=FIELDS))
def test_two_jobs_look_the_same_only_if_they_are(left: dict[str, Any], right: dict[str, Any]) -> None:
    one, two = make_job(**left), make_job(**right)
    assert (shown(one) == shown(two)) == (one == two)


def test_every_field_is_shown() -> None:
    text = job_text(job_sections(make_job(qos="high", mem="10G", cpus_per_task=7)))
    job = make_job(qos="high", mem="10G", cpus_per_task=7)
    for name in ExactJob.model_fields:
        value = getattr(job, name)
        if isinstance(value, str) and name != "script":
            assert value in text, name
    for option in job.sbatch_options():
        assert option in text
    for number, line in enumerate(job.script.splitlines(), 1):
        assert f"{number} {line}".rstrip() in text
    for ref in job.uploads:
        assert f"{ref.name}: {ref.size} bytes, mode 600, SHA-256 {ref.sha256}" in text
    assert "12.00 GPU hours asked for" in text
    assert {"SERVER_TIMEOUT=60", "regression_check = regression_check.json"} <= {
        line.strip() for line in text.splitlines()
    }


@given(st.fixed_dictionaries({}, optional=FIELDS))
def test_nothing_that_acts_on_a_terminal_is_shown(fields: dict[str, Any]) -> None:
    about = Background(id="x", proposer="\x1b[2J", change="a\u202eb", previous=make_job(), previous_id="y\x07")
    sections = job_sections(make_job(**fields), about, {"\x1b.py": b"\xff\x1b"})
    for title, lines in sections:
        for line in (title, *lines):
            assert visible(line)
            assert line == line.rstrip()


def test_a_long_script_is_shown_to_its_last_line() -> None:
    job = make_job(body="".join(f"echo {number}\n" for number in range(5000)))
    (lines,) = [lines for title, lines in job_sections(job) if title.startswith("Script")]
    assert len(lines) == job.script.count("\n")
    assert lines[-1].endswith("echo 4999")


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("a\nb\n", ("1 a", "2 b")),
        ("a", ("1 a", "(no newline at the end)")),
        ("", ()),
        ("\n", ("1",)),
        ("a\n\n\n\n\n\nb\n", ("1 a", "2-6 ‹5 empty lines›", "7 b")),
        ("a" + "\n" * FOLD_BLANKS, ("1 a", "2", "3", "4")),
        ("a\r\n", ("1 a‹CR›",)),
        ("a  \n", ("1 a‹SP×2›",)),
        ("a" + " " * FOLD_SPACES + "b\n", ("1 a‹SP×40›b",)),
        ("a" + " " * (FOLD_SPACES - 1) + "b\n", ("1 a" + " " * 39 + "b",)),
    ],
)
def test_numbered_lines(text: str, lines: tuple[str, ...]) -> None:
    assert numbered(text) == lines


@given(st.text("a \n\r‹›", max_size=30), st.text("a \n\r‹›", max_size=30))
def test_two_scripts_look_the_same_only_if_they_are(one: str, two: str) -> None:
    assert (numbered(one) == numbered(two)) == (one == two)


@given(anything, anything)
def test_two_values_look_the_same_only_if_they_are(one: str, two: str) -> None:
    assert (line_text(one) == line_text(two)) == (one == two)


def test_what_may_not_be_what_it_looks_like_is_counted_and_placed() -> None:
    assert attention(make_job()) == ()
    job = make_job(body="echo ok\nech\u043e\u200b bad\n", user="\u0430lice", environment=(("A", "\x1b"),))
    script, letters, environment, others = attention(job)
    lines = [number for number, line in enumerate(job.script.split("\n"), 1) if not line.isascii() or "\x1b" in line]
    assert len(lines) == 2
    assert script == f"script: 2 characters that cannot be seen, shown as ‹NAME› (lines {lines[0]}, {lines[1]})"
    assert letters.startswith("script: 1 character outside ASCII")
    assert environment.startswith("environment: 1 character that cannot be seen")
    assert others.startswith("other fields: 1 character outside ASCII")


def compare(before: ExactJob | None, after: ExactJob) -> tuple[str, ...]:
    sections = dict(job_sections(after, Background(previous=before, previous_id="001-train-1")))
    return sections["Different from the last approved job of this task"]


def test_without_an_approved_job_before_all_is_new() -> None:
    assert compare(None, make_job()) == ("no job of this task was approved before: all of it is new",)


def test_a_second_attempt_of_the_same_differs_in_nothing() -> None:
    token = "f" * 16
    again = make_job(attempt=2, token=token, environment=(("GONOGO_TOKEN", token), ("SERVER_TIMEOUT", "60")))
    assert compare(make_job(), again) == (
        "compared with 001-train-1: nothing but attempt, token and the names made from them",
    )


def test_differences_name_risks_first_and_the_lines_that_changed() -> None:
    token = "f" * 16
    after = make_job(
        attempt=2,
        token=token,
        partition="",
        environment=(("GONOGO_TOKEN", token), ("SERVER_TIMEOUT", "120")),
        body="echo training\npython3 tool.py --more\n",
        uploads=(),
    )
    lines = compare(make_job(), after)
    assert lines[0] == "compared with 001-train-1: partition, environment, script, uploads"
    assert lines[1] == "RISK partition: batch -> ‹none›"
    assert lines[2:5] == ("environment:", "  - 2 SERVER_TIMEOUT=60", "  + 2 SERVER_TIMEOUT=120")
    script = lines[lines.index("script:") + 1 : lines.index("uploads:")]
    assert [line.split(" ", 4)[4] for line in script] == [
        "export SERVER_TIMEOUT=60",
        "export SERVER_TIMEOUT=120",
        "python3 tool.py",
        "python3 tool.py --more",
    ]
    assert lines[-1].startswith("  + 1 ‹none›")


def test_very_different_long_scripts_are_compared_in_bounded_time() -> None:
    before, after = ([f"{word} {number % 7}" for number in range(20_000)] for word in ("a", "b"))
    lines = changed_lines(before, after, (before, after))
    assert len(lines) == 40_000


@given(st.lists(st.sampled_from("abc"), max_size=8), st.lists(st.sampled_from("abc"), max_size=8))
def test_the_changed_lines_turn_one_version_into_the_other(before: list[str], after: list[str]) -> None:
    kept, added = list(before), {}
    for line in changed_lines(before, after, (before, after)):
        sign, number, text = line.split(" ", 2)
        if sign == "-":
            assert kept[int(number) - 1] == text
            kept[int(number) - 1] = ""
        else:
            added[int(number) - 1] = text
    rest = iter([text for text in kept if text])
    result = [added[index] if index in added else next(rest) for index in range(len(after))]
    assert result == after
    assert next(rest, None) is None


def test_the_job_before_is_the_newest_approved_one_of_the_same_task(tmp_path: Path) -> None:
    writer = new_run(tmp_path / "run")
    wanted = make_job(token="2" * 16, attempt=2)
    for name, job, word in (
        ("001-train-1", make_job(token="1" * 16), queue.APPROVED),
        ("002-train-2", wanted, queue.APPROVED),
        ("003-smoke-1", make_job("smoke", token="3" * 16), queue.APPROVED),
        ("004-train-3", make_job(token="4" * 16, attempt=3), queue.REJECTED),
    ):
        decide(writer, propose(writer, name, job), word)
    propose(writer, "005-train-4", make_job(token="5" * 16, attempt=4))
    now = propose(writer, "006-train-5", make_job(token="6" * 16, attempt=5))
    assert previous_approved(writer.run_dir, now) == ("002-train-2", wanted)
    folder = writer.run_dir / "submissions" / "002-train-2"
    (folder / "job.json").write_bytes((folder / "job.json").read_bytes().replace(b"batch", b"other"))
    found = previous_approved(writer.run_dir, now)
    assert found is not None
    assert found[0] == "001-train-1"
    assert previous_approved(writer.run_dir, queue.load(writer.run_dir, "001-train-1")) is None


def test_files_that_travel_are_shown_when_asked_for() -> None:
    titles = [title for title, _ in job_sections(make_job(), uploads=UPLOADS)]
    assert "File tool.py (1 line)" in titles
    assert not any(title.startswith("File tool.py") for title, _ in job_sections(make_job()))
