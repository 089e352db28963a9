"""What a person is told while a download goes on or rests: nothing here is an error.

The words for what ends a download are in faults.py and http_faults.py.
"""

from __future__ import annotations

from app.errors import Words
from app.i18n import _
from app.units import bytes_text


def in_use_words() -> Words:
    """Say that somebody else is fetching the same file."""
    return Words(
        _("This file is being downloaded already, here or by another program."),
        _("This download waits until that one has ended."),
    )


def no_ranges_words() -> Words:
    """Say that the server begins anew, and that what is here stays."""
    return Words(
        _("The server cannot continue where it stopped and sends everything again."),
        _("What is here is kept; the download goes on when the server has come as far."),
    )


def changed_words() -> Words:
    """Say that what is here is of another version of the file."""
    return Words(
        _("The file on the server is not the one that was begun, so it is fetched from its beginning."),
    )


def damaged_words() -> Words:
    """Say that what came is wrong, for the first time."""
    return Words(_("The file arrived damaged, so it is fetched once more from its beginning."))


def damaged_copy_words() -> Words:
    """Say that a complete file was found, and is wrong."""
    return Words(_("The copy that is on this disk already is damaged, so the file is fetched again."))


def interrupted_words() -> Words:
    """Say that the program ended while it was under way."""
    return Words(_("Cutaway ended while this was under way."), _("Resume it: what is here is kept."))


def leftover_words(here_bytes: int) -> Words:
    """Say that an unfinished file was found that no download knows."""
    return Words(
        _("An unfinished file of an earlier download; {size} are here.").format(size=bytes_text(here_bytes)),
        _("Resume it, or delete it."),
    )


def nameless_words(here_bytes: int) -> Words:
    """Say that an unfinished file was found, and nothing says what it is."""
    return Words(
        _("An unfinished file of which nobody knows what it is; it takes {size}.").format(size=bytes_text(here_bytes)),
        _("Delete it to free the space."),
    )


def queue_lost_words(where: str) -> Words:
    """Say that the list of downloads could not be read."""
    return Words(
        _("The list of downloads was damaged; it was put aside as {name}.").format(name=where),
        _("Unfinished files are still on the disk and are listed as such."),
    )
