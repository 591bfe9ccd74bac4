"""Commands of this machine in a clusters file: the operator's own, or confirmed one by one, or never run."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from console import cli
from console.commands import confirm as confirm_module
from console.release import confirmed, connecting
from console.release.clusters import Cluster, load_clusters
from console.release.confirmed import Command
from console.release.errors import InputError


@pytest.fixture(autouse=True)
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "home").mkdir()
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("GONOGO_CONFIG", str(tmp_path / "config" / "config.toml"))


def entry(**more: Any) -> dict[str, Any]:
    return {"login_node": "login.example.com", "user": "me", "workspace": "/w", **more}


def written(folder: Path, data: dict[str, Any], name: str = "project/.agents/clusters.yaml") -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"clusters": {"alpha": data}}))
    return path


def read(path: Path) -> Cluster:
    return load_clusters(path).cluster("alpha")


def commands(path: Path) -> tuple[Command, ...]:
    return load_clusters(path).commands("alpha")


WAKE, PROXY = entry(gonogo={"wake": ["/bin/sh", "-c", "touch x"]}), entry(ssh_proxy="nc %h %p")


@pytest.mark.parametrize(("data", "field"), [(WAKE, "gonogo.wake"), (PROXY, "ssh_proxy")])
def test_a_projects_command_is_refused_until_it_was_confirmed(tmp_path: Path, data: dict[str, Any], field: str) -> None:
    path = written(tmp_path, data)
    with pytest.raises(InputError) as caught:
        read(path)
    text = str(caught.value)
    assert str(path) in text
    assert f"clusters.alpha.{field}" in text
    assert "gonogo cluster confirm alpha" in text
    confirmed.confirm(commands(path))
    assert read(path).name == "alpha"


def test_a_command_that_changes_is_asked_for_again(tmp_path: Path) -> None:
    confirmed.confirm(commands(written(tmp_path, WAKE)))
    path = written(tmp_path, entry(gonogo={"wake": ["/bin/sh", "-c", "touch y"]}))
    with pytest.raises(InputError, match="touch y"):
        read(path)


def test_a_proxy_command_is_confirmed_for_one_host_user_and_port(tmp_path: Path) -> None:
    confirmed.confirm(commands(written(tmp_path, PROXY)))
    changes: list[dict[str, Any]] = [{"login_node": "other.example.com"}, {"user": "root"}, {"gonogo": {"port": 2}}]
    for change in changes:
        with pytest.raises(InputError, match="ssh_proxy"):
            read(written(tmp_path, {**PROXY, **change}))


def test_an_ssh_configuration_of_a_project_is_confirmed_with_its_bytes_before_it_is_read(tmp_path: Path) -> None:
    config, mark = tmp_path / "ssh_config", tmp_path / "mark"
    config.write_text(f'Match exec "touch {mark}"\n  User root\n')
    path = written(tmp_path, entry(gonogo={"ssh_config": str(config)}))
    with pytest.raises(InputError, match=r"gonogo\.ssh_config"):
        read(path)
    assert not mark.exists(), "parsing it would have run the command"
    config.write_text("Host login.example.com\n  User someone\n")
    confirmed.confirm(commands(path))
    assert read(path).user == "me"
    config.write_text("Host login.example.com\n  ProxyCommand evil\n")
    with pytest.raises(InputError, match=r"gonogo\.ssh_config"):
        read(path)


def test_the_operators_own_files_need_no_confirmation(tmp_path: Path) -> None:
    own = written(tmp_path, WAKE, "home/.config/modelopt/clusters.yaml")
    assert read(own).wake == ("/bin/sh", "-c", "touch x")
    named = written(tmp_path, PROXY, "elsewhere/clusters.yaml")
    with pytest.raises(InputError):
        read(named)
    (tmp_path / "config").mkdir()
    (tmp_path / "config" / "config.toml").write_text(f'clusters = "{named}"\n')
    assert read(named).ssh_proxy == "nc %h %p"


def test_a_list_that_others_can_write_confirms_nothing(tmp_path: Path) -> None:
    path = written(tmp_path, WAKE)
    confirmed.confirm(commands(path))
    confirmed.store_path().chmod(0o666)
    with pytest.raises(InputError, match="a file that only you can write"):
        read(path)


def test_nothing_is_run_by_a_command_that_was_not_confirmed(tmp_path: Path, capsys) -> None:
    mark = tmp_path / "mark"
    path = written(tmp_path, entry(gonogo={"wake": ["/usr/bin/touch", str(mark)]}))
    for verb in ("check", "trust"):
        assert cli.main(["cluster", verb, "alpha", "--clusters", str(path)]) != 0
    assert not mark.exists()
    confirmed.confirm(commands(path))
    asyncio.run(connecting.wake(read(path)))
    assert mark.exists(), "the same command would have left its mark"


Confirm = Callable[..., int]


@pytest.fixture
def confirm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Confirm:
    path = written(tmp_path, {**WAKE, **PROXY})

    def run(*words: str, typed: str | None = None) -> int:
        with pytest.MonkeyPatch.context() as patch:
            if typed is not None:
                patch.setattr(confirm_module, "interactive", lambda: True)
                patch.setattr("builtins.input", lambda prompt: typed)
            return cli.main(["cluster", "confirm", "alpha", "--clusters", str(path), *words])

    return run


def test_a_typed_code_takes_one_command_and_no_other(confirm: Confirm, tmp_path: Path, capsys) -> None:
    first, second = commands(tmp_path / "project/.agents/clusters.yaml")
    assert confirm(typed="yes") == confirm(typed="") == 1
    assert confirmed.confirmed() == frozenset()
    assert confirm(typed=first.code) == 1
    assert confirmed.confirmed() == {first.digest}
    assert confirm(typed=second.code) == 0
    assert confirm() == 0
    assert "touch x" in capsys.readouterr().out


def test_without_a_terminal_only_the_full_digest_takes_a_command(confirm: Confirm, tmp_path: Path, capsys) -> None:
    found = commands(tmp_path / "project/.agents/clusters.yaml")
    assert confirm() == 1
    assert confirm("--digest", found[0].code) == 1
    assert confirmed.confirmed() == frozenset()
    capsys.readouterr()
    assert confirm("--json", *(word for one in found for word in ("--digest", one.digest))) == 0
    shown = json.loads(capsys.readouterr().out)
    assert [(one["field"], one["confirmed"]) for one in shown] == [("gonogo.wake", True), ("ssh_proxy", True)]
    assert confirmed.confirmed() == {one.digest for one in found}


@pytest.mark.parametrize("key", ["port", "known_hosts", "ssh_config"])
def test_a_setting_of_ours_beside_gonogo_is_refused_where_it_would_be_passed_over(tmp_path: Path, key: str) -> None:
    value: Any = 2222 if key == "port" else "/dev/null"
    with pytest.raises(InputError) as caught:
        read(written(tmp_path, entry(**{key: value})))
    assert caught.value.field == f"clusters.alpha.{key}"
    assert f"move it to gonogo.{key}" in str(caught.value)
    # Another tool may want it there: what counts here stands under our own key then.
    assert read(written(tmp_path, entry(**{key: value, "gonogo": {key: value}}))).name == "alpha"
