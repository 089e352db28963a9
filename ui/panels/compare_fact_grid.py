"""Facts under their titles, in as many columns as there is room for; or one below the other, as a list.

Knows not what they are about.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from PySide6.QtCore import QSize, Qt
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QFormLayout, QGridLayout, QSizePolicy, QVBoxLayout, QWidget

from ui.models.compare_words import Fact
from ui.widgets.labels import MutedLabel, PlainLabel, plain_tooltip
from ui.widgets.wrapped_label import WrappedLabel

_GAP_PX: Final = 20
_MOST_COLUMNS: Final = 6


class CompareFactGrid(QWidget):
    """Figures: a muted title, the value under it.

    Attributes:
        facts: what is shown.
    """

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.facts: tuple[Fact, ...] = ()
        self._cells: list[QWidget] = []
        self._columns = 0
        self._grid = QGridLayout(self)
        self._grid.setContentsMargins(0, 0, 0, 0)
        self._grid.setHorizontalSpacing(_GAP_PX)
        self._grid.setVerticalSpacing(12)
        self.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Preferred)

    def set_facts(self, facts: Sequence[Fact]) -> None:
        """Show exactly these facts."""
        if tuple(facts) == self.facts:
            return
        self.facts = tuple(facts)
        for cell in self._cells:
            self._grid.removeWidget(cell)
            cell.hide()
            cell.deleteLater()
        self._cells = [_cell(fact, self) for fact in facts]
        self._columns = 0
        self._arrange()

    def minimumSizeHint(self) -> QSize:
        """Return a width that fits any column: the facts go below each other."""
        return QSize(0, super().minimumSizeHint().height())

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Use as many columns as fit."""
        super().resizeEvent(event)
        self._arrange()

    def _arrange(self) -> None:
        widest = max((cell.sizeHint().width() for cell in self._cells), default=1)
        columns = max(1, min(_MOST_COLUMNS, (self.width() + _GAP_PX) // (widest + _GAP_PX)))
        if columns == self._columns or not self._cells:
            return
        for column in range(_MOST_COLUMNS):
            self._grid.setColumnStretch(column, 1 if column < columns else 0)
        self._columns = columns
        for number, cell in enumerate(self._cells):
            self._grid.removeWidget(cell)
            self._grid.addWidget(cell, number // columns, number % columns, Qt.AlignmentFlag.AlignTop)
            cell.show()


class CompareFactList(QWidget):
    """Conditions: a muted title at the left, the words at the right, one below the other.

    Attributes:
        facts: what is shown.
    """

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.facts: tuple[Fact, ...] = ()
        self._form = QFormLayout(self)
        self._form.setContentsMargins(0, 0, 0, 0)
        self._form.setHorizontalSpacing(16)
        self._form.setVerticalSpacing(6)
        self._form.setLabelAlignment(Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignTop)
        self._form.setFieldGrowthPolicy(QFormLayout.FieldGrowthPolicy.AllNonFixedFieldsGrow)

    def set_facts(self, facts: Sequence[Fact]) -> None:
        """Show exactly these facts."""
        if tuple(facts) == self.facts:
            return
        self.facts = tuple(facts)
        while self._form.rowCount():
            self._form.removeRow(0)
        for fact in facts:
            value = WrappedLabel(fact.value)
            value.setAccessibleName(f"{fact.title}: {fact.value}")
            value.setToolTip(plain_tooltip(fact.about))
            self._form.addRow(MutedLabel(fact.title), value)


def _cell(fact: Fact, parent: QWidget) -> QWidget:
    cell = QWidget(parent)
    column = QVBoxLayout(cell)
    column.setContentsMargins(0, 0, 0, 0)
    column.setSpacing(1)
    column.addWidget(MutedLabel(fact.title))
    column.addWidget(PlainLabel(fact.value))
    cell.setToolTip(plain_tooltip(fact.about))
    cell.setAccessibleName(f"{fact.title}: {fact.value}")
    cell.setAccessibleDescription(fact.about)
    return cell
