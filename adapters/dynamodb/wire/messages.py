"""The service's texts about requests, as templates by rule, in two styles.

`2026` is what us-east-1 and most other regions said in the autumn of 2026; `classic` what the service said for its first
decade and what dynalite's tests assert. Most texts are the same in both; what differs is which operations stop at the first
violation, and which put a frame around which rules. A style is an argument of every function here, never a setting of the
module. Facts: dynalite (captured from the service), paritysuite's captures against the live service up to October 2026,
docs/protocols/dynamodb.md rules 9 to 26 and 40.
"""

from __future__ import annotations

import json
from base64 import b64decode
from collections.abc import Callable
from dataclasses import dataclass
from heapq import nsmallest
from typing import Any, Literal

from adapters.dynamodb.wire import errors, limits
from adapters.dynamodb.wire.errors import (
    NESTED_TOO_DEEP,
    NUMBER_OVERFLOW,
    NUMBER_TOO_PRECISE,
    NUMBER_UNDERFLOW,
    UPDATED_TOO_LARGE,
    ServiceError,
    validation,
)

LATEST, CLASSIC = errors.LATEST, errors.CLASSIC

_INVALID = "One or more parameter values were invalid: "

_TEXTS: dict[str, str] = {
    # Values (rules 21 to 25). In these two of the sets the service writes two spaces.
    "empty-value": "Supplied AttributeValue is empty, must contain exactly one of the supported datatypes",
    "several-types": "Supplied AttributeValue has more than one datatypes set, "
    "must contain exactly one of the supported datatypes",
    "empty-number": "The parameter cannot be converted to a numeric value",
    "not-a-number": "The parameter cannot be converted to a numeric value: {text}",
    "number-overflow": NUMBER_OVERFLOW,
    "number-underflow": NUMBER_UNDERFLOW,
    "number-precision": NUMBER_TOO_PRECISE,
    "null-false": _INVALID + "Null attribute value types must have the value of true",
    "empty-string-set": _INVALID + "An string set  may not be empty",
    "empty-number-set": _INVALID + "An number set  may not be empty",
    "empty-binary-set": _INVALID + "Binary sets should not be empty",
    "null-in-string-set": _INVALID + "An string set may not have a null string as a member",
    "null-in-number-set": _INVALID + "An number set may not have a null number as a member",
    "null-in-binary-set": _INVALID + "Binary sets may not contain null values",
    "duplicate-strings": _INVALID + "Input collection {members} contains duplicates.",
    "duplicate-numbers": "Input collection contains duplicates",
    "duplicate-binaries": _INVALID + "Input collection {members}of type BS contains duplicates.",
    "nesting": NESTED_TOO_DEEP,
    "item-size": "Item size has exceeded the maximum allowed size",
    "update-size": UPDATED_TOO_LARGE,
    "empty-name": "Empty attribute name",  # paritysuite deepRequests.test.ts, ten regions, October 2026
    "name-size": _INVALID + "Attribute name is too large, must be less than 65536 bytes",
    "base64-length": "Base64 encoded length is expected a multiple of 4 bytes but found: {length}",
    "base64": "Invalid last non-pad Base64 character dectected",
    # Parameters that do not go together (rules 15 and 20)
    "mixed-parameters": "Can not use both expression and non-expression parameters in the same request: "
    "Non-expression parameters: {{{others}}} Expression parameters: {{{expressions}}}",
    "names-without-expression": "ExpressionAttributeNames can only be specified when using expressions",
    "values-without-expression": "ExpressionAttributeValues can only be specified when using expressions: {missing}",
    "values-alone": "ExpressionAttributeValues can only be specified when using expressions",
    "names-empty": "ExpressionAttributeNames must not be empty",
    "values-empty": "ExpressionAttributeValues must not be empty",
    "names-key": 'ExpressionAttributeNames contains invalid key: Syntax error; key: "{key}"',
    "values-key": 'ExpressionAttributeValues contains invalid key: Syntax error; key: "{key}"',
    "names-key-size": "ExpressionAttributeNames contains invalid key: "
    "The expression attribute map contains a key that is too long; size of key: {size}",
    "values-key-size": "ExpressionAttributeValues contains invalid key: "
    "The expression attribute map contains a key that is too long; size of key: {size}",
    "values-value": "ExpressionAttributeValues contains invalid value: {text} for key {key}",
    "names-value": "ExpressionAttributeNames contains invalid value: {text} for key {key}",
    "expression-empty": "Invalid {name}: The expression can not be empty;",
    "start-key": "The provided starting key is invalid: {text}",
    "start-key-invalid": "The provided starting key is invalid",
    "start-key-outside": "The provided starting key is outside query boundaries based on provided conditions",
    "start-key-range": "The provided starting key does not match the range key predicate",
    "start-key-one-row": "The query can return at most one row and cannot be restarted",
    "start-key-exclusive": "The provided exclusive start key is invalid: ExclusiveStartKey: {key}",
    "start-key-segment": "Invalid ExclusiveStartKey. Please use ExclusiveStartKey with correct Segment. "
    "TotalSegments: {total} Segment: {segment}",
    "return-values": "ReturnValues can only be ALL_OLD or NONE",
    "operators": "The expression contains too many operators; operator count: {count}",
    "duplicate-attribute": _INVALID + "Duplicate value in attribute name: {name}",
    "no-key-condition": "Either the KeyConditions or KeyConditionExpression parameter must be specified in the request.",
    "condition-count": "Conditions can be of length 1 or 2 only",
    "total-segments-missing": "The TotalSegments parameter is required but was not present in the request "
    "when Segment parameter is present",
    "segment-missing": "The Segment parameter is required but was not present in the request "
    "when parameter TotalSegments is present",
    "segment-range": "The Segment parameter is zero-based and must be less than parameter TotalSegments: "
    "Segment: {segment} is not less than TotalSegments: {total}",
    "select-attributes": "Cannot specify the AttributesToGet when choosing to get {select}",
    "select-projection": "Cannot specify the ProjectionExpression when choosing to get {select}",
    "select-nothing": "Must specify the AttributesToGet or ProjectionExpression when choosing to get SPECIFIC_ATTRIBUTES",
    "select-projected": "ALL_PROJECTED_ATTRIBUTES can be used only when Querying using an IndexName",
    "select-all-global": _INVALID
    + "Select type ALL_ATTRIBUTES is not supported for global secondary index {index} "
    "because its projection type is not ALL",
    "global-not-projected": _INVALID + "Global secondary index {index} does not project [{names}]",
    "filter-not-projected": _INVALID
    + "Secondary index {index} does not project one or more filter attributes: [{names}]",
    "global-consistent": "Consistent reads are not supported on global secondary indexes",
    # Legacy conditions
    "value-and-list": _INVALID + "Value and AttributeValueList cannot be used together for Attribute: {name}",
    "exists-and-operator": _INVALID
    + "Exists and ComparisonOperator cannot be used together for Attribute: {name}",
    "operator-without-value": _INVALID
    + "Value or AttributeValueList must be used with ComparisonOperator: {operator} for Attribute: {name}",
    "argument-count": _INVALID + "Invalid number of argument(s) for the {operator} ComparisonOperator",
    "argument-types": _INVALID + "AttributeValues inside AttributeValueList must be of same type",
    "argument-type": _INVALID + "ComparisonOperator {operator} is not valid for {tag} AttributeValue type",
    "between-order": "The BETWEEN condition was provided a range where the lower bound is greater than the upper bound",
    "list-without-operator": _INVALID
    + "AttributeValueList can only be used with a ComparisonOperator for Attribute: {name}",
    "exists-without-value": _INVALID + "Value must be provided when Exists is {exists} for Attribute: {name}",
    "value-when-absent": _INVALID + "Value cannot be used when Exists is false for Attribute: {name}",
    "operator-without-expected": "ConditionalOperator cannot be used without Filter or Expected",
    "operator-with-one": "ConditionalOperator can only be used when Filter or Expected has two or more elements",
    "update-needs-value": _INVALID + "Only DELETE action is allowed when no attribute value is specified",
    "update-delete-type": _INVALID + "DELETE action with value is not supported for the type {tag}",
    "update-add-type": _INVALID + "ADD action is not supported for the type {tag}",
    # Batches and transactions
    "request-items-required": "The requestItems parameter is required for {name}",
    "too-many-gets": "Too many items requested for the BatchGetItem call",
    "too-many-writes": "Too many items requested for the BatchWriteItem call",
    "duplicate-keys": "Provided list of item keys contains duplicates",
    "not-one-request": "Supplied AttributeValue has more than one datatypes set, "
    "must contain exactly one of the supported datatypes",
    "not-one-action": "TransactItems can only contain one of Check, Put, Update or Delete",
    "payload-size": "Transaction payload size cannot exceed 4 MB",
    # Tables
    "required": "The parameter '{name}' is required but was not present in the request",
    "table-name-length": "{name} must be at least 3 characters long and at most 255 characters long",
    "on-demand-with-units": _INVALID
    + "Neither ReadCapacityUnits nor WriteCapacityUnits can be specified when BillingMode is PAY_PER_REQUEST",
    "provisioned-without-units": _INVALID
    + "ReadCapacityUnits and WriteCapacityUnits must both be specified when BillingMode is PROVISIONED",
    "provisioned-update": _INVALID
    + "ProvisionedThroughput must be specified when BillingMode is PROVISIONED",
    "units-bounds": "Given value {value} for {name} is out of bounds",
    "index-units-bounds": "Given value {value} for {name} is out of bounds for index {index}",
    "key-undefined": "Invalid KeySchema: Some index key attribute have no definition",
    "keys-undefined": _INVALID + "Some index key attributes are not defined in AttributeDefinitions. "
    "Keys: [{keys}], AttributeDefinitions: [{definitions}]",
    "same-key-twice": "Both the Hash Key and the Range Key element in the KeySchema have the same name",
    "first-not-hash": "Invalid KeySchema: The first KeySchemaElement is not a HASH key type",
    "second-not-range": "Invalid KeySchema: The second KeySchemaElement is not a RANGE key type",
    "same-key-among-many": "The KeySchema contains multiple key attributes with the same name",
    "hash-after-range": _INVALID
    + "All HASH key attributes must precede RANGE key attributes in the KeySchema",
    "too-many-of-role": _INVALID
    + "The KeySchema exceeds the maximum allowed number of {role} key attributes",
    "definitions-unused": _INVALID + "Number of attributes in KeySchema does not exactly match "
    "number of attributes defined in AttributeDefinitions",
    "definitions-spare": _INVALID + "Some AttributeDefinitions are not used. "
    "AttributeDefinitions: [{definitions}], keys used: [{keys}]",
    "definition-twice": "Attribute Name is duplicated: {name}",
    "definition-twice-classic": "Cannot have two attributes with the same name",  # PynamoDB test_discriminator_index.py
    "local-empty": _INVALID + "List of LocalSecondaryIndexes is empty",
    "global-empty": _INVALID + "List of GlobalSecondaryIndexes is empty",
    "local-without-range": _INVALID + "Table KeySchema does not have a range key, "
    "which is required when specifying a LocalSecondaryIndex",
    "local-index-range": _INVALID + "Index KeySchema does not have a range key for index: {index}",
    "local-index-hash": _INVALID
    + "Index KeySchema does not have the same leading hash key as table KeySchema "
    "for index: {index}. index hash key: {found}, table hash key: {wanted}",
    "projection-null": _INVALID + "Unknown ProjectionType: null",
    "projection-names": _INVALID + "ProjectionType is {type}, but NonKeyAttributes is specified",
    "projection-no-names": _INVALID + "ProjectionType is INCLUDE, but NonKeyAttributes is not specified",
    "projection-too-many": _INVALID + "Number of attributes to project exceeds the limit of {limit}",
    "projection-twice": _INVALID + "Duplicate element in NonKeyAttributes: {name}",
    "index-name-twice": _INVALID + "Duplicate index name: {index}",
    "local-count": _INVALID + "Number of LocalSecondaryIndexes exceeds per-table limit of {limit}",
    "global-count": _INVALID + "GlobalSecondaryIndex count exceeds the per-table limit of {limit}",
    "index-units-on-demand": _INVALID + "ProvisionedThroughput should not be specified for index: {index} "
    "when BillingMode is PAY_PER_REQUEST",
    "index-units-missing": _INVALID + "ProvisionedThroughput is not specified for index: {index}",
    "stream-view-missing": _INVALID
    + "Table is being created with a stream enabled, UpdateViewType is required",
    "stream-view-spare": _INVALID
    + "Table is being created with a stream disabled, UpdateViewType should not be specified",
    "on-demand-provisioned": _INVALID
    + "{name} for OnDemandThroughput cannot be specified when table BillingMode is PROVISIONED.",
    "on-demand-range": _INVALID
    + "Requested {name} for OnDemandThroughput for table is outside of valid range",
    "nothing-to-update": "At least one of ProvisionedThroughput, BillingMode, UpdateStreamEnabled, "
    "GlobalSecondaryIndexUpdates or SSESpecification or ReplicaUpdates is required",
    "nothing-to-update-today": "At least one of ProvisionedThroughput, BillingMode, UpdateStreamEnabled, "
    "GlobalSecondaryIndexUpdates, SSESpecification, ReplicaUpdates, MultiAccountReplicaReady, ReplicaTransitRoleArn, "
    "MultiRegionConsistency, DeletionProtectionEnabled, OnDemandThroughput, WarmThroughput or TableClass is required",
    "only-change": _INVALID + "{what} must be the only operation in the request",
    "on-demand-and-more": _INVALID
    + "OnDemandThroughput can only be combined with BillingMode in an UpdateTable request",
    "stream-and-units": _INVALID + "You cannot modify stream status while updating table IOPS",
    "index-and-units": _INVALID + "You cannot create or delete index while updating table IOPS",
    "index-and-stream": _INVALID + "You cannot create or delete index while changing stream status",
    "index-and-warm": _INVALID
    + "Create global secondary index cannot be specified when updating WarmThroughput",
    "index-updates-none": _INVALID + "List of GlobalSecondaryIndexUpdates is empty",
    "index-update-several": _INVALID
    + "Only one global secondary index action is allowed per GlobalSecondaryIndexUpdate object",
    "index-update-empty": _INVALID
    + "One of GlobalSecondaryIndexUpdate.Update, GlobalSecondaryIndexUpdate.Create, "
    "GlobalSecondaryIndexUpdate.Delete must not be null",
    "index-update-twice": _INVALID
    + "Only one global secondary index update per index is allowed simultaneously. Index: {index}",
    "unsupported-member": "{name} is not supported by this gateway",
    # Tags
    "arn-missing": "Invalid TableArn",
    "tags-missing": "1 validation error detected: Value null at 'tags' failed to satisfy constraint: "
    "Member must not be null",
    "tag-keys-missing": "1 validation error detected: Value null at 'tagKeys' failed to satisfy constraint: "
    "Member must not be null",
    "tags-none": "Atleast one Tag needs to be provided as Input.",
    "tag-keys-none": "Atleast one Tag Key needs to be provided as Input.",
    # Streams
    "sequence-missing": _INVALID + "SequenceNumber must be provided for ShardIteratorType {type}",
    "sequence-spare": _INVALID + "SequenceNumber must not be provided for ShardIteratorType {type}",
}

