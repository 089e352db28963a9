"""Everything of the window that draws plots: the cutaway panel and the Inspect screen, with the one redraw timer.

Imported after the first paint: the plotting library takes longer to load than the rest of the window.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from PySide6.QtCore import QObject, Signal, Slot

from app.context import AppContext
from app.engines.block_question import BlockQuestion
from app.engines.supervisor import EngineEvent
from app.i18n import _
from app.models.fit_types import Measured
from app.units import count_text
from backends import protocol
from ui.bridge import Bridge
from ui.theme import Theme

_SOURCES: Mapping[str, Callable[[], str]] = {
    "header": lambda: _("Predicted from the file's header."),
    "probe": lambda: _("Told by the engine's allocator before anything was loaded."),
    "measured": lambda: _("Measured in an earlier load like this one."),
}


class WindowPlots(QObject):
    """The panels with plots and what feeds them.

    Attributes:
        panel: beside the chat.
        inspect: the screen.
        _question: asks the engine what lies in a block.
        _shown_measured: the record that the table of estimates shows.

    Signals:
        told(str): something to say, such as where a table was saved.
    """

    told = Signal(str)

    def __init__(self, context: AppContext, bridge: Bridge, theme: Theme, parent: QObject | None = None) -> None:
        super().__init__(parent)
        from ui.panels.cutaway_panel import CutawayPanel
        from ui.panels.inspect_panel import InspectPanel
        from ui.plots.redraw import RedrawTimer

        self._context = context
        self._shown_measured: Measured | None = None
        self._timer = RedrawTimer(self)
        self.panel = CutawayPanel(context.telemetry, self._timer)
        self.inspect = InspectPanel(context.telemetry, self._timer)
        self._question = BlockQuestion(context.engine.send)
        self.panel.blocks.asked.connect(self._on_block_asked)
        self.inspect.blocks.asked.connect(self._on_block_asked)
        self.panel.told.connect(self.told)
        self.inspect.told.connect(self.told)
        self.set_theme(theme)
        bridge.telemetry_moved.connect(self._on_telemetry_moved)
        bridge.engine_event.connect(self._on_engine_event)
        if context.engine.loaded is not None:  # it was quicker than the plots
            self._on_engine_event(context.engine.loaded)

    def set_theme(self, theme: Theme) -> None:
        """Take over another theme's colours."""
        self.panel.set_theme(theme)
        self.inspect.set_theme(theme)

    def stop(self) -> None:
        """Draw nothing any more."""
        self._timer.stop()

    @Slot()
    def _on_telemetry_moved(self) -> None:
        self.panel.set_connections(self._context.connections.count)
        self._show_estimate()
        self._timer.wake()

    @Slot(int)
    def _on_block_asked(self, block: int) -> None:
        self._question.ask(block)

    @Slot(object)
    def _on_engine_event(self, event: EngineEvent) -> None:
        described = self._question.take(event)
        if described is not None:
            self.panel.blocks.show_described(described)
            self.inspect.blocks.show_described(described)
        match event:
            case protocol.LogRecorded():
                self.inspect.append_log(event.text)
            case protocol.ModelLoaded():
                facts = (
                    event.quantization,
                    event.device,
                    event.engine_variant,
                    _("{count} threads").format(count=event.threads) if event.threads else "",
                    _("context {tokens} tokens").format(tokens=count_text(event.context_tokens)),
                )
                self.inspect.set_facts(" · ".join(fact for fact in facts if fact))
                self._show_estimate()
        self._timer.wake()

    def _show_estimate(self) -> None:
        """Show what the load was expected to take beside what it took, where that is new."""
        from app.models.fit_words import owner_rows
        from ui.plots.estimate_table import EstimateRow

        predicted, measured = self._context.predicted, self._context.recorder.measured
        if predicted is None or predicted.estimate is None or measured is self._shown_measured:
            return
        self._shown_measured = measured
        source = _SOURCES[predicted.estimate.source]()
        self.inspect.set_estimate(
            [
                EstimateRow(row.title, row.predicted_bytes, row.measured_bytes, source)
                for row in owner_rows(predicted, measured)
            ]
        )
