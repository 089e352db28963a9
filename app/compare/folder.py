"""A comparison's folder: the plan, what was measured so far, and the reference's windows.

    plan.json  comparison.json  conditions.json  material.json
    runs/<run_id>/  facts.json  window-0001.npz ...  answers.json  choices.json  speed.json  memory.json  failure.json
    reference/      window-0001.cwin ...             freed when nothing needs them

Each file is written as a whole or not at all, so that after any death the folder says what is done. A damaged or
foreign folder is a sentence. Knows no engine.
"""

from __future__ import annotations

import contextlib
import datetime
import re
import shutil
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from app.compare.files import FolderError, read_file, size_of, worded, write_file
from app.compare.plan import ComparisonPlan
from app.compare.report import read_result, write_report
from app.compare.results import Answer, ComparisonResult, Memory
from app.compare.run_files import Conditions, Material, RunFacts, RunFailure, SpeedRound
from app.compare.token_scores import TokenScores
from app.downloads.file_lock import FileLock
from app.errors import Words, one_line
from app.i18n import _

FOLDER_NAME = "comparisons"
NOISE_FLOOR_RUN = "noise-floor"  # the reference once more, with another batch size
WINDOW_SUFFIX = ".cwin"

_PRIVATE_MODE = 0o700  # a person's own texts and chats may be in it
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,99}")
_T = TypeVar("_T")