# Families that today's framework puts "1 validation error detected: " in front of, by operation (rule 11).
_FRAME = "1 validation error detected: "
# What is told in another way by who looks at values with today's framework (paritysuite, four regions, 2026-10-09).
NUMBERS_AND_DUPLICATES = frozenset(
    {
        "empty-number",
        "not-a-number",
        "number-overflow",
        "number-underflow",
        "number-precision",
        "duplicate-strings",
        "duplicate-numbers",
        "duplicate-binaries",
    }
)
_FRAMED_VALUES = NUMBERS_AND_DUPLICATES | {
    "empty-string-set",
    "empty-number-set",
    "empty-binary-set",
    "null-false",
    "nesting",
}
_FRAMED_PARAMETERS = frozenset(
    {"mixed-parameters", "values-without-expression", "values-alone", "return-values"}
)
# paritysuite putItem.test.ts and deleteItem.test.ts, eu-west-2 and us-east-1, 2026-10-09
_FRAMED_OF_WRITES = frozenset(
    {
        "values-empty",
        "names-empty",
        "names-without-expression",
        "value-and-list",
        "exists-and-operator",
        "operator-without-value",
        "argument-count",
        "argument-types",
        "argument-type",
        "between-order",
        "list-without-operator",
        "exists-without-value",
        "value-when-absent",
    }
)
_ITEM_WRITES = frozenset({"PutItem", "UpdateItem", "DeleteItem"})
# Those that look at values with today's framework: transactions, Scan and BatchWriteItem do not yet in most regions.
_TODAYS_VALUES = _ITEM_WRITES | {"GetItem", "BatchGetItem", "Query"}
_FRAMED: dict[str, frozenset[str]] = {
    **dict.fromkeys(_ITEM_WRITES, _FRAMED_VALUES | _FRAMED_PARAMETERS | _FRAMED_OF_WRITES),
    "Query": _FRAMED_PARAMETERS
    | {"select-attributes", "select-projection", "select-nothing", "select-projected"},
}


