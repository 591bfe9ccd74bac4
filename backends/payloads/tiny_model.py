"""The tiny target: a small transformer in numpy, with rotary positions, grouped norms and a key-value cache.

It is built like a current decoder (pre-norm, norms on queries and keys, gated MLP), only so small that one processor
core serves it. As in a large model, a pass over a few tokens of a sequence costs little more than a pass over one:
weights and cached keys and values are read once for all of them. That is what speculative decoding lives on, and why
this target shows a true speedup.

Weights are stored as `(out, in)` like everywhere; here they are kept as `(in, out)`, and the scales of norms are folded
into the matrices that follow them.
"""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any, Dict, Mapping, NamedTuple, Sequence

import numpy as np

if TYPE_CHECKING:
    from backends.payloads import tiny_tensors

    Array = np.ndarray[Any, np.dtype[np.float32]]
    Ids = np.ndarray[Any, np.dtype[np.int64]]
    Rotations = np.ndarray[Any, np.dtype[np.complex64]]
else:
    import tiny_tensors

CONFIG = "config.json"
ARCHITECTURE = "TinyTargetForCausalLM"
RMS_NORM_EPS = 1e-6
BEYOND = 64
"""Positions behind the longest text for drafted tokens that will not be kept."""

_EPSILON = np.float32(RMS_NORM_EPS)


class Sizes(NamedTuple):
    """Sizes of a target, named as in its `config.json`."""

    hidden_size: int
    num_hidden_layers: int
    num_attention_heads: int
    head_dim: int
    intermediate_size: int
    vocab_size: int
    max_position_embeddings: int
    rope_theta: float


class UnsupportedArchitecture(ValueError):
    """A model of a kind that this program does not know."""


def read_config(folder: str, *supported: str) -> Dict[str, Any]:
    """Read `config.json` of a model.

    Args:
        folder: The model's folder.
        supported: Architectures, one of which it must be.

    Raises:
        OSError: When it cannot be read.
        ValueError: When it is not JSON.
        UnsupportedArchitecture: When it is another kind of model.
    """
    with open(os.path.join(folder, CONFIG), encoding="utf-8") as stream:
        config: Dict[str, Any] = json.load(stream)
    names = config.get("architectures")
    if not isinstance(names, list) or len(names) != 1 or names[0] not in supported:
        raise UnsupportedArchitecture(
            f"Model architectures {names} are not supported for now. Supported architectures: {list(supported)}"
        )
    return config


def sizes_of(config: Mapping[str, Any]) -> Sizes:
    """The sizes in a target's configuration.

    Raises:
        KeyError: When one is missing.
    """
    return Sizes(**{name: config[name] for name in Sizes._fields})


def rms(x: Array) -> Array:
    """Scale each vector to a root mean square of 1 (over the last axis)."""
    scaled: Array = x / np.sqrt(np.einsum("...i,...i->...", x, x) / np.float32(x.shape[-1]) + _EPSILON)[..., None]
    return scaled


def rotations(positions: int, head_dim: int, theta: float) -> Rotations:
    """Rotary embedding: for each position the rotation of each pair of numbers, shape (positions, head_dim / 2)."""
    inverse = theta ** (-np.arange(0, head_dim, 2, dtype=np.float64) / head_dim)
    table: Rotations = np.exp(1j * np.arange(positions)[:, None] * inverse[None]).astype(np.complex64)
    return table


def rotate(x: Array, by: Rotations) -> Array:
    """Rotate neighbouring pairs of the last axis; `by` has one complex number for each pair."""
    return (np.ascontiguousarray(x).view(np.complex64) * by).view(np.float32)


def gated(x: Array, width: int) -> Array:
    """The gated activation of an MLP: the first `width` columns gate the others (SwiGLU)."""
    gate = x[..., :width]
    opened = np.exp(-gate)
    opened += 1
    np.divide(gate, opened, out=opened)
    opened *= x[..., width:]
    return opened


class _Layer(NamedTuple):
    """Weights of one layer, (in, out): the norms before the first and third are folded in."""

    qkv: Array
    output: Array
    gate_up: Array
    down: Array


