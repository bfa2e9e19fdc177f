"""Resources of owners: requests over TCP for the owner or group of a token, enrolment and administration.

Enrolment exchanges codes for tokens, and renews tokens.
"""

from __future__ import annotations

import dataclasses
import hmac
import re
import stat
import threading
import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from datetime import timedelta
from functools import partial
from http import HTTPStatus
from ipaddress import IPv6Address, ip_address
from math import ceil
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, cast
from weakref import WeakKeyDictionary

import msgspec

from mnemosyned import errors
from mnemosyned.assembly.build import OpenMemory
from mnemosyned.assembly.owners import OwnerMemories, OwnerMemory
from mnemosyned.config.settings import OwnersConfig
from mnemosyned.daemon import resources
from mnemosyned.daemon.http import listening, protocol
from mnemosyned.daemon.http.protocol import bearer_token, token_refusal
from mnemosyned.daemon.http.server import VERB_PREFIX
from mnemosyned.daemon.resources import parse_call, require_scope
from mnemosyned.errors import LimitReached
from mnemosyned.http_messages import HttpRequest, Resource, Response, Route
from mnemosyned.logs import logger
from mnemosyned.memory.engine_ports import (
    LOCAL_OWNER,
    OWN_SCOPES,
    Scope,
    SharedMemory,
    TokenHolder,
    hash_secret,
    owner_of,
)
from mnemosyned.service.audit import REQUESTER, AuditLog, Requester
from mnemosyned.service.intake import MEMBER
from mnemosyned.service.owners import OwnerLimiter, administer
from mnemosyned.service.service import Groups, MemoryService
from mnemosyned.verbs import conversation, facade, memories, retention, upkeep
from mnemosyned.verbs.exchange import EXPORT_PATH, CutOff
from mnemosyned.verbs.listing import Listed, ListMemories
from mnemosyned.verbs.owners import ADMINISTRATION, Login, Renew
from mnemosyned.verbs.request import R, Request, names
from mnemosyned.version import install_command

if TYPE_CHECKING:
    from mnemosyned.storage.postgres.owners import PostgresOwners

TRIES_OF_ADDRESS, TRIES_OF_ALL = 10, 300
"""Maximum wrong codes within a window: from one machine, and from all together."""
CODE_REFUSED = "this code is unknown, was used or has expired; ask who runs the server for another invitation"
NOT_RENEWED = (
    "this token is not valid any more; ask who runs the server for an invitation"
)
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
        """Count a wrong login code from an address. Raises `LimitReached` if too many came in this minute."""
        machine = _machine_of(address)
        with self._lock:
            now = self._now()
            if now >= self._ends:
                self._tries.clear()
                self._ends = now + 60.0
            is_over = self._tries[machine] >= TRIES_OF_ADDRESS
            if is_over or self._tries.total() >= TRIES_OF_ALL:
                raise LimitReached(
                    "too many wrong codes within a minute, and this is another; wait for one, then "
                    "type the code again",
                    retry_after_s=ceil(self._ends - now),
                )
            self._tries[machine] += 1


