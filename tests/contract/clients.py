"""One small table client, implemented with each of the official SDKs: the operations that all three services support.

A table has two text keys. A write with a false condition raises `Refused`, whatever error the service returns.
"""

from __future__ import annotations

import contextlib
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import tablestore as ots
from azure.core import MatchConditions
from azure.core.exceptions import HttpResponseError, ResourceNotFoundError
from azure.data.tables import UpdateMode
from botocore.exceptions import ClientError

from tests.support.across import Across

Key = tuple[str, str]
Values = dict[str, Any]
NAMES = ("PartitionKey", "RowKey")


class Refused(Exception):
    """The condition of a write was false, and nothing was written."""


class Insert(NamedTuple):
    """A member of a group: a row that must be new."""

    key: Key
    values: Values


class Put(NamedTuple):
    """A member of a group: the whole row, whether there was one or not."""

    key: Key
    values: Values


class Delete(NamedTuple):
    """A member of a group: delete an existing row."""

    key: Key


GroupWrite = Insert | Put | Delete


class TableClient(ABC):
    """Values are texts, and integers under the name `version`."""

    @abstractmethod
    def insert(self, key: Key, values: Values) -> None:
        """A new row. Raises Refused if there is one."""

    @abstractmethod
    def put(self, key: Key, values: Values) -> None:
        """The whole row, whether there was one or not."""

    @abstractmethod
    def merge(self, key: Key, values: Values) -> None:
        """Set these values of the row and keep the others. Creates the row if it is missing."""

    @abstractmethod
    def replace_if(self, key: Key, version: int, values: Values) -> None:
        """The whole row, if its `version` is this. Raises Refused."""

    @abstractmethod
    def delete(self, key: Key) -> None:
        """Raises Refused if there is no such row."""

    @abstractmethod
    def get(self, key: Key) -> Values | None:
        """Return the values of the row without its keys, or None."""

    @abstractmethod
    def partition(self, partition: str, page: int) -> list[Key]:
        """The keys of a partition, read in pages of `page` rows."""

    @abstractmethod
    def group(self, writes: Sequence[GroupWrite]) -> None:
        """All, or none and Refused. One partition."""


class DynamoDB(TableClient):
    def __init__(self, across: Across) -> None:
        self._table = across.dynamodb.create("PartitionKey:S", "RowKey:S")
        self._client = across.dynamodb.resource.meta.client

    def insert(self, key: Key, values: Values) -> None:
        with self._refusing():
            self._table.put_item(
                Item=_with_key(key, values), ConditionExpression="attribute_not_exists(PartitionKey)"
            )

    def put(self, key: Key, values: Values) -> None:
        self._table.put_item(Item=_with_key(key, values))

    def merge(self, key: Key, values: Values) -> None:
        self._table.update_item(
            Key=_with_key(key, {}),
            UpdateExpression="SET " + ", ".join(f"#{name} = :{name}" for name in values),
            ExpressionAttributeNames={f"#{name}": name for name in values},
            ExpressionAttributeValues={f":{name}": value for name, value in values.items()},
        )

    def replace_if(self, key: Key, version: int, values: Values) -> None:
        with self._refusing():
            self._table.put_item(
                Item=_with_key(key, values),
                ConditionExpression="version = :seen",
                ExpressionAttributeValues={":seen": version},
            )

    def delete(self, key: Key) -> None:
        with self._refusing():
            self._table.delete_item(
                Key=_with_key(key, {}), ConditionExpression="attribute_exists(PartitionKey)"
            )

    def get(self, key: Key) -> Values | None:
        item = self._table.get_item(Key=_with_key(key, {}), ConsistentRead=True).get("Item")
        return None if item is None else _without_key(item)

    def partition(self, partition: str, page: int) -> list[Key]:
        asked: dict[str, Any] = {
            "KeyConditionExpression": "PartitionKey = :partition",
            "ExpressionAttributeValues": {":partition": partition},
            "Limit": page,
        }
        found: list[Key] = []
        while True:
            answer = self._table.query(**asked)
            assert len(answer["Items"]) <= page
            found += [(item["PartitionKey"], item["RowKey"]) for item in answer["Items"]]
            if "LastEvaluatedKey" not in answer:
                return found
            asked["ExclusiveStartKey"] = answer["LastEvaluatedKey"]

    def group(self, writes: Sequence[GroupWrite]) -> None:
        with self._refusing():
            self._client.transact_write_items(TransactItems=[self._member(write) for write in writes])

    def _member(self, write: GroupWrite) -> dict[str, Any]:
        named = {"TableName": self._table.name}
        match write:
            case Insert(key, values):
                condition = "attribute_not_exists(PartitionKey)"
                return {"Put": named | {"Item": _with_key(key, values), "ConditionExpression": condition}}
            case Put(key, values):
                return {"Put": named | {"Item": _with_key(key, values)}}
            case Delete(key):
                condition = "attribute_exists(PartitionKey)"
                return {"Delete": named | {"Key": _with_key(key, {}), "ConditionExpression": condition}}

    @contextlib.contextmanager
    def _refusing(self) -> Iterator[None]:
        try:
            yield
        except ClientError as error:
            code = error.response["Error"]["Code"]
            if code == "ConditionalCheckFailedException":
                raise Refused from error
            reasons = {each["Code"] for each in error.response.get("CancellationReasons", [])}
            if code == "TransactionCanceledException" and reasons <= {"None", "ConditionalCheckFailed"}:
                raise Refused from error
            raise


