"""Models installed on this machine, in one folder, by their file names."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlsplit

from mnemosyned.domain.errors import FetchFailed, InvalidRequest
from mnemosyned.models.download import (
    MAGIC,
    DownloadRequest,
    Progress,
    discard_part,
    download,
    sha256_of,
)
from mnemosyned.paths import models_dir, usable_path

FILE_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._+-]{0,199}\.gguf")


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogEntry:
    """Model that can be downloaded by a short name."""

    url: str
    size: int
    license: str


CATALOG: Mapping[str, CatalogEntry] = {
    "tinyllama": CatalogEntry(
        url="https://huggingface.co/TheBloke/TinyLlama-1.1B-Chat-v1.0-GGUF/resolve/main/"
        "tinyllama-1.1b-chat-v1.0.Q4_K_M.gguf",
        size=668_788_096,
        license="Apache-2.0",
    )
}


@dataclass(frozen=True, slots=True)
class InstalledModel:
    """Installed model."""

    path: Path
    size: int
    complete: bool = True


@dataclass(frozen=True, slots=True)
class VerifyResult:
    """Result of verifying a model's file."""

    size: int
    sha256: str
    problems: tuple[str, ...]
    compared: bool
    """Whether there was a digest to compare with."""


class ModelStore:
    """Folder of installed models."""

    def __init__(self, folder: Path | None = None) -> None:
        self.folder = folder or models_dir()

    def __iter__(self) -> Iterator[InstalledModel]:
        for path in sorted(self.folder.glob("*.gguf")):
            if path.is_file():
                yield InstalledModel(path, path.stat().st_size)
        for part in sorted(self.folder.glob("*.gguf.part")):
            yield InstalledModel(
                part.with_suffix(""), part.stat().st_size, complete=False
            )

    def resolve(
        self, name: str, *, sha256: str | None = None
    ) -> tuple[DownloadRequest, Path]:
        """Resolve a short name or an address into a download and its target."""
        if known := CATALOG.get(name):
            request = DownloadRequest(url=known.url, size=known.size, sha256=sha256)
        elif "://" in name:
            request = DownloadRequest(url=name, sha256=sha256)
        else:
            raise InvalidRequest(
                f"no model is known as {name}; give an https address of a .gguf file, or one of: "
                + ", ".join(CATALOG)
            )
        file = _file_name(request.url)
        if not FILE_NAME.fullmatch(file):
            raise InvalidRequest(f"{name} does not end in the name of a .gguf file")
        return request, self.folder / file

    def pull(
        self,
        name: str,
        *,
        sha256: str | None = None,
        progress: Progress,
        pause_s: float = 1.0,
    ) -> tuple[Path, str]:
        """Download a model; return its path and SHA-256. Raises `FetchFailed`."""
        request, target = self.resolve(name, sha256=sha256)
        if target.exists():
            verdict = self.verify(target, sha256=sha256)
            if verdict.problems:
                raise FetchFailed(
                    f"{target} is there, but {verdict.problems[0]}; remove it with `mnem model "
                    f"remove {target.name}` and pull it again"
                )
            return target, verdict.sha256
        try:
            return target, download(request, target, progress=progress, pause_s=pause_s)
        except FetchFailed as error:
            raise FetchFailed(
                f"{error.message}. {manual_instructions(request, target)}"
            ) from error

    def find(self, name: str, *, in_part: bool = False) -> Path:
        """Find the file of an installed model by short name, file name or path."""
        if known := CATALOG.get(name):
            name = _file_name(known.url)
        usable_path(name, field="name", suffix=".gguf.part")
        candidates = [self.folder / name, self.folder / f"{name}.gguf"]
        if "/" in name:
            candidates = [usable_path(name, field="name")]
        for path in candidates:
            if path.is_file() or (in_part and _part_path(path).is_file()):
                return path.absolute()
        raise InvalidRequest(
            f"the model {name} is not installed; `mnem model list` shows those that are"
        )

    def verify(self, path: Path, *, sha256: str | None = None) -> VerifyResult:
        """Check format, size and digest, as far as known."""
        size = path.stat().st_size
        digest = sha256_of(path)
        problems = []
        with path.open("rb") as file:
            if file.read(len(MAGIC)) != MAGIC:
                problems.append("it is not a model in GGUF format")
        problems += [
            f"it has {size:,} bytes instead of {known.size:,}"
            for known in CATALOG.values()
            if _file_name(known.url) == path.name and size != known.size
        ]
        expected = (sha256 or _recorded_digest(path)).lower()
        if expected and expected != digest:
            problems.append(f"its SHA-256 is {digest} instead of {expected}")
        return VerifyResult(size, digest, tuple(problems), compared=bool(expected))

    def remove(self, path: Path) -> None:
        """Delete a model and its recorded digest."""
        if path.parent != self.folder.absolute():
            raise InvalidRequest(f"{path} is not in {self.folder}; delete it yourself")
        for name in (path.name, f"{path.name}.sha256"):
            path.with_name(name).unlink(missing_ok=True)
        discard_part(_part_path(path))


def manual_instructions(request: DownloadRequest, target: Path) -> str:
    """Return instructions to install the file without a network."""
    size = f" of {request.size:,} bytes" if request.size else ""
    return f"Without a network here, bring the file{size} from {request.url} and put it at {target}"


def _file_name(url: str) -> str:
    return unquote(urlsplit(url).path).rpartition("/")[2]


def _part_path(path: Path) -> Path:
    return path.with_name(f"{path.name}.part")


def _recorded_digest(path: Path) -> str:
    """Return the digest recorded when it was downloaded."""
    try:
        return path.with_name(f"{path.name}.sha256").read_text().split()[0]
    except (OSError, IndexError, UnicodeDecodeError):
        return ""
