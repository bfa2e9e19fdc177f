"""Recognizes by rule the instructions, preferences and names that a user states."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from datetime import datetime
from itertools import islice
from typing import NamedTuple

from mnemosyned.domain.ids import new_id
from mnemosyned.domain.learnings.learning import Learning, LearningKind
from mnemosyned.domain.learnings.passing.find import find_passing
from mnemosyned.domain.learnings.prefilter import (
    REQUEST,
    candidate_languages,
    may_match_rule,
    passing_languages,
)
from mnemosyned.domain.learnings.rule_tables import LANGUAGES
from mnemosyned.domain.learnings.rules import SharedPatterns, rules_of, shared_patterns
from mnemosyned.domain.memory import MemoryRecord
from mnemosyned.domain.secrets.masking import mask_secrets
from mnemosyned.domain.text.sentence_marks import SPACED_ENDS, UNSPACED_ENDS

USER_ROLES = frozenset({"user", "human"})
"""Roles whose words can be instructions; those of an agent or a tool cannot."""
TEXT_CHARS_MAX = 400
"""Longer sentences are documents, not instructions."""
PASSAGE_CHARS_MAX = 1_000
"""Longer sentences are not searched for preferences in passing either."""
SENTENCES_MAX = 200
"""Sentences of a text that are read; what follows is a document, not speech."""
STATED_MAX = 50
"""A text with more rules is a document: the others are recalled, but not learned."""
CLAUSES_MAX = 8
"""Clauses after which an instruction may begin; later ones are not tried."""

PAGE_MARKS_MIN = 3
"""Headings, links, rows or tags from which on a text is laid out as a page."""
PAGE_SHARE_MAX = 0.2
"""Share of statements up to which such a text is a page, and not a list of a user's rules."""
PAGE_CHARS = 1_500
PAGE_LINES_MIN = 6
PLAIN_PAGE_SHARE_MAX = 0.1
"""The same for a long text of several lines without that layout. What users say for good stands, in
300 messages of technical talks, in texts of at most 640 characters and two paragraphs."""

_PAGE_TAG = re.compile(
    r"</?(?:html|head|body|title|meta|link|script|style|div|p|span|h[1-6]|[uo]l|li|table|t[rdh]|a|img"
    r"|section|article|header|footer|nav|main|br|form|button)\b[^<>\n]{0,300}>",
    re.IGNORECASE,
)
_PAGE_MARK = re.compile(
    r"^#{1,6} \S|^[=-]{3,}$|\]\(|^\|.*\|$|©|^(?:[^\n]{0,40} )?(?:all rights reserved|subscribe|sign in"
    r"|share this|read more|\d+ min read|cookie)\b",
    re.MULTILINE | re.IGNORECASE,
)
_BLANK_LINE = re.compile(r"\n\s*\n")
_INTRODUCTION_ENDS = (":", "：", "?", "？")
_FENCE = re.compile(r"```.*?(?:```|\Z)", re.DOTALL)
_CODE_LINE = re.compile(
    r"^[ \t]*(?:>|#|//|/\*|\*\s|--|\$ |@@|[+-]{3} | {4}\S|\t).*$", re.MULTILINE
)
_QUOTED = re.compile(
    r"\"[^\"\n]{0,300}\"|“[^”\n]{0,300}”|„[^“”\n]{0,300}[“”]|«[^»\n]{0,300}»|「[^」\n]{0,300}」|『[^』\n]{0,300}』"
    r"|`[^`\n]{0,300}`|(?<!\w)'[^'\n]{2,300}'(?!\w)|(?<!\w)‘[^’\n]{2,300}’(?!\w)"
)
_QUOTE = re.compile("[\"“„«「『`'‘]")
"""Quotation marks: a text without one is not searched for quotations, at a tenth of the time."""
_BLANK = re.compile('"_+"')
# The titles are tested after the mark: before it, every character would be tried.
_SENTENCE = re.compile(
    rf"[{SPACED_ENDS}](?<!\bDr.)(?<!\bMr.)(?<!\bMs.)(?<!\bMrs.)[{SPACED_ENDS}]*(?=\s|$)"
    rf"|[{UNSPACED_ENDS}]+|\n"
)
_CLAUSE = re.compile(
    r"[;；,，、]\s*|\s[–—-]\s|\b(?:and|but) (?=please|call me|don't|do not)",
    re.IGNORECASE,
)
_QUESTION_ENDS = ("?", "？", "か。", "か")
_COLON = re.compile(r"^.{0,24}[:：]\s+")


class Statement(NamedTuple):
    """A sentence that states a learning, word for word, with straight apostrophes."""

    kind: LearningKind
    text: str


def extract_learnings(
    memory: MemoryRecord, *, now: datetime, may_have_secrets: bool = True
) -> tuple[Learning, ...]:
    """Return the learnings that a user states in a memory, with secrets masked.

    `now` goes into the ids: a memory may be stored long after it was created.
    """
    text = memory.content
    if memory.role.casefold() not in USER_ROLES or not may_match_rule(text):
        return ()
    if may_have_secrets:
        text = mask_secrets(text)
    return tuple(
        Learning(
            id=new_id(now),
            kind=statement.kind,
            text=statement.text,
            created_at=memory.created_at,
            session=memory.session,
            source=memory.source,
            memory=memory.id,
        )
        for statement in find_statements(text)
    )


