"""The built-in sentence encoder: Google's Universal Sentence Encoder, multilingual, version 3.

Vectors of 512 numbers for texts in sixteen languages, near each other where texts mean alike. It runs
on numpy in the thread that calls it. The weights are mapped from a file (`encoder_file.py`) and leave
the process once they are idle.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import threading
import time
import unicodedata
from bisect import bisect_left
from collections.abc import Sequence
from functools import lru_cache
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO

from mnemosyned.errors import ModelUnavailable
from mnemosyned.logs import logger
from mnemosyned.memory.engine_ports import Embedder
from mnemosyned.models import encoder_file
from mnemosyned.paths import cache_dir
from mnemosyned.process_memory import trim_heap
from mnemosyned.search.vectors.packing import load_numpy, pack_four_bits, pack_half
from mnemosyned.text.word_cache import clear_on_forget

TOKENS_MAX = 128
"""Maximum word pieces read of a text. With 512, no more was found in QMSum's meetings, whose turns are long."""
BATCH_TOKENS = 256
"""Word pieces that are computed together: their numbers fit into the processor's cache."""
TEXT_FORM = 2
"""Version of the text that is embedded for a memory, for instance with its role. Raising it has all vectors
made again, as the confidence of hits is fitted on cosines."""
WORDS_MAX, WORD_CHARS_MAX = 8_192, 24
"""Words whose pieces are remembered; longer ones, such as a clause of Chinese, seldom return."""
PIECE_CHARS_MAX = 16
RECENT_MAX, RECENT_AT_ONCE = 16, 2
"""Vectors of recent texts that are kept, and how many texts a call may have to look there: a prompt's hook
asks several things of one text, which becomes a memory, too."""
UNKNOWN, BEGIN, END = 0, 1, 2
UNKNOWN_PENALTY = 10.0
"""How much less an unknown character scores than the rarest piece."""
SPACES = str.maketrans(
    dict.fromkeys("\t\n\f\r\u1680\u200b\u200e\u200f\u2028\u2029\u2581\ufeff\ufffd", " ")
)
"""Characters that the encoder's vocabulary reads as spaces, besides those of NFKC."""
WIDE_TILDE = "\uff5e"
"""The one character of NFKC that the vocabulary keeps."""
DIMENSIONS, CNN_DIMENSIONS = 512, 256
QUESTION_MAP = Path(__file__).with_name("questions.npz")
ROWS_MAPPED_MAX = 100
"""Rows of the table read before its memory pages are released; each row maps up to 64 KB."""
GAP = 2
"""Empty rows between texts, as many as an n-gram reaches beyond a text."""
EPSILON = 1e-12
CLOSED_CHECK_S = 0.05
"""Seconds between checks whether the encoder was closed while its file is made."""
IDLE_S = 30.0
SIMILARITY_MIN = 0.12
"""Minimum cosine of a memory found by its vector alone. One in twenty memories that answer a question in
another language or in other words has a cosine below .17. Across languages 0.2 found .88 in five, 0.12 finds
.90; the ranking rates the rest."""

log = logger()


