"""What a person is told about quantizations that are made here: warnings, refusals, results. Knows no engine."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from app.errors import Words, one_line
from app.i18n import _, ngettext
from app.models.quantization import meaning
from app.units import bytes_text, count_text, number_text


def folder_words(path: Path) -> Words:
    """Return the words for a source that is a folder."""
    message = _("“{name}” is a folder; quantizations are made from a GGUF file.").format(name=_name(path))
    return Words(message, _("Choose the GGUF of this model in F16 or BF16."))


def exists_words(path: Path) -> Words:
    """Return the words for a result that would take another file's place."""
    message = _("The file {path} is there already.").format(path=one_line(str(path)))
    return Words(message, _("Delete it first, or choose another folder; nothing is written over."))


def lost_words(folder: Path) -> Words:
    """Return the words for a folder that is not there."""
    message = _("The folder {path} is not there.").format(path=one_line(str(folder)))
    return Words(message, _("Make it, or choose another one."))


def no_room_words(size_bytes: int, free: int, reserve_bytes: int) -> Words:
    """Return the words for a disk that is too full."""
    message = _("The disk has no room for it: {size} are needed, {free} are free.").format(
        size=bytes_text(size_bytes), free=bytes_text(free)
    )
    hint = _("Make room or choose another folder; {reserve} are always left for everything else.")
    return Words(message, hint.format(reserve=bytes_text(reserve_bytes)))


def unsound_words(path: Path, reason: str) -> Words:
    """Return the words for a result that was written and does not run."""
    message = _("The new file does not work, so it was removed: {reason}").format(reason=reason)
    return Words(message, _("The source is unchanged. It may be damaged: compare its SHA-256 with its publisher's."))


def source_words(quantization: str) -> str:
    """Return the warning before a quantized source is quantized again."""
    words = _(
        "This source is quantized itself ({quantization}). What it lost stays lost, and comparisons with files made "
        "from it say little. A source in F16 or BF16 is better."
    )
    return words.format(quantization=quantization)


def requantized_source_words(source: str) -> str:
    """Return the warning before a source is quantized whose weights were quantized before."""
    words = _(
        "This source was made from weights that were quantized before ({source}), not from the original ones. What was "
        "lost stays lost, and comparisons with files made from it say little."
    )
    return words.format(source=source.replace(" > ", ", "))


def requantized_words(source: str) -> str:
    """Return the warning that stays on a result made from weights that were quantized before."""
    words = _("Made from weights that were quantized before ({source}), not from the original ones.")
    return words.format(source=source.replace(" > ", ", "))


def meaning_words(quantization: str, bits_per_weight: float, fallback_tensors: int) -> str:
    """Return what a quantization means for a person, for a table cell, with the bits that it really has."""
    return meaning(quantization, bits_per_weight, fallback_tensors).words


def fallback_words(fallback_tensors: int, tensors: int) -> str:
    """Return how many tensors are stored in a larger type than the name promises; "" for none."""
    if not fallback_tensors:
        return ""
    return _("{count} of {total} tensors").format(count=count_text(fallback_tensors), total=count_text(tensors))


def phase_words(phase: str, quantization: str) -> str:
    """Return what is being done, for a progress line."""
    words: dict[str, Callable[[], str]] = {
        "load": lambda: _("Loading the source"),
        "importance": lambda: _("Reading the text"),
        "quantize": lambda: _("Making {quantization}").format(quantization=quantization),
        "verify": lambda: _("Trying {quantization}").format(quantization=quantization),
    }
    return words[phase]()


def made_words(quantizations: list[str], size_bytes: int) -> str:
    """Return what was made, in a sentence."""
    return ngettext(
        "{names} was made and runs: {size}.", "{names} were made and run: {size} together.", len(quantizations)
    ).format(names=", ".join(quantizations), size=bytes_text(size_bytes))


def room_words(count: int, size_bytes: int, free: int | None) -> str:
    """Return what is chosen and what the disk has free, for one line."""
    room = _("{free} free").format(free=bytes_text(free)) if free is not None else ""
    chosen = ngettext("{count} ticked: {size}", "{count} ticked: {size}", count).format(
        count=count_text(count), size=bytes_text(size_bytes)
    )
    return " · ".join(filter(None, (chosen if count else _("Nothing is ticked"), room)))


def bits_words(bits_per_weight: float) -> str:
    """Return bits per weight with their unit."""
    return _("{bits} bits").format(bits=number_text(bits_per_weight))


def _name(path: Path) -> str:
    return one_line(path.name, 80)
