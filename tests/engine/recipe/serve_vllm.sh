# sh serve_vllm.sh PORT [DRAFTER]: the target alone, or with a drafter. Wants ENGINE, TARGET, TARGET_PATH,
# DRAFT_TOKENS, MAX_NUM_SEQS and MAX_MODEL_LEN; METHOD is how it drafts, dflash where it is not set.
set -eu
# Nothing is asked of the network. One thread: two servers' threads that spin on two cores starve each other.
export HF_HUB_OFFLINE=1 VLLM_NO_USAGE_STATS=1 DO_NOT_TRACK=1
export VLLM_CPU_KVCACHE_SPACE=1 VLLM_CPU_OMP_THREADS_BIND=nobind OMP_NUM_THREADS=1
# Without it the server does not tell how it is set up, and nothing could be compared.
export VLLM_SERVER_DEV_MODE=1
port=$1
drafter=${2:-}
# Not the `vllm` command: in the build for CPUs it does not find its own distribution.
set -- -m vllm.entrypoints.openai.api_server --host 127.0.0.1 --port "$port" \
  --model "$TARGET_PATH" --served-model-name "$TARGET" --dtype float32 --enforce-eager \
  --max-model-len "$MAX_MODEL_LEN" --max-num-seqs "$MAX_NUM_SEQS"
if [ -n "$drafter" ]; then
  set -- "$@" --speculative-config \
    "{\"method\":\"${METHOD:-dflash}\",\"model\":\"$drafter\",\"num_speculative_tokens\":$DRAFT_TOKENS}"
fi
exec "$ENGINE" "$@"
