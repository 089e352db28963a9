"""Whether a disk has room for what is still to come, and something left for everything else.

Knows no file and no server.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from app.downloads.faults import DownloadFault, download_error

RESERVE_BYTES = 10**9  # a system whose disk is full to the brim can save no chat and start no program


def free_bytes(folder: Path) -> int:
    """Return what a person may still write into a folder that may not be there yet; raises OSError."""
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    return shutil.disk_usage(folder).free


def check_space(missing_bytes: int, free: int, reserve_bytes: int = RESERVE_BYTES) -> None:
    """Refuse what has no room.

    Args:
        missing_bytes: what is still to be written.
        free: what can be written.
        reserve_bytes: what must be left afterwards.

    Raises:
        DownloadError: with both sizes in its words.
    """
    needed = missing_bytes + reserve_bytes
    if missing_bytes > 0 and free < needed:
        raise download_error(DownloadFault.NO_SPACE, needed=needed, free=free, kept=reserve_bytes)
