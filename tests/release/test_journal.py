"""The work log: read back without loss, every change noticed, a cut tail noticed."""

from __future__ import annotations

import json
import random
import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from console.release import journal
from console.release.journal import (
    GENESIS,
    PREAMBLE,
    Entry,
    Journal,
    Kind,
    LogError,
    TornLog,
    check_anchor,
    make_entry,
    markdown_text,
    parse,
    render,
    scan,
)
from tests.release.foreign import anything, visible
from tests.release.making import Clock

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | anything,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(anything, inner, max_size=3),
    max_leaves=6,
)
records = st.tuples(st.sampled_from(Kind), anything, anything, anything, st.dictionaries(anything, values, max_size=3))


def chain(*made: tuple[Kind, str, str, str, dict[str, Any]]) -> list[Entry]:
    entries: list[Entry] = []
    clock, prev = Clock(), GENESIS
    for number, (kind, actor, stage, text, data) in enumerate(made, 1):
        entries.append(make_entry(number, clock(), kind, actor, stage, text, data, prev))
        prev = entries[-1].hash
    return entries


def until_fault(data: bytes) -> tuple[list[Entry], str]:
    """What can be read before the fault that there must be, and what it says."""
    found: list[Entry] = []
    try:
        found.extend(parse(data))
    except LogError as fault:
        return found, str(fault)
    raise AssertionError("the change was not noticed")


def written(entries: list[Entry]) -> bytes:
    return PREAMBLE + b"".join(map(render, entries))


SAMPLE = chain(
    (Kind.ACTION, "conductor", "setup", "Stage setup begins", {"event": "stage_started", "stage": "setup"}),
    (Kind.HUMAN_INTERVENTION, "operator:alice", "train", "Rejected: too *long*", {"event": "x", "loss": 0.1}),
    (Kind.ACTION, "conductor", "", "Job <-- x --> is COMPLETED", {"n": [1, None, "é"]}),
    (Kind.ACTION, "policy", "bench", "The last", {}),
)


@given(st.lists(records, max_size=4))
@settings(max_examples=150)
def test_any_log_is_read_back_without_loss(made: list[Any]) -> None:
    entries = chain(*made)
    assert list(parse(written(entries))) == entries


@given(records)
def test_the_file_is_printable_text_whatever_an_entry_holds(made: Any) -> None:
    text = render(chain(made)[0]).decode("utf-8")
    assert all(visible(line) for line in text.split("\n"))


@given(records)
def test_only_the_record_opens_a_comment_and_it_closes_once(made: Any) -> None:
    text = render(chain(made)[0]).decode("utf-8")
    assert (text.count("<!--"), text.count("-->")) == (1, 1)
    assert re.sub(r"\\[<>]", "", text).count("<") == 1


@given(anything)
def test_foreign_text_in_the_readable_part_does_nothing_in_markdown(text: str) -> None:
    shown = markdown_text(text)
    unescaped = re.sub(r"\\[\\`*\[\]<>|&#~_+=.)-]", "", shown)
    assert not set("\\`*[]<>|&#~") & set(unescaped)
    assert not re.search(r"(?<!\w)_|_(?!\w)", re.sub(r"\w_(?=\w)", "", unescaped.replace("__", "")))
    assert not re.match(r" *([-+=]|\d+[.)]( |$))", shown)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("1. forged", "1\\. forged"),
        ("  - forged", "  \\- forged"),
        ("## 9 · forged", "\\#\\# 9 · forged"),
        ("stage_target _x_", "stage_target \\_x\\_"),
        ("two\n\n## forged", "two‹LF›‹LF›\\#\\# forged"),
        ("<!-- gonogo {} -->", "\\<!-- gonogo {} --\\>"),
        ("2026-01-02 10.5", "2026-01-02 10.5"),
        ("10.5 tokens", "10.5 tokens"),
    ],
)
def test_text_cannot_forge_an_entry(text: str, shown: str) -> None:
    assert markdown_text(text) == shown


