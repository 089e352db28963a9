"""One root of a scan: found, then looked at a model at a time, with a limit of time for each step.

A system call that never returns cannot be ended, so the steps run on a thread that is left behind when it is silent
for too long; another one goes on behind the file that it was stuck at. Runs in the scan child, whose end ends them.
"""

from __future__ import annotations

import os
import queue
import threading
import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from app.errors import one_line
from app.i18n import _
from app.models.describe import describe_candidate
from app.models.entry import FoundModel
from app.models.model_name import file_name
from app.models.scan_messages import ScanLimits
from app.models.source_candidate import Candidate, size_of
from app.models.source_search import Search, SearchLimitError, barred_folders
from app.models.sources import find_candidates
from app.units import seconds_text

# How far the thread may be ahead of what was told.
_AHEAD = 256
# Results are taken several at a time: two threads that wake each other for each of them take twice as long.
_GATHER_S = 0.002


@dataclass(frozen=True, slots=True)
class Looked:
    """What became of one candidate.

    Attributes:
        path: of the candidate.
        model: what it is; None when it is unchanged or no model of its own.
        is_unchanged: whether its stamp is the known one.
    """

    path: Path
    model: FoundModel | None = None
    is_unchanged: bool = False


@dataclass
class RootReport:
    """How far one root came.

    Attributes:
        is_complete: whether it was looked through to its end.
        listed_count: models found in it.
        skipped_count: what was passed over.
        problems: a sentence each.
    """

    is_complete: bool = False
    listed_count: int = 0
    skipped_count: int = 0
    problems: list[str] = field(default_factory=list)


class RootScan:
    """The scan of one root.

    Attributes:
        report: how far it came.
        _known: stamps by path.
        _seen: real paths told for earlier roots; grows.
        _deadline_s: when the root's time is over, by the monotonic clock.
    """

    def __init__(
        self,
        search: Search,
        layout: str,
        known: Mapping[str, str],
        seen: set[str],
        describe: Callable[[Candidate], FoundModel | None] = describe_candidate,
    ) -> None:
        self.report = RootReport()
        self._search = search
        self._layout = layout
        self._known = known
        self._seen = seen
        self._describe = describe
        self._limits: ScanLimits = search.limits
        self._deadline_s = 0.0

    def run(self) -> Iterator[Looked]:
        """Yield what is found, in the order of the root; the report is whole at the end."""
        self._deadline_s = time.monotonic() + self._limits.root_s
        lister = _Lister(self._search, self._layout, self._seen)
        is_listed = self._wait_for(lister)
        candidates = lister.candidates if is_listed else []
        self.report.listed_count = len(candidates)
        is_looked = yield from self._look_at(candidates)
        self.report.is_complete = is_listed and is_looked and not lister.is_cut
        self.report.skipped_count += self._search.skipped_count
        self.report.problems[:0] = self._search.problems() if is_listed else []

    def _wait_for(self, lister: _Lister) -> bool:
        """Wait until the root is listed; False when it does not answer."""
        lister.start()
        while True:
            steps = self._search.steps
            if lister.ended.wait(min(self._limits.silence_s, max(0.0, self._left_s()))):
                if not lister.is_done:
                    self._problem(_("The folder {path} could not be looked through."))
                return lister.is_done
            if self._left_s() <= 0:
                self._out_of_time()
                return False
            if self._search.steps == steps:
                self._problem(_silent_words(), self._limits.silence_s)
                return False

    def _look_at(self, candidates: Sequence[Candidate]) -> Generator[Looked, None, bool]:
        """Yield what becomes of each; return whether all were looked at."""
        at, stuck = 0, 0
        while at < len(candidates):
            looker = _Looker(candidates, at, self._known, self._describe)
            looker.start()
            for looked in looker.results(self._limits.file_s):
                yield looked
                at += 1
                self.report.skipped_count += looked.model is None and not looked.is_unchanged
                if self._left_s() <= 0 and at < len(candidates):
                    looker.stop()
                    self._out_of_time()
                    return False
            if at >= len(candidates):
                break
            stuck += looker.is_stuck
            yield Looked(candidates[at].path, _unread(candidates[at], looker.is_stuck, self._limits.file_s))
            at += 1
            if stuck >= self._limits.stuck_files:
                self._problem(_("Too many files in {path} could not be read in time. The others were left out."))
                return False
        return True

    def _left_s(self) -> float:
        return self._deadline_s - time.monotonic()

    def _out_of_time(self) -> None:
        self._problem(_("Looking through {path} took longer than {time}. The rest was left out."), self._limits.root_s)

    def _problem(self, words: str, seconds: float = 0.0) -> None:
        path = one_line(str(self._search.root))
        self.report.problems.append(words.format(path=path, time=seconds_text(seconds)))


@dataclass(frozen=True, slots=True)
class RootPlace:
    """What a first look at a root says.

    Attributes:
        real: its real path; "" when it is not there or has a fault.
        barred: folders below it that are not entered.
        fault: why it cannot be looked through, in words; "" when it can, or is not there and need not be.
    """

    real: str = ""
    barred: frozenset[str] = frozenset()
    fault: str = ""


