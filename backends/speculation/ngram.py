"""A drafter without a model: what followed the same tokens earlier in this text, or in other texts of this engine.

The index grows with the text, a few dictionary entries a token; a draft is a slice of the text. What it proposes has
no probabilities: to verification it is a distribution with all its weight on one token (engine.md 5.1, A.3).

Sizes and thresholds follow llama.cpp's ngram-cache and ngram-simple (engine.md 7.6): the request's own text is trusted
early, what other requests wrote only where it is nearly always right.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

LONGEST_DRAFT: Final = 64

# Lengths of the matches that are looked up, the longest first.
_SIZES: Final = (8, 4, 2)
# A match of at least so many tokens is worth a draft of at most so many.
_DRAFT_OF_MATCH: Final = ((8, LONGEST_DRAFT), (6, 24), (4, 12), (3, 6), (2, 3))
# How far back a match is compared to find its true length.
_LONGEST_MATCH: Final = 8

_SHARED_SIZE: Final = 3
_SHARED_HITS: Final = 3  # a continuation seen less often is not trusted
_SHARED_SHARE: Final = 0.66  # of all continuations, the likeliest must have been this often
_SHARED_ENTRIES: Final = 200_000  # tables are halved beyond it: 60 MB at most


class SharedNgrams:
    """What followed three tokens in any text of this engine: counts, in memory only, forgotten with the model.

    Attributes:
        _followers: by the three tokens: how often each token came next.
    """

    def __init__(self) -> None:
        self._followers: dict[tuple[int, ...], dict[int, int]] = {}

    def __len__(self) -> int:
        """Return how many contexts are known."""
        return len(self._followers)

    def learn(self, tokens: Sequence[int]) -> None:
        """Count what came next everywhere in a text."""
        for end in range(_SHARED_SIZE, len(tokens)):
            followers = self._followers.setdefault(tuple(tokens[end - _SHARED_SIZE : end]), {})
            followers[tokens[end]] = followers.get(tokens[end], 0) + 1
        if len(self._followers) > _SHARED_ENTRIES:
            for key in list(self._followers)[: len(self._followers) // 2]:  # the oldest
                del self._followers[key]

    def propose(self, tail: Sequence[int], limit: int) -> list[int]:
        """Return what nearly always followed, token by token; empty where nothing did.

        Args:
            tail: the end of the text, at least three tokens of it.
            limit: how many at most.
        """
        context, draft = list(tail[-_SHARED_SIZE:]), list[int]()
        while len(draft) < limit and len(context) == _SHARED_SIZE:
            followers = self._followers.get(tuple(context))
            if not followers:
                break
            best = max(followers, key=followers.__getitem__)
            if followers[best] < _SHARED_HITS or followers[best] < _SHARED_SHARE * sum(followers.values()):
                break
            draft.append(best)
            context = [*context[1:], best]
        return draft


class NgramDrafter:
    """Proposes for one request from its own text, else from what others wrote.

    Attributes:
        _tokens: the text so far.
        _ends: by size: where the token behind the last such tokens stands. The text's very end is not in it.
        _shared: what other requests wrote; None for nothing.
    """

    def __init__(self, shared: SharedNgrams | None = None) -> None:
        self._tokens: list[int] = []
        self._ends: tuple[dict[tuple[int, ...], int], ...] = tuple({} for _ in _SIZES)
        self._shared = shared

    @property
    def tokens(self) -> int:
        """How much of the text is known here."""
        return len(self._tokens)

    def extend(self, tokens: Iterable[int]) -> None:
        """Take what was added to the text: accepted tokens only, a draft is no text."""
        text = self._tokens
        for token in tokens:
            end = len(text)
            for size, ends in zip(_SIZES, self._ends, strict=True):
                if end >= size:
                    ends[tuple(text[end - size : end])] = end
            text.append(token)

    def propose(self, limit: int = LONGEST_DRAFT) -> list[int]:
        """Return what may come next, at most `limit` tokens; empty where nothing like the end of the text is known."""
        if limit < 1:
            return []
        text = self._tokens
        for size, ends in zip(_SIZES, self._ends, strict=True):
            found = ends.get(tuple(text[-size:])) if len(text) >= size else None
            if found is not None:
                return self._copied(found, min(limit, _worth(self._match(found, size))))
        return self._shared.propose(text[-_SHARED_SIZE:], min(limit, LONGEST_DRAFT)) if self._shared else []

    def learnt(self) -> None:
        """Give the text to the shared statistics; call it once, when the request ends."""
        if self._shared is not None:
            self._shared.learn(self._tokens)

    def _match(self, found: int, known: int) -> int:
        """Return how many tokens before `found` are those before the text's end; `known` of them are already."""
        text, length = self._tokens, known
        while length < min(_LONGEST_MATCH, found) and text[found - 1 - length] == text[-1 - length]:
            length += 1
        return length

    def _copied(self, start: int, limit: int) -> list[int]:
        """Return what stands from a place on; where the text ends, the draft goes on with itself, as a pattern does."""
        draft = self._tokens[start : start + limit]
        period = len(self._tokens) - start
        while len(draft) < limit:
            draft.append(draft[len(draft) - period])
        return draft


def _worth(match: int) -> int:
    return next(most for length, most in _DRAFT_OF_MATCH if match >= length)
