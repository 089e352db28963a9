"""Published figures: for the very models that were measured, and for no other."""

from __future__ import annotations

import pytest

from app.hub.published import published

LLAMA = "meta-llama/Meta-Llama-3-8B"


@pytest.mark.parametrize(
    ("model", "quantization", "matrix", "wanted"),
    [
        (LLAMA, "Q8_0", None, 0.00136),
        (LLAMA, "Q8_0", True, 0.00136),
        (LLAMA, "q4_k_m", False, 0.03127),
        (LLAMA, "Q4_K_M", True, 0.02815),
        (LLAMA, "Q4_K_M", None, 0.03127),
        (LLAMA, "IQ4_XS", None, 0.03633),
        (LLAMA, "IQ4_XS", False, None),
        (LLAMA, "Q6_K", True, None),
        ("Meta-Llama-3-8B-Instruct", "Q2_K", True, 0.332),
        ("bartowski/Meta-Llama-3-8B-Instruct-GGUF", "Q3_K_M", False, 0.10191),
        ("meta-llama/Llama-2-7b-chat-hf", "Q4_K_M", None, 0.0127),
        ("TheBloke/Llama-2-7B-GGUF", "Q2_K", None, 0.109),
    ],
)
def test_the_measured_models_have_their_figures(model, quantization, matrix, wanted):
    found = published(model, quantization, has_importance_matrix=matrix)
    assert (found.kl_mean if found else None) == wanted


@pytest.mark.parametrize(
    "model",
    [
        "",
        "meta-llama/Llama-3.1-8B",
        "bartowski/Meta-Llama-3.1-8B-Instruct-GGUF",
        "meta-llama/Meta-Llama-3-70B",
        "NousResearch/Hermes-3-Llama-3-8B",
        "Meta-Llama-3-8B-abliterated",
        "meta-llama/Llama-2-13b",
        "Qwen/Qwen3-8B",
    ],
)
def test_no_other_model_has_any(model):
    assert published(model, "Q4_K_M") is None


def test_names_that_are_no_quantization_and_other_architectures_have_none():
    assert published(LLAMA, "UD-Q4_K_XL") is None
    assert published(LLAMA, "nonsense") is None
    assert published(LLAMA, "F16") is None
    assert published(LLAMA, "Q8_0", architecture="qwen3") is None
    assert published(LLAMA, "Q8_0", architecture="").kl_mean == 0.00136


def test_the_source_is_named():
    assert published(LLAMA, "Q8_0").source == (
        "Published by the llama.cpp project for Llama 3 8B: mean KL divergence over WikiText-2 in windows of 512."
    )
