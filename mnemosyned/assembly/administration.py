"""Administration of owners: each verb done on the table of owners, by the settings of tokens."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import TYPE_CHECKING, Any, TypeVar, cast

from mnemosyned.errors import InvalidRequest
from mnemosyned.verbs import owners as verbs
from mnemosyned.verbs.facade import Caller
from mnemosyned.verbs.request import Request

if TYPE_CHECKING:
    from mnemosyned.config.settings import OwnersConfig
    from mnemosyned.storage.postgres.administration import AdministeredOwners

R = TypeVar("R")


class OwnerAdministration(Caller):
    """Caller of the verbs of administration."""

    def __init__(self, owners: AdministeredOwners, config: OwnersConfig) -> None:
        """Administer `owners`; the settings say how long tokens are valid."""
        self._owners = owners
        self._config = config
        self._functions: dict[type[Request[Any]], Callable[[Any], object]] = {
            verbs.ListOwners: lambda call: verbs.OwnerList(
                list(owners.owners(measured=call.bytes))
            ),
            verbs.AddOwner: lambda call: owners.add(call.name, is_group=call.is_group),
            verbs.InviteOwners: self._invite_owners,
            verbs.ChangeOwner: lambda call: verbs.ChangedOwner(
                owners.change(
                    call.name, new_name=call.new_name, suspended=call.suspended
                )
            ),
            verbs.RemoveOwner: lambda call: owners.remove(call.name),
            verbs.ListMembers: lambda call: verbs.MembershipList(
                list(owners.memberships(call.group))
            ),
            verbs.JoinGroup: lambda call: owners.join(
                call.group, call.member, call.scopes
            ),
            verbs.LeaveGroup: self._leave_group,
            verbs.ListTokens: lambda call: verbs.TokenList(
                list(owners.tokens(call.owner))
            ),
            verbs.IssueToken: lambda call: owners.issue(
                call.owner,
                call.name,
                call.scopes,
                valid_for=timedelta(days=self._lifetime_days(call.days)),
            ),
            verbs.RotateToken: lambda call: owners.rotate(
                call.owner, call.token, keep_for=timedelta(hours=call.keep_hours)
            ),
            verbs.RevokeTokens: lambda call: verbs.RevokedTokens(
                revoked=owners.revoke(call.owner, call.token)
            ),
        }

    def call(self, request: Request[R], /) -> R:
        """Carry out a checked request of administration, and return its result.

        Raises the errors of `AdministeredOwners`, and `InvalidRequest` for a lifetime beyond the
        settings.
        """
        return cast("R", self._functions[type(request)](request))

    def _lifetime_days(self, days: float | None) -> float:
        """Return the days of a new token, by default the settings'. Raises `InvalidRequest` for too many."""
        most = self._config.token_days_max or verbs.DAYS_MAX
        if days is not None and days > most:
            raise InvalidRequest(
                f"days: a token is valid for {most:,} days at most; its holder can renew it, or "
                "raise owners.token_days_max",
                field="days",
            )
        return days or min(self._config.token_days, most)

    def _leave_group(self, call: verbs.LeaveGroup) -> verbs.ChangedOwner:
        """End a membership of a group."""
        self._owners.leave(call.group, call.member)
        return verbs.ChangedOwner(call.member)

    def _invite_owners(self, call: verbs.InviteOwners) -> verbs.InvitationList:
        """Make a code for each owner; add those that are missing."""
        invitees = [
            (each.name, each.scopes, self._lifetime_days(each.days))
            for each in call.owners
        ]
        lasts = timedelta(days=call.valid_days)
        return verbs.InvitationList(self._owners.invite(invitees, lasts=lasts))
