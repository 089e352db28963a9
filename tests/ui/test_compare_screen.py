"""The Compare screen at work: a comparison is begun, watched, stopped, resumed and deleted, and the window lives on."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path

import msgspec
import pytest

from app.compare.results import ComparisonResult
from app.compare.runner_events import PhaseChanged, ResultChanged, RunEnded
from app.errors import AppError, Words
from tests.helpers import compare_values
from tests.helpers.compare_runners import FakeServices
from tests.helpers.echo_window import echo_context
from tests.helpers.model_entries import entry, ladder
from tests.helpers.notices import shown_notices
from ui.compare_screen import CompareScreen
from ui.tasks import SynchronousTasks
from ui.theme import load_theme

PATIENCE_MS = 30_000
ROOT = Path(__file__).resolve().parents[2]
LLAMA = "2026-11-30-llama"


@pytest.fixture
def context(request):
    made = echo_context(getattr(request, "param", ladder()))
    yield made
    made.close()


@pytest.fixture
def make_screen(qtbot, context, tmp_path):
    made = []

    def make(*kept):
        services = FakeServices(tmp_path, kept)
        screen = CompareScreen(context, load_theme("dark"), SynchronousTasks(), services=services)
        qtbot.addWidget(screen.page)
        screen.page.resize(1300, 800)
        screen.page.show()
        screen.refresh()
        made.append(screen)
        return screen, services

    yield make
    for screen in made:
        screen.close()
        screen.finish()


def found(state="done", **fields):
    return compare_values.plan(), compare_values.result(state=state, **fields)


def start(screen, qtbot):
    screen.panel.setup.start_button.click()
    qtbot.waitUntil(lambda: bool(screen.running_id) and screen._runner is not None, timeout=PATIENCE_MS)


def test_the_reference_is_proposed_and_all_others_are_ticked(make_screen):
    screen, _services = make_screen()
    assert screen.panel.page is screen.panel.setup
    choice = screen.panel.setup.choice
    assert choice.title == "Llama-3.1-8B-Instruct"
    assert choice.reference_key.endswith(":F16")
    assert choice.reference_reason.startswith("F16: 16 bits")
    assert [one.key.rpartition(":")[2] for one in choice.candidates] == [
        *("Q8_0", "Q6_K", "Q5_K_M", "Q4_K_M", "Q3_K_M", "Q2_K"),
    ]


@pytest.mark.parametrize("context", [[entry("Qwen3-8B", "Q4_K_M", 4.9)]], indirect=True)
def test_with_one_quantization_there_is_nothing_to_compare(make_screen, qtbot):
    screen, _services = make_screen()
    assert screen.panel.page is screen.panel._empty
    with qtbot.waitSignal(screen.quantize_requested) as told:
        screen.panel._empty.action_requested.emit()
    assert told.args == ["Qwen3-8B:Q4_K_M"]


@pytest.mark.parametrize("context", [[]], indirect=True)
def test_without_any_model_the_models_are_offered(make_screen, qtbot):
    screen, _services = make_screen()
    with qtbot.waitSignal(screen.models_requested):
        screen.panel._empty.action_requested.emit()


def test_a_comparison_runs_on_another_thread_and_is_shown_at_its_end(make_screen, qtbot):
    screen, services = make_screen()
    start(screen, qtbot)
    assert screen.panel.page is screen.panel.progress
    plan = services.kept["made"][0]
    runner = services.runner_made
    runner.say(PhaseChanged("F16", "windows", 1, 4, 120.0))
    qtbot.waitUntil(
        lambda: "F16: scoring the text, window 2 of 4" in screen.panel.progress.line_texts(), timeout=PATIENCE_MS
    )
    assert runner.thread is not threading.main_thread()
    runner.say(RunEnded("F16"))
    runner.say(RunEnded("Q8_0", "The engine ended."))
    qtbot.waitUntil(lambda: "Q8_0: The engine ended." in screen.panel.progress.line_texts(), timeout=PATIENCE_MS)
    done = ComparisonResult(
        comparison_id="made", state="done", runs=(compare_values.run("F16"),), sentence="All equal."
    )
    with qtbot.waitSignal(screen.told, timeout=PATIENCE_MS) as told:
        runner.say(done)
    assert told.args == ["The comparison of Llama-3.1-8B-Instruct is finished. All equal."]
    assert screen.panel.page is screen.panel.results
    assert screen.panel.results.shown == (plan, done)
    assert screen.running_id == ""


def test_a_stop_keeps_what_is_there_and_it_can_go_on(make_screen, qtbot):
    screen, services = make_screen()
    start(screen, qtbot)
    screen.panel.progress.stop_button.click()
    assert services.runner_made.is_stopped.is_set()
    qtbot.waitUntil(lambda: screen.running_id == "", timeout=PATIENCE_MS)
    assert screen.panel.page is screen.panel.results
    services.runner_made = type(services.runner_made)()
    screen.panel.results.resume_button.click()
    qtbot.waitUntil(lambda: screen.running_id == "made" and screen._runner is not None, timeout=PATIENCE_MS)
    assert screen.panel.page is screen.panel.progress


def test_only_one_comparison_runs_at_a_time(make_screen, qtbot):
    screen, _services = make_screen(found())
    screen.show_setup()
    start(screen, qtbot)
    screen.panel.list.chosen.emit(LLAMA)
    assert screen.panel.page is screen.panel.results
    assert not screen.panel.results.resume_button.isEnabled()
    screen.show_setup()
    assert not screen.panel.setup.start_button.isEnabled()
    screen.resume(LLAMA)
    assert screen.running_id == "made"
    screen.panel.list.chosen.emit("made")
    assert screen.panel.page is screen.panel.progress


def test_closing_in_the_middle_stops_the_runner(make_screen, qtbot):
    screen, services = make_screen()
    start(screen, qtbot)
    screen.close()
    screen.finish()
    assert services.runner_made.is_stopped.is_set()


def test_a_folder_that_cannot_be_used_is_said(make_screen, qtbot):
    screen, services = make_screen()
    start(screen, qtbot)
    services.runner_made.say(AppError(Words("This comparison is run elsewhere.", "Wait until it has ended.")))
    qtbot.waitUntil(lambda: screen.running_id == "", timeout=PATIENCE_MS)
    [notice] = shown_notices(screen.notices)
    assert "run elsewhere" in notice


def test_what_cannot_be_begun_is_said_and_can_be_tried_again(make_screen):
    screen, services = make_screen()
    services.refusal = Words("There is too little in your chats to score.", "Choose a file.")
    screen.panel.setup.start_button.click()
    [notice] = shown_notices(screen.notices)
    assert "too little in your chats" in notice
    assert screen.panel.setup.start_button.isEnabled()


def test_the_newest_comparison_is_shown_first(make_screen):
    older = compare_values.plan(comparison_id="older", created_s=1.0)
    screen, _services = make_screen((older, compare_values.result(older)), found())
    assert screen.panel.page is screen.panel.results
    assert screen.panel.list.chosen_id == LLAMA


def test_a_comparison_that_is_gone_says_so(make_screen):
    screen, _services = make_screen(found())
    screen.open("gone")
    assert screen.panel.page is screen.panel._empty
    assert "no such comparison" in screen.panel._empty._sentence.accessibleName()


def test_a_deleted_comparison_leaves_the_list(make_screen):
    screen, services = make_screen(found())
    screen.panel.list.ask_to_delete()
    assert LLAMA in services.kept
    screen.panel.list.confirm.answered.emit("delete")
    assert services.kept == {}
    assert screen.panel.list.rows.rowCount() == 0
    assert screen.panel.page is screen.panel.setup


def test_the_recommended_model_is_used_in_the_chat(make_screen, qtbot):
    screen, _services = make_screen(found())
    with qtbot.waitSignal(screen.use_requested) as used:
        screen.panel.results.use_button.click()
    assert used.args[0].quantization == "Q4_K_M"


def test_a_run_whose_model_is_gone_cannot_be_used(make_screen):
    plan = compare_values.plan(candidates=(compare_values.spec("Q5_0", 5.5, 5.2),))
    result = compare_values.result(plan, runs=(compare_values.run("F16"),), recommended="Q5_0", differences=())
    screen, _services = make_screen((plan, result))
    assert screen.panel.results.use_button.isHidden()


def test_progress_of_a_comparison_that_is_not_looked_at_moves_only_the_list(make_screen, qtbot):
    screen, services = make_screen()
    start(screen, qtbot)
    screen.show_setup()
    run = compare_values.run("F16")
    services.runner_made.say(ResultChanged(ComparisonResult(comparison_id="made", state="running", runs=(run,))))
    row = screen.panel.list.rows
    qtbot.waitUntil(lambda: row.row_at(0) is not None and row.row_at(0).done_runs == 1, timeout=PATIENCE_MS)
    assert screen.panel.page is screen.panel.setup
    assert row.row_at(0).state == "running"


def test_another_theme_reaches_every_part(make_screen):
    screen, _services = make_screen(found())
    screen.set_theme(load_theme("light"))
    assert screen.panel.results.table.runs.theme.name == "light"
    assert screen.panel.setup.table.candidates.theme.name == "light"


def test_a_comparison_that_failed_in_part_can_be_tried_again(make_screen):
    plan, result = found()
    failed = msgspec.structs.replace(result.runs[1], failure="The engine ended.", quality=None)
    result = msgspec.structs.replace(result, runs=(result.runs[0], failed, *result.runs[2:]))
    screen, _services = make_screen((plan, result))
    assert screen.panel.results.resume_button.isVisible()
    assert screen.panel.results.resume_button.text() == "Try again"


def test_a_run_with_another_kv_cache_takes_it_into_the_chat(make_screen, qtbot):
    kv = compare_values.spec("Q8_0", 8.5, 7.95, run_id="Q8_0-kv-q8_0", label="Q8_0 · KV q8_0", kv_type="q8_0")
    plan = compare_values.plan(candidates=(kv,))
    run = msgspec.structs.replace(compare_values.run("Q8_0"), run_id=kv.run_id)
    result = compare_values.result(plan, runs=(compare_values.run("F16"), run), recommended=kv.run_id, differences=())
    screen, services = make_screen((plan, result))
    assert screen.panel.results.use_button.text() == "Use Q8_0 · KV q8_0"
    with qtbot.waitSignal(screen.use_requested):
        screen.panel.results.use_button.click()
    assert services.kv_types == ["q8_0"]


def test_the_first_paint_loads_nothing_of_it():
    code = "import sys, ui.main_window; print(*(n for n in sys.modules if n == 'numpy' or n.startswith('app.compare')))"
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=True)
    assert told.stdout.strip() == ""


def test_the_window_makes_the_screen_when_it_is_asked_for(open_window):
    window = open_window().window
    assert window._compare is None
    window.show_screen("compare")
    assert window._screens.currentWidget() is window.compare.page
    assert window.compare.panel.page is window.compare.panel._empty
    window.compare.models_requested.emit()
    assert window._screens.currentWidget() is window.models.page
