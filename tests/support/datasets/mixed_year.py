"""A seeded year of one person's mixed records, and questions in other words than the records'.

It is unlike dialogue: what stands beside a record has nothing to do with it, lengths differ by a
factor of fifty, and the same notification comes again and again.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from random import Random

NOW = datetime(2026, 3, 18, 20, tzinfo=UTC)
DAYS = 365
PEOPLE = (
    "Anna Ben Carla David Elena Farid Greta Hugo Irene Jonas Karin Leo Mira Nils Olga Pavel "
    "Quentin Rosa Stefan Tara"
).split()
PLACES = (
    "Lisbon Hamburg Riverside Oakwood Harbour Station Museum Library Bakery Cinema Campus Garage "
    "Airport Lakeside Market Chapel Stadium Gallery Castle Orchard"
).split()
DEEDS = (
    ("buying", "bought", "a bicycle"),
    ("selling", "sold", "the old sofa"),
    ("painting", "painted", "the kitchen wall"),
    ("repairing", "repaired", "the dishwasher"),
    ("baking", "baked", "a plum cake"),
    ("teaching", "taught", "the yoga class"),
    ("losing", "lost", "the house keys"),
    ("finding", "found", "a grey scarf"),
    ("writing", "wrote", "the grant proposal"),
    ("choosing", "chose", "the wedding cake"),
    ("planting", "planted", "the tomatoes"),
    ("cancelling", "cancelled", "the gym membership"),
    ("booking", "booked", "the ferry tickets"),
    ("visiting", "visited", "the dentist"),
    ("running", "ran", "a half marathon"),
    ("borrowing", "borrowed", "the ladder"),
    ("lending", "lent", "the drill"),
    ("breaking", "broke", "a coffee mug"),
    ("driving", "drove", "the rented van"),
    ("catching", "caught", "the early train"),
)
CHAT = (
    "ok see you later", "haha that is great", "did you sleep well?", "running late, ten minutes",
    "thanks so much!", "what do you think of it?", "call me when you can", "the weather is awful",
    "I am so tired today", "good night", "which one did you take?", "let me check and tell you",
)  # fmt: skip
FILLER = (
    "The meeting went on for longer than planned and nobody could say why.",
    "Remember to ask about the invoice before the end of the month.",
    "It rained all morning, so the walk was short.",
    "Read forty pages; the second part is better than the first.",
    "Budget looks fine, apart from the insurance.",
    "Slept badly, coffee helped.",
    "Ideas for the garden: a bench, more herbs, less lawn.",
)
NOTICES = (
    "Battery low: 15 percent left", "Your parcel is on its way", "Backup finished without errors",
    "Reminder: drink some water", "New sign-in to your account", "Update ready to be installed",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """One of the year's records."""

    id: str
    content: str
    source: str
    role: str
    created_at: datetime


Draft = tuple[datetime, str, str, str, str | None]
"""When, where, who and what, and now and then a question that it answers."""


@dataclass(frozen=True, slots=True)
class MixedYear:
    """The records, oldest first, and what is asked of them."""

    records: list[Record]
    questions: list[str]


def mixed_year(*, per_day: int = 8) -> MixedYear:
    """A year that ends at `NOW`; one record in four is something that can be asked for."""
    rng = Random(4)
    drafts: list[Draft] = []
    for day in range(DAYS):
        for _ in range(per_day):
            at = NOW - timedelta(days=DAYS - day, minutes=rng.randrange(-60, 60 * 13))
            drafts.extend(_told(rng, at) if rng.random() < 0.25 else _noise(rng, at))
    drafts.sort(key=lambda draft: draft[0])
    records = [
        Record(id=f"r{number}", content=text, source=source, role=role, created_at=at)
        for number, (at, source, role, text, _) in enumerate(drafts)
    ]
    return MixedYear(records, [asked for *_, asked in drafts if asked])


def _told(rng: Random, at: datetime) -> list[Draft]:
    """Something that happened, as one of the sources tells it, and now and then a question."""
    person, place = rng.choice(PEOPLE), rng.choice(PLACES)
    doing, did, what = rng.choice(DEEDS)
    code = f"{rng.choice('QXZKV')}{rng.choice('ABCDE')}-{rng.randrange(10_000, 99_999)}"
    source = rng.choice(["messages", "notes", "calendar", "calls", "photos"])
    role = person if source == "messages" else ""
    noun = what.split()[-1]
    content = {
        "messages": f"I {did} {what} at the {place} today",
        "notes": _long(
            rng, f"{person} {did} {what} near the {place}, reference {code}."
        ),
        "calendar": f"{doing.capitalize()} {what} with {person}, {place}",
        "calls": f"Call with {person}, {rng.randrange(2, 50)} min. {doing} {what}, {place}, {code}",
        "photos": f"{person} in front of the {place}, {doing} {what}",
    }[source]
    coded = source in ("notes", "calls")
    kind = rng.choice(["words", "time", "person", "code" if coded else "words"])
    month = f"{at:%B %Y}"
    text = {
        "words": f"Who {did} {what} at the {place}, was that {person}?",
        "time": f"What about {person} and the {noun} {_when(rng, at, month)}?",
        "person": f"When did {person} talk of {doing} {what} at {place}?",
        "code": f"what was {code} about",
    }[kind]
    return [(at, source, role, content, text if rng.random() < 0.25 else None)]


def _when(rng: Random, at: datetime, month: str) -> str:
    """How long ago that was, as one would say it at `NOW`."""
    days = (NOW.date() - at.date()).days
    if days == 1:
        return "yesterday"
    if 2 <= days <= 6:
        return f"{days} days ago"
    return rng.choice([f"in {month}", f"on {at.day} {month}"])


def _long(rng: Random, fact: str) -> str:
    parts = rng.choices(FILLER, k=rng.randrange(0, 30))
    parts.insert(rng.randrange(len(parts) + 1), fact)
    return " ".join(parts)


def _noise(rng: Random, at: datetime) -> list[Draft]:
    kind = rng.random()
    if kind < 0.45:
        person = rng.choice(PEOPLE)
        burst = range(rng.randrange(1, 6))
        return [
            (at + timedelta(minutes=2 * n), "messages", rng.choice([person, "me"]),
             rng.choice(CHAT), None)
            for n in burst
        ]  # fmt: skip
    if kind < 0.8:
        return [(at, "notifications", "", rng.choice(NOTICES), None)]
    if kind < 0.9:
        return [(at, "notes", "", _long(rng, "Nothing much happened."), None)]
    first, second = rng.sample(PEOPLE, 2)
    text = f"{first} and {second} at the {rng.choice(PLACES)}"
    return [(at, "photos", "", text, None)]
