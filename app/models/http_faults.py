"""Everything that goes wrong while a file is read from a server, and the words for it.

Knows no HTTP library and opens nothing; app/models/http_source.py says which fault it is.
"""

from __future__ import annotations

import enum
from collections.abc import Callable

from app.errors import AppError, Words, one_line
from app.i18n import _
from app.units import bytes_text


class RemoteFault(enum.StrEnum):
    """Why a server's file could not be read."""

    BAD_ADDRESS = "bad_address"  # not http or https, no host, or a name and password in it
    BAD_HEADER = "bad_header"  # a header, such as the one with the token, that cannot be sent
    NOT_SECURE = "not_secure"  # a token would travel in the clear, or https led to http
    UNREACHABLE = "unreachable"  # no such host, refused, no network
    BAD_PROXY = "bad_proxy"  # the proxy setting cannot be used, or the proxy refuses
    PROXY_UNREACHABLE = "proxy_unreachable"  # the proxy itself does not answer
    BAD_CA_FILE = "bad_ca_file"  # the chosen file of certificates cannot be read
    CERTIFICATE = "certificate"  # the server cannot prove who it is
    CERTIFICATE_DATE = "certificate_date"  # its certificate is too old or too new for this computer's date
    NOT_TLS = "not_tls"  # no encrypted connection came about
    TOO_SLOW = "too_slow"  # silent for too long, or the whole took too long
    BROKEN_OFF = "broken_off"  # the connection ended in the middle
    NO_ACCESS = "no_access"  # 401, 403: a token or a licence is missing
    TOKEN_REFUSED = "token_refused"  # 401 although a token was sent
    GATED = "gated"  # 401, 403: the licence must be accepted first
    EXPIRED = "expired"  # 403 of a host that the hub sent to: its address holds for a while only
    MISSING = "missing"  # 404, 410
    RANGE_REFUSED = "range_refused"  # 416
    BUSY = "busy"  # 429
    SERVER_FAULT = "server_fault"  # 5xx
    UNEXPECTED = "unexpected"  # any other status
    REDIRECTS = "redirects"  # too many, in a circle, or to nowhere
    WEB_PAGE = "web_page"  # a page in place of the file
    ENCODED = "encoded"  # compressed although that was not asked for
    WRONG_RANGE = "wrong_range"  # another part than was asked for
    NO_SIZE = "no_size"  # the server does not say how large the file is
    CHANGED = "changed"  # the file was exchanged between two requests
    TOO_LARGE = "too_large"  # the header is larger than what may be read over the network


class RemoteError(AppError):
    """A file could not be read from a server.

    Attributes:
        fault: why.
        status: the HTTP status that said so; 0 without one.
        retry_after_s: how long the server asks to wait; None when it does not.
    """

    def __init__(
        self,
        fault: RemoteFault,
        host: str = "",
        *,
        status: int = 0,
        detail: str = "",
        limit_bytes: int = 0,
        retry_after_s: int | None = None,
    ) -> None:
        message, hint = _WORDS[fault]()
        values = {
            "host": one_line(host, 80) or _("unknown"),
            "status": str(status),
            "detail": one_line(detail, 120),
            "limit": bytes_text(limit_bytes),
        }
        if retry_after_s is not None and fault in (RemoteFault.BUSY, RemoteFault.SERVER_FAULT):
            hint = _("The server asks to wait {seconds} seconds.").format(seconds=f"{retry_after_s:,}")
        super().__init__(Words(message.format_map(values), hint.format_map(values)))
        self.fault = fault
        self.status = status
        self.retry_after_s = retry_after_s


