"""One model's page: head, banner, table and detail agree, and follow what they are given."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QLabel

from app.models.entry import ModelDefaults
from app.models.fit_words import fit_sentence
from app.models.removal import Deletion
from tests.helpers.model_entries import MACHINE, entry, fit, ladder, ladder_fits, measured
from ui.models.model_choice import by_name
from ui.models.model_table_model import MARK_ROLE
from ui.panels.model_page import ModelPage
from ui.theme import load_theme

NAME = "Llama-3.1-8B-Instruct"
ENTRIES = ladder()
FITS = ladder_fits(ENTRIES)


@pytest.fixture
def page(qtbot):
    made = ModelPage(load_theme("dark"))
    qtbot.addWidget(made)
    made.resize(1036, 900)
    made.set_machine(MACHINE)
    made.set_model(by_name(ENTRIES)[0], ENTRIES)
    made.set_fits(FITS)
    made.show()
    return made


def texts(page):
    return [label.text().replace("\u200b", "") for label in page.findChildren(QLabel) if label.isVisible()]


def mark(page, quantization):
    model = page.table.quantizations
    return model.index(model.row_of(f"{NAME}:{quantization}"), 0).data(MARK_ROLE)


def test_head_banner_and_detail_speak_of_one_model(page):
    shown = texts(page)
    assert NAME in shown
    assert any(words.endswith("32 layers · 8 KV heads · 128k context · llama") for words in shown)
    assert any("Q8_0 is the largest with room for 16k tokens." in words for words in shown)
    assert mark(page, "Q8_0") == "recommended"


def test_the_recommended_quantization_is_shown_first_and_the_loaded_one_before_it(page):
    model = by_name(ENTRIES)[0]
    page.set_model(model, ENTRIES)
    assert page.detail.entry.quantization == "Q8_0"
    page.set_loaded(f"{NAME}:Q2_K", "Loaded")
    page.set_model(model, ENTRIES)
    assert page.detail.entry.quantization == "Q2_K"
    assert mark(page, "Q2_K") == "loaded"
    page.set_model(model, ENTRIES, f"{NAME}:Q6_K")
    assert page.detail.entry.quantization == "Q6_K"


def test_one_quantization_alone_is_not_recommended(page):
    found = entry("Solo", "Q4_0", 4.5)
    page.set_fits({found.key: fit(found, 131_072)})
    page.set_model(by_name([found])[0], [found])
    model = page.table.quantizations
    assert model.index(1, 0).data(MARK_ROLE) == ""


def test_another_row_is_another_detail_with_the_same_sentence_as_everywhere(page, qtbot):
    page.table.choose(f"{NAME}:Q4_K_M")
    with qtbot.waitSignal(page.entry_chosen) as caught:
        qtbot.keyClick(page.table, Qt.Key.Key_Down)
    assert caught.args == [f"{NAME}:Q5_K_M"]
    assert fit_sentence(FITS[f"{NAME}:Q5_K_M"]) in texts(page)


def test_memory_that_becomes_scarce_changes_the_recommendation(page):
    page.set_fits(FITS | {f"{NAME}:Q8_0": fit(ENTRIES[5], 0)})
    assert mark(page, "Q8_0") == ""
    assert mark(page, "Q6_K") == "recommended"


def test_a_question_gets_its_own_answer_and_goes_back(page):
    page.set_model(by_name(ENTRIES)[0], ENTRIES, f"{NAME}:Q4_K_M")
    context = page.detail.memory._context.widget
    context.setCurrentIndex(context.findData("131072"))
    assert "Being worked out…" in texts(page)
    other = fit(ENTRIES[2], 98_304, context_tokens=131_072)
    page.set_answer(f"{NAME}:Q4_K_M", other)
    assert fit_sentence(other) in texts(page)
    page.set_fits(FITS)
    assert fit_sentence(other) in texts(page)
    context.setCurrentIndex(0)
    assert fit_sentence(FITS[f"{NAME}:Q4_K_M"]) in texts(page)


def test_a_model_is_asked_about_as_its_defaults_or_the_settings_would_load_it(page):
    page.set_question(4096, "q8_0")
    assert page.detail.memory.question == (4096, "q8_0")
    own = replace(ENTRIES[0], defaults=ModelDefaults(context_tokens=2048))
    page.set_model(by_name([own])[0], [own])
    assert page.detail.memory.question == (2048, "q8_0")


def test_what_a_load_took_is_drawn_for_the_entry_it_was_of(page):
    page.set_model(by_name(ENTRIES)[0], ENTRIES, f"{NAME}:Q4_K_M")
    page.set_measured(f"{NAME}:Q5_K_M", measured(ENTRIES[3], FITS[f"{NAME}:Q5_K_M"]))
    assert not page.detail.memory.bars.has_measured
    page.set_measured(f"{NAME}:Q4_K_M", measured(ENTRIES[2], FITS[f"{NAME}:Q4_K_M"]))
    assert page.detail.memory.bars.has_measured
    page.set_measured(f"{NAME}:Q4_K_M", None)
    assert not page.detail.memory.bars.has_measured


def test_copies_are_found_in_the_whole_library(page):
    copy = replace(ENTRIES[0], key="x", name="Other", path=Path("/copies/x.gguf"))
    page.set_model(by_name(ENTRIES)[0], [*ENTRIES, copy], ENTRIES[0].key)
    assert any("/copies/x.gguf" in words for words in texts(page))


def test_the_scroll_bar_stands_in_the_margin(page, qtbot):
    page.resize(1036, 500)
    bar = page._area.verticalScrollBar()
    qtbot.waitUntil(lambda: bar.maximum() > 0)
    qtbot.waitUntil(lambda: page.table.width() == page._banner.width())


def test_a_question_below_the_edge_is_scrolled_into_sight(page, qtbot):
    page.resize(1036, 400)
    page.detail.show_deletion(Deletion((Path("/m/a"),), 5, True))
    confirm, viewport = page.detail.confirm, page._area.viewport()
    qtbot.waitUntil(lambda: viewport.rect().contains(confirm.mapTo(viewport, confirm.rect().center())))


def test_on_a_large_screen_lines_are_no_longer_than_can_be_read_across(page, qtbot):
    page.resize(3400, 2000)
    qtbot.waitUntil(lambda: page.table.width() == 1360)
    assert page._banner.width() == 1360


def test_it_fits_the_smallest_window(page, qtbot):
    page.resize(960 - 84 - 256, 600)
    qtbot.waitUntil(lambda: page._area.widget().width() <= page._area.viewport().width())
    assert page.table.horizontalScrollBar().maximum() == 0
    page.set_theme(load_theme("light"))
