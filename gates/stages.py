"""The stage words of smoke, bench and exact-match results: how far the program came, and the class of stopping there.

The word is written by the program that ran on the cluster, which saw what happened. So triage acts on it, and never on
the last traceback in a log.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from gates.record import Record
from gates.verdict import FailureClass

DONE: Final = "done"

STAGE_CLASSES: Final[Mapping[str, FailureClass]] = {
    # Something else holds the port, or took it between the choice and the start: says nothing about the drafter.
    "port_in_use": FailureClass.INFRA_TRANSIENT,
    "server_died": FailureClass.CHECKPOINT_NOT_SERVABLE,
    "server_timeout": FailureClass.CHECKPOINT_NOT_SERVABLE,
    # The server answers, but is not the one that was asked for: whatever it measured is about something else.
    "model_mismatch": FailureClass.MEASUREMENT_INVALID,
    "drafter_inactive": FailureClass.CHECKPOINT_NOT_SERVABLE,
    "generation_failed": FailureClass.CHECKPOINT_NOT_SERVABLE,
    "metrics_unreadable": FailureClass.MEASUREMENT_INVALID,
    "architecture_unsupported": FailureClass.MODEL_UNSUPPORTED,
    # This probe cannot be run over this engine, whatever the drafter.
    "engine_unsuited": FailureClass.USER_CONFIG_ERROR,
    "unexpected": FailureClass.UNKNOWN,
}
"""For every word but `done`: the failure class of a result that ends with it."""


def judge_stage(record: Record) -> bool:
    """Check that the program came to its end.

    The word goes into the facts as `stage`, whatever it is, and what the program said about it as `stopped_by`.

    Returns:
        True when the stage is `done`; otherwise the rest of the file is not a measurement.
    """
    stage = record.text("stage")
    detail = record.text("detail", optional=True, empty=True)
    if stage is None:
        return False
    record.sheet.fact("stage", stage)
    if stage != DONE and detail:
        record.sheet.fact("stopped_by", detail)
    measured = f"{stage} ({detail})" if stage != DONE and detail else stage
    return record.check(
        "stage", stage == DONE, measured, f"= {DONE}", "stage", cls=STAGE_CLASSES.get(stage, FailureClass.UNKNOWN)
    )
