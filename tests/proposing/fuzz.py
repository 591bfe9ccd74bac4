"""`python -m tests.proposing.fuzz --count N --seed S`: whatever a proposer sends, nothing is decided or submitted.

A third of the inputs are files in `submissions/`, a third calls of the agents' tools, a third command lines of `gonogo
submit`. Between them a conductor's desk looks, under the policy that approves the flow's own jobs. The cluster is the
oracle: it counts every question for a submission. The same seed makes the same inputs.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import io
import json
import os
import random
import shutil
import sys
import tempfile
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any
from unittest.mock import patch

from console import cli
from console.agents import tools
from console.release import folder
from console.release.canonical import canonical
from console.release.queue_view import item
from console.release.state import Outcome
from tests.agents.agents import agent_at
from tests.asking.desks import Desk
from tests.lookalike.recorded import refused, taken
from tests.release.submitting import make_release, run_before_its_first_job

A_RUN = 150
"""Inputs for one run folder; a desk looks at everything that lies there."""

_RECORDED = [*(line for line in taken()), *(line for _, line in refused())]
_TRICKS: tuple[Any, ...] = (
    "", "approved", "ask-1", "/dev/zero", "../decision.json", "\x1b[2J", "\u202e", "\ud800", "a\nb", "x" * 5000,
    "--uid=0", "--wait", "#!/bin/sh\n", "#SBATCH hetjob", ":", "NaN", "1e999", None, True, -1, 0, 2**64, 1.5,
    [], {}, [[]], {"decision": "approved"},
)  # fmt: skip


def value(chance: random.Random) -> Any:
    """Something that stands where something else is meant."""
    if chance.random() < 0.3:
        return "".join(chr(chance.choice((chance.randrange(32, 127), chance.randrange(0x500)))) for _ in range(12))
    return chance.choice(_TRICKS)


def mutated(chance: random.Random, data: bytes) -> bytes:
    """Bytes that are nearly those."""
    match chance.randrange(5):
        case 0:
            return data[: chance.randrange(len(data))]
        case 1:
            at = chance.randrange(len(data))
            return data[:at] + bytes([data[at] ^ (1 << chance.randrange(8))]) + data[at + 1 :]
        case 2:
            return chance.randbytes(chance.randrange(200))
        case 3:
            at = chance.randrange(len(data))
            return data[:at] + data[at : at + chance.randrange(1, 40)] * 2 + data[at:]
    return b"[" * chance.randrange(1, 50_000)


class Fuzz:
    """One run folder with its desk, and what was sent to it."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.place = Path(tempfile.mkdtemp(prefix="gonogo-fuzz-"))
        self.loop = asyncio.Runner()
        release = make_release(self.place)
        run_before_its_first_job(release.run_dir)
        self.desk = Desk(release, self.loop)
        self.desk.process.conductor.approve = "none"
        self.agent = agent_at(self.desk, most_waiting=10**6, most_asked=10**6)
        self.lock = folder.Lock(release.run_dir, "conductor")
        pattern = self.desk.ask("--nodes=2", "-t", "5", summary="A job")
        self.job = json.loads(pattern.job_bytes)
        self.about = json.loads((pattern.folder / "proposal.json").read_bytes())
        self.sent: Counter[str] = Counter()
        self.bad: list[str] = []
        self.made = 0

    def close(self) -> None:
        """Remove everything."""
        self.lock.close()
        self.loop.close()
        shutil.rmtree(self.place)

    def files(self) -> str:
        """Lay a proposal into the folder, as a program does that does not use our tools."""
        self.made += 1
        name = f"ask-fuzz-{self.made:06}"
        place = self.desk.run_dir / "submissions" / name
        job, about = dict(self.job), dict(self.about)
        if self.chance.random() < 0.8:
            for _ in range(self.chance.randrange(1, 3)):
                job[self.chance.choice([*job, "more"])] = value(self.chance)
        if self.chance.random() < 0.3:
            about[self.chance.choice([*about, "more"])] = value(self.chance)
        token = f"{self.chance.getrandbits(64):016x}"
        own = _bytes_of(job).replace(self.job["token"].encode(), token.encode())
        own = own.replace(self.job["token"][:8].encode(), token[:8].encode())
        texts = {"job.json": own, "proposal.json": _bytes_of(about)}
        if self.chance.random() < 0.4:
            victim = self.chance.choice(list(texts))
            texts[victim] = mutated(self.chance, texts[victim])
        if self.chance.random() < 0.2:
            texts[self.chance.choice(["decision.json", "first.json", "outcome.json", "x"])] = self._no_decision(name)
        (place / "uploads").mkdir(parents=True)
        for file, data in texts.items():
            self._lay(place / file, data)
        self.bad.append(name)
        return "files"

    def _lay(self, path: Path, data: bytes) -> None:
        match self.chance.randrange(60):
            case 0:
                os.mkfifo(path)
            case 1:
                path.symlink_to(self.chance.choice(["/dev/zero", "/etc/passwd", "job.json", "nowhere"]))
            case 2:
                path.mkdir()
            case 3:
                path.touch(mode=0)
            case 4:
                return
            case _:
                path.write_bytes(data)

    def _no_decision(self, name: str) -> bytes:
        """What looks like a decision and names another job: a true one is what an operator's account writes."""
        said = {
            "schema_version": 1, "id": name, "digest": "0" * 64, "decision": "approved", "operator": "alice",
            "reason": "", "time": "2026-01-02T03:04:05Z", "terminal": "t", "shown_s": 1, "seen_to_end": True,
        }  # fmt: skip
        return mutated(self.chance, _bytes_of(said)) if self.chance.random() < 0.8 else _bytes_of(said)

    def calls(self) -> str:
        """Call a tool of the agents."""
        tool = self.chance.choice(tools.TOOLS)
        name = tool.name if self.chance.random() < 0.9 else str(value(self.chance))
        good = {"script": "#!/bin/sh\ntrue\n", "summary": "A job", "options": ["-t", "5"], "id": "ask-x", "text": "hi"}
        given = {key: word for key, word in good.items() if key in tool.fields and self.chance.random() < 0.8}
        for _ in range(self.chance.randrange(3)):
            given[self.chance.choice([*tool.fields, "decision"])] = value(self.chance)
        if self.chance.random() < 0.3 and "options" in tool.fields:
            given["options"] = list(self.chance.choice(_RECORDED).words)
        said = "it was answered"
        try:
            tools.call(self.agent, name, given)
        except tools.NoSuchTool:
            return "calls: no such tool"
        except tools.Refused as error:
            said = str(error)
        assert "a fault of gonogo itself" not in said, (name, given, said)
        assert len(said.splitlines()) == 1
        return "calls: answered" if said == "it was answered" else "calls: refused with a reason"

    def lines(self) -> str:
        """Run `gonogo submit` with a command line, a script and an environment."""
        recorded = self.chance.choice(_RECORDED)
        words = list(recorded.words)
        for _ in range(self.chance.randrange(3)):
            word = str(value(self.chance)).replace("\0", "").encode("utf-8", "replace").decode()
            words.insert(self.chance.randrange(len(words) + 1), word)
        script = recorded.script.encode()
        if self.chance.random() < 0.3:
            script = mutated(self.chance, script)
        for name in ("job.sh", "sub/deep.sh"):
            (self.place / name).parent.mkdir(exist_ok=True)
            (self.place / name).write_bytes(script)
        environ = {**recorded.environ, "GONOGO_RUN": str(self.desk.run_dir), "MINE": "1"}
        out, error = io.StringIO(), io.StringIO()
        stdin = io.TextIOWrapper(io.BytesIO(script))
        with (
            patch.dict(os.environ, environ, clear=True),
            patch.object(sys, "stdin", stdin),
            contextlib.redirect_stdout(out),
            contextlib.redirect_stderr(error),
            contextlib.chdir(self.place),
        ):
            try:
                status = cli.main(["submit", "--no-wait", "--json", "--", *words])
            except SystemExit as end:
                status = int(str(end.code))
        if status == 5:
            return "lines: proposed"
        assert status == 2, (words, status, out.getvalue(), error.getvalue())
        assert len(error.getvalue().strip().splitlines()) == 1, (words, error.getvalue())
        return "lines: refused with a reason"

    def look(self) -> None:
        """Let the conductor work, twice, and see what came of everything so far."""
        self.desk.look()
        self.desk.look()
        assert (self.desk.cluster.asked, self.desk.cluster.accepted) == (0, []), "something was submitted"
        state = self.desk.process.writer.state
        for attempt in state.asked:
            assert attempt.outcome in (Outcome.PROPOSED, Outcome.INVALIDATED), (attempt.id, attempt.outcome)
        waiting = {attempt.id for attempt in state.asked}
        for name in self.bad:
            if name in waiting:
                self.sent["files: a job that says what it is, waits"] += 1
                continue
            shown = item(self.desk.run_dir, state, name)
            assert shown.state == "invalidated", shown
            assert shown.problem, shown
            self.sent["files: shown as refused with a reason"] += 1
        self.bad.clear()


