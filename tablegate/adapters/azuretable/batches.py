"""Entity group transactions: a changeset is one write group, parsed by the same code as single writes.

Checks of the group: one table, one partition, each entity once, at most a hundred changes. On any failure nothing is
written, and the answer is one part that names the failing change.
"""

from __future__ import annotations

from collections.abc import Callable

from tablegate.adapters.azuretable import queries
from tablegate.adapters.azuretable.call import (
    CallContext,
    OperationReply,
    authorize_table,
    count_transaction,
    find_table,
    method_of,
    options_of,
    service_id,
)
from tablegate.adapters.azuretable.entities import entities
from tablegate.adapters.azuretable.entities.entities import PreparedEntityWrite
from tablegate.adapters.azuretable.entities.entity_renderer import MetadataLevel, content_type
from tablegate.adapters.azuretable.values import UNIX_EPOCH_TICKS, timestamp_text
from tablegate.adapters.azuretable.wire import addresses, errors, limits, multipart
from tablegate.adapters.azuretable.wire.addresses import Batch, Entity, EntitySet, Resource
from tablegate.adapters.azuretable.wire.multipart import InnerHead, InnerReply, InnerRequest
from tablegate.gateway.http.messages import Request
from tablegate.gateway.model.commands.row_commands import WriteGroup
from tablegate.gateway.model.errors import GatewayError, GroupRefused, NotPermitted
from tablegate.gateway.model.tables.tables import Table

_VERBS = frozenset({"POST", "PUT", "MERGE", "PATCH", "DELETE"})


class _ChangeFailed(Exception):
    """A change was rejected, and with it the whole group."""

    def __init__(self, index: int, error: errors.ServiceError) -> None:
        super().__init__(index, error)
        self.index = index
        self.error = error


async def run(call: CallContext, resource: Batch) -> OperationReply:
    """POST /$batch: run a changeset as a whole, or one query. The answer is multipart/mixed.

    A rejected change is a part of the answer. Raises ServiceError for a body that is no batch.
    """
    explicit_version = call.request.header("x-ms-version")
    if explicit_version and explicit_version < limits.FIRST_VERSION_WITH_BATCHES:
        raise errors.ServiceError("InvalidHeaderValue")
    batch = multipart.parse(call.request.header("content-type"), call.request.body, limits.CHANGES_MAX)
    if batch.is_query:
        answer = await _query(call, batch.requests[0])
        answers = [(answer, batch.requests[0].content_id)]
    else:
        try:
            answers = await _changes(call, batch.requests)
        except _ChangeFailed as failure:
            content_id = batch.requests[min(failure.index, len(batch.requests) - 1)].content_id
            answers = [(_refusal(call, failure.error, failure.index), content_id)]
    media_type, body = multipart.render(answers, batch.is_query)
    return OperationReply(202, [("Content-Type", media_type)], body)


async def _query(call: CallContext, request: InnerRequest) -> InnerReply:
    if request.head.method != "GET":
        raise errors.ServiceError("InvalidInput")
    inner, resource = _inner_call(call, request.head)
    try:
        if isinstance(resource, Entity | EntitySet):
            await authorize_table(inner, resource.table)
        if isinstance(resource, Entity):
            answer = await entities.get(inner, resource)
        elif isinstance(resource, EntitySet):
            answer = await queries.query(inner, resource)
        else:
            raise errors.ServiceError("InvalidInput")
    except errors.ServiceError as error:
        return _refusal(call, error, None)
    except NotPermitted:
        raise
    except GatewayError as error:
        return _refusal(call, errors.service_error_of(error), None)
    return _inner_answer(answer)


async def _changes(
    call: CallContext, requests: tuple[InnerRequest, ...]
) -> list[tuple[InnerReply, str | None]]:
    if len(requests) > limits.CHANGES_MAX:
        raise _ChangeFailed(
            limits.CHANGES_MAX - 1, errors.ServiceError("InvalidInput", errors.TOO_MANY_CHANGES)
        )
    prepared = await _prepare_all(call, requests)
    if not prepared:
        return []
    count_transaction(prepared[0].write.table, "write")
    try:
        outcomes = await WriteGroup(tuple(write.write for write in prepared))
    except GroupRefused as refused:
        index, reason = next((at, reason) for at, reason in enumerate(refused.reasons) if reason is not None)
        raise _ChangeFailed(index, errors.service_error_of(reason)) from None
    except NotPermitted:  # a caller without permission for a part has none for the batch
        raise
    except GatewayError as error:
        raise _ChangeFailed(0, errors.service_error_of(error)) from None
    return [
        (_inner_answer(write.answer(outcome)), request.content_id)
        for write, outcome, request in zip(prepared, outcomes, requests, strict=True)
    ]


