"""OpenTelemetry (`--otel`, the extra `tablegate[otel]`): a span for each request, tick and statement, and the metrics.

The module is imported only with `--otel`.
- The span of a request is a child of the caller's (`traceparent`).
- The span of a tick is linked with the spans of its requests, since a tick serves several.
- The span of a statement is a child of its tick's. On PostgreSQL it covers one round trip of several statements.
Spans have the text of statements, never their parameters.

The variables of OpenTelemetry configure the target (OTEL_EXPORTER_OTLP_ENDPOINT and others).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from functools import wraps
from typing import Any

from opentelemetry import context, propagate, trace
from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.metrics import CallbackOptions, Observation
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace import Link, Span, SpanKind, Status, StatusCode

from tablegate.gateway import __version__
from tablegate.gateway.configuration.secrets import masked
from tablegate.gateway.http.messages import Reply, Request
from tablegate.gateway.observability import metrics, prometheus

_MAX_TEXT = 2048
_MAX_LINKS = 128


class Telemetry:
    """The spans and metrics of one server process, until `close()`."""

    def __init__(self) -> None:
        resource = Resource.create({"service.name": "tablegate", "service.version": __version__})
        self._spans = TracerProvider(resource=resource)
        self._spans.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
        self._tracer = self._spans.get_tracer("tablegate", __version__)
        self._figures = MeterProvider(
            [PeriodicExportingMetricReader(OTLPMetricExporter())], resource=resource
        )
        meter = self._figures.get_meter("tablegate", __version__)
        self._seconds = meter.create_histogram(
            "tablegate.request.duration", "s", "Time from the last byte of a request to its reply."
        )
        for name, is_counter in prometheus.figure_names():
            make = meter.create_observable_counter if is_counter else meter.create_observable_gauge
            make(name.replace("_", "."), [_observer(name)])

    def close(self) -> None:
        """Send the remaining spans and metrics."""
        self._spans.shutdown()
        self._figures.shutdown()

    # Requests

    def start_span(self, request: Request) -> Span:
        """Start the span of a request."""
        parent = propagate.extract(request.header_map)
        return self._tracer.start_span(request.method, parent, SpanKind.SERVER)

    def end_span(self, span: Span, request: Request, reply: Reply, dialect: str, operation: str) -> None:
        """End the span of a request."""
        operation = masked(operation)
        span.update_name(f"{dialect} {operation}".strip())
        span.set_attributes(
            {
                "http.request.method": request.method,
                "http.response.status_code": reply.status,
                "client.address": request.client,
                "tablegate.dialect": dialect,
                "tablegate.operation": operation,
                "tablegate.request_id": request.id,
            }
        )
        if reply.status >= 500:
            span.set_status(Status(StatusCode.ERROR))
        span.end()
        start_ns: int = getattr(span, "start_time", 0) or time.time_ns()
        attributes: dict[str, str | int] = {
            "dialect": dialect,
            "operation": operation,
            "status": reply.status,
        }
        self._seconds.record((time.time_ns() - start_ns) / 1e9, attributes)

    # Ticks

    def trace_lists(self, run_list: Callable[[list[Any]], Any]) -> Callable[[list[Any]], Any]:
        """Wrap the function that runs a list of requests, with a span for each list."""

        @wraps(run_list)
        def traced_list(pending_requests: list[Any]) -> Any:
            spans = [request.span for request in pending_requests if request.span is not None]
            links = [Link(span.get_span_context()) for span in spans[:_MAX_LINKS]]
            attributes = {"tablegate.requests": len(pending_requests)}
            # The tick of one request is a child of that request's span. Otherwise it has no parent.
            within = trace.set_span_in_context(spans[0]) if len(spans) == 1 else context.Context()
            with self._tracer.start_as_current_span("tick", within, links=links, attributes=attributes):
                return run_list(pending_requests)

        return traced_list

    # Statements

    def statement(self, system: str, texts: Sequence[str]) -> Any:
        """Return a span of statements that are executed together."""
        attributes = {"db.system.name": system, "db.query.text": "; ".join(texts)[:_MAX_TEXT]}
        return self._tracer.start_as_current_span("statement", attributes=attributes)


def _observer(name: str) -> Callable[[CallbackOptions], Iterable[Observation]]:
    def observe(_: CallbackOptions) -> Iterable[Observation]:
        metrics.count_noted()
        return [Observation(value, labels) for labels, value in prometheus.figures_of(name)]

    return observe
