"""The transcript of a chat: plain streaming text, drawn by ourselves so that length costs nothing.

Only what is near the eye is laid out, text that grows lays out its last paragraph only, and a frame is painted once.
Nothing here reads markup, loads a picture or opens a link. Knows no session: the panel feeds it items and text.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from PySide6.QtCore import QEvent, QPoint, QPointF, QRect, QRectF, Qt, Signal
from PySide6.QtGui import (
    QContextMenuEvent,
    QFocusEvent,
    QGuiApplication,
    QHelpEvent,
    QKeyEvent,
    QKeySequence,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QPen,
    QResizeEvent,
)
from PySide6.QtWidgets import QAbstractScrollArea, QMenu, QToolTip, QWidget

from app.i18n import _
from ui.theme import Theme
from ui.widgets.icon_button import IconButton
from ui.widgets.labels import plain_tooltip
from ui.widgets.message_layout import ASSISTANT, USER, MessageItem, TranscriptStyle
from ui.widgets.message_painter import MessagePainter
from ui.widgets.mouse_marking import MouseMarking
from ui.widgets.text_selection import Position, TextSelection
from ui.widgets.transcript import Transcript

COLUMN_PX: Final = 760
MARGIN_PX: Final = 28

# Heights are estimates until laid out, so what is laid out can move; it comes to rest in two or three rounds.
_MAX_SETTLE_ROUNDS: Final = 6

_SCROLL_STEP_PX: Final = 40
_JUMP_PX: Final = 32
_COPY_PX: Final = 28
_ACTION_GAP_PX: Final = 4
_ACCESSIBLE_CHARS: Final = 4000


class MessageView(QAbstractScrollArea):
    """Shows messages and lets them be read, marked and copied.

    It follows the end while the view is at the end; where the reader has scrolled up it stays, and a button leads back.

    Signals:
        xray_requested(key): a person wants this answer read by another quantization.
    """

    xray_requested = Signal(object)

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._painter = MessagePainter(theme)
        self._transcript = Transcript(TranscriptStyle.of_system(), COLUMN_PX)
        self._selection = TextSelection(self._transcript.unit_around)
        self._follows_end = True
        self._is_settling = False
        self._has_key_focus = False
        self._hovered = -1
        self._marking = MouseMarking(self, self._selection, self)
        self._marking.changed.connect(self.viewport().update)
        self._copy_button = IconButton("content-copy", _("Copy the answer"), theme, self.viewport())
        words = _("X-ray: read it with another quantization")
        self._xray_button = IconButton("magnify-scan", words, theme, self.viewport())
        self._jump_button = IconButton("arrow-down", _("Jump to the end"), theme, self.viewport())
        self._build()

    def _build(self) -> None:
        self.setObjectName("message_view")
        self.setAccessibleName(_("Messages"))
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setFrameShape(QAbstractScrollArea.Shape.NoFrame)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.viewport().setMouseTracking(True)
        self.viewport().setAttribute(Qt.WidgetAttribute.WA_OpaquePaintEvent)
        self.verticalScrollBar().setSingleStep(_SCROLL_STEP_PX)
        self._copy_button.setObjectName("message_copy")
        self._copy_button.clicked.connect(self._on_copy_clicked)
        self._xray_button.setObjectName("message_xray")
        self._xray_button.clicked.connect(self._on_xray_clicked)
        for button in (self._copy_button, self._xray_button):
            button.set_size(_COPY_PX, 16)
            button.hide()
        self._jump_button.setObjectName("jump_to_end")
        self._jump_button.set_size(_JUMP_PX, 18)
        self._jump_button.hide()
        self._jump_button.clicked.connect(self.scroll_to_end)

    # ------------------------------------------------------------------ what is shown

    @property
    def items(self) -> list[MessageItem]:
        """The messages as they are now."""
        return [layout.item for layout in self._transcript.layouts]

    @property
    def follows_end(self) -> bool:
        """Whether the view stays at the end while text arrives."""
        return self._follows_end

    def set_theme(self, theme: Theme) -> None:
        """Take over another theme's colours."""
        self._painter.theme = theme
        for button in (self._copy_button, self._xray_button, self._jump_button):
            button.set_theme(theme)
        self.viewport().update()

    def set_messages(self, items: Sequence[MessageItem]) -> None:
        """Show these messages, from the end; ValueError where two share a key."""
        self._selection.clear()
        self._hovered = -1
        self._transcript.set_items(items)
        self.scroll_to_end()
        self._tell_last_message()

    def append_item(self, item: MessageItem) -> None:
        """Add a message; the view goes to the end with the person's own. ValueError where its key is taken."""
        self._transcript.append_item(item)
        self._follows_end |= item.role == USER
        self._settle()
        if not item.is_streaming:
            self._tell_last_message()

    def append_text(self, key: int, text: str) -> None:
        """Add text to a message, at most once a frame; KeyError for an unknown key."""
        before = self.verticalScrollBar().value()
        changed_px = self._transcript.append_text(key, text)
        self._settle(changed_px if before == self.verticalScrollBar().value() else None)

    def update_item(self, key: int, **changes: Any) -> None:
        """Change fields of a message (`text`, `figures`, `state_text`, `is_streaming`); KeyError for an unknown key."""
        if "text" in changes:
            self._selection.clear()
        item = self._transcript.update_item(key, **changes)
        self._settle()
        if not item.is_streaming:
            self._tell_last_message()

    def remove_item(self, key: int) -> None:
        """Take a message out; KeyError for an unknown key."""
        self._selection.clear()
        self._hovered = -1
        self._transcript.remove_item(key)
        self._settle()

    def clear(self) -> None:
        """Show no message."""
        self.set_messages([])

    def scroll_to_end(self) -> None:
        """Go to the end and follow it."""
        self._follows_end = True
        self._settle()

    # ------------------------------------------------------------------ marking and copying

    def position_at(self, point: QPointF) -> Position:
        """Return the place in the text nearest to a place in the viewport."""
        y = point.y() + self.verticalScrollBar().value()
        return self._transcript.position_at(point.x() - self._column_left(), y)

    def height_px(self) -> int:
        """Return the height of the visible part."""
        return self.viewport().height()

    def scroll_by(self, distance_px: int) -> None:
        """Scroll by this much, down where positive."""
        self.verticalScrollBar().setValue(self.verticalScrollBar().value() + distance_px)

    def selected_text(self) -> str:
        """Return what is marked, as it is shown."""
        if self._selection.is_empty:
            return ""
        return self._transcript.text_between(self._selection.start, self._selection.end)

    def select_all(self) -> None:
        """Mark every message."""
        self._selection.set(*self._transcript.whole())
        self.viewport().update()

    def copy(self) -> None:
        """Put what is marked on the clipboard, as plain text only."""
        if text := self.selected_text():
            QGuiApplication.clipboard().setText(text)

    def _on_copy_clicked(self) -> None:
        index = self._index_with_actions()
        if index < 0:
            return
        QGuiApplication.clipboard().setText(self._transcript.layouts[index].text)
        self._copy_button.flash("check")

    def _on_xray_clicked(self) -> None:
        index = self._index_with_actions()
        if index >= 0:
            self.xray_requested.emit(self._transcript.layouts[index].item.key)

    # ------------------------------------------------------------------ Qt's events

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Fit the reading column into the new width."""
        super().resizeEvent(event)
        self._settle()

    def scrollContentsBy(self, _dx: int, _dy: int) -> None:
        """Lay out what comes near; remember whether the reader left the end."""
        if self._is_settling:
            return
        bar = self.verticalScrollBar()
        self._follows_end = bar.value() >= bar.maximum()
        self._settle()

    def paintEvent(self, event: QPaintEvent) -> None:
        """Draw the messages that reach into the changed part."""
        painter = QPainter(self.viewport())
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.fillRect(event.rect(), self._painter.theme.color("window"))
        clip, top = QRectF(event.rect()), self.verticalScrollBar().value()
        for index in self._transcript.between(top + event.rect().top(), top + event.rect().bottom() + 1):
            layout = self._transcript.layouts[index]
            corner = QPointF(self._column_left(), self._transcript.message_top(index) - top)
            selected = self._selection.within(index, layout.num_chars)
            self._painter.paint(painter, layout, corner, clip, selected)
        if self._has_key_focus:
            painter.setPen(QPen(self._painter.theme.color("accent"), 2))
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.drawRoundedRect(QRectF(self.viewport().rect()).adjusted(1, 1, -1, -1), 8, 8)

    def mousePressEvent(self, event: QMouseEvent) -> None:
        """Begin to mark; a third click marks the paragraph."""
        if event.button() is Qt.MouseButton.LeftButton:
            self._marking.press(event)

    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:
        """Mark a word; a click soon after marks the paragraph."""
        if event.button() is Qt.MouseButton.LeftButton:
            self._marking.double_click(event)

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        """Mark on, or show the actions of the answer under the mouse."""
        if self._marking.is_dragging:
            self._marking.move(event)
        else:
            self._hover(event.position())

    def mouseReleaseEvent(self, _event: QMouseEvent) -> None:
        """End marking."""
        self._marking.release()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Scroll, mark everything, copy."""
        bar = self.verticalScrollBar()
        if event.matches(QKeySequence.StandardKey.Copy):
            self.copy()
        elif event.matches(QKeySequence.StandardKey.SelectAll):
            self.select_all()
        elif event.key() == Qt.Key.Key_Home:
            bar.setValue(bar.minimum())
        elif event.key() == Qt.Key.Key_End:
            self.scroll_to_end()
        elif event.key() == Qt.Key.Key_Space:
            is_back = event.modifiers() & Qt.KeyboardModifier.ShiftModifier
            bar.setValue(bar.value() + (-bar.pageStep() if is_back else bar.pageStep()))
        else:
            super().keyPressEvent(event)

    def focusInEvent(self, event: QFocusEvent) -> None:
        """Show the focus where it came by key."""
        self._has_key_focus = event.reason() in (Qt.FocusReason.TabFocusReason, Qt.FocusReason.BacktabFocusReason)
        super().focusInEvent(event)
        self.viewport().update()

    def focusOutEvent(self, event: QFocusEvent) -> None:
        """Take the focus frame away."""
        self._has_key_focus = False
        super().focusOutEvent(event)
        self.viewport().update()

    def contextMenuEvent(self, event: QContextMenuEvent) -> None:
        """Offer to copy and to mark everything."""
        menu = QMenu(self)
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        copy = menu.addAction(_("Copy"))
        copy.setEnabled(not self._selection.is_empty)
        copy.triggered.connect(self.copy)
        menu.addAction(_("Select all")).triggered.connect(self.select_all)
        if not self._xray_button.isHidden():
            menu.addAction(_("X-ray…")).triggered.connect(self._on_xray_clicked)
        menu.popup(event.globalPos())

    def viewportEvent(self, event: QEvent) -> bool:
        """Show figures in full where their line is shortened; hide actions when the mouse leaves."""
        if event.type() is QEvent.Type.Leave:
            self._hover(None)
        if isinstance(event, QHelpEvent) and event.type() is QEvent.Type.ToolTip:
            self._show_tooltip(event)
            return True
        return super().viewportEvent(event)

    # ------------------------------------------------------------------ helpers

    def _settle(self, changed_px: int | None = None) -> None:
        """Lay out what is near the eye, keep in place what is read, and ask for one paint.

        Args:
            changed_px: top of the only thing that changed; None where anything may have.
        """
        bar, height = self.verticalScrollBar(), self.viewport().height()
        value = bar.value()
        anchor = self._transcript.anchor_at(value)
        self._transcript.set_width(max(1, min(COLUMN_PX, self.width() - 2 * MARGIN_PX)))
        for _round in range(_MAX_SETTLE_ROUNDS):
            last = max(0, self._transcript.total_px - height)
            top = last if self._follows_end else max(0, min(last, self._transcript.anchor_top(anchor)))
            if not self._transcript.lay_out(top - height, top + 2 * height):
                break
        self._is_settling = True
        bar.setPageStep(max(_SCROLL_STEP_PX, height - _SCROLL_STEP_PX))
        bar.setRange(0, max(0, self._transcript.total_px - height))
        bar.setValue(top)
        self._is_settling = False
        self._place_buttons()
        if changed_px is not None and bar.value() == value:
            self.viewport().update(QRect(0, changed_px - value, self.viewport().width(), height))
        else:
            self.viewport().update()

    def _column_left(self) -> int:
        # Centred in the whole view: the column does not move when the scroll bar comes.
        return (self.width() - self._transcript.column_px) // 2

    def _hover(self, point: QPointF | None) -> None:
        y = -1.0 if point is None else point.y() + self.verticalScrollBar().value()
        hovered = self._transcript.index_at(y) if 0 <= y < self._transcript.total_px else -1
        if hovered != self._hovered:
            self._hovered = hovered
            self._place_buttons()

    def _index_with_actions(self) -> int:
        """Return the answer whose copy button shows: the one under the mouse, else the last; -1 for none."""
        layouts = self._transcript.layouts
        for index in (self._hovered, len(layouts) - 1):
            if 0 <= index < len(layouts) and layouts[index].item.text and layouts[index].figures_rect.height():
                return index
        return -1

    def _place_buttons(self) -> None:
        value, viewport = self.verticalScrollBar().value(), self.viewport().rect()
        index = self._index_with_actions()
        self._copy_button.setVisible(index >= 0)
        self._xray_button.setVisible(index >= 0 and self._transcript.layouts[index].item.can_xray)
        if index >= 0:
            rect = self._transcript.layouts[index].figures_rect.translated(
                self._column_left(), self._transcript.message_top(index) - value
            )
            corner = QPoint(rect.right() - _COPY_PX + 7, rect.center().y() - _COPY_PX // 2 + 1)
            self._copy_button.move(corner)
            self._xray_button.move(corner - QPoint(_COPY_PX + _ACTION_GAP_PX, 0))
        self._jump_button.setVisible(not self._follows_end and self.verticalScrollBar().maximum() > 0)
        self._jump_button.move(QPoint((viewport.width() - _JUMP_PX) // 2, viewport.height() - _JUMP_PX - 12))

    def _show_tooltip(self, event: QHelpEvent) -> None:
        y = event.pos().y() + self.verticalScrollBar().value()
        index = self._transcript.index_at(y)
        if index < len(self._transcript) and (layout := self._transcript.layouts[index]).item.role == ASSISTANT:
            rect = layout.figures_rect.translated(self._column_left(), self._transcript.message_top(index))
            if rect.contains(event.pos().x(), y) and self._painter.is_shortened(layout):
                QToolTip.showText(event.globalPos(), plain_tooltip(layout.item.figures), self)
                return
        QToolTip.hideText()

    def _tell_last_message(self) -> None:
        """Let a screen reader read the last message."""
        layouts = self._transcript.layouts
        self.setAccessibleDescription(layouts[-1].text[:_ACCESSIBLE_CHARS] if layouts else "")
