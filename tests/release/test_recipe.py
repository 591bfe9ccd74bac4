"""Recipes: what may stand in them, what a release may override, and what their tasks become."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from backends.quoting import quote
from console.release.errors import InputError
from console.release.recipe import (
    Recipe,
    RenderedTask,
    choose_recipe,
    load_recipe,
    render_task,
    resolve_values,
    size_task,
)
from console.release.templates import faults, fill

TRAIN = {
    "stage": "train",
    "task": "train",
    "summary": "Train the drafter",
    "script": "train.sh",
    "uploads": ["own.py"],
    "results": {"regression_check": "regression_check.json"},
    "time": "00:10:00",
    "environment": {"SERVER_TIMEOUT": "@server_timeout@", "WHERE": "@WORKSPACE@/x"},
}
BENCH = {
    "stage": "bench",
    "task": "bench",
    "summary": "Measure A and B",
    "script": "bench.sh",
    "results": {"bench": "out/@label@.json", "exact_match": "exact.json"},
    "time": "@bench_time@",
    "nodes": "@bench_nodes@",
    "gpus_per_node": 8,
}
RECIPE: dict[str, Any] = {
    "name": "toy",
    "about": "For tests",
    "algorithms": ["dflash", "dflash2"],
    "values": {
        "draft_tokens": 4,
        "server_timeout": 30,
        "rate": 0.5,
        "warm": True,
        "label": "a b",
        "bench_nodes": 1,
        "bench_time": "00:30:00",
    },
    "budgets": {"dev": {}, "full": {"bench_nodes": 2, "bench_time": "04:00:00"}},
    "tasks": [TRAIN, BENCH],
}
SCRIPTS = {
    "train.sh": "set -eu\n# it's a comment about @TARGET@\nrun --target @TARGET_PATH@ --k @draft_tokens@\n",
    "bench.sh": "run --label=@label@ --warm @warm@ --rate @rate@ @DRAFTER_PATH@/x\n",
}


def recipe_in(folder: Path, change: Callable[[dict[str, Any]], object] | None = None, **files: str) -> Path:
    """Write the recipe above, changed, and its files; returns its folder."""
    data = yaml.safe_load(yaml.safe_dump(RECIPE))
    if change is not None:
        change(data)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "recipe.yaml").write_text(yaml.safe_dump(data, sort_keys=False))
    for name, text in SCRIPTS.items():
        (folder / name).write_text(files.pop(name.removesuffix(".sh"), text), newline="")
    (folder / "own.py").write_text("print()\n")
    return folder


def loaded(folder: Path, change: Callable[[dict[str, Any]], object] | None = None, **files: str) -> Recipe:
    return load_recipe(str(recipe_in(folder, change, **files)))


def lines_of(act: Callable[[], object]) -> list[str]:
    with pytest.raises(InputError) as caught:
        act()
    lines = str(caught.value).split("\n")
    assert len(lines) == len(caught.value.problems)
    assert all(line.isprintable() for line in lines)
    return lines


def only_line(act: Callable[[], object]) -> str:
    lines = lines_of(act)
    assert len(lines) == 1, lines
    return lines[0]


FACTS = {"TARGET": "a/b", "TARGET_PATH": "/m/it's $(id)", "WORKSPACE": "/w", "DRAFTER_PATH": "/d"}


def rendered(recipe: Recipe, stage: str, **facts: str) -> RenderedTask:
    values = resolve_values(recipe, "dev", {})
    return render_task(recipe, recipe.task(stage, stage), values, {**FACTS, **facts})


def test_a_task_is_filled_in_with_quoted_values(tmp_path: Path) -> None:
    recipe = loaded(tmp_path)
    task = rendered(recipe, "train")
    target = quote("/m/it's $(id)")
    assert f"\nrun --target {target} --k {quote('4')}\n" in task.script_body
    assert task.environment == (("SERVER_TIMEOUT", "30"), ("WHERE", "/w/x"))
    assert task.uploads == (("own.py", b"print()\n"),)
    assert task.results == {"regression_check": "regression_check.json"}
    bench = rendered(recipe, "bench")
    assert (
        bench.script_body
        == f"run --label={quote('a b')} --warm {quote('true')} --rate {quote('0.5')} {quote('/d')}/x\n"
    )
    assert bench.results == {"bench": "out/a b.json", "exact_match": "exact.json"}


def test_a_changed_file_changes_nothing_in_a_loaded_recipe(tmp_path: Path) -> None:
    recipe = loaded(tmp_path)
    before = rendered(recipe, "train")
    (tmp_path / "train.sh").write_text("rm -rf /\n")
    (tmp_path / "own.py").write_text("other")
    assert rendered(recipe, "train") == before


def test_values_come_from_defaults_then_budget_then_overrides(tmp_path: Path) -> None:
    recipe = loaded(tmp_path)
    assert resolve_values(recipe, "dev", {})["bench_nodes"] == 1
    assert resolve_values(recipe, "full", {})["bench_nodes"] == 2
    values = resolve_values(recipe, "full", {"bench_nodes": 3, "rate": 1})
    assert values["bench_nodes"] == 3
    assert isinstance(values["rate"], float)
    assert recipe.values["bench_nodes"] == 1


def test_sizes_follow_the_values_that_they_name(tmp_path: Path) -> None:
    recipe = loaded(tmp_path)
    assert (recipe.task("bench", "bench").nodes, recipe.task("bench", "bench").time) == (1, "00:30:00")
    task = size_task(recipe.task("bench", "bench"), resolve_values(recipe, "full", {}))
    assert (task.nodes, task.time, task.gpus_per_node) == (2, "04:00:00", 8)
    assert size_task(recipe.task("train", "train"), resolve_values(recipe, "full", {})) == recipe.task("train", "train")


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("bench_nodes", 0, "of at least 1, found 0 (a number); it is a size of the job bench/bench"),
        ("bench_time", "soon", 'time limit above zero, "HH:MM:SS"'),
        ("bench_time", "00:00:00", "time limit above zero"),
    ],
)
def test_an_override_that_is_no_size_is_refused(tmp_path: Path, name: str, value: Any, words: str) -> None:
    recipe = loaded(tmp_path)
    values = resolve_values(recipe, "dev", {name: value})
    said = only_line(lambda: size_task(recipe.task("bench", "bench"), values))
    assert said.startswith(f"release.yaml: overrides.{name}: expected ")
    assert words in said


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("draft_tokns", 4, "did you mean draft_tokens?"),
        ("TARGET_PATH", "/x", "known: "),
        ("draft_tokens", "4", "a whole number, as its default (4)"),
        ("draft_tokens", 4.0, "a whole number, as its default (4)"),
        ("draft_tokens", True, "a whole number, as its default (4)"),
        ("rate", "fast", "a number, as its default (0.5)"),
        ("rate", False, "a number, as its default (0.5)"),
        ("warm", 1, "true or false, as its default (true)"),
        ("label", 7, "put it in quotes"),
        ("label", "@WORKSPACE@/x", "@WORKSPACE@ would stay as it is"),
    ],
)
def test_an_override_that_does_not_fit_is_refused(tmp_path: Path, name: str, value: Any, words: str) -> None:
    recipe = loaded(tmp_path)
    said = only_line(lambda: resolve_values(recipe, "dev", {name: value}))
    assert said.startswith(f"release.yaml: overrides.{name}: expected ")
    assert words in said


def test_all_overrides_that_do_not_fit_are_told_at_once(tmp_path: Path) -> None:
    recipe = loaded(tmp_path)
    assert len(lines_of(lambda: resolve_values(recipe, "dev", {"a": 1, "warm": 2, "rate": 3}))) == 2


def put(*path: str | int, value: Any) -> Callable[[dict[str, Any]], None]:
    """A change of one field of the recipe."""

    def change(data: Any) -> None:
        for part in path[:-1]:
            data = data[part]
        data[path[-1]] = value

    return change


def drop(*path: str | int) -> Callable[[dict[str, Any]], None]:
    def change(data: Any) -> None:
        for part in path[:-1]:
            data = data[part]
        del data[path[-1]]

    return change


MISTAKES: list[tuple[Callable[[dict[str, Any]], None], str, str]] = [
    (put("algoritms", value=["dflash"]), "algoritms", "did you mean algorithms?"),
    (put("algorithms", value=["eagle3"]), "algorithms[0]", "expected dflash or dflash2"),
    (put("algorithms", value="dflash"), "algorithms", "a list"),
    (put("name", value="../up"), "name", "a word of lower-case letters"),
    (put("name", value=True), "name", "found true (a boolean); put it in quotes"),
    (drop("about"), "about", "add this key"),
    (put("values", "Draft", value=1), "values.Draft", "a word of lower-case letters"),
    (put("values", "label", value=None), "values.label", "found nothing"),
    (put("values", "label", value="@RUN_ID@"), "values.label", "would stay as it is"),
    (drop("budgets", "full"), "budgets", "a budget full"),
    (put("budgets", "mid", value={}), "budgets.mid", "expected dev or full"),
    (put("budgets", "full", value={"bench_node": 2}), "budgets.full.bench_node", "did you mean bench_nodes?"),
    (put("budgets", "full", value={"bench_nodes": "2"}), "budgets.full.bench_nodes", "a whole number"),
    (put("budgets", "full", value={"bench_nodes": 0}), "budgets.full.bench_nodes", "of at least 1"),
    (put("freeze_job_above_bytes", value=-1), "freeze_job_above_bytes", "of at least 0"),
    (put("drafts_root", value="@WORKSPAC@/d"), "drafts_root", "did you mean WORKSPACE?"),
    (put("drafts_root", value="@label@/d"), "drafts_root", "known placeholders"),
    (put("tasks", value=[]), "tasks", "at least 1 in it"),
    (put("tasks", 0, "stage", value="freze"), "tasks[0].stage", "did you mean freeze?"),
    (put("tasks", 0, "stage", value="setup"), "tasks[0].stage", "expected stage_target, train, freeze or bench"),
    (put("tasks", 0, "task", value="a/b"), "tasks[0].task", "a word of lower-case letters"),
    (put("tasks", 0, "skip", value=True), "tasks[0].skip", "a key that is known here"),
    (put("tasks", 0, "sizes", value={}), "tasks[0].sizes", "a key that is known here"),
    (put("tasks", 0, "script", value="../train.sh"), "tasks[0].script", "a plain file name"),
    (put("tasks", 0, "script", value="/etc/passwd"), "tasks[0].script", "a plain file name"),
    (put("tasks", 0, "uploads", value=["../own.py"]), "tasks[0].uploads[0]", "a plain file name"),
    (put("tasks", 0, "results", value={}), "tasks[0].results", "at least 1 in it"),
    (put("tasks", 0, "results", value={"data": "/etc/x"}), "tasks[0].results.data", "inside the job's folder"),
    (put("tasks", 0, "results", value={"data": "a/../../x"}), "tasks[0].results.data", "inside the job's folder"),
    (put("tasks", 0, "results", value={"data": "own.py"}), "tasks[0].results", "the upload own.py"),
    (put("tasks", 0, "results", value={"a": "x", "b": "x"}), "tasks[0].results", "x twice"),
    (put("tasks", 0, "results", value={"a": "@nope@"}), "tasks[0].results.a", "known placeholders, found @nope@"),
    (put("tasks", 0, "time", value="10"), "tasks[0].time", "time limit above zero"),
    (put("tasks", 0, "time", value=600), "tasks[0].time", "put it in quotes"),
    (put("tasks", 0, "time", value="0-00:00:00"), "tasks[0].time", "time limit above zero"),
    (put("tasks", 0, "nodes", value=0), "tasks[0].nodes", "of at least 1"),
    (put("tasks", 0, "nodes", value="@bench_node@"), "tasks[0].nodes", "did you mean bench_nodes?"),
    (put("tasks", 0, "nodes", value="@label@"), "tasks[0].nodes", "a whole number"),
    (put("tasks", 0, "gpus_per_node", value=-1), "tasks[0].gpus_per_node", "of at least 0"),
    (put("tasks", 0, "cpus_per_task", value=True), "tasks[0].cpus_per_task", "a whole number"),
    (put("tasks", 0, "mem", value="lots"), "tasks[0].mem", "memory per node"),
    (put("tasks", 0, "environment", value={"A-B": "x"}), "tasks[0].environment.A-B", "environment variable"),
    (put("tasks", 0, "environment", value={"GONOGO_X": "x"}), "tasks[0].environment.GONOGO_X", "set by the conductor"),
    (put("tasks", 0, "environment", value={"A": 7}), "tasks[0].environment.A", "put it in quotes"),
    (put("tasks", 0, "environment", value={"A": "x\ny"}), "tasks[0].environment.A", "delete U+000A"),
    (put("tasks", 0, "environment", value={"A": "@Mixed@"}), "tasks[0].environment.A", "placeholders, found @Mixed@"),
    (put("tasks", 0, "max_retries", value=-1), "tasks[0].max_retries", "of at least 0"),
    (put("tasks", 1, value=TRAIN), "tasks[1].task", '"train" again'),
    (lambda data: data["tasks"].reverse(), "tasks[1].stage", "the stages in the order"),
    (lambda data: data["tasks"][0].update(only_existing_drafter=True, skip_with_existing_drafter=True),
     "tasks[0].skip_with_existing_drafter", "would never run"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("change", "field", "words"), MISTAKES, ids=lambda value: value if isinstance(value, str) else "-"
)
def test_each_mistake_gets_one_line_with_file_and_field(
    tmp_path: Path, change: Callable[[dict[str, Any]], None], field: str, words: str
) -> None:
    said = only_line(lambda: loaded(tmp_path, change))
    assert said.startswith(f"{tmp_path}/recipe.yaml")
    assert f": {field}: expected " in said
    assert words in said


def test_a_gpu_fit_needs_the_values_of_the_global_batch(tmp_path: Path) -> None:
    said = lines_of(lambda: loaded(tmp_path, put("tasks", 0, "needs_gpu_fit", value=True)))
    assert [line.split(": ")[1] for line in said] == ["values.per_device_batch", "values.gradient_accumulation"]


TEMPLATES: list[tuple[str, int, str]] = [
    ("set -e\nrun @TARGT@\n", 2, "did you mean TARGET?"),
    ("run @draft_tokns@\n", 1, "did you mean draft_tokens?"),
    ("run @Draft@\n", 1, "@Draft@"),
    ("run\r\n", 1, "a carriage return"),
    ("run\nrun \0x\n", 2, "a NUL character"),
    ("run '@TARGET@'\n", 1, "@TARGET@ inside single quotes"),
    ('run "\n@TARGET@"\n', 2, "@TARGET@ inside double quotes"),
    ("run $'\\'@TARGET@'\n", 1, "@TARGET@ inside single quotes"),
    ("run $@TARGET@\n", 1, "@TARGET@ directly after $"),
    ("run \\@TARGET@\n", 1, "@TARGET@ directly after a backslash"),
    ("run ${x:-@TARGET@}\n", 1, "@TARGET@ inside ${...}"),
    ("cat <<EOF\n@TARGET@\nEOF\n", 2, "@TARGET@ inside a here-document"),
    ("cat <<-'EOF'\n\tx\n\t@TARGET@\n\tEOF\n", 3, "@TARGET@ inside a here-document"),
    ('run "$(echo @TARGET@)"\n', 1, "@TARGET@ inside double quotes"),
    ("run `date`\n", 1, "a backquote"),
    ("run 'x\n", 1, "never closed"),
    ('a=1\nrun "x\n', 2, "never closed"),
    ("cat <<EOF\nx\n", 1, "never ends"),
    ("echo $((1 + @draft_tokens@))\n", 1, "@draft_tokens@ inside ((...))"),
    ("if ((2 * (@draft_tokens@) > 3)); then run; fi\n", 1, "@draft_tokens@ inside ((...))"),
    ("echo $[1 + 2]\n", 1, "$[...]"),
    ("a[@draft_tokens@]=1\n", 1, "@draft_tokens@ inside a subscript"),
    ("x=$(case $y in a) echo @TARGET@;; esac)\n", 1, "case inside parentheses"),
]


@pytest.mark.parametrize(("template", "line", "words"), TEMPLATES, ids=[item[0][:30] for item in TEMPLATES])
def test_a_template_that_cannot_be_filled_safely_is_refused(
    tmp_path: Path, template: str, line: int, words: str
) -> None:
    said = lines_of(lambda: loaded(tmp_path, train=template))
    assert all(item.startswith(f"{tmp_path}/train.sh, line ") for item in said)
    assert any(item.startswith(f"{tmp_path}/train.sh, line {line}: ") and words in item for item in said)


GOOD_TEMPLATES = [
    "run @TARGET@/x --y=@label@,@rate@\n",
    "echo \"it's\" 'a \"b\"' # don't @TARGET@\nrun @TARGET@\n",
    'for f in "$@"; do echo "${f%.json}" $# ${#f}; done\nrun @TARGET@\n',
    'x="$(dirname "$(pwd)")"; y=$(run @TARGET@)\n',
    "cat <<'EOF' > x\nit's $(not run)\nEOF\nrun @TARGET@\n",
    "echo $((1 << 3)) $'it\\'s'; cat <<< x; run @TARGET@\n",
    "case $x in a) run @TARGET@;; *) exit 1;; esac\n",
    "f() { trap 'rm -f \"$tmp\"' EXIT; }\n(run @TARGET@)\n",
    "mail user@example.com; run @TARGET@\n",
    "export TARGET=@TARGET@\nrun --command 'serve \"$TARGET\" --port {port}'\n",
]


@pytest.mark.parametrize("template", GOOD_TEMPLATES)
def test_ordinary_shell_is_understood(tmp_path: Path, template: str) -> None:
    recipe = loaded(tmp_path, train=template)
    body = rendered(recipe, "train").script_body
    done = subprocess.run(["bash", "-n"], input=body.encode(), capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "@TARGET@" not in body


PIECES = ["'", '"', "$", "$(", "(", ")", "{", "}", "${x:-", "\\", "#", "`", "\n", " ", "$'", "<<E\n", "\nE\n",
          "<<'E'\n", "say ", "@X@", "@X@", "@X@", "=", ";", "|", "case a in a) ", " esac", "[[ a ]]", "$((", "))",
          "<<<", "((", "a[", "$[", "]"]  # fmt: skip
NASTY = ["$(touch ran)", "'; touch ran; '", '"; touch ran; "', "`touch ran`", "\\'; touch ran #", "a\\", "'", '"', "$X",
         "# x", "E", "} ; touch ran", ") ; touch ran", "$'\\'; touch ran"]  # fmt: skip


@settings(max_examples=300, deadline=None)
@given(st.lists(st.sampled_from(PIECES), max_size=12), st.sampled_from(NASTY))
def test_no_value_ever_runs_in_a_template_that_was_let_through(
    tmp_path_factory: pytest.TempPathFactory, pieces: list[str], value: str
) -> None:
    template = "".join(pieces)
    if faults(template) or "@X@" not in template:
        return
    folder = tmp_path_factory.mktemp("shell")
    script = "say() { :; }\n" + fill(template, lambda name: quote(value))
    subprocess.run(
        ["bash"],
        input=script.encode(),
        cwd=folder,
        capture_output=True,
        timeout=20,
        check=False,
        env={"PATH": "/usr/bin:/bin"},
    )
    assert not (folder / "ran").exists(), script


def test_a_placeholder_that_is_not_known_yet_names_template_line_and_placeholder(tmp_path: Path) -> None:
    recipe = loaded(tmp_path)
    task = recipe.task("train", "train")
    facts = {"TARGET": "a/b", "WORKSPACE": "/w"}
    said = only_line(lambda: render_task(recipe, task, resolve_values(recipe, "dev", {}), facts))
    assert said.startswith(
        f"{tmp_path}/train.sh, line 3: @TARGET_PATH@: expected a placeholder that is known for this job"
    )


@pytest.mark.parametrize("evil", ["/x\nid", "/x\0", "/x\r", "/x\x1b[2J", "/x\u202e"])
def test_a_fact_with_control_characters_is_refused(tmp_path: Path, evil: str) -> None:
    recipe = loaded(tmp_path)
    said = only_line(lambda: rendered(recipe, "train", TARGET_PATH=evil))
    assert said.startswith(f"{tmp_path}/train.sh, line 3: @TARGET_PATH@: expected text without control characters")


def test_what_a_value_holds_is_not_filled_in_again(tmp_path: Path) -> None:
    recipe = loaded(tmp_path)
    assert quote("@WORKSPACE@") in rendered(recipe, "train", TARGET_PATH="@WORKSPACE@").script_body


@pytest.mark.parametrize("label", ["../up", "a/../../b", "/etc", "a//b", ""])
def test_a_result_path_stays_in_the_jobs_folder_whatever_the_values(tmp_path: Path, label: str) -> None:
    recipe = loaded(tmp_path, put("tasks", 1, "results", "bench", value="@label@/x.json"))
    values = {**resolve_values(recipe, "dev", {}), "label": label}
    said = only_line(lambda: render_task(recipe, recipe.task("bench", "bench"), values, FACTS))
    assert said.startswith(f"{tmp_path}/recipe.yaml: tasks.bench.bench.results.bench: expected a path inside")


def test_a_missing_template_names_itself_and_the_field(tmp_path: Path) -> None:
    said = only_line(lambda: loaded(tmp_path, put("tasks", 0, "script", value="gone.sh")))
    assert said.startswith(f"{tmp_path}/gone.sh: script template (tasks[0].script in recipe.yaml): expected a file")


def test_a_missing_upload_names_itself_and_the_field(tmp_path: Path) -> None:
    said = only_line(lambda: loaded(tmp_path, put("tasks", 0, "uploads", value=["gone.py"])))
    assert said.startswith(f"{tmp_path}/gone.py: upload (tasks[0].uploads[0] in recipe.yaml): expected a file beside")


def test_an_upload_that_hides_a_payload_is_refused(tmp_path: Path) -> None:
    recipe_in(tmp_path, put("tasks", 0, "uploads", value=["__init__.py"]))
    with pytest.raises(InputError, match="a plain file name"):
        load_recipe(str(tmp_path))


def test_a_recipe_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    said = only_line(lambda: load_recipe(str(tmp_path / "gone")))
    assert said.startswith(f"{tmp_path}/gone/recipe.yaml: recipe: expected a file, found nothing at this path")


@pytest.fixture
def built_in(tmp_path: Path) -> Path:
    """A folder of recipes: the demo's, and one for each of two algorithms."""
    for name, algorithms in (("demo", ["dflash", "dflash2"]), ("one", ["dflash"]), ("two", ["dflash2"])):
        recipe_in(tmp_path / name, lambda data, n=name, a=algorithms: data.update(name=n, algorithms=a))  # type: ignore[misc]
    return tmp_path


