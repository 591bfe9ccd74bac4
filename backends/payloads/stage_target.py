"""Stages a target: downloads the files of one commit from a model hub, whole or not at all.

    python3 stage_target.py --target ORG/NAME --revision HEX --path DIR [--hub URL] [--output stage_target.json]

Everything goes into DIR.partial first, which becomes DIR when every file is there with the size and the digest that the
hub states. What is in DIR.partial from an attempt that broke off is gone on with. A DIR that is there already is left
as it is, and has to hold the same files. The result file is written in any case. Exit status: 0 staged, 1 not.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import hashlib
import http.client
import os
import shutil
import signal
import sys
import threading
import traceback
from typing import IO, TYPE_CHECKING, Any, Callable, Dict, List, NoReturn, Optional, Tuple

if TYPE_CHECKING:
    from backends.payloads.hub import HUB, Hub, HubError, HubFile, address, find_token
    from backends.payloads.results import write_result
else:
    from hub import HUB, Hub, HubError, HubFile, address, find_token
    from results import write_result

PRODUCER = "stage_target"
WANTED = (".json", ".safetensors", ".txt", ".model", ".tiktoken", ".jinja", ".py")
"""What a target is served and trained from. Weights in other formats would only cost time and disk."""

TRIES = 5
"""So often in a row a download may break off without a byte more."""

_CHUNK = 1 << 20
_LONGEST_PAUSE_S = 120.0


class Failed(Exception):
    """The target cannot be staged."""


class Download:
    """The files of one commit on their way into one folder.

    Attributes:
        files: What is wanted.
        partial: Where it is put together.
    """

    def __init__(self, hub: Hub, repository: str, revision: str, path: str, pause_s: float) -> None:
        self.files: List[HubFile] = []
        self.partial = f"{path}.partial"
        self._hub = hub
        self._repository = repository
        self._revision = revision
        self._path = path
        self._pause_s = pause_s
        self._stopped = threading.Event()

    def run(self, workers: int) -> None:
        """Download everything and put it in its place.

        Raises:
            HubError: When the hub does not give it.
            Failed: When it is not what the hub said, or there is no room for it.
            OSError: When it cannot be written.
        """
        self.files = self._list()
        if os.path.lexists(self._path):
            self._compare()
            return
        os.makedirs(self.partial, exist_ok=True)
        self._check_room()
        with concurrent.futures.ThreadPoolExecutor(workers) as pool:
            waiting = [pool.submit(self._fetch, file) for file in sorted(self.files, key=lambda one: -one.size)]
            try:
                for done in concurrent.futures.as_completed(waiting):
                    done.result()
            except BaseException:
                self._stopped.set()
                for one in waiting:
                    one.cancel()
                raise
        os.rename(self.partial, self._path)

    def _list(self) -> List[HubFile]:
        listed = self._again(lambda: self._hub.files(self._repository, self._revision))
        found = [
            file for file in listed if file.path.endswith(WANTED) and not os.path.basename(file.path).startswith(".")
        ]
        if not any(file.path.endswith(".safetensors") for file in found):
            raise Failed(f"{self._repository} has no weights as safetensors at {self._revision}")
        for file in found:
            if any(part in ("", ".", "..") for part in file.path.split("/")) or "\0" in file.path:
                raise Failed(f"the hub names {file.path!r}, which is no path inside a folder")
        return found

    def _compare(self) -> None:
        """Make sure that what lies in the place already is what would have been downloaded."""
        for file in self.files:
            try:
                size = os.stat(os.path.join(self._path, file.path)).st_size
            except OSError as error:
                raise Failed(f"{self._path} was there already, and lacks {file.path}: {error.strerror}") from None
            if size != file.size:
                raise Failed(f"{self._path} was there already, and its {file.path} has {size} bytes, not {file.size}")

    def _check_room(self) -> None:
        needed = sum(file.size for file in self.files)
        have = sum(_size(os.path.join(self.partial, file.path)) for file in self.files)
        have += sum(_size(_incomplete(self.partial, file)) for file in self.files)
        free = shutil.disk_usage(self.partial).free
        if needed - have > free:
            raise Failed(f"{self.partial}: {needed - have} bytes are still to come, and {free} are free there")

    def _fetch(self, file: HubFile) -> None:
        """Download one file, as often as it takes as long as it gets further."""
        place, incomplete = os.path.join(self.partial, file.path), _incomplete(self.partial, file)
        if os.path.isfile(place) and _size(place) == file.size and _digest_is_right(place, file):
            return
        os.makedirs(os.path.dirname(place), exist_ok=True)
        if _size(incomplete) > file.size:
            os.unlink(incomplete)
        self._again(lambda: self._go_on(file, incomplete), lambda: _size(incomplete))
        if not _digest_is_right(incomplete, file):
            os.unlink(incomplete)
            raise Failed(f"{file.path}: what arrived is not what the hub said: its digest differs")
        os.replace(incomplete, place)
        print(f"{file.path}: {file.size} bytes", flush=True)

    def _go_on(self, file: HubFile, incomplete: str) -> None:
        have = _size(incomplete)
        if have == file.size and os.path.exists(incomplete):
            return
        with self._hub.open(address(self._repository, self._revision, file.path), have) as response:
            # A server that does not know ranges sends everything again.
            mode = "ab" if have and response.status == 206 else "wb"
            with open(incomplete, mode) as stream:
                self._copy(response, stream)
                stream.flush()
                os.fsync(stream.fileno())
        have = _size(incomplete)
        if have != file.size:
            raise HubError(f"{file.path}: {have} of {file.size} bytes arrived", None, have < file.size)

    def _copy(self, response: Any, stream: IO[Any]) -> None:
        while True:
            if self._stopped.is_set():
                raise Failed("another file failed")
            try:
                data = response.read(_CHUNK)
            except (OSError, http.client.HTTPException) as error:
                raise HubError(f"the connection broke off: {type(error).__name__}: {error}", None, True) from None
            if not data:
                return
            stream.write(data)

    def _again(self, ask: Callable[[], Any], reached: Callable[[], int] = lambda: 0) -> Any:
        """Ask until there is an answer; gives up after so many tries without getting further."""
        tries, best = 0, reached()
        while True:
            answer, error = _answer(ask)
            if error is None:
                return answer
            if reached() > best:
                tries, best = 0, reached()
            tries += 1
            if not error.transient or tries >= TRIES:
                raise error
            print(f"{error}; once more", file=sys.stderr, flush=True)
            pause = max(error.wait_s, self._pause_s * 2**tries)
            if self._stopped.wait(min(_LONGEST_PAUSE_S, pause)):
                raise error


def _answer(ask: Callable[[], Any]) -> Tuple[Any, Optional[HubError]]:
    try:
        return ask(), None
    except HubError as error:
        return None, error


def _incomplete(folder: str, file: HubFile) -> str:
    return os.path.join(folder, f"{file.path}.incomplete")


def _size(path: str) -> int:
    """The size of a file, 0 where there is none."""
    try:
        return os.stat(path).st_size
    except OSError:
        return 0


def _digest_is_right(path: str, file: HubFile) -> bool:
    """Whether a file's bytes are those that the hub names; a file without any digest is taken by its size."""
    if file.sha256:
        digest, expected = hashlib.sha256(), file.sha256
    elif file.blob:
        # What Git names its objects by; where SHA-1 is barred, it has to be said that it is no matter of security.
        plain: Dict[str, Any] = {"usedforsecurity": False} if sys.version_info >= (3, 9) else {}
        digest, expected = hashlib.new("sha1", **plain), file.blob
        digest.update(f"blob {file.size}\0".encode("ascii"))
    else:
        return True
    with open(path, "rb") as stream:
        for data in iter(lambda: stream.read(_CHUNK), b""):
            digest.update(data)
    return digest.hexdigest() == expected


