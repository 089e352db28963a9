"""From a command to all that a loaded model consists of: weights, path, pool, runner.

The order is that of safety. What was loaded first runs with the model's own attention; then the same over blocks, then
with faster layers, each held against the first. A model that fails keeps its own attention and a cache of its own.
"""

from __future__ import annotations

import gc
import logging
from pathlib import Path

import torch

from backends import protocol
from backends.engine import Report
from backends.errors import EngineError, ErrorCode, NoticeCode
from backends.processors import SpareThreads, physical_cores
from backends.torch_engine import device as devices
from backends.torch_engine import guard
from backends.torch_engine.block_pool import BLOCK_TOKENS, BlockPool
from backends.torch_engine.budget import Budget, make_budget, step_tokens
from backends.torch_engine.fusion import FusionReport, fuse
from backends.torch_engine.kv_cache import KvCache, bytes_per_token
from backends.torch_engine.model_loader import LoadedModel, load_model
from backends.torch_engine.model_runner import ModelRunner
from backends.torch_engine.parts import KV_TYPES, Measured, Parts
from backends.torch_engine.plain_path import PlainRunner
from backends.torch_engine.rope import fix_rope
from backends.torch_engine.scheduler import Scheduler
from backends.torch_engine.step_layout import RowInput

MAX_SEQUENCES = 256
_WARM_UP_TOKENS = 512

_log = logging.getLogger(__name__)


def load_parts(command: protocol.LoadModel, report: Report) -> Parts:
    """Load a model and make all that its steps need; raises EngineError and holds nothing then."""
    params = command.params
    _check(params)
    device, notices = devices.choose_device(params.device)
    if device.type == "cpu":
        torch.set_num_threads(params.threads or physical_cores())
    loaded, found, fusion = _load_checked(Path(command.model_path), params, device, report)
    runner: ModelRunner | PlainRunner
    trained = _trained_tokens(loaded)
    if found.path == guard.PAGED:
        peak_bytes = _peak_of_a_step(loaded, found, params)
        token_bytes = bytes_per_token(found.plans, loaded.dtype)
        budget = make_budget(params, trained, token_bytes, devices.free_bytes(device) - peak_bytes)
        fix_rope(loaded.module, budget.context_tokens)
        cache = KvCache(found.plans, budget.blocks, BLOCK_TOKENS, loaded.dtype, device)
        runner = ModelRunner(loaded.module, cache)
    else:
        peak_bytes, token_bytes = 0, 0
        budget = make_budget(params, trained, 0, devices.free_bytes(device))
        fix_rope(loaded.module, budget.context_tokens)
        runner = PlainRunner(loaded)
        notices = (*notices, NoticeCode.PLAIN_PATH)
    told = (*loaded.notices, *map(str, (*notices, *budget.notices)))
    measured = Measured(budget.context_tokens, trained, peak_bytes, token_bytes, told)
    parts = Parts(loaded, runner, _scheduler(params, budget, found), (found, fusion), measured, params)
    if device.type == "cpu" and not params.threads:
        parts.spare_threads = SpareThreads(torch.get_num_threads())
    return parts


def _check(params: protocol.LoadParams) -> None:
    """Refuse what this engine cannot do, rather than do something else."""
    if params.kv_type not in KV_TYPES:
        raise EngineError(ErrorCode.BAD_PARAMS, detail=f"torch keeps KV in f32, f16 or bf16, not in {params.kv_type!r}")
    if not 1 <= params.max_sequences <= MAX_SEQUENCES:
        raise EngineError(ErrorCode.BAD_PARAMS, detail=f"the sequences must be 1 to {MAX_SEQUENCES}")


def _load_checked(
    path: Path, params: protocol.LoadParams, device: torch.device, report: Report
) -> tuple[LoadedModel, guard.GuardReport, FusionReport]:
    """Load the model, find its path, and make it faster where that changes nothing."""
    loaded = load_model(path, params, device, report)
    reference = _reference(loaded)
    found = _checked(loaded, reference)
    if found.path != guard.PAGED:
        return loaded, found, FusionReport()
    fusion = fuse(loaded.module)
    fused = _checked(loaded, reference)
    if fused.path == guard.PAGED:
        return loaded, fused, fusion
    _log.warning("the faster layers change the model's answers, so it runs without them: %s", fused.note)
    del loaded
    gc.collect()
    slower = load_model(path, params, device, report)
    return slower, _checked(slower, reference), FusionReport()


def _checked(loaded: LoadedModel, reference: guard.Reference | None) -> guard.GuardReport:
    return guard.check_paged(loaded, lambda cache: ModelRunner(loaded.module, cache), reference)


def _reference(loaded: LoadedModel) -> guard.Reference | None:
    """Return what is right; None where the model's own attention cannot be run, which the check then says."""
    try:
        return guard.take_reference(loaded)
    except guard.MODEL_ERRORS:
        return None


def _trained_tokens(loaded: LoadedModel) -> int:
    """Return the longest context that the model was trained for; 0 when it does not say."""
    tokens = getattr(loaded.config.get_text_config(), "max_position_embeddings", 0)
    return tokens if isinstance(tokens, int) and tokens > 0 else 0


def _peak_of_a_step(loaded: LoadedModel, found: guard.GuardReport, params: protocol.LoadParams) -> int:
    """Run the largest step once and return what it took beside weights and KV."""
    tokens = max(1, min(step_tokens(params), _WARM_UP_TOKENS, _trained_tokens(loaded) or _WARM_UP_TOKENS))
    blocks = -(-tokens // BLOCK_TOKENS)
    runner = ModelRunner(loaded.module, KvCache(found.plans, blocks, BLOCK_TOKENS, loaded.dtype, loaded.device))
    row = RowInput([0] * tokens, 0, range(blocks))
    with devices.PeakMeter(loaded.device) as meter:  # the first run: later ones find freed memory that is still ours
        runner.run([row])
    runner.detach()
    return meter.peak_bytes


def _scheduler(params: protocol.LoadParams, budget: Budget, found: guard.GuardReport) -> Scheduler:
    # A cache of its own is bound to a sequence's first block, so there no block serves two.
    keeps = params.prefix_cache and found.path == guard.PAGED
    pool = BlockPool(budget.blocks, BLOCK_TOKENS, keeps)
    return Scheduler(
        pool,
        token_budget=step_tokens(params),
        max_sequences=params.max_sequences,
        context_tokens=budget.context_tokens,
    )
