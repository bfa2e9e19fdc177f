"""Transcripts of another machine, sent in parts: each message is stored once, whatever the parts."""

import json
import os
import signal
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import msgspec
import pytest
from support.agents import SAID, TALK, Shop, claude_line, write_lines

from mnemosyned.agents.hooks import remote, spool
from mnemosyned.agents.hooks.client import TimeIsUp
from mnemosyned.agents.hooks.remote import describe_transcript, find_directories
from mnemosyned.agents.hooks.service import HookEnvelope, HookService


class Link:
    """The server as the hook sees it, without the network between them."""

    post_late = remote.Server.post_late

    def __init__(self, hooks: HookService, place: str = "") -> None:
        self._hooks = hooks
        self.place = place
        self.is_urgent = False
        self.settings = None
        self.remote = SimpleNamespace(saved=None, renew_if_due=lambda: None)
        self.fails = False
        self.wanted: int | None = None
        self.posts = 0

    def post(self, body: bytes) -> tuple[int, bytes]:
        self.posts += 1
        if self.fails:
            raise TimeIsUp
        envelope = msgspec.json.decode(body, type=HookEnvelope)
        answer, wanted = self._hooks.handle_call(envelope, is_remote=True)
        self.wanted = None if wanted is None else int(wanted.partition(";")[0])
        return 200, json.dumps(answer).encode()


def envelope_of(transcript: Path, event: str) -> dict[str, Any]:
    payload = {
        "hook_event_name": event,
        "session_id": "s1",
        "cwd": "/w/shop",
        "transcript_path": str(transcript),
        "prompt": "What is empty?",
    }
    return {
        "payload": payload,
        "environment": {"CLAUDE_PROJECT_DIR": "/w/shop"},
        "project": "github.com/ann/shop",
        "transcript": describe_transcript(str(transcript)),
    }


def call(link: Link, transcript: Path, event: str = "Stop") -> None:
    """A hook's call, and then the lines that the server wants."""
    envelope = envelope_of(transcript, event)
    link.post(json.dumps(envelope).encode())
    if link.wanted is not None:
        server = cast("remote.Server", link)
        assert remote.send_messages(server, envelope, str(transcript), link.wanted)


@pytest.fixture
def link(shop: Shop) -> Link:
    return Link(shop.hooks, str(shop.home / "spool@server"))


def test_the_end_of_a_turn_sends_each_line_once(shop: Shop, link: Link) -> None:
    shop.write(*TALK)
    call(link, shop.transcript, "UserPromptSubmit")
    assert (link.posts, shop.texts()) == (1, [])

    call(link, shop.transcript)
    call(link, shop.transcript)
    shop.write(claude_line("user", "Then keep it longer.", uuid="u3", minutes=2))
    call(link, shop.transcript)

    assert shop.texts() == [*SAID, "Then keep it longer."]
    session = shop.store.agents.session("claude-code:s1")
    assert session is not None
    assert session.position == shop.transcript.stat().st_size
    assert (session.transcript, session.project) == ("", "github.com/ann/shop")


def test_a_prompt_that_waited_brings_what_was_said(shop: Shop, link: Link) -> None:
    shop.write(*TALK)
    late = {**envelope_of(shop.transcript, "UserPromptSubmit"), "late": True}

    assert cast("remote.Server", link).post_late(json.dumps(late).encode()) == 200

    assert shop.texts() == SAID


