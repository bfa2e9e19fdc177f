"""Installed models in one folder, and downloads: resumed and verified."""

from __future__ import annotations

import errno
import fcntl
import hashlib
import ipaddress
import json
import os
import re
import shutil
import socket
import ssl
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from http.client import HTTPException, HTTPMessage, HTTPResponse
from importlib.util import find_spec
from pathlib import Path
from typing import IO, BinaryIO
from urllib.error import HTTPError, URLError
from urllib.parse import unquote, urlsplit
from urllib.request import HTTPRedirectHandler, Request

from mnemosyned import paths, socket_path
from mnemosyned.config.settings import LlmConfig
from mnemosyned.errors import FetchFailed, InvalidRequest, SummarizerFailed

MAGIC = b"GGUF"
CHUNK_BYTES = 1 << 18
STALLED_ATTEMPTS_MAX = 4
"""Maximum attempts in a row that receive no bytes."""
ATTEMPTS_MAX = 1_000
TIMEOUT_S = 30.0
RETRYABLE_STATUSES = {408, 425, 429, 500, 502, 503, 504}
"""HTTP statuses worth another attempt."""

Progress = Callable[[int, int | None], object]


@dataclass(frozen=True, slots=True, kw_only=True)
class DownloadRequest:
    """File to download, with its size in bytes, digest and license if known."""

    url: str
    size: int | None = None
    sha256: str | None = None
    license: str = ""


def download(
    request: DownloadRequest, target: Path, *, progress: Progress, pause_s: float = 1.0
) -> str:
    """Download a file to `target`, check the SHA-256 digest, save it next to the file, and return it.

    An interrupted download stays next to the target as `.part`, and the next call resumes it. `progress` is
    called with the bytes received and the total or None; `pause_s` is the first pause in seconds before a
    retry. Raises `FetchFailed`, and `InvalidRequest` for an address without TLS.
    """
    check_url(request.url)
    socket_path.make_private_folder(str(target.parent))
    part = target.with_name(f"{target.name}.part")
    with part.open("a+b") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise FetchFailed(
                f"{target.name} is being downloaded already; wait until that is finished"
            ) from error
        try:
            _Download(request, file, part, progress).fetch(pause_s)
        finally:
            if not part.exists() or part.stat().st_size == 0:
                discard_part(part)
        os.fsync(file.fileno())
        digest = compute_sha256(part)
        if request.sha256 and digest != request.sha256.lower():
            discard_part(part)
            raise FetchFailed(
                f"{target.name} came with the SHA-256 {digest} instead of {request.sha256}; it was "
                "deleted: download it again, and do not trust the source if this repeats"
            )
        target.with_name(f"{target.name}.sha256").write_text(
            f"{digest}  {target.name}\n"
        )
        part.replace(target)
        _make_metadata_path(part).unlink(missing_ok=True)
    return digest


def compute_sha256(path: Path) -> str:
    """Return the SHA-256 of a file's content in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def check_url(url: str) -> None:
    """Raise `InvalidRequest` unless a URL uses HTTPS, or HTTP on this machine."""
    parts = urlsplit(url)
    if parts.scheme == "https" and parts.hostname:
        return
    if parts.scheme == "http" and parts.hostname and _is_loopback(parts.hostname):
        return
    raise InvalidRequest(
        f"{url} is not an https address; models are fetched over TLS", field="url"
    )


def _is_loopback(host: str) -> bool:
    """Return True if a host is an address of this machine, or "localhost"."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _make_metadata_path(part: Path) -> Path:
    """Return the path of the file that keeps URL and ETag of the incomplete download `part`."""
    return part.with_name(f"{part.name}.json")


def discard_part(part: Path) -> None:
    """Delete the file of an incomplete download, and its metadata file."""
    part.unlink(missing_ok=True)
    _make_metadata_path(part).unlink(missing_ok=True)


