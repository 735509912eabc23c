"""A group of writes, applied whole or not at all: what an atomic group means, for the write path and for local transactions.

Pure. Each write sees what the writes before it in the group have left. Knows no locks and no SQL.
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
    """Apply writes to a view, in order. `now` is in ticks of 100 ns since 1970; `refusal`: what keeps a write from being looked
    at any further.

    Gives the outcome of each write, and the view has what they leave. Or, if one of them fails, what is wrong, and the view is
    as it was: that write's own error if it is the only one of the group, else GroupRefused with an error or None for each. An
    error that is not a GatewayError is a defect of ours: it becomes DatabaseFailed, with the error as its cause.
    """
    drafted: dict[RowKey, Row | None] = {}
    outcomes: list[WriteOutcome] = []
    reasons: list[GatewayError | None] = []
    for write in writes:
        key = write.table.id, write.key.position
        old = drafted[key] if key in drafted else view.get(key)
        try:
            reason = None if refusal is None else refusal(write)
            if reason is None:
                drafted[key] = new = apply(write, old, now)
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
    view.update(drafted)
    return outcomes


def defects(refused: GatewayError) -> list[BaseException]:
    """The defects of ours for which a group was refused, to be logged."""
    reasons = refused.reasons if isinstance(refused, GroupRefused) else [refused]
    return [
        reason.__cause__
        for reason in reasons
        if isinstance(reason, DatabaseFailed) and reason.__cause__ is not None
    ]
