"""Single entities: insert, get, update, merge, delete, and the two upserts.

`prepare` is the one reader of writes: single requests and changesets both come here. It knows which condition and which
change each verb means; what a change does is the gateway's.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from adapters.azuretable import keys, payloads
from adapters.azuretable.addresses import Entity, EntitySet, key_predicate
from adapters.azuretable.calls import Answer, Call, find_table
from adapters.azuretable.errors import ServiceError
from adapters.azuretable.payloads import Sent, Shape
from adapters.azuretable.shared_access import Action
from adapters.azuretable.values import view
from gateway.engine.engine import one
from gateway.model import updates
from gateway.model.commands import Exchange, Get, Outcome, WriteGroup
from gateway.model.keys import Key
from gateway.model.predicates import ALWAYS, Not, Predicate, RevisionIs, RowExists
from gateway.model.rows import Contents, Row
from gateway.model.tables import Table
from gateway.model.updates import PutCell, SetTo
from gateway.model.values import Value
from gateway.model.writes import Change, Edit, Remove, Replace, Write

_EXISTS = RowExists()
_ABSENT = Not(_EXISTS)
_NO_REVISION = -1


@dataclass(frozen=True, slots=True)
class Prepared:
    """A write that was read, its key as Azure spells it, and how its outcome is answered."""

    write: Write
    keys: tuple[str, str]
    answer: Callable[[Outcome], Answer]


def insert(call: Call, resource: EntitySet) -> Exchange:
    """POST /T"""
    return (yield from _write(call, resource))


def update(call: Call, resource: Entity) -> Exchange:
    """PUT, MERGE, PATCH and DELETE of /T(PartitionKey='p',RowKey='r')"""
    return (yield from _write(call, resource))


def _write(call: Call, resource: EntitySet | Entity) -> Exchange:
    call.grant.check(action_of(call, resource), resource.table)
    table = yield from find_table(call, resource.table)
    prepared = prepare(call, resource, table)
    [outcome] = yield from one(WriteGroup((prepared.write,)))
    return prepared.answer(outcome)


def get(call: Call, resource: Entity) -> Exchange:
    """GET /T(PartitionKey='p',RowKey='r')"""
    call.grant.check(Action.QUERY, resource.table)
    shape_of = shape_reader(call)
    table = yield from find_table(call, resource.table)
    key = keys.key_of(table.key_schema, resource.partition_key, resource.row_key)
    if key is None or not call.grant.covers(resource.partition_key, resource.row_key):
        raise ServiceError("ResourceNotFound")
    row = yield from one(Get(table, key.position))
    if row is None:
        raise ServiceError("ResourceNotFound")
    shape = shape_of(table)
    headers = [("Content-Type", payloads.content_type(shape.level)), ("ETag", payloads.etag(row))]
    return Answer(200, headers, payloads.dumps(shape.one(row)))


def shape_reader(call: Call) -> Callable[[Table], Shape]:
    """How the caller wants entities shown: reads $format, Accept and $select at once, and wants the table later."""
    level = payloads.level_of(call.options.get("$format") or call.request.header("accept"))
    names = {name.strip() for name in call.options.get("$select", "").split(",")} - {""}
    selected = None if not names or "*" in names else frozenset(names)
    return lambda table: Shape(table, call.origin, call.address.account, level, selected)


def action_of(call: Call, resource: EntitySet | Entity) -> Action:
    """What a write must be allowed to do."""
    if isinstance(resource, EntitySet):
        return Action.INSERT
    if call.method == "DELETE":
        return Action.DELETE
    return Action.UPDATE if call.request.header("if-match") else Action.UPSERT


def prepare(call: Call, resource: EntitySet | Entity, table: Table) -> Prepared:
    """Read one write that the caller may do. Raises ServiceError for what can be refused without looking at the row."""
    if isinstance(resource, EntitySet):
        return _prepare_insert(call, table)
    if call.request.header("if-none-match"):
        raise ServiceError("InvalidInput")
    call_keys = (resource.partition_key, resource.row_key)
    if_match = call.request.header("if-match")
    if call.method == "DELETE":
        if not if_match:
            raise ServiceError("MissingRequiredHeader")
        condition = _condition(if_match)
        change: Change = Remove()
        key = keys.key_of(table.key_schema, *call_keys)
    else:
        sent = payloads.parse_entity(call.request.body)
        _check_same_key(sent, call_keys)
        condition = _condition(if_match) if if_match else ALWAYS
        key = keys.key_of(table.key_schema, *call_keys)
        if not if_match:
            keys.check_new_key(*call_keys)
            if key is None:
                raise ServiceError("InvalidInput")
        attributes = _attributes(sent, table)
        if call.method == "PUT":
            change = _replace(table, key, attributes)
        else:
            change = _merge(table, attributes, may_create=not if_match)
    if key is None:
        raise ServiceError("ResourceNotFound")
    call.grant.check_key(*call_keys)
    return Prepared(
        Write(table, key, change, condition, view, payloads.rule_of(table.key_schema.names)),
        call_keys,
        _answer_update,
    )


def _prepare_insert(call: Call, table: Table) -> Prepared:
    level = payloads.level_of(call.options.get("$format") or call.request.header("accept"))
    sent = payloads.parse_entity(call.request.body)
    if sent.partition_key is None or sent.row_key is None:
        raise ServiceError("PropertiesNeedValue")
    if sent.has_typed_keys:
        raise ServiceError("InvalidInput")
    call_keys = (sent.partition_key, sent.row_key)
    keys.check_new_key(*call_keys)
    key = keys.key_of(table.key_schema, *call_keys)
    if key is None:
        raise ServiceError("InvalidInput")
    call.grant.check_key(*call_keys)
    change = _replace(table, key, _attributes(sent, table))
    shape = Shape(table, call.origin, call.address.account, level)

    def answer(outcome: Outcome) -> Answer:
        assert outcome.new is not None
        return _answer_insert(call, shape, outcome.new, call_keys)

    return Prepared(
        Write(table, key, change, _ABSENT, view, payloads.rule_of(table.key_schema.names)), call_keys, answer
    )


def _condition(if_match: str) -> Predicate:
    if if_match == "*":
        return _EXISTS
    revision = payloads.revision_of(if_match)
    return RevisionIs(_NO_REVISION if revision is None else revision)


def _check_same_key(sent: Sent, call_keys: tuple[str, str]) -> None:
    """Keys in the body are optional; if given, they are those of the address."""
    if sent.partition_key not in (None, call_keys[0]) or sent.row_key not in (None, call_keys[1]):
        raise ServiceError("InvalidInput")


def _attributes(sent: Sent, table: Table) -> dict[str, Value]:
    if not keys.is_own(table.key_schema):
        for name in table.key_schema.names:
            if (
                name in sent.attributes
            ):  # here it is called PartitionKey or RowKey, and a row has one key only
                raise ServiceError("PropertyNameInvalid")
    return sent.attributes


def _replace(table: Table, key: Key | None, attributes: dict[str, Value]) -> Replace:
    key_values = {} if key is None else dict(zip(table.key_schema.names, key.values, strict=True))
    return Replace(Contents.of_values({**key_values, **attributes}))


def _merge(table: Table, attributes: dict[str, Value], may_create: bool) -> Edit:
    if table.rules.stamped:
        return Edit(tuple(PutCell(name, value) for name, value in attributes.items()), may_create)
    actions = tuple(SetTo((name,), updates.Literal(value)) for name, value in attributes.items())
    return Edit(actions, may_create)


def _answer_update(outcome: Outcome) -> Answer:
    return Answer(204, [("ETag", payloads.etag(outcome.new))] if outcome.new is not None else [])


def _answer_insert(call: Call, shape: Shape, row: Row, call_keys: tuple[str, str]) -> Answer:
    preference = preference_of(call)
    location = f"{shape.root}/{shape.table.azure_name}{key_predicate(*call_keys)}"
    headers = [("ETag", payloads.etag(row)), ("Location", location)]
    if preference is not None:
        headers.append(("Preference-Applied", preference))
    if preference == "return-no-content":
        return Answer(204, [*headers, ("DataServiceId", location)])
    headers.append(("Content-Type", payloads.content_type(shape.level)))
    return Answer(201, headers, payloads.dumps(shape.one(row)))


def preference_of(call: Call) -> str | None:
    """return-content or return-no-content if the Prefer header says so."""
    prefer = call.request.header("prefer").strip().lower()
    return prefer if prefer in ("return-content", "return-no-content") else None
