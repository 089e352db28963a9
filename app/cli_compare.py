"""`cutaway compare`: holds quantizations of one model against a reference, resumable, and says what they are worth.

Says everything through the terminal it is given; prints nothing itself.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import signal
from collections.abc import Iterator
from pathlib import Path

import msgspec
import psutil

from app import cli_commands, cli_models, cli_text
from app.bench.engine_run import EngineRun, StoppedError
from app.cli_compare_text import condition_lines, progress_text, table_rows
from app.cli_parser import UsageError
from app.compare import workload
from app.compare.duration import Probe, duration_words, fewer_windows, predicted_s
from app.compare.folder import ComparisonFolder, comparisons_root, new_comparison_id
from app.compare.plan import ComparisonPlan, RunSpec, WorkloadSpec
from app.compare.planning import make_plan, plan_of
from app.compare.probe_speed import probe_speed
from app.compare.reference import candidates_for
from app.compare.results import ComparisonResult
from app.compare.run_worker import RunnerServices
from app.compare.runner import ComparisonRunner
from app.compare.runner_events import PhaseChanged, RunEnded, RunnerEvent
from app.compare.texts import bundled_texts, own_text, read_text
from app.context import AppContext
from app.engines.backend_choice import check_backend, kind_of_entry
from app.engines.supervisor import LoadRequest
from app.errors import AppError, Words, one_line
from app.i18n import _
from app.log import new_worker_log
from app.models.entry import ModelEntry
from app.units import NBSP
from backends.protocol import LoadParams
from backends.registry import BACKENDS
from backends.renderer_client import RendererClient

DONE, FAILED, INTERRUPTED = 0, 1, 130

DEFAULT_CONTEXT_TOKENS = 8192
_MAX_PROMPTS_BYTES = 2**20
_SIZE_WORTH_A_PROBE = 1.5  # so much smaller a candidate is probed too: its speed cannot be guessed well


def run(flags: argparse.Namespace, terminal: cli_models.Terminal) -> int:
    """Do what `cutaway compare` asks for and return the exit code."""
    _check_flags(flags)
    with cli_commands.opened_context() as context, _Command(context, flags, terminal) as command:
        for notice in context.notices:
            terminal.notice(notice.words)
        return command.run()


class _Command:
    """One `cutaway compare`.

    Attributes:
        _stop: ends what is under way; set where something can be ended.
        _is_interrupted: Ctrl+C was pressed.
    """

    def __init__(self, context: AppContext, flags: argparse.Namespace, terminal: cli_models.Terminal) -> None:
        self._context = context
        self._flags = flags
        self._terminal = terminal
        self._renderer = RendererClient()
        self._runner: ComparisonRunner | None = None
        self._is_interrupted = False

    def __enter__(self) -> _Command:
        return self

    def __exit__(self, *_exception: object) -> None:
        self._renderer.close()

    def run(self) -> int:
        """Do it all and return the exit code."""
        with self._interrupts_stop():
            try:
                folder = self._resumed() if self._flags.resume else self._begun()
            except StoppedError:
                return INTERRUPTED
            self._runner = ComparisonRunner(folder, self._services(folder.plan))
            if self._is_interrupted:
                self._runner.stop()
            result = self._runner.run(lambda event: self._on_event(folder.plan, event))
        self._deliver(folder, result)
        return self._end(folder, result)

    # -------------------------------------------------------------------------------------- before it

    def _resumed(self) -> ComparisonFolder:
        named = Path(self._flags.resume).expanduser()
        inside = comparisons_root(self._context.paths.data) / self._flags.resume
        return ComparisonFolder.open(inside if inside.is_dir() else named.absolute())

    def _begun(self) -> ComparisonFolder:
        """Return the folder of a new comparison, after telling how long it will take."""
        plan = self._plan()
        probes = self._probes(plan)
        windows, words = fewer_windows(plan, probes, workload.FEWEST_WINDOWS)
        if words:
            plan = msgspec.structs.replace(plan, workload=workload.with_windows(plan.workload, windows))
            self._terminal.notice(Words(words))
        took = predicted_s(plan, probes, psutil.virtual_memory().available)
        predicted = _("Predicted time: {time}.").format(time=duration_words(took.total_s))
        self._terminal.muted(predicted.replace(NBSP, " "))
        root = comparisons_root(self._context.paths.data)
        plan = msgspec.structs.replace(plan, comparison_id=new_comparison_id(plan.title, root))
        if self._flags.out is not None:
            return ComparisonFolder.create_at(self._flags.out.expanduser().absolute(), plan)
        return ComparisonFolder.create(root, plan)

    def _plan(self) -> ComparisonPlan:
        flags = self._flags
        work = _workload_of(flags)
        if flags.backend and not BACKENDS[flags.backend].loads:
            return plan_of(flags.reference, _scripted_runs(flags), work, flags.threads or 0)
        reference = self._entry(flags.reference)
        if flags.candidates is None:
            others = candidates_for(reference, self._context.library.entries())
        else:
            others = tuple(self._entry(text) for text in flags.candidates)
        return make_plan(reference, others, flags.kv_type or (), work, self._backend_of, flags.threads or 0)

    def _entry(self, text: str) -> ModelEntry:
        entry = self._context.library.find(text)
        if entry.fault:
            message = _("{name}: {fault}")
            raise AppError(Words(message.format(name=one_line(entry.name, 80), fault=one_line(entry.fault))))
        check_backend(self._backend_of(entry), str(entry.path), kind_of_entry(entry))
        return entry

    def _backend_of(self, entry: ModelEntry) -> str:
        return str(self._flags.backend) or self._context.backend_of(entry)

    def _probes(self, plan: ComparisonPlan) -> dict[str, Probe]:
        """Measure the reference for two seconds, and the smallest candidate where it is much smaller.

        Raises:
            AppError: the reference cannot be loaded.
        """
        probes = {plan.reference.run_id: self._probe(plan, plan.reference)}
        smallest = min(plan.candidates, key=lambda run: run.size_bytes)
        if smallest.size_bytes * _SIZE_WORTH_A_PROBE < plan.reference.size_bytes:
            with contextlib.suppress(AppError):  # the comparison itself will say why
                probes[smallest.run_id] = self._probe(plan, smallest)
        return probes

    def _probe(self, plan: ComparisonPlan, spec: RunSpec) -> Probe:
        self._terminal.progress_line(_("{label}: measuring for two seconds").format(label=spec.label))
        params = LoadParams(
            context_tokens=plan.workload.context_tokens,
            kv_type=spec.kv_type,
            threads=plan.threads,
            micro_batch_tokens=spec.micro_batch_tokens,
            kv_mode="streams",
        )
        engine = EngineRun(self._open_log, is_stopped=lambda: self._is_interrupted)
        try:
            return probe_speed(engine, LoadRequest(spec.path, spec.backend, params))
        finally:
            engine.close()

    # ----------------------------------------------------------------------------------------- during

    def _services(self, plan: ComparisonPlan) -> RunnerServices:
        def predicted_bytes(run: RunSpec, context_tokens: int) -> int | None:
            return self._predicted_bytes(plan, run, context_tokens)

        return RunnerServices(
            open_log=self._open_log,
            renderer=self._renderer,
            read_text=read_text,
            predicted_bytes=predicted_bytes,
            keeps_reference=self._flags.keep_reference,
        )

    def _open_log(self) -> Path:
        return new_worker_log(self._context.paths.logs)

    def _predicted_bytes(self, plan: ComparisonPlan, run: RunSpec, context_tokens: int) -> int | None:
        if not BACKENDS[run.backend].loads:
            return None
        with contextlib.suppress(AppError, ValueError, OSError):
            entry = self._context.library.find(run.path)
            params = LoadParams(
                context_tokens=context_tokens, kv_type=run.kv_type, threads=plan.threads, kv_mode="streams"
            )
            estimate = self._context.advisor.fit(entry, params, run.backend).estimate
            return estimate.total_bytes if estimate is not None else None
        return None

    def _on_event(self, plan: ComparisonPlan, event: RunnerEvent) -> None:
        match event:
            case PhaseChanged():
                self._terminal.progress_line(progress_text(plan, event))
            case RunEnded(failure=failure) if failure:
                run = plan.run(event.run_id)
                label = run.label if run is not None else event.run_id
                self._terminal.notice(Words(f"{label}: {failure}"))

    @contextlib.contextmanager
    def _interrupts_stop(self) -> Iterator[None]:
        """Have Ctrl+C end the work in order."""

        def interrupt(_number: int, _frame: object) -> None:
            self._is_interrupted = True
            if self._runner is not None:
                self._runner.stop()

        before = signal.signal(signal.SIGINT, interrupt)
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, before or signal.SIG_DFL)

    # ------------------------------------------------------------------------------------------ after

    def _deliver(self, folder: ComparisonFolder, result: ComparisonResult) -> None:
        """Show what was found: the verdict first, then the table."""
        terminal, plan = self._terminal, folder.plan
        if self._flags.json:
            if folder.result_path.is_file():
                terminal.json(json.loads(folder.result_path.read_bytes()))
            return
        if result.sentence:
            terminal.line(cli_text.safe_line(result.sentence.replace(NBSP, " ")))
        rows = table_rows(plan, result)
        if len(rows) > 1:
            for line in cli_text.table(rows):
                terminal.line(line)
            conditions = folder.conditions()
            for line in condition_lines(plan, result, conditions.processor, conditions.threads):
                terminal.muted(line.replace(NBSP, " "))
        for warning in result.warnings if result.state == "done" else result.warnings[1:]:
            terminal.notice(Words(warning.replace(NBSP, " ")))

    def _end(self, folder: ComparisonFolder, result: ComparisonResult) -> int:
        """Say where it lies and how it goes on, and return the exit code."""
        name = folder.path.name if folder.path.parent == comparisons_root(self._context.paths.data) else folder.path
        again = _("Go on with `cutaway compare --resume {name}`.").format(name=name)
        failed = [run.run_id for run in result.runs if run.failure]
        if self._is_interrupted and result.state != "done":
            self._terminal.notice(Words(_("Stopped. Everything that was measured is kept."), again))
            return INTERRUPTED
        if result.state != "done":
            why = result.warnings[0] if result.warnings else _("The comparison could not be finished.")
            self._terminal.notice(Words(why.replace(NBSP, " "), again))
            return FAILED
        self._terminal.muted(_("The comparison lies in {path}.").format(path=folder.path))
        if failed:
            self._terminal.muted(_("Runs that failed are tried again: {words}").format(words=again))
        return DONE if any(run.quality is not None for run in result.runs) else FAILED


def _check_flags(flags: argparse.Namespace) -> None:
    """Raise UsageError for flags that cannot be together."""
    if flags.resume:
        given = [flags.reference, flags.candidates, flags.text, flags.prompts, flags.kv_type, flags.out, flags.context]
        if any(given) or flags.amount:
            message = _("--resume goes on with a comparison as it was planned; it takes no other plan.")
            raise UsageError(Words(message, _("Leave the other flags out, or begin a new comparison.")))
    elif not flags.reference:
        message = _("Say what to compare with: --reference is missing.")
        raise UsageError(Words(message, _("It is a name of the library or a path, best the F16 of the model.")))


def _workload_of(flags: argparse.Namespace) -> WorkloadSpec:
    """Return what every run is to do; raises AppError for a text or prompts that cannot be used."""
    texts = (own_text(flags.text),) if flags.text is not None else bundled_texts()
    found = workload.preset(flags.amount or "normal", texts, flags.context or DEFAULT_CONTEXT_TOKENS)
    return workload.with_prompts(found, _prompts_of(flags.prompts)) if flags.prompts is not None else found


def _prompts_of(path: Path) -> list[str]:
    """Return the prompts of a file, one a line."""
    with path.expanduser().open("rb") as file:
        data = file.read(_MAX_PROMPTS_BYTES + 1)
    lines = [line.strip() for line in data.decode("utf-8-sig", "replace").splitlines() if line.strip()]
    if len(data) > _MAX_PROMPTS_BYTES or not lines:
        message = _("“{name}” holds no prompts: one a line, at most 1 MiB.").format(name=one_line(path.name, 80))
        raise AppError(Words(message, _("Choose another file, or leave --prompts out.")))
    return lines


def _scripted_runs(flags: argparse.Namespace) -> list[RunSpec]:
    """Return the runs of a backend whose models are scripts."""
    runs = []
    for number, text in enumerate((flags.reference, *(flags.candidates or ()))):
        path = Path(text).expanduser().absolute()
        size_bytes = path.stat().st_size
        name = f"{path.stem}-{number}"
        runs.append(RunSpec(run_id=name, label=path.stem, path=str(path), backend=flags.backend, size_bytes=size_bytes))
    return runs
