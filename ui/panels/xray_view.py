"""What an X-ray found: the answer token by token, and what both models found likely at the token that is pointed at.

Shows an app.compare.xray_types.Xray and knows no engine. Its table twin holds the same figures.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from PySide6.QtCore import Qt, Signal, Slot
from PySide6.QtWidgets import (
    QAbstractItemView,
    QFrame,
    QHBoxLayout,
    QHeaderView,
    QPushButton,
    QStackedWidget,
    QTableView,
    QVBoxLayout,
    QWidget,
)

from app.compare.xray_table import xray_table
from app.compare.xray_types import Reading, Xray, XrayToken, visible
from app.i18n import _
from app.telemetry.export import Table
from app.units import count_text, seconds_text
from ui.plots.table_twin import TableTwinModel, ask_for_file, export_table
from ui.theme import Theme
from ui.widgets.chance_bars import Bar, ChanceBars
from ui.widgets.labels import CaptionLabel, ElidedLabel, MutedLabel
from ui.widgets.token_text import Mark, ShownToken, TokenText
from ui.widgets.wrapped_label import WrappedLabel

_SIDE_PX: Final = 316
_NO_ROWS: Final = Table("xray", "", ())


class XrayTableModel(TableTwinModel):
    """The table of an X-ray; titles stand on the side of their cells."""

    def headerData(self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        """Return a column's name, or where it stands."""
        if role == Qt.ItemDataRole.TextAlignmentRole and orientation is Qt.Orientation.Horizontal:
            is_text = isinstance(self.table.columns[section].values, tuple)
            side = Qt.AlignmentFlag.AlignLeft if is_text else Qt.AlignmentFlag.AlignRight
            return int(side | Qt.AlignmentFlag.AlignVCenter)
        return super().headerData(section, orientation, role)


class XrayView(QWidget):
    """The view.

    Attributes:
        text: the answer.
        table: its table twin.
        xray: what is shown; None before anything is.

    Signals:
        again_requested(): a person wants to choose another quantization.
        close_requested(): a person has seen enough.
    """

    again_requested = Signal()
    close_requested = Signal()

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.xray: Xray | None = None
        self._sentence = WrappedLabel(kind="title")
        self._chance = WrappedLabel()
        self._notes = WrappedLabel(kind="muted")
        self._legend = WrappedLabel(kind="muted")
        self.text = TokenText(theme)
        self.table = QTableView()
        self._model = XrayTableModel(_NO_ROWS, self)
        self._pages = QStackedWidget()
        self._place = ElidedLabel(kind="title")
        self._verdict = MutedLabel()
        self._other_name, self._own_name = CaptionLabel(), CaptionLabel()
        self._other_bars, self._own_bars = ChanceBars(theme), ChanceBars(theme)
        self._status = MutedLabel()
        self.twin_button = QPushButton(_("Show as table"))
        self.csv_button = QPushButton(_("Export CSV…"))
        self.again_button = QPushButton(_("Another quantization…"))
        self.close_button = QPushButton(_("Close"))
        self._build()
        self._connect()

    # ----------------------------------------------------------------------------------------- public

    def show_xray(self, xray: Xray) -> None:
        """Show what was found."""
        self.xray = xray
        self._sentence.setText(xray.sentence)
        for label, words in ((self._chance, xray.chance_sentence), (self._notes, " ".join(xray.notes))):
            label.setText(words)
            label.setVisible(bool(words))
        self._legend.setText(_legend(xray))
        self._other_name.setText(xray.other_label)
        self._own_name.setText(_("{name}, which wrote it").format(name=xray.own_label))
        for part in (self._own_name, self._own_bars):
            part.setVisible(bool(xray.own_label))
        self._other_bars.setAccessibleName(_("Likeliest tokens, {name}").format(name=xray.other_label))
        self._own_bars.setAccessibleName(_("Likeliest tokens, {name}").format(name=xray.own_label))
        told = _("{tokens} tokens read after a prompt of {prompt}, in {time}.")
        self._status.setText(
            told.format(
                tokens=count_text(len(xray.tokens)),
                prompt=count_text(xray.prompt_tokens),
                time=seconds_text(xray.took_s),
            )
        )
        self._model.set_table(xray_table(xray))
        self.text.set_tokens([_shown(token, xray) for token in xray.tokens])
        self._show_text()

    def set_theme(self, theme: Theme) -> None:
        """Take over another theme's colours."""
        for part in (self.text, self._other_bars, self._own_bars):
            part.set_theme(theme)

    def export_to(self, path: Path) -> None:
        """Write the figures to a CSV file and say whether it worked."""
        self._status.setText(export_table(self._model.table, path))

    def status_text(self) -> str:
        """Return the line at the bottom."""
        return self._status.text()

    # ------------------------------------------------------------------------------------------ build

    def _build(self) -> None:
        self.text.setAccessibleName(_("The answer, token by token"))
        self.table.setModel(self._model)
        self.table.setProperty("kind", "framed")
        self.table.setAccessibleName(_("The answer, token by token, as a table"))
        self.table.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
        self.table.setTabKeyNavigation(False)  # Tab leaves the table; arrows move in it
        self.table.setShowGrid(False)
        self.table.verticalHeader().hide()
        header = self.table.horizontalHeader()
        header.setSectionResizeMode(QHeaderView.ResizeMode.ResizeToContents)
        header.setResizeContentsPrecision(50)
        reading = QWidget()
        row = QHBoxLayout(reading)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(16)
        row.addWidget(_framed(self.text), 1)
        row.addWidget(self._build_side())
        self._pages.addWidget(reading)
        self._pages.addWidget(self.table)
        buttons = QHBoxLayout()
        buttons.setSpacing(8)
        buttons.addWidget(self._status, 1)
        for button in (self.twin_button, self.csv_button, self.again_button, self.close_button):
            button.setAutoDefault(False)
            buttons.addWidget(button)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(6)
        for part in (self._sentence, self._chance, self._notes, self._legend):
            column.addWidget(part)
        column.addSpacing(6)
        column.addWidget(self._pages, 1)
        column.addSpacing(6)
        column.addLayout(buttons)

    def _build_side(self) -> QWidget:
        side = QWidget()
        side.setFixedWidth(_SIDE_PX)
        column = QVBoxLayout(side)
        column.setContentsMargins(0, 8, 0, 0)
        column.setSpacing(8)
        column.addWidget(self._place)
        column.addWidget(self._verdict)
        for name, bars in ((self._other_name, self._other_bars), (self._own_name, self._own_bars)):
            column.addSpacing(8)
            column.addWidget(name)
            column.addWidget(bars)
        column.addStretch(1)
        return side

    def _connect(self) -> None:
        self.text.pointed.connect(self._on_pointed)
        self.twin_button.clicked.connect(self._on_twin)
        self.csv_button.clicked.connect(self._on_csv)
        self.again_button.clicked.connect(self.again_requested)
        self.close_button.clicked.connect(self.close_requested)

    # ------------------------------------------------------------------------------------------ slots

    @Slot(int)
    def _on_pointed(self, number: int) -> None:
        if self.xray is None or not 0 <= number < len(self.xray.tokens):
            return
        token = self.xray.tokens[number]
        words = _("{number} of {total}: {token}")
        total = count_text(len(self.xray.tokens))
        self._place.setText(words.format(number=count_text(number + 1), total=total, token=_written(token)))
        self._verdict.setText(_verdict(token, self.xray))
        self._other_bars.set_bars(_bars(token, token.other))
        if token.own is not None:
            self._own_bars.set_bars(_bars(token, token.own))

    @Slot()
    def _on_twin(self) -> None:
        if self._pages.currentIndex():
            self._show_text()
        else:
            self._pages.setCurrentIndex(1)
            self.twin_button.setText(_("Show as text"))
            self.table.selectRow(max(0, self.text.pointed_at))
            self.table.setFocus()

    def _show_text(self) -> None:
        self._pages.setCurrentIndex(0)
        self.twin_button.setText(_("Show as table"))
        self.text.setFocus()

    @Slot()
    def _on_csv(self) -> None:
        ask_for_file(self, self._model.table, self.export_to)


