"""A table of cases: grants x requests of all dialects. Each request is executed or refused in its dialect's words.

A line lists the requests that a set of grants permits. All other requests of permission_requests.py are refused.
Sources: the DynamoDB developer guide ("Using IAM policy conditions", "IAM policies for PartiQL"), the service
authorization reference, and published cases of other implementations (ScyllaDB Alternator, fakecloud, moto, and issues
of LocalStack, which publishes no tests of this). See docs/operate/grants.md.
"""

from __future__ import annotations

import itertools
import json
import os
import zlib
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from tablegate.gateway.app import application_of
from tablegate.gateway.configuration.loading import load
from tablegate.gateway.security.credential_store import CredentialStore
from tablegate.gateway.security.credentials import Credential, Credentials, Scheme
from tablegate.gateway.security.grant_store import ALL, WrittenGrant, written_of
from tablegate.gateway.wiring import OpenDatabase, connect, open_store
from tests.gateway.security.permission_requests import (
    AZURE,
    AZURE_KEY,
    DYNAMODB,
    INDEX,
    ORDERS,
    OTHER,
    REQUESTS,
    TABLE_STORE,
    Caller,
    item,
    refused,
)
from tests.support.running import Running, start

SETTINGS = {"auth": "strict", "secret_key": "what encrypts the secrets of these callers"}
ARN = "arn:aws:dynamodb:*:*:table/"


def allow(
    *actions: str, on: str | list[str] = f"{ARN}{ORDERS}", deny: bool = False, **conditions: Any
) -> dict[str, Any]:
    names = [f"dynamodb:{action}" for action in actions]
    statement = {"Effect": "Deny" if deny else "Allow", "Action": names, "Resource": on}
    return {**statement, **({"Condition": conditions} if conditions else {})}


def refuse(*actions: str, on: str | list[str] = f"{ARN}{ORDERS}", **conditions: Any) -> dict[str, Any]:
    return allow(*actions, on=on, deny=True, **conditions)


def policy(*statements: dict[str, Any]) -> dict[str, Any]:
    return {"Version": "2012-10-17", "Statement": list(statements)}


def ram(
    *actions: str, on: str = f"acs:ots:*:*:instance/inst/table/{ORDERS}", effect: str = "Allow"
) -> dict[str, Any]:
    statement = {"Effect": effect, "Action": [f"ots:{action}" for action in actions], "Resource": on}
    return {"Version": "1", "Statement": [statement]}


def but(names: Iterable[str], *without: str) -> set[str]:
    assert set(without) <= set(names), set(without) - set(names)
    return set(names) - set(without)


def of(*words: str) -> set[str]:
    """Return the requests with a name that begins with one of these prefixes."""
    return {name for name in REQUESTS if name.startswith(words)}


GETS = {"get u1", "get u2", "get absent row", "get by ARN", "get note", "get secret", "get alias of secret",
        "get inside secret"}  # fmt: skip
TRANSACT_GETS = {"transact get u1", "transact get u2"}
AZURE_GETS = {
    "azure get u1", "azure get u2", "azure get note", "azure get secret", "azure get in another case",
}  # fmt: skip
OTS_GETS = {"ots get u1", "ots get u2", "ots get note", "ots get secret", "ots get note by secret"}
READ_SINGLE = GETS | TRANSACT_GETS | AZURE_GETS | OTS_GETS
BATCH_GETS = {"batch get u1", "batch get u1 u2", "ots batch get u1"}
QUERIES = {
    "query u1", "query u2", "query u1 note", "query u1 by secret", "query u1 count", "query next page",
    "azure query u1", "azure query u2", "azure query u1 by secret", "ots range u1", "ots range u2",
}  # fmt: skip
SCANS = {
    "scan", "scan segment", "scan count", "scan note", "scan next page", "azure query all", "azure query by note",
    "ots range u1 to u2", "ots range all",
}  # fmt: skip
INDEX_READS = {"query index", "scan index", "ots range index"}
PUTS = {
    "put u1", "put u1 secret", "put u2", "put u1 old", "transact put u1", "azure insert u1", "azure upsert u1",
    "azure upsert u2", "azure batch put u1", "ots put u1", "ots put u2",
}  # fmt: skip
UPDATES = of("update u1", "update u2") | {"transact update u1", "azure merge u1", "ots update u1"}
DELETES = {"delete u1", "delete u2", "transact delete u1", "azure delete u1", "ots delete u1"}
CHECKS = {"transact check u1", "transact check u1 old"}
BATCH_PUTS = {"batch put u1", "batch put u1 u2", "ots batch put u1"}
BATCH_DELETES = {"batch delete u1", "ots batch delete u1"}
SELECTS = {
    "select u1", "select u1 item", "select in u1", "select u1 or u2", "select in u1 u2", "select all",
    "select u1 or note", "select u1 note", "select next page", "batch select u1", "batch select u1 u2",
    "transact select u1",
}  # fmt: skip
STREAMS = {"stream", "iterator", "records"}
EVERY_READ = READ_SINGLE | BATCH_GETS | QUERIES | SCANS | INDEX_READS | SELECTS | {"select index"}
DESCRIPTIONS = {"describe", "ots describe"}
ALL_OF_ORDERS = but(
    REQUESTS, "get other", "batch get two tables", "put other", "azure get other", "ots get other",
    "ots batch get two tables", "ots batch two tables", "alter expiry", "describe limits", "list", "azure list",
    "ots list", "azure properties", "streams", "backups", "azure create", "create", "create with tags", "drop", "restore",
)  # fmt: skip

