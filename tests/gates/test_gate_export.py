"""gate export: the drafter's configuration and weights, from a record and from a folder on this machine."""

from __future__ import annotations

import json
import math
import os
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gates.export import ExportExpected
from gates.export_folder import inspect, judge_folder
from gates.reading import ResultBytes
from gates.safetensors import SAMPLE_BYTES, TYPES, read_header, sample
from gates.verdict import FailureClass, Verdict
from tests.gates import passing
from tests.gates.passing import GONE, assert_fails, change, config, export_check, judge, target_config, the

INVALID = FailureClass.MEASUREMENT_INVALID
EXPORT = FailureClass.EXPORT_INVALID
UNSUPPORTED = FailureClass.MODEL_UNSUPPORTED


def judged(changes: dict[str, Any], expected: dict[str, Any] | None = None, algorithm: str = "dflash2") -> Verdict:
    return judge(
        "export",
        {"export_check": change(export_check(algorithm), changes)},
        {"algorithm": algorithm, **(expected or {})},
    )


@pytest.mark.parametrize("algorithm", ["dflash", "dflash2"])
def test_both_algorithms_pass(algorithm: str) -> None:
    verdict = judged({}, algorithm=algorithm)
    assert verdict.passed
    assert dict(verdict.facts) == {"producer": "test", "export_bytes": 25600, "tensors": 4 - (algorithm == "dflash")}


@pytest.mark.parametrize(
    ("changes", "failure_class", "checks"),
    [
        ({"token": "another"}, INVALID, {"token"}),
        ({"status": "error"}, EXPORT, {"status"}),
        ({"problems": ["no config.json"]}, EXPORT, {"problems"}),
        ({"export_path": "/elsewhere"}, INVALID, {"export_path"}),
        ({"lfs_pointer": True}, EXPORT, {"weights_present"}),
        ({"file.header_ok": False}, EXPORT, {"header"}),
        ({"file.size": 24999}, EXPORT, {"file_size", "weights_listed"}),
        ({"file": None}, EXPORT, {"field"}),
        ({"files[0].path": "settings.json"}, EXPORT, {"config_listed"}),
        ({"files[1].path": "other.safetensors"}, EXPORT, {"weights_listed"}),
        ({"files[1].size": 1}, EXPORT, {"weights_listed"}),
        ({"files[0].path": "../config.json"}, EXPORT, {"config_listed", "path_inside"}),
        ({"files[1].sha256": "0" * 63 + "G"}, EXPORT, {"field"}),
        ({"tensors": []}, EXPORT, {"field"}),
        ({"tensors[0].non_finite": 1}, EXPORT, {"tensors_finite"}),
        ({"tensors[0].constant": True}, EXPORT, {"tensors_vary"}),
        ({"tensors[0].sampled": 0}, EXPORT, {"tensors_sampled"}),
        ({"tensors[0].sampled": 4097}, EXPORT, {"tensors_sampled"}),
        ({"tensors[1].name": "fc.weight"}, EXPORT, {"tensors_once"}),
        ({"tensors[0].name": "dflash_module.fc.weight"}, EXPORT, {"tensor_names"}),
        ({"config": None}, EXPORT, {"field"}),
        ({"target_config": None}, EXPORT, {"field"}),
        (
            {"config.architectures": ["DFlashDraftModel"]},
            EXPORT,
            {"architecture_of_algorithm", "no_selector", "projector_type"},
        ),
        ({"config.architectures": ["DFlash3DraftModel"]}, EXPORT, {"architecture"}),
        ({"config.architectures": ["DFlash2DraftModel", "DFlashDraftModel"]}, EXPORT, {"architecture"}),
        ({"config.architectures": ["LlamaForCausalLMEagle3"]}, UNSUPPORTED, {"architecture"}),
        ({"config.architectures": "DFlash2DraftModel"}, EXPORT, {"field"}),
        ({"config.dflash_config.projector_type": "dspark"}, EXPORT, {"projector_type"}),
        ({"config.dflash_config.selector_rank": GONE}, EXPORT, {"field"}),
        ({"config.dflash_config.conv_kernel_size": 0}, EXPORT, {"field"}),
        ({"config.dflash_config.block_size": 16}, EXPORT, {"block_sizes"}),
        ({"config.dflash_config.mask_token_id": 256}, EXPORT, {"mask_token_id"}),
        ({"config.dflash_config.mask_token_id": -1}, EXPORT, {"field"}),
        ({"config.dflash_config.target_layer_ids": [1, 4]}, EXPORT, {"target_layers_within"}),
        ({"config.dflash_config.target_layer_ids": [1, 1]}, EXPORT, {"target_layers_once"}),
        ({"config.dflash_config.target_layer_ids": []}, EXPORT, {"field"}),
        ({"config.num_target_layers": 5}, EXPORT, {"num_target_layers"}),
        ({"config.vocab_size": 257}, EXPORT, {"vocab_size_of_target"}),
        ({"config.hidden_size": 128}, EXPORT, {"hidden_size_of_target"}),
        ({"config.rope_theta": 1000000.0}, EXPORT, {"rope_theta_of_target"}),
        ({"config.rope_theta": "10000"}, EXPORT, {"rope_theta"}),
        ({"config.rope_theta": GONE}, EXPORT, {"rope_theta"}),
        ({"config.rope_theta": 0}, EXPORT, {"rope_theta"}),
        ({"config.rope_parameters": {"rope_theta": 1000000.0}}, EXPORT, {"rope_theta"}),
        ({"target_config.rope_theta": GONE}, EXPORT, {"target_rope_theta"}),
        ({"target_config.vocab_size": 0}, EXPORT, {"field"}),
    ],
)
def test_each_check_fails_alone(changes: dict[str, Any], failure_class: FailureClass, checks: set[str]) -> None:
    assert_fails(judged(changes), failure_class, *checks)


