"""DynamoDB's limits, each with its unit. No other module repeats them.

Sources: the developer guide's quotas page, botocore 1.44.5 service-2.json, docs/protocols/dynamodb.md (rules in
brackets).
"""

from __future__ import annotations

# Requests

REQUEST_BYTES = 16 * 1024 * 1024  # body, also measured after decompression [6]
RESPONSE_BYTES = 16 * 1024 * 1024  # items of one BatchGetItem [29]
PAGE_BYTES = (
    1024 * 1024
)  # billed bytes at which a Query or Scan stops, including the item that reaches them [27]
COMPRESSED_RESPONSE_FROM_BYTES = 4096  # smaller answers stay plain [7]

JSON_LEVELS = 127  # depth that the newer validation of PutItem, UpdateItem and DeleteItem reads (measured: between 84 and 129)
LARGE_REQUEST_BYTES = 64 * 1024  # our own: lengths in larger requests are checked first
# Our own. The service repeats lists of 101 actions completely, about 35,000 characters
# (nubo-db/dynamodb-conformance, transactGetItems.test.ts and transactWriteItems.test.ts).
ECHO_CHARACTERS = 16_384  # maximum length of a rejected value in an error
ERROR_ECHO_CHARACTERS = 65_536  # maximum length of all values in one error

# Values

ITEM_BYTES = 409_600  # names and values, on every write surface [25]
MEASURED_BYTES = 512_000  # our own: measuring an item or value stops here
SET_MEMBERS = ITEM_BYTES // 2 + 256  # distinct members have at least two bytes, except 257 of them
TYPED_VALUES = 20_000  # our own: maximum number of values that are tested for wrong JSON types first
PLACEHOLDER_VALUES_BYTES = 2 * 1024 * 1024  # of all of ExpressionAttributeValues (developer guide, quotas)
NESTING_LEVELS = 32  # an attribute value has level 0, so 31 maps around a scalar are valid [6]
ATTRIBUTE_NAME_BYTES = 65_535  # [24]
KEY_NAME_CHARACTERS = 255  # key attributes of tables and indexes [24]
PROJECTED_NAME_CHARACTERS = 255  # names in NonKeyAttributes [24]
PARTITION_KEY_BYTES = 2048  # [24]
SORT_KEY_BYTES = 1024  # [24]
NUMBER_DIGITS = 38  # significant [21]
NUMBER_MAX_EXPONENT = 125  # of the leading digit [21]
NUMBER_MIN_EXPONENT = -130
# Cost of an UpdateExpression against the item size limit, in bytes (paritysuite itemSizeBySurface.test.ts,
# measured to the byte in eu-west-2 on 2026-10-09). 22 of 33 regions charge this.
UPDATE_BASE_BYTES = 3
UPDATE_WRITING_ACTION_BYTES = 19  # SET or ADD
UPDATE_CLEARING_ACTION_BYTES = 1  # REMOVE or DELETE
UPDATE_TARGET_ELEMENT_BYTES = 4  # each element of a path that is written, after the first
UPDATE_OPERAND_PATH_BYTES = 1  # a path that is read
UPDATE_OPERAND_ELEMENT_BYTES = 14  # each element of such a path
UPDATE_PLUS_BYTES = 34
UPDATE_MINUS_BYTES = 37
UPDATE_LIST_APPEND_BYTES = 37
UPDATE_IF_NOT_EXISTS_BYTES = 39

# Delay after a table is ACTIVE until continuous backups are ENABLED (ack-api-quirks, TABLE-111, October 2026).
CONTINUOUS_BACKUPS_DELAY_MS = 3_000
# Start of the year 10000: later times are rejected.
EARLIEST_SECONDS = -62_135_596_800  # the year 1
LATEST_SECONDS = 253_402_300_800

# Expressions [13]

EXPRESSION_BYTES = 4096
EXPRESSION_OPERATORS = 300
EXPRESSION_IN_OPERANDS = 100
EXPRESSION_PATH_STEPS = 32  # names and list indexes of one document path [6]
EXPRESSION_LIST_INDEX = 2**31 - 1
PLACEHOLDERS = 3 * EXPRESSION_BYTES // 2  # our own: three expressions cannot contain more
PLACEHOLDER_BYTES = 255  # a key of ExpressionAttributeNames or ExpressionAttributeValues, with its # or :

# Vector searches [42]

SEARCH_RESULTS = 100
SEARCH_ANSWER_BYTES = 16 * 1024 * 1024
VECTOR_REQUEST_BYTES = 1024  # minimum charge of a search and of a write of an entry

# Batches and transactions [29, 34]

BATCH_GET_KEYS = 100
BATCH_WRITE_REQUESTS = 25
TRANSACTION_ACTIONS = 100
TRANSACTION_BYTES = 4 * 1024 * 1024  # of requested writes, and of items read
TRANSACTION_TOKEN_CHARACTERS = 36
TRANSACTION_TOKEN_LIFETIME_MS = 10 * 60 * 1000

# PartiQL (botocore 1.44.5 service-2.json; the reads: a capture in floci, eu-west-2, September 2026)

STATEMENT_CHARACTERS = 8192
NEXT_TOKEN_CHARACTERS = 32768
BATCH_STATEMENTS = 25
STATEMENT_READS = 50  # reads for the WHERE of one SELECT

# Scans [28]

SCAN_SEGMENTS = 1_000_000

