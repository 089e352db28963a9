"""`cutaway fit`: what a model would take here, by owner, and the largest context there is room for.

Finds the model in the library, on disk or, by its header alone, behind an address. Prints nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from urllib.parse import urlsplit

from app.chat.messages import JsonObject
from app.context import AppContext
from app.engines.backend_choice import backends_for
from app.errors import AppError, Words, one_line
from app.i18n import _
from app.models.byte_source import HeaderError
from app.models.entry import ModelEntry
from app.models.fit_records import rest_bytes
from app.models.fit_types import Fit, FitQuestion, Measured, MemoryEstimate, Verdict
from app.models.fit_words import fit_sentence, owner_rows
from app.models.model_name import model_name
from app.models.quantization import effective_bits
from app.models.shape_gguf import shape_of_gguf
from app.units import bytes_text, count_text, percent_text, rate_text
from backends.protocol import LoadParams
from backends.registry import BACKENDS


def find_model(context: AppContext, text: str) -> ModelEntry:
    """Return what `fit` is asked about.

    Raises:
        LibraryError: nothing is called so.
        AppError: the address gives no header.
    """
    if text.startswith(("http://", "https://")):
        return _remote_entry(text)
    return context.library.find(text)


def fit_json(entry: ModelEntry, question: FitQuestion, fit: Fit, measured: Measured | None) -> JsonObject:
    """Return the answer with the keys of `cutaway fit --json`; what nobody knows is null."""
    params = question.params
    return {
        "model": entry.key,
        "quantization": entry.quantization,
        "backend": question.backend,
        "device": fit.device.name if fit.device else None,
        "context_tokens": fit.context_tokens,
        "kv_type": params.kv_type,
        "source": fit.estimate.source if fit.estimate else None,
        "predicted": _predicted(fit.estimate) if fit.estimate else None,
        "measured": _measured(measured) if measured else None,
        "free_bytes": fit.free_bytes,
        "max_context_tokens": dict(fit.max_context_tokens),
        "gpu_layers": fit.gpu_layers,
        "decode_tokens_per_s": fit.decode_tokens_per_s,
        "verdict": fit.verdict.value,
        "fits": None if fit.verdict is Verdict.UNKNOWN else fit.verdict is not Verdict.TOO_LARGE,
        "sentence": fit_sentence(fit),
    }


def fit_table(fit: Fit, measured: Measured | None) -> list[list[str]]:
    """Return the owners as the rows of a table, its head first."""
    rows = [[_("Owner"), _("Predicted"), _("Measured"), _("Off")]]
    for row in owner_rows(fit, measured):
        is_known = row.predicted_bytes and row.measured_bytes is not None
        off = (row.measured_bytes or 0) / row.predicted_bytes - 1 if is_known and row.predicted_bytes else None
        rows.append(
            [
                row.title,
                bytes_text(row.predicted_bytes),
                "-" if row.measured_bytes is None else bytes_text(row.measured_bytes),
                "-" if off is None else percent_text(off, signed=True),
            ]
        )
    return rows


def fit_lines(entry: ModelEntry, question: FitQuestion, fit: Fit) -> list[str]:
    """Return what is said around the table: the sentence, the largest contexts, the speed."""
    params = question.params
    lines = [f"{entry.key}: {fit_sentence(fit)}"]
    rooms = [
        _("{type}: {tokens} tokens").format(type=kv_type, tokens=count_text(tokens))
        for kv_type, tokens in fit.max_context_tokens.items()
        if tokens
    ]
    if rooms:
        lines.append(_("Largest context by KV type: {rooms}").format(rooms=", ".join(rooms)))
    if fit.decode_tokens_per_s is not None:
        words = _("Speed measured here: {rate}") if fit.is_speed_measured else _("Speed predicted: about {rate}")
        lines.append(words.format(rate=rate_text(fit.decode_tokens_per_s)))
    lines.append(_source_words(fit, params))
    if backends_for(entry)[0].name != question.backend:
        lines.append(_("Asked for the {backend} engine.").format(backend=BACKENDS[question.backend].title))
    return [line for line in lines if line]


def _source_words(fit: Fit, params: LoadParams) -> str:
    if fit.estimate is None:
        return ""
    words: Mapping[str, str] = {
        "header": _("Predicted from the file's header for {tokens} tokens with {type} KV."),
        "probe": _("Told by the engine's allocator, nothing loaded, for {tokens} tokens with {type} KV."),
        "measured": _("Measured here in an earlier load with {tokens} tokens and {type} KV."),
    }
    return words[fit.estimate.source].format(tokens=count_text(fit.context_tokens), type=params.kv_type)


def _predicted(estimate: MemoryEstimate) -> JsonObject:
    """Return the estimate by the owners that the plots have, too: buffers of output and draft are compute."""
    return {
        "weights_bytes": estimate.weights_bytes + estimate.projector_bytes,
        "kv_reserved_bytes": estimate.kv_bytes,
        "kv_used_bytes": 0,
        "compute_bytes": estimate.compute_bytes + estimate.output_bytes + estimate.draft_bytes,
        "rest_bytes": estimate.floor_bytes + estimate.tables_bytes,
        "total_bytes": estimate.total_bytes,
    }


def _measured(measured: Measured) -> JsonObject:
    split = measured.split
    compute = split.compute_bytes + split.output_bytes + split.draft_bytes
    owned = split.weights_bytes + split.kv_reserved_bytes + compute
    rest = rest_bytes(measured)
    rest = measured.floor_bytes if rest is None else rest
    return {
        "weights_bytes": split.weights_bytes,
        "kv_reserved_bytes": split.kv_reserved_bytes,
        "kv_used_bytes": 0,
        "compute_bytes": compute,
        "rest_bytes": rest,
        "total_bytes": measured.process_bytes or owned + rest,
    }


def _remote_entry(url: str) -> ModelEntry:
    """Return what the header behind an address says; nothing else is fetched.

    Raises:
        RemoteError: nothing could be fetched.
        AppError: what is there is no model.
    """
    from app.models.remote_header import read_remote_header  # brings the HTTP client

    try:
        remote = read_remote_header(url)
    except HeaderError as error:
        message = _("The header of {url} could not be read: {detail}")
        raise AppError(
            Words(message.format(url=one_line(url), detail=one_line(str(error))), _("Check the address."))
        ) from error
    path = Path(PurePosixPath(urlsplit(url).path).name or "model.gguf")
    header = remote.header
    name = model_name(header, path)
    return ModelEntry(
        key=f"{name}:{header.quantization}",
        name=name,
        path=path,
        quantization=header.quantization,
        architecture=header.architecture,
        size_bytes=remote.size_bytes,
        parameters_count=header.parameters_count,
        context_tokens=header.context_length,
        bits_per_weight=effective_bits(header),
        shape=shape_of_gguf(header),
    )
