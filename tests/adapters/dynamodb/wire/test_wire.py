"""The endpoint from outside: content types, targets, codings, checksums, CORS, and invalid requests.

Sources: dynalite test/connection.js; test/alternator test_manual_requests, test_compressed_*, test_cors, test_health.
"""

from __future__ import annotations

import gzip
import logging
import re
import zlib
from collections.abc import Iterator

import flask
import orjson
import pytest

from tablegate.adapters.dynamodb import dialect
from tablegate.adapters.dynamodb.wire import http, limits
from tablegate.gateway.http.messages import Request
from tablegate.gateway.model.errors import Busy, LimitExceeded
from tests.adapters.dynamodb.client import JSON_1_0, DynamoDBService, signed
from tests.support.running import beyond_wsgi
from tests.support.tables import each_row

ECHO = "DynamoDB_20120810.ListTables"
HEADERS = {"content_type": JSON_1_0, "x_amz_target": ECHO, **signed()}


def answering(service: DynamoDBService, answer: object) -> list[object]:
    """Replace the answer of ListTables. The list collects its inputs."""
    seen: list[object] = []

    async def handler(call):
        seen.append(call.input)
        if isinstance(answer, Exception):
            raise answer
        return answer

    service.dialect.execute = handler
    return seen


# Requests that are no operations


@pytest.mark.parametrize(
    "method", ["PUT", "DELETE", "PATCH", "OPTIONS", pytest.param("HEAD", marks=beyond_wsgi)]
)
def test_another_method_is_not_found(service, method):
    reply = service.send(method)
    assert (reply.status, reply.body) == (404, b"<UnknownOperationException/>\n")
    assert service.header("x-amz-crc32") == "3552371480"


@pytest.mark.parametrize(
    "content_type", ["", "whatever", "application/x-amz-json-1.1", "application/jsonasdf"]
)
def test_a_body_of_another_type_is_not_found(service, content_type):
    assert service.send(body=b"hi", content_type=content_type).status == 404


def test_health_names_the_host(service):
    reply = service.send("GET")
    assert (reply.status, reply.body) == (200, b"healthy: localhost:8000 ")
    assert service.header("x-amz-crc32") == str(zlib.crc32(reply.body))


def test_a_health_answer_is_plain_text_whatever_the_host_says(service):
    service.send("GET", host="<script>é")
    assert service.last.body == b"healthy: <script> "
    assert service.header("content-type") == "text/plain"


# JSON, targets


@pytest.mark.parametrize(
    ("content_type", "shown"),
    [
        ("application/json", "application/json"),
        (JSON_1_0, JSON_1_0),
        ("  application/json  ;   asfd", "application/json"),
        ("application/x-amz-json-1.0;blahblah", JSON_1_0),
    ],
)
def test_a_body_that_is_no_json_is_a_serialization_exception(service, content_type, shown):
    reply = service.send(body=b"hi", content_type=content_type)
    assert (reply.status, reply.body) == (
        400,
        b'{"__type":"com.amazon.coral.service#SerializationException"}',
    )
    assert service.header("x-amz-crc32") == "3948637019"
    assert service.header("content-type") == shown


@pytest.mark.parametrize(
    "body",
    [
        b"{" * 10_000 + b"}" * 9_999,
        b'{"":' * 200_000 + b"{}" + b"}" * 200_000,
        b'{"a": "\\ud800"}',
        b'{"a": "\xff"}',
        b'{"a": NaN}',
        b'{"a": 1e999}',
        b"\x00",
        b'"a": "b"',
    ],
)
def test_bombs_and_broken_texts_are_serialization_exceptions(service, body):
    service.send(body=body, **HEADERS)
    assert orjson.loads(service.last.body)["__type"].endswith("#SerializationException")


@pytest.mark.parametrize(
    "target", ["", "whatever", "DynamoDB_20120810.ListTable", "DynamoDB_20111205.ListTables", "."]
)
def test_an_unknown_target_is_an_unknown_operation(service, target):
    reply = service.send(body=b"{}", content_type="application/json", x_amz_target=target)
    assert (reply.status, reply.body) == (
        400,
        b'{"__type":"com.amazon.coral.service#UnknownOperationException"}',
    )
    assert service.header("x-amz-crc32") == "1368724161"


def test_the_target_is_looked_at_before_the_signature(service):
    assert service.error("Nonsense", authorization="")[0] == "UnknownOperationException"
    assert service.error("ListTables", authorization="")[0] == "MissingAuthenticationTokenException"


