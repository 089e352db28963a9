"""The page of a comparison under way: what is done now, how far all of it is, a line for each run, and Stop.

Knows no runner: it is given what the runner has said so far.
"""

from __future__ import annotations

from typing import Final

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import (
    QFrame,
    QHBoxLayout,
    QLabel,
    QProgressBar,
    QPushButton,
    QSizePolicy,
    QVBoxLayout,
    QWidget,
)

from app.i18n import _
from ui.models.compare_progress import CompareProgress, RunLine
from ui.models.compare_words import candidates_text
from ui.models.model_choice import one_line
from ui.theme import READING_PX, Theme, ui_font
from ui.widgets.icons import icon
from ui.widgets.labels import ElidedLabel, PlainLabel, set_kind
from ui.widgets.wide_page import WidePage
from ui.widgets.wrapped_label import WrappedLabel

_MOST_PX: Final = 860
_ICON_PX: Final = 16
_LABEL_PX: Final = 150
_STEPS: Final = 1000
_SIGNS: Final = {
    "waiting": ("circle-outline", "muted"),
    "active": ("progress-clock", "accent"),
    "done": ("check", "compute"),
    "failed": ("alert-circle-outline", "limit"),
}


class CompareProgressPage(WidePage):
    """A comparison under way.

    Attributes:
        stop_button: ends it; everything measured is kept.

    Signals:
        stop_requested(): a person wants it to end.
    """

    stop_requested = Signal()

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(_MOST_PX, parent)
        self._theme = theme
        self._lines: dict[str, _Line] = {}
        self._title = ElidedLabel(kind="title")
        self._facts = ElidedLabel()
        self.stop_button = QPushButton(_("Stop"))
        self._headline = WrappedLabel()
        self._bar = QProgressBar()
        self._left = PlainLabel(kind="predicted")
        self._runs = QVBoxLayout()
        self._build()
        self.stop_button.clicked.connect(self._on_stop)

    # ------------------------------------------------------------------------------------- public

    def show_progress(self, progress: CompareProgress) -> None:
        """Show how far a comparison is."""
        plan = progress.plan
        self._title.setText(one_line(plan.title))
        self._facts.setText(candidates_text(plan))
        self._headline.setText(progress.headline)
        self._bar.setValue(round(progress.fraction * _STEPS))
        self._left.setText(progress.left_words)
        self._show_lines(progress.lines)

    def set_stopping(self, is_stopping: bool) -> None:
        """Say that the end was asked for, or that another comparison begins."""
        self.stop_button.setEnabled(not is_stopping)

    def line_texts(self) -> list[str]:
        """Return what the lines say, the first run first."""
        return [line.accessibleName() for line in self._lines.values()]

    def set_theme(self, theme: Theme) -> None:
        """Take the colours of a theme."""
        self._theme = theme
        for line in self._lines.values():
            line.set_theme(theme)

    # ------------------------------------------------------------------------------------- build

    def _build(self) -> None:
        self.stop_button.setToolTip(_("End it now. What was measured is kept, and it can go on later."))
        self._title.setSizePolicy(QSizePolicy.Policy.Maximum, QSizePolicy.Policy.Preferred)
        head = QHBoxLayout()
        head.setSpacing(12)
        head.addWidget(self._title)
        head.addWidget(self._facts, 1)
        head.addWidget(self.stop_button)
        self.head.addLayout(head)
        self._headline.setFont(ui_font(READING_PX))
        self._bar.setRange(0, _STEPS)
        self._bar.setTextVisible(False)
        self._bar.setAccessibleName(_("Progress of the comparison"))
        self._left.setAccessibleName(_("Predicted time left"))
        self._left.setToolTip(_("Predicted from what the pieces took so far."))
        now = QVBoxLayout()
        now.setSpacing(8)
        for widget in (self._headline, self._bar, self._left):
            now.addWidget(widget)
        self.column.addLayout(now)
        card = QFrame()
        card.setProperty("kind", "card")
        self._runs.setContentsMargins(16, 8, 16, 8)
        self._runs.setSpacing(0)
        card.setLayout(self._runs)
        self.column.addWidget(card)
        self.column.addWidget(
            WrappedLabel(
                _("You can go on chatting meanwhile: speed is measured only while no answer is written."), "muted"
            )
        )
        self.column.addStretch(1)

    # ------------------------------------------------------------------------------------- helpers

    def _on_stop(self) -> None:
        self.stop_requested.emit()

    def _show_lines(self, lines: list[RunLine]) -> None:
        if list(self._lines) != [line.run_id for line in lines]:
            for old in self._lines.values():
                self._runs.removeWidget(old)
                old.hide()
                old.deleteLater()
            self._lines = {line.run_id: _Line(self._theme) for line in lines}
            for made in self._lines.values():
                self._runs.addWidget(made)
        for line in lines:
            self._lines[line.run_id].show_line(line)


class _Line(QWidget):
    """One run: a sign, its label, what it does."""

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._line: RunLine | None = None
        self._sign = QLabel()
        self._label = ElidedLabel(kind="")
        self._label.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Preferred)
        self._label.setFixedWidth(_LABEL_PX)
        self._words = WrappedLabel(kind="muted")
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 7, 0, 7)
        row.setSpacing(10)
        row.addWidget(self._sign, 0, Qt.AlignmentFlag.AlignTop)
        row.addWidget(self._label, 0, Qt.AlignmentFlag.AlignTop)
        row.addWidget(self._words, 1)

    def show_line(self, line: RunLine) -> None:
        """Show a run; nothing is laid out again where nothing changed."""
        if line == self._line:
            return
        before, self._line = self._line, line
        self._label.setText(line.label)
        self._words.setText(line.words)
        self.setAccessibleName(f"{line.label}: {line.words}")
        if before is None or before.state != line.state:
            set_kind(self._words, {"failed": "error", "waiting": "muted"}.get(line.state, ""))
            self.set_theme(self._theme)

    def set_theme(self, theme: Theme) -> None:
        """Take the colours of a theme."""
        self._theme = theme
        if self._line is not None:
            name, role = _SIGNS[self._line.state]
            self._sign.setPixmap(icon(name, theme, role=role).pixmap(_ICON_PX, _ICON_PX))
