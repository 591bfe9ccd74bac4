"""What an approved job cannot represent is refused in one line that names it; everything else becomes a job."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from console.release.asking.admitting import admit
from console.release.asking.building import propose, read_asked
from console.release.clusters import Cluster
from console.release.errors import InputError
from console.release.job import ExactJob
from console.release.state import RunState
from tests.lookalike.recorded import Recorded, refused, taken
from tests.release.making import new_run
from tests.release.submitting import make_release


@dataclass(frozen=True)
class Place:
    run_dir: Path
    state: RunState
    cluster: Cluster


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Place:
    folder = tmp_path_factory.mktemp("runs")
    cluster = make_release(folder).cluster
    writer = new_run(folder / "run")
    writer.record("setup_done", "The cluster answers", stage="setup", facts={"workspace": "/work"})
    inputs = {**writer.state.inputs, "login": "alice@login.example.org:22", "cluster": "gpu"}
    return Place(folder / "run", replace(writer.state, inputs=inputs), cluster)


def job_of(line: Recorded, place: Place, folder: Path) -> ExactJob:
    """The job that the line asks for, as the conductor takes it up."""
    line.put_files(folder)
    words = [word.replace("JOB", "100") for word in line.words]
    stdin = line.script.encode() if line.on_stdin else None
    asked = read_asked(words, stdin=stdin, folder=folder, environ=line.environ)
    now = datetime.now(UTC)
    proposal = propose(place.run_dir, place.state, asked, line.environ, proposer="robot", now=now)
    return admit(proposal, place.state, place.cluster)


@pytest.mark.parametrize(("named", "line"), refused(), ids=lambda item: getattr(item, "text", None))
def test_what_cannot_be_represented_is_refused_by_name(
    named: str, line: Recorded, place: Place, tmp_path: Path
) -> None:
    with pytest.raises(InputError) as caught:
        job_of(line, place, tmp_path)
    said = str(caught.value)
    assert len(said.splitlines()) == 1
    # Of a variable that holds an option's value, the option is what is wrong.
    assert (named if named != "SBATCH_EXPORT=ALL" else "--export") in said, said


@pytest.mark.parametrize("line", taken(), ids=lambda item: item.text)
def test_the_rest_becomes_a_job_of_the_same_script(line: Recorded, place: Place, tmp_path: Path) -> None:
    job = job_of(line, place, tmp_path)
    if "--wrap" not in line.text.partition(" <<< ")[0]:
        assert job.script == line.script
    assert job.job_name.endswith(f"-{job.token[:8]}")


def test_there_are_as_many_as_are_spoken_of() -> None:
    lines = [line.text for line in taken()]
    assert len(set(lines)) == len(lines) >= 250
    assert len(refused()) >= 45
