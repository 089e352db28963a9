import pytest
import torch

from backends.torch_engine.kv_cache import KvCache
from backends.torch_engine.rope import fix_rope
from backends.torch_engine.step_layout import RowInput
from tests.helpers.block_runner import BlockRunner, plans_of
from tests.helpers.tiny_models import tiny_model

ORIGINAL = 16
LONG = {
    "rope_type": "longrope",
    "rope_theta": 10000.0,
    "short_factor": [1.0, 1.1, 1.2, 1.3],
    "long_factor": [2.0, 3.0, 4.0, 5.0],
    "original_max_position_embeddings": ORIGINAL,
    "factor": 4.0,
}
DYNAMIC = {"rope_type": "dynamic", "rope_theta": 10000.0, "factor": 4.0}


def scaled(kind):
    if kind == "longrope":
        changes = {"rope_parameters": dict(LONG), "max_position_embeddings": 64}
        return tiny_model("phi3", original_max_position_embeddings=ORIGINAL, **changes)
    return tiny_model("llama", rope_parameters=dict(DYNAMIC), max_position_embeddings=ORIGINAL)


def in_one_forward(model, ids):
    with torch.inference_mode():
        return model(input_ids=torch.tensor([ids]), use_cache=False).logits[0]


def by_single_tokens(model, ids):
    cache = KvCache(plans_of(model), 10, 4, torch.float32)
    runner = BlockRunner(model, cache)
    table = list(range(10))
    return torch.cat([runner.run([RowInput([token], place, table)]) for place, token in enumerate(ids)])


@pytest.mark.parametrize("kind", ["longrope", "dynamic"])
def test_beyond_the_original_length_logits_are_those_of_one_forward(kind):
    ids = torch.randint(3, 290, (30,), generator=torch.Generator().manual_seed(2)).tolist()
    model = scaled(kind)
    right = in_one_forward(model, ids)
    before = by_single_tokens(scaled(kind), ids)
    assert (before - right)[ORIGINAL:].abs().max() > 1e-4, "the frequencies do not matter here"
    model = scaled(kind)
    assert fix_rope(model, 30) == 1
    assert torch.allclose(by_single_tokens(model, ids), right, atol=2e-6)


@pytest.mark.parametrize("kind", ["longrope", "dynamic"])
def test_where_no_longer_text_is_allowed_the_short_frequencies_stay(kind):
    ids = list(range(5, 5 + ORIGINAL))
    right = in_one_forward(scaled(kind), ids)
    model = scaled(kind)
    fix_rope(model, ORIGINAL)
    assert torch.allclose(by_single_tokens(model, ids), right, atol=2e-6)


def test_a_chats_length_does_not_turn_anothers_keys():
    model = scaled("longrope")
    fix_rope(model, 40)
    cache = KvCache(plans_of(model), 16, 4, torch.float32)
    runner = BlockRunner(model, cache)
    alone = runner.run([RowInput([5, 6, 7], 0, [0])])
    together = runner.run([RowInput([5, 6, 7], 0, [0]), RowInput([8] * 30, 0, list(range(2, 12)))])
    assert torch.allclose(together[0], alone[0], atol=2e-6)


def test_other_frequencies_are_left_alone():
    assert fix_rope(tiny_model("llama"), 1000) == 0
    assert fix_rope(tiny_model("gemma3_text"), 1000) == 0
