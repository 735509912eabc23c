"""Requests that a service rejects, and invalid rows that it returns: the commands report one line or reject the row."""

from __future__ import annotations

import json
from pathlib import Path

import boto3
import pytest

from tablegate.gateway.model.values.keys import Key
from tablegate.gateway.model.values.rows import Contents, Row
from tablegate.gateway.model.values.values import text
from tablegate.transfer.endpoints.endpoint import Definition, Service, UnreadableRow
from tablegate.transfer.errors import ServiceUnavailable
from tests.command_line.test_commands import tablegate
from tests.support.foreign_servers import foreign_server
from tests.support.running import Running
from tests.transfer.endpoints.conftest import OPENERS, REGION
from tests.transfer.endpoints.faulty_proxy import Answer, Asked, faulty_proxy
from tests.transfer.endpoints.places import SCHEMAS, key_of, numbered_rows


def addresses(url: str) -> dict[str, str]:
    """A name that each service refuses: DynamoDB's have 3 to 255 characters, Azure's begin with a letter, as Table Store's do
    (docs/protocols)."""
    return {
        "dynamodb": f"dynamodb://t?region={REGION}&endpoint={url}",
        "azure-table": f"azure-table://devstoreaccount1/1bad?endpoint={url}/devstoreaccount1",
        "tablestore": f"tablestore://inst/1-bad?endpoint={url}",
    }


WORDS = {
    "dynamodb": "ValidationException",
    "azure-table": "InvalidResourceName",
    "tablestore": "OTSParameterInvalid",
}


@pytest.mark.parametrize("service", WORDS)
@pytest.mark.parametrize("command", ["lint", "copy", "plan", "copy to", "verify", "diff", "signature"])
def test_a_refusal_is_one_line_and_status_2(
    ours: Running, tmp_path: Path, service: str, command: str
) -> None:
    refused = addresses(ours.url)[service]
    good = f"dynamodb://refusals?region={REGION}&endpoint={ours.url}"
    table = OPENERS[Service.DYNAMODB](ours.url, "refusals", 20)
    table.create(Definition("refusals", Service.DYNAMODB, SCHEMAS[Service.DYNAMODB]))
    arguments = {
        "lint": ("lint", refused, "tablegate"),
        "copy": ("copy", refused, "file:x.jsonl"),
        "plan": ("copy", "--dry-run", refused, "file:x.jsonl"),
        "copy to": ("copy", good, refused),
        "verify": ("verify", refused, good),
        "diff": ("diff", good, refused),
        "signature": ("signature", refused),
    }[command]
    [line] = tablegate(tmp_path, *arguments, code=2).splitlines()
    assert line.startswith(f"Error: {refused}: the service rejects the request: {WORDS[service]}")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("service", [Service.DYNAMODB, Service.AZURE_TABLE])
def test_a_row_that_the_service_should_not_have_is_given_as_such(ours: Running, service: Service) -> None:
    """DynamoDB has no empty attribute name, also not in a map ("Naming rules").

    Azure Table has no arrays ("Property types").
    """
    wrong: dict[Service, tuple[bytes, bytes, str]] = {
        Service.DYNAMODB: (b'{"S":"odd"}', b'{"M":{"":{"S":"odd"}}}', "Empty attribute name"),
        Service.AZURE_TABLE: (b'"odd"', b'["odd"]', "mark: InvalidInput: One of the request inputs is not valid."),
    }  # fmt: skip
    before, after, reason = wrong[service]

    def script(asked: Asked) -> Answer:
        status, headers, body = asked.forward(asked.body)
        headers = [header for header in headers if header[0].lower() != "x-amz-crc32"]
        return status, headers, body.replace(before, after)

    name = f"odd{service.value.replace('-', '')}"
    direct = OPENERS[service](ours.url, name, 20)
    schema = SCHEMAS[service]
    direct.create(Definition(name, service, schema))
    good, odd = numbered_rows(service, 2)
    key = key_of(odd, schema)
    values = dict(zip(schema.names, key.values, strict=True))
    direct.write([good, Row(odd.position, Contents.of_values({**values, "mark": text("odd")}), 0)])
    with faulty_proxy(ours.url, script) as url:
        endpoint = OPENERS[service](url, name, 20)
        [page] = [page for segment in endpoint.segments(1) for page in endpoint.scan(segment)]
        assert [row.position for row in page.rows] == [good.position]
        [unread] = page.unreadable
        assert (unread.key, unread.reason) == (Key(key.values, odd.position), reason)
        assert b"odd" in unread.wire
        [known, again] = endpoint.get([key_of(good, schema), key])
        assert known is not None
        assert known.position == good.position
        assert isinstance(again, UnreadableRow)
        assert again.reason == reason


@pytest.mark.clients
def test_an_item_of_dynalite_with_an_empty_name_is_rejected_and_named(tmp_path: Path) -> None:
    with foreign_server("dynalite", tmp_path) as url:
        client = boto3.client("dynamodb", endpoint_url=url, region_name=REGION)
        client.create_table(
            TableName="songs",
            BillingMode="PAY_PER_REQUEST",
            AttributeDefinitions=[{"AttributeName": "id", "AttributeType": "S"}],
            KeySchema=[{"AttributeName": "id", "KeyType": "HASH"}],
        )
        client.get_waiter("table_exists").wait(TableName="songs", WaiterConfig={"Delay": 1})
        for number in range(5):
            client.put_item(TableName="songs", Item={"id": {"S": f"song {number}"}})
        odd = {"id": {"S": "odd"}, "m": {"M": {"": {"S": "x"}}}}
        client.put_item(TableName="songs", Item=odd)
        folder = tmp_path / "work"
        folder.mkdir()
        source, target = (
            f"dynamodb://songs?region={REGION}&endpoint={url}",
            "tablegate:sqlite:///a.sqlite#songs",
        )
        assert "5 rows, " in tablegate(folder, "copy", source, target, "--job", "copy.job", code=1)
        [line] = (folder / "copy.job.rejects.jsonl").read_text().splitlines()
        reject = json.loads(line)
        assert (reject["code"], reject["key"], reject["row"]) == ("row-unreadable", {"id": {"S": "odd"}}, odd)
        assert "e.g. odd" in tablegate(folder, "lint", source, "tablegate", "--fail-on", "impossible", code=1)
        assert "missing odd  (" in tablegate(folder, "verify", source, target, code=1)
        assert "missing odd  (" in tablegate(folder, "diff", source, target, code=1)
        assert "the row 'odd' cannot be read: Empty attribute name" in tablegate(
            folder, "signature", source, code=2
        )


@pytest.mark.parametrize("body", [b"<html>", b"", b"{}", b"[]", b"null"])
@pytest.mark.parametrize("service", [Service.DYNAMODB, Service.AZURE_TABLE])
def test_a_server_of_another_service_is_reported(ours: Running, service: Service, body: bytes) -> None:
    def script(_: Asked) -> Answer:
        return 200, [("Content-Type", "application/json")], body

    with faulty_proxy(ours.url, script) as url:
        endpoint = OPENERS[service](url, "abc", 0)
        for ask in (endpoint.describe, endpoint.list_tables):
            with pytest.raises(ServiceUnavailable, match="the reply is not one of"):
                ask()
