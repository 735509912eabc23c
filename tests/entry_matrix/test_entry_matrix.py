"""A generated table of entries x operations x callers: the answer, the audit line, and no change after a refusal.

Entries are the server's socket and a WSGI server, for the three dialects, the control API and the console. Jobs and the
command line are in test_entry_matrix_of_work.py. Operations come from the code's tables of operations and routes, so a
new one without a cell fails.

The quick form has every operation of every entry with five callers. One of them has credentials that are derived from a
token: temporary keys, signatures by a user delegation key, or a session of the console. `make soak` adds callers with a
wrong secret and with grants on another table, absent tables, and PostgreSQL.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

from tablegate.adapters.azuretable.wire.errors import REFUSALS as OF_AZURE
from tablegate.adapters.dynamodb.wire.errors import REFUSALS as OF_DYNAMODB
from tablegate.adapters.tablestore.wire.errors import REFUSALS as OF_TABLE_STORE
from tablegate.adapters.tablestore.wire.protocol import table_store_pb2 as messages
from tablegate.gateway.app import application_of
from tablegate.gateway.console.searches import place_of
from tablegate.gateway.console.sign_in import COOKIE, SignIn
from tablegate.gateway.control.access import CONSOLE
from tablegate.gateway.http.messages import Reply, Request
from tablegate.gateway.model.values.keys import Position
from tests.conftest import new_database
from tests.entry_matrix.requests import KNOWN, UNSIGNED, WRONG_SECRET, Caller, Derived, Row, rows
from tests.entry_matrix.servers import ELSEWHERE, ENTRIES, MEMBER, NONE, OVER, Matrix
from tests.gateway.security.named_requests import Handles, furnish
from tests.support.capabilities import INSTALLED
from tests.support.soak import minutes_long

FORBIDDEN, ABSENT = "forbidden", "absentish"  # of one length, for limits of sizes
REFUSALS = OF_DYNAMODB | OF_AZURE | OF_TABLE_STORE
THROTTLED = {"RequestLimitExceeded", "ThrottlingException", "ServerBusy", "OTSServerBusy"}
COLUMNS = (UNSIGNED, NONE, OVER)
ALL_COLUMNS = (UNSIGNED, WRONG_SECRET, NONE, ELSEWHERE, OVER)
NOT_DONE = {
    **dict.fromkeys(  # the tunnel does not exist
        (
            f"tablestore tunnel/{name}"
            for name in (
                "describe",
                "delete",
                "getrpo",
                "connect",
                "heartbeat",
                "shutdown",
                "getcheckpoint",
                "checkpoint",
                "readrecords",
            )
        ),
        "OTSParameterInvalid",
    ),
    "dynamodb SearchVectors": "ValidationException",  # there is no vector index
    "dynamodb DeleteBackup": "BackupInUseException",  # no background work copies it here
    "dynamodb RestoreTableFromBackup": "TableInUseException",  # RestoreTableToPointInTime has begun to make the table
    "dynamodb DescribeImport": "ImportNotFoundException",  # the table was not imported
    "dynamodb DescribeBulkOperation": "ResourceNotFoundException",
    "dynamodb CancelBulkOperation": "ResourceNotFoundException",
    "dynamodb DescribeGlobalTable": "GlobalTableNotFoundException",  # the table has no replicas of 2017
    "dynamodb DescribeGlobalTableSettings": "GlobalTableNotFoundException",
    "dynamodb UpdateGlobalTableSettings": "GlobalTableNotFoundException",
    "dynamodb CreateGlobalTable": "ValidationException",
    "dynamodb UpdateGlobalTable": "ValidationException",
    "dynamodb DisableKinesisStreamingDestination": "ValidationException",  # nothing is delivered
    "dynamodb UpdateKinesisStreamingDestination": "ValidationException",
    "dynamodb DescribeTableReplicaAutoScaling": "ResourceNotFoundException",  # the table has no replicas
    "dynamodb UpdateTableReplicaAutoScaling": "ResourceNotFoundException",
    "dynamodb GetResourcePolicy": "PolicyNotFoundException",
    "dynamodb PutResourcePolicy": "ValidationException",  # the document is empty
    "azuretable POST EntitySet": "EntityAlreadyExists",
    "azuretable GET Service?stats": "InvalidQueryParameterValue",  # of the secondary only
    "tablestore DeleteDefinedColumn": "OTSObjectNotExist",
    "tablestore CreateIndex": "OTSParameterInvalid",
    "tablestore StartLocalTransaction": "OTSParameterInvalid",  # of a table with a stream
    "tablestore CommitTransaction": "OTSParameterInvalid",
    "tablestore AbortTransaction": "OTSParameterInvalid",
    "tablestore GetStreamRecord": "OTSTrimmedDataAccess",
    "tablestore DescribeSearchIndex": "OTSMetaNotMatch",
    "tablestore UpdateSearchIndex": "OTSMetaNotMatch",
    "tablestore DeleteSearchIndex": "OTSMetaNotMatch",
    "tablestore Search": "OTSMetaNotMatch",
    "tablestore ComputeSplits": "OTSMetaNotMatch",
    "tablestore ParallelScan": "OTSMetaNotMatch",
    "tablestore UpdateRow": "OTSParameterInvalid",  # of no column
}
"""Operations that the engine, or the check of their input, refuses even to a caller with all grants."""


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=[minutes_long, pytest.mark.soak])])
def matrix(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Matrix]:
    with new_database(request, tmp_path) as url:
        made = Matrix(url, tmp_path)
        with made.serving():
            yield made


class Cells:
    """The cells of one entry, and their errors. `asked` is their number."""

    def __init__(self, matrix: Matrix, entry: str) -> None:
        self.matrix = matrix
        self.entry = entry
        self.asked = 0
        self.wrong: dict[tuple[str, ...], Any] = {}

    def refused(self, row: Row, caller: str, has: Handles) -> None:
        """Check a cell with a refused request, or with an answer without a change."""
        before = self.matrix.contents()
        reply, lines = self.of(row, caller, FORBIDDEN, has)
        self._check(row, caller, FORBIDDEN, reply, lines)
        if self.matrix.contents() != before:
            self.wrong[row.id, caller, "contents"] = "changed"

    def all_refused(self, caller: Derived, has: Handles) -> None:
        """Check the cells of a caller that is refused everything. The contents are compared once, after all of them."""
        before = self.matrix.contents()
        for row in rows():
            reply, lines = self.of(row, caller, FORBIDDEN, has)
            self._check(row, caller.name, FORBIDDEN, reply, lines)
        if self.matrix.contents() != before:
            self.wrong[caller.name, "contents"] = "changed"

    def granted(self, row: Row) -> None:
        """Check a cell of a caller with all grants, on a separate table."""
        table = f"orders{self.matrix.next_number()}"
        has = Handles() if row.makes_table else furnish(self.matrix.strict, table)
        reply, lines = self.of(row, KNOWN, table, has)
        self._check(row, KNOWN, table, reply, lines)

    def alike(self, row: Row, caller: str, has: Handles) -> None:
        """Check that the cells of a forbidden and an absent table are equal."""
        of_forbidden, its_lines = self.of(row, caller, FORBIDDEN, has)
        of_absent, lines = self.of(row, caller, ABSENT, has)
        expected = [
            {**line, "tables": [name.replace(ABSENT, FORBIDDEN) for name in line["tables"]]} for line in lines
        ]
        if [_settled(line) for line in its_lines] != [_settled(line) for line in expected]:
            self.wrong[row.id, caller, "absent"] = its_lines, lines
        same = of_absent.body.replace(ABSENT.encode(), FORBIDDEN.encode())
        if (of_forbidden.status, len(of_forbidden.body)) != (of_absent.status, len(same)):
            self.wrong[row.id, caller, "reply to absent"] = of_forbidden, of_absent

    def of(self, row: Row, caller: Caller, table: str, has: Handles) -> tuple[Reply, list[dict[str, Any]]]:
        self.asked += 1
        return self.matrix.ask(self.entry, row.request(caller, table, has))

    def _check(self, row: Row, caller: str, table: str, reply: Reply, lines: list[dict[str, Any]]) -> None:
        code = code_of(row.dialect, reply)
        wanted = {KNOWN: row.kind.value, OVER: "throttled"}.get(caller, "refusal")
        told = [
            (line["event"], line["who"], line["from"], line["dialect"], line["operation"], line["result"])
            for line in lines
        ]
        who = caller if caller != WRONG_SECRET else KNOWN
        if caller == UNSIGNED and row.dialect == "azuretable":
            who = KNOWN  # the account of the address
        result = "409" if row.operation == "POST Batch" and reply.status == 202 else code or reply.status
        expected = [(wanted, who, "127.0.0.1", row.dialect, row.told, result)]
        if row.operation == "BatchExecuteStatement" and caller in (
            NONE,
            ELSEWHERE,
            MEMBER.grantee,
        ):  # judges each statement
            expected = [
                (event, who, "127.0.0.1", row.dialect, row.told, said)
                for event, said in (("write", 200), ("refusal", "AccessDenied"))
            ]
        elif outcome(reply, code) != {"refusal": "refused", "throttled": "throttled"}.get(wanted, "answered"):
            self.wrong[row.id, caller, "reply"] = reply.status, code
        if caller == KNOWN and code != NOT_DONE.get(row.id, ""):
            self.wrong[row.id, caller, "error"] = reply
        if told != expected:
            self.wrong[row.id, caller, "line"] = told, expected
        is_proven = caller in (KNOWN, NONE, ELSEWHERE, OVER, MEMBER.grantee)
        if is_proven and row.names_table and not all(table in line["tables"] for line in lines):
            self.wrong[row.id, caller, "tables"] = lines


def outcome(reply: Reply, code: str) -> str:
    if code in REFUSALS or reply.status in (401, 403) or b"x-ots-accesskeyid" in reply.body:
        return "refused"
    return "throttled" if code in THROTTLED or reply.status == 429 else "answered"


def code_of(dialect: str, reply: Reply) -> str:
    """Return the code of an error reply, or "" for an answer."""
    if reply.status < 400:
        return ""
    match dialect:
        case "dynamodb":
            return str(json.loads(reply.body)["__type"]).rpartition("#")[2]
        case "azuretable":
            return next(value for name, value in reply.headers if name.lower() == "x-ms-error-code")
    return messages.Error.FromString(reply.body).code


def _settled(line: dict[str, Any]) -> dict[str, Any]:
    """A line without what differs from request to request."""
    return {name: value for name, value in line.items() if name not in ("time", "request_id", "keys")}


@pytest.fixture
def has(matrix: Matrix) -> Handles:
    """Return the table that callers without grants request."""
    return furnish(matrix.strict, FORBIDDEN)


@pytest.mark.parametrize("entry", ENTRIES)
def test_operations_of_the_dialects(matrix: Matrix, has: Handles, entry: str) -> None:
    cells = Cells(matrix, entry)
    for row in rows():
        for caller in COLUMNS:
            cells.refused(row, caller, has)
    cells.all_refused(matrix.derived(MEMBER), has)
    for row in rows():
        cells.granted(row)
    assert cells.wrong == {}
    assert cells.asked == 5 * len([*rows()])


@minutes_long
@pytest.mark.soak
@pytest.mark.parametrize("entry", ENTRIES)
def test_more_callers_and_absent_tables_are_refused_alike(matrix: Matrix, has: Handles, entry: str) -> None:
    """Forbidden and absent are answered alike, and leave the same lines."""
    cells = Cells(matrix, entry)
    for row in rows():
        cells.refused(row, WRONG_SECRET, has)
        if row.names_table:
            cells.refused(row, ELSEWHERE, has)
            for caller in (NONE, ELSEWHERE, OVER):
                cells.alike(row, caller, has)
    assert cells.wrong == {}
    assert cells.asked > 700


# The control API


Told = tuple[str, str, str, Any]


def told(lines: list[dict[str, Any]]) -> list[Told]:
    """Return (event, caller, operation, result) for records of the gateway itself."""
    assert {line["dialect"] for line in lines} <= {"gateway"}
    return [(line["event"], line["who"], line["operation"], line["result"]) for line in lines]


@pytest.mark.parametrize("entry", ENTRIES)
def test_routes_of_the_control_api(matrix: Matrix, has: Handles, entry: str) -> None:
    """Its administrator has no quotas. A credential's signature is no token."""
    of = application_of(matrix.app)
    paths = of.control_routes().paths
    wrong: dict[tuple[str, ...], Any] = {}
    for token in ("Bearer the token", "", "Bearer no", "AWS4-HMAC-SHA256 Credential=full"):
        for method, path in paths:
            target = f"/_tablegate{path.replace('<', '').replace('>', '')}"
            headers = (("host", "localhost"), *((("authorization", token),) if token else ()))
            before = matrix.contents()
            reply, lines = matrix.ask(entry, Request(method, target, headers, b""))
            kind = "request" if method == "GET" else "definition"
            event, who = (kind, "administrator") if token == "Bearer the token" else ("refusal", "")
            # Wrong tokens are limited by address.
            is_right = reply.status < 500 if event == kind else reply.status in (403, 429)
            expected = [(event, who, f"{method} {target}", reply.status)]
            is_changed = event == "refusal" and matrix.contents() != before
            if told(lines) != expected or not is_right or is_changed:
                wrong[token, method, path] = reply, lines, is_changed
    assert wrong == {}


