"""`release.yaml`: what it may say, and the one line that each mistake gets."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from console.release.errors import InputError, Problem
from console.release.spec import REFUSED_ALGORITHMS, load_release
from console.release.yaml_reading import MAX_BYTES, Document, parse_document

UNREADABLE = Path("/proc/self/mem")
"""A regular file whose beginning not even root can read."""

COMMIT = "0123456789abcdef0123456789abcdef01234567"
GOOD = {
    "target": "Qwen/Qwen3-8B",
    "revision": f'"{COMMIT}"',
    "algorithm": "dflash2",
    "budget": "dev",
}


def written(folder: Path, text: str) -> Path:
    path = folder / "release.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def release(folder: Path, **changes: str | None) -> Path:
    """A release file with some fields changed, or left out where None."""
    fields = {**GOOD, **changes}
    lines = [f"{name}: {value}" for name, value in fields.items() if value is not None]
    return written(folder, "\n".join(lines) + "\n")


def lines_of(path: Path) -> list[str]:
    with pytest.raises(InputError) as caught:
        load_release(path)
    lines = str(caught.value).split("\n")
    assert len(lines) == len(caught.value.problems)
    assert all(line.startswith(str(path)) and line.isprintable() for line in lines)
    return lines


def only_line(path: Path) -> str:
    lines = lines_of(path)
    assert len(lines) == 1, lines
    return lines[0]


def test_a_full_release_is_read(tmp_path: Path) -> None:
    spec = load_release(
        release(
            tmp_path,
            cluster="alpha",
            existing_drafter="/drafts//mine/",
            approve_submissions="none",
            overrides="{draft_tokens: 7, lr: 1e-4, tag: 12:30:00, warm: true}",
            recipe="demo",
            run_name="try-1",
        )
    )
    assert (spec.target, spec.revision, spec.algorithm, spec.budget) == ("Qwen/Qwen3-8B", COMMIT, "dflash2", "dev")
    assert (spec.cluster, spec.recipe, spec.run_name) == ("alpha", "demo", "try-1")
    assert spec.existing_drafter == "/drafts/mine"
    assert spec.approve_submissions == "none"
    assert spec.overrides == {"draft_tokens": 7, "lr": 1e-4, "tag": "12:30:00", "warm": True}
    assert spec.target_slug == "Qwen--Qwen3-8B"


def test_every_job_waits_for_an_ok_unless_told_otherwise(tmp_path: Path) -> None:
    assert load_release(release(tmp_path)).approve_submissions == "each"


def test_a_path_needs_no_revision(tmp_path: Path) -> None:
    spec = load_release(release(tmp_path, target="/models/tiny target", revision=None))
    assert spec.revision is None
    assert not spec.from_hub
    assert spec.target_slug == "tiny_target"


def test_a_release_is_frozen(tmp_path: Path) -> None:
    spec = load_release(release(tmp_path))
    with pytest.raises(ValueError, match="frozen"):
        spec.budget = "full"  # type: ignore[misc]


MISTAKES: list[tuple[dict[str, str | None], int, str, str]] = [
    # changed fields, line, field, what the line must say besides
    ({"overides": "{}"}, 5, "overides", "did you mean overrides?"),
    ({"aprove_submissions": "each"}, 5, "aprove_submissions", "did you mean approve_submissions?"),
    ({"skip_gates": "[bench]"}, 5, "skip_gates", "known: algorithm"),
    ({"algorithm": "dflahs"}, 3, "algorithm", "did you mean dflash?"),
    ({"algorithm": "DFlash"}, 3, "algorithm", "did you mean dflash?"),
    ({"algorithm": "[dflash]"}, 3, "algorithm", "found a list"),
    ({"revision": "main"}, 2, "revision", "a branch or tag is no pin"),
    ({"revision": "v1.0"}, 2, "revision", "a branch or tag is no pin"),
    ({"revision": "abc1234"}, 2, "revision", "give all 40"),
    ({"revision": "12345678"}, 2, "revision", "12345678 (a number); put it in quotes"),
    ({"revision": "1" * 40}, 2, "revision", "put it in quotes"),
    ({"revision": "~"}, 2, "revision", "40 hex digits"),
    ({"budget": "large"}, 4, "budget", "expected dev or full"),
    ({"budget": "fulll"}, 4, "budget", "did you mean full?"),
    ({"budget": "on"}, 4, "budget", "found on (YAML reads it as true)"),
    (
        {"approve_submissions": "no"},
        5,
        "approve_submissions",
        "expected each or none, found no (YAML reads it as false)",
    ),
    ({"approve_submissions": "null"}, 5, "approve_submissions", "found nothing"),
    ({"approve_submissions": "never"}, 5, "approve_submissions", "expected each or none"),
    ({"target": "no"}, 1, "target", "put it in quotes"),
    ({"target": "gpt2"}, 1, "target", "organisation/name"),
    ({"target": "a/b/c"}, 1, "target", "organisation/name"),
    ({"target": "../../etc/passwd"}, 1, "target", "organisation/name"),
    ({"target": "a/.."}, 1, "target", "organisation/name"),
    ({"target": "a/b..c"}, 1, "target", "no .."),
    ({"target": "/models/../etc"}, 1, "target", "without .."),
    ({"target": "/"}, 1, "target", "a folder below /"),
    ({"target": '"a/b\\e[31m"'}, 1, "target", "delete U+001B"),
    ({"target": '"a/b\\u202e"'}, 1, "target", "delete U+202E"),
    ({"target": '""'}, 1, "target", "not empty"),
    ({"existing_drafter": "drafts/mine"}, 5, "existing_drafter", "absolute path on the cluster"),
    ({"existing_drafter": "~/mine"}, 5, "existing_drafter", "~ is not expanded"),
    ({"existing_drafter": "/drafts/../../root"}, 5, "existing_drafter", "without .."),
    ({"cluster": "7"}, 5, "cluster", "put it in quotes"),
    ({"recipe": "./mine"}, 5, "recipe", "absolute path"),
    ({"recipe": "../demo"}, 5, "recipe", "absolute path"),
    ({"run_name": "../up"}, 5, "run_name", "begin with a letter or digit"),
    ({"run_name": "a/b"}, 5, "run_name", "a name of at most 64"),
    ({"run_name": '"a\\nb"'}, 5, "run_name", "a name of at most 64"),
    ({"run_name": "x" * 65}, 5, "run_name", "at most 64"),
    ({"overrides": "[a]"}, 5, "overrides", "found a list"),
    ({"overrides": "7"}, 5, "overrides", "expected a mapping"),
    ({"overrides": "{lr: .nan}"}, 5, "overrides.lr", "finite"),
    ({"overrides": "{lr: .inf}"}, 5, "overrides.lr", "finite"),
    ({"overrides": "{lr: 1e999}"}, 5, "overrides.lr", "finite"),
    ({"overrides": "{lr: null}"}, 5, "overrides.lr", "found nothing"),
    ({"overrides": "{lr: {a: 1}}"}, 5, "overrides.lr", "found a mapping"),
    ({"overrides": '{note: "a\\0b"}'}, 5, "overrides.note", "delete U+0000"),
    ({"overrides": '{"a b": 1}'}, 5, "overrides.a b", "begin with a letter or digit"),
]


@pytest.mark.parametrize(("changes", "line", "field", "words"), MISTAKES, ids=lambda value: str(value)[:40])
def test_each_mistake_gets_one_line_with_file_line_and_field(
    tmp_path: Path, changes: dict[str, str | None], line: int, field: str, words: str
) -> None:
    path = release(tmp_path, **changes)
    said = only_line(path)
    assert said.startswith(f"{path}, line {line}: {field}: expected ")
    assert words in said


@pytest.mark.parametrize("field", ["target", "algorithm", "budget"])
def test_a_missing_field_is_named(tmp_path: Path, field: str) -> None:
    path = release(tmp_path, **{field: None})
    said = [line for line in lines_of(path) if f": {field}: expected " in line]
    assert len(said) == 1
    assert "add this key" in said[0]


def test_a_hub_id_without_revision_is_refused(tmp_path: Path) -> None:
    path = release(tmp_path, revision=None)
    assert only_line(path).startswith(f"{path}: revision: expected the commit of the target, 40 hex digits")


def test_every_refused_algorithm_gives_its_own_dated_reason(tmp_path: Path) -> None:
    said = set()
    for name in ("eagle3", "dspark", "domino", "lilicorr"):
        line = only_line(release(tmp_path, algorithm=name))
        assert ": algorithm: " in line
        assert REFUSED_ALGORITHMS[name].reason in line
        assert REFUSED_ALGORITHMS[name].as_of in line
        said.add(REFUSED_ALGORITHMS[name].reason)
    assert len(said) == 4
    assert all("regression_check.json" in REFUSED_ALGORITHMS[name].reason for name in ("eagle3", "dspark"))
    assert "vLLM" in REFUSED_ALGORITHMS["domino"].reason
    assert "SGLang" in REFUSED_ALGORITHMS["lilicorr"].reason


@pytest.mark.parametrize("spelling", ["EAGLE3", "Eagle-3", "eagle_3", "DSpark", "LiLiCorr", "Domino"])
def test_other_spellings_of_a_refused_algorithm_get_its_reason_too(tmp_path: Path, spelling: str) -> None:
    assert "refused: " in only_line(release(tmp_path, algorithm=spelling))


def test_all_problems_are_told_at_once_in_the_order_of_the_file(tmp_path: Path) -> None:
    path = release(tmp_path, revision="main", algorithm="domino", budget="big", cluster="no")
    fields = [line.split(": ")[1] for line in lines_of(path)]
    assert fields == ["revision", "algorithm", "budget", "cluster"]


FILES: list[tuple[str, bytes, str]] = [
    ("empty", b"", "an empty file"),
    ("only a comment", b"# nothing\n", "an empty file"),
    ("a list", b"- target: a/b\n", "found a list"),
    ("one word", b"dflash\n", 'found "dflash"'),
    ("broken YAML", b"target: [a\n", "expected valid YAML"),
    ("a tab", b"\ttarget: a/b\n", "expected valid YAML"),
    ("not UTF-8", b"target: \xff\xfe\n", "UTF-8"),
    ("a control character", b"target: a\x07b\n", "U+0007"),
    ("two documents", b"target: a/b\n---\ntarget: c/d\n", "one YAML document"),
    ("a Python object", b"target: !!python/object/apply:os.system [id]\n", "leave the tag"),
    ("an undefined alias", b"target: *other\n", "undefined alias"),
    ("an escape beyond Unicode", b'target: "\\UFFFFFFFF"\n', "expected valid YAML"),
    ("deep nesting", b"target: " + b"[" * 10_000, "levels of nesting"),
    ("an endless alias", b"target: &a [*a]\n", "levels of nesting"),
    ("an endless merge", b"target: &a {<<: *a}\n", "levels of nesting"),
    ("too large", b"#" * (MAX_BYTES + 1), f"at most {MAX_BYTES} bytes"),
    ("a huge number", b"target: " + b"9" * 5000, "a sensible int"),
]


@pytest.mark.parametrize(("content", "words"), [item[1:] for item in FILES], ids=[item[0] for item in FILES])
def test_a_file_that_is_no_release_gets_one_line(tmp_path: Path, content: bytes, words: str) -> None:
    path = tmp_path / "release.yaml"
    path.write_bytes(content)
    assert words in only_line(path)


def test_a_bomb_of_aliases_is_refused_quickly(tmp_path: Path) -> None:
    levels = [f"a{level}: &a{level} [{', '.join([f'*a{level - 1}'] * 9)}]" for level in range(1, 12)]
    path = written(tmp_path, "a0: &a0 [x, x, x, x, x, x, x, x, x]\n" + "\n".join(levels) + "\n")
    begin = time.process_time()
    assert "each use of an alias counted" in only_line(path)
    assert time.process_time() - begin < 10


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    path = tmp_path / "nowhere" / "release.yaml"
    assert only_line(path) == f"{path}: release file: expected a file, found nothing at this path; check the path"


def test_a_folder_is_named(tmp_path: Path) -> None:
    assert "found a folder" in only_line(tmp_path)


def test_a_pipe_is_refused_instead_of_waited_for(tmp_path: Path) -> None:
    path = tmp_path / "release.yaml"
    os.mkfifo(path)
    assert "no regular file" in only_line(path)


@pytest.mark.skipif(not UNREADABLE.exists(), reason="needs Linux's /proc")
def test_an_unreadable_file_is_named() -> None:
    assert f"{UNREADABLE}: release file: expected a readable file, found an error" in only_line(UNREADABLE)


def test_a_key_twice_is_refused_with_both_lines(tmp_path: Path) -> None:
    path = written(tmp_path, "target: a/b\nbudget: dev\nbudget: full\n")
    assert only_line(path).startswith(
        f"{path}, line 3: budget: expected the key once, found it again (first in line 2)"
    )


@pytest.mark.parametrize(
    ("key", "shown"), [("1", "1 (a number)"), ("on", "on (YAML reads it as true)"), ("~", "nothing")]
)
def test_a_key_that_is_no_text_is_refused(tmp_path: Path, key: str, shown: str) -> None:
    path = written(tmp_path, f"target: a/b\n{key}: x\n")
    said = only_line(path)
    assert said.startswith(f"{path}, line 2: ")
    assert f"expected text as a key, found {shown}" in said


def parsed(text: str) -> Document:
    return parse_document(text, "f.yaml", "file")


def test_words_and_numbers_are_read_as_they_were_meant() -> None:
    text = (
        "a: 12:30:00\nb: 2026-08-21\nc: 0755\nd: 1e-4\ne: 1_000\nf: !!str 12\ng: y\nh: -3\ni: .5\nj: 0x1f\nk: off\nl:\n"
    )
    assert parsed(text).data == {
        "a": "12:30:00", "b": "2026-08-21", "c": "0755", "d": 1e-4, "e": "1_000", "f": "12", "g": "y", "h": -3,
        "i": 0.5, "j": "0x1f", "k": False, "l": None,
    }  # fmt: skip


def test_merge_keys_work_as_in_other_tools_and_own_keys_win() -> None:
    document = parsed("x: &x {p: 1, q: {r: 2}}\ny:\n  <<: *x\n  p: 5\nz: {<<: [{p: 3}, *x]}\n")
    assert document.data["y"] == {"p": 5, "q": {"r": 2}}
    assert document.data["z"] == {"p": 3, "q": {"r": 2}}
    assert document.line(("y", "p")) == 4
    assert document.sources[("y", "p")] == "5"


def test_a_quoted_merge_key_is_a_plain_key() -> None:
    assert parsed('"<<": 3\n').data == {"<<": 3}


def test_a_message_never_holds_what_could_act_on_a_terminal() -> None:
    said = str(InputError(Problem("a\x1b[2J", "b\nc", "d\u202e", "e\x07", "f\r")))
    assert said.isprintable()
    assert "\n" not in said


def refusal_of(act: Callable[[], object]) -> InputError | None:
    """What an action refuses; any other exception ends the test."""
    try:
        act()
    except InputError as error:
        return error
    return None


def is_one_line_each(error: InputError | None) -> bool:
    lines = str(error).split("\n")
    return error is None or (len(lines) == len(error.problems) and all(line.isprintable() for line in lines))


SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20)
TREES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
FIELDS = st.sampled_from(
    ["target", "revision", "algorithm", "cluster", "budget", "existing_drafter", "approve_submissions", "overrides",
     "recipe", "run_name"]
)  # fmt: skip


@given(st.text(max_size=200))
def test_no_text_raises_anything_but_an_input_error(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    path = tmp_path_factory.getbasetemp() / "text.yaml"
    path.write_bytes(text.encode("utf-8", "surrogatepass"))
    assert is_one_line_each(refusal_of(lambda: load_release(path)))


@given(st.binary(max_size=200))
def test_no_bytes_raise_anything_but_an_input_error(tmp_path_factory: pytest.TempPathFactory, data: bytes) -> None:
    path = tmp_path_factory.getbasetemp() / "bytes.yaml"
    path.write_bytes(data)
    assert is_one_line_each(refusal_of(lambda: load_release(path)))


@given(st.lists(st.sampled_from(list("{}[]:,&*!|>-?'\"#% \n\tab01~<=\\%@`")), max_size=60))
def test_no_yaml_signs_raise_anything_but_an_input_error(signs: list[str]) -> None:
    assert is_one_line_each(refusal_of(lambda: parse_document("".join(signs), "f.yaml", "file")))


@given(st.dictionaries(FIELDS | st.text(max_size=8), TREES, max_size=6))
def test_no_values_raise_anything_but_an_input_error(
    tmp_path_factory: pytest.TempPathFactory, data: dict[str, object]
) -> None:
    path = tmp_path_factory.getbasetemp() / "tree.yaml"
    path.write_text(yaml.safe_dump({**GOOD, "revision": COMMIT, **data}, allow_unicode=False), encoding="utf-8")
    assert is_one_line_each(refusal_of(lambda: load_release(path)))
