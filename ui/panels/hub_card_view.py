"""A model card in place of the table: its words as plain text, what it links to, and the way back.

No picture is fetched and nothing is opened by itself: a link is opened in the browser after its host was shown.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Final

from PySide6.QtCore import Qt, QTimer, Signal
from PySide6.QtGui import QFont, QKeyEvent, QResizeEvent, QTextBlockFormat, QTextCharFormat, QTextCursor
from PySide6.QtWidgets import (
    QBoxLayout,
    QHBoxLayout,
    QListWidget,
    QListWidgetItem,
    QPlainTextEdit,
    QPushButton,
    QVBoxLayout,
    QWidget,
)

from app.errors import one_line
from app.hub.types import RepoDetail
from app.i18n import _
from ui.models.hub_card_text import CardPiece, card_pieces
from ui.models.hub_words import model_title
from ui.panels.hub_link import LinkQuestion, host_text
from ui.theme import MUTED_PX, READING_PX, TITLE_PX, Theme, mono_font, ui_font
from ui.widgets.icons import icon
from ui.widgets.labels import CaptionLabel, ElidedLabel, plain_tooltip

_READING_WIDTH_PX: Final = 760
_LINKS_PX: Final = 260
_WIDE_PX: Final = 900
# So many paragraphs take some milliseconds.
_AT_ONCE: Final = 120
_ADDRESS_ROLE: Final = int(Qt.ItemDataRole.UserRole)


class HubCardView(QWidget):
    """The card.

    Attributes:
        text: its words.
        links: what it links to.
        confirm: the question before a link is opened.

    Signals:
        left(): a person wants to go back to the table.
        link_confirmed(address): a person saw where a link leads and wants it opened.
    """

    left = Signal()
    link_confirmed = Signal(str)

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._detail: RepoDetail | None = None
        self._is_written = False
        self._pieces: Iterator[CardPiece] = iter(())
        self._back = QPushButton(_("Back"))
        self._title = ElidedLabel(kind="title")
        self.text = QPlainTextEdit()
        self._caption = CaptionLabel(_("Links"))
        self.links = QListWidget()
        self.confirm = LinkQuestion()
        self._body = QBoxLayout(QBoxLayout.Direction.LeftToRight)
        self._build()
        self._back.clicked.connect(self.left)
        self.links.itemActivated.connect(self._on_link)
        self.confirm.confirmed.connect(self.link_confirmed)
        self.confirm.left.connect(self.links.setFocus)
        self.set_theme(theme)

    def set_detail(self, detail: RepoDetail) -> None:
        """Take a repo's card; it is laid out when somebody wants to read it."""
        if self._detail is not None and detail.card_markdown == self._detail.card_markdown:
            self._detail = detail
            return
        self._detail = detail
        self._is_written = False
        if self.isVisible():
            self.show_card()

    def show_card(self) -> None:
        """Lay out the card and list its links."""
        detail = self._detail
        if detail is None or self._is_written:
            return
        self._is_written = True
        self._title.setText(_("Model card of {name}").format(name=model_title(detail.summary.name)))
        self.confirm.close_question()
        self._begin()
        self.links.clear()
        for words, address in detail.card_links:
            host = host_text(address)
            shown = one_line(words, 80)
            item = QListWidgetItem(f"{shown} · {host}" if shown and shown != one_line(address, 80) else host)
            item.setData(_ADDRESS_ROLE, address)
            item.setToolTip(plain_tooltip(one_line(address)))
            self.links.addItem(item)
        for part in (self._caption, self.links):
            part.setVisible(bool(detail.card_links))

    def set_theme(self, theme: Theme) -> None:
        """Take the colours of a theme."""
        self._theme = theme
        self._back.setIcon(icon("arrow-left", theme, role="text"))
        if self._is_written:
            self._begin()

    def focus_text(self) -> None:
        """Go to the text, to scroll it by the keys."""
        self.text.setFocus(Qt.FocusReason.OtherFocusReason)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Go back with Esc."""
        if event.key() == Qt.Key.Key_Escape:
            self.left.emit()
        else:
            super().keyPressEvent(event)

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Put the links beside the text, or below it where there is no room."""
        super().resizeEvent(event)
        is_wide = self.width() >= _WIDE_PX
        self._body.setDirection(QBoxLayout.Direction.LeftToRight if is_wide else QBoxLayout.Direction.TopToBottom)
        self.links.setMaximumHeight(16_777_215 if is_wide else 120)
        self.links.setMaximumWidth(_LINKS_PX if is_wide else _READING_WIDTH_PX)

    # ------------------------------------------------------------------------------------- helpers

    def _build(self) -> None:
        self.text.setReadOnly(True)
        self.text.setProperty("kind", "card_text")
        self.text.setAccessibleName(_("Model card"))
        self.text.setTextInteractionFlags(
            Qt.TextInteractionFlag.TextSelectableByMouse | Qt.TextInteractionFlag.TextSelectableByKeyboard
        )
        self.text.setMaximumWidth(_READING_WIDTH_PX)
        self.text.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.text.document().setDocumentMargin(0)
        self.text.setUndoRedoEnabled(False)
        self.links.setAccessibleName(_("Links of the model card"))
        self.links.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.links.setTextElideMode(Qt.TextElideMode.ElideRight)
        head = QHBoxLayout()
        head.setSpacing(12)
        head.addWidget(self._back)
        head.addWidget(self._title, 1)
        beside = QVBoxLayout()
        beside.setSpacing(4)
        beside.addWidget(self._caption)
        beside.addWidget(self.links, 1)
        self._body.setSpacing(24)
        self._body.addWidget(self.text, 1)
        self._body.addLayout(beside)
        self._body.addStretch(0)
        column = QVBoxLayout(self)
        column.setContentsMargins(28, 14, 28, 16)
        column.setSpacing(12)
        column.addLayout(head)
        column.addWidget(self.confirm)
        column.addLayout(self._body, 1)

    def _begin(self) -> None:
        """Begin to lay out the card; a long one comes bit by bit, so that the window never waits for it."""
        assert self._detail is not None
        markdown = self._detail.card_markdown
        self.text.clear()
        self._pieces = card_pieces(markdown) if markdown else iter([CardPiece("text", _("This model has no card."))])
        self._write()
        self.text.moveCursor(QTextCursor.MoveOperation.Start)

    def _write(self) -> None:
        """Put some pieces into the text, each in its type; never as markup."""
        cursor = QTextCursor(self.text.document())
        cursor.movePosition(QTextCursor.MoveOperation.End)
        cursor.beginEditBlock()
        count = 0
        for piece in itertools.islice(self._pieces, _AT_ONCE):
            if not self.text.document().isEmpty() or count:
                cursor.insertBlock(QTextBlockFormat())
            cursor.insertText(piece.text, self._format(piece))
            count += 1
        cursor.endEditBlock()
        if count == _AT_ONCE:
            QTimer.singleShot(0, self, self._write)

    def _format(self, piece: CardPiece) -> QTextCharFormat:
        made = QTextCharFormat()
        if piece.kind == "code":
            made.setFont(mono_font(MUTED_PX))
        elif piece.kind == "heading":
            made.setFont(ui_font(TITLE_PX if piece.level <= 2 else READING_PX, QFont.Weight.DemiBold))
        else:
            made.setFont(ui_font(READING_PX))
        made.setForeground(self._theme.color("muted" if piece.kind == "code" else "text"))
        return made

    def _on_link(self, item: QListWidgetItem) -> None:
        self.confirm.ask_link(str(item.data(_ADDRESS_ROLE)))
