"""The model's vocabulary: text to token ids and back, by the tokenizers library.

Same surface as llama_cpp_engine/vocabulary.py, and for the same GGUF the same ids. Holds only immutable data once
made, so any thread may ask while a step runs. What a person typed is never read as a special token; what the chat
template wrote is.
"""

from __future__ import annotations

import functools
import hashlib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tokenizers import AddedToken, Tokenizer

from backends import protocol
from backends.errors import EngineError, ErrorCode
from backends.prompt_encoder import PromptEncoder
from backends.torch_engine.model_errors import ForeignErrors
from backends.torch_engine.vocabulary_bytes import Spelling, spelling_of, token_bytes

# Special tokens that end a turn whatever a config says, as llama.cpp has them (llama-vocab.cpp, special_eog_ids).
_TURN_ENDS = frozenset(
    {"<|im_end|>", "<end_of_turn>", "<turn|>", "<|eot_id|>", "<|end|>", "<|endoftext|>", "<|end_of_text|>", "<EOT>"}
    | {
        "<|eom_id|>",
        "</s>",
        "<eos>",
        "<|return|>",
        "<|call|>",
        "<|eot|>",
        "<end_of_utterance>",
        "<|END_OF_TURN_TOKEN|>",
    }
    # A model that begins to fill in code or to name a file has nothing more to say in a chat.
    | {"<|fim_pad|>", "<fim_pad>", "<fim-pad>", "<|fim_repo|>", "<|repo_name|>", "<reponame>", "<|file_sep|>"}
)
_PROBE = "a"


@dataclass(frozen=True, slots=True)
class VocabularyFacts:
    """What a model's files say of its vocabulary besides the tokenizer itself.

    Attributes:
        bos: id of the beginning-of-sequence token as a config has it, -1 for none.
        eos: id of the end-of-sequence token, -1 for none.
        ends: ids that end a turn.
        tokens: how many ids the model has; ids at and beyond it are never produced. 0: as many as the tokenizer.
    """

    bos: int = -1
    eos: int = -1
    ends: frozenset[int] = field(default_factory=frozenset)
    tokens: int = 0


