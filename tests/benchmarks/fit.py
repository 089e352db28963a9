"""How close the fit comes: memory predicted before a load against what the load took, and the speed likewise.

Two real models are loaded in workers of their own, at three contexts and three KV types, after a prediction with no
history from the header alone and one with the engine's allocator (the probe). Measured are the engine's own buffers
and, once a whole micro-batch was computed, the process: anonymous, file and swapped pages. Shapes of well-known models
without weights are compared with the allocator alone. The header of a 70B model is read from a local server.
"""

from __future__ import annotations

import os
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from app.engines.probe import probe_memory
from app.models.bandwidth import measure_bandwidth
from app.models.fit import fit
from app.models.fit_types import Fit, FitQuestion, MemoryEstimate
from app.models.gguf_header import read_header
from app.models.machine import read_machine
from app.models.remote_header import read_remote_header
from app.models.shape import ModelShape
from app.models.shape_gguf import shape_of_gguf
from app.telemetry.owners import measured_bytes
from backends.protocol import LoadParams, MemorySplit
from tests.benchmarks.engine import NullSink, random_prompt, repeating_prompt
from tests.benchmarks.measure import Bench, Figures, gemma_model, physical_threads, starter_model, tell
from tests.helpers.range_server import RangeServer
from tests.helpers.shape_files import SHAPES, write_shape

CONTEXTS, KV_TYPES = (512, 4_096, 32_768), ("f16", "q8_0", "q4_0")
_MODELS = {"starter": starter_model, "gemma": gemma_model}
_QUICK_CONTEXTS, _QUICK_SHAPES = 1, 3
_SHAPE_CONTEXT = 4_096
_NEW_TOKENS, _QUICK_NEW_TOKENS = 128, 16
_SPEED_ROUNDS, _MOST_PROMPTS = 3, 24
_REMOTE_SHAPE = "llama-3.1-70b"
_MIB = 2**20


def measure(bench: Bench) -> Figures:
    """Return how far each prediction is off, by load, and the worst of them."""
    found: Figures = {}
    for model in _MODELS:
        for context_tokens in CONTEXTS[: bench.pick(len(CONTEXTS), _QUICK_CONTEXTS)]:
            found |= bench.child("fit", "loads", model, context_tokens)
        found |= _worst(found, model)
        found |= bench.child("fit", "speed", model, bench.pick(_NEW_TOKENS, _QUICK_NEW_TOKENS))
    count = bench.pick(len(SHAPES), _QUICK_SHAPES)
    for kv_type in KV_TYPES:
        found |= bench.child("fit", "shapes", kv_type, count)
    return found | _worst_of_shapes(found, count) | bench.child("fit", "remote")


def _params(context_tokens: int, kv_type: str) -> LoadParams:
    threads = physical_threads()
    return LoadParams(context_tokens=context_tokens, kv_type=kv_type, threads=threads, allow_long_context=True)


def _predict(shape: ModelShape, params: LoadParams, split: MemorySplit | None = None) -> MemoryEstimate:
    """Return the estimate with no history."""
    estimate = fit(shape, FitQuestion(params=params), read_machine(), split).estimate
    if estimate is None:
        raise SystemExit(f"nothing is predicted for {shape.architecture}")
    return estimate


def _probe(path: Path, params: LoadParams) -> MemorySplit:
    split = probe_memory(path, params).split
    if split is None:
        raise SystemExit(f"{path.name} could not be probed")
    return split


def _worst(found: Figures, model: str) -> Figures:
    """Return the largest distance of each kind among the model's loads."""
    worst: Figures = {}
    for key, value in found.items():
        load, _dot, kind = key.rpartition(".")
        if load.startswith(f"fit.load.{model}.") and "_off_" in kind:
            whole = f"fit.{model}_{kind}"
            worst[whole] = max(worst.get(whole, 0.0), abs(value))
    return worst


def _loads_child(model: str, context_tokens: int) -> None:
    path = _MODELS[model]()
    shape = shape_of_gguf(read_header(path))
    found: Figures = {}
    for kv_type in KV_TYPES:
        params = _params(context_tokens, kv_type)
        header = _predict(shape, params)
        probed = _predict(shape, params, _probe(path, params))
        load = f"fit.load.{model}.{context_tokens}.{kv_type}"
        found |= {f"{load}.{key}": value for key, value in _one_load(path, params, header, probed)}
    tell(found)


def _one_load(
    path: Path, params: LoadParams, header: MemoryEstimate, probed: MemoryEstimate
) -> Iterator[tuple[str, float]]:
    """Load the model, let it read a whole micro-batch, and yield what was predicted against what it took."""
    with NullSink(Path(os.devnull), params.threads, model=path, params=params) as sink:
        prompt_tokens = min(params.micro_batch_tokens, params.context_tokens - 8)
        sink.run(random_prompt(1, prompt_tokens, sink.vocabulary_tokens), 2)
        process_bytes = measured_bytes(sink.read_memory(), on_device=False)
        assert sink.loaded is not None
        assert sink.loaded.context_tokens == params.context_tokens
        split = sink.loaded.memory
    yield "process_mib", process_bytes / _MIB
    for source, estimate in (("header", header), ("probe", probed)):
        yield f"{source}_mib", estimate.total_bytes / _MIB
        yield f"{source}_kv_off_mib", (estimate.kv_bytes - split.kv_reserved_bytes) / _MIB
        yield f"{source}_compute_off_mib", (estimate.compute_bytes - split.compute_bytes) / _MIB
        yield f"{source}_total_off_percent", 100 * (estimate.total_bytes / process_bytes - 1)


