"""Claims of a small model about what somebody said, aligned with the sentences they restate.

A claim is accepted only if a sentence of its speaker says the same in the same order: every word
of the claim stands in that sentence, and no word of the sentence that could change the meaning is
left out between them. First persons become the speaker. Any other claim is in doubt, and dropped.
English alone: in other languages nothing aligns, and the extractive summarizer writes the text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from mnemosyned.summary.statements import QUESTION_MARKS
from mnemosyned.text.languages.tables import WEEKDAYS
from mnemosyned.text.sentences import split_sentences
from mnemosyned.text.stems import irregular_forms, light_stem
from mnemosyned.text.words import STOP_WORDS

SPEAKER = "@speaker"
LISTENER = "@listener"
"""Words that stand for the names of the two people of a conversation."""

_WORD = re.compile(r"@\w+(?:'s)?|[^\W_]+(?:['.,:/-][^\W_]+)*|[$€£%&]")
_SPOKEN = {
    "can't": "can not", "cannot": "can not", "won't": "will not", "i'm": "i am",
    "gonna": "going to", "wanna": "want to", "gotta": "have to", "cuz": "because",
    "cause": "because", "&": "and", "let's": "let us",
}  # fmt: skip
_CLITICS = {
    "n't": "not",
    "'re": "are",
    "'ve": "have",
    "'ll": "will",
    "'d": "would",
}
_SAID_OF = frozenset("it that there here what she he who everything everyone".split())
"""Words after which "'s" is a verb."""
_PAUSE = re.compile(r"[,;:!?.()\"“”–—]|\s-\s")

_FREE = frozenset(
    """
    a an the that and some really very so pretty quite just super totally actually also too well
    oh wow yeah yep yes hey thanks definitely honestly even been be being am is are was were has
    have had do does did
    """.split()
)
"""Words that only one side may have: articles, auxiliaries, emphasis."""
_FIRST = {
    "i": "he she they", "we": "he she they", "me": "him her them", "us": "him her them",
    "my": "his her their", "our": "his her their", "mine": "his hers theirs", "ours": "theirs",
    "myself": "himself herself themselves", "ourselves": "themselves",
}  # fmt: skip
_THIRD_OF = {first: frozenset(third.split()) for first, third in _FIRST.items()}
_NAMED = dict.fromkeys(("i", "we", "me", "us"), (SPEAKER,)) | dict.fromkeys(
    ("my", "our"), (f"{SPEAKER}'s",)
)
_ADDRESSED = {"you": LISTENER, "your": f"{LISTENER}'s"}
_THIRD = frozenset().union(*_THIRD_OF.values())
_POINTERS = frozenset("it this these those there here one ones".split()) | _THIRD
"""Pronouns and other words that refer to the text before."""
_PAST = frozenset("was were had did".split())
_PRESENT = frozenset("am is are do does has".split())
_TOGETHER = frozenset(("together", "each", "both"))
"""Words for an action of several people together."""
_FINITE = _PAST | _PRESENT | {"have", "will", "would", "can", "could", "should", "must"}
_CONDITIONS = frozenset(
    """
    if unless until except instead almost nearly wish wished dream dreamed dreamt imagine pretend
    suppose say says said tell tells told ask asks asked think thinks thought believe hear heard
    not never no when whenever once maybe perhaps
    """.split()
)
"""Words before a claim that may negate it or make it conditional."""
_UNDONE_AFTER = frozenset("if unless until except instead".split())
"""Words after a claim that may undo it."""
_LINKS = frozenset("and but so because plus then since while which".split())
"""Words that begin a clause of its own."""
_ELIDED = frozenset("going been had got went can glad hoping excited".split())
"""First words of a sentence whose "I" is left out."""
_BEFORE_VERBS = _THIRD | {SPEAKER, LISTENER, "and", "also", "really", "to", "who"}
_DERIVED = ("er", "ers", "ly")
SUBJECTS = frozenset(("i", "we"))
"""First words of a sentence about its speaker."""
ADDRESS = frozenset("you your yours yourself".split())
"""Words that address the listener; small models copy them."""
_TIMES = frozenset(
    "last this next week month year weekend night morning today yesterday now recently then".split()
).union(WEEKDAYS)
_WORDS_MIN = 3
_CONTENT_MIN = 2


@dataclass(frozen=True, slots=True)
class ClaimWord:
    """A lower-case word of a claim or a sentence, with its position in characters."""

    text: str
    start: int
    end: int
    pauses: bool
    """True after a pause or a link, where a clause may begin."""


@dataclass(frozen=True, slots=True)
class ClaimAlignment:
    """Beginning of a claim that a sentence confirms."""

    stop: int
    """Number of confirmed words of the claim, up to the end of a clause."""
    sentence_end: int = 0
    """End of the restated text of the sentence."""
    time_end: int = 0
    """End of the words of time before the restated text: "Last week"."""


NOT_ALIGNED = ClaimAlignment(0)


def split_words(text: str) -> list[ClaimWord]:
    """Return the words of a text with their positions; contractions are expanded."""
    plain = text.replace("’", "'").replace("‘", "'")
    result: list[ClaimWord] = []
    end = 0
    for match in _WORD.finditer(plain):
        linked = bool(result) and result[-1].text in _LINKS
        paused = _PAUSE.search(plain[end : match.start()]) is not None
        pauses = not result or linked or paused
        for word in _expand_contraction(match[0].lower()):
            result.append(ClaimWord(word, match.start(), match.end(), pauses))
            pauses = False
        end = match.end()
    return result


def _expand_contraction(word: str) -> Sequence[str]:
    """Return the words of a contraction, or the word itself if it is none."""
    if word in _SPOKEN:
        return _SPOKEN[word].split()
    for clitic, meaning in _CLITICS.items():
        if word.endswith(clitic):
            return (word.removesuffix(clitic), meaning)
    head = word.removesuffix("'s")
    if head != word and (head in _SAID_OF or head == SPEAKER):
        return (head, "is")
    return (word,)


def split_sentence_words(sentence: str) -> list[ClaimWord]:
    """Return the words of a sentence; an omitted "I" at its beginning is restored."""
    words = split_words(sentence)
    if words and words[0].text in _ELIDED:
        return [ClaimWord("i", 0, 0, pauses=True), *words]
    return words


def align_claim(
    claim: Sequence[ClaimWord], sentence: Sequence[ClaimWord]
) -> ClaimAlignment:
    """Return the longest beginning of a claim that a sentence confirms, from any of its clauses."""
    best = NOT_ALIGNED
    for start, word in enumerate(sentence):
        before = _list_texts(sentence[:start])
        is_timed = _TIMES.issuperset(before)  # "Last week I went"
        begins_clause = word.pauses or (word.text in SUBJECTS and is_timed)
        if not begins_clause or not _CONDITIONS.isdisjoint(before):
            continue
        found = _align_clause(claim, sentence[start:])
        if found.stop > best.stop:
            time_end = sentence[start - 1].end if start and is_timed else 0
            best = replace(found, time_end=time_end)
    return best


def _align_clause(
    claim: Sequence[ClaimWord], sentence: Sequence[ClaimWord]
) -> ClaimAlignment:
    """Return the longest beginning of a claim that matches a sentence from its first word on."""
    best = NOT_ALIGNED
    at = said_at = 0  # next words to compare
    stop = said_stop = 0  # ends of the last equal words
    content = 0  # equal words that are neither pronouns nor stop words
    while True:
        word = claim[at] if at < len(claim) else None
        if word is None or word.pauses or word.text in _LINKS:
            is_long = content >= _CONTENT_MIN and stop >= _WORDS_MIN
            is_whole = word is None or _is_clause(claim[:stop])
            if (
                is_long
                and is_whole
                and _is_confirmed(claim[:stop], sentence, said_stop)
            ):
                best = ClaimAlignment(stop, sentence[said_stop - 1].end)
        said = sentence[said_at] if said_at < len(sentence) else None
        if word and said and _words_agree(said, word, claim[at - 1] if at else None):
            if _is_unresolved(said, content):
                return best
            at, said_at = at + 1, said_at + 1
            if word.text not in _LINKS:
                stop, said_stop = at, said_at
            content += word.text not in STOP_WORDS and not _is_pronoun(said)
        elif word and word.text in _FREE:
            at += 1
        elif word and said and (said.text in _FREE or said.text in _THIRD_OF):
            said_at += 1
        else:
            return best


def _is_pronoun(said: ClaimWord) -> bool:
    """Tell whether a word is a pronoun or a pointer such as "this"."""
    return said.text in _POINTERS or said.text in _THIRD_OF


def _is_unresolved(said: ClaimWord, content: int) -> bool:
    """Tell whether a pointing word refers to something that the claim has not named yet.

    `content` is the number of content words of the claim up to here.
    """
    least = _CONTENT_MIN if said.text in ("it", "one") else 1
    is_early = content < least or said.text in _THIRD
    return said.text in _POINTERS and is_early


def _is_clause(claim: Sequence[ClaimWord]) -> bool:
    """Tell whether a shortened claim is a clause: it has a subject that acts, or a finite verb."""
    texts = _list_texts(claim)
    acts = texts[:1] in (["he"], ["she"], [SPEAKER])
    return acts or not _FINITE.isdisjoint(texts)


def _is_confirmed(
    claim: Sequence[ClaimWord], sentence: Sequence[ClaimWord], stop: int
) -> bool:
    """Tell whether a claim agrees in time and subject with the sentence's words up to `stop`.

    A condition after `stop` takes the confirmation away.
    """
    claimed, said = _list_texts(claim), _list_texts(sentence[:stop])
    was_past = not _PAST.isdisjoint(said) and _PAST.isdisjoint(claimed)
    if was_past and not _PRESENT.isdisjoint(claimed):
        return False
    is_one_of_several = "we" in said and "they" not in claimed
    if is_one_of_several and not _TOGETHER.isdisjoint(claimed):
        return False
    return _UNDONE_AFTER.isdisjoint(_list_texts(sentence[stop:]))


def _list_texts(words: Sequence[ClaimWord]) -> list[str]:
    """Return the texts of words."""
    return [word.text for word in words]


def _words_agree(said: ClaimWord, claimed: ClaimWord, before: ClaimWord | None) -> bool:
    """Tell whether a word said in the first person agrees with a word of a third-person claim.

    `before` is the word of the claim before `claimed`, or None at its start.
    """
    if said.text in _THIRD_OF:
        return claimed.text in _THIRD_OF[said.text] or claimed.text in _NAMED.get(
            said.text, ()
        )
    if said.text in _ADDRESSED:
        return claimed.text == _ADDRESSED[said.text]
    if said.text == claimed.text:
        return True
    is_verb = before is None or before.text in _BEFORE_VERBS
    return _is_form(said.text, claimed.text, is_verb=is_verb)


@lru_cache(maxsize=1 << 12)
def _is_form(said: str, claimed: str, *, is_verb: bool) -> bool:
    """Tell whether two words are forms of one word with the same meaning: `express`, `expresses`.

    The ending may become a third person's or the past's; nothing else may change.
    """
    if not (said.isalpha() and claimed.isalpha()):
        return False
    if claimed in irregular_forms(said):
        return is_verb and not said.endswith(("ed", "en"))
    if _changes_meaning(said, claimed, is_verb=is_verb):
        return False
    return light_stem(said) == light_stem(claimed)


def _changes_meaning(said: str, claimed: str, *, is_verb: bool) -> bool:
    """Tell whether two words differ in number, derivation or a lost past ending."""
    is_third_person = is_verb and claimed.endswith("s")
    numbered = said.endswith("s") != claimed.endswith("s") and not is_third_person
    derived = said.endswith(_DERIVED) != claimed.endswith(_DERIVED)
    ended = said.endswith("ed") and not claimed.endswith("ed")
    return numbered or derived or ended


_DIALOGUE = re.compile(r"\A\W*[\w .'-]{1,40}:\s")
"""Beginning of a line that continues the transcript."""
_PERSONS = frozenset("i me my mine myself we us our ours you your yours".split())
"""Words of the first and second person, which no statement about people has."""
_REPORTING = r"said|says|mentioned|mentions|added|adds|shared|shares|explained|explains|noted|notes"
_UNCLEAR = frozenset("it this that these those there here".split())
_HEADS = frozenset(("he", "she", SPEAKER))
_HIS = frozenset("he him his himself".split())
_HERS = frozenset("she her hers herself".split())
_LINK = re.compile(r"\A[\s,;–—-]*(?:(?:and|but|so|because|which|plus)\b\s*)?(?=\S)")
_SEGMENT = re.compile(r"(?=[,;:–—]|\s-\s|\s(?:and|but|because|which|plus)\s)")
_INFLECTED = re.compile(rf"\A.{{0,40}}?{SPEAKER} (?!is\b|was\b|has \w+e[dn]\b)\w+s\b")
_VOCATIVE = re.compile(r"[\s,]*[A-Z]\w+[!.]*|\W*")
_OWN_CLAUSE = re.compile(r"(?:I|We|My|Our)\b")
_ENDS = (".", "!", "…")


@dataclass(frozen=True, slots=True)
class Speakers:
    """Names of the speaker and the listener of the sentences shown to a model."""

    speaker: str
    """Name as a summary writes it."""
    listener: str = ""
    """Name of the other person in a talk of two, else empty."""


@dataclass(frozen=True, slots=True)
class SalvagedClaim:
    """A sentence of an answer that a sentence of the source confirms."""

    text: str
    source: int
    """Index of the confirming sentence."""
    written: int
    """Characters of the text that the model wrote."""
    gender: str
    """Pronoun of the speaker in the text: `he`, `she` or none."""
    left: str = ""
    """Clause of the source that the text lacks, to be quoted."""


def salvage_claims(
    answer: str, shown: Sequence[str], speakers: Speakers
) -> list[SalvagedClaim]:
    """Return the parts of an answer that the shown sentences confirm, at most one per sentence.

    The answer is cut where it begins to repeat or to continue the transcript. For each sentence of
    the answer the longest confirmed beginning is kept, and completed by the source's own end.
    """
    said = [split_sentence_words(sentence) for sentence in shown]
    kept: dict[int, SalvagedClaim] = {}
    for sentence in read_sentences_until_repeated(answer):
        claim = _Claim(sentence, speakers)
        if not claim.words or claim.words[0].text in _UNCLEAR:
            continue
        matches = [
            NOT_ALIGNED if is_unsure(shown[at]) else align_claim(claim.words, words)
            for at, words in enumerate(said)
        ]
        best = max(range(len(shown)), key=lambda at: matches[at].stop, default=None)
        if best is None or not matches[best].stop or best in kept:
            continue
        kept[best] = claim.complete(matches[best], best, shown[best])
    return [kept[at] for at in sorted(kept)]


def read_sentences_until_repeated(answer: str) -> Iterator[str]:
    """Yield the sentences of an answer before a repetition or a continued transcript."""
    seen: set[str] = set()
    for sentence, _ in split_sentences(answer.replace('"', "")):
        words = _list_texts(split_words(sentence))
        key = " ".join(words)
        continues_transcript = _DIALOGUE.match(sentence) or not _PERSONS.isdisjoint(
            words
        )
        if key in seen or continues_transcript:
            return
        seen.add(key)
        yield sentence


def is_unsure(sentence: str) -> bool:
    """Tell whether a sentence asks or quotes, and so states nothing about its speaker."""
    asks = sentence.rstrip().endswith(tuple(QUESTION_MARKS))
    return asks or any(mark in sentence for mark in '"“”«»')


class _Claim:
    """A sentence of a model's answer, split into its verb of saying and the words of the claim."""

    def __init__(self, sentence: str, speakers: Speakers) -> None:
        self._speakers = speakers
        who = rf"(?:{re.escape(speakers.speaker)}|[Hh]e|[Ss]he|[Tt]hey)"
        frame = re.match(
            rf"{who} ((?:also |then )?(?:{_REPORTING})(?: that)?) (?=\S)", sentence
        )
        self._verb = frame[1] if frame else "said that"
        text = sentence[frame.end() :] if frame else sentence
        names = ((speakers.speaker, SPEAKER), (speakers.listener, LISTENER))
        for name, mark in names:
            if name:
                text = re.sub(rf"(?<!\w){re.escape(name)}(?!\w)", mark, text)
        self._text = text
        self.words: list[ClaimWord] = split_words(text)

    def complete(
        self, match: ClaimAlignment, source: int, sentence: str
    ) -> SalvagedClaim:
        """Return the confirmed part of the claim, completed by the end of the source's sentence.

        `source` is the index of the sentence. The speaker is named.
        """
        claimed = self._text[: self.words[match.stop - 1].end]
        if self.words[0].text in _HEADS:
            time = f"{sentence[: match.time_end]} " if match.time_end else ""
            verb = claimed[len(self.words[0].text) :]
            said = sentence[: match.sentence_end]
            text = f"{time}{SPEAKER}{_expand_after_name(verb, said)}"
        else:
            first = claimed.partition(" ")[0]
            if first.lower() in STOP_WORDS:
                claimed = claimed[0].lower() + claimed[1:]
            text = f"{SPEAKER} {self._verb} {claimed}"
        inflected = _INFLECTED.match(text) is not None
        text = text.replace(SPEAKER, self._speakers.speaker)
        text = text.replace(LISTENER, self._speakers.listener)
        end, left = split_remainder(sentence[match.sentence_end :], inflected=inflected)
        used = {word.text for word in self.words[: match.stop]}
        gender = "he" * bool(used & _HIS) + "she" * bool(used & _HERS)
        written = len(text) - match.time_end
        return SalvagedClaim(f"{text}{end}", source, written, gender, left)