def test_the_signature_is_looked_at_before_the_members(service):
    assert (
        service.error("ListTables", {"Limit": "x"}, authorization="")[0]
        == "MissingAuthenticationTokenException"
    )
    assert service.error("ListTables", {"Limit": "x"})[0] == "SerializationException"


@pytest.mark.parametrize("body", [b"null", b"[]", b'""', b"7", b""])
def test_a_body_that_is_no_object_is_an_error_of_the_service(service, body):
    reply = service.send(body=body, **HEADERS)
    assert reply.status == 400
    assert re.search("(Serialization|Validation)Exception", reply.body.decode())


def test_every_answer_has_an_id_of_fifty_two(service):
    for headers in ({}, HEADERS, {"content_type": "no"}):
        service.send(body=b"{}", **headers)
        assert re.fullmatch("[0-9A-Z]{52}", service.header("x-amzn-requestid") or "")


def test_an_answer_without_content_has_an_empty_body(service):
    answering(service, None)
    reply = service.send(body=b"{}", **HEADERS)
    assert (reply.status, reply.body, service.header("x-amz-crc32")) == (200, b"", "0")


def test_an_answer_that_is_bytes_is_sent_as_it_is(service):
    answering(service, b'{"Item":{}}')
    assert service.send(body=b"{}", **HEADERS).body == b'{"Item":{}}'


def test_a_crash_is_an_internal_error_and_logged_under_the_id(service, caplog):
    answering(service, RuntimeError("secret detail"))
    with caplog.at_level(logging.ERROR, logger="tablegate"):
        reply = service.send(body=b"{}", **HEADERS)
    assert reply.status == 500
    assert b"InternalServerError" in reply.body
    assert b"secret" not in reply.body
    [record] = caplog.records
    assert record.facts["request_id"] == service.header("x-amzn-requestid")
    assert record.exc_info


def test_a_busy_engine_is_a_503_that_sdks_try_again(service):
    answering(service, Busy())
    assert service.error("ListTables")[0] == "ServiceUnavailableException"
    assert service.last.status == 503


# Sizes and codings of requests


def test_sixteen_megabytes_pass_and_one_byte_more_does_not(service):
    answering(service, {})
    whole = b"{" + b" " * (limits.REQUEST_BYTES - 2) + b"}"
    assert service.send(body=whole, **HEADERS).status == 200
    assert service.send(body=whole + b" ", **HEADERS).status == 413
    assert service.last.body == b""
    assert service.send(body=whole + b" ").status == 413  # before anybody looks at what it is


def test_the_size_is_measured_unfolded_too(service):
    answering(service, {})
    whole = b"{" + b" " * (limits.REQUEST_BYTES - 2) + b"}"
    assert service.send(body=gzip.compress(whole), content_encoding="gzip", **HEADERS).status == 200
    assert service.send(body=gzip.compress(whole + b" "), content_encoding="gzip", **HEADERS).status == 413
    assert service.send(body=zlib.compress(whole + b" "), content_encoding="deflate", **HEADERS).status == 413


def test_a_bomb_is_not_unfolded_beyond_the_limit(service):
    bomb = gzip.compress(bytes(200 << 20), 9)
    assert service.send(body=bomb, content_encoding="gzip", **HEADERS).status == 413


def gzipped(body: bytes) -> bytes:
    """Without the time in it: cases have the names in all processes of a test run that they have in one."""
    return gzip.compress(body, mtime=0)


@pytest.mark.parametrize(
    ("coding", "body"),
    [
        ("gzip", gzipped(b'{"Limit":7}')),
        ("GZIP", gzipped(b'{"Limit":7}')),
        ("gzip", gzipped(b'{"Lim') + gzipped(b'it":7}')),
        ("deflate", zlib.compress(b'{"Limit":7}')),
        ("identity", b'{"Limit":7}'),
    ],
)
def test_a_coded_request_is_understood(service, coding, body):
    seen = answering(service, {})
    assert service.send(body=body, content_encoding=coding, **HEADERS).status == 200
    assert seen == [{"Limit": 7}]


@pytest.mark.parametrize(
    ("coding", "body"),
    [
        ("garbage", b"{}"),
        ("gzip", b"{}"),
        ("gzip", b""),
        ("gzip", gzipped(b"{}")[:-1]),
        ("gzip", gzipped(b"{}") + b"junk"),
        ("gzip", gzipped(b"") * (limits.GZIP_MEMBERS + 1)),
        ("deflate", b""),
        ("deflate", b"{}"),
        ("deflate", zlib.compress(b"{}") + zlib.compress(b" ")),
        ("gzip, gzip", gzipped(gzipped(b"{}"))),
    ],
)
def test_a_broken_coding_is_an_internal_error_as_with_the_service(service, coding, body):
    """test/alternator/test_compressed_request.py."""
    seen = answering(service, {})
    reply = service.send(body=body, content_encoding=coding, **HEADERS)
    assert reply.status == 500
    assert seen == []


