"""One answer for every screen: verdicts, room, speed, and never a NaN or a failure."""

from __future__ import annotations

import math
import random

import pytest

from app.models.fit import fit
from app.models.fit_types import FitQuestion, Measured, Verdict
from app.models.fit_words import confirmation_words, fit_sentence, fit_short, owner_rows
from app.models.gguf_header import read_header
from app.models.shape import LayerShape, ModelShape
from app.models.shape_gguf import shape_of_gguf
from backends.protocol import LoadParams, MemorySplit
from tests.helpers.fit_models import GIB, MIB, card, computer, llama_8b, question


def needed(shape, asked=None):
    return fit(shape, asked or question(), computer(1000)).estimate.needed_bytes


# ----------------------------------------------------------------------------------------------------- verdicts


def test_the_starter_fits_with_all_its_context(starter_model):
    found = fit(shape_of_gguf(read_header(starter_model)), question(), computer(4))
    assert (found.verdict, found.context_tokens, found.layers_count) == (Verdict.FITS, 8192, 30)
    assert found.estimate.kv_bytes == 180 * MIB
    assert found.estimate.weights_bytes == 96_576_768
    assert found.max_context_tokens == {"f16": 8192, "q8_0": 8192, "q4_0": 8192}
    assert found.decode_tokens_per_s == pytest.approx(20e9 / (96_576_768 + 1024 * 23_040), rel=0.01)


def test_verdicts_change_where_the_reserve_and_the_memory_end():
    exact = needed(llama_8b())
    reserve = 512 * MIB
    asked = question()
    assert fit(llama_8b(), asked, computer((exact + reserve) / GIB)).verdict is Verdict.FITS
    assert fit(llama_8b(), asked, computer((exact + reserve - 1) / GIB)).verdict is Verdict.TIGHT
    assert fit(llama_8b(), asked, computer(exact / GIB)).verdict is Verdict.TIGHT
    assert fit(llama_8b(), asked, computer((exact - 1) / GIB)).verdict is Verdict.TOO_LARGE


def test_pages_that_a_copy_stands_in_for_do_not_make_a_model_too_large():
    shape = llama_8b(copied_bytes=3 * GIB)
    found = fit(shape, question(), computer(7.1))
    assert found.verdict is Verdict.FITS
    assert found.estimate.total_bytes == found.estimate.needed_bytes + 3 * GIB
    assert found.estimate.by_device == {"CPU": found.estimate.total_bytes}


def test_a_card_holds_all_some_or_none():
    asked = question(gpu_layers=-1)
    large, small, tiny = (fit(llama_8b(), asked, computer(16, card(free))) for free in (7.9, 4, 0.5))
    assert (large.verdict, large.gpu_layers, large.device.name) == (Verdict.FITS, 32, "CUDA0")
    assert (small.verdict, small.gpu_layers) == (Verdict.PARTIAL, 18)
    assert (tiny.verdict, tiny.gpu_layers, tiny.device.name) == (Verdict.FITS, 0, "CPU")
    assert large.decode_tokens_per_s > small.decode_tokens_per_s > tiny.decode_tokens_per_s
    assert set(small.estimate.by_device) == {"CPU", "CUDA0"}
    assert (small.free_bytes, large.free_bytes) == (4 * GIB, int(7.9 * GIB))


def test_layers_that_stay_must_fit_too():
    found = fit(llama_8b(), question(gpu_layers=-1), computer(1.5, card(4)))
    assert (found.verdict, found.device.name) == (Verdict.TOO_LARGE, "CPU")


def test_torch_needs_one_device_for_all():
    found = fit(llama_8b(), question("torch", kv_type="bf16"), computer(64, card(4)))
    assert (found.verdict, found.device.name) == (Verdict.TOO_LARGE, "CUDA0")
    quantized = fit(llama_8b(), question("torch", kv_type="bf16"), computer(64, card(7.9)))
    assert quantized.verdict is Verdict.TOO_LARGE  # torch writes the weights out: 16 bits each
    roomy = fit(llama_8b(), question("torch", kv_type="bf16"), computer(64, card(24)))
    assert (roomy.verdict, roomy.gpu_layers) == (Verdict.FITS, 32)
    assert roomy.max_context_tokens["bf16"] > 8192
    assert roomy.max_context_tokens["q8_0"] == 0  # no such KV cache in torch


