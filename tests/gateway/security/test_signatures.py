"""Signatures by keys that sign many requests."""

from __future__ import annotations

import hmac

import pytest

from tablegate.gateway.security.signatures import hmac_digest


@pytest.mark.parametrize("algorithm", ["sha1", "sha256"])
@pytest.mark.parametrize("length", [0, 1, 44, 63, 64, 65, 200])
def test_hmac_is_the_standard_librarys(length: int, algorithm: str) -> None:
    key = bytes(range(length))
    for message in (b"", b"x", b"/PutRow\nPOST\n\n" * 50):
        assert hmac_digest(key, message, algorithm) == hmac.digest(key, message, algorithm)
