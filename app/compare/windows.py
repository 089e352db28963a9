"""Windows of tokens: cut from a text's ids as llama.cpp's perplexity tool cuts them. Pure.

Windows of WINDOW_TOKENS follow one another from the first token on, without overlap, and the first token of each is
replaced by the beginning-of-sequence token where the vocabulary wants one (tools/perplexity/perplexity.cpp of the
llama.cpp in llama-cpp-python 0.3.36). What is left over at the end is in no window.
"""

from __future__ import annotations

from collections.abc import Sequence

from app.compare.plan import WINDOW_TOKENS
from app.errors import AppError, Words, one_line
from app.i18n import _, ngettext
from app.units import count_text


class TooShortError(AppError):
    """A text holds fewer windows than asked for.

    Attributes:
        available: how many it holds.
    """

    def __init__(self, words: Words, available: int) -> None:
        super().__init__(words)
        self.available = available


def bos_of(empty_ids: Sequence[int], text_ids: Sequence[int]) -> int | None:
    """Return the beginning-of-sequence token that a vocabulary wants; None where it wants none.

    Args:
        empty_ids: the ids it gives an empty text: what it adds to every text.
        text_ids: the ids it gives any other text; what is added at the end does not stand first there.
    """
    return empty_ids[0] if empty_ids and list(text_ids[:1]) == list(empty_ids[:1]) else None


def available(token_ids: Sequence[int]) -> int:
    """Return how many whole windows a text's ids hold."""
    return len(token_ids) // WINDOW_TOKENS


def cut(token_ids: Sequence[int], windows: int, bos: int | None, title: str = "") -> tuple[tuple[int, ...], ...]:
    """Return the first windows of a text.

    Args:
        token_ids: [T], of the whole text, as its vocabulary gives them, a beginning-of-sequence token included.
        windows: how many are wanted.
        bos: what stands first in each; None where the vocabulary wants nothing there.
        title: of the text, for the words.

    Returns:
        `windows` times [WINDOW_TOKENS] ids.

    Raises:
        TooShortError: there are fewer; the words say how many.
    """
    found = available(token_ids)
    if found < windows:
        raise TooShortError(_too_short(found, windows, len(token_ids), title), found)
    starts = range(0, windows * WINDOW_TOKENS, WINDOW_TOKENS)
    if bos is None:
        return tuple(tuple(token_ids[first : first + WINDOW_TOKENS]) for first in starts)
    return tuple((bos, *token_ids[first + 1 : first + WINDOW_TOKENS]) for first in starts)


def _too_short(found: int, wanted: int, tokens: int, title: str) -> Words:
    message = ngettext(
        "The text “{title}” has {tokens} tokens: that is {found} window of {size}, and {wanted} are needed.",
        "The text “{title}” has {tokens} tokens: those are {found} windows of {size}, and {wanted} are needed.",
        found,
    )
    hint = _("Choose a longer text, or a smaller amount of work.")
    return Words(
        message.format(
            title=one_line(title, 80),
            tokens=count_text(tokens),
            found=count_text(found),
            size=count_text(WINDOW_TOKENS),
            wanted=count_text(wanted),
        ),
        hint,
    )
