"""Log lines reach standard error in order, and nobody waits for one who does not read them."""

import os
import threading
import time
from collections.abc import Iterator

import pytest

from mnemosyned.logs import LineWriter

PIPE_BYTES = 65_536
LINE = "x" * 99
QUEUE_BYTES = 10_000

Pipe = tuple[int, int]


@pytest.fixture
def pipe() -> Iterator[Pipe]:
    ours, theirs = os.pipe()
    yield ours, theirs
    os.close(ours)


def writer(pipe: Pipe) -> LineWriter:
    return LineWriter(
        pipe[1],
        dropped_line=lambda count: f"dropped {count}",
        queue_bytes_max=QUEUE_BYTES,
    )


def read_all(pipe: Pipe, until: str) -> list[str]:
    text = ""
    while until not in text:
        text += os.read(pipe[0], PIPE_BYTES).decode()
    return text.splitlines()


def test_a_line_is_out_when_the_call_returns(pipe: Pipe) -> None:
    writer(pipe).write("one line")

    os.set_blocking(pipe[0], False)
    assert os.read(pipe[0], 100) == b"one line\n"


def test_lines_of_many_threads_come_whole_and_in_each_threads_order(pipe: Pipe) -> None:
    lines = writer(pipe)

    def write(name: int) -> None:
        for number in range(50):
            lines.write(f"{name} {number}")

    threads = [threading.Thread(target=write, args=(name,)) for name in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    lines.write("end")

    written = read_all(pipe, "end")[:-1]
    for name in range(8):
        own = [line for line in written if line.startswith(f"{name} ")]
        assert own == [f"{name} {number}" for number in range(50)]


def test_an_unread_log_pipe_stalls_nothing_and_lost_lines_are_counted(
    pipe: Pipe,
) -> None:
    lines = writer(pipe)
    count = 2 * (PIPE_BYTES + QUEUE_BYTES) // (len(LINE) + 1)

    begun = time.monotonic()
    for _ in range(count):
        lines.write(LINE)
    took_s = time.monotonic() - begun
    first = read_all(pipe, LINE)
    while len(first) * (len(LINE) + 1) < PIPE_BYTES:
        first += read_all(pipe, LINE)
    deadline = time.monotonic() + 5
    lines.write("later")
    remaining = read_all(pipe, "later")

    assert took_s < 5, "one wait of a tenth of a second, not one for each line"
    assert time.monotonic() < deadline
    (notice,) = [line for line in remaining if line.startswith("dropped")]
    assert remaining[-2:] == [notice, "later"]
    kept = [line for line in (*first, *remaining) if line == LINE]
    assert len(kept) + int(notice.split()[1]) == count


def test_a_closed_pipe_is_no_error() -> None:
    ours, theirs = os.pipe()
    lines = writer((ours, theirs))
    os.close(ours)

    for _ in range(3):
        lines.write(LINE)
    lines.flush()
    os.close(theirs)
