"""Tiny models in llama.cpp's file format, made without a download: noise, one sentence, keywords.

Each is a llama network whose weights are worked out by hand. The tokenizer knows single characters,
all bytes, and the pieces that the model itself says, so every text can be counted and read.
"""

from __future__ import annotations

import math
import random
import struct
from array import array
from collections.abc import Mapping, Sequence
from pathlib import Path

ALIGNMENT = 32
SPACE = "\u2581"
UINT32, FLOAT32, BOOL, STRING, ARRAY = 4, 6, 7, 8, 9
NORMAL, UNKNOWN, CONTROL, USER_DEFINED, BYTE = 1, 2, 3, 4, 6
UNK, BOS, EOS = 0, 1, 2
FFN = 32
HEADS = 4
CERTAIN = 40.0
"""A logit beside which those of all other tokens, zero, have no chance."""
TEMPLATE = (
    "{% for message in messages %}{{ '<|' + message['role'] + '|>\n' + message['content'] "
    "+ eos_token + '\n' }}{% endfor %}{% if add_generation_prompt %}{{ '<|assistant|>\n' }}"
    "{% endif %}"
)

Cells = Mapping[tuple[int, int], float]


class Vocabulary:
    """Tokens in the order of their numbers."""

    def __init__(self) -> None:
        self.pieces: list[str] = []
        self.scores: list[float] = []
        self.kinds: list[int] = []
        self.add("<unk>", UNKNOWN)
        self.add("<s>", CONTROL)
        self.add("</s>", CONTROL)
        for value in range(256):
            self.add(f"<0x{value:02X}>", BYTE)
        for character in (SPACE, *map(chr, range(33, 127))):
            self.add(character, NORMAL, score=-1000)

    def add(self, piece: str, kind: int, score: float = 0.0) -> int:
        """A new token; its number."""
        self.pieces.append(piece)
        self.scores.append(score)
        self.kinds.append(kind)
        return len(self.pieces) - 1

    def say(self, text: str) -> int:
        """A token that the model says and no prompt is split into, unless in single letters."""
        return self.add(
            text.replace(" ", SPACE), NORMAL, score=-2000.0 - len(self.pieces)
        )


def random_model(path: Path) -> Path:
    """A model that answers with noise."""
    chance = random.Random(0)
    width = 64
    vocabulary = Vocabulary()

    def noise(rows: int, columns: int) -> bytes:
        return array(
            "f", (chance.gauss(0, 0.02) for _ in range(rows * columns))
        ).tobytes()

    ends = noise(len(vocabulary.pieces), width), noise(len(vocabulary.pieces), width)
    blocks = [
        {name: noise(*shape) for name, shape in _block_shapes(width).items()}
        for _ in range(2)
    ]
    return _write(path, vocabulary, width=width, context=2048, ends=ends, blocks=blocks)


def canned_model(
    path: Path,
    says: str,
    *,
    context: int = 2048,
    endless: bool = False,
    layers: int = 1,
    width_min: int = 64,
) -> Path:
    """A model that says one sentence whatever it is asked; `endless`, again and again.

    Its blocks add nothing, so that the last token alone decides which comes next; they are worked
    through all the same, and `layers` and `width_min` say how much work that is.
    """
    vocabulary = Vocabulary()
    line = [vocabulary.say(piece) for piece in _distinct_pieces(says)]
    width = _width(max(len(line) + 1, width_min))
    gain = CERTAIN / math.sqrt(
        width
    )  # a row with a single one is normed to the root of the width
    # Dimension 0 stands for any token outside the sentence, 1 + n for its n-th.
    place = {token: 1 + at for at, token in enumerate(line)}
    embedding = {
        (token, place.get(token, 0)): 1.0 for token in range(len(vocabulary.pieces))
    }
    output = {(token, at): gain for at, token in enumerate(line)}
    output[line[0] if endless else EOS, len(line)] = gain
    rows = len(vocabulary.pieces)
    ends = _matrix(rows, width, embedding), _matrix(rows, width, output)
    blocks = [_block(width, {})] * layers
    return _write(
        path, vocabulary, width=width, context=context, ends=ends, blocks=blocks
    )


