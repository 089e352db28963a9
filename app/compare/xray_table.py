"""An X-ray as a table: the same figures for the keyboard, a screen reader and a CSV file."""

from __future__ import annotations

import numpy as np

from app.compare.xray_types import Reading, Xray, XrayToken, visible
from app.i18n import _
from app.telemetry.export import Column, Table
from app.units import count_text, number_text, percent_text


def xray_table(xray: Xray) -> Table:
    """Return one row a token: what stands there, how probable both found it, and what each found likeliest."""
    tokens = xray.tokens
    columns = [
        Column("token", _("token"), count_text, np.arange(1, len(tokens) + 1, dtype=np.float64)),
        Column("text", _("text"), str, tuple(visible(token.text) for token in tokens)),
        Column("chosen", _("by {name}").format(name=xray.other_label), str, tuple(map(choice_words, tokens))),
    ]
    read = [("other", xray.other_label, [token.other for token in tokens])]
    if xray.own_label:
        read.append(("own", xray.own_label, [token.own or _NOTHING for token in tokens]))
    columns += [column for key, name, found in read for column in _columns(key, name, found)]
    columns += [_logprobs(key, name, found) for key, name, found in read]
    title = _("X-ray of an answer by {name}").format(name=xray.other_label)
    return Table("xray", title, tuple(columns), is_over_time=False)


_NOTHING = Reading(float("nan"), float("nan"), ())


def choice_words(token: XrayToken) -> str:
    """Return in a word or two whether the other quantization would have chosen a token."""
    if not token.other.top:
        return _("no figures")
    if token.is_same:
        return _("the same")
    return _("drawn by chance") if token.is_chance else _("another")


def _columns(key: str, name: str, readings: list[Reading]) -> list[Column]:
    """Return how probable a model found the token, and what it found likeliest."""
    best = tuple(visible(one.top[0].text) if one.top else "" for one in readings)
    shares = np.array([one.probability for one in readings], np.float64)
    best_shares = np.array([one.top[0].probability if one.top else np.nan for one in readings], np.float64)
    return [
        Column(f"{key}_probability", _("probability, {name}").format(name=name), _share_text, shares),
        Column(f"{key}_likeliest", _("likeliest, {name}").format(name=name), str, best),
        Column(f"{key}_likeliest_probability", _("its probability"), _share_text, best_shares),
    ]


def _logprobs(key: str, name: str, readings: list[Reading]) -> Column:
    values = np.array([one.logprob for one in readings], np.float64)
    return Column(f"{key}_logprob_nats", _("log-probability, {name}").format(name=name), _nats_text, values)


def _share_text(share: float) -> str:
    return "" if np.isnan(share) else percent_text(share)


def _nats_text(nats: float) -> str:
    return "" if np.isnan(nats) else _("{number} nats").format(number=number_text(nats))
