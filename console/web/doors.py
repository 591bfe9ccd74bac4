"""Who may enter: pure decisions on tokens, cookies, hosts, origins and seats, without any I/O.

A browser carries requests for every page that is open in it, so an address on loopback alone protects nothing: a page
from elsewhere can send requests to it, and with a name of its own that it lets point at 127.0.0.1 it could read the
answers. So three things are asked: the name in the address must be one of ours, whoever asks must be a page of ours,
and they must hold the pass that the one-time token was exchanged for.
"""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

COOKIE = "gonogo"
"""Name of the cookie that is the pass."""

NAMES = ("127.0.0.1", "localhost")
"""By these names a browser may call us. The address of any other name could be changed under our feet."""

SECRET_BYTES = 32


class Refusal(Enum):
    """Why somebody does not get in. The value is what they are told: nothing about the release."""

    HOST = "this name is not one of this server's"
    ORIGIN = "only a page of this server may ask for this"
    PASS = "no pass; use the link that gonogo serve printed"
    TOKEN = "this link was used already, or is not one of this server's"
    FULL = "every seat is taken; close another page of this console, or start gonogo serve with more --visitors"


@dataclass(frozen=True, slots=True)
class Caller:
    """What a request says of whoever sends it.

    Attributes:
        host: The header `Host`, empty where it is missing.
        origin: The header `Origin`, empty where it is missing.
        site: The header `Sec-Fetch-Site`, empty where it is missing.
        cookie: The pass that came with it, empty where none did.
    """

    host: str
    origin: str = ""
    site: str = ""
    cookie: str = ""

    @classmethod
    def of(cls, headers: Mapping[str, str], cookies: Mapping[str, str]) -> Caller:
        """Read a request's headers and cookies."""
        host, origin = headers.get("Host", ""), headers.get("Origin", "")
        return cls(host, origin, headers.get("Sec-Fetch-Site", ""), cookies.get(COOKIE, ""))


class Doors:
    """The doors of one server.

    Args:
        port: The port that it listens on; part of every name and origin.
        visitors: How many consoles may be open at once.

    Attributes:
        place: First part of the path below which everything behind the doors lies. It cannot be guessed, so that a
            cookie bound to it goes to no other server on this machine: cookies do not tell ports apart.
    """

    def __init__(self, port: int, visitors: int) -> None:
        self._port = port
        self._visitors = visitors
        self._token = ""
        self._passes: set[str] = set()
        self._seated: set[object] = set()
        self.place = secrets.token_urlsafe(SECRET_BYTES)

    def new_token(self) -> str:
        """A token that lets one browser in, once. The one before it, if nobody used it, is worth nothing any more."""
        self._token = secrets.token_urlsafe(SECRET_BYTES)
        return self._token

    def against_door(self, caller: Caller) -> Refusal | None:
        """Why somebody may not even see the door, a page that says nothing; None where they may."""
        return None if caller.host in self._hosts() else Refusal.HOST

    def exchange(self, caller: Caller, token: str) -> str | Refusal:
        """A new pass for the one-time token, or why not. A token that was refused for another reason stays good."""
        refusal = self.against_door(caller) or self._against_origin(caller, required=True)
        if refusal is not None:
            return refusal
        if not self._token or not _same(token, self._token):
            return Refusal.TOKEN
        self._token = ""
        granted = secrets.token_urlsafe(SECRET_BYTES)
        self._passes.add(granted)
        return granted

    def against_page(self, caller: Caller) -> Refusal | None:
        """Why somebody may not have a page or a file; None where they may."""
        return self.against_door(caller) or self._against_origin(caller, required=False) or self._against_pass(caller)

    def against_socket(self, caller: Caller) -> Refusal | None:
        """Why somebody may not open a console; None where they may.

        Browsers let any page open a websocket to anywhere and leave the answer to us, so the origin must be named.
        """
        refusal = self.against_door(caller) or self._against_origin(caller, required=True) or self._against_pass(caller)
        if refusal is not None:
            return refusal
        return Refusal.FULL if len(self._seated) >= self._visitors else None

    def sit(self, visitor: object) -> None:
        """A visitor takes a seat."""
        self._seated.add(visitor)

    def rise(self, visitor: object) -> None:
        """A visitor's seat is free again."""
        self._seated.discard(visitor)

    def _hosts(self) -> tuple[str, ...]:
        return tuple(f"{name}:{self._port}" for name in NAMES)

    def _against_origin(self, caller: Caller, *, required: bool) -> Refusal | None:
        """Whether a page of ours asks: one with the very name that the request was sent to."""
        if caller.origin or required:
            return None if caller.origin == f"http://{caller.host}" else Refusal.ORIGIN
        return None if caller.site in ("", "none", "same-origin") else Refusal.ORIGIN

    def _against_pass(self, caller: Caller) -> Refusal | None:
        # Every pass is compared, so that the time it takes says nothing about which was nearly right.
        right = [_same(caller.cookie, granted) for granted in self._passes]
        return None if any(right) else Refusal.PASS


def _same(given: str, wanted: str) -> bool:
    return hmac.compare_digest(given.encode("utf-8", "surrogatepass"), wanted.encode("utf-8"))
