"""What can be done in the fleet: keys, palette, key bar and help are all derived from this list. None writes."""

from __future__ import annotations

from console.verbs import Verb, verb

SCOPE = "fleet"

VERBS: tuple[Verb, ...] = (
    Verb("waiting", "w", "waiting", "Go to the next release that waits for you; opens nothing.", (SCOPE,), bar=8),
    Verb("filter", "slash", "filter", "Show only releases whose row has all the words that you type.", (SCOPE,),
         bar=7, press="/"),
    Verb("clear", "escape", "clear", "Show all releases again.", (SCOPE,), bar=1, press="esc"),
    Verb("sort", "s", "sort", "Sort by the next column; a click on a heading sorts by that one.", (SCOPE,), bar=6),
    Verb("sort_back", "S", "sort back", "Sort by the column before.", (SCOPE,)),
    Verb("order", "o", "order", "Turn the order round.", (SCOPE,), bar=3),
    Verb("fold", "f", "fold by", "Fold by cluster, by state, or not at all.", (SCOPE,), bar=5),
    Verb("fold_all", "z", "fold all", "Fold all groups, or unfold them.", (SCOPE,), bar=2),
    Verb("show_jobs", "j", "jobs", "Show the jobs of each release below it, or not.", (SCOPE,), bar=4),
)  # fmt: skip

SHARED = tuple(
    verb(name)
    for name in ("help", "palette", "theme", "copy_line", "copy_screen", "export", "quit", "next", "previous")
)
"""Those that work everywhere."""
