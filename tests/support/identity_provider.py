"""A provider of identities: real keys, its discovery and keys over HTTP, and tokens as one wants them."""

from __future__ import annotations

import json
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from jwt.algorithms import ECAlgorithm, RSAAlgorithm

AUDIENCE = "mnemosyned"


class IdentityProvider:
    """A provider on a free port; what it publishes can be changed."""

    def __init__(self, url: str) -> None:
        self.issuer = url
        self.keys: dict[str, Any] = {
            "rsa": rsa.generate_private_key(public_exponent=65_537, key_size=2_048),
            "ec": ec.generate_private_key(ec.SECP256R1()),
        }
        self.published = ["rsa", "ec"]
        self.asked: Counter[str] = Counter()
        self.discovery: dict[str, object] = {
            "issuer": url,
            "jwks_uri": f"{url}/keys",
        }
        self.is_away = False
        self.answers = threading.Event()
        """Whether it answers; until then, who asks waits."""
        self.answers.set()

    def jwks(self) -> list[dict[str, Any]]:
        """The public keys that are published."""
        found = []
        for name in self.published:
            key = self.keys[name]
            public = key.public_key()
            kind = RSAAlgorithm if isinstance(key, rsa.RSAPrivateKey) else ECAlgorithm
            found.append({**kind.to_jwk(public, as_dict=True), "kid": name})
        return found

    def public_pem(self, name: str) -> bytes:
        """A public key in PEM, as a forger takes it for a secret."""
        public = self.keys[name].public_key()
        pem: bytes = public.public_bytes(
            Encoding.PEM, PublicFormat.SubjectPublicKeyInfo
        )
        return pem

    def claims(self, **changed: object) -> dict[str, Any]:
        """The claims of a valid token of anna; None takes one out."""
        now = int(time.time())
        usual = {
            "iss": self.issuer,
            "aud": AUDIENCE,
            "sub": "1234",
            "iat": now,
            "exp": now + 300,
            "preferred_username": "anna",
        }
        wanted = {**usual, **changed}
        return {name: value for name, value in wanted.items() if value is not None}

    def token(
        self,
        *,
        key: str = "rsa",
        kid: str | None = None,
        headers: Mapping[str, object] | None = None,
        **claims: object,
    ) -> str:
        """A token that a key has signed."""
        private = self.keys[key]
        is_rsa = isinstance(private, rsa.RSAPrivateKey)
        signed: str = jwt.encode(
            self.claims(**claims),
            private,
            algorithm="RS256" if is_rsa else "ES256",
            headers={"kid": kid or key, **(headers or {})},
        )
        return signed


@contextmanager
def providing() -> Iterator[IdentityProvider]:
    """A provider that answers until the end of the block."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            provider.asked[self.path] += 1
            provider.answers.wait()
            bodies: dict[str, object] = {
                "/.well-known/openid-configuration": provider.discovery,
                "/keys": {"keys": provider.jwks()},
            }
            status = 503 if provider.is_away else 200 if self.path in bodies else 404
            body = json.dumps(bodies.get(self.path, {})).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        provider = IdentityProvider(f"http://127.0.0.1:{server.server_port}")
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield provider
        finally:
            server.shutdown()
            thread.join()
