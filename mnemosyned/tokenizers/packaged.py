"""Token counter by a `tokenizer.json`, which the optional package `tokenizers` reads."""

from __future__ import annotations

from pathlib import Path

from mnemosyned.domain.errors import TokenizerUnusable
from mnemosyned.version import install_command


class PackagedCounter:
    """Counter of the model that the file came with, without the marks around a message."""

    def __init__(self, path: Path) -> None:
        """Read the file. Raises `TokenizerUnusable`."""
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
        readable = text.encode(errors="replace").decode()
        return len(self._tokenizer.encode(readable, add_special_tokens=False).ids)
