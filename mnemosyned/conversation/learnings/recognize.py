"""Recognition of instructions, preferences and names in the words of a user.

A prefilter skips texts without any hint: each language has its own hints, and a rule matches only
where a hint of its language occurs, which a test proves for every rule. A new rule may need a new
hint. If an encoder is up, sentences that no rule matches are rated by their vectors, later.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from datetime import datetime
from functools import cache
from itertools import islice
from typing import NamedTuple

from mnemosyned.conversation.learnings import comparison, relevance
from mnemosyned.conversation.learnings.rules import (
    CLAUSE_CHARS_MAX,
    LANGUAGES,
    LearningStatement,
    find_passing,
    load_rules,
    load_shared_pattern,
    load_table,
)
from mnemosyned.ids import new_id
from mnemosyned.memory.values import Learning, LearningKind, MemoryRecord
from mnemosyned.text import sentences, terms
from mnemosyned.text.secrets.masking import mask_secrets

REQUEST = "request"
"""Key, in place of a language, for the hints of lasting requests in any language."""
CORRECTION = "correction"
"""Key, in place of a language, for the hints of orders that correct an older one."""
PASSING_SUFFIX = " in passing"
"""Ending of the keys for the hints of preferences said in passing."""
USER_ROLES = frozenset({"user", "human"})
"""Roles whose words can be instructions; those of an agent or a tool cannot."""
TEXT_CHARS_MAX = 400
"""Longer sentences are documents, not instructions."""
NOTE_CHARS_MAX = 200
"""Longer notes are letters or documents: they tell others what to do."""
PASSAGE_CHARS_MAX = 1_000
"""Longer sentences are not searched for preferences in passing either."""
SENTENCES_MAX = 200
"""Sentences of a text that are read; what follows is a document, not speech."""
STATED_MAX = 50
"""A text with more rules is a document: the others are recalled, but not learned."""
CLAUSES_MAX = 8
"""Clauses after which an instruction may begin; later ones are not tried."""

RateSentences = Callable[[Sequence[str]], Sequence[float]]
"""Function that returns the probability that each sentence is a standing rule; empty if it fails."""
RULE_PROBABILITY_MIN = 0.8
RULE_PROBABILITIES_MIN = {"binding": 0.45, "lasting": 0.6, "general": 0.6}
"""Minimum probability for learning a sentence as a rule, by the shared pattern that one of its words matches.
Of sentences by authors on whom nothing was fitted, each finds four to six rules for each sentence that is
none."""
CLAUSE_PROBABILITY_MIN = 0.95
"""Minimum probability if a pattern matched only a clause: the other clauses are often no rule."""
NEIGHBOR_PROBABILITY_MIN = 0.45
"""Minimum probability of a sentence next to an instruction, as rules often come one after another."""
WHOLE_SHARE_MIN = 0.8
"""Share of a sentence from which the clauses that patterns found count as the whole rule."""
RATED_MAX = 20
"""Texts with more sentences are documents, and are not rated."""

ALONE = ("english",)
"""Languages with a rule for a preference that is a whole message."""
ALONE_BEGINNINGS = ("i ", "i'", "my ")
NAMED_BEFORE_MAX = 1
"""Number of content words before a pronoun, such as its verb, among which it finds nothing to stand for."""
STATED_AS_FACTS = frozenset({"code", "writing", "looks"})
"""Fields in which a rule is often stated as a fact: "timestamps are always UTC"."""

PAGE_MARKS_MIN = 3
"""Minimum number of headings, links, table rows or tags by which a text looks like a page."""
PAGE_SHARE_MAX = 0.2
"""Share of rules among the sentences above which such a text is a list of a user's rules, not a page."""
PAGE_CHARS = 1_500
PAGE_LINES_MIN = 6
PLAIN_PAGE_SHARE_MAX = 0.1
"""Maximum share for a long text of several lines that does not look like a page. In 300 messages of technical
talks, lasting instructions are in texts of at most 640 characters and two paragraphs."""

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
_FENCE = re.compile(
    r"(```|~~~).*?(?:\1|\Z)|^(\"\"\"|''')[ \t]*$.*?(?:^\2|\Z)", re.DOTALL | re.MULTILINE
)
"""Code, and text pasted between quotation marks on lines of their own."""
_CODE_LINE = re.compile(
    r"^[ \t]*(?:>|#|//|/\*|\*\s|--|\$ |@@|[+-]{3} | {4}\S|\t).*$", re.MULTILINE
)
_QUOTED = re.compile(
    r"\"[^\"\n]{0,300}\"|“[^”\n]{0,300}”|„[^“”\n]{0,300}[“”]|«[^»\n]{0,300}»|「[^」\n]{0,300}」|『[^』\n]{0,300}』"
    r"|`[^`\n]{0,300}`|(?<!\w)'[^'\n]{2,300}'(?!\w)|(?<!\w)‘[^’\n]{2,300}’(?!\w)"
)
_QUOTE = re.compile("[\"“„«「『`'‘]")
"""Quotation marks: a quick test, as texts without them need no search for quotations."""
_BLANK = re.compile('"_+"')
# The titles are tested after the mark: before it, every character would be tried.
_SENTENCE = re.compile(
    rf"[{sentences.SPACED_ENDS}](?<!\bDr.)(?<!\bMr.)(?<!\bMs.)(?<!\bMrs.)[{sentences.SPACED_ENDS}]*(?=\s|$)"
    rf"|[{sentences.UNSPACED_ENDS}]+|\n"
)
_CLAUSE = re.compile(
    r"[;；,，、]\s*|\s[–—-]\s|\b(?:and|but) (?=please|call me|don't|do not)",
    re.IGNORECASE,
)
_QUESTION_ENDS = (*sentences.QUESTION_MARKS, "か。", "か")
_COLON = re.compile(r"^.{0,24}[:：]\s+")


