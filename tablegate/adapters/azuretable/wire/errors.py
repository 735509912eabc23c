"""Errors of the service: codes, statuses, texts, and their JSON and XML forms.

service_error_of maps each GatewayError. Texts: "Table service error codes" and "Common REST API error codes"
(learn.microsoft.com/rest/api/storageservices), and the texts that the official SDKs compare with.
"""

from __future__ import annotations

from collections.abc import Mapping
from xml.sax.saxutils import escape

import orjson

from tablegate.gateway.dialects.dialect import CONFLICT, INTERNAL, LIMIT, THROTTLING
from tablegate.gateway.model import errors
from tablegate.gateway.model.expressions.predicates import Not

REFUSALS = frozenset(
    {
        "AuthenticationFailed",
        "AuthorizationFailure",
        "AuthorizationPermissionMismatch",
        "AuthorizationProtocolMismatch",
        "AuthorizationResourceTypeMismatch",
        "AuthorizationServiceMismatch",
        "AuthorizationSourceIPMismatch",
        "Forbidden",
        "InvalidAuthenticationInfo",
        "NoAuthenticationInformation",
    }
)
"""Codes of failed authentication and authorization."""

# code -> (status, text)
CATALOGUE: dict[str, tuple[int, str]] = {
    "AtomFormatNotSupported": (415, "Atom format is not supported."),
    "AuthenticationFailed": (
        403,
        (
            "Server failed to authenticate the request. Make sure the value of Authorization header is formed "
            "correctly including the signature."
        ),
    ),
    "AuthorizationFailure": (403, "This request is not authorized to perform this operation."),
    "AuthorizationPermissionMismatch": (
        403,
        "This request is not authorized to perform this operation using this permission.",
    ),
    "AuthorizationProtocolMismatch": (
        403,
        "This request is not authorized to perform this operation using this protocol.",
    ),
    "AuthorizationResourceTypeMismatch": (
        403,
        "This request is not authorized to perform this operation using this resource type.",
    ),
    "AuthorizationServiceMismatch": (
        403,
        "This request is not authorized to perform this operation using this service.",
    ),
    "AuthorizationSourceIPMismatch": (
        403,
        "This request is not authorized to perform this operation using this source IP {ip}.",
    ),
    "BadRequest": (400, "The request is invalid."),
    "CommandsInBatchActOnDifferentPartitions": (
        400,
        "All commands in a batch must operate on same entity group.",
    ),
    "CorsPreflightFailure": (
        403,
        "CORS not enabled or no matching rule found for this request.",
    ),
    "DuplicatePropertiesSpecified": (400, "A property is specified more than one time."),
    "EntityAlreadyExists": (409, "The specified entity already exists."),
    "EntityTooLarge": (400, "The entity is larger than the maximum size permitted."),
    "Forbidden": (403, "This request is not authorized to perform this operation using this permission."),
    "InsufficientAccountPermissions": (403, "Write operations are not allowed."),
    "InternalError": (500, "Server encountered an internal error. Please try again after some time."),
    "InvalidAuthenticationInfo": (
        401,
        "Server failed to authenticate the request. Please refer to the information in the www-authenticate header.",
    ),
    "InvalidDuplicateRow": (
        400,
        (
            "The batch request contains multiple changes with same row key. An entity can appear only once in a "
            "batch request."
        ),
    ),
    "InvalidHeaderValue": (400, "The value for one of the HTTP headers is not in the correct format."),
    "InvalidInput": (400, "One of the request inputs is not valid."),
    "InvalidQueryParameterValue": (
        400,
        "Value for one of the query parameters specified in the request URI is invalid.",
    ),
    "InvalidResourceName": (400, "The specified resource name contains invalid characters."),
    "InvalidUri": (400, "The requested URI does not represent any resource on the server."),
    "InvalidValueType": (400, "The value specified is invalid."),
    "InvalidXmlDocument": (400, "XML specified is not syntactically valid."),
    "JsonFormatNotSupported": (415, "JSON format is not supported."),
    "MediaTypeNotSupported": (415, "None of the provided media types are supported"),
    "MethodNotAllowed": (405, "The requested method is not allowed on the specified resource."),
    "MissingRequiredHeader": (400, "An HTTP header that's mandatory for this request is not specified."),
    "NoAuthenticationInformation": (
        401,
        "Server failed to authenticate the request. Please refer to the information in the www-authenticate header.",
    ),
    "NotImplemented": (501, "The requested operation is not implemented on the specified resource."),
    "OperationTimedOut": (500, "The operation could not be completed within the permitted time."),
    "OutOfRangeInput": (400, "One of the request inputs is out of range."),
    "PropertiesNeedValue": (400, "The values are not specified for all properties in the entity."),
    "PropertyNameInvalid": (400, "The property name is invalid."),
    "PropertyNameTooLong": (400, "The property name exceeds the maximum allowed length (255)."),
    "PropertyValueTooLarge": (
        400,
        (
            "The property value exceeds the maximum allowed size (64KB). If the property value is a string, it is UTF-16 "
            "encoded and the maximum number of characters should be 32K or less."
        ),
    ),
    "RequestBodyTooLarge": (
        413,
        "The request body is too large and exceeds the maximum permissible limit.",
    ),
    "RequestEntityTooLarge": (
        413,
        "The request body is too large and exceeds the maximum permissible limit.",
    ),
    "ResourceNotFound": (404, "The specified resource does not exist."),
    "ServerBusy": (503, "The server is currently unable to receive requests. Please retry your request."),
    "TableAlreadyExists": (409, "The table specified already exists."),
    "TableBeingDeleted": (409, "The specified table is being deleted. Try operation later."),
    "TableNotFound": (404, "The table specified does not exist."),
    "TooManyProperties": (
        400,
        (
            "The entity contains more properties than allowed. Each entity can include up to 252 properties to store "
            "data. Each entity also has 3 system properties."
        ),
    ),
    "UnsupportedHttpVerb": (405, "The resource doesn't support the specified HTTP verb."),
    "UpdateConditionNotSatisfied": (
        412,
        "The update condition specified in the request was not satisfied.",
    ),
    "XMethodIncorrectCount": (400, "More than one X-HTTP-Method is specified."),
    "XMethodIncorrectValue": (400, "The specified X-HTTP-Method is invalid."),
    "XMethodNotUsingPost": (
        400,
        "The request uses X-HTTP-Method with an HTTP verb other than POST.",
    ),
}

