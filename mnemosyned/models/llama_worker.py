"""Worker process with the language model: requests on standard input, replies on output."""

from __future__ import annotations

import ctypes
import os
import queue
import re
import signal
import sys
import threading
from collections.abc import Mapping
from contextlib import suppress
from enum import StrEnum
from pathlib import Path
from typing import IO, Any

import msgspec

from mnemosyned.models.workers import read_frame, write_frame

_LABEL = re.compile(r"(\d+(?:\.\d+)?)([KMB])")
_SIZES = {"K": 1e3, "M": 1e6, "B": 1e9}


CONTEXT_TOKENS = 4096
"""Context window by default; less if the file's own is smaller."""
HEADER_TOKENS = 8
"""Window while only the file's header is read."""
SEED = 20_260_317
"""Seed of sampling: equal prompts get equal answers."""
NICE_MAX = 19
PR_SET_PDEATHSIG = 1
EMBEDDING_TOKENS = 256
"""Maximum tokens that an embedding model reads of a text. With 512 tokens, a small model would make a question
wait for half a second."""
CACHE_VALUE_BYTES = 2
"""Bytes of a key or value of the window: half precision."""
LOOP_TIMES = 4
"""Number of repetitions at an answer's end, together at least `LOOP_CHARS` long, that are a loop."""
LOOP_CHARS = 120
LOOP_PERIOD_MAX = 300
_DIGIT = re.compile(r"\d")
_THOUGHT_BEGIN = re.compile(r"<(think|thinking)>\s*\Z")
"""End of a prompt whose template has the model think."""


class LoadModel(msgspec.Struct, frozen=True, tag=True):
    """Request to load the model, the first of all requests."""

    model_path: str
    context_tokens: int | None
    threads: int | None
    gpu_layers: int
    nice: int
    embedding: bool = False
    """Load the model only for vectors."""


class CountTokens(msgspec.Struct, frozen=True, tag=True):
    """Request to count the tokens of a text."""

    text: str


class Complete(msgspec.Struct, frozen=True, tag=True):
    """Request to answer a conversation."""

    messages: list[dict[str, str]]
    max_tokens: int
    temperature: float


class Embed(msgspec.Struct, frozen=True, tag=True):
    """Request for the vector of each text."""

    texts: list[str]


class WorkerFailure(StrEnum):
    """Kind of failure of a request; the parent process has the message for it."""

    NO_LIBRARY = "no_library"
    DAMAGED = "damaged"
    NO_MEMORY = "no_memory"
    OVER_WINDOW = "over_window"
    OTHER = "other"


class WorkerReply(msgspec.Struct, frozen=True):
    """Reply to a request: a text, a number, vectors, or a failure."""

    text: str = ""
    number: int = 0
    vectors: list[bytes] = []
    """Unit vectors in half precision, little-endian."""
    parameters: int = 0
    """Weights of the model that was loaded."""
    failure: WorkerFailure | None = None
    detail: str = ""
    """Sizes, or the name of an error; never its message, which may quote a memory."""


# Built at import: at the first use, two threads that decode would crash the process.
REQUESTS = msgspec.msgpack.Decoder(LoadModel | CountTokens | Complete | Embed)
REPLIES = msgspec.msgpack.Decoder(WorkerReply)


class RequestFailed(Exception):
    """Failure to answer a request, with the reply to send."""

    def __init__(self, failure: WorkerFailure, detail: str = "") -> None:
        super().__init__(failure)
        self.reply = WorkerReply(failure=failure, detail=detail)


