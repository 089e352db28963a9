"""The Models screen at work with the real library on real files: what a person asks is done, or said why not."""

from __future__ import annotations

import pytest
from PySide6.QtWidgets import QPushButton

from app.context import build_context
from app.models import removal
from app.models.entry import ModelDefaults
from app.models.fit_types import Device, Machine
from backends import protocol
from tests.helpers.gguf_files import named_model
from tests.helpers.notices import shown_notices
from ui.bridge import Bridge
from ui.models_screen import ModelsScreen
from ui.tasks import SynchronousTasks
from ui.theme import load_theme

MIB = 2**20


@pytest.fixture
def context(monkeypatch):
    monkeypatch.setattr("app.models.advisor.probe_memory", lambda *_asked, **_more: NoAnswer)
    monkeypatch.setattr("app.models.advisor.measure_bandwidth", lambda: 12e9)
    made = build_context()
    yield made
    made.close()


class NoAnswer:
    """A probe that told nothing."""

    split = None


@pytest.fixture
def screen(qtbot, context):
    bridge, tasks = Bridge(), SynchronousTasks()
    made = ModelsScreen(context, bridge, load_theme("dark"), tasks)
    qtbot.addWidget(made.page)
    made.page.resize(1200, 800)
    made.page.show()
    yield made
    made.close()
    bridge.close()


@pytest.fixture
def tiny(tmp_path):
    return named_model("Tiny").write(tmp_path / "tiny.gguf")


def names(screen):
    return [model.name for model in screen.panel.list.rows.all_models]


def entry_named(context, name):
    return next(entry for entry in context.library.entries() if entry.name == name)


def test_a_file_is_added_hashed_chosen_and_used(screen, context, tiny, qtbot, starter_model):
    with qtbot.waitSignal(screen.use_requested) as used:
        screen.add([tiny], use=True)
    assert used.args[0].path == tiny
    assert "Tiny" in names(screen)
    assert screen.panel.chosen_entry.name == "Tiny"
    assert entry_named(context, "Tiny").identity.startswith("sha256:")
    assert shown_notices(screen.notices) == []


def test_of_two_files_opened_in_turn_the_later_is_used_whichever_is_read_first(screen, tiny, tmp_path, monkeypatch):
    later = named_model("Later").write(tmp_path / "later.gguf")
    waiting, used = [], []
    screen.use_requested.connect(lambda entry: used.append(entry.path))
    with monkeypatch.context() as held:
        held.setattr(screen._tasks, "run", lambda work, done, *_more: waiting.append((work, done)))
        screen.add([tiny], use=True)
        screen.add([later], use=True)
    for work, done in reversed(waiting):
        done(work())
    assert used == [later]


def test_what_cannot_be_added_is_said_here(screen, tmp_path, qtbot):
    with qtbot.waitSignal(screen.shown_requested):
        screen.add([tmp_path / "gone.gguf"], use=True)
    [notice] = shown_notices(screen.notices)
    assert notice.startswith("Error: ")
    assert "gone.gguf" in notice


def test_a_folder_is_looked_through_and_can_be_taken_away(screen, context, tmp_path, tiny, qtbot):
    folder = tmp_path / "many"
    folder.mkdir()
    tiny.rename(folder / "tiny.gguf")
    screen.add([folder], use=False)
    assert "Tiny" in names(screen)
    screen.panel.remove_folder_requested.emit(folder)
    assert "Tiny" not in names(screen)
    assert (folder / "tiny.gguf").is_file()


def test_notes_and_defaults_are_kept(screen, context, tiny):
    screen.add([tiny], use=False)
    key = entry_named(context, "Tiny").key
    screen.panel.note_changed.emit(key, "For short letters.")
    screen.panel.defaults_changed.emit(key, ModelDefaults(context_tokens=512, kv_type="q8_0"))
    entry = entry_named(context, "Tiny")
    assert (entry.note, entry.defaults) == ("For short letters.", ModelDefaults(context_tokens=512, kv_type="q8_0"))
    assert context.load_params(entry) == protocol.LoadParams(context_tokens=512, kv_type="q8_0")


