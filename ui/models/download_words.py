"""The words and buttons of a download: on its row of the table, in the list of downloads, and in the line at the foot.

Knows no queue and no widget. Speeds are decimal (MB/s), as network speeds are given everywhere; a part of a hundred is
rounded down, so that nothing is said to be whole before it is.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Callable, Mapping, Sequence

from app.downloads.types import ACTIVE_STATES, Download, DownloadState
from app.errors import one_line
from app.i18n import _, ngettext
from app.units import NBSP, bytes_of_text, bytes_text, count_text, number_text, seconds_text

_SPEED_UNITS = ((1e9, "GB/s"), (1e6, "MB/s"), (1e3, "kB/s"))
_PLAIN_FROM = 10.0  # from here on a live figure needs no decimals
_MINUTE_S, _HOUR_S, _DAY_S = 60, 3600, 86_400
_SEPARATOR = " · "


class Button(enum.Enum):
    """What can be done with a download."""

    PAUSE = "pause"
    RESUME = "resume"
    RETRY = "retry"
    NOW = "now"  # have the next try at once
    TOKEN = "token"  # give one, or accept the licence
    CHOOSE = "choose"  # another file
    USE = "use"  # chat with what is here
    CANCEL = "cancel"  # stop it; asks what becomes of what is here
    DELETE = "delete"  # what is left of it
    REMOVE = "remove"  # off the list
    CHECK = "check"  # ask the hub whether there is a newer version
    NEWER = "newer"  # download it
    DELETE_OLD = "delete_old"  # the model, when the newer version is here; asks first
    TRASH = "trash"  # the answers to that
    FOREVER = "forever"

    def words(self) -> str:
        """Return what stands on the button."""
        return _BUTTON_WORDS[self]()


_BUTTON_WORDS: Mapping[Button, Callable[[], str]] = {
    Button.PAUSE: lambda: _("Pause"),
    Button.RESUME: lambda: _("Resume"),
    Button.RETRY: lambda: _("Try again"),
    Button.NOW: lambda: _("Try now"),
    Button.TOKEN: lambda: _("Give a token…"),
    Button.CHOOSE: lambda: _("Choose another…"),
    Button.USE: lambda: _("Use"),
    Button.CANCEL: lambda: _("Cancel…"),
    Button.DELETE: lambda: _("Delete…"),
    Button.REMOVE: lambda: _("Off the list"),
    Button.CHECK: lambda: _("Check for a newer version"),
    Button.NEWER: lambda: _("Download the newer version"),
    Button.DELETE_OLD: lambda: _("Delete this older one…"),
    Button.TRASH: lambda: _("Move to trash"),
    Button.FOREVER: lambda: _("Delete forever"),
}
_OF_ACTION = {
    "resume": Button.RESUME,
    "retry": Button.RETRY,
    "token": Button.TOKEN,
    "free_space": Button.RESUME,
    "choose": Button.CHOOSE,
}


def main_button(download: Download) -> Button | None:
    """Return the one thing that a person most likely wants now; None where there is nothing to do but wait."""
    state = download.state
    if download.is_leftover:
        return Button.RESUME if download.files else None
    if state is DownloadState.DONE:
        return Button.USE if download.path is not None else None
    if state is DownloadState.WAITING and download.retry_at is not None:
        return Button.NOW
    if is_pausable(download):
        return Button.PAUSE
    if state is DownloadState.PAUSED:
        return _OF_ACTION.get(download.action, Button.RESUME)
    if state is DownloadState.FAILED:
        return Button.RETRY if download.action == "free_space" else _OF_ACTION.get(download.action)
    return Button.RESUME if state is DownloadState.CANCELLED else None


def other_button(download: Download) -> Button:
    """Return what ends a download, or takes it off the list."""
    if download.is_leftover:
        return Button.DELETE
    if download.state is DownloadState.DONE:
        return Button.REMOVE
    if download.state is DownloadState.CANCELLED:
        return Button.DELETE if download.done_bytes else Button.REMOVE
    return Button.CANCEL


def more_button(download: Download) -> Button | None:
    """Return what can be done besides; None for nothing. Of a finished one the note on newer versions knows better."""
    if main_button(download) is Button.NOW:
        return Button.PAUSE
    is_here = download.state is DownloadState.DONE and download.path is not None and bool(download.files)
    return Button.CHECK if is_here else None


def is_pausable(download: Download) -> bool:
    """Return whether it can be paused now."""
    return download.state in (DownloadState.QUEUED, DownloadState.RUNNING, DownloadState.WAITING)


def is_resumable(download: Download) -> bool:
    """Return whether a paused one can go on."""
    return download.state is DownloadState.PAUSED and not download.is_leftover


# ------------------------------------------------------------------------------------------------------- figures


def fraction(download: Download) -> float:
    """Return how much is done, 0 to 1: of the bytes, or of the check of them."""
    done = download.checked_bytes if download.state is DownloadState.VERIFYING else download.done_bytes
    return min(1.0, max(0.0, done / download.total_bytes)) if download.total_bytes > 0 else 0.0


def percent_done(part: float) -> str:
    """Return a part of one in whole percent, rounded down: "64 %"."""
    return f"{math.floor(part * 100)}{NBSP}%"


def speed_text(bytes_per_s: float | None) -> str:
    """Return a transfer's speed: "48 MB/s"; "" while it is not known."""
    if bytes_per_s is None or not math.isfinite(bytes_per_s) or bytes_per_s < 0:
        return ""
    size, unit = next((one for one in _SPEED_UNITS if bytes_per_s >= one[0]), _SPEED_UNITS[-1])
    value = bytes_per_s / size
    text = count_text(value) if value >= _PLAIN_FROM else number_text(round(value, 1))
    return f"{text}{NBSP}{unit}"


