"""Makes models that a real engine loads: a tiny target shaped like Qwen3, draft models, and DFlash heads for it.

    python3 tiny_qwen.py target|draft|dflash|random-dflash DIR --seed N [--noise X]

Nothing is trained. The target mostly goes on with a phrase: every token's embedding carries 32 points on the unit
circle, and one step along a phrase is one rotation of each, the same for all phrases; the output head knows the points
of the token before. Two layers of random weights push it off its phrase now and then, depending on all of its context.

So a good DFlash head can be written down. In a block the known token stands first and masks follow. Head h of its
attention looks exactly h places back: keys are all one vector and queries are that vector turned by -h places, so that
rotary embedding alone decides. It carries the points of what it sees there and turns them h - 1 steps on; masks and the
target's own hidden states carry none. So the mask at place i says what comes i tokens after the known one, as long as
the phrase goes on.

The same arguments give the same bytes. Needs numpy and nothing else.
"""

from __future__ import annotations

import argparse
import json
import os
import struct
import sys

import numpy as np

HIDDEN = 128
POINTS = 32
HEADS = 4
HEAD_DIM = 2 * POINTS
INNER = 192
LAYERS = 2
PHRASE = 16
PHRASES = 28
SPECIALS = ("<|end|>", "<|pad|>", "<|mask|>", "<|unknown|>")
WORDS = PHRASE * PHRASES
VOCABULARY = WORDS + len(SPECIALS)
END, PAD, MASK = WORDS, WORDS + 1, WORDS + 2
THETA = 10000.0
ONE, FLAG = HEAD_DIM, HEAD_DIM + 1
"""Places of the hidden state that say: this is a token; this is a mask. Behind them is room for noise."""

BLOCK = 8
_SHARP_PAIRS = 4
_SHARPNESS = 5.0**0.5
_STRAY = 1.1
"""How far the random layers push the target off its phrase."""

_CONTRAST = 1.5
PROMPT_TOKENS = (24, 40)


def seed_of(revision):
    """The seed that belongs to a pinned revision (40 hexadecimal digits)."""
    return int(revision[:7], 16)


def draw(seed, name):
    """A stream of random numbers of its own for each tensor; RandomState gives the same ones in every numpy."""
    return np.random.RandomState([seed, *name.encode("ascii")])


def matrix(seed, name, rows, columns, scale=1.0):
    return (draw(seed, name).standard_normal((rows, columns)) * scale / columns**0.5).astype(np.float32)


def points(seed):
    """The points of every word, shape (words, POINTS), and the turn of each point from one word to the next."""
    random = draw(seed, "points")
    step = np.exp(2j * np.pi * random.randint(1, PHRASE, POINTS) / PHRASE)
    begin = np.exp(2j * np.pi * random.random_sample((PHRASES, 1, POINTS)))
    return (begin * step ** np.arange(PHRASE)[None, :, None]).reshape(WORDS, POINTS), step


def flat(complex_points):
    return np.concatenate([complex_points.real, complex_points.imag], axis=-1).astype(np.float32)


def make_target(seed):
    """Tensors of the target."""
    words, step = points(seed)
    embedding = np.zeros((VOCABULARY, HIDDEN), np.float32)
    embedding[:WORDS, :HEAD_DIM] = flat(words)
    embedding[:, ONE] = 1.0
    embedding[MASK, FLAG] = 4.0
    head = matrix(seed, "head", VOCABULARY, HIDDEN, 0.02)
    head[:WORDS, :HEAD_DIM] = flat(words / step) * _CONTRAST / 2
    tensors = {"model.embed_tokens.weight": embedding, "lm_head.weight": head, "model.norm.weight": np.ones(HIDDEN)}
    for i in range(LAYERS):
        layer = random_layer(seed, f"model.layers.{i}", _STRAY)
        for name in ("self_attn.o_proj", "mlp.down_proj"):
            layer[f"model.layers.{i}.{name}.weight"][ONE : FLAG + 1] = 0.0
        tensors.update(layer)
    return tensors


