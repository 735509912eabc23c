"""Single entities: insert, get, update, merge, delete, and the two upserts.

`writer` makes the only parser of writes, used for single requests and changesets. It maps each verb to a condition and
a change. The gateway runs them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache, partial
from typing import Any, NamedTuple

import orjson

from tablegate.adapters.azuretable import keys, values
from tablegate.adapters.azuretable.call import (
    CallContext,
    OperationReply,
    count_transaction,
    find_table_now,
    known_table,
)
from tablegate.adapters.azuretable.entities import entity_renderer
from tablegate.adapters.azuretable.entities.entity_parser import ParsedEntity, parse_entity
from tablegate.adapters.azuretable.entities.entity_renderer import (
    COSMOS_LIMIT,
    STORAGE_LIMIT,
    EntityFormat,
    EntityLimit,
)
from tablegate.adapters.azuretable.flavours import Flavour
from tablegate.adapters.azuretable.keys import unspelled
from tablegate.adapters.azuretable.shared_access import Action
from tablegate.adapters.azuretable.values import view
from tablegate.adapters.azuretable.wire.addresses import Entity, EntitySet, key_predicate, quoted
from tablegate.adapters.azuretable.wire.errors import ServiceError
from tablegate.gateway.model.commands import row_commands
from tablegate.gateway.model.commands.writes import Change, Edit, Remove, Replace, Write
from tablegate.gateway.model.expressions import updates
from tablegate.gateway.model.expressions.predicates import ALWAYS, Not, Predicate, RevisionIs, RowExists
from tablegate.gateway.model.expressions.updates import PutCell, SetTo
from tablegate.gateway.model.tables.tables import Table
from tablegate.gateway.model.values import bodies
from tablegate.gateway.model.values.keys import Key
from tablegate.gateway.model.values.rows import FOREIGN_KINDS, Contents
from tablegate.gateway.model.values.values import Kind, Value, size_bytes

_EXISTS = RowExists()
_ABSENT = Not(_EXISTS)
_NO_REVISION = -1


class PreparedEntityWrite(NamedTuple):
    """A parsed write, its key in Azure's spelling, and the function that makes the reply."""

    write: Write
    keys: tuple[str, str]
    answer: Callable[[row_commands.WriteOutcome], OperationReply]


async def write(call: CallContext, resource: EntitySet | Entity) -> OperationReply:
    """Write one entity. Raises ServiceError, TableMissing, ConditionFailed.

    - POST /T: insert an entity that does not exist yet. The answer is the entity or, by the Prefer header, empty.
    - PUT, MERGE, PATCH and DELETE of /T(PartitionKey='p',RowKey='r'): replace, merge into or delete an entity. If-Match
      is the condition. Without that header PUT, MERGE and PATCH create a missing entity.
    """
    call.grant.check(action_of(call, resource), resource.table)
    table = known_table(call, resource.table) or await find_table_now(call, resource.table)
    prepared = writer(call, resource, table)(call.request.body)
    count_transaction(table, "write")
    [outcome] = await row_commands.WriteGroup((prepared.write,))
    return prepared.answer(outcome)


async def get(call: CallContext, resource: Entity) -> OperationReply:
    """GET /T(PartitionKey='p',RowKey='r'): an entity, or its properties in $select. Raises ServiceError, TableMissing."""
    call.grant.check(Action.QUERY, resource.table)
    names = selected_names(call)
    format_of = format_reader(call, names)
    table = known_table(call, resource.table) or await find_table_now(call, resource.table)
    key = keys.key_of(table.key_schema, resource.partition_key, resource.row_key)
    if key is None or not call.grant.covers(resource.partition_key, resource.row_key):
        raise ServiceError("ResourceNotFound")
    count_transaction(table, "read")
    may_be_old = call.address.secondary or call.gateway.settings.replica_reads == "all"
    entity_format = format_of(table)
    row = await row_commands.Get(
        table, key.position, may_be_old=may_be_old, visible_attributes=shown_of(names)
    )
    if row is None:
        raise ServiceError("ResourceNotFound")
    headers = [
        ("Content-Type", entity_renderer.content_type(entity_format.level)),
        ("ETag", entity_renderer.etag(row)),
    ]
    return OperationReply(200, headers, orjson.dumps(entity_format.one(row)))


def format_reader(call: CallContext, names: list[str] | None) -> Callable[[Table], EntityFormat]:
    """Return a function that makes the requested format of entities of a table.

    `names`: the selected ones. $format and Accept are parsed at once. The table may follow later. Raises ServiceError.
    """
    level = entity_renderer.level_of(call.options.get("$format") or call.request.header_map.get("accept", ""))
    if names is None:
        return lambda table: _format_of(call, table, level)
    selected, projection = dict.fromkeys(names), f"&$select={','.join(names)}"
    return lambda table: _format_of(call, table, level, selected, projection)


