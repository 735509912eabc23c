"""A foreign Azure key or token, and every identifier: the account in path, host, Authorization and signature, tables,
continuation tokens, the URLs inside of a batch."""

from __future__ import annotations

import base64
import hmac
import http.client
import json
from email.utils import formatdate
from typing import Any
from urllib.parse import quote, urlsplit

import pytest
from azure.core.credentials import AzureNamedKeyCredential, AzureSasCredential
from azure.core.exceptions import HttpResponseError
from azure.data.tables import (
    AccountSasPermissions,
    ResourceTypes,
    TableSasPermissions,
    TableServiceClient,
    generate_account_sas,
    generate_table_sas,
)

from tests.adapters.azuretable.batch_requests import FOREIGN
from tests.adapters.azuretable.client import sign
from tests.support.tables import each_row
from tests.support.waiting import PATIENCE_S
from tests.tenants.conftest import MUSIC, Tenants, azure_key, same_as_of_nobody

EXPIRY = "2099-01-01T00:00:00Z"
ENTITY = "(PartitionKey='p',RowKey='s0')"
NEW = {"PartitionKey": "p", "RowKey": "stolen"}
ANY = {"If-Match": "*"}
# (method, path below the account, body, headers). {} is a table.
OPERATIONS: dict[str, tuple[str, str, Any, dict[str, str]]] = {
    "Query Tables": ("GET", "/Tables", None, {}),
    "Get Table": ("GET", "/Tables('{}')", None, {}),
    "Create Table": ("POST", "/Tables", {"TableName": "stolen"}, {}),
    "Delete Table": ("DELETE", "/Tables('{}')", None, {}),
    "Get ACL": ("GET", "/{}?comp=acl", None, {}),
    "Set ACL": ("PUT", "/{}?comp=acl", b"", {}),
    "Query Entities": ("GET", "/{}()", None, {}),
    "Query with a filter": ("GET", "/{}()?$filter=PartitionKey%20eq%20'p'", None, {}),
    "Query from a token": ("GET", "/{}()?NextPartitionKey=1!4!cA--&NextRowKey=1!4!czE-", None, {}),
    "Get Entity": ("GET", "/{}" + ENTITY, None, {}),
    "Insert": ("POST", "/{}", NEW, {}),
    "Insert Or Replace": ("PUT", "/{}" + ENTITY, {"a": 1}, {}),
    "Insert Or Merge": ("MERGE", "/{}" + ENTITY, {"a": 1}, {}),
    "Update": ("PUT", "/{}" + ENTITY, {"a": 1}, ANY),
    "Merge": ("PATCH", "/{}" + ENTITY, {"a": 1}, ANY),
    "Delete": ("DELETE", "/{}" + ENTITY, None, ANY),
    "Get properties": ("GET", "/?restype=service&comp=properties", None, {}),
    "Set properties": ("PUT", "/?restype=service&comp=properties", b"<StorageServiceProperties/>", {}),
}
OF_A_TABLE = [name for name, (_, path, *_) in OPERATIONS.items() if "{}" in path]


def send(
    tenants: Tenants,
    operation: tuple[str, str, Any, dict[str, str]],
    base: str,
    *,
    host: str = "",
    signer: str = "thief",
    claimed: str = "",
    token: str = "",
    path_signed: str = "",
) -> tuple[int, str]:
    """Send a request and return (status, body).

    `signer` owns the signing key. `claimed` is the account in Authorization and in the signed text. `token` is a shared
    access signature that replaces both.
    """
    method, path, body, more = operation
    address = urlsplit(tenants.server.url)
    content = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
    target = base + path
    headers = {
        "x-ms-date": formatdate(usegmt=True),
        "x-ms-version": "2019-02-02",
        "Accept": "application/json",
        **more,
    }
    headers |= {"Content-Type": "application/json"} if content and "Content-Type" not in headers else {}
    if token:
        target += ("&" if "?" in target else "?") + token
    else:
        key = base64.b64decode(azure_key(signer))
        headers["Authorization"] = sign(key, method, path_signed or target, headers, claimed or signer)
    assert address.hostname
    connection = http.client.HTTPConnection(address.hostname, address.port, timeout=PATIENCE_S)
    try:
        connection.putrequest(method, target, skip_host=True, skip_accept_encoding=True)
        for name, value in {
            "Host": host or address.netloc,
            "Content-Length": str(len(content)),
            **headers,
        }.items():
            connection.putheader(name, value)
        connection.endheaders(content)
        answer = connection.getresponse()
        return answer.status, answer.read().decode()
    finally:
        connection.close()


