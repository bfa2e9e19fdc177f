"""A person's year by hand (`written_year.txt`) among seeded noise that shares its words.

Unlike `mixed_year`, no question is made of the words of its answer: they are asked in other words, for a
source, a date or a number, in five languages, for what was updated, for a sentence in a long note,
for the one notice that differs from three hundred others.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random

from support.datasets.mixed_year import Record

NOW = datetime(2026, 3, 18, 20, tzinfo=UTC)
DAYS = 365
_TEXT = Path(__file__).with_name("written_year.txt")
_HEAD = re.compile(r"= (\w+) (.+?) (\d{4}-\d\d-\d\d \d\d:\d\d)(?: ~(\d+))?(?: #(\w+))?")
_ASKED = re.compile(r"\? (\w+) (?:\[([\w ]+)\] )?:: (.+)")
_SOURCES = {
    "chat": "messages", "mail": "email", "note": "notes", "photo": "photos", "call": "calls",
    "cal": "calendar", "todo": "todo", "health": "health", "notif": "notifications",
}  # fmt: skip
_WORDS = {
    "WHO": "Lena Jonas Priya Tomek Amelie Felix Mum Dmitri Sven Katrin Ulrike Olaf Rike Nora",
    "FIRM": "DHL Zalando Thomann IKEA Telekom Stadtwerke HUK Lufthansa Decathlon Otto AOK",
    "PLACE": "canal market lake allotment Plagwitz Connewitz zoo stadium office library station",
    "THING": "sofa drill bicycle tent piano car heating shower inhaler boots passport router "
    "contract invoice parcel keys cake photos insurance lease battery tomatoes visa ferry cellar",
    "EVENT": "meeting wedding training appointment concert choir interview operation christening "
    "offsite birthday dentist flight hike",
    "DO": "buy sell fix bring check clean paint order return cancel book send move find measure",
    "HOW": "late early great boring expensive cheap cold wet broken fine strange full noisy",
    "FOOD": "soup pasta dumplings ramen pancakes curry salad bread pizza lentils fish",
    "JOB": "billing-api gateway frontend auth mailer reports",
}
_POOLS = {name: words.split() for name, words in _WORDS.items()}
_CHAT = (
    "ok", "haha", "on my way", "running late, {N} min", "did you {DO} the {THING}?", "good night",
    "can you {DO} the {THING} today?", "{WHO} says hi", "the {EVENT} was {HOW}", "where are you?",
    "the {THING} is {HOW} again", "I forgot the {THING} at the {PLACE}", "{FOOD} for dinner?",
    "is {WHO} coming to the {EVENT}?", "ask {WHO}", "it costs {N} euros, too much", "Ida is tired",
    "I can't find the {THING}", "the landlord wrote about the {THING}", "die Katze ist wieder da",
)  # fmt: skip
_SENTENCES = (
    "The meeting about the {THING} went on longer than planned and nobody could say why.",
    "Please let me know whether you can {DO} the {THING}.",
    "{WHO} asked again who is going to {DO} the {THING}.",
    "The weather was {HOW}, so we stayed near the {PLACE}.",
    "For lunch there was {FOOD}, which was {HOW}.",
    "The price went up to {N} euros, which seems {HOW}.",
    "Read {N} pages; the second part is better than the first.",
    "{WHO} told me about the {PLACE} and how {HOW} it had been.",
    "My back hurts when I {DO} something heavy.",
    "We apologise for the delay with the {THING}.",
    "The doctor said it is nothing serious.",
    "There is a new form for the {THING}, it has to be signed.",
)
_LINES = (
    ("notif", "DHL", "Your parcel {N}{N}{N} was delivered"),
    ("notif", "DHL", "Your parcel {N}{N}{N} is on its way"),
    ("notif", "Bank", "Card payment of {N}.{N} EUR to {FIRM}"),
    ("notif", "CI", "Build of {JOB} passed on main"),
    ("notif", "CI", "Build of {JOB} failed on main: {N} tests failed"),
    ("notif", "Weather", "Leipzig: {N} degrees, light rain"),
    ("notif", "Home", "Washing machine finished"),
    ("notif", "Calendar", "Reminder: stand-up in 10 minutes"),
    ("cal", "", "Stand-up 09:30"),
    ("cal", "", "Dinner with {WHO}"),
    ("call", "", "Incoming call from {WHO}, {N} min."),
    ("call", "", "Outgoing call to {FIRM}, {N} min. The {THING}"),
    ("photo", "", "{WHO} and Ida at the {PLACE}"),
    ("photo", "", "{FOOD} at the {PLACE}"),
    ("todo", "", "{DO} the {THING}"),
    ("todo", "", "ask {WHO} about the {THING}"),
    ("health", "", "Steps: {N}{N}"),
    ("health", "", "Slept {N} h {N} min"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A question and the records that answer it."""

    kind: str
    text: str
    evidence: frozenset[str]


