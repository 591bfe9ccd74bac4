"""A target is staged whole and as the hub lists it at the pinned commit, or not at all; refusals say what to do."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from backends.payloads.stage_target import TRIES
from gates.registry import run as run_gate
from gates.verdict import Verdict
from tests.payloads import fake_hub
from tests.payloads.fake_hub import COMMIT, REPOSITORY, FakeHub
from tests.payloads.running import TOKEN, Model, result, run, start

WEIGHTS = "model-00001-of-00002.safetensors"
SECRET = "hf_0123456789abcdefSECRET"


@pytest.fixture
def hub(model: Model, tmp_path: Path) -> Iterator[FakeHub]:
    folder = tmp_path / "on the hub"
    folder.mkdir()
    for file in model.target.iterdir():
        (folder / file.name).write_bytes(file.read_bytes())
    (folder / "pytorch_model.bin").write_bytes(b"the same weights in another format")
    (folder / ".gitattributes").write_text("*.safetensors filter=lfs\n")
    (folder / "empty.txt").touch()
    with fake_hub.running(folder) as running:
        running.breaking = WEIGHTS
        yield running


class Staging:
    """Runs the job's two programs and lets the gate judge what they wrote."""

    def __init__(self, root: Path, hub: FakeHub) -> None:
        self.root, self.hub = root / "job", hub
        self.root.mkdir()
        self.place = root / "hf local" / "it's a target"
        self.environment = {"HF_TOKEN": "", "HF_HOME": str(root / "home"), "HF_TOKEN_PATH": ""}

    @property
    def arguments(self) -> list[object]:
        asked = ["--target", REPOSITORY, "--revision", COMMIT, "--path", self.place]
        return [*asked, "--hub", self.hub.url, "--pause", "0.01"]

    def stage(self) -> subprocess.CompletedProcess[str]:
        return run("stage_target.py", *self.arguments, cwd=self.root, **self.environment)

    def judge(self) -> Verdict:
        check = self.root / "target_check.json"
        run("check_target.py", self.place, cwd=self.root)
        files: dict[str, bytes | None] = {
            "stage_target": (self.root / "stage_target.json").read_bytes(), "target_check": check.read_bytes(),
        }  # fmt: skip
        expected = {"token": TOKEN, "target": REPOSITORY, "revision": COMMIT, "path": str(self.place)}
        return run_gate("target", files, expected)


@pytest.fixture
def staging(tmp_path: Path, hub: FakeHub) -> Staging:
    return Staging(tmp_path, hub)


def test_a_target_is_staged_and_passes_its_gate(staging: Staging) -> None:
    done = staging.stage()
    assert done.returncode == 0, done.stderr
    verdict = staging.judge()
    assert verdict.passed, verdict.detail
    names = {path.name for path in staging.place.iterdir()}
    assert {"config.json", WEIGHTS, "empty.txt"} <= names
    assert not names & {"pytorch_model.bin", ".gitattributes"}
    for path in staging.place.iterdir():
        assert path.read_bytes() == (staging.hub.folder / path.name).read_bytes()
    assert not Path(f"{staging.place}.partial").exists()
    assert not result(staging.root / "stage_target.json")["token_found"]


@pytest.mark.parametrize(
    ("status", "code", "words"),
    [
        (401, "GatedRepo", "hf auth login"),
        (403, "GatedRepo", f"request access to {REPOSITORY}"),
        (404, "RevisionNotFound", "check name and revision"),
    ],
)
@pytest.mark.parametrize("where", ["refuse", "refuse_list"])
def test_a_refusal_of_the_hub_is_for_the_operator_and_is_not_asked_again(
    staging: Staging, where: str, status: int, code: str, words: str
) -> None:
    setattr(staging.hub, where, (status, code))
    assert staging.stage().returncode == 1
    verdict = staging.judge()
    assert verdict.failure_class == "USER_CONFIG_ERROR"
    assert words in verdict.detail
    written = result(staging.root / "stage_target.json")
    assert (written["http_status"], f"HTTP {status}: {code}" in written["error"]) == (status, True)
    assert not staging.place.exists()
    asked = [path for path, _, _ in staging.hub.seen]
    assert len(asked) == len(set(asked))


def test_a_hub_that_is_busy_is_asked_again(staging: Staging) -> None:
    staging.hub.busy = TRIES - 1
    assert staging.stage().returncode == 0
    assert staging.judge().passed


def test_a_hub_that_stays_busy_is_a_matter_of_infrastructure(staging: Staging) -> None:
    staging.hub.busy = 1000
    assert staging.stage().returncode == 1
    verdict = staging.judge()
    assert (verdict.failure_class, staging.hub.asked("?blobs=true")) == ("INFRA_TRANSIENT", TRIES)


def test_a_download_that_breaks_off_goes_on_where_it_was(staging: Staging) -> None:
    size = (staging.hub.folder / WEIGHTS).stat().st_size
    # More breaks than tries: each got further than the one before.
    staging.hub.after = size // (2 * TRIES) + 1
    staging.hub.breaks = 2 * TRIES
    assert staging.stage().returncode == 0
    assert staging.judge().passed
    starts = [int(range_[6:-1]) for path, range_, _ in staging.hub.seen if path.endswith(WEIGHTS) and range_]
    assert len(starts) > TRIES
    assert starts == sorted(starts)
    assert starts[0] > 0


