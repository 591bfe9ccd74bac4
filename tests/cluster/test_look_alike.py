"""What the sbatch look-alike submits to a real Slurm is what sbatch itself would have submitted, for recorded lines.

Both are asked for jobs that are held, and Slurm says what it took: `scontrol show job` and `scontrol write
batch_script`. What may differ is what docs/asking.md says: the token in the name, the comment, and the script's path.
"""

from __future__ import annotations

import asyncio
import json
import pwd
import re
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from backends.slurm.model import Accepted, Refused, Unknown
from console.release.asking.building import propose, read_asked
from console.release.job import ExactJob
from console.release.state import RunState
from console.release.submission import to_request
from tests.cluster.jobs import reached
from tests.cluster.layout import Account
from tests.cluster.running import Cluster
from tests.lookalike.recorded import Recorded, taken
from tests.release.making import new_run

pytestmark = pytest.mark.xdist_group("cluster")

TOGETHER = 6
_TIMES = ("EligibleTime", "Deadline")
_EACH_ITS_OWN = ("JobId", "ArrayJobId", "SubmitTime", "AccrueTime", "LastSchedEval", "Priority", "AllocNode:Sid",
                 "JobName", "Comment", "Command", "EndTime", "StartTime")  # fmt: skip


@dataclass(frozen=True)
class Taken:
    """What became of one line.

    Attributes:
        said: Words of a refusal, empty where Slurm took it.
        shown: What `scontrol show job` says, without what each job has of its own.
        script: What `scontrol write batch_script` writes.
        name: The job's name.
    """

    said: str
    shown: dict[str, str]
    script: str
    name: str


def fields_of(text: str) -> dict[str, str]:
    """The words of `scontrol show job -o`."""
    # No value of a recorded line has a space before a word with an equals sign.
    return dict(re.findall(r"(\S+?)=(.*?)(?= \S+?=|$)", text.strip()))


def what_slurm_has(cluster: Cluster, job_id: str, folder: str, mark: str = "") -> Taken:
    """What Slurm says of a job.

    Args:
        cluster: Where.
        job_id: The job.
        folder: The folder that it was submitted in.
        mark: What its name has at the end besides the name that was asked for.
    """
    shown = fields_of(cluster.root("scontrol", "show", "job", "-o", job_id).splitlines()[0])
    name = shown["JobName"]
    shown["WorkDir"] = shown["WorkDir"].replace(folder, "FOLDER")
    for stream in ("StdIn", "StdOut", "StdErr"):
        # The name of the file may have the job's number and name in it.
        shown[stream] = re.sub(rf"(?<!\d){job_id}(?!\d)", "ID", shown[stream].replace(folder, "FOLDER"))
        shown[stream] = shown[stream].replace(mark, "") if mark else shown[stream]
    for key in _EACH_ITS_OWN:
        shown.pop(key, None)
    return Taken("", shown, cluster.root("scontrol", "write", "batch_script", job_id, "-"), name)


_BY_SBATCH = """
import json, os, subprocess, sys
for line in json.load(sys.stdin):
    own = {name: value for name, value in os.environ.items() if not name.startswith("SBATCH_")}
    done = subprocess.run(["sbatch", *line["words"]], cwd=line["cwd"], env={**own, **line["environ"]}, text=True,
                          input=line["stdin"], capture_output=True)
    if done.returncode == 0 and not done.stdout:  # --quiet
        queued = subprocess.check_output(["squeue", "-h", "-a", "--me", "-o", "%A"], text=True)
        done.stdout = max(queued.split(), key=int)
    print(json.dumps([done.returncode, done.stdout, done.stderr]), flush=True)
"""


def words_of(line: Recorded, held: str) -> list[str]:
    """The line's words, as a held job that names another one."""
    return ["--hold", *(word.replace("JOB", held) for word in line.words)]


def by_sbatch(cluster: Cluster, account: Account, lines: Iterable[Recorded], held: str) -> list[Taken]:
    """Submit with sbatch itself, as the account, in a folder of each line's own."""
    root = cluster.layout.home(account) / "lines"
    wanted = []
    entry = pwd.getpwnam(account.name)
    for number, line in enumerate(lines):
        folder = root / f"{number:03}"
        line.put_files(folder)
        stdin = line.script if line.on_stdin else ""
        wanted.append({"words": words_of(line, held), "cwd": str(folder), "environ": line.environ, "stdin": stdin})
    subprocess.run(["chown", "-R", f"{entry.pw_uid}:{entry.pw_gid}", str(root)], check=True)
    done = subprocess.run(
        ["runuser", "-u", account.name, "--", "python3", "-c", _BY_SBATCH],
        env={**cluster.layout.environment(), "HOME": str(cluster.layout.home(account))},
        input=json.dumps(wanted),
        capture_output=True,
        text=True,
        timeout=300,
        check=True,
        cwd="/",
    )
    found = []
    for answer, item in zip(map(json.loads, done.stdout.splitlines()), wanted, strict=True):
        status, out, said = answer
        if status:
            found.append(Taken(said.strip(), {}, "", ""))
        else:
            number = re.search(r"(\d+)\s*$", out)
            assert number is not None, (out, said, item)
            found.append(what_slurm_has(cluster, number[1], str(item["cwd"])))
    return found


