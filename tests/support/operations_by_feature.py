"""Groups of the operations by feature, for the reference page that compares the dialects.

`tests/repository/test_reference.py` requires each operation of the code to be in exactly one group.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

_ENTITY = r"/TABLE\(PartitionKey='P',RowKey='R'\)"

# Feature: regular expressions of the whole names, without the API's version. One expression for each dialect that
# has operations of its own for the feature.
FEATURES: Mapping[str, Mapping[str, str]] = {
    "read a row": {"dynamodb": "GetItem", "azuretable": f"GET {_ENTITY}", "tablestore": "GetRow"},
    "write a row": {
        "dynamodb": "(Put|Update|Delete)Item",
        "azuretable": f"POST /TABLE|(PUT|MERGE|PATCH|DELETE) {_ENTITY}",
        "tablestore": "(Put|Update|Delete)Row",
    },
    "read a range or all rows": {
        "dynamodb": "Query|Scan",
        "azuretable": "GET /TABLE",
        "tablestore": "GetRange|BulkExport|ComputeSplitPointsBySize",
    },
    "independent rows in one request": {
        "dynamodb": "Batch(Get|Write)Item",
        "tablestore": "Batch(Get|Write)Row|BulkImport",
    },
    "transactions": {
        "dynamodb": "Transact(Get|Write)Items",
        "azuretable": r"POST /\$batch",
        "tablestore": "(StartLocal|Commit|Abort)Transaction",
    },
    "query language": {
        "dynamodb": "(Batch)?ExecuteStatement|ExecuteTransaction",
        "tablestore": "SQLQuery",
    },
    "tables": {
        "dynamodb": "(Create|Update|Delete|Describe)Table|ListTables",
        "azuretable": r"(GET|POST) /Tables|(GET|DELETE) /Tables\('TABLE'\)",
        "tablestore": "(Create|Update|Delete|Describe|List)Table|(Add|Delete)DefinedColumn",
    },
    "secondary indexes": {"tablestore": "(Create|Drop)Index"},
    "vector search": {"dynamodb": "SearchVectors"},
    "time to live": {"dynamodb": "(Update|Describe)TimeToLive"},
    "change streams": {
        "dynamodb": "DescribeStream|ListStreams|GetShardIterator|GetRecords",
        "tablestore": "DescribeStream|ListStream|GetShardIterator|GetStreamRecord",
    },
    "tunnels": {"tablestore": "tunnel/.*"},
    "delivery of changes to Kinesis": {"dynamodb": ".*KinesisStreamingDestination"},
    "backups and point-in-time recovery": {"dynamodb": ".*Backups?|RestoreTable(From|To).*"},
    "exports, imports, bulk puts": {
        "dynamodb": ".*(Export|Import)s?|ExportTableToPointInTime|ImportTable|StartBulkPutItems|.*BulkOperations?",
    },
    "global tables": {"dynamodb": ".*GlobalTables?|.*GlobalTableSettings|.*ReplicaAutoScaling"},
    "policies of tables": {"dynamodb": ".*ResourcePolicy", "azuretable": r".* /TABLE\?comp=acl"},
    "tags": {"dynamodb": "(Tag|Untag)Resource|ListTagsOfResource"},
    "account and service": {
        "dynamodb": "DescribeLimits|DescribeEndpoints|.*ContributorInsights",
        "azuretable": r".* /\?restype=service.*",
    },
    "search indexes": {
        "tablestore": "(Create|Describe|List|Update|Delete)SearchIndex|Search|ComputeSplits|ParallelScan"
    },
    "listed as empty, not supported": {"tablestore": "ListTimeseriesTable"},
}


def features_of(dialect: str, operation: str) -> list[str]:
    """Return the features that an operation belongs to. `operation` has the API's version before a dot, if any."""
    name = operation.rpartition(".")[2]
    return [
        feature
        for feature, patterns in FEATURES.items()
        if dialect in patterns and re.fullmatch(patterns[dialect], name)
    ]
