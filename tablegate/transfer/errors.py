"""Errors that end a transfer, and the forms of addresses that help and error texts show.

The command line prints the message and ends with the status that docs/migrate/verify.md defines. A problem of a
single row is a Reject and not an error. Every command imports this module for its help, so it imports little.
"""

from __future__ import annotations

from enum import Enum
from typing import ClassVar

ADDRESS_FORMS = {
    "dynamodb": "dynamodb://TABLE?region=REGION[&endpoint=URL][&profile=NAME]",
    "azure-table": "azure-table://ACCOUNT/TABLE[?endpoint=URL]",
    "tablestore": "tablestore://INSTANCE/TABLE?endpoint=URL[&region=REGION]",
    "tablegate": "tablegate:DATABASE-URL#[NAMESPACE/]TABLE",
    "file": "file:PATH",
}


class Remedy(Enum):
    """The command that works after an error of a copy that has begun."""

    RESUME = "resume"
    """The same job continues, once the cause is gone."""
    RESTART = "restart"
    """The job can only fail again. A new copy of the same tables works."""
    NONE = "none"
    """Neither works before something else is changed, which the message names."""


class TransferError(Exception):
    """A transfer cannot start or continue. The message has the cause and the remedy, and no secret."""

    remedy: ClassVar[Remedy] = Remedy.RESUME
    resume_options: ClassVar[str] = ""
    """Options that the command to resume needs."""


class BadAddress(TransferError):
    """The URL of an endpoint is invalid or incomplete."""


class MissingSoftware(TransferError):
    """A library that an endpoint needs is not installed. The message names the extra to install."""


class AccessRefused(TransferError):
    """The service rejects the credentials, or none were given."""


class RequestRefused(TransferError):
    """The service rejects the request permanently.

    `code` and `reason` are the service's own words. `status` is the HTTP status.
    """

    def __init__(self, shown: str, code: str, reason: str, status: int) -> None:
        self.code = code
        self.reason = reason
        self.status = status
        self.words = f"{code}: {reason}" if reason else code
        super().__init__(f"{shown}: the service rejects the request: {self.words}")


class TableAbsent(TransferError):
    """The table of an endpoint does not exist."""


class SchemaChanged(TransferError):
    """A table's key has changed since the transfer began, or does not match the other end."""

    remedy = Remedy.NONE


class ServiceUnavailable(TransferError):
    """The service cannot be reached, or has failed for the whole time of retries."""


class CannotResume(TransferError):
    """A job cannot continue: its source has changed, or its copied rows were removed."""

    remedy = Remedy.RESTART


class PositionLost(CannotResume):
    """Changes after the stored stream position have been deleted, so following would omit some."""


class BadFile(TransferError):
    """A file is damaged, truncated or of another format. The message names the file and the line if there are lines."""


class RepeatedKeys(TransferError):
    """Several rows of the source have one key in the target."""

    resume_options = "--duplicates last"


class RepeatedKeysInFile(RepeatedKeys):
    """Several rows have one key, and the target is a file, which cannot replace rows."""

    remedy = Remedy.NONE