async def _prepare_all(call: CallContext, requests: tuple[InnerRequest, ...]) -> list[PreparedEntityWrite]:
    """Return the prepared write of every change, checked against the ones before it."""
    table: Table | None = None
    prepared: list[PreparedEntityWrite] = []
    row_keys: set[str] = set()
    writers: dict[int, Callable[[bytes], PreparedEntityWrite]] = {}  # by the id() of a head
    for index, request in enumerate(requests):
        try:
            writer = writers.get(id(request.head))
            if writer is None:
                inner, resource = _change_call(call, request.head)
                if table is None:
                    table = await find_table(inner, resource.table)
                elif not call.flavour.is_name_of(table, resource.table):
                    raise errors.ServiceError("CommandsInBatchActOnDifferentPartitions")
                writer = writers[id(request.head)] = entities.writer(inner, resource, table)
            write = writer(request.body)
            if prepared and write.keys[0] != prepared[0].keys[0]:
                raise errors.ServiceError("CommandsInBatchActOnDifferentPartitions")
            if write.keys[1] in row_keys:
                raise errors.ServiceError("InvalidDuplicateRow")
        except errors.ServiceError as error:
            if error.status in (401, 403):  # a caller without permission for a part has none for the batch
                raise
            raise _ChangeFailed(index, error) from None
        except NotPermitted:
            raise
        except GatewayError as error:
            raise _ChangeFailed(index, errors.service_error_of(error)) from None
        row_keys.add(write.keys[1])
        prepared.append(write)
    return prepared


def _change_call(call: CallContext, head: InnerHead) -> tuple[CallContext, Entity | EntitySet]:
    """Return a change as a call of its own, after checking that it is permitted. Raises ServiceError."""
    inner, resource = _inner_call(call, head)
    if inner.method not in _VERBS or not isinstance(resource, Entity | EntitySet):
        raise errors.ServiceError("InvalidInput")
    if isinstance(resource, EntitySet) is not (inner.method == "POST"):
        raise errors.ServiceError("InvalidInput")
    inner.grant.check(entities.action_of(inner, resource), resource.table)
    return inner, resource


def _inner_call(call: CallContext, head: InnerHead) -> tuple[CallContext, Resource]:
    """Return an operation of a batch as a call of its own, without its body. The batch is authenticated as a whole."""
    outer = call.request
    host = outer.header("host") if call.gateway.settings.azure_account_in_host else ""
    address, query = addresses.resolve(head.target, call.address, host)
    if address.secondary and head.method != "GET" and not call.flavour.secondary_takes_writes:
        raise errors.ServiceError("InsufficientAccountPermissions")
    request = Request(head.method, head.target, head.headers, b"", outer.client, outer.secure)
    request.id = outer.id
    request.authorization = outer.authorization
    inner = CallContext(
        request=request,
        address=address,
        method=method_of(request),
        options=options_of(query),
        origin=call.origin,
        namespace=call.namespace,
        grant=call.grant,
        gateway=call.gateway,
        flavour=call.flavour,
    )
    return inner, address.resource


def _inner_answer(answer: OperationReply) -> InnerReply:
    return InnerReply(answer.status, _INNER_HEADERS + answer.headers, answer.body)


_INNER_HEADERS = [
    ("X-Content-Type-Options", "nosniff"),
    ("Cache-Control", "no-cache"),
    ("DataServiceVersion", "3.0;"),
]


def _refusal(call: CallContext, error: errors.ServiceError, index: int | None) -> InnerReply:
    """Return an error as a part. SDKs read the index of the failing change from the start of its message."""
    error = call.flavour.refusal_of(error)
    if index is not None:
        error = errors.ServiceError(error.code, f"{index}:{error.text}")
    time = timestamp_text(call.gateway.now_ms() * 10_000 + UNIX_EPOCH_TICKS)
    headers = [
        ("X-Content-Type-Options", "nosniff"),
        ("DataServiceVersion", "3.0;"),
        ("Content-Type", content_type(MetadataLevel.MINIMAL)),
    ]
    return InnerReply(error.status, headers, errors.as_json(error, service_id(call.request.id), time))
