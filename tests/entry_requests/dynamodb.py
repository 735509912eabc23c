"""DynamoDB: every hot operation, the cold ones that prepare their data, and what is refused before an operation is known."""

from __future__ import annotations

import json
from typing import Any

from tablegate.gateway.http.messages import Request
from tests.entry_requests import Case, Send
from tests.support.live_dynamodb import Index, Live, definitions, key_schema

_LIVE = Live("")
KEYS = ("p:S", "s:N")
ROW = {"p": {"S": "a"}, "s": {"N": "1"}}
LATER = {"p": {"S": "a"}, "s": {"N": "2"}}
EVERY_KIND = {
    "text": {"S": "ü🙂\x00"}, "number": {"N": "1.50"}, "bytes": {"B": "AP8="}, "flag": {"BOOL": True}, "null": {"NULL": True},
    "list": {"L": [{"S": "x"}, {"N": "2"}]}, "map": {"M": {"k": {"S": "v"}}}, "set": {"SS": ["a", "b"]}, "numbers": {"NS": ["1"]},
}  # fmt: skip
HIT = {
    "KeyConditionExpression": "p = :p AND s BETWEEN :low AND :high",
    "ExpressionAttributeValues": {":p": {"S": "a"}, ":low": {"N": "1"}, ":high": {"N": "5"}},
}
ALL_COSTS = {"ReturnConsumedCapacity": "INDEXES", "ReturnItemCollectionMetrics": "SIZE"}


def _request(operation: str, body: bytes, prefix: str = "DynamoDB_20120810", **changed: str) -> Request:
    headers = {"Host": "localhost:8000", **_LIVE.headers(operation)}
    headers["X-Amz-Target"] = f"{prefix}.{operation}"
    headers |= {name.replace("_", "-"): value for name, value in changed.items()}
    named = tuple((name.lower(), value) for name, value in headers.items() if value)
    return Request("POST", "/", named, body)


def _case(name: str, operation: str, on: str = "things", **members: Any) -> Case:
    if operation not in _ABOUT_NO_TABLE:
        members["TableName"] = on
    return Case(f"{operation} {name}", operation, _request(operation, json.dumps(members).encode()))


_ABOUT_NO_TABLE = {
    *("BatchGetItem", "BatchWriteItem", "TransactGetItems", "TransactWriteItems", "ListTables"),
    *("ExecuteStatement", "BatchExecuteStatement", "ExecuteTransaction"),
}


def _stream_case(name: str, operation: str, **members: Any) -> Case:
    request = _request(operation, json.dumps(members).encode(), "DynamoDBStreams_20120810")
    return Case(f"{operation} {name}", operation, request)


def _raw(name: str, body: bytes, operation: str = "PutItem", **changed: str) -> Case:
    known = "x_amz_target" not in {header.lower() for header in changed}
    return Case(name, operation if known else "", _request(operation, body, **changed))


def _prepared() -> list[Case]:
    return [
        _case(
            "makes the table", "CreateTable",
            KeySchema=key_schema(*KEYS), AttributeDefinitions=definitions([*KEYS, "color:S"]), BillingMode="PAY_PER_REQUEST",
            GlobalSecondaryIndexes=[Index("by-color", "color:S").wire()],
            StreamSpecification={"StreamEnabled": True, "StreamViewType": "NEW_AND_OLD_IMAGES"},
        ),
        _case("of one that is there", "CreateTable", KeySchema=key_schema("p:S")),
        _case("shows it", "DescribeTable"),
        _case("finds it", "ListTables"),
    ]  # fmt: skip


