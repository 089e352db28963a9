"""From token ids to text that can be shown: whole characters only, and nothing that may turn out a stop string.

Knows bytes and ids, no vocabulary and no engine. The invariant: the released texts joined equal the decoded bytes of
all tokens, cut where the first stop string begins and where a last character is not whole.
"""

from __future__ import annotations

import codecs
from collections import deque
from collections.abc import Sequence


class Detokenizer:
    """One answer's tokens on their way to text.

    A token's id is released together with the text that completes it, so that stored ids and stored text agree.

    Attributes:
        stopped: whether a stop string has appeared; nothing is released after it.
    """

    def __init__(self, stop: Sequence[str] = ()) -> None:
        self.stopped = False
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        self._stop = tuple(s for s in stop if s)
        self._held_text = ""
        # (id, length of all text up to and with this token), for tokens whose text is not all released
        self._held_ids: deque[tuple[int, int]] = deque()
        self._decoded_length = 0
        self._released_length = 0

    def add(self, token_id: int, data: bytes) -> tuple[str, tuple[int, ...]]:
        """Take a token and return the text and the ids that may be shown now."""
        if self.stopped:
            return "", ()
        self._held_text += self._decoder.decode(data)
        self._decoded_length = self._released_length + len(self._held_text)
        # Bytes still inside the decoder belong to a character that a later token completes.
        pending = 1 if self._decoder.getstate()[0] else 0
        self._held_ids.append((token_id, self._decoded_length + pending))
        return self._release(self._safe_length())

    def finish(self) -> tuple[str, tuple[int, ...]]:
        """Return all that is still held; a character whose last bytes never came is dropped with its ids."""
        if self.stopped:
            return "", ()
        text, self._held_text = self._held_text, ""
        whole = self._released_length + len(text)
        ids = tuple(token_id for token_id, length in self._held_ids if length <= whole)
        self._held_ids.clear()
        return text, ids

    def _safe_length(self) -> int:
        """Return how much of the held text cannot become part of a stop string."""
        text = self._held_text
        found = [position for s in self._stop if (position := text.find(s)) >= 0]
        if found:
            self.stopped = True
            return min(found)
        safe = len(text)
        for s in self._stop:
            for length in range(min(len(s) - 1, len(text)), 0, -1):
                if text.endswith(s[:length]):
                    safe = min(safe, len(text) - length)
                    break
        return safe

    def _release(self, length: int) -> tuple[str, tuple[int, ...]]:
        text, self._held_text = self._held_text[:length], self._held_text[length:]
        self._released_length += length
        ids = []
        while self._held_ids and self._held_ids[0][1] <= self._released_length:
            ids.append(self._held_ids.popleft()[0])
        return text, tuple(ids)