def bare(rule: str, **facts: Any) -> str:
    """The text of a rule without any frame. Lists among the facts are told as the classic service echoes them; what is
    long is cut."""
    told = {
        name: echo(beginning(fact)) if isinstance(fact, list | str) else fact for name, fact in facts.items()
    }
    return _TEXTS[rule].format(**told)


def framed(operation: str, rule: str, text: str, style: str) -> str:
    """A text as this operation shows it; `rule` names its family."""
    return _FRAME + text if style != CLASSIC and rule in _FRAMED.get(operation, ()) else text


def refused(operation: str, rule: str, style: str, **facts: Any) -> ServiceError:
    """The ValidationException of a rule that a request breaks."""
    return validation(framed(operation, rule, bare(rule, **facts), style))


def looks_as_today(operation: str, style: str) -> bool:
    """Whether an operation looks at values with today's framework."""
    return style != CLASSIC and operation in _TODAYS_VALUES


def value_text(operation: str, rule: str, style: str, **facts: Any) -> str:
    """The text of a refused attribute value, not yet framed."""
    if looks_as_today(operation, style):
        if rule == "duplicate-strings":
            quoted = ", ".join(f'"{member}"' for member in _to_the_repeat(facts["members"]))
            return bare(rule, members=_cut(f"[{quoted}]"))
        if rule == "duplicate-binaries":
            quoted = ",".join(f'"{member}"' for member in _to_the_repeat(facts["members"], b64decode))
            return bare(rule, members=_cut(f"[{quoted}]"))
        if rule == "duplicate-numbers":
            return f"{_INVALID}{bare(rule)}."
        if rule == "empty-number":
            return bare(rule) + ": "
    return bare(rule, **facts)


