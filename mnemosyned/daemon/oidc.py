"""Tokens of an identity provider (OpenID Connect), verified by its published keys.

Loaded where `oidc.issuer` is set; needs the extra `oidc`.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from http.client import HTTPException
from typing import Any
from urllib.error import HTTPError
from urllib.parse import urlsplit
from urllib.request import HTTPRedirectHandler, build_opener

import jwt
import msgspec

from mnemosyned.config.settings import OidcConfig
from mnemosyned.errors import ConfigInvalid, DaemonBusy
from mnemosyned.logs import logger
from mnemosyned.memory.engine_ports import OWN_SCOPES, HolderByName, Scope, TokenHolder

LEEWAY_S = 30
"""Maximum difference in seconds between the clocks of provider and daemon."""
ALGORITHMS = {"RSA": "RS256", "EC": "ES256"}
"""The only algorithm used with a key, by the type of the key."""
RSA_BITS_MIN, CURVE = 2_048, "P-256"
KEYS_S = 900.0
"""Age in seconds from which keys are fetched again."""
KEYS_MAX_S = 86_400.0
"""Age in seconds from which keys are not used any more, even if the provider cannot be reached."""
REFRESH_S = 60.0
"""Minimum seconds between two fetches of keys, whatever keys the tokens name."""
FETCH_S = 5.0
WAIT_S = 2 * FETCH_S
"""Seconds that a request with an unknown key waits for another request's fetch."""
BYTES_MAX = 1 << 20
LATEST = 253_402_300_799
"""The end of the year 9999."""
LOOPBACK = ("localhost", "127.0.0.1", "::1")
EVERYBODY = "*"
"""The group that each user is in."""
KEY_ID_CHARS = 100
"""Characters in the log of the id of a key that the provider does not have."""
NO_KEYS = "it publishes no key for RS256 or ES256 that has an id (kid)"
AWAY = "the identity provider cannot be asked for its keys now; try again in a moment"

log = logger()


class _NoRedirects(HTTPRedirectHandler):
    """Handler of redirects that follows none: only addresses that the provider publishes are used."""

    def redirect_request(self, *_: object, **__: object) -> None:
        """Return None, so that the redirect is an error."""