def stage(args: argparse.Namespace, body: Dict[str, Any]) -> None:
    """Stage the target and fill in the result.

    Raises:
        HubError: When the hub does not give it.
        Failed: When it cannot be staged.
        OSError: When it cannot be written.
    """
    hub = Hub(args.hub, find_token())
    body["token_found"] = hub.named
    download = Download(hub, args.target, args.revision, args.path, args.pause)
    download.run(args.workers)
    body["files"] = [{"path": file.path, "size": file.size} for file in sorted(download.files)]
    body.update(status="ok", http_status=200)


def _ended(number: int, frame: Any) -> NoReturn:
    raise Failed(f"told to end by signal {number}; the same job again goes on where this one was")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Download a target from a model hub at a pinned revision.")
    parser.add_argument("--target", required=True, help="its id on the hub, ORGANISATION/NAME")
    parser.add_argument("--revision", required=True, help="40 hexadecimal digits")
    parser.add_argument("--path", required=True, help="folder to make")
    parser.add_argument("--hub", default=HUB, help="address of the hub")
    parser.add_argument("--workers", type=int, default=4, help="files at a time")
    parser.add_argument("--pause", type=float, default=2.0, help="seconds before a download is tried again, at first")
    parser.add_argument("--output", default="stage_target.json")
    return parser.parse_args()


def main() -> int:
    """Stage the target that the command line names."""
    args = _arguments()
    args.path = os.path.abspath(args.path)
    body: Dict[str, Any] = {"status": "error", "error": None, "http_status": None, "target": args.target}
    body.update(revision=args.revision, path=args.path, hub=args.hub, token_found=False, files=[])
    signal.signal(signal.SIGTERM, _ended)
    status: Optional[int] = None
    try:
        stage(args, body)
    except HubError as error:
        status = error.status
        body.update(error=str(error), http_status=status)
    except (Failed, OSError) as error:
        body["error"] = str(error)
    except Exception as error:  # the result file must say so, whatever it is
        traceback.print_exc()
        body["error"] = f"{type(error).__name__}: {error}"
    write_result(args.output, PRODUCER, body)
    print(f"{args.target} at {args.revision}: {body['status']} {body['error'] or ''}")
    return 0 if body["status"] == "ok" else 1


if __name__ == "__main__":
    sys.exit(main())
