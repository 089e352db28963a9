"""Whether a model may keep its KV in blocks: asked at load, so that no model writes wrong text in silence.

Some models compute attention in their own way, some keep a state beside it; both run without an error and answer
wrongly. So every layer must ask for attention exactly once, and two short sequences, in pieces and through scattered
blocks, must come out as one full forward does with the model's own eager attention. What the check cannot see: windows
longer than its sequences; those are taken from the calls and the config.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import torch

from backends.torch_engine import attention_hook
from backends.torch_engine.kv_cache import KvCache
from backends.torch_engine.layer_plan import LayerPlan, layer_plans
from backends.torch_engine.step_layout import RowInput

PAGED, PLAIN = "paged", "plain"
# What a foreign model's forward may raise on a way that nobody tried before.
MODEL_ERRORS = (RuntimeError, ValueError, TypeError, LookupError, AttributeError, NotImplementedError, AssertionError)
# Root mean square of the difference of two logits, as a share of the logits' own spread. Right paths measured on
# SmolLM2-135M and Gemma 3 270M: 1e-6 in float32, 0.01 and 0.02 in float16, 0.07 and 0.13 in bfloat16, where sdpa and
# eager of transformers differ by as much; a window too short in all layers: 1.1 and 0.5. So small faults show in
# float32 only.
_TOLERANCE = {torch.float32: 2e-4, torch.float16: 0.1, torch.bfloat16: 0.3}
_SOFTMAX_LAYERS = {"full_attention", "sliding_attention", "chunked_attention", "attention"}
_BLOCK_TOKENS = 4
_TABLES = ((3, 7, 1, 8, 5), (2, 4, 6, 0, 9))  # scattered on purpose
_LENGTHS = (18, 15)
# How many tokens each sequence gets in each step: chunks and single tokens mixed.
_STEPS = ((10, 0), (5, 11), (1, 3), (1, 1), (1, 0))
_log = logging.getLogger(__name__)


class Runner(Protocol):
    """What runs steps over blocks; ModelRunner is one."""

    @property
    def hook_calls(self) -> int:
        """How often the last step asked for attention."""

    def run(self, rows: Sequence[RowInput]) -> torch.Tensor:
        """Return float32 logits [R, V] of the rows that want them."""


class Loaded(Protocol):
    """What the guard needs of a loaded model; LoadedModel has it."""

    @property
    def module(self) -> Any:
        """The model of transformers, in evaluation mode."""

    @property
    def config(self) -> Any:
        """Its config."""

    @property
    def dtype(self) -> torch.dtype:
        """What it computes in."""

    @property
    def device(self) -> torch.device:
        """Where it lies."""


@dataclass(frozen=True, slots=True)
class GuardReport:
    """What the check came to.

    Attributes:
        path: "paged" or "plain".
        note: why it is plain, in a few words; "" for paged.
        max_difference: the largest difference of two logits, as a share of the largest logit; 0 if none were compared.
        rms_difference: all differences together, as a share of the logits' spread: what decides.
        hook_calls: how often one forward asked for attention.
        layers: how many layers the model has.
        plans: what each layer needs; empty for plain.
    """

    path: str
    note: str
    max_difference: float
    hook_calls: int
    layers: int
    plans: tuple[LayerPlan, ...] = ()
    rms_difference: float = 0.0


@dataclass(frozen=True, slots=True)
class Reference:
    """The logits of full forwards with the model's own attention: what the blocks' are compared with.

    Take it before a layer is replaced by a faster one that always asks for our attention.

    Attributes:
        token_ids: the sequences.
        logits: [T, V] float32 for each.
    """

    token_ids: tuple[tuple[int, ...], ...]
    logits: tuple[torch.Tensor, ...]


def plan_layers(loaded: Loaded) -> GuardReport:
    """Find out what each layer needs, or why the model cannot keep its KV in blocks; computes a single token.

    The model is left with our attention when the report says paged, else with its own.
    """
    layers = layer_count(loaded.config)
    note = _known_obstacle(loaded)
    plans: tuple[LayerPlan, ...] = ()
    if not note:
        try:
            loaded.module.set_attn_implementation(attention_hook.NAME)
            plans = layer_plans(loaded.module, loaded.config)
            note = _structure_note(plans, layers)
        except MODEL_ERRORS as error:
            _log.info("the model cannot run with attention over blocks", exc_info=True)
            note = f"its attention cannot be taken over ({type(error).__name__})"
    if note:
        use_own_attention(loaded.module)
        return GuardReport(PLAIN, note, 0.0, len(plans), layers)
    return GuardReport(PAGED, "", 0.0, len(plans), layers, plans)


def take_reference(loaded: Loaded) -> Reference:
    """Run the model's own eager attention over two short sequences; its attention afterwards is as it was."""
    generator = torch.Generator().manual_seed(7)
    most = int(loaded.module.get_input_embeddings().num_embeddings)
    module, before = loaded.module, loaded.config._attn_implementation
    token_ids, logits = [], []
    module.set_attn_implementation("eager")
    try:
        for length in _LENGTHS:
            # A token once only: where many are alike, a wrong mask hides.
            ids = torch.randperm(min(most, 2000), generator=generator)[:length]
            if len(ids) < length:
                ids = torch.randint(0, most, (length,), generator=generator)
            with torch.inference_mode():
                out = module(input_ids=ids[None].to(loaded.device), use_cache=False)
            token_ids.append(tuple(ids.tolist()))
            logits.append(out.logits[0].float())
    finally:
        module.set_attn_implementation(before)
    return Reference(tuple(token_ids), tuple(logits))


