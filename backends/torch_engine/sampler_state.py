"""What one request brings to the sampler: its params, its seed, the tokens to be penalized, its grammar.

Only accept() changes it, and only tokens that joined the sequence are accepted; sampling itself changes nothing, so a
step that failed can be sampled again. For look-ahead a clone is taken.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import TYPE_CHECKING

from backends.protocol import SamplingParams
from backends.sampling_params import chosen_seed

if TYPE_CHECKING:  # the library behind grammars is loaded by the first request that names one
    from backends.torch_engine.grammar import GrammarState


class SamplerState:
    """One request's side of sampling.

    Attributes:
        params: what was asked; they must have passed check_params.
        seed: the seed in use, drawn if none was given.
        grammar: where the request stands in its grammar, None for free text.
    """

    def __init__(
        self, params: SamplingParams, prompt_ids: Sequence[int] = (), grammar: GrammarState | None = None
    ) -> None:
        """Begin after a prompt; penalties see its end, as llama.cpp's do."""
        self.params = params
        self.seed = chosen_seed(params)
        self.grammar = grammar
        window = params.repeat_last_tokens if params.repeat_penalty != 1.0 else 0
        self._recent: deque[int] = deque(maxlen=window)
        self._counts: dict[int, int] = {}  # of the recent ones
        for token_id in prompt_ids[-window:] if window else ():
            self._remember(token_id)

    @property
    def is_greedy(self) -> bool:
        """Whether the likeliest token is taken."""
        return self.params.temperature <= 0

    @property
    def penalized_ids(self) -> list[int]:
        """The distinct tokens among the last repeat_last_tokens ones; empty without a penalty."""
        return list(self._counts)

    @property
    def changes_logits(self) -> bool:
        """Whether a penalty or a grammar changes the model's logits."""
        return bool(self._counts) or self.grammar is not None

    def accept(self, token_id: int) -> None:
        """Take note of a token that joined the sequence.

        Raises:
            EngineError: DECODE_FAILED, the grammar does not allow the token.
        """
        if self.grammar is not None:
            self.grammar.accept(token_id)
        if self._recent.maxlen:
            self._remember(token_id)

    def clone(self) -> SamplerState:
        """Return a copy that goes on by itself, with the same seed."""
        copied = SamplerState(self.params, (), self.grammar.clone() if self.grammar is not None else None)
        copied.seed = self.seed
        copied._recent = self._recent.copy()
        copied._counts = dict(self._counts)
        return copied

    def _remember(self, token_id: int) -> None:
        recent, counts = self._recent, self._counts
        if len(recent) == recent.maxlen:
            oldest = recent[0]
            counts[oldest] -= 1
            if not counts[oldest]:
                del counts[oldest]
        recent.append(token_id)
        counts[token_id] = counts.get(token_id, 0) + 1
