"""Tables as each service describes and accepts them: keys, indexes, streams, expiry, versions, and what cannot be
carried over.
"""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from tablegate.gateway.model.commands.table_commands import NewIndex
from tablegate.gateway.model.tables.indexes import IndexProjection
from tablegate.gateway.model.tables.tables import ExpiryRule, Rules, StreamRule
from tablegate.gateway.model.values.keys import KeyColumn, KeySchema
from tablegate.gateway.model.values.values import Kind
from tablegate.transfer.endpoints.definitions import definition_of, document_of
from tablegate.transfer.endpoints.endpoint import Definition, Service
from tablegate.transfer.errors import SchemaChanged
from tests.support.running import Running
from tests.transfer.endpoints.conftest import open_azure, open_dynamodb, open_table_store
from tests.transfer.endpoints.places import SCHEMAS

DAY_MS = 86_400_000


def column(name: str, kind: Kind = Kind.TEXT) -> KeyColumn:
    return KeyColumn(name, kind)


def test_a_dynamodb_table_is_made_as_it_is_described(ours: Running) -> None:
    schema = KeySchema((column("pk"),), (column("sk", Kind.BYTES),))
    definition = Definition(
        "definedfully",
        Service.DYNAMODB,
        schema,
        (
            NewIndex(
                "by-l",
                KeySchema((column("pk"),), (column("l", Kind.DECIMAL),)),
                IndexProjection.KEYS,
                local=True,
            ),
            NewIndex("by-g", KeySchema((column("g"),)), IndexProjection.INCLUDE, ("a", "b")),
            NewIndex("by-h", KeySchema((column("g"),), (column("sk", Kind.BYTES),)), IndexProjection.ALL),
        ),
        Rules(
            expiry=ExpiryRule(attribute="ttl"),
            stream=StreamRule("", True, "OLD_IMAGE", DAY_MS, 0),
        ),
    )
    endpoint = open_dynamodb(ours.url, "definedfully")
    assert endpoint.create(definition) == []
    found = endpoint.describe()
    assert found.key_schema == schema
    assert sorted(found.indexes, key=lambda index: index.name) == sorted(
        definition.indexes, key=lambda index: index.name
    )
    assert definition_of(json.loads(json.dumps(document_of(found)))) == found
    assert found.rules.expiry == ExpiryRule(attribute="ttl")
    assert found.rules.stream is not None and found.rules.stream.view == "OLD_IMAGE"
    assert found.rows == 0


def test_definitions_that_dynamodb_lacks_are_reported(ours: Running) -> None:
    schema = KeySchema((column("pk"),), (column("sk"),))
    three = KeySchema((column("a"),), (column("b"), column("c")))
    definition = Definition(
        "definedless",
        Service.DYNAMODB,
        schema,
        (
            NewIndex("of three", three, IndexProjection.ALL),
            NewIndex("two types", KeySchema((column("sk", Kind.DECIMAL),)), IndexProjection.ALL),
            NewIndex("not local", KeySchema((column("x"),), (column("y"),)), IndexProjection.ALL, local=True),
        ),
        Rules(expiry=ExpiryRule(age_ms=DAY_MS), max_versions=3),
    )
    endpoint = open_dynamodb(ours.url, "definedless")
    notes = endpoint.create(definition)
    for words in ("of three", "two types", "not local", "86400 seconds", "not 3"):
        assert sum(words in note for note in notes) == 1, notes
    assert endpoint.describe().indexes == ()
    with pytest.raises(SchemaChanged):
        open_dynamodb(ours.url, "definednot").create(replace(definition, key_schema=three))


def test_a_table_store_table_is_made_as_it_is_described(ours: Running) -> None:
    endpoint = open_table_store(ours.url, "definedots")
    definition = Definition(
        "definedots",
        Service.TABLE_STORE,
        SCHEMAS[Service.TABLE_STORE],
        rules=Rules(
            expiry=ExpiryRule(age_ms=30 * DAY_MS),
            stream=StreamRule("", True, "NEW_AND_OLD_IMAGES", 48 * 3_600_000, 0),
            max_versions=5,
            stamped=True,
        ),
    )
    assert endpoint.create(definition) == []
    found = endpoint.describe()
    assert found.key_schema == SCHEMAS[Service.TABLE_STORE]
    assert found.rules.max_versions == 5 and found.rules.stamped
    assert found.rules.expiry == ExpiryRule(age_ms=30 * DAY_MS)
    assert found.rules.stream is not None and found.rules.stream.retention_ms == 48 * 3_600_000


