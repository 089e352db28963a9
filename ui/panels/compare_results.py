"""The page of what a comparison found: the verdict first, the table, the chosen run, the answers, the conditions.

Knows no folder and no engine: it is given the plan and the result.
"""

from __future__ import annotations

from typing import Final

from PySide6.QtCore import Signal
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QFrame, QHBoxLayout, QMenu, QPushButton, QSizePolicy, QVBoxLayout, QWidget

from app.compare.plan import ComparisonPlan
from app.compare.results import ComparisonResult
from app.i18n import _
from ui.models.compare_facts import condition_facts
from ui.models.compare_words import facts_text, neighbours_text, state_words, whole_count
from ui.models.model_choice import one_line
from ui.panels.compare_answers import CompareAnswers
from ui.panels.compare_details import CompareDetails
from ui.panels.compare_fact_grid import CompareFactList
from ui.panels.compare_fold import CompareFold
from ui.panels.compare_table import CompareTable
from ui.panels.compare_warnings import CompareWarnings
from ui.theme import READING_PX, Theme, ui_font
from ui.widgets.labels import CaptionLabel, ElidedLabel, plain_words
from ui.widgets.wide_page import WidePage
from ui.widgets.wrapped_label import WrappedLabel

_MOST_PX: Final = 1360
# From this width on a third answer has room beside the other two.
_THREE_ANSWERS_PX: Final = 900


