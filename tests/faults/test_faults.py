"""A short proof of exactly-once under faults, and that the proof can fail. `make faults` is the long one."""

from __future__ import annotations

import asyncio
import dataclasses
import itertools
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from backends.slurm.model import Accepted, NotSubmitted, Refused, SubmitOutcome, Unknown
from tests.faults.__main__ import choice
from tests.faults.lanes import Finding
from tests.faults.naive import NaiveSlurm
from tests.faults.oracle import table, violations
from tests.faults.plans import Phase, Plan, Then, make_plans
from tests.faults.proxy import CHUNK, Do, Fault, FaultProxy, Way
from tests.faults.running import Group, run
from tests.faults.sites import Taken, sandbox_site

LENGTHS = {(phase, big): dict.fromkeys(Way, 1000) for phase in Phase for big in (False, True)}

SHORT = (
    "link reset, up",
    "link closed, down",
    "link reset at our side only, up",
    "single bytes, up",
    "held back till after the verdict, up",
    "held back for a while, up",
    "login closed, down",
    "cluster: late queue and accounting, held back for longer than that",
    "submitting process stopped at a byte",
    "sbatch hangs, its shell killed",
)


async def test_nothing_is_doubled_or_lost_whatever_befalls_a_submission(tmp_path: Path) -> None:
    with sandbox_site(tmp_path / "sound") as sound, sandbox_site(tmp_path / "troubled") as troubled:
        groups = [Group(sound, 4, troubled=False), Group(troubled, 1, troubled=True)]
        result = await run(groups, tmp_path, seed=7, count=60, chosen=lambda plan: plan.kind in SHORT)
    assert result.wrong == []
    assert {finding.plan.kind for finding in result.findings if finding.struck} == set(SHORT)
    outcomes = Counter(type(finding.final) for finding in result.findings)
    assert set(outcomes) == {Accepted, NotSubmitted}, "with all sound again, everything is certain"


async def test_the_faults_bite_a_client_that_tries_again(tmp_path: Path) -> None:
    with sandbox_site(tmp_path / "sound") as site:
        groups, chosen = [Group(site, 1, troubled=False)], choice("sbatch hangs, link lost")
        result = await run(groups, tmp_path, seed=7, count=1, chosen=chosen, client=NaiveSlurm)
    assert "doubled" in [column for _, column, _ in result.wrong]


def finding(*beliefs: SubmitOutcome) -> Finding:
    first, *rest = beliefs
    return Finding(Plan(1, "kind"), "t", True, first, rest[0], rest[-1], tuple(rest[1:-1]), at=10.0)


LOST = Unknown("no answer")
ONE = Taken("5", "t", 9.0)


@pytest.mark.parametrize(
    ("beliefs", "taken", "starts", "columns"),
    [
        ((LOST, Accepted("5")), [ONE], {"5": 1}, []),
        ((LOST, Accepted("5")), [ONE, Taken("6", "other", 9.0)], {"5": 1, "6": 2}, []),
        ((LOST, NotSubmitted("fenced")), [], {}, []),
        ((LOST, LOST), [ONE], {"5": 1}, []),
        ((LOST, Accepted("5")), [ONE, dataclasses.replace(ONE, job_id="6")], {}, ["doubled"]),
        ((LOST, Accepted("5")), [ONE], {"5": 2}, ["doubled"]),
        ((LOST, NotSubmitted("missing")), [ONE], {}, ["lost"]),
        ((LOST, NotSubmitted("missing")), [dataclasses.replace(ONE, at=11.0)], {}, ["lost"]),
        ((Refused("no"), Refused("no")), [ONE], {}, ["lost"]),
        ((LOST, NotSubmitted("missing"), LOST), [ONE], {}, ["lost"]),
        ((LOST, Accepted("6")), [ONE], {}, ["wrong"]),
        ((Accepted("5"), Accepted("5")), [], {}, ["wrong"]),
    ],
)
def test_the_oracle_sees_each_violation(
    beliefs: tuple[SubmitOutcome, ...], taken: list[Taken], starts: dict[str, int], columns: list[str]
) -> None:
    found = violations(finding(*beliefs), taken, Counter(starts))
    assert [column for column, _ in found] == columns
    rows = table([finding(*beliefs)], [(finding(*beliefs), column) for column in columns])
    assert [line.split()[0] for line in rows[1:]] == ["kind", "all"]
    assert sum(int(word) for word in rows[-1].split()[-3:]) == len(columns)


