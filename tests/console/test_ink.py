"""Styled lines: nothing is lost or wider than it may be."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from console.safe_text import safe
from console.widgets.ink import Column, Paragraph, Span, cells, fit, foreign, lay_out, pad, plain, table_row, widths

texts = st.text(max_size=120).map(safe) | st.lists(st.text("ab", max_size=14), max_size=12).map(" ".join)
spans = st.lists(st.builds(Span, texts, st.sampled_from(["text", "muted"])), max_size=5)
lines = spans.map(tuple)


@given(body=lines, gutter=st.text("abc ", max_size=30), width=st.integers(2, 90), exact=st.booleans())
def test_wrapping_loses_nothing_and_never_goes_over_the_width(
    body: tuple[Span, ...], gutter: str, width: int, exact: bool
) -> None:
    paragraph = Paragraph(body, (Span(gutter),), exact)
    rows = lay_out([paragraph], width)
    assert all(cells(row) <= width for row in rows)
    first, *rest = [plain(row) for row in rows]
    beside = len(gutter) if width - len(gutter) >= 8 else 0
    assert first.startswith(gutter[:beside])
    shown = first + "".join(row[beside:] for row in rest)
    if exact:
        assert shown == gutter + plain(body)
    else:
        assert shown.replace(" ", "") == (gutter + plain(body)).replace(" ", "")


@given(body=lines, width=st.integers(2, 60))
def test_wrapping_keeps_styles(body: tuple[Span, ...], width: int) -> None:
    styled = [(character, span.style) for span in body for character in span.text]
    rows = lay_out([Paragraph(body)], width)
    shown = [(character, span.style) for row in rows for span in row for character in span.text]
    assert [item for item in shown if item[0] != " "] == [item for item in styled if item[0] != " "]


@given(line=lines, width=st.integers(0, 60), right=st.booleans())
def test_a_cut_line_fits_and_says_that_it_was_cut(line: tuple[Span, ...], width: int, right: bool) -> None:
    shown = fit(line, width)
    assert cells(shown) <= width
    if cells(line) > width > 0:
        assert plain(shown).endswith("…")
    else:
        assert width <= 0 or shown == line
    if width > 0:
        assert cells(pad(line, width, right=right)) == width or cells(line) > width


def test_prose_is_wrapped_between_words() -> None:
    rows = lay_out([Paragraph((Span("a gate says go or no-go"),))], 10)
    assert [plain(row) for row in rows] == ["a gate ", "says go or", "no-go"]


def test_exact_text_is_marked_where_it_goes_on() -> None:
    rows = lay_out([Paragraph((Span("x" * 25),), (Span("  7 "),), exact=True)], 14)
    assert [plain(row) for row in rows] == ["  7 xxxxxxxxxx", "  ↪ xxxxxxxxxx", "  ↪ xxxxx"]


def test_a_table_leaves_out_what_has_no_room_and_shares_the_rest() -> None:
    columns = (Column("a", 4), Column("b", 0), Column("c", 8, least=40))
    assert widths(columns, 30) == (4, 24, 0)
    assert widths(columns, 40) == (4, 24, 8)
    row = table_row(columns, [Span("1"), Span("middle"), Span("end")], 40)
    assert plain(row) == "1     middle                    end     "


def test_paths_keep_their_end() -> None:
    row = table_row((Column("path", 12, tail=True),), [Span("/very/long/path/result.json")], 12)
    assert plain(row) == "…result.json"


@pytest.mark.parametrize("text", ["\x1b[2J", "a\nb", "\u202e", "日本語"])
def test_foreign_text_is_safe(text: str) -> None:
    shown = foreign(text).text
    assert shown.isprintable()
    assert cell_len(shown) >= 1
