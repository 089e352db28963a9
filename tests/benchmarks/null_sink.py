"""What the protocol costs: decode and prefill through a worker whose text goes nowhere, against the engine without us.

Three sides, on the same model, prompt lengths and threads: a worker over its pipe, timed where events arrive; a bare loop
over llama.cpp's low-level API in one process, which decodes and samples and does nothing else; and, where
build_peers.sh was run, llama-bench. They take turns, so that what the machine does besides falls on all alike.
llama-bench's tg does not sample and starts from an empty context; both other sides sample, greedily.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
from importlib import metadata
from pathlib import Path
from typing import Any, TextIO

from tests.benchmarks.engine import NullSink, random_prompt
from tests.benchmarks.measure import ROOT, Bench, Figures, physical_threads, starter_model, tell

_NEW_TOKENS, _PROMPT_TOKENS = 128, 512
_SHORT_PROMPT_TOKENS = 16
_ROUNDS, _QUICK_ROUNDS = 7, 1
_SEED = 11
_MICRO_BATCH_TOKENS = 512


def measure(bench: Bench) -> Figures:
    """Return speeds in tokens/s of each side and their ratios, the median over rounds."""
    return bench.child("null_sink", "rounds", bench.pick(_ROUNDS, _QUICK_ROUNDS))


def llama_bench() -> Path | None:
    """Return llama-bench of the version that our engine is, where it was built."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    path = cache / "cutaway" / "peers" / metadata.version("llama-cpp-python") / "bin" / "llama-bench"
    return path if path.is_file() else None