def find_statements(text: str) -> list[Statement]:
    """Return the statements among a user's words in order, each once, `STATED_MAX` at most.

    Of a message with a pasted page, only the words that introduce the page are read.
    """
    tags = list(_PAGE_TAG.finditer(text))
    if len(tags) >= PAGE_MARKS_MIN:
        text = f"{text[: tags[0].start()]}\n{text[tags[-1].end() :]}"
    statements, sentences = _read(text)
    if not statements:
        return []
    own, shared = text.strip().replace("’", "'"), shared_patterns()
    told = shared.to_agent.search(own)
    if "\n" not in own:
        return _read(own, until=told[0])[0] if told else statements
    if told or shared.override.search(own):
        first = own.partition("\n")[0].rstrip()
        return _read(first)[0] if first.endswith(_INTRODUCTION_ENDS) else []
    first = _BLANK_LINE.split(own, maxsplit=1)[0]
    before = _read(first)[0] if first != own else []
    if _is_page(own, share=(len(statements) - len(before)) / sentences):
        is_own = len(first) <= TEXT_CHARS_MAX and not _PAGE_MARK.search(first)
        return before if is_own else []
    return statements


def _read(text: str, *, until: str | None = None) -> tuple[list[Statement], int]:
    """Return the statements up to a sentence with the words `until`, and the sentences' number."""
    statements: dict[str, Statement] = {}
    count = 0
    for sentence, blanked in _sentences(text):
        if until is not None and until in sentence:
            break
        count += 1
        for statement in _statements_of(sentence, blanked):
            statements.setdefault(statement.text.casefold(), statement)
        if len(statements) >= STATED_MAX:
            break
    return list(statements.values())[:STATED_MAX], count


def _is_page(text: str, *, share: float) -> bool:
    """Whether a text of several lines is a page: much prose, and a small share of it statements."""
    if len(text) >= PAGE_CHARS and share <= PLAIN_PAGE_SHARE_MAX:
        return text.count("\n") >= PAGE_LINES_MIN
    marks = len(list(islice(_PAGE_MARK.finditer(text), PAGE_MARKS_MIN)))
    return marks >= PAGE_MARKS_MIN and share <= PAGE_SHARE_MAX


def _statements_of(sentence: str, blanked: str) -> list[Statement]:
    """Return a sentence that is an instruction as it is, else the preferences stated in it."""
    quoted = _BLANK.sub('"_"', blanked)
    languages = candidate_languages(quoted)
    if not languages:
        return []
    kind = None
    if len(quoted) <= TEXT_CHARS_MAX:
        kind = _classify(quoted, languages)
    whole = [Statement(kind, sentence)] if kind else []
    if kind not in (None, LearningKind.PREFERENCE):
        return whole
    if shared_patterns().attribution.search(quoted):
        return whole
    in_passing = [
        Statement(passing.kind, passing.text)
        for passing in find_passing(sentence, blanked, passing_languages(languages))
    ]
    return in_passing or whole


def _sentences(text: str) -> Iterator[tuple[str, str]]:
    """Yield each sentence, and the same with quoted text blanked out at the same length."""
    plain = _CODE_LINE.sub("", _FENCE.sub("\n", text.replace("’", "'")))
    blanked = plain
    if _QUOTE.search(plain):
        blanked = _QUOTED.sub(
            lambda quote: '"' + "_" * (len(quote[0]) - 2) + '"', plain
        )
    start = 0
    ends = [match.end() for match in _SENTENCE.finditer(blanked)][:SENTENCES_MAX]
    for end in [*ends, len(blanked)]:
        sentence = plain[start:end].strip()
        if 2 < len(sentence) <= PASSAGE_CHARS_MAX:
            yield sentence, blanked[start:end].strip()
        start = end


def _classify(sentence: str, languages: Collection[str]) -> LearningKind | None:
    """Return the kind of learning a sentence states, by the rules of these languages."""
    shared = shared_patterns()
    if sentence.endswith(_QUESTION_ENDS):
        if REQUEST not in languages:
            return None
        request = shared.request.match(_without_lead(sentence, shared))
        return LearningKind.INSTRUCTION if request else None
    spoken = [language for language in LANGUAGES if language in languages]
    earlier: list[str] = []
    for before, clause in _instruction_starts(sentence, shared):
        earlier.append(before)
        kind = _kind_of(clause, spoken)
        if kind:
            # Looked for last, as few sentences come so far.
            reported = any(map(shared.reported.search, earlier))
            return None if reported or shared.attribution.search(sentence) else kind
    return None


def _kind_of(clause: str, languages: Sequence[str]) -> LearningKind | None:
    """Return the kind of the first rule of these languages that a clause matches."""
    for language in languages:
        rules = rules_of(language)
        if rules.any.match(clause):
            return next(kind for kind, rule in rules.each if rule.match(clause))
    return None


def _instruction_starts(
    sentence: str, shared: SharedPatterns
) -> Iterator[tuple[str, str]]:
    """Yield each place where an instruction may begin: the text before it and from it on."""
    yield "", _without_lead(sentence, shared)
    if lead := _COLON.match(sentence):
        yield lead[0], _without_lead(sentence[lead.end() :], shared)
    for pause in islice(_CLAUSE.finditer(sentence), CLAUSES_MAX):
        yield sentence[: pause.start()], _without_lead(sentence[pause.end() :], shared)


def _without_lead(clause: str, shared: SharedPatterns) -> str:
    lead = shared.lead.match(clause)
    return clause[lead.end() :] if lead else clause
