"""The inputs of a release: `release.yaml`, checked as a whole before anything is submitted."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, PlainValidator, ValidationInfo, field_validator

from console.release.rules import SPAN, Rules, seconds_of_span
from console.release.validation import ClusterPath, Input, Name, Scalar, Text, cluster_path, refusal, validate, visible
from console.release.yaml_reading import read_document

Algorithm = Literal["dflash", "dflash2"]
Budget = Literal["dev", "full"]
ApproveSubmissions = Literal["each", "none"]
Approvals = Literal[1, 2]
JobStage = Literal["stage_target", "train", "freeze", "bench"]


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why an algorithm cannot be released here.

    Attributes:
        reason: The reason, for people.
        as_of: The day on which it was true, ISO 8601. Look again when the tools have moved on.
    """

    reason: str
    as_of: str


REFUSED_ALGORITHMS: Mapping[str, Refusal] = {
    "eagle3": Refusal(
        "EAGLE3 training in Model-Optimizer writes no regression_check.json, which gate train reads", "2026-08-21"
    ),
    "dspark": Refusal(
        "DSpark training in Model-Optimizer writes no regression_check.json, which gate train reads", "2026-08-21"
    ),
    "domino": Refusal("Domino has no vLLM path, so neither smoke test nor benchmark can serve it", "2026-08-21"),
    "lilicorr": Refusal("LiLiCorr is served by SGLang only, and this flow measures with vLLM", "2026-08-21"),
}
"""Algorithms that people ask for and that are refused, by name in lower case without punctuation."""


def _algorithm(value: Any) -> Any:
    refused = REFUSED_ALGORITHMS.get(re.sub(r"[^a-z0-9]", "", value.lower())) if isinstance(value, str) else None
    if refused is not None:
        raise refusal("dflash or dflash2", f"refused: {refused.reason} (as of {refused.as_of})")
    return value


def _target(value: str) -> str:
    if value.startswith("/"):
        return cluster_path(value)
    if not re.fullmatch(r"[A-Za-z0-9][\w.-]{0,95}/[A-Za-z0-9][\w.-]{0,95}", value, re.ASCII):
        raise refusal("a Hugging Face id (organisation/name) or an absolute path on the cluster")
    if ".." in value or "--" in value or value.endswith((".git", ".", "-")):
        raise refusal("a Hugging Face id as the hub allows it", "no .. or -- in it, no dot, dash or .git at its end")
    return value


def _scalar(value: Any) -> Any:
    if isinstance(value, str):
        return visible(value)
    if not isinstance(value, bool | int | float) or not math.isfinite(value):
        raise refusal("text, a finite number, true or false")
    return value


Value = Annotated[Scalar, PlainValidator(_scalar)]
"""A value of a recipe or an override: text on one line, a finite number, true or false."""


def _span(value: Any) -> Any:
    if isinstance(value, bool | int | float):
        raise refusal(SPAN)
    if isinstance(value, str):
        try:
            seconds_of_span(value)
        except ValueError:
            raise refusal(SPAN) from None
    return value


def _approvals(value: Any) -> Any:
    # YAML's true equals 1.
    if type(value) is not int or value not in (1, 2):
        raise refusal("1 or 2")
    return value


class CatalogChoice(Input):
    """Which entry of which catalog of thresholds a release is held against.

    Attributes:
        file: The catalog, a path beside the release file, or `builtin` for the one that comes with gonogo.
        model: Name of the model in it, None for the target as it is named.
        drafter: Name of the drafter in it, None for the algorithm.
    """

    file: Annotated[Text, Field(description="a catalog of thresholds, or builtin")]
    model: Text | None = None
    drafter: Text | None = None


def _pinned(value: str) -> str:
    if not re.fullmatch(r"[^@\s]+@sha256:[0-9a-f]{64}", value):
        raise refusal("an image with its digest (name@sha256:...)", "a tag or a path can come to mean other bytes")
    return value


class Bounds(Input):
    """Within which bounds jobs may be approved without asking, once the operator approved exactly these.

    Attributes:
        stages: Stages whose jobs are covered.
        partition: The one partition.
        image: The one container image, with its digest; None for jobs without one.
        jobs: So many jobs at most.
        gpu_hours: So many GPU hours at most, as asked for.
        days: For so many days after the policy was approved.
    """

    stages: Annotated[tuple[JobStage, ...], Field(strict=False, min_length=1)]
    partition: Text
    image: Annotated[Text, AfterValidator(_pinned)] | None = None
    jobs: Annotated[int, Field(ge=1, le=1000)]
    gpu_hours: Annotated[int, Field(ge=0, le=1_000_000)]
    days: Annotated[int, Field(ge=1, le=365)]

    def words(self) -> str:
        """The bounds in one line."""
        image = f", image {self.image}" if self.image else ""
        return (
            f"{', '.join(self.stages)} on partition {self.partition}{image}: at most {self.jobs} jobs, "
            f"{self.gpu_hours} GPU hours, {self.days} days"
        )


