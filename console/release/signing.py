"""Signed decisions: what an operator decided, in bytes that only their SSH key can have signed.

A signature is in OpenSSH's own format, made by the SSH agent and checked by `ssh-keygen -Y verify` against a file of
allowed signers, which lies outside the run folder. The signed bytes are the canonical decision with the run's id, so a
signature for one job, run, answer or time is none for another. Whoever checks has three answers: a good signature of
this operator, surely not that, or nobody could say; only the first lets a decision count where one is asked for.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import subprocess
import tempfile
import threading
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from console.release import folder
from console.release.canonical import canonical
from console.release.queue import APPROVED, EXPIRED, Decision, Proposal, QueueError, first_of, load
from console.release.rules import Rules, rules_of, unsigned

if TYPE_CHECKING:
    from console.settings import Signing

NAMESPACE = "gonogo-decision"
"""Of the signatures (`ssh-keygen -n`), so that one that the key made for anything else is none of these."""

AGENT_SECONDS = 60.0
"""For so long the agent is waited for; a key with a button needs somebody's hand."""

CHECK_SECONDS = 10.0


class SigningError(QueueError):
    """There is no signature, so there is no decision. One line: who was asked, what it said, what to do."""


def message(decision: Decision) -> bytes:
    """The bytes that are signed: the whole decision but for its signature."""
    return canonical(replace(decision, signature="").to_json())


class Signer:
    """Signs with one key, which an SSH agent holds.

    Args:
        key: The public key's file.
        environ: Where SSH_AUTH_SOCK stands.
        timeout_s: How long the agent is waited for, seconds.
    """

    def __init__(self, key: Path, environ: Mapping[str, str] = os.environ, *, timeout_s: float = AGENT_SECONDS) -> None:
        self.key = key
        self._environ = environ
        self._timeout_s = timeout_s
        self._guard = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None

    def touches(self) -> bool:
        """Whether the key is one of hardware, which waits for a touch."""
        with contextlib.suppress(OSError):
            return self.key.read_bytes().startswith((b"sk-", b"webauthn-sk-"))
        return False

    def sign(self, data: bytes) -> str:
        """Sign bytes; waits for the agent, so never call it where nothing may wait.

        Returns:
            The signature, armoured.

        Raises:
            SigningError: When there is no agent, it refuses, or does not answer in time.
        """
        where = self._environ.get("SSH_AUTH_SOCK", "")
        if not where:
            raise SigningError("signing: there is no SSH agent (SSH_AUTH_SOCK is not set); start one and add the key")
        # -U: the agent's key or none. A key file must not be read in its place, nor its passphrase asked for.
        command = ["ssh-keygen", "-Y", "sign", "-U", "-f", str(self.key), "-n", NAMESPACE]
        status, out, said = self._run(command, data)
        text = out.decode("ascii", "replace")
        if status != 0 or not text.startswith("-----BEGIN SSH SIGNATURE-----"):
            advice = "see what it holds with `ssh-add -l`; nothing was decided"
            raise SigningError(f"signing: the SSH agent made no signature with {self.key}: {said}; {advice}")
        return text

    def stop(self) -> None:
        """Wait for the agent no longer; the signature is refused then."""
        with self._guard:
            if self._process is not None:
                self._process.kill()

    def _run(self, command: list[str], data: bytes) -> tuple[int, bytes, str]:
        try:
            # A session of its own has no terminal, so nothing can ask for a passphrase behind the screen.
            with subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True,
                env={**self._environ, "LC_ALL": "C"},
            ) as process:  # fmt: skip
                with self._guard:
                    self._process = process
                try:
                    out, err = process.communicate(data, timeout=self._timeout_s)
                except subprocess.TimeoutExpired:
                    raise SigningError(
                        f"signing: the SSH agent did not answer within {self._timeout_s:g} s; nothing was decided"
                    ) from None
                finally:
                    process.kill()
                    with self._guard:
                        self._process = None
        except OSError as error:
            raise SigningError(f"signing: ssh-keygen cannot be started ({error.strerror}); install OpenSSH") from None
        return process.returncode, out, _said(err, process.returncode)


def _said(data: bytes, status: int) -> str:
    if status < 0:
        return "it was stopped"
    lines = [line for line in data.decode("utf-8", "replace").splitlines() if line.strip()]
    return "; ".join(lines[-2:])[-300:] or f"exit status {status}"


def signer_of(signing: Signing, environ: Mapping[str, str] = os.environ) -> Signer | None:
    """Who signs, by the settings; None where no key is named."""
    return None if signing.key is None else Signer(signing.key, environ)


def signed(run_dir: Path, decision: Decision, signer: Signer | None) -> Decision:
    """A decision with a signature, where one can be made or must be.

    Args:
        run_dir: The run folder.
        decision: What was decided.
        signer: Who signs; None where no key is set.

    Raises:
        QueueError: When there is no such job; a SigningError when no signature could be made, or when the release asks
            for one and no key is set.
    """
    try:
        state = folder.read_state(run_dir)
    except folder.FolderError as error:
        raise SigningError(f"{decision.id}: the rules of the release are not known: {error}") from None
    if signer is None:
        problem = unsigned(Rules() if state is None else rules_of(state.inputs), decision)
        if problem:
            raise SigningError(f"{decision.id}: {problem}; set key in [signing] of the settings (`gonogo config path`)")
        return decision
    run_id = state.run_id if state is not None else load(run_dir, decision.id).job().run_id
    whole = replace(decision, run_id=run_id)
    return replace(whole, signature=signer.sign(message(whole)))


