"""Whether a person may have a repo's files: open to all, gated behind a licence, or private; and the words for it.

A gated repo tells its listing to everybody and its files to those who accepted the licence. Knows no HTTP library.
"""

from __future__ import annotations

from app.errors import Words
from app.hub.types import Access, RepoDetail
from app.i18n import _


def access_of(status: int) -> Access:
    """Return what the answer to a question for a gated file means, by its status."""
    if 200 <= status < 400:
        return "granted"
    return {401: "needs_token", 403: "needs_licence"}.get(status, "unknown")  # type: ignore[return-value]


def access_words(detail: RepoDetail) -> Words | None:
    """Return what a person must do before they can download; None where nothing is in the way."""
    page = detail.page_url
    if detail.access == "needs_token":
        return Words(
            _("The licence of this model must be accepted before its files are given."),
            _("Accept it at {page} with your account there, then give a token of that account here.").format(page=page),
        )
    if detail.access == "needs_licence":
        message = _("Your token is known, but the licence of this model was not accepted with its account yet.")
        if detail.summary.gated == "manual":
            hint = _("Ask for access at {page}; its publisher decides. Then try again.")
        else:
            hint = _("Accept it at {page}, then try again.")
        return Words(message, hint.format(page=page))
    if detail.access == "unknown" and detail.summary.gated:
        return Words(
            _("This model is given only to those who accepted its licence."),
            _("Whether you did could not be found out now. Its page is {page}.").format(page=page),
        )
    return None
