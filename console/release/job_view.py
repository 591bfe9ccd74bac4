"""One exact job as text: the only place that turns a job into what an operator reads before deciding.

The approval screen and `gonogo queue show` print the same lines. Every field of the job is in them, nothing is
shortened, and two different jobs never give the same lines. Foreign text is made safe here; the lines hold
printable characters only and may go to a screen as they are (with markup off).
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from console.safe_text import CLOSE, OPEN, decode, oddities, safe

if TYPE_CHECKING:
    from console.release.job import ExactJob
    from console.release.queue import Proposal

Lines = tuple[str, ...]
Section = tuple[str, Lines]
"""A title and the lines under it."""

FOLD_BLANKS = 4
"""A run of at least so many empty lines is shown as one line with their count: it must not push text out of sight."""

FOLD_SPACES = 40
"""A run of at least so many spaces inside a line is shown as one mark with their count, for the same reason."""

_SPACES = re.compile(rf" {{{FOLD_SPACES},}}| +$")
_DIFF_CELLS = 4_000_000
"""Above this product of changed lines before and after, they are listed whole instead of matched line by line."""

# Words of ours in the place of a value stand between marks that `safe` never lets through from a value.
_DEFAULT, _NONE, _EMPTY = (f"{OPEN}{words}{CLOSE}" for words in ("cluster's default", "none", "empty"))


@dataclass(frozen=True, slots=True)
class Background:
    """What the operator should know beside the job itself.

    Attributes:
        id: The proposal.
        proposer: Who asked for it.
        proposed_at: When, UTC.
        change: Why it is proposed again and what was changed, in the proposer's words.
        previous: The job to compare with, None where there is none.
        previous_id: Its proposal.
        terms: Who may decide on it and for how long, and who approved it already, in words.
        gpu_hours_before: GPU hours that the release's other submitted jobs asked for; None leaves it out.
    """

    id: str = ""
    proposer: str = ""
    proposed_at: str = ""
    change: str = ""
    previous: ExactJob | None = None
    previous_id: str = ""
    gpu_hours_before: float | None = None
    terms: Lines = ()


def job_sections(
    job: ExactJob, background: Background | None = None, uploads: Mapping[str, bytes] | None = None
) -> tuple[Section, ...]:
    """The whole job, in the order in which an operator reads it.

    Args:
        job: The job.
        background: Proposer, comparison and cost so far.
        uploads: Bytes of the files that travel with the job; when given, their text is shown too.
    """
    about = background or Background()
    if job.kind != "sbatch":
        return _policy_sections(job, about)
    sections = [
        ("Job", _what(job, about)),
        ("Attention", attention(job)),
        ("Who may decide, and until when", tuple(map(line_text, about.terms))),
        ("Different from the last approved job of this task", _differences(job, about)),
        ("Where it runs", _where(job)),
        ("Resources", _resources(job, about)),
        ("Command", ("sbatch", *(f"  {_value(option, _EMPTY)}" for option in job.sbatch_options()))),
        ("Environment", _pairs(job.environment, "=")),
        ("Files that travel with it", _uploads(job)),
        ("Result files that it writes", _pairs(job.results, " = ")),
        ("Rests on", _pairs(job.evidence, " = ")),
        (f"Script, over standard input ({_count_lines(job.script)})", numbered(job.script)),
    ]
    for name, data in sorted((uploads or {}).items()):
        text = decode(data)
        sections.append((f"File {line_text(name)} ({_count_lines(text)})", numbered(text)))
    sections.append(("What an OK covers", _identity(job)))
    return tuple((title, lines) for title, lines in sections if lines)


def _policy_sections(job: ExactJob, about: Background) -> tuple[Section, ...]:
    """A policy in words and word for word; what is none in its exact form is shown as that, and covers nothing."""
    from console.release.policy import of_job

    found = of_job(job)
    no = "this is NOT a policy in its exact form; it covers nothing, whoever approves it"
    words = (no, line_text(repr(job))) if found is None else tuple(map(line_text, found.words()))
    sections = [
        ("Policy", _what(job, about)),
        ("Attention", attention(job)),
        ("Who may decide, and until when", tuple(map(line_text, about.terms))),
        ("What is approved with it", words),
        (f"The policy, word for word ({_count_lines(job.script)})", numbered(job.script)),
        ("What an OK covers", _identity(job)),
    ]
    return tuple((title, lines) for title, lines in sections if lines)


def job_text(sections: Sequence[Section]) -> str:
    """Sections as plain text, each title over its indented lines."""
    return "\n\n".join("\n".join((title, *(f"  {line}" for line in lines))) for title, lines in sections)


def line_text(text: str) -> str:
    """One line of foreign text for deciding on: safe, with spaces that cannot be seen or counted made visible.

    Spaces at the end and long runs of spaces become a mark with their number. Different for different inputs.
    """
    return _SPACES.sub(lambda run: f"{OPEN}SP×{len(run[0])}{CLOSE}", safe(text))


def numbered(text: str) -> Lines:
    """Text with line numbers; long runs of empty lines are folded into one line that says how many they are.

    A text without a newline at its end gets a last line that says so.
    """
    lines = text.split("\n")
    closed = lines[-1] == ""
    if closed:
        lines.pop()
    width = len(str(len(lines)))
    shown: list[str] = []
    position = 0
    while position < len(lines):
        end = position
        while end < len(lines) and lines[end] == "":
            end += 1
        if end - position >= FOLD_BLANKS:
            shown.append(f"{position + 1}-{end} {OPEN}{end - position} empty lines{CLOSE}")
            position = end
            continue
        shown.append(f"{position + 1:>{width}} {line_text(lines[position])}".rstrip())
        position += 1
    if text and not closed:
        shown.append("(no newline at the end)")
    return tuple(shown)


def attention(job: ExactJob) -> Lines:
    """What may not be what it looks like: characters that are shown by name, and others that are not ASCII.

    Returns:
        Lines for a banner; empty when the whole job is plain ASCII.
    """
    record = job.model_dump(mode="json")
    texts = {
        "script": record.pop("script"),
        "environment": "\n".join(_leaves(record.pop("environment"))),
        "other fields": "\n".join(_leaves(record)),
    }
    lines = []
    mark = f"{OPEN}NAME{CLOSE}"
    for place, text in texts.items():
        hidden, foreign = oddities(text)
        where = f" (lines {_odd_lines(text)})" if place == "script" and (hidden or foreign) else ""
        if hidden:
            lines.append(f"{place}: {_plural(hidden, 'character')} that cannot be seen, shown as {mark}{where}")
        if foreign:
            lines.append(f"{place}: {_plural(foreign, 'character')} outside ASCII, which may look like others{where}")
    return tuple(lines)


def _leaves(value: Any) -> Iterator[str]:
    """Every text in a JSON value."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list | dict):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _leaves(item)


