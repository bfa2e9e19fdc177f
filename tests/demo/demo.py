"""`make demo`: a week of an agent's memory and one night's sleep, with the real daemon."""

import json
import re
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import click
import sqlite_utils
from tabulate import tabulate

sys.path.pop(0)  # this folder, in which `demo` would be this file
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from demo.stage import PATIENCE_S, WIDTH, ClaimFailed, Stage, Story

from mnemosyned.errors import MnemosynedError
from mnemosyned.memory.consolidation import CycleReport
from mnemosyned.memory.values import Hit, Line, Tier
from mnemosyned.verbs.memories import Remember

WEEK = Path(__file__).with_name("week.jsonl")
QUESTION = "What is the Wi-Fi code at the cabin?"
ANSWER = "larch-otter-58-brisk"
AGE_RULE = timedelta(hours=12)
LATE_BY = timedelta(hours=13)
LATE = (
    "Slipped on the cabin's steps, left knee. Swollen on Tuesday: doctor.",
    "Parked below the church because of the plough; Tomek has the spare car key.",
    "Mrs. Moser's plumber is called Huber, 0664 555 0190, he comes on Tuesday at 09:00.",
    "Bed linen: one set short at the cabin, Mrs. Moser lends hers from the cellar shelf.",
)
EXACT = re.compile(
    r"[\w.+-]+@[\w.-]+\w|https?://[\w./-]+\w|\b[a-z]+/[\w/]+\.py|\b[A-Z]+(?:-\d+)+\b"
)
"""Addresses of mail and web, paths and tickets, as anyone would find them in the sample week."""
LEAVER = "Kofler"
"""Said in three memories, and so in what was made of them."""

Memories = list[dict[str, Any]]


def moved_week(now: datetime) -> Memories:
    """Read the sample memories, moved in time so that the last is three minutes old."""
    memories: Memories = [
        json.loads(line) for line in WEEK.read_text("utf-8").splitlines()
    ]
    shift = now - timedelta(minutes=3) - _instant(memories[-1])
    for memory in memories:
        memory["created_at"] = (_instant(memory) + shift).isoformat(timespec="seconds")
    return memories


def _instant(memory: dict[str, Any]) -> datetime:
    return datetime.fromisoformat(memory["created_at"])


def start(story: Story, stage: Stage, process: subprocess.Popen[bytes]) -> None:
    story.step(
        "Start the daemon",
        "It keeps everything in one file and listens on a socket that only you can open. "
        "Usually systemd starts it for you.",
    )
    story.command("mnemosyned", "--database", "memory.db", "--socket", "mnem.sock")
    started = time.monotonic()
    pid = stage.answering_pid()
    took_s = time.monotonic() - started
    story.claim(
        f"The daemon answers: after {took_s:.1f} s, as process {pid}.",
        holds=pid == process.pid,
        because=stage.log.read_text(),
    )


def remember_week(story: Story, stage: Stage, week: Memories) -> None:
    story.step(
        "Remember the week",
        "Chats, shell output, mail, notes and CI runs of a developer and her agent. When the "
        "command returns, all of them are on disk.",
    )
    file = stage.database.with_name("week.jsonl")
    lines = (json.dumps(memory, ensure_ascii=False) for memory in week)
    file.write_text("\n".join(lines) + "\n", "utf-8")
    stage.show(story, "import", str(file), typed=("import", "week.jsonl"))
    tiers = stage.tiers()
    story.claim(
        f"All {len(week)} memories are in working memory, and the other tiers are empty.",
        holds=tiers == [len(week), 0, 0],
        because=tiers,
    )


def ask(story: Story, stage: Stage, title: str, why: str) -> Hit:
    story.step(title, why)
    stage.show(story, "recall", QUESTION, "--limit", "1")
    return stage.client.recall(QUESTION, limit=1).hits[0]


def sleep(story: Story, stage: Stage, week: Memories, now: datetime) -> CycleReport:
    story.step(
        "Sleep",
        "Memories older than 12 hours are grouped by conversation and source, shortened to episodes, "
        "and moved to the archive. Usually the daemon does this by itself. (Shortened here: the "
        "command lists every group.)",
    )
    story.command("mnem", "sleep")
    report = stage.client.sleep()
    headers = ("session", "source", "memories", "episodes", "chars", "after")
    click.echo(tabulate(_by_source(report), headers, intfmt=","))
    old = (each for each in week if now - _instant(each) > AGE_RULE)
    due = [memory for memory in old if not memory.get("pinned")]
    young = len(week) - len(due)
    story.claim(
        f"In {report.duration_s:.2f} s, {report.evicted} memories became {report.promoted} "
        "episodes: exactly those that were old enough and not pinned.",
        holds=(report.evicted, report.failed) == (len(due), 0),
        because=(report.evicted, len(due), report.failed),
    )
    tiers = stage.tiers()
    story.claim(
        f"Nothing is lost: {young} young or pinned memories stay in working memory, and the "
        f"{len(due)} originals are in the archive.",
        holds=tiers == [young, report.promoted + report.rolled_up, len(due)],
        because=tiers,
    )
    story.claim(
        f"The days and weeks that are over were rolled up into {report.rolled_up} summaries above them.",
        holds=report.rolled_up > 0,
        because=report.rolled_up,
    )
    said = {value for memory in due for value in EXACT.findall(memory["content"])}
    episodes = [id for group in report.groups for id in group.episodes]
    found = filter(None, (stage.client.get(id).episode for id in episodes))
    kept = {detail.value for episode in found for detail in episode.details}
    story.claim(
        f"The {len(said)} addresses, paths and ticket numbers in them are kept next to the summaries, "
        "letter for letter.",
        holds=len(said) > 15 and said <= kept,
        because=said - kept,
    )
    return report


