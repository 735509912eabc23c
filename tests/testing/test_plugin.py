"""The pytest plugin in separate pytest runs: fixtures, options, and isolation of tests under xdist."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import KINDS
from tests.support.databases import PostgresServer

pytestmark = pytest.mark.clients

pytest_plugins = "pytester"

TABLE = """
TABLE = {
    "TableName": "things", "BillingMode": "PAY_PER_REQUEST",
    "AttributeDefinitions": [{"AttributeName": "id", "AttributeType": "S"}],
    "KeySchema": [{"AttributeName": "id", "KeyType": "HASH"}],
}
"""


@pytest.fixture(autouse=True)
def _no_settings_of_this_run(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("PYTEST_XDIST_WORKER", "PYTEST_ADDOPTS", "AWS_ENDPOINT_URL_DYNAMODB"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")


def test_fixtures_give_an_empty_server_and_sdks_that_find_it(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        TABLE
        + """
import os
import boto3
import pytest

@pytest.mark.parametrize("time", [1, 2])
def test_dynamodb(dynamodb, dynamodb_client, time):
    assert dynamodb_client.list_tables()["TableNames"] == []
    boto3.client("dynamodb").create_table(**TABLE)
    dynamodb.Table("things").put_item(Item={"id": "1"})

def test_azure(azure_tables, tablegate):
    assert [*azure_tables.list_tables()] == []
    azure_tables.create_table("things")

def test_table_store(tablestore_client):
    assert [*tablestore_client.list_table()] == []

@pytest.mark.tablegate(auth="strict", namespaces="separate")
def test_marker(dynamodb_client, tablegate):
    with pytest.raises(Exception, match="UnrecognizedClientException"):
        boto3.client("dynamodb", aws_access_key_id="other", aws_secret_access_key="x").list_tables()

@pytest.mark.tablegate(clock="2040-01-01T00:00:00Z", record=10)
def test_frozen(dynamodb_client, tablegate):
    dynamodb_client.create_table(**TABLE)
    [line] = tablegate.control.requests()
    assert (line["at_ms"], line["duration_us"]) == (2208988800000, 0)
    tablegate.control.add_fault(error="internal")

def test_after_that(dynamodb_client, tablegate):
    assert tablegate.control.clock()["ahead_ms"] < 1000
    assert tablegate.control.faults() == []
    assert dynamodb_client.list_tables()["TableNames"] == []

def test_the_environment_is_ours_alone():
    assert "AWS_ENDPOINT_URL_DYNAMODB" not in os.environ
"""
    )
    pytester.runpytest_subprocess("-q", "-p", "no:cacheprovider").assert_outcomes(passed=8)


def test_ini_options(pytester: pytest.Pytester) -> None:
    pytester.makeini(
        """
[pytest]
tablegate_settings =
    namespaces = separate
tablegate_clock = 2041-01-01T00:00:00Z
"""
    )
    pytester.makepyfile(
        """
def test_settings(tablegate, dynamodb_client):
    assert tablegate.control.clock()["now"] == "2041-01-01T00:00:00.000Z"
    dynamodb_client.create_table(
        TableName="things", BillingMode="PAY_PER_REQUEST", KeySchema=[{"AttributeName": "id", "KeyType": "HASH"}],
        AttributeDefinitions=[{"AttributeName": "id", "AttributeType": "S"}],
    )
    assert tablegate.tablestore_client().list_table() == [] or not [*tablegate.tablestore_client().list_table()]
"""
    )
    pytester.runpytest_subprocess("-q", "-p", "no:cacheprovider").assert_outcomes(passed=1)


SCOPES = """
import pytest

@pytest.fixture(scope="{scope}")
def things(dynamodb):
    return dynamodb.create_table(**TABLE)

def test_a_server_begins_empty(dynamodb_client, azure_tables):
    assert dynamodb_client.list_tables()["TableNames"] == []

def test_one(things):
    things.put_item(Item={{"id": "1"}})

def test_two(things, tablegate):
    assert things.scan()["Count"] == 1
"""


@pytest.mark.parametrize(
    ("scope", "outcomes"),
    [
        ("module", {"passed": 6}),
        # Each function is a class of its own, so the second one finds an empty table.
        ("class", {"passed": 4, "failed": 2}),
        # The second module finds the table of the first.
        ("session", {"passed": 3, "failed": 1, "errors": 2}),
    ],
)
def test_scopes(pytester: pytest.Pytester, scope: str, outcomes: dict[str, int]) -> None:
    pytester.makeini(f"[pytest]\ntablegate_scope = {scope}")
    text = TABLE + SCOPES.format(scope=scope)
    pytester.makepyfile(test_first=text, test_second=text)
    pytester.runpytest_subprocess("-q", "-p", "no:cacheprovider").assert_outcomes(**outcomes)


IMPORTED = """
import boto3