class Cache:
    """Keys and values of the sequences that a target works on; each sequence has a slot.

    A slot's content is valid up to the length that its owner keeps; what lies behind it is overwritten before it is
    read. So taking back rejected tokens costs nothing.

    Attributes:
        keys: Shape (layers, slots, heads, positions, head_dim), float32.
        values: The same.
    """

    def __init__(self, sizes: Sizes, slots: int, positions: int) -> None:
        shape = (sizes.num_hidden_layers, slots, sizes.num_attention_heads, positions, sizes.head_dim)
        self.keys: Array = np.zeros(shape, np.float32)
        self.values: Array = np.zeros(shape, np.float32)

    def move(self, source: int, destination: int, length: int) -> None:
        """Copy the first positions of a slot to another one."""
        self.keys[:, destination, :, :length] = self.keys[:, source, :, :length]
        self.values[:, destination, :, :length] = self.values[:, source, :, :length]


class Target:
    """A loaded target.

    Attributes:
        sizes: Its sizes.
        embedding: Shape (vocabulary, hidden), float32: what enters the first layer for each token.
        head: Shape (vocabulary, hidden), float32: scalar products with the last hidden state are the logits.
    """

    def __init__(self, config: Mapping[str, Any], tensors: tiny_tensors.Tensors) -> None:
        self.sizes = sizes_of(config)
        self.embedding: Array = tensors["model.embed_tokens.weight"]
        self.head: Array = tensors["lm_head.weight"] * tensors["model.norm.weight"]
        self._head_in: Array = np.ascontiguousarray(self.head.T)
        self._layers = [_layer(tensors, f"model.layers.{i}.") for i in range(self.sizes.num_hidden_layers)]
        self._norms = [_norms(tensors, f"model.layers.{i}.self_attn.") for i in range(len(self._layers))]
        self._rotations = rotations(
            self.sizes.max_position_embeddings + BEYOND, self.sizes.head_dim, self.sizes.rope_theta
        )

    @classmethod
    def load(cls, folder: str) -> Target:
        """Load a target.

        Raises:
            OSError: When a file cannot be read.
            ValueError: When a file is not what it should be.
            KeyError: When a size or tensor is missing.
        """
        return cls(read_config(folder, ARCHITECTURE), tiny_tensors.load_shards(folder))

    def forward(
        self, cache: Cache, tokens: Ids, start: Ids, first_slot: int = 0, keep: Sequence[int] = ()
    ) -> tuple[Array, Array]:
        """One pass over some tokens of each of n sequences, all in one batch.

        Args:
            cache: Their keys and values; gets those of the tokens.
            tokens: Shape (n, rows): the next tokens of each sequence.
            start: Shape (n,): position of each sequence's first token.
            first_slot: The sequences have this slot and the following ones.
            keep: Layers whose output is wanted, from 0.

        Returns:
            The last hidden states, shape (n, rows, hidden), for `logits`; and the outputs of the layers to keep beside
            each other, shape (n, rows, len(keep) x hidden).
        """
        count, rows = tokens.shape
        sizes = self.sizes
        positions = start[:, None] + np.arange(rows)
        flat = positions.ravel()
        slots = np.repeat(np.arange(first_slot, first_slot + count), rows)
        visible = (np.arange(int(flat.max()) + 1) <= positions[:, :, None]).astype(np.float32)[:, None]
        rotation = self._rotations[flat][:, None, None]
        x = self.embedding[tokens.ravel()]
        kept = []
        for i, layer in enumerate(self._layers):
            qkv = (rms(x) @ layer.qkv).reshape(count * rows, 3, sizes.num_attention_heads, sizes.head_dim)
            qk = rotate(rms(qkv[:, :2]) * self._norms[i], rotation)
            cache.keys[i][slots, :, flat] = qk[:, 1]
            cache.values[i][slots, :, flat] = qkv[:, 2]
            queries = qk[:, 0].reshape(count, rows, sizes.num_attention_heads, -1)
            x += self._attend(cache, i, first_slot, queries, visible) @ layer.output
            x += gated(rms(x) @ layer.gate_up, sizes.intermediate_size) @ layer.down
            if i in keep:
                kept.append(x.copy())
        features = np.concatenate(kept, axis=1) if kept else x[:, :0]
        return x.reshape(count, rows, -1), features.reshape(count, rows, -1)

    def logits(self, hidden: Array) -> Array:
        """How likely each token comes next, unnormalised: shape (..., vocabulary) for hidden states (..., hidden)."""
        scores: Array = rms(hidden) @ self._head_in
        return scores

    def _attend(self, cache: Cache, layer: int, first_slot: int, queries: Array, visible: Array) -> Array:
        """Attention of n sequences over their own cached positions; returns shape (n x rows, hidden)."""
        count, rows = queries.shape[:2]
        at = (layer, slice(first_slot, first_slot + count), slice(None), slice(visible.shape[-1]))
        # The norms on queries and keys bound the scores, so the softmax can do without subtracting the largest one.
        weights: Array = queries.transpose(0, 2, 1, 3) @ cache.keys[at].transpose(0, 1, 3, 2)
        np.exp(weights, out=weights)
        weights *= visible
        mixed: Array = weights @ cache.values[at]
        mixed /= weights.sum(-1, keepdims=True)
        return mixed.transpose(0, 2, 1, 3).reshape(count * rows, -1)


