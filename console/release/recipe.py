"""Recipes: which jobs make up each stage of a release, as data.

A recipe is a folder with `recipe.yaml`, script templates and, where it needs some, files to upload. All of it is
read and checked when the recipe is loaded, so that a fault in the last stage's template shows before the first
job is submitted, and so that a file changed later changes nothing in a running release.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import backends.payloads
import console.recipes
from console.release.errors import InputError, Problem, shown, suggestion
from console.release.recipe_model import (
    FACTS,
    Description,
    Recipe,
    no_placeholder,
    override_problem,
    require_values,
    resolve_values,
    size_task,
)
from console.release.recipe_task import GRADIENT_ACCUMULATION, PER_DEVICE_BATCH, SIZES, STAGES, Task
from console.release.rendering import RenderedTask, expand, render_task
from console.release.templates import faults, names
from console.release.validation import complaint, validate
from console.release.yaml_reading import Document, read_document, read_file, read_text

__all__ = [
    "FACTS",
    "Recipe",
    "RenderedTask",
    "Task",
    "choose_recipe",
    "expand",
    "load_recipe",
    "render_task",
    "require_values",
    "resolve_values",
    "size_task",
]

WHAT = "recipe"
BUILT_IN = Path(str(console.recipes.__file__)).parent
COMMON = BUILT_IN / "common"
"""Script templates and uploads that several recipes share."""

PAYLOADS = Path(str(backends.payloads.__file__)).parent

DEMO = "demo"
"""The recipe that is never chosen by itself: it trains a toy."""

_LARGEST_UPLOAD = 16 << 20
_IMPORT = re.compile(rb"^ *(?:from|import) ([a-z_0-9]+)\b", re.MULTILINE)
_SIZE = re.compile(r"@([a-z][a-z0-9_]*)@")


def choose_recipe(
    asked: str | None, algorithm: str, *, asked_in: str = "release.yaml", folder: Path = BUILT_IN
) -> Recipe:
    """The recipe of a release.

    Args:
        asked: Name of a built-in recipe or absolute path of a recipe's folder; None to take the only built-in
            one for the algorithm. The demo's is taken only when it is asked for.
        algorithm: What the recipe must be able to train.
        asked_in: Where the recipe is named, for messages.
        folder: Folder of the built-in recipes.

    Raises:
        InputError: When there is no such recipe, it cannot train the algorithm, it is faulty, or none is named
            and there is not exactly one.
    """
    if asked is not None:
        recipe = load_recipe(asked, asked_in=asked_in, folder=folder)
        if algorithm not in recipe.algorithms:
            expected = f"a recipe for {algorithm}"
            found = f"{recipe.name}, which is for {', '.join(recipe.algorithms)}"
            raise InputError(Problem(asked_in, "recipe", expected, found))
        return recipe
    able = [
        recipe
        for name in built_in(folder)
        if name != DEMO and algorithm in (recipe := load_recipe(name, asked_in=asked_in, folder=folder)).algorithms
    ]
    if len(able) != 1:
        several = f"{len(able)} ({', '.join(recipe.name for recipe in able)})" if able else "none built in"
        advice = "name one with recipe:"
        raise InputError(Problem(asked_in, "recipe", f"one recipe for {algorithm}", several, advice))
    return able[0]


def built_in(folder: Path = BUILT_IN) -> tuple[str, ...]:
    """Names of the built-in recipes."""
    return tuple(sorted(path.parent.name for path in folder.glob("*/recipe.yaml")))


def load_recipe(name: str, *, asked_in: str = "release.yaml", folder: Path = BUILT_IN) -> Recipe:
    """Read and check a recipe with all its files.

    Args:
        name: Name of a built-in recipe, or absolute path of a recipe's folder.
        asked_in: Where the name stands, for messages.
        folder: Folder of the built-in recipes.

    Raises:
        InputError: When there is no such recipe, or with everything that is wrong with it.
    """
    if not name.startswith("/") and name not in built_in(folder):
        advice = suggestion(name, built_in(folder))
        raise InputError(Problem(asked_in, "recipe", "the name of a recipe or an absolute path", f'"{name}"', advice))
    place = Path(name) if name.startswith("/") else folder / name
    document = read_document(place / "recipe.yaml", WHAT)
    document, sizes = _defaults_for_sizes(document)
    description = validate(Description, document)
    tasks = tuple(Task(**dict(task), sizes=sizes.get(index, {})) for index, task in enumerate(description.tasks))
    problems = [*_value_problems(description, document), *_task_problems(tasks, document)]
    problems += _batch_problems(description, tasks, document)
    if place.parent == folder and description.name != place.name:
        problems.append(document.problem(("name",), f"{place.name}, as its folder", f'"{description.name}"'))
    templates, files = _read_files(place, tasks, document, problems)
    problems += _import_problems(tasks, files, document)
    problems += _placeholder_problems(description, tasks, templates, document, place)
    if problems:
        raise InputError(*problems)
    fields = {**dict(description), "tasks": tasks}
    recipe = Recipe(file=document.file, templates=templates, files=files, **fields)
    for budget in recipe.budgets:
        values = resolve_values(recipe, budget, {})
        for task in tasks:
            size_task(task, values, file=recipe.file, field=f"budgets.{budget}")
    return recipe


def _defaults_for_sizes(document: Document) -> tuple[Document, dict[int, dict[str, str]]]:
    """Put default values in the place of `@value@` sizes, so that they are checked as what they stand for.

    Returns:
        The document, and by index of the task which of its sizes names which value.
    """
    values, tasks = document.data.get("values", {}), document.data.get("tasks")
    if not isinstance(values, dict) or not isinstance(tasks, list):
        return document, {}
    sizes: dict[int, dict[str, str]] = {}
    filled: list[Any] = []
    problems = []
    for index, task in enumerate(tasks):
        named = {}
        for field in SIZES if isinstance(task, dict) else ():
            found = _SIZE.fullmatch(str(task.get(field)))
            if found is not None and found.group(1) in values:
                named[field] = found.group(1)
            elif found is not None:
                advice = suggestion(found.group(1), values)
                problems.append(document.problem(("tasks", index, field), "a value of values:", found.group(), advice))
        sizes[index] = named
        filled.append({**task, **{field: values[name] for field, name in named.items()}} if named else task)
    if problems:
        raise InputError(*problems)
    return replace(document, data={**document.data, "tasks": filled}), sizes


def _value_problems(description: Description, document: Document) -> Iterator[Problem]:
    """Values must hold no placeholders, and budgets only set what is a value, to the same type."""
    for name, value in description.values.items():
        place = ("values", name)
        problem = complaint(no_placeholder, value, document.file, f"values.{name}", document.line(place))
        if problem is not None:
            yield problem
    for name in description.required:
        if name not in description.values:
            advice = suggestion(name, description.values)
            yield document.problem(("required", name), "a value of values:", f'"{name}"', advice)
    for budget in ("dev", "full"):
        if budget not in description.budgets:
            yield document.problem(("budgets",), f"a budget {budget}", "none", f"add it, {{}} sets nothing: {budget}")
            continue
        for name, value in description.budgets[budget].items():
            line = document.line(("budgets", budget, name))
            field = f"budgets.{budget}.{name}"
            problem = override_problem(description.values, name, value, document.file, field, line)
            if problem is not None:
                yield problem


def _task_problems(tasks: tuple[Task, ...], document: Document) -> Iterator[Problem]:
    """Tasks stand in the order of the flow, each name once in its stage, and write each file once."""
    seen: set[tuple[str, str]] = set()
    latest = 0
    for index, task in enumerate(tasks):
        place = ("tasks", index)
        if (task.stage, task.task) in seen:
            yield document.problem((*place, "task"), "a name once in its stage", f'"{task.task}" again')
        seen.add((task.stage, task.task))
        order = STAGES.index(task.stage)
        if order < latest:
            yield document.problem((*place, "stage"), f"the stages in the order {', '.join(STAGES)}", task.stage)
        latest = max(latest, order)
        paths = list(task.results.values())
        for path in {path for path in paths if paths.count(path) > 1}:
            yield document.problem((*place, "results"), "another file for each kind", f"{path} twice")
        for path in sorted(set(paths) & set(task.uploads)):
            # What was uploaded would be read as a result that nobody wrote.
            yield document.problem((*place, "results"), "files that the job writes", f"the upload {path}")


def _batch_problems(description: Description, tasks: tuple[Task, ...], document: Document) -> Iterator[Problem]:
    """A task whose GPU count may change needs the two values that keep its global batch."""
    if any(task.needs_gpu_fit for task in tasks):
        for name in (PER_DEVICE_BATCH, GRADIENT_ACCUMULATION):
            value = description.values.get(name)
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                found = "none" if value is None else shown(value)
                yield document.problem(("values", name), "a whole number of at least 1 (needs_gpu_fit is used)", found)


def _read_files(
    place: Path, tasks: tuple[Task, ...], document: Document, problems: list[Problem]
) -> tuple[dict[str, str], dict[str, bytes]]:
    """Read every template and upload; what cannot be read is added to the problems."""
    templates: dict[str, str] = {}
    files: dict[str, bytes] = {}
    for index, task in enumerate(tasks):
        try:
            if task.script not in templates:
                templates[task.script] = _read_template(_beside(place, task.script, "script template", (COMMON,)))
        except InputError as error:
            problems += [_used_in(problem, document, ("tasks", index, "script")) for problem in error.problems]
        for number, name in enumerate(task.uploads):
            try:
                if name not in files:
                    path = _beside(place, name, "upload", (COMMON, PAYLOADS))
                    files[name] = read_file(path, "upload", _LARGEST_UPLOAD)
            except InputError as error:
                where = ("tasks", index, "uploads", number)
                problems += [_used_in(problem, document, where) for problem in error.problems]
    return templates, files


def _import_problems(tasks: tuple[Task, ...], files: Mapping[str, bytes], document: Document) -> Iterator[Problem]:
    """A program finds what it imports only beside itself, in the job's folder."""
    shared = {path.name for path in PAYLOADS.glob("*.py")}
    for index, task in enumerate(tasks):
        for name in (name for name in task.uploads if name in shared):
            imported = {f"{found.decode()}.py" for found in _IMPORT.findall(files.get(name, b""))}
            for missing in sorted((imported & shared) - set(task.uploads)):
                yield document.problem(("tasks", index, "uploads"), f"{missing} too, which {name} imports", "nothing")


