"""For every test: nothing outlives it in the places where a person's own files lie."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

# How long an example takes is no matter of right or wrong, and depends on what else the machine does.
settings.register_profile("gonogo", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("gonogo")


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
