"""The clusters that this operator uses: `clusters.yaml` in the format of Model-Optimizer's own tools.

The file has `clusters:` (a mapping from names to entries) and, optionally, `default_cluster:`. It is shared with
other tools, so their keys are passed over; what only this console needs stands under `gonogo:` in an entry, and
there a misspelt key is refused. Format and search places: Model-Optimizer, `.agents/README.md` and
`clusters.yaml.example`.
"""

from __future__ import annotations

import getpass
import os
import zoneinfo
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, field_validator

from backends.hosts.ssh_config import DEFAULT_PORT, HostSettings, SshConfigError, settings_of
from console.release import confirmed
from console.release.errors import InputError, Problem, shown, suggestion
from console.release.validation import ClusterPath, Input, LocalPath, Text, Tolerant, refusal, validate
from console.release.yaml_reading import Document, read_document, read_file

WHAT = "clusters file"
USER_FILE = Path(".config/modelopt/clusters.yaml")
"""The operator's own file, below the home folder."""

PROJECT_FILES = (Path(".agents/clusters.yaml"), Path(".claude/clusters.yaml"))
"""A project's files, looked for in the working folder and every folder above it, the first name everywhere first."""

USUAL_SSH_CONFIG = "~/.ssh/config"

_KEY_BYTES = 1 << 20


class SlurmDefaults(Tolerant):
    """What `slurm:` says in an entry; None leaves the choice to Slurm."""

    default_account: Text | None = None
    default_partition: Text | None = None


def _time_zone(value: str) -> str:
    try:
        zoneinfo.ZoneInfo(value)
    except (ValueError, OSError, zoneinfo.ZoneInfoNotFoundError):
        raise refusal("the name of a time zone, such as Europe/Berlin or UTC") from None
    return value


class Settings(Input):
    """What `gonogo:` says in an entry.

    Attributes:
        port: SSH port of the login node, None for the one in the SSH configuration, else 22.
        known_hosts: Known-hosts file on this machine, None for those of the SSH configuration, else the usual
            `~/.ssh/known_hosts`.
        ssh_config: SSH configuration on this machine, None for the usual `~/.ssh/config`; `/dev/null` reads none.
        hf_local: Folder on the cluster that holds staged Hugging Face models, None for `hf_local` in the workspace.
        drafts_root: Folder on the cluster for frozen drafters, None for the recipe's.
        python: Python 3 on the cluster, a name or an absolute path.
        whole_node: The cluster gives whole nodes: every GPU job takes all GPUs of its nodes.
        gpus_per_node: GPUs of one node, where Slurm does not tell.
        max_gpus: Most GPUs that one job may ask for over all its nodes, None for no limit of ours.
        qos: Slurm quality of service, None for the default.
        time_zone: Zone in which the cluster's Slurm prints times, None where it is not declared.
        keepalive_seconds: Interval of SSH keepalive messages, seconds.
        poll_seconds: Interval of Slurm queries, seconds. The default makes at most four in any minute: three looks at
            the queue, and the one at accounting that the last of them may need.
        watch_seconds: Interval of looks at result files, seconds.
        settle_seconds: How long a job must be missing everywhere before it counts as never submitted, seconds.
        result_grace_seconds: After a job ended without its result: pause between the last looks for it, seconds.
            Network file systems may hide a new file for about a minute.
        wake: Command of this machine, as a list, that makes the cluster reachable (a tunnel, a VPN); run before
            the first login.
        production: Show this cluster as one where mistakes are costly.
        slurm_path: Folder of the Slurm commands, None where they are on the PATH of a plain shell.
    """

    port: Annotated[int, Field(ge=1, le=65535)] | None = None
    known_hosts: LocalPath | None = None
    ssh_config: LocalPath | None = None
    hf_local: ClusterPath | None = None
    drafts_root: ClusterPath | None = None
    python: Text = "python3"
    whole_node: bool = False
    gpus_per_node: Annotated[int, Field(ge=1, le=1024)] | None = None
    max_gpus: Annotated[int, Field(ge=0)] | None = None
    qos: Text | None = None
    time_zone: Annotated[Text, AfterValidator(_time_zone)] | None = None
    keepalive_seconds: Annotated[float, Field(ge=1, le=3600, allow_inf_nan=False)] = 15.0
    poll_seconds: Annotated[float, Field(ge=0.05, le=3600, allow_inf_nan=False)] = 20.0
    watch_seconds: Annotated[float, Field(ge=0.05, le=3600, allow_inf_nan=False)] = 2.0
    settle_seconds: Annotated[float, Field(ge=0, le=3600, allow_inf_nan=False)] = 30.0
    result_grace_seconds: Annotated[float, Field(ge=0, le=3600, allow_inf_nan=False)] = 30.0
    # Lax only in that YAML's list becomes a tuple.
    wake: Annotated[tuple[Text, ...], Field(strict=False)] = ()
    production: bool = False
    slurm_path: ClusterPath | None = None


