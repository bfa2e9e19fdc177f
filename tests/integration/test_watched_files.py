"""What is read of a followed file when it changes."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from support.agents import claude_line, write_lines
from support.fakes import FakeClock
from support.import_samples import write_sample
from support.settings import change, settings_in_force
from support.vector_service import wait_until

from mnemosyned.config.settings import SettingsInForce
from mnemosyned.importers.capture import Capture
from mnemosyned.importers.watch import watched_files, watcher
from mnemosyned.importers.watch.watched_files import (
    FileReader,
    files_below,
)
from mnemosyned.importers.watch.watcher import Watcher
from mnemosyned.service.service import MemoryService
from mnemosyned.sleep.context import ForegroundGate
from mnemosyned.storage.sqlite.store import SqliteStore
from mnemosyned.verbs.listing import ListMemories
from mnemosyned.verbs.memories import Recall
from mnemosyned.verbs.retention import Forget

LONG = "Water it every day in the evening. " * 70
ROSES, BEANS, PEAS = (
    f"## {name}\n\n{name} {LONG}" for name in ("Roses", "Beans", "Peas")
)


class TrippingReader(FileReader):
    """A reader whose format trips over one of the files."""

    def read(self, path: str, pause: Callable[[], bool]) -> int:
        if path.endswith("Bad.md"):
            raise KeyError("tripped")
        return super().read(path, pause)


@pytest.fixture
def reader(
    service: MemoryService,
    store: SqliteStore,
    clock: FakeClock,
    settings: SettingsInForce,
    monkeypatch: pytest.MonkeyPatch,
) -> FileReader:
    monkeypatch.setattr(watched_files, "READ_BYTES", 500)
    monkeypatch.setattr(watched_files, "BATCH", 2)
    monkeypatch.setattr(watcher, "LOOK_S", 0.05)
    monkeypatch.setattr(watcher, "RESCAN_S", 3_600.0)
    clock.advance(days=4_000)  # past the times of the files of today
    return TrippingReader(
        service=service,
        watches=store.watches,
        agents=store.agents,
        capture=Capture(
            service=service,
            agents=store.agents,
            clock=clock,
            settings=settings,
        ),
        clock=clock,
    )


def go_on() -> bool:
    return False


def write(path: Path, *sections: str) -> str:
    path.write_text("\n\n".join(sections))
    return str(path)


def current(service: MemoryService) -> list[str]:
    """The first line but one of each memory that is in force: its heading."""
    listed = service.call(ListMemories(limit=100)).memories
    headings = [
        each.content.split("\n")[2] for each in listed if each.superseded_at is None
    ]
    return sorted(headings)


def test_of_an_edited_note_the_new_parts_replace_those_that_are_gone(
    reader: FileReader, service: MemoryService, tmp_path: Path
) -> None:
    note = tmp_path / "Garden.md"

    assert reader.read(write(note, ROSES, BEANS), go_on) == 2
    assert reader.read(write(note, ROSES, PEAS), go_on) == 1
    assert current(service) == ["## Peas", "## Roses"]
    assert reader.read(write(note, ROSES), go_on) == 0
    assert current(service) == ["## Roses"]
    assert reader.read(write(note, BEANS, PEAS), go_on) == 2
    assert current(service) == ["## Beans", "## Peas"]
    assert reader.read(write(note, BEANS, PEAS), go_on) == 0


def test_a_note_of_claude_code_that_changed_replaces_what_it_said(
    reader: FileReader, service: MemoryService, tmp_path: Path
) -> None:
    note = write_sample("claude_memory", tmp_path)
    before = {path: path.read_bytes() for path in note.parent.iterdir()}

    first = [reader.read(str(path), go_on) for path in sorted(before)]
    unchanged = {path: path.read_bytes() for path in note.parent.iterdir()}
    note.write_text(note.read_text().replace("with tabs", "with four spaces"))
    again = reader.read(str(note), go_on)

    assert (first, again) == ([0, 1], 1), "the index is not stored"
    assert unchanged == before
    listed = service.call(ListMemories(limit=10)).memories
    (new,) = listed
    assert "Indent with four spaces." in new.content
    assert new.metadata["project"] == "/w/shop"
    assert new.source == "claude-memory"


def test_a_conversation_that_specstory_wrote_again_is_stored_once(
    reader: FileReader, service: MemoryService, store: SqliteStore, tmp_path: Path
) -> None:
    path = write_sample("specstory", tmp_path)

    first = reader.read(str(path), go_on)
    with path.open("a") as opened:
        opened.write(
            "\n_**User (2026-03-16 09:05:00Z)**_\n\nAnd test it in Safari.\n\n---\n"
        )
    again = reader.read(str(path), go_on)

    assert (first, again) == (3, 1)
    listed = service.call(ListMemories(limit=10)).memories
    assert {each.source for each in listed} == {"claude-code"}
    session = store.agents.session(listed[0].session)
    assert session
    assert session.project == str(tmp_path)


def test_a_part_that_was_forgotten_stays_forgotten_when_another_is_edited(
    reader: FileReader, service: MemoryService, tmp_path: Path
) -> None:
    note = tmp_path / "Garden.md"
    reader.read(write(note, ROSES, BEANS), go_on)
    roses = service.call(Recall("Roses")).hits[0].id
    service.call(Forget(roses))

    reader.read(write(note, ROSES, PEAS), go_on)

    assert current(service) == ["## Peas"]


def test_a_part_that_was_forgotten_stays_forgotten_when_the_folder_is_new_again(
    reader: FileReader, store: SqliteStore, service: MemoryService, tmp_path: Path
) -> None:
    note = tmp_path / "Garden.md"
    reader.read(write(note, ROSES, BEANS), go_on)
    service.call(Forget(service.call(Recall("Roses")).hits[0].id))

    store.watches.remove_folder(str(tmp_path))
    reader.read(write(note, ROSES, BEANS, PEAS), go_on)

    assert current(service) == ["## Beans", "## Peas"]


def test_a_part_whose_earlier_version_was_forgotten_is_stored(
    reader: FileReader, service: MemoryService, tmp_path: Path
) -> None:
    note = tmp_path / "Garden.md"
    reader.read(write(note, ROSES), go_on)
    service.call(Forget(service.call(Recall("Roses")).hits[0].id))

    assert reader.read(write(note, PEAS), go_on) == 1
    assert current(service) == ["## Peas"]


def test_a_transcript_is_followed_although_hooks_capture_nothing(
    reader: FileReader,
    store: SqliteStore,
    settings: SettingsInForce,
    tmp_path: Path,
) -> None:
    change(settings, {"hooks.capture": False})
    path = write_lines(
        tmp_path / "s1.jsonl",
        [
            claude_line("user", f"message {n}", uuid=f"u{n}", cwd=str(tmp_path))
            for n in range(9)
        ],
    )

    assert reader.read(str(path), go_on) == 9
    assert reader.read(str(path), go_on) == 0
    session = store.agents.session("claude-code:s1")
    assert session is not None
    assert session.project == str(tmp_path)
    assert session.transcript == ""


def test_lines_that_are_refused_do_not_hold_up_the_others(
    reader: FileReader,
    service: MemoryService,
    settings: SettingsInForce,
    tmp_path: Path,
) -> None:
    change(settings, {"secrets": "refuse"})
    path = tmp_path / "log.jsonl"
    path.write_text(
        '{"content": "first"}\n{"content": "password: hunter2hunter2"}\n'
        '{"content": "third"}\nbroken\n{"content": "cut'
    )

    assert reader.read(str(path), go_on) == 2
    with path.open("a") as file:
        file.write(' off"}\n{"content": "last"}\n')
    assert reader.read(str(path), go_on) == 2
    contents = [each.content for each in service.call(ListMemories()).memories]
    assert sorted(contents) == ["cut off", "first", "last", "third"]


def test_a_file_that_a_format_trips_over_does_not_hold_up_the_others(
    reader: FileReader,
    service: MemoryService,
    store: SqliteStore,
    tmp_path: Path,
) -> None:
    write(tmp_path / "Bad.md", PEAS)
    write(tmp_path / "Garden.md", ROSES)

    with follow(store, reader, tmp_path):
        wait_until(lambda: current(service) == ["## Roses"])


def follow(
    store: SqliteStore, reader: FileReader, path: Path, *, settle_s: float = 0.01
) -> Watcher:
    return Watcher(
        watches=store.watches,
        reader=reader,
        clock=FakeClock(),
        gate=ForegroundGate(),
        settings=settings_in_force(
            {"watch.paths": [str(path)], "watch.settle_s": settle_s}
        ),
    )


def deleted(folder: Path) -> None:
    shutil.rmtree(folder)


def moved_away(folder: Path) -> None:
    folder.rename(folder.with_name("elsewhere"))


def deleted_with_its_parent(folder: Path) -> None:
    shutil.rmtree(folder.parent)


@pytest.mark.parametrize("away", [True, False], ids=["seen away", "at once"])
@pytest.mark.parametrize("lost", [deleted, moved_away, deleted_with_its_parent])
def test_a_folder_that_was_lost_and_is_there_again_is_followed(  # noqa: PLR0917
    reader: FileReader,
    store: SqliteStore,
    service: MemoryService,
    tmp_path: Path,
    lost: Callable[[Path], None],
    away: bool,  # noqa: FBT001 a parameter of the test
) -> None:
    notes = tmp_path / "above" / "notes"
    notes.mkdir(parents=True)
    with follow(store, reader, notes) as watcher:
        write(notes / "a.md", ROSES)
        wait_until(lambda: current(service) == ["## Roses"])

        lost(notes)
        if away:
            wait_until(lambda: watcher.folders()[0].problem != "")
            assert "no such folder" in watcher.folders()[0].problem
            time.sleep(0.1)  # for the thread to look while nothing is there
        notes.mkdir(parents=True)
        write(notes / "b.md", BEANS)

        wait_until(lambda: "## Beans" in current(service))
        write(notes / "c.md", PEAS)
        wait_until(lambda: "## Peas" in current(service))
        # A file is counted right after its words are stored.
        wait_until(lambda: watcher.folders()[0].files >= 2)
        assert watcher.folders()[0].problem == ""


def test_a_followed_file_that_is_replaced_or_made_again_is_followed(
    reader: FileReader, store: SqliteStore, service: MemoryService, tmp_path: Path
) -> None:
    note = tmp_path / "Garden.md"
    write(note, ROSES)
    with follow(store, reader, note):
        wait_until(lambda: current(service) == ["## Roses"])

        Path(write(tmp_path / "new", ROSES, BEANS)).replace(note)
        wait_until(lambda: current(service) == ["## Beans", "## Roses"])
        note.unlink()
        time.sleep(0.1)  # for the thread to look while nothing is there
        write(note, PEAS)
        wait_until(lambda: current(service) == ["## Peas"])


def test_files_whose_names_are_not_utf_8_are_read_once_each(
    reader: FileReader, store: SqliteStore, service: MemoryService, tmp_path: Path
) -> None:
    folder = tmp_path / "notes"
    (folder / os.fsdecode(b"d\xe9r")).mkdir(parents=True)
    for name in (b"caf\xe9.md", b"caf\xe8.md", b"d\xe9r/tea.md"):
        write(folder / os.fsdecode(name), "Water it every day.")
    first = [reader.read(file.path, go_on) for file in files_below(str(folder))]

    with follow(store, reader, folder):
        write(folder / os.fsdecode(b"ros\xe9.md"), "Cut it in spring.")
        wait_until(lambda: len(service.call(ListMemories()).memories) == 4)

    listed = service.call(ListMemories()).memories
    assert first == [1, 1, 1]
    assert sorted((each.metadata["title"], each.session) for each in listed) == [
        (r"caf\xe8", "notes:notes"),
        (r"caf\xe9", "notes:notes"),
        (r"ros\xe9", "notes:notes"),
        ("tea", r"notes:d\xe9r"),
    ]
    states = store.watches.states(str(folder))
    assert rf"{folder}/caf\xe9.md" in states
    assert len(states) == 4


READING_S = 0.05


class SlowReader(FileReader):
    """A reader that takes long for little, and counts its readings."""

    def __init__(self) -> None:
        self.readings = 0

    def read(self, _path: str, _rest: Callable[[], bool]) -> int:
        self.readings += 1
        until = time.thread_time() + READING_S
        while time.thread_time() < until:
            pass
        return 1


def test_a_file_whose_reading_takes_long_is_read_less_often(
    store: SqliteStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in (("GROW_S", 0.01), ("SLOW_S", 0.01), ("RESCAN_S", 60.0)):
        monkeypatch.setattr(watcher, name, value)
    path = tmp_path / "log.jsonl"
    path.touch()
    slow = SlowReader()

    with follow(store, slow, tmp_path, settle_s=5.0):
        wait_until(lambda: slow.readings > 0)
        began = time.monotonic()
        for _ in range(60):
            with path.open("a") as file:
                file.write("{}\n")
            time.sleep(0.02)
        pauses = (time.monotonic() - began) / (watcher.SLOW_PAUSE * READING_S)

    assert slow.readings <= pauses + 2


def test_what_is_no_file_or_of_no_format_is_passed_over(
    reader: FileReader, tmp_path: Path
) -> None:
    (tmp_path / "a.json").write_text('{"name": "package"}')
    (tmp_path / "b.md").symlink_to(tmp_path / "a.json")
    os.mkfifo(tmp_path / "c.md")

    assert [reader.read(str(tmp_path / name), go_on) for name in ("a.json", "b.md", "c.md")] == [
        0, 0, 0,
    ]  # fmt: skip
