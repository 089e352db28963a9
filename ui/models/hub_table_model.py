"""A repo's quantizations as a table, before anything is downloaded: what each is, whether it fits, how far it is here.

Knows no hub and no queue: it is given rows, fits and downloads.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from PySide6.QtCore import QObject, Qt
from PySide6.QtGui import QFont

from app.downloads.types import Download, DownloadState
from app.errors import one_line
from app.hub.published import Published
from app.hub.recommend import Recommendation
from app.hub.types import QuantizationRow
from app.i18n import _, ngettext
from app.models.fit_types import Fit
from app.units import count_text
from ui.models.download_words import Button, cell_texts, fraction, main_button
from ui.models.grouped_table_model import (
    ACTION_ROLE,
    IS_RECOMMENDED_ROLE,
    MARK_ROLE,
    NOTE_ROLE,
    GroupedTableModel,
    alignment,
)
from ui.models.hub_columns import (
    ACTION,
    BITS,
    COLUMNS,
    HERE,
    KL,
    QUANTIZATION,
    SPEED,
    WORDS,
    Facts,
    colour_role,
    figure_tooltip,
    is_foreign,
    row_group,
)
from ui.models.hub_words import row_meaning
from ui.theme import Theme
from ui.widgets.labels import plain_tooltip

_FALLBACK_SIGN: Final = "*"


@dataclass(frozen=True, slots=True)
class HubAction:
    """What stands in the last cell of a row.

    Attributes:
        kind: "download", "use", a Button's value, or "" for words alone.
        label: on the button; "" for none.
        texts: beside it, the longest first.
        part: how much is here, 0 to 1; None for no bar.
        is_quiet: whether nothing moves.
    """

    kind: str
    label: str
    texts: tuple[str, ...] = ()
    part: float | None = None
    is_quiet: bool = False

    def words(self) -> str:
        """Return what stands on the button."""
        return self.label

    @property
    def can_press(self) -> bool:
        """Whether there is a button."""
        return bool(self.label)


def row_action(row: QuantizationRow, download: Download | None, is_here: bool, now_s: float) -> HubAction:
    """Return what can be done with a row now."""
    if is_here:
        return HubAction("use", Button.USE.words(), (_("on this machine"), ""))
    if row.is_broken:
        return HubAction("", "")
    if download is None or download.state is DownloadState.CANCELLED:
        return HubAction("download", _("Download"))
    button = main_button(download)
    kind, label = (button.value, button.words()) if button is not None else ("", "")
    if download.state is DownloadState.DONE:
        return HubAction(kind, label, (_("on this machine"), ""))
    is_quiet = download.state not in (DownloadState.RUNNING, DownloadState.VERIFYING)
    return HubAction(kind, label, cell_texts(download, now_s), fraction(download), is_quiet)


class HubTableModel(GroupedTableModel):
    """The rows of one repo under their headings.

    Attributes:
        _facts: by key.
        _downloads: by the row's key.
        _here: the keys of the rows that are on this machine.
        _chosen: what is recommended, and why.
    """

    def __init__(self, theme: Theme, now: Callable[[], float], parent: QObject | None = None) -> None:
        super().__init__(COLUMNS, theme, parent)
        self._now = now
        self._facts: dict[str, Facts] = {}
        self._downloads: Mapping[str, Download] = {}
        self._here: frozenset[str] = frozenset()
        self._chosen = Recommendation("", "")

    # ------------------------------------------------------------------------------------- setters

    def set_rows(
        self, rows: Sequence[QuantizationRow], fits: Mapping[str, Fit], figures: Mapping[str, Published]
    ) -> None:
        """Show exactly these rows, the smallest first; rows that only know more now keep their places."""
        ordered = sorted(rows, key=lambda row: (row.size_bytes, row.key))
        facts = {row.key: Facts(row, fits.get(row.key), figures.get(row.key)) for row in ordered}
        before = [(row_group(one.row), key) for key, one in self._facts.items()]
        after = [(row_group(one.row), key) for key, one in facts.items()]
        changed = [key for key, one in facts.items() if self._facts.get(key) != one]
        self._facts = facts
        if before != after:
            self._show_rows(after)
            return
        for key in changed:
            self._tell_row(key)

    def set_downloads(self, downloads: Mapping[str, Download]) -> None:
        """Show how far these are, by the row's key; only rows that differ are drawn again."""
        before, self._downloads = self._downloads, dict(downloads)
        for key in {*before, *downloads}:
            if before.get(key) != downloads.get(key):
                self._tell_action(key)

    def set_here(self, keys: frozenset[str]) -> None:
        """Say which rows are on this machine."""
        changed, self._here = self._here ^ keys, keys
        for key in changed:
            self._tell_action(key)

    def set_recommended(self, chosen: Recommendation) -> None:
        """Mark the row that is recommended."""
        before, self._chosen = self._chosen, chosen
        for key in {before.key, chosen.key} - {""}:
            self._tell_row(key)

    def tell_times(self) -> None:
        """Draw the rows again that wait for a time."""
        for key, download in self._downloads.items():
            if download.retry_at is not None:
                self._tell_action(key)

    # ------------------------------------------------------------------------------------- getters

    @property
    def has_figures(self) -> bool:
        """Whether anything was published about any row."""
        return any(one.published is not None for one in self._facts.values())

    def row(self, key: str) -> QuantizationRow | None:
        """Return the row of a key, or None."""
        facts = self._facts.get(key)
        return facts.row if facts is not None else None

    def fit(self, key: str) -> Fit | None:
        """Return whether a row fits; None while that is not known."""
        facts = self._facts.get(key)
        return facts.fit if facts is not None else None

    def download(self, key: str) -> Download | None:
        """Return the download of a row, or None."""
        return self._downloads.get(key)

    def is_here(self, key: str) -> bool:
        """Return whether a row is on this machine."""
        return key in self._here

    def action_of_key(self, key: str) -> HubAction:
        """Return what can be done with a row."""
        facts = self._facts.get(key)
        if facts is None:
            return HubAction("", "")
        return row_action(facts.row, self._downloads.get(key), key in self._here, self._now())

    def cell_data(self, key: str, column: int, role: int) -> Any:
        """Return what a cell shows for a role."""
        facts = self._facts[key]
        if role == Qt.ItemDataRole.DisplayRole:
            return COLUMNS[column].text(facts)
        if role == Qt.ItemDataRole.AccessibleTextRole:
            return self._spoken(key, facts, column)
        if role == Qt.ItemDataRole.TextAlignmentRole:
            return alignment(COLUMNS[column])
        if role == Qt.ItemDataRole.ToolTipRole:
            return plain_tooltip(self._tooltip(key, facts, column)) or None
        if role == Qt.ItemDataRole.ForegroundRole:
            return self.theme.color(colour_role(facts, column))
        if role == Qt.ItemDataRole.FontRole and is_foreign(facts, column):
            font = QFont()
            font.setItalic(True)
            return font
        if role == MARK_ROLE and column == QUANTIZATION:
            return self._mark(key, facts)
        if role == IS_RECOMMENDED_ROLE:
            return key == self._chosen.key
        if role == ACTION_ROLE:
            return self.action_of_key(key)
        if role == NOTE_ROLE and column == BITS:
            return _FALLBACK_SIGN if facts.row.fallback else ""
        return None

    # ------------------------------------------------------------------------------------- helpers

    def _tell_action(self, key: str) -> None:
        row = self.row_of(key)
        if row is not None:
            index = self.index(row, ACTION)
            self.dataChanged.emit(index, index)

    def _mark(self, key: str, facts: Facts) -> str:
        if key == self._chosen.key:
            return _("recommended")
        count = len(facts.row.files)
        is_set = count > 1 and facts.row.format == "gguf"
        return ngettext("{count} file", "{count} files", count).format(count=count_text(count)) if is_set else ""

    def _spoken(self, key: str, facts: Facts, column: int) -> str:
        """Return a cell as a screen reader says it: with what sighted readers see in the heading and the type."""
        text = COLUMNS[column].text(facts)
        if column == QUANTIZATION:
            return " ".join(filter(None, (text, self._mark(key, facts))))
        if column == ACTION:
            action = self.action_of_key(key)
            return ", ".join(filter(None, (action.texts[0] if action.texts else "", action.label)))
        if column == KL and facts.published is not None:
            return _("KL {value}, published").format(value=text)
        if column == SPEED and is_foreign(facts, column):
            return _("{speed} tokens/s, predicted").format(speed=text)
        return f"{text} {COLUMNS[column].title()}" if column in (BITS, SPEED, KL) else text

    def _tooltip(self, key: str, facts: Facts, column: int) -> str:
        row = facts.row
        if row.fault and column in (HERE, ACTION, QUANTIZATION):
            return one_line(row.fault)
        if column == QUANTIZATION and key == self._chosen.key:
            return self._chosen.reason
        if column in (QUANTIZATION, WORDS):
            told = row_meaning(row)
            return told.sentence if told is not None else ""
        if column == KL:
            return facts.published.source if facts.published is not None else ""
        if column == ACTION:
            download = self._downloads.get(key)
            words = download.words if download is not None else None
            return f"{words.message} {words.hint}".strip() if words is not None else ""
        return figure_tooltip(facts, column)
