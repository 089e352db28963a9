"""How decode on the CPU reads keys and values where they lie: which stretches of which rows go into one call.

Integers only. A row's visible tokens lie in stretches of consecutive slots, its pieces. Pieces whose beginnings are
evenly spaced are one call over a strided view; a beginning that several rows share is one call for all of them; what is
left of short pieces and crumbs is copied together. A row with several pieces gets its answer from the pieces' answers
and log-sum-exps.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from backends.torch_engine.layer_plan import LayerPlan
from backends.torch_engine.step_layout import LayoutRow, runs

# What a call of its own costs, in tokens of a row read: measured 9 us to 0.18 us a token (3 heads of 64, bfloat16).
_CALL_TOKENS = 48
# A row in more stretches than this, each shorter than that on average, is copied.
_MOST_STRETCHES = 3
_CRUMB_TOKENS = 192
# Copying costs a third of reading: below this length it beats a call of its own. Of fewer pieces each gets its call.
_COPIED_TOKENS = 300
_FEWEST_COPIED = 3
# Two pieces are always evenly spaced; that alone is no gain over a copy of short ones.
_FEWEST_SPACED = 3
# A beginning is read once for all its rows if it is at least so long.
_SHARED_TOKENS = 64
# A piece is cut for idle threads only if its parts stay so long.
_SPLIT_TOKENS = 512


@dataclass(frozen=True, slots=True)
class Piece:
    """A stretch of a row's visible tokens: rows are numbered among those that decode."""

    row: int
    slot: int
    length: int


@dataclass(frozen=True, slots=True)
class Call:
    """Pieces attended to at once.

    Attributes:
        rows: the row of each piece.
        slot: where the first piece begins.
        stride: slots from one piece's beginning to the next one's; 0 for a stretch that all rows share.
        width: slots read of each; the longest piece.
        lengths: slots that count of each.
    """

    rows: tuple[int, ...]
    slot: int
    stride: int
    width: int
    lengths: tuple[int, ...]

    @property
    def is_ragged(self) -> bool:
        """Whether slots are read that do not count."""
        return min(self.lengths) < self.width


@dataclass(frozen=True, slots=True)
class Copied:
    """Visible tokens of a row that are copied together: (slot, length) each, in order."""

    row: int
    stretches: tuple[tuple[int, int], ...]

    @property
    def length(self) -> int:
        """How many tokens they are."""
        return sum(length for _, length in self.stretches)


@dataclass(frozen=True, slots=True)
class DecodePlan:
    """Who is read how in one step.

    Attributes:
        calls: over views; no copy.
        copied: what is copied into one call, at most once a row.
    """

    calls: tuple[Call, ...]
    copied: tuple[Copied, ...]


def plan_decode(
    rows: Sequence[LayoutRow], layer: LayerPlan, *, block_tokens: int, slots: int, threads: int
) -> DecodePlan:
    """Arrange the reading of rows of one token each.

    Args:
        rows: those that decode.
        layer: what of a row is visible, and how many heads share the work.
        block_tokens: tokens a block.
        slots: how many there are; no view may reach beyond.
        threads: how many compute.
    """
    calls: list[Call] = []
    copied: list[Copied] = []
    pieces: list[Piece] = []
    common = _common_beginnings(rows, layer, block_tokens)
    for begin, group in common:
        for slot, length in runs(rows[group[0]].blocks, 0, begin, block_tokens):
            calls.append(Call(tuple(group), slot, 0, length, (length,) * len(group)))
    begins = {row: begin for begin, group in common for row in group}
    for number, row in enumerate(rows):
        first = begins.get(number, layer.first_visible(row.past))
        found = runs(row.blocks, first, row.total, block_tokens)
        if len(found) > _MOST_STRETCHES and row.total - first < _CRUMB_TOKENS * len(found):
            copied.append(Copied(number, tuple(found)))
        else:
            pieces += [Piece(number, slot, length) for slot, length in found]
    pieces = _split(pieces, threads, layer.kv_heads * (len(pieces) + len(copied)))
    spaced, alone = _progressions(pieces, slots, _FEWEST_SPACED)
    short = [piece for piece in alone if piece.length < _COPIED_TOKENS]
    if len({piece.row for piece in short}) + len(copied) >= _FEWEST_COPIED:
        copied += _copied(short)
        alone = [piece for piece in alone if piece.length >= _COPIED_TOKENS]
    pairs, alone = _progressions(alone, slots, 2)
    single = [Call((piece.row,), piece.slot, 0, piece.length, (piece.length,)) for piece in alone]
    return DecodePlan((*calls, *spaced, *pairs, *single), tuple(copied))


