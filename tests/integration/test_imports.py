"""`mnem import`: what is read of each format and of broken files, and how an import goes on."""

import json
import os
import sqlite3
import subprocess
import sys
import zipfile
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from shutil import copyfile
from typing import cast

import msgspec
import pytest
from support.cases import each_case
from support.import_samples import (
    FOLDER,
    SAMPLES,
    Expected,
    Sample,
    format_of,
    read,
    write_sample,
)

from mnemosyned.cli.calls import call_daemon
from mnemosyned.cli.output.terminal import ProgressLine
from mnemosyned.client.streams import Transfers
from mnemosyned.errors import DaemonUnreachable, InvalidRequest, StorageFailed
from mnemosyned.importers.formats.chat_exports import ChatGptExport
from mnemosyned.importers.importer import (
    START,
    BadRecord,
    ImportItem,
    ImportSource,
    SourceRefused,
)
from mnemosyned.importers.reading import open_database
from mnemosyned.importers.run import (
    BATCH_ITEMS,
    FORMATS,
    ImportJournal,
    ImportRun,
    plan_import,
    recognize_format,
)
from mnemosyned.memory.values import Acknowledged
from mnemosyned.paths import state_dir
from mnemosyned.verbs.facade import Caller
from mnemosyned.verbs.memories import RememberedMany, RememberMany
from mnemosyned.verbs.request import Request, instant
from mnemosyned.verbs.upkeep import Undo

EVERY_SAMPLE = pytest.mark.parametrize(
    "sample", SAMPLES.values(), ids=lambda sample: sample.name
)


def seen(item: ImportItem, expected: Expected) -> Expected:
    """The memory, with those fields left out that the expected one leaves open."""
    memory = item.memory
    if expected.created_at:
        moment = datetime.fromisoformat(expected.created_at)
        assert instant(memory.created_at) == moment
    return Expected(
        memory.content,
        expected.session and memory.session,
        memory.source or "",
        memory.role,
        expected.created_at,
    )


@EVERY_SAMPLE
def test_a_format_is_recognized_and_read_alike_from_every_position(
    sample: Sample, tmp_path: Path
) -> None:
    path = sample.write(tmp_path)

    items, bad = read(path)

    assert format_of(path).name == sample.format
    assert [
        seen(item, expected)
        for item, expected in zip(items, sample.expected, strict=True)
    ] == sample.expected
    assert len(bad) == sample.bad
    ids = [item.memory.id for item in items]
    assert all(ids)
    assert ids == [item.memory.id for item in read(path)[0]]
    places = {item.memory.id: item.place for item in items}
    for number, item in enumerate(items, 1):
        left, _ = read(path, item.position)
        left_ids = [item.memory.id for item in left]
        # All that is left is read, and at the most what shares a position with it again.
        assert left_ids[-len(ids[number:]) or len(left_ids) :] == ids[number:]
        assert all(each.place == places[each.memory.id] for each in left)


def test_every_format_is_loaded_by_the_name_it_has() -> None:
    loaded = {entry.name: entry.load().name for entry in FORMATS}

    assert loaded == {name: name for name in loaded}
    assert set(loaded) >= {sample.format for sample in SAMPLES.values()}


def test_a_calendar_without_its_library_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "icalendar", None)

    _, bad = read(write_sample("calendar", tmp_path))

    assert bad[0].reason == (
        f"it needs icalendar; install it with: {sys.executable} -m pip install "
        "'icalendar<8,>=6.1' 'vobject<0.10,>=0.9.9'"
    )


def test_a_long_note_is_split_at_its_headings(tmp_path: Path) -> None:
    path = tmp_path / "Garden.md"
    body = "\n\n".join(
        f"## Bed {bed}\n\n" + "Tomatoes need water. " * 100 for bed in range(1, 5)
    )
    path.write_text(f"# Garden\n\nIntro\n\n```\n# no heading\n```\n\n{body}")

    items, _ = read(path)

    contents = [item.memory.content for item in items]
    assert len(contents) == 4
    assert contents[1].startswith("Garden\n\n## Bed 2\n")
    assert all(len(content) < 4_200 for content in contents)
    assert all(item.memory.metadata["title"] == "Garden" for item in items)
    assert len({item.memory.id for item in items}) == 4


