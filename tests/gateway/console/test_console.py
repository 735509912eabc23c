"""The console over a live server: access rights, escaping of all content, and search results. test_browser.py uses it
in a real browser.
"""

from __future__ import annotations

import re
import socket
from collections.abc import Iterator
from dataclasses import replace
from html import unescape
from typing import Any

import boto3
import pytest
import requests
from werkzeug import formparser

from tablegate.gateway.console import reading, table_pages
from tablegate.gateway.console.sign_in import COOKIE
from tablegate.gateway.features.jobs.job_commands import Job, ListUnfinishedJobs, StartJob
from tablegate.gateway.security.grant_store import WrittenGrant
from tablegate.gateway.security.short_policies import short_policy
from tablegate.gateway.store.sql.databases import Unreachable
from tablegate.gateway.store.store import Store
from tests.conftest import Serve
from tests.support.live_azure import LiveAzure
from tests.support.live_dynamodb import Index, Live
from tests.support.running import ENTRIES, OWN_CREDENTIALS, Running, beyond_wsgi, start
from tests.support.waiting import PATIENCE_S
from tests.tenants.conftest import CREDENTIALS, SETTINGS, secret_of

EVIL = "<script>document.title='broken'</script>"


class Console:
    """The console of a server, as a browser without scripts sees it."""

    def __init__(self, url: str) -> None:
        self.url = f"{url}/_tablegate/console"
        self.session = requests.Session()

    def get(self, path: str, status: int = 200, headers: Any = None, **query: str) -> str:
        answer = self.session.get(f"{self.url}{path}", params=query, headers=headers, timeout=PATIENCE_S)
        assert answer.status_code == status, answer.text
        return answer.text

    def post(self, path: str, status: int = 200, headers: Any = None, **form: str) -> str:
        answer = self.session.post(f"{self.url}{path}", data=form, headers=headers, timeout=PATIENCE_S)
        assert answer.status_code == status, answer.text
        return answer.text

    def sign_in(self, access_id: str, secret: str, status: int = 200) -> str:
        return self.post("/sign-in", status, access_id=access_id, secret=secret)


def keys_of(page: str) -> list[str]:
    """Return the first column of a page of rows."""
    cells = re.findall(r'<th scope="row">(?:<a[^>]*>)?(.*?)(?:</a>|</th>)', page)
    return [unescape(cell.replace("<wbr>", "")) for cell in cells]


@pytest.fixture(scope="module")
def server(shared_database_url: str) -> Iterator[Running]:
    """A server with the table `songs`: 120 items, an index and a stream."""
    running = start(shared_database_url)
    live = Live(running.url)
    live.create(
        "p:S", "s:N", name="songs", indexes=[Index("by-color", "color:S", "s:N")],
        StreamSpecification={"StreamEnabled": True, "StreamViewType": "NEW_AND_OLD_IMAGES"},
    )  # fmt: skip
    for first in range(0, 120, 20):
        items = [_song(number) for number in range(first, first + 20)]
        live.client.batch_write_item(
            RequestItems={"songs": [{"PutRequest": {"Item": item}} for item in items]}
        )
    yield running
    running.stop()


def _song(number: int) -> dict[str, Any]:
    color = "red" if number % 2 else "blue"
    return {
        "p": {"S": f"p{number % 3}"}, "s": {"N": str(number)}, "color": {"S": color}, "n": {"N": str(number)},
    }  # fmt: skip


@pytest.fixture
def songs(server: Running) -> Live:
    return Live(server.url)


@pytest.fixture
def console(server: Running) -> Console:
    return Console(server.url)


def of_songs(**more: str) -> dict[str, str]:
    return {"namespace": "shared", "name": "songs", **more}


# Access


@beyond_wsgi
@pytest.mark.parametrize(
    ("path", "size"), [("sign-in", 65_537), ("tables", (2 << 20) + 1), ("row/put", (6 << 20) + 1)]
)
def test_a_form_that_is_too_long_is_refused_before_its_body_comes(
    server: Running, path: str, size: int
) -> None:
    head = f"POST /_tablegate/console/{path} HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\nContent-Length: {size}\r\n\r\n"
    with socket.create_connection(("127.0.0.1", server.port), timeout=PATIENCE_S) as connection:
        connection.sendall(head.encode())
        assert connection.recv(100).startswith(b"HTTP/1.1 413 ")


