# Download the target at its pinned revision to where the cluster keeps its models, then look whether it is whole.
set -eu
status=0
@PYTHON@ stage_target.py --target @TARGET@ --revision @REVISION@ --path @TARGET_PATH@ --hub @hub@ \
  --workers @download_workers@ --output stage_target.json || status=$?
# Without a download there is nothing to check, and the gate needs no check then.
if [ "$status" = 0 ]; then
  @PYTHON@ check_target.py @TARGET_PATH@ --output target_check.json || status=$?
fi
exit "$status"
