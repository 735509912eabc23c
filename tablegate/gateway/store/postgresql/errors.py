"""Translation of PostgreSQL's errors to the errors of the engine."""

from __future__ import annotations

import psycopg

from tablegate.gateway.model.errors import Busy, DatabaseFailed, DataCorrupted, OutOfSpace
from tablegate.gateway.store.sql.databases import LockTimeout, RetryableFailure

# InvalidSqlStatementName: the driver and the server disagree about prepared statements. A new connection has none.
_RETRYABLE = (
    psycopg.errors.InvalidSqlStatementName,
    psycopg.errors.SerializationFailure,
    psycopg.errors.ReadOnlySqlTransaction,  # the primary has become a standby, a new connection goes to the new primary
    psycopg.errors.DeadlockDetected,
    psycopg.OperationalError,
    psycopg.InterfaceError,
)

# QueryCanceled: a statement exceeded its time-out, and would again.
_EXHAUSTED = (
    psycopg.errors.OutOfMemory,
    psycopg.errors.TooManyConnections,
    psycopg.errors.QueryCanceled,
)

# Ended by a time-out of the server, mostly while waiting for locks or because this process was stopped.
_TIMED_OUT = (psycopg.errors.IdleInTransactionSessionTimeout, psycopg.errors.TransactionTimeout)


def translate_error(error: psycopg.Error) -> Exception:
    """Return the gateway's error for an error of the driver."""
    if isinstance(error, psycopg.errors.DiskFull):
        return OutOfSpace(str(error))
    if isinstance(error, _EXHAUSTED):
        return Busy(str(error))
    if isinstance(error, (psycopg.errors.LockNotAvailable, *_TIMED_OUT)):
        return LockTimeout(str(error))
    if isinstance(error, _RETRYABLE):
        return RetryableFailure(str(error))
    if isinstance(error, (psycopg.errors.DataCorrupted, psycopg.errors.IndexCorrupted)):
        return DataCorrupted(str(error))
    return DatabaseFailed(str(error))
