"""Weights that were rounded once are told from original ones, in every type they may be written in."""

from __future__ import annotations

import numpy as np
import pytest
from gguf import GGMLQuantizationType as GgmlType
from gguf.quants import dequantize, quantize

from app.compare.weight_grid import Grid, distinct_values, grid_of

SHAPE = (96, 512)  # 1,536 blocks
DRAWS = {
    "normal": lambda draw: draw.standard_normal(SHAPE),
    "laplace": lambda draw: draw.laplace(size=SHAPE),
    "student": lambda draw: draw.standard_t(3, size=SHAPE),
    "uniform": lambda draw: draw.uniform(-1, 1, SHAPE),
}


def weights(kind: str = "normal", seed: int = 7) -> np.ndarray:
    return (DRAWS[kind](np.random.default_rng(seed)) * 0.02).astype(np.float32)


def rounded(values: np.ndarray, type_name: str) -> np.ndarray:
    if type_name == "F16":
        return values.astype(np.float16).astype(np.float32)
    if type_name == "BF16":
        bits = values.astype(np.float32).view(np.uint32)
        return ((bits + 0x7FFF + (bits >> 16 & 1)) & np.uint32(0xFFFF0000)).astype(np.uint32).view(np.float32)
    return values.astype(np.float32)


TYPES = pytest.mark.parametrize("type_name", ["F32", "F16", "BF16"])


@TYPES
@pytest.mark.parametrize("kind", DRAWS)
def test_original_weights_lie_on_no_grid(kind: str, type_name: str):
    """Of a thousand blocks none is near a grid; the sign needs nine of ten. Chance of a false alarm: below 1e-300."""
    assert grid_of(rounded(weights(kind), type_name)) == Grid(bits=0)


@TYPES
@pytest.mark.parametrize(
    ("stored", "grid"),
    [
        (GgmlType.Q4_0, Grid(4, True)),
        (GgmlType.Q4_1, Grid(4, True)),
        (GgmlType.MXFP4, Grid(4, True)),
        (GgmlType.Q5_0, Grid(5)),
        (GgmlType.Q5_1, Grid(5)),
        (GgmlType.Q8_0, Grid(8)),
    ],
)
def test_dequantized_weights_are_told_by_their_grid(stored: GgmlType, grid: Grid, type_name: str):
    made = dequantize(quantize(weights(), stored), stored).reshape(SHAPE)

    assert grid_of(rounded(made, type_name)) == grid


@TYPES
def test_eight_bits_a_row_and_six_bits_in_sixteen_are_told(type_name: str):
    original = weights()
    row_step = np.abs(original).max(axis=1, keepdims=True) / 127
    per_row = np.rint(original / row_step) * row_step
    parts = original.reshape(-1, 16)
    step = np.abs(parts).max(axis=1, keepdims=True) / np.random.default_rng(3).uniform(30, 32, (len(parts), 1))
    six_bits = (np.rint(parts / step) * step).reshape(SHAPE)

    assert grid_of(rounded(per_row, type_name)) == Grid(8)
    assert grid_of(rounded(six_bits, type_name)) == Grid(6)


def test_blocks_of_one_value_say_nothing_and_do_not_hide_the_others():
    zeros = np.zeros(SHAPE, np.float32)
    half = weights()
    half[::2] = 0

    assert grid_of(zeros) is None
    assert grid_of(half) == Grid(0)
    made = dequantize(quantize(half, GgmlType.Q4_0), GgmlType.Q4_0).reshape(SHAPE)
    assert grid_of(made) == Grid(4, True)


def test_weights_that_are_no_numbers_say_nothing():
    broken = weights()
    broken[0, 0] = np.nan

    assert grid_of(broken) is None


def test_values_of_a_block_are_counted():
    blocks = np.zeros((2, 32), np.float32)
    blocks[1] = np.arange(32) // 2

    assert list(distinct_values(blocks)) == [1, 16]