client = boto3.client("dynamodb")  # reads the environment while it is imported
"""


@pytest.mark.parametrize("options", [(), ("-n", "1")])
def test_clients_that_are_made_at_import(pytester: pytest.Pytester, options: tuple[str, ...]) -> None:
    """They reach the server of every test, also after one with other settings, a moved clock or a stopped server."""
    pytester.makeini("[pytest]\ntablegate_environment = session\nusefixtures = tablegate")
    pytester.makeconftest("import application")
    pytester.makepyfile(application=IMPORTED)
    pytester.makepyfile(
        TABLE
        + """
import unittest
import pytest
from application import client
from tablegate.testing import mock_aws

def test_first():
    client.create_table(**TABLE)

class Things(unittest.TestCase):
    def test_in_a_test_case(self):
        client.create_table(**TABLE)

def test_a_moved_clock(tablegate):
    tablegate.control.advance(100 * 86400)
    client.create_table(**TABLE)

def test_after_it(tablegate, dynamodb_client):
    assert tablegate.control.clock()["ahead_ms"] < 1000
    client.create_table(**TABLE)
    assert dynamodb_client.list_tables()["TableNames"] == ["things"]

@pytest.mark.tablegate(namespaces="separate")
def test_other_settings():
    client.create_table(**TABLE)

def test_a_stopped_server(tablegate):
    client.create_table(**TABLE)
    tablegate.stop()

@mock_aws
def test_mock():
    client.create_table(**TABLE)
"""
    )
    result = pytester.runpytest_subprocess("-q", "-p", "no:cacheprovider", *options)
    result.assert_outcomes(passed=7)


def test_the_environment_of_a_session_needs_no_fixture(pytester: pytest.Pytester) -> None:
    pytester.makeini(
        "[pytest]\ntablegate_environment = session\ntablegate_settings =\n    namespaces = separate"
    )
    pytester.makepyfile(
        TABLE
        + """
import boto3
boto3.client("dynamodb").create_table(**TABLE)  # while the module is imported

def test_one():
    assert boto3.client("dynamodb").list_tables()["TableNames"] == ["things"]
"""
    )
    pytester.runpytest_subprocess("-q", "-p", "no:cacheprovider").assert_outcomes(passed=1)


def test_wrong_options_are_errors_of_use(pytester: pytest.Pytester) -> None:
    pytester.makepyfile("def test_one(tablegate): pass")
    for options, text in (
        (["tablegate_environment=always"], "tablegate_environment: 'always' is neither test nor session"),
        (["tablegate_environment=session", "tablegate_settings=no-such=1"], "No such option"),
    ):
        words = [word for option in options for word in ("-o", option)]
        result = pytester.runpytest_subprocess("-q", "-p", "no:cacheprovider", *words)
        assert result.ret == pytest.ExitCode.USAGE_ERROR
        result.stderr.fnmatch_lines([f"*{text}*"])


def test_mock_aws_takes_the_settings_of_the_ini_file(pytester: pytest.Pytester) -> None:
    pytester.makeini("[pytest]\ntablegate_settings =\n    namespaces = shared")
    pytester.makepyfile(
        TABLE
        + """
import boto3
from tablegate.testing import mock_aws

@mock_aws
def test_regions_share_tables():
    boto3.client("dynamodb").create_table(**TABLE)
    assert boto3.client("dynamodb", region_name="eu-west-1").list_tables()["TableNames"] == ["things"]
"""
    )
    pytester.runpytest_subprocess("-q", "-p", "no:cacheprovider").assert_outcomes(passed=1)


def test_mock_aws_reads_the_seed_of_the_ini_file(pytester: pytest.Pytester) -> None:
    pytester.makeini("[pytest]\ntablegate_seed = seed")
    definition = {
        "TableName": "songs", "BillingMode": "PAY_PER_REQUEST",
        "KeySchema": [{"AttributeName": "id", "KeyType": "HASH"}],
        "AttributeDefinitions": [{"AttributeName": "id", "AttributeType": "S"}],
    }  # fmt: skip
    pytester.mkdir("seed").joinpath("songs.json").write_text(json.dumps(definition))
    pytester.makepyfile(
        """
import boto3
from tablegate.testing import mock_aws

@mock_aws
def test_one():
    assert boto3.client("dynamodb").list_tables()["TableNames"] == ["songs"]
"""
    )
    pytester.runpytest_subprocess("-q", "-p", "no:cacheprovider").assert_outcomes(passed=1)


def test_mock_aws_within_a_test_of_the_fixture_uses_its_server(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        TABLE
        + """
import boto3
import pytest
from tablegate.testing import mock_aws

@pytest.mark.tablegate(clock="2040-01-01T00:00:00Z")
@mock_aws
def test_one(tablegate, azure_tables):
    boto3.client("dynamodb").create_table(**TABLE)
    assert tablegate.control.clock()["now"] == "2040-01-01T00:00:00.000Z"
    assert [table.name for table in azure_tables.list_tables()] == ["things"]

