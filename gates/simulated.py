"""Settings by which an engine only pretends to accept draft tokens, wherever a file repeats the engine's settings.

vLLM: `rejection_sample_method` "synthetic" and `synthetic_acceptance_length` in the speculative configuration. ATOM:
`--spec-decode-acceptance-length` and `-rate`. llama.cpp: `--spec-synth-len` and `-rates`. SGLang: environment variables
that begin with `SGLANG_SIMULATE_ACC`. They are made for throughput tests; a number that was measured with one of them
says nothing of a drafter.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from gates.reading import step

_OFF: Final = (None, False, 0, "", "0", "-1", -1, "none", "None", "null")
_LONGEST: Final = 20_000
_TEXT: Final = re.compile(
    r"rejection[_-]sample[_-]method\W{1,8}synthetic|synthetic[_-]acceptance[_-](?:length|rate)\W{1,8}[0-9]"
    r"|--spec-decode-acceptance-(?:length|rate)\b|--spec-synth-(?:len|rates)\b|SGLANG_SIMULATE_ACC_LEN\W{1,8}[0-9]",
    re.IGNORECASE,
)
_ANSWERS: Final = frozenset({"generated_texts", "errors"})
"""Lists of what a model or a server said; they are no settings."""


def simulated_settings(values: Mapping[str, Any], path: str = "") -> Iterator[str]:
    """Paths of the settings that simulate acceptance, however deep they are.

    Args:
        values: An object of a file that was read.
        path: Where it is in the file.
    """
    waiting: list[tuple[str, str, Any]] = [(step(path, key), key, value) for key, value in values.items()]
    while waiting:
        place, key, value = waiting.pop()
        if key in _ANSWERS:
            continue
        if _simulates(key, value):
            yield place
        elif isinstance(value, dict):
            waiting += ((step(place, inner), inner, item) for inner, item in value.items())
        elif isinstance(value, list):
            # The arguments of a command come one by one.
            if value and all(isinstance(item, str) for item in value):
                waiting.append((place, "", " ".join(value)))
            else:
                waiting += ((step(place, i), "", item) for i, item in enumerate(value))


def _simulates(key: str, value: Any) -> bool:
    if isinstance(value, str) and len(value) <= _LONGEST and _TEXT.search(value):
        return True
    name = key.lower().replace("-", "_")
    if name == "rejection_sample_method":
        return isinstance(value, str) and value.lower() == "synthetic"
    sets = name.startswith(("synthetic_acceptance", "sglang_simulate_acc_len"))
    return sets and not isinstance(value, dict | list) and value not in _OFF
