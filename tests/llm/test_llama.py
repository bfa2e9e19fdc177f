"""The language model in its own process: the real llama.cpp, on models made here."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from support.gguf import canned_model, keywords_model, random_model

from mnemosyned.domain.errors import ModelUnavailable, SummarizerFailed
from mnemosyned.models.llama import LlamaModel, LlamaOptions, Purpose

pytestmark = pytest.mark.llm

SENTENCE = "The deploy moved to Friday because the cache was cold."
PRIVATE = "xylophone"
WAIT_S = 20.0
Maker = Callable[..., LlamaModel]


def children() -> set[int]:
    listed = Path(f"/proc/{os.getpid()}/task").glob("*/children")
    return {int(pid) for file in listed for pid in file.read_text().split()}


def wait_for(fact: Callable[[], bool], *, limit_s: float = WAIT_S) -> float:
    """Seconds until it holds."""
    began = time.monotonic()
    while not fact():
        assert time.monotonic() - began < limit_s, "it never came about"
        time.sleep(0.01)
    return time.monotonic() - began


def say(
    model: LlamaModel, content: str = "What happened?", *, max_tokens: int = 50
) -> str:
    messages = [{"role": "user", "content": content}]
    return model.complete(messages, max_tokens=max_tokens, temperature=0.0)


@pytest.fixture
def load() -> Iterator[Maker]:
    """Makes models that end with the test; no process outlives it."""
    before = children()
    made: list[LlamaModel] = []

    def make(
        path: Path,
        *,
        purpose: Purpose = Purpose.TEXT,
        **options: Any,  # noqa: ANN401
    ) -> LlamaModel:
        settings = LlamaOptions(threads=1, **options)
        made.append(LlamaModel(model_path=path, options=settings, purpose=purpose))
        return made[-1]

    yield make
    for model in made:
        model.close()
    assert children() <= before


@pytest.fixture
def canned(tmp_path: Path) -> Path:
    return canned_model(tmp_path / "canned.gguf", SENTENCE)


@pytest.fixture
def endless(tmp_path: Path) -> Path:
    """A model that goes on for minutes."""
    return canned_model(
        tmp_path / "endless.gguf", "and so on", endless=True, context=100_000
    )


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


def test_a_model_says_what_it_is_made_to_say(load: Maker, canned: Path) -> None:
    model = load(canned)

    assert say(model) == SENTENCE
    assert model.name == "llama:canned"


def test_a_model_that_only_counts_counts_as_the_whole_one(
    load: Maker, canned: Path
) -> None:
    text = "The deploy moved to Friday, 17 März — 配置 🎉"

    counting = load(canned, purpose=Purpose.COUNTING)

    assert counting.count_tokens(text) == load(canned).count_tokens(text) > 10


def test_the_answer_depends_on_the_prompt(load: Maker, tmp_path: Path) -> None:
    model = load(keywords_model(tmp_path / "k.gguf", ["harbour", "dark mode", "plum"]))

    assert say(model, "A plum, dark mode, and dark mode again.") == "dark mode plum"


def test_the_same_prompt_is_answered_in_the_same_words(
    load: Maker, tmp_path: Path
) -> None:
    model = load(random_model(tmp_path / "random.gguf"))
    messages = [{"role": "user", "content": "Tell me something."}]

    first, second = (
        model.complete(messages, max_tokens=20, temperature=0.9) for _ in "ab"
    )

    assert first == second


def test_tokens_are_counted_by_the_models_own_count(load: Maker, canned: Path) -> None:
    model = load(canned)

    assert model.count_tokens("") == 0
    assert (
        model.count_tokens("abc") == 4
    )  # and the space that this tokenizer puts before
    assert model.count_tokens("é") == 3
    assert model.count_tokens("</s>") > 1


def test_the_window_is_the_files_own_up_to_a_bound(load: Maker, tmp_path: Path) -> None:
    small = canned_model(tmp_path / "small.gguf", SENTENCE, context=1024)
    large = canned_model(tmp_path / "large.gguf", SENTENCE, context=131_072)

    assert load(small).context_tokens == 1024
    assert load(large).context_tokens == 4096
    assert load(large, context_tokens=8192).context_tokens == 8192


def test_a_memory_cannot_end_its_turn(load: Maker, tmp_path: Path) -> None:
    model = load(keywords_model(tmp_path / "k.gguf", ["</s>x", "plum"]))

    assert model.count_tokens("</s>") == model.count_tokens("< /s>")


def test_a_prompt_over_the_window_is_refused_without_its_words(
    load: Maker, canned: Path
) -> None:
    model = load(canned)

    with pytest.raises(
        SummarizerFailed, match=r"window.*of 2048.*llm\.context_tokens"
    ) as caught:
        say(model, PRIVATE * 400)

    assert PRIVATE not in str(caught.value)
    assert say(model) == SENTENCE


@pytest.mark.parametrize(
    ("nice", "policy"), [(19, os.SCHED_IDLE), (10, os.SCHED_OTHER)]
)
def test_it_steps_back_behind_whoever_wants_the_processor(
    load: Maker, canned: Path, nice: int, policy: int
) -> None:
    before = children()
    say(load(canned, nice=nice))
    (pid,) = children() - before

    assert os.sched_getscheduler(pid) == policy
    own = os.getpriority(os.PRIO_PROCESS, 0)
    assert os.getpriority(os.PRIO_PROCESS, pid) == min(own + nice, 19)


def test_closing_amid_generation_takes_less_than_a_second(
    load: Maker, endless: Path
) -> None:
    before = children()
    model = load(endless, context_tokens=100_000)
    model.count_tokens("loaded")
    asked = Asked(model)
    assert children() - before

    began = time.monotonic()
    model.close()
    error = asked.outcome()

    assert time.monotonic() - began < 1
    assert "closed" in str(error)
    assert children() == before


def test_closing_amid_loading_says_nothing_against_the_model(
    load: Maker, endless: Path
) -> None:
    before = children()
    model = load(endless)
    asked = Asked(model, wait_s=0.1)

    model.close()
    error = asked.outcome()

    assert type(error) is SummarizerFailed
    assert children() == before


def test_waiting_requests_do_not_reopen_a_closed_model(
    load: Maker, endless: Path
) -> None:
    before = children()
    model = load(endless, context_tokens=100_000)
    running, waiting = Asked(model), Asked(model)

    model.close()

    assert running.outcome()
    assert waiting.outcome()
    assert children() == before


def test_a_closed_model_starts_again_when_asked(load: Maker, canned: Path) -> None:
    model = load(canned)
    say(model)

    model.close()

    assert say(model) == SENTENCE


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


def test_the_time_limit_ends_a_process_that_stands_still(
    load: Maker, canned: Path
) -> None:
    before = children()
    model = load(canned, time_limit_s=5.0)
    model.count_tokens("loaded")
    for pid in children() - before:
        os.kill(pid, signal.SIGSTOP)

    with pytest.raises(SummarizerFailed, match="longer than"):
        say(model, "x" * 500_000)  # more than a pipe holds


def test_the_process_ends_when_it_has_no_work(load: Maker, canned: Path) -> None:
    before = children()
    model = load(canned, idle_s=0.5)
    say(model)
    assert children() - before

    idle_s = wait_for(lambda: children() == before)

    assert idle_s < 2
    assert say(model) == SENTENCE


def test_a_killed_process_starts_again(load: Maker, canned: Path) -> None:
    before = children()
    model = load(canned)
    say(model)

    for pid in children() - before:
        os.kill(pid, signal.SIGKILL)
        wait_for(lambda: children() == before)

    assert say(model) == SENTENCE


def test_a_process_killed_amid_its_work_fails_that_call_alone(
    load: Maker, endless: Path
) -> None:
    before = children()
    model = load(endless, context_tokens=100_000)
    model.count_tokens("loaded")
    asked = Asked(model)

    for pid in children() - before:
        os.kill(pid, signal.SIGKILL)

    assert "died" in str(asked.outcome())
    assert model.count_tokens("abc") == 4


def test_the_process_ends_with_a_parent_that_is_killed(endless: Path) -> None:
    program = (
        "import sys, threading, time, pathlib\n"
        "from mnemosyned.models.llama import LlamaModel, LlamaOptions\n"
        "options = LlamaOptions(context_tokens=100_000)\n"
        "model = LlamaModel(model_path=pathlib.Path(sys.argv[1]), options=options)\n"
        "model.count_tokens('loaded')\n"
        "print(model._child.pid, flush=True)\n"
        "model.complete([{'role': 'user', 'content': 'x'}], max_tokens=90_000, temperature=0)\n"
    )
    parent = subprocess.Popen(
        [sys.executable, "-c", program, str(endless)], stdout=subprocess.PIPE, text=True
    )
    assert parent.stdout
    with parent:
        child = Path("/proc", parent.stdout.readline().strip())
        time.sleep(0.3)
        assert child.exists()
        parent.kill()

    wait_for(lambda: gone(child), limit_s=2)


def gone(process: Path) -> bool:
    """Ended; one that nobody reaps, as in a container without an init, counts as well."""
    try:
        return process.joinpath("stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (None, "cannot be read.*mnem model pull"),
        (b"", "not a model"),
        (b"<!DOCTYPE html>", "not a model"),
        (b"GGUF", "damaged"),
        (b"GGUF" + bytes(4096), "damaged"),
        (b"GGUF\3\0\0\0" + b"\xff" * 4096, "damaged"),
    ],
)
def test_what_is_no_model_is_named(
    load: Maker, tmp_path: Path, content: bytes | None, words: str
) -> None:
    path = tmp_path / "some.gguf"
    if content is not None:
        path.write_bytes(content)

    with pytest.raises(ModelUnavailable, match=words) as caught:
        say(load(path), PRIVATE)

    assert PRIVATE not in str(caught.value)


@pytest.mark.parametrize("share", [0.01, 0.1, 0.5, 0.999])
def test_a_truncated_model_is_named(load: Maker, canned: Path, share: float) -> None:
    whole = canned.read_bytes()
    canned.write_bytes(whole[: int(len(whole) * share)])

    with pytest.raises(ModelUnavailable, match="damaged"):
        say(load(canned))


def test_a_failed_load_leaves_no_process(load: Maker, tmp_path: Path) -> None:
    before = children()
    path = tmp_path / "some.gguf"
    path.write_bytes(b"GGUF" + bytes(64))

    with pytest.raises(ModelUnavailable):
        say(load(path))

    assert children() == before


def test_a_window_too_large_for_the_memory_is_refused(
    load: Maker, tmp_path: Path
) -> None:
    model = load(
        canned_model(tmp_path / "c.gguf", SENTENCE, layers=40),
        context_tokens=100_000_000,
    )

    with pytest.raises(ModelUnavailable, match=r"memory \(.*GB.*llm\.context_tokens"):
        say(model)


def test_a_missing_library_is_named(
    load: Maker, canned: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)

    with pytest.raises(ModelUnavailable, match="make install-llm"):
        say(load(canned))


def test_the_size_of_a_model_is_what_its_file_says(load: Maker, canned: Path) -> None:
    assert load(canned).parameters == 1_000_000_000


def test_an_answer_goes_on_from_its_opening_and_ends_with_a_sentence(
    load: Maker, tmp_path: Path
) -> None:
    model = load(keywords_model(tmp_path / "k.gguf", ["harbour", "dark mode", "plum"]))
    messages = [
        {"role": "user", "content": "Tell me of the harbour."},
        {"role": "assistant", "content": "It was a plum,"},
    ]

    assert "plum" in model.complete(messages, max_tokens=9, temperature=0.0)