class Azure(TableClient):
    def __init__(self, across: Across) -> None:
        self._table = across.azure.new_table()

    def insert(self, key: Key, values: Values) -> None:
        with self._refusing():
            self._table.create_entity(_with_key(key, values))

    def put(self, key: Key, values: Values) -> None:
        self._table.upsert_entity(_with_key(key, values), mode=UpdateMode.REPLACE)

    def merge(self, key: Key, values: Values) -> None:
        self._table.upsert_entity(_with_key(key, values), mode=UpdateMode.MERGE)

    def replace_if(self, key: Key, version: int, values: Values) -> None:
        """Azure has no condition but that nothing has changed since it was read."""
        with self._refusing():
            seen = self._table.get_entity(*key)
            if seen.get("version") != version:
                raise Refused
            self._table.update_entity(
                _with_key(key, values),
                mode=UpdateMode.REPLACE,
                etag=seen.metadata["etag"],
                match_condition=MatchConditions.IfNotModified,
            )

    def delete(self, key: Key) -> None:
        """The SDK's delete_entity ignores a missing row. A batch with one delete raises an error."""
        self.group([Delete(key)])

    def get(self, key: Key) -> Values | None:
        try:
            return _without_key(self._table.get_entity(*key))
        except ResourceNotFoundError:
            return None

    def partition(self, partition: str, page: int) -> list[Key]:
        pages = self._table.query_entities(
            "PartitionKey eq @partition", parameters={"partition": partition}, results_per_page=page
        ).by_page()
        found: list[Key] = []
        for each in pages:
            entities = list(each)
            assert len(entities) <= page
            found += [(entity["PartitionKey"], entity["RowKey"]) for entity in entities]
        return found

    def group(self, writes: Sequence[GroupWrite]) -> None:
        with self._refusing():
            self._table.submit_transaction([self._member(write) for write in writes])

    def _member(self, write: GroupWrite) -> Any:
        match write:
            case Insert(key, values):
                return "create", _with_key(key, values)
            case Put(key, values):
                return "upsert", _with_key(key, values), {"mode": UpdateMode.REPLACE}
            case Delete(key):
                return "delete", _with_key(key, {})

    @contextlib.contextmanager
    def _refusing(self) -> Iterator[None]:
        try:
            yield
        except HttpResponseError as error:
            if error.status_code in (404, 409, 412):
                raise Refused from error
            raise


