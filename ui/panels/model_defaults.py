"""What a person wants for one model instead of the settings; folded away behind a line that says what there is.

Every field is that of a setting, described by its own entry of app/settings_fields.py. Knows no library.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

import msgspec
from PySide6.QtCore import Signal
from PySide6.QtWidgets import QFrame, QGridLayout, QHBoxLayout, QPushButton, QVBoxLayout, QWidget

from app.i18n import _
from app.models.entry import ModelDefaults, ModelEntry
from app.settings_fields import Settings, about
from app.units import count_text
from ui.models.model_choice import one_line
from ui.models.model_words import context_choices
from ui.widgets.labels import CaptionLabel, PlainLabel
from ui.widgets.optional_editor import OptionalEditor
from ui.widgets.wrapped_label import WrappedLabel

_EDITOR_PX: Final = 172
_CONTEXT: Final = "context_tokens"
_FEW_CHARACTERS: Final = 40


class ModelDefaultsCard(QFrame):
    """The card with a model's own defaults.

    Signals:
        defaults_changed(defaults): a person wants other defaults for the model that is shown.
        opened(is_open): the controls were shown or folded away.
    """

    defaults_changed = Signal(object)
    opened = Signal(bool)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setProperty("kind", "card")
        self._defaults = ModelDefaults()
        self._editors: dict[str, OptionalEditor] = {}
        self._trained_tokens = 0
        self._summary = WrappedLabel()
        self._change = QPushButton(_("Change…"))
        self._clear = QPushButton(_("As the settings"))
        self._fields = QWidget()
        self._grid = QGridLayout(self._fields)
        self._build()
        self._change.toggled.connect(self._on_change)
        self._clear.clicked.connect(self._on_clear)

    @property
    def defaults(self) -> ModelDefaults:
        """What is shown."""
        return self._defaults

    def set_entry(self, entry: ModelEntry) -> None:
        """Show the defaults of a model."""
        self._defaults = entry.defaults
        self._trained_tokens = entry.context_tokens
        self._show()

    def open_fields(self) -> None:
        """Show the controls."""
        self._change.setChecked(True)

    # ------------------------------------------------------------------------------------- build

    def _build(self) -> None:
        self._change.setCheckable(True)
        self._change.setAccessibleName(_("Change the defaults for this model"))
        self._clear.setToolTip(_("Take the settings for everything"))
        self._fields.hide()
        self._grid.setContentsMargins(0, 4, 0, 0)
        self._grid.setHorizontalSpacing(16)
        self._grid.setVerticalSpacing(8)
        self._grid.setColumnStretch(0, 1)
        buttons = QHBoxLayout()
        buttons.setSpacing(8)
        buttons.addWidget(self._change)
        buttons.addWidget(self._clear)
        buttons.addStretch(1)
        column = QVBoxLayout(self)
        column.setContentsMargins(16, 12, 16, 12)
        column.setSpacing(8)
        column.addWidget(CaptionLabel(_("DEFAULTS FOR THIS MODEL")))
        column.addWidget(self._summary)
        column.addLayout(buttons)
        column.addWidget(self._fields)
        column.addStretch(1)

    def _build_fields(self) -> None:
        """Make the controls; they are many, and most people never open them."""
        for row, name in enumerate(ModelDefaults.__struct_fields__):
            told = about(name)
            editor = _editor(name)
            editor.widget.setAccessibleName(told.title())
            editor.widget.setAccessibleDescription(told.sentence())
            editor.widget.setToolTip(told.sentence())
            title = PlainLabel(told.title())
            title.setBuddy(editor.widget)
            if told.is_long:
                self._grid.addWidget(title, row, 0, 1, 2)
                self._grid.addWidget(editor.widget, row + 1, 0, 1, 2)
            else:
                editor.widget.setFixedWidth(_EDITOR_PX)
                self._grid.addWidget(title, row, 0)
                self._grid.addWidget(editor.widget, row, 1)
            editor.edited.connect(self._on_edited)
            self._editors[name] = editor

    # ------------------------------------------------------------------------------------- slots

    def _on_change(self, is_open: bool) -> None:
        if is_open and not self._editors:
            self._build_fields()
        self._change.setText(_("Close") if is_open else _("Change…"))
        self._fields.setVisible(is_open)
        self.opened.emit(is_open)
        self._show()

    def _on_clear(self) -> None:
        self._tell(ModelDefaults())

    def _on_edited(self, name: str, value: object) -> None:
        if name == _CONTEXT and value is not None:
            value = int(str(value))
        self._tell(msgspec.structs.replace(self._defaults, **{name: value}))

    # ------------------------------------------------------------------------------------- helpers

    def _tell(self, defaults: ModelDefaults) -> None:
        if defaults != self._defaults:
            self._defaults = defaults
            self._show()
            self.defaults_changed.emit(defaults)

    def _show(self) -> None:
        for name, editor in self._editors.items():
            value = getattr(self._defaults, name)
            if name == _CONTEXT:
                editor.offer(context_choices(self._trained_tokens, value or 0))
                value = None if value is None else str(value)
            editor.set_value(value)
        words = summary_text(self._defaults)
        self._summary.setText(words or _("As the settings."))
        self._clear.setVisible(bool(words))


def summary_text(defaults: ModelDefaults) -> str:
    """Return what a model has instead of the settings: "16,384 tokens · q8_0 · Temperature 0.20"; "" for nothing."""
    facts = []
    if defaults.backend is not None:
        choices = about("backend").choices
        assert choices is not None
        facts.append(choices().get(defaults.backend, one_line(defaults.backend)))
    if defaults.context_tokens is not None:
        tokens = count_text(defaults.context_tokens)
        facts.append(_("{count} tokens").format(count=tokens) if defaults.context_tokens else _("Automatic"))
    if defaults.kv_type is not None:
        facts.append(defaults.kv_type)
    for name in ("threads", "temperature", "top_k", "top_p", "min_p", "repeat_penalty"):
        value = getattr(defaults, name)
        if value is not None:
            facts.append(f"{about(name).title()} {value:,}" if isinstance(value, int) else _decimal(name, value))
    if defaults.system_prompt is not None:
        prompt = one_line(defaults.system_prompt)
        is_long = len(prompt) > _FEW_CHARACTERS
        facts.append(f"“{prompt[:_FEW_CHARACTERS]}…”" if is_long else f"“{prompt}”")
    return " · ".join(facts)


def _decimal(name: str, value: float) -> str:
    return f"{about(name).title()} {value:.2f}"


def _editor(name: str) -> OptionalEditor:
    told, empty = about(name), _("As the settings")
    if name == _CONTEXT:
        told = replace(told, choices=_no_choices)
        return OptionalEditor(name, told, "", empty)
    return OptionalEditor(name, told, getattr(Settings(), name), empty)


def _no_choices() -> Mapping[str, str]:
    """Return nothing: the contexts depend on the model, and are offered with it."""
    return {}
