"""The chats as an item model: newest first, changed row by row so that a selection and an open editor survive.

Knows no store: it is given the chats, and asks for a new title by a signal. `ChatFilter` shows those whose title
holds the words searched for.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable
from typing import Any

from PySide6.QtCore import (
    QAbstractListModel,
    QModelIndex,
    QObject,
    QPersistentModelIndex,
    QSortFilterProxyModel,
    Qt,
    Signal,
)

from app.chat.messages import Chat
from app.i18n import _
from ui.widgets.labels import plain_tooltip

CHAT_ID_ROLE = int(Qt.ItemDataRole.UserRole)

# A list shows the beginning; a title is often the first words of a prompt of any length.
_MAX_TITLE_CHARACTERS = 200

Index = QModelIndex | QPersistentModelIndex

# Building a list anew is cheaper than moving more rows than this one by one.
_MAX_MOVES = 32


class ChatListModel(QAbstractListModel):
    """The chats, the last used one first.

    Attributes:
        _chats: in the order of the rows.

    Signals:
        rename_requested(chat_id, title): a person typed a title; the row changes when put() brings the new chat.
    """

    rename_requested = Signal(object, str)  # ids are up to 2**53, more than a C++ int

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._chats: list[Chat] = []

    def set_chats(self, chats: Iterable[Chat]) -> None:
        """Show exactly these chats."""
        wanted = {chat.chat_id: chat for chat in chats}
        known = {chat.chat_id: chat for chat in self._chats}
        changed = [chat for chat in wanted.values() if chat != known.get(chat.chat_id)]
        gone = known.keys() - wanted.keys()
        if len(changed) + len(gone) > _MAX_MOVES:
            self.beginResetModel()
            self._chats = sorted(wanted.values(), key=_newest_first)
            self.endResetModel()
            return
        for chat_id in gone:
            self.remove(chat_id)
        for chat in changed:
            self.put(chat)

    def put(self, chat: Chat) -> None:
        """Add a chat, or show its new title and place."""
        row = self.row_of(chat.chat_id)
        if row is None:
            place = self._place_of(chat)
            self.beginInsertRows(QModelIndex(), place, place)
            self._chats.insert(place, chat)
            self.endInsertRows()
            return
        if self._chats[row].title != chat.title:
            self._chats[row] = chat
            index = self.index(row)
            self.dataChanged.emit(index, index)
        self._move(row, chat)

    def remove(self, chat_id: int) -> None:
        """Take a chat out of the list; nothing happens when it is not there."""
        row = self.row_of(chat_id)
        if row is not None:
            self.beginRemoveRows(QModelIndex(), row, row)
            del self._chats[row]
            self.endRemoveRows()

    def row_of(self, chat_id: int) -> int | None:
        """Return the row of a chat, or None."""
        return next((row for row, chat in enumerate(self._chats) if chat.chat_id == chat_id), None)

    def neighbour_of(self, chat_id: int) -> int | None:
        """Return the chat to go to when this one is deleted: the one below it, else the one above, else None."""
        row = self.row_of(chat_id)
        if row is None or len(self._chats) < 2:
            return None
        return self._chats[row + 1 if row + 1 < len(self._chats) else row - 1].chat_id

    def rowCount(self, parent: Index = QModelIndex()) -> int:  # noqa: B008 - Qt's own default
        """Return the number of chats."""
        return 0 if parent.isValid() else len(self._chats)

    def flags(self, index: Index) -> Qt.ItemFlag:
        """Return that every chat can be selected and renamed."""
        flags = super().flags(index)
        return flags | Qt.ItemFlag.ItemIsEditable if index.isValid() else flags

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        """Return what a row shows for a role."""
        if not index.isValid() or index.row() >= len(self._chats):
            return None
        chat = self._chats[index.row()]
        match role:
            case Qt.ItemDataRole.DisplayRole | Qt.ItemDataRole.AccessibleTextRole:
                return shown_title(chat)
            case Qt.ItemDataRole.EditRole:
                return " ".join(chat.title.split())
            case Qt.ItemDataRole.ToolTipRole:
                return plain_tooltip(shown_title(chat))
            case _:
                return chat.chat_id if role == CHAT_ID_ROLE else None

    def setData(self, index: Index, value: Any, role: int = Qt.ItemDataRole.EditRole) -> bool:
        """Ask for a new title; an unchanged one asks for nothing."""
        if not index.isValid() or role != Qt.ItemDataRole.EditRole:
            return False
        chat = self._chats[index.row()]
        title = " ".join(str(value).split())
        if title != " ".join(chat.title.split()):
            self.rename_requested.emit(chat.chat_id, title)
        return True

    def _move(self, row: int, chat: Chat) -> None:
        """Put the chat of a row where its time places it now."""
        without = self._chats[:row] + self._chats[row + 1 :]
        place = next((i for i, other in enumerate(without) if _newest_first(chat) < _newest_first(other)), len(without))
        if place != row:
            # Qt counts the place before the row is taken out
            self.beginMoveRows(QModelIndex(), row, row, QModelIndex(), place if place < row else place + 1)
            without.insert(place, chat)
            self._chats = without
            self.endMoveRows()
        else:
            self._chats[row] = chat

    def _place_of(self, chat: Chat) -> int:
        key = _newest_first(chat)
        return next((row for row, other in enumerate(self._chats) if key < _newest_first(other)), len(self._chats))


class ChatFilter(QSortFilterProxyModel):
    """Shows the chats whose title holds every word searched for; case and accents do not count.

    Attributes:
        _words: the words, folded; none lets every chat through.
    """

    def __init__(self, source: ChatListModel, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._words: tuple[str, ...] = ()
        self.setSourceModel(source)

    def search(self, text: str) -> None:
        """Show the chats that hold the words of this text."""
        words = tuple(folded(text).split())
        if words != self._words:
            self._words = words
            self.invalidate()

    def filterAcceptsRow(self, source_row: int, source_parent: Index) -> bool:
        """Return whether the chat of a row is shown."""
        if not self._words:
            return True
        title = folded(str(self.sourceModel().index(source_row, 0, source_parent).data()))
        return all(word in title for word in self._words)


def shown_title(chat: Chat) -> str:
    """Return a chat's title on one line, or the words for a chat without one."""
    return " ".join(chat.title[: 4 * _MAX_TITLE_CHARACTERS].split())[:_MAX_TITLE_CHARACTERS] or _("New chat")


def folded(text: str) -> str:
    """Return the text as it is compared in a search: no case, no accents ("Kraków" is found by "krakow")."""
    decomposed = unicodedata.normalize("NFKD", text.casefold())
    return "".join(c for c in decomposed if not unicodedata.combining(c))


def _newest_first(chat: Chat) -> tuple[float, int]:
    return (-chat.updated_s, -chat.chat_id)
