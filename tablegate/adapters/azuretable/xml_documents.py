"""The XML documents of the service: access policies, service properties, statistics. Bytes <-> plain values.

It defines the elements, their order and their limits. Documents with a DTD are rejected, so no entities expand.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Any, NamedTuple
from xml.etree import ElementTree
from xml.etree.ElementTree import Element, SubElement

from tablegate.adapters.azuretable.shared_access import Policy
from tablegate.adapters.azuretable.values import parse_datetime, timestamp_text
from tablegate.adapters.azuretable.wire import limits
from tablegate.adapters.azuretable.wire.errors import ServiceError

_DECLARATION = b'<?xml version="1.0" encoding="utf-8"?>'
_CORS_FIELDS = ("AllowedOrigins", "AllowedMethods", "AllowedHeaders", "ExposedHeaders")
_CORS_METHODS = frozenset(
    {"DELETE", "GET", "HEAD", "MERGE", "PATCH", "POST", "OPTIONS", "PUT", "TRACE", "CONNECT"}
)


def _parse(body: bytes, root: str) -> Element:
    if len(body) > limits.XML_MAX_BYTES or b"<!DOCTYPE" in body or b"\x00" in body:
        raise ServiceError("InvalidXmlDocument")
    try:
        element = ElementTree.fromstring(body)
    except (ElementTree.ParseError, ValueError, LookupError):
        raise ServiceError("InvalidXmlDocument") from None
    if element.tag != root:
        raise ServiceError("InvalidXmlDocument")
    return element


def _bytes(root: Element) -> bytes:
    return _DECLARATION + ElementTree.tostring(root, encoding="utf-8", short_empty_elements=True)


# Access policies


def read_policies(body: bytes) -> list[Policy]:
    """Return the policies of a SignedIdentifiers document.

    Empty for an empty body. Raises ServiceError InvalidXmlDocument.
    """
    if not body.strip():
        return []
    identifiers = _parse(body, "SignedIdentifiers").findall("SignedIdentifier")
    if len(identifiers) > limits.POLICIES_MAX:
        raise ServiceError("InvalidXmlDocument")
    policies = [_read_policy(element) for element in identifiers]
    if len({policy.id for policy in policies}) < len(policies):
        raise ServiceError("InvalidXmlDocument")
    return policies


def _read_policy(element: Element) -> Policy:
    identifier = element.findtext("Id")
    if not identifier or len(identifier) > limits.POLICY_ID_MAX_CHARACTERS:
        raise ServiceError("InvalidXmlDocument")
    policy = element.find("AccessPolicy")
    if policy is None:
        return Policy(identifier)
    permission = policy.findtext("Permission") or None
    if permission and (not set(permission) <= set("raud") or len(set(permission)) < len(permission)):
        raise ServiceError("InvalidXmlDocument")
    return Policy(identifier, _time(policy, "Start"), _time(policy, "Expiry"), permission)


def _time(policy: Element, name: str) -> str | None:
    text = policy.findtext(name)
    if not text:
        return None
    ticks = parse_datetime(text.strip())
    if ticks is None:
        raise ServiceError("InvalidXmlDocument")
    return timestamp_text(ticks)


def policies_xml(policies: Iterable[Policy]) -> bytes:
    """Return the SignedIdentifiers document. SDKs distinguish an identifier without a policy from other identifiers."""
    root = Element("SignedIdentifiers")
    for policy in policies:
        identifier = SubElement(root, "SignedIdentifier")
        SubElement(identifier, "Id").text = policy.id
        parts = (("Start", policy.start), ("Expiry", policy.expiry), ("Permission", policy.permission))
        members = [(name, text) for name, text in parts if text is not None]
        if members:
            element = SubElement(identifier, "AccessPolicy")
            for name, text in members:
                SubElement(element, name).text = text
    return _bytes(root)


# User delegation keys


class KeyInfo(NamedTuple):
    """The times of a user delegation key as the service writes them, and the tenant of its only user or ""."""

    start: str
    expiry: str
    user_tenant: str


def read_key_info(body: bytes, now_s: float) -> KeyInfo:
    """Return the contents of a KeyInfo document. Without a start the key begins now. Raises ServiceError InvalidXmlDocument."""
    root = _parse(body, "KeyInfo")
    now = parse_datetime(formatted(now_s))
    start, expiry = (root.findtext(name, "").strip() for name in ("Start", "Expiry"))
    times = [parse_datetime(text) if text else now for text in (start, expiry)]
    if not expiry or None in times:
        raise ServiceError("InvalidXmlDocument")
    texts = [f"{timestamp_text(ticks)[:19]}Z" for ticks in times if ticks is not None]
    return KeyInfo(texts[0], texts[1], root.findtext("DelegatedUserTid", "").strip())


def formatted(seconds: float) -> str:
    """Return a time as YYYY-MM-DDTHH:MM:SSZ."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds))


# Service properties

Properties = dict[str, Any]
"""{"Logging": {Version, Delete, Read, Write, Days}, "HourMetrics": {Version, Enabled, IncludeAPIs, Days}, "MinuteMetrics":
as HourMetrics, "Cors": [{AllowedOrigins, AllowedMethods, AllowedHeaders, ExposedHeaders: lists, MaxAgeInSeconds}]}.

`Days` is None without a retention policy, `IncludeAPIs` is None if metrics are off.
"""

DEFAULT_PROPERTIES: Properties = {
    "Logging": {"Version": "1.0", "Delete": False, "Read": False, "Write": False, "Days": None},
    "HourMetrics": {"Version": "1.0", "Enabled": False, "IncludeAPIs": None, "Days": None},
    "MinuteMetrics": {"Version": "1.0", "Enabled": False, "IncludeAPIs": None, "Days": None},
    "Cors": [],
}


