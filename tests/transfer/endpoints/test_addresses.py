"""Addresses of tables (transfer/endpoints/addresses.py): forms, patterns, rejected ones. Messages repeat no secret."""

from __future__ import annotations

import builtins
import subprocess
import sys
from typing import Any

import pytest

from tablegate.transfer.endpoints import addresses
from tablegate.transfer.endpoints.addresses import open_endpoint, parse_cloud_address, tables_of, with_table
from tablegate.transfer.endpoints.azure_table import AzureTableEndpoint
from tablegate.transfer.endpoints.dynamodb import DynamoDBEndpoint
from tablegate.transfer.endpoints.endpoint import Definition, Service
from tablegate.transfer.endpoints.table_store import TableStoreEndpoint
from tablegate.transfer.errors import AccessRefused, BadAddress, MissingSoftware, TransferError
from tests.support.running import Running
from tests.support.tables import each_row
from tests.transfer.endpoints.conftest import OPENERS
from tests.transfer.endpoints.places import SCHEMAS

OTS = "tablestore://inst/T?endpoint=https://inst.cn-hangzhou.ots.aliyuncs.com"


@pytest.mark.parametrize(
    ("address", "kind"),
    [
        ("dynamodb://Orders?region=eu-central-1", DynamoDBEndpoint),
        ("dynamodb://Orders?region=local&endpoint=http://127.0.0.1:8000", DynamoDBEndpoint),
        (
            "azure-table://devstoreaccount1/Orders?endpoint=http://127.0.0.1:10002/devstoreaccount1",
            AzureTableEndpoint,
        ),
        ("azure-table://devstoreaccount1/Orders", AzureTableEndpoint),
        (OTS, TableStoreEndpoint),
        (OTS + "&region=cn-hangzhou", TableStoreEndpoint),
    ],
)
def test_each_form_is_its_endpoint_and_shown_as_it_was_written(address: str, kind: type) -> None:
    endpoint = open_endpoint(address)
    assert isinstance(endpoint, kind)
    assert endpoint.shown == address
    assert str(parse_cloud_address(endpoint.shown)) == address
    endpoint.close()


@each_row(
    "address, words",
    [
        ("dynamodb:Orders", "dynamodb://TABLE?region=REGION"),
        ("dynamodb://", "the address needs one table name"),
        ("dynamodb://a/b?region=x", "the address needs one table name"),
        ("dynamodb://Orders?regoin=eu-central-1", "unknown option regoin"),
        ("dynamodb://Orders?region=", "region is empty"),
        ("dynamodb://Orders?region=a&region=b", "region is given twice"),
        ("dynamodb://Orders?endpoint=localhost:8000", "endpoint=https://HOST"),
        ("azure-table://Orders", "an account and a table"),
        ("azure-table://account/", "the address needs one table name"),
        ("azure-table://account/T?region=x", "unknown option region"),
        ("tablestore://inst/T", "the instance's URL"),
        ("tablestore://inst?endpoint=https://x", "an account and a table"),
        ("mongodb://host/db", "mongodb: is not a kind of address"),
        ("orders.jsonl", "file:PATH"),
        ("orders", "orders is not an address. Use one of"),
        ("tablegate:", "incomplete"),
        ("file:", "incomplete"),
        ("", "not an address"),
    ],
)
def test_a_wrong_address_gets_the_right_form(address: str, words: str) -> None:
    with pytest.raises(BadAddress) as caught:
        open_endpoint(address)
    assert words in str(caught.value)


def test_a_text_that_may_be_a_secret_is_not_repeated() -> None:
    with pytest.raises(BadAddress) as caught:
        open_endpoint("wJalrXUtnFEMIK7MDENGbPxRfiCYEXAMPLEKEY")
    assert str(caught.value).startswith("not an address")


SECRET = "hush-3141592653"


@pytest.mark.parametrize(
    "address",
    [
        f"dynamodb://AKIA:{SECRET}@Orders?region=x",
        f"dynamodb://Orders?region=x&secret_access_key={SECRET}",
        f"dynamodb://Orders?region=x&aws_session_token={SECRET}",
        f"dynamodb://Orders?endpoint=http://me:{SECRET}@localhost:8000",
        f"azure-table://account:{SECRET}@account/T",
        f"azure-table://account/T?key={SECRET}",
        f"azure-table://account/T?sv=2019-02-02&sig={SECRET}",
        f"azure-table://account/T?endpoint=https://a.table.core.windows.net?sig={SECRET}",
        f"azure-table://account/T?connection_string=AccountKey={SECRET}",
        f"tablestore://inst/T?endpoint=https://x&AccessKeySecret={SECRET}",
        f"tablestore://inst/T?endpoint=https://id:{SECRET}@x",
        f"DefaultEndpointsProtocol=https;AccountName=a;AccountKey={SECRET}",
    ],
)
def test_an_address_with_a_secret_is_refused_without_being_repeated(address: str) -> None:
    for ask in (open_endpoint, tables_of, lambda text: with_table(text, "T")):
        with pytest.raises(BadAddress) as caught:
            ask(address)
        assert SECRET not in str(caught.value)


