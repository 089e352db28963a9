"""Numbers for people: three significant digits, always a unit, never a line break between the two.

Knows neither what is measured nor where it is shown. A value that is not known (None, NaN, infinite) is said in words.
"""

from __future__ import annotations

import math
from typing import TypeGuard

from app.i18n import _, ngettext

# A number and its unit stay on one line.
NBSP = "\u00a0"

_BYTES_PER_KIB = 1024.0
_BYTE_UNITS = ("KiB", "MiB", "GiB", "TiB")
_SIGNIFICANT_DIGITS = 3
_COUNT_UNITS = ((1e12, "T"), (1e9, "B"), (1e6, "M"), (1e3, "k"))
_NEARLY_ONE = 0.9995  # rounds to one with three digits
_SECONDS_PER_MINUTE = 60
_SECONDS_PER_HOUR = 3600


def bytes_text(count: float | None) -> str:
    """Return an amount of memory: "94.3 MiB"; below one KiB the exact number of bytes."""
    if not _is_known(count):
        return _("unknown")
    if abs(count) < 1000:
        return ngettext("{count} byte", "{count} bytes", int(count)).format(count=int(count)).replace(" ", NBSP)
    unit, factor = byte_unit(count)
    return f"{number_text(count / factor)}{NBSP}{unit}"


def bytes_of_text(used: float | None, total: float | None) -> str:
    """Return a part of an amount: "9.20 of 180 MiB"; both units when they differ."""
    if not _is_known(used) or not _is_known(total):
        return _("unknown")
    text = bytes_text(total)
    number, unit = text.split(NBSP, 1)
    part = bytes_text(used)
    part_number, part_unit = part.split(NBSP, 1)
    if part_unit == unit or used == 0:
        return _("{used} of {total}").format(used=part_number, total=f"{number}{NBSP}{unit}").replace(" ", NBSP)
    return _("{used} of {total}").format(used=part, total=text).replace(" ", NBSP)


def byte_unit(count: float) -> tuple[str, float]:
    """Return the unit that shows this many bytes as a number below 1,000, and its size in bytes."""
    factor = _BYTES_PER_KIB
    for unit in _BYTE_UNITS[:-1]:
        if _rounded(abs(count) / factor) < 1000:
            return unit, factor
        factor *= _BYTES_PER_KIB
    return _BYTE_UNITS[-1], factor


def rate_text(tokens_per_s: float | None) -> str:
    """Return a speed: "151 tokens/s"."""
    if not _is_known(tokens_per_s):
        return _("unknown")
    return f"{number_text(tokens_per_s)}{NBSP}{_('tokens/s')}"


def seconds_text(seconds: float | None) -> str:
    """Return a length of time: "91.2 ms", "12.3 s", "2 min 05 s", "1 h 05 min"."""
    if not _is_known(seconds):
        return _("unknown")
    if seconds == 0 or _rounded(abs(seconds)) >= 1:
        if _rounded(abs(seconds)) < _SECONDS_PER_MINUTE:
            return f"{number_text(seconds)}{NBSP}s"
        return _long_time_text(seconds)
    return f"{number_text(seconds * 1000)}{NBSP}ms"


def count_text(count: float | None) -> str:
    """Return a whole number with thousands separators: "8,192"."""
    return f"{round(count):,}" if _is_known(count) else _("unknown")


def percent_text(fraction: float | None, signed: bool = False) -> str:
    """Return a part of one as a percentage with one decimal: "84.0 %"; with its sign, "+3.1 %"."""
    if not _is_known(fraction):
        return _("unknown")
    percent = round(fraction * 100, 1) + 0.0  # + 0.0 turns a negative zero into zero
    sign = "+" if signed and percent > 0 else ""
    return f"{sign}{percent:,.1f}{NBSP}%".replace("-", "\u2212")


def count_short(count: float) -> str:
    """Return a large number in short: "8.03 B", "135 M"; "" for 0."""
    for size, unit in _COUNT_UNITS:
        if count >= size * _NEARLY_ONE:  # 999,885,952 is "1.00 B", not "1,000 M"
            return f"{number_text(count / size)}{NBSP}{unit}"
    return number_text(count) if count else ""


def number_text(value: float | None) -> str:
    """Return a number with three significant digits and no unit: "9.20", "151", "1,510", "0"."""
    if not _is_known(value):
        return _("unknown")
    rounded = _rounded(value)
    if rounded == 0:
        return "0"
    digits_before_point = math.floor(math.log10(abs(rounded))) + 1
    decimals = max(0, _SIGNIFICANT_DIGITS - digits_before_point)
    return f"{rounded:,.{decimals}f}".replace("-", "\u2212")


def _long_time_text(seconds: float) -> str:
    whole = round(abs(seconds))
    sign = "\u2212" if seconds < 0 else ""
    if whole < _SECONDS_PER_HOUR:
        minutes, rest = divmod(whole, _SECONDS_PER_MINUTE)
        return f"{sign}{minutes}{NBSP}min{NBSP}{rest:02d}{NBSP}s"
    hours, minutes = divmod(round(whole / _SECONDS_PER_MINUTE), 60)
    return f"{sign}{hours:,}{NBSP}h{NBSP}{minutes:02d}{NBSP}min"


def _rounded(value: float) -> float:
    return float(f"{value:.{_SIGNIFICANT_DIGITS}g}")


def _is_known(value: float | None) -> TypeGuard[float]:
    return value is not None and math.isfinite(value)
