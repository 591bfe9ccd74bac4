"""One job of a recipe, as `recipe.yaml` describes it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, ValidationInfo, field_validator

from console.release.validation import Input, Text, refusal, visible

STAGES = ("stage_target", "train", "freeze", "bench")
"""The stages that jobs belong to, in the order of the flow."""

SIZES = ("time", "nodes", "gpus_per_node", "cpus_per_task", "mem")
"""Fields of a task that may name a recipe value (`nodes: "@train_nodes@"`) instead of holding one."""

PER_DEVICE_BATCH = "per_device_batch"
"""Recipe value: sequences per GPU and step."""

GRADIENT_ACCUMULATION = "gradient_accumulation"
"""Recipe value: steps whose gradients are added up before the weights change."""


def _word(value: str) -> str:
    if not re.fullmatch(r"[a-z][a-z0-9_]{0,63}", value):
        raise refusal("a word of lower-case letters, digits and underscores that begins with a letter")
    return value


def _file_name(value: str) -> str:
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}", value):
        raise refusal("a plain file name", "no folders: files lie beside recipe.yaml, uploads in the job's own folder")
    return value


def _variable(value: str) -> str:
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]{0,127}", value):
        raise refusal("the name of an environment variable")
    if value.startswith("GONOGO_"):
        raise refusal("a name of the recipe's own", "GONOGO_... is set by the conductor")
    return value


def result_path(value: str) -> str:
    """Check the path of a result file: relative to the job's folder, never out of it."""
    visible(value)
    if value.startswith("/") or any(part in ("", ".", "..") for part in value.split("/")):
        raise refusal("a path inside the job's folder", "relative, without . and ..")
    return value


def _time(value: str) -> str:
    found = re.fullmatch(r"(?:\d{1,3}-)?\d{1,2}:[0-5]\d:[0-5]\d", value)
    if found is None or not re.search(r"[1-9]", value):
        # Slurm reads a limit of zero as no limit at all.
        raise refusal('a time limit above zero, "HH:MM:SS" or "D-HH:MM:SS"')
    return value


def _memory(value: str) -> str:
    if not re.fullmatch(r"\d+[KMGT]?", value):
        raise refusal('memory per node as sbatch takes it, such as "64G", "0" for all of a node')
    return value


Word = Annotated[str, AfterValidator(_word)]
FileName = Annotated[str, AfterValidator(_file_name)]

_RESULTS = Field(min_length=1, description="a mapping from kinds of results to their files")


class TaskText(Input):
    """One job of a stage, as it stands in the file.

    Attributes:
        stage: The stage it belongs to.
        task: Its name, unique within the stage.
        summary: What it does, in one line for the operator.
        script: Template of the script, a file beside recipe.yaml.
        uploads: Files that travel with it, beside recipe.yaml or in `backends/payloads`.
        results: Kind and path (relative to the job's folder) of every result file that it writes.
        time: Time limit, "HH:MM:SS" or "D-HH:MM:SS".
        nodes: Number of nodes.
        gpus_per_node: GPUs on each node, 0 for none.
        cpus_per_task: CPUs, None for the cluster's default.
        mem: Memory per node as sbatch takes it, None for the cluster's default.
        needs_gpu_fit: It trains with a global batch that must stay the same when the GPU count changes.
        environment: Exported variables; placeholders are filled in as they are, the job quotes them.
        only_existing_drafter: Part of releases of an existing drafter only.
        skip_with_existing_drafter: Left out of those.
        image: Container image that the script runs in, from placeholders; None for no container. Where it comes out
            empty, the cluster's own image counts, and without one there is no container.
        only_if_judged: Left out of releases in which no gate reads what it writes.
        max_retries: Most retries of this task, None for what the table of failures says; never more than that.
    """

    stage: Annotated[Literal["stage_target", "train", "freeze", "bench"], Field(description=", ".join(STAGES))]
    task: Annotated[Word, Field(description="the job's name")]
    summary: Annotated[Text, Field(description="what the job does, in one line")]
    script: Annotated[FileName, Field(description="the script template's file name")]
    uploads: Annotated[tuple[FileName, ...], Field(strict=False)] = ()
    results: Annotated[Mapping[Word, Annotated[str, AfterValidator(result_path)]], _RESULTS]
    time: Annotated[str, AfterValidator(_time), Field(description='a time limit, "HH:MM:SS" or "D-HH:MM:SS"')]
    nodes: Annotated[int, Field(ge=1, le=10_000)] = 1
    gpus_per_node: Annotated[int, Field(ge=0, le=1024)] = 0
    cpus_per_task: Annotated[int, Field(ge=1, le=100_000)] | None = None
    mem: Annotated[str, AfterValidator(_memory)] | None = None
    needs_gpu_fit: bool = False
    environment: Mapping[Annotated[str, AfterValidator(_variable)], Annotated[str, AfterValidator(visible)]] = {}
    only_existing_drafter: bool = False
    skip_with_existing_drafter: bool = False
    image: Annotated[str, AfterValidator(visible)] | None = None
    only_if_judged: bool = False
    max_retries: Annotated[int, Field(ge=0, le=10)] | None = None

    @field_validator("skip_with_existing_drafter")
    @classmethod
    def _not_both(cls, value: bool, info: ValidationInfo) -> bool:
        if value and info.data.get("only_existing_drafter"):
            raise refusal("false", "only_existing_drafter is true: the task would never run")
        return value


class Task(TaskText):
    """One job of a stage.

    Attributes:
        sizes: Which of the sizes name a recipe value, and which one.
    """

    sizes: Mapping[str, str] = {}
