"""The full-text indexes: entries, FTS5 expressions, health, rebuilding and purging."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from contextlib import closing
from itertools import chain
from pathlib import Path

from mnemosyned.logs import logger
from mnemosyned.search.words import Having
from mnemosyned.storage.sqlite.schema import table_names
from mnemosyned.text.terms import WORD, fold_case, glued_words, gram_text, stem

GLUED = "\ue000"
"""Prefix of the stem of a word next to a script without spaces, and a token of its own before each such word.
As a token it keeps phrases from matching across words, and shows whether an index has such words. FTS5 takes a
private character for a letter, and no text contains it."""


def index_memories(
    connection: sqlite3.Connection, texts: Sequence[tuple[int, str, str]]
) -> None:
    """Add memories to the full-text indexes; each is a row number, a text and a speaker."""
    connection.executemany(
        "INSERT INTO memory_fts (rowid, content, role) VALUES (?, ?, ?)", texts
    )
    for seq, content, _ in texts:
        write_grams(connection, "memory_gram_fts", seq, content)


def unindex_memory(
    connection: sqlite3.Connection, seq: int, content: str, role: str
) -> None:
    """Remove a memory from the full-text indexes; `content` and `role` are as indexed, or '' if pruned."""
    if not content:
        return
    connection.execute(
        "INSERT INTO memory_fts (memory_fts, rowid, content, role) VALUES ('delete', ?, ?, ?)",
        (seq, content, role),
    )
    write_grams(connection, "memory_gram_fts", seq, content, remove=True)


def write_grams(
    connection: sqlite3.Connection,
    table: str,
    seq: int,
    content: str,
    *,
    remove: bool = False,
) -> None:
    """Add a text to an index of character pairs, or remove it.

    The index has the character pairs of scripts without spaces, and words written next to such a
    script. Most texts have neither, and nothing is done.
    """
    glued = (f"{GLUED} {glued_terms(word)}" for word in glued_words(content))
    parts = " ".join(filter(None, (gram_text(content), *glued)))
    if not parts:
        return
    columns, action = (f"{table}, ", "'delete', ") if remove else ("", "")
    connection.execute(
        f"INSERT INTO {table} ({columns}rowid, grams) VALUES ({action}?, ?)",
        (seq, parts),
    )


def glued_terms(word: str) -> str:
    """Return index terms for a word next to a script without spaces: stems with the prefix `GLUED`."""
    return " ".join(GLUED + stem(token) for token in WORD.findall(fold_case(word)))


log = logger()
TEXTS = {
    "memory_gram_fts": "SELECT seq, content FROM memory_text",
    "episode_gram_fts": "SELECT seq, content || char(10) || index_terms AS content FROM episodic_memory",
}
"""Texts from which an index is refilled, if the index itself contains no text and only some of their rows."""
INDEXED_ROWS = {
    "memory_fts": "SELECT seq FROM memory_text",
    "episode_fts": "SELECT seq FROM episodic_memory",
    "memory_gram_fts": "SELECT seq FROM memory_text",
    "episode_gram_fts": "SELECT seq FROM episodic_memory",
}
"""Rows that each index may have entries for."""
INDEXES = tuple(INDEXED_ROWS)
MERGE_PAGES = 500
"""Pages that one step of a purge merges: some 60 ms, for which writers wait."""
MERGE_STEPS_MAX = 10_000
DEPTH_MAX = 24
"""Levels from which a purge rebuilds an index instead of merging it; a merge adds two."""
DEPTH_UNSAFE = 200
"""Levels at which an index is rebuilt when the file is opened; SQLite 3.40 fails at 2,000."""
REINDEXED_AT_ONCE = 10_000
"""Rows of which a transaction writes the entries again: at most a second."""
REINDEXING = 19
"""Number of the migration that creates the table of entries to be written again."""
_STRUCTURE_ROW = 10
_SECOND_FORMAT = b"\xff\x00\x00\x01"


def index_depth(connection: sqlite3.Connection, index: str) -> int | None:
    """Return the number of levels in a full-text index; None if that cannot be read.

    The number is read from the table behind the index, as the index itself may not open.
    """
    row = connection.execute(
        f"SELECT block FROM {index}_data WHERE id = ?", (_STRUCTURE_ROW,)
    ).fetchone()
    if row is None or len(row[0]) < 5:
        return None
    block: bytes = row[0][4:]
    block = block.removeprefix(_SECOND_FORMAT)
    depth = 0
    for byte in block[:8]:
        depth = depth << 7 | byte & 0x7F
        if byte < 0x80:
            return depth
    return None


def failing_indexes(connection: sqlite3.Connection) -> list[str]:
    """Return the names of the full-text indexes that fail to answer a search."""
    failing = []
    for index in INDEXES:
        try:
            connection.execute(
                f"SELECT rowid FROM {index} WHERE {index} MATCH 'a' LIMIT 1"
            ).fetchone()
        except sqlite3.DatabaseError as error:
            if not _is_damage(error):
                raise
            failing.append(index)
    return failing


def _is_damage(error: sqlite3.DatabaseError) -> bool:
    """Return whether an error may come from a damaged index, and not from a lock or a full disk."""
    return error.sqlite_errorcode & 0xFF in {
        sqlite3.SQLITE_CORRUPT,
        sqlite3.SQLITE_ERROR,  # "vtable constructor failed"
    }


def heal_indexes(database: Path) -> list[str]:
    """Rebuild the full-text indexes that are unreadable or have too many levels; return their names."""
    with closing(sqlite3.connect(database, isolation_level=None)) as connection:
        connection.execute("BEGIN")
        names = table_names(connection)
        known = [index for index in INDEXES if index in names]
        unsafe: set[str] = set()
        for index in known:
            depth = index_depth(connection, index)
            if depth is None or depth >= DEPTH_UNSAFE:
                unsafe.add(index)
        if len(known) == len(INDEXES):
            unsafe.update(failing_indexes(connection))
        connection.execute("ROLLBACK")
    found = [index for index in INDEXES if index in unsafe]
    _rebuild_from_nothing(database, found)
    return found


def rebuild_indexes(database: Path) -> list[str]:
    """Rebuild the full-text indexes that are unreadable or disagree with the texts; return their names."""
    with closing(sqlite3.connect(database, isolation_level=None)) as connection:
        wrong = [
            index
            for index in INDEXES
            if not is_intact(connection, index) or _has_extra_entries(connection, index)
        ]
    _rebuild_from_nothing(database, wrong)
    return wrong


def _rebuild_from_nothing(database: Path, indexes: list[str]) -> None:
    """Empty the tables behind damaged indexes, and rebuild each from the texts in a transaction."""
    if not indexes:
        return
    with closing(sqlite3.connect(database, isolation_level=None)) as connection:
        connection.execute("PRAGMA secure_delete = ON")
        for index in indexes:
            connection.execute("BEGIN IMMEDIATE")
            for table in ("data", "idx", "docsize"):
                connection.execute(f"DELETE FROM {index}_{table}")
            connection.execute(  # as in a new index
                f"INSERT INTO {index}_data VALUES (1, x''), (?, x'00000000000000')",
                (_STRUCTURE_ROW,),
            )
            rebuild_index(connection, index)
            connection.execute("COMMIT")


def is_intact(connection: sqlite3.Connection, index: str) -> bool:
    """Return whether FTS5 can read a full-text index; an index of words must match the texts, too.

    The check is an INSERT that writes nothing, so the connection must be able to write.
    """
    check = f"INSERT INTO {index} ({index}, rank) VALUES ('integrity-check', ?)"
    try:
        connection.execute(check, (int(index not in TEXTS),))
    except sqlite3.DatabaseError:
        return False
    return True


def _has_extra_entries(connection: sqlite3.Connection, index: str) -> bool:
    """Return whether a full-text index has entries for deleted texts; True if it is unreadable."""
    extra = f"SELECT id FROM {index}_docsize EXCEPT {INDEXED_ROWS[index]} LIMIT 1"
    try:
        return connection.execute(extra).fetchone() is not None
    except sqlite3.DatabaseError:
        return True


def rebuild_index(
    connection: sqlite3.Connection, index: str, *, after: int = 0, limit: int = -1
) -> int:
    """Rebuild a full-text index from the stored texts, so that no deleted text stays in it.

    An index of character pairs can be rebuilt in parts, each of up to `limit` rows (-1: of all) after the
    row `after`. Return the last row that was written, or 0 if there was none.
    """
    if index not in TEXTS:
        connection.execute(f"INSERT INTO {index} ({index}) VALUES ('rebuild')")
        return 0
    if not after:
        connection.execute(f"INSERT INTO {index} ({index}) VALUES ('delete-all')")
    texts = f"{TEXTS[index]} WHERE seq > ? ORDER BY seq LIMIT ?"
    seq = 0
    for seq, content in connection.execute(texts, (after, limit)):
        write_grams(connection, index, seq, content)
    return seq


def finish_reindexing(connection: sqlite3.Connection) -> None:
    """Rebuild the full-text indexes listed in the table `reindexing`, which a migration fills.

    The column `seq` is the last row that was written, so that a daemon goes on where another was killed.
    """
    due = "SELECT name, seq FROM reindexing LIMIT 1"
    while row := connection.execute(due).fetchone():
        index, last = row
        connection.execute("BEGIN IMMEDIATE")
        entries = f"SELECT EXISTS (SELECT 1 FROM {index}_docsize WHERE id > ?)"
        if connection.execute(entries, (last,)).fetchone()[0]:
            last = 0  # the index is as before the migration, or was rebuilt since
        last = rebuild_index(connection, index, after=last, limit=REINDEXED_AT_ONCE)
        connection.execute(
            "UPDATE reindexing SET seq = ? WHERE name = ?", (last, index)
        )
        if not last:
            connection.execute("DELETE FROM reindexing WHERE name = ?", (index,))
            log.info("index_rewritten", index=index)
        connection.execute("COMMIT")


def purge_indexes(connection: sqlite3.Connection) -> bool:
    """Remove deleted terms from all full-text indexes; return False if damage prevents it.

    No other process may use the file.
    """
    for index in INDEXES:
        try:
            depth = index_depth(connection, index)
            if depth is None or depth > DEPTH_MAX:
                rebuild_index(connection, index)
            else:
                connection.execute(f"INSERT INTO {index} ({index}) VALUES ('optimize')")
        except sqlite3.DatabaseError as error:
            if not _is_damage(error):
                raise
            return False
    return True


def merge_step(connection: sqlite3.Connection, index: str, step: int) -> bool:
    """Merge some deleted entries out of an index; return False if none were left. Begin with step 0."""
    before = connection.total_changes
    pages = MERGE_PAGES if step else -MERGE_PAGES
    connection.execute(f"INSERT INTO {index} ({index}, rank) VALUES ('merge', {pages})")
    return connection.total_changes - before >= 2


def quote_word(term: str) -> str:
    """Return a term as a quoted FTS5 string, so that no part of it is read as syntax."""
    return '"' + term.replace('"', '""') + '"'


def any_of(terms: Iterable[str]) -> str:
    """Return an FTS5 expression for rows with any of these terms."""
    return " OR ".join(map(quote_word, terms))


def all_of(having: Having) -> str:
    """Return an FTS5 expression for rows with at least one word from each part of `having`."""
    if len(having) == 1:
        return any_of(chain.from_iterable(having[0]))
    return " AND ".join(f"({any_of(chain.from_iterable(words))})" for words in having)
