"""Lines with and without secrets, labelled by hand, and how well they are told apart."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

from mnemosyned.text.secrets.masking import mask_secrets

HERE = Path(__file__).parent
HALVES = ("tuned", "held out")
_MARKED = re.compile(r"⟦(.*?)⟧", re.DOTALL)
_MASK = re.compile(r"\[secret:\w+\]")
_WORD = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class Sample:
    """A line of a corpus: its text, its secrets and what stands around them."""

    half: str
    language: str
    kind: str
    text: str
    secrets: tuple[str, ...] = ()
    around: tuple[str, ...] = ()


@dataclass(slots=True)
class Score:
    """Which secrets were masked, and what was masked that is none."""

    total: int = 0
    shown: list[Sample] = field(default_factory=list)
    spoiled: list[Sample] = field(default_factory=list)

    @property
    def recall(self) -> float:
        """The share of secrets of which nothing can be read."""
        return 1 - len(self.shown) / self.total

    @property
    def precision(self) -> float:
        """The share of maskings that hide a secret and nothing else."""
        hidden = self.total - len(self.shown)
        return hidden / (hidden + len(self.spoiled))


def labelled() -> list[Sample]:
    """The lines that hold a secret."""
    return [_sample(half, *columns) for half, columns in _lines("secrets_labelled.txt")]


def innocents() -> list[Sample]:
    """The lines that hold none."""
    return [
        Sample(half, language, "none", text)
        for half, (language, text) in _lines("secrets_innocent.txt")
    ]


def scored(
    samples: Iterable[Sample], mask: Callable[[str], str] = mask_secrets
) -> Score:
    """How well the secrets of these lines are masked, and how well all else is left alone."""
    score = Score()
    for sample in samples:
        seen = mask(sample.text)
        score.total += bool(sample.secrets)
        if any(_shows(seen, secret, sample) for secret in sample.secrets):
            score.shown.append(sample)
        if not _readable(seen, sample):
            score.spoiled.append(sample)
    return score


def _lines(name: str) -> list[tuple[str, list[str]]]:
    texts = (HERE / name).read_text(encoding="utf-8").split("\n")
    rows = [text for text in texts if text and not text.startswith("#")]
    return [
        (HALVES[number % 2], row.replace("{+}", "").replace("⏎", "\n").split("\t"))
        for number, row in enumerate(rows)
    ]


def _sample(half: str, language: str, kind: str, text: str) -> Sample:
    parts = _MARKED.split(text)
    return Sample(
        half, language, kind, "".join(parts), tuple(parts[1::2]), tuple(parts[::2])
    )


def _shows(seen: str, secret: str, sample: Sample) -> bool:
    """Whether the secret, or its last character beside the mask, can still be read."""
    if secret in seen:
        return True
    words = [word for word in _WORD.findall(secret) if len(word) > 2]
    around = {word for part in sample.around for word in _WORD.findall(part)}
    if any(
        word in _WORD.findall(_MASK.sub(" ", seen)) and word not in around
        for word in words
    ):
        return True
    last = secret[-1]
    after = sample.text[sample.text.index(secret) + len(secret) :][:1]
    return not last.isalnum() and last != after and f"]{last}" in seen


def _readable(seen: str, sample: Sample) -> bool:
    """Whether the words around the secrets all stand there still."""
    if not sample.secrets:
        return seen == sample.text
    rest = _WORD.findall(_MASK.sub(" ", seen))
    wanted = [word for part in sample.around for word in _WORD.findall(part)]
    return all(rest.count(word) >= wanted.count(word) for word in set(wanted))
