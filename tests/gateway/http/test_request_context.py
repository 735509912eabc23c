"""Without interceptors, a request costs nothing extra: none of its facts is computed."""

from __future__ import annotations

from tablegate.gateway.http import request_context
from tablegate.gateway.observability import metrics


def test_facts_of_requests_are_computed_only_with_an_interceptor() -> None:
    before = (metrics.record_consumption, request_context.is_left_out)
    request_context.count_interceptor(True)
    try:
        assert metrics.record_consumption is request_context._record_consumption
        assert request_context.is_left_out is not None
        assert not request_context.is_left_out()
    finally:
        request_context.count_interceptor(False)
    assert (metrics.record_consumption, request_context.is_left_out) == before


def test_units_are_recorded_for_the_current_request() -> None:
    request_context.count_interceptor(True)
    mine = request_context.RequestContext(lambda: True)
    try:
        metrics.record_consumption(("toy", "t", "", "read", 1.0))
        with request_context.current(mine):
            metrics.record_consumption(("toy", "t", "", "read", 1.5))
            metrics.record_consumption(("toy", "t", "", "read", 0.5))
            assert request_context.is_left_out is not None
            assert request_context.is_left_out()
        metrics.record_consumption(("toy", "t", "", "read", 1.0))
    finally:
        request_context.count_interceptor(False)
    assert mine.units == {"read": 2.0}
