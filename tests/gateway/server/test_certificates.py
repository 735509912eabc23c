"""A certificate that expires is a warning in the log and a time in /metrics."""

from __future__ import annotations

import datetime
import logging
import ssl
import urllib.request
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from tablegate.gateway.observability import metrics, prometheus
from tablegate.gateway.server.listening import Certificate
from tests.support.running import Process
from tests.support.waiting import PATIENCE_S

DAY_S = 86_400


def make_certificate(folder: Path, ends: datetime.datetime) -> tuple[Path, Path]:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "test")])
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(ends - datetime.timedelta(days=90))
        .not_valid_after(ends)
        .sign(key, hashes.SHA256())
    )
    paths = folder / "cert.pem", folder / "key.pem"
    paths[0].write_bytes(made.public_bytes(serialization.Encoding.PEM))
    paths[1].write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
    )
    return paths


ENDS = datetime.datetime(2026, 6, 1, tzinfo=datetime.UTC)


@pytest.mark.parametrize(
    ("left_s", "said", "next_s"),
    [
        (60 * DAY_S, "", DAY_S),
        (10 * DAY_S, "expires soon", DAY_S),
        (100, "expires soon", 100),
        (0, "has expired", DAY_S),
        (-40 * DAY_S, "has expired", DAY_S),
    ],
)
def test_a_warning_is_logged_from_two_weeks_before(
    left_s: float, said: str, next_s: float, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    certificate, key = make_certificate(tmp_path, ENDS)
    assert Certificate(certificate, key).check_expiry(ENDS.timestamp() - left_s) == next_s
    told = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
    assert [said in text for text in told] == ([True] if said else [])
    metrics.count_noted()
    name = "tablegate_certificate_expiry_timestamp_seconds"
    assert ({"path": str(certificate)}, ENDS.timestamp()) in prometheus.figures_of(name)


def test_a_new_certificate_is_known_by_its_own_time(tmp_path: Path) -> None:
    certificate = Certificate(*make_certificate(tmp_path, ENDS))
    make_certificate(tmp_path, ENDS + datetime.timedelta(days=30))
    certificate.reload()
    assert certificate.expires_at == ENDS.timestamp() + 30 * DAY_S


@pytest.mark.extended
@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_server_with_an_expired_certificate_warns(tmp_path: Path, workers: str) -> None:
    ends = datetime.datetime.now(datetime.UTC) - datetime.timedelta(days=1)
    certificate, key = make_certificate(tmp_path, ends)
    server = Process(tmp_path, "--workers", workers, "--tls-cert", str(certificate), "--tls-key", str(key))
    server.wait_until_ready()
    try:
        server.wait_for_error("the TLS certificate has expired")
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        with urllib.request.urlopen(f"{server.url}/metrics", timeout=PATIENCE_S, context=context) as reply:
            [line] = [
                line
                for line in reply.read().decode().splitlines()
                if line.startswith("tablegate_certificate_expiry_timestamp_seconds{")
            ]
        assert float(line.rpartition(" ")[2]) == int(ends.timestamp())
    finally:
        server.kill()
