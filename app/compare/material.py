"""What every run of a comparison is given, as token ids: windows of the texts, prompts, multiple-choice questions.

Tokenized once, by the reference; every run gets the same ids. Knows no folder.
"""

from __future__ import annotations

import hashlib

import msgspec

from app.chat.prompts import render_prompt
from app.compare.plan import WINDOW_TOKENS, ChoiceSpec, ComparisonPlan, PromptSpec, TextSpec
from app.compare.run_files import ChoiceTokens, Material, PromptTokens, WindowTokens
from app.compare.run_worker import RunnerServices, RunWorker
from app.compare.texts import beginning_of
from app.compare.windows import available, bos_of, cut
from app.errors import AppError, Words, one_line, words_for_exception
from app.i18n import _, ngettext
from backends import protocol
from backends.errors import EngineError
from backends.renderer_client import RenderMessage


def make_material(worker: RunWorker, plan: ComparisonPlan, services: RunnerServices) -> Material:
    """Return the tokens of a plan.

    Args:
        worker: with the reference loaded.
        plan: says which texts, prompts and questions.
        services: read the texts and render the prompts.

    Raises:
        AppError: a text cannot be read, or none is long enough for a window.
    """
    loaded = worker.loaded
    notes: list[str] = []
    windows: list[WindowTokens] = []
    empty = worker.tokenize(protocol.Text(""))
    for text in plan.workload.texts:
        windows += _windows_of(text, _text_ids(worker, text, services), empty, notes)
    if not windows and plan.workload.texts:
        message = _("The text is too short: a window takes {count} tokens.").format(count=WINDOW_TOKENS)
        raise AppError(Words(message, _("Choose a longer text.")))
    prompts = [_prompt_tokens(worker, prompt, services, notes) for prompt in plan.workload.prompts]
    choices = [_choice_tokens(worker, choice) for choice in plan.workload.choices]
    return Material(
        tokenizer_hash=loaded.tokenizer_hash,
        vocabulary_tokens=loaded.vocabulary_tokens,
        architecture=loaded.architecture,
        parameters_count=loaded.parameters_count,
        windows=tuple(windows),
        prompts=tuple(prompts),
        choices=tuple(choices),
        sha256=hashlib.sha256(msgspec.msgpack.encode((windows, prompts, choices))).hexdigest(),
        notes=tuple(dict.fromkeys(notes)),
    )


def longest_tokens(material: Material, plan: ComparisonPlan) -> int:
    """Return the context that the longest piece of work needs."""
    limits = {prompt.prompt_id: prompt.max_tokens for prompt in plan.workload.prompts}
    speed = plan.workload.speed
    return max(
        WINDOW_TOKENS if material.windows else 0,
        speed.prompt_tokens + speed.new_tokens + 1 if speed.rounds else 0,
        *(len(prompt.token_ids) + limits[prompt.prompt_id] for prompt in material.prompts),
        *(len(choice.question_ids) + max(map(len, choice.answers)) for choice in material.choices),
    )


def check_same_model(material: Material, loaded: protocol.ModelLoaded, needed_tokens: int) -> None:
    """Refuse a run that cannot be compared with the reference.

    Args:
        material: says what the reference is.
        loaded: what the engine says of the run.
        needed_tokens: the context that the work needs.

    Raises:
        AppError: it has another vocabulary, is another model, or has too short a context.
    """
    hint = _("Compare quantizations of one and the same model.")
    if loaded.tokenizer_hash != material.tokenizer_hash:
        raise AppError(Words(_("This model has another vocabulary than the reference."), hint))
    if loaded.architecture != material.architecture or not _is_alike(
        loaded.parameters_count, material.parameters_count
    ):
        raise AppError(Words(_("This is another model than the reference."), hint))
    if loaded.context_tokens < needed_tokens:
        message = _("The context is too short: {context} tokens, and the work needs {needed}.")
        raise AppError(
            Words(
                message.format(context=f"{loaded.context_tokens:,}", needed=f"{needed_tokens:,}"),
                _("Choose a longer context, or a smaller amount of work."),
            )
        )


def _is_alike(count: int, other: int) -> bool:
    """Whether two numbers of weights may be those of one model: a file may hold the embedding a second time."""
    return not (count and other) or 3 * max(count, other) <= 4 * min(count, other)


def _windows_of(text: TextSpec, ids: tuple[int, ...], empty: tuple[int, ...], notes: list[str]) -> list[WindowTokens]:
    """Return a text's windows; of a text that is too short those that there are, which is noted."""
    count = min(text.windows, available(ids))
    if count < text.windows:
        words = ngettext(
            "The text “{title}” is short: {count} window of it is scored.",
            "The text “{title}” is short: {count} windows of it are scored.",
            count,
        )
        notes.append(words.format(title=one_line(text.title or text.text_id, 60), count=count))
    windows = cut(ids, count, bos_of(empty, ids))
    return [
        WindowTokens(text_id=text.text_id, number=number, token_ids=window) for number, window in enumerate(windows)
    ]


def _text_ids(worker: RunWorker, text: TextSpec, services: RunnerServices) -> tuple[int, ...]:
    content = services.read_text(text)
    beginning = beginning_of(content, text.windows)
    ids = worker.tokenize(protocol.Text(beginning))
    if available(ids) < text.windows and len(content) > len(beginning):
        ids = worker.tokenize(protocol.Text(content))
    return ids


def _prompt_tokens(worker: RunWorker, prompt: PromptSpec, services: RunnerServices, notes: list[str]) -> PromptTokens:
    """Return a prompt in the model's chat template; as it is, for a model that has none."""
    asked: protocol.Prompt = protocol.Text(prompt.text)
    if worker.loaded.chat_template:
        try:
            asked, problem = render_prompt(services.renderer, worker.loaded, (RenderMessage("user", prompt.text),))
        except EngineError as error:
            raise AppError(words_for_exception(error)) from error
        if problem is not None:
            notes.append(problem.message)
    else:
        notes.append(_("The model has no chat template: the prompts are given as they are, and continued."))
    return PromptTokens(prompt_id=prompt.prompt_id, token_ids=worker.tokenize(asked))


def _choice_tokens(worker: RunWorker, choice: ChoiceSpec) -> ChoiceTokens:
    """Return a question and what each answer adds to it; where they meet, tokens are those of the joined text."""
    question = worker.tokenize(protocol.Text(choice.question))
    joined = [worker.tokenize(protocol.Text(choice.question + answer)) for answer in choice.answers]
    shared = len(question)
    for ids in joined:
        shared = next((at for at in range(shared) if at >= len(ids) or ids[at] != question[at]), shared)
    shared = min(shared, *(len(ids) - 1 for ids in joined))
    return ChoiceTokens(
        choice_id=choice.choice_id,
        question_ids=question[:shared],
        answers=tuple(ids[shared:] for ids in joined),
        answer_bytes=tuple(max(1, len(answer.encode())) for answer in choice.answers),
    )