LEADING = {"ForAllValues:StringEquals": {"dynamodb:LeadingKeys": ["u1"]}}
ATTRIBUTES = {"ForAllValues:StringEquals": {"dynamodb:Attributes": ["pk", "sk", "note"]}}
ITEM_ACTIONS = ("GetItem", "PutItem", "UpdateItem", "DeleteItem", "Query", "BatchGetItem", "BatchWriteItem")

OF_U1 = {
    "get u1", "get absent row", "get by ARN", "get note", "get secret", "get alias of secret", "get inside secret",
    "batch get u1", "transact get u1", "query u1", "query u1 note", "query u1 by secret", "query u1 count",
    "query next page", "put u1", "put u1 secret", "put u1 old", "delete u1", "batch put u1", "batch delete u1",
    "transact put u1", "transact update u1", "transact delete u1", "azure get u1", "azure get note", "azure get secret",
    "azure get in another case", "azure query u1", "azure query u1 by secret", "azure insert u1", "azure upsert u1",
    "azure merge u1", "azure delete u1", "azure batch put u1", "azure batch put and delete u1", "ots get u1", "ots get note",
    "ots get secret", "ots get note by secret", "ots range u1", "ots put u1", "ots update u1", "ots delete u1",
    "ots batch get u1", "ots batch put u1", "ots batch delete u1", *of("update u1"),
}  # fmt: skip


@dataclass(frozen=True)
class Line:
    """A set of grants, and what they let be done."""

    name: str
    grants: tuple[Any, ...]
    allowed: frozenset[str]


def line(name: str, *grants: Any, lets: Iterable[str] = ()) -> Line:
    return Line(name, grants, frozenset(lets))


ELSEWHERE = tuple(
    policy({"Effect": effect, "Action": action, "Resource": "*"})
    for effect, action in (
        ("Allow", "ec2:Describe*"),
        ("Allow", "s3:*"),
        ("Deny", "iam:List*"),
        ("Deny", "lambda:*"),
    )
)
"""Policies in which there is nothing about tables."""

