"""One root of a scan: known files unopened, dead drives left behind, limits kept. Events stand for drives."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from app.models import scan_root
from app.models.entry import FoundModel
from app.models.scan_messages import ScanLimits
from app.models.scan_root import Looked, RootScan, look_at_root
from app.models.source_candidate import Candidate, stamp_of
from app.models.source_search import Search
from tests.helpers.model_folders import model_bytes, projector_bytes, write

Describe = Callable[[Candidate], FoundModel | None]
# Waits of these tests end by it in any case, so that no thread is left behind.
QUICK = ScanLimits(file_s=0.2, silence_s=0.2, root_s=60.0, stuck_files=2)


@pytest.fixture
def dead_drive() -> Iterator[threading.Event]:
    """An event that what never answers waits for; set at the end, so that no thread stays."""
    event = threading.Event()
    yield event
    event.set()


def _plain(candidate: Candidate) -> FoundModel:
    return FoundModel(path=str(candidate.path), origin=candidate.origin)


def _scan(
    root: Path, describe: Describe, known: dict[str, str] | None = None, limits: ScanLimits = QUICK
) -> tuple[list[Looked], RootScan]:
    scan = RootScan(Search(root, "added", limits=limits), "folder", known or {}, set(), describe)
    return list(scan.run()), scan


def _models(root: Path, *names: str) -> list[Path]:
    return [write(root / name, model_bytes(name)) for name in names]


def test_every_model_is_looked_at_in_order(tmp_path: Path) -> None:
    paths = _models(tmp_path, "a.gguf", "b.gguf", "sub/c.gguf")
    looked, scan = _scan(tmp_path, _plain)

    assert [one.path for one in looked] == paths
    assert [one.model and one.model.path for one in looked] == [str(path) for path in paths]
    assert (scan.report.is_complete, scan.report.listed_count, scan.report.problems) == (True, 3, [])


def test_a_model_with_the_known_stamp_is_not_opened(tmp_path: Path) -> None:
    old, new, changed = _models(tmp_path, "a.gguf", "b.gguf", "c.gguf")
    opened: list[Path] = []

    def describe(candidate: Candidate) -> FoundModel:
        opened.append(candidate.path)
        return _plain(candidate)

    looked, _scan_of = _scan(tmp_path, describe, {str(old): stamp_of([old]), str(changed): "another"})
    assert [one.is_unchanged for one in looked] == [True, False, False]
    assert opened == [new, changed]


def test_a_projector_that_appears_makes_its_model_new(tmp_path: Path) -> None:
    [model] = _models(tmp_path, "m-Q4_0.gguf")
    known = {str(model): stamp_of([model])}
    write(tmp_path / "mmproj-f16.gguf", projector_bytes())
    looked, _scan_of = _scan(tmp_path, _plain, known)
    assert [one.is_unchanged for one in looked] == [False]


def test_a_file_that_was_told_for_an_earlier_root_is_not_told_again(tmp_path: Path) -> None:
    paths = _models(tmp_path, "a.gguf", "b.gguf")
    seen = {str(paths[0])}
    scan = RootScan(Search(tmp_path, "added"), "folder", {}, seen, _plain)
    assert [one.path for one in scan.run()] == [paths[1]]
    assert seen == {str(path) for path in paths}


def test_a_file_that_takes_too_long_is_a_fault_and_the_scan_goes_on(
    tmp_path: Path, dead_drive: threading.Event
) -> None:
    paths = _models(tmp_path, "a.gguf", "b.gguf", "c.gguf")

    def describe(candidate: Candidate) -> FoundModel:
        if candidate.path == paths[1]:
            dead_drive.wait(60)
        return _plain(candidate)

    looked, scan = _scan(tmp_path, describe)
    assert [one.path for one in looked] == paths
    stuck = looked[1].model
    assert stuck is not None
    assert stuck.fault == "The file could not be read within 200\u00a0ms. Its drive may be slow or not connected."
    assert (stuck.stamp, stuck.name) == ("", "b")
    assert scan.report.is_complete


def test_a_drive_that_is_stuck_at_every_file_is_given_up(tmp_path: Path, dead_drive: threading.Event) -> None:
    paths = _models(tmp_path, "a.gguf", "b.gguf", "c.gguf", "d.gguf")

    def describe(candidate: Candidate) -> FoundModel:
        dead_drive.wait(60)
        return _plain(candidate)

    looked, scan = _scan(tmp_path, describe)
    assert [one.path for one in looked] == paths[:2]
    assert not scan.report.is_complete
    assert scan.report.problems == [
        f"Too many files in {tmp_path} could not be read in time. The others were left out."
    ]


def test_a_folder_that_does_not_answer_is_given_up(
    tmp_path: Path, dead_drive: threading.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    def find(search: Search, layout: str) -> Iterator[Candidate]:
        dead_drive.wait(60)
        yield from ()

    monkeypatch.setattr(scan_root, "find_candidates", find)
    looked, scan = _scan(tmp_path, _plain)
    assert looked == []
    assert not scan.report.is_complete
    assert scan.report.problems == [
        f"The folder {tmp_path} did not answer within 200\u00a0ms. Its drive may not be connected."
    ]


def test_the_time_of_a_root_ends_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _models(tmp_path, "a.gguf", "b.gguf", "c.gguf")
    clock = SimpleNamespace(now_s=5.0)
    monkeypatch.setattr(scan_root, "time", SimpleNamespace(monotonic=lambda: clock.now_s))
    limits = ScanLimits(file_s=60, silence_s=60, root_s=100)
    scan = RootScan(Search(tmp_path, "added", limits=limits), "folder", {}, set(), _plain)
    run = scan.run()
    looked = [next(run)]
    clock.now_s = 105.0
    looked += run

    assert [one.path.name for one in looked] == ["a.gguf"]
    assert not scan.report.is_complete
    assert scan.report.problems == [
        f"Looking through {tmp_path} took longer than 1\u00a0min\u00a040\u00a0s. The rest was left out."
    ]


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_what_nobody_foresaw_is_the_fault_of_one_file(tmp_path: Path) -> None:
    paths = _models(tmp_path, "a.gguf", "b.gguf", "c.gguf")

    def describe(candidate: Candidate) -> FoundModel:
        if candidate.path == paths[1]:
            raise RuntimeError("unforeseen")
        return _plain(candidate)

    looked, scan = _scan(tmp_path, describe)
    assert [one.model.fault if one.model else None for one in looked] == [
        "",
        "Cutaway could not make sense of this file.",
        "",
    ]
    assert scan.report.is_complete


def test_a_limit_of_number_keeps_what_was_found(tmp_path: Path) -> None:
    _models(tmp_path, "a.gguf", "b.gguf", "c.gguf")
    looked, scan = _scan(tmp_path, _plain, limits=ScanLimits(models=2))
    assert len(looked) == 2
    assert not scan.report.is_complete
    assert scan.report.problems == [f"The folder {tmp_path} holds more models than Cutaway lists."]


def test_what_is_no_model_of_its_own_is_skipped(tmp_path: Path) -> None:
    _models(tmp_path, "a.gguf")
    looked, scan = _scan(tmp_path, lambda _candidate: None)
    assert [(one.model, one.is_unchanged) for one in looked] == [(None, False)]
    assert scan.report.skipped_count == 1


def test_a_root_is_looked_at_before_it_is_entered(tmp_path: Path) -> None:
    file = write(tmp_path / "file", b"")
    (tmp_path / "link").symlink_to(tmp_path)

    assert look_at_root(tmp_path / "link", True, 60).real == str(tmp_path)
    assert look_at_root(tmp_path / "gone", False, 60) == scan_root.RootPlace()
    assert look_at_root(tmp_path / "gone", True, 60).fault == (
        f"The folder {tmp_path / 'gone'} is not there. Its drive may not be connected."
    )
    assert look_at_root(file, False, 60).fault == f"{file} is a file, not a folder."
    assert look_at_root(Path("a\0b"), False, 60).fault == "The folder a b cannot be opened: embedded null byte."


def test_a_root_that_may_not_be_entered_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_folder: Path) -> None:
        raise PermissionError

    monkeypatch.setattr(scan_root.os, "scandir", refuse)  # root may look into everything
    assert look_at_root(tmp_path, False, 60).fault == f"You may not look into the folder {tmp_path}."


def test_a_root_that_does_not_answer_is_not_waited_for(
    tmp_path: Path, dead_drive: threading.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    def place(_folder: Path, _must_exist: bool) -> scan_root.RootPlace:
        dead_drive.wait(60)
        return scan_root.RootPlace()

    monkeypatch.setattr(scan_root, "_place", place)
    assert look_at_root(tmp_path, False, 0.1).fault == (
        f"The folder {tmp_path} did not answer within 100\u00a0ms. Its drive may not be connected."
    )


def test_of_a_folder_behind_a_shut_one_the_shut_one_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shut = tmp_path / "shut"
    shut.mkdir()

    def access(folder: Path, _mode: int) -> bool:
        return folder != shut

    def refuse(_folder: Path) -> None:
        raise PermissionError

    monkeypatch.setattr(scan_root.os, "scandir", refuse)
    monkeypatch.setattr(scan_root.os, "access", access)
    assert look_at_root(shut / "a" / "b", False, 60).fault == f"You may not look into the folder {shut}."
