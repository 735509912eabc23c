"""A client's request becomes one for the service behind a proxy, so that its signature is still right.

Table Store and Azure's Shared Key do not sign Host: their requests get the service's own and are right as they came, as is
the answer, which Table Store signs with the caller's secret. AWS's signature covers Host: the request goes out with the one
that the client signed, which a service that believes the Host header finds right (tablegate and the emulators do), or, with
credentials given, it is signed anew for the service's own. A bearer token or a shared access signature is passed on.
Source: docs/protocols/dynamodb.md, azure-table.md and table-store.md on signatures.
"""

from __future__ import annotations

from dataclasses import replace

from tablegate.gateway.http import Reply, Request
from tablegate.transfer.traffic.dialects.detecting import DIALECTS, NONE, dialect_of
from tablegate.transfer.traffic.dialects.dialect import plain
from tablegate.transfer.traffic.rules import AZURE_TABLE, DYNAMODB
from tablegate.transfer.traffic.services import Address
from tablegate.transfer.traffic.sessions import AUTHENTICATION_CODES
from tablegate.transfer.traffic.signing import KEY, Signer, region_of, signed_how
from tablegate.transfer.traffic.traces import RecordedRequest

REFUSED = (
    "the service refuses a signature that was passed on as it came. AWS signatures cover the Host that the client knows: "
    "give --credentials, so that requests are signed anew for the service, or let it accept that Host (docs/migrate/replaying.md)"
)


class Forwarder:
    """Makes requests ready for a service. `signer`: of the credentials that were given for it, if any were."""

    def __init__(self, address: Address, signer: Signer | None) -> None:
        self._address = address
        self._signer = signer

    def forwarded(self, request: Request) -> Request:
        """The request as it is sent to the service."""
        dialect = dialect_of(request)
        if dialect in (DYNAMODB, NONE):
            if self._signer is None or signed_how(request) != KEY:
                return request
            return self._signer.signed(dialect, request, region_of(request))
        headers = (
            *((name, value) for name, value in request.headers if name != "host"),
            ("host", self._address.host),
        )
        if dialect == AZURE_TABLE:
            request = DIALECTS[dialect].moved(request, self._address.origin, "")
        return replace(request, headers=headers)


def described(number: int, connection: int, at: float, request: Request) -> RecordedRequest:
    """What is known of a client's request."""
    dialect = dialect_of(request)
    operation = DIALECTS[dialect].operation(request) if dialect != NONE else request.method
    return RecordedRequest(
        number, connection, at, dialect, operation, signed_how(request), region_of(request)
    )


def is_refused_signature(about: RecordedRequest, request: Request, reply: Reply) -> bool:
    """Whether a service says that it does not know who asks."""
    if about.dialect == NONE or about.signed != KEY or not 400 <= reply.status < 500:
        return False
    return DIALECTS[about.dialect].answer(request, plain(reply)).code in AUTHENTICATION_CODES
