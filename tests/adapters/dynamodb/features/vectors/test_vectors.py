"""Vector indexes and SearchVectors: each rule of botocore's model and of captures of the live service.

Texts: botocore 1.44.5 service-2.json, paritysuite (eu-west-2, August and October 2026) and ExtendDB's change notes
(us-east-1, August 2026).
"""

from __future__ import annotations

import random
import re
import sys
import threading
from typing import Any

import numpy as np
import orjson
import pytest

from tablegate.adapters.dynamodb.validation import shortening
from tablegate.gateway.features.vectors import vector_search as engine_searching
from tablegate.gateway.features.vectors.index_images import VectorGraph
from tests.conftest import Serve
from tests.support.raw_client import RawClient
from tests.support.waiting import PATIENCE_S

VALIDATION = "ValidationException"
INVALID = "One or more parameter values were invalid: "
STRING = {"AttributeType": "S"}


def index(name: str = "plain", **more: Any) -> dict[str, Any]:
    given = {
        "IndexName": name,
        "VectorAttribute": {"AttributeName": "emb"},
        "Dimensions": 3,
        "DistanceFunction": "COSINE",
        "Projection": {"ProjectionType": "ALL"},
        **more,
    }
    return {name: value for name, value in given.items() if value is not None}


def including(*counts: int) -> list[dict[str, Any]]:
    """An index for each count, with that many NonKeyAttributes."""
    return [
        index(
            f"index{at}",
            Projection={
                "ProjectionType": "INCLUDE",
                "NonKeyAttributes": [f"a{at}-{number}" for number in range(count)],
            },
        )
        for at, count in enumerate(counts)
    ]


def schema(*names: str) -> list[dict[str, str]]:
    """Return a key schema. The first attribute is HASH. One that begins with "-" is omitted."""
    roles = ["HASH", *["INLINE_FILTER"] * (len(names) - 1)]
    return [
        {"AttributeName": name, "SearchSchemaElementType": role}
        for name, role in zip(names, roles, strict=True)
        if name != "-"
    ]


def defined(**types: str) -> list[dict[str, str]]:
    return [{"AttributeName": name, "AttributeType": kind} for name, kind in types.items()]


def definition(*indexes: dict[str, Any], table: str = "docs", **more: Any) -> dict[str, Any]:
    given = {
        "TableName": table,
        "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}],
        "AttributeDefinitions": defined(pk="S"),
        "BillingMode": "PAY_PER_REQUEST",
        "VectorIndexes": list(indexes),
        **more,
    }
    return {name: value for name, value in given.items() if value is not None}


def vector(*numbers: object) -> dict[str, Any]:
    return {"L": [{"N": str(number)} for number in numbers]}


def query(*numbers: object) -> list[dict[str, str]]:
    return [{"N": str(number)} for number in numbers]


def put(service, pk: str, **attributes: Any) -> Any:
    answer = service.call("PutItem", {"TableName": "docs", "Item": {"pk": {"S": pk}, **attributes}})
    assert service.last.status == 200, answer
    return answer


def searching(*numbers: object, **more: Any) -> dict[str, Any]:
    return {"TableName": "docs", "IndexName": "plain", "SearchVector": query(*numbers), "TopK": 10, **more}


def search(service, *numbers: object, **more: Any) -> list[dict[str, Any]]:
    answer = service.call("SearchVectors", searching(*numbers, **more))
    assert service.last.status == 200, answer
    return answer["SearchResults"]


def keys(results: list[dict[str, Any]]) -> list[str]:
    return [result["Item"]["pk"]["S"] for result in results]


def made(service, *indexes: dict[str, Any], **more: Any) -> dict[str, Any]:
    answer = service.call("CreateTable", definition(*indexes, **more))
    assert service.last.status == 200, answer
    return answer["TableDescription"]


def described(service) -> dict[str, Any]:
    return service.call("DescribeTable", {"TableName": "docs"})["Table"]


TENANTS = index(SearchSchema=schema("tenant", "kind", "year"))
TENANT_DEFINITIONS = defined(pk="S", tenant="S", kind="S", year="N")


# Definitions


def test_a_table_is_made_with_vector_indexes_and_described(service) -> None:
    answer = made(service, TENANTS, AttributeDefinitions=TENANT_DEFINITIONS)
    assert answer["VectorIndexes"][0]["IndexStatus"] == "CREATING"
    assert "Backfilling" not in answer["VectorIndexes"][0]
    put(service, "a", emb=vector(1, 0, 0), tenant={"S": "t"})
    put(service, "b", emb=vector(1, 0, 0))  # in no partition
    [shown] = described(service)["VectorIndexes"]
    arn = shown.pop("IndexArn")
    assert arn.endswith(":table/docs/index/plain")
    assert shown == {
        **TENANTS,
        "IndexStatus": "ACTIVE",
        "ItemCount": 1,
        "IndexSizeBytes": len("emb") + 12 + len("pka") + len("tenantt"),
    }
    assert sorted(each["AttributeName"] for each in described(service)["AttributeDefinitions"]) == [
        "kind",
        "pk",
        "tenant",
        "year",
    ]


