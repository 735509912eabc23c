"""A web page in a browser cannot use a local server. Foreign origins and foreign hosts are refused in the dialect's
words before any work, through both entries.

Sources: the Fetch standard (requests that are "simple" and go out without a preflight, and Origin in every POST), RFC
9110, 7.2 (Host), RFC 6761, 6.3 (localhost), and LocalStack, localstack/aws/handlers/cors.py (the origin of NoSQL
Workbench).
"""

from __future__ import annotations

import http.client
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any

import pytest
import requests
from azure.core.credentials import AzureNamedKeyCredential
from azure.data.tables import AccountSasPermissions, ResourceTypes, TableCorsRule, generate_account_sas

from tablegate.gateway.capabilities import new_engine
from tablegate.gateway.configuration.loading import flag_of, load
from tablegate.gateway.configuration.settings import BadSetting
from tablegate.gateway.dialects.dialect import Gateway
from tablegate.gateway.engine.engine import EngineOptions
from tablegate.gateway.http.messages import Reply, Request
from tablegate.gateway.model.commands.table_commands import GetProperties
from tablegate.gateway.security.credentials import DEV_AZURE_ACCOUNT, DEV_AZURE_KEY, Credentials
from tablegate.gateway.store.migrating import migrate
from tablegate.gateway.store.store import Store
from tablegate.gateway.wiring import connect
from tests.conftest import Serve
from tests.entry_requests import NOW_MS, azure, dynamodb, tablestore
from tests.support.live_azure import LiveAzure
from tests.support.running import EVERY_DIALECT, Running, call_plainly, plain_app, start_app
from tests.support.waiting import PATIENCE_S

# A write of each dialect, and the text of its refusal.
WRITES = {
    "dynamodb": (dynamodb.CASES, "CreateTable", 400, b"com.amazon.coral.service#AccessDeniedException"),
    "tablestore": (tablestore.CASES, "CreateTable", 403, b"OTSNoPermissionAccess"),
    "azuretable": (azure.CASES, "POST TableSet", 403, b"AuthorizationFailure"),
}
EVIL = "https://evil.example.com"


class Desk:
    """A local gateway, and the commands that its engine received."""

    def __init__(self, **settings: Any) -> None:
        made = load({"memory": True, "port": 0, **settings}, {})
        database = connect(made)
        migrate(database)
        self._engine = new_engine(Store(database), EngineOptions(), lambda: NOW_MS * 1_000_000)
        self.done: list[Any] = []
        run = self._engine.run
        self._engine.run = lambda commands, nowait=False: self.done.extend(commands) or run(commands, nowait)  # type: ignore[method-assign]
        gateway = Gateway(self._engine, Credentials(made), made, lambda: NOW_MS, lambda: NOW_MS)
        self._app = plain_app(gateway, *EVERY_DIALECT)
        self._server: Running = start_app(self._app)

    @property
    def changes(self) -> list[Any]:
        """The commands received, without lookups of an Azure account's rules about origins (issue 24, point 8)."""
        return [command for command in self.done if not isinstance(command, GetProperties)]

    def ask(self, entry: str, request: Request, **headers: str) -> Reply:
        """Return the reply to a request with changed headers. None removes a header."""
        changed = {name.replace("_", "-"): value for name, value in headers.items()}
        kept = [header for header in request.headers if header[0] not in changed]
        named = [*kept, *((name, value) for name, value in changed.items() if value is not None)]
        made = Request(request.method, request.target, tuple(named), request.body)
        return call_plainly(self._app, made) if entry == "wsgi" else self._over_the_wire(made)

    def _over_the_wire(self, request: Request) -> Reply:
        connection = http.client.HTTPConnection("127.0.0.1", self._server.port, timeout=PATIENCE_S)
        try:
            is_10 = not any(name == "host" for name, _ in request.headers)
            connection._http_vsn_str = "HTTP/1.0" if is_10 else "HTTP/1.1"  # type: ignore[attr-defined]
            connection.putrequest(request.method, request.target, skip_host=True, skip_accept_encoding=True)
            for name, value in request.headers:
                if name != "content-length":
                    connection.putheader(name, value)
            connection.putheader("content-length", str(len(request.body)))
            connection.endheaders(request.body or None)
            answer = connection.getresponse()
            return Reply(answer.status, answer.getheaders(), answer.read())
        finally:
            connection.close()

    def close(self) -> None:
        self._server.stop()
        self._engine.close()


