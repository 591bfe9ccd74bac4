"""Installs the real engine of `make test-engine` into a virtual environment of its own, outside the work tree.

It lies under the user's cache folder and is named after the digest of the requirements, so a change of a version makes
another one, and a second run finds the first one's. `python -m tests.engine.install` prints the path of its Python.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

REQUIREMENTS = Path(__file__).with_name("requirements.txt")
PYTHON = "python3.11"
"""PyTorch's build for CPUs is looked for with this version of Python only."""

INSTALL_TIMEOUT_S = 900
_LOOK = "import sys; print(sys.version_info[:2] == (3, 11))"


class EngineError(Exception):
    """The engine cannot be installed; the text says why and what to do."""


def place() -> Path:
    """Folder of the virtual environment for the requirements as they are now."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    digest = hashlib.sha256(REQUIREMENTS.read_bytes()).hexdigest()
    return cache / "gonogo-tests" / f"engine-{digest[:16]}"


def engine_python() -> Path | None:
    """The engine's Python; None where it is not installed, or not to its end."""
    python = place() / "bin" / "python"
    return python if (place() / "installed").exists() and python.exists() else None


def install() -> Path:
    """Install the engine, or find it installed.

    Returns:
        Its Python.

    Raises:
        EngineError: When there is no Python to install it into, or pip fails.
    """
    folder = place()
    folder.parent.mkdir(parents=True, exist_ok=True)
    with open(folder.with_suffix(".lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        found = engine_python()
        if found is not None:
            return found
        if folder.exists():
            shutil.rmtree(folder)  # an installation that did not come to its end
        _call([_base_python(), "-m", "venv", str(folder)])
        python = folder / "bin" / "python"
        pip = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps", "--no-compile"]
        _call(["nice", str(python), *pip, "-r", str(REQUIREMENTS)])
        (folder / "installed").touch()
        return python


def _base_python() -> str:
    for candidate in (os.environ.get("ENGINE_PYTHON"), PYTHON, sys.executable):
        if candidate and shutil.which(candidate):
            looked = subprocess.run([candidate, "-c", _LOOK], capture_output=True, text=True, check=False)
            if looked.stdout.strip() == "True":
                return candidate
    raise EngineError(f"no {PYTHON} here: install one, or name it in ENGINE_PYTHON")


def _call(command: list[str]) -> None:
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=INSTALL_TIMEOUT_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise EngineError(f"{' '.join(command)} did not end within {INSTALL_TIMEOUT_S} s") from None
    if done.returncode != 0:
        said = "\n".join(done.stdout.decode("utf-8", "replace").splitlines()[-15:])
        hint = "torch's +cpu build is on PyTorch's own CPU index: name that, or a folder with the wheel, to pip"
        raise EngineError(f"{' '.join(command)} ended with {done.returncode}:\n{said}\n({hint})")


def main() -> int:
    """Install, and say where."""
    try:
        print(install())
    except EngineError as error:
        print(f"tests.engine.install: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
