"""Reads the counters of speculative decoding from a server's `/metrics`, a text in Prometheus' format.

Names are matched exactly: every counter `..._total` has a twin `..._created`, a gauge with a time in seconds since
1970, which must never be added up with it. Counters are summed over engines. A server without speculation has none of
these lines. Counts of a measurement are differences of two readings.
"""

from __future__ import annotations

import re
from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Tuple

_NAME = ":spec_decode_num_"

_SAMPLE = re.compile(r"([A-Za-z_:][A-Za-z0-9_:]*)(?:\{(.*)\})?\s+(\S+)(?:\s+-?\d+)?")
_LABEL = re.compile(r'\s*([A-Za-z_][A-Za-z0-9_]*)="((?:[^"\\]|\\.)*)"\s*(?:,|$)')
_ESCAPE = re.compile(r"\\(.)")


class Unreadable(Exception):
    """The counters cannot be read, or make no sense."""


class Counters(NamedTuple):
    """Counts of speculative decoding.

    Attributes:
        drafts: Verification steps that had proposed tokens.
        draft_tokens: Proposed tokens.
        accepted_tokens: Proposed tokens that the target took.
        per_position: Steps in which the token at each position was taken.
    """

    drafts: int
    draft_tokens: int
    accepted_tokens: int
    per_position: Tuple[int, ...]

    @property
    def acceptance_length(self) -> Optional[float]:
        """Tokens a verification step, with the bonus token: 1 + accepted / drafts; None without drafts."""
        return 1 + self.accepted_tokens / self.drafts if self.drafts else None

    @property
    def acceptance_rate(self) -> Optional[float]:
        """Accepted share of the proposed tokens, 0 to 1; None where none were proposed."""
        return self.accepted_tokens / self.draft_tokens if self.draft_tokens else None

    def since(self, before: Counters) -> Counters:
        """What was counted since an earlier reading.

        Raises:
            Unreadable: When a counter fell: this is another server, or it was started again.
        """
        places = max(len(self.per_position), len(before.per_position))
        pairs = [(self._flat(places)[i], before._flat(places)[i]) for i in range(places + 3)]
        if any(now < then for now, then in pairs):
            raise Unreadable(f"counters fell, from {before} to {self}")
        return _of([now - then for now, then in pairs])

    def plus(self, other: Counters) -> Counters:
        """The sum of two counts."""
        places = max(len(self.per_position), len(other.per_position))
        return _of([self._flat(places)[i] + other._flat(places)[i] for i in range(places + 3)])

    def to_json(self) -> Dict[str, Any]:
        """As it is written in result files."""
        return {**self._asdict(), "per_position": list(self.per_position)}

    def _flat(self, places: int) -> List[int]:
        positions = [*self.per_position, *[0] * (places - len(self.per_position))]
        return [self.drafts, self.draft_tokens, self.accepted_tokens, *positions]


def _of(flat: List[int]) -> Counters:
    return Counters(flat[0], flat[1], flat[2], tuple(flat[3:]))


def reached(histogram: List[int]) -> Tuple[int, ...]:
    """In how many steps the token at each position was taken, from how many steps took exactly 0, 1, 2, ... tokens."""
    return tuple(sum(histogram[place + 1 :]) for place in range(len(histogram) - 1))


def read_counters(text: str, engine: str = "vllm") -> Optional[Counters]:
    """The counters in the text of `/metrics`.

    Args:
        text: The text.
        engine: What stands before the colon in the names of its counters; the rest is the same for all that have them.

    Returns:
        The counts since the server started, `per_position` with one number for each token that it drafts; None when
        there is no line about speculation.

    Raises:
        Unreadable: When the text is not in the format, a counter is missing, or one is not a whole number.
    """
    prefix = engine + _NAME
    totals = [f"{prefix}{what}_total" for what in ("drafts", "draft_tokens", "accepted_tokens")]
    sums: Dict[str, int] = {}
    positions: Dict[int, int] = {}
    seen = False
    for name, labels, value in samples(text):
        seen = seen or name.startswith(prefix)
        if name in totals:
            sums[name] = sums.get(name, 0) + _whole(name, value)
        elif name == f"{prefix}accepted_tokens_per_pos_total":
            if not labels.get("position", "").isdigit():
                raise Unreadable(f"{name} has no position")
            place = int(labels["position"])
            positions[place] = positions.get(place, 0) + _whole(name, value)
    if not seen:
        return None
    missing = [name for name in totals if name not in sums]
    if missing:
        raise Unreadable(f"/metrics has no {', '.join(missing)}")
    # A position that is not listed was never accepted; the ones behind it do not move up.
    per_position = tuple(positions.get(place, 0) for place in range(max(positions, default=-1) + 1))
    drafts, draft_tokens, accepted = (sums[name] for name in totals)
    return Counters(drafts, draft_tokens, accepted, per_position)


def samples(text: str) -> Iterator[Tuple[str, Dict[str, str], str]]:
    """Every sample in a text in Prometheus' format: name, labels, value as it is written.

    Raises:
        Unreadable: When a line is not in the format.
    """
    for line in text.split("\n"):
        if not line.strip() or line.startswith("#"):
            continue
        found = _SAMPLE.fullmatch(line.strip())
        if found is None:
            raise Unreadable(f"/metrics has a line that is none: {line[:100]!r}")
        yield found.group(1), _labels(found.group(2) or "", line), found.group(3)


def _labels(text: str, line: str) -> Dict[str, str]:
    labels = {}
    at = 0
    while at < len(text):
        found = _LABEL.match(text, at)
        if found is None:
            raise Unreadable(f"/metrics has labels that are none: {line[:100]!r}")
        labels[found.group(1)] = _ESCAPE.sub(
            lambda escape: "\n" if escape.group(1) == "n" else escape.group(1), found.group(2)
        )
        at = found.end()
    return labels


def _whole(name: str, text: str) -> int:
    try:
        value = float(text)
    except ValueError:
        raise Unreadable(f"{name} is {text}") from None
    if not (0 <= value < 2**53) or value != int(value):
        raise Unreadable(f"{name} is {text}, not a count")
    return int(value)
