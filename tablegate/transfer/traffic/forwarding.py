"""Forwarding of a client's request to the service behind a proxy with a valid signature.

Table Store and Azure Shared Key do not sign Host. Their requests get the service's Host and keep their signature.
Replies of Table Store are signed with the caller's secret and stay valid too. AWS signatures cover Host:

- Without credentials, the request keeps the Host that the client signed. tablegate and the emulators accept it.
- With credentials, the request is signed again for the service's own Host.

A bearer token or a shared access signature is passed on.
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
    "the service rejects a signature that was passed on unchanged. AWS signatures cover the Host that the client used. "
    "Sign again with --credentials, or configure the service to accept that Host (docs/migrate/replaying.md)"
)


class Forwarder:
    """A converter of client requests for one service. `signer` is None if no credentials were given."""

    def __init__(self, address: Address, signer: Signer | None) -> None:
        self._address = address
        self._signer = signer

    def forwarded(self, request: Request) -> Request:
        """Return the request as it is sent to the service."""
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


def request_metadata(number: int, connection: int, at: float, request: Request) -> RecordedRequest:
    """Return the record of a client's request."""
    dialect = dialect_of(request)
    operation = DIALECTS[dialect].operation(request) if dialect != NONE else request.method
    return RecordedRequest(
        number, connection, at, dialect, operation, signed_how(request), region_of(request)
    )


def is_refused_signature(metadata: RecordedRequest, request: Request, reply: Reply) -> bool:
    """True if the service rejected the caller's identity or signature."""
    if metadata.dialect == NONE or metadata.signed != KEY or not 400 <= reply.status < 500:
        return False
    return DIALECTS[metadata.dialect].answer(request, plain(reply)).code in AUTHENTICATION_CODES
