"""Operations of the dialects, run as the visitor of a page."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from tablegate.gateway.adapter import DialectAdministration, console_parts
from tablegate.gateway.administration_forms import OperationRequest
from tablegate.gateway.console.sign_in import ConsoleUser
from tablegate.gateway.coroutines import drive
from tablegate.gateway.dialect import Gateway
from tablegate.gateway.model.authorization.authorizations import NamedResource
from tablegate.gateway.model.authorization.grants import Verdict
from tablegate.gateway.model.errors import NotPermitted, QuotaExceeded, TableMissing
from tablegate.gateway.security import gate
from tablegate.gateway.security.credentials import SHARED_NAMESPACE


class OperationRefused(Exception):
    """The service's refusal of an operation. The text is the service's own."""


class Operations:
    """The operations of the dialects that a gateway serves."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway
        self._all = {name: part.administration for name, part in console_parts(gateway.settings).items()}

    def title(self, dialect: str) -> str:
        """Return the name of the service of a dialect. A dialect without administration has only its own name."""
        return self._all[dialect].title if dialect in self._all else dialect

    def serving(self, namespace: str) -> Sequence[DialectAdministration]:
        """Return the administrations of the dialects whose clients see the tables of a namespace."""
        scheme = namespace.partition("/")[0]
        return [
            each
            for each in self._all.values()
            if namespace == SHARED_NAMESPACE or scheme == each.default_namespace.partition("/")[0]
        ]

    def creating(self, visitor: ConsoleUser) -> Sequence[tuple[DialectAdministration, str]]:
        """Return the administrations in which a visitor may create tables, each with the namespace to propose."""
        return [
            (each, namespace)
            for each, namespace in self.places(visitor)
            if self.may(visitor, each, each.forms["create"].operation)
        ]

    def places(self, visitor: ConsoleUser) -> Sequence[tuple[DialectAdministration, str]]:
        """Return the administrations of a visitor's own dialects, each with its usual namespace."""
        found = [(each, self._usual_namespace(each, visitor.scope)) for each in self._all.values()]
        return [(each, namespace) for each, namespace in found if namespace and visitor.sees(namespace)]

    def _usual_namespace(self, administration: DialectAdministration, scope: str | None) -> str:
        """Return the namespace of a dialect with the parts that the scope determines. "" if the scope is of another dialect."""
        if self._gateway.settings.namespaces == "shared":
            return SHARED_NAMESPACE
        parts, own = administration.default_namespace.split("/"), scope.split("/") if scope else []
        if own and own[0] != parts[0]:
            return ""
        return "/".join([*own, *parts[len(own) :]])

    def accepts(self, visitor: ConsoleUser, administration: DialectAdministration, namespace: str) -> bool:
        """True if a visitor's clients of a dialect can have tables in a namespace."""
        if not visitor.sees(namespace):
            return False
        if self._gateway.settings.namespaces == "shared":
            return namespace == SHARED_NAMESPACE
        parts, usual = namespace.split("/"), administration.default_namespace.split("/")
        return all(parts) and len(namespace) <= 255 and (parts[0], len(parts)) == (usual[0], len(usual))

    def may(
        self,
        visitor: ConsoleUser,
        administration: DialectAdministration,
        operation: str,
        resource: tuple[str, str] | None = None,
    ) -> bool:
        """True if a visitor could be allowed an operation on a resource (namespace, path), or on some resource if it is None."""
        authorization = visitor.authorization
        if authorization is None:
            return True
        purpose = authorization.purpose = administration.purposes[operation]
        if resource is None:
            return authorization.policy.possible_verdict(purpose, authorization) is Verdict.ALLOWED
        return authorization.refusal_of_named([NamedResource(purpose.permissions, *resource)]) is None

    def require(self, visitor: ConsoleUser, administration: DialectAdministration, operation: str) -> None:
        """Refuse an operation that the visitor is allowed on no resource. Raises NotPermitted."""
        if visitor.authorization is not None:
            visitor.authorization.purpose = administration.purposes[operation]
            visitor.authorization.is_checked = False
            refusal = visitor.authorization.refusal_before_access(True)
            if refusal is not None:
                raise refusal

    def run(
        self,
        visitor: ConsoleUser,
        administration: DialectAdministration,
        operation: str,
        namespace: str,
        document: dict[str, Any],
    ) -> Any:
        """Return the answer of an operation. Raises OperationRefused, GatewayError."""
        if not visitor.sees(namespace):
            raise TableMissing("")
        gateway, authorization = self._gateway, visitor.authorization
        if authorization is not None:
            authorization.is_checked = False
        request = OperationRequest(operation, document, namespace, visitor.name, authorization)
        try:
            answer = drive(
                partial(administration.execute, gateway, request),
                partial(gate.run, gateway.engine, authorization=authorization),
            )
        except (NotPermitted, QuotaExceeded):
            raise
        except Exception as error:
            # A caller without permission gets the permission error even if the request is also invalid.
            refusal = None if authorization is None else authorization.refusal_before_access(True)
            if refusal is not None:
                raise refusal from None
            text = administration.text_of(error, operation)
            if text is None:
                raise
            raise OperationRefused(text) from None
        return administration.answer_of(answer)

    def describe(
        self,
        visitor: ConsoleUser,
        administration: DialectAdministration,
        namespace: str,
        operation: str,
        document: dict[str, Any],
    ) -> Any:
        """Return the answer of an operation that only reads, None if it is refused."""
        try:
            return self.run(visitor, administration, operation, namespace, document)
        except (NotPermitted, OperationRefused):
            return None
