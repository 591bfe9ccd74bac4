# A: the target alone. B: the same server with the frozen drafter. One at a time, on this node.
set -eu
export IMAGE=@CONTAINER_IMAGE@ SERVE_PYTHON=@serve_python@ TARGET=@TARGET@ TARGET_PATH=@TARGET_PATH@
export DRAFT_TOKENS=@draft_tokens@ TENSOR_PARALLEL=@tensor_parallel@ MAX_NUM_SEQS=@max_num_seqs@
export MAX_MODEL_LEN=@max_model_len@ DTYPE=@dtype@ MEMORY_SHARE=@memory_share@ TRUST_REMOTE_CODE=@trust_remote_code@
export DRAFTER=@DRAFTER_PATH@
prompts=@prompts_path@
case $prompts in
  '') prompts=$PWD/release_prompts.jsonl ;;
esac
sh in_container.sh -m @WORKSPACE@ -m @HF_LOCAL@ -m @TARGET_PATH@ -m @DRAFTER_PATH@ -m "${prompts%/*}" \
  "$SERVE_PYTHON" bench.py \
  --server-a 'exec sh vllm_server.sh {port}' --server-b 'exec sh vllm_server.sh {port} "$DRAFTER"' \
  --model @TARGET@ --drafter @DRAFTER_PATH@ --draft-tokens @draft_tokens@ --manifest-sha256 @MANIFEST_SHA256@ \
  --prompts "$prompts" --concurrency @concurrency@ --requests-per-point @requests_per_point@ \
  --rounds @bench_rounds@ --max-tokens @bench_max_tokens@ --exact-prompts @exact_prompts@ \
  --server-timeout @server_timeout@ --output bench.json --exact-output exact_match.json
