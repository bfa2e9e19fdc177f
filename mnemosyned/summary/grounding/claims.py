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
from mnemosyned.text.sentences import sentences
from mnemosyned.text.stems import light_stem, other_forms
from mnemosyned.text.words import STOP_WORDS

SPEAKER = "@speaker"
LISTENER = "@listener"
"""Words for the two people of a conversation in a claim, whatever their names."""

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
"""Words that either side may have alone: articles, auxiliaries, emphasis."""
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
"""Words that stand for something said before."""
_PAST = frozenset("was were had did".split())
_PRESENT = frozenset("am is are do does has".split())
_TOGETHER = frozenset(("together", "each", "both"))
"""Words that say of several what one of them alone does not do."""
_FINITE = _PAST | _PRESENT | {"have", "will", "would", "can", "could", "should", "must"}
_CONDITIONS = frozenset(
    """
    if unless until except instead almost nearly wish wished dream dreamed dreamt imagine pretend
    suppose say says said tell tells told ask asks asked think thinks thought believe hear heard
    not never no when whenever once maybe perhaps
    """.split()
)
"""Words before a claim, or (some) after it, that may undo what it says."""
_UNDONE_AFTER = frozenset("if unless until except instead".split())
_LINKS = frozenset("and but so because plus then since while which".split())
"""Words that begin a clause of its own."""
_ELIDED = frozenset("going been had got went can glad hoping excited".split())
"""First words of a sentence whose "I" is left out."""
_BEFORE_VERBS = _THIRD | {SPEAKER, LISTENER, "and", "also", "really", "to", "who"}
_DERIVED = ("er", "ers", "ly")
SUBJECTS = frozenset(("i", "we"))
"""Words with which a sentence about its speaker begins."""
ADDRESS = frozenset("you your yours yourself".split())
"""Words in which somebody speaks to another; small models copy them."""
_TIMES = frozenset(
    "last this next week month year weekend night morning today yesterday now recently then".split()
).union(WEEKDAYS)
_WORDS_MIN = 3
_CONTENT_MIN = 2


@dataclass(frozen=True, slots=True)
class Word:
    """A word of a claim or a sentence, in lower case."""

    text: str
    start: int
    end: int
    pauses: bool
    """Whether a pause or a link precedes it, so that a clause may begin."""

    @property
    def free(self) -> bool:
        """Whether it may stand on one side alone."""
        return self.text in _FREE


@dataclass(frozen=True, slots=True)
class Alignment:
    """Part of a claim that a sentence says."""

    stop: int
    """Number of the claim's words that are grounded, up to the end of a clause."""
    content: int
    """How many of them are neither free nor pronouns."""
    said: int = 0
    """End of the sentence's text that the claim restates."""
    time: int = 0
    """End of the words of time that stand before it: "Last week"."""


NOT_ALIGNED = Alignment(0, 0)


def words_of(text: str) -> list[Word]:
    """Return the words of a text, contractions written out; each with its place in the text."""
    plain = text.replace("’", "'").replace("‘", "'")
    result: list[Word] = []
    end = 0
    for match in _WORD.finditer(plain):
        linked = bool(result) and result[-1].text in _LINKS
        paused = _PAUSE.search(plain[end : match.start()]) is not None
        pauses = not result or linked or paused
        for word in _written_out(match[0].lower()):
            result.append(Word(word, match.start(), match.end(), pauses))
            pauses = False
        end = match.end()
    return result


def _written_out(word: str) -> Sequence[str]:
    """Return the words of a contraction; any other word alone."""
    if word in _SPOKEN:
        return _SPOKEN[word].split()
    for clitic, meaning in _CLITICS.items():
        if word.endswith(clitic):
            return (word.removesuffix(clitic), meaning)
    head = word.removesuffix("'s")
    if head != word and (head in _SAID_OF or head == SPEAKER):
        return (head, "is")
    return (word,)


def sentence_words(sentence: str) -> list[Word]:
    """Return the words of a sentence somebody said, an elided "I" restored."""
    words = words_of(sentence)
    if words and words[0].text in _ELIDED:
        return [Word("i", 0, 0, pauses=True), *words]
    return words


