"""How much of the evidence LoCoMo's questions need is found, before and after a sleep.

The measure is recall of evidence turns, which no judge has to decide: a result counts for a turn
if it is that turn, or an episode that shows the turn among its matched lines. Asked are the
questions with evidence of categories 1 to 4, each within its conversation and over all ten in one
database. The nearest peer gets the same turns, with the speaker before the words and each session
as a source of its own, since it sleeps by source; as it answers with texts, a result counts for
every turn that has most of its words in the text. It is asked in its own process.

mcp-memory-service is left out: its embedding model comes from the network. Without one, version
12.2.0 starts on an empty database alone, with hashes that it calls pseudo-vectors itself.
"""

from __future__ import annotations

import argparse
import re
import sqlite3
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict
from itertools import islice
from pathlib import Path

import msgspec

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench.daemon import running
from bench.locomo import (
    CATEGORIES,
    EVERYTHING,
    HALVES,
    Asked,
    Conversation,
    Results,
    Score,
    Search,
    scores,
)
from bench.locomo_peer import peer_runs
from bench.measure import Memories, say, timed
from bench.plot import Series, bars
from bench.report import Report

from mnemosyned import Client
from mnemosyned.memory.values import EmbedderState, Hit, Tier
from mnemosyned.verbs.memories import BATCH_MAX

BEFORE_BARS = {"within": 0.80, "all ten": 0.78}
CYCLES_MAX = 50
EMBEDDED_WITHIN_S = 1_800.0
WITH_VECTORS = {"MNEMOSYNE_EMBEDDING_WAIT_MS": "60000"}
BUILTIN = "builtin"
"""No question goes by words alone because the machine is busy."""

Runs = dict[str, dict[str, Score]]
"""The scores of every system, stage and scope, by kind of question."""


# ------------------------------------------------------------------ searching


def shown_turns(hit: Hit) -> frozenset[str]:
    """The turns a result puts before the reader."""
    if hit.tier is Tier.EPISODIC:
        return frozenset(line.id for line in hit.lines)
    return frozenset([hit.id])


def daemon_search(client: Client, *, within: bool) -> Search:
    """The daemon, asked within the question's conversation or in everything."""

    def search(questions: Sequence[Asked], limit: int) -> list[Results]:
        answers: list[Results] = []
        for asked in questions:
            source = asked.sample if within else None
            recalled = client.recall(asked.text, limit=limit, source=source)
            answers.append([shown_turns(hit) for hit in recalled.hits])
        return answers

    return search


def bare_search(
    conversations: Sequence[Conversation], *, with_speaker: bool, within: bool
) -> Search:
    """The baseline: a plain FTS5 table for each conversation or for all, OR of all words, bm25."""
    database = sqlite3.connect(":memory:")
    tables = {}
    for number, conversation in enumerate(conversations):
        table = tables[conversation.sample_id] = f"turns_{number if within else 0}"
        database.execute(
            f"CREATE VIRTUAL TABLE IF NOT EXISTS {table} "
            "USING fts5(id UNINDEXED, content, tokenize=unicode61)"
        )
        rows = (
            (turn.id, f"{turn.role}: {turn.content}" if with_speaker else turn.content)
            for turn in conversation.turns()
        )
        database.executemany(f"INSERT INTO {table} VALUES (?, ?)", rows)

    def search(questions: Sequence[Asked], limit: int) -> list[Results]:
        answers: list[Results] = []
        for asked in questions:
            match = " OR ".join(f'"{word}"' for word in re.findall(r"\w+", asked.text))
            table = tables[asked.sample]
            select = (
                f"SELECT id FROM {table} WHERE {table} MATCH ? ORDER BY rank LIMIT ?"
            )
            answers.append(
                [frozenset(row) for row in database.execute(select, (match, limit))]
            )
        return answers

    return search


# ------------------------------------------------------------------- the runs


def remember_all(client: Memories, conversations: Sequence[Conversation]) -> None:
    """Remember every turn over the socket, and make sure that all of it is working memory."""
    count = 0
    for conversation in conversations:
        rest = conversation.turns()
        while batch := list(islice(rest, BATCH_MAX)):
            client.remember_many(batch)
            count += len(batch)
    held = client.status().tiers[Tier.WORKING].count
    if held != count:
        raise RuntimeError(f"{count} turns were sent, working memory holds {held}")


def sleep_all(client: Client) -> int:
    """Sleep until working memory is empty, since a cycle may be bounded; how many it took."""
    for cycle in range(1, CYCLES_MAX + 1):
        client.sleep(force=True)
        if not client.status().tiers[Tier.WORKING].count:
            return cycle
    raise RuntimeError(f"working memory is not empty after {CYCLES_MAX} cycles")


def wait_embedded(client: Client) -> None:
    """Return when every memory has a vector."""
    say("embedding")
    until = time.monotonic() + EMBEDDED_WITHIN_S
    while time.monotonic() < until:
        status = client.status()
        if status.embedder.state is EmbedderState.UNAVAILABLE:
            raise RuntimeError(status.embedder.reason)
        if status.embedder.embedded == status.tiers[Tier.WORKING].count:
            return
        time.sleep(1)
    raise RuntimeError(f"not every memory was embedded in {EMBEDDED_WITHIN_S:g} s")


