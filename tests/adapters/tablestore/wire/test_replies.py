"""HTTP: compression both ways, unsupported operations, errors, and requests that make no sense."""

from __future__ import annotations

import zlib
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from tablegate.adapters.tablestore.operation_table import OPERATIONS
from tablegate.adapters.tablestore.wire import errors, limits, replies
from tablegate.adapters.tablestore.wire.protocol import table_store_pb2 as messages
from tablegate.gateway.http.messages import Request
from tablegate.gateway.model import errors as facts
from tablegate.gateway.model.errors import GatewayError
from tablegate.gateway.model.expressions.predicates import Not, RowExists
from tests.adapters.tablestore.client import Refused, TableStoreService, no_throughput, row, signed
from tests.support.clock import Clock
from tests.support.examples import examples
from tests.support.running import ENTRY


def told(service: TableStoreService) -> Refused:
    """The error of the last reply."""
    error = messages.Error.FromString(service.last.body)
    return Refused(service.last.status, error.code, error.message)


# Compression


def test_a_deflated_request(service: TableStoreService) -> None:
    service.create()
    body = messages.DescribeTableRequest(table_name="t").SerializeToString()
    packed = zlib.compress(body)
    compressed = {"x_ots_request_compress_type": "deflate", "x_ots_request_compress_size": str(len(body))}
    assert service.post("DescribeTable", packed, **compressed).status == 200
    assert messages.DescribeTableResponse.FromString(service.last.body).table_meta.table_name == "t"


@pytest.mark.parametrize(
    ("body", "kind", "size"),
    [
        (b"no zlib", "deflate", "7"),
        (zlib.compress(b""), "deflate", "1"),
        (zlib.compress(b"xyz")[:-3], "deflate", "3"),
        (zlib.compress(b""), "gzip", "0"),
    ],
)
def test_requests_that_are_not_deflated(
    service: TableStoreService, body: bytes, kind: str, size: str
) -> None:
    service.post("ListTable", body, x_ots_request_compress_type=kind, x_ots_request_compress_size=size)
    assert (told(service).status, told(service).code) == (400, "OTSParameterInvalid")


def test_a_deflated_bomb(service: TableStoreService) -> None:
    packed = zlib.compress(b"\x00" * (limits.BODY_MAX_BYTES + 1))
    service.post("ListTable", packed, x_ots_request_compress_type="deflate")
    assert (told(service).status, told(service).code) == (413, "OTSRequestBodyTooLarge")


def test_a_deflated_reply(service: TableStoreService) -> None:
    service.create("t" * 200)
    reply = service.post("ListTable", b"", x_ots_response_compress_type="deflate")
    headers = dict(reply.headers)
    body = zlib.decompress(reply.body)
    assert headers["x-ots-response-compress-type"] == "deflate"
    assert headers["x-ots-response-compress-size"] == str(len(body))
    assert list(messages.ListTableResponse.FromString(body).table_names) == ["t" * 200]


# Unsupported operations


@pytest.mark.parametrize(
    "operation",
    [
        "CreateKnowledgeBase",
        "PutTimeseriesData",
        "tunnel/schedule",
        "LoadTable",
        "Nonsense",
    ],
)
def test_operations_that_are_not_offered(service: TableStoreService, operation: str) -> None:
    service.post(operation, b"\x01\x02")
    error = told(service)
    assert (error.status, error.code) == (400, "OTSParameterInvalid")
    assert error.message == f"Unsupported operation: {operation}."
    assert error.code not in errors.RETRIED


def test_time_series_and_delivery_are_refused_by_their_names(service: TableStoreService) -> None:
    """The operations of the four SDKs: OperationNames.java has all of them. ListTimeseriesTable returns an empty list."""
    names = [
        f"{verb}{noun}"
        for verbs, noun in (
            ("Create Update Delete Describe", "TimeseriesTable"),
            ("Put Get Scan", "TimeseriesData"),
            ("Query Update Delete", "TimeseriesMeta"),
            ("Split", "TimeseriesScanTask"),
            ("Create Update Delete Describe", "TimeseriesAnalyticalStore"),
            ("Create Delete", "TimeseriesLastpointIndex"),
            ("Create Update Delete Describe List", "DeliveryTask"),
            ("Create Update Describe Bind Unbind", "GlobalTable"),
        )
        for verb in verbs.split()
    ]
    for name in names:
        service.post(name, b"\x01\x02")
        error = told(service)
        assert (error.status, error.code) == (400, "OTSParameterInvalid")
        assert error.message == f"Unsupported operation: {name}."


