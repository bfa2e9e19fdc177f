"""`mnem-hook`: one JSON object and exit code 0, whatever the daemon, the input or the disk do."""

from __future__ import annotations

import json
import os
import socket
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from e2e.conftest import Start
from e2e.daemons import Daemon, environment, eventually, running, short_room
from e2e.hook_programs import (
    Machine,
    Ran,
    answer_with,
    bad_daemon,
    die_half_way,
    hang,
    hang_up,
    prompt,
)
from e2e.programs import BIN
from support.agents import claude_line, write_lines

from mnemosyned import Client

pytestmark = [pytest.mark.e2e, pytest.mark.thorough]


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    with running(tmp_path_factory.mktemp("shared")) as daemon:
        yield warmed(daemon)


@pytest.fixture
def daemon(shared: Daemon) -> Iterator[Daemon]:
    """A daemon with nothing in its memory, which other tests of this module had before."""
    yield shared
    everything = {"since": "1970-01-01T00:00:00Z", "until": "2100-01-01T00:00:00Z"}
    assert shared.post("forget", **everything, now=True).status == 200
    assert said(shared) == []


def warmed(daemon: Daemon) -> Daemon:
    """The daemon, which has answered a hook: the first answer loads what it needs."""
    payload = {**prompt("What was said?"), "prompt": "What did Ann say yesterday?"}
    envelope = json.dumps({"payload": {**payload, "session_id": "warm"}}).encode()
    assert daemon.request("POST", "/hooks", envelope).status == 200
    return daemon


def beside(daemon: Daemon) -> Machine:
    return Machine(daemon.home, daemon.socket)


def said(daemon: Daemon) -> list[str]:
    """Everything that is stored, in order of the words."""
    with daemon.client() as client:
        hits = client.recall("fact", limit=100).hits
    return sorted({line.content for hit in hits for line in (hit.lines or (hit,))})


# ---------------------------------------------------------------- daemon up


@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
def test_a_prompt_is_stored_and_answered(daemon: Daemon, mark: bytes) -> None:
    fact = f"The fact is {len(mark)}"  # repeated in a session, it would be known

    ran = beside(daemon).hook(mark + json.dumps(prompt(fact)).encode())

    assert ran.answer == {}
    assert said(daemon) == [fact]


@pytest.mark.parametrize(
    ("mark", "kept"),
    [(b"\\ud83d", "?"), (b"\\uD83D\\ude00", "😀"), (b"\xff", "\ufffd")],
)
def test_a_prompt_that_the_tool_cut_inside_a_character_is_stored(
    daemon: Daemon, mark: bytes, kept: str
) -> None:
    payload = json.dumps(prompt("The fact is XX")).encode()

    ran = beside(daemon).hook(payload.replace(b"XX", mark))

    assert ran.answer == {}
    assert said(daemon) == [f"The fact is {kept}"]


def test_the_environment_and_the_directory_are_handed_in(daemon: Daemon) -> None:
    payload = {**prompt("A fact of the team", session="team"), "cwd": None}
    beside(daemon).hook(payload, MNEMOSYNE_PROJECT='team/"shop"\n')

    with daemon.client() as client:
        (hit,) = client.recall("fact").hits
        memory = client.get(hit.id).memory
    assert memory
    assert memory.metadata["project"] == 'team/"shop"'
    assert memory.metadata["cwd"] == os.getcwd()  # noqa: PTH109


def test_the_daemon_starts_beside_a_variable_for_the_hooks(start: Start) -> None:
    assert start(MNEMOSYNE_PROJECT="team/shop").post("status").status == 200


@pytest.mark.parametrize(
    "payload",
    [
        b"",
        b"   \n",
        b"not json",
        b"[1, 2]",
        b'"text"',
        b'{"hook_event_name": "Stop"',
        b'{"hook_event_name": 5, "session_id": {}}',
        b"\xff\xfe\x00",
        b'{"hook_event_name":"PreToolUse","session_id":"s","tool_name":"Bash"}',
    ],
)
def test_whatever_comes_in_one_object_comes_out(daemon: Daemon, payload: bytes) -> None:
    assert beside(daemon).hook(payload).answer == {}
    assert not beside(daemon).waiting


