"""Asks an OpenAI-compatible server: is it healthy, what does it serve, how does a text go on?"""

from __future__ import annotations

import http.client
import json
from typing import TYPE_CHECKING, Any, Dict, List, NamedTuple, Optional, Tuple, Union
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from backends.payloads.counters import Counters, Unreadable, read_counters
else:
    from counters import Counters, Unreadable, read_counters

Prompt = Union[str, List[int]]

_SHOWN = 300


class NoAnswer(Exception):
    """The server gave no answer, or none that can be used."""


class Completion(NamedTuple):
    """How a text goes on.

    Attributes:
        token_ids: What was added; empty when it failed.
        finish_reason: How it ended, as the server says; empty when it failed.
        error: What went wrong; None when nothing did.
    """

    token_ids: List[int]
    finish_reason: str
    error: Optional[str] = None


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

    def document(self, path: str) -> Dict[str, Any]:
        """A JSON object that the server shows under a path.

        Raises:
            NoAnswer: When it does not.
        """
        status, data = self.ask("GET", path)
        try:
            document = json.loads(data.decode("utf-8"))
        except ValueError:
            document = None
        if status != 200 or not isinstance(document, dict):
            raise NoAnswer(f"GET {path}: HTTP {status}: {_shown(data)}")
        return document

    def models(self) -> List[Dict[str, Any]]:
        """What the server serves; each with `id`.

        Raises:
            NoAnswer: When it does not say.
        """
        models = self.document("/v1/models").get("data")
        if not isinstance(models, list) or not all(isinstance(model, dict) for model in models):
            raise NoAnswer("GET /v1/models: no list of models")
        return models

    def version(self) -> str:
        """The server's version; empty when it does not tell."""
        try:
            return str(self.document("/version").get("version", ""))
        except NoAnswer:
            return ""

    def server_info(self) -> Optional[Dict[str, Any]]:
        """How the server is set up, with vLLM's names; None when it does not tell (vLLM does in development mode)."""
        try:
            info = self.document("/server_info?config_format=json")
        except NoAnswer:
            return None
        return info if isinstance(info.get("vllm_config"), dict) else None

    def counters(self) -> Optional[Counters]:
        """Counters of speculative decoding; None when the server has none.

        Raises:
            Unreadable: When the server does not answer, or not in the format.
        """
        try:
            status, data = self.ask("GET", "/metrics")
        except NoAnswer as error:
            raise Unreadable(str(error)) from None
        if status != 200:
            raise Unreadable(f"GET /metrics: HTTP {status}")
        return read_counters(data.decode("utf-8", "replace"))

    def complete(self, model: str, prompt: Prompt, max_tokens: int, ignore_eos: bool) -> Completion:
        """Let the server go on with a text, always with its likeliest token."""
        body: Dict[str, Any] = {"model": model, "prompt": prompt, "max_tokens": max_tokens, "temperature": 0}
        body.update(seed=0, ignore_eos=ignore_eos, return_token_ids=True)
        try:
            status, data = self.ask("POST", "/v1/completions", body)
        except NoAnswer as error:
            return Completion([], "", str(error))
        if status != 200:
            return Completion([], "", f"HTTP {status}: {_shown(data)}")
        return _completion(data)


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


def _completion(data: bytes) -> Completion:
    error = told_error(data)
    if error:
        return Completion([], "", error)
    try:
        choice = json.loads(data.decode("utf-8"))["choices"][0]
        ids, reason = choice.get("token_ids"), choice.get("finish_reason")
    except (ValueError, KeyError, IndexError, TypeError, AttributeError):
        return Completion([], "", f"an answer that is no completion: {_shown(data)}")
    if not isinstance(ids, list) or not ids or not all(type(token) is int for token in ids):
        return Completion([], "", "an answer without token ids")
    return Completion(ids, str(reason or ""))


def _shown(data: bytes) -> str:
    return data[:_SHOWN].decode("utf-8", "replace")