def test_gzip_members_are_limited_on_both_sides(service):
    answering(service, {})
    most = gzip.compress(b"") * (limits.GZIP_MEMBERS - 1) + gzip.compress(b"{}")
    assert service.send(body=most, content_encoding="gzip", **HEADERS).status == 200


def test_the_signature_covers_the_body_as_it_was_sent(service):
    assert b"healthy" in service.send("GET").body  # and the codings are looked at after the content type
    assert service.send(body=gzip.compress(b"{}"), content_encoding="gzip").status == 404


# Codings of replies


@pytest.mark.parametrize(("coding", "unfold"), [("gzip", gzip.decompress), ("deflate", zlib.decompress)])
def test_long_answers_are_compressed_on_demand(service, coding, unfold):
    answering(service, {"a": "x" * 6000})
    plain = service.send(body=b"{}", **HEADERS).body
    assert service.header("content-encoding") is None
    packed = service.send(body=b"{}", accept_encoding=coding, **HEADERS).body
    assert service.header("content-encoding") == coding
    assert service.header("x-amz-crc32") == str(zlib.crc32(packed))
    assert unfold(packed) == plain
    assert len(plain) > 30 * len(packed)


def test_answers_below_four_kilobytes_stay_plain(service):
    answering(service, b"x" * 4095)
    service.send(body=b"{}", accept_encoding="gzip", **HEADERS)
    assert service.header("content-encoding") is None
    answering(service, b"x" * 4096)
    service.send(body=b"{}", accept_encoding="gzip", **HEADERS)
    assert service.header("content-encoding") == "gzip"


@each_row(
    "accepted, coding",
    [
        # Every row was tried against AWS by the authors of test_compressed_response.py.
        ("identity", None),
        ("", None),
        ("br", None),
        ("x-gzip", None),
        ("gzip, deflate", "gzip"),
        ("br, identity, deflate, gzip", "deflate"),
        ("GZIP, identity", "gzip"),
        ("dog, gzip ,, cat", "gzip"),
        ("gzip;q=0.8, deflate;q=0.5", "gzip"),
        ("br, gzip;q=0, deflate; q = 0.5 , identity;q=0", "deflate"),
        ("*", "gzip"),
        ("*, deflate;q=0.5", "gzip"),
        ("*, deflate", "deflate"),
        ("*, identity", "gzip"),
        ("*, gzip;q=0.5", "deflate"),
        ("gzip ;q=0", None),
        ("*;q=0", None),
        ("*;q=0.5,identity", "gzip"),
        ("gzip;q=0.5,identity;q=0.8", "gzip"),
        ("br;q=0.8,identity;q=0.5,*;q=0", None),
        ('"gzip"', None),
        ("gzip br", None),
        ("gzip:q=1", None),
        ("deflate;q=0.5, gzip;q=31", "gzip"),
        ("gzip;q=31,deflate;q=51", "gzip"),
        ("deflate;q=0.5, gzip;q=0.2", "deflate"),
        ("deflate;q=0.5, gzip;q=1;q=0.2", "gzip"),
        ("deflate;q=0.5,gzip;q=0.", "deflate"),
        ("deflate;q=0.5,gzip;q=0.x", "gzip"),
        ("deflate;q=0.5,gzip;q=0. x", "gzip"),
        ("deflate;q=-0.5,gzip;q=0.2", "gzip"),
        ("gzip;q= 0;q=1", None),
        ("gzip;q =0;q=1", "gzip"),
        ("gzip; q=0;q=1", None),
        ("gzip;nq=0;q=1", None),
        ("gzip;q=0, gzip;q=1, gzip;q=0", "gzip"),
        ("br,identity;q=0.5,gzip;q=0.0001", "gzip"),
    ],
)
def test_the_coding_is_chosen_as_the_service_chooses(accepted, coding):
    assert http.accepted_coding(accepted) == coding


@pytest.mark.parametrize("weight", ["nan", "inf", "1e400", "0x1", "٣"])
def test_any_weight_is_a_choice(weight):
    assert http.accepted_coding(f"gzip;q={weight}") in ("gzip", None)