async def by_look_alike(
    cluster: Cluster, account: Account, lines: Iterable[Recorded], held: str, run_dir: Path, state: RunState
) -> list[tuple[Taken, ExactJob]]:
    """Submit what the look-alike proposes for each line, as the conductor would after an OK."""
    room = asyncio.Semaphore(TOGETHER)

    async def one(number: int, line: Recorded) -> tuple[Taken, ExactJob]:
        folder = run_dir.parent / "lines" / f"{number:03}"
        line.put_files(folder)
        stdin = line.script.encode() if line.on_stdin else None
        asked = read_asked(words_of(line, held), stdin=stdin, folder=folder, environ=line.environ)
        proposal = propose(run_dir, state, asked, line.environ, proposer="robot", now=datetime.now(UTC))
        job = proposal.job()
        async with room:
            outcome = await slurm.submit(to_request(job, {}))
        if isinstance(outcome, (Refused, Unknown)):
            # Words that prove no refusal are looked into, never taken for one; here they are compared.
            return Taken(re.sub(r"^sbatch ended with \d+ and said: ", "", outcome.said).strip(), {}, "", ""), job
        assert isinstance(outcome, Accepted), (line.text, outcome)
        return await asyncio.to_thread(what_slurm_has, cluster, outcome.job_id, job.job_dir, f"-{job.token[:8]}"), job

    async with reached(cluster, account) as (_, slurm):
        return await asyncio.gather(*(one(number, line) for number, line in enumerate(lines)))


def close(first: str, second: str) -> bool:
    """Whether two times are the same, or each so long after its submission as the other."""
    if first == second:
        return True
    try:
        distance = datetime.fromisoformat(first) - datetime.fromisoformat(second)
    except ValueError:
        return False
    return abs(distance.total_seconds()) < 600


def differences(line: Recorded, real: Taken, ours: Taken, job: ExactJob) -> list[str]:
    """Everything in which the look-alike's job is another one than sbatch's."""
    found = []
    if real.said != ours.said:
        found.append(f"sbatch said {real.said!r}, the look-alike was told {ours.said!r}")
    for key in sorted(set(real.shown) | set(ours.shown)):
        first, second = real.shown.get(key, "missing"), ours.shown.get(key, "missing")
        if first != second and not (key in _TIMES and close(first, second)):
            found.append(f"{key}: sbatch {first!r}, look-alike {second!r}")
    if real.script != ours.script:
        found.append(f"script: sbatch {real.script!r}, look-alike {ours.script!r}")
    if not real.said:
        expected = f"{re.sub(r'[^A-Za-z0-9._-]', '_', real.name)}-{job.token[:8]}"
        if ours.name != expected:
            found.append(f"JobName: expected {expected!r}, found {ours.name!r}")
    return [f"{line.text}: {item}" for item in found]


def state_at(cluster: Cluster, account: Account, run_dir: Path) -> RunState:
    """The state of a run that works on the cluster."""
    writer = new_run(run_dir)
    workspace = f"{cluster.layout.home(account)}/work"
    writer.record("setup_done", "The cluster answers", stage="setup", facts={"workspace": workspace})
    login = f"{account.name}@127.0.0.1:{cluster.layout.ports['sshd']}"
    return replace(writer.state, inputs={**writer.state.inputs, "login": login, "cluster": "proving"})


@pytest.mark.timeout(600)
async def test_recorded_lines_become_the_jobs_that_sbatch_would_have_made(cluster: Cluster, tmp_path: Path) -> None:
    account = cluster.layout.account()
    state = state_at(cluster, account, tmp_path / "run")
    lines = taken()
    held = by_sbatch(cluster, account, [lines[0]], "")[0].shown and _newest(cluster, account)
    real = await asyncio.to_thread(by_sbatch, cluster, account, lines, held)
    ours = await by_look_alike(cluster, account, lines, held, tmp_path / "run", state)
    found: list[str] = []
    for line, first, (second, job) in zip(lines, real, ours, strict=True):
        found += differences(line, first, second, job)
    assert not found, "\n".join(found)
    submitted = sum(1 for item in real if not item.said)
    print(f"{len(lines)} recorded lines: {submitted} submitted alike, {len(lines) - submitted} refused alike by Slurm")
    assert submitted >= 200


def _newest(cluster: Cluster, account: Account) -> str:
    return max(cluster.root("squeue", "-h", "-a", "-u", account.name, "-o", "%A").split(), key=int)


def test_the_comparison_sees_what_differs() -> None:
    line = taken()[0]
    job: Any = type("Job", (), {"token": "0123456789abcdef"})
    real = Taken("", {"NumNodes": "2", "EligibleTime": "2032-01-01T00:00:00"}, "#!/bin/sh\n", "a b")
    alike = replace(real, name="a_b-01234567")
    assert differences(line, real, alike, job) == []
    for other in (
        replace(alike, shown={**alike.shown, "NumNodes": "3"}),
        replace(alike, shown={**alike.shown, "EligibleTime": "2032-01-02T00:00:00"}),
        replace(alike, shown={**alike.shown, "More": "1"}),
        replace(alike, script="#!/bin/sh\n\n"),
        replace(alike, name="a b-01234567"),
        replace(alike, said="refused"),
    ):
        assert len(differences(line, real, other, job)) == 1
