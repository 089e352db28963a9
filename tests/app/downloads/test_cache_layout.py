"""Files lie where huggingface_hub looks for them, and nothing ever lies elsewhere; trust S-24, S-25, field report 8."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from pathlib import Path, PureWindowsPath

import pytest

from app.downloads import cache_layout
from app.downloads.cache_layout import CacheLayout, discard_part, extended, sidecar_path
from app.downloads.faults import DownloadError, DownloadFault
from app.downloads.types import FileRef
from tests.helpers.downloads import tree_of
from tests.helpers.hub_files import HOSTILE_NAMES

COMMIT, OTHER_COMMIT, SHA = "1" * 40, "2" * 40, "a" * 64


def file(path="m.gguf", revision=COMMIT, repo="ann/x-GGUF", sha256=SHA, size_bytes=4):
    return FileRef("https://hub.example", repo, revision, path, size_bytes, sha256, sha256)


def put(layout, ref, data=b"GGUF"):
    """Bring a file to its place as a finished transfer does."""
    place = layout.place(ref)
    layout.prepare(place)
    place.part.write_bytes(data)
    sidecar_path(place.part).write_bytes(b"{}")
    return layout.publish(place, place.part)


@pytest.fixture
def layout(tmp_path):
    return CacheLayout(tmp_path / "hub")


def test_a_file_lies_where_the_hub_s_own_cache_has_it(layout, tmp_path):
    found = put(layout, file("deep/m.gguf"))
    assert found == tmp_path / "hub" / "models--ann--x-GGUF" / "snapshots" / COMMIT / "deep" / "m.gguf"
    assert str(found.readlink()) == f"../../../blobs/{SHA}"
    assert found.read_bytes() == b"GGUF"
    assert sorted(path.name for path in (tmp_path / "hub" / "models--ann--x-GGUF" / "blobs").iterdir()) == [SHA]


def test_two_commits_share_the_bytes(layout, tmp_path):
    first, place = put(layout, file()), layout.place(file(revision=OTHER_COMMIT))
    layout.prepare(place)
    assert layout.present(place, 4) == place.blob
    second = layout.publish(place, place.blob)
    assert first.stat().st_ino == second.stat().st_ino


def ask_the_hub(code, cache):
    """Run huggingface_hub in a process of its own, offline, on this cache."""
    environment = os.environ | {"HF_HUB_CACHE": str(cache), "HF_HUB_OFFLINE": "1", "HF_HUB_DISABLE_TELEMETRY": "1"}
    result = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], env=environment, capture_output=True, text=True, check=True
    )
    return json.loads(result.stdout)


@pytest.mark.parametrize("has_links", [True, False])
def test_an_unmodified_huggingface_hub_finds_the_files(layout, monkeypatch, has_links):
    if not has_links:
        monkeypatch.setattr(Path, "symlink_to", lambda *_arguments: (_ for _ in ()).throw(OSError(1314, "no right")))
    found = put(layout, file("deep/m.gguf"))
    layout.set_branch(file(), "main")
    layout.prepare(layout.place(file("begun.gguf", sha256="b" * 64)))
    layout.place(file("begun.gguf", sha256="b" * 64)).part.write_bytes(b"GG")
    code = """
