"""From files to a conductor: checks every input before anything is submitted, makes or reopens the run folder."""

from __future__ import annotations

import os
import re
import secrets
import socket
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from importlib import metadata
from pathlib import Path
from typing import Any

from console import settings
from console.release import effects, folder
from console.release.canonical import sha256
from console.release.clusters import choose_cluster, find_clusters_file, load_clusters
from console.release.decisions import AwaitOperator, Plan, Session, StopSystemic, next_step
from console.release.errors import InputError, Problem
from console.release.journal import Entry
from console.release.proposing import Release, make_plan
from console.release.recipe import Recipe, choose_recipe, require_values, resolve_values, size_task
from console.release.rules import Rules, rules_of
from console.release.signing import Signers, signers_of
from console.release.spec import load_release
from console.release.state import RunState
from console.release.submission import mend_outcome
from console.release.thresholds import CATALOG_NAME, choose_thresholds
from console.release.writer import RunWriter


@dataclass(frozen=True, slots=True)
class Opened:
    """A release that is ready to be conducted, with its lock held.

    Attributes:
        release: What is released.
        writer: Its log and state.
        lock: The conductor's lock.
        approve: "each" or "none", as the flag or the inputs say.
        signers: Whose signatures count, None where the settings do not say.
    """

    release: Release
    writer: RunWriter
    lock: folder.Lock
    approve: str
    signers: Signers | None = None


def check_inputs(
    release_file: Path, run_dir: Path, run_id: str, clusters_file: Path | None
) -> tuple[Release, dict[str, Any]]:
    """Read and check everything that a release is made from.

    Returns:
        The release, and its inputs as the log records them.

    Raises:
        InputError: With one line for each thing that is wrong.
    """
    spec = load_release(release_file)
    file = str(release_file)
    clusters = load_clusters(find_clusters_file(clusters_file))
    cluster = choose_cluster(clusters, spec.cluster, asked_in=file)
    recipe = choose_recipe(spec.recipe, spec.algorithm, asked_in=file)
    values = resolve_values(recipe, spec.budget, spec.overrides, file=file)
    for task in recipe.tasks:
        size_task(task, values, file=file)
    kept = run_dir / CATALOG_NAME
    thresholds = choose_thresholds(spec, release_file, kept, recipe.tasks, values.get("draft_tokens"))
    release = Release(run_dir, run_id, spec, cluster, recipe, thresholds)
    planned = [recipe.task(task.stage, task.task) for task in make_plan(release).tasks]
    require_values(recipe, planned, values, file=file)
    inputs = {
        "target": spec.target,
        "revision": spec.revision or "",
        "algorithm": spec.algorithm,
        "budget": spec.budget,
        "existing_drafter": spec.existing_drafter or "",
        "cluster": cluster.name,
        "login": f"{cluster.user}@{cluster.login_node}:{cluster.port}",
        "account": cluster.account or "",
        "partition": cluster.partition or "",
        "recipe": recipe.name,
        "recipe_sha256": _recipe_digest(recipe),
        "clusters_file": str(Path(cluster.file).absolute()),
        "release_sha256": sha256(release_file.read_bytes()),
        **spec.rules.inputs(),
        **({} if thresholds is None else thresholds.inputs()),
    }
    return release, inputs


def _recipe_digest(recipe: Recipe) -> str:
    """One digest over everything that the recipe's jobs are made from."""
    parts = [f"{name} {sha256(text.encode())}" for name, text in sorted(recipe.templates.items())]
    parts += [f"{name} {sha256(data)}" for name, data in sorted(recipe.files.items())]
    parts += [task.model_dump_json() for task in recipe.tasks]
    return sha256("\n".join(parts).encode())


def new_run_id(release_file: Path, now: datetime) -> str:
    """A name for a new run: from the release file's name and the time, unique enough to sort and to say."""
    stem = re.sub(r"[^a-z0-9]+", "-", release_file.stem.lower()).strip("-") or "release"
    return f"{stem[:40]}-{now:%Y%m%d-%H%M%S}-{secrets.token_hex(2)}"


def start_run(
    release_file: Path,
    *,
    run_dir: Path | None,
    clusters_file: Path | None,
    approve: str | None,
    clock: Callable[[], datetime],
    on_entry: Callable[[Entry], None] | None = None,
) -> Opened:
    """Check the inputs, make the run folder, take its lock and write the first log entry.

    Raises:
        InputError: When an input is wrong; nothing was created then.
        folder.FolderError: When the folder cannot be used.
    """
    run_id = run_dir.name if run_dir is not None else new_run_id(release_file, clock())
    if run_dir is not None and not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,79}", run_id):
        raise folder.FolderError(
            f"{run_dir}: the folder's name becomes the name of the run; use letters, digits, dot, dash and underscore"
        )
    place = (run_dir or Path(folder.RUNS_ROOT) / run_id).absolute()
    release, inputs = check_inputs(release_file, place, run_id, clusters_file)
    effects.arm(dict(os.environ))
    approve = approve or release.spec.approve_submissions
    own = settings.load().signing
    if own.required:
        inputs["signed_decisions"] = True
    rules = rules_of(inputs)
    _require_people(rules, release_file, approve)
    _require_signers(rules, own)
    folder.require_free(place)
    # The folder appears whole, with its first log entry, or not at all: there is no half-made run to resume.
    fresh = place.with_name(f".new-{place.name}-{secrets.token_hex(4)}")
    folder.create_run_folder(fresh, release_file.read_bytes())
    if release.thresholds is not None:
        effects.create(fresh / CATALOG_NAME, release.thresholds.data, CATALOG_NAME)
    RunWriter(fresh, clock).record(
        "run_started",
        f"Release of a {inputs['algorithm']} drafter for {inputs['target']} on {inputs['cluster']} ({inputs['login']})",
        actor=f"operator:{folder.account()}",
        run_id=run_id,
        inputs={**inputs, "approve_submissions": approve},
        overrides=dict(release.spec.overrides),
        version=metadata.version("gonogo"),
        host=socket.gethostname(),
    )
    folder.publish(fresh, place)
    lock = folder.Lock(place, "conductor")
    writer = RunWriter(place, clock, on_entry)
    if on_entry is not None:
        on_entry(writer.entries[0])
    return Opened(release, writer, lock, approve, signers_of(own))