@pytest.mark.parametrize(
    ("given", "text"),
    [
        (
            definition(index(), BillingMode=None, ProvisionedThroughput={"ReadCapacityUnits": 1, "WriteCapacityUnits": 1}),
            INVALID + "Vector indexes are only supported for PAY_PER_REQUEST tables",
        ),
        (definition(TENANTS), INVALID + "One element in SearchSchema is not defined in attribute definitions"),
        (
            definition(index(), AttributeDefinitions=defined(pk="S", emb="S")),
            INVALID + "Conflicting attribute definition for 'emb'. An attribute cannot be defined in AttributeDefinitions when "
            "used as a VectorAttribute.",
        ),
        (
            definition(index(Dimensions=4097)),
            INVALID + "Number of dimensions must be between 1 and 4096 inclusive.",
        ),
        (
            definition(index(Dimensions=0)),
            ("1 validation error detected: Value '0' at 'vectorIndexes.1.member.dimensions' failed to satisfy constraint: "
            "Member must have value greater than or equal to 1"),
        ),
        (
            definition(index(), index("other", Dimensions=4)),
            INVALID + "Conflicting attribute definition for 'emb'. All VectorIndexes on the same vector attribute must use the "
            "same dimensions.",
        ),
        (
            definition(*(index(f"index{at}") for at in range(6))),
            INVALID + "VectorIndex count exceeds the per-table limit of 5",
        ),
        (
            definition(index(SearchSchema=[{"AttributeName": name, "SearchSchemaElementType": "HASH"} for name in "ab"])),
            INVALID + "Value '2' at 'SearchSchema' failed to satisfy constraint: "
            "Member must have HASH count less than or equal to 1",
        ),
        (
            definition(index(SearchSchema=schema("-", *(f"f{at}" for at in range(19))))),
            INVALID + "Value '19' at 'SearchSchema' failed to satisfy constraint: "
            "Member must have INLINE_FILTER count less than or equal to 18",
        ),
        (
            definition(index(Projection=None)),
            ("1 validation error detected: Value null at 'vectorIndexes.1.member.projection' failed to satisfy constraint: "
            "Member must not be null"),
        ),
        (
            definition(index(Projection={"ProjectionType": "INCLUDE"})),
            INVALID + "ProjectionType is INCLUDE, but NonKeyAttributes is not specified",
        ),
        (
            definition(index(Projection={"ProjectionType": "ALL", "NonKeyAttributes": ["a"]})),
            INVALID + "ProjectionType is ALL, but NonKeyAttributes is specified",
        ),
        (definition(index(), index()), INVALID + "Duplicate index name: plain"),
        # 101 attributes: one vector each, and 96 names.
        (
            definition(*including(20, 19, 19, 19, 19)),
            INVALID + "Number of attributes to project exceeds the limit of 100",
        ),
    ],
    ids=lambda value: "" if isinstance(value, dict) else value[-40:],
)  # fmt: skip
def test_definitions_that_are_refused(service, given, text) -> None:
    assert service.error("CreateTable", given) == (VALIDATION, text)


def test_a_hundred_projected_attributes_are_accepted(service) -> None:
    """botocore 1.44.5, VectorIndex: the vector and the filters count, too."""
    made(service, *including(19, 19, 19, 19, 19))
    assert len(described(service)["VectorIndexes"]) == 5


@pytest.mark.parametrize("function", ["COSINE", "DOT_PRODUCT", "EUCLIDEAN"])
def test_definitions_at_their_limits(service, function) -> None:
    filters = [f"f{at}" for at in range(18)]
    made(
        service,
        index("whole", Dimensions=4096, DistanceFunction=function, SearchSchema=schema("h", *filters)),
        *(
            index(f"index{at}", Dimensions=4096, Projection={"ProjectionType": "KEYS_ONLY"})
            for at in range(4)
        ),
        AttributeDefinitions=defined(pk="S", h="B", **dict.fromkeys(filters, "N")),
    )
    assert len(described(service)["VectorIndexes"]) == 5


def test_a_fraction_of_dimensions_is_cut_off(service) -> None:
    made(service, index(Dimensions=3.7))
    assert described(service)["VectorIndexes"][0]["Dimensions"] == 3


def test_without_numpy_no_index_is_made_and_none_is_searched(service, monkeypatch) -> None:
    made(service, index())
    put(service, "a", emb=vector(1, 0, 0))
    monkeypatch.setitem(sys.modules, "numpy", None)
    for module in (
        "tablegate.gateway.features.vectors.vector_search",
        "tablegate.gateway.features.vectors.exact_search",
        "tablegate.gateway.features.vectors.index_images",
    ):
        monkeypatch.delitem(sys.modules, module, raising=False)
        monkeypatch.delattr(module, raising=False)
    told = (
        VALIDATION,
        INVALID + "this request needs the package tablegate[vectors], which is not installed on the server",
    )
    assert service.error("CreateTable", definition(index(), table="other")) == told
    assert service.error("UpdateTable", update({"Create": index("other")})) == told
    assert service.error("SearchVectors", searching(1, 0, 0)) == told
    put(service, "b", emb=vector(0, 1, 0))  # rows are written as ever
    assert described(service)["VectorIndexes"][0]["ItemCount"] == 2


# UpdateTable


def update(*updates: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"TableName": "docs", "VectorIndexUpdates": list(updates), **more}


def settle(service) -> None:
    while service.gateway.engine.background.next_batch():
        pass


