"""Every setting of the program: its type, bounds, words and default, one field each.

To add a setting, add a field to Settings with its title, sentence, bounds and the reason for its default; the
validation, the file and the settings screen follow from it. Knows no file, no window and no engine.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar, get_type_hints

import msgspec

from app.errors import AppError, Words
from app.i18n import _
from app.paths import resources_folder
from backends.registry import BACKENDS

_T = TypeVar("_T")

# Words are asked for when they are shown, after the language is known.
Late = Callable[[], str]

# A system prompt is the only long value; a page is 3,000 characters.
_MAX_TEXT_CHARACTERS = 1_000_000

# The largest seed both a spin box and every engine hold.
_MAX_SEED = 2**31 - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """What the validation and the settings screen know of one field.

    Attributes:
        group: the heading it stands under; None keeps it off the screen.
        title: its name.
        sentence: what it does, in one sentence.
        low, high: bounds of a number, inclusive.
        step: what one press of an arrow changes.
        choices: asked for {text: words}, the texts it can take.
        is_open: texts outside the choices are taken as well.
        empty: the words for the value that means "none" or "automatic" (0 or None).
        is_long: a text of several lines.
    """

    group: Late | None = None
    title: Late = lambda: ""
    sentence: Late = lambda: ""
    low: float = -math.inf
    high: float = math.inf
    step: float = 1
    choices: Callable[[], Mapping[str, str]] | None = None
    is_open: bool = False
    empty: Late | None = None
    is_long: bool = False


def _setting(default: _T, about: Setting | None = None) -> _T:
    """Return a dataclass field with this default and description."""
    made: _T = field(default=default, metadata={"about": about or Setting()})
    return made


def _look() -> str:
    return _("Look")


def _engine() -> str:
    return _("Engine")


def _answers() -> str:
    return _("Answers")


def _network() -> str:
    return _("Network")


def _languages() -> dict[str, str]:
    """Return the languages that have a catalogue; each is shown by its code."""
    folder = resources_folder() / "translations"
    return {found.parent.parent.name: found.parent.parent.name for found in sorted(folder.glob("*/LC_MESSAGES/*.mo"))}


def _backends() -> dict[str, str]:
    """Return the backends that load a person's models."""
    return {backend.name: backend.title for backend in BACKENDS.values() if backend.loads}


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Every setting. Each field's default carries the reason for it.

    Attributes: the fields below, each described by its own Setting.
    """

    language: str = _setting(
        "",  # the language the person's system speaks
        Setting(
            group=_look,
            title=lambda: _("Language"),
            sentence=lambda: _("The language of the program. It changes at the next start."),
            choices=lambda: {"": _("As the system"), "en": "English", **_languages()},
            is_open=True,  # a catalogue that is not there today may be back tomorrow
        ),
    )
    theme: str = _setting(
        "system",  # a program should not be the only bright window in a dark room
        Setting(
            group=_look,
            title=lambda: _("Light or dark"),
            sentence=lambda: _("The colours of the window."),
            choices=lambda: {"system": _("As the system"), "light": _("Light"), "dark": _("Dark")},
        ),
    )
    backend: str = _setting(
        "",  # the one that is quickest with the kind of file, which the registry's order says
        Setting(
            group=_engine,
            title=lambda: _("Preferred engine"),
            sentence=lambda: _("Which engine runs the models that more than one can load."),
            choices=lambda: {"": _("Automatic"), **_backends()},
            is_open=True,  # one that a newer version knows may be back tomorrow
        ),
    )
    context_tokens: int = _setting(
        0,  # what fits depends on the model and the machine, which the engine knows
        Setting(
            group=_engine,
            title=lambda: _("Context, tokens"),
            sentence=lambda: _("How much of a chat the model can see at once. More takes more memory."),
            low=0,
            high=10_000_000,
            step=1024,
            empty=lambda: _("Automatic"),
        ),
    )
    threads: int = _setting(
        0,  # more threads than physical cores make decoding slower
        Setting(
            group=_engine,
            title=lambda: _("Threads"),
            sentence=lambda: _("How many processor cores the engine uses."),
            low=0,
            high=1024,
            empty=lambda: _("All physical cores"),
        ),
    )
    kv_type: str = _setting(
        "f16",  # the only type that every model supports and that changes no answer
        Setting(
            group=_engine,
            title=lambda: _("KV cache"),
            sentence=lambda: _("How the chat is kept in memory. Smaller types hold more, a little less exactly."),
            choices=lambda: {
                "f16": _("f16, exact"),
                "q8_0": _("q8_0, half the memory"),
                "q4_0": _("q4_0, a quarter of the memory"),
            },
        ),
    )
    temperature: float = _setting(
        0.8,  # these five are llama.cpp's own defaults, so that figures can be compared
        Setting(
            group=_answers,
            title=lambda: _("Temperature"),
            sentence=lambda: _("0 always takes the likeliest token; more gives more variety."),
            low=0,
            high=5,
            step=0.1,
        ),
    )
    top_k: int = _setting(
        40,
        Setting(
            group=_answers,
            title=lambda: _("Top k"),
            sentence=lambda: _("Only this many of the likeliest tokens are considered."),
            low=0,
            high=100_000,
            empty=lambda: _("All"),
        ),
    )
    top_p: float = _setting(
        0.95,
        Setting(
            group=_answers,
            title=lambda: _("Top p"),
            sentence=lambda: _("Only the likeliest tokens that together reach this probability; 1 keeps all."),
            low=0,
            high=1,
            step=0.01,
        ),
    )
    min_p: float = _setting(
        0.05,
        Setting(
            group=_answers,
            title=lambda: _("Min p"),
            sentence=lambda: _("Tokens less likely than this share of the likeliest one are left out; 0 keeps all."),
            low=0,
            high=1,
            step=0.01,
        ),
    )
    repeat_penalty: float = _setting(
        1.0,
        Setting(
            group=_answers,
            title=lambda: _("Repeat penalty"),
            sentence=lambda: _("Above 1, tokens that were just used become less likely; 1 is off."),
            low=0.1,
            high=2,
            step=0.05,
        ),
    )
    seed: int | None = _setting(
        None,  # a person who asks twice expects two answers
        Setting(
            group=_answers,
            title=lambda: _("Seed"),
            sentence=lambda: _("The same seed and the same prompt give the same answer."),
            low=0,
            high=_MAX_SEED,
            empty=lambda: _("New each time"),
        ),
    )
    max_tokens: int | None = _setting(
        None,  # a cut answer surprises more than a long one, and Stop is always there
        Setting(
            group=_answers,
            title=lambda: _("Longest answer, tokens"),
            sentence=lambda: _("Where an answer is cut."),
            low=1,
            high=10_000_000,
            step=64,
            empty=lambda: _("Until the context is full"),
        ),
    )
    system_prompt: str = _setting(
        "",  # the model's own manner is what a person wants to see first
        Setting(
            group=_answers,
            title=lambda: _("System prompt"),
            sentence=lambda: _("What every new chat tells the model first."),
            is_long=True,
        ),
    )
    proxy: str = _setting(
        "",  # what the system says
        Setting(
            group=_network,
            title=lambda: _("Proxy"),
            sentence=lambda: _("The address that searches and downloads go through, such as http://proxy:8080."),
            empty=lambda: _("As the system"),
        ),
    )
    ca_file: str = _setting(
        "",  # the system's own certificates
        Setting(
            group=_network,
            title=lambda: _("Certificates"),
            sentence=lambda: _("A file with the certificates of your company, where its network needs them."),
            empty=lambda: _("As the system"),
        ),
    )
    last_model: str = _setting("")  # the key of the model to load at the next start
    panel_folded: bool = _setting(True)  # the chat comes first; the cutaway panel is one key away
    window_geometry: str = _setting("")  # QWidget.saveGeometry in base64
    first_run_done: bool = _setting(False)


_FIELDS = {made.name: made for made in dataclasses.fields(Settings)}
_TYPES = get_type_hints(Settings)


def about(name: str) -> Setting:
    """Return the description of a setting."""
    described: Setting = _FIELDS[name].metadata["about"]
    return described


def shown_settings() -> tuple[str, ...]:
    """Return the names of the settings that the settings screen shows, in its order."""
    return tuple(name for name in _FIELDS if about(name).group is not None)


def checked(name: str, value: object) -> Any:
    """Return the value as the setting holds it.

    Raises:
        AppError: the value has the wrong type or lies outside the bounds.
        KeyError: there is no such setting.
    """
    told = about(name)
    title = told.title() or name
    try:
        held = msgspec.convert(value, _TYPES[name])
    except msgspec.ValidationError as error:
        raise AppError(Words(_("“{title}” cannot take this value.").format(title=title), _unchanged())) from error
    if isinstance(held, str):
        _check_text(title, held, told)
    elif isinstance(held, int | float) and not (told.low <= held <= told.high):
        message = _("“{title}” must lie between {low} and {high}.")
        raise AppError(Words(message.format(title=title, low=_number(told.low), high=_number(told.high)), _unchanged()))
    return held


def _check_text(title: str, text: str, told: Setting) -> None:
    if told.choices is not None and not told.is_open and text not in told.choices():
        choices = ", ".join(told.choices().values())
        message = _("“{title}” must be one of: {choices}.")
        raise AppError(Words(message.format(title=title, choices=choices), _unchanged()))
    is_storable = len(text) <= _MAX_TEXT_CHARACTERS and not any("\ud800" <= c <= "\udfff" for c in text)
    if not is_storable:
        raise AppError(Words(_("“{title}” is too long or holds broken characters.").format(title=title), _unchanged()))


def _unchanged() -> str:
    return _("The setting stays as it was.")


def _number(value: float) -> str:
    return f"{value:,.0f}" if value == int(value) else f"{value:g}"
