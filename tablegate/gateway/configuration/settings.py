"""The settings: one field of `Settings` for each, with its default, meaning and choices.

Flags, environment variables and keys of the configuration file follow from the fields (loading.py). Limits that belong to a
dialect (item sizes, batch sizes) are not settings. They are in limits.py of the dialect.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from tablegate.gateway.configuration.database_urls import sqlite_path
from tablegate.gateway.configuration.fields import setting

MOST_PORT = 65_535
ANY = "*"
"""The value of `cors_origin` and `allowed_host` that matches everything."""


class BadSetting(ValueError):
    """A setting that is unknown, malformed or in conflict with another one.

    The first `{}` of the text are the `names` of settings. `spelled` shows them as the user has written them.
    """

    def __init__(self, text: str, *names: str) -> None:
        super().__init__(text, *names)
        self.text, self.names = text, names

    def spelled(self, spelling: Callable[[str], str]) -> str:
        """Return the text with the names in another spelling."""
        text = self.text
        for name in self.names:
            text = text.replace("{}", spelling(name), 1)
        return text

    def __str__(self) -> str:
        return self.spelled(str)


_database = partial(setting, "Database")
_network = partial(setting, "Network")
_security = partial(setting, "Security")
_dynamodb = partial(setting, "DynamoDB")
_azure_table = partial(setting, "Azure Table")
_table_store = partial(setting, "Table Store")
_background = partial(setting, "Background work")
_monitoring = partial(setting, "Monitoring")
_test = partial(setting, "Test")


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The settings of one process. They are frozen: a change takes effect at the next start."""

    database: str = _database(
        "sqlite:///tablegate.sqlite",
        "Database URL: sqlite:///PATH, postgresql://..., or file:PATH of a file that contains the URL.",
        value="URL",
    )
    memory: bool = _database(False, "Keep all data in memory. Nothing is kept when the server stops.")
    synchronous: str = _database(
        "full",
        "Durability of SQLite commits: full survives a power failure, normal only a crash of the process.",
        ("full", "normal"),
    )
    sqlite_cache_bytes: int = _database(32 << 20, "SQLite: page cache of each connection, in bytes.")
    table_cache_bytes: int = _database(
        64 << 20,
        "Memory of each process for cached definitions of tables, in bytes. A small table needs about 8 KB. Raise it if"
        " requests for many thousands of tables are frequent.",
    )
    verify_checksums: bool = _database(
        True,
        "Verify the checksum of every row that is read, at about 0.5 microseconds a row. A damaged row is then an error.",
    )
    prepared_statements: bool = _database(
        True, "PostgreSQL: use prepared statements. Disable them behind an old PgBouncer in transaction mode."
    )
    failover_seconds: float = _database(
        5.0,
        "PostgreSQL: maximum time, in seconds, that requests wait for an unreachable primary before they fail.",
    )
    replica: tuple[str, ...] = _database(
        (),
        "URL of a PostgreSQL standby for eventually consistent reads. Repeatable. Separate several with spaces in the "
        "environment or a file.",
        separator=" ",
        value="URL",
    )
    replica_lag_ms: int = _database(
        1000, "Maximum lag of a replica, in milliseconds. A replica that lags more is not read from."
    )
    replica_wait_ms: int = _database(
        0,
        "Maximum wait, in milliseconds, until a replica has the writes of the same connection. The primary answers after "
        "that. 0 does not wait. Raise it if clients read their own writes.",
    )
    replica_reads: str = _database(
        "eventual",
        "Reads that replicas serve. eventual: only reads that the service defines as eventually consistent (DynamoDB "
        "without ConsistentRead, Azure's secondary). all: also the ordinary reads of Azure and Table Store.",
        ("eventual", "all"),
    )
    database_thread: str = _database(
        "auto",
        "Thread of database calls. inline: the event loop. thread: one thread. split: reads in the event loop, writes on "
        "one thread. auto: inline with SQLite, thread with PostgreSQL.",
        ("auto", "inline", "thread", "split"),
    )
    tick_requests: int = _database(256, "Maximum number of requests in one database batch.", value="NUMBER")
    tick_bytes: int = _database(4 << 20, "Maximum size of the bodies in one database batch, in bytes.")
    vector_memory_bytes: int = _database(
        512 << 20,
        "Maximum memory for cached vector indexes, in bytes. A search reads an index that does not fit from the database.",
    )
    vector_approximate_from: int = _database(
        0,
        "Minimum number of candidate vectors for approximate (HNSW) search. 0 makes all searches exact.",
        value="NUMBER",
    )
    stream_shards: int = _database(
        1, "Number of shards of a new change stream. Raise it for more parallel readers.", value="NUMBER"
    )
    stream_roll_hours: float = _database(
        0.0,
        "Hours until an open shard of a change stream is closed and gets a child shard (DynamoDB: about 4). 0 disables it. "
        "Shards are closed once a minute.",
    )

    host: str = _network(
        "127.0.0.1", "Address to listen on. Use 0.0.0.0 or :: to accept clients of other machines."
    )
    port: int = _network(8000, "TCP port to listen on. 0 picks a free port.", most=MOST_PORT)
    azure_port: int | None = _network(
        None, "Additional TCP port. UseDevelopmentStorage=true connects to 10002.", most=MOST_PORT
    )
    dialects: tuple[str, ...] = _network(
        ("dynamodb", "tablestore", "azuretable"),
        "APIs to serve, by folder name, separated by commas.",
        value="NAMES",
    )
    workers: int = _network(
        1,
        "Number of server processes. With SQLite one process writes, and all read. Raise it to use more cores.",
        value="NUMBER",
        most=1024,
    )
    max_connections: int = _network(
        1000,
        "Maximum number of open connections. Above it, the one that has waited longest for its client is closed for a new"
        " one. If none waits, the new one gets status 503.",
        value="NUMBER",
    )
    max_heads_per_client: int = _network(
        100,
        "Maximum number of requests with incomplete headers from one client address. Above it the oldest is refused.",
        value="NUMBER",
    )
    max_request_line_bytes: int = _network(
        128 << 10, "Maximum length of a request line, in bytes. Its path has at most 16,384 of them."
    )
    max_header_bytes: int = _network(
        32 << 10, "Maximum size of the headers of a request, in bytes. Each has at most 16,384 of them."
    )
    max_body_bytes: int = _network(20 << 20, "Maximum size of a request body as it is sent, in bytes.")
    max_buffered_bytes: int = _network(
        256 << 20, "Maximum memory of requests in progress, in bytes: their bodies and the decoded values."
    )
    header_seconds: float = _network(15.0, "Maximum time for the headers of a request to arrive, in seconds.")
    body_seconds: float = _network(60.0, "Maximum time for the body of a request to arrive, in seconds.")
    idle_seconds: float = _network(120.0, "Seconds until an idle connection is closed.")
    write_seconds: float = _network(60.0, "Maximum time for a client to read its reply, in seconds.")
    drain_seconds: float = _network(
        0.5,
        "Seconds that idle connections stay open after a stop signal. A request that arrives "
        "meanwhile is answered with Connection: close. Raise it if clients pause longer between requests.",
    )
    stop_seconds: float = _network(
        8.0, "Maximum time for requests in progress to finish after a stop signal, in seconds."
    )

    auth: str = _security(
        "dev",
        "Authentication. dev: accept any AWS access key. strict: accept stored credentials only.",
        ("dev", "strict"),
    )
    insecure: bool = _security(
        False, "Allow auth dev on addresses other than loopback. Every client that connects has full access."
    )
    namespaces: str = _security(
        "shared",
        "Separation of tables. shared: one set of tables for all clients. separate: one set for each account and region, "
        "or instance. keys: one set for each AWS access key.",
        ("shared", "separate", "keys"),
    )  # fmt: skip
    aws_account: str = _security(
        "000000000000",
        "AWS account of access keys that are not stored and do not have 12 digits, with auth dev.",
    )
    credentials_file: Path | None = _security(
        None, "TOML or JSON file of credentials to store at the first start on an empty database."
    )
    credentials_period: float = _security(
        2.0, "Seconds until a running server applies changed credentials, grants and quotas.", value="SECONDS"
    )
    secret_key: str = _security(
        "",
        "Key that encrypts stored credentials. If it is empty, SQLite uses a key file beside the database.",
    )
    secret_key_file: Path | None = _security(None, "File that contains the secret key.")
    control: bool = _security(
        True,
        "Serve the control API under /_tablegate/. With auth dev it accepts local clients, otherwise the admin token.",
    )
    admin_token: str = _security("", "Bearer token that the control API requires.")
    admin_token_file: Path | None = _security(None, "File that contains the admin token.")
    console: bool = _security(
        True,
        "Serve the web console under /_tablegate/console/. With auth dev it accepts local browsers, otherwise signed-in "
        "users.",
    )
    console_writes: bool = _security(
        False,
        "Allow changes in the console: rows, tables, jobs, and for the administrator credentials, grants and quotas.",
    )
    tls_cert: Path | None = _security(
        None, "Certificate chain (PEM) for TLS. Requires --tls-key.", value="FILE"
    )
    tls_key: Path | None = _security(None, "Private key (PEM) of the TLS certificate.", value="FILE")
    tls_self_signed: bool = _security(
        False, "Serve TLS with a self-signed certificate that is created at the start. For tests."
    )
    cors_origin: tuple[str, ...] = _security(
        (),
        "Origin of web pages that may send requests (scheme://host[:port], or * for all). Repeatable. Default: pages of "
        "this machine with auth dev, all pages with auth strict.",
    )
    allowed_host: tuple[str, ...] = _security(
        (),
        "Host name that requests may use (.NAME includes subdomains, * is all). Repeatable. Always allowed with auth dev: "
        "addresses, single-label names and names below localhost and internal. With auth strict: all names.",
    )
    oidc_issuer: tuple[str, ...] = _security(
        (),
        "URL of an OpenID Connect issuer of trusted tokens, such as https://sts.windows.net/TENANT/. Its keys are fetched. "
        "Of several, each but one is NAME=URL, and NAME/ precedes its ids in grants. Repeatable.",
        value="URL",
    )
    console_oidc_client_id: str = _security(
        "",
        "Client id of the console at the issuer (--oidc-issuer without NAME). Empty disables that sign-in.",
        value="ID",
    )
    console_url: str = _security(
        "",
        "URL at which browsers reach this server, such as https://tables.example.com, for their return from the issuer. "
        "Default: that of the request, if its host is a loopback address, the name of this machine or in --allowed-host.",
        value="URL",
    )
    console_oidc_secret_file: Path | None = _security(
        None, "File that contains the client secret of the console at the issuer, for clients that need one."
    )
    jwt_keys_file: Path | None = _security(
        None, "JWKS file with the public keys of trusted token issuers (Azure OAuth)."
    )
    jwt_issuer: str = _security(
        "", "The only accepted issuer of bearer tokens. Empty accepts each token that the keys verify."
    )
    jwt_audience: str = _security(
        "",
        "Required audience of bearer tokens. {account} stands for the account name. Default: https://storage.azure.com, or"
        " https://{account}.table.core.windows.net with auth strict and separate namespaces.",
    )

    throughput: str = _dynamodb(
        "off",
        "Provisioned throughput. off: never throttle. enforce: throttle requests over the capacity of a table.",
        ("off", "enforce"),
    )
    global_table_lag_ms: int = _dynamodb(
        0,
        "DynamoDB: minimum delay, in milliseconds, before a write reaches the other regions of a global table. For tests.",
    )
    kinesis_endpoint_url: str = _dynamodb(
        "",
        "URL of the Kinesis endpoint for streaming destinations (kinesalite, https://kinesis.eu-west-1.amazonaws.com). "
        "Empty disables them.",
    )
    kinesis_access_key_id: str = _dynamodb(
        "",
        "Access key for the Kinesis endpoint. If empty, boto3 finds credentials (environment, profile, role).",
    )
    kinesis_secret_access_key: str = _dynamodb("", "Secret access key for the Kinesis endpoint.")
    kinesis_secret_access_key_file: Path | None = _dynamodb(
        None, "File that contains the secret access key for the Kinesis endpoint."
    )
    s3_endpoint_url: str = _dynamodb(
        "",
        "URL of the S3 endpoint for exports and imports (MinIO, moto, https://s3.eu-west-1.amazonaws.com). Empty disables "
        "them.",
    )
    s3_region: str = _dynamodb("us-east-1", "Region of the S3 endpoint.")
    s3_access_key_id: str = _dynamodb(
        "", "Access key for the S3 endpoint. If empty, boto3 finds credentials (environment, profile, role)."
    )
    s3_secret_access_key: str = _dynamodb("", "Secret access key for the S3 endpoint.")
    s3_secret_access_key_file: Path | None = _dynamodb(
        None, "File that contains the secret access key for the S3 endpoint."
    )
    s3_folder: Path | None = _dynamodb(
        None,
        "Local folder that replaces S3 for exports and imports. Its subfolders are buckets, files are objects.",
    )
    s3_bucket: tuple[str, ...] = _dynamodb(
        (),
        "Bucket that clients may use, as BUCKET or ACCOUNT/BUCKET. Repeatable. Default: all buckets if namespaces is "
        "shared, otherwise none.",
    )

    azure_account_in_host: bool = _azure_table(
        True,
        "Azure: read the account name from a Host header of the form ACCOUNT.table.NAME. Otherwise only from the path.",
    )
    azure_flavour: tuple[str, ...] = _azure_table(
        ("storage",),
        "Azure: API of addresses without a host name of Microsoft: storage, or cosmos (Cosmos DB for Table). "
        "ACCOUNT=FLAVOUR sets that of one account. Repeatable.",
    )
    azure_default_version: str = _azure_table(
        "2019-02-02", "Azure: x-ms-version assumed for requests without that header."
    )
    url_segment_limit: int = _azure_table(
        0,
        "Azure: maximum length of a URL path segment, in characters (the service had 260 in 2009). 0 removes the limit.",
        value="CHARACTERS",
    )
    table_deletion_delay: float = _azure_table(
        0.0, "Azure: seconds until the name of a deleted table can be used again.", value="SECONDS"
    )

    tablestore_tables: int = _table_store(
        64, "Table Store: maximum number of tables in an instance. 0 removes the limit.", value="NUMBER"
    )

    sweep_period: float = _background(
        60.0, "Seconds between two sweeps that delete expired rows.", value="SECONDS"
    )
    background_cpu_share: float = _background(
        0.25,
        "Share of one core (0 to 1) for background work beside clients: purges, index builds, expiry, stream trimming. "
        "Without requests, or if a million rows or 100 seconds of work wait, it takes up to twice as much.",
    )

    metrics_port: int | None = _monitoring(
        None,
        "Serve /metrics on this TCP port of the loopback address, instead of the main port. 0 picks a free port.",
        most=MOST_PORT,
    )
    metrics_token: str = _monitoring(
        "",
        "Bearer token that /metrics requires. With auth strict, /metrics on the main port is refused unless a token is set.",
    )
    metrics_token_file: Path | None = _monitoring(None, "File that contains the metrics token.")
    access_log: bool = _monitoring(False, "Log every request.")
    slow_request_ms: int = _monitoring(1000, "Log requests that take at least this many milliseconds.")
    log_level: str = _monitoring(
        "info", "Minimum severity of log messages.", ("debug", "info", "warning", "error"),
    )  # fmt: skip
    otel: bool = _monitoring(
        False,
        "Export traces and metrics by OpenTelemetry (tablegate[otel]). The OTEL_... variables configure the target.",
    )
    audit: str = _monitoring(
        "",
        "Audit log of refusals and of changes to definitions, credentials and grants: a FILE, - (standard output) or "
        "database. Empty disables it.",
        value="TARGET",
    )
    audit_writes: bool = _monitoring(False, "Include every write in the audit log.")
    audit_requests: bool = _monitoring(False, "Include every request in the audit log, reads too.")
    audit_keys: str = _monitoring(
        "digest",
        "How item keys appear in the audit log: keyed digests (with the secret key) or plain text.",
        ("digest", "plain"),
    )
    audit_file_bytes: int = _monitoring(
        100 << 20,
        "Size, in bytes, at which an audit file is closed and the next one begins. 0 disables rotation.",
    )
    audit_files: int = _monitoring(10, "Number of closed audit files to keep.", value="NUMBER")
    audit_days: float = _monitoring(90.0, "Days to keep audit records in a database.")

    start_from: Path | None = _test(
        None,
        "Snapshot file, exported by the control API, that is loaded into an empty database.",
        flag="from",
        value="FILE",
    )
    seed: Path | None = _test(
        None,
        "Folder of tables and items to create at the start. Existing tables are not changed. Files: "
        "https://github.com/tablegate/tablegate/blob/main/docs/test/control.md#seeds",
        value="FOLDER",
    )
    recorded_requests: int = _test(
        0,
        "Number of recent requests to keep for the control API. The control API can also start the recording later.",
        value="NUMBER",
    )
    emulator_health: bool = _test(
        False, "Answer GET and HEAD of / with 400, for health checks written for DynamoDB Local and Azurite."
    )
    table_creation_delay: float = _test(
        0.0,
        "Seconds that tables stay CREATING, UPDATING and DELETING. Raise it to test clients that wait for tables.",
        value="SECONDS",
    )
    stop_with_stdin: bool = _test(
        False, "Stop when standard input is closed, so that the server ends with the program that started it."
    )
    print_json: bool = _test(
        False,
        "Print one line of JSON with the addresses, instead of text, once the server accepts connections.",
    )

    @property
    def database_path(self) -> Path | None:
        """The SQLite file. None if the database is in memory or PostgreSQL."""
        return sqlite_path(self.database)

    @property
    def has_object_store(self) -> bool:
        """True if exports to S3 and imports from it are configured."""
        return bool(self.s3_endpoint_url) or self.s3_folder is not None

    @property
    def is_secure(self) -> bool:
        """True if the server uses TLS."""
        return self.tls_self_signed or self.tls_cert is not None


SETTINGS: Mapping[str, dataclasses.Field[Any]] = {item.name: item for item in dataclasses.fields(Settings)}
