"""What watching requests costs those that nobody watches: nothing is asked of them."""

from __future__ import annotations

from tablegate.gateway import handling
from tablegate.gateway.observability import metrics


def test_what_is_asked_of_requests_is_asked_only_while_a_server_watches() -> None:
    before = (metrics.consumed, handling.is_left_out)
    handling.watch(True)
    try:
        assert metrics.consumed is handling._consumed
        assert handling.is_left_out is not None
        assert not handling.is_left_out()
    finally:
        handling.watch(False)
    assert (metrics.consumed, handling.is_left_out) == before


def test_units_are_noted_for_the_request_whose_code_runs() -> None:
    handling.watch(True)
    mine = handling.RequestContext(lambda: True)
    try:
        metrics.consumed(("toy", "t", "", "read", 1.0))
        with handling.current(mine):
            metrics.consumed(("toy", "t", "", "read", 1.5))
            metrics.consumed(("toy", "t", "", "read", 0.5))
            assert handling.is_left_out is not None
            assert handling.is_left_out()
        metrics.consumed(("toy", "t", "", "read", 1.0))
    finally:
        handling.watch(False)
    assert mine.units == {"read": 2.0}
