"""Forms about credentials, grants and quotas. Their operations are those of control/administration.py, by method and path."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import orjson

from tablegate.gateway.administration_forms import BadField, Field, Form, Values, number, words
from tablegate.gateway.model.authorization.quotas import PRINCIPALS_OF_TOKENS
from tablegate.gateway.model.tables.tables import Table
from tablegate.gateway.security.grant_store import written_of
from tablegate.gateway.security.policies.short_forms import READ_ONLY, READ_WRITE

SCHEMES = (("aws", "AWS"), ("azure", "Azure"), ("tablestore", "Table Store"))
_KINDS = (
    ("read-only", "read rows"), ("read-write", "read and write rows"), ("all", "everything"), ("role", "a role"),
    ("document", "a document (short form, IAM or RAM)"),
)  # fmt: skip


def _new_credential(table: Table | None, values: Values) -> dict[str, Any]:
    document: dict[str, Any] = {"scheme": values["scheme"], "access_id": values["access_id"].strip()}
    if values["place"].strip():
        document["place"] = values["place"].strip()
    if values["all"]:
        document["all"] = True
    return document


def _credential(table: Table | None, values: Values) -> dict[str, Any]:
    return {"scheme": values["scheme"], "access_id": values["access_id"]}


def _new_grant(table: Table | None, values: Values) -> dict[str, Any]:
    document: dict[str, Any] = {"key": values["key"].strip()}
    if values["scheme"]:
        document["scheme"] = values["scheme"]
    return {**document, **_written(values)}


def _written(values: Values) -> dict[str, str]:
    """Return the form and the document of a grant. Raises BadField."""
    match values["kind"]:
        case "all":
            return {"form": "all"}
        case "role":
            if not values["role"].strip():
                raise BadField("role", "Name the role.")
            return {"form": "role", "document": values["role"].strip()}
        case "document":
            try:
                form = written_of(orjson.loads(values["document"])).form
            except ValueError as error:
                raise BadField("document", f"This is not a grant: {error}.") from None
            return {"form": form, "document": values["document"]}
    tables = words(values, "tables")
    if not tables:
        raise BadField("tables", "Name at least one table or pattern.")
    actions = READ_ONLY if values["kind"] == "read-only" else READ_WRITE
    return {"form": "short", "document": json.dumps(dict.fromkeys(actions, tables))}


def _grant(table: Table | None, values: Values) -> dict[str, Any]:
    return {"id": values["id"]}


_OWNERS = "SCHEME/ACCESS_ID, such as aws/KEY, entra/ID, group/ID, or namespace/NAME"


def _owner(values: Values) -> dict[str, str]:
    kind, _, name = values["owner"].partition("/")
    if not name:
        raise BadField("owner", f"Write {_OWNERS}.")
    if values["owner"].startswith(PRINCIPALS_OF_TOKENS):
        return {"access_id": values["owner"]}
    return {"namespace": name} if kind == "namespace" else {"scheme": kind, "access_id": name}


def _new_quota(table: Table | None, values: Values) -> dict[str, Any]:
    limits = {name: number(values, name) for name in _LIMITS}
    return {**_owner(values), **{name: limit for name, limit in limits.items() if limit is not None}}


def _quota(table: Table | None, values: Values) -> dict[str, Any]:
    return _owner(values)


_LIMITS = {
    "requests": "Requests per second", "read_units": "Read units per second",
    "write_units": "Write units per second", "bytes": "Bytes in all", "tables": "Tables",
}  # fmt: skip
_SCHEME, _ACCESS_ID = Field("scheme", kind="hidden"), Field("access_id", kind="hidden")
FORMS: Mapping[str, Form] = {
    "credential_new": Form(
        "POST /credentials", "Create credential", _new_credential, "The credential was created.",
        (
            Field("scheme", "Scheme", "select", "aws", SCHEMES),
            Field("access_id", "Access id", hint="The access key id, or the name of the Azure account.", is_required=True),
            Field("place", "Place", hint="The account (AWS) or instance (Table Store). * is each instance."),
            Field("all", "Allow everything", "select", "", (("", "no, I add grants"), ("yes", "yes"))),
        ),
        title="Create a credential",
    ),
    "credential_delete": Form("DELETE /credentials", "Delete", _credential, "The credential was deleted.",
                              (_SCHEME, _ACCESS_ID), question="Delete the credential {access_id}?", is_dangerous=True),
    "grant_new": Form(
        "POST /grants", "Add grant", _new_grant, "The grant was added.",
        (
            Field("key", "Credential", hint="An access id, role/NAME, or * for all credentials.", is_required=True),
            Field("scheme", "Scheme", "select", "", (("", "of the credential"), *SCHEMES)),
            Field("kind", "Grant", "select", "read-only", _KINDS),
            Field("tables", "Tables", hint="Names or patterns such as orders*, with commas."),
            Field("role", "Role", hint="For a role only."),
            Field("document", "Document", "textarea", hint="For a document only, as JSON."),
        ),
        title="Add a grant",
    ),
    "grant_delete": Form("DELETE /grants", "Remove", _grant, "The grant was removed.",
                         (Field("id", kind="hidden"),), question="Remove the grant {id}?", is_dangerous=True),
    "quota_set": Form(
        "PUT /quotas", "Set quota", _new_quota, "The quota was set.",
        (Field("owner", "Owner", hint=f"{_OWNERS}.", is_required=True),
         *(Field(name, label, "number") for name, label in _LIMITS.items())),
        title="Set a quota",
    ),
    "quota_delete": Form("DELETE /quotas", "Remove", _quota, "The quota was removed.",
                         (Field("owner", kind="hidden"),), question="Remove the quota of {owner}?", is_dangerous=True),
}  # fmt: skip
