"""What the library takes on the disk."""

from __future__ import annotations

import os

from app.models.library_disk import DiskUse, disk_use, duplicates
from app.models.library_view import EMPTY, Listed, build_view
from tests.helpers.libraries import found_model


def write(path, size=100_000):
    path.write_bytes(os.urandom(size))
    return path


def place(path, identity, *more, origin="added"):
    parts = tuple(map(str, (path, *more)))
    found = found_model(path=str(path), parts=parts, size_bytes=100_000 * len(parts))
    return Listed(found, origin, identity)


def taken(*paths):
    return sum(path.stat().st_blocks * 512 for path in paths)


def test_names_and_links_of_one_file_count_once_and_are_no_copies(tmp_path):
    path = write(tmp_path / "a.gguf")
    (tmp_path / "hard.gguf").hardlink_to(path)
    (tmp_path / "soft.gguf").symlink_to(path)
    view = build_view(place(tmp_path / name, "sha256:1") for name in ("a.gguf", "hard.gguf", "soft.gguf"))
    assert disk_use(view) == DiskUse(300_000, taken(path), 0)
    assert duplicates(view) == []


def test_copies_count_each_and_are_told_with_the_preferred_one_first(tmp_path):
    one, copy, other = (write(tmp_path / f"{name}.gguf") for name in ("one", "copy", "other"))
    (tmp_path / "link.gguf").symlink_to(copy)
    view = build_view(
        [
            place(one, "sha256:1"),
            place(tmp_path / "link.gguf", "sha256:1"),
            place(copy, "sha256:1", origin="folder"),
            place(other, "sha256:2"),
        ]
    )
    assert disk_use(view) == DiskUse(400_000, taken(one, copy, other), taken(one))
    assert [[entry.path for entry in group] for group in duplicates(view)] == [[copy, one]]


def test_sets_count_all_parts(tmp_path):
    parts = [write(tmp_path / f"{number}.gguf") for number in range(4)]
    view = build_view([place(parts[0], "sha256:1", parts[1]), place(parts[2], "sha256:1", parts[3])])
    assert disk_use(view) == DiskUse(400_000, taken(*parts), taken(*parts[2:]))
    assert len(duplicates(view)) == 1


def test_a_set_that_shares_its_parts_is_no_copy(tmp_path):
    parts = [write(tmp_path / f"{number}.gguf") for number in range(2)]
    (tmp_path / "again.gguf").hardlink_to(parts[0])
    view = build_view([place(parts[0], "sha256:1", parts[1]), place(tmp_path / "again.gguf", "sha256:1", parts[1])])
    assert duplicates(view) == []
    assert disk_use(view).duplicate_bytes == 0


def test_what_is_gone_takes_nothing(tmp_path):
    path = write(tmp_path / "a.gguf")
    view = build_view([place(tmp_path / "none.gguf", "sha256:1"), place(path, "sha256:1")])
    assert disk_use(view) == DiskUse(200_000, taken(path), 0)
    assert duplicates(view) == []
    assert disk_use(EMPTY) == DiskUse(0, 0, 0)


def test_holes_take_nothing(tmp_path):
    with (tmp_path / "sparse.gguf").open("wb") as file:
        file.truncate(2**30)
    assert disk_use(build_view([place(tmp_path / "sparse.gguf", "sha256:1")])).on_disk_bytes < 2**20
