"""What a notice bar shows, as a screen reader would say it."""

from __future__ import annotations

from PySide6.QtWidgets import QFrame, QPushButton

from ui.notifications import NoticeBar


def notice_frames(bar: NoticeBar) -> list[QFrame]:
    """Return the notices that are shown, from top to bottom."""
    frames = [found for found in bar.findChildren(QFrame) if found.property("kind") == "notice"]
    visible = [found for found in frames if found.isVisibleTo(bar) and bar.layout().indexOf(found) >= 0]
    return sorted(visible, key=bar.layout().indexOf)


def shown_notices(bar: NoticeBar) -> list[str]:
    """Return their words."""
    return [frame.accessibleName() for frame in notice_frames(bar)]


def button_of(bar: NoticeBar, words: str) -> QPushButton:
    """Return the button of a notice by its words."""
    found = [b for frame in notice_frames(bar) for b in frame.findChildren(QPushButton) if b.text() == words]
    assert len(found) == 1, f"{len(found)} buttons say {words!r}; shown: {shown_notices(bar)}"
    return found[0]