def extract_learnings(
    memory: MemoryRecord,
    *,
    now: datetime,
    may_have_secrets: bool = True,
    rate: RateSentences | None = None,
) -> tuple[Learning, ...]:
    """Return the learnings that a user states in a memory, with secrets masked.

    The ids contain `now`, since a memory may be stored long after it was created. `may_have_secrets` is False
    if a search for secrets in the memory found none. `rate` rates sentences that no rule matches.
    """
    text = memory.content
    if not may_state_learnings(memory) or not (rate or may_match_rule(text)):
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
        for statement in find_statements(text, rate=rate)
    )


def may_state_learnings(memory: MemoryRecord) -> bool:
    """Return True if a memory is a user's message, or a note: one short line without role and source.

    A note with a label, such as "Recipe: …", is about something else, except "Rule: …" and the like.
    """
    if memory.role or memory.source:
        return memory.role.casefold() in USER_ROLES
    text = memory.content.strip()
    if len(text) > NOTE_CHARS_MAX or "\n" in text:
        return False
    labeled = _COLON.match(text)
    return not labeled or bool(load_shared_pattern("noted").match(text))


class LateLearning(NamedTuple):
    """A learning that no pattern found when its memory was stored, to be stored later."""

    learning: Learning
    memory: MemoryRecord
    """Its memory when it was read."""
    clauses: frozenset[str]
    """Texts of the learnings by patterns that are clauses of it."""


def extract_late_learnings(
    memory: MemoryRecord, *, now: datetime, rate: RateSentences
) -> list[LateLearning]:
    """Return the learnings that a user states in a memory and that only `rate` finds.

    Learnings that patterns find were stored with the memory, and may have been removed since. The ids
    contain `now`.
    """
    learnings = extract_learnings(memory, now=now, rate=rate)
    if not learnings:
        return []
    stored = {each.text for each in extract_learnings(memory, now=now)}
    return [
        LateLearning(
            each,
            memory,
            frozenset(
                text for text in stored if sentences.contains_statement(each.text, text)
            ),
        )
        for each in learnings
        if each.text not in stored
    ]


def split_text(text: str) -> list[str]:
    """Return the sentences of a user's text, without code."""
    return [sentence for sentence, _ in _split_sentences(text)]


