"""Summaries with a small model.

An extract retold in the model's words, sentence by sentence, where they are grounded.

The model is asked about one sentence of the extract at a time. Its words take that sentence's
place only if they lose no word by which the summary could be found, so that the summary never
holds less than the extract; all else stays as the extractive summarizer wrote it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import tzinfo

from mnemosyned.errors import SummarizerFailed
from mnemosyned.instants import in_zone
from mnemosyned.memory.engine_ports import TextModel
from mnemosyned.memory.values import MemoryRecord
from mnemosyned.models.prompts import clean_answer, retell_messages, retold_opening
from mnemosyned.summary.grounding.claims import (
    ADDRESS,
    SUBJECTS,
    SalvagedClaim,
    Speakers,
    is_unsure,
    salvage,
    sentence_words,
)
from mnemosyned.summary.statements import leans_back, without_opener
from mnemosyned.text.dates import formatting
from mnemosyned.text.sentences import sentences
from mnemosyned.text.tokens import UNTELLING_KINDS, tokens

WORDS_MIN = 5
"""A shorter sentence is not worth a question."""
SUBJECT_WITHIN = 4
"""Words within which somebody who speaks of themselves says so: "Last week I …"."""
ASKED_MAX = 120
"""Maximum sentences of one group that the model is asked about."""
SPOKEN_ROLES = {"user": "The user", "assistant": "The assistant"}
"""Roles that are not names, as a summary calls them."""


@dataclass(frozen=True, slots=True)
class Passage:
    """A sentence of the extract."""

    text: str
    """As the extract has it, relative dates resolved."""
    said: str
    """As it was said; empty where the extract has shortened it."""
    role: str
    named: bool
    """Whether its line names the role."""
    line: int
    memory: MemoryRecord | None = None
    """The memory that it is from."""


@dataclass(frozen=True, slots=True)
class Retelling:
    """Lines of a summary, and how much of them a model wrote."""

    lines: tuple[str, ...]
    model_share: float
    """Share of the characters, from 0 to 1."""
    sentences: int
    """Sentences in the model's words."""


def passages(
    memories: Sequence[MemoryRecord], lines: Sequence[str], zone: tzinfo
) -> list[Passage]:
    """Take the lines of an extract apart again: who said which sentence when."""
    said = _sentences_said(memories, zone)
    roles = [role for role in dict.fromkeys(m.role for m in memories) if role]
    result: list[Passage] = []
    for number, line in enumerate(lines):
        named = next((role for role in roles if line.startswith(f"{role}: ")), "")
        text = line.removeprefix(f"{named}: ") if named else line
        for sentence, _ in sentences(text):
            memory, plain = said.get(sentence, (None, ""))
            role = memory.role if memory else named
            result.append(Passage(sentence, plain, role, bool(named), number, memory))
    return result


def _sentences_said(
    memories: Sequence[MemoryRecord], zone: tzinfo
) -> dict[str, tuple[MemoryRecord, str]]:
    """Return every sentence as an extract writes it, with its memory and its own words."""
    result: dict[str, tuple[MemoryRecord, str]] = {}
    for memory in memories:
        moment = in_zone(memory.created_at, zone)
        for sentence, _ in sentences(memory.content):
            dated = formatting.annotate_relative_dates(sentence, moment)
            result.setdefault(dated, (memory, sentence))
            result.setdefault(without_opener(dated), (memory, without_opener(sentence)))
    return result


def speakers_of(passage: Passage, memories: Sequence[MemoryRecord]) -> Speakers | None:
    """Return who said a passage, and to whom; None where no name is known."""
    names = [spoken_name(role) for role in dict.fromkeys(m.role for m in memories)]
    speaker = spoken_name(passage.role)
    if not speaker:
        return None
    others = [name for name in names if name != speaker]
    return Speakers(speaker, others[0] if len(others) == 1 else "")


def spoken_name(role: str) -> str:
    """Return a role as a summary names it; empty for one that is not a person's name."""
    if role in SPOKEN_ROLES:
        return SPOKEN_ROLES[role]
    return role if role[:1].isupper() and not role.isupper() else ""


def worth_asking(passage: Passage) -> bool:
    """Whether a passage states something of its speaker, which a model may retell."""
    words = [word.text for word in sentence_words(passage.said)]
    if len(words) < WORDS_MIN or SUBJECTS.isdisjoint(words[:SUBJECT_WITHIN]):
        return False
    return ADDRESS.isdisjoint(words) and not is_unsure(passage.said)


def retell(
    parts: Sequence[Passage],
    kept: Mapping[int, SalvagedClaim],
    *,
    chars_max: int,
    zone: tzinfo,
) -> Retelling:
    """Put the model's sentences in the place of passages that they restate in full."""
    texts = [part.text for part in parts]
    counts = Counter(stem for text in texts for stem in _stems(text))
    placed: dict[int, SalvagedClaim] = {}
    for at, sentence in _agreeing(parts, kept):
        if _is_leant_on(parts, at):
            continue
        dated = _dated(sentence.text, parts[at], zone)
        left = _dated(sentence.left, parts[at], zone)
        stems = _stems(f"{dated} {left}")
        lost = _stems(texts[at]) - stems
        if any(counts[stem] == 1 for stem in lost):
            continue
        counts.subtract(_stems(texts[at]))
        counts.update(stems)
        texts[at], placed[at] = dated, replace(sentence, left=left)
    lines = _render(parts, texts, placed)
    while placed and sum(map(len, lines)) + len(lines) - 1 > chars_max:
        longest = max(placed, key=lambda at: len(texts[at]) - len(parts[at].text))
        texts[longest] = parts[longest].text
        del placed[longest]
        lines = _render(parts, texts, placed)
    return Retelling(tuple(lines), _written_share(lines, placed), len(placed))


