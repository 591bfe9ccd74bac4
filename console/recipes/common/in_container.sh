# sh in_container.sh [-m FOLDER]... COMMAND...: run a command on the nodes of this job, once on each.
# In the container that IMAGE names, with these folders in their own places; without a container where it is empty.
# STEP_NODES=1 keeps it to the first node.
set -eu
mounts=
while [ "${1-}" = -m ]; do
  case $2 in
    *[,:]*) echo "in_container.sh: $2: a folder with a comma or a colon in its name cannot be mounted" >&2; exit 64 ;;
  esac
  case ",$mounts," in
    *",$2:$2,"*) ;;
    *) mounts=${mounts:+$mounts,}$2:$2 ;;
  esac
  shift 2
done
nodes=${STEP_NODES:-${SLURM_JOB_NUM_NODES:-1}}
if [ -n "${IMAGE:-}" ]; then
  set -- "--container-image=$IMAGE" "--container-mounts=$mounts" "--container-workdir=$PWD" --no-container-mount-home "$@"
elif [ "$nodes" = 1 ]; then
  exec "$@"
fi
# The job is submitted with --export=NONE, which steps would take over; and one task must not be bound to one core.
exec srun --export=ALL --kill-on-bad-exit=1 --cpu-bind=none --nodes="$nodes" --ntasks="$nodes" --ntasks-per-node=1 "$@"
