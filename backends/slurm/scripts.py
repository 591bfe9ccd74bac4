"""The shell scripts that run on a login node, and how a submission is packed for one of them.

Answers are `key length` lines, each followed by that many bytes, so no content can be taken for a key. Every
script clears the environment variables that would change what Slurm's commands, tar or grep take or print.
"""

from __future__ import annotations

import io
import tarfile

from backends.quoting import quote
from backends.slurm.model import JobState, SubmitRequest

ACCOUNTING_TIMEOUT_S = 15
"""Accounting that hangs keeps Slurm's commands for minutes; nothing here needs it so much."""

NO_ANSWER = 9
"""Exit status of a script here whose question Slurm did not answer; its words are on standard error."""

_PRELUDE = """
unset GREP_OPTIONS TAR_OPTIONS CDPATH POSIXLY_CORRECT SLURM_TIME_FORMAT SLURM_CLUSTERS
for name in $(env | grep -oE '^(SBATCH|SQUEUE|SACCT|SINFO|SCANCEL)_[A-Za-z0-9_]+'); do unset "$name"; done
[ -n "$1" ] && PATH="$1:$PATH"
export LC_ALL=C TZ=UTC PATH
say() { printf '%s %s\\n' "$1" "${#2}"; printf '%s\\n' "$2"; }
give() { printf '%s %s\\n' "$1" "$(wc -c < "$2" | tr -d ' ')"; cat "$2"; printf '\\n'; }
receipt() { say state sbatch; give stdout "$1/stdout"; give stderr "$1/stderr"; give status "$1/status"; }
"""

_SBATCH = """printf %s "$$" > "$0/sbatch" && ln -s sbatch "$0/go" 2>/dev/null || exit 1
umask "$1"; shift; exec sbatch "$@\""""
"""Becomes sbatch, as a process that is known before it may begin: it lives on where the shell above it is killed."""


def submission(request: SubmitRequest) -> tuple[str, bytes]:
    """The script that submits, and the archive of job script and uploads that it reads from its standard input.

    The claim is taken by creating a folder; `go`, a link that can be made only once and says by whom, right
    before sbatch is called; the receipt appears whole, by a rename, before anything is answered. `process` and
    `sbatch` name the two processes that a submission may still come from while there is no receipt.
    """
    options = " ".join(quote(option) for option in request.options)
    sums = "".join(f"{upload.sha256}  {upload.name}\n" for upload in request.uploads)
    script = f"""{_PRELUDE}
trap '' HUP PIPE
mask=$(umask); umask 077
claim={quote(request.claim_dir)}; job={quote(request.job_dir)}
mkdir -p "$(dirname "$claim")" || {{ say state 'not stored'; say said "cannot create $(dirname "$claim")"; exit 0; }}
if ! mkdir "$claim" 2>/dev/null; then
  if [ -d "$claim" ]; then say state claimed; else say state 'not stored'; say said "cannot create $claim"; fi
  exit 0
fi
printf '%s' {quote(request.digest)} > "$claim/digest"
fail() {{ say state 'not stored'; say said "$1"; ln -s fenced "$claim/go" 2>/dev/null; exit 0; }}
mkdir -p "$job" && cd "$job" || fail "cannot create $job"
tar -xf - >/dev/null || fail "the files did not arrive whole"
mv .submit.sh "$claim/submit.sh" || fail "the script did not arrive"
sha256sum -c --quiet <<'SUMS' >/dev/null 2>&1 || fail "the files that arrived are not the files that were sent"
{sums}SUMS
/bin/sh -c 'printf "%s %s" "$PPID" "$(hostname)"' > "$claim/process"
mkdir "$claim/receipt.tmp"
/bin/sh -c {quote(_SBATCH)} "$claim" "$mask" {options} < "$claim/submit.sh" \\
  > "$claim/receipt.tmp/stdout" 2> "$claim/receipt.tmp/stderr"
printf '%s' "$?" > "$claim/receipt.tmp/status"
[ "$(readlink "$claim/go")" = sbatch ] || fail 'it was fenced off, or the claim could not be written'
mv "$claim/receipt.tmp" "$claim/receipt"
receipt "$claim/receipt"
"""
    # An empty list of sums is an error to sha256sum, so the check is left out where nothing travels along.
    if not request.uploads:
        begin = script.index("sha256sum -c")
        script = script[:begin] + script[script.index("SUMS\n", begin + 30) + 5 :]
    return script, _archive(request)


