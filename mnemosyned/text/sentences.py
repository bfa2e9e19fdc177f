"""Splits a text into sentences; marks that end a sentence, and letters of scripts without spaces."""

from __future__ import annotations

import re
from collections.abc import Iterator

from mnemosyned.text.rule_files import read_rule_file

UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff"
    "\uac00-\ud7af\uf900-\ufaff\uff66-\uff9f\U00020000-\U0003ffff"
)
"""Scripts written without spaces, and Hangul, whose particles cling to the word."""
WORD_START = f"(?<![^\\W{UNSPACED}\u1100-\u11ff])"
"""Matches at the start of a word, also directly after a script without spaces, as in `はnginx`."""
WORD_END = f"(?![^\\W{UNSPACED}\u1100-\u11ff])"
"""Matches at the end of a word, also directly before a script without spaces. Hangul without accents is
decomposed into U+1100 and following."""

SPACED_ENDS = ".!?…"
"""Marks that end a sentence where white space follows."""
UNSPACED_ENDS = "。！？"
"""Marks that end a sentence whatever follows, in scripts without spaces."""
HALF_WIDTH_ENDS = "｡．"
"""Variants of the full stop in text with characters of half or full width."""
CLOSING_QUOTES = "\"'”’»)"
"""Marks that may stand between the end of a sentence and the white space."""
CLOSING_WIDE = "」』”’）】"
"""Closing marks of scripts without spaces."""


def end_words_at_unspaced(pattern: str, *, end: str = WORD_END) -> str:
    r"""Return a pattern changed so that its words may also end before a script without spaces, as in `v2版`.

    In `pattern`, each end of a word (`\b`, `(?!\w)`, or one with more characters as `(?![\w-])`) is replaced by
    the pattern `end`.
    """
    pattern = pattern.replace(r"\b", end).replace(r"(?!\w)", end)
    further = re.compile(r"\(\?!\[\\w([^\]]+)\]\)")
    return further.sub(lambda match: f"(?![{match[1]}]){end}", pattern)


_PATTERNS = read_rule_file(__file__).patterns
QUESTION_MARKS = ("?", "？", "؟")

SENTENCE_CHARS_MAX = 320
_WIDE_ENDS = UNSPACED_ENDS + HALF_WIDTH_ENDS
_BOUNDARY = re.compile(
    rf"[{SPACED_ENDS}{_WIDE_ENDS}](?:(?<![{SPACED_ENDS}][{SPACED_ENDS}])(?<=[{SPACED_ENDS}])"
    rf"[{SPACED_ENDS}]*[{CLOSING_QUOTES}\]*_]*\s+"
    rf"|(?<=[{_WIDE_ENDS}])[{_WIDE_ENDS}]*(?:[{CLOSING_WIDE}]+(?!と(?![りこてにもきん])|って)|(?![{CLOSING_WIDE}]))\s*)"
)
"""The end of a sentence. The pattern begins with a set of characters, so that the search skips all
others, and only with the first of a run, which keeps a line of dots linear."""
_ABBREVIATION = re.compile(
    r"(?:\w|\d{1,3}|(?:\w\.)+\w|mr|mrs|ms|dr|prof|st|jr|sr|vs|etc|approx|no|nr|fig|inc|ltd|co|tel|ref|ca"
    r"|z\.b|usw|bzw|str|hr|fr|inkl|zzgl|evtl|sra|dra|núm|pág|mme)",
    re.IGNORECASE,
)
_SHORT_MONTHS = frozenset(
    "jan feb febr apr jun jul aug sep sept oct okt nov dec dez janv févr avr juil déc abr dic ott"
    " янв фев апр авг сент окт нояб дек".split()
)
_DATE = re.compile(
    r"\b(?:am|de[mnr]|vom|zum|bis|seit|ab) \d{1,2}\. ?\d{1,2}\Z", re.IGNORECASE
)
_DATES = re.compile(r"(?:\.\d|\d\d)\. (?:bis|und|oder|a|e|ou|til|tot|[-–]) \d")
"""A date in figures before its last full stop, as in "am 22.11." and, second, in "21.12. bis 6.1."."""
ABBREVIATION_CHARS_MAX = 12
ABBREVIATION_LETTERS_MAX = 6
"""Letters of the longest abbreviation without a full stop inside."""
_BREAK = re.compile(r"[;,、，；]\s*|\s+|(?<=[}\])])")