# The console

PAGES = (
    "/", "/table", "/rows", "/row", "/changes", "/changes.json", "/grants", "/metrics", "/chart", "/jobs", "/row/new",
    "/row/edit", "/rows/bulk", "/difference", "/statement", "/settings", "/tables/new", "/backups", "/transfer",
    "/export", "/rights", "/credentials", "/quotas", "/audit", "/health", *(["/search"] if "search" in INSTALLED else []),
)  # fmt: skip
FORMS = ("/row/put", "/row/delete", "/rows/bulk", "/jobs/cancel", "/settings/change", "/tables/create",
    "/backups/change", "/import", "/grants/change", "/credentials/change", "/quotas/change",
)  # fmt: skip
OWN = ("/", "/grants", "/metrics", "/jobs", "/jobs/cancel", "/backups")
"""Lists, which have what the caller may see, and the end of a job. No job is named here."""
OF_ADMINISTRATOR = (
    "/rights", "/credentials", "/quotas", "/audit", "/health", "/grants/change", "/credentials/change", "/quotas/change",
)  # fmt: skip
"""Pages and forms that a credential may not use, whatever its grants are."""
INCOMPLETE = ("/difference", "/rows/bulk", "/settings/change", "/backups/change", "/tables/create")
"""Pages and forms that need more than these requests have. test_administration.py sends them whole."""
WITHOUT_TABLE = ("/tables/new", "/tables/create", "/backups/change")
"""Pages and forms about no table that is there. They say that nothing is possible, with or without a table of that name."""
SIGN_IN = ("/sign-in", "/sign-in/issuer", "/sign-in/issuer/return", "/sign-out")
"""Pages for visitors without a caller: tests/gateway/console/test_sign_in.py and test_oidc_sign_in.py."""
FORGED = "forged cookie"


