"""What is asked on a login node: programs, Slurm, workspace and clock, each in a script of its own.

They are asked side by side, so that one that hangs keeps no other from being answered.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from backends.errors import CouldNotAsk
from backends.hosts.base import Host, RunResult
from backends.slurm.parsing import fields, parse_partitions
from console.release.clusters import Cluster

PYTHON, TOOLS, CLOCK, WORKSPACE = "python", "programs", "clock", "workspace"
COMMANDS, CONTROLLER, PARTITION = "Slurm commands", "controller", "partition"
ACCOUNTING, ACCOUNT = "accounting", "account"
NAMES = (PYTHON, TOOLS, COMMANDS, CONTROLLER, PARTITION, ACCOUNTING, ACCOUNT, WORKSPACE, CLOCK)

OLDEST_PYTHON = (3, 8)
"""What the programs that gonogo brings to a cluster are written for."""

CLOCK_REMARK_S, CLOCK_WRONG_S = 5.0, 60.0
"""From so many seconds a clock difference is worth a remark, and wrong: times in the log and in Slurm tell apart."""

TIMEOUT_S = 60.0

_HEAD = """
unset SLURM_TIME_FORMAT SLURM_CLUSTERS CDPATH
for name in $(env | grep -oE '^(SBATCH|SQUEUE|SACCT|SINFO|SCANCEL)_[A-Za-z0-9_]+'); do unset "$name"; done
[ -n "$1" ] && PATH="$1:$PATH"
export LC_ALL=C TZ=UTC PATH
say() { printf '%s %s\\n' "$1" "${#2}"; printf '%s\\n' "$2"; }
ask() { name=$1; shift; said=$(timeout 20 "$@" 2>&1); ended=$?; say "$name" "$said"; say "${name}_status" "$ended"; }
"""

_PROGRAMS = (
    _HEAD
    + """
say path "$PATH"
for tool in sha256sum tar base64 stat timeout readlink; do
  command -v "$tool" >/dev/null 2>&1 || missing="$missing $tool"
done
say missing "$missing"
say sha256 "$(printf gonogo | sha256sum 2>&1)"
ask python "$2" -c 'import sys; print("%d.%d.%d" % sys.version_info[:3])'
"""
)

_SLURM = (
    _HEAD
    + """
say path "$PATH"
for tool in sbatch squeue sacct scancel sinfo sacctmgr scontrol; do
  command -v "$tool" >/dev/null 2>&1 || missing="$missing $tool"
done
say missing "$missing"
ask version sbatch --version
ask ping scontrol ping
ask partitions sinfo -h -o '%P|%a|%l|%D|%c|%G'
"""
)

_ACCOUNTING = (
    _HEAD
    + """
ask sacct sacct -n -X -P -S now-1hours -o JobIDRaw
ask accounts sacctmgr -n -P show assoc user="$(id -un)" format=account
"""
)

# The deepest folder of the path that is there must take a new folder; setup creates the missing ones below it.
_WORKSPACE = """
export LC_ALL=C
place=$1
while [ ! -d "$place" ]; do
  if [ -e "$place" ] || [ -L "$place" ]; then echo "$place is there, but is no folder" >&2; exit 3; fi
  [ "$place" = / ] && exit 3
  place=$(dirname -- "$place")
