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
        grey: Whether it has no colours: then words and signs alone tell states apart.
    """

    name: str
    dark: bool
    colours: Mapping[str, str]
    grey: bool = False


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

_CONTRAST = Palette(
    "gonogo-contrast",
    True,
    {
        "background": "#000000",
        "surface": "#000000",
        "panel": "#0d1116",
        "cursor": "#1a222b",
        "rule": "#7d8a97",
        "text": "#ffffff",
        "accent": "#9fd0f6",
        "passed": "#5affb7",
        "running": "#9fd0f6",
        "waiting": "#ffe350",
        "failed": "#ff9a7a",
        "unknown": "#aca3ff",
        "human": "#d69fb1",
        "idle": "#def1f5",
    },
)

_SAFE = Palette(
    "gonogo-safe",
    True,
    {
        "background": "#10141a",
        "surface": "#161c24",
        "panel": "#1d2631",
        "cursor": "#243140",
        "rule": "#33445a",
        "text": "#d4dce6",
        "accent": "#aee4ff",
        "passed": "#16bf8a",
        "running": "#aee4ff",
        "waiting": "#f5d03c",
        "failed": "#ec7b3e",
        "unknown": "#af86ff",
        "human": "#fff5e5",
        "idle": "#7e9cca",
    },
)

_MONO = Palette(
    "gonogo-mono",
    True,
    {
        "background": "#000000",
        "surface": "#0a0a0a",
        "panel": "#161616",
        "cursor": "#303030",
        "rule": "#4a4a4a",
        "text": "#e6e6e6",
        "accent": "#ffffff",
        **dict.fromkeys(STATES, "#e6e6e6"),
        "idle": "#b0b0b0",
    },
    grey=True,
)

PALETTES: Mapping[str, Palette] = {palette.name: palette for palette in (_DARK, _LIGHT, _CONTRAST, _SAFE, _MONO)}
"""Every palette by the name of its theme."""
