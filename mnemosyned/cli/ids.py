"""Ids as people type them: prefixes as in git, numbers of the last list, and completions.

The last list is a private file for each session of processes: lists of another terminal change
nothing here.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from mnemosyned.cli.calls import connect_to_daemon
from mnemosyned.cli.output.terminal import count_of, cut_text, local_time
from mnemosyned.client.connection import Connection
from mnemosyned.errors import InvalidRequest, MnemosynedError, NotFound
from mnemosyned.paths import replacing_file, state_dir
from mnemosyned.socket_path import make_private_folder
from mnemosyned.verbs.request import TEXT_MAX

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

LIST_AGE_MAX_S = 7 * 24 * 3600
"""Age from which lists of other terminals are deleted."""
_NUMBER = re.compile(r"[#@%]([0-9]{1,5})|([0-9]{1,3})")


def number_of(word: str) -> int | None:
    """Return the number in a word like `#3`, `@3`, `%3` or `3`; None for any other word."""
    match = _NUMBER.fullmatch(word)
    return int(match[1] or match[2]) if match else None


def is_marked(word: str) -> bool:
    """Return whether a word begins with `#`, `@` or `%`, and therefore is no id."""
    return word[:1] in ("#", "@", "%")


def save_list(ids: Sequence[str]) -> None:
    """Save the ids of a printed list for later commands; delete other terminals' old lists."""
    file = _list_file()
    ids = ["" if "\n" in id else id for id in ids]
    with suppress(OSError):
        make_private_folder(str(file.parent))
        oldest = time.time() - LIST_AGE_MAX_S
        for other in file.parent.iterdir():
            with suppress(OSError):
                if other.stat().st_mtime < oldest:
                    other.unlink()
        with replacing_file(file) as opened:
            opened.write("".join(f"{id}\n" for id in ids[:10_000]).encode())


def id_in_last_list(number: int) -> str:
    """Return the id of entry `number`, from 1, in this terminal's last list.

    Raises `InvalidRequest` if there is no list, no such entry, or no id in the entry.
    """
    try:
        ids = _list_file().read_text("utf-8").split("\n")[:-1]
    except (OSError, UnicodeDecodeError):
        ids = []
    if not ids:
        raise InvalidRequest(
            f"there is no number {number}: this terminal has shown no list yet; "
            "mnem recall shows one, or give an id"
        )
    if not 1 <= number <= len(ids):
        raise InvalidRequest(
            f"there is no number {number}: the last list has the numbers 1 to {len(ids)}"
        )
    if not ids[number - 1]:
        raise InvalidRequest(f"entry {number} of the last list has no id")
    return ids[number - 1]


def _list_file() -> Path:
    """Return the file of this terminal's last list, named by the process's session."""
    return state_dir() / "lists" / f"session-{os.getsid(0)}"


SHOWN_MAX = 8
"""Maximum ids shown of those with the same prefix."""
LISTED_MAX = 1_000
"""Learnings and cycles that are searched for an id."""
WORDS_CHARS = 50
_WHOLE = re.compile("[0-7][0-9a-hjkmnp-tv-z]{25}", re.IGNORECASE)
_FIELDS = {"remember": ("supersedes",), "undo": ("action",), "log": ("cycle",)}
"""By verb: the fields with ids, if other than `id`."""

Named = tuple[str, str]
"""An id with a short description."""


def with_whole_ids(
    verb: str, fields: Mapping[str, Any], client: Connection
) -> dict[str, Any]:
    """Return a verb's fields with list numbers and id prefixes replaced by whole ids.

    Raises `InvalidRequest` for an ambiguous prefix and for a number without an id.
    """
    whole = dict(fields)
    for name in id_fields(verb):
        typed = whole.get(name)
        if isinstance(typed, str):
            whole[name] = _resolve_id(typed, verb, client)
        elif isinstance(typed, list):
            whole[name] = [_resolve_id(word, verb, client) for word in typed]
    return whole


def id_fields(verb: str) -> tuple[str, ...]:
    """Return the names of a verb's fields that contain ids."""
    return _FIELDS.get(verb, ("id",))