def test_an_index_that_is_added_is_filled_and_then_searched(service) -> None:
    service.call("CreateTable", definition(VectorIndexes=None))
    put(service, "a", emb=vector(1, 0, 0))
    put(service, "bad", emb={"S": "none"})
    put(service, "short", emb=vector(1))
    answer = service.call("UpdateTable", update({"Create": index()}))["TableDescription"]
    assert answer["TableStatus"] == "UPDATING"
    assert [(each["IndexStatus"], each["Backfilling"]) for each in answer["VectorIndexes"]] == [
        ("CREATING", False)
    ]
    [shown] = described(service)["VectorIndexes"]
    assert (shown["IndexStatus"], shown["Backfilling"]) == ("CREATING", True)
    assert service.error("SearchVectors", searching(1, 0, 0)) == (
        VALIDATION,
        "Cannot search backfilling vector index: plain",
    )
    assert service.error("UpdateTable", update({"Create": index()})) == (
        "ResourceInUseException",
        "Attempt to change a resource which is still in use: Index is being created.  Table: docs Index: plain",
    )
    assert service.error("UpdateTable", update({"Create": index("other")}))[0] == "LimitExceededException"
    assert service.error("DeleteTable", {"TableName": "docs"}) == (
        "ResourceInUseException",
        (
            "Attempt to change a resource which is still in use: Cannot delete table while indexes are being created, "
            "updated, or deleted."
        ),
    )
    put(service, "later", emb=vector(0, 1, 0))
    settle(service)
    [shown] = described(service)["VectorIndexes"]
    assert shown["IndexStatus"] == "ACTIVE"
    assert "Backfilling" not in shown
    assert keys(search(service, 1, 0, 0)) == ["a", "later"]


def test_an_update_leaves_no_attribute_that_violates_a_later_vector_index(service) -> None:
    """Developer guide, GSI.OnlineOps.ViolationDetection, for vector indexes: writes to violating items are rejected."""
    service.call("CreateTable", definition(VectorIndexes=None))
    for pk, attributes in {
        "vector": {"emb": {"S": "none"}},
        "filter": {"emb": vector(1, 0, 0), "c": {"N": "1"}},
        "fine": {"emb": vector(1, 0, 0), "t": {"S": "x"}, "c": {"S": "y"}},
    }.items():
        put(service, pk, **attributes)
    definitions = {"AttributeDefinitions": defined(pk="S", t="S", c="S")}
    service.call("UpdateTable", {**update({"Create": index(SearchSchema=schema("t", "c"))}), **definitions})
    settle(service)

    def change(pk: str, expression: str) -> str | None:
        given = {"TableName": "docs", "Key": {"pk": {"S": pk}}, "UpdateExpression": expression}
        if ":n" in expression:
            given["ExpressionAttributeValues"] = {":n": {"N": "1"}}
        answer = service.call("UpdateItem", given)
        return answer["message"] if service.last.status == 400 else None

    assert "Invalid type for parameter emb" in (change("vector", "SET n = :n") or "")
    assert "Attribute 'c' type mismatch" in (change("filter", "SET n = :n") or "")
    assert change("fine", "SET n = :n") is None
    assert change("vector", "REMOVE emb") is None
    assert change("vector", "SET n = :n") is None
    assert change("filter", "REMOVE c") is None


def test_an_index_is_dropped(service) -> None:
    made(service, index(), index("other"))
    answer = service.call("UpdateTable", update({"Delete": {"IndexName": "plain"}}))["TableDescription"]
    assert {each["IndexName"]: each["IndexStatus"] for each in answer["VectorIndexes"]} == {
        "plain": "DELETING",
        "other": "ACTIVE",
    }
    assert [each["IndexName"] for each in described(service)["VectorIndexes"]] == ["other"]
    assert service.error("SearchVectors", searching(1, 0, 0)) == (
        VALIDATION,
        "The table does not have the specified index: plain",
    )


@pytest.mark.parametrize(
    ("given", "error"),
    [
        (update({"Create": index()}), (VALIDATION, "Attempting to create an index which already exists")),
        (
            update({"Delete": {"IndexName": "none"}}),
            ("ResourceNotFoundException", "Requested resource not found: Index none for table docs"),
        ),
        (
            update({"Create": index("a_b")}, {"Delete": {"IndexName": "plain"}}),
            (
                "LimitExceededException",
                "Subscriber limit exceeded: Only 1 online index can be created or deleted simultaneously per table",
            ),
        ),
        (
            update({"Create": index("a_b", SearchSchema=schema("tenant"))}),
            (VALIDATION, INVALID + "One element in SearchSchema is not defined in attribute definitions"),
        ),
        (
            update({"Create": index("a_b", Dimensions=4)}),
            (
                VALIDATION,
                INVALID + "Conflicting attribute definition for 'emb'. All VectorIndexes on the same vector attribute must use "
                "the same dimensions.",
            ),
        ),
        (
            update({"Create": index("a_b", VectorAttribute={"AttributeName": "pk"}, Dimensions=4)}),
            (
                VALIDATION,
                INVALID + "Attributes cannot be redefined. Please check that your attribute has the same type as previously "
                "defined. Existing schema: Schema:[SchemaElement: key{pk:S:HASH}] New schema: VectorIndexSchema:"
                "[VectorAttribute: key{pk:L:4}]",
            ),
        ),
        (
            update(BillingMode="PROVISIONED", ProvisionedThroughput={"ReadCapacityUnits": 1, "WriteCapacityUnits": 1}),
            (VALIDATION, INVALID + "Vector indexes are only supported for PAY_PER_REQUEST tables"),
        ),
    ],
)  # fmt: skip
def test_updates_that_are_refused(service, given, error) -> None:
    made(service, index())
    if "BillingMode" in given:
        del given["VectorIndexUpdates"]
    assert service.error("UpdateTable", given) == error


