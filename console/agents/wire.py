"""Standard input and output as a transport of the SDK: one JSON message a line, in both directions.

The SDK's own drops a line that is no message without a word, and takes lines of any length; a program that waits
for the answer would wait for ever. Here each gets one error, with the request's id where it has one.
"""

from __future__ import annotations

import json
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio
import anyio.to_thread
import mcp_types as types
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.shared.message import SessionMessage
from pydantic import ValidationError

MAX_LINE_BYTES = 16 << 20
"""Of one message: more than any tool takes."""

_CHUNK = 1 << 16

Incoming = SessionMessage | Exception


@asynccontextmanager
async def wire(
    source: int, sink: int
) -> AsyncIterator[tuple[MemoryObjectReceiveStream[Incoming], MemoryObjectSendStream[SessionMessage]]]:
    """Serve over two descriptors until the first one ends.

    Args:
        source: Descriptor that messages are read from.
        sink: Descriptor that messages are written to.
    """
    arrived, to_server = anyio.create_memory_object_stream[Incoming](0)
    from_server, leaving = anyio.create_memory_object_stream[SessionMessage](0)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(_read, source, arrived, from_server.clone())
        tasks.start_soon(_write, sink, leaving)
        yield to_server, from_server


async def _read(
    source: int, arrived: MemoryObjectSendStream[Incoming], answers: MemoryObjectSendStream[SessionMessage]
) -> None:
    """Split what arrives into lines, and hand on those that are messages."""
    line, too_long = bytearray(), False
    async with arrived, answers:
        # A thread that reads is left behind when the server is stopped: nothing else can interrupt it.
        while data := await anyio.to_thread.run_sync(os.read, source, _CHUNK, abandon_on_cancel=True):
            first, *rest = data.split(b"\n")
            parts = [first, *rest]
            for number, part in enumerate(parts):
                line += part[: MAX_LINE_BYTES + 1 - len(line)]
                too_long = too_long or len(line) > MAX_LINE_BYTES
                if number < len(parts) - 1:
                    await _hand_on(bytes(line), too_long, arrived, answers)
                    line, too_long = bytearray(), False


async def _hand_on(
    line: bytes,
    too_long: bool,
    arrived: MemoryObjectSendStream[Incoming],
    answers: MemoryObjectSendStream[SessionMessage],
) -> None:
    if not line.strip():
        return
    if too_long:
        await answers.send(_error(None, types.INVALID_REQUEST, f"expected a message of at most {MAX_LINE_BYTES} bytes"))
        return
    try:
        message = types.jsonrpc_message_adapter.validate_json(line, by_name=False)
    except (ValidationError, ValueError, RecursionError):
        await answers.send(_complaint(line))
        return
    await arrived.send(SessionMessage(message))


def _complaint(line: bytes) -> SessionMessage:
    """What is wrong with a line that is no message; with the id of the request where it can be read."""
    try:
        text = line.decode("utf-8")
    except UnicodeDecodeError as error:
        return _error(None, types.PARSE_ERROR, f"expected UTF-8, found other bytes at {error.start}")
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return _error(None, types.PARSE_ERROR, "expected one JSON object in one line, not too deep")
    known = found.get("id") if isinstance(found, dict) else None
    usable = type(known) is int or (isinstance(known, str) and not _has_halves(known))
    what = "expected a message of JSON-RPC 2.0"
    if _has_halves(text) or _has_halves(json.dumps(found, ensure_ascii=False)):
        what = "expected text without halves of surrogate pairs"
    return _error(known if usable else None, types.INVALID_REQUEST, what)


def _has_halves(text: str) -> bool:
    return any("\ud800" <= character <= "\udfff" for character in text)


def _error(request_id: int | str | None, code: int, message: str) -> SessionMessage:
    data = types.ErrorData(code=code, message=message)
    return SessionMessage(types.JSONRPCError(jsonrpc="2.0", id=request_id, error=data))


async def _write(sink: int, leaving: MemoryObjectReceiveStream[SessionMessage]) -> None:
    async with leaving:
        async for item in leaving:
            text = item.message.model_dump_json(by_alias=True, exclude_unset=True)
            await anyio.to_thread.run_sync(_write_all, sink, text.encode("utf-8") + b"\n", abandon_on_cancel=True)


def _write_all(sink: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(sink, view) :]
