"""The models of the library by name, as a list that can be searched: a name and a line of facts each.

Knows no library: it is given the entries, and whether they fit.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from PySide6.QtCore import QAbstractListModel, QModelIndex, QObject, QPersistentModelIndex, Qt

from app.models.entry import ModelEntry
from app.models.fit_types import Fit
from ui.models.model_choice import NamedModel, by_name, matching
from ui.models.model_words import name_mark, second_line
from ui.widgets.labels import plain_tooltip

Index = QModelIndex | QPersistentModelIndex

# What a row says besides its name.
SECOND_ROLE = int(Qt.ItemDataRole.UserRole)
FAULTY_ROLE = SECOND_ROLE + 1
# What stands beside the name.
NAME_MARK_ROLE = SECOND_ROLE + 2


class ModelListModel(QAbstractListModel):
    """The models whose words hold what is searched for.

    Attributes:
        _all: every model, by name.
        _shown: those that the search lets through.
        _fits: by key of the entry.
    """

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._all: list[NamedModel] = []
        self._shown: list[NamedModel] = []
        self._text = ""
        self._fits: Mapping[str, Fit] = {}
        self._loaded_key = ""

    @property
    def is_empty(self) -> bool:
        """Whether there is no model at all, searched for or not."""
        return not self._all

    @property
    def all_models(self) -> Sequence[NamedModel]:
        """Every model, searched for or not."""
        return self._all

    def set_entries(self, entries: Sequence[ModelEntry]) -> None:
        """Show exactly these entries."""
        self.beginResetModel()
        self._all = by_name(entries)
        self._shown = matching(self._all, self._text)
        self.endResetModel()

    def search(self, text: str) -> None:
        """Show the models that hold the words of this text; none shows all."""
        if text == self._text:
            return
        self.beginResetModel()
        self._text = text
        self._shown = matching(self._all, text)
        self.endResetModel()

    def set_fits(self, fits: Mapping[str, Fit]) -> None:
        """Take over what fits now."""
        self._fits = fits
        self._tell_all()

    def set_loaded(self, key: str) -> None:
        """Mark the entry that is loaded; "" for none."""
        self._loaded_key = key
        self._tell_all()

    def model_at(self, row: int) -> NamedModel:
        """Return the model of a row."""
        return self._shown[row]

    def row_of_name(self, name: str) -> int | None:
        """Return the row of a model, or None."""
        return next((row for row, model in enumerate(self._shown) if model.name.casefold() == name.casefold()), None)

    def row_of(self, key: str) -> int | None:
        """Return the row of the model that has this entry, or None."""
        return next((row for row, model in enumerate(self._shown) if any(e.key == key for e in model.entries)), None)

    def rowCount(self, parent: Index = QModelIndex()) -> int:  # noqa: B008 - Qt's own default
        """Return the number of models shown."""
        return 0 if parent.isValid() else len(self._shown)

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        """Return what a row shows for a role."""
        if not index.isValid() or index.row() >= len(self._shown):
            return None
        model = self._shown[index.row()]
        if role == Qt.ItemDataRole.DisplayRole:
            return model.name
        if role == SECOND_ROLE:
            return self._second_line(model)
        if role == NAME_MARK_ROLE:
            return name_mark(model, self._loaded_key)
        if role == FAULTY_ROLE:
            return not model.usable
        if role == Qt.ItemDataRole.AccessibleTextRole:
            words = (model.name, name_mark(model, self._loaded_key), self._second_line(model))
            return ", ".join(filter(None, words))
        if role == Qt.ItemDataRole.ToolTipRole:
            return plain_tooltip(f"{model.name}\n{self._second_line(model)}")
        return None

    def _second_line(self, model: NamedModel) -> str:
        return second_line(model, self._fits, self._loaded_key)

    def _tell_all(self) -> None:
        if self._shown:
            self.dataChanged.emit(self.index(0), self.index(len(self._shown) - 1))
