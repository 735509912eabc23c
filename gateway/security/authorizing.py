"""The one place where commands are authorized, in front of the engine.

    authorize   before commands go to the engine: may the request's caller do that?
    settle      after look-ups: what the caller must not hear of becomes a refusal
    refusal_unasked   before a request is answered: was anything judged at all?

The server's tick and `Dialect.serve` (for Flask) both ask here, and nobody else does. Callers who may do everything have no
authorization, and are not asked: the callers of these functions look whether there is one. What refuses is worded by the dialect,
whose handler is given the NotPermitted as if the engine had raised it.

Whoever wants to know of refusals sets `on_refusal`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gateway.http import Request
from gateway.model.authorizations import Authorization
from gateway.model.commands import AnyCommand
from gateway.model.errors import NotPermitted

Refusal = Callable[[Request, Authorization, NotPermitted], None]


on_refusal: list[Refusal] = []
"""Told of each refusal, once, before it is answered: the request, who asked, and what was refused."""


def authorize(request: Request, authorization: Authorization, commands: list[AnyCommand]) -> NotPermitted | None:
    """Why the commands of a request may not go to the engine; None: they may."""
    return _told(request, authorization, authorization.refusal(commands))


def settle(
    request: Request, authorization: Authorization, commands: list[AnyCommand], outcomes: list[Any]
) -> list[Any]:
    """The outcomes of commands as the request's handler may hear of them."""
    reviewed = authorization.review(commands, outcomes)
    if reviewed is not outcomes:
        for before, after in zip(outcomes, reviewed, strict=True):
            if after is not before:
                _told(request, authorization, after)
    return reviewed


def refusal_unasked(request: Request, authorization: Authorization) -> NotPermitted | None:
    """Why a request that was answered without anything having been judged is refused after all; None: it is not."""
    return _told(request, authorization, authorization.refusal_unasked())


def _told(request: Request, authorization: Authorization, refusal: NotPermitted | None) -> NotPermitted | None:
    if refusal is not None:
        authorization.is_checked = True
        for tell in on_refusal:
            tell(request, authorization, refusal)
    return refusal
