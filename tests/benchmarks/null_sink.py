"""What the protocol costs: decode and prefill through a worker whose text goes nowhere, against the engine without us.

Three sides, on the same model, prompt lengths and threads: a worker over its pipe, timed where events arrive; a bare
loop over llama.cpp's low-level API in one process, which decodes and samples and does nothing else; and, where
build_peers.sh was run, llama-bench. They take turns, so that what the machine does besides falls on all alike.
llama-bench's tg does not sample and starts from an empty context; both other sides sample, greedily.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
from functools import partial
from importlib import metadata
from pathlib import Path
from typing import Any, TextIO

from backends.protocol import TokenIds
from tests.benchmarks.engine import NullSink, random_prompt, repeating_prompt
from tests.benchmarks.measure import ROOT, Bench, Figures, physical_threads, starter_model, tell

_NEW_TOKENS, _QUICK_NEW_TOKENS = 128, 8
_PROMPT_TOKENS = 512
_ROUNDS, _QUICK_ROUNDS = 5, 1
_SEED = 11
_MICRO_BATCH_TOKENS = 512


def measure(bench: Bench) -> Figures:
    """Return speeds in tokens/s of each side and their ratios, the median over rounds."""
    return bench.child(
        "null_sink", "rounds", bench.pick(_ROUNDS, _QUICK_ROUNDS), bench.pick(_NEW_TOKENS, _QUICK_NEW_TOKENS)
    )


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

    def run(self, prompt: TokenIds, new_tokens: int) -> dict[str, float]:
        """Read a prompt and write tokens; returns both speeds in tokens/s."""
        self._stdin.write(json.dumps([prompt.token_ids, new_tokens]) + "\n")
        self._stdin.flush()
        found: dict[str, float] = json.loads(self._stdout.readline())
        return found

    def close(self) -> None:
        """End the process."""
        self._stdin.close()
        self._process.wait()
        self._stdout.close()


def _bench_speeds(program: Path, threads: int, new_tokens: int) -> dict[str, float]:
    """Run llama-bench once and return its speeds in tokens/s."""
    command = [program, "-m", starter_model(), "-p", str(_PROMPT_TOKENS), "-n", str(new_tokens), "-t", str(threads)]
    result = subprocess.run([*map(str, command), "-r", "1", "-o", "json"], capture_output=True, text=True, check=True)
    rows = json.loads(result.stdout)
    return {("decode" if row["n_gen"] else "prefill"): float(row["avg_ts"]) for row in rows}


def _child(rounds: int, new_tokens: int) -> None:
    threads = physical_threads()
    peer = llama_bench()
    speeds: dict[str, dict[str, list[float]]] = {
        side: {"decode": [], "prefill": []} for side in ("ours", "bare", "peer")
    }
    bare = BareLoop(threads)
    with NullSink(Path(os.devnull), threads) as sink:
        for number in range(-1, rounds):  # the first round only warms
            read = random_prompt(_SEED + number, _PROMPT_TOKENS, sink.vocabulary_tokens)
            write = repeating_prompt(sink.vocabulary_tokens)
            found: dict[str, dict[str, float]] = {}
            # Who begins changes: what slowly drifts falls on all alike.
            turns = {"ours": partial(_our_speeds, sink), "bare": partial(_bare_speeds, bare)}
            for side in ("ours", "bare") if number % 2 else ("bare", "ours"):
                found[side] = turns[side](read, write, new_tokens)
            if peer is not None:
                found["peer"] = _bench_speeds(peer, threads, new_tokens)
            for side, pair in found.items() if number >= 0 else ():
                for kind, speed in pair.items():
                    speeds[side][kind].append(speed)
    bare.close()
    tell(_summary(speeds))


def _our_speeds(sink: NullSink, read: TokenIds, write: TokenIds, new_tokens: int) -> dict[str, float]:
    """Return our speeds in tokens/s as they arrive: decode from the first token on, prefill up to it."""
    written = sink.run(write, new_tokens)
    assert written.figures.new_tokens == new_tokens, "the answer ended early: choose another prompt"
    was_read = sink.run(read, 1)
    assert was_read.figures.reused_tokens == 0
    return {
        "decode": (new_tokens - 1) / (written.ended_s - written.first_s),
        "prefill": len(read.token_ids) / (was_read.ended_s - was_read.sent_s),
    }


def _bare_speeds(bare: BareLoop, read: TokenIds, write: TokenIds, new_tokens: int) -> dict[str, float]:
    return {"decode": bare.run(write, new_tokens)["decode"], "prefill": bare.run(read, 1)["prefill"]}


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
    """Answer lines of [token ids, new tokens] with speeds, by llama.cpp's low-level API and nothing else."""
    import ctypes
    import time

    import llama_cpp as llama

    silent = llama.llama_log_callback(lambda _level, _text, _data: None)
    llama.llama_log_set(silent, ctypes.c_void_p(0))
    model, context = _bare_context(llama, threads)
    memory = llama.llama_get_memory(context)
    sampler = llama.llama_sampler_init_greedy()
    for line in sys.stdin:
        ids, new_tokens = json.loads(line)
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
        tell({"prefill": len(ids) / (read_s - began_s), "decode": decode})
    llama.llama_sampler_free(sampler)
    llama.llama_free(context)
    llama.llama_model_free(model)


def _bare_context(llama: Any, threads: int) -> tuple[Any, Any]:
    """Load the starter model as the engine does, without its abort flag and its log."""
    llama.llama_backend_init()
    model = llama.llama_model_load_from_file(os.fsencode(starter_model()), llama.llama_model_default_params())
    params = llama.llama_context_default_params()
    params.n_ctx = min(8192, llama.llama_model_n_ctx_train(model))
    params.n_threads = params.n_threads_batch = threads
    params.n_ubatch = _MICRO_BATCH_TOKENS
    params.no_perf = True
    return model, llama.llama_init_from_model(model, params)


if __name__ == "__main__":
    if sys.argv[1] == "bare":
        _bare_child(int(sys.argv[2]))
    else:
        _child(int(sys.argv[2]), int(sys.argv[3]))
