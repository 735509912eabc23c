"""Vector indexes on a live server, on each database: through boto3 with its defaults, and of rows that other dialects write."""

from __future__ import annotations

import random
import threading
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import numpy as np
import pytest
import tablestore as ots
from azure.data.tables import UpdateMode
from botocore.exceptions import ClientError

from tests.support.across import Across
from tests.support.running import start
from tests.support.waiting import wait_until

SECONDS = 20
PAIR = {"PartitionKey": "p", "RowKey": "r"}


@pytest.fixture(scope="module")
def across(shared_database_url: str) -> Iterator[Across]:
    running = start(shared_database_url)
    made = Across(running.url)
    yield made
    for page in made.dynamodb.client.get_paginator("list_tables").paginate():
        for name in page["TableNames"]:
            made.dynamodb.client.delete_table(TableName=name)
    running.stop()


def index(dimensions: int = 3, **more: Any) -> dict[str, Any]:
    return {
        "IndexName": "by-meaning",
        "VectorAttribute": {"AttributeName": "v"},
        "Dimensions": dimensions,
        "DistanceFunction": "COSINE",
        "Projection": {"ProjectionType": "ALL"},
        **more,
    }


def wire(numbers: Any) -> list[dict[str, str]]:
    return [{"N": str(number)} for number in numbers]


def search(across: Across, table: str, numbers: Any, **more: Any) -> list[dict[str, Any]]:
    asked = {"TableName": table, "IndexName": "by-meaning", "SearchVector": wire(numbers), "TopK": 10, **more}
    found: list[dict[str, Any]] = across.dynamodb.client.search_vectors(**asked)["SearchResults"]
    return found


def wait_until_active(across: Across, table: str) -> None:
    """As langchain-aws waits for a new index: by the status in DescribeTable."""

    def is_active() -> bool:
        described = across.dynamodb.client.describe_table(TableName=table)["Table"]
        return [each["IndexStatus"] for each in described["VectorIndexes"]] == ["ACTIVE"]

    wait_until(is_active)


def test_documents_of_several_tenants(across: Across) -> None:
    """A table as used for chat memory: the index is added to existing rows, and each tenant finds only its rows."""
    name = across.new_name()
    table = across.dynamodb.create("pk:S", "sk:N", name=name)
    chance = np.random.default_rng(1)
    vectors = chance.standard_normal((200, 16)).round(6)
    with table.batch_writer() as batch:
        for at, numbers in enumerate(vectors.tolist()):
            item = {"pk": f"session {at % 10}", "sk": at, "tenant": f"t{at % 2}", "text": f"text {at}"}
            batch.put_item(Item=item | {"v": [Decimal(str(number)) for number in numbers]})
    across.dynamodb.client.update_table(
        TableName=name,
        AttributeDefinitions=[{"AttributeName": "tenant", "AttributeType": "S"}],
        VectorIndexUpdates=[
            {
                "Create": index(
                    16, SearchSchema=[{"AttributeName": "tenant", "SearchSchemaElementType": "HASH"}]
                )
            }
        ],
    )
    wait_until_active(across, name)
    query = chance.standard_normal(16).round(6)
    found = search(
        across,
        name,
        query.tolist(),
        SearchConditionExpression="tenant = :t",
        ExpressionAttributeValues={":t": {"S": "t1"}},
        ProjectionExpression="sk, tenant",
    )
    cosines = (vectors @ query) / (np.linalg.norm(vectors, axis=1) * np.linalg.norm(query))
    wanted = [at for at in np.argsort(-cosines).tolist() if at % 2][:10]
    assert [result["Item"] for result in found] == [
        {"sk": {"N": str(at)}, "tenant": {"S": "t1"}} for at in wanted
    ]
    assert [result["Score"] for result in found] == pytest.approx(
        [1 - cosines[at] for at in wanted], abs=1e-6
    )


