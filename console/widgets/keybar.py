"""The last line of every screen: what can be done here, and by which key. Derived from the list of verbs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from console.verbs import Verb
from console.widgets.ink import Line, Span, cells, fit
from console.widgets.inked import Block


class Offer(NamedTuple):
    """A verb, and whether it can be used now."""

    verb: Verb
    usable: bool


class Keybar(Block):
    """The bar. Areas to the left, then what can be done here; every word can be clicked."""

    DEFAULT_CSS = """
    Keybar { dock: bottom; height: 1; padding: 0 1; background: $panel; }
    """

    area = ""
    areas: Sequence[Verb] = ()
    offers: Sequence[Offer] = ()

    def take(self, area: str, areas: Sequence[Verb], offers: Sequence[Offer]) -> None:
        """Show where we are, where one can go, and what can be done."""
        if (area, areas, offers) != (self.area, self.areas, self.offers):
            self.area, self.areas, self.offers = area, areas, offers
            self.refresh()

    def lines(self, width: int) -> list[Line]:
        """One line. What cannot be used is left out first where it is narrow, then what matters least."""
        offers = list(self.offers)
        while cells(self._line(offers)) > width and offers:
            offers.remove(min(offers, key=lambda offer: (offer.usable, offer.verb.bar)))
        return [fit(self._line(offers), width)]

    def _line(self, offers: Sequence[Offer]) -> Line:
        line: list[Span] = []
        for item in self.areas:
            line.append(Span(item.key, "key", item.id))
            line.append(Span(f" {item.label}  ", "strong" if item.id == self.area else "muted", item.id))
        if self.areas:
            line.append(Span("│  ", "rule"))
        for offer in offers:
            item = offer.verb
            line.append(Span(item.key, "key" if offer.usable else "muted", item.id))
            line.append(Span(f" {item.label}  ", "text" if offer.usable else "muted", item.id))
        return tuple(line)
