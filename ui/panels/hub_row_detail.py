"""Everything about one row, under the table: whether it fits, what it means, what belongs to it, and its download.

Knows no hub and no queue: every wish is a signal.
"""

from __future__ import annotations

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QHBoxLayout, QPushButton, QVBoxLayout, QWidget

from app.downloads.types import Download, DownloadState, FileRef
from app.errors import one_line
from app.hub.types import QuantizationRow
from app.i18n import _
from app.models.fit_types import Fit
from app.models.fit_words import fit_sentence
from app.units import bytes_text
from ui.models.hub_table_model import HubAction
from ui.models.hub_words import projector_text, row_meaning, row_name
from ui.panels.download_row import DownloadRow
from ui.theme import Theme
from ui.widgets.labels import MutedLabel, TitleLabel, plain_words, set_kind
from ui.widgets.tick_box import TickBox
from ui.widgets.wrapped_label import WrappedLabel


class HubRowDetail(QWidget):
    """The chosen row.

    Attributes:
        button: downloads or uses it.
        projector: whether its vision projector comes along.
        download: how far it is; hidden where nothing is on its way.

    Signals:
        button_pressed(): a person wants what stands on the button.
        download_pressed(download_id, Button): a person wants this done with the download.
    """

    button_pressed = Signal()
    download_pressed = Signal(str, object)

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._title = TitleLabel()
        self._files = MutedLabel()
        self._sentence = WrappedLabel()
        self._meaning = WrappedLabel(kind="muted")
        self.button = QPushButton(_("Download"))
        self.projector = TickBox(_("With the vision projector"), theme)
        self.download = DownloadRow(theme)
        self._build()
        self.button.clicked.connect(self.button_pressed)
        self.download.pressed.connect(self.download_pressed)

    def set_row(self, row: QuantizationRow, files: str, fit: Fit | None, projector: FileRef | None) -> None:
        """Show a row.

        Args:
            row: of the table.
            files: what belongs to it: "3 files + vision projector".
            fit: whether it fits; None while that is not known.
            projector: the repo's vision projector; None where there is none.
        """
        self._title.setText(row_name(row))
        self._files.setText(" · ".join(filter(None, (bytes_text(row.size_bytes) if row.size_bytes else "", files))))
        self._show_sentence(row, fit)
        told = row_meaning(row)
        self._meaning.setText(told.sentence if told is not None and not row.is_broken else "")
        self._meaning.setVisible(bool(self._meaning.text()))
        has_projector = projector is not None and row.format == "gguf" and not row.is_broken
        self.projector.setVisible(has_projector)
        if projector is not None:
            self.projector.setText(plain_words(projector_text(projector)))

    def set_action(self, action: HubAction, download: Download | None, is_gated: bool) -> None:
        """Show what can be done, and how far a download is.

        Args:
            action: of the row's button.
            download: of the row; None for none.
            is_gated: whether something must be done first, so that this is not the main thing now.
        """
        is_shown = download is not None and download.state is not DownloadState.DONE and action.kind != "use"
        self.download.setVisible(is_shown)
        if download is not None and is_shown:
            self.download.set_download(download)
        is_simple = action.kind in ("download", "use")
        self.button.setVisible(is_simple)
        self.button.setText(plain_words(action.label))
        set_kind(self.button, "" if is_gated and action.kind == "download" else "primary")
        self.projector.setEnabled(action.kind == "download")

    def set_theme(self, theme: Theme) -> None:
        """Take the colours of a theme."""
        self.download.set_theme(theme)
        self.projector.set_theme(theme)

    # ------------------------------------------------------------------------------------- helpers

    def _build(self) -> None:
        self.projector.setChecked(True)
        head = QHBoxLayout()
        head.setSpacing(12)
        head.addWidget(self._title)
        head.addWidget(self._files)
        head.addStretch(1)
        head.addWidget(self.button)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(8)
        column.addLayout(head)
        for part in (self._sentence, self._meaning, self.projector, self.download):
            column.addWidget(part)

    def _show_sentence(self, row: QuantizationRow, fit: Fit | None) -> None:
        words, kind = "", ""
        if row.is_broken:
            words, kind = one_line(row.fault), "error"
        elif fit is not None:
            words = fit_sentence(fit)
            if not row.is_shape_exact:
                words = f"{words} {_('Estimated from another file of this model.')}"
        elif row.fault:
            words = one_line(row.fault)
        elif row.state in ("unread", "reading"):
            words = _("Its header is being read, to say whether it fits.")
        self._sentence.setText(words)
        self._sentence.setVisible(bool(words))
        set_kind(self._sentence, kind)
