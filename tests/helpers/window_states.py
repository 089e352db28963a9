"""The states of the window that the gallery shows: each is a generator that brings a window into one and hands it over.

States that show figures run the starter model; all others run scripts of the echo engine.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
from PySide6.QtCore import QEventLoop, QTimer

from app.chat.messages import Role
from app.context import AppContext, build_context
from app.errors import Words
from app.models.library import Library, ModelEntry
from app.paths import install_folder
from backends.echo_engine import EchoScript, Fault
from backends.protocol import LifeCycle
from tests.helpers.echo_window import EchoLibrary, OpenWindow, echo_context, script_entry
from ui.notifications import NoticeLevel

State = Callable[[Path], Iterator[OpenWindow]]

PATIENCE_S = 90.0
NARROW = (960, 600)
GIB = 2**30
QUESTION = "Why does a paged KV cache waste less memory than one big buffer per chat?"
ANSWER = (
    "A big buffer is reserved for the longest answer that might come. Most answers are short, so most of it stays "
    "empty: commonly 60 to 80 %.\n\nA paged cache is cut into small blocks of 16 tokens. A chat takes a block only "
    "when the last one is full, so at most 15 slots are ever wasted, and two chats that start with the same words can "
    "point at the same blocks."
)
TITLES = (
    *("How paging saves memory", "Contract summary", "Regex for log lines", "Trip to Kraków", "Unit tests for parser"),
)


# ------------------------------------------------------------------------------------------ waiting


def wait(seconds: float) -> None:
    """Let the window run for a while."""
    loop = QEventLoop()
    QTimer.singleShot(int(seconds * 1000), loop.quit)
    loop.exec()


def wait_for(is_so: Callable[[], bool]) -> None:
    """Let the window run until something holds; an error says what never did."""
    deadline = time.monotonic() + PATIENCE_S
    while not is_so():
        if time.monotonic() > deadline:
            raise TimeoutError(f"not within {PATIENCE_S:.0f} s: {is_so.__qualname__}")
        wait(0.03)


def opened(context: AppContext) -> OpenWindow:
    """Open a window and wait until its model is loaded."""
    window = OpenWindow(context)
    wait_for(window.is_ready)
    return window


def ask(window: OpenWindow, text: str) -> None:
    """Write a prompt and send it."""
    window.prompt.set_text(text)
    window.prompt.send_requested.emit()


# ------------------------------------------------------------------------------------------ contexts


def scripted(folder: Path, script: EchoScript) -> AppContext:
    """Return a context whose one model is a script that goes by the starter's name and claims its memory."""
    memory = {"weights_bytes": 91 * 2**20, "kv_reserved_bytes": 180 * 2**20, "compute_bytes": 97 * 2**20}
    split = msgspec.structs.replace(script.memory, **memory)
    script = msgspec.structs.replace(script, memory=split, context_tokens=8192)
    return echo_context([script_entry(folder, "SmolLM2-135M-Instruct", script, quantization="Q4_1", origin="starter")])


def with_chats(context: AppContext, count: int = len(TITLES)) -> AppContext:
    """Store some chats, the first title newest."""
    for number in reversed(range(count)):
        part = f", part {number}" if number >= len(TITLES) else ""
        chat = context.store.add_chat(TITLES[number % len(TITLES)] + part)
        context.store.add_message(chat.chat_id, None, Role.USER, QUESTION)
    return context


# ------------------------------------------------------------------------------------------ states


def first_run(_folder: Path) -> Iterator[OpenWindow]:
    """The first start, the starter model ready."""
    yield opened(build_context())


def mid_answer(_folder: Path) -> Iterator[OpenWindow]:
    """The starter model writing its second answer, the cutaway panel beside it."""
    context = with_chats(build_context())
    context.settings.change(seed=4, max_tokens=100, context_tokens=8192, panel_folded=False)
    window = opened(context)
    ask(window, "Explain in two sentences why the sky is blue.")
    wait_for(window.is_idle)
    context.settings.change(max_tokens=None)
    wait(1.5)
    ask(window, "Write a long story about a lighthouse keeper and the sea.")
    wait_for(lambda: len(window.texts) == 4 and len(window.texts[-1]) > 400)
    yield window


def finished(folder: Path) -> Iterator[OpenWindow]:
    """An answer with its figures."""
    window = opened(with_chats(scripted(folder, EchoScript(ANSWER, token_s=0.002, prefill_s=0.09))))
    ask(window, QUESTION)
    wait_for(window.is_idle)
    yield window