class Entry(Tolerant):
    """One entry of `clusters:` as it stands in the file.

    Attributes:
        login_node: Host name, address or alias of the SSH configuration.
        user: Account on the cluster, None for that of the SSH configuration, else the operator's name here.
        ssh_key: Private key on this machine, None for those of the SSH configuration, else the agent and SSH's
            default keys.
        ssh_proxy: Command that reaches the login node, as SSH's ProxyCommand; run on this machine.
        workspace: Folder on the cluster below which everything of ours is written.
        gpu_type: For people and reports.
        container_image: Image that recipes with containers use.
        env_type: What runs jobs there; only Slurm is possible here.
        slurm: Defaults for submissions.
        gonogo: Settings of this console.
    """

    login_node: Annotated[Text, Field(description="the host name of the login node")]
    user: Text | None = None
    ssh_key: LocalPath | None = None
    ssh_proxy: Text | None = None
    workspace: Annotated[ClusterPath, Field(description="an absolute path on the cluster (/...)")]
    gpu_type: Text | None = None
    container_image: Text | None = None
    env_type: Literal["slurm", "auto"] | None = None
    slurm: SlurmDefaults = SlurmDefaults()
    gonogo: Settings = Settings()

    @field_validator("login_node", "user")
    @classmethod
    def _no_option(cls, value: str | None) -> str | None:
        # A leading dash would be an option to ssh; a blank or @ would change who and where.
        if value is not None and (value.startswith("-") or any(sign in value for sign in " @/'\"")):
            raise refusal("a plain name")
        return value


@dataclass(frozen=True, slots=True)
class Cluster:
    """One cluster, checked, with the defaults filled in.

    Attributes:
        name: Its name in the file.
        file: The file.
        login_node: As in `Entry`, and so are the next five.
        user: Account on the cluster: the file's, else that of the SSH configuration, else the operator's own name here.
        port: The file's, else that of the SSH configuration, else 22.
        ssh_config: The SSH configuration that counts, whether it is there or not.
        account: Slurm account, None for the user's default.
        partition: Slurm partition, None for the cluster's default.
        hf_local: As in `Settings`, and so are the others; `<workspace>/hf_local` where the file gives none.
    """

    name: str
    file: str
    login_node: str
    user: str
    ssh_key: str | None
    ssh_proxy: str | None
    workspace: str
    gpu_type: str | None
    container_image: str | None
    account: str | None
    partition: str | None
    qos: str | None
    port: int
    known_hosts: str | None
    ssh_config: str
    hf_local: str
    drafts_root: str | None
    python: str
    whole_node: bool
    gpus_per_node: int | None
    max_gpus: int | None
    time_zone: str | None
    keepalive_seconds: float
    poll_seconds: float
    watch_seconds: float
    settle_seconds: float
    result_grace_seconds: float
    wake: tuple[str, ...]
    production: bool
    slurm_path: str | None


