"""A token lies in the system's keyring or in memory, one for each hub, and nowhere else; trust S-23, S-48."""

from __future__ import annotations

import logging
import sys
import threading
import types

import pytest

from app.hub import tokens
from app.hub.keyring_call import KeyringCalls
from app.hub.tokens import KeyringFailedError, TokenError, TokenPlace, TokenStore, system_keyring

HUB, MIRROR, TOKEN = "https://huggingface.co", "https://mirror.example", "hf_abcdefghijklmnop"
PATIENCE_S = 60.0


class Memory:
    """A keyring in memory that may refuse."""

    def __init__(self, refuses=()):
        self.secrets = {}
        self.reads = 0
        self.refuses = set(refuses)

    def read(self, account):
        self.reads += 1
        self._check("read")
        return self.secrets.get(account)

    def write(self, account, secret):
        self._check("write")
        self.secrets[account] = secret

    def delete(self, account):
        self._check("delete")
        self.secrets.pop(account, None)

    def _check(self, name):
        if name in self.refuses:
            raise KeyringFailedError("locked")


def test_a_token_is_kept_in_the_keyring_and_found_by_the_next_start():
    ring = Memory()
    store = TokenStore(lambda: ring)
    assert (store.get(HUB), store.place(HUB)) == (None, TokenPlace.NONE)
    assert store.keep(HUB, f"  {TOKEN}\n") is TokenPlace.KEYRING
    assert ring.secrets == {HUB: TOKEN}
    later = TokenStore(lambda: ring)
    assert (later.get(HUB), later.place(HUB)) == (TOKEN, TokenPlace.KEYRING)


def test_no_hub_hears_the_token_of_another():
    store = TokenStore(Memory)
    store.keep(HUB, TOKEN)
    assert store.get(MIRROR) is None


@pytest.mark.parametrize("find", [lambda: None, lambda: Memory({"read", "write", "delete"})], ids=["none", "locked"])
def test_without_a_keyring_a_token_lasts_as_long_as_the_program(find):
    store = TokenStore(find)
    assert store.get(HUB) is None
    assert store.keep(HUB, TOKEN) is TokenPlace.SESSION
    assert (store.get(HUB), store.place(HUB)) == (TOKEN, TokenPlace.SESSION)
    assert TokenStore(find).get(HUB) is None
    store.forget(HUB)
    assert (store.get(HUB), store.place(HUB)) == (None, TokenPlace.NONE)


class Prompting(Memory):
    """A locked keyring: every call waits for a person, who comes late or never."""

    def __init__(self):
        super().__init__()
        self.unlocked = threading.Event()
        self.threads = []

    def _check(self, name):
        self.threads.append(threading.current_thread())
        assert self.unlocked.wait(PATIENCE_S)

    def unlock(self):
        self.unlocked.set()
        for thread in self.threads:
            thread.join()


@pytest.fixture
def locked():
    made = Prompting()
    yield made
    made.unlock()


def test_a_keyring_that_does_not_answer_leaves_the_session(locked):
    store = TokenStore(lambda: locked, KeyringCalls(limit_s=0.01))
    assert (store.get(HUB), store.place(HUB), store.is_silent()) == (None, TokenPlace.NONE, True)
    assert store.keep(HUB, TOKEN) is TokenPlace.SESSION
    assert (store.get(HUB), store.place(HUB), store.is_silent()) == (TOKEN, TokenPlace.SESSION, True)
    store.forget(HUB)
    assert store.get(HUB) is None
    assert len(locked.threads) == 1  # it is not asked again and again


def test_a_keyring_that_is_unlocked_late_is_read_then(locked):
    locked.secrets[HUB] = TOKEN
    store = TokenStore(lambda: locked, KeyringCalls(limit_s=0.01))
    assert store.get(HUB) is None
    locked.unlock()
    store._call._limit_s = PATIENCE_S
    assert (store.get(HUB), store.place(HUB), store.is_silent()) == (TOKEN, TokenPlace.KEYRING, False)


def test_a_store_that_is_closed_asks_no_keyring(locked):
    store = TokenStore(lambda: locked)
    store.close()
    assert store.get(HUB) is None
    assert locked.threads == []


def test_whether_there_is_a_keyring_is_known_before_a_token_is_given():
    assert TokenStore(Memory).has_keyring()
    assert not TokenStore(lambda: None).has_keyring()


def test_a_forgotten_token_is_gone_from_the_keyring_too():
    ring = Memory()
    store = TokenStore(lambda: ring)
    store.keep(HUB, TOKEN)
    store.forget(HUB)
    assert ring.secrets == {}
    assert store.get(HUB) is None


