"""Owners of a server: each one's limits with the use that this process counted, and administration.

Several daemons of one database count apart, but for the memories that are kept, which the database
counts for all of them.
"""

from __future__ import annotations

import math
import threading
import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, cast

import msgspec

from mnemosyned import errors, fairness
from mnemosyned.config.settings import OWNER_LIMITS, OwnersConfig
from mnemosyned.verbs import conversation, owners as verbs, upkeep
from mnemosyned.verbs.memories import Remember, RememberMany, Untag
from mnemosyned.verbs.request import Request

if TYPE_CHECKING:
    from mnemosyned.storage.postgres.administration import AdministeredOwners

R = TypeVar("R")

PERIODS_S = {
    "requests_per_minute": 60.0,
    "writes_per_minute": 60.0,
    "bytes_per_day": 86_400.0,
    "encoder_s_per_minute": 60.0,
    "model_s_per_minute": 60.0,
}
"""Seconds after which what was used of these limits is available again."""
KNOWN_S = 60.0
"""Age from which an owner's name and count of memories are read again."""
FULL_S = 1.0
"""This age for an owner who may store no more, as a forget makes room."""
FULL_RETRY_S = 3_600
"""Seconds after which to try again to store more memories than allowed. A person must make room, so this is
longer than any client waits, and clients report the error at once."""
STREAM_RETRY_S = 5
"""Seconds after which to try again to open another stream."""
STORED_FIELDS = ("content", "text", "metadata", "tags")
"""Fields of requests whose bytes count as stored."""
REFUSAL_REST_S = 0.5
"""Seconds that a refused request keeps its thread, one of its owner's share. Without this, a client that sent
2,500 requests a second without waiting made others' questions take four times as long."""


class _KnownOwner(NamedTuple):
    """An owner's name and count of memories, as of a monotonic time in seconds."""

    name: str
    memories: int
    read_at: float


@dataclass(eq=False)
class OwnerLimiter:
    """The limits of owners, by number; safe from any thread."""

    settings: Callable[[], OwnersConfig]
    describe_owner: Callable[[int], tuple[str, int]]
    """Returns an owner's name and count of memories, asked at most once a minute, or once a second if full."""
    now: Callable[[], float] = time.monotonic

    def __post_init__(self) -> None:
        self._changing = threading.Lock()
        self._known: OrderedDict[int, _KnownOwner] = OrderedDict()
        self._streams: Counter[int] = Counter()
        self._allowances = {
            name: fairness.OwnerAllowance(
                partial(self._limit_of, name), period_s=period_s, now=self.now
            )
            for name, period_s in PERIODS_S.items()
        }
        self.encoder = self._allowances["encoder_s_per_minute"]
        """Seconds of the embedding model."""
        self.model = self._allowances["model_s_per_minute"]
        """Seconds of the language model."""

    def use_request(self, owner: int) -> None:
        """Count an owner's request. Raises `LimitReached`, after a pause, and `StorageFailed`."""
        try:
            self._check("requests_per_minute", owner)
        except errors.LimitReached:
            time.sleep(REFUSAL_REST_S)
            raise
        self._allowances["requests_per_minute"].use(owner, 1)

    def use_write(self, owner: int, *, memories: int, size: int) -> None:
        """Count a write to an owner's memory: new `memories`, and `size`, the bytes that it stores.

        A write without new memories counts as one. Raises `LimitReached`, with nothing counted, and
        `StorageFailed`.
        """
        self._check("writes_per_minute", owner)
        if memories or size:
            self._check("bytes_per_day", owner)
        if memories:
            limit = self._limit_of("memories_max", owner)
            if limit is not None:
                known = self._look_up_owner(owner)
                if known.memories + memories > limit:
                    known = self._look_up_owner(owner, FULL_S)
                if known.memories + memories > limit:
                    raise errors.LimitReached(
                        f"this memory keeps {known.memories:,} memories of the {limit:,} that it "
                        f"may (memories_max), and this request has {memories:,}; forget some, or "
                        "ask who runs the server for more",
                        retry_after_s=FULL_RETRY_S,
                    )
        self.count_write(owner, memories=memories, size=size, writes=memories or 1)

    def count_write(
        self, owner: int, *, memories: int, size: int, writes: int | None = None
    ) -> None:
        """Count new memories, their bytes (`size`) and `writes`, by default one per memory; check no limit."""
        with self._changing:
            if memories and (known := self._known.get(owner)):
                count = known.memories + memories
                self._known[owner] = known._replace(memories=count)
        count = memories if writes is None else writes
        self._allowances["writes_per_minute"].use(owner, count)
        self._allowances["bytes_per_day"].use(owner, size)

    def admit(self, owner: int, request: Request[Any]) -> None:
        """Count a request's writes, unless it deletes or is a dry run. Raises the errors of `use_write`."""
        if request.deletes or request.is_preview:
            return
        parts = request.memories if isinstance(request, RememberMany) else [request]
        count = sum(isinstance(part, Remember | conversation.Compact) for part in parts)
        self.use_write(owner, memories=count, size=sum(map(_stored_bytes, parts)))

    def begin_stream(self, owner: int) -> None:
        """Count a stream of an owner, until `end_stream`. Raises `LimitReached`, `StorageFailed`."""
        limit = self._limit_of("streams_max", owner)
        with self._changing:
            is_free = limit is None or self._streams[owner] < limit
            self._streams[owner] += is_free
        if not is_free:
            raise errors.LimitReached(
                f"this owner has {limit:,} streams (live events, exports), as many as it may "
                "(streams_max); end one of them",
                retry_after_s=STREAM_RETRY_S,
            )

    def end_stream(self, owner: int) -> None:
        """Subtract an ended stream, which `begin_stream` counted."""
        with self._changing:
            self._streams[owner] -= 1
            self._streams += Counter()  # without those that have none

    def list_uses(self, owner: int) -> Iterator[upkeep.LimitUse]:
        """Yield the limits that an owner has, each with the amount used. Raises `StorageFailed`."""
        for name in OWNER_LIMITS:
            if (limit := self._limit_of(name, owner)) is None:
                continue
            used, free_in_s = float(self._streams[owner]), 0.0
            if allowance := self._allowances.get(name):
                used, free_in_s = allowance.used(owner), allowance.wait_s(owner)
            elif name == "memories_max":
                used = self._look_up_owner(owner, FULL_S).memories
            yield upkeep.LimitUse(name, limit, math.ceil(used), round(free_in_s, 1))

    def _check(self, name: str, owner: int) -> None:
        """Raise `LimitReached` if an owner has used up the limit with this name."""
        allowance = self._allowances[name]
        if wait_s := math.ceil(allowance.wait_s(owner)):
            limit = self._limit_of(name, owner)
            what, _, period = name.partition("_per_")
            raise errors.LimitReached(
                f"this owner's limit of {limit:,} {what} a {period} is used up "
                f"({math.ceil(allowance.used(owner)):,} used); some is free again in {wait_s:,} s: "
                "send this again then",
                retry_after_s=wait_s,
            )

    def _limit_of(self, name: str, owner: int) -> int | None:
        """Return an owner's limit with this name; None for no limit. Raises `StorageFailed`."""
        config = self.settings()
        if config.limits_by_owner:
            own = config.limits_by_owner.get(self._look_up_owner(owner).name, {})
            if name in own:
                return own[name]
        limit: int | None = getattr(config, name)
        return limit

    def _look_up_owner(self, owner: int, age_max_s: float = KNOWN_S) -> _KnownOwner:
        """Return an owner's name and count of memories, read at most `age_max_s` ago. Raises `NotFound`."""
        known = self._known.get(owner)
        now = self.now()
        if known is None or now - known.read_at >= age_max_s:
            name, memories = self.describe_owner(owner)
            known = _KnownOwner(name, memories, now)
            with self._changing:
                self._known[owner] = known
                self._known.move_to_end(owner)
                if len(self._known) > fairness.USERS_MAX:
                    self._known.popitem(last=False)
        return known


