"""Worker process of extractive summaries: groups on standard input, digests on output."""

from __future__ import annotations

import os
import signal
import sys

import msgspec

from mnemosyned.memory.engine_ports import Digest
from mnemosyned.memory.values import MemoryRecord
from mnemosyned.models.workers import read_frame, write_frame
from mnemosyned.summary.extract import ExtractiveSummarizer
from mnemosyned.verbs.times import local_zone

NICE = 10
"""Low priority: requests go before a cycle that no caller waits for."""


class DigestTask(msgspec.Struct, frozen=True):
    """A group of memories to summarize; `exact` asks for exact values too."""

    memories: list[MemoryRecord]
    exact: bool
    """True for original memories, whose exact values are needed too."""

    def digest_by(self, summarizer: ExtractiveSummarizer) -> Digest:
        """Return the group's summary, with its exact values if `exact`. Raises errors of the summarizer."""
        if self.exact:
            return summarizer.digest(self.memories)
        return Digest(summary=summarizer.summarize(self.memories), details=())


# Built at import: at the first use, two threads that decode would crash the process.
DIGEST_TASKS = msgspec.msgpack.Decoder(DigestTask)
DIGEST_ANSWERS: msgspec.msgpack.Decoder[Digest | str] = msgspec.msgpack.Decoder(
    Digest | str
)
"""Answers: the digest of a group, or the name of an error."""


def main(ratio: str) -> None:
    """Digest groups until standard input closes, as happens when the parent process ends.

    `ratio` is the share of a group's characters to keep.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent to answer
    signal.pthread_sigmask(signal.SIG_SETMASK, [])
    os.nice(NICE)
    summarizer = ExtractiveSummarizer(ratio=float(ratio), zone=local_zone())
    while (frame := read_frame(sys.stdin.buffer)) is not None:
        task = DIGEST_TASKS.decode(frame)
        answer: Digest | str
        try:
            answer = task.digest_by(summarizer)
        except Exception as error:  # noqa: BLE001 the parent logs it as that group's failure
            answer = type(error).__name__
        write_frame(sys.stdout.buffer, msgspec.msgpack.encode(answer))


if __name__ == "__main__":
    main(*sys.argv[1:])
