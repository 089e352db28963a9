"""The list of downloads: turns, pauses, restarts, two programs at once; trust S-26, S-27, field reports 1, 4 to 7."""

from __future__ import annotations

import threading

import pytest

from app.downloads.cache_layout import CacheLayout
from app.downloads.faults import DownloadError
from app.downloads.fetched import FetchedRecord
from app.downloads.queue import DownloadQueue
from app.downloads.transfer import FileTransfer
from app.downloads.types import ACTIVE_STATES, DownloadState
from tests.helpers.downloads import MIB, QueueWatch, clients_of, file_of, final_names, sha256_of, tree_of
from tests.helpers.hub_files import Generated
from tests.helpers.hub_server import HubServer

REPO, TOKEN = "ann/x-GGUF", "hf_secret"
NAMES = tuple(f"m{number}.gguf" for number in range(5))
SIZE = 2 * MIB
SILENCE_S = 30.0  # what the queue gives a server


@pytest.fixture
def hub():
    with HubServer() as server:
        files = {name: Generated(SIZE, seed=number) for number, name in enumerate(NAMES)}
        server.add_repo(REPO, {**files, "config.json": "{}"}, card={"license": "mit"})
        server.add_token(TOKEN)
        yield server


@pytest.fixture
def watch(hub, tmp_path):
    with QueueWatch(hub, tmp_path) as made:
        yield made


def ref(hub, name=NAMES[0]):
    return file_of(hub, REPO, name)


def add(hub, watch, *names):
    return watch.queue.add(" + ".join(names), [ref(hub, name) for name in names]).download_id


def hold(hub, name=NAMES[0], value=MIB):
    """Let a file come up to a place and no further."""
    return hub.fault("stall_in_body", f"cdn:*{name}", value=value)


def has(count):
    return lambda one: one.done_bytes >= count


# --------------------------------------------------------------------------------------------------- all well


def test_files_that_belong_together_are_one_download(hub, watch, tmp_path):
    done = watch.ended(add(hub, watch, NAMES[0], NAMES[1], "config.json"))
    assert (done.state, done.words, done.action) == (DownloadState.DONE, None, "")
    assert (done.done_bytes, done.total_bytes) == (2 * SIZE + 2, 2 * SIZE + 2)
    assert done.path.name == NAMES[0]
    assert sha256_of(done.path) == ref(hub).sha256
    assert final_names(tmp_path / "hub") == ["config.json", NAMES[0], NAMES[1]]
    assert CacheLayout(tmp_path / "hub").branch_commit(REPO) == ref(hub).revision


def test_progress_never_goes_back_and_the_last_word_is_the_newest(hub, watch):
    # Field report 6.
    for name in NAMES:
        hub.fault("reset_in_body", f"cdn:*{name}", times=1, value=MIB)
    ids = [add(hub, watch, name) for name in NAMES[:2]]
    for download_id in ids:
        watch.ended(download_id)
    for download_id in ids:
        told = [one for one in watch.told if one.download_id == download_id]
        counts = [one.done_bytes for one in told]
        assert counts == sorted(counts)
        assert told[-1].state is DownloadState.DONE
        assert {one.state for one in told} >= {DownloadState.RUNNING, DownloadState.WAITING}


def test_an_older_commit_moves_no_branch(hub, watch, tmp_path):
    watch.ended(watch.queue.add("old", [ref(hub)], branch="").download_id)
    assert CacheLayout(tmp_path / "hub").branch_commit(REPO) == ""


def test_at_most_two_run_at_a_time_and_all_have_their_turn(hub, watch):
    hub.fault("throttle", "cdn", value=30_000_000)
    ids = [add(hub, watch, name) for name in NAMES]
    assert [watch.now(one).state in ACTIVE_STATES for one in ids] == [True] * 5
    assert [watch.ended(one).state for one in ids] == [DownloadState.DONE] * 5
    states = dict.fromkeys(ids, DownloadState.QUEUED)
    for told in watch.told:
        states[told.download_id] = told.state
        assert sum(state in ACTIVE_STATES and state is not DownloadState.QUEUED for state in states.values()) <= 2


# --------------------------------------------------------------------------------------------------- asked twice


