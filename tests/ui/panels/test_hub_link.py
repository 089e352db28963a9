"""The question before a link is opened: its host and the whole address, and nothing that is no page of the web."""

from __future__ import annotations

import pytest
from PySide6.QtWidgets import QLabel, QPushButton

from ui.panels.hub_link import LinkQuestion, host_text


@pytest.fixture
def question(qtbot):
    made = LinkQuestion()
    qtbot.addWidget(made)
    return made


def texts(question):
    return [label.text().replace("\u200b", "") for label in question.findChildren(QLabel)]


def test_the_host_is_in_the_question_and_the_address_below(question, qtbot):
    question.ask_link("https://evil.example/huggingface.co/a?b=c")
    assert texts(question) == ["Open evil.example in your browser?", "https://evil.example/huggingface.co/a?b=c"]
    with qtbot.waitSignal(question.confirmed) as caught:
        question.findChild(QPushButton, "answer_open").click()
    assert caught.args == ["https://evil.example/huggingface.co/a?b=c"]


def test_cancel_opens_nothing(question, qtbot):
    question.ask_link("https://a.example/")
    with qtbot.assertNotEmitted(question.confirmed):
        question.findChild(QPushButton, "answer_cancel").click()
    assert question.isHidden()


@pytest.mark.parametrize(
    "address", ["javascript:alert(1)", "file:///etc/passwd", "https://", "", "https://[bad", "ftp://a.example/"]
)
def test_what_is_no_page_of_the_web_is_not_even_asked_about(question, address):
    question.ask_link(address)
    assert question.isHidden()


def test_a_host_is_read_as_browsers_do():
    assert host_text("https://huggingface.co@evil.example/x") == "evil.example"
    assert host_text("https://[::1") == ""
    assert host_text("words") == ""
