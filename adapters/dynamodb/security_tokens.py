"""A minimal AWS Security Token Service on the port of DynamoDB: AssumeRoleWithWebIdentity.

A token of a trusted issuer is exchanged for temporary keys. Their rights are the grants to the identity of the token. The role
of the request only names the session. Source: "AssumeRoleWithWebIdentity" and "Common errors" (STS API reference).
"""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from typing import NamedTuple
from urllib.parse import parse_qsl
from xml.sax.saxutils import escape

from tablegate.gateway.configuration.settings import BadSetting
from tablegate.gateway.dialect import Gateway
from tablegate.gateway.http import Reply, Request
from tablegate.gateway.model.request_facts import RequestFacts, RequestKind
from tablegate.gateway.security.identities import BadToken, Identity

AUDIENCE = "sts.amazonaws.com"
OPERATION = "AssumeRoleWithWebIdentity"
_FORM = "application/x-www-form-urlencoded"
_NAMESPACE = "https://sts.amazonaws.com/doc/2011-06-15/"
_MAX_BODY_BYTES = 64 << 10
_MAX_MEMBERS = 50
_ROLE = re.compile(r"arn:aws(?:-[a-z]+)*:iam::(\d{12}):role/(?:[\x21-\x7e]*/)?([\w+=,.@-]{1,64})", re.ASCII)
_SESSION_NAME = re.compile(r"[\w+=,.@-]{2,64}", re.ASCII)
_DURATION_S = range(900, 43_201)
_DEFAULT_DURATION_S = 3600


class _Refusal(Exception):
    """An error of the service: status, code and text."""

    def __init__(self, status: int, code: str, text: str) -> None:
        super().__init__(code)
        self.status, self.code, self.text = status, code, text


class _RoleRequest(NamedTuple):
    """The checked members of a request."""

    account: str
    role: str
    session_name: str
    token: str
    seconds: int


def matches(request: Request) -> bool:
    """Return True for a request of this service, by its head."""
    headers = request.header_map
    return (
        request.method == "POST"
        and request.path in ("/", "")
        and "x-amz-target" not in headers
        and headers.get("content-type", "").partition(";")[0].strip().lower() == _FORM
    )


def answer(request: Request, gateway: Gateway) -> Reply:
    """Return the reply to a request, and set its facts for the audit log."""
    who = ""
    try:
        given = _checked(request)
        identity = _verified(request, given.token, gateway)
        who = identity.grantee
        status, body = 200, _credentials(given, identity, gateway)
        code = ""
    except _Refusal as refusal:
        status, code = refusal.status, refusal.code
        kind = "Sender" if status < 500 else "Receiver"
        body = (
            f"<Error><Type>{kind}</Type><Code>{code}</Code><Message>{escape(refusal.text)}</Message></Error>"
        )
        request.is_unauthenticated = not gateway.credentials.is_dev
    request.facts = RequestFacts(
        OPERATION, RequestKind.SIGN_IN, who, error_code=code, is_refusal=code in _REFUSALS
    )
    name = "ErrorResponse" if code else f"{OPERATION}Response"
    request_id = f"<RequestId>{request.id}</RequestId>"
    metadata = request_id if code else f"<ResponseMetadata>{request_id}</ResponseMetadata>"
    document = f'<{name} xmlns="{_NAMESPACE}">{body}{metadata}</{name}>'
    headers = [("x-amzn-RequestId", request.id), ("Content-Type", "text/xml")]
    return Reply(status, headers, document.encode())


_REFUSALS = frozenset({"AccessDenied", "InvalidIdentityToken"})


def _checked(request: Request) -> _RoleRequest:
    """Return the members of a request. Raises _Refusal."""
    if len(request.body) > _MAX_BODY_BYTES:
        raise _Refusal(413, "RequestEntityTooLarge", "The request is too large.")
    try:
        pairs = parse_qsl(
            request.body.decode("ascii"), keep_blank_values=True, max_num_fields=_MAX_MEMBERS, errors="strict"
        )
    except ValueError:
        raise _Refusal(400, "MalformedInput", "The request is not a form.") from None
    given = dict(reversed(pairs))
    if given.get("Action") != OPERATION:
        raise _Refusal(400, "InvalidAction", f"Could not find operation {given.get('Action', '')[:100]}")
    role = _ROLE.fullmatch(_member(given, "RoleArn"))
    name, seconds = _member(given, "RoleSessionName"), given.get("DurationSeconds", str(_DEFAULT_DURATION_S))
    if role is None:
        raise _invalid("RoleArn")
    if _SESSION_NAME.fullmatch(name) is None:
        raise _invalid("RoleSessionName")
    if not re.fullmatch("[0-9]{1,5}", seconds) or int(seconds) not in _DURATION_S:
        raise _invalid("DurationSeconds")
    return _RoleRequest(role[1], role[2], name, _member(given, "WebIdentityToken"), int(seconds))


def _member(given: Mapping[str, str], name: str) -> str:
    if not given.get(name):
        raise _invalid(name)
    return given[name]


def _invalid(name: str) -> _Refusal:
    return _Refusal(400, "ValidationError", f"The value of {name} is missing or not valid.")


def _verified(request: Request, token: str, gateway: Gateway) -> Identity:
    """Return the identity of a token. Raises _Refusal."""
    if not gateway.identities.may_carry_tokens(request):
        raise _Refusal(403, "AccessDenied", "Tokens are accepted over HTTPS only.")
    if gateway.credentials.keeps_apart:
        # A grant names no account. So the client's choice of an account would reach the tables of each tenant.
        raise _Refusal(403, "AccessDenied", "Web identities are not accepted where namespaces are separate.")
    audience = gateway.settings.jwt_audience or AUDIENCE
    try:
        identity = gateway.identities.verify(token, [audience], gateway.real_now_ms() / 1000, scope="")
    except BadToken as error:
        raise _Refusal(400, "InvalidIdentityToken", f"The token is not accepted: {error}.") from None
    if not identity.object_id:
        raise _Refusal(400, "InvalidIdentityToken", "The token names no subject.")
    return identity


def _credentials(given: _RoleRequest, identity: Identity, gateway: Gateway) -> str:
    """Return the result of a request, with new keys. Raises _Refusal."""
    try:
        session = gateway.sessions.issue(identity, given.seconds, gateway.real_now_ms() / 1000)
    except BadSetting:
        raise _Refusal(501, "NotImplemented", "Sessions need the setting secret_key.") from None
    if session is None:
        raise _Refusal(400, "PackedPolicyTooLarge", "The groups and roles of the token are too many.")
    expiration = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(session.expires_s))
    subject, role_id = escape(identity.object_id), session.access_id.replace("ASIA", "AROA", 1)
    arn = f"arn:aws:sts::{given.account}:assumed-role/{given.role}/{given.session_name}"
    return (
        f"<{OPERATION}Result><SubjectFromWebIdentityToken>{subject}</SubjectFromWebIdentityToken>"
        f"<AssumedRoleUser><Arn>{arn}</Arn><AssumedRoleId>{role_id}:{given.session_name}</AssumedRoleId></AssumedRoleUser>"
        f"<Credentials><AccessKeyId>{session.access_id}</AccessKeyId><SecretAccessKey>{session.secret}</SecretAccessKey>"
        f"<SessionToken>{session.token}</SessionToken><Expiration>{expiration}</Expiration></Credentials></{OPERATION}Result>"
    )
