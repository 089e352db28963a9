"""Text to ids and back: a typed special token stays text, bytes join to the text, and llama.cpp's ids are ours."""

from __future__ import annotations

import itertools
import json
import random
import threading
from pathlib import Path

import pytest
from tokenizers import AddedToken, Tokenizer

from backends.errors import EngineError, ErrorCode
from backends.protocol import PlainPart, RenderedPrompt, TemplatePart, Text, TokenIds, TokenPart
from backends.torch_engine.gguf_reader import read_gguf
from backends.torch_engine.gguf_vocabulary import build_tokenizer
from backends.torch_engine.vocabulary import (
    Vocabulary,
    VocabularyFacts,
    make_vocabulary,
    read_tokenizer,
    token_ids,
    token_named,
)
from tests.helpers.hf_folders import gemma_folder, smol_folder
from tests.helpers.torch_folders import tiny_tokenizer

MODEL = Path("/models/one")
# What tokenizers stumble over: digits, spaces, line ends, marks, scripts, half characters, names of special tokens.
ODD = [
    "Hello world", "  leading", "a\n\n\nb", "1234567 89", "don't DON'T I'll 'S ’s", "é日本語 한국 🙂👩‍👩‍👧",
    "\t\tx = 1\n    y",
    "<|im_end|> <end_of_turn> <bos>", "▁ under", "", "\x00\x01 nul", "ﬁ ligature ½ ²", "a" * 300, "     ", "\r\n\r\n x",
    "مرحبا بالعالم", "𝕳𝖊𝖑𝖑𝖔", "e\u0301 combining", " trailing ", "\ufeffbom", "http://a.b/c?d=e&f=1", "١٢٣ ⅷ ①",
    "def f(x):\n\treturn x**2  # ok\n", "\u200b\u200d zero", "word\u00a0nbsp", "snake_case camelCase", "....!!!???",
    "\n", " \n \n", "x\u2028y", "🏳️‍🌈 flags 🇩🇪", "Ünïcödé ẞ", "<unused7><start_of_turn>", "\ud800 half",
]  # fmt: skip


def tiny(tokenizer: Tokenizer | None = None, **facts: object) -> Vocabulary:
    return make_vocabulary(tokenizer or tiny_tokenizer(), VocabularyFacts(bos=1, eos=2, **facts), MODEL)


