"""A job's output as lines, from bytes that come in any slices: bounded, and nothing is left out without a count.

A line ends at a newline only, so a character or an escape sequence that was split between two reads is whole again in
its line. A progress bar writes a carriage return and the next state over the last one: what counts is the last state,
and how many were written over. Nothing here decodes, and nothing is made safe for a screen: that is the screen's work.
"""

from __future__ import annotations

from typing import NamedTuple

LONGEST_BYTES = 4000
"""So much of a line is kept; its whole length is known beside it."""

KEEP_LINES, KEEP_BYTES = 50_000, 16 * 2**20
"""So many lines, and so many bytes of them, are kept; the oldest are dropped first, and counted."""


class OutputLine(NamedTuple):
    """One line, or a place where something is missing.

    Attributes:
        data: The last state of the line, cut to the longest that is kept.
        length: Bytes of that state before it was cut.
        folded: How many states were written over by a carriage return.
        torn: Whether its beginning was not read.
        open: Whether it goes on: no newline yet.
        gap: What is missing here, in words; empty for a line.
    """

    data: bytes = b""
    length: int = 0
    folded: int = 0
    torn: bool = False
    open: bool = False
    gap: str = ""

    @property
    def cut(self) -> int:
        """Bytes that were cut off."""
        return 0 if self.gap else self.length - len(self.data)


class Fold:
    """Lines of one output. Each has a number that it keeps, also when lines before it are dropped.

    Args:
        longest: Most bytes kept of a line.
        keep_lines: Most lines kept.
        keep_bytes: Most bytes kept over all lines.

    Attributes:
        first: Number of the first line that is still there: so many were dropped.
        bytes_seen: Bytes fed so far.
    """

    def __init__(
        self, *, longest: int = LONGEST_BYTES, keep_lines: int = KEEP_LINES, keep_bytes: int = KEEP_BYTES
    ) -> None:
        self._longest = longest
        self._keep_lines, self._keep_bytes = keep_lines, keep_bytes
        self._lines: list[OutputLine] = []
        self._held = 0
        self.first = 0
        self.bytes_seen = 0
        self._begin(torn=False)

    def _begin(self, *, torn: bool) -> None:
        self._buffer = bytearray()
        self._length = self._folded = 0
        self._returned = False
        self._torn = torn

    @property
    def end(self) -> int:
        """Number of the line after the last one."""
        return self.first + len(self._lines) + self._has_open

    @property
    def _has_open(self) -> bool:
        return self._length > 0 or self._folded > 0

    def line(self, number: int) -> OutputLine:
        """The line of a number.

        Raises:
            IndexError: When it was dropped, or is not there yet.
        """
        index = number - self.first
        if index == len(self._lines) and self._has_open:
            return self._line(open=True)
        if index < 0:
            raise IndexError(number)
        return self._lines[index]

    def feed(self, data: bytes) -> None:
        """Take the next bytes."""
        self.bytes_seen += len(data)
        for index, piece in enumerate(data.split(b"\n")):
            if index:
                self._end()
            if not piece:
                continue
            if self._returned or b"\r" in piece:
                self._overwrite(piece)
            else:
                self._add(piece)

    def gap(self, words: str) -> None:
        """Note that something is missing before what comes next: the line before it goes on nowhere.

        Args:
            words: What is missing.
        """
        if self._has_open:
            self._append(self._line(open=True))
        self._append(OutputLine(gap=words))
        self._begin(torn=False)

    def begin_torn(self) -> None:
        """Note that the next bytes may begin in the middle of a line."""
        self._torn = True

    def _overwrite(self, piece: bytes) -> None:
        for index, state in enumerate(piece.split(b"\r")):
            # The return itself writes nothing: "\r\n" ends a line, and only what comes after it writes over.
            self._returned = self._returned or index > 0
            if not state:
                continue
            if self._returned:
                self._folded += self._length > 0
                self._buffer.clear()
                self._length, self._returned, self._torn = 0, False, False
            self._add(state)

    def _add(self, state: bytes) -> None:
        room = self._longest - len(self._buffer)
        if room > 0:
            self._buffer += state[:room]
        self._length += len(state)

    def _line(self, *, open: bool) -> OutputLine:
        data = bytes(self._buffer)
        if self._length > len(data):
            data = _whole_characters(data)
        return OutputLine(data, self._length, self._folded, self._torn, open)

    def _end(self) -> None:
        self._append(self._line(open=False))
        self._begin(torn=False)

    def _append(self, line: OutputLine) -> None:
        self._lines.append(line)
        self._held += len(line.data)
        # Dropped by the tenth, so that it costs next to nothing for each line; and line by line the same, however
        # the bytes were sliced.
        while len(self._lines) > self._keep_lines or self._held > self._keep_bytes:
            count = max(1, len(self._lines) // 10)
            self._held -= sum(len(gone.data) for gone in self._lines[:count])
            del self._lines[:count]
            self.first += count


def _whole_characters(data: bytes) -> bytes:
    """Bytes without the beginning of a UTF-8 character at their end, which a cut has left there."""
    for back in range(1, min(4, len(data)) + 1):
        byte = data[-back]
        if byte & 0b1100_0000 == 0b1000_0000:
            continue
        needs = 1 + (byte >= 0xC0) + (byte >= 0xE0) + (byte >= 0xF0)
        return data[:-back] if needs > back else data
    return data
