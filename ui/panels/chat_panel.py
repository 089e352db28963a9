"""The middle of the chat screen: title and chip, notices, messages, composer.

Shows one session. It knows no engine: the chip's and the live line's words come from EngineStatus.
"""

from __future__ import annotations

from PySide6.QtCore import Signal, Slot
from PySide6.QtWidgets import QHBoxLayout, QSizePolicy, QStackedWidget, QToolButton, QVBoxLayout, QWidget

from app.chat.messages import MessageState
from app.chat.session import ChatSession
from app.chat.session_events import (
    AnswerWaiting,
    ContextMeasured,
    MessageAdded,
    MessageChanged,
    NoticeRaised,
    SessionEvent,
)
from app.i18n import _
from ui.actions import ActionId, tooltip_for
from ui.bridge import Bridge
from ui.engine_status import EngineStatus
from ui.notifications import NoticeBar, NoticeLevel
from ui.panels.first_run_card import FirstRunCard
from ui.panels.message_items import can_xray, figures_text, message_item, state_text
from ui.theme import Theme
from ui.widgets.chip import ModelChip
from ui.widgets.composer import Composer
from ui.widgets.icons import icon
from ui.widgets.labels import ElidedLabel
from ui.widgets.message_view import MessageView

_MARGIN_PX = 28
_TITLE_PX = 140  # what the chip leaves to the title in a narrow window
_COLUMN_PX = 760


