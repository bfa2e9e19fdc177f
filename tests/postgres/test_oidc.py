"""Tokens of an identity provider, and a proxy's header: who is let in, and who forges in vain."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import datetime
from http.server import ThreadingHTTPServer
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
from e2e.daemons import eventually
from support.endpoints import QuietHandler, in_thread
from support.fakes import FakeTime
from support.postgres import MIGRATIONS, rows, run

from mnemosyned.config.loading import load_config
from mnemosyned.config.settings import OidcConfig
from mnemosyned.errors import ConfigInvalid, DaemonBusy
from mnemosyned.memory.engine_ports import OWN_SCOPES, Scope, TokenHolder
from mnemosyned.storage.postgres.owners import PostgresOwners
from mnemosyned.storage.postgres.store import PostgresServer

pytest.importorskip("jwt")
pytest.importorskip("cryptography")
import jwt
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from jwt.algorithms import ECAlgorithm, RSAAlgorithm
from postgres.daemons import Serve, serve_owners
from postgres.test_row_security import as_login, logins

from mnemosyned.daemon import oidc as module
from mnemosyned.daemon.oidc import (
    FETCH_S,
    KEYS_MAX_S,
    KEYS_S,
    REFRESH_S,
    ProviderTokens,
)
from mnemosyned.daemon.owners import ProxyNames

pytestmark = pytest.mark.postgres

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
        self.pause: Callable[[], None] = lambda: None
        """Called between the first byte of an answer and the rest."""

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


ANNA = 7
HOUR = 3_600
SECRET = "a sentence of forty characters, at least so"  # noqa: S105 of this test


@pytest.fixture(scope="module")
def shared_provider() -> Iterator[IdentityProvider]:
    """A provider that answers."""

    class Handler(QuietHandler):
        def do_GET(self) -> None:  # noqa: N802 named by `BaseHTTPRequestHandler`
            served.asked[self.path] += 1
            served.answers.wait()
            bodies: dict[str, object] = {
                "/.well-known/openid-configuration": served.discovery,
                "/keys": {"keys": served.jwks()},
            }
            status = 503 if served.is_away else 200 if self.path in bodies else 404
            body = json.dumps(bodies.get(self.path, {})).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body[:1])
            served.pause()
            with suppress(ConnectionError):
                self.wfile.write(body[1:])

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    served = IdentityProvider(f"http://127.0.0.1:{server.server_port}")
    with in_thread(server):
        yield served


@pytest.fixture
def provider(shared_provider: IdentityProvider) -> IdentityProvider:
    """The provider as it was first, which nobody has asked."""
    shared_provider.published = ["rsa", "ec"]
    shared_provider.is_away = False
    shared_provider.pause = lambda: None
    shared_provider.asked.clear()
    shared_provider.discovery["issuer"] = shared_provider.issuer
    return shared_provider


def holder_named(
    name: str, token: str, scopes: frozenset[Scope], expires_at: datetime | None
) -> TokenHolder | None:
    if name != "anna":
        return None
    return TokenHolder(
        owner=ANNA, token=token, name=token, scopes=scopes, expires_at=expires_at
    )


def tokens(provider: IdentityProvider, **changed: Any) -> ProviderTokens:  # noqa: ANN401
    now = changed.pop("now", time.monotonic)
    config = OidcConfig(issuer=provider.issuer, audience=AUDIENCE, **changed)
    return ProviderTokens(config, holder_named, now=now)


@pytest.mark.parametrize("key", ["rsa", "ec"])
def test_a_token_names_its_owner(provider: IdentityProvider, key: str) -> None:
    holder = tokens(provider).holder(provider.token(key=key))

    assert holder
    assert (holder.owner, holder.scopes) == (ANNA, frozenset(OWN_SCOPES))
    assert holder.expires_at


def part(value: object) -> str:
    text = value if isinstance(value, bytes) else json.dumps(value).encode()
    return base64.urlsafe_b64encode(text).rstrip(b"=").decode()


def unsigned(provider: IdentityProvider, algorithm: str) -> str:
    header = {"alg": algorithm, "typ": "JWT", "kid": "rsa"}
    return f"{part(header)}.{part(provider.claims())}."


def signed_with_the_public_key(provider: IdentityProvider) -> str:
    text = f"{part({'alg': 'HS256', 'kid': 'rsa'})}.{part(provider.claims())}"
    digest = hmac.new(provider.public_pem("rsa"), text.encode(), hashlib.sha256)
    return f"{text}.{part(digest.digest())}"


def of_another_key(provider: IdentityProvider, key: Any, kid: str) -> str:  # noqa: ANN401
    provider.keys["forger"] = key
    return provider.token(key="forger", kid=kid)


def new_rsa_key(bits: int = 2_048) -> rsa.RSAPrivateKey:
    return rsa.generate_private_key(public_exponent=65_537, key_size=bits)


def with_its_own_key(provider: IdentityProvider, header: str) -> str:
    provider.keys["forger"] = new_rsa_key()
    published, provider.published = provider.published, ["forger"]
    value: object = provider.jwks()[0]
    provider.published = published
    if header == "jku":
        value = f"{provider.issuer}/keys"
    return provider.token(key="forger", kid="rsa", headers={header: value})


def changed_in_the_middle(provider: IdentityProvider) -> str:
    head, _, signature = provider.token().split(".")
    return f"{head}.{part(provider.claims(preferred_username='bert'))}.{signature}"


Forge = Callable[[IdentityProvider], str]
NOW = int(time.time())
FORGED: dict[str, Forge] = {
    "another RSA key": lambda it: of_another_key(it, new_rsa_key(), "rsa"),
    "another EC key": lambda it: of_another_key(
        it, ec.generate_private_key(ec.SECP256R1()), "ec"
    ),
    "an EC signature for the RSA key": lambda it: it.token(key="ec", kid="rsa"),
    "an RSA signature for the EC key": lambda it: it.token(key="rsa", kid="ec"),
    "no algorithm": lambda it: unsigned(it, "none"),
    "no algorithm in capitals": lambda it: unsigned(it, "NoNe"),
    "RS256 without a signature": lambda it: unsigned(it, "RS256"),
    "HS256 with the public key": signed_with_the_public_key,
    "claims that were changed": changed_in_the_middle,
    "another issuer": lambda it: it.token(iss="https://evil.example"),
    "the issuer with a slash": lambda it: it.token(iss=f"{it.issuer}/"),
    "no issuer": lambda it: it.token(iss=None),
    "another audience": lambda it: it.token(aud="payroll"),
    "other audiences": lambda it: it.token(aud=["payroll", "mnemosyned2"]),
    "no audience": lambda it: it.token(aud=None),
    "expired": lambda it: it.token(exp=NOW - HOUR),
    "no end": lambda it: it.token(exp=None),
    "an end that is no time": lambda it: it.token(exp="soon"),
    "an end without an end": lambda it: it.token(exp=float("inf")),
    "not yet valid": lambda it: it.token(nbf=NOW + HOUR),
    "issued in the future": lambda it: it.token(iat=NOW + HOUR),
    "no owner": lambda it: it.token(preferred_username=None),
    "an owner that is no text": lambda it: it.token(preferred_username=["anna"]),
    "an unknown owner": lambda it: it.token(preferred_username="nobody"),
    "its unverified email": lambda it: it.token(email="anna", email_verified=False),
    "the same as a text": lambda it: it.token(email="anna", email_verified="false"),
    "a critical extension": lambda it: it.token(headers={"crit": ["x"], "x": 1}),
    "a key of its own (jwk)": lambda it: with_its_own_key(it, "jwk"),
    "a key of its own (jku)": lambda it: with_its_own_key(it, "jku"),
    "a path as key": lambda it: it.token(kid="../../../../dev/null"),
    "SQL as key": lambda it: it.token(kid="rsa' OR '1'='1"),
    "an empty key": lambda it: it.token(kid=" "),
    "a huge claim": lambda it: it.token(padding="x" * 9_000),
    "a huge nest": lambda _: f"{part(b'[' * 3_000)}.{part(b'[' * 2_500)}.",
    "bytes": lambda _: f"{part(bytes(range(256)))}.{part(b'{}')}.x",
}


@pytest.mark.parametrize(
    ("verified", "is_taken"),
    [(True, True), ("true", True), (False, False), ("false", False), (None, False)],
)
def test_an_email_names_an_owner_if_the_provider_has_verified_it(
    provider: IdentityProvider,
    verified: object,
    is_taken: bool,  # noqa: FBT001
) -> None:
    known = tokens(provider, owner_claim="email")
    token = provider.token(email="anna", email_verified=verified)

    assert bool(known.holder(token)) is is_taken


@pytest.mark.parametrize(
    ("roles", "expected"),
    [
        ({}, {Scope.READ}),
        ({"roles": ["writers", "others"]}, {Scope.READ, Scope.WRITE}),
        ({"roles": "all others"}, {Scope.READ, Scope.FORGET}),
        *(
            ({"roles": odd}, {Scope.READ})
            for odd in (7, None, {"writers": 1}, [[7], 7])
        ),
    ],
)
def test_groups_give_scopes(
    provider: IdentityProvider, roles: dict[str, Any], expected: set[Scope]
) -> None:
    scopes = {"*": ["read"], "writers": ["write"], "all": ["forget", "read"]}
    holder = tokens(provider, scopes=scopes, groups_claim="roles").holder(
        provider.token(**roles)
    )

    assert holder
    assert holder.scopes == expected
    few = tokens(provider, scopes={"writers": ["write"]})
    assert few.holder(provider.token()) is None


def test_keys_are_asked_for_once_a_minute(provider: IdentityProvider) -> None:
    clock = FakeTime()
    known = tokens(provider, now=clock)
    for _ in range(20):
        assert known.holder(provider.token())
        assert known.holder(provider.token(kid="unknown")) is None
    assert provider.asked["/keys"] == 1

    provider.keys["new"] = provider.keys["ec"]
    provider.published = ["new"]
    assert known.holder(provider.token(key="new")) is None
    clock.now += REFRESH_S
    assert known.holder(provider.token(key="new"))
    assert known.holder(provider.token(key="rsa")) is None
    assert provider.asked["/keys"] == 2


def test_an_absent_provider_delays_the_unknown(provider: IdentityProvider) -> None:
    clock = FakeTime()
    known = tokens(provider, now=clock)
    provider.is_away = True
    with pytest.raises(DaemonBusy):
        known.holder(provider.token())
    provider.is_away = False
    with pytest.raises(DaemonBusy):
        known.holder(provider.token())
    clock.now += REFRESH_S
    assert known.holder(provider.token())

    provider.is_away = True
    clock.now += KEYS_S + 1
    assert known.holder(provider.token())
    with pytest.raises(DaemonBusy):
        known.holder(provider.token(kid="unknown"))
    clock.now += KEYS_MAX_S
    with pytest.raises(DaemonBusy):
        known.holder(provider.token())


def test_a_hanging_provider_delays_one(
    provider: IdentityProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "WAIT_S", 0.01)
    clock = FakeTime()
    known = tokens(provider, now=clock)
    assert known.holder(provider.token())
    clock.now += KEYS_S + 1
    asked = provider.asked.total()
    provider.answers.clear()
    with ThreadPoolExecutor(1) as threads:
        waiting = threads.submit(known.holder, provider.token())
        try:
            eventually(lambda: provider.asked.total() > asked, "it is asked")
            assert known.holder(provider.token())
            with pytest.raises(DaemonBusy):
                known.holder(provider.token(kid="unknown"))
            assert not waiting.done()
        finally:
            provider.answers.set()
        assert waiting.result()


def test_a_slow_answer_of_the_provider_is_given_up(provider: IdentityProvider) -> None:
    clock = FakeTime()

    def pass_seconds() -> None:
        clock.now += FETCH_S + 1

    provider.pause = pass_seconds
    with pytest.raises(DaemonBusy):
        tokens(provider, now=clock).holder(provider.token())


@pytest.mark.parametrize(
    ("settings", "claims", "reason"),
    [
        ({}, {"aud": "payroll"}, "Audience"),
        ({}, {"iss": "https://evil.example"}, "issuer"),
        ({}, {"exp": NOW - HOUR}, "expired"),
        ({}, {"exp": None}, '"exp"'),
        ({}, {"preferred_username": None}, "preferred_username"),
        ({}, {"preferred_username": "nobody"}, "names no owner"),
        ({"owner_claim": "email"}, {"email": "anna"}, "email_verified"),
        ({"scopes": {"writers": ["write"]}}, {"groups": []}, "oidc.scopes"),
    ],
)
def test_the_log_says_why_a_signed_token_is_rejected(
    provider: IdentityProvider,
    caplog: pytest.LogCaptureFixture,
    settings: dict[str, Any],
    claims: dict[str, Any],
    reason: str,
) -> None:
    caplog.set_level("INFO")
    known = tokens(provider, **settings)

    assert known.holder(provider.token(**claims)) is None

    assert known.holder(changed_in_the_middle(provider)) is None
    (line,) = caplog.records
    assert line.msg == "provider_token_rejected"
    assert reason in vars(line)["reason"]


@pytest.mark.parametrize(
    ("published", "reason"), [([], "no key for RS256"), (["ec"], "no key 'rsa'")]
)
def test_the_log_tells_of_a_key_that_the_provider_does_not_have(
    provider: IdentityProvider,
    caplog: pytest.LogCaptureFixture,
    published: list[str],
    reason: str,
) -> None:
    caplog.set_level("INFO")
    provider.published = published
    known = tokens(provider)

    assert [known.holder(provider.token()) for _ in range(3)] == [None] * 3

    (line,) = caplog.records
    assert reason in vars(line)["reason"]


def test_another_issuers_discovery_is_refused(
    provider: IdentityProvider, caplog: pytest.LogCaptureFixture
) -> None:
    provider.discovery["issuer"] = "https://evil.example"

    with pytest.raises(DaemonBusy):
        tokens(provider).holder(provider.token())

    (line,) = caplog.records
    assert vars(line)["url"].endswith("/.well-known/openid-configuration")


@pytest.mark.filterwarnings("ignore:The RSA key is 1024 bits")
def test_weak_keys_are_not_taken(provider: IdentityProvider) -> None:
    provider.keys["weak"] = new_rsa_key(bits=1_024)
    provider.keys["p384"] = ec.generate_private_key(ec.SECP384R1())
    provider.published = ["weak", "p384", "ec"]

    known = tokens(provider)
    text = f"{part({'alg': 'ES256', 'kid': 'p384'})}.{part(provider.claims())}"
    signed = provider.keys["p384"].sign(text.encode(), ec.ECDSA(hashes.SHA256()))
    raw = b"".join(number.to_bytes(48) for number in decode_dss_signature(signed))
    assert known.holder(f"{text}.{part(raw)}") is None
    assert known.holder(provider.token(key="ec"))
    assert known.holder(provider.token(key="weak")) is None


@pytest.mark.parametrize(
    ("owners", "oidc", "problem"),
    [
        ({}, {"issuer": "https://id.example"}, "oidc.audience"),
        ({"proxy_header": "X-User"}, {}, "owners.proxy_secret_file"),
        ({"proxy_header": "X User"}, {}, "owners.proxy_header"),
        ({}, {"scopes": {"*": ["admin"]}}, "oidc.scopes"),
    ],
)
def test_settings_that_would_let_others_in_are_refused(
    tmp_path: Path, owners: dict[str, Any], oidc: dict[str, Any], problem: str
) -> None:
    file = tmp_path / "settings.yaml"
    settings = {
        "database": "postgresql://x@localhost/x",
        "listen": "0.0.0.0:7464",
        "tls": {"certificate": "/c", "key": "/k"},
        "owners": {"serve": True, **owners},
        "oidc": oidc,
    }
    file.write_text(json.dumps(settings))

    with pytest.raises(ConfigInvalid, match=problem):
        load_config(file, environ={})


@pytest.mark.parametrize(
    ("secret", "mode", "problem"),
    [(SECRET, 0o604, "others may read it"), ("short", 0o600, "under 32 characters")],
)
def test_a_secret_that_others_may_know_is_refused(
    tmp_path: Path, secret: str, mode: int, problem: str
) -> None:
    file = tmp_path / "secret"
    file.write_text(secret)
    file.chmod(mode)

    with pytest.raises(ConfigInvalid, match=problem):
        ProxyNames("X-User", str(file), Mock())


def test_a_provider_without_tls_is_refused() -> None:
    with pytest.raises(ConfigInvalid, match="is not https"):
        ProviderTokens(
            OidcConfig(issuer="http://id.example", audience="x"), holder_named
        )


# ------------------------------------------------------------------ a daemon


def suspend(dsn: str, name: str) -> None:
    run(dsn, f"UPDATE owner SET suspended_at = now() WHERE name = '{name}'")


def with_provider(provider: IdentityProvider, **settings: str) -> dict[str, str]:
    """Settings of a daemon that knows the provider."""
    usual = {
        "MNEMOSYNE_OIDC_ISSUER": provider.issuer,
        "MNEMOSYNE_OIDC_AUDIENCE": AUDIENCE,
    }
    return usual | settings


@pytest.mark.usefixtures("anna_and_bert")
def test_a_daemon_takes_both_kinds_of_tokens_and_logs_forged_ones(
    dsn: str, owners: PostgresOwners, provider: IdentityProvider, serve: Serve
) -> None:
    own = owners.issue("bert", "test", OWN_SCOPES).secret
    with serve(**with_provider(provider)) as service:
        for token in (provider.token(), own):
            assert service.status("/v1/remember", token, content="tea") == 200
        forged = {name: forge(provider) for name, forge in FORGED.items()}
        strange = {
            name: provider.token(preferred_username=name) for name in ("local", "carla")
        }
        for name, wrong in {"no token": None, **strange, **forged}.items():
            assert service.status("/v1/status", wrong) == 401, name
        suspend(dsn, "anna")
        eventually(
            lambda: service.status("/v1/status", provider.token()) == 401,
            "anna is refused",
        )
        assert service.daemon.stop() == 0

    lines = [json.loads(line) for (line,) in rows(dsn, "SELECT line FROM audit")]
    failed = [line["count"] for line in lines if line["verb"] == "login"]
    assert sum(failed) >= len(FORGED) + 2
    counts = {each.name: each.memories for each in owners.owners()}
    assert counts == {"anna": 1, "bert": 1, "local": 0}


@pytest.mark.usefixtures("anna_and_bert")
def test_an_owner_is_added_where_the_settings_allow_it(
    dsn: str, owners: PostgresOwners, provider: IdentityProvider, serve: Serve
) -> None:
    settings = with_provider(provider, MNEMOSYNE_OIDC_ADD_OWNERS="true")
    with serve(**settings) as service:

        def remember_as(name: str) -> int:
            token = provider.token(preferred_username=name)
            return service.status("/v1/remember", token, content="tea")

        names = ("carla", "carla", "local", "no name")
        assert list(map(remember_as, names)) == [200, 200, 401, 401]
        suspend(dsn, "carla")
        eventually(lambda: remember_as("carla") == 401, "carla is refused")

    assert {each.name for each in owners.owners()} == {"anna", "bert", "carla", "local"}


def test_a_daemon_that_may_not_add_owners_does_not_start_to_add_them(
    dsn: str, owners: PostgresOwners, provider: IdentityProvider, tmp_path: Path
) -> None:
    settings = with_provider(provider, MNEMOSYNE_OIDC_ADD_OWNERS="true")
    with logins(dsn, "serving"):
        PostgresServer(dsn, migrations=MIGRATIONS).migrate(serving="serving")

        with (
            pytest.raises(AssertionError, match=r"oidc\.add_owners"),
            serve_owners(tmp_path, as_login(dsn, "serving"), owners, **settings),
        ):
            pass


@pytest.mark.parametrize("has_secret", [False, True])
@pytest.mark.usefixtures("anna_and_bert")
def test_a_proxy_names_its_user(
    owners: PostgresOwners,
    provider: IdentityProvider,
    serve: Serve,
    tmp_path: Path,
    *,
    has_secret: bool,
) -> None:
    settings = {"MNEMOSYNE_OWNERS_PROXY_HEADER": "X-Forwarded-User"}
    proof = {}
    if has_secret:
        (tmp_path / "secret").write_text(f"{SECRET}\n")
        (tmp_path / "secret").chmod(0o600)
        settings["MNEMOSYNE_OWNERS_PROXY_SECRET_FILE"] = str(tmp_path / "secret")
        proof = {"Mnemosyne-Proxy-Secret": SECRET}
    with serve(**with_provider(provider, **settings)) as service:

        def ask(
            name: str | None, token: str = "", proof: dict[str, str] = proof
        ) -> int:
            named = {} if name is None else {"X-Forwarded-User": name}
            fields = {"content": "tea"}
            return service.ask("/v1/remember", token, fields, headers=named | proof)[0]

        assert ask("anna") == 200
        assert ask("bert") == 200
        assert ask("bert", provider.token()) == 200
        for name in ("nobody", "local", "", "anna, bert", "anna' OR '1'='1", None):
            assert ask(name) == 401
        _, _, refused = service.ask(
            "/v1/status", headers={"X-Forwarded-User": "nobody"} | proof
        )
        assert "the proxy names" in refused["error"]["message"]
        if has_secret:
            assert ask("anna", proof={}) == 401
            assert ask("anna", proof={"Mnemosyne-Proxy-Secret": SECRET[1:]}) == 401

    counts = {each.name: each.memories for each in owners.owners()}
    assert counts == {"anna": 2, "bert": 1, "local": 0}


@pytest.mark.usefixtures("anna_and_bert")
def test_who_may_log_in_by_name(dsn: str, owners: PostgresOwners) -> None:
    owners.add("mill", is_group=True)
    owners.join("mill", "anna", (Scope.READ, Scope.WRITE))

    def named(name: str, *, add: bool = False) -> TokenHolder | None:
        return owners.named_holder(name, "oidc", frozenset({Scope.READ}), None, add=add)

    anna = named("anna")
    assert anna
    assert (anna.owner, anna.owner_name) == (owners.number("anna"), "anna")
    ((_, group, scopes),) = anna.groups
    assert (group, set(scopes)) == ("mill", {Scope.READ})
    for name in ("local", "mill"):
        assert named(name, add=True) is None
    for name in ("nobody", "Anna", "", "a b", "x" * 101, "anna\0"):
        assert named(name) is None
    suspend(dsn, "anna")
    assert named("anna", add=True) is None
    assert named("Anna", add=True) is None  # a second memory, and no way around
    bert = owners.number("bert")
    run(dsn, f"SELECT drop_owner({bert}, true)")  # as a removal begins
    assert named("bert", add=True) is None
    assert owners.remove("bert").number == bert
