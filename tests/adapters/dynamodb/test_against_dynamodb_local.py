"""Random requests to this server and to DynamoDB Local, which contains the service's parser: their answers agree.

DynamoDB Local is not the service. The table KNOWN has its differences, each with the public source of our answer.
"""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterator
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import urllib3
from hypothesis import given
from hypothesis import strategies as st

from tests.adapters.dynamodb.random_requests import NAME, TABLES, Table, requests, transactions
from tests.adapters.dynamodb.random_statements import statements
from tests.support.differential import Answer, Asked, Known, both_servers, compare, many
from tests.support.examples import examples
from tests.support.live_dynamodb import Live
from tests.support.waiting import PATIENCE_S

pytestmark = pytest.mark.clients


def _fault(answer: Answer) -> str:
    """Return the kind of a ValidationException: its text up to the first detail."""
    return re.split(r"[;\[{]", answer.text)[0] if answer.code == "ValidationException" else ""


def _two_faults(asked: Asked, here: Answer, there: Answer) -> bool:
    """Both refuse the request, for different reasons. Texts of one reason are compared. All texts have tests elsewhere."""
    return "" != _fault(here) != _fault(there) != ""


def _condition_first(asked: Asked, here: Answer, there: Answer) -> bool:
    return (here.code, there.code) == ("ValidationException", "ConditionalCheckFailedException")


def _other_path(asked: Asked, here: Answer, there: Answer) -> bool:
    return _fault(here) == _fault(there) and "document paths overlap" in here.text


def _other_order_of_names(asked: Asked, here: Answer, there: Answer) -> bool:
    return here.status == 400 and sorted(here.text) == sorted(there.text)


def _removed_from_nothing(asked: Asked, here: Answer, there: Answer) -> bool:
    return here.status == 200 and "REMOVE" in str(asked) and there.text.startswith("The document path")


def _unasked_capacity(asked: Asked, here: Answer, there: Answer) -> bool:
    return asked[0] == "DeleteItem" and {**there.body, "ConsumedCapacity": None} == {
        **here.body,
        "ConsumedCapacity": None,
    }


def _whole_attribute(asked: Asked, here: Answer, there: Answer) -> bool:
    """The request returns what it wrote inside of a list or map."""
    text = asked[1].get("UpdateExpression") or asked[1].get("Statement", "")
    returns = asked[1].get("ReturnValues", "").startswith("UPDATED") or "RETURNING MODIFIED" in text
    nested = re.search(r"[a-z](\[|\.[a-z])", text) is not None
    return returns and nested and (here.status, there.status) == (200, 200)


def _bytes_in_a_text(asked: Asked, here: Answer, there: Answer) -> bool:
    return "java.nio" in there.text and "operand: AttributeValue" in here.text


def _refuses_a_transaction(asked: Asked, here: Answer, there: Answer) -> bool:
    """The item of a member does not suit its update."""
    return "ValidationError" in here.text and _fault(there) != "" and asked[0] == "TransactWriteItems"


def _wrong_transaction(asked: Asked, here: Answer, there: Answer) -> bool:
    """DynamoDB Local finds the fault after the conditions, and takes 1 and 1.0 for two keys."""
    if asked[0] != "TransactWriteItems" or here.code != "ValidationException":
        return False
    return there.code == "TransactionCanceledException" or here.text.endswith(
        "multiple operations on one item"
    )


_KEY_CONDITIONS = re.compile(
    "One or more parameter values (were invalid: Condition parameter type does not match schema type"
    "|are not valid. The AttributeValue for a key attribute cannot contain an empty)"
)


def _key_condition(asked: Asked, here: Answer, there: Answer) -> bool:
    """A SELECT compares a key attribute of the table or index with a value that no key has."""
    return asked[0] == "ExecuteStatement" and _KEY_CONDITIONS.match(there.text) is not None


def _index_key_of_a_wrong_type(asked: Asked, here: Answer, there: Answer) -> bool:
    told = "Type mismatch for Index Key" in str(here) or "Key attributes must be scalars" in here.text
    return told and there.status == 200


