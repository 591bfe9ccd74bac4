"""The table of tools on the official MCP SDK, over any transport of it."""

from __future__ import annotations

import json
from importlib import metadata
from typing import Any

import anyio
import anyio.to_thread
import mcp_types as types
from mcp.server import Server, ServerRequestContext
from mcp.shared.exceptions import MCPError

from console.agents import tools
from console.agents.agent import Agent
from console.agents.arguments import schema


def make_server(agent: Agent) -> Server[Any]:
    """A server for one agent at one run."""
    limiter = anyio.CapacityLimiter(1)

    async def list_tools(
        context: ServerRequestContext[Any], params: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        return types.ListToolsResult(tools=[_published(tool) for tool in tools.TOOLS])

    async def call_tool(
        context: ServerRequestContext[Any], params: types.CallToolRequestParams
    ) -> types.CallToolResult:
        # One at a time, and in a thread: a slow disk must not keep the server from answering.
        try:
            found = await anyio.to_thread.run_sync(
                tools.call, agent, params.name, params.arguments or {}, limiter=limiter
            )
        except tools.NoSuchTool as error:
            raise MCPError(types.INVALID_PARAMS, str(error)) from None
        except tools.Refused as error:
            return types.CallToolResult(content=[types.TextContent(text=str(error))], is_error=True)
        text = json.dumps(found, ensure_ascii=True, allow_nan=False)
        return types.CallToolResult(content=[types.TextContent(text=text)], structured_content=found)

    return Server(
        "gonogo",
        version=_version(),
        instructions=tools.ABOUT,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
    )


def _published(tool: tools.Tool) -> types.Tool:
    hints = types.ToolAnnotations(
        read_only_hint=not tool.writes, destructive_hint=False, idempotent_hint=not tool.writes, open_world_hint=False
    )
    return types.Tool(name=tool.name, description=tool.about, input_schema=schema(tool.fields), annotations=hints)


def _version() -> str:
    try:
        return metadata.version("gonogo")
    except metadata.PackageNotFoundError:
        return ""
