"""The model's vocabulary: text to token ids and back, by llama.cpp's own tokenizer.

Reads only immutable data of the model, so any thread may ask while a step runs. What a person typed is never read as a
special token; what the chat template wrote is.
"""

from __future__ import annotations

import ctypes
import functools
import hashlib
from typing import Any

import llama_cpp as llama

from backends.prompt_encoder import PromptEncoder

_ATTR_UNKNOWN, _ATTR_CONTROL = 1 << 0, 1 << 3  # llama_token_attr
_PIECE_BYTES = 512


class Vocabulary(PromptEncoder):
    """A loaded model's vocabulary.

    Attributes:
        size: number of tokens.
        adds_bos: whether a prompt must begin with the beginning-of-sequence token.
        bos: its id, -1 for none.
    """

    def __init__(self, model: Any) -> None:
        self._handle = llama.llama_model_get_vocab(model)
        self.size: int = llama.llama_vocab_n_tokens(self._handle)
        self.adds_bos: bool = llama.llama_vocab_get_add_bos(self._handle)
        self.bos: int = llama.llama_vocab_bos(self._handle)
        self._eos: int = llama.llama_vocab_eos(self._handle)
        self._pieces: dict[int, bytes] = {}
        self._split_template = functools.lru_cache(maxsize=256)(self._split_special)

    # ------------------------------------------------------------------------------------ text to ids

    def tokenize(self, text: str, *, add_special: bool, parse_special: bool) -> list[int]:
        """Return the ids of one text."""
        data = text.encode(errors="replace")
        room = len(data) + 8
        buffer = (llama.llama_token * room)()
        count = llama.llama_tokenize(self._handle, data, len(data), buffer, room, add_special, parse_special)
        if count < 0:
            room = -count
            buffer = (llama.llama_token * room)()
            count = llama.llama_tokenize(self._handle, data, len(data), buffer, room, add_special, parse_special)
        return list(buffer[:count])

    def _encode_run(self, text: str, *, is_first: bool) -> list[int]:
        """Return the ids of text in which nothing is special; llama.cpp cuts the first run as any other."""
        return self.tokenize(text, add_special=False, parse_special=False)

    def _split_special(self, text: str) -> tuple[str | int, ...]:
        """Return a template's text as runs of plain text and the ids of the special tokens between them."""
        pieces: list[str | int] = []
        position = 0
        for token in self.tokenize(text, add_special=False, parse_special=True):
            if not self._is_special(token):
                continue
            name = llama.llama_vocab_get_text(self._handle, token).decode(errors="replace")
            found = text.find(name, position)
            if found < 0:
                continue
            if found > position:
                pieces.append(text[position:found])
            pieces.append(token)
            position = found + len(name)
        if position < len(text):
            pieces.append(text[position:])
        return tuple(pieces)

    def _is_special(self, token: int) -> bool:
        return bool(llama.llama_vocab_get_attr(self._handle, token) & (_ATTR_UNKNOWN | _ATTR_CONTROL))

    # ------------------------------------------------------------------------------------ ids to text

    def piece(self, token: int) -> bytes:
        """Return the bytes a token adds to the text; special tokens add none."""
        known = self._pieces.get(token)
        if known is not None:
            return known
        buffer = ctypes.create_string_buffer(_PIECE_BYTES)
        length = llama.llama_token_to_piece(self._handle, token, buffer, _PIECE_BYTES, 0, False)
        if length < 0:
            buffer = ctypes.create_string_buffer(-length)
            length = llama.llama_token_to_piece(self._handle, token, buffer, -length, 0, False)
        piece = buffer.raw[:length]
        self._pieces[token] = piece
        return piece

    def ends_text(self, token: int) -> bool:
        """Return whether the model ends its turn with this token."""
        return bool(llama.llama_vocab_is_eog(self._handle, token))

    def special_text(self, token: int) -> str:
        """Return a special token's name, "" when the model has none."""
        return llama.llama_vocab_get_text(self._handle, token).decode(errors="replace") if token >= 0 else ""

    @property
    def bos_text(self) -> str:
        """The beginning-of-sequence token's name."""
        return self.special_text(self.bos)

    @property
    def eos_text(self) -> str:
        """The end-of-sequence token's name."""
        return self.special_text(self._eos)

    def fingerprint(self) -> str:
        """Return a hash of every token's name in order: equal ids mean equal tokens when it is equal."""
        digest = hashlib.sha256(str(llama.llama_vocab_type(self._handle)).encode())
        get_text = llama.llama_vocab_get_text
        for token in range(self.size):
            digest.update(get_text(self._handle, token))
            digest.update(b"\0")
        return digest.hexdigest()[:32]