def selected_names(call: CallContext) -> list[str] | None:
    """Return the names in $select, in the client's order. None for all properties."""
    select = call.options.get("$select")
    names = [name for part in select.split(",") if (name := part.strip())] if select else []
    return names if names and "*" not in names else None


def _format_of(
    call: CallContext,
    table: Table,
    level: entity_renderer.MetadataLevel,
    selected: Mapping[str, None] | None = None,
    projection: str = "",
) -> EntityFormat:
    name = call.flavour.name_of(table)
    return EntityFormat(table, call.origin, call.address.account, level, selected, projection, name)


def shown_of(names: list[str] | None) -> row_commands.VisibleAttributes | None:
    """Return the attributes of selected properties by their own names. None for all."""
    return None if names is None else row_commands.VisibleNames(frozenset(map(unspelled, names)))


def action_of(call: CallContext, resource: EntitySet | Entity) -> Action:
    """Return the action that a write needs permission for."""
    if isinstance(resource, EntitySet):
        return Action.INSERT
    if call.method == "DELETE":
        return Action.DELETE
    return Action.UPDATE if call.request.header_map.get("if-match", "") else Action.UPSERT


def writer(
    call: CallContext, resource: EntitySet | Entity, table: Table
) -> Callable[[bytes], PreparedEntityWrite]:
    """Return a function that parses a permitted write from the body of its request.

    Changes of a batch that differ only in their bodies share one. Both functions raise ServiceError for errors that can
    be detected without the row.
    """
    if isinstance(resource, EntitySet):
        return _Inserter(call, table).prepare
    return partial(_prepare_update, call, resource, table)


def _prepare_update(call: CallContext, resource: Entity, table: Table, body: bytes) -> PreparedEntityWrite:
    if call.request.header_map.get("if-none-match", ""):
        raise ServiceError("InvalidInput")
    call_keys = (resource.partition_key, resource.row_key)
    if_match = call.request.header_map.get("if-match", "")
    key_names = table.key_schema.names
    if call.method == "DELETE":
        if not if_match:
            raise ServiceError("MissingRequiredHeader")
        condition = _condition(if_match)
        change: Change = Remove()
        key = keys.key_of(table.key_schema, *call_keys)
    else:
        entity = _parsed(call.flavour, body)
        if entity.has_typed_keys and not call.flavour.updates_take_typed_keys:
            raise ServiceError("InvalidInput")
        _check_same_key(entity, call_keys)
        condition = _condition(if_match) if if_match else ALWAYS
        key = keys.key_of(table.key_schema, *call_keys)
        if not if_match:
            keys.check_new_addressed_key(*call_keys)
            call.flavour.check_new_key(*call_keys)
            if key is None:
                raise ServiceError("InvalidInput")
        _check_names(entity, key_names)
        if call.method == "PUT":
            change = Replace(_contents(key_names, key, entity))
        else:
            change = _merge(table, entity.attributes, may_create=not if_match)
    if key is None:
        raise ServiceError("ResourceNotFound")
    call.grant.check_key(*call_keys)
    rule = entity_renderer.rule_of(key_names, are_counted=call.method == "PUT", limit=_limit_of(call.flavour))
    return PreparedEntityWrite(Write(table, key, change, condition, view, rule), call_keys, _answer_update)


