"""Warnings: each sentence once, hidden without any, plain text."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QLabel

from ui.panels.compare_warnings import CompareWarnings
from ui.theme import load_theme


def test_sentences_are_shown_once_and_go(qtbot):
    frame = CompareWarnings(load_theme("dark"))
    qtbot.addWidget(frame)
    assert frame.isHidden()
    frame.set_warnings(["One <b>bold</b>.", "", "Two.", "Two."])
    assert frame.sentences == ("One <b>bold</b>.", "Two.")
    assert not frame.isHidden()
    assert frame.accessibleDescription() == "One <b>bold</b>. Two."
    labels = [label for label in frame.findChildren(QLabel) if label.text() and not label.isHidden()]
    assert {label.textFormat() for label in labels} == {Qt.TextFormat.PlainText}
    frame.set_theme(load_theme("light"))
    frame.set_warnings(["One <b>bold</b>.", "Two."])
    frame.set_warnings([])
    assert frame.isHidden()
