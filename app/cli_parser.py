"""The command line's grammar: which commands and flags there are, and the words for a line that has no meaning.

A command that is not built yet is not listed. Knows no model and no stream.
"""

from __future__ import annotations

import argparse
import difflib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NoReturn

from app.errors import AppError, Words, one_line
from app.i18n import _
from app.settings_fields import checked
from backends.registry import BACKENDS

COMMANDS = ("chat", "models", "fit", "bench", "compare", "quantize", "selftest")
MODELS_COMMANDS = ("list", "search", "show", "download", "import", "remove")

# Flags of `chat` that are settings of the same name: checked by the settings' own bounds.
SAMPLING_FLAGS = ("temperature", "top_p", "top_k", "min_p", "seed", "max_tokens")

_MAX_GPU_LAYERS = 100_000
_MAX_COUNT = 1_000_000  # of tokens or requests of a measurement


AddFlags = Callable[[argparse.ArgumentParser], None]


class UsageError(AppError):
    """The command line asks for something that cannot be; nothing was done."""


class _Parser(argparse.ArgumentParser):
    """A parser that raises in our words instead of ending the process."""

    def error(self, message: str) -> NoReturn:
        """Raise UsageError for what argparse found wrong."""
        sentence = one_line(message).rstrip(".")
        raise UsageError(Words(sentence[:1].upper() + sentence[1:] + ".", _flags_hint(self.prog)))


def _flags_hint(program: str) -> str:
    return _("`{program} --help` lists the flags.").format(program=program)


def parse(arguments: Sequence[str], adders: Mapping[str, AddFlags] | None = None) -> argparse.Namespace:
    """Return what the arguments ask for.

    Args:
        arguments: of the command line.
        adders: by command, what adds the flags of those whose grammar stands in a module of their own: "quantize".

    Raises:
        UsageError: they have no meaning.
        SystemExit: help was asked for, and given.
    """
    parser = _Parser(prog="cutaway", description=_("Private local chat with the engine cover off."), allow_abbrev=False)
    parser.epilog = _("Without a command the window opens; `cutaway FILE.gguf` opens it with that model file.")
    commands = parser.add_subparsers(dest="command", metavar=_("COMMAND"))
    _add_chat(commands.add_parser("chat", help=_("one answer, or a dialogue in the terminal"), allow_abbrev=False))
    models = commands.add_parser("models", help=_("the library of models"), allow_abbrev=False)
    _add_models(models.add_subparsers(dest="models_command", metavar=_("COMMAND")))
    _add_fit(commands.add_parser("fit", help=_("what a model would take here"), allow_abbrev=False))
    _add_bench(commands.add_parser("bench", help=_("how fast a model reads and writes here"), allow_abbrev=False))
    compared = commands.add_parser("compare", help=_("what quantizations of a model are worth"), allow_abbrev=False)
    _add_compare(compared)
    quantize = commands.add_parser("quantize", help=_("make quantizations of a model here"), allow_abbrev=False)
    if adders is not None and arguments[:1] == ["quantize"]:
        adders["quantize"](quantize)
    selftest = commands.add_parser("selftest", help=_("check that everything works here"), allow_abbrev=False)
    _add_backend(selftest)
    _add_json(selftest)
    _check_word(arguments[:1], COMMANDS)
    if arguments[:1] == ["models"]:
        _check_word(arguments[1:2], MODELS_COMMANDS, after="models")
    flags, unknown = parser.parse_known_args(list(arguments))
    if unknown:
        message = _("“{flags}” is not known here.").format(flags=one_line(" ".join(unknown), 80))
        raise UsageError(Words(message, _flags_hint(f"cutaway {flags.command}")))
    return flags


def _check_word(words: Sequence[str], known: Sequence[str], after: str = "") -> None:
    """Raise UsageError for a command that is missing or unknown; argparse's own words are no help there."""
    there_are = _("There are: {commands}.").format(commands=", ".join(known))
    if not words:
        raise UsageError(
            Words(
                _("Say what to do: `cutaway {command}…` is not complete.").format(command=f"{after} " if after else ""),
                there_are,
            )
        )
    word = words[0]
    if word in known or word in ("-h", "--help"):
        return
    if word.startswith("-"):
        raise UsageError(Words(_("A command comes first, then its flags."), there_are))
    shown = one_line(f"{after} {word}".strip(), 60)
    near = difflib.get_close_matches(word, known, n=1)
    hint = _("Did you mean “{word}”?").format(word=near[0]) + " " + there_are if near else there_are
    raise UsageError(Words(_("“{command}” is no command of this version.").format(command=shown), hint))


