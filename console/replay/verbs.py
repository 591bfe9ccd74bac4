"""What can be done in a replay: keys, palette, key bar and help are all derived from this list.

They stand apart from `console.verbs`: a replay has no verb that writes, and its keys mean other things elsewhere.
"""

from __future__ import annotations

from console.replay.marks import APPROVAL, FAILURE, GATE, INTERVENTION
from console.verbs import Verb

SCOPE, FOREIGN_SCOPE = "replay", "foreign"

REPLAY = "replay"
"""Id of the verb that replays a run of another program."""

_JUMPS = (("n", APPROVAL), ("g", GATE), ("i", INTERVENTION), ("f", FAILURE))

_SPEEDS = (("5", 1), ("6", 10), ("7", 60), ("8", 300), ("9", 1000))
"""Digits that set a speed; 1 to 4 are the areas, as everywhere."""

JUMPS = {f"{way}_{kind}": (kind, way == "next") for _, kind in _JUMPS for way in ("next", "previous")}
"""Ids of the jumps: to which kind of mark, and whether forward."""

SPEEDS = {f"speed_{speed}": float(speed) for _, speed in _SPEEDS}
"""Ids of the verbs that set a speed."""

SCRUBS = {"scrub_back": -0.02, "scrub_on": 0.02, "leap_back": -0.1, "leap_on": 0.1}
"""Ids of the verbs that go a part of the time line on."""


def _jump(key: str, kind: str, way: str) -> Verb:
    pressed = key if way == "next" else key.upper()
    label = f"{way} {kind}"
    return Verb(f"{way}_{kind}", pressed, label, f"Go to the {label}, and stop there.", (SCOPE,),
                bar=4 if way == "next" else 0)  # fmt: skip


UNPLACED = Verb("unplaced", "u", "not placed", "Show what could not be placed, and what was assumed.",
                (SCOPE, FOREIGN_SCOPE), bar=3)  # fmt: skip

FOREIGN_VERBS = (
    Verb(REPLAY, "p", "replay", "Replay the log; leaving the replay leads back here.", (FOREIGN_SCOPE,), bar=9),
    UNPLACED,
)
"""What can be done on the board over a run of another program."""

VERBS: tuple[Verb, ...] = (
    Verb("play", "space", "play/pause", "Play, or stand still.", (SCOPE,), bar=9),
    Verb("step_back", "comma", "back", "One entry back.", (SCOPE,), bar=6, press=","),
    Verb("step_on", "full_stop", "step", "One entry on.", (SCOPE,), bar=6, press="."),
    Verb("scrub_back", "left", "2 % back", "A fiftieth of the time line back.", (SCOPE,), press="←"),
    Verb("scrub_on", "right", "2 % on", "A fiftieth of the time line on.", (SCOPE,), press="→"),
    Verb("leap_back", "shift+left", "10 % back", "A tenth of the time line back.", (SCOPE,), press="⇧←"),
    Verb("leap_on", "shift+right", "10 % on", "A tenth of the time line on.", (SCOPE,), press="⇧→"),
    Verb("to_begin", "left_square_bracket", "begin", "To the first entry.", (SCOPE,), press="["),
    Verb("to_end", "right_square_bracket", "end", "To the last entry.", (SCOPE,), press="]"),
    *(_jump(key, kind, way) for key, kind in _JUMPS for way in ("next", "previous")),
    Verb("faster", "plus,equals_sign", "faster", "The next higher speed, up to ×1000.", (SCOPE,), bar=5, press="+"),
    Verb("slower", "minus", "slower", "The next lower speed, down to ×1.", (SCOPE,), bar=5, press="-"),
    *(Verb(f"speed_{speed}", key, f"×{speed}", f"Play at ×{speed}.", (SCOPE,)) for key, speed in _SPEEDS),
    UNPLACED,
)  # fmt: skip

BY_ID = {item.id: item for item in VERBS}
