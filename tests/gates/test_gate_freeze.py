"""gate_freeze: the record of a freeze against what was asked for and against itself."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from gates.freeze import manifest_digests, manifest_line
from gates.verdict import FailureClass
from tests.gates import passing
from tests.gates.passing import GONE, assert_fails, change, digest, freeze, judge

FAILED = FailureClass.FREEZE_FAILED


def judged(changes: dict[str, Any], expected: dict[str, Any] | None = None, status: str = "frozen") -> Any:
    return judge("freeze", {"freeze": change(freeze(status), changes)}, expected)


def test_a_freeze_and_a_verification_pass() -> None:
    manifest = freeze()["manifest_sha256"]
    assert judged({}).passed
    assert judged({"source": None}, {"manifest_sha256": manifest}, "verified").passed
    assert dict(judged({}).facts)["manifest_sha256"] == manifest


@pytest.mark.parametrize(
    ("changes", "checks"),
    [
        ({"token": "another"}, {"token"}),
        ({"status": "refused", "failure": "destination_exists", "detail": "it is there"}, {"status"}),
        ({"status": "Frozen"}, {"status"}),
        ({"failure": "changed_source"}, {"failure"}),
        ({"problems": ["one file changed"]}, {"problems"}),
        ({"source": "/elsewhere"}, {"source"}),
        ({"source": None}, {"field"}),
        ({"destination": "/elsewhere"}, {"destination"}),
        ({"destination": passing.EXPORT}, {"destination", "copied"}),
        ({"destination": passing.DRAFTER + ".partial"}, {"destination", "complete"}),
        ({"manifest_sha256": digest("other")}, {"manifest_of_files"}),
        ({"manifest_sha256": "A" * 64}, {"field"}),
        ({"manifest_sha256": GONE}, {"field"}),
        ({"bytes": 25601}, {"bytes"}),
        ({"bytes": 0}, {"field"}),
        ({"files": []}, {"field"}),
        ({"files[0].sha256": digest("changed")}, {"manifest_of_files"}),
        ({"files[0].path": "settings.json"}, {"manifest_of_files"}),
        ({"files[0].path": "/etc/passwd"}, {"path_inside", "manifest_of_files"}),
        ({"files[0].path": "a/../../b"}, {"path_inside", "manifest_of_files"}),
        ({"files[0].path": "model.safetensors"}, {"path_once", "bytes"}),
        ({"files[0].path": "config.json.partial"}, {"no_unfinished", "manifest_of_files"}),
        ({"files[0].size": -1}, {"field", "bytes"}),
        ({"files[0].path": "\ud800"}, {"manifest_of_files"}),
    ],
)
def test_each_check_fails_alone(changes: dict[str, Any], checks: set[str]) -> None:
    assert_fails(judged(changes), FAILED, *checks)


def test_a_verification_of_another_manifest_fails() -> None:
    verdict = judged({}, {"manifest_sha256": digest("at the freeze")}, "verified")
    assert_fails(verdict, FAILED, "manifest")


def test_why_it_was_refused_is_in_the_detail_and_the_facts() -> None:
    verdict = judged({"status": "refused", "failure": "destination_exists", "detail": "drafts/x is there already"})
    assert "drafts/x is there already" in verdict.detail
    assert dict(verdict.facts)["failure"] == "destination_exists"


@pytest.mark.parametrize("data", [None, b"", b"{", b'{"status": "frozen", "status": "frozen"}'])
def test_without_a_readable_record_nothing_was_frozen(data: bytes | None) -> None:
    verdict = judge("freeze", {"freeze": data})
    assert_fails(verdict, FAILED, "readable")
    assert not verdict.readable


def test_the_manifest_may_list_itself_and_may_be_sorted_by_bytes_or_as_listed() -> None:
    document = freeze()
    lines = [manifest_line(file["path"], file["sha256"]) for file in reversed(document["files"])]
    document["files"].reverse()
    for manifest in (document["manifest_sha256"], hashlib.sha256(b"".join(lines)).hexdigest()):
        assert judge("freeze", {"freeze": {**document, "manifest_sha256": manifest}}).passed
    document["files"].append({"path": "SHA256SUMS", "size": 300, "sha256": document["manifest_sha256"]})
    assert judge("freeze", {"freeze": document}).passed
    assert judge("freeze", {"freeze": {**document, "bytes": document["bytes"] + 300}}).passed


@pytest.mark.skipif(shutil.which("sha256sum") is None, reason="needs GNU sha256sum")
def test_the_manifests_lines_are_those_of_sha256sum(tmp_path: Path) -> None:
    names = ["plain.txt", "with space", "-dash", "back\\slash", "new\nline", "ret\rurn", "ünï.json"]
    files = []
    for name in names:
        (tmp_path / name).write_text(name)
        files.append((name, hashlib.sha256(name.encode()).hexdigest()))
    made = subprocess.run(
        ["sha256sum", "--", *names], cwd=tmp_path, capture_output=True, check=True, env={"LC_ALL": "C"}
    ).stdout
    assert b"".join(manifest_line(*file) for file in files) == made
    assert hashlib.sha256(made).hexdigest() in manifest_digests(files)