class _SecureRedirects(HTTPRedirectHandler):
    """Handler of redirects that refuses an address without TLS."""

    max_redirections = 5

    def redirect_request(  # noqa: PLR0917 as the library calls it
        self,
        req: Request,
        fp: IO[bytes],
        code: int,
        msg: str,
        headers: HTTPMessage,
        newurl: str,
    ) -> Request | None:
        """Return the request to follow a redirect to `newurl`.

        Raises `InvalidRequest` for http:// to another machine, and `FetchFailed` for http:// after https://.
        """
        check_url(newurl)
        if req.full_url.startswith("https:") and not newurl.startswith("https:"):
            raise FetchFailed(
                f"{urlsplit(req.full_url).hostname} redirects to an address without TLS; it was not followed"
            )
        return super().redirect_request(req, fp, code, msg, headers, newurl)


class _Download:
    """Download of a file in several attempts that resume each other."""

    def __init__(
        self, request: DownloadRequest, file: BinaryIO, part: Path, progress: Progress
    ) -> None:
        self._request = request
        self._file = file
        self._part = part
        self._progress = progress
        self._host = urlsplit(request.url).hostname
        handlers = [
            urllib.request.HTTPSHandler(context=ssl.create_default_context()),
            _SecureRedirects(),
        ]
        if _is_loopback(self._host or ""):  # not by way of the environment's proxy
            handlers.append(urllib.request.ProxyHandler({}))
        self._opener = urllib.request.build_opener(*handlers)
        self._etag = self._read_saved_etag()

    def fetch(self, pause_s: float) -> None:
        """Download the file, retrying after growing pauses from `pause_s` seconds. Raises `FetchFailed`."""
        stalled = 0
        for _ in range(ATTEMPTS_MAX):
            before = self._count_part_bytes()
            if self._request.size and before == self._request.size:
                return
            try:
                self._request_rest(before)
            except (OSError, HTTPException) as error:
                stalled = 0 if self._count_part_bytes() > before else stalled + 1
                if stalled >= STALLED_ATTEMPTS_MAX or self._is_final(error):
                    raise FetchFailed(self._describe_error(error)) from error
                time.sleep(pause_s * 2**stalled)
            else:
                return
        raise FetchFailed(
            f"{self._host} broke off {ATTEMPTS_MAX} times; call again to go on"
        )

    def _request_rest(self, received: int) -> None:
        """Request and append the bytes after the first `received`. Raises an error unless all arrive."""
        headers = {"Accept-Encoding": "identity", "User-Agent": "mnemosyned"}
        if received:
            headers["Range"] = f"bytes={received}-"
            if self._etag:
                headers["If-Range"] = self._etag
        request = Request(self._request.url, headers=headers)  # noqa: S310 checked before
        try:
            response = self._opener.open(request, timeout=TIMEOUT_S)
        except HTTPError as error:
            error.close()  # it is the answer, too
            if error.code == 416:  # no such range: the server has another file now
                self._file.truncate(0)
                raise ConnectionError("the part did not fit") from error
            raise
        with response:
            total = self._accept_response(response, received)
            written = self._count_part_bytes()
            while chunk := response.read(CHUNK_BYTES):
                begins_model = chunk.startswith(MAGIC)
                begins_model |= MAGIC.startswith(chunk[: len(MAGIC) - written])
                if written < len(MAGIC) and not begins_model:
                    discard_part(self._part)
                    raise FetchFailed(
                        f"what {self._host} sends is not a model in GGUF format; check the address"
                    )
                self._file.write(chunk)
                self._file.flush()
                written += len(chunk)
                if self._request.size and written > self._request.size:
                    discard_part(self._part)
                    raise FetchFailed(
                        f"{self._host} sends more than the file should have"
                    )
                self._progress(written, total or self._request.size)
        if total is not None and self._count_part_bytes() < total:
            raise ConnectionError("the connection broke off")

    def _accept_response(self, response: HTTPResponse, received: int) -> int | None:
        """Check the headers of a response; return the total size of the download, None if unknown.

        Unless the response continues the file, empty the file. Save the URL and ETag. Raises
        `FetchFailed` for a wrong size or too little disk space, `ConnectionError` for another range.
        """
        length = response.headers.get("Content-Length", "")
        total = int(length) if length.isdigit() else None
        if response.status == 206:
            # Such as "bytes 5-9/10".
            span = response.headers.get("Content-Range", "").removeprefix("bytes ")
            whole = span.rpartition("/")[2]
            if not span.startswith(f"{received}-"):
                self._file.truncate(0)
                raise ConnectionError("the server sent another range")
            total = int(whole) if whole.isdigit() else None
        else:
            self._file.truncate(0)
        if self._request.size and total not in (None, self._request.size):
            raise FetchFailed(
                f"{self._host} has a file of {total:,} bytes where {self._request.size:,} are "
                "expected: it is another file, and nothing of it was kept"
            )
        free = shutil.disk_usage(self._part.parent).free
        if total is not None and total - self._count_part_bytes() > free:
            raise FetchFailed(
                f"it needs {(total - self._count_part_bytes()) / 1e9:.1f} GB more, and {free / 1e9:.1f} GB are "
                f"free in {self._part.parent}; free some space and repeat the command"
            )
        etag = response.headers.get("ETag")
        # A weak one does not promise the same bytes.
        self._etag = None if etag is None or etag.startswith("W/") else etag
        note = json.dumps({"url": self._request.url, "etag": self._etag})
        _make_metadata_path(self._part).write_text(note)
        return total

    def _count_part_bytes(self) -> int:
        """Return the size in bytes of the part of the file that has been downloaded so far."""
        return os.fstat(self._file.fileno()).st_size

    def _read_saved_etag(self) -> str | None:
        """Return the ETag saved with the file, or None; empty a file that was begun from another URL."""
        try:
            note = json.loads(_make_metadata_path(self._part).read_text())
            if note["url"] == self._request.url:
                return str(note["etag"]) if note["etag"] else None
        except (OSError, ValueError, KeyError, TypeError):  # none, or not ours
            pass
        self._file.truncate(0)
        return None

    def _is_final(self, error: Exception) -> bool:
        """Return True if further attempts are useless after this error."""
        if isinstance(error, HTTPError):
            return error.code not in RETRYABLE_STATUSES
        reason = error.reason if isinstance(error, URLError) else error
        if isinstance(reason, ssl.SSLCertVerificationError):
            return True
        disk_errors = (errno.ENOSPC, errno.EDQUOT, errno.EIO)
        if isinstance(reason, OSError) and reason.errno in disk_errors:
            return True
        is_unreachable = isinstance(reason, socket.gaierror | ConnectionRefusedError)
        return is_unreachable and not self._count_part_bytes()

    def _describe_error(self, error: Exception) -> str:
        """Return the message, with advice, for the error that ended the last attempt."""
        size = self._count_part_bytes()
        kept = f"; {size:,} bytes are kept, call again to go on" if size else ""
        if isinstance(error, HTTPError):
            is_retryable = error.code in RETRYABLE_STATUSES
            advice = "try again later" if is_retryable else "check the address"
            return f"{self._host} answers {error.code} {error.reason}{kept or f'; {advice}'}"
        reason = error.reason if isinstance(error, URLError) else error
        words = (isinstance(reason, OSError) and reason.strerror) or str(reason)
        return f"{self._host} cannot be fetched from ({words}){kept}"