def _add_chat(parser: argparse.ArgumentParser) -> None:
    parser.description = _("Without --prompt, and with a terminal to type into, this is a dialogue.")
    add = parser.add_argument
    add("--model", metavar="M", default="", help=_("a name of the library, a GGUF file or a folder of safetensors"))
    add("--prompt", metavar=_("TEXT"), help=_("what to answer; without it standard input is read where it is a pipe"))
    add("--system", metavar=_("TEXT"), default="", help=_("what the model is told first"))
    add("--backend", choices=sorted(BACKENDS), default="", help=_("the engine; echo needs no model"))
    _add_load(parser)
    for name in SAMPLING_FLAGS:
        convert = float if name in ("temperature", "top_p", "min_p") else int
        add("--" + name.replace("_", "-"), metavar="N", type=_setting(name, convert), help=_SAMPLING_HELP[name]())
    add("--draft", metavar="D", help=argparse.SUPPRESS)
    add("--temporary", action="store_true", help=_("do not keep this chat"))
    add("--out", metavar=_("FILE"), type=Path, help=_("write the answer to this file"))
    add("--force", action="store_true", help=_("write over a file that is there; load a model that may be too large"))
    _add_json(parser)


_SAMPLING_HELP: dict[str, Callable[[], str]] = {
    "temperature": lambda: _("0 always takes the likeliest token"),
    "top_p": lambda: _("keep the likeliest tokens up to this probability"),
    "top_k": lambda: _("keep this many of the likeliest tokens"),
    "min_p": lambda: _("keep tokens of at least this share of the likeliest one"),
    "seed": lambda: _("the same seed gives the same answer"),
    "max_tokens": lambda: _("cut the answer there"),
}


def _add_models(commands: argparse._SubParsersAction[_Parser]) -> None:
    listed = commands.add_parser("list", help=_("show every model on this machine"), allow_abbrev=False)
    listed.add_argument("--no-scan", action="store_true", help=_("show what was found last time, without looking"))
    _add_backend(listed)
    _add_json(listed)
    found = commands.add_parser("search", help=_("find models on the hub"), allow_abbrev=False)
    found.add_argument("words", metavar=_("WORDS"), nargs="*", help=_("words, owner/name, or a pasted address"))
    found.add_argument("--sort", choices=("trending", "downloads", "likes", "updated"), default="trending")
    found.add_argument("--format", choices=("gguf", "safetensors", "any"), default="gguf", help=_("kind of files"))
    found.add_argument("--limit", metavar="N", type=_gpu_layers, default=20, help=_("show at most so many"))
    _add_json(found)
    shown = commands.add_parser("show", help=_("a repo's quantizations, and which fit here"), allow_abbrev=False)
    shown.add_argument("repo", metavar="REPO", help=_("owner/name, owner/name:QUANTIZATION, or an address"))
    _add_json(shown)
    fetched = commands.add_parser("download", help=_("download a quantization, or go on with it"), allow_abbrev=False)
    fetched.add_argument("repo", metavar="REPO[:QUANT]", help=_("without QUANT the one that fits best here is taken"))
    _add_json(fetched)
    added = commands.add_parser("import", help=_("use a model or a folder where it lies"), allow_abbrev=False)
    added.add_argument("path", metavar="PATH", type=Path, help=_("a GGUF file or a folder; nothing is copied"))
    removed = commands.add_parser("remove", help=_("forget an imported model, or delete its files"), allow_abbrev=False)
    removed.add_argument("model", metavar="M", help=_("its name, or the path of an added folder"))
    removed.add_argument("--delete", action="store_true", help=_("move its files to the trash"))
    removed.add_argument("--forever", action="store_true", help=_("with --delete: no trash, the space is free at once"))
    removed.add_argument("--force", action="store_true", help=_("do not ask before deleting"))


def _add_fit(parser: argparse.ArgumentParser) -> None:
    parser.description = _("Nothing is loaded: the engine's allocator is asked, or the file's header.")
    add = parser.add_argument
    add("model", metavar="M", help=_("a name of the library, a path, or the address of a GGUF file"))
    _add_backend(parser)
    _add_load(parser)
    _add_json(parser)