class _LoadedEncoder:
    """The encoder while it is mapped. Safe from any thread."""

    def __init__(self, file: BinaryIO) -> None:
        """Map the encoder's file. Raises `ModelUnavailable`."""
        self._np = load_numpy()
        self._file = encoder_file.EncoderFile(file)
        self._arrays = self._file.arrays
        self._rows_read = 0
        prefixes, pieces, scores = (
            memoryview(self._arrays[name]) for name in ("prefixes", "pieces", "scores")
        )
        unknown = min(scores) - UNKNOWN_PENALTY

        def split_word(word: str) -> tuple[int, ...]:
            """Return the pieces of a word that score best together (Viterbi's algorithm)."""
            count = len(word)
            best = [0.0] + [float("-inf")] * count
            steps = [(0, UNKNOWN)] * (count + 1)
            for start in range(count):
                base = best[start]
                if base + unknown > best[start + 1]:
                    best[start + 1] = base + unknown
                    steps[start + 1] = start, UNKNOWN
                prefix = 0
                for end in range(start, min(start + PIECE_CHARS_MAX, count)):
                    prefix = encoder_file.hash_prefix(prefix, word[end])
                    place = bisect_left(prefixes, prefix)
                    if place == len(prefixes) or prefixes[place] != prefix:
                        break
                    piece = pieces[place]
                    if (
                        piece != encoder_file.NO_PIECE
                        and base + scores[piece] > best[end + 1]
                    ):
                        best[end + 1] = base + scores[piece]
                        steps[end + 1] = start, piece
            found: list[int] = []
            while count:
                count, piece = steps[count]
                found.append(piece)
            return tuple(reversed(found))

        self._split = split_word
        self._split_cached = lru_cache(WORDS_MAX)(split_word)

    def tokens(self, text: str) -> list[int]:
        """Return the ids of the first word pieces of a text, after `BEGIN` and before `END`.

        At most `TOKENS_MAX` ids precede `END`.
        """
        text = text.translate(SPACES)
        if not text.isascii():
            parts = text.split(WIDE_TILDE)
            text = WIDE_TILDE.join(
                unicodedata.normalize("NFKC", part) for part in parts
            )
        ids = [BEGIN]
        for word in text.split(" "):
            if word:
                is_short = len(word) < WORD_CHARS_MAX
                split = self._split_cached if is_short else self._split
                ids += split(f"\u2581{word}"[: TOKENS_MAX * PIECE_CHARS_MAX])
            if len(ids) > TOKENS_MAX:
                break
        if len(ids) == 1:
            ids.append(UNKNOWN)
        return [*ids[:TOKENS_MAX], END]

    def encode(self, rows: Sequence[Sequence[int]]) -> Any:  # noqa: ANN401 numpy is loaded late
        """Return a matrix with a unit vector per text, each given as the ids of its word pieces."""
        made: list[Any] = []
        batch: list[Sequence[int]] = []
        count = 0
        for row in rows:
            if batch and count + len(row) > BATCH_TOKENS:
                made.append(self._encode_batch(batch))
                batch, count = [], 0
            batch.append(row)
            count += len(row)
        made.append(self._encode_batch(batch))
        return self._np.concatenate(made)

    def _encode_batch(self, rows: Sequence[Sequence[int]]) -> Any:  # noqa: ANN401 numpy is loaded late
        """Return a matrix with the vectors of a few texts, given as word pieces.

        The texts are stacked in one matrix, with `GAP` empty rows between them to keep them apart.
        """
        np, weights = self._np, self._arrays
        lengths = np.array([len(row) for row in rows])
        ends = np.cumsum(lengths + GAP) - GAP
        starts = ends - lengths
        total = int(ends[-1])
        ids = np.fromiter(
            chain.from_iterable((*row, *[UNKNOWN] * GAP) for row in rows),
            np.int64,
            total,
        )
        gaps = (ends[:-1, None] + np.arange(GAP)).ravel()

        features = np.empty(
            (total, DIMENSIONS + len(encoder_file.ORDERS) * CNN_DIMENSIONS), np.float32
        )
        words = features[:, :DIMENSIONS]
        chunk = ids % encoder_file.CHUNKS
        words[:] = weights[encoder_file.TABLE][ids]
        self._rows_read += total
        if self._rows_read > ROWS_MAPPED_MAX:
            self._file.release_table()
            self._rows_read = 0
        words *= weights["scale"][chunk, None]
        words += weights["lo"][chunk, None]
        projected = words @ weights["proj_all"]
        projected += weights["proj_b_all"]
        self._normalize(projected, weights["ln_g_all"], weights["ln_b_all"])

        padded = np.zeros((total + 2 * GAP, CNN_DIMENSIONS), np.float32)
        inner = padded[GAP : GAP + total]
        for number, order in enumerate(encoder_file.ORDERS):
            columns = slice(number * CNN_DIMENSIONS, (number + 1) * CNN_DIMENSIONS)
            layer = projected[:, columns]
            # Each row with those around it: rows that overlap in memory.
            windows = np.ndarray(
                (total, order * CNN_DIMENSIONS),
                np.float32,
                padded,
                offset=(GAP - (order - 1) // 2) * padded.strides[0],
                strides=padded.strides,
            )
            for name in ("1", "2"):
                inner[:] = layer
                inner[gaps] = 0.0
                convolved = windows @ weights[f"w{name}_{order}"]
                convolved += weights[f"b{name}_{order}"]
                np.maximum(convolved, 0, out=convolved)
                convolved += layer
                layer = convolved
            features[:, DIMENSIONS + columns.start : DIMENSIONS + columns.stop] = layer
        self._normalize(features, weights["ln_g"], weights["ln_b"])

        # The sum goes before the projection, which is linear: one row for each text is left.
        bounds = np.stack([starts, ends], axis=1).ravel()[:-1]
        mean = np.add.reduceat(features, bounds, axis=0)[::2] @ weights["cnn_W"]
        mean += lengths[:, None] * weights["cnn_b"]
        mean /= np.sqrt(lengths, dtype=np.float32)[:, None]
        first = np.maximum(mean @ weights["d0"], 0)
        second = np.maximum(mean @ weights["p1"] + first @ weights["d1"], 0)
        third = np.maximum(second @ weights["d2"], 0)
        made = np.tanh(second @ weights["p3"] + third @ weights["d3"])
        made /= np.sqrt(np.einsum("ij,ij->i", made, made) + EPSILON)[:, None]
        return made

    def _normalize(self, rows: Any, gain: Any, bias: Any) -> None:  # noqa: ANN401 numpy is loaded late
        """Bring rows to mean 0 and variance 1, in place, then scale them by `gain` and shift them by `bias`."""
        np = self._np
        rows -= rows.mean(axis=1, keepdims=True)
        variance = np.einsum("ij,ij->i", rows, rows) / rows.shape[1]
        rows /= np.sqrt(variance + EPSILON)[:, None]
        rows *= gain
        rows += bias


class SentenceEncoder(Embedder):
    """Embedder that runs in the caller's thread, on weights mapped while in use."""

    name = "builtin:use-multilingual-3"
    in_process = True
    similarity_min = SIMILARITY_MIN

    def __init__(self, *, idle_s: float = IDLE_S) -> None:
        """Map the weights at the first call; let go of them after `idle_s` seconds without one."""
        self._idle_s = idle_s
        self._opening = threading.Lock()
        self._file: BinaryIO | None = None
        self._loaded: _LoadedEncoder | None = None
        self._question_map: Any = None
        self._encode_recent = clear_on_forget(
            lru_cache(RECENT_MAX)(lambda row: self._load_encoder().encode([row])[0])
        )
        """Returns the vector of a text, given as the ids of its word pieces."""
        self._used_at = 0.0
        self._timer: threading.Timer | None = None
        self._closed = 0
        """How often `close` was called."""

    def identity(self) -> str:
        """Return the name of the built-in model, its limit and form of texts, and the hash of its weights."""
        return f"{self.name} {TOKENS_MAX} {TEXT_FORM} {encoder_file.RESOURCES['weights.npz']}"

    def embed(self, texts: Sequence[str]) -> list[bytes]:
        """Return the vectors of texts, packed with four bits per number. Raises `ModelUnavailable`."""
        return pack_four_bits(self.encode(texts)) if texts else []

    def embed_question(self, text: str) -> bytes:
        """Return a question's vector, moved toward the vectors of its answers, in half precision.

        The matrix for the move is made by `make fit-questions`. Raises `ModelUnavailable`.
        """
        if (matrix := self._question_map) is None:
            with load_numpy().load(QUESTION_MAP) as file:
                self._question_map = matrix = file["added"] * file["scales"]
        question = self.encode([text])[0]
        question += question @ matrix
        question /= (question @ question) ** 0.5
        return pack_half([question])[0]

    def encode(self, texts: Sequence[str]) -> Any:  # noqa: ANN401 numpy is loaded late
        """Return a matrix with a unit vector for each of one or more texts. Raises `ModelUnavailable`."""
        self._used_at = time.monotonic()
        loaded = self._load_encoder()
        rows = [tuple(loaded.tokens(text)) for text in texts]
        if len(rows) > RECENT_AT_ONCE:
            return loaded.encode(rows)
        return load_numpy().stack([self._encode_recent(row) for row in rows])

    @property
    def is_prepared(self) -> bool:
        """Whether the encoder's file exists; otherwise the first call takes a second or more to make it."""
        return (
            self._file is not None or (cache_dir() / encoder_file.FILE_NAME).is_file()
        )

    def close(self) -> None:
        """Unload the weights, which the next call loads again. A child process making the file goes on."""
        self._closed += 1
        with self._opening:
            if self._timer:
                self._timer.cancel()
            if self._file:
                self._file.close()
            self._file = self._loaded = None

    def _load_encoder(self) -> _LoadedEncoder:
        """Return the loaded encoder; load it if it was idle. Raises `ModelUnavailable`."""
        if loaded := self._loaded:
            return loaded
        with self._opening:
            if not (loaded := self._loaded):
                self._file = self._file or self._open_file()
                self._loaded = loaded = _LoadedEncoder(self._file)
                self._start_timer(self._idle_s)
            return loaded

    def _start_timer(self, seconds: float) -> None:
        self._timer = threading.Timer(seconds, self._drop_if_idle)
        self._timer.daemon = True
        self._timer.start()

    def _drop_if_idle(self) -> None:
        """Unload the weights if unused for `idle_s` seconds; else check again later."""
        idle_s = time.monotonic() - self._used_at
        if idle_s < self._idle_s:
            self._start_timer(self._idle_s - idle_s)
            return
        self._loaded = self._question_map = None
        self._encode_recent.cache_clear()
        trim_heap()

    def _open_file(self) -> BinaryIO:
        """Return the encoder's file, opened; if it is not in the cache, make it first.

        If the cache cannot be written, the file is temporary, for this process alone. Raises
        `ModelUnavailable`.
        """
        path = cache_dir() / encoder_file.FILE_NAME
        if file := encoder_file.open_encoder_file(path):
            return file
        closed = self._closed
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            return self._make_file(path)
        except (OSError, ModelUnavailable) as error:
            if self._closed != closed:
                raise
            log.warning("encoder_not_cached", path=str(path), reason=str(error))
        with tempfile.TemporaryDirectory(prefix="mnemosyned-") as folder:
            return self._make_file(
                Path(folder) / encoder_file.FILE_NAME, is_lasting=False
            )

    def _make_file(self, path: Path, *, is_lasting: bool = True) -> BinaryIO:
        """Let a child process write the encoder's file, and return it, opened. Raises `ModelUnavailable`.

        If the encoder is closed meanwhile, the child still finishes a lasting file for later programs,
        as short-lived programs would otherwise never have it.
        """
        closed = self._closed
        child = subprocess.Popen(  # noqa: S603 our own module
            [sys.executable, "-P", "-m", encoder_file.__name__, str(path)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,  # Ctrl-C is for the parent to answer
        )
        ended = threading.Event()
        errors: list[str] = []

        def wait_for_child() -> None:
            """Wait until the child process has ended, even after `close`; save its error output."""
            errors.append(child.communicate()[1])
            ended.set()

        threading.Thread(
            target=wait_for_child, name="encoder file", daemon=True
        ).start()
        while not ended.wait(CLOSED_CHECK_S):
            if self._closed != closed:
                if not is_lasting:
                    child.kill()
                    ended.wait()
                raise ModelUnavailable("the encoder was closed")
        if file := encoder_file.open_encoder_file(path):
            log.info("encoder_file_made", path=str(path))
            return file
        reason = errors[0].strip().rpartition("\n")[2] or "its conversion was ended"
        raise ModelUnavailable(f"the built-in encoder cannot be used: {reason}")
