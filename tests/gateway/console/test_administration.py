"""The console creates and changes tables by the dialects' own operations: each form, what is not accepted, who may not, and the
audit log."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from html import unescape
from typing import Any

import pytest
from botocore.exceptions import ClientError

from tablegate.gateway.configuration.loading import load
from tablegate.gateway.observability import audit
from tablegate.gateway.observability.audit import AuditScope, AuditSink, AuditTrail, KeyForm
from tablegate.gateway.wiring import connect, open_store
from tests.gateway.console.test_console import Console
from tests.gateway.console.test_grants_of_visitors import KEY, OWNER, SETTINGS, policy_for
from tests.gateway.security.test_permission_cases import allow
from tests.support.live_azure import LiveAzure
from tests.support.live_dynamodb import Live
from tests.support.running import ENTRIES, Running, start
from tests.support.waiting import wait_until

ARN = "arn:aws:dynamodb:*:*:table/"


@pytest.fixture(scope="module")
def server(shared_database_url: str) -> Iterator[Running]:
    running = start(shared_database_url, console_writes=True)
    yield running
    running.stop()


@pytest.fixture(scope="module")
def live(server: Running) -> Live:
    return Live(server.url)


@pytest.fixture
def console(server: Running) -> Console:
    return Console(server.url)


@pytest.fixture
def table(live: Live) -> str:
    """A table with ten items."""
    name = live.create("p:S", "s:N").name
    for number in range(10):
        item = {"p": {"S": "a"}, "s": {"N": str(number)}, "color": {"S": "red"}}
        live.client.put_item(TableName=name, Item=item)
    return name


def has_settled(live: Live, table: str) -> bool:
    """True if a table and its indexes are active."""
    found = live.client.describe_table(TableName=table)["Table"]
    states = {each["IndexStatus"] for each in found.get("GlobalSecondaryIndexes", ())}
    return bool({found["TableStatus"], *states} <= {"ACTIVE"})


def backup_state(live: Live, arn: str) -> str:
    described = live.client.describe_backup(BackupArn=arn)["BackupDescription"]
    return str(described["BackupDetails"]["BackupStatus"])


def send(console: Console, table: str, form: str, status: int = 200, **values: str) -> str:
    """Send a form about a DynamoDB table."""
    given = {"namespace": "shared", "name": table, "dialect": "dynamodb", "form": form, **values}
    return unescape(console.post("/settings/change", status, **given))


def settings(console: Console, table: str, dialect: str = "dynamodb") -> str:
    return unescape(console.get("/settings", namespace="shared", name=table, dialect=dialect))


def new(console: Console, status: int = 200, dialect: str = "dynamodb", **values: str) -> str:
    given = {"partition_type": "S", "sort_type": "S", "billing": "PAY_PER_REQUEST", **values}
    return unescape(
        console.post("/tables/create", status, namespace="shared", dialect=dialect, form="create", **given)
    )


INDEX = {"scope": "GlobalSecondaryIndexes", "partition_type": "S", "sort_type": "S", "projection": "ALL"}
"""The values of the form's fields of an index that is not created."""


# New tables


def test_optional_parts_of_a_new_table_are_folded_until_they_have_values(console: Console) -> None:
    def folded(page: str) -> list[tuple[str, str]]:
        return re.findall(r"<details( open)?><summary>([^<]+)", page.partition("<form")[2])

    page = console.get("/tables/new", dialect="dynamodb")
    assert page.index("Primary key") < page.index("<details>")
    parts = ["Index 1 (optional)", "Index 2 (optional)", "Capacity", "Options"]
    assert folded(page) == [("", part) for part in parts]
    refused = console.post(
        "/tables/create", 400, namespace="shared", dialect="dynamodb", form="create", name="x", partition="p",
        partition_type="S", sort_type="S", billing="PAY_PER_REQUEST", tags="a", view="", protection="",
        **{f"index{number}_{name}": value for number in (1, 2) for name, value in INDEX.items()},
    )  # fmt: skip
    assert folded(refused)[-1] == (" open", "Options") and folded(refused)[0][0] == ""


