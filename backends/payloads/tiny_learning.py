"""What a drafter learns: a pass over a batch with its loss, and the optimiser (Adam) that follows the gradients."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Mapping, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from backends.payloads import tiny_model, tiny_tensors
    from backends.payloads.tiny_drafter import Shape
    from backends.payloads.tiny_gradients import Node, Tape
    from backends.payloads.tiny_model import Array, Ids
else:
    import tiny_model
    from tiny_gradients import Node, Tape


class Batch(NamedTuple):
    """What a drafter is trained on; each anchor is a place in a text.

    Attributes:
        features: Shape (anchors, window, layers x hidden): what the target computed for the tokens before the anchor.
        tokens: Shape (anchors, block): the anchor and the tokens that followed it.
    """

    features: Array
    tokens: Ids


class Frozen(NamedTuple):
    """What a drafter takes from its target, both of shape (vocabulary, hidden)."""

    embedding: Array
    head: Array


class Step(NamedTuple):
    """What one pass over a batch gives.

    Attributes:
        loss: Mean cross-entropy of the drafted tokens, in nats.
        hits: Shape (anchors, block - 1): where the likeliest token was the right one.
        gradients: Gradient of the loss for each tensor.
    """

    loss: float
    hits: np.ndarray[Any, np.dtype[np.bool_]]
    gradients: tiny_tensors.Tensors


def initial(shape: Shape, seed: int) -> tiny_tensors.Tensors:
    """Tensors of an untrained drafter."""
    random = np.random.RandomState(seed)
    hidden, inner, width = shape.hidden_size, shape.intermediate_size, shape.num_attention_heads * shape.head_dim

    def matrix(rows: int, columns: int, scale: float = 1.0) -> Array:
        drawn: Array = random.standard_normal((rows, columns)).astype(np.float32)
        return drawn * np.float32(scale / columns**0.5)

    ones = np.ones(hidden, np.float32)
    tensors = {"fc.weight": matrix(hidden, hidden * len(shape.target_layer_ids)), "hidden_norm.weight": ones.copy()}
    for i in range(shape.num_hidden_layers):
        attention, mlp = f"layers.{i}.self_attn.", f"layers.{i}.mlp."
        for name in "qkv":
            tensors[f"{attention}{name}_proj.weight"] = matrix(width, hidden)
        tensors[f"{attention}o_proj.weight"] = matrix(hidden, width, 0.5)
        for name in "qk":
            tensors[f"{attention}{name}_norm.weight"] = np.ones(shape.head_dim, np.float32)
        for name in ("gate", "up"):
            tensors[f"{mlp}{name}_proj.weight"] = matrix(inner, hidden)
        tensors[f"{mlp}down_proj.weight"] = matrix(hidden, inner, 0.5)
        tensors[f"layers.{i}.input_layernorm.weight"] = ones.copy()
        tensors[f"layers.{i}.post_attention_layernorm.weight"] = ones.copy()
    tensors["norm.weight"] = ones.copy()
    if shape.selector_rank:
        group, kernel = shape.conv_group_size, shape.conv_kernel_size
        tensors["conv.weight"] = matrix(hidden * group, kernel, 0.1).reshape(hidden, group, kernel)
        for name in ("previous", "candidate"):
            tensors[f"candidate_selector.{name}_proj.weight"] = matrix(shape.selector_rank, hidden, 0.1)
    return tensors


def step(tensors: Mapping[str, Array], shape: Shape, frozen: Frozen, batch: Batch) -> Step:
    """One forward and backward pass.

    Args:
        tensors: The drafter's tensors.
        shape: Its sizes.
        frozen: What it takes from the target.
        batch: What to learn from.
    """
    tape = Tape(tensors)
    block = np.full_like(batch.tokens, shape.mask_token_id)
    block[:, 0] = batch.tokens[:, 0]
    x = _body(tape, shape, Node(batch.features), Node(frozen.embedding[block]))
    logits = tape.frozen(tape.pick(x, 1), frozen.head)
    if shape.selector_rank:
        # Each token is chosen with an eye on the one before it; in training that is the true one.
        before = tape.linear(Node(frozen.embedding[batch.tokens[:, :-1]]), "candidate_selector.previous_proj.weight")
        candidates = tape.linear(Node(frozen.head), "candidate_selector.candidate_proj.weight")
        logits = tape.plus(logits, tape.pair(before, candidates))
    loss, hits = tape.cross_entropy(logits, batch.tokens[:, 1:])
    tape.back()
    return Step(loss, hits, tape.gradients)


def _body(tape: Tape, shape: Shape, features: Node, x: Node) -> Node:
    """All layers and the last norm; returns (anchors, block, hidden)."""
    window, block = features.value.shape[1], x.value.shape[1]
    turns = tiny_model.rotations(window + block, shape.head_dim, shape.rope_theta)
    context = tape.norm(tape.linear(features, "fc.weight"), "hidden_norm.weight")
    for i in range(shape.num_hidden_layers):
        attention, mlp = f"layers.{i}.self_attn.", f"layers.{i}.mlp."
        inner = tape.norm(x, f"layers.{i}.input_layernorm.weight")
        both = tape.behind(context, inner)
        projected = {
            name: tape.heads(tape.linear(node, f"{attention}{name}_proj.weight"), shape.num_attention_heads)
            for name, node in (("q", inner), ("k", both), ("v", both))
        }
        queries = tape.rotate(tape.norm(projected["q"], f"{attention}q_norm.weight"), turns[window:])
        keys = tape.rotate(tape.norm(projected["k"], f"{attention}k_norm.weight"), turns)
        mixed = tape.attend(queries, keys, projected["v"])
        x = tape.plus(x, tape.linear(mixed, f"{attention}o_proj.weight"))
        inner = tape.norm(x, f"layers.{i}.post_attention_layernorm.weight")
        gate, up = (tape.linear(inner, f"{mlp}{name}_proj.weight") for name in ("gate", "up"))
        x = tape.plus(x, tape.linear(tape.gate(gate, up), f"{mlp}down_proj.weight"))
    if shape.conv_kernel_size:
        x = tape.plus(x, tape.convolve(x, "conv.weight"))
    return tape.norm(x, "norm.weight")


class Adam:
    """The Adam optimiser (Kingma and Ba, 2015), with the norm of all gradients together limited."""

    def __init__(self, tensors: tiny_tensors.Tensors, limit: float = 1.0) -> None:
        self._tensors = tensors
        self._limit = limit
        self._means = {name: np.zeros_like(array) for name, array in tensors.items()}
        self._squares = {name: np.zeros_like(array) for name, array in tensors.items()}
        self._steps = 0

    def follow(self, gradients: tiny_tensors.Tensors, rate: float) -> float:
        """Change all tensors by one step; returns the norm of the gradients before it was limited."""
        norm = float(np.sqrt(sum(float(np.vdot(gradient, gradient)) for gradient in gradients.values())))
        shrink = np.float32(min(1.0, self._limit / (norm + 1e-12)))
        self._steps += 1
        first, second = 1 - 0.9**self._steps, 1 - 0.98**self._steps
        for name, gradient in gradients.items():
            mean, square = self._means[name], self._squares[name]
            mean += np.float32(0.1) * (gradient * shrink - mean)
            square += np.float32(0.02) * ((gradient * shrink) ** 2 - square)
            self._tensors[name] -= (
                np.float32(rate / first) * mean / (np.sqrt(square / np.float32(second)) + np.float32(1e-8))
            )
        return norm