def test_the_only_recipe_for_an_algorithm_is_chosen_and_the_demo_never(built_in: Path) -> None:
    assert choose_recipe(None, "dflash", folder=built_in).name == "one"
    assert choose_recipe(None, "dflash2", folder=built_in).name == "two"
    assert choose_recipe("demo", "dflash2", folder=built_in).name == "demo"
    assert choose_recipe(str(built_in / "two"), "dflash2", folder=built_in).name == "two"


def test_several_recipes_for_an_algorithm_are_a_question(built_in: Path) -> None:
    recipe_in(built_in / "three", lambda data: data.update(name="three", algorithms=["dflash"]))
    said = only_line(lambda: choose_recipe(None, "dflash", folder=built_in))
    assert said == "release.yaml: recipe: expected one recipe for dflash, found 2 (one, three); name one with recipe:"


def test_no_recipe_for_an_algorithm_is_told(tmp_path: Path) -> None:
    said = only_line(lambda: choose_recipe(None, "dflash", folder=tmp_path))
    assert said.startswith("release.yaml: recipe: expected one recipe for dflash, found none built in")


def test_an_unknown_recipe_is_told(built_in: Path) -> None:
    said = only_line(lambda: choose_recipe("dmo", "dflash", folder=built_in))
    assert said.startswith('release.yaml: recipe: expected the name of a recipe or an absolute path, found "dmo"')
    assert "did you mean demo?" in said


