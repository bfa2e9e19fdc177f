"""What is read of a followed file when it changes."""

import os
import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from support.agents import claude_line, write_lines
from support.import_samples import write_sample
from support.services import Lab
from support.settings import settings_in_force
from support.vector_service import wait_until

from mnemosyned.importers.capture import Capture
from mnemosyned.importers.watch import watched_files, watcher
from mnemosyned.importers.watch.watched_files import FileReader, files_below
from mnemosyned.importers.watch.watcher import Watcher
from mnemosyned.memory.values import MemoryRecord

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


@dataclass(frozen=True)
class Garden:
    """Notes of a garden that are read into a store, and short ways to write them."""

    lab: Lab
    reader: FileReader
    folder: Path

    @property
    def note(self) -> Path:
        return self.folder / "Garden.md"

    def write(self, *sections: str, path: Path | None = None) -> Path:
        """Write a file of these sections."""
        file = path or self.note
        file.write_text("\n\n".join(sections))
        return file

    def read(self, *sections: str, path: Path | None = None) -> int:
        """Write a file of these sections, if any, and read it."""
        file = self.write(*sections, path=path) if sections else path or self.note
        return self.reader.read(str(file), lambda: False)

    def forget(self, name: str) -> None:
        self.lab.forget(self.lab.recall(name).hits[0].id)

    def listed(self) -> list[MemoryRecord]:
        return self.lab.list(limit=100).memories

    def current(self) -> list[str]:
        """The first line but one of each memory that is in force: its heading."""
        in_force = [each for each in self.listed() if each.superseded_at is None]
        return sorted(each.content.split("\n")[2] for each in in_force)

    def project_of(self, session: str) -> str:
        found = self.lab.store.agents.session(session)
        assert found
        assert found.transcript == ""
        return found.project

    def follow(self, path: Path, **options: Any) -> Watcher:  # noqa: ANN401
        return follow(self.lab, self.reader, path, **options)


def follow(
    lab: Lab, reader: FileReader, path: Path, *, settle_s: float = 0.01
) -> Watcher:
    settings = {"watch.paths": [str(path)], "watch.settle_s": settle_s}
    lab.settings.config = settings_in_force(settings).config
    return Watcher(lab.service, reader)


