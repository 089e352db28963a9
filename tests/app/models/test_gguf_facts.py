"""Facts made of a header's values; the values of real and hostile files are in test_gguf_header.py."""

from __future__ import annotations

from types import MappingProxyType

from app.models.gguf_facts import ArrayNote, GgufHeader, TensorInfo, Value


def header(metadata: dict[str, Value], *tensors: TensorInfo) -> GgufHeader:
    return GgufHeader(3, 32, MappingProxyType(metadata), tensors, 0, 0)


def test_counts_and_sizes_are_sums_over_the_tensors() -> None:
    first = TensorInfo("a", (32, 3), "Q4_0", 0, 54)
    second = TensorInfo("b", (8,), "F32", 64, 32)
    facts = header({}, first, second)
    assert (first.elements, facts.parameters_count, facts.tensor_bytes) == (96, 104, 86)
    assert facts.quantization == "Q4_0"
    assert header({}).quantization == ""


def test_texts_and_numbers_are_given_for_their_own_type_only() -> None:
    facts = header({"a": "x", "b": 7, "c": True, "d": 1.5, "e": ArrayNote("string", 9), "f": (1, 2)})
    assert [facts.text(key) for key in "abcdefg"] == ["x", "", "", "", "", "", ""]
    assert [facts.number(key, absent=-1) for key in "abcdefg"] == [-1, 7, -1, -1, -1, -1, -1]


def test_facts_of_the_architecture_are_found_under_its_name() -> None:
    values: dict[str, Value] = {
        "general.architecture": "qwen3",
        "qwen3.context_length": 40_960,
        "qwen3.block_count": 36,
    }
    facts = header(values)
    assert (facts.architecture, facts.context_length, facts.block_count) == ("qwen3", 40_960, 36)
