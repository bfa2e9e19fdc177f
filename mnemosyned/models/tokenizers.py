"""Token counters: a vocabulary on disk, or the language model; none is downloaded."""

from __future__ import annotations

import base64
import binascii
import re
import unicodedata
from itertools import pairwise
from pathlib import Path

from mnemosyned.errors import SummarizerFailed, TokenizerUnusable
from mnemosyned.logs import logger
from mnemosyned.memory.engine_ports import TextModel
from mnemosyned.text.token_counts import TokenCounter
from mnemosyned.text.word_cache import WordCache
from mnemosyned.version import install_command

log = logger()


class ModelCounter:
    """Token counter that asks a model; after a failure another counter takes over for good."""

    def __init__(self, model: TextModel, *, otherwise: TokenCounter) -> None:
        self._model = model
        self._otherwise = otherwise
        self._failed = False

    @property
    def name(self) -> str:
        """Name of the counter in use: the model's, or after a failure that of `otherwise`."""
        return self._otherwise.name if self._failed else self._model.name

    def count(self, text: str) -> int:
        """Return the number of tokens of a text by the model or, once that has failed, by `otherwise`."""
        if not self._failed:
            try:
                return self._model.count_tokens(text)
            except SummarizerFailed as error:
                self._failed = True
                log.warning(
                    "counter_fallback", model=self._model.name, reason=error.message
                )
        return self._otherwise.count(text)


def open_counter(vocabulary: Path) -> TokenCounter:
    """Return a token counter for a `tokenizer.json` or `*.tiktoken`. Raises `TokenizerUnusable`."""
    if vocabulary.suffix == ".tiktoken":
        return RanksCounter(vocabulary)
    if vocabulary.suffix == ".json":
        return PackagedCounter(vocabulary)
    raise TokenizerUnusable(
        f"{vocabulary} is neither a tokenizer.json nor a *.tiktoken file; name one of these"
    )


class PackagedCounter:
    """Token counter with a `tokenizer.json`; the marks around a message do not count."""

    def __init__(self, path: Path) -> None:
        """Load the file by the package `tokenizers`. Raises `TokenizerUnusable`."""
        try:
            from tokenizers import Tokenizer  # noqa: PLC0415 optional, and slow to load
        except ImportError as error:
            raise TokenizerUnusable(
                f"{path} needs the package tokenizers: {install_command('tokenizers')}"
            ) from error
        try:
            self._tokenizer = Tokenizer.from_file(str(path))
        except Exception as error:  # the package raises nothing more exact
            raise TokenizerUnusable(
                f"{path} cannot be read as a tokenizer.json; name another file"
            ) from error
        self.name = f"tokenizers:{path.parent.name}/{path.name}"

    def count(self, text: str) -> int:
        """Return the number of tokens of a text in the vocabulary of the `tokenizer.json`."""
        readable = text.encode(errors="replace").decode()
        return len(self._tokenizer.encode(readable, add_special_tokens=False).ids)


BYTES_MAX = 16 << 20
"""The largest published vocabulary takes 3.6 MB."""
PIECES_MAX = 1 << 14
PIECE_BYTES_MAX = 768
"""Maximum bytes merged at once, as merging takes the square of a piece's length."""
NEVER = 1 << 32
"""Rank of two parts that form no token."""
O200K_RANKS = 150_000
"""Number of ranks above which a vocabulary uses the later of the two patterns."""

ASTRAL = 0x20000
"""Code point from which living scripts have neither capitals nor combining marks."""

# `re` knows no \p{L}: a letter is a word character that is no digit and no underscore.
_REST = r"|\d{1,3}| ?(?:[^\s\w]|_)+%s|\s*[\r\n]+|\s+(?!\S)|\s+"
_ELIDED = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)"
_CL100K = _ELIDED + r"|(?:[^\r\n\w]|_)?[^\W\d_]+" + _REST % r"[\r\n]*"


