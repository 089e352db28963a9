"""The context meter: how much of what a model can hold at once this chat takes."""

from __future__ import annotations

from typing import Final

from PySide6.QtCore import QRectF, QSize, Qt
from PySide6.QtGui import QPainter, QPaintEvent
from PySide6.QtWidgets import QHBoxLayout, QSizePolicy, QWidget

from app.i18n import _
from ui.theme import Theme
from ui.widgets.labels import MutedLabel

_BAR_WIDTH_PX: Final = 120
_BAR_HEIGHT_PX: Final = 5

# From this share on the bar takes the colour of a limit.
_NEARLY_FULL: Final = 0.95


class _Bar(QWidget):
    """A thin bar, filled from the left.

    Attributes:
        theme: the colours.
        share: how much is filled, 0 to 1.
    """

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.theme = theme
        self.share = 0.0
        self.setSizePolicy(QSizePolicy.Policy.Maximum, QSizePolicy.Policy.Fixed)
        self.setFixedHeight(_BAR_HEIGHT_PX)

    def sizeHint(self) -> QSize:
        """Return the bar's full size."""
        return QSize(_BAR_WIDTH_PX, _BAR_HEIGHT_PX)

    def paintEvent(self, _event: QPaintEvent) -> None:
        """Draw the groove and what is filled."""
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(Qt.PenStyle.NoPen)
        groove, radius = QRectF(self.rect()), self.height() / 2
        painter.setBrush(self.theme.color("grid"))
        painter.drawRoundedRect(groove, radius, radius)
        if self.share > 0:
            groove.setWidth(max(self.height(), groove.width() * self.share))
            painter.setBrush(self.theme.color("limit" if self.share >= _NEARLY_FULL else "kv"))
            painter.drawRoundedRect(groove, radius, radius)


class ContextMeter(QWidget):
    """Words and a thin bar: "435 of 8,192 tokens"; hidden while no model says how much it holds."""

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._words = MutedLabel()
        self._bar = _Bar(theme)
        layout = QHBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(8)
        layout.addWidget(self._words)
        layout.addWidget(self._bar)
        self.setAccessibleName(_("Context"))
        self.set_context(0, 0)

    @property
    def words(self) -> str:
        """What the meter says."""
        return self._words.text()

    def set_theme(self, theme: Theme) -> None:
        """Take over another theme's colours."""
        self._bar.theme = theme
        self._bar.update()

    def set_context(self, used: int, total: int, approximate: bool = False) -> None:
        """Show how full the context is.

        Args:
            used: tokens of the chat and of what is being written.
            total: tokens the loaded model holds; 0 where none is loaded.
            approximate: whether `used` is a guess from the length of the text.
        """
        words = _("about {used} of {total} tokens") if approximate else _("{used} of {total} tokens")
        self._words.setText(words.format(used=f"{used:,}", total=f"{total:,}"))
        self._bar.share = min(1.0, used / total) if total else 0.0
        self._bar.update()
        how = (
            _("Guessed from the length of the text: the model has not counted it yet.")
            if approximate
            else _("Counted by the model's own tokenizer: this chat and what you are writing.")
        )
        self.setToolTip(how)
        self.setAccessibleDescription(self._words.text())
        self.setVisible(total > 0)
