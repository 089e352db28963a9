"""The library as a person thinks of it: models by name, each in several quantizations, one of which is recommended.

Knows no widget and no machine: it is given entries and whether they fit.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from app.models.entry import ModelEntry
from app.models.fit_types import Fit, Verdict
from ui.models.chat_list_model import folded
from ui.widgets.display_text import display_text

# How much room a recommended quantization has, best first: a long document, some pages, a dialogue, a question.
WANTED_TOKENS = (16_384, 8_192, 4_096, 2_048)

# Above about 8 bits per weight a model answers the same and is only larger and slower (Q8_0 has 8.5).
MOST_USEFUL_BITS = 9.0

# The KV type that changes no answer: room is counted with it.
PLAIN_KV = "f16"

_MAX_SHOWN_CHARACTERS = 200


@dataclass(frozen=True, slots=True)
class NamedModel:
    """Every quantization of one model.

    Attributes:
        name: as the first entry spells it.
        entries: smallest first.
        searchable: everything a search looks at, folded.
    """

    name: str
    entries: tuple[ModelEntry, ...]
    searchable: str

    def is_same_as(self, other: NamedModel) -> bool:
        """Return whether both are one model, whatever quantizations there are."""
        return self.name.casefold() == other.name.casefold()

    @property
    def usable(self) -> tuple[ModelEntry, ...]:
        """The entries without a fault."""
        return tuple(entry for entry in self.entries if not entry.fault)

    @property
    def parameters_count(self) -> int:
        """The number of weights; 0 when unknown."""
        return max((entry.parameters_count for entry in self.entries), default=0)


@dataclass(frozen=True, slots=True)
class Recommended:
    """The quantization to take.

    Attributes:
        entry: of the library.
        room_tokens: how much context it was chosen for; 0 when it fits only in part.
        is_whole: whether that is all the model was trained for.
        is_largest: whether no larger one has as much room.
    """

    entry: ModelEntry
    room_tokens: int
    is_whole: bool = False
    is_largest: bool = True


def by_name(entries: Iterable[ModelEntry]) -> list[NamedModel]:
    """Return the models by name; upper and lower case are one name."""
    groups: dict[str, list[ModelEntry]] = {}
    for entry in entries:
        groups.setdefault(one_line(entry.name).casefold(), []).append(entry)
    return [_named(groups[name]) for name in sorted(groups)]


def matching(models: Sequence[NamedModel], text: str) -> list[NamedModel]:
    """Return the models that hold every word of the text; case and accents do not count."""
    words = folded(text).split()
    return [model for model in models if all(word in model.searchable for word in words)] if words else list(models)


def recommended(entries: Sequence[ModelEntry], fits: Mapping[str, Fit]) -> Recommended | None:
    """Return the largest quantization that gains anything and still has room; None when none fits or nobody can tell.

    Room is looked for in the steps of WANTED_TOKENS; a model that was trained for less needs no more than that. When
    none has room, the smallest one that fits in part is taken.
    """
    known = [(entry, fits[entry.key]) for entry in entries if not entry.fault and entry.key in fits]
    fitting = [(entry, fit) for entry, fit in known if fit.verdict in (Verdict.FITS, Verdict.TIGHT)]
    for wanted in WANTED_TOKENS:
        roomy = [entry for entry, fit in fitting if _room(fit) >= _need(entry, wanted)]
        if roomy:
            useful = [entry for entry in roomy if entry.bits_per_weight <= MOST_USEFUL_BITS]
            best = max(useful, key=_size) if useful else min(roomy, key=_size)
            need = _need(best, wanted)
            return Recommended(best, need, need == best.context_tokens, _size(best) == max(map(_size, roomy)))
    partial = [entry for entry, fit in known if fit.verdict is Verdict.PARTIAL]
    return Recommended(min(partial, key=_size), 0) if partial else None


def one_line(text: str) -> str:
    """Return a stranger's words on one line of bounded length."""
    return display_text(" ".join(text[: 4 * _MAX_SHOWN_CHARACTERS].split())[:_MAX_SHOWN_CHARACTERS])


def copies_of(entry: ModelEntry, entries: Iterable[ModelEntry]) -> list[ModelEntry]:
    """Return the other entries with the same bytes."""
    if not entry.identity:
        return []
    return [other for other in entries if other.identity == entry.identity and other.path != entry.path]


def _named(entries: list[ModelEntry]) -> NamedModel:
    words = (
        word
        for entry in entries
        for word in (entry.name, entry.owner, entry.quantization, entry.architecture, str(entry.path), entry.note)
    )
    return NamedModel(
        one_line(entries[0].name), tuple(sorted(entries, key=_order)), _folded("\n".join(dict.fromkeys(words)))
    )


def _folded(text: str) -> str:
    return text.casefold() if text.isascii() else folded(text)  # the plain case is a hundred times quicker


def _order(entry: ModelEntry) -> tuple[float, int, str]:
    return (entry.bits_per_weight, entry.size_bytes, entry.key)


def _size(entry: ModelEntry) -> tuple[float, int]:
    return (entry.bits_per_weight, entry.size_bytes)


def _room(fit: Fit) -> int:
    return fit.max_context_tokens.get(PLAIN_KV) or 0


def _need(entry: ModelEntry, wanted: int) -> int:
    return min(wanted, entry.context_tokens or wanted)
