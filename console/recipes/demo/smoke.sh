# Serve the target with the exported drafter, ask it, then ask the target alone the same.
set -eu
export PYTHON=@PYTHON@ TARGET=@TARGET@ TARGET_PATH=@TARGET_PATH@ MAX_NUM_SEQS=@max_num_seqs@
export DRAFTER=@EXPORT_DIR@ DRAFT_TOKENS=@draft_tokens@ FAULT=
case @FAIL@ in
  server) FAULT=never-healthy ;;
esac
@PYTHON@ smoke.py \
  --server-command 'exec "$PYTHON" tiny_server.py --model "$TARGET_PATH" --served-model-name "$TARGET" --port {port} --max-num-seqs "$MAX_NUM_SEQS" --fault "$FAULT" --drafter "$DRAFTER" --draft-tokens "$DRAFT_TOKENS"' \
  --reference-command 'exec "$PYTHON" tiny_server.py --model "$TARGET_PATH" --served-model-name "$TARGET" --port {port} --max-num-seqs "$MAX_NUM_SEQS"' \
  --model @TARGET@ --drafter @EXPORT_DIR@ --draft-tokens @draft_tokens@ --prompts @TARGET_PATH@/prompts.jsonl \
  --num-prompts @smoke_prompts@ --max-tokens @smoke_max_tokens@ --server-timeout @server_timeout@ --output smoke.json
