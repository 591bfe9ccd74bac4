"""`gonogo verify`: is a run folder what it says? Needs no network and no cluster.

Exit status: 0 nothing is wrong; 1 something is; 2 this is no run folder.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from console import settings
from console.commands.common import DONE, REFUSED, add_json, add_run_dir, print_json
from console.release import folder
from console.safe_text import safe

if TYPE_CHECKING:
    from console.release.signing import Signers


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of `gonogo verify`."""
    add_run_dir(parser)
    add_json(parser)
    parser.add_argument("--wrong", action="store_true", help="only what is wrong")
    parser.add_argument(
        "--allowed-signers",
        type=Path,
        metavar="FILE",
        help="whose signatures count, as in ssh-keygen(1) (default: allowed_signers in [signing] of the settings)",
    )
    parser.add_argument("--revoked", type=Path, metavar="FILE", help="keys that count no longer (default: as set)")


def run(args: argparse.Namespace) -> int:
    """Check everything, and print one line for each fact."""
    from console.release.verify.facts import Word
    from console.release.verify.whole import verify

    folder.require_run_folder(args.run_dir)
    facts = list(verify(args.run_dir, _signers(args)))
    shown = [fact for fact in facts if fact.word is Word.WRONG or not args.wrong]
    if args.json:
        print_json([fact.to_json() for fact in shown])
    else:
        for fact in shown:
            print(f"{fact.word:<11}  {safe(fact.about)}: {safe(fact.text)}")
        counts = {word: sum(1 for fact in facts if fact.word is word) for word in Word}
        print(", ".join(f"{count} {word}" for word, count in counts.items()))
    return REFUSED if any(fact.word is Word.WRONG for fact in facts) else DONE


def _signers(args: argparse.Namespace) -> Signers | None:
    """Whose signatures count: what was named, else what is set."""
    from console.release.signing import signers_of

    own = settings.load().signing
    own = own._replace(allowed_signers=args.allowed_signers or own.allowed_signers, revoked=args.revoked or own.revoked)
    return signers_of(own)