def test_a_server_without_ranges_sends_it_all_again(staging: Staging) -> None:
    staging.hub.ignore_ranges = True
    staging.hub.breaks, staging.hub.after = 1, 5000
    assert staging.stage().returncode == 0
    assert staging.judge().passed


def test_an_attempt_goes_on_with_what_the_one_before_left(staging: Staging) -> None:
    staging.hub.breaks, staging.hub.after = 1000, 5000
    staging.hub.ignore_ranges = True
    assert staging.stage().returncode == 1
    assert staging.judge().failure_class == "INFRA_TRANSIENT"
    staging.hub.breaks, staging.hub.ignore_ranges = 0, False
    staging.hub.seen.clear()
    assert staging.stage().returncode == 0
    assert staging.judge().passed
    assert "bytes=5000-" in {range_ for _, range_, _ in staging.hub.seen}
    assert staging.hub.asked("config.json") == 0


@pytest.mark.parametrize("wrong", [WEIGHTS, "config.json"])
def test_bytes_that_are_not_those_of_the_commit_are_never_taken(staging: Staging, wrong: str) -> None:
    staging.hub.wrong = {wrong}
    assert staging.stage().returncode == 1
    assert "digest differs" in result(staging.root / "stage_target.json")["error"]
    assert not staging.place.exists()
    staging.hub.wrong = set()
    assert staging.stage().returncode == 0
    assert staging.judge().passed


def test_a_list_of_another_commit_is_refused(staging: Staging) -> None:
    staging.hub.sha = "f" * 40
    assert staging.stage().returncode == 1
    assert "not for" in result(staging.root / "stage_target.json")["error"]


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        ({"rfilename": "../outside.json", "size": 1}, "no path inside a folder"),
        ({"rfilename": "/etc/motd.txt", "size": 1}, "no path inside a folder"),
        ({"rfilename": "config.json", "size": "12"}, "no list of files"),
        ({"rfilename": "huge.safetensors", "size": 1 << 60, "blobId": ""}, "free there"),
    ],
)
def test_a_list_that_asks_for_nonsense_is_refused(staging: Staging, entry: dict[str, Any], words: str) -> None:
    staging.hub.more = [entry]
    assert staging.stage().returncode == 1
    assert words in result(staging.root / "stage_target.json")["error"]
    assert not staging.place.exists()
    assert not (staging.place.parent / "outside.json").exists()


def test_a_model_without_safetensors_is_refused(staging: Staging) -> None:
    for weights in staging.hub.folder.glob("*.safetensors"):
        weights.unlink()
    assert staging.stage().returncode == 1
    assert "no weights as safetensors" in result(staging.root / "stage_target.json")["error"]


def test_a_copy_that_is_there_already_is_kept_where_it_is_the_same(staging: Staging) -> None:
    assert staging.stage().returncode == 0
    staging.hub.seen.clear()
    assert staging.stage().returncode == 0
    assert staging.judge().passed
    assert staging.hub.asked(".safetensors") == 0


def test_a_copy_that_is_there_already_and_differs_is_left_alone(staging: Staging) -> None:
    assert staging.stage().returncode == 0
    (staging.place / "config.json").write_text("{}")
    assert staging.stage().returncode == 1
    assert "was there already" in result(staging.root / "stage_target.json")["error"]
    assert (staging.place / "config.json").read_text() == "{}"


@pytest.mark.parametrize("where", ["HF_TOKEN", "HF_TOKEN_PATH", "HF_HOME"])
def test_the_token_goes_to_the_hub_and_nowhere_else(staging: Staging, tmp_path: Path, where: str) -> None:
    (tmp_path / "home").mkdir()
    keep = {"HF_TOKEN_PATH": tmp_path / "a token", "HF_HOME": tmp_path / "home" / "token"}
    if where == "HF_TOKEN":
        staging.environment[where] = SECRET
    else:
        keep[where].write_text(f"{SECRET}\n")
        staging.environment[where] = str(keep[where] if where == "HF_TOKEN_PATH" else tmp_path / "home")
    with fake_hub.running(staging.hub.folder) as storage:
        staging.hub.elsewhere = storage.url
        done = staging.stage()
        assert done.returncode == 0, done.stderr
        assert {token for _, _, token in storage.seen} == {""}
    assert {token for _, _, token in staging.hub.seen} == {f"Bearer {SECRET}"}
    assert staging.judge().passed
    written = (staging.root / "stage_target.json").read_text()
    assert SECRET not in written + done.stdout + done.stderr
    assert result(staging.root / "stage_target.json")["token_found"]


def test_nobody_there_is_said_and_tried_again(staging: Staging) -> None:
    url = staging.hub.url
    staging.hub.server_close()
    done = run("stage_target.py", *staging.arguments, cwd=staging.root, **staging.environment)
    assert done.returncode == 1
    assert f"{url}/api" in result(staging.root / "stage_target.json")["error"]
    assert done.stderr.count("once more") == TRIES - 1


def test_a_job_that_is_told_to_end_says_so(staging: Staging) -> None:
    staging.hub.busy = 1_000_000
    arguments = [*staging.arguments[:-1], "60"]
    process = start("stage_target.py", *arguments, cwd=staging.root, **staging.environment)
    deadline = time.monotonic() + 60
    while not staging.hub.seen and time.monotonic() < deadline:
        time.sleep(0.01)
    process.terminate()
    process.communicate(timeout=60)
    assert "told to end by signal 15" in result(staging.root / "stage_target.json")["error"]
