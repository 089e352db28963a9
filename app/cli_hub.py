"""`cutaway models search`, `show` and `download`: the hub from a terminal.

Says everything through the terminal it is given; prints nothing itself.
"""

from __future__ import annotations

import argparse
import queue
import time
from collections.abc import Sequence

from app import cli_commands, cli_text
from app.chat.messages import JsonObject
from app.cli_models import DONE, Terminal
from app.context import AppContext
from app.downloads.types import Download, DownloadState
from app.errors import AppError, Words, one_line
from app.hub.hub_errors import age_words, stale_words
from app.hub.recommend import Recommendation, recommend
from app.hub.types import QuantizationRow, RepoDetail, RepoReference, RepoSummary, SearchQuery
from app.hub.update_check import older_here, older_here_words
from app.i18n import _
from app.models.advisor import FitAdvisor
from app.models.fit_types import Fit
from app.models.fit_words import fit_sentence, fit_short
from app.models.quantization import meaning
from app.units import NBSP, bytes_of_text, bytes_text, count_short, count_text, number_text, percent_text, seconds_text

FAILED, INTERRUPTED = 1, 130

_LOOK_UP_S = 0.2
_OVER = (DownloadState.DONE, DownloadState.FAILED, DownloadState.CANCELLED)


def run(flags: argparse.Namespace, terminal: Terminal) -> int:
    """Do what `cutaway models search`, `show` or `download` asks for and return the exit code."""
    commands = {"search": run_search, "show": run_show, "download": run_download}
    return commands[flags.models_command](flags, terminal)


def run_search(flags: argparse.Namespace, terminal: Terminal) -> int:
    """List what the hub finds and return the exit code."""
    with cli_commands.opened_context() as context:
        query = SearchQuery(words=" ".join(flags.words), sort=flags.sort, format=flags.format)
        page = context.network.hub.search(query)
        items = page.items[: flags.limit]
        if page.is_stale and page.fault is not None:
            terminal.muted(stale_words(page.fault, page.age_s))
        if flags.json:
            terminal.json([summary_json(item) for item in items])
            return DONE
        if not items:
            terminal.notice(Words(_("Nothing is called so."), _("Try fewer words, or another spelling.")))
            return DONE
        for line in cli_text.table(_search_rows(items)):
            terminal.line(line)
    return DONE


def run_show(flags: argparse.Namespace, terminal: Terminal) -> int:
    """Show a repo's quantizations with what there is room for, and return the exit code."""
    with cli_commands.opened_context() as context:
        reference, detail = _asked_detail(context, flags.repo)
        if detail.is_stale and detail.fault is not None:
            terminal.muted(stale_words(detail.fault, detail.age_s))
        else:
            keys = (_row_of(detail, reference.quantization).key,) if reference.quantization else None
            detail = context.network.hub.read_headers(detail, lambda _row: None, keys=keys)
        fits, advice = _advised(context.advisor, detail.rows)
        if flags.json:
            rows = [row_json(row, fits.get(row.key), is_recommended=row.key == advice.key) for row in detail.rows]
            terminal.json(summary_json(detail.summary) | {"revision": detail.revision, "quantizations": rows})
            return DONE
        terminal.line(_safe(_head(detail)))
        for line in cli_text.table(_show_rows(detail.rows, fits, advice.key)) if detail.rows else ():
            terminal.line(line)
        if advice.key:
            terminal.line(_safe(f"{advice.key}: {advice.reason}"))
        if not detail.rows:
            terminal.notice(Words(_("There is no model file in this repo that can be used here.")))
    return DONE


