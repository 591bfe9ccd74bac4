"""Who gets in, as a table: every way in is tried with one thing wrong at a time."""

from __future__ import annotations

from dataclasses import replace

import pytest

from console.web.doors import Caller, Doors, Refusal

PORT = 8321
OURS = Caller(f"127.0.0.1:{PORT}", f"http://127.0.0.1:{PORT}", "same-origin")


def entered(visitors: int = 1) -> tuple[Doors, Caller]:
    """Doors, and somebody who is behind them."""
    doors = Doors(PORT, visitors)
    granted = doors.exchange(OURS, doors.new_token())
    assert isinstance(granted, str)
    return doors, replace(OURS, cookie=granted)


def test_a_token_is_exchanged_once() -> None:
    doors = Doors(PORT, 1)
    token = doors.new_token()
    granted = doors.exchange(OURS, token)
    assert isinstance(granted, str)
    assert granted not in (token, doors.place)
    assert doors.exchange(OURS, token) is Refusal.TOKEN


@pytest.mark.parametrize("token", ["", "x", "\udc80", "\u00e9"])
def test_a_wrong_token_is_refused_and_costs_nothing(token: str) -> None:
    doors = Doors(PORT, 1)
    right = doors.new_token()
    assert doors.exchange(OURS, token) is Refusal.TOKEN
    assert isinstance(doors.exchange(OURS, right), str)


def test_without_a_token_an_empty_one_does_not_enter() -> None:
    assert Doors(PORT, 1).exchange(OURS, "") is Refusal.TOKEN


def test_a_new_token_ends_the_one_before_and_keeps_those_who_are_in() -> None:
    doors, visitor = entered()
    old, new = doors.new_token(), doors.new_token()
    assert doors.exchange(OURS, old) is Refusal.TOKEN
    second = doors.exchange(OURS, new)
    assert isinstance(second, str)
    assert doors.against_page(visitor) is None
    assert doors.against_page(replace(OURS, cookie=second)) is None


WRONG_HOSTS = [
    "", "127.0.0.1", "127.0.0.1:80", "evil.example", f"evil.example:{PORT}", f"127.0.0.1.evil.example:{PORT}",
    f"[::1]:{PORT}", f"0.0.0.0:{PORT}", f"127.0.0.1:{PORT}0", f"LOCALHOST:{PORT}",
]  # fmt: skip


@pytest.mark.parametrize("host", WRONG_HOSTS)
def test_a_foreign_name_gets_nothing_anywhere(host: str) -> None:
    doors, visitor = entered()
    # As after DNS rebinding: host and origin agree with each other, and the right cookie comes too.
    caller = replace(visitor, host=host, origin=f"http://{host}")
    assert doors.against_door(caller) is Refusal.HOST
    assert doors.against_page(caller) is Refusal.HOST
    assert doors.against_socket(caller) is Refusal.HOST
    assert doors.exchange(caller, doors.new_token()) is Refusal.HOST


WRONG_ORIGINS = [
    "null", "http://evil.example", f"https://127.0.0.1:{PORT}", "http://127.0.0.1", f"http://127.0.0.1:{PORT + 1}",
    f"http://localhost:{PORT}", f"http://127.0.0.1:{PORT}/",
]  # fmt: skip


@pytest.mark.parametrize("origin", WRONG_ORIGINS)
def test_a_foreign_origin_gets_nothing_even_with_the_cookie(origin: str) -> None:
    doors, visitor = entered()
    caller = replace(visitor, origin=origin)
    assert doors.against_page(caller) is Refusal.ORIGIN
    assert doors.against_socket(caller) is Refusal.ORIGIN
    assert doors.exchange(caller, doors.new_token()) is Refusal.ORIGIN


def test_a_websocket_and_an_exchange_must_name_their_origin() -> None:
    doors, visitor = entered()
    silent = replace(visitor, origin="")
    assert doors.against_socket(silent) is Refusal.ORIGIN
    assert doors.exchange(silent, doors.new_token()) is Refusal.ORIGIN


@pytest.mark.parametrize(
    ("site", "refused"),
    [("", None), ("none", None), ("same-origin", None), ("same-site", Refusal.ORIGIN), ("cross-site", Refusal.ORIGIN)],
)
def test_a_page_is_given_to_pages_of_ours_and_to_the_address_bar(site: str, refused: Refusal | None) -> None:
    doors, visitor = entered()
    assert doors.against_page(replace(visitor, origin="", site=site)) is refused


@pytest.mark.parametrize("cookie", ["", "x", "\udc80"])
def test_without_the_pass_nobody_gets_anything(cookie: str) -> None:
    doors, visitor = entered()
    assert doors.against_page(replace(visitor, cookie=cookie)) is Refusal.PASS
    assert doors.against_socket(replace(visitor, cookie=cookie)) is Refusal.PASS
    assert doors.against_socket(visitor) is None


def test_a_pass_of_another_server_is_none_here() -> None:
    doors, _ = entered()
    _, other = entered()
    assert doors.against_page(other) is Refusal.PASS


def test_no_more_consoles_than_seats() -> None:
    doors, visitor = entered(visitors=2)
    first, second = object(), object()
    doors.sit(first)
    assert doors.against_socket(visitor) is None
    doors.sit(second)
    assert doors.against_socket(visitor) is Refusal.FULL
    assert doors.against_page(visitor) is None
    doors.rise(first)
    doors.rise(first)
    assert doors.against_socket(visitor) is None


def test_no_refusal_tells_what_is_wrong_before_the_name_is_right() -> None:
    assert Doors(PORT, 1).against_socket(Caller("evil.example")) is Refusal.HOST


def test_headers_that_are_missing_are_empty() -> None:
    assert Caller.of({}, {}) == Caller("")
    headers = {"Host": "h", "Origin": "o", "Sec-Fetch-Site": "s"}
    assert Caller.of(headers, {"gonogo": "c", "other": "x"}) == Caller("h", "o", "s", "c")
