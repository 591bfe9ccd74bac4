"""What became of a training with a Hugging Face trainer? Reads its own record, never what it printed.

    python3 check_training.py RUN_DIR --newest
    python3 check_training.py RUN_DIR --algorithm dflash --export-path DIR --exported-from CHECKPOINT \
        [--max-final-loss X] [--output regression_check.json]

With --newest it prints the checkpoint that was written last, by the number of its step: checkpoint-2400 comes after
checkpoint-500, whatever an alphabet says. A model beside the checkpoints counts where it had more steps. Otherwise it
writes the result file, in any case. The record with the most steps counts; of two with as many, that of the checkpoint.
Exit status: 0 nothing wrong, 1 something.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import re
import sys
import traceback
from typing import TYPE_CHECKING, Any, Dict, List, NamedTuple, Optional

if TYPE_CHECKING:
    from backends.payloads.results import write_result
else:
    from results import write_result

PRODUCER = "check_training"
STATE = "trainer_state.json"

_CHECKPOINT = re.compile(r"checkpoint-(\d+)")
_MODELS = ("model.safetensors", "model.safetensors.index.json", "pytorch_model.bin")
_LARGEST_STATE = 256 << 20


class Failed(Exception):
    """The record of the training cannot be used; says which file and why."""


class Checkpoint(NamedTuple):
    """A folder with a state of the training: a checkpoint, or the folder of the whole run.

    Attributes:
        path: The folder.
        step: Steps done, by its name; for the run's own folder by its record.
    """

    path: str
    step: int


def checkpoints(run: str) -> List[Checkpoint]:
    """The checkpoints of a run, oldest first, by the number in their names.

    Raises:
        Failed: When the folder cannot be listed.
    """
    try:
        names = os.listdir(run)
    except OSError as error:
        raise Failed(f"{run}: {error.strerror}") from None
    found = [(_CHECKPOINT.fullmatch(name), os.path.join(run, name)) for name in names]
    numbered = [Checkpoint(path, int(match.group(1))) for match, path in found if match and os.path.isdir(path)]
    return sorted(numbered, key=lambda one: one.step)


def newest(run: str) -> Checkpoint:
    """What was saved last: a checkpoint, or the whole run where that holds a model of more steps.

    Raises:
        Failed: When there is none.
    """
    found = checkpoints(run)
    last = found[-1] if found else Checkpoint("", -1)
    if os.path.isfile(os.path.join(run, STATE)) and any(os.path.isfile(os.path.join(run, name)) for name in _MODELS):
        own = Checkpoint(run, read_state(run)["global_step"])
        return own if own.step > last.step else last
    if not found:
        raise Failed(f"{run}: no checkpoint-N")
    return last


def read_state(folder: str) -> Dict[str, Any]:
    """The trainer's record in a folder.

    Raises:
        Failed: When there is none, or it is no record.
    """
    path = os.path.join(folder, STATE)
    try:
        with open(path, "rb") as stream:
            data = stream.read(_LARGEST_STATE + 1)
        # NaN stands bare in it: that is the trainer's dialect of JSON, and what is looked for here.
        state = json.loads(data.decode("utf-8"))
    except OSError as error:
        raise Failed(f"{path}: {error.strerror}") from None
    except (ValueError, RecursionError) as error:
        raise Failed(f"{path}: no JSON: {error}") from None
    if len(data) > _LARGEST_STATE or not isinstance(state, dict):
        raise Failed(f"{path}: no JSON object")
    for key in ("global_step", "max_steps"):
        if type(state.get(key)) is not int:
            raise Failed(f"{path}: {key}: expected a whole number")
    if not isinstance(state.get("log_history"), list):
        raise Failed(f"{path}: log_history: expected a list")
    return state


def choose(run: str) -> Dict[str, Any]:
    """The record that tells the most: of the newest checkpoint, or of the run where that has more steps.

    Raises:
        Failed: When there is none that can be used.
    """
    found = checkpoints(run)
    root = os.path.lexists(os.path.join(run, STATE))
    if not found and not root:
        raise Failed(f"{run}: neither a checkpoint-N nor {STATE}")
    if not found:
        return read_state(run)
    last = read_state(found[-1].path)
    if root:
        own = read_state(run)
        if own["global_step"] > last["global_step"]:
            return own
    return last


def training_log(state: Dict[str, Any]) -> List[Dict[str, Any]]:
    """The entries of training steps: those with a loss. A summary at the end has none, and its mean is no last loss."""
    rows = (entry for entry in state["log_history"] if isinstance(entry, dict) and "loss" in entry)
    return [{"step": row.get("step"), "loss": row["loss"], "grad_norm": _norm(row.get("grad_norm"))} for row in rows]


def _norm(value: Any) -> Any:
    """A norm; null where it is not finite, as that of a step that was skipped: what it means is for the gate to say."""
    return None if isinstance(value, float) and not math.isfinite(value) else value


def export_time(export: str) -> Optional[int]:
    """When the weights of an export were last written, nanoseconds; None where there are none."""
    try:
        names = [name for name in os.listdir(export) if name.endswith(".safetensors")]
        return max((os.stat(os.path.join(export, name)).st_mtime_ns for name in names), default=None)
    except OSError:
        return None


def check(args: argparse.Namespace, body: Dict[str, Any]) -> None:
    """Fill in the result.

    Raises:
        Failed: When there is no record that can be used.
    """
    state = choose(args.run_dir)
    body["global_step"], body["max_steps"] = state["global_step"], state["max_steps"]
    body["log"] = log = training_log(state)
    if not log:
        raise Failed(f"{args.run_dir}: the log of the training has no loss")
    body.update(first_loss=log[0]["loss"], final_loss=log[-1]["loss"], final_grad_norm=log[-1]["grad_norm"])
    if args.exported_from:
        exported = read_state(args.exported_from)
        body["exported_step"] = exported["global_step"]
        written = export_time(args.export_path)
        saved = os.stat(os.path.join(args.exported_from, STATE)).st_mtime_ns
        body["export_written_after_last_step"] = (
            written is not None and written >= saved and exported["global_step"] == state["global_step"]
        )
    body["status"] = "ok"


def blank(args: argparse.Namespace) -> Dict[str, Any]:
    """The result of a check that has not begun."""
    return {
        "algorithm": args.algorithm,
        "status": "error",
        "detail": "",
        "problems": [],
        "global_step": 0,
        "max_steps": 0,
        "first_loss": None,
        "final_loss": None,
        "final_grad_norm": None,
        # The trainer's record has no accuracy: what a callback prints is added after the record was copied.
        "final_accuracy": None,
        "log": [],
        "thresholds": {"max_final_loss": args.max_final_loss} if args.max_final_loss else {},
        "export_path": os.path.abspath(args.export_path),
        "exported_from": args.exported_from,
        "exported_step": None,
        "export_written_after_last_step": False,
    }


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="What became of a training with a Hugging Face trainer.")
    parser.add_argument("run_dir", help="folder that the training wrote its checkpoints to")
    parser.add_argument("--newest", action="store_true", help="print the newest checkpoint and do nothing else")
    parser.add_argument("--algorithm", default="")
    parser.add_argument("--export-path", default="", help="folder of the exported drafter")
    parser.add_argument("--exported-from", default="", help="the checkpoint that was exported")
    parser.add_argument("--max-final-loss", type=float, default=0.0, help="bar on the last loss; 0 for none")
    parser.add_argument("--output", default="regression_check.json")
    return parser.parse_args()


def main() -> int:
    """Check as the command line says."""
    args = _arguments()
    if args.newest:
        try:
            print(newest(args.run_dir).path)
            return 0
        except Failed as failed:
            print(failed, file=sys.stderr)
            return 1
    body = blank(args)
    try:
        check(args, body)
    except Failed as failed:
        body["detail"] = str(failed)
    except Exception as error:  # the result file must say so, whatever it is
        traceback.print_exc()
        body["detail"] = f"{type(error).__name__}: {error}"
    if body["detail"]:
        body["problems"].append(body["detail"])
    document = write_result(args.output, PRODUCER, body)
    loss = f"loss {document['first_loss']} -> {document['final_loss']}"
    print(f"{document['status']}: step {document['global_step']} of {document['max_steps']}, {loss} {body['detail']}")
    return 0 if document["status"] == "ok" and not document["problems"] else 1


if __name__ == "__main__":
    sys.exit(main())
