"""The TLS certificate of the server: one from a file (--tls-cert), which can be reloaded, or a self-signed one."""

from __future__ import annotations

import datetime
import ipaddress
import math
import os
import ssl
import threading
import time
from pathlib import Path

from tablegate.gateway.observability import logs, metrics

_DAYS = 90
_DAY_S = 86_400
_WARNING_S = 14 * _DAY_S
# Host names for clients on the same machine. The last has the form of Azure's host style.
_NAMES = ("localhost", "*.localhost", "*.table.localhost")
_ADDRESSES = ("127.0.0.1", "::1")


class Certificate:
    """TLS with a certificate and its key. `context` uses the files as last loaded for new connections."""

    def __init__(self, certificate: Path, key: Path) -> None:
        """Load the files. Raises OSError, of which ssl.SSLError is a subclass."""
        self._paths = certificate, key
        self.context = _context(*self._paths)
        self.expires_at = _expires_at(certificate)

    def reload(self) -> None:
        """Reload the files. Raises OSError if they cannot be used, and keeps the previous certificate."""
        _context(*self._paths)  # checks that certificate and key match before either is replaced
        self.context.load_cert_chain(*self._paths)
        self.expires_at = _expires_at(self._paths[0])

    def check_expiry(self, now: float) -> float:
        """Log a warning if the certificate has expired or soon will. Return the seconds until the next check."""
        path, left_s = str(self._paths[0]), self.expires_at - now
        metrics.record_certificate_expiry(path, self.expires_at)
        if left_s <= _WARNING_S:
            at = datetime.datetime.fromtimestamp(self.expires_at, datetime.UTC).isoformat()
            problem = "has expired, so clients refuse to connect" if left_s <= 0 else "expires soon"
            logs.warning(f"the TLS certificate {problem}", path=path, expires_at=at)
        return min(left_s, _DAY_S) if left_s > 0 else _DAY_S

    def watch_expiry(self) -> None:
        """Check the expiry now, each day, and when the certificate expires, from a daemon thread."""

        def watch() -> None:
            while True:
                time.sleep(self.check_expiry(time.time()))

        threading.Thread(target=watch, name="certificate", daemon=True).start()


def _expires_at(certificate: Path) -> float:
    """Return the expiry of the first certificate of a file, in seconds since 1970. Infinity if it cannot be read."""
    from cryptography import x509

    try:
        return x509.load_pem_x509_certificate(certificate.read_bytes()).not_valid_after_utc.timestamp()
    except ValueError:
        return math.inf


def _context(certificate: Path, key: Path) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    context.load_cert_chain(certificate, key)
    return context


def make_self_signed(folder: Path, host: str) -> tuple[Path, Path]:
    """Write `tablegate-cert.pem` and `tablegate-key.pem` into a folder, and return their paths.

    The certificate is valid for 90 days and renewed at each start. Clients can trust the first file.
    """
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
