"""What the torch engine's blocks save and cost: a prompt that comes again, the places left empty, the memory predicted.

A worker of its own with SmolLM2-135M in bf16, as a person loads it. A prompt of 1,000 tokens is asked twice; the ratio
of the two times to the first token is what the kept blocks save. Sixteen requests at once, on the engine's own block
map: the places without a token in the blocks of a sequence. The fit's prediction stands against what the load took.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any

from app.bench.engine_run import BLOCK_TOKENS, EngineRun
from app.bench.workload import Workload, requests_of
from app.engines.supervisor import LoadRequest
from backends import protocol
from tests.benchmarks.measure import Bench, Figures
from tests.helpers.hf_folders import smol_folder

_REPEATED = Workload(prompt_tokens=1000, new_tokens=4)
_MANY = Workload(prompt_tokens=100, new_tokens=60, requests=16, is_uneven=True)
_CONTEXT_TOKENS = 8192


def measure(bench: Bench) -> Figures:
    """Return the ratio of repeated to first, the worst waste a sequence in places, and predicted against measured."""
    rounds = bench.pick(7, 1)
    params = protocol.LoadParams(context_tokens=_CONTEXT_TOKENS, max_sequences=_MANY.requests, kv_type="bf16")
    run = EngineRun(lambda: Path("/dev/null"))
    try:
        loaded = run.load(LoadRequest(str(smol_folder()), "torch", params), lambda _share: None)
        run.run(requests_of(_REPEATED, loaded.vocabulary_tokens, 0, 1))
        first, again = [], []
        for number in range(1, rounds + 1):
            requests = requests_of(_REPEATED, loaded.vocabulary_tokens, number, 1)
            first.append(run.run(requests).figures[0].ttft_s)
            again.append(run.run(requests).figures[0].ttft_s)
        done = run.run(requests_of(_MANY, loaded.vocabulary_tokens, rounds + 1, 1))
    finally:
        run.close()
    assert done.mapped_places
    told = _fit(bench)
    predicted = told["predicted"]
    pool_bytes = (loaded.blocks + 1) * BLOCK_TOKENS * loaded.kv_bytes_per_token
    return {
        "torch_prefix.again_to_first": statistics.median(
            repeated / fresh for repeated, fresh in zip(again, first, strict=True)
        ),
        "torch_prefix.first_ttft_s": statistics.median(first),
        "torch_prefix.again_ttft_s": statistics.median(again),
        "torch_prefix.empty_places_a_sequence": done.mapped_empty / _MANY.requests,
        "torch_prefix.kv_reserved_to_pool": loaded.memory.kv_reserved_bytes / pool_bytes,
        "torch_prefix.weights_predicted_to_measured": predicted["weights_bytes"] / loaded.memory.weights_bytes,
        "torch_prefix.predicted_mib": predicted["total_bytes"] / 2**20,
        "torch_prefix.measured_peak_mib": run.peak_bytes / 2**20,
    }


def _fit(bench: Bench) -> dict[str, Any]:
    """Return what `cutaway fit` predicts for that load, without one."""
    command = [sys.executable, "-m", "app", "fit", str(smol_folder()), "--backend", "torch", "--json"]
    command += ["--context", str(_CONTEXT_TOKENS)]
    done = subprocess.run(command, env=bench.environment("fit"), capture_output=True, text=True, check=True)
    told: dict[str, Any] = json.loads(done.stdout)
    return told
