"""What bytes a token adds: both spellings, and the ways that are refused."""

from __future__ import annotations

import pytest
from tokenizers import pre_tokenizers

from backends.torch_engine.vocabulary_bytes import Spelling, byte_of_character, spelling_of, token_bytes


def test_each_byte_has_a_character_of_its_own_as_the_library_has_it() -> None:
    known = byte_of_character()
    assert sorted(known.values()) == list(range(256))
    assert set(known) == set(pre_tokenizers.ByteLevel.alphabet())


@pytest.mark.parametrize("text", ["hello world", "żółć", "模型", "😀", "\x00\x7f\xa0\xad\n\t"])
def test_byte_level_names_are_undone(text) -> None:
    character_of = {byte: character for character, byte in byte_of_character().items()}
    name = "".join(character_of[byte] for byte in text.encode())
    assert token_bytes(name, Spelling.BYTE_LEVEL) == text.encode()
    half = token_bytes(name[:1], Spelling.BYTE_LEVEL)  # cut inside a character too
    assert half == text.encode()[:1]


def test_sentencepiece_writes_spaces_and_bytes() -> None:
    assert token_bytes("▁Hello▁▁x", Spelling.SENTENCEPIECE) == b" Hello  x"
    assert token_bytes("<0xE2>", Spelling.SENTENCEPIECE) == b"\xe2"
    assert token_bytes("<0xE2>x", Spelling.SENTENCEPIECE) == b"<0xE2>x"


@pytest.mark.parametrize(
    ("decoder", "spelling"),
    [
        ({"type": "ByteLevel"}, Spelling.BYTE_LEVEL),
        ({"type": "Sequence", "decoders": [{"type": "Replace"}, {"type": "ByteFallback"}, {"type": "Fuse"}]},
         Spelling.SENTENCEPIECE),
        ({"type": "Metaspace"}, Spelling.SENTENCEPIECE),
        ({"type": "WordPiece"}, None),
        ({"type": "Sequence", "decoders": [{"type": "ByteLevel"}, {"type": "CTC"}]}, None),
        ({"decoders": 5}, None),
        (None, None),
    ],
)  # fmt: skip
def test_the_spelling_is_told_by_the_decoder(decoder, spelling) -> None:
    assert spelling_of(decoder) is spelling
