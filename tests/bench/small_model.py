"""What a small model answers and what is kept of it, judged apart from the product's own rules."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain

from bench.retention import Session, content_words

from mnemosyned.memory.engine_ports import TextModel

SENTENCE = re.compile(r"(?<=[.!?…])\s+|\n")
DATED = re.compile(r" \((?:about )?(?:\d{1,2} )?(?:[A-Z][a-z]+ )?\d{4}\)")
PERSONS = re.compile(r"\b(?:i|i'm|my|me|we|our|us|you|your)\b", re.IGNORECASE)
DENIALS = re.compile(
    r"\b(?:not|no|never|none|nobody|nothing|without|can't|cannot)\b|n't\b"
)
WORDS_MIN = 3
SHARED_MIN = 2
"""Words that a part of a turn shares with a sentence that restates it."""
SAYING = frozenset(
    content_words("said says mentioned added shared explained noted also then")
)


@dataclass
class RecordingModel(TextModel):
    """Passes every question on, and keeps it with its answer."""

    model: TextModel
    answers: list[tuple[str, str]] = field(default_factory=list)
    """The line that was shown, and the answer."""

    @property
    def name(self) -> str:  # type: ignore[override]
        return self.model.name

    @property
    def context_tokens(self) -> int:
        return self.model.context_tokens

    @property
    def parameters(self) -> int:
        return self.model.parameters

    def count_tokens(self, text: str) -> int:
        return self.model.count_tokens(text)

    def complete(
        self,
        messages: Sequence[Mapping[str, str]],
        *,
        max_tokens: int,
        temperature: float,
    ) -> str:
        answer = self.model.complete(
            messages, max_tokens=max_tokens, temperature=temperature
        )
        opening = messages[-1]["content"]
        shown = messages[0]["content"].partition("\n\n")[0]
        self.answers.append((shown, f"{opening} {answer}"))
        return answer

    def close(self) -> None:
        self.model.close()


def words(text: str) -> str:
    return " ".join(re.findall(r"[\w']+", text.lower()))


def summarizes(shown: str, answer: str) -> bool:
    """Whether an answer reports on a line, and neither goes on with it nor copies it."""
    if not answer.strip() or re.search(r"\n[\w ]+:", answer) or PERSONS.search(answer):
        return False
    said = shown.partition(": ")[2]
    reported = re.sub(r"\A.{1,60}? said that ", "", answer)
    return len(reported.split()) >= WORDS_MIN and words(reported) != words(said)


def sentences_of(text: str) -> list[str]:
    return [
        part.strip() for part in SENTENCE.split(DATED.sub("", text)) if part.strip()
    ]


def in_model_words(summary: str, session: Session) -> list[str]:
    """Return the sentences of a summary that nobody said word for word."""
    said = words(" . ".join(memory.content for memory in session))
    names = "|".join(re.escape(memory.role) for memory in session)
    quoted = re.compile(rf"\A(?:{names}): ")
    lines = (quoted.sub("", line) for line in summary.splitlines())
    return [
        sentence
        for sentence in chain.from_iterable(map(sentences_of, lines))
        if words(sentence) not in said and not sentence.endswith("…")
    ]


def is_grounded(sentence: str, session: Session) -> bool:
    """Whether one turn of a named speaker holds every word of a sentence, with its denials."""
    named = {
        m.role for m in session if re.search(rf"\b{re.escape(m.role)}\b", sentence)
    }
    if not named:
        return False
    names = content_words(" ".join(named))
    wanted = content_words(sentence) - names - SAYING
    turns = [memory.content for memory in session if memory.role in named]
    return any(
        wanted <= content_words(turn) and denials_agree(sentence, turn, wanted)
        for turn in turns
    )


def denials_agree(sentence: str, turn: str, wanted: Iterable[str]) -> bool:
    """Whether the part of the turn that a sentence restates denies as often as the sentence."""
    parts = [
        part
        for part in re.split(r"(?<=[.!?])\s+|[;–—]|,\s|\s-\s", turn)
        if len(content_words(part) & frozenset(wanted)) >= SHARED_MIN
    ]
    denied = sum(len(DENIALS.findall(part.lower())) for part in parts)
    return denied >= len(DENIALS.findall(sentence.lower())) and (
        not denied or bool(DENIALS.search(sentence.lower()))
    )
