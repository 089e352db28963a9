"""One request on its way through the engine: its sequence, its side of sampling, and what is said of each token.

Knows no tensor but what the sampler hands over as plain values.
"""

from __future__ import annotations

from collections import deque

import msgspec

from backends import protocol
from backends.torch_engine.sampler_state import SamplerState
from backends.torch_engine.sequence import Sequence
from backends.torch_engine.vocabulary import Vocabulary


class Answer:
    """What the engine knows of an unfinished request.

    Attributes:
        sequence: its tokens and blocks.
        state: its side of sampling.
    """

    def __init__(self, sequence: Sequence, state: SamplerState) -> None:
        self.sequence = sequence
        self.state = state
        self._chances: deque[protocol.TokenChances] = deque()  # of the tokens whose text is not released yet

    @property
    def request_id(self) -> protocol.RequestId:
        """The request's number."""
        return self.sequence.request.request_id

    def take(
        self, token: int, chances: protocol.TokenChances | None, vocabulary: Vocabulary
    ) -> tuple[protocol.Piece | None, protocol.StopReason | None]:
        """Let a sampled token join the sequence; returns what may be shown now, and why the request ends, if so."""
        params = self.sequence.request.params
        if vocabulary.ends_text(token) and not params.ignore_eos:
            return None, protocol.StopReason.END_OF_TEXT
        self.state.accept(token)
        self.sequence.append(token)
        if chances is not None:
            self._chances.append(with_texts(chances, vocabulary))
        detokenizer = self.sequence.detokenizer
        piece = self._piece(*detokenizer.add(token, vocabulary.piece(token)))
        if detokenizer.stopped:
            return piece, protocol.StopReason.STOP_STRING
        if self.sequence.new_tokens == params.max_tokens:
            return piece, protocol.StopReason.MAX_TOKENS
        return piece, None

    def rest(self) -> protocol.Piece | None:
        """Return what was held back, once nothing more comes."""
        return self._piece(*self.sequence.detokenizer.finish())

    def _piece(self, text: str, token_ids: tuple[int, ...]) -> protocol.Piece | None:
        if not text and not token_ids:
            return None
        chances = tuple(self._chances.popleft() for _ in token_ids) if self._chances else ()
        return protocol.Piece(self.request_id, text, token_ids, chances=chances)


def with_texts(chances: protocol.TokenChances, vocabulary: Vocabulary) -> protocol.TokenChances:
    """Return chances whose tokens have their texts; half a character shows as a replacement mark."""

    def named(chance: protocol.TokenChance) -> protocol.TokenChance:
        text = vocabulary.piece(chance.token_id).decode(errors="replace") or vocabulary.special_text(chance.token_id)
        return msgspec.structs.replace(chance, text=text)

    return protocol.TokenChances(named(chances.chosen), tuple(named(chance) for chance in chances.top))
