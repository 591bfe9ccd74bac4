"""Every theme can be read by everybody: contrast, and colours that are told apart with any colour vision."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import pytest

import themes
from console.widgets.ink import STYLES
from console.widgets.inked import _LOOKS

CONTRAST = 4.5
DISTANCE = 10.0

# Machado, Oliveira and Fernandes 2009, severity 1.0, on linear RGB.
VISION: dict[str, Sequence[Sequence[float]]] = {
    "normal": ((1, 0, 0), (0, 1, 0), (0, 0, 1)),
    "protan": ((0.152286, 1.052583, -0.204868), (0.114503, 0.786281, 0.099216), (-0.003882, -0.048116, 1.051998)),
    "deutan": ((0.367322, 0.860646, -0.227968), (0.280085, 0.672501, 0.047413), (-0.011820, 0.042940, 0.968881)),
    "tritan": ((1.255528, -0.076749, -0.178779), (-0.078411, 0.930809, 0.147602), (0.004733, 0.691367, 0.303900)),
}


def linear(colour: str) -> list[float]:
    values = [int(colour[start : start + 2], 16) / 255 for start in (1, 3, 5)]
    return [value / 12.92 if value <= 0.04045 else ((value + 0.055) / 1.055) ** 2.4 for value in values]


def contrast(one: str, other: str) -> float:
    """WCAG 2 contrast ratio."""
    weights = (0.2126, 0.7152, 0.0722)
    dark, light = sorted(
        sum(w * c for w, c in zip(weights, linear(colour), strict=True)) + 0.05 for colour in (one, other)
    )
    return light / dark


def lab(colour: str, vision: str) -> tuple[float, float, float]:
    """CIE L*a*b* (D65) of a colour as somebody with this vision sees it."""
    seen = [min(1.0, max(0.0, sum(m * c for m, c in zip(row, linear(colour), strict=True)))) for row in VISION[vision]]
    matrix = ((0.4124564, 0.3575761, 0.1804375), (0.2126729, 0.7151522, 0.0721750), (0.0193339, 0.1191920, 0.9503041))
    xyz = [sum(m * c for m, c in zip(row, seen, strict=True)) for row in matrix]
    x, y, z = (
        value ** (1 / 3) if value > 216 / 24389 else (24389 / 27 * value + 16) / 116
        for value in (part / white for part, white in zip(xyz, (0.95047, 1.0, 1.08883), strict=True))
    )
    return 116 * y - 16, 500 * (x - y), 200 * (y - z)


def distance(one: str, other: str, vision: str) -> float:
    """CIE76 colour difference."""
    return sum((a - b) ** 2 for a, b in zip(lab(one, vision), lab(other, vision), strict=True)) ** 0.5


def test_the_formulas_on_known_values() -> None:
    assert contrast("#000000", "#ffffff") == pytest.approx(21.0)
    assert contrast("#767676", "#ffffff") == pytest.approx(4.54, abs=0.01)
    assert lab("#ffffff", "normal") == pytest.approx((100, 0, 0), abs=0.01)
    assert lab("#ff0000", "normal") == pytest.approx((53.24, 80.09, 67.20), abs=0.05)


@pytest.mark.parametrize("name", themes.names())
def test_every_text_stands_out_from_every_surface(name: str) -> None:
    colours = themes.PALETTES[name].colours
    texts = (*themes.STATES, "text", "accent")
    found = {
        (text, surface): contrast(colours[text], colours[surface]) for text in texts for surface in themes.SURFACES
    }
    assert {pair: ratio for pair, ratio in found.items() if ratio < CONTRAST} == {}


COLOURED = [name for name in themes.names() if not themes.PALETTES[name].grey]


@pytest.mark.parametrize("name", COLOURED)
@pytest.mark.parametrize("vision", VISION)
def test_states_are_told_apart_with_any_colour_vision(name: str, vision: str) -> None:
    colours = themes.PALETTES[name].colours
    found = {
        (one, other): distance(colours[one], colours[other], vision)
        for one, other in itertools.combinations(themes.STATES, 2)
    }
    assert {pair: apart for pair, apart in found.items() if apart < DISTANCE} == {}


def least_contrast(name: str) -> float:
    colours = themes.PALETTES[name].colours
    texts = (*themes.STATES, "text", "accent")
    return min(contrast(colours[text], colours[surface]) for text in texts for surface in themes.SURFACES)


def least_distance(name: str) -> float:
    colours = themes.PALETTES[name].colours
    pairs = list(itertools.combinations(themes.STATES, 2))
    return min(distance(colours[one], colours[other], vision) for one, other in pairs for vision in VISION)


def test_each_theme_is_what_its_name_says() -> None:
    assert least_contrast("gonogo-contrast") >= 7.0, "WCAG's enhanced contrast"
    assert least_distance("gonogo-safe") >= 20.0 > least_distance(themes.DEFAULT)
    mono = themes.PALETTES["gonogo-mono"]
    assert [name for name in themes.names() if name not in COLOURED] == [mono.name]
    assert all(value[1:3] == value[3:5] == value[5:7] for value in mono.colours.values())


@pytest.mark.parametrize("name", themes.names())
def test_a_theme_has_every_colour_that_styles_name(name: str) -> None:
    variables = themes.to_theme(themes.PALETTES[name]).variables
    named = {word[1:] for look in _LOOKS.values() for word in look.split() if word.startswith("$")}
    assert {f"gonogo-{colour}" for colour in named} <= set(variables)


def test_every_style_has_a_look_and_every_state_a_style() -> None:
    assert set(STYLES) <= set(_LOOKS)
    assert set(themes.STATES) <= set(STYLES)