def test_indexes_of_table_store_come_with_the_types_of_their_columns(ours: Running) -> None:
    schema = KeySchema((column("a"),), (column("b", Kind.INT64),))
    definition = Definition(
        "definedindex",
        Service.TABLE_STORE,
        schema,
        (
            NewIndex("index_g", KeySchema((column("c", Kind.INT64),)), IndexProjection.INCLUDE, ("d",)),
            NewIndex(
                "index_l", KeySchema((column("a"),), (column("e"),)), IndexProjection.INCLUDE, local=True
            ),
        ),
        properties={"tablestore": {"defined": [("d", 2)]}},  # DOUBLE
    )
    endpoint = open_table_store(ours.url, "definedindex")
    assert endpoint.create(definition) == []
    found = endpoint.describe()
    assert [
        (index.name, index.key_schema.names[:2], index.included, index.local) for index in found.indexes
    ] == [("index_g", ("c",), ("d",), False), ("index_l", ("a", "e"), (), True)]
    assert found.indexes[0].key_schema.partition == (column("c", Kind.INT64),)
    assert dict(found.properties["tablestore"]["defined"]) == {"c": 1, "d": 2, "e": 4}
    # Made again from its own description.
    again = open_table_store(ours.url, "definedagain")
    renamed = tuple(replace(index, name=f"{index.name}_2") for index in found.indexes)
    assert again.create(replace(found, indexes=renamed)) == []
    assert [index.included for index in again.describe().indexes] == [("d",), ()]


def test_definitions_that_table_store_lacks_are_reported(ours: Running) -> None:
    schema = KeySchema((column("a"),), (KeyColumn("b", Kind.INT64, auto_increment=True),))
    definition = Definition(
        "definedotsless",
        Service.TABLE_STORE,
        schema,
        (
            NewIndex("index_n", KeySchema((column("n", Kind.DECIMAL),)), IndexProjection.KEYS),
            NewIndex("index_u", KeySchema((column("c"),)), IndexProjection.INCLUDE, ("unknown",)),
        ),
        Rules(expiry=ExpiryRule(attribute="ttl")),
    )
    endpoint = open_table_store(ours.url, "definedotsless")
    notes = endpoint.create(definition)
    for words in ("auto-increment", "index_n", "unknown", "by ttl"):
        assert sum(words in note for note in notes) == 1, notes
    assert [index.name for index in endpoint.describe().indexes] == ["index_u"]
    several = open_table_store(ours.url, "definedseveral")
    notes = several.create(replace(definition, rules=Rules(max_versions=2)))
    assert sum("several versions" in note for note in notes) == 2
    with pytest.raises(SchemaChanged):
        several.create(replace(definition, key_schema=KeySchema((column("n", Kind.DECIMAL),))))


def test_an_azure_table_has_its_key_and_nothing_else(ours: Running) -> None:
    endpoint = open_azure(ours.url, "definedazure")
    definition = Definition(
        "definedazure",
        Service.AZURE_TABLE,
        SCHEMAS[Service.AZURE_TABLE],
        (NewIndex("by-x", KeySchema((column("x"),)), IndexProjection.ALL),),
        Rules(
            expiry=ExpiryRule(attribute="ttl"),
            stream=StreamRule("", True, "KEYS_ONLY", DAY_MS, 0),
            max_versions=2,
        ),
    )
    assert len(endpoint.create(definition)) == 4
    assert endpoint.describe() == Definition(
        "definedazure", Service.AZURE_TABLE, SCHEMAS[Service.AZURE_TABLE]
    )
    with pytest.raises(SchemaChanged):
        endpoint.create(replace(definition, key_schema=SCHEMAS[Service.DYNAMODB]))
