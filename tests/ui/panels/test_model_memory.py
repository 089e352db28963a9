"""The memory card: bars and table say the same, the question can be changed and kept, unknown is said."""

from __future__ import annotations

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtWidgets import QFileDialog, QLabel, QPushButton

from app.telemetry.export import csv_text
from app.units import bytes_text
from tests.helpers.model_entries import entry, fit, measured
from ui.panels.model_memory import ModelMemory
from ui.theme import load_theme

FOUND = entry("A", "Q4_0", 4.5, context_tokens=32_768)
FIT = fit(FOUND, 16_384)


@pytest.fixture
def card(qtbot):
    made = ModelMemory(load_theme("dark"))
    qtbot.addWidget(made)
    made.resize(900, 300)
    made.set_entry(FOUND, 0, "f16")
    made.show()
    return made


def texts(card):
    return [label.text() for label in card.findChildren(QLabel) if label.isVisible()]


def button(card, words):
    return next(found for found in card.findChildren(QPushButton) if found.text() == words)


def test_the_table_says_the_same_as_the_bars_and_is_reached_by_a_button(card, qtbot):
    card.set_answer(FIT, measured(FOUND, FIT))
    assert card.bars.isVisible()
    qtbot.keyClick(button(card, "Table"), Qt.Key.Key_Space)
    assert (card.bars.isVisible(), card.twin.isVisible()) == (False, True)
    numbers = card.twin.numbers
    shown = [[numbers.index(row, column).data() for column in range(3)] for row in range(numbers.rowCount())]
    bars = [[part.title, bytes_text(part.predicted_bytes), bytes_text(part.measured_bytes)] for part in card.bars.parts]
    totals = ["Total", bytes_text(card.bars.total(False)), bytes_text(card.bars.total(True))]
    assert shown == [*bars, totals]
    assert card._legend.words() == [f"{title} {taken}" for title, _predicted, taken in bars]


def test_the_csv_file_holds_the_unrounded_numbers(card, tmp_path, qtbot):
    card.set_answer(FIT, None)
    with qtbot.waitSignal(card.told) as caught:
        card.export_to(tmp_path / "memory.csv")
    assert caught.args == ["Saved as memory.csv."]
    assert (tmp_path / "memory.csv").read_text(encoding="utf-8") == csv_text(card.table())
    assert str(FOUND.size_bytes) in csv_text(card.table())


def test_the_export_dialog_opens_and_closes(card, qtbot):
    card.set_answer(FIT, None)
    button(card, "CSV").click()
    dialog = card.findChild(QFileDialog)
    assert dialog.acceptMode() is QFileDialog.AcceptMode.AcceptSave
    dialog.reject()
    qtbot.waitUntil(lambda: card.findChild(QFileDialog) is None)


def test_another_context_or_type_is_a_question(card, qtbot):
    told = []
    card.question_changed.connect(lambda *args: told.append(args))
    assert card.is_own_question
    context, kv_type = card._context.widget, card._kv_type.widget
    assert [context.itemText(row) for row in range(context.count())] == [
        *("Automatic", "512", "2,048", "4,096", "8,192", "16,384", "32,768")
    ]
    context.setCurrentIndex(context.findData("8192"))
    kv_type.setCurrentIndex(kv_type.findData("q8_0"))
    assert told == [(8192, "f16"), (8192, "q8_0")]
    assert (card.question, card.is_own_question) == ((8192, "q8_0"), False)


def test_a_question_can_be_kept_for_the_model(card, qtbot):
    keep = button(card, "Keep for this model")
    assert not keep.isEnabled()
    card._context.widget.setCurrentIndex(2)
    with qtbot.waitSignal(card.keep_requested) as caught:
        keep.click()
    assert caught.args == [2048, "f16"]


def test_another_model_is_asked_about_as_it_would_be_loaded(card):
    card._context.widget.setCurrentIndex(2)
    card.set_entry(FOUND, 5000, "q4_0")
    assert (card.question, card.is_own_question) == ((5000, "q4_0"), True)
    assert card._context.widget.currentText() == "5,000"
    assert card._kv_type.widget.currentData() == "q4_0"


def test_the_largest_contexts_are_three_figures(card):
    card.set_answer(fit(FOUND, 17_000), None)
    values = [figure._value.text() for figure in card._figures.values()]
    assert values == ["16k", "31k", "32k"]
    card.set_answer(fit(FOUND, 0), None)
    assert [figure._value.text() for figure in card._figures.values()] == ["0", "0", "0"]


def test_unknown_is_said_and_draws_nothing(card):
    card.set_answer(fit(FOUND, None), None)
    assert "Nothing to draw before the first load." in texts(card)
    assert not card.bars.isVisible()
    assert [figure._value.text() for figure in card._figures.values()] == ["–", "–", "–"]
    assert not button(card, "CSV").isEnabled()
    card.set_answer(None, None)
    assert "Being worked out…" in texts(card)


def test_a_load_of_another_kind_says_so_and_is_not_compared(card):
    other = measured(FOUND, FIT, kv_type="q8_0")
    card.set_answer(FIT, other)
    assert "Measured with another context: 16,384 tokens, q8_0 KV." in texts(card)
    assert card.table().columns[3].cell_text(0) == "–"
    card.set_answer(FIT, measured(FOUND, FIT))
    assert not any(words.startswith("Measured with") for words in texts(card))


def test_it_folds_for_a_narrow_window_and_takes_another_theme(card, qtbot):
    wide = card.minimumSizeHint().width()
    card.set_wide(False)
    qtbot.waitUntil(lambda: card.minimumSizeHint().width() < wide)
    card.set_theme(load_theme("light"))
    card.set_answer(FIT, None)
    image = card.grab().toImage()
    assert not image.isNull()
    assert card.bars.mapTo(card, QPoint(0, 0)).y() > 0
