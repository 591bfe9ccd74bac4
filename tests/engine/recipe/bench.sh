# A: the target alone. B: the same server with the frozen drafter. One at a time, on this node.
set -eu
export ENGINE=@engine_python@ TARGET=@TARGET@ TARGET_PATH=@TARGET_PATH@ DRAFTER=@DRAFTER_PATH@
export DRAFT_TOKENS=@draft_tokens@ MAX_NUM_SEQS=@max_num_seqs@ MAX_MODEL_LEN=@max_model_len@
@PYTHON@ bench.py \
  --server-a 'exec sh serve_vllm.sh {port}' --server-b 'exec sh serve_vllm.sh {port} "$DRAFTER"' \
  --model @TARGET@ --drafter @DRAFTER_PATH@ --draft-tokens @draft_tokens@ --manifest-sha256 @MANIFEST_SHA256@ \
  --prompts @TARGET_PATH@/prompts.jsonl --concurrency @concurrency@ --requests-per-point @requests_per_point@ \
  --rounds 1 --max-tokens @bench_max_tokens@ --exact-prompts @exact_prompts@ \
  --server-timeout @server_timeout@ --output bench.json --exact-output exact_match.json
