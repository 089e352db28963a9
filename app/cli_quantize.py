"""`cutaway quantize`: makes quantizations of a model here, or says how large they would be.

Says everything through the terminal it is given; prints nothing itself.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from app import cli_commands, cli_models, cli_text
from app.chat.messages import JsonObject
from app.compare.plan import TextSpec
from app.compare.quantize_order import OnProgress, Outcome, QuantizeOrder, carry_out, importance_of, names_of
from app.compare.quantize_words import bits_words, fallback_words, made_words, meaning_words, phase_words
from app.compare.quantizing import Phase, Planned, Quantizer, source_warning
from app.compare.texts import calibration_text
from app.context import AppContext
from app.errors import AppError, Words, one_line
from app.i18n import _
from app.models.entry import ModelEntry
from app.units import bytes_text, percent_text

DONE: Final = 0
_OWN: Final = ""  # --importance without a file


def add_flags(parser: argparse.ArgumentParser) -> None:
    """Add what `cutaway quantize` takes."""
    parser.description = _("The source is best in F16 or BF16. Nothing is written over, and the source stays as it is.")
    add = parser.add_argument
    add("source", metavar=_("SOURCE"), help=_("a name of the library or a GGUF file"))
    add("--to", metavar="QUANT", nargs="+", required=True, help=_("such as Q4_K_M Q8_0; any name of llama.cpp"))
    add("--out", metavar=_("DIR"), type=Path, help=_("write to this folder instead of the models folder"))
    words = _("a text, or an importance matrix of llama.cpp; without FILE a text that comes with Cutaway")
    add("--importance", metavar=_("FILE"), nargs="?", const=_OWN, help=words)
    add("--threads", metavar="N", type=_threads, default=0, help=_("processor cores to use"))
    add("--dry-run", action="store_true", help=_("say the exact sizes and write nothing"))
    add("--force", action="store_true", help=_("do not ask before a quantized source is quantized again"))
    add("--json", action="store_true", help=_("print JSON"))


def run(flags: argparse.Namespace, terminal: cli_models.Terminal) -> int:
    """Do what `cutaway quantize` asks for and return the exit code."""
    with cli_commands.opened_context() as context:
        for notice in context.notices:
            terminal.notice(notice.words)
        entry = context.library.find(flags.source)
        if entry.fault:
            raise AppError(Words(_("{name}: {fault}").format(name=one_line(entry.name, 80), fault=entry.fault)))
        order = _order(context, entry, flags)
        warning = source_warning(entry.path)
        if flags.dry_run:
            importance = order.importance if isinstance(order.importance, Path) else None
            planned = Quantizer().plan(entry.path, order.quantizations, importance)
            _tell_plan(order, planned, warning, flags, terminal)
            return DONE
        if warning:
            terminal.notice(Words(warning))
            _agree(terminal, is_forced=flags.force)
        outcome = carry_out(order, context.library, Quantizer(), _progress(terminal))
        _tell_outcome(outcome, warning, flags, terminal)
    return DONE


def _order(context: AppContext, entry: ModelEntry, flags: argparse.Namespace) -> QuantizeOrder:
    importance: Path | TextSpec | None = None
    if flags.importance is not None:
        importance = calibration_text() if flags.importance == _OWN else importance_of(Path(flags.importance))
    folder: Path = flags.out if flags.out is not None else context.paths.models
    if flags.out is None and not flags.dry_run:
        _make_folder(folder)
    return QuantizeOrder(
        source=entry,
        quantizations=tuple(dict.fromkeys(name.upper() for name in flags.to)),
        folder=folder.expanduser().absolute(),
        importance=importance,
        allow_requantize=True,  # asked about before anything is written
        threads=flags.threads,
    )


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        message = _("The folder {path} cannot be made: {reason}").format(
            path=one_line(str(folder)), reason=one_line(error.strerror or str(error))
        )
        raise AppError(Words(message, _("Name another one with --out."))) from error


def _agree(terminal: cli_models.Terminal, *, is_forced: bool) -> None:
    """Have a person agree to a quantized source; raises AppError where they do not."""
    if not is_forced and not terminal.agrees(_("Make it anyway?")):
        raise AppError(Words(_("Nothing was made."), _("With --force it is made without asking.")))


def _progress(terminal: cli_models.Terminal) -> OnProgress:
    """Return what shows how far an order is, on one line."""

    def show(quantization: str, phase: Phase, fraction: float) -> None:
        terminal.progress_line(f"{phase_words(phase, quantization)} {percent_text(fraction)}")

    return show


# ------------------------------------------------------------------------------------------------------ answers


def _tell_plan(
    order: QuantizeOrder,
    planned: Sequence[Planned],
    warning: str,
    flags: argparse.Namespace,
    terminal: cli_models.Terminal,
) -> None:
    if flags.json:
        rows = [planned_json(one) | {"path": str(order.target(one.quantization))} for one in planned]
        terminal.json({"model": order.source.key, "warning": warning or None, "quantizations": rows})
        return
    if warning:
        terminal.notice(Words(warning))
    for line in cli_text.table(plan_rows(planned)):
        terminal.line(line)


def plan_rows(planned: Sequence[Planned]) -> list[list[str]]:
    """Return what each quantization would be as the rows of a table, its head first."""
    rows = [[_("Quantization"), _("Size"), _("Bits per weight"), _("Fell back"), _("Meaning")]]
    for one in planned:
        if one.fault is not None:
            rows.append([one.quantization, "-", "-", "-", one.fault.message])
            continue
        meaning = meaning_words(one.quantization, one.bits_per_weight, one.fallback_tensors)
        if one.needs_importance:
            meaning = _("{meaning}; needs an importance matrix").format(meaning=meaning)
        fell_back = fallback_words(one.fallback_tensors, one.tensors) or "-"
        rows.append([one.quantization, bytes_text(one.size_bytes), bits_words(one.bits_per_weight), fell_back, meaning])
    return rows


def planned_json(planned: Planned) -> JsonObject:
    """Return what a quantization is, with the keys of --json; what nobody knows is null."""
    is_possible = planned.fault is None
    return {
        "quantization": planned.quantization,
        "size_bytes": planned.size_bytes if is_possible else None,
        "bits_per_weight": planned.bits_per_weight if is_possible else None,
        "tensors": planned.tensors if is_possible else None,
        "fallback_tensors": planned.fallback_tensors if is_possible else None,
        "needs_importance": planned.needs_importance if is_possible else None,
        "requantized_from": planned.requantized_from or None,
        "fault": None if planned.fault is None else planned.fault.message,
    }


def _tell_outcome(outcome: Outcome, warning: str, flags: argparse.Namespace, terminal: cli_models.Terminal) -> None:
    if flags.json:
        rows = [
            planned_json(made.planned) | {"path": str(made.path), "took_s": made.took_s, "model": entry.key}
            for made, entry in zip(outcome.made, outcome.entries, strict=True)
        ]
        matrix = str(outcome.importance_path) if outcome.importance_path is not None else None
        terminal.json({"warning": warning or None, "importance": matrix, "quantizations": rows})
        return
    size_bytes = sum(made.planned.size_bytes for made in outcome.made)
    terminal.line(made_words(names_of(outcome.made), size_bytes))
    for made in outcome.made:
        terminal.line(cli_text.safe_line(str(made.path)))
    if outcome.importance_path is not None:
        words = _("The importance matrix is kept in {path}").format(path=outcome.importance_path)
        terminal.muted(cli_text.safe_line(words))
    if warning:
        terminal.muted(_("The files say in their metadata that their source was quantized."))


def _threads(text: str) -> int:
    if not text.isdecimal() or not 0 < int(text) <= 1024:
        raise argparse.ArgumentTypeError(_("“{text}” is not a number of cores").format(text=one_line(text, 40)))
    return int(text)
