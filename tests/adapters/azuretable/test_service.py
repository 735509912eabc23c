"""The service as a whole: properties, statistics, CORS."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tablegate.gateway.http.messages import Reply
from tests.adapters.azuretable.client import AzureTableService, code_of
from tests.support.tables import each_row

PROPERTIES = "/?restype=service&comp=properties"
RETENTION = "<RetentionPolicy><Enabled>true</Enabled><Days>{days}</Days></RetentionPolicy>"
OFF = "<RetentionPolicy><Enabled>false</Enabled></RetentionPolicy>"
LOGGING = "<Logging><Version>1.0</Version><Delete>true</Delete><Read>false</Read><Write>true</Write>{retention}</Logging>"
HOURS = "<HourMetrics><Version>1.0</Version><Enabled>true</Enabled><IncludeAPIs>false</IncludeAPIs>{retention}</HourMetrics>"


def document(inner: str) -> bytes:
    return f"<StorageServiceProperties>{inner}</StorageServiceProperties>".encode()


def put(service: AzureTableService, inner: str) -> Reply:
    return service.send("PUT", PROPERTIES, document(inner), {"Content-Type": "application/xml"})


def get(service: AzureTableService) -> str:
    reply = service.send("GET", PROPERTIES)
    assert reply.status == 200
    assert dict(reply.headers)["Content-Type"] == "application/xml"
    return reply.body.decode()


def rule(**changed: str) -> str:
    parts = {
        "AllowedOrigins": "https://a.example,https://b.example",
        "AllowedMethods": "GET,PUT",
        "AllowedHeaders": "x-ms-meta-*,content-type",
        "ExposedHeaders": "x-ms-*",
        "MaxAgeInSeconds": "500",
        **changed,
    }
    return "<CorsRule>" + "".join(f"<{name}>{text}</{name}>" for name, text in parts.items()) + "</CorsRule>"


def test_all_properties_are_off_at_first(service: AzureTableService) -> None:
    metrics = f"<Version>1.0</Version><Enabled>false</Enabled>{OFF}"
    assert get(service) == (
        '<?xml version="1.0" encoding="utf-8"?><StorageServiceProperties><Logging><Version>1.0</Version>'
        f"<Delete>false</Delete><Read>false</Read><Write>false</Write>{OFF}</Logging>"
        f"<HourMetrics>{metrics}</HourMetrics><MinuteMetrics>{metrics}</MinuteMetrics><Cors /></StorageServiceProperties>"
    )


def test_omitted_properties_keep_their_values(service: AzureTableService) -> None:
    logging, hours = LOGGING.format(retention=RETENTION.format(days=7)), HOURS.format(retention=OFF)
    assert put(service, logging).status == 202
    assert put(service, hours).status == 202
    assert put(service, f"<Cors>{rule()}</Cors>").status == 202
    kept = get(service)
    assert logging in kept
    assert hours in kept
    assert "https://a.example,https://b.example" in kept
    assert put(service, "<Cors/>").status == 202
    assert "CorsRule" not in get(service)
    assert logging in get(service)


def test_each_account_has_its_own(service: AzureTableService) -> None:
    from tests.adapters.azuretable.client import OTHER, sign

    put(service, LOGGING.format(retention=OFF))
    import base64

    headers = {"x-ms-date": service.now}
    key = base64.b64decode(OTHER.secrets[0])
    headers["Authorization"] = sign(key, "GET", f"/otheraccount{PROPERTIES}", headers, "otheraccount")
    reply = service.handle(service.request("GET", PROPERTIES, headers=headers, base="/otheraccount"))
    assert b"<Delete>false</Delete>" in reply.body


@pytest.mark.parametrize(
    ("days", "status"), [("0", 400), ("1", 202), ("365", 202), ("366", 400), ("x", 400), ("-1", 400)]
)
def test_days_of_retention(service: AzureTableService, days: str, status: int) -> None:
    reply = put(service, LOGGING.format(retention=RETENTION.format(days=days)))
    assert reply.status == status
    if status == 400:
        assert code_of(reply) == (400, "InvalidXmlDocument")


@each_row(
    "inner, code",
    [
        ("<Logging/>", "InvalidXmlDocument"),
        ("<Unknown/>", "InvalidXmlDocument"),
        ("<Cors/><Cors/>", "InvalidXmlDocument"),
        (LOGGING.format(retention=""), "InvalidXmlDocument"),
        (LOGGING.format(retention=RETENTION.replace("<Days>{days}</Days>", "")), "InvalidXmlDocument"),
        (LOGGING.format(retention=OFF).replace("true", "maybe"), "InvalidXmlDocument"),
        (LOGGING.format(retention=OFF).replace("1.0", "9.0"), "InvalidXmlDocument"),
        (HOURS.format(retention=OFF).replace("<IncludeAPIs>false</IncludeAPIs>", ""), "InvalidXmlDocument"),
        (f"<Cors>{rule() * 6}</Cors>", "InvalidXmlDocument"),
        (f"<Cors>{rule(AllowedOrigins='')}</Cors>", "InvalidXmlDocument"),
        (f"<Cors>{rule(AllowedMethods='FLY')}</Cors>", "InvalidXmlDocument"),
        (f"<Cors>{rule(MaxAgeInSeconds='long')}</Cors>", "InvalidXmlDocument"),
        (f"<Cors>{rule(AllowedHeaders='a*,b*,c*')}</Cors>", "InvalidXmlDocument"),
        (f"<Cors>{rule(AllowedOrigins='http://' + 'a' * 250)}</Cors>", "InvalidXmlDocument"),
        (f"<Cors>{rule(AllowedOrigins=','.join(['a'] * 65))}</Cors>", "InvalidXmlDocument"),
        (f"<Cors>{rule(ExposedHeaders='h' * 200 + ',' + 'h' * 2000)}</Cors>", "InvalidXmlDocument"),
    ],
)
def test_properties_that_are_refused(service: AzureTableService, inner: str, code: str) -> None:
    assert code_of(put(service, inner)) == (400, code)


def test_limits_of_cors_rules(service: AzureTableService) -> None:
    small = rule(AllowedOrigins="*", AllowedHeaders="", ExposedHeaders="")
    assert put(service, f"<Cors>{small * 5}</Cors>").status == 202
    assert put(service, f"<Cors>{rule(AllowedOrigins=','.join(['a'] * 64))}</Cors>").status == 202
    assert put(service, f"<Cors>{rule(AllowedOrigins='a' * 256)}</Cors>").status == 202
    assert put(service, f"<Cors>{rule(AllowedHeaders='a*,b*')}</Cors>").status == 202


def test_statistics_are_the_secondarys(service: AzureTableService) -> None:
    path = "/?restype=service&comp=stats"
    assert code_of(service.send("GET", path)) == (400, "InvalidQueryParameterValue")
    reply = service.handle(service.request("GET", path, base="/devstoreaccount1-secondary"))
    assert reply.body == (
        b'<?xml version="1.0" encoding="utf-8"?><StorageServiceStats><GeoReplication><Status>live</Status>'
        b"<LastSyncTime>Tue, 14 Nov 2023 22:13:20 GMT</LastSyncTime></GeoReplication></StorageServiceStats>"
    )


# CORS


def preflight(service: AzureTableService, **headers: str) -> Reply:
    sent = {name.replace("_", "-"): value for name, value in headers.items()}
    request = service.request("OPTIONS", "/people", headers={"Authorization": "", **sent})
    return service.handle(request)


ASK: dict[str, Any] = {"Origin": "https://b.example", "Access_Control_Request_Method": "PUT"}


def test_a_preflight_gets_the_allowed_methods_and_headers(service: AzureTableService) -> None:
    put(service, f"<Cors>{rule()}</Cors>")
    reply = preflight(service, **ASK, Access_Control_Request_Headers="X-MS-Meta-Color, Content-Type")
    headers = dict(reply.headers)
    assert reply.status == 200
    assert headers["Access-Control-Allow-Origin"] == "https://b.example"
    assert headers["Access-Control-Allow-Methods"] == "PUT"
    assert headers["Access-Control-Allow-Headers"] == "X-MS-Meta-Color, Content-Type"
    assert headers["Access-Control-Max-Age"] == "500"
    assert headers["Access-Control-Allow-Credentials"] == "true"


@pytest.mark.parametrize(
    "changed",
    [
        {"Origin": "https://c.example"},
        {"Access_Control_Request_Method": "DELETE"},
        {"Access_Control_Request_Headers": "authorization"},
    ],
)
def test_preflight_that_no_rule_allows(service: AzureTableService, changed: dict[str, str]) -> None:
    assert code_of(preflight(service, **ASK)) == (403, "CorsPreflightFailure")
    put(service, f"<Cors>{rule()}</Cors>")
    assert code_of(preflight(service, **{**ASK, **changed})) == (403, "CorsPreflightFailure")


@pytest.mark.parametrize("missing", ["Origin", "Access_Control_Request_Method"])
def test_preflight_without_a_required_header(service: AzureTableService, missing: str) -> None:
    assert preflight(service, **{**ASK, missing: ""}).status == 400


def test_a_rule_for_any_origin_and_header_allows_every_preflight(service: AzureTableService) -> None:
    put(service, f"<Cors>{rule(AllowedOrigins='*', AllowedHeaders='*')}</Cors>")
    reply = preflight(service, **ASK, Access_Control_Request_Headers="anything")
    headers = dict(reply.headers)
    assert headers["Access-Control-Allow-Origin"] == "*"
    assert "Access-Control-Allow-Credentials" not in headers


def test_real_requests(service: AzureTableService) -> None:
    put(service, f"<Cors>{rule()}</Cors>")
    for path, status in (("/Tables", 200), ("/nothing()", 404)):
        reply = service.send("GET", path, headers={"Origin": "https://a.example"})
        headers = dict(reply.headers)
        assert reply.status == status
        assert headers["Access-Control-Allow-Origin"] == "https://a.example"
        assert headers["Access-Control-Expose-Headers"] == "x-ms-*"
        assert headers["Vary"] == "Origin"
        stranger = dict(service.send("GET", path, headers={"Origin": "https://c.example"}).headers)
        assert "Access-Control-Allow-Origin" not in stranger
        assert stranger["Vary"] == "Origin"


def test_the_service_root_is_nothing_by_itself(service: AzureTableService) -> None:
    assert code_of(service.send("GET", "/")) == (400, "InvalidQueryParameterValue")
    assert code_of(service.send("GET", "/?restype=service")) == (405, "MethodNotAllowed")
    assert code_of(service.send("DELETE", PROPERTIES)) == (405, "MethodNotAllowed")


def test_a_table_is_created_by_an_address_in_host_style(service: AzureTableService) -> None:
    from tests.adapters.azuretable.client import KEY, sign

    headers = {"Host": "devstoreaccount1.table.core.windows.net", "x-ms-date": service.now}
    headers["Authorization"] = sign(KEY, "POST", "/Tables", {**headers, "Content-Type": "application/json"})
    request = service.request("POST", "/Tables", {"TableName": "people"}, headers, base="")
    reply = service.handle(replace(request, secure=True))
    assert reply.status == 201
    location = dict(reply.headers)["Location"]
    assert location == "https://devstoreaccount1.table.core.windows.net/Tables('people')"


# Versions. The service rejects invalid versions with InvalidHeaderValue (captured: Azure/azure-storage-python #631,
# microsoft/AzureStorageExplorer #3969). It does not publish a list of valid dates.


@pytest.mark.parametrize(
    "version",
    [
        "2009-02-30",
        "0000-01-01",
        "2019-02-29",
        "2019-04-31",
        "2019-13-01",
        "2019-00-10",
        "20190202",
        "2019-W05-6",
    ],
)
def test_a_version_that_is_no_date_is_refused(service: AzureTableService, version: str) -> None:
    reply = service.send("GET", "/Tables", headers={"x-ms-version": version})
    assert code_of(reply) == (400, "InvalidHeaderValue")
    assert b"The value for one of the HTTP headers is not in the correct format." in reply.body
    assert dict(reply.headers)["x-ms-version"] == "2019-02-02"


@pytest.mark.parametrize("version", ["2009-02-28", "2020-02-29", "0001-01-01", "2031-12-31", "9999-12-31"])
def test_a_version_that_is_a_date_is_taken_and_echoed(service: AzureTableService, version: str) -> None:
    reply = service.send("GET", "/Tables", headers={"x-ms-version": version})
    assert reply.status == 200
    assert dict(reply.headers)["x-ms-version"] == version
