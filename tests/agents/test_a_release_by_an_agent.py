"""An agent asks over MCP, operators decide from elsewhere, jobs run on a cluster, and the log says who did what."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from watchfiles import awatch

from backends.sandbox import lifecycle
from backends.sandbox.store import read_record
from console import cli
from console.release.folder import account
from tests.agents.sdk import require_sdk
from tests.kills.releases import ROOT, Lab

require_sdk()

from mcp import Client, StdioServerParameters  # noqa: E402 - only where there is the SDK

pytestmark = pytest.mark.xdist_group("agents")

INSTANT = f"#!/bin/sh\nexport PYTHONPATH={ROOT}\nexec {sys.executable} -m tests.kills.instant_job "
JOBS: dict[str, tuple[str, dict[str, str]]] = {
    "stage_target": (
        'stage_target --target demo/tiny --revision "$1" --path /models/tiny\n',
        {"stage_target": "stage_target.json", "target_check": "target_check.json"},
    ),
    "data": ("data\n", {"data": "data.json"}),
    "train": (
        'train --export "$PWD/export"\n',
        {"regression_check": "regression_check.json", "export_check": "export_check.json"},
    ),
    "smoke": ('smoke --export "$1"\n', {"smoke": "smoke.json"}),
    "bench": ('bench --drafter "$1" --manifest "$2"\n', {"bench": "bench.json", "exact_match": "exact_match.json"}),
}


@pytest.fixture(scope="module")
def run_dir(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A release that waits for its first OK while an agent asks for jobs."""
    folder = tmp_path_factory.mktemp("agents")
    lab = Lab.make(folder)
    command = [sys.executable, "-m", "console", *lab.run_arguments("r"), "--headless", "--approve-submissions", "each"]
    conductor = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert conductor.stdout is not None
    for line in conductor.stdout:
        if " Proposed " in line:
            break
    try:
        yield folder / "r"
    finally:
        conductor.terminate()
        conductor.stdout.close()
        conductor.wait(30)
        lifecycle.end_jobs(folder / "cluster")
        lifecycle.stop(folder / "cluster")


class Robot:
    """A program that speaks MCP with `gonogo mcp`, and nothing else."""

    def __init__(self, client: Client, run_dir: Path) -> None:
        self.client = client
        self._run_dir = run_dir

    async def call(self, name: str, **arguments: Any) -> dict[str, Any]:
        """Call a tool that must not refuse."""
        result = await self.client.call_tool(name, arguments)
        assert not result.is_error, result.content
        assert isinstance(result.structured_content, dict)
        return result.structured_content

    async def ask_for(self, kind: str, *arguments: str) -> dict[str, Any]:
        words, results = JOBS[kind]
        return await self.call(
            "propose_job",
            script=INSTANT + words,
            summary=f"Write what {kind} writes",
            options=["--time=5", f"--job-name={kind}"],
            arguments=list(arguments),
            results=results,
        )

    async def until(self, tool: str, fits: Callable[[dict[str, Any]], bool], **arguments: Any) -> dict[str, Any]:
        """Ask whenever something was written into the run folder, until the answer fits."""
        if fits(found := await self.call(tool, **arguments)):
            return found
        async for _ in awatch(self._run_dir, step=20, debounce=20, rust_timeout=500, yield_on_timeout=True):
            if fits(found := await self.call(tool, **arguments)):
                return found
        raise AssertionError("the watch ended")

    async def state_is(self, name: str, *wanted: str) -> dict[str, Any]:
        return await self.until("job_state", lambda found: found["state"] in wanted, id=name)

    async def result(self, done: dict[str, Any], kind: str) -> Any:
        path = next(item["path"] for item in done["results"] if item["kind"] == kind)
        read = await self.call("read_result", path=path)
        assert (read["next_offset"], read["as_logged"]) == (None, True)
        return json.loads(read["text"])


@asynccontextmanager
async def robot(run_dir: Path) -> AsyncIterator[Robot]:
    arguments = ["-m", "console", "mcp", "--run", str(run_dir), "--proposer", "robot"]
    server = StdioServerParameters(command=sys.executable, args=arguments, cwd=ROOT)
    async with Client(server) as client:
        yield Robot(client, run_dir)


def approve(run_dir: Path, asked: dict[str, Any]) -> None:
    """What an operator types in another terminal."""
    assert cli.main(["queue", "approve", str(run_dir), asked["id"], "--digest", asked["digest"]]) == 0


