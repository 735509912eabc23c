"""The closed hierarchy of errors that commands end with.

    GatewayError
    ├── TableMissing, TableExists, TableBusy, IndexMissing, StreamMissing
    ├── ConditionFailed            the condition of one write was false
    ├── GroupRefused               the reasons of a group of writes, one for each write (None if it has no error)
    ├── InvalidInput
    │   ├── BadKey                 a key column is missing, of the wrong kind, or not a key column
    │   ├── KeyTooLong
    │   ├── BadPath                a document path that does not exist in this row
    │   ├── BadOperand             an operand of a kind that the action or function does not accept
    │   ├── NumberOutOfRange
    │   ├── RowRuleViolated        the new row breaks a rule of the dialect that writes it
    │   └── TunnelRefused          a tunnel, its client or its channel is not in the required state
    ├── LimitExceeded              the name, the limit, and the actual figure
    ├── PartitionLocked            an open local transaction has locked the partition
    ├── TransactionMissing         a local transaction does not exist, or has ended
    ├── Throttled                  the provisioned throughput is used up
    ├── QuotaExceeded              a quota set by the operator is used up
    ├── Busy                       a timeout of a lock or the database, a retry may help
    │   ├── Contended              internal: a lock was not available at once, retry if that delays no other request
    │   ├── OutOfSpace             the database is full or its disk fails, reads may still work
    │   └── SchemaTooNew           a later release migrated the database to a schema that this one cannot use
    ├── DatabaseFailed             the database refused a statement permanently: a defect
    │   └── DataCorrupted          stored data is damaged: a checksum differs, or a page cannot be read
    ├── CommitUnknown              the connection failed at COMMIT, and the outcome cannot be determined
    ├── PositionExpired            a stream position older than the retained changes
    ├── BackupMissing, BackupBusy
    ├── TimeNotRetained            no history of a table at the requested time
    ├── TokenReused                an idempotency token that was used with another request
    ├── StaleTable                 internal: the table descriptor is out of date, parse the request again
    ├── TooManyAttempts            a wrong secret after too many others
    └── NotAuthenticated, NotAllowed, NotPermitted

Errors carry facts. Codes, statuses and texts are in the `errors.py` of the adapters. Errors of adapters are no
GatewayErrors, because the engine never raises them.
"""

from __future__ import annotations

from typing import Any


class GatewayError(Exception):
    """Base class of the errors that a command can have instead of an outcome."""


class TableMissing(GatewayError):
    """The namespace has no table of this name."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name


class TableExists(GatewayError):
    """The name of the table is in use."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name


class TableBusy(GatewayError):
    """The state of the table, or of its index `index`, forbids the command: `creating`, `updating` or `deleting`."""

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


class IndexExists(GatewayError):
    """The table has a search index of this name."""

    def __init__(self, table: str, index: str) -> None:
        super().__init__(table, index)
        self.table = table
        self.index = index


class StreamMissing(GatewayError):
    """The table has no stream of this label, the stream has no such shard, or all of it has expired."""

    def __init__(self, table: str, label: str) -> None:
        super().__init__(table, label)
        self.table = table
        self.label = label


class NotInstalled(GatewayError):
    """A feature needs a package or a capability that is not installed. `extra`: the extra of tablegate that installs it,
    or the member of an index definition that only the capability reads."""

    def __init__(self, extra: str) -> None:
        super().__init__(extra)
        self.extra = extra


class BackupMissing(GatewayError):
    """The backup does not exist."""


class BackupBusy(GatewayError):
    """The backup is being created (`is_creating`), or a table is being restored from it."""

    def __init__(self, is_creating: bool) -> None:
        super().__init__(is_creating)
        self.is_creating = is_creating


class TimeNotRetained(GatewayError):
    """A table cannot be restored to a time.

    `earliest_ms`, `latest_ms`: the times between which it can be restored. None if it has no history.
    """

    def __init__(self, name: str, earliest_ms: int | None = None, latest_ms: int | None = None) -> None:
        super().__init__(name, earliest_ms, latest_ms)
        self.name = name
        self.earliest_ms = earliest_ms
        self.latest_ms = latest_ms


class ConditionFailed(GatewayError):
    """The condition of a write was false. `condition`: the first false conjunct. `row`: the current row."""

    def __init__(self, condition: Any, row: Any) -> None:
        super().__init__("condition failed")
        self.condition = condition
        self.row = row


class GroupRefused(GatewayError):
    """A group of writes failed and changed nothing. `reasons`: the error of each write, None for writes without one."""

    def __init__(self, reasons: list[GatewayError | None]) -> None:
        super().__init__(reasons)
        self.reasons = reasons


class InvalidInput(GatewayError):
    """Input that can never succeed. `rule`: the rule that it breaks. `facts`: values for the text of the adapter."""

    def __init__(self, rule: str, **facts: Any) -> None:
        super().__init__(rule, facts)
        self.rule = rule
        self.facts = facts


class BadKey(InvalidInput):
    """A key column is missing or of the wrong kind, or an attribute is no key column."""


class TunnelRefused(InvalidInput):
    """A request to a tunnel was refused.

    `rule`: missing, exists, expired, client (it is not connected), channel (the client does not hold it), checkpoint (its
    number is not the next one), or position (more is to come where the client saw the end).
    """


