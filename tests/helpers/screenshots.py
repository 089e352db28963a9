"""A gallery of the window for human eyes: `make screenshots` writes build/screenshots and prints the paths.

Every state of the window in light and dark at 100 % and 200 %. Each theme and scale is drawn by a child process of its
own, since Qt reads the scale once. States that show figures run the starter model; all others run scripts. One more
picture is of the real program under a real window system, where Xvfb is installed.

    python tests/helpers/screenshots.py [--theme dark] [--scale 1] [state ...]
"""

from __future__ import annotations

import argparse
import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT))

from PySide6.QtCore import QEventLoop, QTimer  # noqa: E402 - found only once the tree is on sys.path
from PySide6.QtGui import QGuiApplication  # noqa: E402
from PySide6.QtWidgets import QApplication  # noqa: E402

from app.chat.messages import Role  # noqa: E402
from app.context import AppContext, build_context  # noqa: E402
from app.errors import Words  # noqa: E402
from app.models.library import Library, ModelEntry  # noqa: E402
from backends.echo_engine import EchoScript, Fault  # noqa: E402
from backends.protocol import LifeCycle  # noqa: E402
from tests.helpers.echo_window import EchoLibrary, OpenWindow, echo_context, script_entry  # noqa: E402
from ui.notifications import NoticeLevel  # noqa: E402

