"""Groups of writes, applied atomically. Used by the write path and by local transactions.

Pure: without locks and SQL. Each write sees the results of the earlier writes in the group.
"""

from __future__ import annotations

from collections.abc import Callable, MutableMapping, Sequence

from tablegate.gateway.model.commands.row_commands import WriteOutcome
from tablegate.gateway.model.commands.writes import Write, apply
from tablegate.gateway.model.errors import DatabaseFailed, GatewayError, GroupRefused
from tablegate.gateway.model.values.keys import Position
from tablegate.gateway.model.values.rows import Row

RowKey = tuple[int, Position]
"""(table id, position)."""


def apply_group(
    writes: Sequence[Write],
    view: MutableMapping[RowKey, Row | None],
    now: int,
    refusal: Callable[[Write], GatewayError | None] | None = None,
) -> list[WriteOutcome] | GatewayError:
    """Apply writes to a view, in order. `now` is in ticks of 100 ns since 1970.

    Returns the outcome of each write, and updates the view. If a write fails, the view is unchanged. The result is then
    the error of the write if the group has one write, else GroupRefused with an error or None for each. `refusal`
    returns an error for writes that must not be evaluated. An unexpected exception is a defect and becomes
    DatabaseFailed, with the exception as its cause.
    """
    drafts: dict[RowKey, Row | None] = {}
    outcomes: list[WriteOutcome] = []
    reasons: list[GatewayError | None] = []
    for write in writes:
        key = write.table.id, write.key.position
        old = drafts[key] if key in drafts else view.get(key)
        try:
            reason = None if refusal is None else refusal(write)
            if reason is None:
                drafts[key] = new = apply(write, old, now)
                outcomes.append(WriteOutcome(old, new))
        except GatewayError as error:
            reason = error
        except Exception as error:
            reason = DatabaseFailed("internal error")
            reason.__cause__ = error
        reasons.append(reason)
    if len(outcomes) < len(writes):
        [*_, only] = reasons
        return only if len(reasons) == 1 and only is not None else GroupRefused(reasons)
    view.update(drafts)
    return outcomes


def defects(error: GatewayError) -> list[BaseException]:
    """Return the unexpected exceptions that failed a group, for the log."""
    reasons = error.reasons if isinstance(error, GroupRefused) else [error]
    return [
        reason.__cause__
        for reason in reasons
        if isinstance(reason, DatabaseFailed) and reason.__cause__ is not None
    ]
