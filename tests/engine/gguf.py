"""Writes the tiny target, or a draft model for it, as a GGUF file, which is what llama.cpp serves.

The format: a head, keys with typed values, a table of tensors, then the tensors, each at a multiple of 32 bytes. Sizes
of a tensor are written with the fastest first, so the other way round than numpy has them.
"""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import numpy as np

from tests.engine.recipe import tiny_qwen as tiny

U32, I32, F32, TEXT, LIST = 4, 5, 6, 8, 9
ALIGNMENT = 32
NORMAL, CONTROL = 1, 3
"""Kinds of tokens."""

NAMES = {
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "self_attn.q_norm": "attn_q_norm",
    "self_attn.k_norm": "attn_k_norm",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
    "input_layernorm": "attn_norm",
    "post_attention_layernorm": "ffn_norm",
    "model.embed_tokens": "token_embd",
    "model.norm": "output_norm",
    "lm_head": "output",
}


def write(path: Path, seed: int, noise: float = 0.0, *, other_words: bool = False) -> None:
    """Write a model.

    Args:
        path: The file.
        seed: As in `tiny_qwen`.
        noise: On every matrix, in standard deviations of its own values.
        other_words: Spell the vocabulary in another way, so that it is not the target's.
    """
    tensors = tiny.make_target(seed)
    if noise:
        tiny.add_noise(tensors, seed, noise)
    keys = settings("v" if other_words else "w")
    head = struct.pack("<4sIQQ", b"GGUF", 3, len(tensors), len(keys))
    head += b"".join(text(name) + value for name, value in keys.items())
    at = 0
    data = []
    for name, values in tensors.items():
        raw = np.ascontiguousarray(values, "<f4").tobytes()
        sizes = values.shape[::-1]
        head += text(named(name)) + struct.pack(f"<I{len(sizes)}QIQ", len(sizes), *sizes, 0, at)
        data.append(raw + bytes(-len(raw) % ALIGNMENT))
        at += len(data[-1])
    path.write_bytes(head + bytes(-len(head) % ALIGNMENT) + b"".join(data))


def named(name: str) -> str:
    """`model.layers.0.self_attn.q_proj.weight` as `blk.0.attn_q.weight`."""
    inner = name.removesuffix(".weight")
    if inner in NAMES:
        return f"{NAMES[inner]}.weight"
    number, _, part = inner.removeprefix("model.layers.").partition(".")
    return f"blk.{number}.{NAMES[part]}.weight"


def settings(letter: str) -> dict[str, bytes]:
    """Every key with its typed value."""
    words = [f"{letter}{i:03d}" for i in range(tiny.WORDS)]
    kinds = [NORMAL] * tiny.WORDS + [CONTROL] * len(tiny.SPECIALS)
    numbers: dict[str, int] = {
        "context_length": 2048,
        "embedding_length": tiny.HIDDEN,
        "block_count": tiny.LAYERS,
        "feed_forward_length": tiny.INNER,
        "attention.head_count": tiny.HEADS,
        "attention.head_count_kv": 1,
        "attention.key_length": tiny.HEAD_DIM,
        "attention.value_length": tiny.HEAD_DIM,
    }
    return {
        "general.architecture": typed(TEXT, "qwen3"),
        **{f"qwen3.{name}": typed(U32, number) for name, number in numbers.items()},
        "qwen3.attention.layer_norm_rms_epsilon": typed(F32, 1e-6),
        "qwen3.rope.freq_base": typed(F32, tiny.THETA),
        "tokenizer.ggml.model": typed(TEXT, "gpt2"),
        "tokenizer.ggml.pre": typed(TEXT, "default"),
        "tokenizer.ggml.tokens": listed(TEXT, [*words, *tiny.SPECIALS]),
        "tokenizer.ggml.token_type": listed(I32, kinds),
        "tokenizer.ggml.merges": listed(TEXT, [f"{letter} 0"]),
        "tokenizer.ggml.eos_token_id": typed(U32, tiny.END),
        "tokenizer.ggml.padding_token_id": typed(U32, tiny.PAD),
    }


def text(value: str) -> bytes:
    raw = value.encode()
    return struct.pack("<Q", len(raw)) + raw


def bare(kind: int, value: Any) -> bytes:
    return text(value) if kind == TEXT else struct.pack({U32: "<I", I32: "<i", F32: "<f"}[kind], value)


def typed(kind: int, value: Any) -> bytes:
    return struct.pack("<I", kind) + bare(kind, value)


def listed(kind: int, values: list[Any]) -> bytes:
    return struct.pack("<IIQ", LIST, kind, len(values)) + b"".join(bare(kind, value) for value in values)
