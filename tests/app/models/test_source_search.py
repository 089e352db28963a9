"""The search of a root: bounds, problems in words, and links that may and may not be followed."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from app.models.scan_messages import ScanLimits
from app.models.source_search import Search, SearchLimitError, barred_folders


def test_entries_come_by_name_and_count_as_steps(tmp_path: Path) -> None:
    for name in ("c", "a", "b"):
        (tmp_path / name).touch()
    search = Search(tmp_path, "added")

    assert [entry.name for entry in search.entries(tmp_path)] == ["a", "b", "c"]
    assert search.steps == 3
    assert search.problems() == []


def test_a_folder_that_cannot_be_opened_is_a_problem_and_no_end(tmp_path: Path) -> None:
    search = Search(tmp_path, "added")
    assert search.entries(tmp_path / "gone") == []
    assert search.problems() == [f"The folder {tmp_path / 'gone'} could not be opened."]

    search.entries(tmp_path / "also gone")
    assert search.problems() == [f"{tmp_path / 'gone'} and 1 more folders could not be opened."]
    assert search.skipped_count == 2


def test_more_files_than_the_limit_end_the_search(tmp_path: Path) -> None:
    for number in range(4):
        (tmp_path / f"{number}").touch()
    search = Search(tmp_path, "added", limits=ScanLimits(entries=3))

    with pytest.raises(SearchLimitError):
        search.entries(tmp_path)
    assert search.problems() == [f"The folder {tmp_path} holds more files than Cutaway looks through."]


def test_links_may_lead_into_any_root_of_the_scan_and_nowhere_else(tmp_path: Path) -> None:
    ours, theirs, other = tmp_path / "ours", tmp_path / "theirs", tmp_path / "theirs-not"
    for folder in (ours, theirs, other):
        folder.mkdir()
        (folder / "m.gguf").write_bytes(b"x")
    for name, target in (("in", theirs), ("out", other), ("near", ours)):
        (ours / f"{name}.gguf").symlink_to(target / "m.gguf")
    search = Search(ours, "added", (str(ours), str(theirs)))

    assert search.link_fault(ours / "in.gguf") == ""
    assert search.link_fault(ours / "near.gguf") == ""
    assert search.link_fault(ours / "out.gguf") == (
        f"This link leads out of the folder, to {other / 'm.gguf'}. Add that folder or import the file from there."
    )


def test_broken_and_circular_links_are_told(tmp_path: Path) -> None:
    (tmp_path / "broken.gguf").symlink_to(tmp_path / "gone")
    (tmp_path / "loop.gguf").symlink_to(tmp_path / "loop.gguf")
    search = Search(tmp_path, "added")

    for name in ("broken.gguf", "loop.gguf"):
        assert search.link_fault(tmp_path / name) == "This link leads to a file that is not there."


def test_a_root_that_is_a_link_is_where_it_leads(tmp_path: Path) -> None:
    real = tmp_path / "real"
    real.mkdir()
    (real / "m.gguf").write_bytes(b"x")
    (tmp_path / "root").symlink_to(real)
    search = Search(tmp_path / "root", "added")

    assert search.link_fault(tmp_path / "root" / "m.gguf") == ""
    assert search.real_path(tmp_path / "root" / "m.gguf") == str(real / "m.gguf")


def test_the_real_path_of_a_link_is_its_target(tmp_path: Path) -> None:
    (tmp_path / "m.gguf").write_bytes(b"x")
    (tmp_path / "link.gguf").symlink_to("m.gguf")
    search = Search(tmp_path, "added")
    assert search.real_path(tmp_path / "link.gguf") == search.real_path(tmp_path / "m.gguf")


def test_the_systems_own_folders_and_other_computers_are_barred(tmp_path: Path) -> None:
    mounts = tmp_path / "mounts"
    mounts.write_bytes(
        b"proc /proc proc rw 0 0\n/dev/sda1 /mnt/disk ext4 rw 0 0\n"
        b"nas:/m /mnt/my\\040nas nfs4 rw 0 0\n//pc/share /mnt/share cifs rw 0 0\nbroken\n"
    )
    barred = barred_folders(tmp_path, mounts)

    assert {"/proc", "/sys", "/dev", "/run", "/mnt/my nas", "/mnt/share"} == barred
    assert barred_folders(tmp_path, tmp_path / "gone") == {"/proc", "/sys", "/dev", "/run"}


def test_a_root_on_another_computer_is_looked_through(tmp_path: Path) -> None:
    share = tmp_path / "share"
    (share / "models").mkdir(parents=True)
    mounts = tmp_path / "mounts"
    mounts.write_bytes(b"nas:/m " + os.fsencode(share) + b" nfs4 rw 0 0\n")

    assert str(share) not in barred_folders(share, mounts)
    assert str(share) not in barred_folders(share / "models", mounts)
    assert str(share) in barred_folders(tmp_path, mounts)
