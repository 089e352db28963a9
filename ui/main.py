"""The window's start: Qt, theme, context, first paint, then everything heavy.

Loaded by name from app/__main__.py, so that the command line never imports Qt.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from types import TracebackType

# Before Qt: once PySide6 is loaded, its hook reads the source of every further module that is imported (40 ms here).
from app.context import AppContext, build_context
from app.errors import words_for_exception
from app.log import start_log
from app.paths import open_paths

# isort: split
from PySide6.QtCore import QEvent, QLibraryInfo, QLocale, QObject, QTimer, QTranslator
from PySide6.QtWidgets import QApplication

from ui.bridge import Bridge
from ui.main_window import MainWindow
from ui.notifications import NoticeLevel
from ui.single_instance import SingleInstance, hand_over, server_name
from ui.theme import ThemeSwitch
from ui.widgets.icons import app_icon


class Program(QObject):
    """The running window program.

    Attributes:
        window: its window.
        first_paint_s: seconds from the start of the process to the end of the first paint; 0 before it.
    """

    def __init__(self, app: QApplication, context: AppContext, files: list[str]) -> None:
        super().__init__()
        self.first_paint_s = 0.0
        self._app = app
        self._context = context
        self._files = files
        self._bridge = Bridge(self)
        context.watch_engine(self._bridge.on_engine_event)
        self._theme_switch = ThemeSwitch(app, context.settings.get().theme, self)
        self._instance = SingleInstance(server_name(context.paths.data), self)
        self.window = MainWindow(context, self._bridge, self._theme_switch)
        self._instance.files_handed_over.connect(self._on_files)
        self.window.closed.connect(app.quit)
        self._stop_listening = context.settings.listen(self._on_settings)

    def start(self) -> None:
        """Show the window; the rest follows its first paint."""
        self.window.winId()  # makes the system's window, which some systems expose within show()
        self.window.windowHandle().installEventFilter(self)
        self.window.show()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Wait until the system has room for the window on a screen: only then is anything painted, and at once."""
        if event.type() is QEvent.Type.Expose and self.window.windowHandle().isExposed():
            watched.removeEventFilter(self)
            QTimer.singleShot(0, self._on_painted)
        return False

    def close(self) -> None:
        """End everything that the window started."""
        self._stop_listening()
        self._instance.close()
        self.window.finish()
        self._context.close()

    def on_exception(self, kind: type[BaseException], error: BaseException, traceback: TracebackType | None) -> None:
        """Say an error that nobody caught, and go on; the wall of the window."""
        sys.__excepthook__(kind, error, traceback)
        if isinstance(error, Exception):
            self.window.tell("unforeseen", words_for_exception(error), NoticeLevel.ERROR)

    def _on_painted(self) -> None:
        self.first_paint_s = seconds_since_process_start()
        if os.environ.get("CUTAWAY_TIMING"):
            sys.stderr.write(f"first_paint_s={self.first_paint_s:.3f}\n")
        self.window.start()
        if self._files:
            self.window.open_files(self._files)

    def _on_files(self, files: list[str]) -> None:
        self.window.showNormal()
        self.window.raise_()
        self.window.activateWindow()
        if files:
            self.window.open_files(files)

    def _on_settings(self, settings: object, names: frozenset[str]) -> None:
        if "theme" in names:
            self._theme_switch.set_mode(self._context.settings.get().theme)


def seconds_since_process_start() -> float:
    """Return how long this process has been running, by the system's own clock where it tells."""
    try:
        fields = Path("/proc/self/stat").read_text(encoding="ascii", errors="replace").rpartition(")")[2].split()
        began_s = int(fields[19]) / os.sysconf("SC_CLK_TCK")
        return time.clock_gettime(time.CLOCK_BOOTTIME) - began_s
    except (OSError, ValueError, AttributeError):
        return time.process_time()


def main(files: list[str]) -> int:
    """Open the window and run until it is closed; returns the exit code."""
    paths, _problems = open_paths()
    app = QApplication([sys.argv[0] if sys.argv else "cutaway"])
    absolute = [str(Path(file).absolute()) for file in files]
    if hand_over(server_name(paths.data), absolute):
        return 0
    log = start_log(paths.logs)
    app.setApplicationName("Cutaway")
    app.setDesktopFileName("cutaway")
    app.setWindowIcon(app_icon())
    translator = QTranslator(app)
    if translator.load(QLocale(), "qtbase", "_", QLibraryInfo.path(QLibraryInfo.LibraryPath.TranslationsPath)):
        app.installTranslator(translator)
    program = Program(app, build_context(), absolute)
    sys.excepthook = program.on_exception
    program.start()
    try:
        return app.exec()
    finally:
        sys.excepthook = sys.__excepthook__
        program.close()
        log.close()


def selftest_window(picture: str) -> int:
    """Draw a window with a plot offscreen and save its picture; returns 0 when it was drawn."""
    from PySide6.QtGui import QImage

    from app.telemetry.store import TelemetryStore
    from ui.panels.cutaway_panel import CutawayPanel
    from ui.plots.redraw import RedrawTimer

    app = QApplication.instance() or QApplication(["cutaway"])
    assert isinstance(app, QApplication)
    switch = ThemeSwitch(app, "dark")
    panel = CutawayPanel(TelemetryStore(), RedrawTimer())
    panel.set_theme(switch.theme)
    panel.set_folded(False)
    panel.show()
    app.processEvents()
    image = panel.grab().toImage().convertToFormat(QImage.Format.Format_RGB32)
    colours = {image.pixel(x, y) for x in range(0, image.width(), 3) for y in range(0, image.height(), 3)}
    panel.close()
    return 0 if image.save(picture) and len(colours) > 4 else 1
