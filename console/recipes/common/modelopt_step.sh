# sh modelopt_step.sh KEY=VALUE...: one node's part of a training with Model-Optimizer.
# Wants TRAIN_PYTHON, MODELOPT, MODELOPT_RECIPE, DATA_DIR, NODES, GPUS_PER_NODE and, for several nodes, HEAD_NODE.
set -eu
while IFS= read -r line; do
  set -- "$@" "$line"
done < "$DATA_DIR/overrides.txt"
set -- "$MODELOPT/examples/speculative_decoding/main.py" \
  --config "$MODELOPT/modelopt_recipes/general/speculative_decoding/$MODELOPT_RECIPE" "$@"
if [ "$NODES" -gt 1 ]; then
  set -- --num_processes "$((NODES * GPUS_PER_NODE))" --num_machines "$NODES" --machine_rank "$SLURM_PROCID" \
    --rdzv_backend c10d --main_process_ip "$HEAD_NODE" --main_process_port 29500 "$@"
fi
# Kernels are compiled while training: into a folder of this node, where no other node writes.
export TRITON_CACHE_DIR="${TMPDIR:-/tmp}/triton-${SLURM_JOB_ID:-0}" TOKENIZERS_PARALLELISM=False
exec "$TRAIN_PYTHON" -m accelerate.commands.launch --mixed_precision bf16 "$@"
