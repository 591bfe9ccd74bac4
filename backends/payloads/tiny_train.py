"""Trains a drafter for the tiny target and exports it.

    python3 tiny_train.py --target DIR --data FILE --algorithm dflash2 --export-path DIR [--steps N] ...

Writes `regression_check.json` at the end, also when training fails, and while it runs `progress.json`, by rename, from
which the loss can be watched. `--fault` breaks the export on purpose, after a training that went well, so that what
follows can be seen.
"""

from __future__ import annotations

import argparse
import math
import os
import sys
import time
from typing import TYPE_CHECKING, Any, Dict, List, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from backends.payloads import tiny_drafter, tiny_learning, tiny_model, tiny_tensors
    from backends.payloads.results import write_result
    from backends.payloads.tiny_model import Ids
else:
    import tiny_drafter
    import tiny_learning
    import tiny_model
    import tiny_tensors
    from results import write_result

PRODUCER = "tiny_train"
FAULTS = ("export", "draft-head", "freeze")
_WARM_UP = 20
_VALIDATION_SHARE = 16
_VALIDATION_ANCHORS = 512


class NotLearning(Exception):
    """Training cannot go on."""


class Data(NamedTuple):
    """Texts to learn from, as `tiny_data.py` writes them.

    Attributes:
        tokens: Shape (texts, length).
        features: Shape (texts, length - 1, layers x hidden).
    """

    tokens: Ids
    features: tiny_model.Array

    def draw(self, random: np.random.RandomState, shape: tiny_drafter.Shape, count: int) -> tiny_learning.Batch:
        """Some anchors with their context, drawn at random."""
        texts = random.randint(0, len(self.tokens), count)[:, None]
        window = shape.swa_window_size
        anchors = random.randint(window, self.tokens.shape[1] - shape.block_size + 1, count)[:, None]
        context = self.features[texts, anchors + np.arange(-window, 0)]
        return tiny_learning.Batch(
            context.astype(np.float32), self.tokens[texts, anchors + np.arange(shape.block_size)]
        )


