"""The server from outside: what a stranger gets, what a visitor gets, and that no console outlives either."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import aiohttp
import pytest

from console.web.visitor import _cells
from tests.browser.serving import Serving, come_in, read_until, runs, serving, until
from tests.console import runs as run_folders


@pytest.fixture
def run_dir(tmp_path: Path) -> Iterator[Path]:
    """A release with a job that waits."""
    run = run_folders.BUILDERS["waiting"](tmp_path / "run")
    yield tmp_path / "run"
    run.close()


@pytest.fixture
async def client() -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession(cookie_jar=aiohttp.DummyCookieJar()) as made:
        yield made


async def refused(client: aiohttp.ClientSession, server: Serving, path: str, **headers: str) -> int:
    async with client.get(server.origin + path, headers=headers) as got:
        text = await got.text()
        assert run_folders.RUN_ID not in text
        assert "textual" not in text
        return got.status


async def test_strangers_get_nothing_and_start_nothing(run_dir: Path, client: aiohttp.ClientSession) -> None:
    with serving(run_dir) as server:
        for path in ("/", "/ws", "/static/js/textual.js", "/download/x", "/no/such"):
            assert await refused(client, server, path) == 403
        assert await refused(client, server, "/enter", Host="evil.example") == 403
        async with client.post(f"{server.origin}/enter", data="x", headers={"Origin": server.origin}) as got:
            assert (got.status, "Set-Cookie" in got.headers) == (403, False)
        browser = await come_in(client, server)
        # Somebody who has even seen the address of the page, without the cookie.
        assert await refused(client, server, browser.place) == 403
        assert await refused(client, server, f"{browser.place}static/js/textual.js") == 403
        for headers in ({"Cookie": "gonogo=x"}, {"Origin": "http://evil.example"}, {"Host": "evil.example"}):
            with pytest.raises(aiohttp.WSServerHandshakeError) as error:
                await browser.socket(**headers)
            assert error.value.status == 403
        assert server.children() == []


async def test_the_link_is_used_once(run_dir: Path, client: aiohttp.ClientSession) -> None:
    with serving(run_dir) as server:
        await come_in(client, server)
        async with client.post(f"{server.origin}/enter", data=server.token, headers={"Origin": server.origin}) as got:
            assert (got.status, "Set-Cookie" in got.headers) == (403, False)


async def test_every_answer_is_bound_and_names_nothing_from_elsewhere(
    run_dir: Path, client: aiohttp.ClientSession
) -> None:
    with serving(run_dir) as server:
        browser = await come_in(client, server)
        cookie = {"Cookie": f"gonogo={browser.cookie}"}
        for path in ("/enter", "/door.js", "/nothing", browser.place, f"{browser.place}static/js/textual.js"):
            async with client.get(server.origin + path, headers=cookie) as got:
                policy = got.headers["Content-Security-Policy"]
                assert "default-src 'none'" in policy
                assert "unsafe" not in policy
                assert "frame-ancestors 'none'" in policy
                assert got.headers["Referrer-Policy"] == "no-referrer"
        for name in ("", "console.css", "console.js"):
            status, text = await browser.get(browser.place + name)
            assert status == 200
            assert "http://" not in text
            assert "https://" not in text
        _, first = await browser.get(browser.place)
        _, second = await browser.get(browser.place)
        assert first != second, "each page has a nonce of its own"


async def test_a_visitor_sees_the_release_and_the_console_ends_with_the_page(
    run_dir: Path, client: aiohttp.ClientSession
) -> None:
    with serving(run_dir, "--visitors", 1) as server:
        browser = await come_in(client, server)
        page = await browser.socket()
        await read_until(page, run_folders.RUN_ID)
        (child,) = server.children()
        with pytest.raises(aiohttp.WSServerHandshakeError) as error:
            await browser.socket()
        assert error.value.status == 503
        await page.close()
        await until(lambda: not runs(child), "the console ended with its page")
        # The seat is free again, and the run's lock is back: this console decides, it does not look on.
        again = await browser.socket()
        drawn = await read_until(again, run_folders.RUN_ID)
        assert "has the console" not in drawn
        await again.close()


@pytest.mark.parametrize("message", ["no json", "[]", "{}", '["stdin", 7]', '["resize", {"width": null}]', "[" * 9999])
async def test_what_is_no_message_of_a_page_ends_that_visit_only(
    run_dir: Path, client: aiohttp.ClientSession, message: str
) -> None:
    with serving(run_dir) as server:
        browser = await come_in(client, server)
        page = await browser.socket()
        await read_until(page, run_folders.RUN_ID)
        await page.send_str(message)
        while (got := await page.receive(timeout=30)).type is aiohttp.WSMsgType.BINARY:
            pass
        assert (got.type, got.data) == (aiohttp.WSMsgType.CLOSE, 1003)
        assert server.process.poll() is None
        assert (await browser.get(browser.place))[0] == 200


@pytest.mark.parametrize(("asked", "given"), [(10**9, 1000), (0, 1), (-5, 1), (120, 120), ("80", 80)])
def test_a_page_cannot_ask_for_a_terminal_without_end(asked: object, given: int) -> None:
    assert _cells(asked) == given


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
async def test_every_console_ends_with_the_server(run_dir: Path, client: aiohttp.ClientSession, number: int) -> None:
    with serving(run_dir) as server:
        browser = await come_in(client, server)
        pages = [await browser.socket(), await browser.socket()]
        for page in pages:
            await read_until(page, run_folders.RUN_ID)
        children = server.children()
        assert len(children) == 2
        status = await asyncio.to_thread(server.end, number)
        assert status == 0
        assert [child for child in children if runs(child)] == []


async def test_every_console_ends_with_a_server_that_is_killed(run_dir: Path, client: aiohttp.ClientSession) -> None:
    with serving(run_dir) as server:
        browser = await come_in(client, server)
        await read_until(await browser.socket(), run_folders.RUN_ID)
        (child,) = server.children()
        await asyncio.to_thread(server.end, signal.SIGKILL)
        await until(lambda: not runs(child), "the console noticed that nobody is left")


async def test_a_console_that_hangs_is_killed(run_dir: Path, client: aiohttp.ClientSession) -> None:
    with serving(run_dir) as server:
        browser = await come_in(client, server)
        page = await browser.socket()
        await read_until(page, run_folders.RUN_ID)
        (child,) = server.children()
        os.kill(child, signal.SIGSTOP)
        await page.close()
        await until(lambda: not runs(child), "the console that did nothing any more was killed")


async def test_a_folder_of_releases_is_served_as_the_fleet(run_dir: Path, client: aiohttp.ClientSession) -> None:
    with serving(run_dir.parent) as server:
        browser = await come_in(client, server)
        page = await browser.socket()
        await read_until(page, "WAITS FOR YOU")
        await page.close()


def gonogo(*arguments: object, cwd: Path) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    command = [sys.executable, "-m", "console", "serve", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, cwd=cwd, env=environment)


def test_a_busy_port_is_one_line(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        ended = gonogo("--port", port, cwd=tmp_path)
    assert ended.returncode == 2
    assert ended.stderr == (
        f"gonogo serve: port {port} on 127.0.0.1 cannot be used: another program has it; "
        "choose one with --port, 0 for any\n"
    )


def test_a_folder_that_is_not_there_is_one_line(tmp_path: Path) -> None:
    ended = gonogo("nowhere", cwd=tmp_path)
    assert (ended.returncode, ended.stderr.count("\n")) == (2, 1)
    assert "nowhere: no such folder" in ended.stderr


def test_without_the_extra_it_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from console.cli import main

    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert main(["serve"]) == 2
    assert capsys.readouterr().err == (
        "gonogo serve: needs textual-serve; install it with: pip install 'gonogo[browser]'\n"
    )


@pytest.mark.parametrize("wrong", ["65536", "-1", "x", "1e3"])
def test_a_port_that_is_none_is_refused(wrong: str, capsys: pytest.CaptureFixture[str]) -> None:
    from console.cli import main

    assert main(["serve", f"--port={wrong}"]) == 2
    assert "no whole number from 0 to 65535" in capsys.readouterr().err
