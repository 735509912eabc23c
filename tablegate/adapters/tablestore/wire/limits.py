"""Limits of Table Store, with units. Source, unless stated: docs/protocols/table-store.md section 4.1, 4.2 and 4.9."""

from __future__ import annotations

# Names and keys
NAME_MAX_BYTES = 255  # tables, columns, indexes
INSTANCE_NAME_MAX = 256  # characters. Those of the service have 3 to 16 ("Instance", naming conventions)
KEY_COLUMNS_MAX = 4
# Our own: cells of a key in a request. The key of an index row also contains the key columns of the table, so it may have
# more than KEY_COLUMNS_MAX. Cells beyond this bound are not decoded.
KEY_CELLS_MAX = 4 * KEY_COLUMNS_MAX
KEY_VALUE_MAX_BYTES = 1024
VALUE_MAX_BYTES = 2 * 1024 * 1024

# Columns
COLUMNS_MAX = 1024  # in one write, and in columns_to_get
# Our own: cells of a row in a request. A request with more is refused without the exact number.
CELLS_MAX = 2 * COLUMNS_MAX
DEFINED_COLUMNS_MAX = 32
FILTER_NODES_MAX = 32
REGEX_MAX_BYTES = 256  # of a filter's value rule (developer reference, ValueTransferRule)
STAMP_END_MS = (2**63 - 1) // 1000  # the first stamp that is too high

# Requests
BATCH_GET_ROWS_MAX = 100
BATCH_WRITE_ROWS_MAX = 200
WRITE_MAX_BYTES = 4 * 1024 * 1024  # one put or update, and a whole BatchWriteRow
RANGE_ROWS_MAX = 5000  # scanned in one page
RANGE_MAX_BYTES = 4 * 1024 * 1024  # scanned in one page
RANGE_SECONDS = 5.0  # a page ends after this time, so that a scan does not exceed a client's timeout

# Tables
INDEXES_MAX = 5
PARTITIONS_MAX = 10  # in the request that creates a table
PARTITION_BOUND_MAX_BYTES = 64
THROUGHPUT_MAX_UNITS = 100_000
TIME_TO_LIVE_MIN_S = 86_400  # or -1
DEVIATION_DEFAULT_S = 86_400
SPLIT_SIZE_UNIT_BYTES = 100 * 1024 * 1024
SPLIT_SIZE_UNIT_MIN_BYTES = 1024 * 1024

# Capacity
UNIT_BYTES = 4096

# Streams
STREAM_HOURS_MAX = 168
STREAM_HOURS_DEFAULT = 24
STREAM_RECORDS_MAX = 1000
STREAM_MAX_BYTES = 1024 * 1024
SHARDS_DESCRIBED_MAX = 100
STREAM_TABLE_NAME_MAX = 238  # characters: a longer name makes a stream id that cannot be read from

# Tunnels
TUNNELS_MAX = 10  # of a table
TUNNEL_CLIENTS_MAX = 100  # our own, of a tunnel
TUNNEL_CLIENT_TIMEOUT_MAX_S = 86_400  # our own
TUNNEL_RECORDS_MAX = 1000  # in one page
TUNNEL_TOKEN_MAX = 16 * 1024  # characters, our own
TUNNEL_COUNT_MAX = 2**53  # rows and changes of a token, our own
TUNNEL_VERSION_END = 2**62  # our own: a client may not set the version of a channel above it