def keywords_model(
    path: Path, words: Sequence[str], *, context: int = 2048, template: str = TEMPLATE
) -> Path:
    """A model that answers with those of the words that its prompt holds, the most frequent first.

    All attention is equal, so a head's value is the mean of what the tokens put in: a word asked
    about counts for it, one already said counts against it by far. Ask with temperature 0.
    """
    vocabulary = Vocabulary()
    read = [
        vocabulary.add(word, USER_DEFINED) for word in words
    ]  # found anywhere in a text
    said = [vocabulary.say(f" {word}") for word in words]
    count = len(words)
    width = _width(1 + 3 * count)
    seen_at, said_at, sum_at = 1, 1 + count, 1 + 2 * count
    embedding = {(token, 0): 1.0 for token in range(len(vocabulary.pieces))}
    output: dict[tuple[int, int], float] = {}
    value: dict[tuple[int, int], float] = {}
    onward: dict[tuple[int, int], float] = {}
    for at in range(count):
        embedding[read[at], seen_at + at] = 1.0
        embedding[said[at], said_at + at] = 1.0
        value[at, seen_at + at] = 1.0
        value[at, said_at + at] = -1000.0
        onward[sum_at + at, at] = 1.0
        output[said[at], sum_at + at] = 1000.0 * (
            1 - 2e-4 * at
        )  # the earlier word wins a tie
    # The end outweighs half a mention in a full window: a single real one outweighs it.
    output[EOS, 0] = 1000.0 * 0.5 * math.sqrt(width / 2) / context
    rows = len(vocabulary.pieces)
    ends = _matrix(rows, width, embedding), _matrix(rows, width, output)
    block = _block(width, {"attn_v": value, "attn_output": onward})
    return _write(
        path,
        vocabulary,
        width=width,
        context=context,
        ends=ends,
        blocks=[block],
        template=template,
    )


def meaning_model(
    path: Path,
    meanings: Sequence[Sequence[str]],
    *,
    context: int = 2048,
    silent: bool = False,
) -> Path:
    """An embedding model for which the words of each list mean the same, and others nothing.

    A text's vector is the mean of its tokens': the start of every text points one way, and each
    word that means something another; `silent`, nothing points anywhere. It does not say how to
    pool.
    """
    vocabulary = Vocabulary()
    embedding = {} if silent else {(BOS, 0): 1.0}
    for at, words in enumerate(meanings, start=1):
        for word in words:
            embedding[vocabulary.add(word, USER_DEFINED), at] = 1.0
    width = _width(1 + len(meanings))
    rows = len(vocabulary.pieces)
    ends = _matrix(rows, width, embedding), _matrix(rows, width, {})
    blocks = [_block(width, {})]
    return _write(
        path, vocabulary, width=width, context=context, ends=ends, blocks=blocks
    )


def _distinct_pieces(text: str) -> list[str]:
    """The words, each with the space before it; one that comes again is joined to the next."""
    pieces: list[str] = []
    open_piece = ""
    for word in text.split():
        open_piece += f" {word}"
        if (
            open_piece not in pieces
            and open_piece.strip() not in pieces
            and len(word) > 1
        ):
            pieces.append(open_piece)
            open_piece = ""
    if open_piece:
        pieces.append(pieces.pop() + open_piece if pieces else open_piece)
    return pieces


def _width(dimensions: int) -> int:
    return 64 * math.ceil(dimensions / 64)


def _matrix(rows: int, columns: int, cells: Cells) -> bytes:
    values = array("f", bytes(4 * rows * columns))
    for (row, column), value in cells.items():
        values[row * columns + column] = value
    return values.tobytes()


def _block_shapes(width: int) -> dict[str, tuple[int, int]]:
    square = dict.fromkeys(
        ("attn_q", "attn_k", "attn_v", "attn_output"), (width, width)
    )
    return {
        **square,
        "ffn_gate": (FFN, width),
        "ffn_up": (FFN, width),
        "ffn_down": (width, FFN),
    }


