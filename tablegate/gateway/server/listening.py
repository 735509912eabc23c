"""Listening sockets and their TLS certificate.

Sockets are created, accepted from, and closed without losing established connections. The system establishes a connection
before it is accepted here. Closing a listening socket resets the connections that wait to be accepted. So the system first
stops establishing connections (`hold_handshakes`), and then all waiting ones are accepted.

A service manager can pass sockets that it keeps open (`inherited`). Clients then connect while the server restarts.

The certificate is one from a file (--tls-cert), which can be reloaded, or a self-signed one.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import datetime
import errno
import ipaddress
import math
import os
import socket
import ssl
import struct
import threading
import time
from collections.abc import Callable
from pathlib import Path

from tablegate.gateway.observability import logs, metrics

_BACKLOG = 1024
_ACCEPT_AGAIN_S = 1.0
# Seconds for which a closed TLS connection waits for the end of the client's side. Idle clients do not react to ours.
_TLS_CLOSING_S = 1.0
_SO_ATTACH_FILTER = 26  # Linux
_FIRST_INHERITED = 3
# Classic BPF (Linux, Documentation/networking/filter.rst): drop segments with SYN and without ACK, pass all others.
_DROP_SYN = (
    (0x30, 0, 0, 13),
    (0x54, 0, 0, 0x12),
    (0x15, 0, 1, 0x02),
    (0x06, 0, 0, 0),
    (0x06, 0, 0, 0xFFFFFFFF),
)


def bind(host: str, port: int) -> socket.socket:
    """Return a listening socket. Raises OSError."""
    family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0][0]
    sock = socket.socket(family, socket.SOCK_STREAM)
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)  # "::" includes all IPv4 addresses
        sock.bind((host, port))
        sock.listen(_BACKLOG)
        sock.setblocking(False)
    except OSError:
        sock.close()
        raise
    return sock


def inherited() -> list[socket.socket]:
    """Return the listening sockets that a service manager has passed to this process. [] if there are none.

    Source: sd_listen_fds(3). Its variables are removed, so that child processes do not read them. Raises OSError if a
    descriptor is no listening socket.
    """
    number, pid = (os.environ.pop(name, "") for name in ("LISTEN_FDS", "LISTEN_PID"))
    os.environ.pop("LISTEN_FDNAMES", None)
    if pid != str(os.getpid()):
        return []
    sockets = [socket.socket(fileno=_FIRST_INHERITED + at) for at in range(int(number))]
    for sock in sockets:
        if not sock.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
            raise OSError(errno.ENOTCONN, "it does not listen")
        sock.setblocking(False)
        sock.set_inheritable(False)
    return sockets


def hold_handshakes(listening: socket.socket) -> bool:
    """Stop the system from establishing connections on a socket, for all processes that share it.

    A client that connects now retries after a second. By then the socket is closed, or another server uses the port. Return
    False, without an effect, where the system does not allow it. Linux since commit 5d39580f68e6 (2026) asks for
    CAP_NET_ADMIN.
    """
    program = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *each) for each in _DROP_SYN))
    try:
        listening.setsockopt(
            socket.SOL_SOCKET,
            _SO_ATTACH_FILTER,
            struct.pack("HP", len(_DROP_SYN), ctypes.addressof(program)),
        )
    except OSError:
        return False
    return True


class Listener:
    """Accepts the connections of one listening socket, and closes the socket at the end. Not thread-safe.

    opening: accepted connections without a call of their protocol yet, for example during a TLS handshake.
    """

    def __init__(
        self,
        listening: socket.socket,
        make_protocol: Callable[[], asyncio.Protocol],
        tls: ssl.SSLContext | None,
        handshake_seconds: float,
        on_opened: Callable[[], None],
    ) -> None:
        """`on_opened` is called after `opening` has become smaller."""
        self.opening: set[asyncio.Task[None]] = set()
        self._socket = listening
        self._make_protocol = make_protocol
        self._tls = tls
        self._handshake_seconds = handshake_seconds
        self._on_opened = on_opened
        self._loop = asyncio.get_running_loop()
        self._server: asyncio.Server | None = None
        self._is_closed = False

    async def start(self) -> None:
        """Start accepting connections. The loop accepts plain ones, in half the time of `accept`."""
        if self._tls is None:
            self._server = await self._loop.create_server(
                self._make_protocol, sock=self._socket.dup(), backlog=_BACKLOG
            )
        else:
            self._accept_when_ready()

    def accept(self) -> None:
        """Accept all waiting connections."""
        while True:
            try:
                connection, _ = self._socket.accept()
            except (BlockingIOError, InterruptedError):
                return
            except ConnectionAbortedError:
                continue
            except OSError:  # out of descriptors or memory
                self._loop.remove_reader(self._socket)
                self._loop.call_later(_ACCEPT_AGAIN_S, self._accept_when_ready)
                return
            connection.setblocking(False)
            task = self._loop.create_task(self._open(connection))
            self.opening.add(task)
            task.add_done_callback(self._finish_opening)

    def hold_handshakes(self) -> None:
        """Stop the system from establishing connections. Established ones are still accepted."""
        hold_handshakes(self._socket)

    def close(self) -> None:
        """Accept all waiting connections, then close the socket."""
        if self._server is not None:
            self._server.close()
        self._loop.remove_reader(self._socket)
        self.accept()
        self._is_closed = True
        self._socket.close()

    def _accept_when_ready(self) -> None:
        if self._tls is not None and not self._is_closed:
            self._loop.add_reader(self._socket, self.accept)

    async def _open(self, connection: socket.socket) -> None:
        handshake_seconds = closing_seconds = None
        if self._tls is not None:
            handshake_seconds, closing_seconds = self._handshake_seconds, _TLS_CLOSING_S
        with contextlib.suppress(OSError):  # the client has closed, or its handshake failed
            await self._loop.connect_accepted_socket(
                self._make_protocol,
                connection,
                ssl=self._tls,
                ssl_handshake_timeout=handshake_seconds,
                ssl_shutdown_timeout=closing_seconds,
            )

    def _finish_opening(self, task: asyncio.Task[None]) -> None:
        self.opening.discard(task)
        self._on_opened()


_CERTIFICATE_DAYS = 90
_DAY_S = 86_400
_EXPIRY_WARNING_S = 14 * _DAY_S
# Host names for clients on the same machine. The last has the form of Azure's host style.
_CERTIFICATE_NAMES = ("localhost", "*.localhost", "*.table.localhost")
_CERTIFICATE_ADDRESSES = ("127.0.0.1", "::1")


class Certificate:
    """TLS with a certificate and its key. `context` uses the files as last loaded for new connections."""

    def __init__(self, certificate: Path, key: Path) -> None:
        """Load the files. Raises OSError or its subclass ssl.SSLError."""
        self._paths = certificate, key
        self.context = _tls_context(*self._paths)
        self.expires_at = _expires_at(certificate)

    def reload(self) -> None:
        """Reload the files. Raises OSError if they cannot be used, and keeps the previous certificate."""
        _tls_context(*self._paths)  # checks that certificate and key match before either is replaced
        self.context.load_cert_chain(*self._paths)
        self.expires_at = _expires_at(self._paths[0])

    def check_expiry(self, now: float) -> float:
        """Log a warning if the certificate has expired or soon will. Return the seconds until the next check."""
        path, left_s = str(self._paths[0]), self.expires_at - now
        metrics.record_certificate_expiry(path, self.expires_at)
        if left_s <= _EXPIRY_WARNING_S:
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


def _tls_context(certificate: Path, key: Path) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    context.load_cert_chain(certificate, key)
    return context


def make_self_signed_certificate(folder: Path, host: str) -> tuple[Path, Path]:
    """Write `tablegate-cert.pem` and `tablegate-key.pem` into a folder, and return their paths.

    The certificate is valid for 90 days and renewed at each start. Clients can trust the first file.
    """
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.x509.oid import NameOID

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "tablegate, self-signed")])
    alternatives: list[x509.GeneralName] = [x509.DNSName(item) for item in _CERTIFICATE_NAMES]
    addresses = set(_CERTIFICATE_ADDRESSES)
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
        .not_valid_after(now + datetime.timedelta(days=_CERTIFICATE_DAYS))
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
