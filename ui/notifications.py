"""What the window says by itself: notices that stay until dismissed, and the bar that offers an undo.

Every fallback and every error is said here in words and stays on screen. Knows not what went wrong: it is given the
words.
"""

from __future__ import annotations

import enum
from collections.abc import Callable

from PySide6.QtCore import QSize, Qt, QTimer, Signal
from PySide6.QtGui import QAccessible, QAccessibleAnnouncementEvent, QAccessibleEvent
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QPushButton, QToolButton, QVBoxLayout, QWidget

from app.i18n import _, ngettext
from ui.theme import Theme
from ui.widgets.icons import icon
from ui.widgets.labels import ElidedLabel, MutedLabel, plain_words
from ui.widgets.wrapped_label import WrappedLabel

# More would push the chat off a small window; the others wait until one is dismissed.
_MAX_SHOWN = 3

_UNDO_MS = 10_000
_ICON_PX = 20


class NoticeLevel(enum.StrEnum):
    """How grave a notice is."""

    FACT = "fact"  # worth knowing; nothing is wrong
    WARNING = "warning"  # it goes on, but not as asked
    ERROR = "error"  # something asked for was not done


_ICONS = {
    NoticeLevel.FACT: ("information-outline", "muted"),
    NoticeLevel.WARNING: ("alert-outline", "kv"),
    NoticeLevel.ERROR: ("alert-circle-outline", "limit"),
}


_GRAVEST_FIRST = (NoticeLevel.ERROR, NoticeLevel.WARNING, NoticeLevel.FACT)


class NoticeBar(QWidget):
    """The notices at the top of the middle column, the gravest and newest first, each until it is dismissed.

    Attributes:
        _notices: by key, oldest first; a key is there once.
        _theme: gives the icons' colours.

    Signals:
        dismissed(key): a person closed a notice.
    """

    dismissed = Signal(str)

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._notices: dict[str, _Notice] = {}
        self._more = MutedLabel()
        self._layout = QVBoxLayout(self)
        self._layout.setContentsMargins(0, 0, 0, 0)
        self._layout.setSpacing(8)
        self._layout.addWidget(self._more)
        self._arrange()

    @property
    def keys(self) -> tuple[str, ...]:
        """The keys of all notices, oldest first."""
        return tuple(self._notices)

    def show_notice(
        self,
        key: str,
        message: str,
        hint: str = "",
        level: str = NoticeLevel.FACT,
        action_text: str = "",
        callback: Callable[[], None] | None = None,
    ) -> None:
        """Show a notice, or change the one that has this key already.

        Args:
            key: what the notice is about; a second notice of one key replaces the first where it stands.
            message: what happened, plain text.
            hint: what to do, plain text.
            level: a NoticeLevel.
            action_text: words of the one button; "" for none.
            callback: called when the button is pressed; the notice stays until dismiss().
        """
        notice = self._notices.get(key)
        if notice is None:
            notice = _Notice(key)
            notice.closed.connect(self._on_closed)
            self._notices[key] = notice
        if notice.set_words(message, hint, NoticeLevel(level), action_text, callback):
            notice.set_theme(self._theme)
            self._arrange()
            notice.announce()

    def dismiss(self, key: str) -> None:
        """Take a notice away; nothing happens when it is not there."""
        notice = self._notices.pop(key, None)
        if notice is not None:
            self._layout.removeWidget(notice)
            notice.hide()
            notice.deleteLater()
            self._arrange()

    def set_theme(self, theme: Theme) -> None:
        """Draw the icons in a theme's colours."""
        self._theme = theme
        for notice in self._notices.values():
            notice.set_theme(theme)

    def _on_closed(self, key: str) -> None:
        self.dismiss(key)
        self.dismissed.emit(key)

    def _arrange(self) -> None:
        """Show the gravest and newest notices, count the others, and take no room when there are none."""
        newest_first = reversed(self._notices.values())
        for place, notice in enumerate(sorted(newest_first, key=lambda notice: _GRAVEST_FIRST.index(notice.level))):
            self._layout.insertWidget(place, notice)
            notice.setVisible(place < _MAX_SHOWN)
        waiting = len(self._notices) - _MAX_SHOWN
        self._more.setVisible(waiting > 0)
        self._more.setText(ngettext("{count} more notice", "{count} more notices", waiting).format(count=waiting))
        self.setVisible(bool(self._notices))