LINES = [
    line("nothing"),
    line("everything", ALL, lets=REQUESTS),
    # Single actions
    line("GetItem", policy(allow("GetItem")), lets=READ_SINGLE),
    line("getitem in lower case", policy(allow("getitem")), lets=READ_SINGLE),
    line("BatchGetItem", policy(allow("BatchGetItem")), lets=BATCH_GETS),
    line("Query", policy(allow("Query")), lets=QUERIES),
    line(
        "Query of the index", policy(allow("Query", on=f"{ARN}{ORDERS}/index/{INDEX}")), lets=["query index"]
    ),
    line("Scan", policy(allow("Scan")), lets=SCANS),
    line(
        "Scan of indexes",
        policy(allow("Scan", on=f"{ARN}{ORDERS}/index/*")),
        lets=["scan index", "ots range index"],
    ),
    line("PutItem", policy(allow("PutItem")), lets=PUTS),
    line("UpdateItem", policy(allow("UpdateItem")), lets=UPDATES),
    line("DeleteItem", policy(allow("DeleteItem")), lets=DELETES),
    line(
        "PutItem and DeleteItem",
        policy(allow("PutItem", "DeleteItem")),
        lets=PUTS | DELETES | {"azure batch put and delete u1"},
    ),
    line("ConditionCheckItem", policy(allow("ConditionCheckItem")), lets=CHECKS),
    line(
        "PutItem and ConditionCheckItem",
        policy(allow("PutItem", "ConditionCheckItem")),
        lets=PUTS | CHECKS | {"transact put u1 check u2"},
    ),
    line("BatchWriteItem", policy(allow("BatchWriteItem")), lets=BATCH_PUTS | BATCH_DELETES),
    line("PartiQLSelect", policy(allow("PartiQLSelect")), lets=SELECTS),
    line(
        "PartiQLSelect of the index",
        policy(allow("PartiQLSelect", on=f"{ARN}{ORDERS}/index/{INDEX}")),
        lets=["select index"],
    ),
    line("PartiQLInsert", policy(allow("PartiQLInsert")), lets=["insert u2"]),
    line("PartiQLUpdate", policy(allow("PartiQLUpdate")), lets=["update statement u1"]),
    line(
        "PartiQLSelect and PartiQLUpdate",
        policy(allow("PartiQLSelect", "PartiQLUpdate")),
        lets=SELECTS | {"update statement u1", "transact exists u1"},
    ),
    line("PartiQLDelete", policy(allow("PartiQLDelete")), lets=["delete statement u1"]),
    line("ListTables", policy(allow("ListTables", on="*")), lets=["list", "azure list", "ots list"]),
    line("DescribeTable", policy(allow("DescribeTable")), lets=DESCRIPTIONS),
    line("DescribeTimeToLive", policy(allow("DescribeTimeToLive")), lets=["describe expiry"]),
    line("UpdateTimeToLive", policy(allow("UpdateTimeToLive", on=f"{ARN}{ORDERS}-*")), lets=["alter expiry"]),
    line("DescribeContinuousBackups", policy(allow("DescribeContinuousBackups")), lets=["describe recovery"]),
    line(
        "DescribeLimits",
        policy(allow("DescribeLimits", on="*")),
        lets=["describe limits", "azure properties"],
    ),
    line("CreateTable", policy(allow("CreateTable", on=f"{ARN}orders*")), lets=["create", "azure create"]),
    line(
        "CreateTable and TagResource",
        policy(allow("CreateTable", "TagResource", on=f"{ARN}orders*")),
        lets=["create", "create with tags", "azure create", "tag"],
    ),
    line("DeleteTable", policy(allow("DeleteTable", on=f"{ARN}orders-*")), lets=["drop"]),
    line("UpdateTable", policy(allow("UpdateTable")), lets=["alter"]),
    line("tags", policy(allow("ListTagsOfResource", "UntagResource")), lets=["tags", "untag"]),
    line("CreateBackup", policy(allow("CreateBackup")), lets=["back up"]),
    line(
        "DescribeBackup",
        policy(allow("DescribeBackup", on=f"{ARN}{ORDERS}/backup/*")),
        lets=["describe backup"],
    ),
    line("ListBackups", policy(allow("ListBackups", on="*")), lets=["backups"]),
    line(
        "a restore without rights to the target",
        policy(allow("RestoreTableFromBackup", on=[f"{ARN}{ORDERS}/backup/*", f"{ARN}restored*"])),
    ),
    line(
        "a restore",
        policy(
            allow("RestoreTableFromBackup", on=[f"{ARN}{ORDERS}/backup/*", f"{ARN}restored*"]),
            allow(
                "GetItem",
                "PutItem",
                "UpdateItem",
                "DeleteItem",
                "Query",
                "Scan",
                "BatchWriteItem",
                on=f"{ARN}restored*",
            ),
            # Besides the service: the source's rows are read in the new table (issue 23, point 2).
            allow("Scan"),
        ),
        lets=SCANS | {"restore"},
    ),
    line("ListStreams", policy(allow("ListStreams", on="*")), lets=["streams"]),
    line("DescribeStream", policy(allow("DescribeStream", on=f"{ARN}{ORDERS}/stream/*")), lets=["stream"]),
    line(
        "GetShardIterator", policy(allow("GetShardIterator", on=f"{ARN}{ORDERS}/stream/*")), lets=["iterator"]
    ),
    line("GetRecords", policy(allow("GetRecords", on=f"{ARN}{ORDERS}/stream/*")), lets=["records"]),
    line("GetRecords of another stream", policy(allow("GetRecords", on=f"{ARN}{OTHER}/stream/*"))),
    # Patterns
    line(
        "all actions on the table alone",
        policy(allow("*")),
        lets=but(ALL_OF_ORDERS, *INDEX_READS, "select index", "describe backup", *STREAMS),
    ),
    line(
        "all actions on what begins so",
        policy(allow("*", on=f"{ARN}{ORDERS}*")),
        lets=ALL_OF_ORDERS | {"azure create", "create", "create with tags", "drop", "alter expiry"},
    ),
    line(
        "all that begins with Get",
        policy(allow("Get*", on=[f"{ARN}{ORDERS}", f"{ARN}{ORDERS}/stream/*"])),
        lets=READ_SINGLE | {"iterator", "records", "azure policies"},
    ),
    line("one character", policy(allow("GetIte?", on=f"{ARN}order?")), lets=READ_SINGLE),
    line(
        "another table",
        policy(allow("GetItem", on=f"{ARN}{OTHER}")),
        lets=["get other", "azure get other", "ots get other"],
    ),
    line("another case", policy(allow("*", on=f"{ARN}Orders"))),
    line("another account", policy(allow("GetItem", on=f"arn:aws:dynamodb:*:*:table/x{ORDERS}"))),
    line("another service", policy({"Effect": "Allow", "Action": "s3:*", "Resource": "*"})),
    line("resources of another service", policy(allow("*", on="arn:aws:s3:::orders"))),
    line(
        "all but the table",
        policy({"Effect": "Allow", "Action": "dynamodb:GetItem", "NotResource": f"{ARN}{ORDERS}"}),
        lets=["get other", "azure get other", "ots get other"],
    ),
    line(
        "all actions but one",
        policy({"Effect": "Allow", "NotAction": "dynamodb:GetItem", "Resource": f"{ARN}{ORDERS}"}),
        lets=but(ALL_OF_ORDERS, *READ_SINGLE, *INDEX_READS, "select index", "describe backup", *STREAMS),
    ),
    # Refusals
    line(
        "everything but GetItem",
        ALL,
        policy(refuse("GetItem")),
        lets=but(
            REQUESTS,
            *READ_SINGLE,
            *BATCH_GETS,
            "batch get two tables",
            "ots batch get two tables",
            "select u1 item",
            "batch select u1",
            "batch select u1 u2",
            "transact select u1",
        )
        | {"select u1 item"},
    ),
    line(
        "everything but DeleteItem",
        ALL,
        policy(refuse("DeleteItem")),
        lets=but(REQUESTS, *DELETES, *BATCH_DELETES, "delete statement u1", "azure batch put and delete u1"),
    ),
    line(
        "everything but BatchWriteItem",
        ALL,
        policy(refuse("BatchWriteItem")),
        lets=but(REQUESTS, *BATCH_PUTS, *BATCH_DELETES, "ots batch two tables"),
    ),
    line(
        "everything but Scan",
        ALL,
        policy(refuse("Scan")),
        lets=but(REQUESTS, *SCANS, "select all", "select u1 or note", "restore"),  # issue 23, point 2
    ),
    line(
        "everything but the index",
        ALL,
        policy(refuse("*", on=f"{ARN}*/index/*")),
        lets=but(REQUESTS, *INDEX_READS, "select index"),
    ),
    line(
        "everything but streams",
        ALL,
        policy(refuse("*", on=f"{ARN}*/stream/*")),
        lets=but(REQUESTS, *STREAMS),
    ),
    line(
        "refusing all but GetItem",
        policy(allow("*"), {"Effect": "Deny", "NotAction": "dynamodb:GetItem", "Resource": "*"}),
        lets=READ_SINGLE,
    ),
    line("refused and allowed", policy(allow("GetItem"), refuse("GetItem"))),
    # Partitions
    line("leading keys", policy(allow(*ITEM_ACTIONS, **LEADING)), lets=OF_U1),
    line("leading keys and Scan", policy(allow(*ITEM_ACTIONS, "Scan", **LEADING)), lets=OF_U1),
    line(
        "leading keys like",
        policy(allow("GetItem", "Query", **{"ForAllValues:StringLike": {"dynamodb:LeadingKeys": ["u?"]}})),
        lets=READ_SINGLE | QUERIES,
    ),
    line(
        "leading keys of nobody",
        policy(
            allow(
                "GetItem",
                "Query",
                "Scan",
                **{"ForAllValues:StringEquals": {"dynamodb:LeadingKeys": ["nobody"]}},
            )
        ),
    ),
    line(
        "leading keys of statements",
        policy(allow("PartiQLSelect", "PartiQLInsert", "PartiQLUpdate", "PartiQLDelete", **LEADING)),
        lets=[
            "select u1",
            "select u1 item",
            "select in u1",
            "select u1 note",
            "select next page",
            "batch select u1",
            "transact select u1",
            "update statement u1",
            "delete statement u1",
            "transact exists u1",
        ],
    ),
    line(
        "leading keys by variable",
        policy(
            allow(
                "GetItem",
                **{"ForAllValues:StringEquals": {"dynamodb:LeadingKeys": ["${aws:username, 'x'}", "u1"]}},
            )
        ),
        lets=OF_U1 & READ_SINGLE,
    ),
    line(
        "all partitions but one",
        ALL,
        policy(refuse("*", **{"ForAnyValue:StringEquals": {"dynamodb:LeadingKeys": ["u2"]}})),
        lets=(
            REQUESTS.keys()
            - ALL_OF_ORDERS
            - {"batch get two tables", "restore"}  # a restore reads all partitions
            | OF_U1
            | INDEX_READS
            | {"batch get two tables"}
            | {
                "select u1",
                "select u1 item",
                "select in u1",
                "select u1 note",
                "select next page",
                "batch select u1",
                "transact select u1",
                "update statement u1",
                "delete statement u1",
                "transact exists u1",
                "select index",
                "transact check u1",
                "transact check u1 old",
                "describe",
                "ots describe",
                "describe expiry",
                "describe recovery",
                "tags",
                "tag",
                "untag",
                "describe backup",
                "stream",
                "iterator",
                "records",
                "azure policies",
            }
        ),
    ),
    line(
        "the guard against absent keys",
        policy(allow(*ITEM_ACTIONS, "Scan", **LEADING, Null={"dynamodb:LeadingKeys": "false"})),
        lets=OF_U1,
    ),
    # Attributes
    line(
        "attributes",
        policy(allow("GetItem", "Query", "Scan", "UpdateItem", **ATTRIBUTES)),
        lets=[
            "get note",
            "query u1 note",
            "query u1 count",
            "scan note",
            "scan count",
            "update u1",
            "update u2",
            "update u1 new",
            "transact update u1",
            "azure get note",
            "ots get note",
            "azure merge u1",
            "ots update u1",
        ],
    ),
    line(
        "attributes without the key",
        policy(allow("GetItem", **{"ForAllValues:StringEquals": {"dynamodb:Attributes": ["note"]}})),
    ),
    line(
        "attributes of puts",
        policy(allow("PutItem", **ATTRIBUTES)),
        lets=but(PUTS, "put u1 secret", "put u1 old"),
    ),
    line(
        "everything but an attribute",
        ALL,
        policy(refuse("GetItem", **{"ForAnyValue:StringEquals": {"dynamodb:Attributes": ["secret"]}})),
        lets=but(
            REQUESTS,
            *READ_SINGLE,
            *BATCH_GETS,
            "batch get two tables",
            "ots batch get two tables",
            "batch select u1",
            "batch select u1 u2",
            "transact select u1",
        )
        | {"get note", "azure get note", "ots get note"},
    ),
    line(
        "specific attributes",
        policy(
            allow("GetItem", "Query", "Scan", StringEqualsIfExists={"dynamodb:Select": "SPECIFIC_ATTRIBUTES"})
        ),
        lets=[
            "get note",
            "get secret",
            "get alias of secret",
            "get inside secret",
            "query u1 note",
            "query u1 by secret",
            "scan note",
            "azure get note",
            "azure get secret",
            "azure query u1 by secret",
            "ots get note",
            "ots get secret",
            "ots get note by secret",
        ],
    ),
    line(
        "counts",
        policy(allow("Query", "Scan", StringEquals={"dynamodb:Select": "COUNT"})),
        lets=["query u1 count", "scan count"],
    ),
    line(
        "what is returned",
        policy(
            allow(
                "PutItem",
                "UpdateItem",
                "ConditionCheckItem",
                StringEqualsIfExists={"dynamodb:ReturnValues": ["NONE", "UPDATED_OLD", "UPDATED_NEW"]},
            )
        ),
        lets=but(
            PUTS | UPDATES | CHECKS | {"transact put u1 check u2"},
            "put u1 old",
            "update u1 all old",
            "update u1 old on failure",
            "transact check u1 old",
        ),
    ),
    # Circumstances
    line(
        "only in transactions",
        policy(
            allow(
                "PutItem",
                "GetItem",
                **{"ForAnyValue:StringEquals": {"dynamodb:EnclosingOperation": ["TransactWriteItems"]}},
            )
        ),
        lets=["transact put u1", "azure batch put u1"],
    ),
    line("from here", policy(allow("GetItem", IpAddress={"aws:SourceIp": "127.0.0.0/8"})), lets=READ_SINGLE),
    line(
        "from elsewhere",
        policy(allow("GetItem", IpAddress={"aws:SourceIp": ["10.0.0.0/8", "2001:db8::/32"]})),
    ),
    line("not from here", ALL, policy(refuse("*", on="*", NotIpAddress={"aws:SourceIp": "10.0.0.0/8"}))),
    line("over TLS", policy(allow("GetItem", Bool={"aws:SecureTransport": "true"}))),
    line(
        "in time",
        policy(allow("GetItem", DateLessThan={"aws:CurrentTime": "2100-01-01T00:00:00Z"})),
        lets=READ_SINGLE,
    ),
    line("too late", policy(allow("GetItem", DateLessThan={"aws:CurrentTime": "2001-01-01T00:00:00Z"}))),
    line(
        "in its region",
        policy(allow("GetItem", StringEqualsIfExists={"aws:RequestedRegion": "us-east-1"})),
        lets=READ_SINGLE,
    ),
    line("in another region", policy(allow("GetItem", StringEquals={"aws:RequestedRegion": "eu-west-1"}))),
    line(
        "no scans by statement",
        policy(allow("PartiQLSelect"), refuse("PartiQLSelect", Bool={"dynamodb:FullTableScan": "true"})),
        lets=but(SELECTS, "select all", "select u1 or note"),
    ),
    # Short forms
    line(
        "read",
        {"read": [ORDERS]},
        lets=READ_SINGLE
        | BATCH_GETS
        | DESCRIPTIONS
        | {"batch select u1", "batch select u1 u2", "transact select u1"},
    ),
    line(
        "query",
        {"query": ["ord*"]},
        lets=QUERIES
        | DESCRIPTIONS
        | {
            "query index",
            "select u1",
            "select u1 item",
            "select in u1",
            "select u1 or u2",
            "select in u1 u2",
            "select u1 note",
            "select next page",
            "select index",
        },
    ),
    line(
        "scan",
        {"scan": [ORDERS]},
        lets=SCANS | DESCRIPTIONS | {"scan index", "ots range index", "select all", "select u1 or note"},
    ),
    line(
        "write",
        {"write": [ORDERS]},
        lets=PUTS
        | UPDATES
        | CHECKS
        | BATCH_PUTS
        | DESCRIPTIONS
        | {"transact put u1 check u2", "insert u2", "update statement u1", "transact exists u1"},
    ),
    line(
        "delete", {"delete": [ORDERS]}, lets=DELETES | BATCH_DELETES | DESCRIPTIONS | {"delete statement u1"}
    ),
    line("stream", {"stream": [ORDERS]}, lets=STREAMS | {"streams"} | DESCRIPTIONS),
    line(
        "define",
        {"define": ["orders*"]},
        lets=DESCRIPTIONS
        | {
            "list",
            "azure list",
            "ots list",
            "describe expiry",
            "describe recovery",
            "create",
            "create with tags",
            "azure create",
            "drop",
            "alter",
            "alter expiry",
            "tags",
            "tag",
            "untag",
            "describe limits",
            "azure properties",
        },
    ),
    line(
        "read of some keys",
        {"read": [ORDERS], "keys": ["u1"]},
        lets=OF_U1 & (READ_SINGLE | BATCH_GETS) | {"batch select u1", "transact select u1"},
    ),
    line(
        "read of some attributes",
        {"read": [ORDERS], "attributes": ["pk", "sk", "n*"]},
        lets=["get note", "azure get note", "ots get note"],
    ),
    line(
        "everything, refusing writes",
        ALL,
        {"write": ["*"], "delete": ["*"], "deny": True},
        lets=but(
            REQUESTS,
            *PUTS,
            *UPDATES,
            *CHECKS,
            *BATCH_PUTS,
            *DELETES,
            *BATCH_DELETES,
            "transact put u1 check u2",
            "insert u2",
            "put other",
            "update statement u1",
            "delete statement u1",
            "transact exists u1",
            "azure batch put and delete u1",
            "ots batch two tables",
            "restore",
        ),
    ),
    line(
        "admin",
        {"admin": [ORDERS]},
        lets=ALL_OF_ORDERS
        | {"list", "azure list", "ots list", "streams", "describe limits", "azure properties"}
        | {"backups"},  # the whole life of its tables' backups (issue 23, point 2)
    ),
    line("a role", WrittenGrant("role", "clerk"), lets=READ_SINGLE),
    # Table Store's RAM policies
    line("RAM GetRow", ram("GetRow"), lets=READ_SINGLE),
    line(
        "RAM GetRange",
        ram("GetRange"),
        lets=of("query u", "query next", "scan", "azure query", "ots range") - INDEX_READS,
    ),
    line(
        "RAM Get*",
        ram("Get*"),
        lets=READ_SINGLE
        | {
            *(of("query u", "query next", "scan", "azure query", "ots range") - INDEX_READS),
            "iterator",
            "records",
        },
    ),
    line(
        "RAM GetRange of the index",
        ram("GetRange", on=f"acs:ots:*:*:instance/inst/table/{INDEX}"),
        lets=INDEX_READS,
    ),
    line("RAM BatchWriteRow", ram("BatchWriteRow"), lets=BATCH_PUTS | BATCH_DELETES),
    line("RAM of the instance alone", ram("*", on="acs:ots:*:*:instance/inst")),
    line("RAM of all tables", ram("*", on="acs:ots:*:*:instance/inst/*"), lets=REQUESTS),
    line(
        "RAM refusing DeleteRow",
        ALL,
        ram("DeleteRow", effect="Deny"),
        lets=but(REQUESTS, *DELETES, *BATCH_DELETES, "delete statement u1", "azure batch put and delete u1"),
    ),
    line(
        "RAM ListTable",
        ram("ListTable", on="acs:ots:*:*:instance/inst/table/*"),
        lets=["list", "azure list", "ots list"],
    ),
    # getmoto/moto 0af643a5d, tests/test_core/test_auth.py. Its policies are of other services. The lines are their
    # equivalents for tables.
    line(  # test_access_denied_with_not_allowing_policy
        "descriptions of everything",
        policy(allow("Describe*", on="*")),
        lets=DESCRIPTIONS
        | {
            "describe expiry",
            "describe recovery",
            "describe limits",
            "azure properties",
            "describe backup",
            "stream",
        },
    ),
    line(  # test_access_denied_explicitly_on_specific_resource
        "one table refused, all allowed",
        policy(refuse("GetItem", on=f"{ARN}{OTHER}"), allow("GetItem", on="*")),
        lets=READ_SINGLE,
    ),
    line(  # test_access_denied_with_denying_policy
        "everything by IAM but PutItem",
        policy(allow("*", on="*")),
        policy(refuse("PutItem", on="*")),
        lets=but(
            REQUESTS,
            *PUTS,
            *BATCH_PUTS,
            "put other",
            "transact put u1 check u2",
            "insert u2",
            "ots batch two tables",
            "azure batch put and delete u1",
            "restore",
        ),
    ),
    line(  # test_s3_access_denied_with_denying_attached_group_policy, test_s3_access_denied_with_denying_inline_group_policy
        "a role that refuses",
        policy(allow("*", on="*")),
        WrittenGrant("role", "shut"),
        lets=but(REQUESTS, "list", "azure list", "ots list"),
    ),
    line(  # test_s3_access_denied_not_action
        "a role that refuses all but one",
        policy(allow("*", on="*")),
        WrittenGrant("role", "getter"),
        lets=READ_SINGLE | {"get other", "azure get other", "ots get other"},
    ),
    line("policies of other services", *ELSEWHERE),  # test_access_denied_with_many_irrelevant_policies
    line(
        "a policy among those of other services",
        *ELSEWHERE,
        policy(allow("GetItem", on="*")),
        lets=READ_SINGLE | {"get other", "azure get other", "ots get other"},
    ),
    line(  # test_allow_bucket_access_using_resource_arn, test_perform_role_based_action
        "the table by its whole ARN",
        policy(allow("*", on=f"arn:aws:dynamodb:us-east-1:000000000000:table/{OTHER}")),
        lets=["get other", "put other", "azure get other", "ots get other"],
    ),
    # The same commit, tests/test_dynamodb/test_dynamodb_iam_permission.py; its issues 9580 and 9581
    line("a role that may do everything", WrittenGrant("role", "owner"), lets=REQUESTS),
    line(
        "a role that may do everything to the table",
        WrittenGrant("role", "keeper"),
        lets=but(ALL_OF_ORDERS, *INDEX_READS, "select index", "describe backup", *STREAMS),
    ),
    # localstack/localstack issue 10517: who may query may not get a batch; issue 4405: a role that may scan
    line("Query and GetItem", policy(allow("Query", "GetItem")), lets=QUERIES | READ_SINGLE),
    line("a role that may scan", WrittenGrant("role", "scanner"), lets=SCANS),
]

