"""What became of the bars of an earlier catalog: one that falls, or is given up, has to say why and since when.

Bars that flake get loosened, a little each time, until they guard nothing. So a bar may only be lowered together with a
new source and a later day, and one that is given up stands under `dropped`, with the same. A new day beside the old
source is no reason, and neither is a new source with the old day.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import zip_longest
from typing import Final

from gates.catalog.check import Finding
from gates.catalog.decimals import decimal
from gates.catalog.model import Bar, Catalog, Dropped, Entry, Key

HOW: Final = "a new source and a later date"


def check_against(catalog: Catalog, earlier: Catalog) -> list[Finding]:
    """Everything that guards less than before.

    Args:
        catalog: The catalog as it is now.
        earlier: An earlier state of it.

    Returns:
        Errors for what was loosened without a reason, warnings for what was loosened with one; in the order of the
        earlier catalog. `field` is a place in the catalog as it is now.
    """
    found: list[Finding] = []
    places = {entry.key: i for i, entry in reversed(list(enumerate(catalog.entries)))}
    seen: set[Key] = set()
    for before in earlier.entries:
        if before.key in seen:
            continue  # twice in the earlier one: only the first could count
        seen.add(before.key)
        i = places.get(before.key)
        now = None if i is None else catalog.entries[i]
        place = "entries" if i is None else f"entries[{i}]"
        for name, bar in before.bars.items():
            if now is None or name not in now.bars:
                found.append(_given_up(catalog, before, name, bar, f"{place}.bars" if now else place))
            else:
                found += _lowered(before, now, name, f"{place}.bars.{name}")
        if now is not None:
            found += _relaxed(before, now, place)
    return found


def _given_up(catalog: Catalog, entry: Entry, name: str, bar: Bar, place: str) -> Finding:
    was = f"the bar on {name}, {_shown(bar)} since {bar.date}, was given up"
    reasons = [(i, one) for i, one in enumerate(catalog.dropped) if one.key == entry.key and name in one.bars]
    if not reasons:
        return Finding(True, place, entry.words, f"{was}; `dropped` has to name it, with {HOW}")
    i, reason = max(reasons, key=lambda found: found[1].date)
    return _reasoned(was, bar, reason, f"dropped[{i}]", entry)


def _lowered(before: Entry, now: Entry, name: str, place: str) -> Iterator[Finding]:
    old, new = before.bars[name], now.bars[name]
    # One position less is a position whose bar is 0.
    pairs = list(zip_longest(old.bars, new.bars, fillvalue=0.0))
    if any(decimal(one) < decimal(other) for other, one in pairs):
        yield _reasoned(f"was lowered from {_shown(old)} to {_shown(new)}", old, new, place, now)
    elif name == "accuracy" and before.task != now.task:
        yield _reasoned(f"is measured in another way: {now.task} was {before.task}", old, new, place, now)


def _reasoned(what: str, before: Bar, reason: Bar | Dropped, place: str, entry: Entry) -> Finding:
    """An error where the reason is the old one or is not dated later, else a warning that shows the reason."""
    missing = []
    if reason.source.strip() == before.source.strip():
        missing.append(f"the source is still {before.source!r}")
    if reason.date <= before.date:  # both are days as YYYY-MM-DD
        missing.append(f"the date {reason.date} is not later than {before.date}")
    if missing:
        return Finding(True, place, entry.words, f"{what}, but {' and '.join(missing)}; needs {HOW}")
    return Finding(False, place, entry.words, f"{what} on {reason.date}: {reason.source}")


def _relaxed(before: Entry, now: Entry, place: str) -> Iterator[Finding]:
    """What has no source and no date of its own; somebody should look at it."""
    old, new = before.repeat, now.repeat
    if (new.passes, -new.runs) < (old.passes, -old.runs) and new != old:
        words = f"asks for {new.passes} of {new.runs} runs, where {old.passes} of {old.runs} had to pass"
        yield Finding(False, f"{place}.repeat", now.words, words)
    for name, value in before.server.items():
        if name not in now.server:
            words = f"no longer requires {name} = {value!r} of the server"
            yield Finding(False, f"{place}.server", now.words, words)


def _shown(bar: Bar) -> str:
    return ", ".join(f"{one:g}" for one in bar.bars)
