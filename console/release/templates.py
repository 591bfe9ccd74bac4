"""Templates of job scripts: where their placeholders stand, and filling them in.

A placeholder is a name between two at signs: `@TARGET_PATH@`. What is filled into a script is quoted for the
shell, and quoting protects only in a plain place: inside quotes of the template's own, inside a here-document,
in arithmetic or directly after `$` or a backslash the very same characters would be taken apart again, and a
path could become a command. So a template with a placeholder in such a place is refused, and so is one whose
quoting cannot be followed. Where a command line must be handed on as one word, export the values and use the
variables. No check can help where a command takes its arguments apart by itself: never hand values to eval or let.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

PLACEHOLDER = re.compile(r"@([A-Za-z][A-Za-z0-9_]*)@")

_HEREDOC = re.compile(r"<<(-?)[ \t]*(?:'([^'\n]+)'|\"([^\"\n]+)\"|(\\?)([A-Za-z_]\w*))(?![^\s;&|<>()])")
_INTRICATE = re.compile(r"\$\(|\$\[|`|\$\{(?![A-Za-z_]\w*\})")
_SUBSCRIPT = re.compile(r"[A-Za-z_]\w*\[[^\]\s]*\Z")
_WORD_START = frozenset(" \t\n;&|()")

# What a place can be inside of; only in the last two does quoting protect.
_DOUBLE, _BRACE, _ARITHMETIC = "double quotes", "${...}", "((...))"
_SUBSTITUTION, _PAREN = "$(...)", "(...)"
_PLAIN = frozenset({_SUBSTITUTION, _PAREN})


@dataclass(frozen=True, slots=True)
class Fault:
    """Why a template cannot be used.

    Attributes:
        line: Where, from 1.
        what: What stands there, in a few words.
        advice: What to do instead.
    """

    line: int
    what: str
    advice: str


def names(template: str) -> list[tuple[str, int]]:
    """Every placeholder's name with its line, from 1."""
    return [(found.group(1), line_of(template, found.start())) for found in PLACEHOLDER.finditer(template)]


def fill(template: str, value: Callable[[str], str]) -> str:
    """Replace every placeholder by its value, in one pass: what a value holds is never looked at again."""
    return PLACEHOLDER.sub(lambda found: value(found.group(1)), template)


def line_of(text: str, position: int) -> int:
    """The line of a position, from 1."""
    return text.count("\n", 0, position) + 1


def faults(template: str) -> list[Fault]:
    """Places of a shell template in which a filled-in value would not be protected by its quotes."""
    return _Scanner(template).scan()


