"""OpenTelemetry: the data sent to a collector. None of it exists unless it is enabled.

The collector is an HTTP server of this test that stores OTLP messages (protobuf over HTTP,
https://opentelemetry.io/docs/specs/otlp/).
"""

from __future__ import annotations

import http.server
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from tests.support.raw_client import SIGNED_IN_FORM, RawClient
from tests.support.running import ROOT, Process
from tests.support.waiting import PATIENCE_S

PRECIOUS = "precious-value"
TRACE, PARENT = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"


class Collector(http.server.ThreadingHTTPServer):
    """Keeps spans and names of figures."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.spans: list[Any] = []
        self.figures: dict[str, Any] = {}
        self.raw = b""

    def named(self, name: str) -> list[Any]:
        return [span for span in self.spans if span.name == name]


class _Handler(http.server.BaseHTTPRequestHandler):
    server: Collector

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.raw += body
        if self.path == "/v1/traces":
            for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
                for scope in resource.scope_spans:
                    self.server.spans += scope.spans
        else:
            for resource in ExportMetricsServiceRequest.FromString(body).resource_metrics:
                for scope in resource.scope_metrics:
                    self.server.figures.update({metric.name: metric for metric in scope.metrics})
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def collector() -> Iterator[Collector]:
    server = Collector()
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def attributes(span: Any) -> dict[str, Any]:
    return {each.key: each.value.string_value or each.value.int_value for each in span.attributes}


def test_each_request_tick_and_statement_has_a_span(
    collector: Collector, database_url: str, tmp_path: Path
) -> None:
    environment = {"OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{collector.server_port}"}
    flags = ["--database", database_url, "--dialects", "dynamodb", "--otel"]
    server = Process(tmp_path, *flags, environment=environment)
    server.wait_until_ready()
    with RawClient(server.url) as client:
        client.create_table("things")
        client.call("PutItem", TableName="things", Item={"p": {"S": "k"}, "x": {"S": PRECIOUS}})
        status, _ = client.post(
            "DynamoDB_20120810.GetItem", b'{"TableName": "things", "Key": {"p": {"S": "k"}}}',
            traceparent=f"00-{TRACE}-{PARENT}-01", Authorization=SIGNED_IN_FORM["Authorization"],
        )  # fmt: skip
        assert status == 200
    assert server.terminate()[0] == 0
    [request] = collector.named("dynamodb GetItem")
    assert (request.trace_id.hex(), request.parent_span_id.hex()) == (TRACE, PARENT)
    told = attributes(request)
    assert (told["http.response.status_code"], told["tablegate.operation"]) == (200, "GetItem")
    # Alone in its tick, so that the tick is below it, and its statements below the tick.
    [tick] = [span for span in collector.named("tick") if span.parent_span_id == request.span_id]
    assert [link.span_id for link in tick.links] == [request.span_id]
    statements = [span for span in collector.named("statement") if span.parent_span_id == tick.span_id]
    assert any(" rows" in attributes(span)["db.query.text"] for span in statements)
    [put] = collector.named("dynamodb PutItem")
    assert put.trace_id != request.trace_id
    assert PRECIOUS.encode() not in collector.raw
    seconds = collector.figures["tablegate.request.duration"].histogram.data_points
    assert sum(point.count for point in seconds) == 3
    answered = collector.figures["tablegate.requests"].sum.data_points
    assert sum(point.as_double for point in answered) == 3


def test_opentelemetry_is_not_imported_unless_enabled() -> None:
    words = (
        "import sys; from tablegate.gateway.__main__ import main; from tablegate.gateway.server import serving; "
        "main(['serve', '--help'], standalone_mode=False); "
        "assert not [name for name in sys.modules if name.startswith('opentelemetry')]"
    )
    subprocess.run([sys.executable, "-c", words], cwd=ROOT, check=True, capture_output=True)


def test_a_missing_extra_is_named(tmp_path: Path) -> None:
    hidden = (
        "import sys; sys.modules['opentelemetry'] = None; from tablegate.gateway.__main__ import main; "
        "main(['serve', '--otel', '--memory', '--port', '0'])"
    )
    done = subprocess.run(
        [sys.executable, "-c", hidden], cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE_S
    )
    assert done.returncode == 1
    assert "pip install 'tablegate[otel]'" in done.stderr
