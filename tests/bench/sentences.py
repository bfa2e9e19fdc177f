"""Sentences of the bench corpus: templates, and what is drawn into their blanks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import TypeVar

from bench import vocabulary as vocab

T = TypeVar("T")

CHARS_MIN, CHARS_MAX = 100, 220
SKEW = 1.7
"""Of a hundred names the first is in about 7 % of the drawings, the last in 0.6 %."""

# How a planted fact is told. `{did}` is "repaired the copper lamp in the attic".
FACTS = vocab.lines("""
{person} {did} on {date}{aside}; the reference is {code}.
On {date} {person} {did}{aside}. The ticket is {code}.
Before {event}, {person} {did}{aside} ({code}).
{code}: {person} {did}{aside}, as agreed after {event}.
{somebody} confirmed that {person} {did}{aside} and filed it as {code}.
For the record: {person} {did} in {month}{aside}. Look under {code}.
Remember that {person} {did}{aside}. It is listed as {code} on {url}.
Invoice {code} over {money} is paid, since {person} {did}{aside}.
""")

# What stands between the facts: the same people and things, other words around them.
NOTES = vocab.lines("""
{person} prefers to {base} things {place}, not during {event}{aside}.
We should not {base} the {thing} until {event} is over; {person} warned about it on {date}.
{person} asked whether project {project} can {base} a {thing} for {money}{aside}.
The build of {project} {version} failed in {path} with code {number}{aside}.
{person} can be reached under {phone} or {mail}{aside}.
After {event}, nobody had {past} the {thing} {place}{aside}.
Deploying {project} {version} took {number} minutes; {person} watched {url}{aside}.
{somebody} thinks a {thing} is worth {money}, {person} says {money}{aside}.
{person} will be {place} from {clock} to {clock} on {date}{aside}.
The {thing} {place} weighs {number} kg, and {number} more with its {noun}{aside}.
""")

ASIDES = [
    *("", "", ""),
    *vocab.lines("""
for {money}
at {clock}
together with {somebody}
with {number} spare parts
and told {somebody} about it
because {project} had asked for it
see {url}
"""),
]

TAILS = vocab.lines("""
{somebody} agreed at {clock}.
Details are on {url}.
The {noun} can wait until {month}.
It came to {money} in the end.
Nobody told {somebody} about it.
The notes are in {path}.
Next time we {base} the {adjective} one first.
""")


class Blanks:
    """What a template may name: the given words; all else is drawn afresh each time."""

    def __init__(self, rng: Random, **given: str) -> None:
        self._rng = rng
        self._given = given

    def __getitem__(self, name: str) -> str:
        return self._given[name] if name in self._given else DRAW[name](self._rng)

    def fill(self, templates: list[str]) -> str:
        """One of the templates, filled in."""
        return self._rng.choice(templates).format_map(self)


def sized(rng: Random, templates: list[str], **given: str) -> str:
    """A text as long as people write: the too short gets tails, the too long another try."""
    blanks = Blanks(rng, **given)
    while True:  # every template can come out short enough
        text = blanks.fill(templates)
        wanted = rng.randrange(CHARS_MIN, CHARS_MAX - 40)
        while len(text) < wanted:
            text = f"{text} {blanks.fill(TAILS)}"
        if len(text) <= CHARS_MAX:
            return text


def often(rng: Random, words: Sequence[T]) -> T:
    """Draw as people talk: of a few things often, of many now and then."""
    return words[int(len(words) * rng.random() ** SKEW)]


def person(rng: Random) -> str:
    return f"{often(rng, vocab.FIRST_NAMES)} {often(rng, vocab.LAST_NAMES)}"


def project(rng: Random) -> str:
    """An invented name: new ones keep coming as the corpus grows, as in real text."""
    return "".join(rng.choices(vocab.SYLLABLES, k=rng.randrange(2, 5))).capitalize()


def aside(rng: Random) -> str:
    template = rng.choice(ASIDES)
    return f" {template.format_map(Blanks(rng))}" if template else ""


def date(rng: Random) -> str:
    day, month, year = (
        rng.randrange(1, 29),
        rng.randrange(1, 13),
        rng.randrange(2019, 2027),
    )
    if rng.random() < 0.3:
        return f"{year}-{month:02d}-{day:02d}"
    return f"{day} {vocab.MONTHS[month - 1]} {year}"


def money(rng: Random) -> str:
    amount = 10 ** rng.uniform(0.7, 4.5)
    return rng.choice([f"€{amount:,.0f}", f"${amount:,.2f}", f"{amount:.0f} crowns"])


def version(rng: Random) -> str:
    return f"{rng.randrange(8)}.{rng.randrange(20)}.{rng.randrange(40)}"


def phone(rng: Random) -> str:
    return f"+{rng.randrange(30, 60)} {rng.randrange(100, 999)} {rng.randrange(100_000, 999_999)}"


def mail(rng: Random) -> str:
    return f"{person(rng).lower().replace(' ', '.')}@{project(rng).lower()}.example"


def url(rng: Random) -> str:
    site = f"{often(rng, vocab.HOSTS)}.{project(rng).lower()}.example"
    return f"https://{site}/{often(rng, vocab.NOUNS)}/{rng.randrange(9_999)}"


def path(rng: Random) -> str:
    suffix = rng.choice(["py", "log", "md"])
    return f"/srv/{project(rng).lower()}/{often(rng, vocab.NOUNS)}.{suffix}"


DRAW: dict[str, Callable[[Random], str]] = {
    "person": person,
    "somebody": person,
    "project": project,
    "thing": lambda rng: f"{often(rng, vocab.ADJECTIVES)} {often(rng, vocab.NOUNS)}",
    "adjective": lambda rng: often(rng, vocab.ADJECTIVES),
    "noun": lambda rng: often(rng, vocab.NOUNS),
    "base": lambda rng: often(rng, vocab.VERBS)[0],
    "past": lambda rng: often(rng, vocab.VERBS)[1],
    "place": lambda rng: often(rng, vocab.PLACES),
    "event": lambda rng: often(rng, vocab.EVENTS),
    "month": lambda rng: often(rng, vocab.MONTHS),
    "number": lambda rng: str(rng.randrange(2, 900)),
    "clock": lambda rng: f"{rng.randrange(6, 23)}:{rng.randrange(60):02d}",
    "aside": aside,
    "date": date,
    "money": money,
    "version": version,
    "phone": phone,
    "mail": mail,
    "url": url,
    "path": path,
}
