"""`mnem list`: pages of memories or summaries, as many as are asked for."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import click
import msgspec

from mnemosyned.cli.answers.formats import AnswerCommand, chosen_format
from mnemosyned.cli.answers.output import answers
from mnemosyned.cli.arguments.inputs import fields_typed
from mnemosyned.cli.arguments.parameters import in_order, parameter
from mnemosyned.cli.calls import called, client_of
from mnemosyned.cli.exits import EXIT_NOTHING
from mnemosyned.client.connection import Connection
from mnemosyned.domain.errors import InvalidRequest
from mnemosyned.terminal import reader_left
from mnemosyned.verbs.listing import Listed, ListMemories
from mnemosyned.verbs.request import parse_text

PAGE = 500
"""Records of one call, where more are asked for."""
LIMIT = 50
LIMIT_MAX = 100_000_000


def _limit_of(typed: str | None, *, everything: bool) -> int:
    """How many records are asked for. Raises `InvalidRequest`."""
    if everything:
        return LIMIT_MAX
    if typed is None:
        return LIMIT
    if not typed.isdecimal() or not 1 <= int(typed[:12]) <= LIMIT_MAX:
        raise InvalidRequest(
            f"limit must be a whole number from 1 on, not {typed!r}; --all lists everything",
            field="limit",
        )
    return int(typed)


def run(context: click.Context, /, *, all_: bool, **given: Any) -> int:  # noqa: ANN401
    """Print as many pages as are asked for."""
    fields = fields_typed(given)
    left = _limit_of(fields.pop("limit", None), everything=all_)
    request = parse_text(ListMemories, fields)
    with client_of(context) as client, answers() as printer:
        pages = _pages(client, request, left)
        if chosen_format() == "json":
            pages = iter([_joined(pages)])
        shown = 0
        for page in pages:
            printer.show(page)
            shown += len(page)
            if printer.is_over() or reader_left():
                break
    return 0 if shown else EXIT_NOTHING


def _pages(client: Connection, request: ListMemories, left: int) -> Iterator[Listed]:
    """Yield page after page; only the last one says what follows."""
    while True:  # ends with the records
        size = min(left, PAGE)
        page = called(client, msgspec.structs.replace(request, limit=size))
        left -= len(page)
        if not page.next or left <= 0:
            yield page
            return
        yield msgspec.structs.replace(page, next=None)
        request = msgspec.structs.replace(request, after=page.next)


def _joined(pages: Iterator[Listed]) -> Listed:
    """All pages as one."""
    gathered = list(pages)
    return Listed(
        [memory for page in gathered for memory in page.memories],
        [episode for page in gathered for episode in page.episodes],
        gathered[-1].next,
    )


def _params() -> list[click.Parameter]:
    params = [parameter(ListMemories, field) for field in in_order(ListMemories)]
    everything = click.Option(
        ["--all", "all_"], is_flag=True, help="List everything that matches."
    )
    return [*params, everything]


list_command = AnswerCommand(
    "list",
    params=_params(),
    callback=click.pass_context(run),
    help=str(ListMemories.__doc__).partition("\n\n    Raises")[0],
)
