"""`mnem mcp` where the daemon is missing, restarts, or hangs up."""

import socket
import time
from contextlib import ExitStack
from pathlib import Path
from unittest.mock import patch

import pytest
from e2e.daemons import eventually, short_room, spawn
from e2e.programs import Process
from e2e.pumps import pumping
from e2e.scripted_daemon import answer, read_request, reset_unread, saying, scripted

from mnemosyned.agents.mcp import pump

pytestmark = [pytest.mark.e2e, pytest.mark.thorough]


def test_without_a_daemon_the_handshake_works_and_tools_say_what_to_do(
    tmp_path: Path,
) -> None:
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


def test_a_daemon_that_comes_later_is_used_and_knows_the_client(tmp_path: Path) -> None:
    with short_room() as room, pumping(tmp_path, room / "d.sock") as pump:
        pump.initialize("codex-mcp-client")
        assert pump.call("status")["isError"]
        process = spawn(
            *("--database", str(tmp_path / "m.db"), "--socket", str(room / "d.sock")),
            home=tmp_path,
            log=room / "log",
        )
        try:
            eventually(lambda: not pump.call("status")["isError"], "the daemon answers")
            assert pump.call("status")["structuredContent"]["client"] == "codex"
        finally:
            process.kill()
            process.wait(20)


def test_a_daemon_that_restarts_is_not_noticed(tmp_path: Path) -> None:
    with short_room() as room, ExitStack() as ending:
        path = room / "d.sock"

        def start_daemon() -> Process:
            options = ("--database", str(tmp_path / "m.db"), "--socket", str(path))
            daemon = spawn(*options, home=tmp_path, log=room / "log")
            ending.callback(daemon.wait, 20)
            ending.callback(daemon.kill)
            return daemon

        first = start_daemon()
        with pumping(tmp_path, path) as pump:
            eventually(lambda: not pump.call("status")["isError"], "the daemon answers")
            first.terminate()
            first.wait(20)
            start_daemon()
            assert not pump.call("remember", content="The lamp is red.")["isError"]


def test_a_daemon_that_does_not_come_back_is_waited_for_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(pump, "RESTART_S", 0.2)
    with (
        short_room() as room,
        patch.object(pump, "time", wraps=time) as spied,
    ):
        door = pump.PumpedDaemon(pump.SocketEndpoint(str(room / "d.sock")))

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


def test_an_older_daemon_is_named_as_the_reason(tmp_path: Path) -> None:
    with short_room() as room:
        refusal = answer(
            {"error": {"code": "unknown_verb", "message": "no"}}, status=404
        )
        with (
            scripted(room / "d.sock", saying(refusal)),
            pumping(tmp_path, room / "d.sock") as pump,
        ):
            text = pump.call("status")["content"][0]["text"]
            assert "older than this program; restart it" in text


def test_a_message_that_was_not_read_is_sent_again(tmp_path: Path) -> None:
    done = answer({"jsonrpc": "2.0", "id": 1, "result": {"here": True}})
    with (
        short_room() as room,
        scripted(room / "d.sock", reset_unread, saying(done)),
        pumping(tmp_path, room / "d.sock") as pump,
    ):
        assert pump.ask("ping")["result"] == {"here": True}


def test_a_message_that_may_have_been_done_is_not_sent_again(tmp_path: Path) -> None:
    def hang_up(connection: socket.socket) -> None:
        read_request(connection)

    with (
        short_room() as room,
        scripted(room / "d.sock", hang_up),
        pumping(tmp_path, room / "d.sock") as pump,
    ):
        result = pump.call("remember", content="The lamp is red.")
        assert result["isError"]
        assert "look whether it was done" in result["content"][0]["text"]


def test_a_cancelled_call_is_not_answered_and_others_go_on(tmp_path: Path) -> None:
    def hang(connection: socket.socket) -> None:
        read_request(connection)
        assert connection.recv(1) == b"", "the client hangs up"

    done = answer({"jsonrpc": "2.0", "id": 2, "result": {}})
    with (
        short_room() as room,
        scripted(room / "d.sock", hang, saying(done)),
        pumping(tmp_path, room / "d.sock") as pump,
    ):
        id = pump.request("tools/call", name="recall", arguments={"query": "x"})
        time.sleep(0.2)  # until the daemon has it
        pump.notify("notifications/cancelled", requestId=id)
        assert pump.ask("ping")["id"] == 2
        assert pump.end() == 0
        assert pump.read() is None