def test_plans_follow_from_the_seed_and_reach_over_the_whole_exchange() -> None:
    plans = make_plans(5, 1000, LENGTHS)
    assert plans == make_plans(5, 1000, LENGTHS) != make_plans(6, 1000, LENGTHS)
    assert len(plans) >= 1000
    assert [plan.number for plan in plans] == list(range(len(plans)))
    places = sorted(plan.fault.at for plan in plans if plan.kind == "link reset, up")
    assert (places[0], places[-1]) == (0, 1000)
    assert max(after - before for before, after in itertools.pairwise(places)) < 40


@pytest.fixture
async def echo() -> AsyncIterator[FaultProxy]:
    """A proxy before a server that sends back what it gets, and says how its connections ended."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(CHUNK):
            writer.write(data)
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    host, port = server.sockets[0].getsockname()[:2]
    async with FaultProxy(host, port) as proxy:
        yield proxy
    server.close()


async def through(proxy: FaultProxy, fault: Fault) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    proxy.arm(fault)
    reader, writer = await asyncio.open_connection("127.0.0.1", proxy.port)
    writer.write(b"0123456789")
    return reader, writer


@pytest.mark.parametrize("way", Way)
@pytest.mark.parametrize("at", [0, 1, 9, 10])
async def test_a_link_is_closed_at_the_very_byte(echo: FaultProxy, way: Way, at: int) -> None:
    reader, _ = await through(echo, Fault(Do.CLOSE, way, at))
    said = await reader.read()
    # Upwards, the echo of what passed may find the link gone already.
    assert said == b"0123456789"[:at] if way is Way.DOWN else b"0123456789"[:at].startswith(said)
    assert echo.passed[way] == at
    assert echo.struck


async def test_a_reset_is_seen_as_one(echo: FaultProxy) -> None:
    reader, _ = await through(echo, Fault(Do.RESET, Way.UP, 4))
    with pytest.raises(ConnectionResetError):
        await reader.read()


async def test_what_is_swallowed_never_comes_and_what_is_held_comes_on_release(echo: FaultProxy) -> None:
    for do, rest in ((Do.SWALLOW, b""), (Do.HOLD, b"456789")):
        reader, writer = await through(echo, Fault(do, Way.UP, 4))
        assert await reader.readexactly(4) == b"0123"
        echo.disarm()
        echo.release()
        writer.write_eof()
        assert await reader.read() == rest


async def test_single_bytes_and_late_ones_all_arrive_and_a_call_is_made_once(echo: FaultProxy) -> None:
    calls: list[int] = []
    for do in (Do.SLICE, Do.DELAY, Do.CALL, Do.NOTHING):
        echo.arm(Fault(do, Way.DOWN, 3, seconds=0.01), lambda: calls.append(1))
        reader, writer = await asyncio.open_connection("127.0.0.1", echo.port)
        writer.write(b"0123456789")
        assert await reader.readexactly(10) == b"0123456789"
        writer.close()
    assert calls == [1]


async def test_a_refused_connection_and_a_link_cut_at_our_side_only(echo: FaultProxy) -> None:
    reader, _ = await through(echo, Fault(Do.REFUSE))
    with pytest.raises(ConnectionResetError):
        await reader.read()
    reader, _ = await through(echo, Fault(Do.HALF, Way.UP, 4))
    with pytest.raises(ConnectionResetError):
        await reader.read()
    assert echo.harm(Do.CLOSE), "the server's side is still there"


def test_a_held_submission_goes_on_after_the_verdict_or_meanwhile() -> None:
    kinds = {plan.kind: plan.then for plan in make_plans(1, 1, LENGTHS)}
    assert kinds["held back till after the verdict, up"] is Then.AFTER
    assert kinds["held back for a while, up"] is Then.MEANWHILE
