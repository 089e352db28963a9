"""The memory of one quantization: predicted and measured by owner, the question behind it, and how far it could go.

The table twin shows the same numbers as the bars, and is what the CSV file holds. Knows no library and no machine: a
changed question is a signal, and the answer is given back.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QBoxLayout, QFrame, QGridLayout, QHBoxLayout, QPushButton, QVBoxLayout, QWidget

from app.i18n import _
from app.models.entry import ModelEntry
from app.models.fit_types import Fit, Measured
from app.models.fit_words import context_text
from app.settings_fields import Setting, about
from app.telemetry.export import Table
from app.units import count_text
from ui.models.model_memory_table import memory_parts, memory_table
from ui.models.model_words import context_choices
from ui.panels.model_memory_twin import MemoryTwin
from ui.plots.table_twin import ask_for_file, export_table
from ui.theme import Theme
from ui.widgets.labels import CaptionLabel, FigureLabel, MutedLabel
from ui.widgets.memory_bar import MemoryBars, MemoryLegend, MemoryPart
from ui.widgets.optional_editor import offer
from ui.widgets.setting_editor import make_editor
from ui.widgets.wrapped_label import WrappedLabel

KV_TYPES: Final = ("f16", "q8_0", "q4_0")
_EDITOR_PX, _NARROW_EDITOR_PX = 152, 120


class ModelMemory(QFrame):
    """The card with the bars.

    Attributes:
        bars: predicted and measured.
        twin: the same numbers as a table.

    Signals:
        question_changed(context_tokens, kv_type): a person asks about another load; a context of 0 is automatic.
        keep_requested(context_tokens, kv_type): a person wants this model always loaded so.
        told(str): a sentence about an export.
    """

    question_changed = Signal(object, str)
    keep_requested = Signal(object, str)
    told = Signal(str)

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setProperty("kind", "card")
        self._theme = theme
        self._question = (0, KV_TYPES[0])
        self._own = self._question
        self._context = make_editor("context_tokens", Setting(choices=lambda: {}), "")
        self._kv_type = make_editor("kv_type", about("kv_type"), KV_TYPES[0])
        self._keep = QPushButton(_("Keep for this model"))
        self._table_button = QPushButton(_("Table"))
        self._csv_button = QPushButton(_("CSV"))
        self._top = QBoxLayout(QBoxLayout.Direction.LeftToRight)
        self.bars = MemoryBars(theme)
        self._legend = MemoryLegend(theme)
        self.twin = MemoryTwin(theme)
        self._measured_at = WrappedLabel(kind="muted")
        self._unknown = WrappedLabel(kind="muted")
        self._figures = {
            kv_type: FigureLabel(_("largest context, {type}").format(type=kv_type), _("tokens")) for kv_type in KV_TYPES
        }
        self._parts: tuple[MemoryPart, ...] = ()
        self._is_comparable = True
        self._build()
        self._connect()

    # ------------------------------------------------------------------------------------- public

    @property
    def question(self) -> tuple[int, str]:
        """The context and the KV type that are asked about."""
        return self._question

    @property
    def is_own_question(self) -> bool:
        """Whether the question is how the model would be loaded anyway."""
        return self._question == self._own

    def table(self) -> Table:
        """Return the numbers that the bars show."""
        return memory_table(self._parts, self._is_comparable)

    def set_entry(self, entry: ModelEntry, context_tokens: int, kv_type: str) -> None:
        """Ask about another model: as it would be loaded."""
        self._own = self._question = (context_tokens, kv_type)
        offer(self._context, context_choices(entry.context_tokens, context_tokens))
        self._context.set_value(str(context_tokens))
        self._kv_type.set_value(kv_type)
        self._keep.setEnabled(False)

    def set_answer(self, fit: Fit | None, measured: Measured | None) -> None:
        """Show the answer to the question; None while there is none."""
        self._parts = memory_parts(fit, measured) if fit is not None else ()
        self._is_comparable = measured is None or fit is None or self._is_same_load(fit, measured)
        self.bars.set_parts(self._parts, fit.free_bytes if fit is not None else 0)
        self._legend.set_parts(self._parts)
        self.twin.set_table(self.table())
        self._unknown.setText(
            _("Nothing to draw before the first load.") if fit is not None else _("Being worked out…")
        )
        self._unknown.setVisible(not self._parts)
        self._show_page()
        for button in (self._table_button, self._csv_button):
            button.setEnabled(bool(self._parts))
        self._show_measured_at(measured)
        self._show_figures(fit.max_context_tokens if fit is not None else {})

    def set_theme(self, theme: Theme) -> None:
        """Take the colours of a theme."""
        self._theme = theme
        self.bars.set_theme(theme)
        self._legend.set_theme(theme)
        self.twin.set_theme(theme)

    def set_wide(self, is_wide: bool) -> None:
        """Put the question and the buttons side by side, or one under the other."""
        self._top.setDirection(QBoxLayout.Direction.LeftToRight if is_wide else QBoxLayout.Direction.TopToBottom)

    def show_table(self, is_table: bool) -> None:
        """Show the numbers as a table, or as bars."""
        self._table_button.setChecked(is_table)

    def export_to(self, path: Path) -> None:
        """Write the numbers to a CSV file and say whether it worked."""
        self.told.emit(export_table(self.table(), path))

    # ------------------------------------------------------------------------------------- build

    def _build(self) -> None:
        self._table_button.setCheckable(True)
        self._table_button.setToolTip(_("The numbers of the bars as a table"))
        self._csv_button.setToolTip(_("Export the numbers as a CSV file"))
        self._csv_button.setAccessibleName(_("Export CSV"))
        self._keep.setToolTip(_("Load this model with this context and KV type from now on"))
        self._context.widget.setAccessibleName(_("Context to ask about, tokens"))
        self._kv_type.widget.setAccessibleName(_("KV cache to ask about"))
        for editor in (self._context, self._kv_type):
            editor.widget.setMinimumWidth(_NARROW_EDITOR_PX)
            editor.widget.setMaximumWidth(_EDITOR_PX)
        question = QHBoxLayout()
        question.setSpacing(8)
        question.addWidget(MutedLabel(_("at")))
        question.addWidget(self._context.widget)
        question.addWidget(MutedLabel(_("tokens, KV")))
        question.addWidget(self._kv_type.widget)
        question.addStretch(1)
        buttons = QHBoxLayout()
        buttons.setSpacing(8)
        buttons.addWidget(self._keep)
        buttons.addStretch(1)
        buttons.addWidget(self._table_button)
        buttons.addWidget(self._csv_button)
        top = self._top
        top.setSpacing(8)
        top.addWidget(CaptionLabel(_("MEMORY")))
        top.addSpacing(4)
        top.addLayout(question)
        top.addLayout(buttons, 1)
        figures = QGridLayout()
        figures.setHorizontalSpacing(32)
        for column, figure in enumerate(self._figures.values()):
            figures.addWidget(figure, 0, column)
        figures.setColumnStretch(len(self._figures), 1)
        column_of_all = QVBoxLayout(self)
        column_of_all.setContentsMargins(16, 12, 16, 12)
        column_of_all.setSpacing(8)
        column_of_all.addLayout(top)
        for widget in (self.bars, self.twin, self._legend, self._measured_at, self._unknown):
            column_of_all.addWidget(widget)
        column_of_all.addSpacing(4)
        column_of_all.addLayout(figures)

    def _connect(self) -> None:
        self._context.edited.connect(self._on_context)
        self._kv_type.edited.connect(self._on_kv_type)
        self._table_button.toggled.connect(self._on_table)
        self._csv_button.clicked.connect(self._on_csv)
        self._keep.clicked.connect(self._on_keep)

    # ------------------------------------------------------------------------------------- slots

    def _on_context(self, _name: str, value: object) -> None:
        self._ask((int(str(value)), self._question[1]))

    def _on_kv_type(self, _name: str, value: object) -> None:
        self._ask((self._question[0], str(value)))

    def _on_table(self, is_table: bool) -> None:
        self._table_button.setText(_("Bars") if is_table else _("Table"))
        self._show_page()

    def _on_csv(self) -> None:
        ask_for_file(self, self.table(), self.export_to)

    def _on_keep(self) -> None:
        self.keep_requested.emit(*self._question)

    # ------------------------------------------------------------------------------------- helpers

    def _ask(self, question: tuple[int, str]) -> None:
        self._question = question
        self._keep.setEnabled(not self.is_own_question)
        self.question_changed.emit(*question)

    def _show_page(self) -> None:
        is_table = self._table_button.isChecked()
        self.twin.setVisible(is_table and bool(self._parts))
        for widget in (self.bars, self._legend):
            widget.setVisible(not is_table and bool(self._parts))

    def _is_same_load(self, fit: Fit, measured: Measured) -> bool:
        return (measured.context_tokens, measured.kv_type) == (fit.context_tokens, self._question[1])

    def _show_measured_at(self, measured: Measured | None) -> None:
        words = ""
        if measured is not None and not self._is_comparable:
            words = _("Measured with another context: {tokens} tokens, {type} KV.").format(
                tokens=count_text(measured.context_tokens), type=measured.kv_type
            )
        self._measured_at.setText(words)
        self._measured_at.setVisible(bool(words))

    def _show_figures(self, largest: Mapping[str, int | None]) -> None:
        for kv_type, figure in self._figures.items():
            tokens = largest.get(kv_type)
            figure.set_value("–" if tokens is None else context_text(tokens))
