"""Health, checks, settings and exports: what they show, and what a page may change."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterator
from contextlib import closing
from itertools import count
from pathlib import Path
from typing import Any

import msgspec
import pytest
from support.cases import each_case
from web.visitor import (
    PORT,
    Changed,
    EmbeddedDaemon,
    Page,
    PageReader,
    Visitor,
    database_of,
    make_home,
    settings_file,
)

from mnemosyned import Memory
from mnemosyned.cli.maintenance import (
    config as config_command,
    doctor,
    service as service_command,
)
from mnemosyned.cli.maintenance.checks import Finding, problem, warning
from mnemosyned.client.connection import Connection
from mnemosyned.config.loading import load_config
from mnemosyned.config.settings import KEYS, PATHS
from mnemosyned.errors import MnemosynedError
from mnemosyned.verbs.exchange import CutOff, Export, Footer
from mnemosyned.verbs.upkeep import BackupStatus, Stats
from mnemosyned.web.access import WebAccess
from mnemosyned.web.upkeep_pages import CHANGEABLE, read_comments

SETTINGS = """\
# mine
wm_max: 500   # small
sleep:
  cron: "30 3 * * *"
llm:
  endpoint: "http://127.0.0.1:8080/v1"
"""
SECRET = "sk-proj-abcdefghijklmnopqrstuvwxyz123456"  # noqa: S105 made up


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    make_home(tmp_path, monkeypatch)
    settings_file(tmp_path).write_text(SETTINGS)
    settings_file(tmp_path).chmod(0o600)
    return tmp_path


@pytest.fixture
def memory(home: Path) -> Iterator[Memory]:
    with Memory(database_of(home)) as opened:
        yield opened


@pytest.fixture
def visitor(memory: Memory) -> Visitor:
    return Visitor.let_in(EmbeddedDaemon(memory))


def download(page: Page) -> bytes:
    assert page.response.stream
    return b"".join(page.response.stream)


# ------------------------------------------------------------------- health


def test_health_says_how_the_daemon_is(visitor: Visitor, memory: Memory) -> None:
    memory.remember("We deploy on Tuesdays.")
    status = memory.status()

    page = visitor.get("/state")

    for text in (
        "The daemon reports no problem.",
        f"mnemosyned {status.version}",
        f"process {os.getpid()}",
        status.database,
        f"schema {status.schema_version}",
        "1 working",
        "none yet",
        status.summarizer.reason,
    ):
        assert text in page.text, text
    assert "/checks" in page.links
    assert 'data-load="/checks"' in page.source


def test_pages_on_a_memory_on_a_server_name_no_backup_of_a_file(memory: Memory) -> None:
    remote = Changed(memory, Stats, lambda _: {"database": "postgresql"})
    url, token = "https://memory.example", "mnt_2_" + "t" * 43
    daemon = EmbeddedDaemon(remote, url=url)
    daemon.memory_name = Connection(url=url, token=token, owner="team").memory_name
    visitor = Visitor.let_in(daemon)

    assert "memory: team, at https://memory.example" in visitor.get("/search").text
    assert "those of the server" in visitor.get("/state").text
    for path in ("/state", "/export"):
        assert "mnem backup" not in visitor.get(path).text


def test_health_names_what_is_wrong_with_what_to_do(memory: Memory) -> None:
    wrong = {
        "problems": ["the disk is full"],
        "warnings": ["others can read it"],
        "clock": "the clock jumped",
        "restart_needed": ["listen"],
        "backup": BackupStatus(problem="the folder is closed", scheduled=True),
    }
    ill = EmbeddedDaemon(Changed(memory, Stats, lambda _: wrong))

    page = Visitor.let_in(ill).get("/state")

    for text in (
        "the disk is full",
        "others can read it",
        "the clock jumped",
        "the folder is closed",
        "In force after a restart: listen. mnem restart",
    ):
        assert text in page.text, text
    assert "nothing wrong" not in page.text


def test_checks_show_what_the_doctor_finds_the_worst_first(
    visitor: Visitor, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []

    def examine(_: object, *, slow: bool) -> list[Finding]:
        asked.append(slow)
        mended = warning(
            "unit", "it is <b>not</b> enabled", "systemctl --user enable m"
        )
        return [mended, problem("disk", "it is full", "df -h")]

    monkeypatch.setattr(doctor, "examine", examine)

    page = visitor.get("/checks")

    assert page.text.index("it is full") < page.text.index("it is <b>not</b> enabled")
    commands = [
        tag
        for tag, each in PageReader(page.source).elements
        if each.get("class") == "command"
    ]
    assert commands == ["code"] * 3
    assert "systemctl --user enable m" in page.text
    assert asked == [False]  # a page reads no whole database


def test_the_checks_of_a_whole_machine_run(visitor: Visitor) -> None:
    page = visitor.get("/checks")

    assert page.status == 200
    assert "config/mnemosyned/mnemosyned.yaml: valid" in page.text
    assert "is whole" not in page.text


def test_another_machines_pages_say_what_to_run(home: Path, memory: Memory) -> None:
    daemon = EmbeddedDaemon(memory, url="https://memory.example token")
    visitor = Visitor.let_in(daemon)

    assert "run mnem doctor there" in visitor.get("/state").text
    assert "data-load" not in visitor.get("/state").source
    assert "Run mnem doctor there" in visitor.get("/checks").text
    settings = visitor.get("/settings")
    assert "mnem config" in settings.text
    assert "wm_max" not in settings.text
    refused = visitor.post("/setting", key="wm_max", value="100")
    assert (refused.status, settings_file(home).read_text()) == (400, SETTINGS)


def test_another_daemons_settings_are_not_shown(home: Path, memory: Memory) -> None:
    other = EmbeddedDaemon(Changed(memory, Stats, lambda _: {"pid": 1}))
    visitor = Visitor.let_in(other)

    assert "Run mnem doctor there" in visitor.get("/checks").text
    assert visitor.post("/setting", key="wm_max", value="100").status == 400
    assert settings_file(home).read_text() == SETTINGS


# ----------------------------------------------------------------- settings


def test_settings_show_origin_and_comment(visitor: Visitor, home: Path) -> None:
    page = visitor.get("/settings")

    for text in (
        f"wm_max from {settings_file(home).name}:2, default 10000",
        "500 capacity of working memory",
        f"sleep.cron from {settings_file(home).name}:4, default null",
        "embedding.encoder from environment, MNEMOSYNE_EMBEDDING_ENCODER",
        "listen restart null also TCP on this machine",
    ):
        assert text in page.text, text
    for key in KEYS:
        assert f"<code>{key}</code>" in page.source, key


def test_each_setting_has_a_comment() -> None:
    comments = read_comments()

    assert [key for key in KEYS if not comments.get(key)] == []
    assert comments["sleep.on_age"].startswith("In addition to the schedule, each")
    assert comments["context.tokenizer"].endswith("and each count waits for it")


def test_a_page_changes_no_setting_that_names_or_opens_or_deletes_something() -> None:
    names = {"path", "paths", "file", "dir", "key", "certificate", "endpoint"}
    sections = {"tls", "owners", "archive", "watch", "limits"}

    assert set(KEYS) >= CHANGEABLE
    assert not CHANGEABLE & PATHS
    for key in CHANGEABLE:
        section, _, name = key.rpartition(".")
        assert not names & set(name.split("_")), key
        assert section not in sections, key
    assert not CHANGEABLE & {"listen", "socket", "llm.local_only", "backup.keep"}


def test_a_setting_is_changed_in_its_file(visitor: Visitor, home: Path) -> None:
    file = settings_file(home)
    form = visitor.get("/setting", key="wm_max")
    assert form.field("value") == "500"
    assert "By default 10000." in form.text

    done = visitor.post("/setting", key="wm_max", value="250")

    assert (done.status, done.headers["Location"]) == (303, "/settings?changed=wm_max")
    assert file.read_text() == SETTINGS.replace("500", "250")
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    shown = visitor.follow(done.headers["Location"])
    assert "wm_max is 250. The daemon reads its settings again." in shown.text

    visitor.post("/setting", key="sleep.cron", value="ignored", default="true")
    assert load_config(file, environ={}).sleep.cron is None
    visitor.post("/setting", key="sleep.on_age", value="false")
    assert load_config(file, environ={}).sleep.on_age is False
    tick = visitor.post("/setting", key="hooks.tell", value="false")
    assert tick.status == 303
    assert "# mine" in file.read_text()


def test_a_changed_setting_reaches_the_daemon(
    visitor: Visitor, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = list[int]()
    monkeypatch.setattr(
        config_command, "request_reload", lambda each: told.append(each.pid)
    )

    visitor.post("/setting", key="wm_max", value="many")
    visitor.post("/setting", key="wm_max", value="100")

    assert told == [os.getpid()]


@each_case(
    ("key", "value", "reason"),
    [
        ("wm_max", "many", "not 'many'"),
        ("wm_max", "0", "wm_max"),
        ("sleep.cron", "often", "five fields"),
        ("log.level", "loud", "debug"),
        ("context.memory_fraction", "2", "context.memory_fraction"),
        ("context.system_reserve", "9000000", "context"),
        ("secrets", "<script>", "secrets"),
        ("listen", "0.0.0.0:80", "a page does not change this"),
        ("llm.endpoint", "https://evil.example", "a page does not change this"),
        ("database", "/srv/other.db", "a page does not change this"),
        ("watch.paths", "/etc", "a page does not change this"),
        ("embedding.encoder", "builtin", "a page does not change this"),
        ("no.such", "1", "a page does not change this"),
    ],
)
def test_a_value_that_does_not_fit_and_a_setting_of_others_are_refused(
    visitor: Visitor, home: Path, key: str, value: str, reason: str
) -> None:
    page = visitor.post("/setting", key=key, value=value)

    assert page.status == 400
    assert reason in page.text
    assert settings_file(home).read_text() == SETTINGS


def test_a_file_whose_folder_only_the_daemon_knows_is_not_written(
    visitor: Visitor, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(home)
    (home / "here.yaml").write_text(SETTINGS)
    environment = {**os.environ, "MNEMOSYNE_CONFIG": "here.yaml"}
    monkeypatch.setattr(service_command, "daemon_environment", lambda _: environment)

    page = visitor.post("/setting", key="wm_max", value="100")

    assert page.status == 400
    assert (home / "here.yaml").read_text() == SETTINGS


def test_a_file_that_only_the_shell_of_the_pages_names_is_not_that_of_the_daemon(
    visitor: Visitor, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = home / "other.yaml"
    other.write_text("wm_max: 700\n")
    monkeypatch.setenv("MNEMOSYNE_CONFIG", str(other))
    monkeypatch.setattr(service_command, "daemon_environment", lambda _: {})

    shown = visitor.get("/settings").text
    visitor.post("/setting", key="wm_max", value="600")

    assert str(settings_file(home)) in shown
    assert "wm_max: 600   # small" in settings_file(home).read_text()
    settings_file(home).unlink()
    visitor.post("/setting", key="wm_max", value="800")
    assert "wm_max: 800" in settings_file(home).read_text()
    assert other.read_text() == "wm_max: 700\n"


def test_a_file_that_cannot_be_written_is_named(
    visitor: Visitor, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(config_command, "write_settings", refuse)

    page = visitor.post("/setting", key="wm_max", value="100")

    assert page.status == 400
    assert f"{settings_file(home)} cannot be written: Permission denied" in page.text


@each_case(
    ("endpoint", "shown"),
    [
        ("http://ann:hunter2@127.0.0.1:8080/v1", "http://***@127.0.0.1:8080/v1"),
        ("http://hunter2@127.0.0.1:8080/v1", "http://***@127.0.0.1:8080/v1"),
        ("http://a:hunter2/x@127.0.0.1:8080/v1", "http://***@127.0.0.1:8080/v1"),
        ("hunter2@127.0.0.1/v1", "***@127.0.0.1/v1"),
        ("http://127.0.0.1/v1?api_key=hunter2", "http://127.0.0.1/v1?***"),
        ("http://127.0.0.1/v1#hunter2", "http://127.0.0.1/v1?***"),
        ("http://ann:hunter?2@127.0.0.1/v1", "***"),
        ("http://127.0.0.1/v1?api_key=a@hunter2", "***"),
    ],
)
def test_no_password_is_shown(
    visitor: Visitor, home: Path, endpoint: str, shown: str
) -> None:
    settings_file(home).write_text(
        SETTINGS.replace("http://127.0.0.1:8080/v1", endpoint)
    )

    page = visitor.get("/settings")

    assert f" {shown} " in page.text
    assert "hunter" not in page.source


def test_broken_settings_are_named(visitor: Visitor, home: Path) -> None:
    settings_file(home).write_text("wm_max: many\n")

    assert "wm_max" in visitor.get("/settings").text
    assert "wm_max" in visitor.get("/checks").text


# ------------------------------------------------------------------- export


def test_an_export_is_sent_whole_with_its_size(
    visitor: Visitor, memory: Memory
) -> None:
    for number in range(3):
        memory.remember(f"Note {number}: {SECRET}", session="work", tags=["api"])
    memory.remember("Elsewhere.", session="other")

    assert "4 memories, 0 summaries" in visitor.get("/export").text
    chosen = visitor.get("/export", session="work", tag="api")
    assert "What these select 3 memories" in chosen.text
    assert "kB as JSON lines" in chosen.text

    (link,) = [each for each in chosen.links if "format=jsonl" in each]
    sent = visitor.follow(link)
    assert 'filename="memory-' in sent.headers["Content-Disposition"]
    body = download(sent)
    *lines, footer = body.splitlines(keepends=True)
    last = msgspec.json.decode(footer, type=Footer)
    assert last.counts["memory"] == 3
    assert last.sha256 == hashlib.sha256(b"".join(lines)).hexdigest()
    assert SECRET.encode() in body


def test_only_equal_filters_lead_to_an_export(visitor: Visitor, memory: Memory) -> None:
    memory.remember("Note.", session="work", role="ada")

    assert "/export?session=work" in visitor.get("/search", session="work").links
    assert "/export?" not in visitor.get("/search", session="work", role="ada").source


def test_markdown_has_days_without_secrets(visitor: Visitor, memory: Memory) -> None:
    memory.remember(f"The key is {SECRET}", created_at="2026-03-09T12:00Z")
    memory.remember("Zq7xK9vB2mT4 worked.", created_at="2026-03-09T13:00Z")
    memory.remember("Password: Zq7xK9vB2mT4", created_at="2026-03-09T14:00Z")
    memory.remember("Later.", created_at="2026-03-12T12:00Z")

    text = download(visitor.get("/download", format="markdown")).decode()

    assert text.index("# 2026-03-09") < text.index("# 2026-03-12")
    assert "The key is" in text
    assert SECRET not in text
    assert "Zq7x" not in text


@pytest.mark.parametrize("format_name", ["jsonl", "markdown"])
def test_a_download_that_is_left_is_closed(memory: Memory, format_name: str) -> None:
    memory.remember("first")
    visitor = Visitor.let_in(EmbeddedDaemon(memory))

    page = visitor.get("/download", format=format_name)
    assert page.response.stream
    next(page.response.stream)
    page.response.stream.close()  # type: ignore[attr-defined]

    service: Any = memory._caller  # noqa: SLF001 as a daemon does
    with closing(service.export(Export())) as chunks:
        assert next(chunks)  # refused while another runs


@pytest.mark.parametrize("format_name", ["jsonl", "markdown"])
@pytest.mark.parametrize(
    ("end", "error"),
    [
        (msgspec.json.encode(CutOff(reason="the daemon stops")), "the daemon stops"),
        (b'{"record":"memory"', "before its last line"),
        (b"", "before its last line"),
        (msgspec.json.encode(Footer(counts={}, sha256="0")), "as it was sent"),
    ],
)
def test_an_export_that_is_not_whole_is_not_taken_for_a_whole_one(
    memory: Memory,
    monkeypatch: pytest.MonkeyPatch,
    format_name: str,
    end: bytes,
    error: str,
) -> None:
    memory.remember("Half of it.")
    service: Any = memory._caller  # noqa: SLF001 as a daemon does
    *lines, _ = b"".join(service.export(Export())).splitlines(keepends=True)
    end += b"\n" if end.endswith(b"}") else b""

    def export(_: Export) -> Iterator[bytes]:
        yield b"".join(lines)
        yield end
        if not end:
            raise ConnectionResetError

    monkeypatch.setattr(service, "export", export)
    visitor = Visitor.let_in(EmbeddedDaemon(memory))
    sent: list[bytes] = []

    page = visitor.get("/download", format=format_name)

    assert page.response.stream
    with pytest.raises(MnemosynedError, match=error):
        sent.extend(page.response.stream)
    assert not any(sent)


def test_a_download_that_runs_keeps_the_pages_open(memory: Memory) -> None:
    seconds = count()
    access = WebAccess(PORT, now=lambda: float(next(seconds)))
    visitor = Visitor.let_in(EmbeddedDaemon(memory), access)

    page = visitor.get("/download", format="jsonl")
    assert page.response.stream
    next(page.response.stream)

    assert access.unused_s == 0
    list(page.response.stream)
    assert access.unused_s == 1


def test_mistakes_in_an_export_are_pages(visitor: Visitor, memory: Memory) -> None:
    assert visitor.get("/export", since="whenever").status == 400
    assert visitor.get("/download", format="jsonl", since="whenever").status == 400
    assert visitor.get("/download").status == 400
    assert "mnem export" in Visitor.let_in(memory).get("/export").text
