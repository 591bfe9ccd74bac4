# What the drafter that exists already holds.
set -eu
@PYTHON@ check_export.py @EXPORT_DIR@ --target @TARGET_PATH@ --output export_check.json