@pytest.mark.parametrize("entry", ENTRIES)
@pytest.mark.parametrize(
    "form",
    [b"a=1&" * 3_000_000, b"a=1&" * 100, b"access_id=" + b"x" * 10_000],
    ids=["long", "many fields", "long field"],
)
def test_a_form_is_not_parsed_if_it_is_too_long(
    database_url: str, monkeypatch: pytest.MonkeyPatch, form: bytes, entry: str
) -> None:
    """Issue 23: 15 MB of `a=1&` at the sign-in took 3.6 s."""
    parsed: list[int] = []
    real = formparser.parse_qsl
    monkeypatch.setattr(
        formparser, "parse_qsl", lambda text, **named: parsed.append(len(text)) or real(text, **named)
    )
    running = start(database_url, entry)
    try:
        sent = {"Content-Type": "application/x-www-form-urlencoded"}
        url = f"{running.url}/_tablegate/console/sign-in"
        assert requests.post(url, data=form, headers=sent, timeout=PATIENCE_S).status_code == 413
        assert parsed == []
        assert (
            requests.post(url, data={"access_id": "a", "secret": "b"}, timeout=PATIENCE_S).status_code == 403
        )
        assert parsed == [len("access_id=a&secret=b")]
    finally:
        running.stop()


def test_pages_of_other_sites_and_names_are_kept_out(console: Console) -> None:
    assert "Tables" in console.get("/")
    for headers in ({"Origin": "http://evil.example"}, {"Host": "evil.example"}):
        console.get("/", 403, headers)
        console.post("/sign-in", 403, headers, access_id="a", secret="b")


def test_the_console_can_be_switched_off(serve: Serve, database_url: str) -> None:
    off = Console(serve(database_url, console=False).url)
    off.get("/", 404)