def _bytes_of(document: dict[str, Any]) -> bytes:
    try:
        return canonical(document)
    except (TypeError, ValueError):
        return json.dumps(document).encode()


def fuzz(seed: int, count: int) -> Counter[str]:
    """Send so many inputs to one run; returns what became of them.

    Raises:
        AssertionError: When something was decided or submitted, or a refusal has no reason.
    """
    with patch.object(os, "fsync", lambda descriptor: None):
        run = Fuzz(seed)
        try:
            kinds = (run.files, run.calls, run.lines)
            for number in range(count):
                kind = kinds[number % 3]()
                if kind != "files":
                    run.sent[kind] += 1
                if number % 30 == 29 or number == count - 1:
                    run.look()
            run.sent["decisions"] = sum(
                entry.data["event"] == "job_decided" and entry.data["decision"] != "invalidated"
                for entry in run.desk.process.writer.entries
            )
            run.sent["submissions"] = run.desk.cluster.asked
            return run.sent
        finally:
            run.close()


def main() -> int:
    """Fuzz and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=int.from_bytes(os.urandom(4), "big"))
    parser.add_argument("--workers", type=int, default=2)
    args = parser.parse_args()
    begin = time.monotonic()
    sizes = [min(A_RUN, args.count - start) for start in range(0, args.count, A_RUN)]
    seeds = [args.seed * 1_000_003 + number for number in range(len(sizes))]
    total: Counter[str] = Counter()
    with ProcessPoolExecutor(args.workers) as pool:
        for found in pool.map(fuzz, seeds, sizes, chunksize=4):
            total += found
    for kind in sorted({*total, "decisions", "submissions"}):
        print(f"{total[kind]:9,}  {kind}")
    print(f"{args.count:9,}  inputs, seed {args.seed}, {time.monotonic() - begin:.0f} s")
    return 1 if total["decisions"] or total["submissions"] else 0


if __name__ == "__main__":
    raise SystemExit(main())
