"""What the commands of the command line do, apart from printing: open, choose, read, check, write.

Flags hold for one run: nothing here changes the person's settings, which a window may have open at the same time.
"""

from __future__ import annotations

import argparse
import contextlib
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import TextIO

import msgspec

from app.chat.messages import JsonObject
from app.cli_parser import SAMPLING_FLAGS, UsageError
from app.context import AppContext, Notice
from app.engines.backend_choice import check_backend, kind_of_entry
from app.engines.supervisor import LoadRequest
from app.errors import AppError, Words, one_line
from app.i18n import _
from app.log import start_log
from app.models.entry import ModelEntry
from app.paths import open_paths
from backends.protocol import LoadParams
from backends.registry import BACKENDS, Backend

# What the template renderer takes; a longer text would only be refused later.
MAX_PROMPT_BYTES = 4 * 2**20

_LOG_NAME = "cutaway-cli"


@contextlib.contextmanager
def opened_context() -> Iterator[AppContext]:
    """Open the person's folders and everything in them, with a log; close it all, whatever happens inside."""
    paths, problems = open_paths()
    log = start_log(paths.logs, _LOG_NAME)
    try:
        context = AppContext(paths, [Notice(f"folder {number}", words) for number, words in enumerate(problems)])
        try:
            yield context
        finally:
            with interrupts_ignored():  # the engine's end and the last writes take a moment
                context.close()
    finally:
        log.close()


