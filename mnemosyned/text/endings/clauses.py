"""Clauses: parts of a sentence that each state a fact, of which a newer statement may end one."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import lru_cache

from mnemosyned.text.endings.plain import ARTICLES, DEFINITE, INDEFINITE, WORDS, has
from mnemosyned.text.endings.statements import (
    PATTERNS,
    RULES,
    SENTENCES_CACHED_MAX,
    Statement,
    find_languages,
    read_statement,
)
from mnemosyned.text.rule_files import compile_on_use
from mnemosyned.text.word_cache import clear_on_forget

CONTENT_MIN, WORDS_MIN = 2, 3
"""Words with content, and words but articles, of a part of a sentence that states a fact."""
_MAY_JOIN = compile_on_use(
    rf"[、，；]|[,;:] | [–—-] | (?:{'|'.join(each.joints for each in RULES if each.is_spaced)}) "
)
"""Marks and words between clauses in any language; a sentence without one is not split."""


@clear_on_forget
@lru_cache(maxsize=SENTENCES_CACHED_MAX)
def list_clauses(sentence: str) -> tuple[Statement, ...]:
    """Return the clauses of a sentence as statements with a `span`; empty if it states one fact.

    A subject is repeated in its relative clause, and for a pronoun in the next clause: "the cache, which is in
    Oslo, keeps entries" has the clauses "the cache is in Oslo" and "the cache keeps entries", and the last one
    of "the gym is in Main Street, and it closes at 9" is "the gym closes at 9". A part without a fact belongs
    to the clause next to it.
    """
    low = sentence.lower()
    if not _MAY_JOIN.search(low):
        return ()
    parts = list(_split_at_joints(sentence, low)) if len(low) == len(sentence) else []
    clauses: list[Statement] = []
    begin, head = -1, ""
    """Where text begins that states no fact yet, and such text before a relative clause."""
    for start, end in parts if len(parts) > 1 else ():
        relative = PATTERNS["relative"].match(low, start) if start else None
        if begin >= 0 and low[:start].endswith(", "):  # "the server, der in Graz steht"
            relative = relative or PATTERNS["relative_article"].match(low, start)
        if relative:
            about = sentence[max(begin, 0) : start].rstrip(" ,")
            about = about if begin >= 0 else about.rpartition(" ")[2]
            text = about + sentence[relative.end() : end]
            if clause := _read_clause(text, start, end):
                clauses.append(clause)
                begin, head = -1, about if begin >= 0 else ""
                continue
        first = start if begin < 0 else begin
        text = f"{head} {sentence[first:end]}".lstrip()
        personal = PATTERNS["personal"].match(low, start)
        is_next = bool(clauses) and text == sentence[start:end]
        subject = _find_subject(clauses[-1]) if personal and is_next else ""
        if personal and subject:
            text = subject + sentence[personal.end() : end]
        clause = _read_clause(text, first, end)
        # Not "Priya owns the retries, she also wrote them".
        is_bound = subject and clause and has(clause, "referring")
        if clause and not is_bound and not PATTERNS["bound"].match(low, start):
            clauses.append(clause)
            begin, head = -1, ""
        elif clauses and begin < 0 and not head:
            first, _ = clauses[-1].span
            longer = _read_clause(sentence[first:end], first, end)
            clauses[-1] = longer or replace(clauses[-1], span=(first, end))
        else:
            begin = first
    return tuple(clauses) if len(clauses) > 1 else ()


def _find_subject(clause: Statement) -> str:
    """Return the words that a clause begins with up to its first noun or name; "" for "we" and the like."""
    frame = clause.frame
    size = next((n for n, word in enumerate(frame) if word.kind), 0)
    if not {word.key for word in frame[:size]} <= DEFINITE | INDEFINITE:
        return ""
    return clause.text[: frame[size].start + len(frame[size].key)]


def _read_clause(text: str, start: int, end: int) -> Statement | None:
    """Return a part of a sentence as a statement; None if it states no fact."""
    read = read_statement(text, 0)
    words = [each for each in read.frame if each.key not in ARTICLES] if read else []
    if not read or not words or (start and words[0].key in WORDS["pronouns"]):
        return None
    is_fact = len(read.words) >= CONTENT_MIN
    is_fact &= len(words) + len(read.cues) >= WORDS_MIN
    return replace(read, span=(start, end)) if is_fact else None


def _split_at_joints(sentence: str, low: str) -> Iterator[tuple[int, int]]:
    """Yield the start and end of each part of a sentence between commas, "and" and the like."""
    joints = max(
        (list(rules.patterns["joints"].finditer(low)) for rules in find_languages(low)),
        key=lambda joints: sum(joint.end() - joint.start() for joint in joints),
    )
    start, last = 0, len(sentence.rstrip(' .!;:"”»'))
    for joint in joints:
        if start < joint.start() and joint.end() < last:
            yield start, joint.start()
            start = joint.end()
    if start < last:
        yield start, last


def locate_clauses(text: str, clauses: Iterable[str]) -> list[tuple[int, int, str]]:
    """Return (start, end, clause) of the clauses that occur in a text, in order, whatever its line breaks.

    If clauses overlap, only the first one in the text is returned.
    """
    found: list[tuple[int, int, str]] = []
    for clause in clauses:
        words = r"\s+".join(map(re.escape, clause.split()))
        if words and (match := re.search(words, text)):
            found.append((*match.span(), clause))
    found.sort()
    return [
        each
        for number, each in enumerate(found)
        if all(each[0] >= end for _, end, _ in found[:number])
    ]


def leave_out_clauses(sentence: str, clauses: Iterable[str]) -> str | None:
    """Return a sentence without some of its clauses, "" if none is left, None if the rest needs them.

    The other clauses need them if they have no subject of their own, or refer to another clause.
    """
    spans = locate_clauses(sentence, clauses)
    if not spans:
        return sentence
    parts = list_clauses(sentence)
    gone = [
        any(2 * (min(z, end) - max(a, start)) > end - start for a, z, _ in spans)
        for start, end in (part.span for part in parts)
    ]
    kept = [part for part, is_gone in zip(parts, gone, strict=True) if not is_gone]
    if not kept:
        return "" if parts else None
    first = gone.index(False)
    begin = parts[first].span[0] if first else 0
    is_subject = (
        not first
        or sentence[begin].isupper()
        or parts[first].frame[0].key in DEFINITE | INDEFINITE
        or "i" in parts[first].signs
    )
    refers = any(
        has(part, "referring") or has(part, "pronouns") or has(part, "others")
        for part in kept
    )
    is_whole = all(part.text == sentence[slice(*part.span)] for part in kept)
    if not (is_subject and is_whole) or refers:
        return None
    rest, at = "", begin
    for place, part in enumerate(parts):
        if gone[place] and place > first:
            rest += sentence[at : parts[place - 1].span[1]]
            at = part.span[1]
    rest += sentence[at:]
    return rest[0].upper() + rest[1:]
