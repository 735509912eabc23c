"""Actions of authorization (Permission, Channel), and the purpose of a request.

Permissions are finer than those of any one dialect. Each name in a policy of a dialect is a set of them.
"""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple


class Permission(Enum):
    """A kind of operation on a resource."""

    # Rows
    READ = "read"
    QUERY = "query"  # rows of one partition
    SCAN = "scan"  # rows of any
    SEARCH = "search"  # the nearest rows, by a vector index
    SPLIT = "split"  # partition keys that cut a table into parts
    PUT = "put"
    UPDATE = "update"
    DELETE = "delete"
    CHECK = "check"
    # Tables
    LIST = "list"
    DESCRIBE = "describe"
    CREATE = "create"
    ALTER = "alter"
    DROP = "drop"
    CREATE_INDEX = "create-index"
    DROP_INDEX = "drop-index"
    ADD_COLUMNS = "add-columns"  # of the defined columns besides the key
    DROP_COLUMNS = "drop-columns"
    DESCRIBE_EXPIRY = "describe-expiry"
    ALTER_EXPIRY = "alter-expiry"
    READ_TAGS = "read-tags"
    TAG = "tag"
    UNTAG = "untag"
    DESCRIBE_FEATURES = "describe-features"
    LIST_FEATURES = "list-features"
    ALTER_FEATURES = "alter-features"
    ALTER_INSIGHTS = "alter-insights"
    ALTER_DELIVERIES = "alter-deliveries"  # destinations that receive the changes of a table
    ALTER_RECOVERY = "alter-recovery"
    # Backups and point-in-time recovery
    LIST_BACKUPS = "list-backups"
    DESCRIBE_BACKUP = "describe-backup"
    CREATE_BACKUP = "create-backup"
    DELETE_BACKUP = "delete-backup"
    RESTORE_BACKUP = "restore-backup"
    RESTORE_MOMENT = "restore-moment"
    # Jobs: exports, imports, bulk puts
    EXPORT = "export"
    IMPORT = "import"
    LOAD = "load"
    LIST_JOBS = "list-jobs"
    DESCRIBE_JOB = "describe-job"
    CANCEL_JOB = "cancel-job"
    # Resource policies
    READ_POLICY = "read-policy"
    WRITE_POLICY = "write-policy"
    REMOVE_POLICY = "remove-policy"
    # Change streams
    LIST_STREAMS = "list-streams"
    DESCRIBE_STREAM = "describe-stream"
    POSITION_STREAM = "position-stream"
    READ_STREAM = "read-stream"
    # Local transactions
    BEGIN = "begin"
    COMMIT = "commit"
    ABORT = "abort"
    # An account as a whole
    READ_ACCOUNT = "read-account"
    WRITE_ACCOUNT = "write-account"
    ADMINISTER = "administer"

    # The inherited __hash__ is a Python function. Permissions are hashed for every access.
    __hash__ = object.__hash__


class Channel(Enum):
    """The form in which a permission is requested. Services name some of these forms and grant them separately."""

    SINGLE = "single"
    BATCH = "batch"
    TRANSACTION = "transaction"
    STATEMENT = "statement"
    STATEMENT_TRANSACTION = "statement-transaction"
    TUNNEL = "tunnel"
    SEARCH_INDEX = "search-index"

    __hash__ = object.__hash__


GrantAction = tuple[Permission, Channel]
"""A permission and the channel that requests it."""

READING_ROWS = frozenset({Permission.READ, Permission.QUERY, Permission.SCAN})
READING = READING_ROWS | {Permission.SEARCH}
WRITING = frozenset(
    {
        Permission.PUT, Permission.UPDATE, Permission.DELETE, Permission.CHECK,
        Permission.BEGIN, Permission.COMMIT, Permission.ABORT,
    }
)  # fmt: skip
STREAMING = frozenset(
    {Permission.LIST_STREAMS, Permission.DESCRIBE_STREAM, Permission.POSITION_STREAM, Permission.READ_STREAM}
)
ACCOUNT_PERMISSIONS = frozenset(
    {
        Permission.LIST, Permission.LIST_STREAMS, Permission.LIST_BACKUPS, Permission.LIST_FEATURES,
        Permission.READ_ACCOUNT, Permission.WRITE_ACCOUNT, Permission.ADMINISTER,
    }
)  # fmt: skip
"""Permissions that concern an account, not one table."""
DESCRIBING = frozenset(
    {
        Permission.LIST, Permission.DESCRIBE, Permission.DESCRIBE_EXPIRY, Permission.READ_TAGS,
        Permission.DESCRIBE_FEATURES, Permission.LIST_FEATURES, Permission.READ_ACCOUNT,
    }
)  # fmt: skip
CHANGING_NOTHING = READING | STREAMING | DESCRIBING | {
    Permission.SPLIT, Permission.LIST_BACKUPS, Permission.DESCRIBE_BACKUP, Permission.LIST_JOBS, Permission.DESCRIBE_JOB,
    Permission.READ_POLICY,
}  # fmt: skip
DEFINING = DESCRIBING | {
    Permission.CREATE, Permission.ALTER, Permission.DROP, Permission.CREATE_INDEX, Permission.DROP_INDEX,
    Permission.ADD_COLUMNS, Permission.DROP_COLUMNS,
    Permission.ALTER_EXPIRY, Permission.TAG, Permission.UNTAG, Permission.ALTER_FEATURES,
    Permission.ALTER_INSIGHTS, Permission.ALTER_DELIVERIES,
}  # fmt: skip


class Purpose(NamedTuple):
    """The permissions that a kind of request needs, the most likely first, and its channel.

    `also`: permissions that a change of a table needs in addition. They apply to the same table. READ_STREAM applies to
    all streams of the table.
    """

    permissions: tuple[Permission, ...]
    channel: Channel = Channel.SINGLE
    also: tuple[Permission, ...] = ()


UNKNOWN_PURPOSE = Purpose((Permission.ADMINISTER,))
"""The purpose of a request until its operation is known. Only unrestricted callers have it."""