@contextlib.contextmanager
def interrupts_ignored() -> Iterator[None]:
    """Take no Ctrl+C meanwhile."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before or signal.SIG_DFL)


# ------------------------------------------------------------------------------------------------- chat


def check_chat(flags: argparse.Namespace) -> None:
    """Refuse what cannot be before anything is opened.

    Raises:
        UsageError: with the words for it.
    """
    if flags.draft is not None:
        raise UsageError(
            Words(
                _("Speculative decoding comes with a later version."), _("Leave --draft out: the answer is the same.")
            )
        )
    out: Path | None = flags.out
    if out is None:
        return
    if out.is_dir() or not out.absolute().parent.is_dir():
        message = _("The answer cannot be written to {path}: its folder is not there.")
        if out.is_dir():
            message = _("The answer cannot be written to {path}: that is a folder.")
        raise UsageError(Words(message.format(path=one_line(str(out))), _("Name a file after --out.")))
    if out.exists() and not flags.force:
        message = _("The file {path} is there already.").format(path=one_line(str(out)))
        raise UsageError(Words(message, _("Choose another one, or write over it with --force.")))


def read_prompt(flags: argparse.Namespace, stdin: TextIO | None) -> str | None:
    """Return what is to be answered: --prompt, else all of standard input where it is no terminal; None: a dialogue.

    Raises:
        UsageError: there is nothing to answer, it is too long, or a flag needs a prompt and there is none.
    """
    given: str | None = flags.prompt
    if given is not None:
        # bytes of the command line that are no text arrive as halves of characters
        text = given.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    elif stdin is None or not stdin.isatty():
        data = stdin.buffer.read(MAX_PROMPT_BYTES + 1) if stdin is not None else b""
        if len(data) > MAX_PROMPT_BYTES:
            raise UsageError(
                Words(_("The text on standard input is longer than 4 MiB."), _("Give the model a part of it."))
            )
        text = data.decode("utf-8", "replace").rstrip("\r\n")
    else:
        if flags.json or flags.out is not None:
            flag = "--json" if flags.json else "--out"
            message = _("{flag} is for one answer, and there is no prompt.").format(flag=flag)
            raise UsageError(Words(message, _("Add --prompt TEXT, or leave {flag} out.").format(flag=flag)))
        return None
    if not text.strip():
        raise UsageError(
            Words(_("There is nothing to answer: the prompt is empty."), _("Write it after --prompt, or pipe it in."))
        )
    return text


def load_request(context: AppContext, flags: argparse.Namespace) -> tuple[LoadRequest, ModelEntry | None]:
    """Return what to load, and the library's entry for it; None for an engine that needs no model.

    Raises:
        AppError: there is no such model, or it cannot be used.
        LibraryError: no model or more than one is called so; the text lists what is there.
    """
    if flags.backend and not BACKENDS[flags.backend].loads:
        # its model is a script, or nothing at all; the worker has another current folder
        path = str(Path(flags.model).expanduser().absolute()) if flags.model else ""
        return LoadRequest(path, flags.backend, load_params(context, flags, None, flags.backend)), None
    entry = _chosen_model(context, flags.model)
    backend = flags.backend or context.backend_of(entry)
    check_backend(backend, str(entry.path), kind_of_entry(entry))
    return LoadRequest(str(entry.path), backend, load_params(context, flags, entry, backend)), entry


def load_params(context: AppContext, flags: argparse.Namespace, entry: ModelEntry | None, backend: str) -> LoadParams:
    """Return how a model is loaded: the flags, else its own defaults, else the settings.

    Raises:
        UsageError: a flag asks for what this backend has not.
    """
    check_load_flags(flags, BACKENDS[backend])
    given = {"context_tokens": flags.context, "kv_type": flags.kv_type, "threads": flags.threads}
    given |= {"gpu_layers": flags.gpu_layers, "device": flags.device or None}
    return msgspec.structs.replace(
        context.load_params(entry, backend), **{name: value for name, value in given.items() if value is not None}
    )


def wanted_params(context: AppContext, flags: argparse.Namespace, entry: ModelEntry | None) -> LoadParams:
    """Return how a person wants a model loaded, whatever the backend makes of it."""
    wanted = context.wanted_params(entry)
    return msgspec.structs.replace(wanted, kv_type=flags.kv_type or wanted.kv_type)


def check_load_flags(flags: argparse.Namespace, backend: Backend) -> None:
    """Raise UsageError where a flag asks for what a backend has not; a flag that was not given asks for nothing."""
    if flags.kv_type is not None and not backend.can_store(flags.kv_type):
        message = _("The {backend} engine cannot keep the KV cache as {type}.")
        hint = _("It has {types}. Leave --kv-type out, or choose another engine with --backend.")
        raise UsageError(
            Words(
                message.format(backend=backend.title, type=flags.kv_type),
                hint.format(types=", ".join(backend.kv_types)),
            )
        )
    if flags.gpu_layers and backend.loads and not backend.takes_gpu_layers:
        message = _("The {backend} engine puts a model on one device as a whole, not in layers.")
        hint = _("Name the device with --device instead of --gpu-layers: {devices}.")
        raise UsageError(Words(message.format(backend=backend.title), hint.format(devices=", ".join(backend.devices))))
    if flags.device.partition(":")[0].lower() not in ("", *backend.devices):
        message = _("The {backend} engine has no device {device}.")
        hint = _("It has {devices}.").format(devices=", ".join(backend.devices))
        if backend.takes_gpu_layers:
            hint = _("It puts layers on a GPU with --gpu-layers N.")
        raise UsageError(Words(message.format(backend=backend.title, device=one_line(flags.device, 40)), hint))


def _chosen_model(context: AppContext, text: str) -> ModelEntry:
    entry = context.library.find(text) if text else context.preferred_model()
    if entry is None:
        raise AppError(
            Words(
                _("There is no model here yet."),
                _("Give one with --model FILE.gguf, or add it with `cutaway models import FILE.gguf`."),
            )
        )
    if entry.fault:
        message = _("{name}: {fault}")
        raise AppError(
            Words(
                message.format(name=one_line(entry.name, 80), fault=one_line(entry.fault)),
                _("`cutaway models list` shows the others."),
            )
        )
    return entry


def chat_params(flags: argparse.Namespace) -> JsonObject:
    """Return the sampling params that were given; the others stay those of the settings."""
    given = {name: getattr(flags, name) for name in SAMPLING_FLAGS}
    return {name: value for name, value in given.items() if value is not None}


def write_answer(path: Path, text: str, *, is_forced: bool) -> None:
    """Write an answer to a file of its own.

    Raises:
        OSError: it cannot be written, or is there already and is not to be written over.
    """
    with path.open("w" if is_forced else "x", encoding="utf-8", errors="replace", newline="\n") as file:
        file.write(text)
