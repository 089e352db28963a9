"""A tied matrix kept once: the output layer reads it rearranged, and the embedding finds its rows in there.

The output matrix of a small model is a fifth to a half of what a decode step reads, and rearranged it is read four
times as fast (fusion_linear.py). Where the same weights embed the tokens, a second copy would cost as much memory
again. So the rows are read out of the rearranged memory, whose order is found by trying the few that oneDNN uses on the
weights themselves: right for every checked value, or not used at all. Letters: V vocabulary, E hidden size.
"""

from __future__ import annotations

import ctypes
import itertools

import torch
from torch import nn

from backends.torch_engine.fusion_linear import PackedLinear

# oneDNN's orders, blocks of rows x groups of columns: [V / rows][E / columns][columns / inner][rows][inner].
_ROWS, _COLUMNS, _INNER = (64, 48, 32, 16), (16, 32, 64, 8, 4), (2, 1, 4, 8)
_CHECKED_ROWS = 512


class PackedRows:
    """The rows of a matrix that lies rearranged in a PackedLinear.

    Attributes:
        blocks: [V / rows, E / inner, rows, inner], a view of the rearranged memory; padded at both ends.
    """

    def __init__(self, linear: PackedLinear, blocks: torch.Tensor) -> None:
        self._linear = linear  # owns the memory
        self.blocks = blocks
        self._rows = blocks.shape[2]

    def __call__(self, ids: torch.Tensor) -> torch.Tensor:
        """Return the rows [..., E] for ids [...]."""
        flat = ids.flatten()
        found = self.blocks[flat // self._rows, :, flat % self._rows]  # [T, E / inner, inner]
        return found.reshape(*ids.shape, -1)[..., : self._linear.in_features]


class PackedEmbedding(nn.Module):
    """An embedding whose rows lie in the output layer's matrix.

    Attributes:
        num_embeddings, embedding_dim: V and E, as torch names them.
    """

    def __init__(self, rows: PackedRows, original: nn.Embedding) -> None:
        super().__init__()
        self.num_embeddings, self.embedding_dim = original.num_embeddings, original.embedding_dim
        self._rows = rows
        self._factor = _factor(original)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        """Return [..., E] for ids [...]."""
        found = self._rows(ids)
        return found if self._factor is None else found * self._factor


def packed_rows(linear: PackedLinear, weight: torch.Tensor) -> PackedRows | None:
    """Return the reader of a packed matrix's rows; None where its order is none that we know.

    Args:
        linear: holds the matrix, rearranged.
        weight: [V, E], the same matrix as it was.
    """
    raw = _memory(linear, weight.dtype)
    count, size = weight.shape
    chosen = _chosen_rows(count).to(weight.device)
    expected = weight.index_select(0, chosen)
    for rows, columns, inner in itertools.product(_ROWS, _COLUMNS, _INNER):
        high, wide = -(-count // rows) * rows, -(-size // columns) * columns
        if columns % inner or high * wide != raw.numel():
            continue
        found = PackedRows(linear, raw.view(high // rows, wide // inner, rows, inner))
        if torch.equal(found(chosen), expected):
            return found
    return None


def packed_embedding(linear: PackedLinear, original: nn.Embedding) -> PackedEmbedding | None:
    """Return an embedding that reads a tied output layer's matrix; None where its values would not be the same."""
    rows = packed_rows(linear, original.weight)
    if rows is None:
        return None
    embedding = PackedEmbedding(rows, original)
    ids = _chosen_rows(original.num_embeddings).to(original.weight.device)
    return embedding if torch.equal(embedding(ids), original(ids)) else None


def _factor(original: nn.Embedding) -> torch.Tensor | None:
    """Return what some models (Gemma) multiply their embeddings by."""
    scale = getattr(original, "embed_scale", None)
    if scale is None:
        return None
    return torch.as_tensor(scale, device=original.weight.device).to(original.weight.dtype)


def _chosen_rows(count: int) -> torch.Tensor:
    """Return rows to check: the first and last hundreds, and others in even steps."""
    first = range(min(count, _CHECKED_ROWS))
    last = range(max(0, count - _CHECKED_ROWS), count)
    steps = range(0, count, max(1, count // _CHECKED_ROWS))
    return torch.tensor(sorted({*first, *last, *steps}), dtype=torch.int64)


def _memory(linear: PackedLinear, dtype: torch.dtype) -> torch.Tensor:
    """Return the rearranged memory as a flat tensor; valid as long as the layer lives."""
    address = int(torch.ops.mkldnn.data_ptr(linear.packed))
    room = (ctypes.c_char * linear.weight_bytes).from_address(address)
    return torch.frombuffer(room, dtype=dtype)
