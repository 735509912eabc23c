"""An Azure account and a Table Store instance of one name are two tenants, and so is whatever DynamoDB has."""

from __future__ import annotations

import pytest
from azure.core.exceptions import ResourceNotFoundError

from tests.tenants.conftest import MUSIC, Tenants


def test_the_namesake_in_another_dialect_sees_nothing(tenants: Tenants) -> None:
    """Each makes a table that the others neither see nor reach, nor are kept from making."""
    names = {}
    tenants.victim.azure.create_table("ofAzure")
    tenants.victim.tablestore().create("ofTableStore")
    try:
        names["azure"] = sorted(each.name for each in tenants.victim.azure.list_tables())
        names["tablestore"] = sorted(tenants.victim.tablestore().call("ListTable").table_names)
        names["dynamodb"] = tenants.victim.dynamodb().list_tables()["TableNames"]
        with pytest.raises(ResourceNotFoundError):
            list(tenants.victim.azure.get_table_client("ofTableStore").list_entities())
        tenants.victim.azure.create_table("ofTableStore")
        tenants.victim.azure.delete_table("ofTableStore")
        assert "ofTableStore" in tenants.victim.tablestore().call("ListTable").table_names
    finally:
        tenants.victim.azure.delete_table("ofAzure")
        tenants.victim.tablestore().call("DeleteTable", table_name="ofTableStore")
    assert names == {"azure": ["ofAzure", MUSIC], "tablestore": ["ofTableStore", MUSIC], "dynamodb": [MUSIC]}