FILE_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._+-]{0,199}\.gguf")


CATALOG: Mapping[str, DownloadRequest] = {
    "tinyllama": DownloadRequest(
        url="https://huggingface.co/TheBloke/TinyLlama-1.1B-Chat-v1.0-GGUF/resolve/main/"
        "tinyllama-1.1b-chat-v1.0.Q4_K_M.gguf",
        size=668_788_096,
        license="Apache-2.0",
    )
}


@dataclass(frozen=True, slots=True)
class InstalledModel:
    """Model file in the folder, with its size in bytes; not `complete` while downloading."""

    path: Path
    size: int
    complete: bool = True


@dataclass(frozen=True, slots=True)
class VerifyResult:
    """Result of verifying a model's file: its size, digest, and problems in words."""

    size: int
    sha256: str
    problems: tuple[str, ...]
    compared: bool
    """True if a digest was known to compare with."""


class ModelStore:
    """Folder of installed models."""

    def __init__(self) -> None:
        self.folder = paths.models_dir()

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
        """Return the download of a catalog name or URL, and the file's path. Raises `InvalidRequest`."""
        if known := CATALOG.get(name):
            request = replace(known, sha256=sha256)
        elif "://" in name:
            request = DownloadRequest(url=name, sha256=sha256)
        else:
            raise InvalidRequest(
                f"no model is known as {name}; give an https address of a .gguf file, or one of: "
                + ", ".join(CATALOG)
            )
        file = _extract_file_name(request.url)
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
        """Download a model by catalog name or URL, and return its path and SHA-256.

        An existing file is verified instead. `sha256` is the digest to expect; `progress`
        is called with the bytes received and the total or None; `pause_s` is the first pause before
        a retry. Raises `FetchFailed`, also for a faulty file, and `InvalidRequest` for an unknown name.
        """
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
                f"{error.message}. {write_manual_instructions(request, target)}"
            ) from error

    def find(self, name: str, *, in_part: bool = False) -> Path:
        """Return a model's path if installed or, with `in_part`, half downloaded. Raises `InvalidRequest`."""
        if known := CATALOG.get(name):
            name = _extract_file_name(known.url)
        paths.require_usable_path(name, field="name", suffix=".gguf.part")
        candidates = [self.folder / name, self.folder / f"{name}.gguf"]
        if "/" in name:
            candidates = [paths.require_usable_path(name, field="name")]
        for path in candidates:
            if path.is_file() or (in_part and _make_part_path(path).is_file()):
                return path.absolute()
        raise InvalidRequest(
            f"the model {name} is not installed; `mnem model list` shows those that are"
        )

    def verify(self, path: Path, *, sha256: str | None = None) -> VerifyResult:
        """Check a model's file against `sha256`, or the digest saved at its download; return the findings.

        If no digest is known and llama.cpp is installed, it must be able to load the model.
        """
        size = path.stat().st_size
        digest = compute_sha256(path)
        problems = []
        with path.open("rb") as file:
            if file.read(len(MAGIC)) != MAGIC:
                problems.append("it is not a model in GGUF format")
        problems += [
            f"it has {size:,} bytes instead of {known.size:,}"
            for known in CATALOG.values()
            if _extract_file_name(known.url) == path.name and size != known.size
        ]
        recorded = ""
        with suppress(OSError, IndexError, UnicodeDecodeError):
            recorded = path.with_name(f"{path.name}.sha256").read_text().split()[0]
        expected = (sha256 or recorded).lower()
        if expected and expected != digest:
            problems.append(f"its SHA-256 is {digest} instead of {expected}")
        if not (problems or expected) and find_spec("llama_cpp"):
            from mnemosyned.models.llama import LlamaModel  # noqa: PLC0415 other commands start faster

            with closing(LlamaModel(model_path=path, settings=LlmConfig())) as model:
                try:
                    model.count_tokens("")
                except SummarizerFailed as error:
                    problems.append(error.message.partition(";")[0])
        return VerifyResult(size, digest, tuple(problems), compared=bool(expected))

    def remove(self, path: Path) -> None:
        """Delete a model's file, digest and incomplete download. Raises `InvalidRequest` outside the folder."""
        if path.parent != self.folder.absolute():
            raise InvalidRequest(f"{path} is not in {self.folder}; delete it yourself")
        for name in (path.name, f"{path.name}.sha256"):
            path.with_name(name).unlink(missing_ok=True)
        discard_part(_make_part_path(path))


def write_manual_instructions(request: DownloadRequest, target: Path) -> str:
    """Return a sentence on how to install a model without a network, at the path `target`."""
    size = f" of {request.size:,} bytes" if request.size else ""
    return f"Without a network here, bring the file{size} from {request.url} and put it at {target}"


def _extract_file_name(url: str) -> str:
    """Return the name of the file at the end of a URL."""
    return unquote(urlsplit(url).path).rpartition("/")[2]


def _make_part_path(path: Path) -> Path:
    """Return the path at which the download of a file is kept until it is complete."""
    return path.with_name(f"{path.name}.part")