def find_statements(
    text: str, *, rate: RateSentences | None = None
) -> list[LearningStatement]:
    """Return the distinct learnings stated in a user's text, in order, `STATED_MAX` at most.

    If the text has a pasted page or a prompt meant for an agent, only its introduction is read.
    `rate` rates sentences without a matching rule.
    """
    split = list(_split_sentences(text)) if rate else []
    is_document = len(split) > RATED_MAX
    asked = [
        sentence
        for sentence, blanked in split
        if not sentences.is_question(sentence) and not _is_no_rule(blanked)
    ]
    rated: dict[str, float] = {}
    if rate and asked and not is_document:
        rated = dict(zip(asked, rate(asked), strict=False))  # no ratings on errors
    tags = list(_PAGE_TAG.finditer(text))
    if len(tags) >= PAGE_MARKS_MIN:
        text = f"{text[: tags[0].start()]}\n{text[tags[-1].end() :]}"
    statements, sentence_count = _read_statements(text, rated)
    own = text.strip().replace("’", "'")
    if not statements:
        is_alone = sentence_count == 1 and _is_preference_alone(own)
        return [LearningStatement(LearningKind.PREFERENCE, own)] if is_alone else []
    agent_order = load_shared_pattern("to_agent").search(own)
    if "\n" not in own:
        return (
            _read_statements(own, rated, until=agent_order[0])[0]
            if agent_order
            else statements
        )
    if agent_order or load_shared_pattern("override").search(own):
        first = own.partition("\n")[0].rstrip()
        return (
            _read_statements(first, rated)[0]
            if first.endswith(_INTRODUCTION_ENDS)
            else []
        )
    first = _BLANK_LINE.split(own, maxsplit=1)[0]
    before = _read_statements(first, rated)[0] if first != own else []
    # A page of several lines is much prose, and a small share of its sentences are statements.
    share = (len(statements) - len(before)) / sentence_count
    if len(own) >= PAGE_CHARS and share <= PLAIN_PAGE_SHARE_MAX:
        is_page = own.count("\n") >= PAGE_LINES_MIN
    else:
        marks = len(list(islice(_PAGE_MARK.finditer(own), PAGE_MARKS_MIN)))
        is_page = marks >= PAGE_MARKS_MIN and share <= PAGE_SHARE_MAX
    if is_page:
        is_own = len(first) <= TEXT_CHARS_MAX and not _PAGE_MARK.search(first)
        return before if is_own else []
    return statements


def _is_preference_alone(message: str) -> bool:
    """Return True if a message of one sentence is a preference: "I feel uneasy on boats."."""
    if len(message) > CLAUSE_CHARS_MAX or message.endswith(_QUESTION_ENDS):
        return False
    return any(
        begins.match(message) and has.search(message) and not lacks.search(message)
        for begins, has, lacks in (load_rules(language).alone for language in ALONE)
    )


def _read_statements(
    text: str, rated: Mapping[str, float], *, until: str | None = None
) -> tuple[list[LearningStatement], int]:
    """Return the learnings in a text, and the number of sentences read, up to one that contains `until`."""
    statements: dict[str, LearningStatement] = {}
    count = 0
    before = ""
    last: LearningStatement | None = None
    """The instruction that the sentence before states or continues."""
    preferred: LearningStatement | None = None
    """The preference that the sentence before ends with."""
    for sentence, blanked in _split_sentences(text):
        if until is not None and until in sentence:
            break
        count += 1
        found = _read_sentence(sentence, blanked)
        least = CLAUSE_PROBABILITY_MIN if found else RULE_PROBABILITY_MIN
        if not found and sentence in rated:
            for name, probability in RULE_PROBABILITIES_MIN.items():
                if load_shared_pattern(name).search(blanked):
                    least = min(least, probability)
        said = sum(len(each.text) for each in found)
        is_rule = rated.get(sentence, 0.0) >= least
        if found and _is_no_rule(blanked):
            found = [
                each
                for each in found
                if each.end and each.kind is LearningKind.PREFERENCE
            ]
        if is_rule and said < WHOLE_SHARE_MIN * len(sentence):
            found = [LearningStatement(LearningKind.INSTRUCTION, sentence)]
        joined = _join_instruction(found, last, before, sentence, rated)
        if joined:
            if last:
                statements.pop(last.text.casefold(), None)
            found = [joined]
        elif preferred and not found and _is_remedy(sentence):
            del statements[preferred.text.casefold()]
            text = f"{preferred.text}. {sentence}"
            found = [preferred._replace(text=text)]
        elif found and found[-1].kind is LearningKind.PREFERENCE and found[-1].end:
            rest = sentence[found[-1].end :].lstrip(" ,;:.–—-")
            if _is_remedy(rest):
                text = f"{found[-1].text}, {rest}"
                found[-1] = found[-1]._replace(text=text, end=len(sentence))
        elif not before and load_shared_pattern("nounless").match(sentence):
            found = []
        for statement in found:
            statements.setdefault(statement.text.casefold(), statement)
        is_order = len(found) == 1 and found[0].kind is LearningKind.INSTRUCTION
        last = found[0] if is_order else None
        is_preference = found and found[-1].kind is LearningKind.PREFERENCE
        preferred = (
            found[-1] if is_preference and len(sentence) - found[-1].end <= 1 else None
        )
        before = sentence
        if len(statements) >= STATED_MAX:
            break
    return list(statements.values())[:STATED_MAX], count


def _is_no_rule(blanked: str) -> bool:
    """Return True if a sentence is about one occasion or a system, or cites a text or another person."""
    return any(
        load_shared_pattern(name).search(blanked) for name in ("once", "cited", "route")
    )