def named(operation: str, table: str = MUSIC) -> tuple[str, str, Any, dict[str, str]]:
    method, path, body, headers = OPERATIONS[operation]
    return method, path.replace("{}", table), body, headers


def without_ids(answer: tuple[int, str]) -> str:
    """An answer without what is other each time: the request's id and the moment."""
    status, body = answer
    text = body.partition("RequestId")[0]
    return f"{status} {text}"


@each_row("operation", OF_A_TABLE)
def test_a_table_is_one_of_the_accounts(tenants: Tenants, operation: str) -> None:
    told = same_as_of_nobody(lambda name: without_ids(send(tenants, named(operation, name), "/thief")))
    assert told.startswith("404 "), told


WAYS = [
    # base of the path, Host, account in Authorization, signed path
    ("/victim", "", "", ""),
    ("/victim", "", "victim", ""),
    ("/victim-secondary", "", "", ""),
    ("/victim-secondary/victim", "", "", ""),
    ("/victim-secondary/victim", "", "victim", ""),
    ("/thief-secondary/victim", "", "", ""),
    ("/thief/victim", "", "", ""),
    ("/thief/../victim", "", "", ""),
    ("/thief/%2e%2e/victim", "", "", ""),
    ("/%76ictim", "", "", ""),
    ("/VICTIM", "", "", ""),
    ("//victim", "", "", ""),
    ("", "victim.table.localhost", "", ""),
    ("", "victim.table.localhost", "victim", ""),
    ("", "victim-secondary.table.localhost", "", ""),
    ("", "VICTIM.TABLE.localhost", "", ""),
    ("/thief", "victim.table.localhost", "", ""),
    ("/victim", "thief.table.localhost", "", ""),
    ("http://victim.table.localhost", "thief.table.localhost", "", ""),
    ("http://127.0.0.1/victim", "", "", "/victim"),
    ("http://thief.table.localhost@127.0.0.1/victim", "", "", "/victim"),
]


@each_row("base, host, claimed, path_signed", WAYS)
def test_every_spelling_of_a_foreign_account_is_denied(
    tenants: Tenants, base: str, host: str, claimed: str, path_signed: str
) -> None:
    for operation in OPERATIONS:
        method, path, body, headers = named(operation)
        signed = path_signed + path if path_signed else ""
        status, answer = send(
            tenants, (method, path, body, headers), base, host=host, claimed=claimed, path_signed=signed
        )
        # If the host names `thief`, the request means its own tables, and there are none.
        own = host.startswith("thief") and operation in (
            "Query Tables",
            "Create Table",
            "Get properties",
            "Set properties",
        )
        if own and base.startswith("http"):
            assert "album" not in answer
            assert MUSIC not in answer
            if operation == "Create Table" and status == 201:
                send(tenants, ("DELETE", "/Tables('stolen')", None, {}), "/thief")
            continue
        assert status >= 400, (operation, status, answer)


def tokens() -> dict[str, str]:
    """Shared access signatures that the thief can make."""
    thief, as_victim = (AzureNamedKeyCredential(name, azure_key("thief")) for name in ("thief", "victim"))
    everything = {
        "resource_types": ResourceTypes(service=True, container=True, object=True),
        "permission": AccountSasPermissions(
            read=True, write=True, delete=True, list=True, add=True, create=True, update=True, process=True
        ),
        "expiry": EXPIRY,
    }
    of_table = {
        "permission": TableSasPermissions(read=True, add=True, update=True, delete=True),
        "expiry": EXPIRY,
        "table_name": MUSIC,
    }
    made = {
        "of its account": generate_account_sas(thief, **everything),
        "of its account, in the victim's name": generate_account_sas(as_victim, **everything),
        "of its table of that name": generate_table_sas(thief, **of_table),
        "of the victim's table": generate_table_sas(as_victim, **of_table),
        "of the victim's policy": generate_table_sas(thief, table_name=MUSIC, policy_id="readers"),
    }
    # tn with the account in it, as if the resource were put together by hand.
    text = f"r\n\n{EXPIRY}\n/table/thief/../victim/{MUSIC}\n\n\n\n2019-02-02\n\n\n\n"
    digest = hmac.digest(base64.b64decode(azure_key("thief")), text.encode(), "sha256")
    parts = {
        "sv": "2019-02-02",
        "sp": "r",
        "se": EXPIRY,
        "tn": f"../victim/{MUSIC}",
        "sig": base64.b64encode(digest).decode(),
    }
    made["with an account in its table"] = "&".join(
        f"{name}={quote(value, safe='')}" for name, value in parts.items()
    )
    return made


