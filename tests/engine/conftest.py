"""These tests take minutes and gigabytes: they run when they are asked for, and then they do not skip."""

from __future__ import annotations

import os

import pytest

from tests.engine.install import engine_python

ASKED = "GONOGO_TEST_ENGINE"


@pytest.fixture(scope="session", autouse=True)
def _engine() -> None:
    """The real engine is there."""
    if os.environ.get(ASKED) != "1":
        pytest.skip("serves with a real engine, which takes minutes: run `make test-engine`")
    if engine_python() is None:
        pytest.fail("the engine is not installed: run `python -m tests.engine.install`", pytrace=False)
