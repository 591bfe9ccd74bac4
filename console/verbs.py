"""Everything that an operator can do, once: keys, palette, key bar and help are all derived from this list.

A guard says in words why a verb cannot be used right now, or nothing when it can. It is asked whenever a verb is
about to run, by whatever way; and a session without a desk has no verb that writes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

from console.release.state import Attempt, Outcome
from console.snapshot import Snapshot


class Situation(NamedTuple):
    """What a guard looks at.

    Attributes:
        snapshot: The run.
        read_only_because: Why nothing can be written; empty where the session has a desk.
        target: Name of the attempt (or of what was judged without a job) that the cursor is on, empty for none.
        from_fleet: Whether the release was opened from the fleet.
    """

    snapshot: Snapshot
    read_only_because: str = ""
    target: str = ""
    from_fleet: bool = False

    @property
    def attempt(self) -> Attempt | None:
        """The attempt that the cursor is on."""
        return self.snapshot.run.attempt(self.target) if self.target else None


Guard = Callable[[Situation], str]


def _always(situation: Situation) -> str:
    return ""


def _desk(situation: Situation) -> str:
    return f"read-only: {situation.read_only_because}" if situation.read_only_because else ""


def _from_fleet(situation: Situation) -> str:
    return "" if situation.from_fleet else "the release was not opened from `gonogo fleet`"


def _open_run(situation: Situation) -> str:
    return _desk(situation) or ("the release is closed" if situation.snapshot.run.verdict is not None else "")


def _abort(situation: Situation) -> str:
    return _open_run(situation) or ("" if situation.snapshot.conductor is not None else "no conductor is running")


def _cancel(situation: Situation) -> str:
    if problem := _desk(situation):
        return problem
    attempt = situation.attempt
    if attempt is None or attempt.job_id is None:
        return "put the cursor on an attempt that has a job on the cluster"
    return f"job {attempt.job_id} has ended" if attempt.ended_at else ""


def _output(situation: Situation) -> str:
    attempt = situation.attempt
    return "" if attempt is not None and attempt.job_id else "put the cursor on an attempt that was submitted"


_FAILED = frozenset({Outcome.REJECTED, Outcome.REFUSED, Outcome.RESULT_MISSING, Outcome.NOT_SUBMITTED, Outcome.EXPIRED})


def _retry(situation: Situation) -> str:
    if problem := _open_run(situation):
        return problem
    stages = situation.snapshot.run.stages
    judged = any(gate.id == situation.target and not gate.passed for stage in stages for gate in stage.gates)
    attempt = situation.attempt
    if judged or (attempt is not None and attempt.outcome in _FAILED):
        return ""
    return "put the cursor on an attempt that failed or was rejected"


def _settle(situation: Situation) -> str:
    if problem := _open_run(situation):
        return problem
    attempt = situation.attempt
    unknown = attempt is not None and attempt.outcome is Outcome.UNKNOWN
    return "" if unknown else "put the cursor on an attempt whose submission has an unknown outcome"


class Verb(NamedTuple):
    """One thing to do.

    Attributes:
        id: Name; the handler is the method `do_<id>` of the screen or the app.
        keys: Textual key names, separated by commas; the first is the one that is shown.
        label: A word or two, for the key bar and the palette.
        help: One sentence.
        scopes: Where its keys work: "app" is everywhere but in dialogs, "list" in every list.
        guard: Says why it cannot be used now.
        bar: Whether the key bar shows it (0: no), and what stays longest where it is narrow (the highest).
        writes: Whether it changes the run.
        press: How the key is written, where that differs from its name.
    """

    id: str
    keys: str
    label: str
    help: str
    scopes: tuple[str, ...]
    guard: Guard = _always
    bar: int = 0
    writes: bool = False
    press: str = ""

    @property
    def key(self) -> str:
        """The key as it is shown."""
        return self.press or self.keys.split(",")[0]


AREAS = ("board", "jobs", "files", "log")
"""The four areas, in the order of their keys."""

_INNER = ("approval", "jobs", "files", "log", "plots", "output", "file", "help")
# Where `n` goes to the next place that was found, it writes no note.
_NOTES = ("board", "approval", "jobs", "files", "log", "plots")
_ATTEMPTS = ("board", "jobs")

VERBS: tuple[Verb, ...] = (
    Verb("board", "1", "board", "Show the release board.", ("app",)),
    Verb("jobs", "2", "jobs", "Show every attempt and its job on the cluster.", ("app",)),
    Verb("files", "3", "files", "Show the result files that are watched, and those that were read.", ("app",)),
    Verb("log", "4", "log", "Show the work log.", ("app",)),
    Verb("plots", "p", "plots", "Draw training, acceptance, throughput and speedup from the result files.",
         ("board", "jobs", "files", "log")),
    Verb("waiting", "w", "waiting", "Go to the jobs that wait for your OK; decides nothing.", ("app",), bar=2),
    Verb("approve", "a", "approve…", "Approve this job: opens the field for its code.", ("approval",), _open_run,
         bar=9, writes=True),
    Verb("reject", "r", "reject…", "Reject this job: opens the field for the reason.", ("approval",), _open_run,
         bar=9, writes=True),
    Verb("back", "escape", "back", "Go back to the board.", _INNER, bar=3, press="esc"),
    Verb("fleet", "escape", "fleet", "Go back to the list of all releases.", ("board",), _from_fleet, bar=3,
         press="esc"),
    Verb("reload", "R", "show again", "Show the job as it lies on disk now, from its beginning.", ("approval",),
         bar=2),
    Verb("uploads", "u", "files too", "Show the text of the files that travel with the job, or only their digests.",
         ("approval",), bar=2),
    Verb("filter", "slash", "filter", "Show only entries that have all words you type; stage:, actor:, kind: too.",
         ("log",), bar=6, press="/"),
    Verb("interventions", "i", "human only", "Show all entries, or HUMAN_INTERVENTION only.", ("log",), bar=6),
    Verb("follow", "f", "follow", "Follow what is new, or stay where you are.", ("log", "output"), bar=5),
    Verb("output", "o", "output", "Show the output of the job under the cursor as it grows.", _ATTEMPTS, _output,
         bar=4),
    Verb("search", "slash", "search", "Search; small letters find capitals too.", ("output",), bar=6, press="/"),
    Verb("found_next", "n", "next found", "Go to the next line that was found.", ("output",), bar=4),
    Verb("found_before", "N", "found before", "Go to the line before that was found.", ("output",)),
    Verb("stream", "e", "other stream", "Show standard error instead of standard output, or the other way round.",
         ("output",), bar=3),
    Verb("wrap", "z", "wrap", "Show long lines whole over several rows, or each line in one.", ("output",), bar=2),
    Verb("exact", "v", "every byte", "Show also what colours text or moves the cursor, or leave it out.", ("output",)),
    Verb("table", "v", "table/text", "Show the file as a table, or as the text that it is.", ("file",), bar=6),
    Verb("cancel", "c", "cancel…", "Cancel the job under the cursor on the cluster.", _ATTEMPTS, _cancel,
         bar=5, writes=True),
    Verb("retry", "r", "retry…", "Propose the failed attempt under the cursor again.", _ATTEMPTS, _retry,
         bar=5, writes=True),
    Verb("settle", "s", "settle…", "Rule by hand on a submission whose outcome is unknown.", _ATTEMPTS, _settle,
         writes=True),
    Verb("note", "n", "note…", "Write a note that changes the course into the log.", _NOTES, _desk,
         writes=True),
    Verb("abort", "A", "abort…", "Stop the run here; it can be resumed.", ("app",), _abort, writes=True),
    Verb("copy_line", "y", "copy line", "Copy the line under the cursor, whole, to the clipboard of your terminal.",
         ("app",)),
    Verb("copy_screen", "Y", "copy screen", "Copy what is on the screen to the clipboard of your terminal.", ("app",)),
    Verb("export", "x", "export", "Save what is on the screen as a picture (SVG) and as text.", ("app",)),
    Verb("help", "question_mark,f1", "help", "Explain this screen.", ("app",), bar=8, press="?"),
    Verb("palette", "colon,ctrl+p", "commands", "Find any of these by name.", ("app",), press=":"),
    Verb("theme", "t", "theme", "Change to the next theme.", ("app",)),
    Verb("quit", "q,ctrl+q", "quit", "Leave the console; a running conductor is stopped only after asking.", ("app",),
         bar=7),
    Verb("next", "tab", "next panel", "Move to the next panel.", ("app",)),
    Verb("previous", "shift+tab", "previous panel", "Move to the previous panel.", ("app",)),
    Verb("choose", "enter", "open", "Open what is under the cursor; a waiting job is shown, nothing else.", ("list",),
         bar=1),
    Verb("up", "up", "up", "One line up.", ("list",), press="↑"),
    Verb("down", "down", "down", "One line down.", ("list",), press="↓"),
    Verb("page_up", "pageup", "page up", "One page up.", ("list",), press="pgup"),
    Verb("page_down", "pagedown,space", "page down", "One page down.", ("list",), press="pgdn"),
    Verb("first", "home", "first", "To the beginning.", ("list",)),
    Verb("last", "end", "last", "To the end.", ("list",)),
)  # fmt: skip


def verb(verb_id: str) -> Verb:
    """A verb by its id.

    Raises:
        KeyError: When there is none.
    """
    return _BY_ID[verb_id]


_BY_ID = {item.id: item for item in VERBS}


def in_scopes(scopes: Iterable[str]) -> list[Verb]:
    """The verbs of some scopes, in the order of the list."""
    wanted = set(scopes)
    return [item for item in VERBS if wanted.intersection(item.scopes)]
