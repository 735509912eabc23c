"""The steps of a request (gateway/dialect.py): authentication, dispatch from one operation table, CORS, and the headers that
every reply has. What operations do is elsewhere.
"""

from __future__ import annotations

import base64
import binascii
import json
import logging
import re
from dataclasses import replace
from datetime import date
from email.utils import formatdate
from functools import lru_cache

from tablegate.adapters.azuretable import DIALECT, request_facts
from tablegate.adapters.azuretable.auth import auth, bearer
from tablegate.adapters.azuretable.auth.auth import Account
from tablegate.adapters.azuretable.auth.bearer import Issuer
from tablegate.adapters.azuretable.auth.shared_access import Grant
from tablegate.adapters.azuretable.call_context import (
    Answer,
    Call,
    find_table,
    judge_table,
    known_table,
    options_of,
    service_id,
)
from tablegate.adapters.azuretable.entities import entity_renderer
from tablegate.adapters.azuretable.entities.entity_renderer import Level
from tablegate.adapters.azuretable.operation_table import (
    OPERATIONS,
    PLAIN,
    Operation,
    purpose_of,
    refuse_nested,
)
from tablegate.adapters.azuretable.tables import service, tables
from tablegate.adapters.azuretable.values.values import UNIX_EPOCH_TICKS, timestamp_text
from tablegate.adapters.azuretable.wire import addresses, cors, limits
from tablegate.adapters.azuretable.wire.addresses import (
    Address,
    Entity,
    EntitySet,
    Nested,
    Service,
)
from tablegate.adapters.azuretable.wire.errors import PLANTED, ServiceError, as_json, as_xml, service_error_of
from tablegate.adapters.azuretable.wire.methods import method_of
from tablegate.gateway.dialect import Begun, Dialect, Gateway, reply_exchange
from tablegate.gateway.exchanges import Steps, after
from tablegate.gateway.http import Reply, Request
from tablegate.gateway.model.authorization.authorizations import Source
from tablegate.gateway.model.commands.commands import Exchange
from tablegate.gateway.model.errors import Busy, GatewayError, LimitExceeded, NotAllowed, NotPermitted
from tablegate.gateway.model.request_facts import RequestFacts
from tablegate.gateway.model.tables.tables import Table
from tablegate.gateway.model.values.composites import name_of
from tablegate.gateway.request_memory import MIN_PARSED_BYTES
from tablegate.gateway.security.credentials import DEV_AZURE_ACCOUNT, DEV_AZURE_KEY, Credential, Scheme

log = logging.getLogger("tablegate")

_HINT = (
    f'TableServiceClient.from_connection_string("AccountName={DEV_AZURE_ACCOUNT};AccountKey={DEV_AZURE_KEY};'
    f'TableEndpoint={{url}}/{DEV_AZURE_ACCOUNT}")'
)
# Host names of the service: public Azure, its sovereign clouds, and Cosmos DB. Not every name with `.table.`, which may belong
# to anyone.
_SERVICE_HOSTS = re.compile(
    r"[a-z0-9]{3,24}(?:-secondary)?\.table\.(?:core\.(?:windows\.net|chinacloudapi\.cn|usgovcloudapi\.net)|cosmos\.azure\.com)"
)
_XML_COMPONENTS = frozenset({"acl", "properties", "stats"})
_READING = frozenset({"GET", "HEAD"})
_VERSION = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
_ODATA_HEADERS = [
    ("Cache-Control", "no-cache"),
    ("X-Content-Type-Options", "nosniff"),
    ("DataServiceVersion", "3.0;"),
]


def create(gateway: Gateway) -> Dialect:
    """Make the dialect on a gateway."""
    return AzureTable(gateway)


def listed(table: Table) -> tuple[str, str, str]:
    """(name, keys, address): which columns PartitionKey and RowKey are, and the path below any account."""
    schema = table.key_schema
    row_key = name_of(schema.sort) if schema.sort else '""'
    keys = f"PartitionKey = {name_of(schema.partition)}, RowKey = {row_key}"
    return table.azure_name, keys, f"/*/{table.azure_name}"


