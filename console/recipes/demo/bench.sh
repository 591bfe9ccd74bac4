# A: the target alone. B: the same server with the frozen drafter. One at a time, on this node.
set -eu
export PYTHON=@PYTHON@ TARGET=@TARGET@ TARGET_PATH=@TARGET_PATH@ MAX_NUM_SEQS=@max_num_seqs@
export DRAFTER=@DRAFTER_PATH@ DRAFT_TOKENS=@draft_tokens@ FAULT=
case @FAIL@ in
  # Both servers get it, so that their settings stay the same; only one that drafts can run into it.
  bench) FAULT=draft-batch ;;
esac
@PYTHON@ bench.py \
  --server-a 'exec "$PYTHON" tiny_server.py --model "$TARGET_PATH" --served-model-name "$TARGET" --port {port} --max-num-seqs "$MAX_NUM_SEQS" --fault "$FAULT"' \
  --server-b 'exec "$PYTHON" tiny_server.py --model "$TARGET_PATH" --served-model-name "$TARGET" --port {port} --max-num-seqs "$MAX_NUM_SEQS" --fault "$FAULT" --drafter "$DRAFTER" --draft-tokens "$DRAFT_TOKENS"' \
  --model @TARGET@ --drafter @DRAFTER_PATH@ --draft-tokens @draft_tokens@ --manifest-sha256 @MANIFEST_SHA256@ \
  --prompts @TARGET_PATH@/prompts.jsonl --concurrency @concurrency@ --requests-per-point @requests_per_point@ \
  --rounds @bench_rounds@ --max-tokens @bench_max_tokens@ --exact-prompts @exact_prompts@ \
  --server-timeout @server_timeout@ --output bench.json --exact-output exact_match.json
