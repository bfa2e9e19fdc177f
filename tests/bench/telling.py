"""Projects in which agents are told things: sessions, facts, rules, and prompts that need them.

A file in a folder of `sets/telling` is one project. Its sessions hold, in order,
messages of the user and the agent, results of tools, and prompts that are asked at that moment in
a session of their own. A message states facts and rules and may end earlier ones.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Literal

import msgspec
from bench.meaning_sets import read_lines

SETS = Path(__file__).parent / "sets" / "telling"
UNSAID = SETS.with_name("unsaid")
HALVES = ("tune", "held", "others", "others-held", "strangers", "lives")
PAUSE = timedelta(minutes=2)
"""Time from one message to the next."""

Keys = tuple[str, ...]
"""Alternative texts; each of them shows that the fact was told."""


class Entry(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What happens next in a session: a message, a tool's result, or a prompt that is asked."""

    user: str = ""
    agent: str = ""
    tool: str = ""
    """The result of a tool, which the agent read."""
    name: str = "Bash"
    """The tool's name."""
    note: str = ""
    """A memory that `mnem remember` stores, of no session and no project."""
    ask: str = ""
    """A prompt, asked at this moment in a session of its own."""
    lang: str = "en"
    """The language of a prompt, or of a message that states something."""
    fact: dict[str, Keys] = {}
    """The facts that the message states, with their keys."""
    rule: dict[str, tuple[Keys, ...]] = {}
    """The instructions and preferences that it states, with the keys of each clause."""
    ends: tuple[str, ...] = ()
    """Facts and rules that it ends."""
    stale: tuple[str, ...] = ()
    """With `ends`: texts that tell the ended fact as in force; by default its keys."""
    needs: tuple[str, ...] = ()
    """Of a prompt: the facts or rules that it needs; none if it needs nothing."""


class Session(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A conversation with an agent."""

    start: datetime
    messages: list[Entry]


class Project(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A project of several sessions, in order of time."""

    name: str
    directory: str
    about: str
    session: list[Session]

    def entries(self) -> Iterator[Entry]:
        for session in self.session:
            yield from session.messages

    def prompts(self) -> Iterator[Entry]:
        return (entry for entry in self.entries() if entry.ask)

    def facts(self) -> dict[str, Keys]:
        return {id: keys for entry in self.entries() for id, keys in entry.fact.items()}

    def rules(self) -> dict[str, tuple[Keys, ...]]:
        return {
            id: clauses
            for entry in self.entries()
            for id, clauses in entry.rule.items()
        }


def load_project(path: Path) -> Project:
    """Read a project's file; a time without an offset is UTC."""
    content: dict[str, Any] = tomllib.loads(path.read_text(encoding="utf-8"))
    return msgspec.convert(content, Project)


def load_half(half: str, *, only: str = "") -> list[Project]:
    """Read the projects of a half, in order of their names; `only` is part of a name."""
    paths = sorted((SETS / half).glob("*.toml"))
    return [load_project(path) for path in paths if only in path.stem]


def load_unsaid() -> dict[str, list[Entry]]:
    """Return by project the prompts about things that nothing in the project says."""
    unsaid: dict[str, list[Entry]] = {}
    for path in sorted(UNSAID.glob("*.txt")):
        for is_name, line in read_lines(path):
            if is_name:
                prompts = unsaid.setdefault(line, [])
            else:
                prompts.append(Entry(ask=line))
    return unsaid


# ---------------------------------------------------------------- told or not


def fold(text: str) -> str:
    """Return a text without differences of case and of white space."""
    return " ".join(text.casefold().split())


def has_key(text: str, keys: Sequence[str]) -> bool:
    """Return True if one of the keys is in the text, as whole words."""
    folded = fold(text)
    return any(
        re.search(rf"(?<!\w){re.escape(fold(key))}(?!\w)", folded) for key in keys
    )


def tells_rule(texts: Sequence[str], clauses: Sequence[Keys]) -> bool:
    """Return True if every clause has a key in one of the texts."""
    together = "\n".join(texts)
    return all(has_key(together, keys) for keys in clauses)


MARKED_AS_ENDED = re.compile(
    r"\b(?:until|ended|superseded|no longer|not .{1,40} any ?more|instead of|replaced|dropped"
    r"|used to|formerly|previously|nicht mehr|statt|ya no|en vez de)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class EndedFact:
    """A fact that another ended: what tells it as in force, and what tells its successors."""

    id: str
    ended_at: datetime
    stale: Keys
    successors: Keys

    def is_told_as_in_force(self, line: str) -> bool:
        """Return True if a line has the ended fact, without a mark of its end and a successor."""
        is_marked = MARKED_AS_ENDED.search(line) or has_key(line, self.successors)
        return has_key(line, self.stale) and not is_marked


def ended_facts(project: Project) -> list[EndedFact]:
    """Return the ended facts of a project, in order of their ends."""
    facts, rules = project.facts(), project.rules()
    ended: list[EndedFact] = []
    for session in project.session:
        for number, entry in enumerate(session.messages):
            successors = tuple(
                key
                for keys in (*entry.fact.values(), *flat(entry.rule))
                for key in keys
            )
            for id in entry.ends:
                keys = facts.get(id) or tuple(
                    key for clause in rules.get(id, ()) for key in clause
                )
                at = session.start + number * PAUSE
                ended.append(EndedFact(id, at, entry.stale or keys, successors))
    return ended


def flat(rule: Mapping[str, tuple[Keys, ...]]) -> Iterator[Keys]:
    """Yield the keys of each clause of each rule."""
    for clauses in rule.values():
        yield from clauses


NOTE = re.compile(r" \((?:earlier|until [-\d]+): \[")
"""The beginning of an older quote in the line of a newer one, which says that it no longer applies."""


def facts_told_only_as_older(
    project: Project, told_at: datetime, lines: Sequence[str]
) -> set[str]:
    """Return the ids of facts and rules in force that lines have only as older ones.

    An older quote that also states what has ended is rightly behind a newer one, and does not count.
    """
    facts, rules = project.facts(), project.rules()
    in_force = {
        id
        for session in project.session
        for number, entry in enumerate(session.messages)
        if session.start + number * PAUSE < told_at
        for id in (*entry.fact, *entry.rule)
    }
    ended = [each for each in ended_facts(project) if each.ended_at < told_at]
    in_force -= {each.id for each in ended}
    quotes = [NOTE.split(line) for line in lines]
    newest = [first for first, *_ in quotes]
    older = [
        quote
        for _, *behind in quotes
        for quote in behind
        if not any(has_key(quote, each.stale) for each in ended)
    ]

    def is_in(id: str, texts: Sequence[str]) -> bool:
        return (
            has_key("\n".join(texts), facts[id])
            if id in facts
            else tells_rule(texts, rules[id])
        )

    return {id for id in in_force if is_in(id, older) and not is_in(id, newest)}


Kind = Literal["fact", "rule", "nothing"]


def kind_of(prompt: Entry, project: Project) -> Kind:
    """Return what the prompt needs: a fact, a rule, or nothing."""
    if not prompt.needs:
        return "nothing"
    return "rule" if set(prompt.needs) <= project.rules().keys() else "fact"
