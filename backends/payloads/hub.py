"""Asks a model hub (https://huggingface.co, or a mirror of it) for the files of a repository at one commit.

A token is read where the hub's own tools keep it, and goes to the hub alone: never into a message, and never along with
a redirect to another host, which is where the large files lie.
"""

from __future__ import annotations

import http.client
import json
import os
import urllib.error
import urllib.request
from typing import Any, Dict, List, NamedTuple, Optional
from urllib.parse import quote, urlsplit

HUB = "https://huggingface.co"
TIMEOUT_S = 60.0
_LARGEST_ANSWER = 64 << 20
_SHOWN = 300


class HubError(Exception):
    """The hub did not give what was asked for.

    Attributes:
        status: HTTP status of its answer; None where there was none.
        transient: Whether the same question may be answered a moment later.
        wait_s: How long the hub asks to wait, seconds; 0 where it does not say.
    """

    def __init__(self, text: str, status: Optional[int] = None, transient: bool = False, wait_s: float = 0.0) -> None:
        super().__init__(text)
        self.status = status
        self.transient = transient
        self.wait_s = wait_s


class HubFile(NamedTuple):
    """A file of a repository.

    Attributes:
        path: Its path in the repository.
        size: Bytes.
        sha256: Digest of its bytes; empty for a file that Git itself stores.
        blob: Git's id of such a file.
    """

    path: str
    size: int
    sha256: str
    blob: str


class _Redirects(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, req: Any, fp: Any, code: int, msg: str, headers: Any, newurl: str) -> Any:
        new = super().redirect_request(req, fp, code, msg, headers, newurl)
        here, there = urlsplit(req.full_url), urlsplit(newurl)
        if here.scheme == "https" and there.scheme != "https":
            raise urllib.error.HTTPError(req.full_url, code, "redirected to an address without TLS", headers, fp)
        if new is not None and (here.scheme, here.netloc) != (there.scheme, there.netloc):
            new.remove_header("Authorization")
        return new


class Hub:
    """A hub, as whoever's token is found.

    Attributes:
        url: Its address.
        named: Whether a token was found.
    """

    def __init__(self, url: str, token: str) -> None:
        self.url = url.rstrip("/")
        self.named = bool(token)
        self._headers = {"User-Agent": "gonogo", "Accept-Encoding": "identity"}
        self._token = token
        self._opener = urllib.request.build_opener(_Redirects)

    def files(self, repository: str, revision: str) -> List[HubFile]:
        """The files of a repository at a commit.

        Raises:
            HubError: When the hub does not list them, or lists another commit.
        """
        path = f"/api/models/{repository}/revision/{revision}?blobs=true"
        with self.open(path) as response:
            try:
                document = json.loads(response.read(_LARGEST_ANSWER).decode("utf-8"))
                if document["sha"] != revision:
                    raise HubError(f"{self.url}{path}: it answers for commit {document['sha']}, not for {revision}")
                return [_file(entry) for entry in document["siblings"]]
            except (ValueError, KeyError, TypeError, AttributeError) as error:
                text = f"{self.url}{path}: no list of files with their sizes: {type(error).__name__}: {error}"
                raise HubError(text) from None
            except (OSError, http.client.HTTPException) as error:
                raise _broken(self.url + path, error) from None

    def open(self, path: str, start: int = 0) -> Any:
        """Begin to read what lies under a path.

        Args:
            path: With a leading slash, and escaped as in an address.
            start: Where to begin, in bytes.

        Raises:
            HubError: When the hub does not give it.
        """
        request = urllib.request.Request(self.url + path, headers=self._headers)
        if self._token:
            request.add_header("Authorization", f"Bearer {self._token}")
        if start:
            request.add_header("Range", f"bytes={start}-")
        try:
            return self._opener.open(request, timeout=TIMEOUT_S)
        except urllib.error.HTTPError as error:
            with error:
                raise _refused(self.url + path, error) from None
        except (OSError, http.client.HTTPException) as error:
            raise _broken(self.url + path, error) from None


def address(repository: str, revision: str, path: str) -> str:
    """Where a file of a repository lies on a hub."""
    return f"/{repository}/resolve/{revision}/{quote(path)}"


def find_token() -> str:
    """The token of whoever runs this, from where the hub's own tools keep it; empty when there is none."""
    token = os.environ.get("HF_TOKEN", "").strip()
    home = os.environ.get("HF_HOME") or os.path.join(os.path.expanduser("~"), ".cache", "huggingface")
    for place in (os.environ.get("HF_TOKEN_PATH", ""), os.path.join(home, "token")):
        if token or not place:
            continue
        try:
            with open(place, encoding="ascii") as stream:
                token = stream.read().strip()
        except (OSError, ValueError):
            token = ""
    # A token with a line end in it would be another header.
    return token if token.isprintable() and " " not in token else ""


def _file(entry: Dict[str, Any]) -> HubFile:
    large = entry.get("lfs") or {}
    path, size = entry["rfilename"], large.get("size", entry.get("size"))
    if not isinstance(path, str) or type(size) is not int:
        raise ValueError(f"{path!r} has size {size!r}")
    return HubFile(path, size, str(large.get("sha256", "")), str(entry.get("blobId", "")))


def _refused(url: str, error: urllib.error.HTTPError) -> HubError:
    code, message = error.headers.get("X-Error-Code", ""), error.headers.get("X-Error-Message", "")
    try:
        wait = float(error.headers.get("Retry-After", "0"))
    except ValueError:
        wait = 0.0
    said = ": ".join(part for part in (code, message or str(error.reason)) if part)
    transient = error.code in (408, 429) or error.code >= 500
    return HubError(f"{url}: HTTP {error.code}: {said[:_SHOWN]}", error.code, transient, max(0.0, wait))


def _broken(url: str, error: Exception) -> HubError:
    reason = getattr(error, "reason", None) or error
    return HubError(f"{url}: no answer: {type(reason).__name__}: {reason}", None, True)