ROLES = {
    "clerk": policy(allow("GetItem")),
    "shut": policy(refuse("ListTables", on="*")),
    "getter": policy({"Effect": "Deny", "NotAction": "dynamodb:GetItem", "Resource": "*"}),
    "owner": policy(allow("*", on="*")),
    "keeper": policy(allow("*")),
    "scanner": policy(allow("Scan")),
}


@dataclass
class Tried:
    server: Running
    store: CredentialStore
    credentials: Credentials
    full: Caller
    limited: Caller

    def grant(self, grants: Iterable[Any]) -> None:
        """Take all grants of the limited caller back and give it these, in each of its dialects."""
        for grant in self.store.grants.load():
            if grant.grantee.endswith(("/LIMITED", "/limited")):
                self.store.grants.remove(grant.id)
        for written in grants:
            made = written if isinstance(written, WrittenGrant) else written_of(written)
            for grantee in ("aws/LIMITED", "azure/limited", "tablestore/LIMITED"):
                self.store.grant(grantee, made)
        self.credentials.replace(self.store.load(), self.store.token_policies)


@pytest.fixture(scope="module")
def running(shared_database_url: str) -> Iterator[Tried]:
    settings = load({"database": shared_database_url, **SETTINGS}, {})
    opened: OpenDatabase = open_store(settings, connect(settings))
    store = opened.credential_store
    for name in ("full", "limited"):
        granted = [ALL] if name == "full" else []
        store.add(Credential(Scheme.AWS, name.upper(), ("secret",)), granted)
        store.add(Credential(Scheme.AZURE, name, (AZURE_KEY, AZURE_KEY)), granted)
        store.add(Credential(Scheme.TABLESTORE, name.upper(), ("secret",)), granted)
    for role, document in ROLES.items():
        store.grant(f"role/{role}", written_of(document))
    server = start(shared_database_url, credentials_period=3600.0, **SETTINGS)
    full = Caller(server.url, "full")
    try:
        seen = furnish(full)
        full.seen = seen
        limited = Caller(server.url, "limited", seen)
        yield Tried(server, store, application_of(server.app).gateway.credentials, full, limited)
    finally:
        server.stop()
        opened.close()


