"""What a recipe may leave to its release: values without a sensible default, images, and jobs only for a catalog."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from console.release.recipe import Recipe, load_recipe, render_task, require_values, resolve_values
from tests.release.test_recipe import FACTS, lines_of, loaded, only_line, put


def asking(recipe: dict[str, Any]) -> None:
    recipe["required"] = {"label": "a label that people know", "rate": "a rate"}


def required(recipe: Recipe, *tasks: str, **overrides: Any) -> None:
    values = resolve_values(recipe, "dev", overrides)
    require_values(recipe, [task for task in recipe.tasks if task.task in tasks], values)


def test_a_value_without_a_sensible_default_must_be_set(tmp_path: Path) -> None:
    recipe = loaded(tmp_path, asking)
    lines = lines_of(lambda: required(recipe, "bench"))
    assert lines == [
        "release.yaml: overrides.label: expected a label that people know, found nothing",
        "release.yaml: overrides.rate: expected a rate, found nothing",
    ]
    required(recipe, "bench", label="c", rate=1)


def test_a_value_that_no_job_of_the_release_uses_is_not_asked_for(tmp_path: Path) -> None:
    required(loaded(tmp_path, asking), "train")


def test_only_values_can_be_required(tmp_path: Path) -> None:
    said = only_line(lambda: loaded(tmp_path, put("required", value={"lable": "a label"})))
    assert "required" in said
    assert 'did you mean "label"' in said or "label" in said


def image_of(recipe: Recipe, **facts: str) -> str:
    values = resolve_values(recipe, "dev", {})
    return render_task(recipe, recipe.task("train", "train"), values, {**FACTS, **facts}).image


def test_a_job_without_a_container_shows_no_image(tmp_path: Path) -> None:
    assert image_of(loaded(tmp_path), CONTAINER_IMAGE="of/cluster") == ""


def test_the_image_that_is_shown_is_the_one_that_runs(tmp_path: Path) -> None:
    recipe = loaded(tmp_path, put("tasks", 0, "image", value="@label@"), train="run @CONTAINER_IMAGE@\n")
    values = resolve_values(recipe, "dev", {})
    rendered = render_task(recipe, recipe.task("train", "train"), values, {**FACTS, "CONTAINER_IMAGE": "of/cluster"})
    assert (rendered.image, rendered.script_body) == ("a b", "run 'a b'\n")


def test_the_clusters_image_counts_where_the_recipe_names_none(tmp_path: Path) -> None:
    def none(recipe: dict[str, Any]) -> None:
        recipe["values"]["label"] = ""
        recipe["tasks"][0]["image"] = "@label@"
        recipe["tasks"][1]["results"] = {"bench": "b.json"}

    recipe = loaded(tmp_path, none, train="run @CONTAINER_IMAGE@\n")
    assert image_of(recipe, CONTAINER_IMAGE="of/cluster") == "of/cluster"
    assert image_of(recipe) == ""


def test_a_script_that_names_the_clusters_image_shows_it(tmp_path: Path) -> None:
    assert image_of(loaded(tmp_path, train="run @CONTAINER_IMAGE@\n"), CONTAINER_IMAGE="of/cluster") == "of/cluster"


def test_an_unknown_placeholder_in_an_image_is_named(tmp_path: Path) -> None:
    said = only_line(lambda: loaded(tmp_path, put("tasks", 0, "image", value="@lable@")))
    assert "tasks[0].image" in said


def test_a_program_needs_all_that_it_imports_beside_itself(tmp_path: Path) -> None:
    said = lines_of(lambda: loaded(tmp_path, put("tasks", 0, "uploads", value=["check_export.py", "data.py"])))
    assert any("data.py" in line for line in said)
    said = lines_of(lambda: loaded(tmp_path, put("tasks", 0, "uploads", value=["check_export.py"])))
    assert len(said) == 1
    assert "tasks[0].uploads: expected check_target.py too, which check_export.py imports" in said[0]
    assert loaded(tmp_path, put("tasks", 0, "uploads", value=["check_export.py", "check_target.py"]))


def test_the_built_in_recipes_upload_what_their_programs_import() -> None:
    assert load_recipe("demo")


@pytest.mark.parametrize("value", ["yes", 1])
def test_only_true_or_false_says_whether_a_job_runs_unjudged(tmp_path: Path, value: object) -> None:
    assert "only_if_judged" in only_line(lambda: loaded(tmp_path, put("tasks", 0, "only_if_judged", value=value)))