def test_a_sixth_index_is_too_many(service) -> None:
    made(service, *(index(f"index{at}") for at in range(5)))
    assert service.error("UpdateTable", update({"Create": index()})) == (
        "LimitExceededException",
        "Subscriber limit exceeded: Number of vector secondary indexes exceeds per-table limit of 5",
    )


def test_a_table_becomes_on_demand_and_gets_an_index_at_once(service) -> None:
    units = {"ReadCapacityUnits": 1, "WriteCapacityUnits": 1}
    service.call("CreateTable", definition(VectorIndexes=None, BillingMode=None, ProvisionedThroughput=units))
    assert service.error("UpdateTable", update({"Create": index()})) == (
        VALIDATION,
        INVALID + "Vector indexes are only supported for PAY_PER_REQUEST tables",
    )
    service.call("UpdateTable", update({"Create": index()}, BillingMode="PAY_PER_REQUEST"))
    assert service.last.status == 200


# Writes

TWICE = "One or more parameter values are not valid. One or more parameter values were invalid . "
ONCE = "One or more parameter values were invalid. "
# Sizes and types as paritysuite has them (error-messages/vectorWrites.test.ts, live service in eu-west-2, August 2026 and its
# runs since). ExtendDB's notes (us-east-1, 19 August 2026) have two frames around these, too.
EMPTIED = (
    "One or more parameter values are not valid. The update expression attempted to update a secondary index key to a value "
    "that is not supported. The AttributeValue for a key attribute cannot contain an empty string value."
)
NO_LIST = (
    ONCE + "Invalid type for parameter emb, Expected: 32-bit floating point number list IndexName: plain"
)


@pytest.mark.parametrize(
    ("attributes", "text"),
    [
        ({"emb": vector(1, 2)}, ONCE + "Invalid size for parameter emb, Expected: 3, Actual: 2 IndexName: plain"),
        ({"emb": vector(1, 2, 3, 4)}, ONCE + "Invalid size for parameter emb, Expected: 3, Actual: 4 IndexName: plain"),
        ({"emb": {"S": "x"}}, NO_LIST),
        ({"emb": {"NS": ["1", "2", "3"]}}, NO_LIST),
        (
            {"emb": {"L": [{"N": "1"}, {"S": "2"}, {"N": "3"}]}},
            ONCE + "Invalid type for parameter emb[1], Expected: 32-bit floating point number, Actual: S. IndexName: plain",
        ),
        (
            {"emb": vector("1E39", 1, 1)},
            TWICE + "Invalid value for parameter emb[0], Value: 1.0E39 is outside valid range [-3.4028235E38, 3.4028235E38]. "
            "IndexName: plain",
        ),
        ({"tenant": {"N": "1"}}, ONCE + "Attribute 'tenant' type mismatch. Expected: S, Actual: N. IndexName: plain"),
        ({"year": {"S": "1"}}, ONCE + "Attribute 'year' type mismatch. Expected: N, Actual: S. IndexName: plain"),
        (
            {"tenant": {"S": ""}},
            ("One or more parameter values are not valid. A value specified for a secondary index key is not supported. The "
            "AttributeValue for a key attribute cannot contain an empty string value. IndexName: plain, IndexKey: tenant"),
        ),
        ({"tenant": {"S": "x" * 2049}}, ONCE + "Aggregate size for HASH key attributes exceeds the maximum of 2048 bytes"),
        ({"kind": {"S": "x" * 10241}}, ONCE + "Size limit exceeded for SearchSchema attribute 'kind': maximum 10240 bytes"),
    ],
    ids=lambda value: "" if isinstance(value, dict) else value[-50:],
)  # fmt: skip
def test_attributes_that_a_vector_index_cannot_take_are_refused(service, attributes, text) -> None:
    """Covers every kind of write. In a transaction, the refusal is the reason of its cancellation."""
    made(service, TENANTS, AttributeDefinitions=TENANT_DEFINITIONS)
    item = {"pk": {"S": "a"}, **attributes}
    assert service.error("PutItem", {"TableName": "docs", "Item": item}) == (VALIDATION, text)
    batch = {"RequestItems": {"docs": [{"PutRequest": {"Item": item}}]}}
    assert service.error("BatchWriteItem", batch) == (VALIDATION, text)
    [(name, value)] = attributes.items()
    given = {"TableName": "docs", "Key": {"pk": {"S": "a"}}, "UpdateExpression": "SET #a = :v",
             "ExpressionAttributeNames": {"#a": name}, "ExpressionAttributeValues": {":v": value}}  # fmt: skip
    updated = EMPTIED if value == {"S": ""} else text
    assert service.error("UpdateItem", given) == (VALIDATION, updated)
    for action, told in (({"Put": {"TableName": "docs", "Item": item}}, text), ({"Update": given}, updated)):
        answer = service.call("TransactWriteItems", {"TransactItems": [action]})
        assert answer["CancellationReasons"] == [{"Code": "ValidationError", "Message": told}]
    assert service.call("Scan", {"TableName": "docs"})["Count"] == 0


