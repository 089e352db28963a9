"""The chosen quantization: what can be done with it, and the questions before it is done."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from PySide6.QtWidgets import QLabel, QPushButton

from app.errors import Words
from app.models.entry import ModelDefaults
from app.models.fit_words import fit_sentence
from app.models.removal import Deletion
from app.units import NBSP
from tests.helpers.model_entries import GIB, entry, fit
from ui.panels.model_detail import ModelDetail
from ui.theme import load_theme

FOUND = entry("A", "Q4_K_M", 4.9)
FIT = fit(FOUND, 17_000)


@pytest.fixture
def detail(qtbot):
    made = ModelDetail(load_theme("dark"))
    qtbot.addWidget(made)
    made.set_entry(FOUND, [], 0, "f16")
    made.set_answer(FIT, None)
    made.resize(900, 700)
    made.show()
    return made


def texts(detail):
    return [label.text().replace("\u200b", "") for label in detail.findChildren(QLabel) if label.isVisible()]


def answers(detail):
    return [found.text() for found in detail.confirm.findChildren(QPushButton) if not found.isHidden()]


def answer(detail, words):
    next(found for found in detail.confirm.findChildren(QPushButton) if found.text() == words).click()


def test_it_tells_the_fit_and_what_the_quantization_means(detail):
    shown = texts(detail)
    assert "Q4_K_M" in shown
    assert fit_sentence(FIT) in shown
    assert detail._meaning.text()


def test_it_can_be_used_forgotten_and_deleted(detail, qtbot):
    for button, signal in (
        (detail.use_button, detail.use_requested),
        (detail.forget_button, detail.forget_requested),
        (detail.delete_button, detail.delete_requested),
    ):
        with qtbot.waitSignal(signal) as caught:
            button.click()
        assert caught.args == [FOUND.key]


def test_only_what_fits_has_the_main_button(detail):
    assert (detail.use_button.text(), detail.use_button.property("kind")) == ("Use", "primary")
    for made in (fit(FOUND, 0), fit(FOUND, None)):
        detail.set_answer(made, None)
        assert (detail.use_button.text(), detail.use_button.property("kind")) == ("Load anyway…", "")
        assert detail.use_button.isEnabled()
    detail.set_answer(FIT, None)
    detail.set_loaded(True, "Loaded: 8,192 tokens · f16")
    assert (detail.use_button.text(), detail.use_button.isEnabled()) == ("Loaded", False)
    assert detail.use_button.toolTip() == "Loaded: 8,192 tokens · f16"
    assert not detail.delete_button.isEnabled()


def test_files_of_other_programs_are_theirs_to_delete(detail):
    detail.set_entry(entry("B", "Q4_0", 4.5, origin="lm_studio"), [], 0, "f16")
    assert not detail.delete_button.isEnabled()
    assert detail.delete_button.toolTip() == "It belongs to LM Studio: delete it there."
    assert not detail.forget_button.isVisible()
    detail.set_entry(entry("B", "Q5_0", 5.5, origin="huggingface"), [], 0, "f16")  # some of it may be ours
    assert detail.delete_button.isEnabled()
    assert detail.delete_button.toolTip() == ""
    detail.set_entry(entry("C", "Q4_0", 4.5, origin="starter"), [], 0, "f16")
    assert not detail.delete_button.isVisible()


@pytest.mark.parametrize(("words", "forever"), [("Move to trash", False), ("Delete forever", True)])
def test_before_a_deletion_it_says_what_is_freed_and_where_it_goes(detail, qtbot, words, forever):
    detail.show_deletion(Deletion((Path("/m/a"), Path("/m/b")), 4 * GIB, True))
    assert f"Delete 2 files and free 4.00{NBSP}GiB?" in texts(detail)
    assert "It goes to the trash; the room is free once that is emptied.\n/m/a\n/m/b" in texts(detail)
    assert answers(detail) == ["Cancel", "Move to trash", "Delete forever"]
    with qtbot.waitSignal(detail.delete_confirmed) as caught:
        answer(detail, words)
    assert caught.args == [FOUND.key, forever]
    assert detail.confirm.isHidden()


def test_without_a_trash_it_says_that_it_is_for_good(detail):
    paths = tuple(Path(f"/m/{number}") for number in range(5))
    detail.show_deletion(Deletion(paths, 0, False))
    assert "Delete 5 files? It frees nothing: the same bytes are used elsewhere." in texts(detail)
    assert "There is no trash here: it is gone for good.\n/m/0\n/m/1\n/m/2\n…" in texts(detail)
    assert answers(detail) == ["Cancel", "Delete forever"]


def test_a_refusal_is_told_and_can_only_be_closed(detail):
    detail.show_deletion(Deletion((), 0, False, "It belongs to somebody else."))
    assert "It belongs to somebody else." in texts(detail)
    assert answers(detail) == ["Close"]


def test_a_load_that_may_not_fit_is_confirmed_once(detail, qtbot):
    detail.show_confirmation(Words("It needs 40 GiB.", "The computer may stand still."))
    assert {"It needs 40 GiB.", "The computer may stand still."} <= set(texts(detail))
    with qtbot.waitSignal(detail.use_confirmed) as caught:
        answer(detail, "Load anyway")
    assert caught.args == [FOUND.key]


def test_another_model_takes_the_question_away_and_the_same_does_not(detail):
    detail.show_confirmation(Words("It needs 40 GiB."))
    detail.set_entry(replace(FOUND, note="New."), [], 0, "f16")
    assert not detail.confirm.isHidden()
    detail.set_entry(entry("B", "Q4_0", 4.5), [], 0, "f16")
    assert detail.confirm.isHidden()


@pytest.mark.parametrize(
    ("origin", "advice"),
    [
        ("imported", "Get the file again, or forget it here."),
        ("ollama", "Get the file again with Ollama."),
        ("folder", "Get the file again."),
    ],
)
def test_a_fault_says_what_is_wrong_and_what_to_do(detail, origin, advice):
    detail.set_entry(entry("B", "", fault="Part 2 is <b>gone</b>.", origin=origin), [], 0, "f16")
    detail.set_answer(None, None)
    assert f"Part 2 is <b>gone</b>. {advice}" in texts(detail)
    assert detail._sentence.property("kind") == "error"
    assert not detail.use_button.isVisible()
    assert not detail.memory.isVisible()
    assert not detail.defaults.isVisible()
    detail.set_entry(FOUND, [], 0, "f16")
    detail.set_answer(FIT, None)
    assert detail._sentence.property("kind") == ""
    assert detail.memory.isVisible()


def test_a_question_and_its_keeping_are_told_with_the_key(detail, qtbot):
    context = detail.memory._context.widget
    with qtbot.waitSignal(detail.question_changed) as caught:
        context.setCurrentIndex(context.findData("8192"))
    assert caught.args == [FOUND.key, 8192, "f16"]
    with qtbot.waitSignal(detail.defaults_changed) as caught:
        detail.memory._keep.click()
    assert caught.args == [FOUND.key, ModelDefaults(context_tokens=8192, kv_type="f16")]


def test_a_question_survives_new_facts_about_the_same_model(detail):
    context = detail.memory._context.widget
    context.setCurrentIndex(context.findData("8192"))
    detail.set_entry(replace(FOUND, note="New."), [], 0, "f16")
    assert detail.memory.question == (8192, "f16")
    detail.set_entry(entry("B", "Q4_0", 4.5), [], 0, "f16")
    assert detail.memory.question == (0, "f16")


def test_cards_stand_side_by_side_or_one_under_the_other(detail, qtbot):
    qtbot.waitUntil(lambda: detail.defaults.x() > detail.file.x())
    detail.set_wide(False)
    qtbot.waitUntil(lambda: detail.defaults.y() > detail.file.y())
    detail.defaults.open_fields()
    detail.set_theme(load_theme("light"))
