"""Transcripts of another machine, sent in parts: each message is stored once, whatever the parts."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import msgspec
import pytest
from support.agents import SAID, TALK, claude_line, texts, write_lines

from mnemosyned.agents.hooks import remote, spool
from mnemosyned.agents.hooks.client import TimeIsUp
from mnemosyned.agents.hooks.remote import (
    describe_transcript,
    find_directory,
)
from mnemosyned.agents.hooks.service import HookEnvelope, HookService
from mnemosyned.storage.sqlite.store import SqliteStore


class Link:
    """The server as the hook sees it, without the network between them."""

    post_late = remote.Server.post_late

    def __init__(self, hooks: HookService, place: str = "") -> None:
        self._hooks = hooks
        self.place = place
        self.is_urgent = False
        self.remote = SimpleNamespace()
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
def link(hooks: HookService, tmp_path: Path) -> Link:
    return Link(hooks, str(tmp_path / "spool@server"))


def test_a_prompt_sends_no_lines_and_the_end_of_a_turn_sends_each_once(
    link: Link, store: SqliteStore, transcript: Path
) -> None:
    write_lines(transcript, TALK)
    call(link, transcript, "UserPromptSubmit")
    assert (link.posts, texts(store, "claude-code:s1")) == (1, [])

    call(link, transcript)
    call(link, transcript)
    write_lines(
        transcript, [claude_line("user", "Then keep it longer.", uuid="u3", minutes=2)]
    )
    call(link, transcript)

    assert texts(store, "claude-code:s1") == [*SAID, "Then keep it longer."]
    session = store.agents.session("claude-code:s1")
    assert session is not None
    assert session.position == transcript.stat().st_size
    assert (session.transcript, session.project) == ("", "github.com/ann/shop")


def test_a_prompt_that_waited_brings_what_was_said_before_it(
    link: Link, store: SqliteStore, transcript: Path
) -> None:
    write_lines(transcript, TALK)
    late = {**envelope_of(transcript, "UserPromptSubmit"), "late": True}

    assert cast("remote.Server", link).post_late(json.dumps(late).encode()) == 200

    assert texts(store, "claude-code:s1") == SAID


def test_lines_that_could_not_be_sent_wait_for_another_hook(
    link: Link, store: SqliteStore, transcript: Path
) -> None:
    write_lines(transcript, TALK)
    envelope = envelope_of(transcript, "SessionEnd")
    server = cast("remote.Server", link)
    link.fails = True
    with pytest.raises(TimeIsUp):
        remote.send_or_keep(server, envelope, str(transcript), 0)
    (Path(link.place) / "a-damaged").write_bytes(b"\0\0\0")
    link.fails = False

    spool.hand_in(link.place, server.post_late)

    assert texts(store, "claude-code:s1") == SAID
    assert spool.list_waiting(link.place) == []
    remote.send_or_keep(server, envelope, str(transcript), 0)
    assert spool.list_waiting(link.place) == []


def test_no_alarm_ends_the_renewal_of_a_token(
    link: Link, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("fork", "setsid", "dup2"):  # as in the process that a hook leaves
        monkeypatch.setattr(os, name, lambda *_: 0)
    alarms: list[float] = []

    def renew() -> None:
        alarms.append(signal.getitimer(signal.ITIMER_REAL)[0])

    due = SimpleNamespace(is_renewal_due=True)
    link.remote = SimpleNamespace(saved=due, renew_if_due=renew)
    try:
        remote._send_rest(cast("remote.Server", link), {}, "")  # noqa: SLF001 a whole hook would fork
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)

    assert alarms == [0]


@pytest.mark.parametrize("size", [40, 200, 1_000])
def test_parts_of_any_size_are_each_sent_once(
    link: Link,
    store: SqliteStore,
    transcript: Path,
    size: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(remote, "PART_BYTES", size)
    said = [f"Line {number} is about the cart." for number in range(6)]
    lines = [claude_line("user", text, uuid=f"u{text}") for text in said]
    write_lines(transcript, lines)
    with transcript.open("a") as file:
        file.write('{"type": "user", "not": "whole')

    call(link, transcript)

    assert texts(store, "claude-code:s1") == said


def test_a_file_in_the_place_of_another_is_read_from_its_beginning(
    link: Link, store: SqliteStore, transcript: Path
) -> None:
    write_lines(transcript, TALK)
    call(link, transcript)
    kept = transcript.with_name("kept.jsonl")
    transcript.rename(kept)
    write_lines(
        transcript, [*TALK, claude_line("user", "One more.", uuid="u9", minutes=2)]
    )

    call(link, transcript)

    assert texts(store, "claude-code:s1") == [*SAID, "One more."]


def test_only_a_regular_file_of_the_user_is_described(transcript: Path) -> None:
    write_lines(transcript, TALK)
    link, fifo = transcript.with_name("a.jsonl"), transcript.with_name("b.jsonl")
    link.symlink_to(transcript)
    os.mkfifo(fifo)

    for path in (str(link), str(fifo), "", str(transcript.parent), "/none\0.jsonl"):
        assert describe_transcript(path) is None


def test_only_what_a_person_or_an_agent_said_leaves_the_machine(
    link: Link, transcript: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: list[bytes] = []
    post = link.post

    def listen(body: bytes) -> tuple[int, bytes]:
        sent.append(body)
        return post(body)

    monkeypatch.setattr(link, "post", listen)
    result = {"type": "user", "toolUseResult": {"stdout": "the key is 4711"}}
    write_lines(transcript, [*TALK, result])
    other = transcript.parent / "notes.txt"
    write_lines(other, TALK)

    call(link, transcript)
    call(link, other)

    assert SAID[1].encode() in b"".join(sent)
    assert b"4711" not in b"".join(sent)
    assert len(sent) == 3  # nothing of a file that is no transcript


def test_the_directory_is_the_projects_where_the_tool_names_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("CLAUDE_PROJECT_DIR", raising=False)
    monkeypatch.chdir(tmp_path)

    assert find_directory({}) == str(tmp_path)
    assert find_directory({"workspace_roots": ["file:///w/a"]}) == "/w/a"
    assert find_directory({"cwd": "/w/b", "workspace_roots": ["/w/a"]}) == "/w/b"
    monkeypatch.setenv("CLAUDE_PROJECT_DIR", "/w/c")
    assert find_directory({"cwd": "/w/d"}) == "/w/c"


def test_a_remote_call_has_no_file_of_the_daemons_machine_read(
    hooks: HookService, store: SqliteStore, transcript: Path, tmp_path: Path
) -> None:
    write_lines(transcript, TALK)
    (tmp_path / ".git").mkdir()
    payload = {
        "hook_event_name": "Stop",
        "session_id": "s1",
        "cwd": str(tmp_path),
        "transcript_path": str(transcript),
    }

    _, wanted = hooks.handle_call(HookEnvelope(payload=payload), is_remote=True)
    hooks.capture.drain()

    assert wanted is None
    session = store.agents.latest(["agent:s1", "claude-code:s1"], 10)
    assert list(session) == []
