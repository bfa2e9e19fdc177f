"""How much of a long talk an agent with a small window still has before it when it is asked.

    python tests/bench/bench_replay.py --data locomo10.json

LoCoMo's ten conversations are replayed turn by turn: each turn is added to the messages, which
`compact` holds to a window of 4,000 tokens, and a sleep follows each session. In the end every
question about a single fact is put to `context` with the same window. It counts as answerable if
each line of its evidence stands in the window word for word, be it a message, a line of the summary
or recalled. Beside it stands a sliding window of the same size, counted by the same counter: the
newest messages that fit. Nothing was tuned on them.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench.locomo import HALVES, TUNED_ON, Conversation
from bench.measure import say
from bench.report import Report
from support.fakes import FakeClock

from mnemosyned import Memory, Remember
from mnemosyned.service.context import default_counter
from mnemosyned.verbs.conversation import Assembled
from mnemosyned.verbs.request import instant

WINDOW = 4_000
SINGLE_FACT = 4
BAR = 2.0

Messages = list[dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one question."""

    standing: bool
    """Its evidence is in the messages."""
    shown: bool
    """It is there, or was recalled."""
    sliding: bool


def message(turn: Remember, *, first: str) -> dict[str, Any]:
    """A turn as an agent's messages have it; the first to speak is the user."""
    moment = instant(turn.created_at)
    return {
        "role": "user" if turn.role == first else "assistant",
        "content": f"{turn.role}: {turn.content}",
        "created_at": moment.isoformat() if moment else None,
    }


def replay(
    conversation: Conversation, memory: Memory, clock: FakeClock
) -> tuple[Messages, Messages]:
    """All messages, and what is left of them after compactions."""
    turns = list(conversation.turns())
    told: Messages = []
    left: Messages = []
    for turn, following in zip(turns, [*turns[1:], None], strict=True):
        assert turn.created_at
        clock.moment = instant(turn.created_at)
        told.append(message(turn, first=turns[0].role))
        answer = memory.compact(
            [*left, told[-1]],
            max_tokens=WINDOW,
            session=turn.session,
            source=turn.source,
        )
        left = answer.messages
        if following is None or following.session != turn.session:
            clock.advance(hours=13)
            memory.sleep()
    clock.advance(days=1)
    return told, left


def sliding(told: Messages, question: str) -> str:
    """The newest messages that fit beside the question."""
    counter = default_counter()
    room = WINDOW - counter.message({"role": "user", "content": question})
    words: list[str] = []
    for one in reversed(told):
        room -= counter.message(one)
        if room < 0:
            break
        words.append(one["content"])
    return _plain("\n".join(words))


def outcomes(conversation: Conversation) -> Iterator[Outcome]:
    clock = FakeClock()
    with (
        tempfile.TemporaryDirectory() as folder,
        Memory(Path(folder) / "m.db", clock=clock) as memory,
    ):
        told, left = replay(conversation, memory, clock)
        words = {turn.id: turn.content for turn in conversation.turns()}
        for asked in conversation.questions():
            if asked.category != SINGLE_FACT:
                continue
            window = memory.context(
                asked.text,
                messages=left,
                source=asked.sample,
                total=WINDOW,
                system_reserve=0,
                tools_reserve=0,
            )
            assert window.total <= WINDOW
            evidence = [_plain(words[id]) for id in asked.evidence]
            yield Outcome(
                standing=_has(_said(window), evidence),
                shown=_has(_said(window) + _plain(window.system), evidence),
                sliding=_has(sliding(told, asked.text), evidence),
            )


def _said(window: Assembled) -> str:
    return _plain("\n".join(one["content"] for one in window.messages))


def _has(words: str, evidence: Sequence[str]) -> bool:
    return all(line in words for line in evidence)


def _plain(words: str) -> str:
    return " ".join(words.replace("\n> ", "\n").split())


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True, help="locomo10.json")
    options = parser.parse_args()
    conversations = msgspec.json.decode(
        options.data.read_bytes(), type=list[Conversation]
    )
    report = Report("bench-replay")
    found: list[list[Outcome]] = []
    for conversation in conversations:
        say(f"replaying {conversation.sample_id}")
        found.append(list(outcomes(conversation)))
    rows = []
    halves = (*HALVES, "all ten")
    for name, some in zip(
        halves, (found[:TUNED_ON], found[TUNED_ON:], found), strict=True
    ):
        asked = [one for outcome in some for one in outcome]
        shown, standing, slid = (
            sum(getattr(one, kind) for one in asked) / len(asked)
            for kind in ("shown", "standing", "sliding")
        )
        rows.append([name, len(asked), standing, shown, slid, shown / slid])
        key = name.replace(" ", "_")
        report.figure(f"{key}_shown", shown)
        report.figure(f"{key}_sliding", slid)
        report.bar(
            f"{name}: in the window or recalled, against a sliding window",
            shown / slid,
            ">=",
            BAR,
        )
    report.table(
        f"single facts in a window of {WINDOW:,} tokens",
        ["conversations", "questions", "in messages", "shown", "sliding window", "×"],
        rows,
    )
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
