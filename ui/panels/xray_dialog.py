"""The window of an X-ray: which quantization reads the answer, how far it is, and what it found.

Stays open beside the chat. Knows no library and no engine: it is told what there is, and every wish is a signal.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from PySide6.QtCore import Qt, Signal, Slot
from PySide6.QtGui import QCloseEvent, QKeyEvent
from PySide6.QtWidgets import (
    QDialog,
    QHBoxLayout,
    QListWidget,
    QListWidgetItem,
    QProgressBar,
    QPushButton,
    QStackedWidget,
    QVBoxLayout,
    QWidget,
)

from app.compare.xray_types import Xray, XrayProgress
from app.errors import Words
from app.i18n import _
from ui.models.model_list_model import SECOND_ROLE
from ui.panels.list_row_delegate import ListRowDelegate
from ui.panels.model_confirm import Answer, ConfirmBar
from ui.panels.xray_view import XrayView
from ui.theme import Theme
from ui.widgets.labels import PlainLabel
from ui.widgets.wrapped_label import WrappedLabel

_SMALL: Final = (560, 460)
_LARGE: Final = (1040, 700)
_STEPS: Final = 1000
_LIST_PAD_PX: Final = 8
_ANYWAY: Final = "anyway"
_KEY_ROLE: Final = Qt.ItemDataRole.UserRole + 40


@dataclass(frozen=True, slots=True)
class XrayChoice:
    """A quantization that may read the answer.

    Attributes:
        key: of the library.
        name: for people, such as "Q4_0".
        facts: a line about it: size and whether it fits.
    """

    key: str
    name: str
    facts: str


class XrayDialog(QDialog):
    """The window.

    Attributes:
        choices: the list of quantizations.
        question: what must be agreed to before one is loaded.
        view: what was found.

    Signals:
        chosen(key): a person chose a quantization.
        agreed(key): a person agreed to what was asked about it.
        stop_requested(): what is under way is not wanted any more.
        closed(): the window is gone.
        choice_requested(): a person wants to choose another one.
    """

    chosen = Signal(str)
    agreed = Signal(str)
    stop_requested = Signal()
    closed = Signal()
    choice_requested = Signal()

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setWindowTitle(_("X-ray of an answer"))
        self._about = WrappedLabel(kind="muted")
        self.choices = QListWidget()
        self._delegate = ListRowDelegate(theme, self.choices)
        self.question = ConfirmBar()
        self.begin_button = QPushButton(_("X-ray"))
        self._nothing = WrappedLabel()
        self._step = PlainLabel()
        self._bar = QProgressBar()
        self.cancel_button = QPushButton(_("Cancel"))
        self._failure, self._hint = WrappedLabel(), WrappedLabel(kind="muted")
        self.retry_button = QPushButton(_("Another quantization…"))
        self.view = XrayView(theme)
        self._pages = QStackedWidget()
        self._choice_page, self._progress_page, self._failure_page = QWidget(), QWidget(), QWidget()
        self._build()
        self._connect()
        self.resize(*_SMALL)

    # ----------------------------------------------------------------------------------------- public

    @property
    def key(self) -> str:
        """The quantization that is chosen in the list; "" for none."""
        item = self.choices.currentItem()
        return str(item.data(_KEY_ROLE)) if item is not None else ""

    @property
    def failure_text(self) -> str:
        """What went wrong, as it stands on the page for it; "" while that page is not shown."""
        is_shown = self._pages.currentWidget() is self._failure_page
        return f"{self._failure.accessibleName()} {self._hint.accessibleName()}" if is_shown else ""

    @property
    def step_text(self) -> str:
        """What is being done; "" while nothing is."""
        return self._step.text() if self._pages.currentWidget() is self._progress_page else ""

    @property
    def is_showing(self) -> bool:
        """Whether a finished X-ray is shown."""
        return self._pages.currentWidget() is self.view

    def show_choices(self, about: str, choices: Sequence[XrayChoice], nothing: str = "") -> None:
        """Offer these quantizations.

        Args:
            about: what is read, in a sentence.
            choices: in the order in which they are offered.
            nothing: what is said where there is none.
        """
        key = self.key
        self._about.setText(about)
        self.choices.clear()
        for choice in choices:
            item = QListWidgetItem(choice.name, self.choices)
            item.setData(_KEY_ROLE, choice.key)
            item.setData(SECOND_ROLE, choice.facts)
            item.setData(Qt.ItemDataRole.AccessibleTextRole, f"{choice.name}, {choice.facts}")
        rows = sum(self.choices.sizeHintForRow(row) for row in range(len(choices)))
        self.choices.setMaximumHeight(rows + 2 * self.choices.frameWidth() + _LIST_PAD_PX)
        keys = [choice.key for choice in choices]
        self.choices.setCurrentRow(keys.index(key) if key in keys else 0 if keys else -1)
        self._nothing.setText(nothing)
        self._nothing.setVisible(not choices)
        self.choices.setVisible(bool(choices))
        self.begin_button.setEnabled(bool(choices))
        self.question.close_question()
        self._pages.setCurrentWidget(self._choice_page)
        self.choices.setFocus()

    def ask(self, words: Words) -> None:
        """Ask what must be agreed to before the chosen one is loaded."""
        self._pages.setCurrentWidget(self._choice_page)
        self.question.ask(words.message, words.hint, [Answer(_ANYWAY, _("Load anyway"))])

    def show_progress(self, progress: XrayProgress) -> None:
        """Say what is being done."""
        if self._pages.currentWidget() is not self._progress_page:
            self._pages.setCurrentWidget(self._progress_page)
            self.cancel_button.setFocus()
        self._step.setText(progress.words)
        self._bar.setRange(0, 0 if progress.share is None else _STEPS)
        if progress.share is not None:
            self._bar.setValue(round(progress.share * _STEPS))

    def show_failure(self, words: Words) -> None:
        """Say why there is nothing to show."""
        self._failure.setText(words.message)
        self._hint.setText(words.hint)
        self._hint.setVisible(bool(words.hint))
        self._pages.setCurrentWidget(self._failure_page)
        self.retry_button.setFocus()

    def show_xray(self, xray: Xray) -> None:
        """Show what was found, in a window that is large enough for it."""
        if self.width() < _LARGE[0] and not self.isMaximized():
            self.resize(*_LARGE)
        self._pages.setCurrentWidget(self.view)
        self.view.show_xray(xray)

    def set_theme(self, theme: Theme) -> None:
        """Take over another theme's colours."""
        self._delegate.theme = theme
        self.choices.viewport().update()
        self.view.set_theme(theme)

    def closeEvent(self, event: QCloseEvent) -> None:
        """Tell that what is under way may end."""
        self.closed.emit()
        super().closeEvent(event)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Esc closes the window, and so ends what is under way."""
        if event.key() == Qt.Key.Key_Escape:
            self.close()
        else:
            super().keyPressEvent(event)

    # ------------------------------------------------------------------------------------------ build

    def _build(self) -> None:
        self.choices.setItemDelegate(self._delegate)
        self.choices.setAccessibleName(_("Quantizations of this model"))
        self.choices.setMouseTracking(True)
        self.begin_button.setProperty("kind", "primary")
        for button in (self.begin_button, self.cancel_button, self.retry_button):
            button.setAutoDefault(False)
        self._bar.setAccessibleName(_("Progress"))
        self._bar.setTextVisible(False)
        column = QVBoxLayout(self._choice_page)
        for part in (PlainLabel(_("Read this answer with another quantization"), "title"), self._about):
            column.addWidget(part)
        column.addWidget(self.choices, 8)
        column.addWidget(self._nothing)
        column.addStretch(1)
        column.addWidget(self.question)
        column.addLayout(_at_right(self.begin_button))
        column = QVBoxLayout(self._progress_page)
        column.addStretch(1)
        column.addWidget(self._step)
        column.addWidget(self._bar)
        column.addLayout(_at_right(self.cancel_button))
        column.addStretch(2)
        column = QVBoxLayout(self._failure_page)
        column.addStretch(1)
        column.addWidget(self._failure)
        column.addWidget(self._hint)
        column.addLayout(_at_right(self.retry_button))
        column.addStretch(2)
        for page in (self._choice_page, self._progress_page, self._failure_page):
            inner = page.layout()
            assert inner is not None
            inner.setContentsMargins(0, 0, 0, 0)
            inner.setSpacing(12)
            self._pages.addWidget(page)
        self._pages.addWidget(self.view)
        whole = QVBoxLayout(self)
        whole.setContentsMargins(20, 20, 20, 20)
        whole.addWidget(self._pages)

    def _connect(self) -> None:
        self.begin_button.clicked.connect(self._on_begin)
        self.choices.itemActivated.connect(self._on_begin)
        self.choices.currentRowChanged.connect(self.question.close_question)
        self.question.answered.connect(self._on_answered)
        self.question.left.connect(self.choices.setFocus)
        self.cancel_button.clicked.connect(self.stop_requested)
        self.retry_button.clicked.connect(self.choice_requested)
        self.view.again_requested.connect(self.choice_requested)
        self.view.close_requested.connect(self.close)

    # ------------------------------------------------------------------------------------------ slots

    @Slot()
    def _on_begin(self) -> None:
        if self.key:
            self.question.close_question()
            self.chosen.emit(self.key)

    @Slot(str)
    def _on_answered(self, answer: str) -> None:
        if answer == _ANYWAY and self.key:
            self.agreed.emit(self.key)


def _at_right(button: QPushButton) -> QHBoxLayout:
    row = QHBoxLayout()
    row.addStretch(1)
    row.addWidget(button)
    return row
