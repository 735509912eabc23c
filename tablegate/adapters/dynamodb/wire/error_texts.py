"""The service's texts as templates by rule: of requests, of expressions, and of JSON values of the wrong type.

errors.py has their frames and the texts about members that violate constraints. Sources: dynalite (captured from the
service), paritysuite's captures of the live service up to October 2026, docs/protocols/dynamodb.md rules 9 to 26 and
40. For expressions also comments of ScyllaDB's test/alternator, and captures of 2026 in dynoxide, ExtendDB and floci.
Each is named where it differs from the rest.
"""

from __future__ import annotations

import json
from typing import Any

from tablegate.adapters.dynamodb.wire import limits

INVALID = "One or more parameter values were invalid: "
NOT_VALID = "One or more parameter values are not valid. "
EMPTY_KEY = "The AttributeValue for a key attribute cannot contain an empty {kind} value. "
INVALID_REQUEST = "Invalid Request: "

_TEXTS: dict[str, str] = {
    # Values (rules 21 to 25). The two spaces in texts about sets are the service's.
    "empty-value": "Supplied AttributeValue is empty, must contain exactly one of the supported datatypes",
    "several-types": "Supplied AttributeValue has more than one datatypes set, "
    "must contain exactly one of the supported datatypes",
    "empty-number": "The parameter cannot be converted to a numeric value",
    "not-a-number": "The parameter cannot be converted to a numeric value: {text}",
    "number-overflow": "Number overflow. Attempting to store a number with magnitude larger than supported range",
    "number-underflow": "Number underflow. Attempting to store a number with magnitude smaller than supported range",
    "number-precision": "Attempting to store more than 38 significant digits in a Number",
    "null-false": INVALID + "Null attribute value types must have the value of true",
    "empty-string-set": INVALID + "An string set  may not be empty",
    "empty-number-set": INVALID + "An number set  may not be empty",
    "empty-binary-set": INVALID + "Binary sets should not be empty",
    "null-in-string-set": INVALID + "An string set may not have a null string as a member",
    "null-in-number-set": INVALID + "An number set may not have a null number as a member",
    "null-in-binary-set": INVALID + "Binary sets may not contain null values",
    "duplicate-strings": INVALID + "Input collection {members} contains duplicates.",
    "duplicate-numbers": "Input collection contains duplicates",
    "duplicate-binaries": INVALID + "Input collection {members}of type BS contains duplicates.",
    "nesting": "Nesting Levels have exceeded supported limits: "
    "Attributes in the item have nested levels beyond supported limit",
    "item-size": "Item size has exceeded the maximum allowed size",
    "update-size": "Item size to update has exceeded the maximum allowed size",
    "empty-name": "Empty attribute name",  # paritysuite deepRequests.test.ts, ten regions, October 2026
    "name-size": INVALID + "Attribute name is too large, must be less than 65536 bytes",
    "base64-length": "Base64 encoded length is expected a multiple of 4 bytes but found: {length}",
    "base64": "Invalid last non-pad Base64 character dectected",
    # Parameters that exclude each other (rules 15 and 20)
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
    "duplicate-attribute": INVALID + "Duplicate value in attribute name: {name}",
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
    "select-all-global": INVALID
    + "Select type ALL_ATTRIBUTES is not supported for global secondary index {index} "
    "because its projection type is not ALL",
    "global-not-projected": INVALID + "Global secondary index {index} does not project [{names}]",
    "filter-not-projected": INVALID
    + "Secondary index {index} does not project one or more filter attributes: [{names}]",
    "global-consistent": "Consistent reads are not supported on global secondary indexes",
    # Legacy conditions
    "value-and-list": INVALID + "Value and AttributeValueList cannot be used together for Attribute: {name}",
    "exists-and-operator": INVALID
    + "Exists and ComparisonOperator cannot be used together for Attribute: {name}",
    "operator-without-value": INVALID
    + "Value or AttributeValueList must be used with ComparisonOperator: {operator} for Attribute: {name}",
    "argument-count": INVALID + "Invalid number of argument(s) for the {operator} ComparisonOperator",
    "argument-types": INVALID + "AttributeValues inside AttributeValueList must be of same type",
    "argument-type": INVALID + "ComparisonOperator {operator} is not valid for {tag} AttributeValue type",
    "between-order": "The BETWEEN condition was provided a range where the lower bound is greater than the upper bound",
    "list-without-operator": INVALID
    + "AttributeValueList can only be used with a ComparisonOperator for Attribute: {name}",
    "exists-without-value": INVALID + "Value must be provided when Exists is {exists} for Attribute: {name}",
    "value-when-absent": INVALID + "Value cannot be used when Exists is false for Attribute: {name}",
    "operator-without-expected": "ConditionalOperator cannot be used without Filter or Expected",
    "operator-with-one": "ConditionalOperator can only be used when Filter or Expected has two or more elements",
    "update-needs-value": INVALID + "Only DELETE action is allowed when no attribute value is specified",
    "update-delete-type": INVALID + "DELETE action with value is not supported for the type {tag}",
    "update-add-type": INVALID + "ADD action is not supported for the type {tag}",
    # Batches and transactions
    "request-items-required": "The requestItems parameter is required for {name}",
    "too-many-writes": "Too many items requested for the BatchWriteItem call",
    "duplicate-keys": "Provided list of item keys contains duplicates",
    "not-one-action": "TransactItems can only contain one of Check, Put, Update or Delete",
    "payload-size": "Transaction payload size cannot exceed 4 MB",
    # Tables
    "required": "The parameter '{name}' is required but was not present in the request",
    "on-demand-with-units": INVALID
    + "Neither ReadCapacityUnits nor WriteCapacityUnits can be specified when BillingMode is PAY_PER_REQUEST",
    "on-demand-update-with-units": INVALID
    + "ProvisionedThroughput cannot be specified when BillingMode is PAY_PER_REQUEST",
    "encryption-off-with-more": INVALID + "{name} can not be specified if Enabled is false",
    "encryption-aes": INVALID + "SSEType AES256 is not supported",
    "encryption-key-alone": INVALID + "SSEType KMS is required if KMSMasterKeyId is specified",
    "provisioned-without-units": INVALID
    + "ReadCapacityUnits and WriteCapacityUnits must both be specified when BillingMode is PROVISIONED",
    "provisioned-update": INVALID + "ProvisionedThroughput must be specified when BillingMode is PROVISIONED",
    "units-bounds": "Given value {value} for {name} is out of bounds",
    "index-units-bounds": "Given value {value} for {name} is out of bounds for index {index}",
    "key-undefined": "Invalid KeySchema: Some index key attribute have no definition",
    "keys-undefined": INVALID + "Some index key attributes are not defined in AttributeDefinitions. "
    "Keys: [{keys}], AttributeDefinitions: [{definitions}]",
    "same-key-twice": "Both the Hash Key and the Range Key element in the KeySchema have the same name",
    "first-not-hash": "Invalid KeySchema: The first KeySchemaElement is not a HASH key type",
    "second-not-range": "Invalid KeySchema: The second KeySchemaElement is not a RANGE key type",
    "same-key-among-many": "The KeySchema contains multiple key attributes with the same name",
    "hash-after-range": INVALID
    + "All HASH key attributes must precede RANGE key attributes in the KeySchema",
    "too-many-of-role": INVALID + "The KeySchema exceeds the maximum allowed number of {role} key attributes",
    "definitions-unused": INVALID + "Number of attributes in KeySchema does not exactly match "
    "number of attributes defined in AttributeDefinitions",
    "definitions-spare": INVALID + "Some AttributeDefinitions are not used. "
    "AttributeDefinitions: [{definitions}], keys used: [{keys}]",
    "definitions-missing": INVALID + "AttributeDefinitions is not specified for index: {index}",
    "definition-twice": "Attribute Name is duplicated: {name}",
    "local-empty": INVALID + "List of LocalSecondaryIndexes is empty",
    "global-empty": INVALID + "List of GlobalSecondaryIndexes is empty",
    "local-without-range": INVALID + "Table KeySchema does not have a range key, "
    "which is required when specifying a LocalSecondaryIndex",
    "local-index-range": INVALID + "Index KeySchema does not have a range key for index: {index}",
    "local-index-hash": INVALID
    + "Index KeySchema does not have the same leading hash key as table KeySchema "
    "for index: {index}. index hash key: {found}, table hash key: {wanted}",
    "projection-null": INVALID + "Unknown ProjectionType: null",
    "projection-names": INVALID + "ProjectionType is {type}, but NonKeyAttributes is specified",
    "projection-no-names": INVALID + "ProjectionType is INCLUDE, but NonKeyAttributes is not specified",
    "projection-too-many": INVALID + "Number of attributes to project exceeds the limit of {limit}",
    "projection-twice": INVALID + "Duplicate element in NonKeyAttributes: {name}",
    "index-name-twice": INVALID + "Duplicate index name: {index}",
    "local-count": INVALID + "Number of LocalSecondaryIndexes exceeds per-table limit of {limit}",
    "global-count": INVALID + "GlobalSecondaryIndex count exceeds the per-table limit of {limit}",
    "index-units-on-demand": INVALID + "ProvisionedThroughput should not be specified for index: {index} "
    "when BillingMode is PAY_PER_REQUEST",
    "index-units-missing": INVALID + "ProvisionedThroughput is not specified for index: {index}",
    "stream-view-missing": INVALID
    + "Table is being created with a stream enabled, UpdateViewType is required",
    "stream-view-spare": INVALID
    + "Table is being created with a stream disabled, UpdateViewType should not be specified",
    "on-demand-provisioned": INVALID
    + "{name} for OnDemandThroughput cannot be specified when table BillingMode is PROVISIONED.",
    "on-demand-range": INVALID
    + "Requested {name} for OnDemandThroughput for table is outside of valid range",
    "nothing-to-update": "At least one of ProvisionedThroughput, BillingMode, UpdateStreamEnabled, "
    "GlobalSecondaryIndexUpdates, SSESpecification, ReplicaUpdates, MultiAccountReplicaReady, ReplicaTransitRoleArn, "
    "{consistency}DeletionProtectionEnabled, OnDemandThroughput, WarmThroughput or TableClass is required",
    "replicas-and-more": INVALID + "Replica modification must be the only operation in the request",
    "group-and-more": "Requests that modify replicas or witnesses must not also modify other fields",
    "replica-actions-mixed": "Update table operation with more than one type of replica actions not allowed.",
    "replica-actions-several": "Update table operation with more than one create or delete replica actions not allowed",
    "replica-action-none": "There are no actions specified in the Replica Update Action of the request.",
    "strong-only-create": "Only Replica Create actions are supported when MultiRegionConsistency parameter is provided.",
    "only-change": INVALID + "{what} must be the only operation in the request",
    "on-demand-and-more": INVALID
    + "OnDemandThroughput can only be combined with BillingMode in an UpdateTable request",
    "stream-and-units": INVALID + "You cannot modify stream status while updating table IOPS",
    "index-and-units": INVALID + "You cannot create or delete index while updating table IOPS",
    "index-and-stream": INVALID + "You cannot create or delete index while changing stream status",
    "index-and-warm": INVALID
    + "Create global secondary index cannot be specified when updating WarmThroughput",
    "index-warm-empty": INVALID + "WarmThroughput must have at least one of ReadUnitsPerSecond or "
    "WriteUnitsPerSecond specified for index: {index}",
    "index-updates-none": INVALID + "List of GlobalSecondaryIndexUpdates is empty",
    "index-update-several": INVALID
    + "Only one global secondary index action is allowed per GlobalSecondaryIndexUpdate object",
    "index-update-empty": INVALID
    + "One of GlobalSecondaryIndexUpdate.Update, GlobalSecondaryIndexUpdate.Create, "
    "GlobalSecondaryIndexUpdate.Delete must not be null",
    "index-update-twice": INVALID
    + "Only one global secondary index update per index is allowed simultaneously. Index: {index}",
    # Vector indexes and searches (rule 42)
    "vector-billing": INVALID + "Vector indexes are only supported for PAY_PER_REQUEST tables",
    "vector-count": INVALID + "VectorIndex count exceeds the per-table limit of {limit}",
    "vector-dimensions": INVALID + "Number of dimensions must be between 1 and {limit} inclusive.",
    "vector-dimensions-differ": INVALID + "Conflicting attribute definition for '{name}'. "
    "All VectorIndexes on the same vector attribute must use the same dimensions.",
    "vector-attribute-defined": INVALID + "Conflicting attribute definition for '{name}'. "
    "An attribute cannot be defined in AttributeDefinitions when used as a VectorAttribute.",
    "search-schema-undefined": INVALID
    + "One element in SearchSchema is not defined in attribute definitions",
    "search-schema-count": INVALID + "Value '{count}' at 'SearchSchema' failed to satisfy constraint: "
    "Member must have {role} count less than or equal to {limit}",
    "top-k": "Provided TopK value '{value}' is out of valid range. The value must be between 1 and {limit} inclusive",
    "search-vector": "Search vector contains invalid values. "
    "All values in the search vector must be a 32-bit floating-point number attribute",
    "search-vector-size": "Input search vector dimension {actual} does not match vector index dimension {expected}",
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
    "sequence-missing": INVALID + "SequenceNumber must be provided for ShardIteratorType {type}",
    "sequence-spare": INVALID + "SequenceNumber must not be provided for ShardIteratorType {type}",
}


