"""`mnem mcp` as a process: it carries messages, bears a missing daemon, and ends with its client."""

import json
import os
import select
import signal
import socket
import subprocess
import threading
import time
from pathlib import Path
from unittest.mock import patch

import pytest
from e2e.daemons import WAIT_S, Daemon, environment, eventually, spawned
from e2e.programs import BIN
from e2e.pumps import Json, Pump, is_running, modules_loaded, pumping, spawn_pump
from e2e.scripted_daemon import answer, read_request, reset_unread, saying, scripted
from support.processes import child_pids

from mnemosyned.agents.mcp import pump
from mnemosyned.agents.mcp.pump import (
    first_root,
    make_error_response,
    read_lines,
)
from mnemosyned.client.address import SocketAddress

pytestmark = [pytest.mark.e2e, pytest.mark.thorough]


@pytest.fixture
def daemon(shared: Daemon) -> Daemon:
    return shared


END_S = 60.0
"""Time within which it is gone after its client."""


def test_it_loads_little_and_nothing_of_the_memory() -> None:
    loaded = modules_loaded("mnemosyned.agents.mcp.pump")
    ours = {name for name in loaded if name.startswith("mnemosyned")}
    assert ours == {
        "mnemosyned",
        "mnemosyned.version",
        "mnemosyned.socket_path",
        "mnemosyned.agents",
        "mnemosyned.agents.mcp",
        "mnemosyned.agents.mcp.pump",
        "mnemosyned.client",
        "mnemosyned.client.address",
        "mnemosyned.client.http",
        "mnemosyned.errors",
    }
    heavy = {"asyncio", "click", "http.client", "json", "msgspec", "pathlib", "re"}
    assert not heavy & loaded
    assert not heavy & modules_loaded("mnemosyned.cli.entry")


def test_an_agent_is_served_to_the_end(daemon: Daemon, tmp_path: Path) -> None:
    with pumping(tmp_path, daemon.socket) as pump:
        assert pump.initialize("codex-mcp-client")["serverInfo"]["name"] == "mnemosyne"
        assert len(pump.ask("tools/list")["result"]["tools"]) == 7
        stored = pump.call("remember", content="The lamp is red.")["structuredContent"]
        found = pump.call("recall", query="lamp")["structuredContent"]["hits"]
        assert [hit["id"] for hit in found] == [stored["id"]]
        assert stored["session"].startswith("codex:")
        assert pump.end() == 0
        assert pump.read() is None


def test_a_window_is_a_session_of_its_own(daemon: Daemon, tmp_path: Path) -> None:
    sessions = set()
    for _ in range(2):
        with pumping(tmp_path, daemon.socket) as pump:
            pump.initialize()
            sessions.add(pump.call("status")["structuredContent"]["session"])
    assert len(sessions) == 2


def test_the_environment_names_the_project(daemon: Daemon, tmp_path: Path) -> None:
    project = tmp_path / "my shop ä%"
    (project / ".git").mkdir(parents=True)
    with pumping(
        tmp_path,
        daemon.socket,
        CLAUDE_PROJECT_DIR=str(project),
        CLAUDE_CODE_SESSION_ID="abc",
    ) as pump:
        pump.initialize("claude-code")
        status = pump.call("status")["structuredContent"]
        assert status["session"] == "claude-code:abc"
        assert status["project"] == str(project)
    with pumping(tmp_path, daemon.socket, directory=project) as pump:
        pump.initialize("cursor-vscode", roots={})  # it is not asked for them
        assert pump.call("status")["structuredContent"]["project"] == str(project)
    with pumping(tmp_path, daemon.socket, MNEMOSYNE_PROJECT="cellar") as pump:
        pump.initialize()
        assert pump.call("status")["structuredContent"]["project"] == "cellar"


def test_a_client_is_asked_for_its_roots(daemon: Daemon, tmp_path: Path) -> None:
    project = tmp_path / "my shop"
    (project / ".git").mkdir(parents=True)
    # A home directory is no project, so that something has to name one.
    with pumping(daemon.home, daemon.socket) as pump:
        pump.initialize(roots={})
        question = pump.read()
        assert question["method"] == "roots/list"
        uri = project.as_uri()
        pump.send(
            {
                "jsonrpc": "2.0",
                "id": question["id"],
                "result": {"roots": [{"uri": uri}]},
            }
        )
        assert pump.call("status")["structuredContent"]["project"] == str(project)