@pytest.mark.parametrize("entry", ENTRIES)
def test_pages_and_forms_of_the_console(matrix: Matrix, has: Handles, entry: str) -> None:
    rules = {str(rule) for rule in matrix.app.url_map.iter_rules() if rule.endpoint.startswith("console.")}
    known = {f"{CONSOLE}{path}" for path in (*PAGES, *FORMS, *SIGN_IN)}
    rules = {rule for rule in rules if "static" not in rule and "<path:rest>" not in rule}
    assert rules == known
    cookies = {
        caller: SignIn(matrix.gateway).cookie_of(caller, "secret", "127.0.0.1") for caller in VISITORS[:4]
    }
    cookies |= {MEMBER.grantee: SignIn(matrix.gateway).cookie_of_identity(MEMBER)}
    cookies |= {UNSIGNED: "", FORGED: f"{cookies[KNOWN]}x"}
    place = place_of(position(matrix))
    wrong: dict[tuple[str, str, str], Any] = {}
    for caller, cookie in cookies.items():
        for method, path in (*(("GET", path) for path in PAGES), *(("POST", path) for path in FORMS)):
            row = '{"pk": {"S": "c"}, "sk": {"S": "d"}}'
            given = {
                "namespace": "shared", "name": FORBIDDEN, "at": place, "row": row, "lines": row, "id": "1", "chart": "units",
            }  # fmt: skip
            if path == "/row/put":
                del given["at"]  # a new row
            query = urlencode(given)
            headers = (("host", "localhost"), ("cookie", f"{COOKIE}={cookie}"), FORM_TYPE)
            target, body = (path, query.encode()) if method == "POST" else (f"{path}?{query}", b"")
            before = matrix.contents()
            reply, lines = matrix.ask(entry, Request(method, f"{CONSOLE}{target}", headers, body))
            status, event = of_console(caller, method, path)
            who = caller if caller in VISITORS else ""
            operation = (
                "CreateTable"
                if path == "/tables/create" and caller in VISITORS and caller != OVER
                else f"{method} {CONSOLE}{path}"
            )
            expected = [(event, who, operation, reply.status)]
            is_changed = matrix.contents() != before
            may_change = caller == KNOWN and method == "POST"
            if told(lines) != expected or reply.status != status or (is_changed and not may_change):
                wrong[method, path, caller] = reply.status, status, told(lines), expected, is_changed
    assert wrong == {}


