"""A recipe as it was read: its values, budgets and tasks, with the text and bytes of every file they name."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Annotated

from pydantic import Field

from console.release.errors import InputError, Problem, suggestion
from console.release.recipe_task import Task, TaskText, Word
from console.release.spec import Algorithm, Budget, Value
from console.release.templates import names
from console.release.validation import Input, Scalar, Text, complaint, refusal, validate
from console.release.yaml_reading import Document

FACTS = frozenset(
    {
        "TARGET", "TARGET_PATH", "REVISION", "ALGORITHM", "BUDGET", "WORKSPACE", "HF_LOCAL", "RUN_ID", "PYTHON",
        "DATA_DIR", "EXPORT_PATH", "EXPORT_DIR", "DRAFTER_PATH", "MANIFEST_SHA256", "ATTEMPT", "GPUS_PER_NODE",
        "NODES", "CONTAINER_IMAGE", "FAIL",
    }
)  # fmt: skip
"""Placeholders in capitals: what the conductor knows about a run. All others are recipe values."""


class Description(Input):
    """What stands in `recipe.yaml`.

    Attributes:
        name: The recipe's name, the same as its folder's where it is built in.
        about: What it is for, in one line.
        algorithms: Algorithms that it can train.
        values: Default of every value that its templates use; the type of a default is the type of the value.
        required: Values that every release must set, since no default could be right: for each, what it is. Only
            those that a job of the release uses are asked for.
        budgets: For each budget the values that it sets differently.
        drafts_root: Folder on the cluster for frozen drafters; may use placeholders in capitals.
        freeze_job_above_bytes: Exports larger than this are frozen by a job of their own, bytes.
        tasks: All jobs, in the order of the flow.
    """

    name: Annotated[Word, Field(description="the recipe's name")]
    about: Annotated[Text, Field(description="what the recipe is for, in one line")]
    algorithms: Annotated[tuple[Algorithm, ...], Field(min_length=1, description="a list of algorithms", strict=False)]
    values: Mapping[Word, Value] = {}
    required: Mapping[Word, Text] = {}
    budgets: Annotated[Mapping[Budget, Mapping[Word, Value]], Field(description="a mapping with dev and full")]
    drafts_root: Text = "@WORKSPACE@/drafts"
    freeze_job_above_bytes: Annotated[int, Field(ge=0)] = 1_000_000_000
    tasks: Annotated[tuple[TaskText, ...], Field(min_length=1, description="a list of jobs", strict=False)]


@dataclass(frozen=True, slots=True)
class Recipe:
    """The jobs of a release, with everything that they are made from.

    Attributes:
        file: Its recipe.yaml.
        name: As in `Description`, and so are the next seven.
        templates: Text of every script template, by file name.
        files: Bytes of every upload, by file name.
    """

    file: str
    name: str
    about: str
    algorithms: tuple[str, ...]
    values: Mapping[str, Scalar]
    required: Mapping[str, str]
    budgets: Mapping[Budget, Mapping[str, Scalar]]
    drafts_root: str
    freeze_job_above_bytes: int
    tasks: tuple[Task, ...]
    templates: Mapping[str, str]
    files: Mapping[str, bytes]

    def task(self, stage: str, task: str) -> Task:
        """A task by stage and name.

        Raises:
            KeyError: When there is none.
        """
        for item in self.tasks:
            if (item.stage, item.task) == (stage, task):
                return item
        raise KeyError(f"{stage}/{task}")


def size_task(
    task: Task, values: Mapping[str, Scalar], *, file: str = "release.yaml", field: str = "overrides"
) -> Task:
    """A task with its sizes (time, nodes, GPUs...) taken from recipe values where it names some.

    Args:
        task: The task; its sizes hold the defaults so far.
        values: As `resolve_values` returns them.
        file: Where the values come from, for messages.
        field: The mapping there that holds them.

    Raises:
        InputError: When a value cannot be such a size.
    """
    if not task.sizes:
        return task
    sized = {size: values[name] for size, name in task.sizes.items()}
    try:
        return validate(Task, Document(file, {**dict(task), **sized}))
    except InputError as error:
        advice = f"it is a size of the job {task.stage}/{task.task}"
        problems = [replace(item, field=f"{field}.{task.sizes[item.field]}", advice=advice) for item in error.problems]
        raise InputError(*problems) from None


def resolve_values(
    recipe: Recipe, budget: Budget, overrides: Mapping[str, Scalar], *, file: str = "release.yaml"
) -> dict[str, Scalar]:
    """A recipe's values for one release: defaults, then the budget's, then the release's overrides.

    Args:
        recipe: The recipe.
        budget: Which of its budgets.
        overrides: What the release sets differently.
        file: Where the overrides stand, for messages.

    Raises:
        InputError: When an override is no value of the recipe, or of another type than its default.
    """
    problems = []
    for name, value in overrides.items():
        problem = override_problem(recipe.values, name, value, file, f"overrides.{name}")
        if problem is not None:
            problems.append(problem)
    if problems:
        raise InputError(*problems)
    merged = {**recipe.values, **recipe.budgets[budget], **overrides}
    return {name: float(value) if isinstance(recipe.values[name], float) else value for name, value in merged.items()}


def require_values(
    recipe: Recipe, tasks: Iterable[Task], values: Mapping[str, Scalar], *, file: str = "release.yaml"
) -> None:
    """Make sure that every value is set that some of a recipe's tasks cannot do without.

    Args:
        recipe: The recipe.
        tasks: Those of its tasks that will run.
        values: As `resolve_values` returns them.
        file: Where they would be set, for messages.

    Raises:
        InputError: With one line for each that still has its default.
    """
    used = {name for task in tasks for text in _texts(recipe, task) for name, _ in names(text)}
    missing = [name for name in recipe.required if name in used and values[name] == recipe.values[name]]
    if missing:
        raise InputError(*(Problem(file, f"overrides.{name}", recipe.required[name], "nothing") for name in missing))


def _texts(recipe: Recipe, task: Task) -> tuple[str, ...]:
    """Everything of a task in which placeholders may stand."""
    return (recipe.templates[task.script], *task.environment.values(), *task.results.values(), task.image or "")


def override_problem(
    values: Mapping[str, Scalar], name: str, value: Scalar, file: str, field: str, line: int | None = None
) -> Problem | None:
    """What is wrong with setting a recipe value differently; None when nothing is."""
    if name not in values:
        return Problem(file, field, "a value that the recipe has", f'"{name}"', suggestion(name, values), line)
    default = values[name]
    return complaint(lambda given: _fits(given, default), value, file, field, line)


def _fits(value: Scalar, default: Scalar) -> None:
    """Make sure that a value can stand in a default's place."""
    if isinstance(default, bool):
        if not isinstance(value, bool):
            raise refusal(f"true or false, as its default ({str(default).lower()})")
    elif isinstance(default, int):
        if isinstance(value, bool) or not isinstance(value, int):
            raise refusal(f"a whole number, as its default ({default})")
    elif isinstance(default, float):
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise refusal(f"a number, as its default ({default})")
    elif not isinstance(value, str):
        raise refusal(f'text, as its default ("{default}")', "put it in quotes")
    else:
        no_placeholder(value)


def no_placeholder(value: Scalar) -> None:
    """Refuse placeholders in a value: values are filled in as they are, so one would stay literal."""
    if isinstance(value, str) and (found := names(value)):
        raise refusal("text without placeholders", f"@{found[0][0]}@ would stay as it is: write the value out")
