"""Values and patterns of a statement that would take minutes or hundreds of megabytes."""

from __future__ import annotations

import sys
import tracemalloc
from collections.abc import Callable
from typing import Any

import pytest

from tablegate.adapters.tablestore.features.sql import expressions, json_documents
from tablegate.adapters.tablestore.features.sql.functions import FUNCTIONS
from tablegate.adapters.tablestore.features.sql.operators import is_match, like_pattern, search_pattern
from tablegate.adapters.tablestore.features.sql.parsing import parse_statement
from tablegate.adapters.tablestore.features.sql.result_rows import Aggregate
from tablegate.adapters.tablestore.features.sql.work import Work
from tablegate.adapters.tablestore.wire import limits
from tablegate.adapters.tablestore.wire.errors import ServiceError
from tablegate.gateway.model.errors import Busy
from tests.gateway.model.values.test_hash_keys import NUMBERS, OF_ONE_HASH, Compared


def like(pattern: str) -> Any:
    return like_pattern(pattern, "\\")


@pytest.mark.parametrize("pattern_of", [like, search_pattern])
def test_the_steps_of_a_pattern_and_a_text(
    monkeypatch: pytest.MonkeyPatch, pattern_of: Callable[[str], Any]
) -> None:
    """5,000 wildcards on 2 MB took three minutes. The time limit of the statement did not end them."""
    pattern = pattern_of("b")
    monkeypatch.setattr(limits, "SQL_PATTERN_STEPS_MAX", 10 * pattern.programsize)
    assert not is_match(pattern, "a" * 10)
    with pytest.raises(ServiceError, match="A pattern is too complex"):
        is_match(pattern, "a" * 11)


def test_a_simple_pattern_searches_the_longest_text() -> None:
    text = "a" * limits.VALUE_MAX_BYTES
    assert is_match(like("%a_a%b%"), text) is False
    assert is_match(like("a%a"), text) is True
    with pytest.raises(ServiceError, match="A pattern is too complex"):
        is_match(like("%a" * 2000), text)


@pytest.mark.parametrize("pattern_of", [like, search_pattern])
def test_a_pattern_has_a_maximum_length(pattern_of: Callable[[str], Any]) -> None:
    assert not is_match(pattern_of("a" * limits.SQL_PATTERN_MAX), "a")
    with pytest.raises(ServiceError, match="The length of a pattern"):
        pattern_of("a" * (limits.SQL_PATTERN_MAX + 1))


def test_the_values_of_several_paths_are_bounded_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "SQL_TEXT_MAX", 100)
    document = '"' + "x" * 48 + '"'
    assert json_documents.extract(document, "$", "$") == f"[{document}, {document}]"
    with pytest.raises(ServiceError, match="The result of a function is too long"):
        json_documents.extract(document, "$", "$", "$")


def test_a_result_that_is_too_long_is_not_made() -> None:
    """These took 400 and 200 MB for a moment."""
    document = '["' + "x" * 500_000 + '"]'
    separator = "x" * 500_000
    tracemalloc.start()
    try:
        with pytest.raises(ServiceError, match="The result of a function is too long"):
            json_documents.extract(document, *["$[0]"] * 99)
        with pytest.raises(ServiceError, match="The result of a function is too long"):
            FUNCTIONS["CONCAT_WS"].call(separator, *"ab" * 49)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 10_000_000


@pytest.mark.parametrize("name", ["date", "binary", "timestamp"])
def test_nested_calls_of_the_names_of_types(name: str) -> None:
    """Each level doubled the time of the parser, or tripled it: 20 levels took minutes."""
    parse_statement("select " + f"{name}(" * 5 + "a" + ")" * 5)
    with pytest.raises(ServiceError, match="takes too long to parse"):
        parse_statement("select " + f"{name}(" * 16 + "a" + ")" * 16)


def test_long_statements_need_few_steps_of_the_parser() -> None:
    parse_statement("select " + ",".join(["date(year(a))"] * 1_200) + " from t")
    parse_statement("select * from t where a in (" + ",".join("1" * 15_000) + ")")


def test_a_statement_ends_when_its_client_is_gone() -> None:
    """Source: issue 44, point 12: "the work goes on after the client left"."""

    def check_client() -> None:
        raise Busy("the client has closed the connection")

    with pytest.raises(Busy):
        Work(lambda _: None, check_client).check_time()


def test_values_of_a_subquery_have_keys_with_a_secret() -> None:
    """Python's hashes of numbers have none (tests/gateway/model/values/test_hash_keys.py)."""
    numbers = [at * sys.hash_info.modulus for at in range(1, 300)]
    values = expressions._by_key([[number] for number in numbers])
    assert len(set(map(hash, values))) == len(numbers)
    assert list(values.values()) == numbers


def test_distinct_numbers_of_one_hash_are_not_compared_with_each_other() -> None:
    """A client can choose them (test_hash_keys.py)."""
    Compared.count = 0
    counted = Aggregate("COUNT", (lambda row: row[0],), True, 0)
    counted.result([[number] for number in map(Compared, OF_ONE_HASH)], lambda value: value)
    assert Compared.count <= 2 * NUMBERS
