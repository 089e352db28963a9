"""Everything that goes wrong while a hub is asked, and the words for it.

Faults of the network itself have their words in app/models/http_faults.py; here are those of a hub's answers. Knows no
HTTP library; app/hub/hub_call.py says what went wrong.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping

from app.errors import AppError, Words, one_line
from app.i18n import _, ngettext
from app.models.http_faults import RemoteError, RemoteFault


class HubErrorKind(enum.StrEnum):
    """Why a hub gave no answer."""

    OFFLINE = "offline"  # no network, no such host, or it refuses
    SWITCHED_OFF = "switched_off"  # HF_HUB_OFFLINE is set
    SLOW = "slow"  # silent for too long, or the whole took too long
    RATE_LIMITED = "rate_limited"  # 429
    SERVER_FAULT = "server_fault"  # 5xx, or the connection broke off
    GATED = "gated"  # its licence must be accepted first
    TOKEN_REFUSED = "token_refused"  # 401: the token is not known
    NO_ACCESS = "no_access"  # 403
    NOT_FOUND = "not_found"  # no such repo, or not for this person
    NO_REVISION = "no_revision"  # the repo has no such commit
    BAD_ANSWER = "bad_answer"  # no listing, too large, or it makes no sense
    WEB_PAGE = "web_page"  # a page in place of the answer
    CERTIFICATE = "certificate"  # the hub cannot prove who it is
    BAD_PROXY = "bad_proxy"  # the proxy cannot be used
    BAD_ADDRESS = "bad_address"  # the hub's own address, or where it sends us
    NO_REFERENCE = "no_reference"  # an address that is none of a model
    CANCELLED = "cancelled"  # the caller gave up


# While these last an old answer is better than none.
PASSING = frozenset(
    {
        HubErrorKind.OFFLINE,
        HubErrorKind.SWITCHED_OFF,
        HubErrorKind.SLOW,
        HubErrorKind.RATE_LIMITED,
        HubErrorKind.SERVER_FAULT,
        HubErrorKind.BAD_ANSWER,
        HubErrorKind.WEB_PAGE,
        HubErrorKind.CERTIFICATE,
        HubErrorKind.BAD_PROXY,
        HubErrorKind.BAD_ADDRESS,
    }
)
# What a person can do: give a token, accept the licence, change the settings; else only try again.
_ACTIONS: Mapping[HubErrorKind, str] = {
    HubErrorKind.GATED: "licence",
    HubErrorKind.NO_ACCESS: "licence",
    HubErrorKind.TOKEN_REFUSED: "token",
    HubErrorKind.BAD_PROXY: "settings",
    HubErrorKind.CERTIFICATE: "settings",
    HubErrorKind.BAD_ADDRESS: "settings",
    **dict.fromkeys(
        (
            HubErrorKind.SWITCHED_OFF,
            HubErrorKind.NOT_FOUND,
            HubErrorKind.NO_REVISION,
            HubErrorKind.NO_REFERENCE,
            HubErrorKind.CANCELLED,
        ),
        "",
    ),
}
_OF_FAULT: Mapping[RemoteFault, HubErrorKind] = {
    RemoteFault.BAD_ADDRESS: HubErrorKind.BAD_ADDRESS,
    RemoteFault.NOT_SECURE: HubErrorKind.BAD_ADDRESS,
    RemoteFault.REDIRECTS: HubErrorKind.BAD_ADDRESS,
    RemoteFault.BAD_HEADER: HubErrorKind.TOKEN_REFUSED,
    RemoteFault.UNREACHABLE: HubErrorKind.OFFLINE,
    RemoteFault.BAD_PROXY: HubErrorKind.BAD_PROXY,
    RemoteFault.PROXY_UNREACHABLE: HubErrorKind.BAD_PROXY,
    RemoteFault.BAD_CA_FILE: HubErrorKind.CERTIFICATE,
    RemoteFault.CERTIFICATE: HubErrorKind.CERTIFICATE,
    RemoteFault.CERTIFICATE_DATE: HubErrorKind.CERTIFICATE,
    RemoteFault.NOT_TLS: HubErrorKind.CERTIFICATE,
    RemoteFault.TOO_SLOW: HubErrorKind.SLOW,
    RemoteFault.BROKEN_OFF: HubErrorKind.SERVER_FAULT,
    RemoteFault.WEB_PAGE: HubErrorKind.WEB_PAGE,
}


class HubError(AppError):
    """A hub gave no answer.

    Attributes:
        kind: why.
        status: the HTTP status that said so; 0 without one.
        retry_after_s: how long the hub asks to wait; None when it does not.
        action: what a person can do: "retry", "token", "licence", "settings" or "" for nothing.
    """

    def __init__(
        self,
        kind: HubErrorKind,
        host: str = "",
        *,
        status: int = 0,
        detail: str = "",
        retry_after_s: int | None = None,
        words: Words | None = None,
    ) -> None:
        super().__init__(words or _words(kind, host, status, detail, retry_after_s))
        self.kind = kind
        self.status = status
        self.retry_after_s = retry_after_s
        self.action = _ACTIONS.get(kind, "retry")


def of_remote(error: RemoteError) -> HubError:
    """Return the hub's error for one of the network; its words stay."""
    kind = _OF_FAULT.get(error.fault, HubErrorKind.BAD_ANSWER)
    return HubError(kind, status=error.status, retry_after_s=error.retry_after_s, words=error.words)


