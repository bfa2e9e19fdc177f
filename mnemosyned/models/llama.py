"""Language and embedding models run by llama.cpp in a child process, which ends when idle."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from mnemosyned.config.settings import EmbeddingConfig, LlmConfig
from mnemosyned.errors import EmbedderFailed, ModelUnavailable, SummarizerFailed
from mnemosyned.logs import logger
from mnemosyned.memory.engine_ports import Embedder, TextModel
from mnemosyned.models.llama_worker import (
    REPLIES,
    Complete,
    CountTokens,
    Embed,
    LoadModel,
    WorkerFailure,
    WorkerReply,
)
from mnemosyned.models.workers import WorkerProcess

MAGIC = b"GGUF"

log = logger()


class LlamaModel(TextModel):
    """Model in a GGUF file, run by a child process that starts at the first call.

    One call runs at a time. The process ends when idle, with `close`, and where a call exceeds its
    time limit; the next call starts it again.
    """

    def __init__(
        self, *, model_path: Path, settings: LlmConfig, embedding: bool = False
    ) -> None:
        """Run the model by the settings: for texts, or for vectors if it is for `embedding`."""
        self.name = f"llama:{model_path.stem}"
        self._path = model_path
        self._load = LoadModel(
            model_path=str(model_path.absolute()),
            context_tokens=settings.context_tokens,
            threads=settings.threads or max(1, (os.cpu_count() or 1) // 2),
            gpu_layers=settings.gpu_layers,
            nice=settings.nice,
            embedding=embedding,
        )
        self._section = "embedding" if embedding else "llm"
        self._smaller = (
            "a smaller model" if embedding else "a smaller llm.context_tokens or model"
        )
        self._time_limit_s = settings.time_limit_s
        self._idle_s = settings.idle_s
        self._turn = threading.Lock()
        """Held through a call: one inference at a time."""
        self._state = threading.Lock()
        """Held for an instant, around the two below."""
        self._child: _ModelProcess | None = None
        self._close_count = 0

    @property
    def context_tokens(self) -> int:
        """The context window of the loaded model in tokens; loads the model if necessary."""
        return self._request_reply(None).number

    @property
    def parameters(self) -> int:
        """The number of the loaded model's weights; loads the model if necessary."""
        return self._request_reply(None).parameters

    def count_tokens(self, text: str) -> int:
        """Return the exact number of tokens of a text, counted by the child process."""
        return self._request_reply(CountTokens(text)).number

    def complete(
        self,
        messages: Sequence[Mapping[str, str]],
        *,
        max_tokens: int,
        temperature: float,
    ) -> str:
        """Return the answer that the model in the child process gives to messages."""
        asked = [dict(message) for message in messages]
        return self._request_reply(Complete(asked, max_tokens, temperature)).text

    def embed(self, texts: Sequence[str]) -> list[bytes]:
        """Return each text's unit vector in half precision, little-endian. Raises `SummarizerFailed`."""
        return self._request_reply(Embed(list(texts))).vectors

    def close(self) -> None:
        """End the child process; running and waiting calls fail, later calls start a new process."""
        with self._state:
            child, self._child = self._child, None
            self._close_count += 1
        if child:
            child.end("closed")
            child.join()

    def _request_reply(
        self, request: CountTokens | Complete | Embed | None
    ) -> WorkerReply:
        """Send a request to the child process, once it is free, and return the reply.

        The process is started if necessary. For None, return the process's first reply, to the loading of
        the model. Raises `SummarizerFailed`, or `ModelUnavailable` if the model cannot run.
        """
        until = time.monotonic() + self._time_limit_s
        closings = self._close_count
        if not self._turn.acquire(timeout=self._time_limit_s):
            raise SummarizerFailed(
                f"{self.name} was busy with other calls; try again later"
            )
        try:
            child = self._reserve_process(until, closings)
            try:
                reply = child.ask(request) if request else child.loaded
            finally:
                child.limit(self._idle_s, "idle")
        finally:
            self._turn.release()
        if reply is None:
            raise SummarizerFailed(self._describe_ending(child))
        return self._check_reply(reply)

    def _reserve_process(self, until: float, closings: int) -> _ModelProcess:
        """Return the child process with the model loaded, starting it if necessary.

        The process is killed at `until`, a monotonic time. Raises `SummarizerFailed` if `close` was
        called more than `closings` times so far, or `ModelUnavailable` if the model cannot run.
        """
        child = self._child
        if child and child.limit(until - time.monotonic(), "time_limit"):
            return child
        self._check_installation()
        with self._state:
            if closings != self._close_count:
                raise SummarizerFailed(
                    f"{self.name} was closed; ask again to restart it"
                )
            try:
                self._child = child = _ModelProcess(
                    "mnemosyned.models.llama_worker", replies=REPLIES
                )
            except OSError as error:
                raise ModelUnavailable(
                    f"no process for the model can be started: {error.strerror}"
                ) from error
        child.limit(until - time.monotonic(), "time_limit")
        began = time.monotonic()
        child.loaded = child.ask(self._load)
        if child.loaded is None or child.loaded.failure:
            child.end("unusable")
            child.join()
            if child.loaded is None:
                # Closed by us, the model may still be good.
                is_closed = child.ending == "closed"
                failure = SummarizerFailed if is_closed else ModelUnavailable
                raise failure(self._describe_ending(child))
            self._check_reply(child.loaded)
        took_s = round(time.monotonic() - began, 3)
        log.info("model_started", model=self.name, pid=child.pid, duration_s=took_s)
        return child

    def _check_installation(self) -> None:
        """Raise `ModelUnavailable` unless llama.cpp is installed and the file is a GGUF model."""
        if importlib.util.find_spec("llama_cpp") is None:
            raise ModelUnavailable(
                _FAILURE_TEXTS[WorkerFailure.NO_LIBRARY].format(name=self.name)
            )
        try:
            with self._path.open("rb") as file:
                magic = file.read(len(MAGIC))
        except OSError as error:
            raise ModelUnavailable(
                f"the model {self._path} cannot be read ({error.strerror}); "
                f"name another in {self._section}.model_path"
                + (
                    ", or fetch one with `mnem model pull tinyllama`"
                    * (self._section == "llm")
                )
            ) from error
        if magic != MAGIC:
            raise ModelUnavailable(
                f"{self._path} is not a model in GGUF format; name one in "
                f"{self._section}.model_path"
            )

    def _check_reply(self, reply: WorkerReply) -> WorkerReply:
        """Return the reply of the child process, or raise the error for the failure it reports."""
        if reply.failure is None:
            return reply
        detail = f" ({reply.detail})" if reply.detail else ""
        words = _FAILURE_TEXTS[reply.failure].format(
            name=self.name, path=self._path, detail=detail, smaller=self._smaller
        )
        if reply.failure in (WorkerFailure.OVER_WINDOW, WorkerFailure.OTHER):
            raise SummarizerFailed(words)
        raise ModelUnavailable(words)

    def _describe_ending(self, child: _ModelProcess) -> str:
        """Return the error message for a child process that ended without a reply."""
        if child.ending == "time_limit":
            return (
                f"{self.name} took longer than {self._time_limit_s:g} s and was ended; raise "
                f"{self._section}.time_limit_s, give it more {self._section}.threads, or use a "
                "smaller model"
            )
        if child.ending == "closed":
            return f"{self.name} was closed during a call; ask again to restart it"
        loading = (
            "" if child.loaded else " while it read the model, which may be damaged"
        )
        return (
            f"the process of {self.name} died{loading}; it starts again when next asked, and "
            f"{self._smaller} helps where memory is short"
        )


