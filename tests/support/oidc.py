"""An OpenID Connect issuer on this machine, with keys that can be rotated and answers that can be spoilt."""

from __future__ import annotations

import base64
import contextlib
import hashlib
import hmac
import json
import secrets
import threading
import time
from collections.abc import Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

import jwt
from cryptography.hazmat.primitives.asymmetric import rsa

_KEYS = [rsa.generate_private_key(public_exponent=65537, key_size=2048) for _ in range(2)]


class Issuer:
    """The issuer. `paths`: the path of each request. `answers`: path -> answer in place of the usual one."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.paths: list[str] = []
        self.answers: dict[str, Any] = {}
        self.silence = threading.Event()
        """Requests wait until it is set."""
        self.silence.set()
        self._generation = 0
        self._codes: dict[str, tuple[str, str, str]] = {}

    @property
    def key(self) -> rsa.RSAPrivateKey:
        """The current signing key."""
        return _KEYS[self._generation % len(_KEYS)]

    @property
    def key_id(self) -> str:
        return f"key-{self._generation}"

    def rotate(self) -> None:
        """Sign with another key, and forget the one before."""
        self._generation += 1

    def jwks(self) -> dict[str, Any]:
        public = json.loads(jwt.algorithms.RSAAlgorithm.to_jwk(self.key.public_key()))
        return {"keys": [{**public, "kid": self.key_id, "use": "sig", "alg": "RS256"}]}

    def token(self, headers: Mapping[str, str] | None = None, **changed: Any) -> str:
        """A token of the object `alice` for all storage accounts. A claim of None is left out."""
        claims = {
            "iss": self.url,
            "aud": "https://storage.azure.com",
            "exp": time.time() + 3600,
            "oid": "alice",
            **changed,
        }
        claims = {name: value for name, value in claims.items() if value is not None}
        return jwt.encode(claims, self.key, "RS256", {"kid": self.key_id, **(headers or {})})

    def unsigned(self) -> str:
        """A token with the algorithm `none`."""
        claims = jwt.decode(self.token(), options={"verify_signature": False})
        return jwt.encode(claims, None, "none", {"kid": self.key_id})

    def signed_with_the_public_key(self) -> str:
        """A token with HS256 and the published key as the secret (key confusion)."""
        claims = self.token().split(".")[1]
        head = base64.urlsafe_b64encode(json.dumps({"alg": "HS256", "kid": self.key_id}).encode())
        message = head.rstrip(b"=") + b"." + claims.encode()
        digest = hmac.digest(self.jwks()["keys"][0]["n"].encode(), message, "sha256")
        return (message + b"." + base64.urlsafe_b64encode(digest).rstrip(b"=")).decode()

    def signed_with_a_retired_key(self) -> str:
        """A token by a key that the issuer no longer has."""
        claims = jwt.decode(self.token(), options={"verify_signature": False})
        return jwt.encode(claims, _KEYS[(self._generation + 1) % len(_KEYS)], "RS256", {"kid": "retired"})

    def approve(self, address: str, **claims: Any) -> dict[str, str]:
        """The query with which the browser returns, after the user has signed in at an address of `authorize`."""
        query = dict(parse_qsl(urlsplit(address).query))
        assert query["code_challenge_method"] == "S256"
        code = secrets.token_hex(8)
        token = self.token(**{"aud": query["client_id"], "nonce": query["nonce"], **claims})
        self._codes[code] = (query["code_challenge"], query["redirect_uri"], token)
        return {"code": code, "state": query["state"]}

    def exchange(self, form: Mapping[str, str]) -> Any:
        """The answer of the token endpoint. A code counts once (RFC 6749, 4.1.2)."""
        challenge, redirect_uri, token = self._codes.pop(form.get("code", ""), ("", "", ""))
        digest = hashlib.sha256(form.get("code_verifier", "").encode()).digest()
        verified = base64.urlsafe_b64encode(digest).decode().rstrip("=") == challenge
        is_right = verified and form.get("redirect_uri") == redirect_uri
        return {"id_token": token, "token_type": "Bearer"} if is_right else None

    def answer(self, path: str) -> Any:
        self.paths.append(path)
        self.silence.wait()
        if path in self.answers:
            return self.answers[path]
        if path == "/.well-known/openid-configuration":
            return {
                "issuer": self.url, "jwks_uri": f"{self.url}/keys", "authorization_endpoint": f"{self.url}/authorize",
                "token_endpoint": f"{self.url}/token",
            }  # fmt: skip
        if path.startswith("/authorize?"):  # the user signs in at once
            redirect_uri = dict(parse_qsl(urlsplit(path).query))["redirect_uri"]
            return f"{redirect_uri}?{urlencode(self.approve(self.url + path))}"
        return self.jwks() if path == "/keys" else None


@contextlib.contextmanager
def running_issuer() -> Iterator[Issuer]:
    """An issuer at a free port of the loopback address."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"])).decode()
            self._send(issuer.exchange(dict(parse_qsl(body))) if self.path == "/token" else None)

        def do_GET(self) -> None:
            self._send(issuer.answer(self.path))

        def _send(self, document: Any) -> None:
            if isinstance(document, str):
                self.send_response(302)
                self.send_header("Location", document)
                self.end_headers()
                return
            body = json.dumps(document).encode()
            self.send_response(200 if document is not None else 404)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *arguments: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        issuer = Issuer(f"http://127.0.0.1:{server.server_port}")
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield issuer
        finally:
            issuer.silence.set()
            server.shutdown()
            thread.join()
