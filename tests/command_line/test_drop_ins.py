"""The command lines of DynamoDB Local and Azurite: processes started with unchanged command lines of users.

Sources: "DynamoDB local usage notes" (Amazon DynamoDB Developer Guide), compose files of the AWS documentation,
99x/dynamodb-localhost, aws/integrations-on-dotnet-aspire-for-aws, README of Azure/Azurite, Testcontainers for Java and
Node.
"""

from __future__ import annotations

import http.client
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import boto3
import pytest
from azure.data.tables import TableServiceClient

from tablegate.gateway.__main__ import words_of
from tablegate.gateway.security.credentials import DEV_AZURE_ACCOUNT, DEV_AZURE_KEY
from tests.support.running import ROOT, free_port
from tests.support.waiting import PATIENCE_S


class _Process:
    """The program with these words, in a folder. `lines`: what it printed up to the one that tools wait for."""

    def __init__(self, folder: Path, words: Sequence[str], last: str, environment: dict[str, str]) -> None:
        self.running = subprocess.Popen(
            [sys.executable, "-m", "tablegate", *words], cwd=folder, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": str(ROOT), **environment},
        )  # fmt: skip
        self.lines: list[str] = []
        assert self.running.stdout is not None
        for line in self.running.stdout:
            self.lines.append(line.rstrip("\n"))
            if line.startswith(last):
                return
        raise AssertionError(self.running.communicate()[1])


@contextmanager
def started(folder: Path, *words: str, last: str, **environment: str) -> Iterator[_Process]:
    process = _Process(folder, words, last, environment)
    try:
        yield process
    finally:
        process.running.kill()
        process.running.communicate()