_WORDS: dict[RemoteFault, Callable[[], tuple[str, str]]] = {
    RemoteFault.BAD_ADDRESS: lambda: (
        _("This is not an address that a model can be read from: {detail}"),
        _("Use an address that begins with https:// and holds no name or password."),
    ),
    RemoteFault.BAD_HEADER: lambda: (
        _("What was to be sent along with the address holds characters that cannot be sent ({detail})."),
        _("Copy the token again, without line ends."),
    ),
    RemoteFault.NOT_SECURE: lambda: (
        _("The connection to {host} would not be encrypted, so it was not used."),
        _("Use an address that begins with https://."),
    ),
    RemoteFault.UNREACHABLE: lambda: (
        _("{host} cannot be reached."),
        _("Check that this computer is connected to the network, then try again."),
    ),
    RemoteFault.BAD_PROXY: lambda: (
        _("The proxy that is set on this computer cannot be used: {detail}"),
        _("Check the proxy in Cutaway's settings, in the system's settings or in the environment."),
    ),
    RemoteFault.PROXY_UNREACHABLE: lambda: (
        _("The proxy {host} cannot be reached."),
        _("Check the network, and the proxy in Cutaway's settings, in the system's settings or in the environment."),
    ),
    RemoteFault.BAD_CA_FILE: lambda: (
        _("The CA file cannot be used: {detail}"),
        _("Choose a file of certificates in PEM form in the settings, or none."),
    ),
    RemoteFault.CERTIFICATE: lambda: (
        _("{host} could not prove who it is: its certificate is not trusted here."),
        _(
            "Check this computer's date. In a company network choose its CA file or its proxy in the settings, or have "
            "its certificate installed in the system."
        ),
    ),
    RemoteFault.CERTIFICATE_DATE: lambda: (
        _("The certificate of {host} is not valid on the date that this computer shows."),
        _("Check this computer's date and time, then try again."),
    ),
    RemoteFault.NOT_TLS: lambda: (
        _("No encrypted connection to {host} came about: {detail}"),
        _("Something in this network may be in between. Check the proxy and the CA file in the settings."),
    ),
    RemoteFault.TOO_SLOW: lambda: (_("{host} took too long to answer."), _("Try again later.")),
    RemoteFault.BROKEN_OFF: lambda: (_("The connection to {host} broke off."), _("Try again.")),
    RemoteFault.NO_ACCESS: lambda: (
        _("{host} does not give this file to everybody (status {status})."),
        _("It may need a token, or its licence must be accepted on the model's page first."),
    ),
    RemoteFault.TOKEN_REFUSED: lambda: (
        _("{host} does not accept the token for this file (status {status})."),
        _("Give another token: it may be mistyped, withdrawn, or not allowed to read this model."),
    ),
    RemoteFault.GATED: lambda: (
        _("This model is given only to those who accepted its licence (status {status})."),
        _("Accept it at {detail}, give Cutaway a token of the same account, then try again."),
    ),
    RemoteFault.EXPIRED: lambda: (
        _("{host} does not give this file any more: the address it was reached by has expired (status {status})."),
        _("Try again: the hub gives a new address."),
    ),
    RemoteFault.MISSING: lambda: (
        _("{host} has no such file (status {status})."),
        _("It may have been moved or removed. Look at the model's page."),
    ),
    RemoteFault.RANGE_REFUSED: lambda: (
        _("{host} does not give the beginning of this file (status {status}); it may be empty."),
        _("Choose another file of this model."),
    ),
    RemoteFault.BUSY: lambda: (_("{host} is asked too often at the moment (status {status})."), _("Try again later.")),
    RemoteFault.SERVER_FAULT: lambda: (_("{host} has a fault of its own (status {status})."), _("Try again later.")),
    RemoteFault.UNEXPECTED: lambda: (
        _("{host} gave an answer that nobody expects here (status {status})."),
        _("Check the address."),
    ),
    RemoteFault.REDIRECTS: lambda: (
        _("{host} sends from one address to the next without end."),
        _("Check the address."),
    ),
    RemoteFault.WEB_PAGE: lambda: (
        _("{host} gave a web page in place of the file."),
        _("Check the address, and whether this network wants you to sign in first."),
    ),
    RemoteFault.ENCODED: lambda: (
        _("{host} gave the file in another form than asked for ({detail})."),
        _("Check the address, and whether something in this network changes what is downloaded."),
    ),
    RemoteFault.WRONG_RANGE: lambda: (
        _("{host} gave another part of the file than was asked for."),
        _("Check the address, and whether something in this network changes what is downloaded."),
    ),
    RemoteFault.NO_SIZE: lambda: (
        _("{host} does not say how large the file is."),
        _("Download the file and import it from its folder."),
    ),
    RemoteFault.CHANGED: lambda: (_("The file on {host} changed while it was read."), _("Try again.")),
    RemoteFault.TOO_LARGE: lambda: (
        _("What stands in front of the weights is larger than {limit}, more than is read over the network."),
        _("Download the file and import it from its folder."),
    ),
}
