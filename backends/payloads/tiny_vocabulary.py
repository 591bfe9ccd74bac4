"""The words of the tiny target: 512 tokens, enough to write any text.

Four special tokens, one for each byte, and 252 words of two syllables. The words come in phrases, words with the same
first syllable; the tiny target tends to go through a phrase in order and jumps to another word when its context says
so. That is the structure which a drafter can learn.
"""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Dict, List, Sequence

if TYPE_CHECKING:
    from backends.payloads.results import write_by_rename
else:
    from results import write_by_rename

PAD, BOS, EOS, MASK = range(4)
SPECIAL = ("<pad>", "<bos>", "<eos>", "<mask>")
FIRST_BYTE = len(SPECIAL)
FIRST_WORD = FIRST_BYTE + 256
FILE = "vocab.json"

_FIRST_SYLLABLES = ("ba", "de", "fi", "go", "ku", "la", "me", "ni", "po", "ru", "sa")
_SECOND_SYLLABLES = (
    "bi", "do", "fa", "ge", "ha", "je", "ki", "lo", "mu", "na", "pe", "ri",
    "so", "tu", "va", "we", "xi", "yo", "za", "bro", "dra", "kle", "sti",
)  # fmt: skip
PHRASE_LENGTH = len(_SECOND_SYLLABLES)


def phrases() -> List[List[int]]:
    """Token ids of the phrases, in order: 11 of 23 tokens; the end-of-text token has the first place in the first."""
    ids = iter(range(FIRST_WORD, FIRST_WORD + len(_FIRST_SYLLABLES) * PHRASE_LENGTH - 1))
    made = [[0] * PHRASE_LENGTH for _ in _FIRST_SYLLABLES]
    for number, phrase in enumerate(made):
        for place in range(PHRASE_LENGTH):
            phrase[place] = EOS if number == place == 0 else next(ids)
    return made


def all_tokens() -> List[str]:
    """Every token in the order of its id."""
    bytes_ = [f"<0x{value:02X}>" for value in range(256)]
    words = [first + second for first in _FIRST_SYLLABLES for second in _SECOND_SYLLABLES]
    return [*SPECIAL, *bytes_, *words[1:]]


class Vocabulary:
    """Tokens and their ids.

    Attributes:
        tokens: Every token in the order of its id.
    """

    def __init__(self, tokens: Sequence[str]) -> None:
        self.tokens = list(tokens)
        self._words: Dict[str, int] = {token: i for i, token in enumerate(tokens) if i >= FIRST_WORD}

    def encode(self, text: str) -> List[int]:
        """Token ids of a text, behind a begin-of-text token; what is no word is spelled in bytes."""
        ids = [BOS]
        for piece in text.split():
            word = self._words.get(piece)
            ids += [FIRST_BYTE + value for value in piece.encode("utf-8")] if word is None else [word]
        return ids

    def decode(self, ids: Sequence[int]) -> str:
        """Text of token ids: words with blanks between, bytes as they are, special tokens left out."""
        out = bytearray()
        for token in ids:
            if token >= FIRST_WORD:
                out += (b" " if out else b"") + self.tokens[token].encode("ascii")
            elif token >= FIRST_BYTE:
                out.append(token - FIRST_BYTE)
        return out.decode("utf-8", "replace")

    def save(self, folder: str) -> None:
        """Write `vocab.json`, a mapping from tokens to ids.

        Raises:
            OSError: When it cannot be written.
        """
        text = json.dumps({token: i for i, token in enumerate(self.tokens)}, indent=0)
        write_by_rename(os.path.join(folder, FILE), text.encode("ascii") + b"\n")

    @classmethod
    def load(cls, folder: str) -> Vocabulary:
        """Read `vocab.json`.

        Raises:
            OSError: When it cannot be read.
            ValueError: When it is not a mapping from tokens to the ids 0, 1, 2...
        """
        with open(os.path.join(folder, FILE), encoding="utf-8") as stream:
            ids: Dict[str, int] = json.load(stream)
        if sorted(ids.values()) != list(range(len(ids))):
            raise ValueError(f"{folder}/{FILE}: ids are not 0 to {len(ids) - 1}")
        return cls(sorted(ids, key=ids.__getitem__))
