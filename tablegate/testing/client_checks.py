"""A warning about a client whose region or key differs from that of the client that created its table.

By default the server of the fixtures has one set of tables for all regions and keys. AWS and moto do not, so such a test
passes here and fails there.
"""

from __future__ import annotations

import contextlib
import json
import re
import sys
import traceback
import warnings
from typing import Any

_SDKS = (__name__.partition(".")[0], "botocore", "boto3")
_SIGNED_BY = re.compile(r"Credential=(.+)/[0-9]{8}/([^/]+)/dynamodb/aws4_request")


class ClientChecks:
    """The creators of the tables of one server, by the requests that boto3 sends in this process."""

    def __init__(self) -> None:
        self._url = ""
        self._creators: dict[str, tuple[str, str]] = {}
        self._is_hooked = self._has_warned = False

    def begin(self, url: str) -> None:
        """Check requests to the server at `url`, which has no tables of clients. "" stops the checks."""
        self._url, self._creators = url, {}
        if url and not self._is_hooked:
            with contextlib.suppress(ModuleNotFoundError):
                from botocore.handlers import BUILTIN_HANDLERS

                BUILTIN_HANDLERS.append(("before-send.dynamodb", self._check))
            self._is_hooked = True

    def _check(self, request: Any, **_: Any) -> None:
        """Look at a signed request of botocore before it is sent."""
        signed_by = _SIGNED_BY.search(_text(request.headers.get("Authorization", "")))
        if not self._url or not request.url.startswith(self._url) or signed_by is None:
            return
        key, region = signed_by.groups()
        operation = _text(request.headers.get("X-Amz-Target", "")).rpartition(".")[2]
        try:
            body = json.loads(request.body or "{}")
        except ValueError:  # what the server refuses
            return
        for name in [*body.get("RequestItems", ()), *filter(None, [body.get("TableName")])]:
            if operation == "CreateTable":
                self._creators.setdefault(name, (key, region))
            creator = self._creators.get(name)
            if creator is not None and creator != (key, region) and not self._has_warned:
                self._has_warned = True
                warnings.warn(_warning(name, creator, (key, region)), stacklevel=_level_of_caller())
            if operation == "DeleteTable":
                self._creators.pop(name, None)


def _warning(table: str, creator: tuple[str, str], user: tuple[str, str]) -> str:
    if creator[1] != user[1]:
        met = f"{table} was created in {creator[1]} and is used in {user[1]}. AWS and moto keep regions apart"
        wanted = "separate"
    else:
        met = f"{table} was created with the key {creator[0]} and is used with {user[0]}. AWS keeps accounts apart"
        wanted = "keys"
    return (
        f"{met}, and this server does so with `namespaces = {wanted}` in tablegate_settings. `namespaces = shared` "
        "silences this warning."
    )


def _level_of_caller() -> int:
    """Return the stack level, seen from the caller of this function, of the code that called boto3."""
    frames = traceback.walk_stack(sys._getframe(1))
    names = [str(frame.f_globals.get("__name__", "")).partition(".")[0] for frame, _ in frames]
    return next((level for level, name in enumerate(names, 1) if name not in _SDKS), 1)


def _text(value: str | bytes) -> str:
    return value.decode("latin-1") if isinstance(value, bytes) else value


CLIENT_CHECKS = ClientChecks()
