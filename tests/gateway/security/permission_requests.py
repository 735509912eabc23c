"""Requests of all dialects to one set of tables, by the official SDKs, for tests of grants.

`orders` (pk, sk, with index byStatus on status) has a stream and rows of u1 and u2, each with `note` and `secret`.
`other` is another table. No request has an effect on later ones: it changes nothing visible or undoes its change.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import boto3
import tablestore as ots
from azure.core.credentials import AzureNamedKeyCredential
from azure.core.exceptions import HttpResponseError
from azure.data.tables import TableServiceClient, TransactionOperation, UpdateMode
from botocore.exceptions import ClientError

from tests.support.live_dynamodb import ONCE

REGION = "us-east-1"
AZURE_KEY = "YWxsIHRoZSBzYW1lIHRvIHVzIGFzIGxvbmcgYXMgaXQgaXMgYmFzZTY0"
ORDERS, OTHER, INDEX = "orders", "other", "byStatus"


@dataclass
class Caller:
    """The SDK clients of one caller. `seen` holds identifiers that an unrestricted caller obtained."""

    url: str
    name: str
    seen: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.dynamodb, self.streams = (
            boto3.client(
                service,
                REGION,
                endpoint_url=self.url,
                config=ONCE,
                aws_access_key_id=self.name.upper(),
                aws_secret_access_key="secret",
            )
            for service in ("dynamodb", "dynamodbstreams")
        )
        key = AzureNamedKeyCredential(self.name, AZURE_KEY)
        self.azure = TableServiceClient(f"{self.url}/{self.name}", credential=key, retry_total=0)
        self.tablestore = ots.OTSClient(
            self.url, self.name.upper(), "secret", "inst", retry_policy=ots.NoRetryPolicy()
        )


def key(pk: str = "u1", sk: str = "1") -> dict[str, Any]:
    return {"pk": {"S": pk}, "sk": {"S": sk}}


def item(pk: str = "u1", sk: str = "1", **more: str) -> dict[str, Any]:
    return {**key(pk, sk), **{name: {"S": value} for name, value in more.items()}}


Request = Callable[[Caller], Any]


def _read(**members: Any) -> Request:
    return lambda c: c.dynamodb.get_item(**{"TableName": ORDERS, "Key": key(), **members})


def _page(operation: str, **members: Any) -> Request:
    return lambda c: getattr(c.dynamodb, operation)(**{"TableName": ORDERS, **members})


def _of(pk: str) -> dict[str, Any]:
    return {"KeyConditionExpression": "pk = :p", "ExpressionAttributeValues": {":p": {"S": pk}}}


def _by_status(status: str) -> dict[str, Any]:
    names = {"#s": "status"}
    return {
        "IndexName": INDEX, "KeyConditionExpression": "#s = :s", "ExpressionAttributeNames": names,
        "ExpressionAttributeValues": {":s": {"S": status}},
    }  # fmt: skip


def _update(expression: str = "SET note = :n", pk: str = "u1", **members: Any) -> Request:
    values = {":n": {"S": "n1"}} if ":n" in expression else {}
    values |= members.pop("values", {})
    given = {"ExpressionAttributeValues": values} if values else {}
    return lambda c: c.dynamodb.update_item(
        TableName=ORDERS, Key=key(pk), UpdateExpression=expression, **given, **members
    )


def _batch_write(*requests: dict[str, Any], table: str = ORDERS) -> Request:
    return lambda c: c.dynamodb.batch_write_item(RequestItems={table: list(requests)})


def _transact(*actions: dict[str, Any]) -> Request:
    return lambda c: c.dynamodb.transact_write_items(TransactItems=list(actions))


def _action(kind: str, pk: str = "u1", **members: Any) -> dict[str, Any]:
    return {kind: {"TableName": ORDERS, **({} if kind == "Put" else {"Key": key(pk)}), **members}}


_IS_THERE = {"ConditionExpression": "attribute_exists(pk)"}


def _statement(text: str, **members: Any) -> Request:
    return lambda c: c.dynamodb.execute_statement(Statement=text, **members)


def _records(c: Caller) -> Any:
    return c.streams.get_records(ShardIterator=c.seen["iterator"])


def _iterator(c: Caller) -> Any:
    return c.streams.get_shard_iterator(
        StreamArn=c.seen["stream"], ShardId=c.seen["shard"], ShardIteratorType="TRIM_HORIZON"
    )


def _temporary(c: Caller, **members: Any) -> Any:
    schema = {
        "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}],
        "AttributeDefinitions": [{"AttributeName": "pk", "AttributeType": "S"}],
        "BillingMode": "PAY_PER_REQUEST",
    }
    made = c.dynamodb.create_table(TableName="orders-temporary", **schema, **members)
    c.seen["full"].dynamodb.delete_table(TableName="orders-temporary")
    return made


def _dropped(c: Caller) -> Any:
    return _on_temporary(c, lambda name: c.dynamodb.delete_table(TableName=name))


def _on_temporary(c: Caller, ask: Callable[[str], Any]) -> Any:
    _temporary_by_full(c)
    try:
        return ask("orders-temporary")
    finally:
        with contextlib.suppress(ClientError):
            c.seen["full"].dynamodb.delete_table(TableName="orders-temporary")


def _temporary_by_full(c: Caller) -> None:
    c.seen["full"].dynamodb.create_table(
        TableName="orders-temporary",
        KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}],
        AttributeDefinitions=[{"AttributeName": "pk", "AttributeType": "S"}],
        BillingMode="PAY_PER_REQUEST",
    )


def _restored(c: Caller) -> Any:
    """Restore a backup after an earlier restore of it ended.

    The restore omits the index, because Table Store has no table under its name.
    """
    while True:
        try:
            return c.dynamodb.restore_table_from_backup(
                TargetTableName=f"restored{next(c.seen['numbers'])}",
                BackupArn=c.seen["backup"],
                GlobalSecondaryIndexOverride=[],
            )
        except c.dynamodb.exceptions.BackupInUseException:
            time.sleep(0.05)


_FULL_ARN = f"arn:aws:dynamodb:{REGION}:000000000000:table/{ORDERS}"
_TAG = [{"Key": "k", "Value": "v"}]

DYNAMODB: dict[str, Request] = {
    "get u1": _read(),
    "get u2": _read(Key=key("u2")),
    "get absent row": _read(Key=key("u1", "none")),
    "get by ARN": _read(TableName=_FULL_ARN),
    "get note": _read(ProjectionExpression="note"),
    "get secret": _read(ProjectionExpression="secret"),
    "get alias of secret": _read(ProjectionExpression="#s", ExpressionAttributeNames={"#s": "secret"}),
    "get inside secret": _read(ProjectionExpression="secret.inside"),
    "get other": _read(TableName=OTHER),
    "batch get u1": lambda c: c.dynamodb.batch_get_item(RequestItems={ORDERS: {"Keys": [key()]}}),
    "batch get u1 u2": lambda c: c.dynamodb.batch_get_item(RequestItems={ORDERS: {"Keys": [key(), key("u2")]}}),
    "batch get two tables": lambda c: c.dynamodb.batch_get_item(
        RequestItems={ORDERS: {"Keys": [key()]}, OTHER: {"Keys": [key()]}}
    ),
    "transact get u1": lambda c: c.dynamodb.transact_get_items(
        TransactItems=[{"Get": {"TableName": ORDERS, "Key": key()}}]
    ),
    "transact get u2": lambda c: c.dynamodb.transact_get_items(
        TransactItems=[{"Get": {"TableName": ORDERS, "Key": key()}}, {"Get": {"TableName": ORDERS, "Key": key("u2")}}]
    ),
    "query u1": _page("query", **_of("u1")),
    "query u2": _page("query", **_of("u2")),
    "query u1 note": _page("query", ProjectionExpression="note", **_of("u1")),
    "query u1 by secret": _page(
        "query", ProjectionExpression="note", FilterExpression="secret = :x",
        KeyConditionExpression="pk = :p", ExpressionAttributeValues={":p": {"S": "u1"}, ":x": {"S": "x"}},
    ),
    "query u1 count": _page("query", Select="COUNT", **_of("u1")),
    "query next page": lambda c: c.dynamodb.query(TableName=ORDERS, ExclusiveStartKey=key(), **_of("u1")),
    "query index": _page("query", **_by_status("open")),
    "scan": _page("scan"),
    "scan segment": _page("scan", Segment=0, TotalSegments=2),
    "scan count": _page("scan", Select="COUNT"),
    "scan note": _page("scan", ProjectionExpression="note"),
    "scan next page": _page("scan", ExclusiveStartKey=key()),
    "scan index": _page("scan", IndexName=INDEX),
    "put u1": lambda c: c.dynamodb.put_item(TableName=ORDERS, Item=item("u1", "9", note="n")),
    "put u1 secret": lambda c: c.dynamodb.put_item(TableName=ORDERS, Item=item("u1", "9", secret="n")),
    "put u2": lambda c: c.dynamodb.put_item(TableName=ORDERS, Item=item("u2", "9", note="n")),
    "put u1 old": lambda c: c.dynamodb.put_item(
        TableName=ORDERS, Item=item("u1", "9", note="n"), ReturnValues="ALL_OLD"
    ),
    "put other": lambda c: c.dynamodb.put_item(TableName=OTHER, Item=item("u1", "9")),
    "update u1": _update(),
    "update u2": _update(pk="u2"),
    "update u1 secret": _update("SET secret = :n", values={":n": {"S": "x"}}),
    "update u1 from secret": _update("SET note = secret"),
    "update u1 if secret": _update(ConditionExpression="secret = :x", values={":x": {"S": "x"}}),
    "update u1 new": _update(ReturnValues="UPDATED_NEW"),
    "update u1 all old": _update(ReturnValues="ALL_OLD"),
    "update u1 old on failure": _update(
        ConditionExpression="attribute_exists(pk)", ReturnValuesOnConditionCheckFailure="ALL_OLD"
    ),
    "delete u1": lambda c: c.dynamodb.delete_item(TableName=ORDERS, Key=key("u1", "none")),
    "delete u2": lambda c: c.dynamodb.delete_item(TableName=ORDERS, Key=key("u2", "none")),
    "batch put u1": _batch_write({"PutRequest": {"Item": item("u1", "9", note="n")}}),
    "batch put u1 u2": _batch_write(
        {"PutRequest": {"Item": item("u1", "9", note="n")}}, {"PutRequest": {"Item": item("u2", "9", note="n")}}
    ),
    "batch delete u1": _batch_write({"DeleteRequest": {"Key": key("u1", "none")}}),
    "transact put u1": _transact(_action("Put", Item=item("u1", "9", note="n"))),
    "transact update u1": _transact(
        _action("Update", UpdateExpression="SET note = :n", ExpressionAttributeValues={":n": {"S": "n1"}})
    ),
    "transact delete u1": _transact({"Delete": {"TableName": ORDERS, "Key": key("u1", "none")}}),
    "transact check u1": _transact(_action("ConditionCheck", **_IS_THERE)),
    "transact check u1 old": _transact(
        _action("ConditionCheck", ReturnValuesOnConditionCheckFailure="ALL_OLD", **_IS_THERE)
    ),
    "transact put u1 check u2": _transact(
        _action("Put", Item=item("u1", "9", note="n")), _action("ConditionCheck", "u2", **_IS_THERE)
    ),
    "select u1": _statement(f"SELECT * FROM \"{ORDERS}\" WHERE pk = 'u1'"),
    "select u1 item": _statement(f"SELECT * FROM \"{ORDERS}\" WHERE pk = 'u1' AND sk = '1'"),
    "select in u1": _statement(f"SELECT * FROM \"{ORDERS}\" WHERE pk IN ['u1']"),
    "select u1 or u2": _statement(f"SELECT * FROM \"{ORDERS}\" WHERE pk = 'u1' OR pk = 'u2'"),
    "select in u1 u2": _statement(f"SELECT * FROM \"{ORDERS}\" WHERE pk IN ['u1', 'u2']"),
    "select all": _statement(f'SELECT * FROM "{ORDERS}"'),
    "select u1 or note": _statement(f"SELECT * FROM \"{ORDERS}\" WHERE pk = 'u1' OR note = 'x'"),
    "select index": _statement(f'SELECT * FROM "{ORDERS}"."{INDEX}" WHERE "status" = \'open\''),
    "select u1 note": _statement(f"SELECT note FROM \"{ORDERS}\" WHERE pk = 'u1'"),
    "select next page": lambda c: c.dynamodb.execute_statement(
        Statement=c.seen["statement"], NextToken=c.seen["token"], Limit=1
    ),
    "insert u2": _statement(f"INSERT INTO \"{ORDERS}\" VALUE {{'pk': 'u2', 'sk': '8', 'note': 'n'}}"),
    "update statement u1": _statement(f"UPDATE \"{ORDERS}\" SET note = 'n1' WHERE pk = 'u1' AND sk = '1'"),
    "delete statement u1": _statement(f"DELETE FROM \"{ORDERS}\" WHERE pk = 'u1' AND sk = 'none'"),
    "batch select u1": lambda c: c.dynamodb.batch_execute_statement(
        Statements=[{"Statement": f"SELECT * FROM \"{ORDERS}\" WHERE pk = 'u1' AND sk = '1'"}]
    ),
    "batch select u1 u2": lambda c: c.dynamodb.batch_execute_statement(
        Statements=[
            {"Statement": f"SELECT * FROM \"{ORDERS}\" WHERE pk = '{pk}' AND sk = '1'"} for pk in ("u1", "u2")
        ]
    ),
    "transact select u1": lambda c: c.dynamodb.execute_transaction(
        TransactStatements=[{"Statement": f"SELECT * FROM \"{ORDERS}\" WHERE pk = 'u1' AND sk = '1'"}]
    ),
    "transact exists u1": lambda c: c.dynamodb.execute_transaction(
        TransactStatements=[
            {"Statement": f"EXISTS(SELECT * FROM \"{ORDERS}\" WHERE pk = 'u1' AND sk = '1' AND note = 'n1')"},
            {"Statement": f"UPDATE \"{ORDERS}\" SET note = 'n1' WHERE pk = 'u1' AND sk = '2'"},
        ]
    ),
    "describe": lambda c: c.dynamodb.describe_table(TableName=ORDERS),
    "describe expiry": lambda c: c.dynamodb.describe_time_to_live(TableName=ORDERS),
    "describe recovery": lambda c: c.dynamodb.describe_continuous_backups(TableName=ORDERS),
    "describe limits": lambda c: c.dynamodb.describe_limits(),
    "list": lambda c: c.dynamodb.list_tables(),
    "create": _temporary,
    "create with tags": lambda c: _temporary(c, Tags=_TAG),
    "drop": _dropped,
    "alter": lambda c: c.dynamodb.update_table(TableName=ORDERS, DeletionProtectionEnabled=False),
    "alter expiry": lambda c: _on_temporary(
        c,
        lambda name: c.dynamodb.update_time_to_live(
            TableName=name, TimeToLiveSpecification={"Enabled": True, "AttributeName": "until"}
        ),
    ),
    "tags": lambda c: c.dynamodb.list_tags_of_resource(ResourceArn=_FULL_ARN),
    "tag": lambda c: c.dynamodb.tag_resource(ResourceArn=_FULL_ARN, Tags=_TAG),
    "untag": lambda c: c.dynamodb.untag_resource(ResourceArn=_FULL_ARN, TagKeys=["k"]),
    "back up": lambda c: c.dynamodb.create_backup(TableName=ORDERS, BackupName="saved"),
    "describe backup": lambda c: c.dynamodb.describe_backup(BackupArn=c.seen["backup"]),
    "backups": lambda c: c.dynamodb.list_backups(),
    "restore": lambda c: _restored(c),
    "streams": lambda c: c.streams.list_streams(),
    "stream": lambda c: c.streams.describe_stream(StreamArn=c.seen["stream"]),
    "iterator": _iterator,
    "records": _records,
}  # fmt: skip


def _entity(pk: str = "u1", rk: str = "7", **more: str) -> dict[str, str]:
    return {"PartitionKey": pk, "RowKey": rk, "note": "n", **more}


def _table(c: Caller, name: str = ORDERS) -> Any:
    return c.azure.get_table_client(name)


def _inserted(c: Caller) -> None:
    _table(c).create_entity(_entity(rk="6"))
    c.seen["full"].azure.get_table_client(ORDERS).delete_entity("u1", "6")


AZURE: dict[str, Request] = {
    "azure get u1": lambda c: _table(c).get_entity("u1", "1"),
    "azure get u2": lambda c: _table(c).get_entity("u2", "1"),
    "azure get note": lambda c: _table(c).get_entity("u1", "1", select=["note"]),
    "azure get secret": lambda c: _table(c).get_entity("u1", "1", select=["secret"]),
    "azure get other": lambda c: _table(c, OTHER).get_entity("u1", "1"),
    "azure get in another case": lambda c: _table(c, "ORDERS").get_entity("u1", "1"),
    "azure query u1": lambda c: list(_table(c).query_entities("PartitionKey eq 'u1'")),
    "azure query u2": lambda c: list(_table(c).query_entities("PartitionKey eq 'u2'")),
    "azure query u1 by secret": lambda c: list(
        _table(c).query_entities("PartitionKey eq 'u1' and secret eq 'x'", select=["note"])
    ),
    "azure query all": lambda c: list(_table(c).list_entities()),
    "azure query by note": lambda c: list(_table(c).query_entities("PartitionKey eq 'u1' or note eq 'n'")),
    "azure insert u1": _inserted,
    "azure upsert u1": lambda c: _table(c).upsert_entity(_entity(), UpdateMode.REPLACE),
    "azure upsert u2": lambda c: _table(c).upsert_entity(_entity("u2"), UpdateMode.REPLACE),
    "azure merge u1": lambda c: _table(c).upsert_entity(_entity(), UpdateMode.MERGE),
    "azure delete u1": lambda c: _table(c).delete_entity("u1", "none"),
    "azure batch put u1": lambda c: _table(c).submit_transaction(
        [(TransactionOperation.UPSERT, _entity(), {"mode": UpdateMode.REPLACE})]
    ),
    "azure batch put and delete u1": lambda c: _table(c).submit_transaction(
        [(TransactionOperation.UPSERT, _entity(), {"mode": UpdateMode.REPLACE}),
         (TransactionOperation.DELETE, _entity(rk="1"))]
    ) and c.seen["mend"](),
    "azure list": lambda c: list(c.azure.list_tables()),
    "azure create": lambda c: c.azure.create_table("ordersofazure") and c.seen["full"].azure.delete_table("ordersofazure"),
    "azure policies": lambda c: _table(c).get_table_access_policy(),
    "azure set policies": lambda c: _table(c).set_table_access_policy({}),
    "azure properties": lambda c: c.azure.get_service_properties(),
}  # fmt: skip


def _key(pk: str = "u1", sk: Any = "1") -> list[tuple[str, Any]]:
    return [("pk", pk), ("sk", sk)]


def _range(c: Caller, low: Any, high: Any, table: str = ORDERS, **members: Any) -> Any:
    return c.tablestore.get_range(table, ots.Direction.FORWARD, low, high, max_version=1, **members)


_IGNORE = ots.Condition(ots.RowExistenceExpectation.IGNORE)


def _batch_row(name: str = ORDERS, kind: Any = ots.PutRowItem) -> Any:
    row = ots.Row(_key(sk="5"), [("note", "n")]) if kind is ots.PutRowItem else ots.Row(_key(sk="none"))
    return ots.TableInBatchWriteRowItem(name, [kind(row, _IGNORE)])


def _batch(*parts: Any) -> Request:
    def ask(c: Caller) -> Any:
        request = ots.BatchWriteRowRequest()
        for part in parts:
            request.add(part)
        return c.tablestore.batch_write_row(request)

    return ask


def _batch_read(*names: str) -> Request:
    def ask(c: Caller) -> Any:
        request = ots.BatchGetRowRequest()
        for name in names:
            request.add(ots.TableInBatchGetRowItem(name, [_key()], max_version=1))
        return c.tablestore.batch_get_row(request)

    return ask


_LOWEST = [("pk", ots.INF_MIN), ("sk", ots.INF_MIN)]
_HIGHEST = [("pk", ots.INF_MAX), ("sk", ots.INF_MAX)]

TABLE_STORE: dict[str, Request] = {
    "ots get u1": lambda c: c.tablestore.get_row(ORDERS, _key(), max_version=1),
    "ots get u2": lambda c: c.tablestore.get_row(ORDERS, _key("u2"), max_version=1),
    "ots get note": lambda c: c.tablestore.get_row(ORDERS, _key(), ["note"], max_version=1),
    "ots get secret": lambda c: c.tablestore.get_row(ORDERS, _key(), ["secret"], max_version=1),
    "ots get note by secret": lambda c: c.tablestore.get_row(
        ORDERS, _key(), ["note"], ots.SingleColumnCondition("secret", "x", ots.ComparatorType.EQUAL), 1
    ),
    "ots get other": lambda c: c.tablestore.get_row(OTHER, _key(), max_version=1),
    "ots range u1": lambda c: _range(c, _key(sk=ots.INF_MIN), _key(sk=ots.INF_MAX)),
    "ots range u2": lambda c: _range(c, _key("u2", ots.INF_MIN), _key("u2", ots.INF_MAX)),
    "ots range u1 to u2": lambda c: _range(c, _key(sk=ots.INF_MIN), _key("u2", ots.INF_MAX)),
    "ots range all": lambda c: _range(c, _LOWEST, _HIGHEST),
    "ots range index": lambda c: _range(
        c, [("status", ots.INF_MIN), *_LOWEST], [("status", ots.INF_MAX), *_HIGHEST], INDEX
    ),
    "ots put u1": lambda c: c.tablestore.put_row(ORDERS, ots.Row(_key(sk="5"), [("note", "n")]), _IGNORE),
    "ots put u2": lambda c: c.tablestore.put_row(ORDERS, ots.Row(_key("u2", "5"), [("note", "n")]), _IGNORE),
    "ots update u1": lambda c: c.tablestore.update_row(
        ORDERS, ots.Row(_key(sk="5"), {"PUT": [("note", "n")]}), _IGNORE
    ),
    "ots delete u1": lambda c: c.tablestore.delete_row(ORDERS, ots.Row(_key(sk="none")), _IGNORE),
    "ots batch get u1": _batch_read(ORDERS),
    "ots batch get two tables": _batch_read(ORDERS, OTHER),
    "ots batch put u1": _batch(_batch_row()),
    "ots batch delete u1": _batch(_batch_row(kind=ots.DeleteRowItem)),
    "ots batch two tables": _batch(_batch_row(), _batch_row(OTHER)),
    "ots list": lambda c: c.tablestore.list_table(),
    "ots describe": lambda c: c.tablestore.describe_table(ORDERS),
}

REQUESTS: dict[str, Request] = {**DYNAMODB, **AZURE, **TABLE_STORE}


def refused(caller: Caller, name: str) -> str:
    """Send a request: "" if it was carried out, else in which words it was not permitted. Other errors are raised."""
    try:
        answer = REQUESTS[name](caller)
        if name.startswith("batch select"):  # each statement is judged by itself
            errors = [each["Error"] for each in answer["Responses"] if "Error" in each]
            assert all(error["Code"] == "AccessDenied" for error in errors)
            return str(errors[0]["Message"]) if errors else ""
    except ClientError as error:
        told = error.response["Error"]
        if told["Code"] != "AccessDeniedException":
            raise
        return (
            str(told["Message"]) if error.response["ResponseMetadata"]["HTTPStatusCode"] == 400 else "status"
        )
    except HttpResponseError as error:
        if "AuthorizationPermissionMismatch" not in str(getattr(error, "error_code", error)):
            raise
        return f"{error.status_code} AuthorizationPermissionMismatch"
    except ots.OTSServiceError as error:
        if error.get_error_code() != "OTSNoPermissionAccess":
            raise
        return f"{error.get_http_status()} OTSNoPermissionAccess"
    return ""
