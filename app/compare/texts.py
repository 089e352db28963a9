"""The texts that comparisons score: those that come with the program, a file of the person's own, their own chats.

A text is known by the SHA-256 of its characters in UTF-8; one that has changed since a plan was made is refused, since
its figures could be compared with nothing. Nothing here leaves the machine: own chats are written to one place only, in
the folder of the comparison that scores them. Knows no engine and no tokens.
"""

from __future__ import annotations

import functools
import hashlib
from pathlib import Path
from typing import TypeVar

import msgspec

from app.atomic_file import replace_file
from app.chat.messages import Message, Role
from app.chat.store_reader import ChatReader
from app.compare.plan import WINDOW_TOKENS, ChoiceSpec, PromptSpec, TextSpec
from app.errors import AppError, Words, one_line
from app.i18n import _
from app.paths import resources_folder
from app.units import bytes_text, count_text

OWN, OWN_CHATS = "own", "own-chats"  # text_id of what is the person's
CALIBRATION = "calibration"

# The most windows of any amount take far below 1 MiB; more is read only to be thrown away.
MAX_TEXT_BYTES = 8 * 2**20
# A token is at least a byte, so that fewer bytes cannot fill a window; how many there are only the vocabulary says.
MIN_TEXT_BYTES = WINDOW_TOKENS
# Twice what tokens have on average, in any language that was looked at; what lies beyond is in no window.
_CHARACTERS_PER_TOKEN = 8

_PRIVATE_MODE = 0o700
_MARKS_OF_OTHERS = {b"\xff\xfe": "UTF-16", b"\xfe\xff": "UTF-16", b"%PDF": "PDF", b"PK\x03\x04": "ZIP", b"GGUF": "GGUF"}
_SPEAKERS = {Role.USER: "User", Role.ASSISTANT: "Assistant"}  # not translated: the same chats are the same text

_T = TypeVar("_T")


class TextError(AppError):
    """A text cannot be used; the words say why."""


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A file that comes with the program."""

    file: str
    licence: str
    origin: str
    sha256: str
    text_id: str = ""
    title: str = ""


class _Manifest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What lies in resources/evaluation."""

    schema: int
    texts: tuple[_File, ...]
    calibration: _File
    prompts: _File
    choices: _File


# ----------------------------------------------------------------------------------------- the program's own


def bundled_texts() -> tuple[TextSpec, ...]:
    """Return the texts that come with the program: encyclopaedia, chat, code, multilingual.

    Raises:
        TextError: the installation is damaged.
    """
    return tuple(_spec(file) for file in _manifest().texts)


def calibration_text() -> TextSpec:
    """Return the text for importance matrices, from which no window is ever cut; raises TextError."""
    return _spec(_manifest().calibration)


def bundled_prompts() -> tuple[PromptSpec, ...]:
    """Return the questions that come with the program, the ones for the smallest amount first; raises TextError."""
    return _decoded(_manifest().prompts, tuple[PromptSpec, ...])


def bundled_choices() -> tuple[ChoiceSpec, ...]:
    """Return the multiple-choice questions that come with the program; raises TextError."""
    return _decoded(_manifest().choices, tuple[ChoiceSpec, ...])


def read_text(spec: TextSpec) -> str:
    """Return a text of a plan.

    Raises:
        TextError: it is not there, cannot be read, or is another text than when the plan was made.
    """
    text = _own(Path(spec.path)) if spec.path else _bundled(_file_of(spec.text_id))
    if spec.sha256 and text_hash(text) != spec.sha256:
        message = _("The text “{name}” has changed since this comparison was planned.").format(name=_name_of(spec))
        raise TextError(Words(message, _("Put the old text back, or begin a new comparison with this one.")))
    return text


def beginning_of(text: str, windows: int) -> str:
    """Return as much of a text's beginning as surely holds so many windows, where it is longer than that.

    Whoever finds too few windows in it takes the whole text: few texts have such long tokens.
    """
    return text[: _enough(windows)]


