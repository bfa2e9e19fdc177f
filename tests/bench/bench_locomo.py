"""How much of the evidence LoCoMo's questions need is found, before and after a sleep.

The measure is recall@10 of evidence turns, which no judge has to decide: a result counts for a turn
if it is that turn, or an episode that shows the turn among its matched lines.
"""

from __future__ import annotations

import argparse
import re
import sqlite3
import statistics
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import astuple, dataclass
from datetime import UTC, datetime, timedelta
from itertools import islice
from pathlib import Path
from typing import Any, TypeAlias

import msgspec

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench.daemon import running
from bench.measure import LINES_MAX, RESULTS, say, timed
from bench.report import Report

from mnemosyned import Client
from mnemosyned.domain.memory import Tier
from mnemosyned.domain.recall import Hit
from mnemosyned.verbs import BATCH_MAX, Remember

CATEGORIES = {1: "several facts", 2: "time", 3: "common sense", 4: "single fact"}
BEFORE_BAR = 0.62
CYCLES_MAX = 50

Search: TypeAlias = Callable[["Asked"], Sequence[frozenset[str]]]
"""Answers a question with the ids of the turns each result shows, best first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A question with the turns that answer it."""

    text: str
    sample: str
    category: int
    evidence: frozenset[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """Means over the questions of one kind."""

    recall_10: float
    recall_5: float
    hit_10: float
    shown: float
    """How many turns ten results put before the reader: an episode shows up to three."""
    questions: int


# -------------------------------------------------------------------- dataset


class Conversation(msgspec.Struct):
    """One of the ten samples, as the dataset's file has it."""

    sample_id: str
    conversation: dict[str, Any]
    qa: list[dict[str, Any]]

    def turns(self) -> Iterator[Remember]:
        """Every turn as a memory, in order."""
        numbered = (
            (int(key.removeprefix("session_")), said)
            for key, said in self.conversation.items()
            if re.fullmatch(r"session_\d+", key)
        )
        for number, said in sorted(numbered):
            session = f"session_{number}"
            began = when(self.conversation[f"{session}_date_time"])
            for second, turn in enumerate(said):
                yield Remember(
                    content=turn["text"],
                    id=f"{self.sample_id}/{turn['dia_id']}",
                    session=f"{self.sample_id}/{session}",
                    source=self.sample_id,
                    role=turn["speaker"],
                    created_at=began + timedelta(seconds=second),
                )

    def questions(self) -> Iterator[Asked]:
        """Questions of the four kinds whose evidence exists."""
        known = {turn.id for turn in self.turns()}
        for item in self.qa:
            evidence = known & turn_ids(self.sample_id, item.get("evidence") or [])
            if item["category"] in CATEGORIES and evidence:
                yield Asked(
                    text=item["question"],
                    sample=self.sample_id,
                    category=item["category"],
                    evidence=frozenset(id_ for id_ in evidence if id_),
                )


def when(said: str) -> datetime:
    """The instant of `1:56 pm on 8 May, 2023`, taken as UTC."""
    return datetime.strptime(said, "%I:%M %p on %d %B, %Y").replace(tzinfo=UTC)


def turn_ids(sample: str, evidence: Sequence[str]) -> set[str]:
    """Ids of the turns named; the dataset writes them as D8:6, but also "D8:6; D9:17", D:11:26."""
    named = re.findall(r"D:?(\d+):(\d+)", " ".join(evidence))
    return {f"{sample}/D{int(session)}:{int(turn)}" for session, turn in named}


# ------------------------------------------------------------------ searching


def shown_turns(hit: Hit) -> frozenset[str]:
    """The turns a result puts before the reader."""
    if hit.tier is Tier.EPISODIC:
        return frozenset(line.id for line in hit.lines[:LINES_MAX])
    return frozenset([hit.id])


def daemon_search(client: Client, *, scoped: bool) -> Search:
    """The daemon, asked within the question's conversation or in everything."""

    def search(asked: Asked) -> list[frozenset[str]]:
        source = asked.sample if scoped else None
        recalled = client.recall(asked.text, limit=RESULTS, source=source)
        return [shown_turns(hit) for hit in recalled.hits]

    return search


def bare_search(conversations: Sequence[Conversation], *, with_speaker: bool) -> Search:
    """The baseline: a plain FTS5 table for each conversation, OR of all words, bm25 order."""
    database = sqlite3.connect(":memory:")
    tables = {}
    for number, conversation in enumerate(conversations):
        table = tables[conversation.sample_id] = f"turns_{number}"
        database.execute(
            f"CREATE VIRTUAL TABLE {table} USING fts5(id UNINDEXED, content, tokenize=unicode61)"
        )
        rows = (
            (turn.id, f"{turn.role}: {turn.content}" if with_speaker else turn.content)
            for turn in conversation.turns()
        )
        database.executemany(f"INSERT INTO {table} VALUES (?, ?)", rows)

    def search(asked: Asked) -> list[frozenset[str]]:
        match = " OR ".join(f'"{word}"' for word in re.findall(r"\w+", asked.text))
        table = tables[asked.sample]
        select = f"SELECT id FROM {table} WHERE {table} MATCH ? ORDER BY rank LIMIT ?"
        return [frozenset(row) for row in database.execute(select, (match, RESULTS))]

    return search


# -------------------------------------------------------------------- scoring


def found(results: Sequence[frozenset[str]], evidence: frozenset[str], first: int) -> float:
    """The share of the evidence among the first results."""
    return len(evidence & frozenset().union(*results[:first])) / len(evidence)


def scores(search: Search, questions: Sequence[Asked]) -> dict[str, Score]:
    """Ask everything once; the score of every kind of question, and of all."""
    answers = [(asked, search(asked)) for asked in questions]
    kinds = {name: [a for a in answers if a[0].category == n] for n, name in CATEGORIES.items()}
    return {kind: score(chosen) for kind, chosen in {**kinds, "all": answers}.items() if chosen}


def score(answers: Sequence[tuple[Asked, Sequence[frozenset[str]]]]) -> Score:
    at_10 = [found(results, asked.evidence, 10) for asked, results in answers]
    at_5 = [found(results, asked.evidence, 5) for asked, results in answers]
    return Score(
        recall_10=statistics.mean(at_10),
        recall_5=statistics.mean(at_5),
        hit_10=statistics.mean(share > 0 for share in at_10),
        shown=statistics.mean(len(frozenset().union(*results)) for _, results in answers),
        questions=len(answers),
    )


# ------------------------------------------------------------------- the bench


def remember_all(client: Client, conversations: Sequence[Conversation]) -> None:
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


def ask_all(client: Client, questions: Sequence[Asked]) -> dict[str, dict[str, Score]]:
    return {
        "per conversation": scores(daemon_search(client, scoped=True), questions),
        "all in one": scores(daemon_search(client, scoped=False), questions),
    }


def measure(report: Report, conversations: Sequence[Conversation]) -> None:
    """Fill a daemon, ask, let it sleep, ask again."""
    questions = [asked for conversation in conversations for asked in conversation.questions()]
    runs: dict[str, dict[str, Score]] = {
        "bare FTS5": scores(bare_search(conversations, with_speaker=False), questions),
        "bare FTS5 with speaker": scores(bare_search(conversations, with_speaker=True), questions),
    }
    with (
        tempfile.TemporaryDirectory(prefix="locomo-") as room,
        running(Path(room, "memory.db")) as daemon,
        daemon.client() as client,
    ):
        seconds, _ = timed(remember_all, client, conversations)
        report.figure("remember_s", seconds)
        working = client.status().tiers[Tier.WORKING].characters
        say(f"asking {len(questions)} questions before the sleep")
        runs |= {f"before, {scope}": found for scope, found in ask_all(client, questions).items()}
        say("sleeping")
        seconds, cycles = timed(sleep_all, client)
        say(f"slept {seconds:.1f} s; asking again")
        runs |= {f"after, {scope}": found for scope, found in ask_all(client, questions).items()}
        episodic = client.status().tiers[Tier.EPISODIC]
    for name, value in {
        "sleep_s": seconds,
        "sleep_cycles": cycles,
        "working_characters_before": working,
        "episodic_characters_after": episodic.characters,
        "episodes_after": episodic.count,
        "characters_after_per_before": episodic.characters / working,
    }.items():
        report.figure(name, value)
    publish(report, runs)


def publish(report: Report, runs: dict[str, dict[str, Score]]) -> None:
    rows: list[list[object]] = []
    for run, kinds in runs.items():
        for kind, reached in kinds.items():
            rows.append([run, kind, *astuple(reached)])
            report.figure(f"{run}/{kind}/recall@10", reached.recall_10)
        report.figure(f"{run}/all/recall@5", kinds["all"].recall_5)
        report.figure(f"{run}/all/hit@10", kinds["all"].hit_10)
        report.figure(f"{run}/all/shown", kinds["all"].shown)
    headers = ["run", "kind", "recall@10", "recall@5", "hit@10", "shown", "questions"]
    report.table("Evidence turns found", headers, rows)
    before = runs["before, per conversation"]["all"].recall_10
    after = runs["after, per conversation"]["all"].recall_10
    report.bar("recall@10 before sleep", before, ">=", BEFORE_BAR)
    report.bar("recall@10 after sleep, against before", after, ">=", before)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="locomo10.json")
    content = parser.parse_args().data.read_bytes()
    report = Report("bench-locomo")
    measure(report, msgspec.json.decode(content, type=list[Conversation]))
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
