"""The control for one setting, chosen by the setting's description: a list, a number, a tick or a text.

Knows no setting by name and stores nothing.
"""

from __future__ import annotations

import math
from abc import abstractmethod

from PySide6.QtCore import QEvent, QObject, QRect, QRectF, Qt, QTimer, Signal
from PySide6.QtGui import QFocusEvent, QPainter, QPaintEvent, QPalette, QWheelEvent
from PySide6.QtWidgets import (
    QApplication,
    QCheckBox,
    QComboBox,
    QDoubleSpinBox,
    QLineEdit,
    QPlainTextEdit,
    QSpinBox,
    QStyle,
    QStyleOptionSpinBox,
    QWidget,
)

from app.settings_fields import Setting
from ui.widgets.icons import paint_icon

# How long after the last key a long text counts as entered.
_TYPING_PAUSE_MS = 800
_LONG_TEXT_HEIGHT_PX = 96
_ARROW_PX = 16

# A stylesheet's padding does not reach the text inside a spin box; this lines it up with a list's.
_TEXT_MARGIN_PX = 7

_Step = QStyle.SubControl


class SettingEditor(QObject):
    """A control and the value it holds.

    Attributes:
        name: of the setting.
        widget: the control.

    Signals:
        edited(name, value): a person entered another value; not sent by set_value().
    """

    edited = Signal(str, object)

    def __init__(self, name: str, widget: QWidget) -> None:
        super().__init__(widget)
        self.name = name
        self.widget = widget
        self._is_setting = False

    def set_value(self, value: object) -> None:
        """Show a value; sends nothing."""
        self._is_setting = True
        self._show(value)
        self._is_setting = False

    @abstractmethod
    def _show(self, value: object) -> None:
        """Put the value into the control."""

    def _tell(self, value: object) -> None:
        if not self._is_setting:
            self.edited.emit(self.name, value)


def make_editor(name: str, told: Setting, default: object) -> SettingEditor:
    """Return the control for a setting.

    Args:
        name: of the setting.
        told: its description.
        default: its default; its type decides between the kinds of numbers, and None stands for a whole number that
            can be left out.
    """
    if told.choices is not None:
        return _ChoiceEditor(name, told)
    if isinstance(default, bool):
        return _TickEditor(name)
    if isinstance(default, float):
        return _DecimalEditor(name, told)
    if default is None or isinstance(default, int):
        return _WholeEditor(name, told, is_optional=default is None)
    return _LongTextEditor(name) if told.is_long else _TextEditor(name)


class _ChoiceEditor(SettingEditor):
    def __init__(self, name: str, told: Setting) -> None:
        self._box = _CalmComboBox()
        super().__init__(name, self._box)
        for value, words in (told.choices or dict)().items():
            self._box.addItem(words, value)
        self._box.currentIndexChanged.connect(self._on_changed)

    def _show(self, value: object) -> None:
        if self._box.findData(value) < 0:  # a value from elsewhere is shown, not thrown away
            self._box.addItem(str(value), value)
        self._box.setCurrentIndex(self._box.findData(value))

    def _on_changed(self, index: int) -> None:
        self._tell(self._box.itemData(index))


class _TickEditor(SettingEditor):
    def __init__(self, name: str) -> None:
        self._box = QCheckBox()
        super().__init__(name, self._box)
        self._box.toggled.connect(self._tell)

    def _show(self, value: object) -> None:
        self._box.setChecked(bool(value))


class _WholeEditor(SettingEditor):
    """A whole number; where None is allowed it stands one step below the lowest number."""

    def __init__(self, name: str, told: Setting, is_optional: bool) -> None:
        self._box = _CalmSpinBox()
        super().__init__(name, self._box)
        self._low = math.ceil(told.low)
        self._is_optional = is_optional
        self._box.setRange(self._low - 1 if is_optional else self._low, math.floor(told.high))
        self._box.setSingleStep(round(told.step))
        self._box.setGroupSeparatorShown(told.step > 1)
        self._box.setSpecialValueText(told.empty() if told.empty is not None else "")
        self._box.valueChanged.connect(self._on_changed)

    def _show(self, value: object) -> None:
        self._box.setValue(value if isinstance(value, int) else self._box.minimum())

    def _on_changed(self, value: int) -> None:
        self._tell(None if self._is_optional and value < self._low else value)


class _DecimalEditor(SettingEditor):
    def __init__(self, name: str, told: Setting) -> None:
        self._box = _CalmDoubleSpinBox()
        super().__init__(name, self._box)
        self._box.setDecimals(2)
        self._box.setRange(told.low, told.high)
        self._box.setSingleStep(told.step)
        self._box.valueChanged.connect(self._tell)

    def _show(self, value: object) -> None:
        self._box.setValue(value if isinstance(value, float) else 0.0)


