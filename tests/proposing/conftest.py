"""A desk for tests of proposers."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.asking.desks import Desk
from tests.release.submitting import make_release, run_before_its_first_job


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    release = make_release(tmp_path)
    run_before_its_first_job(release.run_dir)
    with asyncio.Runner() as loop:
        yield Desk(release, loop)
