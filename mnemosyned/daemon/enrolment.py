"""Enrolment and administration over TCP: codes exchanged for tokens, tokens renewed, owners' verbs."""

from __future__ import annotations

import re
import threading
import time
from collections import Counter
from collections.abc import Callable
from datetime import timedelta
from http import HTTPStatus
from ipaddress import IPv6Address, ip_address
from math import ceil
from typing import TYPE_CHECKING, Any

import msgspec

from mnemosyned.daemon.http.listening import LOGIN_PATH
from mnemosyned.daemon.http.protocol import bearer_token, token_refusal
from mnemosyned.daemon.http.server import VERB_PREFIX
from mnemosyned.daemon.resources import parse_call, require_scope
from mnemosyned.errors import LimitReached
from mnemosyned.http_messages import HttpRequest, Resource, Response
from mnemosyned.logs import logger
from mnemosyned.memory.engine_ports import Scope, TokenHolder
from mnemosyned.service.audit import REQUESTER, AuditLog, Requester
from mnemosyned.service.owners import administer
from mnemosyned.verbs.owners import ADMINISTRATION, Login, Renew
from mnemosyned.verbs.request import Request

if TYPE_CHECKING:
    from mnemosyned.config.settings import OwnersConfig
    from mnemosyned.storage.postgres.owners import PostgresOwners

RENEW_PATH = VERB_PREFIX + Renew.verb_name()
WINDOW_S = 60.0
TRIES_OF_ADDRESS, TRIES_OF_ALL = 10, 300
"""Codes that may be refused within a window: of a machine, and of all together."""
CODE_REFUSED = "this code is none, was used or has expired; ask who runs the server for another invitation"
NOT_RENEWED = (
    "this token is not valid any more; ask who runs the server for an invitation"
)
RENEWED_WAIT_S = 300
SECRET_HEADERS = (("Cache-Control", "no-store"),)

log = logger()


class TryLimit:
    """Limit of refused codes by machine and in all, in windows of a minute. Safe from any thread.

    The machines of an IPv6 network of 64 bits count as one.
    """

    def __init__(self, *, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._lock = threading.Lock()
        self._tries: Counter[str] = Counter()
        self._ends = 0.0

    def take(self, address: str) -> None:
        """Count a refused code of a machine. Raises `LimitReached` if it or all have no more."""
        machine = _machine_of(address)
        with self._lock:
            now = self._now()
            if now >= self._ends:
                self._tries.clear()
                self._ends = now + WINDOW_S
            is_over = self._tries[machine] >= TRIES_OF_ADDRESS
            if is_over or self._tries.total() >= TRIES_OF_ALL:
                raise LimitReached(
                    "too many wrong codes within a minute, and this is another; wait for one, then "
                    "type the code again",
                    retry_after_s=ceil(self._ends - now),
                )
            self._tries[machine] += 1


def _machine_of(address: str) -> str:
    """Return the part of an address that one machine has: of IPv6 the first 64 bits."""
    try:
        number = ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if not isinstance(number, IPv6Address):
        return str(number)
    return str(number.ipv4_mapped or IPv6Address(int(number) >> 64 << 64))


class OwnerRoutes:
    """Handlers of enrolment and administration."""

    def __init__(
        self,
        owners: PostgresOwners,
        config: Callable[[], OwnersConfig],
        find_holder: Callable[[HttpRequest], TokenHolder],
        audit: AuditLog | None,
    ) -> None:
        """Serve `owners` by the settings of `config`, for the holders that `find_holder` returns."""
        self._audit = audit
        self._owners = owners
        self._config = config
        self._find_holder = find_holder
        self._limit = TryLimit()
        self.open = {LOGIN_PATH: Resource(self._log_in, methods=("POST",))}
        """Those without a token, by path."""
        self.for_holders = {
            RENEW_PATH: Resource(self._renew, methods=("POST",)),
            **{
                VERB_PREFIX + verb.verb_name(): self._administration_resource(verb)
                for verb in ADMINISTRATION
            },
        }
        """Those for holders of a token, by path; administration asks for its scope."""

    def _log_in(self, request: HttpRequest) -> Response:
        """Exchange a code for a token. Raises `RequestRefused` and `LimitReached`."""
        login = parse_call(Login, request)
        if self._audit:
            REQUESTER.set(Requester(via="code", address=request.address))
        name = re.sub(r"[^A-Za-z0-9._@-]+", "-", login.name).strip("._@-")[:100]
        enrolment = self._owners.redeem(
            login.code, name or "login", most=self._longest()
        )
        if enrolment is None:
            if self._audit:
                self._audit.note_failed_login(request.address)
            self._limit.take(request.address)
            log.warning("login_refused", address=request.address)
            raise token_refusal(CODE_REFUSED, given=True)
        return _secret_response(enrolment)

    def _renew(self, request: HttpRequest) -> Response:
        """Exchange the request's token for its successor. Raises `RequestRefused`."""
        self._find_holder(request)
        parse_call(Renew, request)
        secret = bearer_token(request.headers) or ""
        usual = timedelta(days=self._config().token_days)
        enrolment = self._owners.renew(secret, usual=usual, most=self._longest())
        if enrolment is None:
            if self._owners.holder(secret):
                raise LimitReached(
                    "this owner has a hundred valid tokens; wait until those that were renewed "
                    "expire, or have some revoked: mnem owner token revoke",
                    retry_after_s=RENEWED_WAIT_S,
                )
            raise token_refusal(NOT_RENEWED, given=True)
        return _secret_response(enrolment)

    def _longest(self) -> timedelta | None:
        """Return the longest lifetime of a token by the settings; None without a limit."""
        days = self._config().token_days_max
        return timedelta(days=days) if days else None

    def _administration_resource(self, verb: type[Request[Any]]) -> Resource:
        """Return the handler of a verb of administration, for tokens of the scope `admin`."""

        def answer(request: HttpRequest) -> Response:
            """Carry out the verb, for which the database checks the token once more."""
            holder = self._find_holder(request)
            require_scope(Scope.ADMIN, holder.scopes, verb.verb_name())
            call = parse_call(verb, request)
            owners = self._owners.administered_with(bearer_token(request.headers) or "")
            result = administer(owners, self._config(), call)
            log.info("owners_administered", verb=verb.verb_name(), token=holder.token)
            return _secret_response(result)

        methods = ("POST",) if verb.writes else ("GET", "POST")
        return Resource(answer, methods=methods)


def _secret_response(result: object) -> Response:
    """Return a response of JSON that nobody on the way may keep."""
    return Response(HTTPStatus.OK, msgspec.json.encode(result), headers=SECRET_HEADERS)
