"""The closed hierarchy of what can go wrong with a command.

    GatewayError
    ├── TableMissing, TableExists, TableBusy, IndexMissing, StreamMissing
    ├── ConditionFailed            the condition of one write was false
    ├── GroupRefused               reasons, one for each write of a group (None: this one was fine)
    ├── InvalidInput
    │   ├── BadKey                 a key column is missing, of the wrong kind, or not a key column
    │   ├── KeyTooLong
    │   ├── BadPath                a document path that does not lead anywhere in this row
    │   ├── BadOperand             an operand of a kind the action or function does not take
    │   ├── NumberOutOfRange
    │   └── RowRuleViolated             the row that a write would leave breaks a rule of the dialect that writes it
    ├── LimitExceeded              what, the limit, and the actual figure
    ├── PartitionLocked            an open local transaction has locked the partition
    ├── TransactionMissing         a local transaction that never was, or is over
    ├── Throttled                  the provisioned throughput is used up
    ├── QuotaExceeded              what the operator lets a caller take is used up
    ├── Busy                       locks or the database did not yield in time; a retry may help
    │   ├── Contended              internal: not now; whoever can wait without holding up others tries again
    │   ├── OutOfSpace             the database has no room for writes, or its disk fails; reads may go on
    │   └── SchemaTooNew           the database was migrated, and this server cannot serve it any more
    ├── DatabaseFailed             the database refused a statement for good: a defect
    │   └── DataCorrupted          what is stored is damaged: a row differs from its checksum, a page cannot be read
    ├── Unknowable                 the connection broke at COMMIT and the outcome cannot be asked for
    ├── PositionExpired            a stream position older than what is kept
    ├── BackupMissing, BackupBusy
    ├── BackupUnreadable           the file of a backup is missing or broken
    ├── TimeNotRetained              nothing is known of a table at a moment that is to be gone back to
    ├── TokenReused                an idempotency token seen before with another request
    ├── StaleTable                 internal: the descriptor that parse saw is out of date; parse again
    ├── TooManyAttempts            wrong secrets were given too often; a later attempt may help
    └── NotAuthenticated, NotAllowed, NotPermitted

Errors carry facts. Codes, statuses and texts belong to the adapters' `errors.py`, whose own errors are no GatewayErrors: nothing
that the engine calls raises them.
"""

from __future__ import annotations

from typing import Any


class GatewayError(Exception):
    """Base of everything a command may be answered with instead of an outcome."""


class TableMissing(GatewayError):
    """No table of this name in the namespace."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name


class TableExists(GatewayError):
    """The name is taken."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name


class TableBusy(GatewayError):
    """The table is in a state (`creating`, `updating`, `deleting`) that forbids the command; or its index of the name `index`
    is."""

    def __init__(self, name: str, state: str, index: str = "") -> None:
        super().__init__(name, state, index)
        self.name = name
        self.state = state
        self.index = index


class IndexMissing(GatewayError):
    """The table has no index of this name."""

    def __init__(self, table: str, index: str) -> None:
        super().__init__(table, index)
        self.table = table
        self.index = index


class StreamMissing(GatewayError):
    """The table has no stream of this label, or it has no such shard, or all of it is past its time."""

    def __init__(self, table: str, label: str) -> None:
        super().__init__(table, label)
        self.table = table
        self.label = label


class NotInstalled(GatewayError):
    """What was asked for needs a package that is not installed: one of the extra of this name."""

    def __init__(self, extra: str) -> None:
        super().__init__(extra)
        self.extra = extra


class BackupMissing(GatewayError):
    """No such backup."""


class BackupBusy(GatewayError):
    """The backup is being made, or a table is being made of it."""


class BackupUnreadable(GatewayError):
    """The rows of a backup are in a file that cannot be read. `reason`: why, for people."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class TimeNotRetained(GatewayError):
    """A table cannot be copied as it was at a moment. `earliest_ms`, `latest_ms`: between which it can; None: it has no
    history."""

    def __init__(self, name: str, earliest_ms: int | None = None, latest_ms: int | None = None) -> None:
        super().__init__(name, earliest_ms, latest_ms)
        self.name = name
        self.earliest_ms = earliest_ms
        self.latest_ms = latest_ms


class ConditionFailed(GatewayError):
    """A write's condition was false. `condition` is the first conjunct that was; `row` the row as it stood."""

    def __init__(self, condition: Any, row: Any) -> None:
        super().__init__("condition failed")
        self.condition = condition
        self.row = row


class GroupRefused(GatewayError):
    """A group of writes that did nothing: one reason for each write, None where that write was fine."""

    def __init__(self, reasons: list[GatewayError | None]) -> None:
        super().__init__(reasons)
        self.reasons = reasons


class InvalidInput(GatewayError):
    """Input that can never succeed. `rule` names what it broke; `facts` are for the adapter's text."""

    def __init__(self, rule: str, **facts: Any) -> None:
        super().__init__(rule, facts)
        self.rule = rule
        self.facts = facts


