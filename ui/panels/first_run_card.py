"""What an empty chat shows: what the starter model is for, prompts to try, or that there is no model yet.

Knows no model and no engine; the window says which of the two holds.
"""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QSize, Qt, Signal
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QPushButton, QSizePolicy, QVBoxLayout, QWidget

from app.i18n import _
from ui.theme import Theme
from ui.widgets.icons import icon
from ui.widgets.labels import MutedLabel, TitleLabel, plain_words, set_kind
from ui.widgets.wrapped_label import WrappedLabel

# Narrower than the reading column, so that it reads as a card and not as an answer.
_MAX_WIDTH_PX = 520
_ICON_PX = 16

# Small enough for a model of 135 million weights to answer well.
_EXAMPLES: tuple[Callable[[], str], ...] = (
    lambda: _("Explain in two sentences why the sky is blue."),
    lambda: _("Write a short poem about a lighthouse."),
    lambda: _("Give me three names for a grey cat."),
)


class FirstRunCard(QFrame):
    """A card in the middle of an empty chat.

    Signals:
        prompt_chosen(text): a person chose an example prompt.
        choose_file_requested(): a person wants to choose a model file.
        pick_requested(): a person wants to see the models that were picked for this machine.
    """

    prompt_chosen = Signal(str)
    choose_file_requested = Signal()
    pick_requested = Signal()

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setProperty("kind", "card")
        self.setMaximumWidth(_MAX_WIDTH_PX)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Maximum)
        self._theme = theme
        self._title = TitleLabel()
        self._sentence = WrappedLabel()
        self._try = MutedLabel(_("Try one of these"))
        self._examples = [self._build_example(words()) for words in _EXAMPLES]
        self._pick = QPushButton(plain_words(_("Picked for you")))
        self._pick.setToolTip(_("Good models that fit this machine"))
        self._pick.clicked.connect(self.pick_requested)
        self._choose = QPushButton(plain_words(_("Choose a file…")))
        self._choose.clicked.connect(self._on_choose)
        self._lock = QLabel()
        self._privacy = MutedLabel(_("Nothing leaves this machine."))
        self._build()
        self.set_theme(theme)
        self.show_starter()

    def show_starter(self) -> None:
        """Say what the starter model is for and offer prompts."""
        self._title.setText(_("Ask anything"))
        self._sentence.setText(_("This small model shows the engine; for real work pick a larger one."))
        set_kind(self._pick, "")
        self._show_examples(True)

    def show_model(self, name: str) -> None:
        """Offer prompts for a model that the person chose.

        Args:
            name: the model's name, plain text.
        """
        self._title.setText(_("Ask anything"))
        self._sentence.setText(_("{name} answers here.").format(name=name))
        self._show_examples(True)
        self._choose.hide()
        self._pick.hide()

    def show_no_model(self) -> None:
        """Say that there is no model and offer what fits this machine, or to choose a file."""
        self._title.setText(_("No model yet"))
        self._sentence.setText(_("Cutaway needs a model to answer: one from the hub, or a file that ends in .gguf."))
        set_kind(self._pick, "primary")
        self._show_examples(False)

    def set_theme(self, theme: Theme) -> None:
        """Draw the icons in a theme's colours."""
        self._theme = theme
        size = QSize(_ICON_PX, _ICON_PX)
        self._lock.setPixmap(icon("lock-outline", theme).pixmap(size, self.devicePixelRatio()))

    def _build(self) -> None:
        privacy = QHBoxLayout()
        privacy.setSpacing(8)
        privacy.addWidget(self._lock)
        privacy.addWidget(self._privacy, 1)
        privacy.addWidget(self._choose)
        privacy.addWidget(self._pick)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(24, 20, 24, 20)
        layout.setSpacing(8)
        layout.addWidget(self._title)
        layout.addWidget(self._sentence)
        layout.addSpacing(8)
        layout.addWidget(self._try)
        for example in self._examples:
            layout.addWidget(example)
        layout.addSpacing(8)
        layout.addLayout(privacy)

    def _build_example(self, text: str) -> QPushButton:
        button = QPushButton(plain_words(text))
        button.setProperty("kind", "prompt")
        button.setProperty("prompt", text)
        button.setCursor(Qt.CursorShape.PointingHandCursor)
        button.clicked.connect(self._on_example)
        return button

    def _show_examples(self, is_shown: bool) -> None:
        self._try.setVisible(is_shown)
        for example in self._examples:
            example.setVisible(is_shown)
        self._choose.show()
        self._pick.show()

    def _on_example(self) -> None:
        self.prompt_chosen.emit(self.sender().property("prompt"))

    def _on_choose(self) -> None:
        self.choose_file_requested.emit()
