"""A laptop's own settings keep its words from a server, whatever the server's settings are."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import pytest
from e2e.daemons import Daemon, Json, eventually
from e2e.hook_programs import Machine
from e2e.pumps import pumping
from support.agents import claude_line, write_lines
from support.endpoints import Endpoint, gives, serving

pytestmark = pytest.mark.e2e

SECRET, OPEN = "The client is Umbrella.", "The gate is open."


@dataclass(frozen=True, slots=True)
class Laptop:
    """A user's machine, whose memory is on a server that asks for every transcript."""

    machine: Machine
    server: Endpoint

    @property
    def client(self) -> Path:
        """The folder that is excluded."""
        return self.machine.home / "client"

    @property
    def transcript(self) -> Path:
        return self.machine.home / ".claude" / "projects" / "-client" / "s1.jsonl"

    @property
    def variables(self) -> dict[str, Json]:
        return {
            "MNEMOSYNE_SOCKET": None,
            "MNEMOSYNE_URL": self.server.url.removesuffix("/v1"),
            "MNEMOSYNE_TOKEN": "t" * 43,
        }

    @property
    def sent(self) -> str:
        """All that the server was sent."""
        return json.dumps([seen.body for seen in self.server.seen])

    @property
    def waiting(self) -> list[Path]:
        return list(self.machine.spool.parent.glob("spool*/[!.]*"))

    def set(self, text: str, file: str = ".config/mnemosyned/mnemosyned.yaml") -> Path:
        path = self.machine.home / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def say(self, text: str) -> None:
        """Write a message that is said now to the transcript."""
        now = datetime.now(UTC).isoformat()
        line = claude_line("user", text, uuid=text, timestamp=now)
        write_lines(self.transcript, [line])

    def hook(
        self, event: str, cwd: Path, *, with_transcript: bool = True, **more: Json
    ) -> Json:
        path = str(self.transcript) if with_transcript else None
        fields = {"hook_event_name": event, "session_id": "s1", "cwd": str(cwd)}
        variables = self.variables | more.pop("variables", {})
        payload = {**fields, "transcript_path": path, **more}
        return self.machine.hook(payload, **variables).answer


ASKED = gives(
    200, b'{"systemMessage": "told"}', Mnemosyne_Transcript="0;now", Connection="close"
)


@pytest.fixture
def laptop(machine: Machine) -> Iterator[Laptop]:
    with serving(ASKED) as server:
        laptop = Laptop(machine, server)
        laptop.client.mkdir()
        (machine.home / "shop").mkdir()
        yield laptop


@pytest.mark.parametrize(
    "text",
    [
        "hooks:\n  exclude: [~/client]\n",
        "hooks: {capture: true, exclude: [~/other, ~/client]}\n",
        "hooks.exclude:\n  - ~/client\n",
        '"hooks":\n  "ex\\u0063lude": [~/client]\n',
    ],
)
def test_nothing_of_an_excluded_folder_leaves_the_machine(
    laptop: Laptop, text: str
) -> None:
    laptop.set(text)
    laptop.say(SECRET)
    below = laptop.client / "src"

    for event in ("SessionStart", "UserPromptSubmit", "Stop", "PreCompact"):
        assert laptop.hook(event, below, prompt=SECRET) == {}
    told = laptop.hook("beforeSubmitPrompt", below, prompt=SECRET)
    assert told == {"continue": True}
    in_project = {"CLAUDE_PROJECT_DIR": str(laptop.client)}
    shop = laptop.machine.home / "shop"
    assert laptop.hook("Stop", shop, variables=in_project) == {}

    assert (laptop.server.seen, laptop.waiting) == ([], [])


def test_changed_settings_apply_at_the_next_event(laptop: Laptop) -> None:
    shop = laptop.machine.home / "shop"
    laptop.set("hooks:\n  exclude: [~/client]\n")
    assert laptop.hook("SessionStart", laptop.client) == {}
    assert laptop.hook("SessionStart", laptop.client) == {}  # by the copy of the first

    laptop.set("hooks:\n  exclude: [~/shop  ]\n")

    assert laptop.hook("SessionStart", shop) == {}
    assert laptop.server.seen == []
    assert laptop.hook("SessionStart", laptop.client) == {"systemMessage": "told"}


@pytest.mark.parametrize("is_named", [True, False], ids=["file", "variable"])
def test_the_environment_excludes_too(laptop: Laptop, *, is_named: bool) -> None:
    laptop.set("hooks:\n  exclude: []\n")
    named = laptop.set("hooks:\n  exclude: [~/client]\n", "other.yaml")
    variables = (
        {"MNEMOSYNE_CONFIG": str(named)}
        if is_named
        else {"MNEMOSYNE_HOOKS_EXCLUDE": str(laptop.client)}
    )

    assert laptop.hook("Stop", laptop.client, variables=variables) == {}

    assert laptop.server.seen == []
    assert laptop.hook("Stop", laptop.client) == {"systemMessage": "told"}


def test_what_was_said_in_an_excluded_folder_is_not_sent_later(laptop: Laptop) -> None:
    laptop.set("hooks:\n  exclude: [~/client]\n")
    laptop.say(SECRET)
    laptop.hook("Stop", laptop.client)
    laptop.set("hooks:\n  exclude: []\n")
    time.sleep(0.01)
    laptop.say(OPEN)
    laptop.hook("SessionEnd", laptop.client)

    eventually(lambda: OPEN in laptop.sent, "the rest is sent")
    assert SECRET not in laptop.sent


