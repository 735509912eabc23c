"""A client of one HTTP service, and the signing of requests with the operator's credentials.

The client sends requests and returns replies without changing their bytes. Credentials come from a TOML file, else from the
environment variables of the services' SDKs. The default is the development credentials of `--auth dev`. Credentials never
appear on the command line, in a trace or in a report. The adapters implement the signature rules.
"""

from __future__ import annotations

import asyncio
import os
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from email.utils import formatdate
from pathlib import Path
from urllib.parse import urlsplit

import aiohttp
from yarl import URL

from tablegate.adapters.azuretable import auth as azure
from tablegate.adapters.azuretable.call import options_of
from tablegate.adapters.azuretable.wire.errors import ServiceError
from tablegate.adapters.dynamodb.wire import auth as aws
from tablegate.adapters.tablestore.wire import auth as ots
from tablegate.gateway.http.messages import Headers, Reply, Request
from tablegate.gateway.security.credentials import DEV_CREDENTIALS, Scheme
from tablegate.transfer.errors import BadAddress, TransferError

KEY, SHARED_ACCESS, BEARER, UNSIGNED = "key", "shared access", "bearer", "none"
"""Kinds of authentication. Requests with a shared access signature or a bearer token are signed again with a key."""

_SHARED_ACCESS_OPTIONS = frozenset(
    ("sv", "ss", "srt", "sp", "st", "se", "sip", "spr", "sig", "ses", "tn", "si", "spk", "srk", "epk", "erk")
)
_OLD_PROOFS = frozenset(
    ("host", "authorization", "x-amz-security-token", "x-ots-signature", "x-ots-signaturev4", "x-ots-signdate",
     "x-ots-signregion", "x-ots-ststoken")
)  # fmt: skip
_CREDENTIAL = re.compile(r"Credential=([^,\s]+)")


class BadCredentials(TransferError):
    """The credentials file is invalid. The message contains no secret."""


@dataclass(frozen=True, slots=True)
class SigningKey:
    """A credential. `name` is the access id or the Azure account."""

    name: str
    secret: str
    token: str = ""

    def __repr__(self) -> str:
        return f"Key({self.name!r})"


# Variables that SDKs and their command lines read: (name, secret, token).
_VARIABLES = {
    "aws": ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"),
    "azure": ("AZURE_STORAGE_ACCOUNT", "AZURE_STORAGE_KEY", ""),
    "tablestore": ("TABLESTORE_ACCESS_KEY_ID", "TABLESTORE_ACCESS_KEY_SECRET", "TABLESTORE_SESSION_TOKEN"),
}
_MEMBERS = {
    "aws": ("access_id", "secret", "session_token"),
    "azure": ("account", "key", ""),
    "tablestore": ("access_id", "secret", "session_token"),
}


def credentials_of(path: Path | None, environment: Mapping[str, str] = os.environ) -> dict[str, SigningKey]:
    """Return a key for each of `aws`, `azure` and `tablestore`. Raises BadCredentials."""
    keys = {
        item.scheme.value: SigningKey(item.access_id, item.secrets[0])
        for item in DEV_CREDENTIALS
        if item.scheme in Scheme
    }
    for scheme, (name, secret, token) in _VARIABLES.items():
        if environment.get(name) and environment.get(secret):
            keys[scheme] = SigningKey(environment[name], environment[secret], environment.get(token, ""))
    return keys if path is None else keys | _read(path)


