"""The real llama.cpp making vectors, on models made here: alone, and in a real daemon."""

import os
import signal
import struct
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from e2e.daemons import Daemon, Json, eventually, rows, running
from support.gguf import canned_model, meaning_model
from support.processes import child_pids

from mnemosyned.config.settings import EmbeddingConfig
from mnemosyned.errors import EmbedderFailed, ModelUnavailable
from mnemosyned.models.llama import LlamaEmbedder

pytestmark = pytest.mark.llm

MEANINGS = [["car", "tesla"], ["dentist", "tooth"], ["trip", "lisbon"]]
Maker = Callable[..., LlamaEmbedder]


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return meaning_model(tmp_path / "meaning.gguf", MEANINGS)


@pytest.fixture
def load() -> Iterator[Maker]:
    made: list[LlamaEmbedder] = []

    def make(path: Path, **options: Any) -> LlamaEmbedder:  # noqa: ANN401
        usual = {"threads": 1, "nice": 10, "time_limit_s": 20.0, "idle_s": 60.0}
        settings = EmbeddingConfig(**{**usual, **options})
        made.append(LlamaEmbedder(settings, model_path=path))
        return made[-1]

    yield make
    for embedder in made:
        embedder.close()


def numbers(vector: bytes) -> tuple[float, ...]:
    return struct.unpack(f"<{len(vector) // 2}e", vector)


def cosine(one: bytes, other: bytes) -> float:
    return sum(a * b for a, b in zip(numbers(one), numbers(other), strict=True))


# ---------------------------------------------------------------------- alone


def test_texts_that_mean_alike_are_near_each_other(load: Maker, model: Path) -> None:
    embedder = load(model)

    car, tesla, tooth, plums = embedder.embed(
        ["a red car", "the tesla", "my tooth aches", "plums are ripe"]
    )

    assert cosine(car, tesla) > 0.95
    assert max(cosine(car, tooth), cosine(car, plums)) < 0.8
    assert embedder.embed_question("a red car") == car
    for vector in (car, tesla, tooth, plums):
        assert cosine(vector, vector) == pytest.approx(1, abs=0.01)


def test_a_text_beyond_the_window_is_read_in_part(load: Maker, model: Path) -> None:
    embedder = load(model)

    long, longer = embedder.embed(
        ["tesla " * 520 + end for end in ("", "my tooth aches")]
    )

    assert long == longer
    assert cosine(long, embedder.embed_question("car")) > 0.7


def test_a_memory_cannot_pose_as_a_mark_of_the_model(load: Maker, model: Path) -> None:
    embedder = load(model)

    plain, marked = embedder.embed(["car", "car </s> <s> <s> <s>"])

    assert cosine(plain, marked) > 0.99


def test_the_prefixes_of_its_makers_are_put_before(load: Maker, model: Path) -> None:
    plain = load(model)
    prefixed = load(model, query_prefix="tooth ", memory_prefix="lisbon ")

    assert prefixed.embed_question("car") == plain.embed_question("tooth car")
    assert prefixed.embed(["car"]) == plain.embed(["lisbon car"])
    assert prefixed.identity() != plain.identity()
    assert load(model).identity() == plain.identity()


@pytest.mark.parametrize("what", ["missing", "no model", "cut short"])
def test_a_file_that_is_no_model_is_named(load: Maker, model: Path, what: str) -> None:
    path = model.with_name("broken.gguf")
    if what != "missing":
        path.write_bytes(
            model.read_bytes()[:20_000] if what == "cut short" else b"no model" * 99
        )
    embedder = load(path)

    with pytest.raises(ModelUnavailable, match=r"embedding\.model_path|damaged"):
        embedder.embed(["a text"])


def test_a_model_without_a_direction_fails_by_name(load: Maker, tmp_path: Path) -> None:
    nothing = load(meaning_model(tmp_path / "zero.gguf", [], context=64, silent=True))

    with pytest.raises(EmbedderFailed, match="no direction"):
        nothing.embed(["a text"])


# ------------------------------------------------------------------ in a daemon


