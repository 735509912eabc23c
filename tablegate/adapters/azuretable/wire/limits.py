"""Limits of the Azure Table service, each with its unit. All limits of this dialect are here.

The default source is "Understanding the Table service data model" (learn.microsoft.com/rest/api/storageservices).
"""

from __future__ import annotations

# Names and keys
TABLE_NAME_MIN_CHARACTERS = 3
TABLE_NAME_MAX_CHARACTERS = 63
PROPERTY_NAME_MAX_CHARACTERS = 255
KEY_MAX_UNITS = 512  # of UTF-16: 1 KiB

# Entities
ENTITY_MAX_BYTES = 1 << 20
PROPERTIES_MAX = 252  # besides PartitionKey, RowKey and Timestamp
STRING_MAX_UNITS = 32 * 1024  # of UTF-16: 64 KiB
BINARY_MAX_BYTES = 64 * 1024
DATETIME_MIN_YEAR = 1601

# Requests
BODY_MAX_BYTES = 4 << 20
CHANGES_MAX = 100  # of one changeset
CHANGE_HEAD_MAX_BYTES = 16 << 10  # ours, as are those below: of a part of a batch or of a change in it
QUERY_HEAD_MAX_BYTES = (
    128 << 10
)  # a query is the only operation of its batch, and its filter may be percent-encoded
PART_HEADERS_MAX = 200
SEEMING_DELIMITERS_MAX = 10_000  # delimiters in a batch that are not on a line of their own
OPTIONS_MAX = 256  # of one query
CLIENT_REQUEST_ID_MAX_CHARACTERS = 1024
JSON_NODES_MAX = (
    10_000  # ours: objects, lists and members of one entity. Beyond it, the body is rejected without parsing
)
CLOCK_SKEW_MAX_SECONDS = 15 * 60
FIRST_VERSION_WITH_BATCHES = "2009-04-14"  # "Windows Azure Table", May 2009, section 4.1

# Queries
PAGE_MAX_ENTITIES = 1000
PAGE_MAX_SECONDS = 5.0
PAGE_MAX_BYTES = 16 << 20  # ours: of returned rows, to bound the memory of a query
FILTER_MAX_CHARACTERS = 32 * 1024
FILTER_MAX_DEPTH = 100
FILTER_MAX_WORDS = 4096  # ours. "Querying tables and entities" allows 15 comparisons
ECHO_MAX_CHARACTERS = 4096  # ours: of a filter or an ETag in an error text

# Cosmos DB for Table (its FAQ, "Where is Table API not identical with Azure Table storage behavior?")
COSMOS_TABLE_NAME_MAX_CHARACTERS = 254
COSMOS_ROW_KEY_MAX_BYTES = 255
COSMOS_BODY_MAX_BYTES = 2 << 20
COSMOS_ENTITY_MAX_BYTES = 2 << 20  # Azure/azure-sdk-for-net issue 20533. It has no limit on a value
COSMOS_PAGE_MAX_ENTITIES = 10_000  # ours. The service has no maximum, and this bounds the memory of a page

# Service and access policies
POLICIES_MAX = 5
POLICY_ID_MAX_CHARACTERS = 64
CORS_RULES_MAX = 5
CORS_LIST_MAX = 64
CORS_PREFIX_HEADERS_MAX = 2
CORS_ENTRY_MAX_CHARACTERS = 256
CORS_MAX_BYTES = 2 * 1024
RETENTION_MAX_DAYS = 365
DELEGATION_KEY_MAX_SECONDS = 7 * 24 * 3600
XML_MAX_BYTES = 64 * 1024