def bare_runs(conversations: Sequence[Conversation]) -> Runs:
    return {
        f"bare FTS5{' with speaker' * with_speaker}, {scope}": scores(
            bare_search(
                conversations, with_speaker=with_speaker, within=scope == "within"
            ),
            conversations,
        )
        for with_speaker in (False, True)
        for scope in BEFORE_BARS
    }


def our_runs(
    report: Report, conversations: Sequence[Conversation], embedding: Path | None = None
) -> Runs:
    """Fill a daemon, ask, let it sleep, ask again; by words alone, or with a model's vectors."""
    runs: Runs = {}
    also = " with vectors" if embedding else ""
    env = (
        {}
        if not embedding
        else {**WITH_VECTORS, "MNEMOSYNE_EMBEDDING_ENCODER": BUILTIN}
        if str(embedding) == BUILTIN
        else {**WITH_VECTORS, "MNEMOSYNE_EMBEDDING_MODEL_PATH": str(embedding)}
    )

    def ask(stage: str) -> None:
        say(f"asking {stage} the sleep")
        for scope in BEFORE_BARS:
            search = daemon_search(client, within=scope == "within")
            runs[f"{stage}{also}, {scope}"] = scores(search, conversations)

    with (
        tempfile.TemporaryDirectory(prefix="locomo-") as room,
        running(Path(room, "memory.db"), env) as daemon,
        daemon.client() as client,
    ):
        remember_s, _ = timed(remember_all, client, conversations)
        working = client.status().tiers[Tier.WORKING].characters
        if embedding:
            embed_s, _ = timed(wait_embedded, client)
            report.figure("embed_s", embed_s)
        ask("before")
        say("sleeping")
        sleep_s, cycles = timed(sleep_all, client)
        ask("after")
        episodic = client.status().tiers[Tier.EPISODIC]
    for name, value in {
        "remember_s": remember_s,
        "sleep_s": sleep_s,
        "sleep_cycles": cycles,
        "working_characters_before": working,
        "episodic_characters_after": episodic.characters,
        "episodes_after": episodic.count,
        "characters_after_per_before": episodic.characters / working,
    }.items():
        report.figure(f"{name}{also}", value)
    return runs


# --------------------------------------------------------------------- report


def publish(report: Report, runs: Runs) -> None:
    overall: list[list[object]] = []
    by_kind: list[list[object]] = []
    for run, kinds in runs.items():
        for kind, scored in kinds.items():
            for what, value in asdict(scored).items():
                report.figure(f"{run}/{kind}/{what}", value)
        halves = [kinds[half].recall_10 for half in HALVES if half in kinds]
        overall.append([run, *asdict(kinds[EVERYTHING]).values(), *halves])
        by_kind.append(
            [
                run,
                *(
                    kinds[name].recall_10
                    for name in CATEGORIES.values()
                    if name in kinds
                ),
            ]
        )
    headers = ["run", "recall@5", "recall@10", "recall@20", "hit@10", "shown"]
    halves_headers = [f"@10, {half}" for half in HALVES]
    report.table("Evidence turns found", [*headers, *halves_headers], overall)
    report.table(
        "recall@10 by kind of question", ["run", *CATEGORIES.values()], by_kind
    )
    reached = {run: kinds[EVERYTHING].recall_10 for run, kinds in runs.items()}
    for scope, bar in BEFORE_BARS.items():
        before, after = reached[f"before, {scope}"], reached[f"after, {scope}"]
        report.bar(f"recall@10 before sleep, {scope}", before, ">=", bar)
        report.bar(
            f"recall@10 after sleep, {scope}, against before", after, ">=", before
        )
        for stage, words in (("before", before), ("after", after)):
            if with_vectors := reached.get(f"{stage} with vectors, {scope}"):
                name = f"recall@10 {stage} sleep with vectors, {scope}, against words alone"
                report.bar(name, with_vectors, ">=", words)
    for run, value in reached.items():
        if run.startswith("peer "):
            ours = reached[run.removeprefix("peer ")]
            report.bar(f"recall@10 of the {run}, below ours", value, "<", ours)


def picture(runs: Runs) -> str:
    names = {
        "bare FTS5 with speaker": "bare FTS5",
        "peer before": "mnemosyne-memory",
        "peer after": "mnemosyne-memory, slept",
        "before": "mnemosyned",
        "after": "mnemosyned, slept",
    }
    series = [
        Series(
            label,
            [
                runs[run][EVERYTHING].recall_10
                if (run := f"{name}, {scope}") in runs
                else None
                for scope in BEFORE_BARS
            ],
        )
        for name, label in names.items()
        if f"{name}, within" in runs
    ]
    return bars(
        "Evidence found among the first 10 results, LoCoMo",
        y_label="recall@10",
        groups=["asked within the conversation", "over all ten conversations"],
        series=series,
        targets=list(BEFORE_BARS.values()),
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="locomo10.json")
    parser.add_argument("--no-peer", action="store_true", help="leave the peer out")
    parser.add_argument(
        "--embedding", type=Path, help="once more with this GGUF's vectors"
    )
    options = parser.parse_args()
    conversations = msgspec.json.decode(
        options.data.read_bytes(), type=list[Conversation]
    )
    report = Report("bench-locomo")
    runs = bare_runs(conversations)
    if not options.no_peer:
        runs |= peer_runs(conversations)
    runs |= our_runs(report, conversations)
    if options.embedding:
        runs |= our_runs(report, conversations, options.embedding)
    publish(report, runs)
    report.picture("locomo", picture(runs))
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