# Errors


def test_every_error_of_the_gateway_has_words() -> None:
    made: list[GatewayError] = [
        facts.TableMissing("t"),
        facts.TableExists("t"),
        facts.TableBusy("t", "creating"),
        facts.TableBusy("t", "creating", "i"),
        facts.IndexMissing("t", "i"),
        facts.StreamMissing("t", "1"),
        facts.ConditionFailed(RowExists(), None),
        facts.BadOperand("operand"),
        facts.NumberOutOfRange("overflow"),
        facts.BadKey("missing"),
        facts.InvalidInput("other-partition"),
        facts.LimitExceeded("transaction-bytes", 1, 2),
        facts.LimitExceeded("else", 1, 2),
        facts.PartitionLocked(),
        facts.TransactionMissing(),
        facts.Throttled("t", "write"),
        facts.Busy("x"),
        facts.DatabaseFailed("x"),
        facts.CommitUnknown("x"),
        facts.PositionExpired(),
        facts.TokenReused(),
        facts.NotAllowed("x"),
        facts.NotAuthenticated("signature"),
    ]
    for error in made:
        told_error = errors.service_error_of(error)
        assert told_error.code in errors.STATUS
        assert told_error.message
    # A reply must not request a retry that cannot succeed or that could apply a write twice.
    retried = {type(error) for error in made if errors.service_error_of(error).code in errors.RETRIED}
    assert retried == {facts.TableBusy, facts.PartitionLocked, facts.Throttled, facts.Busy}


def test_an_index_under_construction_is_recognised_by_its_fact() -> None:
    text = "Disallow read index table in building base state"
    assert errors.service_error_of(facts.TableBusy("t", "creating", "i")).message == text
    assert (
        errors.service_error_of(facts.TableBusy("t", "index creating")).message == "The table is not ready."
    )


def test_failed_conditions_are_distinguished() -> None:
    missing, present = RowExists(), Not(RowExists())
    texts = [
        errors.service_error_of(facts.ConditionFailed(part, None)).message
        for part in (missing, present, Not(present))
    ]
    assert texts == [
        "Row does not exist which is expected existent",
        "Row exists which is expected nonexistent",
        "Condition check failed.",
    ]


def test_a_date_has_six_fractional_digits() -> None:
    assert replies.date_text(1_704_164_645_007) == "2024-01-02T03:04:05.007000Z"


def test_refusals_of_the_server_have_codes_of_table_store(service: TableStoreService) -> None:
    request = Request("POST", "/GetRow", (("x-ots-date", "x"),), b"")
    reply = service.dialect.refuse(request, facts.LimitExceeded("body", 1, 2))
    assert (reply.status, messages.Error.FromString(reply.body).code) == (413, "OTSRequestBodyTooLarge")
    reply = service.dialect.refuse(request, facts.Busy("x"))
    assert (reply.status, messages.Error.FromString(reply.body).code) == (503, "OTSServerBusy")
    reply = service.dialect.refuse(request, ValueError("x"))
    assert (reply.status, messages.Error.FromString(reply.body).code) == (500, "OTSInternalServerError")


def test_claims(service: TableStoreService) -> None:
    assert service.dialect.matches(Request("POST", "/GetRow", (("x-ots-date", ""),), b""))
    assert not service.dialect.matches(Request("POST", "/GetRow", (("x-amz-date", ""),), b""))


# Any bytes


@pytest.fixture(scope="module")
def fuzzed() -> Iterator[TableStoreService]:
    """One application for all examples."""
    with TableStoreService.opened(Clock()) as made:
        made.create(stream_spec=messages.StreamSpecification(enable_stream=True))
        yield made


def check(service: TableStoreService, reply_status: int) -> None:
    assert reply_status in (200, 400, 403, 404, 405, 409, 413)
    if reply_status != 200:
        assert messages.Error.FromString(service.last.body).IsInitialized()