OUT = ROOT / "build" / "screenshots"
PATIENCE_S = 90.0
SIZE, NARROW = (1440, 900), (960, 600)
QUESTION = "Why does a paged KV cache waste less memory than one big buffer per chat?"
ANSWER = (
    "A big buffer is reserved for the longest answer that might come. Most answers are short, so most of it stays "
    "empty: commonly 60 to 80 %.\n\nA paged cache is cut into small blocks of 16 tokens. A chat takes a block only "
    "when the last one is full, so at most 15 slots are ever wasted, and two chats that start with the same words can "
    "point at the same blocks."
)
TITLES = (
    "How paging saves memory",
    "Contract summary",
    "Regex for log lines",
    "Trip to Kraków",
    "Unit tests for parser",
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


def wait_ready(program: OpenWindow) -> None:
    """Wait until the model is loaded."""
    wait_for(program.is_ready)


# ------------------------------------------------------------------------------------------ contexts


def scripted(
    folder: Path, script: EchoScript, name: str = "SmolLM2-135M-Instruct", origin: str = "starter"
) -> AppContext:
    """Return a context whose one model is a script that goes by this name."""
    memory = {"weights_bytes": 91 * 2**20, "kv_reserved_bytes": 180 * 2**20, "compute_bytes": 97 * 2**20}
    script = replace_struct(script, memory=replace_struct(script.memory, **memory), context_tokens=8192)
    return echo_context([script_entry(folder, name, script, quantization="Q4_1", origin=origin)])


def replace_struct(struct: object, **changes: object) -> object:
    """Return a message with some fields changed."""
    import msgspec

    return msgspec.structs.replace(struct, **changes)


def with_chats(context: AppContext, count: int = len(TITLES)) -> AppContext:
    """Store some chats, the first title newest."""
    for number in reversed(range(count)):
        chat = context.store.add_chat(
            TITLES[number % len(TITLES)] + (f", part {number}" if number >= len(TITLES) else "")
        )
        context.store.add_message(chat.chat_id, None, Role.USER, QUESTION)
    return context


def starter() -> AppContext:
    """Return a context with the starter model and the same dice every time."""
    context = build_context()
    context.settings.change(seed=4, max_tokens=100, context_tokens=8192)
    return context


# ------------------------------------------------------------------------------------------ states


def first_run(_folder: Path) -> Iterator[OpenWindow]:
    """The first start, the starter model ready."""
    program = OpenWindow(build_context())
    wait_ready(program)
    yield program


def finished(folder: Path) -> Iterator[OpenWindow]:
    """An answer with its figures."""
    program = OpenWindow(with_chats(scripted(folder, EchoScript(ANSWER, token_s=0.002, prefill_s=0.09))))
    wait_ready(program)
    ask(program, QUESTION)
    wait_for(program.is_idle)
    yield program


def mid_answer(_folder: Path) -> Iterator[OpenWindow]:
    """The starter model writing, the cutaway panel beside it."""
    context = with_chats(starter())
    context.settings.change(panel_folded=False)
    program = OpenWindow(context)
    wait_ready(program)
    ask(program, "Explain in two sentences why the sky is blue.")
    wait_for(program.is_idle)
    context.settings.change(max_tokens=None)
    wait(1.5)
    ask(program, "Write a long story about a lighthouse keeper and the sea.")
    view = program.chat.view
    wait_for(lambda: len(view.items) == 4 and len(view.items[-1].text) > 400)
    yield program


def dead_engine(folder: Path) -> Iterator[OpenWindow]:
    """The engine was killed in the middle of an answer."""
    script = EchoScript(ANSWER, token_s=0.001, fault=Fault("decode", "kill", 180))
    program = OpenWindow(with_chats(scripted(folder, script)))
    wait_ready(program)
    ask(program, QUESTION)
    wait_for(lambda: program.context.engine.state is LifeCycle.DEAD)
    wait_for(lambda: bool(program.chat.notices.keys))
    yield program


def no_model(_folder: Path) -> Iterator[OpenWindow]:
    """No model anywhere."""
    program = OpenWindow(echo_context([]))
    wait_for(program.has_plots)
    yield program


def loading(folder: Path) -> Iterator[OpenWindow]:
    """A model being loaded, a prompt written meanwhile."""
    program = OpenWindow(scripted(folder, EchoScript(ANSWER, load_s=30.0)))
    wait_for(lambda: "%" in program.chats.status.line)
    program.chat.composer.prompt.set_text("A question that waits for the model")
    yield program


def models(folder: Path) -> Iterator[OpenWindow]:
    """The library: the starter, models of a person's own, and a file that is gone."""
    context = build_context()
    invented = (
        ModelEntry(
            "q:Q4_K_M",
            "Qwen3-8B",
            folder / "Qwen3-8B-Q4_K_M.gguf",
            "Q4_K_M",
            "qwen3",
            5_030_000_000,
            8_190_000_000,
            40_960,
        ),
        ModelEntry(
            "l:Q5_K_M",
            "Llama-3.1-8B-Instruct",
            folder / "Llama-3.1-8B-Q5_K_M.gguf",
            "Q5_K_M",
            "llama",
            5_730_000_000,
            8_030_000_000,
            131_072,
        ),
        ModelEntry(
            "g:Q3_K_M",
            "Gemma-3-12B",
            folder / "gemma-3-12b-Q3_K_M.gguf",
            "",
            "",
            0,
            fault="The file is not there any more.",
        ),
    )
    library = Library(context.paths.data, ROOT)
    context.library = EchoLibrary([*library.entries(), *invented])
    program = OpenWindow(context)
    wait_ready(program)
    program.window.show_screen("models")
    yield program


def inspect(folder: Path) -> Iterator[OpenWindow]:
    """The plots at full size while the starter model writes."""
    for program in mid_answer(folder):
        program.window.show_screen("inspect")
        wait(1.0)
        yield program


def settings(_folder: Path) -> Iterator[OpenWindow]:
    """The settings."""
    program = OpenWindow(echo_context([]))
    wait_for(program.has_plots)
    program.window.show_screen("settings")
    yield program


def compare(_folder: Path) -> Iterator[OpenWindow]:
    """The screen that is not there yet."""
    program = OpenWindow(echo_context([]))
    wait_for(program.has_plots)
    program.window.show_screen("compare")
    yield program


def notices(folder: Path) -> Iterator[OpenWindow]:
    """More notices than fit, over an answer."""
    for program in finished(folder):
        tell = program.window.tell
        tell(
            "gpu", Words("The GPU was asked for, but the model runs on the CPU.", "Answers are the same, only slower.")
        )
        tell("plots", Words("The table was saved as memory.csv."), NoticeLevel.FACT)
        tell(
            "store",
            Words(
                "The chats cannot be written: the disk is full.", "Free some room; what you write is kept in memory."
            ),
            NoticeLevel.ERROR,
        )
        tell("context", Words("A longer context was asked for than this model can use; the model's own is in use."))
        yield program


def narrow(folder: Path) -> Iterator[OpenWindow]:
    """The smallest window."""
    for program in finished(folder):
        program.window.resize(*NARROW)
        yield program


def narrow_cutaway(folder: Path) -> Iterator[OpenWindow]:
    """The smallest window with the cutaway panel."""
    for program in finished(folder):
        program.window.resize(*NARROW)
        program.window.plots.panel.set_folded(False)
        wait(0.5)
        yield program


def narrow_inspect(folder: Path) -> Iterator[OpenWindow]:
    """Inspect in the smallest window."""
    for program in finished(folder):
        program.window.resize(*NARROW)
        program.window.show_screen("inspect")
        wait(0.5)
        yield program


def many_chats(folder: Path) -> Iterator[OpenWindow]:
    """A long list of chats, one just deleted."""
    program = OpenWindow(with_chats(scripted(folder, EchoScript(ANSWER)), 60))
    wait_ready(program)
    program.chats.open_chat(program.chat_id(0))
    program.chats.delete_chat(program.chat_id(2))
    yield program


STATES: tuple[Callable[[Path], Iterator[OpenWindow]], ...] = (
    *(first_run, mid_answer, finished, dead_engine, no_model, loading, models, inspect, compare, settings, notices),
    *(narrow, narrow_cutaway, narrow_inspect, many_chats),
)


def ask(program: OpenWindow, text: str) -> None:
    """Write a prompt and send it."""
    composer = program.chat.composer
    composer.prompt.set_text(text)
    composer.prompt.send_requested.emit()


# ------------------------------------------------------------------------------------------ pictures


def draw(state: Callable[[Path], Iterator[OpenWindow]], theme: str, path: Path) -> None:
    """Bring the window into a state and save its picture."""
    with tempfile.TemporaryDirectory() as folder:
        os.environ["CUTAWAY_HOME"] = folder
        write_settings(Path(folder), theme)
        scripts = Path(folder) / "scripts"
        scripts.mkdir()
        steps = state(scripts)
        program = next(steps)
        try:
            wait(0.4)
            if not program.window.grab().save(str(path)):
                raise OSError(f"{path} could not be written")
            program.chat.stop()
        finally:
            program.close()
            QApplication.sendPostedEvents()


def write_settings(home: Path, theme: str) -> None:
    """Choose the theme before the program starts."""
    (home / "config").mkdir()
    (home / "config" / "settings.json").write_text(f'{{"theme": "{theme}"}}', encoding="utf-8")


def draw_all(theme: str, scale: str, names: list[str]) -> int:
    """Draw the named states in this process; returns how many failed."""
    os.environ["LANGUAGE"] = "en"
    app = QApplication(["cutaway"])
    app.setQuitOnLastWindowClosed(False)
    failed = 0
    for state in STATES:
        if names and state.__name__ not in names:
            continue
        path = OUT / f"{state.__name__}-{theme}-{int(float(scale) * 100)}.png"
        try:
            draw(state, theme, path)
        except (OSError, TimeoutError, RuntimeError) as error:
            failed += 1
            print(f"{path.name}: {error}", file=sys.stderr, flush=True)
        else:
            print(path, flush=True)
    return failed


# ------------------------------------------------------------------------------------------ a real window system


@contextlib.contextmanager
def x_server() -> Iterator[str]:
    """Start an X server of our own and end it; gives its display."""
    reading, writing = os.pipe()
    command = ["Xvfb", "-displayfd", str(writing), "-screen", "0", "1600x1000x24", "-nolisten", "tcp"]
    server = subprocess.Popen(command, pass_fds=[writing], stderr=subprocess.DEVNULL)
    os.close(writing)
    try:
        with os.fdopen(reading) as told:
            yield f":{told.readline().strip()}"
    finally:
        server.terminate()
        server.wait()


def draw_real_window() -> int:
    """Start the program as a person does under an X server of its own and save what is on the screen."""
    path = OUT / "real-window-x11.png"
    with tempfile.TemporaryDirectory() as home, x_server() as display:
        environment = {**os.environ, "DISPLAY": display, "QT_QPA_PLATFORM": "xcb", "CUTAWAY_HOME": home}
        environment |= {"CUTAWAY_TIMING": "1", "LANGUAGE": "en"}
        program = subprocess.Popen(
            [sys.executable, "-m", "app"], cwd=ROOT, env=environment, stderr=subprocess.PIPE, text=True
        )
        try:
            assert program.stderr is not None
            first_line = program.stderr.readline().strip()
            time.sleep(6.0)  # the model loads; nothing tells another process of it
            grabber = [sys.executable, __file__, "--grab", str(path)]
            done = subprocess.run(grabber, cwd=ROOT, env=environment, timeout=PATIENCE_S, check=False)
        finally:
            program.terminate()
            program.wait()
            program.stderr.close()
    print(f"{path} ({first_line})", flush=True)
    return done.returncode


def grab_screen(path: str) -> int:
    """Save what is on the screen."""
    app = QGuiApplication(["grab"])
    return 0 if app.primaryScreen().grabWindow(0).save(path) else 1


def main() -> int:
    """Draw what was asked for, everything without a wish; returns how many failed."""
    parser = argparse.ArgumentParser(description="Draw the window in every state.")
    parser.add_argument("states", nargs="*", choices=[[], "real_window", *(state.__name__ for state in STATES)])
    parser.add_argument("--theme", action="append", choices=["dark", "light"])
    parser.add_argument("--scale", action="append", choices=["1", "1.5", "2", "3"])
    parser.add_argument("--child", nargs=2, metavar=("THEME", "SCALE"), help=argparse.SUPPRESS)
    parser.add_argument("--grab", metavar="FILE", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.grab:
        return grab_screen(asked.grab)
    if asked.child:
        return draw_all(*asked.child, asked.states)
    OUT.mkdir(parents=True, exist_ok=True)
    failed = 0
    if not asked.states or set(asked.states) != {"real_window"}:
        for theme in asked.theme or ("dark", "light"):
            for scale in asked.scale or ("1", "2"):
                environment = {**os.environ, "QT_QPA_PLATFORM": "offscreen", "QT_SCALE_FACTOR": scale}
                command = [sys.executable, __file__, "--child", theme, scale]
                command += [name for name in asked.states if name != "real_window"]
                failed += abs(subprocess.run(command, cwd=ROOT, env=environment, check=False).returncode)
    if not asked.states or "real_window" in asked.states:
        if shutil.which("Xvfb"):
            failed += draw_real_window()
        else:
            print("no picture of a real window: Xvfb is not installed")
    return failed


if __name__ == "__main__":
    sys.exit(main())
