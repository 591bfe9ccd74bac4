"""What a training would only trip over on its GPUs is found before; which conversations it gets is the seed's."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from backends.payloads.training_plan import Wanted, plan, template_problem
from gates.registry import run as run_gate
from gates.verdict import Verdict
from tests.payloads.running import TOKEN, result, run

CONFIG: dict[str, Any] = {
    "hidden_size": 4096, "vocab_size": 151936, "num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": 128,
    "intermediate_size": 12288,
}  # fmt: skip
WANTED = Wanted("dflash2", 16, 7, 4096, 151669, 0, 16)
ARCHITECTURE = "dflash.dflash_architecture_config"
TEMPLATE = "{% for m in messages %}{%- generation -%}{{ m.content }}{% endgeneration %}{% endfor %}"


def conversation(number: int, answer: str = "It is so.") -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": f"Is it {number}?"}, {"role": "assistant", "content": answer}]}


class Preparing:
    """Runs the program over a source and a target of a test."""

    def __init__(self, root: Path) -> None:
        self.root = root / "job"
        self.root.mkdir()
        self.target = root / "a target"
        self.target.mkdir()
        (self.target / "config.json").write_text(json.dumps(CONFIG))
        (self.target / "tokenizer_config.json").write_text(json.dumps({"chat_template": TEMPLATE}))
        self.source = root / "conversations.jsonl"
        self.write(*(conversation(number) for number in range(40)))

    def write(self, *rows: Any) -> None:
        self.source.write_text("".join(f"{row if isinstance(row, str) else json.dumps(row)}\n" for row in rows))

    def judge(self, **changes: Any) -> Verdict:
        given = {
            "source": self.source, "samples": 10, "target": self.target, "algorithm": "dflash2", "block_size": 16,
            "draft_tokens": 7, "sequence_length": 4096, "mask_token_id": 151669, "conv_group_size": 16, **changes,
        }  # fmt: skip
        words = [word for name, value in given.items() for word in (f"--{name.replace('_', '-')}", value)]
        run("prepare_training.py", *words, cwd=self.root)
        return run_gate("data", {"data": (self.root / "data.json").read_bytes()}, {"token": TOKEN})

    @property
    def written(self) -> dict[str, Any]:
        return result(self.root / "data.json")


@pytest.fixture
def preparing(tmp_path: Path) -> Preparing:
    return Preparing(tmp_path)


def test_a_training_is_prepared_and_passes_its_gate(preparing: Preparing) -> None:
    verdict = preparing.judge()
    assert verdict.passed, verdict.detail
    rows = (preparing.root / "train.jsonl").read_text().splitlines()
    source = preparing.source.read_text().splitlines()
    assert len(rows) == 10
    assert [source.index(row) for row in rows] == sorted(source.index(row) for row in rows)
    assert (preparing.written["sequences"], preparing.written["tokens"]) == (10, 60)
    assert (preparing.root / "overrides.txt").read_text().splitlines() == [
        f"{ARCHITECTURE}.num_attention_heads=32",
        f"{ARCHITECTURE}.num_key_value_heads=8",
        f"{ARCHITECTURE}.head_dim=128",
        f"{ARCHITECTURE}.intermediate_size=12288",
    ]


def test_the_choice_follows_from_the_seed_alone(preparing: Preparing) -> None:
    chosen = []
    for seed in (0, 0, 1):
        assert preparing.judge(seed=seed).passed
        chosen.append(preparing.written["sha256"])
    assert chosen[0] == chosen[1] != chosen[2]
    # Fixed for good: a change of it would change every release that is repeated.
    assert preparing.judge(samples=3).passed
    rows = (preparing.root / "train.jsonl").read_text().splitlines()
    assert [json.loads(row)["messages"][0]["content"] for row in rows] == ["Is it 14?", "Is it 19?", "Is it 35?"]


def test_conversations_without_an_answer_teach_nothing_and_are_passed_over(preparing: Preparing) -> None:
    asked = {"conversations": [{"from": "human", "value": "Is it?"}, {"from": "gpt", "value": " "}]}
    preparing.write(asked, *(conversation(number) for number in range(10)), conversation(11, ""))
    assert preparing.judge().passed
    assert preparing.written["skipped"] == 2
    assert preparing.judge(samples=11).failure_class == "USER_CONFIG_ERROR"
    assert "10 conversations with an answer, 11 are asked for" in preparing.written["detail"]


@pytest.mark.parametrize(
    "line",
    ["{", "[]", '{"messages": []}', '{"prompt": "Is it?"}', '{"messages": ["Is it?"]}', '{"messages": [{"role": 1}]}'],
)
def test_a_line_that_is_no_conversation_is_named(preparing: Preparing, line: str) -> None:
    preparing.write(conversation(1), line, *(conversation(number) for number in range(20)))
    assert preparing.judge().failure_class == "USER_CONFIG_ERROR"
    assert f"{preparing.source}:2: " in preparing.written["detail"]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"source": "/no/such/file"}, "/no/such/file"),
        ({"target": "/no/such/folder"}, "config.json cannot be read"),
        ({"sequence_length": 4100}, "no multiple of block_size 16"),
        ({"draft_tokens": 16}, "drafts at most 15"),
        ({"mask_token_id": -1}, "no token of the target"),
        ({"mask_token_id": 151936}, "no token of the target"),
        ({"conv_group_size": 24}, "does not divide"),
        ({"chat_template": "/no/such/template"}, "cannot be read"),
    ],
)
def test_what_cannot_be_trained_with_is_for_the_operator(
    preparing: Preparing, changes: dict[str, Any], words: str
) -> None:
    verdict = preparing.judge(**changes)
    assert verdict.failure_class == "USER_CONFIG_ERROR"
    assert words in " ".join(preparing.written["problems"])
    assert words in verdict.detail or len(preparing.written["problems"]) > 1
    assert not (preparing.root / "train.jsonl").exists()


def test_a_template_that_does_not_mark_answers_is_found_before_the_training(preparing: Preparing) -> None:
    (preparing.target / "tokenizer_config.json").write_text(json.dumps({"chat_template": "{{ generation }}"}))
    assert preparing.judge().failure_class == "USER_CONFIG_ERROR"
    assert "no token would count" in preparing.written["detail"]
    assert preparing.judge(answer_only_loss="false").passed
    own = preparing.root / "own.jinja"
    own.write_text(TEMPLATE)
    assert preparing.judge(chat_template=own).passed


def test_the_targets_own_template_may_lie_in_either_file(tmp_path: Path) -> None:
    assert template_problem(str(tmp_path), "") is not None
    (tmp_path / "tokenizer_config.json").write_text("{}")
    assert template_problem(str(tmp_path), "") is not None
    (tmp_path / "chat_template.jinja").write_text(TEMPLATE)
    assert template_problem(str(tmp_path), "") is None


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ({"text_config": CONFIG, "hidden_size": 1}, (32, 8, 128, 12288)),
        ({key: value for key, value in CONFIG.items() if key != "head_dim"}, (32, 8, 128, 12288)),
        ({key: value for key, value in CONFIG.items() if key != "num_key_value_heads"}, (32, 32, 128, 12288)),
        ({**CONFIG, "head_dim": 64}, (32, 8, 64, 12288)),
    ],
)
def test_the_drafter_is_given_the_sizes_of_its_target(config: dict[str, Any], expected: tuple[int, ...]) -> None:
    overrides, problems = plan(config, WANTED)
    assert not problems
    assert tuple(int(line.split("=")[1]) for line in overrides) == expected


def test_a_target_of_experts_needs_to_be_told_the_drafters_size() -> None:
    config = {key: value for key, value in CONFIG.items() if key != "intermediate_size"}
    _, problems = plan(config, WANTED)
    assert len(problems) == 1
    assert "set drafter_intermediate_size" in problems[0]
    overrides, problems = plan(config, WANTED._replace(intermediate_size=24576))
    assert (overrides[-1], problems) == (f"{ARCHITECTURE}.intermediate_size=24576", [])


@pytest.mark.parametrize("name", ["hidden_size", "vocab_size", "num_attention_heads"])
@pytest.mark.parametrize("value", [None, 0, "32", 3.5, True])
def test_a_size_that_is_none_is_named(name: str, value: object) -> None:
    _, problems = plan({**CONFIG, name: value}, WANTED)
    assert any(name in problem for problem in problems)
