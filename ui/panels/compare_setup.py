"""The page on which a comparison is set up: the model, the reference, the runs, the text, the amount, the limit.

Knows no library and predicts nothing: every change is a signal, and it is given entries, words and predictions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QFontMetrics
from PySide6.QtWidgets import QFrame, QGridLayout, QHBoxLayout, QPushButton, QSizePolicy, QVBoxLayout, QWidget

from app.i18n import _
from app.models.entry import ModelEntry
from app.models.fit_types import Fit
from ui.models.compare_choice import SetupChoice
from ui.models.compare_words import AMOUNTS, LIMITS, amount_words, limit_sentence, limit_words
from ui.models.model_choice import one_line
from ui.panels.compare_candidates import CandidatesTable
from ui.panels.compare_pick import ComparePick
from ui.panels.compare_warnings import CompareWarnings
from ui.theme import MUTED_PX, Theme, ui_font
from ui.widgets.labels import CaptionLabel, ElidedLabel, PlainLabel, TitleLabel, set_kind
from ui.widgets.segmented import SegmentedControl
from ui.widgets.wide_page import WidePage
from ui.widgets.wrapped_label import WrappedLabel

_MOST_PX: Final = 1100
_CAPTION_PX: Final = 104
_CHOICE_PADDING_PX: Final = 12  # above and below the words of what is chosen
MIX, OWN, CHATS = "mix", "own", "chats"


class CompareSetup(WidePage):
    """What is to be compared.

    Attributes:
        table: the quantizations.
        start_button: begins.

    Signals:
        model_chosen(name), reference_chosen(key): a person chose another one.
        file_requested(): a person wants to choose a text file of their own.
        changed(): something else is chosen, so that another time must be predicted.
        start_requested(): a person wants to begin.
    """

    model_chosen = Signal(str)
    reference_chosen = Signal(str)
    file_requested = Signal()
    changed = Signal()
    start_requested = Signal()

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(_MOST_PX, parent)
        self._own_path = ""
        self._reason = ""
        self._can_start = True
        self._prediction = ElidedLabel(kind="predicted")
        self.start_button = QPushButton(_("Start"))
        self._model = ComparePick(_("Model"), theme)
        self._reference = ComparePick(_("Compared with"), theme)
        self._reason_words = WrappedLabel(kind="muted")
        self._warnings = CompareWarnings(theme)
        self.table = CandidatesTable(theme)
        texts = {MIX: _("Bundled mix"), OWN: _("A file…"), CHATS: _("My chats")}
        self._text = SegmentedControl(texts, _("Text"), theme)
        self._text_words = WrappedLabel(kind="muted")
        self._amount = SegmentedControl({key: amount_words(key) for key in AMOUNTS}, _("Amount"), theme)
        self._amount_words = WrappedLabel(kind="muted")
        self._limit = SegmentedControl({f"{limit:g}": limit_words(limit) for limit in LIMITS}, _("Limit"), theme)
        self._limit_words = WrappedLabel(kind="muted")
        self._build()
        self._connect()
        self._amount.choose("normal")
        self._limit.choose(f"{LIMITS[1]:g}")
        self._show_text_words()
        self._limit_words.setText(limit_sentence(LIMITS[1]))
        self._show_start()

    # ------------------------------------------------------------------------------------- public

    @property
    def choice(self) -> SetupChoice:
        """Everything that is chosen."""
        return SetupChoice(
            title=self._model.key,
            reference_key=self._reference.key,
            reference_reason=self._reason,
            reference_warnings=self._warnings.sentences,
            candidates=self.table.candidates.candidates,
            text=self._text.chosen_key,
            own_path=self._own_path,
            amount=next(amount for amount in AMOUNTS if amount == self._amount.chosen_key),
            limit_kl=float(self._limit.chosen_key),
        )

    @property
    def needs_file(self) -> bool:
        """Whether a text of the person's own is wanted and none was chosen yet."""
        return self._text.chosen_key == OWN and not self._own_path

    def set_models(self, names: Sequence[str], name: str) -> None:
        """Offer these models, one of them chosen."""
        self._model.set_choices({one: one_line(one) for one in names}, name)

    def set_reference(self, references: Mapping[str, str], key: str, reason: str, warnings: Sequence[str]) -> None:
        """Offer references.

        Args:
            references: by key of the entry, in words.
            key: the one that is chosen.
            reason: why this one, a sentence.
            warnings: what a person must know of it, a sentence each.
        """
        self._reference.set_choices(references, key)
        self._reason = reason
        self._reason_words.setText(reason)
        self._reason_words.setVisible(bool(reason))
        self._warnings.set_warnings(warnings)

    def set_entries(self, entries: Sequence[ModelEntry], with_kv: frozenset[str]) -> None:
        """Show the quantizations, every candidate ticked.

        Args:
            entries: the reference among them.
            with_kv: keys of those that can run with a smaller KV cache too.
        """
        self.table.candidates.set_entries(entries, self._reference.key, with_kv)

    def set_fits(self, fits: Mapping[str, Fit]) -> None:
        """Show what fits."""
        self.table.candidates.set_fits(fits)

    def set_own_text(self, path: Path | None) -> None:
        """Take a file of the person's own, or the bundled texts again for None; sends changed()."""
        self._own_path = str(path) if path is not None else ""
        self._text.choose(OWN if path is not None else MIX)
        self._show_text_words()
        self._on_changed()

    def set_amount_words(self, words: str) -> None:
        """Say what the chosen amount means."""
        self._amount_words.setText(words)

    def set_prediction(self, words: str) -> None:
        """Say how long it would take; "" while nobody knows."""
        self._prediction.setText(words)
        set_kind(self._prediction, "predicted")
        self._show_start()

    def set_can_start(self, can_start: bool) -> None:
        """Say whether another comparison is under way."""
        self._can_start = can_start
        self._show_start()

    def set_theme(self, theme: Theme) -> None:
        """Take the colours of a theme."""
        for part in (self._model, self._reference, self._warnings, self._text, self._amount, self._limit, self.table):
            part.set_theme(theme)

    # ------------------------------------------------------------------------------------- build

    def _build(self) -> None:
        self.start_button.setProperty("kind", "primary")
        self._prediction.setAlignment(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
        self._prediction.setAccessibleName(_("Predicted time"))
        head = QHBoxLayout()
        head.setSpacing(12)
        title = TitleLabel(_("New comparison"))
        title.setSizePolicy(QSizePolicy.Policy.Maximum, QSizePolicy.Policy.Preferred)
        head.addWidget(title)
        head.addWidget(self._prediction, 1)
        head.addWidget(self.start_button)
        self.head.addLayout(head)
        self.column.setSpacing(16)
        first = self._grid()
        first.setContentsMargins(13, 0, 0, 0)  # in line with what stands in the card below
        self._add_row(first, 0, _("Model"), [self._model])
        self._add_row(first, 1, _("Compared with"), [self._reference, self._reason_words, self._warnings])
        self.column.addLayout(first)
        self.column.addWidget(self.table)
        second = self._grid()
        self._add_row(second, 0, _("Text"), [self._text, self._text_words])
        self._add_row(second, 1, _("Amount"), [self._amount, self._amount_words])
        self._add_row(second, 2, _("Limit"), [self._limit, self._limit_words])
        card = QFrame()
        card.setProperty("kind", "card")
        second.setContentsMargins(12, 12, 12, 12)
        card.setLayout(second)
        self.column.addWidget(card)
        self.column.addStretch(1)
        self._limit.set_short_words({f"{limit:g}": f"{limit:g}" for limit in LIMITS})

    def _grid(self) -> QGridLayout:
        grid = QGridLayout()
        grid.setContentsMargins(0, 0, 0, 0)
        grid.setHorizontalSpacing(12)
        grid.setVerticalSpacing(16)
        grid.setColumnMinimumWidth(0, _CAPTION_PX)
        grid.setColumnStretch(1, 1)
        return grid

    def _add_row(self, grid: QGridLayout, row: int, caption: str, parts: Sequence[QWidget]) -> None:
        label: PlainLabel = CaptionLabel(caption)
        label.setFixedHeight(QFontMetrics(ui_font(MUTED_PX)).height() + _CHOICE_PADDING_PX)
        grid.addWidget(label, row, 0, Qt.AlignmentFlag.AlignTop)
        column = QVBoxLayout()
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(4)
        for part in parts:
            column.addWidget(part)
        grid.addLayout(column, row, 1)

    def _connect(self) -> None:
        self._model.chosen.connect(self.model_chosen)
        self._reference.chosen.connect(self.reference_chosen)
        self._text.chosen.connect(self._on_text)
        self._amount.chosen.connect(self._on_changed)
        self._limit.chosen.connect(self._on_limit)
        self.table.candidates.ticks_changed.connect(self._on_changed)
        self.start_button.clicked.connect(self._on_start)

    # ------------------------------------------------------------------------------------- slots

    def _on_text(self, key: str) -> None:
        self._show_text_words()
        if key == OWN:
            self._prediction.setText("")
            self._show_start()
            self.file_requested.emit()
        else:
            self._on_changed()

    def _on_limit(self, key: str) -> None:
        self._limit_words.setText(limit_sentence(float(key)))

    def _on_changed(self, _key: str = "") -> None:
        self._prediction.setText("")
        self._show_start()
        self.changed.emit()

    def _on_start(self) -> None:
        self.start_requested.emit()

    # ------------------------------------------------------------------------------------- helpers

    def _show_text_words(self) -> None:
        words = {
            MIX: _("Encyclopaedia, dialogue, code and other languages; bundled with the program, free licences."),
            OWN: _("From the beginning of {file}.").format(file=one_line(Path(self._own_path).name))
            if self._own_path
            else _("The beginning of a plain text file of yours."),
            CHATS: _("What was said in your chats, on this machine only. It shows what you would notice."),
        }
        self._text_words.setText(words[self._text.chosen_key])

    def _show_start(self) -> None:
        why = self._why_not()
        self.start_button.setEnabled(not why)
        self.start_button.setToolTip(why)
        if why:
            self._prediction.setText(why)
            set_kind(self._prediction, "muted")

    def _why_not(self) -> str:
        if not self._can_start:
            return _("Another comparison is running.")
        if not self.table.candidates.candidates:
            return _("Tick at least one quantization.")
        if self.needs_file:
            return _("Choose a text file.")
        return ""
