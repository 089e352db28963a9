"""The card says what the model is for, offers prompts, or asks for a model."""

from __future__ import annotations

import pytest
from PySide6.QtWidgets import QLabel, QPushButton

from ui.panels.first_run_card import FirstRunCard
from ui.theme import load_theme


@pytest.fixture
def card(qtbot):
    made = FirstRunCard(load_theme("dark"))
    qtbot.addWidget(made)
    made.show()
    return made


def texts(card):
    return [label.text() for label in card.findChildren(QLabel) if label.isVisible()]


def buttons(card):
    return [button for button in card.findChildren(QPushButton) if button.isVisible()]


def test_the_starter_card_says_what_the_model_is_for_and_that_all_stays_here(card):
    assert "This small model shows the engine; for real work pick a larger one." in texts(card)
    assert "Nothing leaves this machine." in texts(card)
    assert [button.text() for button in buttons(card)[3:]] == ["Choose a file…", "Picked for you"]


def test_an_example_sends_its_own_words(card, qtbot):
    for button in buttons(card)[:3]:
        with qtbot.waitSignal(card.prompt_chosen) as caught:
            button.click()
        assert caught.args == [button.text()]


def test_without_a_model_the_main_action_is_what_was_picked_and_the_other_one_a_file(card, qtbot):
    card.show_no_model()
    choose, pick = buttons(card)
    assert pick.property("kind") == "primary"
    with qtbot.waitSignal(card.pick_requested):
        pick.click()
    with qtbot.waitSignal(card.choose_file_requested):
        choose.click()
    assert "Nothing leaves this machine." in texts(card)


def test_a_model_of_the_persons_own_is_named_as_it_is(card):
    card.show_model("<b>Llama</b> & co")
    assert "<b>Llama</b> & co answers here." in texts(card)
    assert len(buttons(card)) == 3
    card.show_starter()
    assert len(buttons(card)) == 5


def test_the_card_takes_another_theme_and_stays_in_the_reading_column(card):
    card.set_theme(load_theme("light"))
    assert card.maximumWidth() <= 760
