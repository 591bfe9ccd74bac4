"""Colours and style of the console, as data.

Every theme names a colour for each state of the release, under the same names (`STATES`). No state is ever
shown by its colour alone; still the colours must be told apart by everybody and stand out from every surface
that they are drawn on, which the tests compute for each theme.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from themes.palettes import PALETTES, STATES, SURFACES, Palette

if TYPE_CHECKING:
    from textual.theme import Theme

__all__ = ["BASE_CSS", "DEFAULT", "PALETTES", "STATES", "SURFACES", "Palette", "names", "to_theme"]

BASE_CSS = Path(__file__).with_name("base.tcss")
"""The style sheet that all screens share; it uses variables of the theme only."""

DEFAULT = "gonogo-dark"
"""The theme that is used when none is asked for."""


def names() -> tuple[str, ...]:
    """Names of all themes, in the order in which the console offers them."""
    return tuple(PALETTES)


def to_theme(palette: Palette) -> Theme:
    """A palette as Textual takes it."""
    from textual.theme import Theme

    colours = palette.colours
    return Theme(
        name=palette.name,
        primary=colours["accent"],
        secondary=colours["running"],
        accent=colours["accent"],
        warning=colours["waiting"],
        error=colours["failed"],
        success=colours["passed"],
        foreground=colours["text"],
        background=colours["background"],
        surface=colours["surface"],
        panel=colours["panel"],
        dark=palette.dark,
        variables={**_for_textual(palette), **{f"gonogo-{name}": value for name, value in colours.items()}},
    )


def _for_textual(palette: Palette) -> dict[str, str]:
    """Variables that Textual's own widgets use, so that they look like ours."""
    colours = palette.colours
    return {
        "border": colours["rule"],
        "border-blurred": colours["rule"],
        "block-cursor-background": colours["cursor"],
        "block-cursor-foreground": colours["text"],
        "block-cursor-text-style": "bold",
        "input-cursor-background": colours["text"],
        "input-cursor-foreground": colours["background"],
        "input-selection-background": colours["cursor"],
        "scrollbar": colours["rule"],
        "scrollbar-hover": colours["idle"],
        "scrollbar-active": colours["idle"],
        "scrollbar-background": colours["background"],
        "scrollbar-background-hover": colours["background"],
        "scrollbar-background-active": colours["background"],
        "scrollbar-corner-color": colours["background"],
    }
