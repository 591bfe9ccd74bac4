"""Makes the live data of many releases change every second, as their conductors would, until it is killed."""

from __future__ import annotations

import json
import os
import sys
import time
from datetime import UTC, datetime
from pathlib import Path


def live(folder: Path, jobs: int, beat: int) -> None:
    """Write `live.json` of one release."""
    rows = [
        {"id": f"{number:03d}-job-1", "job_id": str(1000 + number), "name": "job", "presence": "in queue",
         "state": "RUNNING", "reason": "", "node": f"node{(beat + number) % 90:02d}", "elapsed_s": beat,
         "limit_s": 36000, "gpus": 8, "hanging": False}
        for number in range(jobs)
    ]  # fmt: skip
    data = {
        "at": f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}", "pid": os.getpid(), "clock_offset_s": 0.0, "doing": "watch",
        "link": {"state": "up", "age_s": 0.4, "detail": "", "host": "login"}, "files": [], "problems": [],
        "waiting": {"for": "cluster", "what": "results", "since": "2026-08-12T09:31:00Z"}, "jobs": rows,
    }  # fmt: skip
    temporary = folder / ".live.json.new"
    temporary.write_text(json.dumps(data))
    os.replace(temporary, folder / "live.json")


def main() -> None:
    """Write for ever."""
    folders, jobs = sorted(Path(sys.argv[1]).iterdir()), int(sys.argv[2])
    beat = 0
    while True:
        begun = time.monotonic()
        for place, folder in enumerate(folders):
            share = jobs // len(folders) + (place < jobs % len(folders))
            live(folder, share, beat)
            # Spread over the second, as many conductors would.
            time.sleep(max(0.0, begun + (place + 1) / len(folders) - time.monotonic()))
        beat += 1


if __name__ == "__main__":
    main()