def resume_run(
    run_dir: Path,
    *,
    approve: str | None,
    clock: Callable[[], datetime],
    on_entry: Callable[[Entry], None] | None = None,
) -> Opened:
    """Take up a run where its log ends.

    Raises:
        InputError: When its inputs are not what they were, or not usable any more.
        folder.FolderError: When it is not a run folder, or another conductor has it.
        console.release.journal.LogError: When its log was changed.
    """
    run_dir = run_dir.absolute()
    folder.require_run_folder(run_dir)
    effects.arm(dict(os.environ))
    lock = folder.Lock(run_dir, "conductor")
    writer = RunWriter(run_dir, clock, on_entry)
    inputs = writer.state.inputs
    if not inputs:
        lock.close()
        raise folder.FolderError(f"{run_dir}: its log ends before the run began; start a new run in a new folder")
    release_file = run_dir / folder.RELEASE_NAME
    try:
        _require_same(run_dir / CATALOG_NAME, inputs.get("catalog_sha256"))
        release, now = check_inputs(release_file, run_dir, writer.state.run_id, Path(inputs["clusters_file"]))
        _require_same(release_file, inputs["release_sha256"])
        approve = approve or str(inputs.get("approve_submissions", "each"))
        own = settings.load().signing
        _require_people(rules_of(inputs), release_file, approve)
        _require_signers(rules_of(inputs), own)
    except (InputError, settings.SettingsError):
        lock.close()
        raise
    for attempt in writer.state.attempts:
        mend_outcome(writer, attempt.id)
    changed = {key: value for key, value in now.items() if inputs.get(key) != value}
    if writer.state.verdict is None:
        more = f"; changed since: {', '.join(sorted(changed))}" if changed else ""
        again = _waits_for_a_person(writer.state, make_plan(release))
        more += f"; {again} is tried again" if again else ""
        writer.record(
            "run_resumed",
            f"Resumed by {folder.account()} on {socket.gethostname()}{more}",
            actor=f"operator:{folder.account()}",
            human=bool(again),
            reopened=again,
            changed=changed,
            approve_submissions=approve,
            host=socket.gethostname(),
            version=metadata.version("gonogo"),
        )
    return Opened(release, writer, lock, approve, signers_of(own))


def _require_signers(rules: Rules, own: settings.Signing) -> None:
    """Where decisions must be signed, somebody must be able to say whose signature one is.

    Raises:
        InputError: When the settings name no file that does, or one that is not there.
    """
    if not rules.signed:
        return
    expected = "a readable file of allowed signers, since the release asks for signed decisions"
    for field, file in (("allowed_signers", own.allowed_signers), ("revoked", own.revoked)):
        found = "nothing" if file is None and field == "allowed_signers" else ""
        try:
            if file is not None:
                file.read_bytes()
        except OSError as error:
            found = f"{file} ({error.strerror})"
        if found:
            advice = "name one account and its public key on each line, as in ssh-keygen(1)"
            raise InputError(Problem(str(settings.path_of()), f"signing.{field}", expected, found, advice))


def _require_people(rules: Rules, file: Path, approve: str) -> None:
    """Where the rules ask for people, no policy can approve, whoever asks for one.

    Raises:
        InputError: When one is asked for.
    """
    people = rules.asks_for_people()
    if approve == "none" and people:
        advice = "leave --approve-submissions none away: no policy approves in the place of people"
        raise InputError(Problem(str(file), "approve_submissions", f"each, since {people}", "none", advice))


def _require_same(file: Path, digest: str | None) -> None:
    """A run goes on with the inputs that it was started with.

    Raises:
        InputError: When a file of them is not what it was.
    """
    if digest is None:
        return
    try:
        found = "other bytes" if sha256(file.read_bytes()) != digest else ""
    except OSError as error:
        found = error.strerror or str(error)
    if found:
        expected = "the inputs that this run was started with"
        advice = "put them back, or start a new run with the new inputs"
        raise InputError(Problem(str(file), "the whole file", expected, found, advice))


def _waits_for_a_person(state: RunState, plan: Plan) -> str:
    """What a person must have dealt with before they resume: its id, empty when nothing waits for that.

    Resuming after a rejection, a refusal or a stop is asking for another try, so it is logged as one.
    """
    step = next_step(state, plan, Session(probed=True, freeze_verified=True))
    return step.id if isinstance(step, AwaitOperator | StopSystemic) else ""