@dataclass(frozen=True, slots=True)
class Clusters:
    """A clusters file. Entries are checked when they are asked for: others may be no business of ours.

    Attributes:
        document: The file.
        names: All clusters in it.
        default: What `default_cluster` says, None without it.
    """

    document: Document
    names: tuple[str, ...]
    default: str | None

    def cluster(self, name: str) -> Cluster:
        """One entry, checked.

        Raises:
            InputError: With every problem of the entry; also for a command of this machine that is not the operator's.
        """
        _refuse_misplaced(self.document, name)
        entry = validate(Entry, self.document, ("clusters", name))
        self._require_confirmed(name, entry)
        if entry.ssh_key is not None:
            _check_key(self.document, name, entry.ssh_key)
        config = entry.gonogo.ssh_config or os.path.expanduser(USUAL_SSH_CONFIG)
        said = _ssh_settings(self.document, name, Path(config), entry)
        own = {
            "port": said.port or DEFAULT_PORT,
            "ssh_config": config,
            "hf_local": entry.gonogo.hf_local or f"{entry.workspace}/hf_local",
        }
        return Cluster(
            name=name,
            file=self.document.file,
            login_node=entry.login_node,
            user=said.user or _own_name(self.document, name),
            ssh_key=entry.ssh_key,
            ssh_proxy=entry.ssh_proxy,
            workspace=entry.workspace,
            gpu_type=entry.gpu_type,
            container_image=entry.container_image,
            account=entry.slurm.default_account,
            partition=entry.slurm.default_partition,
            **{**dict(entry.gonogo), **own},
        )

    def commands(self, name: str) -> tuple[confirmed.Command, ...]:
        """Everything in an entry by which a command would run on this machine, whether confirmed or not.

        Raises:
            InputError: With every problem of the entry.
        """
        return _commands(validate(Entry, self.document, ("clusters", name)))

    def _require_confirmed(self, name: str, entry: Entry) -> None:
        """Nothing of this machine is run because a file says so that is not the operator's own."""
        commands = _commands(entry)
        if not commands or confirmed.is_own(self.document.file):
            return
        known = confirmed.confirmed()
        expected = "a command that you confirmed, since it runs on this machine and the file is not your own"
        advice = f"see it whole, and take it, with `gonogo cluster confirm {name} --clusters {self.document.file}`"
        problems = [
            self.document.problem(("clusters", name, *command.field), expected, shown(command.shown), advice)
            for command in commands
            if command.digest not in known
        ]
        if problems:
            raise InputError(*problems)


def _commands(entry: Entry) -> tuple[confirmed.Command, ...]:
    own = entry.gonogo
    found = [confirmed.wake(own.wake)] if own.wake else []
    if entry.ssh_proxy is not None:
        found.append(confirmed.proxy(entry.ssh_proxy, entry.login_node, entry.user, own.port))
    usual = (os.devnull, os.path.expanduser(USUAL_SSH_CONFIG))
    if own.ssh_config is not None and own.ssh_config not in usual:
        found.append(confirmed.configuration(Path(own.ssh_config)))
    return tuple(found)


_OURS_ALONE = ("port", "known_hosts", "ssh_config")
"""Settings that say which server is trusted: passed over in silence, they would be taken for honoured."""


def _refuse_misplaced(document: Document, name: str) -> None:
    """Refuse a setting of ours that stands beside `gonogo:` and not under it, unless it stands there, too."""
    entry = document.data["clusters"][name]
    if not isinstance(entry, dict):
        return
    own = entry.get("gonogo")
    under = own if isinstance(own, dict) else {}
    expected = "this key under gonogo:, where alone it counts"
    problems = [
        document.problem(("clusters", name, key), expected, shown(entry[key]), f"move it to gonogo.{key}")
        for key in _OURS_ALONE
        if key in entry and key not in under
    ]
    if problems:
        raise InputError(*problems)


def _ssh_settings(document: Document, name: str, config: Path, entry: Entry) -> HostSettings:
    """What the SSH configuration adds; what the entry itself says counts for more."""
    try:
        return settings_of(config, entry.login_node, user=entry.user, port=entry.gonogo.port)
    except SshConfigError as error:
        place = ("clusters", name, "gonogo", "ssh_config")
        problem = document.problem(place, "an SSH configuration that can be understood", str(error))
        raise InputError(problem) from None


def _own_name(document: Document, name: str) -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError):
        place = ("clusters", name, "user")
        raise InputError(document.problem(place, "your account on the cluster", "nothing", "add this key")) from None


