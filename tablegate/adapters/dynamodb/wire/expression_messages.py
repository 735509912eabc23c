"""The service's texts about expressions: templates by rule.

Sources: dynalite's tests (recorded from the service), comments of ScyllaDB's test/alternator, captures of 2026 in
dynoxide, ExtendDB and floci. Each is named where it differs from the rest.
"""

from __future__ import annotations

from tablegate.adapters.dynamodb.wire.messages import EMPTY_KEY, INVALID, NOT_VALID

_PATHS = "with each other; must remove or rewrite one of these paths; path one: {one}, path two: {two}"
_BOUNDS = "lower bound operand: AttributeValue: {lower}, upper bound operand: AttributeValue: {upper}"

_TEXTS = {
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


def text_of(rule: str, **facts: object) -> str:
    """Return the text of a rule about expressions."""
    return _TEXTS[rule].format(**facts)
