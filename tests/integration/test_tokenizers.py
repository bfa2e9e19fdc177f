import base64
import json
import sys
import time
from pathlib import Path

import pytest
from support.fake_models import FakeTextModel

from mnemosyned.errors import SummarizerFailed, TokenizerUnusable
from mnemosyned.models.tokenizers import ModelCounter, open_counter
from mnemosyned.text.token_counts import Chars4


class WordModel(FakeTextModel):
    """Counts words, until it is broken."""

    name = "words"
    context_tokens = 100
    broken = False

    def count_tokens(self, text: str) -> int:
        if self.broken:
            raise SummarizerFailed("words cannot be asked any more")
        return len(text.split())


def vocabulary(path: Path, *merged: str) -> Path:
    """All bytes, then these in the order in which they are merged."""
    tokens = [bytes([value]) for value in range(256)] + [
        word.encode() for word in merged
    ]
    lines = [
        f"{base64.b64encode(token).decode()} {rank}\n"
        for rank, token in enumerate(tokens)
    ]
    path.write_text("".join(lines))
    return path


def test_pairs_are_merged_in_the_order_of_their_ranks(tmp_path: Path) -> None:
    counter = open_counter(
        vocabulary(tmp_path / "own.tiktoken", "lo", "el", "hel", " w", "or")
    )

    assert counter.name == "tiktoken:own"
    assert counter.count("hello") == 2  # hel lo
    assert counter.count("hello world") == 2 + 4  # " w" or l d
    assert counter.count("") == 0


def test_words_that_end_a_turn_elsewhere_are_only_words(tmp_path: Path) -> None:
    counter = open_counter(vocabulary(tmp_path / "own.tiktoken"))

    assert counter.count("<|endoftext|>") == len("<|endoftext|>")


def test_half_a_character_is_counted_too(tmp_path: Path) -> None:
    assert open_counter(vocabulary(tmp_path / "own.tiktoken")).count("\ud800") == 1


@pytest.mark.thorough
def test_an_endless_word_is_counted_in_bounded_time(tmp_path: Path) -> None:
    counter = open_counter(vocabulary(tmp_path / "own.tiktoken", "aa", "aaaa"))

    began = time.process_time()
    tokens = counter.count("a" * 50_000)

    assert tokens == 12_500
    assert time.process_time() - began < 3


@pytest.mark.parametrize(
    ("name", "content", "why"),
    [
        ("v.tiktoken", b"", "is empty"),
        ("v.tiktoken", b"YQ== 0\nnot base64!\n", "line 2"),
        ("v.tiktoken", b"YQ== one\n", "line 1"),
        ("v.tiktoken", None, "cannot be read"),
        ("v.bin", b"YQ== 0\n", "is neither"),
    ],
)
def test_a_file_that_is_no_vocabulary_is_refused_with_the_reason(
    tmp_path: Path, name: str, content: bytes | None, why: str
) -> None:
    path = tmp_path / name
    if content is not None:
        path.write_bytes(content)

    with pytest.raises(TokenizerUnusable, match=why):
        open_counter(path)


def test_without_its_package_a_tokenizer_json_is_refused_with_the_remedy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "tokenizer.json"
    path.write_text(json.dumps({"version": "1.0"}))
    monkeypatch.setitem(sys.modules, "tokenizers", None)

    with pytest.raises(TokenizerUnusable, match="-m pip install 'tokenizers<1"):
        open_counter(path)


def test_a_model_counts_until_it_cannot_and_each_count_says_who_made_it() -> None:
    model = WordModel()
    counter = ModelCounter(model, otherwise=Chars4())

    first = counter.count("a b c"), counter.name
    model.broken = True
    second = counter.count("a b c d e f g h"), counter.name

    assert first == (3, model.name)
    assert second == (3, "chars4")
