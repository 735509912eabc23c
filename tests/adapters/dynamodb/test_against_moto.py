"""Random requests to this server and to moto: the answers agree for each item.

moto is no reference. Where it contradicts the documentation or captures of the service, the requests below omit the
case. A test at the end states the correct behaviour.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError
from hypothesis import HealthCheck, Phase, given
from hypothesis import strategies as st

from tests.support.examples import examples
from tests.support.live_dynamodb import REGION, Live
from tests.support.running import start

moto = pytest.importorskip("moto")


@pytest.fixture(scope="module")
def ours(shared_database_url: str) -> Iterator[Any]:
    running = start(shared_database_url, dialects="dynamodb")
    yield Live(running.url).client
    running.stop()


@pytest.fixture(scope="module")
def theirs() -> Iterator[Any]:
    with moto.mock_aws():
        yield boto3.client(
            "dynamodb",
            region_name=REGION,
            aws_access_key_id="anybody",
            aws_secret_access_key="any secret",
            config=Config(parameter_validation=False, retries={"total_max_attempts": 1}),
        )


# Requests: each strategy draws (operation, parameters without TableName)

KEYS = [{"pk": {"S": pk}, "sk": {"N": sk}} for pk in "pq" for sk in ("-1", "2", "10")]
TEXTS = ["x", "xy", "y", "é"]
NUMBERS = ["-1.5", "0", "1", "2", "10"]
scalars = st.one_of(
    st.sampled_from([{"S": text} for text in TEXTS]),
    st.sampled_from([{"N": number} for number in NUMBERS]),
    st.sampled_from([{"B": b"\x00"}, {"B": b"\xff"}, {"BOOL": True}, {"BOOL": False}, {"NULL": True}]),
)
lists = st.lists(scalars, max_size=3).map(lambda members: {"L": members})
maps = st.dictionaries(st.sampled_from("xyz"), scalars, max_size=3).map(lambda members: {"M": members})
text_sets = st.sets(st.sampled_from(TEXTS), min_size=1).map(lambda members: {"SS": sorted(members)})
number_sets = st.sets(st.sampled_from(NUMBERS), min_size=1).map(lambda members: {"NS": sorted(members)})
values = st.one_of(scalars, lists, maps, text_sets, number_sets)
ATTRIBUTES = {"a": values, "b": scalars, "n": st.sampled_from([{"N": number} for number in NUMBERS]),
              "l": lists, "m": maps, "t": text_sets}  # fmt: skip
PATHS = ["a", "b", "n", "l", "m", "t", "l[0]", "l[1]", "m.x", "m.y", "pk", "sk"]


class Words:
    """An expression in the making: names its values."""

    def __init__(self) -> None:
        self.values: dict[str, Any] = {}

    def value(self, wire: Any) -> str:
        name = f":v{len(self.values)}"
        self.values[name] = wire
        return name

    def members(self) -> dict[str, Any]:
        return {"ExpressionAttributeValues": self.values} if self.values else {}


compared = values.filter(lambda value: not any(word in str(value) for word in ("BOOL", "NULL", "'0'", "'1'")))
ordered = st.one_of(
    st.sampled_from([("pk", {"S": text}) for text in TEXTS]),
    st.sampled_from([(path, {"N": number}) for path in ("n", "sk") for number in NUMBERS]),
)


@st.composite
def simple_condition(draw: Any, words: Words) -> str:
    path = draw(st.sampled_from(PATHS))
    match draw(st.integers(0, 9)):
        case 0:
            return f"attribute_exists({path})"
        case 1:
            return f"attribute_not_exists({path})"
        case 2:
            return f"{path} = {words.value(draw(compared))}"
        case 3:
            return f"{path} <> {words.value(draw(compared))}"
        case 4:
            path, value = draw(ordered)
            return f"{path} {draw(st.sampled_from(['<', '<=', '>', '>=']))} {words.value(value)}"
        case 5:
            low, high = sorted(
                draw(st.tuples(st.sampled_from(NUMBERS), st.sampled_from(NUMBERS))), key=Decimal
            )
            path = draw(st.sampled_from(["n", "sk"]))
            return f"{path} BETWEEN {words.value({'N': low})} AND {words.value({'N': high})}"
        case 6:
            return f"{path} IN ({words.value(draw(compared))}, {words.value(draw(compared))})"
        case 7:
            return f"begins_with({path}, {words.value({'S': draw(st.sampled_from(TEXTS))})})"
        case 8:
            return f"contains({path}, {words.value({'S': draw(st.sampled_from(TEXTS))})})"
        case _:
            kind = draw(st.sampled_from(["S", "N", "BOOL", "NULL", "L", "M", "SS"]))
            return f"attribute_type({path}, {words.value({'S': kind})})"


@st.composite
def condition(draw: Any, words: Words) -> str:
    one = draw(simple_condition(words))
    match draw(st.integers(0, 5)):
        case 0:
            return f"{one} AND {draw(simple_condition(words))}"
        case 1:
            return f"{one} OR {draw(simple_condition(words))}"
        case 2:
            return f"NOT {one}"
        case 3:
            return f"({one} OR {draw(simple_condition(words))}) AND NOT {draw(simple_condition(words))}"
        case _:
            return one


@st.composite
def action(draw: Any, name: str, words: Words) -> tuple[str, str]:
    """(section, text) of an action of an update on one top-level attribute."""
    match name:
        case "a" | "b":
            return draw(st.sampled_from([
                ("SET", f"{name} = {words.value(draw(ATTRIBUTES[name]))}"),
                ("SET", f"{name} = if_not_exists({name}, {words.value(draw(scalars))})"),
                ("REMOVE", name),
            ]))  # fmt: skip
        case "n":
            return draw(st.sampled_from([
                ("SET", f"n = n + {words.value({'N': '3'})}"),
                ("SET", f"n = if_not_exists(n, {words.value({'N': '0'})}) - {words.value({'N': '0.5'})}"),
                ("ADD", f"n {words.value({'N': '7'})}"),
            ]))  # fmt: skip
        case "l":
            return draw(st.sampled_from([
                ("SET", f"l = list_append(l, {words.value(draw(lists))})"),
                ("SET", f"l[0] = {words.value(draw(scalars))}"),
                ("SET", f"l[7] = {words.value(draw(scalars))}"),
                ("REMOVE", "l[0]"),
            ]))  # fmt: skip
        case "m":
            return draw(st.sampled_from([("SET", f"m.x = {words.value(draw(scalars))}"), ("REMOVE", "m.x")]))
    return draw(st.sampled_from([
        ("ADD", f"t {words.value(draw(text_sets))}"), ("DELETE", f"t {words.value(draw(text_sets))}"),
    ]))  # fmt: skip


def used(words: Words, *texts: str) -> dict[str, Any]:
    """Only the values that the expressions name: what a draw threw away is not sent."""
    known = {name: value for name, value in words.values.items() if any(_names(name, text) for text in texts)}
    return {"ExpressionAttributeValues": known} if known else {}


def _names(placeholder: str, text: str) -> bool:
    return any(text[at:].startswith(placeholder) and not text[at + len(placeholder) : at + len(placeholder) + 1].isdigit()
               for at in range(len(text)))  # fmt: skip


@st.composite
def put(draw: Any) -> tuple[str, dict[str, Any]]:
    names = draw(st.sets(st.sampled_from(sorted(ATTRIBUTES))))
    item = {**draw(st.sampled_from(KEYS)), **{name: draw(ATTRIBUTES[name]) for name in sorted(names)}}
    words = Words()
    asked: dict[str, Any] = {"Item": item, "ReturnValues": draw(st.sampled_from(["NONE", "ALL_OLD"]))}
    if draw(st.booleans()):
        asked["ConditionExpression"] = draw(condition(words))
    return "put_item", {**asked, **words.members()}


@st.composite
def delete(draw: Any) -> tuple[str, dict[str, Any]]:
    words = Words()
    asked: dict[str, Any] = {
        "Key": draw(st.sampled_from(KEYS)),
        "ReturnValues": draw(st.sampled_from(["NONE", "ALL_OLD"])),
    }
    if draw(st.booleans()):
        asked["ConditionExpression"] = draw(condition(words))
    return "delete_item", {**asked, **words.members()}


@st.composite
def update(draw: Any) -> tuple[str, dict[str, Any]]:
    words = Words()
    names = draw(st.lists(st.sampled_from(sorted(ATTRIBUTES)), min_size=1, max_size=2, unique=True))
    sections: dict[str, list[str]] = {}
    for name in names:
        section, text = draw(action(name, words))
        sections.setdefault(section, []).append(text)
    expression = " ".join(f"{section} {', '.join(texts)}" for section, texts in sections.items())
    asked: dict[str, Any] = {
        "Key": draw(st.sampled_from(KEYS)),
        "UpdateExpression": expression,
        "ReturnValues": draw(st.sampled_from(["NONE", "ALL_OLD", "ALL_NEW"])),
    }
    texts = [expression]
    if draw(st.integers(0, 3)) == 0:
        asked["ConditionExpression"] = draw(condition(words))
        texts.append(asked["ConditionExpression"])
    return "update_item", {**asked, **used(words, *texts)}


@st.composite
def get(draw: Any) -> tuple[str, dict[str, Any]]:
    asked: dict[str, Any] = {"Key": draw(st.sampled_from(KEYS))}
    if draw(st.booleans()):
        asked["ProjectionExpression"] = draw(st.sampled_from(["a", "m.x, b", "pk, l[0]", "n, m.x, m.y"]))
    return "get_item", asked


@st.composite
def query(draw: Any) -> tuple[str, dict[str, Any]]:
    words = Words()
    text = f"pk = {words.value({'S': draw(st.sampled_from('pqr'))})}"
    low, high = sorted(draw(st.tuples(st.sampled_from(NUMBERS), st.sampled_from(NUMBERS))), key=Decimal)
    match draw(st.integers(0, 4)):
        case 0:
            text += f" AND sk BETWEEN {words.value({'N': low})} AND {words.value({'N': high})}"
        case 1:
            text += f" AND sk {draw(st.sampled_from(['<', '<=', '=', '>', '>=']))} {words.value({'N': low})}"
    asked: dict[str, Any] = {"KeyConditionExpression": text, "ScanIndexForward": draw(st.booleans())}
    if draw(st.booleans()):
        asked["FilterExpression"] = draw(
            condition(words).filter(lambda text: "pk" not in text and "sk" not in text)
        )
    if draw(st.booleans()):
        asked["Limit"] = draw(st.integers(1, 3))
    return "query", {**asked, **used(words, text, asked.get("FilterExpression", ""))}


@st.composite
def scan(draw: Any) -> tuple[str, dict[str, Any]]:
    words = Words()
    asked = {"FilterExpression": draw(condition(words))} if draw(st.booleans()) else {}
    return "scan", {**asked, **words.members()}


requests = st.lists(
    st.one_of(put(), put(), update(), update(), delete(), get(), query(), scan()), min_size=8, max_size=25
)

# Answers


def ask(client: Any, table: str, operation: str, asked: dict[str, Any]) -> Any:
    """Return the part of an answer on which both must agree: the code of an error, or the answer without incidental
    differences.
    """
    try:
        if operation == "query":
            pages = list(_pages(client, table, asked))
            items = [plain(item) for page in pages for item in page["Items"]]
            return items, sum(page["Count"] for page in pages), sum(page["ScannedCount"] for page in pages)
        answer = getattr(client, operation)(TableName=table, **asked)
    except ClientError as error:
        return error.response["Error"]["Code"]
    if operation == "scan":
        answer["Items"].sort(key=lambda item: (item["pk"]["S"], Decimal(item["sk"]["N"])))
    return plain(answer)


def _pages(client: Any, table: str, asked: dict[str, Any]) -> Iterator[Any]:
    start: dict[str, Any] = {}
    for _ in range(20):
        page = client.query(TableName=table, **asked, **start)
        yield page
        if "LastEvaluatedKey" not in page:
            return
        start = {"ExclusiveStartKey": page["LastEvaluatedKey"]}


_BESIDE = {"ResponseMetadata", "ConsumedCapacity"}  # moto tells capacity unasked


def plain(value: Any) -> Any:
    """Return an answer without metadata, with sorted sets and numbers by value."""
    if isinstance(value, dict):
        if value.keys() == {"N"}:
            return {"N": str(Decimal(value["N"]).normalize())}
        if len(value) == 1 and value.keys() <= {"SS", "BS"}:
            return {tag: sorted(members) for tag, members in value.items()}
        if value.keys() == {"NS"}:
            return {"NS": sorted(str(Decimal(member).normalize()) for member in value["NS"])}
        return {name: plain(member) for name, member in value.items() if name not in _BESIDE}
    if isinstance(value, list):
        return [plain(member) for member in value]
    return value


TABLE = {
    "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}, {"AttributeName": "sk", "KeyType": "RANGE"}],
    "AttributeDefinitions": [
        {"AttributeName": "pk", "AttributeType": "S"},
        {"AttributeName": "sk", "AttributeType": "N"},
    ],
    "BillingMode": "PAY_PER_REQUEST",
}
_NUMBERS = itertools.count()


@examples(15, suppress_health_check=list(HealthCheck), phases=[Phase.generate])
@given(sent=requests)
def test_random_requests_are_answered_as_moto_answers_them(ours, theirs, sent):
    name = f"random-{next(_NUMBERS)}"
    for client in (ours, theirs):
        client.create_table(TableName=name, **TABLE)
    for number, (operation, asked) in enumerate(sent):
        takes_away = operation == "update_item" and not {"SET", "ADD"} & set(
            asked["UpdateExpression"].split()
        )
        if takes_away and not ask(ours, name, "get_item", {"Key": asked["Key"]}):
            continue  # moto makes an item
        here, there = (ask(client, name, operation, asked) for client in (ours, theirs))
        assert here == there, f"request {number}: {operation} {json.dumps(asked, default=repr)}"
    for client in (ours, theirs):
        client.delete_table(TableName=name)


# Errors of moto, and the correct behaviour


@pytest.fixture
def table(ours: Any) -> Any:
    """A table of ours with one item."""
    name = f"wrong-{next(_NUMBERS)}"
    ours.create_table(TableName=name, **TABLE)
    item = {**KEYS[0], "a": {"BOOL": True}, "b": {"S": "x"}, "l": {"L": [{"BOOL": False}]}}
    ours.put_item(TableName=name, Item=item)
    yield name
    ours.delete_table(TableName=name)


@pytest.mark.parametrize(
    ("text", "value", "count"),
    [
        ("a = :v", {"N": "1"}, 0),
        ("a <> :v", {"N": "1"}, 1),
        ("a IN (:v)", {"N": "1"}, 0),
        ("contains(l, :v)", {"N": "0"}, 0),
        ("absent = :v", {"NULL": True}, 0),
        ("absent <> :v", {"NULL": True}, 1),
        ("absent IN (:v)", {"NULL": True}, 0),
        ("b < :v", {"N": "1"}, 0),
        ("b >= :v", {"N": "1"}, 0),
        ("NOT b >= :v", {"N": "1"}, 1),
        ("b BETWEEN :v AND :v", {"N": "1"}, 0),
        ("absent < :v", {"N": "1"}, 0),
    ],
)
def test_types_are_distinguished(ours, table, text, value, count):
    """In Python, True == 1 == Decimal(1), and 1 < "x" raises TypeError. moto does the same, and NULL equals absence
    there.

    Source: developer guide, 'Comparison operator and function reference'; alternator test_condition_expression.py.
    """
    assert (
        ours.scan(TableName=table, FilterExpression=text, ExpressionAttributeValues={":v": value})["Count"]
        == count
    )


@pytest.mark.parametrize("text", ["REMOVE a", "REMOVE m.x", "REMOVE l[0]", "DELETE t :v"])
def test_taking_away_from_no_item_does_nothing(ours, table, text):
    """Moto makes an item, or refuses the path. Source: alternator test_update_expression.py,
    test_nested_attribute_remove_from_missing_item, and test_item.py, test_update_item_non_existent."""
    values = {"ExpressionAttributeValues": {":v": {"SS": ["x"]}}} if ":v" in text else {}
    answer = ours.update_item(
        TableName=table, Key=KEYS[5], UpdateExpression=text, ReturnValues="ALL_OLD", **values
    )
    assert "Attributes" not in answer
    assert "Item" not in ours.get_item(TableName=table, Key=KEYS[5])


def test_a_page_ended_by_its_limit_has_a_key_at_the_end_too(ours, table):
    """Moto looks ahead. Source: docs/protocols/dynamodb.md rule 27."""
    asked = {"TableName": table, "Limit": 1, "KeyConditionExpression": "pk = :p",
             "ExpressionAttributeValues": {":p": KEYS[0]["pk"]}}  # fmt: skip
    key = ours.query(**asked)["LastEvaluatedKey"]
    rest = ours.query(**asked, ExclusiveStartKey=key)
    assert (rest["Items"], "LastEvaluatedKey" in rest) == ([], False)


@pytest.mark.parametrize(
    ("text", "mode", "shown"),
    [
        ("SET b = :x", "UPDATED_NEW", {"b": {"S": "x"}}),
        ("SET b = :x", "UPDATED_OLD", {"b": {"S": "x"}}),
        ("SET m.y = :x", "UPDATED_NEW", {"m": {"M": {"y": {"S": "x"}}}}),
        ("SET m.y = :x", "UPDATED_OLD", None),
        ("SET m.x = :x", "UPDATED_OLD", {"m": {"M": {"x": {"N": "1"}}}}),
        ("REMOVE m.x", "UPDATED_OLD", {"m": {"M": {"x": {"N": "1"}}}}),
        ("REMOVE m.x", "UPDATED_NEW", None),
        ("SET c = :x REMOVE b", "UPDATED_NEW", {"c": {"S": "x"}}),
        ("SET c = :x REMOVE b", "UPDATED_OLD", {"b": {"S": "x"}}),
    ],
)
def test_updated_values_are_the_leaves_that_were_written(ours, table, text, mode, shown):
    """Only written leaves are returned, changed or not. moto returns whole maps, and omits unchanged values.

    Source: alternator test_returnvalues.py, test_update_item_returnvalues_updated_old and _updated_new and those of
    nested paths.
    """
    ours.put_item(
        TableName=table, Item={**KEYS[1], "b": {"S": "x"}, "m": {"M": {"x": {"N": "1"}, "z": {"N": "2"}}}}
    )
    values = {"ExpressionAttributeValues": {":x": {"S": "x"}}} if ":x" in text else {}
    answer = ours.update_item(
        TableName=table, Key=KEYS[1], UpdateExpression=text, ReturnValues=mode, **values
    )
    assert answer.get("Attributes") == shown