def _by_source(report: CycleReport) -> list[tuple[object, ...]]:
    rows: dict[tuple[str, str], list[int]] = {}
    for group in report.groups:
        if group.level:
            continue
        row = rows.setdefault((group.session, group.source or ""), [0, 0, 0, 0])
        episodes, chars = len(group.episodes), (group.chars_before, group.chars_after)
        numbers = (group.items, episodes, *chars)
        row[:] = [old + new for old, new in zip(row, numbers, strict=True)]
    total = (report.evicted, report.promoted, report.chars_before, report.chars_after)
    return [*((*name, *row) for name, row in rows.items()), ("all", "", *total)]


def read_log(story: Story, stage: Stage, report: CycleReport) -> None:
    story.step(
        "Read what it did",
        "Every group leaves a row, also one that fails: when, why, how many, by which summarizer, "
        "and how the summary begins.",
    )
    stage.show(story, "log", "--session", "tideline", "--limit", "5")
    rows = stage.client.log(limit=1_000, cycle=report.cycle).rows
    logged = sum(row.items_consolidated for row in rows)
    story.claim(
        f"The log accounts for all {logged} memories that left working memory.",
        holds=logged == report.evicted
        and {row.trigger for row in rows} == {"explicit"},
        because=rows,
    )


def expand(story: Story, stage: Stage, hit: Hit, week: Memories) -> None:
    story.step(
        "Go back to the originals",
        "Below a summary are its original messages.",
    )
    stage.show(story, "expand", hit.id)
    originals = stage.client.expand(hit.id).originals
    story.claim(
        f"These are its {len(originals)} originals, letter for letter as they came in.",
        holds=tuple(memory.id for memory in originals) == hit.summary_of
        and {memory.content for memory in originals}
        <= {memory["content"] for memory in week},
        because=originals,
    )


def look_at_a_day(story: Story, stage: Stage, report: CycleReport, hit: Hit) -> None:
    story.step(
        "Look at a day",
        "Days, weeks and months that are over have a summary each, made of the level below. One "
        "level down from a day are its episodes.",
    )
    days = [group for group in report.groups if group.level == 1]
    found = {group.episodes[0]: group.period for group in days}
    below = {day: stage.client.expand(day, depth=1).summaries for day in found}
    day = next(
        (day for day in below if hit.id in {one.id for one in below[day]}), min(below)
    )
    stage.show(story, "expand", day, "--depth", "1")
    story.claim(
        f"The episode with the code is among the {len(below[day])} of {found[day]}.",
        holds=hit.id in {one.id for one in below[day]},
        because=below,
    )


def forget(story: Story, stage: Stage, week: Memories) -> Memories:
    """Forget a person; what is left of the week."""
    story.step(
        "Forget somebody",
        "The command shows what it would delete, and asks first; --yes skips the question. Every "
        "summary that mentions her is rewritten from the other memories.",
    )
    stage.show(story, "forget", "--person", LEAVER, "--yes")
    files = stage.database.parent.glob(f"{stage.database.name}*")
    story.claim(
        f"The name {LEAVER} is in no file of the database any more.",
        holds=not any(LEAVER.encode() in file.read_bytes() for file in files),
        because=stage.client.recall(LEAVER).hits,
    )
    return [memory for memory in week if LEAVER not in memory["content"]]


def restore(story: Story, stage: Stage, line: Line) -> None:
    story.step(
        "Take something back",
        "One original comes back from the archive to working memory, where it stays. mnem undo takes "
        "back a whole sleep.",
    )
    stage.show(story, "restore", line.id)
    memory = stage.client.get(line.id).memory
    story.claim(
        "The line with the code is in working memory again, pinned.",
        holds=memory is not None
        and (memory.tier, memory.pinned, memory.content)
        == (Tier.WORKING, True, line.content),
        because=memory,
    )


