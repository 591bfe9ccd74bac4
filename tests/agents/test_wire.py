"""One JSON message a line: whatever the lines are, each request gets one answer, and the server goes on."""

from __future__ import annotations

import asyncio
import json
import os
from typing import Any

from tests.agents.sdk import require_sdk

require_sdk()

from console.agents.agent import Agent  # noqa: E402 - only where there is the SDK
from console.agents.server import make_server  # noqa: E402
from console.agents.wire import MAX_LINE_BYTES, wire  # noqa: E402
from tests.agents.agents import SCRIPT, agent_at  # noqa: E402
from tests.asking.desks import Desk  # noqa: E402

HELLO = {
    "jsonrpc": "2.0",
    "id": 0,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"},
    },
}


def ping(number: int) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": number, "method": "ping"}).encode()


async def serve(agent: Agent, data: bytes, answers: int) -> list[dict[str, Any]]:
    """So many answers of the server to these bytes, after it was greeted; the input ends when they are there."""
    source, feed = os.pipe()
    take, sink = os.pipe()
    server = make_server(agent)
    ready = json.dumps({"jsonrpc": "2.0", "method": "notifications/initialized"}).encode()
    found: list[dict[str, Any]] = []

    def write() -> None:
        view = memoryview(json.dumps(HELLO).encode() + b"\n" + ready + b"\n" + data)
        while view:
            view = view[os.write(feed, view) :]

    def read() -> None:
        with os.fdopen(take, "rb") as stream:
            found.extend(json.loads(stream.readline()) for _ in range(answers + 1))
            os.close(feed)

    threads = [asyncio.create_task(asyncio.to_thread(work)) for work in (write, read)]
    async with wire(source, sink) as (arrived, leaving):
        await server.run(arrived, leaving, server.create_initialization_options())
    await asyncio.gather(*threads)
    os.close(sink)
    os.close(source)
    return found


def test_lines_that_are_no_messages_get_one_error_each(desk: Desk) -> None:
    lines = [
        b"hello",
        b"\xff\xfe",
        b"[1, 2]",
        b'{"jsonrpc": "2.0", "id": 5}',
        b'{"jsonrpc": "1.0", "id": 6, "method": "ping"}',
        b'{"jsonrpc": "2.0", "id": 7, "method": "ping", "params": "\\ud800"}',
        b"[" * 100_000,
        b"x" * (MAX_LINE_BYTES + 1),
    ]
    data = b"".join(line + b"\n\n" + ping(100 + number) + b"\n" for number, line in enumerate(lines))
    answers = desk.loop.run(serve(agent_at(desk), data, 2 * len(lines)))
    assert {answer["id"] for answer in answers if "result" in answer} == {0, *range(100, 100 + len(lines))}
    errors = [answer for answer in answers if "error" in answer]
    assert len(errors) == len(lines)
    assert {error["id"] for error in errors} == {None, 5, 6, 7}
    assert any("at most" in error["error"]["message"] for error in errors)


def test_tools_over_the_wire(desk: Desk) -> None:
    calls: list[dict[str, Any]] = [
        {"name": "propose_job", "arguments": {"script": SCRIPT, "summary": "Look around"}},
        {"name": "approve", "arguments": {}},
        {"name": "propose_job", "arguments": {"script": SCRIPT}},
    ]
    requests = [{"jsonrpc": "2.0", "id": 1, "method": "tools/list"}]
    requests += [{"jsonrpc": "2.0", "id": n, "method": "tools/call", "params": call} for n, call in enumerate(calls, 2)]
    data = b"".join(json.dumps(request).encode() + b"\n" for request in requests)
    answers = {answer["id"]: answer for answer in desk.loop.run(serve(agent_at(desk), data, 4))}
    listed = answers[1]["result"]["tools"]
    assert [tool["name"] for tool in listed if not tool["annotations"]["readOnlyHint"]] == ["propose_job", "write_note"]
    assert answers[2]["result"]["structuredContent"]["state"] == "pending"
    assert "there is no such tool" in answers[3]["error"]["message"]
    assert answers[4]["result"]["isError"]
    assert "summary" in answers[4]["result"]["content"][0]["text"]
