"""The framing of batches: tolerant in, exact out."""

from __future__ import annotations

import contextlib
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tablegate.adapters.azuretable.wire import multipart
from tablegate.adapters.azuretable.wire.errors import ServiceError
from tablegate.adapters.azuretable.wire.multipart import InnerBatch, InnerHead, InnerReply, InnerRequest

BODY = """--batch_1
Content-Type: multipart/mixed; boundary=changeset_2

--changeset_2
Content-Type: application/http
Content-Transfer-Encoding: binary
Content-ID: 7

POST https://acc.table.core.windows.net/people HTTP/1.1
Content-Type: application/json
Prefer: return-no-content

{"PartitionKey":"p","RowKey":"r"}
--changeset_2
Content-Type: application/http
Content-Transfer-Encoding: binary

DELETE https://acc.table.core.windows.net/people(PartitionKey='p',RowKey='a b') HTTP/1.1
If-Match: *


--changeset_2--
--batch_1--
"""
POST = InnerRequest(
    InnerHead(
        "POST",
        "https://acc.table.core.windows.net/people",
        (("content-type", "application/json"), ("prefer", "return-no-content")),
        None,
    ),
    b'{"PartitionKey":"p","RowKey":"r"}',
    "7",
)
DELETE = InnerRequest(
    InnerHead(
        "DELETE",
        "https://acc.table.core.windows.net/people(PartitionKey='p',RowKey='a b')",
        (("if-match", "*"),),
        None,
    ),
    b"",
)


def crlf(body: str) -> bytes:
    return body.replace("\n", "\r\n").encode()


def parse(body: bytes, content_type: str = "multipart/mixed; boundary=batch_1") -> InnerBatch:
    return multipart.parse(content_type, body, 100)


@pytest.mark.parametrize(
    ("content_type", "body"),
    [
        ("multipart/mixed; boundary=batch_1", crlf(BODY)),
        ("multipart/mixed; boundary=batch_1", BODY.encode()),
        ('Multipart/Mixed;charset=utf-8;Boundary="batch_1"', crlf(BODY)),
        ("multipart/mixed; boundary=batch_1; charset=utf-8", crlf(BODY)),
        ("multipart/mixed; boundary=batch_1", crlf(BODY).rstrip()),
        ("multipart/mixed; boundary=batch_1", b"preamble\r\n" + crlf(BODY) + b"epilogue"),
        ("multipart/mixed; boundary=batch_1", crlf(BODY.replace("Content-Type", "content-TYPE"))),
        ("multipart/mixed; boundary=batch_1", crlf(BODY.replace("=changeset_2", '="changeset_2"'))),
        ("multipart/mixed; boundary=batch_1", crlf(BODY.replace("--changeset_2\n", "--changeset_2  \n"))),
    ],
)
def test_a_changeset_is_parsed_to_its_requests(content_type: str, body: bytes) -> None:
    assert parse(body, content_type) == InnerBatch((POST, DELETE))


def test_the_content_id_may_stand_among_the_inner_headers() -> None:
    body = BODY.replace("Content-ID: 7\n", "").replace("Prefer:", "Content-ID: 9\nPrefer:")
    assert parse(crlf(body)).requests[0].content_id == "9"


def test_a_query_is_parsed_to_one_request() -> None:
    inner = "GET /acc/people(PartitionKey='p',RowKey='r') HTTP/1.1"
    body = f"--batch_1\nContent-Type: application/http\n\n{inner}\n\n--batch_1--"
    [request] = parse(crlf(body)).requests
    assert parse(crlf(body)).is_query
    assert (request.head.method, request.head.target) == ("GET", "/acc/people(PartitionKey='p',RowKey='r')")


def test_an_unencoded_target_is_kept() -> None:
    body = BODY.replace("'a b'", "'ä b'")
    assert parse(crlf(body)).requests[1].head.target.endswith("(PartitionKey='p',RowKey='ä b')")


@pytest.mark.parametrize(
    "body", ["--batch_1--\n", "--batch_1\nContent-Type: multipart/mixed; boundary=c\n\n--c--\n--batch_1--"]
)
def test_an_empty_batch_is_parsed_to_no_requests(body: str) -> None:
    assert parse(crlf(body)).requests == ()


def test_a_batch_is_read_up_to_its_limit() -> None:
    part = "--c\nContent-Type: application/http\n\nDELETE /acc/people HTTP/1.1\n\n\n"
    body = "--batch_1\nContent-Type: multipart/mixed; boundary=c\n\n" + part * 500 + "--c--\n--batch_1--\n"
    assert len(multipart.parse("multipart/mixed; boundary=batch_1", crlf(body), 100).requests) == 101


SECOND = "--batch_1\nContent-Type: multipart/mixed; boundary=changeset_2\n\n--changeset_2--\n--batch_1--\n"


@pytest.mark.parametrize(
    "body",
    [
        "",
        "nothing",
        "--batch_1",
        "--batch_1\n\n",
        BODY.replace("--batch_1--\n", ""),
        BODY.replace("--changeset_2--\n", ""),
        BODY.replace("--batch_1--\n", SECOND),
        BODY.replace("application/http", "text/plain"),
        BODY.replace("boundary=changeset_2", ""),
        BODY.replace("POST https", "https"),
        BODY.replace("POST https://acc.table.core.windows.net/people HTTP/1.1\n", ""),
        BODY.replace("Prefer: return-no-content", "no colon"),
        "--batch_1\nContent-Type: application/json\n\n{}\n--batch_1--",
    ],
)
def test_bad_framing_is_refused(body: str) -> None:
    with pytest.raises(ServiceError, match="InvalidInput"):
        parse(crlf(body))