def test_the_first_of_repeated_accept_encoding_headers_is_read(service):
    answering(service, {"a": "x" * 6000})
    pairs = [(name.replace("_", "-"), value) for name, value in HEADERS.items()]
    for codings, chosen in ((("identity", "gzip"), None), (("gzip", "identity"), "gzip")):
        headers = (*pairs, *(("accept-encoding", coding) for coding in codings))
        service.last = service.dialect.serve(Request("POST", "/", headers, b"{}"))
        assert service.header("content-encoding") == chosen


# CORS


@pytest.mark.parametrize("method", ["GET", "POST", "OPTIONS", "PUT"])
def test_a_reply_without_an_origin_has_no_cors_headers(service, method):
    service.send(method)
    assert not [name for name, _ in service.last.headers if name.lower().startswith("access-control")]


@pytest.mark.parametrize("method", ["GET", "POST", "PUT"])
def test_any_origin_may_read(service, method):
    service.send(method, origin="http://example.com", access_control_request_method="dog")
    assert service.header("access-control-allow-origin") == "*"
    assert service.header("access-control-expose-headers")
    assert service.header("access-control-max-age") is None
    assert service.header("access-control-allow-methods") is None


def test_a_preflight_permits_the_requested_headers(service):
    reply = service.send(
        "OPTIONS",
        origin="whatever",
        access_control_request_method="dog",
        access_control_request_headers="cat, meerkat, mouse",
    )
    assert (reply.status, reply.body) == (200, b"")
    assert service.header("access-control-allow-origin") == "*"
    assert service.header("access-control-allow-methods") == "dog"
    assert service.header("access-control-allow-headers") == "cat, meerkat, mouse"
    assert service.header("access-control-max-age") == "172800"


# The two entries, and their callers


@pytest.fixture
def through_flask(service: DynamoDBService) -> Iterator[flask.testing.FlaskClient]:
    app = flask.Flask("test", static_folder=None)
    app.register_blueprint(dialect.DynamoDB(service.gateway).blueprint())
    with app.test_client() as client:
        yield client


def test_flask_and_the_tick_give_the_same_answer(service, through_flask):
    service.table()
    for body in (b"{}", b"hi", b'{"Limit":0}'):
        headers = {name.replace("_", "-"): value for name, value in HEADERS.items()}
        flasks = through_flask.post("/", data=body, headers=headers)
        ours = service.send(body=body, **HEADERS)
        assert (flasks.status_code, flasks.data) == (ours.status, ours.body)
        assert flasks.headers["x-amz-crc32"] == service.header("x-amz-crc32")
        assert flasks.headers["Content-Type"] == service.header("content-type")


@pytest.mark.parametrize("method", ["PUT", "DELETE", "OPTIONS", "GET", "POST"])
def test_flask_leaves_every_method_to_us(through_flask, service, method):
    reply = through_flask.open("/", method=method, headers={"Host": "localhost:8000"})
    assert (reply.status_code, reply.data) == (service.send(method).status, service.last.body)


@pytest.mark.parametrize("path", ["/abc", "/-", "/a/b//c", "/index.htm"])
def test_other_paths_are_not_found(through_flask, path):
    assert through_flask.get(path).status_code == 404


@pytest.mark.parametrize(
    ("method", "target", "headers", "ours"),
    [
        ("POST", "/", {"x-amz-target": ECHO}, True),
        ("POST", "/", {"content-type": JSON_1_0}, True),
        ("POST", "/elsewhere", {"authorization": "AWS4-HMAC-SHA256 Credential=a"}, True),
        ("GET", "/", {}, True),
        ("GET", "/health", {}, False),
        ("GET", "/?comp=list", {}, False),
        ("GET", "/", {"x-ms-version": "2019-02-02"}, False),
        ("GET", "/?restype=service&comp=properties", {}, False),
        ("POST", "/PutRow", {"x-ots-apiversion": "2015-12-31"}, False),
        ("GET", "/devstoreaccount1/Tables", {}, False),
    ],
)
def test_requests_of_other_dialects_are_left_alone(service, method, target, headers, ours):
    assert service.dialect.matches(Request(method, target, tuple(headers.items()), b"")) is ours


def test_operations_have_names_from_a_closed_set(service):
    def named(target):
        return service.dialect.operation(Request("POST", "/", (("x-amz-target", target),), b""))

    assert named(ECHO) == "ListTables"
    assert named("DynamoDB_20120810.Made" + "Up") == ""


def test_the_server_refuses_in_our_words(service):
    request = Request("POST", "/", (("content-type", JSON_1_0),), b"")
    refuse = service.dialect.refuse
    assert refuse(request, LimitExceeded("body", 1, 2)).status == 413
    assert b"ServiceUnavailable" in refuse(request, Busy()).body
    assert b"InternalServerError" in refuse(request, RuntimeError()).body
