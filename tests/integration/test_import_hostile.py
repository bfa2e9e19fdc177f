"""What `mnem import` makes of broken and hostile files: bad records with their reason, and no crash."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
import zipfile
from contextlib import closing
from pathlib import Path
from random import Random

import msgspec
import pytest
from support.import_chats import CHATS, chatgpt_conversation, chatgpt_zip, claude_zip
from support.import_personal import git_repository
from support.import_reading import EVERY_SAMPLE, format_of, read
from support.import_samples import Sample, note
from support.import_stores import mem0_history

from mnemosyned.importers.formats.chat_exports import ChatGptExport
from mnemosyned.importers.importer import (
    START,
    BadRecord,
    ImportItem,
    ImportSource,
    SourceRefused,
)
from mnemosyned.importers.plan import plan_import, recognize_format
from mnemosyned.importers.reading import open_database


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
    files = (
        [path]
        if path.is_file()
        else [each for each in path.rglob("*") if each.is_file()]
    )
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


@pytest.mark.thorough
@pytest.mark.parametrize(
    "name", ["a.jsonl", "a.json", ".bash_history", "a.log", "a.mbox", "a.ics"]
)
def test_a_line_of_20_megabytes_does_not_hide_what_follows(
    name: str, tmp_path: Path
) -> None:
    """Of JSON that is one document, the line is a part like any other; of mail and logs it is left out."""
    giant = b"x" * (20 << 20)
    texts = {
        "a.jsonl": b'{"content": "%s"}\n{"content": "last"}\n' % giant,
        "a.json": b'[{"content": "%s"}, {"content": "last"}]' % giant,
        ".bash_history": b"%s\nlast\n" % giant,
        "a.log": b"commit 1111111\nAuthor: A <a>\nDate: 2026-03-16 09:00:00 +0100\n\n    %s\n"
        b"    last\n" % giant,
        "a.mbox": b"From a Mon Mar 16 09:00:00 2026\nSubject: a\n\n%s\n\n"
        b"From a Mon Mar 16 09:00:00 2026\nSubject: last\n\n" % giant,
        "a.ics": b"BEGIN:VCALENDAR\nBEGIN:VEVENT\nDESCRIPTION:%s\nEND:VEVENT\n"
        b"BEGIN:VEVENT\nSUMMARY:last\nEND:VEVENT\n" % giant,
    }
    path = tmp_path / name
    path.write_bytes(texts[name])

    items, bad = read(path)

    assert items[-1].memory.content.endswith("last")
    is_a_record = name in {"a.jsonl", ".bash_history", "a.ics"}
    assert ["long" in record.reason for record in bad] == [True] * is_a_record


def test_an_archive_that_unpacks_to_gigabytes_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "bomb.zip"
    head = json.dumps([chatgpt_conversation()]).encode()[:-1] + b","
    with (
        zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive,
        archive.open("conversations.json", "w", force_zip64=True) as member,
    ):
        member.write(head)
        for _ in range(70):
            member.write(b" " * (1 << 20))

    records = list(ChatGptExport().read(ImportSource.of_path(path), START))

    (refused,) = records
    assert isinstance(refused, BadRecord)
    assert "which no export does" in refused.reason


def test_an_archive_that_is_cut_off_gives_no_items_and_a_reason(tmp_path: Path) -> None:
    path = chatgpt_zip(tmp_path)
    path.write_bytes(path.read_bytes()[:-30])

    records = list(ChatGptExport().read(ImportSource.of_path(path), START))

    assert [type(record) for record in records] == [BadRecord]


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
    path = git_repository(tmp_path)
    program, started = tmp_path / "program", tmp_path / "started"
    program.write_text(f"#!/bin/sh\necho >> {started}\n")
    program.chmod(0o755)

    def git(*words: str, stdin: str = "") -> str:
        command = ["git", "-C", str(path), *words]
        done = subprocess.run(
            command, input=stdin, capture_output=True, check=True, text=True
        )
        return done.stdout.strip()

    commit = git("cat-file", "commit", "HEAD").replace(
        "\n\n", "\ngpgsig -----BEGIN PGP SIGNATURE-----\n x\n\n", 1
    )
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


def test_a_git_that_complains_at_length_is_reported_by_its_first_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = git_repository(tmp_path)
    git = tmp_path / "bin" / "git"
    git.parent.mkdir()
    git.write_text("#!/bin/sh\nseq 100000 >&2\nexit 3\n")
    git.chmod(0o755)
    monkeypatch.setenv("PATH", f"{git.parent}:{os.environ['PATH']}")

    items, bad = read(path)

    assert (items, [record.reason for record in bad]) == ([], ["git says: 1"])


def test_a_front_matter_of_aliases_is_refused_and_the_note_kept(tmp_path: Path) -> None:
    path = tmp_path / "bomb.md"
    path.write_text("---\na: &a [1]\nb: [*a, *a]\n---\nWords\n")

    items, bad = read(path)

    assert "aliases are not read" in bad[0].reason
    assert "Words" in items[0].memory.content


def test_a_folder_with_loops_and_devices_is_read_as_far_as_it_has_files(
    tmp_path: Path,
) -> None:
    note(tmp_path)
    (tmp_path / "Vault" / "again").symlink_to(tmp_path, target_is_directory=True)
    (tmp_path / "Vault" / "self.md").symlink_to("self.md")
    os.mkfifo(tmp_path / "Vault" / "pipe.md")
    deleted = tmp_path / "Vault" / ".trash" / "old.md"
    deleted.parent.mkdir()
    deleted.write_text("Old")

    plan = plan_import([ImportSource.of_path(tmp_path)], None)

    assert [part.source.path.name for part in plan.parts] == ["Ferry.md"]


def test_a_giant_value_in_a_database_is_refused(tmp_path: Path) -> None:
    path = mem0_history(tmp_path)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("UPDATE history SET new_memory = hex(zeroblob(40 << 20))")
        connection.commit()

    items, bad = read(path)

    assert items == []
    assert "string or blob too big" in bad[0].reason


def test_a_query_without_end_in_a_database_is_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    endless = (
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i FROM n) SELECT i FROM n"
    )
    path = tmp_path / "views.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(f"CREATE VIEW numbers AS {endless}")

    monkeypatch.setattr("mnemosyned.importers.reading.SQLITE_STEPS_MAX", 100_000)
    monkeypatch.setattr("mnemosyned.importers.reading.SQLITE_STEPS_AT_A_TIME", 1_000)
    with (
        pytest.raises(SourceRefused, match="interrupted"),
        open_database(path) as database,
    ):
        database.execute("SELECT max(i) FROM numbers").fetchall()


ODD: list[object] = [
    None,
    True,
    -1,
    1e308,
    10**30,
    "",
    [],
    {},
    [None],
    {"a": 1},
    "\ud800",
]


def odd(value: object, random: Random) -> object:
    """JSON of the same shape, in which some values are of another kind and some are missing."""
    if random.random() < 0.06:
        return random.choice(ODD)
    if isinstance(value, dict):
        return {k: odd(v, random) for k, v in value.items() if random.random() > 0.02}
    return [odd(each, random) for each in value] if isinstance(value, list) else value


@pytest.mark.parametrize(
    "sample",
    [
        each
        for each in CHATS
        if each.format != "opencode-files"
        and each.write not in {chatgpt_zip, claude_zip}
    ],
    ids=lambda sample: sample.write.__name__,
)
def test_values_of_another_kind_are_reported_and_never_a_crash(
    sample: Sample, tmp_path: Path
) -> None:
    path = sample.write(tmp_path)
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
