# Serve the target with the drafter, ask it, then ask the target alone the same.
set -eu
export ENGINE=@engine_python@ TARGET=@TARGET@ TARGET_PATH=@TARGET_PATH@ DRAFTER=@EXPORT_DIR@
export DRAFT_TOKENS=@draft_tokens@ MAX_NUM_SEQS=@max_num_seqs@ MAX_MODEL_LEN=@max_model_len@
@PYTHON@ smoke.py \
  --server-command 'exec sh serve_vllm.sh {port} "$DRAFTER"' --reference-command 'exec sh serve_vllm.sh {port}' \
  --model @TARGET@ --drafter @EXPORT_DIR@ --draft-tokens @draft_tokens@ --prompts @TARGET_PATH@/prompts.jsonl \
  --num-prompts @smoke_prompts@ --max-tokens @smoke_max_tokens@ --ignore-eos \
  --server-timeout @server_timeout@ --output smoke.json