def furnish(full: Caller) -> dict[str, Any]:
    """Create the tables. Returns identifiers that an unrestricted caller obtains."""
    status = {"AttributeName": "status", "AttributeType": "S"}
    keys = [{"AttributeName": name, "AttributeType": "S"} for name in ("pk", "sk")]
    schema = [{"AttributeName": "pk", "KeyType": "HASH"}, {"AttributeName": "sk", "KeyType": "RANGE"}]
    index = {
        "IndexName": INDEX,
        "KeySchema": [{"AttributeName": "status", "KeyType": "HASH"}],
        "Projection": {"ProjectionType": "ALL"},
    }
    full.dynamodb.create_table(
        TableName=ORDERS, KeySchema=schema, AttributeDefinitions=[*keys, status], BillingMode="PAY_PER_REQUEST",
        GlobalSecondaryIndexes=[index],
        StreamSpecification={"StreamEnabled": True, "StreamViewType": "NEW_AND_OLD_IMAGES"},
    )  # fmt: skip
    full.dynamodb.create_table(
        TableName=OTHER, KeySchema=schema, AttributeDefinitions=keys, BillingMode="PAY_PER_REQUEST"
    )

    def mend() -> bool:
        for pk, sk in itertools.product(("u1", "u2"), ("1", "2")):
            row = item(pk, sk, note="n1", secret="x", status="open")
            full.dynamodb.put_item(TableName=ORDERS, Item=row)
        return True

    mend()
    full.dynamodb.put_item(TableName=OTHER, Item=item())
    stream = full.streams.list_streams()["Streams"][0]["StreamArn"]
    shard = full.streams.describe_stream(StreamArn=stream)["StreamDescription"]["Shards"][0]["ShardId"]
    iterator = full.streams.get_shard_iterator(
        StreamArn=stream, ShardId=shard, ShardIteratorType="TRIM_HORIZON"
    )
    statement = f"SELECT * FROM \"{ORDERS}\" WHERE pk = 'u1'"
    page = full.dynamodb.execute_statement(Statement=statement, Limit=1)
    backup = full.dynamodb.create_backup(TableName=ORDERS, BackupName="first")
    return {
        "full": full,
        "mend": mend,
        "stream": stream,
        "shard": shard,
        "iterator": iterator["ShardIterator"],
        "statement": statement,
        "token": page["NextToken"],
        "backup": backup["BackupDetails"]["BackupArn"],
        "numbers": itertools.count(),
    }


