"""What an operator can do about Slurm's own words: a refusal of sbatch, or the reason for which a job waits.

The words are those of Slurm 22.05 (what `sbatch` prints, and the reasons of `squeue`). They are always shown beside the
advice, never instead of it.
"""

from __future__ import annotations

from collections.abc import Sequence

_ACCOUNT = "name one of your accounts (slurm.default_account in clusters.yaml); `gonogo cluster check` lists them"
_PARTITION = "name another partition (slurm.default_partition in clusters.yaml); `gonogo cluster check` lists them"
_QOS = "name another QOS (gonogo.qos in clusters.yaml), or none"
_LESS_TIME = "ask for less time (time of this task in the recipe), or name a partition that allows it"
_FEWER_NODES = "ask for fewer nodes or GPUs (nodes, gpus_per_node of this task), or name a partition that has them"
_SMALLER = "no node of this partition has so much: ask for less (cpus_per_task, mem, gpus_per_node of this task)"
_GPUS = "the cluster calls its GPUs otherwise: correct gpus_per_node or the GPU type; `sinfo -o %G` shows their names"
_OPTION = "sbatch here has no such option: correct it in the job that was asked for; `sbatch --help` lists those it has"
_VALUE = "correct the value of this option in the job that was asked for"
_ARRAY = "correct --array: first to last, and no larger than MaxArraySize (`scontrol show config`)"
_DEPENDENCY = "correct --dependency: a kind and job ids that exist, such as afterok:123"
_FEATURE = "no node has this feature: correct --constraint; `sinfo -o '%N %f'` lists those that there are"
_LICENSE = "the cluster has no such licence: correct --licenses; `scontrol show licenses` lists those that there are"
_NODES = "there is no such node: correct --nodelist or --exclude; `sinfo -N` lists the nodes"
_RESERVATION = "no such reservation, or not for you: correct --reservation; `scontrol show reservation` lists them"
_SCRIPT = "the script is not one that sbatch takes: correct the recipe's template"
_LINE_ENDS = "the script has Windows line ends: store it with plain ones (`dos2unix`), then ask again"
_EMPTY = "no script reached sbatch: ask again with a script, or with --wrap"
_NO_SHEBANG = "begin the script with a line such as #!/bin/bash"
_NO_FILE = "there is no such script on the login node: correct its path"
_CONTROLLER = "the controller does not answer: nothing has to be done here, it is asked again; never submit it by hand"
_SITE = "Slurm does not work on this login node: tell its administrators; it is asked again meanwhile"
_POLICY = "the site's limits do not allow it: ask for less, name another account or QOS, or ask the site"

GENERAL = "correct the recipe or clusters.yaml by what Slurm says"
"""For words that are not in the table."""

_REFUSALS: Sequence[tuple[str, str]] = (
    # What makes a refusal doubtful stands first: then nothing else in the words counts.
    ("Socket timed out", _CONTROLLER),
    ("Unable to contact", _CONTROLLER),
    ("Munge", _SITE),
    ("authentication", _SITE),
    ("configuration source", _SITE),
    ("fetch_config", _SITE),
    ("command not found", "sbatch is not on the PATH: name its folder (gonogo.slurm_path in clusters.yaml)"),
    ("Invalid account", _ACCOUNT),
    ("Invalid qos", _QOS),
    ("Required partition not available", "the partition is closed: wait until it is open, or name another one"),
    ("nvalid partition", _PARTITION),
    ("group not permitted to use this partition", _PARTITION),
    ("time limit is invalid", _LESS_TIME),
    ("Invalid --time", _LESS_TIME),
    ("Node count specification invalid", _FEWER_NODES),
    ("More processors requested", _FEWER_NODES),
    ("can not be satisfied", _SMALLER),
    ("node configuration is not available", _SMALLER),
    ("generic resource (gres)", _GPUS),
    ("Invalid --mem", "correct mem of this task: a number with K, M, G or T"),
    ("accounting/QOS policy", _POLICY),
    ("array specification", _ARRAY),
    ("dependency problem", _DEPENDENCY),
    ("feature specification", _FEATURE),
    ("license specification", _LICENSE),
    ("node name specified", _NODES),
    ("reservation", _RESERVATION),
    ("unrecognized option", _OPTION),
    ("Invalid --", _VALUE),
    ("only permitted by root", _OPTION),
    ("DOS line breaks", _LINE_ENDS),
    ("script is empty", _EMPTY),
    ("look like a batch script", _NO_SHEBANG),
    ("NULL character", _SCRIPT),
    ("Unable to open file", _NO_FILE),
)

_REASONS: Sequence[tuple[str, str]] = (
    ("PartitionTimeLimit", "it can never start: cancel it, and " + _LESS_TIME),
    ("PartitionNodeLimit", "it can never start: cancel it, and " + _FEWER_NODES),
    ("PartitionDown", "the partition is closed: wait until it is open"),
    ("PartitionInactive", "the partition is closed: wait until it is open"),
    ("DependencyNeverSatisfied", "it can never start: cancel it"),
    ("BadConstraints", "it can never start: cancel it, and correct --constraint, or the nodes and GPUs it asks for"),
    ("JobHeldUser", "it is held: `scontrol release` lets it go"),
    ("JobHeldAdmin", "the site holds it: ask its administrators"),
    ("launch failed requeued held", "its node failed to start it: ask the site, then `scontrol release`"),
    ("InvalidAccount", "it can never start: cancel it, and " + _ACCOUNT),
    ("InvalidQOS", "it can never start: cancel it, and " + _QOS),
    ("ReqNodeNotAvail", "nodes that it needs are down or reserved: wait, or ask the site"),
    ("Licenses", "it waits for licences: nothing has to be done"),
    ("WallDurationPerJob", "it can never start: cancel it, and " + _LESS_TIME),
    ("QOS", "a limit of its QOS: it starts when other jobs end, unless it asks for more than the limit"),
    ("Assoc", "a limit of its account: it starts when other jobs end, unless it asks for more than the limit"),
)


def after_refusal(said: str) -> str:
    """What to do about words of sbatch that are no job id.

    Args:
        said: Slurm's words.

    Returns:
        One line for people; a general one for words that are not known.
    """
    known = next((advice for words, advice in _REFUSALS if words in said), "")
    return known or GENERAL


def while_waiting(reason: str) -> str:
    """What to do about a pending job, by its reason; empty where it only waits its turn, or the reason is not known."""
    return next((advice for words, advice in _REASONS if words in reason), "")