def test_attributes_at_the_limits_of_a_vector_index_are_accepted(service) -> None:
    made(service, TENANTS, AttributeDefinitions=TENANT_DEFINITIONS)
    put(
        service,
        "a",
        emb=vector("3.4028235E38", "-3.4028235E38", "1E-130"),
        tenant={"S": "x" * 2048},
        kind={"S": "x" * 10240},
    )
    put(service, "b", emb=vector(1, 2, 3), kind={"S": ""})
    assert described(service)["VectorIndexes"][0]["ItemCount"] == 1


def test_writes_of_all_sorts_keep_the_index(service) -> None:
    made(service, index())
    put(service, "a", emb=vector(1, 0, 0))
    put(service, "b", emb=vector(0, 1, 0))
    put(service, "c")
    assert keys(search(service, 1, 0, 0)) == ["a", "b"]
    key = {"TableName": "docs", "Key": {"pk": {"S": "a"}}}
    service.call("UpdateItem", key | {"UpdateExpression": "REMOVE emb"})
    assert keys(search(service, 1, 0, 0)) == ["b"]
    values = {"ExpressionAttributeValues": {":v": vector(1, 0, 0)}}
    service.call("UpdateItem", key | {"UpdateExpression": "SET emb = :v"} | values)
    service.call("TransactWriteItems", {"TransactItems": [
        {"Update": {"TableName": "docs", "Key": {"pk": {"S": "c"}}, "UpdateExpression": "SET emb = :v"} | values},
        {"Delete": {"TableName": "docs", "Key": {"pk": {"S": "b"}}}},
    ]})  # fmt: skip
    assert keys(search(service, 1, 0, 0)) == ["a", "c"]
    # One component by its place, as the service's documents have it of any list.
    service.call(
        "UpdateItem",
        key | {"UpdateExpression": "SET emb[0] = :n", "ExpressionAttributeValues": {":n": {"N": "-1"}}},
    )
    assert keys(search(service, 1, 0, 0)) == ["c", "a"]
    service.call(
        "BatchWriteItem", {"RequestItems": {"docs": [{"DeleteRequest": {"Key": {"pk": {"S": "c"}}}}]}}
    )
    assert keys(search(service, 1, 0, 0)) == ["a"]


# Searches


@pytest.mark.parametrize(
    ("function", "scores"),
    [("COSINE", [0, 0.4, 1, 2]), ("EUCLIDEAN", [0, 0.894427, 1.414214, 2]), ("DOT_PRODUCT", [1, 0.6, 0, -1])],
)
def test_scores(service, function, scores) -> None:
    made(service, index(DistanceFunction=function))
    for name, numbers in {"d": (-1, 0, 0), "c": (0, 1, 0), "b": ("0.6", "0.8", 0), "a": (1, 0, 0)}.items():
        put(service, name, emb=vector(*numbers))
    results = search(service, 1, 0, 0)
    assert keys(results) == ["a", "b", "c", "d"]
    assert [result["Score"] for result in results] == pytest.approx(scores, abs=1e-6)
    assert keys(search(service, 1, 0, 0, TopK=2)) == ["a", "b"]


@pytest.mark.parametrize(
    ("projection", "names"),
    [
        ({"ProjectionType": "ALL"}, {"pk", "tenant", "kind", "year", "other"}),
        ({"ProjectionType": "KEYS_ONLY"}, {"pk", "tenant", "kind", "year"}),
        (
            {"ProjectionType": "INCLUDE", "NonKeyAttributes": ["other"]},
            {"pk", "tenant", "kind", "year", "other"},
        ),
    ],
)
def test_an_item_has_what_the_index_projects_but_not_the_vector(service, projection, names) -> None:
    made(service, {**TENANTS, "Projection": projection}, AttributeDefinitions=TENANT_DEFINITIONS)
    put(
        service,
        "a",
        emb=vector("0.1", 2, "-1e-7"),
        tenant={"S": "t"},
        kind={"S": "k"},
        year={"N": "1"},
        other={"BOOL": True},
    )
    where = {"SearchConditionExpression": "tenant = :t", "ExpressionAttributeValues": {":t": {"S": "t"}}}
    [result] = search(service, 1, 0, 0, **where)
    assert set(result["Item"]) == names
    [result] = search(service, 1, 0, 0, **where, ProjectionExpression="pk, emb, absent")
    shows_vector = projection["ProjectionType"] == "ALL"
    assert set(result["Item"]) == ({"pk", "emb"} if shows_vector else {"pk"})
    if shows_vector:
        assert result["Item"]["emb"] == vector("0.1", "2.0", "-0.0000001")
        [result] = search(service, 1, 0, 0, **where, ProjectionExpression="emb[1]")
        assert result["Item"] == {"emb": vector("2.0")}


def test_an_included_vector_is_shown_when_it_is_named(service) -> None:
    made(service, index(Projection={"ProjectionType": "INCLUDE", "NonKeyAttributes": ["emb"]}))
    put(service, "a", emb=vector("1.23456789012345", 0, 0), rest={"S": "x"})
    assert search(service, 1, 0, 0)[0]["Item"] == {"pk": {"S": "a"}}
    [result] = search(service, 1, 0, 0, ProjectionExpression="pk, emb, rest")
    assert result["Item"] == {"pk": {"S": "a"}, "emb": vector("1.2345679", "0.0", "0.0")}
    whole = service.call("GetItem", {"TableName": "docs", "Key": {"pk": {"S": "a"}}})["Item"]
    assert whole["emb"] == vector("1.23456789012345", 0, 0)


