"""`cutaway models` and `cutaway fit`, and the one question before a load.

Says everything through the terminal it is given; prints nothing itself.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Protocol

from app import cli_commands, cli_fit, cli_text
from app.chat.messages import JsonObject
from app.context import AppContext
from app.engines.backend_choice import check_backend, kind_of_entry
from app.engines.supervisor import LoadRequest
from app.errors import AppError, Words, one_line
from app.i18n import _, ngettext
from app.models.adding import is_folder_of_models
from app.models.entry import ModelEntry
from app.models.fit_types import Fit, FitQuestion
from app.models.library import LibraryError
from app.models.removal import deletion_words
from app.units import bytes_text
from backends.registry import BACKENDS

DONE = 0


class Terminal(Protocol):
    """What these commands need of the terminal."""

    def line(self, text: str) -> None:
        """Print a line of output."""

    def json(self, value: object) -> None:
        """Print a value as JSON."""

    def notice(self, words: Words) -> None:
        """Say something that is to be known."""

    def muted(self, text: str) -> None:
        """Say something of less weight."""

    def progress_line(self, text: str) -> None:
        """Show how far something is, where a person looks on."""

    def agrees(self, question: str) -> bool | None:
        """Ask a person; None where nobody can be asked."""


def run(flags: argparse.Namespace, terminal: Terminal) -> int:
    """Do what `cutaway models …` asks for and return the exit code."""
    with cli_commands.opened_context() as context:
        for notice in context.notices:
            terminal.notice(notice.words)
        match flags.models_command:
            case "list":
                _list(context, flags, terminal)
            case "import":
                _import(context, flags.path, terminal)
            case "remove":
                _remove(context, flags, terminal)
    return DONE


def run_fit(flags: argparse.Namespace, terminal: Terminal) -> int:
    """Say what a model would take here and return the exit code; a model that does not fit is an answer, no error."""
    with cli_commands.opened_context() as context:
        entry = cli_fit.find_model(context, flags.model)
        if entry.fault:
            raise AppError(Words(_("{name}: {fault}").format(name=one_line(entry.name, 80), fault=entry.fault)))
        backend = flags.backend or context.backend_of(entry)
        if kind_of_entry(entry) not in BACKENDS[backend].loads:  # whether it is installed does not matter here
            check_backend(backend, str(entry.path), kind_of_entry(entry))
        question = FitQuestion(backend, cli_commands.load_params(context, flags, entry, backend))
        context.advisor.probe(entry, question.params, backend=backend)
        context.advisor.learn_bandwidth()
        fit = context.advisor.fit(entry, question.params, backend)
        measured = context.advisor.measured(entry, question.params, backend)
        if flags.json:
            terminal.json(cli_fit.fit_json(entry, question, fit, measured))
            return DONE
        sentence, *others = cli_fit.fit_lines(entry, question, fit)
        terminal.line(cli_text.safe_line(sentence))
        if fit.estimate is not None:
            for line in cli_text.table(cli_fit.fit_table(fit, measured)):
                terminal.line(line)
        for text in others:
            terminal.line(cli_text.safe_line(text))
    return DONE


def agree_to_load(
    context: AppContext, entry: ModelEntry, request: LoadRequest, terminal: Terminal, *, is_forced: bool
) -> None:
    """Have a person agree to what stands in the way of this load, if anything does.

    Raises:
        AppError: they did not, or nobody could be asked.
    """
    question = context.gate.question(entry, request.params, request.backend)
    if question is None:
        return
    if not is_forced:
        terminal.notice(question)
        if not terminal.agrees(_("Load it anyway?")):
            raise AppError(Words(_("The model was not loaded."), _("With --force it is loaded without asking.")))
    context.gate.agree(entry, request.params, request.backend)


def _list(context: AppContext, flags: argparse.Namespace, terminal: Terminal) -> None:
    library = context.library
    if not flags.no_scan:
        for problem in library.scan().problems:
            terminal.muted(problem)
    for text in library.notices():
        terminal.notice(Words(text))
    entries = library.entries()
    if flags.backend:
        backend = BACKENDS[flags.backend]
        entries = [entry for entry in entries if kind_of_entry(entry) in backend.loads]
    fits = {
        entry.key: context.advisor.fit(entry, context.load_params(entry, flags.backend), flags.backend)
        for entry in entries
        if not entry.fault
    }
    if flags.json:
        terminal.json([model_json(entry, fits.get(entry.key)) for entry in entries])
        return
    if not entries:
        terminal.notice(Words(_("There is no model here yet."), _("Add one with `cutaway models import FILE.gguf`.")))
        return
    for line in cli_text.models_table(entries, fits):
        terminal.line(line)
    terminal.muted(_disk_words(context, len(entries)))


def _disk_words(context: AppContext, count: int) -> str:
    use = context.library.disk_use()
    words = ngettext("{count} model, {size} on disk", "{count} models, {size} on disk", count)
    text = words.format(count=count, size=bytes_text(use.on_disk_bytes))
    if use.duplicate_bytes:
        text += _("; {size} are copies").format(size=bytes_text(use.duplicate_bytes))
    return text


def model_json(entry: ModelEntry, fit: Fit | None) -> JsonObject:
    """Return a model with the keys of `cutaway models list --json`."""
    return cli_text.model_json(entry) | {
        "max_context_tokens": dict(fit.max_context_tokens) if fit else None,
        "needed_bytes": fit.estimate.needed_bytes if fit and fit.estimate else None,
        "verdict": fit.verdict.value if fit else None,
    }


def _import(context: AppContext, path: Path, terminal: Terminal) -> None:
    library = context.library
    if is_folder_of_models(path):
        library.add_folder(path)
        summary = library.scan()
        words = _("{path} was added: {found} models are in the library now. Nothing was copied.")
        terminal.line(_safe(words.format(path=path, found=len(library.entries()))))
        for problem in summary.problems:
            terminal.muted(problem)
        return
    entry = library.import_path(path)
    library.hash(entry.key)
    terminal.line(_("{key} is in the library; its file stays where it is.").format(key=_safe(entry.key)))


def _remove(context: AppContext, flags: argparse.Namespace, terminal: Terminal) -> None:
    library = context.library
    folder = Path(flags.model).expanduser().absolute()
    if folder in library.folders():
        library.remove_folder(folder)
        terminal.line(_safe(_("{path} is no longer looked into. Its files stay.").format(path=folder)))
        return
    if not flags.delete:
        entry = library.remove(flags.model)
        message = _("{key} is forgotten. Its file stays: {path}")
        terminal.line(message.format(key=_safe(entry.key), path=_safe(str(entry.path))))
        return
    entry = library.find(flags.model)
    preview = library.delete_preview(entry.key)
    if preview.refusal:
        raise LibraryError(preview.refusal)
    _agree_to_delete(entry, preview.freed_bytes, flags, terminal)
    done = library.delete(entry.key, forever=flags.forever)
    terminal.line(_safe(deletion_words(entry.key, done)))


def _agree_to_delete(entry: ModelEntry, freed_bytes: int, flags: argparse.Namespace, terminal: Terminal) -> None:
    if flags.force:
        return
    words = _("Delete {key} for good?") if flags.forever else _("Move {key} to the trash?")
    question = f"{words.format(key=entry.key)} ({bytes_text(freed_bytes)})"
    if not terminal.agrees(question):
        raise AppError(Words(_("Nothing was deleted."), _("With --force it is deleted without asking.")))


def _safe(text: str) -> str:
    return cli_text.safe_line(text)