@pytest.fixture
def desk() -> Iterator[Callable[..., Desk]]:
    made: list[Desk] = []

    def begin(**settings: Any) -> Desk:
        made.append(Desk(**settings))
        return made[-1]

    yield begin
    for each in made:
        each.close()


def writing(dialect: str) -> Request:
    cases, operation, *_ = WRITES[dialect]
    return next(case.request for case in cases if case.operation == operation)


def is_readable(reply: Reply) -> bool:
    """True if a browser would show the reply to the page."""
    return any(name.lower() == "access-control-allow-origin" for name, _ in reply.headers)


@pytest.mark.parametrize("entry", ["server", "wsgi"])
@pytest.mark.parametrize("dialect", WRITES)
@pytest.mark.parametrize(
    "headers",
    [
        pytest.param({"origin": EVIL}, id="of another site"),
        pytest.param({"origin": "null"}, id="of a sandboxed frame"),
        pytest.param({"origin": "http://localhost.evil.example.com"}, id="that looks like ours"),
        pytest.param({"origin": "http://localhost@evil.example.com"}, id="with a user"),
        pytest.param({"origin": "chrome-extension://abcdef"}, id="of an extension"),
        pytest.param({"origin": f"http://localhost, {EVIL}"}, id="of a list"),
        pytest.param({"sec_fetch_site": "cross-site"}, id="that is not said"),
        pytest.param({"host": "evil.example.com"}, id="rebound"),
        pytest.param({"host": "evil.example.com:8000"}, id="rebound with a port"),
        pytest.param({"host": "evil.table.attacker.com"}, id="rebound in Azure's host style"),
        pytest.param(
            {"host": "dynamodb.us-east-1.amazonaws.com.evil.example"}, id="rebound like the service"
        ),
        pytest.param({"host": "127.0.0.1.evil.example.com"}, id="rebound like an address"),
        pytest.param({"host": "local host"}, id="that is no name"),
        pytest.param({"host": "127.0.0.1@evil.example.com"}, id="with a user in it"),
    ],
)
def test_a_foreign_page_is_refused_before_anything_is_done(
    desk, dialect: str, entry: str, headers: dict[str, str]
) -> None:
    here = desk()
    *_, status, words = WRITES[dialect]
    request = writing(dialect)
    reply = here.ask(entry, request, **headers)
    assert (reply.status, here.changes) == (status, [])
    assert words in reply.body
    assert not is_readable(reply)


@pytest.mark.parametrize("entry", ["server", "wsgi"])
@pytest.mark.parametrize("dialect", WRITES)
@pytest.mark.parametrize(
    "headers",
    [
        pytest.param({}, id="an SDK"),
        pytest.param({"host": None}, id="HTTP 1.0"),
        pytest.param({"host": "tablegate:8000"}, id="a service of compose"),
        pytest.param({"host": "my_project-tablegate-1"}, id="a container"),
        pytest.param({"host": "192.168.1.7:8000"}, id="an address"),
        pytest.param({"host": "[::1]:8000"}, id="an IPv6 address"),
        pytest.param({"host": "LOCALHOST.:8000"}, id="localhost with its dot"),
        pytest.param({"host": "app.localhost"}, id="a name below localhost"),
        pytest.param({"host": "host.docker.internal:8000"}, id="the host of a container"),
        pytest.param({"origin": "http://localhost:3000"}, id="a page of a development server"),
        pytest.param({"origin": "https://127.8.9.10"}, id="a page of a loopback address"),
        pytest.param({"origin": "http://[::1]:5173"}, id="a page of the IPv6 one"),
        pytest.param({"origin": "http://app.localhost:8080"}, id="a page below localhost"),
        pytest.param({"origin": "file://"}, id="NoSQL Workbench"),
        pytest.param({"origin": "app://."}, id="an Electron application with a scheme of its own"),
        pytest.param({"sec_fetch_site": "same-origin"}, id="no other site"),
        pytest.param({"sec_fetch_site": "none"}, id="typed by the user"),
        pytest.param(
            {"sec_fetch_site": "cross-site", "origin": "http://localhost:3000"},
            id="cross-site on one machine",
        ),
    ],
)
def test_local_origins_are_served(desk, dialect: str, entry: str, headers: dict[str, Any]) -> None:
    here = desk()
    reply = here.ask(entry, writing(dialect), **headers)
    assert reply.status in (200, 201), reply.body
    assert here.done