def values(**given: dict[str, Any]) -> dict[str, Any]:
    return {"ExpressionAttributeValues": {f":{name}": value for name, value in given.items()}}


def test_partitions_and_filters(service) -> None:
    made(service, TENANTS, AttributeDefinitions=TENANT_DEFINITIONS)
    chance = random.Random(2)
    items = []
    for at in range(60):
        attributes = {"tenant": {"S": f"t{at % 2}"}, "kind": {"S": "abc"[at % 3]}, "year": {"N": str(at % 4)}}
        if at % 7 == 0:
            del attributes["kind"]
        numbers = [round(chance.uniform(-1, 1), 4) for _ in range(3)]
        put(service, f"i{at:02}", emb=vector(*numbers), **attributes)
        items.append((f"i{at:02}", attributes, numbers))

    def nearest(**wanted: Any) -> list[str]:
        found = [(name, numbers) for name, given, numbers in items if wanted.items() <= given.items()]
        return [
            name
            for name, numbers in sorted(
                found, key=lambda item: -np.float32(item[1])[0] / np.linalg.norm(item[1])
            )
        ]

    tenant = {"S": "t1"}
    assert keys(
        search(service, 1, 0, 0, TopK=100, SearchConditionExpression="tenant = :t", **values(t=tenant))
    ) == nearest(tenant=tenant)
    given = {
        "SearchConditionExpression": "#k = :k AND :t = tenant",
        "ExpressionAttributeNames": {"#k": "kind"},
    }
    assert keys(search(service, 1, 0, 0, TopK=100, **given, **values(t=tenant, k={"S": "a"}))) == nearest(
        tenant=tenant, kind={"S": "a"}
    )
    text = "(tenant = :t AND kind = :k) AND #y = :y"
    given = {"SearchConditionExpression": text, "ExpressionAttributeNames": {"#y": "year"}}
    assert (
        keys(search(service, 1, 0, 0, TopK=3, **given, **values(t=tenant, k={"S": "b"}, y={"N": "1.0"})))
        == nearest(tenant=tenant, kind={"S": "b"}, year={"N": "1"})[:3]
    )


CONDITION = "SearchConditionExpression"


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"TopK": 0}, ("1 validation error detected: Value '0' at 'topK' failed to satisfy constraint: "
                      "Member must have value greater than or equal to 1")),
        ({"TopK": 101}, "Provided TopK value '101' is out of valid range. The value must be between 1 and 100 inclusive"),
        ({"SearchVector": query(1, 2)}, "Input search vector dimension 2 does not match vector index dimension 3"),
        ({"IndexName": "none"}, "The table does not have the specified index: none"),
        ({CONDITION: None, "ExpressionAttributeValues": None},
         f"{CONDITION} must be provided when SearchSchema has a HASH key"),
        ({CONDITION: None}, ("ExpressionAttributeValues can only be specified when using expressions: "
                            f"{CONDITION} is null")),
        ({CONDITION: "tenant > :t"}, f"Invalid {CONDITION}: Invalid comparator used in {CONDITION}"),
        ({CONDITION: "kind <> :t"}, f"Invalid {CONDITION}: Invalid comparator used in {CONDITION}"),
        ({CONDITION: "tenant = :t OR kind = :t"}, f"Invalid operator used in {CONDITION}"),
        ({CONDITION: "NOT tenant = :t"}, f"Invalid operator used in {CONDITION}"),
        ({CONDITION: "tenant IN (:t)"}, f"Invalid operator used in {CONDITION}"),
        ({CONDITION: "begins_with(tenant, :t)"}, f"Invalid operator used in {CONDITION}"),
        ({CONDITION: "tenant = :t AND kind = :t AND kind = :t"},
         f"{CONDITION} must only contain one condition per attribute"),
        ({CONDITION: "tenant.x = :t"}, f"{CONDITION} cannot have conditions on nested attributes"),
        ({CONDITION: "kind = :t"}, f"{CONDITION} must have all HASH attributes"),
        ({CONDITION: "tenant = :t AND pk = :t"},
         f"{CONDITION} must not contain any attributes that is not in SearchSchema. Invalid attribute: pk"),
        ({"ExpressionAttributeValues": {":t": {"N": "1"}}},
         f"Type of 'tenant' attribute in {CONDITION} (N) does not match type in search schema (S)"),
        ({"ExpressionAttributeValues": {":t": {"S": ""}}},
         ("One or more parameter values are not valid. The AttributeValue for a key attribute cannot contain an empty string "
         "value. Key: tenant")),
        ({"ExpressionAttributeValues": {":t": {"S": "t"}, ":u": {"S": "u"}}},
         "Value provided in ExpressionAttributeValues unused in expressions: keys: {:u}"),
        ({CONDITION: "tenant = :x"},
         f"Invalid {CONDITION}: An expression attribute value used in expression is not defined; attribute value: :x"),
        ({CONDITION: "tenant ="}, None),
    ],
)  # fmt: skip
def test_searches_that_are_refused(service, given, text) -> None:
    made(service, TENANTS, AttributeDefinitions=TENANT_DEFINITIONS)
    whole = searching(1, 0, 0, SearchConditionExpression="tenant = :t", **values(t={"S": "t"})) | given
    code, told = service.error(
        "SearchVectors", {name: value for name, value in whole.items() if value is not None}
    )
    assert code == VALIDATION
    assert text is None or told == text


