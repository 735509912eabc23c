"""Vector indexes of tables that are copied: between databases, to other services, and from exports."""

from __future__ import annotations

import json
from pathlib import Path

import orjson

from tablegate.gateway.features.vectors.vectors import Metric, VectorIndex
from tablegate.gateway.model.commands.table_commands import CountRows, NewIndex
from tablegate.gateway.model.tables.indexes import IndexProjection
from tablegate.gateway.model.values.keys import KeyColumn, KeySchema
from tablegate.gateway.model.values.values import Kind, Value, decimal, text
from tablegate.transfer.endpoints.definitions import definition_of, document_of
from tablegate.transfer.endpoints.endpoint import Definition, Service
from tablegate.transfer.endpoints.files.opening import open_file
from tablegate.transfer.mapping import rules
from tablegate.transfer.mapping.mapping import Mapping
from tablegate.transfer.mapping.rules import MappingFinding
from tests.support.running import Running
from tests.transfer.endpoints.conftest import environment, open_dynamodb, ours
from tests.transfer.endpoints.files.test_dynamodb_export import FILES, put_export
from tests.transfer.endpoints.test_database import Opens, opens
from tests.transfer.support.memory_endpoint import PAIR, row_of

__all__ = ["environment", "opens", "ours"]


def column(name: str, kind: Kind = Kind.TEXT) -> KeyColumn:
    return KeyColumn(name, kind)


BY_V = VectorIndex(0, "by_v", "v", 2, Metric.COSINE, IndexProjection.ALL)


def test_a_table_of_a_database_keeps_its_vector_index(opens: Opens, database_url: str) -> None:
    index = VectorIndex(
        0, "by_v", "v", 3, Metric.EUCLIDEAN, IndexProjection.INCLUDE, ("x",), filters=(column("n", Kind.DECIMAL),)
    )  # fmt: skip
    endpoint = opens(f"{database_url}#things")
    assert endpoint.create(Definition("things", Service.DYNAMODB, PAIR, other_indexes=(index,))) == []
    assert endpoint.describe().other_indexes == (index,)


def test_entries_of_indexes_are_there(opens: Opens, database_url: str) -> None:
    by_number = NewIndex("by_number", KeySchema((column("number", Kind.DECIMAL),)), IndexProjection.ALL)
    endpoint = opens(f"{database_url}#things")
    endpoint.create(Definition("things", Service.DYNAMODB, PAIR, (by_number,), other_indexes=(BY_V,)))
    vector = Value(Kind.LIST, (decimal(1), decimal(2)))
    rows = [row_of(PAIR, pk=text("p"), sk=text(f"{at}"), number=decimal(at), v=vector) for at in range(50)]
    endpoint.write(rows)
    [statistics] = endpoint.client.run([CountRows(endpoint.client.find())])
    assert [statistics.indexes[name][0] for name in ("by_number", "by_v")] == [50, 50]


def test_a_dynamodb_table_is_made_with_its_vector_indexes(ours: Running) -> None:
    by_v = VectorIndex(0, "by-v", "v", 3, Metric.COSINE, IndexProjection.INCLUDE, ("a", "b"), column("g"))
    by_w = VectorIndex(
        0, "by-w", "w", 4096, Metric.DOT_PRODUCT, IndexProjection.ALL,
        filters=(column("l", Kind.DECIMAL), column("x", Kind.BYTES)),
    )  # fmt: skip
    schema = KeySchema((column("pk"),))
    definition = Definition("definedvectors", Service.DYNAMODB, schema, other_indexes=(by_v, by_w))
    endpoint = open_dynamodb(ours.url, "definedvectors")
    assert endpoint.create(definition) == []
    found = endpoint.describe()
    assert found.other_indexes == definition.other_indexes
    assert definition_of(json.loads(json.dumps(document_of(found)))) == found


def test_vector_indexes_are_dynamodbs_alone() -> None:
    source = Definition("people", Service.DYNAMODB, KeySchema((column("pk"),)), other_indexes=(BY_V,))
    for target in (Service.DYNAMODB, Service.TABLEGATE):
        mapping = Mapping(source, target)
        assert mapping.definition.other_indexes == (BY_V,) and mapping.notes == ()
    for target in (Service.AZURE_TABLE, Service.TABLE_STORE):
        mapping = Mapping(source, target)
        assert mapping.definition.other_indexes == ()
        assert MappingFinding(rules.INDEX_NOT_KEPT, "by_v") in mapping.notes


def test_vector_indexes_of_an_export_come_from_describe_table(tmp_path: Path) -> None:
    index = {
        "IndexName": "by_v",
        "VectorAttribute": {"AttributeName": "v"},
        "Dimensions": 3,
        "DistanceFunction": "COSINE",
        "Projection": {"ProjectionType": "ALL"},
    }
    table = {
        "TableName": "ProductCatalog",
        "KeySchema": [{"AttributeName": "Id", "KeyType": "HASH"}],
        "AttributeDefinitions": [{"AttributeName": "Id", "AttributeType": "N"}],
        "TableStatus": "ACTIVE",
        "VectorIndexes": [index],
    }
    folder = put_export(tmp_path, FILES)
    (folder / "table.json").write_bytes(orjson.dumps({"Table": table}))
    [found] = open_file(str(tmp_path), {}).describe().other_indexes
    assert (found.name, found.attribute, found.dimensions) == ("by_v", "v", 3)
