"""Whatever sbatch says when it takes no job leads to a next step, and so does a job that cannot start."""

from __future__ import annotations

import pytest

from backends.slurm.advice import after_refusal, while_waiting

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
    f"{FAILED}Invalid job array specification": "correct the option",
    f"{FAILED}Job dependency problem": "correct the option",
    f"{FAILED}Invalid feature specification": "correct the option",
    f"{FAILED}Invalid license specification": "correct the option",
    f"{FAILED}Invalid node name specified": "correct the option",
    f"{FAILED}Requested reservation is invalid": "correct the option",
    "sbatch: unrecognized option '--nosuch=1'\nTry \"sbatch --help\" for more information": "correct the option",
    "sbatch: error: Batch script contains DOS line breaks (\\r\\n)": "recipe's template",
    "sbatch: error: Batch script is empty!": "recipe's template",
    "sbatch: error: This does not look like a batch script.  The first": "recipe's template",
    "sbatch: error: Unable to open file /no/such/script.sh": "recipe's template",
    f"{FAILED}Unable to contact slurm controller (connect failure)": "the controller does not answer",
    f"{FAILED}Socket timed out on send/recv operation": "the controller does not answer",
    f"sbatch: error: Munge encode failed: Failed\n{FAILED}Protocol authentication error": "administrators",
    "sbatch: error: fetch_config: DNS SRV lookup failed\nsbatch: fatal: Could not establish": "administrators",
    "bash: line 1: sbatch: command not found": "gonogo.slurm_path",
}


@pytest.mark.parametrize("said", WORDS, ids=lambda said: said[-50:])
def test_each_of_sbatchs_words_has_its_next_step(said: str) -> None:
    assert WORDS[said] in after_refusal(said)


def test_unknown_words_get_a_general_one_and_never_a_wrong_one() -> None:
    assert after_refusal("sbatch: error: the moon is in the way") == (
        "correct the recipe or clusters.yaml by what Slurm says"
    )


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