def test_a_call_that_waited_brings_the_transcript_of_its_own_environment(
    shop: Shop, link: Link, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop.write(*TALK)
    late = {**envelope_of(shop.transcript, "SessionEnd"), "late": True}
    path = late["payload"].pop("transcript_path")
    late["environment"] = {"CURSOR_TRANSCRIPT_PATH": path}
    monkeypatch.setenv("CURSOR_TRANSCRIPT_PATH", str(tmp_path / "another.jsonl"))

    assert cast("remote.Server", link).post_late(json.dumps(late).encode()) == 200

    sessions = shop.store.agents.sessions_of("github.com/ann/shop", 1)
    assert shop.texts(*sessions) == SAID


def test_lines_that_were_not_sent_wait_for_another_hook(shop: Shop, link: Link) -> None:
    shop.write(*TALK)
    envelope = envelope_of(shop.transcript, "SessionEnd")
    server = cast("remote.Server", link)
    link.fails = True
    with pytest.raises(TimeIsUp):
        remote.send_or_keep(server, envelope, str(shop.transcript), 0)
    (Path(link.place) / "a-damaged").write_bytes(b"\0\0\0")
    link.fails = False

    spool.hand_in(link.place, server.post_late)

    assert shop.texts() == SAID
    assert spool.list_waiting(link.place) == []
    remote.send_or_keep(server, envelope, str(shop.transcript), 0)
    assert spool.list_waiting(link.place) == []


def test_lines_that_come_after_the_hook_wait_if_the_server_has_gone(
    shop: Shop, link: Link, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop.write(TALK[0])
    envelope = envelope_of(shop.transcript, "Stop")
    link.post(json.dumps(envelope).encode())
    in_child(monkeypatch)

    def write_late(_: float) -> None:
        shop.write(*TALK[1:])
        link.fails = True

    monkeypatch.setattr(time, "sleep", write_late)
    with pytest.raises(TimeIsUp):
        send_rest(link, envelope)
    assert shop.texts() == SAID[:1]
    link.fails = False

    spool.hand_in(link.place, cast("remote.Server", link).post_late)

    assert shop.texts() == SAID


def test_a_file_that_comes_after_the_hook_is_sent(
    shop: Shop, link: Link, monkeypatch: pytest.MonkeyPatch
) -> None:
    envelope = envelope_of(shop.transcript, "Stop")
    link.post(json.dumps(envelope).encode())
    in_child(monkeypatch)
    monkeypatch.setattr(time, "sleep", lambda _: shop.write(*TALK))

    send_rest(link, envelope)

    assert shop.texts() == SAID
    assert spool.list_waiting(link.place) == []


def in_child(monkeypatch: pytest.MonkeyPatch) -> None:
    """Continue as the process that a hook leaves, which takes a fork."""
    for name in ("fork", "setsid", "dup2"):
        monkeypatch.setattr(os, name, lambda *_: 0)


def send_rest(link: Link, envelope: dict[str, Any]) -> None:
    path = envelope.get("payload", {}).get("transcript_path", "")
    try:
        remote._send_rest(cast("remote.Server", link), envelope, path)  # noqa: SLF001 a whole hook would fork
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


def test_no_alarm_ends_the_renewal_of_a_token(
    link: Link, monkeypatch: pytest.MonkeyPatch
) -> None:
    in_child(monkeypatch)
    alarms: list[float] = []

    def renew() -> None:
        alarms.append(signal.getitimer(signal.ITIMER_REAL)[0])

    due = SimpleNamespace(is_renewal_due=True)
    link.remote = SimpleNamespace(saved=due, renew_if_due=renew)
    send_rest(link, {})

    assert alarms == [0]


@pytest.mark.parametrize("size", [40, 200, 1_000])
def test_parts_of_any_size_are_each_sent_once(
    shop: Shop, link: Link, size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(remote, "PART_BYTES", size)
    said = [f"Line {number} is about the cart." for number in range(6)]
    shop.write(*(claude_line("user", text, uuid=f"u{text}") for text in said))
    with shop.transcript.open("a") as file:
        file.write('{"type": "user", "not": "whole')

    call(link, shop.transcript)

    assert shop.texts() == said


def test_a_file_that_replaced_another_is_read_whole(shop: Shop, link: Link) -> None:
    shop.write(*TALK)
    call(link, shop.transcript)
    kept = shop.transcript.with_name("kept.jsonl")
    shop.transcript.rename(kept)
    shop.write(*TALK, claude_line("user", "One more.", uuid="u9", minutes=2))

    call(link, shop.transcript)

    assert shop.texts() == [*SAID, "One more."]


def test_only_a_regular_file_of_the_user_is_described(shop: Shop) -> None:
    shop.write(*TALK)
    folder = shop.transcript.parent
    (folder / "a.jsonl").symlink_to(shop.transcript)
    os.mkfifo(folder / "b.jsonl")

    for path in (
        f"{folder}/a.jsonl",
        f"{folder}/b.jsonl",
        "",
        f"{folder}",
        "/none\0.jsonl",
    ):
        assert describe_transcript(path) is None


def test_only_what_a_person_or_an_agent_said_leaves_the_machine(
    shop: Shop, link: Link, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: list[bytes] = []
    post = link.post

    def listen(body: bytes) -> tuple[int, bytes]:
        sent.append(body)
        return post(body)

    monkeypatch.setattr(link, "post", listen)
    result = {"type": "user", "toolUseResult": {"stdout": "the key is 4711"}}
    shop.write(*TALK, result)
    other = shop.transcript.parent / "notes.txt"
    write_lines(other, TALK)

    call(link, shop.transcript)
    call(link, other)

    assert SAID[1].encode() in b"".join(sent)
    assert b"4711" not in b"".join(sent)
    assert len(sent) == 3  # nothing of a file that is no transcript


def test_the_directory_is_the_projects_where_the_tool_names_it() -> None:
    assert find_directories({}, {}, "/w/own") == ["/w/own"]
    named = {"workspace_roots": ["file:///w/a"]}
    assert find_directories(named, {}, "/w/own") == ["/w/a"]
    assert find_directories({**named, "cwd": "/w/b"}, {}, "/w/own") == ["/w/b"]
    variables = {"CLAUDE_PROJECT_DIR": "/w/c"}
    assert find_directories({"cwd": "/w/d"}, variables, "") == ["/w/c", "/w/d"]


def test_a_remote_call_has_no_file_of_the_daemons_machine_read(shop: Shop) -> None:
    shop.write(*TALK)
    (shop.home / ".git").mkdir()
    payload = {
        "hook_event_name": "Stop",
        "session_id": "s1",
        "cwd": str(shop.home),
        "transcript_path": str(shop.transcript),
    }

    _, wanted = shop.hooks.handle_call(HookEnvelope(payload=payload), is_remote=True)
    shop.hooks.capture.drain()

    assert wanted == "0"  # of the caller's machine
    session = shop.store.agents.latest(["agent:s1", "claude-code:s1"], 10)
    assert list(session) == []


def test_a_project_that_gets_an_origin_keeps_what_is_known(
    shop: Shop, link: Link
) -> None:
    envelope = envelope_of(shop.transcript, "UserPromptSubmit")
    link.post(json.dumps(envelope | {"project": "/w/shop"}).encode())
    later = envelope["payload"] | {"session_id": "s2"}
    link.post(json.dumps(envelope | {"payload": later, "former": ["/w/shop"]}).encode())

    assert set(shop.store.agents.project_sessions("github.com/ann/shop", 9)) == {
        "claude-code:s1",
        "claude-code:s2",
    }
