"""The language model in its own process: the real llama.cpp, on models made here."""

import importlib
from pathlib import Path

import pytest
from support.gguf import BOS, canned_model, keywords_model, random_model
from support.llama import PRIVATE, SENTENCE, Maker, say
from support.processes import child_pids

from mnemosyned.errors import ModelUnavailable, SummarizerFailed
from mnemosyned.models.catalog import ModelStore
from mnemosyned.models.llama_worker import (
    Complete,
    CompletionEngine,
    LoadModel,
    is_looping,
)

pytestmark = pytest.mark.llm

TURNS = """{% for message in messages %}{{ '<|' + message['role'] + '|>' + message['content']
    + eos_token }}{% endfor %}{{ '<|assistant|>' }}"""
THINKS = "{% if enable_thinking is not defined or enable_thinking %}maybe{% else %}sure{% endif %}"
REJECTS = "{% if messages[0]['role'] == 'system' %}{{ raise_exception('no system') }}{% endif %}"
IGNORES = TURNS.replace("messages %}", "messages if message['role'] == 'user' %}")


def test_a_model_says_what_it_is_made_to_say(load: Maker, canned: Path) -> None:
    model = load(canned)

    assert say(model) == SENTENCE
    assert model.name == "llama:canned"


def test_the_answer_depends_on_the_prompt(load: Maker, tmp_path: Path) -> None:
    model = load(keywords_model(tmp_path / "k.gguf", ["harbour", "dark mode", "plum"]))

    assert say(model, "A plum, dark mode, and dark mode again.") == "dark mode plum"


@pytest.mark.parametrize(("template", "answer"), [
    (TURNS, "dark mode plum"),
    (f"{{{{ bos_token }}}}{REJECTS}{TURNS}", "dark mode plum"),
    (IGNORES, "dark mode plum"),
    (TURNS + THINKS, "dark mode plum sure"),
    (TURNS + "<think>\n", "dark mode plum </think>"),
])  # fmt: skip
def test_a_prompt_has_all_that_is_asked_and_no_thinking(
    load: Maker, tmp_path: Path, template: str, answer: str
) -> None:
    words = ["dark mode", "plum", "maybe", "sure", "</think>"]
    model = load(keywords_model(tmp_path / "k.gguf", words, template=template))
    messages = [
        {"role": "system", "content": "Say what you read of a plum."},
        {"role": "user", "content": "Dark mode: dark mode, dark mode."},
    ]

    said = model.complete(messages, max_tokens=50, temperature=0.0)

    assert said == answer


def test_a_prompt_begins_with_the_first_token_once(tmp_path: Path) -> None:
    llama_cpp = importlib.import_module("llama_cpp")
    for template in (TURNS, "{{ bos_token }}" + TURNS):
        path = keywords_model(tmp_path / "k.gguf", ["plum"], template=template)
        load = LoadModel(str(path), None, 1, 0, 0)
        engine = CompletionEngine(llama_cpp, load)
        asked = [{"role": "user", "content": "A plum."}]

        engine.answer(Complete(asked, 10, 0.0))

        first, second, *_ = engine._llama.input_ids  # noqa: SLF001 nothing else shows the prompt
        assert first == BOS != second


@pytest.mark.parametrize(("text", "is_loop"), [
    ("It works. " + "She likes the boat. " * 3, False),
    ("It works. " + "She likes the boat. " * 6, True),
    ("It works. " + "She likes the boat. " * 6 + "She li", True),
    ("".join(f"At 14:1{at} she says: I am glad.\n" for at in range(6)), True),
    ("| --- | --- | --- |\n", False),
    ("ha" * 100, True),
    ("", False),
])  # fmt: skip
def test_an_answer_that_says_the_same_again_and_again_is_looping(
    text: str, *, is_loop: bool
) -> None:
    assert is_looping(text) is is_loop


def test_a_loop_is_ended_early(load: Maker, tmp_path: Path) -> None:
    path = tmp_path / "loop.gguf"
    model = load(canned_model(path, "and so on", endless=True, context=30_000))

    said = say(model, max_tokens=20_000)

    assert said.startswith("and so on and so on")
    assert len(said) < 200


def test_the_same_prompt_has_the_same_answer(load: Maker, tmp_path: Path) -> None:
    model = load(random_model(tmp_path / "random.gguf"))
    messages = [{"role": "user", "content": "Tell me something."}]

    first, second = (
        model.complete(messages, max_tokens=20, temperature=0.9) for _ in "ab"
    )

    assert first == second


def test_tokens_are_counted_by_the_models_own_count(load: Maker, canned: Path) -> None:
    model = load(canned)

    assert model.count_tokens("") == 0
    assert model.count_tokens("abc") == 4  # and the space that is put before
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


def test_a_prompt_over_the_window_is_refused(load: Maker, canned: Path) -> None:
    model = load(canned)

    with pytest.raises(
        SummarizerFailed, match=r"window.*of 2048.*llm\.context_tokens"
    ) as caught:
        say(model, PRIVATE * 400)

    assert PRIVATE not in str(caught.value)
    assert say(model) == SENTENCE


@pytest.mark.parametrize(("content", "words"), [
    (None, "cannot be read.*mnem model pull"),
    (b"", "not a model"),
    (b"<!DOCTYPE html>", "not a model"),
    (b"GGUF", "damaged"),
    (b"GGUF" + bytes(4096), "damaged"),
    (b"GGUF\3\0\0\0" + b"\xff" * 4096, "damaged"),
])  # fmt: skip
def test_what_is_no_model_is_named(
    load: Maker, tmp_path: Path, content: bytes | None, words: str
) -> None:
    path = tmp_path / "some.gguf"
    if content is not None:
        path.write_bytes(content)

    before = child_pids()
    with pytest.raises(ModelUnavailable, match=words) as caught:
        say(load(path), PRIVATE)

    assert PRIVATE not in str(caught.value)
    assert child_pids() == before


@pytest.mark.parametrize("share", [0.01, 0.1, 0.5, 0.999])
def test_a_truncated_model_is_named(load: Maker, canned: Path, share: float) -> None:
    whole = canned.read_bytes()
    canned.write_bytes(whole[: int(len(whole) * share)])

    with pytest.raises(ModelUnavailable, match="damaged"):
        say(load(canned))


def test_a_file_is_verified_by_loading_it(canned: Path) -> None:
    store = ModelStore()
    assert store.verify(canned).problems == ()

    canned.write_bytes(canned.read_bytes()[:-20_000])

    (problem,) = store.verify(canned).problems
    assert "damaged, cut short" in problem


def test_a_window_beyond_the_memory_is_refused(load: Maker, tmp_path: Path) -> None:
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
