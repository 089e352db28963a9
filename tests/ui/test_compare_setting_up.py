"""The setup page at work: what the library has, another reference, an own text, one prediction when all is quiet."""

from __future__ import annotations

import pytest
from PySide6.QtWidgets import QFileDialog

from tests.helpers.compare_runners import FakeServices
from tests.helpers.echo_window import echo_context
from tests.helpers.model_entries import entry, ladder
from ui.compare_setting_up import CompareSettingUp
from ui.panels.compare_setup import CompareSetup
from ui.tasks import SynchronousTasks
from ui.theme import load_theme

PATIENCE_MS = 30_000
QWEN = [entry("Qwen3-8B", "Q4_K_M", 4.9), entry("Qwen3-8B", "Q8_0", 8.5)]


@pytest.fixture
def context():
    made = echo_context([*ladder(), *QWEN])
    yield made
    made.close()


@pytest.fixture
def services(tmp_path):
    return FakeServices(tmp_path)


@pytest.fixture
def setup(qtbot):
    made = CompareSetup(load_theme("dark"))
    qtbot.addWidget(made)
    made.show()
    return made


@pytest.fixture
def at_work(qtbot, context, services, setup, monkeypatch):
    monkeypatch.setattr("ui.compare_setting_up._SETTLE_MS", 1)
    made = CompareSettingUp(context, services, setup, SynchronousTasks())
    made.refresh()
    yield made
    made.close()
    made.finish()


def predicted(setup):
    return setup._prediction.text() == "about 9 minutes"


def test_the_first_model_is_offered_with_its_reference(at_work, setup):
    assert at_work.has_models
    assert setup.choice.title == "Llama-3.1-8B-Instruct"
    assert len(at_work.entries) == 7


def test_another_model_brings_its_own_quantizations(at_work, setup):
    setup.model_chosen.emit("Qwen3-8B")
    assert list(at_work.entries) == ["Qwen3-8B:Q8_0", "Qwen3-8B:Q4_K_M"]
    assert setup.choice.reference_key == "Qwen3-8B:Q8_0"
    assert setup.choice.reference_warnings


def test_another_reference_can_be_chosen(at_work, setup):
    setup.reference_chosen.emit("Llama-3.1-8B-Instruct:Q8_0")
    assert setup.choice.reference_key.endswith(":Q8_0")
    assert len(setup.choice.candidates) == 6


def test_a_new_quantization_joins_and_a_gone_model_leaves(at_work, setup, context):
    context.library.add_entries([entry("Llama-3.1-8B-Instruct", "Q5_0", 5.5)])
    at_work.refresh()
    assert "Llama-3.1-8B-Instruct:Q5_0" in at_work.entries


def test_the_time_is_predicted_once_all_is_settled(at_work, setup, services, qtbot):
    assert services.predictions == 0  # nobody looks
    at_work.set_shown(True)
    qtbot.waitUntil(lambda: predicted(setup), timeout=PATIENCE_MS)
    assert services.predictions == 1
    assert setup._amount_words.text() == "what normal does"
    setup.table.candidates.toggle("Llama-3.1-8B-Instruct:Q2_K")
    assert not predicted(setup)
    qtbot.waitUntil(lambda: predicted(setup), timeout=PATIENCE_MS)


def test_nothing_is_predicted_while_a_comparison_runs_or_nobody_looks(at_work, setup, services, qtbot):
    at_work.set_free(False)
    at_work.set_shown(True)
    assert not at_work._settle.isActive()
    at_work.set_shown(False)
    at_work.set_free(True)
    assert not at_work._settle.isActive()
    assert services.predictions == 0


def test_a_text_that_cannot_be_used_is_said_and_the_bundled_ones_are_taken(at_work, setup, qtbot, tmp_path):
    at_work.set_shown(True)
    with qtbot.waitSignal(at_work.told) as told:
        at_work._on_file(str(tmp_path / "notes.txt"))
    assert "too short" in told.args[0].message
    assert setup.choice.text == "mix"


def test_choosing_no_file_takes_the_bundled_texts_again(at_work, setup, qtbot):
    setup._text.choose("own")
    setup._text.chosen.emit("own")
    dialog = setup.findChild(QFileDialog, "choose_text")
    dialog.reject()
    assert setup.choice.text == "mix"


def test_an_empty_library_is_told(context, services, setup, qtbot, monkeypatch):
    at_work = CompareSettingUp(context, services, setup, SynchronousTasks())
    at_work.refresh()
    monkeypatch.setattr(context.library, "entries", lambda: [])
    with qtbot.waitSignal(at_work.emptied):
        at_work.refresh()
    assert not at_work.has_models
    assert dict(at_work.entries) == {}
    at_work.close()
    at_work.finish()