class CompletionEngine:
    """Language model in llama.cpp, with the file's own tokenizer, window and chat template."""

    def __init__(self, llama_cpp: Any, load: LoadModel) -> None:  # noqa: ANN401 an optional package
        window = _choose_window_tokens(llama_cpp, load)
        self._llama = _open_model(llama_cpp, load, n_ctx=window, seed=SEED)
        self._llama.chat_handler = _make_chat_handler(llama_cpp, self._llama)
        self._control = _compile_control_tokens(llama_cpp, self._llama)

    def answer(self, request: CountTokens | Complete | Embed) -> WorkerReply:
        """Return a text's number of tokens, or an answer. Raises `RequestFailed`, also for an `Embed`."""
        if isinstance(request, Embed):
            raise RequestFailed(WorkerFailure.OTHER, "not loaded for vectors")
        if isinstance(request, CountTokens):
            text = self._split_control_tokens(request.text).encode()
            return WorkerReply(
                number=len(self._llama.tokenize(text, add_bos=False, special=False))
            )
        return WorkerReply(text=self._complete(request))

    @property
    def context_tokens(self) -> int:
        """Size of the context window in tokens."""
        return int(self._llama.n_ctx())

    @property
    def parameters(self) -> int:
        """Number of the model's weights; 0 if unknown."""
        label = _LABEL.fullmatch(self._llama.metadata.get("general.size_label", ""))
        if label:
            return int(float(label[1]) * _SIZES[label[2]])
        with suppress(Exception):
            import llama_cpp  # noqa: PLC0415 an extra

            return int(llama_cpp.llama_model_n_params(self._llama.model))
        return 0

    def _complete(self, request: Complete) -> str:
        """Return the model's answer. Raises `RequestFailed` if the conversation is too long for the window."""
        messages = [
            {**message, "content": self._split_control_tokens(message["content"])}
            for message in request.messages
        ]
        text = ""
        try:
            for chunk in self._llama.create_chat_completion(
                messages,
                max_tokens=request.max_tokens,
                temperature=request.temperature,
                seed=SEED,
                stream=True,
            ):
                text += chunk["choices"][0]["delta"].get("content") or ""
                if is_looping(text):
                    break
        except ValueError as error:
            if "context window" in str(error):
                tokens = re.search(r"\((\d+)\)", str(error))
                detail = f"{tokens[1]} of {self.context_tokens}" if tokens else ""
                raise RequestFailed(WorkerFailure.OVER_WINDOW, detail) from error
            raise
        return text.strip()

    def _split_control_tokens(self, text: str) -> str:
        """Return the text with a blank within control tokens, so that the model reads plain words."""
        return self._control.sub(lambda mark: f"{mark[0][0]} {mark[0][1:]}", text)


def _make_chat_handler(llama_cpp: Any, llama: Any) -> Any:  # noqa: ANN401 an optional package
    """Return a handler that writes prompts by the file's chat template; None if the file has none.

    A model that can think before it answers does not: its thoughts would use up the answer's tokens.
    """
    template = llama.metadata.get("tokenizer.chat_template")
    if template is None:
        return None
    formats = llama_cpp.llama_chat_format
    bos, eos = (
        llama.detokenize([token], special=True).decode() if token >= 0 else ""
        for token in (llama.token_bos(), llama.token_eos())
    )
    write = formats.Jinja2ChatFormatter(template, eos_token=eos, bos_token=bos)

    def write_prompt(*, messages: list[dict[str, str]], **_: object) -> Any:  # noqa: ANN401 likewise
        """Return the prompt; the first message joins the second if the template rejects or ignores it."""
        first = messages[0]["content"]
        try:
            written = write(messages=messages, enable_thinking=False)
        except ValueError:  # Gemma 2 takes no system message, Phi-3 ignored it at first
            written = None
        if written is None or first.strip() not in written.prompt:
            user = "\n\n".join(message["content"] for message in messages)
            joined = [{"role": "user", "content": user}]
            written = write(messages=joined, enable_thinking=False)
        if thought := _THOUGHT_BEGIN.search(written.prompt):
            written.prompt += f"\n</{thought[1]}>\n\n"
        # Where the template leaves out the first token, the vocabulary says whether it is needed.
        written.added_special = bool(bos) and written.prompt.startswith(bos)
        return written

    return formats.chat_formatter_to_chat_completion_handler(write_prompt)