def test_deleting_asks_first_and_says_what_came_free(screen, context, tiny):
    screen.add([tiny], use=False)
    key = entry_named(context, "Tiny").key
    screen.panel.delete_requested.emit(key)
    assert tiny.is_file()
    screen.panel.delete_confirmed.emit(key, True)
    assert not tiny.exists()
    assert "Tiny" not in names(screen)
    [notice] = shown_notices(screen.notices)
    assert "are free again" in notice


def test_what_went_to_the_trash_can_be_taken_back(screen, context, tiny, tmp_path, monkeypatch, qtbot):
    monkeypatch.setattr(removal, "has_trash", lambda _path: True)
    monkeypatch.setattr(removal, "to_trash", lambda path: path.rename(tmp_path / "trashed"))
    monkeypatch.setattr(removal, "take_back", (tmp_path / "trashed").rename)
    monkeypatch.setattr(removal, "can_take_back", lambda: True)
    screen.add([tiny], use=False)
    key = entry_named(context, "Tiny").key
    screen.panel.delete_requested.emit(key)
    screen.panel.delete_confirmed.emit(key, False)
    assert not tiny.exists()
    undo = next(found for found in screen.notices.findChildren(QPushButton) if found.text() == "Undo")
    undo.click()
    assert tiny.is_file()
    assert "Tiny" in names(screen)
    assert shown_notices(screen.notices) == []


def test_a_file_that_changed_since_the_question_is_not_deleted(screen, context, tiny):
    screen.add([tiny], use=False)
    key = entry_named(context, "Tiny").key
    screen.panel.delete_requested.emit(key)
    tiny.write_bytes(tiny.read_bytes() + b"more")
    screen.panel.delete_confirmed.emit(key, True)
    assert tiny.is_file()
    [notice] = shown_notices(screen.notices)
    assert "Nothing was deleted" in notice


def test_forgetting_leaves_the_file(screen, context, tiny):
    screen.add([tiny], use=False)
    screen.panel.forget_requested.emit(entry_named(context, "Tiny").key)
    assert tiny.is_file()
    assert "Tiny" not in names(screen)
    screen.panel.forget_requested.emit("gone:Q4_1")
    assert len(shown_notices(screen.notices)) == 1


def test_what_is_free_is_looked_at_while_the_screen_is_shown(screen, context, monkeypatch):
    seen = []
    monkeypatch.setattr(screen.panel, "set_machine", lambda machine: seen.append(machine.cpu.free_bytes))
    machine = Machine((Device("CPU", "This computer", 8 * MIB, 5 * MIB),))
    monkeypatch.setattr(context.advisor, "machine", lambda: machine)
    screen.show()
    assert seen == [5 * MIB]
    assert screen._timer.isActive()
    screen.hide()
    assert not screen._timer.isActive()


def test_other_settings_are_other_questions(screen, context, monkeypatch, starter_model, qtbot):
    screen.refresh()
    asked = []
    monkeypatch.setattr(screen.panel, "set_question", lambda *question: asked.append(question))
    context.settings.change(theme="light")
    context.settings.change(context_tokens=2048)
    qtbot.waitUntil(lambda: asked == [(2048, "f16")], timeout=5000)


def test_a_scan_runs_once_at_a_time_and_says_its_problems(screen, context, monkeypatch):
    scans = []

    def scan(_on_progress, _cancel):
        scans.append(1)
        screen.scan()
        return type("Summary", (), {"problems": ("A folder could not be opened.",)})()

    monkeypatch.setattr(context.library, "scan", scan)
    screen.scan()
    assert scans == [1]
    assert shown_notices(screen.notices) == ["Warning: A folder could not be opened."]