def random_layer(seed, prefix, out):
    """A layer of random weights; `out` scales what it adds to the hidden state."""
    tensors = {}
    for name, rows, columns, scale in (
        ("self_attn.q_proj", HEADS * HEAD_DIM, HIDDEN, 1.0),
        ("self_attn.k_proj", HEAD_DIM, HIDDEN, 1.0),
        ("self_attn.v_proj", HEAD_DIM, HIDDEN, 1.0),
        ("self_attn.o_proj", HIDDEN, HEADS * HEAD_DIM, out),
        ("mlp.gate_proj", INNER, HIDDEN, 1.0),
        ("mlp.up_proj", INNER, HIDDEN, 1.0),
        ("mlp.down_proj", HIDDEN, INNER, out),
    ):
        tensors[f"{prefix}.{name}.weight"] = matrix(seed, f"{prefix}.{name}", rows, columns, scale)
    for name, size, value in (
        ("input_layernorm", HIDDEN, 1.0),
        ("post_attention_layernorm", HIDDEN, 1.0),
        ("self_attn.q_norm", HEAD_DIM, 1.5),
        ("self_attn.k_norm", HEAD_DIM, 1.5),
    ):
        tensors[f"{prefix}.{name}.weight"] = np.full(size, value)
    return tensors


def make_dflash(seed):
    """Tensors of the DFlash head that drafts as the target's phrases go on."""
    _, step = points(seed)
    tensors = make_random_dflash(seed)
    attention = "layers.0.self_attn"
    turn = np.arange(_SHARP_PAIRS)
    angles = THETA ** (-2.0 * turn / HEAD_DIM)
    query = np.zeros((HEADS, HEAD_DIM, HIDDEN), np.float32)
    key = np.zeros((HEAD_DIM, HIDDEN), np.float32)
    value = np.zeros((HEAD_DIM, HIDDEN), np.float32)
    out = np.zeros((HIDDEN, HEADS, HEAD_DIM), np.float32)
    key[turn, ONE] = 1.0
    value[:, :HEAD_DIM] = np.eye(HEAD_DIM)
    for h in range(HEADS):
        back = h + 1
        query[h, turn, ONE] = np.cos(back * angles)
        query[h, turn + POINTS, ONE] = -np.sin(back * angles)
        turned = step**h
        real, imaginary = np.diag(turned.real), np.diag(turned.imag)
        out[:HEAD_DIM, h] = np.block([[real, -imaginary], [imaginary, real]])
    combine = matrix(seed, "combine", HIDDEN, HIDDEN * LAYERS, 0.1)
    combine[: FLAG + 1] = 0.0
    combine[ONE, [ONE + HIDDEN * i for i in range(LAYERS)]] = 1.0
    tensors.update(
        {
            f"{attention}.q_proj.weight": query.reshape(HEADS * HEAD_DIM, HIDDEN),
            f"{attention}.k_proj.weight": key,
            f"{attention}.v_proj.weight": value,
            f"{attention}.o_proj.weight": out.reshape(HIDDEN, HEADS * HEAD_DIM),
            f"{attention}.q_norm.weight": np.full(HEAD_DIM, _SHARPNESS),
            f"{attention}.k_norm.weight": np.full(HEAD_DIM, _SHARPNESS),
            "layers.0.mlp.down_proj.weight": matrix(seed, "quiet", HIDDEN, INNER, 0.001),
            "fc.weight": combine,
        }
    )
    return tensors


def make_random_dflash(seed):
    """Tensors of a DFlash head that nobody trained."""
    tensors = random_layer(seed + 1000, "layers.0", 1.0)
    tensors["fc.weight"] = matrix(seed + 1000, "fc", HIDDEN, HIDDEN * LAYERS)
    return {**tensors, "hidden_norm.weight": np.ones(HIDDEN), "norm.weight": np.ones(HIDDEN)}


def add_noise(tensors, seed, amount):
    """Gaussian noise on every matrix, in standard deviations of its own values."""
    for name, values in tensors.items():
        if values.ndim > 1:
            noise = draw(seed, f"noise {name}").standard_normal(values.shape)
            tensors[name] = values + (noise * amount * values.std()).astype(np.float32)


