"""A job of the demo is approved in a real browser, and a second page without the link gets nothing."""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from backends.sandbox import lifecycle
from console.release import queue
from console.screens.approval_guard import GRACE_SECONDS
from tests.browser.chromium import PROGRAM, Page, chromium
from tests.browser.serving import serving


@pytest.fixture
def demo(tmp_path: Path) -> Iterator[Path]:
    """A demo whose first job waits for an OK, conducted by a process of its own."""
    if PROGRAM is None and os.environ.get("CI") == "true":
        pytest.fail("no chromium here; python3 -m tests.cluster install", pytrace=False)
    if PROGRAM is None:
        pytest.skip("no chromium here; python3 -m tests.cluster install")
    run_dir, place = tmp_path / "demo", tmp_path / "demo.cluster"
    command = [sys.executable, "-m", "console", "demo", "--headless", "--run-dir", str(run_dir), "--wait", "110"]
    conductor = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        assert conductor.stdout is not None
        assert any(" Proposed " in line for line in conductor.stdout), "no job was proposed"
        yield run_dir
    finally:
        conductor.terminate()
        conductor.communicate(timeout=60)
        if place.exists():
            lifecycle.end_jobs(place)
            lifecycle.stop(place)


async def test_one_approval_and_nothing_for_a_page_without_the_link(demo: Path, tmp_path: Path) -> None:
    (name,) = queue.ids(demo)
    proposal = queue.load(demo, name)
    with serving(demo) as server:
        async with chromium(tmp_path / "profile") as browser:
            page = await browser.page()
            await page.go(server.link)
            await page.until_drawn(demo.name)
            assert server.token not in await page.value("location.href + document.documentElement.outerHTML")
            assert await page.value("document.cookie") == "", "no script can read the pass"

            # The console itself: to the queue, open the job, read it to its end, open the field, type its code.
            await page.until_drawn("Waiting for you")
            await page.until(lambda: page.screen.count("needs YOU") > 1, "the job is on the board")
            await page.press("w")
            await page.press("Enter")
            await page.until_drawn("locked: read the job to its end first")
            while "locked: read the job" in page.screen:
                await page.press("PageDown")
                await asyncio.sleep(0.05)
            await approve(page, proposal)
            decided = queue.decision_of(proposal)
            assert decided is not None
            assert (decided.decision, decided.digest) == ("approved", proposal.digest)
            assert decided.terminal == f"browser on {socket.gethostname()}"
            assert decided.seen_to_end is True

            # Whoever has no pass: the link again, its door, the page's own address.
            stranger = await browser.page(apart=True)
            place = await page.value("location.href")
            for address in (server.link, place, f"{server.origin}/"):
                await stranger.go(address)
                await stranger.until(lambda: server.origin in str(stranger.asked[-1:]), "it asked")
                wanted = "used already" if address == server.link else "no pass"
                deadline = time.monotonic() + 30
                while wanted not in (text := await stranger.value("document.body.innerText") or ""):
                    assert time.monotonic() < deadline, text
                    await asyncio.sleep(0.05)
                assert demo.name not in text
            assert stranger.screen == ""
            assert stranger.statuses[place] == 403
            opened = f"""new Promise(done => {{ const s = new WebSocket('ws' + {place!r}.slice(4) + 'ws');
                s.onopen = () => done('open'); s.onerror = () => done('refused'); }})"""
            assert await stranger.value(opened) == "refused"
            assert len(server.children()) == 1

            foreign = [url for url in page.asked if url.partition("://")[2].partition("/")[0] not in server.origin]
            assert foreign == [], "nothing is loaded from elsewhere"
            assert [text for text in page.said if "Content Security Policy" in text] == []


async def approve(page: Page, proposal: queue.Proposal) -> None:
    """Open the field by a click on its words, type the code, and press enter as a person does."""
    await page.click_on("a approve")
    code, empty = proposal.job().code, "code, 8 hex digits"  # what stands in the open field while it is empty
    await page.until_drawn(f"Type {code} and press enter")
    await page.until_drawn(empty)
    shown = page.screen.count(code)
    for character in code:
        await page.press(character)
    await page.until(lambda: empty not in page.screen and page.screen.count(code) > shown, "the code is in the field")
    # Enter within half a second of the first digit does not count: nobody types so fast.
    await asyncio.sleep(GRACE_SECONDS + 0.1)
    await page.press("Enter")
    await page.until(lambda: queue.decision_of(proposal) is not None, "the job is approved")
