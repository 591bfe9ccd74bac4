"""Starts the server that is to be measured, and makes sure that it is the one that was asked for.

Whatever goes wrong is a `Stop` with one word for the stage at which it happened; the words are part of the result
files: port_in_use, server_died, server_timeout, model_mismatch, drafter_inactive, generation_failed,
metrics_unreadable, architecture_unsupported, engine_unsuited, unexpected; and done.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import posixpath
import re
import socket
import time
from typing import TYPE_CHECKING, Any, Dict, List, Mapping, NamedTuple, Optional, Tuple

if TYPE_CHECKING:
    from backends.payloads.counters import Counters, Unreadable
    from backends.payloads.endpoint import NoAnswer
    from backends.payloads.engines import Client, Facts
    from backends.payloads.other_engines import ENGINES
    from backends.payloads.processes import Process
else:
    from counters import Unreadable
    from endpoint import NoAnswer
    from engines import Client
    from other_engines import ENGINES
    from processes import Process

HOST = "127.0.0.1"
_POLL = 0.1
_DYING_S = 5.0
_UNSUPPORTED = re.compile(r"[Mm]odel architectures? .{0,200}? (?:is|are) not supported|[Uu]nsupported architecture")


class Stop(Exception):
    """The measurement cannot go on.

    Attributes:
        stage: One of the words above.
        detail: Why, for people.
    """

    def __init__(self, stage: str, detail: str) -> None:
        super().__init__(f"{stage}: {detail}")
        self.stage = stage
        self.detail = detail


class Wanted(NamedTuple):
    """The server that was asked for; no drafter (an absolute path) and 0 draft tokens for the target alone.

    Attributes:
        model: Name of the model.
        drafter: Folder of the drafter.
        draft_tokens: Tokens that it drafts a step.
        settings: Further settings that the server must report, by its own names for them.
    """

    model: str
    drafter: Optional[str] = None
    draft_tokens: int = 0
    settings: Tuple[Tuple[str, Any], ...] = ()


class Identity(NamedTuple):
    """What a server says of itself.

    Attributes:
        model: Name of the model.
        drafter: Folder of the drafter; None when it has none, or does not tell.
        draft_tokens: Tokens that it drafts a step, 0 without a drafter.
        version: Its version, empty when it does not tell.
        settings: How it is set up, without anything about a drafter.
        speculation: How it is set up to draft, by its own names.
    """

    model: str
    drafter: Optional[str]
    draft_tokens: int
    version: str
    settings: Dict[str, Any]
    speculation: Dict[str, Any]


class Server:
    """A server, started here or found running.

    Attributes:
        base_url: Where it answers.
        engine: What kind of server it is.
        command: How it was started; empty when it was found.
        timeout_s: How long it had to become healthy.
        started_in_s: How long it took; None while it is not healthy.
    """

    def __init__(
        self, base_url: str, command: str = "", process: Optional[Process] = None, engine: str = "vllm"
    ) -> None:
        self.base_url = base_url
        self.engine = ENGINES[engine]()
        self.command = command
        self.timeout_s = 0.0
        self.started_in_s: Optional[float] = None
        self._process = process

    @classmethod
    def start(cls, command: str, log: str, port: int = 0, engine: str = "vllm") -> Server:
        """Start a server.

        Args:
            command: For a shell; `{port}` stands for the port.
            log: File for what it says.
            port: The port that it must take; 0 to take a free one.
            engine: What kind of server it is, one of `ENGINES`.

        Raises:
            Stop: When the port is taken, or the command cannot be started.
        """
        port = port or free_port()
        if not port_is_free(port):
            raise Stop("port_in_use", f"port {port} is taken before the server is started")
        command = command.replace("{port}", str(port))
        try:
            return cls(f"http://{HOST}:{port}", command, Process(command, log), engine)
        except OSError as error:
            raise Stop("server_died", f"the server cannot be started: {error}") from None

    def wait(self, timeout: float) -> None:
        """Wait until it is healthy.

        Args:
            timeout: How long, in seconds.

        Raises:
            Stop: When it ends, or is not healthy in time.
        """
        self.timeout_s = timeout
        begun = time.monotonic()
        # Not longer for one answer than for all: a server that accepts and says nothing is not healthy either.
        endpoint = self.endpoint(timeout=min(timeout, 10.0))
        while not endpoint.healthy():
            self.check_alive()
            if time.monotonic() - begun > timeout:
                raise Stop("server_timeout", f"not healthy within {timeout:g} s")
            time.sleep(_POLL)
        endpoint.close()
        self.check_alive()
        self.started_in_s = time.monotonic() - begun

    def check_alive(self) -> None:
        """Make sure that it still runs.

        Raises:
            Stop: When it ended.
        """
        status = None if self._process is None else self._process.exit_status()
        if status is None:
            return
        said = self.log_tail()
        if _UNSUPPORTED.search(said):
            raise Stop("architecture_unsupported", f"the engine does not know this model (exit status {status})")
        port = int(self.base_url.rsplit(":", 1)[1])
        if not port_is_free(port):
            raise Stop("port_in_use", f"the server ended (exit status {status}), and somebody else has port {port}")
        raise Stop("server_died", f"the server ended with exit status {status}: {_last_line(said)}")

    def check_alive_after_failure(self) -> None:
        """Make sure that it still runs after a request failed.

        A server that dies closes its connections before it has ended, so one that is not healthy either gets a
        moment to do so. One that answers costs nothing.

        Raises:
            Stop: When it ended.
        """
        endpoint = self.endpoint(timeout=1.0)
        begun = time.monotonic()
        while self._process is not None and self._process.exit_status() is None and not endpoint.healthy():
            if time.monotonic() - begun > _DYING_S:
                break
            time.sleep(_POLL)
        endpoint.close()
        self.check_alive()

    def endpoint(self, timeout: float = 600.0) -> Client:
        """A new connection to it; `timeout` is for one answer, in seconds."""
        return Client(self.base_url, self.engine, timeout)

    def counters(self) -> Optional[Counters]:
        """A reading of what it drafted; None where each answer tells what was drafted for it.

        Raises:
            Unreadable: When it cannot be had.
        """
        endpoint = self.endpoint()
        counters = endpoint.counters()
        endpoint.close()
        if counters is None and self.engine.counts:
            raise Unreadable("the counters of speculative decoding are gone")
        return counters

    def arguments(self) -> List[str]:
        """Arguments of the processes that were started for it."""
        return [] if self._process is None else self._process.arguments()

    def log_tail(self) -> str:
        """The last lines that it said."""
        return "" if self._process is None else self._process.tail()

    def stop(self) -> None:
        """End it, if it was started here."""
        if self._process is not None:
            self._process.stop()

    def to_json(self) -> Dict[str, Any]:
        """What result files say about it."""
        status = None if self._process is None else self._process.exit_status()
        told = {
            "base_url": self.base_url,
            "engine": self.engine.name,
            "command": self.command,
            "exit_status": status,
            "log_tail": self.log_tail(),
        }
        return {**told, "started_in_s": self.started_in_s, "timeout_s": self.timeout_s}


def add_server_options(parser: argparse.ArgumentParser) -> None:
    """The options of every probe about what it measures."""
    parser.add_argument("--engine", choices=sorted(ENGINES), default="vllm", help="kind of server; default vllm")
    parser.add_argument(
        "--require",
        action="append",
        default=[],
        type=required,
        metavar="NAME=VALUE",
        help="a setting that the server must report, by its own name, as JSON: disable_cuda_graph=false",
    )


def needs_ids(engine: str) -> None:
    """Make sure that outputs can be compared: by token ids, never as text.

    Raises:
        Stop: When the engine's answers hold none.
    """
    if not ENGINES[engine].token_ids:
        raise Stop("engine_unsuited", f"{engine} tells no token ids, by which outputs are compared")


def required(text: str) -> Tuple[str, Any]:
    """A setting from the command line: its name, and its value as JSON, or as text where it is no JSON."""
    name, equals, value = text.partition("=")
    if not name or not equals:
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME=VALUE")
    try:
        return name, json.loads(value)
    except ValueError:
        return name, value


def timeout_from(variable: str, default: float) -> float:
    """A time limit in seconds: what an environment variable says, or the default where it is not set.

    Raises:
        Stop: When it is no number of seconds above 0.
    """
    text = os.environ.get(variable, "")
    try:
        seconds = float(text) if text else default
    except ValueError:
        seconds = math.nan
    if not 0 < seconds < math.inf:
        raise Stop("unexpected", f"the environment variable {variable} is {text!r}, not a number of seconds")
    return seconds


def free_port() -> int:
    """A port that nobody listens on right now."""
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        port: int = probe.getsockname()[1]
        return port


def port_is_free(port: int) -> bool:
    """Whether a server could listen on a port."""
    with socket.socket() as probe:
        # As servers do: connections that were closed a moment ago do not count.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
            probe.listen(1)
        except OSError:
            return False
    return True


def identify(server: Server, wanted: Wanted) -> Identity:
    """Ask a server what it is, and make sure that it is what was asked for.

    Raises:
        Stop: When it is something else, does not draft, or does not say.
    """
    endpoint = server.endpoint()
    try:
        served = {str(model.get("id")): model for model in endpoint.models()}
        if wanted.model not in served:
            raise Stop("model_mismatch", f"served is {', '.join(sorted(served)) or 'nothing'}, not {wanted.model}")
        facts = endpoint.facts(served[wanted.model])
    except NoAnswer as error:
        server.check_alive_after_failure()
        raise Stop("model_mismatch", str(error)) from None
    except Unreadable as error:
        server.check_alive_after_failure()
        raise Stop("metrics_unreadable", str(error)) from None
    finally:
        endpoint.close()
    words = server.arguments()
    drafter = facts.drafter if facts.tells_drafter else _drafter_in(words, wanted.drafter)
    draft_tokens = _draft_tokens(words, server.engine.flags) if facts.draft_tokens is None else facts.draft_tokens
    speculation = facts.speculation
    identity = Identity(wanted.model, drafter, draft_tokens or 0, facts.version, facts.settings, speculation)
    _compare(identity, wanted, facts)
    _compare_settings({**facts.settings, **speculation}, wanted)
    return identity


def _compare(identity: Identity, wanted: Wanted, facts: Facts) -> None:
    if not wanted.draft_tokens:
        if facts.speculates or facts.drafter is not None:
            raise Stop("model_mismatch", f"the target alone was asked for, but this server drafts: {facts.shown_by}")
        return
    if not facts.speculates:
        raise Stop("drafter_inactive", f"the server is healthy and does not draft: {facts.shown_by}")
    if not identity.draft_tokens:
        raise Stop("model_mismatch", f"nothing tells that it drafts {wanted.draft_tokens} tokens a step")
    if identity.draft_tokens != wanted.draft_tokens:
        raise Stop("model_mismatch", f"it drafts {identity.draft_tokens} tokens a step, not {wanted.draft_tokens}")
    if identity.drafter is None:
        raise Stop("model_mismatch", f"nothing tells that its drafter is {wanted.drafter}")
    if posixpath.normpath(identity.drafter) != posixpath.normpath(wanted.drafter or ""):
        raise Stop("model_mismatch", f"its drafter is {identity.drafter}, not {wanted.drafter}")


def _compare_settings(reported: Mapping[str, Any], wanted: Wanted) -> None:
    for name, value in wanted.settings:
        if name not in reported:
            raise Stop("model_mismatch", f"the server does not report {name}, which must be {value!r}")
        said = reported[name]
        if type(said) is not type(value) or said != value:
            raise Stop("model_mismatch", f"the server reports {name} = {said!r}, not {value!r}")


def _drafter_in(words: List[str], drafter: Optional[str]) -> Optional[str]:
    """The drafter, where it stands in the arguments of the server."""
    for word in words if drafter is not None else []:
        # On its own, after an equals sign, or as a text in JSON.
        paths = {os.path.abspath(word), os.path.abspath(word.partition("=")[2])}
        if drafter in paths or f'"{drafter}"' in word:
            return drafter
    return None


def _draft_tokens(words: List[str], flags: Tuple[str, ...]) -> Optional[int]:
    """The draft tokens a step, where the arguments of the server state them."""
    for word, following in zip(words, [*words[1:], ""]):
        name, equals, value = word.partition("=")
        value = value if equals else following
        if name in flags and value.isdigit():
            return int(value)
    return None


def _last_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1][:300] if lines else "it said nothing"