# ------------------------------------------------------------ standard input


def _with_open_stdin(machine: Machine, given: bytes) -> Ran:
    def talk(process: subprocess.Popen[bytes]) -> tuple[bytes, bytes]:
        assert process.stdin
        assert process.stdout
        assert process.stderr
        process.stdin.write(given)
        process.stdin.flush()
        return process.stdout.read(), process.stderr.read()

    return machine.run(talk)


def test_blocking_an_open_input_is_read_to_the_objects_end(daemon: Daemon) -> None:
    given = json.dumps(prompt("An open fact")).encode() + b'\n{"another": 1}'
    ran = _with_open_stdin(beside(daemon), given)

    assert ran.answer == {}
    assert said(daemon) == ["An open fact"]


@pytest.mark.parametrize("given", [b"", b'{"hook_event_name": "Stop", '])
def test_blocking_an_input_that_never_comes_is_not_waited_for(
    machine: Machine, given: bytes
) -> None:
    ran = _with_open_stdin(machine, given)

    assert ran.answer == {}


def test_a_reader_that_left_is_no_error(daemon: Daemon) -> None:
    def talk(process: subprocess.Popen[bytes]) -> tuple[bytes, bytes]:
        assert process.stdout
        process.stdout.close()
        process.stdout = None
        said = json.dumps(prompt("An unread fact")).encode()
        return b"{}\n", process.communicate(said)[1]

    assert beside(daemon).run(talk).answer == {}
    assert said(daemon) == ["An unread fact"]


# -------------------------------------------------------------- daemon down


def _handed_in(machine: Machine) -> bool:
    """Call the hook, and tell whether nothing waits any more."""
    assert machine.hook(prompt("A fact in time")).answer == {}
    return not machine.waiting


def start_late(start: Start) -> tuple[Daemon, Machine]:
    """Start a daemon, and hand in what waits for it."""
    daemon = warmed(start())
    machine = beside(daemon)
    eventually(lambda: _handed_in(machine), "the spool is empty")
    return daemon, machine


def test_a_daemon_stores_what_waits_for_its_usual_socket(
    machine: Machine, start: Start
) -> None:
    machine.hook(prompt("Zoe moved to Hamar"))
    machine.spool.joinpath("c-0").write_bytes(b"damaged")
    with short_room() as room:
        usual = room / "mnemosyned" / "mnemosyned.sock"
        daemon = start("--socket", str(usual), XDG_RUNTIME_DIR=str(room))

        eventually(lambda: not machine.waiting, "the spool is empty")
        assert daemon.events("saved_call_unreadable")

        with Client(str(usual)) as client:
            assert client.forget(person="Zoe").memories == 1


def test_a_call_waits_for_the_daemon(machine: Machine, start: Start) -> None:
    first = machine.hook(prompt("A late fact"))
    second = machine.hook(prompt("A second late fact"))

    assert "mnemosyned does not answer" in first.answer["systemMessage"]
    assert second.answer == {}
    assert len(machine.waiting) == 2
    assert machine.spool.stat().st_mode & 0o777 == 0o700
    assert {path.stat().st_mode & 0o777 for path in machine.waiting} == {0o600}

    daemon, _ = start_late(start)
    assert said(daemon) == ["A fact in time", "A late fact", "A second late fact"]


def test_a_hook_with_a_url_speaks_to_no_other_daemon(
    machine: Machine, daemon: Daemon
) -> None:
    elsewhere = "https://localhost:1"
    only_url: dict[str, str | None] = {
        "MNEMOSYNE_SOCKET": None,
        "MNEMOSYNE_URL": elsewhere,
        "MNEMOSYNE_TOKEN": "t" * 43,
    }

    faulty = machine.hook(prompt("A late fact"), MNEMOSYNE_URL=elsewhere)
    warned = machine.hook(prompt("A late fact"), **only_url)

    assert "are both set" in faulty.answer["systemMessage"]
    assert f"{elsewhere} does not answer" in warned.answer["systemMessage"]
    assert machine.waiting == []
    (waiting,) = machine.spool.parent.glob("spool@localhost:1/c-*")
    assert b"A late fact" in waiting.read_bytes()
    assert said(daemon) == []


