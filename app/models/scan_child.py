"""The scan child: looks through folders for models in a process of its own, and tells what it finds.

Run as `python -I <absolute path>`; reads one ScanRequest from its standard input and writes to its standard output.
It opens files for reading only, takes no more of the machine than is left, and ends when the program closes its end of
either pipe. Imports neither Qt nor numpy nor any engine.
"""

from __future__ import annotations

import sys
from pathlib import Path

if __name__ == "__main__":
    # Isolated mode leaves the script's folder out of sys.path.
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent.parent))

import contextlib
import os
import threading
import time
from typing import IO

from app.i18n import use_language
from app.models.entry import FoundModel
from app.models.scan_messages import (
    ModelsSeen,
    ScanFinished,
    ScanMessageError,
    ScanRequest,
    ScanRoot,
    read_request,
    to_disk,
    write_message,
)
from app.models.scan_root import Looked, RootPlace, RootScan, look_at_root
from app.models.source_search import Search

_NICE = 10
# A header keeps at most 32 MiB; this is for what nobody foresaw.
_ADDRESS_SPACE_BYTES = 4 * 2**30
# A message this large is decoded in a fraction of a millisecond.
_MODELS_A_MESSAGE, _PATHS_A_MESSAGE = 8, 128
_MESSAGE_EVERY_S = 0.2


def main() -> int:
    """Do what is asked and return the exit code."""
    told = _private_output()
    _be_modest()
    try:
        request = read_request(sys.stdin.buffer)
    except ScanMessageError:
        return 2
    threading.Thread(target=_end_with_the_program, name="end", daemon=True).start()
    use_language(request.language)
    try:
        Scan(request, told).run()
    except BrokenPipeError:
        return 1
    return 0


class Scan:
    """The whole of one request.

    Attributes:
        _places: what is known of each root.
        _seen: real paths of what was told, so that no file is told twice.
        _complete: numbers of the roots looked through to the end.
    """

    def __init__(self, request: ScanRequest, output: IO[bytes]) -> None:
        self._request = request
        self._output = output
        self._known = {os.fsdecode(path): stamp for path, stamp in request.known.items()}
        self._places: list[RootPlace] = []
        self._seen: set[str] = set()
        self._complete: list[int] = []
        self._problems: list[str] = []
        self._counts = {"found": 0, "unchanged": 0, "skipped": 0}

    def run(self) -> None:
        """Look through every root and say the last word; raises OSError when nobody listens any more."""
        limits = self._request.limits
        for root in self._request.roots:
            self._places.append(look_at_root(Path(os.fsdecode(root.folder)), root.must_exist, limits.silence_s))
        for number, (root, place) in enumerate(zip(self._request.roots, self._places, strict=True)):
            self._scan_root(number, root, place)
        write_message(
            self._output,
            ScanFinished(
                found_count=self._counts["found"],
                unchanged_count=self._counts["unchanged"],
                skipped_count=self._counts["skipped"],
                complete_roots=tuple(self._complete),
                problems=tuple(self._problems),
            ),
        )

    def _scan_root(self, number: int, root: ScanRoot, place: RootPlace) -> None:
        if place.fault:
            if place.fault not in self._problems:  # several folders may lie behind one that is shut
                self._problems.append(place.fault)
            return
        if not place.real:
            self._complete.append(number)  # a program that is not installed keeps nothing
            return
        allowed = tuple(place.real for place in self._places if place.real)
        search = Search(Path(os.fsdecode(root.folder)), root.origin, allowed, self._request.limits, place.barred)
        scan = RootScan(search, root.layout, self._known, self._seen)
        pending = _Pending(number, self._output)
        for looked in scan.run():
            self._count(looked)
            pending.add(looked, scan.report.listed_count)
        pending.flush(scan.report.listed_count)
        self._counts["skipped"] += scan.report.skipped_count
        self._problems += scan.report.problems
        if scan.report.is_complete:
            self._complete.append(number)

    def _count(self, looked: Looked) -> None:
        if looked.is_unchanged:
            self._counts["unchanged"] += 1
        elif looked.model is not None:
            self._counts["found"] += 1


class _Pending:
    """What was looked at in one root and waits to be told together.

    Attributes:
        _models: new or changed ones.
        _unchanged: paths.
        _looked_count: of this root, told or not.
    """

    def __init__(self, root: int, output: IO[bytes]) -> None:
        self._root = root
        self._output = output
        self._models: list[FoundModel] = []
        self._unchanged: list[Path] = []
        self._looked_count = 0
        self._told_s = time.monotonic()

    def add(self, looked: Looked, listed_count: int) -> None:
        """Take one more, and tell all that wait when they are many or old."""
        self._looked_count += 1
        if looked.is_unchanged:
            self._unchanged.append(looked.path)
        elif looked.model is not None:
            self._models.append(looked.model)
        is_full = len(self._models) >= _MODELS_A_MESSAGE or len(self._unchanged) >= _PATHS_A_MESSAGE
        if is_full or time.monotonic() - self._told_s > _MESSAGE_EVERY_S:
            self.flush(listed_count)

    def flush(self, listed_count: int) -> None:
        """Tell all that wait; also of an empty root, once."""
        message = ModelsSeen(
            root=self._root,
            models=tuple(to_disk(model) for model in self._models),
            unchanged=tuple(os.fsencode(path) for path in self._unchanged),
            looked_count=self._looked_count,
            listed_count=listed_count,
        )
        write_message(self._output, message)
        self._models.clear()
        self._unchanged.clear()
        self._told_s = time.monotonic()


def _private_output() -> IO[bytes]:
    """Return the pipe to the program; what anything else prints goes nowhere."""
    told = os.fdopen(os.dup(1), "wb")
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.close(nowhere)
    return told


def _be_modest() -> None:
    """Leave the processor and the memory to everybody else."""
    with contextlib.suppress(AttributeError, OSError):
        os.nice(_NICE)
    if sys.platform.startswith("linux"):
        import resource

        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_AS, (_ADDRESS_SPACE_BYTES, _ADDRESS_SPACE_BYTES))
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _end_with_the_program() -> None:
    """Wait for the end of standard input, which the program closes when it is done or dead, and end the process."""
    with contextlib.suppress(OSError, ValueError):
        while sys.stdin.buffer.read(4096):
            pass
    os._exit(1)


if __name__ == "__main__":
    os._exit(main())  # threads that are stuck in a dead drive would keep the interpreter waiting
