"""The settings screen, made from the fields of app/settings_fields.py; every change counts at once.

Knows no setting by name: a new field appears here by itself. Beside them it says where things lie and which version
this is.
"""

from __future__ import annotations

from collections.abc import Mapping

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QFrame, QGridLayout, QHBoxLayout, QLineEdit, QScrollArea, QVBoxLayout, QWidget

from app.engines.backend_choice import takes_words
from app.errors import AppError
from app.i18n import _
from app.settings import Settings, SettingsStore
from app.settings_fields import about, shown_settings
from backends.registry import BACKENDS
from ui.widgets.labels import CaptionLabel, MutedLabel, PlainLabel, TitleLabel
from ui.widgets.setting_editor import SettingEditor, make_editor
from ui.widgets.wrapped_label import WrappedLabel

_MAX_WIDTH_PX = 760
_EDITOR_WIDTH_PX = 240

# A stretch beside which the empty sides count only once the column has its full width.
_ALL_THE_ROOM = 1000


class SettingsPanel(QWidget):
    """The settings screen.

    Attributes:
        _store: the settings.
        _editors: by the name of their setting.
        _errors: the line under each setting that says why a value was refused.

    Signals:
        _changed(settings): a setting changed, here or elsewhere; brings the change to the GUI thread.
    """

    _changed = Signal(object)

    def __init__(
        self, store: SettingsStore, folders: Mapping[str, str], version: str, parent: QWidget | None = None
    ) -> None:
        """Build the screen.

        Args:
            store: the settings.
            folders: what lies where: words, such as "Chats and models", and the path.
            version: of the program.
            parent: the widget it stands in.
        """
        super().__init__(parent)
        self._store = store
        self._editors: dict[str, SettingEditor] = {}
        self._errors: dict[str, WrappedLabel] = {}
        self._build(folders, version)
        self._changed.connect(self._on_changed)
        self.destroyed.connect(store.listen(self._tell))

    def _build(self, folders: Mapping[str, str], version: str) -> None:
        column = QWidget()
        column.setObjectName("settings_column")
        column.setMaximumWidth(_MAX_WIDTH_PX)
        inside = QVBoxLayout(column)
        inside.setContentsMargins(28, 16, 28, 28)
        inside.setSpacing(8)
        inside.addWidget(TitleLabel(_("Settings")))
        for heading, names in _grouped().items():
            inside.addSpacing(12)
            inside.addWidget(CaptionLabel(heading))
            inside.addWidget(self._build_group(names))
        inside.addSpacing(12)
        inside.addWidget(CaptionLabel(_("Where things lie")))
        inside.addWidget(_build_folders(folders))
        inside.addSpacing(12)
        inside.addWidget(CaptionLabel(_("Engines")))
        inside.addWidget(_build_engines())
        inside.addSpacing(4)
        inside.addWidget(MutedLabel(_("Cutaway {version}").format(version=version)))
        inside.addStretch()
        middle = QWidget()
        middle.setObjectName("settings_page")
        around = QHBoxLayout(middle)
        around.setContentsMargins(0, 0, 0, 0)
        around.addStretch(1)
        around.addWidget(column, _ALL_THE_ROOM)
        around.addStretch(1)
        scroll = QScrollArea()
        scroll.setObjectName("settings_scroll")
        scroll.setWidgetResizable(True)
        scroll.setFrameShape(QFrame.Shape.NoFrame)
        scroll.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        scroll.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        scroll.setWidget(middle)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.addWidget(scroll)

    def _build_group(self, names: list[str]) -> QFrame:
        card = QFrame()
        card.setProperty("kind", "card")
        grid = QGridLayout(card)
        grid.setContentsMargins(16, 12, 16, 12)
        grid.setHorizontalSpacing(16)
        grid.setVerticalSpacing(4)
        grid.setColumnStretch(0, 1)
        row = 0
        for name in names:
            row = self._build_row(grid, row, name)
        return card

    def _build_row(self, grid: QGridLayout, row: int, name: str) -> int:
        """Add a setting to a card; returns the row after it."""
        told = about(name)
        if row:
            grid.setRowMinimumHeight(row, 8)
            row += 1
        title = PlainLabel(told.title())
        words = QVBoxLayout()
        words.setSpacing(2)
        words.addWidget(title)
        words.addWidget(WrappedLabel(told.sentence(), "muted"))
        editor = make_editor(name, told, getattr(Settings(), name))
        editor.set_value(getattr(self._store.get(), name))
        editor.widget.setObjectName(f"setting_{name}")
        editor.widget.setAccessibleName(told.title())
        editor.widget.setAccessibleDescription(told.sentence())
        title.setBuddy(editor.widget)
        error = WrappedLabel(kind="error")
        error.hide()
        grid.addLayout(words, row, 0, Qt.AlignmentFlag.AlignVCenter)
        if told.is_long:
            grid.addWidget(editor.widget, row + 1, 0, 1, 2)
        else:
            editor.widget.setFixedWidth(_EDITOR_WIDTH_PX)
            grid.addWidget(editor.widget, row, 1, Qt.AlignmentFlag.AlignVCenter)
        grid.addWidget(error, row + 2, 0, 1, 2)
        editor.edited.connect(self._on_edited)
        self._editors[name] = editor
        self._errors[name] = error
        return row + 3

    def _on_edited(self, name: str, value: object) -> None:
        self._errors[name].hide()
        try:
            self._store.change(**{name: value})
        except AppError as error:
            self._errors[name].setText(f"{error.words.message} {error.words.hint}".rstrip())
            self._errors[name].show()

    def _on_changed(self, settings: Settings) -> None:
        for name, editor in self._editors.items():
            editor.set_value(getattr(settings, name))

    def _tell(self, settings: Settings, _names: frozenset[str]) -> None:
        """Bring a change from the thread that made it to the GUI thread."""
        self._changed.emit(settings)


