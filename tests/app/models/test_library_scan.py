"""A scan's way into the library: batches, what is gone, what is away, and kills in the middle."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from app.models import library_figures, library_rows, library_scan
from app.models.library_scan import IS_SCANNED, ScanProgress, scan_into
from app.models.library_store import LibraryStore
from app.models.library_words import LibraryError
from app.models.scan_messages import ScanBatch, ScanSummary
from app.models.sources import Source
from tests.helpers.gguf_files import named_model
from tests.helpers.libraries import found_model, sql

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture
def store(tmp_path):
    opened = LibraryStore(tmp_path / "library.sqlite3")
    yield opened
    opened.close()


@pytest.fixture
def root(tmp_path):
    folder = tmp_path / "models"
    folder.mkdir()
    return folder


def source(folder, origin="added"):
    return Source(origin, folder, "Folder", must_exist=True)


class Told:
    """Stands for the scan child: tells these batches, then this summary.

    Attributes:
        known: what it was told is known.
    """

    def __init__(self, *batches, summary=None):
        self.batches = batches
        self.summary = summary or ScanSummary()
        self.known = None

    def __call__(self, _sources, known, on_found, _cancel, *, language=""):
        self.known = dict(known)
        for batch in self.batches:
            on_found(batch)
        return self.summary


def batch(folder, *models, unchanged=(), looked=1, listed=1):
    return ScanBatch(str(folder), models, tuple(map(str, unchanged)), looked, listed)


def stored(store):
    rows = store.read(library_rows.read_paths, [])
    return [(os.fsdecode(row.path), row.origin, os.fsdecode(row.root)) for row in rows]


def test_what_is_found_is_kept_with_its_root_and_known_the_next_time(store, root, monkeypatch):
    told = Told(batch(root, found_model(1), found_model(2)), summary=ScanSummary(complete_roots=(str(root),)))
    monkeypatch.setattr(library_scan, "scan", told)
    scan_into(store, [source(root, "lm_studio")])
    assert [(path, place) for path, _origin, place in stored(store)] == [
        ("/models/model-1.gguf", str(root)),
        ("/models/model-2.gguf", str(root)),
    ]
    again = Told(batch(root, unchanged=["/models/model-2.gguf"]), summary=ScanSummary(complete_roots=(str(root),)))
    monkeypatch.setattr(library_scan, "scan", again)
    scan_into(store, [source(root, "jan")])
    assert again.known == {"/models/model-1.gguf": "stamp-1", "/models/model-2.gguf": "stamp-2"}
    assert stored(store) == [("/models/model-2.gguf", "jan", str(root))]
    assert IS_SCANNED in store.read(library_figures.read_facts, {})


def test_progress_is_told_with_what_was_found_so_far(store, root, monkeypatch):
    batches = [batch(root, found_model(1), looked=1, listed=9), batch(root, found_model(2), looked=2, listed=9)]
    monkeypatch.setattr(library_scan, "scan", Told(*batches))
    progress = []
    scan_into(store, [source(root)], progress.append)
    assert progress == [ScanProgress(str(root), 1, 9, 1), ScanProgress(str(root), 2, 9, 2)]


def test_small_batches_are_written_together_and_large_ones_at_once(store, root, monkeypatch):
    commits = []
    apart = LibraryStore._write_apart
    monkeypatch.setattr(LibraryStore, "_write_apart", lambda *arguments: (commits.append(1), apart(*arguments))[1])
    monkeypatch.setattr(library_scan.time, "monotonic", lambda: 0.0)
    monkeypatch.setattr(library_scan, "_BATCH_MODELS", 4)
    monkeypatch.setattr(library_scan, "scan", Told(*(batch(root, found_model(number)) for number in range(10))))
    scan_into(store, [source(root)])
    assert (len(stored(store)), len(commits)) == (10, 1 + 3 + 1)  # begin, 4 and 4 and 2, end


def test_an_old_batch_is_written_however_small(store, root, monkeypatch):
    clock = iter(range(0, 1000, 2))
    monkeypatch.setattr(library_scan.time, "monotonic", lambda: float(next(clock)))
    seen = []

    def scan(_sources, _known, on_found, _cancel, *, language):
        on_found(batch(root, found_model(1)))
        seen.append(len(stored(store)))
        return ScanSummary()

    monkeypatch.setattr(library_scan, "scan", scan)
    scan_into(store, [source(root)])
    assert seen == [1]


@pytest.mark.parametrize("is_there", [True, False])
def test_a_root_that_was_not_looked_through_keeps_its_models(store, root, monkeypatch, is_there):
    monkeypatch.setattr(library_scan, "scan", Told(batch(root, found_model(1))))
    scan_into(store, [source(root)])
    if not is_there:
        root.rmdir()
    monkeypatch.setattr(library_scan, "scan", Told())
    scan_into(store, [source(root)])
    (row,) = store.read(library_rows.read_paths, [])
    assert bool(row.is_away) is not is_there


def test_a_cancelled_scan_keeps_what_it_found_and_forgets_nothing(store, root, monkeypatch):
    whole = ScanSummary(complete_roots=(str(root),))
    monkeypatch.setattr(library_scan, "scan", Told(batch(root, found_model(1)), summary=whole))
    scan_into(store, [source(root)])
    cancelled = ScanSummary(complete_roots=(str(root),), is_cancelled=True)
    monkeypatch.setattr(library_scan, "scan", Told(batch(root, found_model(2)), summary=cancelled))
    assert scan_into(store, [source(root)]).is_cancelled
    assert len(stored(store)) == 2


def test_a_scan_of_one_folder_leaves_the_others_alone(store, root, tmp_path, monkeypatch):
    other = tmp_path / "other"
    other.mkdir()
    for folder, number in ((root, 1), (other, 2)):
        whole = ScanSummary(complete_roots=(str(folder),))
        monkeypatch.setattr(library_scan, "scan", Told(batch(folder, found_model(number)), summary=whole))
        scan_into(store, [source(folder)], is_everything=False)
    assert len(stored(store)) == 2
    assert IS_SCANNED not in store.read(library_figures.read_facts, {})
    monkeypatch.setattr(library_scan, "scan", Told(summary=ScanSummary(complete_roots=(str(root),))))
    scan_into(store, [source(root)])
    assert stored(store) == []


def test_a_full_disk_ends_the_scan_in_words_and_keeps_what_was_written(store, root, monkeypatch):
    monkeypatch.setattr(library_scan, "_BATCH_MODELS", 1)

    def refuse(connection, *arguments):
        if "model-3" in arguments[0].path:
            raise library_scan.sqlite3.OperationalError("database or disk is full")
        put(connection, *arguments)

    put = library_rows.put_found
    monkeypatch.setattr(library_rows, "put_found", refuse)
    monkeypatch.setattr(library_scan, "scan", Told(*(batch(root, found_model(number)) for number in range(1, 6))))
    with pytest.raises(LibraryError, match="could not be written"):
        scan_into(store, [source(root)])
    assert [path for path, _origin, _root in stored(store)] == ["/models/model-1.gguf", "/models/model-2.gguf"]


def test_in_memory_a_scan_works_too(root, monkeypatch):
    store = LibraryStore(Path("/dev/null/library.sqlite3"))
    monkeypatch.setattr(library_scan, "scan", Told(batch(root, found_model(1))))
    scan_into(store, [source(root)])
    assert len(stored(store)) == 1
    store.close()


def test_a_real_scan_of_a_thousand_files_finds_them_all_and_then_reads_none(store, root):
    for number in range(1000):
        named_model(f"M{number}").write(root / f"m{number:04}.gguf")
    first, second = scan_into(store, [source(root)]), scan_into(store, [source(root)])
    assert (first.found_count, first.unchanged_count, first.complete_roots) == (1000, 0, (str(root),))
    assert (second.found_count, second.unchanged_count) == (0, 1000)
    assert len(stored(store)) == 1000


# --------------------------------------------------------------------------------------------------------- kills

SCANNING = """
import sys
from pathlib import Path
from app.models import library_scan
from app.models.library_store import LibraryStore
from app.models.scan_messages import ScanBatch, ScanSummary
from app.models.sources import Source
from tests.helpers.libraries import found_model

