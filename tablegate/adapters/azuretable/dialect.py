"""The Azure Table dialect: the steps of a request (gateway/dialects/dialect.py), and CORS."""

from __future__ import annotations

import logging
from collections.abc import Coroutine
from typing import Any

from tablegate.adapters.azuretable import auth, replies, request_info, service, tables
from tablegate.adapters.azuretable.call import (
    CallContext,
    OperationReply,
    authorize_table,
    method_of,
    options_of,
    tunnelled_method,
)
from tablegate.adapters.azuretable.detection import AzureTableDetection
from tablegate.adapters.azuretable.flavours import STORAGE, Flavour, Flavours
from tablegate.adapters.azuretable.operation_table import (
    NAMES,
    PLAIN,
    operation_of,
    purpose_of,
)
from tablegate.adapters.azuretable.wire import addresses
from tablegate.adapters.azuretable.wire.addresses import (
    Address,
    Entity,
    EntitySet,
)
from tablegate.adapters.azuretable.wire.errors import (
    INJECTABLE_FAULTS,
    ServiceError,
    service_error_of,
)
from tablegate.gateway.dialects.adapter import Adapter, ConsolePart
from tablegate.gateway.dialects.dialect import Dialect, Gateway
from tablegate.gateway.http.messages import Reply, Request
from tablegate.gateway.http.request_bodies import MIN_PARSED_BYTES
from tablegate.gateway.model.errors import (
    Busy,
    GatewayError,
    HeadTooLong,
    LimitExceeded,
    NotAllowed,
    NotPermitted,
)
from tablegate.gateway.model.request_info import RequestInfo, RequestKind
from tablegate.gateway.model.tables.tables import Table
from tablegate.gateway.model.values.composites import name_of
from tablegate.gateway.security.credentials import Scheme
from tablegate.gateway.security.identities import ENTRA, ENTRA_SCHEME

log = logging.getLogger("tablegate")


def listed(table: Table) -> tuple[str, str, str]:
    """Return (name, key columns, address) of a table. The address is the path below any account."""
    schema = table.key_schema
    row_key = name_of(schema.sort) if schema.sort else '""'
    keys = f"PartitionKey = {name_of(schema.partition)}, RowKey = {row_key}"
    return table.azure_name, keys, f"/*/{table.azure_name}"