def _resolve_id(word: str, verb: str, client: Connection) -> str:
    """Return the whole id for a typed list number or id prefix; any other word unchanged.

    Raises `InvalidRequest` for an ambiguous prefix and for a number without an id.
    """
    number = number_of(word)
    if number is not None and is_marked(word):
        return id_in_last_list(number)
    if _WHOLE.fullmatch(word):
        return word.upper()
    is_looked_up = number is not None or 4 <= len(word) <= TEXT_MAX
    matches = ids_with_prefix(word, verb, client) if is_looked_up else []
    if any(id == word for id, _ in matches):
        return word
    if number is not None:
        return id_in_last_list(number)
    if len(matches) == 1:
        return matches[0][0]
    if matches:
        # Loaded here, as below: a whole id is not looked up.
        from mnemosyned.verbs.memories import Get  # noqa: PLC0415

        if verb not in _KINDS:
            with suppress(NotFound):  # a memory has it, although longer ids begin so
                client.call(Get(word))
                return word
        lines = [f"{id}  {words}".rstrip() for id, words in matches[:SHOWN_MAX]]
        lines += ["and more"] if len(matches) > SHOWN_MAX else []
        problem = f"several ids begin with {word}; type more of the one you mean:"
        raise InvalidRequest("\n  ".join([problem, *lines]), field="id")
    return word  # the daemon finds it as it is, or says that there is none


def ids_with_prefix(prefix: str, verb: str, client: Connection) -> list[Named]:
    """Return (id, description) for the ids beginning with `prefix`, of the kinds that `verb` accepts."""
    kind = _KINDS.get(verb)
    begin = prefix.upper()
    listed = dict(_list_named(kind, client)) if kind else {}
    matches = [each for each in listed.items() if each[0].upper().startswith(begin)]
    if kind is None or verb == "edit_briefing":
        from mnemosyned.verbs.listing import ListMemories  # noqa: PLC0415 as above

        request = ListMemories(id_prefix=prefix, limit=SHOWN_MAX + 1, history=True)
        matches[:0] = [
            (record.id, cut_text(record.content, WORDS_CHARS))
            for record in client.call(request)
        ]
    return matches


_KINDS = {
    "learnings": "learning",
    "edit_learning": "learning",
    "remove_learning": "learning",
    "edit_briefing": "learning",
    "rate_injection": "injection",
    "undo_ending": "ending",
    "undo": "action",
    "log": "cycle",
}
"""Kinds of a verb's ids, unless they are of memories and summaries only."""


def _list_named(kind: str, client: Connection) -> Iterator[Named]:
    """Yield the newest `LISTED_MAX` ids of a kind in `_KINDS`, each with a description."""
    from mnemosyned.verbs import conversation, upkeep  # noqa: PLC0415 as above

    if kind == "learning":
        request = conversation.Learnings(superseded=True, limit=LISTED_MAX)
        for learning in client.call(request):
            yield learning.id, cut_text(learning.text, WORDS_CHARS)
    elif kind == "ending":
        for ending in client.call(conversation.Endings(limit=LISTED_MAX)):
            yield ending.id, ending.sentence
    elif kind == "injection":
        for injection in client.call(conversation.Injections(limit=LISTED_MAX)):
            yield injection.id, local_time(injection.created_at)
    else:
        for action in client.call(upkeep.Undo(list=True)) if kind == "action" else ():
            if action.kind.value != "sleep":
                yield action.id, f"{action.kind.value} {local_time(action.at)}"
        for row in client.call(upkeep.Log(limit=LISTED_MAX)).rows:
            yield row.cycle, local_time(row.created_at)


TIMEOUT_S = 1.0
"""A shell that waits longer for a suggestion is worse than one without."""

Suggest = Callable[[click.Context, str], list["CompletionItem"]]


def suggester(parameter: click.Parameter, verb: str) -> Suggest:
    """Return the function that completes a parameter with sessions, sources or ids, or else click's own."""
    name = parameter.name
    if name not in ("session", "source") and not (verb and name in id_fields(verb)):
        return parameter.shell_complete

    def suggest(context: click.Context, word: str) -> list[CompletionItem]:
        """Return the values that begin with `word`; none if the daemon does not answer in time."""
        # Loaded here, as below: a command that runs completes nothing.
        from click.shell_completion import CompletionItem  # noqa: PLC0415

        try:
            with connect_to_daemon(context, timeout_s=TIMEOUT_S) as client:
                if name not in ("session", "source"):
                    named = ids_with_prefix(word, verb, client)
                    return [CompletionItem(id, help=words) for id, words in named]
                from mnemosyned.verbs.listing import Sessions, Sources  # noqa: PLC0415 as above

                listing: Any = Sessions if name == "session" else Sources
                totals: Any = client.call(listing(prefix=word or None, limit=50))
                return [
                    CompletionItem(value, help=count_of(each.count, "memory"))
                    for each in totals
                    if (value := getattr(each, name))
                ]
        except (MnemosynedError, OSError):
            return []  # nobody reads an error there

    return suggest