def _compile_split_pattern(ranks: int) -> re.Pattern[str]:
    """Return the pattern that splits a text for a vocabulary of `ranks` tokens: cl100k, or the larger o200k."""
    if ranks <= O200K_RANKS:
        return re.compile(_CL100K)
    upper, marks = _list_characters("Lu", "Lt"), _list_characters("Mn", "Mc", "Me")
    word = f"[{upper}]*(?:(?![{upper}])[^\\W\\d_]|[{marks}])+|[{upper}]+"
    return re.compile(
        f"(?:[^\\r\\n\\w]|_)?(?:{word})(?:{_ELIDED})?" + _REST % r"[\r\n/]*"
    )


def _list_characters(*categories: str) -> str:
    """Return all characters of these Unicode categories, such as "Lu", in one text."""
    return "".join(
        chr(at) for at in range(ASTRAL) if unicodedata.category(chr(at)) in categories
    )


class RanksCounter:
    """Token counter with the counts of tiktoken; `<|endoftext|>` and such are plain text."""

    def __init__(self, path: Path) -> None:
        """Load a `*.tiktoken` file. Raises `TokenizerUnusable`."""
        self.name = f"tiktoken:{path.stem}"
        self._ranks = _read_ranks(path)
        self._pattern = _compile_split_pattern(len(self._ranks))
        self._sizes = WordCache(self._count_piece, entries_max=PIECES_MAX)

    def count(self, text: str) -> int:
        """Return the number of tokens of a text in the vocabulary of the `*.tiktoken` file."""
        return sum(map(self._sizes.__getitem__, self._pattern.findall(text)))

    def _count_piece(self, piece: str) -> int:
        """Return the number of tokens of a piece of text, such as a word with its space."""
        data = piece.encode(errors="replace")
        if data in self._ranks:
            return 1
        return sum(
            self._count_merged(data[start : start + PIECE_BYTES_MAX])
            for start in range(0, len(data), PIECE_BYTES_MAX)
        )

    def _count_merged(self, data: bytes) -> int:
        """Return the number of tokens of bytes by byte-pair encoding, merging the lowest ranks first."""
        parts = [data[at : at + 1] for at in range(len(data))]
        ranks = [self._rank_of(one, two) for one, two in pairwise(parts)]
        while ranks and (lowest := min(ranks)) < NEVER:
            at = ranks.index(lowest)
            parts[at : at + 2] = [parts[at] + parts[at + 1]]
            del ranks[at]
            if at:
                ranks[at - 1] = self._rank_of(parts[at - 1], parts[at])
            if at < len(ranks):
                ranks[at] = self._rank_of(parts[at], parts[at + 1])
        return len(parts)

    def _rank_of(self, one: bytes, two: bytes) -> int:
        """Return the rank of the token that two parts form; `NEVER` if they form none."""
        return self._ranks.get(one + two, NEVER)


def _read_ranks(path: Path) -> dict[bytes, int]:
    """Return the rank of each token in a `*.tiktoken` file. Raises `TokenizerUnusable`."""
    try:
        if path.stat().st_size > BYTES_MAX:
            raise TokenizerUnusable(
                f"{path} is too large for a vocabulary; name another file"
            )
        lines = path.read_bytes().splitlines()
    except OSError as error:
        raise TokenizerUnusable(
            f"the vocabulary {path} cannot be read ({error.strerror}); name another file"
        ) from error
    ranks: dict[bytes, int] = {}
    try:
        for line in lines:
            if line:
                token, rank = line.split()
                ranks[base64.b64decode(token, validate=True)] = int(rank)
    except (ValueError, binascii.Error) as error:
        raise TokenizerUnusable(
            f"{path} is not a tiktoken vocabulary: line {len(ranks) + 1} is not a token and its rank"
        ) from error
    if not ranks:
        raise TokenizerUnusable(f"{path} is empty, so it is not a tiktoken vocabulary")
    return ranks