SETTINGS = examples(300, suppress_health_check=[HealthCheck.function_scoped_fixture])


@SETTINGS
@given(operation=st.sampled_from(sorted(OPERATIONS)), body=st.binary(max_size=200))
def test_any_body_is_answered_or_refused(fuzzed: TableStoreService, operation: str, body: bytes) -> None:
    if operation not in ("CreateTable", "DeleteTable"):
        check(fuzzed, fuzzed.post(operation, body).status)


@st.composite
def spoiled(draw: st.DrawFn) -> tuple[str, bytes]:
    """A request that was good, with a few of its bytes changed, cut or added."""
    condition = messages.Condition(row_existence=messages.IGNORE)
    key, cells = row({"pk": 1}), row({"pk": 1}, {"a": 1, "s": "text", "d": 1.5})
    good = [
        ("GetRow", messages.GetRowRequest(table_name="t", primary_key=key, max_versions=1)),
        ("PutRow", messages.PutRowRequest(table_name="t", row=cells, condition=condition)),
        ("UpdateRow", messages.UpdateRowRequest(table_name="t", row_change=cells, condition=condition)),
        ("DeleteRow", messages.DeleteRowRequest(table_name="t", primary_key=key, condition=condition)),
        (
            "GetRange",
            messages.GetRangeRequest(
                table_name="t",
                direction=messages.FORWARD,
                max_versions=1,
                inclusive_start_primary_key=row({"pk": 1}),
                exclusive_end_primary_key=row({"pk": 5}),
            ),
        ),
        ("UpdateTable", messages.UpdateTableRequest(table_name="t", reserved_throughput=no_throughput())),
        ("ListStream", messages.ListStreamRequest(table_name="t")),
        ("StartLocalTransaction", messages.StartLocalTransactionRequest(table_name="nowhere", key=key)),
    ]
    operation, message = draw(st.sampled_from(good))
    data = bytearray(message.SerializeToString())
    for _ in range(draw(st.integers(1, 4))):
        place = draw(st.integers(0, max(len(data) - 1, 0)))
        match draw(st.integers(0, 2)):
            case 0 if data:
                data[place] = draw(st.integers(0, 255))
            case 1:
                del data[place:]
            case _:
                data[place:place] = draw(st.binary(max_size=3))
    return operation, bytes(data)


@SETTINGS
@given(request_=spoiled())
def test_any_spoiled_request_is_answered_or_refused(
    fuzzed: TableStoreService, request_: tuple[str, bytes]
) -> None:
    check(fuzzed, fuzzed.post(*request_).status)


@SETTINGS
@given(
    method=st.sampled_from(["GET", "POST", "PUT", "HEAD"]),
    target=st.text("/aG%?.é\x00", max_size=12).map(lambda text: "/" + text),
    headers=st.lists(
        st.tuples(
            st.sampled_from(
                [
                    "x-ots-date",
                    "x-ots-signature",
                    "x-ots-accesskeyid",
                    "x-ots-contentmd5",
                    "x-ots-signdate",
                    "x-ots-x",
                ]
            ),
            st.text(max_size=8),
        ),
        max_size=6,
    ),
)
def test_any_head_is_refused(
    fuzzed: TableStoreService, method: str, target: str, headers: list[tuple[str, str]]
) -> None:
    headers = [("x-ots-apiversion", "2015-12-31"), *headers]
    status = fuzzed.handle(Request(method, target, tuple(headers), b"")).status
    if (method, ENTRY) == ("HEAD", "wsgi"):
        assert 400 <= status < 500  # there is no body to look at
    else:
        check(fuzzed, status)


@SETTINGS
@given(name=st.sampled_from([name for name, _ in signed("ListTable", b"", 0)]), value=st.text(max_size=30))
def test_any_header_value_is_refused(fuzzed: TableStoreService, name: str, value: str) -> None:
    headers = [
        (other, value if other == name else kept) for other, kept in signed("ListTable", b"", fuzzed.clock.ms)
    ]
    check(fuzzed, fuzzed.handle(Request("POST", "/ListTable", tuple(headers), b"")).status)
