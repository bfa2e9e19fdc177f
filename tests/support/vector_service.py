"""Words for the tests of a service that has vectors, which come in the background."""

import time
from collections.abc import Callable

from mnemosyned.service.service import MemoryService
from mnemosyned.verbs.memories import Recalled, Remember
from mnemosyned.verbs.upkeep import Status

WAIT_S = 60.0
Open = Callable[..., MemoryService]


def wait_until(fact: Callable[[], bool]) -> None:
    until = time.monotonic() + WAIT_S
    while not fact():
        assert time.monotonic() < until, "it never came about"
        time.sleep(0.005)


def wait_until_embedded(service: MemoryService, count: int) -> None:
    wait_until(lambda: service.call(Status()).embedder.embedded == count)


def remember_all(service: MemoryService, *texts: str, **where: str) -> list[str]:
    return [service.call(Remember(content=text, **where)).id for text in texts]  # type: ignore[arg-type]


def contents(answer: Recalled) -> list[str]:
    return [hit.content for hit in answer.hits]
