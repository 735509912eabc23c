"""Requests as large as DynamoDB takes, made of very many small things, that must be refused: bodies by name.

`size_bytes`: about how large each is to be. Each names the operation that it is sent to.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator

_Q = '"'
Named = tuple[str, str, bytes]
"""The name of a request, its operation, and its body."""


def _many(parts: tuple[str, str], size_bytes: int) -> str:
    """Return a text of many equal parts with separators. `#` in a part is replaced by its number."""
    part, separator = parts
    if "#" in part:
        count = size_bytes // (len(part) + 6)
        return separator.join([part.replace("#", str(number)) for number in range(count)])
    return separator.join([part] * (size_bytes // (len(part) + len(separator))))


def dynamodb(size_bytes: int, wanted: set[str] | None = None) -> Iterator[Named]:
    """Yield bodies for DynamoDB, all or those of `wanted` (`operation: name`).

    A table `orders` with the key `pk` (S) exists.
    """
    parts: list[tuple[str, str]] = []

    def later(part: str, separator: str = ",") -> str:
        """Return a placeholder for the parts, which `filled` replaces."""
        parts.append((part, separator))
        return f"@@{len(parts) - 1}@@"

    def filled(body: str) -> str:
        return re.sub(r"@@(\d+)@@", lambda found: _many(parts[int(found[1])], size_bytes), body)

    for name, operation, text in _dynamodb(later):
        if wanted is None or f"{operation}: {name}" in wanted:
            yield name, operation, filled(text).encode()


def _dynamodb(many: Callable[..., str]) -> Iterator[tuple[str, str, str]]:
    key = '"TableName":"orders","Key":{"pk":{"S":"1"}}'
    scan = '"TableName":"orders"'
    put = '{"PutRequest":{"Item":{"pk":{"S":"1"}}}}'
    yield from _dynamodb_batches(many, put)
    yield from _dynamodb_items(many)
    value = many('"v#":{"S":"1"}')
    text = many("é", "")
    for member in ("AttributesToGet", "ProjectionExpression", "ConsistentRead", "ReturnConsumedCapacity"):
        yield f"{member} of strings", "GetItem", f'{{{key},"{member}":[{many(_Q + "a" + _Q)}]}}'
        yield f"{member} of one text", "GetItem", f'{{{key},"{member}":"{text}"}}'
    yield "key of many attributes", "GetItem", f'{{"TableName":"orders","Key":{{{value}}}}}'
    yield "key of many attributes", "DeleteItem", f'{{"TableName":"orders","Key":{{{value}}}}}'
    yield "key of many attributes", "UpdateItem", f'{{"TableName":"orders","Key":{{{value}}}}}'
    yield "long table name", "GetItem", f'{{"TableName":"{text}","Key":{{"pk":{{"S":"1"}}}}}}'
    yield "many members", "GetItem", "{" + many('"m#":1') + "}"
    names, values = many('"#n#":"a"'.replace("#n", "\\u0023n")), many('":v#":{"S":"1"}')
    for operation, condition in (("DeleteItem", "ConditionExpression"), ("UpdateItem", "UpdateExpression")):
        yield (
            f"{condition} of many values",
            operation,
            f'{{{key},"{condition}":"{many("a=:a", " AND ")}"}}',
        )
    yield (
        "many names",
        "GetItem",
        f'{{{key},"ProjectionExpression":"a","ExpressionAttributeNames":{{{names}}}}}',
    )
    yield (
        "many names without an expression",
        "GetItem",
        f'{{{key},"ExpressionAttributeNames":{{{names}}}}}',
    )
    yield (
        "a long placeholder",
        "GetItem",
        f'{{{key},"ProjectionExpression":"a","ExpressionAttributeNames":{{"{text}":"a"}}}}',
    )
    yield (
        "many values",
        "DeleteItem",
        f'{{{key},"ConditionExpression":"a=:a","ExpressionAttributeValues":{{{values}}}}}',
    )
    yield (
        "a value of a wrong name",
        "DeleteItem",
        f'{{{key},"ConditionExpression":"a=:a","ExpressionAttributeValues":{{"{text}":{{"S":""}}}}}}',
    )
    condition = '"c#":{"ComparisonOperator":"EQ","AttributeValueList":[{"S":"1"}]}'
    for operation, member in (("Query", "KeyConditions"), ("Query", "QueryFilter"), ("Scan", "ScanFilter")):
        yield f"many {member}", operation, f'{{{scan},"{member}":{{{many(condition)}}}}}'
        wrong = condition.replace("EQ", "XX")
        yield f"many wrong {member}", operation, f'{{{scan},"{member}":{{{many(wrong)}}}}}'
    one = many('{"N":"1"}')
    yield (
        "a long list of IN",
        "Scan",
        f'{{{scan},"ScanFilter":{{"a":{{"ComparisonOperator":"IN","AttributeValueList":[{one}]}}}}}}',
    )
    yield "a long start key", "Scan", f'{{{scan},"ExclusiveStartKey":{{{value}}}}}'
    expected = many('"e#":{"Exists":false}')
    yield "many Expected", "DeleteItem", f'{{{key},"Expected":{{{expected}}}}}'
    yield (
        "many wrong Expected",
        "DeleteItem",
        f'{{{key},"Expected":{{{many(condition.replace("EQ", "XX"))}}}}}',
    )
    for kind, action in (("many", "ADD"), ("many wrong", "XXX")):
        updates = many(f'"u#":{{"Action":"{action}","Value":{{"S":"1"}}}}')
        yield f"{kind} AttributeUpdates", "UpdateItem", f'{{{key},"AttributeUpdates":{{{updates}}}}}'
    yield from _dynamodb_statements(many)
    yield from _dynamodb_tables(many)


def _dynamodb_batches(many: Callable[..., str], put: str) -> Iterator[tuple[str, str, str]]:
    get = '{"pk":{"S":"1"}}'
    yield "many puts", "BatchWriteItem", f'{{"RequestItems":{{"orders":[{many(put)}]}}}}'
    yield "many empty writes", "BatchWriteItem", f'{{"RequestItems":{{"orders":[{many("{}")}]}}}}'
    yield "many nulls", "BatchWriteItem", f'{{"RequestItems":{{"orders":[{many("null")}]}}}}'
    nothing = many('{"PutRequest":{}}')
    yield "many puts of nothing", "BatchWriteItem", f'{{"RequestItems":{{"orders":[{nothing}]}}}}'
    wrong = many('{"PutRequest":{"Item":{"pk":{"N":"x"}}}}')
    yield "many wrong puts", "BatchWriteItem", f'{{"RequestItems":{{"orders":[{wrong}]}}}}'
    tables = many(f'"t-#":[{put}]')
    yield "tables with a put", "BatchWriteItem", f'{{"RequestItems":{{{tables}}}}}'
    yield (
        "tables with nothing",
        "BatchWriteItem",
        f'{{"RequestItems":{{{many(_Q + "t-#" + _Q + ":[]")}}}}}',
    )
    bad_names = many(f'"-#":[{put}]')
    yield "tables with a bad name", "BatchWriteItem", f'{{"RequestItems":{{{bad_names}}}}}'
    yield "many keys", "BatchGetItem", f'{{"RequestItems":{{"orders":{{"Keys":[{many(get)}]}}}}}}'
    yield "many nulls", "BatchGetItem", f'{{"RequestItems":{{"orders":{{"Keys":[{many("null")}]}}}}}}'
    tables = many(f'"t-#":{{"Keys":[{get}]}}')
    yield "tables with a key", "BatchGetItem", f'{{"RequestItems":{{{tables}}}}}'
    tables = many('"t-#":{}')
    yield "tables without keys", "BatchGetItem", f'{{"RequestItems":{{{tables}}}}}'
    yield (
        "a long key among 100",
        "BatchGetItem",
        f'{{"RequestItems":{{"orders":{{"Keys":[{",".join([get] * 99)},{{{many(_Q + "v#" + _Q + ":" + get[6:-1])}}}]}}}}}}',
    )
    for kind, action in (
        ("puts", '{"Put":{"TableName":"orders","Item":{"pk":{"S":"#"}}}}'),
        ("deletes", '{"Delete":{"TableName":"orders","Key":{"pk":{"S":"1"}}}}'),
        ("wrong puts", '{"Put":{"TableName":"o","Item":{"pk":{"S":""}}}}'),
        ("updates without members", '{"Update":{}}'),
        ("nothing", "{}"),
        ("nulls", "null"),
    ):
        yield f"transaction of {kind}", "TransactWriteItems", f'{{"TransactItems":[{many(action)}]}}'
    gets = many('{"Get":{"TableName":"orders","Key":{"pk":{"S":"#"}}}}')
    yield "transaction of gets", "TransactGetItems", f'{{"TransactItems":[{gets}]}}'
    yield "transaction of nothing", "TransactGetItems", f'{{"TransactItems":[{many("{}")}]}}'
    token = many("t", "")
    yield "a long token", "TransactWriteItems", f'{{"TransactItems":[],"ClientRequestToken":"{token}"}}'


def _dynamodb_items(many: Callable[..., str]) -> Iterator[tuple[str, str, str]]:
    def item(member: str) -> str:
        return f'{{"TableName":"orders","Item":{{"pk":{{"S":"1"}},"v":{member}}}}}'

    wholes = {
        "list of numbers": f'{{"L":[{many(chr(123) + _Q + "N" + _Q + ":" + _Q + "1" + _Q + "}")}]}}',
        "list of long numbers": f'{{"L":[{many(json.dumps({"N": "1" * 39}))}]}}',
        "list of fractions": f'{{"L":[{many(json.dumps({"N": "0.10"}))}]}}',
        "list of texts": f'{{"L":[{many(json.dumps({"S": ""}))}]}}',
        "list of nulls": f'{{"L":[{many("null")}]}}',
        "list of nothing": f'{{"L":[{many("{}")}]}}',
        "list of empty lists": f'{{"L":[{many(json.dumps({"L": []}))}]}}',
        "list of lists": f'{{"L":[{many(json.dumps({"L": [{"L": [{"L": []}]}]}))}]}}',
        "list of booleans": f'{{"L":[{many(json.dumps({"BOOL": True}))}]}}',
        "list of odd booleans": f'{{"L":[{many(json.dumps({"BOOL": "true"}))}]}}',
        "list of binaries": f'{{"L":[{many(json.dumps({"B": "AA=="}))}]}}',
        "list of maps": f'{{"L":[{many(json.dumps({"M": {"a": {"S": ""}}}))}]}}',
        "list of sets": f'{{"L":[{many(json.dumps({"NS": ["1"]}))}]}}',
        "map": "{" + f'"M":{{{many(_Q + "m#" + _Q + ":" + json.dumps({"S": ""}))}}}' + "}",
        "set of numbers": f'{{"NS":[{many(_Q + "#" + _Q)}]}}',
        "set of fractions": f'{{"NS":[{many(_Q + "#.50" + _Q)}]}}',
        "set of equal numbers": f'{{"NS":[{many(_Q + "1" + _Q)}]}}',
        "set of texts": f'{{"SS":[{many(_Q + "#" + _Q)}]}}',
        "set of equal texts": f'{{"SS":[{many(_Q + "1" + _Q)}]}}',
        "set of nulls": f'{{"SS":[{many("null")}]}}',
        "set of binaries": f'{{"BS":[{many(_Q + "AA==" + _Q)}]}}',
        "a long number": f'{{"N":"{many("1", "")}"}}',
        "a long fraction": f'{{"N":"0.{many("0", "")}1"}}',
        "a long wrong number": f'{{"N":"{many("é", "")}"}}',
        "a long text": f'{{"S":"{many("é", "")}"}}',
        "a long binary": f'{{"B":"{many("AAAA", "")}"}}',
        "a long wrong binary": f'{{"B":"{many("é", "")}"}}',
        "unknown members": "{" + many('"#":1') + "}",
        "a list for a text": f'{{"S":[{many("1")}]}}',
        "a map for a list": f'{{"L":{{{many(_Q + "#" + _Q + ":1")}}}}}',
    }
    for name, member in wholes.items():
        yield f"item with {name}", "PutItem", item(member)
    attributes = many('"a#":{"S":""}')
    yield "item of many attributes", "PutItem", f'{{"TableName":"orders","Item":{{{attributes}}}}}'
    attributes = many('"a#":{"N":"x"}')
    yield "item of many wrong attributes", "PutItem", f'{{"TableName":"orders","Item":{{{attributes}}}}}'
    attributes = many('"a#":{"S":"1","N":"1"}')
    yield "item of many double attributes", "PutItem", f'{{"TableName":"orders","Item":{{{attributes}}}}}'
    half = wholes["list of numbers"]
    yield "item with a list and a spare member", "PutItem", item(half)[:-1] + ',"ReturnValues":null}'
    for operation, frame in (
        ("BatchWriteItem", '{{"RequestItems":{{"orders":[{{"PutRequest":{{"Item":{{"pk":{}}}}}}}]}}}}'),
        ("TransactWriteItems", '{{"TransactItems":[{{"Put":{{"TableName":"orders","Item":{{"pk":{}}}}}}}]}}'),
    ):
        yield "list of numbers", operation, frame.format(half)
    yield (
        "parameters",
        "ExecuteStatement",
        f'{{"Statement":"SELECT * FROM orders WHERE pk=?","Parameters":[{half}]}}',
    )
    yield "a name of bytes", "PutItem", f'{{"TableName":"orders","Item":{{"{many("é", "")}":{{"S":""}}}}}}'


def _dynamodb_statements(many: Callable[..., str]) -> Iterator[tuple[str, str, str]]:
    where = " AND ".join(["a=1"] * 580)
    select = json.dumps({"Statement": f"SELECT * FROM orders WHERE {where}"})
    both = " OR ".join(["NOT a IN [1]"] * 300)
    odd = json.dumps({"Statement": f"SELECT * FROM orders WHERE {both}"})
    yield (
        "25 statements of 580 operators",
        "BatchExecuteStatement",
        f'{{"Statements":[{",".join([select] * 25)}]}}',
    )
    yield (
        "25 statements of 600 operators",
        "BatchExecuteStatement",
        f'{{"Statements":[{",".join([odd] * 25)}]}}',
    )
    yield (
        "100 statements of 580 operators",
        "ExecuteTransaction",
        f'{{"TransactStatements":[{",".join([select] * 100)}]}}',
    )
    many_names = json.dumps(
        {"Statement": "SELECT " + ",".join(f"a{n}" for n in range(1_200)) + " FROM orders"}
    )
    yield (
        "25 statements of names",
        "BatchExecuteStatement",
        f'{{"Statements":[{",".join([many_names] * 25)}]}}',
    )
    pairs = json.dumps(
        {"Statement": "INSERT INTO orders VALUE {" + ",".join(f"'a{n}':1" for n in range(850)) + "}"}
    )
    yield "25 inserts of names", "BatchExecuteStatement", f'{{"Statements":[{",".join([pairs] * 25)}]}}'
    signs = json.dumps({"Statement": "UPDATE orders SET a=" + "+".join(["1"] * 4_000) + " WHERE pk='1'"})
    yield "25 updates of sums", "BatchExecuteStatement", f'{{"Statements":[{",".join([signs] * 25)}]}}'
    nested = json.dumps({"Statement": "SELECT * FROM orders WHERE pk=" + "[" * 4_000})
    yield "25 nested statements", "BatchExecuteStatement", f'{{"Statements":[{",".join([nested] * 25)}]}}'
    opened = json.dumps({"Statement": "SELECT * FROM orders WHERE " + "(" * 4_000})
    yield (
        "25 statements of parentheses",
        "BatchExecuteStatement",
        f'{{"Statements":[{",".join([opened] * 25)}]}}',
    )
    for operation, member in (
        ("BatchExecuteStatement", "Statements"),
        ("ExecuteTransaction", "TransactStatements"),
    ):
        statement = many('{"Statement":"SELECT * FROM orders"}')
        yield "many statements", operation, f'{{"{member}":[{statement}]}}'
        yield "many nothing", operation, f'{{"{member}":[{many("{}")}]}}'
    yield "a long statement", "ExecuteStatement", f'{{"Statement":"{many("a=1", " AND ")}"}}'
    texts = many('{"S":"1"}')
    yield (
        "many parameters",
        "ExecuteStatement",
        f'{{"Statement":"SELECT * FROM orders","Parameters":[{texts}]}}',
    )
    yield (
        "a long token",
        "ExecuteStatement",
        f'{{"Statement":"SELECT * FROM orders","NextToken":"{many("a", "")}"}}',
    )
    expression = " AND ".join([":a=:a"] * 450)
    update = json.dumps(
        {
            "TableName": "orders",
            "Key": {"pk": {"S": "1"}},
            "UpdateExpression": "SET a=:a",
            "ConditionExpression": expression,
        }
    )
    yield (
        "100 updates of 900 operators",
        "TransactWriteItems",
        f'{{"TransactItems":[{",".join([json.dumps({"Update": json.loads(update)})] * 100)}]}}',
    )


def _dynamodb_tables(many: Callable[..., str]) -> Iterator[tuple[str, str, str]]:
    definition = many('{"AttributeName":"a#","AttributeType":"S"}')
    keys = many('{"AttributeName":"a#","KeyType":"HASH"}')
    base = '"TableName":"others","BillingMode":"PAY_PER_REQUEST"'
    one_key = '"KeySchema":[{"AttributeName":"pk","KeyType":"HASH"}]'
    one_definition = '"AttributeDefinitions":[{"AttributeName":"pk","AttributeType":"S"}]'
    yield "many definitions", "CreateTable", f'{{{base},{one_key},"AttributeDefinitions":[{definition}]}}'
    yield "many keys", "CreateTable", f'{{{base},{one_definition},"KeySchema":[{keys}]}}'
    index = many(
        '{"IndexName":"i-#","KeySchema":[{"AttributeName":"pk","KeyType":"HASH"}],"Projection":{"ProjectionType":"ALL"}}'
    )
    for member in ("GlobalSecondaryIndexes", "LocalSecondaryIndexes"):
        yield f"many {member}", "CreateTable", f'{{{base},{one_key},{one_definition},"{member}":[{index}]}}'
        yield (
            f"many empty {member}",
            "CreateTable",
            f'{{{base},{one_key},{one_definition},"{member}":[{many("{}")}]}}',
        )
    projected = many('"p#"')
    hashed = '"KeySchema":[{"AttributeName":"pk","KeyType":"HASH"}]'
    wide = f'{{"IndexName":"iii",{hashed},"Projection":{{"ProjectionType":"INCLUDE","NonKeyAttributes":[{projected}]}}}}'
    yield (
        "many projected",
        "CreateTable",
        f'{{{base},{one_key},{one_definition},"GlobalSecondaryIndexes":[{wide}]}}',
    )
    tags = many('{"Key":"k#","Value":"v"}')
    yield "many tags", "CreateTable", f'{{{base},{one_key},{one_definition},"Tags":[{tags}]}}'
    arn = "arn:aws:dynamodb:us-east-1:000000000000:table/orders"
    yield "many tags", "TagResource", f'{{"ResourceArn":"{arn}","Tags":[{tags}]}}'
    yield "many tag keys", "UntagResource", f'{{"ResourceArn":"{arn}","TagKeys":[{projected}]}}'
    yield "a long ARN", "TagResource", f'{{"ResourceArn":"{many("a", "")}","Tags":[]}}'
    changes = many(
        '{"Update":{"IndexName":"i-#","ProvisionedThroughput":{"ReadCapacityUnits":1,"WriteCapacityUnits":1}}}'
    )
    yield (
        "many index changes",
        "UpdateTable",
        f'{{"TableName":"orders","GlobalSecondaryIndexUpdates":[{changes}]}}',
    )
    yield "a long name", "DescribeTable", f'{{"TableName":"{many("a", "")}"}}'
    yield "a long start", "ListTables", f'{{"ExclusiveStartTableName":"{many("a", "")}"}}'
    yield "a long iterator", "GetRecords", f'{{"ShardIterator":"{many("a", "")}"}}'