@dataclass(frozen=True, slots=True)
class WrittenYear:
    """The records, oldest first, and what is asked of them."""

    records: list[Record]
    questions: list[Question]


def written_year(*, per_day: int) -> WrittenYear:
    """The year that ends at `NOW`, with about so many records of noise a day."""
    rng = Random(7)
    records: list[Record] = []
    asked: list[tuple[str, str, list[str]]] = []
    for number, part in enumerate(_TEXT.read_text("utf-8").split("\n= ")[1:]):
        head, content, *questions = f"= {part}".splitlines()
        source, role, at, around, label = _matched(_HEAD, head)
        id_ = label or f"fact-{number}"
        records.append(
            Record(
                id=id_,
                content=_among(rng, content, int(around or 0)),
                source=_SOURCES[source],
                role="" if role == "-" else role,
                created_at=datetime.fromisoformat(at).replace(tzinfo=UTC),
            )
        )
        for question in questions:
            kind, evidence, text = _matched(_ASKED, question)
            asked.append((kind, text, (evidence or id_).split()))
    records.extend(_noise(rng, per_day))
    records.sort(key=lambda record: record.created_at)
    return WrittenYear(
        records,
        [
            Question(kind=kind, text=text, evidence=frozenset(ids))
            for kind, text, ids in asked
        ],
    )


def _matched(shape: re.Pattern[str], line: str) -> tuple[str, ...]:
    found = shape.fullmatch(line)
    if found is None:
        raise ValueError(f"{_TEXT.name} has a line of no known form: {line}")
    return tuple(group or "" for group in found.groups())


def _filled(rng: Random, text: str) -> str:
    def one(slot: re.Match[str]) -> str:
        return (
            str(rng.randrange(2, 99)) if slot[1] == "N" else rng.choice(_POOLS[slot[1]])
        )

    return re.sub(r"\{(\w+)\}", one, text)


def _among(rng: Random, text: str, sentences: int) -> str:
    """The text with about so many sentences around it."""
    if not sentences:
        return text
    parts = [_filled(rng, rng.choice(_SENTENCES)) for _ in range(sentences)]
    parts.insert(rng.randrange(sentences // 3, 1 + 2 * sentences // 3), text)
    return " ".join(parts)


def _noise(rng: Random, per_day: int) -> Iterator[Record]:
    for number in range(per_day * DAYS):
        at = NOW - timedelta(minutes=rng.randrange(DAYS * 24 * 60))
        kind = rng.random()
        if kind < 0.3:
            source, role, content = (
                "chat",
                rng.choice(["me", *_POOLS["WHO"]]),
                rng.choice(_CHAT),
            )
        elif kind < 0.4:
            source = rng.choice(["mail", "note"])
            role = (
                rng.choice(_POOLS["WHO"] + _POOLS["FIRM"]) if source == "mail" else ""
            )
            content = _among(rng, rng.choice(_SENTENCES), rng.randrange(25))
        else:
            source, role, content = rng.choice(_LINES)
        yield Record(
            id=f"noise-{number}",
            content=_filled(rng, content),
            source=_SOURCES[source],
            role=role,
            created_at=at,
        )