def test_the_keyring_is_asked_once_even_where_it_has_nothing():
    ring = Memory()
    store = TokenStore(lambda: ring)
    for _time in range(3):
        assert store.get(HUB) is None
    assert ring.reads == 1


@pytest.mark.parametrize("text", ["", "   ", "two words", "hf_ü", "hf\x00x", "hf\nx", "x" * 513])
def test_what_cannot_be_a_token_is_refused_in_words_that_do_not_quote_it(text):
    store = TokenStore(Memory)
    with pytest.raises(TokenError) as caught:
        store.keep(HUB, text)
    assert store.get(HUB) is None
    assert not text.strip() or text not in caught.value.words.message


def test_what_a_keyring_holds_is_not_believed_blindly():
    ring = Memory()
    ring.secrets[HUB] = "hf_a\r\nHost: evil"
    assert TokenStore(lambda: ring).get(HUB) is None


def test_a_token_reaches_no_log(caplog):
    caplog.set_level(logging.DEBUG)
    store = TokenStore(lambda: Memory({"write"}))
    store.keep(HUB, TOKEN)
    store.get(HUB)
    assert TOKEN not in caplog.text
    assert TOKEN not in repr(store)


# --------------------------------------------------------------------------------------- the system's keyring


class Backend:
    """What a backend of the keyring library looks like."""

    viable = True
    raised = None

    def _raise(self):
        if self.raised is not None:
            raise self.raised

    def get_password(self, service, account):
        self._raise()
        return self.secrets.get((service, account))

    def set_password(self, service, account, secret):
        self._raise()
        self.secrets[service, account] = secret

    def delete_password(self, service, account):
        self._raise()
        del self.secrets[service, account]


@pytest.fixture
def backend(monkeypatch):
    """A backend of the best kind on Linux, and no other."""
    made = type("Made", (Backend,), {"secrets": {}})
    module = types.SimpleNamespace(Keyring=made)
    monkeypatch.setattr(tokens.importlib, "import_module", lambda _name: module)
    return made


def test_a_token_makes_its_way_through_the_keyring_library(backend):
    store = TokenStore(lambda: system_keyring("linux"))
    assert store.keep(HUB, TOKEN) is TokenPlace.KEYRING
    assert backend.secrets == {("Cutaway", HUB): TOKEN}
    assert TokenStore(lambda: system_keyring("linux")).get(HUB) == TOKEN
    store.forget(HUB)
    assert backend.secrets == {}


def foreign_errors():
    from keyring.errors import InitError, KeyringLocked, PasswordSetError

    found = [InitError(TOKEN), KeyringLocked(TOKEN), PasswordSetError(TOKEN), OSError(TOKEN), RuntimeError(TOKEN)]
    if sys.platform == "linux":
        from jeepney import DBusErrorResponse
        from secretstorage.exceptions import LockedException, PromptDismissedException

        message = types.SimpleNamespace(
            header=types.SimpleNamespace(fields={}, message_type=None), body=(TOKEN,), __str__=lambda _self: ""
        )
        error = DBusErrorResponse.__new__(DBusErrorResponse)
        error.name, error.data = "org.example", message.body
        found += [error, LockedException(TOKEN), PromptDismissedException(TOKEN)]
    return found


def test_a_keyring_that_fails_in_any_way_leaves_the_session(backend, caplog):
    caplog.set_level(logging.DEBUG)
    for error in foreign_errors():
        backend.raised = error
        store = TokenStore(lambda: system_keyring("linux"))
        assert store.get(HUB) is None
        assert store.keep(HUB, TOKEN) is TokenPlace.SESSION
        store.forget(HUB)
    assert TOKEN not in caplog.text


def test_only_keyrings_that_keep_a_secret_count(monkeypatch):
    # PYTHON_KEYRING_BACKEND and keyringrc.cfg may name one that writes plain text; neither is asked.
    asked = []

    def note(name):
        asked.append(name)
        raise ImportError(name)

    monkeypatch.setenv("PYTHON_KEYRING_BACKEND", "keyrings.alt.file.PlaintextKeyring")
    monkeypatch.setattr(tokens.importlib, "import_module", note)
    for platform in ("linux", "darwin", "win32", "freebsd14"):
        assert system_keyring(platform) is None
    assert asked == [
        "keyring.backends.SecretService",
        "keyring.backends.libsecret",
        "keyring.backends.kwallet",
        "keyring.backends.macOS",
        "keyring.backends.Windows",
    ]


def test_this_system_s_keyring_is_found_or_not_without_a_fault(monkeypatch):
    monkeypatch.setenv("DBUS_SESSION_BUS_ADDRESS", "unix:path=/nonexistent")
    monkeypatch.delenv("XDG_RUNTIME_DIR", raising=False)
    if sys.platform == "linux":
        assert system_keyring() is None