def test_a_call_that_waits_is_not_sent_once_its_folder_is_excluded(
    laptop: Laptop,
) -> None:
    elsewhere = laptop.hook(
        "UserPromptSubmit",
        laptop.client,
        with_transcript=False,
        prompt=SECRET,
        variables={"MNEMOSYNE_HOOK_WAIT_S": "0.000001"},
    )
    assert "waits here" in elsewhere["systemMessage"]
    (waiting,) = laptop.waiting
    (waiting.parent / ".away").unlink(missing_ok=True)
    laptop.set("hooks:\n  exclude: [~/client]\n")

    laptop.hook("UserPromptSubmit", laptop.machine.home / "shop", prompt=OPEN)

    eventually(lambda: laptop.waiting == [], "the call is dropped")
    assert OPEN in laptop.sent
    assert SECRET not in laptop.sent


def test_without_capture_agents_are_told_and_nothing_is_stored(laptop: Laptop) -> None:
    laptop.set("hooks:\n  capture: false\n")
    shop = laptop.machine.home / "shop"
    laptop.say(SECRET)

    assert laptop.hook("UserPromptSubmit", shop, prompt="Where?")["systemMessage"]
    assert laptop.hook("Stop", shop, last_assistant_message=SECRET) == {}
    told = laptop.hook("UserPromptSubmit", shop, with_transcript=False, prompt=SECRET)
    assert told == {}
    (seen,) = laptop.server.seen
    assert seen.body["payload"]["prompt"] == "Where?"
    assert seen.body["transcript"].keys() == {"file", "size"}

    laptop.set("hooks:\n  capture: true\n")
    time.sleep(0.01)
    laptop.say(OPEN)
    laptop.hook("SessionEnd", shop)
    eventually(lambda: OPEN in laptop.sent, "the rest is sent")
    assert SECRET not in laptop.sent
    assert laptop.waiting == []


def test_without_tell_the_server_composes_nothing(laptop: Laptop) -> None:
    laptop.set("hooks:\n  tell: false\n")

    laptop.hook("UserPromptSubmit", laptop.machine.home / "shop", prompt=OPEN)

    eventually(lambda: laptop.server.seen, "the prompt is sent")
    assert laptop.server.seen[0].body["late"] is True
    assert OPEN in laptop.sent


def test_with_settings_that_cannot_be_read_what_is_said_waits(laptop: Laptop) -> None:
    laptop.set("hooks:\n  capture: perhaps\n")

    warned = laptop.hook("UserPromptSubmit", laptop.client, prompt=SECRET)

    assert "line 2: hooks.capture" in warned["systemMessage"]
    assert "until that is corrected" in warned["systemMessage"]
    assert laptop.server.seen == []
    assert len(laptop.waiting) == 1


@pytest.mark.parametrize("project", ["", "."])
def test_an_agents_tools_send_nothing_of_an_excluded_folder(
    laptop: Laptop, project: str
) -> None:
    laptop.set("hooks:\n  exclude: [~/client]\n")
    of_parent = str(laptop.machine.home / project) if project else ""

    with pumping(
        laptop.machine.home,
        directory=laptop.client,
        **{**laptop.variables, "CLAUDE_PROJECT_DIR": of_parent},
    ) as pump:
        pump.initialize()
        refused = pump.call("remember", content=SECRET)
        assert pump.end() == 0

    assert refused["isError"]
    assert "hooks.exclude" in refused["content"][0]["text"]
    assert laptop.server.seen == []


def test_status_and_doctor_say_what_is_excluded_here(daemon: Daemon) -> None:
    file = daemon.home / ".config" / "mnemosyned" / "mnemosyned.yaml"
    file.parent.mkdir(parents=True)
    assert b"hooks here" not in daemon.mnem("status").stdout

    file.write_text("hooks:\n  tell: false\n  exclude: [~/client, /w/x]\n")

    words = "agents are given nothing (hooks.tell); nothing of ~/client, /w/x"
    for command in ("status", "doctor", "setup --check"):
        shown = daemon.mnem(*command.split()).stdout.decode()
        assert words in " ".join(shown.split()), shown


def test_a_briefing_says_where_agents_get_nothing_of_it(daemon: Daemon) -> None:
    file = daemon.home / ".config" / "mnemosyned" / "mnemosyned.yaml"
    file.parent.mkdir(parents=True)
    file.write_text("hooks:\n  exclude: [~/client]\n")
    daemon.mnem("learn", "Always taste first.")

    def remark(folder: str) -> bytes:
        done = daemon.mnem("briefing", "--project", str(daemon.home / folder))
        assert b"Always taste first." in done.stdout
        return done.stderr

    assert b"hooks.exclude has this folder" in remark("client/src")
    assert remark("shop") == b""
    file.write_text("hooks:\n  tell: false\n")
    assert b"hooks.tell is off" in remark("shop")


def test_an_empty_briefing_names_the_project(daemon: Daemon) -> None:
    done = daemon.mnem("briefing", "--project", str(daemon.home / "shop"))

    assert f"the project is {daemon.home / 'shop'}" in done.stderr.decode()
    assert b"`mnem projects` lists all" in done.stderr
