"""A long word never makes a column wider."""

from __future__ import annotations

from ui.widgets.wrapped_label import WrappedLabel, breakable


def test_ordinary_words_are_left_alone():
    assert breakable("The model file was changed or removed while in use.") == (
        "The model file was changed or removed while in use."
    )


def test_a_long_path_can_be_broken_after_its_folders_and_a_long_name_anywhere():
    assert breakable("/home/someone/a/long/path") == "/\u200bhome/\u200bsomeone/\u200ba/\u200blong/\u200bpath"
    assert breakable("x" * 40).replace("\u200b", "") == "x" * 40
    assert max(len(part) for part in breakable("x" * 400).split("\u200b")) <= 16


def test_the_label_stays_narrow_and_its_accessible_name_is_the_text(qtbot):
    path = "/home/" + "averylongname" * 30 + "/file"
    label = WrappedLabel(path)
    qtbot.addWidget(label)
    assert label.minimumSizeHint().width() < 300
    assert label.accessibleName() == path
