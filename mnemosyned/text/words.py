"""Words that say little: stop words, function words and common words, in all languages."""

from __future__ import annotations

from collections.abc import Collection

from mnemosyned.text.languages.tables import LANGUAGES
from mnemosyned.text.stems import WORD, fold_case, stem
from mnemosyned.text.word_cache import WordCache

FUNCTION_WORDS = frozenset(
    """
    a an the this that these those here there
    i me my you your he him his she her it its we us our they them their
    what which who whom whose when where why how
    am is are was were be been being do does did done have has had having
    can could will would shall should may might must
    of in on at to for from by with about as
    and or but if then than so not no nor
    s t d ll m re ve
    i'm i've i'd i'll you're you've you'd you'll he's he'd he'll she's she'd she'll it's it'd it'll
    we're we've we'd we'll they're they've they'd they'll that's that'd that'll there's there'd
    here's what's what're what'd who's who'd where's where'd when's why's how's how'd let's isn't
    aren't wasn't weren't don't doesn't didn't haven't hasn't hadn't can't couldn't cannot mustn't
    shan't shouldn't won't wouldn't ain't im ive id ill youre youve dont doesnt didnt cant wont
    isnt wasnt thats
    """.split()
)
"""English words that a search ignores, in lower case. They are fewer than the stop words of summaries:
`after`, `first` or `someone` can tell one memory from another (recall@10 .662 with these, .646 with
`STOP_WORDS`). Contractions have the straight apostrophe; `s`, `t`, `ll` … are their ends."""

STOP_WORDS = FUNCTION_WORDS | frozenset(
    """
    mine myself ours ourselves yours yourself yourselves himself hers herself itself theirs themselves
    one ones someone somebody something anyone anybody anything everyone everybody everything
    whether whatever whichever whoever whenever wherever however
    doing ought get gets got getting gotten go goes going gone went let lets
    above across after against along among around before behind below beneath beside besides between
    beyond despite down during except inside into like near off onto out outside over per since
    although though through throughout till toward towards under until unless up upon via while
    within without because both either neither
    again ago all another almost already also always any anyway away back each else enough etc even
    ever every few further just less lot lots many maybe more most much next now often once only other
    others own perhaps pretty quite rather really same several some somehow sometimes soon still such
    therefore thus together too very well yet
    ah aha alright aw aww bye cool gosh haha hello hey hi hmm lol oh ok okay please sure thank thanks
    uh um wow yeah yep yes yup
    """.split()
)
"""English words without content: function words, further pronouns, adverbs and conversational fillers."""

COMMON_WORDS = frozenset(
    """
    able amazing awesome bad best better big bit excited exciting fun glad good great guess happy
    hard help helpful hope important incredible inspiring interesting kind kinda gonna wanna little
    long love lovely nice perfect small special super sweet true welcome wonderful worth wrong
    right old new definitely totally absolutely actually basically certainly especially exactly
    finally hopefully honestly literally probably recently seriously truly usually currently simply
    add agree ask become begin believe bring call came care change check come consider continue
    feel felt find follow gave give given happen hear heard hold keep kept knew know known learn
    leave look looking made make mean meet met move need put remember said saw say see seem seen
    sound share show start stand stay stop take taken talk tell thing think thought told took try
    trying turn wait use used using want watch wish wonder work
    case day end example experience fact feeling idea item kind line list moment name number
    part people person place point problem question reason side sort stuff thing time today
    tomorrow tonight top type way week world year yesterday
    """.split()
)
"""English words with a meaning, yet too common to identify one text among many."""

_QUESTION_STOP_WORDS = tuple(
    frozenset(language.question_stop_words.split())
    for language in LANGUAGES
    if language.question_stop_words
)
FOREIGN_STOP_WORDS = frozenset().union(*_QUESTION_STOP_WORDS)
STOP_WORDS_MIN = 2
"""A single stop word may be a name, or have another meaning in English: `die`, `was`, `an`."""


def foreign_stop_words(words: Collection[str]) -> frozenset[str]:
    """Return the stop words in a question of another language than English; empty for English.

    `words` are the words of the question in lower case.
    """
    if FOREIGN_STOP_WORDS.isdisjoint(words):
        return frozenset()
    matches = (known.intersection(words) for known in _QUESTION_STOP_WORDS)
    best = max(matches, key=len)
    english = FUNCTION_WORDS.intersection(words)
    return best if len(best) >= max(STOP_WORDS_MIN, len(english) + 1) else frozenset()


_STOP_WORDS_FOLDED = STOP_WORDS | frozenset(map(fold_case, FOREIGN_STOP_WORDS))
_VAGUE = _STOP_WORDS_FOLDED | COMMON_WORDS


def is_stop_word(word: str) -> bool:
    """Return whether a folded word (lower case, no accents) is a stop word of any language."""
    return word in _STOP_WORDS_FOLDED


def is_vague(word: str) -> bool:
    """Return whether a folded word (lower case, no accents) is too common to identify a memory.

    Its stem counts as well.
    """
    return not _VAGUE.isdisjoint((word, stem(word)))


def stems_with_content(text: str) -> set[str]:
    """Return the stems of words that may identify a text, at most one per chunk between spaces.

    Splitting at spaces alone takes a third of the time.
    """
    return set(map(_CONTENT_STEMS.__getitem__, text.split())) - {""}


def _content_stem(word: str) -> str:
    """Return the stem of the first part of a word that is not vague, or an empty string.

    A word with a digit is returned as it is.
    """
    if not _DIGITS.isdisjoint(word):
        return word
    for part in WORD.findall(fold_case(word)):
        if not is_vague(part):
            return stem(part)
    return ""


_DIGITS = frozenset("0123456789")
_CONTENT_STEMS = WordCache(_content_stem, entries_max=20_000)