class ComparisonFolder:
    """One comparison on disk.

    Attributes:
        path: the folder.
        plan: what the comparison is to do.
    """

    def __init__(self, path: Path, plan: ComparisonPlan) -> None:
        self.path = path
        self.plan = plan
        self._lock = FileLock(path / ".lock")

    @classmethod
    def create(cls, root: Path, plan: ComparisonPlan) -> ComparisonFolder:
        """Make the folder of a plan in `root`, named by its comparison_id.

        Raises:
            FolderError: it is there already, or cannot be written.
        """
        return cls.create_at(root / plan.comparison_id, plan)

    @classmethod
    def create_at(cls, path: Path, plan: ComparisonPlan) -> ComparisonFolder:
        """Make this folder for a plan; it may be there when nothing is in it. Raises FolderError."""
        check_plan(plan)
        with worded(path):
            path.mkdir(mode=_PRIVATE_MODE, parents=True, exist_ok=True)
            if next(path.iterdir(), None) is not None:
                message = _("The folder {path} is not empty.").format(path=one_line(str(path)))
                raise FolderError(Words(message, _("Name another one, or go on with the comparison in it.")))
            folder = cls(path, plan)
            for name in ("runs", "reference"):
                (path / name).mkdir(mode=_PRIVATE_MODE)
        folder._write("plan.json", plan)
        return folder

    @classmethod
    def open(cls, path: Path) -> ComparisonFolder:
        """Open a comparison that was begun.

        Raises:
            FolderError: there is none, or its plan cannot be read.
        """
        plan = read_file(path / "plan.json", ComparisonPlan)
        if plan is None:
            message = _("There is no comparison in {path}.").format(path=one_line(str(path)))
            raise FolderError(Words(message, _("A comparison's folder holds a file plan.json.")))
        check_plan(plan)
        with worded(path):
            for name in ("runs", "reference"):
                (path / name).mkdir(mode=_PRIVATE_MODE, exist_ok=True)
        return cls(path, plan)

    def take(self) -> None:
        """Have this process alone work in the folder; raises FolderError when another one does."""
        with worded(self.path):
            is_taken = self._lock.take()
        if not is_taken:
            message = _("This comparison is being run by another window or terminal.")
            raise FolderError(Words(message, _("Wait until it has ended, or stop it there.")))

    def release(self) -> None:
        """Let others work in the folder."""
        self._lock.release()

    # --------------------------------------------------------------------------------------- the whole

    @property
    def result_path(self) -> Path:
        """The file of the result, comparison.json."""
        return self.path / "comparison.json"

    def result(self) -> ComparisonResult | None:
        """Return what was found so far; None before anything was. Raises FolderError."""
        return read_result(self.result_path)

    def save_result(self, result: ComparisonResult) -> None:
        """Write comparison.json; raises FolderError."""
        facts = {run.run_id: self.facts(run.run_id) or RunFacts() for run in self.plan.runs}
        write_report(self.result_path, self.plan, result, self.conditions(), facts)

    def material(self) -> Material | None:
        """Return the tokens that every run is given; None before they were made. Raises FolderError."""
        return read_file(self.path / "material.json", Material)

    def save_material(self, material: Material) -> None:
        """Keep the tokens; raises FolderError."""
        self._write("material.json", material)

    def conditions(self) -> Conditions:
        """Return the conditions so far; raises FolderError."""
        return read_file(self.path / "conditions.json", Conditions) or Conditions()

    def save_conditions(self, conditions: Conditions) -> None:
        """Keep the conditions; raises FolderError."""
        self._write("conditions.json", conditions)

    # ------------------------------------------------------------------------------------- one run

    def windows_done(self, run_id: str) -> tuple[int, ...]:
        """Return the numbers of the windows that a run has scored, from 0, rising."""
        found = (_number_of(path, ".npz") for path in _files(self._run(run_id)))
        return tuple(sorted(number for number in found if number is not None))

    def save_scores(self, run_id: str, number: int, scores: TokenScores) -> None:
        """Keep a window's scores; raises FolderError."""
        target = self._run(run_id) / _window_name(number, ".npz")
        with worded(target):
            target.parent.mkdir(mode=_PRIVATE_MODE, parents=True, exist_ok=True)
            scores.save(target)

    def scores(self, run_id: str, number: int) -> TokenScores | None:
        """Return a window's scores; None for a window not scored yet, or whose file is damaged."""
        path = self._run(run_id) / _window_name(number, ".npz")
        try:
            return TokenScores.load(path)
        except FileNotFoundError:
            return None
        except (OSError, ValueError):  # damaged: scored anew
            with contextlib.suppress(OSError):
                path.unlink()
            return None

    def facts(self, run_id: str) -> RunFacts | None:
        """Return what the engine said of a run; None before its first load."""
        return self._run_file(run_id, "facts", RunFacts)

    def answers(self, run_id: str) -> tuple[Answer, ...]:
        """Return a run's answers so far."""
        return self._run_file(run_id, "answers", tuple[Answer, ...]) or ()

    def picks(self, run_id: str) -> tuple[int, ...]:
        """Return which answer a run chose, of the multiple-choice questions done so far."""
        return self._run_file(run_id, "choices", tuple[int, ...]) or ()

    def rounds(self, run_id: str) -> tuple[SpeedRound, ...]:
        """Return a run's speed rounds so far."""
        return self._run_file(run_id, "speed", tuple[SpeedRound, ...]) or ()

    def memory(self, run_id: str) -> Memory | None:
        """Return what a run takes; None where it was not measured yet."""
        return self._run_file(run_id, "memory", Memory)

    def failure(self, run_id: str) -> RunFailure | None:
        """Return why a run ended before its end; None where it did not."""
        return self._run_file(run_id, "failure", RunFailure)

    def save(self, run_id: str, name: str, value: object) -> None:
        """Keep something of a run: "facts", "answers", "choices", "speed", "memory", "failure"; raises FolderError."""
        folder = self._run(run_id)
        with worded(folder):
            folder.mkdir(mode=_PRIVATE_MODE, parents=True, exist_ok=True)
        self._write(f"runs/{run_id}/{name}.json", value)

    def forget_failure(self, run_id: str) -> None:
        """Let a run begin again where it was; raises FolderError."""
        path = self._run(run_id) / "failure.json"
        with worded(path):
            path.unlink(missing_ok=True)

    # ------------------------------------------------------------------------------------- reference

    def reference_path(self, number: int) -> Path:
        """Return the file of the reference's window of this number, whether or not it is there."""
        return self.path / "reference" / _window_name(number, WINDOW_SUFFIX)

    def has_reference(self, number: int) -> bool:
        """Return whether the reference's window is there, whole."""
        return self.reference_path(number).is_file()

    def free_reference(self) -> int:
        """Delete the reference's windows and return how many bytes that freed; what cannot be deleted stays."""
        freed = 0
        for path in _files(self.path / "reference"):
            with contextlib.suppress(OSError):
                size_bytes = path.stat().st_size
                path.unlink()
                freed += size_bytes
        return freed

    # ----------------------------------------------------------------------------------------- disk

    @property
    def used_bytes(self) -> int:
        """What the folder takes on the disk."""
        return size_of(self.path)

    @property
    def free_bytes(self) -> int:
        """What its disk has left."""
        with worded(self.path):
            return shutil.disk_usage(self.path).free

    def delete(self) -> None:
        """Delete the comparison with all it measured; raises FolderError, also while somebody works in it."""
        self.take()
        try:
            with worded(self.path):
                # the plan last: what is left of a deletion that failed can still be listed, and deleted again
                for path in sorted(self.path.iterdir(), key=lambda found: found.name in ("plan.json", ".lock")):
                    if path.is_dir() and not path.is_symlink():
                        shutil.rmtree(path)
                    elif path.name != ".lock":
                        path.unlink()
        finally:
            self.release()
        with worded(self.path):
            shutil.rmtree(self.path)

    # -------------------------------------------------------------------------------------- helpers

    def _run(self, run_id: str) -> Path:
        return self.path / "runs" / run_id

    def _run_file(self, run_id: str, name: str, kind: type[_T]) -> _T | None:
        """Return a file of a run; one that is damaged was never written as far as this program knows."""
        path = self._run(run_id) / f"{name}.json"
        try:
            return read_file(path, kind)
        except FolderError:
            return None

    def _write(self, name: str, value: object) -> None:
        write_file(self.path / name, value)


