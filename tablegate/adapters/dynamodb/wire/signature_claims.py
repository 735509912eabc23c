"""The claim of a signature, Version 4: its members as sent in the Authorization header or in the query, unverified.

wire/auth.py verifies it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple
from urllib.parse import unquote_to_bytes

from tablegate.adapters.dynamodb.wire.errors import ServiceError
from tablegate.gateway.http.messages import Request

_SEPARATORS = re.compile(r"[,\s]+")


@dataclass(frozen=True, slots=True)
class Caller:
    """The access key id of a request and the contents of its signature. `namespace` contains the caller's tables."""

    access_id: str
    account: str
    region: str
    namespace: str


class SignatureClaim(NamedTuple):
    """The members of a signature, from the header or the query. `expires` is "" in a header's claim."""

    algorithm: str
    credential: str
    signed_headers: tuple[str, ...]
    signature: str
    date: str
    expires: str
    token: str


def claim_of(request: Request, query: str) -> SignatureClaim:
    """Return the claim of a request, in its header or its query. Raises ServiceError."""
    authorization = request.header("authorization")
    parameters = _query_parameters(query) if "X-Amz-" in query else {}
    presigned = "X-Amz-Algorithm" in parameters
    if authorization and presigned:
        text = "Found both 'X-Amz-Algorithm' as a query-string param and 'Authorization' as HTTP header."
        raise ServiceError("InvalidSignatureException", text)
    if presigned:
        return _claim_of_query(parameters)
    return claim_of_header(request)


def _query_parameters(query: str) -> dict[str, str]:
    """Return the decoded parameters by name. The first of several counts."""
    parameters: dict[str, str] = {}
    for pair in query.split("&"):
        name, _, value = pair.partition("=")
        parameters.setdefault(_decode(name), _decode(value))
    return parameters


def _decode(text: str) -> str:
    return unquote_to_bytes(text.encode("latin-1", "replace")).decode("latin-1")


_QUERY_PARAMETERS = (
    "X-Amz-Algorithm",
    "X-Amz-Credential",
    "X-Amz-Signature",
    "X-Amz-SignedHeaders",
    "X-Amz-Date",
)


def _claim_of_query(parameters: Mapping[str, str]) -> SignatureClaim:
    missing = [name for name in _QUERY_PARAMETERS if not parameters.get(name)]
    if missing:
        text = "".join(f"AWS query-string parameters must include '{name}'. " for name in missing)
        raise ServiceError("IncompleteSignatureException", text + "Re-examine the query-string parameters.")
    return SignatureClaim(
        parameters["X-Amz-Algorithm"],
        parameters["X-Amz-Credential"],
        _header_names(parameters["X-Amz-SignedHeaders"]),
        parameters["X-Amz-Signature"],
        parameters["X-Amz-Date"],
        parameters.get("X-Amz-Expires", ""),
        parameters.get("X-Amz-Security-Token", ""),
    )


def claim_of_header(request: Request) -> SignatureClaim:
    """Return the claim in the Authorization header. Raises ServiceError."""
    headers = request.header_map
    authorization = headers.get("authorization", "")
    if not authorization.lstrip().startswith("AWS4-"):
        raise ServiceError("MissingAuthenticationTokenException", "Request is missing Authentication Token")
    head, separator, signature = authorization.rpartition("Signature=")
    if separator and (signature.isalnum() or not _SEPARATORS.search(signature.rstrip())):
        algorithm, parameters, malformed = _split_authorization(head)
        signature = signature.rstrip()
    else:
        algorithm, parameters, malformed = _split_authorization.__wrapped__(authorization)
        signature = parameters.get("Signature", "")
    if malformed:
        text = f"'{malformed}' not a valid key=value pair (missing equal-sign) in Authorization header: '{authorization}'."
        raise ServiceError("IncompleteSignatureException", text)
    date = headers.get("x-amz-date") or headers.get("date")
    credential, names = parameters.get("Credential"), parameters.get("SignedHeaders")
    if credential and names and signature and date:
        token = headers.get("x-amz-security-token", "")
        return SignatureClaim(algorithm, credential, _header_names(names), signature, date, "", token)
    text = "".join(
        f"Authorization header requires '{name}' parameter. "
        for name, value in (
            ("Credential", credential),
            ("Signature", signature),
            ("SignedHeaders", names),
        )
        if not value
    )
    if not date:
        text += "Authorization header requires existence of either a 'X-Amz-Date' or a 'Date' header. "
    raise ServiceError("IncompleteSignatureException", f"{text}Authorization={authorization}")


@lru_cache(maxsize=1024)
def _split_authorization(text: str) -> tuple[str, dict[str, str], str]:
    """Return (algorithm, parameters, first parameter without an equal sign). Cached, because this text is the same
    for a day.

    Commas, blanks or both separate: proxies and SDKs differ (scylladb/scylladb#9568).
    """
    algorithm, *rest = _SEPARATORS.split(text.strip())
    parameters: dict[str, str] = {}
    malformed = ""
    for part in rest:
        name, equals, value = part.partition("=")
        if equals:
            parameters[name] = value
        elif part:
            malformed = malformed or part
    return algorithm, parameters, malformed


@lru_cache(maxsize=1024)
def _header_names(text: str) -> tuple[str, ...]:
    return tuple(sorted({name for name in text.lower().split(";") if name}))
