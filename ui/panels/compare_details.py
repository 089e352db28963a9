"""Everything about the run that is chosen in the table: its checks and its figures, or why it failed.

Knows no folder.
"""

from __future__ import annotations

from typing import Final

from PySide6.QtCore import Qt
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QBoxLayout, QHBoxLayout, QLabel, QVBoxLayout, QWidget

from app.compare.plan import ComparisonPlan
from app.compare.results import ComparisonResult
from app.compare.verdict import Check, checks, difference_words, unranked_words
from app.i18n import _
from ui.models.compare_facts import check_about, check_title, run_facts
from ui.models.compare_words import NOT_KNOWN
from ui.panels.compare_fact_grid import CompareFactGrid
from ui.theme import Theme
from ui.widgets.icons import icon
from ui.widgets.labels import CaptionLabel, plain_tooltip
from ui.widgets.wrapped_label import WrappedLabel

_ICON_PX: Final = 16
# From this width on checks and figures stand side by side.
_WIDE_PX: Final = 820
_SIGNS: Final = {
    "pass": ("check", "compute"),
    "warn": ("alert-outline", "kv"),
    "fail": ("alert-circle-outline", "limit"),
    "unknown": ("help-circle-outline", "muted"),
}


class CompareDetails(QWidget):
    """The chosen run.

    Attributes:
        grid: its figures.
    """

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._shown: tuple[Check, ...] | None = None
        self._caption = CaptionLabel()
        self._failure = WrappedLabel(kind="error")
        self._note = WrappedLabel(kind="muted")
        self._checks = QWidget()
        self._check_column = QVBoxLayout(self._checks)
        self._check_column.setContentsMargins(0, 0, 0, 0)
        self._check_column.setSpacing(6)
        self.grid = CompareFactGrid()
        self._sides = QBoxLayout(QBoxLayout.Direction.TopToBottom)
        self._sides.setSpacing(16)
        self._sides.addWidget(self._checks, 2, Qt.AlignmentFlag.AlignTop)
        self._sides.addWidget(self.grid, 3, Qt.AlignmentFlag.AlignTop)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(8)
        for widget in (self._caption, self._failure, self._note):
            column.addWidget(widget)
        column.addLayout(self._sides)

    @property
    def check_words(self) -> list[str]:
        """What the checks say."""
        return [_check_words(check) for check in self._shown or ()]

    def show_run(self, plan: ComparisonPlan, result: ComparisonResult, run_id: str) -> None:
        """Show a run of a comparison; one that was not begun says so."""
        spec = plan.run(run_id)
        run = result.run(run_id)
        self.setVisible(spec is not None)
        if spec is None:
            return
        self._caption.setText(spec.label)
        self._failure.setText(run.failure if run is not None else "")
        self._failure.setVisible(bool(self._failure.text()))
        notes = [spec.note, _neighbour_words(plan, result, run_id)]
        notes += [] if run is not None else [_("This run was not begun.")]
        self._note.setText(" ".join(filter(None, notes)))
        self._note.setVisible(bool(self._note.text()))
        found = checks(run) if run is not None else ()
        self._show_checks(found)
        self.grid.set_facts(
            [fact for fact in run_facts(spec, run) if fact.value != NOT_KNOWN] if run is not None else []
        )
        self.grid.setVisible(bool(self.grid.facts))

    def set_theme(self, theme: Theme) -> None:
        """Take the colours of a theme."""
        self._theme = theme
        if self._shown is not None:
            shown, self._shown = self._shown, None
            self._show_checks(shown)

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Put checks and figures side by side where there is room."""
        super().resizeEvent(event)
        is_wide = self.width() >= _WIDE_PX
        self._sides.setDirection(QBoxLayout.Direction.LeftToRight if is_wide else QBoxLayout.Direction.TopToBottom)

    def _show_checks(self, found: tuple[Check, ...]) -> None:
        if found == self._shown:
            return
        self._shown = found
        while (item := self._check_column.takeAt(0)) is not None:
            old = item.widget()
            if old is not None:
                old.hide()
                old.deleteLater()
        for check in found:
            self._check_column.addWidget(self._check_line(check))
        self._checks.setVisible(bool(found))

    def _check_line(self, check: Check) -> QWidget:
        line = QWidget(self._checks)
        is_grave = check.code == "finite"  # nothing else that a check finds makes the answers useless
        name, role = _SIGNS["warn" if check.state == "fail" and not is_grave else check.state]
        line.setToolTip(plain_tooltip(check_about(check.code)))
        sign = QLabel(line)
        sign.setPixmap(icon(name, self._theme, role=role).pixmap(_ICON_PX, _ICON_PX))
        row = QHBoxLayout(line)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(8)
        row.addWidget(sign, 0, Qt.AlignmentFlag.AlignTop)
        row.addWidget(WrappedLabel(_check_words(check)), 1)
        return line


def _check_words(check: Check) -> str:
    title = check_title(check.code)
    return _("{title}: {words}").format(title=title, words=check.words) if title else check.words


def _neighbour_words(plan: ComparisonPlan, result: ComparisonResult, run_id: str) -> str:
    """Return how a run differs from its neighbours by size."""
    labels = {run.run_id: run.label for run in plan.runs}
    sentences = []
    for one in result.differences:
        if run_id not in (one.first, one.second):
            continue
        words = difference_words(result, one.first, one.second)
        if one.is_real and words and words != unranked_words():
            nearer = one.first if one.kl < 0 else one.second
            words = _("nearer to the reference") if nearer == run_id else _("farther from the reference")
        other = one.second if run_id == one.first else one.first
        if words:
            sentences.append(_("Beside {other}: {words}.").format(other=labels.get(other, other), words=words))
    return " ".join(sentences)