@each_case(("note", "content"), [
    ("---\ntitle: Vidal\naliases: [Joan]\ntags:\n  - source\nphone: 0612 34\nempty: []\n---\nCall at 17:30",
     "Vidal\n\nCall at 17:30\n\naliases: [Joan]\nphone: 0612 34"),
    ("---\nauthor: Ana\nroles:\n- editor\n\n- reader\npublish: true\n---\n",
     "note\n\nauthor: Ana\nroles:\n- editor\n\n- reader"),
    # The fields that an export writes for each day.
    ('---\ndate: 2026-03-09\nmemories: 7\nsessions: ["a"]\n---\nAt noon', "note\n\nAt noon"),
])  # fmt: skip
def test_fields_that_no_memory_has_stay_in_the_text_of_a_note(
    tmp_path: Path, note: str, content: str
) -> None:
    (tmp_path / "note.md").write_text(note)

    (item,), _ = read(tmp_path / "note.md")

    assert item.memory.content == content


@pytest.mark.parametrize(
    ("name", "text", "content"),
    [
        ("2026-03-09 Team lunch.md", "# Team lunch\n\nAt noon", None),
        ("2026-03-09-team_lunch.md", "# Team lunch\n\nAt noon", None),
        ("2026-03-09 Team.md", "# Lunch\n\nAt noon", "2026-03-09 Team\n\n# Lunch\n\nAt noon"),
        ("2026-03-09.md", "At noon", "2026-03-09\n\nAt noon"),
    ],
)  # fmt: skip
def test_a_note_has_its_title_once(
    tmp_path: Path, name: str, text: str, content: str | None
) -> None:
    (tmp_path / name).write_text(text)

    (item,), _ = read(tmp_path / name)

    assert item.memory.content == (content or text)


@pytest.mark.parametrize(
    "sample",
    [each for each in SAMPLES.values() if each.format not in {"git", "opencode-files"}],
    ids=lambda sample: sample.name,
)
def test_a_pipe_is_read_as_the_file_is_or_is_to_be_saved_to_one(
    sample: Sample, tmp_path: Path
) -> None:
    path = sample.write(tmp_path)
    copy = tmp_path / "copies" / path.name
    copy.parent.mkdir()
    copyfile(path, copy)
    piped = ImportSource(copy, path, pipe=path)
    needs_file = {"transcript", "specstory", "notes", "claude-memory", "shell"}
    if sample.format in needs_file:
        with pytest.raises(InvalidRequest, match="save it to one first"):
            plan_import([piped], sample.format)
        return

    (part,) = plan_import([piped], sample.format).parts
    records = list(part.format.read(piped, START))

    items, bad = read(path)
    assert [record for record in records if isinstance(record, ImportItem)] == items
    assert [record for record in records if isinstance(record, BadRecord)] == bad


@pytest.mark.parametrize(
    ("name", "text", "texts", "reason"),
    [
        (
            "cut.md",
            "<!-- Generated by SpecStory, Markdown v2.1.0 -->\n\n# 2026\n",
            [],
            "it does not say which conversation it is",
        ),
        (
            "bomb.md",
            "---\na: &a [1]\nb: [*a, *a]\n---\nWords\n",
            ["bomb\n\n---\na: &a [1]\nb: [*a, *a]\n---\nWords"],
            "aliases are not read",
        ),
    ],
)
def test_what_cannot_be_read_of_a_text_is_named_and_the_rest_is_read(
    tmp_path: Path, name: str, text: str, texts: list[str], reason: str
) -> None:
    (tmp_path / name).write_text(text)

    items, (bad,) = read(tmp_path / name)

    assert [item.memory.content for item in items] == texts
    assert reason in bad.reason


