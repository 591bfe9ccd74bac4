"""When a job may be decided on, over a clock of our own."""

from __future__ import annotations

from console.screens.approval_guard import GRACE_SECONDS, ApprovalGuard, TypingGuard
from tests.console.runs import Time


def shown(time: Time) -> ApprovalGuard:
    guard = ApprovalGuard(lambda: time.seconds)
    guard.painted()
    guard.end_shown()
    time.go(GRACE_SECONDS)
    return guard


def test_the_moment_of_grace_is_at_least_half_a_second() -> None:
    assert GRACE_SECONDS >= 0.5


def test_nothing_before_the_job_is_painted_nor_in_the_moment_after() -> None:
    time = Time()
    guard = ApprovalGuard(lambda: time.seconds)
    assert "not on the screen" in guard.against_approve()
    guard.painted()
    guard.end_shown()
    assert "just appeared" in guard.against_approve()
    assert "just appeared" in guard.against_reject()
    time.go(GRACE_SECONDS - 0.01)
    assert guard.against_approve()
    time.go(0.01)
    assert guard.against_approve() == guard.against_reject() == ""


def test_approving_needs_the_end_rejecting_does_not() -> None:
    time = Time()
    guard = ApprovalGuard(lambda: time.seconds)
    guard.painted()
    time.go(9)
    assert "to its end" in guard.against_approve()
    assert guard.against_reject() == ""


def test_the_end_counts_only_while_the_job_is_on_the_screen() -> None:
    time = Time()
    guard = ApprovalGuard(lambda: time.seconds)
    guard.end_shown()
    guard.painted()
    time.go(9)
    assert not guard.seen_to_end


def test_being_drawn_anew_starts_the_moment_again_and_keeps_what_was_seen() -> None:
    time = Time()
    guard = shown(time)
    guard.hidden()
    assert guard.against_reject()
    guard.painted()
    assert "just appeared" in guard.against_approve()
    time.go(GRACE_SECONDS)
    assert guard.against_approve() == ""


def test_another_job_has_not_been_seen() -> None:
    time = Time()
    guard = shown(time)
    guard.changed()
    guard.painted()
    time.go(9)
    assert "to its end" in guard.against_approve()
    assert guard.shown_s == 9


def test_what_is_void_stays_so() -> None:
    time = Time()
    guard = shown(time)
    guard.void = "somebody decided"
    time.go(100)
    assert guard.against_approve() == guard.against_reject() == "somebody decided"


def test_seconds_on_the_screen_are_counted_from_the_first_paint() -> None:
    time = Time()
    guard = shown(time)
    time.go(7.4)
    guard.painted()
    assert guard.shown_s == 7


def test_an_answer_that_appears_at_once_was_not_typed() -> None:
    time = Time()
    guard = TypingGuard(lambda: time.seconds)
    guard.opened()
    assert guard.against_enter() == "the field is empty"
    time.go(60)
    guard.typed("2d98dab4")
    assert "too fast" in guard.against_enter()
    time.go(GRACE_SECONDS)
    assert guard.against_enter() == ""
    guard.typed("")
    guard.typed("2d98dab4")
    assert "too fast" in guard.against_enter()
