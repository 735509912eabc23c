"""Files of a seed: definitions of tables, and items. The file name gives the table of the items.

    *.json                     definitions of tables
    TABLE.jsonl, TABLE.ndjson  items, one a line: DynamoDB JSON in any of the forms of export_files/line_formats.py, or Ion
    TABLE.csv                  items; the first line must name attributes with their types, such as id:S,n:N,tags:SS,more:M
    AWSDynamoDB/ID/...         a full export to S3, found by its manifest-summary.json

Any of them may be compressed (gzip, Zstandard). An existing table keeps its definition and gets the items.

A definition is a CreateTable request or a DescribeTable answer in JSON, a CloudFormation template (JSON), or a
Terraform state. It becomes CreateTable and UpdateTimeToLive requests. Members that CreateTable has are used. Others
(backups, replicas, alarms) are ignored, as a seed is for tests. Sources: AWS::DynamoDB::Table (CloudFormation template
reference); aws_dynamodb_table (Terraform AWS provider), format version 4 of the state.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping
from functools import partial
from itertools import islice
from pathlib import PurePosixPath
from typing import Any, BinaryIO, NamedTuple, cast

import orjson

from tablegate.adapters.dynamodb import dispatch
from tablegate.adapters.dynamodb.call import CallContext, find_table
from tablegate.adapters.dynamodb.export_files import line_formats, manifests, records
from tablegate.adapters.dynamodb.export_files.compression import (
    Compression,
    UnreadableFile,
    blocks,
    compression_of,
    reading,
)
from tablegate.adapters.dynamodb.operation_table import OPERATIONS
from tablegate.adapters.dynamodb.operations.items import put_write
from tablegate.adapters.dynamodb.values.values import ParsedItem, item_of
from tablegate.adapters.dynamodb.wire.auth import DEFAULT_REGION
from tablegate.adapters.dynamodb.wire.errors import ServiceError
from tablegate.adapters.dynamodb.wire.gateway_errors import service_error_of
from tablegate.adapters.dynamodb.wire.signature_claims import Caller
from tablegate.gateway.dialects.coroutines import all_of, drive
from tablegate.gateway.dialects.dialect import BadSeed, Gateway, Seed
from tablegate.gateway.model.commands.command import Command
from tablegate.gateway.model.commands.row_commands import WriteGroup
from tablegate.gateway.model.errors import GatewayError, TableMissing
from tablegate.gateway.model.values.bodies import has_at_most
from tablegate.gateway.model.values.keys import Position
from tablegate.gateway.model.values.row_lines import lines_of
from tablegate.gateway.security import gate
from tablegate.gateway.security.credentials import Scheme

# Definitions of tables


_MEMBERS = ("TableName", "AttributeDefinitions", "KeySchema", "BillingMode", "Tags")
_INDEX_MEMBERS = ("IndexName", "KeySchema", "Projection")
_CLOUDFORMATION = frozenset({"AWS::DynamoDB::Table", "AWS::DynamoDB::GlobalTable"})
_TERRAFORM = "aws_dynamodb_table"
_ON_DEMAND = "PAY_PER_REQUEST"


class SeedTable(NamedTuple):
    """The input of CreateTable, and the attribute with the expiry time. Empty if items do not expire."""

    request: dict[str, Any]
    time_to_live: str


class NoDefinition(ValueError):
    """The document defines no table. The text names the missing part."""


def tables_of(document: Any) -> Iterator[SeedTable]:
    """Yield the tables that a JSON document defines, in its order. Raises NoDefinition."""
    if isinstance(document, list):
        for inner in document:
            yield from tables_of(inner)
        return
    if not isinstance(document, dict):
        raise NoDefinition("not a JSON object")
    if isinstance(document.get("Resources"), dict):
        for name, resource in document["Resources"].items():
            if isinstance(resource, dict) and resource.get("Type") in _CLOUDFORMATION:
                yield _of_properties({"TableName": name, **resource.get("Properties", {})})
    elif isinstance(document.get("resources"), list):
        for resource in document["resources"]:
            if resource.get("type") == _TERRAFORM and resource.get("mode", "managed") == "managed":
                yield from (_of_terraform(instance["attributes"]) for instance in resource["instances"])
    else:
        yield _of_properties(document.get("Table", document))


def _of_properties(members: Mapping[str, Any]) -> SeedTable:
    """Return a table from members named as in CreateTable."""
    if not isinstance(members.get("TableName"), str) or "KeySchema" not in members:
        raise NoDefinition("a table needs a TableName (a string) and a KeySchema")
    summary = members.get("BillingModeSummary", {})
    mode = (
        members.get("BillingMode")
        or summary.get("BillingMode")
        or ("PROVISIONED" if "ProvisionedThroughput" in members else _ON_DEMAND)
    )
    request = {name: members[name] for name in _MEMBERS if members.get(name)} | {"BillingMode": mode}
    if mode != _ON_DEMAND and "ProvisionedThroughput" in members:
        request["ProvisionedThroughput"] = _throughput(members["ProvisionedThroughput"])
    for name in ("LocalSecondaryIndexes", "GlobalSecondaryIndexes"):
        if members.get(name):
            request[name] = [_index(index, mode) for index in members[name]]
    stream = members.get("StreamSpecification") or {}
    if stream.get("StreamViewType"):
        request["StreamSpecification"] = {"StreamEnabled": True, "StreamViewType": stream["StreamViewType"]}
    expiry = members.get("TimeToLiveSpecification") or {}
    return SeedTable(request, expiry.get("AttributeName", "") if expiry.get("Enabled", True) else "")


def _index(members: Mapping[str, Any], mode: str) -> dict[str, Any]:
    index = {name: members[name] for name in _INDEX_MEMBERS if name in members}
    if mode != _ON_DEMAND and "ProvisionedThroughput" in members:
        index["ProvisionedThroughput"] = _throughput(members["ProvisionedThroughput"])
    return index


def _throughput(members: Mapping[str, Any]) -> dict[str, int]:
    # Templates may have numbers as strings. Descriptions have further members.
    return {name: int(members[name]) for name in ("ReadCapacityUnits", "WriteCapacityUnits")}


def _of_terraform(attributes: Mapping[str, Any]) -> SeedTable:
    on_demand = attributes.get("billing_mode") == _ON_DEMAND

    def units(owner: Mapping[str, Any]) -> dict[str, Any]:
        if on_demand:
            return {}
        counts = {"ReadCapacityUnits": owner["read_capacity"], "WriteCapacityUnits": owner["write_capacity"]}
        return {"ProvisionedThroughput": counts}

    def index(owner: Mapping[str, Any], partition: str) -> dict[str, Any]:
        projection: dict[str, Any] = {"ProjectionType": owner.get("projection_type") or "ALL"}
        if owner.get("non_key_attributes"):
            projection["NonKeyAttributes"] = sorted(owner["non_key_attributes"])
        schema = _key_schema(partition, owner.get("range_key"))
        return {"IndexName": owner["name"], "KeySchema": schema, "Projection": projection}

    table: dict[str, Any] = {
        "TableName": attributes["name"],
        "KeySchema": _key_schema(attributes["hash_key"], attributes.get("range_key")),
        "AttributeDefinitions": [
            {"AttributeName": block["name"], "AttributeType": block["type"]}
            for block in attributes.get("attribute", ())
        ],
        "BillingMode": _ON_DEMAND if on_demand else "PROVISIONED",
        **units(attributes),
        "LocalSecondaryIndexes": [
            index(block, attributes["hash_key"]) for block in attributes.get("local_secondary_index") or ()
        ],
        "GlobalSecondaryIndexes": [
            index(block, block["hash_key"]) | units(block)
            for block in attributes.get("global_secondary_index") or ()
        ],
        "Tags": [{"Key": key, "Value": value} for key, value in (attributes.get("tags") or {}).items()],
    }
    if attributes.get("stream_enabled"):
        table["StreamSpecification"] = {"StreamViewType": attributes["stream_view_type"]}
    for block in attributes.get("ttl") or ():
        table["TimeToLiveSpecification"] = {
            "AttributeName": block.get("attribute_name", ""),
            "Enabled": bool(block.get("enabled") and block.get("attribute_name")),
        }
    return _of_properties(table)


def _key_schema(partition: str, sort: str | None) -> list[dict[str, str]]:
    keys = [{"AttributeName": partition, "KeyType": "HASH"}]
    return keys + ([{"AttributeName": sort, "KeyType": "RANGE"}] if sort else [])


# Files


_LINES = frozenset({".jsonl", ".ndjson", ".ion"})
_COMPRESSED = frozenset({".gz", ".zst"})
_ITEMS_AT_ONCE = 500
_DOCUMENT_BYTES, _DOCUMENT_NODES = 16 << 20, 1_000_000
# Types with plain values in CSV cells. Cells of other types are wire JSON.
_PLAIN_CELLS = frozenset({"S", "N", "B"})


def load_seed(gateway: Gateway, seed: Seed) -> dict[str, int]:
    """Create the tables of a seed and put its items.

    Return the number of items by table. Raises BadSeed, with the file.
    """
    account, region = seed.place or (gateway.credentials.default_account, DEFAULT_REGION)
    namespace = gateway.credentials.namespace(Scheme.AWS, account, region)
    caller = Caller("seed", account, region, namespace)
    loader = _SeedLoader(gateway, caller, seed)
    for name in sorted(seed.files):
        loader.file(name, loader.define)
    for name in sorted(seed.files):
        loader.file(name, loader.fill)
    return loader.items


class _SeedLoader:
    def __init__(self, gateway: Gateway, caller: Caller, seed: Seed) -> None:
        self._gateway = gateway
        self._caller = caller
        self._seed = seed
        self._exports = {
            str(PurePosixPath(name).parent)
            for name in seed.files
            if PurePosixPath(name).name == manifests.SUMMARY
        }
        self.items: dict[str, int] = {}

    def file(self, name: str, work: Any) -> None:
        """Process one file. Raises BadSeed, with its name."""
        try:
            work(PurePosixPath(name))
        except (
            UnreadableFile,
            NoDefinition,
            KeyError,
            TypeError,
            AttributeError,
            RecursionError,
            UnicodeDecodeError,
        ) as error:
            raise BadSeed(f"{name}: {error}") from None
        except ServiceError as error:
            raise BadSeed(f"{name}: {error.code}: {error.message}") from None
        except GatewayError as error:
            service_error = service_error_of(error, "")
            raise BadSeed(f"{name}: {service_error.code}: {service_error.message}") from None

    def define(self, path: PurePosixPath) -> None:
        """Create the tables that a file defines."""
        if _kind(path) != ".json" or self._is_of_export(path):
            return
        with self._decompressed(path) as stream:
            text = _document_of(stream)
        try:
            document = orjson.loads(text)
        except orjson.JSONDecodeError as error:
            raise UnreadableFile(f"not JSON: {error}") from None
        for table in tables_of(document):
            self._create(table)

    def _create(self, table: SeedTable) -> None:
        name = table.request["TableName"]
        self.items.setdefault(name, 0)
        try:
            self._call("CreateTable", table.request)
        except ServiceError as error:
            if error.code != "ResourceInUseException":
                raise
            return
        if table.time_to_live:
            specification = {"Enabled": True, "AttributeName": table.time_to_live}
            self._call("UpdateTimeToLive", {"TableName": name, "TimeToLiveSpecification": specification})

    def fill(self, path: PurePosixPath) -> None:
        """Put the items of a file, which replace stored items with the same keys. Within the file keys are different."""
        seen: set[Position] = set()
        if path.name == manifests.SUMMARY:
            with self._decompressed(path) as stream:
                summary = manifests.read_summary(_document_of(stream))
            if summary.is_incremental:
                raise UnreadableFile("an incremental export holds changes, not items: use a full export")
            with self._decompressed(path.parent / manifests.FILES) as stream:
                files = list(manifests.read_files(lines_of(stream, records.RECORD_BYTES)))
            for file in files:
                with self._decompressed(path.parent / "data" / PurePosixPath(file.key).name) as stream:
                    self._put(summary.table_name, _counted(_of_lines(stream), file), seen)
        elif not self._is_of_export(path) and _kind(path) in _LINES | {".csv"}:
            table = path.name.partition(".")[0] if _kind(path) in path.suffixes else path.stem
            with self._decompressed(path) as stream:
                self._put(table, _of_csv(stream) if _kind(path) == ".csv" else _of_lines(stream), seen)

    def _put(self, name: str, items: Iterator[ParsedItem], seen: set[Position]) -> None:
        self.items.setdefault(name, 0)
        positions: list[Position] = []
        while batch := list(islice(items, _ITEMS_AT_ONCE)):

            async def puts(batch: list[ParsedItem] = batch) -> None:
                call = CallContext("PutItem", {}, self._caller, self._gateway)
                try:
                    table = await find_table(call, name)
                except TableMissing:
                    raise NoDefinition(
                        f"there is no table {name}. Add a .json file with its definition to the seed"
                    ) from None
                writes = [put_write(table, item, None) for item in batch]
                positions[:] = [write.key.position for write in writes]
                _require_new(positions, seen)
                for outcome in await all_of([WriteGroup((write,)) for write in writes]):
                    if isinstance(outcome, GatewayError):
                        raise outcome

            drive(puts, self._run)
            seen.update(positions)
            self.items[name] += len(batch)

    def _call(self, operation: str, arguments: dict[str, Any]) -> None:
        checked = OPERATIONS[operation].check(arguments)
        call = CallContext(operation, checked, self._caller, self._gateway)
        try:
            drive(partial(dispatch.execute, call), self._run)
        except GatewayError as error:
            raise service_error_of(error, operation) from None

    def _run(self, commands: list[Command[Any]]) -> list[Any]:
        return gate.run(self._gateway.engine, commands, None)

    def _is_of_export(self, path: PurePosixPath) -> bool:
        return any(str(parent) in self._exports for parent in path.parents)

    def _decompressed(self, path: PurePosixPath) -> BinaryIO:
        open_file = self._seed.files.get(str(path))
        if open_file is None:
            raise UnreadableFile(f"{path} is missing")
        stream = io.BufferedReader(cast(io.RawIOBase, open_file()))
        return reading(stream, compression_of(stream.peek(4)[:4]))


def _require_new(positions: list[Position], seen: set[Position]) -> None:
    """Raise UnreadableFile if two items have one key. `seen` are the keys of the items before these."""
    batch: set[Position] = set()
    for number, position in enumerate(positions, len(seen) + 1):
        if position in seen or position in batch:
            raise UnreadableFile(f"item {number} has the key of an earlier item")
        batch.add(position)


def _kind(path: PurePosixPath) -> str:
    return PurePosixPath(path.stem).suffix if path.suffix in _COMPRESSED else path.suffix


def _counted(items: Iterator[ParsedItem], file: manifests.ManifestEntry) -> Iterator[ParsedItem]:
    """Yield the items of a data file. Raises UnreadableFile at the end if the manifest has another number."""
    count = 0
    for item in items:
        count += 1
        yield item
    if file.items is not None and count != file.items:
        raise UnreadableFile(f"{file.key} has {count} items, but {manifests.FILES} has {file.items}")


def _document_of(stream: BinaryIO) -> bytes:
    """Return a JSON text. Raises UnreadableFile if it is too long, or would take much memory when it is parsed."""
    found, size = [], 0
    for block in blocks(stream, Compression.NONE):
        found.append(block)
        size += len(block)
        if size > _DOCUMENT_BYTES:
            break
    text = b"".join(found)
    if len(text) > _DOCUMENT_BYTES or not has_at_most(_DOCUMENT_NODES, text):
        raise UnreadableFile(
            f"it is too long: a document has at most {_DOCUMENT_BYTES >> 20} MiB and {_DOCUMENT_NODES:,} values"
        )
    return text


def _of_lines(stream: BinaryIO) -> Iterator[ParsedItem]:
    form: line_formats.LineFormat | None = None
    for number, line in enumerate(lines_of(stream, records.RECORD_BYTES), 1):
        if not line.strip():
            continue
        try:
            if records.has_too_many_values(line):
                raise UnreadableFile(records.TOO_MANY_VALUES)
            form = form or line_formats.form_of(line)
            yield line_formats.read_item(line, form)
        except UnreadableFile as error:
            raise UnreadableFile(f"line {number}: {error}") from None


def _of_csv(stream: BinaryIO) -> Iterator[ParsedItem]:
    rows = _csv_rows(stream)
    columns = [name.rpartition(":") for name in next(rows, [])]
    if not columns or any(not name or not kind for name, _, kind in columns):
        raise UnreadableFile("the first line must name attributes with their types, such as id:S,n:N")
    if len({name for name, _, _ in columns}) < len(columns):
        raise UnreadableFile("the first line names an attribute twice")
    for number, row in enumerate(rows, 2):
        if len(row) != len(columns):
            raise UnreadableFile(f"row {number} has {len(row)} cells, but the first line has {len(columns)}")
        wire = {
            name: _cell(kind, cell, number)
            for (name, _, kind), cell in zip(columns, row, strict=True)
            if cell
        }
        try:
            yield item_of(wire)
        except ServiceError as error:
            raise UnreadableFile(f"row {number}: {error.message}") from None


def _csv_rows(stream: BinaryIO) -> Iterator[list[str]]:
    """Yield the cells of each record. Raises UnreadableFile."""
    found = filter(None, records.csv_records(blocks(stream, Compression.NONE), ","))
    for number, record in enumerate(found, 1):
        try:
            [cells] = csv.reader(record, strict=True)
        except csv.Error as error:
            raise UnreadableFile(f"row {number}: {error}") from None
        yield cells


def _cell(kind: str, cell: str, number: int) -> Mapping[str, Any]:
    """Return the attribute value of a cell on the wire.

    An empty cell is absent, so a CSV file cannot hold an empty string.
    """
    if kind in _PLAIN_CELLS:
        return {kind: cell}
    try:
        return {kind: orjson.loads(cell.lower() if kind in ("BOOL", "NULL") else cell)}
    except orjson.JSONDecodeError:
        raise UnreadableFile(f"row {number}: {cell[:64]!r} is not JSON, which type {kind} requires") from None
