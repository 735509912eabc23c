"""The service's texts about expressions and their legacy forms, as templates by rule, in the two styles of messages.py.

Sources: dynalite's tests (recorded from the service: `classic`); comments of ScyllaDB's test/alternator; captures of 2026
in dynoxide, ExtendDB and floci, each named where it differs from the rest.
"""

from __future__ import annotations

from adapters.dynamodb.messages import CLASSIC, LATEST

_PATHS = "with each other; must remove or rewrite one of these paths; path one: {one}, path two: {two}"
_BOUNDS = "lower bound operand: AttributeValue: {lower}, upper bound operand: AttributeValue: {upper}"

_TEXTS = {
    # Any expression; "Invalid <Kind>Expression: " stands before these.
    "empty": "The expression can not be empty;",
    "size": "Expression size has exceeded the maximum allowed size; expression size: {size}",
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
    # Placeholders
    "names-empty": "ExpressionAttributeNames must not be empty",
    "names-key": 'ExpressionAttributeNames contains invalid key: Syntax error; key: "{key}"',
    "names-key-size": "ExpressionAttributeNames contains invalid key: "
    "The expression attribute map contains a key that is too long; size of key: {size}",
    "names-value-empty": "ExpressionAttributeNames contains invalid value: Empty attribute name for key {key}",
    "names-unused": "Value provided in ExpressionAttributeNames unused in expressions: keys: {{{keys}}}",
    "values-empty": "ExpressionAttributeValues must not be empty",
    "values-key": 'ExpressionAttributeValues contains invalid key: Syntax error; key: "{key}"',
    "values-key-size": "ExpressionAttributeValues contains invalid key: "
    "The expression attribute map contains a key that is too long; size of key: {size}",
    "values-value": "ExpressionAttributeValues contains invalid value: {problem} for key {key}",
    "values-unused": "Value provided in ExpressionAttributeValues unused in expressions: keys: {{{keys}}}",
    # Which parameters go together
    "mixed": "Can not use both expression and non-expression parameters in the same request: "
    "Non-expression parameters: {{{legacy}}} Expression parameters: {{{modern}}}",
    "names-alone": "ExpressionAttributeNames can only be specified when using expressions",
    "values-alone": "ExpressionAttributeValues can only be specified when using expressions: {expressions} null",
    "operator-alone": "ConditionalOperator cannot be used without Filter or Expected",
    "operator-single": "ConditionalOperator can only be used when Filter or Expected has two or more elements",
    # Keys
    "key-update": "One or more parameter values were invalid: "
    "Cannot update attribute {name}. This attribute is part of the key",
    "key-path": "Key attributes must be scalars; "
    "list random access '[]' and map lookup '.' are not allowed: {role}: {name}",
    "filter-key": "{parameter} can only contain non-primary key attributes: Primary key attribute: {name}",
    "key-operator": "Invalid operator used in KeyConditionExpression: {operator}",
    "key-nested-operation": "KeyConditionExpressions cannot contain nested operations",
    "key-first-operand": "Invalid condition in KeyConditionExpression: "
    "{operator} operator must have the key attribute as its first operand",
    "key-several-names": "Invalid condition in KeyConditionExpression: "
    "Multiple attribute names used in one condition",
    "key-nested-path": "Invalid KeyConditionExpression: "
    "KeyConditionExpressions cannot have conditions on nested attributes",
    "key-no-name": "Invalid condition in KeyConditionExpression: No key attribute specified",
    "key-twice": "KeyConditionExpressions must only contain one condition per key",
    "key-count": "Conditions can be of length 1 or 2 only",
    "key-missed": "Query condition missed key schema element: {name}",
    "key-unsupported": "Query key condition not supported",
    "key-not-indexable": "Attempted conditional constraint is not an indexable operation",
    "key-kind": "One or more parameter values were invalid: Condition parameter type does not match schema type",
    "key-empty": "One or more parameter values are not valid. "
    "The AttributeValue for a key attribute cannot contain an empty {what} value. Key: {name}",
    # Keys of several attributes. The service's words are not on record; test_gsi_composite_keys.py of ScyllaDB wants
    # HASH or RANGE and "equality" in them.
    "key-hash-parts": "Query key condition not supported: "
    "all HASH key attributes of the index must be specified with equality conditions",
    "key-range-parts": "Query key condition not supported: RANGE key attributes of the index must be specified "
    "from left to right, and all but the last with equality conditions",
    # Legacy parameters
    "legacy-count": "One or more parameter values were invalid: "
    "Invalid number of argument(s) for the {operator} ComparisonOperator",
    "legacy-kinds": "One or more parameter values were invalid: "
    "AttributeValues inside AttributeValueList must be of same type",
    "legacy-kind": "One or more parameter values were invalid: "
    "ComparisonOperator {operator} is not valid for {kind} AttributeValue type",
    "legacy-between": "The BETWEEN condition was provided a range where the lower bound is greater than the upper bound",
    "expected-value-and-list": "One or more parameter values were invalid: "
    "Value and AttributeValueList cannot be used together for Attribute: {name}",
    "expected-exists-and-operator": "One or more parameter values were invalid: "
    "Exists and ComparisonOperator cannot be used together for Attribute: {name}",
    "expected-no-value": "One or more parameter values were invalid: "
    "Value or AttributeValueList must be used with ComparisonOperator: {operator} for Attribute: {name}",
    "expected-list-alone": "One or more parameter values were invalid: "
    "AttributeValueList can only be used with a ComparisonOperator for Attribute: {name}",
    "expected-exists-value": "One or more parameter values were invalid: "
    "Value must be provided when Exists is {exists} for Attribute: {name}",
    "expected-absent-value": "One or more parameter values were invalid: "
    "Value cannot be used when Exists is false for Attribute: {name}",
    "update-no-value": "One or more parameter values were invalid: "
    "Only DELETE action is allowed when no attribute value is specified",
    "update-delete-kind": "One or more parameter values were invalid: "
    "DELETE action with value is not supported for the type {kind}",
    "update-add-kind": "One or more parameter values were invalid: ADD action is not supported for the type {kind}",
    "update-mismatch": "Type mismatch for attribute to update",
    "duplicate-name": "One or more parameter values were invalid: Duplicate value in attribute name: {name}",
}

_CLASSIC_TEXTS = {
    "function-in-condition": _TEXTS["function-unknown"],
    "function-in-update": _TEXTS["function-unknown"],
    "change-type": "Incorrect operand type for operator or function; operator: {section}, operand type: {kind}",
    "key-nested-path": "KeyConditionExpressions cannot have conditions on nested attributes",
}


def text_of(rule: str, style: str = LATEST, **facts: object) -> str:
    """The text of a rule about expressions."""
    if style == CLASSIC and rule in _CLASSIC_TEXTS:
        return _CLASSIC_TEXTS[rule].format(**facts)
    return _TEXTS[rule].format(**facts)