@each_row("token", tokens())
@each_row("base, host", [("/victim", ""), ("", "victim.table.localhost"), ("/victim-secondary", "")])
def test_self_made_tokens_are_denied(tenants: Tenants, token: str, base: str, host: str) -> None:
    for operation in OPERATIONS:
        status, answer = send(tenants, named(operation), base, host=host, token=tokens()[token])
        assert status == 403, (operation, status, answer)


def test_a_token_of_the_victims_is_no_use_in_another_account(tenants: Tenants) -> None:
    victim = AzureNamedKeyCredential("victim", azure_key("victim"))
    token = generate_table_sas(victim, MUSIC, permission=TableSasPermissions(read=True), expiry=EXPIRY)
    there = TableServiceClient(
        f"{tenants.server.url}/thief", credential=AzureSasCredential(token), retry_total=0
    )
    with pytest.raises(HttpResponseError) as caught:
        list(there.get_table_client(MUSIC).list_entities())
    assert caught.value.status_code == 403


def test_foreign_continuation_tokens_lead_through_own_rows(tenants: Tenants) -> None:
    pages = tenants.victim.azure.get_table_client(MUSIC).list_entities(results_per_page=2).by_page()
    next(pages)
    token = pages.continuation_token
    mine = tenants.thief.azure.create_table(MUSIC)
    try:
        mine.create_entity({"PartitionKey": "p", "RowKey": "s9", "mine": True})
        found = [row["RowKey"] for page in mine.list_entities().by_page(token) for row in page]
        assert found == ["s9"]
        after = send(tenants, ("GET", "/Tables?NextTableName=1!4!YWFh", None, {}), "/thief")
        assert [each["TableName"] for each in json.loads(after[1])["value"]] == [MUSIC]
    finally:
        tenants.thief.azure.delete_table(MUSIC)


def batch(target: str, method: str) -> tuple[str, str, bytes, dict[str, str]]:
    """A $batch of one change of a row that the victim has."""
    body = "" if method == "DELETE" else json.dumps({"PartitionKey": "p", "RowKey": "s0", "a": 1})
    inner = f"{method} {target} HTTP/1.1\r\nContent-Type: application/json\r\nIf-Match: *\r\n\r\n{body}"
    content = (
        "--b\r\nContent-Type: multipart/mixed; boundary=c\r\n\r\n--c\r\nContent-Type: application/http\r\n"
        f"Content-Transfer-Encoding: binary\r\n\r\n{inner}\r\n--c--\r\n--b--\r\n"
    )
    return "POST", "/$batch", content.encode(), {"Content-Type": "multipart/mixed; boundary=b"}


@pytest.mark.parametrize(("base", "host"), [("/thief", ""), ("", "thief.table.localhost")])
def test_no_url_inside_of_a_batch_leads_to_another_account(tenants: Tenants, base: str, host: str) -> None:
    """Nor to one's own table of the same name: what names another account is refused."""
    mine = tenants.thief.azure.create_table(MUSIC)
    try:
        row = mine.create_entity({"PartitionKey": "p", "RowKey": "s0"})
        for written in FOREIGN:
            for method in ("PUT", "MERGE", "DELETE"):
                target = (
                    written.replace("accb", "victim").replace("%61ccb", "%76ictim").replace("ACCB", "VICTIM")
                )
                target = target.replace("acca", "thief").replace("/T", f"/{MUSIC}{ENTITY}")
                status, answer = send(tenants, batch(target, method), base, host=host)
                assert status >= 400 or "HTTP/1.1 400" in answer, (target, status, answer)
        assert mine.get_entity("p", "s0").metadata["etag"] == row["etag"]
    finally:
        tenants.thief.azure.delete_table(MUSIC)
