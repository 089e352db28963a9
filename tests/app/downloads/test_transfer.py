"""One file on its way: resumed, tried again, checked, and under its name only when it is right; trust S-20 to S-27.

The faults of servers are gone through one by one in tests/end_to_end/test_download_faults.py.
"""

from __future__ import annotations

import threading

import pytest

from app.downloads.cache_layout import CacheLayout
from app.downloads.faults import DownloadError, DownloadFault
from app.downloads.sidecar import read_sidecar
from app.downloads.tools import StoppedError
from app.downloads.types import DownloadState, FileRef
from app.models.http_faults import RemoteFault
from tests.helpers.downloads import MIB, Fetch, Waits, file_of, final_names, sha256_of, tree_of
from tests.helpers.hub_files import Generated
from tests.helpers.hub_server import HubServer

REPO, NAME, SMALL, TOKEN = "ann/x-GGUF", "m.gguf", "config.json", "hf_secret"
SIZE = 3 * MIB + 5


@pytest.fixture
def hub():
    with HubServer() as server:
        server.add_repo(REPO, {NAME: Generated(SIZE, seed=8), SMALL: '{"a": 1}'}, card={"license": "mit"})
        server.add_token(TOKEN)
        yield server


def ref(hub, path=NAME, **changes):
    file = file_of(hub, REPO, path)
    return FileRef(**{name: getattr(file, name) for name in file.__struct_fields__} | changes)


def place(tmp_path, file):
    return CacheLayout(tmp_path).place(file)


def begin(hub, tmp_path, up_to=2 * MIB):
    """Leave a transfer unfinished at about this byte, as a paused one is."""
    stop = threading.Event()

    def pause(progress):
        if progress.have_bytes >= up_to:
            stop.set()

    begun = Fetch(hub, ref(hub), tmp_path, on_progress=pause, stop=stop)
    assert isinstance(begun.error, StoppedError)
    kept = place(tmp_path, ref(hub)).part.stat().st_size
    assert up_to <= kept < SIZE
    hub.requests.clear()
    return kept


# --------------------------------------------------------------------------------------------------- all well


def test_a_file_comes_in_one_piece_and_is_found_by_its_name(hub, tmp_path):
    done = Fetch(hub, ref(hub), tmp_path)
    assert done.path == place(tmp_path, ref(hub)).snapshot
    assert sha256_of(done.path) == ref(hub).sha256
    assert done.states() == ["running"]
    assert done.progress[-1].have_bytes == SIZE
    assert [path for path in tree_of(tmp_path) if "part" in path or "json" in path] == []


def test_a_small_file_is_checked_by_its_name_in_git(hub, tmp_path):
    # Files that are not in LFS have no SHA-256 at the hub.
    assert ref(hub, SMALL).sha256 == ""
    assert Fetch(hub, ref(hub, SMALL), tmp_path).path.read_text() == '{"a": 1}'
    hub.fault("flipped_bit", "resolve")
    hub.routes.repos[REPO].commit({SMALL: '{"a": 2}'})
    done = Fetch(hub, ref(hub, SMALL), tmp_path)
    assert done.error.kind is DownloadFault.WRONG_HASH


def test_an_empty_file_needs_no_request(hub, tmp_path):
    hub.routes.repos[REPO].commit({"empty.txt": ""})
    done = Fetch(hub, ref(hub, "empty.txt"), tmp_path)
    assert (done.path.read_bytes(), hub.requests) == (b"", [])


def test_a_name_with_spaces_and_other_letters_is_asked_for_and_kept(hub, tmp_path):
    name = "tief/Modell #1 ü %41.gguf"
    hub.routes.repos[REPO].commit({name: Generated(1000, seed=1)})
    assert Fetch(hub, ref(hub, name), tmp_path).path.name == "Modell #1 ü %41.gguf"


def test_a_pinned_commit_gives_the_old_bytes(hub, tmp_path):
    old = ref(hub)
    hub.routes.repos[REPO].commit({NAME: Generated(SIZE, seed=9)})
    assert sha256_of(Fetch(hub, old, tmp_path).path) == old.sha256
    assert sha256_of(Fetch(hub, ref(hub), tmp_path).path) == ref(hub).sha256 != old.sha256


# ----------------------------------------------------------------------------------------------------- resumed


def test_a_paused_file_goes_on_where_it_stopped(hub, tmp_path):
    kept = begin(hub, tmp_path)
    done = Fetch(hub, ref(hub), tmp_path)
    assert hub.seen("cdn")[0].range == f"bytes={kept}-"
    assert hub.seen("cdn")[0].headers["if-range"].startswith('"')
    assert done.states() == ["verifying", "running"]
    assert done.progress[0].have_bytes == kept
    assert done.progress[0].checked_bytes <= kept
    assert done.steps_back() == []
    assert sha256_of(done.path) == ref(hub).sha256


