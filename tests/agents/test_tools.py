"""What each tool gives and refuses; result files come from the run folder or not at all."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from console.agents import tools
from console.agents.agent import open_agent
from console.agents.arguments import schema
from console.release import deciding, folder, queue
from console.release.errors import InputError
from console.release.folder import FolderError
from console.release.state import Outcome
from tests.agents.agents import SCRIPT, agent_at, files_of, left_by_agents, proposed
from tests.asking.desks import Desk
from tests.release.making import decision


def refused(agent: Any, tool: str, **given: Any) -> str:
    with pytest.raises(tools.Refused) as caught:
        tools.call(agent, tool, given)
    said = str(caught.value)
    assert "\n" not in said
    assert "a fault of gonogo itself" not in said
    return said


def test_a_job_is_asked_for_and_followed(desk: Desk) -> None:
    agent = agent_at(desk)
    asked = proposed(agent, options=["-p", "batch", "-c", "2"], uploads={"a.txt": "text\n"}, results={"x": "x.json"})
    assert (asked["state"], asked["digest"]) == ("pending", queue.load(desk.run_dir, asked["id"]).digest)
    desk.look()
    assert tools.call(agent, "job_state", {"id": asked["id"]})["state"] == "pending"
    (listed,) = tools.call(agent, "list_jobs", {})["jobs"]
    assert (listed["id"], listed["proposer"]) == (asked["id"], "robot")
    deciding.decide(desk.run_dir, decision(queue.load(desk.run_dir, asked["id"])))
    for _ in range(2):
        desk.look()
    done = tools.call(agent, "job_state", {"id": asked["id"]})
    assert (done["state"], done["job_id"], done["decided_by"]) == ("submitted", "100", "alice")


def test_stages_gates_and_log_are_seen(desk: Desk) -> None:
    agent = agent_at(desk)
    seen = tools.call(agent, "release_state", {})
    assert seen["verdict"] is None
    assert {stage["name"]: stage["status"] for stage in seen["stages"]}["setup"] == "passed"
    assert tools.call(agent, "gate_verdicts", {}) == {"gates": []}
    log = tools.call(agent, "read_log", {"last": 2})
    assert (len(log["entries"]), log["sound"]) == (2, True)
    assert log["entries"][-1]["seq"] == desk.process.writer.state.entries
    assert "one of setup" in refused(agent, "gate_verdicts", stage="training")


def test_a_proposal_that_the_desk_refused_says_why(desk: Desk) -> None:
    agent = agent_at(desk)
    asked = proposed(agent)
    file = desk.run_dir / "submissions" / asked["id"] / "job.json"
    file.write_bytes(file.read_bytes().replace(b'"alice"', b'"mallory"'))
    desk.look()
    found = tools.call(agent, "job_state", {"id": asked["id"]})
    assert found["state"] == "invalidated"
    assert "mallory" in found["problem"]


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({"script": "echo"}, "#!"),
        ({"script": 3}, "script"),
        ({"script": "#!/bin/sh\n\x1b[2J"}, "script"),
        ({"summary": "one\ntwo"}, "summary"),
        ({"summary": "right to left \u202e"}, "summary"),
        ({"options": ["job.sh"]}, "job.sh"),
        ({"options": ["--wrap=true"]}, "--wrap"),
        ({"options": ["--export=ALL"]}, "--export"),
        ({"options": ["--export=PATH"]}, "--export"),
        ({"options": "-t 5"}, "options"),
        ({"options": ["--wait"]}, "--wait"),
        ({"uploads": {"../x": ""}}, "uploads"),
        ({"uploads": {"/etc/passwd": ""}}, "uploads"),
        ({"results": {"x": "../../x"}}, "results"),
        ({"results": {"x": "/etc/passwd"}}, "results"),
        ({"results": {"../x": "x"}}, "results"),
        ({"decision": "approved"}, "decision"),
    ],
)
def test_what_cannot_be_asked_for_leaves_nothing(desk: Desk, given: dict[str, Any], named: str) -> None:
    agent = agent_at(desk)
    before = files_of(desk.run_dir)
    assert named in refused(agent, "propose_job", **{"script": SCRIPT, "summary": "x", **given})
    assert left_by_agents(before, desk.run_dir) == []


def test_there_is_room_for_so_many_jobs(desk: Desk) -> None:
    agent = agent_at(desk, most_waiting=2)
    for _ in range(2):
        proposed(agent)
    assert "fewer than 2 jobs" in refused(agent, "propose_job", script=SCRIPT, summary="x")
    agent = replace(agent, most_waiting=9, most_asked=2)
    assert "fewer than 2 jobs of other programs" in refused(agent, "propose_job", script=SCRIPT, summary="x")


def test_a_note_waits_for_the_conductor(desk: Desk) -> None:
    agent = agent_at(desk, most_remarks=1)
    assert "nobody conducts" in refused(agent, "write_note", text="hello")
    lock = folder.Lock(desk.run_dir, "conductor")
    try:
        tools.call(agent, "write_note", {"text": "hello"})
        assert "fewer than 1" in refused(agent, "write_note", text="again")
    finally:
        lock.close()


def test_a_closed_release_takes_nothing(desk: Desk) -> None:
    desk.process.writer.record("verdict", "INFEASIBLE", verdict="INFEASIBLE", detail="", failure_class="UNKNOWN")
    agent = agent_at(desk)
    assert "the release is closed" in refused(agent, "propose_job", script=SCRIPT, summary="x")
    assert "the release is closed" in refused(agent, "write_note", text="x")


@pytest.fixture
def results(desk: Desk) -> Path:
    kept = desk.run_dir / "results" / "001"
    kept.mkdir(parents=True)
    (kept / "smoke.json").write_bytes('{"text": "größe"}'.encode())
    (kept / "bytes").write_bytes(bytes(range(256)))
    return desk.run_dir / "results"


def test_a_result_is_read_in_parts(desk: Desk, results: Path) -> None:
    agent = agent_at(desk)
    paths = {file["path"]: file["size"] for file in tools.call(agent, "list_results", {})["files"]}
    assert paths == {"001/smoke.json": 19, "001/bytes": 256}
    text, offset = "", 0
    while offset is not None:
        part = tools.call(agent, "read_result", {"path": "001/smoke.json", "offset": offset, "length": 16})
        text += part["text"]
        offset = part["next_offset"]
    assert text == '{"text": "größe"}'
    assert "base64" in tools.call(agent, "read_result", {"path": "001/bytes"})


@pytest.mark.parametrize(
    "path",
    ["../release.yaml", "/etc/passwd", "001/../../release.yaml", "001//smoke.json", "001/./smoke.json", "001", ".",
     "link.json", "folder-link/release.yaml", "pipe", "hard/../../specdec_state.json", "001/smoke.json\0", "nothing",
     ".hidden", "a/b/c/d/e/f/g", "001\\smoke.json", "%2e%2e/release.yaml", "~/x"],
)  # fmt: skip
def test_nothing_outside_the_results_is_read(desk: Desk, results: Path, path: str) -> None:
    (results / "link.json").symlink_to(desk.run_dir / "release.yaml")
    (results / "folder-link").symlink_to(desk.run_dir)
    (results / ".hidden").write_text("secret")
    os.mkfifo(results / "pipe")
    agent = agent_at(desk)
    said = refused(agent, "read_result", path=path)
    assert "read_result: path" in said
    listed = [file["path"] for file in tools.call(agent, "list_results", {})["files"]]
    assert listed == ["001/bytes", "001/smoke.json"]


def test_results_that_are_a_link_hold_nothing(desk: Desk, results: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    results.rename(elsewhere)
    results.symlink_to(elsewhere)
    agent = agent_at(desk)
    assert tools.call(agent, "list_results", {}) == {"files": [], "complete": False}
    assert "read_result: path" in refused(agent, "read_result", path="001/smoke.json")


def test_every_tool_publishes_what_it_reads(desk: Desk) -> None:
    for tool in tools.TOOLS:
        published = schema(tool.fields)
        json.dumps(published)
        assert published["additionalProperties"] is False
        assert set(published["properties"]) == set(tool.fields)
    with pytest.raises(tools.NoSuchTool, match="propose_job"):
        tools.call(agent_at(desk), "approve", {})


def test_a_fault_of_ours_is_one_line_too(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queue, "ids", lambda run_dir: 1 / 0)
    with pytest.raises(tools.Refused, match="a fault of gonogo itself: ZeroDivisionError"):
        tools.call(agent_at(desk), "list_jobs", {})


def test_who_is_no_agent_is_refused(desk: Desk, tmp_path: Path) -> None:
    with pytest.raises(FolderError):
        open_agent(tmp_path / "nothing", "robot")
    for name in ("", "two words", "-x", "x" * 65, "a\nb"):
        with pytest.raises(InputError, match="--proposer"):
            open_agent(desk.run_dir, name)


def test_a_rejection_reaches_the_agent_with_its_reason(desk: Desk) -> None:
    agent = agent_at(desk)
    asked = proposed(agent)
    no = replace(decision(queue.load(desk.run_dir, asked["id"]), queue.REJECTED), reason="too long")
    deciding.decide(desk.run_dir, no)
    desk.look()
    desk.look()
    found = tools.call(agent, "job_state", {"id": asked["id"]})
    assert (found["state"], found["reason"]) == (str(Outcome.REJECTED), "too long")