def run_download(flags: argparse.Namespace, terminal: Terminal) -> int:
    """Download one quantization and return the exit code; what is here already is not fetched again."""
    with cli_commands.opened_context() as context:
        reference, detail = _asked_detail(context, flags.repo, refresh=True)  # what is pinned is the newest
        row = _chosen_row(context, reference, detail)
        if row.is_broken:
            raise AppError(Words(_("{key} cannot be downloaded. {fault}").format(key=row.key, fault=row.fault)))
        if (older := older_here(context.network.fetched.models(), row.files)) is not None:
            terminal.notice(older_here_words(older, time.time()))
        changes: queue.SimpleQueue[Download] = queue.SimpleQueue()
        context.network.watch_downloads(changes.put)
        title = f"{detail.summary.repo}:{row.key}"
        begun = context.network.downloads.add(title, row.files)
        try:
            ended = _wait(begun, changes, terminal)
        except KeyboardInterrupt:
            context.network.downloads.pause(begun.download_id)
            terminal.notice(
                Words(_("The download rests. What is here stays."), _("The same command goes on from there."))
            )
            return INTERRUPTED
        if ended.state is not DownloadState.DONE or ended.path is None:
            raise AppError(ended.words or Words(_("The download did not end.")))
        entry = context.library.import_path(ended.path)
        if flags.json:
            terminal.json({"key": entry.key, "path": str(ended.path), "size_bytes": ended.total_bytes})
        else:
            terminal.line(_safe(_("{key} is here: {path}").format(key=entry.key, path=ended.path)))
    return DONE


def _advised(advisor: FitAdvisor, rows: Sequence[QuantizationRow]) -> tuple[dict[str, Fit], Recommendation]:
    """Return whether each quantization would fit here, by key, without those of unknown shape; and which is best."""
    fits = {row.key: advisor.fit_shape(row.shape) for row in rows if row.shape is not None and not row.is_broken}
    return fits, recommend([(row, fits[row.key]) for row in rows if row.key in fits])


def summary_json(summary: RepoSummary) -> JsonObject:
    """Return a repo with the keys of `cutaway models search --json`."""
    return {
        "repo": summary.repo,
        "downloads": summary.downloads,
        "likes": summary.likes,
        "updated": summary.updated or None,
        "gated": bool(summary.gated),
        "licence": summary.licence or None,
        "parameters_count": summary.parameters_count,
        "context_tokens": summary.context_tokens,
        "formats": list(summary.formats),
    }


def row_json(row: QuantizationRow, fit: Fit | None, *, is_recommended: bool) -> JsonObject:
    """Return a quantization with the keys of `cutaway models show --json`; what nobody knows is null."""
    return {
        "key": row.key,
        "quantization": row.quantization or None,
        "size_bytes": row.size_bytes,
        "bits_per_weight": row.bits_per_weight,
        "fallback_tensors": row.fallback,
        "has_importance_matrix": row.imatrix,
        "files": [file.path for file in row.files],
        "sha256": [file.sha256 or None for file in row.files],
        "needed_bytes": fit.estimate.needed_bytes if fit and fit.estimate else None,
        "max_context_tokens": dict(fit.max_context_tokens) if fit else None,
        "verdict": fit.verdict.value if fit else None,
        "sentence": fit_sentence(fit) if fit else None,
        "is_recommended": is_recommended,
        "fault": row.fault or None,
    }


def progress_line(download: Download) -> str:
    """Return how far a download is, as one line: "64.0 % · 1.20 of 4.58 GiB · 48.0 MiB/s · 40.0 s left"."""
    if download.state is DownloadState.VERIFYING:
        share = download.checked_bytes / download.total_bytes if download.total_bytes else 0.0
        return _("Checking what is here: {percent}").format(percent=percent_text(share)).replace(NBSP, " ")
    share = download.done_bytes / download.total_bytes if download.total_bytes else 0.0
    facts = [percent_text(share), bytes_of_text(download.done_bytes, download.total_bytes)]
    if download.speed_bytes_per_s is not None:
        facts.append(f"{bytes_text(download.speed_bytes_per_s)}/s")
    if download.left_s is not None:
        facts.append(_("{time} left").format(time=seconds_text(download.left_s)))
    return " · ".join(facts).replace(NBSP, " ")


