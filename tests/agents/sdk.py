"""The MCP SDK, which tests over the wire need: `make` installs it with the extra `agents`."""

from __future__ import annotations

import os
from importlib.util import find_spec

import pytest

WHY = "the MCP SDK is not installed: pip install -c constraints.txt -e '.[agents]'"


def require_sdk() -> None:
    """Skip the module where the SDK is not installed, saying so; where CI is true that is a failure."""
    if find_spec("mcp") is not None:
        return
    if os.environ.get("CI") == "true":
        pytest.fail(WHY, pytrace=False)
    pytest.skip(WHY, allow_module_level=True)
