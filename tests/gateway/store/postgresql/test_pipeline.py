"""PostgreSQL returns the values sent, in every encoding and size, and after any earlier error."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import make_url

from tablegate.gateway.model.errors import DatabaseFailed
from tablegate.gateway.store.opening import open_database
from tablegate.gateway.store.postgresql.database import PostgreSQL
from tablegate.gateway.store.postgresql.pipeline import Pipeline
from tablegate.gateway.store.sql.databases import Database
from tests.support.databases import PostgresServer


@pytest.fixture(scope="module")
def url(postgres: PostgresServer) -> str:
    return postgres.empty_database()


@pytest.fixture(scope="module", params=["prepared", "pooled"])
def database(url: str, request: pytest.FixtureRequest) -> Iterator[Database]:
    database = open_database(url, pooled=request.param == "pooled")
    yield database
    database.close()


@pytest.fixture(params=[True, False], ids=["prepared", "not prepared"])
def pipeline(url: str, request: pytest.FixtureRequest) -> Iterator[Pipeline]:
    plain = make_url(url).set(drivername="postgresql").render_as_string(hide_password=False)
    with psycopg.connect(plain, autocommit=True) as connection:
        pipeline = Pipeline(connection, prepares=request.param)
        pipeline.begin()
        yield pipeline
        pipeline.end()


def _nullable(elements: st.SearchStrategy[object]) -> st.SearchStrategy[list[object]]:
    return st.lists(st.none() | elements, max_size=20)


def _integers(bits: int) -> st.SearchStrategy[list[object]]:
    return _nullable(st.integers(-(1 << bits - 1), (1 << bits - 1) - 1))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(_integers(16), _integers(32), _integers(64), _nullable(st.binary(max_size=40)))
def test_arrays_arrive_as_they_were(
    pipeline: Pipeline, small: list[object], middle: list[object], big: list[object], raw: list[object]
) -> None:
    asked = "SELECT ?::smallint[], ?::int[], ?::bigint[], ?::bytea[]"
    answer = pipeline.send(asked, (small, middle, big, raw))
    pipeline.settle()
    assert pipeline.rows(answer) == [(small, middle, big, raw)]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.integers(-(1 << 63), (1 << 63) - 1) | st.none(),
    st.binary() | st.none(),
    st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"])) | st.none(),
)
def test_single_values_arrive_as_they_were(
    pipeline: Pipeline, number: int | None, raw: bytes | None, words: str | None
) -> None:
    answer = pipeline.send("SELECT ?::bigint, ?::bytea, ?::text", (number, raw, words))
    pipeline.settle()
    assert pipeline.rows(answer) == [(number, raw, words)]


def test_messages_larger_than_the_socket_buffers_pass_in_both_directions(pipeline: Pipeline) -> None:
    body = bytes(range(256)) * 4096
    answers = [pipeline.send("SELECT ?::bytea", (body,)) for _ in range(40)]
    pipeline.settle()
    assert all(pipeline.rows(answer) == [(body,)] for answer in answers)


def test_the_first_error_of_a_pipeline_is_raised(database: Database) -> None:
    def fail() -> None:
        with database.write() as session:
            session.send("SELECT 1 / ?", (0,))
            session.send("SELECT 1")

    with pytest.raises(DatabaseFailed, match="division by zero"):
        fail()
    with database.write() as session:
        assert session.query("SELECT 1 / ?", (1,)) == [(1,)]


@pytest.mark.parametrize("value", ["a\0b", "\ud800", 1 << 63])
def test_values_that_cannot_be_stored_are_refused_and_not_truncated(
    database: Database, value: object
) -> None:
    with pytest.raises((DatabaseFailed, UnicodeEncodeError)), database.write() as session:
        session.query(
            "SELECT name FROM (VALUES (1, 'x')) t(id, name) WHERE name = ? OR id = ?", (value, value)
        )
    with database.write() as session:
        assert session.query("SELECT 1") == [(1,)]


def test_after_an_error_of_the_caller_the_connection_is_used_again(database: Database) -> None:
    with database.write() as session:
        [(backend,)] = session.query("SELECT pg_backend_pid()")

    def give_up() -> None:
        with database.write() as session:
            session.send("CREATE TABLE given_up (id int)")
            raise KeyError

    with pytest.raises(KeyError):
        give_up()
    with database.write() as session:
        assert session.query("SELECT pg_backend_pid(), to_regclass('given_up')::text") == [(backend, None)]


def test_statements_past_the_bound_are_run_without_being_prepared(url: str) -> None:
    database = PostgreSQL(url)
    with database.write() as session:
        for number in range(600):
            assert session.query(f"SELECT {number}") == [(number,)]
        [(prepared,)] = session.query("SELECT count(*) FROM pg_prepared_statements")
        assert prepared == 500
    database.close()
