"""Answers side by side: the reference's first, markup in them is shown and not obeyed."""

from __future__ import annotations

import msgspec
import pytest
from PySide6.QtWidgets import QLabel

from app.compare.results import Answer
from tests.helpers import compare_values as values
from ui.models.compare_answer_text import MarkedText
from ui.panels.compare_answers import AnswerText, CompareAnswers, marked_html


@pytest.fixture
def answers(qtbot):
    made = CompareAnswers()
    qtbot.addWidget(made)
    made.resize(900, 400)
    made.show()
    return made


def spoken(answers):
    texts = [text for block in answers._blocks for text in block.findChildren(AnswerText)]
    return [text.findChild(QLabel).accessibleName() for text in texts]


def test_the_reference_stands_first_and_differences_are_marked(answers):
    plan = values.plan()
    answers.set_answers(plan, values.result(plan), ["Q4_K_M", "Q2_K"])
    assert answers.run_ids == ("F16", "Q4_K_M", "Q2_K")
    told = spoken(answers)
    assert told[0].startswith("Answer of F16: The tide turned")
    assert told[1].endswith("climbed the steps to wind the light.")
    marked = [text.findChild(QLabel).accessibleDescription() for text in answers.findChildren(AnswerText)]
    assert marked == ["", "First different token: steps", "First different token: the"]


def test_a_run_without_an_answer_says_so(answers):
    plan = values.plan()
    result = values.result(plan, runs=(values.run("F16"), values.run("Q8_0", answers=())))
    answers.set_answers(plan, result, ["Q8_0"])
    assert spoken(answers)[1] == "Answer of Q8_0: No answer."


def test_without_any_answer_nothing_is_shown(answers):
    plan = values.plan()
    answers.set_answers(plan, values.result(plan, runs=()), ["Q8_0"])
    assert answers.isHidden()
    answers.set_answers(plan, values.result(plan), ["Q8_0"])
    assert not answers.isHidden()


def test_markup_of_a_model_is_shown_as_it_is(answers):
    words = marked_html(MarkedText("<img src=x>", "<b>&", "\nnext"))
    assert words == "<qt>&lt;img src=x&gt;<b><u>&lt;b&gt;&amp;</u></b><br>next</qt>"
    plan = values.plan()
    odd = Answer(prompt_id="one", text="<img src='file:///etc/passwd'>", token_ids=(1,))
    runs = (msgspec.structs.replace(values.run("F16"), answers=(odd,)),)
    answers.set_answers(plan, values.result(plan, runs=runs, recommended="", sentence="No."), [])
    label = answers.findChild(AnswerText).findChild(QLabel)
    assert "&lt;img" in label.text()
    assert "<img" not in label.text()
