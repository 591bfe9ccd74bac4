"""SGLang, ATOM and llama.cpp, as far as their servers tell what they are and what they drafted; and the table of all.

Each reads what its own engine shows, in that engine's definitions. What cannot be told is not made up: an account that
contradicts itself is `Unreadable`, and one that is not there is `NoAnswer`.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Dict, Optional, Type

if TYPE_CHECKING:
    from backends.payloads.counters import Counters, Unreadable, reached, read_counters
    from backends.payloads.endpoint import Asked, Completion, Endpoint, NoAnswer, failed, whole_ids
    from backends.payloads.engines import Engine, Facts, Vllm, metrics, openai_completion
else:
    from counters import Counters, Unreadable, reached, read_counters
    from endpoint import Asked, Completion, Endpoint, NoAnswer, failed, whole_ids
    from engines import Engine, Facts, Vllm, metrics, openai_completion

_SGLANG = (
    *("model_path", "revision", "dtype", "quantization", "tp_size", "dp_size", "pp_size", "attention_backend"),
    *("context_length", "max_running_requests", "random_seed", "disable_cuda_graph", "disable_radix_cache"),
)
_SGLANG_SPECULATION = (
    *("speculative_algorithm", "speculative_num_steps", "speculative_eagle_topk", "speculative_num_draft_tokens"),
    *("speculative_draft_model_path", "speculative_draft_model_revision"),
)
_SIMULATED = "SGLANG_SIMULATE_ACC"


class Sglang(Engine):
    """SGLang.

    Its own counters are of no use for one measurement: `avg_spec_accept_length` is a mean since the start or the last
    flush. But each answer of `/generate` counts its own verification steps, so counts are sums over answers. Of a tree
    (top-k above 1) the depth counts as the number of draft tokens, since only one branch can be taken.
    """

    name = "sglang"
    counts = False

    def __init__(self) -> None:
        self._depth = 0
        self._tree = False

    def facts(self, endpoint: Endpoint, model: Dict[str, Any]) -> Facts:
        """See the base class."""
        info = _sglang_info(endpoint)
        algorithm = info.get("speculative_algorithm")
        steps, topk = info.get("speculative_num_steps"), info.get("speculative_eagle_topk")
        verified = info.get("speculative_num_draft_tokens")  # the root among them
        self._tree = type(topk) is int and topk > 1
        depth = steps if self._tree else (verified - 1 if type(verified) is int else None)
        self._depth = depth if algorithm is not None and type(depth) is int and depth > 0 else 0
        drafter = info.get("speculative_draft_model_path")
        settings = {name: info[name] for name in _SGLANG if name in info}
        speculation = {name: info[name] for name in _SGLANG_SPECULATION if name in info}
        faked = _simulated(info)
        if faked:
            speculation["environment"] = faked
        return Facts(
            speculates=algorithm is not None,
            shown_by=f"/server_info says speculative_algorithm {algorithm}",
            drafter=os.path.abspath(drafter) if isinstance(drafter, str) and algorithm is not None else None,
            tells_drafter=True,
            draft_tokens=self._depth,
            version=str(info.get("version") or ""),
            settings={**settings, "version": info.get("version")},
            speculation=speculation if algorithm is not None else {},
        )

    def counters(self, endpoint: Endpoint) -> Optional[Counters]:
        """None: see the class."""
        return None

    def complete(self, endpoint: Endpoint, asked: Asked) -> Completion:
        """See the base class."""
        sampling: Dict[str, Any] = {
            "temperature": 0,
            "max_new_tokens": asked.max_tokens,
            "ignore_eos": asked.ignore_eos,
        }
        if asked.stop:
            sampling["stop"] = list(asked.stop)
        key = "text" if isinstance(asked.prompt, str) else "input_ids"
        answer = endpoint.post("/generate", {key: asked.prompt, "sampling_params": sampling, "stream": False})
        if isinstance(answer, str):
            return failed(answer)
        meta = answer.get("meta_info")
        if not isinstance(meta, dict):
            return failed(f"an answer without meta_info: {str(answer)[:300]}")
        finish = meta.get("finish_reason")
        reason = str(finish.get("type", "")) if isinstance(finish, dict) else ""
        if reason not in ("stop", "length"):
            return failed(f"finish_reason {finish}")
        ids, tokens = whole_ids(answer.get("output_ids")), meta.get("completion_tokens")
        try:
            counters = self._counted(meta) if self._depth else None
        except Unreadable as error:
            return failed(str(error))
        text = answer.get("text")
        count = tokens if type(tokens) is int else len(ids)
        return Completion(ids, reason, None, text if isinstance(text, str) else "", count, counters)

    def _counted(self, meta: Dict[str, Any]) -> Counters:
        """Counts of one answer. Its histogram has in place n the steps in which n draft tokens were right."""
        drafts = _count(meta, "spec_verify_ct")
        accepted = _count(meta, "spec_num_correct_drafts", "spec_accepted_drafts")
        histogram = next(
            (meta[name] for name in ("spec_correct_drafts_histogram", "spec_accept_histogram") if name in meta), None
        )
        if not isinstance(histogram, list) or not all(type(one) is int and one >= 0 for one in histogram):
            raise Unreadable("meta_info has no spec_correct_drafts_histogram of counts")
        taken = sum(place * steps for place, steps in enumerate(histogram))
        if sum(histogram) != drafts or taken != accepted:
            raise Unreadable(f"meta_info counts {drafts} steps and {accepted} right drafts; its histogram: {histogram}")
        proposed = drafts * self._depth
        if not self._tree and "spec_num_proposed_drafts" in meta:
            proposed = _count(meta, "spec_num_proposed_drafts")
        return Counters(drafts, proposed, accepted, reached(histogram))


def _sglang_info(endpoint: Endpoint) -> Dict[str, Any]:
    try:
        info = endpoint.document("/server_info")
    except NoAnswer:
        info = endpoint.document("/get_server_info")  # its older name
    decode = info.get("decode")
    if not isinstance(decode, list) or not decode or "model_path" in info:
        return info
    servers = [server for server in decode if isinstance(server, dict)]
    if len(servers) != len(decode) or any(_told(server) != _told(servers[0]) for server in servers):
        raise NoAnswer("GET /server_info: the decode servers are not set up alike")
    return servers[0]


def _told(server: Dict[str, Any]) -> Dict[str, Any]:
    return {name: server.get(name) for name in (*_SGLANG, *_SGLANG_SPECULATION)}


def _simulated(info: Dict[str, Any]) -> Dict[str, str]:
    """Variables that make acceptance up. The others may hold keys, and are nobody's business."""
    found = {}
    states = info.get("internal_states")
    for state in states if isinstance(states, list) else []:
        variables = state.get("env_vars") if isinstance(state, dict) else None
        for name, value in (variables if isinstance(variables, dict) else {}).items():
            if str(name).startswith(_SIMULATED) and value is not None:
                found[str(name)] = str(value)
    return found


