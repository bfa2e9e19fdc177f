"""The commands of the shell in groups: name, summary, example, and the place of the code."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

_TABLE = """
# Remember and ask
remember = mnemosyned.verbs.memories:Remember
    Store one memory.
    mnem remember "We deploy on Tuesdays." --session work
recall = mnemosyned.verbs.memories:Recall
    Search for memories; the best matches come first.
    mnem recall when do we deploy
learn = mnemosyned.verbs.conversation:Learn
    Store a lesson that every context of its source shows.
    mnem learn "Answer in British English."
# Look
status = mnemosyned.verbs.upkeep:Status
    Show counts, sizes, cycles and the summarizer.
    mnem status --json
top = mnemosyned.cli.commands.small:top
    Watch the daemon live, full screen.
    mnem top
get = mnemosyned.verbs.memories:Get
    Show one memory or episode in full.
    mnem get 01M2B9QW
expand = mnemosyned.verbs.memories:Expand
    Show the originals of a summary, word for word.
    mnem expand 01M2B9QW --depth 1
list = mnemosyned.cli.commands.look:list_command
    List memories, the newest first; no question is needed.
    mnem list --session work --since monday
today = mnemosyned.cli.commands.look:today
    Show the memories of today, the oldest first, and its summary.
    mnem today
day = mnemosyned.cli.commands.look:day
    Show a day: its summary, and its memories under it.
    mnem day yesterday
week = mnemosyned.cli.commands.look:week
    Show a week: its summary, and its days.
    mnem week last week
month = mnemosyned.cli.commands.look:month
    Show a month: its summary, and its weeks and days.
    mnem month November
show = mnemosyned.verbs.memories:Get
    Show one memory or episode in full.
    mnem show 3
tail = mnemosyned.cli.commands.now:tail
    Show the newest memories, and with -f what happens next.
    mnem tail -f
sessions = mnemosyned.verbs.listing:Sessions
    List sessions with their counts, the last used first.
    mnem sessions --limit 10
sources = mnemosyned.verbs.listing:Sources
    List sources with their counts, the last used first.
    mnem sources
learnings = mnemosyned.verbs.conversation:Learnings
    List what was learned, newest first.
    mnem learnings --kind preference
log = mnemosyned.verbs.upkeep:Log
    List what was consolidated, newest first.
    mnem log --limit 20
# Change
edit = mnemosyned.cli.commands.edit:edit
    Change the words of a memory, or where it belongs.
    mnem edit 01M2B9QW --text "We deploy on Mondays."
tag = mnemosyned.verbs.memories:Tag
    Give memories tags.
    mnem tag holiday,2026 --session trip
untag = mnemosyned.verbs.memories:Untag
    Take tags from memories.
    mnem untag holiday 01M2B9QW
pin = mnemosyned.verbs.memories:Pin
    Keep memories in working memory, whatever their age.
    mnem pin 01M2B9QW
unpin = mnemosyned.verbs.memories:Unpin
    Let sleep consolidate pinned memories again.
    mnem unpin 01M2B9QW
forget = mnemosyned.verbs.retention:Forget
    Delete memories and all that was made from them.
    mnem forget --session scratch --dry-run
edit-learning = mnemosyned.verbs.conversation:EditLearning
    Change the words of a learning.
    mnem edit-learning 01M2B9QW --text "Answer in French."
remove-learning = mnemosyned.verbs.conversation:RemoveLearning
    Delete a learning.
    mnem remove-learning 01M2B9QW
# Sleep
sleep = mnemosyned.verbs.upkeep:Sleep
    Run a sleep cycle now.
    mnem sleep --dry-run
consolidate = mnemosyned.verbs.upkeep:Sleep
    Run a sleep cycle now.
    mnem consolidate --session work
undo = mnemosyned.verbs.upkeep:Undo
    Take back a sleep cycle.
    mnem undo 01M2B9QW --dry-run
restore = mnemosyned.verbs.retention:Restore
    Bring an original back to working memory, pinned.
    mnem restore 01M2B9QW
