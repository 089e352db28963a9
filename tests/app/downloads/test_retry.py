"""What passes by itself is tried again, later each time and not for ever; what does not pass is said at once."""

from __future__ import annotations

import pytest

from app.downloads.retry import MAX_ASKED_WAIT_S, RetryPlan
from app.models.http_faults import RemoteError, RemoteFault


def waits(fault, share=0.5, **asked):
    plan, found = RetryPlan(lambda: share), []
    while (wait_s := plan.wait_s(RemoteError(fault, "h", **asked))) is not None:
        found.append(wait_s)
        assert len(found) < 50
    return found


def test_each_wait_is_twice_the_one_before():
    assert waits(RemoteFault.BROKEN_OFF) == [1, 2, 4, 8, 16, 32, 60]


def test_waits_are_spread_by_a_quarter():
    assert waits(RemoteFault.UNREACHABLE, 0.0) == [0.75, 1.5, 3, 6, 12, 24, 45]
    assert waits(RemoteFault.UNREACHABLE, 1.0) == [1.25, 2.5, 5, 10, 20, 40, 75]


@pytest.mark.parametrize("fault", [RemoteFault.EXPIRED, RemoteFault.WRONG_RANGE, RemoteFault.RANGE_REFUSED])
def test_what_may_be_a_mistake_of_the_moment_is_tried_twice_more(fault):
    assert waits(fault) == [1, 2]


@pytest.mark.parametrize(
    "fault",
    [
        RemoteFault.GATED,
        RemoteFault.MISSING,
        RemoteFault.CERTIFICATE,
        RemoteFault.CERTIFICATE_DATE,
        RemoteFault.WEB_PAGE,
        RemoteFault.REDIRECTS,
        RemoteFault.NOT_SECURE,
    ],
)
def test_what_does_not_pass_by_itself_is_not_tried_again(fault):
    assert waits(fault) == []


def test_the_server_s_wish_counts_where_it_is_longer():
    assert waits(RemoteFault.BUSY, retry_after_s=10) == [10, 10, 10, 10, 16, 32, 60]
    assert waits(RemoteFault.BUSY, retry_after_s=0) == [1, 2, 4, 8, 16, 32, 60]


def test_a_wish_of_hours_is_for_a_person_to_decide():
    assert waits(RemoteFault.BUSY, retry_after_s=int(MAX_ASKED_WAIT_S)) == [600.0] * 7
    assert waits(RemoteFault.BUSY, retry_after_s=int(MAX_ASKED_WAIT_S) + 1) == []


def test_new_bytes_make_the_next_fault_the_first():
    plan = RetryPlan(lambda: 0.5)
    error = RemoteError(RemoteFault.BROKEN_OFF, "h")
    for _fault in range(100):
        assert plan.wait_s(error) == 1
        assert plan.wait_s(error) == 2
        plan.progressed()
