"""Salvage of a small model's answers: the sentences that a source says, and nothing else."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from mnemosyned.domain.summary.model.claims import (
    LISTENER,
    NOT_ALIGNED,
    SPEAKER,
    Alignment,
    Word,
    align,
    sentence_words,
    words_of,
)
from mnemosyned.domain.summary.statements import QUESTION_MARKS
from mnemosyned.domain.text.sentences import sentences
from mnemosyned.domain.text.words.stopwords import STOP_WORDS

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
class Kept:
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


def salvage(answer: str, shown: Sequence[str], speakers: Speakers) -> list[Kept]:
    """Return the sentences of an answer that the shown sentences say, each once.

    The answer is cut where it begins to repeat or to continue the transcript. Of a sentence, the
    longest beginning that a source says is kept; the source's own end completes it.
    """
    said = [sentence_words(sentence) for sentence in shown]
    kept: dict[int, Kept] = {}
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

    def kept(self, match: Alignment, source: int, sentence: str) -> Kept:
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
        return Kept(f"{text}{end}", source, len(text) - match.time, gender, left)

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
