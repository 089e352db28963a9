"""What attention over blocks costs on the CPU, beside one contiguous cache and beside gathering blocks.

A loop of 30 layers shaped like SmolLM2-135M (9 query heads, 3 KV heads of 64, bfloat16) without the rest of the model.
`python tests/benchmarks/block_attention.py [--threads 2] [--cpu-time]`; ratios of medians over interleaved rounds, with
--cpu-time of one thread's own time, which other programs disturb less.
"""

from __future__ import annotations

import argparse
import random
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

import torch
from torch.nn.functional import scaled_dot_product_attention

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from backends.torch_engine.attention import AttentionContext
from backends.torch_engine.kv_cache import KvCache
from backends.torch_engine.layer_plan import LayerPlan
from backends.torch_engine.step_layout import RowInput, StepLayout

LAYERS, HEADS, KV_HEADS, SIZE, BLOCK = 30, 9, 3, 64, 16
DTYPE = torch.bfloat16
Loop = Callable[[], None]


def tables(lengths: list[int], kind: str, blocks: int) -> list[list[int]]:
    """Return block tables that begin evenly ("spaced", "holes" where places are left out), or lie anywhere."""
    generator = random.Random(3)
    needed = [-(-length // BLOCK) for length in lengths]
    if kind in {"spaced", "holes"}:
        places = (
            range(len(lengths))
            if kind == "spaced"
            else sorted(generator.sample(range(len(lengths) * 3 // 2), len(lengths)))
        )
        stride = max(needed) + 2
        return [
            list(range(place * stride, place * stride + count)) for place, count in zip(places, needed, strict=True)
        ]
    if kind == "runs":
        order = list(range(len(lengths)))
        generator.shuffle(order)
        begins, at = {}, 0
        for number in order:
            at += generator.randrange(1, 9)
            begins[number] = at
            at += needed[number]
        return [list(range(begins[n], begins[n] + needed[n])) for n in range(len(lengths))]
    free = list(range(blocks))
    generator.shuffle(free)
    return [[free.pop() for _ in range(count)] for count in needed]


def block_loop(lengths: list[int], kind: str, *, in_place: bool) -> Loop:
    """One decode step of these sequences through the attention context."""
    blocks = 3 * sum(-(-length // BLOCK) + 4 for length in lengths) + 64
    plans = [LayerPlan(layer, HEADS, KV_HEADS, SIZE, SIZE) for layer in range(LAYERS)]
    cache = KvCache(plans, blocks, BLOCK, DTYPE)
    for pool in cache.keys + cache.values:
        pool.normal_()
    context = AttentionContext(cache)
    context.reads_in_place = in_place
    query, key, value = made(len(lengths))
    rows = [RowInput([1], n - 1, table) for n, table in zip(lengths, tables(lengths, kind, blocks), strict=True)]

    def loop() -> None:
        context.step = StepLayout.build(rows, BLOCK)
        for layer in range(LAYERS):
            context.attend(layer, query, key, value)

    return loop


def dense_loop(lengths: list[int]) -> Loop:
    """The same step over one contiguous cache [B, K, S, D], the heads of a KV head packed as queries."""
    rows, longest = len(lengths), max(lengths)
    shape = (rows, KV_HEADS, longest + 128, SIZE)
    keys = [torch.randn(shape).to(DTYPE) for _ in range(LAYERS)]
    values = [torch.randn(shape).to(DTYPE) for _ in range(LAYERS)]
    query, key, value = made(rows)
    at, every = torch.tensor(lengths) - 1, torch.arange(rows)

    def loop() -> None:
        mask = None if rows == 1 else (torch.arange(longest)[None] <= at[:, None])[:, None, None]
        for layer in range(LAYERS):
            keys[layer][every, :, at] = key[0].transpose(0, 1)
            values[layer][every, :, at] = value[0].transpose(0, 1)
            packed = query[0].transpose(0, 1).reshape(rows, KV_HEADS, -1, SIZE)
            out = scaled_dot_product_attention(
                packed, keys[layer][:, :, :longest], values[layer][:, :, :longest], attn_mask=mask
            )
            out.reshape(1, rows, HEADS, SIZE)

    return loop


def made(rows: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return a query [1, H, T, D], key and value [1, K, T, D] as models hand them over."""
    parts = [torch.randn(1, rows, heads, SIZE).to(DTYPE).transpose(1, 2) for heads in (HEADS, KV_HEADS, KV_HEADS)]
    return parts[0], parts[1], parts[2]


def main() -> None:
    """Measure and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--cpu-time", action="store_true", help="of one thread")
    wanted = parser.parse_args()
    torch.set_num_threads(1 if wanted.cpu_time else wanted.threads)
    clock = time.thread_time if wanted.cpu_time else time.perf_counter
    cases = {"1 x 200": [200], "1 x 1000": [1000], "1 x 4000": [4000], "16 x 200": [200] * 16}
    cases["16 x 170-230"] = [170 + 4 * number for number in range(16)]
    cases["16 x 1000"] = [1000] * 16
    for name, lengths in cases.items():
        loops = {"contiguous": dense_loop(lengths), "gathered": block_loop(lengths, "scattered", in_place=False)}
        for kind in ("spaced", "holes", "runs", "scattered"):
            loops[kind] = block_loop(lengths, kind, in_place=True)
        times: dict[str, list[float]] = {label: [] for label in loops}
        with torch.inference_mode():
            for _ in range(wanted.rounds + 1):
                for label, loop in loops.items():
                    began = clock()
                    loop()
                    times[label].append(clock() - began)
        best = {
            label: statistics.median(sorted(taken[1:])[: max(3, wanted.rounds // 3)]) for label, taken in times.items()
        }
        figures = "  ".join(
            f"{label} {best[label] * 1e3:.2f} ms ({best[label] / best['contiguous']:.2f})" for label in best
        )
        print(f"{name:14} {figures}")


if __name__ == "__main__":
    main()
