"""Models whose KV cannot be kept in blocks: one cache of transformers' own for each sequence.

The same surface as the runner over blocks, only slower: sequences run one after the other. Block tables are used as
names only: a sequence is known by its first block, so on this path no block is shared. Cutting the end of a sequence
off means computing it again from the beginning, since a state cannot be wound back.
"""

from __future__ import annotations

import inspect
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from backends.torch_engine import guard
from backends.torch_engine.model_runner import Interrupted
from backends.torch_engine.step_layout import RowInput

# What transformers call the cache, as an argument and in the output: 5.24, 5.17, Mamba in 5.17, RWKV.
_CACHE_NAMES = ("cache", "past_key_values", "cache_params", "state")
# A piece of text in two halves must come out as in one; the same measure as the guard's.
_TRIED_TOKENS = (7, 11, 5, 13, 3, 17, 2, 19, 23)
_TRIED_SPLIT = 4
_TOLERANCE = {torch.float32: 2e-4}
_LOOSE_TOLERANCE = 3e-2


@dataclass(slots=True)
class _Kept:
    """A sequence's tokens and the cache they are in; None where they are not, and have to be computed again."""

    cache: Any = None
    token_ids: list[int] = field(default_factory=list)


class PlainRunner:
    """Runs steps of a model over a cache of transformers for each sequence.

    Attributes:
        hook_calls: 0: nothing here goes through our attention.
    """

    def __init__(self, loaded: guard.Loaded) -> None:
        self.hook_calls = 0
        self._module = loaded.module
        self._device = loaded.device
        self._dtype = loaded.dtype
        guard.use_own_attention(loaded.module)
        accepted = inspect.signature(loaded.module.forward).parameters
        self._cache_name = next((name for name in _CACHE_NAMES if name in accepted), "")
        self._keeps_last_only = "logits_to_keep" in accepted
        self._takes_positions = "position_ids" in accepted  # some do not work them out from the cache
        self._kept: dict[int, _Kept] = {}
        self._continues_in_chunks: bool | None = None
        self._stop = threading.Event()
        for module in loaded.module.modules():
            if isinstance(getattr(module, "layer_idx", None), int):
                module.register_forward_pre_hook(self._before_layer)

    def run(self, rows: Sequence[RowInput]) -> torch.Tensor:
        """Return float32 logits [R, V], for each row that wants logits those of its last tokens, in their order.

        Raises:
            ValueError: a row continues a sequence that is not known so far.
            Interrupted: interrupt() was called since the last resume().
        """
        wanted = []
        with torch.inference_mode():
            for row in rows:
                kept = self._continued(row)
                logits = self._compute(kept, row.token_ids, row.last_logits if row.wants_logits else 1)
                if row.wants_logits:
                    wanted.append(logits.float())
        return torch.cat(wanted) if wanted else torch.empty((0, 0), device=self._device)

    def copy_blocks(self, pairs: Sequence[tuple[int, int]]) -> None:
        """Nothing lies in blocks here, so there is nothing to copy; no sequence may be forked."""
        if pairs:
            raise ValueError("a sequence with a cache of its own cannot be forked by blocks")

    def interrupt(self) -> None:
        """Make the step in progress, or else the next one, end before its next layer. Called from any thread."""
        self._stop.set()

    def resume(self) -> None:
        """Let steps run again after an interrupt."""
        self._stop.clear()

    def forget(self, first_block: int) -> None:
        """Drop the cache of the sequence whose table begins with this block; one that is not known is no error."""
        self._kept.pop(first_block, None)

    @property
    def kept_sequences(self) -> int:
        """How many sequences have a cache now."""
        return len(self._kept)

    def _continued(self, row: RowInput) -> _Kept:
        """Return the row's sequence with exactly its past computed."""
        name = row.blocks[0]
        kept = self._kept.get(name)
        if row.past == 0 or kept is None:
            if row.past:
                raise ValueError(f"{row.past} tokens of a sequence that was never computed")
            self._kept[name] = kept = _Kept()
        elif row.past < len(kept.token_ids) or (row.past == len(kept.token_ids) and kept.cache is None):
            earlier = kept.token_ids[: row.past]
            self._kept[name] = kept = _Kept()
            self._compute(kept, earlier)
        elif row.past > len(kept.token_ids):
            raise ValueError(f"{row.past} tokens are said to be computed, {len(kept.token_ids)} are")
        return kept

    def _compute(self, kept: _Kept, token_ids: Sequence[int], last: int = 1) -> torch.Tensor:
        """Add tokens to a sequence, by the piece that its model can take, and return the last logits [last, V]."""
        if not kept.token_ids or len(token_ids) == 1 or self._can_continue_in_chunks():
            return self._forward(kept, token_ids, last)
        return torch.cat([self._forward(kept, [token]) for token in token_ids][-last:])

    def _before_layer(self, _module: torch.nn.Module, _given: Any) -> None:
        if self._stop.is_set():
            raise Interrupted

    def _forward(self, kept: _Kept, token_ids: Sequence[int], last: int = 1) -> torch.Tensor:
        given: dict[str, Any] = {"logits_to_keep": last} if self._keeps_last_only else {}
        if kept.cache is not None:
            given[self._cache_name] = kept.cache
        tokens = torch.tensor([list(token_ids)], dtype=torch.int64, device=self._device)
        if self._takes_positions:
            given["position_ids"] = torch.arange(tokens.shape[1], device=self._device)[None] + len(kept.token_ids)
        kept.cache = None  # half of the layers may have it, should this end early
        out = self._module(input_ids=tokens, use_cache=True, **given)
        kept.cache = next((out[name] for name in _CACHE_NAMES if out.get(name) is not None), None)
        kept.token_ids += token_ids
        logits: torch.Tensor = out.logits[0, -last:]
        return logits

    def _can_continue_in_chunks(self) -> bool:
        """Whether several tokens may follow a cache at once; states of some models take them one by one. Tried once."""
        if self._continues_in_chunks is None:
            one, two = _Kept(), _Kept()
            right = self._forward(one, _TRIED_TOKENS).float()
            try:
                self._forward(two, _TRIED_TOKENS[:_TRIED_SPLIT])
                got = self._forward(two, _TRIED_TOKENS[_TRIED_SPLIT:]).float()
            except guard.MODEL_ERRORS:
                self._continues_in_chunks = False
            else:
                limit = _TOLERANCE.get(self._dtype, _LOOSE_TOLERANCE) * float(right.abs().max())
                self._continues_in_chunks = bool((got - right).abs().max() <= limit)
        return self._continues_in_chunks
