"""The models screen as a whole: its states, its keys, its signals, ten thousand entries and strangers' words."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QAccessible
from PySide6.QtGui import Qt as GuiQt
from PySide6.QtWidgets import (
    QAbstractButton,
    QAbstractItemView,
    QAbstractSpinBox,
    QComboBox,
    QHeaderView,
    QLabel,
    QLineEdit,
    QListView,
    QPlainTextEdit,
    QPushButton,
    QWidget,
)

from app.errors import Words
from app.models.fit_words import fit_short
from app.models.removal import Deletion
from app.units import NBSP
from tests.helpers import model_entries
from tests.helpers.model_entries import GIB, MACHINE, entry, fit
from ui.models.model_table_model import HERE
from ui.panels.models_panel import ModelsPanel
from ui.theme import load_theme

LLAMA = "Llama-3.1-8B-Instruct"
HOSTILE = "<img src=x><b>bold & brave</b>"


@pytest.fixture
def panel(qtbot):
    made = ModelsPanel(load_theme("dark"))
    qtbot.addWidget(made)
    made.resize(1356, 900)
    made.set_machine(MACHINE)
    made.show()
    made.activateWindow()
    return made


@pytest.fixture
def filled(panel):
    entries, fits = model_entries.library()
    panel.set_entries(entries)
    panel.set_fits(fits)
    panel.choose(f"{LLAMA}:Q4_K_M")
    return panel


def texts(panel):
    return [label.text().replace("\u200b", "") for label in panel.findChildren(QLabel) if label.isVisible()]


def shown_buttons(panel):
    return [found.text() for found in panel._empty.findChildren(QPushButton) if found.isVisible()]


# ------------------------------------------------------------------------------------------ states


def test_before_the_first_look_it_says_that_it_looks(panel):
    assert "Looking for model files…" in texts(panel)
    assert shown_buttons(panel) == []
    assert panel.chosen_entry is None


def test_without_models_there_is_one_sentence_and_one_action(panel, qtbot):
    panel.set_entries([])
    assert "There is no model file on this machine yet." in texts(panel)
    with qtbot.waitSignal(panel.add_file_requested):
        next(found for found in panel._empty.findChildren(QPushButton)).click()
    panel.set_scan(6, 12)
    assert "Looking in 6 places… 12 files" in texts(panel)
    panel.set_scan(None)
    assert "There is no model file on this machine yet." in texts(panel)


def test_the_first_model_is_shown_until_a_person_chooses(panel):
    entries, _fits = model_entries.library()
    panel.set_entries(entries)
    assert panel.chosen_entry.name == "Gemma-3-12B-it"


def test_a_model_that_cannot_be_used_says_why(filled):
    filled.choose("Mistral-Nemo-12B:Q6_K")
    assert "Part 2 of 3 is not there. Get the file again with Jan." in texts(filled)


def test_what_nobody_can_tell_is_said_and_can_be_loaded_anyway(filled, qtbot):
    filled.choose("Mamba9-3B:Q5_K_M")
    with qtbot.waitSignal(filled.use_requested) as caught:
        filled.page.detail.use_button.click()
    assert caught.args == ["Mamba9-3B:Q5_K_M"]
    filled.show_confirmation("Mamba9-3B:Q5_K_M", Words("It may not fit."))
    filled.show_confirmation("another", Words("Not for this one."))
    with qtbot.waitSignal(filled.use_confirmed) as caught:
        filled.page.detail.confirm.findChild(QPushButton, "answer_anyway").click()
    assert caught.args == ["Mamba9-3B:Q5_K_M"]


def test_the_foot_tells_the_scan_and_the_disk(filled):
    filled.set_scan(6, 1204)
    filled.set_disk_use(int(63.2 * GIB), int(4.91 * GIB))
    assert "Looking in 6 places… 1,204 files" in texts(filled)
    assert f"7 models · 63.2{NBSP}GiB; 4.91{NBSP}GiB are copies" in texts(filled)
    filled.set_scan(1)
    assert "Looking for models…" in texts(filled)
    filled.set_disk_use(0, 0)
    assert "7 models" in texts(filled)


# ------------------------------------------------------------------------------------------ choosing


def test_the_chosen_quantization_stays_chosen_when_the_library_changes(filled, qtbot):
    entries, _fits = model_entries.library()
    with qtbot.assertNotEmitted(filled.entry_chosen):
        filled.set_entries([entry("AAA", "Q4_0", 4.5), *reversed(entries)])
    assert filled.chosen_entry.key == f"{LLAMA}:Q4_K_M"
    assert filled.list.chosen_model.name == LLAMA
    filled.set_entries([found for found in entries if found.name != LLAMA])
    assert filled.chosen_entry.name == "Gemma-3-12B-it"
    filled.choose("nothing")
    assert filled.chosen_entry.name == "Gemma-3-12B-it"


def test_choosing_a_name_shows_its_recommended_quantization_and_tells(filled, qtbot):
    view = filled.findChild(QListView, "models_here")
    place = view.visualRect(filled.list.rows.index(0)).center()
    with qtbot.waitSignal(filled.entry_chosen) as caught:
        qtbot.mouseClick(view.viewport(), Qt.MouseButton.LeftButton, pos=place)
    assert caught.args == ["Gemma-3-12B-it:Q3_K_M"]


def test_the_same_words_stand_in_the_table_as_the_fit_has_for_every_screen(filled):
    model = filled.page.table.quantizations
    _entries, fits = model_entries.library()
    for key in (f"{LLAMA}:Q4_K_M", f"{LLAMA}:F16"):
        assert model.index(model.row_of(key), HERE).data() == fit_short(fits[key])


# ------------------------------------------------------------------------------------------ keys


@pytest.mark.parametrize("keys", [(Qt.Key.Key_F, Qt.KeyboardModifier.ControlModifier), (Qt.Key.Key_Slash, None)])
def test_ctrl_f_and_the_slash_go_to_the_search(filled, qtbot, keys):
    filled.page.table.setFocus()
    qtbot.keyClick(filled.page.table, keys[0], keys[1] or Qt.KeyboardModifier.NoModifier)
    assert filled.list.search.hasFocus()


def test_a_slash_in_a_note_is_a_slash(filled, qtbot):
    note = filled.page.detail.file.note
    note.setPlainText("")
    note.setFocus()
    qtbot.keyClicks(note, "a/b")
    assert note.toPlainText() == "a/b"


def test_enter_uses_and_delete_asks(filled, qtbot):
    filled.choose("Qwen3-8B:Q4_K_M")
    table = filled.page.table
    with qtbot.waitSignal(filled.use_requested) as caught:
        qtbot.keyClick(table, Qt.Key.Key_Return)
    assert caught.args == ["Qwen3-8B:Q4_K_M"]
    with qtbot.waitSignal(filled.delete_requested) as caught:
        qtbot.keyClick(table, Qt.Key.Key_Delete)
    assert caught.args == ["Qwen3-8B:Q4_K_M"]


def test_delete_is_not_asked_for_files_of_other_programs(filled, qtbot):
    with qtbot.assertNotEmitted(filled.delete_requested):
        qtbot.keyClick(filled.page.table, Qt.Key.Key_Delete)


def test_after_a_question_the_table_has_the_focus_again(filled, qtbot):
    filled.choose("Qwen3-8B:Q4_K_M")
    filled.show_deletion("another", Deletion((), 0, True))
    assert filled.page.detail.confirm.isHidden()
    filled.show_deletion("Qwen3-8B:Q4_K_M", Deletion((Path("/m/q"),), 5 * GIB, True))
    with qtbot.waitSignal(filled.delete_confirmed) as caught:
        filled.page.detail.confirm.findChild(QPushButton, "answer_trash").click()
    assert caught.args == ["Qwen3-8B:Q4_K_M", False]
    assert filled.page.table.hasFocus()


def test_tab_goes_through_everything_and_comes_back(filled, qtbot):
    filled.list.search.setFocus()
    reached = []
    for _press in range(40):
        qtbot.keyClick(filled.window().focusWidget(), Qt.Key.Key_Tab)
        reached.append(filled.window().focusWidget())
        if reached[-1] is filled.list.search:
            break
    detail = filled.page.detail
    wanted = [
        filled.findChild(QListView, "models_here"),
        filled.page.table,
        detail.use_button,
        detail.memory._context.widget,
    ]
    assert [widget for widget in wanted if widget not in reached] == []
    assert reached[-1] is filled.list.search


def test_every_control_has_a_name_for_a_screen_reader(filled):
    filled.page.detail.defaults.open_fields()
    filled.page.detail.memory.show_table(True)
    controls = (QAbstractButton, QLineEdit, QPlainTextEdit, QAbstractSpinBox, QComboBox, QAbstractItemView)
    nameless = []
    for widget in filled.findChildren(QWidget):
        is_part = isinstance(widget.parent(), QAbstractSpinBox | QComboBox) or widget.objectName().startswith("qt_")
        if is_part or not widget.isVisible() or isinstance(widget, QHeaderView) or not isinstance(widget, controls):
            continue
        if widget.window() is filled and not QAccessible.queryAccessibleInterface(widget).text(QAccessible.Text.Name):
            nameless.append(f"{type(widget).__name__} in {type(widget.parent()).__name__}")
    assert nameless == []


# ------------------------------------------------------------------------------------------ signals


def test_every_wish_of_the_parts_is_passed_on(filled, qtbot):
    key = f"{LLAMA}:Q4_K_M"
    detail = filled.page.detail
    context = detail.memory._context.widget
    wishes = (
        (filled.use_requested, detail.use_button.click, [key]),
        (filled.folder_requested, detail.file._show.click, [key]),
        (filled.question_changed, lambda: context.setCurrentIndex(2), [key, 2048, "f16"]),
        (filled.scan_requested, filled.list._again.click, []),
        (filled.add_folder_requested, filled.list.add_folder_requested.emit, []),
    )
    for signal, act, args in wishes:
        with qtbot.waitSignal(signal) as caught:
            act()
        assert caught.args == args
    filled.choose("Qwen3-8B:Q4_K_M")
    with qtbot.waitSignal(filled.hash_requested):
        detail.file._hash.click()
    filled.choose("Llama-3.3-70B-Instruct:Q4_K_M")
    with qtbot.waitSignal(filled.forget_requested):
        detail.forget_button.click()


def test_a_note_is_told_with_the_entry_it_belongs_to(filled, qtbot):
    filled.page.detail.file.note.setPlainText("Better than the others")
    with qtbot.waitSignal(filled.note_changed) as caught:
        filled.choose("Qwen3-8B:Q4_K_M")
    assert caught.args == [f"{LLAMA}:Q4_K_M", "Better than the others"]


def test_what_is_given_is_shown(filled):
    key = f"{LLAMA}:Q4_K_M"
    entries, fits = model_entries.library()
    filled.set_loaded(key, "f16", 16_384)
    assert filled.page.detail.use_button.toolTip() == "Loaded: 16,384 tokens · f16"
    found = next(found for found in entries if found.key == key)
    filled.set_measured(key, model_entries.measured(found, fits[key]))
    assert filled.page.detail.memory.bars.has_measured
    filled.set_question(4096, "q8_0")
    assert filled.page.detail.memory.question == (4096, "q8_0")
    filled.set_folders([Path("/m")])
    filled.set_hashing("another", 0.5)
    filled.set_hashing(key, 0.5)
    assert f"hashing: 50.0{NBSP}%" in texts(filled)
    filled.set_loaded("")
    assert filled.page.detail.use_button.text() == "Use"
    answer = fit(found, 1024)
    filled.page.detail.memory._context.widget.setCurrentIndex(1)
    filled.set_answer(key, answer)
    assert filled.page.detail.memory._figures["f16"]._value.text() == "1k"


# ------------------------------------------------------------------------------------------ size and theme


def test_ten_thousand_models_are_listed_searched_and_shown(panel):
    entries = [entry(f"Model {number:05}", "Q4_K_M", 4.9) for number in range(10_000)]
    panel.set_entries(entries)
    panel.set_fits({found.key: fit(found, 8192) for found in entries})
    panel.choose("Model 07777:Q4_K_M")
    assert panel.chosen_entry.key == "Model 07777:Q4_K_M"
    panel.list.search.setText("09999")
    assert panel.list.rows.rowCount() == 1
    assert len(panel.findChildren(QPushButton)) < 50  # no widget per row


def test_it_fits_from_the_smallest_window_to_a_large_one(filled, qtbot):
    for width, height, list_px in ((960 - 84, 600, 256), (1356, 900, 320), (3756, 2160, 320)):
        filled.resize(width, height)
        area = filled.page._area
        qtbot.waitUntil(lambda: area.widget().width() <= area.viewport().width())  # noqa: B023 - asked at once
        assert filled.list.width() == list_px
        assert filled.minimumSizeHint().width() <= 960 - 84
        assert filled.minimumSizeHint().height() <= 600


def test_another_theme_repaints_everything(filled):
    dark, light = load_theme("dark"), load_theme("light")
    before = filled.grab().toImage()
    filled.set_theme(light)
    after = filled.grab().toImage()
    assert before != after
    colours = {after.pixelColor(x, y).name() for x in range(0, 1356, 3) for y in range(0, 900, 3)}
    for role in ("weights", "kv", "compute"):
        assert dark.roles[role] not in colours


# ------------------------------------------------------------------------------------------ strangers' words


def test_strangers_words_are_shown_as_they_are_everywhere(panel):
    found = entry(
        HOSTILE,
        "<i>Q</i>",
        4.5,
        owner=HOSTILE,
        architecture="<u>a</u>",
        note=HOSTILE,
        path=Path(f"/m/{HOSTILE}.gguf"),
        identity=f"sha256:{HOSTILE}",
    )
    faulty = replace(found, key="f", fault=f"{HOSTILE} is damaged.")
    panel.set_entries([found, faulty, replace(found, key="c", path=Path("/m/<b>copy"))])
    panel.set_fits({found.key: fit(found, None, reason=HOSTILE)})
    panel.set_folders([Path(HOSTILE)])
    for key in (found.key, faulty.key):
        panel.choose(key)
        panel.show_deletion(key, Deletion((Path(HOSTILE),), 1, True, ""))
        panel.show_confirmation(key, Words(HOSTILE, HOSTILE))
        for widget in panel.findChildren(QWidget):
            if isinstance(widget, QLabel) and "<" in widget.text():
                assert widget.textFormat() is Qt.TextFormat.PlainText, widget.text()
            tip = widget.toolTip()
            assert not (GuiQt.mightBeRichText(tip) and ("<img" in tip or "<b>" in tip)), tip
            if isinstance(widget, QAbstractButton):
                assert HOSTILE not in widget.text()
    assert panel.list.rows.index(0).data() == HOSTILE
    assert panel.page._name.text() == HOSTILE