@pytest.mark.parametrize("content_type", ["", "application/json", "multipart/form-data; boundary=batch_1"])
def test_other_media_types_are_refused(content_type: str) -> None:
    with pytest.raises(ServiceError, match="MediaTypeNotSupported"):
        parse(crlf(BODY), content_type)


@given(
    st.one_of(
        st.binary(), st.text("-_:batch1\r\n \"=;/'"), st.integers(0, len(BODY)).map(lambda at: BODY[:at])
    )
)
def test_any_body_is_a_batch_or_refused(body: bytes | str) -> None:
    with contextlib.suppress(ServiceError):
        parse(body if isinstance(body, bytes) else body.encode())


# Boundaries that are prefixes of others or overlap, and all text permitted around them.
_FRAGMENTS = [
    *(b"\r\n--b\r\n", b"\r\n--b--\r\n", b"\r\n--b--", b"--b\r\n", b"--b--", b"--b", b"b", b"-", b"--"),
    *(b"\n--b\n", b"\n--b--\n", b"\r\n--b \t\r\n", b"\r\n--b-- \r\n", b"\r\n--bb\r\n", b"\r\n--b-\r\n"),
    *(b"\r\n", b"\n", b"\r", b" ", b"preamble", b"A: b\r\n\r\n", b'{"a":"--b"}', b""),
]
_BODIES = st.lists(st.sampled_from(_FRAGMENTS), max_size=12).map(b"".join)
_REGULAR_BODIES = st.builds(
    lambda preamble, parts, end: preamble + b"".join([b"--b\r\n%s\r\n" % part for part in parts]) + end,
    st.sampled_from([b"", b"\r\n", b"preamble\r\n", b"\n", b"--bb\r\n"]),
    st.lists(
        st.sampled_from([b"", b"a", b"A: b\r\n\r\nc", b"\r\n", b"\r\n\r\n--c\r\n--c--\r\n"]), max_size=8
    ),
    st.sampled_from([b"--b--", b"--b--\r\n", b"--b--\r\nepilogue", b"--b--\r\n\r\n--b\r\n", b"--b", b""]),
)


def _read_tolerantly(body: bytes, delimiter: bytes, most: int) -> list[bytes] | None:
    try:
        return list(multipart._pieces(body, delimiter, most))
    except ServiceError:
        return None


@given(
    st.one_of(_BODIES, _REGULAR_BODIES, st.binary()),
    st.sampled_from([b"--b", b"--bb", b"--", b"--b--", b"--b--b", b"---", b"--b "]),
    st.integers(0, 6),
)
def test_bodies_that_are_framed_by_the_book_are_read_as_all_others(
    body: bytes, delimiter: bytes, most: int
) -> None:
    pieces = multipart._regular_pieces(body, delimiter)
    if pieces is not None:
        assert pieces[: most + 1] == _read_tolerantly(body, delimiter, most)


@pytest.mark.parametrize("preamble", [b"", b"preamble\r\n", b"\r\n"])
@pytest.mark.parametrize("end", [b"--b--", b"--b--\r\n", b"--b--\r\nepilogue"])
def test_regular_framing_is_split_by_the_fast_path(preamble: bytes, end: bytes) -> None:
    body = preamble + b"--b\r\none\r\n--b\r\n\r\n" + end
    assert multipart._regular_pieces(body, b"--b") == [b"\r\none", b"\r\n"]


def test_replies_are_framed_to_the_byte() -> None:
    answers = [
        (InnerReply(204, [("ETag", "W/1")]), "1"),
        (InnerReply(201, [("Content-Type", "application/json")], b'{"a":1}'), None),
    ]
    content_type, body = multipart.render(answers)
    found = re.fullmatch(r"multipart/mixed; boundary=(batchresponse_[0-9a-f-]{36})", content_type)
    assert found is not None
    batch = found.group(1)
    changeset = re.search(r"changesetresponse_[0-9a-f-]{36}", body.decode())
    assert changeset is not None
    expected = (
        f"--{batch}\nContent-Type: multipart/mixed; boundary={changeset.group()}\n\n"
        f"--{changeset.group()}\nContent-Type: application/http\nContent-Transfer-Encoding: binary\n\n"
        "HTTP/1.1 204 No Content\nContent-ID: 1\nETag: W/1\n\n\n"
        f"--{changeset.group()}\nContent-Type: application/http\nContent-Transfer-Encoding: binary\n\n"
        'HTTP/1.1 201 Created\nContent-Type: application/json\n\n{"a":1}\n'
        f"--{changeset.group()}--\n--{batch}--\n"
    )
    assert body == crlf(expected)


def test_the_answer_to_a_query_is_in_no_changeset() -> None:
    _, body = multipart.render([(InnerReply(200, [], b"{}"), None)], is_query=True)
    assert b"changeset" not in body
    assert b"HTTP/1.1 200 OK\r\n\r\n{}\r\n--batchresponse" in body


def test_the_answer_to_an_empty_batch_has_no_parts() -> None:
    content_type, body = multipart.render([])
    assert body == f"--{content_type.partition('=')[2]}--\r\n".encode()
