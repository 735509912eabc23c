"""The audit log of requests with several parts: a refused part is recorded even if the request succeeds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import requests
import tablestore as ots
from azure.core.credentials import AzureNamedKeyCredential
from azure.data.tables import TableSasPermissions, generate_table_sas

from tablegate.adapters.azuretable.request_info import PART_MARKS as AZURE_MARKS
from tablegate.adapters.dynamodb.request_info import PART_MARKS as DYNAMODB_MARKS
from tablegate.gateway.security.credentials import Credential, Scheme
from tablegate.gateway.security.grant_store import written_of
from tests.gateway.observability.test_audit import lines, served
from tests.support.waiting import PATIENCE_S
from tests.transfer.traffic.strict import REGION, Owner

EXPIRY = "2099-01-01T00:00:00Z"
FOREIGN = f"arn:aws:dynamodb:{REGION}:999999999999:table/theirs"
KEY = {
    "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}],
    "AttributeDefinitions": [{"AttributeName": "pk", "AttributeType": "S"}],
    "BillingMode": "PAY_PER_REQUEST",
}


def refusals(folder: Path) -> list[dict[str, Any]]:
    return [line for line in lines(folder / "audit.jsonl") if line["event"] == "refusal"]


@pytest.mark.extended
@pytest.mark.parametrize("flag", [(), ("--audit-writes",)])
def test_a_refused_statement_of_a_batch_is_recorded(tmp_path: Path, flag: tuple[str, ...]) -> None:
    """One of two statements names another account's table.

    If writes are recorded, both records belong to one request.
    """
    with served(tmp_path, "--namespaces", "separate", *flag, has_tablestore=False) as (url, owner):
        aws = owner.dynamodb(url)
        aws.create_table(TableName="mine", **KEY)
        # An item can contain the text that identifies a refusal. That is no refusal.
        texts = {"pk": {"S": "a"}, "Code": {"S": 'AccessDenied "Code":"AccessDenied"'}}
        aws.put_item(TableName="mine", Item=texts)
        statements = [f"UPDATE \"{name}\" SET a = 1 WHERE pk = 'a'" for name in ("mine", FOREIGN)]
        answer = aws.batch_execute_statement(Statements=[{"Statement": text} for text in statements])
        assert [each.get("Error", {}).get("Code") for each in answer["Responses"]] == [None, "AccessDenied"]
        found = aws.batch_execute_statement(Statements=[{"Statement": "SELECT * FROM mine WHERE pk = 'a'"}])
        assert found["Responses"][0]["Item"]["Code"] == texts["Code"]
    [refusal] = refusals(tmp_path)
    assert (refusal["operation"], refusal["tables"]) == ("BatchExecuteStatement", ["theirs"])
    assert (refusal["result"], refusal["who"], refusal["dialect"]) == (
        "AccessDenied",
        "aws-owner",
        "dynamodb",
    )
    written = [line for line in lines(tmp_path / "audit.jsonl") if line["event"] == "write"]
    told = [line["request_id"] for line in written if line["operation"] == "BatchExecuteStatement"]
    assert told == ([refusal["request_id"]] if flag else [])


def batch_of_a_query(url: str, owner: Owner, permission: str) -> requests.Response:
    """A $batch with one query, under a shared access signature."""
    key = AzureNamedKeyCredential("owner", owner.azure_key)
    token = generate_table_sas(
        key, "people", permission=TableSasPermissions.from_string(permission), expiry=EXPIRY
    )
    inner = (
        f"GET {url}/owner/people(PartitionKey='a',RowKey='b') HTTP/1.1\r\nAccept: application/json\r\n\r\n"
    )
    body = f"--b\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\n{inner}\r\n--b--\r\n"
    headers = {"Content-Type": "multipart/mixed; boundary=b", "x-ms-version": "2019-02-02"}
    return requests.post(f"{url}/owner/$batch?{token}", body.encode(), headers=headers, timeout=PATIENCE_S)


def test_a_refused_part_of_an_entity_group_is_recorded(tmp_path: Path) -> None:
    with served(tmp_path) as (url, owner):
        people = owner.azure(url).create_table("people")
        people.create_entity(
            {"PartitionKey": "a", "RowKey": "b", "note": "HTTP/1.1 403 AuthorizationFailure"}
        )
        for permission, status in (("r", 200), ("a", 403)):
            answer = batch_of_a_query(url, owner, permission)
            assert answer.status_code == 202
            assert f"HTTP/1.1 {status}" in answer.text
    [refusal] = refusals(tmp_path)
    assert (refusal["operation"], refusal["tables"], refusal["who"]) == ("POST Batch", ["people"], "owner")
    assert refusal["result"] == "AuthorizationPermissionMismatch"


def test_rows_of_a_batch_are_refused_with_the_whole_batch(tmp_path: Path) -> None:
    """Table Store never refuses one part and executes the others, so one line covers the whole request."""
    mine = written_of({"read": ["mine"], "write": ["mine"]})
    with served(tmp_path, others=[(Credential(Scheme.TABLESTORE, "limited", ("s",)), mine)]) as (url, owner):
        for name in ("mine", "theirs"):
            meta = ots.TableMeta(name, [("pk", "STRING")])
            none = ots.ReservedThroughput(ots.CapacityUnit(0, 0))
            owner.tablestore(url).create_table(meta, ots.TableOptions(), none)
        client = ots.OTSClient(url, "limited", "s", "here", retry_policy=ots.NoRetryPolicy())
        ignore = ots.Condition(ots.RowExistenceExpectation.IGNORE)
        reading, writing = ots.BatchGetRowRequest(), ots.BatchWriteRowRequest()
        for name in ("mine", "theirs"):
            reading.add(ots.TableInBatchGetRowItem(name, [[("pk", "a")]], max_version=1))
            row = ots.PutRowItem(ots.Row([("pk", "a")], [("note", "n")]), ignore)
            writing.add(ots.TableInBatchWriteRowItem(name, [row]))
        for ask in (lambda: client.batch_get_row(reading), lambda: client.batch_write_row(writing)):
            with pytest.raises(ots.OTSServiceError, match="OTSNoPermissionAccess"):
                ask()
        assert client.get_row("mine", [("pk", "a")], max_version=1)[1] is None
    assert [(line["operation"], line["tables"], line["result"]) for line in refusals(tmp_path)] == [
        ("BatchGetRow", ["mine", "theirs"], "OTSNoPermissionAccess"),
        ("BatchWriteRow", ["mine", "theirs"], "OTSNoPermissionAccess"),
    ]


def test_operations_answered_in_parts_are_known() -> None:
    """A mark of an operation that there is not would never be looked for."""
    from tablegate.adapters.azuretable.request_info import KINDS as AZURE
    from tablegate.adapters.dynamodb.operation_table import OPERATIONS as DYNAMODB

    assert DYNAMODB_MARKS.keys() <= DYNAMODB.keys()
    assert AZURE_MARKS.keys() <= AZURE.keys()
