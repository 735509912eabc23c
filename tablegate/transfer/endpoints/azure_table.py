"""A table of Azure Table storage as an endpoint.

Rows have the service's property names. The mapping converts them. The service has no change stream. So `changes`
queries entities by Timestamp, with an overlap, because a write may become visible after a later one.

Parts of a table for parallel reading are ranges of PartitionKey, or of RowKey if there is one partition only. The service
reports neither counts nor split points. Keys are sampled by probes. A probe returns the first key after a given one. For
each known prefix there is a probe for each next character. The sampled keys are divided evenly. So parts differ in size, but
together they are always the whole table. Keys are ordered by UTF-16 code units.

A range is a dictionary. `partition` selects one PartitionKey. `from` (inclusive), `after` (exclusive) and `to`
(exclusive) limit the RowKey if there is a partition, else the PartitionKey.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from email.utils import parsedate_to_datetime
from typing import Any
from urllib.parse import quote

import orjson

from tablegate.adapters.azuretable import keys as azure_keys
from tablegate.adapters.azuretable import values
from tablegate.adapters.azuretable.wire import limits
from tablegate.adapters.azuretable.wire.addresses import key_predicate
from tablegate.adapters.azuretable.wire.errors import ServiceError
from tablegate.gateway.model.values.keys import Key, Position
from tablegate.gateway.model.values.rows import TICKS_PER_MS, Contents, Row
from tablegate.gateway.model.values.values import Kind, Value
from tablegate.transfer.endpoints import azure_table_client, endpoint
from tablegate.transfer.endpoints.azure_table_client import (
    Account,
    Client,
    EntityChange,
    ServiceReply,
    error_for,
)
from tablegate.transfer.endpoints.batching import (
    PATIENCE_S,
    RetryBudget,
    Sent,
    in_batches,
    require_deleted,
    write_batch,
)
from tablegate.transfer.errors import RequestRefused, SchemaChanged, TransferError

Range = dict[str, str]

_PROBES = 32
_PROBES_PER_RANGE = 8


def filter_of(bounds: Range) -> str:
    """Return the $filter of a range, "" for the whole table."""
    column = "RowKey" if "partition" in bounds else "PartitionKey"
    parts = [f"PartitionKey eq {quoted(bounds['partition'])}"] if "partition" in bounds else []
    for name, operator in (("from", "ge"), ("after", "gt"), ("to", "lt")):
        if name in bounds:
            parts.append(f"{column} {operator} {quoted(bounds[name])}")
    return " and ".join(parts)


def quoted(text: str) -> str:
    """Return a text as an OData literal."""
    return "'" + text.replace("'", "''") + "'"


FirstKey = Callable[[Range], tuple[str, str] | None]
"""Return the first key of a range, None if it is empty."""


def divide_range(count: int, first_key: FirstKey) -> list[Range]:
    """Return about `count` ranges that together are the whole table."""
    first = first_key({})
    if count <= 1 or first is None:
        return [{}]
    partition = first[0]
    if first_key({"after": partition}) is None:
        # There is one partition. The ranges on both sides belong to the table too and may get rows later.
        starts = _starts(count, lambda bounds: _second_text(first_key({"partition": partition, **bounds})))
        return [
            {"to": partition},
            *({"partition": partition, **bounds} for bounds in _between(starts)),
            {"after": partition},
        ]
    return _between(_starts(count, lambda bounds: _first_text(first_key(bounds))))


def _first_text(key: tuple[str, str] | None) -> str | None:
    return None if key is None else key[0]


def _second_text(key: tuple[str, str] | None) -> str | None:
    return None if key is None else key[1]


def _between(starts: list[str]) -> list[Range]:
    """Return the ranges between the starts, with an open one at each end."""
    bounds: list[dict[str, Any]] = []
    for low, high in zip([None, *starts], [*starts, None], strict=True):
        bounds.append(
            ({} if low is None else {"from": low}) | ({} if high is None else {"to": high}),
        )
    return bounds


def _starts(range_count: int, first: Callable[[Range], str | None]) -> list[str]:
    """Return at most `range_count` - 1 sorted keys at which ranges begin."""
    probes = _PROBES + _PROBES_PER_RANGE * range_count
    prefixes, found_keys = [""], set[str]()
    # Breadth first, so that the found keys are spread over the table.
    while prefixes and len(found_keys) < 4 * range_count and probes > 0:
        prefix, *prefixes = prefixes
        bounds: Range = {"after": prefix} if prefix else {}
        while probes > 0:
            probes -= 1
            key = first(bounds)
            if key is None or not key.startswith(prefix):
                break
            found_keys.add(key)
            if len(key) == len(prefix):  # only the empty key at the beginning of the table
                bounds = {"after": key}
                continue
            group = key[: len(prefix) + 1]
            prefixes.append(group)
            following = _next_character(group[-1])
            if following is None:
                break
            bounds = {"from": prefix + following}
    keys = sorted(found_keys, key=_utf16)[1:]  # the first range begins below the first key
    count = min(range_count, len(keys) + 1)
    return [keys[number * (len(keys) + 1) // count - 1] for number in range(1, count)]


def _utf16(text: str) -> bytes:
    return text.encode("utf-16-be", "surrogatepass")


def _next_character(character: str) -> str | None:
    """Return the next character in the order of UTF-16 code units, in which those above U+FFFF are below U+E000."""
    code = ord(character)
    if code == 0xFFFF:
        return None
    if code == 0xD7FF:
        return "\U00010000"
    if code == 0x10FFFF:
        return "\ue000"
    return chr(code + 1)


_KEY_NAMES = ("PartitionKey", "RowKey")
_OVERLAP_TICKS = 180 * 10_000_000
_NEXT_HEADERS = ("x-ms-continuation-NextPartitionKey", "x-ms-continuation-NextRowKey")
_NEXT_OPTIONS = ("NextPartitionKey", "NextRowKey")


class AzureTableEndpoint(endpoint.Endpoint):
    """One table. If `table` is "", an account for listing tables."""

    service = endpoint.Service.AZURE_TABLE
    follows = False
    unseen_changes = (
        "Azure Table has no change stream. New and changed entities are found by repeated scans for their Timestamp, and deleted "
        "ones by sweeps only"
    )
    write_rows = 1000  # batches hold one partition: more rows fill them better

    def __init__(self, table: str, account: Account, shown: str, patience_s: float = PATIENCE_S) -> None:
        self.shown = shown
        self._table = table
        self._client = Client(account, RetryBudget(patience_s, shown))
        self._reported: dict[Position, int] = {}

    # The table

    def describe(self) -> endpoint.Definition:
        self._query({}, options={"$top": "1"})
        return endpoint.Definition(self._table, endpoint.Service.AZURE_TABLE, azure_keys.OWN_SCHEMA)

    def create(self, definition: endpoint.Definition) -> list[str]:
        if not azure_keys.is_own(definition.key_schema):
            raise SchemaChanged(f"{self.shown}: the key of an Azure table must be PartitionKey and RowKey")
        try:
            self._client.send("POST", "Tables", body=orjson.dumps({"TableName": self._table}))
        except RequestRefused as refusal:
            if refusal.code == "TableAlreadyExists" or refusal.status == 409:
                return []
            raise TransferError(f"{self.shown}: the table cannot be created: {refusal.words}") from None
        notes = [f"index {index.name}: Azure tables have no indexes" for index in definition.indexes]
        rules = definition.rules
        if rules.expiry is not None:
            notes.append("rows do not expire: Azure tables have no time to live")
        if rules.stream is not None and rules.stream.enabled:
            notes.append("there is no stream: Azure tables have no streams")
        if rules.max_versions > 1:
            notes.append(f"one version of each value is kept, not {rules.max_versions}")
        return notes

    def list_tables(self) -> list[str]:
        names: list[str] = []
        options = ""
        while True:
            answer = self._client.send("GET", f"Tables{options}")
            names += [entry["TableName"] for entry in answer.json["value"]]
            token = answer.headers.get("x-ms-continuation-NextTableName")
            if not token:
                return names
            options = f"?NextTableName={quote(token, safe='')}"

    # Reading

    def segments(self, count: int) -> list[endpoint.JSON]:
        # A table of one page is not worth the probes.
        if _token(self._query({}, options={"$select": "PartitionKey,RowKey"})) is None:
            return [{}]
        return list(divide_range(count, self._first_key))

    def _first_key(self, bounds: Range) -> tuple[str, str] | None:
        token: list[str | None] | None = None
        while True:
            options = {"$top": "1", "$select": "PartitionKey,RowKey"}
            answer = self._query(bounds, token, options)
            for entity in answer.json["value"]:
                return entity["PartitionKey"], entity["RowKey"]
            token = _token(answer)
            if token is None:
                return None

    def scan(
        self, segment: endpoint.JSON, resume: endpoint.JSON | None = None
    ) -> Iterator[endpoint.ScanPage]:
        while True:
            answer = self._query(segment, resume)
            resume = _token(answer)
            yield endpoint.ScanPage.of([self._row(entity) for entity in answer.json["value"]], resume)
            if resume is None:
                return

    def _query(
        self,
        bounds: endpoint.JSON,
        token: endpoint.JSON | None = None,
        options: dict[str, str] | None = None,
        also: str = "",
    ) -> ServiceReply:
        """Return a page of entities of a range."""
        options_sent = dict(options or {})
        condition = " and ".join(part for part in (filter_of(bounds), also) if part)
        if condition:
            options_sent["$filter"] = condition
        for name, value in zip(_NEXT_OPTIONS, token or (), strict=False):
            if value is not None:
                options_sent[name] = value
        query = "&".join(f"{name}={quote(value, safe='')}" for name, value in options_sent.items())
        try:
            return self._client.send("GET", f"{self._table}()" + (f"?{query}" if query else ""))
        except RequestRefused as refusal:
            if refusal.status == 404:
                raise error_for(404, "TableNotFound", "", self.shown) from None
            raise

    def get(self, keys: Sequence[Key]) -> Sequence[endpoint.AnyRow | None]:
        return self._client.each(self._get, keys)

    def _get(self, key: Key) -> endpoint.AnyRow | None:
        try:
            return self._row(self._client.send("GET", self._entity(key.values)).json)
        except RequestRefused as refusal:
            if refusal.status == 404:
                return None
            if refusal.status == 400:  # a key that the service does not allow
                return None
            raise

    def _entity(self, key_values: Sequence[Value]) -> str:
        partition_key, row_key = key_values
        return self._table + key_predicate(partition_key.data, row_key.data)

    def _row(self, entity: dict[str, Any]) -> endpoint.AnyRow:
        """Return the row of an entity, which is JSON with metadata."""
        try:
            key = azure_keys.own_key(entity["PartitionKey"], entity["RowKey"])
        except (ServiceError, KeyError) as error:
            raise TransferError(f"{self.shown}: an entity has an invalid key: {error}") from None
        latest: dict[str, Value] = {}
        modified_at = 0
        try:
            for name, wire in entity.items():
                if "@" in name or name.startswith("odata."):
                    continue
                if name == "Timestamp":
                    ticks = values.parse_datetime(wire)
                    modified_at = 0 if ticks is None else ticks - values.UNIX_EPOCH_TICKS
                    continue
                value = values.read(wire, entity.get(name + "@odata.type"))
                if value is not None:
                    latest[name] = value
        except ServiceError as error:
            return endpoint.UnreadableRow(key, f"{name}: {error}", orjson.dumps(entity))
        return Row(key.position, Contents.of_values(latest), modified_at)

    # Writing

    def write(self, rows: Sequence[Row]) -> list[endpoint.Reject]:
        latest = {row.position: row for row in rows}  # a batch allows one change of an entity
        changes = []
        for row in latest.values():
            key = [row.latest[name] for name in _KEY_NAMES]
            changes.append((row, EntityChange(f"{self._client.url}/{self._entity(key)}", _body(row))))
        return self._write(changes)

    def delete(self, keys: Sequence[Key]) -> None:
        changes = []
        for key in {key.position: key for key in keys}.values():
            contents = Contents.of_values(dict(zip(_KEY_NAMES, key.values, strict=True)))
            change = EntityChange(f"{self._client.url}/{self._entity(key.values)}", None)
            changes.append((Row(key.position, contents, 0), change))
        require_deleted(self._write(changes), self.shown)

    def _write(self, changes: list[tuple[Row, EntityChange]]) -> list[endpoint.Reject]:
        patience = self._client.patience
        rejects_by_batch = self._client.each(
            lambda batch: write_batch(batch, self._send, patience), list(_batches(changes))
        )
        return [reject for rejects in rejects_by_batch for reject in rejects]

    def _send(self, batch: list[tuple[Row, EntityChange]]) -> Sent[EntityChange]:
        changes = [change for _, change in batch]
        if len(changes) == 1:
            self._send_one(changes[0])
        else:
            self._client.patience.run(lambda: self._send_batch(changes))
        return Sent()

    def _send_one(self, change: EntityChange) -> None:
        path = change.url.removeprefix(self._client.url + "/")
        if change.body is not None:
            self._client.send("PUT", path, body=change.body)
            return
        try:
            self._client.send("DELETE", path, {"If-Match": "*"})
        except RequestRefused as refusal:
            if refusal.status != 404:  # 404: the entity is missing. A missing table is another error
                raise

    def _send_batch(self, changes: list[EntityChange]) -> None:
        content_type, body = azure_table_client.encode_changeset(changes)
        answer = self._client.once(
            "POST", "$batch", {"Content-Type": content_type, "Accept": "application/json"}, body
        )
        failed = azure_table_client.changeset_failure(answer.body)
        if failed is not None:
            raise error_for(*failed, self.shown)

    # Following

    def capture(self) -> endpoint.JSON:
        answer = self._query({}, options={"$top": "1"})
        since = _server_ticks(answer)
        return {"since": since, "newest": since, "token": None}

    def changes(self, position: endpoint.JSON) -> endpoint.ChangedKeys:
        """Return one page of entities that were modified since a time. A cycle of pages reads the whole table."""
        since: int = position["since"]
        moment = values.timestamp_text(since - _OVERLAP_TICKS)
        answer = self._query({}, position["token"], also=f"Timestamp ge datetime'{moment}'")
        keys: list[Key] = []
        newest: int = position["newest"]
        latest = None
        for entity in answer.json["value"]:
            key = azure_keys.own_key(entity["PartitionKey"], entity["RowKey"])
            modified = values.parse_datetime(entity["Timestamp"]) or 0
            if self._reported.get(key.position) == modified:
                continue
            self._reported[key.position] = modified
            keys.append(key)
            newest = max(newest, modified)
            latest = max(modified, latest or 0)
        token = _token(answer)
        if token is None:
            since = newest
            floor = since - _OVERLAP_TICKS
            self._reported = {at: when for at, when in self._reported.items() if when >= floor}
        at_ms = None if latest is None else (latest - values.UNIX_EPOCH_TICKS) // TICKS_PER_MS
        after = {"since": since, "newest": newest, "token": token}
        return endpoint.ChangedKeys(keys, after, at_ms, token is None and not keys)

    def close(self) -> None:
        self._client.close()


def _token(answer: ServiceReply) -> list[str | None] | None:
    """Return the continuation token. None if both headers are missing."""
    token = [answer.headers.get(name) for name in _NEXT_HEADERS]
    return token if any(value is not None for value in token) else None


def _server_ticks(answer: ServiceReply) -> int:
    """Return the service's time of a reply in ticks of 100 ns since year 1."""
    try:
        seconds = parsedate_to_datetime(answer.headers.get("Date", "")).timestamp()
    except (TypeError, ValueError):
        seconds = time.time()
    return values.UNIX_EPOCH_TICKS + int(seconds) * values.TICKS_PER_SECOND


def _body(row: Row) -> bytes:
    """Return an entity as JSON.

    Types are given for kinds without a JSON type, and for doubles. An emulator takes whole doubles for integers
    (Azure/Azurite#1366).
    """
    entity: dict[str, Any] = {}
    for name, value in row.latest.items():
        if value.kind is Kind.NULL:
            continue
        kind, data = values.view(value)
        edm, write = values.SPELLINGS[kind]
        if edm is not None:
            entity[name + "@odata.type"] = edm
        entity[name] = write(data)
    return orjson.dumps(entity)


def _batches(changes: list[tuple[Row, EntityChange]]) -> Iterator[list[tuple[Row, EntityChange]]]:
    """Yield batches of changes of one partition: at most 100 changes and 4 MiB."""
    by_partition: dict[bytes, list[tuple[Row, EntityChange]]] = {}
    for entry in changes:
        by_partition.setdefault(entry[0].position.partition, []).append(entry)
    for entries in by_partition.values():
        yield from in_batches(
            entries, lambda entry: entry[1].size_bytes, limits.CHANGES_MAX, limits.BODY_MAX_BYTES, 4096
        )