@pytest.fixture
def garden(lab: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Garden:
    monkeypatch.setattr(watched_files, "READ_BYTES", 500)
    monkeypatch.setattr(watched_files, "BATCH", 2)
    monkeypatch.setattr(watcher, "LOOK_S", 0.05)
    monkeypatch.setattr(watcher, "RESCAN_S", 3_600.0)
    lab.clock.advance(days=4_000)  # past the times of the files of today
    reader = TrippingReader(lab.service, Capture(lab.service))
    return Garden(lab, reader, tmp_path)


def test_new_parts_of_a_note_replace_those_that_are_gone(garden: Garden) -> None:
    assert garden.read(ROSES, BEANS) == 2
    assert garden.read(ROSES, PEAS) == 1
    assert garden.current() == ["## Peas", "## Roses"]
    assert garden.read(ROSES) == 0
    assert garden.current() == ["## Roses"]
    assert garden.read(BEANS, PEAS) == 2
    assert garden.current() == ["## Beans", "## Peas"]
    assert garden.read(BEANS, PEAS) == 0


def test_a_changed_note_of_claude_code_replaces_what_it_said(garden: Garden) -> None:
    note = write_sample("claude_memory", garden.folder)
    before = {path: path.read_bytes() for path in note.parent.iterdir()}

    first = [garden.read(path=path) for path in sorted(before)]
    unchanged = {path: path.read_bytes() for path in note.parent.iterdir()}
    again = garden.read(
        note.read_text().replace("with tabs", "with four spaces"), path=note
    )

    assert (first, again) == ([0, 1], 1), "the index is not stored"
    assert unchanged == before
    (new,) = garden.listed()
    assert "Indent with four spaces." in new.content
    assert new.metadata["project"] == "/w/shop"
    assert new.source == "claude-memory"


def test_a_conversation_of_specstory_is_stored_once(garden: Garden) -> None:
    path = write_sample("specstory", garden.folder)
    more = "_**User (2026-03-16 09:05:00Z)**_\n\nAnd test it in Safari.\n\n---\n"

    first = garden.read(path=path)
    again = garden.read(f"{path.read_text()}\n{more}", path=path)

    assert (first, again) == (3, 1)
    listed = garden.listed()
    assert {each.source for each in listed} == {"claude-code"}
    assert garden.project_of(listed[0].session) == str(garden.folder)


@pytest.mark.parametrize("is_new_again", [False, True])
def test_a_part_that_was_forgotten_stays_forgotten_when_another_is_edited(
    garden: Garden, *, is_new_again: bool
) -> None:
    garden.read(ROSES, BEANS)
    garden.forget("Roses")

    if is_new_again:
        garden.lab.store.watches.remove_folder(str(garden.folder))
    garden.read(ROSES, BEANS, PEAS)

    assert garden.current() == ["## Beans", "## Peas"]


def test_a_part_whose_earlier_version_was_forgotten_is_stored(garden: Garden) -> None:
    garden.read(ROSES)
    garden.forget("Roses")

    assert garden.read(PEAS) == 1
    assert garden.current() == ["## Peas"]


def test_a_transcript_is_followed_though_hooks_capture_nothing(garden: Garden) -> None:
    garden.lab.change({"hooks.capture": False})
    folder = str(garden.folder)
    path = write_lines(
        garden.folder / "s1.jsonl",
        [
            claude_line("user", f"message {n}", uuid=f"u{n}", cwd=folder)
            for n in range(9)
        ],
    )

    begun = garden.reader.read(str(path), lambda: True)
    assert 0 < begun < 9
    with garden.follow(garden.folder):  # as after a restart
        wait_until(lambda: len(garden.listed()) == 9)

    assert garden.read(path=path) == 0
    assert garden.project_of("claude-code:s1") == folder


def test_lines_that_are_refused_do_not_hold_up_the_others(garden: Garden) -> None:
    garden.lab.change({"secrets": "refuse"})
    path = garden.folder / "log.jsonl"
    path.write_text(
        '{"content": "first"}\n{"content": "password: hunter2hunter2"}\n'
        '{"content": "third"}\nbroken\n{"content": "cut'
    )

    assert garden.read(path=path) == 2
    with path.open("a") as file:
        file.write(' off"}\n{"content": "last"}\n')
    assert garden.read(path=path) == 2
    contents = sorted(each.content for each in garden.listed())
    assert contents == ["cut off", "first", "last", "third"]
    path.write_text('{"content": "begun again"}\n')
    assert garden.read(path=path) == 1


def test_a_file_that_a_format_trips_over_stops_no_other(garden: Garden) -> None:
    garden.write(PEAS, path=garden.folder / "Bad.md")
    garden.write(ROSES)

    with garden.follow(garden.folder):
        wait_until(lambda: garden.current() == ["## Roses"])


LOST: dict[str, Callable[[Path], object]] = {
    "deleted": shutil.rmtree,
    "moved away": lambda folder: folder.rename(folder.with_name("elsewhere")),
    "deleted with its parent": lambda folder: shutil.rmtree(folder.parent),
}


@pytest.mark.parametrize("is_seen_away", [True, False])
@pytest.mark.parametrize("lost", LOST)
def test_a_folder_that_was_lost_and_is_there_again_is_followed(
    garden: Garden, lost: str, *, is_seen_away: bool
) -> None:
    notes = garden.folder / "above" / "notes"
    notes.mkdir(parents=True)
    with garden.follow(notes) as watcher:
        garden.write(ROSES, path=notes / "a.md")
        wait_until(lambda: garden.current() == ["## Roses"])

        LOST[lost](notes)
        if is_seen_away:
            wait_until(lambda: watcher.folders()[0].problem != "")
            assert "no such folder" in watcher.folders()[0].problem
            time.sleep(0.1)  # for the thread to look while nothing is there
        notes.mkdir(parents=True)
        garden.write(BEANS, path=notes / "b.md")

        wait_until(lambda: "## Beans" in garden.current())
        garden.write(PEAS, path=notes / "c.md")
        wait_until(lambda: "## Peas" in garden.current())
        # A file is counted right after its words are stored.
        wait_until(lambda: watcher.folders()[0].files >= 2)
        assert watcher.folders()[0].problem == ""


def test_a_file_that_is_replaced_or_made_again_is_followed(garden: Garden) -> None:
    garden.write(ROSES)
    with garden.follow(garden.note):
        wait_until(lambda: garden.current() == ["## Roses"])

        garden.write(ROSES, BEANS, path=garden.folder / "new").replace(garden.note)
        wait_until(lambda: garden.current() == ["## Beans", "## Roses"])
        garden.note.unlink()
        time.sleep(0.1)  # for the thread to look while nothing is there
        garden.write(PEAS)
        wait_until(lambda: garden.current() == ["## Peas"])


def test_files_whose_names_are_not_utf_8_are_read_once_each(garden: Garden) -> None:
    folder = garden.folder / "notes"
    (folder / os.fsdecode(b"d\xe9r")).mkdir(parents=True)
    for name in (b"caf\xe9.md", b"caf\xe8.md", b"d\xe9r/tea.md"):
        garden.write("Water it every day.", path=folder / os.fsdecode(name))
    first = [garden.read(path=Path(path)) for path, _ in files_below(str(folder))]

    with garden.follow(folder):
        garden.write("Cut it in spring.", path=folder / os.fsdecode(b"ros\xe9.md"))
        wait_until(lambda: len(garden.listed()) == 4)

    listed = garden.listed()
    assert first == [1, 1, 1]
    assert sorted((each.metadata["title"], each.session) for each in listed) == [
        (r"caf\xe8", "notes:notes"),
        (r"caf\xe9", "notes:notes"),
        (r"ros\xe9", "notes:notes"),
        ("tea", r"notes:d\xe9r"),
    ]
    states = garden.lab.store.watches.states(str(folder))
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
    lab: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in (("GROW_S", 0.01), ("SLOW_S", 0.01), ("RESCAN_S", 60.0)):
        monkeypatch.setattr(watcher, name, value)
    path = tmp_path / "log.jsonl"
    path.touch()
    slow = SlowReader()

    with follow(lab, slow, tmp_path, settle_s=5.0):
        wait_until(lambda: slow.readings > 0)
        began = time.monotonic()
        for _ in range(60):
            with path.open("a") as file:
                file.write("{}\n")
            time.sleep(0.02)
        pauses = (time.monotonic() - began) / (watcher.SLOW_PAUSE * READING_S)

    assert slow.readings <= pauses + 2


def test_what_is_no_file_or_of_no_format_is_passed_over(garden: Garden) -> None:
    names = ("a.json", "b.md", "c.md", "d.md")
    package, link, pipe, foreign = paths = [garden.folder / name for name in names]
    package.write_text('{"name": "package"}')
    link.symlink_to(package)
    os.mkfifo(pipe)
    if os.geteuid() == 0:
        os.chown(garden.write(ROSES, path=foreign), 65_534, 65_534)

    assert [garden.read(path=path) for path in paths] == [0, 0, 0, 0]


def test_a_second_name_of_a_note_leaves_the_first_its_state(garden: Garden) -> None:
    garden.read(ROSES)
    second = garden.folder / "Second.md"
    os.link(garden.note, second)

    garden.read(path=second)

    states = garden.lab.store.watches.states(str(garden.folder))
    assert set(states) == {str(garden.note), str(second)}