def test_a_dynamodb_table_is_created_with_indexes_stream_protection_and_tags(
    console: Console, live: Live
) -> None:
    name = f"made-{live.create('p:S').name}"
    page = new(
        console, name=name, partition="p", sort="s", sort_type="N", view="KEYS_ONLY", protection="yes",
        tags="team=blue\nstage=test", index1_name="by-color", index1_scope="GlobalSecondaryIndexes",
        index1_partition="color", index1_partition_type="S", index1_projection="INCLUDE", index1_included="a, b",
        index2_name="by-size", index2_scope="LocalSecondaryIndexes", index2_partition="p", index2_partition_type="S",
        index2_sort="size", index2_sort_type="N", index2_projection="KEYS_ONLY",
    )  # fmt: skip
    found = live.client.describe_table(TableName=name)["Table"]
    assert "The table is empty" in page and f"<title>{name} " in page
    assert [each["AttributeName"] for each in found["KeySchema"]] == ["p", "s"]
    assert found["BillingModeSummary"]["BillingMode"] == "PAY_PER_REQUEST"
    assert found["StreamSpecification"]["StreamViewType"] == "KEYS_ONLY"
    assert found["DeletionProtectionEnabled"] is True
    [index] = found["GlobalSecondaryIndexes"]
    assert (index["IndexName"], index["Projection"]["NonKeyAttributes"]) == ("by-color", ["a", "b"])
    assert found["LocalSecondaryIndexes"][0]["KeySchema"][1]["AttributeName"] == "size"
    tags = live.client.list_tags_of_resource(ResourceArn=found["TableArn"])["Tags"]
    assert {each["Key"]: each["Value"] for each in tags} == {"team": "blue", "stage": "test"}


def test_an_azure_table_is_created_and_deleted(console: Console, server: Running) -> None:
    service = LiveAzure(server.url).service
    assert "<title>Customers1 " in new(console, dialect="azuretable", name="Customers1")
    assert "Customers1" in [each.name for each in service.list_tables()]
    assert "TableAlreadyExists: " in new(console, 400, dialect="azuretable", name="Customers1")
    given = {"namespace": "shared", "name": "Customers1", "dialect": "azuretable", "form": "delete"}
    assert "Type the name of the table: Customers1." in console.post(
        "/settings/change", 400, typed="x", **given
    )
    console.post("/settings/change", typed="Customers1", **given)
    assert "Customers1" not in [each.name for each in service.list_tables()]


def test_a_table_of_table_store_is_created_changed_and_deleted(console: Console) -> None:
    new(
        console, dialect="tablestore", name="rows_of_ots", key1="p", type1="STRING", key2="n", type2="INTEGER",
        increments="2", lifetime="86400", versions="1", deviation="1000", hours="48",
    )  # fmt: skip
    page = settings(console, "rows_of_ots", "tablestore")
    assert "86,400 seconds" in page and "enabled, kept for 48 hours" in page
    where = {"namespace": "shared", "name": "rows_of_ots", "dialect": "tablestore"}

    def change(form: str, status: int = 200, **values: str) -> str:
        return unescape(console.post("/settings/change", status, **where, form=form, **values))

    change("column_new", column="color", type="DCT_STRING")
    change("index_new", index="by_color", keys="color, p", scope="global", fills="yes")
    page = settings(console, "rows_of_ots", "tablestore")
    assert "by_color" in page and "color, p" in page
    change("index_drop", index="by_color")
    change("column_drop", column="color")
    change("options", lifetime="-1", versions="3", deviation="2000")
    change("stream_off")
    page = settings(console, "rows_of_ots", "tablestore")
    assert "never" in page and "disabled" in page and "No column is defined." in page
    refused = change("options", 400, lifetime="5", versions="1", deviation="1")
    assert "The time to live must be -1 or at least 86400 seconds." in refused and 'value="5"' in refused
    assert "This must be a whole number." in change("options", 400, lifetime="x", versions="1")
    change("delete", typed="rows_of_ots")
    console.get("/settings", 404, **where)


