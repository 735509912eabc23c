"""Entity group transactions: a changeset is one group of writes, read by the same code as single writes.

Checks what only a group can break: one table, one partition, each entity once, at most a hundred. Whatever fails, nothing is
written, and the answer is one part that names the failing change.
"""

from __future__ import annotations

from collections.abc import Callable

from tablegate.adapters.azuretable.call_context import (
    CallContext,
    OperationReply,
    find_table,
    judge_table,
    method_of,
    options_of,
    service_id,
)
from tablegate.adapters.azuretable.entities import entities
from tablegate.adapters.azuretable.entities.entities import PreparedEntityWrite
from tablegate.adapters.azuretable.entities.entity_renderer import MetadataLevel, content_type
from tablegate.adapters.azuretable.queries import queries
from tablegate.adapters.azuretable.values.values import UNIX_EPOCH_TICKS, timestamp_text
from tablegate.adapters.azuretable.wire import addresses, limits, multipart
from tablegate.adapters.azuretable.wire.addresses import BatchResource, Entity, EntitySet, Resource
from tablegate.adapters.azuretable.wire.errors import (
    TOO_MANY_CHANGES,
    ServiceError,
    as_json,
    service_error_of,
)
from tablegate.adapters.azuretable.wire.multipart import InnerHead, InnerReply, InnerRequest
from tablegate.gateway.exchanges import exchange_of, write_rows
from tablegate.gateway.http import Request
from tablegate.gateway.model.commands.commands import Exchange
from tablegate.gateway.model.errors import GatewayError, GroupRefused, NotPermitted
from tablegate.gateway.model.tables.tables import Table

_VERBS = frozenset({"POST", "PUT", "MERGE", "PATCH", "DELETE"})


class _ChangeFailed(Exception):
    """A change was refused; the rest of the group with it."""

    def __init__(self, index: int, error: ServiceError) -> None:
        super().__init__(index, error)
        self.index = index
        self.error = error


def run(call: CallContext, resource: BatchResource) -> Exchange[OperationReply]:
    """POST /$batch: carry out a changeset, all of it or nothing, or one query. The answer is multipart/mixed, and a refused
    change is a part of it. Raises ServiceError for a body that is no batch."""
    explicit_version = call.request.header("x-ms-version")
    if explicit_version and explicit_version < limits.FIRST_VERSION_WITH_BATCHES:
        raise ServiceError("InvalidHeaderValue")
    batch = multipart.parse(call.request.header("content-type"), call.request.body, limits.CHANGES_MAX)
    if batch.is_query:
        answer = yield from _query(call, batch.requests[0])
        answers = [(answer, batch.requests[0].content_id)]
    else:
        try:
            answers = yield from _changes(call, batch.requests)
        except _ChangeFailed as failure:
            content_id = batch.requests[min(failure.index, len(batch.requests) - 1)].content_id
            answers = [(_refusal(call, failure.error, failure.index), content_id)]
    media_type, body = multipart.render(answers, batch.is_query)
    return OperationReply(202, [("Content-Type", media_type)], body)


def _query(call: CallContext, request: InnerRequest) -> Exchange[InnerReply]:
    if request.head.method != "GET":
        raise ServiceError("InvalidInput")
    inner, resource = _inner_call(call, request.head)
    try:
        if isinstance(resource, Entity | EntitySet):
            yield from judge_table(inner, resource.table)
        if isinstance(resource, Entity):
            answer = yield from exchange_of(entities.get(inner, resource))
        elif isinstance(resource, EntitySet):
            answer = yield from queries.query(inner, resource)
        else:
            raise ServiceError("InvalidInput")
    except ServiceError as error:
        return _refusal(call, error, None)
    except NotPermitted:
        raise
    except GatewayError as error:
        return _refusal(call, service_error_of(error), None)
    return _inner_answer(answer)


def _changes(
    call: CallContext, requests: tuple[InnerRequest, ...]
) -> Exchange[list[tuple[InnerReply, str | None]]]:
    if len(requests) > limits.CHANGES_MAX:
        raise _ChangeFailed(limits.CHANGES_MAX - 1, ServiceError("InvalidInput", TOO_MANY_CHANGES))
    prepared = yield from _prepare_all(call, requests)
    if not prepared:
        return []
    try:
        outcomes = yield from write_rows(*[each.write for each in prepared])
    except GroupRefused as refused:
        index, reason = next((at, reason) for at, reason in enumerate(refused.reasons) if reason is not None)
        raise _ChangeFailed(index, service_error_of(reason)) from None
    except NotPermitted:  # who may not do a part of it may not do it at all
        raise
    except GatewayError as error:
        raise _ChangeFailed(0, service_error_of(error)) from None
    return [
        (_inner_answer(each.answer(outcome)), request.content_id)
        for each, outcome, request in zip(prepared, outcomes, requests, strict=True)
    ]