def is_looping(text: str) -> bool:
    """Return True if a text ends with a repetition of the same characters, apart from digits."""
    text = _DIGIT.sub("0", text[-LOOP_TIMES * LOOP_PERIOD_MAX :])
    return any(
        text.endswith(text[-size:] * max(LOOP_TIMES, -(-LOOP_CHARS // size)))
        for size in range(1, min(LOOP_PERIOD_MAX, len(text) // LOOP_TIMES) + 1)
    )


class EmbeddingEngine:
    """Embedding model in llama.cpp, with mean pooling unless the file names another."""

    parameters = 0

    def __init__(self, llama_cpp: Any, load: LoadModel) -> None:  # noqa: ANN401 an optional package
        self.context_tokens = min(
            _choose_window_tokens(llama_cpp, load), EMBEDDING_TOKENS
        )
        unpooled = llama_cpp.LLAMA_POOLING_TYPE_NONE
        pooling = llama_cpp.LLAMA_POOLING_TYPE_UNSPECIFIED
        self._llama = self._load_model(llama_cpp, load, pooling)
        if self._llama.pooling_type() == unpooled:
            self._llama.close()
            pooling = llama_cpp.LLAMA_POOLING_TYPE_MEAN
            self._llama = self._load_model(llama_cpp, load, pooling)

    def _load_model(self, llama_cpp: Any, load: LoadModel, pooling: int) -> Any:  # noqa: ANN401
        """Load and return the embedding model, with the given kind of pooling."""
        return _open_model(
            llama_cpp,
            load,
            embedding=True,
            pooling_type=pooling,
            n_ctx=self.context_tokens,
            n_batch=self.context_tokens,  # a text is read as a whole
            n_ubatch=self.context_tokens,
        )

    def answer(self, request: CountTokens | Complete | Embed) -> WorkerReply:
        """Return unit vectors of texts, cut to the window. Raises `RequestFailed`, also for other requests."""
        import numpy as np  # noqa: PLC0415 llama_cpp brings it

        if not isinstance(request, Embed):
            raise RequestFailed(WorkerFailure.OTHER, "loaded for vectors")
        vectors = []
        for text in request.texts:  # one by one: a batch is no quicker on a processor
            vector = np.asarray(self._llama.embed(text), dtype=np.float32)
            length = float(np.linalg.norm(vector))
            if not np.isfinite(length) or length == 0:
                raise RequestFailed(WorkerFailure.OTHER, "no direction")
            vectors.append((vector / length).astype("<f2").tobytes())
        return WorkerReply(vectors=vectors)


def _open_model(llama_cpp: Any, load: LoadModel, **options: Any) -> Any:  # noqa: ANN401
    """Load the model's file with `options`. Raises `RequestFailed` if it is damaged or memory too small."""
    try:
        return llama_cpp.Llama(
            load.model_path,
            n_threads=load.threads or None,
            n_threads_batch=load.threads or None,
            n_gpu_layers=load.gpu_layers,
            verbose=False,
            **options,
        )
    except ValueError as error:
        no_context = "context" in str(error)
        failure = WorkerFailure.NO_MEMORY if no_context else WorkerFailure.DAMAGED
        raise RequestFailed(failure) from error


def _choose_window_tokens(llama_cpp: Any, load: LoadModel) -> int:  # noqa: ANN401
    """Return the context window in tokens: as configured, or the model's own up to `CONTEXT_TOKENS`.

    Raises `RequestFailed` if the file is damaged, or if there is no GPU and too little free memory.
    """
    try:
        header = llama_cpp.Llama(
            load.model_path, vocab_only=True, n_ctx=HEADER_TOKENS, verbose=False
        )
        facts: Mapping[str, str] = header.metadata
        header.close()
    except (ValueError, AssertionError) as error:
        raise RequestFailed(WorkerFailure.DAMAGED) from error
    kind = facts.get("general.architecture", "")
    trained = _read_metadata_int(facts, f"{kind}.context_length", CONTEXT_TOKENS)
    tokens = load.context_tokens or min(trained, CONTEXT_TOKENS)
    needed = Path(load.model_path).stat().st_size + tokens * _compute_bytes_per_token(
        facts, kind
    )
    free = _free_memory_bytes()
    if not load.gpu_layers and free is not None and needed > free:
        detail = (
            f"{tokens:,} tokens; {needed / 1e9:,.1f} GB, {free / 1e9:,.1f} GB are free"
        )
        raise RequestFailed(WorkerFailure.NO_MEMORY, detail)
    return tokens


def _compute_bytes_per_token(facts: Mapping[str, str], kind: str) -> int:
    """Return how many bytes each token of the context window takes, by `facts`, a model's metadata.

    `kind` is the name of the model's architecture.
    """
    heads = _read_metadata_int(facts, f"{kind}.attention.head_count", 1)
    head = _read_metadata_int(facts, f"{kind}.embedding_length", 0) // max(heads, 1)
    keys = _read_metadata_int(facts, f"{kind}.attention.key_length", head)
    values = _read_metadata_int(facts, f"{kind}.attention.value_length", head)
    per_layer = _read_metadata_int(facts, f"{kind}.attention.head_count_kv", heads) * (
        keys + values
    )
    return (
        _read_metadata_int(facts, f"{kind}.block_count", 1)
        * per_layer
        * CACHE_VALUE_BYTES
    )


def _read_metadata_int(facts: Mapping[str, str], name: str, otherwise: int) -> int:
    """Return the integer under a name in the file's metadata; `otherwise` if there is none."""
    text = facts.get(name, "")
    return int(text) if text.isdigit() else otherwise


def _free_memory_bytes() -> int | None:
    """Return the bytes of memory that this process may still take; None if unknown.

    This is the least that the machine or any of the process's control groups has free.
    """
    sizes = []
    with suppress(OSError, KeyError, ValueError):  # hidden from a hardened service
        lines = Path("/proc/meminfo").read_text().splitlines()
        values = dict(line.split(":", 1) for line in lines)
        sizes.append(int(values["MemAvailable"].split()[0]) * 1024)
    with suppress(OSError):
        group = Path("/proc/self/cgroup").read_text().rpartition("0::/")[2].strip()
        place = Path("/sys/fs/cgroup", group)
        for folder in (place, *place.parents):
            with suppress(OSError, ValueError):  # no limit here
                most = int((folder / "memory.max").read_text())
                used = int((folder / "memory.current").read_text())
                lines = (folder / "memory.stat").read_text().splitlines()
                stat = dict(line.split() for line in lines)
                given_back = int(stat.get("inactive_file", 0))  # when needed
                sizes.append(most - used + given_back)
    return min(sizes, default=None)


def _compile_control_tokens(llama_cpp: Any, llama: Any) -> re.Pattern[str]:  # noqa: ANN401
    """Return the pattern that matches the model's control tokens and "<|", their usual beginning."""
    vocabulary = llama._model.vocab  # noqa: SLF001 it has no public name
    marks = {"<|"}
    for token in range(llama.n_vocab()):
        if llama_cpp.llama_vocab_is_control(vocabulary, token):
            piece = llama_cpp.llama_vocab_get_text(vocabulary, token).decode(
                errors="ignore"
            )
            if len(piece) > 1:
                marks.add(piece)
    longest_first = sorted(marks, key=len, reverse=True)
    return re.compile("|".join(map(re.escape, longest_first)))


def _lower_priority(nice: int) -> None:
    """Lower the priority of this process by `nice`; at 19, run only when the processor is idle.

    For this, the process has the policy `SCHED_IDLE`: at nice 19 alone, others would wait for a time
    slice to end, which is longer than most calls to the daemon.
    """
    os.nice(nice)
    if nice == NICE_MAX and sys.platform == "linux":
        with suppress(OSError):  # not allowed: what `nice` does has to do
            os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))


def _serve_requests(requests: queue.SimpleQueue[bytes], answers: IO[bytes]) -> None:
    """Answer requests on the stream `answers`, without end; the first one must be a `LoadModel`."""
    engine: CompletionEngine | EmbeddingEngine | None = None

    def answer(frame: bytes) -> WorkerReply:
        """Decode a request and return its reply. Raises `RequestFailed`."""
        nonlocal engine
        request = REQUESTS.decode(frame)
        if isinstance(request, LoadModel):
            _lower_priority(request.nice)
            try:
                import llama_cpp  # noqa: PLC0415 only this process pays for it
            except (ImportError, OSError, RuntimeError) as error:
                raise RequestFailed(
                    WorkerFailure.NO_LIBRARY, type(error).__name__
                ) from error
            engine = (
                EmbeddingEngine(llama_cpp, request)
                if request.embedding
                else CompletionEngine(llama_cpp, request)
            )
            return WorkerReply(
                number=engine.context_tokens, parameters=engine.parameters
            )
        if engine is None:
            raise RequestFailed(WorkerFailure.OTHER, "not loaded")
        return engine.answer(request)

    while True:
        frame = requests.get()
        try:
            reply = answer(frame)
        except RequestFailed as failed:
            reply = failed.reply
        except MemoryError:
            reply = WorkerReply(failure=WorkerFailure.NO_MEMORY)
        except Exception as error:  # noqa: BLE001 the parent raises it as its own
            kind = type(error).__name__
            reply = WorkerReply(failure=WorkerFailure.OTHER, detail=kind)
        write_frame(answers, msgspec.msgpack.encode(reply))


def _queue_requests(requests: queue.SimpleQueue[bytes]) -> None:
    """Put each request from standard input into the queue; when the input closes, end the process.

    It runs in a thread of its own, so that the process ends at once, also during inference.
    """
    while (frame := read_frame(sys.stdin.buffer)) is not None:
        requests.put(frame)
    os._exit(0)


def main() -> None:
    """Answer requests until standard input closes, as happens when the parent process ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent to answer
    signal.pthread_sigmask(signal.SIG_SETMASK, [])
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        # Where memory runs out all the same, the system ends this process and not the daemon.
        with suppress(OSError):
            Path("/proc/self/oom_score_adj").write_text("1000")
    answers = os.fdopen(os.dup(1), "wb")
    # Whatever the library prints is no answer.
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    requests: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    threading.Thread(target=_queue_requests, args=[requests], daemon=True).start()
    _serve_requests(requests, answers)


if __name__ == "__main__":
    main()