class TableStore(TableClient):
    def __init__(self, across: Across) -> None:
        self._client = across.tablestore
        self._table = across.table(*[f"{name}:STRING" for name in NAMES])

    def insert(self, key: Key, values: Values) -> None:
        self._put(key, values, ots.RowExistenceExpectation.EXPECT_NOT_EXIST)

    def put(self, key: Key, values: Values) -> None:
        self._put(key, values, ots.RowExistenceExpectation.IGNORE)

    def merge(self, key: Key, values: Values) -> None:
        row = ots.Row(_columns(key), {"PUT": list(values.items())})
        self._client.update_row(self._table, row, ots.Condition(ots.RowExistenceExpectation.IGNORE))

    def replace_if(self, key: Key, version: int, values: Values) -> None:
        is_seen = ots.SingleColumnCondition(
            "version", version, ots.ComparatorType.EQUAL, pass_if_missing=False
        )
        self._put(key, values, ots.RowExistenceExpectation.EXPECT_EXIST, is_seen)

    def delete(self, key: Key) -> None:
        self._delete(key)

    def get(self, key: Key) -> Values | None:
        _, row, _ = self._client.get_row(self._table, _columns(key), max_version=1)
        return None if row is None else {name: value for name, value, _ in row.attribute_columns}

    def partition(self, partition: str, page: int) -> list[Key]:
        start: Any = [("PartitionKey", partition), ("RowKey", ots.INF_MIN)]
        end = [("PartitionKey", partition), ("RowKey", ots.INF_MAX)]
        found: list[Key] = []
        while start is not None:
            _, start, rows, _ = self._client.get_range(
                self._table, ots.Direction.FORWARD, start, end, limit=page, max_version=1
            )
            assert len(rows) <= page
            found += [tuple(value for _, value in row.primary_key) for row in rows]
        return found

    def group(self, writes: Sequence[GroupWrite]) -> None:
        transaction = self._client.start_local_transaction(self._table, _columns(writes[0].key)[:1])
        try:
            for write in writes:
                match write:
                    case Insert(key, values):
                        expectation = ots.RowExistenceExpectation.EXPECT_NOT_EXIST
                        self._put(key, values, expectation, transaction=transaction)
                    case Put(key, values):
                        expectation = ots.RowExistenceExpectation.IGNORE
                        self._put(key, values, expectation, transaction=transaction)
                    case Delete(key):
                        self._delete(key, transaction)
        except Refused:
            self._client.abort_transaction(transaction)
            raise
        self._client.commit_transaction(transaction)

    def _put(
        self, key: Key, values: Values, expectation: Any, column: Any = None, transaction: str | None = None
    ) -> None:
        row = ots.Row(_columns(key), list(values.items()))
        with self._refusing():
            self._client.put_row(
                self._table, row, ots.Condition(expectation, column), transaction_id=transaction
            )

    def _delete(self, key: Key, transaction: str | None = None) -> None:
        with self._refusing():
            self._client.delete_row(
                self._table,
                _columns(key),
                ots.Condition(ots.RowExistenceExpectation.EXPECT_EXIST),
                transaction_id=transaction,
            )

    @contextlib.contextmanager
    def _refusing(self) -> Iterator[None]:
        try:
            yield
        except ots.OTSServiceError as error:
            if error.code == "OTSConditionCheckFail":
                raise Refused from error
            raise


CLIENTS = {"dynamodb": DynamoDB, "azure": Azure, "tablestore": TableStore}


def _with_key(key: Key, values: Values) -> Values:
    return {**dict(zip(NAMES, key, strict=True)), **values}


def _without_key(row: Values) -> Values:
    return {name: value for name, value in row.items() if name not in NAMES}


def _columns(key: Key) -> list[tuple[str, str]]:
    return list(zip(NAMES, key, strict=True))
