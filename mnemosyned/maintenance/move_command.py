"""`mnem move`: a memory moves from a file to a PostgreSQL server, or back."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping

import click

from mnemosyned.cli.exchange.progress_line import progress_line
from mnemosyned.cli.interruption import Interrupted
from mnemosyned.config import without_password
from mnemosyned.domain.ports.servers.owners import LOCAL_NAME
from mnemosyned.maintenance import daemon_process
from mnemosyned.maintenance.move import LEFT_OUT, Move, location_of, move
from mnemosyned.terminal import counted, say, say_json

EXIT_DIFFERING = 1
_NOUNS = {
    "memory": "memory",
    "episode": "summary",
    "supersession": "supersession",
    "learning": "learning",
    "log": "log entry",
    "compaction": "compaction",
    "agent_session": "agent session",
    "forgotten": "forgotten id",
    "recoverable": "recoverable item",
    "watched_folder": "watched folder",
    "watched_file": "watched file",
    "hook_activity": "hook count",
    "vector": "vector",
    "clock": "clock reading",
}


@click.command("move")
@click.option(
    "--to",
    "to",
    required=True,
    metavar="DATABASE",
    help="A PostgreSQL URL, or a file; empty, or begun by the same move.",
)
@click.option(
    "--from",
    "source",
    metavar="DATABASE",
    help="The memory to move; default: that of the settings.",
)
@click.option(
    "--owner",
    default=LOCAL_NAME,
    metavar="NAME",
    show_default=True,
    help="Whose memory it is on the server.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def move_command(to: str, source: str | None, owner: str, *, as_json: bool) -> int:
    """Move all that is kept from a file to a PostgreSQL server, or back.

    The old database stays as it is. A move that was interrupted goes on where it stopped when it is
    repeated. In the end both are compared record by record, and asked the same questions. The
    daemon must be stopped, unless only the memory of an owner moves that it serves over TCP.
    """
    config = daemon_process.configured()
    origin = location_of(source, field="from") if source else config.location
    target = location_of(to, field="to")
    try:
        done = move(
            origin,
            target,
            config=config,
            owner=owner,
            watched=lambda label, size: progress_line(label, "record", size),
        )
    except KeyboardInterrupt as error:
        words = "interrupted; repeat the command to go on from there"
        raise Interrupted(words) from error
    if as_json:
        say_json(_answer(done))
    else:
        say("\n".join(_lines(done)))
    if done.answers.differing:
        ids = ", ".join(done.answers.differing)
        say(f"recall answers otherwise for the words of {ids}", err=True)
        return EXIT_DIFFERING
    return 0


def _answer(done: Move) -> dict[str, object]:
    return {
        "source": str(done.source),
        "target": str(done.target),
        "owner": done.owner,
        "stored": done.delivered.stored,
        "known": done.delivered.known,
        "counts": done.compared.counts,
        "sha256": done.compared.hashes,
        "asked": done.answers.asked,
        "differing": done.answers.differing,
        "left_out": LEFT_OUT,
    }


def _lines(done: Move) -> Iterator[str]:
    known = sum(done.delivered.known.values())
    yield f"moved {_named(done.compared.counts)} from {done.source} to {done.target}"
    if known:
        yield f"{known:,} of these records had been moved before"
    yield "compared: each record is the same in both, in the same order"
    alike = done.answers.asked - len(done.answers.differing)
    if done.answers.asked:
        asked = counted(done.answers.asked, "question")
        yield f"recall: {alike:,} of {asked} answered alike"
    yield f"to use it: {_use(done)}"
    yield f"not moved: {LEFT_OUT}"


def _use(done: Move) -> str:
    """The command with which the new database is used."""
    if done.target.url and done.owner != LOCAL_NAME:
        return f"mnem owner token add {done.owner}"
    if not done.target.url:
        return f"mnem config set database {shlex.quote(str(done.target.file))}"
    bare = without_password(done.target.url, shown="")
    command = f"mnem config set database {shlex.quote(bare)}"
    if bare == done.target.url:
        return command
    return f"{command}\nwithout the password, which libpq takes from ~/.pgpass"


def _named(counts: Mapping[str, int]) -> str:
    named = [
        counted(counts[kind], noun) for kind, noun in _NOUNS.items() if kind in counts
    ]
    return ", ".join(named) or "an empty memory"