def read_properties(body: bytes) -> Properties:
    """Return the properties in a StorageServiceProperties document. Absent parts keep their value. Raises ServiceError."""
    root = _parse(body, "StorageServiceProperties")
    properties: Properties = {}
    for element in root:
        if element.tag in properties or element.tag not in DEFAULT_PROPERTIES:
            raise ServiceError("InvalidXmlDocument")
        match element.tag:
            case "Logging":
                properties[element.tag] = _read_logging(element)
            case "Cors":
                properties[element.tag] = _read_cors(element)
            case _:
                properties[element.tag] = _read_metrics(element)
    return properties


def _read_logging(element: Element) -> dict[str, Any]:
    flags = {name: _flag(element, name) for name in ("Delete", "Read", "Write")}
    return {"Version": _version(element), **flags, "Days": _days(element)}


def _read_metrics(element: Element) -> dict[str, Any]:
    enabled = _flag(element, "Enabled")
    include_apis = _flag(element, "IncludeAPIs") if element.find("IncludeAPIs") is not None else None
    if enabled and include_apis is None:
        raise ServiceError("InvalidXmlDocument")
    return {
        "Version": _version(element),
        "Enabled": enabled,
        "IncludeAPIs": include_apis if enabled else None,
        "Days": _days(element),
    }


def _version(element: Element) -> str:
    version = element.findtext("Version")
    if version not in ("1.0", "2.0"):
        raise ServiceError("InvalidXmlDocument")
    return version


def _flag(element: Element, name: str) -> bool:
    text = element.findtext(name)
    if text is None:
        raise ServiceError("InvalidXmlDocument")
    if text.strip().lower() not in ("true", "false"):
        raise ServiceError("InvalidXmlDocument")
    return text.strip().lower() == "true"


def _days(element: Element) -> int | None:
    policy = element.find("RetentionPolicy")
    if policy is None:
        raise ServiceError("InvalidXmlDocument")
    if not _flag(policy, "Enabled"):
        return None
    days = policy.findtext("Days")
    if days is None:
        raise ServiceError("InvalidXmlDocument")
    return _number(days, range(1, limits.RETENTION_MAX_DAYS + 1))


def _number(text: str, valid_range: range) -> int:
    text = text.strip()
    if not text.isascii() or not text.isdigit() or len(text) > 10 or int(text) not in valid_range:
        raise ServiceError("InvalidXmlDocument")
    return int(text)


def _read_cors(element: Element) -> list[dict[str, Any]]:
    rules = element.findall("CorsRule")
    if len(rules) > limits.CORS_RULES_MAX:
        raise ServiceError("InvalidXmlDocument")
    size = sum(len(text) for rule in rules for text in rule.itertext())
    if size > limits.CORS_MAX_BYTES:
        raise ServiceError("InvalidXmlDocument")
    return [_read_rule(rule) for rule in rules]


def _read_rule(rule: Element) -> dict[str, Any]:
    lists = {name: _list(rule, name) for name in _CORS_FIELDS}
    if not lists["AllowedOrigins"] or not lists["AllowedMethods"]:
        raise ServiceError("InvalidXmlDocument")
    if not set(lists["AllowedMethods"]) <= _CORS_METHODS:
        raise ServiceError("InvalidXmlDocument")
    for name in ("AllowedHeaders", "ExposedHeaders"):
        prefixes = sum(1 for header in lists[name] if header.endswith("*") and header != "*")
        if prefixes > limits.CORS_PREFIX_HEADERS_MAX:
            raise ServiceError("InvalidXmlDocument")
    age = rule.findtext("MaxAgeInSeconds")
    if age is None:
        raise ServiceError("InvalidXmlDocument")
    return {**lists, "MaxAgeInSeconds": _number(age, range(2**31))}


def _list(rule: Element, name: str) -> list[str]:
    text = rule.findtext(name)
    if text is None:
        raise ServiceError("InvalidXmlDocument")
    entries = [entry.strip() for entry in text.split(",")]
    entries = [entry for entry in entries if entry]
    if len(entries) > limits.CORS_LIST_MAX or any(
        len(item) > limits.CORS_ENTRY_MAX_CHARACTERS for item in entries
    ):
        raise ServiceError("InvalidXmlDocument")
    return entries


def properties_xml(properties: Properties) -> bytes:
    """Return the StorageServiceProperties document."""
    root = Element("StorageServiceProperties")
    for part in ("Logging", "HourMetrics", "MinuteMetrics"):
        element = SubElement(root, part)
        for name, value in properties[part].items():
            if name != "Days" and value is not None:
                SubElement(element, name).text = value if isinstance(value, str) else str(value).lower()
        days = properties[part]["Days"]
        policy = SubElement(element, "RetentionPolicy")
        SubElement(policy, "Enabled").text = str(days is not None).lower()
        if days is not None:
            SubElement(policy, "Days").text = str(days)
    cors = SubElement(root, "Cors")
    for rule in properties["Cors"]:
        element = SubElement(cors, "CorsRule")
        for name in _CORS_FIELDS:
            SubElement(element, name).text = ",".join(rule[name])
        SubElement(element, "MaxAgeInSeconds").text = str(rule["MaxAgeInSeconds"])
    return _bytes(root)


def statistics_xml(synchronised_at: str) -> bytes:
    """Return the StorageServiceStats document. The secondary is the same store, so it is live and in sync."""
    root = Element("StorageServiceStats")
    replication = SubElement(root, "GeoReplication")
    SubElement(replication, "Status").text = "live"
    SubElement(replication, "LastSyncTime").text = synchronised_at
    return _bytes(root)
