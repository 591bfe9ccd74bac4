"""Counters of speculative decoding out of a text in Prometheus' format."""

from __future__ import annotations

import counters
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tiny_engine import Counters as EngineCounters
from tiny_metrics import exposition

PREFIX = "vllm:spec_decode_num_"
TEXT = f"""# HELP {PREFIX}drafts_total Number of spec decoding drafts.
# TYPE {PREFIX}drafts_total counter
{PREFIX}drafts_total{{engine="0",model_name="a \\"b\\", {{c}}"}} 202.0
{PREFIX}drafts_total{{engine="1",model_name="a"}} 8.0
{PREFIX}drafts_created{{engine="0",model_name="a"}} 1.7961008789725292e+09
{PREFIX}draft_tokens_total{{engine="0",model_name="a"}} 808.0
{PREFIX}draft_tokens_total{{engine="1",model_name="a"}} 32.0 1796100878000
{PREFIX}draft_tokens_created{{engine="0",model_name="a"}} 1.7961008789725559e+09
{PREFIX}accepted_tokens_total{{engine="0",model_name="a"}} 1e2
{PREFIX}accepted_tokens_per_pos_total{{engine="0",model_name="a",position="0"}} 70.0
{PREFIX}accepted_tokens_per_pos_total{{engine="1",model_name="a",position="0"}} 5
{PREFIX}accepted_tokens_per_pos_total{{engine="0",model_name="a",position="2"}} 25.0
{PREFIX}accepted_tokens_per_pos_created{{engine="0",model_name="a",position="0"}} 1.796100878972598e+09
vllm:request_success_total{{finished_reason="stop"}} 1.0
"""


def test_counters_are_summed_over_engines_and_their_twins_left_out() -> None:
    read = counters.read_counters(TEXT)
    assert read == counters.Counters(210, 840, 100, (75, 0, 25))
    assert read.acceptance_length == pytest.approx(1 + 100 / 210)
    assert read.acceptance_rate == pytest.approx(100 / 840)


def test_without_speculation_there_are_none() -> None:
    assert counters.read_counters('vllm:generation_tokens_total{engine="0"} 5.0\n') is None
    assert counters.read_counters("") is None


@pytest.mark.parametrize(
    "change",
    [
        lambda text: text.replace("202.0", "NaN"),
        lambda text: text.replace("202.0", "-1"),
        lambda text: text.replace("202.0", "2.5"),
        lambda text: text.replace("202.0", "1e400"),
        lambda text: text.replace("202.0", "many"),
        lambda text: text.replace(f"{PREFIX}accepted_tokens_total", f"{PREFIX}accepted_total"),
        lambda text: text.replace('position="2"', 'position="-2"'),
        lambda text: text.replace(',position="2"', ""),
        lambda text: text + "<html>",
        lambda text: text.replace('engine="0"', "engine=0"),
    ],
)
def test_what_is_no_count_is_never_taken_for_one(change: object) -> None:
    changed = change(TEXT)  # type: ignore[operator]
    assert changed != TEXT
    with pytest.raises(counters.Unreadable):
        counters.read_counters(changed)


def test_a_measurement_is_the_difference_of_two_readings() -> None:
    before, after = counters.Counters(10, 40, 5, (4, 1)), counters.Counters(30, 120, 25, (14, 8, 3))
    assert after.since(before) == counters.Counters(20, 80, 20, (10, 7, 3))
    assert before.plus(after) == counters.Counters(40, 160, 30, (18, 9, 3))
    with pytest.raises(counters.Unreadable):
        before.since(after)
    with pytest.raises(counters.Unreadable):
        counters.Counters(31, 124, 25, (13, 9, 3)).since(after)


@given(st.text(max_size=200))
def test_no_text_makes_reading_fail_in_another_way(text: str) -> None:
    try:
        read = counters.read_counters(PREFIX + text)
    except counters.Unreadable:
        return
    assert read is None or read.drafts >= 0


@given(st.integers(0, 1000), st.lists(st.integers(0, 1000), min_size=1, max_size=6), st.text(max_size=20))
def test_what_the_tiny_server_shows_is_read_as_it_was_counted(drafts: int, kept: list[int], name: str) -> None:
    counted = EngineCounters(len(kept))
    counted.drafts, counted.accepted_at = drafts, kept
    text = exposition(counted, (1, 2), name.replace("\n", " ").replace("\r", " "), 1796100878.97)
    read = counters.read_counters(text)
    assert read == counters.Counters(drafts, drafts * len(kept), sum(kept), tuple(kept))
    assert counters.read_counters(exposition(EngineCounters(0), (0, 0), "m", 1.0)) is None
