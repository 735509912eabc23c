"""The console shows what the key's grants permit it to describe and read, and applies its quotas.

It shows nothing else.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from dataclasses import replace
from html import unescape
from typing import Any
from urllib.parse import unquote

import boto3
import pytest
from botocore.exceptions import ClientError

from tablegate.gateway.configuration.loading import load
from tablegate.gateway.console import metric_pages, reading
from tablegate.gateway.model.authorization.grants import Policy
from tablegate.gateway.model.authorization.quotas import Quota
from tablegate.gateway.observability import metrics
from tablegate.gateway.observability.metrics import Counter, MetricHistory
from tablegate.gateway.security.credentials import Credential, Scheme
from tablegate.gateway.security.grant_store import WrittenGrant, policy_of
from tablegate.gateway.security.short_policies import READ_ONLY
from tablegate.gateway.wiring import connect, open_store
from tests.gateway.console.test_console import Console, keys_of
from tests.gateway.security.test_permission_cases import allow, policy
from tests.support.live_dynamodb import Index, Live
from tests.support.running import OWN_CREDENTIALS, Running, start

SETTINGS: dict[str, Any] = {
    "auth": "strict",
    "secret_key": "what encrypts the secrets",
    "console_writes": True,
    "admin_token": "the token",
    **OWN_CREDENTIALS,
}
OWNER = Credential(Scheme.AWS, "anybody", ("any secret",))
KEY = Credential(Scheme.AWS, "KEY", ("secret of KEY",))
ARN = "arn:aws:dynamodb:*:*:table/"
SONGS, SECRETS = f"{ARN}songs", f"{ARN}secrets"
PRECIOUS = ("secrets", "by-precious", "precious-expiry", "KEYS_ONLY")


def policy_for(*statements: dict[str, Any]) -> Policy:
    return policy_of(WrittenGrant("iam", json.dumps(policy(*statements))), KEY.identity)


@pytest.fixture(scope="module")
def server(shared_database_url: str) -> Iterator[Running]:
    """A server with two tables, each with an index, a stream, an expiry and a row."""
    settings = load({"database": shared_database_url, **SETTINGS}, {})
    open_store(settings, connect(settings)).close()
    running = start(shared_database_url, **SETTINGS)
    try:
        _furnish(running)
        yield running
    finally:
        running.stop()


def _furnish(running: Running) -> None:
    gateway = running.app.extensions["tablegate"].gateway
    gateway.credentials.replace([OWNER, KEY])
    live = Live(running.url)
    for name, index, expiry, view in (
        ("songs", "by-color", "ends", "NEW_AND_OLD_IMAGES"),
        ("secrets", "by-precious", "precious-expiry", "KEYS_ONLY"),
    ):
        live.create(
            "p:S", "s:N", name=name, indexes=[Index(index, "color:S", "s:N")],
            StreamSpecification={"StreamEnabled": True, "StreamViewType": view},
        )  # fmt: skip
        live.client.update_time_to_live(
            TableName=name, TimeToLiveSpecification={"Enabled": True, "AttributeName": expiry}
        )
        for number in range(3):
            item = {"p": {"S": "a"}, "s": {"N": str(number)}, "color": {"S": "red"}}
            live.client.put_item(TableName=name, Item=item)


@pytest.fixture
def gateway(server: Running) -> Iterator[Any]:
    found = server.app.extensions["tablegate"].gateway
    yield found
    found.quotas.replace({})


def visitor(server: Running, *statements: dict[str, Any]) -> Console:
    """The console as KEY sees it under a policy."""
    gateway = server.app.extensions["tablegate"].gateway
    gateway.credentials.replace([OWNER, replace(KEY, policy=policy_for(*statements))])
    console = Console(server.url)
    console.sign_in("KEY", "secret of KEY")
    return console


def test_the_tables_beside_a_page_are_those_that_the_key_may_describe(server: Running) -> None:
    def beside(console: Console) -> list[str]:
        page = console.get("/rows", namespace="shared", name="songs", key0="a")
        [shown] = re.findall('<ul id="tables-beside">(.*?)</ul>', page, re.DOTALL) or [""]
        return re.findall(r'name=(\w+)"', shown)

    assert beside(visitor(server, allow("Query", "DescribeTable", on=SONGS))) == ["songs"]
    assert beside(visitor(server, allow("Query", on=SONGS))) == []


def test_a_key_that_only_reads_finds_its_tables(server: Running) -> None:
    """Its grant lacks ListTables, which tells the names of all tables. The console lists those that it may describe."""
    console = visitor(server, allow("Query", on=SONGS))
    gateway = server.app.extensions["tablegate"].gateway
    short = {word: ["songs"] for word in READ_ONLY}
    policy_of_key = policy_of(WrittenGrant("short", json.dumps(short)), KEY.identity)
    gateway.credentials.replace([OWNER, replace(KEY, policy=policy_of_key)])
    page = console.get("/")
    assert "songs" in page and "secrets" not in page
    for path in ("/rows", "/table", "/statement", "/transfer"):
        assert "songs" in console.get(path, **of("songs"))
    assert "3 rows found" in console.get("/rows", **of("songs"))
    client = boto3.client(
        "dynamodb", endpoint_url=server.url, region_name="us-east-1", aws_access_key_id=KEY.access_id,
        aws_secret_access_key=KEY.secrets[0],
    )  # fmt: skip
    with pytest.raises(ClientError, match="AccessDeniedException"):
        client.list_tables()


def of(name: str, **more: str) -> dict[str, str]:
    return {"namespace": "shared", "name": name, **more}


def place_in(page: str) -> str:
    """Return the place of the row that a page links to."""
    return unquote(re.findall(r"at=([^\"&]+)", page)[0])


PAGES = ("/table", "/rows", "/row", "/changes", "/changes.json")


def test_a_key_without_grants_sees_nothing_of_any_table(server: Running) -> None:
    console = visitor(server, allow("ListTables", on="*"))
    page = console.get("/")
    assert keys_of(page) == []
    assert not [word for word in (*PRECIOUS, "songs") if word in page]
    for path in PAGES:
        forbidden = console.get(path, 403, **of("secrets", at="YQ==."))
        absent = console.get(path, 403, **of("absent", at="YQ==."))
        assert forbidden == absent.replace("absent", "secrets")
    for form in ("/row/put", "/row/delete"):
        for name in ("secrets", "absent"):
            console.post(form, 403, **of(name, at="YQ==.", row='{"p": {"S": "a"}, "s": {"N": "1"}}'))
    assert "/chart?" not in console.get("/metrics")
    for name in ("requests", "latencies", "ticks", "throttles"):
        console.get("/chart", 403, name=name)


def test_a_key_sees_the_tables_that_it_may_describe(server: Running) -> None:
    console = visitor(server, allow("DescribeTable", on=SONGS))
    page = console.get("/")
    assert keys_of(page) == ["songs"]
    assert "by-color" in page and "NEW_AND_OLD_IMAGES" in page and ">3<" in page
    assert "ends" not in re.sub(r"<[^>]*>", "", page).split()
    assert not [word for word in PRECIOUS if word in page]
    about = unescape(console.get("/table", **of("songs")))
    assert (
        "by-color" in about and "<dt>Time to live" not in about and "<dt>Point-in-time recovery" not in about
    )
    for path in ("/rows", "/row", "/changes"):
        console.get(path, 403, **of("songs", at="YQ==."))


def test_separate_descriptions_need_separate_grants(server: Running) -> None:
    more = ("DescribeTimeToLive", "DescribeContinuousBackups")
    console = visitor(server, allow("DescribeTable", *more, on=SONGS))
    about = console.get("/table", **of("songs"))
    assert "<dt>Time to live<dd>ends" in about and "<dt>Point-in-time recovery" in about
    assert ">ends<" in console.get("/")


def test_tables_that_are_not_shown_do_not_end_a_list(
    server: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "TABLES", 1)
    for name in ("songs", "secrets"):
        console = visitor(server, allow("DescribeTable", on=f"{ARN}{name}"))
        page = console.get("/")
        assert keys_of(page) == [name]
        assert 'rel="next"' not in page


def test_a_key_with_query_looks_rows_up(server: Running) -> None:
    console = visitor(server, allow("Query", on=SONGS))
    page = console.get("/rows", **of("songs", key0="a"))
    assert keys_of(page) == ["a"] * 3
    assert "/row?" not in page and "Compare two" not in page  # it may not get a row
    landing = console.get("/rows", **of("songs"))
    assert 'name="key0"' in landing  # the form is there to look rows up
    assert 'role="alert"' not in landing and "not allowed to scan" in landing and keys_of(landing) == []
    assert "by-color" not in landing  # an index that it may not read
    refused = console.get("/rows", 403, **of("songs", attribute="color", value="red"))
    assert 'role="alert"' in refused and "lacks the permission" in refused and keys_of(refused) == []
    assert keys_of(console.get("/rows", 403, **of("songs", index="by-color", key0="red"))) == []
    console.get("/rows", 403, **of("secrets"))


def test_a_key_with_query_of_an_index_looks_rows_up_there(server: Running) -> None:
    console = visitor(server, allow("Query", on=f"{SONGS}/index/by-color"))
    assert keys_of(console.get("/rows", **of("songs", index="by-color", key0="red"))) == ["a"] * 3
    assert "by-color" in console.get("/rows", **of("songs"))


def test_a_row_is_shown_without_the_stream_that_a_key_may_not_read(server: Running) -> None:
    console = visitor(server, allow("Query", "GetItem", on=SONGS))
    rows = console.get("/rows", **of("songs", key0="a"))
    place = re.findall(r"at=([^\"&]+)", rows)[0]
    page = console.get(f"/row?namespace=shared&name=songs&at={place}")
    assert "DynamoDB JSON" in page and '<ol class="history">' not in page and "not allowed to read" in page
    stream = allow("GetRecords", "GetShardIterator", "DescribeStream", on=f"{SONGS}/stream/*")
    console = visitor(server, allow("Query", "GetItem", on=SONGS), stream)
    page = console.get(f"/row?namespace=shared&name=songs&at={place}")
    assert '<ol class="history">' in page
    assert "NEW_AND_OLD_IMAGES" in console.get("/changes", **of("songs"))
    console.get("/changes.json", **of("songs"))


def test_writes_need_their_own_grants(server: Running) -> None:
    row = '{"p": {"S": "b"}, "s": {"N": "1"}}'
    console = visitor(server, allow("PutItem", "GetItem", on=SONGS))
    page = console.post("/row/put", **of("songs", row=row))
    place = place_in(page)
    assert "row/edit" in page and "row/delete" not in page  # only what the key may do has a button
    console.post("/row/delete", 403, **of("songs", at=place))
    console = visitor(server, allow("DeleteItem", "GetItem", "Scan", on=SONGS))
    console.post("/row/put", 403, **of("songs", row=row))
    assert "b" not in keys_of(console.post("/row/delete", **of("songs", at=place)))


def test_server_metrics_need_access_to_all_tables(server: Running) -> None:
    console = Console(server.url)
    console.sign_in("administrator", "the token")
    assert "/chart?name=requests" in console.get("/metrics")
    for name in ("requests", "operations"):
        assert console.get("/chart", name=name).startswith("<figure")


def test_a_key_sees_the_metrics_of_tables_that_it_may_describe(server: Running) -> None:
    console = visitor(server, allow("DescribeTable", "GetItem", on=SONGS))
    page = console.get("/metrics")
    assert re.findall(r'<th scope="row"><a[^>]*>(.*?)</a>', page) == ["songs"]
    assert set(re.findall(r"/chart\?name=(\w+)", page)) == {"tables"} and "Server" not in page
    assert "secrets" not in page
    assert "/chart?" in console.get("/table", **of("songs"))
    assert console.get("/chart", **of("songs")).startswith("<figure")
    forbidden, absent = (console.get("/chart", 403, **of(name)) for name in ("secrets", "absent"))
    assert forbidden == absent.replace("absent", "secrets")
    console = visitor(server, allow("DescribeTable", on=f"{SONGS}/index/by-color"))
    console.get("/chart", 403, **of("songs"))


def test_the_chart_has_only_tables_that_the_visitor_may_describe(
    server: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    history, now_s = MetricHistory(), time.monotonic()
    monkeypatch.setattr(metric_pages, "history", history)
    history.add(now_s - 10, {})
    history.add(now_s, {Counter("table", name, "read"): 500.0 for name in ("songs", "secrets")})
    own = visitor(server, allow("DescribeTable", on=SONGS)).get("/chart", name="tables")
    assert "<span>songs</span>" in own and "secrets" not in own
    console = Console(server.url)
    console.sign_in("administrator", "the token")
    assert "<span>secrets</span>" in console.get("/chart", name="tables")


def test_metrics_of_a_table_are_its_units(server: Running) -> None:
    before, live = metrics.totals(), Live(server.url)
    live.client.put_item(TableName="songs", Item={"p": {"S": "units"}, "s": {"N": "1"}})
    live.client.get_item(TableName="secrets", Key={"p": {"S": "units"}, "s": {"N": "1"}}, ConsistentRead=True)
    by_arn = "arn:aws:dynamodb:us-east-1:000000000000:table/songs"
    live.client.get_item(TableName=by_arn, Key={"p": {"S": "units"}, "s": {"N": "1"}}, ConsistentRead=True)
    after = metrics.totals()
    added = {each: after[each] - before.get(each, 0.0) for each in after if each[:2] == ("table", "songs")}
    assert added == {("table", "songs", "write"): 1.0, ("table", "songs", "read"): 1.0}


def test_a_key_with_namespaces_of_its_own_sees_no_metrics(shared_database_url: str) -> None:
    """They are counted by the names of tables, and another namespace may have a table of that name."""
    running = start(shared_database_url, **SETTINGS, namespaces="keys")
    try:
        running.app.extensions["tablegate"].gateway.credentials.replace([OWNER, KEY])
        live = Live(running.url)
        live.create("p:S", "s:N", name="tenants")
        console = Console(running.url)
        console.sign_in("anybody", "any secret")
        found = re.search(r'/table\?namespace=([^&"]*)&amp;name=tenants', console.get("/"))
        assert found is not None
        place = {"namespace": unquote(found[1]), "name": "tenants"}
        assert "/chart?" not in console.get("/table", **place)
        console.get("/chart", 403, **place)
        assert "/chart?" not in console.get("/metrics")
    finally:
        running.stop()


# Quotas


def test_console_actions_are_held_to_the_quotas_of_the_key(server: Running, gateway: Any) -> None:
    console = visitor(server, allow("PutItem", "GetItem", "Query", on=SONGS))
    row = '{"p": {"S": "b"}, "s": {"N": "1"}, "x": {"S": "%s"}}' % ("x" * 4000)
    place = place_in(console.post("/row/put", **of("songs", row=row)))
    gateway.quotas.now = lambda: 1_000.0

    def save(status: int) -> str:
        form = console.get("/row/edit", **of("songs", at=place))
        [revision] = re.findall(r'name="revision" value="(\d+)"', form)
        return console.post("/row/put", status, **of("songs", row=row, at=place, revision=revision))

    for limits, ask in (
        ({"write_units": 4.0}, save),
        ({"read_units": 4.0}, lambda status: console.get("/rows", status, **of("songs", key0="b"))),
        ({"requests": 4.0}, lambda status: console.get("/row", status, **of("songs", at=place))),
    ):
        gateway.quotas.replace({"aws/KEY": Quota(**limits)})
        ask(200)
        assert "quota" in ask(429)
        gateway.quotas.replace({})
    gateway.quotas.replace({"aws/KEY": Quota(bytes=10)})
    gateway.quotas.keep_sizes({"shared": 11})
    assert "quota" in console.post("/row/put", 429, **of("songs", row=row.replace('"1"', '"2"')))


def test_the_administrator_has_no_quota(server: Running, gateway: Any) -> None:
    console = Console(server.url)
    console.sign_in("administrator", "the token")
    gateway.quotas.now = lambda: 1_000.0
    gateway.quotas.replace({"namespace/shared": Quota(requests=1)})
    for _ in range(5):
        console.get("/")
