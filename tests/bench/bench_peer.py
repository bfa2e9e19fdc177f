"""The product against its nearest peer: the same corpus, the same machine, the same run.

Ours remembers durably over the socket of a real daemon; the peer in its own process. Both are
asked embedded. Wall times of a noisy machine mean little: the bars are ratios within the run.
"""

from __future__ import annotations

import shutil
import statistics
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench.corpus import Corpus, Entry, Question, aged, fresh
from bench.daemon import embedded, running
from bench.measure import (
    Latency,
    asking,
    bytes_on_disk,
    fill,
    hit_share,
    latency,
    rate,
    recall_each,
    remember_each,
    right,
    say,
    text_bytes,
    timed,
)
from bench.peer import Peer, running_peer
from bench.report import Report

from mnemosyned import Memory
from mnemosyned.memory.values import Tier

SMALL, LARGE = SIZES = (1_000, 10_000)
TIMED, ROUND = 500, 50
OUR_QUESTIONS, PEER_QUESTIONS = 100, 40
WARM, TURNS = 5, 5
SLEEPS, CYCLES_MAX = 3, 50
RECALL_BARS = {
    "unique code": 1.0,
    "person+code": 0.25,
    "question": 0.25,
    "no match": 0.25,
}

Questions = Mapping[str, Sequence[Question]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """What is found, and what lies on disk for each byte of text."""

    hits: dict[str, float]
    disk: float


@dataclass(slots=True)
class Night:
    """One system's sleep over the same memories, several times, and what stood around it."""

    before: Sample
    after: Sample
    sleep_s: list[float] = field(default_factory=list)
    cpu_s: list[float] = field(default_factory=list)


# ------------------------------------------------------------------- remember


class Contest:
    """Both systems at both sizes, all open at once, so that each round meets the same machine."""

    def __init__(
        self, ours: ExitStack, theirs: ExitStack, room: Path, corpus: Corpus
    ) -> None:
        self._corpus = corpus
        self.databases = {size: room / f"{size}.db" for size in SIZES}
        daemons = {s: ours.enter_context(running(d)) for s, d in self.databases.items()}
        self.ours = {s: ours.enter_context(d.client()) for s, d in daemons.items()}
        self.peers = {size: theirs.enter_context(running_peer()) for size in SIZES}

    def fill(self) -> None:
        """Leave room for the entries that count. The peer may fill itself by its batch call."""
        for size in SIZES:
            say(f"remembering {size:,}")
            remember_each(self.ours[size], self._entries(0, size - TIMED))
            self.peers[size].batch(self._entries(0, size - TIMED))

    def rates(self) -> dict[tuple[str, int], float]:
        """Memories per second, one by one, as the last hundreds of each size are remembered."""
        say(f"remembering the last {TIMED} one by one")
        seconds = defaultdict[tuple[str, int], list[float]](list)
        for done in range(0, TIMED, ROUND):
            for size in SIZES:
                start = size - TIMED + done
                ours = remember_each(
                    self.ours[size], self._entries(start, start + ROUND)
                )
                theirs = self.peers[size].remember_each(
                    self._entries(start, start + ROUND)
                )
                seconds["ours", size] += ours
                seconds["peer", size] += theirs
        for size, peer in self.peers.items():
            if peer.count() != size:
                raise RuntimeError(f"the peer holds {peer.count()} of {size} memories")
        return {who: rate(taken, chunk=ROUND) for who, taken in seconds.items()}

    def _entries(self, start: int, stop: int) -> list[Entry]:
        return [self._corpus.entry(number) for number in range(start, stop)]


# --------------------------------------------------------------------- recall


def compare_recall(
    report: Report, memory: Memory, peer: Peer, questions: Questions
) -> None:
    rows: list[list[object]] = []
    for kind, asked in questions.items():
        say(f"recall, {kind}")
        ours, theirs = recall_in_turns(memory, peer, asked)
        for who, taken in {"ours": ours, "peer": theirs}.items():
            report.figure(f"recall/{kind}/{who}/p50_ms", taken.p50_ms)
            report.figure(f"recall/{kind}/{who}/p95_ms", taken.p95_ms)
        share = ours.p50_ms / theirs.p50_ms
        rows.append(
            [kind, ours.p50_ms, ours.p95_ms, theirs.p50_ms, theirs.p95_ms, share]
        )
        report.bar(f"recall p50, {kind}, ours / peer", share, "<=", RECALL_BARS[kind])
    headers = ["class", "ours p50", "ours p95", "peer p50", "peer p95", "ours / peer"]
    report.table(f"Recall at {LARGE:,}, embedded, milliseconds", headers, rows)


def recall_in_turns(
    memory: Memory, peer: Peer, asked: Sequence[Question]
) -> tuple[Latency, Latency]:
    """Ours and the peer's, a few questions each in turn; the first ones warm up."""
    recall = asking(memory)
    ours: list[float] = []
    theirs: list[float] = []
    recall_each(recall, asked[:WARM])
    peer.recall([question.text for question in asked[:WARM]])
    for turn in range(TURNS):
        ours += recall_each(recall, asked[turn::TURNS])
        texts = [question.text for question in asked[:PEER_QUESTIONS][turn::TURNS]]
        theirs += [seconds for seconds, _ in peer.recall(texts)]
    return latency(ours), latency(theirs)


# ---------------------------------------------------------------------- sleep


class Nights:
    """Both systems sleep in turns, each time over a fresh copy of the same aged memories."""

    def __init__(
        self, room: Path, peer: Peer, corpus: Corpus, questions: Questions
    ) -> None:
        self._room = room
        self._peer = peer
        self._corpus = corpus
        self._questions = answered(questions)
        self._text = text_bytes(corpus)
        self._evening = room / f"aged-{corpus.count}.db"

    def run(self) -> dict[str, Night]:
        """What both systems' nights were like."""
        say(f"{self._corpus.count:,} aged memories")
        with embedded(self._evening) as memory:
            fill(memory, self._corpus)
            hits = our_hits(memory, self._questions)
        ours = Sample(hits=hits, disk=bytes_on_disk(self._evening) / self._text)
        theirs = self._sample(self._peer)
        nights = {"ours": Night(ours, ours), "peer": Night(theirs, theirs)}
        self._peer.age(
            self._corpus.hours_ago(0), self._corpus.hours_ago(self._corpus.count - 1)
        )
        aged_peer = self._peer.checkpoint()
        for turn in range(1, SLEEPS + 1):
            say(f"sleeping, {turn} of {SLEEPS}")
            self._sleep(nights["ours"], last=turn == SLEEPS)
            self._peer_sleeps(nights["peer"], aged_peer, last=turn == SLEEPS)
        return nights

    def _sleep(self, night: Night, *, last: bool) -> None:
        database = self._room / "night.db"
        shutil.copy(self._evening, database)
        with embedded(database) as memory:
            cpu = time.process_time()
            seconds, _ = timed(sleep_until_done, memory)
            night.sleep_s.append(seconds)
            night.cpu_s.append(time.process_time() - cpu)
            hits = our_hits(memory, self._questions) if last else {}
        night.after = Sample(hits=hits, disk=bytes_on_disk(database) / self._text)
        for file in self._room.glob(f"{database.name}*"):
            file.unlink()

    def _peer_sleeps(self, night: Night, aged_database: Path, *, last: bool) -> None:
        with running_peer(aged_database) as peer:
            seconds, cpu, memories = peer.sleep()
            if memories != self._corpus.count:
                raise RuntimeError(
                    f"the peer consolidated {memories} of {self._corpus.count}"
                )
            night.sleep_s.append(seconds)
            night.cpu_s.append(cpu)
            if last:
                night.after = self._sample(peer)

    def _sample(self, peer: Peer) -> Sample:
        disk = bytes_on_disk(peer.checkpoint()) / self._text
        return Sample(hits=peer_hits(peer, self._questions), disk=disk)


def sleep_until_done(memory: Memory) -> None:
    for _ in range(CYCLES_MAX):
        report = memory.sleep()
        if report.failed or not report.evicted:
            raise RuntimeError(
                f"a sleep left {report.candidates - report.evicted} memories behind"
            )
        if not memory.status().tiers[Tier.WORKING].count:
            return
    raise RuntimeError(f"memories are left after {CYCLES_MAX} cycles")


def our_hits(memory: Memory, questions: Questions) -> dict[str, float]:
    return {kind: hit_share(asking(memory), asked) for kind, asked in questions.items()}


def peer_hits(peer: Peer, questions: Questions) -> dict[str, float]:
    shares = {}
    for kind, asked in questions.items():
        some = asked[:PEER_QUESTIONS]
        answers = peer.recall([question.text for question in some])
        shares[kind] = statistics.mean(
            right(question, texts)
            for question, (_, texts) in zip(some, answers, strict=True)
        )
    return shares


def answered(questions: Questions) -> Questions:
    """The classes that have a right answer."""
    return {
        kind: asked for kind, asked in questions.items() if asked[0].code is not None
    }


# ------------------------------------------------------------------- the bench


def report_remember(report: Report, rates: Mapping[tuple[str, int], float]) -> None:
    rows: list[list[object]] = []
    for size in SIZES:
        ours, theirs = rates["ours", size], rates["peer", size]
        report.figure(f"remember/{size}/ours/per_s", ours)
        report.figure(f"remember/{size}/peer/per_s", theirs)
        rows.append([size, ours, theirs, ours / theirs])
    report.table(
        "Remember, memories per second",
        ["entries", "ours", "peer", "ours / peer"],
        rows,
    )
    ours, theirs = rates["ours", LARGE], rates["peer", LARGE]
    report.bar(f"remember at {LARGE:,}, ours / peer", ours / theirs, ">=", 10)
    flat = ours / rates["ours", SMALL]
    report.bar(f"remember, ours at {LARGE:,} / {SMALL:,}", flat, ">=", 0.8)


def report_nights(report: Report, nights: Mapping[int, Mapping[str, Night]]) -> None:
    rows: list[list[object]] = []
    for size, by_system in nights.items():
        for who, night in by_system.items():
            prefix = f"sleep/{size}/{who}"
            report.figure(f"{prefix}/s", statistics.median(night.sleep_s))
            report.figure(f"{prefix}/cpu_s", statistics.median(night.cpu_s))
            report.figure(f"{prefix}/disk_before", night.before.disk)
            report.figure(f"{prefix}/disk_after", night.after.disk)
            for kind, before in night.before.hits.items():
                after = night.after.hits[kind]
                report.figure(f"{prefix}/hit@5/{kind}/before", before)
                report.figure(f"{prefix}/hit@5/{kind}/after", after)
                rows.append([who, size, kind, before, after])
    report.table(
        "hit@5 around a sleep", ["who", "entries", "class", "before", "after"], rows
    )
    ours, theirs = nights[LARGE]["ours"], nights[LARGE]["peer"]
    faster = statistics.median(
        slow / fast for slow, fast in zip(theirs.sleep_s, ours.sleep_s, strict=True)
    )
    report.bar(f"sleep of {LARGE:,}, peer / ours", faster, ">=", 5)
    kept = statistics.mean(ours.after.hits.values()) / statistics.mean(
        ours.before.hits.values()
    )
    report.bar("hit@5, ours after sleep / before", kept, ">=", 0.99)
    disk = max(ours.before.disk, ours.after.disk)
    report.bar("bytes on disk per byte of text, ours, the larger", disk, "<=", 5)


def main() -> int:
    report = Report("bench-peer")
    corpus = fresh(LARGE)
    with tempfile.TemporaryDirectory(prefix="ours-") as room, ExitStack() as peers_open:
        with ExitStack() as daemons_open:
            contest = Contest(daemons_open, peers_open, Path(room), corpus)
            contest.fill()
            report_remember(report, contest.rates())
        peers = contest.peers
        with embedded(contest.databases[LARGE]) as memory:
            compare_recall(
                report, memory, peers[LARGE], corpus.questions(OUR_QUESTIONS)
            )
        nights = {}
        for size in SIZES:
            past = aged(size)
            asked = past.questions(OUR_QUESTIONS)
            nights[size] = Nights(Path(room), peers[size], past, asked).run()
        report_nights(report, nights)
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
