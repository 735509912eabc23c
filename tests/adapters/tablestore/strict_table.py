"""A table for tests of grants, and requests of callers with limits for it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tablegate.adapters.tablestore.operation_table import OPERATIONS
from tablegate.adapters.tablestore.wire.protocol import table_store_pb2 as messages
from tests.adapters.tablestore.client import no_throughput, row
from tests.support.strict import FULL, Strict, Told, strict

NO_PERMISSION = "OTSNoPermissionAccess"
RAM_T = "acs:ots:*:*:instance/inst/table/t"


def ram(*actions: str) -> dict[str, Any]:
    statement = {"Effect": "Allow", "Action": [f"ots:{action}" for action in actions], "Resource": RAM_T}
    return {"Version": "1", "Statement": statement}


@pytest.fixture(scope="module")
def server(shared_database_url: str) -> Iterator[Strict]:
    with strict(shared_database_url) as made:
        columns = [messages.PrimaryKeySchema(name=name, type=messages.STRING) for name in ("pk", "sk")]
        ask(
            made, FULL, "CreateTable", table_meta=messages.TableMeta(table_name="t", primary_key=columns),
            reserved_throughput=no_throughput(), table_options=messages.TableOptions(time_to_live=-1, max_versions=1),
        )  # fmt: skip
        condition = messages.Condition(row_existence=messages.IGNORE)
        for name in ("a", "b"):
            put = row({"pk": name, "sk": "1"}, {"open": "o", "secret": "s"})
            ask(made, FULL, "PutRow", table_name="t", row=put, condition=condition)
        yield made


def ask(server: Strict, caller: str, operation: str, **members: Any) -> Told:
    return server.tablestore(caller, operation, OPERATIONS[operation].request(**members))
