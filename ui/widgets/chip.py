"""The model chip: which model answers, and the way to another one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from PySide6.QtCore import QRect, QSize, Qt, Signal
from PySide6.QtGui import QAction, QActionGroup, QPaintEvent
from PySide6.QtWidgets import (
    QMenu,
    QSizePolicy,
    QStyle,
    QStyleOptionToolButton,
    QStylePainter,
    QToolButton,
    QWidget,
    QWidgetAction,
)

from app.i18n import _
from ui.theme import Theme
from ui.widgets.icons import paint_icon
from ui.widgets.labels import CaptionLabel, plain_tooltip, plain_words

_PAD_PX: Final = 16
_GAP_PX: Final = 8
_ARROW_PX: Final = 16
_MIN_WIDTH_PX: Final = 96
_HEADING_PX: Final = 26  # where the words of the items begin
_ENTRY, _BACKEND = "entry", "backend"  # what an item of the menu stands for


@dataclass(frozen=True, slots=True)
class BackendChoice:
    """A backend in the menu.

    Attributes:
        name: of the registry.
        label: what is shown.
        is_possible: whether it can be chosen.
    """

    name: str
    label: str
    is_possible: bool = True


class ModelChip(QToolButton):
    """A rounded button with the model's name, shortened where it is narrow, and a menu.

    The menu offers the backends that can load the present model, then the other models.

    Signals:
        chosen(str): key of the entry that was picked.
        backend_chosen(str): name of the backend that was picked.
    """

    chosen = Signal(str)
    backend_chosen = Signal(str)

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._words = ""
        self._menu = QMenu(self)
        self._menu.setAccessibleName(_("Engine and model"))
        self._group: QActionGroup | None = None
        self._choices: tuple[BackendChoice, ...] = ()
        self._backend = ""
        self._entries: tuple[tuple[str, str], ...] = ()
        self._current = ""
        self._menu.triggered.connect(self._on_triggered)
        self.setObjectName("model_chip")
        self.setMenu(self._menu)
        self.setPopupMode(QToolButton.ToolButtonPopupMode.InstantPopup)
        self.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextOnly)
        self.setSizePolicy(QSizePolicy.Policy.Maximum, QSizePolicy.Policy.Fixed)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setAccessibleName(_("Model"))
        self.set_text(_("No model"))

    @property
    def words(self) -> str:
        """The whole text, shortened or not."""
        return self._words

    def set_theme(self, theme: Theme) -> None:
        """Take over another theme's colours."""
        self._theme = theme
        self.update()

    def set_text(self, text: str) -> None:
        """Show which model answers, such as "SmolLM2-135M · Q4_1 · llama.cpp · CPU"."""
        self._words = " ".join(text.split())
        tip = _("Model: {name}. Click to choose another model or engine.")
        self.setToolTip(plain_tooltip(tip.format(name=self._words)))
        self.setAccessibleDescription(self._words)
        self.updateGeometry()
        self.update()

    def set_entries(self, entries: Sequence[tuple[str, str]], current: str = "") -> None:
        """Offer these models in the menu.

        Args:
            entries: key and label of each.
            current: key of the one in use; it is marked.
        """
        self._entries, self._current = tuple(entries), current
        self._fill()

    def set_backends(self, choices: Sequence[BackendChoice], current: str = "") -> None:
        """Offer these backends for the present model.

        Args:
            choices: the preferred one first; none where there is no model.
            current: name of the one in use; it is marked.
        """
        self._choices, self._backend = tuple(choices), current
        self._fill()

    def mark_backend(self, current: str) -> None:
        """Mark the backend that is in use now."""
        if current != self._backend:
            self._backend = current
            self._fill()

    def sizeHint(self) -> QSize:
        """Return the size of the whole text."""
        width = self.fontMetrics().horizontalAdvance(self._words) + 2 + 2 * _PAD_PX + _GAP_PX + _ARROW_PX
        return QSize(max(_MIN_WIDTH_PX, width), super().sizeHint().height())

    def minimumSizeHint(self) -> QSize:
        """Return a size that still shows the beginning of the name."""
        return QSize(_MIN_WIDTH_PX, super().sizeHint().height())

    def shown_text(self) -> str:
        """Return the text as it fits."""
        room = self.width() - 2 * _PAD_PX - _GAP_PX - _ARROW_PX
        return self.fontMetrics().elidedText(self._words, Qt.TextElideMode.ElideMiddle, room)

    def paintEvent(self, _event: QPaintEvent) -> None:
        """Draw the button, its text as it is and an arrow."""
        option = QStyleOptionToolButton()
        self.initStyleOption(option)
        option.text = ""
        painter = QStylePainter(self)
        painter.drawComplexControl(QStyle.ComplexControl.CC_ToolButton, option)
        color = self._theme.color("text" if self.isEnabled() else "muted")
        painter.setPen(color)
        inner = self.rect().adjusted(_PAD_PX, 0, -_PAD_PX - _ARROW_PX - _GAP_PX, 0)
        flags = Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignLeft | Qt.TextFlag.TextSingleLine
        painter.drawText(inner, flags, self.shown_text())
        arrow = QRect(self.width() - _PAD_PX - _ARROW_PX + 4, (self.height() - _ARROW_PX) // 2, _ARROW_PX, _ARROW_PX)
        paint_icon(painter, arrow.toRectF(), "chevron-down", self._theme.color("muted"))

    def _fill(self) -> None:
        """Make the menu anew: the backends, where there is a choice or something to know, then the models."""
        self._menu.clear()
        if self._group is not None:
            self._group.deleteLater()
        self._group = group = QActionGroup(self._menu)
        if self._choices:
            self._add_heading(_("Engine for this model"))
        for choice in self._choices:
            action = self._add_item(choice.label, (_BACKEND, choice.name), choice.name == self._backend)
            action.setCheckable(True)
            action.setChecked(choice.name == self._backend)
            action.setEnabled(choice.is_possible)
            group.addAction(action)
        if self._choices and self._entries:
            self._menu.addSeparator()
            self._add_heading(_("Models"))
        for key, label in self._entries:
            self._add_item(label, (_ENTRY, key), key == self._current)

    def _add_heading(self, words: str) -> None:
        heading = QWidgetAction(self._menu)
        heading.setText(words)
        label = CaptionLabel(words)
        label.setContentsMargins(_HEADING_PX, 6, _HEADING_PX, 2)
        heading.setDefaultWidget(label)
        heading.setEnabled(False)  # the arrow keys pass over it
        self._menu.addAction(heading)

    def _add_item(self, label: str, data: tuple[str, str], is_current: bool) -> QAction:
        action = self._menu.addAction(plain_words(label))
        action.setData(data)
        action.setCheckable(is_current)
        action.setChecked(is_current)
        return action

    def model_actions(self) -> list[QAction]:
        """Return the menu's items that stand for a model."""
        return [action for action in self._menu.actions() if (action.data() or ("",))[0] == _ENTRY]

    def _on_triggered(self, action: QAction) -> None:
        kind, value = action.data()
        if kind == _ENTRY:
            self.chosen.emit(value)
        elif value != self._backend:
            self.backend_chosen.emit(value)