def split_remainder(text: str, *, inflected: bool = False) -> tuple[str, str]:
    """Return the unconfirmed end of a source in two: text that completes a claim, clause to quote.

    If the claim has an inflected verb, the completing text may have no other verb of the same
    subject. The clause is empty if none stands alone.
    """
    if _VOCATIVE.fullmatch(text):
        return ".", ""
    end = 0
    for segment in _SEGMENT.split(text):
        words = _list_texts(split_words(segment))
        own = [word for word in words if word not in ("and", "but", "so", "plus")]
        has_verb = inflected and own and own[0] not in STOP_WORDS
        if has_verb or not _PERSONS.isdisjoint(words):
            break
        end += len(segment)
    link = _LINK.match(text, end)
    left = text[link.end() :] if link else ""
    quoted = _end_sentence(left) if _OWN_CLAUSE.match(left) else ""
    return _end_sentence(text[:end]), quoted


def _end_sentence(text: str) -> str:
    """Return a text with a full stop, unless it has an end mark."""
    plain = text.rstrip(" ,;:–—-")
    return plain if plain.endswith(_ENDS) else f"{plain}."


_WRITTEN_OUT = {"'d ": " would ", "'ll ": " will ", "'ve ": " has ", "'s ": " is "}
_PERFECT = re.compile(r"\b(?:have|\w+['’]ve)\b")


def _expand_after_name(verb: str, said: str) -> str:
    """Return the words after a speaker's name with their contraction expanded.

    `said` is the source's text, which tells "has" from "is".
    """
    short = verb[: verb.find(" ") + 1].replace("’", "'")
    if short not in _WRITTEN_OUT:
        return verb
    rest = verb[len(short) :]
    is_progressive = rest.partition(" ")[0].endswith("ing")
    is_perfect = short == "'s " and not is_progressive and _PERFECT.search(said)
    return f"{' has ' if is_perfect else _WRITTEN_OUT[short]}{rest}"