# Our own: maximum number of members validated in lists that have their own limits, which are checked later

LIST_MEMBERS = 1000
# Parameters from before expressions. The service takes 27,500 values for an IN (dynalite scan.js, recorded).
LEGACY_CONDITIONS = 10_000
LEGACY_VALUES = 50_000

# Tables and indexes [37, 40]

TABLE_NAME_MIN_CHARACTERS = 3
TABLE_NAME_CHARACTERS = 255
TABLE_ARN_CHARACTERS = 1024
LIST_TABLES_NAMES = 100
LOCAL_INDEXES = 5
GLOBAL_INDEXES = 20
PROJECTED_NAMES = 20  # NonKeyAttributes of one index
PROJECTED_NAMES_PER_TABLE = 100  # NonKeyAttributes over all indexes
INDEX_KEY_ATTRIBUTES_PER_ROLE = 4  # HASH and RANGE parts of a global index (November 2025)
ONLINE_INDEX_CHANGES = 1  # indexes made or dropped by one UpdateTable
VECTOR_INDEXES = 5  # per table [42]
VECTOR_DIMENSIONS = 4096
SEARCH_SCHEMA_HASHES = 1
SEARCH_SCHEMA_FILTERS = 18
INLINE_FILTER_BYTES = 10_240
DECREASES_PER_DAY = 4  # of provisioned throughput, without waiting
DECREASE_WAIT_MS = 60 * 60 * 1000  # between further changes
ENCRYPTION_CHANGES = 4  # of a table's key in a window, without waiting
ENCRYPTION_CHANGES_WINDOW_MS = 24 * 60 * 60 * 1000
ENCRYPTION_CHANGE_WAIT_MS = 6 * 60 * 60 * 1000  # between further changes
CLASS_CHANGES = 2  # of a table's class
CLASS_CHANGES_DAYS = 30
THROUGHPUT_UNITS = 1_000_000_000_000  # a ProvisionedThroughput above is "out of bounds"

# Account limits as DescribeLimits shows them

ACCOUNT_READ_UNITS = 80_000
ACCOUNT_WRITE_UNITS = 80_000
TABLE_READ_UNITS = 40_000
TABLE_WRITE_UNITS = 40_000

# Tags [40]

TAGS = 50
TAGS_BYTES = 10_240
RESOURCE_POLICY_BYTES = 20 * 1024
TAG_KEY_CHARACTERS = 128
TAG_VALUE_CHARACTERS = 256

# Time to live [39]

TTL_NAME_CHARACTERS = 255

# Capacity units [30, 31]

READ_UNIT_BYTES = 4096
WRITE_UNIT_BYTES = 1024
TRANSACTION_FACTOR = 2
BURST_SECONDS = 300  # retention of unused provisioned units

# Streams [38]

STREAM_RECORDS = 1000  # in one GetRecords answer
STREAM_RECORDS_BYTES = 1024 * 1024
STREAM_ITERATOR_LIFETIME_MS = 15 * 60 * 1000
STREAM_RETENTION_MS = 24 * 60 * 60 * 1000
STREAM_SHARDS_PAGE = 100

# Contributor insights [botocore 1.44.5; developer guide, "Service, account, and table quotas"]

INSIGHTS_PAGE = 100  # summaries in one ListContributorInsights answer

# Kinesis [API reference of Kinesis Data Streams, PutRecords: 500 records, 5 MiB together, 1 MiB each]

KINESIS_RECORDS = 500
KINESIS_CALL_BYTES = 5 << 20
KINESIS_RECORD_BYTES = 1 << 20
KINESIS_PARTITION_KEY_CHARACTERS = 256

# Wire and signatures [5, 7, 8]

PREFLIGHT_SECONDS = 172_800
GZIP_MEMBERS = 128  # our own: members of one gzip body, so that a body of empty ones takes no time
CLOCK_SKEW_MS = 15 * 60 * 1000
PRESIGNED_SECONDS = 7 * 24 * 60 * 60  # the longest X-Amz-Expires

# Default warm throughput of an on-demand table (developer guide, "Understanding DynamoDB warm throughput")

ON_DEMAND_WARM_READ_UNITS = 12_000
ON_DEMAND_WARM_WRITE_UNITS = 4_000
# Minimum time between two changes of a table's time to live. One was rejected after 1,811 seconds and accepted
# after 1,872 (ack-api-quirks, TABLE-143, October 2026). The documentation says up to an hour.
TIME_TO_LIVE_CHANGE_MS = 31 * 60 * 1000

# Exports, imports, bulk puts (botocore 1.44.5; "Service, account, and table quotas" in the developer guide)

EXPORTS_AT_ONCE = 300
IMPORTS_AT_ONCE = 50
BULK_PUTS_AT_ONCE = 50  # our own: the quota is not public
BULK_PUT_OBJECTS = 50_000
JOBS_PAGE = 10
JOBS_PAGE_MOST = 25
JOBS_LISTED_MS = 90 * 24 * 60 * 60 * 1000
JOB_TOKEN_MS = 8 * 60 * 60 * 1000
EXPORT_WINDOW_LEAST_MS = 15 * 60 * 1000
EXPORT_WINDOW_MOST_MS = 24 * 60 * 60 * 1000
INCREMENTAL_BILLED_BYTES = 10_000_000  # of an incremental export, at least
LOGGED_ERRORS = 1_000  # our own: of one import