def _prepare_all(
    call: CallContext, requests: tuple[InnerRequest, ...]
) -> Exchange[list[PreparedEntityWrite]]:
    """Every change, read and checked against the ones before it."""
    table: Table | None = None
    prepared: list[PreparedEntityWrite] = []
    seen: set[str] = set()
    writers: dict[int, Callable[[bytes], PreparedEntityWrite]] = {}  # by the id of a head
    for index, request in enumerate(requests):
        try:
            writer = writers.get(id(request.head))
            if writer is None:
                inner, resource = _change_call(call, request.head)
                if table is None:
                    table = yield from find_table(inner, resource.table)
                elif resource.table.lower() != table.azure_name.lower():
                    raise ServiceError("CommandsInBatchActOnDifferentPartitions")
                writer = writers[id(request.head)] = entities.writer(inner, resource, table)
            each = writer(request.body)
            if prepared and each.keys[0] != prepared[0].keys[0]:
                raise ServiceError("CommandsInBatchActOnDifferentPartitions")
            if each.keys[1] in seen:
                raise ServiceError("InvalidDuplicateRow")
        except ServiceError as error:
            if error.status in (401, 403):  # who may not do a part of it may not do it at all
                raise
            raise _ChangeFailed(index, error) from None
        except NotPermitted:
            raise
        except GatewayError as error:
            raise _ChangeFailed(index, service_error_of(error)) from None
        seen.add(each.keys[1])
        prepared.append(each)
    return prepared


def _change_call(call: CallContext, head: InnerHead) -> tuple[CallContext, Entity | EntitySet]:
    """A change as a call of its own, if the caller may do such a thing."""
    inner, resource = _inner_call(call, head)
    if inner.method not in _VERBS or not isinstance(resource, Entity | EntitySet):
        raise ServiceError("InvalidInput")
    if isinstance(resource, EntitySet) is not (inner.method == "POST"):
        raise ServiceError("InvalidInput")
    inner.grant.check(entities.action_of(inner, resource), resource.table)
    return inner, resource


def _inner_call(call: CallContext, head: InnerHead) -> tuple[CallContext, Resource]:
    """An operation of a batch as a call of its own, without its body; who asks was settled for the whole of it."""
    outer = call.request
    host = outer.header("host") if call.gateway.settings.azure_account_in_host else ""
    address, query = addresses.resolve(head.target, call.address, host)
    if address.secondary and head.method != "GET":
        raise ServiceError("InsufficientAccountPermissions")
    made = Request(head.method, head.target, head.headers, b"", outer.client, outer.secure)
    made.id = outer.id
    made.authorization = outer.authorization
    inner = CallContext(
        request=made,
        address=address,
        method=method_of(made),
        options=options_of(query),
        origin=call.origin,
        namespace=call.namespace,
        grant=call.grant,
        gateway=call.gateway,
    )
    return inner, address.resource


def _inner_answer(answer: OperationReply) -> InnerReply:
    return InnerReply(answer.status, _INNER_HEADERS + answer.headers, answer.body)


_INNER_HEADERS = [
    ("X-Content-Type-Options", "nosniff"),
    ("Cache-Control", "no-cache"),
    ("DataServiceVersion", "3.0;"),
]


def _refusal(call: CallContext, error: ServiceError, index: int | None) -> InnerReply:
    """An error as a part. SDKs read the index of the failing change from the front of its message."""
    if index is not None:
        error = ServiceError(error.code, f"{index}:{error.text}")
    time = timestamp_text(call.gateway.now_ms() * 10_000 + UNIX_EPOCH_TICKS)
    headers = [
        ("X-Content-Type-Options", "nosniff"),
        ("DataServiceVersion", "3.0;"),
        ("Content-Type", content_type(MetadataLevel.MINIMAL)),
    ]
    return InnerReply(error.status, headers, as_json(error, service_id(call.request.id), time))
