"""The tokenizer that a GGUF file describes, as the `tokenizers` library runs it.

Two kinds are known: "gpt2", byte-level pairs with merges, and "llama", sentencepiece pairs whose merges follow from
the scores. How text is cut before pairs are merged stands in the file as a word (tokenizer.ggml.pre); what a word
means is in llama.cpp's source. A word that is not in the table below is refused: a tokenizer that cuts differently
gives other ids and no error.
References: llama.cpp's src/llama-vocab.cpp; https://huggingface.co/docs/tokenizers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tokenizers import AddedToken, Regex, Tokenizer, decoders, normalizers, pre_tokenizers, processors
from tokenizers.models import BPE

from backends.errors import EngineError, ErrorCode
from backends.torch_engine.gguf_reader import GgufFile

SPACE = "▁"  # what sentencepiece writes for a space
_NORMAL, _UNKNOWN, _CONTROL, _USER_DEFINED = 1, 2, 3, 4  # llama_token_type

_CONTRACTIONS = r"'s|'t|'re|'ve|'m|'ll|'d"
_ANY_CASE = "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
_SPACES = r"\s*[\r\n]+|\s+(?!\S)|\s+"
_GPT2 = rf"{_CONTRACTIONS}| ?\p{{L}}+| ?\p{{N}}+| ?[^\s\p{{L}}\p{{N}}]+|\s+(?!\S)|\s+"
_DIGIT = r"\p{N}"
_LLAMA3 = rf"{_ANY_CASE}|[^\r\n\p{{L}}\p{{N}}]?\p{{L}}+|\p{{N}}{{1,3}}| ?[^\s\p{{L}}\p{{N}}]+[\r\n]*|{_SPACES}"
_QWEN2 = rf"{_ANY_CASE}|[^\r\n\p{{L}}\p{{N}}]?\p{{L}}+|\p{{N}}| ?[^\s\p{{L}}\p{{N}}]+[\r\n]*|{_SPACES}"
_UPPER, _LOWER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
_TEKKEN = (
    rf"[^\r\n\p{{L}}\p{{N}}]?{_UPPER}*{_LOWER}+|[^\r\n\p{{L}}\p{{N}}]?{_UPPER}+{_LOWER}*"
    rf"|\p{{N}}| ?[^\s\p{{L}}\p{{N}}]+[\r\n/]*|{_SPACES}"
)
_GPT4O = (
    rf"[^\r\n\p{{L}}\p{{N}}]?{_UPPER}*{_LOWER}+{_ANY_CASE}?|[^\r\n\p{{L}}\p{{N}}]?{_UPPER}+{_LOWER}*{_ANY_CASE}?"
    rf"|\p{{N}}{{1,3}}| ?[^\s\p{{L}}\p{{N}}]+[\r\n/]*|{_SPACES}"
)
# Word -> the patterns that cut a text, one after the other.
CUTS: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(("gpt-2", "gpt2", "phi-2", "olmo", "mpt", "granite-docling"), (_GPT2,)),
    **dict.fromkeys(("smollm", "starcoder", "refact", "command-r", "codeshell", "exaone"), (_DIGIT, _GPT2)),
    **dict.fromkeys(("llama3", "llama-v3", "llama-bpe", "falcon3", "lfm2", "dbrx", "smaug-bpe"), (_LLAMA3,)),
    **dict.fromkeys(("qwen2", "deepseek-r1-qwen", "stablelm2", "megrez", "hunyuan"), (_QWEN2,)),
    **dict.fromkeys(("gpt-4o", "llama4"), (_GPT4O,)),
    "tekken": (_TEKKEN,),
}
# Whole words of the vocabulary are taken as they are, whatever the merges say.
_TAKES_WHOLE_WORDS = {"llama3", "llama-v3", "llama-bpe", "falcon3", "lfm2", "dbrx", "smaug-bpe", "tekken"}


def build_tokenizer(file: GgufFile) -> Tokenizer:
    """Return the tokenizer of a GGUF file.

    Raises:
        EngineError: NO_VOCABULARY or LOAD_FAILED; it is of a kind that this engine does not know.
    """
    tokens = file.texts("tokenizer.ggml.tokens")
    if not tokens:
        raise EngineError(ErrorCode.NO_VOCABULARY, path=str(file.path))
    kind = file.text("tokenizer.ggml.model")
    types = [int(one) for one in file.numbers("tokenizer.ggml.token_type")] or [_NORMAL] * len(tokens)
    if len(types) != len(tokens):
        raise file.damaged("its vocabulary has more tokens than kinds of tokens")
    if kind == "gpt2":
        tokenizer = _byte_level(file, tokens)
    elif kind == "llama":
        tokenizer = _sentencepiece(file, tokens, types)
    else:
        raise EngineError(
            ErrorCode.LOAD_FAILED, path=str(file.path), detail=f"its tokenizer is of the kind {kind[:40]!a}"
        )
    _add_special(tokenizer, tokens, types)
    _add_bos(file, tokenizer, tokens, adds_by_default=kind == "llama")
    return tokenizer


def _byte_level(file: GgufFile, tokens: Sequence[str]) -> Tokenizer:
    word = file.text("tokenizer.ggml.pre", "gpt-2")
    cuts = CUTS.get(word)
    if cuts is None:
        detail = f"its tokenizer cuts text in a way this engine does not know ({word[:40]!a})"
        raise EngineError(ErrorCode.LOAD_FAILED, path=str(file.path), detail=detail)
    vocab = {token: index for index, token in enumerate(tokens)}
    # A space may be a token of its own, so the cut is looked for behind the first character.
    pairs = [
        (merge[:at], merge[at + 1 :]) for merge in file.texts("tokenizer.ggml.merges") if (at := merge.find(" ", 1)) > 0
    ]
    merges = [(left, right) for left, right in pairs if left in vocab and right in vocab and left + right in vocab]
    tokenizer = Tokenizer(BPE(vocab=vocab, merges=merges, ignore_merges=word in _TAKES_WHOLE_WORDS))
    splits: list[Any] = [pre_tokenizers.Split(Regex(cut), behavior="isolated") for cut in cuts]
    byte_level = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([*splits, byte_level])
    tokenizer.decoder = decoders.ByteLevel()
    return tokenizer


def _sentencepiece(file: GgufFile, tokens: Sequence[str], types: Sequence[int]) -> Tokenizer:
    scores = file.numbers("tokenizer.ggml.scores")
    if len(scores) != len(tokens):
        raise file.damaged("its vocabulary has more tokens than scores")
    vocab = {token: index for index, token in enumerate(tokens)}
    unknown = int(file.number("tokenizer.ggml.unknown_token_id", -1))
    model = BPE(
        vocab=vocab,
        merges=scored_merges(tokens, scores, types),
        byte_fallback="<0x00>" in vocab,
        unk_token=tokens[unknown] if 0 <= unknown < len(tokens) else None,
        fuse_unk=True,
    )
    tokenizer = Tokenizer(model)
    replace = normalizers.Replace(" ", SPACE)
    puts_space = bool(file.metadata.get("tokenizer.ggml.add_space_prefix", True))
    tokenizer.normalizer = normalizers.Sequence([normalizers.Prepend(SPACE), replace]) if puts_space else replace
    parts: list[Any] = [decoders.Replace(SPACE, " "), decoders.ByteFallback(), decoders.Fuse()]
    tokenizer.decoder = decoders.Sequence(parts)
    return tokenizer


def scored_merges(tokens: Sequence[str], scores: Sequence[float], types: Sequence[int]) -> list[tuple[str, str]]:
    """Return the merges that a scored vocabulary means: the pair whose whole has the best score comes first.

    Of the pairs of one whole, that with the longest left half comes first, as transformers' converter has it. Special
    tokens are no wholes and no halves: text never becomes one.
    """
    ids = {token: index for index, token in enumerate(tokens) if types[index] in (_NORMAL, _USER_DEFINED)}
    merges: list[tuple[str, str]] = []
    for whole in sorted(ids, key=lambda token: -scores[ids[token]]):
        for cut in range(len(whole) - 1, 0, -1):
            left, right = whole[:cut], whole[cut:]
            if left in ids and right in ids:
                merges.append((left, right))
    return merges


def _add_special(tokenizer: Tokenizer, tokens: Sequence[str], types: Sequence[int]) -> None:
    """Name the tokens that are found whole in a text: special ones where they count, user-defined ones always."""
    kinds = (_UNKNOWN, _CONTROL, _USER_DEFINED)
    added = [
        AddedToken(token, normalized=False, special=kind != _USER_DEFINED)
        for token, kind in zip(tokens, types, strict=True)
        if kind in kinds and token
    ]
    tokenizer.add_tokens(added)


def _add_bos(file: GgufFile, tokenizer: Tokenizer, tokens: Sequence[str], *, adds_by_default: bool) -> None:
    bos = int(file.number("tokenizer.ggml.bos_token_id", -1))
    if not 0 <= bos < len(tokens) or not file.metadata.get("tokenizer.ggml.add_bos_token", adds_by_default):
        return
    name = tokens[bos]
    tokenizer.post_processor = processors.TemplateProcessing(
        single=[name, "$A"], pair=[name, "$A", "$B"], special_tokens=[(name, bos)]
    )