def test_a_kv_type_that_a_backend_has_not_is_named_with_those_it_has():
    found = fit(llama_8b(), question("torch", kv_type="q8_0"), computer(64))
    assert found.verdict is Verdict.UNKNOWN
    assert found.reason == "The torch engine keeps the KV cache as f16, bf16, f32. Choose one of these."


# --------------------------------------------------------------------------------------------------------- room


@pytest.mark.parametrize("kv_type", ["f16", "q8_0", "q4_0"])
def test_the_room_is_the_largest_context_that_fits_with_something_to_spare(kv_type):
    machine = computer(7.1)
    room = fit(llama_8b(), question(), machine).max_context_tokens[kv_type]
    assert 0 < room < 131_072
    assert room % 256 == 0
    assert fit(llama_8b(), question(context_tokens=room, kv_type=kv_type), machine).verdict is Verdict.FITS
    assert fit(llama_8b(), question(context_tokens=room + 256, kv_type=kv_type), machine).verdict is Verdict.TIGHT


def test_room_on_a_card_keeps_every_layer_there():
    machine, asked = computer(64, card(7.1)), question(gpu_layers=-1, context_tokens=4096)
    room = fit(llama_8b(), asked, machine).max_context_tokens["f16"]
    at, beyond = (
        fit(llama_8b(), question(gpu_layers=-1, context_tokens=tokens), machine) for tokens in (room, room + 256)
    )
    assert (at.gpu_layers, beyond.gpu_layers) == (32, 31)


def test_there_is_no_more_room_than_the_model_was_trained_for():
    assert fit(llama_8b(context_tokens=4096), question(), computer(1000)).max_context_tokens["f16"] == 4096
    assert fit(llama_8b(context_tokens=1000), question(), computer(1000)).max_context_tokens["f16"] == 768
    assert fit(llama_8b(context_tokens=100), question(), computer(1000)).max_context_tokens["f16"] == 100
    assert fit(llama_8b(context_tokens=0), question(), computer(1000)).max_context_tokens["f16"] == 8192


def test_no_room_is_zero():
    found = fit(llama_8b(), question(), computer(2))
    assert found.max_context_tokens == {"f16": 0, "q8_0": 0, "q4_0": 0}
    assert fit(llama_8b(context_tokens=100), question(), computer(2)).max_context_tokens["f16"] == 0


def test_the_type_asked_for_has_its_room_too():
    assert list(fit(llama_8b(), question(kv_type="q5_1"), computer(16)).max_context_tokens) == [
        "f16",
        "q8_0",
        "q4_0",
        "q5_1",
    ]


def test_a_kv_type_that_the_heads_refuse_is_said_and_has_no_room():
    odd = llama_8b(layers=(LayerShape(32, 80, 80),) * 32)
    found = fit(odd, question(kv_type="q8_0"), computer(64))
    assert found.verdict is Verdict.UNKNOWN
    assert found.reason.startswith("This model's KV cache cannot be stored as q8_0")
    assert (found.max_context_tokens["q8_0"], found.max_context_tokens["f16"] > 0) == (0, True)
    assert fit(odd, question(kv_type="f4"), computer(64)).reason == "There is no KV type f4. Choose f16."


# -------------------------------------------------------------------------------------------- S-09: huge numbers


def test_a_context_of_2_to_the_31_is_clamped_and_said():
    shape = llama_8b(context_tokens=2**31 - 1)
    found = fit(shape, question(context_tokens=2**31 - 1), computer(8))
    assert (found.verdict, found.context_tokens) == (Verdict.TOO_LARGE, 2**24)
    assert found.max_context_tokens["f16"] > 0
    words = confirmation_words(found)
    assert "GiB" in words.message or "TiB" in words.message
    assert "There is room for" in words.hint