# In and out
import = mnemosyned.cli.commands.import_files:import_command
    Import memories from files, folders or standard input (-).
    mnem import ~/notes --dry-run
export = mnemosyned.cli.commands.export:export_command
    Write everything that is kept to a file.
    mnem export memory.jsonl
watch = mnemosyned.cli.commands.small:watch
    Follow folders, and list those that are followed.
    mnem watch ~/notes ~/.claude/projects
# Keep
backup = mnemosyned.verbs.retention:Backup
    Write a complete copy of the database to a file.
    mnem backup ~/memory.db
restore-db = mnemosyned.cli.maintenance.restore:restore_db
    Put a backup in the place of the database.
    mnem restore-db ~/memory.db --restart
move = mnemosyned.cli.maintenance.move:move_command
    Move all that is kept from a file to a PostgreSQL server, or back.
    mnem move --to postgresql://db.example/memory
config = mnemosyned.cli.maintenance.config:config
    Show the settings in force, and where each is from; change them.
    mnem config set backup.dir ~/copies
owner = mnemosyned.cli.maintenance.servers:owner
    Add, list and remove owners of a database on a server, and issue their tokens.
    mnem owner add anna
db = mnemosyned.cli.maintenance.servers:db
    Bring a database server up to date, purge its files, or spread it over a cluster.
    mnem db purge
doctor = mnemosyned.cli.maintenance.doctor:doctor
    Check the installation, and name the command that repairs each fault.
    mnem doctor --repair
start = mnemosyned.cli.maintenance.service:start
    Start the daemon, and wait until it answers.
    mnem start
stop = mnemosyned.cli.maintenance.service:stop
    Stop the daemon, after its last consolidation.
    mnem stop
restart = mnemosyned.cli.maintenance.service:restart
    Stop the daemon and start it again with the same options.
    mnem restart
logs = mnemosyned.cli.maintenance.service:logs
    Show the daemon's log: systemd's journal, or the file of `mnem start`.
    mnem logs --follow
archive = mnemosyned.cli.commands.small:archive
    Limit what the archive keeps.
    mnem archive prune --keep-days 365 --dry-run
model = mnemosyned.cli.commands.model:model
    Fetch and choose a language model for summaries.
    mnem model list
completion = mnemosyned.cli.commands.man:completion
    Print a shell's completion script.
    mnem completion bash
# Agents
setup = mnemosyned.cli.commands.setup:setup
    Give the agents you use memory: their MCP server and hooks.
    mnem setup --dry-run
context = mnemosyned.verbs.conversation:Context
    Assemble the model's context within a token budget.
    mnem context "When do we deploy?" --total 4000
compact = mnemosyned.verbs.conversation:Compact
    Shorten a conversation that nears its token limit.
    mnem compact messages.json --max-tokens 4000
mcp = mnemosyned.cli.commands.small:mcp
    Serve memory to an agent by the Model Context Protocol, on standard input and output.
    mnem mcp
"""
"""By group: the name of a command and its target, its summary, and an example."""


class Command(NamedTuple):
    """A command as the help page shows it, and the place of its code."""

    name: str
    group: str
    """The title of its group on the help page."""
    summary: str
    target: str
    """`module:attribute` of a click command, or of a verb's request."""
    example: str


def _read_table() -> Iterator[Command]:
    """Yield the commands in `_TABLE`, in their order."""
    group = ""
    lines = iter(_TABLE.strip().splitlines())
    for line in lines:
        if line.startswith("# "):
            group = line[2:]
            continue
        name, _, target = line.partition(" = ")
        summary, example = next(lines).strip(), next(lines).strip()
        yield Command(name, group, summary, target, example)


COMMANDS = {command.name: command for command in _read_table()}
GROUPS = tuple(dict.fromkeys(command.group for command in COMMANDS.values()))
"""The titles of the groups, in the order of the help page."""
LOCAL = {"backup", "model", "setup", "watch"} | {
    command.name for command in COMMANDS.values() if ".maintenance." in command.target
}
"""The commands that work on the daemon's own machine alone."""
