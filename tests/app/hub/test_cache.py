"""Answers on disk: bounded, whole, with their age; never in the way."""

from __future__ import annotations

import os
import threading
import time

import msgspec
import pytest

from app.hub.cache import AnswerCache
from app.hub.types import RepoSummary, SearchPage

PAGE = SearchPage(items=(RepoSummary(repo="a/b", name="b", owner="a", tags=("é",)),), next_cursor="c")


class Clock:
    """Seconds since 1970, moved by hand."""

    def __init__(self) -> None:
        self.now_s = 1_000_000.0

    def __call__(self) -> float:
        return self.now_s


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def cache(tmp_path, clock) -> AnswerCache:
    return AnswerCache(tmp_path / "hub", clock=clock)


def test_an_answer_comes_back_with_its_age(cache, clock):
    assert cache.get(["search", "x"], SearchPage) is None
    cache.put(["search", "x"], PAGE)
    clock.now_s += 90
    kept = cache.get(["search", "x"], SearchPage)
    assert (kept.value, kept.age_s) == (PAGE, 90)


def test_questions_do_not_run_into_each_other(cache):
    cache.put(["a", "bc"], PAGE)
    assert cache.get(["ab", "c"], SearchPage) is None
    assert cache.get(["a", "bc", ""], SearchPage) is None


def test_a_clock_that_was_set_back_makes_no_negative_age(cache, clock):
    cache.put(["q"], PAGE)
    clock.now_s -= 5_000
    assert cache.get(["q"], SearchPage).age_s == 0


def test_a_new_answer_takes_the_place_of_the_old_one(cache, tmp_path):
    cache.put(["q"], PAGE)
    cache.put(["q"], SearchPage(items=()))
    assert cache.get(["q"], SearchPage).value == SearchPage(items=())
    assert len(list((tmp_path / "hub").iterdir())) == 1


@pytest.mark.parametrize("damage", [b"", b"\x00", b"not msgpack", msgspec.msgpack.encode((1.0, {"items": 5}))])
def test_a_damaged_answer_is_none(cache, tmp_path, damage):
    cache.put(["q"], PAGE)
    (file,) = (tmp_path / "hub").iterdir()
    file.write_bytes(damage)
    assert cache.get(["q"], SearchPage) is None
    cache.put(["q"], PAGE)
    assert cache.get(["q"], SearchPage).value == PAGE


def test_an_answer_of_another_kind_is_none(cache):
    cache.put(["q"], PAGE)
    assert cache.get(["q"], RepoSummary) is None


def test_what_was_not_used_for_longest_goes_first(tmp_path):
    page = SearchPage(items=(), next_cursor="x" * 1000)
    size_bytes = len(msgspec.msgpack.encode((1.0, page)))
    cache = AnswerCache(tmp_path / "hub", limit_bytes=3 * size_bytes)
    now_s = time.time()
    for used_before_s, name in ((300, "a"), (200, "b"), (100, "c")):
        before = set((tmp_path / "hub").glob("*"))
        cache.put([name], page)
        (made,) = set((tmp_path / "hub").glob("*")) - before
        os.utime(made, (now_s - used_before_s, now_s - used_before_s))
    assert cache.get(["a"], SearchPage).value == page  # used again
    cache.put(["d"], page)
    assert [name for name in "abcd" if cache.get([name], SearchPage) is not None] == ["a", "c", "d"]


def test_what_is_two_months_old_goes(cache, tmp_path):
    cache.put(["old"], PAGE)
    (file,) = (tmp_path / "hub").iterdir()
    os.utime(file, (1, 1))
    cache.put(["new"], PAGE)
    assert cache.get(["old"], SearchPage) is None
    assert cache.get(["new"], SearchPage).value == PAGE


def test_the_limit_holds_whatever_comes(tmp_path):
    cache = AnswerCache(tmp_path / "hub", limit_bytes=20_000)
    for number in range(60):
        cache.put([str(number)], SearchPage(items=(), next_cursor="x" * 1000))
    assert cache.size_bytes() <= 20_000
    cache.put(["huge"], SearchPage(items=(), next_cursor="x" * 30_000))
    assert cache.get(["huge"], SearchPage) is None


def test_the_token_stands_in_no_file_and_no_name(cache, tmp_path):
    cache.put(["https://hub", "hf_CANARY", "search"], PAGE)
    assert cache.get(["https://hub", "", "search"], SearchPage) is None
    for file in (tmp_path / "hub").iterdir():
        assert "CANARY" not in file.name
        assert b"CANARY" not in file.read_bytes()


def test_only_this_person_may_read_it(cache, tmp_path):
    cache.put(["q"], PAGE)
    assert (tmp_path / "hub").stat().st_mode & 0o077 == 0


def test_what_is_not_ours_is_left_alone(cache, tmp_path):
    cache.put(["q"], PAGE)
    other = tmp_path / "hub" / "notes.txt"
    other.write_text("mine")
    target = tmp_path / "target"
    target.write_text("not ours")
    (tmp_path / "hub" / "link.answer").symlink_to(target)
    cache.clear()
    assert cache.get(["q"], SearchPage) is None
    assert (other.read_text(), target.read_text()) == ("mine", "not ours")


def test_a_folder_that_cannot_be_made_means_that_nothing_is_kept(tmp_path):
    (tmp_path / "hub").write_text("a file stands there")
    cache = AnswerCache(tmp_path / "hub")
    cache.put(["q"], PAGE)
    assert cache.get(["q"], SearchPage) is None
    assert cache.size_bytes() == 0
    cache.clear()


def test_many_threads_may_ask_at_once(cache):
    def work(name: str) -> None:
        for number in range(20):
            cache.put([name, str(number % 3)], PAGE)
            kept = cache.get([name, str(number % 3)], SearchPage)
            assert kept is None or kept.value == PAGE

    threads = [threading.Thread(target=work, args=(name,)) for name in "abcd"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert cache.get(["a", "0"], SearchPage).value == PAGE
