# Accuracy of the target with the frozen drafter, and how much of what it drafts is accepted meanwhile.
set -eu
export IMAGE=@CONTAINER_IMAGE@ SERVE_PYTHON=@serve_python@ TARGET=@TARGET@ TARGET_PATH=@TARGET_PATH@
export DRAFT_TOKENS=@draft_tokens@ TENSOR_PARALLEL=@tensor_parallel@ MAX_NUM_SEQS=@max_num_seqs@
export MAX_MODEL_LEN=@max_model_len@ DTYPE=@dtype@ MEMORY_SHARE=@memory_share@ TRUST_REMOTE_CODE=@trust_remote_code@
export DRAFTER=@DRAFTER_PATH@
questions=@gsm8k_path@
sh in_container.sh -m @WORKSPACE@ -m @HF_LOCAL@ -m @TARGET_PATH@ -m @DRAFTER_PATH@ -m "${questions%/*}" \
  "$SERVE_PYTHON" accuracy.py --server-command 'exec sh vllm_server.sh {port} "$DRAFTER"' \
  --model @TARGET@ --drafter @DRAFTER_PATH@ --draft-tokens @draft_tokens@ --questions "$questions" \
  --samples @accuracy_samples@ --shots @accuracy_shots@ --seed @seed@ --stop Question: \
  --server-timeout @server_timeout@ --output accuracy.json
