"""Choosing a row of a list from the program's side."""

from __future__ import annotations

from PySide6.QtCore import QItemSelectionModel
from PySide6.QtWidgets import QAbstractItemView


def select_row(view: QAbstractItemView, row: int | None) -> None:
    """Select this row alone and bring it into sight; None selects nothing.

    The selection's signals are sent as always: a caller that must not hear of its own choice says so to itself.
    """
    if row is None:
        view.selectionModel().clear()
        return
    index = view.model().index(row, 0)
    view.selectionModel().setCurrentIndex(index, QItemSelectionModel.SelectionFlag.ClearAndSelect)
    view.scrollTo(index)
