"""The question before a link is opened in the browser: its host in the sentence, the whole address under it.

A stranger's words may say one thing and the address another; what is opened is what is shown here.
"""

from __future__ import annotations

from typing import Final
from urllib.parse import urlsplit

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QWidget

from app.errors import one_line
from app.i18n import _
from ui.panels.model_confirm import Answer, ConfirmBar

_OPEN: Final = "open"


def host_text(address: str) -> str:
    """Return the host of an address, plain; "" where there is none."""
    try:
        return one_line(urlsplit(address).hostname or "", 120)
    except ValueError:
        return ""


class LinkQuestion(ConfirmBar):
    """The question; hidden until ask_link().

    Signals:
        confirmed(address): a person saw where it leads and wants it opened.
    """

    confirmed = Signal(str)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._address = ""
        self.answered.connect(self._on_answered)

    def ask_link(self, address: str) -> None:
        """Ask about an address; one that is no page of the web is not asked about."""
        host = host_text(address)
        if not address.casefold().startswith(("https://", "http://")) or not host:
            return
        self._address = address
        message = _("Open {host} in your browser?").format(host=host)
        self.ask(message, one_line(address), (Answer(_OPEN, _("Open")),))

    def _on_answered(self, answer: str) -> None:
        if answer == _OPEN:
            self.confirmed.emit(self._address)
