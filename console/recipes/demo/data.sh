# Texts that the target writes itself, with what its layers computed for every token.
set -eu
@PYTHON@ tiny_data.py --target @TARGET_PATH@ --texts @texts@ --length @text_length@ --seed @seed@ --output data.json
