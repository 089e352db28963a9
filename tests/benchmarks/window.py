"""Runs the real window program in this process and drives it by a scenario, for the benchmarks of the window.

A scenario is a generator: it does something and yields what to wait for, either seconds or a claim that becomes true.
The program is started as a person starts it (ui.main.main); nothing in it knows that it is measured.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

from PySide6.QtCore import QObject, Qt, QTimer

import ui.main
from app.context import AppContext
from app.engines.supervisor import EngineEvent
from backends import protocol
from backends.protocol import LifeCycle
from ui.main import Program

Wait = float | Callable[[], bool]
_LOOK_MS = 40  # seldom enough to cost nothing beside what is measured
_PATIENCE_S = 120.0
FRAME_MS = 16

PROMPT = "Write a long story about a lighthouse keeper, his daughter, and the storm that changed both their lives."


class Stage:
    """The running program and what a scenario does with it.

    Attributes:
        program: the program.
        context: its parts.
        finished: the ends of the answers so far.
    """

    def __init__(self, program: Program) -> None:
        self.program = program
        self.context: AppContext = program._context
        self.finished: list[protocol.RequestFinished] = []
        self.context.watch_engine(self._on_engine_event)

    @property
    def window(self) -> Any:
        """The main window."""
        return self.program.window

    def is_ready(self) -> bool:
        """Whether the model is loaded, nothing is asked of it and the plots are there."""
        return self.window.plots is not None and self.context.engine.state is LifeCycle.READY

    def fix_params(self, max_tokens: int) -> None:
        """Have every answer drawn alike: the same seed and length."""
        self.context.settings.change(temperature=0.7, seed=7, max_tokens=max_tokens)

    def fold(self, folded: bool) -> None:
        """Fold the cutaway panel away, or show it."""
        self.window.plots.panel.set_folded(folded)

    def answer(self, text: str = PROMPT) -> Iterator[Wait]:
        """Send a prompt in a new chat, as a person does, and wait for the end of its answer."""
        count = len(self.finished)
        self.window.chats.new_chat()
        self.window.chats.send(text)
        yield lambda: len(self.finished) > count and self.context.engine.state is LifeCycle.READY

    def _on_engine_event(self, event: EngineEvent) -> None:
        if isinstance(event, protocol.RequestFinished):
            self.finished.append(event)


class _Driver(QObject):
    """Goes through a scenario on a timer; closes the window at its end.

    Attributes:
        is_done: the scenario came to its end.
    """

    def __init__(self, program: Program, scenario: Iterator[Wait]) -> None:
        super().__init__(program)
        self.is_done = False
        self._program = program
        self._scenario = scenario
        self._waits_for = next(scenario)  # up to its first wait before the program shows anything
        self._since_s = time.monotonic()
        self._timer = QTimer(self)
        self._timer.setInterval(_LOOK_MS)
        self._timer.timeout.connect(self._on_timeout)
        self._timer.start()

    def _on_timeout(self) -> None:
        waited_s = time.monotonic() - self._since_s
        is_over = self._waits_for() if callable(self._waits_for) else waited_s >= self._waits_for
        try:
            if not is_over:
                if waited_s > _PATIENCE_S:
                    raise TimeoutError(f"nothing came of it in {_PATIENCE_S:.0f} s: is the machine busy?")
                return
            self._waits_for = next(self._scenario)
            self._since_s = time.monotonic()
        except StopIteration:
            self.is_done = True
            self._end()
        except BaseException:
            self._end()
            raise

    def _end(self) -> None:
        self._timer.stop()
        self._program.window.close()


def run(scenario: Callable[[Stage], Iterator[Wait]]) -> None:
    """Start the program, go through the scenario, close the window; ends this process when the scenario failed."""
    drivers: list[_Driver] = []
    start = Program.start

    def start_driven(program: Program) -> None:
        drivers.append(_Driver(program, scenario(Stage(program))))
        start(program)

    Program.start = start_driven  # type: ignore[method-assign]
    code = ui.main.main([])
    if code or not drivers or not drivers[0].is_done:
        sys.exit(code or 1)


class GapTimer(QObject):
    """Measures how long the GUI thread keeps a frame waiting: gaps between the shots of a 16 ms timer.

    Attributes:
        gaps_ms: the gaps so far.
    """

    def __init__(self, parent: QObject) -> None:
        super().__init__(parent)
        self.gaps_ms: list[float] = []
        self._last_s = 0.0
        self._timer = QTimer(self)
        self._timer.setTimerType(Qt.TimerType.PreciseTimer)
        self._timer.setInterval(FRAME_MS)
        self._timer.timeout.connect(self._on_timeout)

    def start(self) -> None:
        """Begin to measure."""
        self._last_s = time.perf_counter()
        self._timer.start()

    def take(self) -> list[float]:
        """Stop and return the gaps in milliseconds."""
        self._timer.stop()
        gaps_ms, self.gaps_ms = self.gaps_ms, []
        return gaps_ms

    def _on_timeout(self) -> None:
        now_s = time.perf_counter()
        self.gaps_ms.append((now_s - self._last_s) * 1000)
        self._last_s = now_s
