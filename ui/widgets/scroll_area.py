"""An area that scrolls downwards where the window is too low for everything in it."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QFrame, QScrollArea, QWidget


def scrolling(inside: QWidget) -> QScrollArea:
    """Return an area that shows the widget at its own height; it has no frame, no background and no tab stop."""
    area = QScrollArea()
    area.setWidget(inside)
    inside.setAutoFillBackground(False)  # the scroll area has just turned it on
    area.setWidgetResizable(True)
    area.setFrameShape(QFrame.Shape.NoFrame)
    area.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
    area.viewport().setAutoFillBackground(False)
    area.setFocusPolicy(Qt.FocusPolicy.NoFocus)
    return area
