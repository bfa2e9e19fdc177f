"""The commands of the shell by group, each with its summary, an example and the place of its code."""

from __future__ import annotations

from typing import NamedTuple

TITLES = {
    "ask": "Remember and ask",
    "look": "Look",
    "change": "Change",
    "sleep": "Sleep",
    "files": "In and out",
    "keep": "Keep",
    "agents": "Agents",
}
"""The groups of the help page, in order."""


class Command(NamedTuple):
    """A command as the help page shows it, and where it is."""

    name: str
    group: str
    summary: str
    target: str
    """`module:attribute` of a click command, or of a verb's request."""
    example: str


_ROWS = (
    Command(
        "remember",
        "ask",
        "Store one memory.",
        "mnemosyned.verbs.memories:Remember",
        'mnem remember "We deploy on Tuesdays." --session work',
    ),
    Command(
        "recall",
        "ask",
        "Search for memories; the best matches come first.",
        "mnemosyned.verbs.memories:Recall",
        "mnem recall when do we deploy",
    ),
    Command(
        "learn",
        "ask",
        "Store a lesson that every context of its source shows.",
        "mnemosyned.verbs.conversation:Learn",
        'mnem learn "Answer in British English."',
    ),
    Command(
        "status",
        "look",
        "Show counts, sizes, cycles and the summarizer.",
        "mnemosyned.verbs.upkeep:Status",
        "mnem status --json",
    ),
    Command(
        "top",
        "look",
        "Watch the daemon live, full screen.",
        "mnemosyned.cli.commands.small:top",
        "mnem top",
    ),
    Command(
        "get",
        "look",
        "Show one memory or episode in full.",
        "mnemosyned.verbs.memories:Get",
        "mnem get 01M2B9QW",
    ),
    Command(
        "expand",
        "look",
        "Show the originals of a summary, word for word.",
        "mnemosyned.verbs.memories:Expand",
        "mnem expand 01M2B9QW --depth 1",
    ),
    Command(
        "list",
        "look",
        "List memories, the newest first; no question is needed.",
        "mnemosyned.cli.commands.look:list_command",
        "mnem list --session work --since monday",
    ),
    Command(
        "today",
        "look",
        "Show the memories of today, the oldest first, and its summary.",
        "mnemosyned.cli.commands.look:today",
        "mnem today",
    ),
    Command(
        "day",
        "look",
        "Show a day: its summary, and its memories under it.",
        "mnemosyned.cli.commands.look:day",
        "mnem day yesterday",
    ),
    Command(
        "week",
        "look",
        "Show a week: its summary, and its days.",
        "mnemosyned.cli.commands.look:week",
        "mnem week last week",
    ),
    Command(
        "month",
        "look",
        "Show a month: its summary, and its weeks and days.",
        "mnemosyned.cli.commands.look:month",
        "mnem month November",
    ),
    Command(
        "show",
        "look",
        "Show one memory or episode in full.",
        "mnemosyned.verbs.memories:Get",
        "mnem show 3",
    ),
    Command(
        "tail",
        "look",
        "Show the newest memories, and with -f what happens next.",
        "mnemosyned.cli.commands.tail:tail",
        "mnem tail -f",
    ),
    Command(
        "sessions",
        "look",
        "List sessions with their counts, the last used first.",
        "mnemosyned.verbs.listing:Sessions",
        "mnem sessions --limit 10",
    ),
    Command(
        "sources",
        "look",
        "List sources with their counts, the last used first.",
        "mnemosyned.verbs.listing:Sources",
        "mnem sources",
    ),
    Command(
        "learnings",
        "look",
        "List what was learned, newest first.",
        "mnemosyned.verbs.conversation:Learnings",
        "mnem learnings --kind preference",
    ),
    Command(
        "log",
        "look",
        "List what was consolidated, newest first.",
        "mnemosyned.verbs.upkeep:Log",
        "mnem log --limit 20",
    ),
    Command(
        "edit",
        "change",
        "Change the words of a memory, or where it belongs.",
        "mnemosyned.cli.commands.edit:edit",
        'mnem edit 01M2B9QW --text "We deploy on Mondays."',
    ),
    Command(
        "tag",
        "change",
        "Give memories tags.",
        "mnemosyned.verbs.memories:Tag",
        "mnem tag holiday,2026 --session trip",
    ),
    Command(
        "untag",
        "change",
        "Take tags from memories.",
        "mnemosyned.verbs.memories:Untag",
        "mnem untag holiday 01M2B9QW",
    ),
    Command(
        "pin",
        "change",
        "Keep memories in working memory, whatever their age.",
        "mnemosyned.verbs.memories:Pin",
        "mnem pin 01M2B9QW",
    ),
    Command(
        "unpin",
        "change",
        "Let sleep consolidate pinned memories again.",
        "mnemosyned.verbs.memories:Unpin",
        "mnem unpin 01M2B9QW",
    ),
    Command(
        "forget",
        "change",
        "Delete memories and all that was made from them.",
        "mnemosyned.verbs.retention:Forget",
        "mnem forget --session scratch --dry-run",
    ),
    Command(
        "edit-learning",
        "change",
        "Change the words of a learning.",
        "mnemosyned.verbs.conversation:EditLearning",
        'mnem edit-learning 01M2B9QW --text "Answer in French."',
    ),
    Command(
        "remove-learning",
        "change",
        "Delete a learning.",
        "mnemosyned.verbs.conversation:RemoveLearning",
        "mnem remove-learning 01M2B9QW",
    ),
    Command(
        "sleep",
        "sleep",
        "Run a sleep cycle now.",
        "mnemosyned.verbs.upkeep:Sleep",
        "mnem sleep --dry-run",
    ),
    Command(
        "consolidate",
        "sleep",
        "Run a sleep cycle now.",
        "mnemosyned.verbs.upkeep:Sleep",
        "mnem consolidate --session work",
    ),
    Command(
        "undo",
        "sleep",
        "Take back a sleep cycle.",
        "mnemosyned.verbs.upkeep:Undo",
        "mnem undo 01M2B9QW --dry-run",
    ),
    Command(
        "restore",
        "sleep",
        "Bring an original back to working memory, pinned.",
        "mnemosyned.verbs.retention:Restore",
        "mnem restore 01M2B9QW",
    ),
    Command(
        "import",
        "files",
        "Remember what files, folders or standard input (-) hold.",
        "mnemosyned.cli.commands.import_files:import_command",
        "mnem import ~/notes --dry-run",
    ),
    Command(
        "export",
        "files",
        "Write everything that is kept to a file.",
        "mnemosyned.cli.commands.export:export_command",
        "mnem export memory.jsonl",
    ),
    Command(
        "watch",
        "files",
        "Follow folders, and list those that are followed.",
        "mnemosyned.cli.commands.small:watch",
        "mnem watch ~/notes ~/.claude/projects",
    ),
    Command(
        "backup",
        "keep",
        "Write a complete copy of the database to a file.",
        "mnemosyned.verbs.retention:Backup",
        "mnem backup ~/memory.db",
    ),
    Command(
        "restore-db",
        "keep",
        "Put a backup in the place of the database.",
        "mnemosyned.cli.maintenance.restore:restore_db",
        "mnem restore-db ~/memory.db --restart",
    ),
    Command(
        "move",
        "keep",
        "Move all that is kept from a file to a PostgreSQL server, or back.",
        "mnemosyned.cli.maintenance.move:move_command",
        "mnem move --to postgresql://db.example/memory",
    ),
    Command(
        "config",
        "keep",
        "Show the settings in force, and where each is from; change them.",
        "mnemosyned.cli.maintenance.config:config",
        "mnem config set backup.dir ~/copies",
    ),
    Command(
        "owner",
        "keep",
        "Add, list and remove owners of a database on a server, and issue their tokens.",
        "mnemosyned.cli.maintenance.servers:owner",
        "mnem owner add anna",
    ),
    Command(
        "db",
        "keep",
        "Bring a database server up to date, purge its files, or spread it over a cluster.",
        "mnemosyned.cli.maintenance.servers:db",
        "mnem db purge",
    ),
    Command(
        "doctor",
        "keep",
        "Check the installation, and say what mends each fault.",
        "mnemosyned.cli.maintenance.doctor:doctor",
        "mnem doctor --repair",
    ),
    Command(
        "start",
        "keep",
        "Start the daemon, and wait until it answers.",
        "mnemosyned.cli.maintenance.service:start",
        "mnem start",
    ),
    Command(
        "stop",
        "keep",
        "Stop the daemon, after its last consolidation.",
        "mnemosyned.cli.maintenance.service:stop",
        "mnem stop",
    ),
    Command(
        "restart",
        "keep",
        "Stop the daemon and start it again with the same options.",
        "mnemosyned.cli.maintenance.service:restart",
        "mnem restart",
    ),
    Command(
        "logs",
        "keep",
        "Show the daemon's log: systemd's journal, or the file of `mnem start`.",
        "mnemosyned.cli.maintenance.service:logs",
        "mnem logs --follow",
    ),
    Command(
        "archive",
        "keep",
        "Limit what the archive keeps.",
        "mnemosyned.cli.commands.small:archive",
        "mnem archive prune --keep-days 365 --dry-run",
    ),
    Command(
        "model",
        "keep",
        "Fetch and choose a language model for summaries.",
        "mnemosyned.cli.commands.model:model",
        "mnem model list",
    ),
    Command(
        "completion",
        "keep",
        "Print a shell's completion script.",
        "mnemosyned.cli.commands.man:completion",
        "mnem completion bash",
    ),
    Command(
        "setup",
        "agents",
        "Give the agents you use memory: their MCP server and hooks.",
        "mnemosyned.cli.commands.setup:setup",
        "mnem setup --dry-run",
    ),
    Command(
        "context",
        "agents",
        "Assemble the model's context within a token budget.",
        "mnemosyned.verbs.conversation:Context",
        'mnem context "When do we deploy?" --total 4000',
    ),
    Command(
        "compact",
        "agents",
        "Shorten a conversation that nears its token limit.",
        "mnemosyned.verbs.conversation:Compact",
        "mnem compact messages.json --max-tokens 4000",
    ),
    Command(
        "mcp",
        "agents",
        "Serve memory to an agent by the Model Context Protocol, on standard input and output.",
        "mnemosyned.cli.commands.small:mcp",
        "mnem mcp",
    ),
)

COMMANDS = {command.name: command for command in _ROWS}
LOCAL = {"backup", "model", "setup", "watch"} | {
    name for name, each in COMMANDS.items() if ".maintenance." in each.target
}
"""The commands that work on the daemon's own machine alone."""
