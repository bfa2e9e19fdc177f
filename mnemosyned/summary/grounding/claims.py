"""Claims of a small model about what somebody said, aligned with the sentences they restate.

A claim is accepted only if a sentence of its speaker says the same in the same order: every word
of the claim is in that sentence, and no word of the sentence that could change the meaning is
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
from mnemosyned.text.rule_files import read_rule_file
from mnemosyned.text.sentences import split_sentences
from mnemosyned.text.stems import irregular_forms, light_stem
from mnemosyned.text.terms import STOP_WORDS

SPEAKER = "@speaker"
LISTENER = "@listener"
"""Words that stand for the names of the two people of a conversation."""

_WORDS, _NAMES, _PATTERNS, _FORMS = read_rule_file(__file__, speaker=SPEAKER)

_THIRD_OF = {
    first: frozenset(third.split()) for first, third in _NAMES["first"].items()
}
_NAMED = dict.fromkeys(("i", "we", "me", "us"), (SPEAKER,)) | dict.fromkeys(
    ("my", "our"), (f"{SPEAKER}'s",)
)
_ADDRESSED = {"you": LISTENER, "your": f"{LISTENER}'s"}
_THIRD = frozenset().union(*_THIRD_OF.values())
_POINTERS = frozenset("it this these those there here one ones".split()) | _THIRD
"""Pronouns and other words that refer to the text before."""
_FINITE = _WORDS["past"] | _WORDS["present"] | _WORDS["modals"]
_BEFORE_VERBS = _THIRD | {SPEAKER, LISTENER, "and", "also", "really", "to", "who"}
_DERIVED = ("er", "ers", "ly")
SUBJECTS = frozenset(("i", "we"))
"""First words of a sentence about its speaker."""
ADDRESS = frozenset("you your yours yourself".split())
"""Words that address the listener; small models copy them."""
_TIMES = _WORDS["times"].union(WEEKDAYS)
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
    """Return the words of a text in lower case with their positions; contractions are expanded."""
    plain = text.replace("’", "'").replace("‘", "'")
    result: list[ClaimWord] = []
    end = 0
    for match in _PATTERNS["word"].finditer(plain):
        linked = bool(result) and result[-1].text in _WORDS["links"]
        paused = _PATTERNS["pause"].search(plain[end : match.start()]) is not None
        pauses = not result or linked or paused
        for word in _expand_contraction(match[0].lower()):
            result.append(ClaimWord(word, match.start(), match.end(), pauses))
            pauses = False
        end = match.end()
    return result


def _expand_contraction(word: str) -> Sequence[str]:
    """Return the words of a contraction, such as "do" and "not", or any other word alone."""
    if word in _NAMES["spoken"]:
        return _NAMES["spoken"][word].split()
    for clitic, meaning in _NAMES["clitics"].items():
        if word.endswith(clitic):
            return (word.removesuffix(clitic), meaning)
    head = word.removesuffix("'s")
    if head != word and (head in _WORDS["said_of"] or head == SPEAKER):
        return (head, "is")
    return (word,)


def split_sentence_words(sentence: str) -> list[ClaimWord]:
    """Return the words of a sentence with their positions, restoring an "I" omitted before them."""
    words = split_words(sentence)
    if words and words[0].text in _WORDS["elided"]:
        return [ClaimWord("i", 0, 0, pauses=True), *words]
    return words


def align_claim(
    claim: Sequence[ClaimWord], sentence: Sequence[ClaimWord]
) -> ClaimAlignment:
    """Return the longest beginning of a claim that some clause of a sentence confirms.

    `NOT_ALIGNED` if none does.
    """
    best = NOT_ALIGNED
    for start, word in enumerate(sentence):
        before = _list_texts(sentence[:start])
        is_timed = _TIMES.issuperset(before)  # "Last week I went"
        begins_clause = word.pauses or (word.text in SUBJECTS and is_timed)
        if not begins_clause or not _WORDS["conditions"].isdisjoint(before):
            continue
        found = _align_clause(claim, sentence[start:])
        if found.stop > best.stop:
            time_end = sentence[start - 1].end if start and is_timed else 0
            best = replace(found, time_end=time_end)
    return best


def _align_clause(
    claim: Sequence[ClaimWord], sentence: Sequence[ClaimWord]
) -> ClaimAlignment:
    """Return the longest beginning of a claim that matches a sentence from its first word on.

    `NOT_ALIGNED` if none does.
    """
    best = NOT_ALIGNED
    at = said_at = 0  # next words to compare
    stop = said_stop = 0  # ends of the last equal words
    content = 0  # equal words that are neither pronouns nor stop words
    while True:
        word = claim[at] if at < len(claim) else None
        if word is None or word.pauses or word.text in _WORDS["links"]:
            texts = _list_texts(claim[:stop])
            acts = texts[:1] in (["he"], ["she"], [SPEAKER])
            is_clause = word is None or acts or not _FINITE.isdisjoint(texts)
            is_long = content >= _CONTENT_MIN and stop >= _WORDS_MIN
            if is_long and is_clause and _is_confirmed(texts, sentence, said_stop):
                best = ClaimAlignment(stop, sentence[said_stop - 1].end)
        said = sentence[said_at] if said_at < len(sentence) else None
        if word and said and _words_agree(said, word, claim[at - 1] if at else None):
            if said.text in _POINTERS:  # it must refer to what the claim has named
                least = _CONTENT_MIN if said.text in ("it", "one") else 1
                if content < least or said.text in _THIRD:
                    return best
            at, said_at = at + 1, said_at + 1
            if word.text not in _WORDS["links"]:
                stop, said_stop = at, said_at
            is_pronoun = said.text in _POINTERS or said.text in _THIRD_OF
            content += word.text not in STOP_WORDS and not is_pronoun
        elif word and word.text in _WORDS["free"]:
            at += 1
        elif word and said and (said.text in _WORDS["free"] or said.text in _THIRD_OF):
            said_at += 1
        else:
            return best


def _is_confirmed(
    claimed: Sequence[str], sentence: Sequence[ClaimWord], stop: int
) -> bool:
    """Return True if a claim that matches the sentence up to word `stop` agrees with its meaning.

    Tense and number must agree, and no condition may follow. `claimed` are the claim's words.
    """
    said = _list_texts(sentence[:stop])
    was_past = not _WORDS["past"].isdisjoint(said) and _WORDS["past"].isdisjoint(
        claimed
    )
    if was_past and not _WORDS["present"].isdisjoint(claimed):
        return False
    is_one_of_several = "we" in said and "they" not in claimed
    if is_one_of_several and not _WORDS["together"].isdisjoint(claimed):
        return False
    return _WORDS["undone_after"].isdisjoint(_list_texts(sentence[stop:]))


def _list_texts(words: Sequence[ClaimWord]) -> list[str]:
    """Return the words without their positions."""
    return [word.text for word in words]


def _words_agree(said: ClaimWord, claimed: ClaimWord, before: ClaimWord | None) -> bool:
    """Return True if a word said in the first person agrees with one of a third-person claim.

    `said` is the speaker's word, `claimed` the claim's; `before` is the claim's word before
    `claimed`, or None.
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
    """Return True if two words are forms of one word with the same meaning: `express`, `expresses`.

    For a verb the ending may become the third person's or the past's; nothing else may change.
    """
    if not (said.isalpha() and claimed.isalpha()):
        return False
    if claimed in irregular_forms(said):
        return is_verb and not said.endswith(("ed", "en"))
    is_third_person = is_verb and claimed.endswith("s")
    numbered = said.endswith("s") != claimed.endswith("s") and not is_third_person
    derived = said.endswith(_DERIVED) != claimed.endswith(_DERIVED)
    ended = said.endswith("ed") and not claimed.endswith("ed")
    if numbered or derived or ended:
        return False
    return light_stem(said) == light_stem(claimed)


