"""What operators ask of a running conductor, as files."""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from console.release import requests

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


@pytest.fixture
def run_dir(tmp_path: Path) -> Path:
    (tmp_path / "requests").mkdir()
    return tmp_path


def test_a_request_comes_back_as_it_was_asked(run_dir: Path) -> None:
    name = requests.ask(run_dir, "cancel", "alice", "too slow\x1b", time=NOW, attempt_id="003-train-1")
    assert requests.pending(run_dir) == (
        [requests.Request(name, "cancel", "003-train-1", "alice", "too slow\x1b")],
        [],
    )
    requests.done(run_dir, name)
    requests.done(run_dir, name)
    assert requests.pending(run_dir) == ([], [])


def test_requests_are_served_in_the_order_in_which_they_were_made(run_dir: Path) -> None:
    zone = timezone(timedelta(hours=-5))
    late = requests.ask(run_dir, "note", "alice", "late", time=NOW.astimezone(zone) + timedelta(seconds=2))
    early = requests.ask(run_dir, "note", "alice", "early", time=NOW)
    assert [request.name for request in requests.pending(run_dir)[0]] == [early, late]


def test_an_unknown_verb_is_refused(run_dir: Path) -> None:
    with pytest.raises(ValueError, match="approve"):
        requests.ask(run_dir, "approve", "alice", "", time=NOW)
    assert os.listdir(run_dir / "requests") == []


def test_no_folder_means_no_requests(tmp_path: Path) -> None:
    assert requests.pending(tmp_path) == ([], [])


GOOD = {"verb": "note", "id": "", "operator": "alice", "text": "words"}


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{",
        b"null",
        b"[]",
        b"[" * 100_000,
        b"\xff",
        json.dumps({**GOOD, "verb": "approve"}).encode(),
        json.dumps({**GOOD, "more": "x"}).encode(),
        json.dumps({**GOOD, "text": 1}).encode(),
        json.dumps({key: value for key, value in GOOD.items() if key != "id"}).encode(),
    ],
)
def test_what_is_no_request_is_named_and_left_alone(run_dir: Path, data: bytes) -> None:
    path = run_dir / "requests" / "20260102T030405.000000Z-0123abcd.json"
    path.write_bytes(data)
    assert requests.pending(run_dir) == ([], [path.name])
    assert path.read_bytes() == data


def test_a_file_of_another_name_is_no_request(run_dir: Path) -> None:
    (run_dir / "requests" / "please.json").write_text(json.dumps(GOOD))
    (run_dir / "requests" / ".half-written").write_text("{")
    assert requests.pending(run_dir) == ([], ["please.json"])


@given(data=st.binary(max_size=200))
def test_any_bytes_never_raise(tmp_path_factory: pytest.TempPathFactory, data: bytes) -> None:
    run_dir = tmp_path_factory.mktemp("run")
    (run_dir / "requests").mkdir()
    (run_dir / "requests" / "20260102T030405.000000Z-0123abcd.json").write_bytes(data)
    found, odd = requests.pending(run_dir)
    assert len(found) + len(odd) == 1
