"""The split of a measured total: exact figures, and never more than was measured."""

from __future__ import annotations

import random

from app.telemetry.owners import Owned, attribute, is_on_device, measured_bytes
from backends import protocol

SPLIT = protocol.MemorySplit(weights_bytes=95, kv_reserved_bytes=180, compute_bytes=90, output_bytes=7)


def test_a_resident_model_is_split_to_the_byte():
    # 40 before the load, then 95 of weights, 97 of buffers and a KV cache that was cleared, so all of it is resident.
    assert attribute(412, 40, SPLIT, 9) == Owned(40, 95, 97, 9, 171)


def test_weights_count_as_far_as_they_were_touched():
    # Mapped weights become resident page by page: what has not been touched belongs to nobody yet.
    assert attribute(100, 40, SPLIT, 0) == Owned(40, 60, 0, 0, 0)


def test_kv_pages_that_were_never_touched_are_not_counted():
    assert attribute(40 + 95 + 97 + 20, 40, SPLIT, 9) == Owned(40, 95, 97, 9, 11)


def test_growth_beyond_the_owners_is_rest():
    assert attribute(500, 40, SPLIT, 9) == Owned(128, 95, 97, 9, 171)


def test_growth_counts_as_weights_until_the_split_is_known():
    assert attribute(100, 40, None, 0) == Owned(40, 60, 0, 0, 0)


def test_memory_below_the_floor_is_all_rest():
    assert attribute(30, 40, SPLIT, 9) == Owned(30, 0, 0, 0, 0)
    assert attribute(30, 40, None, 0) == Owned(30, 0, 0, 0, 0)


def test_no_split_ever_claims_more_than_was_measured():
    chance = random.Random(11)
    for _ in range(2000):
        numbers = [chance.randrange(0, 1000) for _ in range(7)]
        split = protocol.MemorySplit(
            weights_bytes=numbers[0], kv_reserved_bytes=numbers[1], compute_bytes=numbers[2], draft_bytes=numbers[3]
        )
        owned = attribute(numbers[4], numbers[5], chance.choice((split, None)), numbers[6])
        parts = (
            owned.rest_bytes,
            owned.weights_bytes,
            owned.compute_bytes,
            owned.kv_used_bytes,
            owned.kv_idle_bytes,
        )
        assert sum(parts) == numbers[4]
        assert min(parts) >= 0


def test_the_process_total_holds_what_was_swapped_out():
    read = protocol.MemoryRead(read_s=0, anonymous_bytes=1, file_bytes=20, swap_bytes=300, device_used_bytes=4000)
    assert measured_bytes(read, on_device=False) == 321
    assert measured_bytes(read, on_device=True) == 4000


def test_the_card_is_drawn_only_when_the_weights_lie_on_it():
    card = protocol.MemoryRead(read_s=0, device_total_bytes=100, device_name="card")
    none = protocol.MemoryRead(read_s=0)
    assert is_on_device(protocol.MemorySplit(device="CUDA0"), card)
    assert is_on_device(None, card)
    assert not is_on_device(protocol.MemorySplit(device="CPU"), card)
    assert not is_on_device(protocol.MemorySplit(device="CPU_REPACK"), card)
    assert not is_on_device(protocol.MemorySplit(device="CUDA0"), none)