class Atom(Engine):
    """ATOM's own server.

    It tells nothing of its drafter, and its answers hold no token ids: it can be measured for acceptance and accuracy,
    not for equal outputs. Place n of the `distribution` in its statistics counts the steps that took n draft tokens.
    """

    name = "atom"
    token_ids = False
    flags = ("--num-speculative-tokens",)

    def facts(self, endpoint: Endpoint, model: Dict[str, Any]) -> Facts:
        """See the base class."""
        counters = self.counters(endpoint)
        told = None
        if counters is not None and counters.drafts:
            told, rest = divmod(counters.draft_tokens, counters.drafts)
            if rest:
                raise Unreadable(f"/debug/mtp_stats: {counters.draft_tokens} draft tokens in {counters.drafts} steps")
        return Facts(
            speculates=counters is not None,
            shown_by=f"/debug/mtp_stats says enabled: {str(counters is not None).lower()}",
            draft_tokens=told,
            settings={"model": model.get("id")},
            speculation={},
        )

    def counters(self, endpoint: Endpoint) -> Optional[Counters]:
        """See the base class."""
        try:
            told = endpoint.document("/debug/mtp_stats")
        except NoAnswer as error:
            raise Unreadable(str(error)) from None
        if told.get("enabled") is not True:
            return None
        distribution = told.get("distribution")
        if not isinstance(distribution, dict) or not all(place.isdigit() for place in distribution):
            raise Unreadable("/debug/mtp_stats has no distribution by number of taken tokens")
        steps = {int(place): _count(distribution, place) for place in distribution}
        histogram = [steps.get(place, 0) for place in range(max(steps, default=0) + 1)]
        accepted, proposed = _count(told, "total_accepted_tokens"), _count(told, "total_draft_tokens")
        taken = sum(place * count for place, count in steps.items())
        if taken != accepted:
            raise Unreadable(f"/debug/mtp_stats counts {accepted} accepted tokens, and its distribution {taken}")
        return Counters(sum(histogram), proposed, accepted, reached(histogram))

    def complete(self, endpoint: Endpoint, asked: Asked) -> Completion:
        """See the base class."""
        if not isinstance(asked.prompt, str):
            return failed("ATOM takes prompts as text, not as token ids")
        body: Dict[str, Any] = {"model": asked.model, "prompt": asked.prompt, "max_tokens": asked.max_tokens}
        body.update(temperature=0, ignore_eos=asked.ignore_eos)
        return openai_completion(endpoint, asked, body)


