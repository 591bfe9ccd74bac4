"""The command palette: the verbs of the screen below it, by name."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from textual.command import DiscoveryHit, Hit, Hits, Provider

from console.screens.base import Area
from console.verbs import Verb


class VerbProvider(Provider):
    """Offers the verbs that work on the screen below; one that cannot be used now says why."""

    def _verbs(self) -> Iterator[tuple[Area, Verb, str]]:
        area = self.screen
        if isinstance(area, Area):
            for item in area.verbs():
                problem = area.problem(item)
                yield area, item, f"not now: {problem}" if problem else item.help

    async def discover(self) -> Hits:
        """Every verb."""
        for area, item, words in self._verbs():
            yield DiscoveryHit(_name(item), partial(area.run_verb, item.id), help=words)

    async def search(self, query: str) -> Hits:
        """The verbs whose name is like what was typed."""
        matcher = self.matcher(query)
        for area, item, words in self._verbs():
            score = matcher.match(_name(item))
            if score > 0:
                yield Hit(score, matcher.highlight(_name(item)), partial(area.run_verb, item.id), help=words)


def _name(item: Verb) -> str:
    return f"{item.label} ({item.key})"