def _used_in(problem: Problem, document: Document, location: tuple[str | int, ...]) -> Problem:
    """Name the field that asks for a file where all of the file is wrong."""
    if problem.line is not None:
        return problem
    field = document.problem(location, "").field
    return replace(problem, field=f"{problem.field} ({field} in recipe.yaml)")


def _read_template(path: Path) -> str:
    text = read_text(path, "script template")
    for sign, name in (("\r", "a carriage return"), ("\0", "a NUL character")):
        if sign in text:
            line = text.count("\n", 0, text.index(sign)) + 1
            raise InputError(Problem(str(path), "script template", "plain lines", name, "delete it", line))
    return text


def _beside(place: Path, name: str, what: str, shared: tuple[Path, ...]) -> Path:
    """A file beside recipe.yaml or among the shared ones; never a choice between two."""
    own = place / name
    found = [path for path in (own, *(folder / name for folder in shared)) if path.exists()]
    if len(found) > 1:
        raise InputError(Problem(str(own), what, "a name of its own", f"a shared file of the same name ({found[1]})"))
    if not found:
        known = (path.name for folder in shared for path in folder.glob("*.*") if path.name != "__init__.py")
        expected = f"a file beside recipe.yaml or in {' or '.join(map(str, shared))}"
        raise InputError(Problem(str(own), what, expected, "nothing", suggestion(name, known)))
    return found[0]