@pytest.mark.parametrize("entry", ["server", "wsgi"])
@pytest.mark.parametrize(
    ("dialect", "host"),
    [
        ("dynamodb", "dynamodb.eu-west-1.amazonaws.com"),
        ("dynamodb", "123456789012.ddb.us-east-1.amazonaws.com"),
        ("tablestore", "instance.cn-hangzhou.ots.aliyuncs.com"),
    ],
)
def test_the_names_of_the_services_are_taken(desk, dialect: str, entry: str, host: str) -> None:
    assert desk().ask(entry, writing(dialect), host=host).status == 200


@pytest.mark.parametrize("entry", ["server", "wsgi"])
@pytest.mark.parametrize(
    "host", [f"{DEV_AZURE_ACCOUNT}.table.core.windows.net", "devstoreaccount1.table.localhost"]
)
def test_azures_host_style_is_taken(desk, entry: str, host: str) -> None:
    # The service's own name, and the one that resolves to this machine by itself.
    reply = desk().ask(
        entry, Request("GET", "/Tables", (("host", host), ("x-ms-version", "2019-02-02")), b"")
    )
    assert reply.status in (401, 403)
    assert b"is not allowed here" not in reply.body


def simple_post(now: datetime = datetime(2023, 11, 14, tzinfo=UTC)) -> Request:
    """Return a request that a page sends without a preflight: a POST of text to an address signed with the published
    key.
    """
    credential = AzureNamedKeyCredential(DEV_AZURE_ACCOUNT, DEV_AZURE_KEY)
    token = generate_account_sas(
        credential, ResourceTypes(service=True, container=True, object=True),
        AccountSasPermissions.from_string("rwdlacu"), datetime(2030, 1, 1, tzinfo=UTC), start=now,
    )  # fmt: skip
    headers = (("host", "127.0.0.1:8000"), ("content-type", "text/plain"))
    return Request("POST", f"/{DEV_AZURE_ACCOUNT}/Tables?{token}", headers, b'{"TableName":"stolen"}')


@pytest.mark.parametrize("entry", ["server", "wsgi"])
def test_a_request_without_a_preflight_is_refused_too(desk, entry: str) -> None:
    here = desk()
    assert here.ask(entry, simple_post(), origin=EVIL).status == 403
    assert here.changes == []
    assert here.ask(entry, simple_post()).status == 201
    assert here.done


@pytest.mark.parametrize("entry", ["server", "wsgi"])
@pytest.mark.parametrize("path", ["/", f"/{DEV_AZURE_ACCOUNT}/Tables"])
def test_a_preflight_of_a_foreign_page_is_refused(desk, entry: str, path: str) -> None:
    asked = (("host", "127.0.0.1"), ("access-control-request-method", "POST"))
    reply = desk().ask(entry, Request("OPTIONS", path, asked, b""), origin=EVIL)
    assert reply.status in (400, 403)
    assert not is_readable(reply)


@pytest.mark.parametrize("entry", ["server", "wsgi"])
@pytest.mark.parametrize("path", ["/metrics", "/healthz", "/readyz"])
def test_the_gateways_own_paths_have_no_foreign_host(desk, entry: str, path: str) -> None:
    here = desk()
    request = Request("GET", path, (("host", "localhost"),), b"")
    assert here.ask(entry, request).status == 200
    assert here.ask(entry, request, host="evil.example.com").status == 403
    assert here.ask(entry, request, origin=EVIL).status == 403


@pytest.mark.parametrize("entry", ["server", "wsgi"])
@pytest.mark.parametrize("dialect", WRITES)
def test_settings_name_more(desk, dialect: str, entry: str) -> None:
    here = desk(cors_origin="https://App.example.com/", allowed_host="db.example.com,.example.net")
    request = writing(dialect)
    refused = WRITES[dialect][2]
    good = [
        {"origin": "https://app.example.com"},
        {"host": "DB.example.com:80"},
        {"host": "a.b.example.net"},
    ]
    bad = [
        {"origin": "null"},
        {"origin": "https://app.example.com:444"},
        {"origin": "http://app.example.com"},
        {"host": "x.db.example.com"},
        {"host": "example.net"},
        {"host": "badexample.net"},
    ]
    assert [here.ask(entry, request, **headers).status for headers in bad] == [refused] * len(bad)
    assert here.changes == []
    first, *others = [here.ask(entry, request, **headers).status for headers in good]
    assert first in (200, 201)
    # The table exists by now. Only an authorized caller gets this answer.
    assert b"not allowed" not in here.ask(entry, request, **good[-1]).body
    assert len(set(others)) == 1