def _odd_lines(text: str) -> str:
    return ", ".join(str(number) for number, line in enumerate(text.split("\n"), 1) if any(oddities(line)))


def changed_lines(before: Sequence[str], after: Sequence[str], keys: tuple[Sequence[str], Sequence[str]]) -> Lines:
    """Two versions of one text as removed and added lines, with their numbers in each version.

    Unchanged lines are left out here: the whole new text stands elsewhere.

    Args:
        before: Printable lines of the old version.
        after: Printable lines of the new version.
        keys: What decides whether two lines are the same, for each line of both versions.
    """
    shown: list[str] = []
    for old_lines, new_lines in _changed_ranges(*keys):
        shown += [f"- {number + 1} {before[number]}".rstrip() for number in old_lines]
        shown += [f"+ {number + 1} {after[number]}".rstrip() for number in new_lines]
    return tuple(shown)


def _changed_ranges(old: Sequence[str], new: Sequence[str]) -> Iterator[tuple[range, range]]:
    shorter = min(len(old), len(new))
    start = next((index for index in range(shorter) if old[index] != new[index]), shorter)
    same_end = next((index for index in range(shorter - start) if old[-1 - index] != new[-1 - index]), shorter - start)
    old_end, new_end = len(old) - same_end, len(new) - same_end
    if (old_end - start) * (new_end - start) > _DIFF_CELLS:
        yield range(start, old_end), range(start, new_end)
        return
    matcher = difflib.SequenceMatcher(None, old[start:old_end], new[start:new_end], autojunk=False)
    for tag, old_from, old_to, new_from, new_to in matcher.get_opcodes():
        if tag != "equal":
            yield range(start + old_from, start + old_to), range(start + new_from, start + new_to)


def _what(job: ExactJob, about: Background) -> Lines:
    rows = [
        ("does", line_text(job.summary)),
        ("release", job.run_id),
        ("stage", job.stage),
        ("task", f"{job.task}, attempt {job.attempt}"),
        ("kind", job.kind),
    ]
    asked = " at ".join(part for part in (about.proposer, about.proposed_at) if part)
    more = [("proposal", about.id), ("proposed by", asked), ("why again", about.change)]
    return _table([*rows, *((name, line_text(value)) for name, value in more if value)])


def _differences(job: ExactJob, about: Background) -> Lines:
    from console.release.job import RISKY, changes

    if about.previous is None:
        return ("no job of this task was approved before: all of it is new",)
    rows = changes(about.previous, job)
    against = f"compared with {line_text(about.previous_id)}" if about.previous_id else "compared with the last one"
    if not rows:
        return (f"{against}: nothing but attempt, token and the names made from them",)
    lines = [f"{against}: {', '.join(name for name, _, _ in rows)}"]
    for name, before, after in rows:
        risk = "RISK " if name in RISKY else ""
        if name in _LISTS:
            lines += [f"{risk}{name}:", *_changed_list(name, about.previous, job)]
        else:
            lines.append(f"{risk}{name}: {_value(before, _NONE)} -> {_value(after, _NONE)}")
    return tuple(lines)


