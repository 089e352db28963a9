"""The file card: place, facts, digest, copies, and a note that is saved when it is left."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QLabel, QPushButton, QToolButton

from app.units import NBSP
from tests.helpers.model_entries import DIGEST, MIB, entry
from ui.panels.model_file import ModelFile
from ui.theme import load_theme

FOUND = entry("A", "Q4_0", 4.5, note="Mine.")


@pytest.fixture
def card(qtbot):
    made = ModelFile(load_theme("dark"))
    qtbot.addWidget(made)
    made.set_entry(FOUND, [])
    made.resize(500, 300)
    made.show()
    made.activateWindow()
    return made


def texts(card):
    return [label.text().replace("\u200b", "") for label in card.findChildren(QLabel) if label.isVisible()]


def tool(card, words):
    return next(found for found in card.findChildren(QToolButton) if found.accessibleName() == words)


def test_the_place_and_the_facts_are_told(card):
    assert "/models/A-Q4_0.gguf" in texts(card)
    assert f"4.21{NBSP}GiB · added by you · with a chat template" in texts(card)
    whole = replace(
        FOUND,
        key="b",
        parts=(Path("/a"), Path("/b")),
        has_importance_matrix=True,
        has_chat_template=False,
        projector_path=Path("/p"),
        projector_bytes=600 * MIB,
    )
    card.set_entry(whole, [])
    facts = f"2 files · made with an importance matrix · without a chat template · sees pictures: 600{NBSP}MiB more"
    assert f"4.21{NBSP}GiB · added by you · {facts}" in texts(card)


def test_the_path_is_copied_and_its_folder_asked_for(card, qtbot):
    tool(card, "Copy path").click()
    assert QGuiApplication.clipboard().text() == "/models/A-Q4_0.gguf"
    tool(card, "Copy path")._flash_end.stop()
    with qtbot.waitSignal(card.folder_requested) as caught:
        tool(card, "Show in folder").click()
    assert caught.args == [FOUND.key]


def test_a_file_is_hashed_when_asked(card, qtbot):
    assert "not hashed yet" in texts(card)
    button = card.findChild(QPushButton)
    with qtbot.waitSignal(card.hash_requested) as caught:
        button.click()
    assert caught.args == [FOUND.key]
    card.set_hashing(0.125)
    assert f"hashing: 12.5{NBSP}%" in texts(card)
    assert not button.isVisible()
    card.set_hashing(None)
    assert button.isVisible()
    card.set_entry(replace(FOUND, identity=DIGEST), [])
    assert "9f86d081884c…" in texts(card)
    assert card._digest.toolTip() == DIGEST.removeprefix("sha256:")
    assert not button.isVisible()


def test_copies_are_listed_up_to_a_bound(card):
    copies = [replace(FOUND, path=Path(f"/copies/{number}.gguf"), origin="ollama") for number in range(7)]
    card.set_entry(FOUND, copies)
    (words,) = (words for words in texts(card) if "/copies/0" in words)
    assert words.splitlines()[0] == "/copies/0.gguf (Ollama)"
    assert words.splitlines()[-1] == "and 2 more"
    card.set_entry(FOUND, [])
    assert "Copies" not in texts(card)


def test_a_note_is_saved_when_it_is_left(card, qtbot):
    told = []
    card.note_changed.connect(lambda *args: told.append(args))
    assert card.note.toPlainText() == "Mine."
    card.note.setFocus()
    card.note.setPlainText(" For letters. ")
    card.setFocus()
    card.note.setFocus()
    card.setFocus()
    assert told == [(FOUND.key, "For letters.")]


def test_a_note_is_saved_when_another_model_is_shown(card):
    told = []
    card.note_changed.connect(lambda *args: told.append(args))
    card.note.setPlainText("Half")
    card.set_entry(entry("B", "Q8_0", 8.5, note="Other."), [])
    assert told == [(FOUND.key, "Half")]
    assert card.note.toPlainText() == "Other."
    card.hide()
    assert len(told) == 1


def test_what_is_being_written_is_not_taken_away_by_a_scan(card, qtbot):
    card.note.setFocus()
    card.note.setPlainText("Being written")
    card.set_entry(FOUND, [])
    assert card.note.toPlainText() == "Being written"


def test_strangers_words_stay_text(card):
    bad = "<img src=x><b>"
    card.set_entry(entry("A", "Q", 4.5, path=Path(f"/m/{bad}\udcff.gguf"), note=bad), [replace(FOUND, path=Path(bad))])
    assert any(bad in words for words in texts(card))
    assert card.note.toPlainText() == bad
    for label in card.findChildren(QLabel):
        assert label.textFormat() is Qt.TextFormat.PlainText
        assert "<img" not in label.toolTip()
    card.set_theme(load_theme("light"))