def rows_of(caller: Caller) -> list[Any]:
    found = [caller.dynamodb.scan(TableName=name)["Items"] for name in (ORDERS, OTHER)]
    return [sorted(json.dumps(each, sort_keys=True) for each in rows) for rows in found]


WORDS = defaultdict(
    lambda: "User: arn:aws:iam::000000000000:user/LIMITED is not authorized to perform: dynamodb:",
    azure="403 AuthorizationPermissionMismatch",
    ots="403 OTSNoPermissionAccess",
)
"""The words of each dialect for a refusal."""


def tried(line: Line, names: Iterable[str]) -> list[str]:
    """Those requests that are tried now: `make soak` tries all, `make test` every twentieth of many, other ones of each line."""
    listed = sorted(names)
    if "TABLEGATE_TEST_SOAK_SECONDS" in os.environ or len(listed) <= 4:
        return listed
    return listed[zlib.crc32(line.name.encode()) % 20 :: 20]


@pytest.mark.soak
@pytest.mark.parametrize("line", LINES, ids=lambda line: line.name)
def test_each_line_of_the_table_permits_only_its_requests(running: Tried, line: Line) -> None:
    """Permitted requests are executed. All others are refused in their dialect's words and leave no trace."""
    is_sqlite = running.server.settings.database.startswith("sqlite")
    if "TABLEGATE_TEST_SOAK_SECONDS" not in os.environ and is_sqlite is not (LINES.index(line) % 2 == 0):
        pytest.skip("half of the lines on each database; make soak tries all on both")
    running.grant(line.grants)
    wrong = []
    for name in tried(line, REQUESTS.keys() - line.allowed):
        try:
            told = refused(running.limited, name)
        except Exception as error:
            wrong.append(f"{name}: {error!r}")
            continue
        if not told.startswith(WORDS[name.partition(" ")[0]]):
            wrong.append(f"{name}: {told or 'carried out'}")
    for name in tried(line, line.allowed):
        if name == "insert u2":
            running.full.dynamodb.delete_item(TableName=ORDERS, Key={"pk": {"S": "u2"}, "sk": {"S": "8"}})
        try:
            told = refused(running.limited, name)
        except Exception as error:
            wrong.append(f"{name}: {error!r}")
            continue
        if told:
            wrong.append(f"{name}: {told}")
    assert not wrong, "\n".join(wrong)