INJECTABLE_FAULTS: Mapping[str, str] = {
    **{code: code for code, (_, text) in CATALOGUE.items() if "{" not in text},
    THROTTLING: "ServerBusy",
    INTERNAL: "InternalError",
    CONFLICT: "UpdateConditionNotSatisfied",
    LIMIT: "OperationTimedOut",
}
"""The errors that a test can inject (control/faults.py)."""

NAME_LENGTH = "The specified resource name length is not within the permissible limits."
KEY_COUNT = (
    "The number of keys specified in the URI does not match number of key properties for the resource."
)
TOO_MANY_CHANGES = "The batch request operation exceeds the maximum 100 changes per change set."


class ServiceError(Exception):
    """An error of the service: code, HTTP status and text. `headers` are added to the reply."""

    def __init__(self, code: str, text: str | None = None, headers: tuple[tuple[str, str], ...] = ()) -> None:
        self.code = code
        self.status, usual = CATALOGUE[code]
        self.text = usual if text is None else text
        self.headers = headers
        super().__init__(f"{code}: {self.text}")


# By the rules of entity_renderer.py
_ROWS_REFUSED = {"properties": "TooManyProperties", "size": "EntityTooLarge"}


def service_error_of(error: errors.GatewayError) -> ServiceError:
    """Return the service's error for an error of the engine."""
    match error:
        case errors.ConditionFailed(
            condition=Not()
        ):  # the only negated condition used here: "no such entity exists"
            return ServiceError("EntityAlreadyExists")
        case errors.ConditionFailed(row=None):
            return ServiceError("ResourceNotFound")
        case errors.ConditionFailed():
            return ServiceError("UpdateConditionNotSatisfied")
        case errors.TableMissing():
            return ServiceError("TableNotFound")
        case errors.TableExists():
            return ServiceError("TableAlreadyExists")
        case errors.TableBusy(state="deleting"):
            return ServiceError("TableBeingDeleted")
        case errors.RowRuleViolated(rule=rule):
            return ServiceError(_ROWS_REFUSED[rule])
        case errors.InvalidInput():
            return ServiceError("InvalidInput")
        case errors.NotPermitted():
            return ServiceError("AuthorizationPermissionMismatch")
        case errors.NotAllowed():
            return ServiceError("AuthorizationFailure", error.facts.get("text"))
        case errors.QuotaExceeded(kind="bytes" | "write_units"):
            return ServiceError("ServerBusy", "Ingress is over the account limit.")
        case errors.QuotaExceeded(kind="read_units"):
            return ServiceError("ServerBusy", "Egress is over the account limit.")
        case errors.QuotaExceeded():
            return ServiceError("ServerBusy", "Operations per second is over the account limit.")
        case errors.TableBusy() | errors.Busy() | errors.PartitionLocked() | errors.Throttled():
            return ServiceError("ServerBusy")
        case errors.NotInstalled():
            return ServiceError("NotImplemented")
        case errors.CommitUnknown():
            return ServiceError("OperationTimedOut")
        case _:
            return ServiceError("InternalError")


def as_json(error: ServiceError, request_id: str, time: str) -> bytes:
    """Return the OData form. `time` is a service timestamp."""
    value = f"{error.text}\nRequestId:{request_id}\nTime:{time}"
    message = {"lang": "en-US", "value": value}
    return orjson.dumps({"odata.error": {"code": error.code, "message": message}})


def as_xml(error: ServiceError, request_id: str, time: str) -> bytes:
    """Return the XML form, for operations with XML documents. It is that of OData, not of Blob storage."""
    text = f"{error.text}\nRequestId:{request_id}\nTime:{time}"
    return (
        '<?xml version="1.0" encoding="utf-8"?>'
        '<m:error xmlns:m="http://schemas.microsoft.com/ado/2007/08/dataservices/metadata">'
        f'<m:code>{escape(error.code)}</m:code><m:message xml:lang="en-US">{escape(text)}</m:message></m:error>'
    ).encode()
