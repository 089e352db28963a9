"""The question before a deletion says what it frees, where the files go and why some bytes stay."""

from __future__ import annotations

from pathlib import Path

from app.models.removal import Deletion
from app.units import NBSP
from ui.models.deletion_question import DeletionQuestion, deletion_question

GIB = 2**30


def asked(*, freed_bytes=GIB, uses_trash=True, count=1, **more):
    paths = tuple(Path(f"/m/{number}") for number in range(count))
    found = deletion_question(Deletion(paths, freed_bytes, uses_trash, **more))
    return found.message.replace(NBSP, " "), found.hint.splitlines(), found.can_trash, found.can_delete


def test_a_refusal_is_an_answer_and_no_question():
    assert deletion_question(Deletion((), 0, False, "No.")) == DeletionQuestion("No.")


def test_what_goes_where():
    trash = "It goes to the trash; the room is free once that is emptied."
    assert asked() == ("Delete 1 file and free 1.00 GiB?", [trash, "/m/0"], True, True)
    message, hint, can_trash, _can_delete = asked(uses_trash=False, count=5)
    assert message == "Delete 5 files and free 1.00 GiB?"
    assert hint == ["There is no trash here: it is gone for good.", "/m/0", "/m/1", "/m/2", "…"]
    assert not can_trash
    assert "used elsewhere" in asked(freed_bytes=0)[0]


def test_why_bytes_stay():
    message, hint, _can_trash, can_delete = asked(freed_bytes=0, uses_trash=False, kept="They stay.")
    assert (message, can_delete) == ("Delete 1 file? It frees nothing.", True)
    assert hint[0] == "They stay. Only the name goes; it can be downloaded again."
    assert asked(kept="Some stay.")[1][0].startswith("Some stay. It goes to the trash")
