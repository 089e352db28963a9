"""Scratch memory, against figures that llama.cpp's allocator gave for these shapes.

test_fit_shapes.py asks the allocator itself; here each part of the model stands alone.
"""

from __future__ import annotations

import pytest

from app.models.fit_cache import cache_of
from app.models.fit_compute import output_bytes, step_of
from app.models.fit_context import plan_context
from app.models.shape import LayerShape, ModelShape
from backends.protocol import LoadParams
from tests.helpers.fit_models import MIB, llama_8b, with_window


def compute_mib(shape, context_tokens=512, **params):
    step = step_of(shape, cache_of(shape.layers))
    return step.compute_bytes(plan_context(LoadParams(**params), context_tokens)) / MIB


def dense(architecture, width, inner, heads, key, kv_heads=8, count=32):
    return ModelShape(
        architecture=architecture,
        embedding_length=width,
        feed_forward_length=inner,
        head_count=heads,
        vocabulary_tokens=128_000,
        layers=(LayerShape(kv_heads, key, key, weights_bytes=9, read_bytes=9),) * count,
    )


@pytest.mark.parametrize(
    ("context_tokens", "micro_batch_tokens", "mib"),
    [(512, 512, 116.51), (4096, 512, 120.01), (32_768, 512, 148.01), (8192, 128, 31.0), (8192, 2048, 496.05)],
)
def test_llama_3_1_8b(context_tokens, micro_batch_tokens, mib):
    found = compute_mib(llama_8b(), context_tokens, micro_batch_tokens=micro_batch_tokens)
    assert found == pytest.approx(mib, abs=0.02)


@pytest.mark.parametrize(
    ("shape", "mib"),
    [
        (dense("llama", 576, 1536, 9, 64, 3, 30), 14.01),  # SmolLM2 135M
        (dense("llama", 8192, 28_672, 64, 128, 8, 80), 232.51),  # Llama 3.1 70B
        (dense("qwen3", 4096, 12_288, 32, 128), 104.51),
        (dense("glm4", 4096, 13_696, 32, 128, 2), 112.78),
        (dense("starcoder2", 3072, 12_288, 24, 128, 2), 48.5),  # no gate
        (dense("phi2", 2560, 10_240, 32, 80, 32), 45.51),  # no gate, attention beside the feed-forward layer
    ],
)
def test_the_feed_forward_layer_is_the_widest_of_a_dense_model(shape, mib):
    assert compute_mib(shape) == pytest.approx(mib, abs=0.05)


def test_queries_wider_than_the_model_take_more_room():
    """Gemma 3 12B: 16 heads of 256 in a model of 3,840; two masks."""
    shape = with_window(dense("gemma3", 3840, 15_360, 16, 256, 8, 48), 1024, 6)
    assert compute_mib(shape, 512) == pytest.approx(121.52, abs=0.1)
    assert compute_mib(shape, 4096) == pytest.approx(126.02, abs=0.1)


def test_narrow_experts_keep_their_results_apart():
    layer = LayerShape(4, 128, 128, weights_bytes=100, read_bytes=20)
    qwen = ModelShape(
        architecture="qwen3moe", embedding_length=2048, feed_forward_length=8 * 768, head_count=32, layers=(layer,) * 48
    )
    assert compute_mib(qwen) == pytest.approx(88.5, abs=0.05)
    olmoe = ModelShape(
        architecture="olmoe", embedding_length=2048, feed_forward_length=8 * 1024, head_count=16, layers=(layer,) * 16
    )
    assert compute_mib(olmoe) == pytest.approx(64.5, abs=0.05)


def test_latent_queries_are_the_widest_of_deepseek_v3():
    shape = ModelShape(
        architecture="deepseek2",
        embedding_length=7168,
        feed_forward_length=18_432,
        head_count=128,
        is_mla=True,
        layers=(LayerShape(1, 576, 0, weights_bytes=9, read_bytes=9),) * 61,
    )
    assert compute_mib(shape) == pytest.approx(408.5, rel=0.03)


def test_a_state_space_model_has_no_mask_and_a_copy_of_its_state():
    shape = ModelShape(
        architecture="mamba2",
        embedding_length=2560,
        vocabulary_tokens=50_288,
        layers=(LayerShape(state_elements=671_488),) * 64,
    )
    assert compute_mib(shape, 512) == compute_mib(shape, 32_768)
    assert compute_mib(shape) == pytest.approx(69.8, rel=0.05)


def test_the_vocabulary_counts_only_as_often_as_there_are_sequences():
    shape = dense("llama", 64, 64, 1, 64, 1, 2)
    assert compute_mib(shape, 512) < 4
    wide = ModelShape(architecture="llama", embedding_length=64, vocabulary_tokens=10**8, layers=shape.layers)
    assert compute_mib(wide) == 4 * (10**8 + 128) / MIB
    assert output_bytes(wide, plan_context(LoadParams(max_sequences=3), 512)) == 3 * 4 * 10**8


def test_layer_inputs_of_gemma_3n_are_kept():
    plain, inputs = (dense(name, 2048, 8192, 8, 256, 2, 30) for name in ("gemma3", "gemma3n"))
    assert compute_mib(inputs) - compute_mib(plain) == pytest.approx(512 * 4 * (256 * 30 + 6 * 2048) / MIB)


def test_a_shape_without_numbers_takes_next_to_nothing():
    assert compute_mib(ModelShape(architecture="")) < 0.1
    negative = ModelShape(
        architecture="x", embedding_length=-5, feed_forward_length=-5, head_count=-5, vocabulary_tokens=-5
    )
    assert 0 <= compute_mib(negative) < 0.1