def test_an_older_head_declared_for_the_newer_one_is_refused_both_ways() -> None:
    """An engine would load it, and leave out selector and convolution without a word."""
    newer = judge("export", {"export_check": export_check("dflash2")}, {"algorithm": "dflash"})
    older = judge("export", {"export_check": export_check("dflash")}, {"algorithm": "dflash2"})
    assert "architecture_of_algorithm" in passing.names(newer)
    assert passing.names(older) == {"architecture_of_algorithm"}


@pytest.mark.parametrize(("k", "passed"), [(7, True), (8, False), (1, True)])
def test_a_block_drafts_one_token_less_than_its_size(k: int, passed: bool) -> None:
    verdict = judged({}, {"draft_tokens": k})
    assert passing.names(verdict) == (set() if passed else {"block_size"})


@pytest.mark.parametrize(
    ("changes", "passed"),
    [
        ({"config.block_size": GONE}, True),
        ({"config.dflash_config.block_size": GONE}, True),
        ({"config.block_size": GONE, "config.dflash_config.block_size": GONE}, False),
        ({"config.dflash_config.projector_type": GONE}, True),
        ({"config.num_target_layers": GONE}, True),
        ({"config.rope_theta": GONE, "config.rope_parameters": {"rope_theta": 10000.0, "rope_type": "default"}}, True),
        ({"target_config.rope_theta": GONE, "target_config.rope_parameters": {"rope_theta": 10000}}, True),
        (
            {
                "target_config.rope_theta": GONE,
                "target_config.rope_parameters": {
                    "full_attention": {"rope_theta": 1e6},
                    "sliding_attention": {"rope_theta": 1e4},
                },
            },
            True,
        ),
        ({"target_config": {"architectures": ["TwoPart"], "text_config": target_config()}}, True),
        ({"tensors[0].sampled": 1}, True),
        ({"tensors[0].shape": [1, 1], "tensors[0].sampled": 1, "tensors[0].constant": True}, True),
        ({"tensors[0].shape": [0, 64], "tensors[0].sampled": 0}, True),
        ({"tensors[0].shape": [1] * 15 + [4096]}, True),
        ({"tensors[0].shape": [1] * 16 + [4096]}, False),
        ({"target_config": {"architectures": ["TwoPart"], "text_config": {"vocab_size": 256}}}, False),
    ],
)
def test_other_ways_to_state_the_same(changes: dict[str, Any], passed: bool) -> None:
    assert judged(changes).passed is passed


def test_a_norm_may_be_constant_and_a_matrix_may_not() -> None:
    assert judged({"tensors[3].constant": True}).passed
    verdict = judged({"tensors[2].constant": True})
    assert the(verdict, "tensors_vary").measured == "candidate_selector.predecessor_codebook"


def test_shapes_without_end_do_not_slow_anything_down() -> None:
    assert not judged({"tensors[0].shape": [10**14] * 10**5}).passed


# A folder on this machine -------------------------------------------------------------------------------------------


def encoded(dtype: str, numbers: list[float]) -> bytes:
    if dtype == "BF16":
        return b"".join(struct.pack("<f", number)[2:] for number in numbers)
    return struct.pack(f"<{len(numbers)}{ {'F64': 'd', 'F32': 'f', 'F16': 'e'}[dtype] }", *numbers)


