"""Starts the server that is to be measured, and makes sure that it is the one that was asked for.

Whatever goes wrong is a `Stop` with one word for the stage at which it happened; the words are part of the result
files: port_in_use, server_died, server_timeout, model_mismatch, drafter_inactive, generation_failed,
metrics_unreadable, architecture_unsupported, unexpected; and done.
"""

from __future__ import annotations

import math
import os
import posixpath
import re
import socket
import time
from typing import TYPE_CHECKING, Any, Dict, List, NamedTuple, Optional

if TYPE_CHECKING:
    from backends.payloads.counters import Unreadable
    from backends.payloads.endpoint import Endpoint, NoAnswer
    from backends.payloads.processes import Process
else:
    from counters import Unreadable
    from endpoint import Endpoint, NoAnswer
    from processes import Process

HOST = "127.0.0.1"
_POLL = 0.1
_DYING_S = 5.0
_UNSUPPORTED = re.compile(r"[Mm]odel architectures? .{0,200}? (?:is|are) not supported|[Uu]nsupported architecture")

_SETTINGS = {
    "model_config": ("model", "dtype", "max_model_len", "quantization", "enforce_eager", "seed"),
    "cache_config": ("enable_prefix_caching", "cache_dtype", "block_size", "gpu_memory_utilization"),
    "parallel_config": ("tensor_parallel_size", "pipeline_parallel_size", "data_parallel_size"),
    "scheduler_config": ("max_num_seqs", "max_num_batched_tokens", "enable_chunked_prefill"),
    "compilation_config": ("mode", "cudagraph_mode"),
}
"""Settings of a server that must not differ between two arms, by the section in which vLLM shows them."""


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
    """The server that was asked for; no drafter (an absolute path) and 0 draft tokens for the target alone."""

    model: str
    drafter: Optional[str] = None
    draft_tokens: int = 0


class Identity(NamedTuple):
    """What a server says of itself.

    Attributes:
        model: Name of the model.
        drafter: Folder of the drafter; None when it has none, or does not tell.
        draft_tokens: Tokens that it drafts a step, 0 without a drafter.
        version: Its version, empty when it does not tell.
        settings: How it is set up, without anything about a drafter.
    """

    model: str
    drafter: Optional[str]
    draft_tokens: int
    version: str
    settings: Dict[str, Any]


class Server:
    """A server, started here or found running.

    Attributes:
        base_url: Where it answers.
        command: How it was started; empty when it was found.
        timeout_s: How long it had to become healthy.
        started_in_s: How long it took; None while it is not healthy.
    """

    def __init__(self, base_url: str, command: str = "", process: Optional[Process] = None) -> None:
        self.base_url = base_url
        self.command = command
        self.timeout_s = 0.0
        self.started_in_s: Optional[float] = None
        self._process = process

    @classmethod
    def start(cls, command: str, log: str, port: int = 0) -> Server:
        """Start a server.

        Args:
            command: For a shell; `{port}` stands for the port.
            log: File for what it says.
            port: The port that it must take; 0 to take a free one.

        Raises:
            Stop: When the port is taken, or the command cannot be started.
        """
        port = port or free_port()
        if not port_is_free(port):
            raise Stop("port_in_use", f"port {port} is taken before the server is started")
        command = command.replace("{port}", str(port))
        try:
            return cls(f"http://{HOST}:{port}", command, Process(command, log))
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

    def endpoint(self, timeout: float = 600.0) -> Endpoint:
        """A new connection to it; `timeout` is for one answer, in seconds."""
        return Endpoint(self.base_url, timeout)

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
        told = {"base_url": self.base_url, "command": self.command, "exit_status": status, "log_tail": self.log_tail()}
        return {**told, "started_in_s": self.started_in_s, "timeout_s": self.timeout_s}


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
        counters = endpoint.counters()
    except NoAnswer as error:
        server.check_alive_after_failure()
        raise Stop("model_mismatch", str(error)) from None
    except Unreadable as error:
        server.check_alive_after_failure()
        raise Stop("metrics_unreadable", str(error)) from None
    info, version = endpoint.server_info(), endpoint.version()
    endpoint.close()
    drafts = 0 if counters is None else len(counters.per_position)
    settings = _settings(served[wanted.model], info, version)
    identity = Identity(wanted.model, _drafter(server, info, wanted), drafts, version, settings)
    _compare(identity, wanted, counters is not None)
    return identity


def _compare(identity: Identity, wanted: Wanted, speculates: bool) -> None:
    if not wanted.draft_tokens:
        if speculates or identity.drafter is not None:
            raise Stop("model_mismatch", "the target alone was asked for, but this server drafts")
        return
    if not speculates:
        raise Stop("drafter_inactive", "the server is healthy, and has no counters of speculative decoding")
    if identity.draft_tokens != wanted.draft_tokens:
        raise Stop("model_mismatch", f"it drafts {identity.draft_tokens} tokens a step, not {wanted.draft_tokens}")
    if identity.drafter is None:
        raise Stop("model_mismatch", f"nothing tells that its drafter is {wanted.drafter}")
    if posixpath.normpath(identity.drafter) != posixpath.normpath(wanted.drafter or ""):
        raise Stop("model_mismatch", f"its drafter is {identity.drafter}, not {wanted.drafter}")


def _drafter(server: Server, info: Optional[Dict[str, Any]], wanted: Wanted) -> Optional[str]:
    """The drafter that is served: as the server tells, or else as it stands in the arguments it was started with."""
    if info is not None:
        speculative = info["vllm_config"].get("speculative_config")
        model = speculative.get("model") if isinstance(speculative, dict) else None
        return os.path.abspath(model) if isinstance(model, str) else None
    if wanted.drafter is not None:
        for word in server.arguments():
            # On its own, after an equals sign, or as a text in JSON.
            paths = {os.path.abspath(word), os.path.abspath(word.partition("=")[2])}
            if wanted.drafter in paths or f'"{wanted.drafter}"' in word:
                return wanted.drafter
    return None


def _settings(model: Dict[str, Any], info: Optional[Dict[str, Any]], version: str) -> Dict[str, Any]:
    settings = {"model": model.get("root"), "max_model_len": model.get("max_model_len"), "version": version}
    if info is None:
        return settings
    for section, names in _SETTINGS.items():
        values = info["vllm_config"].get(section)
        if isinstance(values, dict):
            settings.update({name: values[name] for name in names if name in values})
    variables = info.get("system_env", {}).get("env_vars") if isinstance(info.get("system_env"), dict) else None
    for line in str(variables or "").splitlines():
        name, _, value = line.partition("=")
        if name.endswith("_NUM_THREADS"):
            settings[name] = value
    return settings


def _last_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1][:300] if lines else "it said nothing"
