"""A running release for agents: what they can ask for and look at, as an MCP server. Nothing here can decide.

    arguments  what a tool takes: published as JSON Schema, and read by the same description
    asking     lay a job into the queue, or a remark into the log
    looking    proposals, stages, gates and the log, as data
    results    the bytes of result files, never of anything else
    tools      the table of all of these
    server     the table on the MCP SDK
    wire       standard input and output, one message a line

Only `server` and `wire` import the SDK, which comes with the extra `agents`.
"""
