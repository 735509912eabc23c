"""A minimal dialect: JSON objects under /kv/TABLE/KEY. docs/contribute/adding-a-dialect.md explains it.

PUT /kv/TABLE creates a table. PUT, GET and DELETE of /kv/TABLE/KEY write, read and delete an object. PUT and DELETE
accept `If-Match: "ETAG"` and `If-None-Match: *`. Authentication is HTTP Basic with an Azure account and its key.
"""

from __future__ import annotations

import base64
import hmac
import logging
import re
from urllib.parse import unquote

import orjson

from tablegate.gateway.dialects.adapter import Adapter
from tablegate.gateway.dialects.dialect import Dialect
from tablegate.gateway.http.messages import Reply, Request
from tablegate.gateway.model import errors
from tablegate.gateway.model.commands.row_commands import Get, WriteGroup
from tablegate.gateway.model.commands.table_commands import CreateTable, FindTable
from tablegate.gateway.model.commands.writes import Change, Remove, Replace, Write
from tablegate.gateway.model.expressions.predicates import ALWAYS, Not, Predicate, RevisionIs, RowExists
from tablegate.gateway.model.tables.tables import Table
from tablegate.gateway.model.values import bodies
from tablegate.gateway.model.values.keys import Key, KeyColumn, KeySchema
from tablegate.gateway.model.values.rows import Contents, Row
from tablegate.gateway.model.values.values import Kind, Value
from tablegate.gateway.security.credentials import Scheme

# The dialect's numbers and names: limits.py in an adapter.
KEY_MAX_BYTES = 1024
OBJECT_MAX_BYTES = 400 * 1024
TABLE_NAME = re.compile(r"[A-Za-z0-9_.-]{3,255}")
SCHEMA = KeySchema((KeyColumn("key", Kind.TEXT),))


# What it says when it refuses: errors.py.
class ServiceError(Exception):
    """A refusal in this dialect's words: a status and a text."""


WORDS: dict[type[Exception], tuple[int, str]] = {
    errors.TableMissing: (404, "there is no such table"),
    errors.TableExists: (409, "there is such a table already"),
    errors.TableBusy: (409, "the table is being made, changed or deleted"),
    errors.PartitionLocked: (409, "the object belongs to an open transaction"),
    errors.ConditionFailed: (412, "the object is not as the condition says"),
    errors.LimitExceeded: (413, "the body is too long"),
    errors.NotAllowed: (403, "a browser's page from elsewhere may not do this"),
    errors.Busy: (503, "try again"),
    UnicodeDecodeError: (400, "the path is not UTF-8"),
}


# Between JSON and the gateway's values: values.py.
KINDS = {type(None): Kind.NULL, bool: Kind.BOOL, int: Kind.INT64, float: Kind.DOUBLE, str: Kind.TEXT}


def value_of(data: object) -> Value:
    """A member of a JSON object as a value. Raises ServiceError."""
    kind = KINDS.get(type(data))
    if kind is None or (isinstance(data, int) and data >= 1 << 63):
        raise ServiceError(400, "a member is a text, a number of 64 bits, a boolean or null")
    return Value(kind, data)


def shown(value: Value) -> object:
    """A value as JSON: plain if JSON gives it back, else exactly as it is stored, such as {"N": "1.50"}."""
    is_plain = value.kind in KINDS.values() and orjson.loads(orjson.dumps(value.data)) == value.data
    return value.data if is_plain else bodies.tagged(value)


def key_of(table: Table, key: str) -> Key:
    """A key of a table, which any dialect may have made. Raises ServiceError."""
    columns = table.key_schema.columns
    if [column.kind for column in columns] != [Kind.TEXT]:
        raise ServiceError(400, "the table's key is not one text")
    if not 1 <= len(key.encode()) <= KEY_MAX_BYTES:
        raise ServiceError(400, f"a key has 1 to {KEY_MAX_BYTES} bytes")
    return table.key_schema.key({columns[0].name: Value(Kind.TEXT, key)})


# The operations, all of them coroutines: the engine runs the commands that they await.
async def create_table(namespace: str, name: str) -> Reply:
    if not TABLE_NAME.fullmatch(name):
        raise ServiceError(400, "a table's name has 3 to 255 of A-Z, a-z, 0-9, '_', '.' and '-'")
    await CreateTable(KeyValue.name, namespace, name, SCHEMA)
    return _json(201, {"table": name})


