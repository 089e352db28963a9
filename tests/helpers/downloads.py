"""What tests of downloads share: a test hub's files as the program knows them, and tools that never wait."""

from __future__ import annotations

import contextlib
import hashlib
import os
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from app.downloads.cache_layout import CacheLayout
from app.downloads.queue import DownloadQueue
from app.downloads.tools import Progress, StoppedError, TransferTools
from app.downloads.transfer import FileTransfer
from app.downloads.types import ACTIVE_STATES, Download, FileRef
from app.errors import AppError
from app.http_clients import HttpChoices, HttpClients
from tests.helpers.hub_files import Content
from tests.helpers.hub_server import HubServer

KIB, MIB = 2**10, 2**20
PLENTY = 2**50
LIMIT_S = 60.0  # of anything; reaching it is a fault


def file_of(hub: HubServer, repo: str, path: str, revision: str = "main") -> FileRef:
    """Return a file of a test hub as a listing would give it."""
    found = hub.routes.repos[repo].find(revision)
    assert found is not None
    file = found.files[path]
    sha256 = file.content.sha256 if file.is_lfs else ""
    return FileRef(hub.endpoint, repo, found.commit, path, file.content.size_bytes, sha256, file.etag)


def clients_of(hub: HubServer, token: str | None = None, **choices: str) -> HttpClients:
    """Return the way to a test hub."""
    return HttpClients(lambda: HttpChoices(endpoint=hub.endpoint, **choices), lambda _endpoint: token, {})


def sha256_of(path: Path) -> str:
    """Return the hash of a file."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while piece := file.read(MIB):
            digest.update(piece)
    return digest.hexdigest()


@dataclass
class Waits:
    """Stands in for waiting: notes each wait and is over at once."""

    seconds: list[float] = field(default_factory=list)

    def __call__(self, stop: threading.Event, seconds: float) -> bool:
        self.seconds.append(seconds)
        return stop.is_set()


@contextlib.contextmanager
def tools_for(clients: HttpClients, **changes: Any) -> Iterator[TransferTools]:
    """Give tools that never wait, with plenty of space and flushes every 256 KiB."""
    usual: dict[str, Any] = {
        "silence_s": 10.0,
        "flush_bytes": 256 * KIB,
        "free_bytes": lambda _folder: PLENTY,
        "wait": Waits(),
        "random_share": lambda: 0.5,
    }
    usual |= changes
    with contextlib.closing(clients.make_client(usual["silence_s"], keeps_connections=False)) as client:
        yield TransferTools(clients, client, **usual)


class Fetch:
    """One transfer run to its end.

    Attributes:
        progress: everything that it told.
        path: where the file is; None when it failed.
        error: what it raised; None when it came.
    """

    def __init__(
        self,
        hub: HubServer,
        file: FileRef,
        root: Path,
        *,
        token: str | None = None,
        on_progress: Callable[[Progress], None] = lambda _progress: None,
        stop: threading.Event | None = None,
        choices: dict[str, str] | None = None,
        **changes: Any,
    ) -> None:
        self.progress: list[Progress] = []
        self.path: Path | None = None
        self.error: Exception | None = None

        def note(progress: Progress) -> None:
            self.progress.append(progress)
            on_progress(progress)

        clients = clients_of(hub, token, **(choices or {}))
        with tools_for(clients, **changes) as tools:
            try:
                self.path = FileTransfer(file, CacheLayout(root), tools, note).run(stop or threading.Event())
            except (AppError, StoppedError) as error:
                self.error = error
        clients.close()

    def states(self) -> list[str]:
        """Return the states in their order, each once in a row."""
        found: list[str] = []
        for one in self.progress:
            if found[-1:] != [one.state.value]:
                found.append(one.state.value)
        return found

    def steps_back(self) -> list[Progress]:
        """Return what told of fewer bytes than before."""
        pairs = zip(self.progress, self.progress[1:], strict=False)
        return [after for before, after in pairs if after.have_bytes < before.have_bytes]


class QueueWatch:
    """A queue and what it told; close it.

    Attributes:
        queue: the queue.
        told: every change, oldest first.
    """

    def __init__(self, hub: HubServer, home: Path, *, token: str | None = None, **options: Any) -> None:
        changes: dict[str, Any] = {"free_bytes": lambda _folder: PLENTY, "random_share": lambda: 0.5}
        changes |= options.pop("changes", {})
        self.told: list[Download] = []
        self._news = threading.Condition()
        self._clients = clients_of(hub, token)
        self.queue = DownloadQueue(
            home / "data",
            home / "hub",
            self._clients,
            self._on_change,
            change_tools=lambda tools: replace(tools, **changes),
            **options,
        )

    def __enter__(self) -> QueueWatch:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        """End the queue and its connections."""
        self.queue.close()
        self._clients.close()

    def _on_change(self, download: Download) -> None:
        with self._news:
            self.told.append(download)
            self._news.notify_all()

    def wait(self, download_id: str, is_there: Callable[[Download], bool]) -> Download:
        """Return the download once it is as wanted."""
        with self._news:
            assert self._news.wait_for(lambda: is_there(self.now(download_id)), LIMIT_S), self.now(download_id)
        return self.now(download_id)

    def ended(self, download_id: str) -> Download:
        """Return the download once it is at rest."""
        return self.wait(download_id, lambda one: one.state not in ACTIVE_STATES)

    def now(self, download_id: str) -> Download:
        """Return how a download stands."""
        return next(one for one in self.queue.downloads() if one.download_id == download_id)


def tree_of(folder: Path) -> dict[str, str]:
    """Return every path below a folder with what it is, links not followed: to see what a test left where."""
    found = {}
    for base, folders, files in os.walk(folder, followlinks=False):
        for name in [*folders, *files]:
            path = Path(base) / name
            kind = "link" if path.is_symlink() else "folder" if path.is_dir() else f"file of {path.stat().st_size}"
            found[path.relative_to(folder).as_posix()] = kind
    return found


def final_names(root: Path) -> list[str]:
    """Return the names under which complete files are found in a cache."""
    return sorted(path.name for path in root.glob("models--*/snapshots/*/**/*") if not path.is_dir())


def content_of(hub: HubServer, repo: str, path: str) -> Content:
    """Return the bytes of a hub's file."""
    found = hub.routes.repos[repo].find("main")
    assert found is not None
    return found.files[path].content
