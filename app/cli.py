"""The command line: the same services as the window's, shown in a terminal. The only module that prints.

Answers go to standard output and everything else to standard error, so that a pipe gets the answer alone. Exit codes:
0 done, 1 failed, 2 a command line that cannot be, 130 Ctrl+C.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import json
import os
import signal
import sys
from collections.abc import Iterator, Sequence
from io import TextIOWrapper
from pathlib import Path

from app import cli_bench, cli_commands, cli_models, cli_text, selftest
from app.chat.messages import JsonObject, MessageState
from app.cli_chat import Answer, WaitingChat, use_memory_store
from app.cli_parser import UsageError, parse
from app.errors import AppError, Words, words_for_exception
from app.i18n import _
from app.models.library import LibraryError
from app.units import NBSP, percent_text, seconds_text
from backends.errors import EngineError
from backends.registry import BACKENDS

DONE, FAILED, USAGE, INTERRUPTED = 0, 1, 2, 130

_MUTED, _PLAIN = "\x1b[2m", "\x1b[0m"
_CLEAR_LINE = "\r\x1b[K"


def run(arguments: Sequence[str]) -> int:
    """Do what the arguments ask for and return the exit code."""
    _open_streams()
    terminal = Terminal()
    try:
        code = _dispatch(arguments, terminal)
        terminal.flush()
        return code
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:  # the reader of a pipe, such as `head`, has seen enough
        terminal.abandon()
        return FAILED
    except UsageError as error:
        terminal.error(error.words)
        return USAGE
    except LibraryError as error:
        terminal.error(Words(str(error)))
    except (AppError, EngineError, OSError, MemoryError) as error:
        terminal.error(words_for_exception(error))
    except SystemExit as end:  # help was asked for
        return int(end.code or 0)
    return FAILED


def chat_in_terminal(words: Words, files: Sequence[str]) -> int:
    """Say why no window opens, and chat in the terminal; with the first of the model files, where there is one."""
    _open_streams()
    Terminal().notice(words)
    return run(["chat", "--model", files[0]] if files else ["chat"])


class Terminal:
    """The streams of the command line.

    Attributes:
        shows_text: whether an answer is shown while it is written.
        _is_shown_out: whether a person sees standard output.
        _is_styled: whether standard error takes ANSI codes.
        _is_mid_line: whether an answer was begun that has not ended its line.
        _has_progress: whether the last line of standard error is a progress line.
    """

    def __init__(self) -> None:
        self.shows_text = True
        self._is_shown_out = sys.stdout.isatty()
        self._is_styled = sys.stderr.isatty() and os.environ.get("TERM") != "dumb" and "NO_COLOR" not in os.environ
        self._is_mid_line = False
        self._has_progress = False

    # -------------------------------------------------------------------------------- the face of a chat

    def text(self, piece: str) -> None:
        """Show a piece of an answer: as it is in a pipe, harmless in a terminal."""
        if self.shows_text:
            self._clear_progress()
            print(cli_text.terminal_safe(piece) if self._is_shown_out else piece, end="", flush=True)
            self._is_mid_line = not piece.endswith("\n")

    def notice(self, words: Words) -> None:
        """Say something that is to be known."""
        self.error(words)

    def progress(self, fraction: float) -> None:
        """Show how far a load is, where a person looks on."""
        if fraction < 1.0:
            self.progress_line(_("Loading the model: {percent}").format(percent=percent_text(fraction)))
        else:
            self._clear_progress()

    def progress_line(self, text: str) -> None:
        """Show how far something is, where a person looks on; the next line takes its place."""
        if self._is_styled:
            line = cli_text.safe_line(text.replace(NBSP, " "))
            print(f"{_CLEAR_LINE}{line}", end="", file=sys.stderr, flush=True)
            self._has_progress = True

    # ------------------------------------------------------------------------------------- everything else

    def end_text(self) -> None:
        """End the answer's last line."""
        if self._is_mid_line:
            print(flush=True)
            self._is_mid_line = False

    def line(self, text: str) -> None:
        """Print a line of output."""
        self._clear_progress()
        print(text, flush=True)

    def json(self, value: object) -> None:
        """Print a value as JSON; in a terminal as ASCII, which no escape code survives."""
        self.line(json.dumps(value, indent=2, ensure_ascii=self._is_shown_out, allow_nan=False))

    def error(self, words: Words) -> None:
        """Say what happened and what to do, on standard error."""
        self._clear_progress()
        self.end_text()
        print("cutaway: " + cli_text.safe_line(words.message), file=sys.stderr)
        if words.hint:
            print("  " + cli_text.safe_line(words.hint), file=sys.stderr)
        sys.stderr.flush()

    def muted(self, text: str) -> None:
        """Say something of less weight, on standard error."""
        self._clear_progress()
        safe = cli_text.safe_line(text)
        print(f"{_MUTED}{safe}{_PLAIN}" if self._is_styled else safe, file=sys.stderr, flush=True)

    def read_line(self) -> str | None:
        """Return the next line a person types; None at the end (Ctrl+D).

        Raises:
            KeyboardInterrupt: Ctrl+C.
        """
        self._clear_progress()
        prompt = "> "
        if not self._is_shown_out:  # a pipe gets the answers alone
            print(prompt, end="", file=sys.stderr, flush=True)
            prompt = ""
        try:
            return input(prompt)
        except EOFError:
            print(file=sys.stderr)
            return None

    def agrees(self, question: str) -> bool | None:
        """Ask a person on the terminal; None where nobody can be asked."""
        self._clear_progress()
        if sys.stdin is None or not (sys.stdin.isatty() and sys.stderr.isatty()):
            return None
        print(f"{cli_text.safe_line(question)} [y/N] ", end="", file=sys.stderr, flush=True)
        answer = sys.stdin.readline().strip().casefold()
        return answer in (_("y"), _("yes"), "y", "yes")

    def flush(self) -> None:
        """Write what waits; raises BrokenPipeError when nobody reads."""
        sys.stdout.flush()

    def abandon(self) -> None:
        """Let what waits go nowhere, so that Python does not complain of it at the end."""
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)

    def _clear_progress(self) -> None:
        if self._has_progress:
            print(_CLEAR_LINE, end="", file=sys.stderr, flush=True)
            self._has_progress = False


