"""These tests take minutes and gigabytes: they run when they are asked for, and then they do not skip."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.engine.install import engine_python

ASKED = "GONOGO_TEST_ENGINE"
HERE = Path(__file__).parent


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--short", action="store_true", help="tests/engine: what the tests for every commit have time for")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "short: of the tests over a real engine, one that --short runs")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("--short", default=False):
        here = [item for item in items if item.path.is_relative_to(HERE)]
        left_out = [item for item in here if item.get_closest_marker("short") is None]
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in left_out]


@pytest.fixture(scope="session", autouse=True)
def _engine() -> None:
    """The real engine is there."""
    if os.environ.get(ASKED) != "1":
        pytest.skip("serves with a real engine, which takes minutes: run `make test-engine`")
    if engine_python() is None:
        pytest.fail("the engine is not installed: run `python -m tests.engine.install`", pytrace=False)
