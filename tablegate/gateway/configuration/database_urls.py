"""Normalisation of database URLs to the one form that the store accepts.

Accepted forms: libpq's, SQLAlchemy's, a file that contains the URL, a plain path. This module opens no database.
"""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import parse_qsl, quote, unquote, urlencode, urlsplit

from tablegate.gateway.configuration.secrets import UnreadableText, masked, read_text

MEMORY = "sqlite://"
"""A SQLite database in the memory of one process."""

_POSTGRESQL = "postgresql+psycopg"
_KEYWORD_FORM = re.compile(r"\s*[a-z_]+\s*=")
_SCHEME = re.compile(r"([a-zA-Z][a-zA-Z0-9+.-]*):")


class BadDatabaseURL(ValueError):
    """A database URL that cannot be used. The text gives the reason and contains no password."""


def normalise(text: str) -> str:
    """Return `sqlite:////absolute/path`, `sqlite://` (memory) or `postgresql+psycopg://...`. Raises BadDatabaseURL.

    Accepted forms:
    - PostgreSQL: postgres://, postgresql://, postgresql+DRIVER://, libpq's several hosts, sockets, `host=... dbname=...`.
    - SQLite: sqlite:///path, a plain path, `:memory:`.
    - `file:PATH`: a file that contains one of these.
    """
    text = text.strip()
    if not text:
        raise BadDatabaseURL("the database URL is empty")
    if _KEYWORD_FORM.match(text):
        return _from_keywords(text)
    scheme_match = _SCHEME.match(text)
    scheme = scheme_match[1].lower().partition("+")[0] if scheme_match else ""
    match scheme:
        case "file":
            return _from_file(text)
        case "postgres" | "postgresql":
            return _from_url(text)
        case "sqlite":
            return _sqlite(text[len("sqlite") :].partition(":")[2])
        case "" if text == ":memory:":
            return MEMORY
        case "":
            return _sqlite("///" + text)
    raise BadDatabaseURL(f"the URL scheme {scheme}: is not supported. Use sqlite:///PATH or postgresql://...")


def sqlite_path(url: str) -> Path | None:
    """Return the file of a normalised SQLite URL. None if it is in memory or not SQLite."""
    if not url.startswith("sqlite:///"):
        return None
    return Path(url.removeprefix("sqlite:///").partition("?")[0])


def without_password(url: str) -> str:
    """Return a normalised URL for logs."""
    return masked(url)


def with_advice(reason: str) -> str:
    """Return the reason of a failed connection, with the setting to change if it is PgBouncer's about the session."""
    if "unsupported startup parameter" in reason:
        return f"{reason.strip()}. Behind PgBouncer in transaction mode use --no-prepared-statements"
    return reason


def hosts_of(url: str) -> str:
    """Return the hosts and ports of a normalised PostgreSQL URL, for messages."""
    _, _, location = url.partition("://")
    hosts = location.partition("?")[0].partition("/")[0].rpartition("@")[2]
    if hosts:
        return hosts
    options = dict(parse_qsl(location.partition("?")[2]))
    return ":".join(part for part in (options.get("host", ""), options.get("port", "")) if part)


def _sqlite(location: str) -> str:
    path, _, options = location.removeprefix("//").partition("?")
    path = path.removeprefix("/") if location.startswith("///") else path
    if path in ("", ":memory:"):
        return MEMORY
    return f"sqlite:///{Path(path).expanduser().absolute()}" + (f"?{options}" if options else "")


def _from_file(text: str) -> str:
    path = Path(text.partition(":")[2].removeprefix("//"))
    try:
        content = read_text(path).strip()
    except UnreadableText as error:
        raise BadDatabaseURL(f"the file of the database URL: {error}") from None
    if content.lower().startswith("file:"):
        raise BadDatabaseURL(f"{path} names another file. It must contain the database URL itself")
    return normalise(content)


def _from_keywords(text: str) -> str:
    """Return the URL of libpq's form `host=... dbname='...'`. The driver parses it, because of the quotes."""
    from psycopg import ProgrammingError
    from psycopg.conninfo import conninfo_to_dict

    try:
        parameters = {name: str(value) for name, value in conninfo_to_dict(text).items() if value is not None}
    except ProgrammingError as error:
        raise BadDatabaseURL(f"not a PostgreSQL connection string: {error}") from None
    user, password = parameters.pop("user", ""), parameters.pop("password", "")
    database = parameters.pop("dbname", "")
    hosts = _pairs_of_hosts(parameters.pop("host", "").split(","), parameters.pop("port", "").split(","))
    return _assemble(user, password, hosts, database, list(parameters.items()))


def _from_url(text: str) -> str:
    """Return the URL with several hosts and sockets as `host` options, which SQLAlchemy requires and libpq does not."""
    try:
        parts = urlsplit(text)
    except ValueError:  # its text can have the password
        raise BadDatabaseURL("the database URL is malformed: check its brackets and characters") from None
    login, _, addresses = parts.netloc.rpartition("@")
    user, _, password = login.partition(":")
    hosts = []
    for address in addresses.split(","):
        match = re.fullmatch(r"(\[[^\]]*\]|[^:]*)(?::(\d*))?", address)
        if match is None:
            raise BadDatabaseURL(f"{address} is not HOST or HOST:PORT")
        hosts.append((unquote(match[1]).strip("[]"), match[2] or ""))
    options = parse_qsl(parts.query, keep_blank_values=True)
    values = {name: value for name, value in options if name in ("user", "password", "dbname", "port")}
    if hosts == [("", "")]:
        named_hosts = ",".join(value for name, value in options if name == "host")
        hosts = _pairs_of_hosts(named_hosts.split(","), values.get("port", "").split(","))
        options = [(name, value) for name, value in options if name not in ("host", "port")]
    return _assemble(
        unquote(user) or values.get("user", ""),
        unquote(password) or values.get("password", ""),
        hosts,
        unquote(parts.path.removeprefix("/")) or values.get("dbname", ""),
        [(name, value) for name, value in options if name not in ("user", "password", "dbname")],
    )


def _pairs_of_hosts(hosts: list[str], ports: list[str]) -> list[tuple[str, str]]:
    """Pair each host with its port. As in libpq, a single port is for all hosts. A host may include one (`name:port`)."""
    if len(ports) <= 1:
        ports = (ports or [""]) * max(len(hosts), 1)
    pairs = []
    for host, port in zip(hosts or [""], ports, strict=False):
        match = re.fullmatch(r"([^:/]+):(\d+)", host)
        pairs.append((match[1], match[2]) if match else (host, port))
    return pairs


def _assemble(
    user: str, password: str, hosts: list[tuple[str, str]], database: str, options: list[tuple[str, str]]
) -> str:
    login = quote(user, safe="") + (":" + quote(password, safe="") if password else "")
    address = ""
    if len(hosts) == 1 and not hosts[0][0].startswith("/"):
        [(host, port)] = hosts
        address = (f"[{host}]" if ":" in host else host) + (f":{port}" if port else "")
    else:
        # libpq accepts lists, and SQLAlchemy passes options to it unchanged.
        options = [("host", ",".join(host for host, _ in hosts)), *options]
        ports = [port for _, port in hosts]
        if any(ports):
            options.insert(1, ("port", ",".join(port or "5432" for port in ports)))
    query = urlencode(options, quote_via=quote, safe="/,:")
    at = f"{login}@" if login else ""
    return f"{_POSTGRESQL}://{at}{address}/{quote(database, safe='')}" + (f"?{query}" if query else "")
