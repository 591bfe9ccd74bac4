"""config.json of a drafter: what a DFlash or DFlash2 export must state, and what must agree with its target.

The fields are those that NVIDIA Model-Optimizer exports and vLLM reads. A wrong one is seldom an error message: a rope
base of another size, one layer index too many or the architecture name of the older head all load, serve, and draft
noise. Drafters use the target's embedding and output head, so hidden size and vocabulary must be the target's own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from gates.header import agree
from gates.record import Record, is_number
from gates.verdict import FailureClass

ARCHITECTURES: Final[Mapping[str, str]] = {"dflash": "DFlashDraftModel", "dflash2": "DFlash2DraftModel"}
"""For each algorithm the architecture that an engine chooses the model by."""

_DFLASH2_SIZES: Final = ("conv_kernel_size", "conv_group_size", "selector_rank", "selector_top_k")
_SMALL: Final = 1e-6


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a drafter's configuration is compared with; None leaves a comparison out."""

    algorithm: str | None = None
    draft_tokens: int | None = None


def judge_config(config: Record, wanted: Wanted, target: Record | None) -> str | None:
    """Check a drafter's configuration, and against its target's where there is one.

    Returns:
        The algorithm that the architecture names, None when it is none of ours.
    """
    for key in ("hidden_size", "vocab_size", "num_hidden_layers"):
        config.integer(key, minimum=1)
    algorithm = _judge_architecture(config, wanted.algorithm)
    dflash = config.record("dflash_config")
    if dflash is not None:
        _judge_projector(dflash, algorithm)
        _judge_block(config, dflash, wanted.draft_tokens)
        _judge_tokens(config, dflash)
        _judge_layers(config, dflash, target)
    thetas = rope_thetas(config.values)
    config.check("rope_theta", len(thetas) == 1, sorted(thetas), "exactly one number", "rope_theta")
    tied = config.values.get("tie_word_embeddings", False)
    config.check("not_tied", tied is False, tied, "false: both are the target's", "tie_word_embeddings")
    if target is not None:
        _judge_target(config, target, thetas)
    return algorithm


def rope_thetas(config: Mapping[str, Any]) -> frozenset[float]:
    """Every rope base that a model's configuration states.

    Since version 5, transformers writes it inside `rope_parameters`, for some models one for each kind of layer; a
    model with several parts keeps that of its text part in `text_config`.
    """
    found: set[float] = set()
    for part in (config, config.get("text_config")):
        if not isinstance(part, dict):
            continue
        places = [part, part.get("rope_parameters"), part.get("rope_scaling")]
        if isinstance(places[1], dict):
            places += places[1].values()
        for place in places:
            theta = place.get("rope_theta") if isinstance(place, dict) else None
            if is_number(theta) and theta > 0:
                found.add(float(theta))
    return frozenset(found)


def text_part(target: Record, key: str) -> int | None:
    """A size of the target's text model: at the top, or in `text_config` of a model with several parts."""
    inner = target.values.get("text_config")
    if key not in target.values and isinstance(inner, dict):
        part = target.record("text_config")
        return None if part is None else part.integer(key, minimum=1)
    return target.integer(key, minimum=1)


def _judge_architecture(config: Record, algorithm: str | None) -> str | None:
    names = config.texts("architectures")
    if names is None:
        return None
    known = {name: word for word, name in ARCHITECTURES.items()}
    stated = known.get(names[0]) if len(names) == 1 else None
    supported = " or ".join(ARCHITECTURES.values())
    cls = FailureClass.EXPORT_INVALID if "DFlash" in names[0] else FailureClass.MODEL_UNSUPPORTED
    config.check("architecture", stated is not None, names, f"one of {supported}", "architectures", cls=cls)
    if stated is not None and algorithm is not None and algorithm in ARCHITECTURES:
        wanted = ARCHITECTURES[algorithm]
        # An engine loads a DFlash2 head under the older name too, and silently leaves out what is new in it.
        same = stated == algorithm
        config.check("architecture_of_algorithm", same, names[0], f"= {wanted} for {algorithm}", "architectures")
    return stated


def _judge_projector(dflash: Record, algorithm: str | None) -> None:
    projector = dflash.text("projector_type", optional=True)
    if algorithm == "dflash2":
        for key in _DFLASH2_SIZES:
            dflash.integer(key, minimum=1)
        # The sizes of selector and convolution say it as well; where the word is there, it must be the right one.
        right = projector in (None, "dflash2")
        dflash.check("projector_type", right, projector, "= dflash2", "projector_type")
    elif algorithm == "dflash":
        right = projector in (None, "dflash")
        dflash.check("projector_type", right, projector, "none of another algorithm", "projector_type")


def _judge_block(config: Record, dflash: Record, draft_tokens: int | None) -> None:
    """A block holds one token that is known already, so it drafts one token less than its size."""
    places = [place for place in (config, dflash) if place.has("block_size")] or [config]
    sizes = [(place, place.integer("block_size", minimum=2)) for place in places]
    for place, size in sizes[1:]:
        if size is not None and sizes[0][1] is not None:
            place.check("block_sizes", size == sizes[0][1], size, f"= {sizes[0][1]} at the top", "block_size")
    place, size = sizes[0]
    if size is not None and draft_tokens is not None:
        place.check("block_size", draft_tokens <= size - 1, size, f">= {draft_tokens} draft tokens + 1", "block_size")


def _judge_tokens(config: Record, dflash: Record) -> None:
    mask = dflash.integer("mask_token_id")
    vocabulary = config.values.get("vocab_size")
    if mask is not None and is_number(vocabulary):
        dflash.check("mask_token_id", mask < vocabulary, mask, f"< vocab_size {vocabulary}", "mask_token_id")


def _judge_layers(config: Record, dflash: Record, target: Record | None) -> None:
    """The layers of the target whose hidden states the drafter reads."""
    layers = dflash.integers("target_layer_ids")
    stated = config.integer("num_target_layers", minimum=1, optional=target is not None)
    actual = None if target is None else text_part(target, "num_hidden_layers")
    if stated is not None and actual is not None:
        same = stated == actual
        config.check("num_target_layers", same, stated, f"= {actual}, num_hidden_layers of target", "num_target_layers")
    count = stated if stated is not None else actual
    if layers is None or count is None:
        return
    dflash.check("target_layers_within", max(layers) < count, max(layers), f"< {count} layers", "target_layer_ids")
    once = len(set(layers)) == len(layers)
    dflash.check("target_layers_once", once, list(layers), "each layer once", "target_layer_ids")


def _judge_target(config: Record, target: Record, thetas: frozenset[float]) -> None:
    for key in ("vocab_size", "hidden_size"):
        own, theirs = config.values.get(key), text_part(target, key)
        if is_number(own) and theirs is not None:
            config.check(f"{key}_of_target", own == theirs, own, f"= {theirs} of the target", key)
    known = rope_thetas(target.values)
    target.check("target_rope_theta", bool(known), sorted(known), "at least one number", "rope_theta")
    if known and len(thetas) == 1:
        (own,) = thetas
        near = any(agree(own, theirs, _SMALL) for theirs in known)
        config.check(
            "rope_theta_of_target", near, own, f"= {', '.join(f'{one:g}' for one in sorted(known))}", "rope_theta"
        )
