"""Stages the tiny target: makes it at a pinned revision, as a folder like a snapshot from a model hub.

    python3 tiny_target.py --target NAME --revision HEX --path DIR [--output stage_target.json]

The revision is the seed: the same 40 digits give the same model everywhere. Its weights are random but for one thing:
the output head is the embedding, shifted by one place along each phrase of the vocabulary. So the model tends to go on
with a phrase, as far as what it reads in its context does not push it elsewhere.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import sys
import tempfile
from typing import TYPE_CHECKING, Any, Dict, List, Sequence

import numpy as np

if TYPE_CHECKING:
    from backends.payloads import tiny_model, tiny_tensors, tiny_vocabulary
    from backends.payloads.results import write_by_rename, write_result
    from backends.payloads.tiny_model import Array, Ids
else:
    import tiny_model
    import tiny_tensors
    import tiny_vocabulary
    from results import write_by_rename, write_result

PRODUCER = "tiny_target"
PROMPTS = "prompts.jsonl"
PROMPT_COUNT = 64
PROMPT_START = 8
"""Tokens of a prompt or training text that are drawn at random; the target itself goes on from there."""

SIZES = tiny_model.Sizes(
    hidden_size=64,
    num_hidden_layers=12,
    num_attention_heads=1,
    head_dim=64,
    intermediate_size=64,
    vocab_size=512,
    max_position_embeddings=256,
    rope_theta=10000.0,
)
_ATTENTION_STRENGTH = 3.0
"""How far context can push a token off its phrase: at 2.5 the target hardly ever leaves one, at 4 it does mostly."""

_MLP_STRENGTH = 1.0
_SHARPNESS = 4.0
"""Scale of the scores of attention: how few positions it picks."""

_LOGIT_SCALE = 2.0
_PROMPT_LENGTHS = (96, 112)
_HELD_OUT = 1


def make_config() -> Dict[str, Any]:
    """`config.json` of the target."""
    return {
        "architectures": [tiny_model.ARCHITECTURE],
        "model_type": "tiny_target",
        **SIZES._asdict(),
        "num_key_value_heads": SIZES.num_attention_heads,
        "hidden_act": "silu",
        "rms_norm_eps": tiny_model.RMS_NORM_EPS,
        "rope_scaling": None,
        "tie_word_embeddings": False,
        "torch_dtype": "float32",
        "pad_token_id": tiny_vocabulary.PAD,
        "bos_token_id": tiny_vocabulary.BOS,
        "eos_token_id": tiny_vocabulary.EOS,
        "mask_token_id": tiny_vocabulary.MASK,
    }


def make_weights(revision: str) -> tiny_tensors.Tensors:
    """All weights of the target at a revision (40 hexadecimal digits)."""
    # RandomState gives the same numbers in every version of numpy; the newer generators do not promise that.
    random = np.random.RandomState(int(revision[:8], 16))
    hidden, inner = SIZES.hidden_size, SIZES.intermediate_size
    ones = np.ones(hidden, np.float32)

    def matrix(rows: int, columns: int, scale: float = 1.0) -> Array:
        drawn: Array = random.standard_normal((rows, columns)).astype(np.float32)
        return drawn * np.float32(scale / columns**0.5)

    embedding, head = _embedding_and_head(random)
    tensors = {"model.embed_tokens.weight": embedding, "lm_head.weight": head, "model.norm.weight": ones}
    depth = SIZES.num_hidden_layers**0.5
    for i in range(SIZES.num_hidden_layers):
        attention, mlp = f"model.layers.{i}.self_attn.", f"model.layers.{i}.mlp."
        for name in "qkv":
            tensors[f"{attention}{name}_proj.weight"] = matrix(hidden, hidden)
        tensors[f"{attention}o_proj.weight"] = matrix(hidden, hidden, _ATTENTION_STRENGTH / depth)
        tensors[f"{attention}q_norm.weight"] = np.full(SIZES.head_dim, _SHARPNESS, np.float32)
        tensors[f"{attention}k_norm.weight"] = np.ones(SIZES.head_dim, np.float32)
        for name in ("gate", "up"):
            tensors[f"{mlp}{name}_proj.weight"] = matrix(inner, hidden)
        tensors[f"{mlp}down_proj.weight"] = matrix(hidden, inner, _MLP_STRENGTH / depth)
        tensors[f"model.layers.{i}.input_layernorm.weight"] = ones
        tensors[f"model.layers.{i}.post_attention_layernorm.weight"] = ones
    return tensors


def _embedding_and_head(random: np.random.RandomState) -> tuple[Array, Array]:
    """Embedding and output head: one step along a phrase is one rotation, the same for all phrases."""
    hidden = SIZES.hidden_size
    embedding = random.standard_normal((SIZES.vocab_size, hidden))
    phrases = np.array(tiny_vocabulary.phrases())
    length = tiny_vocabulary.PHRASE_LENGTH
    turns = random.randint(1, length, hidden // 2)
    begin = random.standard_normal((len(phrases), hidden // 2, 2)).view(np.complex128)[..., 0]
    places = np.exp(2j * np.pi * turns * np.arange(length)[:, None] / length)
    words = begin[:, None] * places
    embedding[phrases] = np.concatenate([words.real, words.imag], axis=-1)
    embedding *= (hidden**0.5) / np.linalg.norm(embedding, axis=1, keepdims=True)
    head = np.zeros_like(embedding)
    head[np.roll(phrases, -1, axis=1)] = embedding[phrases] * (_LOGIT_SCALE / hidden**0.5)
    return embedding.astype(np.float32), head.astype(np.float32)


def starts(seed: Sequence[int], count: int) -> Ids:
    """Random beginnings of texts: `PROMPT_START` words each, shape (count, PROMPT_START)."""
    random = np.random.RandomState(list(seed))
    return random.randint(tiny_vocabulary.FIRST_WORD, SIZES.vocab_size, (count, PROMPT_START)).astype(np.int64)


def make_prompts(target: tiny_model.Target, revision: str) -> List[Dict[str, Any]]:
    """Held-out prompts: texts that the target itself would write, as token ids."""
    shortest, longest = _PROMPT_LENGTHS
    seed = int(revision[:8], 16)
    begun = starts((_HELD_OUT, seed), PROMPT_COUNT)
    texts, _ = tiny_model.continue_greedily(target, begun, longest - PROMPT_START)
    lengths = np.random.RandomState(seed).randint(shortest, longest + 1, PROMPT_COUNT)
    return [
        {"id": f"held-out-{i:02d}", "prompt": text[:length]}
        for i, (text, length) in enumerate(zip(texts.tolist(), lengths.tolist()))
    ]


def make_snapshot(folder: str, revision: str) -> None:
    """Write the whole target into an empty folder.

    Raises:
        OSError: When it cannot be written.
    """
    config, tensors = make_config(), make_weights(revision)
    write_by_rename(os.path.join(folder, tiny_model.CONFIG), (json.dumps(config, indent=1) + "\n").encode("ascii"))
    names = sorted(tensors)
    layers = [name for name in names if name.startswith("model.layers.")]
    tiny_tensors.save_shards(folder, tensors, [layers, [name for name in names if name not in layers]])
    tiny_vocabulary.Vocabulary(tiny_vocabulary.all_tokens()).save(folder)
    prompts = make_prompts(tiny_model.Target(config, tensors), revision)
    lines = "".join(json.dumps(prompt) + "\n" for prompt in prompts)
    write_by_rename(os.path.join(folder, PROMPTS), lines.encode("ascii"))


def stage(path: str, revision: str) -> str:
    """Make the target in a temporary folder beside its place, and rename it there.

    Returns:
        What was done, in words.

    Raises:
        ValueError: When the revision is not pinned.
        OSError: When it cannot be written.
    """
    if not re.fullmatch(r"[0-9a-f]{40}", revision):
        raise ValueError(f"revision {revision!r} is no pinned revision: 40 hexadecimal digits")
    if os.path.lexists(path):
        return "it was there already"
    parent = os.path.dirname(os.path.abspath(path))
    os.makedirs(parent, exist_ok=True)
    temporary = tempfile.mkdtemp(prefix=f".{os.path.basename(path)}.", dir=parent)
    try:
        make_snapshot(temporary, revision)
        os.chmod(temporary, 0o755)
        os.rename(temporary, path)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
    return "made"


def main() -> int:
    """Stage the target as the command line says; the result file is written in any case."""
    parser = argparse.ArgumentParser(description="Make the tiny target at a pinned revision.")
    parser.add_argument("--target", required=True, help="its name, for the record")
    parser.add_argument("--revision", required=True, help="40 hexadecimal digits")
    parser.add_argument("--path", required=True, help="folder to make")
    parser.add_argument("--output", default="stage_target.json")
    args = parser.parse_args()
    body: Dict[str, Any] = {"status": "ok", "http_status": None, "error": "", "target": args.target}
    body.update(revision=args.revision, path=os.path.abspath(args.path), files=[])
    try:
        body["detail"] = stage(args.path, args.revision)
        body["files"] = [
            {"path": name, "size": os.path.getsize(os.path.join(args.path, name))}
            for name in sorted(os.listdir(args.path))
        ]
    except (OSError, ValueError) as error:
        body.update(status="error", error=str(error))
    write_result(args.output, PRODUCER, body)
    print(f"{args.path}: {body['error'] or body['detail']}")
    return 0 if body["status"] == "ok" else 1


if __name__ == "__main__":
    sys.exit(main())
