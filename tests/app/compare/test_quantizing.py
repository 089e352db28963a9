"""Quantizations made here: planned, made, tried; whatever stops them on the way leaves nothing behind."""

from __future__ import annotations

import os
import threading

import numpy as np
import psutil
import pytest

from app.bench.engine_run import EngineEndedError, EngineRefusedError, StoppedError
from app.compare import quantizing
from app.compare.quantizing import Planned, QuantizeError, Quantizer, Wish
from app.models.gguf_header import read_header
from backends.errors import ErrorCode
from backends.llama_cpp_engine.importance_file import Sums, read_importance, write_importance
from tests.helpers.small_llama import LAYERS, write_small_llama

SLOW = "IQ1_M"  # the slowest of them: some seconds, even for this model


def nothing(_phase, _fraction) -> None:
    """Nobody looks on."""


@pytest.fixture(scope="module")
def f16(tmp_path_factory):
    return write_small_llama(tmp_path_factory.mktemp("models") / "small.gguf")


@pytest.fixture(scope="module")
def matrix(tmp_path_factory):
    widths = {
        **dict.fromkeys(("attn_q", "attn_k", "attn_v", "attn_output", "ffn_gate", "ffn_up"), 256),
        "ffn_down": 512,
    }
    sums = {
        f"blk.{layer}.{name}.weight": Sums(np.linspace(1, 2, columns)[None], np.array([4.0]))
        for layer in range(LAYERS)
        for name, columns in widths.items()
    }
    path = tmp_path_factory.mktemp("matrix") / "i.gguf"
    write_importance(path, sums, windows=2, window_tokens=512, source="text")
    return path


@pytest.fixture
def out(tmp_path):
    folder = tmp_path / "out"
    folder.mkdir()
    return folder


def refusal(wish, kind=QuantizeError):
    with pytest.raises(kind) as caught:
        Quantizer().make(wish, nothing)
    return caught.value


def test_sizes_are_known_before_anything_is_made(f16, out) -> None:
    planned = Quantizer().plan(f16, ("Q8_0", "Q4_K_M", "IQ2_XS"))
    assert [one.quantization for one in planned] == ["Q8_0", "Q4_K_M", "IQ2_XS"]
    assert [one.needs_importance for one in planned] == [False, False, True]
    assert planned[0].size_bytes > planned[1].size_bytes > planned[2].size_bytes > 0
    assert 4.5 < planned[1].bits_per_weight < 5.5
    assert all(one.fault is None and not one.requantized_from for one in planned)
    made = Quantizer().make(Wish(source=f16, quantization="Q8_0", target=out / "made.gguf"), nothing)
    assert made.planned == planned[0]
    assert made.path.stat().st_size == planned[0].size_bytes


def test_what_no_type_is_defined_for_is_said_of_that_one_alone(tmp_path) -> None:
    narrow = write_small_llama(tmp_path / "narrow.gguf", width=288)
    good, bad = Quantizer().plan(narrow, ("Q8_0", "Q1_0"))
    assert good.fault is None
    assert bad.fault is not None
    assert bad == Planned("Q1_0", fault=bad.fault)


def test_a_result_is_tried_and_its_steps_are_told(f16, out) -> None:
    told: list[tuple[str, float]] = []
    made = Quantizer().make(
        Wish(source=f16, quantization="Q4_0", target=out / "made.gguf"), lambda phase, done: told.append((phase, done))
    )
    phases = [phase for phase, _done in told]
    assert phases == sorted(phases)  # quantize, then verify
    assert ("quantize", 1.0) in told
    assert told[-1] == ("verify", 1.0)
    assert [path.name for path in out.iterdir()] == ["made.gguf"]
    assert read_header(made.path).quantization == "Q4_0"


def test_a_quantized_source_is_refused_and_its_result_warns_for_ever(f16, out) -> None:
    assert quantizing.source_warning(f16) == ""
    quantizer = Quantizer()
    first = quantizer.make(Wish(source=f16, quantization="Q4_0", target=out / "a.gguf"), nothing).path
    assert "(Q4_0)" in quantizing.source_warning(first)
    error = refusal(Wish(source=first, quantization="F16", target=out / "b.gguf"), EngineRefusedError)
    assert error.code == ErrorCode.SOURCE_QUANTIZED
    wish = Wish(source=first, quantization="F16", target=out / "b.gguf", allow_requantize=True)
    second = quantizer.make(wish, nothing)
    assert second.planned.requantized_from == "Q4_0"
    assert "(Q4_0)" in quantizing.source_warning(second.path)
    assert read_header(second.path).text("cutaway.requantized_from") == "Q4_0"


