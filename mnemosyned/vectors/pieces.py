"""Makes vectors of a few memories at once, so that a question waits for no more than those."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from mnemosyned.domain.errors import EmbedderFailed
from mnemosyned.domain.ports.models import Embedder
from mnemosyned.domain.ports.vectors import EmbeddingInput
from mnemosyned.domain.search.scores.semantic import spoken

PIECE, PIECE_CHARS = 4, 1_200
"""So many texts are asked for at once, fewer if they are long."""

Refused = Callable[[EmbeddingInput, EmbedderFailed], None]


def pieces(rows: Sequence[EmbeddingInput]) -> Iterator[Sequence[EmbeddingInput]]:
    """Divide memories into what is embedded at once."""
    piece: list[EmbeddingInput] = []
    chars = 0
    for row in rows:
        chars += len(row.content)
        too_large = len(piece) == PIECE or chars > PIECE_CHARS
        if piece and too_large:
            yield piece
            piece, chars = [], len(row.content)
        piece.append(row)
    if piece:
        yield piece


def embedded(
    embedder: Embedder, rows: Sequence[EmbeddingInput], refused: Refused
) -> list[tuple[EmbeddingInput, bytes]]:
    """Return memories with their vectors; one that fails takes no other along.

    Raises `ModelUnavailable`.
    """
    try:
        made = embedder.embed([spoken(row.role, row.content) for row in rows])
    except EmbedderFailed as error:
        if len(rows) == 1:
            refused(rows[0], error)
            return []
        return [pair for row in rows for pair in embedded(embedder, [row], refused)]
    return list(zip(rows, made, strict=True))