def _cut(told: str) -> str:
    return told[: limits.ECHO_CHARACTERS]


def _to_the_repeat(members: list[str], order: Callable[[str], Any] = str.encode) -> list[str]:
    """Members as today's framework lists them: in the order of their bytes up to the first that repeats one, then as sent."""
    seen: set[str] = set()
    for place, member in enumerate(members):
        if member in seen:
            # No more than an echo has room for.
            most = limits.ECHO_CHARACTERS
            return [*nsmallest(most, seen, key=order), *members[place : place + most]]
        seen.add(member)
    return members


# Member constraints (rule 10)


@dataclass(frozen=True, slots=True)
class Violation:
    """A member that breaks a constraint of its shape: its path with member names as they are on the wire and in lower
    camel case (keys of maps are left alone in both), its value as the style tells it (None: null), which rule of its shape the
    constraint is, and the constraint in words."""

    path: str
    camel_path: str
    value: str | None
    rule: Literal["null", "enum", "pattern", "minimum", "maximum", "keys", "values"]
    constraint: str


MOST_VIOLATIONS = 10

# What the new framework has taken over, by operation: it repeats no value and spells the path as the wire does. All else is
# told as ever (paritysuite's captures of 2026-09-20, eu-west-2 and us-east-1 alike).
_TAKEN_OVER: dict[str, frozenset[str]] = {
    **dict.fromkeys(_ITEM_WRITES, frozenset({"TableName", "ReturnValues"})),
    "Query": frozenset({"TableName", "Limit"}),
    "BatchGetItem": frozenset({"RequestItems", "Keys"}),
}
# What it had taken over when nubo-db/dynamodb-conformance 0ba4393 was recorded (eu-west-2, May 2026), if nothing else is wrong:
# of several mistakes dynalite has the texts.
_TAKEN_OVER_BY_MAY: dict[str, frozenset[str]] = {"Query": frozenset({"Limit"})}
# It lists the only set of these members in its own order and with a slip of its own.
_NEW_RETURN_VALUES = "Member must satisfy enum value set: [ALL_OLD, UPDATED_OLD, ALL_NEW, UPDATE_NEW, NONE]"


