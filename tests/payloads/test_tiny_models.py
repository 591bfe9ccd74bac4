"""The tiny target and its drafters: what they compute, whichever way it is computed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tiny_drafter
import tiny_engine
import tiny_learning
import tiny_model
import tiny_target
import tiny_tensors
import tiny_vocabulary

from tests.payloads.running import REVISION, Model

ALGORITHMS = ("dflash", "dflash2")


@pytest.fixture(scope="module")
def target(model: Model) -> tiny_model.Target:
    return tiny_model.Target.load(str(model.target))


def random_drafter(algorithm: str) -> tuple[tiny_drafter.Shape, tiny_tensors.Tensors]:
    shape = tiny_drafter.shape_for(algorithm, tiny_target.make_config(), 5)
    return shape, tiny_learning.initial(shape, 7)


def random_batch(shape: tiny_drafter.Shape, count: int) -> tiny_learning.Batch:
    random = np.random.RandomState(5)
    width = shape.hidden_size * len(shape.target_layer_ids)
    features = random.standard_normal((count, shape.swa_window_size, width)).astype(np.float32)
    return tiny_learning.Batch(features, random.randint(260, 512, (count, shape.block_size)))


def test_a_revision_is_one_model_everywhere() -> None:
    first, again = tiny_target.make_weights(REVISION), tiny_target.make_weights(REVISION)
    other = tiny_target.make_weights("f" * 40)
    assert all(np.array_equal(first[name], again[name]) for name in first)
    assert not np.array_equal(first["lm_head.weight"], other["lm_head.weight"])


def test_rows_in_one_pass_are_what_they_are_one_by_one(target: tiny_model.Target) -> None:
    tokens = tiny_target.starts((3, 1), 4)
    whole, cache = tiny_model.Cache(target.sizes, 4, 32), tiny_model.Cache(target.sizes, 4, 32)
    at_once, _ = target.forward(whole, tokens, np.zeros(4, np.int64))
    for place in range(tokens.shape[1]):
        hidden, _ = target.forward(cache, tokens[:, place : place + 1], np.full(4, place))
        np.testing.assert_allclose(hidden[:, 0], at_once[:, place], rtol=1e-3, atol=1e-4)


def test_what_was_rejected_leaves_no_trace(target: tiny_model.Target) -> None:
    tokens = tiny_target.starts((3, 2), 2)
    clean, used = tiny_model.Cache(target.sizes, 2, 32), tiny_model.Cache(target.sizes, 2, 32)
    for cache in (clean, used):
        target.forward(cache, tokens[:, :4], np.zeros(2, np.int64))
    target.forward(used, tokens[:, ::-1][:, :3], np.full(2, 4))
    expected, _ = target.forward(clean, tokens[:, 4:], np.full(2, 4))
    found, _ = target.forward(used, tokens[:, 4:], np.full(2, 4))
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_gradients_are_the_slopes_of_the_loss(target: tiny_model.Target, algorithm: str) -> None:
    shape, tensors = random_drafter(algorithm)
    frozen, batch = tiny_learning.Frozen(target.embedding, target.head), random_batch(shape, 8)
    gradients = tiny_learning.step(tensors, shape, frozen, batch).gradients
    assert set(gradients) == set(tensors)
    random = np.random.RandomState(1)
    for name, gradient in gradients.items():
        assert gradient.shape == tensors[name].shape
        # Along the gradient the slope is its norm; across it the slope must be what the scalar product says.
        for direction in (gradient, random.standard_normal(gradient.shape).astype(np.float32)):
            unit = direction / np.linalg.norm(direction)
            step = np.float32(0.02)
            losses = [
                tiny_learning.step({**tensors, name: tensors[name] + sign * step * unit}, shape, frozen, batch).loss
                for sign in (1, -1)
            ]
            slope, expected = (losses[0] - losses[1]) / (2 * step), float((gradient * unit).sum())
            assert slope == pytest.approx(expected, rel=0.05, abs=2e-4), name


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("known", [6, 3, 1])
def test_a_drafter_drafts_what_it_learned_to(target: tiny_model.Target, algorithm: str, known: int) -> None:
    """The served drafter keeps caches and folds norms; it must choose what the pass of the training would choose.

    In a young text there is less context than the window: what lies before it counts for nothing.
    """
    shape, tensors = random_drafter(algorithm)
    whole = random_batch(shape, 16)
    context = whole.features[:, -known:]
    drafter = tiny_drafter.Drafter(shape, tensors, target, 16, 64)
    start = np.full(16, 20 if known == shape.swa_window_size else 0)
    drafter.observe(np.full_like(whole.features, 9.0), start + 12)  # rejected rows, behind the anchor
    drafter.observe(context, start)
    labels = whole.tokens.copy()
    labels[:, 1:] = drafter.draft(whole.tokens[:, 0], start + known, 4)
    # Judged with its own drafts as the tokens before each, every one must be the likeliest.
    frozen = tiny_learning.Frozen(target.embedding, target.head)
    assert tiny_learning.step(tensors, shape, frozen, tiny_learning.Batch(context, labels)).hits.all()


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_speculation_changes_the_number_of_passes_and_not_the_text(
    model: Model, target: tiny_model.Target, algorithm: str
) -> None:
    prompts = [json.loads(line)["prompt"] for line in model.prompts.read_text().splitlines()[:6]]
    folder = model.dflash2 if algorithm == "dflash2" else model.dflash

    def write(slots: int, with_drafter: bool) -> tuple[list[list[int]], tiny_engine.Counters]:
        drafter = None
        if with_drafter:
            drafter = tiny_drafter.Drafter.load(str(folder), target, slots, tiny_engine.positions_for(target))
        engine = tiny_engine.Engine(target, drafter, 4, max_num_seqs=slots)
        # More texts than fit into a batch, of different lengths: slots are moved, left and taken again.
        requests = [tiny_engine.Request(prompt, 9 + 5 * i, ignore_eos=True) for i, prompt in enumerate(prompts)]
        for request in requests:
            engine.submit(request)
        while not all(request.done.is_set() for request in requests):
            assert engine._take_in()
            engine._pass()
        return [request.output for request in requests], engine.counters()

    (alone, plain), (drafted, drafting), (one_by_one, single) = write(4, False), write(4, True), write(1, True)
    assert alone == drafted == one_by_one
    assert [len(output) for output in alone] == [9 + 5 * i for i in range(len(prompts))]
    assert (plain.drafts, plain.accepted_at, plain.generation_tokens) == (0, [], drafting.generation_tokens)
    assert drafting.accepted_at == sorted(drafting.accepted_at, reverse=True)
    assert sum(drafting.accepted_at) + drafting.drafts >= drafting.generation_tokens - len(prompts)
    # A sequence that is moved to another slot keeps its context: it is drafted as well as one that is alone.
    assert (drafting.drafts, drafting.accepted_at) == (single.drafts, single.accepted_at)
    assert drafting.accepted_at[0] > 0


def test_a_sequence_that_is_moved_takes_its_context_along(target: tiny_model.Target) -> None:
    """An untrained drafter drafts noise, but the same noise wherever its sequence lies."""
    shape, tensors = random_drafter("dflash2")
    prompts = tiny_target.starts((3, 3), 6).tolist()

    class Recording(tiny_drafter.Drafter):
        drafted: set[tuple[int, ...]]

        def draft(self, anchors: Any, at: Any, count: int) -> Any:
            drafts = super().draft(anchors, at, count)
            self.drafted |= {tuple(row) for row in np.column_stack([anchors, at, drafts]).tolist()}
            return drafts

    def write(slots: int) -> set[tuple[int, ...]]:
        drafter = Recording(shape, tensors, target, slots, tiny_engine.positions_for(target))
        drafter.drafted = set()
        engine = tiny_engine.Engine(target, drafter, 4, max_num_seqs=slots)
        requests = [tiny_engine.Request(prompt, 4 + 3 * i, ignore_eos=True) for i, prompt in enumerate(prompts)]
        for request in requests:
            engine.submit(request)
        while not all(request.done.is_set() for request in requests):
            assert engine._take_in()
            engine._pass()
        return drafter.drafted

    together, one_by_one = write(4), write(1)
    assert len(one_by_one) > 30
    assert together == one_by_one


def test_texts_end_at_the_end_of_text_token_unless_told_otherwise() -> None:
    for ignore, reason, length in ((False, "stop", 2), (True, "length", 3)):
        request = tiny_engine.Request([300], 3, ignore)
        assert request.take([301, tiny_vocabulary.EOS, 302, 303])
        assert (request.finish_reason, len(request.output)) == (reason, length)


def test_an_engine_that_fails_tells_everybody(target: tiny_model.Target) -> None:
    engine = tiny_engine.Engine(target, max_num_seqs=2)
    bad = tiny_engine.Request([10**6], 4)  # no such token
    waiting = tiny_engine.Request([300], 4)
    engine.submit(bad)
    engine.submit(waiting)
    engine.run()
    assert engine.failed.is_set()
    assert bad.done.is_set()
    assert waiting.done.is_set()
    assert bad.error
    assert waiting.error
    with pytest.raises(tiny_engine.EngineDead):
        engine.submit(tiny_engine.Request([300], 4))


def test_tensors_come_back_as_they_were_and_cut_files_do_not(tmp_path: Path) -> None:
    tensors = {
        "b": np.arange(6, dtype=np.float32).reshape(2, 3),
        "a": np.array([1.5, -2], np.float16),
        "c": np.zeros((0, 4), np.uint16),
    }
    path = tmp_path / "x.safetensors"
    tiny_tensors.save(str(path), tensors)
    back = tiny_tensors.load(str(path))
    assert all(np.array_equal(back[name], array) and back[name].dtype == array.dtype for name, array in tensors.items())
    data = path.read_bytes()
    assert data == tiny_tensors.encode(dict(reversed(tensors.items())))
    for length in (0, 5, 20, len(data) - 1):
        path.write_bytes(data[:length])
        with pytest.raises(ValueError):
            tiny_tensors.load(str(path))


def test_text_becomes_tokens_and_text_again() -> None:
    vocabulary = tiny_vocabulary.Vocabulary(tiny_vocabulary.all_tokens())
    assert len(vocabulary.tokens) == len(set(vocabulary.tokens)) == 512
    ids = vocabulary.encode("bado bafa grüße sasti")
    assert ids[0] == tiny_vocabulary.BOS
    assert max(ids) < 512
    assert vocabulary.decode(ids) == "bado bafagrüße sasti"
    phrases = tiny_vocabulary.phrases()
    words = [token for phrase in phrases for token in phrase]
    assert sorted(words) == [tiny_vocabulary.EOS, *range(tiny_vocabulary.FIRST_WORD, 512)]


def test_a_configuration_says_everything_that_the_drafter_is() -> None:
    for algorithm in ALGORITHMS:
        shape, _ = random_drafter(algorithm)
        config = json.loads(json.dumps(tiny_drafter.config_of(shape)))
        assert tiny_drafter.shape_of(config) == shape
        assert config["architectures"] == [tiny_drafter.ARCHITECTURES[algorithm]]


def test_a_drafter_for_another_target_is_refused(model: Model, target: tiny_model.Target, tmp_path: Path) -> None:
    shape = tiny_drafter.shape_for("dflash", {**tiny_target.make_config(), "vocab_size": 500}, 5)
    tiny_drafter.export(str(tmp_path), shape, tiny_learning.initial(shape, 0))
    with pytest.raises(ValueError, match="served is"):
        tiny_drafter.Drafter.load(str(tmp_path), target, 2, 64)
