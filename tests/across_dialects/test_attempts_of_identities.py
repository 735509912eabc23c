"""Attempts to do more than identity and grants allow, in the three dialects: other operations, and proofs that are forged.

Signatures by user delegation keys: tests/adapters/azuretable/test_delegation.py. Only the issuer has a socket.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from email.utils import formatdate
from typing import Any

import pytest
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials as BotoCredentials
from google.protobuf.message import Message

from tablegate.adapters.dynamodb import dialect as dynamodb
from tablegate.adapters.tablestore import dialect as tablestore
from tablegate.adapters.tablestore.operation_table import OPERATIONS
from tablegate.adapters.tablestore.wire.plainbuffer import Bound, WireRow, encode_row
from tablegate.adapters.tablestore.wire.protocol import table_store_pb2 as messages
from tablegate.adapters.tablestore.wire.protocol import tunnel_pb2
from tablegate.gateway.http.messages import Reply, Request
from tablegate.gateway.security.credentials import Credential, Scheme, Sessions
from tablegate.gateway.security.identities import Identity
from tests.adapters.azuretable.identified import (
    ACCOUNT,
    KEY,
    OTHER_ACCOUNT,
    VERSION,
    IdentifiedService,
    identified_service,
)
from tests.adapters.tablestore.client import cells_of, row, signed

KEYS = ("PartitionKey", "RowKey")
ENTITY = dict(zip(KEYS, "pr", strict=True))
ITEM = {name: {"S": text} for name, text in ENTITY.items()}
STORED = Credential(Scheme.AWS, "STORED", ("a secret",))
Place = tuple[str, str, str]
"""Access id, secret and session token."""


class Attempts:
    """The three dialects of one server with an issuer."""

    def __init__(self, service: IdentifiedService) -> None:
        self.service = service
        self._dynamodb, self._tablestore = (
            dynamodb.DynamoDB(service.gateway), tablestore.TableStore(service.gateway)
        )  # fmt: skip
        self.dialects = (service.dialect, self._dynamodb, self._tablestore)

    def keys_of(
        self, owner: Identity | Credential, seconds: int = 900, since_s: float = 0, account: str = ""
    ) -> Place:
        """Temporary keys that were issued some seconds ago."""
        made = self.service.gateway.sessions.issue(owner, seconds, time.time() - since_s, account)
        assert made is not None
        return made[:3]

    def dynamodb(self, keys: Place, operation: str, given: Mapping[str, Any]) -> Reply:
        body = json.dumps(given).encode()
        sent = {
            "Host": "host",
            "X-Amz-Target": f"DynamoDB_20120810.{operation}",
            "Content-Type": "application/x-amz-json-1.0",
        }
        request = AWSRequest("POST", "https://host/", sent, body)
        SigV4Auth(BotoCredentials(*keys[:2], keys[2] or None), "dynamodb", "us-east-1").add_auth(request)
        headers = tuple((name.lower(), value) for name, value in request.headers.items())
        return self._dynamodb.serve(Request("POST", "/", headers, body, secure=True))

    def tablestore(self, keys: Place, operation: str, message: Message, instance: str = "here") -> Reply:
        body = message.SerializeToString()
        access_id, secret, token = keys
        more = {"x_ots_accesskeyid": access_id, "x_ots_ststoken": token, "x_ots_instancename": instance}
        headers = signed(operation, body, int(time.time() * 1000), secret, **more)
        return self._tablestore.serve(Request("POST", f"/{operation}", headers, body, secure=True))

    def azure(self, token: str, method: str, path: str, body: Any = b"") -> Reply:
        return self.service.send(method, path, body, token)


@pytest.fixture(scope="module")
def attempts() -> Iterator[Attempts]:
    with identified_service() as service:
        service.store.add(STORED)
        service.reload()
        yield Attempts(service)


@pytest.fixture(scope="module")
def apart() -> Iterator[Attempts]:
    """A server whose accounts have tables of their own. Azure has two accounts."""
    with identified_service(namespaces="separate") as service:
        service.store.add(Credential(Scheme.AZURE, OTHER_ACCOUNT, (KEY, KEY)))
        service.store.add(STORED)
        service.reload()
        yield Attempts(service)


def message_of(operation: str, **members: Any) -> Message:
    return OPERATIONS[operation].request(**members) if operation in OPERATIONS else None


def dynamodb_requests(table: str) -> dict[str, tuple[set[str], dict[str, Any]]]:
    """Operation -> the actions that it needs on the table, and its members."""
    on = {"TableName": table}
    of_partition = {
        "KeyConditionExpression": "PartitionKey = :p", "ExpressionAttributeValues": {":p": {"S": "p"}}
    }  # fmt: skip
    absent = {**ITEM, "RowKey": {"S": "absent"}}
    return {
        "GetItem": ({"read"}, {**on, "Key": ITEM}),
        "BatchGetItem": ({"read"}, {"RequestItems": {table: {"Keys": [ITEM]}}}),
        "TransactGetItems": ({"read"}, {"TransactItems": [{"Get": {**on, "Key": ITEM}}]}),
        "Query": ({"query"}, {**on, **of_partition}),
        "Scan": ({"scan"}, on),
        "ExecuteStatement": ({"scan"}, {"Statement": f'SELECT * FROM "{table}"'}),
        "PutItem": ({"write"}, {**on, "Item": ITEM}),
        "UpdateItem": ({"write"}, {**on, "Key": ITEM}),
        "BatchWriteItem": ({"write"}, {"RequestItems": {table: [{"PutRequest": {"Item": ITEM}}]}}),
        "TransactWriteItems": (
            {"write", "delete"},
            {"TransactItems": [{"Put": {**on, "Item": ITEM}}, {"Delete": {**on, "Key": absent}}]},
        ),
        "DeleteItem": ({"delete"}, {**on, "Key": absent}),
        "DeleteTable": ({"define"}, on),
        "DescribeTimeToLive": ({"define"}, on),
        "DescribeContinuousBackups": ({"admin"}, on),
        "CreateBackup": ({"admin"}, {**on, "BackupName": "copy"}),
        "ListTables": ({"define"}, {}),
        "GetResourcePolicy": ({"admin"}, {"ResourceArn": f"arn:aws:dynamodb:us-east-1:000000000000:table/{table}"}),
    }  # fmt: skip


def tablestore_requests(table: str) -> dict[str, tuple[set[str], Message]]:
    lowest, highest = (row(dict.fromkeys(KEYS, bound)) for bound in (Bound.INF_MIN, Bound.INF_MAX))
    absent = {**ENTITY, "RowKey": "absent"}
    condition = messages.Condition(row_existence=messages.IGNORE)
    deleted = encode_row(WireRow(cells_of(absent), (), is_delete=True))
    ranged = {
        "inclusive_start_primary_key": lowest, "exclusive_end_primary_key": highest,
        "direction": messages.FORWARD, "max_versions": 1,
    }  # fmt: skip
    on = {"table_name": table}
    tunnel = tunnel_pb2.Tunnel(**on, tunnel_name="t", tunnel_type=tunnel_pb2.BaseData)
    requests = {
        "GetRow": ({"read"}, message_of("GetRow", **on, primary_key=row(ENTITY), max_versions=1)),
        "GetRange": ({"scan"}, message_of("GetRange", **on, **ranged)),
        "PutRow": ({"write"}, message_of("PutRow", **on, row=row(ENTITY, {"A": 1}), condition=condition)),
        "DeleteRow": ({"delete"}, message_of("DeleteRow", **on, primary_key=deleted, condition=condition)),
        "ComputeSplitPointsBySize": ({"scan"}, message_of("ComputeSplitPointsBySize", **on, split_size=1)),
        "SQLQuery": ({"scan"}, message_of("SQLQuery", query=f"select PartitionKey from {table}")),
        "Search": ({"scan"}, message_of("Search", **on, index_name="absent", search_query=b"")),
        "tunnel/create": ({"define"}, message_of("tunnel/create", tunnel=tunnel)),
        "DescribeTable": ({"describe"}, message_of("DescribeTable", **on)),
        "DeleteTable": ({"define"}, message_of("DeleteTable", **on)),
        "ListTable": ({"define"}, message_of("ListTable")),
    }
    return {name: request for name, request in requests.items() if name in OPERATIONS}


def azure_requests(table: str) -> dict[str, tuple[set[str], tuple[str, str, Any]]]:
    entity = f"/{table}(PartitionKey='p',RowKey='r')"
    return {
        "get": ({"read"}, ("GET", entity, b"")),
        "query": ({"scan"}, ("GET", f"/{table}()", b"")),
        "upsert": ({"write"}, ("PUT", entity, {"A": 1})),
        "merge": ({"write"}, ("MERGE", entity, {"A": 1})),
        "insert": ({"write"}, ("POST", f"/{table}", ENTITY)),
        "drop": ({"define"}, ("DELETE", f"/Tables('{table}')", b"")),
        "tables": ({"define"}, ("GET", "/Tables", b"")),
        "acl": ({"admin"}, ("GET", f"/{table}?comp=acl", b"")),
        "properties": ({"admin"}, ("GET", "/?restype=service&comp=properties", b"")),
    }


OF_CAPABILITIES = ("Search", "SQLQuery", "tunnel/create")
"""Operations that a server can lack."""
GRANTS: tuple[tuple[str, ...], ...] = (
    (), ("read",), ("query", "scan"), ("write",), ("delete",), ("read", "write", "delete"),
)  # fmt: skip
REFUSALS = (b"AccessDeniedException", b"AuthorizationPermissionMismatch", b"OTSNoPermissionAccess")


def test_no_operation_passes_that_no_grant_allows(attempts: Attempts) -> None:
    """There are 648 requests, and 36 of them are of capabilities.

    Each passes exactly if the grants of the identity, its group or its key allow it.
    """
    service, number, passed = attempts.service, 0, 0
    alice = Identity("alice", ("ops",))
    token = service.issuer.token(groups=["ops"])
    of_alice, of_key = attempts.keys_of(alice), attempts.keys_of(STORED)
    for actions in GRANTS:
        service.revoke_all()
        granted = {*actions, "describe"} if actions else set()  # each short form allows DescribeTable
        for grantee in ("group/ops", "STORED"):
            if actions:
                service.grant(grantee, "short", {action: ["people"] for action in actions})
        for table in ("people", "orders"):
            replies: dict[tuple[str, str], tuple[set[str], Reply]] = {}
            for operation, (needed, given) in dynamodb_requests(table).items():
                for owner, keys in (("identity", of_alice), ("key", of_key)):
                    replies[owner, operation] = needed, attempts.dynamodb(keys, operation, given)
            for operation, (needed, message) in tablestore_requests(table).items():
                replies["tablestore", operation] = needed, attempts.tablestore(of_alice, operation, message)
            for operation, (needed, request) in azure_requests(table).items():
                replies["azure", operation] = needed, attempts.azure(token, *request)
            for name, (needed, reply) in replies.items():
                is_allowed = table == "people" and needed <= granted
                is_refused = reply.status in (400, 403) and any(
                    code in reply.body + str(reply.headers).encode() for code in REFUSALS
                )
                assert is_refused is not is_allowed, (actions, table, name, reply)
                if name[1] not in OF_CAPABILITIES:
                    number, passed = number + 1, passed + is_allowed
    assert (number, passed) == (612, 58)


AWS_ACCOUNTS, INSTANCES = ("111122223333", "444455556666"), ("here", "there")
REFUSED_KEYS = (b"UnrecognizedClientException", b"OTSAuthFailed")


@pytest.mark.parametrize(
    ("grantees", "places"),
    [
        (("entra/alice", "group/ops", "role/clerk", "STORED"), ()),
        (("entra/alice@aws/111122223333",), ("111122223333",)),
        ((f"group/ops@azure/{OTHER_ACCOUNT}",), (OTHER_ACCOUNT,)),
        (("role/clerk@tablestore/there", "entra/bob@tablestore/here"), ("there",)),
        (("entra/alice@azure/here", f"entra/alice@tablestore/{ACCOUNT}", "group/ops@aws/here"), ()),
        (("group/ops@aws/*",), AWS_ACCOUNTS),
    ],
    ids=["no account", "an account", "of a group", "an instance", "another kind", "all of a kind"],
)
def test_no_operation_passes_in_an_account_that_no_grant_names(
    apart: Attempts, grantees: tuple[str, ...], places: tuple[str, ...]
) -> None:
    """444 requests in all, where accounts have tables of their own. A request that is allowed finds no table, or an error."""
    service = apart.service
    service.revoke_all()
    for grantee in grantees:
        service.grant(grantee, "all")
    alice = Identity("alice", ("ops",), ("clerk",))
    replies: list[tuple[str, str, Reply]] = []
    for account, instance, azure_account in zip(
        AWS_ACCOUNTS, INSTANCES, (ACCOUNT, OTHER_ACCOUNT), strict=True
    ):
        keys = apart.keys_of(alice, account=account)
        audience = f"https://{azure_account}.table.core.windows.net"
        token = service.issuer.token(groups=["ops"], roles=["clerk"], aud=audience)
        for operation, (_, given) in dynamodb_requests("people").items():
            replies.append((account, operation, apart.dynamodb(keys, operation, given)))
        for operation, (_, message) in tablestore_requests("people").items():
            replies.append((instance, operation, apart.tablestore(keys, operation, message, instance)))
        for operation, (_, (method, path, body)) in azure_requests("people").items():
            reply = service.send(method, path, body, token, account=azure_account)
            replies.append((azure_account, operation, reply))
    assert sum(operation not in OF_CAPABILITIES for _, operation, _ in replies) == 68
    for place, operation, reply in replies:
        is_refused = any(code in reply.body + str(reply.headers).encode() for code in REFUSALS + REFUSED_KEYS)
        assert is_refused is (place not in places), (place, operation, reply)


def proves_nothing(attempts: Attempts, keys: Place) -> None:
    """Check that keys are no keys, in both dialects that have access keys."""
    reply = attempts.dynamodb(keys, "GetItem", {"TableName": "people", "Key": ITEM})
    assert reply.status == 400, (keys, reply)
    code = json.loads(reply.body)["__type"].partition("#")[2]
    assert code in (
        "UnrecognizedClientException",
        "InvalidSignatureException",
        "IncompleteSignatureException",
    )
    message = message_of("GetRow", table_name="people", primary_key=row(ENTITY), max_versions=1)
    reply = attempts.tablestore(keys, "GetRow", message)
    assert (reply.status, b"OTSAuthFailed" in reply.body) == (403, True), (keys, reply)


def test_forged_temporary_keys(attempts: Attempts) -> None:
    service = attempts.service
    service.revoke_all()
    for grantee in ("entra/alice", "entra/bob", "STORED"):
        service.grant(grantee, "all")
    alice, bob = Identity("alice"), Identity("bob")
    access_id, secret, token = of_alice = attempts.keys_of(alice)
    of_key = attempts.keys_of(STORED)
    reply = attempts.dynamodb(of_alice, "GetItem", {"TableName": "people", "Key": ITEM})
    assert reply.status == 200
    other = attempts.keys_of(bob)
    with identified_service(secret_key="another key of the server") as stranger:
        session = stranger.gateway.sessions.issue(alice, 900, time.time())
    of_console = Sessions(service.gateway.identities, service.gateway.credentials, "console")
    cookie = of_console.issue(alice, 900, time.time())
    assert session is not None
    assert cookie is not None
    forged: list[Place] = [
        attempts.keys_of(alice, 900, since_s=900),  # expired
        (access_id, secret, ""),
        (access_id, secret, other[2]),  # the token of another session
        (other[0], other[1], token),
        (access_id, other[1], token),  # the secret of another session
        (access_id.lower(), secret, token),
        (access_id, secret, token[:-4]),
        (access_id, secret, token[:20] + ("A" if token[20] != "A" else "B") + token[21:]),
        (access_id, secret, token + "A" * 4096),
        (access_id, secret, "A" * 64),
        (STORED.access_id, STORED.secrets[0], token),  # a stored key with a token that it does not have
        (STORED.access_id, of_key[1], of_key[2]),
        ("entra/alice", secret, token),
        (of_key[0], STORED.secrets[0], of_key[2]),
        session[:3],  # of a server with another secret key
        cookie[:3],
    ]
    for keys in forged:
        proves_nothing(attempts, keys)
    service.gateway.credentials.replace([replace(STORED, secrets=("rotated",))])
    proves_nothing(attempts, of_key)
    service.reload()


def test_temporary_keys_end_with_the_grants_and_the_key(attempts: Attempts) -> None:
    """Groups and roles are those of the exchange. What is granted to them, and the stored key, are those of now."""
    service = attempts.service
    service.revoke_all()
    of_member, of_key = attempts.keys_of(Identity("alice", ("ops",), ("clerk",))), attempts.keys_of(STORED)
    get: tuple[str, dict[str, Any]] = "GetItem", {"TableName": "people", "Key": ITEM}
    for grantee, keys in (("group/ops", of_member), ("role/clerk", of_member), ("STORED", of_key)):
        assert attempts.dynamodb(keys, *get).status == 400
        grant = service.grant(grantee, "short", {"read": ["people"]})
        assert attempts.dynamodb(keys, *get).status == 200
        denial = service.grant(grantee, "short", {"read": ["people"], "deny": True})
        assert attempts.dynamodb(keys, *get).status == 400
        service.revoke(denial)
        service.revoke(grant)
        assert attempts.dynamodb(keys, *get).status == 400


@pytest.mark.parametrize(
    "host", ["teamdata.table.cosmos.azure.com", "teamdata.table.core.windows.net", "host"]
)
def test_no_host_name_gives_more_rights(attempts: Attempts, host: str) -> None:
    """The host selects the flavour. A client may send any. Grants name tables, not addresses."""
    service = attempts.service
    service.revoke_all()
    service.grant("entra/alice", "short", {"read": ["people"]})
    headers = (
        ("host", host), ("x-ms-version", VERSION), ("x-ms-date", formatdate(usegmt=True)), ("if-match", "*"),
        ("content-type", "application/json"), ("authorization", f"Bearer {service.issuer.token()}"),
    )  # fmt: skip
    base = "" if "." in host else f"/{ACCOUNT}"
    for table in ("orders", "Orders", "ORDERS", "people2", "peopl%65s", "people*", "*"):
        path = f"{base}/{table}(PartitionKey='p',RowKey='r')"
        for method, body in (("GET", b""), ("PUT", b'{"A": 1}'), ("DELETE", b"")):
            request = Request(method, path, headers, body, secure=True)
            reply = service.dialect.serve(request)
            if table == "orders":
                info = service.dialect.request_info(request, reply)
                assert (info.caller, info.is_refusal) == ("entra/alice", True)
                assert [name for name, _ in info.keys] == ["orders"]
            assert reply.status == 403 or (reply.status, "*" in table) == (400, True), (table, method, reply)