def log_of(run_dir: Path, capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    capsys.readouterr()
    assert cli.main(["log", str(run_dir), "--json"]) == 0
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


async def test_a_job_is_asked_for_approved_run_and_read(run_dir: Path) -> None:
    async with robot(run_dir) as agent:
        asked = await agent.call(
            "propose_job",
            script='#!/bin/sh\ncat tool.txt "$@"\nprintf \'{"answer": 42}\' > answer.json\n',
            summary="Look for the answer",
            options=["-t", "5", "-c", "2"],
            arguments=["-"],
            uploads={"tool.txt": "carried along\n"},
            results={"answer": "answer.json"},
        )
        assert (await agent.call("job_state", id=asked["id"]))["state"] == "pending"
        listed = await agent.call("list_jobs")
        (mine,) = [job for job in listed["jobs"] if job["id"] == asked["id"]]
        assert (mine["digest"], mine["proposer"], mine["decided_by"]) == (asked["digest"], "robot", "")
        command = [sys.executable, "-m", "console", "queue", "approve", str(run_dir), asked["id"]]
        subprocess.run([*command, "--digest", asked["digest"]], cwd=ROOT, check=True, capture_output=True)
        taken = await agent.state_is(asked["id"], "submitted", "results read")
        assert (int(taken["job_id"]) > 100, taken["decided_by"]) == (True, account())
        done = await agent.state_is(asked["id"], "results read")
        assert await agent.result(done, "answer") == {"answer": 42}
        files = (await agent.call("list_results"))["files"]
        assert [file["path"] for file in files] == [f"{asked['id']}/answer.json"]
        # The flow's own first job still waits: nothing of this concerns it.
        stages = {stage["name"]: stage for stage in (await agent.call("release_state"))["stages"]}
        assert [attempt["outcome"] for attempt in stages["stage_target"]["attempts"]] == ["proposed"]


async def test_the_jobs_of_a_release_are_driven_by_an_agent_and_decided_by_people(
    run_dir: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = len(log_of(run_dir, capsys))
    async with robot(run_dir) as agent:
        first = {kind: await agent.ask_for(kind, *(["a" * 40] if kind == "stage_target" else []))
                 for kind in ("stage_target", "data", "train")}  # fmt: skip
        reason = ["--reason", "say which data"]
        assert cli.main(["queue", "reject", str(run_dir), first["data"]["id"], *reason]) == 0
        no = await agent.state_is(first["data"]["id"], "rejected")
        assert (no["decided_by"], no["reason"]) == (account(), "say which data")
        noted = await agent.call("write_note", text="asking for the data again")
        first["data"] = await agent.ask_for("data", "prompts-1")
        for asked in first.values():
            approve(run_dir, asked)
        done = {kind: await agent.state_is(asked["id"], "results read") for kind, asked in first.items()}
        export = (await agent.result(done["train"], "regression_check"))["export_path"]
        second = {
            "smoke": await agent.ask_for("smoke", export),
            "bench": await agent.ask_for("bench", export, "f" * 64),
        }
        for asked in second.values():
            approve(run_dir, asked)
        done |= {kind: await agent.state_is(asked["id"], "results read") for kind, asked in second.items()}
        assert (await agent.result(done["bench"], "bench"))["arms"]["B"]["drafter"] == export
        assert (await agent.result(done["smoke"], "smoke"))["server"]["drafter"] == export

        def logged(found: dict[str, Any]) -> bool:
            return any(entry["data"].get("request") == noted["request"] for entry in found["entries"])

        seen = await agent.until("read_log", logged, last=500)
    entries = log_of(run_dir, capsys)
    assert (seen["sound"], seen["entries"]) == (True, entries[: len(seen["entries"])])
    by_event: dict[str, set[tuple[str, str]]] = {}
    for entry in entries[before:]:
        said = entry["data"].get("decision", "")
        key = f"{entry['data']['event']} {said}".strip()
        by_event.setdefault(key, set()).add((entry["kind"], entry["actor"]))
    operator = f"operator:{account()}"
    assert by_event["job_proposed"] == {("ACTION", "proposer:robot")}
    assert by_event["remark"] == {("ACTION", "proposer:robot")}
    assert by_event["job_decided approved"] == {("ACTION", operator)}
    assert by_event["job_decided rejected"] == {("HUMAN_INTERVENTION", operator)}
    rest = {pair for event, pairs in by_event.items() for pair in pairs if event.split()[0] not in
            ("job_proposed", "remark", "job_decided")}  # fmt: skip
    assert rest == {("ACTION", "conductor")}
    names = [item["name"].rpartition("-")[0] for item in read_record(run_dir.parent / "cluster" / "accepted.jsonl")]
    assert sorted(name for name in names if name in JOBS) == sorted(JOBS), "each was submitted once"
