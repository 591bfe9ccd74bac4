"""What differs from engine to engine: how a server tells what it is, what it drafted, and how it is asked.

| engine     | says that it drafts       | drafter, draft tokens        | counts                           | token ids |
| ---------- | ------------------------- | ---------------------------- | -------------------------------- | --------- |
| vllm       | counters in /metrics      | /server_info, else arguments | /metrics                         | yes       |
| sglang     | /server_info              | /server_info                 | with each answer of /generate    | yes       |
| atom       | /debug/mtp_stats          | arguments                    | /debug/mtp_stats                 | no        |
| llama.cpp  | /slots                    | arguments                    | /metrics, when it has --metrics  | yes       |

"Arguments" are those of the processes that were started here; of a server that was found running nobody knows them. An
engine that does not tell something says so: nothing is taken from the fact that a server answers.
"""

from __future__ import annotations

import abc
import os
from typing import TYPE_CHECKING, Any, Dict, NamedTuple, Optional, Tuple

if TYPE_CHECKING:
    from backends.payloads.counters import Counters, Unreadable, read_counters
    from backends.payloads.endpoint import Asked, Completion, Endpoint, NoAnswer, failed, whole_ids
else:
    from counters import Counters, Unreadable, read_counters
    from endpoint import Asked, Completion, Endpoint, NoAnswer, failed, whole_ids


class Facts(NamedTuple):
    """What a server says of itself.

    Attributes:
        speculates: Whether it drafts.
        shown_by: What says so, or that it does not, for people.
        settings: How it is set up, without anything about a drafter.
        speculation: How it is set up to draft, by its own names.
        drafter: Folder or name of the drafter; None when it has none, or does not tell.
        tells_drafter: Whether it would tell.
        draft_tokens: Tokens that it drafts a step; None when it does not tell.
        version: Its version, empty when it does not tell.
    """

    speculates: bool
    shown_by: str
    settings: Dict[str, Any]
    speculation: Dict[str, Any]
    drafter: Optional[str] = None
    tells_drafter: bool = False
    draft_tokens: Optional[int] = None
    version: str = ""


class Engine(abc.ABC):
    """An engine; one object for each server, shared by all connections to it.

    Attributes:
        name: As it is asked for.
        token_ids: Whether its answers hold token ids.
        counts: Whether the server counts what it drafts; else each answer says it for itself.
        flags: Options of its command line that state the draft tokens a step.
    """

    name = ""
    token_ids = True
    counts = True
    flags: Tuple[str, ...] = ()

    @abc.abstractmethod
    def facts(self, endpoint: Endpoint, model: Dict[str, Any]) -> Facts:
        """What a server says of itself.

        Args:
            endpoint: A connection to it.
            model: What `/v1/models` says of the model.

        Raises:
            NoAnswer: When it does not say what every such server says.
            Unreadable: When its counters cannot be read.
        """

    @abc.abstractmethod
    def counters(self, endpoint: Endpoint) -> Optional[Counters]:
        """What the server has drafted since it started; None when it has no such counters.

        Raises:
            Unreadable: When it does not answer, or not in its format.
        """

    @abc.abstractmethod
    def complete(self, endpoint: Endpoint, asked: Asked) -> Completion:
        """Let the server go on with a text."""


class Client(Endpoint):
    """A connection to a server whose engine is known; each thread needs its own.

    Attributes:
        engine: The engine.
    """

    def __init__(self, base_url: str, engine: Engine, timeout: float = 600.0) -> None:
        super().__init__(base_url, timeout)
        self.engine = engine

    def facts(self, model: Dict[str, Any]) -> Facts:
        """See `Engine.facts`."""
        return self.engine.facts(self, model)

    def counters(self) -> Optional[Counters]:
        """See `Engine.counters`."""
        return self.engine.counters(self)

    def complete(self, asked: Asked) -> Completion:
        """See `Engine.complete`."""
        return self.engine.complete(self, asked)


