"""Is a cluster ready for a release? One question after the other, each with one of the three answers.

Nothing is submitted, and nothing stays behind on the cluster: the one folder that is created there is removed again.
A question that was not asked, because an earlier one got no answer, says so; it never counts as passed.
"""

from __future__ import annotations

import asyncio
import os
import stat
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from backends.errors import CouldNotAsk, NeedsOperator
from backends.hosts import openssh
from backends.hosts.ssh import SshHost
from backends.hosts.ssh_config import SshConfigError, settings_of
from backends.hosts.ssh_target import SshTarget
from console.release import cluster_probes as probes
from console.release import connecting
from console.release.clusters import Cluster, Clusters
from console.release.errors import InputError


class Answer(StrEnum):
    """The three answers."""

    OK = "OK"
    WRONG = "WRONG"
    COULD_NOT_ASK = "COULD NOT ASK"


@dataclass(frozen=True, slots=True)
class Check:
    """One question and its answer.

    Attributes:
        name: What it is about.
        answer: One of the three.
        asked: What was asked of whom.
        found: What came, foreign words verbatim.
        expected: What should have come; empty where the answer is OK.
        advice: The next step, or a remark on what is OK; empty for none.
    """

    name: str
    answer: Answer
    asked: str
    found: str
    expected: str = ""
    advice: str = ""


OK, WRONG, COULD_NOT_ASK = Answer.OK, Answer.WRONG, Answer.COULD_NOT_ASK

ENTRY, KEY, WAKE, CONFIG = "clusters.yaml", "key file", "wake command", "ssh config"
HOST_KEY, LOGIN, SHELL = "host key", "login", "login shell"
_LOCAL = (KEY, CONFIG)
_REMOTE = (HOST_KEY, LOGIN, SHELL)

_MOST_NOISE = 200


def exit_status(checks: tuple[Check, ...]) -> int:
    """0 when all is well, 1 when something is wrong, 4 when something could not be asked and nothing is wrong."""
    answers = {check.answer for check in checks}
    if WRONG in answers:
        return 1
    return 4 if COULD_NOT_ASK in answers else 0


async def check_cluster(clusters: Clusters, name: str, *, wall: Callable[[], float] = time.time) -> tuple[Check, ...]:
    """Ask everything about one cluster.

    Args:
        clusters: The clusters file.
        name: One of its clusters.
        wall: Seconds since the epoch by this machine's clock.
    """
    try:
        cluster = clusters.cluster(name)
    except InputError as error:
        return _unusable_entry(clusters, name, error)
    where = f"{cluster.file}, cluster {name}"
    checks = [Check(ENTRY, OK, where, f"login node {cluster.login_node}, workspace {cluster.workspace}")]
    checks.append(_key_file(cluster))
    checks.append(await _configuration(cluster))
    if cluster.wake:
        checks.append(await _wake(cluster))
        if checks[-1].answer is not OK:
            return (*checks, *_not_asked((*_REMOTE, *probes.NAMES), f"the {WAKE} failed"))
    host = SshHost(await asyncio.to_thread(connecting.target_of, cluster))
    try:
        checks += await _login(host)
        if any(check.answer is not OK for check in checks[-len(_REMOTE) :]):
            return (*checks, *_not_asked(probes.NAMES, f"{LOGIN} or {SHELL} gave no answer"))
        checks += [_check(item) for item in await probes.ask(host, cluster, wall)]
    finally:
        await host.close()
    return tuple(checks)


def _check(finding: probes.Finding) -> Check:
    answer = {True: OK, False: WRONG, None: COULD_NOT_ASK}[finding.well]
    return Check(finding.name, answer, finding.asked, finding.found, finding.expected, finding.advice)


def _not_asked(names: tuple[str, ...], why: str) -> list[Check]:
    return [Check(name, COULD_NOT_ASK, "nobody", f"not asked: {why}") for name in names]


def _unusable_entry(clusters: Clusters, name: str, error: InputError) -> tuple[Check, ...]:
    """The problems of an entry; where only a file that it names is one, that is the check that failed."""
    where = f"{clusters.document.file}, cluster {name}"
    rest = (*_REMOTE, *probes.NAMES)
    last = {problem.field.rpartition(".")[2] for problem in error.problems}
    own = {"ssh_key": KEY, "ssh_config": CONFIG}.get(last.pop(), ENTRY) if len(last) == 1 else ENTRY
    checks = [Check(ENTRY, OK, where, "can be used")] if own != ENTRY else []
    for problem in error.problems:
        field = problem.field if problem.line is None else f"line {problem.line}, {problem.field}"
        found = f"{field}: {problem.found or 'something else'}"
        checks.append(Check(own, WRONG, where, found, problem.expected, problem.advice or "correct it"))
    local = tuple(name for name in _LOCAL if name != own)
    return (*checks, *_not_asked((*local, *rest), f"the {own} cannot be used"))


def _key_file(cluster: Cluster) -> Check:
    """Whether the key can be used without a person; OpenSSH refuses a key that others may read."""
    if cluster.ssh_key is None:
        agent = "and no agent is running" if not os.environ.get("SSH_AUTH_SOCK") else "and an agent is running"
        return Check(KEY, OK, "this machine", f"none is named: SSH's default keys count, {agent}")
    path = Path(os.path.expanduser(cluster.ssh_key))
    asked = f"this machine, {path}"
    try:
        mode = stat.S_IMODE(path.stat().st_mode)
        with path.open("rb") as file:
            file.read(1)
    except OSError as error:
        found = error.strerror or str(error)
        return Check(KEY, WRONG, asked, found, "a readable private key", "correct ssh_key in clusters.yaml")
    if mode & 0o077:
        return Check(KEY, WRONG, asked, f"mode {mode:o}", "a key that only you can read", f"chmod 600 {path}")
    return Check(KEY, OK, asked, f"readable, mode {mode:o}")