class CompareResults(WidePage):
    """A comparison that was begun.

    Attributes:
        table: a row for each run.
        details: the chosen run.
        answers: side by side.
        conditions: folded at first.
        use_button, resume_button, export_button: what can be done.

    Signals:
        use_requested(run_id): a person wants to chat with a run's model.
        resume_requested(): a person wants it to go on.
        table_requested(): a person wants all figures as a table.
        json_requested(), csv_requested(): a person wants a file.
    """

    use_requested = Signal(object)
    resume_requested = Signal()
    table_requested = Signal()
    json_requested = Signal()
    csv_requested = Signal()

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(_MOST_PX, parent)
        self._shown: tuple[ComparisonPlan, ComparisonResult] | None = None
        self._usable: frozenset[str] = frozenset()
        self._title = ElidedLabel(kind="title")
        self._facts = ElidedLabel()
        self.resume_button = QPushButton(_("Go on"))
        self.export_button = QPushButton(_("Export"))
        self.use_button = QPushButton(_("Use"))
        self._verdict = QFrame()
        self._sentence = WrappedLabel()
        self._state = WrappedLabel(kind="muted")
        self._warnings = CompareWarnings(theme)
        self.table = CompareTable(theme)
        self._alike = WrappedLabel(kind="muted")
        self.details = CompareDetails(theme)
        self._answers_caption = CaptionLabel(_("Answers · underlined = first token that differs"))
        self.answers = CompareAnswers()
        self._condition_list = CompareFactList()
        self.conditions = CompareFold(_("Conditions"), self._condition_list, theme)
        self._build()
        self._connect()

    # ------------------------------------------------------------------------------------- public

    @property
    def shown(self) -> tuple[ComparisonPlan, ComparisonResult] | None:
        """What is shown."""
        return self._shown

    @property
    def sentence(self) -> str:
        """The verdict as it stands at the top."""
        return self._sentence.accessibleName()

    def show_result(self, plan: ComparisonPlan, result: ComparisonResult, usable: frozenset[str]) -> None:
        """Show a comparison.

        Args:
            plan: what was to be done.
            result: what was found so far.
            usable: run_ids whose models can be loaded in the chat.
        """
        is_same = self._shown is not None and self._shown[0].comparison_id == plan.comparison_id
        self._shown, self._usable = (plan, result), usable
        self._title.setText(one_line(plan.title))
        self._facts.setText(facts_text(plan, result))
        self._show_verdict(plan, result)
        self._warnings.set_warnings(result.warnings)
        chosen = self.table.chosen_key if is_same else ""
        self.table.runs.set_usable(usable)
        self.table.runs.set_result(plan, result)
        if not self.table.choose(chosen):
            self.table.choose(_first_choice(plan, result))
        self._alike.setText(neighbours_text(plan, result))
        self._alike.setVisible(bool(self._alike.text()))
        self._condition_list.set_facts(condition_facts(plan, result))
        if not is_same:
            self.conditions.set_open(False)
            self.scroll_to(self.table)
        self._show_buttons(plan, result)
        self._show_chosen()

    def set_can_resume(self, can_resume: bool) -> None:
        """Say whether no other comparison is under way."""
        self.resume_button.setEnabled(can_resume)
        self.resume_button.setToolTip("" if can_resume else _("Another comparison is running."))

    def set_theme(self, theme: Theme) -> None:
        """Take the colours of a theme."""
        for part in (self._warnings, self.table, self.details, self.conditions):
            part.set_theme(theme)

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Put a third answer beside the others where there is room."""
        super().resizeEvent(event)
        self._show_answers()

    # ------------------------------------------------------------------------------------- build

    def _build(self) -> None:
        self.use_button.setProperty("kind", "primary")
        menu = QMenu(self.export_button)
        menu.addAction(_("Show all figures as table")).triggered.connect(self.table_requested)
        menu.addAction(_("Report (comparison.json)…")).triggered.connect(self.json_requested)
        menu.addAction(_("Table (CSV)…")).triggered.connect(self.csv_requested)
        self.export_button.setMenu(menu)
        self._title.setSizePolicy(QSizePolicy.Policy.Maximum, QSizePolicy.Policy.Preferred)
        head = QHBoxLayout()
        head.setSpacing(12)
        head.addWidget(self._title)
        head.addWidget(self._facts, 1)
        for button in (self.resume_button, self.export_button, self.use_button):
            head.addWidget(button)
        self.head.addLayout(head)
        self._verdict.setProperty("kind", "notice")
        self._sentence.setFont(ui_font(READING_PX))
        inside = QVBoxLayout(self._verdict)
        inside.setContentsMargins(16, 9, 16, 9)
        inside.setSpacing(4)
        inside.addWidget(self._sentence)
        inside.addWidget(self._state)
        self.head.addWidget(self._verdict)
        self.column.setSpacing(16)
        for widget in (self._warnings, self.table, self._alike, self.details):
            self.column.addWidget(widget)
        self.column.addSpacing(4)
        self.column.addWidget(self._answers_caption)
        self.column.addWidget(self.answers)
        self.column.addWidget(self.conditions)
        self.column.addStretch(1)

    def _connect(self) -> None:
        self.table.entry_chosen.connect(self._on_chosen)
        self.table.action_requested.connect(self.use_requested)
        self.use_button.clicked.connect(self._on_use)
        self.resume_button.clicked.connect(self._on_resume)

    # ------------------------------------------------------------------------------------- slots

    def _on_chosen(self, _run_id: str) -> None:
        self._show_chosen()

    def _on_use(self) -> None:
        if self._shown is not None and self._shown[1].recommended:
            self.use_requested.emit(self._shown[1].recommended)

    def _on_resume(self) -> None:
        self.resume_requested.emit()

    # ------------------------------------------------------------------------------------- helpers

    def _show_verdict(self, plan: ComparisonPlan, result: ComparisonResult) -> None:
        done, total = whole_count(plan, result.runs), len(plan.runs)
        is_whole = result.state == "done" and done >= total
        state = "" if is_whole else state_words(result.state, done, total)
        state = f"{state[:1].upper()}{state[1:]}." if state else ""
        self._sentence.setText(result.sentence or _("Nothing can be said yet."))
        self._state.setText(state)
        self._state.setVisible(bool(state))

    def _show_buttons(self, plan: ComparisonPlan, result: ComparisonResult) -> None:
        spec = plan.run(result.recommended)
        has_use = spec is not None and spec.run_id in self._usable
        self.use_button.setVisible(has_use)
        if spec is not None:
            self.use_button.setText(plain_words(_("Use {label}").format(label=spec.label)))
            words = _("Load it in the chat: the smallest within your limit that fits.")
            if spec.kv_type != plan.reference.kv_type:
                words = _("Load it in the chat, which keeps its KV cache as {type} from then on.").format(
                    type=spec.kv_type
                )
            self.use_button.setToolTip(words)
        has_failed = any(run.failure for run in result.runs)
        self.resume_button.setVisible(result.state != "done" or has_failed)
        self.resume_button.setText(_("Try again") if result.state == "done" else _("Go on"))

    def _show_chosen(self) -> None:
        if self._shown is not None:
            self.details.show_run(*self._shown, self.table.chosen_key)
            self._show_answers()

    def _show_answers(self) -> None:
        if self._shown is None:
            return
        plan, result = self._shown
        reference = plan.reference.run_id
        others = [self.table.chosen_key, result.recommended, *(run.run_id for run in reversed(plan.candidates))]
        wanted = [one for one in dict.fromkeys(others) if one and one != reference and result.run(one) is not None]
        self.answers.set_answers(plan, result, wanted[: 2 if self.width() >= _THREE_ANSWERS_PX else 1])
        self._answers_caption.setVisible(not self.answers.isHidden())


def _first_choice(plan: ComparisonPlan, result: ComparisonResult) -> str:
    if result.recommended:
        return result.recommended
    return plan.candidates[0].run_id if plan.candidates else plan.reference.run_id
