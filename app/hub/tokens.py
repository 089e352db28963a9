"""The token that a hub knows a person by: in the system's own keyring, or in memory until the program ends.

Never in a file, an argument, an environment or a log. One token for each hub, so that none is shown to another. Which
keyrings count is decided here and not by a file or a variable: there are some that write plain text. The keyring
library is loaded when a token is first asked for. Its calls may wait for a person, up to a limit: use a background
thread.
"""

from __future__ import annotations

import contextlib
import enum
import importlib
import logging
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any, Protocol, TypeVar

from app.errors import AppError, Words
from app.hub.keyring_call import KeyringCalls, KeyringFailedError, KeyringSilentError
from app.i18n import _

__all__ = ["Keyring", "KeyringFailedError", "TokenError", "TokenPlace", "TokenStore", "system_keyring"]

_T = TypeVar("_T")

_log = logging.getLogger(__name__)

_SERVICE = "Cutaway"
_MAX_CHARACTERS = 512
# The best first; each keeps secrets encrypted and for this person alone.
_BACKENDS = {
    "win32": (("keyring.backends.Windows", "WinVaultKeyring"),),
    "darwin": (("keyring.backends.macOS", "Keyring"),),
    "linux": (
        ("keyring.backends.SecretService", "Keyring"),
        ("keyring.backends.libsecret", "Keyring"),
        ("keyring.backends.kwallet", "DBusKeyring"),
    ),
}


class TokenPlace(enum.StrEnum):
    """Where a token is kept."""

    NONE = "none"  # there is none
    SESSION = "session"  # in memory: it is gone when the program ends
    KEYRING = "keyring"  # in the system's keyring


class TokenError(AppError):
    """What was given cannot be a token."""


class Keyring(Protocol):
    """What is used of a keyring; any of its calls may raise KeyringFailedError."""

    def read(self, account: str) -> str | None:
        """Return a secret; None where there is none."""

    def write(self, account: str, secret: str) -> None:
        """Keep a secret in place of the one before."""

    def delete(self, account: str) -> None:
        """Forget a secret; there may be none."""


class TokenStore:
    """The tokens of this person. Any thread may call any method.

    Args:
        find_keyring: returns the system's keyring, or None where there is none; asked once, when it is needed.
        call: makes the keyring's calls, with a limit of time.
    """

    def __init__(
        self, find_keyring: Callable[[], Keyring | None] | None = None, call: KeyringCalls | None = None
    ) -> None:
        self._find_keyring = find_keyring or system_keyring
        self._call = call or KeyringCalls()
        self._is_silent = False
        self._lock = threading.Lock()
        self._keyring: Keyring | None = None
        self._has_looked = False
        self._tokens: dict[str, str | None] = {}
        self._places: dict[str, TokenPlace] = {}

    def get(self, endpoint: str) -> str | None:
        """Return the token for a hub; None where there is none, or the keyring does not answer yet."""
        with self._lock:
            if endpoint not in self._tokens:
                found = None
                try:
                    found = self._asked(lambda ring: ring.read(endpoint))
                except KeyringSilentError:
                    self._places[endpoint] = TokenPlace.NONE
                    return None  # asked again next time: the person may have unlocked it by then
                except KeyringFailedError as error:
                    _log.info("No token was read: %s", error)
                self._tokens[endpoint] = found if found is not None and _is_sound(found) else None
                self._places[endpoint] = TokenPlace.KEYRING if self._tokens[endpoint] else TokenPlace.NONE
            return self._tokens[endpoint]

    def place(self, endpoint: str) -> TokenPlace:
        """Return where the token for a hub is kept."""
        self.get(endpoint)
        with self._lock:
            return self._places[endpoint]

    def keep(self, endpoint: str, token: str) -> TokenPlace:
        """Use a token from now on and return where it is kept: in the keyring if the system has one that works.

        Raises:
            TokenError: this cannot be a token.
        """
        token = token.strip()
        if not _is_sound(token):
            message = _("This cannot be a token: it is empty, or holds spaces or characters that tokens have not.")
            raise TokenError(Words(message, _("Copy it again from the settings of your account at the hub.")))
        with self._lock:
            place = TokenPlace.KEYRING
            try:
                self._asked(lambda ring: ring.write(endpoint, token))
            except KeyringFailedError as error:
                _log.info("The token is kept in memory only: %s", error)
                place = TokenPlace.SESSION
            self._tokens[endpoint], self._places[endpoint] = token, place
            return place

    def forget(self, endpoint: str) -> None:
        """Forget the token for a hub, in the keyring too."""
        with self._lock:
            self._tokens[endpoint], self._places[endpoint] = None, TokenPlace.NONE
            with contextlib.suppress(KeyringFailedError):
                self._asked(lambda ring: ring.delete(endpoint))

    def has_keyring(self) -> bool:
        """Return whether this system has a keyring; it may refuse all the same."""
        with self._lock, contextlib.suppress(KeyringFailedError):
            return self._asked(lambda _ring: True)
        return False

    def is_silent(self) -> bool:
        """Return whether the keyring has not answered the last question: a token is then kept for this run only."""
        with self._lock:
            return self._is_silent

    def close(self) -> None:
        """Wait for the keyring no more; what is known stays known."""
        self._call.close()

    def _asked(self, ask: Callable[[Keyring], _T]) -> _T:
        """Ask the keyring, which may be silent for as long as the limit says; the caller holds the lock."""

        def work() -> _T:
            if not self._has_looked:
                self._keyring, self._has_looked = self._find_keyring(), True
            if self._keyring is None:
                raise KeyringFailedError("this system has no keyring")
            return ask(self._keyring)

        self._is_silent = False
        try:
            return self._call(work)
        except KeyringSilentError as error:
            self._is_silent = True
            _log.info("The system's keyring does not answer: %s", error)
            raise


def _is_sound(token: str) -> bool:
    return 0 < len(token) <= _MAX_CHARACTERS and token.isascii() and token.isprintable() and " " not in token


# --------------------------------------------------------------------------------------- the system's keyring


def system_keyring(platform: str = sys.platform) -> Keyring | None:
    """Return the best keyring that this system has and that works; None without one."""
    for module_name, class_name in _BACKENDS.get(platform, ()):
        with contextlib.suppress(ImportError):
            backend = getattr(importlib.import_module(module_name), class_name)
            if backend.viable:
                return _SystemKeyring(backend())
    return None


class _SystemKeyring:
    """A keyring of the keyring library."""

    def __init__(self, backend: Any) -> None:
        self._backend = backend

    def read(self, account: str) -> str | None:
        with _foreign_errors():
            found = self._backend.get_password(_SERVICE, account)
        return found if isinstance(found, str) else None

    def write(self, account: str, secret: str) -> None:
        with _foreign_errors():
            self._backend.set_password(_SERVICE, account, secret)

    def delete(self, account: str) -> None:
        with _foreign_errors():
            self._backend.delete_password(_SERVICE, account)


@contextlib.contextmanager
def _foreign_errors() -> Iterator[None]:
    """Turn the libraries' errors into ours, by their kind alone: a text may quote a secret."""
    from keyring.errors import KeyringError

    kinds: list[type[Exception]] = [KeyringError, OSError, RuntimeError, EOFError]
    with contextlib.suppress(ImportError):  # on Linux only
        from jeepney import DBusErrorResponse
        from secretstorage.exceptions import SecretStorageException

        kinds += [DBusErrorResponse, SecretStorageException]
    try:
        yield
    except tuple(kinds) as error:
        raise KeyringFailedError(type(error).__name__) from None
