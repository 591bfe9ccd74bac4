"""`gonogo cluster trust`: show the key of a new host, and take it once its fingerprint was compared.

The fingerprint is typed, or given beforehand: a key is never taken by saying yes to what this very connection shows.
A changed or revoked key is refused before anybody is asked.
"""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Callable, Sequence

from backends.errors import NeedsOperator
from backends.hosts.operator import Answers, NewHostKey, Question
from console.commands.common import DONE, REFUSED, interactive, print_json
from console.release.clusters import Clusters
from console.safe_text import safe

Read = Callable[[], str]
Say = Callable[[str], None]


def trust(clusters: Clusters, name: str, args: argparse.Namespace) -> int:
    """Take the host keys that lead to a cluster, those of new jump hosts on the way included.

    Returns:
        0 when the cluster's key is known now, 1 when it was not taken.

    Raises:
        backends.errors.CouldNotAsk: When there was no answer; NeedsOperator for a changed or revoked key.
        console.release.errors.InputError: When the entry cannot be used.
    """
    read = _typed if interactive() and not args.json else None
    operator = AtTheTerminal(args.fingerprint or (), read, _silent if args.json else print)
    found = asyncio.run(_trust(clusters, name, operator))
    taken, known = (isinstance(found, NewHostKey), isinstance(found, str))
    fingerprint = found if isinstance(found, str) else f"{found.algorithm} {found.fingerprint}" if found else ""
    wrong = known and bool(args.fingerprint) and fingerprint.split()[-1] not in args.fingerprint
    if args.json:
        where = str(found.file) if isinstance(found, NewHostKey) else None
        shown = [f"{key.algorithm} {key.fingerprint}" for key in operator.refused]
        taken_words = "taken" if taken else "known" if known and not wrong else "refused"
        print_json(
            {"cluster": name, "answer": taken_words, "fingerprint": fingerprint, "file": where, "refused": shown}
        )
    elif taken:
        assert isinstance(found, NewHostKey)
        print(f"taken: appended to {safe(str(found.file))}")
    elif known:
        print(f"{'known with another key' if wrong else 'known'}: {safe(fingerprint)}")
    return REFUSED if found is None or wrong else DONE


async def _trust(clusters: Clusters, name: str, operator: AtTheTerminal) -> NewHostKey | str | None:
    """The key that was taken, the fingerprint of one that was known, or None for one that was refused."""
    from backends.hosts.host_keys import take
    from backends.hosts.login import look
    from backends.hosts.operator import UnknownHostKey
    from console.release import connecting

    cluster = clusters.cluster(name)
    if cluster.wake:
        await connecting.wake(cluster)
    target = await asyncio.to_thread(connecting.target_of, cluster)
    try:
        found = await look(target, operator=operator)
        if isinstance(found, NewHostKey):
            await take(UnknownHostKey("", "", found), operator)
    except NeedsOperator:
        if not operator.refused:
            raise
        return None
    return found


class AtTheTerminal:
    """An operator at a plain terminal, who compares fingerprints and answers nothing else.

    Args:
        given: Fingerprints that count as compared already.
        read: Reads a line; None where nobody can be asked.
        say: Prints a line.

    Attributes:
        refused: Keys that were not taken.
    """

    def __init__(self, given: Sequence[str], read: Read | None, say: Say) -> None:
        self._given = tuple(given)
        self._read = read
        self._say = say
        self.refused: list[NewHostKey] = []

    async def accepts(self, key: NewHostKey) -> bool:
        """Whether the fingerprint is one that was given, or is typed whole."""
        for line in describe(key):
            self._say(safe(line))
        if self._given:
            same = key.fingerprint in self._given
            self._say("it is the one that was given" if same else "REFUSED: it is not the one that was given")
        elif self._read is None:
            same = False
            self._say("not taken: nobody can be asked here; give it as --fingerprint once you have compared it")
        else:
            self._say("type the fingerprint that its administrators gave you (SHA256:...), or nothing to refuse:")
            typed = self._read().strip()
            same = typed == key.fingerprint
            self._say("it is the same" if same else "REFUSED: it is not the same" if typed else "not taken")
        if not same:
            self.refused.append(key)
        return same

    async def answers(self, question: Question) -> Answers | None:
        """Nothing: a jump host that asks is logged in to in the console."""
        return None

    async def logs_in_again(self, host: str, why: str) -> bool:
        """Never."""
        return False


def describe(key: NewHostKey) -> list[str]:
    """What must be seen of a new key before it is taken; foreign text, not yet safe for a screen."""
    return [
        f"new host {key.known_as} port {key.port} ({key.host})",
        f"  key          {key.algorithm}",
        f"  fingerprint  {key.fingerprint}",
        f"  looked in    {', '.join(map(str, key.looked_in))}",
        f"  written to   {key.file}",
        f"compare it with {key.compare_with}",
    ]


def _typed() -> str:
    try:
        return input("> ")
    except EOFError:
        return ""


def _silent(text: str) -> None:
    """Programs read one JSON text, and nothing beside it."""