async def put(request: Request, table: Table, key: Key) -> Reply:
    [key_name] = table.key_schema.names
    try:
        members = orjson.loads(request.body)
    except ValueError:
        members = None
    if not isinstance(members, dict) or not members.keys().isdisjoint(("", key_name)):
        raise ServiceError(400, f'the body is a JSON object without members "" and {key_name}')
    values = {name: value_of(data) for name, data in members.items()}
    contents = Contents.of_values({key_name: key.values[0], **values})
    if contents.size_bytes > OBJECT_MAX_BYTES:
        raise ServiceError(413, f"an object has at most {OBJECT_MAX_BYTES} bytes")
    return await _write(request, table, key, Replace(contents))


async def delete(request: Request, table: Table, key: Key) -> Reply:
    return await _write(request, table, key, Remove())


async def _write(request: Request, table: Table, key: Key, change: Change) -> Reply:
    """One write on the request's condition."""
    condition: Predicate = Not(RowExists()) if request.header("if-none-match") == "*" else ALWAYS
    if etag := request.header("if-match"):
        # What is no ETag of ours is that of no row.
        condition = RevisionIs(int(etag[1:-1]) if re.fullmatch('"[0-9]{1,19}"', etag) else -1)
    [outcome] = await WriteGroup((Write(table, key, change, condition),))
    return Reply(204, _etag(outcome.new))


async def get(request: Request, table: Table, key: Key) -> Reply:
    row = await Get(table, key.position)
    if row is None:
        raise ServiceError(404, "there is no object under this key")
    members = {name: shown(value) for name, value in row.latest.items() if name not in table.key_schema.names}
    return _json(200, members, *_etag(row))


OPERATIONS = {"PUT": put, "GET": get, "DELETE": delete}


def _etag(row: Row | None) -> list[tuple[str, str]]:
    return [] if row is None else [("ETag", f'"{row.modified_at}"')]


def _json(status: int, document: object, *headers: tuple[str, str]) -> Reply:
    return Reply(status, [("Content-Type", "application/json"), *headers], orjson.dumps(document))


# The steps of a request: dialect.py.
Call = tuple[Request, str, str, list[str]]
"""A request, its namespace, its table, and its key, if it has one."""


class KeyValue(Dialect):
    """Answers requests."""

    name = "key_value"
    hint = "curl -u ACCOUNT:KEY {url}/kv/TABLE/KEY"

    @staticmethod
    def matches(request: Request) -> bool:
        return request.path.startswith("/kv/")

    def operation(self, request: Request) -> str:
        return request.method if request.method in OPERATIONS else "unknown"

    def refuse(self, request: Request, error: Exception) -> Reply:
        return self.render_error(request, None, error)

    def authenticate(self, request: Request) -> str:
        """Return the namespace of the account that sends a request. Raises ServiceError for a wrong key."""
        scheme, _, given = request.header("authorization").partition(" ")
        try:
            account, _, key = base64.b64decode(given, validate=True).decode().partition(":")
        except ValueError:
            account = key = ""
        credentials = self.gateway.credentials
        credential = credentials.find(Scheme.AZURE, account) if scheme.lower() == "basic" else None
        if not credential or not any(
            hmac.compare_digest(key.encode(), s.encode()) for s in credential.secrets
        ):
            raise ServiceError(401, "an account and its key are wanted")
        return credentials.namespace(Scheme.AZURE, account)

    def parse(self, request: Request, caller: str) -> Call:
        name, *keys = unquote(request.path.removeprefix("/kv/"), errors="strict").split("/", 1)
        if request.method not in OPERATIONS or (not keys and request.method != "PUT"):
            raise ServiceError(405, "there are PUT /kv/TABLE and PUT, GET and DELETE /kv/TABLE/KEY")
        return request, caller, name, keys

    async def execute(self, call: Call) -> Reply:
        request, namespace, name, keys = call
        if not keys:
            return await create_table(namespace, name)
        table = self.gateway.engine.cached_table(namespace, name) or await FindTable(namespace, name)
        return await OPERATIONS[request.method](request, table, key_of(table, keys[0]))

    def render(self, request: Request, caller: str, answer: Reply) -> Reply:
        return answer

    def render_error(self, request: Request, caller: str | None, error: Exception) -> Reply:
        known = [words for kind, words in WORDS.items() if isinstance(error, kind)]
        status, text = error.args if isinstance(error, ServiceError) else [*known, (500, "internal error")][0]
        if status == 500:
            logging.getLogger(__name__).error("a request failed", exc_info=error)
        return _json(status, {"error": text}, *([("WWW-Authenticate", "Basic")] if status == 401 else []))


def listed(table: Table) -> tuple[str, str, str]:
    """(name, key, address) of a table of any dialect, for `tablegate tables`."""
    return table.name, ", ".join(table.key_schema.names), f"/kv/{table.name}"


# What the gateway loads, at its start (detection.py) and at the first request.
DETECTION, ADAPTER = KeyValue, Adapter(KeyValue, listed)