def _norms(tensors: Mapping[str, Array], prefix: str) -> Array:
    """Scales of queries and keys, shape (2, 1, head_dim); the usual 1 / sqrt(head_dim) of scores is folded in."""
    query, key = (tensors[f"{prefix}{n}_norm.weight"] for n in "qk")
    return np.stack([query / np.float32(np.sqrt(len(query))), key])[:, None, :]


def _layer(tensors: Mapping[str, Array], prefix: str) -> _Layer:
    before, between = (tensors[f"{prefix}{n}_layernorm.weight"] for n in ("input", "post_attention"))
    attention, mlp = f"{prefix}self_attn.", f"{prefix}mlp."
    qkv = np.concatenate([tensors[f"{attention}{n}_proj.weight"] for n in "qkv"]) * before
    gate_up = np.concatenate([tensors[f"{mlp}{n}_proj.weight"] for n in ("gate", "up")]) * between
    return _Layer(
        np.ascontiguousarray(qkv.T),
        np.ascontiguousarray(tensors[f"{attention}o_proj.weight"].T),
        np.ascontiguousarray(gate_up.T),
        np.ascontiguousarray(tensors[f"{mlp}down_proj.weight"].T),
    )


def continue_greedily(target: Target, starts: Ids, steps: int, keep: Sequence[int] = ()) -> tuple[Ids, Array]:
    """Let a target go on with some texts, always with its most likely token.

    Args:
        target: The target.
        starts: Shape (n, m): the beginning of each text.
        steps: How many tokens to add.
        keep: Layers whose output is wanted, from 0.

    Returns:
        The whole texts, shape (n, m + steps), and the outputs of those layers for all tokens but the last, shape
        (n, m + steps - 1, len(keep) x hidden).
    """
    count, length = starts.shape
    cache = Cache(target.sizes, count, length + steps)
    tokens, features = [starts], []
    rows, at = starts, np.zeros(count, np.int64)
    for _ in range(steps):
        hidden, kept = target.forward(cache, rows, at, keep=keep)
        features.append(kept)
        at = at + rows.shape[1]
        rows = target.logits(hidden[:, -1]).argmax(-1)[:, None]
        tokens.append(rows)
    return np.concatenate(tokens, axis=1), np.concatenate(features, axis=1)


def block_diagonal(groups: Array) -> Array:
    """The dense matrix of a grouped one: `groups` is (out, in of a group), the result (out, out)."""
    size, group = groups.shape
    dense = np.zeros((size, size), np.float32)
    for begin in range(0, size, group):
        dense[begin : begin + group, begin : begin + group] = groups[begin : begin + group]
    return dense


def convolve(x: Array, taps: Sequence[Array]) -> Array:
    """A causal convolution along the tokens of (batch, tokens, numbers); one dense matrix (out, in) for each tap."""
    mixed: Array = x @ taps[0].T
    for back, tap in enumerate(taps[1:], 1):
        mixed[:, back:] += x[:, :-back] @ tap.T
    return mixed
