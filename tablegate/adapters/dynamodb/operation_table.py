"""The operation table: the operations that are always imported, and those of capabilities.

An operation that is absent is answered with UnknownOperationException.
"""

from __future__ import annotations

from collections.abc import Mapping

from tablegate.adapters.dynamodb.capabilities import OPERATION_GROUPS, STREAMS
from tablegate.adapters.dynamodb.operation import Operation, by_name
from tablegate.adapters.dynamodb.operations import items, queries, transactions
from tablegate.adapters.dynamodb.tables import resource_policies, tables, tags, time_to_live
from tablegate.adapters.dynamodb.validation import item_rules, resource_rules, shortening, table_rules
from tablegate.adapters.dynamodb.validation.item_schemas import ITEM_REQUESTS, TRANSACTION_REQUESTS
from tablegate.adapters.dynamodb.validation.table_schemas import RESOURCE_REQUESTS, TABLE_REQUESTS
from tablegate.gateway.dialects.adapter import OperationTable
from tablegate.gateway.model.authorization.permissions import Channel, Permission, Purpose

_P = Permission
# Expressions take up to 30 us for each byte.
_EXPRESSIONS, _TRANSACTIONS = 4 << 10, 16 << 10
_COMMON = by_name(
    Operation("GetItem", items.get_item, ITEM_REQUESTS, Purpose((_P.READ,)), rule=item_rules.get_item),
    Operation(
        "PutItem", items.put_item, ITEM_REQUESTS, Purpose((_P.PUT,)), rule=item_rules.put_item,
        billed_bytes=shortening.PUT_BYTES,
    ),
    Operation("UpdateItem", items.update_item, ITEM_REQUESTS, Purpose((_P.UPDATE,)), rule=item_rules.update_item),
    Operation("DeleteItem", items.delete_item, ITEM_REQUESTS, Purpose((_P.DELETE,)), rule=item_rules.delete_item),
    Operation(
        "Query", queries.query, ITEM_REQUESTS, Purpose((_P.QUERY,)), rule=item_rules.query,
        long_from_bytes=_EXPRESSIONS,
    ),
    Operation("Scan", queries.scan, ITEM_REQUESTS, Purpose((_P.SCAN,)), rule=item_rules.scan, long_from_bytes=_EXPRESSIONS),
    Operation(
        "BatchGetItem", items.batch_get_item, ITEM_REQUESTS, Purpose((_P.READ,), Channel.BATCH),
        rule=item_rules.batch_get, billed_bytes=500_000,
    ),
    Operation(
        "BatchWriteItem", items.batch_write_item, ITEM_REQUESTS, Purpose((_P.PUT, _P.DELETE), Channel.BATCH),
        rule=item_rules.batch_write,
    ),
    Operation(
        "TransactGetItems", transactions.transact_get_items, TRANSACTION_REQUESTS,
        Purpose((_P.READ,), Channel.TRANSACTION), rule=item_rules.transact_get, long_from_bytes=_TRANSACTIONS,
        billed_bytes=500_000,
    ),
    Operation(
        "TransactWriteItems", transactions.transact_write_items, TRANSACTION_REQUESTS,
        Purpose((_P.PUT, _P.UPDATE, _P.DELETE, _P.CHECK), Channel.TRANSACTION), rule=item_rules.transact_write,
        long_from_bytes=_TRANSACTIONS, billed_bytes=None,
    ),
    Operation(
        "CreateTable", tables.create_table, TABLE_REQUESTS, Purpose((_P.CREATE,)),
        member_permissions={"Tags": _P.TAG, "ResourcePolicy": _P.WRITE_POLICY}, rule=table_rules.create_table,
    ),
    Operation("DescribeTable", tables.describe_table, TABLE_REQUESTS, Purpose((_P.DESCRIBE,))),
    Operation("ListTables", tables.list_tables, TABLE_REQUESTS, Purpose((_P.LIST,))),
    Operation("UpdateTable", tables.update_table, TABLE_REQUESTS, Purpose((_P.ALTER,)), rule=table_rules.update_table),
    Operation("DeleteTable", tables.delete_table, TABLE_REQUESTS, Purpose((_P.DROP,))),
    Operation("TagResource", tags.tag_resource, RESOURCE_REQUESTS, Purpose((_P.TAG,)), rule=resource_rules.tag_resource),
    Operation(
        "UntagResource", tags.untag_resource, RESOURCE_REQUESTS, Purpose((_P.UNTAG,)),
        rule=resource_rules.untag_resource,
    ),
    Operation(
        "ListTagsOfResource", tags.list_tags, RESOURCE_REQUESTS, Purpose((_P.READ_TAGS,)),
        rule=resource_rules.list_tags,
    ),
    Operation("UpdateTimeToLive", time_to_live.update_time_to_live, TABLE_REQUESTS, Purpose((_P.ALTER_EXPIRY,))),
    Operation("DescribeTimeToLive", time_to_live.describe_time_to_live, TABLE_REQUESTS, Purpose((_P.DESCRIBE_EXPIRY,))),
    Operation("DescribeLimits", tables.describe_limits, TABLE_REQUESTS, Purpose((_P.READ_ACCOUNT,))),
    Operation("DescribeEndpoints", tables.describe_endpoints, TABLE_REQUESTS, Purpose((_P.READ_ACCOUNT,))),
    Operation("GetResourcePolicy", resource_policies.get_resource_policy, RESOURCE_REQUESTS, Purpose((_P.READ_POLICY,))),
    Operation("PutResourcePolicy", resource_policies.put_resource_policy, RESOURCE_REQUESTS, Purpose((_P.WRITE_POLICY,))),
    Operation(
        "DeleteResourcePolicy", resource_policies.delete_resource_policy, RESOURCE_REQUESTS,
        Purpose((_P.REMOVE_POLICY,)),
    ),
)  # fmt: skip
OPERATIONS = OperationTable(_COMMON, OPERATION_GROUPS)
NAMES: Mapping[str, str] = {
    f"DynamoDB{'Streams' if name in STREAMS else ''}_20120810.{name}": name for name in OPERATIONS
}
"""X-Amz-Target -> name of the operation."""
