"""One embedded cluster for the tests of a module; each takes its own trouble back."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from backends.sandbox import lifecycle
from backends.sandbox.place import Place
from tests.clustercheck.checking import plain_path
from tests.sandbox.clusters import Cluster


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    folder = tmp_path_factory.mktemp("lab")
    state = folder / "cluster"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PATH", plain_path(folder / "programs"))
        info = lifecycle.ensure(state)
    yield Cluster(Place(state), info)
    lifecycle.stop(state)
