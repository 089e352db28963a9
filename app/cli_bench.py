"""`cutaway bench`: measures a model here, or with --ladder what each part of an engine is worth.

Says everything through the terminal it is given; prints nothing itself.
"""

from __future__ import annotations

import argparse
from typing import Protocol

import msgspec

from app import cli_commands, cli_models, cli_text
from app.bench.bench import BenchResult, MachineLoad, bench_json, machine_load, run_bench
from app.bench.engine_run import EngineRun
from app.bench.figures import Spread
from app.bench.ladder import SHARED_SHARE, Rung, RungResult, gains, ladder_json, run_ladder
from app.bench.workload import Workload
from app.cli_parser import UsageError
from app.context import AppContext
from app.engines.supervisor import LoadRequest
from app.errors import Words, one_line
from app.i18n import _, ngettext
from app.log import new_worker_log
from app.models.entry import ModelEntry
from app.units import NBSP, bytes_text, count_text, number_text, percent_text, rate_text, seconds_text
from backends.protocol import ModelLoaded
from backends.registry import BACKENDS

DONE = 0

# What llama-bench asks by default, and a prompt's length of its own for the ladder, whose lowest rungs are slow.
PROMPT_TOKENS, NEW_TOKENS, REPETITIONS = 512, 128, 5
LADDER_PROMPT_TOKENS, LADDER_NEW_TOKENS, LADDER_REQUESTS, LADDER_REPETITIONS = 128, 32, 16, 1


class Terminal(cli_models.Terminal, Protocol):
    """What this command needs of the terminal."""

    def progress(self, fraction: float) -> None:
        """Show how far a load is, where a person looks on."""


def run(flags: argparse.Namespace, terminal: Terminal) -> int:
    """Do what `cutaway bench` asks for and return the exit code."""
    with cli_commands.opened_context() as context:
        for notice in context.notices:
            terminal.notice(notice.words)
        request, entry = cli_commands.load_request(context, flags)
        work = workload_of(flags)
        if flags.ladder:
            _check_ladder(request)
        else:
            request = _with_room(request, work, flags)
        if entry is not None:
            cli_models.agree_to_load(context, entry, request, terminal, is_forced=flags.force)
        model = _name_of(entry, flags, request)
        if flags.ladder:
            _ladder(context, request, work, flags, terminal, model)
        else:
            _bench(context, request, work, flags, terminal, model)
    return DONE


def workload_of(flags: argparse.Namespace) -> Workload:
    """Return what the flags ask for; the ladder's requests are shorter, uneven, and begin alike."""
    if not flags.ladder:
        return Workload(flags.prompt_tokens or PROMPT_TOKENS, flags.new_tokens or NEW_TOKENS, flags.requests or 1)
    prompt_tokens = flags.prompt_tokens or LADDER_PROMPT_TOKENS
    return Workload(
        prompt_tokens=prompt_tokens,
        new_tokens=flags.new_tokens or LADDER_NEW_TOKENS,
        requests=flags.requests or LADDER_REQUESTS,
        shared_tokens=int(prompt_tokens * SHARED_SHARE),
        is_uneven=True,
    )


# ------------------------------------------------------------------------------------------------ one model


def _bench(
    context: AppContext,
    request: LoadRequest,
    work: Workload,
    flags: argparse.Namespace,
    terminal: Terminal,
    model: str,
) -> None:
    def on_round(number: int, count: int) -> None:
        terminal.progress_line(_("Round {number} of {count}").format(number=number, count=count))

    engine = EngineRun(lambda: new_worker_log(context.paths.logs))
    try:
        result = run_bench(engine, request, work, flags.repetitions or REPETITIONS, terminal.progress, on_round)
    finally:
        with cli_commands.interrupts_ignored():
            engine.close()
    if flags.json:
        terminal.json(bench_json(result, model))
        return
    for line in bench_lines(result, model):
        terminal.line(cli_text.safe_line(line))
    for row in cli_text.table(memory_rows(result)):
        terminal.line(row)
    _tell_machine(result.machine, terminal)


def bench_lines(result: BenchResult, model: str) -> list[str]:
    """Return what was measured, a line for each figure, its path first."""
    work, spreads = result.work, result.spreads()
    rounds = ngettext("{count} round", "{count} rounds", len(result.rounds)).format(count=len(result.rounds))
    lines = [
        f"{model} · {path_text(result.loaded)}",
        _("Prompt {prompt} tokens, answer {answer} tokens, {rounds}, and one before that does not count.").format(
            prompt=count_text(work.prompt_tokens), answer=count_text(work.new_tokens), rounds=rounds
        ),
        _("Reading: {figure}").format(figure=_rate(spreads["prefill_tokens_per_s"])),
        _("Writing: {figure}").format(figure=_rate(spreads["decode_tokens_per_s"])),
        _("First token after {time}, ± {spread}").format(
            time=seconds_text(spreads["ttft_s"].median), spread=percent_text(spreads["ttft_s"].spread / 2)
        ),
    ]
    if work.requests > 1:
        lines.append(_("All requests together: {figure}").format(figure=_rate(spreads["total_tokens_per_s"])))
        lines.append(served_words(work.requests, result.running, BACKENDS[result.loaded.backend].title))
    return [line.replace(NBSP, " ") for line in lines]


def served_words(requests: int, running: int, title: str) -> str:
    """Return how many of the requests an engine worked on together, as was seen."""
    if running >= requests:
        return _("{backend} worked on all {count} requests together.").format(backend=title, count=requests)
    words = ngettext(
        "{backend} worked on {running} of {count} requests at a time; the others waited.",
        "{backend} worked on {running} of {count} requests at a time; the others waited.",
        running,
    )
    return words.format(backend=title, running=running, count=requests)


