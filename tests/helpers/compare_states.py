"""The states of the compare screen that the gallery shows: the panel alone, an invented comparison."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from PySide6.QtWidgets import QApplication

from app.compare.reference import candidates_for
from app.compare.runner_events import PhaseChanged, ResultChanged, RunEnded
from tests.helpers import compare_values, model_entries
from ui.models.compare_list_model import ComparisonRow
from ui.models.compare_progress import CompareProgress
from ui.panels.compare_panel import ComparePanel
from ui.theme import apply_theme, load_theme

PANEL_PX = (1440 - 84, 900)
NARROW_PX = (960 - 84, 600)


class ShownPanel:
    """A compare screen in a window of its own, in the theme of the settings.

    Attributes:
        window: the screen.
    """

    def __init__(self, size: tuple[int, int] = PANEL_PX) -> None:
        app = QApplication.instance()
        assert isinstance(app, QApplication)
        file = Path(os.environ["CUTAWAY_HOME"]) / "config" / "settings.json"
        theme = load_theme(json.loads(file.read_text(encoding="utf-8"))["theme"])
        apply_theme(app, theme)
        self.window = ComparePanel(theme)
        self.window.setObjectName("alone")
        self.window.setStyleSheet(f"QWidget#alone {{ background: {theme.roles['window']}; }}")
        self.window.resize(*size)
        self.window.show()
        self.window.setFocus()

    def close(self) -> None:
        """Take the screen away."""
        self.window.close()
        self.window.deleteLater()


State = Callable[[Path], Iterator[ShownPanel]]


def rows() -> list[ComparisonRow]:
    """Return four comparisons, the last one damaged."""
    now_s = time.time()
    return [
        ComparisonRow("2026-11-30-llama", "Llama-3.1-8B-Instruct", now_s - 60, "done", 7, 7),
        ComparisonRow("b", "SmolLM2-135M-Instruct", now_s - 90_000, "stopped", 3, 8),
        ComparisonRow("c", "Qwen3-8B", now_s - 40 * 86_400, "done", 3, 4),
        ComparisonRow("d", "2026-09-01-gemma", now_s - 80 * 86_400, "", 0, 0, "The file plan.json is damaged."),
    ]


def compare_empty(_folder: Path, size: tuple[int, int] = PANEL_PX) -> Iterator[ShownPanel]:
    """Nothing to compare, and nothing compared yet."""
    panel = ShownPanel(size)
    panel.window.list.set_rows([])
    panel.window.show_nothing_to_compare()
    yield panel


def _setup(size: tuple[int, int], warnings: tuple[str, ...] = ()) -> ShownPanel:
    panel = ShownPanel(size)
    entries, fits = model_entries.library()
    llama = [
        entry for entry in entries if entry.name == "Llama-3.1-8B-Instruct" and not entry.key.startswith("ollama/")
    ]
    reference = llama[-1]
    panel.window.list.set_rows(rows())
    setup = panel.window.setup
    setup.set_models(["Llama-3.1-8B-Instruct", "SmolLM2-135M-Instruct"], "Llama-3.1-8B-Instruct")
    reason = "F16: 16 bits for a weight, as models are published."
    setup.set_reference({entry.key: entry.quantization for entry in llama}, reference.key, reason, warnings)
    setup.set_fits(fits)
    setup.set_entries([reference, *candidates_for(reference, llama)], frozenset(entry.key for entry in llama))
    table = setup.table
    table.candidates.toggle("Llama-3.1-8B-Instruct:Q2_K")
    table.candidates.toggle_kv("Llama-3.1-8B-Instruct:Q4_K_M")
    table.choose("Llama-3.1-8B-Instruct:Q4_K_M")
    words = "1,020 scored tokens of 4 texts · 3 answers of up to 64 tokens · 3 speed rounds"
    setup.set_amount_words(words)
    setup.set_prediction("about 9\u00a0minutes")
    panel.window.show_setup()
    return panel


def compare_setup(_folder: Path) -> Iterator[ShownPanel]:
    """A comparison being set up."""
    yield _setup(PANEL_PX)


def compare_setup_warned(_folder: Path) -> Iterator[ShownPanel]:
    """The same with a reference that is none."""
    yield _setup(
        PANEL_PX,
        (
            "The reference is Q8_0, not the original: the little that Q8_0 itself loses is in none of the figures.",
            "F16 would be the better reference, but does not fit into memory: needs 17.1 GiB, 12.1 GiB free.",
        ),
    )


def compare_setup_narrow(_folder: Path) -> Iterator[ShownPanel]:
    """The smallest window."""
    yield _setup(NARROW_PX)


def progress_of(failed: bool = False) -> CompareProgress:
    """Return a comparison in the middle."""
    progress = CompareProgress(compare_values.plan())
    first = compare_values.result(
        state="running", runs=(compare_values.run("F16", speed=None), compare_values.run("Q8_0", speed=None))
    )
    for run_id in ("F16", "Q8_0"):
        progress.take(RunEnded(run_id))
    progress.take(ResultChanged(first))
    if failed:
        progress.take(RunEnded("Q6_K", compare_values.FAILURE))
    progress.take(PhaseChanged("Q5_K_M", "windows", 2, 4, 252.0))
    return progress


def _running(size: tuple[int, int], failed: bool) -> ShownPanel:
    panel = ShownPanel(size)
    panel.window.list.set_rows(
        [ComparisonRow("2026-11-30-llama", "Llama-3.1-8B-Instruct", time.time(), "running", 2, 7), *rows()[1:]]
    )
    panel.window.list.choose("2026-11-30-llama")
    panel.window.progress.show_progress(progress_of(failed))
    panel.window.show_progress()
    return panel


def compare_running(_folder: Path) -> Iterator[ShownPanel]:
    """A comparison under way."""
    yield _running(PANEL_PX, failed=False)


def compare_failed_run(_folder: Path) -> Iterator[ShownPanel]:
    """The same; a run has failed."""
    yield _running(PANEL_PX, failed=True)


def compare_running_narrow(_folder: Path) -> Iterator[ShownPanel]:
    """The smallest window."""
    yield _running(NARROW_PX, failed=True)


def _results(size: tuple[int, int], **fields: object) -> ShownPanel:
    panel = ShownPanel(size)
    panel.window.list.set_rows(rows())
    panel.window.list.choose("2026-11-30-llama")
    plan = compare_values.plan()
    found = compare_values.result(plan, **fields)
    panel.window.results.show_result(plan, found, frozenset(run.run_id for run in plan.runs))
    panel.window.show_results()
    return panel


def compare_results(_folder: Path) -> Iterator[ShownPanel]:
    """What a comparison found."""
    yield _results(PANEL_PX)


def compare_results_stopped(_folder: Path) -> Iterator[ShownPanel]:
    """Stopped in the middle, a run failed, a warning, the conditions open."""
    runs = (
        compare_values.run("F16"),
        compare_values.run("Q8_0"),
        compare_values.run("Q6_K", quality=None, speed=None, memory=None, answers=(), failure=compare_values.FAILURE),
        compare_values.run("Q4_K_M", speed=None, memory=None),
    )
    warnings = ("The machine was busy meanwhile: 34 % of all cores. Speeds are uncertain.",)
    panel = _results(PANEL_PX, state="stopped", runs=runs, warnings=warnings, differences=())
    panel.window.results.table.choose("Q6_K")
    panel.window.results.table.entry_chosen.emit("Q6_K")
    panel.window.results.conditions.set_open(True)
    yield panel


def compare_results_narrow(_folder: Path) -> Iterator[ShownPanel]:
    """The smallest window."""
    yield _results(NARROW_PX)


def compare_results_narrow_below(_folder: Path) -> Iterator[ShownPanel]:
    """The smallest window, scrolled to the answers and the conditions."""
    panel = _results(NARROW_PX)
    panel.window.results.conditions.set_open(True)
    QApplication.processEvents()
    panel.window.results.scroll_to(panel.window.results.details)
    yield panel


def compare_deleting(_folder: Path) -> Iterator[ShownPanel]:
    """The question before a comparison is deleted."""
    panel = _results(NARROW_PX)
    panel.window.list.ask_to_delete()
    yield panel


STATES: tuple[State, ...] = (
    *(compare_empty, compare_setup, compare_setup_warned, compare_setup_narrow, compare_running, compare_failed_run),
    *(compare_running_narrow, compare_results, compare_results_stopped, compare_results_narrow),
    *(compare_results_narrow_below, compare_deleting),
)
