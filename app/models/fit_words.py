"""A fit in words: the sentence, the few words of a table cell, the rows by owner, and what to confirm.

Every screen and the command line take their words from here, so that they cannot say different numbers.
"""

from __future__ import annotations

from dataclasses import dataclass

from app.errors import Words
from app.i18n import _, ngettext
from app.models.fit_records import rest_bytes
from app.models.fit_types import Fit, Measured, MemoryEstimate, Verdict
from app.units import bytes_text, count_text

_KILO, _MEGA = 1024, 1024 * 1024
_DEFAULT_KV_TYPE = "f16"
_SMALLER_KV_TYPE = "q8_0"


@dataclass(frozen=True, slots=True)
class OwnerRow:
    """What one owner of a model's memory was expected to take, and took.

    Attributes:
        owner: a key: weights, copies, projector, kv, compute, output, draft or rest.
        title: for people.
        predicted_bytes: None when nobody could tell.
        measured_bytes: None before a load, and where no engine says.
    """

    owner: str
    title: str
    predicted_bytes: int | None
    measured_bytes: int | None

    @property
    def difference_bytes(self) -> int | None:
        """Measured less predicted; None where one of them is not known."""
        if self.predicted_bytes is None or self.measured_bytes is None:
            return None
        return self.measured_bytes - self.predicted_bytes


def context_text(tokens: int | None) -> str:
    """Return a context length as people say it: "512", "17k", "1M"; never more than there is."""
    if tokens is None:
        return _("unknown")
    if tokens < _KILO:
        return count_text(tokens)
    return f"{tokens // _MEGA:,}M" if tokens >= _MEGA else f"{tokens // _KILO}k"


def fit_sentence(fit: Fit) -> str:
    """Return what it needs, what is free and what there is room for."""
    if fit.estimate is None:
        return fit.reason or _("How much memory it needs cannot be told before it is loaded.")
    words = [_need(fit, fit.estimate)]
    if fit.verdict is Verdict.PARTIAL:
        words.append(_layers_on_cpu(fit))
    if fit.verdict is Verdict.TIGHT:
        words.append(_("That leaves little to other programs."))
    words.append(_room(fit))
    return " ".join(word for word in words if word)


def fit_short(fit: Fit) -> str:
    """Return the same in a few words, for a table cell: "room for 17k · q8 KV 33k"."""
    if fit.estimate is None:
        return _("unknown")
    if fit.verdict is Verdict.TOO_LARGE:
        words = _("needs {needed}, {free} free")
        return words.format(needed=bytes_text(_needed_bytes(fit, fit.estimate)), free=bytes_text(fit.free_bytes))
    if fit.verdict is Verdict.PARTIAL:
        words = _("{count} of {total} layers on the CPU")
        return words.format(count=count_text(fit.layers_count - fit.gpu_layers), total=count_text(fit.layers_count))
    plain, smaller = _plain_room(fit), _smaller_room(fit)
    if not plain:
        return _("fits") if fit.verdict is Verdict.FITS else _("just fits")
    room = _("room for {tokens}").format(tokens=context_text(plain))
    if not smaller:
        return room
    return f"{room} · {_('q8 KV {tokens}').format(tokens=context_text(smaller))}"


def owner_rows(fit: Fit, measured: Measured | None) -> tuple[OwnerRow, ...]:
    """Return predicted and measured memory by owner; the rows add up to the totals.

    Args:
        fit: the estimate; its rows are None when nobody can tell.
        measured: what a load took; None before one.
    """
    estimate = fit.estimate
    copies = _measured_copies(estimate, measured)
    split = measured.split if measured is not None else None
    rest = _measured_rest(measured)
    rows: list[tuple[str, str, int | None, int | None]] = [
        (
            "weights",
            _("Weights"),
            estimate.weights_bytes - estimate.copied_bytes if estimate else None,
            split.weights_bytes - (copies or 0) if split else None,
        ),
        ("copies", _("Weights, rearranged copy"), estimate.copied_bytes if estimate else None, copies),
        ("projector", _("Vision projector"), estimate.projector_bytes if estimate else None, None),
        ("kv", _("KV cache"), estimate.kv_bytes if estimate else None, split.kv_reserved_bytes if split else None),
        ("compute", _("Compute"), estimate.compute_bytes if estimate else None, split.compute_bytes if split else None),
        ("output", _("Output"), estimate.output_bytes if estimate else None, split.output_bytes if split else None),
        ("draft", _("Draft model"), estimate.draft_bytes if estimate else None, split.draft_bytes if split else None),
        ("rest", _("Engine itself"), estimate.floor_bytes + estimate.tables_bytes if estimate else None, rest),
    ]
    always = {"weights", "kv", "compute", "output", "rest"}
    return tuple(OwnerRow(*row) for row in rows if row[0] in always or row[2] or row[3])