def lacking(violations: list[Violation]) -> bool:
    """Whether a request lacks a required member. The service tells such a request in its older form still today, so what
    dynalite recorded of such requests and what suites of 2026 recorded of complete ones do not contradict each other."""
    return any(violation.value is None for violation in violations)


def constraints(operation: str, violations: list[Violation], style: str) -> ServiceError:
    """The ValidationException for violations in the service's order; at most ten are told."""
    if style == CLASSIC:
        is_alone = len(violations) == 1
        taken_over = _TAKEN_OVER_BY_MAY.get(operation, frozenset()) if is_alone else frozenset()
        told = violations
    elif operation == "UpdateItem" and any(
        found.path == "Key" and found.value is None for found in violations
    ):
        # paritysuite updateItem.test.ts, "member errors beside a missing Key" (eu-west-2, us-east-1, 2026-10-09)
        taken_over, told = frozenset(), violations
    else:
        taken_over, told = _TAKEN_OVER.get(operation, frozenset()), _told_first(operation, violations)
        if _is_query_operator(operation, told[0]):
            return validation(_NEW_OPERATORS)
    texts = [_text_of(violation, taken_over) for violation in told[:MOST_VIOLATIONS]]
    count = "1 validation error" if len(texts) == 1 else f"{len(texts)} validation errors"
    return validation(f"{count} detected: " + "; ".join(texts))