done
probe="$place/.gonogo-check-$$-$(date +%s)"
mkdir -- "$probe" || exit 4
printf probe > "$probe/file"; got=$(cat "$probe/file"); rm -f -- "$probe/file"; rmdir -- "$probe"
[ "$got" = probe ] || { echo "what was written did not come back" >&2; exit 5; }
printf '%s\\n' "$place"
df -Pk -- "$place" | awk 'NR==2 {print $4}'
# GNU's stat knows a file system by name; elsewhere the line stays empty.
echo "$(stat -f -c %T -- "$place" 2>/dev/null)"
"""

_OF_ONE_MACHINE = ("tmpfs", "ramfs")


@dataclass(frozen=True, slots=True)
class Finding:
    """The answer to one question.

    Attributes:
        name: Which.
        well: True when it is as it should be, False when it surely is not, None when there was no answer.
        asked: What was asked of whom.
        found: What came, foreign words verbatim.
        expected: What should have come.
        advice: The next step, or a remark.
    """

    name: str
    well: bool | None
    asked: str
    found: str
    expected: str = ""
    advice: str = ""


async def ask(host: Host, cluster: Cluster, wall: Callable[[], float]) -> list[Finding]:
    """Ask everything.

    Args:
        host: The login node, logged in.
        cluster: What is expected of it.
        wall: Seconds since the epoch by this machine's clock.
    """
    clock = await _clock(host, wall)
    path = cluster.slurm_path or ""
    programs, slurm, accounting, workspace = await asyncio.gather(
        _answer(host, _PROGRAMS, [path, cluster.python]),
        _answer(host, _SLURM, [path]),
        _answer(host, _ACCOUNTING, [path]),
        _run(host, _WORKSPACE, [cluster.workspace]),
    )
    return [
        _python(host, cluster, programs),
        _tools(host, programs),
        *_slurm(host, cluster, slurm),
        *_accounts(host, cluster, accounting),
        _workspace(host, cluster, workspace),
        clock,
    ]


Said = Mapping[str, str] | CouldNotAsk


async def _run(host: Host, script: str, args: list[str]) -> RunResult | CouldNotAsk:
    try:
        return await host.run(script, args, timeout=TIMEOUT_S)
    except CouldNotAsk as error:
        return error


async def _answer(host: Host, script: str, args: list[str]) -> Said:
    result = await _run(host, script, args)
    if isinstance(result, CouldNotAsk):
        return result
    return {key: value.decode("utf-8", "surrogateescape").strip() for key, value in fields(result.stdout).items()}


def _no_answer(host: Host, name: str, said: Said | RunResult, what: str = "") -> Finding:
    """There was no answer at all, or none of the form that our script gives."""
    found = (said.said or "no answer") if isinstance(said, CouldNotAsk) else "no answer of the form that was expected"
    return Finding(name, None, f"{host.name}{what}", found, "an answer", "run the check again; then ask the site")


def _python(host: Host, cluster: Cluster, said: Said) -> Finding:
    asked = f"{host.name}, {cluster.python}"
    if isinstance(said, CouldNotAsk) or "python_status" not in said:
        return _no_answer(host, PYTHON, said)
    expected = f"Python {'.'.join(map(str, OLDEST_PYTHON))} or newer"
    advice = "set gonogo.python in clusters.yaml to a newer one (an absolute path works)"
    version = re.search(r"^(\d+)\.(\d+)\.\d+$", said["python"], re.MULTILINE | re.ASCII)
    if said["python_status"] != "0" or version is None:
        return Finding(PYTHON, False, asked, said["python"][-200:] or "nothing", expected, advice)
    well = (int(version[1]), int(version[2])) >= OLDEST_PYTHON
    return Finding(PYTHON, well, asked, version[0], "" if well else expected, "" if well else advice)


def _tools(host: Host, said: Said) -> Finding:
    asked = f"{host.name}, sha256sum and others"
    if isinstance(said, CouldNotAsk) or "sha256" not in said:
        return _no_answer(host, TOOLS, said)
    if said["missing"]:
        expected = "sha256sum, tar, base64, stat, timeout and readlink on the PATH"
        return Finding(TOOLS, False, asked, f"missing: {said['missing']}", expected, "ask the site for GNU coreutils")
    if re.match(r"[0-9a-f]{64}\b", said["sha256"]) is None:
        return Finding(TOOLS, False, asked, said["sha256"], "a SHA-256 digest", "see what sha256sum is there")
    return Finding(TOOLS, True, asked, "all there")


def _slurm(host: Host, cluster: Cluster, said: Said) -> list[Finding]:
    names = (COMMANDS, CONTROLLER, PARTITION)
    if isinstance(said, CouldNotAsk) or "partitions_status" not in said:
        return [_no_answer(host, name, said) for name in names]
    return [_commands(host, said), _controller(host, said), _partition(host, cluster, said)]


def _commands(host: Host, said: Mapping[str, str]) -> Finding:
    asked = f"{host.name}, sbatch --version"
    if said["missing"]:
        found = f"missing: {said['missing']} (PATH is {said['path']})"
        advice = "set gonogo.slurm_path in clusters.yaml to the folder of the Slurm commands"
        return Finding(COMMANDS, False, asked, found, "Slurm's commands on the PATH of a plain shell", advice)
    if said["version_status"] != "0":
        return Finding(COMMANDS, False, asked, said["version"], "a version", "see what is wrong with sbatch there")
    return Finding(COMMANDS, True, asked, said["version"])


def _controller(host: Host, said: Mapping[str, str]) -> Finding:
    asked = f"{host.name}, scontrol ping"
    ping = said["ping"]
    if re.search(r"\bis UP\b", ping):
        return Finding(CONTROLLER, True, asked, ping)
    advice = "wait, or ask the site whether Slurm is down"
    down = re.search(r"\bis DOWN\b", ping) is not None
    return Finding(CONTROLLER, False if down else None, asked, ping or _ended(said, "ping"), "a controller", advice)


def _ended(said: Mapping[str, str], name: str) -> str:
    """What to say of a command that ended without a word; 124 is what `timeout` ends with."""
    status = said.get(f"{name}_status", "")
    return "no answer within 20 s" if status == "124" else f"exit status {status}"


def _partition(host: Host, cluster: Cluster, said: Mapping[str, str]) -> Finding:
    asked = f"{host.name}, sinfo"
    partitions = parse_partitions(said["partitions"])
    if said["partitions_status"] != "0" or not partitions:
        found = said["partitions"] or _ended(said, "partitions")
        return Finding(PARTITION, None, asked, found, "the partitions", "see the controller")
    known = ", ".join(sorted(partitions))
    name = cluster.partition
    if name is None and len(partitions) > 1:
        advice = "set slurm.default_partition in clusters.yaml"
        return Finding(PARTITION, False, asked, f"none is named, and there are {known}", "the name of one", advice)
    name = name or known
    if name not in partitions:
        advice = "correct slurm.default_partition in clusters.yaml"
        return Finding(PARTITION, False, asked, f"there are {known}", f"a partition {name}", advice)
    chosen = partitions[name]
    limit = "no time limit" if chosen.max_seconds is None else f"at most {chosen.max_seconds} s"
    gpus = "GPUs not told" if chosen.gpus_per_node is None else f"{chosen.gpus_per_node} GPUs a node"
    text = f"{name} is {'up' if chosen.up else 'not up'}: {chosen.nodes} nodes, {gpus}, {limit}"
    if not chosen.up:
        return Finding(PARTITION, False, asked, text, "a partition that is up", "name another, or ask the site")
    return Finding(PARTITION, True, asked, text)


def _accounts(host: Host, cluster: Cluster, said: Said) -> list[Finding]:
    if isinstance(said, CouldNotAsk) or "accounts_status" not in said:
        return [_no_answer(host, name, said) for name in (ACCOUNTING, ACCOUNT)]
    asked = f"{host.name}, sacct"
    if said["sacct_status"] == "0":
        accounting = Finding(ACCOUNTING, True, asked, "answers")
    else:
        advice = "releases go on without it, but a lost job cannot be looked up there; ask the site"
        found = said["sacct"] or _ended(said, "sacct")
        disabled = "disabled" in found
        accounting = Finding(ACCOUNTING, False if disabled else None, asked, found, "an answer", advice)
    return [accounting, _account(host, cluster, said)]


def _account(host: Host, cluster: Cluster, said: Mapping[str, str]) -> Finding:
    asked = f"{host.name}, sacctmgr show assoc"
    if said["accounts_status"] != "0":
        found = said["accounts"] or _ended(said, "accounts")
        return Finding(ACCOUNT, None, asked, found, "the accounts of this user", "see accounting")
    # A warning may stand among the accounts, but no account's name has a space in it.
    accounts = list(dict.fromkeys(line for line in said["accounts"].splitlines() if line and " " not in line))
    found = f"yours are {', '.join(accounts) or 'none'}"
    if cluster.account is None:
        return Finding(ACCOUNT, True, asked, f"none is named, so Slurm's default counts; {found}")
    if cluster.account not in accounts:
        advice = "correct slurm.default_account in clusters.yaml"
        return Finding(ACCOUNT, False, asked, found, f"account {cluster.account} among yours", advice)
    return Finding(ACCOUNT, True, asked, f"{cluster.account} is yours")


def _workspace(host: Host, cluster: Cluster, said: RunResult | CouldNotAsk) -> Finding:
    asked = f"{host.name}, {cluster.workspace}"
    if isinstance(said, CouldNotAsk):
        return _no_answer(host, WORKSPACE, said, f", {cluster.workspace}")
    lines = said.stdout.decode("utf-8", "surrogateescape").splitlines()
    if said.exit_status != 0 or len(lines) != 3 or not lines[1].isascii() or not lines[1].isdigit():
        found = said.stderr.decode("utf-8", "surrogateescape").strip()[-300:] or f"exit status {said.exit_status}"
        advice = "correct workspace in clusters.yaml or its permissions"
        return Finding(WORKSPACE, False, asked, found, "a folder that takes new files", advice)
    place, free = lines[0], int(lines[1]) * 1024
    there = "" if place == cluster.workspace else f"not there yet, but {place} is and "
    kind = lines[2] or "not told by stat"
    alone = ", memory of one machine, which no other node sees" if kind in _OF_ONE_MACHINE else ""
    found = f"{there}takes new files, {free / 1e9:.1f} GB free, file system {kind}{alone}"
    if free == 0:
        return Finding(WORKSPACE, False, asked, found, "free space", "make room, or name another workspace")
    return Finding(WORKSPACE, True, asked, found)


async def _clock(host: Host, wall: Callable[[], float]) -> Finding:
    asked = f"{host.name}, date"
    before = wall()
    said = await _run(host, "LC_ALL=C date +%s.%N", [])
    after = wall()
    if isinstance(said, CouldNotAsk):
        return _no_answer(host, CLOCK, said)
    # A `date` that knows no %N leaves it behind the point.
    found = re.match(rb"(\d+(?:\.\d+)?)", said.stdout.strip())
    if found is None:
        return _no_answer(host, CLOCK, said)
    offset, doubt = float(found[1]) - (before + after) / 2, (after - before) / 2
    text = f"{abs(offset):.1f} s {'ahead of' if offset > 0 else 'behind'} ours, give or take {doubt:.1f} s"
    certain = max(0.0, abs(offset) - doubt)
    if certain > CLOCK_WRONG_S:
        advice = "set this machine's clock (NTP), or tell the site; times in the log would contradict Slurm's"
        return Finding(CLOCK, False, asked, text, f"a difference of less than {CLOCK_WRONG_S:g} s", advice)
    remark = "times in the log and in Slurm will differ by so much" if certain > CLOCK_REMARK_S else ""
    return Finding(CLOCK, True, asked, text, advice=remark)
