"""Texts of the command line: answers made safe for a terminal, figures in one line, tables, JSON.

Pure functions; knows no stream and no engine.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence

from app.chat.messages import JsonObject, Message
from app.i18n import _
from app.models.entry import ModelEntry
from app.models.fit_types import Fit
from app.models.fit_words import fit_short
from app.units import NBSP, bytes_text, count_text, number_text, rate_text, seconds_text
from backends.protocol import ModelLoaded, StopReason

# Control characters but for line feed and tab, and the marks that turn the direction of what follows: the first drive
# a terminal, the second show a text that is not there. A lone carriage return would write over the line.
_UNSAFE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
_CONTROL_PICTURES = 0x2400
_DELETE_PICTURE = "\u2421"
_REPLACEMENT = "\ufffd"

_STOPS: dict[str, Callable[[], str]] = {
    StopReason.END_OF_TEXT.value: lambda: _("ended by itself"),
    StopReason.STOP_STRING.value: lambda: _("ended at a stop string"),
    StopReason.MAX_TOKENS.value: lambda: _("cut at the longest answer allowed"),
    StopReason.CONTEXT_FULL.value: lambda: _("cut: the context is full"),
    StopReason.ABORTED.value: lambda: _("stopped"),
}

# The figures of an answer that `chat --json` gives, all from its stats.
_COUNTS = ("prompt_tokens", "reused_tokens", "new_tokens")
_SPEEDS = ("ttft_s", "prefill_tokens_per_s", "decode_tokens_per_s")
_DRAFTS = ("draft_proposed", "draft_accepted")


def terminal_safe(text: str) -> str:
    """Return the text with nothing in it that drives a terminal: ESC becomes ␛, and so on; lines and tabs stay."""
    return _UNSAFE.sub(_picture, text)


def safe_line(text: str) -> str:
    """Return the text as one line that is safe for a terminal."""
    return terminal_safe(" ".join(text.split()))


def _picture(found: re.Match[str]) -> str:
    code = ord(found.group())
    if code == ord("\r"):
        return ""
    if code == 0x7F:
        return _DELETE_PICTURE
    return chr(_CONTROL_PICTURES + code) if code < 0x20 else _REPLACEMENT


def figures_line(message: Message) -> str:
    """Return what an answer took as one line, "" when the engine gave no figures."""
    stats = message.stats
    if not _has_figures(stats):
        return ""
    prompt_tokens, reused_tokens, new_tokens = (stats.get(name, 0) for name in _COUNTS)
    parts = [
        _("{count} tokens written").format(count=count_text(new_tokens)),
        _("{count} read").format(count=count_text(prompt_tokens - reused_tokens)),
        _("{count} reused").format(count=count_text(reused_tokens)),
    ]
    if stats.get("ttft_s"):
        parts.append(_("first token after {time}").format(time=seconds_text(stats["ttft_s"])))
    if stats.get("decode_tokens_per_s"):
        parts.append(rate_text(stats["decode_tokens_per_s"]))
    stop = _STOPS.get(str(stats.get("stop_reason")))
    if stop is not None:
        parts.append(stop())
    return " · ".join(parts).replace(NBSP, " ")


def answer_json(message: Message, loaded: ModelLoaded | None, model: str) -> JsonObject:
    """Return an answer with the keys of `cutaway chat --json`; a figure nobody measured is null.

    Args:
        message: the answer as it ended.
        loaded: the engine that wrote it.
        model: the model's key in the library, or what the person called it.
    """
    stats = message.stats
    absent = 0 if _has_figures(stats) else None  # a figure of 0 is left out on its way from the engine
    figures: JsonObject = {name: stats.get(name, absent) for name in (*_COUNTS, *_SPEEDS, *_DRAFTS)}
    return {
        "text": message.text,
        "stop_reason": stats.get("stop_reason"),
        **figures,
        "backend": loaded.backend if loaded else None,
        "device": loaded.device if loaded else None,
        "model": model,
        "quantization": loaded.quantization if loaded else None,
    }


def _has_figures(stats: JsonObject) -> bool:
    return "decode_tokens_per_s" in stats


def model_json(entry: ModelEntry) -> JsonObject:
    """Return what the library knows of a model, as JSON."""
    return {
        "key": entry.key,
        "name": entry.name,
        "owner": entry.owner,
        "quantization": entry.quantization,
        "architecture": entry.architecture,
        "format": entry.format,
        "size_bytes": entry.size_bytes,
        "bits_per_weight": round(entry.bits_per_weight, 4) or None,
        "fallback_tensors": entry.fallback_tensors,
        "has_importance_matrix": entry.has_importance_matrix,
        "parameters_count": entry.parameters_count,
        "context_tokens": entry.context_tokens,
        "path": str(entry.path),
        "parts": [str(part) for part in entry.parts],
        "origin": entry.origin,
        "identity": entry.identity,
        "note": entry.note,
        "fault": entry.fault,
    }


def models_table(entries: Sequence[ModelEntry], fits: Mapping[str, Fit]) -> list[str]:
    """Return the library as the lines of a table; what is wrong with a model stands last, where there is such a one."""
    heads = [_("Name"), _("Bits/weight"), _("Size"), _("On this machine"), _("Where"), _("Fault")]
    rows = [
        [
            entry.key,
            number_text(entry.bits_per_weight) if entry.bits_per_weight else "-",
            bytes_text(entry.size_bytes) if entry.size_bytes else "-",
            fit_short(fits[entry.key]) if entry.key in fits else "-",
            str(entry.path),
            entry.fault,
        ]
        for entry in entries
    ]
    if not any(entry.fault for entry in entries):
        heads, rows = heads[:-1], [row[:-1] for row in rows]
    return table([heads, *rows])


def table(rows: Sequence[Sequence[str]]) -> list[str]:
    """Return the rows as lines with columns two spaces apart; every cell is one safe line."""
    cells = [[safe_line(cell.replace(NBSP, " ")) for cell in row] for row in rows]
    widths = [max(width(row[column]) for row in cells) for column in range(len(cells[0]))]
    return [
        "  ".join(cell + " " * (wide - width(cell)) for cell, wide in zip(row, widths, strict=True)).rstrip()
        for row in cells
    ]


def width(text: str) -> int:
    """Return how many places of a terminal a text takes: East Asian characters take two, marks above others none."""
    return sum(
        0 if unicodedata.combining(character) else 2 if unicodedata.east_asian_width(character) in "WF" else 1
        for character in text
    )
