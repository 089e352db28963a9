"""From a prompt to token ids: the rules that hold for every engine, whatever cuts its text into tokens.

What a person or a model wrote is never read as a special token; what the chat template wrote is.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence

from backends import protocol
from backends.errors import EngineError, ErrorCode

Part = protocol.TemplatePart | protocol.PlainPart | protocol.TokenPart


class PromptEncoder(ABC):
    """Cuts prompts; a vocabulary says how text is cut.

    Attributes:
        size: number of tokens.
        adds_bos: whether a prompt must begin with the beginning-of-sequence token.
        bos: its id, -1 for none.
    """

    size: int
    adds_bos: bool
    bos: int
    _split_template: Callable[[str], Sequence[str | int]]  # a template's text: plain runs, and ids of special tokens

    @abstractmethod
    def tokenize(self, text: str, *, add_special: bool, parse_special: bool) -> list[int]:
        """Return the ids of one text."""

    @abstractmethod
    def _encode_run(self, text: str, *, is_first: bool) -> list[int]:
        """Return the ids of text in which nothing is special; the first run of a prompt may be cut in its own way."""

    @abstractmethod
    def piece(self, token: int) -> bytes:
        """Return the bytes a token adds to the text; special tokens add none."""

    @abstractmethod
    def special_text(self, token: int) -> str:
        """Return a special token's name, "" when the model has none."""

    def token_bytes(self, token_ids: Sequence[int]) -> tuple[bytes, ...]:
        """Return what each token adds to the text, of one that adds nothing its name; EngineError for a strange id."""
        if any(not 0 <= token < self.size for token in token_ids):
            raise EngineError(ErrorCode.BAD_PARAMS, detail="a token id is not in the vocabulary")
        return tuple(self.piece(token) or self.special_text(token).encode(errors="replace") for token in token_ids)

    def encode(self, prompt: protocol.Prompt) -> list[int]:
        """Return a prompt's token ids, with the beginning-of-sequence token where the model wants one."""
        match prompt:
            case protocol.TokenIds():
                return list(prompt.token_ids)
            case protocol.Text():
                return self.tokenize(prompt.text, add_special=True, parse_special=prompt.parse_special)
            case protocol.RenderedPrompt():
                ids = self._encode_parts(prompt.parts)
                needs_bos = self.adds_bos and self.bos >= 0 and ids[:1] != [self.bos]
                return [self.bos, *ids] if needs_bos else ids

    def _encode_parts(self, parts: Sequence[Part]) -> list[int]:
        """Tokenize runs of text between special tokens as wholes, so that ids equal those of the joined text."""
        ids: list[int] = []
        run: list[str] = []

        def end_run() -> None:
            if run:
                ids.extend(self._encode_run("".join(run), is_first=not ids))
                run.clear()

        for part in parts:
            match part:
                case protocol.PlainPart():
                    run.append(part.text)
                case protocol.TokenPart():
                    end_run()
                    ids.extend(part.token_ids)
                case protocol.TemplatePart():
                    for piece in self._split_template(part.text):
                        if isinstance(piece, int):
                            end_run()
                            ids.append(piece)
                        else:
                            run.append(piece)
        end_run()
        return ids
