"""Stores of other memory programs, made up with the tables that the programs make."""

from __future__ import annotations

import json
import sqlite3
import zipfile
from collections.abc import Iterable, Sequence
from contextlib import closing
from pathlib import Path

from support.import_chats import MILLISECONDS, OPENCODE
from support.import_samples import NINE, Expected, Sample

MEMORY_COLUMNS = (
    "id TEXT PRIMARY KEY, content TEXT NOT NULL, source TEXT, timestamp TEXT, "
    "session_id TEXT DEFAULT 'default', importance REAL DEFAULT 0.5, metadata_json TEXT, "
    "created_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP"
)


def database(
    path: Path, tables: Sequence[str], rows: Iterable[tuple[str, Sequence[object]]] = ()
) -> Path:
    with closing(sqlite3.connect(path)) as connection:
        for table in tables:
            connection.execute(f"CREATE TABLE {table}")
        for table, values in rows:
            marks = ", ".join("?" * len(values))
            connection.execute(f"INSERT INTO {table} VALUES ({marks})", values)
        connection.commit()
    return path


def mnemosyne_memory(folder: Path) -> Path:
    """A memory, a summary of it, and a summary whose original is gone."""
    kept = ("w1", "Port 6543", "cli", NINE, "s", 0.8, '{"a": 1}', None)
    return database(
        folder / "mnemosyne.db",
        [
            f"working_memory ({MEMORY_COLUMNS}, memory_type TEXT)",
            f"memories ({MEMORY_COLUMNS})",
            (
                "episodic_memory (rowid INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT UNIQUE NOT NULL, "
                "content TEXT, source TEXT, timestamp TEXT, session_id TEXT, importance REAL, "
                "metadata_json TEXT, summary_of TEXT DEFAULT '', created_at TIMESTAMP)"
            ),
        ],
        [
            ("working_memory", (*kept, "context")),
            ("memories", kept),
            (
                "episodic_memory",
                (1, "e1", "Ports", "x", NINE, "s", 0.5, "{}", "w1", None),
            ),
            (
                "episodic_memory",
                (2, "e2", "Boats", "x", NINE, "s", 0.5, "{}", "w0,w9", None),
            ),
        ],
    )


def mnemosyne_memory_export(folder: Path) -> Path:
    path = folder / "backup.json"
    row = {
        "id": "w1",
        "content": "Port 6543",
        "source": "cli",
        "timestamp": NINE,
        "session_id": "s",
    }
    export = {
        "mnemosyne_export": {"version": "1.3"},
        "working_memory": [row],
        "triples": [],
    }
    path.write_text(json.dumps(export))
    return path


def mcp_memory_service(folder: Path) -> Path:
    moment = MILLISECONDS / 1000
    return database(
        folder / "sqlite_vec.db",
        [
            (
                "memories (id INTEGER PRIMARY KEY AUTOINCREMENT, content_hash TEXT UNIQUE NOT NULL, "
                "content TEXT NOT NULL, tags TEXT, memory_type TEXT, metadata TEXT, created_at REAL, "
                "updated_at REAL, created_at_iso TEXT, updated_at_iso TEXT, deleted_at REAL)"
            )
        ],
        [
            (
                "memories",
                (
                    1,
                    "h1",
                    "Use tabs",
                    "style,code",
                    "note",
                    "{}",
                    moment,
                    0,
                    "",
                    "",
                    None,
                ),
            ),
            ("memories", (2, "h2", "Old", "", "note", "{}", moment, 0, "", "", moment)),
            ("memories", (3, "h3", " ", "", "note", "{}", moment, 0, "", "", None)),
        ],
    )


def mcp_memory_service_export(folder: Path) -> Path:
    path = folder / "export.json"
    row = {
        "content": "Use tabs",
        "content_hash": "h1",
        "tags": ["style", "code"],
        "created_at": MILLISECONDS / 1000,
        "memory_type": "note",
        "metadata": {},
    }
    path.write_text(json.dumps({"export_metadata": {}, "memories": [row]}))
    return path


def mem0_history(folder: Path) -> Path:
    columns = (
        "history (id TEXT PRIMARY KEY, memory_id TEXT, old_memory TEXT, new_memory TEXT, event TEXT, "
        "created_at DATETIME, updated_at DATETIME, is_deleted INTEGER, actor_id TEXT, role TEXT)"
    )
    return database(
        folder / "history.db",
        [columns],
        [
            (
                "history",
                ("1", "m1", None, "Likes tea", "ADD", NINE, None, 0, None, "user"),
            ),
            (
                "history",
                ("2", "m2", None, "Lives in Rome", "ADD", NINE, None, 0, None, "user"),
            ),
            (
                "history",
                (
                    "3",
                    "m1",
                    "Likes tea",
                    "Likes coffee",
                    "UPDATE",
                    NINE,
                    NINE,
                    0,
                    None,
                    "user",
                ),
            ),
            (
                "history",
                (
                    "4",
                    "m2",
                    "Lives in Rome",
                    None,
                    "DELETE",
                    NINE,
                    NINE,
                    1,
                    None,
                    "user",
                ),
            ),
        ],
    )