def test_a_vocabulary_of_2_to_the_40_is_only_too_large():
    found = fit(llama_8b(vocabulary_tokens=2**40), question(), computer(8))
    assert (found.verdict, found.max_context_tokens["f16"]) == (Verdict.TOO_LARGE, 0)


# ----------------------------------------------------------------------------------------- who knows better


def test_a_probe_replaces_kv_and_compute_and_moves_the_room():
    machine = computer(7.1)
    header = fit(llama_8b(), question(), machine)
    estimate = header.estimate
    probe = MemorySplit(
        weights_bytes=estimate.weights_bytes,
        kv_reserved_bytes=estimate.kv_bytes,
        compute_bytes=estimate.compute_bytes + 512 * MIB,
        output_bytes=estimate.output_bytes,
        tables_bytes=estimate.tables_bytes,
    )
    found = fit(llama_8b(), question(), machine, probe)
    assert (found.estimate.source, found.estimate.compute_bytes) == ("probe", probe.compute_bytes)
    assert found.estimate.total_bytes == estimate.total_bytes + 512 * MIB
    lost = header.max_context_tokens["f16"] - found.max_context_tokens["f16"]
    assert 3500 < lost < 4100  # 512 MiB of K, V and masks


def load(**changes):
    split = MemorySplit(weights_bytes=llama_8b().weights_bytes, kv_reserved_bytes=GIB, compute_bytes=130 * MIB)
    values = {
        "backend": "llama_cpp",
        "device": "CPU",
        "context_tokens": 8192,
        "kv_type": "f16",
        "micro_batch_tokens": 512,
    }
    values |= {"kv_mode": "chat", "max_sequences": 1, "split": split, "process_bytes": 7 * GIB, "floor_bytes": 60 * MIB}
    return Measured(**(values | changes))


def test_an_equal_load_is_the_answer_and_its_speed_too():
    found = fit(llama_8b(), question(), computer(16), None, [load(decode_tokens_per_s=3.3)])
    assert (found.estimate.source, found.estimate.total_bytes) == ("measured", 7 * GIB)
    assert (found.decode_tokens_per_s, found.is_speed_measured) == (3.3, True)


def test_a_load_goes_before_a_probe():
    probe = MemorySplit(kv_reserved_bytes=1)
    assert fit(llama_8b(), question(), computer(16), probe, [load()]).estimate.source == "measured"


def test_a_load_with_another_context_sets_the_estimate_right():
    asked = question(context_tokens=16_384)
    header = fit(llama_8b(), asked, computer(16)).estimate
    there = fit(llama_8b(), question(), computer(16)).estimate
    found = fit(llama_8b(), asked, computer(16), None, [load()]).estimate
    assert (found.source, found.kv_bytes) == ("header", 2 * GIB)
    assert found.compute_bytes == header.compute_bytes + 130 * MIB - there.compute_bytes


def test_loads_on_other_devices_tell_nothing():
    found = fit(llama_8b(), question(), computer(16), None, [load(device="CUDA0", decode_tokens_per_s=99.0)])
    assert (found.estimate.source, found.is_speed_measured) == ("header", False)


# --------------------------------------------------------------------------------------- what nobody can tell


def test_without_a_shape_the_answer_is_unknown_with_a_reason():
    """Field report 15: unknown allows loading with one confirmation."""
    found = fit(None, question(), computer(8))
    assert (found.verdict, found.estimate, found.context_tokens) == (Verdict.UNKNOWN, None, 8192)
    assert found.max_context_tokens == {"f16": None, "q8_0": None, "q4_0": None}
    assert found.reason == "The model's header does not say how it is built."
    assert confirmation_words(found) is not None