@pytest.mark.parametrize(
    "element",
    [
        {"S": "1"},
        {"N": "1e39"},
        {"N": "-1e39"},
        {"L": [{"N": "1"}]},
        {"BOOL": True},
        {"N": "x"},
        {"N": ""},
        {},
    ],
)
def test_search_vectors_of_other_things_than_numbers(service, element) -> None:
    made(service, index())
    told = (
        "Search vector contains invalid values. "
        "All values in the search vector must be a 32-bit floating-point number attribute"
    )
    assert service.error("SearchVectors", searching(1, 0) | {"SearchVector": [*query(1), element]}) == (
        VALIDATION,
        told,
    )


def test_a_search_vector_has_1_to_4096_numbers(service) -> None:
    made(service, index(Dimensions=4096))
    assert "length greater than or equal to 1" in service.error("SearchVectors", searching())[1]
    assert "length less than or equal to 4096" in service.error("SearchVectors", searching(*range(4097)))[1]
    assert search(service, *range(4096)) == []


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"IndexName": None}, ("SerializationException", "invalid type: null, expected a string")),
        ({"TableName": None}, ("SerializationException", "invalid type: null, expected a string")),
        ({"SearchVector": None}, ("SerializationException", "invalid type: null, expected a sequence")),
        ({"TopK": None}, ("SerializationException", "invalid type: null, expected i32")),
        ({"TableName": "left out"}, (VALIDATION, "missing field `TableName`")),
        ({"TableName": "left out", "IndexName": "ab"}, (VALIDATION, "missing field `TableName`")),
    ],
    ids=str,
)
def test_the_body_is_read_strictly(service, change, error) -> None:
    """paritysuite, error-messages/searchVectors.test.ts: eu-west-2 and us-east-1, 9 October 2026. No table is looked up."""
    given = searching(1, 0, 0) | change
    if given["TableName"] == "left out":
        del given["TableName"]
    code, text = service.error("SearchVectors", given)
    assert code == error[0]
    told, _, column = text.partition(" at line 1 column ")
    assert told == error[1]
    body = orjson.dumps(given)
    [after_null] = [match.end() for match in re.finditer(b"null", body)] or [len(body)]
    assert int(column) == after_null


def test_members_that_are_dropped_are_not_read_for_the_text_of_a_refusal(service) -> None:
    """SearchVectors checks the body of a refused request again, in its parsed form."""
    names = b",".join(b'"#n%d":"x"' % number for number in range(100_000))
    text = b'{"TopK":1,"Values":0,"ExpressionAttributeNames":{%s,"#n":abc}}' % names
    assert len(text) > shortening.MIN_BYTES
    reply = service.post("SearchVectors", text)
    answer = orjson.loads(reply.body)
    assert (reply.status, answer["message"].partition(" at line")[0]) == (400, "missing field `TableName`")


def test_the_column_of_a_fault_is_that_of_its_line(service) -> None:
    body = b'{"TableName":\n "docs", "TopK" :  null}'
    answer = orjson.loads(service.post("SearchVectors", body).body)
    assert answer["Message"] == "invalid type: null, expected i32 at line 2 column 23"


def test_the_table_is_not_there(service) -> None:
    assert service.error("SearchVectors", searching(1, 0, 0)) == (
        "ResourceNotFoundException",
        "Requested resource not found",
    )


def test_other_readers_do_not_take_a_vector_index(service) -> None:
    made(service, index())
    given = {"TableName": "docs", "IndexName": "plain"}
    condition = {"KeyConditionExpression": "pk = :p", **values(p={"S": "a"})}
    assert service.error("Query", given | condition)[1] == "Query operation not supported on this index type."
    assert service.error("Scan", given)[1] == "Scan operation not supported on this index type"
    statement = {"Statement": 'SELECT * FROM "docs"."plain"'}
    assert (
        service.error("ExecuteStatement", statement)[1] == "Scan operation not supported on this index type"
    )


def test_a_table_is_named_by_its_arn(service) -> None:
    arn = made(service, index())["TableArn"]
    put(service, "a", emb=vector(1, 0, 0))
    assert keys(search(service, 1, 0, 0, TableName=arn)) == ["a"]


def test_an_answer_has_16_megabytes_at_most(service) -> None:
    """botocore's model has no token for a further page, so the answer omits the rest."""
    made(service, index())
    for at in range(45):
        put(service, f"i{at:02}", emb=vector(1, at, 0), filler={"S": "x" * 390_000})
    results = search(service, 1, 0, 0, TopK=100)
    assert keys(results) == [f"i{at:02}" for at in range(43)]


# Capacity


def consumed(service, operation: str, given: dict[str, Any], mode: str = "INDEXES") -> dict[str, Any]:
    answer = service.call(operation, {"TableName": "docs", "ReturnConsumedCapacity": mode, **given})
    assert service.last.status == 200, answer
    return answer["ConsumedCapacity"]


