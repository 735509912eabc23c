"""URL and Host -> account and resource."""

from __future__ import annotations

from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tablegate.adapters.azuretable import detection
from tablegate.adapters.azuretable.wire import addresses
from tablegate.adapters.azuretable.wire.addresses import (
    Address,
    Batch,
    Entity,
    EntitySet,
    Nested,
    Service,
    TableEntry,
    TableSet,
    check_table_name,
    key_predicate,
    parse,
    resolve,
)
from tablegate.adapters.azuretable.wire.errors import ServiceError
from tests.adapters.azuretable.batch_requests import FOREIGN
from tests.support.tables import each_row

PATH_HOST = "127.0.0.1:10002"


@each_row(
    "path, resource",
    [
        ("/acc", Service()),
        ("/acc/", Service()),
        ("/acc/Tables", TableSet()),
        ("/acc/Tables()", TableSet()),
        ("/acc/tables", TableSet()),
        ("/acc/Tables('people')", TableEntry("people")),
        ("/acc/Tables(TableName='people')", TableEntry("people")),
        ("/acc/people", EntitySet("people")),
        ("/acc/people/", EntitySet("people")),
        ("/acc/people()", EntitySet("people")),
        ("/acc/$batch", Batch()),
        ("/acc/%24batch", Batch()),
        ("/acc/people(PartitionKey='p',RowKey='r')", Entity("people", "p", "r")),
        ("/acc/people(RowKey='r',PartitionKey='p')", Entity("people", "p", "r")),
        ("/acc/people(PartitionKey='p', RowKey='r')", Entity("people", "p", "r")),
        ("/acc/people(PartitionKey='',RowKey='')", Entity("people", "", "")),
        ("/acc/people(PartitionKey='it''s',RowKey='''')", Entity("people", "it's", "'")),
        ("/acc/people(PartitionKey=%27it%27%27s%27,RowKey=%27r%27)", Entity("people", "it's", "r")),
        ("/acc/people%28PartitionKey%3D%27p%27%2CRowKey%3D%27r%27%29", Entity("people", "p", "r")),
        ("/acc/people(PartitionKey='a%2Fb',RowKey='c%3Fd%23%25')", Entity("people", "a/b", "c?d#%")),
        ("/acc/people(PartitionKey='a+b',RowKey='%20')", Entity("people", "a+b", " ")),
        ("/acc/people(PartitionKey='a,b(c)=;',RowKey='%E5%9B%BE')", Entity("people", "a,b(c)=;", "图")),
        ("/acc/people/Tables", Nested("people", TableSet())),
        ("/acc/people/Tables('x')", Nested("people", TableEntry("x"))),
        ("/acc/people/$batch", Nested("people", Batch())),
        ("/acc/a//", EntitySet("a//")),
    ],
)
def test_a_path_names_its_resource(path: str, resource: object) -> None:
    assert parse(path, PATH_HOST).resource == resource


@pytest.mark.parametrize(
    ("path", "host", "address"),
    [
        ("/acc/Tables", PATH_HOST, Address("acc", False, "/acc", TableSet())),
        ("/acc-secondary/Tables", PATH_HOST, Address("acc", True, "/acc-secondary", TableSet())),
        ("/acc-secondary/acc/Tables", "localhost", Address("acc", True, "/acc-secondary/acc", TableSet())),
        ("/Tables", "acc.table.core.windows.net", Address("acc", False, "", TableSet())),
        ("/Tables", "ACC.Table.example:8443", Address("acc", False, "", TableSet())),
        ("/Tables", "acc-secondary.table.core.windows.net", Address("acc", True, "", TableSet())),
        ("/acc/Tables", "table.core.windows.net", Address("acc", False, "/acc", TableSet())),
    ],
)
def test_account_comes_from_the_host_or_from_the_path(path: str, host: str, address: Address) -> None:
    assert parse(path, host) == address


@pytest.mark.parametrize("path", ["/", "/Ab/Tables", "/ab/Tables", "/with-dash/Tables", "/x" * 30])
def test_a_path_without_an_account_has_no_account(path: str) -> None:
    assert not detection.has_account(path, PATH_HOST)
    with pytest.raises(ServiceError, match="InvalidUri"):
        parse(path, PATH_HOST)


@pytest.mark.parametrize(
    "inside",
    [
        "PartitionKey='p'",
        "'p','r'",
        "PartitionKey='p',PartitionKey='r'",
        "PartitionKey=p,RowKey=r",
        "x=1,y=2,z=3",
    ],
)
def test_keys_that_are_not_the_two_are_refused(inside: str) -> None:
    with pytest.raises(ServiceError, match="InvalidInput: The number of keys"):
        parse(f"/acc/people({inside})", PATH_HOST)


