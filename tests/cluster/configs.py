"""The configuration files of the test cluster's daemons."""

from __future__ import annotations

import ipaddress
import socket

from tests.cluster.layout import CPUS, GPUS, MEMORY_MB, NODES, Layout


def slurm_conf(layout: Layout, min_job_age: int = 300) -> str:
    """slurm.conf.

    Args:
        layout: Whose it is.
        min_job_age: Seconds until Slurm's controller forgets a job that has ended.
    """
    folder, host = layout.folder, layout.host_name
    # Slurm listens on every address, or on the one that this machine's name stands for.
    loopback = "CommunicationParameters=NoInAddrAny,NoCtldInAddrAny\n" if _is_loopback(host) else ""
    # No systemd here, so nothing may ask for cgroups. The pauses before scheduling are cut from seconds to none.
    # Every request over a limit is refused at once instead of waiting for ever.
    head = f"""\
ClusterName=proving
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={layout.ports["slurmctld"]}
SlurmUser=slurm
SlurmdUser=root
AuthType=auth/munge
CredType=cred/munge
AuthInfo=socket={layout.munge_socket}
{loopback}
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool/%n
SlurmctldPidFile={folder}/run/own/slurmctld.pid
SlurmdPidFile={folder}/run/own/slurmd-%n.pid
MailProg=/bin/true
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
GresTypes=gpu
SlurmdParameters=config_overrides
ReturnToService=2
SchedulerType=sched/backfill
SchedulerParameters=batch_sched_delay=0,sched_interval=1,bf_interval=1
EnforcePartLimits=ALL
PriorityType=priority/basic
MinJobAge={min_job_age}
KillWait=2
CompleteWait=0
InactiveLimit=0
SlurmctldTimeout=30
SlurmdTimeout=60
MessageTimeout=5
AccountingStorageType=accounting_storage/slurmdbd
AccountingStorageHost=127.0.0.1
AccountingStoragePort={layout.ports["slurmdbd"]}
AccountingStoragePass={layout.munge_socket}
AccountingStorageTRES=gres/gpu
AccountingStorageEnforce=associations,limits,qos
AccountingStoreFlags=job_comment
JobAcctGatherType=jobacct_gather/linux
JobAcctGatherFrequency=task=5
"""
    nodes = "".join(
        f"NodeName={node} NodeHostname={host} NodeAddr=127.0.0.1 Port={layout.ports[f'slurmd-{node}']}"
        f" CPUs={CPUS} Boards=1 SocketsPerBoard=1 CoresPerSocket={CPUS} ThreadsPerCore=1"
        f" RealMemory={MEMORY_MB} Gres=gpu:{GPUS} State=UNKNOWN\n"
        for node in NODES
    )
    everywhere = ",".join(NODES)
    partitions = f"""\
PartitionName=batch Nodes={everywhere} Default=YES DefaultTime=30 MaxTime=1-00:00:00 DefMemPerCPU=500 State=UP
PartitionName=interactive Nodes={everywhere} DefaultTime=10 MaxTime=60 DefMemPerCPU=500 PriorityTier=10 State=UP
PartitionName=closed Nodes={everywhere} MaxTime=60 DefMemPerCPU=500 State=DRAIN
PartitionName=staff Nodes={everywhere} MaxTime=60 DefMemPerCPU=500 AllowGroups=root State=UP
"""
    return head + nodes + partitions


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(socket.gethostbyname(host)).is_loopback
    except OSError:
        return False


def gres_conf(layout: Layout) -> str:
    """gres.conf: a device file for each pretended GPU."""
    return f"AutoDetect=off\nNodeName={','.join(NODES)} Name=gpu File={layout.folder}/dev/gpu[0-{GPUS - 1}]\n"


def slurmdbd_conf(layout: Layout, password: str) -> str:
    """slurmdbd.conf; the path of the database's socket travels in MYSQL_UNIX_PORT, there is no key for it."""
    return f"""\
AuthType=auth/munge
AuthInfo=socket={layout.munge_socket}
DbdHost=localhost
DbdAddr=127.0.0.1
DbdPort={layout.ports["slurmdbd"]}
SlurmUser=slurm
PidFile={layout.folder}/run/own/slurmdbd.pid
StorageType=accounting_storage/mysql
StorageHost=localhost
StorageUser=slurm
StoragePass={password}
StorageLoc=slurm_accounting
"""


