# Make the tiny target where the cluster keeps its models, then look whether it is whole.
set -eu
@PYTHON@ stage.py --target @TARGET@ --revision @REVISION@ --path @TARGET_PATH@ --output stage_target.json
@PYTHON@ check_target.py @TARGET_PATH@ --output target_check.json
