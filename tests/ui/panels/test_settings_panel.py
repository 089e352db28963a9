"""The settings screen follows from the fields, and every change counts at once."""

from __future__ import annotations

import threading

import pytest
from PySide6.QtWidgets import QComboBox, QLabel, QLineEdit, QSpinBox, QWidget
from shiboken6 import Shiboken

from app.settings import SettingsStore
from app.settings_fields import about, shown_settings
from ui.panels.settings_panel import SettingsPanel


@pytest.fixture
def store(tmp_path):
    return SettingsStore.load(tmp_path / "settings.json")[0]


@pytest.fixture
def panel(qtbot, store):
    made = SettingsPanel(store, {"Chats and models": "/home/a/<b>data</b>"}, "1.2.3")
    qtbot.addWidget(made)
    made.resize(800, 600)
    made.show()
    return made


def editor(panel, name):
    return panel.findChild(QWidget, f"setting_{name}")


def texts(panel):
    return [label.text() for label in panel.findChildren(QLabel) if label.isVisible()]


def test_every_shown_setting_has_its_words_and_a_named_control(panel):
    for name in shown_settings():
        assert about(name).title() in texts(panel)
        assert about(name).sentence() in texts(panel)
        assert editor(panel, name).accessibleName() == about(name).title()
        assert editor(panel, name).accessibleDescription() == about(name).sentence()
    assert [text for text in texts(panel) if text in ("Look", "Engine", "Answers")] == ["Look", "Engine", "Answers"]


def test_a_change_is_used_and_saved_at_once(panel, store, tmp_path):
    panel.findChild(QComboBox, "setting_theme").setCurrentIndex(2)
    panel.findChild(QSpinBox, "setting_threads").setValue(3)
    assert (store.get().theme, store.get().threads) == ("dark", 3)
    assert SettingsStore.load(tmp_path / "settings.json")[0].get().threads == 3


def test_a_change_from_another_thread_is_shown(panel, store, qtbot):
    thread = threading.Thread(target=store.change, kwargs={"threads": 7})
    thread.start()
    thread.join()
    qtbot.waitUntil(lambda: editor(panel, "threads").value() == 7)


def test_a_refused_value_is_told_under_its_setting_until_a_good_one_comes(panel, store):
    panel._on_edited("temperature", 99.0)
    refusal = "“Temperature” must lie between 0 and 5. The setting stays as it was."
    assert refusal in texts(panel)
    assert store.get().temperature == 0.8
    panel._on_edited("temperature", 1.0)
    assert refusal not in texts(panel)


def test_a_full_disk_is_told_and_the_setting_is_in_use(panel, store, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("app.settings._write", full)
    editor(panel, "threads").setValue(4)
    assert any("could not be saved: No space left on device" in text for text in texts(panel))
    assert store.get().threads == 4


def test_it_says_where_things_lie_and_which_version_this_is(panel):
    line = next(found for found in panel.findChildren(QLineEdit) if found.accessibleName() == "Chats and models")
    assert line.text() == "/home/a/<b>data</b>"
    assert line.isReadOnly()
    assert "Cutaway 1.2.3" in texts(panel)


def test_it_says_which_engines_are_there(panel):
    assert "llama.cpp 0.3.36: loads GGUF files" in texts(panel)
    assert any(words.startswith("torch") for words in texts(panel))
    assert not any("echo" in words for words in texts(panel))


def test_a_closed_screen_listens_no_more(qtbot, store):
    made = SettingsPanel(store, {}, "1")
    Shiboken.delete(made)
    store.change(threads=5)
    assert store._listeners == []


def test_it_fits_the_smallest_window_and_stays_narrow_in_a_wide_one(panel):
    assert panel.minimumSizeHint().width() <= 960 - 84
    panel.resize(2000, 800)
    assert panel.findChild(QWidget, "settings_column").width() <= 760
