"""Quantizing with llama.cpp: sizes are exact beforehand, whatever fails leaves nothing, and a loss is written down."""

from __future__ import annotations

import resource
import struct

import numpy as np
import pytest
from gguf import GGUFReader

from backends import protocol
from backends.errors import EngineError, ErrorCode
from backends.llama_cpp_engine.engine import LlamaCppEngine
from backends.llama_cpp_engine.importance_file import Sums, write_importance
from backends.llama_cpp_engine.quantizing import QUANTIZATIONS, REQUANTIZED_KEY, quantization_number
from tests.helpers.small_llama import LAYERS, write_small_llama

QUICK = ("F32", "BF16", "Q8_0", "Q6_K", "Q4_K_M", "Q4_0", "Q2_K", "TQ2_0", "Q2_0")
# an importance matrix of one kind: (matrix, columns)
WIDTHS = {"attn_q": 256, "attn_k": 256, "attn_v": 256, "attn_output": 256, "ffn_gate": 256, "ffn_up": 256}


@pytest.fixture(scope="module")
def f16(tmp_path_factory):
    return write_small_llama(tmp_path_factory.mktemp("models") / "small.gguf")


@pytest.fixture(scope="module")
def narrow(tmp_path_factory):
    return write_small_llama(tmp_path_factory.mktemp("models") / "narrow.gguf", width=288)


def make(source, target, quantization, events=None, **fields):
    command = protocol.Quantize(
        request_id=protocol.RequestId(4),
        source_path=str(source),
        target_path=str(target),
        quantization=quantization,
        **fields,
    )
    return LlamaCppEngine().quantize(command, (events if events is not None else []).append)


def matrix(path, widths=None, *, layers=LAYERS):
    widths = {**WIDTHS, "ffn_down": 512} if widths is None else widths
    sums = {
        f"blk.{layer}.{name}.weight": Sums(np.linspace(1, 2, columns)[None], np.array([4.0]))
        for layer in range(layers)
        for name, columns in widths.items()
    }
    write_importance(path, sums, windows=2, window_tokens=512, source="my text")
    return path


def value(path, key):
    field = GGUFReader(path).fields.get(key)
    return None if field is None else field.contents()


def failure(*arguments, **fields):
    with pytest.raises(EngineError) as caught:
        make(*arguments, **fields)
    return caught.value


@pytest.mark.parametrize("quantization", QUICK)
def test_the_size_is_exact_beforehand_and_the_result_runs(f16, tmp_path, quantization) -> None:
    target = tmp_path / "made.gguf"
    wanted = make(f16, target, quantization, dry_run=True)
    assert not list(tmp_path.iterdir())
    made = make(f16, target, quantization, threads=2)
    assert target.stat().st_size == made.size_bytes == wanted.size_bytes
    assert (made.bits_per_weight, made.tensors) == (wanted.bits_per_weight, 3 + 9 * LAYERS)
    assert made.request_id == protocol.RequestId(4)
    assert [path.name for path in tmp_path.iterdir()] == ["made.gguf"]
    engine = LlamaCppEngine()
    loaded = engine.load(protocol.LoadModel(str(target), protocol.LoadParams(context_tokens=64)), lambda _event: None)
    engine.unload()
    assert loaded.capabilities.can_quantize


@pytest.mark.full
@pytest.mark.parametrize("quantization", QUANTIZATIONS)
def test_every_quantization_has_its_exact_size_with_an_importance_matrix(f16, tmp_path, quantization) -> None:
    target, importance = tmp_path / "made.gguf", str(matrix(tmp_path / "i.gguf"))
    wanted = make(f16, target, quantization, dry_run=True, importance_path=importance)
    assert make(f16, target, quantization, importance_path=importance).size_bytes == wanted.size_bytes
    assert target.stat().st_size == wanted.size_bytes


def test_progress_rises_to_the_whole(f16, tmp_path) -> None:
    events: list[protocol.Progress] = []
    make(f16, tmp_path / "made.gguf", "Q8_0", events)
    done = [event.done for event in events if isinstance(event, protocol.Progress)]
    assert done == sorted(done)
    assert events[-1].done == events[-1].total > 0
    assert {event.phase for event in events} == {"quantize"}


def test_rows_that_are_no_whole_blocks_fall_back_and_are_counted(narrow, tmp_path) -> None:
    found = make(narrow, tmp_path / "made.gguf", "Q4_K_M", dry_run=True)
    # 288 is no multiple of 256, and neither are the 576 of ffn_down: nothing is as the name says, but for the output,
    # which llama.cpp gives another type to begin with
    assert found.fallback_tensors == 7 * LAYERS + 1
    assert found.bits_per_weight > 5.4
    assert make(narrow, tmp_path / "made.gguf", "Q8_0", dry_run=True).fallback_tensors == 0


def test_names_are_found_in_any_case_and_strangers_are_refused(f16, tmp_path) -> None:
    assert quantization_number("q4_k") == quantization_number("Q4_K_M") == 15
    error = failure(f16, tmp_path / "made.gguf", "Q9_X")
    assert error.code is ErrorCode.UNKNOWN_QUANTIZATION
    assert "Q4_K_M" in error.parameters["known"]