def test_there_are_enough_cases() -> None:
    """Counts the combinations of grants and requests.

    Many of them are executed, and each dialect and each API is among them.
    """
    assert len(LINES) * len(REQUESTS) > 12_000
    assert sum(len(each.allowed) for each in LINES) > 1_500
    assert len(DYNAMODB) > 80 and len(AZURE) > 20 and len(TABLE_STORE) > 20
    assert set().union(*(each.allowed for each in LINES)) == set(REQUESTS)


def test_the_policy_of_a_table_holds_in_all_dialects(running: Tried) -> None:
    """Over the wire: allowances need no grant, and refusals also apply to unrestricted callers."""
    arn = running.full.dynamodb.describe_table(TableName=ORDERS)["Table"]["TableArn"]

    def put(*statements: dict[str, Any]) -> None:
        # Covers everyone and the callers of an account. A public policy is refused (ack-api-quirks, TABLE-356).
        everybody = {
            "Principal": "*",
            "Condition": {"StringEquals": {"aws:PrincipalAccount": "000000000000"}},
        }
        document = policy(*({**each, **everybody} for each in statements))
        running.full.dynamodb.put_resource_policy(ResourceArn=arn, Policy=json.dumps(document))

    running.grant([])
    reads = ["get note", "azure get note", "ots get note"]
    assert all(refused(running.limited, name) for name in reads)
    put(allow("GetItem"))
    assert [refused(running.limited, name) for name in reads] == ["", "", ""]
    assert all(refused(running.limited, name) for name in ("scan note", "azure merge u1", "ots update u1"))
    put(refuse("GetItem"))
    assert "explicit deny in a resource-based policy" in refused(running.full, "get note")
    assert refused(running.full, "azure get note").startswith(WORDS["azure"])
    assert refused(running.full, "ots get note").startswith(WORDS["ots"])
    running.full.dynamodb.delete_resource_policy(ResourceArn=arn)
    assert [refused(running.full, name) for name in reads] == ["", "", ""]
