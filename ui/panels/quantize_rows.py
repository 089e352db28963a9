"""The quantizations that can be made of a model: a box to tick in each row, what it would be, the large ones first.

Knows no engine; a row says in words what cannot be ticked, and why.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QGridLayout, QLabel, QWidget

from app.compare.quantize_words import bits_words, fallback_words, meaning_words
from app.compare.quantizing import Planned
from app.i18n import _
from app.models.quantization import group_of, group_title, meaning
from app.units import bytes_text
from ui.theme import Theme
from ui.widgets.labels import CaptionLabel, ElidedLabel, MutedLabel, PlainLabel, plain_tooltip
from ui.widgets.tick_box import TickBox

_COLUMNS: Final = 5
_GAP_PX: Final = 8  # above a group
_RIGHT: Final = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter


class QuantizeRows(QWidget):
    """The rows.

    Attributes:
        boxes: the box of each quantization, by name.

    Signals:
        ticked(): a box was ticked, or is no longer.
    """

    ticked = Signal()

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._planned: tuple[Planned, ...] = ()
        self.boxes: dict[str, TickBox] = {}
        self._grid = QGridLayout(self)
        self._grid.setContentsMargins(0, 0, 8, 0)
        self._grid.setHorizontalSpacing(20)
        self._grid.setVerticalSpacing(4)
        self._grid.setColumnStretch(_COLUMNS - 1, 1)

    @property
    def chosen(self) -> tuple[Planned, ...]:
        """What is ticked, in the order of the rows."""
        return tuple(one for one in self._planned if self.boxes[one.quantization].isChecked())

    def show_planned(self, planned: Sequence[Planned], present: Collection[str] = ()) -> None:
        """Show these; what was ticked stays so.

        Args:
            planned: in any order.
            present: those that are there already.
        """
        before = {name for name, box in self.boxes.items() if box.isChecked()}
        self._clear()
        self._planned = tuple(sorted(planned, key=lambda one: -one.size_bytes))
        if self._planned:
            self._add_head()
        group = ""
        for one in self._planned:
            name = group_title(group_of(one.bits_per_weight)) if one.fault is None else _("Not possible")
            if name != group:
                group = name
                caption = CaptionLabel(group)
                caption.setContentsMargins(0, _GAP_PX, 0, 0)
                self._grid.addWidget(caption, self._grid.rowCount(), 0, 1, _COLUMNS)
            self._add_row(one, is_present=one.quantization in present, is_ticked=one.quantization in before)
        self._grid.setRowStretch(self._grid.rowCount(), 1)
        self.ticked.emit()

    def set_theme(self, theme: Theme) -> None:
        """Take the colours of a theme."""
        self._theme = theme
        for box in self.boxes.values():
            box.set_theme(theme)

    # ------------------------------------------------------------------------------------- helpers

    def _add_head(self) -> None:
        words = (_("Quantization"), _("Size"), _("Per weight"), _("Fell back"), _("What is lost"))
        for column, text in enumerate(words):
            label = MutedLabel(text)
            if column in (1, 2, 3):
                label.setAlignment(_RIGHT)
            self._grid.addWidget(label, 0, column)

    def _add_row(self, one: Planned, *, is_present: bool, is_ticked: bool) -> None:
        row = self._grid.rowCount()
        box = self.boxes[one.quantization] = TickBox(one.quantization, self._theme)
        box.setEnabled(one.fault is None and not is_present)
        box.setChecked(is_ticked and box.isEnabled())
        box.toggled.connect(self._on_toggled)
        self._grid.addWidget(box, row, 0)
        texts = _texts(one, is_present=is_present)
        box.setAccessibleDescription(", ".join(filter(None, texts)))
        box.setToolTip(plain_tooltip(_tip(one)))
        for column, text in enumerate(texts, start=1):
            kind = "" if box.isEnabled() else "muted"
            is_last = column == _COLUMNS - 1
            label = ElidedLabel(text, kind) if is_last else PlainLabel(text, kind)
            if not is_last:
                label.setAlignment(_RIGHT)
            self._grid.addWidget(label, row, column)

    def _on_toggled(self, _is_on: bool) -> None:
        self.ticked.emit()

    def _clear(self) -> None:
        self.boxes = {}
        for widget in self.findChildren(QWidget, options=Qt.FindChildOption.FindDirectChildrenOnly):
            if isinstance(widget, QLabel | TickBox):
                self._grid.removeWidget(widget)
                widget.setParent(None)
                widget.deleteLater()


def _texts(one: Planned, *, is_present: bool) -> tuple[str, str, str, str]:
    """Return size, bits, what fell back and what is lost."""
    if one.fault is not None:
        return "", "", "", one.fault.message
    lost = meaning_words(one.quantization, one.bits_per_weight, one.fallback_tensors)
    if is_present:
        lost = _("{meaning} · there already").format(meaning=lost)
    elif one.needs_importance:
        lost = _("{meaning} · needs an importance matrix").format(meaning=lost)
    fell_back = fallback_words(one.fallback_tensors, one.tensors)
    return bytes_text(one.size_bytes), bits_words(one.bits_per_weight), fell_back or "–", lost


def _tip(one: Planned) -> str:
    if one.fault is not None:
        return one.fault.hint
    return meaning(one.quantization, one.bits_per_weight, one.fallback_tensors).sentence