def bare(rule: str, **facts: Any) -> str:
    """Return the text of a rule without a frame.

    Lists are formatted as the service's older texts echo them. Long values are cut.
    """
    formatted = {
        name: echo(beginning(fact)) if isinstance(fact, list | str) else fact for name, fact in facts.items()
    }
    return _TEXTS[rule].format(**formatted)


def beginning(data: Any) -> Any:
    """Return the beginning of a request value, at most as long as an echo. Bounds the work of formatting it."""
    return _beginning(data, [limits.ECHO_CHARACTERS])


def _beginning(data: Any, budget: list[int]) -> Any:
    budget[0] -= 1
    if isinstance(data, str):
        data = data[: max(budget[0], 0) + 1]
        budget[0] -= len(data)
        return data
    if isinstance(data, list):
        return [_beginning(member, budget) for member in data if budget[0] > 0]
    if isinstance(data, dict):
        members = {}
        for name, member in data.items():
            if budget[0] <= 0:
                break
            members[_beginning(name, budget)] = _beginning(member, budget)
        return members
    return data


def echo(data: Any) -> str:
    """Format a request value as constraint texts repeat it."""
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


# Expressions

_PATHS = "with each other; must remove or rewrite one of these paths; path one: {one}, path two: {two}"
_BOUNDS = "lower bound operand: AttributeValue: {lower}, upper bound operand: AttributeValue: {upper}"

