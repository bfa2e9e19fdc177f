"""Ids as people type them: by their beginning as in git, in any case, or by the last list's number."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from mnemosyned.cli.arguments.last_list import id_in_last_list, is_marked, number_of
from mnemosyned.client.connection import Connection
from mnemosyned.domain.errors import InvalidRequest, NotFound
from mnemosyned.verbs.memories import Get
from mnemosyned.verbs.request import TEXT_MAX

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
    from mnemosyned.verbs.learnings import Learnings  # noqa: PLC0415 see `_memories`

    listed = client.call(Learnings(superseded=True, limit=LISTED_MAX)).learnings
    begin = word.upper()
    return [
        (learning.id, _words(learning.text))
        for learning in listed
        if learning.id.upper().startswith(begin)
    ]


def _cycles(word: str, client: Connection) -> list[Named]:
    from mnemosyned.verbs.sleep import Log  # noqa: PLC0415 see `_memories`

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
