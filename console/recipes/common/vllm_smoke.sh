# Serve the target with the exported drafter, ask it, then ask the target alone the same.
set -eu
export IMAGE=@CONTAINER_IMAGE@ SERVE_PYTHON=@serve_python@ TARGET=@TARGET@ TARGET_PATH=@TARGET_PATH@
export DRAFT_TOKENS=@draft_tokens@ TENSOR_PARALLEL=@tensor_parallel@ MAX_NUM_SEQS=@max_num_seqs@
export MAX_MODEL_LEN=@max_model_len@ DTYPE=@dtype@ MEMORY_SHARE=@memory_share@ TRUST_REMOTE_CODE=@trust_remote_code@
export DRAFTER=@EXPORT_DIR@
prompts=@prompts_path@
case $prompts in
  '') prompts=$PWD/release_prompts.jsonl ;;
esac
sh in_container.sh -m @WORKSPACE@ -m @HF_LOCAL@ -m @TARGET_PATH@ -m @EXPORT_DIR@ -m "${prompts%/*}" \
  "$SERVE_PYTHON" smoke.py \
  --server-command 'exec sh vllm_server.sh {port} "$DRAFTER"' --reference-command 'exec sh vllm_server.sh {port}' \
  --model @TARGET@ --drafter @EXPORT_DIR@ --draft-tokens @draft_tokens@ --prompts "$prompts" \
  --num-prompts @smoke_prompts@ --max-tokens @smoke_max_tokens@ \
  --server-timeout @server_timeout@ --output smoke.json