# ----------------------------------------------------------------------------------------------------- words


def _legend(xray: Xray) -> str:
    words = [_("Underlined: {name} would have chosen another token.").format(name=xray.other_label)]
    if xray.own_label:
        words.append(_("Dotted: drawn by chance."))
    words.append(_("Arrow keys go from token to token; with Ctrl to the next underlined one."))
    return " ".join(words)


def _shown(token: XrayToken, xray: Xray) -> ShownToken:
    mark = Mark.NONE
    if token.other.top and not token.is_same:
        mark = Mark.WEAK if token.is_chance else Mark.STRONG
    return ShownToken(token.text, mark, f"{_written(token)}: {_verdict(token, xray)}")


def _written(token: XrayToken) -> str:
    return visible(token.text) if token.text else _("part of a character")


def _verdict(token: XrayToken, xray: Xray) -> str:
    """Return what the other quantization would have done here, a short sentence."""
    if not token.other.top:
        return _("{name} gave no figures here.").format(name=xray.other_label)
    best = token.other.top[0]
    if token.is_same:
        return _("{name} would have chosen it too.").format(name=xray.other_label)
    if token.is_chance and token.own is not None and token.own.top[0].token_id == best.token_id:
        words = _("Drawn by chance: both found {token} likelier.")
        return words.format(token=visible(best.text))
    words = _("{name} would have chosen {token}.")
    return words.format(name=xray.other_label, token=visible(best.text))


def _bars(token: XrayToken, reading: Reading) -> list[Bar]:
    """Return the likeliest tokens, and the written one behind them where it is not among them."""
    bars = [Bar(visible(one.text), one.probability, one.token_id == token.token_id) for one in reading.top]
    if reading.top and not any(bar.is_written for bar in bars):
        bars.append(Bar(_written(token), reading.probability, is_written=True))
    return bars


def _framed(inside: QWidget) -> QFrame:
    card = QFrame()
    card.setProperty("kind", "card")
    column = QVBoxLayout(card)
    column.setContentsMargins(1, 1, 1, 1)
    column.addWidget(inside)
    return card