def dead_engine(folder: Path) -> Iterator[OpenWindow]:
    """The engine was killed in the middle of an answer."""
    script = EchoScript(ANSWER, token_s=0.001, fault=Fault("decode", "kill", 180))
    window = opened(with_chats(scripted(folder, script)))
    ask(window, QUESTION)
    wait_for(lambda: window.context.engine.state is LifeCycle.DEAD)
    wait_for(lambda: bool(window.chat.notices.keys))
    yield window


def no_model(_folder: Path) -> Iterator[OpenWindow]:
    """No model anywhere."""
    window = OpenWindow(echo_context([]))
    wait_for(window.has_plots)
    yield window


def loading(folder: Path) -> Iterator[OpenWindow]:
    """A model being loaded, a prompt written meanwhile."""
    window = OpenWindow(scripted(folder, EchoScript(ANSWER, load_s=30.0)))
    wait_for(lambda: "%" in window.chats.status.line)
    window.prompt.set_text("A question that waits for the model")
    yield window


def models(folder: Path) -> Iterator[OpenWindow]:
    """The library: the starter, models of a person's own, and a file that is gone."""
    context = build_context(library=EchoLibrary(Library(folder / "data", install_folder()).entries()))
    invented = (
        invented_entry("Qwen3-8B", "Q4_K_M", folder, size_bytes=int(4.68 * GIB), context_tokens=40_960),
        invented_entry("Llama-3.1-8B-Instruct", "Q5_K_M", folder, size_bytes=int(5.34 * GIB), context_tokens=131_072),
        invented_entry("Gemma-3-12B", "", folder, fault="The file is not there any more."),
    )
    context.library.add_entries(invented)
    window = opened(context)
    window.window.show_screen("models")
    yield window


def invented_entry(name: str, quantization: str, folder: Path, **fields: object) -> ModelEntry:
    """Return an entry of the library for a file that is nowhere."""
    return ModelEntry(name, name, folder / f"{name}.gguf", quantization, **fields)


def inspect(folder: Path) -> Iterator[OpenWindow]:
    """The plots at full size while the starter model writes."""
    for window in mid_answer(folder):
        window.window.show_screen("inspect")
        wait(1.0)
        yield window


def compare(folder: Path) -> Iterator[OpenWindow]:
    """The compare screen without any model."""
    for window in no_model(folder):
        window.window.show_screen("compare")
        yield window


def settings(folder: Path) -> Iterator[OpenWindow]:
    """The settings."""
    for window in no_model(folder):
        window.window.show_screen("settings")
        yield window


def notices(folder: Path) -> Iterator[OpenWindow]:
    """More notices than fit, over an answer."""
    for window in finished(folder):
        tell = window.window.tell
        full = Words("The chats cannot be written: the disk is full.", "Free some room; nothing you wrote is lost.")
        tell("gpu", Words("The GPU was asked for, but the model runs on the CPU.", "Answers are only slower."))
        tell("plots", Words("The table was saved as memory.csv."), NoticeLevel.FACT)
        tell("store", full, NoticeLevel.ERROR)
        tell("context", Words("A longer context was asked for than this model can use; the model's own is in use."))
        yield window


def narrow(folder: Path) -> Iterator[OpenWindow]:
    """The smallest window."""
    for window in finished(folder):
        window.window.resize(*NARROW)
        yield window


def narrow_cutaway(folder: Path) -> Iterator[OpenWindow]:
    """The smallest window with the cutaway panel."""
    for window in narrow(folder):
        window.window.plots.panel.set_folded(False)
        wait(0.5)
        yield window


def narrow_inspect(folder: Path) -> Iterator[OpenWindow]:
    """Inspect in the smallest window."""
    for window in narrow(folder):
        window.window.show_screen("inspect")
        wait(0.5)
        yield window


def many_chats(folder: Path) -> Iterator[OpenWindow]:
    """A long list of chats, one just deleted."""
    window = opened(with_chats(scripted(folder, EchoScript(ANSWER)), 60))
    window.chats.open_chat(window.chat_id(0))
    window.chats.delete_chat(window.chat_id(2))
    yield window


STATES: tuple[State, ...] = (
    *(first_run, mid_answer, finished, dead_engine, no_model, loading, models, inspect, compare, settings, notices),
    *(narrow, narrow_cutaway, narrow_inspect, many_chats),
)