def left_text(seconds: float | None) -> str:
    """Return how long it will take, no finer than can be known: "40 s", "12 min", "1 h 05 min"; "" if unknown."""
    if seconds is None or not math.isfinite(seconds) or seconds < 0:
        return ""
    whole = math.ceil(seconds)
    if whole < _MINUTE_S:
        return f"{max(1, whole)}{NBSP}s"
    if whole < _HOUR_S:
        return f"{math.ceil(whole / _MINUTE_S)}{NBSP}min"
    if whole < _DAY_S:
        return seconds_text(math.ceil(whole / _MINUTE_S) * _MINUTE_S)
    days = math.ceil(whole / _DAY_S)
    return ngettext("{count} day", "{count} days", days).format(count=count_text(days)).replace(" ", NBSP)


# --------------------------------------------------------------------------------------------------------- words


def cell_texts(download: Download, now_s: float) -> tuple[str, ...]:
    """Return what stands beside the button in a table: the longest first, for cells of any width."""
    percent = percent_done(fraction(download))
    match download.state:
        case DownloadState.RUNNING:
            figures = [percent, speed_text(download.speed_bytes_per_s), left_text(download.left_s)]
            return _shorter([figure for figure in figures if figure])
        case DownloadState.PAUSED:
            return (_SEPARATOR.join((_("Paused"), percent)), _("Paused"), percent)
        case DownloadState.VERIFYING:
            return (_SEPARATOR.join((_("Verifying"), percent)), _("Verifying"), percent)
        case DownloadState.FAILED:
            return (_SEPARATOR.join((_("Stopped"), percent)), _("Stopped"), percent)
        case DownloadState.QUEUED:
            return (_("Waits for its turn"), _("Waits"))
        case DownloadState.WAITING:
            waits = _waits(download, now_s)
            return (_SEPARATOR.join((percent, waits)), waits, _("Waits"), percent)
    return (_("Cancelled"),) if download.state is DownloadState.CANCELLED else (_("Done"),)


