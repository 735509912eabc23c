"""The Table service with `--auth strict` and an issuer of tokens, in this process. It uses no sockets but the issuer's."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from email.utils import formatdate
from typing import Any

from tablegate.adapters.azuretable import dialect
from tablegate.gateway.configuration.loading import load
from tablegate.gateway.control.administration import Administration
from tablegate.gateway.http.messages import Reply
from tablegate.gateway.model.authorization.quotas import Quota
from tablegate.gateway.security.credential_store import CredentialStore
from tablegate.gateway.security.credentials import Credential, Scheme
from tablegate.gateway.security.grant_store import ALL, NAMED_BY_TOKENS
from tablegate.gateway.store.migrating import migrate
from tablegate.gateway.wiring import administration_of, connect, open_store, wire
from tests.support.oidc import Issuer, running_issuer
from tests.support.strict import azure_request

ACCOUNT, OTHER_ACCOUNT = "teamdata", "otherteam"
KEY = "dGhlIGtleSBvZiB0aGUgdGVhbQ=="
VERSION = "2026-04-06"


class IdentifiedService:
    """The service of one account whose tables are `people` and `orders`."""

    def __init__(
        self, issuer: Issuer, administration: Administration, gateway: Any, store: CredentialStore
    ) -> None:
        self.issuer = issuer
        self.gateway = gateway
        self.dialect = dialect.AzureTable(gateway)
        self.store = store
        self._operations = {
            (method, path): operation for method, path, operation in administration.operations()
        }

    def grant(self, key: str, form: str, document: Any = "") -> str:
        """Add a grant, as `tablegate grants add` does, and put it in force. Returns its id."""
        text = document if isinstance(document, str) else json.dumps(document)
        made = self._operations["POST", "/grants"]({"key": key, "form": form, "document": text})
        self.reload()
        return str(made["id"])

    def quota(self, owner: str, **limits: float) -> None:
        """Set a quota, as `tablegate quotas set` does, and put all of its owner in force."""
        made = self._operations["PUT", "/quotas"]({"access_id": owner, **limits})
        self.gateway.quotas.replace({made["owner"]: Quota.of(made["document"])})

    def revoke(self, grant_id: str) -> None:
        self._operations["DELETE", "/grants"]({"id": grant_id})
        self.reload()

    def revoke_all(self) -> None:
        """Remove all grants but those of the account's key."""
        for grant in self.store.grants.load():
            if grant.grantee != f"azure/{ACCOUNT}":
                self.store.grants.remove(grant.id)
        self.reload()

    def revoke_tokens(self) -> None:
        """Remove all grants to identities, groups and roles."""
        for grant in self.store.grants.load():
            if grant.grantee.startswith(NAMED_BY_TOKENS):
                self.store.grants.remove(grant.id)
        self.reload()

    def reload(self) -> None:
        self.gateway.credentials.replace(self.store.load(), self.store.token_policies)

    def send(
        self,
        method: str,
        path: str,
        body: Any = b"",
        token: str | None = None,
        headers: Mapping[str, str] | None = None,
        key: str | None = None,
        secure: bool = True,
        account: str = ACCOUNT,
    ) -> Reply:
        """The reply to a request with a token, a key, or neither. `last` is the request."""
        sent = {"x-ms-version": VERSION, "x-ms-date": formatdate(usegmt=True), **(headers or {})}
        if token is not None:
            sent["Authorization"] = f"Bearer {token}"
        request = azure_request(account, method, path, body, sent, key)
        self.last = replace(request, secure=secure)
        return self.dialect.serve(self.last)

    def status(self, token: str, method: str, path: str, body: Any = b"") -> int:
        return self.send(method, path, body, token).status


@contextlib.contextmanager
def identified_service(**settings: Any) -> Iterator[IdentifiedService]:
    """A service with the tables `people` and `orders`, each with one entity, and no grants but those of the key."""
    with running_issuer() as issuer:
        made = load(
            {
                "memory": True, "auth": "strict", "secret_key": "a key of sixteen characters",
                "oidc_issuer": (issuer.url,), **settings,
            },
            {},
        )  # fmt: skip
        database = connect(made)
        migrate(database)
        opened = open_store(made, database)
        with contextlib.closing(opened):
            opened.credential_store.add(Credential(Scheme.AZURE, ACCOUNT, (KEY, KEY)), [ALL])
            application = wire(made, opened)
            service = IdentifiedService(
                issuer, administration_of(made, opened), application.gateway, opened.credential_store
            )
            for table in ("people", "orders"):
                assert service.send("POST", "/Tables", {"TableName": table}, key=KEY).status == 201
                entity = {"PartitionKey": "p", "RowKey": "r"}
                assert service.send("POST", f"/{table}", entity, key=KEY).status == 201
            yield service