_SORTS = {(index.name, index.sort.partition(":")[0]) for table in TABLES for index in table.indexes}


def _ties(asked: Asked, here: Answer, there: Answer) -> bool:
    """Both return the same items, in an order in which the sort keys of the index agree."""
    if asked[0] != "Query" or "IndexName" not in asked[1] or (here.status, there.status) != (200, 200):
        return False
    ours, theirs = ([item for page in answer.body for item in page["Items"]] for answer in (here, there))
    sorts = [sort for name, sort in _SORTS if name == asked[1]["IndexName"]]
    agree = any([item.get(sort) for item in ours] == [item.get(sort) for item in theirs] for sort in sorts)
    return agree and sorted(map(json.dumps, ours)) == sorted(map(json.dumps, theirs))


ALTERNATOR = "scylladb/scylladb, test/alternator/"


def _failure(asked: Asked, ours: Answer, theirs: Answer) -> bool:
    return theirs.code == "InternalFailure" and ours.status < 500


KNOWN = [
    Known("which of several faults is reported", "docs/protocols/dynamodb.md, rule 5", _two_faults),
    Known(
        "whether a condition or a wrong update is reported first",
        "not on record. Ours is found before the item is read (docs/explain/conformance.md)",
        _condition_first,
    ),
    Known("the path that overlaps another one", "architect/dynalite, test/getItem.js", _other_path),
    Known("the order of names in a text", "order of a Java HashSet", _other_order_of_names),
    Known(
        "REMOVE of a path in no item",
        ALTERNATOR + "test_update_expression.py, test_nested_attribute_remove_from_missing_item",
        _removed_from_nothing,
    ),
    Known("DeleteItem returns capacity unasked", "API reference, ReturnConsumedCapacity", _unasked_capacity),
    Known(
        "what an update wrote inside of an attribute is returned alone",
        ALTERNATOR + "test_returnvalues.py, test_update_item_returnvalues_nested",
        _whole_attribute,
    ),
    Known(
        "an item that does not suit its update cancels a transaction",
        "aws/aws-sdk-net issue 1292",
        _refuses_a_transaction,
    ),
    Known(
        "a transaction with a wrong expression or two operations on one item is refused before its conditions count",
        "docs/protocols/dynamodb.md, rule 36, and API reference, TransactWriteItems",
        _wrong_transaction,
    ),
    Known(
        "a SELECT may compare a key with a value that no key has, unless it reads by this key",
        "texts of nubo-db/dynamodb-conformance 0ba4393, partiql, which DynamoDB Local does not have",
        _key_condition,
    ),
    Known(
        "an update gives the key of an index a wrong type",
        ALTERNATOR + "test_gsi.py, test_gsi_wrong_type_attribute_update",
        _index_key_of_a_wrong_type,
    ),
    Known(
        "equal keys of an index have no order",
        "developer guide, Using Global Secondary Indexes: keys of an index need not be unique",
        _ties,
    ),
    Known("bytes in a text", "Java's name of an object", _bytes_in_a_text),
    Known(
        "IS MISSING of an index key, and other statements that make DynamoDB Local fail",
        "developer guide, Error handling: status 500 is a failure of the server, never the answer to a request",
        _failure,
    ),
]


# DynamoDB Local 2.6.1 does not have the frames of 2026 (docs/protocols/dynamodb.md rule 11).
_FRAME = "1 validation error detected: "