VISITORS = (NONE, ELSEWHERE, OVER, KNOWN, MEMBER.grantee)
FORM_TYPE = ("content-type", "application/x-www-form-urlencoded")


def of_console(caller: str, method: str, path: str) -> tuple[int, str]:
    """(status, event) of a page or form of the console."""
    is_form = method == "POST"
    caller = NONE if caller == MEMBER.grantee else caller
    kind = "definition" if path == "/tables/create" else "write" if is_form else "request"
    if caller == OVER:
        return 429, "throttled"
    if caller in (NONE, ELSEWHERE, KNOWN) and path in OF_ADMINISTRATOR:
        return 403, "refusal"
    if caller == NONE and path == "/tables/create":
        return 403, "refusal"
    if caller == ELSEWHERE and path == "/tables/new":
        return 200, kind  # it may create other tables
    if caller in (NONE, ELSEWHERE) and path in WITHOUT_TABLE:
        return 400, kind
    if caller == KNOWN and path in INCOMPLETE:
        return 400, kind
    if caller in (NONE, ELSEWHERE):
        if path in OWN:
            return (303 if is_form else 200), kind
        return 403, "refusal"
    if caller == KNOWN:
        return (303 if is_form else 200), kind
    return 303, "refusal" if is_form else "request"  # to the sign-in form


def position(matrix: Matrix) -> Position:
    """The position of the row that is there."""
    with matrix.opened.store.read() as session:
        [found] = session.query("SELECT partition, sort FROM rows")
    return Position(bytes(found[0]), bytes(found[1]))
