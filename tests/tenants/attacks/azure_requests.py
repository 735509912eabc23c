"""Requests of one side to Azure Table: on its own tables, and with every identifier of the other side."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable
from typing import Any

from azure.core.credentials import AzureNamedKeyCredential, AzureSasCredential
from azure.core.exceptions import HttpResponseError
from azure.data.tables import (
    AccountSasPermissions,
    ResourceTypes,
    TableSasPermissions,
    TableServiceClient,
    TransactionOperation,
    UpdateMode,
    generate_account_sas,
    generate_table_sas,
)

from tests.tenants.attacks.sides import Side

EXPIRY = "2099-01-01T00:00:00Z"
NAMES = ("TableName", "TableNames", "table_name")


def key_of(account: str) -> str:
    return base64.b64encode(hashlib.sha256(account.encode()).digest()).decode()


class Azure:
    """A side by azure-data-tables: at its own account, and at the other's, with its own key and with shared access signatures
    that it makes itself."""

    def __init__(self, side: Side) -> None:
        self.side = side
        self.key = AzureNamedKeyCredential(side.name, key_of(side.name))
        self.own = self._service(side.name, self.key)

    def _service(self, account: str, credential: Any) -> TableServiceClient:
        return TableServiceClient(
            f"{self.side.url}/{account}", credential=credential, retry_total=0, raw_response_hook=self._heard
        )

    def _heard(self, response: Any) -> None:
        answer = response.http_response
        self.side.seen(str(dict(answer.headers)) + answer.read().decode())

    def ask(self, operation: str, call: Callable[[], Any]) -> Any:
        """Send a request and keep the identifiers of its answer. Returns the answer or None."""
        self.side.doing = f"azure {operation}"
        try:
            answer = call()
        except HttpResponseError as error:
            code = str(getattr(error, "error_code", "") or "").rpartition(".")[2]
            self.side.answered(f"azure {operation}", error.status_code or 0, code or str(error.status_code))
            return None
        except ValueError as error:  # what the SDK itself refuses to send
            self.side.answered(f"azure {operation}", 0, type(error).__name__)
            return None
        self.side.answered(f"azure {operation}", 200, "")
        return answer

    def furnish(self) -> None:
        """Make the vault, where each dialect has its own tables."""
        table = self.own.create_table(self.side.vault)
        for pk in ("p0", "p1"):
            for number in range(5):
                table.create_entity(self.entity(pk, f"s{number}"))
        table.set_table_access_policy({f"{self.side.name}readers": None})

    def entity(self, pk: str, rk: str) -> dict[str, Any]:
        """A row of this side's."""
        return {"PartitionKey": pk, "RowKey": rk, "album": "a", "note": self.side.secret}

    def fingerprint(self) -> list[Any]:
        """Return all data that the other side could have changed."""
        vault = self.own.get_table_client(self.side.vault)
        rows = [
            str(sorted(dict(each, etag=each.metadata["etag"]).items(), key=str))
            for each in vault.list_entities()
        ]
        return [sorted(rows), sorted(vault.get_table_access_policy())]

    def work(self) -> None:
        """One thing that a tenant does."""
        chance = self.side.chance
        chance.choice((self._look_through, self._page, self._page, self._scratch))()

    def _look_through(self) -> None:
        names = self.ask("list_tables", lambda: [each.name for each in self.own.list_tables()]) or []
        for name in names:
            self.side.bag.keep("TableName", name)
        own = [name for name in names if name.startswith(self.side.name)]
        if own:
            table = self.own.get_table_client(self.side.chance.choice(own))
            self.ask("list_entities", lambda: list(table.list_entities()))
        for name in own[6:]:
            if name != self.side.vault:
                self.ask("delete_table", lambda name=name: self.own.delete_table(name))

    def _page(self) -> None:
        pages = self.own.get_table_client(self.side.vault).list_entities(results_per_page=2).by_page()
        self.ask("page", lambda: list(next(pages)))
        if pages.continuation_token:
            self.side.bag.keep("continuation", pages.continuation_token)

    def _scratch(self) -> None:
        name = self.side.new_name()
        self.ask("create_table", lambda: self.own.create_table_if_not_exists(name))
        row = self.entity("p0", "s0")
        self.ask("upsert", lambda: self.own.get_table_client(name).upsert_entity(row))

    # With what the other side has seen

    def attack(self) -> None:
        """One request with something that the other side has seen."""
        operation = self.side.chance.choice(list(ATTACKS))
        service = self._some_service()
        if operation in ("list_tables", "properties"):
            self.ask(operation, lambda: ATTACKS[operation](self, service))
            return
        table = service.get_table_client(self._name())
        self.ask(
            f"{operation} {table.account_name == self.side.name}", lambda: ATTACKS[operation](self, table)
        )

    def _name(self) -> str:
        found = str(self.side.foreign(*NAMES))
        return found.rpartition("/")[2] if found.startswith("arn:") else found

    def _some_service(self) -> TableServiceClient:
        """Return a client of its own account or the other's, with its key or with a token that it signs for either."""
        chance, names = self.side.chance, (self.side.name, self.side.other.name)
        account = chance.choice(names)
        if chance.random() < 0.5:
            return self._service(account, self.key)
        signer = AzureNamedKeyCredential(chance.choice(names), key_of(self.side.name))
        if chance.random() < 0.4:
            everything = AccountSasPermissions(
                read=True,
                write=True,
                delete=True,
                list=True,
                add=True,
                create=True,
                update=True,
                process=True,
            )
            kinds = ResourceTypes(service=True, container=True, object=True)
            return self._service(
                account, AzureSasCredential(generate_account_sas(signer, kinds, everything, expiry=EXPIRY))
            )
        given: dict[str, Any] = {
            "permission": TableSasPermissions(read=True, add=True, update=True, delete=True), "expiry": EXPIRY,
        }  # fmt: skip
        if chance.random() < 0.3:
            given = {"policy_id": f"{self.side.other.name}readers"}
        return self._service(account, AzureSasCredential(generate_table_sas(signer, self._name(), **given)))

    def place(self) -> tuple[str, str]:
        """A key that both have."""
        return f"p{self.side.chance.randrange(2)}", f"s{self.side.chance.randrange(5)}"

    def resumed(self, table: Any) -> Any:
        """A page from where the other side's page ended."""
        token = self.side.foreign("continuation")
        pages = table.list_entities(results_per_page=3).by_page(token if isinstance(token, dict) else None)
        return list(next(pages))