def _told_first(operation: str, violations: list[Violation]) -> list[Violation]:
    """The violations that are told: those that are looked at before the others, if any."""
    if operation == "BatchWriteItem":
        # paritysuite batchOperations.test.ts, 2026-10-09: a bad enum is told alone over a bad table's name
        return [found for found in violations if not found.path.startswith("RequestItems")] or violations
    alone = [violation for violation in violations if _stands_alone(operation, violation)]
    return alone[:1] or violations


def _stands_alone(operation: str, violation: Violation) -> bool:
    """Whether the new framework looks at this before anything else, and then stops."""
    if violation.path == "TableName":
        return operation in _TAKEN_OVER and violation.rule == "minimum"
    if _is_query_operator(operation, violation):
        return True
    return operation == "UpdateItem" and violation.path == "ReturnValues"


def _is_query_operator(operation: str, violation: Violation) -> bool:
    """paritysuite query.test.ts, "ConditionalOperator beside Select" (two regions, 2026-10-09): told bare and alone."""
    return operation == "Query" and violation.path == "ConditionalOperator"


_NEW_OPERATORS = "Failed to satisfy constraint: Member must satisfy enum value set: [ALL, OR]"


def _text_of(violation: Violation, taken_over: frozenset[str]) -> str:
    """What is said of a violation; `taken_over`: the members that the new framework looks at."""
    member = violation.path.rpartition(".")[2]
    if violation.value is None or member not in taken_over:
        return _classic_text(violation)
    if violation.rule == "enum":
        return f"Failed to satisfy constraint: {_NEW_RETURN_VALUES}"
    if member in ("TableName", "RequestItems") and violation.rule != "minimum":
        return _classic_text(violation)
    return f"Value at '{violation.path}' failed to satisfy constraint: {violation.constraint}"


