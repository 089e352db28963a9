"""The words for what a hub says: the lines of its lists, the facts over a table, the files of a row.

Every name and word in them was written by strangers: it is made one line here and shown as plain text. Knows no widget.
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping

from app.downloads.types import FileRef
from app.errors import one_line
from app.hub.curated import Pick
from app.hub.hub_errors import age_words
from app.hub.recommend import Recommendation
from app.hub.types import Publisher, QuantizationRow, RepoDetail, RepoSummary
from app.i18n import _, ngettext
from app.models.fit_types import Fit, Machine
from app.models.fit_words import context_text
from app.models.model_name import without_format
from app.models.quantization import QuantizationMeaning, meaning
from app.units import NBSP, bytes_text, count_short, count_text
from ui.models.hub_choice import projector_of
from ui.models.model_banner import deciding_device, machine_sentence
from ui.models.model_choice import PLAIN_KV

_SEPARATOR = " · "
_DAY_S = 86_400
_MONTH_DAYS, _YEAR_DAYS = 30.4, 365.25
# How licences are called by people; others are shown as the hub spells them.
_LICENCES: Mapping[str, str] = {
    "apache-2.0": "Apache 2.0",
    "mit": "MIT",
    "llama2": "Llama 2",
    "llama3": "Llama 3",
    "llama3.1": "Llama 3.1",
    "llama3.2": "Llama 3.2",
    "llama3.3": "Llama 3.3",
    "llama4": "Llama 4",
    "gemma": "Gemma",
    "cc-by-4.0": "CC BY 4.0",
    "cc-by-nc-4.0": "CC BY-NC 4.0",
    "cc-by-sa-4.0": "CC BY-SA 4.0",
    "bsd-3-clause": "BSD 3-clause",
}


def model_title(name: str) -> str:
    """Return a repo's name as that of a model: on one line, without "-GGUF"."""
    shown = one_line(name, 120)
    return without_format(shown) or shown


def since_text(when: datetime.datetime | None, now: datetime.datetime) -> str:
    """Return how long ago something was: "3 days ago", "5 months ago"; "" when that is not known."""
    if when is None:
        return ""
    aware = when if when.tzinfo is not None else when.replace(tzinfo=datetime.UTC)
    age_s = max(0.0, (now - aware).total_seconds())
    days = age_s / _DAY_S
    if days < 2 * _MONTH_DAYS:
        return age_words(age_s)
    if days < 2 * _YEAR_DAYS:
        months = int(days / _MONTH_DAYS)
        return ngettext("{count} month ago", "{count} months ago", months).format(count=months)
    years = int(days / _YEAR_DAYS)
    return ngettext("{count} year ago", "{count} years ago", years).format(count=years)


def downloads_text(count: int) -> str:
    """Return how often something was downloaded: "1.20 M downloads"; "" for never."""
    words = ngettext("{count} download", "{count} downloads", count)
    return words.format(count=count_short(count)) if count > 0 else ""


def licence_text(licence: str) -> str:
    """Return a licence as people call it: "Apache 2.0 licence"; "" when the hub does not say."""
    plain = one_line(licence, 60)
    known = _LICENCES.get(plain.casefold(), plain)
    return _("{name} licence").format(name=known) if known and known.casefold() != "other" else ""


def summary_line(summary: RepoSummary, now: datetime.datetime) -> str:
    """Return the line under a repo's name: "8.19 B · bartowski · 1.20 M downloads · 3 days ago"."""
    facts = (
        count_short(summary.parameters_count or 0),
        one_line(summary.owner, 60),
        downloads_text(summary.downloads),
        since_text(summary.updated_at, now),
    )
    return _SEPARATOR.join(fact for fact in facts if fact)


def pick_line(pick: Pick) -> str:
    """Return the line under a pick's name: "8.03 B · Q4_K_M, room for 17k tokens"."""
    room = pick.fit.max_context_tokens.get(PLAIN_KV)
    words = _("{quantization}, room for {tokens} tokens").format(
        quantization=one_line(pick.quantization, 40), tokens=context_text(room)
    )
    return _SEPARATOR.join(filter(None, (count_short(pick.parameters_count), words)))


def facts_line(detail: RepoDetail) -> str:
    """Return what is true of the whole model: "8.03 B parameters · 32 layers · 128k context · Llama 3.1 licence"."""
    summary = detail.summary
    shape = next((row.shape for row in detail.rows if row.is_shape_exact and row.shape is not None), None)
    parameters = summary.parameters_count or (shape.parameters_count if shape is not None else 0)
    context = (shape.context_tokens if shape is not None else 0) or summary.context_tokens or 0
    facts = [_("{count} parameters").format(count=count_short(parameters)) if parameters else ""]
    if shape is not None and shape.layers:
        facts.append(_("{count} layers").format(count=len(shape.layers)))
        heads = {layer.kv_heads for layer in shape.layers if layer.kv_heads}
        if len(heads) == 1:
            facts.append(_("{count} KV heads").format(count=heads.pop()))
    facts.append(_("{tokens} context").format(tokens=context_text(context)) if context else "")
    facts.append(licence_text(summary.licence))
    facts.append(gate_text(detail))
    return _SEPARATOR.join(fact for fact in facts if fact)