def test_a_search_sees_every_write_that_was_answered(across: Across) -> None:
    """Other clients write and search meanwhile. Items have all their vectors or none."""
    name = across.new_name()
    across.dynamodb.client.create_table(
        TableName=name,
        KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}],
        AttributeDefinitions=[{"AttributeName": "pk", "AttributeType": "S"}],
        BillingMode="PAY_PER_REQUEST",
        VectorIndexes=[index()],
    )
    errors: list[BaseException] = []

    def work(seed: int) -> None:
        chance = random.Random(seed)
        client = across.dynamodb.session.client("dynamodb", endpoint_url=across.url)
        try:
            for turn in range(25):
                angle = 100 * seed + turn
                item = {"pk": {"S": f"{seed}"}, "v": {"L": wire((1, angle, 0))}}
                twin = {"pk": {"S": f"{seed} twin"}, "v": {"L": wire((1, angle, 0))}}
                puts = [{"Put": {"TableName": name, "Item": each}} for each in (item, twin)]
                client.transact_write_items(TransactItems=puts)
                asked = {"TableName": name, "IndexName": "by-meaning", "SearchVector": wire((1, angle, 0))}
                found = client.search_vectors(**asked, TopK=100)["SearchResults"]
                names = [result["Item"]["pk"]["S"] for result in found]
                assert {f"{seed}", f"{seed} twin"} <= {*names}
                assert sorted(f"{each} twin" for each in names if "twin" not in each) == sorted(
                    each for each in names if "twin" in each
                )
                if chance.random() < 0.3:
                    keys = [{"pk": item["pk"]}, {"pk": twin["pk"]}]
                    deletes = [{"Delete": {"TableName": name, "Key": key}} for key in keys]
                    client.transact_write_items(TransactItems=deletes)
                    found = client.search_vectors(**asked, TopK=100)["SearchResults"]
                    assert f"{seed}" not in {result["Item"]["pk"]["S"] for result in found}
        except BaseException as error:
            errors.append(error)

    with_conflicts = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in with_conflicts:
        thread.start()
    for thread in with_conflicts:
        thread.join()
    assert errors == []


def test_other_dialects_keep_the_index(across: Across) -> None:
    """A vector that they do not change stays a vector, and a replaced one is none. A deleted row has no vector."""
    table = across.new_name()
    across.azure.service.create_table(table)
    ours = across.dynamodb.resource.Table(table)
    for name in ("kept", "replaced", "rewritten", "deleted", "gone"):
        ours.put_item(Item={"PartitionKey": "p", "RowKey": name, "v": [1, 0, 0]})
    across.dynamodb.client.update_table(
        TableName=table, BillingMode="PAY_PER_REQUEST", VectorIndexUpdates=[{"Create": index()}]
    )
    wait_until_active(across, table)

    def found() -> list[str]:
        return sorted(result["Item"]["RowKey"]["S"] for result in search(across, table, (1, 0, 0)))

    assert found() == ["deleted", "gone", "kept", "replaced", "rewritten"]
    entities = across.entities(table)
    entities.update_entity({"PartitionKey": "p", "RowKey": "kept", "n": 1}, mode=UpdateMode.MERGE)
    row = ots.Row([("PartitionKey", "p"), ("RowKey", "kept")], {"PUT": [("m", 2)]})
    across.tablestore.update_row(table, row, ots.Condition(ots.RowExistenceExpectation.IGNORE))
    entity = entities.get_entity("p", "rewritten")
    entities.update_entity(entity, mode=UpdateMode.REPLACE)  # as it was shown
    entities.upsert_entity(
        {"PartitionKey": "p", "RowKey": "replaced", "v": "[1, 0, 0]"}, mode=UpdateMode.REPLACE
    )
    entities.delete_entity("p", "deleted")
    across.put(table, {"PartitionKey": "p", "RowKey": "gone"}, v=1.0)
    entities.upsert_entity({"PartitionKey": "p", "RowKey": "new", "v": "text"})
    assert found() == ["kept", "rewritten"]
    [result] = [
        result for result in search(across, table, (1, 0, 0)) if result["Item"]["RowKey"]["S"] == "kept"
    ]
    assert result["Item"]["n"] == {"N": "1"}
    assert result["Item"]["m"] == {"N": "2"}


def test_an_index_is_dropped_with_its_table(across: Across) -> None:
    name = across.new_name()
    definition = {
        "TableName": name,
        "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}],
        "AttributeDefinitions": [{"AttributeName": "pk", "AttributeType": "S"}],
        "BillingMode": "PAY_PER_REQUEST",
        "VectorIndexes": [index()],
    }
    for _ in range(2):
        across.dynamodb.client.create_table(**definition)
        assert search(across, name, (1, 0, 0)) == []
        across.dynamodb.client.put_item(TableName=name, Item={"pk": {"S": "a"}, "v": {"L": wire((1, 0, 0))}})
        assert len(search(across, name, (1, 0, 0))) == 1
        across.dynamodb.client.delete_table(TableName=name)
    with pytest.raises(ClientError, match="Requested resource not found"):
        search(across, name, (1, 0, 0))