def check_paged(
    loaded: Loaded, runner_factory: Callable[[KvCache], Runner], reference: Reference | None = None
) -> GuardReport:
    """Say which path a model takes; never raises for what a model may do wrong.

    Args:
        loaded: the model.
        runner_factory: makes what runs steps over a cache; the cache has a few blocks only.
        reference: what is right; without one it is computed here.
    """
    report = plan_layers(loaded)
    if report.path == PLAIN:
        return report
    try:
        reference = reference or take_reference(loaded)
        cache = KvCache(report.plans, max(map(max, _TABLES)) + 1, _BLOCK_TOKENS, loaded.dtype, loaded.device)
        most, spread, calls = _differences(runner_factory(cache), reference)
    except MODEL_ERRORS as error:
        _log.info("the check of attention over blocks failed", exc_info=True)
        most, spread, calls, note = 0.0, 0.0, 0, f"the check of its attention failed ({type(error).__name__})"
    else:
        note = _parity_note(spread, calls, report, loaded.dtype)
    finally:
        attention_hook.attach(loaded.module, None)
    if note:
        use_own_attention(loaded.module)
        return GuardReport(PLAIN, note, most, calls or report.hook_calls, report.layers, rms_difference=spread)
    return GuardReport(PAGED, "", most, calls, report.layers, report.plans, spread)


def use_own_attention(module: Any) -> None:
    """Give a model back an attention of its own: sdpa where it has one, else eager."""
    attention_hook.attach(module, None)
    if not _can_set_attention(module):
        # It computes attention in its own way whatever the name is, but under a name that it does not know it is given
        # no mask: later tokens would be seen.
        if getattr(module, "config", None) is not None:
            module.config._attn_implementation = "eager"
        return
    for name in ("sdpa", "eager"):
        try:
            module.set_attn_implementation(name)
        except (ValueError, ImportError):
            continue
        return


def layer_count(config: Any) -> int:
    """Return how many layers a config speaks of; 0 if it does not say."""
    text = config.get_text_config(decoder=True) if hasattr(config, "get_text_config") else config
    return int(getattr(text, "num_hidden_layers", 0) or 0)


def _can_set_attention(module: Any) -> bool:
    ask = getattr(type(module), "_can_set_attn_implementation", None)
    return ask is None or bool(ask())


def _known_obstacle(loaded: Loaded) -> str:
    """Return what the model says of itself that rules blocks out."""
    if not _can_set_attention(loaded.module):
        return "its attention is its own and cannot be taken over"
    if getattr(loaded.module, "_is_stateful", False):
        return "it keeps a state beside the KV cache"
    text = loaded.config.get_text_config(decoder=True)
    kinds = set(getattr(text, "layer_types", None) or ()) - _SOFTMAX_LAYERS
    if kinds:
        return f"not all of its layers are attention ({', '.join(sorted(map(str, kinds)))})"
    return ""


def _structure_note(plans: tuple[LayerPlan, ...], layers: int) -> str:
    if [plan.index for plan in plans] != list(range(len(plans))):
        return "its layers ask for attention out of order"
    if len(plans) != layers:
        return f"{len(plans)} of its {layers} layers ask for attention"
    if any(plan.query_heads % plan.kv_heads for plan in plans):
        return "its heads do not divide among the KV heads"
    return ""


def _parity_note(difference: float, calls: int, report: GuardReport, dtype: torch.dtype) -> str:
    if calls != report.layers:
        return f"attention was asked for {calls} times in {report.layers} layers"
    if not difference <= _TOLERANCE.get(dtype, _TOLERANCE[torch.bfloat16]):  # NaN is not
        return f"in blocks its logits come out otherwise (by {difference:.1g})"
    return ""


def _differences(runner: Runner, reference: Reference) -> tuple[float, float, int]:
    """Return the largest difference and all together, as GuardReport has them, and the calls of the last step."""
    past = [0] * len(reference.token_ids)
    right, got = [], []
    for counts in _STEPS:
        rows = []
        for number, count in enumerate(counts):
            if count:
                begin, end = past[number], past[number] + count
                rows.append(RowInput(reference.token_ids[number][begin:end], begin, _TABLES[number]))
                right.append(reference.logits[number][end - 1])
                past[number] = end
        got.append(runner.run(rows))
    wanted = torch.stack(right)  # [R, V]
    difference = torch.cat(got).to(wanted.device) - wanted
    spread = wanted - wanted.mean(1, keepdim=True)
    most = difference.abs().max() / wanted.abs().max().clamp_min(1e-6)
    share = difference.square().mean().sqrt() / spread.square().mean().sqrt().clamp_min(1e-6)
    return float(most), float(share), runner.hook_calls
