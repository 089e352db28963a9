"""Where an answer begins to differ from the reference's, and what both found likely there.

Knows no widget. Texts are compared as they are; token boundaries come from the reference's answer, token by token.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from app.compare.results import Answer
from app.i18n import _
from app.units import count_text, percent_text
from ui.widgets.display_text import display_text

# What is marked where the tokens of a text are not known: a word with the blank before it, or one sign.
_WORD = re.compile(r"\s*(?:\w+|\S)")
_MOST_TOP = 5


@dataclass(frozen=True, slots=True)
class MarkedText:
    """An answer in three parts.

    Attributes:
        before: as the reference's.
        marked: the first token that is another one; "" where none is.
        after: the rest.
        tooltip: what was likely there; "" where it is not known.
    """

    before: str
    marked: str
    after: str
    tooltip: str = ""


def marked_answer(answer: Answer, reference: Answer | None) -> MarkedText:
    """Return a run's answer with its first divergent token marked."""
    if reference is None or answer.first_divergence is None:
        return MarkedText(display_text(answer.text), "", "")
    start = divergence_start(answer, reference)
    found = _WORD.match(answer.text, start)
    end = found.end() if found is not None else len(answer.text)
    blank = len(answer.text[start:end]) - len(answer.text[start:end].lstrip())
    start += blank
    parts = (answer.text[:start], answer.text[start:end], answer.text[end:])
    before, marked, after = (display_text(part) for part in parts)
    return MarkedText(before, marked or _("(ends here)"), after, _likely(answer, answer.first_divergence))


def divergence_start(answer: Answer, reference: Answer) -> int:
    """Return at which character of its text an answer leaves the reference's.

    Tokens before the first divergent one are the same, so that their characters are too; where the tokens of the
    reference's answer are not kept, the texts themselves are compared.
    """
    divergence = answer.first_divergence or 0
    tokens = reference.forced or answer.forced
    if len(tokens) > divergence:
        before = "".join(token.text for token in tokens[:divergence])
        if answer.text.startswith(before):
            return len(before)
    pairs = zip(answer.text, reference.text, strict=False)
    return next(
        (place for place, (own, other) in enumerate(pairs) if own != other), min(len(answer.text), len(reference.text))
    )


def agreement_words(answer: Answer, reference: Answer | None) -> str:
    """Return how much of the reference's answer a run would have written too."""
    if reference is None or not reference.token_ids:
        return ""
    total = len(reference.token_ids)
    if answer.first_divergence is None:
        return _("the same answer")
    first = _("differs at token {number}").format(number=count_text(answer.first_divergence + 1))
    if not answer.agreed:
        return first
    agreed = _("{count} of {total} the same").format(count=count_text(answer.agreed), total=count_text(total))
    return f"{first} · {agreed}"


def _likely(answer: Answer, place: int) -> str:
    """Return what a run found likely at a token of the reference's answer, a line each."""
    if place >= len(answer.forced) or not answer.forced[place].top:
        return ""
    lines = [f"{percent_text(share)}  “{display_text(text)}”" for text, share in answer.forced[place].top[:_MOST_TOP]]
    return "\n".join([_("Likely at the marked token:"), *lines])
