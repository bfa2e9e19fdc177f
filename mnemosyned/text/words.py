"""Words that say little: stop words, function words and common words, in all languages."""

from __future__ import annotations

from collections.abc import Collection

from mnemosyned.text.languages.tables import LANGUAGES
from mnemosyned.text.stems import WORD, fold_case, stem
from mnemosyned.text.word_cache import WordCache

_ARTICLES_AND_PRONOUNS = """
    a an the this that these those i me my mine myself we us our ours ourselves you your yours
    yourself yourselves he him his himself she her hers herself it its itself they them their
    theirs themselves one ones someone somebody something anyone anybody anything everyone
    everybody everything
"""
_QUESTION_WORDS = """
    what which who whom whose when where why how whether whatever whichever whoever whenever
    wherever however
"""
_VERBS = """
    am is are was were be been being do does did doing done have has had having can could may might
    must shall should will would ought get gets got getting gotten go goes going gone went let lets
"""
_CONTRACTIONS = """
    i'm i've i'd i'll you're you've you'd you'll he's he'd he'll she's she'd she'll it's it'd it'll
    we're we've we'd we'll they're they've they'd they'll that's that'd that'll there's there'd
    here's what's what're what'd who's who'd where's where'd when's why's how's how'd let's isn't
    aren't wasn't weren't don't doesn't didn't haven't hasn't hadn't can't couldn't cannot mustn't
    shan't shouldn't won't wouldn't ain't im ive id ill youre youve dont doesnt didnt cant wont
    isnt wasnt thats
"""
_PREPOSITIONS_AND_CONJUNCTIONS = """
    about above across after against along among around as at before behind below beneath beside
    besides between beyond but by despite down during except for from if in inside into like near
    of off on onto or out outside over per since so than though although through throughout till to
    toward towards under until unless up upon via while with within without and because both either
    neither nor
"""
_ADVERBS = """
    again ago all another almost already also always any anyway away back each else enough etc even
    ever every few further here just less lot lots many maybe more most much no not next now often
    once only other others own perhaps pretty quite rather really same several some somehow
    sometimes soon still such then there therefore thus together too very well yet
"""
_CHATTER = """
    ah aha alright aw aww bye cool gosh haha hello hey hi hmm lol oh ok okay please sure thank
    thanks uh um wow yeah yep yes yup s t d ll m re ve
"""

_CASUAL_AND_VAGUE = """
    able amazing awesome bad best better big bit excited exciting fun glad good great guess happy
    hard help helpful hope important incredible inspiring interesting kind kinda gonna wanna little
    long love lovely nice perfect small special super sweet true welcome wonderful worth wrong
    right old new definitely totally absolutely actually basically certainly especially exactly
    finally hopefully honestly literally probably recently seriously truly usually currently simply
"""
_EVERYDAY_VERBS = """
    add agree ask become begin believe bring call came care change check come consider continue
    feel felt find follow gave give given happen hear heard hold keep kept knew know known learn
    leave look looking made make mean meet met move need put remember said saw say see seem seen
    sound share show start stand stay stop take taken talk tell thing think thought told took try
    trying turn wait use used using want watch wish wonder work
"""
_EVERYDAY_NOUNS = """
    case day end example experience fact feeling idea item kind line list moment name number
    part people person place point problem question reason side sort stuff thing time today
    tomorrow tonight top type way week world year yesterday
"""

STOP_WORDS: frozenset[str] = frozenset(
    (
        _ARTICLES_AND_PRONOUNS
        + _QUESTION_WORDS
        + _VERBS
        + _CONTRACTIONS
        + _PREPOSITIONS_AND_CONJUNCTIONS
        + _ADVERBS
        + _CHATTER
    ).split(),
)
"""Lower-case words, contractions with the straight apostrophe; `s`, `t`, `ll` … are their ends."""

COMMON_WORDS: frozenset[str] = frozenset(
    (_CASUAL_AND_VAGUE + _EVERYDAY_VERBS + _EVERYDAY_NOUNS).split()
)
"""Words with a meaning, yet too common to identify one text among many."""

FUNCTION_WORDS: frozenset[str] = frozenset(
    (
        """
        a an the this that these those here there
        i me my you your he him his she her it its we us our they them their
        what which who whom whose when where why how
        am is are was were be been being do does did done have has had having
        can could will would shall should may might must
        of in on at to for from by with about as
        and or but if then than so not no nor
        s t d ll m re ve
        """
        + _CONTRACTIONS
    ).split()
)
"""Words that a search ignores. They are fewer than for summaries: `after`, `first` or `someone` can
tell one memory from another (recall@10 .662 with these, .646 with STOP_WORDS)."""


_QUESTION_STOP_WORDS = tuple(
    frozenset(language.question_stop_words.split())
    for language in LANGUAGES
    if language.question_stop_words
)
FOREIGN_STOP_WORDS = frozenset().union(*_QUESTION_STOP_WORDS)
STOP_WORDS_MIN = 2
"""A single one may be a name, or have another meaning in English: `die`, `was`, `an`."""


def foreign_stop_words(words: Collection[str]) -> frozenset[str]:
    """Return the stop words among lower-case words, in the language of the question."""
    if FOREIGN_STOP_WORDS.isdisjoint(words):
        return frozenset()
    matches = (known.intersection(words) for known in _QUESTION_STOP_WORDS)
    best = max(matches, key=len)
    english = FUNCTION_WORDS.intersection(words)
    return best if len(best) >= max(STOP_WORDS_MIN, len(english) + 1) else frozenset()


_STOPPED = STOP_WORDS | frozenset(map(fold_case, FOREIGN_STOP_WORDS))
_VAGUE = _STOPPED | COMMON_WORDS


def is_stop_word(word: str) -> bool:
    """Tell whether a folded word has no content of its own."""
    return word in _STOPPED


def is_vague(word: str) -> bool:
    """Tell whether a folded word, or its stem, is too common to identify a memory."""
    return not _VAGUE.isdisjoint((word, stem(word)))


def stems_with_content(text: str) -> set[str]:
    """Return the stems of the words of a text that may identify it, one for each compound.

    Words are parted at spaces alone, which takes a third of the time.
    """
    stems = set(map(_CONTENT.__getitem__, text.split()))
    stems.discard(_NOTHING)
    return stems


def _content(word: str) -> str:
    """Return the stem of the first part of a word that is not too common, if there is one."""
    if not _DIGITS.isdisjoint(word):
        return word
    for part in WORD.findall(fold_case(word)):
        if not is_vague(part):
            return stem(part)
    return _NOTHING


_DIGITS = frozenset("0123456789")
_NOTHING = ""
_CONTENT = WordCache(_content, entries_max=20_000)
