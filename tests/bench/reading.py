"""Writes summaries of days and weeks with their originals, for a person to read and give marks.

Each file has one summary and the messages that it was made of. `key.tsv` lists the files; a reader fills in the
marks from 1 to 5: what happened, who did it, whether it is true, and the whole.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench.bench_events import HALVES, Talk, read_sessions, read_talks
from bench.summary_levels import LEVELS, written_levels

from mnemosyned.verbs.memories import Remember
from mnemosyned.verbs.request import instant

COUNT, SESSIONS_MAX = 30, 8
"""Files of each level, and how many of these are of developers' sessions at most."""
MESSAGES_MIN = 6
TEXT_MAX, TEXT_BEGINS, TEXT_ENDS = 1500, 1100, 300
"""Characters up to which a message is whole, and those that a longer one begins and ends with."""
SEED = 4
Written = dict[str, list[str]]
"""Pages by level."""


def page(summary: str, messages: Sequence[Remember]) -> str:
    """A summary, then the messages that it was made of."""
    lines = ["# Summary", "", summary, "", f"# Made of {len(messages)} messages", ""]
    for each in messages:
        text = each.content
        if len(text) > TEXT_MAX:
            text = f"{text[:TEXT_BEGINS]} […] {text[-TEXT_ENDS:]}"
        lines.append(f"[{each.created_at}] {each.role}: {text}")
    return "\n".join([*lines, ""])


def written(talks: Iterable[Talk]) -> Written:
    """The pages of all days and weeks with enough messages."""
    pages: Written = {"days": [], "weeks": []}
    for talk in talks:
        levels = dict(zip(LEVELS, written_levels(talk.memories), strict=True))
        for level, found in pages.items():
            for episode, _ in levels[level]:
                messages = [
                    each
                    for each in talk.memories
                    if each.created_at
                    and episode.covers_from
                    <= instant(each.created_at)
                    <= episode.covers_until
                ]
                if len(messages) >= MESSAGES_MIN:
                    found.append(page(episode.content, messages))
    return pages


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--talks", type=Path, required=True, help="locomo10.json")
    parser.add_argument(
        "--sessions", type=Path, required=True, help="folder of SpecStory's transcripts"
    )
    parser.add_argument("--half", choices=HALVES, default="tune")
    parser.add_argument("--out", type=Path, required=True, help="an empty folder")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    chance = random.Random(SEED)
    talks = written(read_talks(options.talks, options.half))
    sessions = written([read_sessions(options.sessions, options.half)])
    key = ["file\twhat\twho\ttrue\tall"]
    for level, pages in talks.items():
        others = sessions[level]
        chosen = chance.sample(others, min(SESSIONS_MAX, len(others)))
        chosen += chance.sample(pages, min(COUNT - len(chosen), len(pages)))
        chance.shuffle(chosen)
        for number, text in enumerate(chosen, 1):
            name = f"{level}-{number:02}.md"
            (options.out / name).write_text(text, "utf-8")
            key.append(f"{name}\t\t\t\t")
    (options.out / "key.tsv").write_text("\n".join([*key, ""]), "utf-8")
    print(f"{len(key) - 1} summaries in {options.out}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