first = int(sys.argv[2])
library_scan._BATCH_MODELS = 16

def endless(sources, known, on_found, cancel, *, language=""):
    number = first
    while True:
        models = tuple(found_model(number + inner) for inner in range(8))
        on_found(ScanBatch("/models", models, (), 8, 8))
        number += 8
        sys.stdout.write(".")
        sys.stdout.flush()

library_scan.scan = endless
store = LibraryStore(Path(sys.argv[1]))
library_scan.scan_into(store, [Source("lm_studio", Path("/models"), "Models")])
"""


def kill_many_times(path, count):
    """Deaths fall at fixed but scattered moments after the first model was found; batches are whole or not there."""
    told = 0
    for number in range(count):
        child = subprocess.Popen(
            [sys.executable, "-c", SCANNING, str(path), str(number * 100_000)], cwd=ROOT, stdout=subprocess.PIPE
        )
        child.stdout.read(1)
        timer = threading.Timer(0.02 + 0.3 * (number * 0.618 % 1.0), child.kill)
        timer.start()
        told += 1 + len(child.stdout.read())
        timer.join()
        child.wait()
        child.stdout.close()
        assert sql(path, "PRAGMA integrity_check") == [("ok",)]
        (stored_count,) = sql(path, "SELECT COUNT(*) FROM paths")[0]
        assert stored_count % 8 == 0
        assert stored_count >= (told - 2 * (number + 1)) * 8  # of each run the last two messages were not written yet
        assert sql(path, "SELECT COUNT(*) FROM paths WHERE model_id IS NULL") == [(0,)]
    assert told > 2 * count


def test_kills_in_the_middle_of_a_scan_leave_the_library_whole(tmp_path):
    kill_many_times(tmp_path / "library.sqlite3", 20)


@pytest.mark.full
@pytest.mark.timeout(900)
@pytest.mark.skipif(os.environ.get("CUTAWAY_FULL") != "1", reason="set CUTAWAY_FULL=1 for the large counts")
def test_two_hundred_kills_in_the_middle_of_a_scan_leave_the_library_whole(tmp_path):
    kill_many_times(tmp_path / "library.sqlite3", 200)