def test_many_requests_at_once_are_all_answered(daemon: Daemon, tmp_path: Path) -> None:
    with pumping(tmp_path, daemon.socket) as pump:
        ids = {
            pump.request("tools/call", name="status", arguments={}) for _ in range(60)
        }
        assert {pump.read()["id"] for _ in range(60)} == ids


def test_answers_come_after_the_end_of_input(daemon: Daemon) -> None:
    lines = [b'{"jsonrpc":"2.0","id":%d,"method":"ping"}' % id for id in range(5)]

    run = daemon.mnem("mcp", stdin=b"\n".join(lines))

    ids = [json.loads(line)["id"] for line in run.stdout.splitlines()]
    assert sorted(ids) == [*range(5)]


def test_junk_is_answered_with_an_error(daemon: Daemon, tmp_path: Path) -> None:
    with pumping(tmp_path, daemon.socket) as pump:
        pump.send(b"{")
        assert pump.read()["error"]["code"] == -32700
        pump.send(b"")
        pump.send(b"\xff\xfe")
        assert pump.read()["error"]["code"] == -32700
        assert pump.ask("lost")["error"]["code"] == -32601
        assert pump.ask("ping")["result"] == {}


def test_progress_comes_before_the_answer(daemon: Daemon, tmp_path: Path) -> None:
    daemon.post("remember", id="m", content="tea at four")
    with pumping(tmp_path, daemon.socket) as pump:
        id = pump.request(
            "tools/call",
            name="forget",
            arguments={"id": "m", "confirm": True},
            _meta={"progressToken": "p"},
        )
        messages: list[Json] = []
        while not messages or "id" not in messages[-1]:
            messages.append(pump.read())
        assert messages[-1]["id"] == id
        assert not messages[-1]["result"]["isError"]
        tokens = {message["params"]["progressToken"] for message in messages[:-1]}
        assert tokens == {"p"}


# ----------------------------------------------------------------- the end


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_signals_end_it_at_once_and_without_a_word(
    daemon: Daemon, tmp_path: Path, number: signal.Signals
) -> None:
    with pumping(tmp_path, daemon.socket) as pump:
        pump.initialize()
        pump.process.send_signal(number)
        assert pump.process.wait(END_S) in (-number, 128 + number)


def test_it_ends_with_its_parent(daemon: Daemon, tmp_path: Path) -> None:
    reading, writing = os.pipe()
    parent = subprocess.Popen(
        ["sh", "-c", f"{BIN / 'mnem'} mcp; true"],
        stdin=reading,
        stdout=subprocess.PIPE,
        env=environment(tmp_path, MNEMOSYNE_SOCKET=str(daemon.socket)),
    )
    os.close(reading)
    assert parent.stdout
    try:
        os.write(writing, b'{"jsonrpc":"2.0","id":1,"method":"ping"}\n')
        assert select.select([parent.stdout], [], [], 20)[0]
        (pump,) = child_pids(parent.pid)
        parent.kill()
        parent.wait()
        eventually(lambda: not is_running(pump), "the pump is gone")
    finally:
        parent.stdout.close()
        os.close(writing)


def test_it_ends_when_nobody_reads_its_answers(daemon: Daemon, tmp_path: Path) -> None:
    with spawn_pump(tmp_path, daemon.socket) as process:
        assert process.stdout
        process.stdout.close()
        Pump(process).request("ping")
        assert process.wait(END_S) == 0


# ----------------------------------------------------------------- small parts


def test_a_line_that_is_too_long_is_passed_over_and_the_next_one_is_read() -> None:
    reading, writing = os.pipe()
    taken = read_lines(reading, parent=os.getppid(), bytes_max=5)
    os.write(writing, b"too long")
    assert next(taken) is None
    os.write(writing, b" still\nnext\n")
    assert next(taken) == b"next"
    os.close(writing)
    assert list(taken) == []
    os.close(reading)


def test_a_failure_names_the_request_and_a_notification_gets_none() -> None:
    assert (
        json.loads(make_error_response(b'{"id":"x","method":"a"}', "why"))["id"] == "x"
    )
    assert make_error_response(b'{"method":"a"}', "why") == b""


@pytest.mark.parametrize(
    ("line", "root"),
    [
        (b'{"id":"x","result":{"roots":[{"uri":"file:///a%20b"}]}}', "/a b"),
        (
            b'{"id":"x","result":{"roots":[{"uri":"https://a"},{"uri":"file:///b"}]}}',
            "/b",
        ),
        (b'{"id":"x","result":{"roots":[]}}', ""),
        (b'{"id":"x","error":{"code":1}}', ""),
        (b"{", ""),
    ],
)
def test_the_first_root_that_is_a_directory_counts(line: bytes, root: str) -> None:
    assert first_root(line) == root


