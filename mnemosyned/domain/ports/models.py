"""Ports of models: summaries, text and vectors, by a model or by rule."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

from mnemosyned.domain.memory import Detail, MemoryRecord
from mnemosyned.domain.statuses import SummarizerStatus

K = TypeVar("K")


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """The summary of a batch."""

    text: str
    """What is shown and read: the episode's content."""
    index_terms: str = ""
    """What is searched alone: words of the memories that the text leaves out, one term a line."""
    summarizer: str
    """Name of the implementation that wrote it, for the log."""
    fallback_reason: str = ""
    """Why a fallback wrote it, empty where the summarizer in force did."""
    model_share: float = 0.0
    """Share of the text's characters that a model wrote; rules wrote the others."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Digest:
    """The summary of memories as they were remembered, with their secrets apart."""

    summary: Summary
    """Of those that last, with every secret masked."""
    details: tuple[Detail, ...]
    """The exact values of all of them, secrets among them."""


class TextModel(Protocol):
    """A language model: llama.cpp in a child process, or an endpoint that speaks OpenAI's form."""

    name: str
    """What the log and `status` call it, such as `llama:tinyllama-1.1b-chat-v1.0.Q4_K_M`."""

    @property
    def context_tokens(self) -> int:
        """The size of its window, prompt and answer together. Raises `SummarizerFailed`."""
        ...

    @property
    def parameters(self) -> int:
        """How many weights it has; 0 where that is unknown. Raises `SummarizerFailed`."""
        return 0

    def count_tokens(self, text: str) -> int:
        """How many tokens of the window a text takes, by the model's own count or an upper bound.

        Raises `SummarizerFailed`.
        """
        ...

    def complete(
        self,
        messages: Sequence[Mapping[str, str]],
        *,
        max_tokens: int,
        temperature: float,
    ) -> str:
        """The answer to a conversation of role and content. Raises `SummarizerFailed`.

        To a model run here the last message may be an assistant's: the opening of the answer,
        which is then one sentence.

        Whatever the model does, this returns or raises within its configured time limit.
        """
        ...

    def close(self) -> None:
        """End what runs for it; the next call starts it again."""
        ...


class Summarizer(Protocol):
    """Makes one text of the memories of one episode; implementations inherit from it."""

    name: str
    """What the log and `status` call it."""
    reason: str
    """Why this one is in force, in one sentence a person reads in `status`."""
    model: TextModel | None = None
    """The language model it works with."""

    @abstractmethod
    def summarize(self, memories: Sequence[MemoryRecord]) -> Summary:
        """Summarize the memories, which stand oldest first.

        Raises `SummarizerFailed` when nothing worth keeping came out.
        """

    def summarize_each(
        self,
        groups: Iterable[tuple[K, Sequence[MemoryRecord]]],
        *,
        expected: int,  # noqa: ARG002 for those that prepare for many
    ) -> Iterator[tuple[K, Summary | Exception]]:
        """Summarize groups, each with a key of the caller's, in whatever order they are finished.

        `groups` is read as there is room, so that the caller can end the work by ending it;
        `expected` says about how many groups of ordinary size they amount to. What one group
        raised stands in its place.
        """
        for key, memories in groups:
            yield key, self.outcome(memories)

    def digest_each(
        self, groups: Iterable[tuple[K, Sequence[MemoryRecord]]], *, expected: int
    ) -> Iterator[tuple[K, Digest | Exception]]:
        """Digests of groups as they were remembered; else like `summarize_each`."""

        def readable() -> Iterator[
            tuple[tuple[K, tuple[Detail, ...]], Sequence[MemoryRecord]]
        ]:
            for key, originals in groups:
                lasting, details = spoken_of(originals)
                yield (key, details), lasting

        for (key, details), outcome in self.summarize_each(
            readable(), expected=expected
        ):
            if isinstance(outcome, Exception):
                yield key, outcome
            else:
                yield key, Digest(summary=outcome, details=details)

    def digest(self, originals: Sequence[MemoryRecord]) -> Digest:
        """The digest of one group. Raises `SummarizerFailed`."""
        lasting, details = spoken_of(originals)
        return Digest(summary=self.summarize(lasting), details=details)

    def outcome(self, memories: Sequence[MemoryRecord]) -> Summary | Exception:
        """The summary, or what went wrong: one group's failure must not end the others'."""
        try:
            return self.summarize(memories)
        except Exception as error:  # noqa: BLE001 the caller logs it as that group's failure
            return error

    def status(self) -> SummarizerStatus:
        """Who writes the next summary, and how it went so far."""
        return SummarizerStatus(name=self.name, reason=self.reason)

    def rule_based(self) -> Summarizer:
        """The one for whoever waits, at shutdown and when forgetting: it asks no model."""
        return self

    def interrupt(self) -> None:
        """End what a model is writing and ask it no more; safe from any thread."""
        return

    def resume(self) -> None:
        """Take an interrupt back: a model may be asked again."""
        return

    def release_workers(self) -> None:
        """A cycle is over: end what helped with it."""
        return

    def close(self) -> None:
        """End what runs for it; the next summary starts it again."""
        return


def spoken_of(
    originals: Sequence[MemoryRecord],
) -> tuple[list[MemoryRecord], tuple[Detail, ...]]:
    """Return the memories that a summary may mention, and the exact values of all.

    No summary, prompt or log row may hold a secret, nor what is superseded or expires while the
    summary stays.
    """
    # Loaded by who summarizes: the shell client needs the values of this module alone.
    from mnemosyned.domain.secrets.exact_values import mask_memories  # noqa: PLC0415

    readable, details = mask_memories(originals)
    return [memory for memory in readable if memory.lasting], details


class Embedder(Protocol):
    """Makes vectors of texts, near each other where the texts mean alike.

    A vector is bytes: of length one, in half precision, little-endian.
    """

    name: str
    """What `status` calls it."""

    def identity(self) -> str:
        """Return a fingerprint that differs between models. Raises `ModelUnavailable`."""
        ...

    def embed(self, texts: Sequence[str]) -> list[bytes]:
        """A vector for each text of a memory. Raises `EmbedderFailed` and `ModelUnavailable`."""
        ...

    def embed_question(self, text: str) -> bytes:
        """The vector of a question. Raises `EmbedderFailed` and `ModelUnavailable`."""
        ...

    def close(self) -> None:
        """End what runs for it, also amid a call, which fails; the next call starts it again."""
        ...