@dataclass(frozen=True, slots=True)
class Listed:
    """A folder that looks like a comparison.

    Attributes:
        path: the folder.
        plan: None where it cannot be read.
        result: what was found so far; None where nothing was, or it cannot be read.
        fault: why it cannot be opened, in words; "" when it can.
        used_bytes: what it takes on the disk.
    """

    path: Path
    plan: ComparisonPlan | None
    result: ComparisonResult | None
    fault: str
    used_bytes: int


def comparisons_root(data: Path) -> Path:
    """Return where comparisons lie under the data folder of app/paths.py."""
    return data / FOLDER_NAME


def list_comparisons(root: Path) -> tuple[Listed, ...]:
    """Return every comparison in a folder, the newest first, damaged ones with the words for it."""
    found = []
    for path in _folders(root):
        plan, result, fault = None, None, ""
        try:
            plan = ComparisonFolder.open(path).plan
            result = read_result(path / "comparison.json")
        except FolderError as error:
            fault = error.words.message
        found.append(Listed(path, plan, result, fault, size_of(path)))
    return tuple(sorted(found, key=lambda one: one.plan.created_s if one.plan else 0.0, reverse=True))


def new_comparison_id(title: str, root: Path, now_s: float | None = None) -> str:
    """Return a name for a new comparison that is a file name too and not taken: "2026-08-30-smollm2-135m"."""
    moment = datetime.datetime.fromtimestamp(time.time() if now_s is None else now_s).astimezone()
    words = re.sub(r"[^a-z0-9.]+", "-", title.lower()).strip("-.")[:40].strip("-.")
    first = f"{moment:%Y-%m-%d}-{words or 'comparison'}"
    name, number = first, 1
    while (root / name).exists():
        number += 1
        name = f"{first}-{number}"
    return name


def check_plan(plan: ComparisonPlan) -> None:
    """Raise FolderError for a plan whose names cannot be those of files, or are there twice."""
    names = [run.run_id for run in plan.runs]
    bad = [name for name in (plan.comparison_id, *names) if _NAME.fullmatch(name) is None or name == NOISE_FLOOR_RUN]
    twice = {name.lower() for name in names if [one.lower() for one in names].count(name.lower()) > 1}
    if bad or twice:
        shown = one_line((bad or sorted(twice))[0], 60)
        message = _("The comparison's plan cannot be used: the name “{name}” is not allowed, or is there twice.")
        raise FolderError(Words(message.format(name=shown), _("Begin a new comparison.")))


def _window_name(number: int, suffix: str) -> str:
    return f"window-{number + 1:04d}{suffix}"


def _number_of(path: Path, suffix: str) -> int | None:
    found = re.fullmatch(rf"window-(\d{{4,6}}){re.escape(suffix)}", path.name)
    return int(found[1]) - 1 if found else None


def _folders(root: Path) -> list[Path]:
    with contextlib.suppress(OSError):
        return [path for path in root.iterdir() if path.is_dir() and not path.name.startswith(".")]
    return []


def _files(folder: Path) -> list[Path]:
    with contextlib.suppress(OSError):
        return sorted(path for path in folder.iterdir() if path.is_file())
    return []