def state_text(download: Download, now_s: float) -> str:
    """Return everything about a download on one line: "2.93 of 4.58 GiB · 64 % · 48 MB/s · 40 s left"."""
    if download.is_leftover:
        return _SEPARATOR.join((_("Unfinished, from an earlier time"), bytes_text(download.done_bytes)))
    size = bytes_of_text(download.done_bytes, download.total_bytes)
    percent = percent_done(fraction(download))
    left = left_text(download.left_s)
    words: dict[DownloadState, tuple[str, ...]] = {
        DownloadState.RUNNING: (
            size,
            percent,
            speed_text(download.speed_bytes_per_s),
            _("{time} left").format(time=left) if left else "",
        ),
        DownloadState.QUEUED: (_("Waits for its turn"), size if download.done_bytes else bytes_text(_total(download))),
        DownloadState.PAUSED: (_("Paused"), size, percent),
        DownloadState.WAITING: (_waits(download, now_s), size, percent),
        DownloadState.VERIFYING: (_("Verifying what is here"), percent),
        DownloadState.DONE: (_("Done"), bytes_text(_total(download))),
        DownloadState.FAILED: (_("Stopped"), size, percent),
        DownloadState.CANCELLED: (_("Cancelled"), size if download.done_bytes else ""),
    }
    return _SEPARATOR.join(word for word in words[download.state] if word)


def strip_text(downloads: Sequence[Download]) -> str:
    """Return the line at the foot: "2 downloads · 64 % · 48 MB/s"; "" when there is nothing worth a line."""
    active = [one for one in downloads if one.state in ACTIVE_STATES]
    if active:
        count = ngettext("{count} download", "{count} downloads", len(active)).format(count=len(active))
        speed = sum(one.speed_bytes_per_s or 0.0 for one in active)
        figures = [count, percent_done(strip_fraction(downloads)), speed_text(speed) if speed else ""]
        return _SEPARATOR.join(figure for figure in figures if figure)
    stopped = sum(one.state is DownloadState.FAILED for one in downloads)
    if stopped:
        return ngettext("{count} download stopped", "{count} downloads stopped", stopped).format(count=stopped)
    paused = sum(one.state is DownloadState.PAUSED for one in downloads)
    if paused:
        return ngettext("{count} download paused", "{count} downloads paused", paused).format(count=paused)
    unfinished = sum(one.is_leftover for one in downloads)
    if unfinished:
        words = ngettext("{count} unfinished download", "{count} unfinished downloads", unfinished)
        return words.format(count=unfinished)
    return _("Downloads") if downloads else ""


def strip_fraction(downloads: Sequence[Download]) -> float:
    """Return how much of all that is on its way is here, 0 to 1."""
    active = [one for one in downloads if one.state in ACTIVE_STATES]
    total = sum(_total(one) for one in active)
    return min(1.0, sum(one.done_bytes for one in active) / total) if total > 0 else 0.0


def title_text(download: Download) -> str:
    """Return a download's name on one line."""
    return one_line(download.title, 200) or _("A file")


def spoken_text(download: Download, now_s: float) -> str:
    """Return a download as a screen reader says it."""
    words = [title_text(download), state_text(download, now_s)]
    if download.words is not None:
        words += [download.words.message, download.words.hint]
    return " ".join(word if word.endswith((".", "…")) else f"{word}." for word in words if word)


def _waits(download: Download, now_s: float) -> str:
    if download.retry_at is None:
        return _("Waits")
    left = left_text(max(1.0, download.retry_at - now_s))
    return _("Tries again in {time}").format(time=left)


def _total(download: Download) -> int:
    return max(download.total_bytes, download.done_bytes)


def _shorter(figures: Sequence[str]) -> tuple[str, ...]:
    """Return the figures joined, then with one less each time."""
    return tuple(_SEPARATOR.join(figures[:count]) for count in range(len(figures), 0, -1))
