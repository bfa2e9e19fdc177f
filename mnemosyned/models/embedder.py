"""Embedding model run by llama.cpp, in the same kind of process as the one that summarizes."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path

from mnemosyned.domain.errors import EmbedderFailed, ModelUnavailable, SummarizerFailed
from mnemosyned.domain.ports.models import Embedder
from mnemosyned.models.llama import LlamaModel, LlamaOptions, Purpose

PIECE_BYTES = 1 << 20
FORM = "1"
"""Version of how a vector is made from a text: a change re-embeds all memories."""


class LlamaEmbedder(Embedder):
    """Embedding model in a GGUF file; the prefixes are those that its makers prescribe."""

    def __init__(
        self,
        *,
        model_path: Path,
        options: LlamaOptions,
        query_prefix: str = "",
        memory_prefix: str = "",
    ) -> None:
        self._model = LlamaModel(
            model_path=model_path, options=options, purpose=Purpose.EMBEDDING
        )
        self.name = self._model.name
        self._path = model_path
        self._query_prefix = query_prefix
        self._memory_prefix = memory_prefix

    def identity(self) -> str:
        """Digest the file's size and its first, middle and last megabyte; reading all takes long."""
        digest = hashlib.sha256()
        try:
            with self._path.open("rb") as file:
                size = self._path.stat().st_size
                digest.update(f"{FORM} {size} {self._memory_prefix}".encode())
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
        return self._embed([self._memory_prefix + text for text in texts])

    def embed_question(self, text: str) -> bytes:
        return self._embed([self._query_prefix + text])[0]

    def close(self) -> None:
        self._model.close()

    def _embed(self, texts: list[str]) -> list[bytes]:
        try:
            return self._model.embed(texts)
        except ModelUnavailable:
            raise
        except SummarizerFailed as error:
            raise EmbedderFailed(error.message) from error
