"""Concurrent clients of one daemon, each in a process of its own, that start together."""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from mnemosyned import Client
from mnemosyned.errors import NotFound
from mnemosyned.verbs.request import Request

ANSWER_TIMEOUT_S = 60.0
JOIN_TIMEOUT_S = 10.0

Calls = Sequence[Request[Any]]


class Clients:
    """Running clients, and the pipes to them."""

    def __init__(self, pipes: Sequence[Connection]) -> None:
        self._pipes = pipes

    def call(self, calls: Sequence[Calls]) -> float:
        """Have each client make its calls; seconds from the first call to the last answer."""
        for pipe, own in zip(self._pipes, calls, strict=True):
            pipe.send(own)
        for pipe in self._pipes:
            receive(pipe)
        for pipe in self._pipes:
            pipe.send("go")
        spans: list[tuple[float, float]] = [receive(pipe) for pipe in self._pipes]
        return max(end for _, end in spans) - min(start for start, _ in spans)


@contextmanager
def clients(count: int, socket: Path) -> Iterator[Clients]:
    """As many clients, until the block is left."""
    context = multiprocessing.get_context("spawn")
    pairs = [context.Pipe() for _ in range(count)]
    processes = [
        context.Process(target=serve, args=(socket, theirs)) for _, theirs in pairs
    ]
    for process, (_, theirs) in zip(processes, pairs, strict=True):
        process.start()
        theirs.close()
    try:
        yield Clients([ours for ours, _ in pairs])
    finally:
        for ours, _ in pairs:
            ours.close()  # ends the client
        for process in processes:
            process.join(JOIN_TIMEOUT_S)
            process.kill()


def serve(socket: Path, pipe: Connection) -> None:
    """A client: takes calls from the pipe, makes them when told to, says when they were made."""
    with Client(str(socket)) as client:
        while True:  # until the bench closes its end
            try:
                calls: Calls = pipe.recv()
            except EOFError:
                return
            pipe.send("ready")
            pipe.recv()
            start = time.monotonic()
            for request in calls:
                with suppress(NotFound):  # the empty verb asks for what is not there
                    client.call(request)
            pipe.send((start, time.monotonic()))


def receive(pipe: Connection) -> Any:  # noqa: ANN401 whatever was sent
    if not pipe.poll(ANSWER_TIMEOUT_S):
        raise TimeoutError(f"a client was silent for {ANSWER_TIMEOUT_S:g} s")
    return pipe.recv()