def test_a_second_request_joins_the_first(hub, watch):
    # S-27, field report 7.
    fault = hold(hub)
    first = add(hub, watch, NAMES[0])
    watch.wait(first, has(MIB - 300_000))
    assert add(hub, watch, NAMES[0]) == first
    assert len(watch.queue.downloads()) == 1
    assert fault.used == 1
    queued = [add(hub, watch, name) for name in (NAMES[1], NAMES[2], NAMES[2])]
    assert queued[1] == queued[2]


def test_what_is_done_already_is_done_at_once_unless_it_is_gone(hub, watch):
    download_id = add(hub, watch, NAMES[0])
    done = watch.ended(download_id)
    hub.requests.clear()
    again = watch.queue.add("again", [ref(hub)])
    assert (again.download_id, again.state, hub.requests) == (download_id, DownloadState.DONE, [])
    done.path.resolve().unlink()
    assert watch.queue.add("again", [ref(hub)]).state in ACTIVE_STATES
    assert watch.ended(download_id).state is DownloadState.DONE
    assert done.path.exists()


def test_a_paused_one_goes_on_when_it_is_asked_for_again(hub, watch):
    hold(hub)
    download_id = add(hub, watch, NAMES[0])
    watch.wait(download_id, has(MIB - 300_000))
    watch.queue.pause(download_id)
    hub.clear_faults()
    assert add(hub, watch, NAMES[0]) == download_id
    assert watch.ended(download_id).state is DownloadState.DONE


def test_a_file_that_two_downloads_need_is_fetched_once(hub, watch):
    hub.fault("throttle", "cdn", value=20_000_000)
    first = add(hub, watch, NAMES[0], "config.json")
    second = add(hub, watch, NAMES[1], NAMES[0])
    assert [watch.ended(one).state for one in (first, second)] == [DownloadState.DONE] * 2
    assert [start for start, _end in hub.sent(f"{REPO}/{NAMES[0]}")].count(0) == 1


def test_names_that_may_be_no_paths_are_refused_before_anything_is_asked(hub, watch, tmp_path):
    bad = [ref(hub), file_of(hub, REPO, "config.json")]
    bad = [bad[0], type(bad[1])(**{**{n: getattr(bad[1], n) for n in bad[1].__struct_fields__}, "path": "../x"})]
    with pytest.raises(DownloadError, match="cannot be downloaded"):
        watch.queue.add("bad", bad)
    assert watch.queue.downloads() == []
    assert hub.requests == []


# --------------------------------------------------------------------------------------------- pause and cancel


@pytest.mark.parametrize("kind", ["stall_before_headers", "stall_in_body"])
def test_a_pause_is_answered_at_once_and_goes_on_from_there(hub, watch, kind):
    hub.fault(kind, "cdn", value=MIB if kind == "stall_in_body" else None)
    download_id = add(hub, watch, NAMES[0])
    watch.wait(download_id, lambda one: bool(hub.seen("cdn")) and one.state is DownloadState.RUNNING)
    watch.queue.pause(download_id)  # does not wait for the transfer
    paused = watch.now(download_id)
    assert (paused.state, paused.action, paused.speed_bytes_per_s) == (DownloadState.PAUSED, "resume", None)
    hub.clear_faults()
    watch.queue.resume(download_id)
    done = watch.ended(download_id)
    assert done.state is DownloadState.DONE
    assert hub.repeated(f"{REPO}/{NAMES[0]}") == []
    watch.queue.pause(download_id)  # nothing to pause any more
    assert watch.now(download_id).state is DownloadState.DONE


def test_a_pause_makes_room_for_the_next(hub, watch):
    for name in NAMES[:2]:
        hold(hub, name)
    ids = [add(hub, watch, name) for name in NAMES[:3]]
    assert watch.now(ids[2]).state is DownloadState.QUEUED
    watch.queue.pause(ids[0])
    assert watch.ended(ids[2]).state is DownloadState.DONE


def test_pausing_and_resuming_in_a_hurry_runs_one_transfer_at_a_time(hub, watch):
    hub.fault("throttle", "cdn", value=10_000_000)
    download_id = add(hub, watch, NAMES[0])
    for _time in range(20):
        watch.queue.pause(download_id)
        watch.queue.resume(download_id)
    assert watch.ended(download_id).state is DownloadState.DONE


