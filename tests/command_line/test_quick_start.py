"""A start and a first request load nothing that they do not need (docs/architecture.md section 11).

Modules are counted, not seconds: what a start takes is mostly what it imports.
"""

from __future__ import annotations

import json
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from tablegate.adapters.dynamodb.operation_table import OPERATIONS as DYNAMODB
from tablegate.adapters.tablestore.operation_table import OPERATIONS as TABLE_STORE
from tests.support.waiting import PATIENCE_S

pytestmark = pytest.mark.extended

_HEAVY = {
    "alembic", "cryptography", "flask", "flatbuffers", "hypothesis", "jinja2", "jwt", "lark", "mako", "numpy",
    "prometheus_client", "psycopg", "pyarrow", "re2", "sqlalchemy", "sqlglot", "tablegate.transfer", "werkzeug",
}  # fmt: skip
_OF_JOBS = tuple(
    f"tablegate.adapters.dynamodb.{folder}" for folder in ("features.exports_imports", "export_files")
)
# Serves in the main thread. Another thread sends requests, then prints the loaded modules and stops the server.
_PROGRAM = """
import json, os, signal, socket, sys, threading
reader, writer = os.pipe()
shown, sys.stdout = sys.stdout, os.fdopen(writer, "w")
requests = json.loads(sys.argv[1])

def ask():
    told = os.fdopen(reader)
    port = int(told.readline().rpartition(":")[2])
    statuses = []
    for request in requests:
        with socket.create_connection(("127.0.0.1", port)) as connection:
            connection.sendall(request.encode())
            statuses.append(connection.recv(65536).decode("latin-1").partition("\\r\\n")[0][9:12])
    shown.write(json.dumps({"statuses": statuses, "modules": sorted(sys.modules)}))
    shown.flush()
    os.kill(os.getpid(), signal.SIGTERM)

threading.Thread(target=ask).start()
from tablegate.gateway.__main__ import main
from tablegate.gateway.server import background
background._FIRST_BATCH_S = 3600.0  # its first batch imports the capabilities, which a slow machine would count here
main(["serve", "--port", "0", *sys.argv[2:]], prog_name="tablegate")
"""


def _dynamodb(operation: str, **body: object) -> str:
    text = json.dumps(body)
    return (
        "POST / HTTP/1.1\r\nHost: localhost\r\n"
        f"X-Amz-Target: DynamoDB_20120810.{operation}\r\nContent-Type: application/x-amz-json-1.0\r\n"
        "Authorization: AWS4-HMAC-SHA256 Credential=local/20261122/us-east-1/dynamodb/aws4_request, "
        "SignedHeaders=host, Signature=0\r\nX-Amz-Date: 20261122T000000Z\r\n"
        f"Connection: close\r\nContent-Length: {len(text)}\r\n\r\n{text}"
    )


_KEY = {"id": {"S": "1"}}
_DYNAMODB = [
    _dynamodb("ListTables"),
    _dynamodb(
        "CreateTable", TableName="songs", BillingMode="PAY_PER_REQUEST",
        KeySchema=[{"AttributeName": "id", "KeyType": "HASH"}],
        AttributeDefinitions=[{"AttributeName": "id", "AttributeType": "S"}],
    ),
    _dynamodb("PutItem", TableName="songs", Item=_KEY),
    _dynamodb("GetItem", TableName="songs", Key=_KEY),
    _dynamodb(
        "Query", TableName="songs",
        KeyConditions={"id": {"ComparisonOperator": "EQ", "AttributeValueList": [{"S": "1"}]}},
    ),
]  # fmt: skip
_OWN = [
    f"GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n" for path in ("/healthz", "/readyz")
]
_FIGURES = [_OWN[0].replace("/healthz", "/metrics")]


def _loaded(requests: list[str], *flags: str) -> tuple[list[str], set[str]]:
    """The statuses of requests to a new server, and the modules that it has loaded."""
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(_PROGRAM), json.dumps(requests), *flags],
        capture_output=True, text=True, timeout=PATIENCE_S, cwd=Path(__file__).parents[2],
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    return told["statuses"], set(told["modules"])


