# Freeze the export: copy, prove the copy, make it read-only.
set -eu
@PYTHON@ freeze.py @EXPORT_DIR@ @DRAFTER_PATH@ --output freeze.json