class KeyTooLong(InvalidInput):
    """A key value longer than the dialect's limit."""


class BadPath(InvalidInput):
    """A document path that does not exist in this row."""


class BadOperand(InvalidInput):
    """An operand of a kind that the action or function does not accept."""


class NumberOutOfRange(InvalidInput):
    """A number, or the result of arithmetic, beyond the magnitude or precision of its kind."""


class RowRuleViolated(InvalidInput):
    """The result of a write breaks a rule of the dialect that writes it (`RowRule`, gateway/model/commands/writes.py).

    `rule`: the name of the rule in the dialect.
    """


class LimitExceeded(GatewayError):
    """A limit is exceeded: its name, the limit, and the actual figure."""

    def __init__(self, what: str, limit: int, actual: int) -> None:
        super().__init__(what, limit, actual)
        self.what = what
        self.limit = limit
        self.actual = actual


class HeadTooLong(GatewayError):
    """The request line or the headers of a request are longer than the server accepts."""

    def __init__(self, what: str, limit_bytes: int) -> None:
        super().__init__(what, limit_bytes)
        self.what = what
        self.text = f"The size of the {what} exceeds {limit_bytes} bytes."


class PartitionLocked(GatewayError):
    """An open local transaction has locked this partition."""


class TransactionMissing(GatewayError):
    """A local transaction does not exist, was ended, or timed out."""


class Throttled(GatewayError):
    """The throughput of `resource` (a table, or a table and an index) is used up.

    `limit`: the kind of the limit: provisioned throughput, or the maximum of an on-demand table.
    """

    def __init__(self, resource: str, kind: str, limit: str = "provisioned") -> None:
        super().__init__(resource, kind, limit)
        self.resource = resource
        self.kind = kind
        self.limit = limit


class QuotaExceeded(GatewayError):
    """A quota of a credential or a namespace (`owner`) is used up.

    `kind`: requests, read_units and write_units are rates. bytes and tables are totals.
    """

    def __init__(self, kind: str, limit: float, owner: str) -> None:
        super().__init__(kind, limit, owner)
        self.kind = kind
        self.limit = limit
        self.owner = owner

    @property
    def is_temporary(self) -> bool:
        """True if a retry can succeed."""
        return self.kind not in ("bytes", "tables")


class Busy(GatewayError):
    """A lock, the database or the server did not become available in time. A retry may help."""


class Contended(Busy):
    """A lock was not available at once, or the database cannot be reached. Nothing was done.

    The tick and `engine.run_with_retries` retry after pauses, for `wait_s` seconds. Other callers can treat it as Busy.
    """

    def __init__(self, reason: str, wait_s: float = 5.0) -> None:
        super().__init__(reason)
        self.wait_s = wait_s


class NodeAway(Busy):
    """A node of a distributed database does not answer. Requests for other nodes do not fail."""


class OutOfSpace(Busy):
    """The database has no space for writes, or its disk fails. Reads may still work."""


class SchemaTooNew(Busy):
    """A later release has migrated the database to a schema that this release cannot use."""


class DatabaseFailed(GatewayError):
    """The database refused a statement, and a retry would fail too. If a client can cause this, it is a defect."""


class DataCorrupted(DatabaseFailed):
    """Stored data is damaged. `row`: (partition, sort) of the stored row, if it is known."""

    def __init__(self, reason: str, row: tuple[bytes, bytes] | None = None) -> None:
        super().__init__(reason)
        self.row = row


class CommitUnknown(GatewayError):
    """The connection failed at COMMIT, and the outcome cannot be determined."""


class PositionExpired(GatewayError):
    """A stream position whose changes have been trimmed."""


class TokenReused(GatewayError):
    """An idempotency token that was used before with another request."""


class StaleTable(GatewayError):
    """The descriptor that the parser used is out of date. The request must be parsed again. Clients never get this
    error."""


class NotAuthenticated(GatewayError):
    """The signature or token does not prove the identity of the caller. `rule`: the check that failed."""

    def __init__(self, rule: str, **facts: Any) -> None:
        super().__init__(rule, facts)
        self.rule = rule
        self.facts = facts


class TooManyAttempts(GatewayError):
    """The secret of an attempt is wrong, and too many wrong ones came from its address or for its name."""

    def __init__(self, retry_after_s: int) -> None:
        super().__init__(retry_after_s)
        self.retry_after_s = retry_after_s

    @property
    def text(self) -> str:
        """The message for the user."""
        return f"The secret is wrong, and so were too many before it. Try again in {self.retry_after_s} s."


class NotAllowed(GatewayError):
    """The caller is authenticated but not allowed to do this. `rule`: the check that failed."""

    def __init__(self, rule: str, **facts: Any) -> None:
        super().__init__(rule, facts)
        self.rule = rule
        self.facts = facts


class NotPermitted(GatewayError):
    """The caller's grants do not cover the request. Nothing of the request was done.

    `permission`, `path`: the missing permission and the resource (model/authorization/accesses.py). `by`: the source of
    the refusal (value of a Verdict, model/authorization/grants.py).
    """

    def __init__(self, permission: Any, path: str, by: str) -> None:
        super().__init__(permission, path, by)
        self.permission = permission
        self.path = path
        self.by = by
