"""Everything about one quantization, under the table: what it is, its memory, its file, its defaults, its removal.

Knows no library: every wish is a signal, and what is shown changes when it is given the new entry.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec
from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QBoxLayout, QHBoxLayout, QPushButton, QVBoxLayout, QWidget

from app.errors import Words
from app.i18n import _
from app.models.entry import ModelDefaults, ModelEntry
from app.models.fit_types import Fit, Measured
from app.models.fit_words import fit_sentence
from app.models.removal import Deletion
from ui.models.deletion_question import deletion_question
from ui.models.model_table_model import Action, entry_action
from ui.models.model_words import entry_meaning, keeper_text, quantization_text
from ui.panels.model_confirm import Answer, ConfirmBar
from ui.panels.model_defaults import ModelDefaultsCard
from ui.panels.model_file import ModelFile
from ui.panels.model_memory import ModelMemory
from ui.theme import Theme
from ui.widgets.display_text import display_text
from ui.widgets.labels import TitleLabel, set_kind
from ui.widgets.wrapped_label import WrappedLabel

_DELETABLE: Final = ("imported", "folder", "added", "huggingface")
# A cache that Cutaway downloads into too: what of it may go is looked up when a person asks.
_SHARED: Final = "huggingface"
_TRASH, _FOREVER, _ANYWAY = "trash", "forever", "anyway"


class ModelDetail(QWidget):
    """The chosen quantization.

    Attributes:
        memory: the bars.
        file: the file.
        defaults: its own defaults.
        use_button, forget_button, delete_button, quantize_button: what can be done.
        confirm: the question that is open.

    Signals:
        use_requested(key): a person wants to chat with it.
        use_confirmed(key): a person wants to load it although it may not fit, and was asked.
        forget_requested(key): a person wants it off the list; its file stays.
        delete_requested(key): a person wants its files deleted; answered by show_deletion().
        quantize_requested(key): a person wants other quantizations made of it.
        delete_confirmed(key, forever): a person said how.
        question_changed(key, context_tokens, kv_type): a person asks about another load.
        defaults_changed(key, defaults): a person wants other defaults.
    """

    use_requested = Signal(object)
    use_confirmed = Signal(object)
    forget_requested = Signal(object)
    delete_requested = Signal(object)
    quantize_requested = Signal(object)
    delete_confirmed = Signal(object, bool)
    question_changed = Signal(object, object, str)
    defaults_changed = Signal(object, object)

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._entry: ModelEntry | None = None
        self._is_loaded = False
        self._fit: Fit | None = None
        self._title = TitleLabel()
        self._meaning = WrappedLabel(kind="muted")
        self._sentence = WrappedLabel()
        self.use_button = QPushButton(_("Use"))
        self.forget_button = QPushButton(_("Forget"))
        self.delete_button = QPushButton(_("Delete…"))
        self.quantize_button = QPushButton(_("Make quantizations…"))
        self.confirm = ConfirmBar()
        self.memory = ModelMemory(theme)
        self.file = ModelFile(theme)
        self.defaults = ModelDefaultsCard()
        self._cards = QBoxLayout(QBoxLayout.Direction.LeftToRight)
        self._build()
        self._connect()

    # ------------------------------------------------------------------------------------- public

    @property
    def entry(self) -> ModelEntry | None:
        """The entry that is shown."""
        return self._entry

    def set_entry(self, entry: ModelEntry, copies: Sequence[ModelEntry], context_tokens: int, kv_type: str) -> None:
        """Show an entry.

        Args:
            entry: of the library.
            copies: others with the same bytes.
            context_tokens: how it would be loaded; 0 is automatic.
            kv_type: likewise.
        """
        is_same = self._entry is not None and self._entry.key == entry.key
        self.file.set_entry(entry, copies)
        self.defaults.set_entry(entry)
        if not is_same:
            self.confirm.close_question()
            self.file.set_hashing(None)
        if not is_same or self.memory.is_own_question:
            self.memory.set_entry(entry, context_tokens, kv_type)
        self._entry = entry
        self._title.setText(quantization_text(entry))
        self._meaning.setText(_meaning_text(entry))
        self._meaning.setVisible(bool(self._meaning.text()))
        self.memory.setVisible(not entry.fault)
        self.defaults.setVisible(not entry.fault)
        self._show_buttons()

    def set_answer(self, fit: Fit | None, measured: Measured | None) -> None:
        """Show whether it fits, for the question that is asked, and what a load took."""
        self._fit = fit
        self.memory.set_answer(fit, measured)
        entry = self._entry
        fault = entry.fault if entry is not None else ""
        self._sentence.setText(
            _fault_text(entry) if entry is not None and fault else fit_sentence(fit) if fit is not None else ""
        )
        self._sentence.setVisible(bool(self._sentence.text()))
        set_kind(self._sentence, "error" if fault else "")
        self._show_buttons()

    def set_loaded(self, is_loaded: bool, words: str) -> None:
        """Say whether it is in use, and how: "16,384 tokens · f16"."""
        self._is_loaded = is_loaded
        self.use_button.setToolTip(words if is_loaded else "")
        self._show_buttons()

    def show_deletion(self, deletion: Deletion) -> None:
        """Ask before deleting: what it frees and where it goes; or say why not."""
        question = deletion_question(deletion)
        answers = [Answer(_FOREVER, _("Delete forever"), is_danger=True)] if question.can_delete else []
        if question.can_trash:
            answers = [Answer(_TRASH, _("Move to trash")), *answers]
        self.confirm.ask(question.message, question.hint, answers)

    def show_confirmation(self, words: Words) -> None:
        """Ask before a load that may not fit."""
        self.confirm.ask(words.message, words.hint, (Answer(_ANYWAY, _("Load anyway")),))

    def set_theme(self, theme: Theme) -> None:
        """Take the colours of a theme."""
        self.memory.set_theme(theme)
        self.file.set_theme(theme)

    def set_wide(self, is_wide: bool) -> None:
        """Put things side by side, or one under the other."""
        self._cards.setDirection(QBoxLayout.Direction.LeftToRight if is_wide else QBoxLayout.Direction.TopToBottom)
        self.memory.set_wide(is_wide)

    # ------------------------------------------------------------------------------------- build

    def _build(self) -> None:
        self.use_button.setProperty("kind", "primary")
        self.forget_button.setToolTip(_("Take this model off the list. The file stays where it is."))
        head = QHBoxLayout()
        head.setSpacing(8)
        head.addWidget(self._title)
        head.addStretch(1)
        for button in (self.quantize_button, self.delete_button, self.forget_button, self.use_button):
            head.addWidget(button)
        self._cards.setSpacing(12)
        self._cards.addWidget(self.file, 3)
        self._cards.addWidget(self.defaults, 2)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(8)
        column.addLayout(head)
        for widget in (self._sentence, self._meaning, self.confirm):
            column.addWidget(widget)
        column.addSpacing(4)
        column.addWidget(self.memory)
        column.addSpacing(4)
        column.addLayout(self._cards)

    def _connect(self) -> None:
        self.use_button.clicked.connect(self._on_use)
        self.forget_button.clicked.connect(self._on_forget)
        self.delete_button.clicked.connect(self._on_delete)
        self.quantize_button.clicked.connect(self._on_quantize)
        self.confirm.answered.connect(self._on_answered)
        self.memory.question_changed.connect(self._on_question)
        self.memory.keep_requested.connect(self._on_keep)
        self.defaults.defaults_changed.connect(self._on_defaults)
        self.defaults.opened.connect(self._on_opened)

    # ------------------------------------------------------------------------------------- slots

    def _on_use(self) -> None:
        if self._entry is not None:
            self.use_requested.emit(self._entry.key)

    def _on_forget(self) -> None:
        if self._entry is not None:
            self.forget_requested.emit(self._entry.key)

    def _on_delete(self) -> None:
        if self._entry is not None:
            self.delete_requested.emit(self._entry.key)

    def _on_quantize(self) -> None:
        if self._entry is not None:
            self.quantize_requested.emit(self._entry.key)

    def _on_answered(self, answer: str) -> None:
        if self._entry is None:
            return
        if answer == _ANYWAY:
            self.use_confirmed.emit(self._entry.key)
        else:
            self.delete_confirmed.emit(self._entry.key, answer == _FOREVER)

    def _on_question(self, context_tokens: int, kv_type: str) -> None:
        if self._entry is not None:
            self.question_changed.emit(self._entry.key, context_tokens, kv_type)

    def _on_keep(self, context_tokens: int, kv_type: str) -> None:
        self._on_defaults(_with_load(self.defaults.defaults, context_tokens, kv_type))

    def _on_opened(self, is_open: bool) -> None:
        """Let both cards be of one height only while neither is long."""
        self._cards.setAlignment(self.file, Qt.AlignmentFlag.AlignTop if is_open else Qt.AlignmentFlag(0))

    def _on_defaults(self, defaults: ModelDefaults) -> None:
        if self._entry is not None:
            self.defaults_changed.emit(self._entry.key, defaults)

    # ------------------------------------------------------------------------------------- helpers

    def _show_buttons(self) -> None:
        entry = self._entry
        if entry is None:
            return
        action = entry_action(entry, self._fit, self._is_loaded)
        self.use_button.setText(action.words() or _("Use"))
        self.use_button.setEnabled(action.can_press)
        self.use_button.setVisible(action is not Action.NONE)
        set_kind(self.use_button, "primary" if action is Action.USE else "")
        self.forget_button.setVisible(entry.origin == "imported")
        self.quantize_button.setVisible(entry.format == "gguf" and not entry.fault)
        keeper = "" if entry.origin == _SHARED else keeper_text(entry)
        self.delete_button.setVisible(entry.origin in _DELETABLE or bool(keeper))
        self.delete_button.setEnabled(not keeper and not self._is_loaded)
        words = ""
        if keeper:
            words = _("It belongs to {program}: delete it there.").format(program=keeper)
        elif self._is_loaded:
            words = _("It is loaded: use another model first.")
        self.delete_button.setToolTip(words)


def _with_load(defaults: ModelDefaults, context_tokens: int, kv_type: str) -> ModelDefaults:
    return msgspec.structs.replace(defaults, context_tokens=context_tokens, kv_type=kv_type)


def _meaning_text(entry: ModelEntry) -> str:
    told = entry_meaning(entry)
    return told.sentence if told is not None and not entry.fault else ""


def _fault_text(entry: ModelEntry) -> str:
    """Return what is wrong and what to do."""
    keeper = keeper_text(entry)
    if keeper:
        advice = _("Get the file again with {program}.").format(program=keeper)
    elif entry.origin == "imported":
        advice = _("Get the file again, or forget it here.")
    else:
        advice = _("Get the file again.")
    return f"{display_text(entry.fault)} {advice}"