def test_a_built_in_recipe_is_named_as_its_folder(built_in: Path) -> None:
    recipe_in(built_in / "four")
    said = only_line(lambda: load_recipe("four", folder=built_in))
    assert said.startswith(f"{built_in}/four/recipe.yaml, line ")
    assert ": name: expected four, as its folder" in said


@pytest.mark.parametrize("field", ["stage", "task", "summary", "script", "results", "time"])
def test_a_missing_field_of_a_task_is_named(tmp_path: Path, field: str) -> None:
    said = only_line(lambda: loaded(tmp_path, drop("tasks", 1, field)))
    assert f": tasks[1].{field}: expected " in said
    assert "expected a value" not in said
    assert "add this key" in said


@pytest.mark.parametrize("name", ["..", ".", "one/../two", ""])
def test_a_name_is_never_a_way_out_of_the_built_in_recipes(built_in: Path, name: str) -> None:
    assert "the name of a recipe" in only_line(lambda: load_recipe(name, folder=built_in))


def test_a_recipe_for_another_algorithm_is_refused(built_in: Path) -> None:
    said = only_line(lambda: choose_recipe("one", "dflash2", folder=built_in))
    assert said == "release.yaml: recipe: expected a recipe for dflash2, found one, which is for dflash"


TREES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=12) | st.just("@label@"),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from([*TRAIN, *RECIPE, "dev", "full"]) | st.text(max_size=6), inner, max_size=4)
    ),
    max_leaves=8,
)


@settings(deadline=None)
@given(st.sampled_from([*RECIPE, "x"]), TREES, st.none() | st.sampled_from([*TRAIN, "x"]))
def test_no_document_raises_anything_but_an_input_error(
    tmp_path_factory: pytest.TempPathFactory, key: str, tree: Any, task_key: str | None
) -> None:
    folder = tmp_path_factory.getbasetemp() / "tree-recipe"
    change = put(key, value=tree) if task_key is None else put("tasks", 0, task_key, value=tree)
    said: tuple[str, ...] = ()
    try:
        loaded(folder, change)
    except InputError as error:
        said = tuple(map(str, error.problems))
    assert all(line.isprintable() and line.startswith(str(folder)) for line in said)
