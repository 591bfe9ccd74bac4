"""A login node for tests: this machine's shell, with small programs in place of Slurm's and a record of their own."""

from __future__ import annotations

import os
from pathlib import Path

from backends.hosts.local import LocalHost
from backends.slurm.model import SubmitRequest, Upload
from console.release.canonical import sha256

SBATCH = """#!/bin/sh
how=$(cat "$LAB/how" 2>/dev/null)
if [ "$how" = refuse ]; then
  echo 'sbatch: error: Batch job submission failed: Invalid qos specification' >&2; exit 1
fi
id=$(($(wc -l < "$LAB/accepted") + 41))
for option in "$@"; do case "$option" in --job-name=*) name=${option#--job-name=};; esac; done
cat > "$LAB/script-$id"
echo "$id $name" >> "$LAB/accepted"
case "$how" in
  timeout) echo 'sbatch: error: Batch job submission failed: Socket timed out on send/recv operation' >&2; exit 1;;
  banner) echo 'Welcome to system 7';;
  hang) echo $$ > "$LAB/hanging"; exec sleep 60;;
esac
echo "$id;lab"
"""
SQUEUE = """#!/bin/sh
[ -e "$LAB/squeue-down" ] && { echo 'slurm_load_jobs error: Unable to contact slurm controller' >&2; exit 1; }
for option in "$@"; do case "$option" in --name=*) name=${option#--name=};; esac; done
[ -n "$name" ] && { awk -v n="$name" '$2 == n {print $1}' "$LAB/accepted"; exit 0; }
cat "$LAB/queue"
"""
SACCT = """#!/bin/sh
[ -e "$LAB/sacct-down" ] && { echo 'sacct: error: Connection refused' >&2; exit 1; }
cat "$LAB/accounting" 2>/dev/null
exit 0
"""


class Lab:
    """The programs, their record of accepted jobs, and a host that finds them on its PATH."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        programs = folder / "bin"
        programs.mkdir(parents=True)
        for name, text in (("sbatch", SBATCH), ("squeue", SQUEUE), ("sacct", SACCT)):
            (programs / name).write_text(text)
            (programs / name).chmod(0o755)
        (folder / "accepted").touch()
        (folder / "queue").touch()
        environment = {"PATH": f"{programs}:{os.environ['PATH']}", "LAB": str(folder), "SBATCH_PARTITION": "wrong"}
        self.host = LocalHost(environment)

    def how(self, word: str) -> None:
        (self.folder / "how").write_text(word)

    @property
    def accepted(self) -> list[str]:
        return (self.folder / "accepted").read_text().splitlines()

    def request(self, token: str = "0123456789abcdef") -> SubmitRequest:
        data = b"print('it''s here')\n"
        return SubmitRequest(
            token=token,
            digest="d" * 64,
            job_name=f"gonogo-run-train-{token[:8]}",
            options=("--parsable", f"--job-name=gonogo-run-train-{token[:8]}", "--comment=it's; $(odd)"),
            script=b"#!/bin/bash\necho 'quoted' \"$HOME\" \xff\n",
            job_dir=f"{self.folder}/work dir/{token}",
            claim_dir=f"{self.folder}/claims/{token}",
            uploads=(Upload("tool.py", data, sha256(data)),),
        )
