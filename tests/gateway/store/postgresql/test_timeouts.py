"""The time that PostgreSQL lets a transaction wait for its next statement: short for writers, whose locks others need."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from typing import cast

import pytest

from tablegate.gateway.store.opening import open_database
from tablegate.gateway.store.postgresql.database import (
    IDLE_READER_TIMEOUT_MS,
    IDLE_WRITER_TIMEOUT_MS,
    WRITE_TRANSACTION_TIMEOUT_MS,
    PostgreSQL,
)
from tablegate.gateway.store.sql.databases import Session

on_postgresql = pytest.mark.parametrize("database_url", ["postgresql"], indirect=True)


@pytest.fixture(params=[False, True], ids=["direct", "pooled"])
def database(request: pytest.FixtureRequest, database_url: str) -> Iterator[PostgreSQL]:
    with closing(open_database(database_url, pooled=request.param)) as opened:
        yield cast(PostgreSQL, opened)


def timeouts_ms(session: Session) -> list[int]:
    """Return the time-outs of (an idle transaction, a whole transaction). 0 means none."""
    names = ("idle_in_transaction_session_timeout", "transaction_timeout")
    found = session.query(
        "SELECT name, setting FROM pg_settings WHERE name = ? OR name = ? ORDER BY name", names
    )
    return [int(setting) for _, setting in found]


@on_postgresql
def test_a_reader_may_wait_longer_than_a_writer(database: PostgreSQL) -> None:
    for _ in range(2):
        with database.read() as session:
            assert timeouts_ms(session)[:1] == [IDLE_READER_TIMEOUT_MS]
            assert timeouts_ms(session)[1:] in ([], [0])
        with database.write() as session:
            assert timeouts_ms(session)[:1] == [IDLE_WRITER_TIMEOUT_MS]
            assert timeouts_ms(session)[1:] in ([], [WRITE_TRANSACTION_TIMEOUT_MS])


@on_postgresql
def test_a_connection_that_changes_its_purpose_changes_its_timeouts(database: PostgreSQL) -> None:
    """The pool gives the connections of a thread that ended to others."""
    with database.read() as session:
        assert timeouts_ms(session)[0] == IDLE_READER_TIMEOUT_MS
    reading = database._local.__dict__.pop("reader 0")
    reading.close()
    with database.write() as session:
        assert timeouts_ms(session)[0] == IDLE_WRITER_TIMEOUT_MS