# SQL ("SQL limits", Tablestore developer guide, and our own)
SQL_ROWS_MAX = 100_000  # scanned by a statement
SQL_BYTES_MAX = 128 * 1024 * 1024  # scanned by a statement
SQL_SECONDS = 30.0  # of a statement
SQL_CHARACTERS_MAX = 32 * 1024  # our own
SQL_DEPTH_MAX = 64  # nested parentheses, our own
SQL_TREE_DEPTH_MAX = 150  # nested expressions, our own
SQL_NODES_MAX = 20_000  # parts of a statement, our own
SQL_PARSER_STEPS_MAX = 100_000  # our own: moves of the parser between tokens, 1 s at most
SQL_JOINS_MAX = 7  # our own
SQL_SUBQUERIES_MAX = 16  # of a statement, our own
SQL_INDEX_MAPPINGS_MAX = 100  # mappings of the indexes of a table, our own
SQL_COMPARISONS_MAX = 2_000_000  # pairs of rows in joins and subqueries, our own
SQL_KEPT_MAX = 256 * 1024 * 1024  # our own: bytes of the values that a statement computes and keeps
SQL_TEXT_MAX = 2 * 1024 * 1024  # characters of the result of a function, as of a column
SQL_PATTERN_MAX = 16 * 1024  # our own: characters of a pattern of LIKE or REGEXP
SQL_PATTERN_STEPS_MAX = 1 << 28  # our own: size of a program times characters of a text, 3 s at most
SQL_JSON_DEPTH_MAX = 100  # of the objects and arrays of a document, as in MySQL
SQL_JSON_DIGITS_MAX = 400  # of a number in a document, our own
SQL_JSON_STEPS_MAX = 100  # of a path, as in MySQL
SQL_JSON_VALUES_MAX = 100_000  # of a document, our own: a document is parsed whole
SQL_JSON_VISITS_MAX = 1_000_000  # our own: values that the paths of a call pass
SQL_VALUE_BYTES = 100  # our own: an estimate of the memory for each value of a row, besides its bytes
SQL_PAGE_ROWS = 1000  # our own: read at a time

# Local transactions
TRANSACTION_MS = 60_000
TRANSACTION_MAX_BYTES = 4 * 1024 * 1024

# Search indexes. Source: "Search index limits" (2026)
SEARCH_INDEXES_MAX = 50  # per table
SEARCH_FIELDS_MAX = 1000
NESTED_DEPTH_MAX = 5
SEARCH_LIMIT_DEFAULT = 10
SEARCH_ROWS_MAX = 100  # per page
SEARCH_INDEXED_ROWS_MAX = 1000  # per page, if the index has every returned column
SEARCH_TIMEOUT_MS = 30_000  # our own, if the request has no shorter timeout
SEARCH_RESULTS_MAX = 100_000  # offset and limit together
QUERIES_MAX = 1024  # of a request
QUERY_DEPTH_MAX = 20  # our own
TERMS_MAX = 1024
PREFIX_MAX_BYTES = 1000
WILDCARD_MAX_CHARACTERS = 32
POLYGON_POINTS_MAX = 1000  # our own
HIGHLIGHTED_FIELDS_MAX = 10
FRAGMENTS_DEFAULT = 5  # our own
FRAGMENTS_MAX = 100  # our own
FRAGMENT_SIZE_DEFAULT = 100  # characters
FRAGMENT_SIZE_MAX = 10_000  # our own
TAG_MAX_CHARACTERS = 64  # our own
INNER_HITS_DEFAULT = 3
INNER_HITS_MAX = 256  # our own: offset and limit together, as many as a field has objects
SCORE_FUNCTIONS_MAX = 3  # of a query (FunctionsScoreQuery, Java SDK)
SORTERS_MAX = 32  # our own
AGGREGATIONS_MAX = 5  # of a level
GROUPINGS_MAX = 5  # of a level
GROUPING_LEVELS_MAX = 3
GROUPS_DEFAULT = 10
GROUPS_MAX = 2000
GROUP_FILTERS_MAX = 10
COMPOSITE_SOURCES_MAX = 32  # our own
GEOHASH_MAX = 12  # characters
GROUP_RANGES_MAX = 100
GROUP_DISTANCES_MAX = 10
TOP_ROWS_MAX = 100
PERCENTILES_MAX = 100  # our own
VECTOR_FIELDS_MAX = 5
VECTOR_DIMENSIONS_MAX = 4096
NEAREST_MAX = 1000
SCAN_ROWS_MAX = 2000
SCAN_ALIVE_DEFAULT_S = 60
SCAN_ALIVE_MAX_S = 600  # our own
QUERY_TEXT_MAX_BYTES = 4096  # our own: the text of a match

# HTTP
CLOCK_SKEW_MS = 15 * 60 * 1000
BODY_MAX_BYTES = 20 * 1024 * 1024  # after inflating
CELL_BYTES = 500  # our own: an estimate of the memory for each cell of a request until its reply