class Vocabulary(PromptEncoder):
    """A loaded model's vocabulary.

    Attributes:
        size: number of tokens.
        adds_bos: whether a prompt must begin with the beginning-of-sequence token.
        bos: its id, -1 for none.
    """

    def __init__(self, tokenizer: Tokenizer, spelling: Spelling, facts: VocabularyFacts) -> None:
        self._tokenizer = tokenizer
        self._spelling = spelling
        self._added: dict[int, AddedToken] = tokenizer.get_added_tokens_decoder()
        known = tokenizer.get_vocab_size(with_added_tokens=True)
        self.size: int = max(known, max(self._added, default=-1) + 1)
        if facts.tokens:
            self.size = min(self.size, facts.tokens)
        self._special = {id_: one for id_, one in self._added.items() if one.special and id_ < self.size}
        begins = _begins_with(tokenizer)
        self.adds_bos: bool = begins >= 0
        self.bos: int = begins if begins >= 0 else facts.bos
        self._eos = facts.eos
        named = {id_ for id_, one in self._added.items() if one.content in _TURN_ENDS}
        self._ends = frozenset(id_ for id_ in {*facts.ends, *named, facts.eos} if 0 <= id_ < self.size)
        tokenizer.encode_special_tokens = True  # special tokens in a text stay text; ours are found below
        self._inner = _never_first(tokenizer)
        self._names = _SpecialNames({one.content: id_ for id_, one in self._special.items()})
        self._pieces: dict[int, bytes] = {}
        self._split_template = functools.lru_cache(maxsize=256)(self._split_special)

    # ------------------------------------------------------------------------------------ text to ids

    def tokenize(self, text: str, *, add_special: bool, parse_special: bool) -> list[int]:
        """Return the ids of one text.

        Args:
            text: of any kind; half characters become question marks.
            add_special: whether the beginning-of-sequence token comes first, where the model wants one.
            parse_special: whether special tokens in the text count.
        """
        parts = (protocol.TemplatePart(text),) if parse_special else (protocol.PlainPart(text),)
        ids = self._encode_parts(parts)
        return [self.bos, *ids] if add_special and self.adds_bos else ids

    def _encode_run(self, text: str, *, is_first: bool) -> list[int]:
        """Return the ids of text in which nothing is special."""
        tokenizer = self._tokenizer if is_first else self._inner
        whole = text.encode(errors="replace").decode()
        ids: list[int] = tokenizer.encode(whole, add_special_tokens=False).ids
        if self._special.keys().isdisjoint(ids):
            return ids
        # The vocabulary has a special token's name as a word too. Cut in two, it stays text. An id that is left is
        # that of the unknown character, which some vocabularies count among the special ones.
        pieces = [half for piece in self._names.split(whole) for half in _halves(piece, self._names.ids)]
        return [id_ for piece in pieces if piece for id_ in tokenizer.encode(piece, add_special_tokens=False).ids]

    def _split_special(self, text: str) -> tuple[str | int, ...]:
        """Return a template's text as runs of plain text and the ids of the special tokens between them."""
        pieces: list[str | int] = []
        for piece in self._names.split(text):
            id_ = self._names.ids.get(piece)
            if id_ is None:
                strips = bool(pieces) and isinstance(pieces[-1], int) and self._special[int(pieces[-1])].rstrip
                pieces += [kept] if (kept := piece.lstrip() if strips else piece) else []
                continue
            if self._special[id_].lstrip and pieces and isinstance(pieces[-1], str):
                before = pieces.pop()
                pieces += [kept] if (kept := str(before).rstrip()) else []
            pieces.append(id_)
        return tuple(pieces)

    # ------------------------------------------------------------------------------------ ids to text

    def piece(self, token: int) -> bytes:
        """Return the bytes a token adds to the text; special tokens add none."""
        known = self._pieces.get(token)
        if known is not None:
            return known
        added = self._added.get(token)
        if token in self._ends:
            piece = b""
        elif added is not None:
            piece = b"" if added.special else added.content.encode(errors="replace")
        else:
            name = self._tokenizer.id_to_token(token) if 0 <= token < self.size else None
            piece = b"" if name is None else token_bytes(name, self._spelling)
        self._pieces[token] = piece
        return piece

    def ends_text(self, token: int) -> bool:
        """Return whether the model ends its turn with this token."""
        return token in self._ends

    def special_text(self, token: int) -> str:
        """Return a special token's name, "" when the model has none."""
        return (self._tokenizer.id_to_token(token) or "") if 0 <= token < self.size else ""

    @property
    def bos_text(self) -> str:
        """The beginning-of-sequence token's name."""
        return self.special_text(self.bos)

    @property
    def eos_text(self) -> str:
        """The end-of-sequence token's name."""
        return self.special_text(self._eos)

    def fingerprint(self) -> str:
        """Return a hash of every token's name in order: equal ids mean equal tokens when it is equal.

        It equals that of llama_cpp_engine/vocabulary.py for the vocabulary of the same GGUF.
        """
        digest = hashlib.sha256(str(self._spelling.value).encode())
        name_of = self._tokenizer.id_to_token
        for token in range(self.size):
            digest.update((name_of(token) or "").encode(errors="replace"))
            digest.update(b"\0")
        return digest.hexdigest()[:32]


def read_tokenizer(data: bytes, model: Path) -> Tokenizer:
    """Return the tokenizer of a tokenizer.json.

    Raises:
        EngineError: LOAD_FAILED or HEADER_INVALID; it cannot be read.
    """
    with ForeignErrors(model, "its tokenizer.json cannot be read"):
        return Tokenizer.from_buffer(data)


def make_vocabulary(tokenizer: Tokenizer, facts: VocabularyFacts, model: Path) -> Vocabulary:
    """Return the vocabulary of a tokenizer.

    Raises:
        EngineError: LOAD_FAILED; it writes bytes in a way this engine does not know, or has ids that the model lacks.
    """
    with ForeignErrors(model, "its tokenizer does not work"):
        decoder = json.loads(tokenizer.decoder.__getstate__()) if tokenizer.decoder is not None else None
        spelling = spelling_of(decoder)
        if spelling is None:
            raise EngineError(
                ErrorCode.LOAD_FAILED,
                path=str(model),
                detail="its tokenizer writes text in a way this engine does not know",
            )
        if facts.tokens:
            _check_ids(tokenizer, facts.tokens, model)
        vocabulary = Vocabulary(tokenizer, spelling, facts)
        vocabulary.encode(protocol.Text(_PROBE))  # a tokenizer that cannot encode says so now
        return vocabulary