def test_a_server_that_hangs_is_not_waited_for_again_at_once(machine: Machine) -> None:
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen(1)
        variables: dict[str, str | None] = {
            "MNEMOSYNE_SOCKET": None,
            "MNEMOSYNE_URL": f"http://127.0.0.1:{server.getsockname()[1]}",
            "MNEMOSYNE_TOKEN": "t" * 43,
            "MNEMOSYNE_HOOK_WAIT_S": "0.2",
        }

        warned = machine.hook(prompt("A late fact"), **variables)
        again = machine.hook(prompt("A second late fact"), **variables)

        assert "does not answer" in warned.answer["systemMessage"]
        assert again.answer == {}
        server.settimeout(1)
        server.accept()[0].close()
        server.settimeout(0)
        with pytest.raises(BlockingIOError):
            server.accept()
    assert len(list(machine.spool.parent.glob("spool@*/c-*"))) == 2


def test_each_start_of_a_session_warns(machine: Machine) -> None:
    def start_of(source: str) -> Ran:
        event = {"hook_event_name": "SessionStart", "source": source}
        return machine.hook({**event, "session_id": "s1"})

    assert "systemMessage" in start_of("startup").answer
    assert "systemMessage" in start_of("startup").answer
    assert "systemMessage" in start_of("resume").answer  # the first of the hour
    assert start_of("resume").answer == {}


def test_cursors_prompt_goes_on_without_a_daemon(machine: Machine) -> None:
    payload = {
        "hook_event_name": "beforeSubmitPrompt",
        "conversation_id": "c1",
        "cursor_version": "2.1",
        "prompt": "x",
    }
    warned, silent = machine.hook(payload), machine.hook(payload)

    assert warned.answer["continue"] is True
    assert "mnemosyned" in warned.answer["user_message"]
    assert silent.answer == {"continue": True}


def test_a_tool_event_is_not_kept(machine: Machine) -> None:
    machine.hook({"hook_event_name": "PostToolUse", "session_id": "s1"})

    assert machine.waiting == []


def test_a_transcript_waits_as_one_call(machine: Machine, start: Start) -> None:
    transcript = machine.home / ".claude" / "projects" / "-w" / "s1.jsonl"
    for number in range(5):
        line = claude_line("user", f"The fact is {number}", uuid=f"u{number}")
        write_lines(transcript, [line])
        payload = {"hook_event_name": "Stop", "session_id": "s1"}
        machine.hook({**payload, "transcript_path": str(transcript)})
    assert len(machine.waiting) == 1

    daemon, _ = start_late(start)
    assert said(daemon) == ["A fact in time"] + [
        f"The fact is {number}" for number in range(5)
    ]


def test_a_full_spool_keeps_what_came_first_and_says_so(machine: Machine) -> None:
    machine.spool.mkdir(parents=True)
    for number in range(2_000):
        (machine.spool / f"c-{number:04}").write_bytes(b"{}")
    started = {"hook_event_name": "SessionStart", "session_id": "s"}
    ran = machine.hook(started)

    assert "spool or the disk is full" in ran.answer["systemMessage"]
    assert len(machine.waiting) == 2_000


def test_a_spool_that_cannot_be_written_harms_nobody(machine: Machine) -> None:
    machine.spool.parent.mkdir(parents=True)
    machine.spool.write_text("a file in its place")

    assert "systemMessage" in machine.hook({"hook_event_name": "SessionStart"}).answer


def test_damaged_calls_do_not_stay(machine: Machine, start: Start) -> None:
    machine.spool.mkdir(parents=True)
    (machine.spool / "c-1").write_bytes(b"damaged")
    (machine.spool / ".tmp-1").write_bytes(b"half")
    os.utime(machine.spool / ".tmp-1", (1, 1))
    start_late(start)

    assert not (machine.spool / ".tmp-1").exists()