def look_at_root(folder: Path, must_exist: bool, limit_s: float) -> RootPlace:
    """Return what a folder is, waiting for a drive that does not answer no longer than the limit."""
    places: queue.SimpleQueue[RootPlace] = queue.SimpleQueue()
    threading.Thread(target=lambda: places.put(_place(folder, must_exist)), name="root", daemon=True).start()
    try:
        return places.get(timeout=limit_s)
    except queue.Empty:
        return RootPlace(fault=_silent_words().format(path=one_line(str(folder)), time=seconds_text(limit_s)))


def _place(folder: Path, must_exist: bool) -> RootPlace:
    shown = one_line(str(folder))
    try:
        with os.scandir(folder):
            return RootPlace(os.path.realpath(folder), barred_folders(folder))
    except FileNotFoundError:
        words = _("The folder {path} is not there. Its drive may not be connected.") if must_exist else ""
        return RootPlace(fault=words.format(path=shown))
    except NotADirectoryError:
        return RootPlace(fault=_("{path} is a file, not a folder.").format(path=shown))
    except PermissionError:
        shut = one_line(str(_shut_folder(folder)))
        return RootPlace(fault=_("You may not look into the folder {path}.").format(path=shut))
    except (OSError, ValueError) as error:
        reason = one_line(getattr(error, "strerror", None) or str(error))
        return RootPlace(fault=_("The folder {path} cannot be opened: {reason}.").format(path=shown, reason=reason))


def _shut_folder(folder: Path) -> Path:
    """Return which folder on the way to one, itself at the end, may not be entered or read."""
    for above in reversed(folder.parents):
        if not os.access(above, os.X_OK):
            return above
    return folder


def _silent_words() -> str:
    return _("The folder {path} did not answer within {time}. Its drive may not be connected.")


class _Lister:
    """The thread that finds the candidates of a root.

    Attributes:
        candidates: those found so far; nothing in them was told for an earlier root.
        ended: set when the thread is at its end.
        is_done: whether it came to the end of the root, or of a limit.
        is_cut: whether a limit ended it.
    """

    def __init__(self, search: Search, layout: str, seen: set[str]) -> None:
        self.candidates: list[Candidate] = []
        self.ended = threading.Event()
        self.is_done = False
        self.is_cut = False
        self._search = search
        self._layout = layout
        self._seen = seen

    def start(self) -> None:
        """Begin."""
        threading.Thread(target=self._run, name="lister", daemon=True).start()

    def _run(self) -> None:
        try:
            found: list[Candidate] = []
            try:
                for candidate in find_candidates(self._search, self._layout):
                    real = self._search.real_path(candidate.path)
                    if real not in self._seen:
                        self._search.count_model(len(found) + 1)
                        self._seen.add(real)
                        found.append(candidate)
            except SearchLimitError:
                self.is_cut = True
            self.candidates = found
            self.is_done = True
        finally:
            self.ended.set()


class _Looker:
    """The thread that looks at candidates, from one on.

    Attributes:
        is_stuck: whether it was left behind at a file, since that took too long.
        _results: what became of each, in order; None behind the last.
    """

    def __init__(
        self,
        candidates: Sequence[Candidate],
        start: int,
        known: Mapping[str, str],
        describe: Callable[[Candidate], FoundModel | None],
    ) -> None:
        self.is_stuck = False
        self._candidates = candidates
        self._start = start
        self._known = known
        self._describe = describe
        self._results: queue.SimpleQueue[Looked | None] = queue.SimpleQueue()
        self._room = threading.Semaphore(_AHEAD)
        self._stopped = threading.Event()

    def start(self) -> None:
        """Begin."""
        threading.Thread(target=self._run, name="looker", daemon=True).start()

    def stop(self) -> None:
        """End it behind the file it is at."""
        self._stopped.set()
        self._room.release()

    def results(self, limit_s: float) -> Iterator[Looked]:
        """Yield the results in order, until the thread ends or takes longer than the limit for one."""
        while True:
            try:
                looked = self._results.get(timeout=limit_s)
            except queue.Empty:
                self.is_stuck = True
                self.stop()
                return
            if looked is None:
                return
            self._room.release()
            yield looked
            if self._results.empty():
                self._stopped.wait(_GATHER_S)

    def _run(self) -> None:
        try:
            for candidate in self._candidates[self._start :]:
                self._room.acquire()
                if self._stopped.is_set():
                    return
                self._results.put(self._look(candidate))
        finally:
            self._results.put(None)

    def _look(self, candidate: Candidate) -> Looked:
        known = self._known.get(str(candidate.path), "")
        if known and known == candidate.stamp():
            return Looked(candidate.path, is_unchanged=True)
        return Looked(candidate.path, self._describe(candidate))


def _unread(candidate: Candidate, is_stuck: bool, limit_s: float) -> FoundModel:
    """Return what is told of a file that could not be looked at; it has no stamp, so the next scan tries again."""
    if is_stuck:
        words = _("The file could not be read within {time}. Its drive may be slow or not connected.")
        fault = words.format(time=seconds_text(limit_s))
    else:
        fault = _("Cutaway could not make sense of this file.")
    return FoundModel(
        path=str(candidate.path),
        origin=candidate.origin,
        format=candidate.format,
        parts=tuple(map(str, candidate.parts)),
        name=candidate.name or file_name(candidate.path),
        owner=candidate.owner,
        size_bytes=0 if is_stuck else size_of(candidate.parts),
        fault=fault,
    )
