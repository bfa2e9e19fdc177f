"""Exports of chat services and transcripts of agents' tools, made up in their real shape."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

from support.agents import (
    claude_line,
    codex_event,
    codex_item,
    codex_meta,
    gemini_line,
    write_lines,
)
from support.import_samples import (
    A_MINUTE_LATER,
    NINE,
    Expected,
    Sample,
    write_json,
)

Json = dict[str, Any]
MILLISECONDS = 1_773_651_600_000
"""2026-03-16T09:00:00Z."""


def chatgpt_conversation() -> Json:
    """A conversation with a prompt that was edited, a hidden message, a tool and a picture."""
    hidden = {"is_visually_hidden_from_conversation": True}
    picture = {
        "content_type": "image_asset_pointer",
        "asset_pointer": "file-service://x",
    }
    nodes = [
        ("root", None, None),
        ("sys", "root", _gpt("sys", "system", [""], metadata=hidden)),
        ("ctx", "sys", _gpt("ctx", "user", ["About me"], metadata=hidden)),
        ("old", "ctx", _gpt("old", "user", ["Which bot should I buy?"])),
        ("old-a", "old", _gpt("old-a", "assistant", ["A robot?"])),
        ("q", "ctx", _gpt("q", "user", [picture, "Which boat should I buy?"])),
        ("call", "q", _gpt("call", "assistant", ["search()"], recipient="web")),
        ("tool", "call", _gpt("tool", "tool", ["10 results"])),
        ("a", "tool", _gpt("a", "assistant", ["A small one first."], minutes=1)),
    ]
    mapping = {
        id: {
            "id": id,
            "message": message,
            "parent": parent,
            "children": [each for each, above, _ in nodes if above == id],
        }
        for id, parent, message in nodes
    }
    return {
        "title": "Boats",
        "create_time": MILLISECONDS / 1000,
        "update_time": MILLISECONDS / 1000 + 60,
        "mapping": mapping,
        "current_node": "a",
        "conversation_id": "c0ffee",
        "id": "c0ffee",
    }


def _gpt(
    id: str, role: str, parts: list[Any], *, minutes: float = 0, **more: object
) -> Json:
    kind = "multimodal_text" if any(isinstance(p, dict) for p in parts) else "text"
    return {
        "id": id,
        "author": {"role": role, "name": None, "metadata": {}},
        "create_time": MILLISECONDS / 1000 + 60 * minutes,
        "content": {"content_type": kind, "parts": parts},
        "status": "finished_successfully",
        "weight": 1.0,
        "metadata": {},
        "recipient": "all",
        **more,
    }


def chatgpt(folder: Path) -> Path:
    return write_json(folder / "conversations.json", [chatgpt_conversation()])


def chatgpt_zip(folder: Path) -> Path:
    path = folder / "export.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("user.json", "{}")
        archive.writestr("chat.html", "<html>")
        archive.writestr("conversations.json", json.dumps([chatgpt_conversation()]))
    return path


CHATGPT = [
    Expected(
        "[image]\nWhich boat should I buy?",
        "chatgpt:c0ffee",
        "chatgpt",
        "user",
        "2026-03-16T09:00:00+00:00",
    ),
    Expected(
        "A small one first.",
        "chatgpt:c0ffee",
        "chatgpt",
        "assistant",
        "2026-03-16T09:01:00+00:00",
    ),
]


def claude_conversation() -> Json:
    return {
        "uuid": "5a1e",
        "name": "Sauerteig",
        "summary": "",
        "created_at": "2026-03-16T09:00:00.000000Z",
        "updated_at": "2026-03-16T09:01:00.000000Z",
        "account": {"uuid": "acc"},
        "chat_messages": [
            {
                "uuid": "m1",
                "text": "Warum geht er nicht auf?",
                "content": [{"type": "text", "text": "Warum geht er nicht auf?"}],
                "sender": "human",
                "created_at": "2026-03-16T09:00:00.000000Z",
                "attachments": [
                    {"file_name": "rezept.txt", "extracted_content": "500 g Mehl"}
                ],
                "files": [],
            },
            {
                "uuid": "m2",
                "text": "",
                "content": [
                    {"type": "thinking", "thinking": "hm"},
                    {"type": "tool_use", "name": "search", "input": {}},
                    {"type": "text", "text": "Zu kalt."},
                ],
                "sender": "assistant",
                "created_at": "2026-03-16T09:01:00.000000Z",
                "attachments": [],
                "files": [],
            },
        ],
    }


def claude_zip(folder: Path) -> Path:
    path = folder / "data.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("users.json", "[]")
        archive.writestr("conversations.json", json.dumps([claude_conversation()]))
    return path


def claude_export(folder: Path) -> Path:
    return write_json(folder / "conversations.json", [claude_conversation()])


CLAUDE = [
    Expected(
        "Warum geht er nicht auf?\n\n[rezept.txt]\n500 g Mehl",
        "claude:5a1e",
        "claude",
        "user",
        "2026-03-16T09:00:00+00:00",
    ),
    Expected(
        "Zu kalt.", "claude:5a1e", "claude", "assistant", "2026-03-16T09:01:00+00:00"
    ),
]


def claude_code(folder: Path) -> Path:
    path = folder / ".claude" / "projects" / "-w-shop" / "s1.jsonl"
    lines: list[Json | str] = [
        {"type": "summary", "summary": "Cart", "leafUuid": "u2"},
        claude_line("user", "Why is the cart empty?", uuid="u1", cwd="/w/shop"),
        "{cut off\n",
        claude_line("assistant", "The cookie expires.", uuid="u2", minutes=1),
    ]
    return write_lines(path, lines)


def codex(folder: Path) -> Path:
    path = folder / "rollout-2026-03-16T09-00-00-0199.jsonl"
    lines: list[Json | str] = [
        codex_meta(),
        codex_item("user", "Fix the tax rounding"),
        codex_event("user_message", "Fix the tax rounding"),
        codex_event("agent_message", "Rounded half to even.", minutes=1),
    ]
    return write_lines(path, lines)


def gemini(folder: Path) -> Path:
    return write_json(
        folder / ".gemini" / "tmp" / "ab" / "chats" / "session-2026-03-16.json",
        {
            "sessionId": "g1",
            "projectHash": "ab",
            "startTime": "2026-03-16T09:00:00.000Z",
            "messages": [
                gemini_line("user", "Rename the module", id="1"),
                gemini_line("gemini", "Renamed it.", id="2", minutes=1),
            ],
        },
    )


def opencode_files(folder: Path) -> Path:
    storage = folder / "opencode" / "storage"
    session = {"id": "ses_1", "directory": "/w/shop", "title": "Cart", "version": "1"}
    write_json(storage / "session" / "p1" / "ses_1.json", session)
    write_json(
        storage / "session" / "p1" / "ses_2.json",
        {**session, "id": "ses_2", "parentID": "ses_1"},
    )
    for id, role, parts in (
        ("msg_1", "user", [("text", "Empty the cart", {})]),
        (
            "msg_2",
            "assistant",
            [
                ("tool", "x", {}),
                ("text", "Read", {"synthetic": True}),
                ("text", "Done: it is empty.", {}),
            ],
        ),
    ):
        created = MILLISECONDS if id == "msg_1" else MILLISECONDS + 60_000
        info = {
            "id": id,
            "sessionID": "ses_1",
            "role": role,
            "time": {"created": created},
        }
        write_json(storage / "message" / "ses_1" / f"{id}.json", info)
        for number, (kind, text, more) in enumerate(parts):
            part = {"id": f"prt_{number}", "type": kind, "text": text, **more}
            write_json(storage / "part" / id / f"prt_{number}.json", part)
    return folder / "opencode"


OPENCODE = [
    Expected(
        "Empty the cart",
        "opencode:ses_1",
        "opencode",
        "user",
        "2026-03-16T09:00:00+00:00",
    ),
    Expected(
        "Done: it is empty.",
        "opencode:ses_1",
        "opencode",
        "assistant",
        "2026-03-16T09:01:00+00:00",
    ),
]


CHATS = [
    Sample("chatgpt", chatgpt, CHATGPT),
    Sample("chatgpt", chatgpt_zip, CHATGPT),
    Sample("claude", claude_export, CLAUDE),
    Sample("claude", claude_zip, CLAUDE),
    Sample(
        "transcript",
        claude_code,
        [
            Expected(
                "Why is the cart empty?", "claude-code:s1", "claude-code", "user", NINE
            ),
            Expected(
                "The cookie expires.",
                "claude-code:s1",
                "claude-code",
                "assistant",
                A_MINUTE_LATER,
            ),
        ],
        bad=1,
    ),
    Sample(
        "transcript",
        codex,
        [
            Expected("Fix the tax rounding", "codex:0199", "codex", "user", NINE),
            Expected(
                "Rounded half to even.",
                "codex:0199",
                "codex",
                "assistant",
                A_MINUTE_LATER,
            ),
        ],
    ),
    Sample(
        "transcript",
        gemini,
        [
            Expected("Rename the module", "gemini:g1", "gemini", "user", NINE),
            Expected("Renamed it.", "gemini:g1", "gemini", "assistant", A_MINUTE_LATER),
        ],
    ),
    Sample("opencode-files", opencode_files, OPENCODE),
]