def test_an_importance_matrix_is_made_from_a_text_and_used(f16, out) -> None:
    target, told = out / "i.gguf", []
    text = "The quick brown fox jumps over the lazy dog. " * 30
    tokens = Quantizer().measure_importance(f16, text, "a fox", target, lambda *step: told.append(step))
    assert tokens > 2 * quantizing.WINDOW_TOKENS
    found = read_importance(target)
    assert (found.chunks, found.source, len(found.means)) == (tokens // 512, "a fox", 7 * LAYERS)
    assert ("importance", 1.0) in told
    wish = Wish(source=f16, quantization="Q2_K_S", target=out / "made.gguf", importance=target)
    made = Quantizer().make(wish, nothing)
    assert read_header(made.path).text("quantize.imatrix.dataset") == "a fox"


def test_what_cannot_be_made_is_said_and_leaves_nothing(f16, out, tmp_path) -> None:
    there = tmp_path / "there.gguf"
    there.write_text("mine")
    target = out / "made.gguf"
    messages = [
        refusal(Wish(source=tmp_path / "none.gguf", quantization="Q8_0", target=target)).words.message,
        refusal(Wish(source=tmp_path, quantization="Q8_0", target=target)).words.message,
        refusal(Wish(source=f16, quantization="Q8_0", target=there)).words.message,
        refusal(Wish(source=f16, quantization="Q8_0", target=tmp_path / "no" / "made.gguf")).words.message,
        refusal(Wish(source=f16, quantization="Q9", target=target), EngineRefusedError).words.message,
        refusal(Wish(source=f16, quantization="Q2_K_S", target=target), EngineRefusedError).words.message,
        refusal(
            Wish(source=f16, quantization="Q8_0", target=target, importance=there), EngineRefusedError
        ).words.message,
    ]
    for message, part in zip(
        messages,
        (
            "not there any more",
            "is a folder",
            "there already",
            "is not there",
            "no quantization",
            "Without",
            "cannot be",
        ),
        strict=True,
    ):
        assert part in message
    assert there.read_text() == "mine"
    assert not list(out.iterdir())


def test_a_disk_without_room_is_said_before_a_byte_is_written(f16, out, monkeypatch) -> None:
    monkeypatch.setattr(quantizing, "free_bytes", lambda _folder: 10**9 + 1000)
    error = refusal(Wish(source=f16, quantization="Q8_0", target=out / "made.gguf"))
    assert "no room" in error.words.message
    assert not list(out.iterdir())


def test_a_result_that_does_not_run_is_removed(out, tmp_path) -> None:
    mute = write_small_llama(tmp_path / "mute.gguf", has_vocabulary=False)
    error = refusal(Wish(source=mute, quantization="Q8_0", target=out / "made.gguf"))
    assert "does not work" in error.words.message
    assert not list(out.iterdir())


def test_cancelled_in_the_middle_nothing_is_left(f16, matrix, out) -> None:
    cancelled = threading.Event()
    wish = Wish(source=f16, quantization=SLOW, target=out / "made.gguf", importance=matrix)
    seen: list[list[str]] = []

    def cancel(_phase, _fraction) -> None:
        seen.append(sorted(path.name for path in out.iterdir()))
        cancelled.set()

    with pytest.raises(StoppedError):
        Quantizer(cancelled.is_set).make(wish, cancel)
    assert seen[0] == ["made.gguf.quantizing.part"]  # it was being written
    assert not list(out.iterdir())


def test_an_engine_killed_in_the_middle_is_said_and_leaves_nothing(f16, matrix, out) -> None:
    def kill(_phase, _fraction) -> None:
        for child in psutil.Process().children():
            child.kill()

    with pytest.raises(EngineEndedError) as caught:
        Quantizer().make(Wish(source=f16, quantization=SLOW, target=out / "made.gguf", importance=matrix), kill)
    assert "ended the engine" in caught.value.words.message
    assert not list(out.iterdir())


def test_what_a_killed_program_left_goes_with_the_next_order_and_what_is_fresh_stays(f16, out) -> None:
    old, fresh = out / "old.gguf.quantizing.part", out / "fresh.gguf.quantizing.part"
    others = out / "download.gguf.part"
    for path in (old, fresh, others, out / "made.gguf.quantizing"):
        path.write_text("x")
    for path in (old, others):
        os.utime(path, (1, 1))
    Quantizer().make(Wish(source=f16, quantization="Q8_0", target=out / "made.gguf"), nothing)
    assert sorted(path.name for path in out.iterdir()) == [
        "download.gguf.part",
        "fresh.gguf.quantizing.part",
        "made.gguf",
    ]