def test_bytes_that_are_not_utf8_are_refused() -> None:
    with pytest.raises(ServiceError, match="InvalidUri"):
        parse("/acc/people%ff", PATH_HOST)


@pytest.mark.parametrize("name", ["abc", "a" * 63, "T1234567890"])
def test_legal_table_names(name: str) -> None:
    check_table_name(name)


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("ab", "OutOfRangeInput"),
        ("a" * 64, "OutOfRangeInput"),
        ("1abc", "InvalidResourceName"),
        # `_` was allowed in 2009 ("Windows Azure Table", section 2) and is not any more: "Understanding the Table
        # service data model".
        ("my_table", "InvalidResourceName"),
        ("a//", "InvalidResourceName"),
        ("tablé", "InvalidResourceName"),
    ],
)
def test_illegal_table_names(name: str, code: str) -> None:
    with pytest.raises(ServiceError, match=code):
        check_table_name(name)


@pytest.mark.parametrize("keys", [("p", "r"), ("it's", "a/b"), ("图", "%"), ("", " "), ("a+b&c", "x'y''z")])
def test_a_key_predicate_is_read_back(keys: tuple[str, str]) -> None:
    assert parse("/acc/people" + key_predicate(*keys), PATH_HOST).resource == Entity("people", *keys)


def test_signatures_do_not_cover_parameters_that_sdks_add_after_signing() -> None:
    assert addresses.signed_path("/acc-secondary/acc/Tables") == "/acc/Tables"
    assert addresses.signed_path("/acc-secondary/Tables") == "/acc-secondary/Tables"
    assert addresses.signed_path("/acc/Tables('a%2Fb')") == "/acc/Tables('a%2Fb')"


@given(st.one_of(st.text(), st.text(alphabet="aZ09._~-'%é/ ")), st.text())
def test_a_key_predicate_is_percent_encoded(partition_key: str, row_key: str) -> None:
    first, second = (quote(key.replace("'", "''"), safe="'") for key in (partition_key, row_key))
    assert key_predicate(partition_key, row_key) == f"(PartitionKey='{first}',RowKey='{second}')"


# Operations inside a batch. Path style: sent to http://127.0.0.1:10002/acca/$batch. Host style: sent to
# acca.table.localhost.

IN_PATH, IN_HOST = "127.0.0.1:10002", "acca.table.localhost:8000"
T, ENTITY = EntitySet("T"), Entity("T", "p", "r")
KEYS = "(PartitionKey='p',RowKey='r')"


@pytest.mark.parametrize(
    ("target", "resource"),
    [
        # Absolute, as current SDKs write them, with any name of the server.
        ("http://127.0.0.1:10002/acca/T", T),
        ("https://proxy.example/acca/T", T),
        ("http://[::1]:10002/acca/T" + KEYS, ENTITY),
        ("http://acca.table.core.windows.net/T" + KEYS, ENTITY),
        ("HTTP://ACCA.Table.core.windows.net:443/T", T),
        # From the root, and from the account (azure-cosmosdb-table 1.0.6 under a path-style endpoint).
        ("/acca/T", T),
        ("/acca/T" + KEYS, ENTITY),
        ("/T", T),
        ("/T" + KEYS, ENTITY),
        ("/old2", EntitySet("old2")),  # could be an account by its form
        ("/acca", EntitySet("acca")),  # a table that is named as its account
        ("/acca/acca", EntitySet("acca")),
        ("/acca" + KEYS, Entity("acca", "p", "r")),
        ("T" + KEYS, ENTITY),
        ("/Tables", TableSet()),
    ],
)
def test_an_operation_of_a_batch_is_in_the_account_of_the_batch(target: str, resource: object) -> None:
    outer = parse("/acca/$batch", IN_PATH)
    address, query = resolve(target + "?$select=A", outer, IN_PATH)
    assert (address.account, address.resource, query) == ("acca", resource, "$select=A")


def test_in_host_style_a_path_begins_at_the_table() -> None:
    outer = parse("/$batch", IN_HOST)
    assert resolve("/T", outer, IN_HOST)[0] == Address("acca", False, "", T)
    assert resolve("http://acca.table.localhost:8000/T", outer, IN_HOST)[0].resource == T
    assert resolve("http://127.0.0.1:8000/acca/T", outer, IN_HOST)[0].resource == T


@each_row("path, host", [("/acca/$batch", IN_PATH), ("/$batch", IN_HOST)])
@each_row("target", [*FOREIGN, *(each.replace("/T", "/T" + KEYS) for each in FOREIGN)])
def test_an_operation_elsewhere_is_refused(target: str, path: str, host: str) -> None:
    with pytest.raises(ServiceError) as caught:
        resolve(target, parse(path, host), host)
    # The last code: a name with a slash is no table name for any server.
    assert caught.value.code in ("InvalidInput", "InvalidUri", "InvalidResourceName")
