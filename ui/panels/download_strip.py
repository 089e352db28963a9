"""The line at the foot of the models' column: how many downloads are on their way, how far and how fast.

Pressing it opens the list of downloads.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from PySide6.QtCore import QRect, QRectF, QSize, Qt
from PySide6.QtGui import QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QAbstractButton, QSizePolicy, QWidget

from app.downloads.types import ACTIVE_STATES, Download, DownloadState
from app.i18n import _
from ui.models.download_words import strip_fraction, strip_text
from ui.panels.download_bar import paint_bar
from ui.theme import MUTED_PX, Theme, ui_font
from ui.widgets.icons import paint_icon

_PAD_PX: Final = 12
_ICON_PX: Final = 16
_BAR_PX: Final = 3
_RADIUS_PX: Final = 8
_FOCUS_PX: Final = 2


class DownloadStrip(QAbstractButton):
    """One line with a thin bar in it; hidden while there is nothing to say. Press it to see the downloads."""

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._words = ""
        self._part = 0.0
        self._is_active = False
        self._is_stopped = False
        self.setFont(ui_font(MUTED_PX))
        self.setCheckable(True)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.setAccessibleName(_("Downloads"))
        self.hide()

    @property
    def words(self) -> str:
        """What the line says."""
        return self._words

    def set_downloads(self, downloads: Sequence[Download]) -> None:
        """Show how far these are; the line is drawn again only where it says something else."""
        words, part = strip_text(downloads), round(strip_fraction(downloads), 3)
        is_active = any(one.state in ACTIVE_STATES for one in downloads)
        is_stopped = not is_active and any(one.state is DownloadState.FAILED for one in downloads)
        if (words, part, is_active, is_stopped) == (self._words, self._part, self._is_active, self._is_stopped):
            return
        self._words, self._part, self._is_active, self._is_stopped = words, part, is_active, is_stopped
        self.setVisible(bool(words))
        self.update()

    def set_theme(self, theme: Theme) -> None:
        """Take the colours of a theme."""
        self._theme = theme
        self.update()

    def sizeHint(self) -> QSize:
        """Return the height of one line with its bar."""
        return QSize(160, max(40, self.fontMetrics().height() + 22))

    def minimumSizeHint(self) -> QSize:
        """Return the same height: the words may be cut."""
        return QSize(40, self.sizeHint().height())

    def paintEvent(self, _event: QPaintEvent) -> None:
        """Draw the words, the bar and the arrow."""
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        theme = self._theme
        outline = QRectF(self.rect()).adjusted(1, 1, -1, -1)
        is_lit = self.isDown() or self.isChecked() or self.underMouse()
        painter.setBrush(theme.color("raised") if is_lit else theme.mix("raised", "surface", 0.5))
        pen = QPen(theme.color("accent" if self.hasFocus() else "border"), _FOCUS_PX if self.hasFocus() else 1)
        painter.setPen(pen)
        painter.drawRoundedRect(outline, _RADIUS_PX, _RADIUS_PX)
        inside = self.rect().adjusted(_PAD_PX, 4, -_PAD_PX, -4 - (_BAR_PX if self._is_active else 0))
        middle = inside.center().y() - _ICON_PX // 2 + 1
        name = "alert-circle-outline" if self._is_stopped else "download"
        sign = QRectF(inside.left(), middle, _ICON_PX, _ICON_PX)
        paint_icon(painter, sign, name, theme.color("limit" if self._is_stopped else "muted"))
        arrow = QRectF(inside.right() - _ICON_PX + 1, middle, _ICON_PX, _ICON_PX)
        paint_icon(painter, arrow, "chevron-right", theme.color("muted"))
        self._paint_words(painter, inside.adjusted(_ICON_PX + 8, 0, -_ICON_PX - 8, 0))
        if self._is_active:
            bar = QRectF(inside.left(), self.height() - 9, inside.width(), _BAR_PX)
            paint_bar(painter, bar, self._part, theme)
        painter.end()

    def _paint_words(self, painter: QPainter, room: QRect) -> None:
        painter.setFont(self.font())
        painter.setPen(self._theme.color("text"))
        shown = self.fontMetrics().elidedText(self._words, Qt.TextElideMode.ElideRight, room.width())
        painter.drawText(room, Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignLeft, shown)