def confirmation_words(fit: Fit) -> Words | None:
    """Return what a person must agree to before a load; None where there is nothing to ask."""
    if fit.verdict is Verdict.UNKNOWN:
        return Words(fit_sentence(fit), _("You can load it all the same; if the memory runs out, its engine ends."))
    if fit.verdict is not Verdict.TOO_LARGE or fit.estimate is None:
        return None
    hint = _("Loaded all the same, it will be very slow or its engine will end. {instead}")
    return Words(_need(fit, fit.estimate), hint.format(instead=_instead(fit)))


# ------------------------------------------------------------------------------------------------------- parts


def _need(fit: Fit, estimate: MemoryEstimate) -> str:
    words = _("Needs {needed} of {free} free with {tokens} tokens.")
    if fit.verdict is Verdict.TOO_LARGE:
        words = _("Needs {needed} with {tokens} tokens, and {free} are free.")
    return words.format(
        needed=bytes_text(_needed_bytes(fit, estimate)),
        free=bytes_text(fit.free_bytes),
        tokens=count_text(fit.context_tokens),
    )


def _needed_bytes(fit: Fit, estimate: MemoryEstimate) -> int:
    """Return what is needed on the device that decides."""
    if fit.device is None or (fit.device.is_cpu and len(estimate.by_device) < 2):
        return estimate.needed_bytes
    return estimate.by_device.get(fit.device.name, estimate.needed_bytes)


def _layers_on_cpu(fit: Fit) -> str:
    count = fit.layers_count - fit.gpu_layers
    words = ngettext(
        "{count} of its {total} layers stays on the CPU.", "{count} of its {total} layers stay on the CPU.", count
    )
    return words.format(count=count_text(count), total=count_text(fit.layers_count))


def _room(fit: Fit) -> str:
    plain, smaller = _plain_room(fit), _smaller_room(fit)
    if plain and smaller:
        words = _("Room for {plain} tokens; {smaller} with {type} KV.")
        return words.format(plain=context_text(plain), smaller=context_text(smaller), type=_SMALLER_KV_TYPE)
    if plain:
        return _("Room for {plain} tokens.").format(plain=context_text(plain))
    if smaller:
        words = _("Room for {smaller} tokens with {type} KV.")
        return words.format(smaller=context_text(smaller), type=_SMALLER_KV_TYPE)
    return ""


def _instead(fit: Fit) -> str:
    """Return what to do in place of a load that does not fit."""
    plain, smaller = _plain_room(fit), _smaller_room(fit)
    if plain:
        return _("There is room for {tokens} tokens of context.").format(tokens=count_text(plain))
    if smaller:
        words = _("There is room for {tokens} tokens of context with {type} KV.")
        return words.format(tokens=count_text(smaller), type=_SMALLER_KV_TYPE)
    return _("Close other programs, or choose a smaller quantization.")


def _plain_room(fit: Fit) -> int:
    return fit.max_context_tokens.get(_DEFAULT_KV_TYPE) or 0


def _smaller_room(fit: Fit) -> int:
    """Return the room with the smaller KV type; 0 where it is no gain."""
    smaller = fit.max_context_tokens.get(_SMALLER_KV_TYPE) or 0
    return smaller if context_text(smaller) != context_text(_plain_room(fit)) else 0


def _measured_copies(estimate: MemoryEstimate | None, measured: Measured | None) -> int | None:
    """Return what a load kept of the weights a second time, where the estimate says what the file holds."""
    if estimate is None or measured is None:
        return None
    more = measured.split.weights_bytes - (estimate.weights_bytes - estimate.copied_bytes)
    return max(0, more) if estimate.copied_bytes else 0


def _measured_rest(measured: Measured | None) -> int | None:
    """Return what no buffer explains of the process; None where the process was not read."""
    if measured is None:
        return None
    rest = rest_bytes(measured)
    return rest if rest is not None else measured.floor_bytes or None
