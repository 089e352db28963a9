"""A keyring that waits for a person makes nobody else wait for long."""

from __future__ import annotations

import threading

import pytest

from app.hub.keyring_call import KeyringCalls, KeyringFailedError, KeyringSilentError

LONG_S = 60.0


@pytest.fixture
def prompt():
    """A keyring's own window that nobody answers until the end of the test."""
    answered = threading.Event()
    yield answered
    answered.set()
    for thread in threading.enumerate():
        if thread.name == "keyring":
            thread.join()


def test_an_answer_and_a_refusal_come_through():
    calls = KeyringCalls()
    assert calls(lambda: "secret") == "secret"
    assert calls(lambda: None) is None

    def refuse():
        raise KeyringFailedError("locked")

    with pytest.raises(KeyringFailedError, match="locked"):
        calls(refuse)
    assert calls(lambda: 3) == 3


def test_a_silent_keyring_is_left_alone_until_it_answers(prompt):
    calls = KeyringCalls(limit_s=0.01)
    with pytest.raises(KeyringSilentError, match="in time"):
        calls(lambda: prompt.wait(LONG_S))
    waiting = [thread for thread in threading.enumerate() if thread.name == "keyring"]
    with pytest.raises(KeyringSilentError, match="not answered yet"):
        calls(lambda: pytest.fail("it was asked again"))
    prompt.set()
    for thread in waiting:
        thread.join()
    assert KeyringCalls(LONG_S)(lambda: "secret") == "secret"
    patient = KeyringCalls(LONG_S)
    patient._open = calls._open
    assert patient(lambda: "secret") == "secret"


def test_the_end_of_the_program_waits_for_nobody(prompt):
    calls, raised, begun = KeyringCalls(LONG_S), [], threading.Event()

    def work():
        begun.set()
        return prompt.wait(LONG_S)

    def ask():
        with pytest.raises(KeyringSilentError) as caught:
            calls(work)
        raised.append(caught.value)

    asker = threading.Thread(target=ask)
    asker.start()
    assert begun.wait(LONG_S)
    calls.close()
    asker.join()
    assert len(raised) == 1
    with pytest.raises(KeyringSilentError):
        calls(lambda: 1)