def test_a_complete_part_is_checked_and_needs_no_request(hub, tmp_path):
    begin(hub, tmp_path)
    where = place(tmp_path, ref(hub))
    Fetch(hub, ref(hub), tmp_path)
    data = where.blob.read_bytes()
    where.blob.unlink()
    where.snapshot.unlink()
    begin(hub, tmp_path)
    where.part.write_bytes(data)
    note = where.sidecar.read_bytes()
    flushed = str(read_sidecar(where.sidecar).flushed_bytes).encode()
    where.sidecar.write_bytes(note.replace(b'"flushed_bytes":' + flushed, b'"flushed_bytes":%d' % SIZE))
    assert sha256_of(Fetch(hub, ref(hub), tmp_path).path) == ref(hub).sha256
    assert hub.requests == []


def test_the_same_bytes_of_another_commit_are_resumed_too(hub, tmp_path):
    kept = begin(hub, tmp_path)
    hub.routes.repos[REPO].commit({"README.md": "news"})
    assert Fetch(hub, ref(hub), tmp_path).error is None
    assert hub.seen("cdn")[0].range == f"bytes={kept}-"


def test_a_version_without_an_etag_is_resumed_and_checked_at_the_end(hub, tmp_path):
    begin(hub, tmp_path)
    where = place(tmp_path, ref(hub))
    version = read_sidecar(where.sidecar).version
    where.sidecar.write_bytes(where.sidecar.read_bytes().replace(version.replace('"', '\\"').encode(), b""))
    done = Fetch(hub, ref(hub), tmp_path)
    assert "if-range" not in hub.seen("cdn")[0].headers
    assert sha256_of(done.path) == ref(hub).sha256


def test_nothing_old_is_kept_where_nothing_could_tell_that_it_belongs(hub, tmp_path):
    nameless = ref(hub, sha256="", etag="f" * 32)
    with pytest.raises(DownloadError):  # such a file has no place in the cache at all
        place(tmp_path, nameless)


def test_reconnecting_within_a_run_loses_no_byte(hub, tmp_path):
    hub.fault("reset_in_body", "cdn", times=1, value=MIB)
    hub.fault("short_body", "cdn", times=1, value=2 * MIB)
    waits = Waits()
    done = Fetch(hub, ref(hub), tmp_path, wait=waits)
    assert sha256_of(done.path) == ref(hub).sha256
    assert hub.repeated(f"{REPO}/{NAME}") == []
    assert waits.seconds == [1, 1]  # new bytes came in between
    assert done.states() == ["running", "waiting", "running", "waiting", "running"]
    assert done.steps_back() == []


def test_each_try_gets_a_new_address_from_the_hub(hub, tmp_path):
    hub.fault("reset_in_body", "cdn", times=1, value=MIB)

    def expire(progress):
        if progress.state is DownloadState.WAITING:
            hub.expire_links()

    assert Fetch(hub, ref(hub), tmp_path, on_progress=expire).error is None
    assert [one.area for one in hub.requests] == ["resolve", "cdn", "resolve", "cdn"]


def test_the_wait_that_a_server_asks_for_is_kept_and_told(hub, tmp_path):
    hub.fault("http_429_seconds", "cdn", times=1, value=70)
    waits = Waits()
    done = Fetch(hub, ref(hub), tmp_path, wait=waits, now=lambda: 1000.0)
    assert waits.seconds == [70]
    (waiting,) = [one for one in done.progress if one.state is DownloadState.WAITING]
    assert waiting.retry_at == 1070.0
    assert waiting.words.hint == "The server asks to wait 70 seconds."


def test_a_server_that_asks_for_hours_ends_the_download(hub, tmp_path):
    hub.fault("http_429_seconds", "cdn", value=7200)
    waits = Waits()
    done = Fetch(hub, ref(hub), tmp_path, wait=waits)
    assert (done.error.kind, done.error.action, waits.seconds) == (RemoteFault.BUSY, "retry", [])
    assert "7,200 seconds" in done.error.words.hint


def test_a_file_that_becomes_another_one_again_and_again_is_given_up(hub, tmp_path):
    # Another ETag with every answer, and never a whole file.
    hub.fault("reset_in_body", "cdn", value=MIB)
    marks = iter(range(1000))
    plain = hub.routes.answer

    def answer(request):
        given = plain(request)
        if given.is_file:
            given.etag = given.headers["ETag"] = f'"{next(marks)}"'
        return given

    hub.routes.answer = answer
    done = Fetch(hub, ref(hub), tmp_path)
    assert done.error.kind is RemoteFault.CHANGED
    assert all(one.words is not None for one in done.steps_back())


# ------------------------------------------------------------------------------------------------ being stopped


def test_a_stop_while_waiting_and_while_checking_is_answered(hub, tmp_path):
    hub.fault("http_503", "cdn")
    stop = threading.Event()

    def stop_when(state):
        return lambda progress: stop.set() if progress.state is state else None

    done = Fetch(hub, ref(hub), tmp_path, on_progress=stop_when(DownloadState.WAITING), stop=stop)
    assert isinstance(done.error, StoppedError)
    hub.clear_faults()
    stop.clear()
    begin(hub, tmp_path)
    done = Fetch(hub, ref(hub), tmp_path, on_progress=stop_when(DownloadState.VERIFYING), stop=stop)
    assert isinstance(done.error, StoppedError)
    assert hub.requests == []


