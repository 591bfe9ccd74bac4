"""What a training of Model-Optimizer must be told about its target, and what about the target it cannot work with.

The drafter does not take over the target's attention and feed-forward sizes by itself: what is not spelled out becomes
another size without a word. The target's configuration has them, so they are read from there.
"""

from __future__ import annotations

import os
from typing import Any, Dict, List, Mapping, NamedTuple, Optional, Tuple

ARCHITECTURE = "dflash.dflash_architecture_config"
_TEMPLATES = ("chat_template.jinja", "tokenizer_config.json")
_MARK = "{%"
_LARGEST_TEMPLATE = 16 << 20


class Wanted(NamedTuple):
    """How the drafter is to be trained.

    Attributes:
        algorithm: dflash or dflash2.
        block_size: Tokens of a block; the first one is known, so a block drafts one less.
        draft_tokens: Tokens that the server will draft a step.
        sequence_length: Tokens of a training text.
        mask_token_id: The token that stands for what is to be drafted.
        intermediate_size: Feed-forward size of the drafter, 0 for the target's.
        conv_group_size: Channels of a group of DFlash2's convolution.
    """

    algorithm: str
    block_size: int
    draft_tokens: int
    sequence_length: int
    mask_token_id: int
    intermediate_size: int
    conv_group_size: int


def plan(config: Mapping[str, Any], wanted: Wanted) -> Tuple[List[str], List[str]]:
    """What the training is told about its target.

    Args:
        config: `config.json` of the target.
        wanted: How the drafter is to be trained.

    Returns:
        Overrides, one `key=value` each, and what makes this training impossible.
    """
    inner = config.get("text_config")
    text: Mapping[str, Any] = inner if isinstance(inner, dict) else config
    problems: List[str] = []
    sizes: Dict[str, int] = {}
    for name in ("hidden_size", "vocab_size", "num_attention_heads"):
        _take(sizes, name, text.get(name), problems)
    heads = sizes.get("num_attention_heads")
    _take(sizes, "num_key_value_heads", text.get("num_key_value_heads", heads), problems)
    whole = heads is not None and "hidden_size" in sizes and sizes["hidden_size"] % heads == 0
    _take(
        sizes,
        "head_dim",
        text.get("head_dim") or (sizes["hidden_size"] // heads if heads and whole else None),
        problems,
    )
    given = wanted.intermediate_size or text.get("intermediate_size")
    _take(sizes, "intermediate_size", given, problems, "; set drafter_intermediate_size")
    problems += _fits(sizes, wanted)
    names = ("num_attention_heads", "num_key_value_heads", "head_dim", "intermediate_size")
    return [f"{ARCHITECTURE}.{name}={sizes[name]}" for name in names if name in sizes], problems


def _take(sizes: Dict[str, int], name: str, value: Any, problems: List[str], advice: str = "") -> None:
    if type(value) is int and value > 0:
        sizes[name] = value
    else:
        problems.append(f"the target's config.json: {name}: expected a whole number above 0, found {value!r}{advice}")


def _fits(sizes: Mapping[str, int], wanted: Wanted) -> List[str]:
    problems = []
    if wanted.sequence_length % wanted.block_size:
        problems.append(
            f"sequence_length {wanted.sequence_length} is no multiple of block_size {wanted.block_size}: override one"
        )
    if wanted.draft_tokens >= wanted.block_size:
        most = wanted.block_size - 1
        problems.append(f"draft_tokens {wanted.draft_tokens}: a block of {wanted.block_size} drafts at most {most}")
    vocabulary = sizes.get("vocab_size")
    if vocabulary is not None and not 0 <= wanted.mask_token_id < vocabulary:
        problems.append(f"mask_token_id {wanted.mask_token_id} is no token of the target, which has {vocabulary}")
    hidden = sizes.get("hidden_size")
    if wanted.algorithm == "dflash2" and hidden is not None and hidden % wanted.conv_group_size:
        problems.append(f"conv_group_size {wanted.conv_group_size} does not divide the target's hidden_size {hidden}")
    return problems


def template_problem(target: str, template: str) -> Optional[str]:
    """Why a loss on answers alone cannot be computed; None when nothing is in its way.

    The chat template has to say which tokens are the assistant's ({% generation %}). With one that does not, no token
    counts, and the loss means nothing.

    Args:
        target: Folder of the target.
        template: A template of one's own; empty for the target's.
    """
    places = [template] if template else [os.path.join(target, name) for name in _TEMPLATES]
    read = []
    for place in places:
        text = _text(place)
        if text is not None and _marks_answers(text):
            return None
        if text is not None:
            read.append(place)
    if template and not read:
        return f"chat_template {template} cannot be read"
    said = f"{' and '.join(read)} without" if read else "the target has no chat template with"
    return (
        f"{said} {_MARK} generation %}}, so no token would count towards the loss: "
        "give a chat_template that has it, or set answer_only_loss to false"
    )


def _text(path: str) -> Optional[str]:
    try:
        with open(path, encoding="utf-8", errors="replace") as stream:
            return stream.read(_LARGEST_TEMPLATE)
    except OSError:
        return None


def _marks_answers(text: str) -> bool:
    # A tag may trim the blanks around it: {%- ... -%}.
    return any(tag.split("%}")[0].strip(" \t\r\n+-") == "generation" for tag in text.split(_MARK)[1:])
