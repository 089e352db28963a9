"""The C sampler chain for a request: llama.cpp chooses the token, no logits are copied.

Order of llama.cpp's own programs: penalties, top-k, top-p, min-p, temperature, then the draw.
"""

from __future__ import annotations

from typing import Any

import llama_cpp as llama

from backends import sampling_params
from backends.errors import EngineError, ErrorCode
from backends.protocol import SamplingParams

_MIN_KEEP = 1  # a filter never removes the likeliest token


class Sampler:
    """One request's sampler chain; close it.

    Attributes:
        seed: the seed in use, drawn if none was given.
    """

    def __init__(self, params: SamplingParams, vocabulary_tokens: int) -> None:
        check_params(params)
        self.seed = sampling_params.chosen_seed(params)
        self._remembers = params.repeat_last_tokens if params.repeat_penalty != 1.0 else 0
        self._chain: Any = llama.llama_sampler_chain_init(llama.llama_sampler_chain_default_params())
        if self._remembers:
            self._add(
                llama.llama_sampler_init_penalties(
                    vocabulary_tokens, params.repeat_last_tokens, params.repeat_penalty, 0.0, 0.0
                )
            )
        if params.temperature <= 0:
            self._add(llama.llama_sampler_init_greedy())
            return
        if params.top_k > 0:
            self._add(llama.llama_sampler_init_top_k(params.top_k))
        if params.top_p < 1:
            self._add(llama.llama_sampler_init_top_p(params.top_p, _MIN_KEEP))
        if params.min_p > 0:
            self._add(llama.llama_sampler_init_min_p(params.min_p, _MIN_KEEP))
        self._add(llama.llama_sampler_init_temp(params.temperature))
        self._add(llama.llama_sampler_init_dist(self.seed))

    def remember(self, token_ids: list[int]) -> None:
        """Let the penalties see the end of the prompt."""
        if self._remembers:
            for token in token_ids[-self._remembers :]:
                llama.llama_sampler_accept(self._chain, token)

    def sample(self, context: Any, row: int) -> int:
        """Return the next token of a batch row (-1: the last one) and remember it."""
        token: int = llama.llama_sampler_sample(self._chain, context, row)
        return token

    def close(self) -> None:
        """Free the chain."""
        if self._chain is not None:
            llama.llama_sampler_free(self._chain)
            self._chain = None

    def _add(self, sampler: Any) -> None:
        llama.llama_sampler_chain_add(self._chain, sampler)


def check_params(params: SamplingParams) -> None:
    """Raise EngineError, BAD_PARAMS, when a value makes no sense or asks for what this engine cannot do yet."""
    sampling_params.check_params(params)
    checks = (
        (params.logprobs is None, "this engine does not report the probabilities of tokens yet"),
        (not params.grammar, "this engine does not follow a grammar yet"),
        (not params.json_schema, "this engine does not follow a JSON schema yet"),
    )
    for holds, detail in checks:
        if not holds:
            raise EngineError(ErrorCode.BAD_PARAMS, detail=detail)
