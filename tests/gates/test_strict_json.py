"""Strict reading of JSON: what is refused, by what name, and with which place."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gates.reading import BOM, Document, Fault, Unread, read_json, step

UNREADABLE = [
    (None, Fault.MISSING, "no such file"),
    (b"", Fault.EMPTY, "0 bytes"),
    (b" \n\t", Fault.EMPTY, "3 bytes"),
    (b"\x00" * 512, Fault.EMPTY, "512 bytes"),
    (BOM + b"{}", Fault.BOM, "byte-order mark"),
    (BOM, Fault.BOM, "byte-order mark"),
    ("{}".encode("utf-16"), Fault.ENCODING, "byte 0"),
    (b'{"a": "\xff"}', Fault.ENCODING, "byte 7"),
    (b'{"a": "\xc3', Fault.TRUNCATED, "7 bytes"),
    (b'{"a": 1', Fault.TRUNCATED, "7 characters"),
    (b'{"a": "b', Fault.TRUNCATED, "8 characters"),
    (b'{"a": tru', Fault.TRUNCATED, "middle of the document"),
    (b'{"a": -', Fault.TRUNCATED, "middle of the document"),
    (b'{"a": 1.', Fault.TRUNCATED, "middle of the document"),
    (b'{"a": 1e+', Fault.TRUNCATED, "middle of the document"),
    (b'{"a": "\\u12', Fault.TRUNCATED, "middle of the document"),
    (b"{}{}", Fault.TRAILING, "character 2"),
    (b'{"a": 1}\n{"a": 2}\n', Fault.TRAILING, "character 9"),
    (b"{} trailing", Fault.TRAILING, "character 3"),
    (b"{}\x00", Fault.TRAILING, "character 2"),
    (b'{"a": 1, "a": 1}', Fault.DUPLICATE, "a is there twice"),
    (b'{"a": [{"b c": {"d": 1, "d": 2}}]}', Fault.DUPLICATE, 'a[0]["b c"].d is there twice'),
    (b'{"a": NaN, "b": 1, "b": 2}', Fault.DUPLICATE, "b is there twice"),
    (b"[" * 10**6, Fault.DEPTH, "too deeply"),
    (b'{"a":' * 10**6, Fault.DEPTH, "too deeply"),
    (b'{"n": NaN, "a": ' + b"[" * 10**5 + b"]" * 10**5 + b"}", Fault.DEPTH, "too deeply"),
    (b"{'a': 1}", Fault.SYNTAX, "character 1"),
    (b'{"a": 1,}', Fault.SYNTAX, "line 1"),
    (b'{"a": "\n"}', Fault.SYNTAX, "character 7"),
    (b'{"a": 01}', Fault.SYNTAX, "character 7"),
    (b"// comment\n{}", Fault.SYNTAX, "character 0"),
    (b"<html>502</html>", Fault.SYNTAX, "character 0"),
    (b"[1, 2]", Fault.NOT_OBJECT, "a list of 2"),
    (b"7", Fault.NOT_OBJECT, "a number"),
    (b"NaN", Fault.NOT_OBJECT, "NaN"),
    (b'"text"', Fault.NOT_OBJECT, "text"),
    (b"null", Fault.NOT_OBJECT, "null"),
]


@pytest.mark.parametrize(("data", "fault", "words"), UNREADABLE)
def test_what_is_not_one_strict_object_is_named(data: bytes | None, fault: Fault, words: str) -> None:
    read = read_json(data)
    assert isinstance(read, Unread)
    assert read.fault is fault
    assert words in read.why


def test_a_size_limit_is_a_fault_of_its_own() -> None:
    read = read_json(b'{"a": 1}', limit=7)
    assert isinstance(read, Unread)
    assert read.fault is Fault.SIZE
    assert isinstance(read_json(b'{"a": 1}', limit=8), Document)


def test_a_byte_order_mark_can_be_allowed() -> None:
    assert read_json(BOM + b'{"a": 1}', allow_bom=True) == Document({"a": 1})


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ('{"a": NaN}', [("a", "NaN")]),
        ('{"a": [1, {"b": Infinity}], "c": -Infinity}', [("a[1].b", "Infinity"), ("c", "-Infinity")]),
        ('{"a": 1e999}', [("a", "1e999")]),
        ('{"a": {"b": -1e999, "c": 1e308}}', [("a.b", "-1e999")]),
        ('{"a": [' + "9" * 5000 + "]}", [("a[0]", "9" * 80 + "…")]),
    ],
)
def test_a_number_that_nothing_may_be_compared_with_is_listed_with_its_path(
    text: str, found: list[tuple[str, str]]
) -> None:
    read = read_json(text.encode())
    assert isinstance(read, Document)
    assert list(read.unusable) == found


def test_the_rest_of_a_document_with_such_a_number_is_there() -> None:
    read = read_json(b'{"a": {"b": NaN, "c": [1, 2.5, "x", null, true]}, "d": {}}')
    assert isinstance(read, Document)
    assert read.root["a"]["c"] == [1, 2.5, "x", None, True]
    assert read.root["d"] == {}


@pytest.mark.parametrize(
    ("keys", "path"),
    [
        (("arms", "B", "points", 0, "failed"), "arms.B.points[0].failed"),
        (("a b",), '["a b"]'),
        (("files", "x/y.json"), 'files["x/y.json"]'),
        (("\x1b[31m",), '["\\u001b[31m"]'),
        (("",), '[""]'),
    ],
)
def test_paths(keys: tuple[str | int, ...], path: str) -> None:
    built = ""
    for key in keys:
        built = step(built, key)
    assert built == path


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**12), 10**12)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=10),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=6), inner, max_size=4),
    max_leaves=15,
)
objects = st.dictionaries(st.text(max_size=6), json_values, max_size=4)


@given(document=objects, indent=st.sampled_from([None, 2]), ascii_only=st.booleans())
def test_good_json_is_read_as_it_is(document: dict[str, Any], indent: int | None, ascii_only: bool) -> None:
    text = json.dumps(document, indent=indent, ensure_ascii=ascii_only)
    try:
        data = text.encode()
    except UnicodeEncodeError:
        data = json.dumps(document).encode()
    assert read_json(data) == Document(document)


@given(document=objects, cut=st.integers(0, 10**6))
def test_every_beginning_of_good_json_is_cut_off_or_empty(document: dict[str, Any], cut: int) -> None:
    data = json.dumps(document, ensure_ascii=False).encode("utf-8", "surrogatepass")
    read = read_json(data[: cut % len(data)])
    assert isinstance(read, Unread)
    # Lone surrogates are not UTF-8, wherever the cut is.
    assert read.fault in (Fault.TRUNCATED, Fault.EMPTY) or (read.fault is Fault.ENCODING and b"\xed" in data)


@given(document=objects)
def test_with_the_slow_pass_the_same_is_read(document: dict[str, Any]) -> None:
    text = json.dumps({**document, "odd": "@"}).replace('"odd": "@"', '"odd": NaN')
    read = read_json(text.encode())
    assert isinstance(read, Document)
    odd = [oddity for oddity in read.unusable if oddity.path == "odd"]
    assert [oddity.text for oddity in odd] == ["NaN"]
    assert {key: value for key, value in read.root.items() if key != "odd"} == {
        key: value for key, value in document.items() if key != "odd"
    }


@given(data=st.binary(max_size=300))
def test_no_bytes_raise(data: bytes) -> None:
    read_json(data)
    read_json(data, allow_bom=True)


@given(data=st.text(alphabet='{}[]",:0123456789.eE+-truefalsnNIiy\\ \n', max_size=40))
def test_no_text_that_looks_like_json_raises_or_is_taken_for_more_than_python_takes(data: str) -> None:
    read = read_json(data.encode())
    if isinstance(read, Document):
        assert isinstance(json.loads(data), dict)
