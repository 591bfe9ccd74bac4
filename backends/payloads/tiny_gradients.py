"""Gradients by hand: the operations that a drafter is made of, each with its derivative, on a tape.

An operation computes its value at once and puts a function on the tape that carries the gradient of its output back to
its inputs. Going back over the tape from the loss gives the gradient of every tensor.

Arrays are (batch, tokens, numbers) unless said otherwise; weights are (out, in).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable, List, Mapping, Optional

import numpy as np

if TYPE_CHECKING:
    from backends.payloads import tiny_model, tiny_tensors
    from backends.payloads.tiny_model import Array, Ids, Rotations
else:
    import tiny_model


class Node:
    """A value on the way to the loss.

    Attributes:
        value: The value.
        gradient: Of the loss for the value; None until something arrived.
    """

    def __init__(self, value: Array) -> None:
        self.value = value
        self.gradient: Optional[Array] = None

    def receive(self, gradient: Array) -> None:
        """Add a part of the gradient."""
        self.gradient = gradient if self.gradient is None else self.gradient + gradient


class Tape:
    """Operations over the tensors of a drafter, in the order in which they were done.

    Attributes:
        tensors: The drafter's tensors.
        gradients: Of the loss for each tensor, after `back`.
    """

    def __init__(self, tensors: Mapping[str, Array]) -> None:
        self.tensors = tensors
        self.gradients: tiny_tensors.Tensors = {}
        self._steps: List[Callable[[], None]] = []

    def back(self) -> None:
        """Go back from the last operation to the first."""
        for step in reversed(self._steps):
            step()

    def _then(self, value: Array, back: Callable[[Array], None]) -> Node:
        node = Node(value)

        def step() -> None:
            if node.gradient is not None:
                back(node.gradient)

        self._steps.append(step)
        return node

    def _weigh(self, name: str, gradient: Array) -> None:
        before = self.gradients.get(name)
        self.gradients[name] = gradient if before is None else before + gradient

    def linear(self, x: Node, name: str) -> Node:
        """A matrix product with a weight."""
        weight = self.tensors[name]

        def back(gradient: Array) -> None:
            x.receive(gradient @ weight)
            self._weigh(name, _rows(gradient).T @ _rows(x.value))

        return self._then(x.value @ weight.T, back)

    def frozen(self, x: Node, weight: Array) -> Node:
        """A matrix product with a weight that is not trained."""
        return self._then(x.value @ weight.T, lambda gradient: x.receive(gradient @ weight))

    def norm(self, x: Node, name: str) -> Node:
        """Scale vectors to a root mean square of 1, then each number by a weight."""
        weight = self.tensors[name]
        size = np.float32(x.value.shape[-1])
        inverse = (
            1
            / np.sqrt(np.einsum("...i,...i->...", x.value, x.value) / size + np.float32(tiny_model.RMS_NORM_EPS))[
                ..., None
            ]
        )
        scaled = x.value * inverse

        def back(gradient: Array) -> None:
            self._weigh(name, _rows(gradient * scaled).sum(0))
            inner = gradient * weight
            x.receive(inverse * (inner - scaled * (np.einsum("...i,...i->...", inner, scaled) / size)[..., None]))

        return self._then(scaled * weight, back)

    def plus(self, x: Node, y: Node) -> Node:
        """A sum."""

        def back(gradient: Array) -> None:
            x.receive(gradient)
            y.receive(gradient)

        return self._then(x.value + y.value, back)

    def behind(self, x: Node, y: Node) -> Node:
        """Two runs of tokens, one behind the other."""
        at = x.value.shape[1]

        def back(gradient: Array) -> None:
            x.receive(gradient[:, :at])
            y.receive(gradient[:, at:])

        return self._then(np.concatenate([x.value, y.value], axis=1), back)

    def heads(self, x: Node, count: int) -> Node:
        """Split the numbers of each token into heads: (batch, tokens, heads, numbers)."""
        shape = x.value.shape
        return self._then(x.value.reshape(*shape[:2], count, -1), lambda gradient: x.receive(gradient.reshape(shape)))

    def rotate(self, x: Node, by: Rotations) -> Node:
        """Rotary embedding of heads; `by` has shape (tokens, numbers / 2)."""
        turn = by[:, None]
        return self._then(
            tiny_model.rotate(x.value, turn), lambda gradient: x.receive(tiny_model.rotate(gradient, turn.conj()))
        )

    def attend(self, queries: Node, keys: Node, values: Node) -> Node:
        """Attention of every token to every token, over heads; returns (batch, tokens, heads x numbers)."""
        q, k, v = (_by_head(node.value) for node in (queries, keys, values))
        scale = np.float32(q.shape[-1] ** -0.5)
        weights: Array = np.exp(q @ k.transpose(0, 1, 3, 2) * scale)
        weights /= weights.sum(-1, keepdims=True)
        batch, heads, rows, width = q.shape

        def back(gradient: Array) -> None:
            inner = _by_head(gradient.reshape(batch, rows, heads, width))
            values.receive((weights.transpose(0, 1, 3, 2) @ inner).transpose(0, 2, 1, 3))
            scores: Array = inner @ v.transpose(0, 1, 3, 2)
            scores = weights * (scores - np.einsum("...i,...i->...", scores, weights)[..., None]) * scale
            queries.receive((scores @ k).transpose(0, 2, 1, 3))
            keys.receive((scores.transpose(0, 1, 3, 2) @ q).transpose(0, 2, 1, 3))

        return self._then((weights @ v).transpose(0, 2, 1, 3).reshape(batch, rows, -1), back)

    def gate(self, gate: Node, up: Node) -> Node:
        """The gated activation of an MLP (SwiGLU)."""
        share: Array = np.reciprocal(1 + np.exp(-gate.value))
        opened = gate.value * share

        def back(gradient: Array) -> None:
            gate.receive(gradient * up.value * (share + opened * (1 - share)))
            up.receive(gradient * opened)

        return self._then(opened * up.value, back)

    def convolve(self, x: Node, name: str) -> Node:
        """A convolution along the tokens, each seeing itself and those before; weight (out, in of the group, taps)."""
        weight = self.tensors[name]
        taps = [tiny_model.block_diagonal(weight[:, :, tap]) for tap in range(weight.shape[2])]
        group = weight.shape[1]

        def back(gradient: Array) -> None:
            inner = np.zeros_like(x.value)
            of_weight = np.zeros_like(weight)
            for tap, matrix in enumerate(taps):
                later, earlier = gradient[:, tap:], x.value[:, : x.value.shape[1] - tap]
                inner[:, : inner.shape[1] - tap] += later @ matrix
                whole = _rows(later).T @ _rows(earlier)
                for begin in range(0, len(weight), group):
                    block = slice(begin, begin + group)
                    of_weight[block, :, tap] = whole[block, block]
            x.receive(inner)
            self._weigh(name, of_weight)

        return self._then(tiny_model.convolve(x.value, taps), back)

    def pick(self, x: Node, first: int) -> Node:
        """The tokens from the given place on."""

        def back(gradient: Array) -> None:
            whole = np.zeros_like(x.value)
            whole[:, first:] = gradient
            x.receive(whole)

        return self._then(x.value[:, first:], back)

    def pair(self, x: Node, y: Node) -> Node:
        """Scalar products of each token's numbers with all rows of `y`, which is (rows, numbers)."""

        def back(gradient: Array) -> None:
            x.receive(gradient @ y.value)
            y.receive(_rows(gradient).T @ _rows(x.value))

        return self._then(x.value @ y.value.T, back)

    def cross_entropy(self, logits: Node, labels: Ids) -> "tuple[float, np.ndarray[Any, np.dtype[np.bool_]]]":
        """The loss, mean over all tokens, in nats; the gradient starts here.

        Returns:
            The loss, and where the likeliest token was the label.
        """
        shifted = logits.value - logits.value.max(-1, keepdims=True)
        chances = np.exp(shifted)
        sums = chances.sum(-1, keepdims=True)
        right = np.take_along_axis(shifted, labels[..., None], -1) - np.log(sums)
        chances /= sums
        np.put_along_axis(chances, labels[..., None], np.take_along_axis(chances, labels[..., None], -1) - 1, -1)
        logits.receive(chances / np.float32(labels.size))
        return float(-right.mean()), shifted.argmax(-1) == labels


def _rows(x: Array) -> Array:
    return x.reshape(-1, x.shape[-1])


def _by_head(x: Array) -> Array:
    """From (batch, tokens, heads, numbers) to (batch, heads, tokens, numbers)."""
    return np.ascontiguousarray(x.transpose(0, 2, 1, 3))
