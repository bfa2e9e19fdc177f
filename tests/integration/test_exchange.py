"""Exports amid other work, their file, and what an import into a memory of one's own leaves alone."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import pytest
from support.cases import each_case
from support.fakes import memory
from support.services import Lab, database_file
from support.settings import config_by_words
from support.stores import TRIO, get_episode

from mnemosyned.assembly.build import open_memory
from mnemosyned.errors import DaemonBusy, InvalidRequest, InvalidText
from mnemosyned.importers.formats import json_files
from mnemosyned.importers.formats.json_files import ExportFile
from mnemosyned.importers.importer import BadRecord, ExportGroup, ImportSource
from mnemosyned.importers.run import recognize_format
from mnemosyned.memory.exchange import RestoreReport
from mnemosyned.memory.values import MemoryRecord, Tier
from mnemosyned.service import exchange
from mnemosyned.service.exchange import (
    POSTPONED_S,
    ExchangeService,
)
from mnemosyned.service.service import MemoryService
from mnemosyned.verbs.exchange import Export
from mnemosyned.verbs.facade import Verbs
from mnemosyned.verbs.memories import Remember, RememberMany
from mnemosyned.verbs.request import Request, validate

WM_MAX = 210
START = datetime.now(UTC) - timedelta(days=30)


R = TypeVar("R")


@dataclass
class Person(Verbs):
    """Somebody with a memory of their own."""

    service: MemoryService

    def call(self, request: Request[R]) -> R:
        return self.service.call(request)

    def remember_all(self, *words: str, session: str = "s") -> None:
        at = [START + timedelta(minutes=n) for n in range(len(words))]
        memories = [
            Remember(
                text, id=f"{session}-{text[:9]}", session=session, created_at=at[n]
            )
            for n, text in enumerate(words)
        ]
        self.call(validate(RememberMany(memories)))

    def exported(self) -> list[bytes]:
        return b"".join(self.service.export(Export())).splitlines(keepends=True)

    def restore_from(self, other: Person) -> RestoreReport:
        return self.service.restore_lines(b"".join(other.exported()[1:]))

    def record(self, id: str) -> MemoryRecord:
        memory = self.get(id, reveal=True).memory
        assert memory
        return memory


@contextmanager
def person(blank: Path, database: Path) -> Iterator[Person]:
    shutil.copy(blank, database)
    with open_memory(config_by_words(database, wm_max=WM_MAX)) as memory:
        yield Person(memory.service)


@pytest.fixture
def mine(tmp_path: Path, blank: Path) -> Iterator[Person]:
    with person(blank, tmp_path / "memory.db") as memory:
        yield memory


@pytest.fixture
def other(tmp_path: Path, blank: Path) -> Iterator[Person]:
    with person(blank, tmp_path / "other.db") as memory:
        yield memory


def exchange_of(lab: Lab, **parts: Any) -> ExchangeService:  # noqa: ANN401
    """Exports and imports of a store, with these parts in place of those that do nothing."""
    return ExchangeService(
        store=lab.store.exchange,
        clock=lab.clock,
        database="",
        file=database_file(lab.store),
        schema_version=lab.store.schema_version,
        **{"postpone_cycles": lambda _: None, "on_restored": lambda: None, **parts},
    )


def records(lines: list[bytes], kind: str) -> list[dict[str, Any]]:
    decoded = map(msgspec.json.decode, lines)
    return [record for record in decoded if record["record"] == kind]


def test_an_export_is_of_one_moment_while_writing_goes_on(mine: Person) -> None:
    mine.remember_all(*(f"Early {n} " + "words " * 300 for n in range(200)))
    chunks = mine.service.export(Export())
    first = next(chunks)

    mine.remember_all("Late", session="late")
    lines = (first + b"".join(chunks)).splitlines()

    assert len(records(lines, "memory")) == 200
    assert records(lines, "footer")[0]["counts"]["memory"] == 200


def test_one_export_runs_at_a_time_and_leaving_it_frees_the_place(mine: Person) -> None:
    running = mine.service.export(Export())

    with pytest.raises(DaemonBusy, match="another export is running"):
        mine.service.export(Export())

    running.close()  # type: ignore[attr-defined]
    assert records(mine.exported(), "footer")


@pytest.mark.parametrize(
    ("limit", "value", "reason"),
    [
        ("DURATION_S", 0.0, "it took longer than 0 s"),
        ("LOG_GROWTH_MAX", -1, "the write-ahead log grew too long"),
    ],
)
def test_an_export_that_holds_its_snapshot_too_long_ends_and_says_so(
    lab: Lab, monkeypatch: pytest.MonkeyPatch, *, limit: str, value: float, reason: str
) -> None:
    monkeypatch.setattr(exchange, limit, value)
    texts = (memory(f"m{n}", content="words " * 300) for n in range(200))
    lab.put(*texts)

    lines = b"".join(exchange_of(lab).export(Export())).splitlines()

    assert reason in records(lines, "cut_off")[0]["reason"]
    assert records(lines, "footer") == []


def test_originals_that_are_here_keep_their_place(mine: Person, other: Person) -> None:
    mine.remember_all("a", "b", "c")
    mine.sleep(force=True)
    other.remember_all("a")

    restored = other.restore_from(mine)

    assert restored.left_out >= 1, "its summary speaks of more than what came"
    assert restored.stored["memory"] == 2
    assert restored.working == 2
    assert [other.record(f"s-{id}").episode for id in "abc"] == [None] * 3
    assert other.sleep(force=True).evicted == 3


def test_lines_that_come_twice_are_stored_once(mine: Person, other: Person) -> None:
    mine.remember_all("a", "b", "c")
    mine.sleep(force=True)

    restored = other.service.restore_lines(b"".join(mine.exported()[1:-1] * 2))

    assert (restored.stored, restored.conflicts) == (restored.known, [])
    episode = other.record("s-a").episode
    assert episode
    assert len(other.expand(episode).originals) == 3


def test_an_import_leaves_further_places_free(mine: Person, other: Person) -> None:
    mine.remember_all("a", "b", "c")
    mine.sleep(force=True)
    other.restore_from(mine)

    other.remember("The ferry leaves at noon", id="new")

    assert [hit.id for hit in other.recall("ferry")] == ["new"]
    assert other.record("s-c").content == "c"


def test_two_memories_become_one(mine: Person, other: Person) -> None:
    mine.remember_all("a", "b", "c", session="mine")
    mine.sleep(force=True)
    other.remember_all("d", "e", "f", session="yours")
    other.sleep(force=True)

    other.restore_from(mine)

    episode = other.record("mine-a").episode
    assert episode
    originals = other.expand(episode).originals
    assert [original.content for original in originals] == ["a", "b", "c"]
    assert other.restore_from(mine).stored == {}


def test_an_ending_of_a_newer_export_is_left_out_of_the_older_summary(
    mine: Person, other: Person
) -> None:
    facts = "The worker listens on 7070, and Priya owns the retries."
    reports = [f"Report {n:02} of the harbor is at desk {n}." for n in range(12)]
    mine.remember_all(*reports, facts)
    mine.sleep(force=True)
    other.service.restore_lines(b"".join(mine.exported()[1:]), "first")
    told = [each.content for each in other.list(tier=Tier.EPISODIC).episodes]
    mine.call(Remember("The worker listens on 7071 now.", session="s"))
    assert mine.endings().endings

    other.service.restore_lines(b"".join(mine.exported()[1:]), "second")

    now = [each.content for each in other.list(tier=Tier.EPISODIC).episodes]
    assert any(facts in each for each in told)
    assert not any(facts in each for each in now)
    assert any("Priya owns the retries." in each for each in now)


def test_a_whole_export_keeps_the_summaries_of_its_ended_statements(
    mine: Person, other: Person
) -> None:
    mine.remember_all("My desk is in room 5.", "From now on, my desk is in room 6.")
    mine.sleep(force=True)
    assert mine.endings().endings
    lines = mine.exported()[1:]
    endings = [line for line in lines if b'"record":"ending"' in line]
    assert endings

    for part in ([line for line in lines if line not in endings], endings):
        other.service.restore_lines(b"".join(part), "first")

    episodes = records(mine.exported(), "episode")
    assert episodes
    assert records(other.exported(), "episode") == episodes


def test_cycles_wait_until_the_last_line(lab: Lab) -> None:
    postponed_s: list[float] = []
    service = exchange_of(lab, postpone_cycles=postponed_s.append)
    lab.put(memory("a"), memory("b"))
    lines = b"".join(service.export(Export())).splitlines(keepends=True)

    service.restore(b"".join(lines[1:-1]))
    service.restore(lines[-1])

    assert postponed_s == [POSTPONED_S, 0.0]


def test_a_postponed_cycle_does_not_begin_by_itself(mine: Person) -> None:
    sleeper = mine.service.sleeper
    sleeper.postpone(60)
    mine.remember_all(*(f"n{n}" for n in range(WM_MAX + 5)))
    waiting = mine.status().tiers[Tier.WORKING].count

    sleeper.postpone(0)
    sleeper.enforce_cap()

    assert waiting == WM_MAX + 5
    assert mine.status().tiers[Tier.WORKING].count <= WM_MAX


FORGOTTEN = b'{"record": "forgotten", "id": "x"}\n'


def test_a_whole_export_is_restored_as_it_was_sent(mine: Person, other: Person) -> None:
    mine.remember_all("The bike is blue.", "The bell is old.")
    whole = b"".join(mine.exported())

    assert other.service.restore_lines(whole).stored == {"memory": 2}


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16"])
def test_an_export_that_another_program_saved_is_still_one(
    mine: Person, tmp_path: Path, encoding: str
) -> None:
    mine.remember_all("The bike is blue.", "The bell is old.")
    file = tmp_path / "saved.jsonl"
    file.write_text(b"".join(mine.exported()).decode(), encoding)
    source = ImportSource.of_path(file)

    records = list(ExportFile().read_records(source, ""))

    assert isinstance(recognize_format(source), ExportFile)
    assert {type(each) for each in records} == {ExportGroup}


@pytest.mark.parametrize(
    ("lines", "says", "field"),
    [
        (FORGOTTEN + b'{"record": "header"}\n', "'header' is not", "lines[1]"),
        (FORGOTTEN + b'{"record": "dream"}\n', "'dream' is not a kind of", "lines[1]"),
        (FORGOTTEN * 3, "3 lines in one request; send 2 at most", None),
    ],
    ids=["header", "newer version", "too many"],
)
def test_lines_that_do_not_belong_are_refused(
    mine: Person, monkeypatch: pytest.MonkeyPatch, lines: bytes, says: str, field: str
) -> None:
    monkeypatch.setattr(exchange, "LINES_MAX", 2)

    with pytest.raises(InvalidRequest, match=says) as error:
        mine.service.restore_lines(lines)

    assert error.value.field == field


def revised(**changes: object) -> dict[str, object]:
    """The fields of a memory with one revision."""
    revision = {"changed_at": "2026-01-01T00:00:00Z", "content": "", "content_hash": 1}
    return {"revisions": [{**revision, **changes}]}


@each_case(
    ("changes", "reason"),
    [
        ({"content": ""}, "content is empty"),
        ({"content": "a\0b"}, "content contains a NUL character"),
        ({"importance": 7}, "importance must be between 0 and 1"),
        ({"created_at": "2026-01-01T00:00:00"}, "created_at names no zone"),
        ({"details": [["mood", "blue", False]]}, "unknown kind 'mood'"),
        ({"id": "x" * 300}, "id must have at most 200 characters"),
        ({"tags": ["a,b"]}, "a tag must not contain a comma"),
        ({"seq": "first"}, "the memory is not whole"),
        ({"seq": (1 << 30) + 1}, "seq must be between 0 and 1,073,741,824"),
        ({"seq": -1}, "seq must be between 0"),
        ({"content_hash": 1 << 63}, "content_hash has more than 64 bits"),
        (revised(changed_at="2026-01-01T00:00:00"), "changed_at names no zone"),
        (revised(content="a\0b"), "content contains a NUL character"),
        (revised(content_hash=1 << 70), "content_hash has more than 64 bits"),
    ],
)
def test_an_invented_memory_is_refused(
    mine: Person, changes: dict[str, object], reason: str
) -> None:
    mine.remember_all("a")
    (record,) = records(mine.exported(), "memory")
    line = msgspec.json.encode({**record, "id": "other", **changes})

    with pytest.raises((InvalidRequest, InvalidText), match=reason):
        mine.service.restore_lines(line)


def test_tags_are_stored_as_they_are_searched(mine: Person) -> None:
    mine.remember_all("a")
    (record,) = records(mine.exported(), "memory")
    line = msgspec.json.encode({**record, "id": "other", "tags": ["#To  Do", "to do"]})

    mine.service.restore_lines(line)

    tagged = mine.list(tag="to do").memories
    assert [(memory.id, memory.tags) for memory in tagged] == [("other", ("to do",))]


def test_secrets_not_to_be_stored_are_masked(mine: Person, tmp_path: Path) -> None:
    mine.remember(f"The token is ghp_{'a1B2' * 9}", id="t")
    config = config_by_words(tmp_path / "masked.db", secrets="mask")

    with open_memory(config) as masked:
        other = Person(masked.service)
        other.restore_from(mine)

        assert other.record("t").content == "The token is [secret:github_token]"


def test_an_export_refuses_a_filter_before_its_first_line(mine: Person) -> None:
    with pytest.raises(InvalidRequest, match="a tag must not contain a comma"):
        mine.service.export(Export(tag="a,b"))

    assert mine.exported()  # the place of the export is free


def test_a_forgotten_original_comes_back_without_its_summary(lab: Lab) -> None:
    lab.put(*TRIO)
    lab.run_cycle(force=True)
    lines = Person(lab.service).exported()
    lab.forget(TRIO[0].id, now=True)

    restored = lab.service.restore_lines(b"".join(lines[1:]))

    assert (restored.working, restored.conflicts) == (1, [])
    assert lab.store.memories.working_count() == 1
    (episode,) = {lab.episode_of(memory.id).id for memory in TRIO[1:]}
    assert get_episode(lab.store, episode).item_count == 2


def test_a_summary_that_miscounts_its_originals_is_refused(lab: Lab) -> None:
    lab.put(*TRIO)
    lab.run_cycle(force=True)
    (record,) = records(Person(lab.service).exported(), "episode")
    line = msgspec.json.encode({**record, "id": "other", "item_count": 9})

    with pytest.raises(InvalidRequest, match="is not the number of its originals"):
        lab.service.restore_lines(line)


# The lines of an export put into groups that are stored together.


HEADER = {"record": "header", "format": "mnemosyned-export", "version": 1}


def episode_line(id: str, originals: int) -> dict[str, Any]:
    return {"record": "episode", "id": id, "originals": originals}


def memory_line(id: str, in_episode: str | None = None) -> dict[str, Any]:
    return {"record": "memory", "id": id, "episode": in_episode}


def written(file: Path, *records: dict[str, Any], whole: bool = True) -> ImportSource:
    lines = [json.dumps(record).encode() + b"\n" for record in (HEADER, *records)]
    if whole:
        footer = {
            "record": "footer",
            "counts": Counter(json.loads(line)["record"] for line in lines),
            "sha256": hashlib.sha256(b"".join(lines)).hexdigest(),
        }
        lines.append(json.dumps(footer).encode() + b"\n")
    file.write_bytes(b"".join(lines))
    return ImportSource.of_path(file)


def read(source: ImportSource, position: str = "") -> tuple[list[list[str]], list[str]]:
    """The ids in each group, and the reasons of what is bad."""
    groups: list[list[str]] = []
    reasons: list[str] = []
    for record in ExportFile().read(source, position):
        if isinstance(record, ExportGroup):
            lines = map(json.loads, record.data.splitlines())
            groups.append([line.get("id", line["record"]) for line in lines])
        elif isinstance(record, BadRecord):
            reasons.append(record.reason)
    return groups, reasons


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "memory.jsonl"


def test_an_episode_is_stored_with_its_originals(file: Path) -> None:
    originals = [memory_line(id, "e") for id in "ab"]
    source = written(file, episode_line("e", 2), *originals, memory_line("c"))

    assert read(source) == ([["e", "a", "b"], ["c"], ["footer"]], [])


def test_of_a_cut_episode_the_originals_are_stored(file: Path) -> None:
    source = written(file, episode_line("e", 2), memory_line("a", "e"), whole=False)

    groups, reasons = read(source)

    assert groups == [["a"]]
    assert reasons == [
        "the summary lacks originals and is left out",
        "the export was cut off here: it has no last line",
    ]


def test_a_large_episode_has_parts(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_files, "GROUP_LINES_MAX", 2)
    originals = [memory_line(id, "e") for id in "abcd"]
    source = written(file, episode_line("e", 5), *originals, whole=False)

    groups, reasons = read(source)

    assert groups == [["e", "a"], ["b", "c"], ["d"]]
    assert reasons == ["the export was cut off here: it has no last line"]


def test_reading_goes_on_after_a_group_and_still_checks_the_whole(file: Path) -> None:
    source = written(file, *map(memory_line, "abc"))
    first = next(iter(ExportFile().read(source, "")))
    assert isinstance(first, ExportGroup)

    assert read(source, first.position) == ([["b"], ["c"], ["footer"]], [])

    file.write_bytes(file.read_bytes().replace(b'"a"', b'"z"'))
    _, reasons = read(source, first.position)
    assert reasons == ["lines were changed since the export: its hash differs"]


def test_a_line_that_is_missing_is_noticed(file: Path) -> None:
    source = written(file, *map(memory_line, "ab"))
    lines = file.read_bytes().splitlines(keepends=True)
    file.write_bytes(b"".join([lines[0], *lines[2:]]))

    (reason,) = read(source)[1]

    assert reason.startswith("lines are missing or were added: the counts in the last ")


def test_another_version_is_named(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = written(file, memory_line("a"))
    monkeypatch.setattr("mnemosyned.verbs.exchange.VERSION", 2)

    reason = "the export is of version 1; this program reads 2"
    assert read(source) == ([], [reason])
