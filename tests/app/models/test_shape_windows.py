"""Which layers see a window: llama.cpp's patterns, layer by layer."""

from __future__ import annotations

import pytest

from app.models.gguf_keys import GgufKeys
from app.models.shape_windows import window_of_layers
from tests.helpers.fit_models import gguf_header

W = 512


def windows(architecture, count, **values):
    values = {key.replace("__", "."): value for key, value in values.items()}
    return window_of_layers(GgufKeys(gguf_header(architecture, values)), count, [False] * count)


@pytest.mark.parametrize(
    ("architecture", "pattern"),
    [
        ("gemma2", "wfwfwfwf"),
        ("gemma3", "wwwwwfww"),
        ("gemma3n", "wwwwfwww"),
        ("cohere2", "wwwfwwwf"),
        ("cohere2moe", "fwwwfwww"),
        ("gpt-oss", "wfwfwfwf"),
        ("olmo2", "wwwfwwwf"),
        ("plamo3", "wwwwwwwf"),
        ("laguna", "fwwwfwww"),
        ("phi3", "ffffffff"),
        ("llama", "ffffffff"),
        ("qwen2", "ffffffff"),
        ("starcoder2", "ffffffff"),
    ],
)
def test_each_architecture_has_its_own_pattern(architecture, pattern):
    found = windows(architecture, 8, attention__sliding_window=W)
    assert found == [W if letter == "w" else 0 for letter in pattern]


def test_the_file_s_own_pattern_goes_before():
    listed = (True, True, False, True)
    assert windows("gemma4", 4, attention__sliding_window=W, attention__sliding_window_pattern=listed) == [W, W, 0, W]
    assert windows("gemma3", 4, attention__sliding_window=W, attention__sliding_window_pattern=2) == [W, 0, W, 0]
    assert windows("gemma3", 4, attention__sliding_window=W, attention__sliding_window_pattern=0) == [W] * 4


def test_a_file_that_must_list_its_layers_and_does_not_has_no_windows():
    assert windows("gemma4", 3, attention__sliding_window=W) == [0, 0, 0]


def test_without_a_window_in_the_file_there_is_none_or_the_default():
    assert windows("gemma3", 2) == [0, 0]
    assert windows("gemma2", 2) == [4096, 0]
    assert windows("olmo2", 4, attention__sliding_window=0) == [0] * 4


def test_llama_4_always_cuts_at_8192_unless_its_file_says_zero():
    assert windows("llama4", 4) == [8192, 8192, 8192, 0]
    assert windows("llama4", 4, attention__sliding_window=77) == [8192, 8192, 8192, 0]
    assert windows("llama4", 4, attention__sliding_window=0) == [0] * 4


def test_exaone_4_has_windows_in_its_large_model_only():
    assert windows("exaone4", 32, attention__sliding_window=W) == [0] * 32
    assert windows("exaone4", 64, attention__sliding_window=W)[:5] == [W, W, W, 0, W]


def test_smallthinker_takes_its_own_window_if_there_is_one():
    assert windows("smallthinker", 4, attention__sliding_window=9) == [0, 4096, 4096, 4096]
    assert windows("smallthinker", 4) == [0] * 4


def test_layers_that_draft_ahead_have_no_window():
    assert windows("gemma2", 4, attention__sliding_window=W, nextn_predict_layers=2) == [W, 0, 0, 0]


def test_every_attention_layer_of_lfm2_has_the_window():
    keys = GgufKeys(gguf_header("lfm2", {"attention.sliding_window": W}))
    assert window_of_layers(keys, 3, [True, False, True]) == [0, W, 0]