def _writes() -> list[Case]:
    never = {
        "ConditionExpression": "attribute_not_exists(p)",
        "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
    }
    add = {
        "UpdateExpression": "ADD n :one SET #t = if_not_exists(#t, :t)",
        "ExpressionAttributeNames": {"#t": "text"},
        "ExpressionAttributeValues": {":one": {"N": "1"}, ":t": {"S": "x"}},
    }
    return [
        _case("puts every kind", "PutItem", Item={**ROW, **EVERY_KIND, "color": {"S": "red"}}, **ALL_COSTS),
        _case("puts again", "PutItem", Item={**ROW, **EVERY_KIND}, ReturnValues="ALL_OLD", **ALL_COSTS),
        _case("puts another", "PutItem", Item={**LATER, "color": {"S": "blue"}}),
        _case("under a false condition", "PutItem", Item=ROW, **never),
        _case("without a key", "PutItem", Item={"p": {"S": "a"}}),
        _case("of an empty set", "PutItem", Item={**ROW, "x": {"SS": []}}),
        _case("of too large a number", "PutItem", Item={**ROW, "x": {"N": "1e200"}}),
        _case("of no item", "PutItem"),
        _case("into no table", "PutItem", on="nowhere", Item=ROW),
        _case("with an expression that is none", "PutItem", Item=ROW, ConditionExpression="p ="),
        _case("too large", "PutItem", Item={**ROW, "x": {"S": "x" * 410_000}}),
        _case("updates", "UpdateItem", Key=ROW, ReturnValues="UPDATED_NEW", **add, **ALL_COSTS),
        _case("makes an item", "UpdateItem", Key={**ROW, "s": {"N": "3"}}, ReturnValues="ALL_OLD", **add),
        _case("of a wrong type", "UpdateItem", Key=ROW, UpdateExpression="SET #t = :one + #t",
              ExpressionAttributeNames={"#t": "text"}, ExpressionAttributeValues={":one": {"N": "1"}}),
        _case("under a false condition", "UpdateItem", Key=ROW, **add, **never),
        _case("deletes nothing", "DeleteItem", Key={**ROW, "s": {"N": "9"}}, ReturnValues="ALL_OLD"),
        _case("deletes", "DeleteItem", Key={**ROW, "s": {"N": "3"}}, ReturnValues="ALL_OLD", **ALL_COSTS),
        _case("of a key that is none", "DeleteItem", Key={"p": {"N": "1"}}),
        _case("writes and deletes", "BatchWriteItem", **ALL_COSTS, RequestItems={"things": [
            {"PutRequest": {"Item": {**ROW, "s": {"N": "4"}}}}, {"DeleteRequest": {"Key": {**ROW, "s": {"N": "5"}}}}]}),
        _case("of one key twice", "BatchWriteItem", RequestItems={"things": [{"PutRequest": {"Item": ROW}}] * 2}),
        _case("of nothing", "BatchWriteItem", RequestItems={}),
        _case("writes", "TransactWriteItems", TransactItems=[
            {"Put": {"TableName": "things", "Item": {**ROW, "s": {"N": "6"}}}},
            {"Update": {"TableName": "things", "Key": LATER, **add}}], ClientRequestToken="token", **ALL_COSTS),
        _case("writes no second time", "TransactWriteItems", TransactItems=[
            {"Put": {"TableName": "things", "Item": {**ROW, "s": {"N": "6"}}}},
            {"Update": {"TableName": "things", "Key": LATER, **add}}], ClientRequestToken="token"),
        _case("is cancelled", "TransactWriteItems", TransactItems=[
            {"Put": {"TableName": "things", "Item": {**ROW, "s": {"N": "7"}}}},
            {"ConditionCheck": {"TableName": "things", "Key": ROW, **never}}]),
        _case("of one key twice", "TransactWriteItems", TransactItems=[{"Delete": {"TableName": "things", "Key": ROW}}] * 2),
    ]  # fmt: skip


def _reads() -> list[Case]:
    keys = {
        "things": {"Keys": [ROW, LATER, {**ROW, "s": {"N": "99"}}], "ProjectionExpression": "p, s, color"}
    }
    return [
        _case("finds", "GetItem", Key=ROW, ConsistentRead=True, ReturnConsumedCapacity="TOTAL"),
        _case("finds nothing", "GetItem", Key={**ROW, "s": {"N": "99"}}),
        _case("shows a part", "GetItem", Key=ROW, ProjectionExpression="#l[0], #m.k, nothing",
              ExpressionAttributeNames={"#l": "list", "#m": "map"}),
        _case("of half a key", "GetItem", Key={"p": {"S": "a"}}),
        _case("from no table", "GetItem", on="nowhere", Key=ROW),
        _case("with an unknown member", "GetItem", Key=ROW, AttributesToGet=["p"], ProjectionExpression="p"),
        _case("finds", "Query", **HIT, ReturnConsumedCapacity="INDEXES"),
        _case("backwards, a page", "Query", **HIT, ScanIndexForward=False, Limit=1),
        _case("goes on", "Query", **HIT, ExclusiveStartKey=ROW),
        _case("filters", "Query", **HIT, FilterExpression="attribute_exists(color)"),
        _case("counts", "Query", **HIT, Select="COUNT"),
        _case("of an index", "Query", IndexName="by-color", KeyConditionExpression="color = :c",
              ExpressionAttributeValues={":c": {"S": "blue"}}),
        _case("of an index that is none", "Query", **HIT, IndexName="none"),
        _case("without a key", "Query", KeyConditionExpression="s = :s", ExpressionAttributeValues={":s": {"N": "1"}}),
        _case("finds", "Scan"),
        _case("a page", "Scan", Limit=2),
        _case("a segment", "Scan", Segment=0, TotalSegments=3),
        _case("of a limit that is none", "Scan", Limit=0),
        _case("of a segment that is none", "Scan", Segment=3, TotalSegments=3),
        _case("finds", "BatchGetItem", RequestItems=keys, ReturnConsumedCapacity="TOTAL"),
        _case("of one key twice", "BatchGetItem", RequestItems={"things": {"Keys": [ROW, ROW]}}),
        _case("finds", "TransactGetItems", TransactItems=[
            {"Get": {"TableName": "things", "Key": each}} for each in (ROW, LATER)]),
        _case("from no table", "TransactGetItems", TransactItems=[{"Get": {"TableName": "nowhere", "Key": ROW}}]),
    ]  # fmt: skip


