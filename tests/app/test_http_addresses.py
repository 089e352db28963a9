"""Which addresses may be asked, who may hear a secret, and where a redirect may lead; trust S-22, S-23."""

from __future__ import annotations

import pytest

from app.http_addresses import check_address, host_of, is_loopback, is_private, origin_of, redirected
from app.models.http_faults import RemoteError, RemoteFault


@pytest.mark.parametrize("url", ["https://hub.example", "http://127.0.0.1:8080/x?y", "https://[::1]/x"])
def test_ordinary_addresses_may_be_asked(url):
    check_address(url)


@pytest.mark.parametrize(
    "url", ["", "ftp://h/x", "file:///etc/passwd", "https://", "//h/x", "https://a:b@h/x", "http://h:x"]
)
def test_others_may_not_and_the_words_quote_no_password(url):
    with pytest.raises(RemoteError) as caught:
        check_address(url)
    assert caught.value.fault is RemoteFault.BAD_ADDRESS
    assert "a:b" not in caught.value.words.message


def test_what_stands_behind_a_question_mark_is_not_quoted():
    with pytest.raises(RemoteError) as caught:
        check_address("ftp://h/x?token=secret")
    assert "secret" not in caught.value.words.message


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        ("localhost", True),
        ("127.0.0.1", True),
        ("127.9.9.9", True),
        ("::1", True),
        ("10.0.0.1", False),
        ("local", False),
    ],
)
def test_this_machine_is_known_by_its_name(host, expected):
    assert is_loopback(host) is expected


def test_a_host_and_an_origin_are_told():
    assert host_of("https://Hub.Example:444/x") == "hub.example"
    assert origin_of("https://hub.example/x") == origin_of("https://HUB.example:443/y") == "https://hub.example:443"
    assert origin_of("http://hub.example/x") == "http://hub.example:80"
    assert origin_of("https://hub.example:444") != origin_of("https://hub.example")


def test_a_secret_travels_encrypted_or_not_at_all():
    assert is_private("https://hub.example")
    assert is_private("http://127.0.0.1:5")
    assert not is_private("http://hub.example")


@pytest.mark.parametrize(
    ("location", "expected"),
    [
        ("/moved", "https://hub.example/moved"),
        ("//cdn.example/x", "https://cdn.example/x"),
        ("https://cdn.example/x?Signature=1", "https://cdn.example/x?Signature=1"),
        ("other", "https://hub.example/a/other"),
    ],
)
def test_a_redirect_may_be_relative(location, expected):
    assert redirected("https://hub.example/a/b", location) == expected


@pytest.mark.parametrize(
    ("location", "fault"),
    [
        ("http://hub.example/x", RemoteFault.NOT_SECURE),
        ("http://127.0.0.1/x", RemoteFault.NOT_SECURE),
        ("", RemoteFault.REDIRECTS),
        ("file:///etc/passwd", RemoteFault.BAD_ADDRESS),
        ("https://a:b@cdn.example/x", RemoteFault.BAD_ADDRESS),
        ("https://h:x", RemoteFault.REDIRECTS),
    ],
)
def test_a_redirect_may_not_lead_anywhere(location, fault):
    with pytest.raises(RemoteError) as caught:
        redirected("https://hub.example/a/b", location)
    assert caught.value.fault is fault


def test_http_may_lead_to_http():
    assert redirected("http://127.0.0.1:1/a", "http://127.0.0.1:2/b") == "http://127.0.0.1:2/b"
