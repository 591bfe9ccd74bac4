"""Where everything of a test cluster lies, and what it is made of."""

from __future__ import annotations

import hashlib
import json
import os
import re
import socket
from dataclasses import dataclass
from pathlib import Path

from tests.cluster.errors import ClusterError

NODES = ("node1", "node2", "node3")
CPUS, MEMORY_MB, GPUS = 16, 32000, 4
"""Of each node. The nodes are believed, not measured: all of them are this machine."""

SHELLS = ("bash", "tcsh", "fish", "zsh")
MARK = "GONOGO_TEST_CLUSTER"
"""Every process of a cluster carries this variable, with the cluster's folder."""

MAX_FOLDER = 60
"""Characters. A socket's path may have 107, and the longest one adds some 40."""


@dataclass(frozen=True, slots=True)
class Account:
    """One unprivileged account.

    Attributes:
        name: Its name on this machine.
        shell: Its login shell, without folder.
        noisy: Whether its start-up files print text and set variables that change what Slurm's commands do.
        association: The Slurm account that it may use.
    """

    name: str
    shell: str
    noisy: bool
    association: str


@dataclass(frozen=True, slots=True)
class Layout:
    """Paths and ports of one cluster.

    Attributes:
        folder: Everything lies below it.
        ports: By daemon, its TCP port on loopback.
    """

    folder: Path
    ports: dict[str, int]

    @property
    def slurm_conf(self) -> Path:
        """What SLURM_CONF names."""
        return self.folder / "etc/slurm.conf"

    @property
    def munge_socket(self) -> Path:
        """Munge's own socket of this cluster."""
        return self.folder / "munge/socket"

    @property
    def database_socket(self) -> Path:
        """The database listens here and nowhere else."""
        return self.folder / "database/socket"

    @property
    def key(self) -> Path:
        """Private key that opens every account."""
        return self.folder / "keys/operator"

    @property
    def known_hosts(self) -> Path:
        """The server's host keys as OpenSSH writes them down."""
        return self.folder / "keys/known_hosts"

    @property
    def host_name(self) -> str:
        """This machine's short name; slurmctld insists on it."""
        return socket.gethostname().split(".")[0]

    @property
    def accounts(self) -> tuple[Account, ...]:
        """Every account: one for each shell, quiet and noisy, and one that shares no Slurm account with them."""
        # Accounts belong to the machine, so their names tell clusters in other folders apart.
        short = f"gng{hashlib.sha256(str(self.folder).encode()).hexdigest()[:5]}"
        made = [
            Account(f"{short}-{shell}{'-noisy' if noisy else ''}", shell, noisy, "research")
            for shell in SHELLS
            for noisy in (False, True)
        ]
        return (*made, Account(f"{short}-stranger", "bash", False, "teaching"))

    def home(self, account: Account) -> Path:
        """Home folder of an account."""
        return self.folder / "home" / account.name

    def account(self, shell: str = "bash", *, noisy: bool = False) -> Account:
        """The account with this login shell."""
        return next(item for item in self.accounts if (item.shell, item.noisy) == (shell, noisy))

    @property
    def stranger(self) -> Account:
        """An account whose jobs are none of the others' business."""
        return self.accounts[-1]

    def environment(self) -> dict[str, str]:
        """What the cluster's own processes and root's commands run with, and nothing of the caller's."""
        return {
            "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
            "LC_ALL": "C",
            "HOME": "/root",
            "SLURM_CONF": str(self.slurm_conf),
            "MYSQL_UNIX_PORT": str(self.database_socket),
            MARK: str(self.folder),
        }


DAEMONS = ("munged", "sshd", "mariadbd", "slurmdbd", "slurmctld", *(f"slurmd-{node}" for node in NODES))
"""In the order in which they start."""

LISTENING = tuple(name for name in DAEMONS if name not in ("munged", "mariadbd"))


def folder_of(text: str) -> Path:
    """A folder that can hold a cluster.

    Raises:
        ClusterError: When its path cannot stand in the configuration files, or is too long for a socket.
    """
    folder = Path(os.path.abspath(text))
    if not re.fullmatch(r"/[A-Za-z0-9._/-]+", str(folder)):
        raise ClusterError(f"{folder}: use letters, digits, dot, dash and underscore; Slurm's files hold nothing else")
    if len(str(folder)) > MAX_FOLDER:
        raise ClusterError(f"{folder}: longer than {MAX_FOLDER} characters, so the sockets in it could not be opened")
    return folder


def read_layout(folder: Path) -> Layout | None:
    """The layout of the cluster in a folder, None where there is none.

    Raises:
        ClusterError: When its file is not one.
    """
    path = folder / "cluster.json"
    try:
        known = json.loads(path.read_text())
        return Layout(folder, {name: int(known["ports"][name]) for name in LISTENING})
    except FileNotFoundError:
        return None
    except (ValueError, KeyError, TypeError, OSError) as error:
        raise ClusterError(f"{path}: not the file of a test cluster ({error}); delete the folder") from None


def write_layout(layout: Layout) -> None:
    """Remember a layout in its folder."""
    path = layout.folder / "cluster.json"
    path.write_text(json.dumps({"ports": layout.ports}, indent=1) + "\n")


def free_port() -> int:
    """A TCP port on loopback that nobody listens on at this moment."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def is_free(port: int) -> bool:
    """Whether nobody listens on a port."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
        return True