@mock_aws
def test_two():
    assert boto3.client("dynamodb").list_tables()["TableNames"] == []
"""
    )
    pytester.runpytest_subprocess("-q", "-p", "no:cacheprovider").assert_outcomes(passed=2)


def test_mock_aws_beside_a_fixture_of_wider_scope_empties_its_server(pytester: pytest.Pytester) -> None:
    pytester.makeini("[pytest]\ntablegate_scope = session")
    pytester.makepyfile(
        TABLE
        + """
import boto3
from tablegate.testing import mock_aws

def test_one(tablegate, dynamodb_client):
    dynamodb_client.create_table(**TABLE)

@mock_aws
def test_two():
    assert boto3.client("dynamodb").list_tables()["TableNames"] == []

def test_three(tablegate, dynamodb_client):
    assert tablegate.control.clock()["frozen"] is False
    dynamodb_client.create_table(**TABLE)
"""
    )
    pytester.runpytest_subprocess("-q", "-p", "no:cacheprovider").assert_outcomes(passed=3)


MEETING = """
import boto3

def session(key, region):
    return boto3.Session(key, "secret", region_name=region)

def test_one(tablegate):
    boto3.client("dynamodb").create_table(**TABLE)
    for _ in range(2):
        {client}.{request}

def test_two(tablegate):
    test_one(tablegate)
"""
REGION = 'boto3.client("dynamodb", region_name="eu-west-1")'


@pytest.mark.parametrize(
    ("client", "request_text", "options", "warning"),
    [
        (
            REGION,
            'describe_table(TableName="things")',
            (),
            "things was created in us-east-1 and is used in eu-west-1",
        ),
        (REGION.replace("client", "resource"), 'Table("things").scan()', (), "is used in eu-west-1"),
        (
            REGION,
            'batch_get_item(RequestItems={"things": {"Keys": [{"id": {"S": "1"}}]}})',
            (),
            "is used in eu-west-1",
        ),
        (
            'session("other", "us-east-1").client("dynamodb")',
            'describe_table(TableName="things")',
            (),
            "things was created with the key tablegate and is used with other",
        ),
        ('boto3.client("dynamodb")', 'describe_table(TableName="things")', (), ""),
        (REGION, 'describe_table(TableName="things")', ("-o", "tablegate_settings=namespaces=shared"), ""),
        (
            REGION,
            'describe_table(TableName="things")',
            ("-o", "tablegate_environment=session"),
            "is used in eu-west-1",
        ),
    ],
)
def test_a_client_of_another_region_or_key_is_named_once(
    pytester: pytest.Pytester, client: str, request_text: str, options: tuple[str, ...], warning: str
) -> None:
    pytester.makepyfile(TABLE + MEETING.format(client=client, request=request_text))
    result = pytester.runpytest_subprocess("-q", "-p", "no:cacheprovider", *options)
    result.assert_outcomes(passed=2, warnings=1 if warning else 0)
    if warning:
        result.stdout.fnmatch_lines(
            [f"*test_a_client_of_another_region_or_key*.py:*{warning}*namespaces = *"]
        )


def test_a_database_for_all_workers_is_refused(pytester: pytest.Pytester) -> None:
    pytester.makeini("[pytest]\ntablegate_database = sqlite:///one.sqlite")
    pytester.makepyfile("def test_one(tablegate): pass")
    result = pytester.runpytest_subprocess("-q", "-p", "no:cacheprovider", "-n", "1")
    result.stdout.fnmatch_lines(["*shared by all workers of xdist: put {worker} into its name*"])
    pytester.runpytest_subprocess("-q", "-p", "no:cacheprovider").assert_outcomes(passed=1)


def test_without_its_fixtures_nothing_but_pytest_is_imported(pytester: pytest.Pytester) -> None:
    """The plugin is loaded by every run of pytest wherever it is installed."""
    pytester.makepyfile(
        """
import sys
def test_nothing():
    assert [name for name in sys.modules if name.startswith("tablegate")] == [
        "tablegate", "tablegate.testing", "tablegate.testing.pytest_plugin"
    ]
    assert not [name for name in sys.modules if name.startswith(("gateway", "boto3", "sqlalchemy", "flask"))]
"""
    )
    pytester.runpytest_subprocess("-q", "-p", "no:cacheprovider").assert_outcomes(passed=1)


# Many tests and several workers. Each asserts that its server is empty and leaves rubbish behind.

_MANY = """
import pytest

