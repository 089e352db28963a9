"""Deleting a model: what is said before, what is refused, and that links are never followed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from app.models import removal, trash
from app.models.entry import ModelEntry
from app.models.library_words import LibraryError
from app.models.removal import Deletion, Ownership
from app.units import bytes_text

ROOT = Path(__file__).resolve().parents[3]
PATIENCE_S = 60


@pytest.fixture
def own(tmp_path):
    """Our models folder."""
    folder = tmp_path / "models"
    folder.mkdir()
    return folder


def write(path, size=10_000):
    path.write_bytes(os.urandom(size))
    return path


def disk_bytes(*paths):
    return sum(os.lstat(path).st_blocks * 512 for path in paths)


def entry(*parts, origin="folder", path=None, **fields):
    return ModelEntry("m:Q4_1", "m", path or parts[0], origin=origin, parts=parts, **fields)


def deleted(preview, trash=None):
    return removal.delete(preview, forever=trash is None, trash=trash)


# ------------------------------------------------------------------------------------------------------ freeing


def test_a_preview_says_what_comes_free_and_the_deletion_frees_it(own):
    parts = tuple(write(own / f"m-{number}.gguf") for number in range(3))
    kept = write(own / "other.gguf")
    preview = removal.preview(entry(*parts), Ownership(own))
    assert (preview.paths, preview.freed_bytes, preview.refusal) == (parts, disk_bytes(*parts), "")
    assert all(part.exists() for part in parts)
    assert deleted(preview).freed_bytes == preview.freed_bytes
    assert [file.name for file in own.iterdir()] == [kept.name]


def test_a_file_with_another_name_frees_nothing_and_with_both_names_it_does(own):
    one = write(own / "one.gguf")
    other = own / "other.gguf"
    other.hardlink_to(one)
    assert removal.preview(entry(one), Ownership(own)).freed_bytes == 0
    both = removal.preview(entry(one, other), Ownership(own))
    assert both.freed_bytes == disk_bytes(one)
    assert "nothing came free" in removal.deletion_words("m", deleted(removal.preview(entry(one), Ownership(own))))
    assert removal.preview(entry(other), Ownership(own)).freed_bytes == disk_bytes(other)


def test_holes_free_nothing(own):
    path = own / "sparse.gguf"
    with path.open("wb") as file:
        file.truncate(2**30)
    assert removal.preview(entry(path), Ownership(own)).freed_bytes == disk_bytes(path) < 2**20


@pytest.mark.parametrize("is_dangling", [False, True])
def test_a_link_is_removed_and_what_it_leads_to_is_not(own, tmp_path, is_dangling):
    target = tmp_path / "target.gguf"
    if not is_dangling:
        write(target)
    link = own / "link.gguf"
    link.symlink_to(target)
    trashed = []
    preview = removal.preview(entry(link), Ownership(own))
    assert (preview.freed_bytes, preview.uses_trash) == (disk_bytes(link), False)
    deleted(preview, trashed.append)
    assert (link.is_symlink(), target.exists(), trashed) == (False, not is_dangling, [])


# ----------------------------------------------------------------------------------------------------- refusals


@pytest.mark.parametrize("origin", ["starter", "added", "huggingface", "lm_studio", "ollama", "jan", "gpt4all"])
def test_what_is_not_ours_and_was_not_imported_is_never_deleted(own, origin):
    path = write(own / "m.gguf")
    preview = removal.preview(entry(path, origin=origin), Ownership(own))
    assert "belongs to another program or to Cutaway itself" in preview.refusal
    assert preview == Deletion((), 0, False, preview.refusal)
    with pytest.raises(LibraryError, match="belongs to another program"):
        deleted(preview)
    assert path.exists()


def test_an_imported_file_may_be_deleted_but_not_in_another_programs_folder(own, tmp_path):
    foreign = tmp_path / "studio"
    (foreign / "deep").mkdir(parents=True)
    (tmp_path / "way").symlink_to(foreign)
    mine = write(tmp_path / "mine.gguf")
    assert removal.preview(entry(mine, origin="imported"), Ownership(own, [foreign])).refusal == ""
    write(foreign / "deep" / "m.gguf")
    for way in (foreign, tmp_path / "way"):
        preview = removal.preview(entry(way / "deep" / "m.gguf", origin="imported"), Ownership(own, [foreign]))
        assert "lies in a folder of another program" in preview.refusal


def test_what_is_loaded_is_not_deleted_by_whatever_name_it_was_loaded(own, tmp_path):
    parts = tuple(write(own / f"m-{number}.gguf") for number in range(2))
    (tmp_path / "link.gguf").symlink_to(parts[1])
    for used in (parts[0], parts[1], tmp_path / "link.gguf"):
        assert removal.preview(entry(*parts), Ownership(own, in_use=[used])).refusal == (
            "m is loaded. Use another model first, then delete it."
        )


def test_parts_outside_the_models_own_folder_are_not_touched(own, tmp_path):
    inside, outside = write(own / "m.gguf"), write(tmp_path / "outside.gguf")
    (own / "way").symlink_to(tmp_path)
    for wrong in (
        entry(inside, outside),
        entry(outside),
        entry(own / "way" / "outside.gguf"),
        entry(own / ".." / "outside.gguf"),
        entry(inside, outside, path=inside, origin="imported"),
    ):
        assert "lie outside its folder" in removal.preview(wrong, Ownership(own)).refusal
    assert inside.exists()
    assert outside.exists()


def test_only_plain_files_are_deleted(own):
    (own / "folder.gguf").mkdir()
    os.mkfifo(own / "pipe.gguf")
    for name in ("folder.gguf", "pipe.gguf"):
        assert "not made of plain files" in removal.preview(entry(own / name), Ownership(own)).refusal
    assert "nothing to delete" in removal.preview(entry(own / "none.gguf"), Ownership(own)).refusal


def test_a_folder_of_safetensors_loses_its_parts_and_nothing_else(own):
    folder = own / "model"
    folder.mkdir()
    parts = tuple(write(folder / name) for name in ("config.json", "model.safetensors"))
    write(folder / "notes.txt")
    deleted(removal.preview(entry(*parts, path=folder, format="safetensors"), Ownership(own)))
    assert [file.name for file in folder.iterdir()] == ["notes.txt"]


# ----------------------------------------------------------------------------------------- what happens meanwhile


def change_size(path):
    path.write_bytes(b"longer now" * 2_000)


def exchange_for_a_link(path):
    path.rename(path.with_name("moved.gguf"))
    path.symlink_to(path.with_name("moved.gguf"))


@pytest.mark.parametrize("change", [change_size, exchange_for_a_link, Path.unlink])
def test_what_changed_since_the_preview_is_not_deleted(own, change):
    parts = tuple(write(own / f"m-{number}.gguf") for number in range(2))
    preview = removal.preview(entry(*parts), Ownership(own))
    change(parts[1])
    before = sorted(file.name for file in own.iterdir())
    with pytest.raises(LibraryError, match="changed since you were asked"):
        deleted(preview)
    assert sorted(file.name for file in own.iterdir()) == before


def test_a_failure_in_the_middle_says_what_is_left(own, monkeypatch):
    parts = tuple(write(own / f"m-{number}.gguf") for number in range(3))
    unlink = os.unlink

    def refuse_the_second(path, **named):
        if path == parts[1]:
            raise PermissionError(1, "Operation not permitted")
        unlink(path, **named)

    monkeypatch.setattr(removal.os, "unlink", refuse_the_second)
    with pytest.raises(LibraryError) as caught:
        deleted(removal.preview(entry(*parts), Ownership(own)))
    assert str(caught.value) == (
        "1 of 3 files was deleted, then the system refused: Operation not permitted. "
        f"Still there: {parts[1]}, {parts[2]}"
    )


def test_a_failure_at_once_changes_nothing(own):
    path = write(own / "m.gguf")

    def refuse(_path):
        raise OSError(30, "Read-only file system")

    with pytest.raises(LibraryError, match="could not be moved to the trash: Read-only file system"):
        removal.delete(removal.preview(entry(path), Ownership(own)), forever=False, trash=refuse)
    assert path.exists()


# --------------------------------------------------------------------------------------------------------- trash

# The trash's place is asked for once a process, so each case has its own.
IN_A_HOME = """
import json, sys
from pathlib import Path
from app.models import removal, trash
from app.models.entry import ModelEntry
path = Path(sys.argv[1])
model = ModelEntry("m:Q4_1", "m", path, origin="imported", parts=(path,))
preview = removal.preview(model, removal.Ownership(path.parent / "models"))
done = removal.delete(preview, forever=False)
print(json.dumps([preview.uses_trash, done.uses_trash, removal.deletion_words("m", done)]))
"""


def test_a_file_in_the_trash_can_be_restored_and_the_words_say_that_it_frees_nothing_yet(tmp_path):
    home = tmp_path / "home"
    home.mkdir()
    path = write(home / "my model é.gguf", 50_000)
    size = bytes_text(disk_bytes(path))
    content = path.read_bytes()
    environment = {**os.environ, "HOME": str(home), "XDG_DATA_HOME": str(home / "data")}
    run = subprocess.run(
        [sys.executable, "-c", IN_A_HOME, str(path)],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
        timeout=PATIENCE_S,
    )
    assert json.loads(run.stdout) == [True, True, f"m is in the trash; {size} come free when it is emptied."]
    (kept,) = (home / "data" / "Trash" / "files").iterdir()
    (info,) = (home / "data" / "Trash" / "info").iterdir()
    assert kept.read_bytes() == content
    assert "Path=" in info.read_text()
    assert not path.exists()


def test_without_a_writable_home_there_is_no_trash(own, monkeypatch):
    path = write(own / "m.gguf")
    monkeypatch.setattr(trash.os, "access", lambda *_arguments: False)
    preview = removal.preview(entry(path), Ownership(own))
    assert (preview.uses_trash, preview.refusal) == (False, "")
    trashed = []
    assert removal.delete(preview, forever=False, trash=trashed.append).uses_trash is False
    assert (trashed, path.exists()) == ([], False)


def test_on_another_disk_the_trash_is_at_its_top(own, monkeypatch):
    path = write(own / "m.gguf")
    monkeypatch.setattr(Path, "home", lambda: Path("/proc"))  # on another device than any file
    monkeypatch.setattr(trash, "_mount_point", lambda _path: own)
    assert trash.has_trash(path) is True
    monkeypatch.setattr(trash.os, "access", lambda *_arguments: False)
    assert trash.has_trash(path) is False


def test_the_words_say_what_was_done():
    size = bytes_text(98_365_440)
    done = Deletion((Path("/m"),), 98_365_440, True)
    assert removal.deletion_words("SmolLM2", done) == f"SmolLM2 is in the trash; {size} come free when it is emptied."
    gone = Deletion((Path("/m"),), 98_365_440, False)
    assert removal.deletion_words("SmolLM2", gone) == f"SmolLM2 is deleted; {size} are free again."
