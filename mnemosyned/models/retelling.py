"""Summaries with a small model: an extract retold sentence by sentence where it is grounded.

The model is asked about one sentence of the extract at a time. Its words take that sentence's
place only if they lose no word by which the summary could be found, so that the summary never
contains less than the extract; all else stays as the extractive summarizer wrote it.
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
from mnemosyned.models.prompts import (
    begin_retelling,
    clean_answer,
    write_retelling_request,
)
from mnemosyned.summary.grounding.check import find_content_stems
from mnemosyned.summary.grounding.claims import (
    ADDRESS,
    SUBJECTS,
    SalvagedClaim,
    Speakers,
    is_unsure,
    salvage_claims,
    split_sentence_words,
)
from mnemosyned.summary.statements import leans_back, remove_opener
from mnemosyned.text.dates import formatting
from mnemosyned.text.sentences import split_sentences

WORDS_MIN = 5
"""A shorter sentence is not worth a question."""
SUBJECT_WITHIN = 4
"""Number of first words in which a statement about its speaker has "I": "Last week I …"."""
ASKED_MAX = 120
"""Maximum number of questions to the model about one group."""
SPOKEN_ROLES = {"user": "The user", "assistant": "The assistant"}
"""Names in a summary for roles that are no names."""


@dataclass(frozen=True, slots=True)
class Passage:
    """A sentence of an extract, with its memory and speaker."""

    text: str
    """Text in the extract, with resolved relative dates."""
    original: str
    """Text in the memory; empty if the extract has shortened it."""
    role: str
    named: bool
    """True if its line names the role."""
    line: int
    memory: MemoryRecord | None = None


@dataclass(frozen=True, slots=True)
class Retelling:
    """Lines of a summary in which a small model has retold sentences."""

    lines: tuple[str, ...]
    model_share: float
    """Share of the characters, from 0 to 1."""
    sentences: int
    """Sentences in the model's words."""


def split_passages(
    memories: Sequence[MemoryRecord], lines: Sequence[str], zone: tzinfo
) -> list[Passage]:
    """Return the sentences of an extract's lines, each with its memory, speaker and line number.

    `zone` is the time zone in which relative dates were resolved.
    """
    originals: dict[str, tuple[MemoryRecord, str]] = {}
    for memory in memories:
        moment = in_zone(memory.created_at, zone)
        for sentence, _ in split_sentences(memory.content):
            dated = formatting.annotate_relative_dates(sentence, moment)
            short = remove_opener(dated)
            originals.setdefault(dated, (memory, sentence))
            originals.setdefault(short, (memory, remove_opener(sentence)))
    roles = [role for role in dict.fromkeys(m.role for m in memories) if role]
    result: list[Passage] = []
    for number, line in enumerate(lines):
        named = next((role for role in roles if line.startswith(f"{role}: ")), "")
        text = line.removeprefix(f"{named}: ") if named else line
        for sentence, _ in split_sentences(text):
            source, original = originals.get(sentence, (None, ""))
            role = source.role if source else named
            result.append(
                Passage(sentence, original, role, bool(named), number, source)
            )
    return result


def find_speakers(
    passage: Passage, memories: Sequence[MemoryRecord]
) -> Speakers | None:
    """Return the names of a passage's speaker and listener; None if the speaker has no name.

    The listener is empty unless exactly one other person speaks in the memories.
    """
    names = [find_spoken_name(role) for role in dict.fromkeys(m.role for m in memories)]
    speaker = find_spoken_name(passage.role)
    if not speaker:
        return None
    others = [name for name in names if name != speaker]
    return Speakers(speaker, others[0] if len(others) == 1 else "")


def find_spoken_name(role: str) -> str:
    """Return the name that a summary uses for a role; empty if the role is no name.

    Roles in `SPOKEN_ROLES` have their name there. Any other role is a name itself if it begins with
    a capital and is not all capitals.
    """
    if role in SPOKEN_ROLES:
        return SPOKEN_ROLES[role]
    return role if role[:1].isupper() and not role.isupper() else ""


def is_worth_asking(passage: Passage) -> bool:
    """Return True if a model should retell a passage: a speaker's statement about themselves."""
    words = [word.text for word in split_sentence_words(passage.original)]
    if len(words) < WORDS_MIN or SUBJECTS.isdisjoint(words[:SUBJECT_WITHIN]):
        return False
    return ADDRESS.isdisjoint(words) and not is_unsure(passage.original)


