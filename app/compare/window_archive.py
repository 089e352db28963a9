"""The one file that a reference's windows travel in: a zip, written whole or not at all, and read with suspicion.

An archive may come from anybody. Its names are compared with the few that may be there and never used as paths; what an
entry may take is bounded before and while it is read; nothing but plain and deflated entries is touched.
"""

from __future__ import annotations

import contextlib
import re
import stat
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from app.errors import AppError, Words, one_line
from app.i18n import _
from backends.reference_window import SUFFIX

MANIFEST = "manifest.json"
MAX_MANIFEST_BYTES = 16 * 2**20
MAX_WINDOWS = 1024
MAX_WINDOW_BYTES = 64 * 2**20
MAX_ARCHIVE_BYTES = 2**30
MAX_TOTAL_BYTES = 2 * 2**30

_WINDOW = re.compile(rf"windows/window-(\d{{4}}){re.escape(SUFFIX)}")
_PIECE_BYTES = 2**20
_ENCRYPTED = 0x1
# What reading a damaged zip may raise: the library finds some lies only where they lead nowhere.
_DAMAGE = (
    *(zipfile.BadZipFile, zlib.error, struct.error, EOFError, OSError, KeyError, ValueError, OverflowError),
    *(NotImplementedError, RuntimeError),
)


class WindowExportError(AppError):
    """An export cannot be written, or cannot be used; the words say why."""


def window_entry(number: int) -> str:
    """Return the name of a window's entry; numbers count from 0."""
    return f"windows/window-{number + 1:04d}{SUFFIX}"


def write_archive(target: Path, manifest: bytes, windows: Mapping[int, Path]) -> None:
    """Write an archive beside its place and move it there.

    Raises:
        WindowExportError: it cannot be written; nothing is left then.
    """
    part = target.with_name(f"{target.name}.part")
    try:
        with zipfile.ZipFile(part, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr(MANIFEST, manifest)
            for number, path in sorted(windows.items()):
                archive.write(path, window_entry(number))
        part.replace(target)
    except OSError as error:
        raise not_written(target, error) from error
    finally:
        part.unlink(missing_ok=True)


class WindowArchive:
    """An archive that was opened and whose names and sizes were looked at; close it.

    Attributes:
        path: of the file.
        numbers: of the windows in it, from 0, rising.
    """

    def __init__(self, path: Path) -> None:
        """Open an archive; raises WindowExportError."""
        self.path = path
        try:
            found = path.stat()
            if not stat.S_ISREG(found.st_mode) or found.st_size > MAX_ARCHIVE_BYTES:
                raise self.refused(_("it is no file of reasonable size"))
            self._zip = zipfile.ZipFile(path)
        except OSError as error:
            raise self.refused(error.strerror or str(error)) from error
        except _DAMAGE as error:
            raise self.refused(_("it is no such archive, or damaged")) from error
        try:
            self.numbers = self._checked_numbers(found.st_size)
        except WindowExportError:
            self.close()
            raise

    def __enter__(self) -> WindowArchive:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file."""
        self._zip.close()

    def manifest(self) -> bytes:
        """Return the manifest's text; raises WindowExportError."""
        pieces: list[bytes] = []
        self._read(MANIFEST, MAX_MANIFEST_BYTES, pieces.append)
        return b"".join(pieces)

    def unpack(self, number: int, target: Path) -> None:
        """Write a window to a file; raises WindowExportError, and then the file is gone."""
        try:
            with target.open("wb") as file:
                self._read(window_entry(number), MAX_WINDOW_BYTES, file.write)
        except OSError as error:
            target.unlink(missing_ok=True)
            raise not_written(target, error) from error
        except WindowExportError:
            target.unlink(missing_ok=True)
            raise

    def refused(self, reason: str) -> WindowExportError:
        """Return the error that says why this archive is of no use."""
        message = _("The export “{name}” cannot be used: {reason}.")
        text = message.format(name=one_line(self.path.name, 80), reason=one_line(reason).rstrip("."))
        return WindowExportError(Words(text, _("Have the reference's windows exported and copied again.")))

    # ---------------------------------------------------------------------------------------- helpers

    def _checked_numbers(self, file_bytes: int) -> tuple[int, ...]:
        entries = self._zip.infolist()
        if len(entries) > MAX_WINDOWS + 1:
            raise self.refused(_("it holds more files than an export can have"))
        names = [entry.filename for entry in entries]
        if len(set(names)) != len(names):
            raise self.refused(_("a file is in it twice"))
        numbers = []
        for entry in entries:
            found = _WINDOW.fullmatch(entry.filename)
            if entry.filename != MANIFEST and found is None:
                words = _("a file in it does not belong there: {name}")
                raise self.refused(words.format(name=one_line(entry.filename, 60)))
            if entry.flag_bits & _ENCRYPTED or entry.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
                raise self.refused(_("a file in it is packed in a way that no export is"))
            if entry.file_size > (MAX_WINDOW_BYTES if found else MAX_MANIFEST_BYTES):
                raise self.refused(_("a file in it is larger than any export's"))
            if found:
                numbers.append(int(found[1]) - 1)
        if sum(entry.file_size for entry in entries) > MAX_TOTAL_BYTES:
            raise self.refused(_("it would take too much room"))
        if sum(entry.compress_size for entry in entries) > file_bytes:
            raise self.refused(_("its files lie upon one another"))
        if MANIFEST not in names or sorted(numbers) != list(range(len(numbers))):
            raise self.refused(_("files are missing from it"))
        return tuple(sorted(numbers))

    def _read(self, name: str, limit_bytes: int, take: Callable[[bytes], object]) -> None:
        """Hand on an entry piece by piece; what is read counts, not what the archive says."""
        for piece in self._pieces(name, limit_bytes):
            take(piece)

    def _pieces(self, name: str, limit_bytes: int) -> Iterator[bytes]:
        total = 0
        with contextlib.ExitStack() as stack:
            try:
                entry = stack.enter_context(self._zip.open(name))
            except _DAMAGE as error:
                raise self.refused(_("it is damaged")) from error
            while True:
                try:
                    piece = entry.read(_PIECE_BYTES)
                except _DAMAGE as error:
                    raise self.refused(_("it is damaged")) from error
                total += len(piece)
                if total > limit_bytes:
                    raise self.refused(_("a file in it is larger than any export's"))
                if not piece:
                    return
                yield piece


def not_written(path: Path, error: OSError) -> WindowExportError:
    """Return the error for a file that the system does not take."""
    message = _("The file {path} could not be written: {reason}.")
    reason = one_line(error.strerror or str(error)).rstrip(".")
    hint = _("Check that its disk is there and has room.")
    return WindowExportError(Words(message.format(path=one_line(str(path)), reason=reason), hint))
