"""The window's work with the real library and a real small model: sizes, files, and words for what went wrong."""

from __future__ import annotations

import pytest
from PySide6.QtWidgets import QWidget

from app.context import build_context
from tests.helpers.small_llama import write_small_llama
from ui.panels.quantize_dialog import BUNDLED
from ui.quantize_screen import OFFERED, QuantizeScreen
from ui.tasks import SynchronousTasks
from ui.theme import load_theme


@pytest.fixture
def context():
    made = build_context()
    yield made
    made.close()


@pytest.fixture
def entry(context, tmp_path):
    return context.library.import_path(write_small_llama(tmp_path / "small.gguf"))


@pytest.fixture
def screen(qtbot, context, entry):
    window = QWidget()
    qtbot.addWidget(window)
    made = QuantizeScreen(context, load_theme("dark"), SynchronousTasks(), window, window)
    made.open(entry.key)
    yield made
    made.close()


def test_it_opens_with_the_sizes_of_what_can_be_made(screen) -> None:
    assert set(screen.dialog.rows.boxes) == set(OFFERED) - {"F16"}
    assert "Small-Llama" in screen.dialog.windowTitle()
    assert not screen.dialog.is_busy


def test_what_is_ticked_is_made_and_the_library_is_told(screen, context, qtbot) -> None:
    screen.dialog.rows.boxes["Q8_0"].click()
    screen.dialog.rows.boxes["Q4_0"].click()
    with qtbot.waitSignal(screen.library_changed):
        screen.dialog.make_button.click()
    assert screen.dialog.words.startswith("Q8_0, Q4_0 were made and run")
    assert {entry.quantization for entry in context.library.entries() if entry.name == "Small-Llama"} == {
        "F16", "Q8_0", "Q4_0",
    }  # fmt: skip
    assert not screen.dialog.rows.boxes["Q8_0"].isEnabled()  # there already
    made = next(entry for entry in context.library.entries() if entry.quantization == "Q4_0")
    screen.open(made.key)
    assert not screen.dialog.agreement.isHidden()
    screen.dialog.rows.boxes["Q5_K_M"].click()
    assert not screen.dialog.make_button.isEnabled()


def test_a_text_of_cutaway_makes_an_importance_matrix(screen, monkeypatch) -> None:
    monkeypatch.setattr("app.compare.quantizing.MOST_WINDOWS", 1)
    screen.dialog.importance.choose(BUNDLED)
    screen.dialog.importance.chosen.emit(BUNDLED)
    screen.dialog.rows.boxes["Q2_K_S"].click()
    screen.dialog.make_button.click()
    assert screen.dialog.words.startswith("Q2_K_S was made")


def test_a_file_that_is_no_text_is_refused_in_words(screen, tmp_path) -> None:
    picture = tmp_path / "picture.png"
    picture.write_bytes(b"\x89PNG\0" * 200)
    screen.choose_file(str(picture))
    assert "picture.png" in screen.dialog.words
    text = tmp_path / "novel.txt"
    text.write_text("It was a dark night. " * 100)
    screen.choose_file(str(text))
    assert screen._own is not None


def test_cancelled_it_says_so_and_leaves_nothing(screen, context) -> None:
    screen._cancel.clear()
    screen.dialog.rows.boxes["Q8_0"].click()
    progress = screen._tell_progress

    def cancel(*step) -> None:
        progress(*step)
        screen._on_cancel()

    screen._tell_progress = cancel
    screen.dialog.make_button.click()
    assert screen.dialog.words.startswith("Cancelled")
    assert not list(context.paths.models.iterdir())


def test_a_source_that_is_gone_is_said(screen, entry) -> None:
    entry.path.unlink()
    screen.dialog.rows.boxes["Q8_0"].click()
    screen.dialog.make_button.click()
    assert "not there any more" in screen.dialog.words
    screen.set_theme(load_theme("light"))