def test_patterns_are_the_tables_that_are_there(ours: Running) -> None:
    for service, names in (
        (Service.DYNAMODB, ["pattern-a", "pattern-b", "other.pattern"]),
        (Service.AZURE_TABLE, ["azpatterna", "azpatternb"]),
        (Service.TABLE_STORE, ["otspattern_a", "otspattern_b"]),
    ):
        for name in names:
            OPENERS[service](ours.url, name).create(Definition(name, service, SCHEMAS[service]))
    end = f"?region=x&endpoint={ours.url}"
    assert tables_of(f"dynamodb://pattern-*{end}") == [
        f"dynamodb://pattern-a{end}",
        f"dynamodb://pattern-b{end}",
    ]
    assert tables_of(f"dynamodb://pattern-?{end}") == tables_of(f"dynamodb://pattern-*{end}")
    assert len(tables_of(f"dynamodb://*{end}")) >= 7
    assert tables_of(f"dynamodb://pattern-a{end}") == [f"dynamodb://pattern-a{end}"]
    azure = f"?endpoint={ours.url}/devstoreaccount1"
    assert tables_of(f"azure-table://devstoreaccount1/azp*{azure}") == [
        f"azure-table://devstoreaccount1/azpattern{letter}{azure}" for letter in "ab"
    ]
    ots = f"?endpoint={ours.url}"
    assert tables_of(f"tablestore://inst/otspattern_*{ots}") == [
        f"tablestore://inst/otspattern_{letter}{ots}" for letter in "ab"
    ]
    with pytest.raises(TransferError, match="no such table"):
        tables_of(f"dynamodb://nothing-*{end}")
    for several in (f"dynamodb://pattern-*{end}", "tablegate:sqlite:///x.db#*"):
        with pytest.raises(BadAddress, match="is a pattern"):
            open_endpoint(several)


def test_a_table_takes_the_place_of_a_pattern() -> None:
    assert with_table("dynamodb://*?region=x", "a.b-c") == "dynamodb://a.b-c?region=x"
    assert with_table("azure-table://acc/*", "T") == "azure-table://acc/T"
    assert with_table("tablegate:sqlite:///x.db#*", "T") == "tablegate:sqlite:///x.db#T"
    assert with_table("tablegate:postgres://h/d#ns/*", "T") == "tablegate:postgres://h/d#ns/T"
    assert addresses.is_pattern("tablegate:sqlite:///x.db#ns/a*")
    assert not addresses.is_pattern("tablegate:sqlite:///x.db#T")
    assert not addresses.is_pattern("dynamodb://T?region=x")


def test_a_missing_library_is_reported_with_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def without(name: str, *rest: Any, **more: Any) -> Any:
        if name.partition(".")[0] == "boto3":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        return real(name, *rest, **more)

    for module in [name for name in sys.modules if name.startswith("tablegate.transfer.endpoints.dynamodb")]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(
        MissingSoftware, match=r"boto3 is not installed. Install it with: pip install 'tablegate\[clouds\]'"
    ):
        open_endpoint("dynamodb://Orders?region=x")


def test_only_the_library_of_the_endpoint_is_imported() -> None:
    script = (
        "import sys\nfrom tablegate.transfer.endpoints.addresses import open_endpoint, parse_cloud_address\n"
        "assert not {'boto3', 'azure.data.tables', 'tablestore'} & set(sys.modules)\n"
        "open_endpoint('dynamodb://Orders?region=x')\n"
        "assert 'boto3' in sys.modules and not {'azure.data.tables', 'tablestore'} & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True)


def test_missing_credentials_are_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("TABLESTORE_ACCESS_KEY_ID", "TABLESTORE_ACCESS_KEY_SECRET"):
        monkeypatch.delenv(name)
    with pytest.raises(AccessRefused, match="TABLESTORE_ACCESS_KEY_ID and TABLESTORE_ACCESS_KEY_SECRET"):
        open_endpoint(OTS)
    monkeypatch.setenv("TABLESTORE_ACCESS_KEY_ID_INST", "one")
    monkeypatch.setenv("TABLESTORE_ACCESS_KEY_SECRET_INST", "two")
    open_endpoint(OTS).close()
    with pytest.raises(AccessRefused, match="AZURE_STORAGE_CONNECTION_STRING, AZURE_STORAGE_KEY"):
        open_endpoint("azure-table://myaccount/T")
    # Another account's connection string is none of this one's.
    theirs = (
        "DefaultEndpointsProtocol=https;AccountName=other;AccountKey=aHVzaA==;EndpointSuffix=core.windows.net"
    )
    monkeypatch.setenv("AZURE_STORAGE_CONNECTION_STRING", theirs)
    with pytest.raises(AccessRefused) as caught:
        open_endpoint("azure-table://myaccount/T")
    assert "aHVzaA" not in str(caught.value)
    monkeypatch.setenv("AZURE_STORAGE_CONNECTION_STRING_MYACCOUNT", theirs.replace("other", "myaccount"))
    open_endpoint("azure-table://myaccount/T").close()
    with pytest.raises(AccessRefused, match="nobody"):
        open_endpoint("dynamodb://T?region=x&profile=nobody")


def test_a_missing_region_is_required(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_REGION", "AWS_DEFAULT_REGION"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_CONFIG_FILE", "/nowhere")
    with pytest.raises(BadAddress, match=r"add \?region=REGION"):
        open_endpoint("dynamodb://Orders")
