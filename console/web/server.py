"""The server: aiohttp on loopback, the doors before everything, textual-serve's terminal behind them."""

from __future__ import annotations

import asyncio
import secrets
import socket
from collections.abc import Callable, Sequence
from pathlib import Path

import textual_serve
from aiohttp import web
from aiohttp.typedefs import Handler

from console.web import pages
from console.web.doors import COOKIE, Caller, Doors, Refusal
from console.web.visitor import Visitor

HOST = "127.0.0.1"
"""The only address that is listened on."""

MOST_BYTES = 1024 * 1024
"""Size of the largest message of a page; a paste is one."""

_STATIC = Path(textual_serve.__file__).parent / "static"
_FORBIDDEN, _BUSY = 403, 503


class BrowserServer:
    """Serves one console command to a few pages.

    Args:
        arguments: The command line of each visitor's child process.
        doors: Who may enter.
        title: What the browser's tab is called; may be foreign text, made safe for a screen.
        say: Takes lines for the server's own terminal; they may hold foreign text.
    """

    def __init__(self, arguments: Sequence[str], doors: Doors, title: str, say: Callable[[str], None]) -> None:
        self._arguments = arguments
        self._doors = doors
        self._title = title
        self._say = say
        self._sockets: set[web.WebSocketResponse] = set()
        self._leaving: set[asyncio.Task[None]] = set()

    def application(self) -> web.Application:
        """The whole of it, for a runner of aiohttp."""
        app = web.Application(middlewares=[self._guard], client_max_size=4096)
        place = f"/{self._doors.place}"
        app.add_routes(
            [
                web.get("/enter", self._door),
                web.get("/door.js", self._door_script),
                web.get("/door.css", self._door_style),
                web.post("/enter", self._enter),
                web.get(f"{place}/", self._page),
                web.get(f"{place}/console.js", self._script),
                web.get(f"{place}/console.css", self._style),
                web.get(f"{place}/ws", self._visit),
                web.static(f"{place}/static", _STATIC),
            ]
        )
        app.on_shutdown.append(self._end_all)
        return app

    @web.middleware
    async def _guard(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Ask the doors before anything else is done, and bind every answer by headers."""
        caller = Caller.of(request.headers, request.cookies)
        refusal = self._against(request, caller)
        host = caller.host if self._doors.against_door(caller) is None else ""
        if refusal is not None:
            return _refused(refusal, host)
        try:
            answer = await handler(request)
        except web.HTTPException as error:
            return web.Response(status=error.status, text=error.reason, headers=pages.headers(host))
        if not answer.prepared:
            for name, value in pages.headers(host).items():
                answer.headers.setdefault(name, value)
        return answer

    def _against(self, request: web.Request, caller: Caller) -> Refusal | None:
        if request.path in ("/enter", "/door.js", "/door.css"):
            return self._doors.against_door(caller)
        if request.path.endswith("/ws"):
            return self._doors.against_socket(caller)
        return self._doors.against_page(caller)

    async def _door(self, _request: web.Request) -> web.Response:
        return web.Response(text=pages.DOOR, content_type="text/html")

    async def _door_script(self, _request: web.Request) -> web.Response:
        return web.Response(text=pages.DOOR_SCRIPT, content_type="text/javascript")

    async def _door_style(self, _request: web.Request) -> web.Response:
        return web.Response(text=pages.DOOR_STYLE, content_type="text/css")

    async def _enter(self, request: web.Request) -> web.Response:
        token = (await request.read()).decode("utf-8", "replace")
        caller = Caller.of(request.headers, request.cookies)
        granted = self._doors.exchange(caller, token)
        if isinstance(granted, Refusal):
            return _refused(granted, caller.host)
        self._say("a browser came in by the link; it cannot be used again")
        answer = web.Response(text=f"/{self._doors.place}/")
        answer.set_cookie(COOKIE, granted, path=f"/{self._doors.place}/", httponly=True, samesite="Strict")
        return answer

    async def _page(self, request: web.Request) -> web.Response:
        nonce = secrets.token_urlsafe(16)
        answer = web.Response(text=pages.console_page(self._title, nonce), content_type="text/html")
        answer.headers.update(pages.headers(request.headers["Host"], nonce))
        return answer

    async def _script(self, _request: web.Request) -> web.Response:
        return web.Response(text=pages.SCRIPT, content_type="text/javascript")

    async def _style(self, _request: web.Request) -> web.Response:
        return web.Response(text=pages.STYLE, content_type="text/css")

    async def _visit(self, request: web.Request) -> web.WebSocketResponse:
        """One visitor, from the opened websocket to the end of the child."""
        page = web.WebSocketResponse(heartbeat=15, max_msg_size=MOST_BYTES)
        visitor = Visitor(self._arguments, page, self._say)
        # The seat is taken before the first await: two pages that come at once are counted both.
        self._doors.sit(page)
        try:
            await page.prepare(request)
            self._sockets.add(page)
            # A page that is loaded again finds its seat free, but not before its old console gave the run's lock back.
            while self._leaving:
                await asyncio.wait(self._leaving)
            await visitor.serve(_number(request, "width", 80), _number(request, "height", 24))
        finally:
            self._sockets.discard(page)
            self._doors.rise(page)
            leaving = asyncio.create_task(visitor.end())
            self._leaving.add(leaving)
            leaving.add_done_callback(self._leaving.discard)
            await asyncio.shield(leaving)
        return page

    async def _end_all(self, _app: web.Application) -> None:
        """Close every page's websocket; its handler then sees its child end."""
        for page in list(self._sockets):
            await page.close(code=1001, message=b"gonogo serve ends")


def _number(request: web.Request, name: str, default: int) -> int:
    text = request.query.get(name, "")
    return int(text) if text.isascii() and text.isdigit() and len(text) < 6 else default


def _refused(refusal: Refusal, host: str) -> web.Response:
    status = _BUSY if refusal is Refusal.FULL else _FORBIDDEN
    return web.Response(status=status, text=refusal.value, headers=pages.headers(host))


def bind(port: int) -> socket.socket:
    """A listening socket on loopback.

    Args:
        port: The port; 0 for any that is free.

    Raises:
        OSError: When the port cannot be had.
    """
    return socket.create_server((HOST, port))


async def begin(application: web.Application, listening: socket.socket) -> web.AppRunner:
    """Begin to answer.

    Args:
        application: What answers.
        listening: Where, from `bind`.

    Returns:
        The runner; its `cleanup` ends everything.
    """
    runner = web.AppRunner(application, access_log=None, handle_signals=False, shutdown_timeout=10.0)
    await runner.setup()
    await web.SockSite(runner, listening).start()
    return runner