def settings(model: Path) -> dict[str, Json]:
    return {
        "MNEMOSYNE_EMBEDDING_MODEL_PATH": str(model),
        "MNEMOSYNE_EMBEDDING_SIMILARITY_MIN": "0.85",
        "MNEMOSYNE_EMBEDDING_WAIT_MS": "10000",
    }


def wait_until(daemon: Daemon, **wanted: Json) -> None:
    """Wait until the status says so of the embedder."""
    eventually(
        lambda: wanted.items() <= daemon.post("status").body["embedder"].items(),
        f"the embedder has {wanted}",
    )


def ready(daemon: Daemon, *, embedded: int) -> None:
    wait_until(daemon, state="ready", embedded=embedded)


def found(daemon: Daemon, query: str) -> list[str]:
    return [hit["content"] for hit in daemon.post("recall", query=query).body["hits"]]


def test_a_daemon_finds_by_meaning_forgets_and_remembers_its_vectors(
    tmp_path: Path, model: Path
) -> None:
    with running(tmp_path, **settings(model)) as daemon:
        ids = [
            daemon.post("remember", content=text).body["id"]
            for text in ("the tesla came", "my tooth aches", "plums are ripe")
        ]
        ready(daemon, embedded=3)
        assert found(daemon, "car") == ["the tesla came"]
        daemon.post("forget", id=ids[0])
        assert found(daemon, "car") == []
        ready(daemon, embedded=2)
    assert rows(daemon.database, "SELECT count(*) FROM embedding") == [(2,)]

    with running(tmp_path, **settings(model)) as daemon:
        ready(daemon, embedded=2)
        assert found(daemon, "dentist") == ["my tooth aches"]


def test_another_model_takes_over_the_memories_of_the_first(
    tmp_path: Path, model: Path
) -> None:
    other = meaning_model(tmp_path / "other.gguf", [["tesla", "fruit"]])
    with running(tmp_path, **settings(model)) as daemon:
        daemon.post("remember", content="the tesla came")
        ready(daemon, embedded=1)
        assert found(daemon, "fruit") == []

    with running(tmp_path, **settings(other)) as daemon:
        ready(daemon, embedded=1)
        assert found(daemon, "fruit") == ["the tesla came"]
    models = "SELECT name FROM embedding_model JOIN embedding ON model = number"
    assert rows(daemon.database, models) == [("llama:other",)]


def test_a_daemon_stops_while_its_model_loads(tmp_path: Path, model: Path) -> None:
    with running(tmp_path, **settings(model)) as daemon:
        daemon.post("remember", content="the tesla came")
        eventually(
            lambda: child_pids(daemon.process.pid), "the model's process has started"
        )
        code = daemon.stop()
        failures = daemon.events("embedding_failed")

    assert (code, failures) == (0, [])
    assert rows(daemon.database, "SELECT content FROM working_memory") == [
        ("the tesla came",)
    ]


def test_a_killed_model_is_started_again(tmp_path: Path, model: Path) -> None:
    with running(tmp_path, **settings(model)) as daemon:
        daemon.post("remember", content="the tesla came")
        ready(daemon, embedded=1)

        (pid,) = child_pids(daemon.process.pid)
        os.kill(pid, signal.SIGKILL)

        eventually(
            lambda: found(daemon, "car") == ["the tesla came"], "it is found again"
        )


@pytest.mark.parametrize("broken", ["missing", "a model of another kind"])
def test_without_its_model_a_daemon_goes_by_words(tmp_path: Path, broken: str) -> None:
    path = tmp_path / "broken.gguf"
    if broken != "missing":
        path.write_bytes(
            canned_model(tmp_path / "canned.gguf", "a b").read_bytes()[:9_000]
        )
    with running(tmp_path, **settings(path)) as daemon:
        daemon.post("remember", content="the tesla came")
        wait_until(daemon, state="unavailable")

        answer = daemon.post("recall", query="tesla").body

        assert [hit["content"] for hit in answer["hits"]] == ["the tesla came"]
        assert "words alone" in answer["note"]
        assert b"words alone" in daemon.mnem("status").stdout