def _archive(request: SubmitRequest) -> bytes:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as archive:
        files = [(".submit.sh", request.script, 0o600)]
        files += [(upload.name, upload.data, upload.mode) for upload in request.uploads]
        for name, data, mode in files:
            member = tarfile.TarInfo(name)
            member.size, member.mode = len(data), mode
            archive.addfile(member, io.BytesIO(data))
    return stream.getvalue()


RECONCILE = f"""
set -- "" "$1"
{_PRELUDE}
umask 077
mkdir -p "$(dirname "$2")" || exit 3
if mkdir "$2" 2>/dev/null; then say state 'fenced claim'; exit 0; fi
[ -d "$2" ] || exit 3
if [ -d "$2/receipt" ]; then receipt "$2/receipt"; exit 0; fi
ln -s fenced "$2/go" 2>/dev/null
if [ "$(readlink "$2/go")" = fenced ]; then say state 'fenced go'; exit 0; fi
if [ -d "$2/receipt" ]; then receipt "$2/receipt"; exit 0; fi
read -r process host < "$2/process" 2>/dev/null
if [ "$host" != "$(hostname)" ]; then say state elsewhere; say host "$host"; exit 0; fi
# A process that has ended but that nobody has collected still takes signals; where ps does not say, it lives.
lives() {{
  [ -n "$1" ] && kill -0 "$1" 2>/dev/null || return 1
  case "$(ps -o stat= -p "$1" 2>/dev/null)" in Z*) return 1 ;; esac
}}
for process in "$process" "$(cat "$2/sbatch" 2>/dev/null)"; do
  if lives "$process"; then say state running; exit 0; fi
done
if [ -d "$2/receipt" ]; then receipt "$2/receipt"; else say state silent; fi
"""

QUEUE_BY_NAME = (
    _PRELUDE
    + """
squeue -h -t all --me --name="$2" -o '%A'
"""
)

ACCOUNTING_BY_NAME = (
    _PRELUDE
    + """
sacct -n -X -P -S "$3" --name="$2" -o JobIDRaw
"""
)

QUEUE = (
    _PRELUDE
    + """
date +%s
squeue -h -t all --me -o '%A|%T|%r|%N|%M|%l|%j'
"""
)

ACCOUNTING = (
    _PRELUDE
    + f"""
columns=JobIDRaw,State,ExitCode,NodeList,ElapsedRaw,TimelimitRaw,JobName
timeout {ACCOUNTING_TIMEOUT_S} sacct -n -X -P -j "$2" -o "$columns"
"""
)

CANCEL = (
    _PRELUDE
    + f"""
found=$(squeue -h -t all -j "$2" -o '%T %j %k' 2>&1) || case "$found" in
  *'Invalid job id specified'*) found= ;;
  *) printf '%s\\n' "$found" >&2; exit {NO_ANSWER} ;;
esac
case "$found" in
  *"$3"*) ;;
  '') echo "job $2 is not in the queue any more"; exit 1 ;;
  *) echo "job $2 is not ours: nothing was cancelled"; exit 1 ;;
esac
state=$(printf '%s\\n' "$found" | grep -F -- "$3" | cut -d ' ' -f 1)
case "$state" in {"|".join(state for state in JobState if state.ended)})
  echo "job $2 had ended before: $state"; exit 1 ;;
esac
scancel "$2" || exit $?
echo "cancelled: $(squeue -h -t all -j "$2" -o '%T' 2>/dev/null)"
"""
)

FACTS = (
    _PRELUDE
    + """
say time "$(date +%s.%N)"
say hostname "$(hostname)"
say home "$HOME"
say python "$(python3 -c 'import platform; print(platform.python_version())' 2>/dev/null)"
say version "$(sbatch --version 2>/dev/null)"
accounts=$(timeout "$2" sacctmgr -n -P show assoc user="$(id -un)" format=account 2>&1); ended=$?
say accounts "$accounts"; say accounts_status "$ended"
partitions=$(sinfo -h -o '%P|%a|%l|%D|%c|%G' 2>&1); ended=$?
say partitions "$partitions"
say time_after "$(date +%s.%N)"
exit "$ended"
"""
)
