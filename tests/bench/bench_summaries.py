"""Measure what the fallback summariser keeps of LoCoMo's sessions.

    python tests/bench/bench_summaries.py --data path/to/locomo10.json

An answer is retained if every content word of it (stop words removed, Porter-stemmed) occurs in
the episodes of its evidence sessions taken together. The heading with the date is given to both
baselines too, inside the same budget.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from pathlib import Path
from typing import Any

import snowballstemmer

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench.report import Report

from mnemosyned.domain.extract import KEYWORDS, extract
from mnemosyned.domain.facts import sentences
from mnemosyned.domain.memory import Memory
from mnemosyned.domain.stopwords import STOP_WORDS
from mnemosyned.summarizers.aaak import RATIO, AaakSummarizer, decode

CATEGORIES = (1, 2, 4)
SEEDS = 20
TUNED_ON = 5
WORD = re.compile(r"[^\W_]+(?:'[^\W_]+)?")
STEMMER = snowballstemmer.stemmer("porter")

Session = Sequence[Memory]
Render = Callable[[Session], str]


@dataclass(frozen=True, slots=True)
class Conversation:
    sessions: dict[int, Session]
    questions: tuple[tuple[frozenset[str], frozenset[int]], ...]
    """Content words of the answer, and the sessions with its evidence."""


@lru_cache(maxsize=1 << 16)
def stemmed(word: str) -> str:
    return str(STEMMER.stemWord(word))


def content_words(text: str) -> frozenset[str]:
    plain = text.lower().replace("’", "'")
    words = (match[0] for match in WORD.finditer(plain))
    return frozenset(
        stemmed(bare)
        for word in words
        if word not in STOP_WORDS and (bare := word.removesuffix("'s")) not in STOP_WORDS
    )


def load(path: Path) -> list[Conversation]:
    return [conversation(item) for item in json.loads(path.read_text())]


def conversation(item: dict[str, Any]) -> Conversation:
    said = item["conversation"]
    sessions: dict[int, Session] = {}
    for key, turns in said.items():
        named = re.fullmatch(r"session_(\d+)", key)
        if named and turns:
            told = said[f"{key}_date_time"] + " +0000"
            when = datetime.strptime(told, "%I:%M %p on %d %B, %Y %z")
            sessions[int(named[1])] = [memory(turn, when) for turn in turns]
    return Conversation(sessions, tuple(questions(item["qa"])))


def memory(turn: dict[str, Any], when: datetime) -> Memory:
    return Memory(id=turn["dia_id"], content=turn["text"], role=turn["speaker"], created_at=when)


def questions(items: list[dict[str, Any]]) -> Iterator[tuple[frozenset[str], frozenset[int]]]:
    for item in items:
        if item["category"] in CATEGORIES:
            found = (re.fullmatch(r"D(\d+):\d+", name) for name in item["evidence"])
            evidence = frozenset(int(match[1]) for match in found if match)
            answer = content_words(str(item["answer"]))
            if evidence and answer:
                yield answer, evidence


def retention(conversations: Sequence[Conversation], render: Render) -> float:
    hits = total = 0
    for one in conversations:
        words = {at: content_words(render(session)) for at, session in one.sessions.items()}
        for answer, evidence in one.questions:
            total += 1
            hits += answer <= frozenset().union(*(words.get(at, ()) for at in evidence))
    return hits / total


def heading(session: Session) -> str:
    return extract(session, ratio=RATIO).heading + "\n"


def originals(session: Session) -> str:
    return heading(session) + "\n".join(one.content for one in session)


def lead(session: Session) -> str:
    return originals(session)[: budget(session)]


def at_random(seed: int) -> Render:
    def render(session: Session) -> str:
        dice = random.Random(f"{seed}{session[0].id}{len(session)}")
        pool = [text for one in session for text, _ in sentences(one.content)]
        dice.shuffle(pool)
        text = heading(session)
        for sentence in pool:
            if len(text) + len(sentence) < budget(session):
                text += f"{sentence}\n"
        return text

    return render


def budget(session: Session) -> int:
    return int(characters(session) * RATIO)


def characters(session: Session) -> int:
    return sum(len(one.content) for one in session)


def whole(session: Session, text: str) -> int:
    """Characters of the summary that are complete sentences of the sources."""
    prose = "\n".join(line for line in text.split("\n")[1:] if not line.startswith(KEYWORDS))
    bare = re.sub(r" \((?:about )?(?:\d{1,2} )?(?:[A-Z][a-z]+ )?\d{4}\)", "", decode(prose))
    return sum(
        len(sentence)
        for one in session
        for sentence, _ in sentences(one.content)
        if sentence in bare
    )


def measure(conversations: Sequence[Conversation]) -> dict[str, float]:
    summarizer = AaakSummarizer()

    def ours(session: Session) -> str:
        return summarizer.summarize(session).text

    sessions = [session for one in conversations for session in one.sessions.values()]
    started = time.process_time()
    texts = [ours(session) for session in sessions]
    spent = time.process_time() - started
    kept = sum(map(len, texts))
    ratios = [
        len(text) / characters(session) for text, session in zip(texts, sessions, strict=True)
    ]
    sentence_chars = sum(map(whole, sessions, texts))
    return {
        "compression": kept / sum(map(characters, sessions)),
        "compression_max": max(ratios),
        "whole_sentences": sentence_chars / kept,
        "retention": retention(conversations, ours),
        "retention_lead": retention(conversations, lead),
        "retention_random": sum(retention(conversations, at_random(n)) for n in range(SEEDS))
        / SEEDS,
        "retention_originals": retention(conversations, originals),
        "us_per_memory": spent / sum(map(len, sessions)) * 1e6,
    }


def hold(report: Report, part: str, figures: dict[str, float]) -> None:
    """Report a part of the conversations and hold it to the bars."""
    for name, value in figures.items():
        report.figure(f"{part}/{name}", value)
    better = max(figures["retention_lead"], figures["retention_random"])
    report.bar(f"largest size, {part}", figures["compression_max"], "<=", 0.35)
    report.bar(f"whole sentences, {part}", figures["whole_sentences"], ">=", 0.5)
    report.bar(f"retention, {part}", figures["retention"], ">=", 0.54)
    report.bar(
        f"retention over the better baseline, {part}", figures["retention"] / better, ">=", 1.8
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="path of locomo10.json")
    conversations = load(parser.parse_args().data)
    report = Report("bench-summaries")
    hold(report, "1-5 (tuned on)", measure(conversations[:TUNED_ON]))
    hold(report, "6-10 (held out)", measure(conversations[TUNED_ON:]))
    hold(report, "all", measure(conversations))
    return report.finish()


if __name__ == "__main__":
    raise SystemExit(main())