def _add_bench(parser: argparse.ArgumentParser) -> None:
    parser.description = _("Prompts of exactly so many tokens, answers of exactly so many, each round another prompt.")
    add = parser.add_argument
    add("--model", metavar="M", default="", help=_("a name of the library, a GGUF file or a folder of safetensors"))
    add("--backend", choices=sorted(BACKENDS), default="", help=_("the engine; echo needs no model"))
    add("--prompt-tokens", metavar="N", type=_count, help=_("of each prompt"))
    add("--new-tokens", metavar="N", type=_count, help=_("of each answer"))
    add("--requests", metavar="N", type=_count, help=_("how many are asked at the same time"))
    add("--repetitions", metavar="R", type=_count, help=_("rounds that count; one more warms up"))
    add("--ladder", action="store_true", help=_("measure what each part of the engine is worth, one after the other"))
    _add_load(parser)
    add("--force", action="store_true", help=_("load a model that may be too large"))
    _add_json(parser)


def _add_compare(parser: argparse.ArgumentParser) -> None:
    parser.description = _("The same work for each of them, the reference first; what was measured survives any end.")
    add = parser.add_argument
    add("--reference", metavar="M", default="", help=_("what the others are compared with, best the F16 of the model"))
    add("--candidates", metavar="M", nargs="+", help=_("the others; without it all of this model that are here"))
    add("--amount", choices=("quick", "normal", "thorough"), default="", help=_("how much is measured"))
    add("--text", metavar=_("FILE"), type=Path, help=_("score this text in place of those that come with Cutaway"))
    add("--prompts", metavar=_("FILE"), type=Path, help=_("answer these prompts, one a line"))
    kv_help = _("run every candidate once with each of these KV types, such as f16 q8_0")
    add("--kv-type", metavar="T", nargs="+", type=_setting("kv_type", str), help=kv_help)
    add("--context", metavar="N", type=_setting("context_tokens", int), help=_("state memory for so many tokens"))
    add("--threads", metavar="N", type=_setting("threads", int), help=_("processor cores to use, the same for all"))
    add("--backend", choices=sorted(BACKENDS), default="", help=_("the engine; without it each model's own"))
    add("--out", metavar=_("DIR"), type=Path, help=_("keep the comparison in this folder, new or empty"))
    add("--keep-reference", action="store_true", help=_("keep the reference's log-probabilities when it is done"))
    add("--resume", metavar="ID", default="", help=_("go on with a comparison: its name or its folder"))
    _add_json(parser)


def _add_backend(parser: argparse.ArgumentParser) -> None:
    names = sorted(name for name, backend in BACKENDS.items() if backend.loads)
    parser.add_argument("--backend", choices=names, default="", help=_("the engine; without it each model's own"))


def _add_load(parser: argparse.ArgumentParser) -> None:
    """Add the flags that say how a model is loaded."""
    add = parser.add_argument
    add("--device", metavar="D", default="", help=_("where a torch model lies: cpu, cuda, cuda:1, mps"))
    add("--context", metavar="N", type=_setting("context_tokens", int), help=_("context in tokens"))
    add("--kv-type", metavar="T", type=_setting("kv_type", str), help=_("how the chat is kept in memory: f16, q8_0"))
    add("--threads", metavar="N", type=_setting("threads", int), help=_("processor cores to use"))
    add("--gpu-layers", metavar="N", type=_gpu_layers, help=_("layers of the model to put on the GPU"))


def _add_json(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help=_("print JSON"))


def _setting(name: str, convert: Callable[[str], object]) -> Callable[[str], object]:
    """Return what turns a flag's text into the value of the setting of this name."""

    def value(text: str) -> object:
        try:
            return checked(name, convert(text))
        except ValueError as error:
            raise argparse.ArgumentTypeError(_("“{text}” is not a number").format(text=one_line(text, 40))) from error
        except AppError as error:
            raise argparse.ArgumentTypeError(error.words.message) from error

    return value


def _count(text: str) -> int:
    if not text.isdecimal() or not 0 < int(text) <= _MAX_COUNT:
        message = _("“{text}” is not a number from 1 to {most}")
        raise argparse.ArgumentTypeError(message.format(text=one_line(text, 40), most=f"{_MAX_COUNT:,}"))
    return int(text)


def _gpu_layers(text: str) -> int:
    if not text.isdecimal() or int(text) > _MAX_GPU_LAYERS:
        raise argparse.ArgumentTypeError(_("“{text}” is not a number of layers").format(text=one_line(text, 40)))
    return int(text)