def test_a_refused_form_keeps_its_input(console: Console, live: Live) -> None:
    refused = new(console, 400, name="no", partition="key")
    assert "ValidationException: " in refused
    assert re.search(r'name="name"[^>]* value="no"', refused) and re.search(
        r'name="partition"[^>]* value="key"', refused
    )
    assert 'id="create-name-error"' in new(console, 400, name=" ", partition="key")
    refused = new(console, 400, name="tagged", partition="p", tags="without an equals sign")
    assert 'id="create-tags-error">Write each tag as key=value.' in refused
    assert "At most 8,000 characters." in new(console, 400, name="a" * 8_001, partition="p")
    assert "tagged" not in live.client.list_tables()["TableNames"]


def test_types_of_one_attribute_must_agree(console: Console) -> None:
    refused = new(
        console, 400, name="disagreeing", partition="p", index1_name="i", index1_scope="GlobalSecondaryIndexes",
        index1_partition="p", index1_partition_type="N", index1_projection="ALL",
    )  # fmt: skip
    assert 'id="create-index1_partition_type-error">p has another type above.' in refused


# Settings of a DynamoDB table


def test_indexes_are_created_and_deleted(console: Console, live: Live, table: str) -> None:
    send(
        console, table, "index_new", index="by-color", partition="color", partition_type="S", sort_type="S",
        projection="ALL",
    )  # fmt: skip
    wait_until(lambda: has_settled(live, table))
    page = settings(console, table)
    assert "by-color" in page and 'action="/_tablegate/console/settings/change"' in page
    found = live.client.query(
        TableName=table, IndexName="by-color", KeyConditionExpression="color = :c",
        ExpressionAttributeValues={":c": {"S": "red"}},
    )  # fmt: skip
    assert found["Count"] == 10
    send(console, table, "index_drop", index="by-color")
    wait_until(lambda: has_settled(live, table))
    assert "The table has no index." in settings(console, table)
    assert "ResourceNotFoundException: " in send(console, table, "index_drop", 400, index="by-color")


def test_time_to_live_stream_capacity_and_tags_are_set(console: Console, live: Live, table: str) -> None:
    assert "Time to live is being enabled." in send(console, table, "ttl_on", attribute="<b>ends")
    found = live.client.describe_time_to_live(TableName=table)["TimeToLiveDescription"]
    assert found["AttributeName"] == "<b>ends"
    assert "&lt;b&gt;ends" in console.get("/settings", namespace="shared", name=table)
    send(console, table, "stream_on", view="NEW_IMAGE")
    found = live.client.describe_table(TableName=table)["Table"]
    assert found["StreamSpecification"] == {"StreamEnabled": True, "StreamViewType": "NEW_IMAGE"}
    send(console, table, "stream_off")
    assert "StreamSpecification" not in live.client.describe_table(TableName=table)["Table"]
    send(console, table, "capacity", billing="PROVISIONED", read="7", write="8")
    assert "7 read and 8 write units" in settings(console, table)
    send(console, table, "tag_new", key="team", value="blue")
    send(console, table, "tag_drop", key="team")
    assert "The table has no tag." in settings(console, table)


def window(console: Console, table: str) -> tuple[int, int]:
    """Return the ends of the time line on the page."""
    found = re.search(r'data-earliest="(\d+)" data-latest="(\d+)"', settings(console, table))
    assert found is not None
    return int(found[1]), int(found[2])


def test_a_table_is_restored_to_a_second(console: Console, live: Live, table: str) -> None:
    send(console, table, "recovery_on", days="3")
    page = settings(console, table)
    assert "enabled, 3 days" in page
    # The form proposes the last second of the window.
    wait_until(lambda: window(console, table)[0] < window(console, table)[1])
    then = datetime.fromtimestamp(window(console, table)[1], UTC).strftime("%Y-%m-%dT%H:%M:%S")
    refused = send(console, table, "restore", 400, at="2001-02-03T04:05:06", target=f"{table}-then")
    assert "InvalidRestoreTimeException: " in refused and "2001-02-03T04:05:06" in refused
    refused = send(console, table, "restore", 400, at="yesterday", target=f"{table}-then")
    assert "Write the time as 2026-01-31T23:59:59, in UTC." in refused
    live.client.put_item(TableName=table, Item={"p": {"S": "late"}, "s": {"N": "1"}})
    page = send(console, table, "restore", at=then, target=f"{table}-then")
    [message] = re.findall('<p class="alert ok".*?</p>', page)
    assert "The table is being restored." in message and "/_tablegate/console/jobs" in message
    assert f'/_tablegate/console/table?namespace=shared&name={table}-then"' in message
    live.client.get_waiter("table_exists").wait(TableName=f"{table}-then", WaiterConfig={"Delay": 1})
    assert live.client.scan(TableName=f"{table}-then", Select="COUNT")["Count"] == 10
    send(console, table, "recovery_off")
    assert "RecoveryPeriodInDays" not in str(live.client.describe_continuous_backups(TableName=table))


