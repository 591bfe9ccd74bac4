"""sbatch's command line is read as sbatch reads it; what cannot be represented is refused by name."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from console.release.asking.describing import clock_of, describe, seconds_of
from console.release.asking.directives import directives
from console.release.asking.sbatch_line import read_line
from console.release.errors import InputError


@pytest.mark.parametrize(
    ("words", "options", "rest"),
    [
        (["-p", "batch", "job.sh", "-x"], [("partition", "batch")], ["job.sh", "-x"]),
        (["-pbatch", "-N2", "job.sh"], [("partition", "batch"), ("nodes", "2")], ["job.sh"]),
        (["-Hn4", "job.sh"], [("hold", None), ("ntasks", "4")], ["job.sh"]),
        (["--time=1:00", "--exclusive", "j"], [("time", "1:00"), ("exclusive", None)], ["j"]),
        (["--exclusive=user", "j"], [("exclusive", "user")], ["j"]),
        (["--time", "5", "--", "-odd-name"], [("time", "5")], ["-odd-name"]),
        (["--gpus-per-n=4"], [("gpus-per-node", "4")], []),
        (["--wrap=a b"], [("wrap", "a b")], []),
        (["-", "a"], [], ["-", "a"]),
        (["--comment="], [("comment", "")], []),
    ],
)
def test_lines(words: list[str], options: list[tuple[str, str | None]], rest: list[str]) -> None:
    line = read_line(words)
    assert (list(line.options), list(line.words)) == (options, rest)


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (["--nosuch"], "--nosuch"),
        (["-Z"], "-Z"),
        (["-W", "j"], "--wait"),
        (["--wait", "j"], "--wait"),
        (["-M", "other", "j"], "--clusters"),
        (["--export-file=x", "j"], "--export-file"),
        (["--uid=0", "j"], "--uid"),
        (["--test-only", "j"], "--test-only"),
        (["--partition"], "--partition"),
        (["--hold=yes"], "--hold"),
        (["--gpus-per"], "--gpus-per"),
    ],
)
def test_what_cannot_be_represented_is_refused_by_name(words: list[str], named: str) -> None:
    with pytest.raises(InputError) as caught:
        read_line(words)
    assert named in str(caught.value)
    assert len(str(caught.value).splitlines()) == 1


def test_directives_end_at_the_first_command_and_the_line_wins() -> None:
    script = "#!/bin/bash\n#SBATCH -p slow -t 5 # why\n# words\n\n#SBATCH --nodes=3\necho\n#SBATCH --nodes=9\n"
    assert directives(script) == (("partition", "slow"), ("time", "5"), ("nodes", "3"))
    said = describe((("partition", "fast"),), script)
    assert (said["partition"], said["nodes"], said["time"]) == ("fast", 3, "00:05:00")


@pytest.mark.parametrize(
    ("time", "seconds"),
    [("5", 300), ("1:30", 90), ("2:00:00", 7200), ("1-0", 86400), ("1-2:3", 93780), ("1-2:3:4", 93784)],
)
def test_times(time: str, seconds: int) -> None:
    assert seconds_of(time) == seconds
    assert seconds_of(clock_of(seconds)) == seconds


@pytest.mark.parametrize("time", ["", "soon", "UNLIMITED", "1:2:3:4", "-1", "5m"])
def test_times_that_are_none_are_refused(time: str) -> None:
    with pytest.raises(InputError, match="--time"):
        seconds_of(time)


@pytest.mark.parametrize(
    ("options", "gpus"),
    [
        ((("gpus-per-node", "4"),), 4),
        ((("gpus-per-node", "h100:8"),), 8),
        ((("gres", "gpu:2,shard:9"),), 2),
        ((("gres", "gpu"),), 1),
        ((("gpus", "7"), ("nodes", "2")), 4),
        ((), 0),
    ],
)
def test_gpus_of_a_node(options: tuple[tuple[str, str], ...], gpus: int) -> None:
    assert describe(options, "#!/bin/sh\n")["gpus_per_node"] == gpus


def one_line(error: InputError) -> None:
    assert len(str(error).splitlines()) == 1


@given(st.lists(st.one_of(st.text(max_size=12), st.sampled_from(["-p", "--wrap", "-N", "--gres=gpu:x", "--", "-Hp"]))))
def test_any_words_are_read_or_refused_in_one_line(words: list[str]) -> None:
    try:
        line = read_line(words)
        describe(line.options, "#!/bin/sh\n")
    except InputError as error:
        one_line(error)


@given(st.text(max_size=200))
def test_any_script_is_read_or_refused(text: str) -> None:
    try:
        describe((), "#!/bin/sh\n#SBATCH " + text)
    except InputError as error:
        one_line(error)
