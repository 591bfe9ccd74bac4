"""The programs run on the clusters' own Python: 3.8 and newer, with nothing but its standard library."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

import pytest

from console.release.recipe import built_in, load_recipe
from tests.payloads.running import PAYLOADS

PROGRAMS = sorted(path for path in PAYLOADS.glob("*.py") if path.name != "__init__.py")
NAMES = {path.stem for path in PROGRAMS}
ALONE = ("freeze.py", "check_target.py")
"""Sent over a connection one by one, so nothing lies beside them."""


def imported(path: Path) -> set[str]:
    """Top names of the modules that a program imports when it runs."""
    found: set[str] = set()

    def visit(nodes: list[ast.stmt]) -> None:
        for node in nodes:
            if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
                visit(node.orelse)
            elif isinstance(node, ast.Import):
                found.update(alias.name.split(".")[0] for alias in node.names)
            elif isinstance(node, ast.ImportFrom):
                found.add((node.module or "").split(".")[0])
            else:
                visit([child for child in ast.iter_child_nodes(node) if isinstance(child, ast.stmt)])

    visit(ast.parse(path.read_bytes()).body)
    return found


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.name)
def test_a_program_can_be_read_by_python_3_8(path: Path) -> None:
    tree = ast.parse(path.read_bytes(), feature_version=(3, 8))
    assert any(isinstance(node, ast.ImportFrom) and node.module == "__future__" for node in tree.body)
    newer = {"removeprefix", "removesuffix", "is_relative_to", "bit_count", "file_digest", "pairwise", "StrEnum"}
    assert {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)} & newer == set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "zip":
            assert not [word for word in node.keywords if word.arg == "strict"], "zip(strict=) came with Python 3.10"


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.name)
def test_a_program_imports_the_standard_library_and_its_neighbours_only(path: Path) -> None:
    foreign = imported(path) - set(sys.stdlib_module_names) - NAMES
    assert foreign <= ({"numpy"} if path.name.startswith("tiny_") else set())
    if path.name in ALONE:
        assert not imported(path) & NAMES


def test_nothing_but_the_tiny_models_needs_numpy() -> None:
    for path in PROGRAMS:
        if not path.name.startswith("tiny_"):
            assert not any(name.startswith("tiny_") for name in imported(path)), path.name


@pytest.mark.parametrize("name", built_in())
def test_every_job_of_a_built_in_recipe_takes_along_all_that_its_programs_import_and_no_more(name: str) -> None:
    recipe = load_recipe(name)
    for task in recipe.tasks:
        uploaded = {name.removesuffix(".py") for name in task.uploads if name.endswith(".py")}
        needed = set[str]().union(*(imported(PAYLOADS / f"{name}.py") for name in uploaded)) & NAMES
        assert needed <= uploaded, f"{task.stage}/{task.task} lacks {sorted(needed - uploaded)}"
        script = recipe.templates[task.script]
        called = {name for name in NAMES if f"{name}.py" in script}
        assert called <= uploaded
        # What nobody imports or calls would be an upload for nothing.
        assert uploaded <= needed | called, (
            f"{task.stage}/{task.task} has {sorted(uploaded - needed - called)} too many"
        )