def test_backups_are_created_restored_and_deleted(console: Console, live: Live, table: str) -> None:
    send(console, table, "backup_new", backup="before")
    [backup] = live.client.list_backups(TableName=table)["BackupSummaries"]
    arn = backup["BackupArn"]
    wait_until(lambda: backup_state(live, arn) == "AVAILABLE")
    assert "before" in settings(console, table)
    send(console, table, "delete", typed=table)
    page = unescape(console.get("/backups"))
    arn = re.findall(rf'name="arn" value="(arn:aws:dynamodb:[^"]*:table/{table}/backup/[^"]*)"', page)[0]
    form = {"namespace": "shared", "dialect": "dynamodb", "arn": arn}
    console.post("/backups/change", form="backup_restore", target=f"{table}-again", **form)
    live.client.get_waiter("table_exists").wait(TableName=f"{table}-again", WaiterConfig={"Delay": 1})
    refused = console.post("/backups/change", 400, form="backup_restore", target="x", **form)
    assert "ValidationException: " in refused
    console.post("/backups/change", form="backup_delete", backup="before", **form)
    assert arn not in console.get("/backups")


def test_a_table_is_deleted_by_typing_its_name(console: Console, live: Live, table: str) -> None:
    send(console, table, "protect")
    assert "The table is protected from deletion." in settings(console, table)
    refused = send(console, table, "delete", 400, typed=table)
    assert "ValidationException: " in refused
    send(console, table, "unprotect")
    refused = send(console, table, "delete", 400, typed="another")
    assert f"Type the name of the table: {table}." in refused
    assert table in live.client.list_tables()["TableNames"]
    send(console, table, "delete", typed=table)
    assert table not in live.client.list_tables()["TableNames"]


def test_requests_that_no_form_sends_are_refused(console: Console, table: str) -> None:
    assert "There is no such form." in send(console, table, "nothing", 400)
    assert "No dialect of this server" in send(console, table, "delete", 400, dialect="other", typed=table)
    send(console, table, "delete", 413, **{f"field{number}": "x" for number in range(41)})
    headers = {"Origin": "https://example.org"}
    form = {"namespace": "shared", "name": table, "form": "delete", "typed": table}
    console.post("/settings/change", 403, headers, **form)
    console.get("/settings/change", 405)
    console.post("/backups/change", 400, namespace="snapshot/1", form="backup_delete", arn="x")


def test_without_console_writes_there_are_no_forms(database_url: str) -> None:
    running = start(database_url)
    try:
        name = Live(running.url).create("p:S").name
        console = Console(running.url)
        assert "<form" not in settings(console, name).partition("<main")[2]
        console.get("/tables/new", 404)
        console.post("/tables/create", 404, name="x")
        send(console, name, "delete", 404, typed=name)
    finally:
        running.stop()


# Grants and the audit log


@pytest.fixture(scope="module")
def strict_server(shared_database_url: str) -> Iterator[Running]:
    """A server with signatures, and the tables `songs` and `secrets`."""
    values = load({"database": shared_database_url, **SETTINGS}, {})
    open_store(values, connect(values)).close()
    running = start(shared_database_url, **SETTINGS)
    try:
        running.app.extensions["tablegate"].gateway.credentials.replace([OWNER, KEY])
        for name in ("songs", "secrets"):
            Live(running.url).create("p:S", name=name)
        yield running
    finally:
        running.stop()


def visitor(server: Running, *statements: dict[str, Any]) -> Console:
    """The console as KEY sees it under a policy."""
    gateway = server.app.extensions["tablegate"].gateway
    gateway.credentials.replace([OWNER, replace(KEY, policy=policy_for(*statements))])
    console = Console(server.url)
    console.sign_in("KEY", "secret of KEY")
    return console


