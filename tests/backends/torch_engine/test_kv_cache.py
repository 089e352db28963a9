import pytest
import torch

from backends.torch_engine.kv_cache import KvCache, bytes_per_token
from backends.torch_engine.layer_plan import LayerPlan

PLANS = (LayerPlan(0, 4, 2, 8, 6), LayerPlan(1, 4, 1, 16, 16), LayerPlan(2, 4, 1, 16, 16, shares_with=1))


def made(blocks=4):
    return KvCache(PLANS, blocks, 4, torch.float32)


def test_layers_have_their_own_shapes_and_one_more_block_than_the_pool():
    cache = made()
    assert cache.trash_block == 4
    assert cache.slots == 20
    assert [tuple(keys.shape) for keys in cache.keys] == [(2, 20, 8), (1, 20, 16), (1, 20, 16)]
    assert tuple(cache.values[0].shape) == (2, 20, 6)


def test_a_layer_that_reads_anothers_takes_no_memory():
    cache = made()
    assert cache.keys[2] is cache.keys[1]
    assert cache.bytes_per_token == bytes_per_token(PLANS, torch.float32) == 4 * (2 * 14 + 32)
    assert cache.bytes_total == cache.bytes_per_token * 20
    assert bytes_per_token(PLANS, torch.bfloat16) == cache.bytes_per_token // 2


def test_what_is_written_lies_at_its_slots_and_nowhere_else():
    cache = made()
    for pool in (cache.keys[0], cache.values[0]):
        pool.fill_(float("nan"))  # the canary
    key, value = torch.randn(1, 2, 3, 8), torch.randn(1, 2, 3, 6)
    slots = torch.tensor([17, 2, 3])
    cache.write(0, key, value, slots)
    assert torch.equal(cache.keys[0][:, slots], key[0])
    assert torch.equal(cache.values[0][:, slots], value[0])
    others = [slot for slot in range(20) if slot not in slots.tolist()]
    assert cache.keys[0][:, others].isnan().all()
    assert cache.values[0][:, others].isnan().all()


def test_keys_of_another_dtype_are_stored_in_the_caches():
    cache = KvCache(PLANS, 2, 4, torch.bfloat16)
    cache.write(0, torch.ones(1, 2, 1, 8), torch.ones(1, 2, 1, 6), torch.tensor([0]))
    assert cache.keys[0][:, 0].eq(1).all()


def test_copies_read_every_source_before_a_target_is_written():
    cache = made()
    for pool in (*cache.keys[:2], *cache.values[:2]):
        pool.copy_(torch.arange(20)[:, None] // 4)
    cache.copy_blocks([(0, 1), (1, 2)])
    cache.copy_blocks([])
    for pool in (*cache.keys, *cache.values):
        assert pool[0, :, 0].view(5, 4).tolist() == [[0] * 4, [0] * 4, [1] * 4, [3] * 4, [4] * 4]


def test_layers_out_of_order_are_refused():
    with pytest.raises(ValueError, match="stands at place 0"):
        KvCache(PLANS[1:], 2, 4, torch.float32)
