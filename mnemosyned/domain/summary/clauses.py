"""Shortening of sentences at clause borders: what is left is still a whole statement."""

from __future__ import annotations

import re

from mnemosyned.domain.text.sentence_marks import SPACED_ENDS, UNSPACED_ENDS

HEAD_CHARS_MIN = 25
HEAD_WORDS_MIN = 4

_BORDER = re.compile(
    r"(?:[;；]\s*|\s[–—-]\s"
    r"|,?\s(?=which\b|whose\b|where\b|because\b|although\b|though\b|while\b|whereas\b)"
    r"|,\s(?=(?:after|of|in|by|for|with) which\b|so\b|since\b|when\b|after\b"
    r"|and\s(?:i|we|you|he|she|it|they|the|a|an|my|our|his|her|their|this|that|there|then)\b"
    r"|weil\b|obwohl\b|damit\b|während\b|parce\b|porque\b|perché\b)"
    r"|(?<=[.!?])\s+(?=(?-i:[^\W\d_a-zß-ÿ]))|(?<=[。！？]))",
    re.IGNORECASE,
)
_SUBORDINATE = re.compile(
    r"(?:when|if|while|because|although|though|since|as|after|before|once|unless|until|whenever"
    r"|wenn|weil|obwohl|als|nachdem|bevor|si|quand|cuando|aunque|mientras|quando|se)\b",
    re.IGNORECASE,
)
_UNFINISHED = frozenset(
    """
    and or but after before since until about into over under without through the a an of to
    with for in on at by from as that which who when if while than my our
    your his her their its is are was were be und oder aber der die das ein eine mit von zu
    y o pero el la los las un una de con et ou mais le les une du avec
    """.split()
)
"""Words that no statement ends with."""
_PAIRS = (("(", ")"), ("[", "]"), ("“", "”"), ("«", "»"), ("„", "“"))
_ENDS = (*SPACED_ENDS, *UNSPACED_ENDS)


def shortened(text: str, chars_max: int) -> str:
    """Return the longest beginning of a text that is whole and fits; empty where none does."""
    best = ""
    for border in _BORDER.finditer(text, 0, chars_max + 2):
        head = text[: border.start()].rstrip(" ,;:–—-、，；：")
        if len(head) < chars_max and _is_whole(head):
            best = head
    if not best or best.endswith(_ENDS):
        return best
    return f"{best}."


def _is_whole(head: str) -> bool:
    """Whether the beginning of a sentence says something without what follows."""
    if len(head) < HEAD_CHARS_MIN or head.endswith((":", "…")):
        return False
    if head.isascii() and head.count(" ") < HEAD_WORDS_MIN - 1:
        return False
    if head.rpartition(" ")[2].lower() in _UNFINISHED:
        return False
    last = max(head.rfind(end, 0, len(head) - 1) for end in ". ! ?".split())
    clause = head[last + 1 :].strip()
    if _SUBORDINATE.match(clause) and "," not in clause:
        return False
    return _is_balanced(head)


def _is_balanced(head: str) -> bool:
    """Whether all quotations and brackets are closed."""
    return head.count('"') % 2 == 0 and all(
        head.count(opening) == head.count(closing) for opening, closing in _PAIRS[:4]
    )