class ProviderKeys:
    """Public keys of a provider by id, asked for when they are needed; safe from any thread."""

    def __init__(
        self,
        issuer: str,
        jwks_uri: str | None,
        *,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        """Find the address of the keys, unless `jwks_uri` is it, by the issuer's discovery."""
        self._issuer = issuer
        self._jwks_uri = jwks_uri
        self._now = now
        self._opener = build_opener(_NoRedirects)
        self._refreshing = threading.Lock()
        self._keys: Mapping[str, jwt.PyJWK] = {}
        self._fetched = self._tried = -KEYS_MAX_S
        """When keys last came, and were last asked for, by the monotonic clock."""

    def find(self, key_id: str) -> jwt.PyJWK | None:
        """Return the provider's key with this id, fetching the keys if due; None if the provider has none.

        While another request fetches, a known key is returned at once. Raises `DaemonBusy` if the provider
        does not answer.
        """
        is_known = key_id in self._keys
        is_due = not is_known or self._now() - self._fetched > KEYS_S
        if is_due and self._refreshing.acquire(timeout=0 if is_known else WAIT_S):
            try:
                self._refresh(key_id)
            finally:
                self._refreshing.release()
        is_fresh = self._now() - self._fetched <= KEYS_MAX_S
        key = self._keys.get(key_id) if is_fresh else None
        if key is None and self._tried != self._fetched:
            raise DaemonBusy(AWAY)
        return key

    def _refresh(self, key_id: str) -> None:
        """Fetch all keys if the key `key_id` is old or unknown, at most every `REFRESH_S` s; log failures."""
        now = self._now()
        is_known = key_id in self._keys and now - self._fetched <= KEYS_S
        if is_known or now - self._tried < REFRESH_S:
            return
        self._tried = now
        discovery = self._issuer.rstrip("/") + "/.well-known/openid-configuration"
        uri = self._jwks_uri or discovery
        try:
            if not self._jwks_uri:
                found = self._fetch(discovery)
                if found["issuer"] != self._issuer:
                    raise ValueError(  # noqa: TRY301 it is reported below
                        "the provider names another issuer; set oidc.issuer to that one"
                    )
                uri = str(found["jwks_uri"])
            self._keys = _read_keys(self._fetch(uri)["keys"])
            self._fetched = now
            if not self._keys:
                log.warning("provider_keys_missing", url=uri, reason=NO_KEYS)
            elif key_id not in self._keys:
                # At most once a minute, as anybody can send such tokens.
                reason = f"the provider publishes no key {key_id[:KEY_ID_CHARS]!r}"
                log.info("provider_token_rejected", reason=reason)
        except (OSError, HTTPException, ValueError, LookupError, TypeError) as error:
            if isinstance(error, HTTPError):
                error.close()
            reason = f"{type(error).__name__}: {error}"
            log.warning("provider_keys_missing", url=uri, reason=reason)

    def _fetch(self, url: str) -> Any:  # noqa: ANN401 any JSON
        """Return the JSON at a URL of the provider. Raises `OSError` and `ValueError`."""
        check_provider_url(url)
        ends = self._now() + FETCH_S
        body = b""
        with self._opener.open(url, timeout=FETCH_S) as response:
            while chunk := response.read1(BYTES_MAX):
                body += chunk
                if len(body) > BYTES_MAX:
                    raise ValueError("the answer is too long")
                if self._now() > ends:
                    raise TimeoutError("the answer takes too long")
        return msgspec.json.decode(body)


def check_provider_url(url: str) -> None:
    """Raise `ValueError` unless a URL is https, or http on this machine."""
    parts = urlsplit(url)
    is_local = parts.scheme == "http" and parts.hostname in LOOPBACK
    if parts.scheme != "https" and not is_local:
        raise ValueError(f"{parts.scheme}://{parts.hostname} is not https")


def _read_keys(published: list[dict[str, Any]]) -> dict[str, jwt.PyJWK]:
    """Return the provider's keys that can sign tokens, by id; leave out others."""
    keys = {}
    for each in published:
        try:
            algorithm = ALGORITHMS[each["kty"]]
            is_ours = each.get("alg", algorithm) == algorithm
            if is_ours and each.get("use", "sig") == "sig":
                key = jwt.PyJWK(each, algorithm)
                if each.get("crv") == CURVE or key.key.key_size >= RSA_BITS_MIN:
                    keys[str(each["kid"])] = key
        except (jwt.PyJWTError, LookupError, TypeError, ValueError):
            log.debug("provider_key_unusable")
    return keys


class ProviderTokens:
    """Holders of a provider's tokens: a claim names the owner, and groups give scopes."""

    def __init__(
        self,
        config: OidcConfig,
        find_holder: HolderByName,
        *,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        """Take the settings, and how to find the holder with a name. Raises `ConfigInvalid`."""
        try:
            for url in filter(None, (config.issuer, config.jwks_uri)):
                check_provider_url(url)
        except ValueError as error:
            raise ConfigInvalid(f"oidc: {error}", field="oidc.issuer") from error
        self._config = config
        self._find_holder = find_holder
        self._keys = ProviderKeys(config.issuer or "", config.jwks_uri, now=now)

    def holder(self, token: str) -> TokenHolder | None:
        """Return a valid token's owner and scopes, else None. Raises `DaemonBusy` and `StorageFailed`.

        An unknown owner is added if `oidc.add_owners` is set.
        """
        claims = self._verify(token) if len(token) <= 8_192 else None
        if claims is None:
            return None
        claim = self._config.owner_claim
        name = claims.get(claim)
        verified = claims.get("email_verified")  # some providers send it as a text
        scopes = self._scopes_of(claims.get(self._config.groups_claim))
        expires_at = datetime.fromtimestamp(min(int(claims["exp"]), LATEST), UTC)
        holder = None
        if not isinstance(name, str):
            reason = f"it has no text in the claim {claim} (oidc.owner_claim)"
        elif (claim == "email" and verified not in (True, "true")) or (
            name == claims.get("email") and verified in (False, "false")
        ):
            reason = "its email_verified is not true"
        elif not scopes:
            reason = "oidc.scopes gives its groups no scope (oidc.groups_claim)"
        else:
            holder = self._find_holder(name, "oidc", scopes, expires_at)
            reason = f"the claim {claim} names no owner who may log in; capital letters count"
        if holder is None:
            log.info("provider_token_rejected", reason=reason)
        return holder

    def _verify(self, token: str) -> dict[str, Any] | None:
        """Return the claims of a token; None unless its signature, issuer, audience and times are right."""
        try:
            header = jwt.get_unverified_header(token)
            key = self._keys.find(str(header.get("kid", "")))
            if key is None or "crit" in header:
                return None
            claims: dict[str, Any] = jwt.decode(
                token,
                key,
                algorithms=[key.algorithm_name],
                audience=self._config.audience,
                issuer=self._config.issuer,
                leeway=LEEWAY_S,
                options={"require": ["exp", "iss", "aud"]},
            )
        except jwt.InvalidTokenError as error:
            # Without a valid signature, anybody could fill the log.
            if not isinstance(error, (jwt.DecodeError, jwt.InvalidAlgorithmError)):
                log.info("provider_token_rejected", reason=str(error))
            return None
        except (jwt.PyJWTError, ValueError, TypeError, OverflowError, RecursionError):
            return None
        return claims

    def _scopes_of(self, groups: object) -> frozenset[Scope]:
        """Return the scopes that the settings give to everybody and to `groups`, a name or a list of names."""
        if self._config.scopes is None:
            return frozenset(OWN_SCOPES)
        names = groups.split() if isinstance(groups, str) else groups
        if not isinstance(names, list):
            names = []
        mine = {EVERYBODY, *(name for name in names if isinstance(name, str))}
        given = (self._config.scopes.get(name, ()) for name in mine)
        return frozenset(Scope(scope) for scopes in given for scope in scopes)