def config(dflash):
    common = {
        "architectures": ["Qwen3ForCausalLM"], "model_type": "qwen3", "vocab_size": VOCABULARY, "hidden_size": HIDDEN,
        "intermediate_size": INNER, "num_hidden_layers": LAYERS, "num_attention_heads": HEADS,
        "num_key_value_heads": 1, "head_dim": HEAD_DIM, "hidden_act": "silu", "max_position_embeddings": 2048,
        "rms_norm_eps": 1e-6, "rope_theta": THETA, "attention_bias": False, "tie_word_embeddings": False,
        "initializer_range": 0.02, "use_cache": True, "eos_token_id": END, "pad_token_id": PAD, "bos_token_id": None,
        "torch_dtype": "float32", "dtype": "float32",
    }  # fmt: skip
    if not dflash:
        return common
    inner = {"mask_token_id": MASK, "target_layer_ids": list(range(LAYERS))}
    own = {"architectures": ["DFlashDraftModel"], "num_hidden_layers": 1, "block_size": BLOCK}
    return {**common, **own, "num_target_layers": LAYERS, "dflash_config": inner}


def tokenizer():
    words = [f"w{i:03d}" for i in range(WORDS)]
    special = [
        {"id": WORDS + i, "content": name, "special": True,
         "single_word": False, "lstrip": False, "rstrip": False, "normalized": False}
        for i, name in enumerate(SPECIALS)
    ]  # fmt: skip
    vocabulary = {name: i for i, name in enumerate([*words, *SPECIALS])}
    return {
        "version": "1.0", "truncation": None, "padding": None, "added_tokens": special, "normalizer": None,
        "pre_tokenizer": {"type": "WhitespaceSplit"}, "post_processor": None, "decoder": None,
        "model": {"type": "WordLevel", "vocab": vocabulary, "unk_token": SPECIALS[3]},
    }  # fmt: skip


def prompts(seed, count=64):
    """Prompts that begin somewhere in a phrase and go on with it, as token ids."""
    random = draw(seed, "prompts")
    made = []
    for i in range(count):
        phrase, at, length = random.randint(PHRASES), random.randint(PHRASE), random.randint(*PROMPT_TOKENS)
        ids = [int(phrase * PHRASE + (at + j) % PHRASE) for j in range(length)]
        made.append({"id": f"prompt-{i:02d}", "prompt": ids})
    return made


def write_safetensors(path, tensors):
    header, at = {"__metadata__": {"format": "pt"}}, 0
    data = {name: np.ascontiguousarray(tensors[name], "<f4").tobytes() for name in sorted(tensors)}
    for name, raw in data.items():
        header[name] = {"dtype": "F32", "shape": list(tensors[name].shape), "data_offsets": [at, at + len(raw)]}
        at += len(raw)
    head = json.dumps(header).encode("ascii")
    head += b" " * (-len(head) % 8)
    with open(path, "wb") as stream:
        stream.write(struct.pack("<Q", len(head)) + head)
        stream.writelines(data.values())


def make(kind, folder, seed, noise=0.0):
    """Write a model of a kind into a folder, which is made where it is missing.

    Raises:
        OSError: When it cannot be written.
    """
    makers = {"target": make_target, "draft": make_target, "dflash": make_dflash, "random-dflash": make_random_dflash}
    tensors = makers[kind](seed)
    if noise:
        add_noise(tensors, seed, noise)
    os.makedirs(folder, exist_ok=True)
    documents = {"config.json": config("dflash" in kind)}
    if "dflash" not in kind:
        names = {"tokenizer_class": "PreTrainedTokenizerFast", "eos_token": SPECIALS[0], "pad_token": SPECIALS[1]}
        documents["tokenizer.json"] = tokenizer()
        documents["tokenizer_config.json"] = {**names, "unk_token": SPECIALS[3], "model_max_length": 2048}
        documents["generation_config.json"] = {"eos_token_id": END, "pad_token_id": PAD, "do_sample": False}
    for name, document in documents.items():
        with open(os.path.join(folder, name), "w", encoding="ascii") as stream:
            json.dump(document, stream, indent=1)
    if kind == "target":
        with open(os.path.join(folder, "prompts.jsonl"), "w", encoding="ascii") as stream:
            stream.writelines(json.dumps(prompt) + "\n" for prompt in prompts(seed))
    write_safetensors(os.path.join(folder, "model.safetensors"), tensors)


def main():
    parser = argparse.ArgumentParser(description="Make a tiny model that a real engine loads.")
    parser.add_argument("kind", choices=("target", "draft", "dflash", "random-dflash"))
    parser.add_argument("folder")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--noise", type=float, default=0.0, help="in standard deviations of each matrix")
    args = parser.parse_args()
    make(args.kind, args.folder, args.seed, args.noise)
    return 0


if __name__ == "__main__":
    sys.exit(main())
