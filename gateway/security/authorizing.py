"""The one place where commands are authorized, in front of the engine.

    authorize   before commands go to the engine: may the request's caller do that?
    settle      after look-ups: what the caller must not hear of becomes a refusal
    conclude    before a request is answered: was anything judged at all?

The server's tick and `Dialect` (for Flask) both ask here, and nobody else does. Callers who may do everything have no
authorization, and are not asked: who calls these functions looks whether there is one. What is refused is worded by the dialect,
whose handler is given the NotPermitted as if the engine had raised it; so the audit finds it by the reply's status.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from gateway.http import Reply
from gateway.model.authorizations import Authorization
from gateway.model.errors import NotPermitted

authorize = Authorization.refusal
"""Why the commands of a request may not go to the engine; None: they may. Called with the authorization and the commands."""

settle = Authorization.review
"""The outcomes of commands as the request's handler may hear of them, where `looks_up`. Called with the authorization, the
commands and the outcomes."""


def conclude(
    authorization: Authorization,
    reply: Reply,
    named: Callable[[], Iterable[tuple[str, str]]],
    refuse: Callable[[NotPermitted], Reply | None],
) -> Reply:
    """The reply to a request of which nothing was judged, or a refusal if it could not have been allowed. `named`: the
    tables that it names, as (namespace, name), as far as they are known without a look-up; `refuse`: puts that into words."""
    refusal = authorization.refusal_unasked(reply.status >= 400, named)
    return reply if refusal is None else refuse(refusal) or reply
