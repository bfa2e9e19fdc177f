"""`make demo-server`: two daemons and three owners on a PostgreSQL server of the demo's own."""

import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import click

sys.path.pop(0)  # this folder, in which `demo` would be this file
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from demo.stage import PATIENCE_S, ClaimFailed, Stage, Story
from support.postgres import Server

from mnemosyned import Client
from mnemosyned.errors import (
    DatabaseUnreachable,
    MnemosynedError,
    NotFound,
    SleepInProgress,
)
from mnemosyned.memory.values import Tier
from mnemosyned.verbs.memories import Remember

QUESTION = "Where does the cellar key hang?"
KEY = "The cellar key hangs behind the flour."
LEAVER = "Kofler"
GROUPS, EACH = 300, 5
BATCH = 1_000
SHOWN_S = 0.05


@dataclass(slots=True)
class Party:
    """Both daemons, and the process of the first."""

    first: Stage
    second: Stage
    process: subprocess.Popen[bytes]


def start(story: Story, stack: ExitStack, folder: Path, dsn: str) -> Party:
    story.step(
        "Start two daemons on one database",
        "Each has its own socket, as on two machines; the memory is on the server, and the first "
        "start creates its tables.",
    )
    stages, processes = [], []
    for name in ("first", "second"):
        home = folder / name
        home.mkdir()
        stage = Stage(home, database=dsn)
        story.command(
            "mnemosyned", "--database", "postgresql://…", "--socket", f"{name}.sock"
        )
        processes.append(stack.enter_context(stage.daemon()))
        stages.append(stage)
    pids = [stage.answering_pid() for stage in stages]
    story.claim(
        f"Both answer, as processes {pids[0]} and {pids[1]}, and name the same database.",
        holds=pids == [process.pid for process in processes]
        and stages[0].client.status().database == stages[1].client.status().database,
        because=[stage.log.read_text() for stage in stages],
    )
    return Party(stages[0], stages[1], processes[0])


def share(story: Story, party: Party) -> None:
    story.step(
        "Remember here, recall there",
        "What a daemon has acknowledged is on the server's disk, and the other's next question "
        "finds it.",
    )
    story.command("mnem", "--socket", "first.sock", "remember", KEY)
    party.first.mnem("remember", KEY, "--id", "key")
    story.command("mnem", "--socket", "second.sock", "recall", QUESTION)
    party.second.mnem("recall", QUESTION)
    hits = [hit.id for hit in party.second.client.recall(QUESTION).hits]
    story.claim(
        "The second daemon found what the first one remembered.",
        holds=hits == ["key"],
        because=hits,
    )


WHERE = "Where does my key hang?"
PLACES = {"anna": "behind the flour", "bert": "in the shed", "clara": "at the mill"}


def meet(story: Story, first: Stage, second: Stage) -> None:
    """Show three owners, who share both daemons and see nothing of each other."""
    story.step(
        "Three owners share both daemons",
        "Over TCP a token says whose memory is meant. Every statement is held to that owner by the "
        "query, and once more by the database. (Other machines come with TLS; this is loopback.)",
    )
    tokens: dict[str, str] = {}
    for name, place in PLACES.items():
        story.command("mnem", "owner", "add", name)
        first.printed("owner", "add", name)
        tokens[name] = first.printed("owner", "token", "add", name, "--name", "demo")
        with Client(url=f"http://{first.address()}", token=tokens[name]) as client:
            client.remember(f"My key hangs {place}.", id="key")
    found = {name: _answers_of(second, token) for name, token in tokens.items()}
    story.claim(
        "Each remembered on the first daemon under the same id, and the second one answers each with "
        "its own: "
        + ", ".join(f"{name} {place}" for name, place in PLACES.items())
        + ".",
        holds=found
        == {name: [f"My key hangs {place}."] for name, place in PLACES.items()},
        because=found,
    )
    story.command("mnem", "owner", "token", "add", "anna", "--scopes", "read")
    reader = first.printed("owner", "token", "add", "anna", "--scopes", "read")
    refused = ""
    with Client(url=f"http://{second.address()}", token=reader) as client:
        try:
            client.forget("key", now=True)
        except MnemosynedError as error:
            refused = error.message
    story.claim(
        f"A token that may only read cannot forget: “{refused}”.",
        holds="needs the scope forget" in refused and bool(_answers_of(second, reader)),
        because=refused,
    )


def _answers_of(stage: Stage, token: str) -> list[str]:
    with Client(url=f"http://{stage.address()}", token=token) as client:
        return [hit.content for hit in client.recall(WHERE).hits]


def fill(party: Party) -> list[str]:
    """Remember many old conversations; their ids."""
    began = datetime.now(UTC) - timedelta(days=3)
    memories = [
        Remember(
            id=f"m{group}-{number}",
            content=f"In matter {group}, step {number} was agreed with {who} at the mill.",
            session=f"matter-{group}",
            created_at=began,
        )
        for group in range(GROUPS)
        for who in (LEAVER if group % 10 == 0 else "Huber",)
        for number in range(EACH)
    ]
    for batch in range(0, len(memories), BATCH):
        party.first.client.remember_many(memories[batch : batch + BATCH])
    return [str(memory.id) for memory in memories]


