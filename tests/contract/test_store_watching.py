"""Watched folders and files in the store."""

from dataclasses import replace
from datetime import UTC, datetime

from mnemosyned.memory.capture import FolderTotals, WatchedFile
from mnemosyned.storage.sqlite.store import SqliteStore

NOW = datetime(2026, 3, 16, 9, tzinfo=UTC)
NOTE = WatchedFile(
    path="/n/a.md",
    file="1:2",
    size=3,
    modified_ns=4,
    read_at=NOW,
    format="notes",
    position="5",
    memories={"part": "memory"},
    stored=6,
)


def test_a_folder_is_added_once_and_removed_with_the_state_of_its_files(
    store: SqliteStore,
) -> None:
    store.watches.add_folder("/n", NOW)
    store.watches.add_folder("/n", NOW)
    store.watches.keep_file(NOTE)
    beside = replace(NOTE, path="/n.md", file="9:9")
    store.watches.keep_file(beside)

    assert store.watches.folders() == ["/n"]
    assert store.watches.remove_folder("/n")
    assert not store.watches.remove_folder("/n")
    assert store.watches.file(NOTE.path) is None
    assert store.watches.file(beside.path) == beside


def test_the_state_of_a_file_is_kept_found_and_replaced(store: SqliteStore) -> None:
    store.watches.keep_file(NOTE)
    grown = replace(NOTE, size=30, position="50")
    store.watches.keep_file(grown)

    assert store.watches.file(NOTE.path) == grown
    assert list(store.watches.moved_from("1:2")) == [grown]
    assert store.watches.states("/n") == {NOTE.path: (30, 4)}
    assert store.watches.states("/other") == {}
    assert store.watches.totals("/n") == FolderTotals(1, 6, NOW)
    store.watches.drop_files([NOTE.path])
    assert store.watches.totals("/n") == FolderTotals(0, 0, None)
