"""The bounds of the sampling params, which are the same for every engine, and the seed of a request.

Knows no engine: what one engine cannot do, it refuses itself.
"""

from __future__ import annotations

import secrets

from backends.errors import EngineError, ErrorCode
from backends.protocol import SamplingParams

MAX_LOGPROBS = 50  # likeliest tokens a position; a window of a thousand positions stays under a few MB on the pipe
MAX_GRAMMAR_BYTES = 64 * 1024  # of a grammar or of a schema: a hundred times what people write
_SEED_LIMIT = (1 << 32) - 1  # llama.cpp reads 0xFFFFFFFF as "random": left out, so that a seed is always repeatable


def check_params(params: SamplingParams) -> None:
    """Look at every value; NaN fails every comparison and is refused with it.

    Raises:
        EngineError: BAD_PARAMS when a value makes no sense.
    """
    checks = (
        (0 <= params.temperature <= 100, "temperature must lie between 0 and 100"),
        (0 <= params.top_k < 1 << 31, "top-k must not be negative"),
        (0 < params.top_p <= 1, "top-p must lie above 0 and up to 1"),
        (0 <= params.min_p < 1, "min-p must lie from 0 to below 1"),
        (0 < params.repeat_penalty <= 10, "the repeat penalty must lie above 0 and up to 10"),
        (0 <= params.repeat_last_tokens <= 65536, "the repeat window must lie between 0 and 65,536 tokens"),
        (params.seed is None or params.seed >= 0, "the seed must not be negative"),
        (params.max_tokens is None or params.max_tokens > 0, "the number of new tokens must be positive"),
        (
            params.logprobs is None or 0 <= params.logprobs <= MAX_LOGPROBS,
            f"at most the {MAX_LOGPROBS} likeliest tokens can be reported",
        ),
        (not (params.grammar and params.json_schema), "a grammar and a JSON schema cannot be used together"),
        (_is_short(params.grammar), f"the grammar is longer than {MAX_GRAMMAR_BYTES:,} bytes"),
        (_is_short(params.json_schema), f"the JSON schema is longer than {MAX_GRAMMAR_BYTES:,} bytes"),
    )
    for holds, detail in checks:
        if not holds:
            raise EngineError(ErrorCode.BAD_PARAMS, detail=detail)


def chosen_seed(params: SamplingParams) -> int:
    """Return the request's seed, folded into 32 bits, or a fresh one where none is given."""
    return (secrets.randbelow(_SEED_LIMIT) if params.seed is None else params.seed) % _SEED_LIMIT


def _is_short(text: str) -> bool:
    return len(text.encode(errors="replace")) <= MAX_GRAMMAR_BYTES
