"""The gate in front of the engine: every command that is run on behalf of a caller passes here.

    run         carry out commands: `Authorization.refusal` before, `Authorization.review` after them
    finalize    before a request is answered: the reply, or a refusal if nothing was authorized

The server's tick calls `refusal` and `review` itself, because it runs the commands of many requests together. Everything else
calls `run` or `run_one`: dialects under WSGI, the console, the control API, job workers, and commands of the command line.
tests/gateway/security/test_gate.py lists the few other calls of the engine, which have no caller.

`Authorization.exceeded_quota` is the quota that refused a request, before its commands, here or in the engine. The audit log
records it as `throttled`, and the server delays the reply.

An unrestricted caller has no Authorization, so `refusal` and `review` are not needed. The command line and the administrator of
the control API are unrestricted. A refusal is raised like an error of the engine, so the dialect words it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeVar, cast

from tablegate.gateway.engine.engine import Engine, run_with_retries
from tablegate.gateway.http.messages import Reply
from tablegate.gateway.model.authorization.authorizations import Authorization
from tablegate.gateway.model.commands.command import Command
from tablegate.gateway.model.commands.table_commands import CountRows
from tablegate.gateway.model.errors import GatewayError, NotPermitted

R = TypeVar("R")


def run(engine: Engine, commands: list[Command[Any]], authorization: Authorization | None) -> list[Any]:
    """Return the outcomes of commands. Raises NotPermitted, QuotaExceeded."""
    if authorization is None:
        return run_with_retries(engine, commands)
    if authorization.usage is not None:
        commands = [_with_size(engine, command) for command in commands]
    refusal = authorization.refusal(commands)
    if refusal is not None:
        raise refusal
    outcomes = run_with_retries(engine, commands)
    return authorization.review(commands, outcomes) if authorization.needs_review else outcomes


def _with_size(engine: Engine, command: Command[Any]) -> Command[Any]:
    """Return a command with the size of the table that it copies in the background, which quotas of bytes need."""
    table = command.copied_table
    if table is None:
        return command
    [statistics] = run_with_retries(engine, [CountRows(table)])
    size = 0 if isinstance(statistics, GatewayError) else statistics.size_bytes
    return cast("Command[Any]", replace(cast(Any, command), size_bytes=size))


def run_one(engine: Engine, command: Command[R], authorization: Authorization | None) -> R:
    """Return the outcome of one command. Raises GatewayError."""
    [outcome] = run(engine, [command], authorization)
    if isinstance(outcome, GatewayError):
        raise outcome
    return cast(R, outcome)


def finalize(
    authorization: Authorization, reply: Reply, refuse: Callable[[NotPermitted], Reply | None]
) -> Reply:
    """Return the reply, or a refusal if nothing of the request was authorized and the caller has no matching grant.

    `refuse` words the refusal.
    """
    refusal = authorization.refusal_before_access(reply.status >= 400)
    return reply if refusal is None else refuse(refusal) or reply
