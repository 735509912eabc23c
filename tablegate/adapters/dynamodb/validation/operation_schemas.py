"""The inputs of all operations, as data, and the entry point of the checks: `check(operation, body)`.

schemas/ has the members, their constraints, and their order of checks. fast_validator.py and full_validator.py
check a shape. rules/ has the rules about several members.

Sources: members and constraints from botocore 1.44.5 service-2.json. The order and the enum lists are from
dynalite (captured from the service). The service still checks members in this order (paritysuite, September
2026).
"""

from __future__ import annotations

from functools import cache
from typing import Any

import orjson

from tablegate.adapters.dynamodb.validation import fast_validator, long_members, shortening
from tablegate.adapters.dynamodb.validation.rules import item_rules, resource_rules, table_rules, vector_rules
from tablegate.adapters.dynamodb.validation.rules.rule_context import RuleContext
from tablegate.adapters.dynamodb.validation.schemas.backup_schemas import BACKUP_REQUESTS
from tablegate.adapters.dynamodb.validation.schemas.item_schemas import ITEM_REQUESTS
from tablegate.adapters.dynamodb.validation.schemas.job_schemas import JOB_REQUESTS
from tablegate.adapters.dynamodb.validation.schemas.replication_schemas import replication_requests
from tablegate.adapters.dynamodb.validation.schemas.resource_schemas import RESOURCE_REQUESTS
from tablegate.adapters.dynamodb.validation.schemas.schema_types import Request
from tablegate.adapters.dynamodb.validation.schemas.statement_schemas import STATEMENT_REQUESTS
from tablegate.adapters.dynamodb.validation.schemas.stream_schemas import STREAM_REQUESTS
from tablegate.adapters.dynamodb.validation.schemas.table_schemas import TABLE_REQUESTS
from tablegate.adapters.dynamodb.validation.schemas.transaction_schemas import TRANSACTION_REQUESTS
from tablegate.adapters.dynamodb.wire import limits
from tablegate.adapters.dynamodb.wire.errors import ITEM_WRITES, ServiceError, serialization
from tablegate.gateway.model import fast_paths

REQUESTS: dict[str, Request] = {
    **ITEM_REQUESTS,
    **TRANSACTION_REQUESTS,
    **STATEMENT_REQUESTS,
    **TABLE_REQUESTS,
    **BACKUP_REQUESTS,
    **RESOURCE_REQUESTS,
    **STREAM_REQUESTS,
    **JOB_REQUESTS,
    **replication_requests(),
}
"""The inputs of all operations, by operation."""

_RULES: dict[str, fast_validator.Rule] = {
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


@cache
def checker(operation: str, is_deep: bool = False) -> fast_validator.Checker:
    """Return the checks of one operation, ready to be called with a body. Cached. `is_deep`: see Wording."""
    request = REQUESTS[operation]
    contexts = (RuleContext(operation, is_deep, good=False), RuleContext(operation, is_deep, good=True))
    fast = fast_paths.choose(
        fast_validator.fast_check(fast_validator.strict(request)), fast_validator.leave_to_full_validator
    )
    unruled = item_rules.UNRULED.get(operation, frozenset())
    return fast_validator.Checker(request, fast, _RULES.get(operation), contexts, unruled)


def check(operation: str, body: Any) -> dict[str, Any]:
    """Return the cleaned input of an operation, one of REQUESTS.

    It has known members only, of the right JSON types, without nulls, and attribute values in canonical form.
    `body` is decoded JSON and is changed in place. Items of puts become `values.ParsedItem`.

    Raises ServiceError: SerializationException for JSON types, then ValidationException for member constraints and
    for rules that need no table, in the service's order.
    """
    return checker(operation)(body)


def parse(operation: str, text: bytes) -> Any:
    """Parse the JSON of a large request.

    Maps and lists that are longer than allowed may be shortened. Raises ValueError.
    """
    request = REQUESTS.get(operation)
    if request is None:
        return orjson.loads(text)
    return long_members.parse(text, shortening.member_limits(request.shape))


def shorten(operation: str, body: Any) -> None:
    """Drop excess members in place: for large bodies, before `check`."""
    if operation in REQUESTS:
        shortening.shorten(REQUESTS[operation].shape, body)


def refusal_of_dense(operation: str, text: bytes) -> ServiceError | None:
    """Return the error for a request that certainly exceeds the operation's limits, so that it need not be parsed.
    None otherwise.
    """
    if operation not in REQUESTS or not shortening.exceeds_limits(operation, text):
        return None
    if operation in ("PutItem", "BatchWriteItem"):
        return RuleContext(operation).refused("item-size")
    return serialization()


def error_for_body(operation: str, text: bytes, refusal: ServiceError) -> ServiceError:
    """Return the error for a request that `check` rejected, depending on the text of its body.

    Writes of one item with very deeply nested bodies get the texts of an older validation (`Wording.is_deep`). The
    depth of large bodies is not measured.
    """
    if operation == "SearchVectors":
        return vector_rules.refusal_of_body(parse(operation, text), text, refusal)
    if operation in ITEM_WRITES and len(text) <= limits.LARGE_REQUEST_BYTES:
        if text.count(b"{") + text.count(b"[") <= limits.JSON_LEVELS:
            return refusal
        body = orjson.loads(text)
        if _is_deep(body):
            try:
                checker(operation, is_deep=True)(body)
            except ServiceError as older:
                return older
    return refusal


def _is_deep(body: Any) -> bool:
    """True if objects and lists are nested deeper than the newer validation reads."""
    level = [body]
    for _ in range(limits.JSON_LEVELS + 1):
        level = [node for node in level if isinstance(node, dict | list)]
        level = [part for node in level for part in (node.values() if isinstance(node, dict) else node)]
    return bool(level)