@pytest.mark.parametrize("entry", ["server", "wsgi"])
def test_the_rules_of_an_azure_account_allow_pages_in_dev_too(
    serve: Serve, database_url: str, entry: str
) -> None:
    """ "Cross-Origin Resource Sharing (CORS) support for Azure Storage": the account's owner configures the permitted
    origins.
    """
    azure_account = LiveAzure(serve(database_url, entry=entry).url)
    azure_account.service.create_table("people")

    def status(origin: str, method: str = "GET", **headers: str) -> tuple[int, str]:
        reply = azure_account.send(method, "/people", headers={"Origin": origin, **headers})
        return reply.status_code, reply.headers.get("Access-Control-Allow-Origin", "")

    def preflight(origin: str) -> int:
        asked = {"Origin": origin, "Access-Control-Request-Method": "GET"}
        return requests.options(
            f"{azure_account.endpoint}/people", headers=asked, timeout=PATIENCE_S
        ).status_code

    assert status(EVIL) == (403, "")
    assert preflight(EVIL) == 403
    rule = TableCorsRule(["https://app.example.com"], ["GET"])
    azure_account.service.set_service_properties(cors=[rule])
    assert status("https://app.example.com") == (200, "https://app.example.com")
    assert preflight("https://app.example.com") == 200
    assert status("https://app.example.com", "POST") == (403, "")
    for foreign in (EVIL, "null", "https://app.example.com.evil.example"):
        assert status(foreign) == (403, "")
        assert preflight(foreign) == 403
    assert status("http://localhost:3000")[0] == 200  # pages of this machine need no rule
    assert status("https://app.example.com", Host="evil.example.com")[0] == 403
    azure_account.service.set_service_properties(cors=[])
    assert status("https://app.example.com") == (403, "")


def test_a_star_allows_all_origins_and_hosts(desk) -> None:
    here = desk(cors_origin="*", allowed_host="*")
    assert here.ask("server", writing("dynamodb"), origin=EVIL, host="anything.example.com").status == 200


def test_a_refusal_of_the_origin_null_suggests_no_setting(desk) -> None:
    # Every site can send it, so there is no setting that allows it by name (issue 23, point 3).
    reply = desk().ask("server", writing("dynamodb"), origin="null")
    assert b"The origin null is not allowed here" in reply.body
    assert b"--cors-origin" not in reply.body
    with pytest.raises(BadSetting, match=r"'null'.*sandboxed"):
        load({"cors_origin": "null"}, {})


@pytest.mark.parametrize("entry", ["server", "wsgi"])
def test_strict_leaves_pages_to_signatures(desk, entry: str) -> None:
    # "CORS stays as the services have it": nothing is done without a signature, so a page may come from anywhere.
    asked = Request(
        "OPTIONS", "/", (("host", "x.example.com"), ("access-control-request-method", "POST")), b""
    )
    reply = desk(auth="strict").ask(entry, asked, origin=EVIL)
    assert (reply.status, dict(reply.headers)["Access-Control-Allow-Origin"]) == (200, "*")
    # The configured origins apply there too.
    named = desk(auth="strict", cors_origin="https://app.example.com", allowed_host="db.example.com")
    assert named.ask(entry, asked, origin="https://app.example.com", host="db.example.com").status == 200
    assert named.ask(entry, asked, origin=EVIL, host="db.example.com").status == 400
    assert named.ask(entry, asked, origin="https://app.example.com").status == 400


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("cors_origin", "app.example.com"),
        ("cors_origin", "https://a/b"),
        ("cors_origin", "null"),
        ("cors_origin", "Null"),
        ("allowed_host", "a:1"),
        ("allowed_host", "a/b"),
    ],
)
def test_a_setting_that_would_never_hold_is_refused(name: str, value: str) -> None:
    with pytest.raises(BadSetting, match=flag_of(name)):
        load({name: value}, {})
