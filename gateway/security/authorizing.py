"""The one place where commands are authorized, in front of the engine.

    authorize         before commands go to the engine: may the request's caller do that?
    settle            after look-ups: what the caller must not hear of becomes a refusal
    refusal_of_table  before anything but the names in a request is looked at: could it be allowed?
    conclude          before a request is answered: was anything judged at all?

The server's tick and `Dialect` (for Flask) both ask here, and nobody else does. Callers who may do everything have no
authorization, and are not asked: who calls these functions looks whether there is one. What refuses is worded by the dialect,
whose handler is given the NotPermitted as if the engine had raised it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gateway.http import Reply, Request
from gateway.model.authorizations import Authorization
from gateway.model.commands import AnyCommand
from gateway.model.errors import NotPermitted


def authorize(authorization: Authorization, commands: list[AnyCommand]) -> NotPermitted | None:
    """Why the commands of a request may not go to the engine; None: they may."""
    return authorization.refusal(commands)


def settle(authorization: Authorization, commands: list[AnyCommand], outcomes: list[Any]) -> list[Any]:
    """The outcomes of commands as the request's handler may hear of them."""
    return authorization.review(commands, outcomes)


def refusal_of_table(authorization: Authorization, namespace: str, table: str) -> NotPermitted | None:
    """Why a request cannot do what it is for to a table, whatever else it says; None: it may be able to."""
    return authorization.refusal_of_name(namespace, table)


def conclude(request: Request, reply: Reply, refuse: Callable[[NotPermitted], Reply | None]) -> Reply:
    """The reply to a request that may not do everything, or a refusal if it was answered without anything having been judged, and
    could not have been allowed. `refuse`: puts that into words."""
    authorization = request.authorization
    if authorization is None:
        return reply
    refusal = authorization.refusal_unasked(is_error=reply.status >= 400)
    return reply if refusal is None else refuse(refusal) or reply