def _wait(begun: Download, changes: queue.SimpleQueue[Download], terminal: Terminal) -> Download:
    """Show a download's progress until it has ended, or rests for a reason that only a person can mend."""
    now, told = begun, ""
    while now.state not in _OVER and not (now.state is DownloadState.PAUSED and now.words is not None):
        words = now.words.message if now.words is not None else ""
        if words and words != told:
            told = words
            terminal.muted(words)
        terminal.progress_line(progress_line(now))
        deadline = time.monotonic() + _LOOK_UP_S
        while time.monotonic() < deadline:
            try:
                change = changes.get(timeout=_LOOK_UP_S)
            except queue.Empty:
                break
            now = change if change.download_id == begun.download_id else now
            if now.state in _OVER:
                break
    return now


def _asked_detail(context: AppContext, text: str, *, refresh: bool = False) -> tuple[RepoReference, RepoDetail]:
    hub = context.network.hub
    reference = hub.parse_reference(text)
    if reference is None:
        message = _("“{text}” is no repo of the hub.").format(text=one_line(text, 80))
        raise AppError(Words(message, _("Write it as owner/name, or paste its address; `models search` finds some.")))
    return reference, hub.detail(reference.repo, reference.revision, refresh=refresh)


def _chosen_row(context: AppContext, reference: RepoReference, detail: RepoDetail) -> QuantizationRow:
    """Return the quantization that was asked for, else the one that fits best here."""
    if reference.is_file:
        row = next((row for row in detail.rows if any(file.path == reference.path for file in row.files)), None)
        if row is not None:
            return row
    if reference.quantization:
        return _row_of(detail, reference.quantization)
    if len(detail.rows) == 1:
        return detail.rows[0]
    detail = context.network.hub.read_headers(detail, lambda _row: None)
    advice = _advised(context.advisor, detail.rows)[1]
    if not advice.key:
        message = _("None of the quantizations is known to fit here: {keys}.")
        keys = ", ".join(row.key for row in detail.rows) or "-"
        raise AppError(Words(message.format(keys=keys), _("Name one: REPO:QUANTIZATION.")))
    return _row_of(detail, advice.key)


def _row_of(detail: RepoDetail, name: str) -> QuantizationRow:
    row = detail.row(name)
    if row is None:
        message = _("{repo} has no quantization “{name}”.").format(repo=detail.summary.repo, name=one_line(name, 40))
        there = _("There are: {keys}.").format(keys=", ".join(row.key for row in detail.rows) or "-")
        raise AppError(Words(message, there))
    return row


def _search_rows(items: Sequence[RepoSummary]) -> list[list[str]]:
    heads = [_("Repo"), _("Parameters"), _("Downloads"), _("Updated"), _("Licence")]
    return [
        heads,
        *(
            [
                item.repo + (f" ({_('gated')})" if item.gated else ""),
                _short_count(item.parameters_count) if item.parameters_count else "-",
                _short_count(item.downloads),
                item.updated[:10] or "-",
                item.licence or "-",
            ]
            for item in items
        ),
    ]


def _show_rows(rows: Sequence[QuantizationRow], fits: dict[str, Fit], recommended: str) -> list[list[str]]:
    heads = [_("Quantization"), _("In words"), _("Bits/weight"), _("Size"), _("On this machine"), ""]
    return [
        heads,
        *(
            [
                row.key,
                meaning(row.quantization).words,
                number_text(row.bits_per_weight) if row.bits_per_weight else "-",
                bytes_text(row.size_bytes),
                fit_short(fits[row.key]) if row.key in fits else "-",
                row.fault or (_("recommended") if row.key == recommended else ""),
            ]
            for row in rows
        ),
    ]


def _head(detail: RepoDetail) -> str:
    summary = detail.summary
    facts = [summary.repo]
    if summary.parameters_count:
        facts.append(_("{count} parameters").format(count=_short_count(summary.parameters_count)))
    if summary.context_tokens:
        facts.append(_("{count} tokens of context").format(count=count_text(summary.context_tokens)))
    facts.append(summary.licence or _("no licence stated"))
    if summary.gated:
        facts.append(_("gated"))
    if detail.age_s:
        facts.append(age_words(detail.age_s))
    return " · ".join(facts)


def _short_count(count: int) -> str:
    return count_text(count) if count < 1000 else count_short(count)


def _safe(text: str) -> str:
    return cli_text.safe_line(text)
