"""Scripts and files on a host: exactly what was printed, or that nobody could be asked."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backends.errors import CouldNotAsk, FileMissing
from backends.hosts.framing import frame, unframe
from backends.hosts.local import LocalHost
from backends.quoting import quote


@given(st.binary(), st.binary(), st.integers(0, 255), st.binary(max_size=40))
def test_what_stands_between_the_marks_is_what_was_printed(
    noise: bytes, said: bytes, status: int, after: bytes
) -> None:
    output = noise + b"BEGIN-m\n" + said + b"\nEND-m %d\n" % status + after
    result = unframe("m", output, b"")
    assert result is not None
    assert result.exit_status == status
    assert result.stdout == said


@given(st.binary(), st.integers(0, 60))
def test_a_cut_answer_is_no_answer(said: bytes, length: int) -> None:
    whole = b"BEGIN-m\n" + said + b"\nEND-m 0\n"
    assert unframe("m", whole[: min(length, len(whole) - 1)], b"") is None


def test_a_nul_is_refused_by_the_quoting() -> None:
    with pytest.raises(ValueError, match="NUL"):
        quote("a\0b")


async def test_arguments_input_output_and_status_arrive_as_they_are() -> None:
    words = ["plain", "two words", "it's", '$HOME `id` "x"', "", "-n", "line\nbreak", "\\", "é"]
    data = bytes(range(256)) * 50
    result = await LocalHost().run('printf "<%s>" "$@"; cat; echo odd >&2; exit 7', words, data=data)
    assert result.exit_status == 7
    assert result.stdout == "".join(f"<{word}>" for word in words).encode() + data
    assert result.stderr == b"odd\n"


@pytest.mark.parametrize("shell", ["dash", "bash"])
async def test_other_shells_understand_the_frame(shell: str) -> None:
    import asyncio

    assert shutil.which(shell)
    framed = frame("cat; exit 3", data=b"in\n")
    process = await asyncio.create_subprocess_exec(
        shell, "-s", stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
    )
    stdout, _ = await process.communicate(framed.stdin)
    result = unframe(framed.mark, stdout, b"")
    assert result is not None
    assert (result.stdout, result.exit_status) == (b"in\n", 3)


async def test_a_script_that_kills_its_shell_is_no_answer() -> None:
    with pytest.raises(CouldNotAsk):
        await LocalHost().run("kill -9 $$")


async def test_a_script_that_takes_too_long_is_no_answer() -> None:
    with pytest.raises(CouldNotAsk, match="no answer within"):
        await LocalHost().run("exec sleep 5", timeout=0.2)


async def test_files_are_written_whole_and_read_back(tmp_path: Path) -> None:
    host, path = LocalHost(), str(tmp_path / "a 'file'")
    await host.write(path, b"\x00\xffdata", mode=0o640)
    assert await host.read(path) == b"\x00\xffdata"
    assert await host.read(path, offset=2, limit=2) == b"da"
    stat = await host.stat(path)
    assert stat is not None
    assert stat.size == 6
    assert stat.mtime_ns == (tmp_path / "a 'file'").stat().st_mtime_ns
    assert [item.name for item in tmp_path.iterdir()] == ["a 'file'"]


async def test_a_missing_file_is_missing(tmp_path: Path) -> None:
    host = LocalHost()
    assert await host.stat(str(tmp_path / "none")) is None
    with pytest.raises(FileMissing):
        await host.read(str(tmp_path / "none"))