async def _configuration(cluster: Cluster) -> Check:
    """What the SSH configuration adds, what of it has no effect, and whether ssh itself would go elsewhere."""
    config = Path(cluster.ssh_config)
    asked = f"this machine, {config}, host {cluster.login_node}"
    if not os.path.exists(config):  # noqa: ASYNC240 -- a file of this machine
        return Check(CONFIG, OK, asked, "there is none")
    # Read as ssh is asked below, with nothing decided by clusters.yaml.
    try:
        said = await asyncio.to_thread(settings_of, config, cluster.login_node)
        theirs = await openssh.reading(config, said)
    except SshConfigError as error:
        return Check(CONFIG, WRONG, asked, str(error), "a configuration that can be understood", "correct it")
    except openssh.OpensshError as error:
        return Check(CONFIG, WRONG, asked, str(error), "a configuration that ssh takes", "correct it; see `ssh -G`")
    target = connecting.target_of(cluster)
    found = f"leads to {target.name}" + "".join(f" through {name}" for name in _hops(target))
    if said.ignored:
        found += f"; without effect here: {', '.join(said.ignored)}"
    apart = openssh.differences(said, theirs) if theirs is not None else ()
    if apart:
        advice = "write it so that both read the same, or say in clusters.yaml what is meant"
        return Check(CONFIG, WRONG, asked, "; ".join(apart), "the same reading as that of ssh", advice)
    return Check(CONFIG, OK, asked, found, advice="" if theirs is not None else "there is no ssh to compare with")


def _hops(target: SshTarget) -> list[str]:
    """The jump hosts of a target, the last one first."""
    return [] if target.jump is None else [target.jump.name, *_hops(target.jump)]


async def _wake(cluster: Cluster) -> Check:
    asked = f"this machine, {' '.join(cluster.wake)}"
    try:
        await connecting.wake(cluster)
    except CouldNotAsk as error:
        return Check(WAKE, COULD_NOT_ASK, asked, error.said, "exit status 0", "run it by hand and see what it says")
    return Check(WAKE, OK, asked, "done")


async def _login(host: SshHost) -> list[Check]:
    """Host key, login and login shell, with one login."""
    asked = f"{host.name}"
    try:
        noise = await host.noise()
    except NeedsOperator as error:
        return _refused(host, error)
    except CouldNotAsk as error:
        if host.host_key is None:
            advice = "check that login_node and port are right, and that this network reaches them"
            first = Check(HOST_KEY, COULD_NOT_ASK, asked, error.said, "an SSH server", advice)
            return [first, *_not_asked((LOGIN, SHELL), "the server was not reached")]
        advice = "make the account's start-up files quiet and let them run commands (`ssh HOST exec /bin/sh -s`)"
        return [
            Check(HOST_KEY, OK, asked, host.host_key),
            Check(LOGIN, OK, asked, "logged in"),
            Check(SHELL, COULD_NOT_ASK, f"{asked}, exec /bin/sh -s", error.said, "our script's own output", advice),
        ]
    return [
        Check(HOST_KEY, OK, asked, f"known: {host.host_key}"),
        Check(LOGIN, OK, asked, "logged in"),
        _shell(host, noise),
    ]


def _refused(host: SshHost, error: NeedsOperator) -> list[Check]:
    """Which question the operator must see to; a jump host is named where it was that one's."""
    if error.asked == HOST_KEY:
        found = f"{error.said}; {error.advice}" if error.said else error.advice
        changed = error.advice.startswith("STOP")
        advice = "do not log in before you know why" if changed else "compare the fingerprint with the site's own page"
        expected = "the key that is known" if changed else "a known host key"
        wrong = Check(HOST_KEY, WRONG, error.host, found, expected, advice)
        return [wrong, *_not_asked((LOGIN, SHELL), f"the {HOST_KEY} was not accepted")]
    wrong = Check(LOGIN, WRONG, error.host, error.said, "a login without a question", error.advice)
    before = Check(HOST_KEY, OK, error.host, "known") if error.asked == "log in" and host.reached else None
    first = [before] if before is not None else _not_asked((HOST_KEY,), "there was no login to begin with")
    return [*first, wrong, *_not_asked((SHELL,), "there was no login")]


def _shell(host: SshHost, noise: tuple[bytes, bytes]) -> Check:
    asked = f"{host.name}, exec /bin/sh -s"
    said = b" ... ".join(part.strip() for part in noise if part.strip()).decode("utf-8", "surrogateescape")
    if not said:
        return Check(SHELL, OK, asked, "quiet, output and exit status arrive whole")
    remark = "it is told from our output; other tools (SFTP, rsync) may trip over it"
    return Check(SHELL, OK, asked, f"its start-up files print: {said[:_MOST_NOISE]}", advice=remark)


def to_json(cluster: str, checks: tuple[Check, ...]) -> Mapping[str, object]:
    """The form of `gonogo cluster check --json`."""
    return {
        "cluster": cluster,
        "exit_status": exit_status(checks),
        "checks": [
            {
                "name": check.name,
                "answer": str(check.answer),
                "asked": check.asked,
                "expected": check.expected,
                "found": check.found,
                "advice": check.advice,
            }
            for check in checks
        ],
    }