def _changed_list(name: str, before: ExactJob, after: ExactJob) -> Lines:
    """What changed in a field of many lines; lines that differ by token or attempt number alone count as same."""
    from console.release.job import neutral

    old, new = (_LISTS[name](job) for job in (before, after))
    keys = ([neutral(line, before) for line in old], [neutral(line, after) for line in new])
    return tuple(f"  {line}" for line in changed_lines(old, new, keys))


def _where(job: ExactJob) -> Lines:
    return _table(
        [
            ("cluster", line_text(job.cluster)),
            ("user", line_text(job.user)),
            ("host", line_text(job.host)),
            ("port", str(job.port)),
            ("partition", _value(job.partition)),
            ("account", _value(job.account)),
            ("QOS", _value(job.qos)),
            ("image", _value(job.image, _NONE)),
            ("folder", line_text(job.job_dir)),
            ("claim", line_text(job.claim_dir)),
        ]
    )


def _resources(job: ExactJob, about: Background) -> Lines:
    hours = f"{job.gpu_hours:.2f} GPU hours asked for"
    if about.gpu_hours_before is not None:
        hours += f", on top of {about.gpu_hours_before:.2f} that other jobs of this release asked for"
    return _table(
        [
            ("nodes", str(job.nodes)),
            ("GPUs", f"{job.gpus_per_node} on each node, {job.gpus} in all"),
            ("CPUs a task", str(job.cpus_per_task) if job.cpus_per_task else _DEFAULT),
            ("memory", _value(job.mem)),
            ("time limit", job.time),
            ("cost", hours),
        ]
    )


def _uploads(job: ExactJob) -> Lines:
    lines = tuple(f"{ref.name}: {ref.size} bytes, mode {ref.mode:o}, SHA-256 {ref.sha256}" for ref in job.uploads)
    return lines or (_NONE,)


def _identity(job: ExactJob) -> Lines:
    return _table(
        [
            ("digest", job.digest),
            ("code", job.code),
            ("token", job.token),
            ("job name", job.job_name),
            ("schema", str(job.schema_version)),
        ]
    )


_LISTS: Mapping[str, Callable[[ExactJob], Lines]] = {
    "environment": lambda job: _pairs(job.environment, "="),
    "extra_options": lambda job: tuple(map(line_text, job.extra_options)),
    "options": lambda job: tuple(map(line_text, job.options)),
    "arguments": lambda job: tuple(map(line_text, job.arguments)),
    "uploads": _uploads,
    "results": lambda job: _pairs(job.results, " = "),
    "evidence": lambda job: _pairs(job.evidence, " = "),
    "script": lambda job: tuple(map(line_text, job.script.split("\n"))),
}
"""Fields that are compared line by line, and their lines."""


def _pairs(pairs: Sequence[tuple[str, str]], between: str) -> Lines:
    """Names and values; an equals sign in a name is marked, so that the first plain one ends the name."""
    lines = ((line_text(name).replace("=", f"{OPEN}={CLOSE}"), line_text(value)) for name, value in pairs)
    return tuple(f"{name}{between}{value}".rstrip() for name, value in lines) or (_NONE,)


def _value(text: str, empty: str = _DEFAULT) -> str:
    return line_text(text) if text else empty


def _table(rows: Sequence[tuple[str, str]]) -> Lines:
    """Names and values that are printable already, in two columns."""
    width = max(len(name) for name, _ in rows)
    return tuple(f"{name:<{width}}  {value}".rstrip() for name, value in rows)


def _count_lines(text: str) -> str:
    return _plural(text.count("\n") + (not text.endswith("\n") and bool(text)), "line")


def _plural(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"


def previous_approved(run_dir: Path, proposal: Proposal) -> tuple[str, ExactJob] | None:
    """The newest job of the same task that was approved before this proposal, from the queue's files.

    A job whose bytes are no longer those that were approved is passed over.

    Returns:
        Proposal id and job; None when there is none.

    Raises:
        console.release.job.JobError: When the proposal's own job is not one.
    """
    from console.release import queue
    from console.release.job import JobError

    job = proposal.job()
    found: tuple[str, ExactJob] | None = None
    for name in queue.ids(run_dir):
        if name == proposal.id:
            break
        try:
            other = queue.load(run_dir, name)
            decision = queue.decision_of(other)
            if decision is None or decision.decision != queue.APPROVED or decision.digest != other.digest:
                continue
            earlier = other.job()
        except (queue.QueueError, JobError):
            continue
        if (earlier.stage, earlier.task) == (job.stage, job.task):
            found = (name, earlier)
    return found
