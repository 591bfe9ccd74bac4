"""SGLang's `GET /server_info`: the settings that the server resolved, and what its ranks have counted.

`internal_states` has one entry for each data-parallel rank (those of the decode servers, where prefill is apart).
`avg_spec_accept_length` counts the bonus token, over all traffic since the start or the last cache flush, warm-up
included. It is absent when speculation is off and just as well when fewer steps than one log interval were verified.
Simulated acceptance is set by environment variables, which the file shows only when the server was told to show them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Final

from gates.reading import ResultBytes
from gates.results.documents import Loaded
from gates.results.fields import Fields, Reading, open_object
from gates.results.meaning import Bonus, Meaning, Number, Scope, Unit
from gates.results.speculation import remark_on_one

LENGTH: Final = Meaning(
    "acceptance length of one rank",
    Unit.TOKENS_PER_STEP,
    Scope.SERVER_OR_FLUSH,
    "tokens accepted, the bonus token among them / verify steps",
    Bonus.WITH,
)
THROUGHPUT: Final = Meaning("output throughput of one rank when it last logged", Unit.TOKENS_PER_SECOND, Scope.MOMENT)
TP_SIZE: Final = Meaning("GPUs of a tensor-parallel group", Unit.COUNT, Scope.SETTING)
DP_SIZE: Final = Meaning("data-parallel ranks", Unit.COUNT, Scope.SETTING)
STEPS: Final = Meaning("draft steps, the depth of the tree", Unit.STEPS, Scope.SETTING)
TOPK: Final = Meaning("branches of the draft tree", Unit.COUNT, Scope.SETTING)
DRAFT_TOKENS: Final = Meaning(
    "tokens verified a step, root of the tree included (steps + 1 for a chain)", Unit.TOKENS, Scope.SETTING
)
CONTEXT: Final = Meaning("longest context", Unit.TOKENS, Scope.SETTING)

_SIMULATED: Final = "SGLANG_SIMULATE_ACC"
_KEYS: Final = ("internal_states", "speculative_algorithm", "model_path", "scheduler_info", "launch_command", "tp_size")


@dataclass(frozen=True, slots=True)
class RankState:
    """What one data-parallel rank has counted.

    Attributes:
        field: Where its state is.
        length: None where the rank states none, for whatever reason.
        throughput: None where it has not logged any.
    """

    field: str
    length: Number | None
    throughput: Number | None


@dataclass(frozen=True, slots=True)
class ServerFacts:
    """Settings and states of a server.

    Attributes:
        algorithm: `speculative_algorithm`; None is no speculation.
        cuda_graph_disabled: None where the file does not say, which is not false.
    """

    model: str | None
    revision: str | None
    version: str | None
    algorithm: str | None
    draft_model: str | None
    draft_revision: str | None
    attention_backend: str | None
    dtype: str | None
    cuda_graph_disabled: bool | None
    tp_size: Number | None
    dp_size: Number | None
    steps: Number | None
    topk: Number | None
    draft_tokens: Number | None
    context: Number | None
    states: tuple[RankState, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SglangServer(Reading):
    """A whole answer."""

    WRITTEN_BY: ClassVar[str] = "SGLang /server_info"

    facts: ServerFacts


def looks(loaded: Loaded) -> bool:
    """Whether the shape is this one."""
    if len(loaded.parts) != 1 or "total_output_tokens" in loaded.parts[0].root:
        return False
    root = loaded.parts[0].root
    decode = root.get("decode")
    inner = decode[0] if isinstance(decode, list) and decode and isinstance(decode[0], dict) else {}
    return sum(key in root or key in inner for key in _KEYS) >= 3


def read(file: ResultBytes) -> SglangServer:
    """Read the file.

    Raises:
        ResultError: When it has no states, or a field is not what it must be.
    """
    part, fields = open_object(file)
    facts = read_facts(fields)
    return SglangServer(file=file.name, remarks=fields.notes.close((part,)), facts=facts)


def read_facts(fields: Fields, *, need: bool = True) -> ServerFacts:
    """Read settings and states, also where the whole answer is part of another file, which may do without states."""
    decode = fields.parts("decode")
    apart = bool(decode) and not fields.has("model_path")
    settings = decode[0] if apart else fields
    holders = (fields,) if fields.has("internal_states") or not decode else decode
    states = [_state(state) for holder in holders for state in holder.parts("internal_states", need=need)]
    facts = ServerFacts(
        model=settings.text("model_path"),
        revision=settings.text("revision"),
        version=settings.text("version"),
        algorithm=settings.text("speculative_algorithm"),
        draft_model=settings.text("speculative_draft_model_path"),
        draft_revision=settings.text("speculative_draft_model_revision"),
        attention_backend=settings.text("attention_backend"),
        dtype=settings.text("dtype"),
        cuda_graph_disabled=settings.flag("disable_cuda_graph"),
        tp_size=settings.count("tp_size", TP_SIZE, low=1),
        dp_size=settings.count("dp_size", DP_SIZE, low=1),
        steps=settings.count("speculative_num_steps", STEPS),
        topk=settings.count("speculative_eagle_topk", TOPK),
        draft_tokens=settings.count("speculative_num_draft_tokens", DRAFT_TOKENS),
        context=settings.count("context_length", CONTEXT),
        states=tuple(states),
    )
    _remark(settings, facts)
    return facts


def _state(fields: Fields) -> RankState:
    variables = fields.part("env_vars")
    for name, value in (variables.values if variables is not None else {}).items():
        if name.startswith(_SIMULATED) and value not in (None, "", "-1", -1):
            fields.notes.fault(fields.at("env_vars"), f"{name} is set: acceptance is simulated")
    length = fields.number("avg_spec_accept_length", LENGTH)
    if length is not None and length.value < 1:
        fields.notes.fault(length.field, "below 1: a length that counts the bonus token cannot be")
    elif length is not None:
        remark_on_one(fields.notes, length)
    return RankState(fields.path, length, fields.number("last_gen_throughput", THROUGHPUT))


def _remark(settings: Fields, facts: ServerFacts) -> None:
    notes = settings.notes
    stated = [state.length for state in facts.states if state.length is not None]
    if not facts.states and settings.has("internal_states"):
        notes.fault(settings.at("internal_states"), "is empty: no rank states anything")
    ranks = None if facts.dp_size is None else facts.dp_size.value
    if facts.states and ranks is not None and len(facts.states) < ranks:
        words = f"{len(facts.states)} of {ranks:g} ranks state anything: a rank whose drafter is dead may be missing"
        notes.fault(settings.at("internal_states"), words)
    if facts.algorithm is None:
        notes.remark(settings.at("speculative_algorithm"), "none: this server does not speculate")
        for length in stated:
            notes.fault(length.field, "a length from a server that states no speculative_algorithm")
        return
    for state in facts.states:
        if state.length is None:
            words = "no avg_spec_accept_length: fewer verify steps than a log interval, or speculation is off here"
            notes.remark(state.field, words)
    if facts.steps is not None:
        most = facts.steps.value + 1
        for length in stated:
            if length.value > most * (1 + 1e-6):
                notes.fault(length.field, f"{length.value:g} tokens a step, of at most {most:g} with this depth")
    if facts.cuda_graph_disabled is None:
        notes.remark(settings.at("disable_cuda_graph"), "not stated: whether graphs are on cannot be told")
    elif facts.cuda_graph_disabled:
        notes.remark(settings.at("disable_cuda_graph"), "true: timings are those of a server without graphs")