class _TextEditor(SettingEditor):
    def __init__(self, name: str) -> None:
        self._line = QLineEdit()
        super().__init__(name, self._line)
        self._line.editingFinished.connect(self._on_finished)

    def _show(self, value: object) -> None:
        if self._line.text() != value:
            self._line.setText(str(value))

    def _on_finished(self) -> None:
        self._tell(self._line.text())


class _LongTextEditor(SettingEditor):
    """Several lines; they count as entered after a pause, and when the cursor leaves."""

    def __init__(self, name: str) -> None:
        self._text = QPlainTextEdit()
        super().__init__(name, self._text)
        self._text.setProperty("kind", "field")
        self._text.setFixedHeight(_LONG_TEXT_HEIGHT_PX)
        self._text.setTabChangesFocus(True)
        self._text.installEventFilter(self)
        self._text.textChanged.connect(self._on_typed)
        self._pause = QTimer(self)
        self._pause.setSingleShot(True)
        self._pause.setInterval(_TYPING_PAUSE_MS)
        self._pause.timeout.connect(self._on_pause)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Take the text over when the cursor leaves or the screen is left."""
        if event.type() in (QEvent.Type.FocusOut, QEvent.Type.Hide) and self._pause.isActive():
            self._pause.stop()
            self._on_pause()
        return super().eventFilter(watched, event)

    def _show(self, value: object) -> None:
        # while a person types, what they typed stands
        if not self._pause.isActive() and self._text.toPlainText() != value:
            self._text.setPlainText(str(value))

    def _on_typed(self) -> None:
        if not self._is_setting:
            self._pause.start()

    def _on_pause(self) -> None:
        self._tell(self._text.toPlainText())


# ------------------------------------------------------------------------------------------ calm controls
# On a page that scrolls, the wheel over a control must scroll the page unless a person is in the control. A stylesheet
# takes the arrows of the style away, so these draw their own.


class _CalmComboBox(QComboBox):
    def __init__(self) -> None:
        super().__init__()
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)

    def wheelEvent(self, event: QWheelEvent) -> None:
        """Leave the wheel to the page unless the control has the focus."""
        if self.hasFocus():
            super().wheelEvent(event)
        else:
            event.ignore()

    def paintEvent(self, event: QPaintEvent) -> None:
        """Draw the control and its arrow."""
        super().paintEvent(event)
        _paint_arrow(self, "chevron-down", QRect(self.width() - 28, 0, 20, self.height()))


class _CalmSpinBox(QSpinBox):
    def __init__(self) -> None:
        super().__init__()
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setKeyboardTracking(False)  # a number counts when it is entered, not at each digit
        self.lineEdit().setTextMargins(_TEXT_MARGIN_PX, 0, 0, 0)

    def wheelEvent(self, event: QWheelEvent) -> None:
        """Leave the wheel to the page unless the control has the focus."""
        if self.hasFocus():
            super().wheelEvent(event)
        else:
            event.ignore()

    def focusInEvent(self, event: QFocusEvent) -> None:
        """Select what is there, so that a number typed over "Automatic" replaces it."""
        super().focusInEvent(event)
        QTimer.singleShot(0, self, self.selectAll)

    def paintEvent(self, event: QPaintEvent) -> None:
        """Draw the control and its arrows."""
        super().paintEvent(event)
        _paint_step_arrows(self)


class _CalmDoubleSpinBox(QDoubleSpinBox):
    def __init__(self) -> None:
        super().__init__()
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setKeyboardTracking(False)
        self.lineEdit().setTextMargins(_TEXT_MARGIN_PX, 0, 0, 0)

    def wheelEvent(self, event: QWheelEvent) -> None:
        """Leave the wheel to the page unless the control has the focus."""
        if self.hasFocus():
            super().wheelEvent(event)
        else:
            event.ignore()

    def paintEvent(self, event: QPaintEvent) -> None:
        """Draw the control and its arrows."""
        super().paintEvent(event)
        _paint_step_arrows(self)


def _paint_step_arrows(box: QSpinBox | QDoubleSpinBox) -> None:
    option = QStyleOptionSpinBox()
    box.initStyleOption(option)
    for name, control in (("menu-up", _Step.SC_SpinBoxUp), ("menu-down", _Step.SC_SpinBoxDown)):
        rect = box.style().subControlRect(QStyle.ComplexControl.CC_SpinBox, option, control, box)
        _paint_arrow(box, name, rect)


def _paint_arrow(box: QWidget, name: str, around: QRect) -> None:
    color = QApplication.palette().color(QPalette.ColorRole.PlaceholderText)  # the theme's muted
    place = QRect(0, 0, _ARROW_PX, _ARROW_PX)
    place.moveCenter(around.center())
    painter = QPainter(box)
    paint_icon(painter, QRectF(place), name, color)
    painter.end()
