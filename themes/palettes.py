"""The palettes: one colour for each name, as `#rrggbb`.

They are Python and not a data file because the console reads one on the way to its first frame.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

STATES = ("passed", "running", "waiting", "failed", "unknown", "human", "idle")
"""States, each with a colour of its own: `waiting` is for the operator, `unknown` for what could not be asked,
`human` for interventions, `idle` for what has not begun and for words of less weight."""

SURFACES = ("background", "surface", "panel", "cursor")
"""What text is drawn on."""


class Palette(NamedTuple):
    """One set of colours.

    Attributes:
        name: Name of the theme.
        dark: Whether its background is dark.
        colours: Colour of each surface, of each state, and of `text`, `accent` and `rule` (thin lines).
    """

    name: str
    dark: bool
    colours: Mapping[str, str]


_DARK = Palette(
    "gonogo-dark",
    True,
    {
        "background": "#0e1319",
        "surface": "#141b23",
        "panel": "#1b2530",
        "cursor": "#22303f",
        "rule": "#2c3a49",
        "text": "#dfe6ee",
        "accent": "#a3d4fb",
        "passed": "#4fdba4",
        "running": "#a3d4fb",
        "waiting": "#fdcb3c",
        "failed": "#ff7d5a",
        "unknown": "#b684ff",
        "human": "#e48ad6",
        "idle": "#93a0ad",
    },
)

_LIGHT = Palette(
    "gonogo-light",
    False,
    {
        "background": "#ffffff",
        "surface": "#f5f7f9",
        "panel": "#e9edf1",
        "cursor": "#dce8f6",
        "rule": "#c3ccd6",
        "text": "#1c242d",
        "accent": "#0b3a8f",
        "passed": "#007448",
        "running": "#0b3a8f",
        "waiting": "#8e5900",
        "failed": "#8c1512",
        "unknown": "#5a36f0",
        "human": "#6d1048",
        "idle": "#5a6475",
    },
)

PALETTES: Mapping[str, Palette] = {palette.name: palette for palette in (_DARK, _LIGHT)}
"""Every palette by the name of its theme."""