# `mnem mcp` where the daemon is missing, restarts, or hangs up.


def test_without_a_daemon_tools_say_what_to_do(tmp_path: Path) -> None:
    with pumping(tmp_path, tmp_path / "none.sock") as pump:
        assert pump.initialize("codex-mcp-client")["protocolVersion"]
        assert len(pump.ask("tools/list")["result"]["tools"]) == 7
        result = pump.call("recall", query="lamp")
        assert result["isError"]
        assert "Start it with `mnem start`" in result["content"][0]["text"]
        forget = pump.ask(
            "tools/call",
            name="forget",
            arguments={"query": "x"},
            _meta={"progressToken": 1},
        )
        assert forget["result"]["isError"]
        assert pump.end() == 0


def test_a_daemon_that_comes_later_is_used(tmp_path: Path, room: Path) -> None:
    options = (f"--database={tmp_path / 'm.db'}", f"--socket={room / 'd.sock'}")
    with pumping(tmp_path, room / "d.sock") as pump:
        pump.initialize("codex-mcp-client")
        assert pump.call("status")["isError"]
        with spawned(*options, home=tmp_path, log=room / "log") as first:
            eventually(lambda: not pump.call("status")["isError"], "the daemon answers")
            assert pump.call("status")["structuredContent"]["client"] == "codex"
            first.terminate()
            first.wait(END_S)
        with spawned(*options, home=tmp_path, log=room / "log"):
            assert not pump.call("remember", content="The lamp is red.")["isError"]


def test_a_lost_daemon_has_one_wait(
    room: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pump, "RESTART_S", 0.2)
    with patch.object(pump, "time", wraps=time) as spied:
        door = pump.PumpedDaemon(SocketAddress(str(room / "d.sock")))

        def post() -> None:
            connection, _ = door.post({}, b"{}", on_connection=lambda _: None)
            connection.close()

        with scripted(room / "d.sock", saying(answer())):
            post()
        waits = []
        for _ in range(2):
            with pytest.raises(pump.DaemonLost, match="mnem start"):
                post()
            waits.append(spied.sleep.call_count)

    assert 0 < waits[0] == waits[1]


def test_an_older_daemon_is_named_as_the_reason(tmp_path: Path, room: Path) -> None:
    error = {"error": {"code": "unknown_verb", "message": "no"}}
    with (
        scripted(room / "d.sock", saying(answer(error, status=404))),
        pumping(tmp_path, room / "d.sock") as pump,
    ):
        text = pump.call("status")["content"][0]["text"]
        assert "older than this program; restart it" in text


def test_a_message_that_was_not_read_is_sent_again(tmp_path: Path, room: Path) -> None:
    done = answer({"jsonrpc": "2.0", "id": 1, "result": {"here": True}})
    with (
        scripted(room / "d.sock", reset_unread, saying(done)),
        pumping(tmp_path, room / "d.sock") as pump,
    ):
        assert pump.ask("ping")["result"] == {"here": True}


def test_a_message_that_was_read_is_not_repeated(tmp_path: Path, room: Path) -> None:
    def hang_up(connection: socket.socket) -> None:
        read_request(connection)

    with scripted(room / "d.sock", hang_up), pumping(tmp_path, room / "d.sock") as pump:
        result = pump.call("remember", content="The lamp is red.")
        assert result["isError"]
        assert "look whether it was done" in result["content"][0]["text"]


def test_a_cancelled_call_is_not_answered(tmp_path: Path, room: Path) -> None:
    taken = threading.Event()

    def hang(connection: socket.socket) -> None:
        read_request(connection)
        taken.set()
        assert connection.recv(1) == b"", "the client hangs up"

    done = answer({"jsonrpc": "2.0", "id": 2, "result": {}})
    with (
        scripted(room / "d.sock", hang, saying(done)),
        pumping(tmp_path, room / "d.sock") as pump,
    ):
        id = pump.request("tools/call", name="recall", arguments={"query": "x"})
        assert taken.wait(WAIT_S)
        pump.notify("notifications/cancelled", requestId=id)
        assert pump.ask("ping")["id"] == 2
        assert pump.end() == 0
        assert pump.read() is None