def contains_statement(text: str, statement: str) -> bool:
    """Return True if a text contains a statement, in any case and with or without its final mark."""
    words = statement.rstrip(SPACED_ENDS + UNSPACED_ENDS)
    return words.casefold() in text.casefold()


def split_sentences(text: str) -> list[tuple[str, bool]]:
    """Return each sentence of a text, with True if the sentence begins a line.

    White space is collapsed. A line without sentence ends (a log line, a row, a giant JSON value) is one
    sentence; sentences longer than `SENTENCE_CHARS_MAX` are cut, if possible at a comma or space.
    """
    if text.isprintable() and "  " not in text:
        lines = [text.strip()]
    else:
        lines = [" ".join(line.split()) for line in text.splitlines()]
    result: list[tuple[str, bool]] = []
    for line in lines:
        first = True
        for sentence in _split_line(line):
            for piece in _cut_long_sentence(sentence):
                result.append((piece, first))
                first = False
    return result


def _split_line(line: str) -> list[str]:
    """Return the sentences of a line, not cut at abbreviations, numbers with a full stop, or lone dots."""
    result: list[str] = []
    start = 0
    for match in _BOUNDARY.finditer(line):
        mark, end = match.span()
        single_stop = line[mark] == "." and line[mark + 1] not in SPACED_ENDS
        if single_stop and _is_abbreviation(line, start, mark, end):
            continue
        # Dots between spaces stand for words left out: "SELECT … FOR UPDATE".
        if not single_stop and line[mark] in ".…" and line[mark - 1 : mark] == " ":
            continue
        result.append(line[start:end].rstrip())
        start = end
    if start < len(line):
        result.append(line[start:])
    return result


def _is_abbreviation(line: str, start: int, stop: int, end: int) -> bool:
    """Return True if the full stop at `stop` is that of an abbreviation, a list number or a date."""
    before = line[max(start, stop - ABBREVIATION_CHARS_MAX) : stop]
    word = before.rpartition(" ")[2]
    if word.lower() in _SHORT_MONTHS:  # "22. Nov. um neun", "Nov. 22"
        return line[end : end + 1].isdigit() or line[end : end + 1].islower()
    if len(word) > ABBREVIATION_LETTERS_MAX and word.isalpha():
        return False
    if word[-1:].isdigit() and (_DATE.search(before) or _DATES.match(line, stop - 2)):
        return True
    if word.isdigit() and line[end : end + 1].isdigit():  # "2026. 5. 4."
        return True
    return _ABBREVIATION.fullmatch(word.lstrip("(\"'")) is not None


def _cut_long_sentence(sentence: str) -> Iterator[str]:
    """Yield the parts of a sentence, up to `SENTENCE_CHARS_MAX` long, cut at a comma or space if possible."""
    start = 0
    while len(sentence) - start > SENTENCE_CHARS_MAX:
        stop = start + SENTENCE_CHARS_MAX
        cut = stop
        for match in _BREAK.finditer(sentence, start + SENTENCE_CHARS_MAX // 2, stop):
            # Any break is better than none, and one at a mark better than at a space.
            if cut == stop or match[0][:1] in ";,、，；":
                cut = match.end()
        yield sentence[start:cut].rstrip()
        start = cut
    remainder = sentence[start:].strip()
    if remainder:
        yield remainder


def is_question(text: str) -> bool:
    """Return True if a text ends with a question mark, or is worded as a question."""
    end = text.rstrip(" \"'”’)]*_")
    return end.endswith(QUESTION_MARKS) or bool(_PATTERNS["unmarked"].search(end))