def test_every_answer_forbids_scripts_of_others(console: Console) -> None:
    for path in ("/", "/sign-in", "/static/console.js", "/table?name=none", "/chart?name=requests"):
        answer = requests.get(f"{console.url}{path}", timeout=PATIENCE_S)
        policy = answer.headers["Content-Security-Policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert answer.headers["X-Content-Type-Options"] == "nosniff"


@pytest.fixture
def strict(serve: Serve, database_url: str) -> Running:
    """A server with two tenants, each with one table."""
    server = serve(database_url, **SETTINGS, **OWN_CREDENTIALS, admin_token="the token")
    store = server.app.extensions["tablegate"].gateway
    store.credentials.replace(CREDENTIALS)
    for name in ("victim", "thief"):
        client = boto3.client(
            "dynamodb", endpoint_url=server.url, region_name="eu-central-1", aws_access_key_id=name,
            aws_secret_access_key=secret_of(name),
        )  # fmt: skip
        client.create_table(
            TableName=f"of-{name}",
            BillingMode="PAY_PER_REQUEST",
            AttributeDefinitions=[{"AttributeName": "id", "AttributeType": "S"}],
            KeySchema=[{"AttributeName": "id", "KeyType": "HASH"}],
        )
        client.put_item(TableName=f"of-{name}", Item={"id": {"S": name}})
    return server


def test_auth_strict_shows_a_visitor_only_own_tables_after_sign_in(strict: Running) -> None:
    console = Console(strict.url)
    assert "Secret" in console.get("/")  # led to the form
    assert "is wrong" in console.sign_in("thief", secret_of("victim"), 403)
    assert "is wrong" in console.sign_in("administrator", "", 403)
    page = console.sign_in("thief", secret_of("thief"))
    assert keys_of(page) == ["of-thief"]
    theirs = {"namespace": "aws/111111111111/eu-central-1", "name": "of-victim"}
    absent = console.get("/rows", 404, **{**theirs, "name": "absent"})
    for path in ("/rows", "/table", "/changes", "/changes.json", "/row"):
        assert console.get(path, 404, **theirs) == absent.replace("absent", "of-victim")
    # An account that is called as the beginning of another's is another's.
    console.get("/rows", 404, namespace="aws/22222222222", name="of-thief")


@pytest.mark.parametrize("origin", ["https://evil.example.com", "null", "http://127.0.0.1:1"])
def test_a_foreign_origin_cannot_sign_in_or_out(strict: Running, origin: str) -> None:
    console = Console(strict.url)
    known = {"access_id": "administrator", "secret": "the token"}
    refused = console.post("/sign-in", 403, {"Origin": origin}, **known)
    assert "is not allowed here" in refused
    assert not console.session.cookies
    assert "Secret" in console.get("/")
    console.post("/sign-in", 200, {"Origin": strict.url}, **known)
    console.post("/sign-out", 403, {"Origin": origin})
    assert "of-thief" in console.get("/")


def test_behind_a_tls_proxy_the_fetch_headers_identify_own_pages(strict: Running) -> None:
    """The proxy's URL is https, this server's http. Sec-Fetch-Site is a forbidden header name: no page can set it."""
    console = Console(strict.url)
    known = {"access_id": "administrator", "secret": "the token"}
    origin = strict.url.replace("http:", "https:")
    console.post("/sign-in", 403, {"Origin": origin, "Sec-Fetch-Site": "same-site"}, **known)
    page = console.post("/sign-in", 200, {"Origin": origin, "Sec-Fetch-Site": "same-origin"}, **known)
    assert "of-thief" in page


def test_a_visitor_sees_no_more_than_the_grants_of_the_key(strict: Running) -> None:
    credentials = strict.app.extensions["tablegate"].gateway.credentials
    reader = short_policy({"query": ["of-*"]})
    credentials.replace([replace(each, policy=reader) for each in CREDENTIALS])
    console = Console(strict.url)
    assert keys_of(console.sign_in("thief", secret_of("thief"))) == ["of-thief"]  # names are all that is told
    table = {"namespace": "aws/222222222222/eu-central-1", "name": "of-thief"}
    assert keys_of(console.get("/rows", **table, key0="thief")) == ["thief"]
    assert "of-thief" in console.get("/table", **table)
    page = console.get("/rows", **table)  # a scan: the form is shown, and no row
    assert "Look up rows by key" in page and "value of id" in page
    assert keys_of(page) == []
    page = console.get("/rows", 403, **table, attribute="n", comparison="exists")
    assert "lacks the permission" in page and 'value="n"' in page


def test_grants_are_shown_to_whom_they_concern(strict: Running) -> None:
    grants = strict.app.extensions["tablegate"].gateway.grants
    for grantee, form, document in (
        ("aws/thief", "short", f'{{"read": ["{EVIL}"]}}'),
        ("aws/thief", "role", "lender"),
        ("role/lender", "short", '{"write": ["lent"]}'),
        ("*", "short", '{"query": ["common"]}'),
        ("aws/victim", "short", '{"read": ["secret-plans"]}'),
        ("role/other", "short", '{"read": ["of-another-role"]}'),
    ):
        grants.add(grantee, WrittenGrant(form, document))
    console = Console(strict.url)
    console.sign_in("thief", secret_of("thief"))
    page = console.get("/grants")
    assert EVIL not in page
    assert all(each in unescape(page) for each in (EVIL, "lender", "lent", "common"))
    assert "secret-plans" not in page
    assert "of-another-role" not in page
    console.sign_in("administrator", "the token")
    page = console.get("/grants")
    assert all(each in page for each in ("aws/thief", "secret-plans", "of-another-role", "common"))


def test_without_a_database_grants_are_not_shown(console: Console, monkeypatch: pytest.MonkeyPatch) -> None:
    def read(_: Store) -> Any:
        raise Unreachable("no connection")

    monkeypatch.setattr(Store, "read", read)
    assert "does not answer" in console.get("/grants", 503)


def test_the_administrator_sees_all_tenants(strict: Running) -> None:
    console = Console(strict.url)
    assert keys_of(console.sign_in("administrator", "the token")) == ["of-victim", "of-thief"]


def test_a_cookie_ends_with_its_secret_its_time_and_at_the_first_change(
    strict: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    console = Console(strict.url)
    console.sign_in("thief", secret_of("thief"))
    cookie = console.session.cookies[COOKIE].strip('"')
    scheme, until, seal, name = cookie.split("|")
    for forged in (
        f"{scheme}|{until}|{seal}|victim",
        f"{scheme}|{int(until) + 1}|{seal}|{name}",
        f"azure|{until}|{seal}|{name}",
        f"administrator|{until}|{seal}|administrator",
        f"{scheme}|{until}|é|{name}",  # was a 500, but not for unknown names
        "|||",
        "",
    ):
        answer = requests.get(
            f"{console.url}/", headers={"Cookie": f"{COOKIE}={forged}".encode()}, timeout=PATIENCE_S
        )
        assert "Secret" in answer.text, forged
    credentials = strict.app.extensions["tablegate"].gateway.credentials
    credentials.replace([each for each in CREDENTIALS if each.access_id != "thief"])
    assert "Secret" in console.get("/")
    credentials.replace(CREDENTIALS)
    assert "of-thief" in console.get("/")
    console.post("/sign-out")
    assert "Secret" in console.get("/")


# Content


def test_pages_list_and_describe_tables(songs: Live, console: Console) -> None:
    page = console.get("/")
    assert keys_of(page) == ["songs"]
    assert ">120<" in page
    page = unescape(console.get("/table", **of_songs()))
    assert "by-color" in page
    assert f"endpoint_url='{console.url.partition('/_')[0]}'" in page
    for sdk in ("boto3", "TableClient", "OTSClient"):
        assert sdk in page


def test_a_list_counts_no_longer_than_a_while(
    songs: Live, console: Console, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Counting is a scan, and a list may have two hundred large tables."""
    monkeypatch.setattr(table_pages, "_COUNTING_S", 0.0)
    page = console.get("/")
    assert keys_of(page) == ["songs"]
    assert ">120<" not in page


def test_every_row_is_on_one_page(songs: Live, console: Console) -> None:
    seen: list[str] = []
    page = console.get("/rows", **of_songs())
    assert "50 rows found, 50 scanned. The table has 120 rows." in page
    assert "The table has" not in console.get("/rows", **of_songs(key0="p1"))
    while True:
        seen += re.findall(r'data-label="s"><a[^>]*>(\d+)</a>', page)
        more = re.search(r'rel="next" href="[^"?]*\?([^"]*)"', page)
        if more is None:
            break
        page = console.get("/rows?" + unescape(more[1]))
    assert sorted(map(int, seen)) == list(range(120))


@pytest.mark.parametrize(
    ("fields", "number"),
    [
        ({"key0": "p1"}, 40),
        ({"key0": "p1", "key1": "31"}, 1),
        ({"key0": "p1", "key1": "30", "operator": "<"}, 10),
        ({"key0": "p", "operator": "begins with"}, 50),
        ({"index": "by-color", "key0": "red", "key1": "101", "operator": ">="}, 10),
        ({"attribute": "n", "comparison": "<", "value": "7"}, 7),
        ({"attribute": "n", "comparison": "=", "value": '"7"'}, 0),
        ({"attribute": "color", "comparison": "begins with", "value": "re", "key0": "p0", "key1": "60", "operator": "<"}, 10),
        ({"attribute": "none", "comparison": "exists"}, 0),
    ],
)  # fmt: skip
def test_a_search_finds(songs: Live, console: Console, fields: dict[str, str], number: int) -> None:
    assert len(keys_of(console.get("/rows", **of_songs(**fields)))) == number


@pytest.mark.parametrize(
    "fields",
    [
        {"key1": "1"},
        {"key0": "p0", "key1": "one"},
        {"key0": "p0", "key1": "1e999"},
        {"key0": "p0", "key1": "1", "operator": "begins with"},
        {"key0": "p0", "operator": "<>"},
        {"index": "none"},
        {"attribute": "n", "comparison": "LIKE"},
        {"after": "!"},
    ],
)
def test_an_invalid_search_is_reported(songs: Live, console: Console, fields: dict[str, str]) -> None:
    assert 'role="alert"' in console.get("/rows", 400, **of_songs(**fields))


def test_a_row_side_by_side_with_its_history_as_text(songs: Live, console: Console) -> None:
    key = {"p": {"S": EVIL}, "s": {"N": "-1"}}
    for number in range(2):
        songs.client.put_item(TableName="songs", Item={**key, EVIL: {"S": EVIL}, "n": {"N": str(number)}})
    songs.client.delete_item(TableName="songs", Key=key)
    songs.client.put_item(TableName="songs", Item={**key, EVIL: {"S": EVIL}})
    rows = console.get("/rows", **of_songs(key0=EVIL))
    [place] = set(re.findall(r"at=([^\"&]+)", rows))
    page = console.get(f"/row?namespace=shared&name=songs&at={place}")
    for shown in (rows, page, console.get("/table", **of_songs())):
        assert EVIL not in shown
    for form in ("DynamoDB JSON", "OData", "Table Store cells"):
        assert form in page
    assert re.findall(r"<li><strong>(\w+)</strong>", page) == ["put", "delete", "put", "put"]
    songs.client.delete_item(TableName="songs", Key=key)


def test_a_history_is_of_the_newest_changes_of_a_long_stream(
    songs: Live, console: Console, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Runs in the server's process. The search ends after a fixed number of changes, and the page says so."""
    monkeypatch.setattr(reading, "CHANGES", 30)
    monkeypatch.setattr(reading, "_HISTORY_S", 600.0)
    monkeypatch.setattr(reading, "_CHANGES_AT_ONCE", 7)
    first, last = ({"p": {"S": name}, "s": {"N": "1"}} for name in ("long ago", "just now"))
    songs.client.put_item(TableName="songs", Item=first)
    for number in range(29):
        songs.client.put_item(TableName="songs", Item={"p": {"S": "between"}, "s": {"N": str(number)}})
    songs.client.put_item(TableName="songs", Item=last)
    places = {}
    for key in (first, last):
        rows = console.get("/rows", **of_songs(key0=key["p"]["S"]))
        [places[key["p"]["S"]]] = set(re.findall(r"at=([^\"&]+)", rows))
    pages = [console.get(f"/row?namespace=shared&name=songs&at={place}") for place in places.values()]
    assert [re.findall(r"<li><strong>(\w+)</strong>", page) for page in pages] == [[], ["put"]]
    assert "Changes searched: 30." in pages[0]
    for number in range(29):
        songs.client.delete_item(TableName="songs", Key={"p": {"S": "between"}, "s": {"N": str(number)}})
    for key in (first, last):
        songs.client.delete_item(TableName="songs", Key=key)


def test_a_history_ends_after_its_newest_changes_or_some_time(
    songs: Live, console: Console, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "_CHANGES_AT_ONCE", 2)
    monkeypatch.setattr(reading, "_HISTORY_S", 600.0)
    key = {"p": {"S": "often"}, "s": {"N": "1"}}
    for number in range(5):
        songs.client.put_item(TableName="songs", Item={**key, "n": {"N": str(number)}})
    [place] = set(re.findall(r"at=([^\"&]+)", console.get("/rows", **of_songs(key0="often"))))

    def shown() -> tuple[list[str], bool]:
        page = console.get(f"/row?namespace=shared&name=songs&at={place}")
        return re.findall(r'<ins><span class="badge type">N</span> <span class="value">(\d)', page), (
            "Older changes are not shown." in page
        )

    assert shown()[0][:1] == ["4"] and not shown()[1]
    monkeypatch.setattr(reading, "HISTORY", 5)
    assert not shown()[1]
    monkeypatch.setattr(reading, "HISTORY", 3)
    assert shown()[1]
    monkeypatch.setattr(reading, "_HISTORY_S", 0.0)
    page = console.get(f"/row?namespace=shared&name=songs&at={place}")
    assert "Changes searched: 0." in page
    songs.client.delete_item(TableName="songs", Key=key)


def test_changes_as_they_come(songs: Live, console: Console) -> None:
    def ask(since: str) -> Any:
        return requests.get(
            f"{console.url}/changes.json", params=of_songs(since=since), timeout=PATIENCE_S
        ).json()

    first = ask("")
    assert first["changes"] == []
    songs.client.put_item(TableName="songs", Item={"p": {"S": "new"}, "s": {"N": "1"}})
    found = ask(first["place"])
    assert [change["key"] for change in found["changes"]] == ["new, 1"]
    assert ask(found["place"]) == {"changes": [], "place": found["place"]}
    songs.client.delete_item(TableName="songs", Key={"p": {"S": "new"}, "s": {"N": "1"}})
    for since in ("0-x", "0-1000000000000000000", "1000000000-1"):
        console.get("/changes.json", 400, **of_songs(since=since))


def test_metrics_are_drawn(songs: Live, console: Console) -> None:
    for period in ("15m", "1h", "24h"):
        console.get("/metrics", range=period)
        for name in ("requests", "latencies", "ticks", "throttles", "operations", "tables"):
            assert console.get("/chart", name=name, range=period).startswith("<figure")
    console.get("/chart", 400, name="none")
    console.get("/chart", 400, name="requests", range="a year")


# Changing rows


def test_nothing_can_be_changed_without_console_writes(songs: Live, console: Console) -> None:
    for path in ("/row/put", "/row/delete"):
        console.post(path, 404, **of_songs(row="{}", at="a.b"))
    assert "Put" not in console.get("/rows", **of_songs())


def test_rows_are_put_in_the_form_of_the_dialect_that_is_served(serve: Serve, database_url: str) -> None:
    server = serve(database_url, console_writes=True, dialects=["azuretable"])
    table = LiveAzure(server.url).service.create_table("songs")
    console = Console(server.url)
    entity = '{"PartitionKey": "p", "RowKey": "r", "n@odata.type": "Edm.Int64", "n": "7"}'
    console.post("/row/put", **of_songs(row=entity))
    assert table.get_entity("p", "r")["n"].value == 7
    for wrong in ("{}", '{"p": {"S": "a"}}', '{"PartitionKey": "p", "RowKey": "a/b"}'):
        assert 'role="alert"' in console.post("/row/put", 400, **of_songs(row=wrong))


def test_with_console_writes_rows_are_put_and_deleted(serve: Serve, database_url: str) -> None:
    server = serve(database_url, console_writes=True)
    Live(server.url).create("p:S", name="songs")
    console = Console(server.url)
    page = console.post("/row/put", **of_songs(row='{"p": {"S": "a"}, "n": {"N": "1"}}'))
    assert "Delete" in page
    for wrong in ("", "[]", '{"p": {"N": "1"}}', '{"p": {"S": ""}}', '{"p": {"S": "a"}, "x": {"Z": 1}}'):
        assert 'role="alert"' in console.post("/row/put", 400, **of_songs(row=wrong))
    console.post("/row/put", 403, {"Origin": "http://evil.example"}, **of_songs(row='{"p": {"S": "b"}}'))
    [place] = re.findall(r'name="at" value="([^"]+)"', page)
    assert keys_of(console.post("/row/delete", **of_songs(at=place))) == []


# Jobs


def begun(server: Running, namespace: str, table: str) -> Job:
    """Create a job of an unknown kind, so that it does not end."""
    engine = server.app.extensions["tablegate"].gateway.engine
    [job] = engine.run([StartJob("kind", namespace, table, {}, "IN_PROGRESS", 9)])
    assert isinstance(job, Job)
    return job


def test_jobs_are_shown_and_cancelled(serve: Serve, database_url: str) -> None:
    server = serve(database_url, console_writes=True)
    console = Console(server.url)
    assert "No job is running" in console.get("/jobs")
    job = begun(server, "shared", EVIL)
    page = console.get("/jobs")
    assert EVIL not in page and EVIL in unescape(page)
    assert "running" in page
    for wrong in ("", "x", "-1", "9" * 30, "\u0663"):
        console.post("/jobs/cancel", 400, id=wrong)
    console.post("/jobs/cancel", 403, {"Origin": "http://evil.example"}, id=str(job.id))
    assert "cancelling" not in console.post("/jobs/cancel", id=str(job.id + 1000))
    page = console.post("/jobs/cancel", id=str(job.id))
    assert "cancelling" in page and "<button>Cancel" not in page


def test_without_console_writes_jobs_are_only_shown(serve: Serve, database_url: str) -> None:
    server = serve(database_url)
    job = begun(server, "shared", "songs")
    page = Console(server.url).get("/jobs")
    assert "songs" in page and "<button>Cancel" not in page
    Console(server.url).post("/jobs/cancel", 404, id=str(job.id))


def test_a_visitor_sees_and_cancels_its_own_jobs(serve: Serve, database_url: str) -> None:
    server = serve(database_url, **SETTINGS, admin_token="the token", console_writes=True)
    gateway = server.app.extensions["tablegate"].gateway
    gateway.credentials.replace(CREDENTIALS)
    theirs = begun(server, "aws/111111111111/eu-central-1", "of-victim")
    own = begun(server, "aws/222222222222/eu-central-1", "of-thief")
    console = Console(server.url)
    console.sign_in("thief", secret_of("thief"))
    page = console.get("/jobs")
    assert "of-thief" in page and "of-victim" not in page
    console.post("/jobs/cancel", id=str(theirs.id))
    reader, owner = (short_policy({word: ["of-thief"]}) for word in ("read", "admin"))
    for policy, is_cancelled in ((reader, False), (owner, True)):
        gateway.credentials.replace([replace(each, policy=policy) for each in CREDENTIALS])
        assert ("of-thief" in console.get("/jobs")) is is_cancelled
        console.post("/jobs/cancel", id=str(own.id))
        jobs = gateway.engine.run([ListUnfinishedJobs()])[0]
        assert [job.cancelled for job in jobs] == [False, is_cancelled]
    console.sign_in("administrator", "the token")
    assert "of-victim" in console.post("/jobs/cancel", id=str(theirs.id))
    assert [job.cancelled for job in gateway.engine.run([ListUnfinishedJobs()])[0]] == [True, True]
