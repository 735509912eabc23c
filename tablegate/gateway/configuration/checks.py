"""Checks of settings that depend on each other, and of the reachability of a server's address from other machines.

Secrets are read from their files here.
"""

from __future__ import annotations

import dataclasses
import ipaddress
import re
import socket
from typing import Any

from tablegate.gateway.configuration.database_urls import BadDatabaseURL, normalise
from tablegate.gateway.configuration.secrets import UnreadableText, read_text
from tablegate.gateway.configuration.settings import ANY, BadSetting, Settings


def is_exposed(settings: Settings) -> bool:
    """Return True if auth `dev` is reachable from other machines and --insecure is not set."""
    return settings.auth == "dev" and not settings.insecure and not is_loopback(settings.host)


def is_loopback(host: str) -> bool:
    """Return True if an address or host name is reachable from this machine only. Names are resolved."""
    try:
        addresses = {str(info[4][0]) for info in socket.getaddrinfo(host, None)}
    except OSError:
        return False
    return all(is_loopback_address(address) for address in addresses)


def is_loopback_address(text: str) -> bool:
    """Return True if a text is a loopback address. Names are not resolved."""
    try:
        return ipaddress.ip_address(text.partition("%")[0]).is_loopback
    except ValueError:
        return False


_ORIGIN = re.compile(r"[a-z][a-z0-9+.-]*://[^/?#\s]*", re.ASCII)
_WEB_URL = re.compile(r"https?://[a-z0-9_.:\[\]-]+", re.ASCII)
_AWS_ACCOUNT = re.compile(r"[0-9]{12}")
_ALLOWED_HOST = re.compile(r"\.?[a-z0-9_-]+(\.[a-z0-9_-]+)*", re.ASCII)


def settings_of(values: dict[str, Any]) -> Settings:
    """Return Settings from converted values. Raises BadSetting if they contradict each other."""
    settings = _normalise(values)
    _check_combinations(settings)
    return dataclasses.replace(
        settings,
        secret_key=_of_file(settings, "secret_key"),
        metrics_token=_of_file(settings, "metrics_token"),
        admin_token=_of_file(settings, "admin_token"),
        kinesis_secret_access_key=_of_file(settings, "kinesis_secret_access_key"),
        s3_secret_access_key=_of_file(settings, "s3_secret_access_key"),
    )


def _normalise(values: dict[str, Any]) -> Settings:
    if values.get("memory"):
        values["database"] = "sqlite://"
    try:
        settings = Settings(**values)
        settings = dataclasses.replace(
            settings,
            database=normalise(settings.database),
            replica=tuple(normalise(url) for url in settings.replica),
        )
    except BadDatabaseURL as error:
        raise BadSetting(f"{{}}: {error}", "database") from None
    return dataclasses.replace(
        settings,
        memory=settings.database == "sqlite://",
        console_url=settings.console_url.lower().rstrip("/"),
        cors_origin=_check_names(
            "cors_origin",
            settings.cors_origin,
            _ORIGIN,
            "an origin. Use scheme://host[:port] or *. null is refused, since it matches every sandboxed frame",
        ),
        allowed_host=_check_names(
            "allowed_host",
            settings.allowed_host,
            _ALLOWED_HOST,
            "a host name. Use NAME, .NAME or *, without a port",
        ),
    )


def _check_combinations(settings: Settings) -> None:
    if settings.console_url and not _WEB_URL.fullmatch(settings.console_url):
        raise BadSetting(
            f"{{}}: {settings.console_url!r} is not the address of a server. Use https://HOST or https://HOST:PORT",
            "console_url",
        )
    if _AWS_ACCOUNT.fullmatch(settings.aws_account) is None:
        raise BadSetting(
            f"{{}}: {settings.aws_account!r} is not an account number of 12 digits", "aws_account"
        )
    if (settings.tls_cert is None) != (settings.tls_key is None):
        raise BadSetting("{} and {} must be set together", "tls_cert", "tls_key")
    if settings.tls_cert is not None and settings.tls_self_signed:
        raise BadSetting("{} and {} exclude each other: set one of them", "tls_self_signed", "tls_cert")
    if settings.s3_endpoint_url and settings.s3_folder is not None:
        raise BadSetting("{} and {} exclude each other: set one of them", "s3_endpoint_url", "s3_folder")
    if not 0 < settings.background_cpu_share <= 1:
        raise BadSetting("{} must be more than 0 and at most 1", "background_cpu_share")
    if settings.workers > 1 and settings.memory:
        raise BadSetting(
            "{}: a database in memory serves one process only. Set it to 1 or name a database", "workers"
        )
    if any(url.startswith("sqlite") for url in (settings.database, *settings.replica) if settings.replica):
        raise BadSetting(
            "{}: only PostgreSQL has replicas. Remove it or use a postgresql:// database", "replica"
        )


def _of_file(settings: Settings, name: str) -> str:
    """Return a secret from its setting or from its file."""
    value, path = getattr(settings, name), getattr(settings, f"{name}_file")
    if path is None:
        return str(value)
    if value:
        raise BadSetting("{} and {} exclude each other: set one of them", name, f"{name}_file")
    try:
        secret = read_text(path).strip()
    except UnreadableText as error:
        raise BadSetting(f"{{}}: {error}", f"{name}_file") from None
    if not secret:
        raise BadSetting(f"{{}}: {path} is empty", f"{name}_file")
    return secret


def _check_names(
    setting_name: str, values: tuple[str, ...], form: re.Pattern[str], description: str
) -> tuple[str, ...]:
    """Return names in lower case, without a trailing slash. Raises BadSetting."""
    names = tuple(name.lower() if name.lower() == "file://" else name.lower().rstrip("/") for name in values)
    for name in names:
        if name != ANY and form.fullmatch(name) is None:
            raise BadSetting(f"{{}}: {name!r} is not {description}", setting_name)
    return names
