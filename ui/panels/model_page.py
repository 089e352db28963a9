"""The right side of the models screen: one model, its quantizations, and everything about the chosen one.

Knows no library: it is given entries, fits and measurements, and passes on the wishes of its parts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from PySide6.QtCore import QTimer, Signal
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QFrame, QHBoxLayout, QSizePolicy, QWidget

from app.models.entry import ModelEntry
from app.models.fit_types import Fit, Machine, Measured
from app.settings_fields import Settings
from ui.models.model_banner import banner_text
from ui.models.model_choice import NamedModel, copies_of, recommended
from ui.models.model_words import facts_text
from ui.panels.model_detail import ModelDetail
from ui.panels.model_table import ModelTable
from ui.theme import READING_PX, Theme, ui_font
from ui.widgets.labels import ElidedLabel
from ui.widgets.wide_page import WidePage
from ui.widgets.wrapped_label import WrappedLabel

# On a large screen the table and the cards are no wider than this.
_MOST_PX: Final = 1360


class ModelPage(WidePage):
    """One model.

    Attributes:
        table: its quantizations.
        detail: the chosen one.
        _asked: the answer to a question other than how the model would be loaded, by key.

    Signals:
        entry_chosen(key): another quantization is shown.
    """

    entry_chosen = Signal(object)

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(_MOST_PX, parent)
        self._model: NamedModel | None = None
        self._all: Sequence[ModelEntry] = ()
        self._fits: Mapping[str, Fit] = {}
        self._measured: dict[str, Measured | None] = {}
        self._asked: dict[str, Fit] = {}
        self._machine: Machine | None = None
        self._loaded = ("", "")
        self._question = (Settings().context_tokens, Settings().kv_type)
        self._name = ElidedLabel(kind="title")
        self._facts = ElidedLabel()
        self._banner = QFrame()
        self._banner_words = WrappedLabel()
        self.table = ModelTable(theme)
        self.detail = ModelDetail(theme)
        self._build()
        self.table.entry_chosen.connect(self._on_entry_chosen)
        self.detail.question_changed.connect(self._on_question_changed)
        self.detail.confirm.asked.connect(self._on_asked)

    # ------------------------------------------------------------------------------------- public

    @property
    def model(self) -> NamedModel | None:
        """The model that is shown."""
        return self._model

    def set_model(self, model: NamedModel, entries: Sequence[ModelEntry], key: str = "") -> None:
        """Show a model.

        Args:
            model: its quantizations.
            entries: the whole library, in which copies are looked for.
            key: of the quantization to choose; "" or an unknown one chooses the loaded or the recommended one.
        """
        self._model, self._all = model, entries
        self._name.setText(model.name)
        self._facts.setText(facts_text(model))
        self.table.quantizations.set_fits(self._fits)
        self.table.quantizations.set_entries(model.entries)
        self._show_marks()
        if not self.table.choose(key):
            self.table.choose(self._best_key(model))
        self._show_chosen()

    def set_fits(self, fits: Mapping[str, Fit]) -> None:
        """Take over what fits now."""
        self._fits = fits
        self.table.quantizations.set_fits(fits)
        self._show_marks()
        self._show_answer()

    def set_answer(self, key: str, fit: Fit) -> None:
        """Show the answer to a question that a person asked about an entry."""
        self._asked[key] = fit
        self._show_answer()

    def set_measured(self, key: str, measured: Measured | None) -> None:
        """Show what a load of an entry took."""
        self._measured[key] = measured
        self._show_answer()

    def set_machine(self, machine: Machine) -> None:
        """Take over what there is to fit into now."""
        self._machine = machine
        self._show_banner()

    def set_loaded(self, key: str, words: str) -> None:
        """Mark the entry that is in use, and say how it was loaded; "" for none."""
        self._loaded = (key, words)
        self._show_marks()
        self._show_loaded()

    def set_question(self, context_tokens: int, kv_type: str) -> None:
        """Take over how the settings would load a model."""
        self._question = (context_tokens, kv_type)
        self._show_chosen()

    def set_theme(self, theme: Theme) -> None:
        """Take the colours of a theme."""
        self.table.set_theme(theme)
        self.detail.set_theme(theme)

    def show_below(self) -> None:
        """Scroll to the chosen quantization, below the table."""
        self.scroll_to(self.detail)

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Put things side by side where there is room."""
        super().resizeEvent(event)
        self.detail.set_wide(self.is_wide)

    # ------------------------------------------------------------------------------------- build

    def _build(self) -> None:
        self._banner.setProperty("kind", "notice")
        self._banner_words.setFont(ui_font(READING_PX))
        inside_banner = QHBoxLayout(self._banner)
        inside_banner.setContentsMargins(16, 9, 16, 9)
        inside_banner.addWidget(self._banner_words)
        line = QHBoxLayout()
        line.setSpacing(12)
        self._name.setSizePolicy(QSizePolicy.Policy.Maximum, QSizePolicy.Policy.Preferred)
        line.addWidget(self._name)
        line.addWidget(self._facts, 1)
        self.head.addLayout(line)
        self.head.addWidget(self._banner)
        self.column.addWidget(self.table)
        self.column.addWidget(self.detail)
        self.column.addStretch(1)

    # ------------------------------------------------------------------------------------- slots

    def _on_asked(self) -> None:
        QTimer.singleShot(0, self, self._show_question)  # its place is known once the layout has made room

    def _show_question(self) -> None:
        if self.detail.confirm.isVisible():
            self.show_part(self.detail.confirm)

    def _on_question_changed(self, key: str, _context_tokens: int, _kv_type: str) -> None:
        self._asked.pop(key, None)
        self._show_answer()

    def _on_entry_chosen(self, key: str) -> None:
        self._show_chosen()
        self.entry_chosen.emit(key)

    # ------------------------------------------------------------------------------------- helpers

    def _best_key(self, model: NamedModel) -> str:
        keys = [entry.key for entry in model.entries]
        if self._loaded[0] in keys:
            return self._loaded[0]
        chosen = recommended(model.entries, self._fits)
        return chosen.entry.key if chosen is not None else next(iter(model.usable), model.entries[0]).key

    def _show_chosen(self) -> None:
        entry = self.table.chosen_entry
        if entry is None:
            return
        context_tokens, kv_type = self._question
        defaults = entry.defaults
        context_tokens = context_tokens if defaults.context_tokens is None else defaults.context_tokens
        copies = copies_of(entry, self._all)
        self.detail.set_entry(entry, copies, context_tokens, defaults.kv_type or kv_type)
        self._show_loaded()
        self._show_answer()

    def _show_answer(self) -> None:
        entry = self.detail.entry
        if entry is not None:
            is_own = self.detail.memory.is_own_question
            fit = (self._fits if is_own else self._asked).get(entry.key)
            self.detail.set_answer(fit, self._measured.get(entry.key))

    def _show_loaded(self) -> None:
        entry = self.detail.entry
        if entry is not None:
            self.detail.set_loaded(entry.key == self._loaded[0], self._loaded[1])

    def _show_marks(self) -> None:
        if self._model is None:
            return
        usable = self._model.usable
        chosen = recommended(usable, self._fits) if len(usable) > 1 else None
        self.table.quantizations.set_marks(chosen.entry.key if chosen is not None else "", self._loaded[0])
        self._show_banner()

    def _show_banner(self) -> None:
        words = banner_text(self._model, self._fits, self._machine) if self._model is not None else ""
        self._banner_words.setText(words)
        self._banner.setVisible(bool(words))
