"""The process of the language model: how it begins, steps back, and ends whatever happens."""

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from support.llama import PRIVATE, SENTENCE, WAIT_S, Maker, say
from support.processes import child_pids, has_ended
from support.vector_service import wait_until

from mnemosyned.errors import SummarizerFailed
from mnemosyned.models.llama import LlamaModel

pytestmark = pytest.mark.llm


class Asked:
    """A question that takes minutes, asked in a thread."""

    def __init__(self, model: LlamaModel, *, wait_s: float = 0.3) -> None:
        self.error: Exception | None = None
        self._thread = threading.Thread(target=self._run, args=[model])
        self._thread.start()
        time.sleep(wait_s)

    def outcome(self) -> Exception | None:
        self._thread.join(WAIT_S)
        assert not self._thread.is_alive()
        return self.error

    def _run(self, model: LlamaModel) -> None:
        try:
            say(model, PRIVATE, max_tokens=90_000)
        except SummarizerFailed as error:
            self.error = error


@pytest.mark.parametrize(
    ("nice", "policy"), [(19, os.SCHED_IDLE), (10, os.SCHED_OTHER)]
)
def test_it_steps_back_behind_whoever_wants_the_processor(
    load: Maker, canned: Path, nice: int, policy: int
) -> None:
    before = child_pids()
    say(load(canned, nice=nice))
    (pid,) = child_pids() - before

    assert os.sched_getscheduler(pid) == policy
    own = os.getpriority(os.PRIO_PROCESS, 0)
    assert os.getpriority(os.PRIO_PROCESS, pid) == min(own + nice, 19)


def test_closing_amid_generation_is_quick(load: Maker, endless: Path) -> None:
    before = child_pids()
    model = load(endless, context_tokens=100_000)
    model.count_tokens("loaded")
    asked = Asked(model)
    assert child_pids() - before

    began = time.monotonic()
    model.close()
    error = asked.outcome()

    assert time.monotonic() - began < 1
    assert "closed" in str(error)
    assert child_pids() == before


def test_closing_amid_loading_blames_no_model(load: Maker, endless: Path) -> None:
    before = child_pids()
    model = load(endless)
    asked = Asked(model, wait_s=0.1)

    model.close()

    assert type(asked.outcome()) is SummarizerFailed
    assert child_pids() == before


def test_waiting_requests_reopen_no_closed_model(load: Maker, endless: Path) -> None:
    before = child_pids()
    model = load(endless, context_tokens=100_000)
    running, waiting = Asked(model), Asked(model)

    model.close()

    assert running.outcome()
    assert waiting.outcome()
    assert child_pids() == before


def test_the_time_limit_ends_generation(load: Maker, endless: Path) -> None:
    model = load(endless, context_tokens=100_000, time_limit_s=6.0)
    model.count_tokens("loaded")
    began = time.monotonic()

    with pytest.raises(
        SummarizerFailed, match=r"longer than 6 s.*llm\.time_limit_s"
    ) as caught:
        say(model, PRIVATE, max_tokens=90_000)

    assert 5.9 < time.monotonic() - began < 8
    assert PRIVATE not in str(caught.value)
    assert model.count_tokens("abc") == 4


def test_the_time_limit_ends_a_stopped_process(load: Maker, canned: Path) -> None:
    before = child_pids()
    model = load(canned, time_limit_s=5.0)
    model.count_tokens("loaded")
    for pid in child_pids() - before:
        os.kill(pid, signal.SIGSTOP)

    with pytest.raises(SummarizerFailed, match="longer than"):
        say(model, "x" * 500_000)  # more than a pipe holds


def test_the_process_ends_when_it_has_no_work(load: Maker, canned: Path) -> None:
    before = child_pids()
    model = load(canned, idle_s=0.5)
    say(model)
    assert child_pids() - before

    began = time.monotonic()
    wait_until(lambda: child_pids() == before)

    assert time.monotonic() - began < 2
    assert say(model) == SENTENCE


@pytest.mark.parametrize("is_killed", [True, False], ids=["killed", "closed"])
def test_a_killed_or_closed_process_starts_again(
    load: Maker, canned: Path, *, is_killed: bool
) -> None:
    before = child_pids()
    model = load(canned)
    say(model)

    if is_killed:
        (pid,) = child_pids() - before
        os.kill(pid, signal.SIGKILL)
    else:
        model.close()
    wait_until(lambda: child_pids() == before)

    assert say(model) == SENTENCE


def test_a_process_killed_at_work_fails_one_call(load: Maker, endless: Path) -> None:
    before = child_pids()
    model = load(endless, context_tokens=100_000)
    model.count_tokens("loaded")
    asked = Asked(model)

    for pid in child_pids() - before:
        os.kill(pid, signal.SIGKILL)

    assert "died" in str(asked.outcome())
    assert model.count_tokens("abc") == 4


def test_the_process_ends_with_a_parent_that_is_killed(endless: Path) -> None:
    program = (
        "import sys, threading, time, pathlib\n"
        "from mnemosyned.config.settings import LlmConfig\n"
        "from mnemosyned.models.llama import LlamaModel\n"
        "settings = LlmConfig(context_tokens=100_000)\n"
        "model = LlamaModel(model_path=pathlib.Path(sys.argv[1]), settings=settings)\n"
        "model.count_tokens('loaded')\n"
        "print(model._child.pid, flush=True)\n"
        "model.complete([{'role': 'user', 'content': 'x'}], max_tokens=90_000, temperature=0)\n"
    )
    parent = subprocess.Popen(
        [sys.executable, "-c", program, str(endless)], stdout=subprocess.PIPE, text=True
    )
    assert parent.stdout
    with parent:
        child = int(parent.stdout.readline())
        time.sleep(0.3)
        assert not has_ended(child)
        parent.kill()

    began = time.monotonic()
    wait_until(lambda: has_ended(child))
    assert time.monotonic() - began < 2