def _check_key(document: Document, name: str, key: str) -> None:
    """Make sure that a key can be read now, long before a login would fail for want of it."""
    try:
        read_file(Path(key), "ssh_key", _KEY_BYTES)
    except InputError as error:
        place = ("clusters", name, "ssh_key")
        found = f"{error.found} ({key})"
        raise InputError(document.problem(place, "a readable private key", found, "correct the path")) from None


def find_clusters_file(explicit: Path | None = None, *, folder: Path | None = None, home: Path | None = None) -> Path:
    """Find the clusters file that counts.

    Args:
        explicit: A file named by the operator; nothing else is looked at then.
        folder: Folder from which a project's file is looked for, None for the working folder.
        home: Home folder, None for the operator's.

    Returns:
        The first of: the explicit file, `~/.config/modelopt/clusters.yaml`, `.agents/clusters.yaml` upwards from
        the folder, `.claude/clusters.yaml` upwards from the folder.

    Raises:
        InputError: When there is none, naming the places; or when a place cannot be looked at, because what
            stands there would have counted.
    """
    if explicit is not None:
        return explicit
    places = list(_places(folder or Path.cwd(), home or Path.home()))
    for place in places:
        try:
            place.lstat()
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError as error:
            raise InputError(Problem(str(place), WHAT, "a readable file", f"an error ({error.strerror})")) from None
        return place
    advice = f"write one, or put {PROJECT_FILES[0]} or {PROJECT_FILES[1]} in the working folder or above it"
    raise InputError(Problem(str(places[0]), WHAT, "a file that names the clusters", "none", advice))


def _places(folder: Path, home: Path) -> Iterator[Path]:
    yield home / USER_FILE
    folder = folder.absolute()
    for name in PROJECT_FILES:
        for above in (folder, *folder.parents):
            yield above / name


def load_clusters(path: Path) -> Clusters:
    """Read a clusters file; see `find_clusters_file`.

    Raises:
        InputError: When it is no clusters file.
    """
    document = read_document(path, WHAT)
    found = document.data.get("clusters")
    if not isinstance(found, dict) or not found:
        place = ("clusters",)
        raise InputError(document.problem(place, "a mapping from names to clusters", "none", "add a cluster"))
    default = document.data.get("default_cluster")
    if not isinstance(default, str | None):
        place = ("default_cluster",)
        raise InputError(document.problem(place, "the name of a cluster", "no text", "put it in quotes"))
    return Clusters(document, tuple(found), default or None)


def choose_cluster(clusters: Clusters, asked: str | None, *, asked_in: str = "release.yaml") -> Cluster:
    """The cluster of a release.

    A file with several clusters never decides by its `default_cluster` alone: that key is shared with other
    tools, and different clusters have different money, file systems and accounts. It is named as the likely
    answer instead.

    Args:
        clusters: The clusters file.
        asked: The name that the release gives, None without one.
        asked_in: Where the name stands or belongs, for messages.

    Raises:
        InputError: When the name is unknown; when none is given and there are several; when the entry is wrong.
    """
    names = ", ".join(sorted(clusters.names))
    if asked is not None:
        if asked not in clusters.names:
            advice = suggestion(asked, clusters.names)
            expected = f"a cluster of {clusters.document.file} ({names})"
            raise InputError(Problem(asked_in, "cluster", expected, f'"{asked}"', advice))
        return clusters.cluster(asked)
    if len(clusters.names) > 1:
        likely = clusters.default if clusters.default in clusters.names else clusters.names[0]
        advice = f"name one, such as cluster: {likely}"
        expected = f"one of the {len(clusters.names)} clusters of {clusters.document.file} ({names})"
        raise InputError(Problem(asked_in, "cluster", expected, "nothing", advice))
    only = clusters.names[0]
    if clusters.default not in (None, only):
        advice = "correct or delete it"
        problem = clusters.document.problem(("default_cluster",), f"the only cluster ({only})", clusters.default or "")
        raise InputError(Problem(problem.file, problem.field, problem.expected, problem.found, advice, problem.line))
    return clusters.cluster(only)
