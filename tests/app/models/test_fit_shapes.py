"""The estimate from a header alone, against llama.cpp's own allocator, for the shapes of well-known models."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.engines.probe import probe_memory
from app.models.fit import fit
from app.models.fit_types import Device, FitQuestion, Machine, MemoryEstimate
from app.models.gguf_header import read_header
from app.models.shape_gguf import shape_of_gguf
from backends.protocol import LoadParams, MemorySplit
from tests.helpers.shape_files import SHAPES, write_shape

MIB = 2**20
MACHINE = Machine((Device("CPU", "This computer", 2**40, 2**40),))
KV_TYPES = ("f16", "q8_0", "q4_0")
CONTEXTS = (512, 4_096, 32_768)

# One for each way to keep memory: K and V, latent, windows, states beside either, states alone, heads by layer.
HANDFUL = (
    ("smollm2-135m", "q8_0", 4_096),
    ("mistral-7b-v0.1", "q4_0", 32_768),
    ("deepseek-v2-lite", "q4_0", 4_096),
    ("gpt-oss-20b", "q8_0", 32_768),
    ("lfm2-1.2b", "f16", 512),
    ("mamba2-2.7b", "f16", 4_096),
    ("openelm-270m", "q8_0", 4_096),
)


def asked(kv_type: str, context_tokens: int) -> LoadParams:
    return LoadParams(context_tokens=context_tokens, kv_type=kv_type, threads=2, allow_long_context=True)


def estimated(path: Path, params: LoadParams) -> MemoryEstimate:
    answer = fit(shape_of_gguf(read_header(path)), FitQuestion(params=params), MACHINE)
    assert answer.estimate is not None, answer.reason
    return answer.estimate


def check(name: str, path: Path, params: LoadParams) -> None:
    """The KV cache to 0.0 MiB, everything together to 3 %; llama.cpp's log rounds each buffer to 0.01 MiB."""
    told = probe_memory(path, params).split
    assert isinstance(told, MemorySplit)
    found = estimated(path, params)
    weights_bytes = SHAPES[name].weights_bytes
    assert found.weights_bytes - found.copied_bytes == weights_bytes
    assert found.kv_bytes / MIB == pytest.approx(told.kv_reserved_bytes / MIB, abs=0.03)
    assert found.output_bytes / MIB == pytest.approx(told.output_bytes / MIB, abs=0.01)
    told_bytes = weights_bytes + told.kv_reserved_bytes + told.compute_bytes + told.output_bytes
    found_bytes = weights_bytes + found.kv_bytes + found.compute_bytes + found.output_bytes
    assert found_bytes == pytest.approx(told_bytes, rel=0.03)


@pytest.mark.parametrize("name", SHAPES)
def test_the_weights_are_those_of_the_header(name, tmp_path):
    shape = shape_of_gguf(read_header(write_shape(name, tmp_path)))
    assert shape.unknown == ""
    assert shape.weights_bytes == SHAPES[name].weights_bytes
    assert shape.parameters_count == SHAPES[name].parameters_count


@pytest.mark.parametrize(("name", "kv_type", "context_tokens"), HANDFUL)
def test_a_header_tells_what_the_allocator_tells(name, kv_type, context_tokens, tmp_path):
    check(name, write_shape(name, tmp_path), asked(kv_type, context_tokens))


@pytest.mark.full
@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", SHAPES)
def test_every_header_tells_what_the_allocator_tells(name, tmp_path):
    path = write_shape(name, tmp_path)
    for kv_type in KV_TYPES:
        for context_tokens in CONTEXTS:
            check(name, path, asked(kv_type, context_tokens))


@pytest.mark.full
@pytest.mark.timeout(900)
@pytest.mark.parametrize("kv_mode", ["chat", "streams"])
@pytest.mark.parametrize("name", ["llama-3.1-8b", "gemma-3-12b", "gpt-oss-20b", "jamba-mini", "deepseek-v2-lite"])
def test_several_sequences_share_or_split_the_cells(name, kv_mode, tmp_path):
    params = LoadParams(context_tokens=8_192, threads=2, max_sequences=4, kv_mode=kv_mode, micro_batch_tokens=128)
    check(name, write_shape(name, tmp_path), params)


def test_the_probe_tells_of_a_real_model_what_its_header_tells(gemma_model):
    told = probe_memory(gemma_model, asked("q8_0", 4_096)).split
    found = estimated(gemma_model, asked("q8_0", 4_096))
    assert told is not None
    assert found.kv_bytes / MIB == pytest.approx(told.kv_reserved_bytes / MIB, abs=0.03)
    assert found.compute_bytes / MIB == pytest.approx(told.compute_bytes / MIB, rel=0.03)
    assert found.output_bytes / MIB == pytest.approx(told.output_bytes / MIB, abs=0.01)