def test_a_pause_keeps_every_byte_that_came(hub, tmp_path):
    kept = begin(hub, tmp_path)
    assert read_sidecar(place(tmp_path, ref(hub)).sidecar).flushed_bytes == kept


# -------------------------------------------------------------------------------------------- what is here already


def test_a_copy_of_another_program_is_checked_and_used(hub, tmp_path):
    # S-20: huggingface_hub takes a file of the right size for a sound one.
    where = place(tmp_path, ref(hub))
    where.blob.parent.mkdir(parents=True)
    where.blob.write_bytes(Generated(SIZE, seed=8).part(0, SIZE))
    done = Fetch(hub, ref(hub), tmp_path)
    assert done.path == where.snapshot
    assert done.states() == ["verifying"]
    assert hub.requests == []


def test_a_damaged_copy_is_fetched_again(hub, tmp_path):
    where = place(tmp_path, ref(hub))
    where.blob.parent.mkdir(parents=True)
    where.blob.write_bytes(b"GGUF" + bytes(SIZE - 4))
    done = Fetch(hub, ref(hub), tmp_path)
    assert sha256_of(done.path) == ref(hub).sha256
    assert "damaged" in done.steps_back()[0].words.message


# ------------------------------------------------------------------------------------------------------- damage


def test_a_file_that_is_wrong_twice_leaves_nothing_behind(hub, tmp_path):
    fault = hub.fault("flipped_bit", "cdn")
    done = Fetch(hub, ref(hub), tmp_path)
    assert (done.error.kind, done.error.action, fault.used) == (DownloadFault.WRONG_HASH, "retry", 2)
    assert final_names(tmp_path) == []
    assert [
        path for path, kind in tree_of(tmp_path).items() if kind.startswith("file of") and ".locks" not in path
    ] == []


def test_a_file_that_does_not_begin_as_a_model_is_noticed_at_once(hub, tmp_path):
    hub.routes.repos[REPO].commit({"fake.gguf": Generated(SIZE, head=b"<!DOCTYPE html>")})
    done = Fetch(hub, ref(hub, "fake.gguf"), tmp_path)
    assert done.error.kind is DownloadFault.NO_MODEL
    assert max(one.have_bytes for one in done.progress) < SIZE  # not after the last byte
    assert final_names(tmp_path) == []


def test_a_listing_that_lies_about_the_hash_is_believed_over_the_bytes(hub, tmp_path):
    done = Fetch(hub, ref(hub, sha256="e" * 64, etag="e" * 64), tmp_path)
    assert done.error.kind is DownloadFault.WRONG_HASH


@pytest.mark.parametrize("off", [-1000, 1000])
def test_a_listing_that_lies_about_the_size_is_noticed_before_the_first_byte(hub, tmp_path, off):
    done = Fetch(hub, ref(hub, size_bytes=SIZE + off), tmp_path)
    assert done.error.kind is DownloadFault.WRONG_SIZE
    assert max(one.have_bytes for one in done.progress) == 0
    message = done.error.words.message.replace("\u00a0", " ")
    assert message.endswith("3.00 MiB in place of 3.00 MiB.")


def test_a_body_without_a_length_that_never_ends_is_cut(hub, tmp_path):
    hub.fault("no_length", "cdn")
    done = Fetch(hub, ref(hub, size_bytes=MIB), tmp_path)
    assert done.error.kind is DownloadFault.WRONG_SIZE
    assert place(tmp_path, ref(hub)).part.stat().st_size <= MIB


# -------------------------------------------------------------------------------------------------------- secrets


def test_a_gated_file_comes_with_the_token_which_nothing_on_the_disk_holds(hub, tmp_path, caplog):
    caplog.set_level("DEBUG")
    hub.routes.repos[REPO].gated = "auto"
    refused = Fetch(hub, ref(hub), tmp_path)
    assert (refused.error.kind, refused.error.action) == (RemoteFault.GATED, "token")
    hub.routes.people[TOKEN].repos.add(REPO)
    stop = threading.Event()

    def pause(progress):
        if progress.have_bytes > MIB:
            stop.set()

    Fetch(hub, ref(hub), tmp_path, token=TOKEN, on_progress=pause, stop=stop)
    texts = [path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()]
    assert len(texts) >= 3
    assert Fetch(hub, ref(hub), tmp_path, token=TOKEN).error is None
    texts += [path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()]
    secret = TOKEN.encode()
    signed = b"Expires="  # of the CDN's addresses
    assert not [text for text in texts if secret in text or signed in text]
    assert TOKEN not in caplog.text
    assert "Expires=" not in caplog.text
    assert hub.leaked_tokens() == []
