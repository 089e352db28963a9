"""Numbers of chance that depend on (seed, position, stream) alone: known values, even, independent."""

from __future__ import annotations

import numpy as np
import pytest

from backends.torch_engine.sampler_uniform import Stream, mix, uniform
from tests.helpers.token_pieces import chi_square_excess


def test_the_mixed_numbers_are_those_of_splitmix64() -> None:
    """The first outputs of the reference implementation with state 0."""
    gamma = 0x9E3779B97F4A7C15
    outputs = [mix(number * gamma) for number in (1, 2, 3)]
    assert outputs == [0xE220A8397B1DCDAF, 0x6E789E6AA1B965F4, 0x06C45D188009454F]


def test_a_draw_depends_on_seed_position_and_stream_and_nothing_else() -> None:
    assert uniform(7, 100) == uniform(7, 100)
    found = {uniform(seed, position, stream) for seed in range(8) for position in range(8) for stream in Stream}
    assert len(found) == 8 * 8 * len(Stream)


def test_the_numbers_lie_from_zero_to_below_one() -> None:
    assert (0xFFFF_FFFF_FFFF_FFFF >> 11) * 2.0**-53 < 1
    assert all(0 <= uniform(seed, 2**40) < 1 for seed in (0, 1, 2**32 - 2, 2**64 + 3))


@pytest.mark.parametrize(
    "numbers",
    [
        [uniform(1, position) for position in range(20_000)],
        [uniform(seed, 5) for seed in range(20_000)],
        [uniform(seed, 5, Stream.RESIDUAL) for seed in range(20_000)],
    ],
    ids=["positions", "seeds", "seeds of another stream"],
)
def test_the_numbers_are_even(numbers) -> None:
    """False alarm: 3e-7 each, and the numbers are fixed."""
    counts, _edges = np.histogram(numbers, bins=64, range=(0, 1))
    assert chi_square_excess(counts, np.full(64, len(numbers) / 64)) < 5


@pytest.mark.parametrize("shift", [(0, 1, Stream.TOKEN), (1, 0, Stream.TOKEN), (0, 0, Stream.ACCEPTANCE)])
def test_neighbours_in_position_seed_and_stream_are_independent(shift) -> None:
    """Pairs fall evenly into a square of 8 by 8; false alarm 3e-7 each."""
    seed_step, position_step, stream = shift
    pairs = [(uniform(9, at), uniform(9 + seed_step, at + position_step, stream)) for at in range(0, 40_000, 2)]
    counts, _x, _y = np.histogram2d(*zip(*pairs, strict=True), bins=8, range=((0, 1), (0, 1)))
    assert chi_square_excess(counts.ravel(), np.full(64, len(pairs) / 64)) < 5