def _copied(pieces: Iterable[Piece]) -> list[Copied]:
    """Return these pieces by row."""
    by_row: dict[int, list[tuple[int, int]]] = {}
    for piece in pieces:
        by_row.setdefault(piece.row, []).append((piece.slot, piece.length))
    return [Copied(row, tuple(stretches)) for row, stretches in by_row.items()]


def _common_beginnings(rows: Sequence[LayoutRow], layer: LayerPlan, block_tokens: int) -> list[tuple[int, list[int]]]:
    """Return (tokens, rows) of beginnings that several rows have in common and all see whole."""
    by_block: dict[int, list[int]] = {}
    for number, row in enumerate(rows):
        if layer.first_visible(row.past) == 0:
            by_block.setdefault(row.blocks[0], []).append(number)
    found = []
    for group in by_block.values():
        if len(group) < 2:
            continue
        most = min(rows[number].past // block_tokens for number in group)  # the last token's own block is not shared
        tables = [rows[number].blocks for number in group]
        shared = next((i for i in range(most) if len({table[i] for table in tables}) > 1), most)
        if shared * block_tokens >= _SHARED_TOKENS:
            found.append((shared * block_tokens, group))
    return found


def _split(pieces: list[Piece], threads: int, work_items: int) -> list[Piece]:
    """Cut long pieces where there are fewer heads to compute than the threads could take."""
    wanted = -(-2 * threads // max(1, work_items))
    cut: list[Piece] = []
    for piece in pieces:
        parts = max(1, min(wanted, piece.length // _SPLIT_TOKENS))
        width = -(-piece.length // parts)
        cut += [
            Piece(piece.row, piece.slot + begin, min(width, piece.length - begin))
            for begin in range(0, piece.length, width)
        ]
    return cut


def _progressions(pieces: Iterable[Piece], slots: int, fewest: int) -> tuple[list[Call], list[Piece]]:
    """Join pieces that begin at even distances, at least so many; return the calls and what stays alone."""
    ordered = sorted(pieces, key=lambda piece: piece.slot)
    calls: list[Call] = []
    alone: list[Piece] = []
    at = 0
    while at < len(ordered):
        end = at + 1
        while end < len(ordered) and _may_join(ordered[at : end + 1], slots):
            end += 1
        group = ordered[at:end]
        if len(group) >= fewest or (len(group) > 1 and group[0].row == group[1].row):  # parts of one piece
            lengths = tuple(piece.length for piece in group)
            stride = group[1].slot - group[0].slot
            calls.append(Call(tuple(piece.row for piece in group), group[0].slot, stride, max(lengths), lengths))
            at = end
        else:  # the last of them may begin a row of its own
            alone.append(ordered[at])
            at += 1
    return calls, alone


def _may_join(group: list[Piece], slots: int) -> bool:
    """Whether these pieces, all but the last joined already, are evenly spaced and alike enough in length."""
    stride = group[1].slot - group[0].slot
    lengths = [piece.length for piece in group]
    width, read = max(lengths), sum(lengths)
    if group[-1].slot - group[-2].slot != stride or group[-1].slot + width > slots or stride == 0:
        return False
    return width * len(group) - read <= read // 4 + _CALL_TOKENS * (len(group) - 1)
