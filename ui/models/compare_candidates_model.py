"""The quantizations of one model as they are chosen for a comparison: ticked or not, with which KV cache.

Knows no library: it is given the entries, the reference and what fits.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from PySide6.QtCore import QObject, Qt, Signal

from app.i18n import _
from app.models.entry import ModelEntry
from app.models.fit_types import Fit, Verdict
from app.models.fit_words import fit_sentence
from ui.models import model_table_model as library
from ui.models.compare_choice import SMALLER_KV, Candidate
from ui.models.grouped_table_model import ACTION_ROLE, MARK_ROLE, NOTE_ROLE, GroupedTableModel, alignment
from ui.models.model_words import quantization_text
from ui.theme import Theme
from ui.widgets.labels import plain_tooltip

# Whether the box of a row is ticked; None for a row that has no box of its own.
TICK_ROLE: Final = int(Qt.ItemDataRole.UserRole) + 10

COLUMNS: Final = tuple(
    library.COLUMNS[column]
    for column in (library.QUANTIZATION, library.WORDS, library.BITS, library.SIZE, library.HERE, library.ACTION)
)
QUANTIZATION, WORDS, BITS, SIZE, HERE, ACTION = range(len(COLUMNS))


@dataclass(frozen=True, slots=True)
class KvAction:
    """The button of a row: whether the model runs a second time with a smaller KV cache.

    Attributes:
        is_offered: whether its backend can.
        is_on: whether it does.
    """

    is_offered: bool
    is_on: bool

    def words(self) -> str:
        """Return what stands on the button."""
        if not self.is_offered:
            return ""
        return (
            _("KV {type} too ✓").format(type=SMALLER_KV) if self.is_on else _("KV {type} too").format(type=SMALLER_KV)
        )

    @property
    def can_press(self) -> bool:
        """Whether it is a button at all."""
        return self.is_offered


class CandidatesModel(GroupedTableModel):
    """The entries of one model, largest first.

    Attributes:
        _entries: by key.
        _reference: the entry the others are compared with.
        _ticked, _kv: keys of the runs with the exact and with the smaller KV cache.
        _with_kv: keys of the entries whose backend can have the smaller one.

    Signals:
        ticks_changed(): other runs are chosen.
    """

    ticks_changed = Signal()

    def __init__(self, theme: Theme, parent: QObject | None = None) -> None:
        super().__init__(COLUMNS, theme, parent)
        self._entries: dict[str, ModelEntry] = {}
        self._fits: Mapping[str, Fit] = {}
        self._reference = ""
        self._ticked: set[str] = set()
        self._kv: set[str] = set()
        self._with_kv: frozenset[str] = frozenset()

    def set_entries(self, entries: Sequence[ModelEntry], reference_key: str, with_kv: frozenset[str]) -> None:
        """Show exactly these entries, every candidate ticked.

        Args:
            entries: the reference among them.
            reference_key: of the reference.
            with_kv: keys of those that can run with a smaller KV cache too.
        """
        ordered = sorted(entries, key=lambda entry: (-entry.bits_per_weight, -entry.size_bytes, entry.key))
        self._entries = {entry.key: entry for entry in ordered}
        self._reference = reference_key
        self._with_kv = with_kv
        self._ticked = {entry.key for entry in ordered if entry.key != reference_key}
        self._kv &= self._entries.keys()
        self._show_plain_rows(self._entries)
        self.ticks_changed.emit()

    def set_fits(self, fits: Mapping[str, Fit]) -> None:
        """Take over what fits now."""
        self._fits = fits
        self._tell_all()

    @property
    def candidates(self) -> tuple[Candidate, ...]:
        """The chosen runs, largest first, each entry's smaller KV cache behind it."""
        chosen = []
        for key in self._entries:
            if key in self._ticked:
                chosen.append(Candidate(key))
            if key in self._kv:
                chosen.append(Candidate(key, SMALLER_KV))
        return tuple(chosen)

    def toggle(self, key: str) -> None:
        """Tick an entry or take its tick away; the reference has none."""
        if key in self._entries and key != self._reference:
            self._ticked ^= {key}
            self._tell_row(key)
            self.ticks_changed.emit()

    def toggle_kv(self, key: str) -> None:
        """Run an entry with the smaller KV cache too, or no more."""
        if key in self._with_kv:
            self._kv ^= {key}
            self._tell_row(key)
            self.ticks_changed.emit()

    def entry_of(self, key: str) -> ModelEntry | None:
        """Return an entry, or None."""
        return self._entries.get(key)

    def action_of_key(self, key: str) -> KvAction:
        """Return what the button of an entry does."""
        return KvAction(key in self._with_kv, key in self._kv)

    def cell_data(self, key: str, column: int, role: int) -> Any:
        """Return what a cell shows for a role."""
        entry, fit = self._entries[key], self._fits.get(key)
        if role == Qt.ItemDataRole.DisplayRole:
            return COLUMNS[column].text(entry, fit)
        if role == Qt.ItemDataRole.AccessibleTextRole:
            return self._spoken(entry, column, fit)
        if role == Qt.ItemDataRole.TextAlignmentRole:
            return alignment(COLUMNS[column])
        if role == Qt.ItemDataRole.ToolTipRole:
            return plain_tooltip(self._tooltip(column, fit)) or None
        if role == Qt.ItemDataRole.ForegroundRole:
            is_too_large = column == HERE and fit is not None and fit.verdict is Verdict.TOO_LARGE
            return self.theme.color("limit" if is_too_large else "muted" if column == WORDS else "text")
        if role == MARK_ROLE and column == QUANTIZATION:
            return _("reference") if key == self._reference else ""
        if role == NOTE_ROLE and column == BITS:
            return "*" if entry.fallback_tensors else ""
        if role == TICK_ROLE:
            return None if key == self._reference else key in self._ticked
        return self.action_of_key(key) if role == ACTION_ROLE else None

    def _spoken(self, entry: ModelEntry, column: int, fit: Fit | None) -> str:
        if column == ACTION:
            return self.action_of_key(entry.key).words()
        text = COLUMNS[column].text(entry, fit)
        if column != QUANTIZATION:
            return f"{COLUMNS[column].title()}: {text}"
        if entry.key == self._reference:
            return _("{name}, the reference").format(name=quantization_text(entry))
        words = _("{name}, ticked") if entry.key in self._ticked else _("{name}, not ticked")
        return words.format(name=quantization_text(entry))

    def _tooltip(self, column: int, fit: Fit | None) -> str:
        if column == HERE:
            return fit_sentence(fit) if fit is not None else ""
        if column == ACTION:
            return _(
                "Run it a second time with the KV cache in {type}, which takes half the room. Enter does it too."
            ).format(type=SMALLER_KV)
        return _("Space ticks the chosen row.") if column == QUANTIZATION else COLUMNS[column].about()