@pytest.mark.parametrize(
    ("dimensions", "projection", "blob", "expected"),
    [
        (1024, "KEYS_ONLY", 0, 4111),
        (2048, "KEYS_ONLY", 0, 8207),
        (1024, "ALL", 2000, 6115),
        (3, "ALL", 0, 1024),
    ],
)
def test_a_write_costs_an_index_the_measured_units(service, dimensions, projection, blob, expected) -> None:
    """Figures: paritysuite, to the byte (pk "b1", tenant "t1", a blob of 2,000 bytes under ALL)."""
    definition = index(
        Dimensions=dimensions, SearchSchema=schema("tenant"), Projection={"ProjectionType": projection}
    )
    made(service, definition, AttributeDefinitions=defined(pk="S", tenant="S"))
    item = {"pk": {"S": "b1"}, "tenant": {"S": "t1"}, "emb": vector(*[1] * dimensions)}
    if blob:
        item["blob"] = {"S": "x" * blob}
    told = consumed(service, "PutItem", {"Item": item})
    assert told["VectorIndexes"] == {"plain": {"VectorWriteRequestBytes": expected}}
    assert "VectorIndexes" not in consumed(service, "PutItem", {"Item": item})  # nothing has changed
    assert "VectorIndexes" not in consumed(
        service, "PutItem", {"Item": {**item, "emb": vector(*[2] * dimensions)}}, "TOTAL"
    )
    moved = consumed(service, "PutItem", {"Item": {**item, "tenant": {"S": "t2"}}})
    assert moved["VectorIndexes"] == {"plain": {"VectorWriteRequestBytes": 2 * expected}}
    gone = consumed(service, "DeleteItem", {"Key": {"pk": {"S": "b1"}}})
    assert gone["VectorIndexes"] == {"plain": {"VectorWriteRequestBytes": expected}}
    # The item counts an indexed vector as its name and four bytes a number.
    size = sum(len(name) for name in item) + len("b1t1") + 4 * dimensions + blob
    assert told["Table"] == {"CapacityUnits": -(-size // 1024)}


def test_a_search_costs_the_bytes_of_vectors_and_items(service) -> None:
    made(service, index())
    put(service, "a", emb=vector(1, 0, 0), blob={"S": "x" * 5000})
    given = searching(1, 0, 0)
    for mode in ("TOTAL", "INDEXES"):
        told = consumed(service, "SearchVectors", given, mode)
        assert told == {"VectorSearchRequestBytes": 12 + len("emb") + 12 + len("pka") + len("blob") + 5000}
    answer = service.call("SearchVectors", given | {"ReturnConsumedCapacity": "NONE"})
    assert set(answer) == {"SearchResults"}


# Restores


def test_backups_and_restored_tables_have_the_vector_index(service) -> None:
    made(service, TENANTS, index("other"), AttributeDefinitions=TENANT_DEFINITIONS)
    put(service, "a", emb=vector(1, 0, 0), tenant={"S": "t"})
    service.clock.ms += 60_000
    arn = service.call("CreateBackup", {"TableName": "docs", "BackupName": "first"})["BackupDetails"][
        "BackupArn"
    ]
    settle(service)
    shown = service.call("DescribeBackup", {"BackupArn": arn})["BackupDescription"][
        "SourceTableFeatureDetails"
    ]
    assert shown["VectorIndexes"] == [TENANTS, index("other")]
    service.call("DeleteTable", {"TableName": "docs"})
    restore = {"BackupArn": arn, "TargetTableName": "docs"}
    assert service.error(
        "RestoreTableFromBackup", restore | {"VectorIndexOverride": [index("other", Dimensions=4)]}
    ) == (
        VALIDATION,
        (
            "Index other does not match a secondary index that existed in the source table and cannot be created during the "
            "restore operation"
        ),
    )
    service.call("RestoreTableFromBackup", restore | {"VectorIndexOverride": [index("other")]})
    settle(service)
    assert [each["IndexName"] for each in described(service)["VectorIndexes"]] == ["other"]
    assert keys(search(service, 1, 0, 0, IndexName="other")) == ["a"]


# Approximate searches


def test_a_server_makes_graphs_by_itself(
    serve: Serve, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """--vector-approximate-from. tests/gateway/features/vectors/test_approximate_searches.py tests the results of
    such searches.
    """
    monkeypatch.setattr(engine_searching, "_GRAPH_COST", 0)
    has_all, found = threading.Event(), []
    grow, candidates = VectorGraph.grow, VectorGraph.candidates

    def noted_grow(self: VectorGraph, parts: Any) -> int:
        added = grow(self, parts)
        if parts and not added:
            has_all.set()
        return added

    def noted_candidates(self: VectorGraph, *given: Any) -> Any:
        found.append(candidates(self, *given))
        return found[-1]

    monkeypatch.setattr(VectorGraph, "grow", noted_grow)
    monkeypatch.setattr(VectorGraph, "candidates", noted_candidates)
    running = serve(database_url, vector_approximate_from=20)
    with RawClient(running.url) as client:
        client.create_table("docs", VectorIndexes=[index()])

        def nearest() -> list[str]:
            answer = client.call("SearchVectors", **searching(1, 0, 0, TopK=2))
            return [result["Item"]["p"]["S"] for result in answer["SearchResults"]]

        for number in range(30):
            client.call(
                "PutItem", TableName="docs", Item={"p": {"S": f"{number}"}, "emb": vector(number, 1, 0)}
            )
        assert nearest() == ["29", "28"]
        assert has_all.wait(PATIENCE_S)
        client.call("DeleteItem", TableName="docs", Key={"p": {"S": "29"}})
        assert nearest() == ["28", "27"]
    assert sum(len(rows) for rows in found[-1].near.values()) == 30