def _read(path: Path) -> dict[str, SigningKey]:
    try:
        document = tomllib.loads(path.read_text())
    except OSError as error:
        raise BadCredentials(f"{path}: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError):
        raise BadCredentials(f"{path} is not a TOML file") from None
    keys = {}
    for scheme, members in document.items():
        if scheme not in _MEMBERS or not isinstance(members, dict):
            raise BadCredentials(f"{path}: unknown section [{scheme}]. Use [aws], [azure] or [tablestore]")
        name, secret, token = _MEMBERS[scheme]
        wrong = [member for member in members if member not in (name, secret, token) or not member]
        if wrong or not all(isinstance(members.get(member), str) for member in (name, secret)):
            raise BadCredentials(f"{path}: [{scheme}] needs {name} and {secret} as strings")
        keys[scheme] = SigningKey(members[name], members[secret], str(members.get(token, "")))
    return keys


def signed_how(request: Request) -> str:
    """Return the kind of authentication: KEY, SHARED_ACCESS, BEARER or UNSIGNED."""
    authorization = request.header("authorization")
    if authorization.lower().startswith("bearer "):
        return BEARER
    if authorization or request.header("x-ots-signature") or request.header("x-ots-signaturev4"):
        return KEY
    query = f"&{request.query}".lower()
    if "&x-amz-signature=" in query:
        return KEY
    return SHARED_ACCESS if "&sig=" in query else UNSIGNED


def region_of(request: Request) -> str:
    """Return the region in the scope of an AWS signature, "" if there is none."""
    match = _CREDENTIAL.search(request.header("authorization"))
    parts = match[1].split("/") if match else []
    return parts[-3] if len(parts) >= 5 else ""


class Signer:
    """A signer of requests for `host` with the given keys and the current time."""

    def __init__(self, keys: Mapping[str, SigningKey], host: str) -> None:
        self._keys = keys
        self._host = host

    @property
    def account(self) -> str:
        return self._keys["azure"].name

    def signed(self, dialect: str, request: Request, region: str = "") -> Request:
        """Return the request with a new signature. A request of no dialect only gets the new Host."""
        match dialect:
            case "dynamodb":
                return self._aws(request, region or aws.DEFAULT_REGION)
            case "azuretable":
                return self._azure(request)
            case "tablestore":
                return self._ots(request)
            case _:
                return self.unsigned(request)

    def unsigned(self, request: Request) -> Request:
        """Return the request with the new Host and without signature."""
        return replace(request, headers=self._headers(request))

    def _headers(self, request: Request, *further: tuple[str, str]) -> Headers:
        replaced = _OLD_PROOFS | {name for name, _ in further}
        return (
            *((name, value) for name, value in request.headers if name not in replaced),
            ("host", self._host),
            *further,
        )

    def _aws(self, request: Request, region: str) -> Request:
        key = self._keys["aws"]
        date = ("x-amz-date", f"{datetime.now(UTC):%Y%m%dT%H%M%SZ}")
        token = [("x-amz-security-token", key.token)] if key.token else []
        # A signature in the query is replaced by one in the header.
        path, _, query = request.target.partition("?")
        pairs = [pair for pair in query.split("&") if not pair.lower().startswith("x-amz-")]
        target = path + ("?" + "&".join(pairs) if any(pairs) else "")
        base = replace(request, target=target, headers=self._headers(request, date, *token))
        authorization = aws.authorization(base, key.name, key.secret, region)
        return replace(base, headers=(*base.headers, ("authorization", authorization)))

    def _azure(self, request: Request) -> Request:
        key = self._keys["azure"]
        path, _, query = request.target.partition("?")
        is_shared_access = any(pair.startswith(("sv=", "sig=")) for pair in query.split("&"))
        kept_pairs = [
            pair
            for pair in query.split("&")
            if not is_shared_access or pair.partition("=")[0] not in _SHARED_ACCESS_OPTIONS
        ]
        target = path + ("?" + "&".join(kept_pairs) if any(kept_pairs) else "")
        date = ("x-ms-date", formatdate(usegmt=True))
        base = replace(request, target=target, headers=self._headers(request, date))
        try:
            options = options_of(base.query)
        except ServiceError:  # services reject an invalid query before they check the signature
            options = {}
        authorization = azure.authorization(base, options, key.name, key.secret)
        return replace(base, headers=(*base.headers, ("authorization", authorization)))

    def _ots(self, request: Request) -> Request:
        key = self._keys["tablestore"]
        date = f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%S.%f}"[:-3] + "Z"
        token = [("x-ots-ststoken", key.token)] if key.token else []
        headers = self._headers(request, *token)
        others = {name: value.strip() for name, value in headers if name.startswith("x-ots-")}
        operation = request.path.lstrip("/")
        signing = ots.signing_headers(operation, request.body, others, key.name, key.secret, date)
        kept = (header for header in headers if header[0] not in signing)
        return replace(request, headers=(*kept, *signing.items()))


