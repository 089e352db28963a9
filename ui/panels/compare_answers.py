"""Answers side by side: the reference's, and those of other runs, the first token that differs underlined.

Knows no folder. Answers are strangers' words: they are escaped before they are shown.
"""

from __future__ import annotations

import html
from collections.abc import Sequence
from typing import Final

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QFrame, QGridLayout, QLabel, QSizePolicy, QVBoxLayout, QWidget

from app.compare.plan import ComparisonPlan, PromptSpec, RunSpec
from app.compare.results import Answer, ComparisonResult
from app.i18n import _
from ui.models.compare_answer_text import MarkedText, agreement_words, marked_answer
from ui.models.model_choice import one_line
from ui.theme import READING_PX, ui_font
from ui.widgets.labels import ElidedLabel, MutedLabel, plain_tooltip
from ui.widgets.wrapped_label import WrappedLabel, breakable

_GAP_PX: Final = 12


class CompareAnswers(QWidget):
    """A block for each prompt; the runs stand side by side.

    Attributes:
        _run_ids: the runs that are shown, the reference first.
    """

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._run_ids: tuple[str, ...] = ()
        self._shown: tuple[ComparisonPlan, ComparisonResult, tuple[str, ...]] | None = None
        self._column = QVBoxLayout(self)
        self._column.setContentsMargins(0, 0, 0, 0)
        self._column.setSpacing(16)
        self._blocks: list[QWidget] = []

    @property
    def run_ids(self) -> tuple[str, ...]:
        """The runs that are shown."""
        return self._run_ids

    def set_answers(self, plan: ComparisonPlan, result: ComparisonResult, run_ids: Sequence[str]) -> None:
        """Show the answers of these runs, the reference's first; nothing where there are none."""
        wanted = (plan, result, tuple(dict.fromkeys((plan.reference.run_id, *run_ids))))
        if wanted == self._shown:
            return
        self._shown = wanted
        for block in self._blocks:
            self._column.removeWidget(block)
            block.hide()
            block.deleteLater()
        self._blocks = []
        specs = [run for run in plan.runs if run.run_id in wanted[2]]
        specs = sorted(specs, key=lambda run: wanted[2].index(run.run_id))
        self._run_ids = tuple(run.run_id for run in specs)
        for prompt in plan.workload.prompts:
            answers = [_answer_of(result, run.run_id, prompt.prompt_id) for run in specs]
            if any(answers):
                self._add_block(_Block(prompt, specs, answers, self))
        self.setVisible(bool(self._blocks))

    def _add_block(self, block: QWidget) -> None:
        self._column.addWidget(block)
        self._blocks.append(block)


class _Block(QWidget):
    """One prompt and the answers to it."""

    def __init__(
        self, prompt: PromptSpec, specs: Sequence[RunSpec], answers: Sequence[Answer | None], parent: QWidget
    ) -> None:
        super().__init__(parent)
        grid = QGridLayout(self)
        grid.setContentsMargins(0, 0, 0, 0)
        grid.setHorizontalSpacing(_GAP_PX)
        grid.setVerticalSpacing(4)
        words = WrappedLabel(prompt.text)
        words.setAccessibleName(_("Prompt: {text}").format(text=one_line(prompt.text)))
        grid.addWidget(words, 0, 0, 1, max(1, len(specs)))
        reference = answers[0]
        for column, (spec, answer) in enumerate(zip(specs, answers, strict=True)):
            grid.setColumnStretch(column, 1)
            grid.addWidget(_head(spec, answer, reference if column else None), 1, column)
            grid.addWidget(AnswerText(spec.label, answer, reference if column else None), 2, column)


class AnswerText(QFrame):
    """One answer; the token at which it leaves the reference's is bold and underlined."""

    def __init__(
        self, label: str, answer: Answer | None, reference: Answer | None, parent: QWidget | None = None
    ) -> None:
        super().__init__(parent)
        marked = marked_answer(answer, reference) if answer is not None else MarkedText("", "", "")
        self.setProperty("kind", "notice")
        self.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Preferred)
        self._text = QLabel()
        self._text.setFont(ui_font(READING_PX))
        self._text.setWordWrap(True)
        self._text.setTextFormat(Qt.TextFormat.RichText)
        self._text.setText(marked_html(marked) if answer is not None else html.escape(_("No answer.")))
        self._text.setAlignment(Qt.AlignmentFlag.AlignTop | Qt.AlignmentFlag.AlignLeft)
        self._text.setTextInteractionFlags(
            Qt.TextInteractionFlag.TextSelectableByMouse | Qt.TextInteractionFlag.TextSelectableByKeyboard
        )
        plain = f"{marked.before}{marked.marked}{marked.after}" if answer is not None else _("No answer.")
        self._text.setAccessibleName(_("Answer of {label}: {text}").format(label=label, text=plain))
        self._text.setAccessibleDescription(
            _("First different token: {token}").format(token=marked.marked) if marked.marked else ""
        )
        self._text.setToolTip(plain_tooltip(marked.tooltip))
        column = QVBoxLayout(self)
        column.setContentsMargins(16, 10, 16, 10)
        column.addWidget(self._text, 1)


def marked_html(marked: MarkedText) -> str:
    """Return an answer as the markup of a label: everything escaped, one part bold and underlined."""
    before, middle, after = (
        html.escape(breakable(part)).replace("\n", "<br>") for part in (marked.before, marked.marked, marked.after)
    )
    return f"<qt>{before}<b><u>{middle}</u></b>{after}</qt>" if middle else f"<qt>{before}</qt>"


def _head(spec: RunSpec, answer: Answer | None, reference: Answer | None) -> QWidget:
    """Return what stands over an answer: whose it is, and how much of it is the reference's."""
    agreed = agreement_words(answer, reference) if answer is not None else ""
    label = ElidedLabel(" · ".join(filter(None, (spec.label, agreed)))) if agreed else MutedLabel(spec.label)
    label.setMinimumWidth(0)
    return label


def _answer_of(result: ComparisonResult, run_id: str, prompt_id: str) -> Answer | None:
    run = result.run(run_id)
    answers = run.answers if run is not None else ()
    return next((answer for answer in answers if answer.prompt_id == prompt_id), None)
