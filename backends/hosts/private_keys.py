"""Which keys of ours are shown to a host, and opening one that has a passphrase when somebody can type it."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import asyncssh

from backends.errors import NeedsOperator
from backends.hosts.operator import Operator, Prompt, Question, Secret, texts
from backends.hosts.ssh_target import SshTarget

LOG_IN = "log in"
"""What a NeedsOperator error of a login was about, beside the host key."""

LOGIN_ADVICE = "check user and ssh_key in clusters.yaml, or load the key into your agent"


async def shown_keys(target: SshTarget, operator: Operator | None) -> Mapping[str, Any]:
    """The keys, as parameters of asyncssh: the one that is named, those of the configuration, or the usual ones.

    Raises:
        NeedsOperator: When there is none that can be used.
    """
    agent = os.environ.get("SSH_AUTH_SOCK", "") if target.agent is None else target.agent
    options: dict[str, Any] = {"agent_path": agent or None}
    if target.key is not None:
        return await _named(target, target.key, options, operator)
    if not target.keys:
        return options
    opened: list[Any] = []
    locked: list[Path] = []
    for path in target.keys:
        try:
            asyncssh.read_private_key(str(path))
        except OSError:
            continue
        except asyncssh.KeyImportError:
            locked.append(path)
        else:
            opened.append(str(path))
    if not opened and locked and operator is not None and not await _agent_has(agent, locked, target.only_keys):
        opened += await _opened(target, locked[0], operator)
    if not opened and not agent:
        names = ", ".join(map(str, target.keys))
        said = f"no key that can be used: {names}{' (with a passphrase)' if locked else ''}"
        raise NeedsOperator(target.name, LOG_IN, said, LOGIN_ADVICE)
    options["client_keys"] = opened or None
    if target.only_keys:
        options["agent_identities"] = [str(public) for path in target.keys if (public := _public(path)).exists()]
        if not options["agent_identities"]:
            options.update(agent_path=None, agent_identities=None)
    return options


def _public(private: Path) -> Path:
    return private.with_name(f"{private.name}.pub")


async def _named(target: SshTarget, key: Path, options: dict[str, Any], operator: Operator | None) -> Mapping[str, Any]:
    try:
        asyncssh.read_private_key(str(key))
    except OSError as error:
        raise NeedsOperator(target.name, "read the key", str(error), LOGIN_ADVICE) from None
    except asyncssh.KeyImportError as error:
        agent = options["agent_path"] or ""
        locked = "assphrase" in str(error)
        if locked and operator is not None and not await _agent_has(agent, [key], True):
            return {"client_keys": await _opened(target, key, operator), "agent_path": None}
        if not locked or not agent:
            raise NeedsOperator(target.name, LOG_IN, f"{key}: {error}", LOGIN_ADVICE) from None
        # The agent may have this key, opened.
        return {**options, "agent_identities": [str(_public(key))] if _public(key).exists() else None}
    return {"client_keys": [str(key)], "agent_path": None}


async def _agent_has(agent: str, keys: list[Path], only: bool) -> bool:
    """Whether the agent holds one of these keys; without `only`, any key will do. An agent that is silent has none."""
    if not agent:
        return False
    try:
        async with asyncio.timeout(5.0):
            connection = await asyncssh.connect_agent(agent)
            try:
                held = {key.public_data for key in await connection.get_keys()}
            finally:
                connection.close()
    except (OSError, TimeoutError, asyncssh.Error, ValueError):
        return False
    wanted = set()
    for path in map(_public, keys):
        try:
            wanted.add(asyncssh.read_public_key(str(path)).public_data)
        except (OSError, asyncssh.KeyImportError):
            # Which key it is cannot be told without its passphrase, so the agent is tried with what it has.
            return bool(held)
    return bool(held & wanted) if only else bool(held)


async def _opened(target: SshTarget, path: Path, operator: Operator) -> list[Any]:
    """A key and its certificate, opened with a passphrase that is asked for once, before there is any connection."""
    prompts = (Prompt(f"Passphrase of {path}"),)
    answers = await operator.answers(Question(target.name, Secret.PASSPHRASE, prompts))
    found = None if answers is None else texts(answers, prompts)
    if found is None:
        raise NeedsOperator(target.name, LOG_IN, f"{path}: no passphrase was given", LOGIN_ADVICE)
    try:
        return list(await asyncio.to_thread(asyncssh.load_keypairs, [str(path)], found[0]))
    except (OSError, ValueError, asyncssh.Error):
        # The library's own words may say more than that, and nothing that was typed may be in ours.
        advice = f"go on with `gonogo resume` and type it again, or: {LOGIN_ADVICE}"
        raise NeedsOperator(target.name, LOG_IN, f"{path}: the passphrase does not open it", advice) from None
