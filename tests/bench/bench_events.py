"""Measure which events that people marked are named by the summaries of every level.

    python tests/bench/bench_events.py --data path/to/locomo10.json|path/to/specstory [--no-encoder]

LoCoMo's annotators wrote down what happened to each speaker in each session (`event_summary`). For
developers' sessions with an agent, a folder of SpecStory's transcripts, readers did so in
`sets/sessions`. A summary names an event of its period if two of its lines together have half of the
event's content words (stemmed, without the speakers' names) or more. The longest lines of the same
conversation, as many characters, are the baseline. Rules are tuned on conversations 1-5.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from itertools import combinations_with_replacement
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench.meaning_sets import SETS, read_lines
from bench.report import Report
from bench.retention import content_words, load
from bench.summary_levels import LEVELS, locomo, written_levels

from mnemosyned.importers.formats.transcripts import captured_memory, read_specstory
from mnemosyned.verbs.memories import Remember
from mnemosyned.verbs.request import instant

HALVES = ("tune", "held")
TUNED_ON = 5
WORDS_MIN = 2
LINES_MAX = 400
SHARES_MIN = dict(zip(LEVELS, (0.60, 0.45, 0.30, 0.22), strict=True))
"""Shares of the events that the summaries of conversations 6-10 have to name."""
CHARACTERS_MAX = dict(zip(LEVELS, (1198, 475, 298, 399), strict=True))
"""One and a half times the characters that a summary had when it kept the longest statements."""


@dataclass(slots=True)
class Coverage:
    """Events of the periods of one level, and how many of them are named."""

    summaries: int = 0
    characters: int = 0
    events: int = 0
    named: int = 0
    named_by_longest_lines: int = 0

    def add(
        self, text: str, lines: Sequence[str], events: Sequence[frozenset[str]]
    ) -> None:
        """Count the events that a summary names, and those that the longest of `lines` name."""
        baseline: list[str] = []
        for line in sorted(lines, key=len, reverse=True):
            if sum(map(len, baseline)) >= len(text):
                break
            baseline.append(line)
        self.summaries += 1
        self.characters += len(text)
        self.events += len(events)
        self.named += count_named(events, text.splitlines())
        self.named_by_longest_lines += count_named(events, baseline)


@dataclass(slots=True)
class Talk:
    """Memories, events and lines of a conversation; events and lines by day."""

    memories: list[Remember]
    events: dict[date, list[frozenset[str]]] = field(default_factory=dict)
    lines: dict[date, list[str]] = field(default_factory=dict)


def count_named(events: Iterable[frozenset[str]], lines: Iterable[str]) -> int:
    """Return how many events two of the lines together name."""
    words = [content_words(line) for line in lines][:LINES_MAX]
    pairs = [one | other for one, other in combinations_with_replacement(words, 2)]
    return sum(
        any(len(event & pair) >= max(WORDS_MIN, len(event) / 2) for pair in pairs)
        for event in events
    )


def read_sessions(folder: Path, half: str) -> Talk:
    """Return the sessions of a half of `sets/sessions` as one conversation; `folder` has their transcripts."""
    talk = Talk([])
    day = date.min
    for is_name, line in read_lines(SETS / "sessions" / f"{half}.txt"):
        if not is_name:
            talk.events[day].append(content_words(line))
            continue
        identity, messages = read_specstory(folder / f"{line}.md")
        moments = [each.created_at for each in messages if each.created_at]
        day = moments[0].astimezone(UTC).date()
        talk.events.setdefault(day, [])
        lines = talk.lines.setdefault(day, [])
        for each in messages:
            lines += each.text.splitlines()
            if each.created_at and each.text.strip():
                memory = captured_memory(each, identity, identity.conversation)
                talk.memories.append(memory)
    talk.memories.sort(key=lambda each: instant(each.created_at or ""))
    return talk


def read_talks(path: Path, half: str) -> Iterator[Talk]:
    """Yield the conversations of a half of LoCoMo's file."""
    first = HALVES.index(half) * TUNED_ON
    chosen = slice(first, first + TUNED_ON)
    memories = locomo(load(path)[chosen])
    items = json.loads(path.read_text("utf-8"))[chosen]
    for item, remembered in zip(items, memories, strict=True):
        said: dict[str, Any] = item["conversation"]
        names = content_words(f"{said['speaker_a']} {said['speaker_b']}")
        talk = Talk(remembered)
        for key, told in item["event_summary"].items():
            number = key.rpartition("_")[2]
            turns = said.get(f"session_{number}")
            if not turns:
                continue
            when = said[f"session_{number}_date_time"].partition(" on ")[2]
            day = datetime.strptime(f"{when} +0000", "%d %B, %Y %z").date()
            events = talk.events.setdefault(day, [])
            talk.lines.setdefault(day, []).extend(turn["text"] for turn in turns)
            for speaker in said["speaker_a"], said["speaker_b"]:
                events += [
                    content_words(event) - names
                    for event in told.get(speaker, ())
                    if isinstance(event, str)
                ]
        yield talk


def measure(talks: Iterable[Talk], *, with_encoder: bool = True) -> dict[str, Coverage]:
    """Return the coverage of each level over conversations."""
    levels = {name: Coverage() for name in LEVELS}
    for talk in talks:
        levels_written = written_levels(talk.memories, with_encoder=with_encoder)
        for name, written in zip(LEVELS, levels_written, strict=True):
            for episode, _ in written:
                begins, ends = episode.covers_from.date(), episode.covers_until.date()
                days = [day for day in talk.lines if begins <= day <= ends]
                if events := [event for day in days for event in talk.events[day]]:
                    lines = [line for day in days for line in talk.lines[day]]
                    levels[name].add(episode.content, lines, events)
    return levels


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--data",
        type=Path,
        required=True,
        help="path to locomo10.json, or the folder of SpecStory's transcripts",
    )
    parser.add_argument(
        "--half",
        choices=HALVES,
        help="conversations 1-5 or 6-10; both if left out",
    )
    parser.add_argument("--no-encoder", action="store_true", help="by words alone")
    options = parser.parse_args()
    in_sessions = options.data.is_dir()
    report = Report("bench-events-sessions" if in_sessions else "bench-events")
    for half in [options.half] if options.half else HALVES:
        talks = (
            [read_sessions(options.data, half)]
            if in_sessions
            else read_talks(options.data, half)
        )
        rows: list[list[object]] = []
        for name, level in measure(talks, with_encoder=not options.no_encoder).items():
            if in_sessions and name == "episodes":
                continue  # one says but a part of its day
            characters = level.characters / level.summaries
            share = report.figure(f"{half}/{name}", level.named / level.events)
            report.figure(f"{half}/{name}_characters", characters)
            baseline = level.named_by_longest_lines / level.events
            rows.append(
                [name, level.summaries, characters, level.events, share, baseline]
            )
            if half == "held" and not in_sessions:
                report.bar(f"events named by {name}", share, ">=", SHARES_MIN[name])
                report.bar(
                    f"characters of {name}", characters, "<=", CHARACTERS_MAX[name]
                )
        report.table(
            f"{half} half",
            ["level", "summaries", "characters", "events", "named", "longest lines"],
            rows,
        )
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
