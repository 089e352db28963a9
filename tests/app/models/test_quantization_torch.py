"""The names of quantizations outside GGUF, in the spellings people and repositories use."""

from __future__ import annotations

import pytest

from app.models.quantization_torch import layer_bits, loss_of_bits, torch_name, whole_model_bits
from app.models.quantization_words import gguf_name


@pytest.mark.parametrize(
    ("spelled", "name"),
    [
        ("bf16", "BF16"),
        ("torch.bfloat16", "BF16"),
        ("fp16", "F16"),
        ("Float16", "F16"),
        ("fp32", "F32"),
        ("fp8", "FP8"),
        ("FP8-dynamic", "FP8"),
        ("fp8 row-wise", "FP8"),
        ("float8_e4m3fn", "FP8"),
        ("W8A8-FP8", "FP8"),
        ("fp8_e5m2", "FP8-E5M2"),
        ("e5m2-fp8", "FP8-E5M2"),
        ("FP8-E5M2", "FP8-E5M2"),
        ("mxfp8", "MXFP8"),
        ("mxfp4", "MXFP4"),
        ("nvfp4", "NVFP4"),
        ("nf4", "NF4"),
        ("bnb-4bit", "NF4"),
        ("bitsandbytes-8bit", "int8"),
        ("fp4", "FP4"),
        ("INT8", "int8"),
        ("int8 weight-only", "int8"),
        ("4bit", "int4"),
        ("int4-g64", "int4-g64"),
        ("uint4", "int4"),
        ("awq", "AWQ-int4"),
        ("AWQ g128", "AWQ-int4-g128"),
        ("GPTQ g32", "GPTQ-int4-g32"),
        ("GPTQ-Int4", "GPTQ-int4"),
        ("gptq-4bit-32g-actorder_True", "GPTQ-int4-g32"),
        ("auto-round-int2-g64", "AutoRound-int2-g64"),
        ("hqq-4bit", "HQQ-int4"),
        ("quanto-int8", "Quanto-int8"),
        ("EETQ", "EETQ-int8"),
        ("W8A8", "W8A8"),
        ("w4a16", "W4A16"),
        ("W4A16-g128", "W4A16-g128"),
        ("4.0bpw", "4bpw"),
        ("exl2-4.65bpw", "EXL2-4.65bpw"),
        ("EXL3 3.5bpw-h6", "EXL3-3.5bpw"),
    ],
)
def test_a_name_is_understood_and_its_own_spelling_again(spelled: str, name: str) -> None:
    known = torch_name(spelled)
    assert known is not None
    assert known.name == name
    again = torch_name(name) or gguf_name(name)
    assert again is not None
    assert (again.name, again.bits, again.loss) == (known.name, known.bits, known.loss)


@pytest.mark.parametrize(
    "spelled",
    [
        "",
        "-",
        "llama",
        "int9",
        "9bit",
        "int8-llama",
        "g128",
        "0.5bpw",
        "99bpw",
        "w9a16",
        "int44",
        "fp8x",
        "int0",
        "w0a8",
    ],
)
def test_a_stranger_is_no_name(spelled: str) -> None:
    assert torch_name(spelled) is None


def test_whole_models_keep_their_embedding_and_output_at_16_bits() -> None:
    # torchao publishes 9.1 GB for FP8 and 6.05 GB for NVFP4 of the 8.03 billion weights of Llama 3.1 8B.
    assert round(whole_model_bits(8) * 8.03 / 8, 1) == 9.1
    assert round(whole_model_bits(4.5) * 8.03 / 8, 2) == 6.03
    assert layer_bits(whole_model_bits(4.25)) == pytest.approx(4.25, abs=0.01)


def test_only_what_computes_in_few_bits_is_not_weight_only() -> None:
    names = ("FP8", "MXFP8", "W8A8", "W4A8", "W8A16", "W4A16", "int8", "NF4", "AWQ-int4", "fp8 weight only")
    found = [torch_name(name) for name in names]
    assert [known.is_weight_only for known in found if known] == [False] * 4 + [True] * 6


def test_calibrated_methods_lose_less_than_plain_rounding() -> None:
    losses = [known.loss for name in ("AWQ-int4", "int4", "GPTQ-int3", "int3") if (known := torch_name(name))]
    assert losses == ["small", "noticeable", "noticeable", "heavy"]


def test_fewer_bits_never_lose_less() -> None:
    order = ["heavy", "noticeable", "small", "near", "indistinguishable", "reference"]
    places = [order.index(loss_of_bits(tenths / 10)) for tenths in range(10, 330)]
    assert places == sorted(places)
    assert {order[place] for place in places} == set(order)