def align(claim: Sequence[Word], sentence: Sequence[Word]) -> Alignment:
    """Return the longest beginning of a claim that the sentence says."""
    best = NOT_ALIGNED
    for start in range(len(sentence)):
        before = sentence[:start]
        if _begins_clause(sentence, start) and _CONDITIONS.isdisjoint(_texts(before)):
            found = _walk(claim, sentence[start:])
            if before and _TIMES.issuperset(_texts(before)):
                found = replace(found, time=before[-1].end)
            best = max(best, found, key=_stop)
    return best


def _begins_clause(sentence: Sequence[Word], start: int) -> bool:
    """Whether a clause begins here: after a pause, a link or a time, as "Last week I went"."""
    if sentence[start].pauses:
        return True
    return sentence[start].text in SUBJECTS and _TIMES.issuperset(
        _texts(sentence[:start])
    )


def _stop(alignment: Alignment) -> int:
    return alignment.stop


def _walk(claim: Sequence[Word], sentence: Sequence[Word]) -> Alignment:
    """Align from the beginning of a clause of the sentence."""
    steps = _Steps(claim, sentence)
    while steps.advance():
        pass
    return steps.result()


class _Steps:
    """Positions in a claim and a sentence that are read side by side."""

    def __init__(self, claim: Sequence[Word], sentence: Sequence[Word]) -> None:
        self._claim = claim
        self._sentence = sentence
        self._at = self._said = 0
        self._last = 0
        """Words of the sentence up to the last one that matched."""
        self._matched = 0
        """Words of the claim up to the last one that matched."""
        self._content = 0
        self._best = NOT_ALIGNED

    def advance(self) -> bool:
        """Take one step; return False at the end."""
        if self._at >= len(self._claim):
            self._note(self._at)
            return False
        word = self._claim[self._at]
        if word.pauses or word.text in _LINKS:
            self._note(self._at)
        said = self._sentence[self._said] if self._said < len(self._sentence) else None
        before = self._claim[self._at - 1] if self._at else None
        if said and _says(said, word, before):
            return self._match(word, said)
        if word.free:
            self._at += 1
        elif said and _may_be_skipped(said):
            self._said += 1
        else:
            return False
        return True

    def _match(self, word: Word, said: Word) -> bool:
        pointing = said.text in _POINTERS
        least = _CONTENT_MIN if said.text in ("it", "one") else 1
        if pointing and (self._content < least or said.text in _THIRD):
            return False  # it stands for something the claim does not name
        self._at += 1
        self._said += 1
        if word.text not in _LINKS:
            self._last, self._matched = self._said, self._at
        is_pronoun = pointing or said.text in _THIRD_OF
        self._content += not (is_pronoun or word.text in STOP_WORDS)
        return True

    def _note(self, stop: int) -> None:
        """Keep this end of a clause as the best so far, if what follows leaves it true."""
        whole = stop == len(self._claim)
        stop = self._matched
        if not whole and not self._is_clause(stop):
            return
        claimed = set(_texts(self._claim[:stop]))
        said = set(_texts(self._sentence[: self._last]))
        later = _texts(self._sentence[self._last :])
        if _shifts_time(said, claimed) or _leaves_out_others(said, claimed):
            return
        if self._content >= _CONTENT_MIN and _UNDONE_AFTER.isdisjoint(later):
            self._best = Alignment(
                stop, self._content, self._sentence[self._last - 1].end
            )

    def _is_clause(self, stop: int) -> bool:
        """Whether a claim cut short is still a clause: its subject acts, or something "is"."""
        texts = _texts(self._claim[:stop])
        return texts[:1] in (["he"], ["she"], [SPEAKER]) or not _FINITE.isdisjoint(
            texts
        )

    def result(self) -> Alignment:
        """Return the best end found."""
        return self._best if self._best.stop >= _WORDS_MIN else NOT_ALIGNED


def _shifts_time(said: set[str], claimed: set[str]) -> bool:
    """Whether a claim has in the present what was said of the past."""
    was_past = not _PAST.isdisjoint(said) and _PAST.isdisjoint(claimed)
    return was_past and not _PRESENT.isdisjoint(claimed)


def _leaves_out_others(said: set[str], claimed: set[str]) -> bool:
    """Whether a claim is of a speaker alone who said "we" of something done together."""
    is_alone = "we" in said and "they" not in claimed
    return is_alone and not _TOGETHER.isdisjoint(claimed)


