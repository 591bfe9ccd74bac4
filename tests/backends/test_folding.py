"""Output becomes the same lines however its bytes were sliced, and nothing is left out without a count."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from backends.watcher.folding import Fold, OutputLine

SMALL = {"longest": 8, "keep_lines": 5, "keep_bytes": 30}

pieces = st.sampled_from(
    [
        b"\n",
        b"\r",
        b"\r\n",
        b"a",
        b"50%",
        b"\x1b[31m",
        b"\x1b]0;t\x07",
        "é日".encode(),
        b"\xff",
        b"x" * 20,
        b" ",
        b"\x00",
    ]
)
outputs = st.lists(pieces | st.binary(max_size=6), max_size=40).map(b"".join)


def folded(*slices: bytes, **limits: int) -> Fold:
    fold = Fold(**limits)
    for data in slices:
        fold.feed(data)
    return fold


def lines(fold: Fold) -> list[OutputLine]:
    return [fold.line(number) for number in range(fold.first, fold.end)]


def texts(data: bytes) -> list[tuple[bytes, int]]:
    return [(line.data, line.folded) for line in lines(folded(data))]


@given(outputs, st.lists(st.integers(0, 200), max_size=12), st.sampled_from([{}, SMALL]))
@example(b"1%\r2%\r\nend", [3, 4, 5], {})
def test_any_slicing_gives_the_same_lines(data: bytes, cuts: list[int], limits: dict[str, int]) -> None:
    places = sorted({min(cut, len(data)) for cut in cuts} | {0, len(data)})
    sliced = folded(*(data[a:b] for a, b in itertools.pairwise(places)), **limits)
    whole, single = folded(data, **limits), folded(*(data[i : i + 1] for i in range(len(data))), **limits)
    assert lines(sliced) == lines(whole) == lines(single)
    assert sliced.first == whole.first == single.first


@given(outputs)
def test_every_newline_is_a_line_that_is_there_or_counted(data: bytes) -> None:
    for limits in ({}, SMALL):
        fold = folded(data, **limits)
        ended = [line for line in lines(fold) if not line.open]
        assert fold.first + len(ended) == data.count(b"\n")
        assert fold.bytes_seen == len(data)
        assert len(ended) <= limits.get("keep_lines", 10**6)


@given(outputs)
def test_what_has_no_carriage_return_is_kept_to_the_byte(data: bytes) -> None:
    data = data.replace(b"\r", b"")
    found = lines(folded(data, longest=10**6))
    assert b"".join(line.data + (b"" if line.open else b"\n") for line in found) == data
    assert all(line.folded == 0 and line.cut == 0 for line in found)


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"one\ntwo\n", [(b"one", 0), (b"two", 0)]),
        (b"one\r\ntwo", [(b"one", 0), (b"two", 0)]),
        (b"1%\r2%\r3%\n", [(b"3%", 2)]),
        (b"\r1%\r2%\r\n", [(b"2%", 1)]),
        (b"1%\r2%\r", [(b"2%", 1)]),
        (b"\r\r\r\n", [(b"", 0)]),
        (b"\n\n", [(b"", 0), (b"", 0)]),
        (b"a\x1b[2K\rb\n", [(b"b", 1)]),
    ],
)
def test_progress_bars_are_folded_to_their_last_state(data: bytes, expected: list[tuple[bytes, int]]) -> None:
    assert texts(data) == expected


def test_a_bar_of_megabytes_is_one_line_with_a_count() -> None:
    fold = Fold()
    for number in range(200):
        fold.feed(b"".join(b"\rstep %d of a long epoch" % step for step in range(number * 1000, number * 1000 + 1000)))
    assert lines(fold) == [OutputLine(b"step 199999 of a long epoch", 27, 199_999, False, True)]


def test_a_long_line_is_cut_at_a_whole_character_and_its_length_stays_known() -> None:
    text = "日" * 5
    (line,) = lines(folded(text.encode() + b"\n", longest=8))
    assert (line.data.decode(), line.length, line.cut) == ("日日", 15, 9)
    (line,) = lines(folded(b"x" * 10_000_000 + b"\n"))
    assert (len(line.data), line.length) == (4000, 10_000_000)
    # What is no UTF-8 anyway is left as it is.
    (line,) = lines(folded(b"\xff" * 20, longest=8))
    assert line.data in (b"\xff" * 7, b"\xff" * 8)


def test_the_oldest_lines_go_first_and_are_counted_and_the_others_keep_their_numbers() -> None:
    fold = folded(b"".join(b"%d\n" % number for number in range(1000)), keep_lines=100)
    assert fold.end == 1000
    assert 1000 - 100 <= fold.first < 1000
    assert all(fold.line(number).data == b"%d" % number for number in range(fold.first, 1000))
    with pytest.raises(IndexError):
        fold.line(fold.first - 1)
    with pytest.raises(IndexError):
        fold.line(1000)
    by_bytes = folded(b"".join(b"%0100d\n" % number for number in range(1000)), keep_bytes=5000)
    assert sum(len(line.data) for line in lines(by_bytes)) <= 5000
    assert by_bytes.end == 1000


def test_a_gap_ends_the_line_before_it_and_is_a_line_of_its_own() -> None:
    fold = folded(b"half a li")
    fold.gap("9 bytes were not read")
    fold.begin_torn()
    fold.feed(b"ne\nwhole\n")
    assert lines(fold) == [
        OutputLine(b"half a li", 9, 0, False, True),
        OutputLine(gap="9 bytes were not read"),
        OutputLine(b"ne", 2, 0, True, False),
        OutputLine(b"whole", 5, 0, False, False),
    ]
