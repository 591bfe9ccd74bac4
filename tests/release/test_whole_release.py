"""A whole release: real conductor, real programs, real measurements; only Slurm's commands are small look-alikes."""

from __future__ import annotations

import hashlib
import os
import sys
from pathlib import Path

from backends.hosts.local import LocalHost
from backends.slurm.client import Slurm
from backends.watcher.watcher import ResultWatcher
from console.commands.conducting import utc
from console.release.conductor import Conductor
from console.release.folder import read_state
from console.release.journal import check_anchor, read_log
from console.release.opening import Opened, resume_run, start_run
from console.release.ports import Connection

SBATCH = r"""#!/bin/bash
[ "$1" = --version ] && { echo 'slurm 22.05.8'; exit 0; }
id=$(($(wc -l < "$LAB/accepted") + 1))
for option in "$@"; do case "$option" in
  --job-name=*) name=${option#*=};; --chdir=*) folder=${option#*=};; --output=*) output=${option#*=};;
esac; done
cat > "$LAB/script-$id"; echo "$id $name" >> "$LAB/accepted"
(cd "$folder" && SLURM_JOB_ID=$id bash "$LAB/script-$id" > "${output//%j/$id}" 2>&1 < /dev/null
 echo $? > "$LAB/end-$id") > /dev/null 2>&1 &
echo "$id"
"""
SQUEUE = r"""#!/bin/bash
while read -r id name; do
  state=RUNNING; [ -e "$LAB/end-$id" ] && state=COMPLETED
  echo "$id|$state|None|node1|0:10|5:00"
done < "$LAB/accepted"
"""
PROGRAMS = {
    "sbatch": SBATCH,
    "squeue": SQUEUE,
    "sacct": "#!/bin/sh\n",
    "sinfo": "#!/bin/sh\necho 'batch*|up|1-00:00:00|2|8|(null)'\n",
    "sacctmgr": "#!/bin/sh\necho research\n",
}


def make_lab(folder: Path) -> dict[str, str]:
    """The commands in a folder, and the environment in which scripts find them."""
    programs = folder / "bin"
    programs.mkdir(parents=True)
    for name, text in PROGRAMS.items():
        (programs / name).write_text(text)
        (programs / name).chmod(0o755)
    (folder / "accepted").touch()
    return {**os.environ, "PATH": f"{programs}:{os.environ['PATH']}", "LAB": str(folder)}


def write_inputs(folder: Path) -> tuple[Path, Path]:
    clusters, release = folder / "clusters.yaml", folder / "release.yaml"
    clusters.write_text(
        f"""
clusters:
  lab:
    login_node: 127.0.0.1
    user: somebody
    workspace: {folder}/workspace
    slurm: {{default_account: research, default_partition: batch}}
    gonogo: {{python: {sys.executable}, poll_seconds: 0.3, watch_seconds: 0.2, result_grace_seconds: 1}}
"""
    )
    revision = hashlib.sha1(b"demo/tiny-target", usedforsecurity=False).hexdigest()
    release.write_text(
        f'target: demo/tiny-target\nrevision: "{revision}"\nalgorithm: dflash2\nbudget: dev\nrecipe: demo\n'
    )
    return clusters, release


async def conduct(opened: Opened, environment: dict[str, str]) -> int:
    async def connect() -> Connection:
        host = LocalHost(environment)
        return Connection(host, Slurm(host), ResultWatcher(host, interval=0.2))

    try:
        return await Conductor(opened.release, opened.writer, connect, approve="none").run()
    finally:
        opened.lock.close()


async def test_a_release_ends_ready_with_every_number_measured(tmp_path: Path) -> None:
    environment = make_lab(tmp_path / "lab")
    clusters, release = write_inputs(tmp_path)
    run_dir = tmp_path / "run"
    opened = start_run(release, run_dir=run_dir, clusters_file=clusters, approve="none", clock=utc)
    assert await conduct(opened, environment) == 0

    state = read_state(run_dir)
    assert state is not None
    assert state.verdict == "DRAFTER_READY"
    assert {stage.status for stage in state.stages} == {"passed"}
    accepted = (tmp_path / "lab" / "accepted").read_text().split()[1::2]
    tokens = [attempt.token[:8] for attempt in state.attempts]
    assert [name.rpartition("-")[2] for name in accepted] == tokens
    bench = next(gate for gate in state.stage("bench").gates if gate.name == "bench")
    assert bench.facts["acceptance_length_c1"] > 1.5
    for attempt in state.attempts:
        for result in attempt.results:
            assert hashlib.sha256((run_dir / result.copy).read_bytes()).hexdigest() == result.sha256
    check_anchor(read_log(run_dir), state.entries, state.head)
    assert "DRAFTER_READY" in (run_dir / "SPECDEC_REPORT.md").read_text()

    # A finished run asks the cluster for nothing and runs nothing again.
    again = resume_run(run_dir, approve=None, clock=utc)
    assert await conduct(again, environment) == 0
    assert (tmp_path / "lab" / "accepted").read_text().split()[1::2] == accepted
