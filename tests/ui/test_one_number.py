"""The same number on every screen: chip, Models screen, Inspect, the question before a load and the command line."""

from __future__ import annotations

import json

import pytest

from app import cli
from app.context import build_context
from app.models.fit_types import Device, Machine
from app.models.fit_words import fit_sentence, fit_short
from app.units import bytes_text
from tests.helpers.notices import shown_notices

PATIENCE_MS = 60_000
GIB = 2**30


@pytest.fixture
def free_bytes(monkeypatch):
    """What is free, the same for everybody who asks; a list with one number that a test may change."""
    free = [6 * GIB]

    def read(floor_bytes, bandwidth_bytes_per_s, held_bytes):
        device = Device("CPU", "This computer", 8 * GIB, free[0], bandwidth_bytes_per_s)
        return Machine((device,), {"llama_cpp": 46 * 2**20})

    monkeypatch.setattr("app.models.advisor.read_machine", read)
    monkeypatch.setattr("app.models.advisor.measure_bandwidth", lambda: 12e9)
    return free


def command_line(capsys, *arguments):
    capsys.readouterr()
    assert cli.run(arguments) == 0
    return capsys.readouterr().out


@pytest.mark.usefixtures("starter_model")
def test_every_face_says_the_same(open_window, qtbot, capsys, free_bytes):
    context = build_context()
    context.settings.change(context_tokens=1024)
    window = open_window(context=context)
    [entry] = context.library.entries()
    window.window.show_screen("models")
    panel = window.window.models.panel
    context.advisor.probe(entry)
    # the window's own load tells what it took a reading later, and every face follows it
    qtbot.waitUntil(lambda: context.advisor.measured(entry) is not None, timeout=PATIENCE_MS)
    fit = context.advisor.fit(entry)
    sentence, short, total = fit_sentence(fit), fit_short(fit), bytes_text(fit.estimate.needed_bytes)
    assert total in sentence

    qtbot.waitUntil(lambda: panel.page.detail._sentence.text() == sentence, timeout=PATIENCE_MS)
    table = panel.page.table.model()
    rows, columns = range(table.rowCount()), range(table.columnCount())
    cells = [table.index(row, column).data() for row in rows for column in columns]
    assert short in cells
    window.chats.refresh_models()
    assert window.chat.chip.model_actions()[0].text().endswith(f" · {short}")
    assert f"It needs about {total}; " in context.memory_hint()

    told = json.loads(command_line(capsys, "fit", entry.key, "--json"))
    assert told["sentence"] == sentence
    assert bytes_text(told["predicted"]["total_bytes"]) == bytes_text(fit.estimate.total_bytes)
    shown = command_line(capsys, "fit", entry.key).replace("\n", " ")
    assert sentence.replace("\u00a0", " ") in shown
    assert short.replace("\u00a0", " ") in command_line(capsys, "models", "list")

    def predicted_by_owner():
        return {row.owner: row.predicted_bytes for row in window.window.plots.inspect.estimate.estimates.rows}

    qtbot.waitUntil(lambda: "KV cache" in predicted_by_owner(), timeout=PATIENCE_MS)
    by_owner = predicted_by_owner()
    assert by_owner["KV cache"] == fit.estimate.kv_bytes
    assert by_owner["Weights"] == fit.estimate.weights_bytes - fit.estimate.copied_bytes


@pytest.mark.usefixtures("starter_model")
def test_the_question_before_a_load_has_that_number_too(open_window, qtbot, capsys, free_bytes):
    context = build_context()
    free_bytes[0] = 128 * 2**20
    window = open_window(context=context, is_ready=lambda window: bool(shown_notices(window.chat.notices)))
    [entry] = context.library.entries()
    fit = context.advisor.fit(entry)
    total = bytes_text(fit.estimate.needed_bytes)
    [notice] = shown_notices(window.chat.notices)
    assert f"Needs {total} with 8,192 tokens" in notice
    assert total in fit_short(fit)
    assert window.chats.status.entry is None
    assert total.replace("\u00a0", " ") in command_line(capsys, "models", "list")
