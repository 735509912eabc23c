"""Any request, however wrong, is answered at once and in the service's form: never as an internal error."""

from __future__ import annotations

import time
from collections import Counter

import pytest

from tablegate.adapters.tablestore.operation_table import OPERATIONS
from tablegate.adapters.tablestore.wire.protocol import table_store_pb2 as messages
from tests.adapters.tablestore.client import TableStoreService, answer_type, no_throughput
from tests.adapters.tablestore.hostile_messages import Hostile
from tests.support.capabilities import INSTALLED
from tests.support.clock import Clock

REQUESTS = 500
# Changes of tables are drawn less often, so that there remains something to read and write.
_RARE = frozenset(
    {"DeleteTable", "CreateTable", "UpdateTable", "CreateIndex", "DropIndex", "DeleteDefinedColumn"}
) | frozenset(OPERATIONS.groups.get("tablegate.adapters.tablestore.features.search.operations", ()))
_OFTEN = [
    name for name in sorted(OPERATIONS) for _ in range(1 if name in _RARE or name.startswith("List") else 8)
]
_MOST_CPU_SECONDS = 2


def prepare(service: TableStoreService) -> None:
    """Create tables: one with both kinds of index, a stream and transactions, one with versions, one with
    auto-increment keys, one with TTL.
    """
    key = (("p", messages.STRING), ("i", messages.INTEGER))
    stream = messages.StreamSpecification(enable_stream=True, expiration_time=24)
    by_d = messages.IndexMeta(
        name="by_d",
        primary_key=["d"],
        defined_column=["n"],
        index_update_mode=messages.IUM_ASYNC_INDEX,
        index_type=messages.IT_GLOBAL_INDEX,
    )
    by_n = messages.IndexMeta(
        name="by_n",
        primary_key=["p", "n"],
        defined_column=["d"],
        index_update_mode=messages.IUM_SYNC_INDEX,
        index_type=messages.IT_LOCAL_INDEX,
    )
    defined = [
        messages.DefinedColumnSchema(name="n", type=messages.DCT_INTEGER),
        messages.DefinedColumnSchema(name="d", type=messages.DCT_STRING),
    ]
    service.create(
        "t", *key, defined=defined, enable_local_txn=True, stream_spec=stream, index_metas=[by_d, by_n]
    )
    versions = messages.TableOptions(time_to_live=-1, max_versions=3)
    stream.columns_to_get.extend(["a", "b"])
    service.create("wide", *key, table_options=versions, enable_local_txn=True, stream_spec=stream)
    drawn = [
        messages.PrimaryKeySchema(name="p", type=messages.STRING),
        messages.PrimaryKeySchema(name="i", type=messages.INTEGER, option=messages.AUTO_INCREMENT),
    ]
    service.call(
        "CreateTable",
        table_meta=messages.TableMeta(table_name="drawn", primary_key=drawn),
        reserved_throughput=no_throughput(),
        table_options=versions,
    )
    service.create("plain", *key, table_options=messages.TableOptions(time_to_live=86_400, max_versions=1))


@pytest.mark.parametrize("seed", range(4))
def test_no_request_is_an_internal_error(service: TableStoreService, clock: Clock, seed: int) -> None:
    prepare(service)
    hostile = Hostile(seed)
    told: Counter[str] = Counter()
    for number in range(REQUESTS):
        name = hostile.random.choice(_OFTEN)
        body = hostile.request(OPERATIONS[name].request)
        if number % 50 == 0:
            clock.advance(hostile.random.choice((0.1, 61, 4_000)))
        began = time.process_time()
        reply = service.post(name, body)
        assert time.process_time() - began < _MOST_CPU_SECONDS, (number, name, body)
        if reply.status == 200:
            answer = answer_type(name).FromString(reply.body)
            hostile.remember(answer)
            told["ok"] += 1
        else:
            error = messages.Error.FromString(reply.body)
            assert reply.status < 500, (number, name, body, error)
            told[error.code] += 1
    # The random requests are useful only if some pass and some fail. The bound is for draws of all operations.
    assert told["ok"] > REQUESTS / 4 or not {"search", "sql", "tunnels"} <= INSTALLED
    assert len(told) > 5
