"""Files of the formats that `mnem import` reads, made up in their real shape."""

from __future__ import annotations

import json
import subprocess
import zipfile
from collections.abc import Callable
from dataclasses import dataclass, field
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

Json = dict[str, Any]
MILLISECONDS = 1_773_651_600_000
"""2026-03-16T09:00:00Z."""


@dataclass(frozen=True, slots=True)
class Expected:
    """What a memory has to be; the time as ISO 8601 with its zone, or empty for any."""

    content: str
    session: str
    source: str
    role: str = ""
    created_at: str = ""


@dataclass(frozen=True, slots=True)
class Sample:
    """A source, and what has to be read from it."""

    format: str
    write: Callable[[Path], Path]
    """Writes it into a folder and returns its path."""
    expected: list[Expected] = field(default_factory=list)
    bad: int = 0


# ---------------------------------------------------------------------- JSON


def json_array(folder: Path) -> Path:
    return _json(
        folder / "memories.json",
        [
            {"content": "The ferry leaves at 7:40", "session": "trip", "role": "Ann"},
            {"content": "Pack the tent", "created_at": "2026-03-16T09:00:00+01:00"},
            {"content": "wrong", "colour": "red"},
            {"content": "Pack the tent", "source": "phone"},
        ],
    )


# --------------------------------------------------------------------- chats


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
    return _json(folder / "conversations.json", [chatgpt_conversation()])


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
    return _json(folder / "conversations.json", [claude_conversation()])


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
    return _json(
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
    _json(storage / "session" / "p1" / "ses_1.json", session)
    _json(
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
        _json(storage / "message" / "ses_1" / f"{id}.json", info)
        for number, (kind, text, more) in enumerate(parts):
            part = {"id": f"prt_{number}", "type": kind, "text": text, **more}
            _json(storage / "part" / id / f"prt_{number}.json", part)
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


# ------------------------------------------------------------------ personal


def bash_times(folder: Path) -> Path:
    return _text(
        folder / ".bash_history",
        "#1773651600\nmake test\n#1773651660\nfor i in 1 2\ndo echo $i\ndone\n",
    )


def bash_plain(folder: Path) -> Path:
    return _text(folder / ".bash_history", "make test\nls\nmake test\n")


def zsh(folder: Path) -> Path:
    return _text(
        folder / ".zsh_history",
        ": 1773651600:0;make test\n: 1773651660:3;echo a;\\\necho b\n",
    )


def fish(folder: Path) -> Path:
    return _text(
        folder / "fish_history",
        "- cmd: make test\n  when: 1773651600\n- cmd: echo a\\necho b\n  when: 1773651660\n"
        "  paths:\n    - a\n",
    )


def git_repository(folder: Path) -> Path:
    path = folder / "shop"
    path.mkdir()
    environment = {
        "GIT_CONFIG_GLOBAL": "/dev/null",
        "GIT_CONFIG_SYSTEM": "/dev/null",
        "HOME": str(folder),
        "PATH": "/usr/bin:/bin:/usr/local/bin",
        "GIT_AUTHOR_NAME": "Ann Bäcker",
        "GIT_AUTHOR_EMAIL": "ann@example.org",
        "GIT_COMMITTER_NAME": "Bob",
        "GIT_COMMITTER_EMAIL": "bob@example.org",
    }
    for date, command in (
        ("", ["init", "-q", "-b", "main", "--template="]),
        ("", ["config", "core.fsmonitor", "touch /tmp/mnem-never"]),
        (
            "2026-03-16T09:00:00+01:00",
            ["commit", "-q", "--allow-empty", "-m", "Round tax\n\nHalf to even."],
        ),
        ("2026-03-16T10:00:00+01:00", ["commit", "-q", "--allow-empty", "-m", "Two"]),
    ):
        dates = {"GIT_AUTHOR_DATE": date, "GIT_COMMITTER_DATE": date} if date else {}
        subprocess.run(
            ["git", *command], cwd=path, env={**environment, **dates}, check=True
        )
    return path


def git_log(folder: Path) -> Path:
    return _text(
        folder / "shop.log",
        "commit 1111111111111111111111111111111111111111 (HEAD -> main)\n"
        "Author: Ann <ann@example.org>\nDate:   Mon Mar 16 09:00:00 2026 +0100\n\n"
        "    Round tax\n\n    Half to even.\n\n"
        "commit 2222222222222222222222222222222222222222\nMerge: a b\n"
        "Author: Bob <bob@example.org>\nDate:   never\n\n    Two\n",
    )


# --------------------------------------------------------------------- notes


def note(folder: Path) -> Path:
    (folder / "Vault" / ".obsidian").mkdir(parents=True)
    return _text(
        folder / "Vault" / "Trips" / "Ferry.md",
        "---\r\ntitle: Ferry to Rødby\r\ndate: 2026-03-16T09:00:00+01:00\r\n"
        "tags: [trip, sea]\r\n---\r\nLeaves at 7:40, see [[Harbor|the harbor]]. #booked\r\n",
    )


# ------------------------------------------------------------------- helpers


def _json(path: Path, value: object) -> Path:
    return _text(path, json.dumps(value, ensure_ascii=False))


def _text(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode())
    return path


NINE, A_MINUTE_LATER = "2026-03-16T09:00:00+00:00", "2026-03-16T09:01:00+00:00"

SAMPLES = [
    Sample(
        "json",
        json_array,
        [
            Expected("The ferry leaves at 7:40", "trip", "", "Ann"),
            Expected("Pack the tent", "default", "", "", "2026-03-16T09:00:00+01:00"),
            Expected("Pack the tent", "default", "phone"),
        ],
        bad=1,
    ),
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
    Sample(
        "shell",
        bash_times,
        [
            Expected("make test", "shell:bash", "shell", "user", NINE),
            Expected(
                "for i in 1 2\ndo echo $i\ndone",
                "shell:bash",
                "shell",
                "user",
                A_MINUTE_LATER,
            ),
        ],
    ),
    Sample(
        "shell",
        bash_plain,
        [
            Expected("make test", "shell:bash", "shell", "user"),
            Expected("ls", "shell:bash", "shell", "user"),
            Expected("make test", "shell:bash", "shell", "user"),
        ],
    ),
    Sample(
        "shell",
        zsh,
        [
            Expected("make test", "shell:zsh", "shell", "user", NINE),
            Expected("echo a;\necho b", "shell:zsh", "shell", "user", A_MINUTE_LATER),
        ],
    ),
    Sample(
        "shell",
        fish,
        [
            Expected("make test", "shell:fish", "shell", "user", NINE),
            Expected("echo a\necho b", "shell:fish", "shell", "user", A_MINUTE_LATER),
        ],
    ),
    Sample(
        "git",
        git_repository,
        [
            Expected(
                "Round tax\n\nHalf to even.",
                "",
                "git",
                "Ann Bäcker",
                "2026-03-16T09:00:00+01:00",
            ),
            Expected("Two", "", "git", "Ann Bäcker", "2026-03-16T10:00:00+01:00"),
        ],
    ),
    Sample(
        "git-log",
        git_log,
        [
            Expected(
                "Round tax\n\nHalf to even.",
                "git:shop",
                "git",
                "Ann",
                "2026-03-16T09:00:00+01:00",
            )
        ],
        bad=1,
    ),
    Sample(
        "notes",
        note,
        [
            Expected(
                "Ferry to Rødby\n\nLeaves at 7:40, see [[Harbor|the harbor]]. #booked",
                "notes:Vault",
                "notes",
                "",
                "2026-03-16T09:00:00+01:00",
            )
        ],
    ),
]
