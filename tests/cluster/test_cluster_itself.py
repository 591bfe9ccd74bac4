"""The test cluster: started twice it is one, it ends only what is its own, and it says what is wrong."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.cluster.errors import ClusterError
from tests.cluster.layout import DAEMONS, MAX_FOLDER, folder_of, read_layout
from tests.cluster.processes import Daemons
from tests.cluster.running import Cluster, find_cluster, open_cluster

pytestmark = pytest.mark.xdist_group("cluster")

ROOT = Path(__file__).parents[2]


def test_what_runs_is_kept_and_what_is_missing_is_started(cluster: Cluster) -> None:
    before = {name: cluster.daemons.pid(name) for name in DAEMONS}
    assert None not in before.values()
    cluster.end("slurmd-node2")
    # Another process, as from the command line: it knows the cluster by its folder alone.
    folder = str(cluster.layout.folder)
    ended = subprocess.run(
        [sys.executable, "-m", "tests.cluster", "up", folder], cwd=ROOT, capture_output=True, text=True
    )
    assert ended.returncode == 0, ended.stderr
    after = {name: cluster.daemons.pid(name) for name in DAEMONS}
    changed = {name for name in DAEMONS if before[name] != after[name]}
    assert changed == {"slurmd-node2"}
    assert after["slurmd-node2"] is not None


def test_a_pid_file_that_names_another_process_is_not_believed(cluster: Cluster, tmp_path: Path) -> None:
    stranger = subprocess.Popen(["sleep", "60"])
    pid_file = cluster.daemons.pid_file("stranger")
    try:
        pid_file.write_text(f"{stranger.pid}\n")
        assert cluster.daemons.pid("stranger") is None
        assert not cluster.daemons.end("stranger")
        assert stranger.poll() is None
    finally:
        pid_file.unlink(missing_ok=True)
        stranger.kill()
        stranger.wait()


def test_a_daemon_that_ends_at_once_is_told_with_its_own_words(cluster: Cluster) -> None:
    daemons = Daemons(cluster.layout)
    try:
        with pytest.raises(ClusterError, match="this is why"):
            daemons.start("sh", ["/bin/sh", "-c", "echo this is why >&2; exit 1"], lambda: False)
    finally:
        daemons.pid_file("sh").unlink(missing_ok=True)


def test_folders_that_can_hold_no_cluster_are_refused(cluster: Cluster, tmp_path: Path) -> None:
    with pytest.raises(ClusterError, match="Slurm's files hold nothing else"):
        folder_of("/tmp/two words")
    with pytest.raises(ClusterError, match="sockets"):
        folder_of("/tmp/" + "x" * MAX_FOLDER)
    assert find_cluster("/tmp/gonogo-no-such-cluster") is None
    (tmp_path / "cluster.json").write_text("{}")
    with pytest.raises(ClusterError, match="not the file of a test cluster"):
        read_layout(tmp_path)
    taken = Path(f"/tmp/{tmp_path.name[:20]}-taken")
    taken.mkdir(exist_ok=True)
    try:
        (taken / "file").touch()
        with pytest.raises(ClusterError, match="not empty"):
            open_cluster(str(taken))
        assert [path.name for path in taken.iterdir()] == ["file"]
    finally:
        (taken / "file").unlink(missing_ok=True)
        taken.rmdir()