def _machine_of(address: str) -> str:
    """Return the part of an address that identifies a machine: for IPv6, the first 64 bits."""
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
        self.open = {listening.LOGIN_PATH: Resource(self._log_in, methods=("POST",))}
        """Those without a token, by path."""
        self.for_holders = {
            VERB_PREFIX + Renew.verb_name(): Resource(self._renew, methods=("POST",)),
            **{
                VERB_PREFIX + verb.verb_name(): self._administration_resource(verb)
                for verb in ADMINISTRATION
            },
        }
        """Those for holders of a token, by path; administration asks for its scope."""

    def _log_in(self, request: HttpRequest) -> Response:
        """Exchange a login code for a token, and log a wrong code. Raises `RequestRefused`, `LimitReached`."""
        login = parse_call(Login, request)
        if self._audit:
            REQUESTER.set(Requester(via="code", address=request.address))
        name = re.sub(r"[^A-Za-z0-9._@-]+", "-", login.name).strip("._@-")[:100]
        with _hiding_the_database():
            enrolment = self._owners.redeem(
                login.code, name or "login", most=self._longest_life()
            )
        if enrolment is None:
            if self._audit:
                self._audit.note_failed_login(request.address)
            self._limit.take(request.address)
            log.warning("login_refused", address=request.address)
            raise token_refusal(CODE_REFUSED, given=True)
        return _secret_response(enrolment)

    def _renew(self, request: HttpRequest) -> Response:
        """Exchange the request's token for its successor. Raises `RequestRefused` and `LimitReached`."""
        self._find_holder(request)
        parse_call(Renew, request)
        secret = bearer_token(request.headers) or ""
        usual = timedelta(days=self._config().token_days)
        enrolment = self._owners.renew(secret, usual=usual, most=self._longest_life())
        if enrolment is None:
            if self._owners.holder(secret):
                raise LimitReached(
                    "this owner has a hundred valid tokens; wait until those that were renewed "
                    "expire, or have some revoked: mnem owner token revoke",
                    retry_after_s=300,
                )
            raise token_refusal(NOT_RENEWED, given=True)
        return _secret_response(enrolment)

    def _longest_life(self) -> timedelta | None:
        """Return the longest lifetime of tokens that the settings allow; None without a limit."""
        days = self._config().token_days_max
        return timedelta(days=days) if days else None

    def _administration_resource(self, verb: type[Request[Any]]) -> Resource:
        """Return the resource of an administration verb, which needs a token with the scope `admin`."""

        def answer(request: HttpRequest) -> Response:
            """Carry out the verb, for which the database checks the token, too. Raises `ScopeMissing`."""
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
    """Return a response with JSON whose headers forbid caching."""
    return Response(HTTPStatus.OK, msgspec.json.encode(result), headers=SECRET_HEADERS)


KEPT_S = 1.0
"""Seconds for which a token's holder is cached: a revoked token is refused after this time at the latest."""
KEPT_MAX = 10_000
JWT_FORM = re.compile(r"[\w-]+\.[\w-]+\.[\w-]*", re.ASCII)
"""A token of an identity provider: three parts in base64, of which the signature may be missing."""
SECRET_HEADER = "mnemosyne-proxy-secret"  # noqa: S105 a name
SECRET_CHARS_MIN = 32
UNKNOWN_MAX = 1_000
"""Maximum unknown tokens in the cache, apart from valid ones, so that tries displace no valid token."""
REFUSED = "this token is unknown, has expired or was revoked; ask who runs the server for another"
REFUSED_PROVIDED = (
    "this token of the identity provider has expired, is too long or is not accepted; get another, "
    "or ask who runs the server: its log may give the reason"
)
REFUSED_PROXIED = (
    "the proxy names a user who may not log in here; ask who runs the server"
)


class _CachedHolder(NamedTuple):
    """A token's holder, or None for an unknown token, valid until a monotonic time in seconds."""

    holder: TokenHolder | None
    until: float


