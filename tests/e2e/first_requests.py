"""Lives of a process that end after their first requests, which come all at once.

Run as `python -P first_requests.py KIND PLACE CLIENTS LIVES`: KIND is `client`, with a daemon's
socket as PLACE, or `memory`, with a folder that holds `memory.db`. Prints how many lives a signal
ended. Each life is a fork of this process, which has loaded the product and decoded nothing.
"""

from __future__ import annotations

import os
import shutil
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from mnemosyned.assembly.embedded import Memory
from mnemosyned.client.blocking import Client
from mnemosyned.verbs.conversation import Compact, Context
from mnemosyned.verbs.memories import Recall, Remember, RememberMany
from mnemosyned.verbs.request import Request
from mnemosyned.verbs.upkeep import Status

SWITCH_S = 0.0001
"""Python's own interval is 5 ms: threads that switch this often meet what is half done."""
FIRST: list[Request[Any]] = [
    RememberMany([Remember("a b c")]),
    Context(message="hello"),
    Compact(messages=[{"role": "user", "content": "x"}]),
    RememberMany([Remember("d e f", metadata={"n": 1})]),
    Recall("a"),
    Remember("x y"),
    Status(),
]


def live(memory: Client | Memory, clients: int) -> None:
    """Call from as many threads at once; raises what one of them met."""
    together = threading.Barrier(clients)
    failed: list[BaseException] = []

    def call(number: int) -> None:
        together.wait()
        try:
            memory.call(FIRST[number % len(FIRST)])
        except BaseException as error:  # noqa: BLE001 raised below, in the thread that is asked
            failed.append(error)

    threads = [
        threading.Thread(target=call, args=(number,)) for number in range(clients)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failed:
        raise failed[0]


def lives(
    begin: Callable[[], Client | Memory], clients: int, count: int
) -> tuple[int, int]:
    """How many lives ended by a signal, and how many met an error."""
    died = failed = 0
    for _ in range(count):
        child = os.fork()
        if child == 0:
            sys.setswitchinterval(SWITCH_S)
            try:
                live(begin(), clients)
            except BaseException as error:  # noqa: BLE001 told by the exit code
                print(f"{type(error).__name__}: {error}", file=sys.stderr, flush=True)
                os._exit(1)
            os._exit(0)
        _, status = os.waitpid(child, 0)
        died += os.WIFSIGNALED(status)
        failed += os.WIFEXITED(status) and os.WEXITSTATUS(status) != 0
    return died, failed


def _embedded(folder: Path) -> Memory:
    copy = folder / "copy.db"
    for left in folder.glob("copy.db*"):
        left.unlink()
    shutil.copy(folder / "memory.db", copy)
    return Memory(copy)


def main(kind: str, place: str, clients: str, count: str) -> None:
    """Live as ordered, and say how it ended."""

    def begin() -> Client | Memory:
        return Client(place) if kind == "client" else _embedded(Path(place))

    died, failed = lives(begin, int(clients), int(count))
    print(f"died {died}, failed {failed}")


if __name__ == "__main__":
    main(*sys.argv[1:])