def _placeholder_problems(
    description: Description, tasks: tuple[Task, ...], templates: Mapping[str, str], document: Document, place: Path
) -> Iterator[Problem]:
    """Every placeholder must be known, and stand where quoting protects it."""
    known = FACTS | set(description.values)
    for script, text in sorted(templates.items()):
        file = str(place / script)
        for fault in faults(text):
            yield Problem(file, "quoting", "placeholders in plain places", fault.what, fault.advice, fault.line)
        for name, line in names(text):
            if name not in known:
                yield Problem(file, f"@{name}@", "a known placeholder", f"@{name}@", suggestion(name, known), line)
    for index, task in enumerate(tasks):
        for name in {name for name, _ in names(task.image or "")} - known:
            yield document.problem(
                ("tasks", index, "image"), "known placeholders", f"@{name}@", suggestion(name, known)
            )
        for field, texts in (("environment", task.environment), ("results", task.results)):
            for key, text in texts.items():
                for name in {name for name, _ in names(text)} - known:
                    where = ("tasks", index, field, key)
                    yield document.problem(where, "known placeholders", f"@{name}@", suggestion(name, known))
    for name in {name for name, _ in names(description.drafts_root)} - FACTS:
        yield document.problem(("drafts_root",), "known placeholders", f"@{name}@", suggestion(name, FACTS))
