"""Owners of a load, each alone."""

from __future__ import annotations

import pytest

from app.models.fit_memory import PROJECTOR_COMPUTE_BYTES, Sizes, bounded, context_of
from app.models.fit_types import FitQuestion
from app.models.shape import ModelShape
from backends.protocol import LoadParams
from tests.helpers.fit_models import MIB, llama_8b, question


def owners(shape=None, asked=None, kv_type="f16", context_tokens=8192):
    return Sizes(shape or llama_8b(), asked or question()).owners(kv_type, context_tokens)


def test_a_load_of_llama_3_1_8b():
    found = owners()
    assert found.weights_bytes == llama_8b().weights_bytes
    assert found.kv_bytes == 1024 * MIB
    assert found.compute_bytes / MIB == pytest.approx(124, abs=0.1)
    assert found.output_bytes == 4 * 128_256
    assert (found.draft_bytes, found.projector_bytes, found.copied_bytes) == (0, 0, 0)
    assert found.tables_bytes == 19 * MIB // 2 + 128_256 * 372 + 8192 * 48


def test_a_vocabulary_without_merges_takes_less():
    gemma = llama_8b(architecture="gemma3", vocabulary_tokens=262_144)
    assert owners(gemma).tables_bytes == 19 * MIB // 2 + 262_144 * 182 + 8192 * 48
    assert owners(llama_8b(vocabulary_tokens=32_000)).tables_bytes == 19 * MIB // 2 + 32_000 * 182 + 8192 * 48


def test_rearranged_copies_are_weights_that_may_be_given_back():
    found = owners(llama_8b(copied_bytes=3000 * MIB))
    assert found.weights_bytes == llama_8b().weights_bytes + 3000 * MIB
    assert found.needed_bytes == owners().needed_bytes
    estimate = found.estimate(48 * MIB)
    assert estimate.total_bytes - estimate.needed_bytes == 3000 * MIB
    assert (estimate.floor_bytes, estimate.tables_bytes) == (48 * MIB, found.tables_bytes)


def test_on_a_card_nothing_is_rearranged():
    assert owners(llama_8b(copied_bytes=3000 * MIB), question(gpu_layers=-1)).copied_bytes == 0


def test_a_draft_model_brings_everything_of_its_own():
    draft = llama_8b(weights_bytes=50 * MIB, layers=llama_8b().layers[:2], vocabulary_tokens=1000)
    found = owners(asked=FitQuestion(draft=draft))
    assert found.draft_bytes == 50 * MIB + 64 * MIB + found.compute_bytes + 4000
    assert found.kv_bytes == owners().kv_bytes


def test_a_projector_brings_scratch_of_its_own():
    found = owners(asked=FitQuestion(projector_bytes=800 * MIB))
    assert found.projector_bytes == 800 * MIB + PROJECTOR_COMPUTE_BYTES


def test_torch_answers_the_same_question():
    found = owners(asked=question("torch"), kv_type="bf16")
    assert (found.weights_bytes, found.kv_bytes) == (llama_8b().weights_bytes, 1026 * MIB)
    assert found.tables_bytes == 80 * MIB + 560 * 128_256
    drafted = owners(asked=FitQuestion(backend="torch", draft=llama_8b(layers=())), kv_type="bf16")
    assert drafted.draft_bytes == 2 * llama_8b().parameters_count + found.compute_bytes + found.output_bytes


def test_each_backend_has_its_types():
    sizes, torch = Sizes(llama_8b(), question()), Sizes(llama_8b(), question("torch"))
    assert (sizes.can_store("q5_1"), sizes.can_store("int8"), sizes.can_store("f4")) == (True, False, False)
    assert (torch.can_store("q8_0"), torch.can_store("bf16")) == (False, True)


def test_amounts_stay_in_bounds():
    assert (bounded(-5), bounded(7), bounded(10**40)) == (0, 7, 2**62)
    huge = ModelShape(architecture="x", weights_bytes=10**40, vocabulary_tokens=2**40, embedding_length=2**40)
    assert owners(huge).needed_bytes == 2**62


def test_the_context_is_as_the_engine_reports_it():
    assert context_of(llama_8b(), LoadParams(context_tokens=5000)) == 5120
    assert context_of(llama_8b(context_tokens=2048), LoadParams()) == 2048
    assert context_of(None, LoadParams()) == 8192
    assert context_of(llama_8b(), LoadParams(context_tokens=8192, max_sequences=4, kv_mode="streams")) == 2048
