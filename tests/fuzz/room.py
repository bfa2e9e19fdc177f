"""A folder in which paths lead to something, and paths into it, of which many cannot be."""

import os
import random
from pathlib import Path

TALK = (
    '{"type":"user","uuid":"u1","sessionId":"s1","cwd":"/","timestamp":"2026-03-09T14:30:00Z",'
    '"message":{"role":"user","content":"Ada prefers tabs."}}\n'
)
NAMES = (
    "file", "folder", "loop", "loop/x", "file/x", "folder/x", "none/x", "copy.db", "notes.md", "pipe.jsonl",
    "projects/talk.jsonl", "projects/broken.jsonl", "projects", "folder/", ".", "..", "../..", "",
    "a b", "caf\u00e9", "e\u0301", "\u202egpj.exe", "[x]*?.db", "%41", "-rf", "~", "{}", "\x1b[2J", "a\nb",
)  # fmt: skip
HOSTILE = (
    "\0", "a\0b", "x" * 255, "x" * 256, "x" * 250, "x" * 4_000, "\u00e9" * 128, "\n" * 600,
    "/" * 5_000, "/".join(["x" * 99] * 60), "x/" * 1_500, "../" * 1_000, "x/.." * 900,
)  # fmt: skip
ELSEWHERE = (
    "/dev/null", "/dev/full", "/proc/self/mem", "/proc/self/fd/0", "~", "~/", "~nobody-here/x",
    "~root", "relative", "./x", "", " ", "file:///etc/passwd", "postgresql://localhost/x", "C:\\x", "\\\\a\\b",
)  # fmt: skip


def furnish(folder: Path) -> None:
    """Put a file, a folder, a loop of links, a pipe and transcripts there."""
    (folder / "folder").mkdir()
    (folder / "projects").mkdir()
    (folder / "file").write_text("x\n")
    (folder / "notes.md").write_text("# Tea\n\nTea at four.\n")
    (folder / "loop").symlink_to("loop")
    (folder / "projects" / "talk.jsonl").write_text(TALK)
    (folder / "projects" / "broken.jsonl").write_text(TALK[:90] + "\n" + TALK)
    os.mkfifo(folder / "pipe.jsonl")


def any_path(chance: random.Random, folder: Path) -> str:
    """A path into the folder, mostly; now and then one elsewhere, or none at all."""
    kind = chance.random()
    if kind < 0.5:
        return f"{folder}/{chance.choice(NAMES)}"
    if kind < 0.8:
        return f"{folder}/{chance.choice(HOSTILE)}"
    return chance.choice((*HOSTILE, *ELSEWHERE))