def test_a_pipe_next_to_a_file_is_read_whole(tmp_path: Path) -> None:
    lines = [json.dumps({"content": f"number {n}"}) for n in range(20_000)]
    file = tmp_path / "a.jsonl"
    file.write_text('{"content": "a", "created_at": "2026-03-16T09:00:00Z"}')
    copy = tmp_path / "-"
    copy.write_text("\n".join(lines))

    typed = Path("-")
    piped = ImportSource(copy, typed, pipe=typed)
    plan = plan_import([piped, ImportSource.of_path(file)], None)
    counts = [len(list(part.format.read(part.source, START))) for part in plan.parts]

    assert counts == [1, 20_000]


def test_a_note_is_the_same_by_a_link_to_its_folder(tmp_path: Path) -> None:
    (tmp_path / "garden").mkdir()
    (tmp_path / "garden" / "Beds.md").write_text("Water them")
    (tmp_path / "link").symlink_to("garden")

    (direct,), _ = read(tmp_path / "garden" / "Beds.md")
    (linked,), _ = read(tmp_path / "link" / "Beds.md")

    assert linked.memory.id == direct.memory.id
    assert linked.memory.session == "notes:garden"


# What `mnem import` makes of broken and hostile files: bad records with their reason, and no crash.


def damages(data: bytes) -> dict[str, bytes]:
    """A file's bytes, broken in many ways."""
    return {
        "empty": b"",
        "cut off": data[: len(data) * 2 // 3],
        "cut at once": data[:20],
        "garbage in it": data[: len(data) // 2] + b"\xff\xfe\x00\x81" * 50 + data[len(data) // 2 :],
        "all zeros": bytes(len(data)),
        "doubled": data + data,
        "with a mark": b"\xef\xbb\xbf" + data,
        "utf-16": data.decode("latin-1").encode("utf-16"),
        "latin-1": data.decode("utf-8", "replace").encode("latin-1", "replace"),
        "old line ends": data.replace(b"\n", b"\r\n"),
        "brackets": b"[" * 100_000 + data,
    }  # fmt: skip


@EVERY_SAMPLE
def test_broken_files_are_reported_and_never_a_crash(
    sample: Sample, tmp_path: Path
) -> None:
    path = sample.write(tmp_path)
    files = [each for each in (path, *path.rglob("*")) if each.is_file()]
    if sample.format == "git":  # git reads what is in its objects
        files = [path / ".git" / "HEAD", path / ".git" / "config"]
    format = format_of(path)
    ends: set[str] = set()
    for file in files:
        data = file.read_bytes()
        for name, damaged in damages(data).items():
            file.chmod(0o644)
            file.write_bytes(damaged)
            for record in format.read(ImportSource.of_path(path), START):
                assert isinstance(record, ImportItem | BadRecord)
                assert record.place
                ends.add(name)
            recognize_format(ImportSource.of_path(path))
        file.write_bytes(data)
    assert ends, "nothing was read of any of them"


GIANTS = {
    "a.jsonl": b'{"content": "%s"}\n{"content": "last"}\n',
    "a.json": b'[{"content": "%s"}, {"content": "last"}]',
    ".bash_history": b"%s\nlast\n",
    "a.log": b"commit 1111111\nAuthor: A <a>\nDate: 2026-03-16 09:00:00 +0100\n\n    %s\n"
    b"    last\n",
    "a.mbox": b"From a Mon Mar 16 09:00:00 2026\nSubject: a\n\n%s\n\n"
    b"From a Mon Mar 16 09:00:00 2026\nSubject: last\n\n",
    "a.ics": b"BEGIN:VCALENDAR\nBEGIN:VEVENT\nDESCRIPTION:%s\nEND:VEVENT\n"
    b"BEGIN:VEVENT\nSUMMARY:last\nEND:VEVENT\n",
}


@pytest.mark.thorough
@pytest.mark.parametrize("name", GIANTS)
def test_a_line_of_20_megabytes_does_not_hide_what_follows(
    name: str, tmp_path: Path
) -> None:
    """Of JSON that is one document, the line is a part like any other; of mail and logs it is left out."""
    path = tmp_path / name
    path.write_bytes(GIANTS[name] % (b"x" * (20 << 20)))

    items, bad = read(path)

    assert items[-1].memory.content.endswith("last")
    is_a_record = name in {"a.jsonl", ".bash_history", "a.ics"}
    assert ["long" in record.reason for record in bad] == [True] * is_a_record


@pytest.mark.thorough
def test_an_archive_that_unpacks_to_gigabytes_or_is_cut_off_is_refused(
    tmp_path: Path,
) -> None:
    bomb, cut = tmp_path / "bomb.zip", write_sample("chatgpt_zip", tmp_path)
    cut.write_bytes(cut.read_bytes()[:-30])
    head = (FOLDER / "chatgpt" / "conversations.json").read_bytes()[:-1] + b","
    with (
        zipfile.ZipFile(bomb, "w", zipfile.ZIP_DEFLATED) as archive,
        archive.open("conversations.json", "w", force_zip64=True) as member,
    ):
        member.write(head)
        for _ in range(70):
            member.write(b" " * (1 << 20))

    for path, reason in ((bomb, "which no export does"), (cut, "")):
        (refused,) = ChatGptExport("chatgpt").read(ImportSource.of_path(path), START)
        assert isinstance(refused, BadRecord)
        assert reason in refused.reason


def test_a_bad_zone_and_a_bad_entry_of_a_calendar_are_named_and_the_others_read(
    tmp_path: Path,
) -> None:
    """A zone named like a folder of zones makes the library open that folder."""
    event = "BEGIN:VEVENT\nSUMMARY:{}\nDTSTART;TZID={}:20260316T100000\nEND:VEVENT\n"
    path = tmp_path / "a.ics"
    path.write_text(
        "BEGIN:VCALENDAR\nBEGIN:VTIMEZONE\nTZID:Here\nBEGIN:STANDARD\nDTSTART:never\n"
        "END:STANDARD\nEND:VTIMEZONE\n"
        + event.format("one", "Europe")
        + event.format("two", "Here")
    )

    items, bad = read(path)

    texts = [item.memory.content.split("\n")[0] for item in items]
    places = [record.place for record in bad]
    assert "'never'" in bad[0].reason
    if sys.version_info >= (3, 14):  # to which that folder is an unknown zone
        assert (texts, places) == (["one", "two"], [f"{path}, entry 1"])
    else:
        assert (texts, places) == (["two"], [f"{path}, entry 1", f"{path}, entry 2"])
        assert "Is a directory" in bad[1].reason


def test_a_repository_that_names_programs_starts_none_of_them(tmp_path: Path) -> None:
    path = write_sample("git_repository", tmp_path)
    program, started = tmp_path / "program", tmp_path / "started"
    program.write_text(f"#!/bin/sh\necho >> {started}\n")
    program.chmod(0o755)

    def git(*words: str, stdin: str = "") -> str:
        command = ["git", "-C", str(path), *words]
        return subprocess.check_output(command, input=stdin, text=True).strip()

    signature = "\ngpgsig -----BEGIN PGP SIGNATURE-----\n x\n\n"
    commit = git("cat-file", "commit", "HEAD").replace("\n\n", signature, 1)
    signed = git("hash-object", "-t", "commit", "-w", "--stdin", stdin=commit)
    git("update-ref", "HEAD", signed)
    for key in ("gpg.program", "core.pager", "core.fsmonitor", "diff.external"):
        git("config", key, str(program))
    git("config", "log.showSignature", "true")

    items, bad = read(path)

    assert len(items) == 2
    assert bad == []
    assert not started.exists()
    git("log")
    assert started.exists(), "git would have started one"


def test_commits_are_in_the_session_of_their_repository_however_it_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_sample("git_repository", tmp_path)
    monkeypatch.chdir(path)

    items, _ = read(Path())

    assert {item.memory.session for item in items} == {f"git:{path.resolve()}"}


def test_an_answer_of_chatgpt_without_a_time_stays_behind_its_question(
    tmp_path: Path,
) -> None:
    path = write_sample("chatgpt", tmp_path)
    (conversation,) = json.loads(path.read_text())
    conversation["mapping"]["q"]["message"]["create_time"] += 30
    conversation["mapping"]["a"]["message"]["create_time"] = None
    path.write_text(json.dumps([conversation]))

    items, _ = read(path)

    question, answer = (item.memory.created_at for item in items)
    assert question == answer


def test_a_git_that_complains_at_length_is_reported_by_its_first_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_sample("git_repository", tmp_path)
    git = tmp_path / "bin" / "git"
    git.parent.mkdir()
    git.write_text("#!/bin/sh\nseq 100000 >&2\nexit 3\n")
    git.chmod(0o755)
    monkeypatch.setenv("PATH", f"{git.parent}:{os.environ['PATH']}")

    items, bad = read(path)

    assert (items, [record.reason for record in bad]) == ([], ["git says: 1"])


def test_a_folder_with_loops_devices_and_git_is_read_as_far_as_it_has_notes(
    tmp_path: Path,
) -> None:
    write_sample("note", tmp_path)
    vault = tmp_path / "Vault"
    (vault / "again").symlink_to(tmp_path, target_is_directory=True)
    (vault / "self.md").symlink_to("self.md")
    os.mkfifo(vault / "pipe.md")
    for name in (".git", ".trash"):
        (vault / name).mkdir()
    (vault / ".trash" / "old.md").write_text("Old")

    for folder in (tmp_path, vault):
        (part,) = plan_import([ImportSource.of_path(folder)], None).parts
        assert (part.source.path.name, part.format.name) == ("Ferry.md", "notes")


def test_a_giant_value_in_a_database_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mnemosyned.importers.reading.SQLITE_VALUE_BYTES_MAX", 1 << 20)
    path = write_sample("mem0_history", tmp_path)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("DELETE FROM history WHERE id > 1")
        connection.execute("UPDATE history SET new_memory = hex(zeroblob(1 << 20))")
        connection.commit()

    items, bad = read(path)

    assert items == []
    assert "string or blob too big" in bad[0].reason


def test_a_query_without_end_in_a_database_is_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "views.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(
            "CREATE VIEW numbers AS WITH RECURSIVE n(i) AS "
            "(SELECT 1 UNION ALL SELECT i FROM n) SELECT i FROM n"
        )

    monkeypatch.setattr("mnemosyned.importers.reading.SQLITE_STEPS_MAX", 100_000)
    monkeypatch.setattr("mnemosyned.importers.reading.SQLITE_STEPS_AT_A_TIME", 1_000)
    with (
        pytest.raises(SourceRefused, match="interrupted"),
        open_database(path) as database,
    ):
        database.execute("SELECT max(i) FROM numbers").fetchall()


ODD: list[object] = [None, True, -1, 1e308, 10**30, "", [], {}, [None], {"a": 1}, "\ud800"]  # fmt: skip


def odd(value: object, random: Random) -> object:
    """JSON of the same shape, in which some values are of another kind and some are missing."""
    if random.random() < 0.06:
        return random.choice(ODD)
    if isinstance(value, dict):
        return {k: odd(v, random) for k, v in value.items() if random.random() > 0.02}
    return [odd(each, random) for each in value] if isinstance(value, list) else value


@pytest.mark.parametrize(
    "name", ["chatgpt", "claude_export", "claude_code", "codex", "gemini"]
)
def test_values_of_another_kind_are_reported_and_never_a_crash(
    name: str, tmp_path: Path
) -> None:
    path = write_sample(name, tmp_path)
    format, random = format_of(path), Random(7)
    lines = path.read_text("utf-8", "replace").splitlines()
    values = [json.loads(line) for line in lines if line.endswith(("}", "]"))]
    for _ in range(40):
        path.write_text("\n".join(json.dumps(odd(each, random)) for each in values))
        recognize_format(ImportSource.of_path(path))
        records = list(format.read(ImportSource.of_path(path), START))
        items = [record for record in records if isinstance(record, ImportItem)]
        assert all(isinstance(record, ImportItem | BadRecord) for record in records)
        assert all(msgspec.json.encode(item.memory) for item in items)


def test_a_note_of_spaces_and_marks_takes_no_longer_than_others(tmp_path: Path) -> None:
    path = tmp_path / "hostile.md"
    path.write_text("# " + " #" * 200_000 + "x\n" + "# " + " " * 400_000 + "x\n")

    items, bad = read(path)

    assert items
    assert bad == []


# An import that goes on: what its journal says of a file, and of one that changed since.


OTHERS = [f'{{"content": "line {number}", "session": "import"}}' for number in range(4)]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "memories.jsonl"


class StoppingDaemon:
    """A daemon that keeps memories by id, and fails after so many batches."""

    def __init__(self) -> None:
        self.batches_left = 0
        self.memories: dict[str | None, str] = {}
        self.received = 0

    def call(self, request: Request[RememberedMany]) -> RememberedMany:
        assert isinstance(request, RememberMany)
        if self.batches_left == 0:
            raise StorageFailed("nothing of this request was kept: the disk is full")
        self.batches_left -= 1
        self.received += len(request.memories)
        now = datetime.now(UTC)
        answers = [
            Acknowledged(
                id=str(memory.id), created_at=now, stored=memory.id not in self.memories
            )
            for memory in request.memories
        ]
        self.memories |= {each.id: each.content for each in request.memories}
        return RememberedMany(answers)


def run_of(daemon: StoppingDaemon, path: Path, journal: Path) -> ImportRun:
    plan = plan_import([ImportSource.of_path(path)], None)
    journals = {str(path): ImportJournal(journal)}
    return ImportRun(cast("Caller", daemon), cast("Transfers", None), plan, journals)


class SilentDaemon:
    """A daemon whose answer is lost."""

    def call(self, request: Request[object]) -> object:
        raise DaemonUnreachable(f"{request.verb_name()}: the daemon hung up")


def test_what_an_undo_takes_back_is_read_again_even_if_its_answer_is_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    journal = state_dir() / "imports" / "a.jsonl"
    journal.parent.mkdir(parents=True)
    journal.touch()

    with pytest.raises(DaemonUnreachable):
        call_daemon(cast("Caller", SilentDaemon()), Undo())

    assert not journal.exists()


def lines(count: int) -> str:
    return "".join(f'{{"content": "line {number // 2}"}}\n' for number in range(count))


def stopped_import(path: Path, journal: Path, batches: int) -> StoppingDaemon:
    """Import a path until so many batches are stored; the daemon, which then takes all others."""
    daemon = StoppingDaemon()
    daemon.batches_left = batches
    with pytest.raises(StorageFailed):
        run_of(daemon, path, journal).run()
    daemon.batches_left = 10
    return daemon


@pytest.mark.parametrize("is_cut", [False, True])
def test_an_import_goes_on_where_it_stopped_or_at_the_last_position_that_was_kept(
    tmp_path: Path, file: Path, *, is_cut: bool
) -> None:
    journal = tmp_path / "journal"
    file.write_text(lines(3 * BATCH_ITEMS))
    daemon = stopped_import(file, journal, 2)
    if is_cut:
        first, second = journal.read_bytes().splitlines(keepends=True)
        journal.write_bytes(first + second[: len(second) // 2])

    report = run_of(daemon, file, journal).run()

    assert (report.stored, report.known) == (BATCH_ITEMS, is_cut * BATCH_ITEMS)
    assert report.continued
    assert len(daemon.memories) == 3 * BATCH_ITEMS
    assert daemon.received == (3 + is_cut) * BATCH_ITEMS
    assert not journal.exists()


def test_a_file_that_grew_after_it_was_done_is_read_on(tmp_path: Path) -> None:
    journal, folder = tmp_path / "journal", tmp_path / "folder"
    folder.mkdir()
    (folder / "a.jsonl").write_text(lines(BATCH_ITEMS))
    (folder / "b.jsonl").write_text("\n".join(OTHERS))
    daemon = stopped_import(folder, journal, 1)
    with (folder / "a.jsonl").open("a") as opened:
        opened.write('{"content": "added"}\n')

    report = run_of(daemon, folder, journal).run()

    assert report.stored == len(OTHERS) + 1
    assert "added" in daemon.memories.values()


@pytest.mark.parametrize(
    ("text", "stored", "known"),
    [
        pytest.param(lines(BATCH_ITEMS) + OTHERS[0], 1, BATCH_ITEMS, id="cut"),
        pytest.param("\n".join(OTHERS), 4, 0, id="another of the same name"),
    ],
)
def test_a_file_that_was_replaced_is_read_from_the_beginning(
    tmp_path: Path, file: Path, text: str, stored: int, known: int
) -> None:
    file.write_text(lines(3 * BATCH_ITEMS))
    daemon = stopped_import(file, tmp_path / "journal", 2)
    if not known:
        file.unlink()
    file.write_text(text)

    report = run_of(daemon, file, tmp_path / "journal").run()

    assert (report.stored, report.known) == (stored, known)
    assert not report.continued


def test_files_whose_names_are_not_utf_8_are_imported_and_known_again(
    tmp_path: Path,
) -> None:
    daemon, journal = StoppingDaemon(), tmp_path / "journal"
    daemon.batches_left = 100
    folder = tmp_path / "notes"
    (folder / os.fsdecode(b"d\xe9r")).mkdir(parents=True)
    names = (b"a.md", b"caf\xe9.md", b"caf\xe8.md", b"d\xe9r/tea.md", b"t\xe9.jsonl")
    for name in names:
        text = '{"content": "a line"}' if name.endswith(b"jsonl") else "Water it."
        (folder / os.fsdecode(name)).write_text(text)
    (folder / os.fsdecode(b"bad\xe9.md")).write_bytes(b"\0\0\0")

    first = run_of(daemon, folder, journal)
    report = first.run()
    for part in first.plan.parts:
        ImportJournal(journal).write(part.source, "end", 9, done=True)

    assert (report.stored, report.known) == (5, 0)
    assert report.problems == [rf"{folder}/bad\xe9.md: it is not text"]
    known = ImportJournal(journal)
    entries = [known.entry(part.source) for part in first.plan.parts]
    assert all(entry and entry.done for entry in entries)
    assert run_of(daemon, folder, tmp_path / "other").run().known == 5


# The line that shows how far an import is.


@pytest.mark.parametrize(
    ("size", "earlier", "advance", "after_s", "shown"),
    [
        (1_000, 0, (250, 5_000), 2.0, "25 % · 5,000 memories · 2,500/s · 0 min 6 s left"),
        (1_000, 500, (100, 10), 10.0, "60 % · 10 memories · 1/s · 0 min 40 s left"),
        (0, 0, (250, 1), 0.5, "1 memory"),
        (0, 0, (250, 1), 2.0, "1 memory · 0/s"),
    ],
    ids=["share, rate and time left", "what an earlier run did is no speed", "no size", "no share"],
)  # fmt: skip
def test_progress_is_shown_in_a_line(
    size: int, earlier: int, advance: tuple[int, int], after_s: float, shown: str
) -> None:
    line = ProgressLine("importing", "memory", size)
    line.advance(earlier, 0)

    line.advance(*advance)

    assert line.text(after_s) == f"importing · {shown}"
