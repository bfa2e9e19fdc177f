"""A laptop whose agents remember on a server: login, hooks and MCP over https, the spool, two memories."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any, cast

import pytest
from e2e.authorities import Authority
from e2e.daemons import Daemon, environment, eventually, mnem, running, short_room
from e2e.doors import NAMES
from e2e.hook_programs import Machine, prompt
from e2e.pumps import pumping
from support.agents import claude_line, context_of, write_lines
from support.endpoints import unused_port
from support.openssl import HAVE_OPENSSL
from support.postgres import open_owners, run

from mnemosyned import Client
from mnemosyned.agents.hooks.remote import SEND_S
from mnemosyned.cli.maintenance import checks
from mnemosyned.memory.engine_ports import Scope
from mnemosyned.memory.listing import ListOrder

pytestmark = [pytest.mark.postgres, HAVE_OPENSSL]

Json = dict[str, Any]
WEEK = timedelta(days=7)
DECIDED = "We decided to use Postgres 16 for the cart."


@dataclass
class Server:
    """A daemon with owners on a port of its own, and a token for anna."""

    home: Path
    dsn: str
    authority: Authority
    token: str
    port: int
    settings: dict[str, Any] = field(default_factory=dict)

    @property
    def url(self) -> str:
        return f"https://localhost:{self.port}"

    @contextmanager
    def up(self) -> Iterator[Daemon]:
        with running(self.home, "--database", self.dsn, **self.settings) as daemon:
            yield daemon

    def texts(self, owner: str | None = None) -> list[str]:
        """All that anna's memory, or that of a group, holds, oldest first."""
        ca = self.authority.file
        with Client(url=self.url, token=self.token, ca=ca, owner=owner) as client:
            page = client.list(limit=100, order=ListOrder.OLDEST)
            return [memory.content for memory in page.memories]


@pytest.fixture
def server(dsn: str, tmp_path: Path) -> Server:
    with open_owners(dsn) as owners:
        owners.add("anna")
        token = owners.issue("anna", "laptop", tuple(Scope)).secret
    authority = Authority(tmp_path / "authority")
    port = unused_port()
    settings = authority.issue(*NAMES, ends=timedelta(days=30)).settings | {
        "MNEMOSYNE_OWNERS_SERVE": "true",
        "MNEMOSYNE_LISTEN": f"127.0.0.1:{port}",
    }
    home = tmp_path / "server"
    return Server(home, dsn, authority, token, port, settings)


@dataclass(frozen=True, slots=True)
class Laptop(Machine):
    """A laptop with a token file, whose programs find their daemon as a user's do."""

    def environment(self, **variables: str | None) -> dict[str, str]:
        return environment(
            self.home, **{"MNEMOSYNE_HOOK_WAIT_S": self.wait_s, **variables}
        )

    def mnem(self, *words: str, stdin: bytes = b"") -> CompletedProcess[bytes]:
        return mnem(*words, home=self.home, stdin=stdin)

    def hands_in(self, said: Json) -> bool:
        """Call the hook; return whether nothing waits for the server any more.

        Hooks rest for half a minute after a call that a slow machine did not answer in time.
        """
        self.hook(said)
        return not self.waiting_for_server()

    def waiting_for_server(self) -> list[Path]:
        state = self.home / ".local" / "state" / "mnemosyned"
        return [
            path for path in state.glob("spool@*/*") if not path.name.startswith(".")
        ]


@pytest.fixture
def laptop(server: Server) -> Iterator[Laptop]:
    with short_room() as home:
        (home / ".claude").mkdir(parents=True)
        file = home / "token"
        file.write_text(server.token)
        file.chmod(0o600)
        yield Laptop(home, home / "none.sock")


def set_up(laptop: Laptop, server: Server, *tools: str) -> str:
    done = laptop.mnem(
        *("setup", *tools, "--yes", "--url", server.url),
        *("--token-file", str(laptop.home / "token")),
        *("--ca", str(server.authority.file)),
    )
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout.decode()


def claude(laptop: Laptop, event: str, **fields: object) -> Json:
    """An event of Claude Code, with the transcript of its conversation."""
    return {
        "hook_event_name": event,
        "session_id": "s1",
        "cwd": str(laptop.home / "shop"),
        "transcript_path": str(
            laptop.home / ".claude" / "projects" / "-w-shop" / "s1.jsonl"
        ),
        **fields,
    }


