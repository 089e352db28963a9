"""The sentence over a model's quantizations: what this machine has, which one to take and why.

Knows no widget.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from app.i18n import _
from app.models.entry import ModelEntry
from app.models.fit_types import Device, Fit, Machine
from app.models.fit_words import context_text
from app.units import bytes_of_text, bytes_text
from ui.models.model_choice import PLAIN_KV, NamedModel, Recommended, recommended
from ui.models.model_words import quantization_text


def banner_text(model: NamedModel, fits: Mapping[str, Fit], machine: Machine | None) -> str:
    """Return the whole text; "" while nothing is known of the machine, or nothing can be used."""
    if machine is None or not model.usable:
        return ""
    known = [fits[entry.key] for entry in model.usable if entry.key in fits]
    sentences = [machine_sentence(deciding_device(known) or machine.cpu)]
    if known:
        sentences.append(_choice_sentence(model.usable, fits))
    if any(not fit.is_speed_measured and fit.estimate is not None for fit in known):
        sentences.append(_("Figures in italics are predicted; yours replace them after the first load."))
    return " ".join(sentence for sentence in sentences if sentence)


def deciding_device(fits: Sequence[Fit]) -> Device | None:
    """Return the device that decides whether a model fits; None while no fit is known."""
    return next((fit.device for fit in fits if fit.device is not None), None)


def machine_sentence(device: Device) -> str:
    """Return what a device has and how much of it is free."""
    free = bytes_of_text(device.free_bytes, device.total_bytes)
    return _("{device}: {free} free.").format(device=device.title, free=free)


def _choice_sentence(entries: tuple[ModelEntry, ...], fits: Mapping[str, Fit]) -> str:
    chosen = recommended(entries, fits)
    if chosen is None:
        return _nothing_sentence(entries, fits)
    if not chosen.room_tokens:
        return _("None fits as a whole; {quantization} keeps some of its layers on the CPU.").format(
            quantization=quantization_text(chosen.entry)
        )
    return _room_sentence(chosen, fits[chosen.entry.key], is_single=len(entries) == 1)


def _room_sentence(chosen: Recommended, fit: Fit, is_single: bool) -> str:
    quantization = quantization_text(chosen.entry)
    if is_single:
        largest = fit.max_context_tokens.get(PLAIN_KV) or chosen.room_tokens
        is_whole = largest == chosen.entry.context_tokens
        words = _("{quantization} has room for all {tokens} tokens of its context.")
        words = words if is_whole else _("{quantization} has room for {tokens} tokens.")
        return words.format(quantization=quantization, tokens=context_text(largest))
    tokens = context_text(chosen.room_tokens)
    if not chosen.is_largest:
        words = _("{quantization} has room for {tokens} tokens; what is larger gains hardly anything.")
    elif chosen.is_whole:
        words = _("{quantization} is the largest with room for all {tokens} tokens of its context.")
    else:
        words = _("{quantization} is the largest with room for {tokens} tokens.")
    return words.format(quantization=quantization, tokens=tokens)


def _nothing_sentence(entries: tuple[ModelEntry, ...], fits: Mapping[str, Fit]) -> str:
    needs = [fit.estimate.needed_bytes for fit in (fits.get(entry.key) for entry in entries) if fit and fit.estimate]
    if not needs:
        return _("How much memory it takes cannot be told before it is loaded.")
    if len(needs) == 1:
        return _("It does not fit: it needs {needed}.").format(needed=bytes_text(needs[0]))
    return _("None of them fits: the smallest needs {needed}.").format(needed=bytes_text(min(needs)))