def weights(tensors: dict[str, tuple[str, list[int], bytes]]) -> bytes:
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    at, body = 0, b""
    for name, (dtype, shape, data) in tensors.items():
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [at, at + len(data)]}
        at, body = at + len(data), body + data
    text = json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + body


def good_tensors() -> dict[str, tuple[str, list[int], bytes]]:
    numbers = [math.sin(i) for i in range(64)]
    return {
        "fc.weight": ("F32", [8, 8], encoded("F32", numbers)),
        "layers.0.mlp.weight": ("BF16", [8, 8], encoded("BF16", numbers)),
        "candidate_selector.weight": ("F16", [8, 8], encoded("F16", numbers)),
        "norm.weight": ("F32", [8], encoded("F32", [1.0] * 8)),
    }


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "export"
    made.mkdir()
    (made / "config.json").write_text(json.dumps(config()))
    (made / "model.safetensors").write_bytes(weights(good_tensors()))
    return made


TARGET_CONFIG = ResultBytes("target.json", json.dumps(target_config()).encode())
EXPECTED = ExportExpected(algorithm="dflash2", draft_tokens=4)


def test_a_good_folder_passes_with_and_without_its_target(folder: Path) -> None:
    assert judge_folder(folder, TARGET_CONFIG, EXPECTED).passed
    verdict = judge_folder(folder, None, EXPECTED)
    assert verdict.passed
    assert dict(verdict.facts)["export_bytes"] == sum(path.stat().st_size for path in folder.iterdir())
    assert not any("target" in check.name and check.name.endswith("of_target") for check in verdict.checks)


def _rewrite(change_it: Callable[[bytes], bytes]) -> Callable[[Path], None]:
    def apply(folder: Path) -> None:
        path = folder / "model.safetensors"
        path.write_bytes(change_it(path.read_bytes()))

    return apply


def _tensors(**changed: tuple[str, list[int], bytes]) -> Callable[[Path], None]:
    return _rewrite(lambda _: weights({**good_tensors(), **changed}))


LFS = b"version https://git-lfs.github.com/spec/v1\noid sha256:" + b"0" * 64 + b"\nsize 123\n"
BROKEN: list[tuple[str, Callable[[Path], None], str]] = [
    ("no weights", lambda folder: (folder / "model.safetensors").unlink(), "problems"),
    ("no config", lambda folder: (folder / "config.json").unlink(), "problems"),
    ("config cut off", lambda folder: (folder / "config.json").write_text('{"hidden_size": 64'), "problems"),
    ("config with NaN", lambda folder: (folder / "config.json").write_text('{"rope_theta": NaN}'), "problems"),
    ("weights cut off", _rewrite(lambda data: data[:-1]), "file_size"),
    ("weights too long", _rewrite(lambda data: data + b"\0"), "file_size"),
    ("weights empty", _rewrite(lambda data: b""), "problems"),
    ("header cut off", _rewrite(lambda data: data[:40]), "header"),
    ("LFS pointer", _rewrite(lambda data: LFS), "weights_present"),
    ("error page", _rewrite(lambda data: b"<html><body>502 Bad Gateway</body></html>"), "header"),
    ("error body", _rewrite(lambda data: b'{"error": "not found"}'), "header"),
    ("duplicate tensor", _rewrite(lambda data: data.replace(b"fc.weight", b"norm.weigh", 1)), "header"),
    ("NaN", _tensors(**{"fc.weight": ("F32", [8, 8], encoded("F32", [*range(63), math.nan]))}), "tensors_finite"),
    (
        "infinity",
        _tensors(**{"fc.weight": ("BF16", [8, 8], encoded("BF16", [-math.inf, *range(63)]))}),
        "tensors_finite",
    ),
    ("constant", _tensors(**{"fc.weight": ("F16", [8, 8], encoded("F16", [0.5] * 64))}), "tensors_vary"),
    ("odd dtype", _tensors(**{"fc.weight": ("F4", [8, 8], b"\0" * 32)}), "header"),
    ("wrong shape", _tensors(**{"fc.weight": ("F32", [8, 9], b"\0" * 256)}), "header"),
    ("a pipe", lambda folder: os.mkfifo(folder / "pipe"), "problems"),
    ("a dead link", lambda folder: (folder / "link").symlink_to("nowhere"), "problems"),
]


@pytest.mark.parametrize(("spoil", "check"), [case[1:] for case in BROKEN], ids=[case[0] for case in BROKEN])
def test_a_broken_folder_is_refused(folder: Path, spoil: Callable[[Path], None], check: str) -> None:
    spoil(folder)
    verdict = judge_folder(folder, TARGET_CONFIG, EXPECTED)
    assert not verdict.passed
    assert verdict.failure_class is EXPORT, verdict.detail
    assert check in passing.names(verdict)
    assert verdict.readable


