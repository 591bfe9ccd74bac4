"""What holds for the readers of all producers: shapes are told apart, and no change makes a number of what is none."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gates.reading import Fault, ResultBytes
from gates.results.documents import Layout, load
from gates.results.fields import Reading, ResultError
from gates.results.meaning import Histogram, Number, Series, Table
from gates.results.producers import BY_NAME, PRODUCERS, detect
from gates.results.statements import statements, to_json
from tests.results.every_producer import DOCUMENTS, SAMPLES, path
from tests.results.foreign_files import Keys, drop, put, walk

NOT_FINITE = ("NaN", "Infinity", "-Infinity", "1e999", "9" * 5000)
EVERY = sorted(SAMPLES)


def read(name: str, data: bytes) -> Reading | None:
    """The record, None where the reader refuses; anything else that is raised is a fault."""
    try:
        made = BY_NAME[name].read(ResultBytes("result", data))
    except ResultError as error:
        refusal = error
    else:
        return checked(made)
    assert refusal.problems
    assert str(refusal).startswith("result")
    return None


def checked(made: Reading) -> Reading:
    for statement in statements(made):
        json.dumps(to_json(statement), allow_nan=False)
    return made


def fields_stated(made: Reading) -> set[str]:
    """Places from which the record has numbers."""
    found: set[str] = set()
    for statement in statements(made):
        value = statement.value
        if isinstance(value, Number | Series | Histogram):
            found.add(value.field)
        elif isinstance(value, Table):
            found |= {value.field, *(f"{value.field}.{name}".lstrip(".") for name, _ in value.written)}
    return found


def test_there_is_a_sample_of_every_producer() -> None:
    assert sorted(BY_NAME) == EVERY
    assert len(BY_NAME) == len(PRODUCERS)
    assert len({producer.written_by for producer in PRODUCERS}) == len(PRODUCERS)


@pytest.mark.parametrize("name", EVERY)
def test_its_own_shape_and_no_other(name: str) -> None:
    found = detect(SAMPLES[name].file())
    assert [producer.name for producer in found.producers] == [name]
    made = BY_NAME[name].read(SAMPLES[name].file())
    assert made.usable, made.remarks
    assert BY_NAME[name].written_by == type(made).WRITTEN_BY


@pytest.mark.parametrize("name", EVERY)
def test_no_other_reader_takes_it(name: str) -> None:
    extends = {"lm-eval": ("atom-native", "atom-oot", "atom-sglang", "atom-accuracy")}
    for other in EVERY:
        if other != name and name not in extends.get(other, ()):
            assert read(other, SAMPLES[name].data()) is None, f"{other} takes a file of {name}"


@pytest.mark.parametrize("name", EVERY)
def test_every_number_has_a_meaning(name: str) -> None:
    for statement in statements(BY_NAME[name].read(SAMPLES[name].file())):
        value = statement.value
        if isinstance(value, Number | Series | Table | Histogram):
            meaning = value.meaning
            assert meaning.name
            assert meaning.words
            about_length = "acceptance length" in meaning.name
            assert (meaning.bonus is not None) or not about_length, statement.name
            assert not about_length or meaning.unit == "tokens per target step"
            assert "rate" not in meaning.name.split() or "acceptance" not in meaning.name or meaning.formula


NEEDED = [(name, place) for name in DOCUMENTS for place in SAMPLES[name].needed]


@pytest.mark.parametrize(("name", "place"), NEEDED, ids=[f"{name} {path(place)}" for name, place in NEEDED])
def test_a_needed_field_cannot_be_removed_or_retyped(name: str, place: Keys) -> None:
    sample = SAMPLES[name]
    document = sample.make()
    value = document
    for key in place:
        value = value[key]
    others = [None, True, [True], {"x": None}, {}]
    if not isinstance(value, str):
        others += ["5", "1.5", ""]
    if isinstance(value, (str, dict | list)):
        others += [5, 1.5]
    assert read(name, sample.data()) is not None
    assert read(name, sample.data(drop(document, place))) is None
    for other in others:
        if other != value:
            assert read(name, sample.data(put(document, place, other))) is None, other
    for text in NOT_FINITE:
        spoilt = sample.data(put(document, place, "@here@")).replace(b'"@here@"', text.encode())
        assert read(name, spoilt) is None, text


@pytest.mark.parametrize("name", DOCUMENTS)
def test_what_is_no_number_never_becomes_one(name: str) -> None:
    """For every place in a file, needed or not, used or not."""
    sample = SAMPLES[name]
    document = sample.make()
    tried = 0
    for place in walk(document):
        where = path(place)
        base = sample.data(put(document, place, "@here@"))
        for text in ("null", "true", '"nan"', "[]", "{}", *NOT_FINITE):
            made = read(name, base.replace(b'"@here@"', text.encode()))
            tried += 1
            if made is None or text in ("[]", "{}"):
                continue
            assert where not in fields_stated(made), (where, text)
            if text in NOT_FINITE:
                named = any(where in remark.field for remark in made.remarks)
                legal = name == "sglang-serving" and where == "request_rate" and text == "Infinity"
                assert named or legal, (where, text)
    assert tried >= 50


@pytest.mark.parametrize("name", EVERY)
def test_a_file_cut_off_anywhere_is_never_read(name: str) -> None:
    data = SAMPLES[name].data().rstrip()
    for end in range(0, len(data), max(1, len(data) // 150)):
        if name in ("golden-lengths", "vllm-metrics") and data[:end].endswith(b"\n"):
            read(name, data[:end])  # lines that are cut off between two of them are lines
        elif name == "golden-lengths":
            read(name, data[:end])  # and YAML that is cut off anywhere may be YAML
        else:
            assert read(name, data[:end]) is None
            if name in DOCUMENTS:
                assert detect(ResultBytes("result", data[:end])).producers == ()


@pytest.mark.parametrize("name", EVERY)
@pytest.mark.parametrize(
    ("change", "fault"),
    [
        (lambda data: b"\xef\xbb\xbf" + data, Fault.BOM),
        (lambda data: b"", Fault.EMPTY),
        (lambda data: b"\n \x00", Fault.EMPTY),
        (lambda data: data + b"\xff", Fault.ENCODING),
        (lambda data: None, Fault.MISSING),
        (lambda data: b"[" * 10**5, Fault.DEPTH),
    ],
    ids=["mark", "empty", "zeros", "bytes", "missing", "deep"],
)
def test_what_cannot_be_taken_apart(name: str, change: Any, fault: Fault) -> None:
    file = ResultBytes("result", change(SAMPLES[name].data()), "no such file")
    with pytest.raises(ResultError) as caught:
        BY_NAME[name].read(file)
    assert caught.value.unread
    found = detect(file)
    assert found.unread is not None
    assert found.unread.fault is fault


@pytest.mark.parametrize("name", DOCUMENTS)
def test_a_key_that_comes_twice(name: str) -> None:
    text = SAMPLES[name].data().decode()
    key = next(iter(_keys(SAMPLES[name].make())))
    twice = text.replace(f'"{key}":', f'"{key}": 1, "{key}":', 1)
    assert twice != text
    with pytest.raises(ResultError, match="duplicate key"):
        BY_NAME[name].read(ResultBytes("result", twice.encode()))


def _keys(document: Any) -> list[str]:
    return list(document[0] if isinstance(document, list) else document)


@pytest.mark.parametrize("name", DOCUMENTS)
def test_text_behind_the_document(name: str) -> None:
    assert read(name, SAMPLES[name].data() + b" and more") is None
    assert read(name, SAMPLES[name].data() + b"\n\n ") is not None


@pytest.mark.parametrize("name", DOCUMENTS)
def test_keys_that_nobody_knows_are_welcome(name: str) -> None:
    document = SAMPLES[name].make()
    root = document[0] if isinstance(document, list) else document
    root["a key of a newer version"] = {"x": [1, None, "y"]}
    made = read(name, SAMPLES[name].data(document))
    assert made is not None
    assert made.usable


def test_a_mixture_of_two_has_both_shapes() -> None:
    mixture = {**SAMPLES["atom-oot"].make(), **SAMPLES["sglang-server"].make()}
    found = detect(ResultBytes("result", json.dumps(mixture).encode()))
    assert sorted(producer.name for producer in found.producers) == ["atom-oot", "sglang-server"]
    both = SAMPLES["atom-native"].make()
    both["atom_ci_metadata"]["mtp_acceptance_overall"] = 0.6
    found = detect(ResultBytes("result", json.dumps(both).encode()))
    assert sorted(producer.name for producer in found.producers) == ["atom-native", "atom-oot"]


@pytest.mark.parametrize(
    ("data", "hint"),
    [
        (b"<!DOCTYPE html><html>", "HTML"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:00\n", "Git LFS"),
        (b'{"schema_version": 1, "producer": "bench.py"}', "gonogo gate"),
        (b"some words\n", ""),
        (b'{"a": 1}', ""),
        (b"[]", ""),
        (b'{"score": 0.5}', ""),
        (b'{"request_goodput:": null, "num_prompts": 1, "burstiness": 1.0, "best_of": 1}', ""),
    ],
)
def test_files_of_nobody(data: bytes, hint: str) -> None:
    found = detect(ResultBytes("result", data))
    assert found.producers == ()
    assert found.unread is None
    assert hint in found.hint
    assert bool(found.hint) is bool(hint)


@pytest.mark.parametrize(
    ("text", "layout"),
    [
        ('{"a": 1}', Layout.OBJECT),
        ('[{"a": 1}, {"b": 2}]', Layout.LIST),
        ('{"a": 1}\n{"b": 2}\n', Layout.LINES),
        ('{"a": 1}{"b": 2}', Layout.SEQUENCE),
        ('{\n"a": 1}\n{"b": 2}', Layout.SEQUENCE),
        ('window.X = {"a": 1};', Layout.SCRIPT),
        ("a: 1", Layout.TEXT),
    ],
)
def test_layouts(text: str, layout: Layout) -> None:
    loaded = load(ResultBytes("x", text.encode()))
    assert getattr(loaded, "layout", None) is layout


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("[1, 2]", Fault.NOT_OBJECT),
        ('[{"a": 1}, null]', Fault.NOT_OBJECT),
        ('[{"a": 1}] x', Fault.TRAILING),
        ('{"a": 1} x', Fault.TRAILING),
        ('{"a": 1}\n{"b": ', Fault.TRUNCATED),
        ('[{"a": 1}, {"b": 2', Fault.TRUNCATED),
        ('[{"a": 1},', Fault.TRUNCATED),
        ('[{"a": 1}, {"a": 1, "a": 2}]', Fault.DUPLICATE),
        ('{"a": 1,}', Fault.SYNTAX),
        ("[{'a': 1}]", Fault.SYNTAX),
        ('[{"a": 1},]', Fault.SYNTAX),
        ('window.X = {"a": 1}; more', Fault.TRAILING),
        ("window.X = ", Fault.TRUNCATED),
    ],
)
def test_layouts_that_are_none(text: str, fault: Fault) -> None:
    loaded = load(ResultBytes("x", text.encode()))
    assert getattr(loaded, "fault", loaded) is fault


scalars = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=12)
    | st.sampled_from(
        [10**400, -1, 0, 1, 1e308, 5e-324, "\ud800", "N/A", "0.5", "inf", "nan", [], {}, "***REDACTED***"]
    )
)
values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3)
)
changes = st.lists(st.tuples(st.integers(0, 10**6), st.booleans(), values), min_size=1, max_size=4)


@pytest.mark.parametrize("name", DOCUMENTS)
@given(chosen=changes)
@settings(max_examples=60, deadline=None)
def test_any_change_is_read_or_refused(name: str, chosen: list[tuple[int, bool, Any]]) -> None:
    sample = SAMPLES[name]
    document = sample.make()
    for number, removed, value in chosen:
        places = list(walk(document))
        if places:
            place = places[number % len(places)]
            document = drop(document, place) if removed else put(document, place, value)
    data = sample.data(document)
    read(name, data)
    for producer in detect(ResultBytes("result", data)).producers:
        read(producer.name, data)


@pytest.mark.parametrize("name", EVERY)
@given(at=st.integers(0, 10**6), length=st.integers(0, 4), bytes_=st.binary(max_size=4))
@settings(max_examples=60, deadline=None)
def test_any_bytes_changed_are_read_or_refused(name: str, at: int, length: int, bytes_: bytes) -> None:
    data = SAMPLES[name].data()
    begin = at % len(data)
    changed = data[:begin] + bytes_ + data[begin + length :]
    read(name, changed)
    detect(ResultBytes("result", changed))


@given(data=st.binary(max_size=200) | st.text(max_size=200).map(str.encode))
@settings(max_examples=150, deadline=None)
def test_any_bytes_are_refused_by_everyone(data: bytes) -> None:
    detect(ResultBytes("result", data))
    for name in EVERY:
        assert read(name, data) is None


@given(document=st.dictionaries(st.text(max_size=8), values, max_size=5))
@settings(max_examples=60, deadline=None)
def test_any_object_is_refused_by_everyone(document: dict[str, Any]) -> None:
    for layout in (document, [document]):
        data = json.dumps(layout).encode()
        assert detect(ResultBytes("result", data)).producers == ()
        for name in EVERY:
            assert read(name, data) is None


@given(text=st.text(alphabet="minax3-_thgof:.0123456789 \n{}[]&*!'\"#", max_size=120))
@settings(max_examples=200, deadline=None)
def test_any_yaml_is_read_or_refused(text: str) -> None:
    read("golden-lengths", f"m:\n  thinking_on:\n    {text}".encode())


@given(text=st.text(alphabet='vllm:spec_decode{}="\\,. 0123456789eE+-NaIf#\n\r\t', max_size=160))
@settings(max_examples=200, deadline=None)
def test_any_metrics_are_read_or_refused(text: str) -> None:
    read("vllm-metrics", f"{SAMPLES['vllm-metrics'].make()}{text}\n".encode())
