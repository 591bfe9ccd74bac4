"""Drives a headless Chromium by its DevTools protocol."""

from __future__ import annotations

import asyncio
import base64
import itertools
import re
import shutil
import subprocess
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
from rich.cells import cell_len

PROGRAM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
DEADLINE = 60.0
_PARTS = re.compile(r"\x1b\[([0-9;]*)H|\x1b\[[0-9;?<>$]*[A-Za-z]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|([\s\S])")

OPTIONS = (
    "--headless=new", "--no-sandbox", "--remote-debugging-port=0", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-default-apps", "--disable-extensions", "--disable-sync",
    "--no-proxy-server", "--disable-dev-shm-usage", "--window-size=1300,900", "--metrics-recording-only", "about:blank",
)  # fmt: skip

KEYS = {"Enter": (13, "\r"), "End": (35, ""), "PageDown": (34, ""), "Escape": (27, "")}


class Page:
    """One tab.

    Attributes:
        asked: Every address that it asked for.
        statuses: The status of each answer.
        said: What the browser said in its console: refusals of the policy among it.
    """

    def __init__(self, chromium: Chromium, session: str) -> None:
        self._chromium, self._session = chromium, session
        self.asked: list[str] = []
        self.statuses: dict[str, int] = {}
        self._cells: dict[tuple[int, int], str] = {}
        self._at = (1, 1)
        self.said: list[str] = []

    async def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        return await self._chromium.call(method, self._session, **parameters)

    def take(self, method: str, given: dict[str, Any]) -> None:
        if method == "Network.requestWillBeSent":
            self.asked.append(given["request"]["url"])
        elif method == "Network.webSocketCreated":
            self.asked.append(given["url"])
        elif method == "Network.responseReceived":
            self.statuses[given["response"]["url"]] = given["response"]["status"]
        elif method == "Network.webSocketFrameReceived" and given["response"]["opcode"] == 2:
            text = base64.b64decode(given["response"]["payloadData"]).decode("utf-8", "replace")
            self._draw(text)
        elif method == "Log.entryAdded":
            self.said.append(given["entry"]["text"])

    def _draw(self, text: str) -> None:
        """Follow what the console draws: it only ever moves and writes."""
        for part in _PARTS.finditer(text):
            row, column = self._at
            if part[1] is not None:
                numbers = [int(number) for number in (part[1] or "1;1").split(";")]
                self._at = (numbers[0], numbers[1])
            elif part[2] == "\n":
                self._at = (row + 1, column)
            elif part[2]:
                self._cells[self._at] = part[2]
                self._at = (row, column + cell_len(part[2]))

    @property
    def screen(self) -> str:
        """The console's screen as text."""
        rows, columns = (max((place[axis] for place in self._cells), default=0) for axis in (0, 1))
        return "\n".join(
            "".join(self._cells.get((row, column), " ") for column in range(1, columns + 1))
            for row in range(1, rows + 1)
        )

    async def click_on(self, words: str) -> None:
        """Click into the middle of words on the console's screen."""
        await self.until_drawn(words)
        lines = self.screen.split("\n")
        row = next(index for index, line in enumerate(lines) if words in line)
        column = lines[row].index(words) + len(words) // 2
        x, y, width, height = await self.value(
            "(() => { const r = document.querySelector('.xterm-screen').getBoundingClientRect();"
            " return [r.x, r.y, r.width, r.height]; })()"
        )
        await self.click(x + width * (column + 0.5) / max(map(len, lines)), y + height * (row + 0.5) / len(lines))

    async def go(self, address: str) -> None:
        await self.call("Page.navigate", url=address)

    async def value(self, expression: str) -> Any:
        answer = await self.call("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
        return answer["result"].get("value")

    async def press(self, key: str) -> None:
        """A key of the keyboard: a named one, or a character."""
        code, text = KEYS.get(key, (0, key))
        event = {"key": key, "windowsVirtualKeyCode": code} if code else {"key": key}
        await self.call("Input.dispatchKeyEvent", type="keyDown", **event, **({"text": text} if text else {}))
        await self.call("Input.dispatchKeyEvent", type="keyUp", **event)

    async def click(self, x: float, y: float) -> None:
        for kind in ("mousePressed", "mouseReleased"):
            await self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    async def until(self, condition: Callable[[], object], what: str) -> None:
        deadline = time.monotonic() + DEADLINE
        while not condition():
            assert time.monotonic() < deadline, f"in vain: {what}; {self.said}\n{self.screen}"
            await asyncio.sleep(0.05)

    async def until_drawn(self, words: str) -> None:
        """Wait until these words stand on the console's screen."""
        await self.until(lambda: words in self.screen, f"it draws {words!r}")


class Chromium:
    """A running browser with a profile of its own."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self._socket = socket
        self._numbers = itertools.count(1)
        self._answers: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self._pages: dict[str, Page] = {}
        self.reading = asyncio.create_task(self._read())

    async def call(self, method: str, session: str = "", **parameters: Any) -> dict[str, Any]:
        """One command of the protocol."""
        number = next(self._numbers)
        answer = self._answers[number] = asyncio.get_running_loop().create_future()
        message = {"id": number, "method": method, "params": parameters}
        await self._socket.send_json({**message, "sessionId": session} if session else message)
        return await asyncio.wait_for(answer, DEADLINE)

    async def page(self, *, apart: bool = False) -> Page:
        """A new tab; `apart`: in a context of its own, with no cookie of the others."""
        context = (await self.call("Target.createBrowserContext"))["browserContextId"] if apart else None
        where = {"browserContextId": context} if context else {}
        target = (await self.call("Target.createTarget", url="about:blank", **where))["targetId"]
        session = (await self.call("Target.attachToTarget", targetId=target, flatten=True))["sessionId"]
        page = self._pages[session] = Page(self, session)
        for domain in ("Page", "Network", "Log", "Runtime"):
            await page.call(f"{domain}.enable")
        return page

    async def _read(self) -> None:
        async for message in self._socket:
            given = message.json()
            if "id" in given:
                waiting = self._answers.pop(given["id"])
                if "error" in given:
                    waiting.set_exception(RuntimeError(str(given["error"])))
                elif not waiting.done():
                    waiting.set_result(given["result"])
            elif given.get("sessionId") in self._pages:
                self._pages[given["sessionId"]].take(given["method"], given["params"])


@asynccontextmanager
async def chromium(profile: Path) -> AsyncIterator[Chromium]:
    """A headless browser for one test."""
    assert PROGRAM is not None
    command = [PROGRAM, *OPTIONS[:-1], f"--user-data-dir={profile}", OPTIONS[-1]]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        told = profile / "DevToolsActivePort"
        deadline = time.monotonic() + DEADLINE
        while not (told.exists() and told.read_text().count("\n") >= 1):
            assert process.poll() is None, f"{PROGRAM} ended with {process.returncode}"
            assert time.monotonic() < deadline, f"{PROGRAM} says no port"
            await asyncio.sleep(0.05)
        port, path = told.read_text().split("\n")[:2]
        async with (
            aiohttp.ClientSession() as client,
            client.ws_connect(f"ws://127.0.0.1:{port}{path}", max_msg_size=0) as socket,
        ):
            made = Chromium(socket)
            yield made
            made.reading.cancel()
    finally:
        process.terminate()
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