def _stored_bytes(request: Request[Any]) -> int:
    """Return the bytes of a request's new text, metadata and tags."""
    names = () if isinstance(request, Untag) else STORED_FIELDS
    values = (getattr(request, name, None) for name in names)
    return sum(
        len(value.encode() if isinstance(value, str) else msgspec.json.encode(value))
        for value in values
        if value
    )


def administer(owners: AdministeredOwners, config: OwnersConfig, call: Request[R]) -> R:
    """Carry out a checked request of administration on the table of owners, and return its result.

    Raises the errors of `AdministeredOwners`, and `InvalidRequest` for a lifetime beyond `config`.
    """
    result: object
    match call:
        case verbs.ListOwners():
            result = verbs.OwnerList(list(owners.owners(measured=call.bytes)))
        case verbs.AddOwner():
            result = owners.add(call.name, is_group=call.is_group)
        case verbs.InviteOwners():
            by_name = {each.name: each for each in call.owners}
            for each in call.owners:
                if each != by_name[each.name]:
                    raise errors.InvalidRequest(
                        f"{each.name} is named several times, with other scopes or days; name it once",
                        field="owners",
                    )
            invitees = [
                (each.name, each.scopes, _lifetime_days(config, each.days))
                for each in by_name.values()
            ]
            lasts = timedelta(days=call.valid_days)
            result = verbs.InvitationList(owners.invite(invitees, lasts=lasts))
        case verbs.ChangeOwner():
            changed = owners.change(
                call.name, new_name=call.new_name, suspended=call.suspended
            )
            result = verbs.ChangedOwner(changed)
        case verbs.RemoveOwner():
            result = owners.remove(call.name)
        case verbs.ListMembers():
            result = verbs.MembershipList(list(owners.memberships(call.group)))
        case verbs.JoinGroup():
            result = owners.join(call.group, call.member, call.scopes)
        case verbs.LeaveGroup():
            owners.leave(call.group, call.member)
            result = verbs.ChangedOwner(call.member)
        case verbs.ListTokens():
            result = verbs.TokenList(list(owners.tokens(call.owner)))
        case verbs.IssueToken():
            valid_for = timedelta(days=_lifetime_days(config, call.days))
            result = owners.issue(
                call.owner, call.name, call.scopes, valid_for=valid_for
            )
        case verbs.RotateToken():
            keep_for = timedelta(hours=call.keep_hours)
            result = owners.rotate(call.owner, call.token, keep_for=keep_for)
        case verbs.RevokeTokens():
            result = verbs.RevokedTokens(revoked=owners.revoke(call.owner, call.token))
        case _:
            raise AssertionError(f"{call.verb_name()} is no verb of administration")
    return cast("R", result)


def _lifetime_days(config: OwnersConfig, days: float | None) -> float:
    """Return the days of a new token, by default the settings'. Raises `InvalidRequest` for too many."""
    most = config.token_days_max or verbs.DAYS_MAX
    if days is not None and days > most:
        raise errors.InvalidRequest(
            f"days: a token is valid for {most:,} days at most; its holder can renew it, or "
            "raise owners.token_days_max",
            field="days",
        )
    return days or min(config.token_days, most)
