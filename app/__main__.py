"""Where the program starts: the window, or the command line, or the chat in the terminal where no window can open.

Imports nothing at its top but what Python has loaded already: a worker, a second start that only hands its files on,
and `--help` must not wait for a window's libraries. This is the one place of app/ that loads ui/, and by name.
"""

from __future__ import annotations

import importlib
import os
import sys

# Not for people: `cutaway selftest` draws its window in a child, which may die of a missing library.
_SELFTEST_WINDOW = "selftest-window"


def main(arguments: list[str] | None = None) -> int:
    """Start what the arguments ask for and return the exit code.

    Args:
        arguments: the command line without the program's name; None takes the process's own.
    """
    given = sys.argv[1:] if arguments is None else arguments
    if given[:1] == [_SELFTEST_WINDOW]:
        return _draw_window(given[1:])
    if all(_is_model_file(argument) for argument in given):  # none at all, too
        return _open_window(given)
    from app import cli

    return cli.run(given)


def _is_model_file(argument: str) -> bool:
    return argument.lower().endswith(".gguf") and not argument.startswith("-")


def _open_window(files: list[str]) -> int:
    """Open the window with these model files; where that cannot be, say why and chat in the terminal."""
    from app import display

    words = display.display_problem(os.environ, sys.platform)
    if words is None:
        try:
            window = importlib.import_module("ui.main")
        except ImportError as error:
            words = display.import_problem(error)
        else:
            return int(window.main(files))
    from app import cli

    return cli.chat_in_terminal(words, files)


def _draw_window(arguments: list[str]) -> int:
    """Draw a window into a picture; the last line on standard error says why it failed."""
    from app import display

    try:
        window = importlib.import_module("ui.main")
    except ImportError as error:
        sys.stderr.write(display.import_problem(error).message + "\n")
        return 1
    return int(window.selftest_window(*arguments))


if __name__ == "__main__":
    sys.exit(main())