class _Scanner:
    """Follows the quoting of a shell script from left to right, as far as placeholders need it."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._in_word = 0
        self._inside: list[tuple[str, int]] = []
        self._heredocs: list[_Heredoc] = []
        self._faults: list[Fault] = []

    def scan(self) -> list[Fault]:
        """All faults, in the order of the text."""
        while self._at < len(self._text):
            self._step()
        for kind, position in self._inside:
            if kind != _PAREN:
                self._fault(position, f"an opening of {kind} that is never closed", "close it")
        return self._faults

    def _fault(self, position: int, what: str, advice: str) -> None:
        self._faults.append(Fault(line_of(self._text, position), what, advice))

    @property
    def _top(self) -> str:
        return self._inside[-1][0] if self._inside else ""

    @property
    def _plain(self) -> bool:
        return not self._inside or self._top in _PLAIN

    def _step(self) -> None:
        character = self._text[self._at]
        if character == "@" and self._placeholder():
            return
        if character == "\\":
            self._backslash()
        elif character == "`":
            self._fault(self._at, "a backquote", "write $(...) instead, or put it in single quotes")
            self._at += 1
        elif character == "$":
            self._dollar()
        elif character == '"':
            self._toggle_double()
        elif self._top == _BRACE and character == "}":
            self._leave()
        elif self._top == _ARITHMETIC and character in "()":
            self._parenthesis(character)
        elif character == "'" and self._top == _BRACE and all(kind != _DOUBLE for kind, _ in self._inside):
            self._single(re.compile(r"[^']*'"), 1)
        elif self._plain:
            self._plain_step(character)
        else:
            self._at += 1

    def _placeholder(self) -> bool:
        found = PLACEHOLDER.match(self._text, self._at)
        if found is None:
            return False
        around = next((kind for kind, _ in self._inside if kind not in _PLAIN), "")
        before = self._text[self._at - 1] if self._at else ""
        if around:
            self._misplaced(found, f"inside {around}")
        elif before == "$":
            self._misplaced(found, "directly after $")
        elif _SUBSCRIPT.search(self._text[max(0, self._at - 200) : self._at]):
            self._misplaced(found, "inside a subscript")
        self._at = found.end()
        return True

    def _misplaced(self, found: re.Match[str], where: str) -> None:
        advice = "values are quoted already: put it outside, or export a variable with it and use that"
        self._fault(found.start(), f"@{found.group(1)}@ {where}", advice)

    def _backslash(self) -> None:
        found = PLACEHOLDER.match(self._text, self._at + 1)
        if found is not None:
            self._misplaced(found, "directly after a backslash")
            self._at = found.end()
        else:
            self._at += 2
            self._in_word = self._at

    def _dollar(self) -> None:
        following = self._text[self._at + 1 : self._at + 2]
        if self._text.startswith("$((", self._at):
            self._enter(_ARITHMETIC, 2)
            self._enter(_ARITHMETIC, 1)
        elif following == "(":
            self._enter(_SUBSTITUTION, 2)
        elif following == "[":
            self._fault(self._at, "$[...]", "write $((...)) instead")
            self._at += 2
        elif following == "{":
            self._enter(_BRACE, 2)
        elif following == "'" and self._plain:
            self._single(re.compile(r"(?:[^'\\]|\\.)*'", re.DOTALL), 2)
        else:
            self._at += 1

    def _toggle_double(self) -> None:
        if self._top == _DOUBLE:
            self._leave()
        else:
            self._enter(_DOUBLE, 1)

    def _enter(self, kind: str, length: int) -> None:
        self._inside.append((kind, self._at))
        self._at += length

    def _leave(self) -> None:
        _, position = self._inside.pop()
        self._at += 1
        if self._text[position] == "$":
            self._in_word = self._at

    def _plain_step(self, character: str) -> None:
        if character == "'":
            self._single(re.compile(r"[^']*'"), 1)
        elif character == "(" or (character == ")" and self._inside):
            self._parenthesis(character)
        elif character == "#" and self._at_word_start:
            self._comment()
        elif character == "<":
            self._less()
        elif character == "\n" and self._heredocs:
            self._skip_heredocs()
        else:
            self._word(character)

    @property
    def _at_word_start(self) -> bool:
        if self._at == 0:
            return True
        # What follows an escaped blank or an expansion belongs to the same word.
        return self._text[self._at - 1] in _WORD_START and self._at != self._in_word

    def _parenthesis(self, character: str) -> None:
        if character == ")":
            self._leave()
        elif self._top == _ARITHMETIC:
            self._enter(_ARITHMETIC, 1)
        elif self._text.startswith("((", self._at):
            self._enter(_ARITHMETIC, 1)
            self._enter(_ARITHMETIC, 1)
        else:
            self._enter(_PAREN, 1)

    def _word(self, character: str) -> None:
        """Step over a character; `case` in a substitution has parentheses that cannot be told from its end."""
        if character == "c" and self._inside and re.compile(r"\bcase\b").match(self._text, self._at):
            self._fault(self._at, "case inside parentheses", "write it outside of $(...) and (...)")
        self._at += 1

    def _single(self, rest: re.Pattern[str], opening: int) -> None:
        """Step over single quotes; placeholders in them are misplaced."""
        end = rest.match(self._text, self._at + opening)
        stop = len(self._text) if end is None else end.end()
        if end is None:
            self._fault(self._at, "an opening single quote that is never closed", "close it")
        for found in PLACEHOLDER.finditer(self._text, self._at, stop):
            self._misplaced(found, "inside single quotes")
        self._at = stop

    def _comment(self) -> None:
        """Step over a comment up to its line end. Values have no line ends, so none can leave a comment."""
        end = self._text.find("\n", self._at)
        self._at = len(self._text) if end < 0 else end

    def _less(self) -> None:
        if self._text.startswith("<<<", self._at):
            self._at += 3
            return
        if not self._text.startswith("<<", self._at):
            self._at += 1
            return
        found = _HEREDOC.match(self._text, self._at)
        if found is None:
            self._fault(self._at, "a here-document without a plain word that ends it", "write <<EOF or <<'EOF'")
            self._at += 2
            return
        dash, single, double, backslash, bare = found.groups()
        self._heredocs.append(_Heredoc(single or double or bare, bool(dash), bare is not None and not backslash))
        self._at = found.end()

    def _skip_heredocs(self) -> None:
        """Step over the bodies that begin after this line end."""
        self._at += 1
        for heredoc in self._heredocs:
            start = self._at
            end = heredoc.end(self._text, start)
            if end is None:
                self._fault(start - 1, f"a here-document that {heredoc.delimiter} never ends", "end it")
            self._at = len(self._text) if end is None else end
            odd = _INTRICATE.search(self._text, start, self._at) if heredoc.expanded else None
            if odd is not None:
                advice = "put it in a variable first, or quote the delimiter"
                self._fault(odd.start(), f"{odd.group()} inside a here-document", advice)
            for found in PLACEHOLDER.finditer(self._text, start, self._at):
                self._misplaced(found, "inside a here-document")
        self._heredocs.clear()


@dataclass(frozen=True, slots=True)
class _Heredoc:
    """A here-document whose body is still to come.

    Attributes:
        delimiter: The line that ends it.
        indented: Tabs before that line are allowed (`<<-`).
        expanded: The delimiter is not quoted, so a backslash at a line's end joins it with the next.
    """

    delimiter: str
    indented: bool
    expanded: bool

    def end(self, text: str, position: int) -> int | None:
        """Where the body that begins at a position ends: behind its delimiter; None where there is none."""
        joined = False
        while position <= len(text):
            stop = text.find("\n", position)
            stop = len(text) if stop < 0 else stop
            line = text[position:stop]
            if not joined and (line.lstrip("\t") if self.indented else line) == self.delimiter:
                return stop
            joined = self.expanded and (len(line) - len(line.rstrip("\\"))) % 2 == 1
            position = stop + 1
        return None
