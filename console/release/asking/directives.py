"""The options that a batch script asks for itself, read as sbatch reads them.

Black-box runs of sbatch 22.05 are what this follows: `#SLURM` counts like `#SBATCH`; the words of all such lines are
one command line; a backslash takes the next character as it is, inside quotes of either kind too; a `#` outside
quotes ends the line, in the middle of a word as well; `#PBS` and `#BSUB` lines count unless --ignore-pbs is given.
"""

from __future__ import annotations

from console.release.asking.sbatch_line import Line, Option, read_line, refuse

_MAGIC = ("#SBATCH", "#SLURM")
_FOREIGN = ("#PBS", "#BSUB")
_SPACE = " \t\n\v\f\r"


def directives(script: str, *, ignore_pbs: bool = False) -> tuple[Option, ...]:
    """Options of a script's `#SBATCH` lines, which end at its first command.

    Args:
        script: The whole script.
        ignore_pbs: Whether the command line has --ignore-pbs.

    Raises:
        console.release.errors.InputError: Naming the option, or the line, that cannot be read or represented.
    """
    words: list[str] = []
    foreign = ""
    for number, line in enumerate(script.split("\n"), 1):
        where = f"script, line {number}"
        magic = next((word for word in _MAGIC if line.startswith(word)), None)
        if magic is not None:
            words += _words(line.removeprefix(magic), where)
        elif line.startswith(_FOREIGN):
            foreign = foreign or where
        elif line.strip(_SPACE) and not line.lstrip(_SPACE).startswith("#"):
            break
    found = read_line(words)
    if found.words:
        advice = "a heterogeneous job is several jobs" if found.words[0] in ("hetjob", "packjob") else ""
        raise refuse("#SBATCH lines", "options only", repr(found.words[0]), advice)
    if foreign and not ignore_pbs and not found.has("ignore-pbs"):
        raise refuse(foreign, "#SBATCH lines", "a #PBS or #BSUB line", "rewrite it, or add --ignore-pbs")
    return found.options


def effective(script: str, line: Line) -> Line:
    """What script and command line ask for together; of one option the last counts, so the command line wins.

    Raises:
        console.release.errors.InputError: As `directives`.
    """
    own = directives(script, ignore_pbs=line.has("ignore-pbs"))
    return Line((*own, *line.options), line.words)


def _words(text: str, where: str) -> list[str]:
    """The words of one such line."""
    words: list[str] = []
    rest = text.lstrip(_SPACE)
    while rest and rest[0] != "#":
        if rest[0] == ":":
            raise refuse(where, "one job", "several, divided by `:`", "a heterogeneous job is several jobs")
        word, rest = _word(rest, where)
        words.append(word)
        rest = rest.lstrip(_SPACE)
    return words


def _word(text: str, where: str) -> tuple[str, str]:
    """The first word, and what follows it."""
    word, quote = "", ""
    at = 0
    while at < len(text):
        letter = text[at]
        if letter == "\\":
            following = text[at + 1 : at + 2]
            if not following or (following in _SPACE and not quote):
                raise refuse(where, "a backslash before a letter", repr(text[at : at + 2]), "use quotes")
            word += following
            at += 1
        elif quote:
            if letter == quote:
                quote = ""
            else:
                word += letter
        elif letter in "'\"":
            quote = letter
        elif letter in _SPACE or letter == "#":
            break
        else:
            word += letter
        at += 1
    if quote:
        raise refuse(where, f"a second {quote}", "one only")
    return word, text[at:]