_FAILURE_TEXTS = {
    WorkerFailure.NO_LIBRARY: (
        "{name} needs the package llama-cpp-python; install it with `make install-llm`"
    ),
    WorkerFailure.DAMAGED: (
        "llama.cpp cannot read {path}: it is damaged, cut short or of a newer kind; check it with "
        "`mnem model verify`, or fetch it again"
    ),
    WorkerFailure.NO_MEMORY: (
        "{name} does not fit into memory{detail}; {smaller} needs less"
    ),
    WorkerFailure.OVER_WINDOW: (
        "the prompt does not fit into the window of {name}{detail}; send less at once, or raise "
        "llm.context_tokens"
    ),
    WorkerFailure.OTHER: "{name} failed{detail}; try again, or use another model",
}


class _ModelProcess(WorkerProcess[WorkerReply]):
    """A child process with a model."""

    loaded: WorkerReply | None = None
    """Reply to loading the model."""

    def ask(
        self, request: LoadModel | CountTokens | Complete | Embed
    ) -> WorkerReply | None:
        """Send a request and wait for its reply; return None if the process ends first."""
        return self.take_reply() if self.send(request) else None

    def note_end(self) -> None:
        """Log that the model's process has ended, and why."""
        log.info("model_ended", pid=self.pid, reason=self.ending)


PIECE_BYTES = 1 << 20
FORM = "1"
"""Version of the embedding of a text; a change re-embeds all memories."""


class LlamaEmbedder(Embedder):
    """Embedder with a model in a GGUF file, and the text prefixes that its makers prescribe."""

    def __init__(self, settings: EmbeddingConfig, *, model_path: Path) -> None:
        llm = LlmConfig(
            threads=settings.threads,
            nice=settings.nice,
            time_limit_s=settings.time_limit_s,
            idle_s=settings.idle_s,
        )
        self._model = LlamaModel(model_path=model_path, settings=llm, embedding=True)
        self.name = self._model.name
        self._path = model_path
        self._settings = settings

    def identity(self) -> str:
        """Return a digest that changes with the embedding model.

        It is made of the file's size, its first, middle and last megabyte, and the prefix for
        memories. Raises `ModelUnavailable`.
        """
        digest = hashlib.sha256()
        try:
            with self._path.open("rb") as file:
                size = self._path.stat().st_size
                digest.update(f"{FORM} {size} {self._settings.memory_prefix}".encode())
                for offset in (0, size // 2, max(0, size - PIECE_BYTES)):
                    file.seek(offset)
                    digest.update(file.read(PIECE_BYTES))
        except OSError as error:
            raise ModelUnavailable(
                f"the model {self._path} cannot be read ({error.strerror}); name another in "
                "embedding.model_path"
            ) from error
        return digest.hexdigest()

    def embed(self, texts: Sequence[str]) -> list[bytes]:
        """Return a vector for each text, with the model's prefix for memories before the text."""
        return self._embed([self._settings.memory_prefix + text for text in texts])

    def embed_question(self, text: str) -> bytes:
        """Return the vector of a question, with the model's prefix for queries before the question."""
        return self._embed([self._settings.query_prefix + text])[0]

    def close(self) -> None:
        """End the child process of the model; the next call starts a new one."""
        self._model.close()

    def _embed(self, texts: list[str]) -> list[bytes]:
        """Return the vectors of texts. Raises `EmbedderFailed` or `ModelUnavailable`."""
        try:
            return self._model.embed(texts)
        except ModelUnavailable:
            raise
        except SummarizerFailed as error:
            raise EmbedderFailed(error.message) from error