@pytest.mark.parametrize("number", range({tests}))
def test_is_alone(number, dynamodb_client{others}):
    assert dynamodb_client.list_tables()["TableNames"] == []
    dynamodb_client.create_table(**TABLE)
    for key in range(5):
        dynamodb_client.put_item(TableName="things", Item={{"id": {{"S": str(key)}}, "of": {{"N": str(number)}}}})
    assert {{item["of"]["N"] for item in dynamodb_client.scan(TableName="things")["Items"]}} == {{str(number)}}
"""
_MANY_OTHERS = """
    assert [*azure_tables.list_tables()][1:] == [*tablestore_client.list_table()][1:] == []
    azure_tables.create_table(f"azure{number}").create_entity({"PartitionKey": "p", "RowKey": "r"})
"""
_CONFTEST = """
import json, os, time
from pathlib import Path
import pytest
from tablegate.testing.control import ControlClient

resets, samples, pids = [], [], []
plain = ControlClient.reset

def cpu_seconds():
    # Of all threads of the server, as the scheduler counts them: in nanoseconds.
    threads = Path(f"/proc/{{pids[0]}}/task").iterdir() if pids else ()
    return sum(int((thread / "schedstat").read_text().split()[0]) for thread in threads) / 1e9

def timed(self, **wanted):
    began = time.perf_counter(), cpu_seconds()
    plain(self, **wanted)
    resets.append((time.perf_counter() - began[0], cpu_seconds() - began[1]))

ControlClient.reset = timed

@pytest.fixture(autouse=True)
def _sample(tablegate):
    pids[:] = [tablegate.pid]
    if len(resets) % {every} == 0:
        status = Path(f"/proc/{{tablegate.pid}}/status").read_text()
        rss = int(status.split("VmRSS:")[1].split()[0])
        samples.append((rss, len(os.listdir(f"/proc/{{tablegate.pid}}/fd"))))

def pytest_sessionfinish(session):
    if hasattr(session.config, "workerinput"):
        Path({folder!r}, os.environ["PYTEST_XDIST_WORKER"]).write_text(json.dumps([resets, samples]))
"""


@pytest.mark.parametrize("kind", KINDS)
def test_tests_are_apart_under_xdist(tmp_path: Path, request: pytest.FixtureRequest, kind: str) -> None:
    _run_many(tmp_path, request, kind, workers=2, tests=16)


@pytest.mark.soak
@pytest.mark.parametrize("kind", KINDS)
def test_a_thousand_tests_are_apart_and_nothing_leaks(
    tmp_path: Path, request: pytest.FixtureRequest, kind: str
) -> None:
    if "TABLEGATE_TEST_SOAK_SECONDS" not in os.environ:
        pytest.skip("a thousand tests: make soak")
    resets, samples = _run_many(tmp_path, request, kind, workers=4, tests=1000)
    median_ms, cpu_ms = (statistics.median(column) * 1000 for column in zip(*resets, strict=True))
    growth = [(each[-1][0] - each[1][0], each[-1][1] - each[1][1]) for each in samples]
    print(
        f"{kind}: reset median {median_ms:.1f} ms, CPU {cpu_ms:.2f} ms, of {len(resets)}; "
        f"growth (KiB, descriptors) from test 50 on: {growth}"
    )
    # On a quiet machine the time is close to the CPU time. On a busy one it means nothing.
    assert cpu_ms < 10
    assert all(kib < 20_000 and descriptors <= 4 for kib, descriptors in growth)


def _run_many(
    folder: Path, request: pytest.FixtureRequest, kind: str, workers: int, tests: int
) -> tuple[list[tuple[float, float]], list[list[tuple[int, int]]]]:
    """Run this number of tests.

    Returns seconds and CPU seconds of each reset, and for each worker samples of its server's memory and descriptors.
    """
    is_long = tests >= 1000
    others = (", azure_tables, tablestore_client", _MANY_OTHERS) if is_long else ("", "")
    Path(folder, "test_many.py").write_text(TABLE + _MANY.format(tests=tests, others=others[0]) + others[1])
    Path(folder, "conftest.py").write_text(_CONFTEST.format(folder=str(folder), every=50 if is_long else 5))
    ini = ["[pytest]"]
    if kind == "postgresql":
        server: PostgresServer = request.getfixturevalue("postgres")
        # The plugin inserts the worker's name into the URL. Here it becomes the name of a file that holds another URL.
        for number in range(workers):
            Path(folder, f"url-gw{number}").write_text(server.empty_database())
        ini.append(f"tablegate_database = file:{folder}/url-{{worker}}")
    Path(folder, "pytest.ini").write_text("\n".join(ini))
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-n", str(workers), "-p", "no:cacheprovider", "."],
        capture_output=True, text=True, cwd=folder,
    )  # fmt: skip
    assert f"{tests} passed" in run.stdout, run.stdout + run.stderr
    found = [json.loads(Path(folder, f"gw{number}").read_text()) for number in range(workers)]
    return [took for resets, _ in found for took in resets], [samples for _, samples in found]
