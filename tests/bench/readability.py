"""Readability of summaries by rule: whole lines, dangling heads, lists of values, repetition.

The rules look at the lines alone, at what they were made of, and at lists of their own: they share
nothing with the extractor, which would otherwise judge itself.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

SHRINK_FROM = 600
SHRINK_TO = 0.6
ENDS = (
    ".",
    "!",
    "?",
    "…",
    "。",
    "！",
    "？",
    '."',
    '!"',
    '?"',
    ".”",
    "!”",
    "?”",
    ".)",
    "!)",
    "?)",
)
DANGLING = frozenset(
    """
    he she it they him them this that these those there his her their its
    he's she's it's they're that's there's he'll she'll it'll they'll he'd she'd it'd they'd
    they've that'll so and but or because which
    er sie es dieser diese dieses und aber sondern weil il elle ils elles cela ça ce cette et mais
    él ellos ellas eso esto esta este estos estas y pero porque
    """.split()
)
TIMES = frozenset("week month year morning evening afternoon night weekend".split())
FUNCTION_WORDS = frozenset(
    """
    a an the is are was were be been am has have had do does did will would can could should must
    to of in on at for with from by as and or but not no i we you he she it they my our your his her
    their this that what when where who how if than then there up out about into over after before
    der die das ist sind war hat und in im am zu mit für von auf nicht ein eine wir ich
    el la los las es son de en con para por no un una y que le les est sont du des et une pas
    """.split()
)
DAY_LABEL = re.compile(
    r"(?:(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun) \d{1,2} [A-Z][a-z]+|\d{1,2}(?: [A-Z][a-z]+)?[–-]\d{1,2} [A-Z][a-z]+"
    r"|\d{1,2} [A-Z][a-z]+)(?: \d{4})?: "
)
WEEKDAY = re.compile(r"\b(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day\b")
SPEAKER = re.compile(r"[^\s:.,;!?][^:.,;!?\n]{0,30}: ")
SENTENCE_END = re.compile(r"(?<=[.!?。！？])[\"”’)\]]*\s+")
RESOLVED = re.compile(r" \((?:about )?(?:\d{1,2} )?(?:[A-Z][a-z]+ )?\d{4}\)")


@dataclass
class Readability:
    """Counts over the lines of one level."""

    lines: int = 0
    whole: int = 0
    dangling: int = 0
    bare: int = 0
    chars: int = 0
    repeated: int = 0
    shrinkable: int = 0
    shrunk: int = 0
    faults: list[str] = field(default_factory=list)

    def add(self, text: str, sources: Sequence[str]) -> None:
        """Count a summary made of these texts."""
        below = "\n".join(sources)
        known = _squeezed(below)
        for line in filter(None, map(str.strip, text.split("\n"))):
            self._add_line(line, known, sources)
        self.chars += len(text)
        self.repeated += sum(
            len(sentence)
            for line in text.split("\n")
            for sentence in SENTENCE_END.split(statement(line))
            if _squeezed(sentence) in known
        )
        size = sum(map(len, sources))
        if size > SHRINK_FROM and len(sources) > 1:  # a period of one summary may be it
            self.shrinkable += 1
            self.shrunk += len(text) <= size * SHRINK_TO

    def _add_line(self, line: str, known: str, sources: Sequence[str]) -> None:
        core = statement(line)
        whole, dangling, bare = (
            is_whole(core, known),
            is_dangling(core),
            is_bare_list(core) and not is_whole_line(core, sources),
        )
        self.lines += 1
        self.whole += whole
        self.dangling += dangling
        self.bare += bare
        if not whole or dangling or bare:
            marks = "".join(
                mark
                for mark, wrong in (("W", not whole), ("D", dangling), ("B", bare))
                if wrong
            )
            self.faults.append(f"{marks} {line}")

    def figures(self) -> dict[str, float]:
        """Return the shares."""
        lines, chars = max(1, self.lines), max(1, self.chars)
        return {
            "lines": self.lines,
            "whole": self.whole / lines,
            "dangling": self.dangling / lines,
            "bare_lists": self.bare / lines,
            "repeated": self.repeated / chars,
            "shrunk": self.shrunk / self.shrinkable if self.shrinkable else 1.0,
        }


def statement(line: str) -> str:
    """Return a line without the day and the speaker before it."""
    line = DAY_LABEL.sub("", line, count=1) if DAY_LABEL.match(line) else line
    speaker = SPEAKER.match(line)
    return line[speaker.end() :] if speaker else line


def is_whole(core: str, known: str) -> bool:
    """Whether a line is a line of its source, or each sentence of it is a whole one."""
    if core.endswith("…") and _squeezed(core) not in known:
        return False
    if _is_source_line(core, known):
        return True
    if core.count("(") != core.count(")") or core.count('"') % 2:
        return False
    return all(_is_sentence(part, known) for part in SENTENCE_END.split(core) if part)


def _is_sentence(part: str, known: str) -> bool:
    """Whether it begins and ends as a sentence does, or as a line of its source did."""
    part = statement(part)
    begins = not part[:1].islower()
    enough = len(part.split()) > 1 or not part.isascii()
    if begins and enough and part.endswith(ENDS):
        return True
    return _is_source_line(part, known) or _is_source_line(part.rstrip("."), known)


def _is_source_line(core: str, known: str) -> bool:
    """Whether every part of it is whole in the source, between line or sentence ends."""
    bare = _squeezed(core)
    at = known.find(bare)
    if at < 0:
        return False
    before, after = known[:at].rstrip(" "), known[at + len(bare) :].lstrip(" ")
    starts = not before or before[-1] in '\n.!?:*-#>"”,;)'
    return starts and (not after or after[0] == "\n" or bare.endswith(ENDS))


def is_dangling(core: str) -> bool:
    """Whether the first word stands for something said before."""
    words = re.findall(r"[^\W\d_]+(?:['’][^\W\d_]+)?", core)[:2]
    if not words or not core[0].isalpha():
        return False
    first, second = words[0].lower().replace("’", "'"), words[1:]
    return first in DANGLING and not (second and second[0].lower() in TIMES)


def is_bare_list(core: str) -> bool:
    """Whether it is a list of values or words without a sentence around them."""
    if WEEKDAY.search(core):
        return False  # an appointment
    parts = [part for part in re.split(r"[,;]\s+", core.rstrip(".")) if part]
    if len(parts) < 3:
        return False
    words = core.lower().split()
    function = sum(word.strip(".,;:!?()") in FUNCTION_WORDS for word in words)
    short = all(len(part.split()) <= 3 for part in parts)
    return short and function <= 0.1 * len(words)


def is_whole_line(core: str, sources: Sequence[str]) -> bool:
    """Whether a line is all that a source says, as an entry of a calendar may be."""
    return any(core == statement(source.strip()) for source in sources)


def _squeezed(text: str) -> str:
    lines = (" ".join(line.split()) for line in RESOLVED.sub("", text).split("\n"))
    return "\n".join(lines).lower()


def total(parts: Iterable[Readability]) -> Readability:
    """Return the counts of several levels together."""
    result = Readability()
    for part in parts:
        for name in ("lines", "whole", "dangling", "bare", "chars", "repeated"):
            setattr(result, name, getattr(result, name) + getattr(part, name))
        result.shrinkable += part.shrinkable
        result.shrunk += part.shrunk
        result.faults += part.faults
    return result
