"""For every test: nothing outlives it in the places where a person's own files lie."""

from __future__ import annotations

from collections.abc import Iterator

import pytest


@pytest.fixture(scope="session", autouse=True)
def _own_history(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A history of the tests' own: releases that they close must not be held against real ones."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GONOGO_HISTORY", str(tmp_path_factory.mktemp("history") / "history.sqlite"))
        # A person's own settings are not part of a test.
        patch.setenv("GONOGO_CONFIG", str(tmp_path_factory.mktemp("config") / "config.toml"))
        for name in ("GONOGO_RUNS", "GONOGO_THEME"):
            patch.delenv(name, raising=False)
        yield