def _block(width: int, cells: Mapping[str, Cells]) -> dict[str, bytes]:
    return {
        name: _matrix(*shape, cells.get(name, {}))
        for name, shape in _block_shapes(width).items()
    }


def _write(
    path: Path,
    vocabulary: Vocabulary,
    *,
    width: int,
    context: int,
    ends: tuple[bytes, bytes],
    blocks: Sequence[Mapping[str, bytes]],
    template: str = TEMPLATE,
) -> Path:
    """The container: head, metadata, where each tensor lies, then the tensors."""
    rows = len(vocabulary.pieces)
    norm = array("f", [1.0] * width).tobytes()
    tensors: list[tuple[str, tuple[int, ...], bytes]] = [
        ("token_embd", (rows, width), ends[0]),
        ("output", (rows, width), ends[1]),
        ("output_norm", (width,), norm),
    ]
    for at, block in enumerate(blocks):
        tensors += [
            (f"blk.{at}.{name}", (width,), norm) for name in ("attn_norm", "ffn_norm")
        ]
        shapes = _block_shapes(width)
        tensors += [
            (f"blk.{at}.{name}", shapes[name], data) for name, data in block.items()
        ]
    metadata = _metadata(
        vocabulary, template, width=width, context=context, blocks=len(blocks)
    )
    head = struct.pack("<4sIQQ", b"GGUF", 3, len(tensors), len(metadata)) + b"".join(
        metadata
    )
    body = bytearray()
    for name, shape, data in tensors:
        head += _string(f"{name}.weight") + struct.pack("<I", len(shape))
        head += struct.pack(f"<{len(shape)}Q", *reversed(shape)) + struct.pack(
            "<IQ", 0, len(body)
        )
        body += data + bytes(-len(data) % ALIGNMENT)
    path.write_bytes(head + bytes(-len(head) % ALIGNMENT) + body)
    return path


def _metadata(
    vocabulary: Vocabulary, template: str, *, width: int, context: int, blocks: int
) -> list[bytes]:
    numbers = {
        "llama.context_length": context,
        "llama.embedding_length": width,
        "llama.block_count": blocks,
        "llama.feed_forward_length": FFN,
        "llama.attention.head_count": HEADS,
        "llama.attention.head_count_kv": HEADS,
        "llama.rope.dimension_count": width // HEADS,
        "llama.vocab_size": len(vocabulary.pieces),
        "tokenizer.ggml.bos_token_id": BOS,
        "tokenizer.ggml.eos_token_id": EOS,
        "tokenizer.ggml.unknown_token_id": UNK,
    }
    texts = {
        "general.architecture": "llama",
        "general.name": "tiny",
        "general.size_label": "1B",  # it plays a model that follows a whole prompt
        "tokenizer.ggml.model": "llama",
        "tokenizer.chat_template": template,
    }
    pieces = b"".join(map(_string, vocabulary.pieces))
    total = len(vocabulary.pieces)
    scores = array("f", vocabulary.scores).tobytes()
    kinds = struct.pack(f"<{total}I", *vocabulary.kinds)
    return [
        *(_pair(key, STRING, _string(text)) for key, text in texts.items()),
        *(
            _pair(key, UINT32, struct.pack("<I", number))
            for key, number in numbers.items()
        ),
        _pair(
            "llama.attention.layer_norm_rms_epsilon", FLOAT32, struct.pack("<f", 1e-5)
        ),
        _pair("tokenizer.ggml.add_bos_token", BOOL, b"\1"),
        _pair(
            "tokenizer.ggml.tokens", ARRAY, struct.pack("<IQ", STRING, total) + pieces
        ),
        _pair(
            "tokenizer.ggml.scores", ARRAY, struct.pack("<IQ", FLOAT32, total) + scores
        ),
        _pair("tokenizer.ggml.token_type", ARRAY, struct.pack("<IQ", 5, total) + kinds),
    ]


def _pair(key: str, kind: int, value: bytes) -> bytes:
    return _string(key) + struct.pack("<I", kind) + value


def _string(text: str) -> bytes:
    data = text.encode()
    return struct.pack("<Q", len(data)) + data
