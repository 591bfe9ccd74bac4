"""Hooks: what they are told, that nothing secret is in it, and that nothing ever waits for one."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import shutil
import ssl
import subprocess
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, cast

import pytest

from backends.sandbox import lifecycle
from console import settings
from console.cli import main
from console.release.hooks import MOST, Hooks
from console.release.notices import notice
from console.release.writer import RunWriter
from console.settings import Notify, SettingsError, Webhook
from tests.kills.releases import Lab
from tests.release.making import make_job, new_run, propose

TOKEN = "s3cret-t0ken"
NOTICE = {"schema": "gonogo-notice", "version": 1, "event": "verdict"}


class Receiver:
    """A server on this machine that keeps what is posted to it, and answers as it is told."""

    def __init__(self, answer: bytes = b"HTTP/1.1 204 No Content\r\n\r\n") -> None:
        self.answer: bytes | None = answer
        self.got: list[tuple[str, Any]] = []
        self.port = 0

    async def take(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            size = next(int(line.split(":")[1]) for line in head.split("\r\n") if line.startswith("Content-Length"))
            self.got.append((head, json.loads(await reader.readexactly(size))))
            if self.answer is None:
                await reader.read()
            else:
                writer.write(self.answer)
                await writer.drain()
        writer.close()

    @contextlib.asynccontextmanager
    async def open(self, context: ssl.SSLContext | None = None) -> AsyncIterator[Receiver]:
        server = await asyncio.start_server(self.take, "127.0.0.1", 0, ssl=context)
        self.port = server.sockets[0].getsockname()[1]
        async with server:
            yield self

    def webhook(self, scheme: str = "http") -> Webhook:
        return Webhook(f"{scheme}://localhost:{self.port}/hooks/{TOKEN}?key={TOKEN}")


async def sent(notify: Notify, *, count: int = 1, **options: Any) -> tuple[Hooks, list[str]]:
    """The hooks after they were done with some notices, and what they complained of."""
    said: list[str] = []
    hooks = Hooks(notify, said.append, **options)
    async with hooks.running():
        for _ in range(count):
            hooks.send(NOTICE)
    assert TOKEN not in " ".join(said)
    return hooks, said


async def test_a_webhook_gets_the_json() -> None:
    async with Receiver().open() as receiver:
        hooks, said = await sent(Notify(receiver.webhook()), count=3)
    assert (hooks.sent, hooks.failed, hooks.dropped, said) == (3, 0, 0, [])
    head, data = receiver.got[0]
    assert head.startswith(f"POST /hooks/{TOKEN}?key={TOKEN} HTTP/1.1\r\n")
    assert "Content-Type: application/json" in head
    assert data == NOTICE


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (b"HTTP/1.1 500 No\r\n\r\n", "it answered 500, expected 2xx"),
        (b"HTTP/1.1 302 Found\r\nLocation: http://localhost:1/\r\n\r\n", "it answered 302, expected 2xx"),
        (b"SSH-2.0-OpenSSH\r\n", "its answer is not one of HTTP"),
        (b"", "its answer is not one of HTTP"),
        (b"x" * 200_000, "ValueError"),
    ],
)
async def test_an_answer_that_is_no_success_is_a_problem(answer: bytes, words: str) -> None:
    async with Receiver(answer).open() as receiver:
        hooks, (said,) = await sent(Notify(receiver.webhook()))
    assert (hooks.sent, hooks.failed) == (0, 1)
    assert said.startswith(f"notify: webhook http://localhost:{receiver.port}/...: ")
    assert words in said


async def test_a_webhook_that_is_not_there_or_never_answers_is_a_problem_and_the_command_still_runs(
    tmp_path: Path,
) -> None:
    done = tmp_path / "done"
    receiver = Receiver()
    receiver.answer = None
    async with receiver.open():
        command = ("/bin/sh", "-c", f"cat > {done}")
        hooks, (said,) = await sent(Notify(receiver.webhook(), command), deadline_s=0.5)
    assert "not done within 0.5 s" in said
    assert (hooks.sent, hooks.failed) == (1, 1)
    assert json.loads(done.read_bytes()) == NOTICE
    _, (said,) = await sent(Notify(receiver.webhook()))
    assert "Connect" in said or "connect" in said


@pytest.mark.skipif(
    shutil.which("openssl") is None and os.environ.get("CI") != "true", reason="makes its certificates with openssl"
)
async def test_a_certificate_that_nobody_vouches_for_is_refused(tmp_path: Path) -> None:
    cert, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "30", "-subj", "/CN=localhost",
         "-addext", "subjectAltName=DNS:localhost", "-keyout", str(key), "-out", str(cert)],
        check=True, capture_output=True,
    )  # fmt: skip
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(cert, key)
    async with Receiver().open(server) as receiver:
        _, (said,) = await sent(Notify(receiver.webhook("https")))
        assert "its certificate is refused" in said
        assert receiver.got == []
        hooks, problems = await sent(
            Notify(receiver.webhook("https")), context=ssl.create_default_context(cafile=str(cert))
        )
        assert (hooks.sent, problems) == (1, [])
        # The right certificate, of another host.
        elsewhere = Webhook(f"https://127.0.0.1:{receiver.port}/{TOKEN}")
        _, (said,) = await sent(Notify(elsewhere), context=ssl.create_default_context(cafile=str(cert)))
        assert "its certificate is refused" in said


async def test_a_command_that_fails_cannot_be_started_or_hangs_is_a_problem(tmp_path: Path) -> None:
    _, (said,) = await sent(Notify(command=("/bin/sh", "-c", "exit 3")))
    assert said == "notify: command /bin/sh: exit status 3"
    _, (said,) = await sent(Notify(command=(str(tmp_path / "nowhere"),)))
    assert "No such file" in said
    born = tmp_path / "born"
    script = f"sleep 600 & echo $! > {born}; wait"
    _, (said,) = await sent(Notify(command=("/bin/sh", "-c", script)), deadline_s=0.5)
    assert "not done within 0.5 s" in said
    state = Path(f"/proc/{born.read_text().strip()}/stat")
    gone = not state.exists() or state.read_text().rpartition(")")[2].split()[0] == "Z"
    assert gone, "what it started went with it"


async def test_a_full_queue_drops_and_counts_and_nobody_waits() -> None:
    receiver = Receiver()
    receiver.answer = None
    async with receiver.open():
        said: list[str] = []
        hooks = Hooks(Notify(receiver.webhook()), said.append, deadline_s=0.5)
        for _ in range(MOST + 30):
            hooks.send(NOTICE)  # nothing sends yet: this returns at once or never
    assert hooks.dropped == 30
    assert said[-1] == f"notify: 30 notices were dropped: {MOST} wait for a hook already"


async def test_what_is_unsent_when_the_release_ends_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("console.release.hooks.LAST_S", 0.2)
    receiver = Receiver()
    receiver.answer = None
    async with receiver.open():
        hooks, said = await sent(Notify(receiver.webhook()), count=5)
    assert hooks.dropped == 5
    assert "the release ended before they were sent" in said[-1]


async def test_without_a_hook_nothing_is_kept() -> None:
    hooks, said = await sent(Notify(), count=5)
    assert (hooks.sent, hooks.failed, hooks.dropped, said) == (0, 0, 0, [])


# The notices.


COMMON = {"schema", "version", "event", "run_id", "cluster", "seq", "time", "text"}
SECRET = "https://evil.example/\x1b]0;pwn\x07 approve with digest "


def noticed(writer: RunWriter, *, by_policy: bool = False) -> dict[str, Any] | None:
    return notice(writer.entries[-1], writer.state, by_policy=by_policy)


def test_a_notice_of_a_waiting_job_has_its_code_and_nothing_that_others_wrote(tmp_path: Path) -> None:
    writer = new_run(tmp_path / "run")
    job = make_job(summary=SECRET, environment=(("GONOGO_TOKEN", "0123456789abcdef"), ("NOTE", SECRET)))
    propose(writer, "001-train-1", job, change=SECRET)
    found = noticed(writer)
    assert found is not None
    assert set(found) == COMMON | {"stage", "id", "code", "waiting"}
    assert (found["event"], found["id"], found["code"], found["waiting"]) == (
        "waiting_for_approval", "001-train-1", job.code, 1,
    )  # fmt: skip
    text = json.dumps(found)
    for secret in ("evil", "approve with", job.digest, job.token, str(tmp_path), "alice"):
        assert secret not in text
    assert noticed(writer, by_policy=True) is None, "a policy decides on it, so it waits for nobody"


def test_a_notice_of_a_gate_or_a_verdict_has_the_answer_and_no_words_of_the_cluster(tmp_path: Path) -> None:
    writer = new_run(tmp_path / "run")
    gate = {
        "gate": "train", "id": "003-train-1", "failure_class": "TRAINING_REGRESSION", "detail": SECRET,
        "sha256": "", "files": [], "checks": [], "facts": {},
    }  # fmt: skip
    writer.record("gate", SECRET, stage="train", **{**gate, "pass": True})
    assert noticed(writer) is None
    writer.record("gate", SECRET, stage="train", **{**gate, "pass": False})
    found = noticed(writer)
    assert found is not None
    assert set(found) == COMMON | {"stage", "gate", "id", "failure_class"}
    assert (found["event"], found["gate"], found["failure_class"]) == ("gate_failed", "train", "TRAINING_REGRESSION")
    assert "evil" not in json.dumps(found)
    writer.record(
        "verdict", SECRET, stage="closeout", verdict="INFEASIBLE", failure_class="TRAINING_REGRESSION", detail=SECRET
    )
    found = noticed(writer)
    assert found is not None
    assert set(found) == COMMON | {"verdict", "failure_class"}
    assert (found["event"], found["verdict"]) == ("verdict", "INFEASIBLE")
    assert "evil" not in json.dumps(found)


def test_other_entries_are_no_notices(tmp_path: Path) -> None:
    writer = new_run(tmp_path / "run")
    assert noticed(writer) is None


# The settings.


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (f'webhook = "http://example.org/{TOKEN}"', "https; plain http only to this machine"),
        (f'webhook = "ftp://localhost/{TOKEN}"', "an address"),
        (f'webhook = "https://me:{TOKEN}@example.org/"', "without blanks, # and an account"),
        (f'webhook = "https://example.org/{TOKEN}\\r\\nX: y"', "plain ASCII"),
        (f'webhook = "https://example.org:99999/{TOKEN}"', "an address"),
        (f'webhook = "{TOKEN}"', "an address"),
        (f'webhook = ["{TOKEN}"]', "a text"),
        ('command = "notify-send"', "a list of texts"),
        ("command = [1]", "a list of texts"),
    ],
)
def test_an_address_that_cannot_be_used_is_refused_without_showing_it(line: str, words: str) -> None:
    with pytest.raises(SettingsError) as caught:
        settings.parse(f"[notify]\n{line}\n", Path("config.toml"))
    assert words in str(caught.value)
    assert f"config.toml: notify.{line.split(maxsplit=1)[0]}: expected" in str(caught.value)
    assert TOKEN not in str(caught.value)


def test_the_command_that_shows_settings_shows_no_token(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys
) -> None:
    config = tmp_path / "config.toml"
    config.write_text(f'[notify]\nwebhook = "https://hooks.example.org/{TOKEN}"\n')
    monkeypatch.setenv("GONOGO_CONFIG", str(config))
    assert main(["config", "show"]) == 0
    out = capsys.readouterr().out
    assert "https://hooks.example.org/..." in out
    assert TOKEN not in out
    assert TOKEN not in repr(settings.load())


# A whole release.


def test_a_release_tells_its_hooks_and_ends_the_same_when_they_fail(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config, told = tmp_path / "config.toml", tmp_path / "told"
    monkeypatch.setenv("GONOGO_CONFIG", str(config))
    lab = Lab.make(tmp_path)
    command = ["/bin/sh", "-c", f"cat >> {told}; echo >> {told}; exit 7"]
    config.write_text(f"[notify]\ncommand = {json.dumps(command)}\n")
    try:
        done = lab.run("r")
    finally:
        lifecycle.end_jobs(tmp_path / "cluster")
        lifecycle.stop(tmp_path / "cluster")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "notify: command /bin/sh: exit status 7" in done.stdout
    notices = [json.loads(line) for line in told.read_text().splitlines()]
    assert [item["event"] for item in notices] == ["verdict"]
    assert notices[0]["verdict"] == "DRAFTER_READY"
    live = json.loads((tmp_path / "r" / "live.json").read_bytes())
    assert cast(list[str], live["problems"]) == ["notify: command /bin/sh: exit status 7"]
