"""Refusals are cheap: entities, batches and documents with very many small parts, long queries and heads.

Earlier, each of a list of objects, a long filter or many null properties took 0.3 to 7 s for each 10 MB. A request line
of 80 KB of blanks in a batch took 32 s.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable

import orjson
import pytest

from tablegate.adapters.azuretable.call import options_of
from tablegate.adapters.azuretable.wire import limits, multipart
from tablegate.adapters.azuretable.wire.errors import ServiceError
from tablegate.gateway.http.messages import Reply, Request
from tests.adapters.azuretable import wasteful_requests
from tests.adapters.azuretable.client import AzureTableService
from tests.adapters.azuretable.wasteful_requests import Wasteful
from tests.support import refusal_costs

pytestmark = pytest.mark.extended

BODY_BYTES = 2_000_000
DOCUMENT_BYTES = 60_000  # a longer one is refused for its length alone
HEAD_BYTES = 120_000  # as much as the server takes

ENTITIES = {
    "POST many nulls",
    "POST many typed nulls",
    "POST many odata members",
    "POST many properties",
    "POST many equal properties",
    "POST many escaped nulls",
    "POST many large numbers",
    "POST many objects",
    "POST a list",
    "POST a list of lists",
    "POST a list of objects",
    "POST deep lists",
    "POST backslashes",
    "POST list outside",
    "POST a long Int64",
    "POST a bad Binary",
    "POST a long table name",
}
BATCHES = {
    "POST many empty parts",
    "POST many empty parts outside, no end",
    "POST many changes",
    "POST many delimiters in a line",
    "POST many delimiters and more, no end",
    "POST a change with a long blank at the end",
    "POST a change with a long headers",
    "POST a change with a long target of bad escapes",
    "POST a change with a long options",
    "POST a change with a long HTTP in a line",
    "POST a query with a long filter of ands",
    "POST a query with a long option",
    "POST a part with long with_number headers",
    "POST line breaks",
}
DOCUMENTS = {
    "PUT policies of policies",
    "PUT policies of nested elements",
    "PUT properties of rules",
    "PUT properties of origins",
    "PUT policies of declared entities",
    "PUT policies of declared entities in UTF-16",
}
HEADS = {
    "GET $filter of short ands",
    "GET $filter of parentheses",
    "GET $filter of arguments",
    "GET $filter of groups",
    "GET $filter of texts",
    "GET query of $select and a bad $top",
    "GET query of options",
    "GET query of $orderby",
    "GET address of quotes",
    "GET address of parentheses",
    "DELETE headers: with_number",
    "DELETE headers: bearer token",
}


def read(body: bytes) -> None:
    with contextlib.suppress(orjson.JSONDecodeError):
        orjson.loads(body)


def problems(
    service: AzureTableService, requests: Iterable[Wasteful], names: set[str] | None = None
) -> dict[str, str]:
    """Return the problems of refusals by `VERB name`, for all requests or for those named."""
    wrong: dict[str, str] = {}
    seen = set()
    for each in requests:
        label = f"{each.method} {each.name}"
        if names is not None and label not in names:
            continue
        seen.add(label)
        request = service.request(each.method, each.path, each.body, each.headers)
        head = sum(len(name) + len(value) for name, value in request.headers)
        found = refusal_costs.problem(
            len(each.path) + head + len(each.body),
            lambda body=each.body: read(body),  # type: ignore[misc]
            lambda request=request: service.handle(request),  # type: ignore[misc]
        )
        if found is not None:
            wrong[label] = found
    assert names is None or seen == names
    return wrong


@pytest.mark.parametrize(
    ("requests", "names"),
    [
        # The general reader makes a pair of each member, and takes longer than a refusal may.
        pytest.param(wasteful_requests.entities(BODY_BYTES), ENTITIES, id="entities"),
        pytest.param(wasteful_requests.batches(BODY_BYTES), BATCHES, id="batches"),
        pytest.param(wasteful_requests.documents(DOCUMENT_BYTES), DOCUMENTS, id="documents"),
        pytest.param(wasteful_requests.heads(HEAD_BYTES), HEADS, id="heads"),
    ],
)
def test_refusals_cost_little(
    service: AzureTableService, requests: Iterable[Wasteful], names: set[str]
) -> None:
    service.create("things")
    service.insert("things", "p", "r")
    assert problems(service, requests, names) == {}


def test_the_measure_finds_wasteful_requests(
    service: AzureTableService, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A refusal that looks at each byte in Python costs more than it may, on each version of Python."""
    handle = service.handle

    def wasteful(request: Request) -> Reply:
        for _ in range(20):
            sum(byte > 0 for byte in request.body)
        return handle(request)

    monkeypatch.setattr(service, "handle", wasteful)
    size_bytes = 500_000
    value = wasteful_requests.many('"a#":{}', size_bytes, ",")
    body = f'{{"PartitionKey":"p","RowKey":"r",{value}}}'.encode()
    [found] = problems(service, [Wasteful("many objects", "POST", "/things", body)]).values()
    assert found.startswith("took ")


