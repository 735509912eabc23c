"""The comparison of random requests to two servers (tests/support/differential.py)."""

from __future__ import annotations

import pytest

from tests.support.differential import Answer, Asked, Known, compare

OK, OTHER, REFUSED = Answer(200, "", "", {}), Answer(200, "", "", {"a": 1}), Answer(400, "Code", "text", {})
PUT, GET = ("Put", {"key": 1}), ("Get", {"key": 1})


def run(ours: list[Answer], theirs: list[Answer], known: list[Known] | None = None) -> None:
    sent: list[Asked] = [PUT, GET][: len(ours)]
    here, there = iter(ours), iter(theirs)
    compare(sent, lambda asked: next(here), lambda asked: next(there), known or [])


def explained(status: int) -> Known:
    return Known("a difference", "a source", lambda asked, here, there: there.status == status)


def test_equal_answers_pass() -> None:
    run([OK, REFUSED], [OK, REFUSED])


def test_a_difference_lists_the_requests_up_to_it_and_both_answers() -> None:
    with pytest.raises(AssertionError) as caught:
        run([OK, OK], [OK, OTHER])
    assert str(caught.value).splitlines() == [
        "answers differ after", 'Put {"key": 1}', 'Get {"key": 1}', f"ours:   {OK}", f"theirs: {OTHER}"
    ]  # fmt: skip


def test_requests_after_a_known_difference_are_compared() -> None:
    with pytest.raises(AssertionError):
        run([OK, REFUSED], [OTHER, OK], [Known("a difference", "a source", lambda *given: given[2] == OTHER)])


def test_the_comparison_ends_where_only_one_server_refuses() -> None:
    run([OK, OK], [REFUSED, OTHER], [explained(400)])