class ChatPanel(QWidget):
    """One chat.

    Attributes:
        composer: where the prompt is written.
        notices: what the program says by itself.
        used_tokens: what the chat takes of the context, as it was last counted; 0 where nobody counted.
        _session: the chat's session; None while the chat is empty and not stored.
        _last_id: the last message in the view, the only one that text is appended to; 0 for none.
        _num_shown: how many characters of the answer under way are in the view. Text comes a frame later than the
            answer's end and than what a session tells when it is opened, so it may be there already.

    Signals:
        prompt_sent(str): a person sent this text.
        fold_requested(): a person wants the cutaway panel shown or hidden.
        model_chosen(str): a person chose an entry of the chip.
        backend_chosen(str): a person chose another backend for the present model.
        file_requested(): a person wants to choose a model file.
        pick_requested(): a person wants to see the models that were picked for this machine.
        xray_requested(object): a person wants the answer with this message id read by another quantization.
    """

    prompt_sent = Signal(str)
    fold_requested = Signal()
    model_chosen = Signal(str)
    backend_chosen = Signal(str)
    file_requested = Signal()
    pick_requested = Signal()
    xray_requested = Signal(object)

    def __init__(self, bridge: Bridge, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.notices = NoticeBar(theme)
        self.composer = Composer(theme)
        self.chip = ModelChip(theme)
        self.view = MessageView(theme)
        self.card = FirstRunCard(theme)
        self._title = ElidedLabel(kind="title")
        self._fold = QToolButton()
        self._pages = QStackedWidget()
        self._session: ChatSession | None = None
        self._status: EngineStatus | None = None
        self._panel_line = ""
        self.used_tokens = 0
        self._last_id = 0
        self._num_shown = 0
        self._build()
        self._connect(bridge)
        self.set_theme(theme)

    def _build(self) -> None:
        self._title.setMinimumWidth(_TITLE_PX)
        self._fold.setToolTip(tooltip_for(ActionId.FOLD_PANEL))
        self._fold.setAccessibleName(_("Show or hide the cutaway panel"))
        self._fold.setAutoRaise(True)
        header = QHBoxLayout()
        header.setSpacing(8)
        header.addWidget(self._title, 1)
        header.addWidget(self.chip)
        header.addWidget(self._fold)
        card_page = QWidget()
        card_column = QVBoxLayout(card_page)
        card_column.setContentsMargins(0, 0, 0, 0)
        card_column.addStretch(2)
        card_row = QHBoxLayout()
        card_row.addStretch(1)
        card_row.addWidget(self.card, 8)
        card_row.addStretch(1)
        card_column.addLayout(card_row)
        card_column.addStretch(3)
        self._pages.addWidget(card_page)
        self._pages.addWidget(self.view)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 12, 0, 18)
        column.setSpacing(12)
        column.addLayout(_inset(header))
        column.addLayout(_inset(self.notices, _COLUMN_PX))
        column.addWidget(self._pages, 1)
        column.addLayout(_inset(self.composer, _COLUMN_PX))

    def _connect(self, bridge: Bridge) -> None:
        bridge.session_event.connect(self._on_session_event)
        bridge.text_appended.connect(self._on_text_appended)
        self.composer.send_requested.connect(self.prompt_sent)
        self.composer.stop_requested.connect(self.stop)
        self.card.prompt_chosen.connect(self.prompt_sent)
        self.card.choose_file_requested.connect(self.file_requested)
        self.card.pick_requested.connect(self.pick_requested)
        self.chip.chosen.connect(self.model_chosen)
        self.chip.backend_chosen.connect(self.backend_chosen)
        self._fold.clicked.connect(self.fold_requested)
        self.view.xray_requested.connect(self.xray_requested)

    # ----------------------------------------------------------------------------------------- public

    def follow(self, status: EngineStatus) -> None:
        """Show this engine's words in the chip, the live line and the card."""
        self._status = status
        status.changed.connect(self._on_status_changed)
        self._on_status_changed()

    def show_session(self, session: ChatSession | None) -> None:
        """Show a chat, or an empty one."""
        self._session = session
        messages = session.messages() if session is not None else []
        self.view.set_messages([message_item(message) for message in messages])
        self._last_id = messages[-1].message_id if messages else 0
        self._num_shown = len(messages[-1].text) if messages else 0
        self.composer.set_busy(session is not None and session.is_waiting)
        self.composer.set_context(0, 0)
        self.used_tokens = 0
        self.show_title(session.chat.title if session is not None else "")
        self._pages.setCurrentIndex(1 if messages else 0)
        if session is not None:
            session.measure_context()

    def show_title(self, title: str) -> None:
        """Show the chat's title."""
        self._title.setText(title or _("New chat"))

    def set_panel_line(self, text: str) -> None:
        """Show the cutaway panel's one-line summary while the engine has nothing to say."""
        self._panel_line = text
        self._show_line()

    def set_theme(self, theme: Theme) -> None:
        """Take over another theme's colours."""
        for part in (self.notices, self.composer, self.chip, self.view, self.card):
            part.set_theme(theme)
        self._fold.setIcon(icon("dock-right", theme))

    @Slot()
    def stop(self) -> None:
        """End the answer under way."""
        if self._session is not None:
            self._session.stop()

    # ------------------------------------------------------------------------------------------ slots

    @Slot()
    def _on_status_changed(self) -> None:
        assert self._status is not None
        self.chip.set_text(self._status.chip_text)
        self.chip.mark_backend(self._status.backend)
        self.composer.set_ready(self._status.is_ready, _("Choose a model first"))
        entry = self._status.entry
        if entry is None:
            self.card.show_no_model()
        elif entry.origin == "starter":
            self.card.show_starter()
        else:
            self.card.show_model(entry.name)
        self._show_line()

    @Slot(object)
    def _on_session_event(self, event: SessionEvent) -> None:
        if isinstance(event, NoticeRaised):
            self.notices.show_notice(event.key, event.words.message, event.words.hint, NoticeLevel.WARNING)
        if self._session is None or _chat_of(event) != self._session.chat.chat_id:
            return
        match event:
            case MessageAdded():
                self._pages.setCurrentIndex(1)
                self.view.append_item(message_item(event.message))
                self._last_id = event.message.message_id
                self._num_shown = len(event.message.text)
            case MessageChanged():
                self._on_message_changed(event)
            case ContextMeasured():
                self.used_tokens = event.used_tokens
                self.composer.set_context(event.used_tokens, event.total_tokens)
            case AnswerWaiting():
                self.composer.set_busy(event.is_waiting)

    @Slot(object, object, int, str)
    def _on_text_appended(self, chat_id: int, message_id: int, start: int, text: str) -> None:
        if self._session is None or chat_id != self._session.chat.chat_id:
            return
        if message_id != self._last_id:
            return  # the last frame of an answer that is whole in the view already
        if new_text := text[max(0, self._num_shown - start) :]:
            self.view.append_text(message_id, new_text)
            self._num_shown += len(new_text)

    def _on_message_changed(self, event: MessageChanged) -> None:
        message = event.message
        self.view.update_item(
            message.message_id,
            text=message.text,
            figures=figures_text(message.stats),
            state_text=state_text(message),
            is_streaming=message.state is MessageState.STREAMING,
            can_xray=can_xray(message),
        )
        self._num_shown = len(message.text)

    def _show_line(self) -> None:
        line = self._status.line if self._status is not None else ""
        self.composer.set_live_text(line or self._panel_line)


def _chat_of(event: SessionEvent) -> int:
    """Return the chat an event belongs to; 0 for none."""
    if isinstance(event, MessageAdded | MessageChanged):
        return event.message.chat_id
    return 0 if isinstance(event, NoticeRaised) else event.chat_id


def _inset(content: QWidget | QHBoxLayout, column_px: int = 0) -> QHBoxLayout:
    """Return a row with the column's margins, centred at most column_px wide if that is given."""
    row = QHBoxLayout()
    row.setContentsMargins(_MARGIN_PX, 0, _MARGIN_PX, 0)
    if isinstance(content, QHBoxLayout):
        row.addLayout(content)
        return row
    if column_px:
        content.setMaximumWidth(column_px)
        content.setSizePolicy(QSizePolicy.Policy.Expanding, content.sizePolicy().verticalPolicy())
    row.addWidget(content)
    return row