def test_every_changed_byte_is_noticed_and_the_entry_named() -> None:
    data = written(SAMPLE)
    starts = [len(PREAMBLE)]
    for entry in SAMPLE:
        starts.append(starts[-1] + len(render(entry)))
    dice = random.Random(7)
    for position in range(len(data)):
        changed = bytearray(data)
        changed[position] ^= 1 << dice.randrange(8)
        found, fault = until_fault(bytes(changed))
        if position < len(PREAMBLE):
            assert "line 1" in fault
            continue
        number = sum(start <= position for start in starts)
        assert found == SAMPLE[: number - 1]
        line = data[: starts[number - 1]].count(b"\n") + 1
        assert f"entry {number} (line {line})" in fault


@pytest.mark.parametrize("number", [1, 2, 3])
def test_a_removed_entry_is_noticed(number: int) -> None:
    data = PREAMBLE + b"".join(render(entry) for entry in SAMPLE if entry.seq != number)
    with pytest.raises(LogError, match=f"entry {number} .*removed, added or moved"):
        list(parse(data))


def test_a_moved_and_a_repeated_entry_are_noticed() -> None:
    one, two, three, four = map(render, SAMPLE)
    for data in (one + three + two + four, one + two + two + three, two + one):
        with pytest.raises(LogError, match="removed, added or moved"):
            list(parse(PREAMBLE + data))


def test_an_entry_written_again_with_its_own_hash_breaks_the_chain() -> None:
    forged = make_entry(2, datetime(2026, 1, 2, tzinfo=UTC), Kind.ACTION, "conductor", "", "Approved", {}, GENESIS)
    with pytest.raises(LogError, match="does not follow"):
        list(parse(PREAMBLE + render(SAMPLE[0]) + render(forged)))


def test_a_log_cut_anywhere_gives_the_whole_entries_before_the_cut() -> None:
    data = written(SAMPLE)
    ends = [len(PREAMBLE)]
    for entry in SAMPLE:
        ends.append(ends[-1] + len(render(entry)))
    for length in range(len(data) + 1):
        entries, torn = scan(data[:length])
        whole = max((number for number, end in enumerate(ends) if end <= length), default=0)
        assert entries == SAMPLE[:whole]
        at_an_end = length in ends or length < len(PREAMBLE)
        assert (torn is None) == at_an_end
        if torn is not None:
            assert torn.position == ends[whole]


def test_bytes_after_the_last_entry_are_noticed() -> None:
    for extra in (b"\n", b"x", b"\n\n", b"a note by hand\n"):
        with pytest.raises(LogError):
            list(parse(written(SAMPLE) + extra))


def test_the_anchor_tells_a_cut_tail_and_another_log() -> None:
    check_anchor(SAMPLE, 4, SAMPLE[3].hash)
    check_anchor(SAMPLE, 3, SAMPLE[2].hash)
    check_anchor([], 0, GENESIS)
    with pytest.raises(LogError, match=r"ends after entry 3.*knows of 4: the end was cut"):
        check_anchor(SAMPLE[:3], 4, SAMPLE[3].hash)
    with pytest.raises(LogError, match="entry 3 is not the one"):
        check_anchor(SAMPLE, 3, SAMPLE[3].hash)


@pytest.mark.parametrize(
    "change",
    [
        lambda record: record.pop("stage"),
        lambda record: record.update(more=1),
        lambda record: record.update(seq=True),
        lambda record: record.update(seq="1"),
        lambda record: record.update(kind="APPROVAL"),
        lambda record: record.update(text=None),
        lambda record: record.update(data=[]),
        lambda record: record.update(prev="é"),
    ],
)
def test_a_record_of_another_shape_is_refused(change: Any) -> None:
    record = SAMPLE[0].to_json()
    change(record)
    line = b"<!-- gonogo " + json.dumps(record).encode() + b" -->\n\n"
    with pytest.raises(LogError, match="entry 1"):
        list(parse(PREAMBLE + b"## x\n\ntext\n\n" + line))


@pytest.mark.parametrize("record", [b"{" * 50, b'{"a":' * 5000 + b"1" + b"}" * 5000, b'{"seq":' + b"9" * 5000 + b"}"])
def test_a_record_that_is_no_json_never_raises_anything_else(record: bytes) -> None:
    with pytest.raises(LogError):
        list(parse(PREAMBLE + b"<!-- gonogo " + record + b" -->\n\n"))


