"""What the reference's windows take on the disk: predicted before they are written, and bounded. Pure."""

from __future__ import annotations

from app.compare.plan import SCORED_TOKENS
from app.errors import AppError, Words
from app.i18n import _
from app.units import bytes_text

MOST_BYTES = 400_000_000  # of all windows together, with every token of the vocabulary
KEPT_TOKENS = 512  # of each row, where that would be more
MARGIN_BYTES = 32 * 2**20  # for the results, and for the system

_BYTES_A_LOGPROB = 2
_BYTES_A_KEPT_TOKEN = 8  # its id and its log-probability
_BYTES_A_ROW = 64  # scale, maximum, the exact figures beside it


def window_bytes(vocabulary_tokens: int, kept_tokens: int = 0) -> int:
    """Return what one window takes."""
    row = kept_tokens * _BYTES_A_KEPT_TOKEN if kept_tokens else vocabulary_tokens * _BYTES_A_LOGPROB
    return SCORED_TOKENS * (row + _BYTES_A_ROW)


def kept_tokens_for(windows: int, vocabulary_tokens: int) -> int:
    """Return how many tokens of each row are kept: 0 for all, KEPT_TOKENS where all would take too much."""
    is_bounded = windows * window_bytes(vocabulary_tokens) > MOST_BYTES and vocabulary_tokens > KEPT_TOKENS
    return KEPT_TOKENS if is_bounded else 0


def kept_words() -> str:
    """Return what a reader must know of figures that were made from the likeliest tokens alone."""
    return _(
        "Of each position the reference keeps its {count} likeliest tokens and the rest as one, to save disk space: KL "
        "is a lower bound, too low by what differs within the rest."
    ).format(count=KEPT_TOKENS)


def check_space(needed_bytes: int, free_bytes: int) -> None:
    """Raise AppError where the reference's windows would not fit on the disk."""
    if needed_bytes + MARGIN_BYTES > free_bytes:
        message = _("The reference's windows take {needed} on the disk, and {free} are free.")
        raise AppError(
            Words(
                message.format(needed=bytes_text(needed_bytes), free=bytes_text(free_bytes)),
                _("Make room, or choose a smaller amount of work; then go on."),
            )
        )
