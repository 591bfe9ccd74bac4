"""Drafters for the tiny target, built like DFlash and DFlash2: a whole block of tokens in one pass.

A block is the last known token (the anchor) and a mask token for each token to draft. The block attends to itself in
both directions and, as further keys and values, to what the target computed for the tokens before the anchor: outputs
of some of its layers, projected. Token embedding and output head are the target's own, so the export holds neither.

DFlash2 adds a convolution along the block, and a selector: at each position it takes the candidate that is likely there
and goes well with the token taken before.
"""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any, Dict, List, Mapping, NamedTuple, Tuple

import numpy as np

if TYPE_CHECKING:
    from backends.payloads import tiny_model, tiny_tensors
    from backends.payloads.results import write_by_rename
    from backends.payloads.tiny_model import Array, Ids
else:
    import tiny_model
    import tiny_tensors
    from results import write_by_rename

ARCHITECTURES = {"dflash": "DFlashDraftModel", "dflash2": "DFlash2DraftModel"}
WEIGHTS = "model.safetensors"
_EXTRA = ("conv_kernel_size", "conv_group_size", "selector_rank", "selector_top_k")


class Shape(NamedTuple):
    """Sizes of a drafter, named as in its `config.json` and in the `dflash_config` there.

    `conv_kernel_size`, `conv_group_size`, `selector_rank` and `selector_top_k` are 0 without convolution and selector.
    """

    block_size: int
    hidden_size: int
    num_hidden_layers: int
    num_attention_heads: int
    head_dim: int
    intermediate_size: int
    vocab_size: int
    rope_theta: float
    num_target_layers: int
    mask_token_id: int
    target_layer_ids: Tuple[int, ...]
    swa_window_size: int
    conv_kernel_size: int = 0
    conv_group_size: int = 0
    selector_rank: int = 0
    selector_top_k: int = 0

    @property
    def algorithm(self) -> str:
        """`dflash` or `dflash2`."""
        return "dflash2" if self.selector_rank else "dflash"


def shape_for(algorithm: str, target: Mapping[str, Any], block_size: int) -> Shape:
    """The sizes of a drafter for a target.

    Args:
        algorithm: `dflash` or `dflash2`.
        target: The target's `config.json`.
        block_size: Tokens of a block: one more than it drafts.

    Raises:
        KeyError: When the target's configuration lacks something, or the algorithm is another one.
    """
    layers = target["num_hidden_layers"]
    extra = {
        "dflash": (0, 0, 0, 0),
        # The vocabulary is small enough for all of it to be candidates at every position.
        "dflash2": (2, 16, 32, target["vocab_size"]),
    }
    return Shape(
        block_size=block_size,
        hidden_size=target["hidden_size"],
        num_hidden_layers=1,
        num_attention_heads=4,
        head_dim=32,
        intermediate_size=2 * target["hidden_size"],
        vocab_size=target["vocab_size"],
        rope_theta=target["rope_theta"],
        num_target_layers=layers,
        mask_token_id=target["mask_token_id"],
        target_layer_ids=target_layers(layers),
        swa_window_size=6,
        **dict(zip(_EXTRA, extra[algorithm])),
    )


