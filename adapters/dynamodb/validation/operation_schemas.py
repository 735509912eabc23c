"""What each operation takes, as data, and the entry point of the checks: `check(operation, body, style)`.

Members, their constraints, and the order in which the service looks at them stand in schemas/. How a shape is checked is in
fast_validator.py and full_validator.py. What members mean together is in rules/.

Sources: members and constraints from botocore 1.44.5 service-2.json; the order and the enum lists from dynalite (captured
from the service, which still looks at members in this order: paritysuite, September 2026).
"""

from __future__ import annotations

from functools import cache
from typing import Any

import orjson

from tablegate.adapters.dynamodb.validation import long_members, shortening
from tablegate.adapters.dynamodb.validation.fast_validator import (
    Checker,
    Rule,
    fast_check,
    leave_to_full_validator,
)
from tablegate.adapters.dynamodb.validation.rules import item_rules, resource_rules, table_rules, vector_rules
from tablegate.adapters.dynamodb.validation.rules.rule_context import RuleContext
from tablegate.adapters.dynamodb.validation.schemas.backup_schemas import backup_requests
from tablegate.adapters.dynamodb.validation.schemas.item_schemas import item_requests
from tablegate.adapters.dynamodb.validation.schemas.job_schemas import job_requests
from tablegate.adapters.dynamodb.validation.schemas.replication_schemas import replication_requests
from tablegate.adapters.dynamodb.validation.schemas.resource_schemas import resource_requests
from tablegate.adapters.dynamodb.validation.schemas.schema_parts import NAME_OR_ARN, structure
from tablegate.adapters.dynamodb.validation.schemas.schema_types import (
    Request,
    Structure,
)
from tablegate.adapters.dynamodb.validation.schemas.statement_schemas import statement_requests
from tablegate.adapters.dynamodb.validation.schemas.stream_schemas import stream_requests
from tablegate.adapters.dynamodb.validation.schemas.table_schemas import table_requests
from tablegate.adapters.dynamodb.validation.schemas.transaction_schemas import transaction_requests
from tablegate.adapters.dynamodb.wire import limits
from tablegate.adapters.dynamodb.wire.errors import CLASSIC, LATEST, ServiceError, serialization
from tablegate.gateway.model import fast_paths


def check(operation: str, body: Any, style: str) -> dict[str, Any]:
    """The cleaned input of an operation: known members only, of the right JSON types, nulls dropped, attribute values in
    canonical form. `body` is decoded JSON and is changed in place. Items of puts become `values.Item`.

    Raises ServiceError: SerializationException for JSON types, then ValidationException for member constraints and for
    what needs no table, in the order of the style. `operation` must be one of OPERATIONS.
    """
    return checker(operation, style)(body)


def parse(operation: str, text: bytes, style: str) -> Any:
    """The JSON of a large request. Of maps and lists with more members than it may have, not all may be there.

    Raises ValueError.
    """
    if operation not in _requests(style):
        return orjson.loads(text)
    return long_members.parse(text, shortening.most_of(_requests(style)[operation].shape))


def shorten(operation: str, body: Any, style: str) -> None:
    """Drop, in place, what is beyond what the operation may have: for large bodies, before `check`."""
    if operation in _requests(style):
        shortening.shorten(_requests(style)[operation].shape, body)


def refusal_of_dense(operation: str, text: bytes, style: str) -> ServiceError | None:
    """The refusal of a request that need not be parsed, because it surely has more than one of this operation may have."""
    if operation not in _requests(style) or not shortening.has_too_much(operation, text):
        return None
    if operation in ("PutItem", "BatchWriteItem"):
        return RuleContext(operation, style, good=False).refused("item-size")
    return serialization()


def told_of_body(operation: str, text: bytes, style: str, refusal: ServiceError) -> ServiceError:
    """The error of a request that `check` refused, after a look at the text of its body.

    Three operations check very deeply nested bodies with the older validation, which uses the texts of the classic style
    (paritysuite deepRequests.test.ts, two regions, 2026-10-09). The depth of large bodies is not measured."""
    if operation == "SearchVectors":
        return vector_rules.refusal_of_body(parse(operation, text, style), text, refusal)
    if operation in _LEFT_TO_OLDER and style != CLASSIC and len(text) <= limits.LARGE_REQUEST_BYTES:
        if text.count(b"{") + text.count(b"[") <= limits.JSON_LEVELS:
            return refusal
        body = orjson.loads(text)
        if _is_deep(body):
            try:
                check(operation, body, CLASSIC)
            except ServiceError as older:
                return older
    return refusal


_LEFT_TO_OLDER = frozenset({"PutItem", "UpdateItem", "DeleteItem"})


def _is_deep(body: Any) -> bool:
    """True if more objects and lists stand in one another than the newer validation reads."""
    level = [body]
    for _ in range(limits.JSON_LEVELS + 1):
        level = [each for each in level if isinstance(each, dict | list)]
        level = [part for each in level for part in (each.values() if isinstance(each, dict) else each)]
    return bool(level)


@cache
def checker(operation: str, style: str) -> Checker:
    """What `check` calls: the checks of one operation, ready to be called with a body and the style."""
    request = _requests(style)[operation]
    contexts = RuleContext(operation, style, good=False), RuleContext(operation, style, good=True)
    fast = fast_paths.choose(fast_check(_strict(request)), leave_to_full_validator)
    unruled = item_rules.UNRULED.get(operation, frozenset())
    return Checker(request, fast, _RULES.get(operation), contexts, unruled)


def _strict(request: Request) -> Structure:
    """The request's shape, with what is told alone (`Request.named`) among the constraints."""
    shape = request.shape
    if not request.named:
        return shape
    return structure(
        shape.java, {**shape.members, request.named: NAME_OR_ARN}, {*shape.required, request.named}
    )


@cache
def _requests(style: str) -> dict[str, Request]:
    return {
        **item_requests(style),
        **transaction_requests(),
        **statement_requests(),
        **table_requests(style),
        **backup_requests(),
        **resource_requests(),
        **stream_requests(),
        **job_requests(style),
        **replication_requests(),
    }


_RULES: dict[str, Rule] = {
    "PutItem": item_rules.put_item,
    "UpdateItem": item_rules.update_item,
    "DeleteItem": item_rules.delete_item,
    "GetItem": item_rules.get_item,
    "Query": item_rules.query,
    "Scan": item_rules.scan,
    "SearchVectors": vector_rules.search_vectors,
    "BatchGetItem": item_rules.batch_get,
    "BatchWriteItem": item_rules.batch_write,
    "TransactGetItems": item_rules.transact_get,
    "TransactWriteItems": item_rules.transact_write,
    "CreateTable": table_rules.create_table,
    "UpdateTable": table_rules.update_table,
    "ImportTable": table_rules.import_table,
    "TagResource": resource_rules.tag_resource,
    "UntagResource": resource_rules.untag_resource,
    "ListTagsOfResource": resource_rules.list_tags,
    "GetShardIterator": resource_rules.get_shard_iterator,
}

OPERATIONS: frozenset[str] = frozenset(_requests(LATEST))
"""Every operation that `check` knows."""
