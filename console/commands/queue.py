"""`gonogo queue`: look at proposed jobs and decide on them, from any terminal.

A decision names the full digest of the bytes that were shown. On a terminal it takes the short code, typed
after the whole job was printed; without one it takes the full digest as an option.
"""

from __future__ import annotations

import argparse
import re
import sys
import time
from dataclasses import dataclass

from backends.quoting import quote
from console.commands.common import (
    BAD_INPUT,
    DONE,
    REFUSED,
    add_json,
    add_run_dir,
    interactive,
    print_json,
    require_queue,
    say,
    stamp,
    terminal,
)
from console.release import deciding, folder, queue
from console.release.queue_view import PENDING, Item, background, item, items
from console.safe_text import cut, safe

GRACE_SECONDS = 0.5
"""Keys that were pressed before the whole job was on the screen, and for so long after, answer nothing."""

_DIGEST = re.compile(r"[0-9a-f]{64}")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of `gonogo queue`."""
    verbs = parser.add_subparsers(title="verbs", metavar="VERB", dest="verb", required=True)
    lister = verbs.add_parser("list", help="every proposed job and where it stands")
    shower = verbs.add_parser("show", help="one whole job, exactly as it will run")
    approver = verbs.add_parser("approve", help="give the OK for one exact job")
    rejecter = verbs.add_parser("reject", help="say no, with a reason for the proposer")
    for verb in (lister, shower, approver, rejecter):
        add_run_dir(verb)
        add_json(verb)
    for verb in (shower, approver, rejecter):
        verb.add_argument("id", nargs="?", metavar="ID", help="the proposal (default: the only one that waits)")
    shower.add_argument("--uploads", action="store_true", help="show the files that travel with it, too")
    approver.add_argument(
        "--digest", metavar="HEX", help="the job's full SHA-256; needed where there is no terminal to type the code"
    )
    rejecter.add_argument("--digest", metavar="HEX", help="reject only if the job still has this full SHA-256")
    rejecter.add_argument("--reason", metavar="TEXT", help="why; goes back to the proposer and into the log")


def run(args: argparse.Namespace) -> int:
    """Carry out one verb.

    Returns:
        0 done, 1 refused or decided otherwise before, 2 input that cannot be used.
    """
    require_queue(args.run_dir)
    if args.verb == "list":
        return _list(args)
    found = _choose(args)
    if found is None:
        return BAD_INPUT
    return {"show": _show, "approve": _approve, "reject": _reject}[args.verb](args, found)


@dataclass(frozen=True, slots=True)
class _Found:
    """A proposal, and where it stood when the command looked."""

    proposal: queue.Proposal
    item: Item


def _choose(args: argparse.Namespace) -> _Found | None:
    """The proposal that is meant; None, with a remark, where that is not certain."""
    state = folder.read_state(args.run_dir)
    name = args.id
    if name is None:
        waiting = [one.id for one in items(args.run_dir, state) if one.state == PENDING]
        if len(waiting) != 1:
            which = f"several wait ({', '.join(waiting)})" if waiting else "none waits"
            say(f"gonogo queue {args.verb}: name the proposal: {which}")
            return None
        name = waiting[0]
    return _Found(queue.load(args.run_dir, name), item(args.run_dir, state, name))


def _list(args: argparse.Namespace) -> int:
    found = items(args.run_dir, folder.read_state(args.run_dir))
    if args.json:
        print_json([one.to_json() for one in found])
        return DONE
    if not found:
        say("No job has been proposed yet.")
    rows = [("ID", "CODE", "STATE", "STAGE", "PROPOSED (UTC)", "BY", "SUMMARY")]
    rows += [
        (one.id, one.digest[:8], one.state, one.stage, one.proposed_at[:19].replace("T", " "), one.proposer, _note(one))
        for one in found
    ]
    cells = [tuple(cut(safe(cell), 100) for cell in row) for row in rows if found]
    widths = [max(len(row[column]) for row in cells) for column in range(len(rows[0]))] if cells else []
    for row in cells:
        print("  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)).rstrip())
    return DONE


def _note(one: Item) -> str:
    if one.problem:
        return f"PROBLEM: {one.problem}"
    if one.state == PENDING:
        first = f" [first approval by {one.first_by}, one more is needed]" if one.first_by else ""
        until = f" [expires at {one.expires_at[:19].replace('T', ' ')} UTC]" if one.expires_at else ""
        return f"{one.summary}{first}{until}"
    said = f" ({one.reason})" if one.reason else ""
    by = f" [by {one.decided_by}{said}]" if one.decided_by else ""
    return f"{one.summary}{by}"


def _print_job(args: argparse.Namespace, found: _Found, *, uploads: bool) -> None:
    """The whole job, with its state before it."""
    from console.release.job_view import job_sections, job_text

    job = found.proposal.job()
    about = background(args.run_dir, folder.read_state(args.run_dir), found.proposal)
    by = f"; decided by {found.item.decided_by} at {found.item.decided_at}" if found.item.decided_by else ""
    print(safe(f"{found.proposal.id}: {found.item.state}{by}"))
    if found.item.problem:
        print(safe(f"PROBLEM: {found.item.problem}"))
    print()
    print(job_text(job_sections(job, about, found.proposal.uploads() if uploads else None)))


def _show(args: argparse.Namespace, found: _Found) -> int:
    if not args.json:
        _print_job(args, found, uploads=args.uploads)
        return DONE
    from console.release.job import changes

    job = found.proposal.job()
    about = background(args.run_dir, folder.read_state(args.run_dir), found.proposal)
    rows = [{"field": name, "before": old, "after": new} for name, old, new in changes(about.previous, job)]
    print_json(
        {
            **found.item.to_json(),
            "code": job.code,
            "change": found.proposal.change,
            "terms": list(about.terms),
            "sbatch": ["sbatch", *job.sbatch_options()],
            "gpu_hours": job.gpu_hours,
            "compared_with": about.previous_id or None,
            "changes": rows,
            "job": job.model_dump(mode="json"),
        }
    )
    return DONE


def _approve(args: argparse.Namespace, found: _Found) -> int:
    if args.digest is not None and not _full(args.digest):
        return BAD_INPUT
    settled = _settled(args, found, queue.APPROVED)
    if settled is not None:
        return settled
    found.proposal.job()
    try:
        found.proposal.uploads()
    except queue.QueueError as error:
        return _refuse(str(error))
    shown_s = None
    if args.digest is None:
        if args.json or not interactive():
            say(
                "gonogo queue approve: without a terminal an OK needs the full digest: look at the job with `gonogo "
                f"queue show {quote(str(args.run_dir))} {found.proposal.id}`, then add --digest and its 64 hex digits"
            )
            return BAD_INPUT
        shown_s = _ask_code(args, found)
        if shown_s is None:
            return _refuse(f"{found.proposal.id}: not approved; it still waits")
    return _decide(args, _decision(args, found, queue.APPROVED, "", shown_s))


def _decision(
    args: argparse.Namespace, found: _Found, word: str, reason: str, shown_s: int | None = None
) -> queue.Decision:
    digest = args.digest or found.proposal.digest
    return queue.Decision(
        found.proposal.id, digest, word, folder.account(), reason, stamp(), terminal(), shown_s=shown_s
    )


def _full(digest: str) -> bool:
    if _DIGEST.fullmatch(digest):
        return True
    say("gonogo queue: --digest: expected all 64 hex digits of the job's SHA-256, in lower case; a part is not enough")
    return False


def _ask_code(args: argparse.Namespace, found: _Found) -> int | None:
    """Show the job, then ask for its code.

    Returns:
        Whole seconds between showing and answer; None when the answer was anything but the code.
    """
    _print_job(args, found, uploads=False)
    code = found.proposal.job().code
    print(f"\nTo approve exactly this job, type its code {code}; anything else leaves it waiting.", flush=True)
    shown = time.monotonic()
    time.sleep(GRACE_SECONDS)
    _drop_typed_ahead()
    print("code> ", end="", flush=True)
    answer = sys.stdin.readline()
    return int(time.monotonic() - shown) if answer.strip() == code else None


def _drop_typed_ahead() -> None:
    import termios

    termios.tcflush(sys.stdin.fileno(), termios.TCIFLUSH)


def _reject(args: argparse.Namespace, found: _Found) -> int:
    if args.digest is not None and not _full(args.digest):
        return BAD_INPUT
    settled = _settled(args, found, queue.REJECTED)
    if settled is not None:
        return settled
    reason = args.reason
    if reason is None and interactive():
        print(safe(f"{found.proposal.id}: {found.item.summary}"))
        print("Why not? The proposer reads this; an empty line leaves it waiting.\nreason> ", end="", flush=True)
        reason = sys.stdin.readline().strip()
    if not (reason or "").strip():
        say("gonogo queue reject: a rejection needs a reason: add --reason TEXT")
        return BAD_INPUT
    return _decide(args, _decision(args, found, queue.REJECTED, reason))


def _settled(args: argparse.Namespace, found: _Found, wanted: str) -> int | None:
    """The exit status where nothing is left to decide; None where it is open."""
    one = found.item
    if one.state == PENDING and not one.problem:
        return None
    standing = _standing(found.proposal)
    if standing is not None:
        if standing.decision == wanted and args.digest in (None, standing.digest):
            return _report(args, standing, already=True)
        return _refuse(str(queue.AlreadyDecided(one.id, standing)))
    if one.problem and wanted == queue.REJECTED:
        return None  # what cannot be approved any more can still be turned down, with a reason
    return _refuse(f"{one.id}: is {one.state} and cannot be {wanted}" + (f": {one.problem}" if one.problem else ""))


def _standing(proposal: queue.Proposal) -> queue.Decision | None:
    try:
        return queue.decision_of(proposal)
    except queue.QueueError:
        return None


def _decide(args: argparse.Namespace, decision: queue.Decision) -> int:
    try:
        decision = _signed(args, decision)
        final = deciding.decide(args.run_dir, decision)
    except queue.QueueError as error:
        return _refuse(str(error))
    return _report(args, decision, already=False, final=final)


def _signed(args: argparse.Namespace, decision: queue.Decision) -> queue.Decision:
    """The decision, signed where a key is set.

    Raises:
        console.release.queue.QueueError: When it could not be signed.
    """
    from console import settings
    from console.release import signing

    signer = signing.signer_of(settings.load().signing)
    if signer is not None:
        touch = "; touch your security key when it blinks" if signer.touches() else ""
        say(f"gonogo queue: your SSH agent is asked to sign the decision{touch}")
    return signing.signed(args.run_dir, decision, signer)


def _report(args: argparse.Namespace, decision: queue.Decision, *, already: bool, final: bool = True) -> int:
    if args.json:
        print_json({**decision.to_json(), "already": already, "final": final})
    else:
        was = f"was {decision.decision} already" if already else decision.decision
        print(safe(f"{decision.id}: {was} by {decision.operator} at {decision.time}; digest {decision.digest}"))
    if not final:
        say(f"{decision.id}: this is the first of two approvals; it waits for that of another account")
    if not already and folder.holder(args.run_dir, "conductor") is None:
        say(f"No conductor works on this run now; `gonogo resume {quote(str(args.run_dir))}` goes on with it.")
    return DONE


def _refuse(text: str) -> int:
    say(f"gonogo queue: {text}")
    return REFUSED