def text_hash(text: str) -> str:
    """Return the SHA-256 of a text, by which plans know it."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


# -------------------------------------------------------------------------------------------- the person's own


def own_text(path: Path) -> TextSpec:
    """Return a file of the person's own as a text to score; it is read again when the comparison begins.

    Raises:
        TextError: it is no text in UTF-8, too short, too large, or cannot be read.
    """
    found = path.expanduser().absolute()
    text = _own(found)
    return TextSpec(text_id=OWN, title=one_line(found.name, 80), path=str(found), sha256=text_hash(text))


def own_chats(store: ChatReader, windows: int) -> str:
    """Return the person's chats as one text, the one used last first, until it surely holds so many windows.

    Of each chat the branch that is shown, whole. Written nowhere: see keep_chats.

    Raises:
        TextError: there are too few chats for a single window.
        StoreError: the chats cannot be read.
    """
    parts: list[str] = []
    missing = min(_enough(windows), MAX_TEXT_BYTES)
    for chat in store.chats():
        dialogue = _dialogue(store.branch(chat.chat_id, with_token_ids=False))
        if dialogue:
            parts.append(dialogue)
            missing -= len(dialogue)
        if missing <= 0:
            break
    text = "\n\n".join(parts)
    if len(text.encode("utf-8", "replace")) < MIN_TEXT_BYTES:
        raise TextError(
            Words(
                _("There is too little in your chats to score: {size} of text.").format(size=_size_of(text)),
                _("Chat some more, or choose a file or the texts that come with Cutaway."),
            )
        )
    return _cut_to(text, MAX_TEXT_BYTES)  # a single chat may be larger than any text


def chats_spec(text: str, folder: Path) -> TextSpec:
    """Return own chats as a text to score, kept in the folder of the comparison; keep_chats writes it there."""
    path = folder.absolute() / "texts" / f"{OWN_CHATS}.txt"
    return TextSpec(text_id=OWN_CHATS, title=_("Your chats"), path=str(path), sha256=text_hash(text))


def keep_chats(spec: TextSpec, text: str) -> None:
    """Write own chats where their spec says, readable by this person only; the comparison's folder is there.

    Raises:
        TextError: it cannot be written.
    """
    path = Path(spec.path)
    try:
        path.parent.mkdir(mode=_PRIVATE_MODE, parents=True, exist_ok=True)
        replace_file(path, text.encode("utf-8", "surrogatepass"))
    except OSError as error:
        raise _refused(path, error) from error


# -------------------------------------------------------------------------------------------------- helpers


def _enough(windows: int) -> int:
    """Return in how many characters so many windows surely lie, and one more."""
    return (windows + 1) * WINDOW_TOKENS * _CHARACTERS_PER_TOKEN


def _dialogue(messages: list[Message]) -> str:
    turns = [
        f"{_SPEAKERS[one.role]}: {one.text.strip()}" for one in messages if one.role in _SPEAKERS and one.text.strip()
    ]
    return "\n\n".join(turns)


def _cut_to(text: str, limit_bytes: int) -> str:
    data = text.encode("utf-8", "replace")
    return text if len(data) <= limit_bytes else data[:limit_bytes].decode("utf-8", "ignore")


def _own(path: Path) -> str:
    """Return the text of a file as it is; raises TextError."""
    data = _bytes_of(path)
    name = one_line(path.name, 80)
    for mark, kind in _MARKS_OF_OTHERS.items():
        if data.startswith(mark):
            message = _("“{name}” is no plain text: it is a {kind} file.").format(name=name, kind=kind)
            raise TextError(Words(message, _("Save it as plain text in UTF-8, or choose another file.")))
    if (place := data.find(b"\0")) >= 0:
        raise _no_text(name, place)
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise _no_text(name, error.start) from error
    if len(data) < MIN_TEXT_BYTES or not text.strip():
        message = _("“{name}” is too short to score: it holds {size} of text.").format(
            name=name, size=_size_of(text.strip())
        )
        hint = _("A window has {tokens} tokens, about {size} of English.")
        raise TextError(
            Words(message, hint.format(tokens=count_text(WINDOW_TOKENS), size=bytes_text(4 * WINDOW_TOKENS)))
        )
    return text


def _bytes_of(path: Path) -> bytes:
    """Return what a file holds, if it can be a text; raises TextError."""
    name = one_line(path.name, 80)
    try:
        if path.is_dir():
            message = _("“{name}” is a folder, not a text.").format(name=name)
            raise TextError(Words(message, _("Choose a file of plain text.")))
        with path.open("rb") as file:
            data = file.read(
                MAX_TEXT_BYTES + 1
            )  # a size that is asked for beforehand may be wrong, as that of a pipe is
        if len(data) > MAX_TEXT_BYTES:
            message = _("“{name}” is too large: at most {limit} of text can be read.")
            raise TextError(
                Words(
                    message.format(name=name, limit=bytes_text(MAX_TEXT_BYTES)),
                    _("Only the beginning is scored: cut a part out of it and choose that."),
                )
            )
    except FileNotFoundError as error:
        message = _("The text “{name}” is not there any more.").format(name=name)
        hint = _("It was looked for at {path}. Put it back, or choose another one.")
        raise TextError(Words(message, hint.format(path=one_line(str(path))))) from error
    except OSError as error:
        raise _refused(path, error) from error
    return data


def _no_text(name: str, place: int) -> TextError:
    message = _("“{name}” is no text in UTF-8: what stands at byte {place} is no character.")
    return TextError(
        Words(
            message.format(name=name, place=count_text(place + 1)),
            _("Save it as plain text in UTF-8, or choose another file."),
        )
    )


def _refused(path: Path, error: OSError) -> TextError:
    message = _("The text “{name}” cannot be read or written: {reason}.")
    reason = one_line(error.strerror or type(error).__name__)
    return TextError(
        Words(
            message.format(name=one_line(path.name, 80), reason=reason),
            _("Check that you may use {path} and that its disk is there.").format(path=one_line(str(path))),
        )
    )


def _size_of(text: str) -> str:
    return bytes_text(len(text.encode("utf-8", "replace")))


def _name_of(spec: TextSpec) -> str:
    return one_line(spec.title or spec.text_id, 80)


def _spec(file: _File) -> TextSpec:
    return TextSpec(text_id=file.text_id, title=_title(file), sha256=file.sha256, licence=file.licence)


def _title(file: _File) -> str:
    """Return a text's name in the language in use."""
    titles = {
        "encyclopaedia": _("Encyclopaedia"),
        "chat": _("Chat"),
        "code": _("Code and tables"),
        "multilingual": _("Seven languages"),
        CALIBRATION: _("Calibration"),
    }
    return titles.get(file.text_id, file.title)


