"""One connection to a server: is it healthy, what does it serve, how does a text go on?

What differs from engine to engine is in `engines.py` and `other_engines.py`.
"""

from __future__ import annotations

import http.client
import json
from typing import TYPE_CHECKING, Any, Dict, List, NamedTuple, Optional, Tuple, Union
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from backends.payloads.counters import Counters
else:
    from counters import Counters

Prompt = Union[str, List[int]]

_SHOWN = 300


class NoAnswer(Exception):
    """The server gave no answer, or none that can be used."""


class Asked(NamedTuple):
    """A text that is to go on, always with its likeliest token.

    Attributes:
        model: Name of the model.
        prompt: Text or token ids.
        max_tokens: Most tokens to add.
        ignore_eos: Go on behind the end of the text.
        stop: Texts at which to end.
    """

    model: str
    prompt: Prompt
    max_tokens: int
    ignore_eos: bool
    stop: Tuple[str, ...] = ()


class Completion(NamedTuple):
    """How a text goes on.

    Attributes:
        token_ids: What was added; empty when it failed, or when the server does not tell.
        finish_reason: How it ended, as the server says; empty when it failed.
        error: What went wrong; None when nothing did.
        text: What was added, as text.
        tokens: How many tokens that is.
        counters: What was drafted for it, where the server says so with each answer; else None.
    """

    token_ids: List[int]
    finish_reason: str
    error: Optional[str] = None
    text: str = ""
    tokens: int = 0
    counters: Optional[Counters] = None


def failed(error: str) -> Completion:
    """A completion that there is not."""
    return Completion([], "", error)


class Endpoint:
    """One connection to a server; each thread needs its own.

    Attributes:
        base_url: Where the server is, like `http://127.0.0.1:8000`.
    """

    def __init__(self, base_url: str, timeout: float = 600.0) -> None:
        """A connection that is opened when it is first needed.

        Args:
            base_url: Where the server is.
            timeout: How long to wait for an answer, in seconds.

        Raises:
            ValueError: When that is no http address.
        """
        parts = urlsplit(base_url)
        if parts.scheme != "http" or not parts.hostname:
            raise ValueError(f"{base_url!r} is no http address")
        self.base_url = base_url.rstrip("/")
        self._path = parts.path.rstrip("/")
        self._connection = http.client.HTTPConnection(parts.hostname, parts.port or 80, timeout=timeout)

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    def ask(self, method: str, path: str, body: Optional[Dict[str, Any]] = None) -> Tuple[int, bytes]:
        """One question; returns HTTP status and body.

        Raises:
            NoAnswer: When the server cannot be reached or breaks off.
        """
        data = None if body is None else json.dumps(body).encode("ascii")
        headers = {} if data is None else {"Content-Type": "application/json"}
        try:
            self._connection.request(method, self._path + path, data, headers)
            response = self._connection.getresponse()
            return response.status, response.read()
        except (OSError, http.client.HTTPException) as error:
            self._connection.close()
            raise NoAnswer(f"{method} {path}: {type(error).__name__}: {error}") from None

    def healthy(self) -> bool:
        """Whether the server says that it is ready."""
        try:
            return self.ask("GET", "/health")[0] == 200
        except NoAnswer:
            return False

    def json(self, path: str) -> Any:
        """What a server shows as JSON under a path.

        Raises:
            NoAnswer: When it does not.
        """
        status, data = self.ask("GET", path)
        try:
            shown = json.loads(data.decode("utf-8"))
        except (ValueError, RecursionError):
            status, shown = status if status != 200 else 0, None
        if status != 200:
            raise NoAnswer(f"GET {path}: {f'HTTP {status}' if status else 'not JSON'}: {cut(data)}")
        return shown

    def document(self, path: str) -> Dict[str, Any]:
        """A JSON object that the server shows under a path.

        Raises:
            NoAnswer: When it does not.
        """
        shown = self.json(path)
        if not isinstance(shown, dict):
            raise NoAnswer(f"GET {path}: not an object")
        return shown

    def post(self, path: str, body: Dict[str, Any]) -> Union[Dict[str, Any], str]:
        """The JSON object that answers a question, or what went wrong."""
        try:
            status, data = self.ask("POST", path, body)
        except NoAnswer as error:
            return str(error)
        if status != 200:
            return f"HTTP {status}: {cut(data)}"
        error_inside = told_error(data)
        if error_inside:
            return error_inside
        try:
            answer = json.loads(data.decode("utf-8"))
        except (ValueError, RecursionError):
            answer = None
        return answer if isinstance(answer, dict) else f"an answer that is no completion: {cut(data)}"

    def models(self) -> List[Dict[str, Any]]:
        """What the server serves; each with `id`.

        Raises:
            NoAnswer: When it does not say.
        """
        models = self.document("/v1/models").get("data")
        if not isinstance(models, list) or not all(isinstance(model, dict) for model in models):
            raise NoAnswer("GET /v1/models: no list of models")
        return models


def told_error(data: bytes) -> str:
    """The error that an answer with HTTP 200 holds all the same; empty when it holds none.

    A stream begins with HTTP 200. When the engine behind it dies, one of its last events is an error, and after that it
    ends as a whole one does, with `[DONE]`.
    """
    for line in data.decode("utf-8", "replace").split("\n"):
        text = line[len("data:") :] if line.startswith("data:") else line
        try:
            document = json.loads(text)
        except (ValueError, RecursionError):
            continue
        error = document.get("error") if isinstance(document, dict) else None
        if error:
            message = error.get("message") if isinstance(error, dict) else None
            return f"HTTP 200, and an error in the answer: {str(message or error)[:_SHOWN]}"
    return ""


def whole_ids(value: object) -> List[int]:
    """A list of token ids; empty where it is none."""
    ids = value if isinstance(value, list) else []
    return ids if all(type(token) is int for token in ids) else []


def cut(data: bytes) -> str:
    """The beginning of an answer, for people."""
    return data[:_SHOWN].decode("utf-8", "replace")