def refused(folder: Path, *words: str) -> str:
    """Run a command line that is rejected with status 1. Returns its output."""
    done = subprocess.run(
        [sys.executable, "-m", "tablegate", *words], cwd=folder, capture_output=True, text=True, timeout=PATIENCE_S,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert done.returncode == 1, done.stdout + done.stderr
    return done.stderr


def dynamodb(port: int, key: str = "local", region: str = "us-east-1") -> Any:
    return boto3.client(
        "dynamodb", endpoint_url=f"http://127.0.0.1:{port}", region_name=region,
        aws_access_key_id=key, aws_secret_access_key="any",
    )  # fmt: skip


def make_table(client: Any) -> None:
    client.create_table(
        TableName="songs", BillingMode="PAY_PER_REQUEST", KeySchema=[{"AttributeName": "id", "KeyType": "HASH"}],
        AttributeDefinitions=[{"AttributeName": "id", "AttributeType": "S"}],
    )  # fmt: skip


_LAST = "CorsParams:"


@pytest.mark.extended
@pytest.mark.parametrize(
    "words",
    [
        ("dynamodb-local", "-jar", "DynamoDBLocal.jar", "-inMemory", "-sharedDb"),
        ("-jar", "DynamoDBLocal.jar", "-inMemory", "-sharedDb"),
        ("-Djava.library.path=./DynamoDBLocal_lib", "-jar", "DynamoDBLocal.jar", "-sharedDb", "-inMemory", "-disableTelemetry"),
        ("java", "-Xms512m", "-Xmx1024m", "-Djava.library.path=/d/DynamoDBLocal_lib", "-jar", "DynamoDBLocal.jar", "-inMemory",
         "-sharedDb"),
        # serverless-dynamodb-local, by the starter of dynamodb-localhost 0.0.9, in this order. It waits for no line.
        ("java", "-Djava.library.path=/home/me/.dynamodb/DynamoDBLocal_lib", "-jar", "DynamoDBLocal.jar", "-inMemory",
         "-sharedDb", "-cors", "*", "-delayTransientStatuses"),
    ],
)  # fmt: skip
def test_words_that_start_dynamodb_local_start_this(tmp_path: Path, words: tuple[str, ...]) -> None:
    port = free_port()
    with started(tmp_path, *words, "-port", str(port), last=_LAST) as process:
        assert process.lines[0] == "Initializing DynamoDB Local with the following configuration:"
        assert process.lines[1:3] == [f"Port:\t{port}", "InMemory:\ttrue"]
        assert "SharedDb:\ttrue" in process.lines
        assert process.lines[-1] == f"CorsParams:\t{'*' if '-cors' in words else 'null'}"
        make_table(dynamodb(port))
        assert dynamodb(port, "another", "eu-west-1").list_tables()["TableNames"] == ["songs"]
        process.running.send_signal(signal.SIGTERM)
        assert process.running.wait(PATIENCE_S) == 0
    assert not list(tmp_path.iterdir())


def has_ipv6_loopback() -> bool:
    """False where the kernel lacks IPv6, and where `disable_ipv6` took the addresses away."""
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError:
        return False
    return True


def test_dynamodb_local_listens_on_every_address_as_java_does(tmp_path: Path) -> None:
    """Node 17 and later resolve `localhost` to ::1 first. IPv4 connections also come from this machine only."""
    port = free_port()
    with started(tmp_path, "dynamodb-local", "-inMemory", "-port", str(port), last=_LAST):
        for host in ("127.0.0.1", "::1") if has_ipv6_loopback() else ("127.0.0.1",):
            client = http.client.HTTPConnection(host, port)
            client.request("GET", "/_tablegate/clock")
            assert client.getresponse().status == 200
            client.close()


def test_without_shared_db_each_key_and_region_has_its_own_tables(tmp_path: Path) -> None:
    port = free_port()
    with started(tmp_path, "dynamodb-local", "-inMemory", "-port", str(port), last=_LAST):
        make_table(dynamodb(port))
        assert dynamodb(port).list_tables()["TableNames"] == ["songs"]
        assert dynamodb(port, "another").list_tables()["TableNames"] == []
        assert dynamodb(port, region="eu-west-1").list_tables()["TableNames"] == []


@pytest.mark.extended
def test_tables_stay_in_the_folder_after_a_kill(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    port = free_port()
    words = (
        "-jar", "DynamoDBLocal.jar", "-port", str(port), "-sharedDb", "-dbPath", "./data", "-optimizeDbBeforeStartup",
        "-delayTransientStatuses", "-cors", "example.com,http://other.example",
    )  # fmt: skip
    with started(tmp_path, *words, last=_LAST) as process:
        assert "shouldDelayTransientStatuses:\ttrue" in process.lines
        assert "DbPath:\t./data" in process.lines
        client = dynamodb(port)
        make_table(client)
        assert client.describe_table(TableName="songs")["Table"]["TableStatus"] == "CREATING"
        process.running.kill()  # as serverless-dynamodb-local ends it
    with started(tmp_path, *words, last=_LAST):
        assert dynamodb(port).list_tables()["TableNames"] == ["songs"]


@pytest.mark.extended
@pytest.mark.parametrize(
    ("command", "last"),
    [
        (("dynamodb-local", "-inMemory", "-port"), _LAST),
        (("azurite", "--inMemoryPersistence", "--tablePort"), "Azurite Table service is successfully"),
    ],
)
def test_the_health_checks_of_compose_files_are_answered_400(
    tmp_path: Path, command: tuple[str, ...], last: str
) -> None:
    port = free_port()
    with started(tmp_path, *command, str(port), last=last):
        for method in ("GET", "HEAD"):
            client = http.client.HTTPConnection("127.0.0.1", port)
            client.request(method, "/")
            assert client.getresponse().status == 400
            client.close()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("-inMemory", "-dbPath", "."), "-inMemory and -dbPath"),
        (("-optimizeDbBeforeStartup",), "-dbPath"),
        (("-inmemory",), "Unrecognized option: -inmemory"),
        (("-port",), "-port requires a value"),
        (("-port", "http"), "http is not a port number"),
        (("-dbPath", "missing"), "unable to open database file"),
    ],
)  # fmt: skip
def test_unsupported_flags_of_dynamodb_local_are_refused_by_name(
    tmp_path: Path, words: tuple[str, ...], said: str
) -> None:
    assert said in refused(tmp_path, "dynamodb-local", *words)


