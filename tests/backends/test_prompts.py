"""Servers and keys that ask: each question goes to the operator once, and no answer is given, kept or tried again."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import asyncssh
import pytest

from backends.errors import CouldNotAsk, NeedsOperator
from backends.hosts.base import LinkState
from backends.hosts.deadlines import Deadlines
from backends.hosts.operator import Secret
from backends.hosts.ssh import SshHost
from tests.backends.asking import Asked, Server

CODE = (("Verification code: ", False),)
TWO = (("Password: ", False), ("Where from? ", True))

Make = Callable[..., Server]


@pytest.fixture
async def make(tmp_path: Path) -> AsyncIterator[Make]:
    made: list[Server] = []

    def begin(**wants: Any) -> Server:
        made.append(Server(tmp_path, **wants))
        return made[-1]

    yield begin
    for server in made:
        await server.stop()


async def refused(host: SshHost) -> NeedsOperator:
    """The error of every question, however often it is asked."""
    for _ in range(3):
        with pytest.raises(NeedsOperator) as error:
            await host.run("true")
    assert host.link.state is LinkState.NEEDS_OPERATOR
    assert error.value.said in host.link.detail
    return error.value


def nothing_of(secret: str, host: SshHost, error: Exception) -> bool:
    """Whether a secret shows nowhere: not in words, not in what the host keeps."""
    return secret not in f"{error} {vars(error)} {host.link} {vars(host)}"


async def test_two_prompts_of_one_round_are_asked_together_and_answered_in_order(make: Make) -> None:
    server = make(key=False, rounds=[TWO], right=[("pw", "home")])
    operator = Asked(replies=[("pw", "home")])
    host = SshHost(await server.start(), operator=operator)
    assert (await host.run("echo in")).stdout == b"in\n"
    (question,) = operator.questions
    assert question.kind is Secret.DIALOG
    assert [(prompt.text, prompt.echo) for prompt in question.prompts] == list(TWO)
    assert (question.title, question.instructions) == ("Login", "Second factor.")
    assert server.heard == [("pw", "home")]
    await host.close()


async def test_a_password_and_then_a_code_are_two_rounds_of_one_login(make: Make) -> None:
    server = make(key=False, rounds=[TWO, CODE], right=[("pw", "home"), ("123",)])
    operator = Asked(replies=[("pw", "home"), ("123",)])
    host = SshHost(await server.start(), operator=operator)
    assert (await host.run("echo in")).stdout == b"in\n"
    assert (server.logins, server.dialogs, len(operator.questions)) == (1, 1, 2)
    await host.close()


async def test_a_password_is_asked_for_and_given_once(make: Make) -> None:
    server = make(key=False, password="secret-1")
    operator = Asked(replies=[("secret-1",)])
    host = SshHost(await server.start(), operator=operator)
    assert (await host.run("echo in")).stdout == b"in\n"
    assert [question.kind for question in operator.questions] == [Secret.PASSWORD]
    await host.close()


@pytest.mark.parametrize("wants", [{"password": "right"}, {"rounds": [CODE], "right": [("right",)]}])
async def test_a_wrong_answer_is_given_once_and_shows_nowhere(make: Make, wants: dict[str, Any]) -> None:
    server = make(key=False, **wants)
    operator = Asked(replies=[("secret-1",), ("secret-2",), ("right",)], again=True)
    host = SshHost(await server.start(), operator=operator)
    error = await refused(host)
    assert "the answer was not taken" in error.said
    assert "gonogo resume" in error.advice
    assert (server.heard, server.logins, len(operator.questions)) == ([("secret-1",)], 1, 1)
    assert nothing_of("secret-1", host, error)


async def test_a_wrong_code_is_not_followed_by_a_question_for_the_password(make: Make) -> None:
    server = make(key=False, password="pw", rounds=[CODE], right=[("right",)])
    operator = Asked(replies=[("wrong",), ("pw",)])
    await refused(SshHost(await server.start(), operator=operator))
    assert (server.heard, len(operator.questions)) == ([("wrong",)], 1)


@pytest.mark.parametrize("wants", [{"password": "right"}, {"rounds": [CODE], "right": [("right",)]}])
async def test_no_answer_ends_the_login_in_one_clear_line(make: Make, wants: dict[str, Any]) -> None:
    server = make(key=False, **wants)
    operator = Asked(replies=[None, ("right",)])
    error = await refused(SshHost(await server.start(), operator=operator))
    assert "no answer was given" in error.said
    assert (server.heard, server.logins, len(operator.questions)) == ([], 1, 1)


@pytest.mark.parametrize("same", [True, False])
async def test_a_server_that_asks_fifty_times_is_answered_a_few_times_at_most(make: Make, same: bool) -> None:
    rounds = [CODE] if same else [((f"Code {number}: ", False),) for number in range(50)]
    server = make(key=False, rounds=rounds, endless=True)
    operator = Asked(replies=[(f"secret-{number}",) for number in range(50)])
    host = SshHost(await server.start(), operator=operator)
    error = await refused(host)
    assert len(server.heard) == len(operator.questions) == (1 if same else 4)
    assert ("not taken" if same else "more than 4 times") in error.said
    assert (server.logins, server.dialogs) == (1, 1)


async def test_a_dialog_that_only_talks_and_never_ends_is_given_up(make: Make) -> None:
    server = make(key=False, rounds=[()], endless=True)
    error = await refused(SshHost(await server.start(), operator=Asked()))
    assert "does not end" in error.said
    assert server.asked < 30


async def test_a_server_that_quotes_an_answer_gets_it_into_no_message(make: Make) -> None:
    server = make(key=False, rounds=[CODE, (("You said secret-1: ", True),)], endless=True)
    host = SshHost(await server.start(), operator=Asked(replies=[("secret-1",), None]))
    error = await refused(host)
    assert "no answer was given" in error.said
    assert nothing_of("secret-1", host, error)


@pytest.mark.parametrize("code", [asyncssh.DISC_BY_APPLICATION, asyncssh.DISC_NO_MORE_AUTH_METHODS_AVAILABLE])
async def test_a_server_that_hangs_up_with_what_was_typed_gets_it_into_no_message(make: Make, code: int) -> None:
    server = make(key=False, password="right", quotes=code)
    host = SshHost(await server.start(), operator=Asked(replies=[("secret-1",)]))
    with pytest.raises(CouldNotAsk) as error:
        await host.run("true")
    assert server.heard == [("secret-1",)]
    assert "after an answer was given" in error.value.said
    assert nothing_of("secret-1", host, error.value)


async def test_typing_takes_as_long_as_it_takes(make: Make) -> None:
    """The limits of a question to the cluster, and of a login, stand still meanwhile, and go on afterwards."""
    server = make(key=False, password="pw")
    seen: list[float | None] = []

    async def look() -> None:
        assert host.link.detail == "waits for the operator's answer"
        seen.extend(limit.when() for limit in host._deadlines._open)

    host = SshHost(await server.start(), operator=Asked(replies=[("pw",)], before=look))
    assert (await host.run("echo in")).stdout == b"in\n"
    assert seen == [None, None]
    assert host.link.detail == ""
    await host.close()


async def test_a_limit_goes_on_with_what_was_left_of_it() -> None:
    deadlines, loop = Deadlines(), asyncio.get_running_loop()
    async with deadlines.within(1000.0):
        (limit,) = deadlines._open
        before = limit.when()
        with deadlines.standing_still():
            assert limit.when() is None
            async with deadlines.within(5.0):
                assert [other.when() for other in deadlines._open] == [None, None]
        after = limit.when()
    assert before is not None
    assert after is not None
    assert before <= after <= loop.time() + 1000.0


async def test_a_link_that_is_lost_after_a_code_is_not_made_again_without_a_word(make: Make) -> None:
    server = make(key=False, rounds=[CODE], right=[("123",)])
    operator = Asked(replies=[("123",), ("123",)], again=False)
    host = SshHost(await server.start(), operator=operator)
    await host.run("true")
    server.connections[0].abort()
    async with asyncio.timeout(20):
        while host.link.state is LinkState.UP:
            await asyncio.sleep(0.01)
    error = await refused(host)
    assert "no new login was wanted" in error.said
    assert (server.logins, server.dialogs, len(operator.whys)) == (1, 1, 1)


async def test_a_link_that_is_lost_after_a_code_is_made_again_when_the_operator_says_so(make: Make) -> None:
    server = make(key=False, rounds=[CODE], right=[("123",)])
    operator = Asked(replies=[("123",), ("123",)], again=True)
    host = SshHost(await server.start(), operator=operator)
    await host.run("true")
    server.connections[0].abort()
    async with asyncio.timeout(20):
        while host.link.state is LinkState.UP:
            await asyncio.sleep(0.01)
    assert (await host.run("echo back")).stdout == b"back\n"
    assert (server.logins, server.dialogs, len(operator.whys)) == (2, 2, 1)
    await host.close()


async def test_a_server_that_hangs_up_during_a_question_ends_the_question(make: Make) -> None:
    server = make(key=False, rounds=[CODE], right=[("123",)])
    gone = asyncio.Event()

    async def wait_for_ever() -> None:
        server.connections[0].abort()
        try:
            await asyncio.Event().wait()
        finally:
            gone.set()

    operator = Asked(before=wait_for_ever)
    host = SshHost(await server.start(), operator=operator)
    async with asyncio.timeout(20):
        with pytest.raises(CouldNotAsk):
            await host.run("true")
        await gone.wait()
    with pytest.raises(NeedsOperator, match="no new login was wanted"):
        await host.run("true")
    assert server.logins == 1


def lock(server: Server, folder: Path, *, public: bool = False) -> Path:
    server.user_key.write_private_key(str(folder / "locked"), "pkcs8-pem", passphrase="secret-1")
    if public:
        server.user_key.write_public_key(str(folder / "locked.pub"))
    return folder / "locked"


@pytest.mark.parametrize("named", [True, False])
async def test_a_locked_key_is_opened_with_a_passphrase(make: Make, tmp_path: Path, named: bool) -> None:
    server = make()
    path = lock(server, tmp_path)
    target = replace(await server.start(), **({"key": path} if named else {"key": None, "keys": (path,)}))
    operator = Asked(replies=[("secret-1",)])
    host = SshHost(target, operator=operator)
    assert (await host.run("echo in")).stdout == b"in\n"
    (question,) = operator.questions
    assert question.kind is Secret.PASSPHRASE
    assert str(path) in question.prompts[0].text
    await host.close()


@pytest.mark.parametrize(("reply", "words"), [(("secret-2",), "does not open it"), (None, "no passphrase was given")])
async def test_a_wrong_passphrase_or_none_does_not_even_connect(
    make: Make, tmp_path: Path, reply: tuple[str, ...] | None, words: str
) -> None:
    server = make()
    target = replace(await server.start(), key=lock(server, tmp_path))
    operator = Asked(replies=[reply, ("secret-1",)])
    host = SshHost(target, operator=operator)
    error = await refused(host)
    assert words in error.said
    assert (server.logins, len(operator.questions)) == (0, 1)
    assert nothing_of("secret-2", host, error)


async def test_a_key_that_the_agent_holds_needs_no_passphrase(make: Make, tmp_path: Path) -> None:
    import shutil

    if shutil.which("ssh-agent") is None:
        pytest.skip("there is no ssh-agent on this machine")
    server = make()
    socket = tmp_path / "agent"
    agent = await asyncio.create_subprocess_exec(
        "ssh-agent", "-D", "-a", str(socket), stdout=asyncio.subprocess.DEVNULL
    )
    try:
        async with asyncio.timeout(20):
            while not socket.exists():
                await asyncio.sleep(0.01)
            async with asyncssh.connect_agent(str(socket)) as held:
                await held.add_keys([server.user_key])
        target = replace(await server.start(), key=lock(server, tmp_path, public=True), agent=str(socket))
        operator = Asked()
        host = SshHost(target, operator=operator)
        assert (await host.run("echo in")).stdout == b"in\n"
        assert operator.questions == []
        await host.close()
    finally:
        agent.terminate()
        await agent.wait()


async def test_without_an_operator_the_error_says_who_asked_for_what_and_what_to_do(make: Make) -> None:
    server = make(key=False, password="pw", rounds=[CODE], right=[("123",)])
    target = await server.start()
    error = await refused(SshHost(target))
    assert error.host == target.name
    assert "Verification code:" in error.said
    assert "gonogo resume" in error.advice
    assert server.heard == []