def test_claude_code_remembers_on_the_server(server: Server, laptop: Laptop) -> None:
    transcript = Path(claude(laptop, "Stop")["transcript_path"])
    (laptop.home / "shop").mkdir()
    with server.up():
        shown = set_up(laptop, server, "claude-code")
        assert f"logged in at {server.url}" in shown
        assert "5 hooks: new" in shown
        write_lines(
            transcript,
            [
                claude_line("user", DECIDED, uuid="u1"),
                claude_line("assistant", "Postgres 16 it is.", uuid="u2"),
            ],
        )
        assert laptop.hook(claude(laptop, "Stop")).answer == {}
        eventually(lambda: len(server.texts()) == 2, "the turn is sent")
        assert server.texts() == [DECIDED, "Postgres 16 it is."]

        last = claude_line("assistant", "That is all.", uuid="u3", minutes=1)
        write_lines(transcript, [last])
        ended = laptop.hook(claude(laptop, "SessionEnd"))
        assert ended.answer == {}
        if ended.seconds > SEND_S:  # the tool of a slow machine went on before
            eventually(lambda: len(server.texts()) == 3, "the rest is sent")
        assert server.texts()[2:] == ["That is all."]

        hint = context_of(
            laptop.hook(
                prompt("Which Postgres do we use for the cart?", session="s2")
                | {"cwd": str(laptop.home / "shop")}
            ).answer
        )
        assert DECIDED in hint
        start = claude(laptop, "SessionStart", source="startup", session_id="s3")
        told = context_of(laptop.hook(start | {"transcript_path": None}).answer)
        assert DECIDED in told
        assert told.endswith(f"This memory is your own, at {server.url}.")

    write_lines(
        transcript, [claude_line("user", "Name the index cart_idx.", uuid="u4")]
    )
    assert "systemMessage" in laptop.hook(claude(laptop, "Stop")).answer
    said = prompt("Ines reviews the ledger.", session="s2")
    assert laptop.hook(said).answer == {}
    assert len(laptop.waiting_for_server()) == 2
    assert laptop.waiting == []

    with server.up():
        said = prompt("Hello there.", session="s4")
        eventually(partial(laptop.hands_in, said), "the calls are handed in")
        texts = server.texts()
    assert sorted(texts) == sorted({*texts})
    assert {"Name the index cart_idx.", "Ines reviews the ledger."} < {*texts}


@pytest.mark.parametrize(
    ("is_login", "step"), [(True, "mnem login https://"), (False, "replace that token")]
)
def test_calls_wait_while_the_token_is_refused(
    server: Server,
    laptop: Laptop,
    is_login: bool,  # noqa: FBT001
    step: str,
) -> None:
    variables: dict[str, str | None] = {
        "MNEMOSYNE_URL": server.url,
        "MNEMOSYNE_TOKEN": server.token,
        "MNEMOSYNE_CA": str(server.authority.file),
    }
    with server.up(), open_owners(server.dsn) as owners:
        set_up(laptop, server, "claude-code")
        laptop.hook(prompt("The well is deep."))
        owners.revoke("anna", "laptop")
        said = "The bike is blue."

        def warn() -> bool:
            event = prompt(said, session="s2")
            answer = laptop.hook(event, **({} if is_login else variables)).answer
            return "refuses the token" in str(answer) and step in str(answer)

        eventually(warn, "the token is refused")
        assert "The bike" in laptop.waiting_for_server()[0].read_text()

        server.token = owners.issue("anna", "laptop", tuple(Scope)).secret
        (laptop.home / "token").write_text(server.token)
        eventually(partial(laptop.hands_in, prompt("Hello there.")), "it is handed in")
        assert server.texts().count(said) == 1


def may_only_read(server: Server, laptop: Laptop) -> None:
    with open_owners(server.dsn) as owners:
        reader = owners.issue("anna", "reader", (Scope.READ,)).secret
    (laptop.home / "token").write_text(reader)


def trust_another(server: Server, laptop: Laptop) -> None:
    other = Authority(laptop.home / "other").file
    server.authority.file.write_bytes(other.read_bytes())


def fill_memory(_: Server, laptop: Laptop) -> None:
    laptop.hook(prompt("The well is deep."))


def upgrade_the_tables(server: Server, _: Laptop) -> None:
    run(
        server.dsn,
        "INSERT INTO schema_migration (version, name, oldest) VALUES (999, 'later', 999)",
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
        "WHERE application_name = 'mnemosyned' AND datname = current_database()",
    )