def _statements() -> list[Case]:
    select = "SELECT * FROM things WHERE p = 'a'"
    insert = {"Statement": "INSERT INTO things VALUE {'p': 'a', 's': 70}"}
    return [
        _case("finds", "ExecuteStatement", Statement=select, ReturnConsumedCapacity="INDEXES"),
        _case("a page", "ExecuteStatement", Statement=select, Limit=1),
        _case("writes", "ExecuteStatement", **insert),
        _case("of one that is there", "ExecuteStatement", **insert),
        _case("that is none", "ExecuteStatement", Statement="SELECT", ConsistentRead=True),
        _case("finds", "BatchExecuteStatement", Statements=[
            {"Statement": select + " AND s = ?", "Parameters": [ROW["s"]]}, {"Statement": select}]),
        _case("writes", "ExecuteTransaction", TransactStatements=[
            {"Statement": "UPDATE things SET n = n + 1 WHERE p = 'a' AND s = 70"}], ClientRequestToken="statement"),
        _case("is cancelled", "ExecuteTransaction", TransactStatements=[insert]),
    ]  # fmt: skip


def streams(send: Send) -> None:
    """Follow the table's stream from its beginning, then request a missing stream, shard and iterator."""
    [stream] = json.loads(send(_stream_case("finds", "ListStreams", TableName="things")).body)["Streams"]
    arn = {"StreamArn": stream["StreamArn"]}
    described = json.loads(send(_stream_case("finds", "DescribeStream", **arn)).body)["StreamDescription"]
    for shard in described["Shards"]:
        place = {**arn, "ShardId": shard["ShardId"]}
        case = _stream_case("begins", "GetShardIterator", **place, ShardIteratorType="TRIM_HORIZON")
        begin = json.loads(send(case).body)["ShardIterator"]
        send(_stream_case("finds", "GetRecords", ShardIterator=begin))
        send(_stream_case("of no type", "GetShardIterator", **place, ShardIteratorType="GUESS"))
    send(_stream_case("finds none", "ListStreams", TableName="nowhere"))
    send(_stream_case("of one that is not there", "DescribeStream", StreamArn=arn["StreamArn"] + "x"))
    send(_stream_case("of an iterator that is none", "GetRecords", ShardIterator="x" * 10))


def _refused_before() -> list[Case]:
    good = json.dumps({"TableName": "things", "Item": ROW}).encode()
    return [
        _raw("no JSON", b"{"),
        _raw("JSON that is no object", b"[1]"),
        _raw("bytes that are no text", b'{"TableName":"\xff"}'),
        _raw("no body", b""),
        _raw("no signature", good, Authorization=""),
        _raw("half a signature", good, Authorization="AWS4-HMAC-SHA256 Credential=a"),
        _raw("no date", good, X_Amz_Date=""),
        _raw("JSON 1.1", good, Content_Type="application/x-amz-json-1.1"),
        _raw("another content type", good, Content_Type="text/plain"),
        _raw("no content type", good, Content_Type=""),
        _raw("an operation that is none", good, X_Amz_Target="DynamoDB_20120810.Guess"),
        _raw("no operation", good, X_Amz_Target=""),
        _raw("an old version", good, X_Amz_Target="DynamoDB_20111205.PutItem"),
        _raw("from a browser", good, Origin="http://somewhere"),
    ]


def _searches() -> list[Case]:
    index = {
        "IndexName": "near",
        "VectorAttribute": {"AttributeName": "v"},
        "Dimensions": 2,
        "DistanceFunction": "COSINE",
        "Projection": {"ProjectionType": "ALL"},
    }
    numbers = [{"N": "1"}, {"N": "0.5"}]
    where: dict[str, Any] = {"on": "vectors", "IndexName": "near"}
    return [
        _case(
            "makes a table with vectors", "CreateTable", on="vectors", KeySchema=key_schema("p:S"),
            AttributeDefinitions=definitions(["p:S"]), BillingMode="PAY_PER_REQUEST", VectorIndexes=[index],
        ),
        _case("of a vector", "PutItem", on="vectors", Item={"p": {"S": "a"}, "v": {"L": numbers}}, **ALL_COSTS),
        _case("of what is no vector", "PutItem", on="vectors", Item={"p": {"S": "b"}, "v": {"L": numbers[:1]}}),
        _case("finds", "SearchVectors", SearchVector=numbers, TopK=3, ReturnConsumedCapacity="TOTAL", **where),
        _case("of too few numbers", "SearchVectors", SearchVector=numbers[:1], TopK=3, **where),
        _case("of too many items", "SearchVectors", SearchVector=numbers, TopK=101, **where),
    ]  # fmt: skip


CASES = [*_prepared(), *_writes(), *_reads(), *_searches(), *_statements(), *_refused_before()]
