"""The words for a library entry that several parts of the models screen share.

Knows no widget. What the fit says is worded in `app.models.fit_words`, for every screen alike.
"""

from __future__ import annotations

from collections.abc import Mapping

from app.i18n import _
from app.models.entry import ModelEntry
from app.models.fit_types import Fit, Verdict
from app.models.fit_words import context_text
from app.models.quantization import QuantizationMeaning, meaning
from app.units import count_short, count_text
from ui.models.model_choice import PLAIN_KV, NamedModel, one_line, recommended

_DIGEST_CHARACTERS = 12

# The contexts offered, up to what the model was trained for.
_CONTEXTS = (512, 2048, 4096, 8192, 16_384, 32_768, 65_536, 131_072, 262_144, 524_288, 1_048_576)


def origin_text(entry: ModelEntry) -> str:
    """Return where an entry comes from, in a few words."""
    words: Mapping[str, str] = {
        "starter": "Cutaway",
        "imported": _("added by you"),
        "folder": _("models folder"),
        "huggingface": "Hugging Face",
        "lm_studio": "LM Studio",
        "ollama": "Ollama",
        "jan": "Jan",
        "gpt4all": "GPT4All",
        "added": _("your folder"),
    }
    return words.get(entry.origin, entry.origin)


def keeper_text(entry: ModelEntry) -> str:
    """Return the program that keeps an entry's files; "" when they are this program's or the person's to delete."""
    keepers = {"huggingface": "Hugging Face", "lm_studio": "LM Studio", "ollama": "Ollama", "jan": "Jan"}
    return {**keepers, "gpt4all": "GPT4All"}.get(entry.origin, "")


def quantization_text(entry: ModelEntry) -> str:
    """Return the name of an entry's quantization; a dash where it is not known."""
    return one_line(entry.quantization) or "–"


def entry_meaning(entry: ModelEntry) -> QuantizationMeaning | None:
    """Return what an entry's quantization means, by its name and its file; None when the header tells neither."""
    if not entry.quantization and entry.bits_per_weight <= 0:
        return None
    return meaning(entry.quantization, entry.bits_per_weight, entry.fallback_tensors)


def facts_text(model: NamedModel) -> str:
    """Return what is true of every quantization: "8.03 B parameters · 32 layers · 128k context · llama"."""
    entry = next(iter(model.usable), model.entries[0])
    facts = []
    if model.parameters_count:
        facts.append(_("{count} parameters").format(count=count_short(model.parameters_count)))
    if entry.shape is not None and entry.shape.layers:
        facts.append(_("{count} layers").format(count=len(entry.shape.layers)))
        heads = {layer.kv_heads for layer in entry.shape.layers if layer.kv_heads}
        if len(heads) == 1:
            facts.append(_("{count} KV heads").format(count=heads.pop()))
        elif heads:
            facts.append(_("{low} to {high} KV heads").format(low=min(heads), high=max(heads)))
    if entry.context_tokens:
        facts.append(_("{tokens} context").format(tokens=context_text(entry.context_tokens)))
    facts += [one_line(word) for word in (entry.architecture, entry.owner) if word]
    return " · ".join(facts)


def second_line(model: NamedModel, fits: Mapping[str, Fit], loaded_key: str) -> str:
    """Return the line under a name in the list: "8.03 B · Q4_K_M, room for 17k tokens"."""
    usable = model.usable
    if not usable:
        return _("cannot be used: {fault}").format(fault=one_line(model.entries[0].fault))
    loaded = next((entry for entry in usable if entry.key == loaded_key), None)
    chosen = recommended(usable, fits)
    entry = loaded or (chosen.entry if chosen is not None else usable[0])
    words = [count_short(model.parameters_count), _with_room(entry, fits.get(entry.key))]
    return " · ".join(word for word in words if word)


def context_choices(trained_tokens: int, *more: int) -> dict[str, str]:
    """Return the contexts that can be chosen, as text and in words; "0" leaves it to the engine.

    Args:
        trained_tokens: what the model was trained for; 0 when unknown.
        more: others that must be there.
    """
    offered = {tokens for tokens in _CONTEXTS if tokens <= (trained_tokens or _CONTEXTS[-1])}
    offered |= {tokens for tokens in (trained_tokens, *more) if tokens > 0}
    words = {"0": _("Automatic")}
    return words | {str(tokens): count_text(tokens) for tokens in sorted(offered)}


def name_mark(model: NamedModel, loaded_key: str) -> str:
    """Return what stands beside a name in the list: that it is loaded, or that it came with the program."""
    if any(entry.key == loaded_key for entry in model.entries):
        return _("loaded")
    return _("starter model") if any(entry.origin == "starter" for entry in model.entries) else ""


def digest_text(identity: str) -> str:
    """Return the beginning of a SHA-256; "" when the bytes were never hashed."""
    kind, _colon, digest = identity.partition(":")
    return digest[:_DIGEST_CHARACTERS] if kind == "sha256" else ""


def _with_room(entry: ModelEntry, fit: Fit | None) -> str:
    words = [one_line(entry.quantization), _room_words(fit) if fit is not None else ""]
    return ", ".join(word for word in words if word)


def _room_words(fit: Fit) -> str:
    room = fit.max_context_tokens.get(PLAIN_KV)
    if fit.verdict is Verdict.UNKNOWN:
        return _("not known whether it fits")
    if fit.verdict is Verdict.TOO_LARGE:
        return _("too large")
    return _("room for {tokens} tokens").format(tokens=context_text(room)) if room else _("fits in part")
