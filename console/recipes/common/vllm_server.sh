# sh vllm_server.sh PORT [DRAFTER]: the target alone, or with a drafter. Both get the same settings.
# Wants SERVE_PYTHON, TARGET, TARGET_PATH, DRAFT_TOKENS, TENSOR_PARALLEL, MAX_NUM_SEQS, MAX_MODEL_LEN, DTYPE,
# MEMORY_SHARE and TRUST_REMOTE_CODE.
set -eu
# Nothing is asked of the network. In its development mode the server tells how it is set up, and that is compared.
export HF_HUB_OFFLINE=1 VLLM_NO_USAGE_STATS=1 DO_NOT_TRACK=1 VLLM_SERVER_DEV_MODE=1
port=$1
drafter=${2:-}
# DFlash2 has no method of its own: the engine knows it by the export's architecture.
if [ -n "$drafter" ]; then
  config=$("$SERVE_PYTHON" -c 'import json, sys
print(json.dumps({"method": "dflash", "model": sys.argv[1], "num_speculative_tokens": int(sys.argv[2])}))' \
    "$drafter" "$DRAFT_TOKENS")
fi
# What was asked before must not make an answer faster: no cache of prefixes.
set -- -m vllm.entrypoints.openai.api_server --host 127.0.0.1 --port "$port" --model "$TARGET_PATH" \
  --served-model-name "$TARGET" --dtype "$DTYPE" --seed 0 --tensor-parallel-size "$TENSOR_PARALLEL" \
  --max-model-len "$MAX_MODEL_LEN" --max-num-seqs "$MAX_NUM_SEQS" --gpu-memory-utilization "$MEMORY_SHARE" \
  --no-enable-prefix-caching
if [ "$TRUST_REMOTE_CODE" = true ]; then
  set -- "$@" --trust-remote-code
fi
if [ -n "$drafter" ]; then
  set -- "$@" --speculative-config "$config"
fi
exec "$SERVE_PYTHON" "$@"
