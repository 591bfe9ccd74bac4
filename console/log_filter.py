"""What an operator types to see some entries of a work log only: words, and `stage:`, `actor:`, `kind:`."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from console.release.journal import Entry

_HUMAN = "HUMAN_INTERVENTION"


@dataclass(frozen=True, slots=True)
class LogFilter:
    """Which entries are shown: those that have all of these.

    Attributes:
        words: Parts of the text, the actor, the stage, the kind or the data, in small letters.
        stages: Parts of the stage's name.
        actors: Parts of who did it.
        kinds: Parts of the kind.
        human: Whether only HUMAN_INTERVENTION is shown.
    """

    words: tuple[str, ...] = ()
    stages: tuple[str, ...] = ()
    actors: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ()
    human: bool = False

    @property
    def empty(self) -> bool:
        """Whether nothing was asked for but interventions, which are found without looking through the log."""
        return not (self.words or self.stages or self.actors or self.kinds)

    def shows(self, entry: Entry) -> bool:
        """Whether an entry has all that was asked for; small letters find capitals too."""
        if self.human and str(entry.kind) != _HUMAN:
            return False
        fields = ((self.stages, entry.stage), (self.actors, entry.actor), (self.kinds, str(entry.kind)))
        if not all(part in value.casefold() for parts, value in fields for part in parts):
            return False
        if not self.words:
            return True
        data = json.dumps(entry.data, ensure_ascii=False)
        text = f"{entry.text}\n{entry.actor}\n{entry.stage}\n{entry.kind}\n{data}".casefold()
        return all(word in text for word in self.words)


def parse(text: str, *, human: bool = False) -> LogFilter:
    """The filter that somebody typed; a word with a colon that is none of the three names is a word like any other."""
    found: dict[str, list[str]] = {"": [], "stage": [], "actor": [], "kind": []}
    for word in text.casefold().split():
        name, colon, value = word.partition(":")
        if colon and name in ("stage", "actor", "kind"):
            # While the value is still being typed it asks for nothing.
            found[name] += [value] if value else []
        else:
            found[""].append(word)
    return LogFilter(tuple(found[""]), tuple(found["stage"]), tuple(found["actor"]), tuple(found["kind"]), human)
