"""The three adapters are built alike: one class, one table of operations, one name for the way from error to error."""

from __future__ import annotations

import importlib
from pathlib import Path
from types import ModuleType
from typing import Any
from unittest.mock import Mock

import flask
import pytest

from tablegate.gateway.configuration.settings import Settings
from tablegate.gateway.dialects.adapter import OperationTable, adapters
from tablegate.gateway.dialects.dialect import Detection, Dialect, Gateway
from tablegate.gateway.http.messages import Request
from tablegate.gateway.model.errors import Busy, GatewayError, LimitExceeded, NotAllowed
from tablegate.gateway.model.values.keys import KeyColumn, KeySchema
from tablegate.gateway.model.values.values import Kind
from tablegate.gateway.security.credentials import Credentials

FOLDER = Path(__file__).parents[2] / "tablegate/adapters"
NAMES = sorted(path.parent.name for path in FOLDER.glob("*/dialect.py"))


def part(name: str, module: str) -> ModuleType:
    return importlib.import_module(f"tablegate.adapters.{name}.{module}")


@pytest.fixture(params=NAMES)
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def dialect(name: str) -> Dialect:
    settings = Settings()
    gateway = Gateway(Mock(), Credentials(settings), settings, *[lambda: 1_700_000_000_000] * 2)
    return adapters(settings)[name].dialect(gateway)


def test_there_are_three_adapters() -> None:
    assert NAMES == ["azuretable", "dynamodb", "tablestore"]


def test_an_adapter_is_a_class_with_the_methods_of_all(name: str, dialect: Dialect) -> None:
    kind = type(dialect)
    detection = part(name, "detection").DETECTION
    assert kind.__bases__ == (detection, Dialect) and detection.__bases__ == (Detection,)
    assert kind.__module__ == f"tablegate.adapters.{name}.dialect"
    public = {member for member in vars(kind) if not member.startswith("_")}
    steps = {"authenticate", "parse", "execute", "render", "render_error"}
    assert {"operation", "refuse"} | steps <= public
    assert public <= set(dir(Dialect)) - set(dir(Detection))
    detected = {member for member in vars(detection) if not member.startswith("_")}
    assert {"name", "hint", "service_hosts", "matches"} <= detected <= set(dir(Detection)) | {"name"}
    assert name == dialect.name == importlib.import_module(f"tablegate.adapters.{name}").DIALECT
    assert "{url}" in dialect.hint


def test_an_adapter_has_no_other_public_way_in(name: str) -> None:
    module = part(name, "dialect")
    own = {
        member
        for member, value in vars(module).items()
        if getattr(value, "__module__", "") == module.__name__ and not member.startswith("_")
    }
    assert own == {adapters(Settings())[name].dialect.__name__, "listed"}


def test_operations_stand_in_one_table(name: str) -> None:
    table = part(name, "operation_table")
    assert table.OPERATIONS
    for row in table.OPERATIONS.values():
        assert type(row) is table.Operation
        assert callable(row.handler)


@pytest.mark.parametrize("name", ["dynamodb", "tablestore"])
def test_each_group_of_operations_has_the_operations_that_its_line_names(name: str) -> None:
    """A missing name would be answered as unknown, and a surplus one would be a server error."""
    table: OperationTable[Any] = part(name, "operation_table").OPERATIONS
    assert table.groups
    for module, names in table.groups.items():
        assert tuple(importlib.import_module(module).OPERATIONS) == names
    assert len({*table}) == len(table)


def test_every_error_of_the_gateway_has_one_in_the_dialect(name: str) -> None:
    errors = part(name, "wire.errors")
    is_dynamodb = name == "dynamodb"
    service_error_of = part(name, "wire.gateway_errors" if is_dynamodb else "wire.errors").service_error_of
    operation = ("PutItem",) if is_dynamodb else ()
    for error in (Busy("x"), NotAllowed("origin", text="no"), GatewayError()):
        assert type(service_error_of(error, *operation)) is errors.ServiceError


def test_every_dialect_has_replies_for_refusals_of_the_server(dialect: Dialect) -> None:
    request = Request("POST", "/a", (("host", "localhost"),), b"")
    statuses = [
        dialect.refuse(request, error).status  # type: ignore[union-attr]
        for error in (LimitExceeded("body", 1, 2), Busy("x"), RuntimeError("a bug"))
    ]
    assert statuses == [413, 503, 500]
    assert dialect.refuse(request, NotAllowed("origin", text="no")).status in (400, 403)  # type: ignore[union-attr]


def test_one_rule_of_flask_takes_all_paths_and_methods(dialect: Dialect) -> None:
    app = flask.Flask("test", static_folder=None)
    app.register_blueprint(dialect.blueprint())
    rules = {rule.rule: rule.methods for rule in app.url_map.iter_rules()}
    assert rules == {"/": dialect.methods, "/<path:path>": dialect.methods}
    assert {"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"} <= dialect.methods


def test_a_table_is_listed_in_every_dialect(name: str) -> None:
    schema = KeySchema((KeyColumn("a", Kind.TEXT),), (KeyColumn("b", Kind.TEXT),))
    table = Mock(azure_name="things", key_schema=schema)
    table.name = "things"
    shown, keys, address = adapters(Settings())[name].listed(table)
    assert shown == "things"
    assert "a" in keys
    assert address.endswith("/things")