def _open_streams() -> None:
    """Speak UTF-8 whatever the locale says; what it cannot hold is replaced, and a closed stream swallows."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # closed by the one who started us
            setattr(sys, name, Path(os.devnull).open("w"))  # noqa: SIM115 - open as long as the program runs
    for stream in (sys.stdin, sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(encoding="utf-8", errors="replace")


def _dispatch(arguments: Sequence[str], terminal: Terminal) -> int:
    flags = parse(arguments, {"quantize": _add_quantize})
    match flags.command:
        case "chat":
            return _chat(flags, terminal)
        case "models" if flags.models_command in ("search", "show", "download"):
            from app import cli_hub  # brings the HTTP client, which nothing else needs

            return cli_hub.run(flags, terminal)
        case "models":
            return cli_models.run(flags, terminal)
        case "fit":
            return cli_models.run_fit(flags, terminal)
        case "bench":
            return cli_bench.run(flags, terminal)
        case "compare":
            from app import cli_compare  # brings numpy, which nothing else needs

            return cli_compare.run(flags, terminal)
        case "quantize":
            from app import cli_quantize

            return cli_quantize.run(flags, terminal)
        case _:
            return _selftest(flags, terminal)


def _add_quantize(parser: argparse.ArgumentParser) -> None:
    from app import cli_quantize  # only for its own command

    cli_quantize.add_flags(parser)


# --------------------------------------------------------------------------------------------------- chat


def _chat(flags: argparse.Namespace, terminal: Terminal) -> int:
    cli_commands.check_chat(flags)
    prompt = cli_commands.read_prompt(flags, sys.stdin)
    with cli_commands.opened_context() as context:
        for notice in context.notices:
            terminal.notice(notice.words)
        if flags.temporary:
            use_memory_store(context)
        request, entry = cli_commands.load_request(context, flags)
        for text in context.library.notices():
            terminal.notice(Words(text))
        model = entry.key if entry is not None else flags.model or request.backend
        if entry is not None:
            cli_models.agree_to_load(context, entry, request, terminal, is_forced=flags.force)
        chat = WaitingChat(context, terminal, wanted=cli_commands.wanted_params(context, flags, entry))
        with _interrupts_go_to(chat):
            loaded = chat.load(request)
        chat.begin(flags.system, cli_commands.chat_params(flags))
        if prompt is None:
            title = BACKENDS[loaded.backend].title
            terminal.muted(" · ".join(filter(None, (model, title, loaded.device))))
            return _dialogue(chat, terminal)
        terminal.shows_text = not flags.json and flags.out is None
        with _interrupts_go_to(chat):
            answer = chat.ask(prompt)
        _deliver(answer, cli_text.answer_json(answer.message, loaded, model), flags, terminal)
        _show_end(answer, terminal, shows_figures=not flags.json)
        return _exit_code(answer)


def _dialogue(chat: WaitingChat, terminal: Terminal) -> int:
    with contextlib.suppress(ImportError):  # line editing, where the system has it; nothing typed is kept in a file
        importlib.import_module("readline")
    terminal.muted(_("Ctrl+C stops an answer, /new begins a new chat, /quit or Ctrl+D ends."))
    while True:
        try:
            line = terminal.read_line()
        except KeyboardInterrupt:  # an answer that had ended by then, or a line that is not to be sent
            terminal.line("")
            terminal.muted(_("/quit or Ctrl+D ends."))
            continue
        match line.strip() if line is not None else None:
            case None | "/quit":
                return DONE
            case "":
                continue
            case "/new":
                chat.begin_anew()
                terminal.muted(_("A new chat begins with your next line."))
                continue
        try:
            with _interrupts_go_to(chat):
                answer = chat.ask(line or "")
        except AppError as error:  # of the store; the next line may fare better
            terminal.error(error.words)
            continue
        _show_end(answer, terminal, shows_figures=True)


def _deliver(answer: Answer, figures: JsonObject, flags: argparse.Namespace, terminal: Terminal) -> None:
    """Put the one answer where the flags want it; a file that cannot be written loses nothing."""
    if flags.out is None:
        if flags.json:
            terminal.json(figures)
        return
    text = json.dumps(figures, indent=2, ensure_ascii=False) if flags.json else answer.message.text
    try:
        cli_commands.write_answer(flags.out, text + "\n", is_forced=flags.force)
    except OSError:
        terminal.shows_text = True
        terminal.text(text)
        terminal.end_text()
        raise


def _show_end(answer: Answer, terminal: Terminal, *, shows_figures: bool) -> None:
    terminal.end_text()
    if answer.words is not None:
        terminal.error(answer.words)
    figures = cli_text.figures_line(answer.message) if shows_figures else ""
    if figures:
        terminal.muted(figures)


def _exit_code(answer: Answer) -> int:
    if answer.is_interrupted:
        return INTERRUPTED
    return DONE if answer.message.state is MessageState.COMPLETE else FAILED


@contextlib.contextmanager
def _interrupts_go_to(chat: WaitingChat) -> Iterator[None]:
    """Have Ctrl+C stop what the chat waits for, in order."""
    before = signal.signal(signal.SIGINT, lambda _number, _frame: chat.interrupt())
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before or signal.SIG_DFL)


# --------------------------------------------------------------------------------------------- self-test


def _selftest(flags: argparse.Namespace, terminal: Terminal) -> int:
    def show(check: selftest.Check) -> None:
        mark = _("ok    ") if check.is_passed else _("failed")
        time = seconds_text(check.duration_s).replace(NBSP, " ")
        terminal.line(f"{mark}  {check.name}: {_safe(check.reason)} ({time})")

    checks = selftest.run_checks(None if flags.json else show, flags.backend)
    is_passed = all(check.is_passed for check in checks)
    if flags.json:
        terminal.json({"passed": is_passed, "checks": [selftest.check_json(check) for check in checks]})
    return DONE if is_passed else FAILED


def _safe(text: str) -> str:
    return cli_text.safe_line(text)
