"""`gonogo mcp`: a running release for agents, over standard input and output. Nothing here can decide."""

from __future__ import annotations

import argparse
import contextlib
import logging
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from console.commands.common import BAD_INPUT, DONE, say

if TYPE_CHECKING:
    from console.agents.agent import Agent


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of `gonogo mcp`."""
    parser.add_argument("--run", type=Path, metavar="RUN_DIR", help="the run (default: $GONOGO_RUN)")
    parser.add_argument(
        "--proposer", required=True, metavar="NAME", help="the agent's name in the queue and in the log; yours to give"
    )


def run(args: argparse.Namespace) -> int:
    """Serve until the input ends."""
    from console.commands.submit import run_folder

    try:
        import anyio

        from console.agents.agent import open_agent
        from console.agents.server import make_server  # noqa: F401 - to know now whether the SDK is there
    except ImportError:
        say("gonogo mcp: needs the MCP SDK, version 2.3 or newer; install it with: pip install 'gonogo[agents]'")
        return BAD_INPUT
    agent = open_agent(run_folder(args.run), args.proposer)
    _quiet()
    say(f"gonogo mcp: {agent.proposer} can ask and look at {agent.run_dir}, and decide nothing; end with Ctrl-C")
    # Nothing but messages may reach the output, whatever some library prints.
    with contextlib.redirect_stdout(sys.stderr):
        anyio.run(_serve, agent)
    return DONE


async def _serve(agent: Agent) -> None:
    from console.agents.server import make_server
    from console.agents.wire import wire

    server = make_server(agent)
    async with wire(0, 1) as (arrived, leaving):
        await server.run(arrived, leaving, server.create_initialization_options())


class _OneLine(logging.Formatter):
    """A record without its traceback, made safe: much of it repeats what an agent sent."""

    def format(self, record: logging.LogRecord) -> str:
        from console.safe_text import cut, safe

        return cut(safe(f"gonogo mcp: {record.getMessage()}"), 500)


def _quiet() -> None:
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_OneLine())
    handler.setLevel(logging.WARNING)
    for name in ("mcp", "gonogo.agents"):
        logger = logging.getLogger(name)
        logger.addHandler(handler)
        logger.propagate = False