class AzureTable(AzureTableDetection, Dialect):
    """The dialect for a gateway, with values read once from the settings."""

    methods = Dialect.methods | {"MERGE"}
    has_origin_rules = True
    faults = INJECTABLE_FAULTS
    operations = NAMES
    refused_part_marks = request_info.PART_MARKS

    def __init__(self, gateway: Gateway) -> None:
        super().__init__(gateway)
        self._hosts_name_accounts = gateway.settings.azure_account_in_host
        self._flavours = Flavours(gateway.settings.azure_flavour)

    def operation(self, request: Request) -> str:
        """Return the verb, also a tunnelled one, and the kind of resource, or "unknown" for an invalid address."""
        try:
            resource = addresses.parse(request.path, self._host(request)).resource
        except ServiceError:
            return "unknown"
        verb = request.method if request.method in self.methods else "OTHER"
        if verb == "POST":
            verb = tunnelled_method(request) or verb
        return f"{verb} {type(resource).__name__}"

    def _host(self, request: Request) -> str:
        return request.header_map.get("host", "") if self._hosts_name_accounts else ""

    def request_info(self, request: Request, reply: Reply | None = None) -> RequestInfo:
        """Return the description of a request (Dialect.request_info)."""
        head = super().request_info(request)
        if reply is None and self.refusal_of_head(request) is not None:
            return head
        facts = request_info.read(head, request, reply, self._host(request))
        if request.authorization is not None and request.authorization.identity.scheme == ENTRA_SCHEME:
            return facts._replace(caller=ENTRA + request.authorization.identity.access_id)
        return facts

    def fault(self, request: Request, name: str) -> Reply:
        """Return an error reply injected by a test (Dialect.fault)."""
        return self._refusal(request, ServiceError(name))

    # From request to reply

    def refusal_of_head(self, request: Request) -> Reply | None:
        """Return the error reply if authentication fails (Dialect.refusal_of_head). No signature covers the body."""
        try:
            self.authenticate(request)
        except (ServiceError, GatewayError) as error:
            return self.render_error(request, None, error)
        return None

    @classmethod
    def kind_of(cls, operation: str) -> RequestKind:
        """Return the kind of an operation (Dialect.kind_of)."""
        return request_info.KINDS.get(operation, RequestKind.READ)

    def only_reads(self, request: Request) -> bool:
        """Return True if a request only reads (Dialect.only_reads)."""
        return request.method == "GET" and "x-http-method" not in request.header_map

    def handle(self, request: Request) -> Coroutine[Any, Any, Reply]:
        """Answer a request (Dialect.handle). CORS rules apply to requests of pages in a browser."""
        if request.method == "OPTIONS" or request.header_map.get("origin", ""):
            return self._handle_cross_origin(request)
        return super().handle(request)

    async def _handle_cross_origin(self, request: Request) -> Reply:
        if request.method == "OPTIONS":
            return await self._preflight(request)
        try:
            await self._check_origin(request)
        except (ServiceError, GatewayError) as error:
            reply = self.render_error(request, None, error)
        else:
            reply = await super().handle(request)
        status, headers, body = reply
        return Reply(status, [*headers, *await self._cors_headers(request)], body)

    async def _preflight(self, request: Request) -> Reply:
        try:
            account = auth.account_of(self.gateway, addresses.account_of(request.path, self._host(request)))
            answer = await service.preflight(request, account.namespace, account.name)
            return replies.reply(request, answer, self.gateway)
        except Exception as error:
            return self.render_error(request, None, error)

    async def _check_origin(self, request: Request) -> None:
        """Check that the server's settings or a CORS rule of the account allow the page. Raises NotAllowed."""
        refusal = self.refusal_of_origin(request)
        if refusal is None:
            return
        account = auth.account_of(self.gateway, addresses.account_of(request.path, self._host(request)))
        properties = await service.load(account.namespace, account.name)
        if not service.is_allowed(properties["Cors"], request.header_map.get("origin", ""), request.method):
            raise refusal

    def parse(self, request: Request, caller: CallContext) -> CallContext:
        """Return the call (Dialect.parse). Its operation decodes the body. Raises QuotaExceeded, Busy."""
        account = caller.address.account
        if self.gateway.quotas.is_on:
            self.gateway.quotas.enter(request, Scheme.AZURE.value, account, caller.namespace)
        if len(request.body) > MIN_PARSED_BYTES:
            self.gateway.memory.hold_json(request, request.body)
        return caller

    async def execute(self, call: CallContext) -> OperationReply:
        """Authorize the table that a call names, and carry out its operation (Dialect.execute)."""
        access = call.grant.access
        if access is not None and access.policy_id is not None:
            call = await tables.with_stored_policy(call, access)
        handler, resource = operation_of(call).handler, call.address.resource
        if call.request.authorization is not None and isinstance(resource, (EntitySet, Entity)):
            await authorize_table(call, resource.table)
        return await handler(call, resource)

    def render(self, request: Request, caller: CallContext, answer: OperationReply) -> Reply:
        """Return the reply with an answer (Dialect.render)."""
        return replies.reply(request, answer, self.gateway)

    def render_error(self, request: Request, caller: CallContext | None, error: Exception) -> Reply:
        """Return the error reply (Dialect.render_error)."""
        if not isinstance(error, (ServiceError, GatewayError)):
            log.error("request %s failed", request.id, exc_info=error)
            error = ServiceError("InternalError")
        return self._refusal(request, error)

    def _refusal(self, request: Request, error: ServiceError | GatewayError) -> Reply:
        if isinstance(error, GatewayError):
            error = service_error_of(error)
        refusal = self._flavour_of(request).refusal_of(error)
        return replies.reply(request, replies.refusal(request, refusal, self.gateway), self.gateway)

    def _flavour_of(self, request: Request) -> Flavour:
        """Return the flavour of a request. Its address may be invalid."""
        host = self._host(request)
        try:
            return self._flavours.find(host, addresses.account_of(request.path, host)) or STORAGE
        except ServiceError:
            return STORAGE

    def refuse(self, request: Request, error: Exception) -> Reply | None:
        """Return the reply to a request that the server itself rejects (Dialect.refuse)."""
        match error:
            case LimitExceeded():
                refusal = ServiceError("RequestBodyTooLarge")
            case HeadTooLong():
                is_of_headers = error.what in ("header", "headers")
                refusal = ServiceError("InvalidHeaderValue" if is_of_headers else "InvalidUri", error.text)
            case Busy():
                refusal = ServiceError("ServerBusy")
            case NotPermitted():
                refusal = service_error_of(error)
            case NotAllowed():
                is_preflight = request.method == "OPTIONS"
                refusal = ServiceError("CorsPreflightFailure") if is_preflight else service_error_of(error)
            case _:
                refusal = ServiceError("InternalError")
        return self._refusal(request, refusal)

    def _address_of(self, request: Request) -> Address:
        """Return the address of a request, after checking its parts. Raises ServiceError."""
        address = addresses.parse(request.path, self._host(request))
        segment_limit = self.gateway.settings.url_segment_limit
        if segment_limit and addresses.longest_segment(request.path) > segment_limit:
            raise ServiceError("InvalidUri", "The request URL is invalid.")
        version = request.header_map.get("x-ms-version", "")
        if version and not replies.is_version(version):
            raise ServiceError("InvalidHeaderValue")
        return address

    def authenticate(self, request: Request) -> CallContext:
        """Return the call (Dialect.authenticate), complete except for the body. Raises ServiceError."""
        address = self._address_of(request)
        options = options_of(request.query)
        flavour = self._flavours.find(self._host(request), address.account)
        if flavour is None:
            raise ServiceError("AuthenticationFailed")
        if len(request.body) > flavour.body_max_bytes:
            raise ServiceError("RequestBodyTooLarge")
        account = auth.account_of(self.gateway, address.account)
        grant = auth.verify(request, options, account, self.gateway)
        if grant.identity is not None or self.gateway.credentials.is_limited:
            authorization = auth.authorize(request, account, grant, self.gateway)
            if authorization is not None:
                component = options.get("comp", PLAIN)
                authorization.purpose = purpose_of(address.resource, method_of(request), component)
        scheme = "https" if request.secure else "http"
        return CallContext(
            request=request,
            address=address,
            method=method_of(request),
            options=options,
            origin=f"{scheme}://{request.header_map.get('host', '')}{address.base}",
            namespace=account.namespace,
            grant=grant,
            gateway=self.gateway,
            flavour=flavour,
        )

    async def _cors_headers(self, request: Request) -> list[tuple[str, str]]:
        try:
            account = auth.account_of(self.gateway, addresses.account_of(request.path, self._host(request)))
            properties = await service.load(account.namespace, account.name)
        except (ServiceError, GatewayError):
            return []
        return service.cors_headers(properties["Cors"], request.header_map.get("origin", ""), request.method)


def _console() -> ConsolePart:
    from tablegate.adapters.azuretable.administration import ADMINISTRATION
    from tablegate.adapters.azuretable.display import DISPLAY

    return ConsolePart(DISPLAY, ADMINISTRATION)


ADAPTER = Adapter(AzureTable, listed, _console)
