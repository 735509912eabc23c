"""A certificate of our own making, for TLS at a desk. Real ones are brought by --tls-cert."""

from __future__ import annotations

import datetime
import ipaddress
import os
from pathlib import Path

_DAYS = 90
# Names by which a client on the same machine may call; the last is Azure's host style.
_NAMES = ("localhost", "*.localhost", "*.table.localhost")
_ADDRESSES = ("127.0.0.1", "::1")


def make_self_signed(folder: Path, host: str) -> tuple[Path, Path]:
    """Write `tablegate-cert.pem` and `tablegate-key.pem` into a folder; their paths. Valid for 90 days, made anew at each
    start: clients that should trust it are given the first file."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.x509.oid import NameOID

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "tablegate, self-signed")])
    alternatives: list[x509.GeneralName] = [x509.DNSName(item) for item in _NAMES]
    addresses = set(_ADDRESSES)
    try:
        addresses.add(str(ipaddress.ip_address(host)))
    except ValueError:
        alternatives.append(x509.DNSName(host))
    alternatives += [x509.IPAddress(ipaddress.ip_address(item)) for item in sorted(addresses)]
    now = datetime.datetime.now(datetime.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(now + datetime.timedelta(days=_DAYS))
        .add_extension(x509.SubjectAlternativeName(alternatives), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(key, hashes.SHA256())
    )
    certificate_path, key_path = folder / "tablegate-cert.pem", folder / "tablegate-key.pem"
    certificate_path.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    key_path.unlink(missing_ok=True)
    descriptor = os.open(key_path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(private)
    return certificate_path, key_path