def test_optimizing_a_file_that_is_no_database_is_refused_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "tablegate.sqlite").write_bytes(b"This is not a database. " * 1000)
    words = ("-optimizeDbBeforeStartup", "-dbPath", ".", "-port", str(free_port()))
    said = refused(tmp_path, "dynamodb-local", *words)
    assert "file is not a database" in said
    assert "Traceback" not in said


def test_a_port_in_use_is_reported_in_the_words_of_each(tmp_path: Path) -> None:
    with socket.create_server(("0.0.0.0", 0)) as taken:
        port = str(taken.getsockname()[1])
        said = refused(tmp_path, "-jar", "DynamoDBLocal.jar", "-inMemory", "-port", port)
        assert f"java.io.IOException: Failed to bind to 0.0.0.0/0.0.0.0:{port}" in said
        said = refused(tmp_path, "azurite", "--inMemoryPersistence", "--tablePort", port)
        assert f"listen EADDRINUSE: address already in use 127.0.0.1:{port}" in said


def test_in_the_region_local_boto3_looks_at_the_usual_port() -> None:
    client = boto3.client(
        "dynamodb", region_name="local", aws_access_key_id="any", aws_secret_access_key="any"
    )
    assert client.meta.endpoint_url == "http://localhost:8000"


# Azurite


def azure(url: str, account: str = DEV_AZURE_ACCOUNT, key: str = DEV_AZURE_KEY) -> TableServiceClient:
    return TableServiceClient.from_connection_string(
        f"DefaultEndpointsProtocol=http;AccountName={account};AccountKey={key};TableEndpoint={url}/{account}"
    )


_LISTENING = "Azurite Table service is successfully listening at "


@pytest.mark.extended
@pytest.mark.parametrize(
    "words",
    [
        ("--tableHost", "127.0.0.1", "--inMemoryPersistence", "--silent", "--loose", "--skipApiVersionCheck"),
        ("--blobHost", "0.0.0.0", "--queueHost", "0.0.0.0", "--tableHost", "0.0.0.0", "--inMemoryPersistence",
         "--extentMemoryLimit", "64", "--disableTelemetry", "--disableProductStyleUrl"),
        # Modules of Testcontainers, which wait for the last line: .NET and Java, Node, Go with tables alone.
        ("--blobHost", "0.0.0.0", "--queueHost", "0.0.0.0", "--tableHost", "0.0.0.0"),
        ("--blobHost", "0.0.0.0", "--blobPort", "10000", "--queueHost", "0.0.0.0", "--queuePort", "10001", "--tableHost",
         "0.0.0.0", "--tablePort", "10002", "--inMemoryPersistence", "--extentMemoryLimit", "64", "--skipApiVersionCheck"),
        ("--tableHost", "0.0.0.0"),
        ("--tableHost", "0.0.0.0", "--inMemoryPersistence"),
    ],
)  # fmt: skip
def test_words_that_start_azurite_start_this(tmp_path: Path, words: tuple[str, ...]) -> None:
    with started(tmp_path, "azurite", *words, "--tablePort", "0", last=_LISTENING) as process:
        url = process.lines[-1].removeprefix(_LISTENING)
        assert process.lines == [f"Azurite Table service is starting at {url}", f"{_LISTENING}{url}"]
        service = azure(url.replace("0.0.0.0", "127.0.0.1"))
        service.create_table("people")
        assert [table.name for table in service.list_tables()] == ["people"]
        process.running.send_signal(signal.SIGTERM)
        out, errors = process.running.communicate(timeout=PATIENCE_S)
    assert process.running.returncode == 0
    assert out == "Azurite Table service is closing...\nAzurite Table service successfully closed\n"
    assert all(word in errors for word in words if word.startswith(("--blob", "--queue", "--extent")))


