"""Values that the shell completes: ids, sessions and sources, asked of the daemon.

Loaded where a line is completed, and by no command that runs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import click
from click.shell_completion import CompletionItem

from mnemosyned.cli.arguments.ids import id_fields, ids_that_begin
from mnemosyned.cli.calls import client_of
from mnemosyned.client.connection import Connection
from mnemosyned.domain.errors import MnemosynedError
from mnemosyned.terminal import counted
from mnemosyned.verbs.listing import Sessions, Sources

SUGGESTIONS_MAX = 50
TIMEOUT_S = 1.0
"""A shell that waits longer for a suggestion is worse than one without."""

Suggest = Callable[[click.Context, str], list[CompletionItem]]
Values = Iterable[tuple[str, str]]
"""Values, each with words that tell what it is."""


def suggestion(parameter: click.Parameter, verb: str) -> Suggest:
    """The completion of a parameter: values of the daemon, or else what click knows."""
    if parameter.name == "session":
        return _suggest(_sessions)
    if parameter.name == "source":
        return _suggest(_sources)
    if verb and parameter.name in id_fields(verb):
        return _suggest(lambda client, word: ids_that_begin(word, verb, client))
    return parameter.shell_complete


def _suggest(values: Callable[[Connection, str], Values]) -> Suggest:
    def suggest(context: click.Context, word: str) -> list[CompletionItem]:
        try:
            with client_of(context, timeout_s=TIMEOUT_S) as client:
                return [
                    CompletionItem(value, help=words)
                    for value, words in values(client, word)
                ]
        except (MnemosynedError, OSError):
            return []  # nobody reads an error there

    return suggest


def _sessions(client: Connection, word: str) -> Values:
    listed = client.call(Sessions(prefix=word or None, limit=SUGGESTIONS_MAX))
    return [(total.session, counted(total.count, "memory")) for total in listed]


def _sources(client: Connection, word: str) -> Values:
    listed = client.call(Sources(prefix=word or None, limit=SUGGESTIONS_MAX))
    return [
        (total.source, counted(total.count, "memory"))
        for total in listed
        if total.source
    ]
