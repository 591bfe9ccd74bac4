"""One list of verbs: each has a key, words and a handler, and no key means two things in one place."""

from __future__ import annotations

from pathlib import Path

import pytest

from console.app import GonogoApp
from console.screens.approval import Approval
from console.screens.board import Board
from console.screens.file import ResultFile
from console.screens.help import Help, help_text
from console.screens.log import Log
from console.screens.output import Output
from console.screens.plots import Plots
from console.screens.tables import Files, Jobs
from console.session import Session
from console.verbs import VERBS, Situation, in_scopes, verb
from console.widgets.ink import plain
from console.widgets.lines import Lines
from tests.console import runs

SCREENS = {
    "board": Board,
    "approval": Approval,
    "jobs": Jobs,
    "files": Files,
    "log": Log,
    "plots": Plots,
    "output": Output,
    "file": ResultFile,
    "help": Help,
}


def test_every_verb_has_a_key_a_label_and_a_sentence() -> None:
    for item in VERBS:
        assert item.keys
        assert item.label
        assert item.help.endswith(".")
        assert item.scopes
        assert set(item.scopes) <= {*SCREENS, "app", "list"}
    assert len({item.id for item in VERBS}) == len(VERBS)


@pytest.mark.parametrize("scope", SCREENS)
def test_no_key_means_two_things_on_one_screen(scope: str) -> None:
    taken: dict[str, str] = {}
    for item in in_scopes([scope, "app", "list"]):
        for key in item.keys.split(","):
            assert key not in taken, f"{key}: {taken.get(key)} and {item.id}"
            taken[key] = item.id


@pytest.mark.parametrize("item", [item for item in VERBS if "list" not in item.scopes], ids=lambda item: item.id)
def test_every_verb_has_a_handler_wherever_it_works(item) -> None:
    scopes = set(SCREENS) if "app" in item.scopes else set(item.scopes)
    for scope in scopes:
        assert hasattr(SCREENS[scope], f"do_{item.id}") or hasattr(GonogoApp, f"do_{item.id}"), scope


def test_keys_of_screens_and_lists_come_from_the_list_only() -> None:
    for scope, screen in SCREENS.items():
        keys = {key for binding in screen.BINDINGS for key in binding.key.split(",")}
        assert keys == {key for item in in_scopes([scope]) for key in item.keys.split(",")}
    assert {binding.id for binding in Lines.BINDINGS} == {f"list.{item.id}" for item in in_scopes(["list"])}


def test_help_names_every_verb_of_a_screen_and_says_why_one_cannot_be_used() -> None:
    text = "\n".join(
        plain((*paragraph.gutter, *paragraph.body))
        for paragraph in help_text("board", lambda item: "because" if item.id == "cancel" else "")
    )
    for item in in_scopes(["board", "app", "list"]):
        assert item.help in text
    assert f"{verb('cancel').help} Not now: because." in text


def test_guards_let_nothing_be_written_without_a_desk(tmp_path: Path) -> None:
    run = runs.failed(tmp_path / "run")
    snapshot = Session(run.path, None).poll()
    run.close()
    for item in (item for item in VERBS if item.writes):
        for target in ("", "004-smoke-1", "003-train-1", "005-smoke-2"):
            problem = item.guard(Situation(snapshot, "opened to look on", target))
            assert problem == "read-only: opened to look on", item.id


def test_guards_say_what_each_verb_needs(tmp_path: Path) -> None:
    run = runs.failed(tmp_path / "run")
    snapshot = Session(run.path, None).poll()
    run.close()

    def problem(verb_id: str, target: str) -> str:
        return verb(verb_id).guard(Situation(snapshot, "", target))

    assert problem("retry", "004-smoke-1") == ""
    assert "failed or was rejected" in problem("retry", "003-train-1")
    assert problem("cancel", "003-train-1") == "job 1003 has ended"
    assert "has a job" in problem("cancel", "005-smoke-2")
    assert "unknown outcome" in problem("settle", "003-train-1")
    assert problem("note", "") == ""


def test_a_closed_release_takes_nothing_but_notes(tmp_path: Path) -> None:
    run = runs.ready(tmp_path / "run")
    snapshot = Session(run.path, None).poll()
    situation = Situation(snapshot, "", "004-smoke-1")
    for name in ("approve", "reject", "retry", "settle", "abort"):
        assert verb(name).guard(situation) == "the release is closed"
