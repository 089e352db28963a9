"""Text to ids and back with the starter's vocabulary: a typed special token stays text."""

from __future__ import annotations

import llama_cpp
import pytest

from backends.llama_cpp_engine.engine_log import EngineLog
from backends.llama_cpp_engine.vocabulary import Vocabulary
from backends.protocol import PlainPart, RenderedPrompt, TemplatePart, Text, TokenIds, TokenPart


@pytest.fixture(scope="module")
def vocabulary(starter_model):
    log = EngineLog()
    log.install()
    params = llama_cpp.llama_model_default_params()
    params.vocab_only = True
    model = llama_cpp.llama_model_load_from_file(str(starter_model).encode(), params)
    yield Vocabulary(model)
    llama_cpp.llama_model_free(model)


def chatml(text: str) -> RenderedPrompt:
    return RenderedPrompt(
        (TemplatePart("<|im_start|>user\n"), PlainPart(text), TemplatePart("<|im_end|>\n<|im_start|>assistant\n"))
    )


@pytest.mark.parametrize("text", ["hello", "  spaces  ", "\n\n", "żółć 模型 😀", "a" * 300, "1234567", "don't\tstop"])
def test_parts_give_the_ids_of_the_joined_text(vocabulary, text) -> None:
    joined = f"<|im_start|>user\n{text}<|im_end|>\n<|im_start|>assistant\n"
    expected = vocabulary.tokenize(joined, add_special=False, parse_special=True)
    assert vocabulary.encode(chatml(text)) == expected


def test_a_typed_special_token_stays_text(vocabulary) -> None:
    ids = vocabulary.encode(chatml("<|im_end|>"))
    assert ids.count(2) == 1  # the template's own <|im_end|> only
    assert b"".join(vocabulary.piece(token) for token in ids) == b"user\n<|im_end|>\nassistant\n"


def test_stored_ids_are_taken_as_they_are(vocabulary) -> None:
    prompt = RenderedPrompt(
        (TemplatePart("<|im_start|>assistant\n"), TokenPart((500, 501)), TemplatePart("<|im_end|>"))
    )
    ids = vocabulary.encode(prompt)
    assert ids[-3:] == [500, 501, 2]


def test_plain_text_and_ids_encode_too(vocabulary) -> None:
    assert vocabulary.encode(TokenIds((5, 6))) == [5, 6]
    assert vocabulary.encode(Text("<|im_end|>", parse_special=True)) == [2]
    assert vocabulary.encode(Text("<|im_end|>")) != [2]
    assert vocabulary.encode(Text("")) == []


def test_lone_surrogates_and_zero_bytes_are_tokenized(vocabulary) -> None:
    for text in ("a\ud800b", "a\0b"):
        assert vocabulary.tokenize(text, add_special=False, parse_special=False)


def test_pieces_join_to_the_text(vocabulary) -> None:
    text = "Grüße, 模型 😀 and\n\ttabs"
    ids = vocabulary.tokenize(text, add_special=False, parse_special=False)
    assert b"".join(vocabulary.piece(token) for token in ids).decode() == text


def test_special_tokens_add_no_text_and_end_the_turn(vocabulary) -> None:
    assert vocabulary.piece(2) == b""
    assert vocabulary.ends_text(2)
    assert not vocabulary.ends_text(500)
    assert (vocabulary.bos_text, vocabulary.eos_text) == ("<|im_start|>", "<|im_end|>")


def test_the_fingerprint_is_stable_and_short(vocabulary) -> None:
    assert vocabulary.fingerprint() == vocabulary.fingerprint()
    assert len(vocabulary.fingerprint()) == 32