def _texts(words: Sequence[Word]) -> list[str]:
    return [word.text for word in words]


def _may_be_skipped(said: Word) -> bool:
    return said.free or said.text in _THIRD_OF


def _says(said: Word, claimed: Word, before: Word | None) -> bool:
    """Whether a word of a sentence is that of a claim, seen from outside."""
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
    """Whether a word is another's form with the same meaning: `expresses` for `express`.

    An ending may become that of a third person, or of the past; nothing else may change.
    """
    if not (said.isalpha() and claimed.isalpha()):
        return False
    if claimed in other_forms(said):
        return is_verb and not said.endswith(("ed", "en"))
    if _changes_meaning(said, claimed, is_verb=is_verb):
        return False
    return light_stem(said) == light_stem(claimed)


def _changes_meaning(said: str, claimed: str, *, is_verb: bool) -> bool:
    """Whether two words differ in an ending that is not that of a third person or the past."""
    is_third_person = is_verb and claimed.endswith("s")
    numbered = said.endswith("s") != claimed.endswith("s") and not is_third_person
    derived = said.endswith(_DERIVED) != claimed.endswith(_DERIVED)
    ended = said.endswith("ed") and not claimed.endswith("ed")
    return numbered or derived or ended


_DIALOGUE = re.compile(r"\A\W*[\w .'-]{1,40}:\s")
"""Beginning of a line that continues the transcript."""
_PERSONS = frozenset("i me my mine myself we us our ours you your yours".split())
"""Words with which a text speaks as one of the people, and not of them."""
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
    """Who said the sentences that a model was shown, and to whom."""

    speaker: str
    """Name as a summary writes it."""
    listener: str = ""
    """Name of the other person of a talk of two; empty where there are others."""


@dataclass(frozen=True, slots=True)
class SalvagedClaims:
    """A sentence of an answer that a sentence of the source says."""

    text: str
    source: int
    """Number of that sentence among those shown."""
    written: int
    """Characters of the text that the model wrote."""
    gender: str
    """The pronoun it uses for the speaker: `he`, `she` or none."""
    left: str = ""
    """Clause of the source that it leaves out, for the rules to quote."""


def salvage(
    answer: str, shown: Sequence[str], speakers: Speakers
) -> list[SalvagedClaims]:
    """Return the sentences of an answer that the shown sentences say, each once.

    The answer is cut where it begins to repeat or to continue the transcript. Of a sentence, the
    longest beginning that a source says is kept; the source's own end completes it.
    """
    said = [sentence_words(sentence) for sentence in shown]
    kept: dict[int, SalvagedClaims] = {}
    for sentence in sentences_until_repeated(answer):
        claim = _Claim(sentence, speakers)
        if claim.is_unclear:
            continue
        matches = [
            NOT_ALIGNED if sentence_is_unsure(shown[at]) else align(claim.words, words)
            for at, words in enumerate(said)
        ]
        best = max(range(len(shown)), key=lambda at: matches[at].stop, default=None)
        if best is None or not matches[best].stop or best in kept:
            continue
        kept[best] = claim.kept(matches[best], best, shown[best])
    return [kept[at] for at in sorted(kept)]


def sentences_until_repeated(answer: str) -> Iterator[str]:
    """Yield the sentences of an answer up to one that repeats or continues the transcript."""
    seen: set[str] = set()
    for sentence, _ in sentences(answer.replace('"', "")):
        key = " ".join(word.text for word in words_of(sentence))
        if key in seen or continues_transcript(sentence):
            return
        seen.add(key)
        yield sentence


def continues_transcript(sentence: str) -> bool:
    """Whether a sentence is a line of dialogue and not a statement about it."""
    return bool(_DIALOGUE.match(sentence)) or not _PERSONS.isdisjoint(
        word.text for word in words_of(sentence)
    )


def sentence_is_unsure(sentence: str) -> bool:
    """Whether a source asks or quotes, and so states nothing of its speaker."""
    return sentence.rstrip().endswith(tuple(QUESTION_MARKS)) or any(
        mark in sentence for mark in '"“”«»'
    )


