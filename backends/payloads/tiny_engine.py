"""Serves many texts at a time with the tiny target: continuous batching, greedy, with or without a drafter.

Each pass of the engine goes over all active sequences in one batch. With a drafter it drafts k tokens for each, and one
call of the target checks them all, k + 1 rows a sequence: the longest beginning that the target would have written
itself is kept, and the target's own next token is the bonus. Without one, k is 0 and everything else is the same code.
"""

from __future__ import annotations

import threading
import traceback
from collections import deque
from typing import TYPE_CHECKING, Deque, Dict, List, Optional

import numpy as np

if TYPE_CHECKING:
    from backends.payloads import tiny_drafter, tiny_model, tiny_vocabulary
else:
    import tiny_model
    import tiny_vocabulary

FINISHED = ("stop", "length", "abort", "error")
_FAULT_EVERY = 5


class Request:
    """A text to go on with.

    Attributes:
        prompt: Token ids.
        max_tokens: Most tokens to add.
        ignore_eos: Go on behind the end-of-text token.
        output: Token ids that were added.
        finish_reason: One of `FINISHED` once it is done.
        error: What went wrong, empty when nothing did.
        done: Set once it is done.
    """

    def __init__(self, prompt: List[int], max_tokens: int, ignore_eos: bool = False) -> None:
        self.prompt = prompt
        self.max_tokens = max_tokens
        self.ignore_eos = ignore_eos
        self.output: List[int] = []
        self.finish_reason = ""
        self.error = ""
        self.done = threading.Event()

    def take(self, tokens: List[int]) -> bool:
        """Add tokens as far as they are wanted; returns whether the text is finished."""
        for token in tokens:
            self.output.append(token)
            if token == tiny_vocabulary.EOS and not self.ignore_eos:
                self.finish_reason = "stop"
                return True
            if len(self.output) >= self.max_tokens:
                self.finish_reason = "length"
                return True
        return False


class Counters:
    """What the engine counted since it started.

    Attributes:
        drafts: Passes of a sequence for which tokens were drafted.
        accepted_at: In how many of them the token at each position was kept.
        prompt_tokens: Tokens of prompts.
        generation_tokens: Tokens that were added.
        finished: Requests by how they ended.
    """

    def __init__(self, draft_tokens: int) -> None:
        self.drafts = 0
        self.accepted_at = [0] * draft_tokens
        self.prompt_tokens = 0
        self.generation_tokens = 0
        self.finished: Dict[str, int] = dict.fromkeys(FINISHED, 0)

    def copy(self) -> Counters:
        """The same counts, that stay."""
        other = Counters(0)
        other.__dict__.update(self.__dict__, accepted_at=list(self.accepted_at), finished=dict(self.finished))
        return other


class EngineDead(Exception):
    """The engine stopped working."""