def _folder() -> Path:
    return resources_folder() / "evaluation"


@functools.cache
def _manifest() -> _Manifest:
    path = _folder() / "manifest.json"
    try:
        return msgspec.json.decode(path.read_bytes(), type=_Manifest)
    except (OSError, msgspec.DecodeError) as error:
        raise _damaged(path) from error


def _file_of(text_id: str) -> _File:
    manifest = _manifest()
    for file in (*manifest.texts, manifest.calibration):
        if file.text_id == text_id:
            return file
    message = _("This version of Cutaway has no text “{name}”.").format(name=one_line(text_id, 80))
    raise TextError(Words(message, _("Begin a new comparison with the texts that are there.")))


def _bundled(file: _File) -> str:
    """Return a bundled file's text; raises TextError for one that is not what the program was made with."""
    path = _folder() / file.file
    try:
        text = path.read_text(encoding="utf-8")  # with universal newlines: the same on every system
    except (OSError, UnicodeDecodeError) as error:
        raise _damaged(path) from error
    if text_hash(text) != file.sha256:
        raise _damaged(path)
    return text


def _decoded(file: _File, kind: type[_T]) -> _T:
    try:
        return msgspec.json.decode(_bundled(file), type=kind)
    except msgspec.DecodeError as error:
        raise _damaged(_folder() / file.file) from error


def _damaged(path: Path) -> TextError:
    message = _("A file of Cutaway is missing or damaged: {path}.").format(path=one_line(str(path)))
    return TextError(Words(message, _("Install Cutaway again.")))