_EXPRESSION_TEXTS = {
    # Any expression. The prefix is "Invalid <Kind>Expression: ".
    "empty": "The expression can not be empty;",
    "size": "Expression size has exceeded the maximum allowed size; expression size: {size}",
    # paritysuite deepRequests.test.ts, ten regions, 2026-10-09: without the size for a transaction's Update
    "size-of-transacted-update": "Expression size has exceeded the maximum allowed size;",
    "syntax": 'Syntax error; token: "{token}", near: "{near}"',
    "parentheses": "The expression has redundant parentheses;",
    "operators": "The expression contains too many operators; operator count: {count}",
    "reserved": "Attribute name is a reserved keyword; reserved keyword: {name}",
    "index": "List index is not within the allowable range; index: [{index}]",
    "depth": "The document path has too many nesting levels; nesting levels: {levels}",
    "undefined-name": "An expression attribute name used in the document path is not defined; attribute name: {name}",
    "undefined-value": "An expression attribute value used in expression is not defined; attribute value: {name}",
    "function-unknown": "Invalid function name; function: {function}",
    "function-misused": "The function is not allowed to be used this way in an expression; function: {function}",
    "function-in-condition": "The function is not allowed in a condition expression; function: {function}",
    "function-in-update": "The function is not allowed in an update expression; function: {function}",
    "operand-count": "Incorrect number of operands for operator or function; "
    "operator or function: {function}, number of operands: {count}",
    "operand-type": "Incorrect operand type for operator or function; "
    "operator or function: {function}, operand type: {kind}",
    "operand-path": "Operator or function requires a document path; operator or function: {function}",
    "distinct": "The first operand must be distinct from the remaining operands for this operator or function; "
    "operator: {function}, first operand: {path}",
    "type-name": "Invalid attribute type name found; type: {name}, valid types: {{B,NULL,SS,BOOL,L,BS,N,NS,S,M}}",
    "in-operands": "The IN operator is provided with too many operands; number of operands: {count}",
    "between-kinds": "The BETWEEN operator requires same data type for lower and upper bounds; " + _BOUNDS,
    "between-order": "The BETWEEN operator requires upper bound to be greater than or equal to lower bound; "
    + _BOUNDS,
    "overlap": "Two document paths overlap " + _PATHS,
    "conflict": "Two document paths conflict " + _PATHS,
    "section-twice": 'The "{section}" section can only be used once in an update expression;',
    "change-type": "Incorrect operand type for operator or function; "
    "operator: {section}, operand type: {kind}, typeSet: ALLOWED_FOR_{section}_OPERAND",
    "set-argument": "The second argument to {function} must be a value with type SET at {place}",
    # Placeholders
    "names-unused": "Value provided in ExpressionAttributeNames unused in expressions: keys: {{{keys}}}",
    "values-unused": "Value provided in ExpressionAttributeValues unused in expressions: keys: {{{keys}}}",
    # Keys
    "key-update": INVALID + "Cannot update attribute {name}. This attribute is part of the key",
    "key-path": "Key attributes must be scalars; "
    "list random access '[]' and map lookup '.' are not allowed: {role}: {name}",
    "filter-key": "{parameter} can only contain non-primary key attributes: Primary key attribute: {name}",
    "key-operator": "Invalid operator used in KeyConditionExpression: {operator}",
    "key-nested-operation": "Invalid KeyConditionExpression: KeyConditionExpressions cannot contain nested operations",
    "key-first-operand": "Invalid condition in KeyConditionExpression: "
    "{operator} operator must have the key attribute as its first operand",
    "key-several-names": "Invalid condition in KeyConditionExpression: "
    "Multiple attribute names used in one condition",
    "key-nested-path": "Invalid KeyConditionExpression: "
    "KeyConditionExpressions cannot have conditions on nested attributes",
    "key-no-name": "Invalid condition in KeyConditionExpression: No key attribute specified",
    "key-twice": "Invalid KeyConditionExpression: KeyConditionExpressions must only contain one condition per key",
    "key-too-many": "The number of query conditions ({count}) exceeds "
    "the number of key attributes defined in the schema ({most})",
    "key-missed": "Query condition missed key schema element: {name}",
    "key-unsupported": "Query key condition not supported",
    "key-not-indexable": "Attempted conditional constraint is not an indexable operation",
    "key-kind": INVALID + "Condition parameter type does not match schema type",
    "key-empty": NOT_VALID + EMPTY_KEY + "Key: {name}",
    # Reported by users of the service (praetorian-inc/chariot-ui issue 353) and the text of DynamoDB Local.
    "index-key-empty": NOT_VALID
    + "A value specified for a secondary index key is not supported. "
    + EMPTY_KEY
    + "IndexName: {index}, IndexKey: {name}",
    # Keys of several attributes. The text for RANGE is paritysuite's capture. No record of HASH exists, so its
    # text is analogous.
    "key-hash-parts": "HASH key attributes {names} must have equality conditions specified in the query",
    "key-range-parts": "RANGE key attributes {names} must have equality conditions specified in the query "
    "because a condition is present on key attribute {last}",
    # Legacy parameters
    "update-mismatch": "Type mismatch for attribute to update",
}