@given(st.binary(max_size=300))
def test_any_bytes_are_a_log_or_a_clear_fault(data: bytes) -> None:
    for candidate in (data, PREAMBLE + data, written(SAMPLE[:1]) + data):
        try:
            entries, torn = scan(candidate)
        except LogError:
            continue
        assert entries == SAMPLE[: len(entries)]
        assert torn is not None or written(entries)[: len(candidate)] == candidate


def test_the_writer_appends_and_takes_up_where_it_ended(tmp_path: Path) -> None:
    clock = Clock()
    first = Journal(tmp_path, clock)
    made = [first.append(Kind.ACTION, "conductor", "setup", f"Step {number}", {"n": number}) for number in range(3)]
    again = Journal(tmp_path, clock, (3, made[-1].hash))
    made.append(again.append(Kind.ACTION, "conductor", "", "Step 3", {}))
    assert journal.read_log(tmp_path) == made == again.entries
    assert [entry.seq for entry in made] == [1, 2, 3, 4]
    assert again.head == made[-1].hash


def test_a_torn_tail_is_set_aside_and_the_log_goes_on(tmp_path: Path) -> None:
    first = Journal(tmp_path, Clock())
    kept = first.append(Kind.ACTION, "conductor", "", "Whole", {})
    whole = (tmp_path / journal.LOG_NAME).read_bytes()
    lost = render(make_entry(2, Clock()(), Kind.ACTION, "conductor", "", "Torn", {}, kept.hash))
    for cut in (1, len(lost) // 2, len(lost) - 1):
        (tmp_path / journal.LOG_NAME).write_bytes(whole + lost[:cut])
        writer = Journal(tmp_path, Clock(), (1, kept.hash))
        assert (tmp_path / "work_log.torn-2").read_bytes() == lost[:cut]
        assert (tmp_path / journal.LOG_NAME).read_bytes() == whole
        assert writer.entries == [kept]


def test_a_torn_heading_is_completed(tmp_path: Path) -> None:
    for cut in range(len(PREAMBLE)):
        (tmp_path / journal.LOG_NAME).write_bytes(PREAMBLE[:cut])
        Journal(tmp_path, Clock())
        assert (tmp_path / journal.LOG_NAME).read_bytes() == PREAMBLE


def test_the_writer_refuses_a_log_that_was_cut_or_changed_and_writes_nothing(tmp_path: Path) -> None:
    path = tmp_path / journal.LOG_NAME
    for data in (written(SAMPLE[:3]), written(SAMPLE)[:-5], written(SAMPLE).replace(b"loss", b"gain")):
        path.write_bytes(data)
        with pytest.raises(LogError):
            Journal(tmp_path, Clock(), (4, SAMPLE[3].hash))
        assert path.read_bytes() == data
    path.unlink()
    with pytest.raises(LogError):
        Journal(tmp_path, Clock(), (4, SAMPLE[3].hash))
    assert not path.exists()


def test_what_cannot_be_written_down_is_refused_before_a_byte_is_written(tmp_path: Path) -> None:
    writer = Journal(tmp_path, Clock())
    writer.append(Kind.ACTION, "conductor", "", "Good", {"loss": 0.5})
    before = (tmp_path / journal.LOG_NAME).read_bytes()
    for data in ({"loss": float("nan")}, {"x": b"bytes"}, {1: "x"}):
        with pytest.raises((ValueError, TypeError)):
            writer.append(Kind.ACTION, "conductor", "", "Bad", data)
    assert (tmp_path / journal.LOG_NAME).read_bytes() == before
    writer.append(Kind.ACTION, "conductor", "", "Good again", {})
    assert len(journal.read_log(tmp_path)) == 2


def test_a_missing_log_says_what_was_looked_for(tmp_path: Path) -> None:
    with pytest.raises(LogError, match=r"work_log\.md: cannot be read"):
        journal.read_log(tmp_path)


def test_a_torn_entry_is_a_log_error_too() -> None:
    assert issubclass(TornLog, LogError)
