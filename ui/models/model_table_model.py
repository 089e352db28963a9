"""The quantizations of one model as a table in human groups: what each means, whether it fits, what it is worth.

Knows no library and no machine: it is given the entries and whether they fit. A figure of ours is upright, a
predicted one italic and muted (design.md, "figures shown").
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from PySide6.QtCore import QObject, Qt
from PySide6.QtGui import QFont

from app.i18n import _, ngettext
from app.models.entry import ModelEntry
from app.models.fit_types import Fit, Verdict
from app.models.fit_words import confirmation_words, fit_sentence, fit_short
from app.units import bytes_text, number_text
from ui.models.grouped_table_model import (
    ACTION_ROLE,
    IS_RECOMMENDED_ROLE,
    MARK_ROLE,
    NOTE_ROLE,
    Group,
    GroupedTableModel,
    alignment,
)
from ui.models.model_words import entry_meaning, origin_text, quantization_text
from ui.theme import Theme
from ui.widgets.labels import plain_tooltip

_NOT_KNOWN: Final = "–"
_FALLBACK_SIGN: Final = "*"


class Action(enum.Enum):
    """What the button of a row does."""

    USE = "use"
    LOADED = "loaded"  # nothing: it is in use
    ANYWAY = "anyway"  # loads after one confirmation
    NONE = "none"  # it cannot be used

    def words(self) -> str:
        """Return what stands on the button."""
        words = {Action.USE: _("Use"), Action.LOADED: _("Loaded"), Action.ANYWAY: _("Load anyway…"), Action.NONE: ""}
        return words[self]

    @property
    def can_press(self) -> bool:
        """Whether it is a button at all."""
        return self in (Action.USE, Action.ANYWAY)


@dataclass(frozen=True, slots=True)
class Column:
    """One column.

    Attributes:
        title: its heading.
        text: what it shows.
        about: how its figures were got.
        is_number: whether it stands at the right.
        rank: the columns of the highest rank go first where there is no room; 0 stays.
        has_notes: whether its cells may have a sign beside them.
    """

    title: Callable[[], str]
    text: Callable[[ModelEntry, Fit | None], str]
    about: Callable[[], str]
    is_number: bool = False
    rank: int = 0
    has_notes: bool = False


def entry_group(entry: ModelEntry) -> Group:
    """Return the heading that an entry stands under."""
    if entry.fault:
        return Group.FAULTY
    told = entry_meaning(entry)
    return Group(told.group) if told is not None else Group.OTHER


def entry_action(entry: ModelEntry, fit: Fit | None, is_loaded: bool) -> Action:
    """Return what can be done with an entry; what does not fit needs one confirmation, and is never refused."""
    if entry.fault:
        return Action.NONE
    if is_loaded:
        return Action.LOADED
    return Action.ANYWAY if fit is not None and confirmation_words(fit) is not None else Action.USE


def _in_words(entry: ModelEntry, _fit: Fit | None) -> str:
    told = entry_meaning(entry)
    return told.words if told is not None else _NOT_KNOWN


def _bits(entry: ModelEntry, _fit: Fit | None) -> str:
    return number_text(entry.bits_per_weight) if entry.bits_per_weight > 0 else _NOT_KNOWN


def _size(entry: ModelEntry, _fit: Fit | None) -> str:
    return bytes_text(entry.size_bytes) if entry.size_bytes else _NOT_KNOWN


def _here(entry: ModelEntry, fit: Fit | None) -> str:
    if entry.fault:
        return _("cannot be used")
    return fit_short(fit) if fit is not None else _NOT_KNOWN


def _speed(entry: ModelEntry, fit: Fit | None) -> str:
    speed = fit.decode_tokens_per_s if fit is not None and not entry.fault else None
    return number_text(speed) if speed else _NOT_KNOWN


COLUMNS: Final = (
    Column(
        lambda: _("Quantization"),
        lambda entry, _fit: quantization_text(entry),
        lambda: _("How the weights are stored, as the file's header says."),
    ),
    Column(
        lambda: _("in words"),
        _in_words,
        lambda: _("What this quantization does to the answers, as is commonly measured."),
        rank=4,
    ),
    Column(
        lambda: _("bits/weight"),
        _bits,
        lambda: _("Counted from the header: 8 × the bytes of all tensors ÷ the number of weights."),
        is_number=True,
        rank=2,
        has_notes=True,
    ),
    Column(
        lambda: _("size"),
        _size,
        lambda: _("What all files of it take on disk."),
        is_number=True,
        rank=1,
    ),
    Column(
        lambda: _("on this machine"),
        _here,
        lambda: _("The largest context there is room for now: computed from the header, or told by the engine."),
        is_number=True,
    ),
    Column(
        lambda: _("tokens/s"),
        _speed,
        lambda: _("Writing speed. In italics: predicted from this machine's memory bandwidth. Upright: measured here."),
        is_number=True,
        rank=3,
    ),
    Column(
        lambda: _("where"),
        lambda entry, _fit: origin_text(entry),
        lambda: _("Who keeps the file. Files of other programs are used in place and never changed."),
        rank=5,
    ),
    Column(lambda: "", lambda _entry, _fit: "", lambda: ""),
)
QUANTIZATION, WORDS, BITS, SIZE, HERE, SPEED, WHERE, ACTION = range(len(COLUMNS))


class ModelTableModel(GroupedTableModel):
    """The entries of one model under their headings.

    Attributes:
        _entries: by key.
        _recommended_key: the entry that is marked as recommended; "" for none.
    """

    def __init__(self, theme: Theme, parent: QObject | None = None) -> None:
        super().__init__(COLUMNS, theme, parent)
        self._entries: dict[str, ModelEntry] = {}
        self._fits: Mapping[str, Fit] = {}
        self._recommended_key = ""
        self._loaded_key = ""

    def set_entries(self, entries: Sequence[ModelEntry]) -> None:
        """Show exactly these entries, by heading and then by bits per weight."""
        ordered = sorted(entries, key=lambda entry: (entry.bits_per_weight, entry.size_bytes, entry.key))
        self._entries = {entry.key: entry for entry in ordered}
        self._show_rows((entry_group(entry), entry.key) for entry in ordered)

    def set_fits(self, fits: Mapping[str, Fit]) -> None:
        """Take over what fits now."""
        self._fits = fits
        self._tell_all()

    def set_marks(self, recommended_key: str, loaded_key: str) -> None:
        """Mark the entry that is recommended and the one that is loaded; "" for none."""
        if (recommended_key, loaded_key) != (self._recommended_key, self._loaded_key):
            self._recommended_key, self._loaded_key = recommended_key, loaded_key
            self._tell_all()

    def entry_at(self, row: int) -> ModelEntry | None:
        """Return the entry of a row; None for a heading."""
        return self._entries.get(self.key_at(row))

    def action_of(self, row: int) -> Action:
        """Return what the button of a row does."""
        return self.action_of_key(self.key_at(row))

    def action_of_key(self, key: str) -> Action:
        """Return what the button of an entry does."""
        entry = self._entries.get(key)
        if entry is None:
            return Action.NONE
        return entry_action(entry, self._fits.get(key), key == self._loaded_key)

    def cell_data(self, key: str, column: int, role: int) -> Any:
        """Return what a cell shows for a role."""
        return self._entry_data(self._entries[key], column, role)

    # ------------------------------------------------------------------------------------- helpers

    def _entry_data(self, entry: ModelEntry, number: int, role: int) -> Any:
        fit = self._fits.get(entry.key)
        if role == Qt.ItemDataRole.DisplayRole:
            return COLUMNS[number].text(entry, fit)
        if role == Qt.ItemDataRole.AccessibleTextRole:
            return self._spoken(entry, number, fit)
        if role == Qt.ItemDataRole.TextAlignmentRole:
            return alignment(COLUMNS[number])
        if role == Qt.ItemDataRole.ToolTipRole:
            return plain_tooltip(_tooltip(entry, number, fit)) or None
        if role == Qt.ItemDataRole.ForegroundRole:
            return self.theme.color(_colour_role(entry, number, fit))
        if role == Qt.ItemDataRole.FontRole and number == SPEED and _is_predicted(fit):
            font = QFont()
            font.setItalic(True)
            return font
        if role == MARK_ROLE and number == QUANTIZATION:
            return self._mark(entry)
        if role == IS_RECOMMENDED_ROLE:
            return entry.key == self._recommended_key
        if role == ACTION_ROLE:
            return entry_action(entry, fit, entry.key == self._loaded_key)
        if role == NOTE_ROLE and number == BITS:
            return _FALLBACK_SIGN if entry.fallback_tensors else ""
        return None

    def _mark(self, entry: ModelEntry) -> str:
        if entry.key == self._recommended_key:
            return _("recommended")
        return _("loaded") if entry.key == self._loaded_key else ""

    def _spoken(self, entry: ModelEntry, number: int, fit: Fit | None) -> str:
        """Return a cell as a screen reader says it: with the unit that sighted readers see in the heading."""
        text = COLUMNS[number].text(entry, fit)
        if number == QUANTIZATION:
            return " ".join(filter(None, (text, self._mark(entry))))
        if number == ACTION:
            action = entry_action(entry, fit, entry.key == self._loaded_key)
            return f"{action.words()} {quantization_text(entry)}" if action.can_press else action.words()
        if number == SPEED and _is_predicted(fit):
            return _("{speed} tokens/s, predicted").format(speed=text)
        return f"{text} {COLUMNS[number].title()}" if number in (BITS, SPEED) else text


def _is_predicted(fit: Fit | None) -> bool:
    return fit is not None and not fit.is_speed_measured and bool(fit.decode_tokens_per_s)


def _colour_role(entry: ModelEntry, number: int, fit: Fit | None) -> str:
    if entry.fault:
        return "limit" if number == HERE else "muted"
    if number == HERE and fit is not None and fit.verdict is Verdict.TOO_LARGE:
        return "limit"
    is_quiet = number in (WORDS, WHERE) or (number == SPEED and (fit is None or not fit.is_speed_measured))
    return "muted" if is_quiet else "text"


def _tooltip(entry: ModelEntry, number: int, fit: Fit | None) -> str:
    if entry.fault:
        return entry.fault
    told = entry_meaning(entry)
    if number in (QUANTIZATION, WORDS):
        return told.sentence if told is not None else ""
    if number == BITS and entry.fallback_tensors:
        words = ngettext(
            "{count} tensor is stored in a larger type, because its rows are no whole blocks of this one.",
            "{count} tensors are stored in larger types, because their rows are no whole blocks of this one.",
            entry.fallback_tensors,
        )
        return words.format(count=f"{entry.fallback_tensors:,}")
    if number in (HERE, ACTION):
        return fit_sentence(fit) if fit is not None else ""
    if number == SPEED and fit is not None and fit.decode_tokens_per_s:
        return _("Measured here.") if fit.is_speed_measured else _("Predicted from this machine's memory bandwidth.")
    return str(entry.path) if number in (SIZE, WHERE) else ""