def test_cancelling_deletes_what_is_here_or_leaves_it(hub, watch, tmp_path):
    for name in NAMES[:2]:
        hold(hub, name)
    gone, kept = (add(hub, watch, name) for name in NAMES[:2])
    for download_id in (gone, kept):
        watch.wait(download_id, has(MIB - 300_000))
    watch.queue.cancel(gone, delete_part=True)
    watch.queue.cancel(kept, delete_part=False)
    assert [watch.now(one).state for one in (gone, kept)] == [DownloadState.CANCELLED] * 2
    hub.clear_faults()
    watch.close()
    parts = [path for path in tree_of(tmp_path) if path.endswith(".part")]
    assert parts == [f"hub/models--ann--x-GGUF/blobs/{ref(hub, NAMES[1]).sha256}.part"]
    with QueueWatch(hub, tmp_path) as later:
        assert later.queue.downloads() == []
        (left,) = later.queue.find_leftovers()
        assert (left.is_leftover, left.state) == (True, DownloadState.PAUSED)
        assert later.queue.find_leftovers() == []
        later.queue.resume(left.download_id)
        assert later.ended(left.download_id).state is DownloadState.DONE
    assert final_names(tmp_path / "hub") == [NAMES[1]]


def test_a_leftover_can_be_deleted(hub, watch, tmp_path):
    hold(hub)
    download_id = add(hub, watch, NAMES[0])
    watch.wait(download_id, has(MIB - 300_000))
    watch.queue.remove(download_id)
    assert watch.queue.downloads() == []
    watch.close()
    with QueueWatch(hub, tmp_path) as later:
        (left,) = later.queue.find_leftovers()
        later.queue.cancel(left.download_id, delete_part=True)
        assert later.now(left.download_id).state is DownloadState.CANCELLED
    assert [path for path in tree_of(tmp_path) if ".part" in path] == []


def test_what_was_cancelled_and_kept_can_be_deleted_later(hub, watch, tmp_path):
    hold(hub)
    download_id = add(hub, watch, NAMES[0])
    watch.wait(download_id, has(MIB - 300_000))
    watch.queue.pause(download_id)
    watch.wait(download_id, lambda _one: not watch.queue._threads)
    watch.queue.cancel(download_id, delete_part=False)
    assert watch.now(download_id).done_bytes > 0
    assert (tmp_path / f"hub/models--ann--x-GGUF/blobs/{ref(hub).sha256}.part").exists()
    watch.queue.cancel(download_id, delete_part=True)
    assert watch.now(download_id).done_bytes == 0
    watch.close()
    assert [path for path in tree_of(tmp_path) if ".part" in path] == []


def test_one_that_waits_is_tried_at_once_when_a_person_says_so(hub, watch):
    hub.fault("http_429_seconds", f"cdn:*{NAMES[0]}", times=1, value=500)
    download_id = add(hub, watch, NAMES[0])
    waiting = watch.wait(download_id, lambda one: one.state is DownloadState.WAITING)
    assert waiting.retry_at is not None
    watch.queue.try_now("nobody")
    watch.queue.try_now(download_id)
    assert watch.ended(download_id).state is DownloadState.DONE
    watch.queue.try_now(download_id)


def test_one_that_waits_can_be_paused_and_goes_on(hub, watch):
    hub.fault("http_429_seconds", f"cdn:*{NAMES[0]}", times=1, value=500)
    download_id = add(hub, watch, NAMES[0])
    watch.wait(download_id, lambda one: one.state is DownloadState.WAITING)
    watch.queue.pause(download_id)
    assert watch.now(download_id).state is DownloadState.PAUSED
    watch.queue.resume(download_id)
    assert watch.ended(download_id).state is DownloadState.DONE


def test_what_came_is_noted_as_ours_and_what_was_there_is_not(hub, watch, tmp_path):
    record = FetchedRecord(tmp_path / "data")
    watch.ended(add(hub, watch, NAMES[0], "config.json"))
    (model,) = record.models()
    assert (model.title, model.branch) == (f"{NAMES[0]} + config.json", "main")
    assert [(one.file, one.has_bytes, one.has_name) for one in model.files] == [
        (ref(hub), True, True),
        (ref(hub, "config.json"), True, True),
    ]
    (tmp_path / "data" / "fetched.json").unlink()
    watch.ended(watch.queue.add("again", [ref(hub), ref(hub, NAMES[1])]).download_id)
    assert [(one.has_bytes, one.has_name) for one in record.models()[0].files] == [(False, False), (True, True)]


