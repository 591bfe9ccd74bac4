"""The Debian packages that the test cluster is made of, and their installation."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from tests.cluster.errors import ClusterError

PROGRAMS = {
    "slurmctld": "slurm-wlm",
    "slurmd": "slurm-wlm",
    "sbatch": "slurm-wlm",
    "slurmdbd": "slurmdbd",
    "mariadbd": "mariadb-server",
    "munged": "munge",
    "sshd": "openssh-server",
    "ssh-keygen": "openssh-client",
    "tcsh": "tcsh",
    "fish": "fish",
    "zsh": "zsh",
    "busybox": "busybox",
    "mksh": "mksh",
    "python3": "python3",
}
"""By program, the package that holds it."""

NUMPY = "python3-numpy"
"""The demo recipe's jobs compute with numpy, in the login node's own Python."""

FAST_NUMPY = "libopenblas0-pthread"
"""Debian's plain linear algebra takes several times as long."""

BROWSER = {"chromium": "chromium"}
"""The console in a browser is tested with it; installed with the rest, and no cluster needs it."""

PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
POLICY = Path("/usr/sbin/policy-rc.d")
INSTALL_TIMEOUT_S = 600


def find(program: str) -> str | None:
    """Absolute path of a program in the system's folders, None where it is not installed."""
    for folder in PATH.split(":"):
        candidate = os.path.join(folder, program)
        if os.access(candidate, os.X_OK):
            return candidate
    return None


def missing() -> list[str]:
    """Packages that are needed and not there."""
    wanted = {package for program, package in PROGRAMS.items() if find(program) is None}
    python = find("python3")
    if python is None or subprocess.run([python, "-c", "import numpy"], capture_output=True).returncode != 0:
        wanted.add(NUMPY)
    if not any(Path("/usr/lib").glob("*/openblas-pthread/libblas.so.3")):
        wanted.add(FAST_NUMPY)
    return sorted(wanted)


def install() -> list[str]:
    """Install what is missing; the packages' own daemons are kept from starting.

    Returns:
        The packages that were installed.

    Raises:
        ClusterError: When apt-get is missing or fails.
    """
    wanted = missing() + _without_browser()
    if not wanted:
        return []
    if os.geteuid() != 0:
        raise ClusterError(f"installing {' '.join(wanted)} needs root; run it with sudo")
    if find("apt-get") is None:
        raise ClusterError(f"no apt-get here; install by hand what holds {' '.join(wanted)} on this system")
    # Debian asks this program before it starts a daemon; 101 forbids it. These would listen on every address.
    ours = not POLICY.exists()
    if ours:
        POLICY.write_text("#!/bin/sh\nexit 101\n")
        POLICY.chmod(0o755)
    try:
        _apt("update")
        _apt("install", "-y", "--no-install-recommends", "-o", "Dpkg::Options::=--force-confold", *wanted)
    finally:
        if ours:
            POLICY.unlink()
    left = missing() + _without_browser()
    if left:
        raise ClusterError(f"apt-get ended well, but these are still not there: {' '.join(left)}")
    return wanted


def _without_browser() -> list[str]:
    return sorted(package for program, package in BROWSER.items() if find(program) is None)


def _apt(*arguments: str) -> None:
    command = ["apt-get", "-q", "-o", "DPkg::Lock::Timeout=300", *arguments]
    environment = {"PATH": PATH, "LC_ALL": "C", "DEBIAN_FRONTEND": "noninteractive", "HOME": "/root"}
    for name in ("http_proxy", "https_proxy", "no_proxy"):
        if name in os.environ:
            environment[name] = os.environ[name]
    try:
        ended = subprocess.run(
            command,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=INSTALL_TIMEOUT_S,
        )
    except subprocess.TimeoutExpired:
        raise ClusterError(f"apt-get {arguments[0]} did not end within {INSTALL_TIMEOUT_S} s") from None
    if ended.returncode != 0:
        said = "\n".join(ended.stdout.decode("utf-8", "replace").splitlines()[-15:])
        raise ClusterError(f"apt-get {arguments[0]} ended with {ended.returncode}:\n{said}")