class ReleaseSpec(Input):
    """What the operator asked for.

    Attributes:
        target: Hugging Face id (`organisation/name`) or absolute path on the cluster.
        revision: Commit of the target, 40 hex digits; None only for a path.
        algorithm: How the drafter is trained.
        cluster: Name in clusters.yaml, None to let the only cluster there be it.
        budget: Which of the recipe's two sets of sizes is used.
        existing_drafter: Path of a drafter on the cluster; skips training, not the gates.
        decide_within: So long after its proposal a job that nobody decided on expires ("8h"); None for never.
        approvals: So many different accounts must approve each job: 1 or 2.
        proposer_may_approve: Whether the account that proposed a job may approve it.
        signed_decisions: Whether a decision counts only with the SSH signature of the operator who made it.
        bounds: With `approve_submissions: none`: what a policy may cover, which the operator approves before any job.
        approve_submissions: `each`: every job waits for an OK. `none`: jobs are submitted as proposed.
        overrides: Recipe values that this release sets differently.
        recipe: Name of a built-in recipe, or absolute path of a recipe's folder; None to choose by algorithm.
        run_name: Becomes part of the run's id; None for a name made from target and algorithm.
        catalog: Thresholds that the drafter must reach beyond a valid measurement, None for no such bar.
    """

    target: Annotated[Text, Field(description="a Hugging Face id (organisation/name) or an absolute path")]
    revision: Text | None = None
    algorithm: Annotated[Algorithm, BeforeValidator(_algorithm), Field(description="dflash or dflash2")]
    cluster: Text | None = None
    budget: Annotated[Budget, Field(description="dev or full")]
    existing_drafter: ClusterPath | None = None
    # The rules stand before what is checked against them.
    decide_within: Annotated[Text | None, BeforeValidator(_span)] = None
    approvals: Annotated[Approvals, BeforeValidator(_approvals), Field(description="1 or 2")] = 1
    proposer_may_approve: bool = True
    signed_decisions: bool = False
    bounds: Bounds | None = None
    approve_submissions: ApproveSubmissions = "each"
    overrides: Mapping[Name, Value] = {}
    recipe: Text | None = None
    run_name: Name | None = None
    catalog: CatalogChoice | None = None

    @field_validator("target")
    @classmethod
    def _check_target(cls, value: str) -> str:
        return _target(value)

    @field_validator("revision")
    @classmethod
    def _check_revision(cls, value: str | None, info: ValidationInfo) -> str | None:
        target = info.data.get("target")
        if value is None:
            if target is None or target.startswith("/"):
                return None
            raise refusal("the commit of the target, 40 hex digits", "take it from the model's page on the hub")
        if re.fullmatch(r"[0-9A-Fa-f]{40}", value):
            return value.lower()
        short = re.fullmatch(r"[0-9A-Fa-f]{7,39}", value)
        advice = "give all 40 of them" if short else "a branch or tag is no pin, it can move: take the commit"
        raise refusal("a commit, 40 hex digits", advice)

    @field_validator("approve_submissions")
    @classmethod
    def _check_approve(cls, value: str, info: ValidationInfo) -> str:
        signed = info.data.get("signed_decisions", False)
        bounds = "given" if info.data.get("bounds") is not None else ""
        approvals, proposer = info.data.get("approvals", 1), info.data.get("proposer_may_approve", True)
        asked = Rules(approvals, proposer, signed=signed, bounds=bounds)
        if value == "none" and asked.of_people:
            raise refusal("each", f"approve_submissions cannot be none where {asked.asks_for_people()}")
        return value

    @field_validator("recipe")
    @classmethod
    def _check_recipe(cls, value: str | None) -> str | None:
        if value is None or value.startswith("/") or re.fullmatch(r"[a-z0-9][a-z0-9_-]{0,63}", value):
            return value
        # A relative path would mean another folder when the run is resumed from its own copy of this file.
        raise refusal("the name of a recipe (lower case) or the absolute path of its folder")

    @property
    def rules(self) -> Rules:
        """Who may decide, and for how long."""
        bounds = "" if self.bounds is None else self.bounds.words()
        within = None if self.decide_within is None else seconds_of_span(self.decide_within)
        return Rules(self.approvals, self.proposer_may_approve, within, self.signed_decisions, bounds)

    @property
    def from_hub(self) -> bool:
        """True when the target is a Hugging Face id."""
        return not self.target.startswith("/")

    @property
    def target_slug(self) -> str:
        """The target as one folder name: `organisation--name`, or the last part of a path."""
        name = self.target.replace("/", "--") if self.from_hub else self.target.rsplit("/", 1)[-1]
        return re.sub(r"[^A-Za-z0-9._-]", "_", name).lstrip("._-") or "target"


def load_release(path: Path) -> ReleaseSpec:
    """Read and check a release file.

    Args:
        path: The file, usually `release.yaml`.

    Raises:
        InputError: With every problem of the file, each on a line of its own.
    """
    return validate(ReleaseSpec, read_document(path, "release file"))