def openmemory(folder: Path) -> Path:
    when = "2026-03-16 09:00:00.000000"
    return database(
        folder / "openmemory.db",
        [
            "users (id CHAR(32) PRIMARY KEY, user_id VARCHAR, name VARCHAR)",
            "apps (id CHAR(32) PRIMARY KEY, owner_id CHAR(32), name VARCHAR)",
            (
                "memories (id CHAR(32) PRIMARY KEY, user_id CHAR(32), app_id CHAR(32), content VARCHAR, "
                "vector VARCHAR, metadata JSON, state VARCHAR(8), created_at DATETIME, updated_at DATETIME, "
                "archived_at DATETIME, deleted_at DATETIME)"
            ),
        ],
        [
            ("users", ("u", "ann", "Ann")),
            ("apps", ("a", "u", "cursor")),
            (
                "memories",
                (
                    "m1",
                    "u",
                    "a",
                    "Likes tea",
                    None,
                    "{}",
                    "active",
                    when,
                    when,
                    None,
                    None,
                ),
            ),
            (
                "memories",
                ("m2", "u", "a", "Gone", None, "{}", "deleted", when, when, None, when),
            ),
        ],
    )


def openmemory_zip(folder: Path) -> Path:
    path = folder / "memories_export_ann.zip"
    row = {
        "id": "m1",
        "content": "Likes tea",
        "state": "active",
        "created_at": NINE,
        "metadata": {},
    }
    gone = {**row, "id": "m2", "state": "deleted"}
    export = {
        "user": {"id": "u"},
        "apps": [],
        "categories": [],
        "memories": [row, gone],
    }
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("memories.json", json.dumps(export, indent=2))
        archive.writestr("memories.jsonl.gz", b"")
    return path


def mem0_results(folder: Path) -> Path:
    path = folder / "all.json"
    row = {
        "id": "m1",
        "memory": "Likes tea",
        "created_at": NINE,
        "user_id": "ann",
        "score": None,
    }
    path.write_text(json.dumps({"results": [row]}))
    return path


def basic_memory(folder: Path) -> Path:
    return database(
        folder / "memory.db",
        [
            "project (id INTEGER PRIMARY KEY, name VARCHAR, permalink VARCHAR, path VARCHAR)",
            (
                "entity (id INTEGER PRIMARY KEY, title VARCHAR, note_type VARCHAR, entity_metadata JSON, "
                "permalink VARCHAR, file_path VARCHAR, project_id INTEGER, created_at DATETIME)"
            ),
            (
                "observation (id INTEGER PRIMARY KEY, entity_id INTEGER, content TEXT, category VARCHAR, "
                "context TEXT, tags JSON)"
            ),
            (
                "relation (id INTEGER PRIMARY KEY, from_id INTEGER, to_id INTEGER, to_name VARCHAR, "
                "relation_type VARCHAR, context TEXT)"
            ),
        ],
        [
            ("project", (1, "main", "main", "/n")),
            ("entity", (1, "Coffee", "note", "{}", "coffee", "coffee.md", 1, NINE)),
            (
                "observation",
                (1, 1, "Pour over is clearer", "method", "blind test", "[]"),
            ),
            ("relation", (1, 1, None, "Chocolate", "pairs_with", None)),
        ],
    )


def opencode_database(folder: Path) -> Path:
    text = json.dumps({"type": "text", "text": "Empty the cart"})
    done = json.dumps({"type": "text", "text": "Done: it is empty."})
    later = MILLISECONDS + 60_000
    return database(
        folder / "opencode.db",
        [
            "session (id TEXT PRIMARY KEY, project_id TEXT, parent_id TEXT, directory TEXT)",
            "message (id TEXT PRIMARY KEY, session_id TEXT, time_created INTEGER, data TEXT)",
            "part (id TEXT PRIMARY KEY, message_id TEXT, session_id TEXT, data TEXT)",
        ],
        [
            ("session", ("ses_1", "p1", None, "/w/shop")),
            ("session", ("ses_2", "p1", "ses_1", "/w/shop")),
            ("message", ("msg_1", "ses_1", MILLISECONDS, '{"role": "user"}')),
            ("message", ("msg_2", "ses_1", later, '{"role": "assistant"}')),
            ("message", ("msg_3", "ses_2", later, '{"role": "user"}')),
            ("message", ("msg_4", "ses_1", later, "{cut")),
            ("part", ("prt_1", "msg_1", "ses_1", text)),
            ("part", ("prt_2", "msg_2", "ses_1", done)),
            ("part", ("prt_3", "msg_3", "ses_2", text)),
        ],
    )


TEA = Expected("Likes tea", "mem0:ann", "mem0", "", NINE)
PORT = Expected("Port 6543", "s", "cli", "", NINE)
TABS = Expected("Use tabs", "mcp-memory-service", "mcp-memory-service", "", NINE)

STORES = [
    Sample("opencode", opencode_database, OPENCODE, bad=1),
    Sample(
        "mnemosyne-memory",
        mnemosyne_memory,
        [PORT, Expected("Boats", "s", "x", "", NINE)],
    ),
    Sample("mnemosyne-memory", mnemosyne_memory_export, [PORT]),
    Sample("mcp-memory-service", mcp_memory_service, [TABS], bad=1),
    Sample("mcp-memory-service", mcp_memory_service_export, [TABS]),
    Sample(
        "mem0", mem0_history, [Expected("Likes coffee", "mem0", "mem0", "user", NINE)]
    ),
    Sample("mem0", openmemory, [Expected("Likes tea", "mem0:ann", "cursor", "", NINE)]),
    Sample("mem0", openmemory_zip, [Expected("Likes tea", "mem0", "mem0", "", NINE)]),
    Sample("mem0", mem0_results, [TEA]),
    Sample(
        "basic-memory",
        basic_memory,
        [
            Expected(
                "Coffee\n\n- [method] Pour over is clearer (blind test)\n- pairs_with [[Chocolate]]",
                "notes:main",
                "basic-memory",
                "",
                NINE,
            )
        ],
    ),
]
