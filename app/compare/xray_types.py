"""What an X-ray of an answer is asked and what it finds, as plain values.

An X-ray reads a finished answer once more, token by token, with another quantization of its model: what would that one
have chosen at each place? Knows no engine and no widget.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from app.chat.messages import Message
from app.i18n import _, ngettext
from app.units import count_text
from backends.protocol import LoadParams


@dataclass(frozen=True, slots=True)
class XrayModel:
    """A model as it is loaded for an X-ray.

    Attributes:
        label: for people, such as "Q4_0".
        path: what the engine is given.
        backend: a name of the registry.
        params: how it is loaded.
    """

    label: str
    path: str
    backend: str = "llama_cpp"
    params: LoadParams = field(default_factory=LoadParams)


@dataclass(frozen=True, slots=True)
class XrayQuestion:
    """What is to be read by what.

    Attributes:
        dialogue: the messages before the answer, from the beginning.
        answer: with its token ids and the hash of their tokenizer.
        system_prompt: what the chat's model is told first; "" for nothing.
        other: the quantization that reads the answer.
        own: the model that wrote it; None where it is not at hand.
        notes: what a person must know of the result beforehand.
    """

    dialogue: tuple[Message, ...]
    answer: Message
    system_prompt: str
    other: XrayModel
    own: XrayModel | None = None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class XrayProgress:
    """How far an X-ray is: words for the step, and its share from 0 to 1; None where nobody knows."""

    words: str
    share: float | None = None


@dataclass(frozen=True, slots=True)
class Chance:
    """A token that could stand at a place.

    Attributes:
        token_id: its id.
        text: what it adds to the text, or its name where it adds nothing; half a character stands as its bytes.
        probability: from 0 to 1, by the unchanged model at temperature 1.
    """

    token_id: int
    text: str
    probability: float


@dataclass(frozen=True, slots=True)
class Reading:
    """What one model found at the place of one token.

    Attributes:
        logprob: of the token that stands there, a natural logarithm.
        probability: the same from 0 to 1.
        top: what it found likeliest, the likeliest first; empty where its figures are no numbers.
    """

    logprob: float
    probability: float
    top: tuple[Chance, ...]


@dataclass(frozen=True, slots=True)
class XrayToken:
    """One token of the answer.

    Attributes:
        token_id: its id.
        text: what the answer shows for it; "" for a token that holds only a part of a character.
        other: what the other quantization found.
        own: what the model found that wrote it; None where it was not asked.
    """

    token_id: int
    text: str
    other: Reading
    own: Reading | None = None

    @property
    def is_same(self) -> bool:
        """Whether the other quantization finds this token likeliest too."""
        return bool(self.other.top) and self.other.top[0].token_id == self.token_id

    @property
    def is_chance(self) -> bool:
        """Whether the model that wrote it found another one likelier as well: it was drawn, not chosen."""
        return self.own is not None and bool(self.own.top) and self.own.top[0].token_id != self.token_id

    @property
    def is_different(self) -> bool:
        """Whether the quantization makes the difference: not chosen by the one, and no matter of chance."""
        return not self.is_same and not self.is_chance


@dataclass(frozen=True, slots=True)
class Xray:
    """An answer, read once more.

    Attributes:
        other_label: the quantization that read it.
        own_label: the model that wrote it; "" where it was not asked.
        tokens: the answer, in order.
        prompt_tokens: what was read before it.
        notes: what a person must know of it.
        took_s: loading and reading.
    """

    other_label: str
    own_label: str
    tokens: tuple[XrayToken, ...]
    prompt_tokens: int = 0
    notes: tuple[str, ...] = ()
    took_s: float = 0.0

    @property
    def same(self) -> int:
        """How many tokens the other quantization would have chosen too."""
        return sum(token.is_same for token in self.tokens)

    @property
    def drawn(self) -> int:
        """How many of the others were drawn by chance: the model that wrote them found another token likelier too."""
        return sum(not token.is_same and token.is_chance for token in self.tokens)

    @property
    def sentence(self) -> str:
        """What was found, in a sentence."""
        total = len(self.tokens)
        words = ngettext(
            "{name} would have chosen {same} of {total} token the same.",
            "{name} would have chosen {same} of {total} tokens the same.",
            total,
        )
        return words.format(name=self.other_label, same=count_text(self.same), total=count_text(total))

    @property
    def chance_sentence(self) -> str:
        """How many of the others are no work of the quantization; "" for none, and where nobody knows."""
        if not self.own_label or not self.drawn:
            return ""
        words = ngettext(
            "Of the others, {count} was drawn by chance: {own}, which wrote it, found another one likelier too.",
            "Of the others, {count} were drawn by chance: {own}, which wrote them, found others likelier too.",
            self.drawn,
        )
        return words.format(count=count_text(self.drawn), own=self.own_label)


def text_of_piece(piece: bytes) -> str:
    """Return what a token adds to a text, for a list; half a character as its bytes: "0xE2 0x80"."""
    try:
        return piece.decode()
    except UnicodeDecodeError:
        return " ".join(f"0x{byte:02X}" for byte in piece)


def visible(text: str) -> str:
    """Return a token's text with what cannot be seen made visible: "␣the", "↵"."""
    if not text:
        return _("(nothing)")
    shown = text.replace("\r\n", "↵").replace("\n", "↵").replace("\t", "⇥")
    lead = len(shown) - len(shown.lstrip(" "))
    tail = len(shown) - len(shown.rstrip(" ")) if lead < len(shown) else 0
    return "␣" * lead + shown[lead : len(shown) - tail] + "␣" * tail