class BadKey(InvalidInput):
    """A key column is missing, of the wrong kind, or an attribute is no key column."""


class KeyTooLong(InvalidInput):
    """A key value longer than the dialect's limit."""


class BadPath(InvalidInput):
    """A document path that does not lead anywhere in this row."""


class BadOperand(InvalidInput):
    """An operand of a kind that the action or function does not take."""


class NumberOutOfRange(InvalidInput):
    """A number (or the result of arithmetic) beyond the kind's magnitude or precision."""


class RowRuleViolated(InvalidInput):
    """What a write would leave breaks a rule of the dialect that writes it (`RowRule`, gateway/model/commands/writes.py): `rule`
    names it as that dialect does."""


class LimitExceeded(GatewayError):
    """Something is larger than allowed: what, the limit, the actual figure."""

    def __init__(self, what: str, limit: int, actual: int) -> None:
        super().__init__(what, limit, actual)
        self.what = what
        self.limit = limit
        self.actual = actual


class PartitionLocked(GatewayError):
    """An open local transaction has locked this partition."""


class TransactionMissing(GatewayError):
    """A local transaction that never was, was ended, or timed out."""


class Throttled(GatewayError):
    """The throughput of `resource` (a table, or a table and an index) is used up. `limit` says which: what is provisioned,
    or the maximum that somebody set for a table on demand."""

    def __init__(self, resource: str, kind: str, limit: str = "provisioned") -> None:
        super().__init__(resource, kind, limit)
        self.resource = resource
        self.kind = kind
        self.limit = limit


class QuotaExceeded(GatewayError):
    """What the operator lets a credential or a namespace (`owner`) take is used up. `kind`: requests, read_units, write_units (of
    these there will be more in a moment), bytes, tables."""

    def __init__(self, kind: str, limit: float, owner: str) -> None:
        super().__init__(kind, limit, owner)
        self.kind = kind
        self.limit = limit
        self.owner = owner

    @property
    def may_pass(self) -> bool:
        """Whether trying again helps."""
        return self.kind not in ("bytes", "tables")


class Busy(GatewayError):
    """A lock, the database or the server did not yield in time; trying again may help."""


class Contended(Busy):
    """Somebody else's lock did not yield at once, or the database cannot be reached, and nothing was done. The tick and `drive`
    try again after a pause, for `wait_s` seconds; others may take it for Busy."""

    def __init__(self, reason: str, wait_s: float = 5.0) -> None:
        super().__init__(reason)
        self.wait_s = wait_s


class OutOfSpace(Busy):
    """The database has no room for writes, or its disk fails them; reads may go on."""


class SchemaTooNew(Busy):
    """A later release has migrated the database to a schema that this one cannot serve."""


class DatabaseFailed(GatewayError):
    """The database refused a statement, and would again. A client that can cause this has found a defect."""


class DataCorrupted(DatabaseFailed):
    """Stored data is damaged. `row`: the row as it is stored, (partition, sort), if it is known which one it is."""

    def __init__(self, reason: str, row: tuple[bytes, bytes] | None = None) -> None:
        super().__init__(reason)
        self.row = row


class CommitUnknown(GatewayError):
    """The connection broke at COMMIT and nobody can say whether the write was kept."""


class PositionExpired(GatewayError):
    """A stream position whose changes have been trimmed."""


class TokenReused(GatewayError):
    """An idempotency token that was used before with another request."""


class StaleTable(GatewayError):
    """The descriptor that parse saw is out of date: the request must be parsed again. Never reaches a client."""


class NotAuthenticated(GatewayError):
    """The signature or token does not prove who is asking. `rule` says which check failed."""

    def __init__(self, rule: str, **facts: Any) -> None:
        super().__init__(rule, facts)
        self.rule = rule
        self.facts = facts


class TooManyAttempts(GatewayError):
    """Wrong secrets were given too often from an address or for a name. The secret that came with this attempt was not read."""

    def __init__(self, retry_after_s: int) -> None:
        super().__init__(retry_after_s)
        self.retry_after_s = retry_after_s

    @property
    def text(self) -> str:
        """What happened and what to do."""
        return f"There were too many wrong secrets. Try again in {self.retry_after_s} s."


class NotAllowed(GatewayError):
    """The caller is known and may not do this. `rule` says which check failed."""

    def __init__(self, rule: str, **facts: Any) -> None:
        super().__init__(rule, facts)
        self.rule = rule
        self.facts = facts


class NotPermitted(GatewayError):
    """The caller's grants do not reach what a request asks for. `permission` and `path` (model/authorization/accesses.py) say
    what and of which resource; `by`: what refused it (a Verdict's value, model/authorization/grants.py). Nothing of the request
    was done."""

    def __init__(self, permission: Any, path: str, by: str) -> None:
        super().__init__(permission, path, by)
        self.permission = permission
        self.path = path
        self.by = by
