"""The formats that can be imported, and which of them a source has."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import cast

from mnemosyned.domain.errors import InvalidRequest
from mnemosyned.importers.importer import Format, Source


@dataclass(frozen=True, slots=True)
class Entry:
    """A format by its name; its module is loaded when it is needed."""

    name: str
    summary: str
    """What it is, for help: `memories as JSON lines`."""
    target: str
    """`module:class`, in `mnemosyned.importers.formats`."""

    def load(self) -> Format:
        """Import its module and make the format."""
        module, _, attribute = self.target.partition(":")
        loaded = import_module(f"mnemosyned.importers.formats.{module}")
        return cast("Format", getattr(loaded, attribute)())


FORMATS = (
    Entry("export", "what `mnem export` wrote, restored exactly", "export:ExportFile"),
    Entry("git", "the commits of a git repository", "personal.commits:GitRepository"),
    Entry("opencode-files", "OpenCode's folder of conversations", "chats.opencode:OpenCodeFolder"),
    Entry("opencode", "OpenCode's database", "chats.opencode:OpenCodeDatabase"),
    Entry("mnemosyne-memory", "a database or export of mnemosyne-memory",
        "stores.mnemosyne_memory:MnemosyneMemory"),
    Entry("mcp-memory-service", "a database or export of mcp-memory-service",
        "stores.mcp_memory_service:McpMemoryService"),
    Entry("mem0", "a store or export of mem0 or OpenMemory", "stores.mem0:Mem0"),
    Entry("basic-memory", "the database of basic-memory", "stores.basic_memory:BasicMemory"),
    Entry("chatgpt", "ChatGPT's export", "chats.chatgpt:ChatGptExport"),
    Entry("claude", "Claude's export", "chats.claude:ClaudeExport"),
    Entry("transcript", "conversations of Claude Code, Codex, Gemini CLI and others",
        "chats.transcripts:Transcript"),
    Entry("json", "memories as a JSON list", "json_array:JsonArray"),
    Entry("jsonl", "memories, one JSON object a line", "jsonl:JsonLines"),
    Entry("git-log", "the saved output of git log", "personal.commits:SavedLog"),
    Entry("mbox", "mail in an mbox file", "personal.mail:Mailbox"),
    Entry("calendar", "a calendar in iCalendar's form", "personal.calendars:Calendar"),
    Entry("contacts", "an address book of vCards", "personal.contacts:Contacts"),
    Entry("shell", "a history of bash, zsh or fish", "personal.shell:ShellHistory"),
    Entry("notes", "notes in Markdown", "notes.notes:Notes"),
)  # fmt: skip
"""In the order in which they are asked whether they recognize a source: the strictest first."""


def format_named(name: str) -> Format:
    """Return the format of this name. Raises `InvalidRequest`."""
    for entry in FORMATS:
        if entry.name == name:
            return entry.load()
    raise InvalidRequest(
        f"there is no format {name}; the formats are {format_names()}", field="format"
    )


def format_names() -> str:
    """Return the names of the formats, for messages."""
    return ", ".join(entry.name for entry in FORMATS)


def recognized(source: Source) -> Format | None:
    """Return the format of a source; None for one that no format recognizes."""
    formats = (entry.load() for entry in FORMATS)
    return next((format for format in formats if format.recognizes(source)), None)