class BareLoop:
    """The bare loop, in a process of its own; close it."""

    def __init__(self, threads: int) -> None:
        command = [sys.executable, "-m", "tests.benchmarks.null_sink", "bare", str(threads)]
        self._process = subprocess.Popen(
            command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._stdin: TextIO = self._process.stdin
        self._stdout: TextIO = self._process.stdout

    def run(self, seed: int, prompt_tokens: int, new_tokens: int) -> dict[str, float]:
        """Read a random prompt and write tokens; returns both speeds in tokens/s."""
        self._stdin.write(json.dumps([seed, prompt_tokens, new_tokens]) + "\n")
        self._stdin.flush()
        found: dict[str, float] = json.loads(self._stdout.readline())
        return found

    def close(self) -> None:
        """End the process."""
        self._stdin.close()
        self._process.wait()
        self._stdout.close()


def _bench_speeds(program: Path, threads: int) -> dict[str, float]:
    """Run llama-bench once and return its speeds in tokens/s."""
    command = [program, "-m", starter_model(), "-p", str(_PROMPT_TOKENS), "-n", str(_NEW_TOKENS), "-t", str(threads)]
    result = subprocess.run([*map(str, command), "-r", "1", "-o", "json"], capture_output=True, text=True, check=True)
    rows = json.loads(result.stdout)
    return {("decode" if row["n_gen"] else "prefill"): float(row["avg_ts"]) for row in rows}


def _child(rounds: int) -> None:
    threads = physical_threads()
    peer = llama_bench()
    speeds: dict[str, dict[str, list[float]]] = {side: {"decode": [], "prefill": []} for side in ("ours", "bare", "peer")}
    bare = BareLoop(threads)
    with NullSink(Path(os.devnull), threads) as sink:
        for number in range(-1, rounds):  # the first round only warms
            seed = _SEED + number * 2
            found: dict[str, dict[str, float]] = {}
            # Who begins changes: what slowly drifts falls on all alike.
            for side in ("ours", "bare") if number % 2 else ("bare", "ours"):
                found[side] = _our_speeds(sink, seed) if side == "ours" else _bare_speeds(bare, seed)
            if peer is not None:
                found["peer"] = _bench_speeds(peer, threads)
            for side, pair in found.items() if number >= 0 else ():
                for kind, speed in pair.items():
                    speeds[side][kind].append(speed)
    bare.close()
    tell(_summary(speeds))


def _our_speeds(sink: NullSink, seed: int) -> dict[str, float]:
    """Return our speeds in tokens/s as they arrive: decode by our clock, prefill up to the first token."""
    written = sink.run(random_prompt(seed, _SHORT_PROMPT_TOKENS, sink.vocabulary_tokens), _NEW_TOKENS)
    new_tokens = written.figures.new_tokens
    assert new_tokens == _NEW_TOKENS, "the prompt's answer ended early: choose another seed"
    read = sink.run(random_prompt(seed + 1, _PROMPT_TOKENS, sink.vocabulary_tokens), 1)
    assert read.figures.reused_tokens == 0
    return {
        "decode": (new_tokens - 1) / (written.ended_s - written.first_s),
        "prefill": _PROMPT_TOKENS / (read.ended_s - read.sent_s),
    }


def _bare_speeds(bare: BareLoop, seed: int) -> dict[str, float]:
    written = bare.run(seed, _SHORT_PROMPT_TOKENS, _NEW_TOKENS)
    read = bare.run(seed + 1, _PROMPT_TOKENS, 1)
    return {"decode": written["decode"], "prefill": read["prefill"]}


def _summary(speeds: dict[str, dict[str, list[float]]]) -> Figures:
    found: Figures = {}
    for kind in ("decode", "prefill"):
        for side in speeds:
            if speeds[side][kind]:
                found[f"null_sink.{side}_{kind}_tokens_per_s"] = statistics.median(speeds[side][kind])
        for side in ("bare", "peer"):
            ratios = [a / b for a, b in zip(speeds["ours"][kind], speeds[side][kind], strict=False)]
            if ratios:
                found[f"null_sink.{kind}_to_{side}"] = statistics.median(ratios)
    return found


def _bare_child(threads: int) -> None:
    """Answer lines of [seed, prompt tokens, new tokens] with speeds, by llama.cpp's low-level API and nothing else."""
    import ctypes
    import time

    import llama_cpp as llama

    silent = llama.llama_log_callback(lambda _level, _text, _data: None)
    llama.llama_log_set(silent, ctypes.c_void_p(0))
    model, context, vocabulary_tokens = _bare_context(llama, threads)
    memory = llama.llama_get_memory(context)
    sampler = llama.llama_sampler_init_greedy()
    for line in sys.stdin:
        seed, prompt_tokens, new_tokens = json.loads(line)
        ids = random_prompt(seed, prompt_tokens, vocabulary_tokens).token_ids
        llama.llama_memory_clear(memory, False)
        prompt = (llama.llama_token * len(ids))(*ids)
        began_s = time.monotonic()
        assert llama.llama_decode(context, llama.llama_batch_get_one(prompt, len(ids))) == 0
        one = (llama.llama_token * 1)(llama.llama_sampler_sample(sampler, context, -1))
        read_s = time.monotonic()
        for _number in range(new_tokens - 1):
            assert llama.llama_decode(context, llama.llama_batch_get_one(one, 1)) == 0
            one[0] = llama.llama_sampler_sample(sampler, context, -1)
        ended_s = time.monotonic()
        decode = (new_tokens - 1) / (ended_s - read_s)
        tell({"prefill": prompt_tokens / (read_s - began_s), "decode": decode})
    llama.llama_sampler_free(sampler)
    llama.llama_free(context)
    llama.llama_model_free(model)


def _bare_context(llama: Any, threads: int) -> tuple[Any, Any, int]:
    """Load the starter model as the engine does, without its abort flag and its log."""
    llama.llama_backend_init()
    model = llama.llama_model_load_from_file(os.fsencode(starter_model()), llama.llama_model_default_params())
    params = llama.llama_context_default_params()
    params.n_ctx = min(8192, llama.llama_model_n_ctx_train(model))
    params.n_threads = params.n_threads_batch = threads
    params.n_ubatch = _MICRO_BATCH_TOKENS
    params.no_perf = True
    context = llama.llama_init_from_model(model, params)
    return model, context, llama.llama_vocab_n_tokens(llama.llama_model_get_vocab(model))


if __name__ == "__main__":
    if sys.argv[1] == "bare":
        _bare_child(int(sys.argv[2]))
    else:
        _child(int(sys.argv[2]))