class AzureTable(Dialect):
    """The dialect on a gateway, with what it reads once from the settings."""

    name = DIALECT
    hint = _HINT
    service_hosts = _SERVICE_HOSTS
    methods = Dialect.methods | {"MERGE"}
    has_origin_rules = True
    faults = PLANTED
    operation_kinds = request_facts.KINDS
    refused_part_marks = request_facts.PART_MARKS

    def __init__(self, gateway: Gateway) -> None:
        super().__init__(gateway)
        self._operations = OPERATIONS
        settings = gateway.settings
        self._hosts_name_accounts = settings.azure_account_in_host
        self._issuer: Issuer | None = None
        if settings.jwt_keys_file is not None:
            document = json.loads(settings.jwt_keys_file.read_text())
            usual = bearer.ONE_ACCOUNT if gateway.credentials.keeps_apart else bearer.EVERY_ACCOUNT
            audience = settings.jwt_audience or usual
            self._issuer = Issuer.of_jwks(document, settings.jwt_issuer or None, audience)

    # Which requests are this dialect's

    def matches(self, request: Request) -> bool:
        """Whether a request is Azure's: by the account in its host name or its path."""
        return addresses.has_account(request.path, request.header_map.get("host", ""))

    def operation(self, request: Request) -> str:
        """The method and the kind of resource, or "unknown" for an address that means nothing."""
        try:
            resource = addresses.parse(request.path, self._host(request)).resource
        except ServiceError:
            return "unknown"
        verb = request.method if request.method in self.methods else "OTHER"
        return f"{verb} {type(resource).__name__}"

    def _host(self, request: Request) -> str:
        """The host that a request was sent to; "" where hosts name no account."""
        return request.header_map.get("host", "") if self._hosts_name_accounts else ""

    def facts(self, request: Request, reply: Reply | None = None) -> RequestFacts:
        """Return the facts of a request (Dialect.facts)."""
        head = super().facts(request)
        if reply is None and self.refusal_of_head(request) is not None:
            return head
        return request_facts.read(head, request, reply, self._host(request))

    def fault(self, request: Request, name: str) -> Reply:
        """An error reply that was planted (Dialect.fault)."""
        answer = self._refusal(request, ServiceError(name))
        return Reply(answer.status, self._headers(request, answer), answer.body)

    # From request to reply

    def refusal_of_head(self, request: Request) -> Reply | None:
        """The refusal of a request that is not authenticated (Dialect.refusal_of_head). No signature covers the body."""
        try:
            address = addresses.parse(request.path, self._host(request))
            auth.verify(
                request, options_of(request.query), self._account(address.account), self._issuer, self.gateway
            )
        except ServiceError as error:
            return self._reply(request, self._refusal(request, error))
        return None

    def only_reads(self, request: Request) -> bool:
        """Whether a request wants nothing but to read (Dialect.only_reads)."""
        return request.method == "GET" and "x-http-method" not in request.header_map

    def handle(self, request: Request) -> Begun:
        """Begin to answer a request (Dialect.handle). Those of pages in a browser are subject to CORS."""
        if request.method == "OPTIONS" or request.header_map.get("origin", ""):
            return self._handle_cross_origin(request)
        return super().handle(request)

    def _handle_cross_origin(self, request: Request) -> Exchange[Reply]:
        if request.method == "OPTIONS":
            return (yield from self._run_steps(request, None, self._preflight(request)))
        try:
            yield from self._check_origin(request)
        except (ServiceError, GatewayError) as error:
            reply = self.render_error(request, None, error)
        else:
            reply = yield from reply_exchange(super().handle(request))
        status, headers, body = reply
        return Reply(status, [*headers, *(yield from self._cors_headers(request))], body)

    def _preflight(self, request: Request) -> Exchange[Answer]:
        account = self._account(addresses.account_of(request.path, self._host(request)))
        return (yield from service.preflight(request, account.namespace, account.name))

    def _check_origin(self, request: Request) -> Exchange[None]:
        """Raises NotAllowed for a page that neither the server's settings nor a CORS rule of the account allows."""
        refusal = self.refusal_of_origin(request)
        if refusal is None:
            return
        account = self._account(addresses.account_of(request.path, self._host(request)))
        properties = yield from service.load(account.namespace, account.name)
        if not cors.allows(properties["Cors"], request.header_map.get("origin", ""), request.method):
            raise refusal

    def parse(self, request: Request, caller: Call) -> Call:
        """Return the call (Dialect.parse). Its operation decodes the body. Raises QuotaExceeded, Busy."""
        account = caller.address.account
        if self.gateway.quotas.is_on:
            self.gateway.quotas.enter(request, Scheme.AZURE.value, account, caller.namespace)
        if len(request.body) > MIN_PARSED_BYTES:
            self.gateway.memory.hold_json(request, request.body)
        return caller

    def begin(self, call: Call) -> Steps[Answer]:
        """Authorize the table that a call names, and begin its operation (Dialect.begin)."""
        if _names_policy(call.grant):
            return after(self._under_policy(call), self._begin_granted)
        return self._begin_granted(call)

    def _begin_granted(self, call: Call) -> Steps[Answer]:
        handler, resource = self._operation(call).handler, call.address.resource
        if (
            call.request.authorization is not None
            and isinstance(resource, (EntitySet, Entity))
            and known_table(call, resource.table) is None
        ):
            return after(judge_table(call, resource.table), lambda _: handler(call, resource))
        return handler(call, resource)

    def render(self, request: Request, caller: Call, answer: Answer) -> Reply:
        """Return the reply with an answer (Dialect.render)."""
        return self._reply(request, answer)

    def render_error(self, request: Request, caller: Call | None, error: Exception) -> Reply:
        """Return the error reply (Dialect.render_error)."""
        if not isinstance(error, (ServiceError, GatewayError)):
            log.error("request %s failed", request.id, exc_info=error)
            error = ServiceError("InternalError")
        return self._reply(request, self._refusal(request, error))

    def _reply(self, request: Request, answer: Answer) -> Reply:
        body = b"" if request.method == "HEAD" else answer.body
        return Reply(answer.status, self._headers(request, answer), body)

    def refuse(self, request: Request, error: Exception) -> Reply | None:
        """The reply to a request that the server itself refuses, in this dialect's words (Dialect.refuse)."""
        match error:
            case LimitExceeded():
                refusal = ServiceError("RequestBodyTooLarge")
            case Busy():
                refusal = ServiceError("ServerBusy")
            case NotPermitted():
                refusal = service_error_of(error)
            case NotAllowed():
                is_preflight = request.method == "OPTIONS"
                refusal = ServiceError("CorsPreflightFailure") if is_preflight else service_error_of(error)
            case _:
                refusal = ServiceError("InternalError")
        answer = self._refusal(request, refusal)
        return Reply(answer.status, self._headers(request, answer), answer.body)

    def _address_of(self, request: Request) -> Address:
        """Where a request goes, if its parts may be as they are. Raises ServiceError."""
        known = request.header_map
        host = known.get("host", "") if self._hosts_name_accounts else ""  # as _host says, without its call
        address = addresses.parse(request.path, host)
        segment_limit = self.gateway.settings.url_segment_limit
        if segment_limit and addresses.longest_segment(request.path) > segment_limit:
            raise ServiceError("InvalidUri", "The request URL is invalid.")
        version = known.get("x-ms-version", "")
        if version and not _is_version(version):
            raise ServiceError("InvalidHeaderValue")
        if len(request.body) > limits.BODY_MAX_BYTES:
            raise ServiceError("RequestBodyTooLarge")
        return address

    def _operation(self, call: Call) -> Operation:
        """The operation that a call asks for. Raises ServiceError where there is none."""
        comp = call.options.get("comp", PLAIN)
        resource = call.address.resource
        if isinstance(resource, Nested):
            return Operation(refuse_nested)
        if call.address.secondary and call.method not in _READING:
            raise ServiceError("InsufficientAccountPermissions")
        if (call.options.get("restype") == "service") is not isinstance(resource, Service):
            raise ServiceError("InvalidQueryParameterValue")
        row = self._operations.get((type(resource), call.method, comp))
        if row is None:
            raise ServiceError("MethodNotAllowed")
        return row

    def authenticate(self, request: Request) -> Call:
        """Return the call (Dialect.authenticate). The head has all of it but the body. Raises ServiceError."""
        address = self._address_of(request)
        options = options_of(request.query)
        account = self._account(address.account)
        grant = auth.verify(request, options, account, self._issuer, self.gateway)
        if grant.roles is not None or self.gateway.credentials.is_limited:
            self._authorize(request, address, account.name, grant)
        scheme = "https" if request.secure else "http"
        return Call(
            request=request,
            address=address,
            method=method_of(request),
            options=options,
            origin=f"{scheme}://{request.header_map.get('host', '')}{address.base}",
            namespace=account.namespace,
            grant=grant,
            gateway=self.gateway,
        )

    def _under_policy(self, call: Call) -> Exchange[Call]:
        """A call under the stored policy that its token names."""
        access = call.grant.access
        assert access is not None
        assert access.table is not None  # account tokens name no policy
        table = yield from find_table(call, access.table)
        under = access.under(tables.policies_of(table), self.gateway.now_ms() / 1000)
        return replace(call, grant=Grant(under))

    def _authorize(self, request: Request, address: Address, account: str, grant: Grant) -> None:
        """Give the request of a caller who may not do everything its authorization: by the grants of the account's key,
        which bound what the key has signed, too; or by the roles of a token."""
        credentials = self.gateway.credentials
        credential = credentials.find(Scheme.AZURE, account)
        assert credential is not None  # or nobody could have signed
        policy = credential.policy if grant.roles is None else credentials.policy_of_roles(grant.roles)
        source = Source(request.client, request.secure)
        now_ms = self.gateway.real_now_ms()
        request.authorization = credentials.authorization(credential, policy, source, now_ms)
        authorization = request.authorization
        if authorization is None:
            return
        component = options_of(request.query).get("comp", PLAIN)
        authorization.purpose = purpose_of(address.resource, method_of(request), component)

    def _account(self, name: str) -> Account:
        credentials = self.gateway.credentials
        credential = credentials.find(Scheme.AZURE, name)
        if credential is None:
            raise ServiceError("AuthenticationFailed")
        return _account_of(credential, credentials.namespace(Scheme.AZURE, name))

    # Replies

    def _headers(self, request: Request, answer: Answer) -> list[tuple[str, str]]:
        version = request.header_map.get("x-ms-version", "")
        headers = [
            *answer.headers,
            ("x-ms-request-id", service_id(request.id)),
            ("x-ms-version", version if _is_version(version) else self._version_unsaid(request)),
            ("Server", "Windows-Azure-Table/1.0 Microsoft-HTTPAPI/2.0"),
            ("Date", _http_date(self.gateway.real_now_ms() // 1000)),
        ]
        client_id = request.header_map.get("x-ms-client-request-id", "")
        if client_id and _is_echoed(client_id):
            headers.append(("x-ms-client-request-id", client_id))
        if "comp=" not in request.query or not _speaks_xml(request):
            headers += _ODATA_HEADERS
        return headers

    def _version_unsaid(self, request: Request) -> str:
        """The version of a request that names none, or none that can be read: its token's, else the setting's."""
        found = re.search(r"(?:^|&)sv=(\d{4}-\d\d-\d\d)(?:&|$)", request.query)
        if found and _is_version(found.group(1)):
            return found.group(1)
        return self.gateway.settings.azure_default_version

    def _refusal(self, request: Request, refused: ServiceError | GatewayError) -> Answer:
        error = service_error_of(refused) if isinstance(refused, GatewayError) else refused
        time = timestamp_text(self.gateway.now_ms() * 10_000 + UNIX_EPOCH_TICKS)
        headers = [*error.headers, ("x-ms-error-code", error.code)]
        if _speaks_xml(request) or "xml" in request.header_map.get("accept", "").lower():
            headers.append(("Content-Type", "application/xml"))
            return Answer(error.status, headers, as_xml(error, service_id(request.id), time))
        headers.append(("Content-Type", entity_renderer.content_type(Level.MINIMAL)))
        return Answer(error.status, headers, as_json(error, service_id(request.id), time))

    def _cors_headers(self, request: Request) -> Exchange[list[tuple[str, str]]]:
        try:
            account = self._account(addresses.account_of(request.path, self._host(request)))
            properties = yield from service.load(account.namespace, account.name)
        except (ServiceError, GatewayError):
            return []
        return cors.actual(properties["Cors"], request.header_map.get("origin", ""), request.method)


def _is_echoed(client_id: str) -> bool:
    return (
        0 < len(client_id) <= limits.CLIENT_REQUEST_ID_MAX_CHARACTERS
        and client_id.isascii()
        and client_id.isprintable()
    )


@lru_cache(maxsize=256)
def _is_version(text: str) -> bool:
    """Whether a text is a date of the calendar, as all versions are."""
    if _VERSION.fullmatch(text) is None:
        return False
    try:
        date.fromisoformat(text)
    except ValueError:
        return False
    return True


def _names_policy(grant: Grant) -> bool:
    """Whether a grant is a token that still needs its stored policy."""
    return grant.access is not None and grant.access.policy_id is not None


def _speaks_xml(request: Request) -> bool:
    """Whether the request is for one of the operations whose documents are XML."""
    query = request.query
    if "comp=" not in query:
        return False
    try:
        return options_of(query).get("comp", "") in _XML_COMPONENTS
    except ServiceError:  # a query that cannot be read
        return False


@lru_cache(maxsize=1024)
def _account_of(credential: Credential, namespace: str) -> Account:
    keys = []
    for secret in credential.secrets:
        try:
            keys.append(base64.b64decode(secret, validate=True))
        except (binascii.Error, ValueError):
            keys.append(secret.encode())  # an account's key need not be base64 for SDKs that do not decode it
    return Account(credential.access_id, tuple(keys), namespace)


@lru_cache(maxsize=2)
def _http_date(second: int) -> str:
    return formatdate(second, usegmt=True)
