"""A whole cluster: munge, OpenSSH, a database, Slurm's accounting, controller and nodes, on loopback."""

from __future__ import annotations

import fcntl
import os
import pwd
import shutil
import signal
import socket
import stat
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from tests.cluster import accounts, configs, files
from tests.cluster.accounts import command
from tests.cluster.errors import ClusterError
from tests.cluster.layout import (
    DAEMONS,
    LISTENING,
    NODES,
    Account,
    Layout,
    folder_of,
    free_port,
    is_free,
    read_layout,
    write_layout,
)
from tests.cluster.packages import find, missing
from tests.cluster.processes import Daemons, all_pids, command_line_of, owner_of, wait_until

END_JOBS_TIMEOUT_S = 20.0


class Cluster:
    """A running test cluster. Outside its folder it touches the machine's accounts and /run/sshd, nothing else.

    Attributes:
        layout: Its paths, ports and accounts.
        daemons: Its daemons.
        timings: Seconds that each step of the last start took.
    """

    def __init__(self, layout: Layout) -> None:
        self.layout = layout
        self.daemons = Daemons(layout)
        self.timings: dict[str, float] = {}

    def up(self) -> None:
        """Start what does not run.

        Raises:
            ClusterError: When something does not come up; what did is left running, for a look.
        """
        with self._locked():
            self._timed("files", lambda: files.make_files(self.layout))
            for name in DAEMONS:
                self._timed(name, lambda name=name: self.start(name))  # type: ignore[misc]
            self._timed("nodes", self._await_nodes)

    def down(self, *, delete: bool) -> None:
        """End all jobs, logins and daemons of this cluster.

        Args:
            delete: Delete its accounts and its folder too.
        """
        with self._locked():
            if self.daemons.pid("slurmctld") is not None:
                self.go_on("slurmctld")
                self.end_jobs()
            for name in ("sshd", *(name for name in reversed(DAEMONS) if name != "sshd")):
                self.go_on(name)
                self.daemons.end(name)
                if name == f"slurmd-{NODES[0]}":
                    self.daemons.end_leftovers()
            self.daemons.end_leftovers()
            if delete:
                for account in self.layout.accounts:
                    self.end_processes(account)
                accounts.delete_accounts(self.layout)
        if delete:
            accounts.delete_folder(self.layout)

    def root(self, *words: str) -> str:
        """Run one of Slurm's commands as the administrator; returns what it printed.

        Raises:
            ClusterError: When it fails.
        """
        return command(self.layout, *words)

    def sql(self, statement: str) -> None:
        """Change accounting's own database."""
        self.root("mariadb", *self._socket(), "slurm_accounting", "-e", statement)

    def pause(self, name: str) -> None:
        """Stop a daemon in the middle of whatever it does, so that it takes connections and answers nothing."""
        pid = self.daemons.pid(name)
        if pid is None:
            raise ClusterError(f"{name} does not run")
        os.kill(pid, signal.SIGSTOP)

    def go_on(self, name: str) -> None:
        """Let a paused daemon go on."""
        pid = self.daemons.pid(name)
        if pid is not None:
            os.kill(pid, signal.SIGCONT)

    def end(self, name: str) -> None:
        """End one daemon; `start` brings it back."""
        self.daemons.end(name)

    def start(self, name: str) -> None:
        """Start one daemon unless it runs, and wait until it answers.

        Raises:
            ClusterError: When it does not.
        """
        layout, folder = self.layout, self.layout.folder
        program = find(name.split("-", maxsplit=1)[0])
        if program is None:
            raise ClusterError(f"{name} is not installed; `python -m tests.cluster install` installs what is needed")
        if name == "munged":
            socket_path = layout.munge_socket
            if self.daemons.pid(name) is None:
                socket_path.unlink(missing_ok=True)
            options = [f"--key-file={folder}/munge/key", f"--socket={socket_path}", f"--pid-file={folder}/munge/pid"]
            options += [f"--seed-file={folder}/munge/seed", "--foreground", "--num-threads=2"]
            self.daemons.start(name, [program, *options], self._munge_answers, user="munge")
        elif name == "sshd":
            run = [program, "-D", "-e", "-f", f"{folder}/etc/sshd_config"]
            self.daemons.start(name, run, lambda: _listens(layout.ports["sshd"]))
        elif name == "mariadbd":
            self._make_database()
            run = [program, f"--defaults-file={folder}/etc/database.conf"]
            self.daemons.start(name, run, lambda: self._answers("mariadb-admin", *self._socket(), "ping"))
            self._open_database()
        elif name == "slurmdbd":
            self.daemons.start(name, [program, "-D"], lambda: self._answers("sacctmgr", "-n", "-P", "list", "cluster"))
            self._make_associations()
        elif name == "slurmctld":
            self.daemons.start(name, [program, "-D"], lambda: "UP" in self._said("scontrol", "ping"))
        else:
            node = name.partition("-")[2]
            port = layout.ports[name]
            self.daemons.start(name, [program, "-D", "-N", node], lambda: _listens(port))

    def wait_for_nodes(self) -> None:
        """Wait until every node can run jobs."""
        self._await_nodes()

    def waits(self, name: str) -> bool:
        """Whether a request lies before a paused daemon, whole and unread."""
        port = f":{self.layout.ports[name]:04X}"
        rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
        return any(row[1].endswith(port) and int(row[4].partition(":")[2], 16) > 0 for row in rows if row[3] == "01")

    def logins(self, account: Account) -> list[int]:
        """Process ids of the server's processes that serve an account's connections."""
        title = f"sshd: {account.name}"
        return [pid for pid in all_pids() if command_line_of(pid).startswith((f"{title}@", f"{title} "))]

    def end_logins(self, account: Account) -> None:
        """Cut an account's connections at the server; what was started over them goes on."""
        for pid in self.logins(account):
            _signal(pid, signal.SIGKILL)

    def end_processes(self, account: Account) -> None:
        """End every process of an account at once, as when its machine goes down."""
        try:
            uid = pwd.getpwnam(account.name).pw_uid
        except KeyError:
            return
        for pid in [*self.logins(account), *(pid for pid in all_pids() if owner_of(pid) == uid)]:
            _signal(pid, signal.SIGKILL)

    @contextmanager
    def paused_logins(self, account: Account) -> Iterator[None]:
        """Let the server's processes of an account fall silent without closing anything."""
        pids = self.logins(account)
        for pid in pids:
            _signal(pid, signal.SIGSTOP)
        try:
            yield
        finally:
            for pid in pids:
                _signal(pid, signal.SIGCONT)

    def end_jobs(self) -> None:
        """Cancel every job and wait until none is left; what does not end is ended with its node's processes."""

        def left() -> list[str]:
            return sorted({word for word in self._said("squeue", "-h", "-a", "-o", "%A").split() if word.isdigit()})

        jobs = left()
        if jobs:
            self._answers("scancel", *jobs)
        end = time.monotonic() + END_JOBS_TIMEOUT_S
        while left() and time.monotonic() < end:
            time.sleep(0.02)

    def forget_ended_jobs(self, *, after_s: int) -> None:
        """Let the controller forget jobs so many seconds after they have ended."""
        text = configs.slurm_conf(self.layout, min_job_age=after_s)
        files.put(self.layout.slurm_conf, text.encode(), "root", 0o644)
        self.root("scontrol", "reconfigure")

    def _socket(self) -> tuple[str, ...]:
        return ("--no-defaults", f"--socket={self.layout.database_socket}")

    def _make_database(self) -> None:
        """Fill the database's folder, once; what an interrupted run left of it is thrown away."""
        folder = self.layout.folder / "database"
        if (folder / "made").exists():
            return
        shutil.rmtree(folder / "data", ignore_errors=True)
        defaults = f"--defaults-file={self.layout.folder}/etc/database.conf"
        options = ("--user=mysql", "--skip-test-db", "--auth-root-authentication-method=socket")
        self.root("mariadb-install-db", defaults, *options)
        (folder / "made").touch()

    def _open_database(self) -> None:
        sql = (
            "CREATE DATABASE IF NOT EXISTS slurm_accounting;"
            f"CREATE OR REPLACE USER slurm@localhost IDENTIFIED BY '{files.password(self.layout)}';"
            "GRANT ALL ON slurm_accounting.* TO slurm@localhost;"
        )
        self.root("mariadb", *self._socket(), "-e", sql)

    def _make_associations(self) -> None:
        """Tell Slurm's accounting who may charge what, unless it knows."""
        known = self.root("sacctmgr", "-n", "-P", "list", "assoc", "format=user")
        if all(account.name in known.split() for account in self.layout.accounts):
            return
        qos = self.root("sacctmgr", "-n", "-P", "list", "qos", "format=name").split()
        if "tiny" not in qos:
            self.root("sacctmgr", "-i", "add", "qos", "long", "Priority=10")
            limits = ("MaxJobsPerUser=1", "MaxSubmitJobsPerUser=2", "MaxWall=00:05:00")
            self.root("sacctmgr", "-i", "add", "qos", "tiny", *limits)
        self.root("sacctmgr", "-i", "load", f"file={self.layout.folder}/etc/associations")

    def _munge_answers(self) -> bool:
        return self._answers("munge", "-n", "-S", str(self.layout.munge_socket))

    def _answers(self, *words: str) -> bool:
        try:
            command(self.layout, *words)
        except ClusterError:
            return False
        return True

    def _said(self, *words: str) -> str:
        try:
            return command(self.layout, *words)
        except ClusterError as error:
            return f"{error}".replace("UP", "up")

    def _await_nodes(self) -> None:
        def ready() -> bool:
            rows = [line.split() for line in self._said("sinfo", "-h", "-N", "-p", "batch", "-o", "%N %t").splitlines()]
            states = {row[0]: row[1] for row in rows if len(row) == 2}
            for node in NODES:
                # A node may have come back by itself meanwhile, which is no reason to fail here.
                if states.get(node, "").rstrip("*") in ("down", "drain", "drng", "inval", "fail"):
                    self._answers("scontrol", "update", f"nodename={node}", "state=resume")
            return all(states.get(node) in ("idle", "mix", "alloc", "comp") for node in NODES)

        wait_until(ready, "all nodes to be ready", self.daemons.log("slurmctld"))

    def _timed(self, name: str, step: Callable[[], None]) -> None:
        begin = time.monotonic()
        step()
        self.timings[name] = time.monotonic() - begin

    @contextmanager
    def _locked(self) -> Iterator[None]:
        with (self.layout.folder / ".lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield


def open_cluster(text: str) -> Cluster:
    """The cluster of a folder, made ready to be started.

    Raises:
        ClusterError: When this machine cannot hold one, or the folder cannot.
    """
    folder = folder_of(text)
    _require_machine()
    layout = read_layout(folder)
    if layout is None and folder.exists() and any(folder.iterdir()):
        raise ClusterError(f"{folder}: not empty, and not a test cluster; name a folder of its own")
    folder.mkdir(parents=True, exist_ok=True)
    folder.chmod(0o755)
    _require_open(folder)
    if layout is None:
        layout = Layout(folder, {name: free_port() for name in LISTENING})
    else:
        # A port that somebody else took while the cluster was down is given up.
        daemons = Daemons(layout)
        taken = [name for name in LISTENING if daemons.pid(name) is None and not is_free(layout.ports[name])]
        layout = Layout(folder, {**layout.ports, **{name: free_port() for name in taken}})
    write_layout(layout)
    return Cluster(layout)


def find_cluster(text: str) -> Cluster | None:
    """The cluster of a folder, None where there is none."""
    layout = read_layout(folder_of(text))
    return None if layout is None else Cluster(layout)


def why_not() -> str:
    """Why this machine cannot hold a test cluster; empty when it can."""
    if not sys.platform.startswith("linux"):
        return f"the test cluster needs Linux, this is {sys.platform}"
    if os.geteuid() != 0:
        return "the test cluster needs root: its daemons run as several accounts"
    lacking = missing()
    return f"not installed: {', '.join(lacking)}; `python -m tests.cluster install` installs them" if lacking else ""


def _require_machine() -> None:
    reason = why_not()
    if reason:
        raise ClusterError(reason)


def _require_open(folder: Path) -> None:
    """Every folder above must let unprivileged accounts through, down to their homes."""
    for place in folder.parents:
        if not place.stat().st_mode & stat.S_IXOTH:
            raise ClusterError(f"{folder}: other accounts cannot pass {place}; name a folder below /tmp or /srv")


def _signal(pid: int, number: signal.Signals) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, number)


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        probe.settimeout(1)
        return probe.connect_ex(("127.0.0.1", port)) == 0