def _batch(side: Azure, table: Any) -> Any:
    pk, rk = side.place()
    row = side.entity(pk, rk)
    return table.submit_transaction(
        [(TransactionOperation.UPSERT, row), (TransactionOperation.DELETE, side.entity(pk, rk + "x"))]
    )


ATTACKS: dict[str, Callable[[Azure, Any], Any]] = {
    "get": lambda side, table: table.get_entity(*side.place()),
    "list": lambda side, table: list(table.list_entities()),
    "query": lambda side, table: list(table.query_entities("PartitionKey eq 'p0'")),
    "resume": lambda side, table: side.resumed(table),
    "insert": lambda side, table: table.create_entity(side.entity("p9", "s9")),
    "replace": lambda side, table: table.upsert_entity(side.entity(*side.place()), UpdateMode.REPLACE),
    "merge": lambda side, table: table.update_entity(side.entity(*side.place()), UpdateMode.MERGE),
    "delete": lambda side, table: table.delete_entity(*side.place()),
    "batch": _batch,
    "create": lambda side, table: table.create_table(),
    "drop": lambda side, table: table.delete_table(),
    "policies": lambda side, table: table.get_table_access_policy(),
    "set policies": lambda side, table: table.set_table_access_policy({"stolen": None}),
    "list_tables": lambda side, service: [each.name for each in service.list_tables()],
    "properties": lambda side, service: service.get_service_properties(),
}