FORMS: tuple[tuple[str, dict[str, str]], ...] = (
    ("index_new", {"index": "i", "partition": "x", "partition_type": "S", "sort_type": "S", "projection": "ALL"}),
    ("ttl_on", {"attribute": "x"}),
    ("stream_on", {"view": "NEW_IMAGE"}),
    ("recovery_on", {"days": "3"}),
    ("backup_new", {"backup": "one"}),
    ("tag_new", {"key": "a", "value": "b"}),
    ("protect", {}),
    ("delete", {"typed": "songs"}),
)  # fmt: skip


def test_a_key_sees_and_sends_no_form_that_it_may_not(strict_server: Running) -> None:
    console = visitor(strict_server, allow("DescribeTable", on=f"{ARN}songs"))
    assert "<form" not in settings(console, "songs").partition("<main")[2]
    assert "Create a table" not in console.get("/")
    assert "Your key is not allowed to list backups." in console.get("/backups")
    console.get("/tables/new", 400)
    new(console, 403, name="other", partition="p")
    new(console, 403, name="", partition="")
    for form, values in FORMS:
        assert "Your key lacks the permission" in send(console, "songs", form, 403, **values)
        forbidden = send(console, "secrets", form, 403, **values)
        assert forbidden == send(console, "absent", form, 403, **values).replace("absent", "secrets")
    found = Live(strict_server.url).client
    table = found.describe_table(TableName="songs")["Table"]
    assert "GlobalSecondaryIndexes" not in table and "StreamSpecification" not in table


def test_a_key_gets_the_forms_of_its_grants(strict_server: Running) -> None:
    console = visitor(
        strict_server, allow("DescribeTable", "TagResource", "ListTagsOfResource", on=f"{ARN}songs")
    )
    page = settings(console, "songs")
    assert re.findall(r'name="form" value="(\w+)"', page) == ["tag_new"]
    send(console, "songs", "tag_new", key="a", value="b")
    assert re.search(r'<th scope="row">a</th><td data-label="Value">b</td>', settings(console, "songs"))
    send(console, "songs", "tag_drop", 403, key="a")


def test_a_key_creates_the_tables_of_its_grant(strict_server: Running) -> None:
    console = visitor(strict_server, allow("CreateTable", on=f"{ARN}mine-*"))
    assert "Create a table" in console.get("/")
    new(console, 403, name="yours-1", partition="p")
    new(console, 403, name="mine-1", partition="p", tags="a=b")
    console.post(
        "/tables/create", namespace="shared", dialect="dynamodb", form="create", name="mine-1", partition="p",
        partition_type="S", sort_type="S", billing="PAY_PER_REQUEST",
    )  # fmt: skip
    owner = Live(strict_server.url).client
    assert owner.describe_table(TableName="mine-1")["Table"]["TableName"] == "mine-1"
    with pytest.raises(ClientError):
        owner.describe_table(TableName="yours-1")


class Lines(AuditSink):
    """The lines of an audit log."""

    def __init__(self) -> None:
        self.found: list[dict[str, Any]] = []

    def write(self, lines: Any) -> None:
        self.found += [json.loads(line) for line in lines]


def test_changes_and_refusals_are_in_the_audit_log(database_url: str) -> None:
    values = load({"database": database_url, **SETTINGS}, {})
    open_store(values, connect(values)).close()
    running = start(database_url, ENTRIES[1], **SETTINGS)
    sink = Lines()
    try:
        running.app.extensions["tablegate"].gateway.credentials.replace([OWNER])
        Live(running.url).create("p:S", name="songs")
        console = visitor(running, allow("DescribeTable", "UpdateTimeToLive", on=f"{ARN}songs"))
        audit.start(AuditTrail(sink, KeyForm(True, ""), AuditScope(writes=False, requests=False)))
        send(console, "songs", "ttl_on", attribute="ends")
        send(console, "songs", "delete", 403, typed="songs")
    finally:
        audit.stop()
        running.stop()
    found = [(each["event"], each["who"], each["operation"], each["tables"]) for each in sink.found]
    assert ("definition", "KEY", "UpdateTimeToLive", ["songs"]) in found
    assert ("refusal", "KEY", "DeleteTable", ["songs"]) in found