class _Notice(QFrame):
    """One notice.

    Attributes:
        level: how grave it is.

    Signals:
        closed(key): its cross was pressed.
    """

    closed = Signal(str)

    def __init__(self, key: str) -> None:
        super().__init__()
        self.setProperty("kind", "notice")
        self._key = key
        self.level = NoticeLevel.FACT
        self._callback: Callable[[], None] | None = None
        self._icon = QLabel()
        self._message = WrappedLabel()
        self._hint = WrappedLabel(kind="muted")
        self._action = QPushButton()
        self._action.clicked.connect(self._on_action)
        self._close = QToolButton()
        self._close.setAccessibleName(_("Dismiss this notice"))
        self._close.setToolTip(_("Dismiss"))
        self._close.clicked.connect(self._on_close)
        words = QVBoxLayout()
        words.setSpacing(2)
        words.addWidget(self._message)
        words.addWidget(self._hint)
        layout = QHBoxLayout(self)
        layout.setContentsMargins(12, 8, 8, 8)
        layout.setSpacing(12)
        layout.addWidget(self._icon, 0, Qt.AlignmentFlag.AlignVCenter)
        layout.addLayout(words, 1)
        layout.addWidget(self._action, 0, Qt.AlignmentFlag.AlignVCenter)
        layout.addWidget(self._close, 0, Qt.AlignmentFlag.AlignVCenter)

    def set_words(
        self, message: str, hint: str, level: NoticeLevel, action_text: str, callback: Callable[[], None] | None
    ) -> bool:
        """Take over what the notice says and does; returns whether anything that is seen changed."""
        self._callback = callback
        seen = (self.accessibleName(), self._action.text())
        self.level = level
        self._message.setText(message)
        self._hint.setText(hint)
        self._hint.setVisible(bool(hint))
        self._action.setText(plain_words(action_text))
        self._action.setVisible(bool(action_text))
        self.setAccessibleName(f"{_level_words(level)}: {message} {hint}".rstrip())
        self.setProperty("level", level.value)
        self.style().unpolish(self)
        self.style().polish(self)
        return seen != (self.accessibleName(), self._action.text())

    def set_theme(self, theme: Theme) -> None:
        """Draw the icons in a theme's colours."""
        name, role = _ICONS[self.level]
        self._icon.setPixmap(icon(name, theme, role).pixmap(QSize(_ICON_PX, _ICON_PX), self.devicePixelRatio()))
        self._close.setIcon(icon("close", theme))

    def announce(self) -> None:
        """Tell a screen reader, at once for an error."""
        QAccessible.updateAccessibility(QAccessibleEvent(self, QAccessible.Event.Alert))
        event = QAccessibleAnnouncementEvent(self, self.accessibleName())
        if self.level is NoticeLevel.ERROR:
            event.setPoliteness(QAccessible.AnnouncementPoliteness.Assertive)
        QAccessible.updateAccessibility(event)

    def _on_action(self) -> None:
        if self._callback is not None:
            self._callback()

    def _on_close(self) -> None:
        self.closed.emit(self._key)


class UndoBar(QFrame):
    """Says what was just done and offers to take it back, for ten seconds or until something else is done.

    The time stands still while the mouse or the keyboard is on the bar.

    Signals:
        expired(): the offer has ended unused.
    """

    expired = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setProperty("kind", "undo")
        self._on_undo: Callable[[], None] | None = None
        self._message = ElidedLabel(kind="")
        self._button = QPushButton(_("Undo"))
        self._button.clicked.connect(self.undo)
        self._timer = QTimer(self)
        self._timer.setSingleShot(True)
        self._timer.setInterval(_UNDO_MS)
        self._timer.timeout.connect(self._on_timeout)
        layout = QHBoxLayout(self)
        layout.setContentsMargins(12, 8, 8, 8)
        layout.addWidget(self._message, 1)
        layout.addWidget(self._button)
        self.hide()

    def offer(self, message: str, on_undo: Callable[[], None]) -> None:
        """Offer to take something back; an earlier offer ends.

        Args:
            message: what was done, such as "Chat deleted."
            on_undo: takes it back; called at most once.
        """
        self.finish()
        self._on_undo = on_undo
        self._message.setText(message)
        self.setAccessibleName(message)
        self.show()
        self._timer.start()
        QAccessible.updateAccessibility(QAccessibleAnnouncementEvent(self, f"{message} {self._button.text()}"))

    def undo(self) -> None:
        """Take back what is offered; nothing happens when nothing is."""
        on_undo, self._on_undo = self._on_undo, None
        self._end()
        if on_undo is not None:
            on_undo()

    def finish(self) -> None:
        """End the offer unused, at the end of the program for one."""
        was_open, self._on_undo = self._on_undo is not None, None
        self._end()
        if was_open:
            self.expired.emit()

    def _on_timeout(self) -> None:
        if self.underMouse() or self._button.hasFocus():
            self._timer.start()
        else:
            self.finish()

    def _end(self) -> None:
        self._timer.stop()
        self.hide()


def page_with_notices(notices: NoticeBar, panel: QWidget) -> QWidget:
    """Return a screen: the notices, where there are some, above the panel."""
    page = QWidget()
    layout = QVBoxLayout(page)
    layout.setContentsMargins(0, 0, 0, 0)
    layout.setSpacing(0)
    layout.addWidget(notices)
    layout.addWidget(panel, 1)
    return page


def _level_words(level: NoticeLevel) -> str:
    words = {NoticeLevel.FACT: _("Notice"), NoticeLevel.WARNING: _("Warning"), NoticeLevel.ERROR: _("Error")}
    return words[level]
