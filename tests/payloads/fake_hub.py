"""A model hub on loopback that answers as the real one was documented to, and that can be told to misbehave."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

REPOSITORY = "demo/tiny-target"
COMMIT = "1b2acaffba10906eb954c3e0085f8d62b52f8f57"


class FakeHub(ThreadingHTTPServer):
    """Serves the files of one folder as one repository.

    Attributes:
        folder: The files.
        refuse: HTTP status and error code with which every file is refused.
        refuse_list: The same for the list of files.
        breaks: How many answers for the file `breaking` break off after `after` bytes.
        ignore_ranges: Send every file from its beginning.
        wrong: Files whose bytes are not those that were listed.
        more: Further entries of the list.
        seen: Method, path, range and authorization of every request.
        elsewhere: Address to which requests for files are redirected.
    """

    daemon_threads = True

    def __init__(self, folder: Path) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.folder = folder
        self.refuse: tuple[int, str] | None = None
        self.refuse_list: tuple[int, str] | None = None
        self.busy = 0
        self.breaking, self.breaks, self.after = "", 0, 0
        self.ignore_ranges = False
        self.wrong: set[str] = set()
        self.more: list[dict[str, Any]] = []
        self.sha = COMMIT
        self.seen: list[tuple[str, str, str]] = []
        self.elsewhere = ""
        self.lock = threading.Lock()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def asked(self, name: str) -> int:
        return sum(path.endswith(name) for path, _, _ in self.seen)

    def listing(self) -> dict[str, Any]:
        entries = []
        for path in sorted(self.folder.rglob("*")):
            if path.is_file():
                data = path.read_bytes()
                entry: dict[str, Any] = {"rfilename": path.relative_to(self.folder).as_posix(), "size": len(data)}
                entry["blobId"] = hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest()
                if path.suffix == ".safetensors":
                    entry["lfs"] = {"sha256": hashlib.sha256(data).hexdigest(), "size": len(data), "pointerSize": 130}
                entries.append(entry)
        return {"id": REPOSITORY, "sha": self.sha, "siblings": [*entries, *self.more]}


class _Handler(BaseHTTPRequestHandler):
    server: FakeHub

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing: the requests are in `seen`."""

    def do_GET(self) -> None:
        hub = self.server
        with hub.lock:
            hub.seen.append((self.path, self.headers.get("Range", ""), self.headers.get("Authorization", "")))
            if hub.busy:
                hub.busy -= 1
                self._refuse(503, "")
                return
        if self.path.startswith("/api/models/"):
            if hub.refuse_list:
                self._refuse(*hub.refuse_list)
            else:
                self._send(json.dumps(hub.listing()).encode())
            return
        if hub.refuse:
            self._refuse(*hub.refuse)
        elif hub.elsewhere:
            self.send_response(302)
            self.send_header("Location", hub.elsewhere + self.path)
            self.end_headers()
        else:
            self._file(self.path.split(f"/resolve/{COMMIT}/", 1)[1])

    def _refuse(self, status: int, code: str) -> None:
        self.send_response(status)
        self.send_header("X-Error-Code", code)
        self.send_header("X-Error-Message", "Access to this is restricted." if code else "")
        self.end_headers()

    def _file(self, name: str) -> None:
        hub = self.server
        data = (hub.folder / name).read_bytes()
        if name in hub.wrong:
            data = bytes(reversed(data))
        start = 0
        if "Range" in self.headers and not hub.ignore_ranges:
            start = int(self.headers["Range"].split("=")[1].rstrip("-"))
        self._send(data[start:], 206 if start else 200)

    def _send(self, data: bytes, status: int = 200) -> None:
        hub = self.server
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        with hub.lock:
            broken = hub.breaks > 0 and self.path.endswith(hub.breaking) and len(data) > hub.after
            hub.breaks -= broken
        self.wfile.write(data[: hub.after] if broken else data)
        if broken:
            self.close_connection = True


@contextmanager
def running(folder: Path) -> Iterator[FakeHub]:
    """A hub that serves a folder."""
    hub = FakeHub(folder)
    thread = threading.Thread(target=hub.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield hub
    finally:
        hub.shutdown()
        hub.server_close()
        thread.join()