def target_layers(count: int) -> Tuple[int, ...]:
    """Which of a target's layers a drafter reads, from 0: one from its first half, and the last."""
    return (count // 3, count - 1)


def config_of(shape: Shape) -> Dict[str, Any]:
    """`config.json` of a drafter, with the keys that Model-Optimizer writes and engines read."""
    dflash: Dict[str, Any] = {
        "mask_token_id": shape.mask_token_id,
        "target_layer_ids": list(shape.target_layer_ids),
        "use_swa": True,
        "swa_window_size": shape.swa_window_size,
    }
    if shape.algorithm == "dflash2":
        sizes = {name: getattr(shape, name) for name in (*_EXTRA, "block_size")}
        dflash.update(sizes, projector_type="dflash2", is_causal=False)
    else:
        dflash["causal"] = False
    same = ("block_size", "hidden_size", "num_hidden_layers", "num_attention_heads", "head_dim", "intermediate_size")
    return {
        "architectures": [ARCHITECTURES[shape.algorithm]],
        "model_type": "qwen3",
        **{name: getattr(shape, name) for name in same},
        "num_key_value_heads": shape.num_attention_heads,
        "vocab_size": shape.vocab_size,
        "rope_theta": shape.rope_theta,
        "rope_scaling": None,
        "num_target_layers": shape.num_target_layers,
        "layer_types": ["sliding_attention"] * shape.num_hidden_layers,
        "rms_norm_eps": tiny_model.RMS_NORM_EPS,
        "hidden_act": "silu",
        "tie_word_embeddings": False,
        "torch_dtype": "float32",
        "dflash_config": dflash,
    }


def shape_of(config: Mapping[str, Any]) -> Shape:
    """The sizes in a drafter's configuration.

    Raises:
        KeyError: When one is missing.
    """
    dflash = config["dflash_config"]
    own = {name: dflash[name] for name in Shape._fields if name in dflash and name not in config}
    own["target_layer_ids"] = tuple(dflash["target_layer_ids"])
    return Shape(**{**{name: config[name] for name in Shape._fields if name in config}, **own})


def export(folder: str, shape: Shape, tensors: tiny_tensors.Tensors) -> None:
    """Write a drafter: `config.json` and `model.safetensors`.

    Raises:
        OSError: When it cannot be written.
    """
    os.makedirs(folder, exist_ok=True)
    text = json.dumps(config_of(shape), indent=1) + "\n"
    write_by_rename(os.path.join(folder, tiny_model.CONFIG), text.encode("ascii"))
    tiny_tensors.save(os.path.join(folder, WEIGHTS), tensors)


class _Layer(NamedTuple):
    """Weights of one layer, (in, out), with the norms before them folded in; scales of queries and keys."""

    qkv: Array
    context: Array
    norms: Array
    output: Array
    gate_up: Array
    down: Array


class Drafter:
    """A loaded drafter at work on a number of sequences, each with a slot as in the target's cache.

    Attributes:
        shape: Its sizes.
    """

    def __init__(
        self, shape: Shape, tensors: tiny_tensors.Tensors, target: tiny_model.Target, slots: int, positions: int
    ) -> None:
        self.shape = shape
        self._embedding = target.embedding
        self._head: Array = np.ascontiguousarray((target.head * tensors["norm.weight"]).T)
        self._features: Array = np.ascontiguousarray(tensors["fc.weight"].T)
        self._layers = [_layer(tensors, i) for i in range(shape.num_hidden_layers)]
        self._rotations = tiny_model.rotations(positions, shape.head_dim, shape.rope_theta)
        cache = (len(self._layers), slots, positions, 2, shape.num_attention_heads, shape.head_dim)
        self._context: Array = np.zeros(cache, np.float32)
        self._taps: List[Array] = []
        if shape.selector_rank:
            taps = tensors["conv.weight"]
            self._taps = [tiny_model.block_diagonal(taps[:, :, tap]) for tap in range(shape.conv_kernel_size)]
            # How well two tokens go together depends on nothing else: computed once for all pairs.
            previous = target.embedding @ tensors["candidate_selector.previous_proj.weight"].T
            self._pairs: Array = previous @ (target.head @ tensors["candidate_selector.candidate_proj.weight"].T).T

    @classmethod
    def load(cls, folder: str, target: tiny_model.Target, slots: int, positions: int) -> Drafter:
        """Load an export.

        Args:
            folder: The export.
            target: The target that it drafts for.
            slots: Most sequences at a time.
            positions: Longest sequence, in tokens.

        Raises:
            OSError: When a file cannot be read.
            ValueError: When a file is not what it should be, or is for another target.
            KeyError: When a size or tensor is missing.
        """
        shape = shape_of(tiny_model.read_config(folder, *ARCHITECTURES.values()))
        own = (shape.vocab_size, shape.hidden_size, shape.num_target_layers)
        theirs = (target.sizes.vocab_size, target.sizes.hidden_size, target.sizes.num_hidden_layers)
        if own != theirs:
            raise ValueError(
                f"{folder}: vocabulary, hidden size and layers of its target are {own}, served is {theirs}"
            )
        return cls(shape, tiny_tensors.load(os.path.join(folder, WEIGHTS)), target, slots, positions)

    def observe(self, features: Array, start: Ids, first_slot: int = 0) -> None:
        """Take in what the target computed for some tokens of n sequences.

        Args:
            features: Shape (n, rows, layers x hidden).
            start: Shape (n,): position of each sequence's first token among them.
            first_slot: The sequences have this slot and the following ones.
        """
        count, rows, _ = features.shape
        shape = self.shape
        positions = (start[:, None] + np.arange(rows)).ravel()
        slots = np.repeat(np.arange(first_slot, first_slot + count), rows)
        context = tiny_model.rms(features.reshape(count * rows, -1) @ self._features)
        for i, layer in enumerate(self._layers):
            both = (context @ layer.context).reshape(count * rows, 2, shape.num_attention_heads, shape.head_dim)
            keys = tiny_model.rms(both[:, 0]) * layer.norms[1]
            both[:, 0] = tiny_model.rotate(keys, self._rotations[positions][:, None])
            self._context[i, slots, positions] = both

    def move(self, source: int, destination: int, length: int) -> None:
        """Copy the first positions of a slot to another one."""
        self._context[:, destination, :length] = self._context[:, source, :length]

    def draft(self, anchors: Ids, at: Ids, count: int) -> Ids:
        """Draft the next tokens of the sequences in the first n slots.

        Args:
            anchors: Shape (n,): the last known token of each sequence.
            at: Shape (n,): its position; everything before it was observed.
            count: How many tokens, less than the block size.

        Returns:
            Token ids, shape (n, count).
        """
        tokens = np.full((len(anchors), self.shape.block_size), self.shape.mask_token_id)
        tokens[:, 0] = anchors
        x = self._embedding[tokens]
        window = at[:, None] + np.arange(-self.shape.swa_window_size, 0)
        turns = self._rotations[at[:, None] + np.arange(self.shape.block_size)][:, :, None, None]
        for i, layer in enumerate(self._layers):
            x = x + self._attend(i, tiny_model.rms(x) @ layer.qkv, window, turns) @ layer.output
            hidden = tiny_model.gated(tiny_model.rms(x) @ layer.gate_up, self.shape.intermediate_size)
            x = x + hidden @ layer.down
        if self._taps:
            x = x + tiny_model.convolve(x, self._taps)
        logits: Array = tiny_model.rms(x[:, 1 : count + 1]) @ self._head
        return self._select(anchors, logits) if self._taps else logits.argmax(-1)

    def _attend(self, i: int, qkv: Array, window: Ids, turns: tiny_model.Rotations) -> Array:
        """Attention of a block to its context and itself; returns (n, block, heads x head_dim)."""
        shape, layer = self.shape, self._layers[i]
        count, block, _ = qkv.shape
        qkv = qkv.reshape(count, block, 3, shape.num_attention_heads, shape.head_dim)
        qk = tiny_model.rotate(tiny_model.rms(qkv[:, :, :2]) * layer.norms, turns)
        context = self._context[i, np.arange(count)[:, None], np.maximum(window, 0)]
        keys = np.concatenate([context[:, :, 0], qk[:, :, 1]], axis=1).transpose(0, 2, 3, 1)
        values = np.concatenate([context[:, :, 1], qkv[:, :, 2]], axis=1).transpose(0, 2, 1, 3)
        weights = np.exp(qk[:, :, 0].transpose(0, 2, 1, 3) @ keys)
        # A young sequence has less context than the window: what would lie before its first token counts for nothing.
        weights[..., : window.shape[1]] *= (window >= 0)[:, None, None]
        weights /= weights.sum(-1, keepdims=True)
        mixed: Array = weights @ values
        return mixed.transpose(0, 2, 1, 3).reshape(count, block, -1)

    def _select(self, anchors: Ids, logits: Array) -> Ids:
        """At each position the likeliest token, given the one chosen before it."""
        chosen = np.empty(logits.shape[:2], np.int64)
        before = anchors
        for position in range(logits.shape[1]):
            before = chosen[:, position] = (logits[:, position] + self._pairs[before]).argmax(-1)
        return chosen


def _layer(tensors: Mapping[str, Array], i: int) -> _Layer:
    attention, mlp = f"layers.{i}.self_attn.", f"layers.{i}.mlp."
    query, key, value = (tensors[f"{attention}{name}_proj.weight"] for name in "qkv")
    scales = [tensors[f"{attention}{name}_norm.weight"] for name in "qk"]
    before, between = (tensors[f"layers.{i}.{name}_layernorm.weight"] for name in ("input", "post_attention"))
    gate_up = np.concatenate([tensors[f"{mlp}{name}_proj.weight"] for name in ("gate", "up")]) * between
    return _Layer(
        qkv=np.ascontiguousarray((np.concatenate([query, key, value]) * before).T),
        context=np.ascontiguousarray((np.concatenate([key, value]) * tensors["hidden_norm.weight"]).T),
        norms=np.stack([scales[0] / np.float32(np.sqrt(len(scales[0]))), scales[1]])[:, None],
        output=np.ascontiguousarray(tensors[f"{attention}o_proj.weight"].T),
        gate_up=np.ascontiguousarray(gate_up.T),
        down=np.ascontiguousarray(tensors[f"{mlp}down_proj.weight"].T),
    )