import json
from huggingface_hub import hf_hub_download, scan_cache_dir, try_to_load_from_cache
name = "ann/x-GGUF", "deep/m.gguf"
scan = scan_cache_dir()
print(json.dumps([
    hf_hub_download(*name, local_files_only=True),
    hf_hub_download(*name, revision="1" * 40, local_files_only=True),
    try_to_load_from_cache(*name),
    [str(warning) for warning in scan.warnings],
    [[one.repo_id, [[r.commit_hash, sorted(r.refs), [f.file_name for f in r.files]] for r in one.revisions]]
     for one in scan.repos],
]))"""
    scanned = [["ann/x-GGUF", [[COMMIT, ["main"], ["m.gguf"]]]]]
    assert ask_the_hub(code, layout.root) == [str(found), str(found), str(found), [], scanned]


def test_where_links_are_impossible_the_file_itself_is_moved(layout, tmp_path, monkeypatch):
    # Field report 8: on Windows without its developer mode the disk holds the bytes once, and the file opens.
    monkeypatch.setattr(Path, "symlink_to", lambda *_arguments: (_ for _ in ()).throw(NotImplementedError()))
    found = put(layout, file())
    assert not found.is_symlink()
    assert found.read_bytes() == b"GGUF"
    assert [kind for kind in tree_of(tmp_path).values() if kind == "file of 4"] == ["file of 4"]
    place = layout.place(file())
    assert layout.present(place, 4) == found
    assert layout.publish(place, found) == found


def test_a_link_that_a_killed_program_left_half_made_is_replaced(layout):
    place = layout.place(file())
    layout.prepare(place)
    (place.snapshot.parent / f".{SHA[:32]}.link").symlink_to("elsewhere")
    found = put(layout, file())
    assert [path.name for path in found.parent.iterdir()] == ["m.gguf"]


def test_a_file_of_another_size_is_not_taken_for_it(layout):
    put(layout, file())
    assert layout.present(layout.place(file()), 5) is None


def test_a_branch_is_kept_and_read(layout):
    put(layout, file())
    layout.set_branch(file(), "main")
    layout.set_branch(file(), "refs/pr/1")
    assert layout.branch_commit("ann/x-GGUF") == COMMIT
    assert layout.branch_commit("ann/x-GGUF", "refs/pr/1") == COMMIT
    assert layout.branch_commit("ann/other") == ""
    layout.set_branch(file(revision=OTHER_COMMIT), "main")
    assert layout.branch_commit("ann/x-GGUF") == OTHER_COMMIT


def test_the_repo_s_folder_is_never_left_by_a_hostile_name(layout, tmp_path):
    for number, name in enumerate(HOSTILE_NAMES):
        with contextlib.suppress(DownloadError):
            put(layout, file(name, sha256=f"{number:064x}"))
    inside = f"hub/models--ann--x-GGUF/snapshots/{COMMIT}/"
    links = {path: kind for path, kind in tree_of(tmp_path).items() if kind == "link"}
    assert set(links) == {
        inside + name for name in ("café.gguf", "Twin.gguf", "-rf.gguf", "~/home.gguf", "$HOME/%TEMP%.gguf")
    }
    outside = [path for path in tree_of(tmp_path) if not path.startswith(("hub/models--ann--x-GGUF", "hub/.locks"))]
    assert outside == ["hub"]


@pytest.mark.parametrize(
    "bad",
    [file(repo="../x"), file(revision="main"), file(sha256=""), file(sha256="../../x")],
    ids=["repo", "revision", "nameless", "etag"],
)
def test_what_would_be_a_bad_path_is_refused_before_the_disk_is_touched(layout, tmp_path, bad):
    with pytest.raises(DownloadError):
        layout.place(bad)
    assert tree_of(tmp_path) == {}


def test_a_name_that_differs_in_case_alone_is_refused_beside_the_other(layout):
    put(layout, file("Model.gguf"))
    with pytest.raises(DownloadError) as caught:
        layout.prepare(layout.place(file("model.gguf", sha256="b" * 64)))
    assert caught.value.kind is DownloadFault.TWIN_NAME


# ------------------------------------------------------------------------------------------------- links


@pytest.mark.parametrize("inside", ["", "blobs", "snapshots", f"snapshots/{COMMIT}", f"snapshots/{COMMIT}/deep"])
def test_a_folder_that_leads_out_of_the_cache_is_refused(layout, tmp_path, inside):
    outside = tmp_path / "outside"
    outside.mkdir()
    link = tmp_path / "hub" / "models--ann--x-GGUF" / inside
    link.parent.mkdir(parents=True, exist_ok=True)
    link.symlink_to(outside)
    with pytest.raises(DownloadError) as caught:
        put(layout, file("deep/m.gguf"))
    assert caught.value.kind is DownloadFault.LINK
    assert tree_of(outside) == {}


def test_the_locks_and_the_branches_are_no_way_out_either(layout, tmp_path):
    outside = tmp_path / "outside"
    outside.mkdir()
    (tmp_path / "hub").mkdir()
    (tmp_path / "hub" / ".locks").symlink_to(outside)
    with pytest.raises(DownloadError):
        layout.prepare(layout.place(file()))
    (tmp_path / "hub" / ".locks").unlink()
    put(layout, file())
    (tmp_path / "hub" / "models--ann--x-GGUF" / "refs").symlink_to(outside)
    with pytest.raises(DownloadError):
        layout.set_branch(file(), "main")
    assert tree_of(outside) == {}


def test_a_link_in_place_of_a_branch_is_replaced_and_its_target_is_not(layout, tmp_path):
    put(layout, file())
    target = tmp_path / "target"
    target.write_bytes(b"precious")
    (layout.place(file()).repo_folder / "refs").mkdir()
    (layout.place(file()).repo_folder / "refs" / "main").symlink_to(target)
    layout.set_branch(file(), "main")
    assert target.read_bytes() == b"precious"
    assert layout.branch_commit("ann/x-GGUF") == COMMIT


def test_a_link_within_the_cache_and_a_cache_behind_a_link_are_used(tmp_path):
    (tmp_path / "disk").mkdir()
    (tmp_path / "hub").symlink_to(tmp_path / "disk")
    assert put(CacheLayout(tmp_path / "hub"), file()) == (
        tmp_path / "disk" / "models--ann--x-GGUF" / "snapshots" / COMMIT / "m.gguf"
    )


def test_a_blob_that_leads_out_of_the_cache_is_neither_taken_nor_written_through(layout, tmp_path):
    target = tmp_path / "target"
    target.write_bytes(b"GGUF")
    place = layout.place(file())
    layout.prepare(place)
    place.blob.symlink_to(target)
    assert layout.present(place, 4) is None
    put(layout, file(), b"GGU2")
    assert target.read_bytes() == b"GGUF"
    assert place.snapshot.read_bytes() == b"GGU2"


def test_deleting_what_is_unfinished_deletes_links_and_not_their_targets(layout, tmp_path):
    target = tmp_path / "target"
    target.write_bytes(b"precious")
    place = layout.place(file())
    layout.prepare(place)
    place.part.symlink_to(target)
    place.sidecar.symlink_to(target)
    discard_part(place.part)
    discard_part(place.part)
    assert target.read_bytes() == b"precious"
    assert list(place.part.parent.iterdir()) == []


def test_unfinished_files_are_found_without_following_links(layout, tmp_path):
    place = layout.place(file())
    layout.prepare(place)
    place.part.write_bytes(b"x")
    outside = tmp_path / "outside" / "blobs"
    outside.mkdir(parents=True)
    (outside / f"{SHA}.part").write_bytes(b"x")
    (layout.root / "models--out--side").symlink_to(outside.parent)
    place.part.with_name("link.part").symlink_to(place.part)
    (layout.root / "other").mkdir()
    assert list(layout.parts()) == [place.part]
    assert list(CacheLayout(tmp_path / "none").parts()) == []


# ----------------------------------------------------------------------------------------------- long paths


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("C:\\Users\\ann\\hub", "\\\\?\\C:\\Users\\ann\\hub"),
        ("\\\\host\\share\\hub", "\\\\?\\UNC\\host\\share\\hub"),
        ("\\\\?\\C:\\hub", "\\\\?\\C:\\hub"),
    ],
)
def test_windows_is_given_long_paths_in_the_form_that_it_takes(path, expected, monkeypatch):
    monkeypatch.setattr(cache_layout, "Path", PureWindowsPath)
    assert str(extended(PureWindowsPath(path))) == expected


def test_a_long_base_path_is_no_hindrance(tmp_path):
    base = tmp_path / ("long" * 30) / ("path" * 30)
    assert put(CacheLayout(base), file()).read_bytes() == b"GGUF"
    assert len(str(base)) > 240
