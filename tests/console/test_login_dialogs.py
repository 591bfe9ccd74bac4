"""Dialogs of a login: what they show of foreign words, what counts as an answer, and that nothing typed stays."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from textual import events
from textual.widgets._input import Input

from backends.hosts.operator import Answers, NewHostKey, Prompt, Question, Secret
from console.release.journal import Kind
from console.release.operator_log import LoggedOperator
from console.screen_operator import ScreenOperator
from console.screens.base import Area
from console.screens.login import MOST_FIELDS, HostKey, LogInAgain, Prompts
from tests.console import runs
from tests.console.driving import Console, console, send
from tests.console.test_hostile_text import CORPUS, check_screen

MARK = "SHA256:3WrsfLjrYUZgZ7zeQQbfCpyVvKSbq3LZ0jTlQhJ8NzA"
KEY = NewHostKey(
    "alice@login.example:2222",
    "login.example",
    2222,
    "ssh-ed25519",
    MARK,
    Path("/home/alice/.ssh/known_hosts"),
    (Path("/home/alice/.ssh/known_hosts"),),
    "[login.example]:2222 ssh-ed25519 AAAA",
)
CODE = Question("alice@login.example:22", Secret.DIALOG, (Prompt("Code: "),))
TWO = replace(CODE, prompts=(Prompt("Password: "), Prompt("Option (1-3): ", echo=True)))


@asynccontextmanager
async def asked(driven: Console, question: Awaitable[Any], dialog: type) -> AsyncIterator[asyncio.Future[Any]]:
    """A question that waits on the screen; it is over at the end."""
    answer = asyncio.ensure_future(question)
    await driven.until(
        lambda: isinstance(driven.app.screen, dialog) and driven.app.screen.query("Input"), "it is asked"
    )
    await driven.pilot.pause()
    yield answer
    if not answer.done():
        answer.cancel()
        await asyncio.gather(answer, return_exceptions=True)
    await driven.until(lambda: isinstance(driven.app.screen, Area), "the dialog is closed")


@asynccontextmanager
async def at_the_screen(tmp_path: Path, **options: Any) -> AsyncIterator[tuple[Console, ScreenOperator]]:
    run = runs.running(tmp_path / "run")
    async with console(run, **options) as driven:
        operator = ScreenOperator()
        operator.app = driven.app
        yield driven, operator


async def result(answer: asyncio.Future[Any]) -> Any:
    async with asyncio.timeout(20):
        return await answer


async def test_a_new_host_key_is_shown_whole_with_what_to_compare_it_with(tmp_path: Path) -> None:
    async with (
        at_the_screen(tmp_path, size=(80, 24)) as (driven, operator),
        asked(driven, operator.accepts(KEY), HostKey) as answer,
    ):
        for words in ("login.example", "2222", "ssh-ed25519", MARK, "/home/alice/.ssh/known_hosts", "ssh-keygen -lf"):
            assert words in driven.screen_text
        await driven.type("trust")
        driven.run.time.go(3)
        await driven.press("enter")
        assert await result(answer) is True


@pytest.mark.parametrize("keys", [("escape",), ("y", "enter", "escape"), ("enter", "enter", "escape")])
async def test_a_key_is_refused_unless_the_word_is_typed(tmp_path: Path, keys: tuple[str, ...]) -> None:
    async with (
        at_the_screen(tmp_path) as (driven, operator),
        asked(driven, operator.accepts(KEY), HostKey) as answer,
    ):
        for key in keys:
            assert not answer.done()
            driven.run.time.go(3)
            await driven.press(key)
        assert await result(answer) is False


async def test_a_word_that_comes_too_fast_takes_no_key(tmp_path: Path) -> None:
    async with (
        at_the_screen(tmp_path) as (driven, operator),
        asked(driven, operator.accepts(KEY), HostKey) as answer,
    ):
        driven.app.post_message(events.Paste("trust"))
        send(driven.pilot, "enter")
        await driven.pilot.pause()
        assert not answer.done()
        assert "too fast" in driven.screen_text


async def test_hidden_fields_show_nothing_and_seen_ones_do(tmp_path: Path) -> None:
    async with (
        at_the_screen(tmp_path) as (driven, operator),
        asked(driven, operator.answers(TWO), Prompts) as answer,
    ):
        fields = list(driven.app.screen.query(Input))
        await driven.type("s3cret")
        await driven.press("enter")
        await driven.type("visible")
        assert "s3cret" not in driven.screen_text
        assert "visible" in driven.screen_text
        assert "Option (1-3):" in driven.screen_text
        driven.run.time.go(3)
        await driven.press("enter")
        answers = await result(answer)
        assert answers == Answers(("s3cret", "visible"))
        assert "s3cret" not in repr(answers)
        assert [field.value for field in fields] == ["", ""]


async def test_escape_gives_no_answer_and_leaves_nothing_in_the_fields(tmp_path: Path) -> None:
    async with (
        at_the_screen(tmp_path) as (driven, operator),
        asked(driven, operator.answers(CODE), Prompts) as answer,
    ):
        (field,) = driven.app.screen.query(Input)
        await driven.type("s3cret")
        await driven.press("escape")
        assert await result(answer) is None
        assert field.value == ""


async def test_an_empty_answer_can_be_given_on_purpose(tmp_path: Path) -> None:
    async with (
        at_the_screen(tmp_path) as (driven, operator),
        asked(driven, operator.answers(CODE), Prompts) as answer,
    ):
        await driven.press("enter")
        assert await result(answer) == Answers(("",))


@pytest.mark.parametrize("size", [(80, 24), (100, 30)])
@pytest.mark.parametrize("text", CORPUS.values(), ids=CORPUS)
async def test_words_of_a_server_do_nothing_but_stand_there(tmp_path: Path, text: str, size: tuple[int, int]) -> None:
    question = Question(text, Secret.DIALOG, (Prompt(text), Prompt(text, echo=True)), title=text, instructions=text)
    async with at_the_screen(tmp_path, size=size) as (driven, operator):
        async with asked(driven, operator.answers(question), Prompts):
            check_screen(driven)
        hostile = replace(KEY, host=text, known_as=text, algorithm=text, fingerprint=text)
        async with asked(driven, operator.accepts(hostile), HostKey):
            check_screen(driven)
        async with asked(driven, operator.logs_in_again(text, text), LogInAgain):
            check_screen(driven)


async def test_a_question_with_a_hundred_fields_is_not_answered(tmp_path: Path) -> None:
    async with at_the_screen(tmp_path) as (driven, operator):
        many = replace(CODE, prompts=(Prompt("x"),) * (MOST_FIELDS + 1))
        assert await result(asyncio.ensure_future(operator.answers(many))) is None
        assert isinstance(driven.app.screen, Area)


async def test_a_question_that_nobody_waits_for_any_more_goes_away(tmp_path: Path) -> None:
    async with at_the_screen(tmp_path) as (driven, operator):
        async with asked(driven, operator.answers(CODE), Prompts) as answer:
            answer.cancel()
        async with asked(driven, operator.answers(CODE), Prompts) as answer:
            await driven.press("enter")
            assert await result(answer) == Answers(("",))


async def test_another_login_begins_only_with_the_word(tmp_path: Path) -> None:
    async with at_the_screen(tmp_path) as (driven, operator):
        async with asked(driven, operator.logs_in_again("alice@x:22", "the link was lost"), LogInAgain) as answer:
            assert "the link was lost" in driven.screen_text
            await driven.press("enter", "escape")
            assert await result(answer) is False
        async with asked(driven, operator.logs_in_again("alice@x:22", "the link was lost"), LogInAgain) as answer:
            await driven.type("login")
            driven.run.time.go(3)
            await driven.press("enter")
            assert await result(answer) is True


async def test_nobody_is_asked_where_there_is_no_console_or_it_only_looks_on(tmp_path: Path) -> None:
    assert await ScreenOperator().accepts(KEY) is False
    assert await ScreenOperator().answers(CODE) is None
    async with at_the_screen(tmp_path, read_only=True) as (_, operator):
        assert await operator.accepts(KEY) is False
        assert await operator.answers(CODE) is None


class Scripted:
    """An operator who answers as told."""

    def __init__(self, takes: bool) -> None:
        self.takes = takes

    async def accepts(self, key: NewHostKey) -> bool:
        return self.takes

    async def answers(self, question: Question) -> Answers | None:
        return Answers(("s3cret",))

    async def logs_in_again(self, host: str, why: str) -> bool:
        return True


@pytest.mark.parametrize("takes", [True, False])
async def test_what_becomes_of_a_new_key_is_an_intervention_and_an_answer_is_in_no_file(
    tmp_path: Path, takes: bool
) -> None:
    run = runs.running(tmp_path / "run")
    before = run.writer.state.interventions
    operator = LoggedOperator(Scripted(takes), run.writer)
    assert await operator.accepts(KEY) is takes
    assert await operator.answers(CODE) == Answers(("s3cret",))
    entry = run.writer.entries[-1]
    assert entry.kind is Kind.HUMAN_INTERVENTION
    assert run.writer.state.interventions == before + 1
    assert entry.data["event"] == ("host_key_accepted" if takes else "host_key_refused")
    assert MARK in entry.text
    assert entry.data["file"] == str(KEY.file)
    run.close()
    for path in (tmp_path / "run").rglob("*"):
        assert path.is_dir() or b"s3cret" not in path.read_bytes()


async def test_the_field_stays_in_sight_however_much_a_server_says(tmp_path: Path) -> None:
    text = "word " * 400
    question = Question(text, Secret.DIALOG, (Prompt(text), Prompt(text)), title=text, instructions=text)
    async with (
        at_the_screen(tmp_path, size=(80, 24)) as (driven, operator),
        asked(driven, operator.answers(question), Prompts),
    ):
        for field in driven.app.screen.query(Input):
            driven.app.screen.set_focus(field)
            await driven.until(lambda field=field: field in driven.app.screen._compositor.visible_widgets, "it is seen")