class Server:
    """A server of DynamoDB, without the differences between two servers that mean nothing."""

    def __init__(self, url: str) -> None:
        self._live = Live(url)
        self._pool = urllib3.PoolManager()

    def create(self, table: Table, name: str) -> None:
        self._live.create(*table.keys, name=name, indexes=table.indexes)

    def delete(self, name: str) -> None:
        self.call("DeleteTable", {"TableName": name})

    def call(self, operation: str, given: Any) -> Answer:
        """Send one request."""
        headers = self._live.headers(operation)
        body = json.dumps(given).encode()
        reply = self._pool.request(
            "POST", self._live.url, body=body, headers=headers, timeout=PATIENCE_S, retries=False
        )
        answer = reply.json()
        if reply.status == 200:
            return Answer(200, "", "", plain(answer))
        code = answer.pop("__type").rpartition("#")[2]
        text = answer.pop("message", answer.pop("Message", "")).removeprefix(_FRAME)
        text = re.sub(r"\{N:([^}]*)\}", lambda found: number(found[1]), text)
        return Answer(reply.status, code, text, plain(answer))

    def ask(self, table: str, asked: Asked) -> Answer:
        """Send a request, and follow the pages of a query or scan."""
        operation, given = asked
        given = json.loads(json.dumps(given).replace(NAME, table))
        pages = [self.call(operation, given)]
        if operation not in ("Query", "Scan", "ExecuteStatement"):
            return pages[0]
        end, start = (
            ("NextToken", "NextToken")
            if operation == "ExecuteStatement"
            else ("LastEvaluatedKey", "ExclusiveStartKey")
        )
        while (last := pages[-1]).status == 200 and end in last.body:
            pages.append(self.call(operation, {**given, start: last.body[end]}))
            assert len(pages) < 100, f"{asked} has no end"
        if pages[-1].status != 200:
            return pages[-1]
        return Answer(200, "", "", whole(asked, [page.body for page in pages]))


def whole(asked: Asked, pages: list[Any]) -> Any:
    """Return the pages of a query, whose order is defined, else what all pages return together.

    An empty last page does not count. DynamoDB Local looks ahead and does not announce it, which the service does
    (docs/protocols/dynamodb.md rule 27).
    """
    operation = asked[0]
    if operation == "Query":
        *first, last = [page for page in pages if page["ScannedCount"]] or pages[:1]
        return [*first, {**last, "LastEvaluatedKey": None}]
    if operation == "ExecuteStatement":
        return sorted((item for page in pages for item in page["Items"]), key=json.dumps)
    items = sorted((item for page in pages for item in page.get("Items", ())), key=json.dumps)
    return items, *(sum(page[count] for page in pages) for count in ("Count", "ScannedCount"))


def plain(value: Any) -> Any:
    """Return a value with sorted members, sorted sets, and numbers by value."""
    if isinstance(value, dict):
        if value.keys() == {"N"}:
            return {"N": number(value["N"])}
        if value.keys() == {"NS"}:
            return {"NS": sorted(map(number, value["NS"]))}
        if len(value) == 1 and value.keys() <= {"SS", "BS"}:
            return {tag: sorted(members) for tag, members in value.items()}
        return {name: plain(value[name]) for name in sorted(value)}
    return [plain(member) for member in value] if isinstance(value, list) else value


def number(text: str) -> str:
    """Return a number by its value.

    DynamoDB Local returns what an update sets as it was written, also -0 (docs/protocols/dynamodb.md rule 21).
    """
    plain_digits = "0" if Decimal(text) == 0 else format(Decimal(text), "f")
    return plain_digits.rstrip("0").rstrip(".") if "." in plain_digits else plain_digits


SERVERS = ("dynamodb-local", {"dialects": "dynamodb"})


@pytest.fixture(scope="module")
def servers(sqlite_template: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Server]]:
    """This server and DynamoDB Local."""
    name, settings = SERVERS
    with both_servers(name, tmp_path_factory.mktemp(name), sqlite_template, **settings) as urls:
        yield [Server(url) for url in urls]


_NUMBERS = itertools.count()
scenarios = st.sampled_from(TABLES).flatmap(
    lambda table: st.tuples(
        st.just(table), many(requests(table) | requests(table) | statements(table) | transactions(table))
    )
)


@examples(40)
@given(scenario=scenarios)
def test_random_requests_are_answered_as_dynamodb_local_answers_them(servers, scenario):
    table, sent = scenario
    name = f"random-{next(_NUMBERS)}"
    for server in servers:
        server.create(table, name)
    ours, theirs = servers
    compare(sent, partial(ours.ask, name), partial(theirs.ask, name), KNOWN)
    for server in servers:
        server.delete(name)
