# Train and export the drafter. The export is checked even after a training that failed: both results are judged.
set -eu
fault=
case @FAIL@ in
  export | draft-head | freeze) fault=@FAIL@ ;;
esac
status=0
@PYTHON@ tiny_train.py --target @TARGET_PATH@ --data @DATA_DIR@/data.safetensors --algorithm @ALGORITHM@ \
  --draft-tokens @draft_tokens@ --export-path @EXPORT_PATH@ --steps @train_steps@ --batch @train_batch@ \
  --rate @learning_rate@ --seed @seed@ --log-every @log_every@ --fault "$fault" \
  --progress progress.json --output regression_check.json || status=$?
@PYTHON@ check_export.py @EXPORT_PATH@ --target @TARGET_PATH@ --output export_check.json || status=$?
exit "$status"