def test_a_quantized_source_is_refused_unless_agreed_and_then_says_so_for_ever(f16, tmp_path) -> None:
    first, second, third = (tmp_path / f"{name}.gguf" for name in ("first", "second", "third"))
    assert make(f16, first, "Q4_0").requantized_from == ""
    error = failure(first, second, "F16")
    assert (error.code, error.parameters["quantization"]) == (ErrorCode.SOURCE_QUANTIZED, "Q4_0")
    assert make(first, second, "F16", allow_requantize=True).requantized_from == "Q4_0"
    assert value(second, REQUANTIZED_KEY) == "Q4_0"
    # from here on nothing but the file itself knows
    assert make(second, third, "Q8_0").requantized_from == "Q4_0"
    assert value(third, REQUANTIZED_KEY) == "Q4_0"
    fourth = tmp_path / "fourth.gguf"
    assert make(third, fourth, "Q5_0", allow_requantize=True).requantized_from == "Q4_0 > Q8_0"
    assert fourth.stat().st_size == make(third, tmp_path / "x", "Q5_0", dry_run=True).size_bytes


def test_small_quantizations_need_an_importance_matrix_and_take_one(f16, tmp_path) -> None:
    target = tmp_path / "made.gguf"
    assert make(f16, target, "Q2_K_S", dry_run=True).needs_importance
    assert failure(f16, target, "Q2_K_S").code is ErrorCode.IMPORTANCE_NEEDED
    assert not list(tmp_path.iterdir())
    importance = matrix(tmp_path / "mine.gguf")
    made = make(f16, target, "Q2_K_S", importance_path=str(importance))
    assert target.stat().st_size == made.size_bytes
    assert value(target, "quantize.imatrix.file") == "mine.gguf"  # the name alone: a path tells of a person
    assert value(target, "quantize.imatrix.dataset") == "my text"
    assert value(target, "quantize.imatrix.chunks_count") == 2
    assert value(target, "quantize.imatrix.entries_count") == 7 * LAYERS


def test_an_importance_matrix_of_another_model_or_with_gaps_is_told(f16, tmp_path) -> None:
    target = tmp_path / "made.gguf"
    for importance in (matrix(tmp_path / "a.gguf", {**WIDTHS, "ffn_down": 64}), matrix(tmp_path / "b.gguf", layers=1)):
        error = failure(f16, target, "Q2_K_S", importance_path=str(importance))
        assert error.code is ErrorCode.IMPORTANCE_UNREADABLE
        assert "blk." in error.parameters["detail"]
        importance.unlink()
    assert not list(tmp_path.iterdir())


def test_a_source_that_is_none_is_told(f16, tmp_path) -> None:
    target = tmp_path / "made.gguf"
    text = tmp_path / "text.gguf"
    text.write_text("no model")
    broken = tmp_path / "broken.gguf"
    broken.write_bytes(f16.read_bytes()[:50_000])
    strange = tmp_path / "strange.gguf"
    strange.write_bytes(f16.read_bytes().replace(b"llama", b"lorem"))
    codes = {
        tmp_path / "none.gguf": ErrorCode.FILE_MISSING,
        tmp_path: ErrorCode.NOT_A_MODEL,
        text: ErrorCode.NOT_A_MODEL,
        broken: ErrorCode.QUANTIZE_FAILED,
        strange: ErrorCode.UNKNOWN_ARCHITECTURE,
    }
    assert {source: failure(source, target, "Q8_0").code for source in codes} == codes
    assert not target.exists()


def test_a_target_that_is_there_and_a_folder_that_is_not_are_told(f16, tmp_path) -> None:
    there = tmp_path / "there.gguf"
    there.write_text("mine")
    assert failure(f16, there, "Q8_0").code is ErrorCode.WRITE_FAILED
    assert there.read_text() == "mine"
    assert failure(f16, tmp_path / "none" / "made.gguf", "Q8_0").code is ErrorCode.WRITE_FAILED
    assert [path.name for path in tmp_path.iterdir()] == ["there.gguf"]


@pytest.mark.parametrize("share", [0.002, 0.5, 1.0])
def test_a_disk_that_is_full_is_told_and_nothing_is_left(f16, tmp_path, share) -> None:
    # Python ignores the signal, so that a write beyond the limit fails as on a full disk; at last one byte is missing
    size_bytes = make(f16, tmp_path / "made.gguf", "Q8_0", dry_run=True).size_bytes
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (round(share * size_bytes) - 1, before[1]))
    try:
        error = failure(f16, tmp_path / "made.gguf", "Q8_0")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert error.code is ErrorCode.WRITE_FAILED
    assert not list(tmp_path.iterdir())


def test_weights_that_are_not_finite_are_told(f16, tmp_path) -> None:
    source = tmp_path / "nan.gguf"
    raw = bytearray(f16.read_bytes())
    raw[-4096:] = struct.pack("<e", float("nan")) * 2048  # in the last norm or matrix of the file
    source.write_bytes(raw)
    error = failure(source, tmp_path / "made.gguf", "Q4_0")
    assert error.code is ErrorCode.QUANTIZE_FAILED
    assert not (tmp_path / "made.gguf.part").exists()
