"""One window a person: a second start hands its files to the first and ends.

A local socket that only this person may open, named after the data folder; no network, no port.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

from PySide6.QtCore import QObject, Signal
from PySide6.QtNetwork import QLocalServer, QLocalSocket

_ANSWER_MS = 500  # a first window that is busy drawing answers well within this
_MAX_BYTES = 64 * 1024


def server_name(data_folder: Path) -> str:
    """Return the socket's name for this data folder."""
    return "cutaway-" + hashlib.sha256(str(data_folder).encode(errors="surrogateescape")).hexdigest()[:16]


def hand_over(name: str, files: list[str]) -> bool:
    """Give the files to a window that is open already; returns whether there is one."""
    socket = QLocalSocket()
    socket.connectToServer(name)
    if not socket.waitForConnected(_ANSWER_MS):
        return False
    socket.write(json.dumps(files).encode())
    is_written = socket.waitForBytesWritten(_ANSWER_MS)
    socket.disconnectFromServer()
    return is_written


class SingleInstance(QObject):
    """Listens for later starts.

    Signals:
        files_handed_over(list): paths a later start was given; may be empty, which only asks for the window.
    """

    files_handed_over = Signal(list)

    def __init__(self, name: str, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._server = QLocalServer(self)
        self._server.setSocketOptions(QLocalServer.SocketOption.UserAccessOption)
        self._server.newConnection.connect(self._on_connection)
        if not self._server.listen(name):
            QLocalServer.removeServer(name)  # left behind by a program that was killed
            self._server.listen(name)

    def close(self) -> None:
        """Stop listening."""
        self._server.close()

    def _on_connection(self) -> None:
        socket = self._server.nextPendingConnection()
        socket.disconnected.connect(self._on_disconnected)

    def _on_disconnected(self) -> None:
        socket = self.sender()
        if not isinstance(socket, QLocalSocket):
            return
        data = bytes(socket.readAll().data())[:_MAX_BYTES]
        socket.deleteLater()
        try:
            files = json.loads(data)
        except (ValueError, RecursionError):  # nonsense, however deep
            return
        if isinstance(files, list):
            self.files_handed_over.emit([file for file in files if isinstance(file, str)])
