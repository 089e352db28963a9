"""Everything that speaks with the network, made when it is first needed: nothing goes out unless a person asked.

Knows which parts there are and how they fit together; nothing of who shows them.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from app.http_clients import HttpChoices, HttpClients
from app.paths import Paths
from app.settings import SettingsStore

if TYPE_CHECKING:
    from app.downloads.fetched import FetchedRecord
    from app.downloads.queue import DownloadQueue
    from app.downloads.types import Download
    from app.hub.hub import Hub
    from app.hub.tokens import TokenStore

OnDownload = Callable[["Download"], None]


class Network:
    """The hub, the downloads and what they need. Any thread may ask for them; close it at the end.

    Attributes:
        clients: the way to the network.
        _watchers: told of every change of a download.
    """

    def __init__(self, paths: Paths, settings: SettingsStore, environment: Mapping[str, str] | None = None) -> None:
        self._paths = paths
        self._settings = settings
        self._environment = os.environ if environment is None else environment
        self._lock = threading.RLock()
        self._tokens: TokenStore | None = None
        self._hub: Hub | None = None
        self._downloads: DownloadQueue | None = None
        self._watchers: list[OnDownload] = []
        self.clients = HttpClients(self._choices, self._token, self._environment)

    @property
    def tokens(self) -> TokenStore:
        """What hubs know the person by."""
        with self._lock:
            if self._tokens is None:
                from app.hub.tokens import TokenStore

                self._tokens = TokenStore()
            return self._tokens

    @property
    def hub(self) -> Hub:
        """The hub's search and its cards."""
        with self._lock:
            if self._hub is None:
                from app.hub.hub import Hub

                self._hub = Hub(self._paths.cache, self.clients)
            return self._hub

    @property
    def downloads(self) -> DownloadQueue:
        """The downloads, with what the last run left."""
        with self._lock:
            if self._downloads is None:
                from app.downloads.queue import DownloadQueue
                from app.models.sources import hub_cache_folder

                cache = hub_cache_folder(self._environment, Path.home())  # where the library's scan looks, too
                self._downloads = DownloadQueue(self._paths.data, cache, self.clients, self._on_change)
            return self._downloads

    @property
    def fetched(self) -> FetchedRecord:
        """What was downloaded before, for asking the hub what is newer."""
        from app.downloads.fetched import FetchedRecord

        return FetchedRecord(self._paths.data)

    def watch_downloads(self, watcher: OnDownload) -> None:
        """Tell this of every change of a download, on any thread."""
        self._watchers.append(watcher)

    def close(self) -> None:
        """Let downloads rest where the next start goes on, and let go of every connection."""
        with self._lock:
            downloads, self._downloads = self._downloads, None
            tokens = self._tokens
        if tokens is not None:
            tokens.close()
        if downloads is not None:
            downloads.close()
        self.clients.close()

    def _token(self, endpoint: str) -> str | None:
        return self.tokens.get(endpoint)

    def _choices(self) -> HttpChoices:
        settings = self._settings.get()
        return HttpChoices(proxy=settings.proxy, ca_file=settings.ca_file)

    def _on_change(self, download: Download) -> None:
        for watcher in tuple(self._watchers):
            watcher(download)