def corpus(seed: int, count: int) -> list[str]:
    """Return odd texts, and as many made of their characters and words at random."""
    draw = random.Random(seed)
    characters, words = [c for text in ODD for c in text], " ".join(ODD).split(" ")
    mixed = ["".join(draw.choices(characters, k=draw.randrange(1, 60))) for _ in range(count)]
    return ODD + mixed + [" ".join(draw.choices(words, k=20)) for _ in range(count // 4)]


def chatml(text: str) -> RenderedPrompt:
    return RenderedPrompt(
        (TemplatePart("<|im_start|>user\n"), PlainPart(text), TemplatePart("<|im_end|>\n<|im_start|>assistant\n"))
    )


# ------------------------------------------------------------------------------------------- beside llama.cpp


@pytest.fixture(scope="module")
def llama_cpp():
    """llama.cpp's bindings, quiet, and our reading of a vocabulary through them."""
    from backends.llama_cpp_engine import vocabulary as judge
    from backends.llama_cpp_engine.engine_log import EngineLog

    log = EngineLog()
    log.install()
    models = []

    def load(path):
        params = judge.llama.llama_model_default_params()
        params.vocab_only = True
        models.append(judge.llama.llama_model_load_from_file(str(path).encode(), params))
        return judge.Vocabulary(models[-1])

    yield load
    for model in models:
        judge.llama.llama_model_free(model)


@pytest.fixture(scope="module")
def starter(llama_cpp, starter_model):
    return llama_cpp(starter_model), _folder_vocabulary(smol_folder()), _gguf_vocabulary(starter_model)


@pytest.fixture(scope="module")
def gemma(llama_cpp, gemma_model):
    return llama_cpp(gemma_model), _folder_vocabulary(gemma_folder()), _gguf_vocabulary(gemma_model)


def _folder_vocabulary(folder: Path) -> Vocabulary:
    tokenizer = read_tokenizer((folder / "tokenizer.json").read_bytes(), folder)
    words = json.loads((folder / "tokenizer_config.json").read_text(encoding="utf-8"))
    facts = VocabularyFacts(
        bos=token_named(tokenizer, words["bos_token"]), eos=token_named(tokenizer, words["eos_token"])
    )
    return make_vocabulary(tokenizer, facts, folder)


def _gguf_vocabulary(path: Path) -> Vocabulary:
    file = read_gguf(path)
    bos, eos = (int(file.number(f"tokenizer.ggml.{key}_token_id")) for key in ("bos", "eos"))
    return make_vocabulary(build_tokenizer(file), VocabularyFacts(bos=bos, eos=eos), path)


@pytest.mark.parametrize("which", ["starter", "gemma"])
def test_ids_are_llama_cpp_s_for_the_same_file(request, which) -> None:
    judge, *ours = request.getfixturevalue(which)
    for text, parse_special in itertools.product(corpus(5, 80), (False, True)):
        expected = judge.tokenize(text, add_special=True, parse_special=parse_special)
        for one in ours:
            assert one.tokenize(text, add_special=True, parse_special=parse_special) == expected, text
    for text in ODD:
        assert ours[0].encode(chatml(text)) == judge.encode(chatml(text))


@pytest.mark.parametrize("which", ["starter", "gemma"])
def test_every_token_is_llama_cpp_s(request, which) -> None:
    judge, *ours = request.getfixturevalue(which)
    for one in ours:
        assert (one.size, one.adds_bos, one.bos) == (judge.size, judge.adds_bos, judge.bos)
        assert (one.bos_text, one.eos_text) == (judge.bos_text, judge.eos_text)
        assert one.fingerprint() == judge.fingerprint()
        assert [id_ for id_ in range(one.size) if one.piece(id_) != judge.piece(id_)] == []
        assert [id_ for id_ in range(one.size) if one.ends_text(id_) != judge.ends_text(id_)] == []


@pytest.mark.parametrize("which", ["starter", "gemma"])
def test_pieces_join_to_the_text_wherever_they_are_cut(request, which) -> None:
    """Bug 25 of engine.md: emoji, scripts without spaces and spaces in front."""
    _judge, vocabulary, _other = request.getfixturevalue(which)
    for text in corpus(6, 100):
        ids = vocabulary.tokenize(text, add_special=False, parse_special=False)
        # Gemma writes a space as a low bar, so a low bar comes back as a space.
        expected = text.replace("▁", " ") if which == "gemma" else text
        assert b"".join(vocabulary.piece(id_) for id_ in ids) == expected.encode(errors="replace"), text


@pytest.mark.full
@pytest.mark.parametrize("which", ["starter", "gemma"])
def test_many_ids_are_llama_cpp_s(request, which) -> None:
    judge, ours, _other = request.getfixturevalue(which)
    for text in corpus(7, 8_000):
        assert ours.tokenize(text, add_special=False, parse_special=False) == judge.tokenize(
            text, add_special=False, parse_special=False
        )


# ------------------------------------------------------------------------------------------------- parts


@pytest.mark.parametrize("text", ["hello", "  spaces  ", "\n\n", "żółć 模型 😀", "don't\tstop"])
def test_parts_give_the_ids_of_the_joined_text(text) -> None:
    vocabulary = tiny()
    joined = f"<|im_start|>user\n{text}<|im_end|>\n<|im_start|>assistant\n"
    assert vocabulary.encode(chatml(text)) == vocabulary.tokenize(joined, add_special=False, parse_special=True)


def test_a_typed_special_token_stays_text() -> None:
    vocabulary = tiny()
    ids = vocabulary.encode(chatml("<|im_end|>"))
    assert ids.count(2) == 1  # the template's own
    assert b"".join(vocabulary.piece(id_) for id_ in ids) == b"user\n<|im_end|>\nassistant\n"


def test_a_name_that_is_a_word_of_the_vocabulary_too_stays_text() -> None:
    """Some vocabularies take whole words as they are, special names among them."""
    content = json.loads(tiny_tokenizer().to_str())
    content["model"]["ignore_merges"] = True
    content["pre_tokenizer"] = {
        "type": "ByteLevel",
        "add_prefix_space": False,
        "trim_offsets": True,
        "use_regex": False,
    }
    vocabulary = tiny(Tokenizer.from_str(json.dumps(content)))
    ids = vocabulary.encode(Text("<|im_end|>"))
    assert 2 not in ids
    assert b"".join(vocabulary.piece(id_) for id_ in ids) == b"<|im_end|>"


def test_stored_ids_text_and_ids_encode() -> None:
    vocabulary = tiny()
    parts = (TemplatePart("<|im_start|>x"), TokenPart((5, 6)), TemplatePart("<|im_end|>"))
    assert vocabulary.encode(RenderedPrompt(parts))[-3:] == [5, 6, 2]
    assert vocabulary.encode(TokenIds((5, 6))) == [5, 6]
    assert vocabulary.encode(Text("<|im_end|>", parse_special=True)) == [2]
    assert vocabulary.encode(Text("")) == []


def test_special_tokens_that_strip_spaces_do_so_in_a_template_only() -> None:
    tokenizer = tiny_tokenizer()
    tokenizer.add_tokens([AddedToken("<|user|>", special=True, rstrip=True, lstrip=True, normalized=False)])
    vocabulary = tiny(tokenizer)
    plain = vocabulary.tokenize("ab", add_special=False, parse_special=False)
    user = tokenizer.token_to_id("<|user|>")
    assert vocabulary.tokenize("ab \n<|user|>\n ab", add_special=False, parse_special=True) == [*plain, user, *plain]
    assert user not in vocabulary.tokenize("ab \n<|user|>\n ab", add_special=False, parse_special=False)


def test_the_longest_of_two_special_names_is_found() -> None:
    tokenizer = tiny_tokenizer()
    tokenizer.add_tokens([AddedToken(name, special=True, normalized=False) for name in ("<a>", "<a><b>", "[x]")])
    vocabulary = tiny(tokenizer)
    long, short, box = (tokenizer.token_to_id(name) for name in ("<a><b>", "<a>", "[x]"))
    assert vocabulary.tokenize("<a><b><a>[x]", add_special=False, parse_special=True) == [long, short, box]


def test_a_space_is_put_in_front_of_the_first_word_only() -> None:
    from tokenizers import decoders, pre_tokenizers
    from tokenizers.models import BPE

    vocab = {"<s>": 0, "▁": 1, "a": 2, "▁a": 3}
    tokenizer = Tokenizer(BPE(vocab=vocab, merges=[("▁", "a")]))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="first", split=False)
    tokenizer.decoder = decoders.Metaspace(prepend_scheme="first", split=False)
    tokenizer.add_tokens([AddedToken("<s>", special=True, normalized=False)])
    vocabulary = make_vocabulary(tokenizer, VocabularyFacts(bos=0), MODEL)
    assert vocabulary.tokenize("a", add_special=False, parse_special=True) == [3]
    assert vocabulary.tokenize("<s>a", add_special=False, parse_special=True) == [0, 2]


# ------------------------------------------------------------------------------------------ facts, refusals


def test_ends_are_what_configs_say_and_what_chats_end_with() -> None:
    vocabulary = tiny(ends=frozenset({70, 9_999}))
    assert [id_ for id_ in range(vocabulary.size) if vocabulary.ends_text(id_)] == [2, 70]
    assert vocabulary.piece(70) == b""
    assert (vocabulary.special_text(-1), vocabulary.special_text(2), vocabulary.piece(10**6)) == ("", "<|im_end|>", b"")


def test_ids_of_configs_are_numbers_and_lists_of_them() -> None:
    assert token_ids([1, [2, 3], None, "4", True, -1, [None, 5]]) == {1, 2, 3, 5}
    tokenizer = tiny_tokenizer()
    assert token_named(tokenizer, {"content": "<|im_end|>"}) == token_named(tokenizer, "<|im_end|>") == 2
    assert token_named(tokenizer, None) == token_named(tokenizer, "nothing") == token_named(tokenizer, {"x": 1}) == -1


def test_a_vocabulary_beyond_the_model_is_refused_but_for_special_tokens() -> None:
    size = tiny_tokenizer().get_vocab_size()
    with pytest.raises(EngineError) as caught:
        tiny(tokens=size - 1)
    assert caught.value.code is ErrorCode.LOAD_FAILED
    tokenizer = tiny_tokenizer()
    tokenizer.add_tokens([AddedToken("<image>", special=True, normalized=False)])
    vocabulary = tiny(tokenizer, tokens=size)
    assert vocabulary.size == size
    assert max(vocabulary.tokenize("<image>", add_special=False, parse_special=True)) < size


@pytest.mark.parametrize("data", [b"", b"{}", b"[]", b'{"model": {"type": "BPE"}}', b"\xff", b'{"model":' * 5_000])
def test_what_is_no_tokenizer_is_refused(data) -> None:
    with pytest.raises(EngineError) as caught:
        read_tokenizer(data, MODEL)
    assert caught.value.code is ErrorCode.LOAD_FAILED


def test_a_tokenizer_of_another_spelling_is_refused() -> None:
    content = json.loads(tiny_tokenizer().to_str())
    for decoder in (None, {"type": "WordPiece", "prefix": "##", "cleanup": True}):
        tokenizer = Tokenizer.from_str(json.dumps(content | {"decoder": decoder}))
        with pytest.raises(EngineError) as caught:
            tiny(tokenizer)
        assert caught.value.code is ErrorCode.LOAD_FAILED


def test_many_threads_get_the_same_ids() -> None:
    vocabulary = tiny()
    texts = corpus(8, 50)
    expected = [vocabulary.encode(chatml(text)) for text in texts]
    found: list[list[list[int]]] = []
    threads = [
        threading.Thread(target=lambda: found.append([vocabulary.encode(chatml(text)) for text in texts]))
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [expected] * 4
