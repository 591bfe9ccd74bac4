"""Settings are read strictly, and what they switch off stays off; no text breaks out of a call to the operator."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from console.cli import main
from console.notifying import notification, title
from console.session import open_session
from console.settings import TEMPLATE, Notify, Production, Settings, SettingsError, Signing, load, parse
from tests.console import runs
from tests.console.driving import console

FILE = Path("config.toml")


def test_the_template_is_the_defaults_with_every_line_in_force_too() -> None:
    assert parse(TEMPLATE, FILE) == Settings()
    lines = TEMPLATE.split("\n")
    live = "\n".join(line[2:] if " = " in line or line.startswith("# [") else line for line in lines)
    found = parse(live, FILE)
    assert found._replace(runs=(), clusters=None, production={}, signing=Signing(), notify=Notify()) == Settings(
        production={}
    )
    assert found.production == {"alpha": Production()}
    assert set(tomllib.loads(live)) == {"runs", "clusters", "theme", "animations", "notify", "signing", "production"}


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("bell = true", "config.toml: bell: unknown key; expected one of runs, clusters"),
        ("animations = 1", "config.toml: animations: expected true or false, found 1"),
        ("theme = 'pink'", "config.toml: theme: expected one of gonogo-dark"),
        ("theme = []", "config.toml: theme: expected one of gonogo-dark"),
        ("runs = [1]", "config.toml: runs: expected a path, or a list of paths, found [1]"),
        ("notify = true", "config.toml: notify: expected a table, found True"),
        ("[notify]\nbel = true", "config.toml: notify.bel: unknown key; expected one of bell, desktop, title"),
        ("[notify]\ndesktop = 'popup'", "config.toml: notify.desktop: expected one of auto, osc9, osc777, off"),
        ("[production.a]\ncolour = 'red'", "config.toml: production.a.colour: expected one of passed"),
        ("production.a = 1", "config.toml: production.a: expected a table, found 1"),
        ("theme = ", "config.toml: no TOML:"),
    ],
)
def test_what_is_wrong_is_one_line_with_file_and_key_and_what_was_expected(text: str, line: str) -> None:
    with pytest.raises(SettingsError) as caught:
        parse(text, FILE)
    assert str(caught.value).startswith(line)
    assert "\n" not in str(caught.value)


def test_the_environment_goes_over_the_file(tmp_path: Path) -> None:
    file = tmp_path / "c.toml"
    file.write_text("theme = 'gonogo-light'\nruns = 'here'\n")
    environ = {"GONOGO_CONFIG": str(file)}
    assert (load(environ).theme, load(environ).runs) == ("gonogo-light", (Path("here"),))
    found = load({**environ, "GONOGO_THEME": "gonogo-dark", "GONOGO_RUNS": "/a:/b"})
    assert (found.theme, found.runs) == ("gonogo-dark", (Path("/a"), Path("/b")))
    with pytest.raises(SettingsError, match="GONOGO_THEME: expected one of"):
        load({**environ, "GONOGO_THEME": "pink"})
    assert load({"GONOGO_CONFIG": str(tmp_path / "nowhere")}) == Settings()


def test_the_command_shows_checks_and_names_the_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "c.toml"
    monkeypatch.setenv("GONOGO_CONFIG", str(file))
    assert main(["config", "path"]) == 0
    assert capsys.readouterr().out == f"{file}\n"
    assert main(["config", "check"]) == 2
    assert main(["config", "template"]) == 0
    file.write_text(capsys.readouterr().out)
    assert main(["config", "check"]) == 0
    file.write_text("theme = 'gonogo-light'\n[production.a]\n")
    assert main(["config", "show"]) == 0
    out = capsys.readouterr().out
    assert "theme = gonogo-light" in out
    assert "production = a: PRODUCTION failed" in out
    file.write_text("a = 1\nb = 2\n")
    for arguments in (["config", "check"], ["fleet", "--plain"]):
        assert main(arguments) == 2
        said = capsys.readouterr().err.splitlines()
        assert [line.split(": ")[2] for line in said] == ["a", "b"]
        assert all("unknown key" in line for line in said)


@given(text=st.text() | st.sampled_from(runs.HOSTILE), way=st.sampled_from(["osc9", "osc777", "auto"]))
def test_no_text_ends_a_sequence_or_begins_another(text: str, way: str) -> None:
    for sequence in (notification(text, way, {"TERM": "foot"}), title(text, 2, {"TERM_PROGRAM": "iTerm.app"})):
        for part in sequence.split("\x07")[:-1]:
            assert part[:2] == "\x1b]"
            assert part[2:].isprintable()
        assert sequence.endswith("\x07")
    if way == "osc777":
        assert notification(text, way, {}).count(";") == 3


def test_each_terminal_gets_the_sequence_that_it_knows() -> None:
    assert notification("x", "auto", {"TERM": "xterm-kitty"}) == "\x1b]9;gonogo: x\x07"
    assert notification("x;y", "auto", {"TERM_PROGRAM": "ghostty"}) == "\x1b]777;notify;gonogo;x,y\x07"
    assert notification("x", "off", {}) == ""
    assert title("gonogo", 0, {}) == "\x1b]2;gonogo\x07"


@pytest.mark.parametrize("on", [True, False])
async def test_bell_notification_and_title_are_off_where_they_are_set_so(
    tmp_path: Path, on: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = runs.staged(tmp_path / "run")
    settings = Settings(bell=on, desktop="osc9" if on else "off", title=on)
    async with console(run) as driven:
        driven.app.settings = settings
        written: list[str] = []
        monkeypatch.setattr(driven.app, "_to_terminal", written.append)
        monkeypatch.setattr(driven.app, "bell", lambda: written.append("bell"))
        run.propose("train", "train")
        await driven.until(lambda: "1 job waits for you" in driven.screen_text, "it is said")
    assert ("bell" in written) is on
    assert any("]9;" in item for item in written) is on
    assert any("]2;(1)" in item for item in written) is on


@pytest.mark.parametrize("area", ["1", "2", "3", "4"])
async def test_a_marked_cluster_is_named_by_its_mark_on_every_screen(tmp_path: Path, area: str) -> None:
    run = runs.waiting(tmp_path / "run")
    session = open_session(run.path, read_only=True, clock=run.time.clock)
    async with console(run, (80, 24), session=session) as driven:
        driven.app.settings = Settings(production={"sandbox": Production("LIVE", "failed")})
        await driven.press(area)
        driven.area.update_view()
        await driven.pilot.pause()
        assert "LIVE · sandbox" in driven.screen_text