def retell(
    parts: Sequence[Passage],
    kept: Mapping[int, SalvagedClaim],
    *,
    chars_max: int,
    zone: tzinfo,
) -> Retelling:
    """Return an extract in which claims replace passages, unless words to search for would be lost.

    `kept` contains claims by the index of the passage they restate. If the lines have more than
    `chars_max` characters, the longest replacements are undone; `zone` resolves relative dates.
    """
    texts = [part.text for part in parts]
    counts = Counter(stem for text in texts for stem in find_content_stems([text]))
    placed: dict[int, SalvagedClaim] = {}
    for at, sentence in _select_claims_of_one_gender(parts, kept):
        follows = at + 1 < len(parts) and parts[at + 1].line == parts[at].line
        if follows and leans_back(parts[at + 1].text):
            continue  # the next sentence makes no sense on a line of its own
        dated = _resolve_dates(sentence.text, parts[at], zone)
        left = _resolve_dates(sentence.left, parts[at], zone)
        stems = find_content_stems([dated, left])
        lost = find_content_stems([texts[at]]) - stems
        if any(counts[stem] == 1 for stem in lost):
            continue
        counts.subtract(find_content_stems([texts[at]]))
        counts.update(stems)
        texts[at], placed[at] = dated, replace(sentence, left=left)
    lines = _render_lines(parts, texts, placed)
    while placed and sum(map(len, lines)) + len(lines) - 1 > chars_max:
        longest = max(placed, key=lambda at: len(texts[at]) - len(parts[at].text))
        texts[longest] = parts[longest].text
        del placed[longest]
        lines = _render_lines(parts, texts, placed)
    chars = sum(map(len, lines))
    written = sum(sentence.written for sentence in placed.values())
    share = min(written / chars, 1.0) if chars else 0.0
    return Retelling(tuple(lines), share, len(placed))


def _select_claims_of_one_gender(
    parts: Sequence[Passage], kept: Mapping[int, SalvagedClaim]
) -> Iterator[tuple[int, SalvagedClaim]]:
    """Yield each passage index with its claim, but for claims with contradicting pronouns.

    If the claims call a speaker both "he" and "she", those with either pronoun are left out.
    """
    genders: dict[str, set[str]] = {}
    for at, sentence in kept.items():
        if sentence.gender:
            genders.setdefault(parts[at].role, set()).add(sentence.gender)
    for at, sentence in kept.items():
        if not sentence.gender or len(genders[parts[at].role]) == 1:
            yield at, sentence


def _resolve_dates(text: str, part: Passage, zone: tzinfo) -> str:
    """Return the text with relative dates resolved by the time of the passage's memory."""
    if part.memory is None:
        return text
    moment = in_zone(part.memory.created_at, zone)
    return formatting.annotate_relative_dates(text, moment)


def _render_lines(
    parts: Sequence[Passage], texts: Sequence[str], placed: Mapping[int, SalvagedClaim]
) -> list[str]:
    """Return the extract's lines, with each claim on a line of its own.

    `texts` has the text for each passage, `placed` the claims by passage index. Other sentences of
    a line stay together.
    """
    lines: list[str] = []
    previous: tuple[int, bool] | None = None
    for at, (part, text) in enumerate(zip(parts, texts, strict=True)):
        own = at in placed
        if previous == (part.line, own):
            lines[-1] += f" {text}"
        else:
            lines.append(text if own else _name_speaker(part, text))
        previous = (part.line, own)
        if own and placed[at].left:
            lines.append(_name_speaker(part, placed[at].left))
            previous = (part.line, False)
    return lines


def _name_speaker(part: Passage, text: str) -> str:
    """Return the text with "speaker: " before it, if the passage's line in the extract has that."""
    return f"{part.role}: {text}" if part.named else text


SMALL_PARAMETERS = 500_000_000
"""A model with fewer weights is asked in few words, about one sentence at a time. One of 135 million
continues the transcript when given rules; one of 1.1 billion follows some of them."""
ANSWER_TOKENS = 60
"""Maximum tokens of a retold sentence."""
TEMPERATURE = 0.0


def is_small(model: TextModel) -> bool:
    """Return True if a model has under 500 million weights, too few to follow rules in a prompt.

    An unknown number counts as large. Raises `SummarizerFailed`.
    """
    return 0 < model.parameters < SMALL_PARAMETERS


class Reteller:
    """Asker of a small model to retell an extract sentence by sentence."""

    def __init__(self, model: TextModel) -> None:
        self.asked = 0
        """Number of questions to the model."""
        self.kept = 0
        """Number of sentences in the model's words in summaries."""
        self._model = model

    def retell(
        self,
        memories: Sequence[MemoryRecord],
        lines: Sequence[str],
        *,
        chars_max: int,
        zone: tzinfo,
    ) -> Retelling:
        """Return the extract's lines, retold by the model where its sentences are confirmed.

        Raises `SummarizerFailed` if the model was asked and none of its sentences could be used.
        """
        parts = split_passages(memories, lines, zone)
        asked = self.asked
        kept: dict[int, SalvagedClaim] = {}
        for at, part in enumerate(parts):
            speakers = find_speakers(part, memories)
            if speakers is None or not is_worth_asking(part):
                continue
            if self.asked - asked >= ASKED_MAX:
                break
            kept.update((at, sentence) for sentence in self._ask_claim(part, speakers))
        result = retell(parts, kept, chars_max=chars_max, zone=zone)
        self.kept += result.sentences
        if self.asked > asked and not result.sentences:
            raise SummarizerFailed(
                f"No sentence of {self._model.name} could be kept: none says what its source says."
            )
        return result

    def _ask_claim(self, part: Passage, speakers: Speakers) -> list[SalvagedClaim]:
        """Ask the model to retell a passage; return its claim if the passage confirms it, or []."""
        self.asked += 1
        answer = self._model.complete(
            write_retelling_request(speakers.speaker, part.original),
            max_tokens=ANSWER_TOKENS,
            temperature=TEMPERATURE,
        )
        text = f"{begin_retelling(speakers.speaker)} {clean_answer(answer)}"
        return salvage_claims(text, [part.original], speakers)