_REPORTING = r"said|says|mentioned|mentions|added|adds|shared|shares|explained|explains|noted|notes"
_HEADS = frozenset(("he", "she", SPEAKER))
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
    """Return the parts of an answer that the shown sentences confirm, at most one for each.

    The longest confirmed beginning of each sentence in the answer is kept, and completed by the
    end of the sentence shown. The answer is read up to its first repetition.
    """
    said = [split_sentence_words(sentence) for sentence in shown]
    kept: dict[int, SalvagedClaim] = {}
    for sentence in read_sentences_until_repeated(answer):
        claim = _Claim(sentence, speakers)
        if not claim.words or claim.words[0].text in _WORDS["unclear"]:
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
    """Yield the sentences of a model's answer up to the first that repeats one.

    A sentence that continues the transcript ends them too.
    """
    seen: set[str] = set()
    for sentence, _ in split_sentences(answer.replace('"', "")):
        words = _list_texts(split_words(sentence))
        key = " ".join(words)
        continues_transcript = _PATTERNS["dialogue"].match(sentence) or not _WORDS[
            "persons"
        ].isdisjoint(words)
        if key in seen or continues_transcript:
            return
        seen.add(key)
        yield sentence


def is_unsure(sentence: str) -> bool:
    """Return True if a sentence asks or quotes, and so states nothing about the speaker."""
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
        """Return the confirmed part of the claim, naming the speaker, completed by the source.

        `sentence` is the source's sentence, and `source` its index.
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
        inflected = _PATTERNS["inflected"].match(text) is not None
        text = text.replace(SPEAKER, self._speakers.speaker)
        text = text.replace(LISTENER, self._speakers.listener)
        end, left = split_remainder(sentence[match.sentence_end :], inflected=inflected)
        used = {word.text for word in self.words[: match.stop]}
        gender = "he" * bool(used & _WORDS["his"]) + "she" * bool(used & _WORDS["hers"])
        written = len(text) - match.time_end
        return SalvagedClaim(f"{text}{end}", source, written, gender, left)


def split_remainder(text: str, *, inflected: bool = False) -> tuple[str, str]:
    """Split the rest of a sentence after a claim: text to complete it, and a clause to quote.

    If the claim has an `inflected` verb, the completing text has no other verb of the same subject.
    The clause is empty if it does not make sense alone.
    """
    if _PATTERNS["vocative"].fullmatch(text):
        return ".", ""
    end = 0
    for segment in _PATTERNS["segment"].split(text):
        words = _list_texts(split_words(segment))
        own = [word for word in words if word not in ("and", "but", "so", "plus")]
        has_verb = inflected and own and own[0] not in STOP_WORDS
        if has_verb or not _WORDS["persons"].isdisjoint(words):
            break
        end += len(segment)
    link = _PATTERNS["link"].match(text, end)
    left = text[link.end() :] if link else ""
    quoted = _end_sentence(left) if _PATTERNS["own_clause"].match(left) else ""
    return _end_sentence(text[:end]), quoted


def _end_sentence(text: str) -> str:
    """Return a text without marks at its end, and with a full stop unless it has an end mark."""
    plain = text.rstrip(" ,;:–—-")
    return plain if plain.endswith(_ENDS) else f"{plain}."


_WRITTEN_OUT = {"'d ": " would ", "'ll ": " will ", "'ve ": " has ", "'s ": " is "}


def _expand_after_name(verb: str, said: str) -> str:
    """Return the words after a speaker's name with a contraction at their beginning expanded.

    `said` is the text of the source, which tells whether "'s" means "has" or "is".
    """
    short = verb[: verb.find(" ") + 1].replace("’", "'")
    if short not in _WRITTEN_OUT:
        return verb
    rest = verb[len(short) :]
    is_progressive = rest.partition(" ")[0].endswith("ing")
    is_perfect = (
        short == "'s " and not is_progressive and _PATTERNS["perfect"].search(said)
    )
    return f"{' has ' if is_perfect else _WRITTEN_OUT[short]}{rest}"
