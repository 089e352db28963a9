"""How much a comparison does: three amounts, and which texts, prompts and questions each takes.

Their sizes: about half a minute, one minute and five minutes a run, where a model reads 100 tokens a second and writes
15. Mean KL and the share of equal top tokens are usable from 1,000 scored tokens on, which is the normal amount; a
thorough one serves percentiles and tasks. Knows no engine.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

from app.compare.plan import Amount, PromptSpec, SpeedSpec, TextSpec, WorkloadSpec
from app.compare.texts import OWN, OWN_CHATS, bundled_choices, bundled_prompts

AMOUNTS: tuple[Amount, ...] = ("quick", "normal", "thorough")
FEWEST_WINDOWS = 2  # 510 scored tokens: still enough for mean KL and the same token on top, for nothing finer

# Whose windows come first when there are few; a person's own text takes the place of a bundled one, the last here.
_ORDER = ("encyclopaedia", OWN, OWN_CHATS, "chat", "code", "multilingual")
_TEXTS = 4  # at most so many are scored together


@dataclass(frozen=True, slots=True)
class _Preset:
    """What an amount comes to; prompts are taken from the beginning of the list, and so are questions."""

    windows: int
    prompts: int
    answer_tokens: int
    choices: int
    speed: SpeedSpec


_PRESETS: dict[Amount, _Preset] = {
    "quick": _Preset(2, 1, 48, 0, SpeedSpec(prompt_tokens=128, new_tokens=32, rounds=2)),
    "normal": _Preset(4, 3, 64, 0, SpeedSpec(prompt_tokens=512, new_tokens=64, rounds=3)),
    "thorough": _Preset(16, 8, 200, 50, SpeedSpec(prompt_tokens=512, new_tokens=128, rounds=5)),
}


def preset(amount: Amount, texts: Sequence[TextSpec], context_tokens: int = 8192) -> WorkloadSpec:
    """Return the work of an amount.

    Windows are dealt to the texts in turn: with a quick amount the encyclopaedia and the person's own text (or the
    chat) get one each, with a thorough one each of four texts gets four. A text alone gets all.

    Args:
        amount: how much.
        texts: what there is to score; the bundled ones, one of the person's own, or both.
        context_tokens: memory is stated for a context of this length.

    Raises:
        ValueError: there is no text.
        TextError: the prompts or questions that come with the program are damaged.
    """
    asked = _PRESETS[amount]
    prompts = bundled_prompts()[: asked.prompts]
    return WorkloadSpec(
        amount=amount,
        texts=_dealt(texts, asked.windows),
        prompts=tuple(msgspec.structs.replace(prompt, max_tokens=asked.answer_tokens) for prompt in prompts),
        choices=bundled_choices()[: asked.choices] if asked.choices else (),
        speed=asked.speed,
        context_tokens=context_tokens,
    )


def with_windows(workload: WorkloadSpec, windows: int) -> WorkloadSpec:
    """Return the same work with another number of windows, dealt to its texts anew; ValueError for none."""
    return msgspec.structs.replace(workload, texts=_dealt(workload.texts, windows))


def with_prompts(workload: WorkloadSpec, questions: Sequence[str]) -> WorkloadSpec:
    """Return the same work with a person's own prompts; empty ones are left out."""
    longest = _PRESETS[workload.amount].answer_tokens
    kept = [question.strip() for question in questions if question.strip()]
    prompts = tuple(
        PromptSpec(prompt_id=f"own-{number}", text=text, max_tokens=longest) for number, text in enumerate(kept, 1)
    )
    return msgspec.structs.replace(workload, prompts=prompts)


def _dealt(texts: Sequence[TextSpec], windows: int) -> tuple[TextSpec, ...]:
    """Deal windows to texts in turn, and leave out the texts that get none."""
    if not texts or windows < 1:
        raise ValueError("no text, or no window")
    chosen = sorted(texts, key=_place)[:_TEXTS]
    share, rest = divmod(windows, len(chosen))
    dealt = [
        msgspec.structs.replace(text, windows=share + (1 if number < rest else 0)) for number, text in enumerate(chosen)
    ]
    return tuple(text for text in dealt if text.windows)


def _place(text: TextSpec) -> int:
    return _ORDER.index(text.text_id) if text.text_id in _ORDER else _ORDER.index(OWN)