@pytest.mark.parametrize(
    ("hinder", "reason"),
    [
        (upgrade_the_tables, "needs a mnemosyned that knows 999"),
        (may_only_read, "needs the scope write"),
        (trust_another, "is not signed by the authority"),
        (fill_memory, "keeps 1 memories of the 1"),
    ],
    ids=["a later schema", "may not write", "another authority", "a full memory"],
)
def test_a_call_that_is_refused_waits_and_the_warning_says_why(
    server: Server,
    laptop: Laptop,
    hinder: Callable[[Server, Laptop], None],
    reason: str,
) -> None:
    full = {"anna": {"memories_max": 1}}
    server.settings["MNEMOSYNE_OWNERS_LIMITS_BY_OWNER"] = json.dumps(full)
    with server.up():
        set_up(laptop, server, "claude-code")
        hinder(server, laptop)
        said = prompt("The bike is blue.", session="s2")
        warning = laptop.hook(said).answer["systemMessage"]

    assert reason in warning
    assert len(laptop.waiting_for_server()) == 1


def test_a_reader_of_a_group_is_told_and_nothing_waits(
    server: Server, laptop: Laptop
) -> None:
    stop = claude(laptop, "Stop")
    write_lines(
        Path(stop["transcript_path"]), [claude_line("user", DECIDED, uuid="u1")]
    )
    with server.up(), open_owners(server.dsn) as owners:
        owners.add("crew", is_group=True)
        owners.join("crew", "anna", (Scope.READ,))
        set_up(laptop, server, "claude-code")
        assert laptop.mnem("use", "crew", "/").returncode == 0
        answers = [laptop.hook(stop).answer for _ in range(2)]
        assert "is not stored; mnem use" in answers[0]["systemMessage"]
        assert answers[1] == {}
        assert laptop.waiting_for_server() == []

        owners.join("crew", "anna", (Scope.READ, Scope.WRITE))
        eventually(
            lambda: laptop.hook(stop) and server.texts(owner="crew"),
            "the transcript is sent",
        )


def test_a_folder_decides_without_hooks_too(server: Server, laptop: Laptop) -> None:
    shop, diary = laptop.home / "shop", laptop.home / "diary"
    for folder in (shop, diary):
        (folder / ".git").mkdir(parents=True)
    with server.up(), running(laptop.home / "own") as own:
        set_up(laptop, server, "zed")
        entry = json.loads(
            (laptop.home / ".config" / "zed" / "settings.json").read_text()
        )
        assert entry["context_servers"]["mnem"]["args"] == ["mcp"]
        assert laptop.mnem("use", "local", str(diary)).returncode == 0

        for folder, socket_path in ((shop, None), (diary, None), (shop, own.socket)):
            with pumping(laptop.home, socket_path, directory=folder) as agent:
                agent.initialize("zed")
                answer = agent.call("remember", content=f"Said in {folder.name}.")
                state = agent.call("status")
            if folder is diary:  # no daemon of its own runs on the usual socket
                assert "mnem start" in str(answer)
            else:
                assert str(folder) in str(state)

        assert server.texts() == ["Said in shop."]
        assert laptop.mnem("use", "local", "/").returncode == 0
        done = laptop.mnem("setup", "--check", "--json")
        assert json.loads(done.stdout)["server"] == server.url
        assert "mnem start" in json.loads(done.stdout)["daemon"]
        undone = laptop.mnem("setup", "--undo", "zed", "--yes")
        assert undone.returncode == 0
        assert not (laptop.home / ".config" / "zed" / "settings.json").exists()


