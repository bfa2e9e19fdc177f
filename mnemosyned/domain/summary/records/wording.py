"""Words of a line: shortened at words, without hashes, and told apart from prose."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence

from mnemosyned.domain.text.sentences import sentences
from mnemosyned.domain.text.tokenizer import TokenKind, tokens

TERMS_MAX = 24
TERM_CHARS_MAX = 40
TERM_SOURCE_CHARS_MAX = 6_000
LINE_CHARS_MAX = 2_000
"""Longer lines are cut: no rule needs their end, and patterns cost more than their length."""
PROSE_WORDS_MIN = 5
PROSE_STOP_SHARE = 0.25

_HEX = r"(?=[0-9a-f]{0,128}[0-9])(?=[0-9a-f]{0,128}[a-f])[0-9a-f]{7,128}"
_HASH = re.compile(
    r"(?<![\w.+-])(?:"
    r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
    r"|(?:sha\d+[:-]|0x)[0-9a-f]{6,128}"
    rf"|{_HEX}"
    r"|[0-9a-f]{40}|[0-9a-f]{64}"
    r"|(?=[\w+-]{0,256}[0-9])(?=[\w+-]{0,256}(?-i:[A-Z]))(?=[\w+-]{0,256}(?-i:[a-z]))[\w+-]{32,256}={0,2}"
    r")(?![\w-])",
    re.IGNORECASE,
)
_HOLLOW = re.compile(r"\s*(?:\(\s*\)|\[\s*\]|<\s*>|“\s*”|\"\s*\"|'\s*')")
_SPACED_MARK = re.compile(r"\s+(?=[,.;:!?)](?:\s|$))")
_SPACES = re.compile(r"\s+")
_WORD = re.compile(r"[^\W_]+")
_CODE = re.compile(r"[{}<>=|$\\\[\]]|::|->|\(\)|^\s*(?:at|File|from) ")
_ENDS = (".", "!", "?", "…", "。", "！", "？", "”", '."')
_STOP_WORDS = frozenset(
    """
    a an and are as at be been but by can could did do for from had has have he her his how i if in
    is it its just me my no not of on or our she should so some than that the their them then there
    they this to too was we were what when which who will with would you your
    aber als am an auch auf aus bei das dass dem den der des die ein eine einen er es für hat ich im
    ist mit nach nicht noch nur oder sich sie sind um und von vor war was wenn wie wir wird zu zum
    au aux avec ce ces dans de du elle en est et il je la le les mais ne nous on ou par pas pour que
    qui sur un une vous
    con como del el en es la las lo los más no para pero por que se su un una y
    che di e il in la le lo ma non per più si sono un una
    de een en het ik in is maar met niet op te van voor
    em com do da no na os as que não um uma
    """.split()
)
"""Function words of the common European languages: what records have few of."""
_TERM_KINDS = frozenset({TokenKind.WORD, TokenKind.IDENTIFIER, TokenKind.VERSION})


def collapse(text: str) -> str:
    """Return the text on one line."""
    return _SPACES.sub(" ", text).strip()


def without_hashes(text: str) -> str:
    """Return the text on one line without commit ids, digests, UUIDs and addresses."""
    bare = _HASH.sub("", text)
    if bare != text:
        bare = _SPACED_MARK.sub("", _HOLLOW.sub("", bare))
    return collapse(bare)


def shorten(text: str, chars_max: int) -> str:
    """Return the text without hashes, cut after a word with an ellipsis where it is too long."""
    clean = without_hashes(text)
    if len(clean) <= chars_max:
        return clean
    head = clean[:chars_max]
    cut = head.rfind(" ")
    if cut < chars_max // 3:
        cut = chars_max
    return f"{head[:cut].rstrip(' ,;:.–—-(')}…"


def first_sentences(text: str, chars_max: int) -> str:
    """Return as many whole sentences from the beginning as fit; at least part of the first."""
    result = ""
    for sentence, _ in sentences(text[: chars_max * 4]):
        longer = f"{result} {sentence}".strip()
        if result and len(longer) > chars_max:
            return without_hashes(result)
        result = longer
    return shorten(result, chars_max)


def closed(text: str) -> str:
    """Return the text with a full stop, unless it ends a sentence already."""
    return text if text.endswith(_ENDS) else f"{text}."


def full_stop(text: str) -> str:
    """Return the text with a full stop, which an ellipsis at the end of a part swallows."""
    return f"{text}.".replace("….", "…")


def phrase(before: str, text: str, after: str = "") -> str:
    """Return the text between its marks, or nothing where there is no text."""
    return f"{before}{text}{after}" if text else ""


def plural(count: int, noun: str) -> str:
    """Return the noun in the form that a number asks for."""
    return noun if count == 1 else f"{noun}s"


def counted(count: int, noun: str) -> str:
    """Return a number with its noun in the right form."""
    return f"{count} {plural(count, noun)}"


def listed(names: Sequence[str], limit: int) -> str:
    """Return names joined as in a sentence; those past the limit are counted."""
    shown = list(names[:limit])
    left = len(names) - len(shown)
    if left:
        return f"{', '.join(shown)} and {left} more"
    if len(shown) > 1:
        return f"{', '.join(shown[:-1])} and {shown[-1]}"
    return "".join(shown)


def index_terms(source: str, text: str) -> tuple[str, ...]:
    """Return distinct words of the source that the text leaves out, without hashes."""
    clean = without_hashes(source[:TERM_SOURCE_CHARS_MAX])
    if len(clean) <= len(text) and clean in text:
        return ()
    seen = {token.stem for token in tokens(text)}
    terms: list[str] = []
    for token in tokens(clean):
        if token.kind not in _TERM_KINDS or token.stem in seen:
            continue
        seen.add(token.stem)
        if 3 <= len(token.surface) <= TERM_CHARS_MAX:
            terms.append(token.surface)
        if len(terms) == TERMS_MAX:
            break
    return tuple(terms)


def is_prose(line: str) -> bool:
    """Tell whether a line is a sentence a person wrote, not a part of a record."""
    if _CODE.search(line):
        return False
    words = [word.lower() for word in _WORD.findall(line)]
    if len(words) < PROSE_WORDS_MIN:
        return False
    stops = sum(word in _STOP_WORDS for word in words)
    return stops >= PROSE_STOP_SHARE * len(words)


def lines_of(text: str) -> list[str]:
    """Return the lines of a text that are not blank, without trailing spaces."""
    return [
        line[:LINE_CHARS_MAX].rstrip() for line in text.splitlines() if line.strip()
    ]


def below_command(lines: list[str]) -> tuple[str, list[str]]:
    """Return the command that a first line `$ make test` shows, and the lines below it."""
    if not lines[0].startswith("$ "):
        return "", lines
    return lines[0].removeprefix("$ "), lines[1:]


def most_common(names: Iterable[str]) -> list[tuple[str, int]]:
    """Return names with their counts, the most frequent first, equals in order."""
    return Counter(names).most_common()
