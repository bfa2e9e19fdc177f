"""A laptop whose agents remember on a server: login, hooks and MCP over https, the spool, two memories."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pytest
from e2e.authorities import Authority
from e2e.daemons import Daemon, environment, eventually, mnem, running
from e2e.doors import NAMES
from e2e.hook_programs import Machine, prompt
from support.agents import claude_line, context_of, write_lines
from support.openssl import HAVE_OPENSSL

from mnemosyned import Client
from mnemosyned.memory.engine_ports import Scope
from mnemosyned.memory.listing import ListOrder
from mnemosyned.paths import shipped
from mnemosyned.storage.postgres.store import open_owners

pytestmark = [pytest.mark.postgres, HAVE_OPENSSL]

Json = dict[str, Any]
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

    def texts(self) -> list[str]:
        """All that anna's memory holds, oldest first."""
        with Client(url=self.url, token=self.token, ca=self.authority.file) as client:
            page = client.list(limit=100, order=ListOrder.OLDEST)
            return [memory.content for memory in page.memories]


@pytest.fixture
def server(dsn: str, tmp_path: Path) -> Server:
    with open_owners(dsn, migrations=shipped("migrations") / "postgres") as owners:
        owners.add("anna")
        token = owners.issue("anna", "laptop", tuple(Scope)).secret
    authority = Authority(tmp_path / "authority")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    settings = authority.issue(*NAMES).settings | {
        "MNEMOSYNE_OWNERS_SERVE": "true",
        "MNEMOSYNE_LISTEN": f"127.0.0.1:{port}",
    }
    home = tmp_path / "server"
    return Server(home, dsn, authority, token, port, settings)


@dataclass(frozen=True, slots=True)
class Laptop(Machine):
    """A laptop with a token file, whose programs find their daemon as a user's do."""

    def environment(self, **variables: str | None) -> dict[str, str]:
        return environment(self.home, **variables)

    def mnem(self, *words: str, stdin: bytes = b"") -> CompletedProcess[bytes]:
        return mnem(*words, home=self.home, stdin=stdin)

    def waiting_for_server(self) -> list[Path]:
        state = self.home / ".local" / "state" / "mnemosyned"
        return [
            path for path in state.glob("spool@*/*") if not path.name.startswith(".")
        ]


@pytest.fixture
def laptop(server: Server, tmp_path: Path) -> Laptop:
    home = tmp_path / "laptop"
    (home / ".claude").mkdir(parents=True)
    file = home / "token"
    file.write_text(server.token)
    file.chmod(0o600)
    return Laptop(home, home / "none.sock")


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


def test_claude_code_remembers_on_the_server_through_its_absence(
    server: Server, laptop: Laptop
) -> None:
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
        assert server.texts() == [DECIDED, "Postgres 16 it is."]

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
        assert told.endswith(f"This memory is the team's, at {server.url}.")

    write_lines(
        transcript, [claude_line("user", "Name the index cart_idx.", uuid="u3")]
    )
    assert "systemMessage" in laptop.hook(claude(laptop, "Stop")).answer
    said = prompt("Ines reviews the ledger.", session="s2")
    assert laptop.hook(said).answer == {}
    assert len(laptop.waiting_for_server()) == 2
    assert laptop.waiting == []

    with server.up():
        assert laptop.hook(prompt("Hello there.", session="s4")).code == 0
        eventually(lambda: not laptop.waiting_for_server(), "the calls are handed in")
        texts = server.texts()
    assert sorted(texts) == sorted({*texts})
    assert {"Name the index cart_idx.", "Ines reviews the ledger."} < {*texts}
