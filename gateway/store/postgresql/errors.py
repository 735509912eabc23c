"""The errors of PostgreSQL, and what each means to the engine."""

from __future__ import annotations

import psycopg

from tablegate.gateway.model.errors import Busy, DatabaseFailed, DataCorrupted, OutOfSpace
from tablegate.gateway.store.sql.databases import LockTimeout, RetryableFailure

# InvalidSqlStatementName: driver and server disagree about what is prepared; a new connection knows of nothing.
_RETRYABLE = (
    psycopg.errors.InvalidSqlStatementName,
    psycopg.errors.SerializationFailure,
    psycopg.errors.ReadOnlySqlTransaction,  # the primary has become a standby; a new connection goes to the new one
    psycopg.errors.DeadlockDetected,
    psycopg.OperationalError,
    psycopg.InterfaceError,
)

# QueryCanceled: a statement took its whole time, and would again.
_EXHAUSTED = (
    psycopg.errors.OutOfMemory,
    psycopg.errors.TooManyConnections,
    psycopg.errors.QueryCanceled,
)

# Given up by the server for the time it took. Most of that was spent waiting, or this process had stopped.
_GIVEN_UP = (psycopg.errors.IdleInTransactionSessionTimeout, psycopg.errors.TransactionTimeout)


def meaning_of(error: psycopg.Error) -> Exception:
    """Return the error of ours that an error of the driver is."""
    if isinstance(error, psycopg.errors.DiskFull):
        return OutOfSpace(str(error))
    if isinstance(error, _EXHAUSTED):
        return Busy(str(error))
    if isinstance(error, (psycopg.errors.LockNotAvailable, *_GIVEN_UP)):
        return LockTimeout(str(error))
    if isinstance(error, _RETRYABLE):
        return RetryableFailure(str(error))
    if isinstance(error, (psycopg.errors.DataCorrupted, psycopg.errors.IndexCorrupted)):
        return DataCorrupted(str(error))
    return DatabaseFailed(str(error))
