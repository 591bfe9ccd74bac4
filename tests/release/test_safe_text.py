"""Foreign text on the screen: nothing hidden, nothing effective, no two inputs alike."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from console.safe_text import CLOSE, OPEN, cut, decode, oddities, safe, safe_lines
from tests.release.foreign import BLANK, anything, visible


@given(anything)
def test_no_character_without_a_shape_of_its_own_gets_through(text: str) -> None:
    assert visible(safe(text))
    assert not BLANK & set(safe(text))
    safe(text).encode("utf-8")


@given(st.binary())
def test_bytes_that_are_no_text_are_visible_too(data: bytes) -> None:
    assert visible(safe(data))


def read_back(shown: str) -> str:
    """What `safe` was given, from what it shows: possible only if it is injective."""
    names = {"LF": "\n", "CR": "\r", "TAB": "\t", "ESC": "\x1b", "NUL": "\x00", "BEL": "\x07", "BS": "\x08"}
    parts = shown.split(OPEN)
    text = [parts[0]]
    for part in parts[1:]:
        name, _, rest = part.partition(CLOSE)
        if name in names:
            text.append(names[name])
        elif name.startswith("U+"):
            text.append(chr(int(name[2:], 16)))
        else:
            assert name.startswith("0x"), name
            text.append(chr(0xDC00 + int(name[2:], 16)))
        text.append(rest)
    return "".join(text)


@given(anything)
def test_what_was_given_can_be_read_back_from_what_is_shown(text: str) -> None:
    assert read_back(safe(text)) == text


@given(st.binary())
def test_bytes_can_be_read_back_from_what_is_shown(data: bytes) -> None:
    assert read_back(safe(data)).encode("utf-8", "surrogateescape") == data


@given(st.text(), st.characters(codec=None), st.text(), st.characters(codec=None))
def test_texts_that_differ_in_one_character_look_different(before: str, one: str, after: str, other: str) -> None:
    assert (safe(before + one + after) == safe(before + other + after)) == (one == other)


def test_every_code_point_looks_like_no_other() -> None:
    every = [chr(code) for code in range(0x110000)]
    assert len({safe(character) for character in every}) == len(every)


def test_an_escape_sequence_shows_what_it_is() -> None:
    assert safe("\x1b[31mred") == "‹ESC›[31mred"
    assert safe("two\nlines\r\n") == "two‹LF›lines‹CR›‹LF›"
    assert safe(b"caf\xe9") == "caf‹0xE9›"


def test_plain_text_and_letters_of_other_scripts_stay() -> None:
    assert safe("plain text, [/markup] {x}") == "plain text, [/markup] {x}"
    assert safe("Größe 重み Δ") == "Größe 重み Δ"


@given(anything)
def test_lines_split_at_newlines_only(text: str) -> None:
    assert list(safe_lines(text)) == [safe(line) for line in text.split("\n")]


@pytest.mark.parametrize(("width", "shown"), [(5, "abcde"), (4, "abc…"), (1, "…"), (0, "…")])
def test_a_cut_is_marked(width: int, shown: str) -> None:
    assert cut("abcde", width) == shown


def test_oddities_are_counted_apart() -> None:
    assert oddities("plain\ntext") == (0, 0)
    assert oddities("a\u200bb\x1b é") == (2, 1)
    assert oddities(b"\xff") == (1, 0)


@given(st.binary())
def test_decoding_loses_nothing(data: bytes) -> None:
    assert decode(data).encode("utf-8", "surrogateescape") == data
