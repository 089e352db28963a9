"""How a worker ended, in words: its exit code or signal, what it was doing, and the end of its log.

Knows no engine and no window; every sentence goes through gettext when it is needed.
"""

from __future__ import annotations

import signal as signals
from collections.abc import Callable, Sequence

from app.errors import Words
from app.i18n import _

_Pair = tuple[str, str]

# Windows has no signals; these exit codes say the same things (ntstatus.h).
_WINDOWS_CODES = {
    0xC0000005: "SIGSEGV",  # access violation
    0xC0000006: "SIGBUS",  # in-page error: the mapped file is gone
    0xC0000017: "SIGKILL",  # no memory
    0xC000001D: "SIGILL",  # illegal instruction
    0xC00000FD: "SIGSEGV",  # stack overflow
    0xC000012D: "SIGKILL",  # commitment limit: memory and page file are full
    0xC000013A: "SIGINT",  # Ctrl+C
    0xC0000135: "DLL",  # a library was not found
    0xC0000139: "DLL",  # a library lacks an entry point
    0xC0000142: "DLL",  # a library's start failed
    0xC0000374: "SIGABRT",  # heap corruption
    0xC0000409: "SIGABRT",  # fail-fast, which abort() ends in
}

_DEATHS: dict[str, Callable[[], _Pair]] = {
    "SIGKILL": lambda: (
        _("The system ended the engine, probably out of memory."),
        _("Try a smaller quantization or a shorter context."),
    ),
    "SIGSEGV": lambda: (
        _("The engine crashed: it reached for memory that is not its own."),
        _("Restart it. If it happens again, the model file may be damaged: download it again."),
    ),
    "SIGABRT": lambda: (
        _("The engine gave up: it found an error it cannot go on from."),
        _("Restart it. If it happens again, the model file may be damaged: download it again."),
    ),
    "SIGILL": lambda: (
        _("The engine stopped: this processor lacks an instruction that this build of the engine uses."),
        _("Install a build of Cutaway for older processors."),
    ),
    "SIGBUS": lambda: (
        _("The engine stopped: the model file was changed or removed while in use."),
        _("Put the file back or choose another one, then restart the engine."),
    ),
    "SIGFPE": lambda: (
        _("The engine stopped on an impossible calculation."),
        _("The model file may be damaged: download it again, or choose another one."),
    ),
    "SIGTERM": lambda: (_("Another program or the system asked the engine to end."), _("Restart it when you like.")),
    "SIGINT": lambda: (_("The engine was interrupted from the keyboard."), _("Restart it when you like.")),
    "DLL": lambda: (
        _("The engine could not start: one of its libraries is missing or broken."),
        _("Install Cutaway again."),
    ),
    "killed": lambda: (
        _("The engine did not answer any more, so Cutaway ended it."),
        _("Restart it. If it happens again, try a smaller model or a shorter context."),
    ),
    "protocol": lambda: (
        _("The engine said something Cutaway does not understand, so Cutaway ended it."),
        _("Restart it. If it happens again, install Cutaway again."),
    ),
    "no_memory": lambda: (
        _("There is not enough memory: the engine could not get what it needed, and gave up."),
        _("Try a smaller quantization or a shorter context."),
    ),
    "unheard": lambda: (
        _("Cutaway itself failed while listening to the engine, and ended it."),
        _("Nothing written is lost. Restart the engine; the program's log says more."),
    ),
    "not_started": lambda: (
        _("The engine's process could not be started."),
        _("Close other programs and try again. If it happens again, install Cutaway again."),
    ),
}

_PHASES: dict[str, Callable[[], str]] = {
    "starting": lambda: _("It was starting."),
    "loading": lambda: _("It was loading the model."),
    "reading": lambda: _("It was reading the prompt."),
    "writing": lambda: _("It was writing; the text so far is kept."),
}


# What llama.cpp and C++ write before they abort for want of memory.
_MEMORY_SIGNS = ("insufficient memory", "failed to allocate", "bad_alloc", "Cannot allocate memory")


def words_for_death(
    exit_code: int | None,
    signal: int | None,
    phase: str = "",
    cause: str = "exited",
    memory_hint: str = "",
    log_lines: Sequence[str] = (),
) -> Words:
    """Return the words for a worker that is gone.

    Args:
        exit_code: what the process returned, as the system or Popen gives it; None when unknown or a signal.
        signal: the number of the signal that ended it, or None.
        phase: what it was doing: "starting", "loading", "reading", "writing"; anything else says nothing.
        cause: as EngineDied says it: "exited", "killed" by us since it no longer answered, "protocol" when it spoke
            nonsense, "not_started", "unheard" when our own listener failed.
        memory_hint: a sentence with figures, such as "It needed about 6 GiB; 4 GiB were free."; shown where memory
            is the likely cause.
        log_lines: the end of its log, the only place where an engine says that it gave up for want of memory.
    """
    kind = cause if cause in _DEATHS else _death_kind(exit_code, signal)
    if kind == "SIGABRT" and any(sign in line for line in log_lines for sign in _MEMORY_SIGNS):
        kind = "no_memory"
    message, hint = _DEATHS[kind]() if kind in _DEATHS else _other_death(exit_code, signal)
    if kind in ("SIGKILL", "no_memory") and memory_hint:
        message = f"{message} {memory_hint}"
    told = _PHASES.get(phase)
    return Words(message if told is None else f"{message} {told()}", hint)


def _death_kind(exit_code: int | None, signal: int | None) -> str:
    """Return the name of the signal or of what stands for it; "" for an ordinary exit."""
    number = signal
    if number is None and exit_code is not None:
        if exit_code & 0xFFFFFFFF in _WINDOWS_CODES:
            return _WINDOWS_CODES[exit_code & 0xFFFFFFFF]
        # Popen gives a signal as a negative exit code, a shell or a sandbox as 128 plus its number.
        number = -exit_code if -65 < exit_code < 0 else exit_code - 128 if 128 < exit_code < 193 else None
    if number is None:
        return ""
    try:
        return signals.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _other_death(exit_code: int | None, signal: int | None) -> _Pair:
    """Return the words for an exit without a story of its own."""
    kind = _death_kind(exit_code, signal)
    restart = _("Restart it. If it happens again, its log says more.")
    if kind:
        return _("The engine was ended by {signal}.").format(signal=kind), restart
    if exit_code == 0:
        return _("The engine ended by itself."), restart
    if exit_code is None:
        return _("The engine ended, and the system does not say why."), restart
    return _("The engine ended with exit code {code}.").format(code=exit_code), restart