def kill(story: Story, party: Party, ids: list[str]) -> None:
    story.step(
        "Kill one amid a sleep",
        f"{len(ids):,} memories of {GROUPS} conversations are consolidated by the first daemon, which "
        "is killed with SIGKILL meanwhile. Each conversation's episode is one transaction.",
    )
    story.command("mnem", "--socket", "first.sock", "sleep")
    story.command("kill", "-9", str(party.process.pid))
    sleeper = subprocess.Popen(
        party.first.command("sleep"),
        env=party.first.environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    ends = time.monotonic() + PATIENCE_S
    while not party.second.tiers()[2] and time.monotonic() < ends:
        time.sleep(SHOWN_S / 5)
    party.process.kill()
    party.process.wait()
    sleeper.wait(PATIENCE_S)
    working, episodes, archived = party.second.tiers()
    story.claim(
        f"{archived:,} memories are in {episodes} episodes, the other {working:,} are where they "
        "were: none is lost, and none is there twice.",
        holds=archived > 0 and working + archived == len(ids) + 1,
        because=(working, archived),
    )
    story.step(
        "The other finishes the sleep",
        "The server let go of the dead daemon's claim. What was left is consolidated, and each "
        "memory is in exactly one episode.",
    )
    story.command("mnem", "--socket", "second.sock", "sleep")
    _sleep(party.second)
    counts = _episodes_of_each(party.second)
    story.claim(
        f"All {len(counts):,} old memories are in exactly one episode each.",
        holds=sorted(counts) == sorted(ids) and set(counts.values()) == {1},
        because={id: count for id, count in counts.items() if count != 1},
    )


def _sleep(stage: Stage) -> None:
    ends = time.monotonic() + PATIENCE_S
    while stage.tiers()[0] > 1 and time.monotonic() < ends:
        try:
            stage.client.sleep()
        except SleepInProgress:
            time.sleep(SHOWN_S)


def _episodes_of_each(stage: Stage) -> dict[str, int]:
    counts: dict[str, int] = {}
    for row in stage.client.log(limit=1_000).rows:
        if row.episode and not row.level:
            episode = stage.client.get(row.episode).episode
            for id in episode.summary_of if episode else ():
                counts[id] = counts.get(id, 0) + 1
    return counts


def outage(story: Story, party: Party, server: Server) -> None:
    story.step(
        "Kill the server and start it again",
        "While it is down, each call says so and can be repeated. The daemon stays up.",
    )
    server.kill()
    refused = ""
    try:
        party.second.client.recall(QUESTION)
    except DatabaseUnreachable as error:
        refused = error.code
    server.start()
    hits = [hit.id for hit in party.second.client.recall(QUESTION).hits]
    story.claim(
        f"Without the server the answer was “{refused}”; with it the key was found again at once.",
        holds=refused == "database_unreachable" and hits[:1] == ["key"],
        because=(refused, hits),
    )


def forget(story: Story, stack: ExitStack, party: Party) -> None:
    story.step(
        "Forget on one, and it is gone on the other",
        "The first daemon is started again, and asked for somebody who wants to be forgotten.",
    )
    stack.enter_context(party.first.daemon())
    party.first.answering_pid()
    before = party.first.client.recall(LEAVER).hits
    story.command("mnem", "--socket", "second.sock", "forget", "--query", LEAVER)
    forgotten = party.second.client.forget(query=LEAVER, now=True)
    hits = party.first.client.recall(LEAVER).hits
    after = [hit.id for hit in hits if LEAVER in hit.content]
    story.claim(
        f"{forgotten.archived} memories were forgotten on the second daemon, and the first, which had "
        "shown them, finds none of them.",
        holds=bool(before) and forgotten.archived == GROUPS * EACH // 10 and not after,
        because=(len(before), forgotten.archived, after),
    )
    missing = 0
    for number in range(EACH):
        try:
            party.first.client.get(f"m0-{number}")
        except NotFound:
            missing += 1
    tiers = party.first.client.status().tiers
    kept = tiers[Tier.WORKING].count + tiers[Tier.ARCHIVE].count
    story.claim(
        f"The {kept:,} other memories are all still there.",
        holds=missing == EACH and kept == GROUPS * EACH * 9 // 10 + 1,
        because=(missing, kept),
    )


def main() -> None:
    began = time.monotonic()
    story = Story()
    with ExitStack() as stack:
        folder = Path(
            stack.enter_context(tempfile.TemporaryDirectory(prefix="mn-demo-"))
        )
        try:
            server = Server()
            stack.callback(server.remove)
            server.start()
            party = start(story, stack, folder, server.new_database())
            share(story, party)
            meet(story, party.first, party.second)
            ids = fill(party)
            kill(story, party, ids)
            outage(story, party, server)
            forget(story, stack, party)
        except (ClaimFailed, MnemosynedError) as error:
            click.echo(f"\n✗ {error}", err=True)
            raise SystemExit(1) from error
    took_s = time.monotonic() - began
    story.say(f"\nAll {story.claims} claims hold. It took {took_s:.0f} s.", bold=True)


if __name__ == "__main__":
    main()
