"""How much of a policy is used, in words. Imports nothing: the screen needs it on the way to its first frame."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def hours(gpu_seconds: int) -> str:
    """GPU seconds as GPU hours."""
    return f"{gpu_seconds / 3600:.2f}"


def usage(standing: Mapping[str, Any]) -> str:
    """How much is used of the policy that a state holds, in words; empty where it holds none."""
    if not standing:
        return ""
    jobs = f"{standing['jobs']} of {standing['max_jobs']} jobs"
    gpus = f"{hours(standing['gpu_seconds'])} of {hours(standing['max_gpu_seconds'])} GPU hours"
    return f"{jobs}, {gpus}, until {standing['until']}"