# ------------------------------------------------- daemons that answer badly


@pytest.mark.parametrize(
    ("wait", "least_s"),
    [(None, 0.2), ("", 0.2), ("soon", 0.2), ("-1", 0.2), ("0", 0.2), ("nan", 0.2), ("0.7", 0.7)],
)  # fmt: skip
def test_blocking_a_daemon_that_hangs_is_left_after_the_wait_that_is_set(
    machine: Machine, wait: str | None, least_s: float
) -> None:
    with bad_daemon(machine.socket, hang):
        ran = machine.hook(prompt("A fact"), MNEMOSYNE_HOOK_WAIT_S=wait)

    assert ran.seconds > least_s
    assert "mnemosyned runs, but is busy" in ran.answer["systemMessage"]
    assert len(machine.waiting) == 1


def test_blocking_a_start_waits_longer_for_its_briefing(machine: Machine) -> None:
    event = {"hook_event_name": "sessionStart", "session_id": "s"}
    with bad_daemon(machine.socket, hang):  # hangs up after a second
        ran = machine.hook(event, MNEMOSYNE_HOOK_WAIT_S=None)

    assert ran.seconds > 1


def test_blocking_a_daemon_that_accepts_nobody_is_left(machine: Machine) -> None:
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(machine.socket))
        listener.listen(0)
        with socket.socket(socket.AF_UNIX) as other:
            other.connect(str(machine.socket))  # the backlog is full
            ran = machine.hook(prompt("A fact"), MNEMOSYNE_HOOK_WAIT_S=None)

    assert "mnemosyned runs, but is busy" in ran.answer["systemMessage"]
    assert len(machine.waiting) == 1


@pytest.mark.parametrize(
    ("behave", "waits"),
    [
        (die_half_way, True),
        (answer_with(500), True),
        (answer_with(503), True),
        (hang_up, True),
        (answer_with(404), False),
    ],
    ids=["half", "500", "503", "silence", "refused"],
)
def test_a_call_waits_unless_it_was_acknowledged_or_refused(
    machine: Machine, behave: Callable[[socket.socket], None], *, waits: bool
) -> None:
    with bad_daemon(machine.socket, behave):
        answer = machine.hook(prompt("A fact")).answer

    assert ([*answer], len(machine.waiting)) == (["systemMessage"] * waits, waits)


def test_a_repeated_call_is_stored_once(machine: Machine, start: Start) -> None:
    machine.hook(prompt("A single fact"))
    (path,) = machine.waiting
    copy = path.read_bytes()
    daemon, machine = start_late(start)
    path.with_name("c-9").write_bytes(copy)
    eventually(lambda: _handed_in(machine), "the spool is empty again")

    assert said(daemon) == ["A fact in time", "A single fact"]
    with daemon.client() as client:
        assert client.status().tiers["working"].count == 3  # type: ignore[index]


def test_a_daemon_that_is_down_is_not_waited_for(machine: Machine) -> None:
    ran = machine.hook(prompt("A fact"), MNEMOSYNE_HOOK_WAIT_S="60")

    assert ran.seconds < 60


def test_the_doctor_says_how_a_moved_folder_keeps_its_project(
    daemon: Daemon, tmp_path: Path
) -> None:
    old, new = tmp_path / "old" / "shop", tmp_path / "new" / "shop"
    old.mkdir(parents=True)
    beside(daemon).hook(prompt("We sell tea.", session="moved", cwd=str(old)))

    def look(folder: Path) -> str:
        command = [str(BIN / "mnem"), "--socket", str(daemon.socket), "doctor"]
        env = environment(daemon.home, MNEMOSYNE_SOCKET=str(daemon.socket))
        return subprocess.run(
            command, cwd=folder, env=env, capture_output=True, text=True, check=False
        ).stdout

    assert "MNEMOSYNE_PROJECT" not in look(old)
    new.parent.mkdir()
    old.rename(new)

    assert f"export MNEMOSYNE_PROJECT={old}\n" in look(new)
    assert "MNEMOSYNE_PROJECT" not in look(tmp_path)
