"""Filling a recipe's task in: script, environment and result paths of one job."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePath

from backends.quoting import quote
from console.release.errors import InputError, Problem, suggestion
from console.release.recipe_model import FACTS, Recipe
from console.release.recipe_task import Task, result_path
from console.release.templates import fill, names
from console.release.validation import Scalar, complaint, visible


@dataclass(frozen=True, slots=True)
class RenderedTask:
    """A task with everything filled in.

    Attributes:
        script_body: The script, without what the conductor puts before it.
        environment: Names and values to export, in the recipe's order, not quoted.
        uploads: Names and bytes of the files that travel with it.
        results: Kind and path (relative to the job's folder) of each result file.
        image: Container image that the script runs in, empty for none.
    """

    script_body: str
    environment: tuple[tuple[str, str], ...]
    uploads: tuple[tuple[str, bytes], ...]
    results: Mapping[str, str]
    image: str = ""


def render_task(recipe: Recipe, task: Task, values: Mapping[str, Scalar], facts: Mapping[str, str]) -> RenderedTask:
    """Fill in a task's script, environment and result paths.

    Args:
        recipe: The recipe.
        task: One of its tasks.
        values: Recipe values, as `resolve_values` returns them.
        facts: Values of the placeholders in capitals, as far as they are known for this job.

    Raises:
        InputError: When a placeholder has no value, naming file, line and placeholder; when a value holds
            control characters; when a result path leaves the job's folder.
    """
    known = {**{name: _written(value) for name, value in values.items()}, **facts}
    image = _image(recipe, task, known)
    if task.image is not None:
        known["CONTAINER_IMAGE"] = image
    template = str(PurePath(recipe.file).parent / task.script)
    body = expand(recipe.templates[task.script], known, template, shell=True)
    where = f"tasks.{task.stage}.{task.task}"
    environment = tuple(
        (name, expand(text, known, recipe.file, f"{where}.environment.{name}"))
        for name, text in task.environment.items()
    )
    results = {}
    for kind, path in task.results.items():
        field = f"{where}.results.{kind}"
        results[kind] = expand(path, known, recipe.file, field)
        problem = complaint(result_path, results[kind], recipe.file, field)
        if problem is not None:
            raise InputError(problem)
    uploads = tuple((name, recipe.files[name]) for name in task.uploads)
    return RenderedTask(body, environment, uploads, results, image)


def _image(recipe: Recipe, task: Task, known: Mapping[str, str]) -> str:
    """The container image that a task's script runs in; empty for none."""
    of_cluster = known.get("CONTAINER_IMAGE", "")
    if task.image is not None:
        return expand(task.image, known, recipe.file, f"tasks.{task.stage}.{task.task}.image") or of_cluster
    uses = any(name == "CONTAINER_IMAGE" for name, _ in names(recipe.templates[task.script]))
    return of_cluster if uses else ""


def expand(text: str, known: Mapping[str, str], file: str, field: str = "", *, shell: bool = False) -> str:
    """Fill the placeholders of a text.

    Args:
        text: The text.
        known: Value of each placeholder.
        file: Where the text stands, for messages.
        field: The field that holds it; empty for a template, where placeholder and line are named instead.
        shell: Quote every value for a shell.

    Raises:
        InputError: When a placeholder has no value, or one with control characters.
    """
    problems = []
    for name, line in names(text):
        place, where = (field, None) if field else (f"@{name}@", line)
        if name not in known:
            problems.append(_unknown(name, known, file, place, where))
        elif (problem := complaint(visible, known[name], file, place, where, f"it is @{name}@")) is not None:
            problems.append(problem)
    if problems:
        raise InputError(*problems)
    return fill(text, lambda name: quote(known[name]) if shell else known[name])


def _unknown(name: str, known: Mapping[str, str], file: str, place: str, line: int | None) -> Problem:
    if name in FACTS:
        return Problem(file, place, "a placeholder that is known for this job", f"@{name}@", "", line)
    return Problem(file, place, "a placeholder with a value", f"@{name}@", suggestion(name, known), line)


def _written(value: Scalar) -> str:
    """A value as text: true and false in lower case, numbers in Python's shortest form."""
    return str(value).lower() if isinstance(value, bool) else str(value)