def test_the_spool_keeps_the_folders_group(server: Server, laptop: Laptop) -> None:
    shop = laptop.home / "shop"
    (shop / ".git").mkdir(parents=True)
    ours = {"cwd": str(shop)}
    with open_owners(server.dsn) as owners:
        owners.add("crew", is_group=True)
        owners.join("crew", "anna", (Scope.READ, Scope.WRITE))
    with server.up():
        set_up(laptop, server, "claude-code")
        refused = laptop.mnem("use", "others", str(shop))
        assert refused.returncode != 0
        assert laptop.mnem("use", "crew", str(shop)).returncode == 0
        laptop.hook(prompt(DECIDED) | ours)
        laptop.hook(prompt("The well is deep.", session="s2"))
    laptop.hook(prompt("Ines reviews the ledger.", session="s3") | ours)

    with server.up():
        laptop.hook(prompt("Hello there.", session="s4"))
        assert len(laptop.waiting_for_server()) == 1
        said = prompt("Hello, crew.", session="s5") | ours
        eventually(partial(laptop.hands_in, said), "the call is handed in")
        assert server.texts() == ["The well is deep.", "Hello there."]
        crew = server.texts(owner="crew")
    assert sorted(crew) == sorted([DECIDED, "Hello, crew.", "Ines reviews the ledger."])

    laptop.hook(prompt("The bike is blue.", session="s6") | ours)
    with server.up(), open_owners(server.dsn) as owners:
        owners.change("crew", new_name="team")
        assert laptop.mnem("use", "team", str(shop)).returncode == 0
        # A fork would look into the home of its template.
        examined = mnem("doctor", home=laptop.home, anew=True).stdout.decode()
        _, _, advice = examined.partition("no folder uses crew\n")
        subprocess.run(advice.splitlines()[0].split(), check=True)

        said = prompt("Hello, team.", session="s7") | ours
        eventually(partial(laptop.hands_in, said), "the call is handed in")
        assert "The bike is blue." in server.texts(owner="team")


def test_a_setup_explains_a_bad_connection(server: Server, laptop: Laptop) -> None:
    token, ca = str(laptop.home / "token"), str(server.authority.file)

    def refused(*words: str) -> str:
        done = laptop.mnem("setup", "zed", "--yes", "--url", server.url, *words)
        assert done.returncode != 0
        assert not (laptop.home / ".config" / "mnemosyned").exists()
        return done.stderr.decode()

    assert "no daemon answers" in refused("--token-file", token, "--ca", ca)
    with server.up():
        assert "asks for a token" in refused("--ca", ca)
        assert "does not know" in refused("--token-file", token)
        (laptop.home / "token").write_text("mnt_2_" + "x" * 43)
        assert "refuses the token" in refused("--token-file", token, "--ca", ca)


def test_a_code_is_all_that_a_laptop_needs(
    server: Server, laptop: Laptop, monkeypatch: pytest.MonkeyPatch
) -> None:
    with open_owners(server.dsn) as owners:
        (made,) = owners.invite([("anna", (Scope.READ, Scope.WRITE), 1.0)], lasts=WEEK)
    words = ("login", server.url, "--ca", str(server.authority.file))
    with server.up():
        done = laptop.mnem(*words, stdin=made.code.encode() + b"\n")
        assert done.returncode == 0, done.stderr
        assert f"logged in at {server.url} as anna" in done.stdout.decode()
        assert laptop.mnem("remember", "The well is deep.").returncode == 0
        again = laptop.mnem(*words, stdin=made.code.encode() + b"\n")
        assert again.returncode == 7
        assert server.texts() == ["The well is deep."]

        folder = laptop.home / ".config" / "mnemosyned"
        (token,) = folder.glob("*.token")
        first = token.read_text()
        saved = folder / "connection.json"
        fields = json.loads(saved.read_text())
        saved.write_text(json.dumps({**fields, "renew_at": 1}))

        def is_renewed() -> bool:
            laptop.hook(prompt("The bike is blue."))
            return token.read_text() != first

        eventually(is_renewed, "the token is renewed")
        glance = laptop.mnem("--format", "table").stdout.decode()
        assert glance.endswith(f"memory: your own, at {server.url}\n")
        looked = laptop.mnem("doctor")
        assert f"your own, at {server.url}, answers" in looked.stdout.decode()
        assert looked.returncode == 0, looked.stdout
        monkeypatch.setenv("XDG_CONFIG_HOME", str(folder.parent))
        real = time.time
        with monkeypatch.context() as clock:
            clock.setattr(time, "time", lambda: real() - 600)
            *_, last = checks.check_login(cast("Any", None))
        assert "s behind the server's" in last.text
        assert json.loads(saved.read_text())["renew_at"] > fields["renew_at"] - 100

    listen = server.settings["MNEMOSYNE_LISTEN"]
    server.settings |= server.authority.issue(*NAMES).settings
    server.settings["MNEMOSYNE_LISTEN"] = listen
    with server.up():
        looked = laptop.mnem("doctor")
    assert f"the certificate of {server.url} ends " in looked.stdout.decode()
