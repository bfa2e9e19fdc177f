"""Verbs about owners and their tokens, for a daemon that serves many: enrolment and administration."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from msgspec import Meta

from mnemosyned.memory import engine_ports
from mnemosyned.verbs.request import Name, Request, RowList, doc

DAYS_MAX = 36_600
INVITED_MAX = 1_000
Days = Annotated[float, Meta(gt=0, le=DAYS_MAX)]
Scopes = Annotated[
    list[engine_ports.Scope],
    doc("what the token allows", min_length=1, max_length=len(engine_ports.Scope)),
]
OwnerName = Annotated[Name, doc("the owner's name")]
TokenDays = Annotated[
    Days | None,
    doc("days until the token expires; by default `owners.token_days`"),
]


class Login(Request[engine_ports.Enrolment], frozen=True):
    """Exchange the one-time code of an invitation for a token; it needs none.

    A code that is unknown, used or expired is refused alike.

    Raises `Unauthorized` and `LimitReached`.
    """

    writes = True

    code: Annotated[Name, doc("the code, with or without its hyphens")]
    name: Annotated[Name, doc("what the token is for, such as the machine's name")]


class Renew(Request[engine_ports.Enrolment], frozen=True):
    """Exchange the token of the request for a successor of the same name, scopes and lifetime.

    The token of the request stays valid for seven days, or until its own expiry.

    Raises `Unauthorized` and `LimitReached`.
    """

    writes = True


class OwnerList(RowList[engine_ports.Owner], frozen=True):
    """Owners, sorted by name."""

    owners: list[engine_ports.Owner]


class ListOwners(Request[OwnerList], frozen=True, kw_only=True):
    """List all owners with the size of their memories, their tokens and last use, but no text."""

    verb = "owners"

    bytes: Annotated[
        bool, doc("measure the rows, with the login that owns the tables")
    ] = False


class AddOwner(Request[engine_ports.Owner], frozen=True):
    """Add an owner, whose memory no other owner sees."""

    verb = "owners/add"
    writes = True

    name: OwnerName
    is_group: Annotated[
        bool, doc("a group, whose memory its members read and write")
    ] = False


class Invitee(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An owner to invite."""

    name: OwnerName
    scopes: Scopes = msgspec.field(
        default_factory=lambda: list(engine_ports.OWN_SCOPES)
    )
    days: TokenDays = None


class InvitationList(RowList[engine_ports.Invitation], frozen=True):
    """The codes of invitations, in the order of the request; shown once."""

    invitations: list[engine_ports.Invitation]


class InviteOwners(Request[InvitationList], frozen=True):
    """Make a one-time code for each owner; add missing owners. If one fails, none is invited.

    It takes the place of unused codes that the owner was given before. An owner that is named several
    times, with the same scopes and days, gets one code.

    Raises `InvalidRequest`.
    """

    verb = "owners/invite"
    writes = True

    owners: Annotated[list[Invitee], Meta(min_length=1, max_length=INVITED_MAX)]
    valid_days: Annotated[Days, doc("days until the codes expire")] = 7


class ChangedOwner(msgspec.Struct, frozen=True):
    """The name of an owner after a change."""

    name: str


class ChangeOwner(Request[ChangedOwner], frozen=True):
    """Rename, suspend or resume an owner; its memory, tokens and codes are kept.

    Raises `NotFound`.
    """

    verb = "owners/change"
    writes = True

    name: OwnerName
    new_name: Annotated[Name | None, doc("the name from now on")] = None
    suspended: Annotated[
        bool | None, doc("refuse its tokens within a second, or accept them again")
    ] = None


class RemoveOwner(Request[engine_ports.RemovedOwner], frozen=True):
    """Delete an owner with all its memory; nothing brings it back.

    Its tokens are revoked first. The result says where deleted text remains, and until when.

    Raises `NotFound`.
    """

    verb = "owners/remove"
    writes = True
    deletes = True
    takes_long = True

    name: OwnerName


class MembershipList(RowList[engine_ports.Membership], frozen=True):
    """Members of groups, sorted by group and member."""

    memberships: list[engine_ports.Membership]


class ListMembers(Request[MembershipList], frozen=True):
    """List the members of a group, or of all groups, with what they may do.

    Raises `NotFound`.
    """

    verb = "owners/groups"

    group: Annotated[Name | None, doc("only this group")] = None


class JoinGroup(Request[engine_ports.Membership], frozen=True):
    """Make an owner a member of a group, or change what a member may do there.

    Raises `NotFound`.
    """

    verb = "owners/groups/join"
    writes = True

    group: Annotated[Name, doc("the group's name")]
    member: OwnerName
    scopes: Scopes = msgspec.field(
        default_factory=lambda: [engine_ports.Scope.READ, engine_ports.Scope.WRITE]
    )


class LeaveGroup(Request[ChangedOwner], frozen=True):
    """End an owner's membership of a group; daemons refuse the member within a second.

    Raises `NotFound`.
    """

    verb = "owners/groups/leave"
    writes = True

    group: Annotated[Name, doc("the group's name")]
    member: OwnerName


class TokenList(RowList[engine_ports.OwnerToken], frozen=True):
    """Tokens, the newest first."""

    tokens: list[engine_ports.OwnerToken]


class ListTokens(Request[TokenList], frozen=True):
    """List an owner's tokens, expired and revoked ones too; the tokens themselves are not kept.

    Raises `NotFound`.
    """

    verb = "owners/tokens"

    owner: OwnerName


class IssueToken(Request[engine_ports.IssuedToken], frozen=True):
    """Issue a token for an owner, which is shown once.

    Raises `NotFound`.
    """

    verb = "owners/tokens/issue"
    writes = True

    owner: OwnerName
    name: Annotated[Name, doc("name of the token, such as its machine")] = "token"
    scopes: Scopes = msgspec.field(
        default_factory=lambda: list(engine_ports.OWN_SCOPES)
    )
    days: TokenDays = None


class RotateToken(Request[engine_ports.IssuedToken], frozen=True):
    """Replace a token with a new one of the same name, scopes and lifetime.

    Raises `NotFound`.
    """

    verb = "owners/tokens/rotate"
    writes = True

    owner: OwnerName
    token: Annotated[Name, doc("its id or name")]
    keep_hours: Annotated[
        float, doc("hours that the old one is valid yet", ge=0, le=8_784)
    ] = 0


class RevokedTokens(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a revocation."""

    revoked: int
    """Tokens that were valid and are not any more."""


class RevokeTokens(Request[RevokedTokens], frozen=True):
    """Revoke an owner's token by its id, or all of a name, within a second.

    Raises `NotFound`.
    """

    verb = "owners/tokens/revoke"
    writes = True

    owner: OwnerName
    token: Annotated[Name, doc("its id, or the name of one or several")]


ENROLMENT: tuple[type[Request[Any]], ...] = (Login, Renew)
ADMINISTRATION: tuple[type[Request[Any]], ...] = tuple(
    kind for kind in Request.__subclasses__() if kind.verb.startswith("owners")
)
"""Verbs that need a token of the scope `admin`, over TCP alone."""