ANSWER_MAX_BYTES = 64 << 20
_CONNECT_SECONDS = 10.0
# Shorter than the idle timeout of the services, so that no connection is used while the service closes it.
_IDLE_SECONDS = 4.0
_OWN_HEADERS = frozenset({"Accept", "Accept-Encoding", "User-Agent", "Content-Type", "Host"})
# Headers of one connection (RFC 9110, 7.6.1).
HOP_BY_HOP = frozenset(
    {
        "connection", "expect", "keep-alive", "proxy-authenticate", "proxy-authorization", "proxy-connection", "te",
        "trailer", "transfer-encoding", "upgrade",
    }
)  # fmt: skip


class NoReply(TransferError):
    """The service sent no usable reply. The message has the reason."""


class Address:
    """The address of a service. Raises BadAddress if the URL is not `http(s)://HOST[:PORT]`."""

    def __init__(self, url: str, flag: str) -> None:
        try:
            parts = urlsplit(url)
            port = parts.port
        except ValueError:
            parts, port = urlsplit(""), 0
        if parts.scheme not in ("http", "https") or not parts.hostname or port == 0:
            raise BadAddress(f"{flag}: not a service URL. Use the form http://HOST:PORT")
        if parts.username or parts.password:
            raise BadAddress(
                f"{flag}: the URL contains credentials. Write them into a file and name it with --credentials"
            )
        if parts.path not in ("", "/") or parts.query or parts.fragment:
            raise BadAddress(f"{flag}: remove the path from the URL, because signatures cover paths")
        self.origin = f"{parts.scheme}://{parts.netloc}"
        # As HTTP clients send Host: without the default port of the scheme.
        self.host = re.sub(r":80$" if parts.scheme == "http" else r":443$", "", parts.netloc)


class Service:
    """A client session of one service. The caller closes it."""

    def __init__(self, address: Address, timeout_seconds: float) -> None:
        self.address = address
        self._session = aiohttp.ClientSession(
            auto_decompress=False,
            cookie_jar=aiohttp.DummyCookieJar(),
            skip_auto_headers=_OWN_HEADERS,
            connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=_IDLE_SECONDS),
            timeout=aiohttp.ClientTimeout(total=timeout_seconds, sock_connect=_CONNECT_SECONDS),
        )

    async def send(self, request: Request) -> Reply:
        """Send a request and return the reply. Raises NoReply."""
        headers = [
            (name, _as_sent(value))
            for name, value in request.headers
            if name not in HOP_BY_HOP and name != "content-length"
        ]
        url = URL(self.address.origin + _path_and_query(request.target), encoded=True)
        body = request.body or (b"" if request.method in ("POST", "PUT", "PATCH", "MERGE") else None)
        try:
            async with self._session.request(
                request.method, url, headers=headers, data=body, allow_redirects=False
            ) as answer:
                reply_body = bytearray()
                async for chunk in answer.content.iter_any():
                    reply_body += chunk
                    if len(reply_body) > ANSWER_MAX_BYTES:
                        raise NoReply(f"the reply exceeds {ANSWER_MAX_BYTES} bytes")
                reply_headers = [
                    (name.decode("latin-1"), value.decode("latin-1"))
                    for name, value in answer.raw_headers
                    if name.decode("latin-1").lower() not in HOP_BY_HOP
                ]
                return Reply(answer.status, reply_headers, bytes(reply_body))
        except TimeoutError:
            raise NoReply(f"{self.address.origin} timed out") from None
        except (aiohttp.ClientError, OSError, ValueError) as error:
            raise NoReply(f"{self.address.origin} cannot be reached: {_error_text(error)}") from None

    async def close(self) -> None:
        await self._session.close()
        await asyncio.sleep(0)


def _path_and_query(target: str) -> str:
    """Return the path and query of a target, also of one in absolute form."""
    if target.startswith("/"):
        return target
    parts = urlsplit(target)
    return (parts.path or "/") + (f"?{parts.query}" if parts.query else "")


def _as_sent(value: str) -> str:
    """Convert a header value for aiohttp.

    Header bytes are read as latin-1, and aiohttp writes them as UTF-8. Raises NoReply if the bytes are not UTF-8.
    """
    if value.isascii():
        return value
    try:
        return value.encode("latin-1").decode()
    except UnicodeError:
        raise NoReply("a header is not UTF-8") from None


def _error_text(error: BaseException) -> str:
    inner = getattr(error, "os_error", None) or error
    return getattr(inner, "strerror", None) or str(inner) or type(inner).__name__
