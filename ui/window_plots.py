"""Everything of the window that draws plots: the cutaway panel and the Inspect screen, with the one redraw timer.

Imported after the first paint: the plotting library takes longer to load than the rest of the window.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Signal, Slot

from app.context import AppContext
from app.engines.supervisor import EngineEvent
from app.i18n import _
from app.models.fit import kv_bytes_per_token, weights_bytes
from app.units import count_text
from backends import protocol
from ui.bridge import Bridge
from ui.theme import Theme

if TYPE_CHECKING:
    from ui.plots.estimate_table import EstimateRow


class WindowPlots(QObject):
    """The panels with plots and what feeds them.

    Attributes:
        panel: beside the chat.
        inspect: the screen.

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
        self._timer = RedrawTimer(self)
        self.panel = CutawayPanel(context.telemetry, self._timer)
        self.inspect = InspectPanel(context.telemetry, self._timer)
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
        self._timer.wake()

    @Slot(object)
    def _on_engine_event(self, event: EngineEvent) -> None:
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
                self.inspect.set_estimate(self._estimate(event))
        self._timer.wake()

    def _estimate(self, loaded: protocol.ModelLoaded) -> list[EstimateRow]:
        """Return what the file's header let expect beside what the engine's buffers take."""
        from ui.plots.estimate_table import EstimateRow

        header = self._context.engine.header
        if header is None:
            return []
        per_token = kv_bytes_per_token(header, loaded.kv_type)
        predicted_kv = per_token * loaded.context_tokens if per_token is not None else None
        source = _("Predicted from the file's header.")
        return [
            EstimateRow(_("weights"), weights_bytes(header), loaded.memory.weights_bytes, source),
            EstimateRow(_("KV cache"), predicted_kv, loaded.memory.kv_reserved_bytes, source),
            EstimateRow(_("compute"), None, loaded.memory.compute_bytes, _("Not predicted yet.")),
        ]