def test_a_folder_that_is_not_there_cannot_be_read(tmp_path: Path) -> None:
    verdict = judge_folder(tmp_path / "nothing", TARGET_CONFIG, EXPECTED)
    assert not verdict.readable
    assert verdict.failure_class is FailureClass.RESULT_MISSING
    assert "No such file" in verdict.detail


def test_a_target_configuration_that_cannot_be_read(folder: Path) -> None:
    verdict = judge_folder(folder, ResultBytes("target.json", None, "Permission denied"), EXPECTED)
    assert not verdict.readable
    assert verdict.failure_class is FailureClass.USER_CONFIG_ERROR
    assert "Permission denied" in verdict.detail


def test_a_deeply_nested_configuration_never_raises(folder: Path) -> None:
    (folder / "config.json").write_text('{"a":' * 900 + "1" + "}" * 900)
    assert not judge_folder(folder, TARGET_CONFIG, EXPECTED).passed


def test_a_folder_makes_the_same_record_as_the_documented_file(folder: Path) -> None:
    record = inspect(folder, target_config())
    assert record.keys() == export_check().keys()
    assert record["tensors"][0].keys() == export_check()["tensors"][0].keys()
    assert record["file"].keys() == export_check()["file"].keys()
    assert record["files"][0].keys() == export_check()["files"][0].keys()


@given(data=st.binary(max_size=120))
@settings(max_examples=60, deadline=None)
def test_no_bytes_of_a_weights_file_raise(tmp_path_factory: pytest.TempPathFactory, data: bytes) -> None:
    path = tmp_path_factory.getbasetemp() / "any.safetensors"
    path.write_bytes(len(data).to_bytes(8, "little") + data)
    with open(path, "rb") as stream:
        header = read_header(stream, len(data) + 8)
    assert header.problems
    path.write_bytes(data)
    with open(path, "rb") as stream:
        assert read_header(stream, len(data)).problems


@given(
    numbers=st.lists(st.floats(width=16), min_size=1, max_size=40), dtype=st.sampled_from(["F16", "F32", "F64", "BF16"])
)
@settings(max_examples=100, deadline=None)
def test_numbers_are_decoded_by_their_bits(
    tmp_path_factory: pytest.TempPathFactory, numbers: list[float], dtype: str
) -> None:
    path = tmp_path_factory.getbasetemp() / "numbers.safetensors"
    path.write_bytes(weights({"t": (dtype, [len(numbers)], encoded(dtype, numbers))}))
    with open(path, "rb") as stream:
        header = read_header(stream, path.stat().st_size)
        assert not header.problems
        seen = sample(stream, header.start, header.tensors[0])
    assert seen.sampled == len(numbers)
    assert seen.non_finite == sum(not math.isfinite(number) for number in numbers)


@pytest.mark.parametrize(
    ("dtype", "byte", "finite"),
    [
        ("F8_E4M3", 0x7F, False),
        ("F8_E4M3", 0xFF, False),
        ("F8_E4M3", 0x7E, True),
        ("F8_E5M2", 0x7C, False),
        ("F8_E5M2", 0x7B, True),
        ("I8", 0xFF, True),
        ("U8", 0xFF, True),
        ("BOOL", 1, True),
    ],
)
def test_small_numbers(tmp_path: Path, dtype: str, byte: int, finite: bool) -> None:
    path = tmp_path / "small.safetensors"
    path.write_bytes(weights({"t": (dtype, [2, 2], bytes([byte, 1, 2, 3]))}))
    with open(path, "rb") as stream:
        header = read_header(stream, path.stat().st_size)
        assert (sample(stream, header.start, header.tensors[0]).non_finite == 0) is finite


@pytest.mark.parametrize("dtype", ["F32", "BF16"])
@pytest.mark.parametrize("place", [0, 0.5, 1])
def test_large_tensors_are_sampled_at_both_ends_and_in_the_middle(tmp_path: Path, dtype: str, place: float) -> None:
    count = SAMPLE_BYTES
    size = TYPES[dtype].size
    data = bytearray(encoded(dtype, [1.0]) * count)
    at = min(int(count * place), count - 1) * size
    data[at : at + size] = encoded(dtype, [math.nan])
    path = tmp_path / "large.safetensors"
    path.write_bytes(weights({"t": (dtype, [count], bytes(data))}))
    with open(path, "rb") as stream:
        header = read_header(stream, path.stat().st_size)
        seen = sample(stream, header.start, header.tensors[0])
    assert seen.non_finite == 1
    assert not seen.constant
    assert 0 < seen.sampled <= SAMPLE_BYTES // size
