"""The chat screen: the list of chats, the chat, and the foldable cutaway panel beside it.

Opens, makes, renames and deletes chats; a chat is stored when its first prompt is sent, never before.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import Qt, Signal, Slot
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QHBoxLayout, QWidget

from app.chat.messages import DeletedChat
from app.chat.session import ChatSession
from app.chat.session_events import ChatChanged, SessionEvent
from app.chat.store import StoreError
from app.context import AppContext
from app.engines.backend_choice import backends_for, is_loadable
from app.i18n import _
from app.models.entry import ModelEntry
from app.units import bytes_text, count_text
from backends.registry import BACKENDS
from ui.bridge import Bridge
from ui.engine_status import SWITCHED_KEY, EngineStatus
from ui.models.chat_list_model import ChatListModel
from ui.panels.chat_list_panel import ChatListPanel
from ui.panels.chat_panel import ChatPanel
from ui.tasks import Tasks
from ui.theme import Theme

if TYPE_CHECKING:
    from ui.xray_desk import XrayDesk
from ui.widgets.chip import BackendChoice

# What a chat needs at least; where the list of chats and the cutaway panel do not leave it, the list gives way.
_CHAT_PX = 440
# A longer menu is no help: the Models screen finds the others.
_CHIP_MODELS = 30


class ChatScreen(QWidget):
    """Chats and the one that is open.

    Attributes:
        chat: the middle column.
        list: the chats at the left.
        status: the engine in words.
        xrays: reads answers with other quantizations; None until one was asked for.

    Signals:
        file_requested(): a person wants to choose a model file.
        pick_requested(): a person wants to see the models that were picked for this machine.
        fold_requested(): a person wants the cutaway panel shown or hidden.
    """

    file_requested = Signal()
    pick_requested = Signal()
    fold_requested = Signal()

    def __init__(
        self, context: AppContext, bridge: Bridge, theme: Theme, tasks: Tasks, parent: QWidget | None = None
    ) -> None:
        super().__init__(parent)
        self._context = context
        self._bridge = bridge
        self._session: ChatSession | None = None
        self._deleted_ids: set[int] = set()
        self._tasks, self._theme = tasks, theme
        self.xrays: XrayDesk | None = None
        self.list = ChatListPanel(ChatListModel(self), theme)
        self.chat = ChatPanel(bridge, theme)
        self.status = EngineStatus(context, bridge, self.chat.notices, tasks, self)
        self._side: QWidget | None = None
        self._row = QHBoxLayout(self)
        self._row.setContentsMargins(0, 0, 0, 0)
        self._row.setSpacing(0)
        self._row.addWidget(self.list)
        self._row.addWidget(self.chat, 1)
        self._connect()
        self.chat.follow(self.status)
        self.list.model.set_chats(context.store.chats())
        self.chat.show_session(None)

    def _connect(self) -> None:
        self._bridge.session_event.connect(self._on_session_event)
        self.list.chat_selected.connect(self.open_chat)
        self.list.new_requested.connect(self.new_chat)
        self.list.rename_requested.connect(self._on_rename)
        self.list.delete_requested.connect(self.delete_chat)
        self.list.undo_bar.expired.connect(self._on_undo_expired)
        self.chat.prompt_sent.connect(self.send)
        self.chat.model_chosen.connect(self.use_model)
        self.chat.backend_chosen.connect(self.switch_backend)
        self.chat.file_requested.connect(self.file_requested)
        self.chat.pick_requested.connect(self.pick_requested)
        self.chat.fold_requested.connect(self.fold_requested)
        self.chat.xray_requested.connect(self.open_xray)

    # ----------------------------------------------------------------------------------------- public

    def set_side_panel(self, panel: QWidget) -> None:
        """Put the cutaway panel at the right."""
        self._side = panel
        self._row.addWidget(panel)
        self.make_room()

    @Slot()
    def make_room(self) -> None:
        """Hide the list of chats while the cutaway panel is open and the window too narrow for both."""
        side_px = self._side.width() if self._side is not None and not self._side.isHidden() else 0
        self.list.setVisible(not side_px or self.width() >= self.list.width() + side_px + _CHAT_PX)

    @Slot()
    def refresh_models(self) -> None:
        """Show the library's models in the chip, with what there is room for."""
        from app.models.fit_words import fit_short  # not needed for the first paint

        entries = [entry for entry in self._context.library.entries() if is_loadable(entry)][:_CHIP_MODELS]
        current = self.status.entry.key if self.status.entry else ""
        fits = self._context.advisor.fits(entries)
        self.chat.chip.set_entries(
            [(e.key, f"{e.name} · {e.quantization} · {fit_short(fits[e.key])}") for e in entries], current
        )
        self.chat.chip.set_backends(self._backend_choices(), self.status.backend)

    @Slot(str)
    def use_model(self, key: str) -> None:
        """Load a model of the library; nothing happens for an unknown key."""
        entry = next((entry for entry in self._context.library.entries() if entry.key == key), None)
        if entry is not None:
            self.use_entry(entry)

    def use_entry(self, entry: ModelEntry) -> None:
        """Load this model."""
        self.chat.notices.dismiss(SWITCHED_KEY)
        self.status.load(entry)
        self.refresh_models()

    @Slot(str)
    def switch_backend(self, name: str) -> None:
        """Load the present model by another backend; the chat stays, and what that means for it is said."""
        if name == self.status.backend or self.status.entry is None:
            return
        self.status.switch(name)
        title = BACKENDS[name].title
        if self._session is None or not self._session.messages():
            return
        words = _("The chat is kept. {backend} reads it anew with your next prompt.").format(backend=title)
        if self.chat.used_tokens:
            words = _("The chat is kept. {backend} reads its {count} tokens anew with your next prompt.").format(
                backend=title, count=count_text(self.chat.used_tokens)
            )
        hint = _("What one engine has computed is of no use to another; stored answers keep their exact tokens.")
        self.chat.notices.show_notice(SWITCHED_KEY, words, hint)

    @Slot(str)
    def send(self, text: str) -> None:
        """Send a prompt in the open chat, storing the chat first if it is new."""
        if not self.status.is_ready:
            self.file_requested.emit()
            return
        if self._session is None:
            chat = self._context.store.add_chat()
            self.list.model.put(chat)
            self._session = self._context.session(chat, self._bridge.on_session_event)
            self.list.select(chat.chat_id)
            self.chat.show_session(self._session)
        self.chat.notices.dismiss(SWITCHED_KEY)
        self._session.send(text)

    @Slot()
    def new_chat(self) -> None:
        """Show an empty chat; an answer under way in another one goes on."""
        self._session = None
        self.list.select(None)
        self.chat.show_session(None)
        self.chat.composer.prompt.setFocus(Qt.FocusReason.ShortcutFocusReason)

    @Slot(object)
    def open_chat(self, chat_id: int) -> None:
        """Show a stored chat."""
        self._session = self._context.session(self._context.store.chat(chat_id), self._bridge.on_session_event)
        self.list.select(chat_id)
        self.chat.show_session(self._session)

    @Slot(object)
    def delete_chat(self, chat_id: int) -> None:
        """Delete a chat and offer to bring it back."""
        neighbour_id = self.list.model.neighbour_of(chat_id)
        is_open = self._session is not None and self._session.chat.chat_id == chat_id
        self._context.end_session(chat_id)
        deleted = self._context.store.delete_chat(chat_id)
        self.list.model.remove(chat_id)
        if is_open and neighbour_id is not None:
            self.open_chat(neighbour_id)
        elif is_open:
            self.new_chat()
        title = deleted.chat.title or _("New chat")
        self.list.undo_bar.offer(_("Deleted “{title}”").format(title=title), lambda: self._on_undo(deleted))

    @Slot(object)
    def open_xray(self, message_id: int) -> None:
        """Offer the quantizations that may read an answer of the open chat."""
        if self._session is not None:
            if self.xrays is None:
                from ui.xray_desk import XrayDesk  # numpy and more that the first paint does not need

                self.xrays = XrayDesk(self._context, self._tasks, self._theme, self)
            self.xrays.open(self._session, message_id)

    def close_xrays(self) -> None:
        """End what reads an answer; the window is going."""
        if self.xrays is not None:
            self.xrays.close()

    def set_theme(self, theme: Theme) -> None:
        """Take over another theme's colours."""
        self._theme = theme
        self.list.set_theme(theme)
        self.chat.set_theme(theme)
        if self.xrays is not None:
            self.xrays.set_theme(theme)

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Show what there is room for."""
        super().resizeEvent(event)
        self.make_room()

    def _backend_choices(self) -> list[BackendChoice]:
        """Return the backends that can load the present model, each with what there is room for."""
        from app.models.fit_words import fit_short  # not needed for the first paint

        entry, choices = self.status.entry, list[BackendChoice]()
        if entry is None:
            return choices
        for backend in backends_for(entry):
            if not backend.is_installed:
                words = _("not installed; `pip install {packages}` brings it").format(packages=backend.packages)
                choices.append(BackendChoice(backend.name, f"{backend.title} · {words}", False))
                continue
            fit = self._context.advisor.fit(entry, self._context.load_params(entry, backend.name), backend.name)
            needed = bytes_text(fit.estimate.needed_bytes) if fit.estimate is not None else ""
            facts = filter(None, (backend.title, needed, fit_short(fit)))
            choices.append(BackendChoice(backend.name, " · ".join(facts)))
        return choices

    # ------------------------------------------------------------------------------------------ slots

    def _on_undo(self, deleted: DeletedChat) -> None:
        self._context.store.restore_chat(deleted)
        self.list.model.put(deleted.chat)
        self.open_chat(deleted.chat.chat_id)

    @Slot()
    def _on_undo_expired(self) -> None:
        self._context.store.vacuum()

    @Slot(object, str)
    def _on_rename(self, chat_id: int, title: str) -> None:
        session = self._context.session(self._context.store.chat(chat_id), self._bridge.on_session_event)
        session.rename(title)

    @Slot(object)
    def _on_session_event(self, event: SessionEvent) -> None:
        if not isinstance(event, ChatChanged):
            return
        try:
            chat = self._context.store.chat(event.chat_id)
        except StoreError:
            return  # deleted while its answer was ending
        self.list.model.put(chat)
        if self._session is not None and self._session.chat.chat_id == event.chat_id:
            self.chat.show_title(chat.title)