def _written_share(lines: Sequence[str], placed: Mapping[int, SalvagedClaim]) -> float:
    """Return the share of the lines that the model wrote."""
    chars = sum(map(len, lines))
    written = sum(sentence.written for sentence in placed.values())
    return min(written / chars, 1.0) if chars else 0.0


def _is_leant_on(parts: Sequence[Passage], at: int) -> bool:
    """Whether the next sentence of the line cannot be understood on a line of its own."""
    follows = at + 1 < len(parts) and parts[at + 1].line == parts[at].line
    return follows and leans_back(parts[at + 1].text)


def _agreeing(
    parts: Sequence[Passage], kept: Mapping[int, SalvagedClaim]
) -> Iterator[tuple[int, SalvagedClaim]]:
    """Yield the sentences of speakers whom the model calls always "he" or always "she"."""
    genders: dict[str, set[str]] = {}
    for at, sentence in kept.items():
        if sentence.gender:
            genders.setdefault(parts[at].role, set()).add(sentence.gender)
    for at, sentence in kept.items():
        if not sentence.gender or len(genders[parts[at].role]) == 1:
            yield at, sentence


def _dated(text: str, part: Passage, zone: tzinfo) -> str:
    """Return a sentence with its relative dates resolved by the time of its memory."""
    if part.memory is None:
        return text
    moment = in_zone(part.memory.created_at, zone)
    return formatting.annotate_relative_dates(text, moment)


def _stems(text: str) -> set[str]:
    """Return the words by which a text can be found."""
    return {token.stem for token in tokens(text) if token.kind not in UNTELLING_KINDS}


def _render(
    parts: Sequence[Passage], texts: Sequence[str], told: Mapping[int, SalvagedClaim]
) -> list[str]:
    """Join the sentences of one line; name the speaker of the rules' where it changes."""
    lines: list[str] = []
    previous: tuple[int, bool] | None = None
    for at, (part, text) in enumerate(zip(parts, texts, strict=True)):
        own = at in told
        if previous == (part.line, own):
            lines[-1] += f" {text}"
        else:
            lines.append(text if own else _quoted(part, text))
        previous = (part.line, own)
        if own and told[at].left:
            lines.append(_quoted(part, told[at].left))
            previous = (part.line, False)
    return lines


def _quoted(part: Passage, text: str) -> str:
    """Return a sentence of the rules, with its speaker where the extract names one."""
    return f"{part.role}: {text}" if part.named else text


SMALL_PARAMETERS = 500_000_000
"""A model with fewer weights is asked in few words, about one sentence at a time. One of 135 million
continues the transcript when given rules; one of 1.1 billion follows some of them."""
ANSWER_TOKENS = 60
"""Maximum tokens of a sentence retold."""
TEMPERATURE = 0.0


def is_small(model: TextModel) -> bool:
    """Whether a model is too small for rules in its prompt. Raises `SummarizerFailed`."""
    return 0 < model.parameters < SMALL_PARAMETERS


class Reteller:
    """Asks a small model to retell an extract, and keeps what the sources say."""

    def __init__(self, model: TextModel) -> None:
        self.asked = 0
        """Sentences that the model was asked to retell."""
        self.kept = 0
        """Sentences that stand in summaries in its words."""
        self._model = model

    def retell(
        self,
        memories: Sequence[MemoryRecord],
        lines: Sequence[str],
        *,
        chars_max: int,
        zone: tzinfo,
    ) -> Retelling:
        """Return the lines with the model's sentences among them.

        Raises `SummarizerFailed` where it was asked and none of its sentences could be kept.
        """
        parts = passages(memories, lines, zone)
        asked = self.asked
        kept: dict[int, SalvagedClaim] = {}
        for at, part in enumerate(parts):
            speakers = speakers_of(part, memories)
            if speakers is None or not worth_asking(part):
                continue
            if self.asked - asked >= ASKED_MAX:
                break
            kept.update((at, sentence) for sentence in self._ask(part, speakers))
        result = retell(parts, kept, chars_max=chars_max, zone=zone)
        self.kept += result.sentences
        if self.asked > asked and not result.sentences:
            raise SummarizerFailed(
                f"No sentence of {self._model.name} could be kept: none says what its source says."
            )
        return result

    def _ask(self, part: Passage, speakers: Speakers) -> list[SalvagedClaim]:
        """Return the model's sentence for a passage, if its source says it."""
        self.asked += 1
        answer = self._model.complete(
            retell_messages(speakers.speaker, part.said),
            max_tokens=ANSWER_TOKENS,
            temperature=TEMPERATURE,
        )
        text = f"{retold_opening(speakers.speaker)} {clean_answer(answer)}"
        return salvage(text, [part.said], speakers)