def test_a_shape_that_is_unknown_gives_its_own_reason():
    shape = ModelShape(architecture="x", unknown="Nobody knows its cache.")
    found = fit(shape, question(), computer(8))
    assert found.reason.endswith("told before it is loaded. Nobody knows its cache.")
    drafted = fit(llama_8b(), FitQuestion(draft=shape), computer(64))
    assert (drafted.verdict, drafted.reason) == (Verdict.UNKNOWN, found.reason)


def test_what_the_engine_told_of_an_unknown_shape_is_an_answer():
    shape = ModelShape(architecture="x", unknown="Nobody knows its cache.")
    probe = MemorySplit(weights_bytes=4 * GIB, kv_reserved_bytes=GIB, compute_bytes=MIB, tables_bytes=MIB)
    found = fit(shape, question(), computer(8), probe)
    assert (found.verdict, found.estimate.total_bytes) == (Verdict.FITS, 5 * GIB + 2 * MIB + 48 * MIB)
    assert found.max_context_tokens == {"f16": None, "q8_0": None, "q4_0": None}
    assert fit(None, question(), computer(8), None, [load()]).estimate.total_bytes == 7 * GIB
    assert fit(shape, question(), computer(4), probe).verdict is Verdict.TOO_LARGE


@pytest.mark.parametrize("bandwidth", [0, -1.0, math.nan, math.inf])
def test_without_a_bandwidth_there_is_no_speed(bandwidth):
    found = fit(llama_8b(), question(), computer(16, bandwidth=bandwidth))
    assert (found.decode_tokens_per_s, found.is_speed_measured) == (None, False)


# ------------------------------------------------------------------------------------------- any numbers at all


NUMBERS = (-(2**63), -1, 0, 1, 7, 64, 4096, 2**31 - 1, 2**40, 2**63, 10**30)


def _any_shape(draw):
    pick = draw.choice
    layers = tuple(LayerShape(*(pick(NUMBERS) for _ in range(7))) for _ in range(draw.randint(0, 3)))
    values = {
        name: pick(NUMBERS) for name in ModelShape.__struct_fields__ if name.endswith(("_bytes", "_length", "_count"))
    }
    values |= {"context_tokens": pick(NUMBERS), "vocabulary_tokens": pick(NUMBERS)}
    return ModelShape(
        architecture=pick(("llama", "gemma3n", "rwkv7", "")), is_mla=pick((True, False)), layers=layers, **values
    )


def test_no_numbers_fail_or_give_nan():
    for seed in range(1500):
        draw = random.Random(seed)
        params = LoadParams(
            context_tokens=draw.choice(NUMBERS),
            kv_type=draw.choice(("f16", "q8_0", "q4_0", "int8", "x")),
            micro_batch_tokens=draw.choice(NUMBERS),
            batch_tokens=draw.choice(NUMBERS),
            gpu_layers=draw.choice((0, -1, 3, 2**40)),
            kv_mode=draw.choice(("chat", "streams")),
            max_sequences=draw.choice(NUMBERS),
            allow_long_context=draw.choice((True, False)),
        )
        asked = FitQuestion(
            backend=draw.choice(("llama_cpp", "torch", "other")),
            params=params,
            draft=draw.choice((None, _any_shape(draw))),
            projector_bytes=draw.choice(NUMBERS),
        )
        machine = computer(draw.choice((-5, 0, 8, 10**12)), *draw.choice(((), (card(draw.choice((-1, 4, 7))),))))
        split = MemorySplit(
            **{name: draw.choice(NUMBERS) for name in ("weights_bytes", "kv_reserved_bytes", "compute_bytes")}
        )
        record = load(context_tokens=draw.choice(NUMBERS), split=split, process_bytes=draw.choice(NUMBERS))
        found = fit(_any_shape(draw), asked, machine, draw.choice((None, split)), draw.choice(((), (record,))))
        words = f"{fit_sentence(found)} {fit_short(found)} {confirmation_words(found)} {owner_rows(found, record)}"
        assert "nan" not in words.lower()
        if found.estimate is not None:
            assert found.estimate.total_bytes >= 0
            assert all(tokens is None or tokens >= 0 for tokens in found.max_context_tokens.values())