def test_the_path_alone_names_the_account_on_request(tmp_path: Path) -> None:
    words = ("azurite", "--inMemoryPersistence", "--tablePort", "0")
    for more, is_by_path in (((), False), (("--disableProductStyleUrl",), True)):
        with started(tmp_path, *words, *more, last=_LISTENING) as process:
            url = process.lines[-1].removeprefix(_LISTENING)
            asked = {"Host": f"azurite.table.internal:{url.rpartition(':')[2]}"}
            if not is_by_path:
                with pytest.raises(Exception, match=r"AuthenticationFailed|authenticate"):
                    azure(url).create_table("people", headers=asked)
                continue
            table = azure(url).create_table("people", headers=asked)
            entity = {"PartitionKey": "p", "RowKey": "r"}
            table.submit_transaction([("create", entity)], headers=asked)
            assert [each["RowKey"] for each in table.list_entities(headers=asked)] == ["r"]


def test_the_table_service_alone_has_lines_of_its_own(tmp_path: Path) -> None:
    last = "Azurite Table service successfully started on 127.0.0.1:"
    with started(tmp_path, "azurite-table", "-l", "data", "-s", "--tablePort", "0", last=last) as process:
        assert process.lines[0].startswith("Azurite Table service is starting on 127.0.0.1:")
        azure(f"http://{process.lines[-1].rpartition(' ')[2]}").create_table("people")
    assert (tmp_path / "data" / "tablegate.sqlite").exists()


def test_accounts_of_the_environment_stand_for_the_known_one(tmp_path: Path) -> None:
    (temporary := tmp_path / "temporary").mkdir()
    words, accounts = ("azurite", "--inMemoryPersistence", "--tablePort", "0"), f"mine:{DEV_AZURE_KEY}"
    environment = {"AZURITE_ACCOUNTS": accounts, "TMPDIR": str(temporary)}
    with started(tmp_path, *words, last=_LISTENING, **environment) as process:
        url = process.lines[-1].removeprefix(_LISTENING)
        azure(url, "mine").create_table("people")
        with pytest.raises(Exception, match=r"AuthenticationFailed|authenticate"):
            azure(url).create_table("people")
        process.running.send_signal(signal.SIGTERM)
        assert process.running.wait(PATIENCE_S) == 0
    assert not list(temporary.iterdir()), "the file of the accounts' keys"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("azurite", "--nosuch"), 'The option "nosuch" is unknown.'),
        (("azurite", "-d"), "Must provide a debug log file path for parameter -d or --debug"),
        (("azurite", "--inMemoryPersistence", "-l", "."), "--inMemoryPersistence and --location"),
        (("azurite", "--oauth", "basic"), "--oauth is not supported"),
        (("azurite-table", "--blobPort", "1"), 'The option "blobPort" is unknown.'),
        (("azurite", "--cert", "c.pem"), "--cert requires --key"),
    ],
)
def test_unsupported_flags_of_azurite_are_refused_by_name(
    tmp_path: Path, words: tuple[str, ...], said: str
) -> None:
    assert said in refused(tmp_path, *words)


# The image


def test_the_program_name_or_its_first_word_selects_the_command_line() -> None:
    assert words_of("/usr/bin/java", ["-jar", "X.jar", "-inMemory"]) == [
        "dynamodb-local",
        "-jar",
        "X.jar",
        "-inMemory",
    ]
    assert words_of("/usr/bin/azurite", ["-l", "/data"]) == ["azurite", "-l", "/data"]
    assert words_of("azurite-table", []) == ["azurite-table"]
    assert words_of("tablegate", ["serve", "--memory"]) == ["serve", "--memory"]
    assert words_of("tablegate", []) == []
