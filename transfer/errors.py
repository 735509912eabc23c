"""What can go wrong with a transfer as a whole. Each is one clear message for whoever started it; the command line prints it
and ends with the status that docs/migrate/verify.md names. What is wrong with one row is a Reject, never an error.
"""

from __future__ import annotations


class TransferError(Exception):
    """A transfer cannot begin or go on. The message says what is wrong and what to do about it; it holds no secret."""


class BadAddress(TransferError):
    """An endpoint's URL cannot be read, or lacks something."""


class MissingSoftware(TransferError):
    """A library that an endpoint needs is not installed. The message names the extra of the wheel that brings it."""


class AccessRefused(TransferError):
    """The service does not accept the credentials, or there are none."""


class RequestRefused(TransferError):
    """The service does not take this request, whenever it is sent. `code`, `reason`: its own words; `status`: of HTTP."""

    def __init__(self, shown: str, code: str, reason: str, status: int) -> None:
        self.code = code
        self.reason = reason
        self.status = status
        self.words = f"{code}: {reason}" if reason else code
        super().__init__(f"{shown}: the service refuses the request: {self.words}")


class TableAbsent(TransferError):
    """The table that an endpoint names is not there."""


class SchemaChanged(TransferError):
    """A table's key is not what it was when the transfer began, or not what the other end needs."""


class ServiceUnavailable(TransferError):
    """The service cannot be reached, or has refused for as long as the transfer is willing to try."""


class PositionLost(TransferError):
    """Changes after a remembered position are no longer kept, so that following on would leave some out."""


class BadFile(TransferError):
    """A file is damaged, cut off, or not what its format says. The message names the file, and the line where there are lines."""
