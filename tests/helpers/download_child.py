"""A program that fetches one file and tells how far it is, a line each time; to be killed.

python tests/helpers/download_child.py CACHE FLUSH_BYTES FILE_AS_JSON
"""

from __future__ import annotations

import contextlib
import sys
import threading
from pathlib import Path

import msgspec

ROOT = Path(__file__).resolve().parent.parent.parent
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))

from app.downloads.cache_layout import CacheLayout  # noqa: E402 - found only once the tree is on sys.path
from app.downloads.tools import Progress, TransferTools  # noqa: E402
from app.downloads.transfer import FileTransfer  # noqa: E402
from app.downloads.types import FileRef  # noqa: E402
from app.http_clients import HttpChoices, HttpClients  # noqa: E402


def _tell(progress: Progress) -> None:
    print(progress.state.value, progress.have_bytes, flush=True)


def main(cache: str, flush_bytes: str, file_json: str) -> None:
    """Fetch the file."""
    file = msgspec.json.decode(file_json, type=FileRef)
    clients = HttpClients(lambda: HttpChoices(endpoint=file.endpoint))
    with contextlib.closing(clients.make_client(keeps_connections=False)) as client:
        tools = TransferTools(clients, client, flush_bytes=int(flush_bytes), free_bytes=lambda _folder: 2**50)
        path = FileTransfer(file, CacheLayout(Path(cache)), tools, _tell).run(threading.Event())
    print("done", path, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
