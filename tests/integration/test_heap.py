"""What the process does with its memory, in a process of its own."""

import gc
import resource
import subprocess
import sys

import pytest

from mnemosyned import process_memory as heap

FREED = """
import threading
from mnemosyned import process_memory as heap
heap.limit_heap()
before = heap.resident_bytes()
growth = heap.MemoryGrowth()
assert not growth.is_trim_due()
kept, freed = [], []
def work():
    for number in range(20_000):  # what stays lies between what goes
        (freed if number % 100 else kept).append(b"x" * (1_500 + number % 7))
threads = [threading.Thread(target=work) for _ in range(4)]
for thread in threads: thread.start()
for thread in threads: thread.join()
assert growth.is_trim_due()
freed.clear()
untrimmed = heap.resident_bytes()
heap.trim_heap()
growth.note_trim()
assert not growth.is_trim_due()
print(untrimmed - before, heap.resident_bytes() - before)
"""
LARGE_BLOCKS = """
import threading
from mnemosyned import process_memory as heap
heap.limit_heap()
before = heap.resident_bytes()
most = 0
def grow_and_drop():
    global most
    bodies = [bytearray() for _ in range(4)]
    while len(bodies[0]) < 30_000_000:
        for body in bodies:
            body += b"x" * 65_536
        most = max(most, heap.resident_bytes())
def work():
    for turn in range(4):
        grow_and_drop()
thread = threading.Thread(target=work)
thread.start()
thread.join()
print(most - before, heap.resident_bytes() - before)
"""
IDLE = """
from mnemosyned import process_memory as heap
growth = heap.MemoryGrowth()
held = bytearray(b"x" * heap.IDLE_BYTES)
growth.note_trim()  # while it was in use
answers = [growth.is_trim_due(idle=idle) for idle in (False, True, True, False, True)]
del held
answers += [growth.is_trim_due(idle=idle) for idle in (False, True)]
print(*answers)
"""
NO_DUMPS = """
import resource
from pathlib import Path
from mnemosyned import process_memory as heap
heap.forbid_core_dumps()
print(resource.getrlimit(resource.RLIMIT_CORE), Path("/proc/self/coredump_filter").read_text())
"""


def run(program: str) -> str:
    command = [sys.executable, "-c", program]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


@pytest.mark.thorough
def test_freed_memory_between_memory_in_use_goes_back_to_the_system() -> None:
    untrimmed, trimmed = map(int, run(FREED).split())

    assert untrimmed > 100_000_000
    assert trimmed < untrimmed / 3


@pytest.mark.thorough
def test_large_blocks_that_grow_side_by_side_take_no_more_than_they_hold() -> None:
    most, left = map(int, run(LARGE_BLOCKS).split())

    assert most < 130_000_000
    assert left < 10_000_000


@pytest.mark.thorough
def test_caches_are_given_back_once_the_process_becomes_idle_and_is_large() -> None:
    large = ["False", "True", "False", "False", "True"]
    small = ["False", "False"]

    assert run(IDLE).split() == [*large, *small]


def test_a_core_dump_has_no_memory_in_it() -> None:
    assert run(NO_DUMPS).split() == ["(0,", "0)", "00000000"]


def test_resident_memory_is_what_the_kernel_says() -> None:
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1_024

    assert 5_000_000 < heap.resident_bytes() <= most * 1.1


@pytest.mark.thorough
def test_present_objects_are_left_out_of_collections_from_the_first_call_on() -> None:
    gc.unfreeze()
    try:
        heap.exclude_present_objects()
        excluded = gc.get_freeze_count()
        later = [[number] for number in range(1_000)]
        heap.exclude_present_objects()

        assert excluded > len(later)
        assert gc.get_freeze_count() <= excluded
    finally:
        gc.unfreeze()