def database_conf(layout: Layout) -> str:
    """The database's option file: no network, and nothing is forced onto the disk."""
    folder = layout.folder / "database"
    return f"""\
[mysqld]
user=mysql
datadir={folder}/data
socket={layout.database_socket}
pid-file={folder}/own.pid
skip-networking
skip-name-resolve
skip-log-bin
performance_schema=OFF
innodb_buffer_pool_size=64M
innodb_log_file_size=16M
innodb_lock_wait_timeout=900
innodb_flush_log_at_trx_commit=0
innodb_flush_method=nosync
innodb_doublewrite=OFF
max_connections=50
"""


def sshd_config(layout: Layout) -> str:
    """sshd_config: loopback, keys only, the cluster's accounts only, and OpenSSH's own limits."""
    users = " ".join(account.name for account in layout.accounts)
    keys = "".join(f"HostKey {layout.folder}/keys/host_{kind}\n" for kind in HOST_KEYS)
    return f"""\
Port {layout.ports["sshd"]}
ListenAddress 127.0.0.1
{keys}PidFile {layout.folder}/run/own/sshd.pid
AllowUsers {users}
AuthorizedKeysFile .ssh/authorized_keys
PasswordAuthentication no
KbdInteractiveAuthentication no
PermitRootLogin no
UsePAM no
UseDNS no
PrintMotd no
Banner {layout.folder}/etc/banner
SetEnv SLURM_CONF={layout.slurm_conf} GONOGO_TEST_CLUSTER={layout.folder}
Subsystem sftp /usr/lib/openssh/sftp-server
"""


HOST_KEYS = ("rsa", "ecdsa", "ed25519")
"""The kinds that a server has by default."""

BANNER = "Use of this system is recorded. Maintenance on day 12, 07:00.\n"


def associations(layout: Layout) -> str:
    """What `sacctmgr load` reads: who may charge what, in one go."""
    lines = [
        "Cluster - 'proving':Fairshare=1:QOS='normal'",
        "Parent - 'root'",
        "User - 'root':DefaultAccount='root':AdminLevel='Administrator':Fairshare=1",
        "Account - 'research':Description='research':Organization='proving':Fairshare=1",
        "Account - 'teaching':Description='teaching':Organization='proving':Fairshare=1",
    ]
    for name in ("research", "teaching"):
        lines.append(f"Parent - '{name}'")
        lines += [
            f"User - '{account.name}':DefaultAccount='{name}':Fairshare=1:QOS='long,normal,tiny'"
            for account in layout.accounts
            if account.association == name
        ]
    return "\n".join(lines) + "\n"


_SAID = "printf 'Welcome to \\033[1msystem 7\\033[0m\\nBEGIN-\\n4711\\n'; echo 'quota: 12 GB left' >&2\n"
NOISE = {
    "bash": (".bashrc", _SAID),
    "zsh": (".zshenv", _SAID),
    "tcsh": (".tcshrc", "echo 'Welcome to system 7'\necho BEGIN-\necho 4711\nsh -c 'echo quota: 12 GB left >&2'\n"),
    "fish": (".config/fish/config.fish", _SAID),
}
"""By shell, the start-up file that it reads for a command over SSH, and what a talkative one says."""

_VARIABLES = {
    "SBATCH_PARTITION": "nope",
    "SBATCH_TIMELIMIT": "77",
    "SQUEUE_FORMAT": "%i",
    "SQUEUE_STATES": "FAILED",
    "SACCT_FORMAT": "jobid",
    "SINFO_FORMAT": "%N",
    "SCANCEL_STATE": "SUSPENDED",
    "SLURM_TIME_FORMAT": "relative",
    "CDPATH": ".:/",
    "TAR_OPTIONS": "--verbose",
    "GREP_OPTIONS": "-v",
    "POSIXLY_CORRECT": "1",
    "LC_ALL": "de_DE.UTF-8",
}


def start_up_file(shell: str) -> tuple[str, str]:
    """Name and text of a noisy start-up file."""
    name, text = NOISE[shell]
    form = {"tcsh": "setenv {} '{}'\n", "fish": "set -gx {} '{}'\n"}.get(shell, "export {}='{}'\n")
    return name, text + "".join(form.format(key, value) for key, value in _VARIABLES.items())
