"""The words for everything that goes wrong: one sentence that says what happened, one that says what to do.

Engines report codes and parameters (backends/errors.py); this is the one place that turns them into sentences. How a
process ended is told by `deaths`. Knows no engine and no window; every sentence goes through gettext when it is needed.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import PurePath, PureWindowsPath

from app.i18n import _
from app.units import bytes_text
from backends.errors import EngineError, ErrorCode, NoticeCode, Parameter

# Details come from engines and hostile files; beyond this a sentence is no longer read.
_MAX_DETAIL_CHARACTERS = 300


@dataclass(frozen=True, slots=True)
class Words:
    """What a person is told.

    Attributes:
        message: what happened, one or two sentences.
        hint: what to do about it; "" when there is nothing to do.
    """

    message: str
    hint: str = ""


class AppError(Exception):
    """Something a person asked for could not be done, and the words for it are known.

    Attributes:
        words: what happened and what to do.
    """

    def __init__(self, words: Words) -> None:
        super().__init__(words.message)
        self.words = words


def one_line(text: str, max_characters: int = _MAX_DETAIL_CHARACTERS) -> str:
    """Return the text as one visible line: control, direction and invisible characters become spaces, the end is cut.

    For text that others wrote (file names, engine details) inside our sentences.
    """
    visible = "".join(" " if unicodedata.category(c) in _INVISIBLE else c for c in text[: 4 * max_characters])
    joined = " ".join(visible.split())
    return joined if len(joined) <= max_characters else joined[: max_characters - 1] + "…"


# Control, format (bidi, zero-width, tags), surrogate, private, unassigned, line and paragraph separators.
_INVISIBLE = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})

_Pair = tuple[str, str]

_ERRORS: dict[str, Callable[[], _Pair]] = {
    ErrorCode.FILE_MISSING: lambda: (
        _("The model file “{name}” is not there any more."),
        _("It was looked for at {path}. Put it back, or choose another model."),
    ),
    ErrorCode.FILE_UNREADABLE: lambda: (
        _("The model file “{name}” cannot be read: {detail}"),
        _("Check that you may read {path} and that its disk is connected."),
    ),
    ErrorCode.NOT_A_MODEL: lambda: (
        _("“{name}” is not a model file: {detail}"),
        _("Choose a file that ends in .gguf."),
    ),
    ErrorCode.HEADER_INVALID: lambda: (
        _("The model file “{name}” is damaged: {detail}"),
        _("Download the file again, or choose another one."),
    ),
    ErrorCode.ENGINE_MISSING: lambda: (
        _("The {backend} engine is not installed or cannot start here: {detail}"),
        _("Install Cutaway again, or choose another engine."),
    ),
    ErrorCode.ENGINE_NOT_INSTALLED: lambda: (
        _("The {backend} engine is not installed."),
        _("Install it with `pip install {packages}` beside Cutaway, or choose another engine."),
    ),
    ErrorCode.WRONG_KIND: lambda: (
        _("The {backend} engine cannot load “{name}”: it takes {takes}."),
        _("Choose another engine for this model, or another model."),
    ),
    ErrorCode.RUNS_CODE: lambda: (
        _("“{name}” needs code of its own to run ({detail}), and Cutaway never runs code that comes with a model."),
        _("Choose another model, or a GGUF of this one."),
    ),
    ErrorCode.UNKNOWN_ARCHITECTURE: lambda: (
        _("“{name}” is a model of a kind this engine does not know: {architecture}"),
        _("A newer version of Cutaway may know it. Until then choose another model."),
    ),
    ErrorCode.WEIGHTS_UNSUPPORTED: lambda: (
        _("The weights of “{name}” are stored in a way this engine cannot read: {detail}"),
        _("Choose the model in bfloat16, float16 or float32, or a GGUF of it."),
    ),
    ErrorCode.OUT_OF_MEMORY: lambda: (
        _("There is not enough memory: about {needed} are needed, {free} are free."),
        _("Try a smaller quantization or a shorter context, or close other programs."),
    ),
    ErrorCode.LOAD_FAILED: lambda: (
        _("The engine could not load “{name}”: {detail}"),
        _("The file may be damaged or too new for this engine. Download it again, or choose another one."),
    ),
    ErrorCode.NO_VOCABULARY: lambda: (
        _("“{name}” holds no vocabulary, so it can neither read nor write text."),
        _("It may be a part or a helper of another model. Choose the complete model file."),
    ),
    ErrorCode.CONTEXT_FAILED: lambda: (
        _("The engine could not set up a context of {context_tokens} tokens: {detail}"),
        _("Choose a shorter context in the settings."),
    ),
    ErrorCode.NO_MODEL: lambda: (_("No model is loaded."), _("Choose a model first.")),
    ErrorCode.ALREADY_LOADED: lambda: (
        _("This engine already holds a model."),
        _("Choose the model again: a fresh engine is started for it."),
    ),
    ErrorCode.EMPTY_PROMPT: lambda: (_("There is nothing to answer: the prompt is empty."), _("Write something.")),
    ErrorCode.PROMPT_TOO_LONG: lambda: (
        _("The chat is too long: {prompt_tokens} tokens, and the context holds {context_tokens}."),
        _("Shorten the prompt, start a new chat, or choose a longer context in the settings."),
    ),
    ErrorCode.CHAT_TOO_LARGE: lambda: (
        _("The chat is too long: it holds {text} of text, and at most {limit} can be read."),
        _("Shorten the prompt, or start a new chat."),
    ),
    ErrorCode.BAD_PARAMS: lambda: (
        _("The engine does not accept these sampling settings: {detail}"),
        _("Set them back in the settings."),
    ),
    ErrorCode.NO_KV_ROOM: lambda: (
        _("The context of {context_tokens} tokens is full."),
        _("Start a new chat, or choose a longer context in the settings."),
    ),
    ErrorCode.DECODE_FAILED: lambda: (
        _("The engine could not go on: {detail}"),
        _("What was written so far is kept. Send again; if it happens again, restart the engine."),
    ),
    ErrorCode.INTERRUPTED: lambda: (
        _("The engine was stopped in the middle ({command})."),
        _("Start it again when you like."),
    ),
    ErrorCode.REFERENCE_UNREADABLE: lambda: (
        _("The reference's log-probabilities in {path} cannot be used: {detail}"),
        _("Start the comparison again; the reference is measured anew."),
    ),
    ErrorCode.WRITE_FAILED: lambda: (
        _("The file {path} cannot be written: {detail}"),
        _("Make room on the disk or choose another folder, then go on; what was measured is kept."),
    ),
    ErrorCode.IMPORTANCE_UNREADABLE: lambda: (
        _("The importance matrix {path} cannot be used: {detail}"),
        _("Choose another one, or have one made here."),
    ),
    ErrorCode.IMPORTANCE_NEEDED: lambda: (
        _("Without an importance matrix {quantization} cannot be made."),
        _("Choose a text to make one from."),
    ),
    ErrorCode.UNKNOWN_QUANTIZATION: lambda: (
        _("There is no quantization “{quantization}”."),
        _("There are: {known}."),
    ),
    ErrorCode.SOURCE_QUANTIZED: lambda: (
        _("“{name}” is quantized already, to {quantization}: what was lost then is lost in whatever is made from it."),
        _("Take a file in F32, F16 or BF16 if there is one, or say that this is meant."),
    ),
    ErrorCode.QUANTIZE_FAILED: lambda: (
        _("The quantization {quantization} could not be made from {path}: {detail}"),
        _("The source is unchanged, and nothing was left behind."),
    ),
    ErrorCode.UNSUPPORTED_COMMAND: lambda: (
        _("The {backend} engine cannot do this ({command})."),
        _("Choose another engine or another model."),
    ),
    ErrorCode.PROTOCOL_MISMATCH: lambda: (
        _("The program and its engine are of different versions (ours {ours}, the engine's {theirs})."),
        _("Install Cutaway again, so that both come from one version."),
    ),
    ErrorCode.ENGINE_FAULT: lambda: (
        _("The engine met an error nobody foresaw: {detail}"),
        _("Try again. If it happens again, restart the engine; its log says more."),
    ),
    ErrorCode.TEMPLATE_MISSING: lambda: (
        _("This model brings no chat template, so it does not know how a dialogue is written."),
        _("Choose a model made for chat, often named “Instruct” or “Chat”."),
    ),
    ErrorCode.TEMPLATE_BROKEN: lambda: (
        _("This model's chat template is broken: {detail}"),
        _("Choose another model, or a newer file of this one."),
    ),
    ErrorCode.TEMPLATE_TOO_SLOW: lambda: (
        _("This model's chat template did not finish within {limit_s} seconds and was stopped."),
        _("The file may be faulty or hostile. Choose another one."),
    ),
    ErrorCode.TEMPLATE_TOO_LONG: lambda: (
        _("This model's chat template wrote more than {limit} and was stopped."),
        _("The file may be faulty or hostile. Choose another one."),
    ),
}

_NOTICES: dict[str, Callable[[], _Pair]] = {
    NoticeCode.CONTEXT_CLAMPED: lambda: (
        _("A longer context was asked for than this model can use; the model's own is in use."),
        _("The settings hold the context that is asked for."),
    ),
    NoticeCode.CONTEXT_BEYOND_TRAINING: lambda: (
        _("The context is longer than the model was trained for: far back in it, answers may make no sense."),
        _("A shorter context can be chosen in the settings."),
    ),
    NoticeCode.GPU_NOT_USED: lambda: (
        _("The GPU was asked for, but the model runs on the CPU."),
        _("Answers are the same, only slower. The engine's log says why."),
    ),
    NoticeCode.FLASH_ATTENTION_OFF: lambda: (
        _("Flash attention is not available for this model, so it is off."),
        _("Answers are the same; long chats take more memory and time."),
    ),
    NoticeCode.DTYPE_CHANGED: lambda: (
        _("This device does not compute in the number format of the model's file, so another one is in use."),
        _("Answers may differ in small ways from those on other devices."),
    ),
    NoticeCode.PLAIN_PATH: lambda: (
        _("This model runs without KV blocks, each chat with a cache of its own: {note}"),
        _("Answers are right, only slower and with more memory; chats share no beginnings."),
    ),
    NoticeCode.KV_TYPE_NOT_USED: lambda: (
        _("The KV cache was to be kept as {asked}; {backend} keeps it as {kv_type}."),
        _("Answers are not less exact. The chat takes more memory than {asked} would."),
    ),
}


def words_for(code: str, parameters: Mapping[str, Parameter]) -> Words:
    """Return the words for an error or a notice of an engine.

    Args:
        code: a value of ErrorCode or NoticeCode; an unknown one gives a general sentence.
        parameters: what stands behind the code in backends/errors.py; a missing one shows as "unknown".
    """
    pair = _pair_for(code, parameters)
    if pair is None:
        return Words(
            _("The engine reported something this version does not know ({code}).").format(code=one_line(code, 60)),
            _("Try again. The engine's log says more."),
        )
    values = _Values(parameters)
    return Words(*(_one_stop(sentence.format_map(values)) for sentence in pair))


def app_error(code: str, parameters: Mapping[str, Parameter]) -> AppError:
    """Return the error to raise for a code."""
    return AppError(words_for(code, parameters))


def words_for_exception(error: BaseException) -> Words:
    """Return the words for any exception; one nobody foresaw keeps its text to itself, since it may quote a prompt."""
    if isinstance(error, AppError):
        return error.words
    if isinstance(error, EngineError):
        return words_for(error.code.value, error.parameters)
    if isinstance(error, MemoryError):
        return Words(_("There is not enough memory."), _("Close other programs and try again."))
    if isinstance(error, OSError):
        reason = one_line(error.strerror or type(error).__name__)
        if error.filename is None:
            return Words(_("The system refused: {reason}.").format(reason=reason), _("Try again."))
        message = _("The system refused: {reason} ({path}).")
        return Words(
            message.format(reason=reason, path=one_line(str(error.filename))),
            _("Check that the folder exists, that you may write to it and that its disk has room."),
        )
    return Words(
        _("Something nobody foresaw happened ({kind}).").format(kind=type(error).__name__),
        _("Nothing you wrote is lost. Try again; the log in the logs folder says more."),
    )


def _pair_for(code: str, parameters: Mapping[str, Parameter]) -> _Pair | None:
    """Return the two sentences of a code before their values, or None for an unknown code."""
    if code == ErrorCode.OUT_OF_MEMORY and not (parameters.get("needed_bytes") and parameters.get("free_bytes")):
        return _("There is not enough memory for this."), _ERRORS[ErrorCode.OUT_OF_MEMORY]()[1]
    if code == ErrorCode.TEMPLATE_BROKEN and parameters.get("line"):
        return _("This model's chat template is broken in line {line}: {detail}"), _ERRORS[code]()[1]
    words = _ERRORS.get(code) or _NOTICES.get(code)
    return None if words is None else words()


def _one_stop(sentence: str) -> str:
    """Return the sentence with one full stop at its end, whether or not the engine's detail brought one."""
    return sentence if sentence.endswith((".", "!", "?", "…", "。")) else sentence + "."


class _Values(dict[str, str]):
    """A code's parameters as text for format_map: cleaned, grouped, with name and sizes derived, never missing."""

    def __init__(self, parameters: Mapping[str, Parameter]) -> None:
        super().__init__({key: _value(value) for key, value in parameters.items()})
        path = str(parameters.get("path", ""))
        self["name"] = one_line(_file_name(path), 80) or _("unknown")
        for key in ("needed", "free", "limit", "text"):
            size_bytes = parameters.get(f"{key}_bytes")
            self[key] = bytes_text(size_bytes if isinstance(size_bytes, int | float) else None)

    def __missing__(self, key: str) -> str:
        return _("unknown")


def _value(value: Parameter) -> str:
    if isinstance(value, str):
        return one_line(value)
    return f"{value:,}" if isinstance(value, int) else f"{value:g}"


def _file_name(path: str) -> str:
    return PureWindowsPath(path).name if "\\" in path else PurePath(path).name