def _classic_text(violation: Violation) -> str:
    value = "null" if violation.value is None else f"'{violation.value}'"
    return f"Value {value} at '{violation.camel_path}' failed to satisfy constraint: {violation.constraint}"


# JSON types (SerializationException)

_MODEL = "com.amazonaws.dynamodb.v20120810."
_NO_CLASS = (
    "class sun.reflect.generics.reflectiveObjects.ParameterizedTypeImpl cannot be cast to class java.lang.Class "
    "(sun.reflect.generics.reflectiveObjects.ParameterizedTypeImpl and java.lang.Class are in module java.base "
    "of loader 'bootstrap')"
)
_STRUCTURE_FOUND = "Start of structure or map found where not expected"


def json_type(wanted: str, found: Any, java: str = "", nested: bool = False) -> str:
    """What the service's deserialiser says about a JSON value where another type is wanted.

    `wanted`: String, Blob, Boolean, Integer, Long, Double, List, Map or structure; `java`: the class of a structure or of
    a map's values; `nested`: the member stands inside a list or map. Source: dynalite validations/index.js.
    """
    if wanted in _SCALARS:
        return _scalar_type(wanted, found)
    if isinstance(found, dict):
        return _STRUCTURE_FOUND
    if not isinstance(found, list):
        if nested:
            return "Unexpected value type in payload" if wanted == "structure" else _NO_CLASS
        return "Unexpected field type"
    if wanted == "structure":
        return f"Unrecognized collection type class {_MODEL}{java}"
    member = java if "." in java else _MODEL + java
    return f"Unrecognized collection type java.util.Map<java.lang.String, {member}>"


_SCALARS = frozenset({"String", "Blob", "Boolean", "Short", "Integer", "Long", "Double"})


def _scalar_type(wanted: str, found: Any) -> str:
    if isinstance(found, dict):
        return _STRUCTURE_FOUND
    if isinstance(found, list):
        return f"Unrecognized collection type class java.{'nio.ByteBuffer' if wanted == 'Blob' else 'lang.' + wanted}"
    if wanted == "Blob":
        return "only base-64-encoded strings are convertible to bytes"
    if isinstance(found, str):
        return (
            "Unexpected token received from parser"
            if wanted == "Boolean"
            else f"STRING_VALUE cannot be converted to {wanted}"
        )
    if isinstance(found, bool):
        return f"{'TRUE' if found else 'FALSE'}_VALUE cannot be converted to {wanted}"
    kind = "NUMBER" if isinstance(found, int) or found.is_integer() else "DECIMAL"
    return f"{kind}_VALUE cannot be converted to {wanted}"


def beginning(data: Any) -> Any:
    """As much of a request value as an echo may have room for, so that no more is made of it."""
    return _beginning(data, [limits.ECHO_CHARACTERS])


def _beginning(data: Any, room: list[int]) -> Any:
    room[0] -= 1
    if isinstance(data, str):
        data = data[: max(room[0], 0) + 1]
        room[0] -= len(data)
        return data
    if isinstance(data, list):
        return [_beginning(member, room) for member in data if room[0] > 0]
    if isinstance(data, dict):
        begun = {}
        for name, member in data.items():
            if room[0] <= 0:
                break
            begun[_beginning(name, room)] = _beginning(member, room)
        return begun
    return data


def echo(data: Any) -> str:
    """A request value as constraint texts repeat it."""
    if isinstance(data, str):
        return data
    if data is None:
        return "null"
    if isinstance(data, bool):
        return "true" if data else "false"
    if isinstance(data, list):
        return "[" + ", ".join(map(echo, data)) + "]"
    if isinstance(data, dict):
        return json.dumps(data, separators=(",", ":"), ensure_ascii=False)
    return str(data)