def load_data(path: str) -> "tuple[Data, Data]":
    """Read training data; returns what to learn from, and what to validate with.

    Raises:
        OSError: When it cannot be read.
        ValueError: When it is no training data.
        KeyError: When it lacks tokens or features.
    """
    tensors = tiny_tensors.load(path)
    tokens, features = tensors["tokens"].astype(np.int64), tensors["features"]
    held = max(1, len(tokens) // _VALIDATION_SHARE)
    if len(tokens) < 2:
        raise ValueError(f"{path}: {len(tokens)} texts are not enough to learn and to validate")
    return Data(tokens[held:], features[held:]), Data(tokens[:held], features[:held])


class Training:
    """One training run.

    Attributes:
        shape: Sizes of the drafter.
        tensors: Its tensors.
        log: What was logged: step, loss, gradient norm and accuracy, each the mean since the entry before.
        steps: Steps done.
    """

    def __init__(self, args: argparse.Namespace, target: tiny_model.Target, config: Dict[str, Any]) -> None:
        self._args = args
        self.shape = tiny_drafter.shape_for(args.algorithm, config, args.draft_tokens + 1)
        self.tensors = tiny_learning.initial(self.shape, args.seed)
        self._frozen = tiny_learning.Frozen(target.embedding, target.head)
        self._begun = time.monotonic()
        self.log: List[Dict[str, Any]] = []
        self.steps = 0

    def run(self, data: Data) -> None:
        """Train for all steps.

        Raises:
            NotLearning: When the loss is not finite.
            OSError: When the progress cannot be written.
        """
        random = np.random.RandomState(self._args.seed)
        adam = tiny_learning.Adam(self.tensors)
        since: List[List[float]] = []
        for number in range(1, self._args.steps + 1):
            done = tiny_learning.step(
                self.tensors, self.shape, self._frozen, data.draw(random, self.shape, self._args.batch)
            )
            norm = adam.follow(done.gradients, self._rate(number))
            if not (math.isfinite(done.loss) and math.isfinite(norm)):
                raise NotLearning(f"loss {done.loss}, gradient norm {norm} at step {number}")
            self.steps = number
            since.append([done.loss, norm, float(done.hits.mean())])
            if number == 1 or number % self._args.log_every == 0 or number == self._args.steps:
                self._note(np.mean(since, axis=0).tolist())
                since.clear()

    def validate(self, data: Data) -> Dict[str, Any]:
        """Loss and accuracy on texts that were not learned from, and the acceptance length that would follow.

        The estimate is teacher-forced: each position is judged with the true tokens before it. What a server measures
        is the truth.
        """
        batch = data.draw(np.random.RandomState(self._args.seed), self.shape, _VALIDATION_ANCHORS)
        seen = tiny_learning.step(self.tensors, self.shape, self._frozen, batch)
        return {
            "loss": seen.loss,
            "accuracy": float(seen.hits.mean()),
            "accuracy_by_position": seen.hits.mean(0).tolist(),
            "estimated_acceptance_length": float(1 + np.cumprod(seen.hits, axis=1).sum(1).mean()),
        }

    def _rate(self, number: int) -> float:
        """Learning rate: rises linearly, then falls along half a cosine to a twentieth."""
        rate: float = self._args.rate * min(1.0, number / _WARM_UP)
        return rate * (0.525 + 0.475 * math.cos(math.pi * number / self._args.steps))

    def _note(self, means: List[float]) -> None:
        loss, norm, accuracy = means
        self.log.append({"step": self.steps, "loss": loss, "grad_norm": norm, "accuracy": accuracy})
        progress = {
            "algorithm": self.shape.algorithm,
            "global_step": self.steps,
            "max_steps": self._args.steps,
            "elapsed_s": time.monotonic() - self._begun,
            "log_history": self.log,
        }
        write_result(self._args.progress, PRODUCER, progress)
        print(f"step {self.steps}: loss {loss:.3f}, gradient norm {norm:.2f}, accuracy {accuracy:.3f}", flush=True)


def break_export(folder: str, training: Training, fault: str) -> None:
    """Break an export in the way that is asked for.

    Args:
        folder: The export.
        training: Where it comes from.
        fault: `export` cuts the weights off in the middle, as a full disk would; `draft-head` puts random numbers in
            the place of every weight; `freeze` leaves a link that leads out of the folder.
    """
    weights = os.path.join(folder, tiny_drafter.WEIGHTS)
    if fault == "export":
        os.truncate(weights, os.path.getsize(weights) * 2 // 3)
    elif fault == "draft-head":
        random = np.random.RandomState(training.steps)
        shaken = {
            name: (random.standard_normal(array.shape) * array.std() + array.mean()).astype(np.float32)
            for name, array in training.tensors.items()
        }
        tiny_drafter.export(folder, training.shape, shaken)
    elif fault == "freeze":
        os.symlink(os.path.relpath("progress.json", folder), os.path.join(folder, "training_log.json"))


def export(folder: str, training: Training, progress: str, fault: str) -> bool:
    """Write the drafter.

    Returns:
        Whether its weights are at least as new as the progress that was noted after the last step.

    Raises:
        OSError: When it cannot be written.
    """
    tiny_drafter.export(folder, training.shape, training.tensors)
    break_export(folder, training, fault)
    weights = os.path.join(folder, tiny_drafter.WEIGHTS)
    return os.stat(weights).st_mtime_ns >= os.stat(progress).st_mtime_ns


def train(args: argparse.Namespace, body: Dict[str, Any]) -> None:
    """Train, export, and fill in the result.

    Raises:
        OSError: When something cannot be read or written.
        ValueError: When something is not what it should be.
        KeyError: When something is missing.
        NotLearning: When training cannot go on.
    """
    config = tiny_model.read_config(args.target, tiny_model.ARCHITECTURE)
    target = tiny_model.Target.load(args.target)
    learn, validate = load_data(args.data)
    training = Training(args, target, config)
    body["log"] = training.log
    try:
        training.run(learn)
    finally:
        body["global_step"] = training.steps
    first, last = training.log[0], training.log[-1]
    body.update(first_loss=first["loss"], final_loss=last["loss"], final_grad_norm=last["grad_norm"])
    body["validation"] = training.validate(validate)
    body["final_accuracy"] = body["validation"]["accuracy"]
    body["export_written_after_last_step"] = export(args.export_path, training, args.progress, args.fault)
    body["status"] = "ok"


def main() -> int:
    """Train as the command line says; the result file is written in any case."""
    parser = argparse.ArgumentParser(description="Train a drafter for the tiny target.")
    parser.add_argument("--target", required=True, help="folder of the target")
    parser.add_argument("--data", required=True, help="data.safetensors")
    parser.add_argument("--algorithm", required=True, choices=sorted(tiny_drafter.ARCHITECTURES))
    parser.add_argument("--export-path", required=True, help="folder for the drafter")
    parser.add_argument("--draft-tokens", type=int, default=4, help="tokens that it drafts; a block has one more")
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--batch", type=int, default=96, help="anchors of a step")
    parser.add_argument("--rate", type=float, default=0.015, help="highest learning rate")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--log-every", type=int, default=10, help="steps between two entries of the log")
    parser.add_argument("--fault", default="", choices=("", *FAULTS), help="break the export on purpose")
    parser.add_argument("--progress", default="progress.json")
    parser.add_argument("--output", default="regression_check.json")
    args = parser.parse_args()
    numbers = ("first_loss", "final_loss", "final_grad_norm", "final_accuracy")
    body: Dict[str, Any] = {"algorithm": args.algorithm, "status": "error", "detail": "", "problems": []}
    body.update(global_step=0, max_steps=args.steps, **dict.fromkeys(numbers), log=[], thresholds={})
    body.update(export_path=os.path.abspath(args.export_path), export_written_after_last_step=False)
    try:
        train(args, body)
    except (OSError, ValueError, KeyError, NotLearning) as error:
        body["detail"] = f"{type(error).__name__}: {error}"
    write_result(args.output, PRODUCER, body)
    print(f"{body['status']}: {body['global_step']} of {args.steps} steps, loss {body['final_loss']} {body['detail']}")
    return 0 if body["status"] == "ok" else 1


if __name__ == "__main__":
    sys.exit(main())