def path_text(loaded: ModelLoaded) -> str:
    """Return which code computed: engine, device, threads, attention."""
    parts = [loaded.engine_variant or BACKENDS[loaded.backend].title, loaded.device]
    if loaded.threads:
        parts.append(ngettext("{count} thread", "{count} threads", loaded.threads).format(count=loaded.threads))
    if loaded.attention_path or loaded.attention_kernel:
        path = " ".join(filter(None, (loaded.attention_path, loaded.attention_kernel)))
        parts.append(_("attention: {path}").format(path=path))
    if loaded.path_note:
        parts.append(one_line(loaded.path_note, 120))
    return " · ".join(parts)


def memory_rows(result: BenchResult) -> list[list[str]]:
    """Return the memory by owner as the rows of a table, its head first."""
    titles = {
        "weights_bytes": _("Weights"),
        "kv_reserved_bytes": _("KV cache, reserved"),
        "kv_used_bytes": _("of it used"),
        "compute_bytes": _("Compute"),
        "rest_bytes": _("Rest"),
        "total_bytes": _("Total"),
    }
    rows = [[title, bytes_text(result.memory[key])] for key, title in titles.items()]
    return [[_("Owner"), _("Most that was measured")], *rows]


# ----------------------------------------------------------------------------------------------- the ladder


def _check_ladder(request: LoadRequest) -> None:
    backend = BACKENDS[request.backend]
    if not backend.has_rungs:
        able = ", ".join(found.title for found in BACKENDS.values() if found.has_rungs and found.loads)
        message = _("The parts of the {backend} engine cannot be switched off one by one.")
        raise UsageError(Words(message.format(backend=backend.title), _("Add --backend: {able}.").format(able=able)))


def _ladder(
    context: AppContext,
    request: LoadRequest,
    work: Workload,
    flags: argparse.Namespace,
    terminal: Terminal,
    model: str,
) -> None:
    machine = machine_load()

    def on_rung(rung: Rung) -> None:
        terminal.progress_line(_("Measuring: {rung}").format(rung=rung.title))

    results = run_ladder(
        lambda: EngineRun(lambda: new_worker_log(context.paths.logs)),
        request,
        work,
        flags.repetitions or LADDER_REPETITIONS,
        on_rung,
    )
    if flags.json:
        terminal.json(ladder_json(results, work, model))
        return
    terminal.line(cli_text.safe_line(f"{model} · {path_text(results[-1].loaded)}".replace(NBSP, " ")))
    words = _(
        "{count} requests of {prompt} tokens, {shared} of them the same in all; answers of up to {answer} tokens. "
        "Every rung has the same room."
    )
    terminal.line(
        words.format(
            count=count_text(work.requests),
            prompt=count_text(work.prompt_tokens),
            shared=count_text(work.shared_tokens),
            answer=count_text(work.new_tokens),
        )
    )
    for row in cli_text.table(ladder_rows(results)):
        terminal.line(row)
    for result in results:
        if result.loaded.attention_path == "plain" and result.rung.has_blocks:
            terminal.notice(Words(_("This model runs without blocks: the last rungs show nothing of them.")))
            break
    _tell_machine(machine, terminal)


def ladder_rows(results: list[RungResult]) -> list[list[str]]:
    """Return the rungs as the rows of a table, its head first."""
    rows = [
        [
            _("Rung"),
            _("Tokens/s"),
            _("Times the one above"),
            _("First token"),
            _("At once"),
            _("KV places"),
            _("Wasted"),
        ]
    ]
    for result, gain in zip(results, gains(results), strict=True):
        has_cache = result.rung.reuse_kv
        rows.append(
            [
                result.rung.title,
                number_text(result.tokens_per_s.median),
                "-" if result is results[0] else number_text(gain),
                seconds_text(result.ttft_s.median),
                count_text(max(done.running for done in result.rounds)),
                count_text(result.reserved_tokens) if has_cache else "-",
                percent_text(result.wasted_share) if has_cache else "-",
            ]
        )
    return rows


# -------------------------------------------------------------------------------------------------- helpers


def _with_room(request: LoadRequest, work: Workload, flags: argparse.Namespace) -> LoadRequest:
    """Return the request with just the context that the work needs, unless one is asked for."""
    many = BACKENDS[request.backend].serves_many and work.requests > 1
    sequences = work.requests if many else 1
    if flags.context is not None and flags.context:
        return LoadRequest(
            request.path, request.backend, msgspec.structs.replace(request.params, max_sequences=sequences)
        )
    # A block more for each: the last one is rarely full.
    context_tokens = (work.longest_tokens + 16) * sequences
    params = msgspec.structs.replace(
        request.params,
        context_tokens=context_tokens,
        max_sequences=sequences,
        allow_long_context=many,  # room for several short requests, none of which is long
    )
    return LoadRequest(request.path, request.backend, params)


def _name_of(entry: ModelEntry | None, flags: argparse.Namespace, request: LoadRequest) -> str:
    return entry.key if entry is not None else flags.model or request.backend


def _rate(spread: Spread) -> str:
    return _("{rate}, ± {spread}").format(rate=rate_text(spread.median), spread=percent_text(spread.spread / 2))


def _tell_machine(machine: MachineLoad, terminal: Terminal) -> None:
    if machine.is_busy:
        message = _("Other programs kept {share} of the processor busy before the first round.")
        terminal.notice(
            Words(
                message.format(share=percent_text(machine.busy_share)).replace(NBSP, " "),
                _("The figures are lower than this machine can give. End other programs and measure again."),
            )
        )