def _speed_child(model: str, new_tokens: int) -> None:
    """Compare the speed that the memory's bandwidth promises with what the model writes; a median of some answers."""
    path = _MODELS[model]()
    params = _params(_SHAPE_CONTEXT, "f16")
    machine = read_machine(bandwidth_bytes_per_s=measure_bandwidth())
    predicted = _speed(fit(shape_of_gguf(read_header(path)), FitQuestion(params=params), machine))
    with NullSink(Path(os.devnull), params.threads, model=path, params=params) as sink:
        written = statistics.median(_whole_answers(sink, new_tokens))
    tell(
        {
            f"fit.{model}_predicted_tokens_per_s": predicted,
            f"fit.{model}_written_tokens_per_s": written,
            f"fit.{model}_predicted_to_written": predicted / written,
        }
    )


def _whole_answers(sink: NullSink, new_tokens: int) -> list[float]:
    """Return the speeds of a few answers that did not end early, which depends on the prompt."""
    speeds = []
    for seed in range(1, _MOST_PROMPTS + 1):
        figures = sink.run(repeating_prompt(sink.vocabulary_tokens, seed), new_tokens).figures
        if figures.new_tokens == new_tokens:
            speeds.append(figures.decode_tokens_per_s)
        if len(speeds) == _SPEED_ROUNDS:
            return speeds
    raise SystemExit(f"of {_MOST_PROMPTS} answers fewer than {_SPEED_ROUNDS} were as long as was asked")


def _speed(answer: Fit) -> float:
    if answer.decode_tokens_per_s is None:
        raise SystemExit("no speed is predicted, though the bandwidth is known")
    return answer.decode_tokens_per_s


def _worst_of_shapes(found: Figures, count: int) -> Figures:
    values: dict[str, list[float]] = {}
    for key, value in found.items():
        shape, _dot, kind = key.rpartition(".")
        if shape.startswith("fit.shape."):
            values.setdefault(kind, []).append(abs(value))
    worst = {f"fit.shapes_{kind}": max(values[kind]) for kind in values if kind != "probe_s"}
    return worst | {"fit.shapes": float(count), "fit.shapes_probe_s": statistics.median(values["probe_s"])}


def _shapes_child(kv_type: str, count: int) -> None:
    """Compare the header alone with the allocator; weights that are rearranged for a processor are left out."""
    found: Figures = {}
    params = _params(_SHAPE_CONTEXT, kv_type)
    with tempfile.TemporaryDirectory(prefix="cutaway-bench-") as folder:
        for name in list(SHAPES)[:count]:
            path = write_shape(name, Path(folder))
            began_s = time.monotonic()
            split = _probe(path, params)
            probe_s = time.monotonic() - began_s
            shape = shape_of_gguf(read_header(path))
            estimate = _predict(shape, params)
            told_bytes = split.kv_reserved_bytes + split.compute_bytes + split.output_bytes + shape.weights_bytes
            ours_bytes = estimate.kv_bytes + estimate.compute_bytes + estimate.output_bytes + shape.weights_bytes
            key = f"fit.shape.{name}.{kv_type}"
            found[f"{key}.probe_s"] = probe_s
            found[f"{key}.kv_off_mib"] = (estimate.kv_bytes - split.kv_reserved_bytes) / _MIB
            found[f"{key}.compute_off_mib"] = (estimate.compute_bytes - split.compute_bytes) / _MIB
            found[f"{key}.total_off_percent"] = 100 * (ours_bytes / told_bytes - 1)
            path.unlink()
    tell(found)


def _remote_child() -> None:
    shape = SHAPES[_REMOTE_SHAPE]
    header = shape.header(is_full=True)
    with RangeServer(header, len(header) + shape.data_bytes) as server:
        read = read_remote_header(server.url)
        found = {
            "fit.remote_header_mib": len(header) / _MIB,
            "fit.remote_requests": float(len(server.script.requests)),
            "fit.remote_sent_mib": server.script.sent_bytes / _MIB,
        }
    assert shape_of_gguf(read.header).weights_bytes == shape.weights_bytes
    tell(found)


if __name__ == "__main__":
    if sys.argv[1] == "loads":
        _loads_child(sys.argv[2], int(sys.argv[3]))
    elif sys.argv[1] == "speed":
        _speed_child(sys.argv[2], int(sys.argv[3]))
    elif sys.argv[1] == "shapes":
        _shapes_child(sys.argv[2], int(sys.argv[3]))
    else:
        _remote_child()
