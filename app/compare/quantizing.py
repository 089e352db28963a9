"""Quantizations made here: how large each would be, the importance matrix of a text, the file, and that it runs.

Every step is done by a worker of its own. What exists is never changed: a file is written beside its place and gets its
name when it is whole; then it is loaded and has to write some tokens. Whatever goes wrong, or is cancelled, leaves
nothing behind. A source that is quantized already is taken only where that is said, and the result says so itself.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, Literal

from app.bench.engine_run import EngineEndedError, EngineRefusedError
from app.compare.command_worker import CommandWorker
from app.compare.provenance import REQUANTIZED_KEY, check_file
from app.compare.quantize_words import (
    exists_words,
    folder_words,
    lost_words,
    no_room_words,
    requantized_source_words,
    source_words,
    unsound_words,
)
from app.downloads.space import RESERVE_BYTES, free_bytes
from app.engines.model_check import checked_path, kind_of
from app.errors import AppError, Words, one_line, words_for, words_for_exception
from app.i18n import _
from app.models.byte_source import HeaderError
from app.models.split_set import read_set
from backends import protocol
from backends.client import WorkerCommand
from backends.errors import EngineError, ErrorCode
from backends.registry import FOLDER

Phase = Literal["load", "importance", "quantize", "verify"]
OnProgress = Callable[[Phase, float], None]

WINDOW_TOKENS: Final = 512  # of an importance matrix, as llama.cpp's tool has it
# A text beyond this changes an importance matrix hardly any more, and takes hours with a large model.
MOST_WINDOWS: Final = 128
# What a file is called until it runs; while the engine writes it, another ending stands behind this one.
STAGING_SUFFIX: Final = ".quantizing"
_PART_SUFFIX: Final = ".part"
# What lies about for so long, unchanged, is nobody's any more: the program was killed over it.
_STALE_S: Final = 3600.0
# Sources that lost nothing yet.
PLAIN_QUANTIZATIONS: Final = frozenset({"F64", "F32", "F16", "BF16"})
_VERIFY_TOKENS: Final = 8
_VERIFY_CONTEXT_TOKENS: Final = 256
_REQUEST = protocol.RequestId(1)


class QuantizeError(AppError):
    """A quantization cannot be made; the words say why, and nothing was left behind."""


@dataclass(frozen=True, slots=True)
class Planned:
    """What a quantization of a source would be; exact, from a dry run.

    Attributes:
        quantization: by name.
        size_bytes: of the file.
        bits_per_weight: effective, of all its tensors.
        tensors: how many there are.
        fallback_tensors: how many are stored in another type, because their rows are no whole blocks of it.
        needs_importance: whether it cannot be made without an importance matrix.
        requantized_from: what its weights were quantized to before; "" for original ones.
        fault: why it cannot be made at all; None when it can.
    """

    quantization: str
    size_bytes: int = 0
    bits_per_weight: float = 0.0
    tensors: int = 0
    fallback_tensors: int = 0
    needs_importance: bool = False
    requantized_from: str = ""
    fault: Words | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """A quantization that is to be made.

    Attributes:
        source: the model file; of a split set any part.
        quantization: by name.
        target: the file to be written.
        importance: an importance matrix of either format; None for none.
        allow_requantize: whether the source may be quantized already.
        threads: 0 for the engine's choice.
    """

    source: Path
    quantization: str
    target: Path
    importance: Path | None = None
    allow_requantize: bool = False
    threads: int = 0


@dataclass(frozen=True, slots=True)
class Made:
    """A quantization that was made, and runs.

    Attributes:
        path: the file.
        planned: what it is.
        took_s: for quantizing alone.
        text: what it wrote when it was tried; never kept.
    """

    path: Path
    planned: Planned
    took_s: float
    text: str


class Quantizer:
    """Makes quantizations of models, one at a time; every method blocks the thread that calls.

    Attributes:
        _command: how a worker is started; None starts our own.
        _is_cancelled: whether whoever waits wants an end; asked some twenty times a second.
    """

    def __init__(self, is_cancelled: Callable[[], bool] = lambda: False, command: WorkerCommand | None = None) -> None:
        self._is_cancelled = is_cancelled
        self._command = command

    def plan(self, source: Path, quantizations: Sequence[str], importance: Path | None = None) -> tuple[Planned, ...]:
        """Return what each quantization of a source would be; some tenths of a second each, nothing is written.

        Args:
            source: the model file.
            quantizations: by name.
            importance: an importance matrix; with one some tensors get other types.

        Raises:
            QuantizeError: the source is none.
            AppError: the engine refused or ended; the words say why.
            StoppedError: it was cancelled.
        """
        path = checked_source(source)
        found: list[Planned] = []
        with self._worker() as worker:
            for quantization in quantizations:
                wish = Wish(source=path, quantization=quantization, target=path, importance=importance)
                try:
                    found.append(_planned(quantization, worker.ask(_command(wish, dry_run=True), protocol.Quantized)))
                except EngineRefusedError as error:
                    if error.code != ErrorCode.QUANTIZE_FAILED:  # the others hold for every quantization
                        raise
                    found.append(Planned(quantization, fault=error.words))
        return tuple(found)

    def measure_importance(self, source: Path, text: str, text_name: str, target: Path, on_progress: OnProgress) -> int:
        """Run a model over a text and write its importance matrix, in llama.cpp's own format.

        Args:
            source: the model file; the less quantized the better.
            text: what it reads, at most MOST_WINDOWS windows of it.
            text_name: kept in the file, so that a result can say what it was made with.
            target: the file to be written; one that is there is replaced.
            on_progress: told how far the load and the reading are.

        Returns:
            How many tokens were read.

        Raises:
            QuantizeError: the source is none.
            AppError: the model cannot be loaded or run.
            StoppedError: it was cancelled.
        """
        path = checked_source(source)
        try:
            with self._worker() as worker:
                params = protocol.LoadParams(context_tokens=WINDOW_TOKENS)
                _load(worker, path, params, lambda fraction: on_progress("load", fraction))
                prompt = protocol.Text(text)
                token_ids = worker.ask(protocol.Tokenize(_REQUEST, prompt), protocol.Tokenized).token_ids
                token_ids = token_ids[: MOST_WINDOWS * WINDOW_TOKENS]
                command = protocol.CollectImportance(
                    request_id=_REQUEST,
                    token_ids=token_ids,
                    target_path=str(target.absolute()),
                    window_tokens=WINDOW_TOKENS,
                    text_name=text_name,
                )
                worker.finish(command, "importance", lambda event: on_progress("importance", event.done / event.total))
        finally:
            _discard(_part_of(target))  # a kill in the middle of the write leaves its beginning
        return len(token_ids)

    def make(self, wish: Wish, on_progress: OnProgress) -> Made:
        """Make a quantization, see that it runs, and return it.

        Args:
            wish: what is wanted.
            on_progress: told how far quantizing and trying are.

        Raises:
            QuantizeError: the source is none, the target exists, its folder is not there, there is no room, or the
                result does not run.
            AppError: the engine refused or ended; the words say why.
            StoppedError: it was cancelled.
        """
        target = wish.target.absolute()
        staging = target.with_name(target.name + STAGING_SUFFIX)
        path = checked_source(wish.source)
        check_target(target)
        discard_leftovers(target.parent)
        _discard(staging, _part_of(staging))
        wish = replace(wish, source=path, target=staging)
        try:
            with self._worker() as worker:
                wanted = worker.ask(_command(wish, dry_run=True), protocol.Quantized)
                check_room(wanted.size_bytes, target.parent)
                done = worker.ask(
                    _command(wish), protocol.Quantized, lambda event: on_progress("quantize", event.done / event.total)
                )
            text = self._verify(staging, on_progress)
            check_target(target)  # nothing that somebody else put there meanwhile is written over
            staging.rename(target)
        except OSError as error:
            raise QuantizeError(unsound_words(target, one_line(error.strerror or str(error)))) from error
        finally:
            _discard(staging, _part_of(staging))  # whatever happened: what is whole has its name by now
        return Made(target, _planned(wish.quantization, done), done.took_s, text)

    def _verify(self, path: Path, on_progress: OnProgress) -> str:
        """Load a new file and have it write some tokens; raises QuantizeError."""
        on_progress("verify", 0.0)
        params = protocol.LoadParams(context_tokens=_VERIFY_CONTEXT_TOKENS)
        sampling = protocol.SamplingParams(temperature=0.0, max_tokens=_VERIFY_TOKENS, ignore_eos=True)
        request = protocol.Generate(request_id=_REQUEST, prompt=protocol.Text("The"), params=sampling)
        try:
            with self._worker() as worker:
                _load(worker, checked_path(path, "llama_cpp"), params, lambda done: on_progress("verify", done / 2))
                text, figures = worker.answer(request)
        except (EngineError, EngineRefusedError, EngineEndedError) as error:
            raise QuantizeError(unsound_words(path, words_for_exception(error).message)) from error
        if figures.new_tokens < _VERIFY_TOKENS:
            raise QuantizeError(unsound_words(path, _("it does not write")))
        on_progress("verify", 1.0)
        return text

    def _worker(self) -> CommandWorker:
        return CommandWorker(self._is_cancelled, self._command)


# ------------------------------------------------------------------------------------------------------- checks


def checked_source(path: Path) -> Path:
    """Return what the engine is to open, of a split set the first part; raises QuantizeError."""
    path = path.expanduser().absolute()
    if path.is_dir() or kind_of(path) == FOLDER:
        raise QuantizeError(folder_words(path))
    try:
        return checked_path(path, "llama_cpp")
    except EngineError as error:
        raise QuantizeError(words_for(error.code, error.parameters)) from error


def source_warning(path: Path) -> str:
    """Return what a person must know of a source before it is quantized; "" when its weights are original."""
    try:
        header = read_set(checked_source(path)).header
    except HeaderError:  # it is refused with better words when it is opened
        return ""
    noted = header.text(REQUANTIZED_KEY)
    if noted:
        return requantized_source_words(one_line(noted, 60))
    if header.quantization not in PLAIN_QUANTIZATIONS:
        return source_words(header.quantization)
    provenance = check_file(path)
    return provenance.detail if provenance.is_requantized else ""


def check_target(target: Path) -> None:
    """Refuse a file that cannot be written; raises QuantizeError."""
    if target.exists():
        raise QuantizeError(exists_words(target))
    if not target.parent.is_dir():
        raise QuantizeError(lost_words(target.parent))


def check_room(size_bytes: int, folder: Path) -> None:
    """Refuse what the disk has no room for, with something left for everything else; raises QuantizeError."""
    try:
        free = free_bytes(folder)
    except OSError:  # the write will tell
        return
    if free < size_bytes + RESERVE_BYTES:
        raise QuantizeError(no_room_words(size_bytes, free, RESERVE_BYTES))


def target_path(folder: Path, name: str, quantization: str) -> Path:
    """Return where a quantization of a model goes, under the name that publishers give such files."""
    return folder / f"{name}-{quantization}.gguf"


def discard_leftovers(folder: Path) -> None:
    """Remove what a killed program left in a folder; what is being written at this moment stays."""
    oldest_s = time.time() - _STALE_S
    for pattern in (f"*.gguf{STAGING_SUFFIX}", f"*.gguf{STAGING_SUFFIX}{_PART_SUFFIX}"):
        for path in folder.glob(pattern):
            with contextlib.suppress(OSError):
                if path.stat().st_mtime < oldest_s:
                    path.unlink()


# ------------------------------------------------------------------------------------------------------ helpers


def _command(wish: Wish, *, dry_run: bool = False) -> protocol.Quantize:
    return protocol.Quantize(
        request_id=_REQUEST,
        source_path=str(wish.source),
        target_path=str(wish.target),
        quantization=wish.quantization,
        importance_path=str(wish.importance.expanduser().absolute()) if wish.importance is not None else "",
        threads=wish.threads,
        dry_run=dry_run,
        allow_requantize=wish.allow_requantize,
    )


def _planned(quantization: str, done: protocol.Quantized) -> Planned:
    return Planned(
        quantization=quantization,
        size_bytes=done.size_bytes,
        bits_per_weight=done.bits_per_weight,
        tensors=done.tensors,
        fallback_tensors=done.fallback_tensors,
        needs_importance=done.needs_importance,
        requantized_from=done.requantized_from,
    )


def _load(
    worker: CommandWorker, path: Path, params: protocol.LoadParams, on_progress: Callable[[float], None]
) -> protocol.ModelLoaded:
    command = protocol.LoadModel(str(path), params)
    return worker.ask(command, protocol.ModelLoaded, lambda event: on_progress(event.done / event.total))


def _part_of(path: Path) -> Path:
    return path.with_name(path.name + _PART_SUFFIX)


def _discard(*paths: Path) -> None:
    for path in paths:
        with contextlib.suppress(OSError):
            path.unlink(missing_ok=True)