class LlamaCpp(Engine):
    """llama.cpp's server. One whose drafter has another vocabulary is healthy, answers, and does not draft."""

    name = "llama.cpp"
    flags = ("--spec-draft-n-max", "--draft-max", "--draft-n", "--draft")

    def facts(self, endpoint: Endpoint, model: Dict[str, Any]) -> Facts:
        """See the base class."""
        slots, props = endpoint.json("/slots"), endpoint.document("/props")
        if not isinstance(slots, list) or not slots or not all(isinstance(slot, dict) for slot in slots):
            raise NoAnswer("GET /slots: no list of slots")
        idle = [str(slot.get("id")) for slot in slots if slot.get("speculative") is not True]
        if idle and len(idle) < len(slots):
            raise NoAnswer(f"GET /slots: slot {', '.join(idle)} does not speculate, the others do")
        settings = {"model": props.get("model_path"), "ftype": props.get("model_ftype"), "slots": len(slots)}
        settings.update(n_ctx=slots[0].get("n_ctx"), version=props.get("build_info"))
        return Facts(
            speculates=not idle,
            shown_by=f"/slots says speculative: {str(not idle).lower()}",
            version=str(props.get("build_info") or ""),
            settings=settings,
            speculation={},
        )

    def counters(self, endpoint: Endpoint) -> Optional[Counters]:
        """See the base class."""
        return read_counters(metrics(endpoint, "; start llama-server with --metrics"), "llamacpp")

    def complete(self, endpoint: Endpoint, asked: Asked) -> Completion:
        """By its own path: the one of OpenAI tells no token ids."""
        body: Dict[str, Any] = {"prompt": asked.prompt, "n_predict": asked.max_tokens, "temperature": 0, "seed": 0}
        # A prompt that is kept from before would make the next one look fast.
        body.update(ignore_eos=asked.ignore_eos, return_tokens=True, cache_prompt=False, stop=list(asked.stop))
        answer = endpoint.post("/completion", body)
        if isinstance(answer, str):
            return failed(answer)
        reason = {"limit": "length", "eos": "stop", "word": "stop"}.get(str(answer.get("stop_type")), "")
        ids, text = whole_ids(answer.get("tokens")), answer.get("content")
        if not ids or not reason:
            return failed(f"an answer without tokens, or with stop_type {answer.get('stop_type')}")
        return Completion(ids, reason, None, text if isinstance(text, str) else "", len(ids))


def _count(told: Dict[str, Any], *names: str) -> int:
    for name in names:
        value = told.get(name)
        if type(value) is int and value >= 0:
            return value
    raise Unreadable(f"no count {names[0]}: {told.get(names[0])!r}")


ENGINES: Dict[str, Type[Engine]] = {one.name: one for one in (Vllm, Sglang, Atom, LlamaCpp)}