class _Claim:
    """A sentence of an answer, taken apart: who, the verb of saying, and what is claimed."""

    def __init__(self, sentence: str, speakers: Speakers) -> None:
        self._speakers = speakers
        who = rf"(?:{re.escape(speakers.speaker)}|[Hh]e|[Ss]he|[Tt]hey)"
        frame = re.match(
            rf"{who} ((?:also |then )?(?:{_REPORTING})(?: that)?) (?=\S)", sentence
        )
        self._verb = frame[1] if frame else "said that"
        self._text = _masked(sentence[frame.end() :] if frame else sentence, speakers)
        self.words: list[Word] = words_of(self._text)

    @property
    def is_unclear(self) -> bool:
        """Whether it begins with a word that stands for something said before."""
        return not self.words or self.words[0].text in _UNCLEAR

    def kept(self, match: Alignment, source: int, sentence: str) -> SalvagedClaims:
        """Return the claim as a sentence that names its speaker."""
        claimed = self._text[: self.words[match.stop - 1].end]
        if self.words[0].text in _HEADS:
            time = f"{sentence[: match.time]} " if match.time else ""
            verb = claimed[len(self.words[0].text) :]
            text = f"{time}{SPEAKER}{_after_name(verb, sentence[: match.said])}"
        else:
            text = f"{SPEAKER} {self._verb} {_lowered(claimed)}"
        inflected = _INFLECTED.match(text) is not None
        text = _unmasked(text, self._speakers)
        end, left = split_remainder(sentence[match.said :], inflected=inflected)
        gender = self._gender(match.stop)
        return SalvagedClaims(
            f"{text}{end}", source, len(text) - match.time, gender, left
        )

    def _gender(self, stop: int) -> str:
        used = {word.text for word in self.words[:stop]}
        return "he" * bool(used & _HIS) + "she" * bool(used & _HERS)


def split_remainder(text: str, *, inflected: bool = False) -> tuple[str, str]:
    """Return what of a source's end completes a claim as it stands, and what is left to quote.

    `inflected` says that the claim's verb was: another verb of the same subject would have to be.
    """
    if _VOCATIVE.fullmatch(text):
        return ".", ""
    end = 0
    for segment in _SEGMENT.split(text):
        words = [word.text for word in words_of(segment)]
        continues = not inflected or _stands_alone(words)
        if not (continues and _PERSONS.isdisjoint(words)):
            break
        end += len(segment)
    link = _LINK.match(text, end)
    left = text[link.end() :] if link else ""
    return _ended(text[:end]), _ended(left) if _OWN_CLAUSE.match(left) else ""


def _stands_alone(words: Sequence[str]) -> bool:
    """Whether a segment has its own subject or none: no verb that the speaker's name governs."""
    own = [word for word in words if word not in ("and", "but", "so", "plus")]
    return not own or own[0] in STOP_WORDS


def _ended(text: str) -> str:
    """Return a text with a full stop, if nothing else ends it."""
    plain = text.rstrip(" ,;:–—-")
    return plain if plain.endswith(_ENDS) else f"{plain}."


def _masked(text: str, speakers: Speakers) -> str:
    """Replace the names of the two people by marks."""
    for name, mark in ((speakers.speaker, SPEAKER), (speakers.listener, LISTENER)):
        if name:
            text = re.sub(rf"(?<!\w){re.escape(name)}(?!\w)", mark, text)
    return text


def _unmasked(text: str, speakers: Speakers) -> str:
    return text.replace(SPEAKER, speakers.speaker).replace(LISTENER, speakers.listener)


def _lowered(text: str) -> str:
    """Begin with a small letter, where the first word is no name."""
    first = text.partition(" ")[0]
    return text[0].lower() + text[1:] if first.lower() in STOP_WORDS else text


_WRITTEN_OUT = {"'d ": " would ", "'ll ": " will ", "'ve ": " has ", "'s ": " is "}
_PERFECT = re.compile(r"\b(?:have|\w+['’]ve)\b")


def _after_name(verb: str, said: str) -> str:
    """Write out a contraction that stands badly after a name; `said` is what it restates."""
    short = verb[: verb.find(" ") + 1].replace("’", "'")
    if short not in _WRITTEN_OUT:
        return verb
    rest = verb[len(short) :]
    lasting = rest.partition(" ")[0].endswith("ing")
    is_perfect = short == "'s " and not lasting and _PERFECT.search(said)
    return f"{' has ' if is_perfect else _WRITTEN_OUT[short]}{rest}"