def _grouped() -> dict[str, list[str]]:
    """Return the shown settings by their heading, both in the order of the fields."""
    groups: dict[str, list[str]] = {}
    for name in shown_settings():
        heading = about(name).group
        if heading is not None:
            groups.setdefault(heading(), []).append(name)
    return groups


def _build_folders(folders: Mapping[str, str]) -> QFrame:
    """Return a card with each folder's path, to be selected and copied."""
    card = QFrame()
    card.setProperty("kind", "card")
    grid = QGridLayout(card)
    grid.setContentsMargins(16, 12, 16, 12)
    grid.setHorizontalSpacing(16)
    grid.setVerticalSpacing(8)
    grid.setColumnStretch(1, 1)
    for row, (words, path) in enumerate(folders.items()):
        line = QLineEdit(path)
        line.setReadOnly(True)
        line.setCursorPosition(0)
        line.setAccessibleName(words)
        label = PlainLabel(words)
        label.setBuddy(line)
        grid.addWidget(label, row, 0)
        grid.addWidget(line, row, 1)
    return card


def _build_engines() -> QFrame:
    """Return a card with the engines that are there, and those that are not."""
    card = QFrame()
    card.setProperty("kind", "card")
    column = QVBoxLayout(card)
    column.setContentsMargins(16, 12, 16, 12)
    column.setSpacing(8)
    for backend in BACKENDS.values():
        if not backend.loads:
            continue  # runs no models of people
        takes = takes_words(backend)
        if backend.is_installed:
            words = _("{title} {version}: loads {takes}")
            column.addWidget(PlainLabel(words.format(title=backend.title, version=backend.version, takes=takes)))
        else:
            words = _("{title}: not installed; loads {takes}. `pip install {packages}` beside Cutaway brings it.")
            column.addWidget(
                WrappedLabel(words.format(title=backend.title, takes=takes, packages=backend.packages), kind="muted")
            )
    return card