@pytest.mark.fast_paths
@pytest.mark.parametrize("where", ["--memory", "--database"])
def test_first_requests_of_dynamodb_load_no_framework_and_no_parser(where: str, tmp_path: Path) -> None:
    flags = [where] if where == "--memory" else [where, str(tmp_path / "new.sqlite")]
    statuses, modules = _loaded(_OWN + _DYNAMODB, *flags)
    assert statuses == ["200"] * 7
    assert _HEAVY & modules == set()
    assert {*DYNAMODB.groups, *TABLE_STORE.groups} & modules == set()
    assert not [name for name in modules if name.startswith(_OF_JOBS)]
    assert not [
        name for name in modules if name.startswith("tablegate.gateway.features.") and ".install" in name
    ]


def test_the_first_request_for_an_operation_of_a_group_loads_the_group() -> None:
    """Other groups stay unloaded, and the reply is that of any later request."""
    request = _dynamodb("ExecuteStatement", Statement='SELECT * FROM "songs"')
    statuses, modules = _loaded([*_DYNAMODB, request, request], "--memory")
    assert statuses == ["200"] * 7
    assert DYNAMODB.groups.keys() & modules == {"tablegate.adapters.dynamodb.features.partiql.operations"}


def test_hot_operations_load_nothing_more() -> None:
    """The modules of common operations are loaded at the first request of the dialect.

    (GetItem of an existing item compiles its shape. BatchGetItem and transactions are as common.)
    """
    batch = {"RequestItems": {"songs": [{"PutRequest": {"Item": _KEY}}]}}
    hot = [
        _dynamodb("UpdateItem", TableName="songs", Key=_KEY),
        _dynamodb("BatchWriteItem", **batch),
        _dynamodb("BatchGetItem", RequestItems={"songs": {"Keys": [_KEY]}}),
        _dynamodb("Scan", TableName="songs"),
        _dynamodb("TransactGetItems", TransactItems=[{"Get": {"TableName": "songs", "Key": _KEY}}]),
        _dynamodb("DeleteItem", TableName="songs", Key=_KEY),
    ]
    _, before = _loaded(_DYNAMODB[:2], "--memory")
    statuses, after = _loaded([*_DYNAMODB, *hot], "--memory")
    assert statuses == ["200"] * 11
    assert after - before == set()


def _dialects_in(modules: set[str]) -> set[str]:
    return {name.split(".")[2] for name in modules if name.endswith(".dialect") and ".adapters." in name}


def test_the_first_request_of_a_dialect_loads_that_dialect() -> None:
    """A start imports at most 300 of our modules (issue 47)."""
    _, started = _loaded(_OWN, "--memory")
    assert _dialects_in(started) == set()
    assert len([name for name in started if name.startswith("tablegate")]) <= 300
    _, modules = _loaded([*_OWN, _DYNAMODB[0]], "--memory")
    assert _dialects_in(modules) == {"dynamodb"}


@pytest.mark.parametrize(
    ("flags", "dialect"),
    [(("--s3-folder", "/tmp"), "dynamodb"), (("--azure-flavour", "cosmos"), "azuretable")],
)
def test_a_start_loads_a_dialect_whose_settings_must_be_checked(flags: tuple[str, str], dialect: str) -> None:
    """Its jobs continue without a request, and an error in its settings ends the start."""
    _, modules = _loaded(_OWN, "--memory", *flags)
    assert _dialects_in(modules) == {dialect}


@pytest.mark.fast_paths
def test_the_control_api_loads_no_framework() -> None:
    """The first request of a test is often a reset."""
    paths = (
        "POST /_tablegate/reset",
        "PUT /_tablegate/clock",
        "GET /_tablegate/requests",
        "GET /_tablegate/snapshots",
    )
    requests = [
        f"{path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: 2\r\n\r\n{{}}"
        for path in paths
    ]
    statuses, modules = _loaded(requests + _DYNAMODB, "--memory")
    assert statuses == ["200"] * 9
    assert _HEAVY & modules == set()


def test_the_first_request_for_figures_loads_the_metrics_library() -> None:
    statuses, modules = _loaded(_OWN + _FIGURES, "--memory")
    assert statuses == ["200"] * 3
    assert _HEAVY & modules == {"prometheus_client"}