def remember_late(story: Story, stage: Stage) -> None:
    story.step(
        "Late arrivals",
        f"A phone that was offline sends {len(LATE)} notes of 13 hours ago, this one "
        "first. The time of the note counts, so the next sleep summarizes them.",
    )
    then = datetime.now(UTC) - LATE_BY
    stamp = f"{then:%Y-%m-%dT%H:%M:%SZ}"
    words = ("remember", LATE[0], "--source", "phone", "--created-at", stamp)
    stage.show(story, *words)
    notes = [Remember(text, source="phone", created_at=then) for text in LATE[1:]]
    stage.client.remember_many(notes)
    due = stage.client.status().sleep.due
    story.claim(f"Now due: {due} memories.", holds=due == len(LATE), because=due)


def stop(story: Story, stage: Stage, process: subprocess.Popen[bytes]) -> None:
    story.step(
        "Stop the daemon",
        "On SIGTERM, as when the machine shuts down, the daemon takes no more writes, summarizes "
        "the memories that are old enough, and ends.",
    )
    story.command("kill", "-TERM", str(process.pid))
    started = time.monotonic()
    process.send_signal(signal.SIGTERM)
    code = process.wait(timeout=PATIENCE_S)
    story.claim(
        f"It ended after {time.monotonic() - started:.2f} s, with exit status 0.",
        holds=code == 0,
        because=stage.log.read_text(),
    )


def look_inside(story: Story, stage: Stage, week: Memories) -> None:
    story.step(
        "Look into the file",
        "Your memory is one SQLite file that any tool can read, also without the daemon. This query "
        "shows the sleep of the shutdown.",
    )
    query = "select * from consolidation_log where trigger = 'shutdown'"
    story.command("sqlite-utils", "memory.db", query, "--table")
    connection = sqlite3.connect(f"{stage.database.as_uri()}?mode=ro", uri=True)
    database = sqlite_utils.Database(connection)
    try:
        rows = list(database.query(query))
        tables = ("working_memory", "archive")
        kept = sorted(
            row["content"] for table in tables for row in database[table].rows
        )
    finally:
        database.close()
    columns = ("trigger", "status", "items_consolidated", "summary_preview")
    room = WIDTH - 50
    click.echo(
        tabulate([[str(row[name])[:room] for name in columns] for row in rows], columns)
    )
    done = sum(row["items_consolidated"] for row in rows)
    story.claim(
        f"The {len(LATE)} late arrivals were summarized before the daemon ended.",
        holds=done == len(LATE),
        because=rows,
    )
    said = sorted([*(memory["content"] for memory in week), *LATE])
    story.claim(
        f"All {len(said)} memories that were not forgotten are still there, letter for letter.",
        holds=kept == said,
        because=set(said) ^ set(kept),
    )


def tell(story: Story, folder: Path) -> None:
    """Play every step in order."""
    now = datetime.now(UTC)
    week, stage = moved_week(now), Stage(folder)
    story.say("A week of memory and a night of sleep", bold=True)
    story.say(
        "A real daemon on a real database in a temporary directory; your own memory is not "
        "touched. Each ✓ was checked before it was printed. The sample week ends now."
    )
    with stage.daemon() as process:
        start(story, stage, process)
        remember_week(story, stage, week)
        why = "While it is fresh, recall answers with the line itself, from working memory."
        before = ask(story, stage, "Ask before sleep", why)
        story.claim(
            f"The code {ANSWER} comes from working memory.",
            holds=ANSWER in before.content and before.tier is Tier.WORKING,
            because=before,
        )
        report = sleep(story, stage, week, now)
        read_log(story, stage, report)
        why = "A summary leaves out much. So recall shows the episode with the line that matches."
        after = ask(story, stage, "Ask the same after sleep", why)
        story.claim(
            "It is the same line, letter for letter, now under its episode.",
            holds=after.tier is Tier.EPISODIC
            and [line.content for line in after.lines[:1]] == [before.content],
            because=after,
        )
        expand(story, stage, after, week)
        look_at_a_day(story, stage, report, after)
        left = forget(story, stage, week)
        restore(story, stage, after.lines[0])
        remember_late(story, stage)
        stop(story, stage, process)
        look_inside(story, stage, left)


def main() -> None:
    """Tell the story; exit 0 only if every claim held."""
    story, started = Story(), time.monotonic()
    try:
        with tempfile.TemporaryDirectory(prefix="mnemosyned-demo-") as folder:
            tell(story, Path(folder))
    except (ClaimFailed, MnemosynedError, subprocess.TimeoutExpired) as error:
        click.echo(click.style(f"\n✗ {error}", fg="red"), err=True)
        sys.exit(1)
    took_s = time.monotonic() - started
    click.echo()
    story.say(
        f"All {story.claims} claims held. It took {took_s:.1f} s.",
        fg="green",
        bold=True,
    )


if __name__ == "__main__":
    main()