def gate_text(detail: RepoDetail) -> str:
    """Return whether a person may have the files, in a few words; "" where everybody may."""
    if not detail.summary.gated:
        return ""
    return _("gated, and open to you") if detail.access == "granted" else _("gated")


def files_text(detail: RepoDetail, row: QuantizationRow) -> str:
    """Return what belongs to a row: "3 files + vision projector"; "" for one file alone."""
    count = len(row.files)
    words = ngettext("{count} file", "{count} files", count).format(count=count_text(count))
    if row.format == "gguf" and projector_of(detail) is not None:
        return _("{files} + vision projector").format(files=words)
    return words if count > 1 else ""


def projector_text(file: FileRef) -> str:
    """Return the offer to take the vision projector along."""
    return _("With its vision projector, {size}").format(size=bytes_text(file.size_bytes))


def row_name(row: QuantizationRow) -> str:
    """Return what a row is called: its quantization, and what tells it from another one of the same."""
    return one_line(row.key, 80) or one_line(row.quantization, 40) or "–"


def row_meaning(row: QuantizationRow) -> QuantizationMeaning | None:
    """Return what a row's quantization means; None when neither its name nor its header tells."""
    if not row.quantization and not row.bits_per_weight:
        return None
    return meaning(row.quantization, row.bits_per_weight or 0.0, row.fallback)


def banner_text(
    chosen: Recommendation, fits: Mapping[str, Fit], machine: Machine | None, has_published: bool, is_reading: bool
) -> str:
    """Return the sentence over the table: what there is, which row to take and why; "" while nothing is known."""
    if machine is None:
        return ""
    known = list(fits.values())
    sentences = [machine_sentence(deciding_device(known) or machine.cpu)]
    if chosen.key:
        sentences.append(_("{quantization} is recommended.").format(quantization=one_line(chosen.key, 80)))
    if chosen.reason:
        sentences.append(chosen.reason)
    elif is_reading:
        sentences.append(_("The files' headers are being read, to say what fits."))
    if known:
        figures = _("Figures in italics are predicted; yours replace them after the first load.")
        if has_published:
            figures = _("Figures in italics are published or predicted; yours replace them after the first load.")
        sentences.append(figures)
    return " ".join(sentences)


def matrix_text(has_matrix: bool | None) -> str:
    """Return whether an importance matrix was used."""
    if has_matrix is None:
        return _("unknown")
    return _("yes") if has_matrix else _("no")


def publisher_line(detail: RepoDetail, others_count: int | None, now: datetime.datetime) -> str:
    """Return the line under the table: "publisher bartowski · importance matrix yes · 3 days ago"."""
    summary = detail.summary
    known = {row.imatrix for row in detail.rows if row.imatrix is not None}
    matrix = None if not known else True in known
    facts = [
        _("publisher {name}").format(name=one_line(summary.owner, 60)),
        _("importance matrix {answer}").format(answer=matrix_text(matrix)),
        downloads_text(summary.downloads),
    ]
    if summary.updated_at is not None:
        facts.append(_("changed {since}").format(since=since_text(summary.updated_at, now)))
    if others_count == 0:
        facts.append(_("no other publisher known"))
    if detail.refused_files:
        words = ngettext(
            "{count} file with an unsafe name left out",
            "{count} files with unsafe names left out",
            detail.refused_files,
        )
        facts.append(words.format(count=count_text(detail.refused_files)))
    return _SEPARATOR.join(fact for fact in facts if fact)


def publisher_cells(publisher: Publisher, now: datetime.datetime) -> tuple[str, str, str, str, str]:
    """Return a publisher's row: name, importance matrix, when, downloads, quantizations."""
    names = publisher.quantizations
    offered = ", ".join(one_line(name, 24) for name in names[:3])
    if len(names) > 3:
        offered = ngettext("{count} quantization", "{count} quantizations", len(names)).format(count=len(names))
    return (
        one_line(publisher.owner, 60),
        matrix_text(publisher.has_importance_matrix),
        since_text(_moment(publisher.updated), now) or "–",
        count_short(publisher.downloads) or "–",
        offered or "–",
    )


def countdown_text(seconds: int) -> str:
    """Return how long a hub wants not to be asked."""
    words = ngettext("It can be asked again in {count} second.", "It can be asked again in {count} seconds.", seconds)
    return words.format(count=f"{seconds:,}").replace(f"{seconds:,} ", f"{seconds:,}{NBSP}")


def _moment(text: str) -> datetime.datetime | None:
    try:
        return datetime.datetime.fromisoformat(text)
    except ValueError:
        return None