_SETTINGS = {
    "model_config": ("model", "dtype", "max_model_len", "quantization", "enforce_eager", "seed"),
    "cache_config": ("enable_prefix_caching", "cache_dtype", "block_size", "gpu_memory_utilization"),
    "parallel_config": ("tensor_parallel_size", "pipeline_parallel_size", "data_parallel_size"),
    "scheduler_config": ("max_num_seqs", "max_num_batched_tokens", "enable_chunked_prefill"),
    "compilation_config": ("mode", "cudagraph_mode"),
}
"""Settings of a server that must not differ between two arms, by the section in which vLLM shows them."""

_SPECULATION = ("method", "rejection_sample_method", "synthetic_acceptance_length", "draft_sample_method")


class Vllm(Engine):
    """vLLM, and servers with its paths. `/server_info` is there in development mode only."""

    name = "vllm"

    def facts(self, endpoint: Endpoint, model: Dict[str, Any]) -> Facts:
        """See the base class."""
        counters = self.counters(endpoint)
        info = _server_info(endpoint)
        version = _version(endpoint)
        drafter, speculation = None, {}
        if info is not None:
            config = info["vllm_config"].get("speculative_config")
            config = config if isinstance(config, dict) else {}
            path = config.get("model")
            drafter = os.path.abspath(path) if isinstance(path, str) else None
            speculation = {name: config[name] for name in _SPECULATION if config.get(name) is not None}
        return Facts(
            speculates=counters is not None,
            shown_by=f"it has {'' if counters is not None else 'no '}counters of speculative decoding",
            drafter=drafter,
            tells_drafter=info is not None,
            draft_tokens=0 if counters is None else len(counters.per_position),
            version=version,
            settings=_settings(model, info, version),
            speculation=speculation,
        )

    def counters(self, endpoint: Endpoint) -> Optional[Counters]:
        """See the base class."""
        return read_counters(metrics(endpoint), "vllm")

    def complete(self, endpoint: Endpoint, asked: Asked) -> Completion:
        """See the base class."""
        body: Dict[str, Any] = {"model": asked.model, "prompt": asked.prompt, "max_tokens": asked.max_tokens}
        body.update(temperature=0, seed=0, ignore_eos=asked.ignore_eos, return_token_ids=True)
        return openai_completion(endpoint, asked, body)


def metrics(endpoint: Endpoint, advice: str = "") -> str:
    """The text of `/metrics`.

    Args:
        endpoint: A connection.
        advice: What to do when there is none.

    Raises:
        Unreadable: When there is none.
    """
    try:
        status, data = endpoint.ask("GET", "/metrics")
    except NoAnswer as error:
        raise Unreadable(str(error)) from None
    if status != 200:
        raise Unreadable(f"GET /metrics: HTTP {status}{advice}")
    return data.decode("utf-8", "replace")


def openai_completion(endpoint: Endpoint, asked: Asked, body: Dict[str, Any]) -> Completion:
    """Ask by the path of OpenAI's completions."""
    if asked.stop:
        body["stop"] = list(asked.stop)
    answer = endpoint.post("/v1/completions", body)
    if isinstance(answer, str):
        return failed(answer)
    try:
        choice = answer["choices"][0]
        text, ids, reason = choice.get("text"), whole_ids(choice.get("token_ids")), choice.get("finish_reason")
        stated = (answer.get("usage") or {}).get("completion_tokens")
    except (KeyError, IndexError, TypeError, AttributeError):
        return failed(f"an answer that is no completion: {str(answer)[:300]}")
    tokens = len(ids) or (stated if type(stated) is int else 0)
    return Completion(ids, str(reason or ""), None, text if isinstance(text, str) else "", tokens)


def _server_info(endpoint: Endpoint) -> Optional[Dict[str, Any]]:
    """How the server is set up; None when it does not tell."""
    try:
        info = endpoint.document("/server_info?config_format=json")
    except NoAnswer:
        return None
    return info if isinstance(info.get("vllm_config"), dict) else None


def _version(endpoint: Endpoint) -> str:
    try:
        return str(endpoint.document("/version").get("version", ""))
    except NoAnswer:
        return ""


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