def test_what_was_deleted_since_leaves_the_list(hub, watch):
    gone, kept = (watch.ended(add(hub, watch, name)) for name in NAMES[:2])
    assert watch.queue.forget_missing() == []
    gone.path.unlink()
    assert watch.queue.forget_missing() == [gone.download_id]
    assert [one.download_id for one in watch.queue.downloads()] == [kept.download_id]


def test_a_cancelled_one_can_be_asked_for_again_and_an_unknown_one_is_nobody(hub, watch):
    hold(hub)
    download_id = add(hub, watch, NAMES[0])
    watch.queue.cancel(download_id, delete_part=True)
    watch.queue.cancel(download_id, delete_part=True)
    hub.clear_faults()
    watch.queue.resume(download_id)
    assert watch.ended(download_id).state is DownloadState.DONE
    for call in (watch.queue.pause, watch.queue.resume, watch.queue.retry, watch.queue.remove):
        call("nobody")
    watch.queue.cancel("nobody", delete_part=True)


# --------------------------------------------------------------------------------------------------- failures


def test_a_gated_model_asks_for_a_token_and_comes_with_it(hub, tmp_path):
    # Field report 11; the token is in none of our files.
    hub.routes.repos[REPO].gated = "auto"
    hub.routes.people[TOKEN].repos.add(REPO)
    with QueueWatch(hub, tmp_path) as watch:
        failed = watch.ended(add(hub, watch, NAMES[0]))
        assert (failed.state, failed.action) == (DownloadState.FAILED, "token")
        assert f"{hub.endpoint}/{REPO}" in failed.words.hint
    with QueueWatch(hub, tmp_path, token=TOKEN) as watch:
        (kept,) = watch.queue.downloads()
        assert (kept.state, kept.words, kept.action) == (failed.state, failed.words, failed.action)
        watch.queue.retry(kept.download_id)
        assert watch.ended(kept.download_id).state is DownloadState.DONE
    assert not [path for path in tmp_path.rglob("*") if path.is_file() and TOKEN.encode() in path.read_bytes()]
    assert hub.leaked_tokens() == []


def test_one_that_fails_leaves_the_others_alone(hub, watch):
    hub.fault("http_404", f"resolve:*{NAMES[0]}")
    failed, fine = (add(hub, watch, name) for name in NAMES[:2])
    assert watch.ended(fine).state is DownloadState.DONE
    assert (watch.ended(failed).state, watch.now(failed).action) == (DownloadState.FAILED, "choose")


def test_downloads_do_not_promise_one_and_the_same_space_twice(hub, tmp_path):
    hold(hub)
    room = {"free_bytes": lambda _folder: 3 * MIB, "reserve_bytes": 0}
    with QueueWatch(hub, tmp_path, changes=room) as watch:
        first = add(hub, watch, NAMES[0])
        watch.wait(first, has(1))
        second = watch.ended(add(hub, watch, NAMES[1], NAMES[2]))
        assert (second.state, second.action) == (DownloadState.FAILED, "free_space")


def test_what_nobody_foresaw_ends_the_download_and_not_the_queue(hub, watch, monkeypatch):
    raised = []
    monkeypatch.setattr(threading, "excepthook", lambda told: raised.append(told.exc_type))
    with monkeypatch.context() as patch:
        patch.setattr(FileTransfer, "run", lambda *_arguments: 1 // 0)
        failed = watch.ended(add(hub, watch, NAMES[0]))
    assert (failed.state, failed.action) == (DownloadState.FAILED, "retry")
    assert "ZeroDivisionError" in failed.words.message
    watch.queue.retry(failed.download_id)
    assert watch.ended(failed.download_id).state is DownloadState.DONE
    assert raised == [ZeroDivisionError]


def test_a_proxy_that_cannot_be_used_is_a_failure_with_words(hub, tmp_path):
    told = []
    clients = clients_of(hub, proxy="ftp://proxy.example")
    queue = DownloadQueue(tmp_path, tmp_path / "hub", clients, told.append)
    queue.add("t", [ref(hub)])
    queue.close()
    assert told[-1].state in (DownloadState.FAILED, DownloadState.RUNNING)
