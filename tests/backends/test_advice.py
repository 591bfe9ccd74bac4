"""Whatever sbatch says when it takes no job leads to a next step, and so does a job that cannot start."""

from __future__ import annotations

import pytest

from backends.slurm.advice import GENERAL, after_refusal, while_waiting

FAILED = "sbatch: error: Batch job submission failed: "
CONFIGURATION = f"{FAILED}Requested node configuration is not available"
TOO_MUCH = "no node of this partition has so much"

WORDS = {
    f"{FAILED}Invalid account or account/partition combination specified": "slurm.default_account",
    f"{FAILED}Invalid qos specification": "gonogo.qos",
    f"sbatch: error: invalid partition specified: nope\n{FAILED}Invalid partition name specified": "default_partition",
    f"{FAILED}Required partition not available (inactive or drain)": "wait until it is open",
    f"{FAILED}User's group not permitted to use this partition": "default_partition",
    f"{FAILED}Requested time limit is invalid (missing or exceeds some limit)": "less time",
    "allocation failure: Requested time limit is invalid (missing or exceeds some limit)": "less time",
    "sbatch: error: Invalid --time specification": "less time",
    f"{FAILED}Node count specification invalid": "fewer nodes",
    f"{FAILED}More processors requested than permitted": "fewer nodes",
    f"sbatch: error: CPU count per node can not be satisfied\n{CONFIGURATION}": TOO_MUCH,
    f"sbatch: error: Memory specification can not be satisfied\n{CONFIGURATION}": TOO_MUCH,
    CONFIGURATION: TOO_MUCH,
    "sbatch: error: Invalid generic resource (gres) specification": "sinfo -o %G",
    "sbatch: error: Invalid --mem specification": "correct mem",
    f"{FAILED}Job violates accounting/QOS policy (job submit limit, user's size and/or time limits)": "site's limits",
    f"{FAILED}Invalid job array specification": "correct --array",
    f"{FAILED}Job dependency problem": "correct --dependency",
    f"{FAILED}Invalid feature specification": "correct --constraint",
    f"{FAILED}Invalid license specification": "correct --licenses",
    f"{FAILED}Invalid node name specified": "correct --nodelist",
    f"{FAILED}Requested reservation is invalid": "correct --reservation",
    "sbatch: unrecognized option '--nosuch=1'\nTry \"sbatch --help\" for more information": "sbatch --help",
    "sbatch: error: Batch script contains DOS line breaks (\\r\\n)\n"
    "sbatch: error: instead of expected UNIX line breaks (\\n).": "dos2unix",
    "sbatch: error: Batch script is empty!": "with a script",
    "sbatch: error: This does not look like a batch script.  The first\n"
    "sbatch: error: line must start with #! followed by the path to an interpreter.\n"
    "sbatch: error: For instance: #!/bin/sh": "#!/bin/bash",
    "sbatch: error: Unable to open file /no/such/script.sh": "correct its path",
    f"{FAILED}Unable to contact slurm controller (connect failure)": "the controller does not answer",
    f"{FAILED}Socket timed out on send/recv operation": "the controller does not answer",
    "sbatch: error: If munged is up, restart with --num-threads=10\n"
    'sbatch: error: Munge encode failed: Failed to access "/run/munge/socket": No such file or directory '
    "(Did you start munged?)\n"
    "sbatch: error: slurm_send_node_msg: auth_g_create: REQUEST_SUBMIT_BATCH_JOB has authentication error\n"
    f"{FAILED}Protocol authentication error": "administrators",
    "sbatch: error: resolve_ctls_from_dns_srv: res_nsearch error: Unknown host\n"
    "sbatch: error: fetch_config: DNS SRV lookup failed\n"
    "sbatch: error: _establish_config_source: failed to fetch config\n"
    "sbatch: fatal: Could not establish a configuration source": "administrators",
    "bash: line 1: sbatch: command not found": "gonogo.slurm_path",
}


@pytest.mark.parametrize("said", WORDS, ids=lambda said: said[-50:])
def test_each_of_sbatchs_words_has_its_next_step(said: str) -> None:
    assert WORDS[said] in after_refusal(said)
    assert after_refusal(said) != GENERAL


def test_no_two_faults_that_are_mended_differently_share_a_step() -> None:
    kinds: dict[str, set[str]] = {}
    for said, words in WORDS.items():
        kinds.setdefault(after_refusal(said), set()).add(words)
    assert all(len(words) == 1 for words in kinds.values()), kinds


def test_unknown_words_get_a_general_one_and_never_a_wrong_one() -> None:
    assert after_refusal("sbatch: error: the moon is in the way") == GENERAL


@pytest.mark.parametrize("said", [said for said, words in WORDS.items() if words == "the controller does not answer"])
def test_where_a_job_may_have_been_taken_nobody_is_told_to_submit_it_again(said: str) -> None:
    assert "never submit it by hand" in after_refusal(f"{said}\n{FAILED}Invalid qos specification")


@pytest.mark.parametrize(
    ("reason", "words"),
    [
        ("PartitionTimeLimit", "can never start: cancel it, and ask for less time"),
        ("PartitionNodeLimit", "can never start: cancel it, and ask for fewer nodes"),
        ("PartitionDown", "wait until it is open"),
        ("DependencyNeverSatisfied", "can never start: cancel it"),
        ("QOSMaxWallDurationPerJobLimit", "can never start: cancel it, and ask for less time"),
        ("QOSMaxJobsPerUserLimit", "starts when other jobs end"),
        ("AssocGrpGRES", "starts when other jobs end"),
        ("JobHeldUser", "scontrol release"),
        ("(ReqNodeNotAvail, UnavailableNodes:node[1-3])", "down or reserved"),
        ("Priority", ""),
        ("Resources", ""),
        ("None", ""),
        ("BeginTime", ""),
    ],
)
def test_a_waiting_job_has_a_next_step_where_waiting_is_not_all_there_is_to_do(reason: str, words: str) -> None:
    found = while_waiting(reason)
    assert words in found
    assert bool(found) is bool(words)