class Engine:
    """The engine; `run` is its loop, for a thread of its own.

    Attributes:
        draft_tokens: Tokens drafted for each sequence and pass, 0 without a drafter.
        failed: Set when the engine stopped working.
    """

    def __init__(
        self,
        target: tiny_model.Target,
        drafter: Optional[tiny_drafter.Drafter] = None,
        draft_tokens: int = 0,
        max_num_seqs: int = 32,
        faulty_drafting: bool = False,
    ) -> None:
        self.draft_tokens = draft_tokens if drafter is not None else 0
        self.failed = threading.Event()
        self._target = target
        self._drafter = drafter
        self._layers = drafter.shape.target_layer_ids if drafter is not None else ()
        self._cache = tiny_model.Cache(target.sizes, max_num_seqs, positions_for(target))
        self._most = max_num_seqs
        self._faulty = faulty_drafting
        self._active: List[Request] = []
        # For each slot the last known token and its position: everything before it is in the cache.
        self._anchors = np.zeros(max_num_seqs, np.int64)
        self._at = np.zeros(max_num_seqs, np.int64)
        self._waiting: Deque[Request] = deque()
        self._changed = threading.Condition()
        self._stopping = False
        self._counters = Counters(self.draft_tokens)

    def submit(self, request: Request) -> None:
        """Put a request into the queue.

        Raises:
            EngineDead: When the engine does not work any more.
        """
        with self._changed:
            if self._stopping:
                raise EngineDead("the engine does not work any more")
            self._waiting.append(request)
            self._changed.notify()

    def counters(self) -> Counters:
        """The counts so far; those of a request are in them before it is done."""
        with self._changed:
            return self._counters.copy()

    def load(self) -> "tuple[int, int]":
        """How many requests are being worked on, and how many wait."""
        with self._changed:
            return len(self._active), len(self._waiting)

    def stop(self) -> None:
        """End the loop; requests that are not done end as aborted."""
        with self._changed:
            self._stopping = True
            self._changed.notify()

    def run(self) -> None:
        """Work until stopped."""
        try:
            while self._take_in():
                self._pass()
        except Exception:  # whatever it was, every client must hear of it
            traceback.print_exc()
            self.failed.set()
        self.stop()
        reason = "error" if self.failed.is_set() else "abort"
        for request in [*self._active, *self._waiting]:
            request.error = "EngineCore encountered an issue. See stack trace (above) for the root cause."
            self._finish(request, reason)

    def _take_in(self) -> bool:
        """Begin with what waits, as far as there is room; returns False when the engine is to stop."""
        with self._changed:
            while not (self._stopping or self._active or self._waiting):
                self._changed.wait()
            if self._stopping:
                return False
            room = self._most - len(self._active)
            fresh = [self._waiting.popleft() for _ in range(min(room, len(self._waiting)))]
            first = len(self._active)
            self._active += fresh
        if fresh:
            self._read(fresh, first)
        return True

    def _read(self, fresh: List[Request], first: int) -> None:
        """Read new prompts, all in one batch, and write the first token of each."""
        lengths = np.array([len(request.prompt) for request in fresh])
        tokens = np.zeros((len(fresh), int(lengths.max())), np.int64)
        for row, request in zip(tokens, fresh):
            row[: len(request.prompt)] = request.prompt
        start = np.zeros(len(fresh), np.int64)
        hidden, features = self._target.forward(self._cache, tokens, start, first, self._layers)
        if self._drafter is not None:
            self._drafter.observe(features, start, first)
        slots = slice(first, first + len(fresh))
        self._at[slots] = lengths
        self._anchors[slots] = self._target.logits(hidden[np.arange(len(fresh)), lengths - 1]).argmax(-1)
        with self._changed:
            self._counters.prompt_tokens += int(lengths.sum())
        self._give([[token] for token in self._anchors[slots].tolist()], first)

    def _pass(self) -> None:
        """Draft, check all drafts in one call of the target, and keep what it would have written itself."""
        count, k = len(self._active), self.draft_tokens
        if not count:
            return
        at, anchors = self._at[:count], self._anchors[:count]
        rows = anchors[:, None]
        if self._drafter is not None:
            rows = np.concatenate([rows, self._drafter.draft(anchors, at, k)], axis=1)
        hidden, features = self._target.forward(self._cache, rows, at, keep=self._layers)
        if self._drafter is not None:
            self._drafter.observe(features, at)
        own = self._target.logits(hidden).argmax(-1)
        kept = np.cumprod(rows[:, 1:] == own[:, :-1], axis=1)
        accepted = kept.sum(1)
        self._at[:count] += accepted + 1
        self._anchors[:count] = own[np.arange(count), accepted]
        if k:
            with self._changed:
                self._counters.drafts += count
                self._counters.accepted_at = (self._counters.accepted_at + kept.sum(0)).tolist()
        self._give([row[: number + 1] for row, number in zip(own.tolist(), accepted.tolist())], 0)

    def _give(self, written: List[List[int]], first: int) -> None:
        """Hand the tokens that were written to their requests, and let go of those that are finished."""
        before = sum(len(request.output) for request in self._active)
        finished = [first + i for i, tokens in enumerate(written) if self._active[first + i].take(tokens)]
        with self._changed:
            self._counters.generation_tokens += sum(len(request.output) for request in self._active) - before
        together = len(self._active) > 1
        for slot in reversed(finished):
            self._let_go(slot, together)

    def _let_go(self, slot: int, together: bool) -> None:
        """End a request; the last sequence moves into its slot, so that the active ones stay side by side."""
        request, last = self._active[slot], len(self._active) - 1
        if slot != last:
            length = int(self._at[last])
            self._cache.move(last, slot, length)
            if self._drafter is not None:
                self._drafter.move(last, slot, length)
            self._at[slot], self._anchors[slot] = self._at[last], self._anchors[last]
            self._active[slot] = self._active[last]
        with self._changed:
            self._active.pop()
        ended = sum(self._counters.finished.values())
        if self._faulty and self.draft_tokens and together and ended % _FAULT_EVERY == 0:
            request.error = "drafts of several sequences were mixed up"
            self._finish(request, "error")
        else:
            self._finish(request, request.finish_reason)

    def _finish(self, request: Request, reason: str) -> None:
        request.finish_reason = reason
        with self._changed:
            self._counters.finished[reason] += 1
        request.done.set()


def positions_for(target: tiny_model.Target) -> int:
    """Positions that a cache must have for a target, with room for drafts behind the longest text."""
    return target.sizes.max_position_embeddings + tiny_model.BEYOND