def expression_text(rule: str, **facts: object) -> str:
    """Return the text of a rule about expressions."""
    return _EXPRESSION_TEXTS[rule].format(**facts)


# JSON values of the wrong type (SerializationException): dynalite validations/index.js

_MODEL = "com.amazonaws.dynamodb.v20120810."
_NO_CLASS = (
    "class sun.reflect.generics.reflectiveObjects.ParameterizedTypeImpl cannot be cast to class java.lang.Class "
    "(sun.reflect.generics.reflectiveObjects.ParameterizedTypeImpl and java.lang.Class are in module java.base "
    "of loader 'bootstrap')"
)
_STRUCTURE_FOUND = "Start of structure or map found where not expected"


def json_type(kind: str, data: Any, java: str = "", nested: bool = False) -> str:
    """Return the text of the service's deserializer for a JSON value of the wrong type.

    `kind`: String, Blob, Boolean, Integer, Long, Double, List, Map or structure. `java`: the class of a
    structure or of a map's values. `nested`: the member is inside a list or map.
    """
    if kind in _SCALARS:
        return _scalar_type(kind, data)
    if isinstance(data, dict):
        return _STRUCTURE_FOUND
    if not isinstance(data, list):
        if nested:
            return "Unexpected value type in payload" if kind == "structure" else _NO_CLASS
        return "Unexpected field type"
    if kind == "structure":
        return f"Unrecognized collection type class {_MODEL}{java}"
    member = java if "." in java else _MODEL + java
    return f"Unrecognized collection type java.util.Map<java.lang.String, {member}>"


_SCALARS = frozenset({"String", "Blob", "Boolean", "Short", "Integer", "Long", "Double"})


def _scalar_type(kind: str, data: Any) -> str:
    if isinstance(data, dict):
        return _STRUCTURE_FOUND
    if isinstance(data, list):
        return f"Unrecognized collection type class java.{'nio.ByteBuffer' if kind == 'Blob' else 'lang.' + kind}"
    if kind == "Blob":
        return "only base-64-encoded strings are convertible to bytes"
    if isinstance(data, str):
        return (
            "Unexpected token received from parser"
            if kind == "Boolean"
            else f"STRING_VALUE cannot be converted to {kind}"
        )
    if isinstance(data, bool):
        return f"{'TRUE' if data else 'FALSE'}_VALUE cannot be converted to {kind}"
    number_kind = "NUMBER" if isinstance(data, int) or data.is_integer() else "DECIMAL"
    return f"{number_kind}_VALUE cannot be converted to {kind}"
