"""A gallery of the window for human eyes: `make screenshots` writes build/screenshots and prints the paths.

Every state of the files called *_states.py beside this one, in light and dark at 100 % and 200 %. Each theme and scale
is drawn by a child process of its own, since Qt reads the scale once. One more picture is of the real program under a
real window system, where Xvfb is installed.

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
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT))

from PySide6.QtGui import QGuiApplication  # noqa: E402 - what follows is found only once the tree is on sys.path
from PySide6.QtWidgets import QApplication  # noqa: E402

from tests.helpers import (  # noqa: E402
    block_states,
    compare_states,
    engine_states,
    hub_states,
    model_states,
    quantize_states,
    window_states,
    xray_states,
)
from tests.helpers.window_states import PATIENCE_S, wait  # noqa: E402

State = (
    window_states.State
    | engine_states.State
    | model_states.State
    | quantize_states.State
    | hub_states.State
    | compare_states.State
    | xray_states.State
)
STATES: tuple[State, ...] = (
    *(*window_states.STATES, *engine_states.STATES, *block_states.STATES),
    *(*model_states.STATES, *quantize_states.STATES, *hub_states.STATES, *compare_states.STATES, *xray_states.STATES),
)
OUT = ROOT / "build" / "screenshots"
REAL_WINDOW = "real_window"
# What the program of the real window may take to load its model; nothing tells another process that it has.
LOAD_S = 6.0


def draw(state: State, theme: str, path: Path) -> None:
    """Bring the window into a state and save its picture."""
    with tempfile.TemporaryDirectory() as folder:
        os.environ["CUTAWAY_HOME"] = folder
        config, scripts = Path(folder) / "config", Path(folder) / "scripts"
        config.mkdir()
        scripts.mkdir()
        (config / "settings.json").write_text(f'{{"theme": "{theme}"}}', encoding="utf-8")
        window = next(state(scripts))
        try:
            wait(0.4)
            if not window.window.grab().save(str(path)):
                raise OSError(f"{path} could not be written")
        finally:
            window.close()
            QApplication.sendPostedEvents()


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
        except (OSError, TimeoutError) as error:
            failed += 1
            print(f"{path.name}: {error}", file=sys.stderr, flush=True)
        else:
            print(path, flush=True)
    return failed


def draw_in_children(themes: list[str], scales: list[str], names: list[str]) -> int:
    """Draw the named states in every theme and scale; returns how many failed."""
    failed = 0
    for theme in themes:
        for scale in scales:
            environment = {**os.environ, "QT_QPA_PLATFORM": "offscreen", "QT_SCALE_FACTOR": scale}
            command = [sys.executable, __file__, "--child", theme, scale, *names]
            failed += abs(subprocess.run(command, cwd=ROOT, env=environment, check=False).returncode)
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
    path = OUT / "real_window-x11.png"
    with tempfile.TemporaryDirectory() as home, x_server() as display:
        environment = {**os.environ, "DISPLAY": display, "QT_QPA_PLATFORM": "xcb", "CUTAWAY_HOME": home}
        environment |= {"CUTAWAY_TIMING": "1", "LANGUAGE": "en"}
        command = [sys.executable, "-m", "app"]
        program = subprocess.Popen(command, cwd=ROOT, env=environment, stderr=subprocess.PIPE, text=True)
        try:
            assert program.stderr is not None
            first_line = program.stderr.readline().strip()
            time.sleep(LOAD_S)
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


# ------------------------------------------------------------------------------------------ what was asked for


def main() -> int:
    """Draw what was asked for, everything without a wish; returns how many failed."""
    known = [REAL_WINDOW, *(state.__name__ for state in STATES)]
    parser = argparse.ArgumentParser(description="Draw the window in every state.")
    parser.add_argument("states", nargs="*", metavar="state", help=", ".join(known))
    parser.add_argument("--theme", action="append", choices=["dark", "light"])
    parser.add_argument("--scale", action="append", choices=["1", "1.5", "2", "3"])
    parser.add_argument("--child", nargs=2, metavar=("THEME", "SCALE"), help=argparse.SUPPRESS)
    parser.add_argument("--grab", metavar="FILE", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if unknown := set(asked.states) - set(known):
        parser.error(f"unknown: {', '.join(sorted(unknown))}")
    if asked.grab:
        return grab_screen(asked.grab)
    if asked.child:
        return draw_all(*asked.child, asked.states)
    OUT.mkdir(parents=True, exist_ok=True)
    names = [name for name in asked.states if name != REAL_WINDOW]
    failed = 0
    if names or not asked.states:
        failed += draw_in_children(asked.theme or ["dark", "light"], asked.scale or ["1", "2"], names)
    if REAL_WINDOW in asked.states or not asked.states:
        if shutil.which("Xvfb"):
            failed += draw_real_window()
        else:
            print("no picture of a real window: Xvfb is not installed")
    return failed


if __name__ == "__main__":
    sys.exit(main())
