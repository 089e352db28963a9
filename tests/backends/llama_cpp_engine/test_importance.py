"""What a running graph tells of its inputs: every layer is seen, and the sums are those that plain arithmetic gives."""

from __future__ import annotations

import numpy as np
import pytest
from gguf import GGUFReader

from backends import protocol
from backends.errors import EngineError, ErrorCode
from backends.llama_cpp_engine.engine import LlamaCppEngine
from backends.llama_cpp_engine.importance import _plain_name, cut_windows
from backends.llama_cpp_engine.importance_file import read_importance
from tests.helpers.small_llama import LAYERS, write_small_llama

IDS = tuple(3 + number % 200 for number in range(150))


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return write_small_llama(tmp_path_factory.mktemp("models") / "small.gguf")


def collect(path, target, ids=IDS, window_tokens=64):
    engine, events = LlamaCppEngine(), []
    engine.load(protocol.LoadModel(str(path), protocol.LoadParams(context_tokens=128)), lambda _event: None)
    try:
        command = protocol.CollectImportance(
            request_id=protocol.RequestId(3),
            token_ids=ids,
            target_path=str(target),
            window_tokens=window_tokens,
            text_name="numbers",
        )
        engine.collect_importance(command, events.append)
    finally:
        engine.unload()
    return events


def test_every_matrix_of_every_layer_is_seen_and_progress_is_told_in_windows(model, tmp_path) -> None:
    events = collect(model, tmp_path / "i.gguf")
    assert [(event.phase, event.done, event.total) for event in events] == [("importance", n, 2.0) for n in range(3)]
    found = read_importance(tmp_path / "i.gguf")
    assert (found.chunks, found.source, len(found.means)) == (2, "numbers", 7 * LAYERS)
    assert all((values >= 0).all() and values.any() for values in found.means.values())


def test_the_first_layer_s_sums_are_those_of_plain_arithmetic(model, tmp_path) -> None:
    # what the first layer is given is each token's embedding, divided by the root of its mean square
    collect(model, tmp_path / "i.gguf")
    tensors = {tensor.name: tensor.data for tensor in GGUFReader(model).tensors}
    ids = np.array(cut_windows(IDS, 64, bos=1))
    rows = tensors["token_embd.weight"][ids.reshape(-1)].astype(np.float32)
    normed = rows / np.sqrt(np.square(rows).mean(axis=1, keepdims=True) + 1e-5)
    wanted = np.square(normed).mean(axis=0)
    found = read_importance(tmp_path / "i.gguf").means
    np.testing.assert_allclose(found["blk.0.attn_q.weight"], wanted, rtol=1e-3)
    np.testing.assert_array_equal(found["blk.0.attn_q.weight"], found["blk.0.attn_v.weight"])
    assert not np.allclose(found["blk.0.ffn_up.weight"], wanted, rtol=0.01)


def test_experts_are_counted_each_for_itself(tmp_path) -> None:
    model = write_small_llama(tmp_path / "experts.gguf", experts=4)
    collect(model, tmp_path / "i.gguf")
    sums = {tensor.name: tensor.data for tensor in GGUFReader(tmp_path / "i.gguf").tensors}
    counts = sums["blk.0.ffn_up_exps.weight.counts"]
    assert counts.shape == (4, 1)
    assert counts.sum() == 2 * 128  # two experts for each of the tokens of two windows
    assert sums["blk.0.ffn_up_exps.weight.in_sum2"].shape == (4, 256)
    # all experts together saw each token twice, and the router once
    both = sums["blk.0.ffn_up_exps.weight.in_sum2"].sum(axis=0)
    np.testing.assert_allclose(both, 2 * sums["blk.0.ffn_gate_inp.weight.in_sum2"][0], rtol=1e-3)


def test_the_chat_s_context_stays_as_it_is(model, tmp_path) -> None:
    engine = LlamaCppEngine()
    engine.load(protocol.LoadModel(str(model), protocol.LoadParams(context_tokens=128)), lambda _event: None)
    try:
        engine._cached = [5, 6]
        command = protocol.CollectImportance(
            request_id=protocol.RequestId(1), token_ids=IDS, target_path=str(tmp_path / "i.gguf"), window_tokens=64
        )
        engine.collect_importance(command, lambda _event: None)
        assert engine._cached == [5, 6]
    finally:
        engine.unload()


def test_a_short_text_is_one_window_and_a_rest_is_left_out() -> None:
    assert cut_windows([7, 8, 9], 8, bos=-1) == [[7, 8, 9]]
    assert cut_windows([7, 8, 9, 10, 11], 2, bos=1) == [[1, 8], [1, 10]]


def test_what_cannot_be_collected_is_told_and_writes_nothing(model, tmp_path) -> None:
    for ids, window, code in (
        ((), 64, ErrorCode.EMPTY_PROMPT),
        ((99_999,), 64, ErrorCode.BAD_PARAMS),
        (IDS, 0, ErrorCode.BAD_PARAMS),
    ):
        with pytest.raises(EngineError) as caught:
            collect(model, tmp_path / "i.gguf", ids, window)
        assert caught.value.code is code
    with pytest.raises(EngineError) as caught:
        collect(model, tmp_path / "none" / "i.gguf")
    assert caught.value.code is ErrorCode.WRITE_FAILED
    assert not list(tmp_path.iterdir())


def test_a_device_before_a_name_is_taken_off() -> None:
    assert _plain_name(b"CUDA0#blk.0.ffn_up.weight#0") == b"blk.0.ffn_up.weight"
    assert _plain_name(b"blk.0.ffn_up.weight") == b"blk.0.ffn_up.weight"
