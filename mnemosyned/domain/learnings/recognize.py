"""Recognizes by rule what a user says to hold from now on: instructions, preferences, a name."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from datetime import datetime
from itertools import islice
from typing import NamedTuple

from mnemosyned.domain.learnings.learning import Learning, LearningKind
from mnemosyned.domain.learnings.prefilter import REQUEST, hinted, languages
from mnemosyned.domain.learnings.rule_tables import LANGUAGES
from mnemosyned.domain.learnings.rules import Common, common_rules, rules_of
from mnemosyned.domain.memory import MemoryRecord, new_id
from mnemosyned.domain.secrets.masking import masked

USER_ROLES = frozenset({"user", "human"})
"""Whose words can be instructions; what an agent or a tool says is none."""
TEXT_CHARS_MAX = 400
"""A longer sentence is no instruction but a document."""
SENTENCES_MAX = 200
"""Further down, a text is no longer somebody speaking to an agent."""
STATED_MAX = 50
"""A text that lays down more rules is a document; the rest of it is recalled, but not learned."""
CLAUSES_MAX = 8
"""Whoever puts so many words before an instruction gives none."""

_FENCE = re.compile(r"```.*?(?:```|\Z)", re.DOTALL)
_CODE_LINE = re.compile(
    r"^[ \t]*(?:>|#|//|/\*|\*\s|--|\$ |@@|[+-]{3} | {4}\S|\t).*$", re.MULTILINE
)
_QUOTED = re.compile(
    r"\"[^\"\n]{0,300}\"|“[^”\n]{0,300}”|„[^“”\n]{0,300}[“”]|«[^»\n]{0,300}»|「[^」\n]{0,300}」|『[^』\n]{0,300}』"
    r"|`[^`\n]{0,300}`|(?<!\w)'[^'\n]{2,300}'(?!\w)|(?<!\w)‘[^’\n]{2,300}’(?!\w)"
)
_QUOTE = re.compile("[\"“„«「『`'‘]")
"""Texts without one need not be searched for what is quoted, which takes ten times as long."""
_BLANK = re.compile('"_+"')
# The titles are looked for behind the mark: before it, they would be at every character.
_SENTENCE = re.compile(
    r"[.!?…](?<!\bDr.)(?<!\bMr.)(?<!\bMs.)(?<!\bMrs.)[.!?…]*(?=\s|$)|[。！？]+|\n"
)
_CLAUSE = re.compile(
    r"[;；,，、]\s*|\s[–—-]\s|\b(?:and|but) (?=please|call me|don't|do not)",
    re.IGNORECASE,
)
_COLON = re.compile(r"^.{0,24}[:：]\s+")


class Said(NamedTuple):
    """A sentence that is to hold, word for word; apostrophes are all of one form."""

    kind: LearningKind
    text: str


def stated_in(memory: MemoryRecord, *, now: datetime) -> tuple[Learning, ...]:
    """What a user says in a memory that is to hold from now on, without the secrets in it.

    `now` is for the ids, as a memory may come in long after it happened.
    """
    if memory.role.casefold() not in USER_ROLES or not hinted(memory.content):
        return ()
    return tuple(
        Learning(
            id=new_id(now),
            kind=said.kind,
            text=said.text,
            created_at=memory.created_at,
            session=memory.session,
            source=memory.source,
            memory=memory.id,
        )
        for said in standing(masked(memory.content))
    )


def standing(text: str) -> list[Said]:
    """What of a user's words is to hold from now on, in order, each sentence once.

    At most `STATED_MAX` sentences.
    """
    found: dict[str, Said] = {}
    for sentence, blanked in _sentences(text):
        spoken = languages(blanked)
        if spoken and (kind := _kind(blanked, spoken)):
            found.setdefault(sentence.casefold(), Said(kind, sentence))
            if len(found) == STATED_MAX:
                break
    return list(found.values())


def _sentences(text: str) -> Iterator[tuple[str, str]]:
    """Each sentence, and the same with what is quoted in it blanked out."""
    plain = _CODE_LINE.sub("", _FENCE.sub("\n", text.replace("’", "'")))
    blanked = plain
    if _QUOTE.search(plain):
        blanked = _QUOTED.sub(
            lambda quote: '"' + "_" * (len(quote[0]) - 2) + '"', plain
        )
    start = 0
    ends = [found.end() for found in _SENTENCE.finditer(blanked)][:SENTENCES_MAX]
    for end in [*ends, len(blanked)]:
        sentence = plain[start:end].strip()
        if 2 < len(sentence) <= TEXT_CHARS_MAX:
            yield sentence, _BLANK.sub('"_"', blanked[start:end].strip())
        start = end


def _kind(sentence: str, spoken: Collection[str]) -> LearningKind | None:
    """`spoken` are the languages whose rules may match: of most sentences few, or none."""
    common = common_rules()
    if sentence.endswith(("?", "？", "か。", "か")):
        if REQUEST not in spoken:
            return None
        asked = common.request.match(_led(sentence, common))
        return LearningKind.INSTRUCTION if asked else None
    if common.told_after.search(sentence):
        return None
    rules = [
        rule
        for language in LANGUAGES
        if language in spoken
        for rule in rules_of(language)
    ]
    for before, clause in _clauses(sentence, common):
        if common.told.search(before):
            return None
        for kind, rule in rules:
            if rule.match(clause):
                return kind
    return None


def _clauses(sentence: str, common: Common) -> Iterator[tuple[str, str]]:
    """Where an instruction may begin: what stands before, and the rest from there."""
    yield "", _led(sentence, common)
    if lead := _COLON.match(sentence):
        yield lead[0], _led(sentence[lead.end() :], common)
    for pause in islice(_CLAUSE.finditer(sentence), CLAUSES_MAX):
        yield sentence[: pause.start()], _led(sentence[pause.end() :], common)


def _led(clause: str, common: Common) -> str:
    lead = common.lead.match(clause)
    return clause[lead.end() :] if lead else clause
