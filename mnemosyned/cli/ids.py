"""Ids as people type them: prefixes as in git, numbers of the last list, and completions.

The last list is a private file for each session of processes: lists of another terminal change
nothing here.
"""

from __future__ import annotations

import os
import re
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import click
from click.shell_completion import CompletionItem

from mnemosyned.cli.calls import client_of
from mnemosyned.cli.output.terminal import counted
from mnemosyned.client.connection import Connection
from mnemosyned.errors import InvalidRequest, MnemosynedError, NotFound
from mnemosyned.paths import state_dir
from mnemosyned.verbs.listing import Sessions, Sources
from mnemosyned.verbs.memories import Get
from mnemosyned.verbs.request import TEXT_MAX

IDS_MAX = 10_000
KEPT_S = 7 * 24 * 3600
"""Lists of terminals that have not listed anything for so long are deleted."""
_NUMBER = re.compile(r"[#@%]([0-9]{1,5})|([0-9]{1,3})")


def number_of(word: str) -> int | None:
    """The number in the last list that a word names: `#3`, `@3`, `%3` or `3`."""
    match = _NUMBER.fullmatch(word)
    return int(match[1] or match[2]) if match else None


def is_marked(word: str) -> bool:
    """Whether a word can only be a number of the last list."""
    return word[:1] in ("#", "@", "%")


def keep_list(ids: Sequence[str]) -> None:
    """Keep the ids of a list that was shown; a directory that takes no file is no failure.

    An id of several lines, which only a program gives, cannot be kept.
    """
    file = _file()
    ids = ["" if "\n" in id else id for id in ids]
    with suppress(OSError):
        file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        _delete_old(file.parent)
        handle, temporary = tempfile.mkstemp(dir=file.parent, prefix=".list-")
        with os.fdopen(handle, "w", encoding="utf-8") as opened:
            opened.write("".join(f"{id}\n" for id in ids[:IDS_MAX]))
        Path(temporary).replace(file)


def id_in_last_list(number: int) -> str:
    """The id of an entry of the last list. Raises `InvalidRequest`."""
    try:
        ids = _file().read_text("utf-8").split("\n")[:-1]
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


def _file() -> Path:
    return state_dir() / "lists" / f"session-{os.getsid(0)}"


def _delete_old(folder: Path) -> None:
    oldest = time.time() - KEPT_S
    for file in folder.iterdir():
        with suppress(OSError):
            if file.stat().st_mtime < oldest:
                file.unlink()


PREFIX_CHARS_MIN = 4
SHOWN_MAX = 8
"""Ids shown where several begin alike."""
LISTED_MAX = 1_000
"""Learnings and cycles among which an id is looked for."""
WORDS_CHARS = 50
_WHOLE = re.compile("[0-7][0-9a-hjkmnp-tv-z]{25}", re.IGNORECASE)
_FIELDS = {
    "remember": ("supersedes",),
    "undo": ("cycle",),
    "log": ("cycle",),
}
"""The fields of a verb that name what there is; of all others `id`."""

Named = tuple[str, str]
"""An id, and words that tell what it is."""


def with_whole_ids(
    verb: str, fields: Mapping[str, Any], client: Connection
) -> dict[str, Any]:
    """The fields of a request with whole ids. Raises `InvalidRequest` where several begin alike."""
    whole = dict(fields)
    for name in id_fields(verb):
        typed = whole.get(name)
        if isinstance(typed, str):
            whole[name] = _whole(typed, verb, client)
        elif isinstance(typed, list):
            whole[name] = [_whole(word, verb, client) for word in typed]
    return whole


def id_fields(verb: str) -> tuple[str, ...]:
    """The fields of a verb that name a memory, summary, learning or cycle."""
    return _FIELDS.get(verb, ("id",))


def _whole(word: str, verb: str, client: Connection) -> str:
    number = number_of(word)
    if number is not None and is_marked(word):
        return id_in_last_list(number)
    if _WHOLE.fullmatch(word):
        return word.upper()
    is_looked_up = number is not None or PREFIX_CHARS_MIN <= len(word) <= TEXT_MAX
    matches = ids_that_begin(word, verb, client) if is_looked_up else []
    if any(id == word for id, _ in matches):
        return word
    if number is not None:
        return id_in_last_list(number)
    return _completed(word, matches, verb, client)


def _completed(
    word: str, matches: Sequence[Named], verb: str, client: Connection
) -> str:
    """The id that begins so. Raises `InvalidRequest` where several do."""
    if not matches:
        return word  # the daemon finds it as it is, or says that there is none
    if len(matches) > 1 and not _is_known(word, verb, client):
        raise InvalidRequest(_ambiguous(word, matches), field="id")
    return matches[0][0] if len(matches) == 1 else word


def _ambiguous(word: str, matches: Sequence[Named]) -> str:
    lines = [f"{id}  {words}".rstrip() for id, words in matches[:SHOWN_MAX]]
    if len(matches) > SHOWN_MAX:
        lines.append("and more")
    listed = "\n  ".join(lines)
    return f"several ids begin with {word}; type more of the one you mean:\n  {listed}"


def ids_that_begin(word: str, verb: str, client: Connection) -> list[Named]:
    """Ids of what a verb takes that begin so, in any case; a few more than are shown."""
    return _LOOKUPS.get(verb, _memories)(word, client)


def _is_known(word: str, verb: str, client: Connection) -> bool:
    """Whether a memory has just this id, although longer ones begin so too."""
    try:
        client.call(Get(word))
    except NotFound:
        return False
    return verb not in _LOOKUPS


def _memories(word: str, client: Connection) -> list[Named]:
    # Loaded here, as below: a whole id is not looked up.
    from mnemosyned.verbs.listing import ListMemories  # noqa: PLC0415

    request = ListMemories(id_prefix=word, limit=SHOWN_MAX + 1, history=True)
    return [(record.id, _words(record.content)) for record in client.call(request)]


def _learnings(word: str, client: Connection) -> list[Named]:
    from mnemosyned.verbs.conversation import Learnings  # noqa: PLC0415 see `_memories`

    listed = client.call(Learnings(superseded=True, limit=LISTED_MAX)).learnings
    begin = word.upper()
    return [
        (learning.id, _words(learning.text))
        for learning in listed
        if learning.id.upper().startswith(begin)
    ]


def _cycles(word: str, client: Connection) -> list[Named]:
    from mnemosyned.verbs.upkeep import Log  # noqa: PLC0415 see `_memories`

    begin = word.upper()
    rows = client.call(Log(limit=LISTED_MAX)).rows
    found = {row.cycle: f"{row.created_at:%Y-%m-%d %H:%M}" for row in rows}
    return [named for named in found.items() if named[0].upper().startswith(begin)]


_LOOKUPS: dict[str, Callable[[str, Connection], list[Named]]] = {
    "edit_learning": _learnings,
    "remove_learning": _learnings,
    "undo": _cycles,
    "log": _cycles,
}
"""Where the ids of a verb are looked up; of all others among memories and summaries."""


def _words(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= WORDS_CHARS else f"{line[: WORDS_CHARS - 1]}…"


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
