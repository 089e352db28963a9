"""The tokenizer of a GGUF: merges from scores, cuts by name, and what is refused."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tokenizers import Regex, pre_tokenizers

from backends.errors import EngineError, ErrorCode
from backends.torch_engine.gguf_reader import GgufFile, read_gguf
from backends.torch_engine.gguf_vocabulary import CUTS, build_tokenizer, scored_merges
from tests.helpers.tiny_models import tiny_model
from tests.helpers.torch_folders import tiny_gguf, tiny_tokenizer


@pytest.fixture(scope="module")
def tiny(tmp_path_factory) -> GgufFile:
    return read_gguf(tiny_gguf(tmp_path_factory.mktemp("gguf") / "tiny.gguf", tiny_model("llama")))


def sentencepiece(**changes: object) -> GgufFile:
    tokens = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256)), "▁", "a", "b", "ab", "▁ab", "ba"]
    metadata = {
        "tokenizer.ggml.model": "llama",
        "tokenizer.ggml.tokens": tokens,
        "tokenizer.ggml.unknown_token_id": 0,
        "tokenizer.ggml.bos_token_id": 1,
    }
    scores = [0.0] * 259 + [-1.0, -2.0, -3.0, -4.0, -5.0, -6.0]
    metadata["tokenizer.ggml.scores"] = np.array(scores)
    metadata["tokenizer.ggml.token_type"] = np.array([2, 3, 3, *[6] * 256, *[1] * 6])
    return GgufFile(Path("x.gguf"), metadata | changes, {})


@pytest.mark.parametrize("text", ["hello the <|im_end|>", "  żółć\n\n", "", "hell"])
def test_byte_level_ids_are_those_of_the_same_tokenizer_json(tiny, text) -> None:
    made, judge = build_tokenizer(tiny), tiny_tokenizer()
    assert made.encode(text).ids == judge.encode(text).ids
    assert made.decode(made.encode(text).ids) == judge.decode(judge.encode(text).ids)


def test_the_best_scored_whole_is_merged_first() -> None:
    merges = scored_merges(["a", "b", "ab", "ba", "aba"], [0, 0, -2, -1, -3], [1] * 5)
    assert merges == [("b", "a"), ("a", "b"), ("ab", "a"), ("a", "ba")]
    assert scored_merges(["a", "b", "ab"], [0, 0, -1], [1, 1, 3]) == []


def test_a_sentencepiece_vocabulary_puts_a_space_in_front_and_falls_back_to_bytes() -> None:
    tokenizer = build_tokenizer(sentencepiece())
    assert [tokenizer.id_to_token(id_) for id_ in tokenizer.encode("ab").ids] == ["<s>", "▁ab"]
    assert tokenizer.encode("é", add_special_tokens=False).ids == [259, 3 + 0xC3, 3 + 0xA9]
    bare = build_tokenizer(
        sentencepiece(**{"tokenizer.ggml.add_space_prefix": False, "tokenizer.ggml.add_bos_token": False})
    )
    assert [bare.id_to_token(id_) for id_ in bare.encode("ab").ids] == ["ab"]


def test_what_is_not_known_is_refused(tiny) -> None:
    def code_of(**changes: object) -> ErrorCode:
        metadata = {**tiny.metadata, **{f"tokenizer.ggml.{key}": value for key, value in changes.items()}}
        with pytest.raises(EngineError) as caught:
            build_tokenizer(replace(tiny, metadata=metadata))
        return caught.value.code

    assert code_of(pre="somebody-s-own") is ErrorCode.LOAD_FAILED
    assert code_of(model="t5") is ErrorCode.LOAD_FAILED
    assert code_of(tokens=[]) is ErrorCode.NO_VOCABULARY
    assert code_of(tokens=["a"]) is ErrorCode.HEADER_INVALID
    assert code_of(model="llama") is ErrorCode.HEADER_INVALID  # no scores


@pytest.mark.parametrize("word", sorted(CUTS))
def test_every_cut_is_a_pattern_that_loses_nothing(word) -> None:
    text = "Don't  stop 12345 żółć\n\n\t模型 x_y ...  "
    cut = pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(one), behavior="isolated") for one in CUTS[word]])
    pieces = [piece for piece, _place in cut.pre_tokenize_str(text)]
    assert "".join(pieces) == text
    assert len(pieces) > 5
