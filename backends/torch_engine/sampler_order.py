"""The likeliest tokens of rows of logits, in an order without chance: by logit, and by id where logits are equal.

Equal logits are common: a model that computes in bfloat16 has few distinct ones. torch.topk leaves open which of them
it returns, and with another k it returns others, so the cut is made here.
"""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray


def likeliest(logits: torch.Tensor, count: int) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """Return the likeliest tokens of each row on the host, the likeliest first, equal ones by ascending id.

    Args:
        logits: [N, V] float32.
        count: K, how many; all V where there are fewer.

    Returns:
        Logits [N, K] and ids [N, K]; NaN counts as the largest. Which ids stand behind logits of -inf is left open.
    """
    vocabulary_tokens = logits.shape[-1]
    if count >= vocabulary_tokens:
        sorted_logits, sorted_ids = torch.sort(logits, dim=-1, descending=True, stable=True)
        return sorted_logits.cpu().numpy(), sorted_ids.cpu().numpy()
    found, found_ids = torch.topk(logits, count + 1, dim=-1)  # one more tells whether equal ones were left out
    values, ids = found.cpu().numpy(), found_ids.cpu().numpy()
    is_torn = (values[:, count] == values[:, count - 1]) & np.isfinite(values[:, count])
    values, ids = values[:, :count].copy(), ids[:, :count].copy()
    for row in np.flatnonzero(is_torn).tolist():
        last = values[row, -1]
        equal_ids = torch.nonzero(logits[row] == float(last)).flatten().cpu().numpy()
        place = int(np.count_nonzero(values[row] > last))
        ids[row, place:] = equal_ids[: count - place]
    order = np.lexsort((ids, np.where(np.isnan(values), -np.inf, -values)), axis=-1)
    return np.take_along_axis(values, order, -1), np.take_along_axis(ids, order, -1)