def _is_remedy(text: str) -> bool:
    """Return True if a text says, as a rule, what to do in place of something that a person dislikes."""
    return bool(load_shared_pattern("remedy").match(text)) and not _is_no_rule(text)


def _join_instruction(
    found: list[LearningStatement],
    last: LearningStatement | None,
    before: str,
    sentence: str,
    rated: Mapping[str, float],
) -> LearningStatement | None:
    """Return the instruction that a sentence and the sentence `before` it state together, or None.

    The sentence may continue `last`, the instruction of `before`, or refer to `before`, as "Always write
    a new one." does. Or one of the two is an instruction, and the other probably is by `rated`.
    """
    if found:
        if not before or found[0] != (LearningKind.INSTRUCTION, sentence, 0, 0):
            return None
        is_likely = rated.get(before, 0.0) >= NEIGHBOR_PROBABILITY_MIN
        if last or not is_likely:
            dangling = load_shared_pattern("dangling").search(sentence)
            if not dangling:
                return None
            named = comparison.find_content_words(
                terms.parse_terms(comparison.remove_cues(sentence[: dangling.start()]))
            )
            if len(named) > NAMED_BEFORE_MAX:
                return None
    elif not (
        last
        and not sentence.endswith(_QUESTION_ENDS)
        and (
            rated.get(sentence, 0.0) >= NEIGHBOR_PROBABILITY_MIN
            or load_shared_pattern("follows").match(sentence)
            or (
                load_shared_pattern("dangling").search(sentence)
                and load_shared_pattern("lasting").search(sentence)
            )
        )
    ):
        return None
    joined = f"{last.text if last else before} {sentence}"
    if len(joined) > TEXT_CHARS_MAX:
        return None
    return LearningStatement(LearningKind.INSTRUCTION, joined)


def _read_sentence(sentence: str, blanked: str) -> list[LearningStatement]:
    """Return the learning that a whole sentence states, or the preferences said in passing in it."""
    quoted = _BLANK.sub('"_"', blanked)
    languages = find_candidate_languages(quoted)
    if not languages:
        return []
    kind = None
    if len(quoted) <= TEXT_CHARS_MAX:
        kind = _recognize_sentence_kind(quoted, languages)
    whole = [LearningStatement(kind, sentence)] if kind else []
    if kind not in (None, LearningKind.PREFERENCE):
        return whole
    if load_shared_pattern("attribution").search(quoted):
        return whole
    spoken = {key.removesuffix(PASSING_SUFFIX) for key in languages - set(LANGUAGES)}
    passing = find_passing(sentence, blanked, spoken)
    return whole if whole and passing and passing[0].start else passing or whole


def _split_sentences(text: str) -> Iterator[tuple[str, str]]:
    """Yield each sentence outside of code, unless too long, with a copy that has `_` for quoted characters."""
    plain = _CODE_LINE.sub("", _FENCE.sub("\n", text.replace("’", "'")))
    blanked = plain
    if _QUOTE.search(plain):
        blanked = _QUOTED.sub(
            lambda quote: '"' + "_" * (len(quote[0]) - 2) + '"', plain
        )
    start = 0
    ends = [match.end() for match in _SENTENCE.finditer(blanked)][:SENTENCES_MAX]
    for end in [*ends, len(blanked)]:
        head, comma, _ = blanked[start:end].partition(",")
        # "how do i get there, i never fly": what follows the question may be a rule
        asked = (
            start + len(head) if comma and sentences.is_question(head.strip()) else end
        )
        for stop in sorted({asked, end}):
            sentence = plain[start:stop].strip()
            if 2 < len(sentence) <= PASSAGE_CHARS_MAX:
                yield sentence, blanked[start:stop].strip()
            start = stop + (stop < end)