class TokenCache:
    """Cache of tokens' holders by SHA-256 digest; asks the database about a token at most once a second."""

    def __init__(
        self,
        owners: PostgresOwners,
        *,
        find: Callable[[str], TokenHolder | None] | None = None,
        refusal: str = REFUSED,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        """Find holders by `find`, by default among `owners`; `now` is the monotonic clock.

        `refusal` tells the sender of an unknown token what to do.
        """
        self.refusal = refusal
        self.owners = owners
        self._find = find or owners.holder
        self._now = now
        self._lock = threading.Lock()
        self._known: OrderedDict[bytes, _CachedHolder] = OrderedDict()
        self._unknown: OrderedDict[bytes, _CachedHolder] = OrderedDict()

    def holder(self, secret: str) -> TokenHolder | None:
        """Return a token's holder, cached for `KEPT_S` seconds; None if unknown. Raises `StorageFailed`."""
        digest = hash_secret(secret)
        asked = self._now()
        with self._lock:
            kept = self._known.get(digest) or self._unknown.get(digest)
        if kept and asked < kept.until:
            return kept.holder
        holder = self._find(secret)
        # From when it was asked: the answer may be older than its arrival.
        kept = _CachedHolder(holder, asked + KEPT_S)
        with self._lock:
            self._known.pop(digest, None)
            self._unknown.pop(digest, None)
            table = self._unknown if holder is None else self._known
            table[digest] = kept
            if len(table) > (UNKNOWN_MAX if holder is None else KEPT_MAX):
                table.popitem(last=False)
        return holder

    def last_owner(self, secret: str) -> int:
        """Return the owner of a token by the cache alone; 0 if not cached."""
        with self._lock:
            kept = self._known.get(hash_secret(secret))
        return kept.holder.owner if kept and kept.holder else 0


class ProxyNames:
    """Holders by a header of a proxy that has logged its users in; safe from any thread."""

    def __init__(self, header: str, file: str | None, owners: PostgresOwners) -> None:
        """Take the header's name, and the file of the proxy's secret. Raises `ConfigInvalid`."""
        self._header = header.lower()
        self._owners = owners
        self._secret: bytes | None = None
        self.cache = TokenCache(owners, find=self.holder, refusal=REFUSED_PROXIED)
        if not file:
            return
        path = Path(file).expanduser()
        try:
            self._secret = path.read_bytes().strip()
            is_short = len(self._secret) < SECRET_CHARS_MIN
            problem = f"it has under {SECRET_CHARS_MIN} characters" if is_short else ""
            if path.stat().st_mode & stat.S_IRWXO:
                problem = "others may read it; take that right from them"
        except OSError as error:
            problem = str(error.strerror)
        if problem:
            raise errors.ConfigInvalid(
                f"owners.proxy_secret_file: {file}: {problem}",
                field="owners.proxy_secret_file",
            )

    def name_of(self, headers: Mapping[str, str]) -> str | None:
        """Return the user that the proxy names; None without a name, or if the proxy's secret is wrong."""
        given = headers.get(SECRET_HEADER, "").encode("utf-8", "surrogatepass")
        if self._secret and not hmac.compare_digest(given, self._secret):
            return None
        return headers.get(self._header)

    def holder(self, name: str, /) -> TokenHolder | None:
        """Return the owner with this name, with an owner's scopes; None if there is none."""
        return self._owners.named_holder(name, "proxy", frozenset(OWN_SCOPES), None)


Table = Mapping[str, Resource]
TABLES_MAX = 64
"""Maximum tables of resources for one memory, by the scopes and groups of tokens."""
UNVERIFIED = "whose token or code this is cannot be looked up in the database now; try again in a moment"


@contextmanager
def _hiding_the_database() -> Iterator[None]:
    """In a block, replace a `StorageFailed` by one without the server's address, for unverified senders."""
    try:
        yield
    except errors.StorageFailed as error:
        raise type(error)(UNVERIFIED, reason=error.reason) from error


ServedMemory = OpenMemory | OwnerMemory
"""A memory whose resources are served."""


class OwnerResources:
    """Finder of the resources that a request's token allows, from any thread."""

    def __init__(
        self,
        *,
        tokens: TokenCache,
        memory_of: Callable[[int], ServedMemory],
        limits: OwnerLimiter,
        common: Table,
        config: Callable[[], OwnersConfig] = OwnersConfig,
        audit: AuditLog | None = None,
        groups_max: int = OwnersConfig().groups_max,
        provided: TokenCache | None = None,
        proxy: ProxyNames | None = None,
    ) -> None:
        """Take the resources `common` to all owners; `memory_of` opens a memory by owner number.

        `config` returns the present settings of owners. `provided` finds the holders of an identity
        provider's tokens, `proxy` those whom a proxy names. Requests and failed logins are noted in the
        log `audit`, if there is one. Without a named owner, a request asks the memories of at most
        `groups_max` groups, too.
        """
        self._audit = audit
        self._groups_max = groups_max
        self._limits = limits
        self._tokens = tokens
        self._provided = provided
        self._proxy = proxy
        self._memory_of = memory_of
        routes = OwnerRoutes(tokens.owners, config, self._find_holder, audit)
        self._open = routes.open
        managing = routes.for_holders
        if audit:
            paths = {path: path.removeprefix(VERB_PREFIX) for path in managing}
            managing = resources.audit_resources(managing, audit, paths=paths)
        self._common = {**common, **managing}
        self._tables: WeakKeyDictionary[
            ServedMemory,
            dict[tuple[frozenset[Scope], tuple[SharedMemory, ...]], Table],
        ] = WeakKeyDictionary()

    def __call__(self, request: HttpRequest) -> Table:
        """Authenticate a request, count it for its sender, and return the allowed resources by path.

        Raises `RequestRefused`, `LimitReached`, and `NotFound` for a memory that is not the sender's.
        """
        if request.path in self._open:
            return self._open
        try:
            sender = self._find_sender(request)
        except protocol.RequestRefused:
            if self._audit:
                claimed = owner_of(self._read_login(request.headers)[1]) or 0
                self._audit.note_failed_login(request.address, claimed)
            raise
        self._limits.use_request(sender.owner)
        self._tokens.owners.note_use(sender.owner, sender.token)
        holder = _choose_memory(sender, request)
        group = holder.owner if holder and holder.group else 0
        MEMBER.set((group, sender.owner_name))
        if self._audit:
            cache, _ = self._read_login(request.headers)
            via = "token" if cache is self._tokens else "provider"
            if self._proxy and cache is self._proxy.cache:
                via = "proxy"
            about = holder.owner if holder else 0
            who = Requester(sender.owner, sender.token, via, request.address, about)
            REQUESTER.set(who)
            if holder is None:
                self._audit.note("request", outcome=errors.NotFound.code)
        if holder is None:
            raise protocol.unknown_owner(request.headers.get(protocol.OWNER_KEY) or "")
        if request.path in self._common:  # about no memory
            return self._common
        memory = self._memory_of(holder.owner)
        tables = self._tables.setdefault(memory, {})
        table = tables.get((holder.scopes, holder.groups))
        if table is None:
            if len(tables) >= TABLES_MAX:
                tables.clear()
            table = tables[holder.scopes, holder.groups] = {
                **self._common,
                **self._make_resources(memory, holder),
            }
        return table

    def admits(self, headers: Mapping[str, str]) -> bool:
        """Return True if a request has an identity provider's token or a proxy's name, verified later."""
        cache, _ = self._read_login(headers)
        return cache not in (None, self._tokens)

    def guess_owner(self, request: HttpRequest) -> int:
        """Return the owner of a request's token by the cache alone, or a negative number if unknown.

        The number is a hash of the address and the owner in the token, so that requests with unknown tokens
        use up no owner's share.
        """
        if request.local:
            return LOCAL_OWNER
        cache, given = self._read_login(request.headers)
        owner = cache.last_owner(given) if cache else 0
        return owner or ~abs(hash((request.address, owner_of(given))))

    def _read_login(self, headers: Mapping[str, str]) -> tuple[TokenCache | None, str]:
        """Return the cache that may know a request's sender, and the token or name; (None, "") without both."""
        given = protocol.bearer_token(headers)
        if given is None:
            name = self._proxy.name_of(headers) if self._proxy else None
            return (self._proxy.cache, name) if self._proxy and name else (None, "")
        is_provided = self._provided and JWT_FORM.fullmatch(given)
        return self._provided if is_provided else self._tokens, given

    def _find_holder(self, request: HttpRequest) -> TokenHolder:
        """Return owner and scopes for the memory that a request uses. Raises `RequestRefused`, `NotFound`."""
        chosen = _choose_memory(self._find_sender(request), request)
        if chosen is None:
            raise protocol.unknown_owner(request.headers.get(protocol.OWNER_KEY) or "")
        return chosen

    def _find_sender(self, request: HttpRequest) -> TokenHolder:
        """Return owner and scopes for a request's token, or for a proxy's user. Raises `RequestRefused`."""
        cache, given = self._read_login(request.headers)
        with _hiding_the_database():
            holder = cache.holder(given) if cache else None
        if holder is None:
            reason = cache.refusal if cache and given else protocol.OWNER_ADVICE
            raise protocol.token_refusal(reason, given=bool(given))
        return holder

    def _make_resources(
        self, memory: ServedMemory, holder: TokenHolder
    ) -> dict[str, Resource]:
        """Return the resources for an owner's memory, by URL path; each request checks the holder's scopes."""
        scopes, bus = holder.scopes, memory.service.events
        audit = self._audit
        caller: facade.Caller
        caller = member = MemberCaller(
            memory.service,
            holder,
            service_of=lambda group: self._memory_of(group).service,
            groups_max=self._groups_max,
        )
        if audit:
            caller = audit.wrap(caller)
        routes = resources.MemoryRoutes(
            memory.service,
            memory.hooks,
            caller,
            scopes=scopes,
            groups=member.readable_groups,
            group=holder.group,
        )
        found = routes.resources()
        found |= {
            EXPORT_PATH: self._make_checked_resource(
                found[EXPORT_PATH].route,
                "export",
                lambda error: msgspec.json.encode(CutOff(reason=error.message)) + b"\n",
            ),
            resources.EVENTS_PATH: self._make_checked_resource(
                found[resources.EVENTS_PATH].route,
                "reading events",
                lambda error: resources.encode_server_event(
                    bus.new_event(
                        upkeep.EventKind.DROPPED, code=error.code, message=error.message
                    )
                ),
            ),
        }
        return resources.audit_resources(found, audit) if audit else found

    def _make_checked_resource(
        self,
        route: Route,
        action: str,
        encode_end: Callable[[errors.MnemosynedError], bytes],
    ) -> Resource:
        """Return a resource that answers with `route`, and checks the scope `read` before each chunk.

        When the token may no longer read, the last chunk is the error, encoded by `encode_end`.
        """

        def check(request: HttpRequest) -> TokenHolder:
            """Return a request's holder. Raises `ScopeMissing`, `NotFound`, `RequestRefused` for no access."""
            holder = self._find_holder(request)
            resources.require_scope(
                Scope.READ, holder.scopes, action, group=holder.group
            )
            return holder

        def send_checked(
            request: HttpRequest, response: Response, counted: ExitStack
        ) -> Iterator[bytes]:
            """Yield an empty chunk, then each chunk of the stream once the token was checked.

            While the database does not answer, chunks wait. A refused token ends the stream with its error.
            """
            waiting = b""
            with counted:
                yield b""  # from here on, closing it ends the stream and its count
                stream = response.stream or iter(())
                while (chunk := waiting or next(stream, None)) is not None:
                    waiting = b""
                    try:
                        check(request)
                    except (errors.StorageFailed, errors.DaemonBusy):
                        if chunk:
                            chunk, waiting = b"", chunk
                            time.sleep(resources.POLL_S)
                    except protocol.RequestRefused:
                        yield encode_end(errors.Unauthorized(REFUSED))
                        return
                    except (errors.ScopeMissing, errors.NotFound) as refused:
                        yield encode_end(refused)
                        return
                    yield chunk

        def answer(request: HttpRequest) -> Response:
            """Return the route's response, whose stream checks the token before each chunk."""
            holder = check(request)
            owner = holder.member or holder.owner
            self._limits.begin_stream(owner)
            with ExitStack() as counted:
                counted.callback(self._limits.end_stream, owner)
                response = route(request)
                if response.stream is not None:
                    counted.callback(response.close)
                    stream = send_checked(request, response, counted.pop_all())
                    next(stream)
                    response = dataclasses.replace(response, stream=stream)
                return response

        return Resource(answer)


def resources_of_owners(owners: OwnerMemories, memory: OpenMemory) -> OwnerResources:
    """Return the finder of owners' resources; log owners' changes in any audit log. Raises `ConfigInvalid`."""
    settings, oidc = memory.config.owners, memory.config.oidc
    provider = proxy = None
    if oidc.issuer:
        try:
            # Loaded here: without a provider nobody needs the package.
            from mnemosyned.daemon.oidc import ProviderTokens  # noqa: PLC0415
        except ImportError as error:
            raise errors.ConfigInvalid(
                f"oidc needs PyJWT: {install_command('oidc')}", field="oidc.issuer"
            ) from error
        if oidc.add_owners and not owners.owners.owns_tables():
            raise errors.ConfigInvalid(
                "oidc.add_owners: the database's login does not own the tables, so that it cannot add "
                "owners: set this to false, and run `mnem owner add` with the login that owns them",
                field="oidc.add_owners",
            )
        provider = ProviderTokens(
            oidc, partial(owners.owners.named_holder, add=oidc.add_owners)
        )
    if settings.proxy_header:
        proxy = ProxyNames(
            settings.proxy_header, settings.proxy_secret_file, owners.owners
        )
    if memory.shared.audit:
        owners.owners.on_change = memory.shared.audit.note_change
    return OwnerResources(
        tokens=TokenCache(owners.owners),
        provided=TokenCache(
            owners.owners, find=provider.holder, refusal=REFUSED_PROVIDED
        )
        if provider
        else None,
        proxy=proxy,
        memory_of=lambda owner: memory if owner == LOCAL_OWNER else owners.get(owner),
        limits=owners.limits,
        common=resources.documentation_resources(serves_owners=True),
        config=lambda: memory.service.settings.config.owners,
        audit=memory.shared.audit,
        groups_max=settings.groups_max,
    )


def _choose_memory(sender: TokenHolder, request: HttpRequest) -> TokenHolder | None:
    """Return the holder for the memory named in the header, or the sender's own; None if not allowed."""
    name = request.headers.get(protocol.OWNER_KEY)
    return sender if name is None else sender.in_memory_of(name)


BY_ID = (
    *(
        memories.Get,
        memories.Expand,
        memories.EditMemory,
        memories.Tag,
        memories.Untag,
        memories.Pin,
        memories.Unpin,
        retention.Forget,
        retention.Restore,
    ),
    *(
        conversation.EditLearning,
        conversation.RemoveLearning,
        conversation.UndoEnding,
        upkeep.Undo,
    ),
)
"""Verbs with an id, which work in the first memory that has it: one's own, then those of one's groups."""


class MemberCaller(resources.ScopedCaller):
    """Caller of verbs on an owner's memory and, unless a request names a memory, on its groups'.

    Recall and context search all of them. A verb with an id works in the first that has it.
    """

    def __init__(
        self,
        own: MemoryService,
        holder: TokenHolder,
        *,
        service_of: Callable[[int], MemoryService],
        groups_max: int,
    ) -> None:
        """Call verbs on `own`, and by `service_of` on the first groups, as the token allows."""
        super().__init__(own, holder.scopes, group=holder.group)
        self._own = own
        self._holder = holder
        self._service_of = service_of
        self._groups = holder.groups[:groups_max]

    @property
    def readable_groups(self) -> Groups:
        """Functions that open the memories of groups that the token may read, by group name."""
        return {
            group.name: partial(self._open, group, is_noted=True)
            for group in self._groups
            if Scope.READ in group.scopes
        }

    def call(self, request: Request[R], /) -> R:
        """Carry out a request on the own memory or a group's, and return the result.

        Recall, context and briefing search all of these memories. Raises `ScopeMissing` and the
        request's errors.
        """
        verb: type[Request[Any]] = type(request)
        _log_about(self._holder.owner)  # a call before it may have been about a group
        if verb in (memories.Recall, conversation.Context, conversation.Briefing):
            self.check(request)
            return self._own.call(request, groups=self.readable_groups)
        id = getattr(request, "id", None)
        if isinstance(request, upkeep.Undo) and request.action != upkeep.LAST_ACTION:
            id = request.action
        if verb in BY_ID and id:
            return self._call_by_id(request, names(id)[0])
        result: R = super().call(request)
        if isinstance(result, upkeep.Stats):
            groups = [
                upkeep.GroupAccess(group.name, sorted(group.scopes))
                for group in self._holder.groups
            ]
            return cast("R", msgspec.structs.replace(result, groups=groups))
        if verb is ListMemories and getattr(request, "id_prefix", None):
            # The shell asks so for an id whose beginning was typed.
            for group in self._groups:
                if Scope.READ in group.scopes and not len(cast("Listed", result)):
                    result = self._open(group).call(request)
                    if len(cast("Listed", result)):
                        _log_about(group.owner)
        return result

    def _call_by_id(self, request: Request[R], id: str) -> R:
        """Carry out a request in the first memory that has its `id`: the owner's own, then each group's.

        Raises `NotFound` if none has it, and `ScopeMissing` if a group has it and only reading is allowed.
        """
        refused: errors.MnemosynedError
        try:
            return super().call(request)
        except errors.NotFound as unknown:
            refused = unknown
        for group in self._groups:
            caller = resources.ScopedCaller(
                self._open(group), group.scopes, group=group.name
            )
            _log_about(group.owner)
            try:
                return caller.call(request)
            except errors.NotFound:
                continue
            except errors.ScopeMissing as missing:
                # Who may read it is told that it is there.
                with suppress(errors.NotFound, errors.ScopeMissing):
                    caller.call(memories.Get(id))
                    refused = missing
        _log_about(self._holder.owner)
        raise refused

    def _open(self, group: SharedMemory, *, is_noted: bool = False) -> MemoryService:
        """Return the service of a group's memory; with `is_noted`, name the group in the audit log."""
        service = self._service_of(group.owner)
        if is_noted:
            sender = REQUESTER.get()
            REQUESTER.set(sender._replace(groups=(*sender.groups, group.owner)))
        return service


def _log_about(owner: int) -> None:
    """Note for the audit log whose memory this thread's request concerns, in place of earlier notes."""
    REQUESTER.set(REQUESTER.get()._replace(about=owner, groups=()))
