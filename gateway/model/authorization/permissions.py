"""What can be done (Permission), in which way it is asked for (Way), and what a request is for (Purpose).

The words are finer than any one dialect's, so that each dialect's own words are sets of them.
"""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple


class Permission(Enum):
    """One kind of thing that can be done to a resource."""

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
    ADD_COLUMNS = "add-columns"  # of those that a table defines besides its key
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
    ALTER_DELIVERIES = "alter-deliveries"  # whoever else is told of changes
    ALTER_RECOVERY = "alter-recovery"
    # Backups, and tables as they were
    LIST_BACKUPS = "list-backups"
    DESCRIBE_BACKUP = "describe-backup"
    CREATE_BACKUP = "create-backup"
    DELETE_BACKUP = "delete-backup"
    RESTORE_BACKUP = "restore-backup"
    RESTORE_MOMENT = "restore-moment"
    # Long work: exports, imports, bulk puts
    EXPORT = "export"
    IMPORT = "import"
    LOAD = "load"
    LIST_JOBS = "list-jobs"
    DESCRIBE_JOB = "describe-job"
    CANCEL_JOB = "cancel-job"
    # Who may do what to a table
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

    # Every access is looked up by its permission; the default hashes the name through a Python-level __hash__.
    __hash__ = object.__hash__


class Channel(Enum):
    """How something is asked for. Services have names of their own for some of these, and grant them apart."""

    SINGLE = "single"
    BATCH = "batch"
    TRANSACTION = "transaction"
    STATEMENT = "statement"
    STATEMENT_TRANSACTION = "statement-transaction"

    __hash__ = object.__hash__


Door = tuple[Permission, Channel]
"""A permission, and a way in which it is asked for."""

READING = frozenset({Permission.READ, Permission.QUERY, Permission.SCAN, Permission.SEARCH})
STREAMING = frozenset(
    {Permission.LIST_STREAMS, Permission.DESCRIBE_STREAM, Permission.POSITION_STREAM, Permission.READ_STREAM}
)
OF_ACCOUNTS = frozenset(
    {
        Permission.LIST, Permission.LIST_STREAMS, Permission.LIST_BACKUPS, Permission.LIST_FEATURES,
        Permission.READ_ACCOUNT, Permission.WRITE_ACCOUNT, Permission.ADMINISTER,
    }
)  # fmt: skip
"""What is done to no single table."""
DESCRIBING = frozenset(
    {
        Permission.LIST, Permission.DESCRIBE, Permission.DESCRIBE_EXPIRY, Permission.READ_TAGS,
        Permission.DESCRIBE_FEATURES, Permission.LIST_FEATURES, Permission.READ_ACCOUNT,
    }
)  # fmt: skip
DEFINING = DESCRIBING | {
    Permission.CREATE, Permission.ALTER, Permission.DROP, Permission.CREATE_INDEX, Permission.DROP_INDEX,
    Permission.ADD_COLUMNS, Permission.DROP_COLUMNS,
    Permission.ALTER_EXPIRY, Permission.TAG, Permission.UNTAG, Permission.ALTER_FEATURES,
    Permission.ALTER_INSIGHTS, Permission.ALTER_DELIVERIES,
}  # fmt: skip


class Purpose(NamedTuple):
    """What a request is for: the permissions that its kind needs, the likeliest first, and the way in which it asks for them.
    `also`: what a change of a table needs besides, on the same table or, to read streams, on all of its streams."""

    permissions: tuple[Permission, ...]
    way: Channel = Channel.SINGLE
    also: tuple[Permission, ...] = ()


UNKNOWN_PURPOSE = Purpose((Permission.ADMINISTER,))
"""Of a request of which nobody has said what it is for: only who may do everything may make it."""