@dataclass(frozen=True, slots=True)
class Checked:
    """What a check of a signature found.

    Attributes:
        good: True for a good one, False for one that surely is not, None where nobody could say.
        text: Whose it is, or what is wrong, in words.
    """

    good: bool | None
    text: str


@dataclass(frozen=True, slots=True)
class Signers:
    """Whose signatures count.

    Attributes:
        allowed: File of allowed signers, as in ssh-keygen(1); the operators' account names are its principals.
        revoked: File of keys that no longer count, None for none.
    """

    allowed: Path
    revoked: Path | None = None

    def check(self, decision: Decision, at: datetime) -> Checked:
        """Check a signed decision; starts a program, so never call it where nothing may wait.

        Args:
            decision: The decision.
            at: When it was taken: keys that were not valid then do not count.
        """
        for file in (self.allowed, *((self.revoked,) if self.revoked else ())):
            try:
                with open(file, "rb"):
                    pass
            except OSError as error:
                return Checked(None, f"{file} cannot be read ({error.strerror})")
        more = ["-f", str(self.allowed), "-I", decision.operator, f"-Overify-time={_local(at)}"]
        more += ["-r", str(self.revoked)] if self.revoked is not None else []
        return _ask("verify", decision, more)


def signers_of(signing: Signing) -> Signers | None:
    """Whose signatures count, by the settings; None where they name no file of allowed signers."""
    return None if signing.allowed_signers is None else Signers(signing.allowed_signers, signing.revoked)


def check_bytes(decision: Decision) -> Checked:
    """Whether a signature is one over these bytes, whoever made it."""
    return _ask("check-novalidate", decision, [])


def _ask(way: str, decision: Decision, more: list[str]) -> Checked:
    try:
        with tempfile.NamedTemporaryFile(prefix="gonogo-signature-") as file:
            file.write(decision.signature.encode("utf-8", "replace"))
            file.flush()
            done = subprocess.run(
                ["ssh-keygen", "-Y", way, "-n", NAMESPACE, "-s", file.name, *more],
                input=message(decision), capture_output=True, timeout=CHECK_SECONDS, start_new_session=True,
                check=False, env={**os.environ, "LC_ALL": "C"},
            )  # fmt: skip
    except subprocess.TimeoutExpired:
        return Checked(None, f"ssh-keygen did not answer within {CHECK_SECONDS:g} s")
    except (OSError, ValueError) as error:
        return Checked(None, f"ssh-keygen could not be asked ({error})")
    said = done.stdout.decode("utf-8", "replace").strip().splitlines()
    if done.returncode == 0 and said and said[-1].startswith("Good "):
        return Checked(True, said[-1].rpartition(" with ")[2])
    if done.returncode < 0:
        return Checked(None, f"ssh-keygen ended by signal {-done.returncode}")
    return Checked(False, _said(done.stderr + b"\n" + done.stdout, done.returncode))


def _local(at: datetime) -> str:
    """A time as every ssh-keygen that can verify reads it; newer ones alone know UTC here."""
    return f"{at.astimezone(UTC).astimezone():%Y%m%d%H%M%S}"


def against_one(rules: Rules, signers: Signers | None, decision: Decision, run_id: str, at: datetime) -> str:
    """Why a decision does not count for its signature; empty when it may count.

    Args:
        rules: The rules of the release.
        signers: Whose signatures count, None where nothing says so.
        decision: The decision.
        run_id: The release.
        at: When it is taken.
    """
    if decision.decision == EXPIRED:
        return ""
    if not decision.signature:
        return unsigned(rules, decision)
    if decision.run_id != run_id:
        return f"{decision.operator} signed it for run {decision.run_id}, and this is {run_id}"
    if signers is None:
        why = "nobody can say whether the signature is theirs: allowed_signers in [signing] of the settings is not set"
        return why if rules.signed else ""
    found = signers.check(decision, at)
    if found.good:
        return ""
    word = "is not theirs" if found.good is False else "could not be checked"
    return f"the signature of {decision.operator} {word}: {found.text}"


async def against(
    rules: Rules, signers: Signers | None, proposal: Proposal, decision: Decision, run_id: str, at: datetime
) -> str:
    """Why a decision, or the first of two approvals before it, does not count for its signature; empty otherwise."""
    decisions = [decision]
    if rules.approvals > 1 and decision.decision == APPROVED:
        try:
            first = first_of(proposal)
        except QueueError as error:
            return str(error)
        decisions += [first] if first is not None else []
    for one in decisions:
        check = partial(against_one, rules, signers, one, run_id, at)
        # Only a signature needs a program, and so a thread.
        problem = await asyncio.to_thread(check) if one.signature else check()
        if problem:
            return problem
    return ""
