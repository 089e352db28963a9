"""Whether a window can open here, and the words where it cannot. Knows no Qt: it looks at the system around it."""

from __future__ import annotations

import ctypes
import re
from collections.abc import Callable, Mapping

from app.errors import Words, one_line
from app.i18n import _

# What Qt's wheels take from the system, and the Debian package of each. The first seven are those of the X11 plugin:
# when one of them is missing, Qt ends the process instead of raising an error.
_X11_LIBRARIES = {
    "libxcb-cursor.so.0": "libxcb-cursor0",
    "libxcb-icccm.so.4": "libxcb-icccm4",
    "libxcb-image.so.0": "libxcb-image0",
    "libxcb-keysyms.so.1": "libxcb-keysyms1",
    "libxcb-render-util.so.0": "libxcb-render-util0",
    "libxcb-shape.so.0": "libxcb-shape0",
    "libxkbcommon-x11.so.0": "libxkbcommon-x11-0",
}
_LIBRARIES = _X11_LIBRARIES | {
    "libEGL.so.1": "libegl1",
    "libGL.so.1": "libgl1",
    "libdbus-1.so.3": "libdbus-1-3",
    "libfontconfig.so.1": "libfontconfig1",
    "libfreetype.so.6": "libfreetype6",
    "libglib-2.0.so.0": "libglib2.0-0",
    "libxkbcommon.so.0": "libxkbcommon0",
}

# The dynamic linker's words, which are an ImportError's text on Linux.
_MISSING_LIBRARY = re.compile(r"(lib[^\s:/]+): cannot open shared object file")

CanLoad = Callable[[str], bool]


def can_load(library: str) -> bool:
    """Return whether the system has this library; it stays loaded, since Qt needs it next."""
    try:
        ctypes.CDLL(library)
    except OSError:
        return False
    return True


def display_problem(environment: Mapping[str, str], platform: str, can_load: CanLoad = can_load) -> Words | None:
    """Return why no window can open, or None when nothing speaks against it.

    Args:
        environment: the process's.
        platform: sys.platform; only Linux and its like can be without a display.
        can_load: whether a system library is there.
    """
    if platform in ("win32", "cygwin", "darwin"):
        return None
    asked = environment.get("QT_QPA_PLATFORM", "").partition(":")[0]
    if asked and asked not in ("xcb", "wayland"):
        return None  # offscreen, vnc and the like need no display
    has_x11, has_wayland = bool(environment.get("DISPLAY")), bool(environment.get("WAYLAND_DISPLAY"))
    if not has_x11 and not has_wayland:
        return Words(
            _("There is no display, so the chat opens in the terminal."),
            _("`cutaway --help` lists what else can be done here."),
        )
    if has_wayland:
        return None
    missing = [library for library in _X11_LIBRARIES if not can_load(library)]
    return _missing_words(missing) if missing else None


def import_problem(error: ImportError) -> Words:
    """Return the words for a window whose code or libraries could not be loaded."""
    found = _MISSING_LIBRARY.search(str(error))
    if found:
        return _missing_words([found.group(1)])
    return Words(
        _("The window cannot open: {detail}.").format(detail=one_line(str(error)).rstrip(".")),
        _("Install Cutaway again."),
    )


def _missing_words(libraries: list[str]) -> Words:
    message = _("The window cannot open: the system library {libraries} is missing.")
    packages = [_LIBRARIES[library] for library in libraries if library in _LIBRARIES]
    if packages:
        hint = _("Install it with: sudo apt-get install {packages}").format(packages=" ".join(packages))
    else:
        hint = _("Install the package of your system that holds it.")
    return Words(message.format(libraries=", ".join(libraries)), hint)
