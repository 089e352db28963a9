"""What the torch engine's sampler costs a step, against the step's forward: greedy, with all filters, with a schema.

The forward is transformers' own, over a model of SmolLM2 135M's shape in float32 with weights of chance, one new token
a row on a context of 128: what the numbers are does not change what it costs. Both sides take turns in one process, so
that what the machine does besides falls on both. The sampler's side is one BatchSampler.sample() over one step's rows,
and what the tokens cost that are accepted afterwards. Against a faster forward the shares are larger.
"""

from __future__ import annotations

import inspect
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

from tests.benchmarks.measure import Bench, Figures, gemma_model, physical_threads, starter_model, tell

ROWS = (1, 16)
_ROUNDS, _QUICK_ROUNDS = 40, 4
_CONTEXT_TOKENS = 128
_LARGE_VOCABULARY = 262_144
_SHAPE = {
    "vocab_size": 49_152,
    "hidden_size": 576,
    "intermediate_size": 1536,
    "num_hidden_layers": 30,
    "num_attention_heads": 9,
    "num_key_value_heads": 3,
    "tie_word_embeddings": True,
}
_FILTERED = {"temperature": 0.8, "top_k": 40, "top_p": 0.95, "min_p": 0.05, "seed": 1}
_CASES: dict[str, dict[str, Any]] = {
    "greedy": {"temperature": 0.0},
    "filtered": _FILTERED,
    "penalized": _FILTERED | {"repeat_penalty": 1.1},
    "nucleus": {"temperature": 0.8, "top_k": 0, "top_p": 0.95, "min_p": 0.0, "seed": 1},
    "logprobs": _FILTERED | {"logprobs": 5},
    "schema": _FILTERED | {"json_schema": '{"type": "array", "items": {"type": "string"}, "minItems": 1000}'},
    "grammar": _FILTERED | {"grammar": 'root ::= [a-z ]+ "."'},
}


def measure(bench: Bench) -> Figures:
    """Return milliseconds a step for each case and number of rows, and their shares of the forward."""
    rounds = bench.pick(_ROUNDS, _QUICK_ROUNDS)
    return bench.child("torch_sampler", "steps", rounds) | bench.child("torch_sampler", "vocabulary", 1)


def _steps(rounds: int) -> None:
    import torch

    from backends.torch_engine.grammar import GrammarCompiler
    from tests.helpers.token_pieces import starter_pieces

    torch.set_num_threads(physical_threads())
    found: Figures = {}
    with starter_pieces(starter_model()) as starter, torch.inference_mode():
        compiler = GrammarCompiler(starter.pieces, starter.end_ids)
        for count in ROWS:
            sides: dict[str, Callable[[], None]] = {"forward": _forward(count)}
            sides |= {name: _sampling(values, count, _SHAPE["vocab_size"], compiler) for name, values in _CASES.items()}
            taken = _take_turns(sides, rounds)
            for name, times in taken.items():
                found[f"torch_sampler.{name}_{count}_ms"] = statistics.median(times) * 1000
                if name != "forward":
                    ratios = [one / other for one, other in zip(times, taken["forward"], strict=True)]
                    found[f"torch_sampler.{name}_{count}_share_percent"] = statistics.median(ratios) * 100
    tell(found)


def _vocabulary(_rounds: int) -> None:
    """Measure a vocabulary of 262,144 tokens by itself, and what the first grammar has to build."""
    import torch

    from backends.protocol import SamplingParams
    from backends.torch_engine.grammar import GrammarCompiler
    from tests.helpers.token_pieces import starter_pieces

    torch.set_num_threads(physical_threads())
    found: Figures = {}
    sizes = {"small": starter_model(), "large": gemma_model()}
    for name, path in sizes.items():
        with starter_pieces(path) as loaded:
            compiler = GrammarCompiler(loaded.pieces, loaded.end_ids)
            for step in ("first", "second"):
                began_s = time.monotonic()
                compiler.start(SamplingParams(grammar=f'root ::= "{step}"'))
                found[f"torch_sampler.{name}_{step}_grammar_s"] = time.monotonic() - began_s
    free = {name: values for name, values in _CASES.items() if name not in ("schema", "grammar")}
    for count in ROWS:
        sides = {name: _sampling(values, count, _LARGE_VOCABULARY, None) for name, values in free.items()}
        for name, times in _take_turns(sides, 10).items():
            found[f"torch_sampler.large_{name}_{count}_ms"] = statistics.median(times) * 1000
    tell(found)


def _take_turns(sides: dict[str, Callable[[], None]], rounds: int) -> dict[str, list[float]]:
    """Return the seconds of each side in each round; the first two rounds only warm."""
    taken: dict[str, list[float]] = {name: [] for name in sides}
    for number in range(-2, rounds):
        for name, side in sides.items():
            began_s = time.perf_counter()
            side()
            if number >= 0:
                taken[name].append(time.perf_counter() - began_s)
    return taken


def _forward(count: int) -> Callable[[], None]:
    """Return a decode step of `count` sequences."""
    import torch
    from transformers import DynamicCache, LlamaConfig, LlamaForCausalLM

    torch.manual_seed(1)
    model = LlamaForCausalLM(LlamaConfig(**_SHAPE)).eval()
    name = "cache" if "cache" in inspect.signature(model.forward).parameters else "past_key_values"  # before 5.24
    cache = DynamicCache(config=model.config)
    model.model(torch.ones(count, _CONTEXT_TOKENS, dtype=torch.int64), **{name: cache})
    one = torch.ones(count, 1, dtype=torch.int64)

    def step() -> None:
        model(one, **{name: cache})
        cache.crop(-1)  # the token just added

    return step


def _sampling(values: dict[str, Any], count: int, tokens: int, compiler: Any) -> Callable[[], None]:
    """Return a step of the sampler over `count` rows with these params."""
    import torch

    from backends.protocol import SamplingParams
    from backends.torch_engine.sampler import BatchSampler, SamplerRow
    from backends.torch_engine.sampler_state import SamplerState

    params = SamplingParams(**values)
    prompt: Sequence[int] = range(1000, 1064)
    grammars = [compiler.start(params) if compiler is not None else None for _row in range(count)]
    states = [SamplerState(params, prompt, grammar) for grammar in grammars]
    logits = torch.randn(count, tokens, generator=torch.Generator().manual_seed(1)) * 3
    sampler = BatchSampler()
    position = 64

    def step() -> None:
        nonlocal position
        sampled = sampler.sample(logits, [SamplerRow(state, position) for state in states])
        for state, one in zip(states, sampled, strict=True):
            state.accept(one.token)
        position += 1

    return step


if __name__ == "__main__":
    {"steps": _steps, "vocabulary": _vocabulary}[sys.argv[1]](int(sys.argv[2]))
