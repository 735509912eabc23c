"""The settings: one field of `Settings` for each, with its default, meaning and choices.

Flags, environment variables and keys of the configuration file follow from the fields (loading.py). Limits that belong to a
dialect (item sizes, batch sizes) are not settings. They are in limits.py of the dialect.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tablegate.gateway.configuration.database_urls import sqlite_path

MOST_PORT = 65_535
ANY = "*"
"""Of `cors_origin` and `allowed_host`: every one."""
OPAQUE_ORIGIN = "null"
"""The Origin header of sandboxed frames and local files (RFC 6454, 7.1). It names no page, so `cors_origin` cannot have it."""


class BadSetting(ValueError):
    """A setting that is unknown, of the wrong form, or at odds with another one. The text names it."""


def setting(
    default: Any,
    meaning: str,
    choices: tuple[str, ...] = (),
    everywhere: bool = False,
    separator: str = ",",
    flag: str = "",
    most: int | None = None,
) -> Any:
    """A field of Settings, and a flag of `serve`.

    - `everywhere`: a flag of all other commands, too.
    - `separator`: stands between the members of a list that is given as one text.
    - `flag`: the name of the flag, if not that of the setting.
    - `most`: the largest number.
    """
    metadata = {
        "meaning": meaning, "choices": choices, "everywhere": everywhere, "separator": separator, "flag": flag,
        "most": most,
    }  # fmt: skip
    return dataclasses.field(default=default, metadata=metadata, repr=default != "")


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What was set. Frozen: to change a setting is to start anew."""

    # Where to listen
    host: str = setting("127.0.0.1", "Address to listen on.")
    port: int = setting(8000, "Port to listen on; 0 takes a free one.", most=MOST_PORT)
    azure_port: int | None = setting(
        None, "Listen on this port too (10002 is where UseDevelopmentStorage=true looks).", most=MOST_PORT
    )
    metrics_port: int | None = setting(
        None,
        "Serve /metrics on this port of a loopback address only, instead of on the main one; 0 takes a free one.",
        most=MOST_PORT,
    )
    metrics_token: str = setting(
        "",
        "Token that /metrics wants (Authorization: Bearer); with auth strict it is served on the main port with one only.",
    )
    metrics_token_file: Path | None = setting(None, "File that holds the metrics token.")
    control: bool = setting(
        True,
        "Serve the control API under /_tablegate/: with auth dev to this machine, else with the admin token.",
    )
    admin_token: str = setting("", "Token that the control API wants (Authorization: Bearer).")
    admin_token_file: Path | None = setting(None, "File that holds the admin token.")
    console: bool = setting(
        True,
        "Serve the console, pages to see tables in a browser, under /_tablegate/console/: with auth dev to this machine,"
        " else to whoever signs in.",
    )
    console_writes: bool = setting(False, "Let visitors of the console put and delete rows.")
    recorded_requests: int = setting(
        0, "Keep the last so many requests for the control API; it may ask for it later too."
    )
    insecure: bool = setting(False, "Listen on other than loopback addresses though auth is dev.")
    tls_cert: Path | None = setting(None, "Certificate chain (PEM); needs --tls-key.")
    tls_key: Path | None = setting(None, "Private key of the certificate (PEM).")
    tls_self_signed: bool = setting(False, "Serve TLS with a certificate made at the start.")

    # The database
    database: str = setting(
        "sqlite:///tablegate.sqlite",
        "Database URL (sqlite:///PATH, postgresql://..., file:PATH that holds one).",
        everywhere=True,
    )
    memory: bool = setting(False, "Keep everything in memory; nothing is left at the end.")
    start_from: Path | None = setting(
        None, "Snapshot file with which an empty database begins, as the control API exports it.", flag="from"
    )
    seed: Path | None = setting(
        None,
        "Folder of tables and items to make at the start (docs/test/control.md); tables that are there stay.",
    )
    synchronous: str = setting(
        "full",
        "SQLite: full survives a power cut, normal only a crash of the process.",
        ("full", "normal"),
        everywhere=True,
    )
    verify_checksums: bool = setting(
        True,
        "Verify the checksum of every row that is read: about 0.5 microseconds a row. A damaged row is then an error.",
        everywhere=True,
    )
    prepared_statements: bool = setting(
        True,
        "PostgreSQL: use prepared statements; switch off for an old PgBouncer in transaction mode.",
        everywhere=True,
    )
    secret_key: str = setting(
        "",
        "Key that encrypts stored credentials; without it a key file beside a SQLite database is used.",
        everywhere=True,
    )
    secret_key_file: Path | None = setting(None, "File that holds the secret key.", everywhere=True)

    # Its replicas
    replica: tuple[str, ...] = setting(
        (),
        "URL of a PostgreSQL standby that answers reads which may be a little old; repeatable (elsewhere with spaces between).",
        separator=" ",
    )
    replica_lag_ms: int = setting(
        1000, "A replica that is further behind the primary than this is left alone."
    )
    replica_wait_ms: int = setting(
        0,
        "How long a read waits for a replica to have what was written on the same connection, before the primary answers; "
        "0: it need not have it.",
    )
    replica_reads: str = setting(
        "eventual",
        "eventual: reads that the service itself lets be old (DynamoDB without ConsistentRead, Azure's secondary); all: also "
        "Azure's and Table Store's ordinary ones.",
        ("eventual", "all"),
    )
    failover_seconds: float = setting(
        5.0,
        "PostgreSQL: how long requests wait for a primary that cannot be reached, before they are refused.",
    )

    # Who may come in
    auth: str = setting("dev", "dev takes any AWS access key; strict only stored ones.", ("dev", "strict"))
    credentials_file: Path | None = setting(
        None, "TOML or JSON file of credentials, stored at the first start on an empty database."
    )
    credentials_period: float = setting(
        2.0, "Seconds after which a running server has taken up changed credentials and grants."
    )
    cors_origin: tuple[str, ...] = setting(
        (),
        "Origin of pages that may call (scheme://host[:port], or * for all); repeatable. Pages of this machine may "
        "with auth dev, all with auth strict.",
    )
    allowed_host: tuple[str, ...] = setting(
        (),
        "Host name that clients may call by (.NAME: also all below it, * for all); repeatable. With auth dev addresses, "
        "names of one label and those below localhost and internal may, with auth strict all.",
    )
    jwt_keys_file: Path | None = setting(
        None, "JWKS file with the keys of trusted token issuers (Azure OAuth)."
    )
    jwt_issuer: str = setting(
        "", "The only issuer whose bearer tokens are taken; empty: any that the keys verify."
    )
    jwt_audience: str = setting(
        "",
        "Audience that bearer tokens must name, {account} for the account's own; else https://storage.azure.com, or"
        " https://{account}.table.core.windows.net where auth is strict and namespaces are separate.",
    )

    # What clients see
    dialects: tuple[str, ...] = setting(
        ("dynamodb", "tablestore", "azuretable"), "Adapters to mount, by folder name, separated by commas."
    )
    namespaces: str = setting(
        "shared",
        "shared: one set of tables for all; separate: by account and region, or instance; keys: AWS keys by themselves.",
        ("shared", "separate", "keys"),
    )  # fmt: skip
    emulator_health: bool = setting(
        False,
        "Answer GET and HEAD of / with 400, as DynamoDB Local and Azurite do and health checks of these expect.",
    )
    message_style: str = setting(
        "2026",
        "DynamoDB: error texts of today, or those that older suites compare with.",
        ("2026", "classic"),
    )
    throughput: str = setting("off", "Whether provisioned throughput throttles.", ("off", "enforce"))
    table_creation_delay: float = setting(0.0, "Seconds that tables stay CREATING, UPDATING and DELETING.")
    table_deletion_delay: float = setting(0.0, "Azure: seconds for which a deleted table's name is not free.")
    sweep_period: float = setting(60.0, "Seconds between two sweeps for expired rows.")
    tablestore_tables: int = setting(
        64, "Table Store: most tables that its clients can make in an instance; 0: any number."
    )
    tablestore_message_style: str = setting(
        "classic",
        "Table Store: one text for all failed conditions, as the SDKs' suites compare, or those of 2026 that tell why.",
        ("classic", "2026"),
    )
    tablestore_expect_not_exist: str = setting(
        "today",
        "Table Store: today EXPECT_NOT_EXIST is met by an absent row; in 2017 UpdateRow and DeleteRow failed with it.",
        ("today", "2017"),
    )
    background_cpu_share: float = setting(
        0.25, "Share of one core, at most 1, for background work: purging, filling indexes, expiry, trimming."
    )
    vector_memory_bytes: int = setting(
        512 << 20,
        "Most bytes of vector indexes that searches keep in memory; an index that has no room is read at each search.",
    )
    vector_approximate_from: int = setting(
        0,
        "Vectors from which on a search may be approximate, by an index in memory (usearch), if it has so many to choose from; 0:"
        " all searches are exact.",
    )
    stream_shards: int = setting(1, "Shards that a new change stream has.")
    stream_roll_hours: float = setting(
        0.0,
        "Hours after which a change stream's open shard is closed and has a child (DynamoDB: about 4); 0: never.",
    )
    azure_account_in_host: bool = setting(
        True, "Azure: a Host of the form ACCOUNT.table.NAME names the account; else the path alone does."
    )
    azure_default_version: str = setting("2019-02-02", "Azure: x-ms-version of requests that name none.")
    url_segment_limit: int = setting(
        0, "Azure: longest URL path segment in characters (260 in 2009); 0: none."
    )

    # Copies that follow
    global_table_lag_ms: int = setting(
        0,
        "DynamoDB: how long a write stays in its own region at least, before it goes to the replicas of a global table.",
    )
    kinesis_endpoint_url: str = setting(
        "",
        "URL of the Kinesis with the streaming destinations (kinesalite, https://kinesis.eu-west-1.amazonaws.com); empty: none.",
    )
    kinesis_access_key_id: str = setting(
        "", "Access key for that Kinesis; empty: what boto3 finds (environment, profile, role)."
    )
    kinesis_secret_access_key: str = setting("", "Secret of that access key.")
    kinesis_secret_access_key_file: Path | None = setting(
        None, "File that holds the secret of that access key."
    )

    # Where backups are kept
    backup_directory: Path | None = setting(
        None,
        "Directory in which backups of tables are kept, a file for each; without it they are kept in the database.",
        everywhere=True,
    )

    # Where exports go to and imports come from
    s3_endpoint_url: str = setting(
        "",
        "URL of the S3 that exports go to and imports come from (MinIO, moto, https://s3.eu-west-1.amazonaws.com); empty: none.",
    )
    s3_region: str = setting("us-east-1", "Region of that S3.")
    s3_access_key_id: str = setting(
        "", "Access key for that S3; empty: what boto3 finds (environment, profile, role)."
    )
    s3_secret_access_key: str = setting("", "Secret of that access key.")
    s3_secret_access_key_file: Path | None = setting(None, "File that holds the secret of that access key.")
    s3_folder: Path | None = setting(
        None, "Folder in place of an S3: its sub-folders are the buckets, files the objects."
    )

    s3_bucket: tuple[str, ...] = setting(
        (),
        "Bucket that clients may name, as BUCKET or ACCOUNT/BUCKET; repeatable. Without any, all with one set of tables for "
        "all, else none.",
    )

    # The server process
    workers: int = setting(1, "Server processes. On a SQLite file one of them writes, and all read.")
    database_thread: str = setting(
        "auto",
        "Thread of database calls. inline: the event loop; thread: one thread; split: reads in the event loop, writes on "
        "one thread; auto: inline with SQLite, thread with PostgreSQL.",
        ("auto", "inline", "thread", "split"),
    )
    tick_requests: int = setting(256, "Most requests that go to the database together.")
    tick_bytes: int = setting(4 << 20, "Most bytes of request bodies that go to the database together.")
    max_connections: int = setting(1000, "Open connections; more are answered 503.")
    max_heads_per_client: int = setting(
        100, "Requests of one client address whose head is still arriving; with more its oldest is refused."
    )
    max_request_line_bytes: int = setting(16 << 10, "Longest request line.")
    max_header_bytes: int = setting(16 << 10, "Most bytes of headers in a request.")
    max_body_bytes: int = setting(20 << 20, "Longest request body as it is sent.")
    max_buffered_bytes: int = setting(
        256 << 20,
        "Maximum memory of requests in flight, in bytes: their bodies, and what these are decoded into.",
    )
    header_seconds: float = setting(15.0, "Time for the head of a request to arrive.")
    body_seconds: float = setting(60.0, "Time for the body of a request to arrive.")
    idle_seconds: float = setting(120.0, "Time after which an idle connection is closed.")
    write_seconds: float = setting(60.0, "Time for a client to take its reply.")
    stop_with_stdin: bool = setting(
        False, "Stop when standard input ends, as it does with the program that has started this one."
    )
    drain_seconds: float = setting(
        0.5,
        "Time for which idle connections stay open when the server is told to stop. A request that arrives "
        "meanwhile is answered with Connection: close. Raise it where clients pause longer between requests.",
    )
    stop_seconds: float = setting(8.0, "Time for requests in hand when the server is told to stop.")

    # What is written down
    access_log: bool = setting(False, "Log every request.")
    slow_request_ms: int = setting(1000, "Log requests that took this long.")
    otel: bool = setting(
        False,
        "Send traces and figures by OpenTelemetry (tablegate[otel]), to where its own variables say (OTEL_...).",
    )
    audit: str = setting(
        "",
        "Put changes of definitions, credentials, grants, and refusals, on record: in a FILE, - (standard output) or database.",
        everywhere=True,
    )
    audit_writes: bool = setting(False, "Put each write on record too.")
    audit_requests: bool = setting(False, "Put each request on record, whatever it does.")
    audit_keys: str = setting(
        "digest",
        "How keys of items are told there: as digests under the secret key, or plain.",
        ("digest", "plain"),
    )
    audit_file_bytes: int = setting(
        100 << 20,
        "Bytes after which a file of the audit is closed and another begun; 0: never.",
        everywhere=True,
    )
    audit_files: int = setting(10, "Closed files of the audit that are kept.", everywhere=True)
    audit_days: float = setting(90.0, "Days that the audit is kept in a database.")
    log_level: str = setting(
        "info", "Least severity that is logged.", ("debug", "info", "warning", "error"), everywhere=True,
    )  # fmt: skip

    @property
    def database_path(self) -> Path | None:
        """The SQLite file, if there is one."""
        return sqlite_path(self.database)

    @property
    def has_object_store(self) -> bool:
        """Whether there is a place for exports to S3 and imports from it."""
        return bool(self.s3_endpoint_url) or self.s3_folder is not None

    @property
    def is_secure(self) -> bool:
        """Whether clients are served over TLS."""
        return self.tls_self_signed or self.tls_cert is not None


SETTINGS: Mapping[str, dataclasses.Field[Any]] = {item.name: item for item in dataclasses.fields(Settings)}
FORMER_NAMES: Mapping[str, str] = {
    "lane": "database_thread",
    "background_share": "background_cpu_share",
    "control_plane_delay": "table_creation_delay",
}
"""Deprecated name -> name of the setting. A deprecated name works for one release, with a warning (loading.py)."""