def _recognize_sentence_kind(
    sentence: str, languages: Collection[str]
) -> LearningKind | None:
    """Return the kind of learning that a sentence states, or None if it states none."""
    if sentence.endswith(_QUESTION_ENDS):
        if REQUEST not in languages:
            return None
        request = load_shared_pattern("request").match(_remove_lead(sentence))
        return LearningKind.INSTRUCTION if request else None
    if CORRECTION in languages and load_shared_pattern("correction").match(sentence):
        return LearningKind.INSTRUCTION
    spoken = [language for language in LANGUAGES if language in languages]
    # Where an instruction may begin, after the end of what precedes it.
    cuts = [(0, 0)]
    if colon := _COLON.match(sentence):
        cuts.append((colon.end(), colon.end()))
    cuts += [pause.span() for pause in islice(_CLAUSE.finditer(sentence), CLAUSES_MAX)]
    for index, (_, start) in enumerate(cuts):
        clause = _remove_lead(sentence[start:])
        for rules in map(load_rules, spoken):
            is_convention = (
                rules.convention
                and rules.convention.match(clause)
                and not STATED_AS_FACTS.isdisjoint(relevance.find_fields(sentence))
            )
            if is_convention or rules.any.match(clause):
                # Looked for last, as few sentences come so far.
                reported = load_shared_pattern("reported")
                if any(reported.search(sentence[:end]) for end, _ in cuts[: index + 1]):
                    return None
                if load_shared_pattern("attribution").search(sentence):
                    return None
                kinds = (kind for kind, rule in rules.each if rule.match(clause))
                return next(kinds, LearningKind.INSTRUCTION)
    return None


def _remove_lead(clause: str) -> str:
    """Return a clause without leading words such as "please"."""
    lead = load_shared_pattern("lead").match(clause)
    return clause[lead.end() :] if lead else clause


class _Hints(NamedTuple):
    """Patterns of words without which no rule can match, for all languages."""

    first: re.Pattern[str]
    """Finds one hint."""
    each: re.Pattern[str]
    """Finds every hint as its first group, overlapping ones too, without its longer forms."""
    longer: dict[str, list[tuple[str, frozenset[str]]]]
    """By a hint that `each` finds: the hints that begin with it, with their languages."""


def may_match_rule(text: str) -> bool:
    """Return True if any rule could match in a text; this takes 8 µs for most texts."""
    low = _normalize_letters(text)
    if len(low) <= CLAUSE_CHARS_MAX and low.lstrip().startswith(ALONE_BEGINNINGS):
        return True
    return _compile_hints(low.isascii()).first.search(low) is not None


def find_candidate_languages(text: str) -> frozenset[str]:
    """Return the keys of rules that could match in a text, such as "english" or `REQUEST`; often none."""
    low = _normalize_letters(text)
    hints = _compile_hints(low.isascii())
    languages: set[str] = set()
    for beginning in set(hints.each.findall(low)):
        for hint, hinted in hints.longer[beginning]:
            if hint in low:
                languages |= hinted
    return frozenset(languages)


def _normalize_letters(text: str) -> str:
    """Return a text in lower case, with ASCII apostrophes and ASCII `i`, as the hints are written."""
    low = text.casefold()
    if low.isascii():
        return low
    # A rule takes these for the letters and marks that the hints are written with.
    return low.replace("’", "'").replace("ı", "i").replace("i\u0307", "i")


@cache
def _compile_hints(ascii_only: bool) -> _Hints:  # noqa: FBT001 a cache knows no names
    """Return the hints of the rules for learnings: a text without any hint matches no rule.

    With `ascii_only`, leave out hints that an ASCII text cannot contain. A hint that begins with another
    is searched only where the shorter hint occurs. A single pattern that branches by letter takes a
    third of the time of a search for each hint.
    """
    shared = load_table("shared")
    hints_of = {
        REQUEST: shared["request_hints"],
        CORRECTION: shared["correction_hints"],
    }
    for language in LANGUAGES:
        table = load_table(language)
        if "hints" in table:
            hints_of[language] = table["hints"]
        if "passing" in table:
            hints_of[language + PASSING_SUFFIX] = table["passing"]["hints"]
    languages: dict[str, set[str]] = {}
    for language, hints in hints_of.items():
        for hint in hints.split("|"):
            if hint.isascii() or not ascii_only:
                languages.setdefault(hint, set()).add(language)
    longer: dict[str, list[tuple[str, frozenset[str]]]] = {}
    beginning = None
    for hint in sorted(languages):  # a hint is followed by the hints that begin with it
        if beginning is None or not hint.startswith(beginning):
            beginning = hint
        longer.setdefault(beginning, []).append((hint, frozenset(languages[hint])))
    pattern = _build_trie_pattern(list(longer))
    return _Hints(
        first=re.compile(pattern), each=re.compile(f"(?=({pattern}))"), longer=longer
    )


def _build_trie_pattern(words: list[str]) -> str:
    """Return a pattern, branching by letter, of sorted words; no word may begin with another."""
    by_letter: dict[str, list[str]] = {}
    for word in words:
        by_letter.setdefault(word[:1], []).append(word[1:])
    branches = [
        re.escape(letter) + (_build_trie_pattern(endings) if endings != [""] else "")
        for letter, endings in by_letter.items()
    ]
    return branches[0] if len(branches) == 1 else f"(?:{'|'.join(branches)})"
