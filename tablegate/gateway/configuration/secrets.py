"""Secrets: their files, and the removal of credentials in URLs and headers from texts that are logged.

This module alone decides what is secret in URLs and headers. The log, the audit log, spans, the request log, recordings and
messages of the command line use it. It prefers to mask too much: a masked name of no secret is only a loss of detail.
"""

from __future__ import annotations

import re
from functools import lru_cache
from pathlib import Path
from typing import Any
from urllib.parse import unquote


class UnreadableText(ValueError):
    """A file that cannot be read as text. The message names the file and the reason."""


def read_text(path: Path) -> str:
    """Return the text of a file in UTF-8. Raises UnreadableText."""
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise UnreadableText(f"cannot read {path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise UnreadableText(f"cannot read {path}: it is not text in UTF-8") from None


MASK = "***"
_NAMES = frozenset({"sig", "code", "state", "sessionstate", "nonce", "key", "auth", "sas", "pwd", "jwt"})
_PARTS_OF_NAMES = (
    "signature", "token", "secret", "passw", "passphrase", "credential", "assertion", "authorization", "apikey",
    "accountkey", "sharedaccess", "cookie", "verifier",
)  # fmt: skip
"""Access ids are no secrets: AWSAccessKeyId, x-ots-accesskeyid."""
_NOT_OF_NAMES = re.compile("[^a-z0-9]")
_ENCODINGS = 3
"""The depth of percent-encoding to which a URL inside of another URL is read."""
_MAX_KEPT_CHARACTERS = 64
"""The longest name whose result is cached."""
_SEPARATOR, _EQUALS = r"(?:[?&;#]|%(?:25)*(?:3f|26|3b|23))", r"(?:=|%(?:25)*3d)"
# A separator, a name and an equals sign. Each may be percent-encoded, as in a URL that is a value in another one. A name
# has no separator and no equals sign, so the work is linear.
_PAIR = re.compile(rf"""({_SEPARATOR})((?:(?!{_SEPARATOR}|{_EQUALS})[^\s"'<>\\])+){_EQUALS}""", re.IGNORECASE)
_END_IN_TARGET, _END_IN_TEXT = r"[&#]", r"""[&#\s"'<>\\]"""
_USER_OF_WEB = re.compile(r"""(\bhttps?://)[^\s/?#"'<>\\]*@""", re.IGNORECASE)
_PASSWORD_OF_USER = re.compile(r"""(://[^\s:/?#@"'<>\\]*):[^\s/?#"'<>\\]*@""")
_PASSWORD_OF_LIBPQ = re.compile(r"\b((?:ssl)?password\s*=\s*)(?:'(?:[^'\\]|\\.)*'|[^\s&*]+)", re.IGNORECASE)
# Quoted names that are everyday words do not count: an error has {"Code": "AccessDenied"}.
_QUOTED_HEADER = re.compile(r"""((["'])([\w-]{1,64})\2\s*[:,]\s*b?(["']))(.*?)(?=\4)""", re.DOTALL)
_HEADER_LINE = re.compile(
    r"""\b((?:proxy-)?authorization:\s*|(?:set-)?cookie:\s*|x-amz-security-token:\s*|x-ots-(?:signature(?:v4)?|ststoken):\s*)[^\r\n"']+""",
    re.IGNORECASE,
)
_HINT = re.compile(
    r"[=@]|%3|eyJ|bearer |basic |ots |sharedkey|api.?key|" + "|".join(_PARTS_OF_NAMES), re.IGNORECASE
)
_PROOF = re.compile(
    r"""\b(Bearer|Basic|SharedKey|SharedKeyLite|OTS)\s+[\w.~+/=:-]{8,}|\b(Signature|Credential)=[^\s,&"']+|(?<![\w-])eyJ[\w-]+\.[\w.-]+"""
)


def is_secret_name(name: str) -> bool:
    """Return True if a name of a query, a form or a header has a credential as its value."""
    return _is_known_secret(name) if len(name) <= _MAX_KEPT_CHARACTERS else _is_secret(name)


def _is_secret(name: str) -> bool:
    for _ in range(_ENCODINGS):
        name = unquote(name)
    plain = _NOT_OF_NAMES.sub("", re.split(r"[?&;#/\s]", name.strip())[-1].lower())
    return plain in _NAMES or any(part in plain for part in _PARTS_OF_NAMES)


_is_known_secret = lru_cache(maxsize=4096)(_is_secret)


def masked_target(target: str) -> str:
    """Return the target of a request without credentials. Values end at the next `&` only."""
    return _masked_pairs(masked_user(target), _END_IN_TARGET)


def masked_user(text: str) -> str:
    """Return a text without the users and passwords of web URLs, and without the passwords of other URLs."""
    if "@" not in text:
        return text
    return _PASSWORD_OF_USER.sub(rf"\1:{MASK}@", _USER_OF_WEB.sub(rf"\1{MASK}@", text))


def masked(text: str) -> str:
    """Return a text without the credentials of the URLs and headers in it."""
    if _HINT.search(text) is None:
        return text
    text = _PASSWORD_OF_LIBPQ.sub(rf"\1{MASK}", _masked_pairs(masked_user(text), _END_IN_TEXT))
    return _PROOF.sub(_masked_proof, _QUOTED_HEADER.sub(_masked_header, _HEADER_LINE.sub(rf"\1{MASK}", text)))


def masked_values(document: Any) -> Any:
    """Return a document of lists and objects with masked texts."""
    match document:
        case str():
            return masked(document)
        case dict():
            return {name: masked_values(value) for name, value in document.items()}
        case list() | tuple():
            return [masked_values(value) for value in document]
    return document


def _masked_header(match: re.Match[str]) -> str:
    is_secret = any(part in _NOT_OF_NAMES.sub("", match[3].lower()) for part in _PARTS_OF_NAMES)
    return match[1] + MASK if is_secret else match[0]


def _masked_proof(match: re.Match[str]) -> str:
    scheme, name = match[1], match[2]
    return f"{scheme} {MASK}" if scheme else f"{name}={MASK}" if name else MASK


def _masked_pairs(text: str, end: str) -> str:
    """Return a text with masked values of secret names. `end`: what ends a value."""
    kept, at = [], 0
    while match := _PAIR.search(text, at):
        kept.append(text[at : match.end()])
        at = match.end()
        if is_secret_name(match[2]):
            is_encoded = len(match[1]) > 1
            depth = match[1].count("25")
            ends = rf"{end}|%(?:25){{0,{depth}}}26" if is_encoded else end
            found = re.compile(ends).search(text, at)
            at = len(text) if found is None else found.start()
            kept.append(MASK)
    return "".join([*kept, text[at:]])
