"""How likely a token was and what else was likely: natural logarithms under the model's unchanged distribution.

Unchanged means before penalties, temperature, filters and grammar: what the model itself thought, whatever was drawn.
Texts are left empty; who has the vocabulary adds them.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch

from backends.protocol import TokenChance, TokenChances
from backends.torch_engine.sampler_order import likeliest


def chances_of(logits: torch.Tensor, tokens: Sequence[int], counts: Sequence[int]) -> list[TokenChances]:
    """Return the chances of each row.

    Args:
        logits: [N, V] float32, as the model computed them.
        tokens: N ids that were drawn.
        counts: N, how many of the likeliest each row reports.
    """
    log_sums = torch.logsumexp(logits, dim=-1).tolist()
    chosen_ids = torch.tensor(list(tokens), dtype=torch.int64, device=logits.device)
    chosen = logits.gather(-1, chosen_ids[:, None])[:, 0].tolist()
    most = max(counts)
    values, ids = likeliest(logits, most) if most else (None, None)
    found = []
    for row, (token, count, log_sum) in enumerate(zip(tokens, counts, log_sums, strict=True)):
        top: tuple[TokenChance, ...] = ()
        if values is not None and ids is not None:
            pairs = zip(ids[row, :count].tolist(), values[row, :count].tolist(), strict=True)
            top = tuple(TokenChance(token_id=other, text="", logprob=value - log_sum) for other, value in pairs)
        found.append(TokenChances(TokenChance(token_id=token, text="", logprob=chosen[row] - log_sum), top))
    return found
