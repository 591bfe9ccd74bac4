"""`python -m tests.benchmarks.delay PORT SECONDS`: forwards connections on loopback, every byte so much later.

Bytes are late, not slow: what was sent together arrives together. It prints its own port, and ends with its input.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import sys

CHUNK = 65536


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, seconds: float) -> None:
    """Pass bytes on, each after its time; their end too."""
    loop = asyncio.get_running_loop()
    on_its_way: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue()

    async def deliver() -> None:
        while True:
            due, chunk = await on_its_way.get()
            await asyncio.sleep(due - loop.time())
            if not chunk:
                break
            writer.write(chunk)
            await writer.drain()
        writer.write_eof()

    delivering = asyncio.create_task(deliver())
    with contextlib.suppress(OSError):
        while chunk := await reader.read(CHUNK):
            on_its_way.put_nowait((loop.time() + seconds, chunk))
    on_its_way.put_nowait((loop.time() + seconds, b""))
    with contextlib.suppress(OSError, RuntimeError):
        await delivering


async def forward(port: int, seconds: float) -> None:
    """Forward until the standard input ends."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        back, onward = await asyncio.open_connection("127.0.0.1", port)
        for end in (writer, onward):
            end.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        await asyncio.gather(_pump(reader, onward, seconds), _pump(back, writer, seconds))
        for end in (writer, onward):
            end.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await asyncio.to_thread(sys.stdin.read)


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(forward(int(sys.argv[1]), float(sys.argv[2])))