def age_words(age_s: float) -> str:
    """Return how long ago something was, such as "3 hours ago"."""
    minutes = int(max(0.0, age_s) // 60)
    if minutes < 1:
        return _("just now")
    if minutes < 60:
        return ngettext("{count} minute ago", "{count} minutes ago", minutes).format(count=minutes)
    hours = minutes // 60
    if hours < 48:
        return ngettext("{count} hour ago", "{count} hours ago", hours).format(count=hours)
    return ngettext("{count} day ago", "{count} days ago", hours // 24).format(count=f"{hours // 24:,}")


def stale_words(fault: Words | None, age_s: float) -> str:
    """Return why an old answer is shown, and how old it is."""
    shown = _("What you see is from before: {age}.").format(age=age_words(age_s))
    return f"{fault.message} {shown}" if fault is not None else shown


def _words(kind: HubErrorKind, host: str, status: int, detail: str, retry_after_s: int | None) -> Words:
    message, hint = _WORDS.get(kind, _WORDS[HubErrorKind.BAD_ANSWER])()
    if retry_after_s is not None and kind in (HubErrorKind.RATE_LIMITED, HubErrorKind.SERVER_FAULT):
        waiting = ngettext("It asks to wait {seconds} second.", "It asks to wait {seconds} seconds.", retry_after_s)
        hint = waiting.format(seconds=f"{retry_after_s:,}")
    values = {"host": one_line(host, 80) or _("The hub"), "status": str(status), "detail": one_line(detail, 120)}
    return Words(message.format_map(values), hint.format_map(values))


_WORDS: dict[HubErrorKind, Callable[[], tuple[str, str]]] = {
    HubErrorKind.SWITCHED_OFF: lambda: (
        _("The hub is not asked, because HF_HUB_OFFLINE is set on this computer."),
        _("Remove that variable and start Cutaway again. What is on this machine works anyway."),
    ),
    HubErrorKind.SLOW: lambda: (_("{host} took too long to answer."), _("Try again in a moment.")),
    HubErrorKind.RATE_LIMITED: lambda: (
        _("{host} was asked too often and wants a pause."),
        _("Try again in some minutes; with a token more questions are allowed."),
    ),
    HubErrorKind.SERVER_FAULT: lambda: (
        _("{host} has a fault of its own at the moment (status {status})."),
        _("Try again later."),
    ),
    HubErrorKind.GATED: lambda: (
        _("{host} gives these files only to those who accepted their licence."),
        _("Accept it on the model's page, give your token here, and try again."),
    ),
    HubErrorKind.TOKEN_REFUSED: lambda: (
        _("{host} does not accept the token."),
        _("Give a new one, or remove it: most models need none."),
    ),
    HubErrorKind.NO_ACCESS: lambda: (
        _("{host} does not allow this (status {status})."),
        _("Look at the model's page: a licence may have to be accepted, or the token may lack a permission."),
    ),
    HubErrorKind.NOT_FOUND: lambda: (
        _("{host} has no model “{detail}”."),
        _("Check the spelling. If it is private, give a token that may read it."),
    ),
    HubErrorKind.NO_REVISION: lambda: (
        _("This model has no version “{detail}”."),
        _("Open it without naming a version."),
    ),
    HubErrorKind.BAD_ANSWER: lambda: (
        _("{host} gave an answer that makes no sense: {detail}."),
        _("Try again. If it stays so, check the hub's address in the settings."),
    ),
    HubErrorKind.WEB_PAGE: lambda: (
        _("A web page came in place of the answer of {host}."),
        _("Check whether this network wants you to sign in first."),
    ),
    HubErrorKind.NO_REFERENCE: lambda: (
        _("This address is not that of a model at the hub: {detail}."),
        _("Paste the address of a model or of one of its files, or type owner/name."),
    ),
    HubErrorKind.CANCELLED: lambda: (_("The question was taken back."), ""),
}