class _Inserter:
    """A parser of inserts into one table with the same headers."""

    def __init__(self, call: CallContext, table: Table) -> None:
        level = entity_renderer.level_of(
            call.options.get("$format") or call.request.header_map.get("accept", "")
        )
        self._grant = call.grant
        self._table = table
        self._schema = table.key_schema
        self._key_names = table.key_schema.names
        self._has_own_keys = keys.is_own(table.key_schema)
        self._flavour = call.flavour
        self._format = _format_of(call, table, level)
        self._preference = preference_of(call)
        self._applied = [] if self._preference is None else [("Preference-Applied", self._preference)]
        self._root = f"{call.origin}/{quoted(call.flavour.name_of(table))}"

    def prepare(self, body: bytes) -> PreparedEntityWrite:
        """Parse one insert. Raises ServiceError."""
        entity = _parsed(self._flavour, body)
        if entity.partition_key is None or entity.row_key is None:
            raise ServiceError("PropertiesNeedValue")
        if entity.has_typed_keys:
            raise ServiceError("InvalidInput")
        call_keys = (entity.partition_key, entity.row_key)
        keys.check_new_key(*call_keys)
        self._flavour.check_new_key(*call_keys)
        key = keys.own_key(*call_keys) if self._has_own_keys else keys.key_of(self._schema, *call_keys)
        if key is None:
            raise ServiceError("InvalidInput")
        self._grant.check_key(*call_keys)
        _check_names(entity, self._key_names)
        contents = _contents(self._key_names, key, entity)
        # There is no old row with kinds to keep.
        rule = (
            None
            if entity_renderer.is_surely_small(contents)
            else entity_renderer.rule_of(self._key_names, are_counted=True, limit=_limit_of(self._flavour))
        )
        write = Write(self._table, key, Replace(contents), _ABSENT, view, rule)
        return PreparedEntityWrite(write, call_keys, partial(self._answer, call_keys))

    def _answer(self, call_keys: tuple[str, str], outcome: row_commands.WriteOutcome) -> OperationReply:
        row = outcome.new
        assert row is not None
        location = self._root + key_predicate(*call_keys)
        headers = [("ETag", entity_renderer.etag(row)), ("Location", location), *self._applied]
        if self._preference == "return-no-content":
            headers.append(("DataServiceId", location))
            return OperationReply(204, headers)
        headers.append(("Content-Type", entity_renderer.content_type(self._format.level)))
        return OperationReply(201, headers, orjson.dumps(self._format.one(row)))


def _parsed(flavour: Flavour, body: bytes) -> ParsedEntity:
    """Parse an entity by the rules of a flavour. Raises ServiceError."""
    read = values.read if flavour.has_storage_sizes else values.read_of_any_size
    entity = parse_entity(body, flavour.joined_names, read)
    if flavour.reserved_names:
        for name in entity.members:
            if name.lower() in flavour.reserved_names:
                raise ServiceError("InvalidInput", f"The property name '{name}' is reserved.")
    return entity


def _limit_of(flavour: Flavour) -> EntityLimit:
    return STORAGE_LIMIT if flavour.has_storage_sizes else COSMOS_LIMIT


def _condition(if_match: str) -> Predicate:
    if if_match == "*":
        return _EXISTS
    revision = entity_renderer.revision_of(if_match)
    return RevisionIs(_NO_REVISION if revision is None else revision)


def _check_same_key(entity: ParsedEntity, call_keys: tuple[str, str]) -> None:
    if entity.partition_key not in (None, call_keys[0]) or entity.row_key not in (None, call_keys[1]):
        raise ServiceError("InvalidInput")


def _check_names(entity: ParsedEntity, key_names: tuple[str, ...]) -> None:
    if not entity.members.keys().isdisjoint(key_names):
        raise ServiceError("PropertyNameInvalid")


def _contents(key_names: tuple[str, ...], key: Key | None, entity: ParsedEntity) -> Contents:
    """Return the contents of a row that is replaced by an entity."""
    if key is None:  # without a key the write is rejected later
        return Contents(b"{}", None, 0)
    members: dict[str, Any] = {}
    size, is_native = entity.size_bytes + _names_size_bytes(key_names), entity.is_native
    for name, value in zip(key_names, key.values, strict=True):
        kind, data = value
        if kind is Kind.TEXT and data.isascii():  # the fast path for nearly all values
            members[name] = {"S": data}
            size += len(data)
            continue
        members[name] = bodies.tagged(value)
        size += size_bytes(value)
        is_native = is_native and not bodies.is_foreign(value)
    members.update(entity.members)
    return Contents(orjson.dumps(members), None if is_native else FOREIGN_KINDS, size)


@lru_cache(maxsize=256)
def _names_size_bytes(names: tuple[str, ...]) -> int:
    return sum(len(name.encode()) for name in names)


def _merge(table: Table, attributes: dict[str, Value], may_create: bool) -> Edit:
    if table.rules.stamped:
        return Edit(tuple(PutCell(name, value) for name, value in attributes.items()), may_create)
    actions = tuple(SetTo((name,), updates.Literal(value)) for name, value in attributes.items())
    return Edit(actions, may_create)


def _answer_update(outcome: row_commands.WriteOutcome) -> OperationReply:
    return OperationReply(
        204, [("ETag", entity_renderer.etag(outcome.new))] if outcome.new is not None else []
    )


def preference_of(call: CallContext) -> str | None:
    """Return return-content or return-no-content if the Prefer header has it."""
    prefer = call.request.header_map.get("prefer", "").strip().lower()
    return prefer if prefer in ("return-content", "return-no-content") else None