def token_ids(values: Iterable[object]) -> frozenset[int]:
    """Return the ids in values of configs: numbers, lists of numbers, or nothing."""
    found: set[int] = set()
    for value in values:
        numbers = value if isinstance(value, Sequence) and not isinstance(value, str) else [value]
        found.update(number for number in numbers if type(number) is int and number >= 0)
    return frozenset(found)


def token_named(tokenizer: Tokenizer, value: object) -> int:
    """Return the id of a token that a tokenizer_config.json names, as a text or an object; -1 when there is none."""
    name = value.get("content") if isinstance(value, Mapping) else value
    found = tokenizer.token_to_id(name) if isinstance(name, str) else None
    return -1 if found is None else found


def _check_ids(tokenizer: Tokenizer, tokens: int, model: Path) -> None:
    """Refuse a vocabulary with ids that the model has no row for; added tokens beyond are left out instead."""
    added = tokenizer.get_added_tokens_decoder()
    highest = max(
        (id_ for id_ in tokenizer.get_vocab(with_added_tokens=False).values() if id_ not in added), default=-1
    )
    beyond = max((id_ for id_, one in added.items() if not one.special), default=-1)
    if max(highest, beyond) >= tokens:
        detail = f"its tokenizer has the token {max(highest, beyond):,}, its weights end at {tokens - 1:,}"
        raise EngineError(ErrorCode.LOAD_FAILED, path=str(model), detail=detail)


def _begins_with(tokenizer: Tokenizer) -> int:
    """Return the id that the tokenizer puts in front of every text, -1 for none: asked of it, not of a config."""
    with_special = tokenizer.encode(_PROBE, add_special_tokens=True).ids
    plain = tokenizer.encode(_PROBE, add_special_tokens=False).ids
    front = len(with_special) - len(plain)
    return (
        with_special[0]
        if front > 0 and with_special[front : front + len(plain)] == plain
        else _front(with_special, plain)
    )


def _front(with_special: Sequence[int], plain: Sequence[int]) -> int:
    """Return the first id where something stands behind the text as well."""
    return with_special[0] if with_special and with_special[:1] != plain[:1] else -1


def _never_first(tokenizer: Tokenizer) -> Tokenizer:
    """Return the tokenizer for text that does not begin the prompt: some write a space in front of the first word."""
    normalizer, cut = tokenizer.normalizer, tokenizer.pre_tokenizer
    states = [json.loads(part.__getstate__()) for part in (normalizer, cut) if part is not None]
    if '"prepend_scheme": "first"' not in json.dumps(states):
        return tokenizer
    whole = json.loads(tokenizer.to_str())
    for part in ("normalizer", "pre_tokenizer"):
        whole[part] = _with_scheme(whole[part], "never")
    inner = Tokenizer.from_str(json.dumps(whole))
    inner.encode_special_tokens = True
    return inner


def _with_scheme(part: object, scheme: str) -> object:
    if isinstance(part, Mapping):
        return {key: scheme if key == "prepend_scheme" else _with_scheme(value, scheme) for key, value in part.items()}
    return [_with_scheme(value, scheme) for value in part] if isinstance(part, list) else part


class _SpecialNames:
    """Finds special tokens in a text, the longest of those that begin at one place; models have up to thousands.

    Attributes:
        ids: id of each name.
    """

    def __init__(self, ids: Mapping[str, int]) -> None:
        self.ids = {name: id_ for name, id_ in ids.items() if name}
        firsts = "".join(re.escape(first) for first in sorted({name[0] for name in self.ids}))
        self._first = re.compile(f"[{firsts}]" if firsts else "(?!)")
        self._lengths = sorted({len(name) for name in self.ids}, reverse=True)

    def split(self, text: str) -> list[str]:
        """Return the text in pieces, each either a special token's name or free of any."""
        pieces: list[str] = []
        begin = position = 0
        while found := self._first.search(text, position):
            at = found.start()
            length = next((length for length in self._lengths if text[at : at + length] in self.ids), 0)
            position = at + (length or 1)
            if length:
                pieces += [text[begin:at], text[at:position]] if at > begin else [text[at:position]]
                begin = position
        return [*pieces, text[begin:]] if begin < len(text) else pieces


def _halves(piece: str, names: Mapping[str, int]) -> tuple[str, ...]:
    return (piece[: len(piece) // 2], piece[len(piece) // 2 :]) if piece in names else (piece,)