def change(head: str) -> tuple[str, bytes]:
    """A changeset of one change with a head."""
    frame = "--b\r\nContent-Type: multipart/mixed; boundary=c\r\n\r\n--c\r\nContent-Type: application/http\r\n\r\n"
    return "multipart/mixed; boundary=b", f"{frame}{head}\r\n\r\n{{}}\r\n--c--\r\n--b--\r\n".encode()


def parsed(head: str) -> multipart.InnerHead | None:
    """The head of the one change, None where it is refused."""
    with contextlib.suppress(ServiceError):
        [request] = multipart.parse(*change(head), limits.CHANGES_MAX).requests
        return request.head
    return None


def test_heads_of_changes_are_bounded() -> None:
    """Both sides. The longest keys that the service takes are 9,216 characters when they are encoded."""
    line = "POST /things HTTP/1.1\r\nA: "
    room = limits.CHANGE_HEAD_MAX_BYTES - len(line)
    assert parsed(line + "x" * room) is not None
    assert parsed(line + "x" * (room + 1)) is None
    headers = "\r\n".join(["POST /things HTTP/1.1", *["a: b"] * limits.PART_HEADERS_MAX])
    assert parsed(headers + "\r\na: b") is not None
    assert parsed(headers + "\r\na: b\r\na: b") is None


@pytest.mark.parametrize(
    ("line", "target"),
    [
        ("POST /a HTTP/1.1", "/a"),
        ("POST \t /a \t HTTP/1.1 \t", "/a"),
        ("POST /a", "/a"),
        ("POST /a b HTTP/1.1", "/a b"),
        ("POST /a HTTP/1.1 HTTP/1.1", "/a HTTP/1.1"),
        ("POST HTTP/1.1", "HTTP/1.1"),
        ("POST /aHTTP/1.1", "/aHTTP/1.1"),
        ("POST /a HTTP/1.x", "/a HTTP/1.x"),
        ("POST", None),
        ("POST ", None),
        (" POST /a", None),
    ],
)
def test_request_lines(line: str, target: str | None) -> None:
    head = parsed(line)
    assert (None if head is None else head.target) == target


def test_options_are_counted() -> None:
    most = limits.OPTIONS_MAX
    assert len(options_of("&".join(f"a{number}=1" for number in range(most)))) == most
    with pytest.raises(ServiceError, match="InvalidUri"):
        options_of("&".join(f"a{number}=1" for number in range(most + 1)))


def test_seeming_delimiters_are_counted() -> None:
    """Both sides: a text that has the boundary in it, in a batch of LF."""

    def batch(count: int) -> bytes:
        return f"--b\nContent-Type: application/http\n\nGET /a HTTP/1.1\nA: {'x--b' * count}\n\n\n--b--\n".encode()

    most = limits.SEEMING_DELIMITERS_MAX
    assert multipart.parse("multipart/mixed; boundary=b", batch(most), 100).is_query
    with pytest.raises(ServiceError, match="InvalidInput"):
        multipart.parse("multipart/mixed; boundary=b", batch(most + 1), 100)
