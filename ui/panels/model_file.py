"""The file of one quantization: where it lies, what it is, its copies, and the person's note on it.

Knows no disk: showing a folder and hashing it are wishes.
"""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QEvent, QObject, Qt, Signal
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QFrame, QGridLayout, QHBoxLayout, QPlainTextEdit, QPushButton, QVBoxLayout, QWidget

from app.i18n import _, ngettext
from app.models.entry import ModelEntry
from app.units import bytes_text, percent_text
from ui.models.model_words import digest_text, origin_text
from ui.theme import Theme
from ui.widgets.display_text import display_text
from ui.widgets.icon_button import IconButton
from ui.widgets.labels import CaptionLabel, MutedLabel, PlainLabel, plain_tooltip
from ui.widgets.wrapped_label import WrappedLabel

_NOTE_PX = 60
_TOP_PX = 5  # brings a label in line with the words of the control beside it
_ICON_BUTTON_PX, _ICON_PX = 28, 16
_MOST_COPIES_SHOWN = 5
_MAX_NOTE_CHARACTERS = 10_000


class ModelFile(QFrame):
    """The card with the file.

    Attributes:
        note: where the note is written.
        _saved_note: the note as it was told or given last.

    Signals:
        folder_requested(key): a person wants to see the file in the system's file manager.
        hash_requested(key): a person wants the file to be hashed.
        note_changed(key, text): a person wrote another note and left it.
    """

    folder_requested = Signal(object)
    hash_requested = Signal(object)
    note_changed = Signal(object, str)

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setProperty("kind", "card")
        self._entry: ModelEntry | None = None
        self._saved_note = ""
        self._path = WrappedLabel()
        self._facts = WrappedLabel(kind="muted")
        self._show = IconButton("folder-open-outline", _("Show in folder"), theme)
        self._copy = IconButton("content-copy", _("Copy path"), theme)
        self._digest = PlainLabel(kind="muted")
        self._hash = QPushButton(_("Hash now"))
        self._copies = WrappedLabel(kind="muted")
        self.note = QPlainTextEdit()
        self._build()
        self._connect()

    def set_entry(self, entry: ModelEntry, copies: Sequence[ModelEntry]) -> None:
        """Show an entry; a note that is being written is kept for the entry it belongs to."""
        is_same = self._entry is not None and self._entry.key == entry.key
        is_writing = is_same and self.note.hasFocus() and self._is_note_changed()
        if not is_same:
            self.save_note()
        self._entry = entry
        self._saved_note = display_text(entry.note).strip()
        self._path.setText(display_text(str(entry.path)))
        self._facts.setText(_facts(entry))
        self._show_digest(entry)
        self._show_copies(copies)
        if not is_writing and self._written_note() != self._saved_note:
            self.note.setPlainText(display_text(entry.note))

    def set_hashing(self, fraction: float | None) -> None:
        """Show how far the hashing is; None when nothing is hashed."""
        if fraction is None:
            if self._entry is not None:
                self._show_digest(self._entry)
            return
        self._hash.hide()
        self._digest.setText(_("hashing: {percent}").format(percent=percent_text(fraction)))

    def save_note(self) -> None:
        """Tell a note that was written and not told yet."""
        if self._entry is not None and self._is_note_changed():
            self._saved_note = self._written_note()
            self.note_changed.emit(self._entry.key, self._saved_note)

    def set_theme(self, theme: Theme) -> None:
        """Take the colours of a theme."""
        self._show.set_theme(theme)
        self._copy.set_theme(theme)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Save the note when the cursor leaves it or the screen is left."""
        if watched is self.note and event.type() in (QEvent.Type.FocusOut, QEvent.Type.Hide):
            self.save_note()
        return super().eventFilter(watched, event)

    # ------------------------------------------------------------------------------------- build

    def _build(self) -> None:
        self._path.setTextInteractionFlags(
            Qt.TextInteractionFlag.TextSelectableByMouse | Qt.TextInteractionFlag.TextSelectableByKeyboard
        )
        self._path.setFocusPolicy(Qt.FocusPolicy.ClickFocus)
        self._hash.setToolTip(_("Read the whole file once: its SHA-256 tells copies and changes for sure"))
        for button in (self._show, self._copy):
            button.set_size(_ICON_BUTTON_PX, _ICON_PX)
        self.note.setProperty("kind", "field")
        self.note.setFixedHeight(_NOTE_PX)
        self.note.setTabChangesFocus(True)
        self.note.setAccessibleName(_("Note"))
        self.note.setPlaceholderText(_("What you want to remember about it"))
        self.note.installEventFilter(self)
        top = Qt.AlignmentFlag.AlignTop
        place = QHBoxLayout()
        place.setSpacing(4)
        place.addWidget(self._path, 1)
        for button in (self._show, self._copy):
            place.addWidget(button, 0, top)
        identity = QHBoxLayout()
        identity.setSpacing(8)
        identity.addWidget(self._digest, 1)
        identity.addWidget(self._hash)
        grid = QGridLayout()
        grid.setHorizontalSpacing(16)
        grid.setVerticalSpacing(8)
        grid.setColumnStretch(1, 1)
        place_label = MutedLabel(_("Place"))
        for label in (place_label, self._path):
            label.setContentsMargins(0, _TOP_PX, 0, 0)
            label.setAlignment(top)
        grid.addWidget(place_label, 0, 0, top)
        grid.addLayout(place, 0, 1)
        grid.addWidget(self._facts, 1, 1)
        grid.addWidget(MutedLabel("SHA-256"), 2, 0)
        grid.addLayout(identity, 2, 1)
        self._copies_label = MutedLabel(_("Copies"))
        grid.addWidget(self._copies_label, 3, 0, top)
        grid.addWidget(self._copies, 3, 1)
        note_label = MutedLabel(_("Note"))
        note_label.setBuddy(self.note)
        note_label.setContentsMargins(0, _TOP_PX, 0, 0)
        grid.addWidget(note_label, 4, 0, top)
        grid.addWidget(self.note, 4, 1)
        column = QVBoxLayout(self)
        column.setContentsMargins(16, 12, 16, 12)
        column.setSpacing(8)
        column.addWidget(CaptionLabel(_("FILE")))
        column.addLayout(grid)
        column.addStretch(1)

    def _connect(self) -> None:
        self._show.clicked.connect(self._on_show)
        self._copy.clicked.connect(self._on_copy)
        self._hash.clicked.connect(self._on_hash)

    # ------------------------------------------------------------------------------------- slots

    def _on_show(self) -> None:
        if self._entry is not None:
            self.folder_requested.emit(self._entry.key)

    def _on_copy(self) -> None:
        if self._entry is not None:
            QGuiApplication.clipboard().setText(str(self._entry.path))
            self._copy.flash("check")

    def _on_hash(self) -> None:
        if self._entry is not None:
            self.hash_requested.emit(self._entry.key)

    # ------------------------------------------------------------------------------------- helpers

    def _is_note_changed(self) -> bool:
        return self._written_note() != self._saved_note

    def _written_note(self) -> str:
        return self.note.toPlainText()[:_MAX_NOTE_CHARACTERS].strip()

    def _show_digest(self, entry: ModelEntry) -> None:
        digest = digest_text(entry.identity)
        self._digest.setText(f"{digest}…" if digest else _("not hashed yet"))
        self._digest.setToolTip(plain_tooltip(entry.identity.removeprefix("sha256:")) if digest else "")
        self._hash.setVisible(not digest and not entry.fault)

    def _show_copies(self, copies: Sequence[ModelEntry]) -> None:
        lines = [f"{display_text(str(copy.path))} ({origin_text(copy)})" for copy in copies[:_MOST_COPIES_SHOWN]]
        more = len(copies) - len(lines)
        if more:
            lines.append(ngettext("and {count} more", "and {count} more", more).format(count=more))
        self._copies.setText("\n".join(lines))
        self._copies.setToolTip(plain_tooltip("\n".join(display_text(str(copy.path)) for copy in copies)))
        for widget in (self._copies_label, self._copies):
            widget.setVisible(bool(copies))


def _facts(entry: ModelEntry) -> str:
    """Return what the file is, in one line."""
    parts = max(1, len(entry.parts))
    facts = [bytes_text(entry.size_bytes) if entry.size_bytes else "", origin_text(entry)]
    if parts > 1:
        facts.append(ngettext("{count} file", "{count} files", parts).format(count=parts))
    if entry.has_importance_matrix:
        facts.append(_("made with an importance matrix"))
    if not entry.fault:
        facts.append(_("with a chat template") if entry.has_chat_template else _("without a chat template"))
    if entry.projector_path is not None:
        facts.append(_("sees pictures: {size} more").format(size=bytes_text(entry.projector_bytes)))
    return " · ".join(fact for fact in facts if fact)
