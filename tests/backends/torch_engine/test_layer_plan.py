import pytest

from backends.torch_engine.layer_plan import LayerPlan
from tests.helpers.block_runner import plans_of
from tests.helpers.tiny_models import tiny_model


def test_heads_and_sizes_are_read_off_the_calls():
    plans = plans_of(tiny_model("llama"))
    assert plans == tuple(LayerPlan(index, 4, 2, 8, 8) for index in range(3))


def test_an_expanded_latent_has_keys_and_values_of_two_sizes():
    plans = plans_of(tiny_model("deepseek_v3"))
    assert [(plan.kv_heads, plan.k_size, plan.v_size) for plan in plans] == [(4, 16, 12)] * 3
    assert plans[0].values_per_token == 4 * 28


def test_heads_may_differ_by_layer_and_late_layers_read_earlier_ones():
    plans = plans_of(tiny_model("gemma4_text"))
    assert [plan.k_size for plan in plans] == [8, 16] * 3
    assert [plan.shares_with for plan in plans] == [-1, -1, -1, -1, 2, 3]
    assert [plan.window for plan in plans] == [8, 0] * 3
    assert [plan.values_per_token for plan in plans[4:]] == [0, 0]


@pytest.mark.parametrize(
    ("architecture", "windows", "chunks"),
    [
        ("mistral", [8, 8, 8], [0, 0, 0]),
        ("gpt_oss", [8, 0, 8], [0, 0, 0]),
        ("cohere2", [8, 8, 8, 0], [0, 0, 0, 0]),
        ("llama4_text", [0, 0, 0, 0], [8, 8, 8, 0]),
    ],
)
def test_windows_and_chunks_are_found(architecture, windows, chunks):
    plans = plans_of(tiny_model(architecture))
    assert [plan.window for plan in plans] == windows
    assert [plan.chunk for plan in plans] == chunks


def test_caps_and_sinks_are_found():
    assert {plan.softcap for plan in plans_of(tiny_model("gemma2"))} == {50.0}
    assert all(plan.has_sinks for plan in plans_of(tiny_model("gpt_oss")))
    assert not any(plan.has_sinks for plan in plans_of(tiny_model("qwen3")))


def test_what_a_token_sees_first():
    windowed, chunked = LayerPlan(0, 1, 1, 8, 8, window=4), LayerPlan(0, 1, 1, 8, 8, chunk=8)
    assert [windowed.first_visible(position) for position in (0, 3, 4, 9)] == [0, 0, 1, 6]
    assert [chunked.first_visible(position) for position in (0, 7, 8, 17)] == [0, 0, 8, 16]
    assert LayerPlan(0, 1, 1, 8, 8).first_visible(99) == 0
