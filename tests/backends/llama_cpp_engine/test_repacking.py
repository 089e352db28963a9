"""What is told of rearranged weights agrees with what llama.cpp logs after a real load."""

from __future__ import annotations

import shutil

import pytest

from backends import protocol
from backends.llama_cpp_engine import repacking
from backends.llama_cpp_engine.engine import LlamaCppEngine
from backends.llama_cpp_engine.engine_log import EngineLog
from backends.llama_cpp_engine.repacking import resident_weights_bytes
from tests.helpers.gguf_files import TinyGguf, tensor

Q4_0, Q4_K, F32 = 2, 12, 0


def matrices(*tensors: tuple[str, list[int], int, int]) -> TinyGguf:
    """A file with these tensors, one behind the other: name, dimensions, type and bytes."""
    infos, offset = [], 0
    for name, dims, kind, size_bytes in tensors:
        infos.append(tensor(name, dims, kind, offset))
        offset += size_bytes
    return TinyGguf(tensors=tuple(infos), data_bytes=offset)


def test_the_starter_s_weights_are_what_a_load_maps(starter_model) -> None:
    import llama_cpp

    engine = LlamaCppEngine()
    log: list[protocol.Event] = []
    loaded = engine.load(protocol.LoadModel(str(starter_model), protocol.LoadParams(context_tokens=256)), log.append)
    size_bytes = llama_cpp.llama_model_size(engine._model)
    engine.unload()
    told = max(size_bytes, resident_weights_bytes(starter_model))
    assert abs(told - loaded.memory.weights_bytes) <= 0.01 * 2**20  # rounded by llama.cpp


@pytest.fixture
def every_q4(monkeypatch):
    """A processor that rearranges every matrix of Q4_0, and nothing else."""
    monkeypatch.setattr(repacking._Ggml, "is_rearranged", lambda _ggml, weight: weight.type == Q4_0)


def test_a_rearranged_matrix_counts_twice_while_the_file_stays_mapped_around_it(tmp_path, every_q4) -> None:
    path = matrices(
        ("token_embd.weight", [32, 64], F32, 8192),
        ("blk.0.attn_q.weight", [32, 64], Q4_0, 1152),
        ("output.weight", [32, 64], F32, 8192),
    ).write(tmp_path / "m.gguf")
    assert resident_weights_bytes(path) == 8192 + 1152 + 8192 + 1152


def test_rearranged_matrices_at_the_end_of_the_file_are_unmapped(tmp_path, every_q4) -> None:
    path = matrices(
        ("token_embd.weight", [32, 64], F32, 8192),
        ("output.weight", [32, 64], Q4_0, 1152),
    ).write(tmp_path / "m.gguf")
    assert resident_weights_bytes(path) == 8192 + 1152


def test_an_embedding_is_looked_up_and_copied_only_where_it_is_the_output_too(tmp_path, every_q4) -> None:
    embedding, output = ("token_embd.weight", [32, 64], Q4_0, 1152), ("output.weight", [32, 64], F32, 8192)
    tied = matrices(embedding).write(tmp_path / "tied.gguf")
    assert resident_weights_bytes(tied) == 2 * 1152
    untied = matrices(embedding, output).write(tmp_path / "untied.gguf")
    assert resident_weights_bytes(untied) == 1152 + 8192


def test_the_library_is_asked_about_this_processor(tmp_path) -> None:
    # Whatever the processor, F32 and vectors are used as they are, and the question has one answer.
    path = matrices(
        ("blk.0.attn_q.weight", [256, 64], Q4_K, 64 * 144),
        ("blk.0.ffn_up_exps.weight", [256, 8, 4], Q4_K, 32 * 144),
        ("blk.0.attn_norm.weight", [32], F32, 128),
        ("blk.0.attn_k.weight", [32, 64], F32, 8192),
    ).write(tmp_path / "m.gguf")
    ggml = repacking._Ggml()
    answers = {weight.name: ggml.is_rearranged(weight) for weight in ggml.weights(path)}
    assert not answers["blk.0.attn_norm.weight"]
    assert not answers["blk.0.attn_k.weight"]
    assert answers == {weight.name: repacking._Ggml().is_rearranged(weight) for weight in ggml.weights(path)}
    assert [weight.offset for weight in ggml.weights(path)] == [0, 9216, 13824, 13952]


def test_all_parts_of_a_set_count_as_far_as_they_are_there(tmp_path, every_q4) -> None:
    part = matrices(("blk.0.attn_k.weight", [32, 64], F32, 8192))
    first = part.write(tmp_path / "m-00001-of-00003.gguf")
    shutil.copyfile(first, tmp_path / "m-00002-of-00003.gguf")
    assert resident_weights_bytes(first) == 2 * 8192


def test_what_cannot_be_told_is_left_to_the_model_s_own_size(tmp_path, monkeypatch) -> None:
    log = EngineLog()  # takes what ggml says of the file
    log.install()
    (tmp_path / "broken.gguf").write_bytes(b"GGUF")
    assert resident_weights_bytes(tmp_path / "broken.gguf") == 0
    monkeypatch.setitem(repacking._SIGNATURES, "ggml_of_another_version", (None, ()))
    assert resident_weights_bytes(tmp_path / "broken.gguf") == 0
    monkeypatch.setattr(repacking.llama, "llama_supports_gpu_offload", lambda: True)
    assert resident_weights_bytes(tmp_path / "broken.gguf", gpu_layers=10) == 0
