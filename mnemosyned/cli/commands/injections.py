"""`mnem injections`: what agents were given, and ratings of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import click

from mnemosyned.cli.calls import call_daemon, connect_to_daemon
from mnemosyned.cli.ids import with_whole_ids
from mnemosyned.cli.output.show import show
from mnemosyned.cli.verb_command import make_verb_command
from mnemosyned.verbs.injections import Injections, RateInjection
from mnemosyned.verbs.request import parse_text

RATINGS = ("useful", "not-useful", "unknown")

injections = make_verb_command("injections", Injections)
_list_injections = cast("Callable[..., int]", injections.callback)


def _run_injections(
    context: click.Context,
    /,
    *,
    rating: tuple[str, ...],
    **given: Any,  # noqa: ANN401
) -> int:
    """Print injections, or rate the one that `rating` names: `useful ID`; return the exit code."""
    if not rating:
        return _list_injections(**given)
    if len(rating) != 2 or rating[0] not in RATINGS:
        raise click.UsageError(
            f"say {', '.join(RATINGS)} and an id: mnem injections useful 01M2B9QW"
        )
    outcome, id = rating
    with connect_to_daemon(context) as client:
        fields = with_whole_ids("rate_injection", {"id": id}, client)
        fields["outcome"] = outcome.replace("-", "_")
        show(call_daemon(client, parse_text(RateInjection, fields)))
    return 0


injections.params.insert(
    0, click.Argument(["rating"], nargs=-1, metavar="[useful|not-useful|unknown ID]")
)
injections.callback = click.pass_context(_run_injections)
